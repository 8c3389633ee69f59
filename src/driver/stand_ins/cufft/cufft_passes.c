/* SPDX-License-Identifier: Apache-2.0 */
/* From a transform to its passes: which dimension goes from which buffer to which, into how many passes it is split,
 * and how a pass is laid over blocks and threads.
 *
 * A work buffer holds the array with the fastest dimension last and without gaps, the dimension that is being
 * transformed in the length that it has there. So adjacent lines of a strided dimension are adjacent everywhere. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "driver/stand_ins/cufft/cufft_plan.h"

enum {
  /* elements of a line in one block, if its elements are adjacent; half of it in double precision */
  LINE_MAX = 4096,
  LINE_MAX_APART = 1024, /* if they are not: four lines have to fit, that reads of 32 bytes are used */
  BLOCK_ELEMENTS = 2048, /* what a block is to have, if there are that many; twice as many at most */
  BLOCK_LINES_MAX = 64,
  WARP = 32,
  PASSES_MAX = 7
};

static const unsigned smooth_primes[] = {2, 3, 5, 7};
enum { SMOOTH_PRIMES = sizeof smooth_primes / sizeof *smooth_primes };

/* Those that the kernels have; of the powers of two all. */
static const unsigned all_radices[] = {16, 10, 9, 8, 7, 6, 5, 4, 3, 2};
enum { RADICES = sizeof all_radices / sizeof *all_radices };

size_t cufft_format_bytes(enum cufft_format format, bool is_double) {
  size_t real = is_double ? sizeof(double) : sizeof(float);
  switch (format) {
  case CUFFT_COMPLEX: return 2 * real;
  case CUFFT_REAL: return real;
  case CUFFT_HALF_COMPLEX:
  case CUFFT_BFLOAT_COMPLEX: return 4;
  default: return 2;
  }
}

/* ---- lengths ---- */

static bool is_smooth(uint64_t n) {
  for (size_t i = 0; i < SMOOTH_PRIMES; i++)
    while (n % smooth_primes[i] == 0) n /= smooth_primes[i];
  return n == 1;
}

/* A length within a block as a product of radices. */
typedef struct radix_list {
  unsigned radices[CUFFT_PASS_STAGES], count;
  unsigned threads; /* of one line */
} radix_list;

static unsigned threads_of(unsigned elements, const radix_list *list) {
  unsigned most = 1;
  for (unsigned i = 0; i < list->count; i++) {
    unsigned radix = list->radices[i], each = radix * CUFFT_BUTTERFLIES(radix), threads = (elements + each - 1) / each;
    if (threads > most) most = threads;
  }
  return most;
}

/* Four lines of 1024 elements should fit into a block; then fewer stages are better. */
static bool is_better(const radix_list *a, const radix_list *b) {
  unsigned few = CUFFT_THREADS_MAX / 4, a_over = a->threads > few ? a->threads : few,
           b_over = b->threads > few ? b->threads : few;
  if (!b->count || a_over != b_over) return !b->count || a_over < b_over;
  return a->count < b->count || (a->count == b->count && a->threads < b->threads);
}

static void search(unsigned length, unsigned left, size_t from, radix_list *so_far, radix_list *best) {
  if (left == 1) {
    so_far->threads = threads_of(length, so_far);
    if (is_better(so_far, best)) *best = *so_far;
    return;
  }
  for (size_t i = from; i < RADICES && so_far->count < CUFFT_PASS_STAGES; i++) {
    if (left % all_radices[i]) continue;
    so_far->radices[so_far->count++] = all_radices[i];
    search(length, left / all_radices[i], i, so_far, best);
    so_far->count--;
  }
}

static radix_list radices_of(unsigned length) {
  radix_list so_far = {0}, best = {.radices = {1}, .count = 1, .threads = 1};
  if (length == 1) return best;
  best.count = 0;
  search(length, length, 0, &so_far, &best);
  return best;
}

/* Whether one block can transform a line of n elements, of which no more than `limit` fit. */
static bool fits(uint64_t n, unsigned limit) {
  if (n > limit) return false;
  radix_list list = radices_of((unsigned)n);
  return list.count && list.threads <= CUFFT_THREADS_MAX;
}

