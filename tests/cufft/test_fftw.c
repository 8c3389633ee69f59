/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in for cuFFT next to FFTW, whose advanced interface describes arrays with the same numbers: both get the
 * same bytes, FFTW in double precision. Every length up to 700, powers of all radices, large primes, planes, boxes,
 * layouts with gaps, and types of 16 bits.
 *
 *   what lies between the elements of the result is as it was; the input is, too, where the result lies elsewhere */
#include <fftw3.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"

enum { RANKS = 3 };

/* Types of numbers: bits after the point, the least exponent, bytes of a scalar. */
typedef struct scalar_type {
  const char *name;
  cudaDataType real_type, complex_type;
  int digits, least;
  size_t bytes;
} scalar_type;

static const scalar_type scalar_types[] = {{"float", CUDA_R_32F, CUDA_C_32F, 23, -126, 4},
                                           {"double", CUDA_R_64F, CUDA_C_64F, 52, -1022, 8},
                                           {"half", CUDA_R_16F, CUDA_C_16F, 10, -14, 2},
                                           {"bfloat16", CUDA_R_16BF, CUDA_C_16BF, 7, -126, 2}};
enum { FLOAT, DOUBLE, HALF, BFLOAT };

typedef enum domain { C2C, R2C, C2R, KINDS } domain;

/* One side of a transform, as both libraries take it. */
typedef struct side {
  int embed[RANKS], stride, distance;
  int lengths[RANKS]; /* of what lies there: half of the last, and one, of a half spectrum */
  bool real;
} side;

typedef struct trial {
  const scalar_type *type;
  domain kind;
  int rank, lengths[RANKS], batch, direction;
  bool in_place;
  side in, out;
} trial;

static int64_t count_of(const trial *t, const int *lengths) {
  int64_t count = 1;
  for (int i = 0; i < t->rank; i++) count *= lengths[i];
  return count;
}

/* Where the element with that number of a side lies, in elements. */
static int64_t place_of(const trial *t, const side *s, int64_t element) {
  int64_t at = 0, stride = s->stride;
  for (int i = t->rank - 1; i >= 0; i--) {
    at += element % s->lengths[i] * stride;
    element /= s->lengths[i];
    stride *= s->embed[i];
  }
  return at + element * s->distance;
}

/* Scalars from the first to behind the last of a side. */
static size_t room_of(const trial *t, const side *s) {
  int64_t most = 0, count = t->batch * count_of(t, s->lengths);
  for (int64_t i = 0; i < count; i++) {
    int64_t at = place_of(t, s, i);
    if (at > most) most = at;
  }
  return (size_t)(most + 1) * (s->real ? 1 : 2);
}

static void set_lengths(trial *t) {
  memcpy(t->in.lengths, t->lengths, sizeof t->lengths);
  memcpy(t->out.lengths, t->lengths, sizeof t->lengths);
  t->in.real = t->kind == R2C, t->out.real = t->kind == C2R;
  int half = t->lengths[t->rank - 1] / 2 + 1;
  if (t->kind == R2C) t->out.lengths[t->rank - 1] = half;
  if (t->kind == C2R) t->in.lengths[t->rank - 1] = half;
}

/* No gaps; but where a row of reals shares its memory with a half spectrum, it is as long. */
static void pack(const trial *t, side *s) {
  memcpy(s->embed, s->lengths, sizeof s->embed);
  if (s->real && t->in_place) s->embed[t->rank - 1] = 2 * (t->lengths[t->rank - 1] / 2 + 1);
  s->stride = 1;
  s->distance = (int)count_of(t, s->embed);
}

static void spread(const trial *t, side *s) {
  int size = s->stride = 1 + (int)next_below(3);
  bool between = next_below(4) == 0; /* the transforms of the batch alternate */
  if (between) size = s->stride *= t->batch;
  for (int i = 0; i < t->rank; i++) size *= s->embed[i] = s->lengths[i] + (int)next_below(3);
  s->distance = between ? 1 : size + (int)next_below(5);
}

/* ---- numbers ---- */

/* A number of the type with those bits after the point, to the nearest, as its bits: sign, exponent, fraction. */
static uint16_t short_bits(const scalar_type *type, double value) {
  if (value == 0) return 0;
  int exponent = ilogb(value);
  if (exponent < type->least) exponent = type->least;
  double whole = nearbyint(ldexp(fabs(value), type->digits - exponent));
  int bits = ((exponent - type->least) << type->digits) + (int)whole;
  return (uint16_t)(bits | (value < 0 ? 0x8000 : 0));
}
static double short_value(const scalar_type *type, uint16_t bits) {
  int exponent = (bits & 0x7fff) >> type->digits, fraction = bits & ((1 << type->digits) - 1);
  if (exponent) fraction += 1 << type->digits, exponent--;
  double size = ldexp(fraction, exponent + type->least - type->digits);
  return bits & 0x8000 ? -size : size;
}

