/* SPDX-License-Identifier: Apache-2.0 */
/* Locks of what is loaded into a program that may fork. The child has the thread that forked and no other: a lock that
 * another one held would stay locked there for ever.
 *
 *     static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
 *     FF_FREE_IN_CHILD(lock)
 *
 * What the lock guards may be half changed then. It is for calls that return an error in a child, or read a table. */
#ifndef FF_FORKS_H
#define FF_FORKS_H

#include <pthread.h>

#define FF_FREE_IN_CHILD(lock)                                         \
  static void free_##lock(void) { pthread_mutex_init(&(lock), NULL); } \
  __attribute__((constructor)) static void watch_##lock(void) { pthread_atfork(NULL, NULL, free_##lock); }
#define FF_FREE_IN_CHILD_RW(lock)                                       \
  static void free_##lock(void) { pthread_rwlock_init(&(lock), NULL); } \
  __attribute__((constructor)) static void watch_##lock(void) { pthread_atfork(NULL, NULL, free_##lock); }
#define FF_FREE_IN_CHILD_RECURSIVE(lock)                                                              \
  static void free_##lock(void) { (lock) = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; } \
  __attribute__((constructor)) static void watch_##lock(void) { pthread_atfork(NULL, NULL, free_##lock); }

#endif
