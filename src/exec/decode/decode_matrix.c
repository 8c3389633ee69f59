/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of wmma, mma, ldmatrix, stmatrix and movmatrix (PTX ISA, "Warp-level matrix instructions").
 *
 * A load or store of a fragment is decoded into its steps: the lanes synchronise, every lane computes its addresses,
 * and ordinary accesses move the elements, so that bounds, the access stream and everything else about memory hold as
 * for ld and st. All addresses are computed before the first access: a destination may be the register of the address.
 * A product is one instruction, at which all lanes synchronise (matrix.isa.c). */
#include <stdio.h>
#include <string.h>

#include "exec/decode/decode.h"
#include "exec/instructions/matrix.h"

/* ---- what the instruction says ---- */

typedef struct shape {
  uint32_t m, n, k;
} shape;

static bool shape_of(decoder *d, shape *s) {
  for (uint32_t n = 0; n < d->instr->mod_count; n++)
    if (sscanf(ptx_mod_text((ptx_mod)d->instr->mods[n]), "m%un%uk%u", &s->m, &s->n, &s->k) == 3) return true;
  return decode_fail(d, "no shape");
}

/* The n-th of .row and .col; true: .col. */
static bool is_column(const ptx_instr *instr, uint32_t n) {
  for (uint32_t k = 0; k < instr->mod_count; k++) {
    if (instr->mods[k] != PTX_MOD_ROW && instr->mods[k] != PTX_MOD_COL) continue;
    if (!n--) return instr->mods[k] == PTX_MOD_COL;
  }
  return false;
}

/* ---- fragments ---- */

/* What an element takes in a register: four and six bits have a byte, but where all are of four. */
static uint32_t held_bits(const decoder *d, ptx_type type) {
  bool dense = ptx_has(d->instr, PTX_MOD_KIND__MXF4) || ptx_has(d->instr, PTX_MOD_KIND__MXF4NVF4);
  if (type == PTX_B1) return 32; /* as words */
  if (type == PTX_E2M3 || type == PTX_E3M2 || (type == PTX_E2M1 && !dense)) return 8;
  return ptx_type_bits(type);
}

/* The layout of a fragment; whole: f16 multiplicands of wmma have eight registers whatever they hold. */
static bool describe(decoder *d, exec_fragment *f, ptx_type type, uint32_t rows, uint32_t columns, bool accumulator,
                     bool whole) {
  uint32_t bits = held_bits(d, type);
  if (type == PTX_B1) columns /= 32;
  uint32_t packed = bits < 32 ? 32 / bits : 1, run = accumulator ? 2 : packed;
  if (rows % 8 || !columns || columns % (4 * run) || rows * columns > MATRIX_ELEMENTS || bits < 4)
    return decode_fail(d, "this shape with .%s", ptx_type_text(type));
  uint32_t distinct = rows * columns / EXEC_LANES / packed,
           registers = whole && type == PTX_F16 ? MATRIX_REGISTERS : distinct;
  if (!distinct || distinct > MATRIX_REGISTERS) return decode_fail(d, "this shape with .%s", ptx_type_text(type));
  *f = (exec_fragment){.type = (uint8_t)type,
                       .registers = (uint8_t)registers,
                       .distinct = (uint8_t)distinct,
                       .packed = (uint8_t)packed,
                       .run = (uint8_t)run,
                       .rows = (uint8_t)rows,
                       .columns = (uint8_t)columns};
  return true;
}

/* The registers of an operand: {a, b, ...}, or one alone. */
static bool registers_of(decoder *d, const ptx_operand *operand, exec_fragment *f, bool written) {
  bool vector = operand->kind == PTX_OPERAND_VECTOR;
  uint32_t count = vector ? operand->element_count : 1;
  ptx_type type = ptx_type_bits((ptx_type)f->type) == 64 ? PTX_B64 : PTX_B32;
  if (count != f->registers) return decode_fail(d, "%u registers for a fragment of %u", count, f->registers);
  for (uint32_t r = 0; r < count; r++) {
    const ptx_operand *element = vector ? &operand->elements[r] : operand;
    if (!(written ? decode_destination(d, element, type, &f->slot[r]) : decode_source(d, element, type, &f->slot[r])))
      return false;
  }
  return true;
}

