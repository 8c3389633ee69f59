/* SPDX-License-Identifier: Apache-2.0 */
/* The checking function as PTX text. */
#ifndef FF_PTX_INSTRUMENT_CHECKER_H
#define FF_PTX_INSTRUMENT_CHECKER_H

#include "ptx/rewrite/instrument.h"
#include "ptx/rewrite/instrument_facts.h"

#define PTX_CHECKER_NAME "farfault_check"
#define PTX_CHECKER_VARIABLES "farfault_variables"

enum { PTX_CHECK_GENERIC = 4 }; /* `what`, in addition to the modes: the address may be one of shared or local memory */

/* A module of its own: the function, and if the module has variables the table of them (address and bytes, to be
 * filled). constants: addresses of constant memory pass. */
void ptx_checker_print(const ptx_module *module, bool constants, uint32_t variables, ff_text *out);

#endif
