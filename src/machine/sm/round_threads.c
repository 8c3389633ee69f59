/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a simulation in rounds. The one that calls round_threads_run works, too, and takes whatever the others
 * have not taken: where the host has no processor for them it does all, and waits for none of them but one that is in
 * the middle of a task.
 *
 * Which tasks are left is one word, so that a thread that comes late takes none of the next round by mistake:
 *
 *     work = round << 40 | count << 20 | next;   a task is taken by next + 1, if next < count
 *
 * Who ends a wait: a thread that sleeps for work is woken by the next round_threads_run, which looks whether any sleeps
 * after it has put the work there (both in sequentially consistent order), or by round_threads_free. The caller waits
 * until `done` is `count`: each task that was taken is ended by the thread that took it. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "machine/sm/rounds.h"

enum { FIELD = 20, SPINS = 4000 };
#define FIELD_MASK ((UINT64_C(1) << FIELD) - 1)

struct round_threads {
  round_task *task;
  void *context;
  uint32_t count; /* without the caller's */
  pthread_t *threads;
  _Alignas(64) _Atomic uint64_t work;
  _Alignas(64) _Atomic uint32_t done;
  _Atomic uint32_t sleepers;
  _Atomic bool over;
  pthread_mutex_t mutex;
  pthread_cond_t more;
};

static inline void pause_a_little(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static bool is_left(uint64_t work) { return (work & FIELD_MASK) < (work >> FIELD & FIELD_MASK); }

/* Does what is left of the round. */
static void work_off(round_threads *t) {
  uint64_t work = atomic_load(&t->work);
  while (is_left(work)) {
    if (!atomic_compare_exchange_weak(&t->work, &work, work + 1)) continue;
    t->task(t->context, (uint32_t)(work & FIELD_MASK));
    atomic_fetch_add(&t->done, 1);
    work = atomic_load(&t->work);
  }
}

static void sleep_for_work(round_threads *t) {
  pthread_mutex_lock(&t->mutex);
  atomic_fetch_add(&t->sleepers, 1);
  while (!is_left(atomic_load(&t->work)) && !atomic_load(&t->over)) pthread_cond_wait(&t->more, &t->mutex);
  atomic_fetch_sub(&t->sleepers, 1);
  pthread_mutex_unlock(&t->mutex);
}

static void *thread_main(void *context) {
  round_threads *t = context;
  while (!atomic_load(&t->over)) {
    work_off(t);
    int spins = 0;
    while (!is_left(atomic_load_explicit(&t->work, memory_order_relaxed)) && !atomic_load(&t->over) && spins++ < SPINS)
      pause_a_little();
    if (spins > SPINS) sleep_for_work(t);
  }
  return NULL;
}

round_threads *round_threads_create(uint32_t threads, round_task *task, void *context) {
  round_threads *t = ff_alloc_aligned(64, (sizeof *t + 63) / 64 * 64);
  t->task = task;
  t->context = context;
  pthread_mutex_init(&t->mutex, NULL);
  pthread_cond_init(&t->more, NULL);
  t->threads = ff_alloc((threads ? threads : 1) * sizeof *t->threads);
  for (uint32_t i = 1; i < threads; i++) /* fewer than were asked for do as well */
    if (!pthread_create(&t->threads[t->count], NULL, thread_main, t)) t->count++;
  return t;
}

void round_threads_run(round_threads *t, uint32_t count) {
  FF_ASSERT(count <= FIELD_MASK);
  if (!t->count || count == 1) {
    for (uint32_t i = 0; i < count; i++) t->task(t->context, i);
    return;
  }
  uint64_t round = (atomic_load(&t->work) >> 2 * FIELD) + 1;
  atomic_store(&t->done, 0);
  atomic_store(&t->work, round << 2 * FIELD | (uint64_t)count << FIELD);
  if (atomic_load(&t->sleepers)) {
    pthread_mutex_lock(&t->mutex);
    pthread_cond_broadcast(&t->more);
    pthread_mutex_unlock(&t->mutex);
  }
  work_off(t);
  for (int spins = 0; atomic_load(&t->done) < count; spins++) {
    if (spins < SPINS) pause_a_little();
    else sched_yield();
  }
}

void round_threads_free(round_threads *t) {
  if (!t) return;
  pthread_mutex_lock(&t->mutex);
  atomic_store(&t->over, true);
  pthread_cond_broadcast(&t->more);
  pthread_mutex_unlock(&t->mutex);
  for (uint32_t i = 0; i < t->count; i++) pthread_join(t->threads[i], NULL);
  pthread_mutex_destroy(&t->mutex);
  pthread_cond_destroy(&t->more);
  free(t->threads);
  free(t);
}
