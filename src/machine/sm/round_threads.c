/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a simulation in rounds. The one that calls round_threads_run works, too, and takes whatever the others
 * have not taken: where the host has no processor for them it does all, and waits for none of them but one that is in
 * the middle of a task.
 *
 * Each thread has a share of the tasks, the same ones in every round as far as can be, so that what they are about
 * stays in its processor's caches; when that is done it takes what is left of the others' shares. Which tasks of a
 * share are left is one word, so that a thread that comes late takes none of the next round by mistake:
 *
 *     share = round << 40 | end << 20 | next;   a task is taken by next + 1, if next < end
 *
 * Who ends a wait: a thread that sleeps for work is woken by the next round_threads_run, which looks whether any sleeps
 * after it has put the work there (both in sequentially consistent order), or by round_threads_free. The caller waits
 * until `done` is `count`: each task that was taken is ended by the thread that took it. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/memory.h"
#include "machine/sm/rounds.h"

enum { FIELD = 20, SPINS = 40000 }; /* some milliseconds: as long as a round takes that is served */
#define FIELD_MASK ((UINT64_C(1) << FIELD) - 1)

typedef struct share {
  _Alignas(64) _Atomic uint64_t word;
} share;

typedef struct member { /* one thread but the caller's */
  struct round_threads *all;
  pthread_t thread;
  uint32_t number; /* of its share; the caller has share 0 */
} member;

struct round_threads {
  round_task *task; /* of this round: */
  void *context;
  uint32_t count; /* of threads, with the caller */
  member *members;
  share *shares;
  _Alignas(64) _Atomic uint64_t round; /* the latest that was put into the shares */
  _Alignas(64) _Atomic uint32_t done;
  _Atomic uint32_t sleepers;
  _Atomic bool over;
  bool measures;
  uint64_t spent[ROUND_WORKS]; /* by the caller, in tasks */
  pthread_mutex_t mutex;
  pthread_cond_t more;
};

static inline void pause_a_little(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

uint64_t round_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Does what is left of the share. */
static void work_off(round_threads *t, share *own) {
  uint64_t word = atomic_load(&own->word);
  while ((word & FIELD_MASK) < (word >> FIELD & FIELD_MASK)) {
    if (!atomic_compare_exchange_weak(&own->word, &word, word + 1)) continue;
    t->task(t->context, (uint32_t)(word & FIELD_MASK));
    atomic_fetch_add(&t->done, 1);
    word = atomic_load(&own->word);
  }
}

uint64_t round_threads_spent(const round_threads *t, round_work work) { return t->spent[work]; }

static void work_off_all(round_threads *t, uint32_t own) {
  for (uint32_t i = 0; i < t->count; i++) work_off(t, &t->shares[(own + i) % t->count]);
}

static void sleep_for_round(round_threads *t, uint64_t last) {
  pthread_mutex_lock(&t->mutex);
  atomic_fetch_add(&t->sleepers, 1);
  while (atomic_load(&t->round) == last && !atomic_load(&t->over)) pthread_cond_wait(&t->more, &t->mutex);
  atomic_fetch_sub(&t->sleepers, 1);
  pthread_mutex_unlock(&t->mutex);
}

static void *thread_main(void *context) {
  const member *m = context;
  round_threads *t = m->all;
  for (uint64_t last = 0; !atomic_load(&t->over);) {
    int spins = 0;
    while (atomic_load(&t->round) == last && !atomic_load(&t->over) && spins < SPINS) {
      pause_a_little();
      spins++;
    }
    if (spins == SPINS) sleep_for_round(t, last);
    last = atomic_load(&t->round);
    work_off_all(t, m->number);
  }
  return NULL;
}

round_threads *round_threads_create(uint32_t threads, bool measures) {
  round_threads *t = ff_alloc_aligned(64, (sizeof *t + 63) / 64 * 64);
  t->measures = measures;
  pthread_mutex_init(&t->mutex, NULL);
  pthread_cond_init(&t->more, NULL);
  t->members = ff_alloc(threads * sizeof *t->members);
  t->shares = ff_alloc_aligned(64, threads * sizeof *t->shares);
  t->count = threads;
  for (uint32_t i = 1; i < threads; i++) { /* one that cannot be made: its share is done by the others */
    t->members[i] = (member){.all = t, .number = i};
    if (pthread_create(&t->members[i].thread, NULL, thread_main, &t->members[i])) t->members[i].all = NULL;
  }
  return t;
}

static void run_shared(round_threads *t, const uint32_t *owners, uint32_t count) {
  uint64_t round = atomic_load(&t->round) + 1;
  atomic_store(&t->done, 0);
  for (uint32_t i = 0, begin = 0; i < t->count; i++) {
    uint32_t end = begin;
    while (end < count && owners[end] <= i) end++;
    atomic_store(&t->shares[i].word, (round & ((UINT64_C(1) << 24) - 1)) << 2 * FIELD | (uint64_t)end << FIELD | begin);
    begin = end;
  }
  atomic_store(&t->round, round);
  if (atomic_load(&t->sleepers)) {
    pthread_mutex_lock(&t->mutex);
    pthread_cond_broadcast(&t->more);
    pthread_mutex_unlock(&t->mutex);
  }
  work_off_all(t, 0);
  for (int spins = 0; atomic_load(&t->done) < count; spins++) {
    if (spins < SPINS) pause_a_little();
    else sched_yield();
  }
}

void round_threads_run(round_threads *t, round_task *task, void *context, round_work work, const uint32_t *owners,
                       uint32_t count) {
  FF_ASSERT(count <= FIELD_MASK);
  t->task = task; /* read by others when they have taken a task of this round */
  t->context = context;
  uint64_t begun = t->measures ? round_clock() : 0;
  if (t->count == 1 || count == 1)
    for (uint32_t i = 0; i < count; i++) task(context, i);
  else run_shared(t, owners, count);
  if (t->measures) t->spent[work] += round_clock() - begun;
}

void round_threads_free(round_threads *t) {
  if (!t) return;
  pthread_mutex_lock(&t->mutex);
  atomic_store(&t->over, true);
  pthread_cond_broadcast(&t->more);
  pthread_mutex_unlock(&t->mutex);
  for (uint32_t i = 1; i < t->count; i++)
    if (t->members[i].all) pthread_join(t->members[i].thread, NULL);
  pthread_mutex_destroy(&t->mutex);
  pthread_cond_destroy(&t->more);
  free(t->members);
  free(t->shares);
  free(t);
}
