/* SPDX-License-Identifier: Apache-2.0 */
/* The history of one simulation: what happened when. Bounded whatever the length of the run, and deterministic.
 *
 *   bins    series over time (history.def): at most HISTORY_BINS bins of 2^shift ps; when time runs over the last one, neighbours are
 *           merged and the width doubles. What belongs to a stretch of time is shared out over its bins to the last
 *           unit.
 *   maps    per allocation, rows of equal ranges of addresses by bins four times as wide: where accesses, far-faults, evictions were
 *   blocks  parts of allocations, as launches' arguments point into them: what a framework's own allocator handed out
 *   lists   kernels, copies, batches of far-faults, transfers over the link, the host's faults, the program's own ranges: the first HISTORY_EVENTS of each, and how many more
 *
 * The sum of a series is the counter of the same name, and a map's sums are its allocation's counters: sim_check
 * asserts that when a program has ended. bins << shift is beyond the times that were noted.
 *
 * One struct is both what a simulation writes (history_add and the others; NULL: nothing is kept) and what it leaves
 * behind. */
#ifndef FF_MACHINE_HISTORY_H
#define FF_MACHINE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

enum {
  HISTORY_BINS = 512,
  HISTORY_FIRST_SHIFT = 12, /* 4.1 ns */
  HISTORY_MAP_BINS = 128,
  HISTORY_MAP_SHIFT = 2, /* a map's bins are so many times wider, as a power of two */
  HISTORY_ROWS = 64,
  HISTORY_MAPS = 64,
  HISTORY_EVENTS = 20000,
  HISTORY_BLOCKS = 64, /* of an allocation */
};

typedef enum history_series {
#define HISTORY_SUM(name, unit, help) HISTORY_##name,
#define HISTORY_LEVEL(name, unit, help) HISTORY_##name,
#include "machine/observe/history.def"
#undef HISTORY_SUM
#undef HISTORY_LEVEL
  HISTORY_SERIES_COUNT
} history_series;

typedef struct history_series_info {
  const char *name, *unit, *help;
  bool level;
} history_series_info;
extern const history_series_info history_series_infos[HISTORY_SERIES_COUNT];

/* X(id, name, help): why the link carries something. */
#define HISTORY_CAUSES(X)                                                             \
  X(COPY, "copy", "the program's copy or set")                                        \
  X(HINT, "hint", "the program's prefetch (cudaMemPrefetchAsync)")                    \
  X(MANAGED, "managed", "managed memory, moved for a launch or while the host waits") \
  X(TOUCH, "touch", "the host touched it")                                            \
  X(FAULT, "fault", "a far-fault, with what comes in one piece with it")              \
  X(PREFETCH, "prefetch", "a prefetcher's proposal")                                  \
  X(DECLARED, "declared", "a launch had declared it (segments)")                      \
  X(WRITE_BACK, "write-back", "evicted, and newer than the host's copy")              \
  X(CLEAN, "clean", "copied to the host ahead; it stays")                             \
  X(REMOTE, "remote", "stays where it is and is reached over the link")
typedef enum history_cause {
#define X(id, name, help) HISTORY_CAUSE_##id,
  HISTORY_CAUSES(X)
#undef X
      HISTORY_CAUSE_COUNT
} history_cause;
extern const char *const history_cause_names[HISTORY_CAUSE_COUNT];

/* X(id, name): what the program asked for, in addition to launches. */
#define HISTORY_COPIES(X) \
  X(H2D, "h2d")           \
  X(D2H, "d2h") X(D2D, "d2d") X(H2H, "h2h") X(SET, "set") X(PREFETCH_IN, "prefetch-in") X(PREFETCH_OUT, "prefetch-out")
typedef enum history_copy_kind {
#define X(id, name) HISTORY_COPY_##id,
  HISTORY_COPIES(X)
#undef X
      HISTORY_COPY_COUNT
} history_copy_kind;
extern const char *const history_copy_names[HISTORY_COPY_COUNT];

