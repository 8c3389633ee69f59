/* SPDX-License-Identifier: Apache-2.0 */
/* The source of bench_kernels.ptx, which is what is built in. Made again, after a change here, by
 *
 *   clang -x cuda -nocudainc -nocudalib --cuda-device-only --cuda-gpu-arch=sm_52 -Wno-unknown-cuda-version -O3 -S bench_kernels.cu -o bench_kernels.ptx
 */
#define GLOBAL extern "C" __attribute__((global)) void __attribute__((launch_bounds(256)))
#define SHARED __attribute__((shared)) __attribute__((aligned(16)))
#define PASTE inline __attribute__((device, always_inline))

struct __attribute__((aligned(16))) quad { unsigned x, y, z, w; };
struct __attribute__((aligned(16))) floats { float x, y, z, w; };

PASTE unsigned thread() { return __nvvm_read_ptx_sreg_tid_x(); }
PASTE unsigned block_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
PASTE unsigned block_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
PASTE void barrier() { asm volatile("bar.sync 0;" ::: "memory"); }

GLOBAL null_kernel() {}

PASTE unsigned step(unsigned value, unsigned seed) { return value * 1664525u + seed; }

/* to = from, mixed `rounds` times; `count` quads, one per thread. */
GLOBAL mix(const quad *from, quad *to, unsigned count, unsigned seed, unsigned rounds) {
  unsigned i = block_x() * 256 + thread();
  if (i >= count) return;
  quad q = from[i];
#pragma unroll 1
  for (unsigned r = 0; r < rounds; r++) q.x = step(q.x, seed), q.y = step(q.y, seed), q.z = step(q.z, seed), q.w = step(q.w, seed);
  to[i] = q;
}

/* to = 3 left xor right. */
GLOBAL join(const quad *left, const quad *right, quad *to, unsigned count) {
  unsigned i = block_x() * 256 + thread();
  if (i >= count) return;
  quad a = left[i], b = right[i];
  to[i] = {a.x * 3 ^ b.x, a.y * 3 ^ b.y, a.z * 3 ^ b.z, a.w * 3 ^ b.w};
}

/* c = a times b transposed: rows of a and b have `depth` values, those of c `width`. A block makes 64 x 64 of c, a thread 4 x 4; depth is a
 * multiple of 16, the sides of c are multiples of 64. */
GLOBAL product(const float *a, const float *b, float *c, unsigned depth, unsigned width) {
  static SHARED float as[16][64], bs[16][64];
  unsigned t = thread(), row = t / 4, part = t % 4 * 4, x = t % 16 * 4, y = t / 16 * 4;
  const float *from_a = a + (block_y() * 64 + row) * (unsigned long long)depth + part;
  const float *from_b = b + (block_x() * 64 + row) * (unsigned long long)depth + part;
  float sum[4][4] = {};
  floats va = *(const floats *)from_a, vb = *(const floats *)from_b;
  for (unsigned k = 0; k < depth; k += 16) {
    as[part][row] = va.x, as[part + 1][row] = va.y, as[part + 2][row] = va.z, as[part + 3][row] = va.w;
    bs[part][row] = vb.x, bs[part + 1][row] = vb.y, bs[part + 2][row] = vb.z, bs[part + 3][row] = vb.w;
    if (k + 16 < depth) va = *(const floats *)(from_a + k + 16), vb = *(const floats *)(from_b + k + 16); /* arrives meanwhile */
    barrier();
#pragma unroll 4
    for (unsigned i = 0; i < 16; i++) {
      floats p = *(const floats *)&as[i][y], q = *(const floats *)&bs[i][x];
      float ps[4] = {p.x, p.y, p.z, p.w}, qs[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
      for (int m = 0; m < 4; m++)
#pragma unroll
        for (int n = 0; n < 4; n++) sum[m][n] = __builtin_fmaf(ps[m], qs[n], sum[m][n]);
    }
    barrier();
  }
#pragma unroll
  for (int m = 0; m < 4; m++)
    *(floats *)(c + (block_y() * 64 + y + m) * (unsigned long long)width + block_x() * 64 + x) = {sum[m][0], sum[m][1], sum[m][2], sum[m][3]};
}
