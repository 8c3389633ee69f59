/* SPDX-License-Identifier: Apache-2.0 */
/* A host that has no more threads: the test's own pthread_create. Define _GNU_SOURCE before any include. */
#ifndef FF_TESTS_FEW_THREADS_H
#define FF_TESTS_FEW_THREADS_H

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

/* How many threads can be made before the host has no more; -1: any number. */
static int threads_left = -1;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create"); /* as POSIX has it */
  if (!threads_left) return EAGAIN;
  if (threads_left > 0) threads_left--;
  return real(thread, attributes, run, argument);
}

#endif
