/* SPDX-License-Identifier: Apache-2.0 */
/* The aux of video instructions: types, modifiers and operand selectors in bits (ops_video.h), so that one handler per
 * mnemonic serves all of them. Forms that the manual does not have are refused. */
#include "exec/instructions/ops_video.h"

#include <string.h>

#include "exec/instructions/ops_table.h"

bool ops_is_video(ptx_opcode opcode) {
  switch (opcode) {
  case PTX_OP_VADD:
  case PTX_OP_VSUB:
  case PTX_OP_VABSDIFF:
  case PTX_OP_VMIN:
  case PTX_OP_VMAX:
  case PTX_OP_VSET:
  case PTX_OP_VSHL:
  case PTX_OP_VSHR:
  case PTX_OP_VMAD:
  case PTX_OP_VADD2:
  case PTX_OP_VSUB2:
  case PTX_OP_VAVRG2:
  case PTX_OP_VABSDIFF2:
  case PTX_OP_VMIN2:
  case PTX_OP_VMAX2:
  case PTX_OP_VSET2:
  case PTX_OP_VADD4:
  case PTX_OP_VSUB4:
  case PTX_OP_VAVRG4:
  case PTX_OP_VABSDIFF4:
  case PTX_OP_VMIN4:
  case PTX_OP_VMAX4:
  case PTX_OP_VSET4: return true;
  default: return false;
  }
}

/* 2 or 4 elements; 1: a scalar form. */
static uint32_t elements_of(ptx_opcode opcode) {
  const char *text = ptx_opcode_text(opcode);
  char last = text[strlen(text) - 1];
  return last == '2' ? 2 : last == '4' ? 4 : 1;
}

static bool is_vset(ptx_opcode opcode) {
  return opcode == PTX_OP_VSET || opcode == PTX_OP_VSET2 || opcode == PTX_OP_VSET4;
}

/* 0-5 for eq ne lt le gt ge, -1 if none is there. */
static int comparison_of(const ptx_instr *instr) {
  static const ptx_mod order[] = {PTX_MOD_EQ, PTX_MOD_NE, PTX_MOD_LT, PTX_MOD_LE, PTX_MOD_GT, PTX_MOD_GE};
  for (int i = 0; i < 6; i++)
    if (ptx_has(instr, order[i])) return i;
  return -1;
}

const char *ops_video_suffix(const ptx_instr *instr) {
  static const char *const names[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  int compare = comparison_of(instr);
  return elements_of(instr->opcode) > 1 && is_vset(instr->opcode) && compare >= 0 ? names[compare] : NULL;
}

/* --- Types and modifiers. vset has no destination type. --- */

static bool signs_of(const ptx_instr *instr, bool *d, bool *a, bool *b) {
  uint8_t wanted = is_vset(instr->opcode) ? 2 : 3;
  if (instr->type_count != wanted) return false;
  for (int i = 0; i < wanted; i++)
    if (instr->types[i] != PTX_U32 && instr->types[i] != PTX_S32) return false;
  const ptx_type *sources = instr->types + wanted - 2;
  *d = wanted == 3 && instr->types[0] == PTX_S32;
  *a = sources[0] == PTX_S32;
  *b = sources[1] == PTX_S32;
  return true;
}

static bool allowed(const ptx_instr *instr, const ptx_mod *mods, size_t count) {
  for (int i = 0; i < instr->mod_count; i++) {
    size_t m = 0;
    while (m < count && mods[m] != instr->mods[i]) m++;
    if (m == count) return false;
  }
  return true;
}

static bool scalar_mods_allowed(const ptx_instr *instr) {
  static const ptx_mod usual[] = {PTX_MOD_SAT, PTX_MOD_ADD, PTX_MOD_MIN, PTX_MOD_MAX};
  static const ptx_mod shift[] = {PTX_MOD_SAT, PTX_MOD_ADD, PTX_MOD_MIN, PTX_MOD_MAX, PTX_MOD_CLAMP, PTX_MOD_WRAP};
  static const ptx_mod set[] = {PTX_MOD_ADD, PTX_MOD_MIN, PTX_MOD_MAX, PTX_MOD_EQ, PTX_MOD_NE,
                                PTX_MOD_LT,  PTX_MOD_LE,  PTX_MOD_GT,  PTX_MOD_GE};
  static const ptx_mod mad[] = {PTX_MOD_SAT, PTX_MOD_PO, PTX_MOD_SHR7, PTX_MOD_SHR15};
  switch (instr->opcode) {
  case PTX_OP_VMAD: return allowed(instr, mad, sizeof mad / sizeof *mad);
  case PTX_OP_VSET: return comparison_of(instr) >= 0 && allowed(instr, set, sizeof set / sizeof *set);
  case PTX_OP_VSHL:
  case PTX_OP_VSHR:
    return ptx_has(instr, PTX_MOD_CLAMP) != ptx_has(instr, PTX_MOD_WRAP) &&
           allowed(instr, shift, sizeof shift / sizeof *shift);
  default: return allowed(instr, usual, sizeof usual / sizeof *usual);
  }
}

/* --- Selectors. --- */

static uint32_t digits_of(uint32_t selector) { return selector >> 16 & 0xffu; }

/* .b0-.b3 are 1-4, .h0 and .h1 are 5 and 6; none is 0. */
static bool scalar_selector(const ptx_operand *operand, uint32_t *value) {
  uint32_t selector = operand->selector, digit = selector & 0xfu;
  *value = 0;
  if (!selector) return true;
  bool bytes = selector >> 28 == 0xb;
  if (digits_of(selector) != 1 || digit >= (bytes ? 4u : 2u)) return false;
  *value = bytes ? 1 + digit : 5 + digit;
  return true;
}

/* `count` places of three bits, the last digit written being element 0's. */
static bool packed_selector(const ptx_operand *operand, uint32_t count, uint32_t first, uint32_t *places) {
  uint32_t selector = operand->selector;
  if (selector && (digits_of(selector) != count || (selector >> 28 == 0xb) != (count == 4))) return false;
  *places = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t place = selector ? selector >> 4 * i & 0xfu : first + i;
    if (place >= 2 * count) return false;
    *places |= place << 3 * i;
  }
  return true;
}

