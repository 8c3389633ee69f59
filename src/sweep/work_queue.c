/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep/work_queue.h"

#include <stdlib.h>

#include "base/check.h"

void work_queue_start(work_queue *h, uint32_t tasks, uint32_t workers) {
  *h = (work_queue){.task_count = tasks, .worker_count = workers};
  h->tasks = ff_alloc((tasks + 1) * sizeof *h->tasks);
  h->workers = ff_alloc((workers + 1) * sizeof *h->workers);
}

void work_queue_free(work_queue *h) {
  free(h->tasks);
  free(h->workers);
  *h = (work_queue){0};
}

void work_queue_join(work_queue *h, uint32_t worker, uint32_t room, double now) {
  h->workers[worker].alive = true;
  h->workers[worker].room = room;
  h->workers[worker].heard = now;
}

void work_queue_heard(work_queue *h, uint32_t worker, double now) {
  if (h->workers[worker].room) h->workers[worker].alive = true;
  h->workers[worker].heard = now;
}

static void check(const work_queue *h) {
  uint32_t done = 0;
  for (uint32_t i = 0; i < h->task_count; i++) {
    done += h->tasks[i].state == TASK_DONE;
    FF_ASSERT(i >= h->first || h->tasks[i].state != TASK_WAITING);
  }
  FF_ASSERT(done == h->done);
}

int64_t work_queue_next(work_queue *h, uint32_t worker) {
  work_queue_worker *w = &h->workers[worker];
  if (!w->alive || w->busy >= w->room) return -1;
  while (h->first < h->task_count && h->tasks[h->first].state != TASK_WAITING) h->first++;
  if (h->first == h->task_count) return -1;
  h->tasks[h->first].state = TASK_OUT;
  h->tasks[h->first].worker = worker;
  w->busy++;
  return h->first++;
}

bool work_queue_done(work_queue *h, uint32_t task) {
  if (task >= h->task_count || h->tasks[task].state == TASK_DONE) return false;
  work_queue_task *t = &h->tasks[task];
  if (t->state == TASK_OUT) h->workers[t->worker].busy--;
  t->state = TASK_DONE;
  h->done++;
  if (ff_check_level >= 2) check(h);
  return true;
}

int64_t work_queue_lost(work_queue *h, double now, double patience) {
  for (uint32_t w = 0; w < h->worker_count; w++) {
    if (!h->workers[w].alive || now - h->workers[w].heard <= patience) continue;
    h->workers[w].alive = false;
    h->workers[w].busy = 0;
    for (uint32_t i = 0; i < h->task_count; i++) {
      work_queue_task *t = &h->tasks[i];
      if (t->state != TASK_OUT || t->worker != w) continue;
      t->state = TASK_WAITING;
      t->losses++;
      if (i < h->first) h->first = i;
    }
    if (ff_check_level >= 2) check(h);
    return w;
  }
  return -1;
}

int64_t work_queue_hopeless(work_queue *h) {
  for (uint32_t i = 0; i < h->task_count; i++)
    if (h->tasks[i].state == TASK_WAITING && h->tasks[i].losses >= HANDOUT_LOSSES) {
      work_queue_done(h, i);
      return i;
    }
  return -1;
}
