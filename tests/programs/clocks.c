/* SPDX-License-Identifier: Apache-2.0 */
/* A program on the driver API that times what it does by the clocks of the C library, for the tests of --virtual-time.
 * What each argument prints, in nanoseconds unless it says otherwise:
 *   times    by clock_gettime and by gettimeofday: a copy of 16 MiB to the GPU, a kernel that waits 2 million cycles; by events: the kernel;
 *            and its own processor time
 *   until    how often it looked until half a second was over, computing; then sleeping
 *   threads  0: no thread ever saw the time fall, and a thread's time is there when it was joined
 *   fork     0: the child's clock goes on and moves
 *   sleeps   how much later it is after each way to sleep 20 ms
 *   limits   0: waits with a deadline wait as long as they say, by a clock that the host's has left behind, and then it is so late
 *   waits    a kernel waits for the program, which looks at the clock before it answers: "answered" */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver_call.h"

#define BYTES ((size_t)16 << 20)
#define SECOND INT64_C(1000000000)

static const char code[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry wait(.param .u64 cycles)\n{\n.reg .pred %p;\n.reg .b64 %rd<5>;\nld.param.u64 %rd1, [cycles];\nmov.u64 %rd2, %clock64;\n"
    "again:\nmov.u64 %rd3, %clock64;\nsub.u64 %rd4, %rd3, %rd2;\nsetp.lt.u64 %p, %rd4, %rd1;\n@%p bra again;\nret;\n}\n"
    ".visible .entry watch(.param .u64 flag)\n{\n.reg .pred %p;\n.reg .b32 %r;\n.reg .b64 %rd;\nld.param.u64 %rd, [flag];\n"
    "again:\nld.volatile.global.u32 %r, [%rd];\nsetp.eq.u32 %p, %r, 0;\n@%p bra again;\nret;\n}\n";

static void *module;

static int64_t monotonic(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * SECOND + t.tv_nsec;
}

static int64_t day(void) {
  struct timeval t;
  gettimeofday(&t, NULL);
  return t.tv_sec * SECOND + t.tv_usec * 1000;
}

static int64_t processor(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * SECOND + t.tv_nsec;
}

static void start_gpu(void) {
  void *context;
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) exit(3);
  CALL(cuInit, (unsigned), 0);
  CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, 0);
  CALL(cuCtxSetCurrent, (void *), context);
  CALL(cuModuleLoadData, (void **, const void *), &module, code);
}

static void launch(const char *name, uint64_t argument) {
  void *kernel, *arguments[] = {&argument};
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, name);
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL);
}

static void finish(void) { CALL(cuCtxSynchronize, (void), ); }

static void times(void) {
  static char data[BYTES];
  uint64_t memory;
  void *events[2];
  float milliseconds;
  start_gpu();
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &memory, BYTES);
  for (int i = 0; i < 2; i++) CALL(cuEventCreate, (void **, unsigned), &events[i], 0);
  int64_t own = processor(), from = monotonic(), day_from = day();
  CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), memory, data, BYTES);
  int64_t copy = monotonic() - from, day_copy = day() - day_from;
  CALL(cuEventRecord, (void *, void *), events[0], NULL);
  from = monotonic();
  day_from = day();
  launch("wait", 2000000);
  finish();
  int64_t kernel = monotonic() - from, day_kernel = day() - day_from;
  own = processor() - own;
  CALL(cuEventRecord, (void *, void *), events[1], NULL);
  CALL(cuEventSynchronize, (void *), events[1]);
  CALL(cuEventElapsedTime, (float *, void *, void *), &milliseconds, events[0], events[1]);
  printf("%lld %lld %lld %lld %lld %lld\n", (long long)copy, (long long)day_copy, (long long)kernel,
         (long long)day_kernel, (long long)(milliseconds * 1e6f), (long long)own);
}

static void until(void) {
  volatile unsigned work = 0; /* keeps the loop */
  unsigned computing = 0, sleeping = 0;
  for (int64_t end = monotonic() + SECOND / 2; monotonic() < end; computing++)
    for (int i = 0; i < 1000; i++) work += (unsigned)i;
  for (int64_t end = day() + SECOND / 2; day() < end; sleeping++) usleep(50000);
  (void)work;
  printf("%u %u\n", computing, sleeping);
}

static _Atomic int64_t last;
static _Atomic int fell;

static void *look_often(void *unused) {
  for (int i = 0; i < 20000; i++) {
    int64_t before = last, now = monotonic();
    fell += now < before;
    last = now; /* a lower one may be kept: what counts is that none is told after a higher one was */
  }
  return unused;
}

