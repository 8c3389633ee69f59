/* SPDX-License-Identifier: Apache-2.0 */
/* An SM, and what runs on it: kernels, their blocks, their warps.
 *
 * A warp goes from one wake to the next (sm.c); what it reads and writes goes through the load/store unit
 * (load_store.h); blocks come from the dispatcher (dispatch.h). */
#ifndef FF_MACHINE_SM_SM_H
#define FF_MACHINE_SM_SM_H

#include <stdbool.h>
#include <stdint.h>

#include "machine/events.h"
#include "machine/memory/cache.h"
#include "machine/memory/lru.h"
#include "machine/observe/tally.h"
#include "machine/sim.h"
#include "machine/sm/load_store.h"
#include "machine/timing.h"

enum { LOAD_RING = 32, COPY_GROUPS = 8, BURST = 32, BARRIERS = 16 };

/* Of arithmetic: FMA, ALU, XU, FP64, TENSOR; the last is the part of the FMA pipe that multiplies integers, and where
 * half precision has a pipe of its own, that. */
enum { PIPES = 6, PIPE_FMA = 0, PIPE_FP64 = 3, PIPE_OTHER = PIPES - 1 };
typedef struct scheduler {
  server issue, pipes[PIPES];
} scheduler;

typedef struct warp {
  uint32_t burst, passes, sfu, fp64; /* what is left of an ISSUE, */
  uint32_t units[TRACE_UNIT_COUNT];  /* and of its UNITS */
  const uint64_t *record;            /* the ACCESS in progress; NULL: none */
  struct sm *sm;
  struct scheduler *scheduler;
  sim_counters *counters; /* of its kernel */
  sim_counters *counted;  /* where its access is: the same, or its instruction's (observe/lines.h) */
  uint32_t index, number; /* in the table; in its block */
  uint32_t loads;         /* issued so far; load i arrives at ring[i % LOAD_RING] */
  bool asleep;
  bool woken;  /* batches: a page that it waited for has come since it last looked, */
  bool verify; /* and: `waiting` may be too much */
  bool near;   /* the host's caches have been asked for the first lines of its access (access_prefetch_near) */
  bool marked; /* between ENTER and LEAVE, on a machine with stacks: stacks.h */
  bool local;  /* its access is a SPILL, */
  bool issued; /* which its scheduler has issued */
  trace_cursor cursor;
  struct block *block;
  uint64_t todo; /* of the access's lines from first_line on, those not accepted yet */
  /* batches: of these, those whose page it waits for, once per page; and those whose page has come and gone since it
   * last looked. More than waiting_units: there are some of these. */
  uint64_t waiting;
  /* batches: lines whose page it waits for, and has since they were looked at last */
  uint64_t unserved;
  ps arrival; /* when the data of those that were accepted has arrived */
  ps slept;   /* asleep: since when */
  uint32_t first_line;
  uint32_t waiting_units; /* far-faults it waits for */
  uint32_t next;          /* in a barrier's list, or in the load/store unit's */
  uint32_t groups;        /* of copies, so far */
  ps copied;              /* when all that it has copied so far is there */
  /* in rounds (rounds.h): */
  uint32_t open_copies;  /* of asynchronous copies, lines whose arrival is not known yet */
  uint32_t parked;       /* 1 + the place in `ring` of the load that it waits for; 0: it does not wait for one */
  uint32_t parked_order; /* its turn, among events at the same time, when that has arrived; */
  ps parked_at;          /* since when */
  /* of what it has made, and unset before: */
  ps group_arrival[COPY_GROUPS]; /* as `copied`, by the end of a group */
  ps ring[LOAD_RING];
  uint16_t open[LOAD_RING];              /* in rounds: lines of that load whose arrival is not known yet */
  uint64_t spill[2 + TRACE_SPILL_WORDS]; /* a SPILL as the ACCESS that it is to the load/store unit */
} warp;

typedef struct warp_list {
  uint32_t *items;
  size_t count, capacity;
} warp_list;

typedef struct warp_table { /* all warps of a device, by index; [0] is none */
  warp **items;
  size_t count, capacity;
  warp_list free; /* those that do not run */
} warp_table;

