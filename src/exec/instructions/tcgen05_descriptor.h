/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of matrices in shared memory of tcgen05 (PTX ISA, "Shared memory descriptor"), with a fault for what the
 * manual does not define. For files that are compiled per instruction set. */
#ifndef FF_EXEC_TCGEN05_DESCRIPTOR_H
#define FF_EXEC_TCGEN05_DESCRIPTOR_H

#include "exec/instructions/shared_matrix.h"

static _Noreturn void tensor_bad_descriptor(core_warp *w, const exec_instr *i, uint32_t lane, const char *name,
                                            uint64_t descriptor, const char *why) {
  core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0, "the descriptor of %s is 0x%016llx: %s", name,
             (unsigned long long)descriptor, why);
}

/* Swizzling modes by the descriptor's number; 1 has atoms of 32 bytes, which only transposed matrices have. */
INLINE shared_matrix tensor_matrix_of(core_warp *w, const exec_instr *i, uint32_t lane, const core_block *block,
                                      const char *name, uint64_t descriptor, bool across) {
  static const uint8_t swizzles[8] = {[0] = TENSOR_MAP_SWIZZLE_NONE,
                                      [1] = TENSOR_MAP_SWIZZLE_128,
                                      [2] = TENSOR_MAP_SWIZZLE_128,
                                      [4] = TENSOR_MAP_SWIZZLE_64,
                                      [6] = TENSOR_MAP_SWIZZLE_32};
  uint32_t mode = (uint32_t)(descriptor >> 61);
  const char *why = (descriptor >> 46 & 7) != 1           ? "bits 46 to 48 are not 0b001"
                    : descriptor >> 53 & 0xff             ? "bits 53 to 60 are not 0"
                    : descriptor >> 52 & 1                ? "absolute addresses are sm_103a's"
                    : mode == 3 || mode == 5 || mode == 7 ? "there is no such swizzling mode"
                    : mode == 1 && !across                ? "atoms of 32 bytes are for transposed matrices"
                                                          : NULL;
  if (why) tensor_bad_descriptor(w, i, lane, name, descriptor, why);
  shared_matrix matrix = shared_matrix_of(block, descriptor, swizzles[mode]);
  matrix.wide_atoms = mode == 1;
  return matrix;
}

#endif
