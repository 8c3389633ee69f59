/* SPDX-License-Identifier: Apache-2.0 */
/* A child that is forked while another thread is inside a call: its own calls return, and do not wait for that thread,
 * which the child does not have. The thread rests with each lock that the call takes, in turn.
 *
 * One file of a program includes this; pthread_mutex_lock is its own then, also for shared libraries, if the program
 * exports it. */
#ifndef FF_TESTS_FORKS_H
#define FF_TESTS_FORKS_H

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
  void (*begin)(void); /* what the thread does before the call; NULL: nothing */
  void (*call)(void);
  int lock;
  sem_t has_it, goes_on;
} forks;
static _Thread_local int forks_left; /* until the thread rests with one; 0: it does not */

/* A fork itself waits for some locks, so that what they guard is whole: no thread may rest with those. */
static pthread_mutex_t *forks_whole[8];
static int forks_whole_count;
static _Thread_local bool forks_looks;

static bool forks_is_whole(const pthread_mutex_t *mutex) {
  for (int i = 0; i < forks_whole_count; i++)
    if (forks_whole[i] == mutex) return true;
  return false;
}

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *mutex) {
  static int (*real)(pthread_mutex_t *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_lock"); /* as POSIX has it */
  const int result = real(mutex);
  if (forks_looks && forks_whole_count < (int)(sizeof forks_whole / sizeof *forks_whole))
    forks_whole[forks_whole_count++] = mutex;
  if (forks_left && !forks_is_whole(mutex) && !--forks_left) {
    sem_post(&forks.has_it);
    while (sem_wait(&forks.goes_on)) continue;
  }
  return result;
}

static void *forks_call_and_rest(void *unused) {
  if (forks.begin) forks.begin();
  forks_left = forks.lock;
  forks.call();
  if (forks_left) sem_post(&forks.has_it); /* the call takes fewer */
  const bool rested = !forks_left;
  forks_left = 0;
  return rested ? &forks : unused;
}

/* 1: the child's call returned while the thread had its lock number `lock`; 0: the call takes fewer; -1: it did not. */
static int forks_at(void (*call)(void), int lock) {
  enum { WATCHDOG = 10 };
  pthread_t thread;
  void *rested = NULL;
  int status = -1;
  forks.call = call;
  forks.lock = lock;
  if (pthread_create(&thread, NULL, forks_call_and_rest, NULL)) return -1;
  while (sem_wait(&forks.has_it)) continue;
  pid_t child = fork();
  if (!child) {
    alarm(WATCHDOG);
    call();
    _exit(0);
  }
  if (waitpid(child, &status, 0) != child) status = -1;
  sem_post(&forks.goes_on);
  pthread_join(thread, &rested);
  if (!rested && sem_trywait(&forks.goes_on)) status = -1;
  return status ? -1 : rested != NULL;
}

/* How many locks the call takes; -N: a child that was forked while a thread rested with the N-th did not return. */
static int forks_with_each_lock(void (*begin)(void), void (*call)(void)) {
  if (!forks_whole_count) {
    sem_init(&forks.has_it, 0, 0);
    sem_init(&forks.goes_on, 0, 0);
    forks_looks = true;
    pid_t child = fork();
    if (!child) _exit(0);
    forks_looks = false;
    waitpid(child, NULL, 0);
  }
  forks.begin = begin;
  for (int lock = 1, found;; lock++)
    if ((found = forks_at(call, lock)) <= 0) return found ? -lock : lock - 1;
}

#endif