typedef struct block {
  struct kernel *kernel;
  trace_chunk *chunk;
  struct sm *sm;
  uint64_t number;            /* in its launch */
  uint64_t position;          /* in the program's order, if the future is known */
  uint32_t live, waiting;     /* warps that have not exited; of these, at a barrier, */
  uint32_t waiting_far;       /* and of these, for other blocks of its cluster */
  bool held;                  /* async.h */
  struct mbarrier *mbarriers; /* async.c */
  uint32_t arrived[BARRIERS], first_waiting[BARRIERS], last_waiting[BARRIERS];
  ps barrier_time[BARRIERS]; /* when it has taken all arrivals so far */
  ps began, ended, drained;  /* the latest exit so far; when its last access is over */
  uint64_t serial;           /* no other block of the simulation has the same, whatever memory it lies in */
  ps written;                /* when all that its warps have written is in memory (l2_write_through) */
  uint32_t exited;           /* in rounds: its warps that have, by warp.next */
  struct block *next_free;
} block;

typedef struct sm {
  uint32_t index;
  event_heap *events;     /* with its warps' events: the device's, or in rounds its own */
  struct round_sm *round; /* NULL: the simulation does not run in rounds */
  uint32_t stack;         /* 1 + the memory stack whose logic layer it is in; 0: it is on the GPU */
  uint32_t began_version; /* in a stack: versions_now when the last instance came */
  scheduler *schedulers;
  server shared, tlb_port, fp64; /* fp64: where all schedulers have one pipe for it */
  load_store lsu, bulk;          /* bulk: the engine for bulk and tensor copies */
  ps next_block;
  cache l1;
  bool l1_hashed;
  uint64_t l1_epoch;  /* part of its tags: a kernel's begin empties it */
  uint64_t l1_clears; /* how many of device.l1_clears it has followed: all, if blocks are on it */
  slots l1_mshrs, stores;
  lru tlb;
  uint32_t threads, blocks, next_scheduler;
  uint64_t registers, shared_bytes; /* in use */
  uint64_t carve_out;               /* shared memory that it has now */
  bool tlb_blocked;
  warp_list *blocked_warps; /* in the device's array */
} sm;

/* Which SMs a kernel's blocks may start on. */
enum { SM_SET_WORDS = 64 };
typedef struct sm_set {
  uint64_t bits[SM_SET_WORDS];
} sm_set;
static inline bool sm_set_has(const sm_set *set, uint32_t sm) { return set->bits[sm / 64] >> (sm % 64) & 1; }

typedef struct kernel {
  struct dispatcher *dispatch; /* whose it is */
  const sm_set *sms;           /* NULL: all */
  trace_launch *launch;        /* until the last block is over */
  uint64_t number;             /* the launch's */
  host_call call;
  sim_counters *counters;
  struct sample_launch *sampled; /* NULL: every launch is timed */
  struct kernel_lines *lines;    /* NULL: nothing is counted by instruction */
  struct far_arrivals *far;      /* async.c; NULL: there are none so far */
  uint32_t node, stream;         /* its operation, and that one's stream */
  uint64_t blocks, next_block, done_blocks;
  trace_chunk *ahead; /* of next_block, if that was looked at to find its SM */
  uint32_t bound_to;  /* where it must start then; UINT32_MAX: anywhere */
  uint32_t warps_per_block, block_threads;
  uint64_t block_registers, block_shared;
  uint64_t carve_out;             /* shared memory of an SM on which its blocks find no others */
  trace_l2_controls l2;           /* that it finds */
  ps began, ended, longest_block; /* longest_block: of those that are over */
  struct kernel *next;            /* in the dispatcher's queue, or among the running ones */
} kernel;

/* The front end of the SMs, as one simulation uses it: its warps' records are read, their instructions issued. */
typedef struct front_end {
  event_heap *heap;
  const timing *t;
  warp_table *warps;
  trace_reader *reader;
  struct access_path *accesses;  /* below it */
  struct dispatcher *dispatch;   /* that is told when a block is over */
  struct controller *controller; /* NULL: the machine has no memory stacks */
  uint32_t left_out;             /* TRACE_NO_...: what of the stream means nothing here */
  bool joins_issues;             /* for that, or as UNITS are wanted */
  bool hoists_loads;             /* early WAITs mean nothing, else late ones */
  bool pipes;                    /* the machine has execution pipes, and the stream says what goes to them */
  struct round_sm *round;        /* it is that SM's, in a round; NULL: all may be asked at once */
  bool single;                   /* a wake is one step */
  /* its own state */
  ps stopped; /* no warp goes on before that */
} front_end;

void warp_wake(front_end *f, warp *w, ps time);
void warp_sleep(warp *w, ps time);
/* From outside the SM, which in rounds may have come further already. */
void warp_wake_at(sm *m, ps time, uint32_t warp_index);
void warps_stop(front_end *f, ps until);           /* none goes on before that */
warp *warp_take(warp_table *table, arena *memory); /* one that does not run, or a new one */

#endif
