/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and the operations in them (queue.c). */
#ifndef FF_MACHINE_HOST_STREAMS_H
#define FF_MACHINE_HOST_STREAMS_H

#include "base/memory.h"
#include "machine/events.h"
#include "machine/sm/sm.h"

/* The stream of what streams of that device do with this one's memory. */
#define STREAM_ELSEWHERE(device) (TRACE_STREAM_NUMBERS - 1 - (device))

typedef struct node { /* an operation in a stream */
  trace_op op;
  uint32_t index;
  uint32_t waits; /* unfinished operations before it, plus one while it is made */
  FF_VEC(uint32_t) dependents;
  ps ready, done_at;
  host_call call;
  bool done;
  uint32_t references; /* stream tails, events, the host that waits */
  kernel *kernel;
  /* segments */
  FF_VEC(uint32_t) uses; /* a launch's: allocations that it declares, until it is over */
  uint32_t use;          /* how far they have been fetched while others ran: this one, up to use_at */
  uint64_t use_at;
  const sm_set *sms; /* a launch's; NULL: all */
  bool only_kernels; /* nothing but launches was unfinished before it */
  bool waited;       /* for what it declares */
  uint32_t profiled; /* calls of cudaProfilerStart and ...Stop before it (profile.h) */
} node;

typedef struct stream {
  uint32_t number;
  bool non_blocking, destroyed;
  uint32_t tail;     /* its last operation; 0: none ever */
  ps done_at;        /* of all its finished operations the latest */
  const sm_set *sms; /* of launches that are still to be made; NULL: all */
} stream;

typedef struct event_record {
  uint64_t sequence;
  uint32_t number, node;
  ps time;
  bool known;
} event_record;

enum { SM_SETS = 256 };

typedef struct streams {
  const machine_spec *spec;
  const timing *t;
  const struct device *d; /* whose SMs streams are bound to */
  uint32_t tenant;        /* its number there */
  agenda *agenda;
  trace_reader *reader;
  struct dispatcher *dispatch;
  struct transfers *transfers;
  struct segments *segments;
  struct observer *observer;
  struct host *host; /* that a stream which cannot be simulated fails */
  struct answers *answers;
  struct profile *profile;
  /* its own state */
  FF_VEC(stream) items;
  FF_VEC(node *) nodes; /* [0] unused */
  FF_VEC(uint32_t) free_nodes;
  FF_VEC(event_record) records; /* by sequence */
  FF_VEC(sm_set *) sm_sets;     /* that streams are bound to, each once */
  uint32_t unfinished;          /* operations that are not over */
  uint32_t worked;              /* the only stream that had work so far; UINT32_MAX: none yet */
  bool one;                     /* no second one has: launches are simulated to their end at once */
  ps end;                       /* the latest end of any operation */
} streams;

void streams_begin(streams *q); /* with the legacy default stream alone */
void streams_free(streams *q);
/* An operation of it is put that takes time: is it the only stream so far that has any? */
void stream_note_work(streams *q, uint32_t number);
void stream_create(streams *q, uint32_t number, bool non_blocking);
stream *stream_find(streams *q, uint32_t number);
void stream_bind(streams *q, uint32_t number, const trace_sms *wanted); /* TRACE_OP_STREAM_SMS */
node *queue_add(streams *q, const trace_op *op, ps issued);             /* one reference is the caller's */
void queue_release(streams *q, node *n);
void node_ready(streams *q, node *n);
void node_begin_kernel(streams *q, node *n, ps time); /* a launch's, launch_latency_us after it was ready */
void node_done(streams *q, node *n, ps time);
void stream_destroy(streams *q, uint32_t number);
event_record *record_of(const streams *q, uint32_t number);   /* by the event's number; NULL: never recorded */
event_record *record_at(const streams *q, uint64_t sequence); /* by the operation's; NULL: that one recorded no event */

#endif
