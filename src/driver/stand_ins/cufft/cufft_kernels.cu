/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the stand-in for cuFFT: a pass (cufft_pass.h) in single or double precision, for lengths that are
 * powers of two or products of small primes, and once more for passes with more to do at their ends than to load and to
 * store ("special").
 *
 * A block transforms `lines_per_block` lines by Stockham's algorithm: the threads of the first stage load from global
 * memory, those of the last store to it, and between two stages the elements go through shared memory. A thread has the
 * same few butterflies of a stage in registers from its first load to its last store, so that one copy of the lines is
 * enough.
 *
 * Compiled by clang without a CUDA toolkit, as the bundled workloads are. */
#include "driver/stand_ins/cufft/cufft_pass.h"

#define DEVICE static __attribute__((device)) inline __attribute__((always_inline))
#define APART                    \
  static __attribute__((device)) \
  __attribute__((noinline)) /* inlined, the cases of a switch would share registers that they do not need */
#define KERNEL extern "C" __attribute__((global)) __attribute__((launch_bounds(CUFFT_THREADS_MAX)))

typedef unsigned long long u64;
typedef long long s64;

template <class T> struct alignas(2 * sizeof(T)) complex { T x, y; };

DEVICE void barrier() { asm volatile("bar.sync 0;" ::: "memory"); }
/* What was loaded before is loaded again, where it is needed: registers are few. */
DEVICE void forget() { asm volatile("" ::: "memory"); }
DEVICE unsigned thread() { return (unsigned)__nvvm_read_ptx_sreg_tid_x(); }
DEVICE unsigned threads() { return (unsigned)__nvvm_read_ptx_sreg_ntid_x(); }
DEVICE unsigned block() { return (unsigned)__nvvm_read_ptx_sreg_ctaid_x(); }

/* An address as a pointer that the compiler knows to be into global memory. */
template <class P> DEVICE P *global(u64 address) { return (P *)(__attribute__((address_space(1))) P *)address; }

/* a / divisor, for a x divisor < 2^32; magic_of of cufft_passes.c. 0 stands for the divisor 1. */
DEVICE unsigned divide(unsigned a, unsigned magic) { return magic ? (unsigned)(((u64)a * magic) >> 32) : a; }

/* ---- complex numbers ---- */

template <class T> DEVICE complex<T> operator+(complex<T> a, complex<T> b) { return {a.x + b.x, a.y + b.y}; }
template <class T> DEVICE complex<T> operator-(complex<T> a, complex<T> b) { return {a.x - b.x, a.y - b.y}; }
template <class T> DEVICE complex<T> operator*(complex<T> a, complex<T> b) {
  return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}
template <class T> DEVICE complex<T> times_minus_i(complex<T> a) { return {a.y, -a.x}; }
template <class T> DEVICE complex<T> swapped(complex<T> a) { return {a.y, a.x}; }

/* ---- small transforms in registers ---- */

/* cos and sin of 2 pi k / r for the k that are needed. */
DEVICE double cosine(int r, int k) {
  const double of_3[] = {1, -0.5};
  const double of_5[] = {1, 0.30901699437494742, -0.80901699437494742};
  const double of_6[] = {1, 0.5, -0.5, -1};
  const double of_7[] = {1, 0.62348980185873353, -0.22252093395631440, -0.90096886790241913};
  const double of_9[] = {1, 0.76604444311897804, 0.17364817766693035, -0.5, -0.93969262078590838};
  const double of_10[] = {1, 0.80901699437494742, 0.30901699437494742, -0.30901699437494742, -0.80901699437494742, -1};
  const double of_16[] = {1, 0.92387953251128676,  0.70710678118654752,  0.38268343236508977,
                          0, -0.38268343236508977, -0.70710678118654752, -0.92387953251128676,
                          -1};
  k %= r;
  if (k > r - k) k = r - k;
  return r == 3    ? of_3[k]
         : r == 5  ? of_5[k]
         : r == 6  ? of_6[k]
         : r == 7  ? of_7[k]
         : r == 9  ? of_9[k]
         : r == 10 ? of_10[k]
                   : of_16[k];
}
DEVICE double sine(int r, int k) {
  const double of_3[] = {0, 0.86602540378443865};
  const double of_5[] = {0, 0.95105651629515357, 0.58778525229247313};
  const double of_6[] = {0, 0.86602540378443865, 0.86602540378443865, 0};
  const double of_7[] = {0, 0.78183148246802981, 0.97492791218182361, 0.43388373911755812};
  const double of_9[] = {0, 0.64278760968653933, 0.98480775301220806, 0.86602540378443865, 0.34202014332566873};
  const double of_10[] = {0, 0.58778525229247313, 0.95105651629515357, 0.95105651629515357, 0.58778525229247313, 0};
  const double of_16[] = {0, 0.38268343236508977, 0.70710678118654752, 0.92387953251128676,
                          1, 0.92387953251128676, 0.70710678118654752, 0.38268343236508977,
                          0};
  k %= r;
  bool below = k > r - k;
  if (below) k = r - k;
  double s = r == 3    ? of_3[k]
             : r == 5  ? of_5[k]
             : r == 6  ? of_6[k]
             : r == 7  ? of_7[k]
             : r == 9  ? of_9[k]
             : r == 10 ? of_10[k]
                       : of_16[k];
  return below ? -s : s;
}

