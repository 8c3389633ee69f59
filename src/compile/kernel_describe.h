/* SPDX-License-Identifier: Apache-2.0 */
/* From a kernel's decoded functions to a request (request.h), in the process that runs them. */
#ifndef FF_COMPILE_DESCRIBE_H
#define FF_COMPILE_DESCRIBE_H

#include "compile/request.h"
#include "exec/decode/program.h"

/* native_request.watch of the launch's code. */
uint32_t native_watch(const core_launch *launch);
/* The request's bytes (the caller frees them); *bytes how many. watch, any: native_request's. Thread-safe. NULL: too
 * large to be worth it. */
void *native_describe(const exec_kernel *kernel, const exec_code *code, const exec_isa_table *isa, uint32_t watch,
                      bool any, uint32_t *bytes);

#endif