static void *compute(void *unused) {
  int64_t from = processor();
  while (processor() - from < SECOND / 20) {}
  return unused;
}

static int threads(void) {
  pthread_t all[4], one;
  for (int i = 0; i < 4; i++) pthread_create(&all[i], NULL, look_often, NULL);
  for (int i = 0; i < 4; i++) pthread_join(all[i], NULL);
  int64_t from = monotonic();
  pthread_create(&one, NULL, compute, NULL);
  pthread_join(one, NULL);
  return fell ? 1 : monotonic() - from < SECOND / 20 ? 2 : 0;
}

static int fork_and_look(void) {
  start_gpu();
  launch("wait", 2000000);
  finish();
  int64_t before = monotonic();
  pid_t child = fork();
  if (!child) {
    int64_t from = monotonic();
    compute(NULL);
    _exit(from < before ? 1 : monotonic() - from < SECOND / 20 ? 2 : 0);
  }
  int status;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

static void sleeps(void) {
  struct timespec span = {.tv_nsec = 20000000}, deadline;
  struct timeval timeout = {.tv_usec = 20000};
  int64_t at[6] = {monotonic()};
  nanosleep(&span, NULL);
  at[1] = monotonic();
  usleep(20000);
  at[2] = monotonic();
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  deadline.tv_nsec += 20000000;
  if (deadline.tv_nsec >= SECOND) {
    deadline.tv_sec++;
    deadline.tv_nsec -= SECOND;
  }
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
  at[3] = monotonic();
  poll(NULL, 0, 20);
  at[4] = monotonic();
  select(0, NULL, NULL, NULL, &timeout);
  at[5] = monotonic();
  for (int i = 0; i < 5; i++) printf("%lld ", (long long)(at[i + 1] - at[i]));
  puts("");
}

/* the C library's clocks do not see it */
static void host_sleep(int64_t time) { syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = time}, NULL); }

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;

static void *wake(void *unused) {
  host_sleep(20000000);
  pthread_mutex_lock(&mutex);
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  return unused;
}

static struct timespec after(clockid_t clock, int64_t time) {
  struct timespec at;
  clock_gettime(clock, &at);
  time += at.tv_sec * SECOND + at.tv_nsec;
  return (struct timespec){.tv_sec = time / SECOND, .tv_nsec = time % SECOND};
}

static int limits(void) {
  pthread_t waker;
  pthread_condattr_t by_monotonic;
  pthread_cond_t other;
  host_sleep(200000000);
  struct timespec late = after(CLOCK_REALTIME, 20 * SECOND);
  pthread_mutex_lock(&mutex);
  pthread_create(&waker, NULL, wake, NULL);
  if (pthread_cond_timedwait(&condition, &mutex, &late)) return 1;
  pthread_join(waker, NULL);
  pthread_condattr_init(&by_monotonic);
  pthread_condattr_setclock(&by_monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&other, &by_monotonic);
  int64_t from = monotonic();
  struct timespec soon = after(CLOCK_MONOTONIC, 20000000);
  if (pthread_cond_timedwait(&other, &mutex, &soon) != ETIMEDOUT || monotonic() - from < 20000000 ||
      monotonic() - from > 60000000)
    return 2;
  sem_init(&semaphore, 0, 0);
  from = day();
  soon = after(CLOCK_REALTIME, 20000000);
  if (!sem_timedwait(&semaphore, &soon) || errno != ETIMEDOUT || day() - from < 20000000 - 1000 ||
      day() - from > 60000000)
    return 3;
  return 0;
}

static void waits(void) {
  volatile uint32_t *flag;
  uint64_t seen;
  start_gpu();
  CALL(cuMemHostAlloc, (void **, size_t, unsigned), (void **)&flag, 4096, 2);
  CALL(cuMemHostGetDevicePointer_v2, (uint64_t *, void *, unsigned), &seen, (void *)(uintptr_t)flag, 0);
  *flag = 0;
  launch("watch", seen);
  for (int64_t end = monotonic() + SECOND / 100; monotonic() < end;) {}
  *flag = 1;
  finish();
  puts("answered");
}

int main(int argc, char **argv) {
  if (argc != 2) return 9;
  if (!strcmp(argv[1], "times")) times();
  else if (!strcmp(argv[1], "until")) until();
  else if (!strcmp(argv[1], "threads")) return threads();
  else if (!strcmp(argv[1], "fork")) return fork_and_look();
  else if (!strcmp(argv[1], "sleeps")) sleeps();
  else if (!strcmp(argv[1], "limits")) return limits();
  else if (!strcmp(argv[1], "waits")) waits();
  return 0;
}
