/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of a simulation: answers.h. */
#include "machine/answers.h"

#include <sched.h>

void answers_lock(answers *a) { pthread_mutex_lock(a->mutex); }
void answers_unlock(answers *a) { pthread_mutex_unlock(a->mutex); }
void answers_progress(answers *a) { pthread_cond_broadcast(&a->progress); }

void answers_yield(answers *a) {
  while (a->askers) {
    pthread_mutex_unlock(a->mutex);
    sched_yield();
    pthread_mutex_lock(a->mutex);
  }
}

void answers_ask(answers *a) {
  atomic_fetch_add(&a->askers, 1);
  pthread_mutex_lock(a->mutex);
  atomic_fetch_sub(&a->askers, 1);
}
