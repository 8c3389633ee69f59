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
  succeed(cudaMemPoolTrimTo(first, 1001));         /* at least as many stay */
  assert_int_equal(number(first, RESERVED), 1500);
  succeed(cudaMemPoolTrimTo(first, 1000));
  assert_int_equal(number(first, RESERVED), 1000);
  succeed(cudaMemPoolTrimTo(first, 600));
  assert_int_equal(number(first, RESERVED), 1000);
  succeed(cudaMemPoolTrimTo(first, 2000)); /* there are less */
  assert_int_equal(number(first, RESERVED), 1000);
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
  assert_ptr_equal(r = allocate(4000, b), p); /* of less bytes */
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
  assert_ptr_not_equal(r = allocate(4096, b), p); /* there is room elsewhere */
  succeed(cudaFreeAsync(r, b));
  succeed(cudaFreeAsync(q, b));
  succeed(cudaDeviceSynchronize());
  set_reuse(pool, 0, 0, 0);
  p = allocate(4096, a);
  keep_busy(device, pinned, BUSY, a);
  succeed(cudaFreeAsync(p, a));
  succeed(cudaStreamSynchronize(a)); /* "regardless of specified stream or disabled allocation policies" */
  assert_ptr_equal(q = allocate(4096, b), p);
  succeed(cudaFreeAsync(q, b));
  keep_busy(device, pinned, BUSY, b);
  q = allocate(4096, b);
  succeed(cudaFreeAsync(q, b));
  succeed(cudaEventRecord(event, b));
  succeed(cudaEventSynchronize(event));
  assert_ptr_equal(r = allocate(4096, a), q);
  keep_busy(device, pinned, BUSY, a);
  succeed(cudaFree(r)); /* waits for nothing: what used it was over, says who frees it so */
  expect(cudaStreamQuery(a), cudaErrorNotReady);
  assert_ptr_equal(q = allocate(4096, b), r);
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
  expect(cudaMemPoolSetAccess(pool, &none, 1), cudaErrorInvalidDevice); /* its own device keeps it */
  expect(cudaMemPoolSetAccess(pool, &other, 1), cudaErrorInvalidDevice);
  succeed(cudaMallocFromPoolAsync(&p, 100, pool, NULL));
  succeed(cudaMemPoolDestroy(pool));
  succeed(cudaMemsetAsync(p, 0, 100, NULL)); /* memory in use outlives its pool */
  succeed(cudaFreeAsync(p, NULL));
  succeed(cudaMallocAsync(&p, 0, NULL));
  assert_null(p);
}

