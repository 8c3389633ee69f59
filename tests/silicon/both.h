/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel on a CUDA driver and on the executor. */
#ifndef TESTS_SILICON_BOTH_H
#define TESTS_SILICON_BOTH_H

#include "items.h"

typedef struct both both;

/* The driver that FARFAULT_DRIVER names, on this process's first device. as: the compute capability of which the
 * executor is, 90 for 9.0; 0: the device's. */
ff_status both_open(uint32_t as, both **out, ff_error *error);
void both_close(both *b);

typedef enum both_result { BOTH_RAN, BOTH_REFUSED, BOTH_FAILED } both_result;

/* Loads the item's text. REFUSED: the driver does not take it, for the reason in `error`. */
both_result both_load(both *b, const item *it, ff_error *error);
/* Runs what was loaded with the inputs of `run`. theirs, ours: output_bytes each. After FAILED the driver's context may
 * be gone. */
both_result both_run(both *b, const item *it, uint32_t run, unsigned char *theirs, unsigned char *ours,
                     ff_error *error);
/* The inputs of the last run. */
const unsigned char *both_inputs(const both *b);

#endif
