/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that wait for what the thread that launched them does later, and what comes behind them: the same cases on
 * the engine's own clock (test_behind.c) and in parallel with simulations (test_behind_simulated.c). */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "driver/engine/engine_internal.h"
#include "program.h"

/* wait_for: until *latch == round, then *answer = round, for rounds 1 to `rounds`; with rounds == 0 for ever, with
 * `wrong` an access to nowhere then. put: *to = value. meet: *own counts to 5, each time until *other has come as far;
 * through its parameters' addresses, so that they lie in memory. */
static const char text[] = PTX_HEAD
    ".visible .entry wait_for(.param .u64 latch, .param .u64 answer, .param .u32 rounds, .param .u64 wrong)\n{\n"
    ".reg .b32 %r<5>;\n.reg .b64 %rd<4>;\n.reg .pred %p;\n"
    "ld.param.u64 %rd1, [latch];\nld.param.u64 %rd2, [answer];\nld.param.u32 %r1, [rounds];\nld.param.u64 %rd3, [wrong];\nmov.u32 %r2, 1;\n"
    "again:\nld.volatile.global.u32 %r3, [%rd1];\nsetp.ne.u32 %p, %r3, %r2;\n@%p bra again;\n"
    "st.volatile.global.u32 [%rd2], %r2;\nsetp.eq.u64 %p, %rd3, 0;\n@%p bra right;\nst.global.u32 [%rd3], %r2;\n"
    "right:\nadd.u32 %r2, %r2, 1;\nsetp.le.u32 %p, %r2, %r1;\n@%p bra again;\nret;\n}\n"
    ".visible .entry put(.param .u64 to, .param .u32 value)\n{\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n"
    "ld.param.u64 %rd1, [to];\nld.param.u32 %r1, [value];\nst.global.u32 [%rd1], %r1;\nret;\n}\n"
    ".visible .entry meet(.param .u64 own, .param .u64 other)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<5>;\n.reg .pred %p;\n"
    "mov.b64 %rd3, own;\ncvta.param.u64 %rd4, %rd3;\nmov.u32 %r1, 0;\n"
    "again:\nld.u64 %rd1, [%rd4];\nld.param.u64 %rd2, [other];\nadd.u32 %r1, %r1, 1;\nst.volatile.global.u32 [%rd1], %r1;\n"
    "wait:\nld.volatile.global.u32 %r2, [%rd2];\nsetp.lt.u32 %p, %r2, %r1;\n@%p bra wait;\n"
    "setp.lt.u32 %p, %r1, 5;\n@%p bra again;\nret;\n}\n";
STUB(wait_for);
STUB(put);
STUB(meet);

static cudaStream_t blocking, apart;              /* `apart` does not wait for the default stream */
static volatile uint32_t *latch, *answer, *words; /* pinned */
static uint32_t *device, *managed;
static cudaEvent_t event;

static void prepare(void) {
  void **handle = register_ptx((const char *const[]){text}, 1);
  register_kernel(handle, wait_for, "wait_for");
  register_kernel(handle, put, "put");
  register_kernel(handle, meet, "meet");
}

static int make(void **state) {
  (void)state;
  succeed(cudaStreamCreate(&blocking));
  succeed(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));
  succeed(cudaHostAlloc((void **)&latch, 64, 0));
  succeed(cudaHostAlloc((void **)&answer, 64, 0));
  succeed(cudaHostAlloc((void **)&words, 64, 0));
  succeed(cudaMalloc((void **)&device, 64));
  succeed(cudaMemset(device, 0, 64));
  succeed(cudaMallocManaged((void **)&managed, 64, cudaMemAttachGlobal));
  succeed(cudaEventCreate(&event));
  *latch = *answer = 0;
  memset((void *)words, 0, 64);
  return 0;
}

static int unmake(void **state) {
  (void)state;
  return cudaDeviceReset() != cudaSuccess;
}