/* All lanes that have not exited synchronise here. */
static exec_instr *emit_meeting(decoder *d, exec_sync_kind kind, exec_sync *sync) {
  uint32_t all = decode_constant(d, UINT32_MAX, 4);
  exec_instr *i = decode_emit(d, EXEC_FLOW_SYNC);
  sync->kind = (uint8_t)kind;
  i->run[0] = i->run[1] = d->isa->sync[kind];
  i->src[3] = all;
  i->side = sync;
  return i;
}

static void meet(decoder *d) { emit_meeting(d, EXEC_SYNC_WARP, ff_arena_alloc(d->arena, sizeof(exec_sync))); }

/* ---- accesses to parts of registers ---- */

typedef struct fragment_access { /* what every access of one instruction has in common */
  exec_op op;
  ptx_space space;
  bool wide;
  int64_t add;
  uint32_t base, stride; /* stride: in elements; a slot */
} fragment_access;

/* Moves `bytes` at `address` (a slot) to or from bits `shift` and up of a register, or of `count` whole registers. */
static void emit_element(decoder *d, const fragment_access *f, uint32_t address, uint32_t bytes, const uint32_t *slot,
                         uint32_t count, uint32_t shift, uint32_t load_number) {
  exec_access *a = decode_new_access(d, f->op, f->space,
                                     bytes == 8   ? PTX_B64
                                     : bytes == 4 ? PTX_B32
                                     : bytes == 2 ? PTX_B16
                                                  : PTX_B8);
  a->elements = (uint8_t)count;
  a->slot_bytes = bytes == 8 ? 8 : 4;
  a->log2_total = (uint8_t)__builtin_ctz(bytes * count);
  memcpy(a->data, slot, count * sizeof *slot);
  a->load[0] = load_number;
  bool part = bytes < 4;
  uint32_t mark = d->temps, part_slot = part ? decode_temp(d) : 0;
  if (part) a->data[0] = part_slot;
  if (part && f->op == EXEC_OP_STORE) {
    exec_instr *i = decode_move(d, EXEC_MOVE_EXTRACT);
    i->dst = part_slot;
    i->src[0] = slot[0];
    i->aux = shift | bytes * 8 << 8;
  }
  decode_emit_access(d, a, address, f->wide, f->add);
  if (part && f->op == EXEC_OP_LOAD) {
    exec_instr *i = decode_move(d, EXEC_MOVE_INSERT);
    i->dst = slot[0];
    i->src[0] = part_slot;
    i->aux = shift | bytes * 8 << 8;
  }
  d->temps = mark;
}

static uint32_t load_number_of(const decoder *d, const ptx_operand *operand, uint32_t r) {
  const ptx_operand *element = operand->kind == PTX_OPERAND_VECTOR ? &operand->elements[r] : operand;
  return element->kind == PTX_OPERAND_REG ? d->load_number[element->reg] : EXEC_NO_OFFSET;
}

static bool address_of(decoder *d, const ptx_operand *operand, fragment_access *f) {
  f->space = ptx_instr_space(d->instr);
  if (f->space != PTX_SPACE_GENERIC && f->space != PTX_SPACE_GLOBAL && f->space != PTX_SPACE_SHARED)
    return decode_fail(d, "an access to this state space");
  if (!decode_address(d, operand, f->space, &f->base, &f->wide, &f->add)) return false;
  return f->wide || f->space == PTX_SPACE_SHARED ? true : decode_fail(d, "a 32-bit address in a 64-bit space");
}

/* ---- wmma.load, wmma.store ---- */

/* Of one element as it is moved: single bits go in words. */
static uint32_t memory_bits(const exec_fragment *fragment) {
  return fragment->type == PTX_B1 ? 32 : ptx_type_bits((ptx_type)fragment->type);
}

static uint32_t emit_place(decoder *d, const fragment_access *f, const exec_fragment *fragment, uint32_t at,
                           bool across) {
  exec_place_of_element *place = ff_arena_alloc(d->arena, sizeof *place);
  uint32_t temp = decode_temp(d);
  *place = (exec_place_of_element){.tile = exec_tile_of(fragment, at),
                                   .run = fragment->run,
                                   .bits = memory_bits(fragment),
                                   .stride_bits = ptx_type_bits((ptx_type)fragment->type),
                                   .across = across,
                                   .wide = f->wide};
  exec_instr *i = decode_move(d, EXEC_MOVE_MATRIX_ADDRESS);
  i->dst = temp;
  i->src[0] = f->base;
  i->src[1] = f->stride;
  i->side = place;
  return temp;
}

