/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices in shared memory, as the descriptors of wgmma and tcgen05 name them (PTX ISA, "Shared Memory Matrix Layout",
 * "Canonical Layouts").
 *
 * Rows of 16 bytes are its units, "chunks" here. A row of the matrix has two of them along K. Where the elements of a
 * row are neighbours, eight rows are `pitch` bytes apart from one to the next, groups of eight the stride offset, the
 * two chunks 16 bytes, or without swizzling the leading offset. Where those of a column are, each k has pitch / 16
 * neighbouring chunks; groups of these are the leading offset apart, eight k the stride offset; without swizzling the
 * two offsets change places. With atoms of 32 bytes four k are the stride offset apart.
 *
 * For files that are compiled per instruction set. */
#ifndef FF_EXEC_SHARED_MATRIX_H
#define FF_EXEC_SHARED_MATRIX_H

#include "exec/instructions/lanes.h"
#include "exec/launch/fault.h"
#include "exec/memory/tensor_map.h"

#define SHARED_CHUNK 16u
#define SHARED_DEPTH_BYTES 32u /* of a row of A or B */

typedef struct shared_matrix {
  const core_block *block;               /* whose shared memory it is in */
  uint32_t start, leading, stride, base; /* bytes, but base */
  uint32_t swizzle;                      /* tensor_map_swizzle */
  uint32_t pitch;
  bool wide_atoms; /* of 32 bytes: rows of 128 bytes whose quarters change places, by the number of the row */
} shared_matrix;

/* What descriptors of both have in the same bits; swizzle: a tensor_map_swizzle. */
INLINE shared_matrix shared_matrix_of(const core_block *block, uint64_t descriptor, uint32_t swizzle) {
  return (shared_matrix){.block = block,
                         .start = (uint32_t)(descriptor & 0x3fff) << 4,
                         .leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                         .stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4,
                         .base = (uint32_t)(descriptor >> 49 & 7),
                         .swizzle = swizzle,
                         .pitch = SHARED_CHUNK << swizzle};
}

/* Chunk `offset` bytes from the start of the matrix, in shared memory. */
INLINE const unsigned char *shared_chunk(core_warp *w, const exec_instr *i, const shared_matrix *m, uint32_t offset) {
  uint32_t linear = (m->start + offset) & 0x3ffff;
  uint32_t at =
      m->wide_atoms ? linear ^ (((linear >> 7) - m->base) & 3) << 5 : tensor_map_swizzled(linear, m->swizzle, m->base);
  if (UNLIKELY(at >= m->block->shared_bytes || m->block->shared_bytes - at < SHARED_CHUNK))
    core_fault(w, i, (uint32_t)__builtin_ctz(w->active), EXEC_FAULT_ILLEGAL_ADDRESS, at,
               "the matrix descriptor reaches byte 0x%x of shared memory; the block has %u bytes", at,
               m->block->shared_bytes);
  return m->block->shared + at;
}

/* Rows from `first` on, of `depth` bytes each, a multiple of a chunk. */
INLINE void shared_rows(core_warp *w, const exec_instr *i, const shared_matrix *m, uint32_t first, uint32_t rows,
                        uint32_t depth, unsigned char *to) {
  uint32_t apart = m->swizzle ? SHARED_CHUNK : m->leading;
  for (uint32_t n = 0; n < rows; n++, to += depth) {
    uint32_t row = first + n, at = row % 8 * m->pitch + row / 8 * m->stride;
    for (uint32_t c = 0; c < depth / SHARED_CHUNK; c++)
      memcpy(to + c * SHARED_CHUNK, shared_chunk(w, i, m, at + c * apart), SHARED_CHUNK);
  }
}

/* The same of a matrix whose columns' elements are neighbours; `first` and `rows` are multiples of a chunk's elements,
 * which have `bytes` bytes each. */
INLINE void shared_columns(core_warp *w, const exec_instr *i, const shared_matrix *m, uint32_t bytes, uint32_t first,
                           uint32_t rows, uint32_t depth, unsigned char *to) {
  uint32_t in_row = m->pitch / SHARED_CHUNK, groups = m->swizzle ? m->leading : m->stride,
           many = m->swizzle ? m->stride : m->leading, elements = SHARED_CHUNK / bytes, tall = m->wide_atoms ? 4 : 8;
  for (uint32_t n = 0; n < rows; n += elements)
    for (uint32_t k = 0; k < depth / bytes; k++) {
      uint32_t chunk = (first + n) / elements;
      const unsigned char *from = shared_chunk(
          w, i, m, chunk % in_row * SHARED_CHUNK + chunk / in_row * groups + k % tall * m->pitch + k / tall * many);
      for (uint32_t e = 0; e < elements; e++) memcpy(to + (n + e) * depth + k * bytes, from + e * bytes, bytes);
    }
}

#endif
