/* SPDX-License-Identifier: Apache-2.0 */
/* Who simulates which point: tasks and workers, without processes, messages or clocks (the time is given).
 *
 *   WAITING --work_queue_next--> OUT --work_queue_done--> DONE
 *      ^                       |
 *      +---work_queue_lost--------+   the worker was silent too long
 *
 * What always holds: done + out + waiting == count; a task is OUT at one worker; its result counts once, whichever
 * worker sends it. */
#ifndef FF_SWEEP_HANDOUT_H
#define FF_SWEEP_HANDOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

enum { HANDOUT_LOSSES = 3 /* of its worker, after which a task is given up: it may be what ends them */ };

typedef struct work_queue_task {
  enum { TASK_WAITING, TASK_OUT, TASK_DONE } state;
  uint32_t worker; /* while OUT */
  uint32_t losses;
} work_queue_task;

typedef struct work_queue_worker {
  bool alive;
  uint32_t room, busy; /* tasks at once; OUT at it */
  double heard;        /* seconds */
} work_queue_worker;

typedef struct work_queue { /* work_queue_free */
  work_queue_task *tasks;
  work_queue_worker *workers;
  uint32_t task_count, worker_count, done, first; /* no task before `first` waits */
} work_queue;

void work_queue_start(work_queue *h, uint32_t tasks, uint32_t workers);
void work_queue_free(work_queue *h);
/* A worker is there, with room for so many tasks at once. */
void work_queue_join(work_queue *h, uint32_t worker, uint32_t room, double now);
/* It gave a sign of life; one that was lost is there again. */
void work_queue_heard(work_queue *h, uint32_t worker, double now);
/* The next task for a worker that has room, now OUT at it; -1: none waits, or it has no room. */
int64_t work_queue_next(work_queue *h, uint32_t worker);
/* A task's result has come. False: it is not one that was wanted (it has one already). */
bool work_queue_done(work_queue *h, uint32_t task);
/* Takes back what workers have that were silent for more than `patience` seconds; returns one that was lost, or -1. */
int64_t work_queue_lost(work_queue *h, double now, double patience);
/* A task that cost HANDOUT_LOSSES workers, now DONE; -1: none. */
int64_t work_queue_hopeless(work_queue *h);
static inline bool work_queue_finished(const work_queue *h) { return h->done == h->task_count; }

#endif
