/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events, host functions and virtual time: the same cases on the engine's own clock (test_stream.c) and on a
 * simulation's (test_stream_simulated.c). */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "driver/driver_api/libcuda.h"
#include "driver/engine/engine_internal.h"
#include "driver/runtime_api/cudart_graph.h"
#include "program.h"

static void handles(void **state) {
  (void)state;
  cudaStream_t stream;
  unsigned flags;
  int priority, least, greatest;
  expect(cudaStreamCreate(NULL), cudaErrorInvalidValue);
  expect(cudaStreamCreateWithFlags(&stream, 2), cudaErrorInvalidValue);
  expect(cudaStreamDestroy(NULL), cudaErrorInvalidResourceHandle);
  expect(cudaStreamSynchronize((cudaStream_t)(uintptr_t)64), cudaErrorInvalidResourceHandle);
  succeed(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  assert_true(greatest < least);
  succeed(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 10));
  succeed(cudaStreamGetFlags(stream, &flags));
  assert_int_equal(flags, cudaStreamNonBlocking);
  succeed(cudaStreamGetPriority(stream, &priority));
  assert_int_equal(priority, greatest); /* cut to the range */
  expect(cudaStreamGetFlags(stream, NULL), cudaErrorInvalidValue);
  succeed(cudaStreamSynchronize(stream));
  succeed(cudaStreamDestroy(stream));
  expect(cudaStreamDestroy(stream), cudaErrorContextIsDestroyed);
  expect(cudaStreamQuery(stream), cudaErrorContextIsDestroyed);
  succeed(cudaStreamSynchronize(cudaStreamLegacy));
  succeed(cudaStreamSynchronize(cudaStreamPerThread));
  succeed(cudaStreamSynchronize_ptsz(NULL));
}

/* What ROCm's hip-tests (87c8a041, catch/unit) demand of NVIDIA's platform: 709, whichever call. */
static void destroyed(void **state) {
  (void)state;
  cudaStream_t stream, capturing, next;
  cudaEvent_t event;
  cudaGraph_t graph;
  int status;
  char host[4] = {0}, *device;
  succeed(cudaMalloc((void **)&device, sizeof host));
  succeed(cudaEventCreate(&event));
  succeed(cudaStreamCreate(&capturing));
  succeed(cudaStreamBeginCapture(capturing, 0));
  succeed(cudaStreamDestroy(capturing));
  expect(cudaStreamEndCapture(capturing, &graph), cudaErrorContextIsDestroyed);
  succeed(cudaStreamCreate(&stream));
  succeed(cudaStreamDestroy(stream));
  expect(cudaStreamSynchronize(stream), cudaErrorContextIsDestroyed);
  expect(cudaStreamIsCapturing(stream, &status), cudaErrorContextIsDestroyed);
  expect(cudaStreamBeginCapture(stream, 0), cudaErrorContextIsDestroyed);
  expect(cudaMemcpyAsync(device, host, sizeof host, cudaMemcpyHostToDevice, stream), cudaErrorContextIsDestroyed);
  expect(cudaMemsetAsync(device, 0, sizeof host, stream), cudaErrorContextIsDestroyed);
  expect(cudaEventRecord(event, stream), cudaErrorContextIsDestroyed);
  expect(cudaStreamWaitEvent(stream, event, 0), cudaErrorContextIsDestroyed);
  succeed(cudaStreamCreate(&next)); /* may get the address of one that was destroyed */
  succeed(cudaStreamQuery(next));
  expect(cudaEventRecord(NULL, next), cudaErrorInvalidResourceHandle);
  succeed(cudaStreamDestroy(next));
  expect(cudaStreamQuery(next), cudaErrorContextIsDestroyed);
  expect(cudaStreamQuery((cudaStream_t)host), cudaErrorInvalidResourceHandle); /* it never was one */
  expect(cudaStreamQuery((cudaStream_t)event), cudaErrorInvalidResourceHandle);
  succeed(cudaEventDestroy(event));
  succeed(cudaFree(device));
}

