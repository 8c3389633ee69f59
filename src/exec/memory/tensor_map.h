/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor map: what cuTensorMapEncodeTiled writes and cp.async.bulk.tensor reads (PTX ISA, "Tensors"; CUDA Driver API,
 * "Tensor Map Object Management"). To programs its 128 bytes are opaque; the layout here is farfault's own. One word
 * is left to them: CUTLASS clears bit 21 of the second one where a tensor has less than 128 KiB (with drivers up to
 * CUDA 13.1), which means something in NVIDIA's layout. A program that writes maps in that layout itself, without the
 * driver, is understood, too: tensor_map_own. */
#ifndef FF_EXEC_TENSOR_MAP_H
#define FF_EXEC_TENSOR_MAP_H

#include <stdbool.h>
#include <stdint.h>

#define TENSOR_MAP_DIMENSIONS 5u
#define TENSOR_MAP_MAGIC UINT64_C(0x70614d726f736e54)

typedef enum tensor_map_type { /* CUtensorMapDataType */
                               TENSOR_MAP_U8,
                               TENSOR_MAP_U16,
                               TENSOR_MAP_U32,
                               TENSOR_MAP_S32,
                               TENSOR_MAP_U64,
                               TENSOR_MAP_S64,
                               TENSOR_MAP_F16,
                               TENSOR_MAP_F32,
                               TENSOR_MAP_F64,
                               TENSOR_MAP_BF16,
                               TENSOR_MAP_F32_FTZ,
                               TENSOR_MAP_TF32,
                               TENSOR_MAP_TF32_FTZ,
                               TENSOR_MAP_TYPES
} tensor_map_type;

typedef enum tensor_map_swizzle { /* CUtensorMapSwizzle */
                                  TENSOR_MAP_SWIZZLE_NONE,
                                  TENSOR_MAP_SWIZZLE_32,
                                  TENSOR_MAP_SWIZZLE_64,
                                  TENSOR_MAP_SWIZZLE_128,
                                  TENSOR_MAP_SWIZZLES
} tensor_map_swizzle;

/* Dimension 0 is the innermost. */
typedef struct tensor_map {
  uint64_t magic;
  uint64_t left;      /* not looked at: programs change it */
  uint64_t address;   /* of the element at the origin */
  uint64_t stride[4]; /* bytes, of dimensions 1 to 4 */
  uint32_t last[5];   /* elements along the dimension, less one */
  uint16_t box[5];    /* elements of the box, from 1 to 256 */
  uint8_t step[5];    /* elements from one that is taken to the next; not of dimension 0 */
  uint8_t type;       /* tensor_map_type */
  uint8_t rank;
  uint8_t swizzle; /* tensor_map_swizzle */
  uint8_t nan;     /* elements outside of the tensor are NaN, else 0 */
  uint8_t im2col;
  int16_t lower[3], upper[3]; /* im2col: of the bounding box, by spatial dimension */
  uint16_t channels, pixels;  /* im2col: of a box */
  uint8_t unused[16];
} tensor_map;
_Static_assert(sizeof(tensor_map) == 128, "what CUtensorMap has room for");

/* Bytes of an element; 0: no such type. */
static inline uint32_t tensor_map_element(uint32_t type) {
  static const uint8_t bytes[TENSOR_MAP_TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return type < TENSOR_MAP_TYPES ? bytes[type] : 0;
}

/* Makes 128 bytes, in farfault's layout or a GPU's, a map in farfault's. NULL: done. Else what there is, as the
 * beginning of a message that goes on with "at ADDRESS"; the bytes stay. */
const char *tensor_map_own(tensor_map *map);

/* Byte `at` of shared memory stands there after swizzling: chunks of 16 bytes change places within rows of 32, 64 or
 * 128 bytes, by the number of the row of 128 bytes, less `base`. */
static inline uint32_t tensor_map_swizzled(uint32_t at, uint32_t swizzle, uint32_t base) {
  uint32_t chunks = (1u << swizzle) - 1; /* mask of those of a row */
  return at ^ ((((at >> 7) - base) & chunks) << 4);
}

#endif
