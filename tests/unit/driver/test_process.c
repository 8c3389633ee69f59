/* SPDX-License-Identifier: Apache-2.0 */
/* How processes end and fork: who writes results, and what late calls return. Each case runs in a child process, which
 * has an engine of its own because the parent never starts one. */
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "driver/engine/engine_internal.h"
#include "program.h"

/* LeakSanitizer's look at the end takes the allocator's locks. In a process that was forked while another thread
 * allocated, one of them is held for ever: the look is left to this process itself (main). */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "leak_check_at_exit=0"; }
void __lsan_do_leak_check(void);
#define CHECK_LEAKS() __lsan_do_leak_check()
#endif
#endif
#ifndef CHECK_LEAKS
#define CHECK_LEAKS() (void)0
#endif

enum { WATCHDOG = 60 }; /* s; a child that hangs must not stay */

static char results[64];

/* Runs `body` in a child that ends by exit(body()); returns its exit status, -1 if it was killed, as it is once it has
 * taken WATCHDOG. */
static int in_child(int (*body)(void)) {
  int status;
  snprintf(results, sizeof results, "/tmp/farfault-test-%d.json", (int)getpid());
  unlink(results);
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    setenv("FARFAULT_RESULTS", results, 1);
    freopen("/dev/null", "w", stderr);
    alarm(WATCHDOG);
    exit(body());
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool results_are_complete(void) {
  char *text;
  size_t size;
  if (ff_file_read(results, 0, &text, &size, NULL)) return false;
  bool complete = strstr(text, "\"complete\": true") != NULL;
  free(text);
  unlink(results);
  return complete;
}

#define CHECK(condition)                         \
  do {                                           \
    if (!(condition)) return __LINE__ % 200 + 1; \
  } while (0)

static int use_and_return(void) {
  void *memory;
  CHECK(cudaMalloc(&memory, 100) == cudaSuccess);
  return 0;
}
static void a_normal_end_writes_results(void **state) {
  (void)state;
  assert_int_equal(in_child(use_and_return), 0);
  assert_true(results_are_complete());
}

static int never_use(void) {
  const char *text[] = {PTX_HEAD ".visible .entry f()\n{\nret;\n}\n"};
  void **handle = register_ptx(text, 1);
  __cudaUnregisterFatBinary(handle);
  CHECK(cudaDeviceReset() == cudaSuccess);
  CHECK(!engine_started());
  return 0;
}
static void registration_starts_nothing(void **state) {
  (void)state;
  assert_int_equal(in_child(never_use), 0);
  assert_false(results_are_complete());
}

static void *exit_here(void *unused) {
  exit(use_and_return());
  return unused;
}
static int exit_in_a_thread(void) {
  pthread_t thread;
  CHECK(cudaFree(NULL) == cudaSuccess);
  pthread_create(&thread, NULL, exit_here, NULL);
  pthread_join(thread, NULL);
  return 99;
}
static void a_thread_may_end_the_process(void **state) {
  (void)state;
  assert_int_equal(in_child(exit_in_a_thread), 0);
  assert_true(results_are_complete());
}

static int fork_after_use(void) {
  void *memory;
  int status;
  CHECK(cudaMalloc(&memory, 100) == cudaSuccess);
  pid_t child = fork();
  if (!child) {
    alarm(WATCHDOG); /* none is inherited */
    CHECK(cudaMalloc(&memory, 100) == cudaErrorInitializationError);
    CHECK(cudaFree(memory) == cudaErrorInitializationError);
    exit(7);
  }
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  CHECK(!results_are_complete()); /* the child has not touched the file */
  CHECK(cudaFree(memory) == cudaSuccess);
  return 0;
}
static void a_fork_of_a_user_is_no_user(void **state) {
  (void)state;
  assert_int_equal(in_child(fork_after_use), 0);
  assert_true(results_are_complete());
}

static void *late_memory;
static int late_status = 1;
static void at_exit(void) {
  if (cudaFree(late_memory) == cudaSuccess) late_status = 0;
  if (late_status) _exit(50);
}
static int free_in_an_exit_handler(void) {
  atexit(at_exit);
  CHECK(cudaMalloc(&late_memory, 100) == cudaSuccess);
  return 0;
}
static void exit_handlers_may_free(void **state) {
  (void)state;
  assert_int_equal(in_child(free_in_an_exit_handler), 0);
  assert_true(results_are_complete());
}

static int call_after_the_end(void) {
  void *memory;
  CHECK(cudaMalloc(&memory, 100) == cudaSuccess);
  engine_finish(); /* as the destructor */
  CHECK(cudaFree(memory) == cudaErrorCudartUnloading);
  CHECK(cudaDeviceSynchronize() == cudaErrorCudartUnloading);
  engine_finish();
  return 0;
}
static void calls_after_the_end_are_refused(void **state) {
  (void)state;
  assert_int_equal(in_child(call_after_the_end), 0);
  assert_true(results_are_complete());
}

static int start_badly(void) {
  int count = 5;
  setenv("FARFAULT_MACHINE", "no-such-machine", 1);
  CHECK(cudaGetDeviceCount(&count) == cudaErrorInitializationError);
  CHECK(count == 0);
  CHECK(cudaGetLastError() == cudaErrorInitializationError);
  void *memory;
  CHECK(cudaMalloc(&memory, 1) == cudaErrorInitializationError);
  return 0;
}
static void a_bad_machine_is_an_error(void **state) {
  (void)state;
  assert_int_equal(in_child(start_badly), 0);
  assert_false(results_are_complete());
}

static void *spin(void *stub) {
  launch(stub, 1, 1, NULL);
  return NULL;
}
static int exit_during_a_kernel(void) {
  STUB(endless);
  const char *text[] = {PTX_HEAD ".visible .entry endless()\n{\nL:\nbra L;\n}\n"};
  pthread_t thread;
  register_kernel(register_ptx(text, 1), endless, "endless");
  CHECK(cudaFree(NULL) == cudaSuccess);
  pthread_create(&thread, NULL, spin, endless);
  usleep(200000);
  return 0;
}
static void a_running_kernel_does_not_hold_up_the_end(void **state) {
  (void)state;
  assert_int_equal(in_child(exit_during_a_kernel), 0);
  assert_true(results_are_complete());
}

/* ---- what happens while threads are at work ---- */

enum { WORKERS = 4 };
static uint32_t *words; /* of kernels that wait: never written */

static void nothing(void *unused) { (void)unused; }

static void put(const void *stub, void *word, cudaStream_t stream) {
  cudaLaunchKernel(stub, (dim3){1, 1, 1}, (dim3){32, 1, 1}, (void *[]){word}, 0, stream);
}

/* Whatever it is at when the process ends: a launch, a wait, a call of the host's, a kernel that has given way. */
static void *work_on(void *stubs) {
  void *const *stub = stubs, *memory;
  cudaStream_t stream, waiting;
  cudaEvent_t event;
  static _Atomic int workers;
  const int self = workers++;
  if (cudaStreamCreateWithFlags(&waiting, cudaStreamNonBlocking)) return NULL;
  if (self % 2) put(stub[1], &words, waiting);
  for (;;) {
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) return NULL; /* it ends */
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (cudaMallocAsync(&memory, 4096, stream) == cudaSuccess) {
      cudaMemsetAsync(memory, 1, 4096, stream);
      put(stub[0], &memory, stream);
      cudaLaunchHostFunc(stream, nothing, NULL);
      cudaEventRecord(event, stream);
      cudaEventSynchronize(event);
      cudaFreeAsync(memory, stream);
    }
    cudaEventDestroy(event);
    cudaStreamDestroy(stream);
  }
}