static bool split_into(uint64_t n, unsigned passes, unsigned limit, uint64_t *factors) {
  if (passes == 1) {
    factors[0] = n;
    return fits(n, limit);
  }
  unsigned ideal = (unsigned)(powl((long double)n, 1.0L / passes) + 0.5L);
  for (unsigned distance = 0; distance < limit; distance++)
    for (int side = 0; side < 2; side++) {
      uint64_t factor = side ? (uint64_t)ideal + distance : (uint64_t)ideal - distance;
      if (factor < 2 || factor > limit || n % factor || !fits(factor, limit)) continue;
      factors[0] = factor;
      if (split_into(n / factor, passes - 1, limit, factors + 1)) return true;
    }
  return false;
}

/* The fewest factors of a smooth n that blocks can transform, the first and the last with elements that are not
 * adjacent. */
static unsigned split(uint64_t n, unsigned alone, unsigned limit, uint64_t factors[PASSES_MAX]) {
  if (fits(n, alone)) {
    factors[0] = n;
    return 1;
  }
  for (unsigned passes = 2; passes <= PASSES_MAX; passes++)
    if (split_into(n, passes, limit, factors)) return passes;
  return 0;
}

/* ---- what is being built ---- */

typedef struct builder {
  const cufft_shape *shape;
  cufft_program *program;
  cufft_tables *tables;
  bool failed;
} builder;

/* A buffer, and how the array lies in it. */
typedef struct view {
  cufft_buffer buffer;
  cufft_layout layout;
} view;

/* A dimension's transform: what its first pass does to what it loads, and its last to what it stores. */
typedef struct ends {
  uint64_t in_limit, out_limit, mirror;
  int before, after; /* tables */
  unsigned swap_load, swap_store, swap_after;
} ends;

static int add_table(builder *b, cufft_table wanted) {
  for (size_t i = 0; i < b->tables->count; i++) {
    const cufft_table *at = &b->tables->items[i];
    if (at->kind == wanted.kind && at->length == wanted.length && at->count == wanted.count && at->step == wanted.step)
      return (int)i;
  }
  FF_PUSH(b->tables, wanted);
  return (int)b->tables->count - 1;
}

/* Lengths of the array in the middle of the transform: half of a real signal's last dimension is kept. */
static int64_t length_of(const cufft_shape *shape, int dimension) {
  bool half = shape->kind != CUFFT_KIND_C2C && dimension == shape->rank - 1;
  return half ? shape->lengths[dimension] / 2 + 1 : shape->lengths[dimension];
}

/* A piece of the work area for the array, with dimension d (-1: none) of another length. */
static view work_view(builder *b, cufft_buffer buffer, int d, uint64_t length) {
  view made = {.buffer = buffer, .layout = {.format = CUFFT_COMPLEX}};
  uint64_t bytes = cufft_format_bytes(CUFFT_COMPLEX, b->shape->is_double), size = 1;
  for (int i = b->shape->rank - 1; i >= 0; i--) {
    made.layout.strides[i] = (int64_t)size;
    b->failed |= __builtin_mul_overflow(size, i == d ? length : (uint64_t)length_of(b->shape, i), &size);
  }
  made.layout.distance = (int64_t)size;
  b->failed |= __builtin_mul_overflow(size, (uint64_t)b->shape->batch, &size);
  b->failed |= __builtin_mul_overflow(size, bytes, &size) || size >> 62;
  if (size > b->program->work_bytes[buffer]) b->program->work_bytes[buffer] = size;
  return made;
}

/* ---- one pass ---- */

static unsigned magic_of(unsigned divisor) { return divisor == 1 ? 0 : (unsigned)((1ull << 32) / divisor) + 1; }

static void add_loop(cufft_pass *pass, cufft_loop loop) {
  if (loop.count == 1) return;
  pass->loops[pass->loop_count++] = loop;
}

/* From one element of a loop to the next, in elements of the buffer. */
static int64_t in_apart(const cufft_pass *pass, const cufft_loop *loop) {
  return llabs(loop->in + loop->in_position * pass->in_stride);
}
static int64_t out_apart(const cufft_pass *pass, const cufft_loop *loop) {
  return llabs(loop->out + loop->out_position * pass->out_stride);
}

static void sort_loops(cufft_pass *pass) {
  for (unsigned i = 1; i < pass->loop_count; i++)
    for (unsigned k = i; k && in_apart(pass, &pass->loops[k]) < in_apart(pass, &pass->loops[k - 1]); k--) {
      cufft_loop swap = pass->loops[k];
      pass->loops[k] = pass->loops[k - 1];
      pass->loops[k - 1] = swap;
    }
}

