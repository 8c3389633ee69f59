/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction descriptors of tcgen05.mma (PTX ISA, "Instruction descriptor", "Matrix Shape"): what one says, and
 * whether the manual defines it. */
#include "exec/instructions/tcgen05_mma.h"
#include "exec/launch/fault.h"
#include "ptx/ir.h"

static uint32_t field(uint32_t bits, uint32_t first, uint32_t count) { return bits >> first & ((1u << count) - 1); }

/* The type that a number means for the kind; PTX_TYPE_NONE: none. */
static ptx_type factor_type(tcgen05_kind kind, uint32_t number) {
  static const uint8_t types[][8] = {
      [TCGEN05_F16] = {[0] = PTX_F16, [1] = PTX_BF16},
      [TCGEN05_TF32] = {[2] = PTX_TF32},
      [TCGEN05_F8F6F4] = {[0] = PTX_E4M3, [1] = PTX_E5M2, [3] = PTX_E2M3, [4] = PTX_E3M2, [5] = PTX_E2M1},
      [TCGEN05_I8] = {[0] = PTX_U8, [1] = PTX_S8}};
  return (ptx_type)types[kind][number];
}

static ptx_type sum_type(tcgen05_kind kind, uint32_t number) {
  if (kind == TCGEN05_I8) return number == 2 ? PTX_S32 : PTX_TYPE_NONE;
  if (number == 1) return PTX_F32;
  return number == 0 && kind != TCGEN05_TF32 ? PTX_F16 : PTX_TYPE_NONE;
}

/* Why the descriptor is not good; NULL: it is. */
static const char *objection(tcgen05_kind kind, uint32_t bits, const tcgen05_description *d) {
  bool integer = kind == TCGEN05_I8, steps = integer && d->columns > 32;
  if (field(bits, 2, 1)) return "it says that A is sparse";
  if (field(bits, 0, 2) || field(bits, 6, 1) || field(bits, 23, 1) || field(bits, 29, 3))
    return "a reserved bit is set";
  if (!d->a_type || !d->b_type || !d->d_type) return "it has a type that this kind does not have";
  if (d->d_type == PTX_F16 && (d->a_type == PTX_BF16 || d->b_type == PTX_BF16)) return "D is f16, A or B bf16";
  if (kind == TCGEN05_F16 && d->a_type != d->b_type) return "A and B have different types";
  if (d->saturates && !integer) return "only integers saturate";
  if (integer && (d->a_negated || d->b_negated)) return "integers are not negated";
  if (d->rows != 64 && d->rows != 128) return "M is not 64 or 128";
  if (!d->columns || d->columns > TCGEN05_COLUMNS || (steps && d->columns % 16))
    return "N is none of those that this kind has";
  if (d->a_across && ptx_type_bits((ptx_type)d->a_type) < 8) return "A of less than 8 bits is transposed";
  if (d->b_across && ptx_type_bits((ptx_type)d->b_type) < 8) return "B of less than 8 bits is transposed";
  if (d->b_across && ptx_type_bits((ptx_type)d->b_type) == 8 && d->columns % 16)
    return "B of 8 bits is transposed, and N no multiple of 16";
  return NULL;
}

tcgen05_description core_tensor_describe(core_warp *w, const exec_instr *i, uint32_t lane, uint32_t bits) {
  const exec_tensor_mma *m = i->side;
  tcgen05_kind kind = (tcgen05_kind)m->kind;
  tcgen05_description d = {.rows = field(bits, 24, 5) << 4,
                           .columns = field(bits, 17, 6) << 3,
                           .a_type = (uint8_t)factor_type(kind, field(bits, 7, 3)),
                           .b_type = (uint8_t)factor_type(kind, field(bits, 10, 3)),
                           .d_type = (uint8_t)sum_type(kind, field(bits, 4, 2)),
                           .saturates = field(bits, 3, 1) != 0,
                           .a_negated = field(bits, 13, 1) != 0,
                           .b_negated = field(bits, 14, 1) != 0,
                           .a_across = field(bits, 15, 1) != 0,
                           .b_across = field(bits, 16, 1) != 0};
  d.depth = kind == TCGEN05_F16 ? 16 : kind == TCGEN05_TF32 ? 8 : 32;
  const char *why = objection(kind, bits, &d);
  if (why)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0, "the instruction descriptor is 0x%08x: %s (M %u, N %u)",
               bits, why, d.rows, d.columns);
  if (m->a_in_tensor && d.a_across)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
               "the instruction descriptor is 0x%08x: A is transposed, and in tensor memory", bits);
  return d;
}
