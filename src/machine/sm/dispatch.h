/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks onto SMs: which kernel has which SM. */
#ifndef FF_MACHINE_SM_DISPATCH_H
#define FF_MACHINE_SM_DISPATCH_H

#include "base/memory.h"
#include "machine/sm/sm.h"

typedef struct device device;

/* Of the kernels of a simulation: how many have begun and not ended; since when any runs or ran last; until when, where
 * none does. */
typedef struct kernel_time {
  uint32_t running;
  ps since, until;
} kernel_time;

/* The dispatcher of one simulation. */
typedef struct dispatcher {
  device *d;
  uint32_t tenant; /* its number there */
  const machine_spec *spec;
  const timing *t;
  agenda *agenda;
  trace_reader *reader;
  struct answers *answers; /* the lock, given up while a block is waited for */
  struct pager *pager;     /* that is told how far the program has come, where its future is known: */
  trace_future *future;    /* NULL: it is not */
  trace_future *written;   /* of the program's blocks; NULL: none is written */
  struct lent *lent;
  struct link_port *link;
  struct far_faults *faults;
  struct observer *observer;
  struct learner *learner;
  struct sampler *sampler; /* that launches may be skipped for; NULL: every launch is timed */
  struct memory *memory;
  struct memory *flushed; /* whose L2 is empty when a kernel begins; NULL: kernels find what was there */
  /* its own state */
  kernel *queue_first, *queue_last; /* kernels with blocks to start */
  kernel *running;                  /* all that have begun and not ended */
  kernel_time kernels;
  uint32_t next_sm, running_blocks;
  uint32_t l2_resets;             /* of its last kernel's trace_l2_controls */
  uint32_t held;                  /* of these: async.h */
  uint64_t thread_limit, threads; /* MPS: resident threads that it may have, and has; 0: any number */
  FF_VEC(block *) blocks;         /* all that were ever made, */
  block *free_blocks;             /* and those that are not running */
  uint64_t blocks_begun;
  FF_VEC(uint64_t) positions; /* where the program's future is known: of the blocks that run */
} dispatcher;

void dispatcher_free(dispatcher *q);
void kernel_begin(dispatcher *q, kernel *k, ps time);
/* takes it out of those that run and counts its time; of one of which something was skipped, when that is over */
void kernel_over(dispatcher *q, kernel *k);
void block_end(dispatcher *q, block *b);
void dispatch_again(dispatcher *q, ps time); /* what held blocks back is over */
void dispatch_slice(device *d, ps time);     /* a time slice is over */
#define SLICE UINT64_C(2000000000)           /* 2 ms: NVIDIA's driver reports time slices of this order */

#endif