static void start_waiting(cudaStream_t stream, volatile uint32_t *on, uint32_t rounds, uint64_t wrong) {
  void *arguments[] = {&on, &answer, &rounds, &wrong};
  succeed(cudaLaunchKernel(wait_for, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, stream));
}

static void start_put(cudaStream_t stream, const volatile uint32_t *to, uint32_t value) {
  void *arguments[] = {&to, &value};
  succeed(cudaLaunchKernel(put, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, stream));
}

static void pause_ms(long ms) {
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void *release_later(void *unused) {
  pause_ms(200);
  *latch = 1;
  return unused;
}

static void launch_returns(void **state) {
  (void)state;
  start_waiting(blocking, latch, 1, 0);
  expect(cudaStreamQuery(blocking), cudaErrorNotReady);
  succeed(cudaStreamQuery(apart));
  pause_ms(20);
  assert_int_equal(*answer, 0);
  *latch = 1;
  succeed(cudaStreamSynchronize(blocking));
  assert_int_equal(*answer, 1);
  succeed(cudaStreamQuery(blocking));
}

/* Without a call of the host's between: the kernel goes on by itself. */
static void host_and_kernel_take_turns(void **state) {
  (void)state;
  start_waiting(apart, latch, 20, 0);
  for (uint32_t round = 1; round <= 20; round++) {
    *latch = round;
    for (int i = 0; i < 10000 && *answer != round; i++) pause_ms(1);
    assert_int_equal(*answer, round);
  }
  succeed(cudaDeviceSynchronize());
}

static uint32_t host_saw;
static void look(void *unused) {
  (void)unused;
  host_saw = words[0];
}

static void what_is_behind_keeps_its_order(void **state) {
  (void)state;
  start_waiting(blocking, latch, 1, 0);
  start_put(blocking, device, 7);
  succeed(cudaMemsetAsync(device + 1, 3, 4, blocking));
  succeed(cudaMemcpyAsync((void *)words, device, 8, cudaMemcpyDeviceToHost, blocking));
  succeed(cudaLaunchHostFunc(blocking, look, NULL));
  start_put(blocking, words, 9);
  succeed(cudaMemPrefetchAsync(managed, 64, (cudaMemLocation){.type = cudaMemLocationTypeHost}, 0, blocking));
  succeed(cudaEventRecord(event, blocking));
  expect(cudaEventQuery(event), cudaErrorNotReady);
  /* as if at once */
  expect(cudaMemcpyAsync(device, (void *)words, 1 << 20, cudaMemcpyHostToDevice, blocking), cudaErrorInvalidValue);
  assert_int_equal(words[0], 0);
  *latch = 1;
  succeed(cudaEventSynchronize(event));
  assert_int_equal(host_saw, 7);
  assert_int_equal(words[0], 9);
  assert_int_equal(words[1], 0x03030303);
  succeed(cudaEventQuery(event));
}

static void other_streams_go_on(void **state) {
  (void)state;
  start_waiting(blocking, latch, 1, 0);
  start_put(apart, words, 5);
  succeed(cudaMemcpyAsync(device, (void *)words, 4, cudaMemcpyHostToDevice, apart));
  cudaError_t error;
  while ((error = cudaStreamQuery(apart)) == cudaErrorNotReady) continue;
  succeed(error);
  succeed(cudaStreamSynchronize(apart));
  assert_int_equal(words[0], 5);
  assert_int_equal(*answer, 0);
  *latch = 1;
  succeed(cudaDeviceSynchronize());
  assert_int_equal(*answer, 1);
}

/* What a program may need before it lets the kernel go: memory, and what a kernel is. */
static void memory_and_questions(void **state) {
  (void)state;
  start_waiting(apart, latch, 1, 0);
  uint32_t *more;
  size_t available, total;
  cudaFuncAttributes attributes;
  succeed(cudaMalloc((void **)&more, 1 << 20));
  succeed(cudaMemGetInfo(&available, &total));
  succeed(cudaFuncGetAttributes(&attributes, put));
  start_put(blocking, more, 4);
  succeed(cudaMemcpy((void *)words, more, 4, cudaMemcpyDeviceToHost));
  assert_int_equal(words[0], 4);
  assert_int_equal(*answer, 0);
  *latch = 1;
  succeed(cudaFree(more));
  assert_int_equal(*answer, 1);
}

/* What is asked for of events that are over, or are not, waits for no kernel. */
static void elapsed_time_is_a_question(void **state) {
  (void)state;
  cudaEvent_t before, between, after;
  float ms = -1;
  succeed(cudaEventCreate(&before));
  succeed(cudaEventCreate(&between));
  succeed(cudaEventCreate(&after));
  succeed(cudaEventRecord(before, blocking));
  start_waiting(blocking, latch, 1, 0);
  succeed(cudaEventRecord(after, blocking)); /* its first */
  expect(cudaEventElapsedTime(&ms, before, after), cudaErrorNotReady);
  expect(cudaEventElapsedTime(&ms, after, before), cudaErrorNotReady);
  expect(cudaEventElapsedTime(&ms, before, event), cudaErrorInvalidResourceHandle); /* never recorded */
  succeed(cudaEventRecord(event, apart));
  start_put(apart, device, 1);
  succeed(cudaEventRecord(between, apart));
  succeed(cudaEventSynchronize(between));
  succeed(cudaEventElapsedTime(&ms, event, between));
  assert_true(ms > 0 && ms < 1000);
  assert_int_equal(*answer, 0);
  *latch = 1;
  succeed(cudaEventSynchronize(after));
  succeed(cudaEventElapsedTime(&ms, before, after));
  assert_true(ms > 0);
  succeed(cudaEventDestroy(before));
  succeed(cudaEventDestroy(between));
  succeed(cudaEventDestroy(after));
}

static void one_kernel_waits_for_another(void **state) {
  (void)state;
  start_waiting(blocking, device, 1, 0);
  start_put(apart, device, 1);
  succeed(cudaDeviceSynchronize());
  assert_int_equal(*answer, 1);
}

/* The default stream waits for `blocking`, and what is put on other blocking streams afterwards waits for it. */
static void default_stream_waits(void **state) {
  (void)state;
  cudaStream_t third;
  succeed(cudaStreamCreate(&third));
  start_waiting(blocking, latch, 1, 0);
  start_put(third, words, 1);
  assert_int_equal(words[0], 1);
  start_put(NULL, words + 1, 2);
  start_put(third, words + 2, 3);
  pause_ms(20);
  assert_int_equal(words[1], 0);
  assert_int_equal(words[2], 0);
  *latch = 1;
  succeed(cudaStreamSynchronize(third));
  assert_int_equal(words[1], 2);
  assert_int_equal(words[2], 3);
}

static void events_carry_it_on(void **state) {
  (void)state;
  start_waiting(blocking, latch, 1, 0);
  succeed(cudaEventRecord(event, blocking));
  start_put(apart, words, 1);
  succeed(cudaStreamWaitEvent(apart, event, 0));
  start_put(apart, words + 1, 2);
  assert_int_equal(words[0], 1);
  assert_int_equal(words[1], 0);
  *latch = 1;
  succeed(cudaStreamSynchronize(apart));
  assert_int_equal(*answer, 1);
  assert_int_equal(words[1], 2);
}

/* Attributes of a launch: one event comes when it has begun, another one when it has ended. */
static void events_of_a_launch(void **state) {
  (void)state;
  cudaEvent_t begun;
  float since;
  void *arguments[] = {&latch, &answer, &(uint32_t){1}, &(uint64_t){0}};
  succeed(cudaEventCreate(&begun));
  expect(cudaEventElapsedTime(&since, begun, begun), cudaErrorInvalidResourceHandle);
  cudaLaunchAttribute attributes[2] = {{.id = cudaLaunchAttributeLaunchCompletionEvent, .val.launchEvent.event = begun},
                                       {.id = cudaLaunchAttributeProgrammaticEvent, .val.launchEvent.event = event}};
  cudaLaunchConfig_t config = {
      .gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}, .stream = blocking, .attrs = attributes, .numAttrs = 2};
  succeed(cudaLaunchKernelExC(&config, wait_for, arguments));
  succeed(cudaEventElapsedTime(&since, begun, begun)); /* it was recorded */
  expect(cudaEventQuery(event), cudaErrorNotReady);
  succeed(cudaStreamWaitEvent(apart, event, 0));
  start_put(apart, words, 1);
  assert_int_equal(words[0], 0);
  *latch = 1;
  succeed(cudaStreamSynchronize(apart));
  assert_int_equal(*answer, 1);
  assert_int_equal(words[0], 1);
  succeed(cudaEventQuery(event));
  attributes[1].val.launchEvent.event = NULL;
  expect(cudaLaunchKernelExC(&config, wait_for, arguments), cudaErrorInvalidResourceHandle);
  succeed(cudaEventDestroy(begun));
}