/* An event says what was in its stream when it was recorded, and an older one takes nothing back. */
static void an_event_knows_what_was_before_it(void **state) {
  (void)state;
  cudaMemPool_t pool;
  cudaStream_t a, b;
  cudaEvent_t before, after;
  succeed(cudaDeviceGetDefaultMemPool(&pool, 0));
  succeed(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  succeed(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  succeed(cudaEventCreate(&before));
  succeed(cudaEventCreate(&after));
  set_reuse(pool, 1, 0, 0);
  void *p = allocate(4096, a), *q, *r;
  succeed(cudaEventRecord(before, a));
  succeed(cudaFreeAsync(p, a));
  succeed(cudaEventSynchronize(before));
  assert_ptr_not_equal(q = allocate(4096, b), p);
  succeed(cudaStreamWaitEvent(b, before, 0));
  assert_ptr_not_equal(r = allocate(4096, b), p);
  succeed(cudaFreeAsync(r, b));
  succeed(cudaFreeAsync(q, b));
  succeed(cudaEventRecord(after, a));
  succeed(cudaStreamWaitEvent(b, after, 0));
  succeed(cudaStreamWaitEvent(b, before, 0));
  q = allocate(4096, b);
  r = allocate(4096, b);
  assert_ptr_equal(allocate(4096, b), p);
  succeed(cudaFreeAsync(p, b));
  succeed(cudaFreeAsync(q, b));
  succeed(cudaFreeAsync(r, b));
  succeed(cudaDeviceSynchronize());
  set_reuse(pool, 1, 1, 1);
  succeed(cudaEventDestroy(before));
  succeed(cudaEventDestroy(after));
  succeed(cudaStreamDestroy(a));
  succeed(cudaStreamDestroy(b));
}

/* The default stream and the blocking ones wait for each other. */
static void reuse_follows_the_default_stream(void **state) {
  (void)state;
  enum { BUSY = 1 << 24 };
  cudaMemPool_t pool;
  cudaStream_t blocking, other;
  char *device, *pinned;
  succeed(cudaDeviceGetDefaultMemPool(&pool, 0));
  succeed(cudaMalloc((void **)&device, BUSY));
  succeed(cudaMallocHost((void **)&pinned, BUSY));
  succeed(cudaStreamCreate(&blocking));
  succeed(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  set_reuse(pool, 1, 0, 0);
  void *p = allocate(4096, blocking), *q;
  keep_busy(device, pinned, BUSY, blocking);
  succeed(cudaFreeAsync(p, blocking));
  assert_ptr_equal(allocate(4096, NULL), p);
  keep_busy(device, pinned, BUSY, NULL);
  succeed(cudaFreeAsync(p, NULL));
  succeed(cudaStreamSynchronize(blocking)); /* which has nothing in it that waits for the default stream */
  assert_ptr_not_equal(q = allocate(4096, other), p);
  assert_ptr_equal(allocate(4096, blocking), p);
  succeed(cudaFreeAsync(p, blocking));
  succeed(cudaFreeAsync(q, other));
  keep_busy(device, pinned, BUSY, blocking);
  succeed(cudaStreamSynchronize(NULL)); /* and with it for `blocking` */
  assert_ptr_equal(q = allocate(4096, other), p);
  succeed(cudaFreeAsync(q, other));
  succeed(cudaDeviceSynchronize());
  set_reuse(pool, 1, 1, 1);
  succeed(cudaStreamDestroy(blocking));
  succeed(cudaStreamDestroy(other));
  succeed(cudaFree(device));
  succeed(cudaFreeHost(pinned));
}

/* Smaller requests have parts of what larger ones left; parts side by side serve larger ones again. */
static void blocks_are_divided(void **state) {
  (void)state;
  enum { BLOCK = 8 << 20, PART = 3 << 20 };
  cudaMemPoolProps properties = {.allocType = 1, .location = {cudaMemLocationTypeDevice, 0}};
  cudaMemPool_t pool, first;
  cudaStream_t s;
  uint64_t forever = UINT64_MAX;
  succeed(cudaDeviceGetMemPool(&first, 0));
  succeed(cudaMemPoolCreate(&pool, &properties));
  succeed(cudaDeviceSetMemPool(0, pool));
  succeed(cudaMemPoolSetAttribute(pool, THRESHOLD, &forever));
  succeed(cudaStreamCreate(&s));
  char *whole = allocate(BLOCK, s), host[3] = {1, 2, 3}, back[3];
  succeed(cudaFreeAsync(whole, s));
  char *a = allocate(PART, s), *b = allocate(PART - 100, s), *c = allocate(5000, s), *d = allocate(PART, s);
  assert_ptr_equal(a, whole);
  assert_ptr_equal(b, whole + PART);
  assert_ptr_equal(c, whole + 2 * PART); /* the next page */
  assert_true(d < whole || d >= whole + BLOCK);
  assert_int_equal(number(pool, USED), 3 * PART - 100 + 5000);
  assert_int_equal(number(pool, RESERVED), BLOCK + PART);
  /* each is memory of its own */
  succeed(cudaMemsetAsync(a, 7, PART, s));
  succeed(cudaMemsetAsync(b, 8, PART - 100, s));
  expect(cudaMemsetAsync(b, 8, PART - 99, s), cudaErrorInvalidValue);
  succeed(cudaMemcpyAsync(c + 4997, host, 3, cudaMemcpyHostToDevice, s));
  succeed(cudaMemcpy(back, a + PART - 3, 3, cudaMemcpyDeviceToHost));
  assert_int_equal(back[2], 7);
  struct cudaPointerAttributes facts;
  succeed(cudaPointerGetAttributes(&facts, b + 5));
  assert_int_equal(facts.type, cudaMemoryTypeDevice);
  succeed(cudaFreeAsync(b, s));
  expect(cudaMemsetAsync(b, 8, 1, s), cudaErrorInvalidValue);
  expect(cudaFreeAsync(b, s), cudaErrorInvalidValue);
  succeed(cudaMemcpyAsync(back, c + 4997, 3, cudaMemcpyDeviceToHost, s)); /* its neighbours stay */
  succeed(cudaStreamSynchronize(s));
  assert_memory_equal(back, host, 3);
  assert_int_equal(number(pool, RESERVED), BLOCK + PART); /* part of a block cannot go */
  succeed(cudaMemPoolTrimTo(pool, 0));
  assert_int_equal(number(pool, RESERVED), BLOCK + PART);
  /* joined: a and b, and c and what was never used behind it */
  succeed(cudaFreeAsync(a, s));
  assert_ptr_equal(b = allocate(2 * PART, s), whole);
  succeed(cudaFreeAsync(c, s));
  assert_ptr_equal(c = allocate(BLOCK - 2 * PART, s), whole + 2 * PART);
  succeed(cudaFreeAsync(b, s));
  succeed(cudaFreeAsync(c, s));
  assert_ptr_equal(allocate(BLOCK, s), whole);
  assert_int_equal(number(pool, RESERVED), BLOCK + PART);
  /* what fits exactly comes first, and keeps the larger one whole */
  succeed(cudaFreeAsync(whole, s));
  succeed(cudaFreeAsync(d, s));
  assert_ptr_equal(allocate(PART, s), d);
  succeed(cudaFreeAsync(d, s));
  assert_ptr_equal(a = allocate(PART / 2, s), d); /* else the smallest that will do */
  succeed(cudaFreeAsync(a, s));
  succeed(cudaStreamSynchronize(s));
  succeed(cudaMemPoolTrimTo(pool, 0));
  assert_int_equal(number(pool, RESERVED), 0);
  /* one part that fits comes before two side by side that fit together, though these are of the older block */
  whole = allocate(2 * PART, s);
  d = allocate(2 * PART, s);
  succeed(cudaFreeAsync(whole, s));
  assert_ptr_equal(a = allocate(PART, s), whole);
  assert_ptr_equal(b = allocate(PART, s), whole + PART);
  succeed(cudaFreeAsync(d, s));
  succeed(cudaFreeAsync(a, s));
  succeed(cudaFreeAsync(b, s));
  assert_ptr_equal(allocate(2 * PART, s), d);
  succeed(cudaFreeAsync(d, s));
  succeed(cudaStreamSynchronize(s));
  succeed(cudaMemPoolDestroy(pool));
  succeed(cudaStreamDestroy(s));
}

/* Parts that two streams freed: the one that may have both joins them, and what is left over is as it was. */
static void parts_of_two_streams(void **state) {
  (void)state;
  enum { BUSY = 1 << 24, PART = 1 << 20 };
  cudaMemPoolProps properties = {.allocType = 1, .location = {cudaMemLocationTypeDevice, 0}};
  cudaMemPool_t pool;
  cudaStream_t s, t;
  char *device, *pinned, *a, *b, *c, *whole;
  succeed(cudaMemPoolCreate(&pool, &properties));
  succeed(cudaMalloc((void **)&device, BUSY));
  succeed(cudaMallocHost((void **)&pinned, BUSY));
  succeed(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  succeed(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
  set_reuse(pool, 1, 0, 0);
  succeed(cudaMallocFromPoolAsync((void **)&whole, 3 * PART, pool, s));
  succeed(cudaFreeAsync(whole, s));
  succeed(cudaMallocFromPoolAsync((void **)&a, PART, pool, s));
  succeed(cudaMallocFromPoolAsync((void **)&b, 2 * PART, pool, s));
  succeed(cudaFreeAsync(a, s));
  keep_busy(device, pinned, BUSY, t);
  succeed(cudaFreeAsync(b, t));
  succeed(cudaMallocFromPoolAsync((void **)&c, 2 * PART, pool, s)); /* s may have a only */
  assert_true(c < whole || c >= whole + 3 * PART);
  succeed(cudaFreeAsync(c, s));
  succeed(cudaStreamSynchronize(s));
  succeed(cudaMallocFromPoolAsync((void **)&c, 2 * PART, pool, t)); /* t: exactly b */
  assert_ptr_equal(c, b);
  succeed(cudaFreeAsync(c, t));
  succeed(cudaMallocFromPoolAsync((void **)&c, 2 * PART + PART / 2, pool, t));
  assert_ptr_equal(c, whole); /* s was waited for: t may have a, and b is its own */
  char *rest;
  succeed(cudaMallocFromPoolAsync((void **)&rest, PART / 2, pool, s));
  assert_ptr_not_equal(rest, whole + 2 * PART + PART / 2); /* that is t's */
  succeed(cudaFreeAsync(rest, s));
  succeed(cudaMallocFromPoolAsync((void **)&rest, PART / 2, pool, t));
  assert_ptr_equal(rest, whole + 2 * PART + PART / 2);
  succeed(cudaFreeAsync(rest, t));
  succeed(cudaFreeAsync(c, t));
  succeed(cudaDeviceSynchronize());
  succeed(cudaMemPoolDestroy(pool));
  succeed(cudaStreamDestroy(s));
  succeed(cudaStreamDestroy(t));
  succeed(cudaFree(device));
  succeed(cudaFreeHost(pinned));
}

/* Where no more memory can be had, a stream is made to wait for another one, and the host for what is of another
 * size. */
static void no_room(void **state) {
  (void)state;
  enum { BUSY = 1 << 24 };
  cudaMemPoolProps properties = {.allocType = 1, .location = {cudaMemLocationTypeDevice, 0}, .maxSize = 10000};
  cudaMemPool_t pool;
  cudaStream_t a, b;
  char *device, *pinned;
  void *p, *q, *r;
  succeed(cudaMalloc((void **)&device, BUSY));
  succeed(cudaMallocHost((void **)&pinned, BUSY));
  succeed(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  succeed(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  succeed(cudaMemPoolCreate(&pool, &properties));
  succeed(cudaMallocFromPoolAsync(&p, 6000, pool, a));
  keep_busy(device, pinned, BUSY, a);
  succeed(cudaFreeAsync(p, a));
  set_reuse(pool, 1, 1, 0);
  expect(cudaMallocFromPoolAsync(&q, 6000, pool, b), cudaErrorMemoryAllocation);
  set_reuse(pool, 1, 1, 1);
  succeed(cudaStreamQuery(b));
  succeed(cudaMallocFromPoolAsync(&q, 6000, pool, b));
  assert_ptr_equal(q, p);
  expect(cudaStreamQuery(b), cudaErrorNotReady);
  succeed(cudaFreeAsync(q, b));
  expect(cudaStreamQuery(b), cudaErrorNotReady);
  succeed(cudaMallocFromPoolAsync(&r, 9000, pool, b)); /* b could have 6000 of them */
  succeed(cudaStreamQuery(b));
  succeed(cudaFreeAsync(r, b));
  succeed(cudaDeviceSynchronize());
  succeed(cudaMemPoolDestroy(pool));
  /* of the device: most of it, and then a little less, in the stream's order */
  size_t available, total;
  succeed(cudaMemGetInfo(&available, &total));
  succeed(cudaMallocAsync(&p, available / 5 * 3, a));
  keep_busy(device, pinned, BUSY, a);
  succeed(cudaFreeAsync(p, a));
  succeed(cudaMallocAsync(&q, available / 2, a));
  expect(cudaMallocAsync(&r, available / 2 + (1 << 20), a), cudaErrorMemoryAllocation);
  succeed(cudaFreeAsync(q, a));
  succeed(cudaMallocAsync(&r, available / 5 * 4, a));
  succeed(cudaFreeAsync(r, a));
  succeed(cudaDeviceSynchronize());
  succeed(cudaStreamDestroy(a));
  succeed(cudaStreamDestroy(b));
  succeed(cudaFree(device));
  succeed(cudaFreeHost(pinned));
}

static int fact(cudaMemPool_t pool, int attribute) {
  int value[2] = {-7, -7};
  succeed(cudaMemPoolGetAttribute(pool, attribute, value));
  assert_int_equal(value[1], -7); /* it is an int */
  return value[0];
}

/* What pools say of themselves from CUDA 13 on. */
static void facts_of_pools(void **state) {
  (void)state;
  enum { TYPE = 9, HANDLES, LOCATION, LOCATION_TYPE, MOST, DECOMPRESS, DOMAIN };
  cudaMemPoolProps properties = {.allocType = 1, .handleTypes = 1, .location = {cudaMemLocationTypeDevice, 0}},
                   managed = {.allocType = 2, .maxSize = 4096};
  cudaMemPool_t pool;
  uint64_t zero = 0;
  properties.maxSize = 1 << 20;
  properties.usage = 2;
  succeed(cudaMemPoolCreate(&pool, &properties));
  assert_int_equal(fact(pool, TYPE), 1);
  assert_int_equal(fact(pool, HANDLES), 1);
  assert_int_equal(fact(pool, LOCATION), 0);
  assert_int_equal(fact(pool, LOCATION_TYPE), cudaMemLocationTypeDevice);
  assert_int_equal(number(pool, MOST), 1 << 20);
  assert_int_equal(fact(pool, DECOMPRESS), 1);
  assert_int_equal(fact(pool, DOMAIN), -1);
  expect(cudaMemPoolGetAttribute(pool, DOMAIN + 1, &zero), cudaErrorInvalidValue);
  expect(cudaMemPoolSetAttribute(pool, MOST, &zero), cudaErrorInvalidValue);
  succeed(cudaMemPoolDestroy(pool));
  expect(cudaMemPoolCreate(&pool, &managed), cudaErrorInvalidValue); /* no limit of managed memory */
  managed.maxSize = 0;
  succeed(cudaMemPoolCreate(&pool, &managed));
  assert_int_equal(fact(pool, TYPE), 2);
  assert_int_equal(fact(pool, LOCATION_TYPE), cudaMemLocationTypeInvalid);
  succeed(cudaMemPoolDestroy(pool));
}

/* Random allocations and freeings in three streams: no two live ones share a byte, each keeps what was written to it,
 * and the pool counts what a list of them says. */
static void against_a_list(void **state) {
  (void)state;
  enum { STREAMS = 3, LIVE = 24, STEPS = 1500 };
  cudaMemPoolProps properties = {.allocType = 1, .location = {cudaMemLocationTypeDevice, 0}};
  cudaMemPool_t pool;
  cudaStream_t streams[STREAMS];
  uint64_t threshold = 4 << 20;
  struct {
    unsigned char *at;
    size_t bytes;
    int stream;
  } live[LIVE] = {0};
  uint32_t seed = 12345;
  uint64_t used = 0;
  succeed(cudaMemPoolCreate(&pool, &properties));
  succeed(cudaMemPoolSetAttribute(pool, THRESHOLD, &threshold));
  for (int i = 0; i < STREAMS; i++) succeed(cudaStreamCreateWithFlags(&streams[i], i ? cudaStreamNonBlocking : 0));
  for (int step = 0; step < STEPS; step++) {
    seed = seed * 1664525 + 1013904223;
    unsigned n = (seed >> 8) % LIVE, stream = (seed >> 16) % STREAMS, kind = seed >> 28;
    if (!live[n].at) {
      size_t bytes = kind < 6 ? 1 + seed % 9000 : kind < 12 ? 4096 * (1 + seed % 40) : 1 + seed % 6000000;
      succeed(cudaMallocFromPoolAsync((void **)&live[n].at, bytes, pool, streams[stream]));
      live[n].bytes = bytes;
      live[n].stream = (int)stream;
      succeed(cudaMemsetAsync(live[n].at, (int)n + 1, bytes, streams[stream]));
      used += bytes;
      for (unsigned m = 0; m < LIVE; m++)
        assert_true(m == n || !live[m].at || live[m].at + live[m].bytes <= live[n].at ||
                    live[n].at + bytes <= live[m].at);
    } else {
      unsigned char ends[2];
      succeed(cudaMemcpyAsync(&ends[0], live[n].at, 1, cudaMemcpyDeviceToHost, streams[live[n].stream]));
      succeed(cudaMemcpyAsync(&ends[1], live[n].at + live[n].bytes - 1, 1, cudaMemcpyDeviceToHost,
                              streams[live[n].stream]));
      succeed(cudaStreamSynchronize(streams[live[n].stream]));
      assert_int_equal(ends[0], n + 1);
      assert_int_equal(ends[1], n + 1);
      succeed(kind == 0 ? cudaFree(live[n].at) : cudaFreeAsync(live[n].at, streams[live[n].stream]));
      used -= live[n].bytes;
      live[n].at = NULL;
    }
    assert_int_equal(number(pool, USED), used);
    assert_true(number(pool, RESERVED) >= used);
    if (kind == 15) succeed(cudaMemPoolTrimTo(pool, used));
    if (kind == 14 && step % 8 == 0) succeed(cudaDeviceSynchronize());
  }
  for (unsigned n = 0; n < LIVE; n++)
    if (live[n].at) succeed(cudaFreeAsync(live[n].at, streams[live[n].stream]));
  succeed(cudaDeviceSynchronize());
  succeed(cudaMemPoolTrimTo(pool, 0));
  assert_int_equal(number(pool, RESERVED), 0);
  succeed(cudaMemPoolDestroy(pool));
  for (int i = 0; i < STREAMS; i++) succeed(cudaStreamDestroy(streams[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_default_pool),
                                     cmocka_unit_test(pools_of_ones_own),
                                     cmocka_unit_test(reuse_follows_streams),
                                     cmocka_unit_test(limits),
                                     cmocka_unit_test(an_event_knows_what_was_before_it),
                                     cmocka_unit_test(reuse_follows_the_default_stream),
                                     cmocka_unit_test(blocks_are_divided),
                                     cmocka_unit_test(parts_of_two_streams),
                                     cmocka_unit_test(no_room),
                                     cmocka_unit_test(against_a_list),
                                     cmocka_unit_test(facts_of_pools)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