static int start_workers(void) {
  STUB(add);
  STUB(hold);
  static void *stubs[2];
  const char *text[] = {PTX_HEAD
                        ".visible .entry add(.param .u64 word)\n{\n.reg .b64 %rd1;\nld.param.u64 %rd1, [word];\n"
                        "red.global.add.u32 [%rd1], 1;\nret;\n}\n"
                        ".visible .entry hold(.param .u64 word)\n{\n.reg .b64 %rd1;\n.reg .b32 %r1;\n.reg .pred %p;\n"
                        "ld.param.u64 %rd1, [word];\nL:\nld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p, %r1, 0;\n"
                        "@%p bra L;\nret;\n}\n"};
  void *module = register_ptx(text, 1);
  pthread_t thread;
  register_kernel(module, stubs[0] = add, "add");
  register_kernel(module, stubs[1] = hold, "hold");
  CHECK(cudaHostAlloc((void **)&words, 64, cudaHostAllocPortable) == cudaSuccess);
  memset(words, 0, 64);
  for (int i = 0; i < WORKERS; i++) pthread_create(&thread, NULL, work_on, stubs);
  return 0;
}

static useconds_t after_us; /* that the threads began */

static int end_at_work(void) {
  const int failed = start_workers();
  usleep(after_us);
  return failed;
}

