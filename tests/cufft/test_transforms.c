/* SPDX-License-Identifier: Apache-2.0 */
/* Results of the stand-in for cuFFT against the definition: all lengths up to 130, long ones by samples, several
 * dimensions, layouts, in place and not, all types. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"

enum { RANKS = 3, SAMPLES = 16 };

/* Relative error of a transform: the rounding of each of some log2(n) sums. */
static double bound(bool is_double, int64_t elements) {
  return (is_double ? 2.2e-16 : 1.2e-7) * (1.5 + 0.25 * log2((double)elements));
}

typedef struct layout {
  int64_t embed[RANKS], stride, distance;
} layout;

typedef struct trial {
  int rank;
  int64_t lengths[RANKS], batch;
  cufftType type;
  bool in_place, packed; /* packed: no layouts */
  int direction;
  layout in, out;
} trial;

static bool is_double(cufftType type) { return type & 0x40; }
static bool real_in(cufftType type) { return (type & 7) == 2; }
static bool real_out(cufftType type) { return (type & 7) == 4; }
static size_t scalar_size(const trial *t) { return is_double(t->type) ? sizeof(double) : sizeof(float); }

/* Lengths of the array as it lies in memory on one side. */
static void lengths_of(const trial *t, bool out, int64_t *lengths) {
  memcpy(lengths, t->lengths, sizeof t->lengths);
  bool real = out ? real_out(t->type) : real_in(t->type), any = real_in(t->type) || real_out(t->type);
  if (any && !real) lengths[t->rank - 1] = lengths[t->rank - 1] / 2 + 1;
}

static void pack(trial *t) {
  int64_t in[RANKS], out[RANKS];
  lengths_of(t, false, in);
  lengths_of(t, true, out);
  int last = t->rank - 1;
  if (t->in_place && real_in(t->type)) in[last] = 2 * out[last];
  if (t->in_place && real_out(t->type)) out[last] = 2 * in[last];
  t->in.stride = t->out.stride = t->in.distance = t->out.distance = 1;
  for (int i = 0; i < t->rank; i++) {
    t->in.embed[i] = in[i], t->out.embed[i] = out[i];
    t->in.distance *= in[i], t->out.distance *= out[i];
  }
}

/* The element with that number in the contiguous array of those lengths. */
static int64_t place_of(const trial *t, const layout *l, const int64_t *lengths, int64_t element) {
  int64_t at = 0, stride = l->stride;
  for (int i = t->rank - 1; i >= 0; i--) {
    at += element % lengths[i] * stride;
    element /= lengths[i];
    stride *= l->embed[i];
  }
  return at + element * l->distance;
}

static int64_t count_of(const trial *t, const int64_t *lengths) {
  int64_t all = 1;
  for (int i = 0; i < t->rank; i++) all *= lengths[i];
  return all;
}

static int64_t room_of(const trial *t, bool out) {
  int64_t lengths[RANKS];
  lengths_of(t, out, lengths);
  return place_of(t, out ? &t->out : &t->in, lengths, t->batch * count_of(t, lengths) - 1) + 1;
}

static double get(const trial *t, const void *memory, int64_t at) {
  return is_double(t->type) ? ((const double *)memory)[at] : ((const float *)memory)[at];
}
static void put(const trial *t, void *memory, int64_t at, double value) {
  if (is_double(t->type)) ((double *)memory)[at] = value;
  else ((float *)memory)[at] = (float)value;
}

static void put_array(const trial *t, void *memory, const number *values) {
  int64_t lengths[RANKS], count;
  lengths_of(t, false, lengths);
  count = t->batch * count_of(t, lengths);
  for (int64_t i = 0; i < count; i++) {
    int64_t at = place_of(t, &t->in, lengths, i);
    if (real_in(t->type)) put(t, memory, at, creal(values[i]));
    else put(t, memory, 2 * at, creal(values[i])), put(t, memory, 2 * at + 1, cimag(values[i]));
  }
}

static void get_array(const trial *t, const void *memory, number *values) {
  int64_t lengths[RANKS], count;
  lengths_of(t, true, lengths);
  count = t->batch * count_of(t, lengths);
  for (int64_t i = 0; i < count; i++) {
    int64_t at = place_of(t, &t->out, lengths, i);
    values[i] = real_out(t->type) ? get(t, memory, at) : number_of(get(t, memory, 2 * at), get(t, memory, 2 * at + 1));
  }
}

/* The half of each spectrum that is kept. */
static void halve(const trial *t, number *to, const number *from) {
  int64_t n = t->lengths[t->rank - 1], half = n / 2 + 1, rows = t->batch * count_of(t, t->lengths) / n;
  for (int64_t row = 0; row < rows; row++)
    for (int64_t k = 0; k < half; k++) to[row * half + k] = from[row * n + k];
}

