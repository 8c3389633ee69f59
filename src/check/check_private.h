/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of check/: what its files share. */
#ifndef FF_CHECK_PRIVATE_H
#define FF_CHECK_PRIVATE_H

#include "base/ending.h"
#include "check/launch_check.h"
#include "check/race.h"
#include "check/finding_report.h"
#include "check/shadow.h"
#include "exec/launch/checker.h"

typedef struct check_allocation { /* by exec_allocation.id */
  uint64_t address, bytes;
  char name[64];
  bool live;
  bool tracked;       /* nothing is known of its first contents: reads before writes are errors */
  check_stack *stack; /* where the program allocated it; NULL: not asked for */
} check_allocation;

struct check {
  exec_checker hooks;   /* first: exec gives it back */
  pthread_mutex_t lock; /* of the report and the heap's bits, against other workers */
  check_options options;
  exec_memory *memory;
  check_report *report;
  char *(*demangle)(const char *);
  char *title; /* of the launch's kernel */
  bool muted;  /* its kernel is not to be looked at */
  bool ended;
  ff_ending ending;  /* a process that is stopped, in a launch that may not end, prints what was found */
  pthread_t watcher; /* its thread */
  bool watched;
  check_stack stack; /* of the launch */
  FF_VEC(check_allocation) allocations;
  check_shadow written; /* bytes of tracked allocations that have a value */
  check_shadow heap;    /* memcheck: bytes of device malloc's live blocks */
  uint64_t heap_bytes, heap_blocks;
  uint64_t leaked_bytes, leaked;
  race *race; /* racecheck: of all launches, one after the other */
};

/* Its hooks are its first part. */
static inline check *check_of(exec_checker *checker) { return (check *)(void *)checker; }

/* The program's allocation with that id; NULL: there is none, or it is farfault's own. */
check_allocation *check_allocation_of(check *c, const exec_allocation *allocation);
void check_thread_of(const core_warp *w, uint32_t lane, check_thread *thread);
/* A finding at an instruction; NULL: known already, or too many. With the lock held. */
check_finding *check_found_at(check *c, check_kind kind, check_level level, const core_warp *w, const exec_instr *i,
                              uint32_t lane, uint64_t detail, const char *access);
/* Where an address of global memory lies: "and is 4 bytes after the nearest allocation at ..." as lines. */
void check_add_neighbour(check *c, uint64_t address, uint32_t bytes, ff_text *out, ff_text *tail);
const char *check_space_text(ptx_space space); /* "global" */

/* a hook of both: what the launch found is printed */
void check_launch_end(exec_checker *checker, const core_launch *launch);
void check_memcheck_hooks(exec_checker *hooks);  /* memcheck.c */
void check_racecheck_hooks(exec_checker *hooks); /* racecheck.c */
void check_heap_leaks(check *c);

#endif
