/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of tcgen05 (PTX ISA, "TensorCore 5th Generation Family Instructions").
 *
 * Everything is over when it is issued (tcgen05.c), so wait and fence do nothing; all lanes of a warp meet before the
 * instructions that are .sync.aligned. */
#include <stdio.h>
#include <string.h>

#include "exec/decode/decode.h"
#include "exec/instructions/tcgen05_mma.h"

/* ---- what the instructions have in common ---- */

static bool set_group(decoder *d, uint8_t *group) {
  bool one = ptx_has(d->instr, PTX_MOD_CTA_GROUP__1), two = ptx_has(d->instr, PTX_MOD_CTA_GROUP__2);
  if (one == two) return decode_fail(d, "tcgen05 without one .cta_group");
  *group = two ? 2 : 1;
  return true;
}

static ptx_space shared_or_generic(const ptx_instr *instr) {
  return ptx_instr_space(instr) == PTX_SPACE_SHARED ? PTX_SPACE_SHARED : PTX_SPACE_GENERIC;
}

static void meet(decoder *d) {
  exec_sync *sync = ff_arena_alloc(d->arena, sizeof *sync);
  uint32_t all = decode_constant(d, UINT32_MAX, 4);
  exec_instr *i = decode_emit(d, EXEC_FLOW_SYNC);
  sync->kind = EXEC_SYNC_WARP;
  i->run[0] = i->run[1] = d->isa->sync[EXEC_SYNC_WARP];
  i->src[3] = all;
  i->side = sync;
}

/* ---- alloc, dealloc, relinquish_alloc_permit ---- */

static bool decode_allocation(decoder *d) {
  const ptx_instr *instr = d->instr;
  exec_tensor_allocation *a = ff_arena_alloc(d->arena, sizeof *a);
  bool allocates = ptx_has(instr, PTX_MOD_ALLOC), frees = ptx_has(instr, PTX_MOD_DEALLOC);
  ptx_space space = shared_or_generic(instr);
  a->sync.kind = EXEC_SYNC_BARRIER;
  a->sync.tensor = 1;
  a->address = a->columns = EXEC_NO_OFFSET;
  a->access = *decode_new_access(d, EXEC_OP_STORE, space, PTX_B32);
  if (instr->operand_count != (allocates || frees ? 2 : 0)) return decode_fail(d, "%u operands", instr->operand_count);
  if (!set_group(d, &a->group)) return false;
  if (allocates && !decode_bulk_address(d, &instr->operands[0], space, &a->to)) return false;
  if (frees && !decode_source(d, &instr->operands[0], PTX_U32, &a->address)) return false;
  if ((allocates || frees) && !decode_source(d, &instr->operands[1], PTX_U32, &a->columns)) return false;
  meet(d);
  if (!allocates) return decode_handler(d, frees ? core_tensor_dealloc : core_tensor_relinquish, a);
  uint32_t id = decode_constant(d, EXEC_TENSOR_BARRIER, 4);
  exec_instr *i = decode_emit(d, EXEC_FLOW_BARRIER);
  i->src[0] = id;
  i->src[1] = EXEC_NO_OFFSET;
  i->side = a;
  return true;
}

/* ---- ld, st ---- */

static bool set_shape(decoder *d, exec_tensor_move *m) {
  static const struct {
    ptx_mod word;
    tcgen05_shape shape;
    uint32_t registers; /* of .x1 */
  } shapes[] = {{PTX_MOD__32X32B, TCGEN05_32X32B, 1},
                {PTX_MOD__16X64B, TCGEN05_16X64B, 1},
                {PTX_MOD__16X128B, TCGEN05_16X128B, 2},
                {PTX_MOD__16X256B, TCGEN05_16X256B, 4},
                {PTX_MOD__16X32BX2, TCGEN05_16X32BX2, 1}};
  uint32_t times = 0, registers = 0;
  for (uint32_t n = 0; n < d->instr->mod_count; n++)
    if (sscanf(ptx_mod_text((ptx_mod)d->instr->mods[n]), "x%u", &times) == 1) break;
  for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++)
    if (ptx_has(d->instr, shapes[n].word)) {
      m->shape = (uint8_t)shapes[n].shape;
      registers = shapes[n].registers * times;
    }
  if (!registers || registers > TCGEN05_REGISTERS) return decode_fail(d, "this shape of tcgen05.ld or .st");
  m->registers = (uint16_t)registers;
  return true;
}

