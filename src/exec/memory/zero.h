/* SPDX-License-Identifier: Apache-2.0 */
/* Zeros in memory of the virtual GPU. */
#ifndef FF_EXEC_ZERO_H
#define FF_EXEC_ZERO_H

#include <stdint.h>

#include "exec/memory/address_space.h"

/* Zeroes bytes of one live allocation, or of other memory of the host's. Much device memory is not written: its pages
 * go back to the host, and whoever touches them next gets new ones. Benchmarks (triton.testing.do_bench) empty the L2
 * by 256 MiB of zeros, a thousand times. */
void exec_memory_zero(const exec_memory *memory, uint64_t address, uint64_t bytes);

#endif
