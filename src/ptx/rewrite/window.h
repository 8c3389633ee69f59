/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that can be launched for a part of their grid: a *window*, a box of blocks.
 *
 * NAME__window is kernel NAME with one change: where NAME reads %ctaid it reads %ctaid + first, where NAME reads
 * %nctaid it reads grid; `first` and `grid` are six more u32 parameters behind NAME's own. Launched with a grid of the
 * box's size it does what the blocks [first, first + size) of NAME's grid do. Functions that read them are passed them.
 *
 * The text has every kernel, function and variable of the module under its own name too, so one
 * loaded module serves both, with the same variables. A kernel for which it cannot be shown that its blocks see the
 * rest of the grid only through %ctaid and %nctaid has no window, and a reason why. */
#ifndef FF_PTX_WINDOW_H
#define FF_PTX_WINDOW_H

#include "ptx/ir.h"

/* What stands at `offset` of the parameter block of NAME__window. */
typedef struct ptx_window_params {
  uint32_t first[3]; /* the window's first block, x y z */
  uint32_t grid[3];  /* of the whole launch: what %nctaid reads */
} ptx_window_params;

typedef struct ptx_window_kernel {
  const char *name;        /* of the kernel, as in the PTX */
  const char *window_name; /* of the entry to launch; NULL: there is none */
  const char *reason;      /* why there is none: "reads %gridid at line 12, ..."; else NULL */
  /* of ptx_window_params in the parameter block; the bytes before are as for the kernel itself */
  uint32_t offset;
  uint32_t bytes; /* of the whole parameter block */
} ptx_window_kernel;

typedef struct ptx_windows {
  ff_arena arena;
  ptx_window_kernel *kernels; /* all kernels of the module with a body, in its order */
  uint32_t kernel_count;
  ff_text text; /* the module as PTX, with the added entries */
} ptx_windows;

/* Free with ptx_windows_free. The module is only read, and may go before the result. A module that needs
 * functions of others must be linked first (ptx_link): a call of a function without a body is a reason against. */
ptx_windows *ptx_windows_make(const ptx_module *module);
void ptx_windows_free(ptx_windows *windows);
/* By the kernel's name; NULL: the module has no such kernel. */
const ptx_window_kernel *ptx_windows_find(const ptx_windows *windows, const char *name);

/* Where the parameters of a kernel stand in its parameter block: offsets[i] (may be NULL) for func->params[i]. Returns
 * the block's bytes; UINT32_MAX if they are too many for any GPU. */
uint32_t ptx_param_layout(const ptx_func *func, uint32_t *offsets);

#endif
