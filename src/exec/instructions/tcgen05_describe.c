/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction descriptors of tcgen05.mma (PTX ISA, "Instruction descriptor", "Matrix Shape"): what one says, and
 * whether the manual defines it; and zero-column mask descriptors. */
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
      [TCGEN05_I8] = {[0] = PTX_U8, [1] = PTX_S8},
      [TCGEN05_MXF8F6F4] = {[0] = PTX_E4M3, [1] = PTX_E5M2, [3] = PTX_E2M3, [4] = PTX_E3M2, [5] = PTX_E2M1},
      [TCGEN05_MXF4] = {[1] = PTX_E2M1},
      [TCGEN05_MXF4NVF4] = {[1] = PTX_E2M1}};
  return (ptx_type)types[kind][number];
}

static ptx_type sum_type(tcgen05_kind kind, uint32_t number) {
  if (kind == TCGEN05_I8) return number == 2 ? PTX_S32 : PTX_TYPE_NONE;
  if (number == 1) return PTX_F32;
  return number == 0 && kind != TCGEN05_TF32 ? PTX_F16 : PTX_TYPE_NONE;
}

/* Why the descriptor is not good; NULL: it is. */
static const char *objection(const exec_tensor_mma *m, uint32_t bits, const tcgen05_description *d) {
  tcgen05_kind kind = (tcgen05_kind)m->kind;
  bool integer = kind == TCGEN05_I8, steps = integer && d->columns > 32;
  if (field(bits, 2, 1) != m->sparse) return m->sparse ? "it says that A is dense" : "it says that A is sparse";
  bool selects = m->sparse && (kind == TCGEN05_F16 || kind == TCGEN05_TF32);
  if ((field(bits, 0, 2) && !selects) || field(bits, 6, 1) || field(bits, 23, 1) ||
      field(bits, 29, m->stationary ? 1 : 3))
    return "a reserved bit is set";
  if (!d->a_type || !d->b_type || !d->d_type) return "it has a type that this kind does not have";
  if (d->d_type == PTX_F16 && (d->a_type == PTX_BF16 || d->b_type == PTX_BF16)) return "D is f16, A or B bf16";
  if (kind == TCGEN05_F16 && d->a_type != d->b_type) return "A and B have different types";
  if (d->saturates && !integer) return "only integers saturate";
  if (integer && (d->a_negated || d->b_negated)) return "integers are not negated";
  if (m->stationary && d->rows != 32 && d->rows != 64 && d->rows != 128) return "M is not 32, 64 or 128";
  if (m->stationary && d->columns != 64 && d->columns != 128 && d->columns != 256) return "N is not 64, 128 or 256";
  if (m->stationary && m->a_in_tensor && d->rows != 128) return "A is in tensor memory, and M not 128";
  if (!m->stationary && m->group == 1 && d->rows != 64 && d->rows != 128) return "M is not 64 or 128";
  if (m->group == 2 && d->rows != 128 && d->rows != 256) return "M is not 128 or 256";
  if (m->group == 2 && d->columns % (integer ? 32 : 16)) return "N is none of those that two blocks have";
  if (!d->columns || d->columns > TCGEN05_COLUMNS || (steps && d->columns % 16))
    return "N is none of those that this kind has";
  if (d->a_across && ptx_type_bits((ptx_type)d->a_type) < 8) return "A of less than 8 bits is transposed";
  if (d->b_across && ptx_type_bits((ptx_type)d->b_type) < 8) return "B of less than 8 bits is transposed";
  if (d->b_across && ptx_type_bits((ptx_type)d->b_type) == 8 && d->columns % (16 * m->group))
    return "B of 8 bits is transposed, and N no multiple of 16";
  return NULL;
}

/* The same of a kind with factors. */
static const char *objection_to_factors(const exec_tensor_mma *m, uint32_t bits, const tcgen05_description *d) {
  bool bytes = m->kind == TCGEN05_MXF8F6F4, nv = m->kind == TCGEN05_MXF4NVF4;
  if (field(bits, 2, 1) != m->sparse) return m->sparse ? "it says that A is dense" : "it says that A is sparse";
  if (field(bits, 31, 1)) return bytes ? "a reserved bit is set" : "K of 96 is sm_103a's";
  if (field(bits, 0, 2) || field(bits, 3, 1) || field(bits, 6, 1) || field(bits, 24, 3)) return "a reserved bit is set";
  if (!d->a_type || !d->b_type) return "it has a type that this kind does not have";
  if (d->factor_type == PTX_UE4M3 && !(nv && m->scales == 4)) return "factors of ue4m3 are mxf4nvf4's, four to a row";
  if (d->a_factor % m->scales || d->b_factor % m->scales) return "the factors begin inside others";
  if (d->rows != 128u * m->group) return m->group == 1 ? "M is not 128" : "M is not 256";
  if (m->group == 2 && d->columns % 16) return "N is none of those that two blocks have";
  if (!d->columns || d->columns > TCGEN05_COLUMNS) return "N is none of those that this kind has";
  if ((d->a_across && ptx_type_bits((ptx_type)d->a_type) < 8) ||
      (d->b_across && ptx_type_bits((ptx_type)d->b_type) < 8))
    return "a matrix of less than 8 bits is transposed";
  if (d->b_across && d->columns % (16 * m->group)) return "B of 8 bits is transposed, and N no multiple of 16";
  return NULL;
}

