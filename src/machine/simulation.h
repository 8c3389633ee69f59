/* SPDX-License-Identifier: Apache-2.0 */
/* The wiring: one simulation and the parts that it is made of. Private to machine/ and its tests.
 *
 * What always holds: events leave the heap in order of time, ties in order of insertion; nothing happens between two
 * events; only this simulation's thread touches it, but for what sim.c guards by its mutex. */
#ifndef FF_MACHINE_SIMULATION_H
#define FF_MACHINE_SIMULATION_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "machine/host/hints.h"
#include "machine/host/host.h"
#include "machine/host/host_transfer.h"
#include "machine/host/link.h"
#include "machine/host/streams.h"
#include "machine/host/virtual_memory.h"
#include "machine/memory/address_map.h"
#include "machine/memory/declared_residency.h"
#include "machine/memory/far_fault.h"
#include "machine/memory/hierarchy.h"
#include "machine/memory/tlb.h"
#include "machine/observe/observer.h"
#include "machine/sim.h"
#include "machine/sm/dispatch.h"
#include "machine/stacks/stacks.h"
#include "machine/tenants/device.h"
#include "machine/tenants/idle_sharing.h"
#include "machine/timing.h"
#include "policy/policies.h"

typedef struct question { uint64_t sequence; struct question *next; } question; /* of another thread, about an event */

