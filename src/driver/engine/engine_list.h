/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a module: queries of the driver API, in addition to those of engine.h. */
#ifndef FF_DRIVER_ENGINE_LIST_H
#define FF_DRIVER_ENGINE_LIST_H

#include "driver/engine/engine.h"

/* The kernels of a module, in the order of its PTX, up to `most`; *count: how many it has. Loads it. */
ENGINE_API cudaError_t engine_module_kernels(engine_module *module, engine_function **list, uint32_t most,
                                             uint32_t *count);
/* The module that a function is of; cudaErrorInvalidResourceHandle: it is none. */
ENGINE_API cudaError_t engine_function_module(engine_function *function, engine_module **module);

#endif