static unsigned lines_of_block(const cufft_pass *pass, const radix_list *list, bool is_double) {
  uint64_t elements = is_double ? BLOCK_ELEMENTS / 2 : BLOCK_ELEMENTS, lines = elements / pass->length;
  if (lines < 4) lines = 2 * elements / pass->length < 4 ? 2 * elements / pass->length : 4;
  if (lines > BLOCK_LINES_MAX) lines = BLOCK_LINES_MAX;
  if (lines > pass->lines) lines = pass->lines;
  while (lines > 1 && threads_of((unsigned)lines * pass->length, list) > CUFFT_THREADS_MAX) lines--;
  return lines ? (unsigned)lines : 1;
}

static void lay_over_threads(cufft_step *step, bool is_double) {
  cufft_pass *pass = &step->pass;
  radix_list list = radices_of(pass->length);
  pass->stage_count = list.count;
  pass->lines_per_block = lines_of_block(pass, &list, is_double);
  pass->lines_magic = magic_of(pass->lines_per_block), pass->length_magic = magic_of(pass->length);
  bool several = pass->lines_per_block > 1 && pass->loop_count;
  bool in_by_lines = several && in_apart(pass, &pass->loops[0]) < llabs(pass->in_step * pass->in_stride);
  bool out_by_lines = several && out_apart(pass, &pass->loops[0]) < llabs(pass->out_step * pass->out_stride);
  bool by_lines = in_by_lines && out_by_lines;
  pass->position_pitch = by_lines ? pass->lines_per_block : 1;
  pass->line_pitch = by_lines ? 1 : pass->length + (several && pass->length % 2 == 0);
  unsigned before = 1;
  for (unsigned i = 0; i < pass->stage_count; i++) {
    unsigned radix = list.radices[i], butterflies = pass->length / radix;
    bool last = i + 1 == pass->stage_count, lines_first = i == 0 ? in_by_lines : last ? out_by_lines : by_lines;
    pass->stages[i] =
        (cufft_stage){radix,       before,           butterflies,          pass->length / (before * radix),
                      lines_first, magic_of(before), magic_of(butterflies)};
    before *= radix;
    step->mixed |= (radix & (radix - 1)) != 0 || radix == 1;
  }
  unsigned busy = threads_of(pass->lines_per_block * pass->length, &list);
  step->threads = (busy + WARP - 1) / WARP * WARP;
  unsigned data = pass->stage_count == 1 && !step->special ? 0 : pass->lines_per_block * (pass->length + 1);
  step->shared_bytes = pass->lines_per_block * CUFFT_PASS_BASES * 8 +
                       (data + (data >> CUFFT_PASS_PAD) + 1) * (unsigned)cufft_format_bytes(CUFFT_COMPLEX, is_double);
  step->blocks = (pass->lines + pass->lines_per_block - 1) / pass->lines_per_block;
}

static void add_turns(builder *b, cufft_step *step, uint64_t modulus) {
  unsigned bits = 0;
  while ((1ull << (2 * bits)) < modulus) bits++;
  step->pass.fine_bits = bits;
  step->fine = add_table(b, (cufft_table){.kind = CUFFT_TABLE_TURNS, .length = modulus, .count = 1ull << bits});
  step->coarse = add_table(
      b, (cufft_table){
             .kind = CUFFT_TABLE_COARSE, .length = modulus, .count = (modulus >> bits) + 1, .step = 1ull << bits});
}

/* ---- one dimension ---- */

enum { ALL_DIMENSIONS = -1 };

/* The loops over everything but dimension d. */
static void add_other_loops(const cufft_shape *shape, cufft_pass *pass, int d, const cufft_layout *in,
                            const cufft_layout *out) {
  for (int i = shape->rank - 1; i >= 0; i--)
    if (i != d)
      add_loop(pass,
               (cufft_loop){.count = (uint64_t)length_of(shape, i), .in = in->strides[i], .out = out->strides[i]});
  add_loop(pass, (cufft_loop){.count = (uint64_t)shape->batch, .in = in->distance, .out = out->distance});
}

static uint64_t product(const uint64_t *factors, unsigned from, unsigned to) {
  uint64_t all = 1;
  for (unsigned i = from; i < to; i++) all *= factors[i];
  return all;
}

/* Factor i of a dimension that is split: index k of each factor before it, n of itself, m of all after it lie at
 *
 *   before the last pass: k0 x (n1 x n2 ..) + k1 x (n2 ..) + .. + m      after it: k0 + n0 x k1 + n0 n1 x k2 .. */
