/* SPDX-License-Identifier: Apache-2.0 */
/* What the torture program calls of the CUDA driver API, loaded from libcuda.so.1 as programs without a toolkit do. */
#ifndef FF_TESTS_TORTURE_DRIVER_H
#define FF_TESTS_TORTURE_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef struct driver {
#define DRIVER_CALL(name, parameters) int(*name) parameters;
#include "driver_calls.def"
#undef DRIVER_CALL
} driver;

extern driver cuda;

/* Ends the process with a message if the library, or a call in it, is not there. */
void driver_load(void);

#endif