static bool set_registers(decoder *d, const ptx_operand *operand, exec_tensor_move *m) {
  bool vector = operand->kind == PTX_OPERAND_VECTOR;
  uint32_t count = vector ? operand->element_count : 1;
  if (count != m->registers) return decode_fail(d, "%u registers, where the shape has %u", count, m->registers);
  for (uint32_t r = 0; r < count; r++) {
    const ptx_operand *element = vector ? &operand->elements[r] : operand;
    bool good = m->stores ? decode_source(d, element, PTX_B32, &m->slot[r])
                          : decode_destination(d, element, PTX_B32, &m->slot[r]);
    if (!good) return false;
  }
  return true;
}

/* .red: from .x2 on, of the shapes in which a thread has words of one lane. */
static bool set_reduction(decoder *d, exec_tensor_move *m) {
  const ptx_instr *instr = d->instr;
  ptx_type type = instr->type_count == 1 ? instr->types[0] : PTX_B32;
  bool real = type == PTX_F32, least = ptx_has(instr, PTX_MOD_MIN);
  bool shape = (m->shape == TCGEN05_32X32B || m->shape == TCGEN05_16X32BX2) && m->registers > 1 && !m->halves;
  m->is_signed = type == PTX_S32;
  m->absolute = ptx_has(instr, PTX_MOD_ABS);
  m->nan = ptx_has(instr, PTX_MOD_NAN_PROPAGATE);
  if (m->stores || !shape || (!real && type != PTX_U32 && !m->is_signed) || (!real && (m->absolute || m->nan)) ||
      least == ptx_has(instr, PTX_MOD_MAX))
    return decode_fail(d, "this form of tcgen05.ld.red");
  m->reduces = real ? (least ? EXEC_REDUX_FMIN : EXEC_REDUX_FMAX) : least ? EXEC_REDUX_MIN : EXEC_REDUX_MAX;
  return decode_destination(d, &instr->operands[1], PTX_B32, &m->reduced);
}

static bool decode_tensor_move(decoder *d, bool stores) {
  const ptx_instr *instr = d->instr;
  exec_tensor_move *m = ff_arena_alloc(d->arena, sizeof *m);
  m->stores = stores;
  m->halves = ptx_has(instr, stores ? PTX_MOD_UNPACK__16B : PTX_MOD_PACK__16B);
  if (!set_shape(d, m)) return false;
  bool split = m->shape == TCGEN05_16X32BX2, reduces = ptx_has(instr, PTX_MOD_RED);
  if (instr->operand_count != 2u + split + reduces) return decode_fail(d, "%u operands", instr->operand_count);
  if (reduces && !set_reduction(d, m)) return false;
  const ptx_operand *address = &instr->operands[stores ? 0 : 1 + reduces],
                    *registers = &instr->operands[stores ? 1 + split : 0],
                    *apart = &instr->operands[stores ? 1 : 2 + reduces];
  if (split && (apart->kind != PTX_OPERAND_INT || apart->bits >= TENSOR_COLUMNS))
    return decode_fail(d, "an offset of the second half that is no constant below 512");
  if (split) m->split = (uint32_t)apart->bits;
  if (!decode_bulk_address(d, address, PTX_SPACE_SHARED, &m->at) || !set_registers(d, registers, m)) return false;
  meet(d);
  return decode_handler(d, core_tensor_move, m);
}

/* ---- commit ---- */

