/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of random programs: the same code runs on the model driver and on the host's copies of the segments.
 *
 *   mixN    (seed, then N times: address, shape): reads every byte of what it reads into one number and writes every byte of what it
 *           writes (FF_WRITE), or some of them (FF_READ_WRITE), from that number: one wrong byte in makes all bytes out
 *           wrong. What is used whole is read before the first block and written after the last; what is used per block
 *           by each block.
 *   cleanN  mixN, but in a module of PTX, so that it can be run in windows: for launches whose blocks do not touch what
 *   others write
 *   follow  (seed, table, count): adds to the 8 bytes at each of the addresses that stand in the table. */
#ifndef RANDOM_KERNELS_H
#define RANDOM_KERNELS_H

#include "model_driver.h"

enum { MIX_USES = 8 };

typedef struct mix_shape { /* as ff_use, from the address on */
  uint64_t bytes;
  int64_t per_block[3];
  uint64_t block_bytes;
  uint32_t access, padding;
} mix_shape;

/* Registers them; the module's text, and that of the clean ones. */
const char *kernels_register(const model_driver *model, const char **clean);
void kernel_mix(model_launch *launch);
void kernel_follow(model_launch *launch);
uint64_t kernels_hash(uint64_t hash, const void *data, uint64_t bytes);
void kernels_fill(uint64_t hash, void *data, uint64_t bytes);
/* The part of a use that block (x, y, z) touches, as offsets from its address; false: nothing. */
bool mix_range(const mix_shape *shape, uint32_t x, uint32_t y, uint32_t z, uint64_t *begin, uint64_t *end);
bool mix_is_whole(const mix_shape *shape);
#endif
