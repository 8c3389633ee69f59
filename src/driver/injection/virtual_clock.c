/* SPDX-License-Identifier: Apache-2.0 */
/* libfarfault-clock.so: preloaded by --virtual-time, it answers the program's questions for the time by a virtual
 * clock.
 *
 *     elapsed = simulated + own            every clock shows what it showed when the process started, + elapsed
 *
 * `simulated` is the host's time in the first simulation: what its calls cost and how long it waited for the GPU. `own`
 * is processor time of the program's threads, without what they spend in our libraries, and what they slept. Each
 * thread counts its own; one that asks takes the latest time that any thread was told, as does one that is created, and
 * one that ends leaves its time behind:
 *
 *     thread.own = max(latest, thread.own + its processor time since it last asked);  latest = max(latest, thread.own)
 *
 * What always holds: `elapsed` never falls, whichever threads ask one after the other. Sleeping takes the host's time,
 * too, so that other threads and processes get on; waits with a limit last as long of the host's time, and if nothing
 * has come by then, so long of the virtual clock's. Our own libraries are linked so that they get the host's time
 * (virtual_real.c). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "driver/injection/virtual_clock.h"

#define SHOWN __attribute__((visibility("default")))
#define SECOND INT64_C(1000000000)

enum { CLOCKS = CLOCK_TAI + 1 };

/* The function of that name behind us. */
#define NEXT(name)                                              \
  ({                                                            \
    static __typeof__(name) *_Atomic next;                      \
    if (!next) next = (__typeof__(name) *)next_function(#name); \
    (__typeof__(name) *)next;                                   \
  })

typedef struct clock_thread { /* nanoseconds */
  int64_t own;
  int64_t counted; /* its processor time up to which `own` has it */
  uint32_t inside; /* our libraries, so often */
  bool known;      /* it has counted */
  bool ours;       /* nothing of it is the program's */
  bool asks;       /* a signal's handler may ask meanwhile: it gets what is known */
} clock_thread;

static _Thread_local clock_thread self;
static _Atomic int64_t latest_own, latest_simulated; /* nanoseconds */
static int64_t simulated_before;                     /* the engine that is asked: by the process that forked this one */
static bool (*_Atomic ask_simulated)(uint64_t *picoseconds);
static int64_t started[CLOCKS]; /* what each clock showed then */

/* ---- the host's own time ---- */

/* Of condition variables there is an older kind with other insides. */
static void *next_function(const char *name) {
  void *newer = strncmp(name, "pthread_cond_", 13) == 0 ? dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2") : NULL;
  return newer ? newer : dlsym(RTLD_NEXT, name);
}

static int real_time(clockid_t clock, struct timespec *time) { return NEXT(clock_gettime)(clock, time); }

static int64_t nanoseconds(const struct timespec *time) { return time->tv_sec * SECOND + time->tv_nsec; }

static struct timespec timespec_of(int64_t time) {
  return (struct timespec){.tv_sec = time / SECOND, .tv_nsec = time % SECOND};
}

static int64_t read_clock(clockid_t clock) {
  struct timespec time = {0};
  real_time(clock, &time);
  return nanoseconds(&time);
}

static int real_sleep(const struct timespec *wanted, struct timespec *left) {
  return (int)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, wanted, left);
}

static int real_poll(struct pollfd *descriptors, nfds_t count, int milliseconds) {
  return NEXT(poll)(descriptors, count, milliseconds);
}

/* ---- the virtual clock ---- */

static int64_t raise_to(_Atomic int64_t *latest, int64_t value) {
  int64_t before = *latest;
  while (before < value && !atomic_compare_exchange_weak(latest, &before, value)) {}
  return before < value ? value : before;
}

/* Adds the thread's processor time since it last counted, unless that was spent for us. */
static void count(void) {
  int64_t now = read_clock(CLOCK_THREAD_CPUTIME_ID);
  if (self.known && !self.inside && !self.ours) self.own += now - self.counted;
  self.known = true;
  self.counted = now;
}

static void enter(void) {
  if (!self.inside) count();
  self.inside++;
}

