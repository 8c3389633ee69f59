/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels bound to a range of SMs: *persistent blocks* that take the blocks of the kernel's grid from a queue (Jain et
 * al. 2019, section IV; there by hand, here automatically).
 *
 * NAME__persistent is kernel NAME with more parameters behind its own (ptx_persistent_params). Each of its blocks reads
 * %smid, and leaves at once if it is on an SM outside [sm_first, sm_first + sm_count). The others take indices of
 * *virtual blocks* from an atomic counter, run NAME's body for each, and leave when there are no more. Where the body
 * reads %ctaid and %nctaid it finds the virtual block's index and the grid of the parameters; an exit ends a thread's
 * part of one virtual block.
 *
 *   persistent = ptx_persistent_make(module, &(ptx_persistent_options){0});      persistent->text goes to the driver
 *   kernel = ptx_persistent_find(persistent, "saxpy");                           kernel->persistent_name is launched:
 *     grid:    (ptx_persistent_blocks(fitting, sm_total, sm_count, grid), 1, 1); the block's shape as NAME's
 *     shared:  dynamic shared memory as for NAME; the static has grown by kernel->shared_bytes
 *     block of parameters: NAME's own, then ptx_persistent_params at kernel->offset; kernel->bytes in all
 *
 * The text has the module's kernels, functions and variables under their own names too (but see `replace`). For any
 * range that has one of the launched blocks on it, the rewritten form does what NAME does with that
 * grid: each virtual block runs exactly once, on an SM of the range, and the lowest one that is not done is being run.
 * Where that cannot be shown, there is no NAME__persistent, but a reason. A launch waits for nothing, and nothing has
 * to be reset between two launches. */
#ifndef FF_PTX_PERSISTENT_H
#define FF_PTX_PERSISTENT_H

#include "ptx/ir.h"

/* In device memory, 8-byte aligned, all zero before the first launch that names it. Launches of one queue must not run
 * at once (one queue for each stream): each takes from taken[turn], and sets the other counter to zero for the next
 * launch. */
typedef struct ptx_persistent_queue {
  uint64_t taken[2];
} ptx_persistent_queue;

/* What stands at `offset` of the parameter block of NAME__persistent. */
typedef struct ptx_persistent_params {
  uint64_t queue;              /* device address of a ptx_persistent_queue */
  uint32_t sm_first, sm_count; /* %smid in [sm_first, sm_first + sm_count) stays */
  uint32_t grid[3];            /* NAME's grid: what %nctaid reads */
  uint32_t turn;               /* 0, 1, 0, 1, ... over all launches of this queue, whatever their kernels */
} ptx_persistent_params;

typedef struct ptx_persistent_kernel {
  const char *name;            /* as in the PTX */
  const char *persistent_name; /* of the entry to launch; NULL: there is none */
  const char *reason;          /* why there is none: "k polls memory in a loop at line 12: ..."; else NULL */
  uint32_t offset;             /* of ptx_persistent_params in the parameter block; a multiple of 8 */
  uint32_t bytes;              /* of the whole parameter block */
  uint32_t shared_bytes;       /* the most that its static shared memory is larger than NAME's */
} ptx_persistent_kernel;

typedef struct ptx_persistents {
  ff_arena arena;
  ptx_persistent_kernel *kernels; /* all kernels of the module with a body, in its order */
  uint32_t kernel_count;
  ff_text text; /* the module as PTX, with the added entries */
} ptx_persistents;

typedef struct ptx_persistent_options {
  /* a rewritten kernel takes its original's name, and the original becomes NAME__original */
  bool replace;
  /* loops that poll memory are no reason against: their blocks wait only for blocks of lower index */
  bool polling;
  bool whole_warps; /* the threads of a warp leave a kernel together */
} ptx_persistent_options;

/* Free with ptx_persistent_free. The module is only read, and may go before the result. A module that
 * needs functions of others must be linked first (ptx_link): a call of a function without a body is a reason
 * against. */
ptx_persistents *ptx_persistent_make(const ptx_module *module, const ptx_persistent_options *options);
void ptx_persistent_free(ptx_persistents *persistents);
/* By the kernel's name; NULL: the module has no such kernel. */
const ptx_persistent_kernel *ptx_persistent_find(const ptx_persistents *persistents, const char *name);

/* Is it the instruction by which a rewritten kernel takes a virtual block? (An atomic whose result goes to
 * %farfault_pull.) */
bool ptx_persistent_pulls(const ptx_func *func, const ptx_instr *instr);

/* How many blocks to launch: as many as the range can hold at once, but no more than there are virtual blocks, and the
 * same again for each SM outside of the range, since the device spreads a grid over all. `fitting`: blocks of
 * NAME__persistent that fit on one SM at once (cuOccupancyMaxActiveBlocksPerMultiprocessor with its dynamic shared
 * memory); sm_total: SMs that the stream may use; sm_count: of the range, at least 1. At least sm_total. */
uint32_t ptx_persistent_blocks(uint32_t fitting, uint32_t sm_total, uint32_t sm_count, const uint32_t grid[3]);

#endif
