/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling: of launches that repeat only some are timed by the model; the others take the time that these took. Of a
 * launch of many waves of blocks only some waves are (sample_waves.c).
 *
 * A *kind* is what a launch is before it runs: kernel, grid, block, shared memory, SMs. A *group* is launches of one
 * kind whose access streams have nearly the same counts (SAMPLE_COUNTS, each within SAMPLE_ALIKE). A group is *steady*
 * when the last `needed` of its launches that were timed took nearly the same time, or when twice as many took two
 * times by turns, as launches do that swap two buffers: both so near to their mean as others are. Similar ideas:
 * Principal Kernel Analysis (Avalos Baddouh et al., MICRO 2021) groups launches by counts, Sieve (Naderan-Tahan et al.,
 * ISPASS 2023) by kernel and instruction count, Photon (Liu et al., MICRO 2023) on line by what blocks execute. None of
 * them pages.
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
 * A steady group is timed again after 8, 16, 32 and then every 64 skipped launches.
 *
 * While the program runs, a launch that will be skipped is executed without records (trace/touched.h): the sampler says
 * so before it begins, if the last `needed` launches of its kind were of one group, which is steady and not due, and
 * what the last one touched is resident. If it is not as was foreseen it is timed by what it touches. */
#ifndef FF_MACHINE_SM_SAMPLE_H
#define FF_MACHINE_SM_SAMPLE_H

#include "base/memory.h"
#include "machine/observe/result.h"
#include "machine/sm/sm.h"
#include "trace/footprint.h"

enum { SAMPLE_NEEDED = 3, SAMPLE_NEEDED_MAX = 16, SAMPLE_GROUPS = 64 };
#define SAMPLE_ALIKE 0.02  /* counts: no further apart, as a share */
#define SAMPLE_STEADY 0.03 /* times: the same */

/* X(name): what is known of a launch from its access stream alone. */
#define SAMPLE_COUNTS(X) \
  X(warp_instructions)   \
  X(accesses)            \
  X(load_accesses) X(store_accesses) X(atomic_accesses) X(lines) X(sectors)

/* X(name): what is not known of what was skipped, but taken from what was timed. */
#define SAMPLE_ESTIMATED(X) \
  X(l1_hits)                \
  X(l1_misses)              \
  X(l2_hits)                \
  X(l2_misses)              \
  X(dram_read_bytes)        \
  X(dram_write_bytes)       \
  X(dram_row_hits)          \
  X(dram_row_misses)        \
  X(tlb_lookups)            \
  X(tlb_misses) X(tlb_merged) X(tlb_l2_hits) X(tlb_evictions) X(walks) X(walk_cache_hits) X(warp_stall_ps)

typedef struct sample_counts {
#define X(name) uint64_t name;
  SAMPLE_COUNTS(X)
#undef X
} sample_counts;

typedef struct sample_estimates {
#define X(name) uint64_t name;
  SAMPLE_ESTIMATED(X)
#undef X
} sample_estimates;

typedef struct sample_group {
  sample_counts counts; /* of its first launch */
  /* the latest times, ps, as if a launch had `counts`; by number mod 2 `needed` */
  double window[2 * SAMPLE_NEEDED_MAX];
  uint64_t timed;
  /* since it is steady: */
  bool steady;
  uint64_t n;              /* launches timed, those that made it steady included */
  double mean, squares;    /* of their times; sum of squared distances from the mean */
  uint64_t skipped;        /* launches */
  uint64_t stretch, spent; /* it is timed again after `stretch` skipped ones; how many of these there were */
  sample_estimates last;   /* of launches: of the last one that was timed */
  /* of waves: skipped since one was timed, as if each had `counts`; what one took before */
  double open, level;
} sample_group;

typedef FF_VEC(sample_group) sample_groups;

/* Reading streams in vain is put off: how often until the next try, and what that was last. */
typedef struct sample_tries {
  uint32_t wait, patience;
} sample_tries;

typedef struct sample_kind {
  const sim_counters *counters; /* the kernel's, by name and range */
  const sm_set *sms;
  uint64_t blocks;
  uint32_t kernel, grid[3], block[3];
  uint64_t shared_bytes;
  trace_l2_controls l2; /* but for the window's address and the resets */
  uint32_t next;        /* in its bucket */
  sample_tries tries;
  sample_groups groups;
  /* the group of the last launches that were read or timed, as an index, and how many these are */
  size_t last;
  uint64_t alike;
  FF_VEC(footprint_piece) touched; /* by the last one that was skipped, of allocations */
} sample_kind;

/* Sums over the blocks of a wave: of the time of its end since the launch began, and of what the kernel had counted
 * then. The next wave's less these are a wave's, times its blocks. */
typedef struct sample_sums {
  uint64_t time;
  sample_counts counts;
  sample_estimates estimates;
} sample_sums;

/* The waves of a launch: as many blocks as run at a time, in the order in which they end. */
typedef struct sample_waves {
  uint64_t length;        /* blocks; 0: none has ended yet, or there are too few waves */
  uint64_t timed, due;    /* blocks that were timed and are over; how many these are when the wave under way is */
  bool measured;          /* the wave under way; not the first one, nor one that is the first after skipped ones */
  sample_sums sums, last; /* of the wave under way, of the one before */
  uint64_t moved;         /* (sample_moved) when that was over */
  sample_tries tries;
  sample_groups groups;       /* of waves, as those of launches */
  uint64_t steady;            /* waves of steady groups that were measured, */
  sample_estimates of_steady; /* and the sums of theirs, times a wave's blocks */
  uint64_t skipped;           /* blocks */
  double debt;                /* ps that skipped waves take, which the launch is longer than it was simulated */
} sample_waves;