static void leave(void) {
  if (self.inside && --self.inside) return;
  self.known = true;
  self.counted = read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static void attach(bool (*simulated)(uint64_t *picoseconds)) {
  simulated_before = latest_simulated;
  ask_simulated = simulated;
}

static int64_t simulated_now(void) {
  bool (*ask)(uint64_t *) = ask_simulated;
  uint64_t picoseconds;
  if (!ask || !ask(&picoseconds)) return latest_simulated;
  return raise_to(&latest_simulated, simulated_before + (int64_t)(picoseconds / 1000));
}

/* Since the process started. */
static int64_t elapsed(void) {
  if (self.asks || self.inside) return latest_own + latest_simulated;
  self.asks = true;
  count();
  int64_t simulated = simulated_now();
  self.own = raise_to(&latest_own, self.own);
  int64_t time = self.own + simulated;
  self.counted = read_clock(CLOCK_THREAD_CPUTIME_ID); /* asking is not the program's */
  self.asks = false;
  return time;
}

static bool is_virtual(clockid_t clock) {
  return clock >= 0 && clock < CLOCKS && clock != CLOCK_THREAD_CPUTIME_ID && clock != CLOCK_REALTIME_ALARM &&
         clock != CLOCK_BOOTTIME_ALARM && started[CLOCK_REALTIME];
}

static int64_t now_by(clockid_t clock) { return started[clock] + elapsed(); }

/* The thread has slept that long. */
static void pass(int64_t time) {
  count();
  if (time > 0) self.own = raise_to(&latest_own, self.own + time);
}

/* ---- what the program calls ---- */

SHOWN int clock_gettime(clockid_t clock, struct timespec *time) {
  if (!is_virtual(clock)) return real_time(clock, time);
  *time = timespec_of(now_by(clock));
  return 0;
}

SHOWN int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  if (zone) memset(zone, 0, sizeof(struct timezone));
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return 0;
}

SHOWN time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}

SHOWN int timespec_get(struct timespec *out, int base) {
  if (base != TIME_UTC) return 0;
  clock_gettime(CLOCK_REALTIME, out);
  return base;
}

/* A thread that waits for the GPU spins, unless it was told otherwise: processor time goes on. */
SHOWN clock_t clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (clock_t)(nanoseconds(&now) / (SECOND / CLOCKS_PER_SEC));
}

SHOWN int nanosleep(const struct timespec *wanted, struct timespec *left) {
  struct timespec rest = {0};
  if (!wanted || wanted->tv_sec < 0 || wanted->tv_nsec < 0 || wanted->tv_nsec >= SECOND)
    return real_sleep(wanted, left);
  int failed = real_sleep(wanted, &rest), code = errno;
  pass(nanoseconds(wanted) - (failed ? nanoseconds(&rest) : 0));
  if (failed && left) *left = rest;
  errno = code;
  return failed;
}

/* A deadline is one of the virtual clock. */
SHOWN int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *left) {
  if (!is_virtual(clock)) return syscall(SYS_clock_nanosleep, clock, flags, wanted, left) ? errno : 0;
  int64_t time = nanoseconds(wanted) - (flags & TIMER_ABSTIME ? now_by(clock) : 0);
  struct timespec span = timespec_of(time > 0 ? time : 0);
  return nanosleep(&span, flags & TIMER_ABSTIME ? NULL : left) ? errno : 0;
}

SHOWN int usleep(useconds_t microseconds) {
  struct timespec span = timespec_of((int64_t)microseconds * 1000);
  return nanosleep(&span, NULL);
}

SHOWN unsigned sleep(unsigned seconds) {
  struct timespec span = {.tv_sec = seconds}, left = {0};
  return nanosleep(&span, &left) ? (unsigned)left.tv_sec + (left.tv_nsec >= SECOND / 2) : 0;
}

/* ---- waits with a limit ---- */

/* A wait that began with a limit of so many milliseconds, or of that time (NULL: none), and has found nothing. */
static int found_nothing(int milliseconds, const struct timespec *limit) {
  pass(limit ? nanoseconds(limit) : (int64_t)milliseconds * 1000000);
  return 0;
}

SHOWN int poll(struct pollfd *descriptors, nfds_t count, int milliseconds) {
  int ready = NEXT(poll)(descriptors, count, milliseconds);
  return ready ? ready : found_nothing(milliseconds, NULL);
}

SHOWN int ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *limit, const sigset_t *signals) {
  int ready = NEXT(ppoll)(descriptors, count, limit, signals);
  return ready ? ready : found_nothing(0, limit);
}

SHOWN int epoll_wait(int set, struct epoll_event *events, int most, int milliseconds) {
  int ready = NEXT(epoll_wait)(set, events, most, milliseconds);
  return ready ? ready : found_nothing(milliseconds, NULL);
}

SHOWN int epoll_pwait(int set, struct epoll_event *events, int most, int milliseconds, const sigset_t *signals) {
  int ready = NEXT(epoll_pwait)(set, events, most, milliseconds, signals);
  return ready ? ready : found_nothing(milliseconds, NULL);
}

SHOWN int select(int count, fd_set *restrict read, fd_set *restrict write, fd_set *restrict except,
                 struct timeval *restrict timeout) {
  struct timespec limit = {0};
  if (timeout) limit = (struct timespec){.tv_sec = timeout->tv_sec, .tv_nsec = timeout->tv_usec * 1000};
  int ready = NEXT(select)(count, read, write, except, timeout);
  return ready ? ready : found_nothing(0, &limit);
}

SHOWN int pselect(int count, fd_set *restrict read, fd_set *restrict write, fd_set *restrict except,
                  const struct timespec *restrict limit, const sigset_t *restrict signals) {
  int ready = NEXT(pselect)(count, read, write, except, limit, signals);
  return ready ? ready : found_nothing(0, limit);
}

