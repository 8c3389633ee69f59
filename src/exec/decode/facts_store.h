/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of a large module's functions on disk, for later processes.
 *
 * A kernel that calls functions by their address may reach every function whose address the module takes: what it needs
 * (registers, stack, shared memory) is known once all of them have been read, which takes 20 ms per MB of PTX. The file
 * is named by the texts that the module is made of and by the build of farfault. Kernels are not in it, as a limit of
 * registers that they were given from outside would have to be in the name, and neither are functions with shared
 * variables of their own. */
#ifndef FF_EXEC_DECODE_FACTS_STORE_H
#define FF_EXEC_DECODE_FACTS_STORE_H

#include "exec/decode/function_facts.h"

/* Facts by ptx_func.index, of functions of which there are none yet, and the functions whose address is taken, in order
 * (`taken` has room for all). False: they are not there, and nothing is changed. */
bool exec_facts_load(ptx_module *module, exec_facts **of, const ptx_func **taken, uint32_t *taken_count);
/* Writes what is known, of a module whose texts are large enough. */
void exec_facts_keep(ptx_module *module, exec_facts *const *of, const ptx_func *const *taken, uint32_t taken_count);

#endif