static void narrow(const scalar_type *type, void *to, const double *from, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (type->bytes == 8) ((double *)to)[i] = from[i];
    else if (type->bytes == 4) ((float *)to)[i] = (float)from[i];
    else ((uint16_t *)to)[i] = short_bits(type, from[i]);
  }
}
static void widen(const scalar_type *type, double *to, const void *from, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (type->bytes == 8) to[i] = ((const double *)from)[i];
    else if (type->bytes == 4) to[i] = (double)((const float *)from)[i];
    else to[i] = short_value(type, ((const uint16_t *)from)[i]);
  }
}

/* Relative error (L2) of a transform: a rounding for each of some log2(n) sums; of 16 bits one for each dimension. */
static double bound(const trial *t) {
  double unit = ldexp(1, -1 - t->type->digits);
  if (t->type->bytes == 2) return unit * t->rank;
  return 2 * unit * (1.5 + 0.25 * log2((double)count_of(t, t->lengths)));
}

/* ---- both libraries ---- */

#define SIDE(s) (s)->embed, (s)->stride, (s)->distance

static fftw_plan fftw_plan_of(const trial *t, double *in, double *out) {
  const side *i = &t->in, *o = &t->out;
  if (t->kind == R2C)
    return fftw_plan_many_dft_r2c(t->rank, t->lengths, t->batch, in, SIDE(i), (fftw_complex *)out, SIDE(o),
                                  FFTW_ESTIMATE);
  if (t->kind == C2R)
    return fftw_plan_many_dft_c2r(t->rank, t->lengths, t->batch, (fftw_complex *)in, SIDE(i), out, SIDE(o),
                                  FFTW_ESTIMATE);
  return fftw_plan_many_dft(t->rank, t->lengths, t->batch, (fftw_complex *)in, SIDE(i), (fftw_complex *)out, SIDE(o),
                            t->direction, FFTW_ESTIMATE);
}

static void run_fftw(const trial *t, double *in, double *out) {
  fftw_plan plan = fftw_plan_of(t, in, out);
  assert_non_null(plan);
  fftw_execute(plan);
  fftw_destroy_plan(plan);
}

static void run_cufft(const trial *t, void *in, void *out) {
  long long lengths[RANKS], embeds[2][RANKS];
  const side *sides[2] = {&t->in, &t->out};
  cufftHandle plan;
  size_t bytes;
  for (int i = 0; i < t->rank; i++) {
    lengths[i] = t->lengths[i];
    for (int k = 0; k < 2; k++) embeds[k][i] = sides[k]->embed[i];
  }
  cudaDataType in_type = t->in.real ? t->type->real_type : t->type->complex_type,
               out_type = t->out.real ? t->type->real_type : t->type->complex_type;
  assert_int_equal(cufftCreate(&plan), CUFFT_SUCCESS);
  assert_int_equal(cufftXtMakePlanMany(plan, t->rank, lengths, embeds[0], t->in.stride, t->in.distance, in_type,
                                       embeds[1], t->out.stride, t->out.distance, out_type, t->batch, &bytes,
                                       t->type->complex_type),
                   CUFFT_SUCCESS);
  assert_int_equal(cufftXtExec(plan, in, out, t->direction), CUFFT_SUCCESS);
  assert_int_equal(cudaDeviceSynchronize(), 0);
  assert_int_equal(cufftDestroy(plan), CUFFT_SUCCESS);
}

/* Random scalars in all of `in`, gaps too; a half spectrum is that of real numbers. */
static void fill(const trial *t, double *in, size_t count) {
  for (size_t i = 0; i < count; i++) in[i] = next_random();
  if (t->kind == C2R) {
    trial back = *t;
    back.kind = R2C, back.in_place = false, back.out = t->in;
    memcpy(back.in.lengths, t->lengths, sizeof t->lengths);
    back.in.real = true;
    pack(&back, &back.in);
    size_t signal = (size_t)t->batch * (size_t)count_of(t, t->lengths);
    double *numbers = fftw_alloc_real(signal);
    for (size_t i = 0; i < signal; i++) numbers[i] = next_random();
    run_fftw(&back, numbers, in);
    fftw_free(numbers);
  }
  char *narrowed = malloc(count * t->type->bytes);
  narrow(t->type, narrowed, in, count);
  widen(t->type, in, narrowed, count);
  free(narrowed);
}

/* ---- comparing ---- */