/* All times are picoseconds from the first operation. */
/* kernel: index into sim_result.kernels */
/* called, returned: the host's call that asked for it; both 0: not known */
typedef struct history_kernel {
  uint64_t launch, begin, end, blocks, called, returned;
  uint32_t kernel, stream;
} history_kernel;
/* allocation: its id; 0: none */
typedef struct history_copy {
  uint64_t begin, end, bytes, called, returned;
  uint32_t kind, stream, allocation;
  bool blocking; /* the call returned when it was over */
} history_copy;
typedef struct history_batch {
  uint64_t begin, end, faults, bytes;
} history_batch;
/* The host's faults that were served in one go: at `address`, and each `step` bytes behind it. */
typedef struct history_host_faults {
  uint64_t begin, address, step, faults;
} history_host_faults;
/* pieces that followed without a gap */
typedef struct history_transfer {
  uint64_t begin, end, bytes, pieces;
  uint32_t cause;
  bool in;
} history_transfer;

enum { HISTORY_RANGE_BYTES = 80 };
/* A range of the program's own (NVTX), by the host's time. domain: how many bytes of the name are its domain's, with a
 * colon behind them; 0: the default one. started: it was started, not pushed */
typedef struct history_range {
  uint64_t begin, end;
  uint32_t thread, domain;
  bool started;
  char name[HISTORY_RANGE_BYTES];
  /* while it is written: its number; whether it has ended, and anything was counted in it; `resumed` at its begin */
  uint64_t number;
  bool over, counted;
  uint32_t resumed;
} history_range;

/* A part of an allocation: from where an argument pointed (down to a line) to the next such place, or the end. The
 * first begins at offset 0. kernel: the first that was given a pointer to it, as in history_kernel. */
typedef struct history_block {
  uint64_t offset, accesses, faults;
  uint32_t allocation, kernel;
} history_block;
typedef struct history_blocks { /* of one allocation, by offset */
  history_block items[HISTORY_BLOCKS];
  uint32_t count;
} history_blocks;

typedef struct history_cell {
  uint64_t accesses, faults, evicted_bytes;
} history_cell;
typedef struct history_map {
  uint64_t address, bytes;  /* of the rows together: whole pages of 4 KiB around the allocation */
  uint32_t row_shift, rows; /* a row is 2^row_shift bytes, from 4 KiB */
  uint32_t allocation;      /* its id */
  bool released;
  history_cell *cells; /* [bin * rows + row]; HISTORY_MAP_BINS bins */
  uint64_t *resident;  /* bytes at the bin's end, likewise; NULL: not known */
} history_map;

typedef struct sim_history {
  uint32_t shift;       /* a bin is 2^shift ps */
  uint32_t bins;        /* in use; HISTORY_BINS at most */
  uint32_t sampled;     /* bins before this one have their levels */
  uint32_t map_sampled; /* and a map's before this one */
  bool keeps_resident;  /* maps say what is in GPU memory */
  bool profiled;        /* it has only ranges of the program (profile.h): */
  bool paused;          /* nothing is added but levels and ranges (profile.h) */
  uint32_t resumed;     /* how many times it was not paused any more */
  uint64_t last_range;  /* the highest number in `ranges` */
  uint64_t series[HISTORY_SERIES_COUNT][HISTORY_BINS];
  struct {
    history_kernel *items;
    size_t count, capacity;
  } kernels;
  struct {
    history_copy *items;
    size_t count, capacity;
  } copies;
  struct {
    history_batch *items;
    size_t count, capacity;
  } batches;
  struct {
    history_transfer *items;
    size_t count, capacity;
  } transfers;
  struct {
    history_host_faults *items;
    size_t count, capacity;
  } host_faults;
  struct {
    history_block *items;
    size_t count, capacity;
  } blocks; /* once it is written: of the allocations that have several */
  struct {
    history_range *items;
    size_t count, capacity;
  } ranges; /* by begin; those without an end last to the end of the run */
  uint64_t ranges_left_out, kernels_left_out, copies_left_out, batches_left_out, transfers_left_out,
      host_faults_left_out, blocks_left_out;
  struct {
    history_blocks **items;
    size_t count, capacity;
  } block_sets; /* while it is written, by the allocation's number; NULL: none */
  /* owned; while it is written: by the allocation's number, NULL: none */
  struct {
    history_map **items;
    size_t count, capacity;
  } maps;
  uint32_t map_count;
  uint64_t maps_left_out;   /* allocations that were used and have none */
  size_t open_in, open_out; /* the last transfer each way, plus 1 */
} sim_history;

