/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that runs the events of one simulation; on a device that several share, of all of them in turn
 * (device.c). */
#ifndef FF_MACHINE_EVENT_LOOP_H
#define FF_MACHINE_EVENT_LOOP_H

#include "machine/events.h"

struct node;

/* What events are for: the parts that they go to. */
typedef struct event_loop {
  struct device *d;
  uint32_t tenant; /* its number there */
  agenda *agenda;
  struct pager *pager;
  struct front_end *front;
  struct streams *streams;
  struct far_faults *faults;
  struct observer *observer;
  struct answers *answers;
  struct sm_rounds *rounds; /* its SMs run in rounds (sm/rounds.h); NULL: event by event */
} event_loop;

/* Asks the host's caches for what the warps of the queue's next events will read. */
void loop_prefetch(const event_heap *heap, const struct front_end *f);
void loop_run_event(event_loop *l, event e);
void run_until(event_loop *l, ps limit);            /* all events up to and with `limit` */
void run_until_done(event_loop *l, struct node *n); /* until the operation is over */
void run_all(event_loop *l);
bool loop_stopped(const event_loop *l); /* the program loops, and no other one is measured in parallel any more */

#endif
