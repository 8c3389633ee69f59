/* SPDX-License-Identifier: Apache-2.0 */
/* The call graph of a module, backwards: for facts that a function takes over from the functions that it calls.
 *
 *   ptx_callers_create -> ptx_callers_add for every call -> ptx_callers_spread -> ptx_callers_free */
#ifndef FF_PTX_CALLERS_H
#define FF_PTX_CALLERS_H

#include "ptx/ir.h"

typedef struct ptx_callers ptx_callers;

ptx_callers *ptx_callers_create(uint32_t func_count);
/* indices in module->funcs; the same pair may come again */
void ptx_callers_add(ptx_callers *callers, uint32_t callee, uint32_t caller);
/* Calls take_over for pairs until it returns true (the caller learnt something) for none: from callees to callers,
 * through recursion too. It ends if what a function can learn is finite. */
void ptx_callers_spread(const ptx_callers *callers, bool (*take_over)(void *context, uint32_t caller, uint32_t callee),
                        void *context);
void ptx_callers_free(ptx_callers *callers);

/* The reason why something cannot be done, formatted into the arena; keeps the first one: does nothing if *reason is
 * not NULL. */
void ptx_refuse(ff_arena *arena, const char **reason, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

#endif
