/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the stand-in for cuFFT: errors, work areas, streams, captured graphs, types of 16 bits, versions,
 * refusals. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reference.h"

enum { COUNT = 48, LONG = 3000 };
#define BAD_PLAN 12345

static void *device_copy(const void *host, size_t bytes) {
  void *memory;
  assert_int_equal(cudaMalloc(&memory, bytes), 0);
  assert_int_equal(cudaMemcpy(memory, host, bytes, 1), 0);
  return memory;
}

static void fill(float complex *data, number *right, int64_t count, int sign) {
  for (int64_t i = 0; i < count; i++) right[i] = data[i] = (float complex)number_of(next_random(), next_random());
  transform(right, 1, &count, sign);
}

static double error_on_device(const void *memory, const number *right, size_t count) {
  float complex *host = malloc(count * sizeof *host);
  number *ours = malloc(count * sizeof *ours);
  assert_int_equal(cudaMemcpy(host, memory, count * sizeof *host, 2), 0);
  for (size_t i = 0; i < count; i++) ours[i] = host[i];
  double error = error_of(ours, right, count);
  free(host), free(ours);
  return error;
}

static void test_plans_refused(void **s) {
  cufftHandle plan = 77;
  int n[4] = {8, 8, 8, 8};
  size_t bytes;
  assert_int_equal(cufftPlan1d(&plan, 0, CUFFT_C2C, 1), CUFFT_INVALID_SIZE);
  assert_int_equal(cufftPlan1d(&plan, -4, CUFFT_C2C, 1), CUFFT_INVALID_SIZE);
  assert_int_equal(cufftPlan1d(&plan, 4, CUFFT_C2C, 0), CUFFT_INVALID_SIZE);
  assert_int_equal(cufftPlan2d(&plan, 4, 0, CUFFT_R2C), CUFFT_INVALID_SIZE);
  assert_int_equal(cufftPlan3d(&plan, 4, 4, -1, CUFFT_Z2D), CUFFT_INVALID_SIZE);
  assert_int_equal(cufftPlan1d(&plan, 8, (cufftType)3, 1), CUFFT_INVALID_TYPE);
  assert_int_equal(cufftPlan1d(&plan, 8, (cufftType)0x2b, 1), CUFFT_INVALID_TYPE);
  assert_int_equal(cufftPlan1d(NULL, 8, CUFFT_C2C, 1), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftPlanMany(&plan, 0, n, NULL, 1, 8, NULL, 1, 8, CUFFT_C2C, 1), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftPlanMany(&plan, 4, n, NULL, 1, 8, NULL, 1, 8, CUFFT_C2C, 1), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftPlanMany(&plan, 1, NULL, NULL, 1, 8, NULL, 1, 8, CUFFT_C2C, 1), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftPlanMany(&plan, 1, n, n, 0, 8, n, 1, 8, CUFFT_C2C, 1), CUFFT_INVALID_VALUE);
  assert_int_equal(plan, 77); /* no handle where there is no plan */
  assert_int_equal(cufftCreate(NULL), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftCreate(&plan), CUFFT_SUCCESS);
  assert_int_equal(
      cufftMakePlanMany64(plan, 2, (long long[]){1LL << 40, 1LL << 40}, NULL, 1, 1, NULL, 1, 1, CUFFT_C2C, 1, &bytes),
      CUFFT_INVALID_SIZE);
  assert_int_equal(cufftExecC2C(plan, &bytes, &bytes, CUFFT_FORWARD), CUFFT_INVALID_PLAN); /* not made */
  assert_int_equal(cufftMakePlan1d(plan, 8, CUFFT_C2C, 1, &bytes), CUFFT_SUCCESS);
  assert_int_equal(cufftMakePlan1d(plan, 8, CUFFT_C2C, 1, &bytes), CUFFT_INVALID_PLAN); /* made */
  assert_int_equal(cufftDestroy(plan), CUFFT_SUCCESS);
  assert_int_equal(cufftDestroy(plan), CUFFT_INVALID_PLAN);
  assert_int_equal(cufftDestroy(CUFFT_PLAN_NULL), CUFFT_SUCCESS);
  assert_int_equal(cufftMakePlan1d(BAD_PLAN, 8, CUFFT_C2C, 1, &bytes), CUFFT_INVALID_PLAN);
  assert_int_equal(cufftSetStream(BAD_PLAN, NULL), CUFFT_INVALID_PLAN);
  assert_int_equal(cufftGetSize(BAD_PLAN, &bytes), CUFFT_INVALID_PLAN);
}

