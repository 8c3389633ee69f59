/* SPDX-License-Identifier: Apache-2.0 */
/* What window.c and persistent.c ask of a module before they rewrite kernels: which functions see the grid, and in
 * which way.
 *
 * From a function whose `reads` is false no read of %ctaid or %nctaid can be reached; one whose `reason` is NULL sees
 * nothing else of the grid, and neither does any function that it calls. */
#ifndef FF_PTX_WINDOW_FACTS_H
#define FF_PTX_WINDOW_FACTS_H

#include "ptx/ir.h"

typedef struct ptx_window_facts {
  bool reads;    /* %ctaid or %nctaid, itself or by what it calls */
  bool indirect; /* calls a function by its address, itself or by what it calls */
  bool address_taken;
  const char *reason; /* why it cannot run in windows or virtual blocks, or NULL; lives in the arena given */
} ptx_window_facts;

/* One for each of module->funcs; free with free(). polling: a loop that polls memory is no reason against. */
ptx_window_facts *ptx_window_facts_find(const ptx_module *module, bool polling, ff_arena *arena);

/* Is it one of %ctaid.x ... %nctaid.z? *which: 0 to 2 for %ctaid, 3 to 5 for %nctaid. */
bool ptx_window_sreg(ptx_sreg sreg, uint32_t *which);

#endif
