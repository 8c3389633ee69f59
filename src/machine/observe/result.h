/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulation found, as numbers. Filled by machine/sim.c, written and shown by report/. */
#ifndef FF_MACHINE_RESULT_H
#define FF_MACHINE_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "machine/spec/peaks.h"
#include "machine/stacks/offload_choice.h"

struct sim_history;

typedef struct sim_counters {
#define X(name, unit, help) uint64_t name;
#include "machine/observe/counters.def"
#undef X
} sim_counters;

enum { SIM_TIERS = 6 }; /* five, and files */
typedef struct sim_tier {
  char name[16];
  uint64_t capacity; /* bytes */
#define X(name, unit, help) uint64_t name;
#include "machine/observe/tiers.def"
#undef X
} sim_tier;
#define SIM_FILES "files"  /* the name of what counts files (cuFile): the last one, where there were some */
typedef struct sim_tiers { /* below GPU memory, the nearest first */
  uint32_t count;          /* 0: the host's memory holds everything */
  sim_tier of[SIM_TIERS];
} sim_tiers;

typedef struct sim_kernel_result { /* all launches of one kernel in one range of the program's */
  char name[256];
  char range[128]; /* "": in none */
  /* where in the program it was launched; "": not known; from several, the first and " and others" */
  char site[64];
  bool others;           /* the site says so. Not in files */
  sim_counters counters; /* time_ps: summed duration of its launches; launches; ... */
} sim_kernel_result;

typedef struct sim_allocation_result {
  char name[64];
  uint32_t id;
  uint64_t address, bytes;
  bool managed, pinned;
  sim_counters counters; /* accesses, sectors, faults, h2d_bytes, d2h_bytes, ... */
} sim_allocation_result;

/* One instruction of a kernel's code that has accessed memory, where that is counted (sim_options.lines). What is in
 * its counters is its accesses': launches, time, instructions and waiting are the kernel's alone. */
typedef struct sim_line_result {
  uint32_t kernel; /* index in `kernels` */
  uint32_t pc;     /* its number in the kernel's code, functions that it calls behind it */
  uint32_t place;  /* its line in the PTX, from 1; 0: not known */
  uint32_t source; /* its line in `file`, from 1; 0: not known */
  char *file;      /* of the source (.file of the PTX); owned; NULL: not known */
  char *text;      /* the instruction; owned; NULL: not known */
  uint32_t code;   /* which of the kernel's codes; not in files, as */
  uint32_t module; /* these two: trace_launch */
  uint64_t symbol;
  sim_counters counters;
} sim_line_result;

typedef struct sim_code { /* a TRACE_OP_MODULE */
  uint32_t module;
  const char *ptx; /* the access stream's */
  uint64_t bytes;
} sim_code;

/* Of a simulation that times only some launches, and only some blocks of long ones (sm/sample.h). */
typedef struct sim_sampling {
  bool chosen;               /* false: every launch is timed */
  uint64_t timed, estimated; /* launches that are over */
  uint64_t blocks;           /* of those that were timed, blocks that were not */
  uint64_t without_records;  /* of those that were timed, launches of which only what they touch was known */
  uint64_t estimated_ps;     /* the times of both, in kernel_ps and in those of their kernels; */
  uint64_t interval_ps;      /* half of the 95 % interval of this sum, as the spread of the timed ones has it */
} sim_sampling;

typedef struct sim_result { /* one manager on one machine */
  char memory[256];         /* the manager's name, or what the user called it */
  char machine[64];
  uint32_t device; /* its number of several, from 1; 0: the program has one */
  machine_peaks peaks;
  bool complete;   /* false: a snapshot of a run that has not ended */
  char error[512]; /* nonempty: the manager could not run the program, and why */
  sim_counters counters;
  /* bytes that came to the GPU by paging: after they had been evicted to make room; the rest. Not in files.
   * Of profile ranges: what came back in them, and the rest from the beginning on: pages that came before a range may
   * thrash in it */
  uint64_t came_back, came_first;
  sim_sampling sampling;
  bool profiled;     /* only what happened between cudaProfilerStart and cudaProfilerStop is in it; not in files, as */
  uint64_t profiles; /* how many such ranges have begun */
  sim_stacks stacks; /* count 0: the machine has none */
  sim_tiers tiers;
  sim_kernel_result *kernels; /* owned; sim_result_free */
  uint32_t kernel_count;
  sim_allocation_result *allocations;
  uint32_t allocation_count;
  bool lines_kept;        /* counted by instruction; `lines` may be empty then */
  sim_line_result *lines; /* by kernel, code and pc; owned with their texts */
  uint32_t line_count;
  sim_code *codes; /* owned, their texts are not. Not in files */
  uint32_t code_count;
  struct sim_history *history; /* owned; machine/observe/history.h. NULL: none was kept */
} sim_result;

void sim_result_free(sim_result *result);

/* Each counter, modulo 2^64. */
void sim_counters_add(sim_counters *to, const sim_counters *more);
void sim_counters_subtract(sim_counters *to, const sim_counters *less);

/* Of a profiled result with its history and lines: kernels that did nothing in the ranges are left out, and the others
 * numbered anew. */
void sim_result_drop_idle(sim_result *result);

/* Ratios that the reports show; 0 where the denominator is 0. */
double sim_link_utilisation(const sim_counters *c); /* busy time of the busier direction / time */
double sim_tlb_miss_rate(const sim_counters *c);
/* How often each page came on average, if the manager thrashes: what was evicted came back at least twice as often as
 * anything came otherwise, and a MiB or more of it; 0: it does not. */
double sim_thrashes(const sim_result *result);

#endif
