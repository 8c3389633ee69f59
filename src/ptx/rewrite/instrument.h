/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that check their own accesses against what their launch declares (Wilt 2017, R3), for GPUs that do not.
 *
 * NAME__checked is kernel NAME with one more parameter behind its own, the address of a *table* in device memory: a
 * report, and the uses of the launch. Before each load, store, atomic and asynchronous copy whose address may be global
 * it looks into the table; an access that is not declared is not made (a load gives 0), and the first one fills the
 * report. So the context survives, and no other data are damaged. Functions that touch memory are copied with it, and
 * passed the table.
 *
 *   checked = ptx_instrument(module);             checked->text goes to the driver in place of the module's
 *   kernel = ptx_checked_find(checked, "saxpy");  kernel->checked_name is launched, the table's address at
 *   kernel->offset
 *   ptx_check_fill(uses, count, grid, table);     before the launch
 *   ptx_check_explain(checked, "saxpy", &report, uses, count, &text);   after it, if report.taken
 *
 * For a kernel that stays within its uses the results are those of NAME, bit by bit; a report has the words of the
 * virtual GPU's fault for the same access (declared.h). A module that shall run in windows as well (window.h) is
 * instrumented first: the windows of NAME__checked then check with the block's index in the whole grid. */
#ifndef FF_PTX_INSTRUMENT_H
#define FF_PTX_INSTRUMENT_H

#include "ptx/analysis/declared.h"

typedef struct ptx_check_report { /* the head of a table; all zero before a launch */
  uint32_t taken;                 /* 1: the rest holds */
  uint32_t site;                  /* index into ptx_checked.sites */
  uint64_t address;
  uint32_t bytes, reserved;
  uint32_t block[3], thread[3];
} ptx_check_report;

typedef struct ptx_check_use {
  uint64_t base, end; /* [base, end) */
  uint64_t mode;      /* PTX_USE_READ | PTX_USE_WRITE */
  int64_t per_block[3];
  uint64_t block_bytes; /* 0: every block may touch all */
  int64_t first;        /* where block (0, 0, 0)'s range begins */
} ptx_check_use;

typedef struct ptx_check_table {
  ptx_check_report report;
  uint32_t count, reserved[3];
  ptx_check_use uses[];
} ptx_check_table;

typedef struct ptx_check_site { /* an access that is checked */
  const ptx_func *func;
  const ptx_instr *instr;
} ptx_check_site;

typedef struct ptx_checked_kernel {
  const char *name;         /* as in the PTX */
  const char *checked_name; /* of the entry to launch; NULL: there is none */
  const char *reason;       /* why there is none: "k calls through a pointer at line 12"; else NULL */
  /* of the table's address in the parameter block; the bytes before are as for the kernel itself */
  uint32_t offset;
  uint32_t bytes; /* of the whole parameter block */
  /* it may get memory from malloc: the table must allow all addresses but those of segments */
  bool heap;
} ptx_checked_kernel;

typedef struct ptx_checked {
  ff_arena arena;
  ptx_checked_kernel *kernels; /* all kernels of the module with a body, in its order */
  uint32_t kernel_count;
  ptx_check_site *sites;
  uint32_t site_count;
  ff_text text; /* the module as PTX, with the added entries */
} ptx_checked;

/* Free with ptx_checked_free. The module must outlive the result (sites point into it). */
ptx_checked *ptx_instrument(const ptx_module *module);
void ptx_checked_free(ptx_checked *checked);
/* By the kernel's name; NULL: the module has no such kernel. */
const ptx_checked_kernel *ptx_checked_find(const ptx_checked *checked, const char *name);

/* Bytes of a table of `count` uses. */
size_t ptx_check_bytes(uint32_t count);
/* Fills a table for a launch of `grid` blocks. FF_INVALID: a range leaves 63 bits for some block. */
ff_status ptx_check_fill(const ff_virtual_use *uses, uint32_t count, const uint32_t grid[3], ptx_check_table *table,
                         ff_error *error);
/* What the report says, in the words of declared.h. FF_INVALID: it is none (no such site). */
ff_status ptx_check_explain(const ptx_checked *checked, const char *kernel, const ptx_check_report *report,
                            const ff_virtual_use *uses, uint32_t count, ff_text *text, ff_error *error);

#endif