static int fork_at_work(void) {
  int status;
  void *memory;
  CHECK(!start_workers());
  usleep(after_us);
  const pid_t child = fork();
  if (!child) {
    alarm(WATCHDOG); /* none is inherited */
    CHECK(cudaMalloc(&memory, 100) == cudaErrorInitializationError);
    CHECK(cudaDeviceSynchronize() == cudaErrorInitializationError);
    exit(7);
  }
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  return 0;
}

static void threads_at_work_do_not_hold_up_the_end(void **state) {
  (void)state;
  for (after_us = 1000; after_us < 100000; after_us *= 3) {
    assert_int_equal(in_child(end_at_work), 0);
    assert_true(results_are_complete());
    assert_int_equal(in_child(fork_at_work), 0);
    assert_true(results_are_complete());
  }
}

static void never_return(void *unused) {
  for (;;) pause();
}

/* What is behind a kernel comes after a host function that never returns: its lane ends at once, not when the patience
 * of the end is over. */
static int end_while_a_lane_waits(void) {
  STUB(hold);
  const char *text[] = {PTX_HEAD
                        ".visible .entry hold(.param .u64 word)\n{\n.reg .b64 %rd1;\n.reg .b32 %r1;\n.reg .pred %p;\n"
                        "ld.param.u64 %rd1, [word];\nL:\nld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p, %r1, 0;\n"
                        "@%p bra L;\nret;\n}\n"};
  cudaStream_t held, other;
  cudaEvent_t event;
  uint32_t *word;
  register_kernel(register_ptx(text, 1), hold, "hold");
  engine_grace_ms = 0;
  CHECK(!cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
  CHECK(!cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(!cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(!cudaHostAlloc((void **)&word, 64, cudaHostAllocPortable));
  word[0] = 0;
  put(hold, &word, held);
  CHECK(!cudaLaunchHostFunc(other, never_return, NULL) && !cudaEventRecord(event, other));
  CHECK(!cudaStreamWaitEvent(held, event, 0) && !cudaMemsetAsync(word + 1, 1, 4, held));
  __atomic_store_n(&word[0], 1, __ATOMIC_SEQ_CST);
  for (bool waits = false; !waits; usleep(1000)) {
    pthread_mutex_lock(&ff_engine.lock);
    waits = ff_engine.host_waiting > 0;
    pthread_mutex_unlock(&ff_engine.lock);
  }
  engine_finish();
  CHECK(ff_engine.given == 0);
  return 0;
}

static void a_host_function_does_not_hold_up_the_end(void **state) {
  (void)state;
  assert_int_equal(in_child(end_while_a_lane_waits), 0);
  assert_true(results_are_complete());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_normal_end_writes_results),
      cmocka_unit_test(registration_starts_nothing),
      cmocka_unit_test(a_thread_may_end_the_process),
      cmocka_unit_test(a_fork_of_a_user_is_no_user),
      cmocka_unit_test(exit_handlers_may_free),
      cmocka_unit_test(calls_after_the_end_are_refused),
      cmocka_unit_test(a_bad_machine_is_an_error),
      cmocka_unit_test(a_running_kernel_does_not_hold_up_the_end),
      cmocka_unit_test(threads_at_work_do_not_hold_up_the_end),
      cmocka_unit_test(a_host_function_does_not_hold_up_the_end),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  CHECK_LEAKS();
  return failed;
}
