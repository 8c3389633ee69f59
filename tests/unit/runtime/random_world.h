/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of random programs share: worlds, their logs, the choices (random_program.h has the words).
 *
 *   random_program.c  options, threads, the end of a program
 *   random_steps.c    the steps
 *   random_needs.c    what launches need, and what they may be told
 *   random_replay.c   the log again, on the host
 *   random_kernels.c  what the kernels do */
#ifndef RANDOM_WORLD_H
#define RANDOM_WORLD_H

#include <pthread.h>

#include "base/memory.h"
#include "base/text.h"
#include "farfault/farfault.h"
#include "random_kernels.h"
#include "random_program.h"

enum { SLOTS = 8, MAPPINGS = 4 };

typedef struct choices {
  uint64_t state;
  const uint8_t *bytes; /* NULL: from the state */
  size_t left;
} choices;
/* 0 ... below - 1; always 0 once the bytes have ended. */
uint64_t choose(choices *from, uint64_t below);
bool chance(choices *from, uint32_t percent);
uint64_t choose_between(choices *from, uint64_t low, uint64_t high); /* both included */

typedef struct world_segment {
  ff_segment *handle; /* NULL: the slot is free */
  uint64_t bytes, address[MODEL_DEVICES];
  bool file, writable;
  char path[128];
  uint64_t file_offset, file_bytes;
  bool pinned[MODEL_DEVICES];
} world_segment;

typedef struct world_mapping {
  bool held;
  uint32_t slot, entry; /* of its map in the log */
  ff_access access;
  uint64_t offset, bytes;
  void *host;
} world_mapping;

typedef struct launch_use {
  uint32_t slot;
  uint64_t offset;
  mix_shape shape;
} launch_use;
typedef struct launch_spec {
  bool follow, clean; /* clean: its blocks may run in any order, in windows too */
  uint64_t seed;
  uint32_t grid[3], count; /* follow: uses[0] is the table, of `pointers` addresses; uses[1] is what they point into */
  launch_use uses[MIX_USES];
  uint32_t device, pointers;
} launch_spec;

typedef enum entry_kind {
  ENTRY_CREATE, /* data: the file before; NULL: anonymous */
  ENTRY_FREE,   /* data: the file afterwards */
  ENTRY_LAUNCH,
  ENTRY_SEEN,    /* data: what a mapping showed */
  ENTRY_WRITTEN, /* data: what the host wrote through one */
} entry_kind;
typedef struct entry {
  entry_kind kind;
  uint32_t slot, step;
  uint64_t offset, bytes;
  char *data;
  world_segment segment; /* of a create */
  launch_spec *launch;
  ff_ticket ticket;
  bool ended_well; /* of a launch: known when the program is over */
  bool windows;    /* of a launch: it may have been run in windows */
} entry;

struct program;
typedef struct world {
  struct program *program;
  world_segment segments[SLOTS];
  world_mapping mappings[MAPPINGS];
  FF_VEC(entry) log;
  uint32_t index, steps, files;
  pthread_mutex_t lock; /* of a shared one */
} world;

typedef struct program {
  const program_options *options;
  choices choices; /* the program's own; each thread's is made from it */
  ff_gpu *gpu;
  ff_module *module, *clean_module;
  const char *clean_text;
  ff_kernel *mix[MIX_USES + 1], *clean[MIX_USES + 1], *follow;
  uint32_t devices, lookahead;
  uint64_t piece, budget, granularity, pinned;
  ff_result first_failure;
  bool lost, pins; /* lost: the library said so. pins: threads do not */
  /* a launch failed in one of its windows, where what it had written stays: contents are not checked */
  bool torn;
  pthread_mutex_t lock; /* of what is below */
  program_result *result;
  ff_text trace;
} program;

extern const model_driver *program_model(void);
extern const char *program_folder(void);

/* Something was wrong: kept, the first one. Always false. */
bool program_wrong(program *of, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool program_is_good(program *of);
void program_trace(program *of, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether `result` may be, where no failure was asked for success alone. Notes the loss of the context. */
bool program_allows(program *of, ff_result result, const char *what);

/* Does a mapping that is held forbid `access` to the range? */
bool world_is_busy(const world *in, uint32_t slot, uint64_t offset, uint64_t bytes, unsigned access);
typedef struct need {
  uint64_t least, most;
  bool busy, may_be_busy, refused;
} need; /* bytes of GPU memory */
/* Every unit that a block touches must be there; whole uses in whole pieces are the most. */
need world_needed(const world *in, const launch_spec *spec);
/* Bytes that pinned segments take at most. */
uint64_t world_pinned_bytes(const world *in, const launch_spec *spec);
/* May ff_launch (or ff_launch_plan) have said this? */
void world_judge(world *in, const launch_spec *spec, ff_result result, bool plan);

/* One step of those that may be done now. */
void world_step(world *in, choices *from);
/* Ends its mappings, asks what became of its launches, reads everything back, frees some segments. */
void world_end(world *in, choices *from);
/* Ends what the host writes, and leaves all else to ff_close: launches, which must end well, and what is mapped for
 * reading. */
void world_leave(world *in, choices *from);
/* What the library promises of its log; after ff_close, which writes files back. */
bool world_replay(world *in);
void world_free(world *in);
char *world_read_file(const char *path, uint64_t *bytes);
#endif