/* across: neighbours of a row of the fragment are not neighbours in memory. */
static bool move_fragment(decoder *d, const fragment_access *f, const exec_fragment *fragment,
                          const ptx_operand *registers, bool across) {
  uint32_t bits = memory_bits(fragment), held = fragment->distinct * fragment->packed;
  uint32_t step = across ? 1 : fragment->run, address[MATRIX_REGISTERS * 8];
  if (across && bits < 8) return decode_fail(d, "this layout with .%s", ptx_type_text((ptx_type)fragment->type));
  meet(d);
  for (uint32_t at = 0; at < held; at += step) address[at / step] = emit_place(d, f, fragment, at, across);
  for (uint32_t at = 0; at < held; at += step) {
    uint32_t r = at / fragment->packed, bytes = bits * step / 8, whole = bits < 32 ? 4 : bits / 8,
             count = bytes > whole ? bytes / whole : 1;
    emit_element(d, f, address[at / step], bytes / count, &fragment->slot[r], count, at % fragment->packed * bits,
                 load_number_of(d, registers, r));
  }
  for (uint32_t r = fragment->distinct; f->op == EXEC_OP_LOAD && r < fragment->registers; r++) {
    exec_instr *i = decode_move(d, EXEC_MOVE_COPY32);
    i->dst = fragment->slot[r];
    i->src[0] = fragment->slot[r % fragment->distinct];
  }
  return true;
}

/* wmma.load.{a,b,c} r, [p]{, stride}; wmma.store.d [p], r{, stride} */
static bool decode_wmma_access(decoder *d, bool load) {
  const ptx_instr *instr = d->instr;
  const ptx_operand *registers = &instr->operands[load ? 0 : 1], *address = &instr->operands[load ? 1 : 0];
  bool a = load && ptx_has(instr, PTX_MOD_A), b = load && ptx_has(instr, PTX_MOD_B), column = is_column(instr, 0),
       multiplicand = a || b;
  fragment_access f = {.op = load ? EXEC_OP_LOAD : EXEC_OP_STORE};
  exec_fragment fragment;
  shape s;
  if (!instr->type_count || instr->operand_count < 2) return decode_fail(d, "this form of wmma");
  if (!shape_of(d, &s) ||
      !describe(d, &fragment, instr->types[0], b ? s.n : s.m, multiplicand ? s.k : s.n, !multiplicand, multiplicand))
    return false;
  if (!address_of(d, address, &f)) return false;
  /* without a stride: rows or columns follow one another */
  uint32_t rows = b ? s.k : s.m, columns = multiplicand && a ? s.k : s.n;
  if (instr->operand_count < 3) f.stride = decode_constant(d, column ? rows : columns, 4);
  else if (!decode_source(d, &instr->operands[2], PTX_U32, &f.stride)) return false;
  if (!registers_of(d, registers, &fragment, load)) return false;
  bool across = b ? !column : column; /* B is seen transposed */
  return move_fragment(d, &f, &fragment, registers, across);
}

/* ---- wmma.mma, mma ---- */

static bool types_of(decoder *d, ptx_type type[4]) {
  const ptx_instr *instr = d->instr;
  if (instr->opcode == PTX_OP_WMMA && instr->type_count == 2) { /* .dtype.ctype: of f16 */
    type[0] = instr->types[0];
    type[1] = type[2] = PTX_F16;
    type[3] = instr->types[1];
    return true;
  }
  if (instr->type_count != (ptx_has(instr, PTX_MOD_BLOCK_SCALE) ? 5 : 4))
    return decode_fail(d, "%u types", instr->type_count);
  memcpy(type, instr->types, 4 * sizeof *type);
  return true;
}

static bool is_integer(ptx_type type) {
  return type == PTX_U8 || type == PTX_S8 || type == PTX_U4 || type == PTX_S4 || type == PTX_B1;
}
static bool is_short_real(ptx_type type) {
  return type == PTX_F16 || type == PTX_BF16 || type == PTX_TF32 || type == PTX_E4M3 || type == PTX_E5M2;
}
/* Of .kind::f8f6f4, and the like with scales. */
static bool is_tiny_real(ptx_type type) {
  return type == PTX_E4M3 || type == PTX_E5M2 || type == PTX_E2M1 || type == PTX_E2M3 || type == PTX_E3M2;
}