static void many_streams(void **state) {
  (void)state;
  enum { COUNT = 500 };
  cudaStream_t streams[COUNT];
  for (int i = 0; i < COUNT; i++) succeed(cudaStreamCreate(&streams[i]));
  for (int i = 0; i < COUNT; i += 2) succeed(cudaStreamDestroy(streams[i]));
  for (int i = 1; i < COUNT; i += 2) succeed(cudaStreamQuery(streams[i]));
  for (int i = 1; i < COUNT; i += 2) succeed(cudaStreamDestroy(streams[i]));
}

static void events(void **state) {
  (void)state;
  cudaEvent_t a, b, untimed;
  float ms;
  expect(cudaEventCreate(NULL), cudaErrorInvalidValue);
  expect(cudaEventCreateWithFlags(&a, 16), cudaErrorInvalidValue);
  expect(cudaEventCreateWithFlags(&a, cudaEventInterprocess), cudaErrorInvalidValue);
  expect(cudaEventDestroy(NULL), cudaErrorInvalidResourceHandle);
  expect(cudaEventRecord(NULL, NULL), cudaErrorInvalidResourceHandle);
  succeed(cudaEventCreate(&a));
  succeed(cudaEventCreate(&b));
  succeed(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  succeed(cudaEventQuery(a)); /* never recorded: nothing to wait for */
  succeed(cudaEventSynchronize(a));
  succeed(cudaStreamWaitEvent(NULL, a, 0));
  expect(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle);
  succeed(cudaEventRecord(a, NULL));
  expect(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle);
  succeed(cudaEventRecord(b, NULL));
  succeed(cudaEventRecord(untimed, NULL));
  succeed(cudaEventSynchronize(b));
  expect(cudaEventElapsedTime(NULL, a, b), cudaErrorInvalidValue);
  expect(cudaEventElapsedTime(&ms, a, untimed), cudaErrorInvalidResourceHandle);
  expect(cudaEventElapsedTime(&ms, NULL, b), cudaErrorInvalidResourceHandle);
  succeed(cudaEventElapsedTime(&ms, a, b));
  assert_true(ms >= 0);
  succeed(cudaEventDestroy(a));
  expect(cudaEventDestroy(a), cudaErrorInvalidResourceHandle);
  expect(cudaEventQuery(a), cudaErrorInvalidResourceHandle);
  expect(cudaStreamWaitEvent(NULL, a, 0), cudaErrorInvalidResourceHandle);
  succeed(cudaEventDestroy(b));
  succeed(cudaEventDestroy(untimed));
}

static float time_of_copy(size_t bytes) {
  cudaEvent_t start, stop;
  char *device, *pinned;
  float ms = -1;
  succeed(cudaEventCreate(&start));
  succeed(cudaEventCreate(&stop));
  succeed(cudaMalloc((void **)&device, bytes));
  succeed(cudaMallocHost((void **)&pinned, bytes));
  succeed(cudaEventRecord(start, NULL));
  succeed(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, NULL));
  succeed(cudaEventRecord(stop, NULL));
  succeed(cudaEventSynchronize(stop));
  succeed(cudaEventElapsedTime(&ms, start, stop));
  succeed(cudaFree(device));
  succeed(cudaFreeHost(pinned));
  succeed(cudaEventDestroy(start));
  succeed(cudaEventDestroy(stop));
  return ms;
}

static void time_grows_with_work_and_repeats(void **state) {
  (void)state;
  float small = time_of_copy(1 << 20), large = time_of_copy(16 << 20);
  assert_true(small > 0);
  assert_true(large > 4 * small);
  assert_true(time_of_copy(16 << 20) == large);
}