static bool decode_commit(decoder *d) {
  const ptx_instr *instr = d->instr;
  exec_tensor_commit *c = ff_arena_alloc(d->arena, sizeof *c);
  bool many = ptx_has(instr, PTX_MOD_MULTICAST__CLUSTER);
  ptx_space space = shared_or_generic(instr);
  c->ranks = EXEC_NO_OFFSET;
  c->access = *decode_new_access(d, EXEC_OP_ATOMIC, space, PTX_B64);
  if (!ptx_has(instr, PTX_MOD_MBARRIER__ARRIVE__ONE) || instr->operand_count != 1u + many)
    return decode_fail(d, "this form of tcgen05.commit");
  if (!set_group(d, &c->group) || !decode_bulk_address(d, &instr->operands[0], space, &c->barrier)) return false;
  if (many && !decode_source(d, &instr->operands[1], PTX_B16, &c->ranks)) return false;
  return decode_handler(d, core_tensor_commit, c);
}

/* ---- cp, shift ---- */

static bool decode_tensor_copy(decoder *d) {
  static const struct {
    ptx_mod shape, times_word;
    uint8_t rows, chunks, spread, times;
  } shapes[] = {{PTX_MOD__128X256B, PTX_MODS, 128, 2, TCGEN05_ROWS_AS_LANES, 1},
                {PTX_MOD__128X128B, PTX_MODS, 128, 1, TCGEN05_ROWS_AS_LANES, 1},
                {PTX_MOD__4X256B, PTX_MODS, 4, 2, TCGEN05_FOUR_LANES, 1},
                {PTX_MOD__64X128B, PTX_MOD_WARPX2__02_13, 64, 1, TCGEN05_PAIRS_02_13, 2},
                {PTX_MOD__64X128B, PTX_MOD_WARPX2__01_23, 64, 1, TCGEN05_PAIRS_01_23, 2},
                {PTX_MOD__32X128B, PTX_MOD_WARPX4, 32, 1, TCGEN05_ALL_WARPS, 4}};
  const ptx_instr *instr = d->instr;
  exec_tensor_copy *c = ff_arena_alloc(d->arena, sizeof *c);
  bool four = ptx_has(instr, PTX_MOD_B4X16_P64), six = ptx_has(instr, PTX_MOD_B6X16_P32);
  if ((four || six) != ptx_has(instr, PTX_MOD_B8X16)) return decode_fail(d, "these formats of tcgen05.cp");
  c->element_bits = four ? 4 : six ? 6 : 0;
  for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++)
    if (ptx_has(instr, shapes[n].shape) && (shapes[n].times_word == PTX_MODS || ptx_has(instr, shapes[n].times_word))) {
      c->rows = shapes[n].rows;
      c->chunks = shapes[n].chunks;
      c->spread = shapes[n].spread;
      c->times = shapes[n].times;
    }
  if (!c->rows || instr->operand_count != 2) return decode_fail(d, "this form of tcgen05.cp");
  if (!set_group(d, &c->group) || !decode_bulk_address(d, &instr->operands[0], PTX_SPACE_SHARED, &c->to)) return false;
  if (!decode_source(d, &instr->operands[1], PTX_B64, &c->descriptor)) return false;
  exec_instr *i = decode_move(d, EXEC_MOVE_TENSOR_COPY);
  i->unit = EXEC_UNIT_MEMORY;
  i->side = c;
  return true;
}

static bool decode_tensor_shift(decoder *d) {
  const ptx_instr *instr = d->instr;
  exec_tensor_shift *s = ff_arena_alloc(d->arena, sizeof *s);
  if (!ptx_has(instr, PTX_MOD_DOWN) || instr->operand_count != 1) return decode_fail(d, "this form of tcgen05.shift");
  if (!set_group(d, &s->group) || !decode_bulk_address(d, &instr->operands[0], PTX_SPACE_SHARED, &s->at)) return false;
  return decode_handler(d, core_tensor_shift, s);
}

/* ---- mma ---- */