static bool of_any_kind(const ptx_instr *instr) {
  return ptx_has(instr, PTX_MOD_KIND__F8F6F4) || ptx_has(instr, PTX_MOD_BLOCK_SCALE);
}

static bool check_types(decoder *d, const ptx_type type[4]) {
  bool good;
  if (is_integer(type[1]))
    good = is_integer(type[2]) && ptx_type_bits(type[1]) == ptx_type_bits(type[2]) && type[0] == PTX_S32 &&
           type[3] == PTX_S32;
  else if (type[1] == PTX_F64) good = type[0] == PTX_F64 && type[2] == PTX_F64 && type[3] == PTX_F64;
  else
    good = (of_any_kind(d->instr) ? is_tiny_real(type[1]) && is_tiny_real(type[2])
                                  : is_short_real(type[1]) && ptx_type_bits(type[1]) == ptx_type_bits(type[2])) &&
           (type[0] == PTX_F16 || type[0] == PTX_F32) && (type[3] == PTX_F16 || type[3] == PTX_F32);
  return good ? true
              : decode_fail(d, ".%s = .%s * .%s + .%s", ptx_type_text(type[0]), ptx_type_text(type[1]),
                            ptx_type_text(type[2]), ptx_type_text(type[3]));
}

/* mma.m8n8k4 with f16: four registers fewer rules (PTX ISA, "Matrix Fragments for mma.m8n8k4"). */
static void describe_quad(exec_matrix *m, const ptx_type type[4]) {
  m->a = m->b =
      (exec_fragment){.type = PTX_F16, .registers = 2, .distinct = 2, .packed = 2, .run = 2, .rows = 8, .columns = 4};
  exec_fragment *accumulators[2] = {&m->d, &m->c};
  for (uint32_t n = 0; n < 2; n++) {
    ptx_type of = n ? type[3] : type[0];
    uint8_t packed = of == PTX_F16 ? 2 : 1;
    *accumulators[n] = (exec_fragment){.type = (uint8_t)of,
                                       .registers = 8 / packed,
                                       .distinct = 8 / packed,
                                       .packed = packed,
                                       .run = 2,
                                       .rows = 8,
                                       .columns = 8};
  }
}

/* mma.sp d, a, b, c, e, f: where the metadata of A's chunks are (e), and whose of a group of four lanes (f). */
static bool describe_sparse(decoder *d, exec_matrix *m, const shape *s, ptx_type type) {
  const ptx_instr *instr = d->instr;
  uint32_t bits = type == PTX_B1 ? 1 : held_bits(d, type),
           chunk = type == PTX_TF32 ? 2
                   : bits == 4      ? 8
                                    : 4,
           chunks = s->k / chunk;
  bool large = bits >= 16, small = bits == 8 || bits == 4;
  uint32_t fewest = is_tiny_real(type) ? 16 : large ? 4 : 8, most = large ? 8 : 16;
  if ((!large && !small) || type == PTX_F64 || s->m != 16 || s->n != 8 || s->k % chunk ||
      (chunks != fewest && chunks != most))
    return decode_fail(d, "this sparse shape with .%s", ptx_type_text(type));
  uint32_t lanes = chunks == 4 ? 1 : chunks == 8 ? 2 : 4; /* of four that hold metadata */
  const ptx_operand *selector = &instr->operands[5];
  if (selector->kind != PTX_OPERAND_INT || selector->bits >= 4 / lanes)
    return decode_fail(d, "a sparsity selector that is no constant below %u", 4 / lanes);
  m->chunks = (uint8_t)chunks;
  m->selector = (uint8_t)selector->bits;
  return decode_source(d, &instr->operands[4], PTX_B32, &m->metadata);
}