/* Of a launch that has begun, until it is over. */
typedef struct sample_launch {
  bool skipped, alone, read; /* read: `counts` is what its stream has */
  bool foreseen;             /* that it would be skipped: it may have no records */
  bool touched;              /* it has none; read is false then, */
  ps least;                  /* and, if it is timed, it takes no less than this */
  uint64_t ahead;            /* of the blocks that were read, the last so many were looked at as recorded, not taken */
  bool later;                /* its time is over at k->ended only, when its last block has long been */
  uint32_t kind;
  uint64_t begun; /* sampler.begun when it began */
  sample_counts counts;
  sim_counters before;         /* its kernel's */
  uint64_t moved;              /* what had moved when it began (moved) */
  FF_VEC(trace_chunk *) taken; /* blocks that were read, from taken_first on: to be simulated, or skipped */
  uint64_t taken_first;
  sample_waves waves;
} sample_launch;

/* What a skipped launch touched, as far as it may still be in the L2: put there when somebody may look. */
typedef struct sample_lines {
  footprint_piece *pieces; /* owned */
  size_t count;
  uint64_t lines;
} sample_lines;

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
  uint64_t begun;            /* kernels */
  footprint ahead;           /* of blocks that are not taken: as recorded */
  footprint touched;         /* by the blocks that were read last */
  FF_VEC(sample_lines) owed; /* to the L2, the oldest first */
  double variance_closed;
  sim_sampling result; /* but for the interval */
} sampler;

void sampler_init(sampler *s);
void sampler_free(sampler *s);
/* The kernel begins. true: it is skipped; k->ended is set, its counters are, and all its blocks have been released. */
bool sampler_begin(sampler *s, kernel *k, ps time);
void sampler_block(sampler *s, kernel *k, ps over); /* one of its blocks is over, and others are still to start */
/* A timed launch is over; before its time and its launch are counted. k->ended is later if blocks were skipped. */
void sampler_end(sampler *s, kernel *k);
void sample_launch_free(sample_launch *launch); /* NULL: nothing */
/* So far, with the interval. */
sim_sampling sampler_result(const sampler *s);

/* A block of the launch that was read and has not been skipped; NULL: it was not read. */
static inline trace_chunk *sample_taken(const sample_launch *launch, uint64_t number) {
  return number - launch->taken_first < launch->taken.count ? launch->taken.items[number - launch->taken_first] : NULL;
}

/* ---- groups, of launches and of waves: sample.c ---- */

bool sample_any_steady(const sample_groups *groups);
sample_group *sample_group_of(const sample_groups *groups, const sample_counts *counts); /* NULL: none is alike */
/* What the counts are of the time of the group. */
double sample_scale(const sample_group *g, const sample_counts *counts);
/* One was timed, in `time` ps: its group, which may be new; with `turns` two times by turns may make it steady. NULL:
 * there are too many. */
sample_group *sample_timed(sampler *s, sample_groups *groups, const sample_counts *counts, double time, bool turns);
/* What the launch or wave took that was timed `back` before the latest: less than 2 `needed`, and than `timed`. */
static inline double sample_window(const sampler *s, const sample_group *g, uint32_t back) {
  return g->window[(g->timed - 1 - back) % (2 * s->needed)];
}
void sample_groups_close(sampler *s, sample_groups *groups); /* none of them is estimated from again */
void sample_count(sim_counters *c, uint64_t blocks, const sample_counts *counts); /* of what was skipped */
/* What has moved so far, or may have made a launch's time another: equal before and after, if nothing did. */
uint64_t sample_moved(const sampler *s, const kernel *k);
bool sample_try(sample_tries *tries);
void sample_learn(sample_tries *tries, bool useful);
bool sample_may_skip(const sampler *s, const kernel *k); /* as far as memory and %smid are concerned */

/* ---- the waves of a launch that is timed: sample_waves.c ---- */

ps sample_waves_end(sampler *s, kernel *k); /* how much longer the launch is than it was simulated */

/* ---- a launch's stream: sample_scan.c ---- */

/* Takes and reads its next blocks until one touches what is not resident. true: all were read, and nothing is
 * absent; s->touched has what they touch. */
bool sample_read(sampler *s, kernel *k, sample_launch *launch, uint64_t blocks, sample_counts *counts);
/* The same of all blocks of a launch of which trace_reader_answer has said that it needs no records. launch->touched:
 * it has none; else nothing was read, and the result is false. */
bool sample_read_touched(sampler *s, kernel *k, sample_launch *launch, sample_counts *counts);
/* Of the blocks that were just read, its next ones: makes the marks, as if they took from `began` to `ended`, counts by
 * allocation, and releases them; they are over. later: their lines come into the L2 only with sample_settle. */
void sample_touch(sampler *s, kernel *k, sample_launch *launch, uint64_t blocks, ps began, ps ended, bool later);
/* All that skipped launches have touched is in the L2, as far as it would still be there. `context` is the sampler. */
void sample_settle(void *context);
void sample_forget(sampler *s);                                /* the L2 is emptied: nothing of it would be there */
void sample_note_touched(const sampler *s, sample_kind *kind); /* kind->touched is what was just read */
/* Is all of kind->touched resident? What was freed since is not. */
bool sample_still_here(const sampler *s, const sample_kind *kind);
bool sample_page_meets(void *context, uint64_t page); /* footprint_meets */

#endif
