/* SPDX-License-Identifier: Apache-2.0 */
/* See tasks.h. A task that has run for longer than was expected is expected to run for a tenth more. */
#include "base/tasks.h"

#include <stdlib.h>

static const double OVERDUE = 0.1, NOT_BEFORE = 2;

static double larger(double a, double b) { return a > b ? a : b; }

uint32_t ff_tasks_add(ff_tasks *t, double weight, uint32_t group) {
  FF_PUSH(&t->list, ((ff_task){.weight = weight > 0 ? weight : 1, .group = group}));
  if (group >= t->group_count) t->group_count = group + 1;
  return (uint32_t)t->list.count - 1;
}

void ff_tasks_begin(ff_tasks *t, uint32_t task, double now) {
  if (t->since == 0) t->since = now;
  t->list.items[task].state = FF_TASK_RUNS;
  t->list.items[task].begun = now;
}

void ff_tasks_end(ff_tasks *t, uint32_t task, double now) {
  ff_task *one = &t->list.items[task];
  if (one->state == FF_TASK_RUNS) one->seconds = larger(now - one->begun, 0);
  one->state = FF_TASK_ENDED;
}

void ff_tasks_free(ff_tasks *t) {
  free(t->list.items);
  *t = (ff_tasks){0};
}

typedef struct ended {
  double weight, seconds;
} ended;

static double pace_of(const ended *e, double otherwise) { return e->weight > 0 ? e->seconds / e->weight : otherwise; }

/* What is overdue counts as what it has taken so far: else the shortest, which end first, would say how long all
 * are. */
static void add_overdue(const ff_tasks *t, double now, ended *all) {
  double pace = pace_of(all, t->known);
  for (size_t i = 0; pace > 0 && i < t->list.count; i++) {
    const ff_task *one = &t->list.items[i];
    if (one->state != FF_TASK_RUNS || now - one->begun <= one->weight * pace) continue;
    all->weight += one->weight;
    all->seconds += now - one->begun;
  }
}

/* What ended, by group, and the pace of all of it. */
static ended *sum_up(const ff_tasks *t, double now, double *pace) {
  ended *groups = ff_alloc((t->group_count + 1) * sizeof *groups), all = {0, 0};
  for (size_t i = 0; i < t->list.count; i++) {
    const ff_task *one = &t->list.items[i];
    if (one->state != FF_TASK_ENDED) continue;
    groups[one->group].seconds += one->seconds;
    groups[one->group].weight += one->weight;
    all.weight += one->weight;
    all.seconds += one->seconds;
  }
  add_overdue(t, now, &all);
  *pace = pace_of(&all, t->known);
  return groups;
}

double ff_tasks_left(const ff_tasks *t, double now) {
  double pace, longest = 0;
  ended *groups = sum_up(t, now, &pace);
  double all = t->later * pace;
  for (size_t i = 0; i < t->list.count; i++) {
    const ff_task *one = &t->list.items[i];
    double left = one->weight * pace_of(&groups[one->group], pace);
    if (one->state == FF_TASK_ENDED) continue;
    if (one->state == FF_TASK_RUNS) left = larger(left - (now - one->begun), OVERDUE * (now - one->begun));
    all += left;
    longest = larger(longest, left);
  }
  free(groups);
  return pace > 0 ? larger(longest, all / larger(t->at_once, 1)) : 0;
}

double ff_tasks_show(ff_tasks *t, double now) {
  double left = now - t->since < NOT_BEFORE ? 0 : ff_tasks_left(t, now);
  return left > 0 ? ff_estimate_show(&t->shown, now, left) : 0;
}
