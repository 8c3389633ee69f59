/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools: handles, attributes, counts. */
#include "program.h"

enum { THRESHOLD = 4, RESERVED = 5, USED = 7, USED_HIGH = 8 };

static uint64_t number(cudaMemPool_t pool, int attribute) {
  uint64_t value = 0;
  succeed(cudaMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

static void the_default_pool(void **state) {
  (void)state;
  cudaMemPool_t first, now;
  void *a, *b;
  uint64_t threshold = UINT64_MAX, zero = 0;
  int off = 0, value = 5;
  succeed(cudaDeviceGetDefaultMemPool(&first, 0));
  succeed(cudaDeviceGetMemPool(&now, 0));
  assert_ptr_equal(first, now);
  expect(cudaDeviceGetDefaultMemPool(&first, 1), cudaErrorInvalidDevice);
  expect(cudaDeviceGetDefaultMemPool(NULL, 0), cudaErrorInvalidValue);
  expect(cudaMemPoolDestroy(first), cudaErrorInvalidValue);
  succeed(cudaMemPoolSetAttribute(first, THRESHOLD, &threshold));
  assert_true(number(first, THRESHOLD) == UINT64_MAX);
  succeed(cudaMemPoolSetAttribute(first, 1, &off));
  succeed(cudaMemPoolGetAttribute(first, 1, &value));
  assert_int_equal(value, 0);
  expect(cudaMemPoolSetAttribute(first, USED, &zero), cudaErrorInvalidValue);
  expect(cudaMemPoolSetAttribute(first, 99, &zero), cudaErrorInvalidValue);
  succeed(cudaMallocAsync(&a, 1000, NULL));
  succeed(cudaMallocAsync(&b, 500, NULL));
  assert_int_equal(number(first, USED), 1500);
  succeed(cudaFreeAsync(a, NULL));
  succeed(cudaFree(b)); /* any free gives it back */
  assert_int_equal(number(first, USED), 0);
  assert_int_equal(number(first, USED_HIGH), 1500);
  succeed(cudaMemPoolSetAttribute(first, USED_HIGH, &zero));
  assert_int_equal(number(first, USED_HIGH), 0);
  assert_int_equal(number(first, RESERVED), 0);
  succeed(cudaMemPoolTrimTo(first, 0));
}

static void pools_of_ones_own(void **state) {
  (void)state;
  cudaMemPool_t first, mine, now;
  void *a, *b;
  char properties[88] = {0};
  succeed(cudaDeviceGetDefaultMemPool(&first, 0));
  succeed(cudaMemPoolCreate(&mine, properties));
  expect(cudaMemPoolCreate(&now, NULL), cudaErrorInvalidValue);
  succeed(cudaMallocFromPoolAsync(&a, 100, mine, NULL));
  assert_int_equal(number(mine, USED), 100);
  assert_int_equal(number(first, USED), 0);
  succeed(cudaDeviceSetMemPool(0, mine));
  succeed(cudaMallocAsync(&b, 11, NULL));
  assert_int_equal(number(mine, USED), 111);
  succeed(cudaMemPoolDestroy(mine));
  succeed(cudaDeviceGetMemPool(&now, 0));
  assert_ptr_equal(now, first);
  expect(cudaMallocFromPoolAsync(&a, 100, mine, NULL), cudaErrorInvalidValue);
  expect(cudaMemPoolDestroy(mine), cudaErrorInvalidValue);
  expect(cudaMemPoolTrimTo((cudaMemPool_t)(uintptr_t)64, 0), cudaErrorInvalidValue);
  succeed(cudaFreeAsync(a, NULL));
  succeed(cudaFreeAsync(b, NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_default_pool), cmocka_unit_test(pools_of_ones_own)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
