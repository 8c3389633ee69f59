/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of a simulation, and what other threads ask it.
 *
 * The simulation's thread holds the lock except while it waits (for operations, for blocks, for its turn on a device
 * that several share). Another thread counts itself in `askers` and takes the lock between two events. */
#ifndef FF_MACHINE_ANSWERS_H
#define FF_MACHINE_ANSWERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct question {
  uint64_t sequence;
  struct question *next;
} question; /* of another thread, about an event */

typedef struct answers {
  pthread_mutex_t *mutex;  /* the device's `work` */
  pthread_cond_t progress; /* something has happened that threads may wait for */
  _Atomic uint32_t askers; /* threads that wait for the mutex */
  question *questions;
  bool over; /* the program has ended */
} answers;

/* For the simulation's own thread. */
void answers_lock(answers *a);
void answers_unlock(answers *a); /* before anything that may wait */
void answers_yield(answers *a);  /* between two events, if there are askers: these go first */
void answers_progress(answers *a);

/* For any other thread; answers_unlock gives the lock back. */
void answers_ask(answers *a);

#endif