/* Input and result, contiguous: of a half spectrum that of a real signal. */
static void make_arrays(const trial *t, number *in, number *right) {
  int64_t count = count_of(t, t->lengths);
  number *full = calloc((size_t)(t->batch * count), sizeof *full);
  bool real = real_in(t->type) || real_out(t->type);
  for (int64_t i = 0; i < t->batch * count; i++) full[i] = number_of(next_random(), real ? 0 : next_random());
  if (!is_double(t->type))
    for (int64_t i = 0; i < t->batch * count; i++) full[i] = (float complex)full[i];
  memcpy(real_out(t->type) ? right : in, full, (size_t)(t->batch * count) * sizeof *full);
  for (int64_t b = 0; b < t->batch; b++) transform(full + b * count, t->rank, t->lengths, real ? -1 : t->direction);
  if (real_out(t->type)) {
    halve(t, in, full);
    for (int64_t i = 0; i < t->batch * count; i++) right[i] *= (double)count; /* it comes back unnormalised */
  } else if (real) halve(t, right, full);
  else memcpy(right, full, (size_t)(t->batch * count) * sizeof *full);
  free(full);
}

static void execute(const trial *t, cufftHandle plan, void *in, void *out) {
  cufftResult result = CUFFT_INVALID_TYPE;
  switch (t->type) {
  case CUFFT_C2C: result = cufftExecC2C(plan, in, out, t->direction); break;
  case CUFFT_R2C: result = cufftExecR2C(plan, in, out); break;
  case CUFFT_C2R: result = cufftExecC2R(plan, in, out); break;
  case CUFFT_Z2Z: result = cufftExecZ2Z(plan, in, out, t->direction); break;
  case CUFFT_D2Z: result = cufftExecD2Z(plan, in, out); break;
  case CUFFT_Z2D: result = cufftExecZ2D(plan, in, out); break;
  }
  assert_int_equal(result, CUFFT_SUCCESS);
}

static cufftHandle plan_of(const trial *t) {
  cufftHandle plan;
  int n[RANKS], in[RANKS], out[RANKS];
  for (int i = 0; i < t->rank; i++)
    n[i] = (int)t->lengths[i], in[i] = (int)t->in.embed[i], out[i] = (int)t->out.embed[i];
  assert_int_equal(cufftPlanMany(&plan, t->rank, n, t->packed ? NULL : in, (int)t->in.stride, (int)t->in.distance,
                                 t->packed ? NULL : out, (int)t->out.stride, (int)t->out.distance, t->type,
                                 (int)t->batch),
                   CUFFT_SUCCESS);
  return plan;
}

static size_t bytes_of(const trial *t, bool out) {
  bool real = out ? real_out(t->type) : real_in(t->type);
  return (size_t)room_of(t, out) * scalar_size(t) * (real ? 1 : 2);
}

/* Bytes that the result does not cover stay as they are: the same trial's result over two fillings has the same gaps as
 * those. */
static void check_gaps(const trial *t, const unsigned char *memory, size_t bytes, unsigned char filling) {
  unsigned char *covered = calloc(bytes, 1);
  int64_t lengths[RANKS];
  size_t element = scalar_size(t) * (real_out(t->type) ? 1 : 2);
  lengths_of(t, true, lengths);
  for (int64_t i = 0; i < t->batch * count_of(t, lengths); i++)
    memset(covered + (size_t)place_of(t, &t->out, lengths, i) * element, 1, element);
  for (size_t i = 0; i < bytes; i++)
    if (!covered[i]) assert_int_equal(memory[i], filling);
  free(covered);
}

static void say(const trial *t, double error) {
  fprintf(stderr, "type %x, %lld x %lld x %lld, rank %d, batch %lld, in place %d, direction %d: error %g\n",
          (unsigned)t->type, (long long)t->lengths[0], (long long)t->lengths[1], (long long)t->lengths[2], t->rank,
          (long long)t->batch, t->in_place, t->direction, error);
}

