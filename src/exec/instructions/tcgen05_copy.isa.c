/* SPDX-License-Identifier: Apache-2.0 */
/* tcgen05.cp: from shared to tensor memory (PTX ISA, "Tensor Memory Data Movement Instructions").
 *
 * A row of the matrix goes to a lane: the lanes that a shape has it for, and the row's one or two chunks of 16 bytes to
 * four columns each. Elements of 4 and 6 bits, sixteen in a chunk, get a byte each on the way if the instruction says
 * so; four bits stand in its middle. With .cta_group::2 each block of the pair copies from its own shared memory. */
#include "exec/instructions/tcgen05.h"

#include "exec/instructions/tcgen05_descriptor.h"

void ISA(core_tensor_copy)(exec_warp *x, const exec_instr *i);

/* The lane, from that of the address on, that gets `row` the n-th time. */
INLINE uint32_t lane_of(const exec_tensor_copy *c, uint32_t row, uint32_t n) {
  switch ((tcgen05_spread)c->spread) {
  case TCGEN05_FOUR_LANES: return row * 32;
  case TCGEN05_PAIRS_02_13: return row + n * 64;
  case TCGEN05_PAIRS_01_23: return row / 32 * 64 + row % 32 + n * 32;
  case TCGEN05_ALL_WARPS: return row + n * 32;
  default: return row;
  }
}

/* Sixteen elements of `bits` bits, one behind the other. */
static void expand(unsigned char *to, const unsigned char *from, uint32_t bits) {
  for (uint32_t e = 0; e < SHARED_CHUNK; e++) {
    uint32_t at = e * bits, word = from[at / 8] | (uint32_t)from[at / 8 + 1] << 8;
    uint32_t element = word >> at % 8 & ((1u << bits) - 1);
    to[e] = (unsigned char)(bits == 4 ? element << 2 : element);
  }
}

/* From the block's shared memory to its tensor memory. */
static void copy(core_warp *w, const exec_instr *i, uint32_t lane, core_block *block) {
  const exec_tensor_copy *c = i->side;
  tensor_memory *memory = core_tensor_memory_of(w, i, lane, block, c->group);
  uint64_t descriptor = exec_u64(&w->x, c->descriptor)[lane];
  shared_matrix matrix = tensor_matrix_of(w, i, lane, block, "the source", descriptor, false);
  uint32_t lanes = lane_of(c, c->rows - 1u, c->times - 1u) + 1, address = (uint32_t)core_bulk_address(w, &c->to, lane);
  tensor_place to = core_tensor_place(w, i, lane, memory, address, lanes, c->chunks * 4u, "a copy");
  uint32_t apart = matrix.swizzle ? SHARED_CHUNK : matrix.leading;
  for (uint32_t row = 0; row < c->rows; row++)
    for (uint32_t chunk = 0; chunk < c->chunks; chunk++) {
      uint32_t at = row % 8 * matrix.pitch + row / 8 * matrix.stride + chunk * apart;
      const unsigned char *from = shared_chunk(w, i, &matrix, at);
      unsigned char bytes[SHARED_CHUNK];
      if (c->element_bits) expand(bytes, from, c->element_bits);
      else memcpy(bytes, from, SHARED_CHUNK);
      for (uint32_t n = 0; n < c->times; n++)
        memcpy(&memory->cells[to.lane + lane_of(c, row, n)][to.column + chunk * 4], bytes, SHARED_CHUNK);
    }
}

void ISA(core_tensor_copy)(exec_warp *x, const exec_instr *i) {
  const exec_tensor_copy *c = i->side;
  core_tensor_each((core_warp *)x, i, c->group, copy);
}