struct sim {
  device *d;
  uint32_t tenant;              /* its number on the device */
  uint64_t space;               /* tenant << SPACE_SHIFT */
  ps began;                     /* the device's time when it was made */
  bool instant;                 /* what is not a kernel takes no time */
  uint64_t thread_limit, threads; /* MPS: resident threads that it may have, and has; 0: any number */
  uint32_t running_blocks;
  uint32_t unfinished, own_events; /* operations that are not over; events of its own in the heap, warps' apart */
  placing placing;
  FF_VEC(moved_page) moved;     /* idle_sharing.c: pages in memory that others lend */
  ps look_again;                /* for such memory, no earlier than that */
  /* what it is made of */
  const machine_spec *spec;     /* &own_spec */
  const manager *manager;       /* &own_manager */
  ff_policy_instance prefetch, evict;
  trace_program *program;
  trace_reader *reader;
  bool joins_issues;            /* the stream has marks, which mean nothing here */
  uint64_t gpu_memory;          /* that it works with: what it was given, a paged manager its least until it was given more */
  uint64_t given_memory;        /* the same for all managers; of a share the most so far */
  uint64_t least_memory;        /* that a paged manager can work with */
  bool left_out;                /* it was given less: what was counted is no result */
  double gpu_memory_share;      /* of the most that was mapped at one time so far; 0: gpu_memory is fixed */
  timing t;
  struct stacks *stacks;        /* memory stacks; NULL: the machine has none */
  ps stopped;                   /* no warp goes on before that */
  /* the device */
  ps now;
  sm *sms;
  l2_slice *slices;
  dram_channel *channels;
  uint64_t slices_per_channel;
  divider by_slices, by_row, by_banks;
  lru *shared_tlb;              /* its sets; NULL: there is none */
  divider shared_sets;
  pager *pager;
  trace_future *future;         /* that its policies ask; NULL: they do not */
  trace_future *record;         /* that it writes; NULL: none */
  FF_VEC(uint64_t) positions;   /* future: of the blocks that run */
  bool leaves_grow;             /* the pages that TLB entries map follow what is resident; else all are PAGER_LEAF_MIN */
  uint8_t alias_mask;         /* 0: units share the entries of a page */
  uint32_t leaf_shift[PAGER_LEAVES]; /* of these pages */
  bool page_fixed;              /* the user chose one size for all */
  uint32_t walk_shift;          /* of the machine's page_bytes, whatever is mapped: see gmmu_walk */
  uint32_t seen_shift;          /* of what a translation answers for: the smallest page, or a unit if that is smaller */
  ps fault_from;                /* when the request that faults now has reached the GMMU; 0: it is replayed */
  ps served_from;               /* when the far-fault's service began that pages are prefetched beside; 0: none */
  sim_counters *served_kernel;  /* whose far-fault that is */
  enum { BATCH_NONE, BATCH_CALLED, BATCH_SERVED } batch; /* the driver: idle, on its way, at work */
  ps batch_at;                  /* how far the service has come */
  FF_VEC(batch_fault) batch_faults; /* what it serves, for the counters */
  bool idle_pending;            /* an EVENT_LINK_IDLE is in the heap */
  bool clean_pending;           /* an EVENT_CLEAN is in the heap */
  ps room_at;                   /* when the memory that the next transfer takes is written back */
  FF_VEC(freed_ahead) freed;    /* memory that was evicted ahead and may still be being written back, oldest first */
  size_t freed_first;
  uint64_t freed_bytes;         /* sum of what is in it */
  bool write_back_overlaps;     /* the transfer in need not wait for that */
  /* warps, blocks, kernels */
  struct warp_list *blocked_warps; /* per SM */
  FF_VEC(block *) blocks;     /* all that were ever made, */
  block *free_blocks;         /* and those that are not running */
  uint64_t blocks_begun;
  kernel *queue_first, *queue_last; /* kernels with blocks to start */
  kernel *running;              /* all that have begun and not ended */
  uint32_t next_sm, running_count;
  ps running_since, running_until; /* of the kernels that run or ran last; until: where none runs */
  /* the host and its streams */
  ps host;
  FF_VEC(node *) nodes;         /* [0] unused */
  FF_VEC(uint32_t) free_nodes;
  FF_VEC(stream) streams;
  FF_VEC(sm_set *) sm_sets;     /* that streams are bound to, each once */
  uint32_t worked_stream;       /* the only stream that had work so far; UINT32_MAX: none yet */
  bool one_stream;              /* no second one has: launches are simulated to their end at once */
  bool paid;                    /* the operation was put by a call that the host has paid for (trace/origin.h) */
  uint32_t device_index;             /* of the program's devices, the one that is simulated; of the others it knows what they cost the host */
  sim_peers *peers;             /* where it meets the others' simulations; NULL: it is alone */
  ps not_before;                /* the operation that is processed waits for another device's event: it happened then */
  FF_VEC(uint32_t) ahead;       /* segments: launches whose turn has not come, in order */
  node *kept_back[SEGMENTS_AHEAD]; /* segments, one stream: the last ones that the host made, a ring */
  uint32_t next_kept_back;
  sim_counters *segment_kernel; /* segments: for which something is fetched now; NULL: nothing is */
  sim_hints hints;              /* given from outside; and what of them is prefetched and alive */
  FF_VEC(hinted) prefetched;
  FF_VEC(created_memory) created;  /* by id */
  FF_VEC(reserved_range) reserved; /* by address */
  bool touches_recorded;        /* the program says when the host touches managed memory */
  uint64_t mapped, mapped_pages, mapped_raw; /* bytes of device and managed memory, as host_memory has them */
  bool failed;
  uint64_t processed;           /* operations */
  ps device_end;                /* the latest end of any operation */
  /* results */
  sim_history *history;         /* NULL: none is kept */
  ps next_sample;               /* of what is resident, for the history; UINT64_MAX: none */
  ps batch_began;               /* the batch that is served, for the history, and what it moves */
  uint64_t batch_bytes;
  sim_counters counters;        /* of the run; the kernels' are added when asked for */
  FF_VEC(sim_kernel_result *) kernels;
  FF_VEC(sim_allocation_result *) allocations; /* [0]: accesses that belong to no allocation */
  char error[512];
  /* other threads */
  pthread_mutex_t *mutex;       /* the device's `work`: held by the thread that simulates, but while it waits */
  pthread_cond_t progress;
  _Atomic uint32_t askers;      /* threads that want the mutex */
  question *questions;
  bool over;
  FF_VEC(event_record) records; /* by sequence */
  ps *host_times;               /* of the last HOST_TIMES operations */
  /* what was chosen, apart from what is read all over */
  machine_spec own_spec;        /* with this simulation's values */
  manager own_manager;          /* with its way of handling far-faults */
  char label[SIM_LABEL_LENGTH];
};

static inline uint64_t physical_address(sim *s, uint64_t address) {
  return __builtin_expect(s->d->hash != NULL, 0) ? address_map_find(s, address) : address | s->space;
}

void sim_yield(sim *s);   /* lets waiting threads in, now and then */
void sim_unlock(sim *s);  /* around everything that may wait */
void sim_lock(sim *s);
event_record *sim_record(sim *s, uint64_t sequence); /* NULL: that operation recorded no event */

static inline tally tally_of(sim *s, const kernel *k, const pager_unit *unit) {
  return (tally){k->counters, &s->allocations.items[s->pager->allocations.items[unit->allocation].owner]->counters};
}
static inline bool is_paged(const sim *s) { return s->manager->placement == MANAGER_PAGED; }

#endif
