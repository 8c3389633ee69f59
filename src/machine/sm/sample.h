/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling: of launches that repeat only some are timed by the model; the others take the time that these took.
 *
 * A *kind* is what a launch is before it runs: kernel, grid, block, shared memory, SMs. A *group* is launches of one
 * kind whose access streams have nearly the same counts (SAMPLE_COUNTS, each within SAMPLE_ALIKE). A group is *steady*
 * when the last `needed` of its launches that were timed took nearly the same time. Similar ideas: Principal Kernel
 * Analysis (Avalos Baddouh et al., MICRO 2021) groups launches by counts, Sieve (Naderan-Tahan et al., ISPASS 2023) by
 * kernel and instruction count, Photon (Liu et al., MICRO 2023) on line by what blocks execute. None of them pages.
 *
 * What is never estimated: a launch is skipped only if its access stream, which is read whole before that is decided,
 * touches nothing but pages that are resident (sample_scan.c), while nothing moves. So it has no far-fault and no
 * traffic, and its marks on pages (used, dirty, when last) are made from the stream. While what is allocated exceeds
 * GPU memory nothing is skipped under a manager that pages: what it evicts would depend on the order of uses.
 *
 *                    no other kernel runs, no page moves, its kind has a steady group, and it reads no %smid
 *       kernel_begin ---------------------------------------------------------------> its stream is read
 *            |                                                                          |            |
 *            | else                  a page is absent, no steady group, or it is due    |            | else
 *            v                                                                          |            v
 *          TIMED <----------------------------------------------------------------------'         SKIPPED
 *
 *     timed + estimated == launches that are over
 *
 * A steady group is timed again after 8, 16, 32 and then every 64 skipped launches. */
#ifndef FF_MACHINE_SM_SAMPLE_H
#define FF_MACHINE_SM_SAMPLE_H

#include "base/memory.h"
#include "machine/observe/result.h"
#include "machine/sm/sm.h"

enum { SAMPLE_NEEDED = 3, SAMPLE_NEEDED_MAX = 16, SAMPLE_GROUPS = 64 };
#define SAMPLE_ALIKE 0.02  /* counts: no further apart, as a share */
#define SAMPLE_STEADY 0.03 /* times: the same */

/* X(name): what is known of a launch from its access stream alone. */
#define SAMPLE_COUNTS(X) \
  X(warp_instructions)   \
  X(accesses)            \
  X(load_accesses) X(store_accesses) X(atomic_accesses) X(lines) X(sectors)

typedef struct sample_counts {
#define X(name) uint64_t name;
  SAMPLE_COUNTS(X)
#undef X
} sample_counts;

typedef struct sample_group {
  sample_counts counts;             /* of its first launch */
  double window[SAMPLE_NEEDED_MAX]; /* the latest times, ps, as if a launch had `counts`; by number mod `needed` */
  uint64_t timed;
  /* since it is steady: */
  bool steady;
  uint64_t n;              /* launches timed, those that made it steady included */
  double mean, squares;    /* of their times; sum of squared distances from the mean */
  uint64_t skipped;        /* launches */
  uint64_t stretch, spent; /* it is timed again after `stretch` skipped ones; how many of these there were */
  sim_counters last;       /* what was counted in the last launch that was timed */
} sample_group;

typedef struct sample_kind {
  const sim_counters *counters; /* the kernel's, by name and range */
  const sm_set *sms;
  uint64_t blocks;
  uint32_t kernel, grid[3], block[3];
  uint64_t shared_bytes;
  uint32_t next; /* in its bucket */
  /* reading streams in vain is put off: launches until the next try, and what that was last */
  uint32_t wait, patience;
  FF_VEC(sample_group) groups;
} sample_kind;

/* Of a launch that has begun, until it is over. */
typedef struct sample_launch {
  bool skipped, alone, read; /* read: `counts` is what its stream has */
  uint32_t kind;
  uint64_t begun; /* sampler.begun when it began */
  sample_counts counts;
  sim_counters before; /* its kernel's */
  uint64_t moved;      /* what had moved when it began (moved) */
  trace_chunk **taken; /* blocks that were read and are to be simulated */
  uint64_t taken_count;
} sample_launch;

typedef struct sampler {
  uint32_t needed;
  trace_reader *reader;
  const struct front_end *front;
  struct dispatcher *dispatch;
  struct pager *pager;
  struct far_faults *faults;
  struct memory *memory;
  struct placing *map;
  struct observer *observer;
  struct answers *answers;
  /* its own state */
  FF_VEC(sample_kind) kinds; /* [0] unused */
  uint32_t buckets[1024];
  uint64_t begun; /* kernels */
  double variance_closed;
  sim_sampling result; /* but for the interval */
} sampler;

void sampler_init(sampler *s);
void sampler_free(sampler *s);
/* The kernel begins. true: it is skipped; k->ended is set, its counters are, and all its blocks have been released. */
bool sampler_begin(sampler *s, kernel *k, ps time);
void sampler_end(sampler *s, kernel *k);        /* a timed launch is over; before its time and its launch are counted */
void sample_launch_free(sample_launch *launch); /* NULL: nothing */
/* So far, with the interval. */
sim_sampling sampler_result(const sampler *s);

/* ---- one launch's stream: sample_scan.c ---- */

/* Takes and reads blocks until one touches what is not resident. true: all were read, and nothing is absent. */
bool sample_read(sampler *s, kernel *k, sample_launch *launch);
/* Makes the marks of all blocks, which take from k->began to k->ended, counts by allocation, and releases them. */
void sample_touch(sampler *s, kernel *k, sample_launch *launch);

#endif