/* All workers have blocks that poll: they stop whenever the host wants the device. */
static void many_blocks(void **state) {
  (void)state;
  uint32_t rounds = 1;
  uint64_t wrong = 0;
  void *arguments[] = {&latch, &answer, &rounds, &wrong};
  succeed(cudaLaunchKernel(wait_for, (dim3){200, 1, 1}, (dim3){64, 1, 1}, arguments, 0, apart));
  for (uint32_t i = 1; i <= 100; i++) {
    start_put(blocking, words, i);
    assert_int_equal(words[0], i);
  }
  assert_int_equal(*answer, 0);
  *latch = 1;
  succeed(cudaStreamSynchronize(apart));
  assert_int_equal(*answer, 1);
}

/* Calls that wait, and those that are not about streams, end when another thread has let the kernel go. */
static void calls_that_wait(void **state) {
  (void)state;
  pthread_t thread;
  start_waiting(blocking, latch, 1, 0);
  assert_int_equal(pthread_create(&thread, NULL, release_later, NULL), 0);
  uint32_t pageable = 1;
  succeed(cudaMemcpyAsync(&pageable, device, 4, cudaMemcpyDeviceToHost, blocking));
  assert_int_equal(pageable, 0);
  assert_int_equal(*answer, 1);
  pthread_join(thread, NULL);
  *latch = *answer = 0;
  start_waiting(blocking, latch, 1, 0);
  assert_int_equal(pthread_create(&thread, NULL, release_later, NULL), 0);
  succeed(cudaFree(device));
  assert_int_equal(*answer, 1);
  pthread_join(thread, NULL);
}