static void queries_become_ready(void **state) {
  (void)state;
  cudaEvent_t event;
  cudaStream_t stream;
  char *device, *pinned;
  const size_t bytes = 8 << 20;
  succeed(cudaEventCreate(&event));
  succeed(cudaStreamCreate(&stream));
  succeed(cudaMalloc((void **)&device, bytes));
  succeed(cudaMallocHost((void **)&pinned, bytes));
  succeed(cudaStreamQuery(stream));
  succeed(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream));
  succeed(cudaEventRecord(event, stream));
  (void)cudaGetLastError();
  expect(cudaStreamQuery(stream), cudaErrorNotReady);
  expect(cudaEventQuery(event), cudaErrorNotReady);
  float time;
  expect(cudaEventElapsedTime(&time, event, event), cudaErrorNotReady);
  succeed(cudaGetLastError()); /* that something is not ready is no error */
  int polls = 0;
  while (cudaEventQuery(event) == cudaErrorNotReady) assert_true(++polls < 1000000);
  succeed(cudaEventQuery(event));
  while (cudaStreamQuery(stream) == cudaErrorNotReady) assert_true(++polls < 1000000);
  (void)cudaGetLastError();
  succeed(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream));
  expect(cudaStreamQuery(stream), cudaErrorNotReady);
  succeed(cudaStreamSynchronize(stream));
  succeed(cudaStreamQuery(stream));
  (void)cudaGetLastError();
  succeed(cudaStreamDestroy(stream));
  succeed(cudaEventDestroy(event));
  succeed(cudaFree(device));
  succeed(cudaFreeHost(pinned));
}

/* ---- host functions ---- */

typedef struct order {
  int seen[8], count;
  cudaError_t inside;
  pthread_t thread;
} order;
static order log_;

static void note(void *data) {
  log_.seen[log_.count++] = (int)(intptr_t)data;
  log_.inside = cudaStreamSynchronize(NULL);
  log_.thread = pthread_self();
}

static void note_callback(cudaStream_t stream, cudaError_t status, void *data) {
  assert_int_equal(status, cudaSuccess);
  assert_null(stream);
  note(data);
}

