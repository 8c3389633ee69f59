/* SPDX-License-Identifier: Apache-2.0 */
/* One module on several devices: each has a program of its own, with variables of its own, but for managed ones, which
 * are there once.
 *
 * What always holds: of the programs of a module one owns the managed variables, and it is not freed before it has
 * handed them over to another one, if there is one. */
#ifndef FF_EXEC_BESIDE_H
#define FF_EXEC_BESIDE_H

#include "exec/exec.h"

/* exec_program_create, where another device has the program `beside` of the same module already; NULL: none has. */
ff_status exec_program_create_beside(const ptx_module *linked, exec_memory *memory, exec_program *beside,
                                     exec_program **program, ff_error *error);
void exec_program_hand_over(exec_program *from, exec_program *to);

#endif