/* ---- behind a host function of another stream, by an event whose wait is queued ---- */

static sem_t go;
static atomic_int gone_on, saw;
static atomic_bool returned;

static void wait_for_go(void *unused) {
  (void)unused;
  while (sem_wait(&go)) {}
  gone_on = 1;
}

static bool is_waited_for(void) {
  pthread_mutex_lock(&ff_engine.lock);
  const bool waits = ff_engine.host_waiting > 0;
  pthread_mutex_unlock(&ff_engine.lock);
  return waits;
}

static bool is_over(void) {
  pthread_mutex_lock(&ff_engine.lock);
  const bool over = !ff_engine.given;
  pthread_mutex_unlock(&ff_engine.lock);
  return over;
}

static bool a_lane_is_waited_for(void) {
  pthread_mutex_lock(&ff_engine.lock);
  const bool waits = ff_engine.waiting > 0;
  pthread_mutex_unlock(&ff_engine.lock);
  return waits;
}

static void hold_behind(cudaStream_t other) {
  gone_on = saw = 0;
  returned = false;
  *latch = 0;
  start_waiting(apart, latch, 1, 0);
  succeed(cudaLaunchHostFunc(other, wait_for_go, NULL));
  succeed(cudaEventRecord(event, other));
  succeed(cudaStreamWaitEvent(apart, event, 0));
}