sim_history *history_create(void);
void history_free(sim_history *h);
/* A copy that ends at `end` (or later, where something was noted later): levels are there for all bins, lists in order
 * of begin, no empty places among the maps. */
sim_history *history_copy_of(const sim_history *h, uint64_t end, uint64_t resident);

/* Merges neighbours until `time` falls into a bin. */
void history_widen(sim_history *h, uint64_t time);

static inline uint32_t history_bin(sim_history *h, uint64_t time) {
  if (__builtin_expect(time >> h->shift >= HISTORY_BINS, 0)) history_widen(h, time);
  uint32_t bin = (uint32_t)(time >> h->shift);
  if (h->bins <= bin) h->bins = bin + 1;
  return bin;
}

static inline void history_add(sim_history *h, history_series series, uint64_t time, uint64_t amount) {
  if (h && amount && !h->paused) h->series[series][history_bin(h, time)] += amount;
}
/* Shares the amount out over [begin, end) in proportion to time. */
void history_spread(sim_history *h, history_series series, uint64_t begin, uint64_t end, uint64_t amount);
/* The level has been `value` up to `time`, since the last call. */
void history_level(sim_history *h, history_series series, uint64_t time, uint64_t value);
/* When the next bin ends of which no level is known. */
static inline uint64_t history_next_sample(const sim_history *h) { return ((uint64_t)h->sampled + 1) << h->shift; }

void history_note_kernel(sim_history *h, history_kernel kernel);
void history_note_copy(sim_history *h, history_copy copy);
void history_note_batch(sim_history *h, history_batch batch);
void history_note_host_faults(sim_history *h, history_host_faults faults);
/* begin, thread, domain, started, name and number count. */
void history_note_range(sim_history *h, history_range range);
void history_end_range(sim_history *h, uint64_t number, uint64_t time); /* none of that number is open: nothing */
void history_pause(sim_history *h, bool paused);
/* Consecutive pieces of one cause and direction without a gap between them are one transfer. */
void history_note_transfer(sim_history *h, history_transfer transfer);

/* The map of allocation number `owner`, made if there is room for one; NULL: there is none. */
history_map *history_map_of(sim_history *h, uint32_t owner, uint32_t id, uint64_t address, uint64_t bytes);

/* A launch of that kernel has a pointer so many bytes into allocation number `owner`. */
void history_note_block(sim_history *h, uint32_t owner, uint32_t id, uint64_t offset, uint32_t kernel);
/* The block that has the offset; NULL: no launch had a pointer into the allocation. */
history_block *history_block_at(sim_history *h, uint32_t owner, uint64_t offset);

/* `bin`: of the series. An address outside of the map counts for the row that is nearest. */
static inline history_cell *history_cell_in(history_map *m, uint32_t bin, uint64_t address) {
  uint64_t row = address > m->address ? (address - m->address) >> m->row_shift : 0;
  return &m->cells[(bin >> HISTORY_MAP_SHIFT) * m->rows + (row < m->rows ? (uint32_t)row : m->rows - 1)];
}
static inline history_cell *history_cell_at(sim_history *h, history_map *m, uint64_t time, uint64_t address) {
  return history_cell_in(m, history_bin(h, time), address);
}

#endif
