/* SPDX-License-Identifier: Apache-2.0 */
/* How long a number of tasks will still take, some of them at a time: what ended says how long the others will be.
 *
 * A task is expected to take its weight times what those of its group took per weight; before one of its group has
 * ended, times what all took per weight: those that ended, and those that run for longer than that already. The time is
 * given (seconds of any clock). */
#ifndef FF_BASE_TASKS_H
#define FF_BASE_TASKS_H

#include "base/estimate.h"
#include "base/memory.h"

typedef struct ff_task {
  double weight;  /* how long it is, compared with others; above 0 */
  uint32_t group; /* tasks that are much alike have one number, below ff_tasks.group_count */
  enum { FF_TASK_WAITS, FF_TASK_RUNS, FF_TASK_ENDED } state;
  double begun, seconds; /* when it began, if it runs; what it took, if it has ended */
} ff_task;

typedef struct ff_tasks { /* all zero: none; ff_tasks_free */
  FF_VEC(ff_task) list;
  uint32_t group_count, at_once; /* at_once: tasks at a time, at least 1 */
  double later;                  /* weight of what is not in the list yet */
  double known;                  /* seconds per weight, if that is known before a task has ended, else 0 */
  double since;                  /* when the first one began */
  ff_estimate shown;
} ff_tasks;

/* Returns its index. */
uint32_t ff_tasks_add(ff_tasks *t, double weight, uint32_t group);
void ff_tasks_begin(ff_tasks *t, uint32_t task, double now);
void ff_tasks_end(ff_tasks *t, uint32_t task, double now);
void ff_tasks_free(ff_tasks *t);

/* Seconds until all have ended; 0: nothing can be said. */
double ff_tasks_left(const ff_tasks *t, double now);
/* The same as people can look at it (ff_estimate_show); 0 also in the first two seconds, in which only the shortest
 * have ended. */
double ff_tasks_show(ff_tasks *t, double now);

#endif