static bool set_kind(decoder *d, uint8_t *kind) {
  static const ptx_mod kinds[] = {[TCGEN05_F16] = PTX_MOD_KIND__F16,           [TCGEN05_TF32] = PTX_MOD_KIND__TF32,
                                  [TCGEN05_F8F6F4] = PTX_MOD_KIND__F8F6F4,     [TCGEN05_I8] = PTX_MOD_KIND__I8,
                                  [TCGEN05_MXF8F6F4] = PTX_MOD_KIND__MXF8F6F4, [TCGEN05_MXF4] = PTX_MOD_KIND__MXF4,
                                  [TCGEN05_MXF4NVF4] = PTX_MOD_KIND__MXF4NVF4};
  for (uint8_t n = 0; n < sizeof kinds / sizeof *kinds; n++)
    if (ptx_has(d->instr, kinds[n])) {
      *kind = n;
      return true;
    }
  return decode_fail(d, "tcgen05.mma of this kind");
}

/* .scale_vec::nX, or what .block32 and .block16 stand for; mxf8f6f4 and mxf4 need not say it. */
static bool set_scales(decoder *d, exec_tensor_mma *m) {
  const ptx_instr *instr = d->instr;
  bool bytes = m->kind == TCGEN05_MXF8F6F4, nv = m->kind == TCGEN05_MXF4NVF4;
  uint8_t usual = bytes ? 1 : 2;
  if (m->kind < TCGEN05_MXF8F6F4) return !ptx_has(instr, PTX_MOD_BLOCK_SCALE) || decode_fail(d, "factors of this kind");
  if (!ptx_has(instr, PTX_MOD_BLOCK_SCALE)) return decode_fail(d, "this kind without .block_scale");
  m->scales = ptx_has(instr, PTX_MOD_SCALE_VEC__1X)   ? 1
              : ptx_has(instr, PTX_MOD_SCALE_VEC__2X) ? 2
              : ptx_has(instr, PTX_MOD_SCALE_VEC__4X) ? 4
              : ptx_has(instr, PTX_MOD_BLOCK16)       ? 4
              : ptx_has(instr, PTX_MOD_BLOCK32)       ? usual
              : nv                                    ? 0
                                                      : usual;
  if (nv ? m->scales == 2 || m->scales == 4 : m->scales == usual) return true;
  return decode_fail(d, "this many factors of this kind");
}

/* [factors of A], [factors of B], enable-input-d */
static bool set_factors(decoder *d, exec_tensor_mma *m, uint32_t next) {
  const ptx_operand *operands = d->instr->operands;
  if (d->instr->operand_count != next + 3) return decode_fail(d, "%u operands", d->instr->operand_count);
  m->keeps_negated = operands[next + 2].negated;
  return decode_bulk_address(d, &operands[next], PTX_SPACE_SHARED, &m->a_factors) &&
         decode_bulk_address(d, &operands[next + 1], PTX_SPACE_SHARED, &m->b_factors) &&
         decode_source(d, &operands[next + 2], PTX_PRED, &m->keeps);
}

/* With .ws: enable-input-d, zero-column-mask-desc; the latter may be left out. */
static bool set_stationary(decoder *d, exec_tensor_mma *m, uint32_t next) {
  const ptx_instr *instr = d->instr;
  const ptx_operand *operand = &instr->operands[next];
  m->keeps_negated = operand->negated;
  m->zeroes = ++next < instr->operand_count;
  if (next + m->zeroes != instr->operand_count) return decode_fail(d, "these operands of tcgen05.mma.ws");
  return decode_source(d, operand, PTX_PRED, &m->keeps) &&
         (!m->zeroes || decode_source(d, &instr->operands[next], PTX_B64, &m->zero_mask));
}

/* {disable-output-lane}, enable-input-d, scale-input-d: the first and the last may be left out. */
static bool set_output(decoder *d, exec_tensor_mma *m, uint32_t next) {
  const ptx_instr *instr = d->instr;
  const ptx_operand *operand = &instr->operands[next];
  if (operand->kind == PTX_OPERAND_VECTOR) {
    m->masks = true;
    if (operand->element_count != 4u * m->group || next + 1 >= instr->operand_count)
      return decode_fail(d, "%u masks of lanes", operand->element_count);
    for (uint32_t n = 0; n < operand->element_count; n++)
      if (!decode_source(d, &operand->elements[n], PTX_B32, &m->mask[n])) return false;
    operand = &instr->operands[++next];
  }
  m->keeps_negated = operand->negated;
  if (!decode_source(d, operand, PTX_PRED, &m->keeps)) return false;
  if (++next == instr->operand_count) return true;
  operand = &instr->operands[next];
  if (operand->kind != PTX_OPERAND_INT || operand->bits > 15 || next + 1 != instr->operand_count ||
      (m->kind != TCGEN05_F16 && m->kind != TCGEN05_TF32))
    return decode_fail(d, "this scale-input-d");
  m->scale = (uint8_t)operand->bits;
  return true;
}