static cudaEvent_t later;
static uint32_t word;
static void put_behind(void) { start_put(apart, words, 5); }
static void set_behind(void) { succeed(cudaMemsetAsync(device, 5, 4, apart)); }
static void copy_behind(void) { succeed(cudaMemcpyAsync((void *)words, device, 4, cudaMemcpyDeviceToHost, apart)); }
static void hint_behind(void) {
  succeed(cudaMemPrefetchAsync(managed, 64, (cudaMemLocation){.type = cudaMemLocationTypeHost}, 0, apart));
}
static void record_behind(void) { succeed(cudaEventRecord(later, apart)); }

static void let_go(void) {
  assert_int_equal(gone_on, 0);
  assert_int_equal(sem_post(&go), 0);
}

/* The operation is queued: its lane waits with it. */
static void expect_queued_behind(cudaStream_t other, void (*call)(void)) {
  words[0] = 0;
  hold_behind(other);
  call();
  *latch = 1;
  while (!is_waited_for() && !is_over()) pause_ms(1);
  assert_false(is_over());
  assert_int_equal(words[0], 0);
  let_go();
  succeed(cudaStreamSynchronize(apart));
  assert_int_equal(gone_on, 1);
  assert_int_equal(words[0], call == put_behind ? 5 : call == copy_behind ? 0x05050505 : 0);
}

static void synchronise_stream(void) { succeed(cudaStreamSynchronize(apart)); }
static void synchronise_event(void) { succeed(cudaEventSynchronize(later)); }
static void copy_to_pageable(void) { succeed(cudaMemcpyAsync(&word, device, 4, cudaMemcpyDeviceToHost, apart)); }

static void (*in_thread)(void);
static void *call_in_thread(void *unused) {
  in_thread();
  saw = gone_on;
  returned = true;
  return unused;
}

/* The call waits for the lane, and then for the host function. */
static void expect_call_behind(cudaStream_t other, void (*call)(void)) {
  pthread_t thread;
  hold_behind(other);
  record_behind();
  in_thread = call;
  assert_int_equal(pthread_create(&thread, NULL, call_in_thread, NULL), 0);
  while (!a_lane_is_waited_for()) pause_ms(1);
  *latch = 1;
  while (!is_waited_for() && !returned) pause_ms(1);
  assert_false(returned);
  let_go();
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(saw, 1);
  succeed(cudaDeviceSynchronize());
}

static void a_queued_wait_carries_host_functions_on(void **state) {
  (void)state;
  cudaStream_t other;
  const uint32_t grace = engine_grace_ms;
  void (*const queued[])(void) = {put_behind, set_behind, copy_behind, hint_behind};
  void (*const calls[])(void) = {synchronise_stream, synchronise_event, copy_to_pageable};
  engine_grace_ms = 0; /* so that only what has to wait waits */
  assert_int_equal(sem_init(&go, 0, 0), 0);
  succeed(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  succeed(cudaEventCreate(&later));
  for (size_t i = 0; i < sizeof queued / sizeof *queued; i++) expect_queued_behind(other, queued[i]);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) expect_call_behind(other, calls[i]);
  succeed(cudaEventDestroy(later));
  succeed(cudaEventCreateWithFlags(&later, cudaEventInterprocess | cudaEventDisableTiming));
  expect_queued_behind(other, record_behind);
  engine_grace_ms = grace;
  sem_destroy(&go);
}

/* ---- several kernels of one device ---- */

static void start_meeting(cudaStream_t stream, uint32_t self, uint32_t with) {
  volatile uint32_t *one = words + self, *other = words + with;
  void *arguments[] = {&one, &other};
  succeed(cudaLaunchKernel(meet, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, stream));
}

