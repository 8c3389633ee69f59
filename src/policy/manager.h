/* SPDX-License-Identifier: Apache-2.0 */
/* Managers: whole ways of handling GPU memory. A manager is one file with one const struct; managers.def lists them
 * all.
 *
 * The manager proposes, the pager (paging/) disposes: whatever a decision says, the pager's checks hold (pager.h), and
 * the warps that wait are woken (sim_check: none sleeps when a program has ended). A manager sees nothing of time or
 * of the machine: it is given what it may look at. */
#ifndef FF_POLICY_MANAGER_H
#define FF_POLICY_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What happens to a translation request whose page is not in GPU memory (a NACK, from the TLB's point of view). */
typedef enum manager_answer {
  MANAGER_TRACK,    /* the GMMU takes a far-fault MSHR; the warp sleeps, the TLB goes on */
  MANAGER_THROTTLE, /* the GMMU drops it; the TLB replays it after one of its SM's pending far-faults */
  MANAGER_BLOCK,    /* as TRACK, and the SM's TLB takes no request until the page is there */
  MANAGER_BUFFER,   /* the fault goes into a buffer that the host's driver serves in batches */
} manager_answer;

typedef struct manager_nack {
  uint32_t pending;   /* far-faults of this SM that are tracked now */
  uint32_t allotment; /* far-fault MSHRs per SM */
} manager_nack;

/* Where the program's data lives. */
typedef enum manager_placement {
  /* where the program's own copies put it; managed allocations move whole, or as cpu_fault_bytes says */
  MANAGER_PROGRAM,
  MANAGER_PAGED,      /* on the CPU at first; pages move when the GPU asks for them */
  MANAGER_EVERYWHERE, /* always where it is wanted, for nothing */
  MANAGER_REMOTE,     /* on the CPU, always; the GPU reaches over the link */
} manager_placement;

/* Mitigation of thrashing between the CPU and the GPU (paging/thrash.c, which explains the names). */
typedef struct manager_thrashing {
  uint32_t events, throttles, resets;
  double lapse_us, nap_us, pin_us, epoch_us;
} manager_thrashing;

/* Pre-eviction: when less than `low` of GPU memory is free, the pager evicts ahead until `high` is. */
typedef struct watermarks {
  uint64_t low, high;           /* bytes; 0: none */
  double low_share, high_share; /* of GPU memory, below 1; where it is not 0 it counts instead */
} watermarks;

/* Access counters (paging/access_counters.c): when the GPU has accessed an aligned granule of so many bytes, 64 KiB or
 * 2 MiB, so often over the link, the granule comes. threshold 0: nothing is counted. */
typedef struct manager_counters {
  uint32_t threshold;
  uint64_t granule;
} manager_counters;

typedef struct manager {
  const char *name;
  const char *summary; /* one line, for `farfault list managers` */
  manager_placement placement;
  /* MANAGER_PROGRAM: managed memory is the CPU's page by page (paging/managed_pages.c); a fault of the CPU brings the
   * aligned window of so many bytes around its page, a power of two from 4 KiB to 2 MiB. 0: managed allocations move
   * whole. */
  uint64_t cpu_fault_bytes;
  /* MANAGER_PAGED only */
  manager_answer (*decide)(const manager_nack *nack);
  const char *prefetch; /* policies, as for --prefetch and --evict; NULL: none, and "lru" */
  const char *evict;
  uint64_t unit_bytes; /* what a far-fault moves at least; 0: the machine's fault_page_bytes */
  uint32_t ranges;     /* partial pages of 2 MiB: valid ranges that each may have; 0: no partial pages */
  uint64_t gap_bytes;  /* with several ranges: a smaller gap is moved and closed */
  /* what a launch declares comes before it begins, and while others run (machine/memory/declared_residency.c) */
  bool segments;
  /* what is not in GPU memory the GPU reaches over the link: nothing faults, and only the prefetcher brings pages */
  bool reaches;
  /* the host reaches GPU memory, too: nothing leaves it because the host reads or writes there, and nothing faults */
  bool coherent;
  manager_counters counters;
  bool copy_clean;                    /* evicted pages are written back even if the host has the same bytes */
  bool batches;                       /* decide answers MANAGER_BUFFER always */
  const manager_thrashing *thrashing; /* with batches; NULL: pages go back and forth for ever */
  bool whole_blocks;                  /* GPU memory is handed out in blocks of 2 MiB */
  watermarks watermarks;              /* what is kept free; all 0: nothing */
} manager;

/* Do far-faults move pages? */
static inline bool manager_pages(const manager *m) { return m->placement == MANAGER_PAGED; }

/* Do pages come that the GPU reaches over the link until their bytes begin to move? */
static inline bool manager_departs(const manager *m) { return m->reaches || m->counters.threshold; }

#define X(name) extern const manager manager_##name;
#include "policy/managers.def"
#undef X
extern const manager *const managers[]; /* NULL-ended */

/* ---- fault_ways.c: ways of handling far-faults ---- */

/* Zheng et al. (HPCA 2016): section 2.1, every far-fault stops its SM; section 3, replayable far-faults, tracked while
 * the SM's allotment lasts, then throttled. And batches, as NVIDIA's driver takes them from the fault buffer. */
manager_answer manager_blocks(const manager_nack *nack);
manager_answer manager_replays(const manager_nack *nack);
manager_answer manager_buffers(const manager_nack *nack);

typedef struct manager_faults {
  const char *name;
  const char *number; /* the machine's value that N of "NAME:N" stands for; NULL: it takes no number */
  const char *summary;
  manager_answer (*decide)(const manager_nack *nack);
  bool batches;
} manager_faults;
extern const manager_faults manager_fault_ways[];                           /* ended by one without a name */
const manager_faults *manager_faults_find(const char *name, size_t length); /* NULL: there is none */
const char *manager_faults_name(const manager *m);                          /* "none": the manager has no far-faults */

const manager *manager_find(const char *name); /* NULL: there is none of that name */

#endif
