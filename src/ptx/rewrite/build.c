/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions from their words: see build.h. */
#include "ptx/rewrite/build.h"

#include <string.h>

#include "base/check.h"
#include "ptx/syntax/words.h"

ptx_operand ptx_build_list(ff_arena *arena, ptx_operand_kind kind, const ptx_operand *elements, uint32_t count) {
  ptx_operand operand = ptx_build_operand(kind);
  operand.elements = ff_arena_alloc(arena, (count + (size_t)1) * sizeof *elements);
  if (count) memcpy(operand.elements, elements, count * sizeof *elements);
  operand.element_count = count;
  return operand;
}

ptx_instr ptx_build_instr(ff_arena *arena, const char *opcode, const ptx_operand *operands, uint32_t count) {
  size_t length = strcspn(opcode, ".");
  ptx_instr instr = {
      .opcode = ptx_opcode_find(opcode, length), .guard = PTX_NO_REG, .operand_count = (uint8_t)count, .vector = 1};
  for (const char *at = opcode + length; *at == '.';) {
    size_t word_length = strcspn(++at, ".");
    ptx_word word = ptx_word_find(at, word_length);
    if (word.type) {
      instr.type_words |= 1u << (instr.mod_count + instr.type_count);
      instr.types[instr.type_count++] = word.type;
    } else {
      FF_ASSERT(word.is_mod);
      if (word.mod == PTX_MOD_V2) instr.vector = 2;
      if (word.mod == PTX_MOD_V4) instr.vector = 4;
      instr.mods[instr.mod_count++] = (uint16_t)word.mod;
      instr.mod_set[word.mod / 64] |= UINT64_C(1) << (word.mod % 64);
    }
    at += word_length;
  }
  instr.operands = ff_arena_alloc(arena, (count + (size_t)1) * sizeof *operands);
  if (count) memcpy(instr.operands, operands, count * sizeof *operands);
  return instr;
}