static void test_executions_refused(void **s) {
  cufftHandle plan;
  float complex host[8] = {0};
  void *data = device_copy(host, sizeof host);
  assert_int_equal(cufftPlan1d(&plan, 8, CUFFT_C2C, 1), CUFFT_SUCCESS);
  assert_int_equal(cufftExecC2C(plan, NULL, data, CUFFT_FORWARD), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftExecC2C(plan, data, NULL, CUFFT_FORWARD), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftExecC2C(plan, data, data, 0), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftExecZ2Z(plan, data, data, CUFFT_FORWARD), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftExecR2C(plan, data, data), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftExecC2C(BAD_PLAN, data, data, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
  assert_int_equal(cufftXtExec(BAD_PLAN, data, data, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
  assert_int_equal(cufftExecC2C(plan, data, data, CUFFT_FORWARD), CUFFT_SUCCESS);
  assert_int_equal(cufftDestroy(plan), CUFFT_SUCCESS);
  cudaFree(data);
}

/* A plan that needs a work area: its own, the caller's, and none. */
static void test_work_area(void **s) {
  cufftHandle plan;
  size_t bytes = 0, said = 0, estimate = 0;
  int64_t count = 8192;
  float complex *host = malloc((size_t)count * sizeof *host);
  number *right = malloc((size_t)count * sizeof *right);
  void *work, *out;
  fill(host, right, count, -1);
  void *data = device_copy(host, (size_t)count * sizeof *host);
  assert_int_equal(cudaMalloc(&out, (size_t)count * sizeof *host), 0);
  assert_int_equal(cufftCreate(&plan), CUFFT_SUCCESS);
  assert_int_equal(cufftSetAutoAllocation(plan, 0), CUFFT_SUCCESS);
  assert_int_equal(cufftMakePlan1d(plan, (int)count, CUFFT_C2C, 1, &bytes), CUFFT_SUCCESS);
  assert_int_equal(cufftGetSize(plan, &said), CUFFT_SUCCESS);
  assert_int_equal(cufftEstimate1d((int)count, CUFFT_C2C, 1, &estimate), CUFFT_SUCCESS);
  assert_int_equal(bytes, (size_t)count * sizeof *host); /* two passes */
  assert_int_equal(said, bytes);
  assert_int_equal(estimate, bytes);
  assert_int_equal(cufftGetSize1d(plan, (int)count, CUFFT_C2C, 2, &said), CUFFT_SUCCESS);
  assert_int_equal(said, 2 * bytes);
  assert_int_equal(cufftExecC2C(plan, data, out, CUFFT_FORWARD), CUFFT_NO_WORKSPACE);
  assert_int_equal(cudaMalloc(&work, bytes), 0);
  assert_int_equal(cufftSetWorkArea(plan, work), CUFFT_SUCCESS);
  assert_int_equal(cufftExecC2C(plan, data, out, CUFFT_FORWARD), CUFFT_SUCCESS);
  assert_true(error_on_device(out, right, (size_t)count) < 5e-7);
  assert_int_equal(cufftExecC2C(plan, data, data, CUFFT_FORWARD), CUFFT_SUCCESS);
  assert_true(error_on_device(data, right, (size_t)count) < 5e-7);
  assert_int_equal(cufftXtSetWorkAreaPolicy(plan, 2, &said), CUFFT_SUCCESS);
  assert_int_equal(said, bytes);
  assert_int_equal(cufftXtSetWorkAreaPolicy(plan, 0, &said), CUFFT_INVALID_SIZE);
  assert_int_equal(cufftDestroy(plan), CUFFT_SUCCESS);
  assert_int_equal(cudaFree(work), 0); /* it is the caller's */
  cudaFree(data), cudaFree(out);
  free(host), free(right);
}

/* Two plans on two streams; a plan that changes its stream. */
static void test_streams(void **s) {
  cufftHandle plans[2];
  cudaStream_t streams[2];
  float complex host[COUNT];
  number right[COUNT];
  void *data[2];
  fill(host, right, COUNT, 1);
  for (int i = 0; i < 2; i++) {
    data[i] = device_copy(host, sizeof host);
    assert_int_equal(cudaStreamCreate(&streams[i]), 0);
    assert_int_equal(cufftPlan1d(&plans[i], COUNT, CUFFT_C2C, 1), CUFFT_SUCCESS);
    assert_int_equal(cufftSetStream(plans[i], streams[i]), CUFFT_SUCCESS);
  }
  assert_int_not_equal(plans[0], plans[1]);
  for (int i = 0; i < 2; i++) assert_int_equal(cufftExecC2C(plans[i], data[i], data[i], CUFFT_INVERSE), CUFFT_SUCCESS);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(cudaStreamSynchronize(streams[i]), 0);
    assert_true(error_on_device(data[i], right, COUNT) < 3e-7);
  }
  assert_int_equal(cufftSetStream(plans[0], streams[1]), CUFFT_SUCCESS);
  assert_int_equal(cufftExecC2C(plans[0], data[0], data[0], CUFFT_FORWARD), CUFFT_SUCCESS);
  for (int i = 0; i < COUNT; i++) right[i] = (number)host[i] * COUNT;
  assert_true(error_on_device(data[0], right, COUNT) < 3e-7);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(cufftDestroy(plans[i]), CUFFT_SUCCESS);
    cudaStreamDestroy(streams[i]);
    cudaFree(data[i]);
  }
}

/* A captured transform, forth and back, launched twice: the input times its length squared. Several passes each. */
static void test_graph(void **s) {
  cufftHandle plan;
  cudaStream_t stream;
  void *graph, *runnable, *data;
  float complex *host = malloc(LONG * sizeof *host);
  number *right = malloc(LONG * sizeof *right);
  fill(host, right, LONG, -1);
  for (int i = 0; i < LONG; i++) right[i] = (number)host[i] * LONG * LONG;
  data = device_copy(host, LONG * sizeof *host);
  assert_int_equal(cudaStreamCreate(&stream), 0);
  assert_int_equal(cufftPlan1d(&plan, LONG, CUFFT_C2C, 1), CUFFT_SUCCESS);
  assert_int_equal(cufftSetStream(plan, stream), CUFFT_SUCCESS);
  assert_int_equal(cudaStreamBeginCapture(stream, 0), 0);
  assert_int_equal(cufftExecC2C(plan, data, data, CUFFT_FORWARD), CUFFT_SUCCESS);
  assert_int_equal(cufftExecC2C(plan, data, data, CUFFT_INVERSE), CUFFT_SUCCESS);
  assert_int_equal(cudaStreamEndCapture(stream, &graph), 0);
  assert_int_equal(cudaGraphInstantiate(&runnable, graph, NULL, NULL, 0), 0);
  for (int i = 0; i < 2; i++) assert_int_equal(cudaGraphLaunch(runnable, stream), 0);
  assert_int_equal(cudaStreamSynchronize(stream), 0);
  assert_true(error_on_device(data, right, LONG) < 1e-6);
  assert_int_equal(cufftDestroy(plan), CUFFT_SUCCESS);
  cudaStreamDestroy(stream);
  cudaFree(data);
  free(host), free(right);
}

/* ---- types of 16 bits ---- */

static float half_value(uint16_t bits, bool bfloat) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  if (bfloat) return value;
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float size = exponent ? ldexpf((float)(fraction + 1024), exponent - 25) : ldexpf((float)fraction, -24);
  return bits >> 15 ? -size : size;
}

/* Small whole numbers, which both types have exactly. */
static uint16_t bits_of(int small, bool bfloat) {
  float value = (float)small;
  uint32_t wide;
  memcpy(&wide, &value, sizeof wide);
  if (bfloat || !small) return (uint16_t)(wide >> 16);
  return (uint16_t)((wide >> 31 << 15) | (((wide >> 23 & 255) - 112) << 10) | (wide >> 13 & 1023));
}

static void run_halves(bool bfloat, bool real) {
  enum { N = 64 };
  cudaDataType complex_type = bfloat ? CUDA_C_16BF : CUDA_C_16F, real_type = bfloat ? CUDA_R_16BF : CUDA_R_16F;
  uint16_t host[2 * N];
  number right[N], ours[N];
  int64_t n = N, results = real ? N / 2 + 1 : N;
  cufftHandle plan;
  size_t bytes;
  for (int i = 0; i < N; i++) {
    int x = (int)next_below(7) - 3, y = real ? 0 : (int)next_below(7) - 3;
    right[i] = number_of(x, y);
    if (real) host[i] = bits_of(x, bfloat);
    else host[2 * i] = bits_of(x, bfloat), host[2 * i + 1] = bits_of(y, bfloat);
  }
  transform(right, 1, &n, -1);
  void *data = device_copy(host, sizeof host), *out = device_copy(host, sizeof host);
  assert_int_equal(cufftCreate(&plan), CUFFT_SUCCESS);
  assert_int_equal(cufftXtMakePlanMany(plan, 1, (long long[]){N}, NULL, 1, N, real ? real_type : complex_type, NULL, 1,
                                       N, complex_type, 1, &bytes, complex_type),
                   CUFFT_SUCCESS);
  assert_int_equal(cufftXtExec(plan, data, out, CUFFT_FORWARD), CUFFT_SUCCESS);
  assert_int_equal(cudaMemcpy(host, out, (size_t)results * 4, 2), 0);
  for (int i = 0; i < results; i++)
    ours[i] = number_of(half_value(host[2 * i], bfloat), half_value(host[2 * i + 1], bfloat));
  assert_true(error_of(ours, right, (size_t)results) < (bfloat ? 4e-3 : 5e-4)); /* rounded once */
  assert_int_equal(cufftDestroy(plan), CUFFT_SUCCESS);
  cudaFree(data), cudaFree(out);
}

static void test_halves(void **s) {
  cufftHandle plan;
  size_t bytes;
  for (int i = 0; i < 4; i++) run_halves(i & 1, i & 2);
  assert_int_equal(cufftCreate(&plan), CUFFT_SUCCESS); /* powers of two only */
  assert_int_equal(cufftXtMakePlanMany(plan, 1, (long long[]){48}, NULL, 1, 48, CUDA_C_16F, NULL, 1, 48, CUDA_C_16F, 1,
                                       &bytes, CUDA_C_16F),
                   CUFFT_NOT_SUPPORTED);
  assert_int_equal(cufftXtMakePlanMany(plan, 1, (long long[]){64}, NULL, 1, 64, CUDA_C_16F, NULL, 1, 64, CUDA_C_32F, 1,
                                       &bytes, CUDA_C_32F),
                   CUFFT_INVALID_TYPE);
  assert_int_equal(cufftXtMakePlanMany(plan, 1, (long long[]){64}, NULL, 1, 64, CUDA_R_32F, NULL, 1, 64, CUDA_R_32F, 1,
                                       &bytes, CUDA_C_32F),
                   CUFFT_INVALID_TYPE);
  assert_int_equal(cufftXtMakePlanMany(plan, 1, (long long[]){64}, NULL, 1, 64, CUDA_C_32F, NULL, 1, 64, CUDA_C_32F, 1,
                                       &bytes, CUDA_R_32F),
                   CUFFT_INVALID_TYPE); /* the type of the computation: a real one only where a side is real, */
  assert_int_equal(cufftXtMakePlanMany(plan, 1, (long long[]){64}, NULL, 1, 64, CUDA_R_32F, NULL, 1, 33, CUDA_C_32F, 1,
                                       &bytes, CUDA_R_64F),
                   CUFFT_INVALID_TYPE); /* and of the same precision */
  assert_int_equal(cufftXtMakePlanMany(plan, 1, (long long[]){64}, NULL, 1, 64, CUDA_R_32F, NULL, 1, 33, CUDA_C_32F, 1,
                                       &bytes, CUDA_R_32F),
                   CUFFT_SUCCESS);
  assert_int_equal(cufftDestroy(plan), CUFFT_SUCCESS);
}

/* ---- the library ---- */

static void test_library(void **s) {
  int version, major, minor, patch;
  cufftHandle plan;
  long long value = 5;
  assert_int_equal(cufftGetVersion(&version), CUFFT_SUCCESS);
  assert_int_equal(cufftGetProperty(0, &major), CUFFT_SUCCESS);
  assert_int_equal(cufftGetProperty(1, &minor), CUFFT_SUCCESS);
  assert_int_equal(cufftGetProperty(2, &patch), CUFFT_SUCCESS);
  assert_int_equal(major, CUFFT_TEST_MAJOR);
  assert_int_equal(version, 1000 * major + 100 * minor + patch);
  assert_int_equal(cufftGetProperty(3, &major), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftCreate(&plan), CUFFT_SUCCESS);
  assert_int_equal(cufftSetPlanPropertyInt64(plan, CUFFT_MAX_HOST_THREADS, 2), CUFFT_SUCCESS);
  assert_int_equal(cufftGetPlanPropertyInt64(plan, CUFFT_MAX_HOST_THREADS, &value), CUFFT_SUCCESS);
  assert_int_equal(value, 2);
  assert_int_equal(cufftSetPlanPropertyInt64(plan, CUFFT_DISABLE_FMA, 1), CUFFT_NOT_SUPPORTED);
  assert_int_equal(cufftSetPlanPropertyInt64(plan, (cufftProperty)99, 1), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftXtSetGPUs(plan, 2, (int[]){0, 1}), CUFFT_NOT_IMPLEMENTED);
  assert_int_equal(cufftXtSetCallback(plan, NULL, 0, NULL), CUFFT_NOT_IMPLEMENTED);
  assert_int_equal(cufftDestroy(plan), CUFFT_SUCCESS);
}

#define X(name, why) #name,
static const char *const refused[] = {
#include "driver/stand_ins/cufft/cufft_refused.def"
};

static unsigned count_of(const char *text, const char *part) {
  unsigned count = 0;
  while ((text = strstr(text, part))) count++, text++;
  return count;
}

/* Each refused call says its name on stderr the first time, and gives its error every time. First of all tests. */
static void test_refused_by_name(void **s) {
  FILE *said = tmpfile();
  int before = dup(STDERR_FILENO);
  char text[1 << 14] = "", sentence[128];
  assert_true(said && before >= 0 && dup2(fileno(said), STDERR_FILENO) >= 0);
  unsigned wrong = 0;
  for (size_t i = 0; i < 2 * (sizeof refused / sizeof *refused); i++) {
    cufftResult (*call)(void) = (cufftResult(*)(void))dlsym(RTLD_DEFAULT, refused[i / 2]);
    wrong += !call || call() != CUFFT_NOT_IMPLEMENTED;
  }
  dup2(before, STDERR_FILENO);
  close(before);
  rewind(said);
  assert_true(fread(text, 1, sizeof text - 1, said) > 0);
  fclose(said);
  assert_int_equal(wrong, 0);
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    snprintf(sentence, sizeof sentence, "cuFFT: %s is not supported", refused[i]);
    assert_int_equal(count_of(text, sentence), 1);
  }
}

