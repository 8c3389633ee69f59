/* SPDX-License-Identifier: Apache-2.0 */
/* What looks at a launch while it runs and may change what an access does: the checks of src/check.
 *
 * A launch with a checker (exec_launch_checked; core_launch.checker is not NULL) is interpreted. It runs its own
 * decoded code, in which accesses, fences and warp-level synchronisation go through checked.c (an exec_isa_table like
 * another instruction set's); all other places look for a checker only where something rare happens. So a launch
 * without one runs the same code as if there were no checkers.
 *
 * The interpreter calls a function before it carries out what the function is named after, in the order of execution;
 * with exec_config.threads 1 one thread makes all calls. No function may be NULL (exec_launch_checked asserts it). */
#ifndef FF_EXEC_CHECKER_H
#define FF_EXEC_CHECKER_H

#include "exec/core.h"

typedef struct exec_checker exec_checker;

typedef enum exec_place_fault { /* why the bytes of one lane may not be touched */
                                EXEC_PLACE_GOOD,
                                EXEC_PLACE_OUTSIDE,
                                EXEC_PLACE_MISALIGNED,
                                EXEC_PLACE_NO_ATOMIC,
} exec_place_fault;

typedef struct exec_reach { /* where one lane's bytes are */
  uint64_t address;         /* as the program sees it; shared, local: the offset */
  unsigned char *host;      /* NULL: local memory, or not good */
  const exec_span *span;    /* global: the live allocation; NULL otherwise */
  ptx_space space;          /* GLOBAL, CONST, SHARED, LOCAL */
  bool elsewhere;           /* another block's shared memory, or multicast memory: no checker is asked */
  exec_place_fault fault;
} exec_reach;

typedef struct exec_watched { /* an access that is about to happen */
  core_warp *warp;
  const exec_instr *instr; /* its side data may be a copy's half (cp.async): use `access` */
  const exec_access *access;
  uint32_t lanes;
  uint32_t bytes;       /* per lane */
  const exec_reach *at; /* per lane; only those of `lanes` count */
  bool synchronises;    /* an operation on an mbarrier */
} exec_watched;

struct exec_checker {
  void (*launch_begin)(exec_checker *checker, const core_launch *launch);
  void (*launch_end)(exec_checker *checker, const core_launch *launch);
  /* core_block.watched is the checker's to use until block_end */
  void (*block_begin)(exec_checker *checker, core_block *block);
  void (*block_end)(exec_checker *checker, core_block *block);
  /* Lanes have begun a function that has local memory; its values are undefined. */
  void (*entered)(exec_checker *checker, core_warp *w, const exec_frame *frame);
  /* Bytes of a lane have a value without a store: what a function of the virtual GPU's own gives back, a parameter
   * whose address is taken; address: as in exec_reach. */
  void (*wrote)(exec_checker *checker, core_warp *w, uint32_t lane, ptx_space space, uint64_t address, uint32_t bytes);
  /* Returns the lanes whose access is to happen; loads give 0 to the others. Lanes that are not good must go through if
   * the launch is to end with a fault. */
  uint32_t (*access)(exec_checker *checker, const exec_watched *access);
  void (*fence)(exec_checker *checker, core_warp *w, const exec_instr *i);
  /* The lanes have come together at a .sync instruction; member: of the first of them. */
  void (*meet)(exec_checker *checker, core_warp *w, const exec_instr *i, uint32_t lanes);
  /* The running split comes to barrier `id`; expected: threads, 0: all of the block. */
  void (*arrive)(exec_checker *checker, core_warp *w, const exec_instr *i, uint32_t id, uint32_t expected);
  /* The barrier is complete; its splits still stand in warps' others[]. */
  void (*release)(exec_checker *checker, core_block *block, uint32_t id, uint32_t expected);
  void (*heap_malloc)(exec_checker *checker, core_warp *w, uint64_t address, uint64_t bytes);
  void (*heap_freed)(exec_checker *checker, core_warp *w, uint64_t address, uint64_t bytes);
  /* A kernel called free with what is no live block of device malloc. True: go on even so. */
  bool (*heap_misuse)(exec_checker *checker, core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address);
};

/* exec_launch with a checker; NULL: without one. */
ff_status exec_launch_checked(const exec_config *config, const exec_launch_request *request, exec_checker *checker,
                              exec_stats *stats, exec_fault *fault, ff_error *error);

/* The table for launches with a checker that stands for `isa`; and its number, below EXEC_ISAS (exec_isa_index). */
const exec_isa_table *exec_isa_checked(const exec_isa_table *isa);
uint32_t exec_isa_checked_index(const exec_isa_table *checked);

/* Where a lane's bytes are, by the rules of access.c. Does not fault. */
void exec_reach_find(const core_warp *w, const exec_access *a, uint32_t bytes, uint32_t lane, uint64_t address,
                     exec_reach *at);
/* What a store or atomic would write, `bytes` (at most 64) of one lane, from its data registers. */
void exec_watched_data(const exec_watched *access, uint32_t lane, unsigned char *data);

#endif