static void run(trial *t) {
  size_t in_bytes = bytes_of(t, false), out_bytes = bytes_of(t, true),
         most = in_bytes > out_bytes ? in_bytes : out_bytes;
  int64_t count = t->batch * count_of(t, t->lengths);
  number *in = calloc((size_t)(2 * count), sizeof *in), *right = calloc((size_t)(2 * count), sizeof *right);
  number *ours = calloc((size_t)(2 * count), sizeof *ours);
  unsigned char *host = malloc(most), *after = malloc(most);
  void *from, *to;
  int64_t lengths[RANKS];
  make_arrays(t, in, right);
  assert_int_equal(cudaMalloc(&from, t->in_place ? most : in_bytes), 0);
  assert_int_equal(cudaMalloc(&to, most), 0);
  memset(host, 0x5a, most);
  if (!t->in_place) assert_int_equal(cudaMemcpy(to, host, out_bytes, 1), 0);
  put_array(t, host, in);
  assert_int_equal(cudaMemcpy(from, host, in_bytes, 1), 0);
  cufftHandle plan = plan_of(t);
  execute(t, plan, from, t->in_place ? from : to);
  assert_int_equal(cudaMemcpy(after, t->in_place ? from : to, out_bytes, 2), 0);
  get_array(t, after, ours);
  lengths_of(t, true, lengths);
  double error = error_of(ours, right, (size_t)(t->batch * count_of(t, lengths)));
  if (!(error <= bound(is_double(t->type), count_of(t, t->lengths)))) say(t, error);
  assert_true(error <= bound(is_double(t->type), count_of(t, t->lengths)));
  if (!t->in_place) {
    check_gaps(t, after, out_bytes, 0x5a);
    assert_int_equal(cudaMemcpy(after, from, in_bytes, 2), 0);
    assert_memory_equal(after, host, in_bytes);
  }
  assert_int_equal(cufftDestroy(plan), CUFFT_SUCCESS);
  cudaFree(from), cudaFree(to);
  free(in), free(right), free(ours), free(host), free(after);
}

static const cufftType all_types[] = {CUFFT_C2C, CUFFT_R2C, CUFFT_C2R, CUFFT_Z2Z, CUFFT_D2Z, CUFFT_Z2D};

/* One transform in all ways: types, directions, in place. */
static void run_all(int rank, int64_t nx, int64_t ny, int64_t nz, int64_t batch) {
  for (size_t i = 0; i < sizeof all_types / sizeof *all_types; i++)
    for (int in_place = 0; in_place < 2; in_place++) {
      trial t = {rank,        {nx, ny, nz}, batch, all_types[i], in_place, true, i % 2 ? CUFFT_INVERSE : CUFFT_FORWARD,
                 {{0}, 0, 0}, {{0}, 0, 0}};
      for (int back = 0; back < 2; back++) {
        pack(&t);
        run(&t);
        if (real_in(t.type) || real_out(t.type)) break;
        t.direction = -t.direction;
      }
    }
}

static void test_lengths(void **s) {
  for (int64_t n = 1; n <= 130; n++) run_all(1, n, 1, 1, 1 + n % 4);
}