/* Each waits for the next one, the last one for the first; of `count` streams all but the last one begin at once. */
static void meet_in_a_ring(uint32_t count) {
  cudaStream_t streams[8];
  for (uint32_t i = 0; i < count; i++) succeed(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
  for (uint32_t i = 0; i < count; i++) start_meeting(streams[i], i, (i + 1) % count);
  for (uint32_t i = 0; i < count; i++) succeed(cudaStreamSynchronize(streams[i]));
  for (uint32_t i = 0; i < count; i++) assert_int_equal(words[i], 5);
  for (uint32_t i = 0; i < count; i++) succeed(cudaStreamDestroy(streams[i]));
}
static void two_kernels_meet(void **state) {
  (void)state;
  meet_in_a_ring(2);
}
static void eight_kernels_meet(void **state) {
  (void)state;
  meet_in_a_ring(8);
}

/* The second one's queue has what the first one waits for; the default stream comes after both, and what comes after
 * that after it. */
static void queues_do_not_wait_for_each_other(void **state) {
  (void)state;
  cudaStream_t third;
  succeed(cudaStreamCreate(&third));
  start_waiting(blocking, words, 1, 0);
  start_waiting(third, latch, 1, 0);
  start_put(third, words, 1);
  start_put(NULL, words + 1, 2);
  succeed(cudaEventRecord(event, NULL));
  start_put(blocking, words + 1, 3);
  succeed(cudaStreamWaitEvent(apart, event, 0));
  start_put(apart, words + 2, 4);
  pause_ms(20);
  assert_int_equal(words[0] | words[1] | words[2], 0);
  *latch = 1;
  succeed(cudaDeviceSynchronize());
  assert_int_equal(words[0], 1);
  assert_int_equal(words[1], 3);
  assert_int_equal(words[2], 4);
}

/* Two kernels of different streams polled; one is let go, and what is behind it is carried out while the other
 * waits. */
static void one_of_two_ends(void **state) {
  (void)state;
  start_waiting(blocking, latch, 1, 0);
  start_waiting(apart, latch + 1, 1, 0);
  start_put(apart, words, 1);
  latch[1] = 1;
  succeed(cudaStreamSynchronize(apart));
  assert_int_equal(words[0], 1);
  expect(cudaStreamQuery(blocking), cudaErrorNotReady);
  *latch = 1;
  succeed(cudaStreamSynchronize(blocking));
  latch[1] = 0;
}

int cuInit(unsigned), cuModuleLoadData(void **, const void *), cuModuleUnload(void *),
    cuModuleGetFunction(void **, void *, const char *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

/* A module goes when its kernels are over, also one that is queued. */
static void a_module_stays_until_then(void **state) {
  (void)state;
  void *module, *waits, *puts, *to = (void *)(uintptr_t)words;
  uint32_t rounds = 1, value = 6;
  uint64_t wrong = 0;
  pthread_t thread;
  assert_int_equal(cuInit(0), 0);
  assert_int_equal(cuModuleLoadData(&module, text), 0);
  assert_int_equal(cuModuleGetFunction(&waits, module, "wait_for"), 0);
  assert_int_equal(cuModuleGetFunction(&puts, module, "put"), 0);
  assert_int_equal(
      cuLaunchKernel(waits, 1, 1, 1, 1, 1, 1, 0, apart, (void *[]){&latch, &answer, &rounds, &wrong}, NULL), 0);
  assert_int_equal(cuLaunchKernel(puts, 1, 1, 1, 1, 1, 1, 0, apart, (void *[]){&to, &value}, NULL), 0);
  assert_int_equal(pthread_create(&thread, NULL, release_later, NULL), 0);
  assert_int_equal(cuModuleUnload(module), 0);
  assert_int_equal(*answer, 1);
  assert_int_equal(words[0], 6);
  pthread_join(thread, NULL);
}

/* So many can wait, and no more: an error, and not a hang. */
static void too_many_kernels(void **state) {
  (void)state;
  cudaStream_t streams[EXEC_GIVEN_MAX + 1];
  void *arguments[] = {&latch, &answer, &(uint32_t){1}, &(uint64_t){0}};
  for (uint32_t i = 0; i <= EXEC_GIVEN_MAX; i++) {
    succeed(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    cudaError_t error = cudaLaunchKernel(wait_for, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, streams[i]);
    if (i < EXEC_GIVEN_MAX) succeed(error);
    else expect(error, cudaErrorLaunchOutOfResources);
  }
  *latch = 1;
  succeed(cudaDeviceSynchronize());
  start_waiting(apart, latch, 1, 0); /* all lanes are free again */
  succeed(cudaDeviceSynchronize());
}

static void *destroy_then_release(void *unused) {
  (void)unused;
  pause_ms(100);
  succeed(cudaEventDestroy(event));
  *latch = 1;
  return NULL;
}

/* All lanes are taken, so that what comes behind the legacy stream waits in its call. */
static void take_lanes(void) {
  cudaStream_t stream;
  *latch = 0;
  start_waiting(NULL, latch, 1, 0);
  for (uint32_t i = 1; i < EXEC_GIVEN_MAX; i++) {
    succeed(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    start_waiting(stream, latch, 1, 0);
  }
}

/* And `event` is destroyed then. */
static void take_all_lanes(pthread_t *thread) {
  take_lanes();
  assert_int_equal(pthread_create(thread, NULL, destroy_then_release, NULL), 0);
}

static void an_event_destroyed_meanwhile(void **state) {
  (void)state;
  pthread_t thread;
  take_all_lanes(&thread);
  expect(cudaEventRecord(event, blocking), cudaErrorInvalidResourceHandle);
  pthread_join(thread, NULL);
  succeed(cudaDeviceSynchronize());
  succeed(cudaEventCreate(&event));
  succeed(cudaEventRecord(event, apart));
  take_all_lanes(&thread);
  expect(cudaStreamWaitEvent(blocking, event, 0), cudaErrorInvalidResourceHandle);
  pthread_join(thread, NULL);
  succeed(cudaDeviceSynchronize());
}

static void *destroy_stream(void *stream) {
  succeed(cudaStreamDestroy(stream));
  return NULL;
}

/* Another thread waits in cudaStreamDestroy when this one begins to wait: either may be the first to go on. */
static void destroy_meanwhile(cudaStream_t stream, pthread_t threads[2]) {
  assert_int_equal(pthread_create(&threads[0], NULL, destroy_stream, stream), 0);
  pause_ms(100);
  assert_int_equal(pthread_create(&threads[1], NULL, release_later, NULL), 0);
}

static void was_destroyed_or_not(cudaError_t error, const pthread_t threads[2]) {
  if (error) expect(error, cudaErrorContextIsDestroyed);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  succeed(cudaDeviceSynchronize());
}

static void a_stream_destroyed_meanwhile(void **state) {
  (void)state;
  pthread_t threads[2];
  cudaStream_t stream;
  uint32_t pageable[4] = {0};
  succeed(cudaStreamCreate(&stream));
  start_waiting(stream, latch, 1, 0);
  destroy_meanwhile(stream, threads);
  was_destroyed_or_not(cudaMemcpyAsync(device, pageable, sizeof pageable, cudaMemcpyHostToDevice, stream), threads);
  for (int prefetches = 0; prefetches < 2; prefetches++) {
    succeed(cudaStreamCreate(&stream));
    take_lanes();
    destroy_meanwhile(stream, threads);
    void *arguments[] = {&words, &(uint32_t){1}};
    was_destroyed_or_not(
        prefetches ? cudaMemPrefetchAsync(managed, 64, (cudaMemLocation){cudaMemLocationTypeDevice, 0}, 0, stream)
                   : cudaLaunchKernel(put, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, stream),
        threads);
  }
}

static volatile uint32_t *second_latch; /* pinned */

static volatile pid_t waiter; /* the thread that waits; 0: it has not begun */

static void *synchronise(void *stream) {
  waiter = gettid();
  const cudaError_t error = cudaStreamSynchronize(stream);
  if (error) expect(error, cudaErrorContextIsDestroyed);
  return NULL;
}

static bool sleeps(pid_t thread) {
  char path[64], state = 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
  FILE *file = fopen(path, "r");
  if (file) assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1), fclose(file);
  return state == 'S';
}

/* Once the other thread waits: it has slept whenever it was looked at for a while. */
static void *release_soon(void *unused) {
  while (!waiter) pause_ms(1);
  for (int slept = 0; slept < 20; pause_ms(2)) slept = sleeps(waiter) ? slept + 1 : 0;
  *latch = 1;
  return unused;
}

/* A call that waits for a stream that is destroyed meanwhile does not wait for one that is made at its address. (The
 * allocator gives a piece again soon if its cache for this thread is full of others; and either thread may be the first
 * to go on, so this is tried some times.) */
static void a_stream_made_there_meanwhile(void **state) {
  enum { MANY = 16, ROUNDS = 12 };
  (void)state;
  int reused = 0;
  succeed(cudaHostAlloc((void **)&second_latch, 64, 0));
  for (int round = 0; round < ROUNDS; round++) {
    pthread_t waiting, releasing;
    cudaStream_t stream, others[MANY], there = NULL;
    struct timespec until;
    *latch = *second_latch = 0;
    waiter = 0;
    for (int i = 0; i < MANY; i++) succeed(cudaStreamCreateWithFlags(&others[i], cudaStreamNonBlocking));
    succeed(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < MANY; i += 2) succeed(cudaStreamDestroy(others[i]));
    start_waiting(stream, latch, 1, 0);
    assert_int_equal(pthread_create(&waiting, NULL, synchronise, stream), 0);
    assert_int_equal(pthread_create(&releasing, NULL, release_soon, NULL), 0);
    succeed(cudaStreamDestroy(stream));
    for (int i = 0; i < MANY && there != stream; i++) succeed(cudaStreamCreateWithFlags(&there, cudaStreamNonBlocking));
    reused += there == stream;
    start_waiting(there, second_latch, 1, 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    const int late = pthread_timedjoin_np(waiting, NULL, &until);
    *second_latch = 1;
    assert_int_equal(late, 0);
    pthread_join(releasing, NULL);
    succeed(cudaDeviceSynchronize());
  }
  print_message("streams with the address of one that was: %d of %d\n", reused, ROUNDS);
}

static void faults_are_met_later(void **state) {
  (void)state;
  start_waiting(blocking, latch, 1, 16);
  start_put(blocking, words, 1);
  *latch = 1;
  expect(cudaStreamSynchronize(blocking), cudaErrorIllegalAddress);
  assert_int_equal(words[0], 0);
  expect(cudaMalloc((void **)&device, 4), cudaErrorIllegalAddress);
}

static int run_behind_cases(void) {
  exec_give_way_ms = 5;
  /* A program that ends while its kernel waits: at once, not after ten seconds. */
  pid_t child = fork();
  if (!child) {
    prepare();
    make(NULL);
    start_waiting(blocking, latch, 1, 0);
    start_put(blocking, words, 1);
    exit(7);
  }
  int status = -1;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7) {
    fprintf(stderr, "the program that ends while its kernel waits: status %d\n", status);
    return 1;
  }
  prepare();
#define CASE(name) cmocka_unit_test_setup_teardown(name, make, unmake)
  const struct CMUnitTest tests[] = {
      CASE(launch_returns),
      CASE(host_and_kernel_take_turns),
      CASE(what_is_behind_keeps_its_order),
      CASE(other_streams_go_on),
      CASE(memory_and_questions),
      CASE(elapsed_time_is_a_question),
      CASE(one_kernel_waits_for_another),
      CASE(default_stream_waits),
      CASE(events_carry_it_on),
      CASE(events_of_a_launch),
      CASE(many_blocks),
      CASE(calls_that_wait),
      CASE(a_queued_wait_carries_host_functions_on),
      CASE(faults_are_met_later),
      CASE(two_kernels_meet),
      CASE(eight_kernels_meet),
      CASE(queues_do_not_wait_for_each_other),
      CASE(one_of_two_ends),
      CASE(a_module_stays_until_then),
      CASE(too_many_kernels),
      CASE(an_event_destroyed_meanwhile),
      CASE(a_stream_destroyed_meanwhile),
      CASE(a_stream_made_there_meanwhile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