/* The elements by their error, all else exactly. */
static double compare(const trial *t, const double *ours, const double *right, size_t room) {
  size_t parts = t->out.real ? 1 : 2;
  bool *element = calloc(room, sizeof *element);
  int64_t count = t->batch * count_of(t, t->out.lengths);
  double wrong = 0, whole = 0;
  for (int64_t i = 0; i < count; i++)
    for (size_t k = 0; k < parts; k++) element[(size_t)place_of(t, &t->out, i) * parts + k] = true;
  for (size_t i = 0; i < room; i++) {
    if (!element[i] && !t->in_place) assert_true(ours[i] == right[i]);
    if (!element[i]) continue;
    wrong += (ours[i] - right[i]) * (ours[i] - right[i]);
    whole += right[i] * right[i];
  }
  free(element);
  return wrong == 0 ? 0 : sqrt(wrong / whole);
}

static void say(const trial *t, double error) {
  static const char *kinds[] = {"C2C", "R2C", "C2R"};
  fprintf(stderr, "%s of %s, %d x %d x %d (rank %d), batch %d, in place %d, direction %d: error %g, may be %g\n",
          kinds[t->kind], t->type->name, t->lengths[0], t->lengths[1], t->lengths[2], t->rank, t->batch, t->in_place,
          t->direction, error, bound(t));
}

/* A side's scalars on the host, twice, and on the device. */
typedef struct array {
  double *wide;
  void *narrow, *device;
  size_t count, bytes;
} array;

static array array_make(const trial *t, size_t count) {
  array a = {fftw_alloc_real(count), malloc(count * t->type->bytes), NULL, count, count * t->type->bytes};
  assert_int_equal(cudaMalloc(&a.device, a.bytes), 0);
  return a;
}
static void array_free(array *a) {
  fftw_free(a->wide);
  free(a->narrow);
  cudaFree(a->device);
}
static void array_upload(const trial *t, array *a) {
  narrow(t->type, a->narrow, a->wide, a->count);
  assert_int_equal(cudaMemcpy(a->device, a->narrow, a->bytes, 1), 0);
}

static void run(trial *t) {
  size_t in_room = room_of(t, &t->in), out_room = room_of(t, &t->out), most = in_room > out_room ? in_room : out_room;
  array in = array_make(t, t->in_place ? most : in_room), out = array_make(t, most);
  fill(t, in.wide, in.count);
  for (size_t i = 0; i < out.count; i++) out.wide[i] = 1;
  array_upload(t, &in);
  array_upload(t, &out);
  run_cufft(t, in.device, t->in_place ? in.device : out.device);
  double *ours = fftw_alloc_real(most);
  char *bytes = malloc(most * t->type->bytes);
  assert_int_equal(cudaMemcpy(bytes, t->in_place ? in.device : out.device, out_room * t->type->bytes, 2), 0);
  widen(t->type, ours, bytes, out_room);
  if (!t->in_place) {
    assert_int_equal(cudaMemcpy(bytes, in.device, in.bytes, 2), 0);
    assert_memory_equal(bytes, in.narrow, in.bytes);
  }
  run_fftw(t, in.wide, t->in_place ? in.wide : out.wide);
  double error = compare(t, ours, t->in_place ? in.wide : out.wide, out_room);
  if (!(error <= bound(t))) say(t, error);
  assert_true(error <= bound(t));
  fftw_free(ours);
  free(bytes);
  array_free(&in);
  array_free(&out);
}

static trial trial_of(int type, domain kind, int rank, const int *lengths, int batch) {
  trial t = {.type = &scalar_types[type], .kind = kind, .rank = rank, .batch = batch};
  for (int i = 0; i < RANKS; i++) t.lengths[i] = i < rank ? lengths[i] : 1;
  t.direction = kind == R2C || (kind == C2C && next_below(2)) ? CUFFT_FORWARD : CUFFT_INVERSE;
  set_lengths(&t);
  return t;
}

static void run_packed(int type, domain kind, int rank, const int *lengths, int batch, bool in_place) {
  trial t = trial_of(type, kind, rank, lengths, batch);
  t.in_place = in_place;
  pack(&t, &t.in);
  pack(&t, &t.out);
  run(&t);
}

/* ---- tests ---- */

static void test_every_length(void **s) {
  for (int n = 1; n <= 700; n++) {
    run_packed(FLOAT, (domain)(n % KINDS), 1, &n, 1 + n % 3, n / KINDS % 2);
    run_packed(DOUBLE, (domain)((n + 1) % KINDS), 1, &n, 1 + (n + 1) % 3, n / KINDS % 2);
  }
}