static void place_factor(cufft_pass *pass, const uint64_t *factors, unsigned count, unsigned i) {
  uint64_t rest = product(factors, i + 1, count);
  bool last = i + 1 == count;
  pass->in_step = (int64_t)rest;
  pass->out_step = last ? (int64_t)product(factors, 0, i) : (int64_t)rest;
  add_loop(pass, (cufft_loop){.count = rest, .in_position = 1, .out_position = 1, .turn = 1});
  for (unsigned e = i; e-- > 0;) {
    int64_t before = (int64_t)product(factors, e + 1, count), after = last ? (int64_t)product(factors, 0, e) : before;
    add_loop(pass, (cufft_loop){.count = factors[e], .in_position = before, .out_position = after});
  }
}

static bool is_plain(const cufft_step *step, const ends *at, uint64_t length) {
  return step->pass.in_format == CUFFT_COMPLEX && step->pass.out_format == CUFFT_COMPLEX && !at->mirror &&
         at->before == CUFFT_NO_TABLE && at->after == CUFFT_NO_TABLE && at->swap_store == CUFFT_SWAP_NEVER &&
         at->in_limit >= length && at->out_limit >= length;
}

static const ends no_ends = {UINT64_MAX, UINT64_MAX, 0, CUFFT_NO_TABLE, CUFFT_NO_TABLE, 0, 0, 0};

static void add_pass(builder *b, int d, const uint64_t *factors, unsigned count, unsigned i, view from, view to,
                     ends at) {
  cufft_step step = {.from = from.buffer, .to = to.buffer, .fine = CUFFT_NO_TABLE, .coarse = CUFFT_NO_TABLE};
  cufft_pass *pass = &step.pass;
  pass->length = (unsigned)factors[i];
  pass->in_format = from.layout.format, pass->out_format = to.layout.format;
  if (d != ALL_DIMENSIONS) pass->in_stride = from.layout.strides[d], pass->out_stride = to.layout.strides[d];
  pass->in_limit = at.in_limit, pass->out_limit = at.out_limit, pass->mirror = at.mirror;
  pass->swap_load = at.swap_load, pass->swap_store = at.swap_store, pass->swap_after = at.swap_after;
  step.before = at.before, step.after = at.after;
  place_factor(pass, factors, count, i);
  add_other_loops(b->shape, pass, d, &from.layout, &to.layout);
  sort_loops(pass);
  pass->lines = 1;
  for (unsigned k = 0; k < pass->loop_count; k++) pass->lines *= pass->loops[k].count;
  if (i + 1 < count) add_turns(b, &step, product(factors, i, count));
  step.turns = add_table(b, (cufft_table){.kind = CUFFT_TABLE_TURNS, .length = pass->length, .count = pass->length});
  step.special = !is_plain(&step, &at, product(factors, 0, count));
  lay_over_threads(&step, b->shape->is_double);
  FF_PUSH(&b->program->steps, step);
}

/* A transform of a smooth length; between its passes the data is in `between`. */
static void add_smooth(builder *b, int d, uint64_t n, view from, view to, cufft_buffer between, ends at) {
  uint64_t factors[PASSES_MAX];
  unsigned half = b->shape->is_double ? 2 : 1;
  bool apart = from.layout.strides[d] != 1 || to.layout.strides[d] != 1;
  unsigned count = split(n, (apart ? LINE_MAX_APART : LINE_MAX) / half, LINE_MAX_APART / half, factors);
  if (!count) b->failed = true;
  if (count <= 1) {
    if (count) add_pass(b, d, factors, 1, 0, from, to, at);
    return;
  }
  view middle = from.buffer == between ? from : work_view(b, between, d, n);
  for (unsigned i = 0; i < count; i++) {
    ends here = no_ends;
    if (i == 0) {
      here.in_limit = at.in_limit, here.mirror = at.mirror, here.before = at.before;
      here.swap_load = at.swap_load;
    }
    if (i + 1 == count) {
      here.out_limit = at.out_limit, here.after = at.after;
      here.swap_store = at.swap_store, here.swap_after = at.swap_after;
    }
    add_pass(b, d, factors, count, i, i ? middle : from, i + 1 == count ? to : middle, here);
  }
}

/* 2 j k = j^2 + k^2 - (k - j)^2: the transform is a convolution with a chirp between two products with it. The second
 * transform is the inverse of the first, so parts are swapped around it. */