/* e(k / r) = exp(-2 pi i k / r) */
template <class T> DEVICE complex<T> turn(int r, int k) { return {(T)cosine(r, k), (T)-sine(r, k)}; }

template <class T> DEVICE void dft_2(complex<T> &a, complex<T> &b) {
  complex<T> sum = a + b;
  b = a - b;
  a = sum;
}

template <class T> DEVICE void dft_4(complex<T> &a, complex<T> &b, complex<T> &c, complex<T> &d) {
  dft_2(a, c);
  dft_2(b, d);
  d = times_minus_i(d);
  dft_2(a, b);
  dft_2(c, d);
  complex<T> swap = b; /* a, c, b, d are the results in order */
  b = c;
  c = swap;
}

/* An odd radix: what k and R - k add to the results is shared. */
template <class T, int R> DEVICE void dft_odd(complex<T> (&a)[R]) {
  constexpr int half = (R - 1) / 2;
  complex<T> sums[half + 1], differences[half + 1], total = a[0];
#pragma unroll
  for (int k = 1; k <= half; k++) {
    sums[k] = a[k] + a[R - k];
    differences[k] = a[k] - a[R - k];
    total = total + sums[k];
  }
  complex<T> first = a[0];
  a[0] = total;
#pragma unroll
  for (int m = 1; m <= half; m++) {
    complex<T> even = first, odd = {0, 0};
#pragma unroll
    for (int k = 1; k <= half; k++) {
      T c = (T)cosine(R, m * k), s = (T)sine(R, m * k);
      even = {even.x + c * sums[k].x, even.y + c * sums[k].y};
      odd = {odd.x + s * differences[k].x, odd.y + s * differences[k].y};
    }
    a[m] = even + times_minus_i(odd);
    a[R - m] = even - times_minus_i(odd);
  }
}

template <class T, int R> struct small {
  DEVICE void dft(complex<T> (&a)[R]) { dft_odd<T, R>(a); }
};
template <class T> struct small<T, 1> {
  DEVICE void dft(complex<T> (&)[1]) {}
};
template <class T> struct small<T, 2> {
  DEVICE void dft(complex<T> (&a)[2]) { dft_2(a[0], a[1]); }
};
template <class T> struct small<T, 4> {
  DEVICE void dft(complex<T> (&a)[4]) { dft_4(a[0], a[1], a[2], a[3]); }
};

