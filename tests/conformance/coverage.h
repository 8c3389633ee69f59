/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of the interpreter's tables (exec/instructions/ops_table.h) the cases state. */
#ifndef TESTS_CONFORMANCE_COVERAGE_H
#define TESTS_CONFORMANCE_COVERAGE_H

#include "ptx/ir.h"

/* Notes the forms of that case's own mnemonic: what a kernel computes in addition to what it tests does not count. */
void coverage_note(const ptx_module *module, const char *case_name);

/* Prints the rows of which no case states a name, each by its first name, in the tables' order. */
void coverage_print_rest(void);

#endif
