/* SPDX-License-Identifier: Apache-2.0 */
/* Which columns of A a sparse product has (PTX ISA, "Sparse matrix storage", of mma and of wgmma).
 *
 * A row of A is divided into chunks, and of each chunk a part of the elements is there, packed; four bits of metadata
 * say which: of 32-bit elements one of two (0b0100 the first, 0b1110 the second), of four-bit ones two pairs of eight,
 * of the others two of four. Other bits are the program's error, and give some column of the chunk.
 *
 * For files that are compiled per instruction set. */
#ifndef FF_EXEC_SPARSE_H
#define FF_EXEC_SPARSE_H

#include "exec/instructions/lanes.h"

/* Elements of a chunk that are there. */
INLINE uint32_t sparse_kept(uint32_t element_bits) { return element_bits == 32 ? 1 : element_bits == 4 ? 4 : 2; }

/* Of element k of a row of the packed A its column, if `bits` are those of its chunk. */
INLINE uint32_t sparse_column(uint32_t element_bits, uint32_t bits, uint32_t k) {
  if (element_bits == 32) return k * 2 + (bits >> 1 & 1);
  uint32_t pair = element_bits == 4 ? 2 : 1, chunk = k / (2 * pair), place = bits >> (k / pair % 2 * 2) & 3;
  return (chunk * 4 + place) * pair + k % pair;
}

/* The four bits of a chunk of a row, of the 16 rows that a warp has, in a register of its lanes. Lanes 4g to 4g + 3
 * are of rows g and g + 8. Elements of 16 and 32 bits: a word has four chunks of row g, then four of row g + 8;
 * smaller ones: eight of one row, and the next lane those of row g + 8. Where not all four lanes are needed, the
 * selector says which have them. chunks: of a row. */
INLINE uint32_t sparse_chunk_bits(const uint32_t *metadata, uint32_t element_bits, uint32_t chunks, uint32_t selector,
                                  uint32_t row, uint32_t chunk) {
  uint32_t lane = row % 8 * 4, high = row / 8;
  if (element_bits >= 16) {
    lane += chunks == 4 ? selector : selector * 2 + chunk / 4;
    return metadata[lane] >> (high * 16 + chunk % 4 * 4) & 15;
  }
  lane += (chunks == 8 ? selector * 2 : chunk / 8 * 2) + high;
  return metadata[lane] >> (chunk % 8 * 4) & 15;
}

/* For each of the `held` elements of a row of the packed A its column. */
INLINE void sparse_row_columns(const uint32_t *metadata, uint32_t element_bits, uint32_t held, uint32_t selector,
                               uint32_t row, uint8_t *column) {
  uint32_t kept = sparse_kept(element_bits), chunks = held / kept;
  for (uint32_t k = 0; k < held; k++) {
    uint32_t bits = sparse_chunk_bits(metadata, element_bits, chunks, selector, row, k / kept);
    column[k] = (uint8_t)sparse_column(element_bits, bits, k);
  }
}

#endif
