/* SPDX-License-Identifier: Apache-2.0 */
/* One module on several devices: each has a program of its own, with variables of its own; managed variables are
 * shared.
 *
 * One of the programs of a module owns the managed variables. The caller hands them over to another program of the
 * module, if there is one, before it frees the owner. */
#ifndef FF_EXEC_PROGRAM_SHARING_H
#define FF_EXEC_PROGRAM_SHARING_H

#include "exec/exec.h"

/* exec_program_create, where another device has the program `managed_from` of the same module already: the new program
 * takes its managed variables. NULL: no other device has one. */
ff_status exec_program_create_sharing(const ptx_module *linked, exec_memory *memory, exec_program *managed_from,
                                      exec_program **program, ff_error *error);
void exec_program_hand_over(exec_program *from, exec_program *to);

/* A further part of the module of `base`: more kernels, on its variables, which all are there by their names. Free it
 * before `base`, or together with it. FF_INVALID: it has a variable that `base` has not. */
ff_status exec_program_create_part(const ptx_module *part, exec_program *base, exec_program **program, ff_error *error);

#endif