static tcgen05_description take_apart(const exec_tensor_mma *m, uint32_t bits) {
  tcgen05_kind kind = (tcgen05_kind)m->kind;
  bool scaled = kind >= TCGEN05_MXF8F6F4, tiny = kind > TCGEN05_MXF8F6F4;
  tcgen05_description d = {.columns = field(bits, 17, 6) << 3,
                           .a_type = (uint8_t)factor_type(kind, field(bits, 7, 3)),
                           .b_type = (uint8_t)factor_type(kind, field(bits, 10, 3)),
                           .a_negated = field(bits, 13, 1) != 0,
                           .b_negated = field(bits, 14, 1) != 0,
                           .a_across = field(bits, 15, 1) != 0,
                           .b_across = field(bits, 16, 1) != 0};
  d.depth = kind == TCGEN05_F16 ? 16 : kind == TCGEN05_TF32 ? 8 : tiny ? 64 : 32;
  if (m->sparse) d.depth *= 2;
  d.shift = m->stationary && field(bits, 30, 2) ? (uint8_t)(4u << field(bits, 30, 2)) : 0;
  if (!scaled) {
    d.selector = m->sparse ? (uint8_t)field(bits, 0, 2) : 0;
    d.rows = field(bits, 24, 5) << 4;
    d.d_type = (uint8_t)sum_type(kind, field(bits, 4, 2));
    d.saturates = field(bits, 3, 1) != 0;
    return d;
  }
  d.rows = field(bits, 27, 2) << 7;
  d.d_type = PTX_F32;
  d.factor_type = field(bits, 23, 1) ? PTX_UE8M0 : PTX_UE4M3;
  d.a_factor = (uint8_t)field(bits, 29, 2);
  d.b_factor = (uint8_t)field(bits, 4, 2);
  return d;
}

tcgen05_description core_tensor_describe(core_warp *w, const exec_instr *i, uint32_t lane, uint32_t bits) {
  const exec_tensor_mma *m = i->side;
  tcgen05_description d = take_apart(m, bits);
  const char *why = m->scales ? objection_to_factors(m, bits, &d) : objection(m, bits, &d);
  if (why)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0, "the instruction descriptor is 0x%08x: %s (M %u, N %u)",
               bits, why, d.rows, d.columns);
  if (m->sparse && ((!m->stationary && d.rows / m->group != 128) || d.selector > 1))
    core_fault(
        w, i, lane, EXEC_FAULT_UNSUPPORTED, 0,
        "not supported: .sp with M %u, or with a sparsity selector of %u (M of 128 for each block, and 0 or 1, are)",
        d.rows, d.selector);
  if (m->a_in_tensor && d.a_across)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
               "the instruction descriptor is 0x%08x: A is transposed, and in tensor memory", bits);
  return d;
}

/* ---- zero-column masks ---- */

/* The mask of a part of the columns: `used` columns of B, then `zero` of zeros, and so on, or the zeros first; of that
 * the first `start` are left out. The manual's table has the names of the two spans exchanged, its examples tell. */
static bool is_zero(uint32_t column, uint32_t start, bool zeros_first, uint32_t zero, uint32_t used) {
  uint32_t at = (column + start) % (zero + used);
  return zeros_first ? at < zero : at >= used;
}

tcgen05_zero_mask core_tensor_zero_mask(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t bits,
                                        const tcgen05_description *d) {
  tcgen05_zero_mask mask = {.shift = (uint32_t)(bits >> 56 & 63)};
  uint32_t zero = (uint32_t)(bits >> 40 & 255) + 1, used = (uint32_t)(bits >> 48 & 255) + 1, parts = 128 / d->rows,
           width = d->columns / parts, most = d->rows == 32 ? 16 : TCGEN05_COLUMN_SHIFT;
  const char *why = bits >> 36 & 7 || bits >> 62 ? "a reserved bit is set"
                    : mask.shift > most          ? "it shifts further than M allows"
                    : mask.shift > d->shift      ? "it shifts further than the instruction descriptor says"
                                                 : NULL;
  if (why)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0, "the zero-column mask descriptor is 0x%016llx: %s",
               (unsigned long long)bits, why);
  if (!(bits >> 39 & 1)) return mask;
  for (uint32_t part = 0; part < parts; part++) {
    uint32_t start = (uint32_t)(bits >> (8 * part) & 255);
    bool zeros_first = (bits >> (32 + part) & 1) != 0;
    if (start >= (zeros_first ? zero : used))
      core_fault(w, i, lane, EXEC_FAULT_UNSUPPORTED, 0,
                 "not supported: a zero-column mask that leaves out its first span (0x%016llx, part %u)",
                 (unsigned long long)bits, part);
    for (uint32_t n = 0; n < width; n++)
      if (is_zero(n, start, zeros_first, zero, used))
        mask.zero[(part * width + n) / 64] |= UINT64_C(1) << (part * width + n) % 64;
  }
  return mask;
}
