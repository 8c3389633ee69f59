/* SPDX-License-Identifier: Apache-2.0 */
/* The host: its virtual clock, and what each operation costs it. */
#ifndef FF_MACHINE_HOST_HOST_H
#define FF_MACHINE_HOST_HOST_H

#include "machine/sim.h"
#include "machine/timing.h"

enum { HOST_TIMES = 1 << 16 };

/* GPU memory that the program may have, and has: bytes. */
typedef struct memory_budget {
  /* that the simulation works with: what it was given, a paged manager its least until it was given more */
  uint64_t bytes;
  uint64_t given;                            /* the same for all managers; of a share the most so far */
  uint64_t least;                            /* that a paged manager can work with */
  double share;                              /* of the most that was mapped at one time so far; 0: `bytes` is fixed */
  bool left_out;                             /* it was given less than the least: what was counted is no result */
  uint64_t mapped, mapped_pages, mapped_raw; /* device and managed memory, as host_memory has them */
  uint64_t elsewhere_pages;                  /* of other devices of the program: bytes that may be in its tiers, too */
} memory_budget;

typedef struct host {
  const manager *manager;
  const timing *t;
  const char *label;     /* what results call the simulation */
  bool instant;          /* what is not a kernel takes no time */
  trace_reader *reader;  /* that passes over what is not simulated */
  trace_future *written; /* of the program's operations; NULL: none is written */
  memory_budget *budget;
  struct tier_store *tiers; /* below GPU memory */
  struct pager *pager;
  struct placing *map;
  struct streams *streams;
  struct event_loop *loop;
  struct transfers *transfers;
  struct segments *segments;
  struct hints *hints;
  struct mappings *mappings;
  struct observer *observer;
  struct answers *answers;
  struct profile *profile;
  /* of the program's devices, the one that is simulated; of the others it has what they cost the host */
  uint32_t device_index;
  sim_peers *peers; /* where it meets the others' simulations; NULL: it is alone */
  struct peer_link *peer_link;
  /* its own state */
  ps clock;
  ps called;             /* the clock when the operation that is processed was asked for */
  ps not_before;         /* the operation that is processed waits for another device's event: it happened then */
  bool paid;             /* the operation was put by a call that the host has paid for (trace/origin.h) */
  bool touches_recorded; /* the program says when the host touches managed memory */
  uint32_t op_device;    /* whose stream the operation is of that is processed */
  bool managed;          /* the program has had managed memory */
  bool failed;
  char error[512];
  uint64_t processed; /* operations */
  ps *times;          /* the clock after the last HOST_TIMES operations */
} host;

void host_begin(host *h);
void host_free(host *h);
void host_process(host *h, const trace_op *op); /* the program's next operation */
void host_spend(host *h, ps cost);              /* host time; the device goes on meanwhile */
void host_spend_call(host *h);                  /* the cost of a CUDA call that does not wait */
void host_wait_for_device(host *h);

/* GPU memory, in bytes: as the manager hands it out; in whole pages; as the program counts it. */
typedef struct host_memory {
  uint64_t bytes, pages, raw;
} host_memory;
/* What a range takes that is not mapped now. */
host_memory host_memory_for(const host *h, uint64_t address, uint64_t bytes);
/* For `name`; false: there is none, and the simulation has failed. */
bool host_take_memory(host *h, host_memory memory, const char *name);
void host_give_memory(host *h, host_memory memory);
/* The same for memory of another device of the program: it takes no GPU memory here. */
void host_take_elsewhere(host *h, uint64_t address, uint64_t bytes, const char *name);
void host_give_elsewhere(host *h, uint64_t address, uint64_t bytes);

/* The simulation fails, with a message for its results; further operations are passed over. */
void host_fail(host *h, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
