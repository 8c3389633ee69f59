/* SPDX-License-Identifier: Apache-2.0 */
/* Who simulates which point: tasks and workers, without processes, messages or clocks (the time is given).
 *
 *   WAITING --handout_next--> OUT --handout_done--> DONE
 *      ^                       |
 *      +---handout_lost--------+   the worker was silent too long
 *
 * What always holds: done + out + waiting == count; a task is OUT at one worker; its result counts once, whoever sends it. */
#ifndef FF_SWEEP_HANDOUT_H
#define FF_SWEEP_HANDOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

enum { HANDOUT_LOSSES = 3 /* of its worker, after which a task is given up: it may be what ends them */ };

typedef struct handout_task {
  enum { TASK_WAITING, TASK_OUT, TASK_DONE } state;
  uint32_t worker; /* while OUT */
  uint32_t losses;
} handout_task;

typedef struct handout_worker {
  bool alive;
  uint32_t room, busy; /* tasks at once; OUT at it */
  double heard;        /* seconds */
} handout_worker;

typedef struct handout { /* handout_free */
  handout_task *tasks;
  handout_worker *workers;
  uint32_t task_count, worker_count, done, first; /* no task before `first` waits */
} handout;

void handout_start(handout *h, uint32_t tasks, uint32_t workers);
void handout_free(handout *h);
/* A worker is there, with room for so many tasks at once. */
void handout_join(handout *h, uint32_t worker, uint32_t room, double now);
/* It gave a sign of life; one that was lost is there again. */
void handout_heard(handout *h, uint32_t worker, double now);
/* The next task for a worker that has room, now OUT at it; -1: none waits, or it has no room. */
int64_t handout_next(handout *h, uint32_t worker);
/* A task's result has come. False: it is not one that was wanted (it has one already). */
bool handout_done(handout *h, uint32_t task);
/* Takes back what workers have that were silent for more than `patience` seconds; returns one that was lost, or -1. */
int64_t handout_lost(handout *h, double now, double patience);
/* A task that cost HANDOUT_LOSSES workers, now DONE; -1: none. */
int64_t handout_hopeless(handout *h);
static inline bool handout_finished(const handout *h) { return h->done == h->task_count; }

#endif