/* A length that would take one pass, as a convolution. */
static void test_bluestein_only(void **s) {
  cufftHandle plan;
  float complex host[COUNT];
  number right[COUNT];
  size_t bytes;
  fill(host, right, COUNT, -1);
  void *data = device_copy(host, sizeof host);
  assert_int_equal(cufftCreate(&plan), CUFFT_SUCCESS);
  assert_int_equal(cufftSetPlanPropertyInt64(plan, CUFFT_BLUESTEIN_ONLY, 1), CUFFT_SUCCESS);
  assert_int_equal(cufftMakePlan1d(plan, COUNT, CUFFT_C2C, 1, &bytes), CUFFT_SUCCESS);
  assert_int_equal(bytes, 128 * sizeof *host);
  assert_int_equal(cufftExecC2C(plan, data, data, CUFFT_FORWARD), CUFFT_SUCCESS);
  assert_true(error_on_device(data, right, COUNT) < 4e-7);
  assert_int_equal(cufftDestroy(plan), CUFFT_SUCCESS);
  cudaFree(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused_by_name),
                                     cmocka_unit_test(test_plans_refused),
                                     cmocka_unit_test(test_executions_refused),
                                     cmocka_unit_test(test_work_area),
                                     cmocka_unit_test(test_streams),
                                     cmocka_unit_test(test_graph),
                                     cmocka_unit_test(test_halves),
                                     cmocka_unit_test(test_library),
                                     cmocka_unit_test(test_bluestein_only)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