/* data, {byte, thread}; threads: of four, between which `thread` chooses. */
static bool scale_operands(decoder *d, const ptx_operand *operand, uint32_t scales, uint32_t threads,
                           exec_scale *scale) {
  const ptx_operand *selector = &operand[1];
  if (selector->kind != PTX_OPERAND_VECTOR || selector->element_count != 2)
    return decode_fail(d, "a selector of scales that is not {byte, thread}");
  const ptx_operand *byte = &selector->elements[0], *thread = &selector->elements[1];
  if (byte->kind == PTX_OPERAND_INT && (byte->bits > 3 || byte->bits % scales))
    return decode_fail(d, "scales from byte %u on", (unsigned)byte->bits);
  if (thread->kind == PTX_OPERAND_INT && thread->bits >= threads)
    return decode_fail(d, "scales of thread %u, of %u", (unsigned)thread->bits, threads);
  return decode_source(d, &operand[0], PTX_B32, &scale->data) &&
         decode_source(d, &selector->elements[0], PTX_U16, &scale->byte) &&
         decode_source(d, &selector->elements[1], PTX_U16, &scale->thread);
}

/* .kind, .scale_vec and the scales' type, as the manual's table of valid combinations has them; f32 = ... + f32. */
static bool describe_scales(decoder *d, exec_matrix *m, const shape *s, const ptx_type type[4]) {
  const ptx_instr *instr = d->instr;
  uint32_t first = m->chunks ? 6 : 4, depth = m->chunks ? 2 : 1; /* of sparse A, twice the columns */
  bool mxf8 = ptx_has(instr, PTX_MOD_KIND__MXF8F6F4), mxf4 = ptx_has(instr, PTX_MOD_KIND__MXF4),
       nvf4 = ptx_has(instr, PTX_MOD_KIND__MXF4NVF4), fours = type[1] == PTX_E2M1 && type[2] == PTX_E2M1;
  uint32_t scales = ptx_has(instr, PTX_MOD_SCALE_VEC__1X)   ? 1
                    : ptx_has(instr, PTX_MOD_SCALE_VEC__2X) ? 2
                    : ptx_has(instr, PTX_MOD_SCALE_VEC__4X) ? 4
                    : mxf8                                  ? 1
                    : mxf4                                  ? 2
                                                            : 0;
  ptx_type of = instr->types[4];
  bool good = mxf8   ? scales == 1 && of == PTX_UE8M0
              : mxf4 ? fours && scales == 2 && of == PTX_UE8M0
                     : nvf4 && fours && ((scales == 4 && of == PTX_UE4M3) || (scales > 1 && of == PTX_UE8M0));
  if (!good || s->m != 16 || s->n != 8 || s->k != (mxf8 ? 32 : 64) * depth || type[0] != PTX_F32 || type[3] != PTX_F32)
    return decode_fail(d, "these types and scales");
  m->scales = (uint8_t)scales;
  m->scale_type = (uint8_t)of;
  return scale_operands(d, &instr->operands[first], scales, 2, &m->scale_a) &&
         scale_operands(d, &instr->operands[first + 2], scales, 4, &m->scale_b);
}

static bool decode_mma(decoder *d) {
  const ptx_instr *instr = d->instr;
  bool wmma = instr->opcode == PTX_OP_WMMA;
  exec_matrix *m = ff_arena_alloc(d->arena, sizeof *m);
  shape s;
  ptx_type type[4];
  bool sparse = ptx_has(instr, PTX_MOD_SP) || ptx_has(instr, PTX_MOD_SP__ORDERED_METADATA);
  bool scaled = ptx_has(instr, PTX_MOD_BLOCK_SCALE);
  if (instr->operand_count != 4u + (sparse ? 2 : 0) + (scaled ? 4 : 0))
    return decode_fail(d, "%u operands", instr->operand_count);
  if (!shape_of(d, &s) || !types_of(d, type) || !check_types(d, type)) return false;
  if (ptx_has(instr, PTX_MOD_KIND__F8F6F4) && (s.m != 16 || s.n != 8 || s.k != (sparse ? 64 : 32)))
    return decode_fail(d, ".kind::f8f6f4 of m%un%uk%u", s.m, s.n, s.k);
  if (type[1] == PTX_F64 && (ptx_has(instr, PTX_MOD_RZ) || ptx_has(instr, PTX_MOD_RM) || ptx_has(instr, PTX_MOD_RP)))
    return decode_fail(d, "a rounding mode other than .rn");
  if (sparse && !describe_sparse(d, m, &s, type[1])) return false;
  if (scaled && !describe_scales(d, m, &s, type)) return false;
  bool quad = !wmma && type[1] == PTX_F16 && s.m == 8 && s.k == 4;
  if (quad) {
    describe_quad(m, type);
    m->a_column = is_column(instr, 0);
    m->b_column = is_column(instr, 1);
  } else if (!describe(d, &m->a, type[1], s.m, sparse ? s.k / 2 : s.k, false, wmma) ||
             !describe(d, &m->b, type[2], s.n, s.k, false, wmma) ||
             !describe(d, &m->c, type[3], s.m, s.n, true, false) ||
             !describe(d, &m->d, type[0], s.m, s.n, true, false)) {
    return false;
  }
  m->saturates = ptx_has(instr, PTX_MOD_SATFINITE);
  m->ands = ptx_has(instr, PTX_MOD_AND);
  if (!registers_of(d, &instr->operands[1], &m->a, false) || !registers_of(d, &instr->operands[2], &m->b, false) ||
      !registers_of(d, &instr->operands[3], &m->c, false) || !registers_of(d, &instr->operands[0], &m->d, true))
    return false;
  emit_meeting(d, quad ? EXEC_SYNC_QUAD_MMA : EXEC_SYNC_MMA, &m->sync);
  return true;
}