/* Of R = P x Q: Q transforms of P, turned, then P of Q. */
template <class T, int P, int Q> DEVICE void dft_product(complex<T> (&a)[P * Q]) {
  constexpr int R = P * Q, OF = R == 8 ? 16 : R; /* there is no table of 8 */
  complex<T> columns[Q][P];
#pragma unroll
  for (int q = 0; q < Q; q++) {
#pragma unroll
    for (int p = 0; p < P; p++) columns[q][p] = a[p * Q + q];
    small<T, P>::dft(columns[q]);
#pragma unroll
    for (int p = 1; p < P; p++)
      if (q) columns[q][p] = columns[q][p] * turn<T>(OF, p * q * (OF / R));
  }
#pragma unroll
  for (int p = 0; p < P; p++) {
    complex<T> row[Q];
#pragma unroll
    for (int q = 0; q < Q; q++) row[q] = columns[q][p];
    small<T, Q>::dft(row);
#pragma unroll
    for (int q = 0; q < Q; q++) a[p + P * q] = row[q];
  }
}
template <class T> struct small<T, 6> {
  DEVICE void dft(complex<T> (&a)[6]) { dft_product<T, 2, 3>(a); }
};
template <class T> struct small<T, 10> {
  DEVICE void dft(complex<T> (&a)[10]) { dft_product<T, 2, 5>(a); }
};
template <class T> struct small<T, 8> {
  DEVICE void dft(complex<T> (&a)[8]) { dft_product<T, 2, 4>(a); }
};
template <class T> struct small<T, 9> {
  DEVICE void dft(complex<T> (&a)[9]) { dft_product<T, 3, 3>(a); }
};
template <class T> struct small<T, 16> {
  DEVICE void dft(complex<T> (&a)[16]) { dft_product<T, 4, 4>(a); }
};

/* ---- formats ---- */