static void host_functions(void **state) {
  (void)state;
  memset(&log_, 0, sizeof log_);
  expect(cudaLaunchHostFunc(NULL, NULL, NULL), cudaErrorInvalidValue);
  expect(cudaStreamAddCallback(NULL, note_callback, NULL, 1), cudaErrorInvalidValue);
  succeed(cudaLaunchHostFunc(NULL, note, (void *)1));
  succeed(cudaLaunchHostFunc(NULL, note, (void *)2));
  succeed(cudaStreamAddCallback(NULL, note_callback, (void *)3, 0));
  succeed(cudaDeviceSynchronize());
  assert_int_equal(log_.count, 3);
  for (int i = 0; i < 3; i++) assert_int_equal(log_.seen[i], i + 1);
  expect(log_.inside, cudaErrorNotPermitted);
  assert_false(pthread_equal(log_.thread, pthread_self()));
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static void pass_gate(void *unused) {
  (void)unused;
  pthread_mutex_lock(&gate);
  pthread_mutex_unlock(&gate);
}

static void a_pending_host_function_is_not_ready(void **state) {
  (void)state;
  cudaStream_t stream;
  succeed(cudaStreamCreate(&stream));
  pthread_mutex_lock(&gate);
  succeed(cudaLaunchHostFunc(stream, pass_gate, NULL));
  expect(cudaStreamQuery(stream), cudaErrorNotReady);
  pthread_mutex_unlock(&gate);
  succeed(cudaStreamSynchronize(stream));
  succeed(cudaStreamQuery(stream));
  succeed(cudaStreamDestroy(stream));
  (void)cudaGetLastError();
}

static struct {
  int from; /* where stderr goes */
  char text[512];
} said;

/* Returns when something was said, or nothing for long. */
static void wait_until_said(void *unused) {
  (void)unused;
  struct pollfd one = {.fd = said.from, .events = POLLIN};
  if (poll(&one, 1, 20000) != 1) return;
  const ssize_t got = read(said.from, said.text, sizeof said.text - 1);
  said.text[got > 0 ? got : 0] = '\0';
}

static void a_host_function_that_is_waited_for_long_is_named(void **state) {
  (void)state;
  int ends[2], own = dup(STDERR_FILENO);
  const uint32_t patience = engine_patience_ms;
  assert_int_equal(pipe(ends), 0);
  said.from = ends[0];
  engine_patience_ms = 50;
  assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
  cudaError_t launched = cudaLaunchHostFunc(NULL, wait_until_said, NULL), waited = cudaDeviceSynchronize();
  dup2(own, STDERR_FILENO);
  engine_patience_ms = patience;
  succeed(launched);
  succeed(waited);
  assert_non_null(strstr(said.text, "waiting for 0.05 s for a host function"));
  for (int i = 0; i < 2; i++) close(ends[i]);
  close(own);
}

/* A host function that waits for this thread. */
static struct {
  sem_t go;
  atomic_int over;
} held;

static void wait_for_go(void *unused) {
  (void)unused;
  while (sem_wait(&held.go)) {}
  held.over = 1;
}

/* A call on another thread, and whether the host function was over when it returned. */
typedef struct behind_held {
  void *memory;
  cudaStream_t stream;
  cudaEvent_t event;
  CUcontext context;
  int seen;
  atomic_bool returned;
} behind_held;

static void set_behind(behind_held *b) { succeed(cudaMemsetAsync(b->memory, 1, 4, b->stream)); }
static void record_behind(behind_held *b) { succeed(cudaEventRecord(b->event, b->stream)); }
static void copy_behind(behind_held *b) { succeed(cudaMemcpyPeer((char *)b->memory + 4, 0, b->memory, 0, 4)); }
static void copy_in_stream(behind_held *b) {
  succeed(cudaMemcpyPeerAsync((char *)b->memory + 4, 0, b->memory, 0, 4, b->stream));
}

/* The same of the driver API. */
CUresult cuInit(unsigned), cuCtxGetCurrent(CUcontext *), cuCtxSetCurrent(CUcontext),
    cuMemcpyPeer(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t),
    cuMemcpyPeerAsync(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream);
static CUcontext current_context(void) {
  CUcontext context;
  assert_int_equal(cuInit(0), CUDA_SUCCESS);
  assert_int_equal(cuCtxGetCurrent(&context), CUDA_SUCCESS);
  return context;
}
static void driver_copy_behind(behind_held *b) {
  CUdeviceptr at = (uintptr_t)b->memory;
  assert_int_equal(cuCtxSetCurrent(b->context), CUDA_SUCCESS);
  assert_int_equal(cuMemcpyPeer(at + 4, b->context, at, b->context, 4), CUDA_SUCCESS);
}
static void driver_copy_in_stream(behind_held *b) {
  CUdeviceptr at = (uintptr_t)b->memory;
  assert_int_equal(cuCtxSetCurrent(b->context), CUDA_SUCCESS);
  assert_int_equal(cuMemcpyPeerAsync(at + 4, b->context, at, b->context, 4, b->stream), CUDA_SUCCESS);
}

static behind_held *behind;
static void (*call_behind)(behind_held *);

static void *run_behind(void *unused) {
  call_behind(behind);
  behind->seen = held.over;
  behind->returned = true;
  return unused;
}

static bool something_waits(void) {
  pthread_mutex_lock(&ff_engine.lock);
  const bool waits = ff_engine.host_waiting > 0;
  pthread_mutex_unlock(&ff_engine.lock);
  return waits;
}

/* It waits for a host function that has been called, which goes on as soon as that is seen. */
static void expect_held_up(void (*call)(behind_held *), behind_held *b) {
  pthread_t thread;
  behind = b;
  call_behind = call;
  b->seen = 0;
  b->returned = false;
  assert_int_equal(pthread_create(&thread, NULL, run_behind, NULL), 0);
  while (!b->returned && !something_waits()) usleep(1000);
  assert_false(b->returned);
  assert_int_equal(held.over, 0);
  assert_int_equal(sem_post(&held.go), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(b->seen, 1);
  succeed(cudaDeviceSynchronize());
}

static void hold(cudaStream_t stream) {
  held.over = 0;
  succeed(cudaLaunchHostFunc(stream, wait_for_go, NULL));
}

/* `stream`'s next operation comes after a function in `of`. */
static void expect_behind(cudaStream_t of, cudaStream_t stream, void *memory, cudaEvent_t event) {
  hold(of);
  if (event) {
    succeed(cudaStreamQuery(stream));
    succeed(cudaEventRecord(event, of));
    succeed(cudaStreamWaitEvent(stream, event, 0));
    expect(cudaStreamQuery(stream), cudaErrorNotReady);
    expect(cudaEventQuery(event), cudaErrorNotReady);
  }
  expect_held_up(set_behind, &(behind_held){.memory = memory, .stream = stream});
}

static void what_does_not_come_after_a_host_function_goes_on(void **state) {
  (void)state;
  cudaStream_t own, other, blocking;
  cudaEvent_t before, after, elsewhere;
  void *memory, *more;
  int word = 0;
  const uint32_t grace = engine_grace_ms;
  engine_grace_ms = 0; /* so that only what has to wait waits */
  assert_int_equal(sem_init(&held.go, 0, 0), 0);
  succeed(cudaMalloc(&memory, 4096));
  succeed(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
  succeed(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  succeed(cudaStreamCreate(&blocking));
  succeed(cudaEventCreate(&before));
  succeed(cudaEventCreate(&after));
  succeed(cudaEventRecord(before, own));
  succeed(cudaLaunchHostFunc(own, wait_for_go, NULL));
  succeed(cudaEventRecord(after, own));
  succeed(cudaMalloc(&more, 64)); /* none of these calls returns before the function in a build without the grace */
  succeed(cudaEventCreate(&elsewhere));
  succeed(cudaMemsetAsync(memory, 7, 64, other));
  succeed(cudaMemcpyAsync(&word, memory, 4, cudaMemcpyDeviceToHost, other));
  succeed(cudaMemcpyPeerAsync(memory, 0, (char *)memory + 32, 0, 4, other));
  succeed(cudaEventRecord(elsewhere, other));
  succeed(cudaEventSynchronize(elsewhere));
  succeed(cudaStreamSynchronize(other));
  succeed(cudaMemcpy(&word, memory, 4, cudaMemcpyDeviceToHost)); /* of the legacy stream, which `own` is apart from */
  assert_int_equal(word, 0x07070707);
  succeed(cudaEventQuery(before));
  expect(cudaEventQuery(after), cudaErrorNotReady);
  expect(cudaStreamQuery(own), cudaErrorNotReady);
  assert_int_equal(held.over, 0);
  assert_int_equal(sem_post(&held.go), 0);
  succeed(cudaStreamSynchronize(own));
  assert_int_equal(held.over, 1);
  succeed(cudaEventQuery(after));
  expect_behind(own, own, memory, NULL);
  expect_behind(own, other, memory, after);
  expect_behind(own, blocking, memory, after);
  expect_behind(NULL, blocking, memory, NULL);
  expect_behind(blocking, NULL, memory, NULL);
  engine_grace_ms = grace;
  succeed(cudaStreamDestroy(own));
  succeed(cudaStreamDestroy(other));
  succeed(cudaStreamDestroy(blocking));
  for (int i = 0; i < 3; i++) succeed(cudaEventDestroy((cudaEvent_t[]){before, after, elsewhere}[i]));
  succeed(cudaFree(memory));
  succeed(cudaFree(more));
  sem_destroy(&held.go);
}

/* An event's recording in the legacy stream, and a wait there, come after the blocking streams, and what comes in those
 * then after it. */
static void an_event_in_the_legacy_stream_is_a_barrier(void **state) {
  (void)state;
  cudaStream_t held_up, blocking;
  cudaEvent_t event, before;
  void *memory;
  const uint32_t grace = engine_grace_ms;
  assert_int_equal(sem_init(&held.go, 0, 0), 0);
  succeed(cudaMalloc(&memory, 64));
  succeed(cudaStreamCreate(&held_up));
  succeed(cudaStreamCreate(&blocking));
  succeed(cudaEventCreate(&event));
  succeed(cudaEventCreate(&before));
  succeed(cudaEventRecord(before, blocking));
  succeed(cudaDeviceSynchronize());
  engine_grace_ms = 0;
  hold(held_up);
  succeed(cudaMemsetAsync(memory, 1, 4, blocking));
  succeed(cudaEventRecord(event, NULL));
  expect(cudaEventQuery(event), cudaErrorNotReady);
  expect(cudaStreamQuery(NULL), cudaErrorNotReady);
  expect_held_up(set_behind, &(behind_held){.memory = memory, .stream = blocking});
  hold(held_up);
  succeed(cudaStreamWaitEvent(NULL, before, 0));
  expect_held_up(set_behind, &(behind_held){.memory = memory, .stream = blocking});
  engine_grace_ms = grace;
  succeed(cudaStreamDestroy(held_up));
  succeed(cudaStreamDestroy(blocking));
  succeed(cudaEventDestroy(event));
  succeed(cudaEventDestroy(before));
  succeed(cudaFree(memory));
  sem_destroy(&held.go);
}

/* Other processes do not see the host function; a copy between devices comes after all that is there. */
static void what_goes_beyond_the_stream_comes_after_a_host_function(void **state) {
  (void)state;
  cudaStream_t own, other;
  cudaEvent_t shared;
  void *memory;
  const uint32_t grace = engine_grace_ms;
  assert_int_equal(sem_init(&held.go, 0, 0), 0);
  succeed(cudaMalloc(&memory, 64));
  succeed(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
  succeed(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  succeed(cudaEventCreateWithFlags(&shared, cudaEventInterprocess | cudaEventDisableTiming));
  engine_grace_ms = 0;
  hold(own);
  succeed(cudaEventRecord(shared, other));
  succeed(cudaEventSynchronize(shared));
  expect_held_up(record_behind, &(behind_held){.stream = own, .event = shared});
  CUcontext context = current_context();
  hold(own);
  expect_held_up(copy_behind, &(behind_held){.memory = memory});
  hold(own);
  expect_held_up(driver_copy_behind, &(behind_held){.memory = memory, .context = context});
  hold(own);
  succeed(cudaMemcpyPeerAsync((char *)memory + 4, 0, memory, 0, 4, other)); /* in a stream it comes after that alone */
  driver_copy_in_stream(&(behind_held){.memory = memory, .stream = other, .context = context});
  assert_int_equal(held.over, 0);
  expect_held_up(copy_in_stream, &(behind_held){.memory = memory, .stream = own});
  hold(own);
  expect_held_up(driver_copy_in_stream, &(behind_held){.memory = memory, .stream = own, .context = context});
  engine_grace_ms = grace;
  succeed(cudaStreamDestroy(own));
  succeed(cudaStreamDestroy(other));
  succeed(cudaEventDestroy(shared));
  succeed(cudaFree(memory));
  sem_destroy(&held.go);
}

/* ---- threads ---- */

static void *fail_here(void *unused) {
  expect(cudaSetDevice(7), cudaErrorInvalidDevice);
  expect(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  succeed(cudaStreamSynchronize_ptsz(NULL));
  return unused;
}

static void errors_are_per_thread(void **state) {
  (void)state;
  pthread_t other;
  succeed(cudaGetLastError());
  pthread_create(&other, NULL, fail_here, NULL);
  pthread_join(other, NULL);
  succeed(cudaPeekAtLastError());
}

static void *work(void *unused) {
  for (int i = 0; i < 200; i++) {
    char *device, host[64] = {1, 2, 3}, back[64];
    cudaStream_t stream;
    succeed(cudaStreamCreate(&stream));
    succeed(cudaMalloc((void **)&device, 64));
    succeed(cudaMemcpyAsync(device, host, 64, cudaMemcpyHostToDevice, stream));
    succeed(cudaMemcpyAsync(back, device, 64, cudaMemcpyDeviceToHost, stream));
    succeed(cudaStreamSynchronize(stream));
    assert_memory_equal(host, back, 64);
    succeed(cudaFree(device));
    succeed(cudaStreamDestroy(stream));
  }
  return unused;
}

static void four_threads_at_once(void **state) {
  (void)state;
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

static int run_stream_cases(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(handles),
      cmocka_unit_test(destroyed),
      cmocka_unit_test(many_streams),
      cmocka_unit_test(events),
      cmocka_unit_test(time_grows_with_work_and_repeats),
      cmocka_unit_test(queries_become_ready),
      cmocka_unit_test(host_functions),
      cmocka_unit_test(a_pending_host_function_is_not_ready),
      cmocka_unit_test(a_host_function_that_is_waited_for_long_is_named),
      cmocka_unit_test(what_does_not_come_after_a_host_function_goes_on),
      cmocka_unit_test(an_event_in_the_legacy_stream_is_a_barrier),
      cmocka_unit_test(what_goes_beyond_the_stream_comes_after_a_host_function),
      cmocka_unit_test(errors_are_per_thread),
      cmocka_unit_test(four_threads_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