/* ---- ldmatrix, stmatrix, movmatrix ---- */

static uint32_t matrix_count(const ptx_instr *instr) {
  return ptx_has(instr, PTX_MOD_X4) ? 4 : ptx_has(instr, PTX_MOD_X2) ? 2 : 1;
}

static bool decode_rows(decoder *d, bool load) {
  const ptx_instr *instr = d->instr;
  const ptx_operand *registers = &instr->operands[load ? 0 : 1];
  bool transposed = ptx_has(instr, PTX_MOD_TRANS);
  uint32_t count = matrix_count(instr), parts = transposed ? 2 : 1, address[8];
  fragment_access f = {.op = load ? EXEC_OP_LOAD : EXEC_OP_STORE};
  exec_fragment fragment = {.type = PTX_B16, .registers = (uint8_t)count};
  if (!ptx_has(instr, PTX_MOD_M8N8) || instr->type_count != 1 || instr->types[0] != PTX_B16)
    return decode_fail(d, "a shape other than m8n8 of .b16");
  if (instr->operand_count < 2 || !address_of(d, &instr->operands[load ? 1 : 0], &f))
    return d->error->status == FF_OK ? decode_fail(d, "too few operands") : false;
  if (f.space == PTX_SPACE_GLOBAL) return decode_fail(d, "global memory");
  if (!registers_of(d, registers, &fragment, load)) return false;
  meet(d);
  for (uint32_t n = 0; n < count * parts; n++) {
    address[n] = decode_temp(d);
    exec_instr *i = decode_move(d, EXEC_MOVE_ROW_ADDRESS);
    i->dst = address[n];
    i->src[0] = f.base;
    i->aux = n / parts | n % parts << 8 | (uint32_t)transposed << 16 | (uint32_t)f.wide << 17;
  }
  for (uint32_t n = 0; n < count * parts; n++)
    emit_element(d, &f, address[n], 4 / parts, &fragment.slot[n / parts], 1, n % parts * 16, EXEC_NO_OFFSET);
  return true;
}

static bool decode_movmatrix(decoder *d) {
  const ptx_instr *instr = d->instr;
  exec_matrix *m = ff_arena_alloc(d->arena, sizeof *m);
  m->a = m->d = (exec_fragment){.type = PTX_B32, .registers = 1};
  if (!ptx_has(instr, PTX_MOD_M8N8) || instr->operand_count < 2) return decode_fail(d, "this form of movmatrix");
  if (!registers_of(d, &instr->operands[1], &m->a, false) || !registers_of(d, &instr->operands[0], &m->d, true))
    return false;
  emit_meeting(d, EXEC_SYNC_MOVMATRIX, &m->sync);
  return true;
}

bool decode_matrix(decoder *d) {
  switch (d->instr->opcode) {
  case PTX_OP_LDMATRIX: return decode_rows(d, true);
  case PTX_OP_STMATRIX: return decode_rows(d, false);
  case PTX_OP_MOVMATRIX: return decode_movmatrix(d);
  case PTX_OP_MMA: return decode_mma(d);
  default: break;
  }
  if (ptx_has(d->instr, PTX_MOD_LOAD)) return decode_wmma_access(d, true);
  if (ptx_has(d->instr, PTX_MOD_STORE)) return decode_wmma_access(d, false);
  return decode_mma(d);
}