DEVICE float from_half(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
DEVICE unsigned short to_half(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
DEVICE float from_bfloat(unsigned short bits) { return __nvvm_bitcast_i2f((int)((unsigned)bits << 16)); }
DEVICE unsigned short to_bfloat(float value) { /* to the nearest, ties to even; not-a-number stays one */
  unsigned bits = (unsigned)__nvvm_bitcast_f2i(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (unsigned short)((bits >> 16) | 0x40);
  return (unsigned short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <class T> DEVICE complex<T> read(unsigned format, u64 buffer, s64 at) {
  const unsigned short *halves = global<const unsigned short>(buffer);
  switch (format) {
  case CUFFT_REAL: return {global<const T>(buffer)[at], 0};
  case CUFFT_HALF_COMPLEX: return {(T)from_half(halves[2 * at]), (T)from_half(halves[2 * at + 1])};
  case CUFFT_HALF_REAL: return {(T)from_half(halves[at]), 0};
  case CUFFT_BFLOAT_COMPLEX: return {(T)from_bfloat(halves[2 * at]), (T)from_bfloat(halves[2 * at + 1])};
  case CUFFT_BFLOAT_REAL: return {(T)from_bfloat(halves[at]), 0};
  default: return global<const complex<T>>(buffer)[at];
  }
}

template <class T> DEVICE void write(unsigned format, u64 buffer, s64 at, complex<T> value) {
  unsigned short *halves = global<unsigned short>(buffer);
  switch (format) {
  case CUFFT_REAL: global<T>(buffer)[at] = value.x; break;
  case CUFFT_HALF_COMPLEX:
    halves[2 * at] = to_half((float)value.x), halves[2 * at + 1] = to_half((float)value.y);
    break;
  case CUFFT_HALF_REAL: halves[at] = to_half((float)value.x); break;
  case CUFFT_BFLOAT_COMPLEX:
    halves[2 * at] = to_bfloat((float)value.x), halves[2 * at + 1] = to_bfloat((float)value.y);
    break;
  case CUFFT_BFLOAT_REAL: halves[at] = to_bfloat((float)value.x); break;
  default: global<complex<T>>(buffer)[at] = value;
  }
}

/* ---- a pass ---- */

extern "C" __attribute__((device)) __attribute__((shared)) __attribute__((aligned(16))) u64 cufft_shared[];

/* What all threads of a block know. */
template <class T> struct launch {
  const cufft_pass *pass;
  u64 in, out; /* buffers */
  bool inverse;
  unsigned lines; /* of this block */
  s64 *bases;     /* arrays of lines_per_block numbers each, in the order below */
  complex<T> *data;
};
template <class T> DEVICE launch<T> launch_of(u64 address, u64 in, u64 out, bool inverse) {
  const cufft_pass *pass = global<const cufft_pass>(address);
  unsigned lines = pass->lines_per_block;
  u64 left = pass->lines - (u64)block() * lines;
  s64 *bases = (s64 *)cufft_shared;
  return {pass,
          in,
          out,
          inverse,
          left < lines ? (unsigned)left : lines,
          bases,
          (complex<T> *)(bases + CUFFT_PASS_BASES * lines)};
}
enum { IN_ADDRESS, OUT_ADDRESS, IN_POSITION, OUT_POSITION, TURN };

template <class T> DEVICE s64 base(const launch<T> &of, unsigned which, unsigned line) {
  return of.bases[which * of.pass->lines_per_block + line];
}
DEVICE bool swaps(unsigned when, bool inverse) {
  return when == CUFFT_SWAP_ALWAYS || (when == CUFFT_SWAP_INVERSE && inverse);
}

template <class T> DEVICE complex<T> entry(u64 table, u64 at) { return global<const complex<T>>(table)[at]; }

template <class T>
DEVICE complex<T> load_special(const cufft_pass *pass, bool inverse, u64 in, s64 address, s64 position) {
  s64 from = position;
  if ((u64)position >= pass->in_limit) return {0, 0};
  bool mirrored = pass->mirror && (u64)position > pass->mirror / 2;
  if (mirrored) from = (s64)pass->mirror - position;
  complex<T> value = read<T>(pass->in_format, in, address + from * pass->in_stride);
  if (mirrored) value.y = -value.y;
  if (swaps(pass->swap_load, inverse)) value = swapped(value);
  return pass->before ? value * entry<T>(pass->before, (u64)position) : value;
}

/* angle: of the turn, in parts of its modulus */
template <class T> DEVICE complex<T> turned(const cufft_pass *pass, u64 angle, complex<T> value) {
  u64 fine = angle & ((1ull << pass->fine_bits) - 1);
  return value * (entry<T>(pass->fine, fine) * entry<T>(pass->coarse, angle >> pass->fine_bits));
}

template <class T>
DEVICE void store_special(const cufft_pass *pass, bool inverse, u64 out, s64 address, s64 position, u64 angle,
                          complex<T> value) {
  if ((u64)position >= pass->out_limit) return;
  if (pass->fine) value = turned(pass, angle, value);
  if (swaps(pass->swap_store, inverse)) value = swapped(value);
  if (pass->after) value = value * entry<T>(pass->after, (u64)position);
  if (swaps(pass->swap_after, inverse)) value = swapped(value);
  write(pass->out_format, out, address + position * pass->out_stride, value);
}

/* Elements first, first + step, ... of a line from global memory. */
template <class T, int R>
DEVICE void load(const launch<T> &of, unsigned line, unsigned first, unsigned step, complex<T> (&a)[R]) {
  const cufft_pass *pass = of.pass;
  s64 position = base(of, IN_POSITION, line) + first * pass->in_step, apart = step * pass->in_step * pass->in_stride;
  const complex<T> *from = global<const complex<T>>(of.in) + base(of, IN_ADDRESS, line) + position * pass->in_stride;
#pragma unroll
  for (int k = 0; k < R; k++) a[k] = from[k * apart];
  if (swaps(pass->swap_load, of.inverse)) {
#pragma unroll
    for (int k = 0; k < R; k++) a[k] = swapped(a[k]);
  }
}

template <class T, int R>
DEVICE void store(const launch<T> &of, unsigned line, unsigned first, unsigned step, complex<T> (&a)[R]) {
  const cufft_pass *pass = of.pass;
  s64 position = base(of, OUT_POSITION, line) + first * pass->out_step,
      apart = step * pass->out_step * pass->out_stride;
  complex<T> *to = global<complex<T>>(of.out) + base(of, OUT_ADDRESS, line) + position * pass->out_stride;
  if (pass->fine) {
    u64 turn = (u64)base(of, TURN, line);
#pragma unroll
    for (int k = 0; k < R; k++) a[k] = turned(pass, turn * (first + (unsigned)k * step), a[k]);
  }
  if (swaps(pass->swap_after, of.inverse)) {
#pragma unroll
    for (int k = 0; k < R; k++) a[k] = swapped(a[k]);
  }
#pragma unroll
  for (int k = 0; k < R; k++) to[k * apart] = a[k];
}

template <class T> DEVICE complex<T> *shared(const launch<T> &of, unsigned line, unsigned position) {
  unsigned at = line * of.pass->line_pitch + position * of.pass->position_pitch;
  return of.data + at + (at >> CUFFT_PASS_PAD);
}

/* Which butterfly that is: of which line, and where in it. */
struct place {
  unsigned line, j, q; /* q = j % before */
  bool active;
};
template <class T> DEVICE place find_place(const launch<T> &of, const cufft_stage *stage, unsigned t) {
  place at;
  if (stage->by_lines) at.j = divide(t, of.pass->lines_magic), at.line = t - at.j * of.pass->lines_per_block;
  else at.line = divide(t, stage->butterflies_magic), at.j = t - at.line * stage->butterflies;
  at.q = at.j - divide(at.j, stage->before_magic) * stage->before;
  at.active = at.line < of.lines && at.j < stage->butterflies;
  return at;
}

/* The inputs of a butterfly from shared memory, turned. */
template <class T, int R>
DEVICE void gather(const launch<T> &of, const cufft_stage *stage, place at, complex<T> (&a)[R]) {
  const complex<T> *turns = global<const complex<T>>(of.pass->turns);
  unsigned angle = at.q * stage->turn_step;
#pragma unroll
  for (int k = 0; k < R; k++) a[k] = *shared(of, at.line, at.j + (unsigned)k * stage->butterflies);
#pragma unroll
  for (int k = 1; k < R; k++) a[k] = a[k] * turns[(unsigned)k * angle];
}

template <class T, int R>
DEVICE void scatter(const launch<T> &of, const cufft_stage *stage, place at, complex<T> (&a)[R]) {
  unsigned to = (at.j - at.q) * R + at.q;
#pragma unroll
  for (int k = 0; k < R; k++) *shared(of, at.line, to + (unsigned)k * stage->before) = a[k];
}

/* from_global, to_global: the first and the last stage, but of a special pass. */
template <class T, int R>
APART void stage(u64 pass, u64 in, u64 out, unsigned number, bool inverse, bool from_global, bool to_global) {
  constexpr int COUNT = CUFFT_BUTTERFLIES(R);
  const launch<T> of = launch_of<T>(pass, in, out, inverse);
  const cufft_stage *stage = &of.pass->stages[number];
  complex<T> a[COUNT][R];
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
    forget();
    place at = find_place(of, stage, thread() + (unsigned)i * threads());
    if (!at.active) continue;
    if (from_global) load(of, at.line, at.j, stage->butterflies, a[i]);
    else gather(of, stage, at, a[i]);
    small<T, R>::dft(a[i]);
    if (to_global) store(of, at.line, at.j, stage->before, a[i]);
  }
  if (to_global) return;
  if (!from_global) barrier();
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
    forget();
    place at = find_place(of, stage, thread() + (unsigned)i * threads());
    if (at.active) scatter(of, stage, at, a[i]);
  }
  barrier();
}

/* All elements of the block's lines between global and shared memory, with everything that a pass may do to them. */
template <class T> DEVICE void load_all(const launch<T> &of) {
  const cufft_pass *pass = of.pass;
  const cufft_stage *stage = &pass->stages[0];
  for (unsigned i = thread(); i < pass->lines_per_block * pass->length; i += threads()) {
    unsigned p = stage->by_lines ? divide(i, pass->lines_magic) : 0, line = i - p * pass->lines_per_block;
    if (!stage->by_lines) line = divide(i, pass->length_magic), p = i - line * pass->length;
    if (line >= of.lines) continue;
    s64 position = base(of, IN_POSITION, line) + p * pass->in_step;
    *shared(of, line, p) = load_special<T>(pass, of.inverse, of.in, base(of, IN_ADDRESS, line), position);
  }
}
template <class T> DEVICE void store_all(const launch<T> &of) {
  const cufft_pass *pass = of.pass;
  const cufft_stage *stage = &pass->stages[pass->stage_count - 1];
  for (unsigned i = thread(); i < pass->lines_per_block * pass->length; i += threads()) {
    unsigned k = stage->by_lines ? divide(i, pass->lines_magic) : 0, line = i - k * pass->lines_per_block;
    if (!stage->by_lines) line = divide(i, pass->length_magic), k = i - line * pass->length;
    if (line >= of.lines) continue;
    s64 position = base(of, OUT_POSITION, line) + k * pass->out_step;
    u64 angle = (u64)base(of, TURN, line) * k;
    store_special(pass, of.inverse, of.out, base(of, OUT_ADDRESS, line), position, angle, *shared(of, line, k));
  }
}

/* Where the lines of this block are. */
template <class T> DEVICE void find_lines(const launch<T> &of, u64 first) {
  const cufft_pass *pass = of.pass;
  unsigned room = pass->lines_per_block;
  for (unsigned line = thread(); line < of.lines; line += threads()) {
    s64 in = 0, out = 0, in_position = 0, out_position = 0, turn = 0;
    u64 rest = first + line;
    for (unsigned i = 0; i < pass->loop_count; i++) {
      const cufft_loop *loop = &pass->loops[i];
      u64 count = loop->count, above;
      if ((rest | count) >> 32) above = rest / count;
      else above = (unsigned)rest / (unsigned)count;
      s64 index = (s64)(rest - above * count);
      in += index * loop->in, out += index * loop->out;
      in_position += index * loop->in_position, out_position += index * loop->out_position;
      turn += index * loop->turn;
      rest = above;
    }
    of.bases[IN_ADDRESS * room + line] = in, of.bases[OUT_ADDRESS * room + line] = out;
    of.bases[IN_POSITION * room + line] = in_position, of.bases[OUT_POSITION * room + line] = out_position;
    of.bases[TURN * room + line] = turn;
  }
}

template <class T, bool MIXED, bool SPECIAL> DEVICE void run(u64 address, u64 in, u64 out, bool inverse) {
  const launch<T> of = launch_of<T>(address, in, out, inverse);
  find_lines(of, (u64)block() * of.pass->lines_per_block);
  barrier();
  if (SPECIAL) {
    load_all(of);
    barrier();
  }
  unsigned count = of.pass->stage_count;
  for (unsigned i = 0; i < count; i++) {
    bool first = !SPECIAL && i == 0, last = !SPECIAL && i + 1 == count;
    switch (of.pass->stages[i].radix) {
    case 2: stage<T, 2>(address, in, out, i, inverse, first, last); break;
    case 4: stage<T, 4>(address, in, out, i, inverse, first, last); break;
    case 8: stage<T, 8>(address, in, out, i, inverse, first, last); break;
    case 16: stage<T, 16>(address, in, out, i, inverse, first, last); break;
    default:
      if (!MIXED) return;
      switch (of.pass->stages[i].radix) {
      case 1: stage<T, 1>(address, in, out, i, inverse, first, last); break;
      case 3: stage<T, 3>(address, in, out, i, inverse, first, last); break;
      case 5: stage<T, 5>(address, in, out, i, inverse, first, last); break;
      case 6: stage<T, 6>(address, in, out, i, inverse, first, last); break;
      case 7: stage<T, 7>(address, in, out, i, inverse, first, last); break;
      case 9: stage<T, 9>(address, in, out, i, inverse, first, last); break;
      case 10: stage<T, 10>(address, in, out, i, inverse, first, last); break;
      }
    }
  }
  if (SPECIAL) store_all(of);
}

#define PASS(name, T, MIXED, SPECIAL) \
  KERNEL void name(u64 pass, u64 in, u64 out, unsigned inverse) { run<T, MIXED, SPECIAL>(pass, in, out, inverse != 0); }
PASS(farfault_fft_f32, float, false, false)
PASS(farfault_fft_f32_mixed, float, true, false)
PASS(farfault_fft_f32_special, float, false, true)
PASS(farfault_fft_f32_mixed_special, float, true, true)
PASS(farfault_fft_f64, double, false, false)
PASS(farfault_fft_f64_mixed, double, true, false)
PASS(farfault_fft_f64_special, double, false, true)
PASS(farfault_fft_f64_mixed_special, double, true, true)
