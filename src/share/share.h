/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded programs side by side on one simulated GPU (Jain 2019, sections III and VI): which program gets which SMs
 * and which memory, what each one's kernels take then. One scenario is one simulation: the same scenario twice gives
 * the same numbers. */
#ifndef FF_STUDY_SHARE_H
#define FF_STUDY_SHARE_H

#include "machine/sim.h"

enum { SHARE_PROGRAMS = 8 };

typedef enum share_isolation {
  SHARE_NONE,      /* time slices: one program's kernels at a time, on all SMs */
  SHARE_MPS,       /* all at once; each may fill its share of the GPU's threads, on any SM */
  SHARE_SM,        /* each has SMs of its own (FGPU: compute partitioning) */
  SHARE_SM_MEMORY, /* and memory modules of its own, by page colouring (FGPU: compute and memory partitioning) */
  /* each has a slice of the GPU (NVIDIA's MIG): SMs, L2, memory and its channels as its profile says */
  SHARE_MIG,
} share_isolation;

/* Can an idle partition lend what it has? */
static inline bool share_lends(share_isolation isolation) {
  return isolation == SHARE_SM || isolation == SHARE_SM_MEMORY;
}

typedef struct share_program {
  const char *trace;             /* a recording's path; NULL: this partition is idle */
  double sm_share, memory_share; /* of the device: above 0, all together at most 1; SHARE_MIG: not looked at */
  uint32_t profile;              /* SHARE_MIG: which of the machine's mig_profiles */
  bool loops; /* an interferer: its kernels again and again until all that do not loop are over; what is not a
                                     * kernel takes it no time */
} share_program;

typedef struct share_scenario {
  const machine_spec *spec;
  const char *set;         /* machine values as --set; NULL */
  const char *manager;     /* as `--memory` takes one, with what is changed about it; NULL: copy */
  const char *host_memory; /* as --host-memory, of all programs together; NULL: the machine's */
  share_isolation isolation;
  bool borrow;                   /* SHARE_SM, SHARE_SM_MEMORY: what an idle partition has is lent */
  bool profile_range;            /* of programs that do not loop, only what is between cudaProfilerStart and ...Stop */
  const share_program *programs; /* [0] is partition 0; at least one does not loop */
  uint32_t count;
  void (*progress)(void *context, double done); /* now and then, 0 to 1; NULL: none */
  void *context;
} share_scenario;

typedef struct share_outcome { /* of one program */
  double kernel_us;            /* its kernels' times from begin to end, added */
  double total_us;             /* from its first operation to its last (looping: to when it was stopped) */
  uint64_t launches, passes;   /* kernels that ended; looping: whole rounds */
  uint32_t sms, colours;       /* that it had; colours: 0 where memory is not divided by them */
  uint32_t memory_slices;      /* SHARE_MIG: of the GPU's memory; else 0 */
  double dram_gbs;             /* what its kernels read and wrote of GPU memory per time of theirs */
  double dram_share;           /* of what its modules could have moved in that time */
  double dram_unused_gbs;      /* what the modules of partitions that were idle could have moved in that time */
  double borrowed_us;          /* time in which it had what was lent */
  /* borrow: the longest from the owner's wish until it had all of its own again; of the owner */
  double take_back_us;
  /* below GPU memory, where there are some: what it took of them itself (looping: in all rounds), but for the peak,
   * which is of all programs together */
  sim_tiers tiers;
  char error[256]; /* it did not end as it should: why */
} share_outcome;

/* Runs it to its end. results: `count` of them. FF_INVALID, FF_NOT_FOUND, FF_PARSE, FF_LIMIT (more partitions than
 * colours) with a message. */
ff_status share_run(const share_scenario *scenario, share_outcome *results, ff_error *error);
enum { SHARE_PAGE = 4096 /* bytes: what is coloured */ };
/* How many colours pages of SHARE_PAGE have, so many partitions can have memory of their own; 1 where the machine's
 * file has no address hash: what is not known is not divided. */
uint32_t share_machine_colours(const machine_spec *spec);
const char *share_isolation_name(share_isolation isolation); /* none, mps, sm, sm+memory, mig; NULL behind the last */

#endif
