/* SPDX-License-Identifier: Apache-2.0 */
/* A child that is forked while another thread is inside a call: its own calls return, and do not wait for that thread,
 * which the child does not have. The thread rests with each lock that the call takes, in turn. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

static const char text[] = PTX_HEAD ".visible .entry nothing()\n{\nret;\n}\n";
STUB(nothing);
STUB(another);

int cuInit(unsigned), cuCtxCreate_v2(void **, unsigned, int), cuCtxGetApiVersion(void *, unsigned *),
    cuCtxSetCurrent(void *), cuFuncSetBlockShape(void *, int, int, int), cuModuleLoadData(void **, const void *),
    cuModuleGetFunction(void **, void *, const char *),
    cuLinkAddData_v2(void *, int, void *, size_t, const char *, unsigned, int *, void **),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

static void *context, *function;
static void **registered;
static _Thread_local int locks_left; /* until it rests with one; 0: it does not */
static sem_t has_it, goes_on;

/* A fork itself waits for some locks, so that what they guard is whole: no thread may rest with those. */
static pthread_mutex_t *whole[8];
static int whole_count;
static _Thread_local bool forking;

static bool is_whole(const pthread_mutex_t *mutex) {
  for (int i = 0; i < whole_count; i++)
    if (whole[i] == mutex) return true;
  return false;
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  static int (*real)(pthread_mutex_t *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_lock"); /* as POSIX has it */
  const int result = real(mutex);
  if (forking && whole_count < (int)(sizeof whole / sizeof *whole)) whole[whole_count++] = mutex;
  if (locks_left && !is_whole(mutex) && !--locks_left) {
    sem_post(&has_it);
    while (sem_wait(&goes_on)) continue;
  }
  return result;
}

static void attributes(void) {
  cudaFuncAttributes found;
  cudaFuncGetAttributes(&found, nothing);
}
static void version(void) {
  unsigned found;
  cuCtxGetApiVersion(context, &found);
}
static void shape(void) { cuFuncSetBlockShape(function, 1, 1, 1); }
static void unknown_link(void) { cuLinkAddData_v2(&context, 1, &context, 8, "", 0, NULL, NULL); }
static void registers(void) { register_kernel(registered, another, "nothing"); }
static void launched(void) { cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL); }

static struct {
  void (*call)(void);
  int lock;
} what;

static void *call_and_rest(void *unused) {
  cuCtxSetCurrent(context);
  locks_left = what.lock;
  what.call();
  if (locks_left) sem_post(&has_it); /* the call takes fewer */
  const bool rested = !locks_left;
  locks_left = 0;
  return rested ? &what : unused;
}

/* Whether the call takes so many locks. */
static bool fork_at(void (*call)(void), int lock) {
  enum { WATCHDOG = 10 };
  pthread_t thread;
  void *rested;
  int status = -1;
  what.call = call;
  what.lock = lock;
  assert_int_equal(pthread_create(&thread, NULL, call_and_rest, NULL), 0);
  while (sem_wait(&has_it)) continue;
  pid_t child = fork();
  if (!child) {
    alarm(WATCHDOG);
    call();
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  sem_post(&goes_on);
  pthread_join(thread, &rested);
  if (!rested) assert_int_equal(sem_trywait(&goes_on), 0);
  if (status) fail_msg("with the lock %d that is taken: status %d", lock, status);
  return rested;
}

static void find_whole(void) {
  int status;
  forking = true;
  pid_t child = fork();
  if (!child) _exit(0);
  forking = false;
  assert_int_equal(waitpid(child, &status, 0), child);
}

static void a_child_waits_for_no_thread(void **state) {
  (void)state;
  void (*const calls[])(void) = {attributes, version, shape, unknown_link, registers, launched};
  find_whole();
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    int lock = 1;
    while (fork_at(calls[i], lock)) lock++;
    print_message("call %zu: %d locks\n", i, lock - 1);
    assert_true(lock > 1); /* it is this file's pthread_mutex_lock that is called */
  }
}

int main(void) {
  void *module;
  setenv("FARFAULT_MACHINE", "gtx480", 1);
  setenv("FARFAULT_MEMORY", "copy", 1); /* a launch then takes the locks of what is simulated, too */
  sem_init(&has_it, 0, 0);
  sem_init(&goes_on, 0, 0);
  registered = register_ptx((const char *const[]){text}, 1);
  register_kernel(registered, nothing, "nothing");
  if (cudaFree(NULL) || cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuModuleLoadData(&module, text) ||
      cuModuleGetFunction(&function, module, "nothing"))
    return 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_waits_for_no_thread)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
