/* SPDX-License-Identifier: Apache-2.0 */
/* What the two makers of modules, the parser and the linker, do last. */
#ifndef FF_PTX_MODULE_H
#define FF_PTX_MODULE_H

#include "ptx/ir.h"

/* Fills the name maps from the lists, which must be complete. */
void ptx_module_index(ptx_module *module);
/* module_check.c: asserts the invariants of a module that is complete; of one function of it. */
void ptx_module_check(const ptx_module *module);
void ptx_func_check(const ptx_func *func);
/* parse.c: what its parser still holds; it has none then. */
void ptx_parser_free(ptx_module *module);

#endif
