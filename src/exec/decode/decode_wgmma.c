/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of wgmma (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").
 *
 * mma_async is carried out when it is issued, by each warp for its rows (wgmma.isa.c); so fence and commit_group do
 * nothing, and wait_group is where the four warps of the group meet: a warp that goes on may let others overwrite A and
 * B. */
#include <stdio.h>
#include <string.h>

#include "exec/decode/decode.h"
#include "exec/instructions/wgmma.h"

static bool shape_of(const ptx_instr *instr, uint32_t *n, uint32_t *k) {
  uint32_t m;
  for (uint32_t at = 0; at < instr->mod_count; at++)
    if (sscanf(ptx_mod_text((ptx_mod)instr->mods[at]), "m%un%uk%u", &m, n, k) == 3) return m == 64;
  return false;
}

static bool is_fp8(ptx_type type) { return type == PTX_E4M3 || type == PTX_E5M2; }
static bool is_byte(ptx_type type) { return type == PTX_S8 || type == PTX_U8; }

/* Types that go together: D, A, B. */
static bool check_types(decoder *d, const ptx_type type[3], uint32_t k, bool sparse) {
  bool half = type[0] == PTX_F16, single = type[0] == PTX_F32;
  bool good = type[1] == PTX_B1     ? type[0] == PTX_S32 && type[2] == PTX_B1
              : is_byte(type[1])    ? type[0] == PTX_S32 && is_byte(type[2])
              : is_fp8(type[1])     ? (half || single) && is_fp8(type[2])
              : type[1] == PTX_F16  ? (half || single) && type[2] == PTX_F16
              : type[1] == PTX_BF16 ? single && type[2] == PTX_BF16
              : type[1] == PTX_TF32 ? single && type[2] == PTX_TF32
                                    : false;
  if (good && k * ptx_type_bits(type[1]) == (sparse ? 16 : 8) * WGMMA_A_BYTES) return true;
  return decode_fail(d, "wgmma%s of .%s = .%s * .%s with k%u", sparse ? " with a sparse A" : "", ptx_type_text(type[0]),
                     ptx_type_text(type[1]), ptx_type_text(type[2]), k);
}

static bool set_registers(decoder *d, const ptx_operand *operand, uint32_t count, bool written, uint32_t *slots) {
  if (operand->kind != PTX_OPERAND_VECTOR || operand->element_count != count)
    return decode_fail(d, "a vector of %u registers is needed", count);
  for (uint32_t r = 0; r < count; r++) {
    const ptx_operand *element = &operand->elements[r];
    if (!(written ? decode_destination(d, element, PTX_B32, &slots[r]) : decode_source(d, element, PTX_B32, &slots[r])))
      return false;
  }
  return true;
}

/* An immediate that is one of two values; *set: it is the second. */
static bool immediate(decoder *d, uint32_t at, int64_t first, int64_t second, bool *set) {
  const ptx_operand *operand = at < d->instr->operand_count ? &d->instr->operands[at] : NULL;
  int64_t value = operand && operand->kind == PTX_OPERAND_INT ? (int64_t)operand->bits : INT64_MIN;
  if (value != first && value != second)
    return decode_fail(d, "an operand that must be %d or %d", (int)first, (int)second);
  *set = value == second;
  return true;
}

/* sp-meta and sp-sel: where the metadata of A's chunks are, and whose of a group of four lanes. Elements of 16 and 32
 * bits have eight chunks in a row, two lanes' for two rows; bytes sixteen, all four lanes'. */
static bool set_metadata(decoder *d, exec_wgmma *g, uint32_t at) {
  const ptx_instr *instr = d->instr;
  if (instr->operand_count <= at + 1) return decode_fail(d, "wgmma with a sparse A and without its metadata");
  uint32_t selectors = ptx_type_bits((ptx_type)g->a_type) >= 16 ? 2 : 1;
  const ptx_operand *selector = &instr->operands[at + 1];
  if (selector->kind != PTX_OPERAND_INT || selector->bits >= selectors)
    return decode_fail(d, "a sparsity selector that is no constant below %u", selectors);
  g->selector = (uint8_t)selector->bits;
  return decode_source(d, &instr->operands[at], PTX_B32, &g->metadata);
}

/* What stands behind the matrices: scale-d, imm-scale-a, imm-scale-b, imm-trans-a, imm-trans-b. */
static bool set_scales(decoder *d, exec_wgmma *g, uint32_t next) {
  const ptx_instr *instr = d->instr;
  bool real = g->d_type != PTX_S32, turns = g->a_type == PTX_F16 || g->a_type == PTX_BF16;
  if (instr->operand_count <= next) return decode_fail(d, "wgmma without scale-d");
  g->keeps_negated = instr->operands[next].negated;
  if (!decode_source(d, &instr->operands[next++], PTX_PRED, &g->keeps)) return false;
  if (real && (!immediate(d, next, 1, -1, &g->a_negated) || !immediate(d, next + 1, 1, -1, &g->b_negated)))
    return false;
  if (real) next += 2;
  if (turns && g->a_shared && !immediate(d, next++, 0, 1, &g->a_across)) return false;
  if (turns && !immediate(d, next++, 0, 1, &g->b_across)) return false;
  return next == instr->operand_count ? true : decode_fail(d, "%u operands", instr->operand_count);
}

static bool decode_mma_async(decoder *d) {
  const ptx_instr *instr = d->instr;
  exec_wgmma *g = ff_arena_alloc(d->arena, sizeof *g);
  uint32_t columns, depth, scales = 3;
  if (!shape_of(instr, &columns, &depth) || instr->type_count != 3 || instr->operand_count < 4)
    return decode_fail(d, "this form of wgmma");
  g->sparse = ptx_has(instr, PTX_MOD_SP);
  if (!check_types(d, instr->types, depth, g->sparse)) return false;
  if (columns % 8 || !columns || columns > WGMMA_COLUMNS) return decode_fail(d, "wgmma with n%u", columns);
  g->columns = (uint16_t)columns;
  g->depth = (uint8_t)(instr->types[1] == PTX_B1 ? depth / 32 : depth);
  g->held = g->sparse ? g->depth / 2 : g->depth;
  g->d_type = (uint8_t)instr->types[0];
  g->a_type = (uint8_t)instr->types[1];
  g->b_type = (uint8_t)instr->types[2];
  g->a_shared = instr->operands[1].kind != PTX_OPERAND_VECTOR;
  g->saturates = ptx_has(instr, PTX_MOD_SATFINITE);
  if (g->a_shared ? !decode_source(d, &instr->operands[1], PTX_B64, &g->a_descriptor)
                  : !set_registers(d, &instr->operands[1], 4, false, g->a))
    return false;
  if (!decode_source(d, &instr->operands[2], PTX_B64, &g->b_descriptor)) return false;
  if (g->sparse && !set_metadata(d, g, scales)) return false;
  if (g->sparse) scales += 2;
  if (!set_scales(d, g, scales)) return false;
  if (!set_registers(d, &instr->operands[0], columns / (g->d_type == PTX_F16 ? 4 : 2), true, g->d)) return false;
  g->sync.kind = EXEC_SYNC_WGMMA;
  exec_instr *i = decode_emit(d, EXEC_FLOW_SYNC);
  i->run[0] = i->run[1] = d->isa->sync[EXEC_SYNC_WGMMA];
  i->src[3] = decode_constant(d, UINT32_MAX, 4);
  i->side = g;
  return true;
}

static bool decode_wait_group(decoder *d) {
  exec_sync *sync = ff_arena_alloc(d->arena, sizeof *sync);
  sync->kind = EXEC_SYNC_BARRIER;
  sync->mode = EXEC_BARRIER_SYNC;
  sync->group = 1;
  uint32_t id = decode_constant(d, EXEC_GROUP_BARRIER, 4), threads = decode_constant(d, 4 * EXEC_LANES, 4);
  exec_instr *i = decode_emit(d, EXEC_FLOW_BARRIER);
  i->src[0] = id;
  i->src[1] = threads;
  i->side = sync;
  return true;
}

bool decode_wgmma(decoder *d) {
  if (ptx_has(d->instr, PTX_MOD_MMA_ASYNC)) return decode_mma_async(d);
  if (ptx_has(d->instr, PTX_MOD_WAIT_GROUP)) return decode_wait_group(d);
  return decode_move(d, EXEC_MOVE_NOTHING) != NULL; /* fence, commit_group */
}
