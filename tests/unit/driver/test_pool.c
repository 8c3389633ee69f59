/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools: handles, attributes, counts; which allocation gets which memory again. */
#include "driver/engine/engine_pool.h"
#include "driver/graph_abi.h"
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
  assert_int_equal(number(first, RESERVED), 1500); /* below the threshold it is kept */
  succeed(cudaMemPoolTrimTo(first, 600));
  assert_int_equal(number(first, RESERVED), 500);
  succeed(cudaMemPoolTrimTo(first, 0));
  assert_int_equal(number(first, RESERVED), 0);
  threshold = 0;
  succeed(cudaMemPoolSetAttribute(first, THRESHOLD, &threshold));
  int on = 1;
  succeed(cudaMemPoolSetAttribute(first, 1, &on));
}

static void pools_of_ones_own(void **state) {
  (void)state;
  cudaMemPool_t first, mine, now;
  void *a, *b;
  cudaMemPoolProps properties = {.allocType = 1, .location = {cudaMemLocationTypeDevice, 0}}, shared = properties,
                   nowhere = {.allocType = 1};
  succeed(cudaDeviceGetDefaultMemPool(&first, 0));
  shared.handleTypes = 8; /* fabric */
  expect(cudaMemPoolCreate(&mine, &shared), cudaErrorNotSupported);
  expect(cudaMemPoolCreate(&mine, &nowhere), cudaErrorInvalidValue);
  succeed(cudaMemPoolCreate(&mine, &properties));
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

static void *allocate(size_t bytes, cudaStream_t stream) {
  void *p;
  succeed(cudaMallocAsync(&p, bytes, stream));
  return p;
}

/* A copy that keeps a stream busy for a while, of virtual time. */
static void keep_busy(char *device, const char *pinned, size_t bytes, cudaStream_t stream) {
  succeed(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream));
}

static void set_reuse(cudaMemPool_t pool, int events, int luck, int internal) {
  succeed(cudaMemPoolSetAttribute(pool, 1, &events));
  succeed(cudaMemPoolSetAttribute(pool, 2, &luck));
  succeed(cudaMemPoolSetAttribute(pool, 3, &internal));
}

static void reuse_follows_streams(void **state) {
  (void)state;
  enum { BUSY = 1 << 24 };
  cudaMemPool_t pool;
  cudaStream_t a, b;
  cudaEvent_t event;
  char *device, *pinned;
  succeed(cudaDeviceGetDefaultMemPool(&pool, 0));
  succeed(cudaMalloc((void **)&device, BUSY));
  succeed(cudaMallocHost((void **)&pinned, BUSY));
  succeed(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  succeed(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  succeed(cudaEventCreate(&event));
  set_reuse(pool, 1, 0, 0);
  void *p = allocate(4096, a), *q;
  keep_busy(device, pinned, BUSY, a);
  succeed(cudaFreeAsync(p, a));
  expect(cudaMemset(p, 0, 1), cudaErrorInvalidValue); /* it is free for everybody */
  expect(cudaFreeAsync(p, a), cudaErrorInvalidValue);
  q = allocate(4096, b);
  assert_ptr_not_equal(q, p); /* b knows nothing of a */
  succeed(cudaEventRecord(event, a));
  succeed(cudaStreamWaitEvent(b, event, 0));
  void *r = allocate(4096, b);
  assert_ptr_equal(r, p);
  succeed(cudaMemsetAsync(r, 1, 4096, b));
  succeed(cudaFreeAsync(r, b));
  assert_ptr_equal(allocate(4096, b), p); /* in the stream itself: always */
  succeed(cudaFreeAsync(p, b));
  assert_ptr_not_equal(r = allocate(4000, b), p); /* of another size */
  succeed(cudaFreeAsync(r, b));
  succeed(cudaFreeAsync(q, b));
  succeed(cudaDeviceSynchronize());
  assert_int_equal(number(pool, RESERVED), 0); /* beyond the threshold, which is 0 */
  set_reuse(pool, 0, 0, 0);
  p = allocate(4096, a);
  keep_busy(device, pinned, BUSY, a);
  succeed(cudaFreeAsync(p, a));
  succeed(cudaEventRecord(event, a));
  succeed(cudaStreamWaitEvent(b, event, 0));
  assert_ptr_not_equal(q = allocate(4096, b), p); /* not asked to follow events */
  set_reuse(pool, 0, 0, 1);
  assert_ptr_equal(r = allocate(4096, b), p); /* b is made to wait */
  expect(cudaStreamQuery(b), cudaErrorNotReady);
  succeed(cudaFreeAsync(r, b));
  succeed(cudaFreeAsync(q, b));
  succeed(cudaDeviceSynchronize());
  set_reuse(pool, 0, 1, 0);
  p = allocate(4096, a);
  succeed(cudaFreeAsync(p, a));
  succeed(cudaStreamSynchronize(a));
  assert_int_equal(number(pool, RESERVED), 0);
  assert_ptr_equal(q = allocate(4096, b), p); /* it is over */
  succeed(cudaFreeAsync(q, b));
  set_reuse(pool, 1, 1, 1);
  succeed(cudaDeviceSynchronize());
  succeed(cudaStreamDestroy(a));
  succeed(cudaStreamDestroy(b));
  succeed(cudaEventDestroy(event));
  succeed(cudaFree(device));
  succeed(cudaFreeHost(pinned));
}

static void limits(void **state) {
  (void)state;
  cudaMemPoolProps properties = {.allocType = 1, .location = {cudaMemLocationTypeDevice, 0}, .maxSize = 10000};
  cudaMemPool_t pool;
  void *p, *q;
  int flags;
  succeed(cudaMemPoolCreate(&pool, &properties));
  expect(cudaMallocFromPoolAsync(&p, 10001, pool, NULL), cudaErrorMemoryAllocation);
  succeed(cudaMallocFromPoolAsync(&p, 6000, pool, NULL));
  expect(cudaMallocFromPoolAsync(&q, 6001, pool, NULL), cudaErrorMemoryAllocation);
  succeed(cudaFreeAsync(p, NULL));
  succeed(cudaStreamSynchronize(NULL));
  succeed(cudaMallocFromPoolAsync(&q, 6001, pool, NULL)); /* what was kept makes room */
  succeed(cudaFree(q));
  succeed(cudaMemPoolGetAccess(&flags, pool, &properties.location));
  assert_int_equal(flags, 3);
  succeed(cudaMemPoolGetAccess(&flags, pool, &(cudaMemLocation){cudaMemLocationTypeHost, 0}));
  assert_int_equal(flags, 0); /* the host may not use a device's memory */
  cudaMemAccessDesc none = {.location = {cudaMemLocationTypeDevice, 0}, .flags = 0},
                    other = {.location = {cudaMemLocationTypeDevice, 1}, .flags = 3};
  expect(cudaMemPoolSetAccess(pool, &none, 1), cudaErrorInvalidValue); /* its own device keeps it */
  expect(cudaMemPoolSetAccess(pool, &other, 1), cudaErrorInvalidDevice);
  succeed(cudaMallocFromPoolAsync(&p, 100, pool, NULL));
  succeed(cudaMemPoolDestroy(pool));
  succeed(cudaMemsetAsync(p, 0, 100, NULL)); /* memory in use outlives its pool */
  succeed(cudaFreeAsync(p, NULL));
  succeed(cudaMallocAsync(&p, 0, NULL));
  assert_null(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_default_pool), cmocka_unit_test(pools_of_ones_own),
                                     cmocka_unit_test(reuse_follows_streams), cmocka_unit_test(limits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
