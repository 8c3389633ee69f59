/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted by instruction of a kernel's code, if that is asked for (sim_options.lines).
 *
 * A warp's accesses are then counted for the instruction that makes them instead of for its kernel, and a kernel's
 * counters are its own and those of its instructions:
 *
 *     counters of a kernel's result == the kernel's own + the sum over its instructions
 *
 * What stays with the kernel is no access's: launches, time, instructions, waiting, what launches declare. */
#ifndef FF_MACHINE_OBSERVE_LINES_H
#define FF_MACHINE_OBSERVE_LINES_H

#include "base/memory.h"
#include "machine/observe/result.h"
#include "trace/stream.h"

/* Instructions that are counted apart; accesses of further ones stay with their kernels. */
enum { LINES_SHOWN = 1 << 16 };

typedef struct line_item { /* one instruction */
  uint32_t pc;             /* of the access stream: its number in the kernel's code */
  sim_counters counters;
} line_item;

typedef struct kernel_lines { /* one code of a kernel, in one range of the program's */
  struct line_table *table;
  sim_counters *kernel; /* its counters: where accesses go that have no item */
  uint32_t number;      /* of that kernel, among the observer's */
  uint32_t module;      /* as in trace_launch: which code it is */
  uint64_t symbol;
  char *name;
  FF_VEC(line_item *) items;    /* in the order of their first accesses; an item stays where it is */
  uint32_t *buckets;            /* by pc: index in items + 1, 0: free; twice as many as items, or more */
  uint32_t bucket_count;        /* a power of two; 0: none */
  FF_VEC(sim_counters) offsets; /* of items (profile.h); further items have none yet: 0 */
} kernel_lines;

typedef struct line_table {
  FF_VEC(kernel_lines *) kernels;
  FF_VEC(sim_code) codes; /* modules of the program so far, in its order; texts are the stream's */
  uint32_t item_count;
  bool profiled; /* only ranges of the program are reported (profile.h), */
  bool inside;   /* and it is in one */
} line_table;

line_table *lines_create(void);
void lines_free(line_table *table); /* NULL: nothing */
void lines_take_module(line_table *table, const trace_op *op);
/* Of a launch whose kernel has this number and these counters; they stay where they are. */
kernel_lines *lines_of_launch(line_table *table, const trace_launch *launch, uint32_t number, sim_counters *counters);
/* Where an access of the instruction is counted. */
sim_counters *lines_at(kernel_lines *kernel, uint32_t pc);
/* Adds what the instructions of a kernel (by its number) have counted. */
void lines_add(const line_table *table, uint32_t number, sim_counters *to);
/* A range of the program in which it is profiled starts or stops (profile.h). */
void lines_profile(line_table *table, bool start);
/* A copy of all of them, in order of kernel and pc, and of the codes, into result->lines and result->codes. If only
 * ranges are reported, what is of these; and only instructions of which something is. */
void lines_copy(const line_table *table, sim_result *result);

#endif