static void test_powers(void **s) {
  static const int radices[] = {2, 3, 5, 7, 6, 10, 12, 15, 21, 35}, most = 1 << 17;
  for (size_t i = 0; i < sizeof radices / sizeof *radices; i++)
    for (int n = radices[i]; n <= most; n *= radices[i]) {
      domain kind = (domain)next_below(KINDS);
      if (n <= 700) continue;
      run_packed(FLOAT, kind, 1, &n, 1, next_below(2));
      run_packed(DOUBLE, (domain)((kind + 1) % KINDS), 1, &n, 1, next_below(2));
    }
  for (int kind = C2C; kind < KINDS; kind++) run_packed(kind % 2, (domain)kind, 1, (int[]){1 << 20}, 1, false);
}

/* Primes, their doubles and products: convolutions of one, two and more passes. */
static void test_primes(void **s) {
  static const int lengths[] = {701,       1021,         1031,      2039,     2053,      4093,   4099,
                                8191,      8209,         9973,      16381,    32771,     65537,  99991,
                                2 * 10007, 3 * 3 * 1013, 101 * 103, 4 * 7919, 127 * 129, 104729, 131071};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    run_packed(FLOAT, (domain)(i % KINDS), 1, &lengths[i], 1, i / KINDS % 2);
    run_packed(DOUBLE, (domain)((i + 1) % KINDS), 1, &lengths[i], 1, i / KINDS % 2);
  }
  run_packed(DOUBLE, C2C, 1, (int[]){524287}, 1, true);
}

static void test_planes(void **s) {
  static const int planes[][2] = {{1, 700}, {700, 1},  {2, 4099},  {4099, 2},
                                  {61, 67}, {128, 96}, {243, 125}, {512, 512}};
  for (size_t i = 0; i < sizeof planes / sizeof *planes; i++)
    for (int kind = C2C; kind < KINDS; kind++)
      run_packed((int)(i + (unsigned)kind) % 2, (domain)kind, 2, planes[i], 1 + (int)i % 2, next_below(2));
  for (int i = 0; i < 60; i++) {
    int lengths[] = {1 + (int)next_below(70), 1 + (int)next_below(70)};
    run_packed(i % 2, (domain)(i / 2 % KINDS), 2, lengths, 1 + (int)next_below(3), next_below(2));
  }
}

static void test_boxes(void **s) {
  static const int boxes[][3] = {{2, 2, 1031}, {1031, 2, 2}, {3, 1031, 2}, {32, 32, 32}, {7, 11, 13}, {1, 1, 64}};
  for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++)
    for (int kind = C2C; kind < KINDS; kind++)
      run_packed((int)(i + (unsigned)kind) % 2, (domain)kind, 3, boxes[i], 1, next_below(2));
  for (int i = 0; i < 60; i++) {
    int lengths[] = {1 + (int)next_below(20), 1 + (int)next_below(20), 1 + (int)next_below(20)};
    run_packed(i % 2, (domain)(i / 2 % KINDS), 3, lengths, 1 + (int)next_below(3), next_below(2));
  }
}

static void test_layouts(void **s) {
  for (int i = 0; i < 400; i++) {
    int rank = 1 + (int)next_below(3), lengths[RANKS];
    for (int k = 0; k < rank; k++) lengths[k] = 1 + (int)next_below(rank == 1 ? 500 : rank == 2 ? 40 : 14);
    trial t = trial_of(i % 2, (domain)next_below(KINDS), rank, lengths, 1 + (int)next_below(4));
    spread(&t, &t.in);
    spread(&t, &t.out);
    if (t.kind == C2C && next_below(2)) t.out = t.in, t.in_place = next_below(2);
    run(&t);
  }
}

/* Numbers of 16 bits: powers of two, as in cuFFT. */
static void test_halves(void **s) {
  for (int i = 0; i < 120; i++) {
    int rank = 1 + (int)next_below(3), lengths[RANKS];
    for (int k = 0; k < rank; k++) lengths[k] = 1 << next_below(rank == 1 ? 12 : rank == 2 ? 6 : 4);
    trial t = trial_of(i % 2 ? HALF : BFLOAT, (domain)(i / 2 % KINDS), rank, lengths, 1 + (int)next_below(3));
    t.in_place = next_below(3) == 0;
    pack(&t, &t.in);
    pack(&t, &t.out);
    if (!t.in_place) spread(&t, &t.in), spread(&t, &t.out);
    run(&t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_length), cmocka_unit_test(test_powers),
                                     cmocka_unit_test(test_primes),       cmocka_unit_test(test_planes),
                                     cmocka_unit_test(test_boxes),        cmocka_unit_test(test_layouts),
                                     cmocka_unit_test(test_halves)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