static void add_bluestein(builder *b, int d, uint64_t n, view from, view to, ends at) {
  uint64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  int chirp = add_table(b, (cufft_table){.kind = CUFFT_TABLE_CHIRP, .length = n, .count = n});
  int spectrum = add_table(b, (cufft_table){.kind = CUFFT_TABLE_SPECTRUM, .length = n, .count = m});
  view middle = work_view(b, CUFFT_WORK_C, d, m);
  ends first = at, second = at;
  first.in_limit = n, first.out_limit = UINT64_MAX;
  first.before = chirp, first.after = spectrum;
  first.swap_store = CUFFT_SWAP_NEVER, first.swap_after = CUFFT_SWAP_ALWAYS;
  second.in_limit = UINT64_MAX, second.mirror = 0, second.swap_load = CUFFT_SWAP_NEVER;
  second.swap_store = CUFFT_SWAP_ALWAYS, second.after = chirp;
  add_smooth(b, d, m, from, middle, CUFFT_WORK_B, first);
  add_smooth(b, d, m, middle, to, CUFFT_WORK_C, second);
}

static void add_dimension(builder *b, int d, view from, view to) {
  uint64_t n = (uint64_t)b->shape->lengths[d];
  bool real = b->shape->kind != CUFFT_KIND_C2C && d == b->shape->rank - 1;
  ends at = no_ends;
  at.swap_load = at.swap_after = CUFFT_SWAP_INVERSE;
  at.out_limit = real && b->shape->kind == CUFFT_KIND_R2C ? n / 2 + 1 : n;
  at.mirror = real && b->shape->kind == CUFFT_KIND_C2R ? n : 0;
  if (is_smooth(n) && !(b->shape->bluestein_only && n > 1)) add_smooth(b, d, n, from, to, CUFFT_WORK_B, at);
  else if (n >> 60) b->failed = true;
  else add_bluestein(b, d, n, from, to, at);
}

/* ---- all dimensions ---- */

/* The array as it is, from one layout to another: lines of one element, in all dimensions. */
static void add_copy(builder *b, view from, view to) {
  const uint64_t one = 1;
  add_pass(b, ALL_DIMENSIONS, &one, 1, 0, from, to, no_ends);
}

/* Whether each line of the result lies where its source lay, so that lines may be transformed in place. */
static bool same_lines(const cufft_shape *shape) {
  int64_t in = (int64_t)cufft_format_bytes(shape->in.format, shape->is_double);
  int64_t out = (int64_t)cufft_format_bytes(shape->out.format, shape->is_double);
  bool same = shape->batch == 1 || shape->in.distance * in == shape->out.distance * out;
  for (int i = 0; i < shape->rank; i++) {
    bool element = i == shape->rank - 1; /* within the lines of the last dimension */
    if (element && shape->kind != CUFFT_KIND_C2C) same &= shape->in.strides[i] == 1 && shape->out.strides[i] == 1;
    else if (shape->lengths[i] > 1) same &= shape->in.strides[i] * in == shape->out.strides[i] * out;
  }
  return same;
}

bool cufft_program_make(const cufft_shape *shape, bool in_place, cufft_program *program, cufft_tables *tables) {
  builder b = {.shape = shape, .program = program, .tables = tables};
  view from = {CUFFT_IN, shape->in}, to = {CUFFT_OUT, shape->out};
  bool back = shape->kind == CUFFT_KIND_C2R, apart = in_place && !same_lines(shape);
  *program = (cufft_program){0};
  /* A half spectrum of several dimensions, whose result is real, has no room in the result; it may not change in its
   * place either. */
  bool aside = apart || (back && shape->rank > 1);
  view middle = aside ? work_view(&b, CUFFT_WORK_A, ALL_DIMENSIONS, 0) : to;
  if (apart && shape->rank == 1 && back) {
    add_copy(&b, from, middle);
    from = middle;
  }
  for (int i = 0; i < shape->rank; i++) {
    int d = back ? i : shape->rank - 1 - i;
    bool direct = i + 1 == shape->rank && (i || !apart || back);
    add_dimension(&b, d, i ? middle : from, direct ? to : middle);
  }
  if (apart && shape->rank == 1 && !back) add_copy(&b, middle, to);
  if (b.failed) cufft_program_free(program);
  return !b.failed;
}

void cufft_program_free(cufft_program *program) {
  free(program->steps.items);
  *program = (cufft_program){0};
}