/* ---- waits with a deadline, by the virtual clock: the host's deadline is as far away ---- */

typedef struct deadline {
  struct timespec real;
  int64_t left; /* until it is over */
} deadline;

static deadline deadline_of(clockid_t clock, const struct timespec *time) {
  if (self.inside || self.ours || !is_virtual(clock)) return (deadline){.real = *time};
  /* seconds: programs that mean "for ever" write more than nanoseconds can say */
  const int64_t most = INT64_C(1) << 32;
  struct timespec wanted = {.tv_sec = time->tv_sec < most ? time->tv_sec : most, .tv_nsec = time->tv_nsec};
  int64_t left = nanoseconds(&wanted) - now_by(clock), real = read_clock(clock) + left;
  struct timespec at = timespec_of(real > 0 ? real : 0);
  if (time->tv_nsec < 0 || time->tv_nsec >= SECOND) at = *time; /* is refused */
  return (deadline){.real = at, .left = left};
}

/* Whether a condition variable goes by the day's time or by the monotonic clock is in it: what it is told says so,
 * too. */
static clockid_t clock_of(const struct timespec *time) {
  int64_t day = started[CLOCK_REALTIME] / SECOND, monotonic = started[CLOCK_MONOTONIC] / SECOND;
  return time->tv_sec < monotonic + (day - monotonic) / 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

static int waited(int error, const deadline *d) {
  if (error == ETIMEDOUT) pass(d->left);
  return error;
}

static int waited_for_semaphore(int failed, const deadline *d) {
  int error = errno;
  if (failed) waited(error, d);
  errno = error;
  return failed;
}

SHOWN int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                                 const struct timespec *restrict time) {
  deadline d = deadline_of(clock_of(time), time);
  return waited(NEXT(pthread_cond_timedwait)(condition, mutex, &d.real), &d);
}

SHOWN int pthread_cond_clockwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock,
                                 const struct timespec *restrict time) {
  deadline d = deadline_of(clock, time);
  return waited(NEXT(pthread_cond_clockwait)(condition, mutex, clock, &d.real), &d);
}

SHOWN int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict time) {
  deadline d = deadline_of(CLOCK_REALTIME, time);
  return waited(NEXT(pthread_mutex_timedlock)(mutex, &d.real), &d);
}

SHOWN int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t clock,
                                  const struct timespec *restrict time) {
  deadline d = deadline_of(clock, time);
  return waited(NEXT(pthread_mutex_clocklock)(mutex, clock, &d.real), &d);
}

SHOWN int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict time) {
  deadline d = deadline_of(CLOCK_REALTIME, time);
  return waited_for_semaphore(NEXT(sem_timedwait)(semaphore, &d.real), &d);
}

SHOWN int sem_clockwait(sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict time) {
  deadline d = deadline_of(clock, time);
  return waited_for_semaphore(NEXT(sem_clockwait)(semaphore, clock, &d.real), &d);
}

/* ---- threads ---- */

typedef struct thread_start {
  void *(*run)(void *);
  void *argument;
  int64_t own; /* that it begins with */
  bool ours;
} thread_start;

static void thread_ends(void *unused) {
  (void)unused;
  if (self.ours) return;
  count();
  raise_to(&latest_own, self.own);
}

static void *thread_main(void *context) {
  thread_start start = *(thread_start *)context;
  void *result;
  free(context);
  self = (clock_thread){.own = start.own, .known = true, .ours = start.ours};
  pthread_cleanup_push(thread_ends, NULL);
  result = start.run(start.argument);
  pthread_cleanup_pop(1);
  return result;
}

SHOWN int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*run)(void *),
                         void *restrict argument) {
  thread_start *start = malloc(sizeof *start);
  if (!start) return EAGAIN;
  bool ours = self.ours || self.inside;
  if (!ours) count();
  *start = (thread_start){run, argument, ours ? 0 : raise_to(&latest_own, self.own), ours};
  int failed = NEXT(pthread_create)(thread, attributes, thread_main, start);
  if (failed) free(start);
  return failed;
}

/* ---- the process ---- */

static void after_fork(void) { /* the child's processor time begins anew */
  self.inside = 0;
  self.asks = false;
  self.counted = read_clock(CLOCK_THREAD_CPUTIME_ID);
}

__attribute__((constructor)) static void start(void) {
  for (clockid_t clock = 0; clock < CLOCKS; clock++)
    started[clock] = clock == CLOCK_PROCESS_CPUTIME_ID ? 0 : read_clock(clock);
  count();
  pthread_atfork(NULL, NULL, after_fork);
}

extern const virtual_clock farfault_clock;
SHOWN const virtual_clock farfault_clock = {.attach = attach,
                                            .enter = enter,
                                            .leave = leave,
                                            .real_time = real_time,
                                            .real_sleep = real_sleep,
                                            .real_poll = real_poll};