static bool decode_tensor_mma(decoder *d) {
  const ptx_instr *instr = d->instr;
  const ptx_operand *operands = instr->operands;
  exec_tensor_mma *m = ff_arena_alloc(d->arena, sizeof *m);
  uint32_t shift = ptx_has(instr, PTX_MOD_SP); /* behind B stands where the metadata are */
  m->sparse = shift != 0;
  m->stationary = ptx_has(instr, PTX_MOD_WS);
  if (ptx_has(instr, PTX_MOD_ASHIFT)) return decode_fail(d, "tcgen05.mma with .ashift");
  if (instr->operand_count < 5 + shift) return decode_fail(d, "%u operands", instr->operand_count);
  if (!set_group(d, &m->group) || !set_kind(d, &m->kind) || !set_scales(d, m)) return false;
  if (m->stationary && (m->group == 2 || m->scales)) return decode_fail(d, "this form of tcgen05.mma.ws");
  m->a_in_tensor = operands[1].kind == PTX_OPERAND_ADDRESS;
  if (!decode_bulk_address(d, &operands[0], PTX_SPACE_SHARED, &m->d)) return false;
  if (m->a_in_tensor ? !decode_bulk_address(d, &operands[1], PTX_SPACE_SHARED, &m->a)
                     : !decode_source(d, &operands[1], PTX_B64, &m->a_descriptor))
    return false;
  if (!decode_source(d, &operands[2], PTX_B64, &m->b_descriptor)) return false;
  if (m->sparse && !decode_bulk_address(d, &operands[3], PTX_SPACE_SHARED, &m->metadata)) return false;
  if (!decode_source(d, &operands[3 + shift], PTX_B32, &m->description)) return false;
  if (m->scales       ? !set_factors(d, m, 4 + shift)
      : m->stationary ? !set_stationary(d, m, 4 + shift)
                      : !set_output(d, m, 4 + shift))
    return false;
  exec_instr *i = decode_move(d, EXEC_MOVE_TENSOR_MMA);
  i->unit = EXEC_UNIT_MEMORY;
  i->side = m;
  return true;
}

bool decode_tcgen05(decoder *d) {
  const ptx_instr *instr = d->instr;
  if (ptx_has(instr, PTX_MOD_ALLOC) || ptx_has(instr, PTX_MOD_DEALLOC) ||
      ptx_has(instr, PTX_MOD_RELINQUISH_ALLOC_PERMIT))
    return decode_allocation(d);
  if (ptx_has(instr, PTX_MOD_LD)) return decode_tensor_move(d, false);
  if (ptx_has(instr, PTX_MOD_ST)) return decode_tensor_move(d, true);
  if (ptx_has(instr, PTX_MOD_COMMIT)) return decode_commit(d);
  if (ptx_has(instr, PTX_MOD_MMA)) return decode_tensor_mma(d);
  if (ptx_has(instr, PTX_MOD_CP)) return decode_tensor_copy(d);
  if (ptx_has(instr, PTX_MOD_SHIFT)) return decode_tensor_shift(d);
  if (ptx_has(instr, PTX_MOD_FENCE__BEFORE_THREAD_SYNC) || ptx_has(instr, PTX_MOD_FENCE__AFTER_THREAD_SYNC))
    return decode_move(d, EXEC_MOVE_NOTHING) != NULL;
  if (ptx_has(instr, PTX_MOD_WAIT__LD) || ptx_has(instr, PTX_MOD_WAIT__ST)) {
    meet(d);
    return true;
  }
  return decode_fail(d, "this form of tcgen05");
}
