/* SPDX-License-Identifier: Apache-2.0 */
/* The offload candidates of a recorded program: from the PTX in its trace to the answer that a simulation needs at
 * an ENTER record.
 *
 *   offload_table *t = offload_table_create();
 *   offload_table_operation(t, op)          for each operation, before the records that follow it: keeps the code of modules
 *   offload_table_find(t, launch, pc)       sim_offloading.find, offload_profile_options.find: any thread, as often as it likes
 *   offload_table_free(t)                   when none of its answers is used any more
 *
 * A kernel is analysed when it is first asked for. A launch names its function by its module and
 * trace_launch.symbol; a trace without that (another program wrote it) has only the kernel's name, as the PTX or as C++
 * spells it.
 *
 * An answer keeps its value and its address until offload_table_free. Only the first lookup of a kernel takes a lock.
 * Code that cannot be read or linked has no candidates, and offload_table_problem says why. */
#ifndef FF_OFFLOAD_TABLE_H
#define FF_OFFLOAD_TABLE_H

#include "offload/candidates.h"

typedef struct offload_table offload_table;
offload_table *offload_table_create(void);
void offload_table_free(offload_table *table); /* NULL: nothing */
/* Code that comes when kernels of its module were asked for already is too late for them. Keeps nothing of what op
 * points to. */
void offload_table_operation(void *table, const trace_op *op);
/* The chosen candidate that is entered at pc; NULL: the launch's kernel has none there (another version has marked it),
 * or is not known. */
const sim_candidate *offload_table_find(void *table, const trace_launch *launch, uint32_t pc);
bool offload_table_any(void *table, const trace_launch *launch); /* sim_offloading.any */
/* Its region, of offload_table_kernel(table, launch). */
const offload_region *offload_table_region(offload_table *table, const trace_launch *launch, uint32_t pc);
/* The launch's kernel, with all its regions; its func->name is as in the PTX. NULL: its code is not there. */
const offload_kernel *offload_table_kernel(offload_table *table, const trace_launch *launch);
/* The first thing that went wrong, a sentence; NULL: nothing. */
const char *offload_table_problem(offload_table *table);

#endif