static bool packed_mask(const ptx_operand *operand, uint32_t count, uint32_t *mask) {
  uint32_t selector = operand->selector;
  *mask = selector ? 0 : (1u << count) - 1;
  if (selector && (selector >> 28 == 0xb) != (count == 4)) return false;
  for (uint32_t i = 0; selector && i < digits_of(selector); i++) {
    uint32_t element = selector >> 4 * i & 0xfu;
    if (element >= count) return false;
    *mask |= 1u << element;
  }
  return true;
}

/* --- The two kinds of form. --- */

static bool scalar_aux(const ptx_instr *instr, uint32_t *aux, uint8_t *sources) {
  const ptx_operand *operands = instr->operands;
  bool d, a, b, vmad = instr->opcode == PTX_OP_VMAD;
  uint32_t select_d, select_a, select_b;
  if (instr->operand_count < (vmad ? 4 : 3) || instr->operand_count > 4) return false;
  if (!signs_of(instr, &d, &a, &b) || !scalar_mods_allowed(instr)) return false;
  if (!scalar_selector(&operands[0], &select_d) || !scalar_selector(&operands[1], &select_a) ||
      !scalar_selector(&operands[2], &select_b))
    return false;
  uint32_t second = ptx_has(instr, PTX_MOD_ADD)   ? 1
                    : ptx_has(instr, PTX_MOD_MIN) ? 2
                    : ptx_has(instr, PTX_MOD_MAX) ? 3
                                                  : 0;
  bool has_c = instr->operand_count == 4;
  if (!vmad && has_c != (second || select_d)) return false;
  if ((second && select_d) || (vmad && select_d)) return false;
  *sources = (uint8_t)(instr->operand_count - 1);
  *aux = select_a | select_b << 3 | select_d << 6 | second << 22;
  *aux |= (d ? VIDEO_SIGNED_D : 0) | (a ? VIDEO_SIGNED_A : 0) | (b ? VIDEO_SIGNED_B : 0);
  *aux |= (ptx_has(instr, PTX_MOD_SAT) ? VIDEO_SAT : 0) | (ptx_has(instr, PTX_MOD_WRAP) ? VIDEO_WRAP : 0);
  *aux |= (has_c ? VIDEO_HAS_C : 0) | (ptx_has(instr, PTX_MOD_PO) ? VIDEO_PLUS_ONE : 0);
  *aux |= (ptx_has(instr, PTX_MOD_SHR7) ? 7u : ptx_has(instr, PTX_MOD_SHR15) ? 15u : 0) << 18;
  if (is_vset(instr->opcode)) *aux |= (uint32_t)comparison_of(instr) << 24;
  if (!vmad) return true;
  bool product = operands[1].negated != operands[2].negated, c = operands[3].negated;
  *aux |= (product ? VIDEO_NEGATED_PRODUCT : 0) | (c ? VIDEO_NEGATED_C : 0);
  return product + c + ptx_has(instr, PTX_MOD_PO) <= 1;
}

static bool packed_aux(const ptx_instr *instr, uint32_t count, uint32_t *aux, uint8_t *sources) {
  static const ptx_mod usual[] = {PTX_MOD_SAT, PTX_MOD_ADD};
  static const ptx_mod set[] = {PTX_MOD_ADD, PTX_MOD_EQ, PTX_MOD_NE, PTX_MOD_LT, PTX_MOD_LE, PTX_MOD_GT, PTX_MOD_GE};
  bool d, a, b, vset = is_vset(instr->opcode);
  uint32_t places_a, places_b, mask;
  if (instr->operand_count != 4 || !signs_of(instr, &d, &a, &b)) return false;
  if (!(vset ? comparison_of(instr) >= 0 && allowed(instr, set, sizeof set / sizeof *set) : allowed(instr, usual, 2)))
    return false;
  if (!packed_mask(&instr->operands[0], count, &mask) || !packed_selector(&instr->operands[1], count, 0, &places_a) ||
      !packed_selector(&instr->operands[2], count, count, &places_b))
    return false;
  bool sat = ptx_has(instr, PTX_MOD_SAT), add = ptx_has(instr, PTX_MOD_ADD);
  if (sat && add) return false;
  uint32_t mode = add ? VIDEO_ACCUMULATE : !sat ? VIDEO_MERGE : d ? VIDEO_MERGE_SAT_S : VIDEO_MERGE_SAT_U;
  *sources = 3;
  *aux = places_a | places_b << 12 | mask << 24 | mode << 30;
  *aux |= (a ? VIDEO_PACKED_SIGNED_A : 0) | (b ? VIDEO_PACKED_SIGNED_B : 0);
  return true;
}

bool ops_video_aux(const ptx_instr *instr, uint32_t *aux, uint8_t *sources) {
  for (int i = 1; i < instr->operand_count && instr->opcode != PTX_OP_VMAD; i++)
    if (instr->operands[i].negated) return false;
  uint32_t count = elements_of(instr->opcode);
  return count == 1 ? scalar_aux(instr, aux, sources) : packed_aux(instr, count, aux, sources);
}
