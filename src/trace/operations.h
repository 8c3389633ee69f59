/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of a program as bytes and back: the TEXT column of a trace file's frames (pack.h).
 *
 *   kind | 128 if blocking, stream, then the kind's own numbers in the order of trace_op; texts with their length in
 *   front
 *
 * A kernel's name stands at its first launch in a frame, so that each frame can be read alone. operation_take refuses
 * what stream.h and the simulations do not expect of a program: ranges that wrap, grids whose blocks cannot be counted,
 * and numbers beyond the limits below, which bound loops and tables in a simulation. */
#ifndef FF_TRACE_OPERATIONS_H
#define FF_TRACE_OPERATIONS_H

#include "trace/pack.h"

enum {
  OPERATION_KERNELS_MAX = 1 << 20,    /* in a frame, and their numbers */
  OPERATION_PARAMETERS_MAX = 1 << 16, /* bytes of a launch */
  OPERATION_PTX_MAX = 64 << 20,       /* bytes of a module's part */
  OPERATION_ROWS_MAX = 1 << 24,       /* of a copy or a set in two dimensions */
};
#define OPERATION_ADDRESS_MAX (UINT64_C(1) << 56)
#define OPERATION_BLOCKS_MAX (UINT64_C(1) << 40) /* of a launch */

/* The names of a frame's kernels. */
typedef struct operation_names {
  FF_VEC(char *) items; /* by kernel_index; NULL: not named yet */
} operation_names;
void operation_names_reset(operation_names *names);
void operation_names_free(operation_names *names);

/* Not for TRACE_OP_END. Addresses of pageable host memory are left out: they differ from run to run, and no simulation
 * uses them. */
void operation_put(pack_bytes *to, const trace_op *op, operation_names *names);

/* The next operation. A launch is written to *launch (its parameters point into `from`, its `chunks` and `id` stay as
 * they are), a module's text points into `from`. NULL: read; else what is wrong with it, as in "...: a launch without
 * threads". */
const char *operation_take(pack_view *from, trace_op *op, trace_launch *launch, operation_names *names);

/* "launch", "copy", ... for people. */
const char *operation_kind_name(trace_op_kind kind);

#endif
