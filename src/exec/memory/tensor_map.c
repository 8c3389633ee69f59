/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps that a program has written itself, in the layout of GPUs (tensor_map.h).
 *
 * Words of 32 bits. What is not here must be zero, but for the second half of the 128 bytes, which is not looked at:
 *
 *   0, 1    the address
 *   2       bit 1: set; 4 to 6: rank - 1; 7 to 10: type; 13, 14: swizzle; 16: the type rounds to TF32; 17, 18: promotion
 *           in the L2; 19, 20: atoms of the swizzle; 21: large (128 KiB and more)
 *   3 to 6  strides of dimensions 1 to 4 in units of 16 bytes, their low 32 bits
 *   7       4 bits more of each of them
 *   8 to 12 elements along the dimensions, less one
 *   13      24 to 31: elements of the box along dimension 0, less one
 *   14      a byte each: of dimensions 1 to 4
 *
 * CUTLASS's CuTe DSL (4.8.1) writes such. Its Python sources name the bits of the type and its numbers (TmaDataFormat);
 * the rest is from maps that it made of tensors that differed in one thing at a time. That is why steps, fill modes,
 * interleaved layouts and im2col are not there. */
#include "exec/memory/tensor_map.h"

#include <string.h>

enum {
  RAW_WORDS = sizeof(tensor_map) / 4,
  RAW_FLAGS = 2,
  RAW_STRIDES = 3,
  RAW_STRIDES_HIGH = 7,
  RAW_SIZES = 8,
  RAW_BOX_0 = 13,
  RAW_BOX = 14,
  RAW_UNUSED = 15
};

#define RAW_ADDRESS_BITS 57 /* of virtual addresses */
#define RAW_TILED 0x2u
#define RAW_TF32 (1u << 16)
#define RAW_KNOWN 0x3f67f2u /* flags that are named above */

static uint32_t bits(uint32_t word, uint32_t first, uint32_t count) { return word >> first & ((1u << count) - 1); }

/* The numbers of PTX's tensormap.replace as well, but for TF32. */
static const uint8_t raw_types[] = {TENSOR_MAP_U8,      TENSOR_MAP_U16, TENSOR_MAP_U32, TENSOR_MAP_S32,
                                    TENSOR_MAP_U64,     TENSOR_MAP_S64, TENSOR_MAP_F16, TENSOR_MAP_F32,
                                    TENSOR_MAP_F32_FTZ, TENSOR_MAP_F64, TENSOR_MAP_BF16};
enum { RAW_TYPES = sizeof raw_types };

/* False: no bytes that are known as a map's. */
static bool is_raw(const uint32_t *word, uint64_t address) {
  uint32_t unused = word[RAW_FLAGS] & ~RAW_KNOWN;
  unused |= word[RAW_STRIDES_HIGH] >> 16 | (word[RAW_BOX_0] & 0xffffff);
  unused |= word[RAW_UNUSED];
  return !unused && (word[RAW_FLAGS] & 0xf) == RAW_TILED && bits(word[RAW_FLAGS], 4, 3) < TENSOR_MAP_DIMENSIONS &&
         address && address % 16 == 0 && address >> RAW_ADDRESS_BITS == 0;
}

const char *tensor_map_own(tensor_map *map) {
  if (map->magic == TENSOR_MAP_MAGIC) return NULL;
  uint32_t word[RAW_WORDS];
  memcpy(word, map, sizeof word);
  uint64_t address = (uint64_t)word[1] << 32 | word[0];
  if (!is_raw(word, address)) return "there is no tensor map";
  uint32_t flags = word[RAW_FLAGS], type = bits(flags, 7, 4);
  if (type >= RAW_TYPES) return "there is a tensor map of a packed type, which is not implemented,";
  if (bits(flags, 19, 2)) return "there is a tensor map with a swizzle of other atoms, which is not implemented,";
  if (flags & RAW_TF32 && raw_types[type] != TENSOR_MAP_F32 && raw_types[type] != TENSOR_MAP_F32_FTZ)
    return "there is no tensor map";
  tensor_map own = {.magic = TENSOR_MAP_MAGIC,
                    .address = address,
                    .type = raw_types[type],
                    .rank = (uint8_t)(bits(flags, 4, 3) + 1),
                    .swizzle = (uint8_t)bits(flags, 13, 2)};
  if (flags & RAW_TF32) own.type = own.type == TENSOR_MAP_F32 ? TENSOR_MAP_TF32 : TENSOR_MAP_TF32_FTZ;
  for (uint32_t n = 0; n < TENSOR_MAP_DIMENSIONS; n++) {
    own.last[n] = word[RAW_SIZES + n];
    own.box[n] = (uint16_t)(1 + (n ? bits(word[RAW_BOX], 8 * (n - 1), 8) : word[RAW_BOX_0] >> 24));
    own.step[n] = 1;
    if (n < 4) own.stride[n] = ((uint64_t)bits(word[RAW_STRIDES_HIGH], 4 * n, 4) << 32 | word[RAW_STRIDES + n]) * 16;
  }
  *map = own;
  return NULL;
}