static void test_dimensions(void **s) {
  static const int64_t sizes[][3] = {{1, 1, 0},   {2, 3, 0},   {4, 4, 0},   {7, 1, 0},   {1, 9, 0},
                                     {16, 10, 0}, {11, 13, 0}, {32, 33, 0}, {64, 6, 0},  {17, 40, 0},
                                     {2, 3, 4},   {5, 1, 7},   {8, 8, 8},   {3, 11, 10}, {16, 4, 6},
                                     {1, 1, 5},   {6, 17, 2},  {2, 2, 2},   {9, 7, 1},   {10, 12, 15}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    run_all(sizes[i][2] ? 3 : 2, sizes[i][0], sizes[i][1], sizes[i][2] ? sizes[i][2] : 1, 1 + (int64_t)i % 3);
}

/* Dimensions that take several passes, alone and among others. */
static void test_long_dimensions(void **s) {
  run_all(2, 1100, 3, 1, 1);
  run_all(2, 3, 1100, 1, 2);
  run_all(2, 2, 4500, 1, 1);
  run_all(3, 2, 1200, 3, 1);
  run_all(1, 4802, 1, 1, 2);
  run_all(2, 1031, 2, 1, 1); /* a prime */
}

static void random_layout(layout *l, int rank, const int64_t *lengths, int64_t batch) {
  int64_t size = l->stride = 1 + next_below(3);
  bool between = next_below(4) == 0; /* the transforms of the batch alternate */
  if (between) size = l->stride *= batch;
  for (int i = 0; i < rank; i++) l->embed[i] = lengths[i] + next_below(3);
  for (int i = 0; i < rank; i++) size *= l->embed[i];
  l->distance = between ? 1 : size + next_below(5);
}

static void test_layouts(void **s) {
  for (int i = 0; i < 150; i++) {
    trial t = {.rank = 1 + (int)next_below(3), .batch = 1 + next_below(4), .type = all_types[next_below(6)]};
    int64_t in[RANKS], out[RANKS];
    t.direction = next_below(2) ? CUFFT_FORWARD : CUFFT_INVERSE;
    for (int d = 0; d < RANKS; d++) t.lengths[d] = d < t.rank ? 1 + next_below(t.rank == 1 ? 300 : 18) : 1;
    lengths_of(&t, false, in);
    lengths_of(&t, true, out);
    random_layout(&t.in, t.rank, in, t.batch);
    random_layout(&t.out, t.rank, out, t.batch);
    bool same = (t.type & 7) == 1 && next_below(2);
    if (same) t.out = t.in;
    t.in_place = same && next_below(2);
    run(&t);
  }
}

/* In place, and the result lies otherwise than the input: rows that become columns. */
static void test_in_place_turned(void **s) {
  static const cufftType types[] = {CUFFT_C2C, CUFFT_Z2Z};
  for (int i = 0; i < 2; i++) {
    trial t = {1, {24, 1, 1}, 10, types[i], true, false, CUFFT_FORWARD, {{24}, 1, 24}, {{24}, 10, 1}};
    run(&t);
    trial plane = {2, {12, 10, 1}, 3, types[i], true, false, CUFFT_INVERSE, {{12, 10}, 1, 120}, {{12, 10}, 3, 1}};
    run(&plane);
  }
  /* results overlap the next input */
  trial real = {1, {16, 1, 1}, 4, CUFFT_R2C, true, false, CUFFT_FORWARD, {{16}, 1, 16}, {{9}, 1, 9}};
  run(&real);
  trial back = {1, {16, 1, 1}, 4, CUFFT_Z2D, true, false, CUFFT_INVERSE, {{9}, 1, 9}, {{16}, 1, 16}};
  run(&back);
}

/* Lengths that the definition would take too long for: samples of the result. */
static void run_long(int64_t n, bool in_double, int direction) {
  number *in = calloc((size_t)n, sizeof *in), ours[SAMPLES], right[SAMPLES];
  size_t element = in_double ? sizeof(double complex) : sizeof(float complex);
  void *host = malloc((size_t)n * element), *from, *to;
  cufftHandle plan;
  for (int64_t i = 0; i < n; i++) {
    in[i] = number_of((float)next_random(), (float)next_random());
    if (in_double) ((double complex *)host)[i] = in[i];
    else ((float complex *)host)[i] = (float complex)in[i];
  }
  assert_int_equal(cudaMalloc(&from, (size_t)n * element), 0);
  assert_int_equal(cudaMalloc(&to, (size_t)n * element), 0);
  assert_int_equal(cudaMemcpy(from, host, (size_t)n * element, 1), 0);
  assert_int_equal(cufftPlan1d(&plan, (int)n, in_double ? CUFFT_Z2Z : CUFFT_C2C, 1), CUFFT_SUCCESS);
  assert_int_equal(in_double ? cufftExecZ2Z(plan, from, to, direction) : cufftExecC2C(plan, from, to, direction),
                   CUFFT_SUCCESS);
  assert_int_equal(cudaMemcpy(host, to, (size_t)n * element, 2), 0);
  for (int i = 0; i < SAMPLES; i++) {
    int64_t k = i < 2 ? i * (n - 1) : (int64_t)next_below((unsigned)n);
    ours[i] = in_double ? ((double complex *)host)[k] : (double complex)((float complex *)host)[k];
    right[i] = transformed(in, n, k, direction);
  }
  double error = error_of(ours, right, SAMPLES);
  if (!(error <= 1.5 * bound(in_double, n)))
    fprintf(stderr, "%lld, double %d: error %g\n", (long long)n, in_double, error);
  assert_true(error <= 1.5 * bound(in_double, n)); /* of few samples */
  cufftDestroy(plan);
  cudaFree(from), cudaFree(to);
  free(in), free(host);
}

static void test_long(void **s) {
  static const int64_t lengths[] = {1024,  2048,  4096,  8192, 16384, 32768, 65536, 729,   2187,
                                    6561,  19683, 625,   3125, 15625, 343,   2401,  16807, 1000,
                                    10000, 30030, 44100, 2310, 257,   997,   4099,  8191,  12289};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    run_long(lengths[i], false, i % 2 ? CUFFT_FORWARD : CUFFT_INVERSE);
    run_long(lengths[i], true, i % 2 ? CUFFT_INVERSE : CUFFT_FORWARD);
  }
}

/* Three passes, and a prime whose convolution takes two passes each way. */
static void test_very_long(void **s) {
  run_long(1 << 19, true, CUFFT_FORWARD);
  run_long(1 << 21, false, CUFFT_FORWARD);
  run_long(65537, false, CUFFT_INVERSE);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths),         cmocka_unit_test(test_dimensions),
                                     cmocka_unit_test(test_long_dimensions), cmocka_unit_test(test_layouts),
                                     cmocka_unit_test(test_in_place_turned), cmocka_unit_test(test_long),
                                     cmocka_unit_test(test_very_long)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
