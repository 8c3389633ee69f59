/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of texture and surface instructions (PTX ISA, "Texture Instructions" and "Surface Instructions").
 *
 * [a, c]: the object and a vector of coordinates, or a scalar for one dimension; compilers fill vectors up to four
 * elements. The object is a handle in a 64-bit register, or the name of a .texref or .surfref variable, whose address
 * then stands for what it holds. Refused by name: a sampler of its own (independent mode), multi-sample textures, depth
 * comparison; the virtual GPU can make none. */
#include <string.h>

#include "exec/decode/decode.h"
#include "exec/texture/texture_access.h"

typedef struct geometry {
  ptx_mod mod;
  uint8_t dimensions, layered, cube;
} geometry;
static const geometry geometries[] = {
    {PTX_MOD__1D, 1, 0, 0}, {PTX_MOD__2D, 2, 0, 0},  {PTX_MOD__3D, 3, 0, 0},   {PTX_MOD_A1D, 1, 1, 0},
    {PTX_MOD_A2D, 2, 1, 0}, {PTX_MOD_CUBE, 2, 0, 1}, {PTX_MOD_ACUBE, 2, 1, 1},
};

static bool set_geometry(decoder *d, exec_texture_access *a) {
  for (size_t n = 0; n < sizeof geometries / sizeof *geometries; n++) {
    if (!ptx_has(d->instr, geometries[n].mod)) continue;
    a->dimensions = geometries[n].dimensions;
    a->layered = geometries[n].layered;
    a->cube = geometries[n].cube;
    return true;
  }
  return decode_fail(d, "this geometry of a texture or surface");
}

static exec_texture_access *new_texture_access(decoder *d, exec_op op) {
  exec_texture_access *a = ff_arena_alloc(d->arena, sizeof *a);
  a->access.op = (uint8_t)op;
  a->access.space = PTX_SPACE_GLOBAL;
  a->access.elements = d->instr->vector;
  a->access.trace_flags = op == EXEC_OP_LOAD && d->instr->opcode != PTX_OP_SULD ? TRACE_READ_ONLY : 0;
  for (uint32_t e = 0; e < 8; e++) a->access.load[e] = EXEC_NO_OFFSET;
  for (uint32_t n = 0; n < 3; n++) a->coordinate[n] = a->offset[n] = a->dx[n] = a->dy[n] = EXEC_NO_OFFSET;
  a->layer = a->lod = a->resident = EXEC_NO_OFFSET;
  return a;
}

static exec_instr *emit(decoder *d, exec_texture_access *a, exec_handler handler) {
  exec_instr *i = decode_handler(d, handler, a);
  i->src[0] = a->handle;
  return i;
}

/* ---- operands ---- */

static bool set_handle(decoder *d, exec_texture_access *a, const ptx_operand *operand) {
  ptx_operand object = *operand;
  if (object.kind == PTX_OPERAND_ADDRESS && object.symbol) object.kind = PTX_OPERAND_SYMBOL;
  else if (object.kind == PTX_OPERAND_ADDRESS && object.reg != PTX_NO_REG) object.kind = PTX_OPERAND_REG;
  else if (object.kind == PTX_OPERAND_ADDRESS)
    object = (ptx_operand){.kind = PTX_OPERAND_INT, .bits = (uint64_t)object.offset};
  if (object.kind == PTX_OPERAND_REG && exec_type_slot(d->func->regs[object.reg].type) != 8)
    return decode_fail(d, "a texture or surface object that is not 64 bits wide");
  return decode_source(d, &object, PTX_U64, &a->handle);
}

/* `count` values from a vector, or the one scalar. */
static bool set_vector(decoder *d, const ptx_operand *operand, uint32_t count, ptx_type type, uint32_t *offsets) {
  uint32_t have = operand->kind == PTX_OPERAND_VECTOR ? operand->element_count : 1;
  if (have < count) return decode_fail(d, "%u coordinates where %u are needed", have, count);
  for (uint32_t n = 0; n < count; n++)
    if (!decode_source(d, operand->kind == PTX_OPERAND_VECTOR ? &operand->elements[n] : operand, type, &offsets[n]))
      return false;
  return true;
}

/* [object, coordinates] */
static bool set_place(decoder *d, exec_texture_access *a, const ptx_operand *place, ptx_type type) {
  if (place->kind != PTX_OPERAND_ADDRESS || place->element_count < 2) return decode_fail(d, "no [object, coordinates]");
  if (place->element_count > 2) return decode_fail(d, "a sampler of its own (independent texturing mode)");
  const ptx_operand *where = &place->elements[1];
  uint32_t count = a->cube ? 3 : a->dimensions, all[4];
  if (!set_handle(d, a, &place->elements[0])) return false;
  if (!a->layered) return set_vector(d, where, count, type, a->coordinate);
  ptx_operand layer = where->kind == PTX_OPERAND_VECTOR && where->element_count ? where->elements[0] : *where;
  if (!decode_source(d, &layer, PTX_U32, &a->layer) || !set_vector(d, where, count + 1, type, all)) return false;
  memcpy(a->coordinate, all + 1, count * sizeof *all);
  return true;
}

static bool set_results(decoder *d, exec_texture_access *a, const ptx_operand *operand, ptx_type type) {
  uint32_t count = operand->kind == PTX_OPERAND_VECTOR ? operand->element_count : 1;
  if (count != a->access.elements) return decode_fail(d, "%u registers for %u results", count, a->access.elements);
  for (uint32_t e = 0; e < count; e++) {
    const ptx_operand *to = operand->kind == PTX_OPERAND_VECTOR ? &operand->elements[e] : operand;
    if (!decode_destination(d, to, type, &a->access.data[e])) return false;
    if (to->kind == PTX_OPERAND_REG) a->access.load[e] = d->load_number[to->reg];
  }
  if (operand->kind != PTX_OPERAND_VECTOR || operand->reg2 == PTX_NO_REG) return true;
  if (d->func->regs[operand->reg2].type != PTX_PRED) return decode_fail(d, "the second destination is not a predicate");
  a->resident = decode_register(d, operand->reg2);
  return true;
}

/* ---- tex, tld4 ---- */

/* What stands behind the place: level or gradients, then an offset. */
static bool set_rest(decoder *d, exec_texture_access *a, ptx_type coordinates) {
  const ptx_instr *instr = d->instr;
  uint32_t at = 2, count = a->cube ? 3 : a->dimensions;
  a->level = ptx_has(instr, PTX_MOD_LEVEL);
  a->gradient = ptx_has(instr, PTX_MOD_GRAD);
  if (a->level && (at >= instr->operand_count || !decode_source(d, &instr->operands[at++], coordinates, &a->lod)))
    return d->error->status != FF_OK ? false : decode_fail(d, "no level of detail");
  if (a->gradient) {
    if (at + 2 > instr->operand_count) return decode_fail(d, "no gradients");
    if (!set_vector(d, &instr->operands[at], count, PTX_F32, a->dx) ||
        !set_vector(d, &instr->operands[at + 1], count, PTX_F32, a->dy))
      return false;
    at += 2;
  }
  if (at < instr->operand_count && instr->operands[at].kind == PTX_OPERAND_VECTOR) {
    if (a->cube) return decode_fail(d, "an offset in a cubemap");
    if (!set_vector(d, &instr->operands[at++], a->dimensions, PTX_B32, a->offset)) return false;
  }
  return at == instr->operand_count || decode_fail(d, "a comparison with a depth texture");
}

static bool decode_fetch(decoder *d) {
  const ptx_instr *instr = d->instr;
  exec_texture_access *a = new_texture_access(d, EXEC_OP_LOAD);
  if (instr->type_count != 2 || !set_geometry(d, a))
    return d->error->status != FF_OK ? false : decode_fail(d, "this form of a texture fetch");
  ptx_type result = instr->types[0], coordinates = instr->types[1];
  bool half2 = result == PTX_F16X2, gather = instr->opcode == PTX_OP_TLD4;
  if (instr->vector != (half2 ? 2 : 4))
    return decode_fail(d, "a texture fetch of %u values of type .%s", instr->vector, ptx_type_text(result));
  if (result != PTX_U32 && result != PTX_S32 && result != PTX_F32 && result != PTX_F16 && !half2)
    return decode_fail(d, "a texture fetch of type .%s", ptx_type_text(result));
  if ((coordinates != PTX_F32 && coordinates != PTX_S32) || ((a->cube || gather) && coordinates != PTX_F32) ||
      (gather && a->dimensions != 2))
    return decode_fail(d, "texture coordinates of type .%s", ptx_type_text(coordinates));
  a->integer = coordinates == PTX_S32;
  a->gather = gather;
  a->component = ptx_has(instr, PTX_MOD_G) ? 1 : ptx_has(instr, PTX_MOD_B) ? 2 : ptx_has(instr, PTX_MOD_A) ? 3 : 0;
  a->results = half2 ? EXEC_RESULT_F16X2 : result == PTX_F16 ? EXEC_RESULT_F16 : EXEC_RESULT_WORDS;
  a->access.slot_bytes = 4;
  a->access.bytes = 4;
  if (!set_place(d, a, &instr->operands[1], coordinates) || !set_rest(d, a, coordinates) ||
      !set_results(d, a, &instr->operands[0], result))
    return false;
  return emit(d, a, core_texture) != NULL;
}

/* ---- suld, sust, sured ---- */

static bool set_bounds(decoder *d, exec_texture_access *a) {
  a->bounds = ptx_has(d->instr, PTX_MOD_CLAMP)  ? EXEC_BOUNDS_CLAMP
              : ptx_has(d->instr, PTX_MOD_ZERO) ? EXEC_BOUNDS_ZERO
                                                : EXEC_BOUNDS_TRAP;
  if (ptx_has(d->instr, PTX_MOD_CG) || ptx_has(d->instr, PTX_MOD_CV)) a->access.trace_flags |= TRACE_BYPASS_L1;
  if (ptx_has(d->instr, PTX_MOD_CS)) a->access.trace_flags |= TRACE_STREAMING;
  return true;
}

/* The registers of an unformatted access all have slots of one size: 8 bytes for .b64, else 4. */
static bool set_stored(decoder *d, exec_texture_access *a, const ptx_operand *operand, ptx_type type) {
  uint32_t count = operand->kind == PTX_OPERAND_VECTOR ? operand->element_count : 1;
  if (count != a->access.elements) return decode_fail(d, "%u registers for %u values", count, a->access.elements);
  for (uint32_t e = 0; e < count; e++)
    if (!decode_source(d, operand->kind == PTX_OPERAND_VECTOR ? &operand->elements[e] : operand, type,
                       &a->access.data[e]))
      return false;
  return true;
}

static bool decode_surface(decoder *d) {
  const ptx_instr *instr = d->instr;
  bool load = instr->opcode == PTX_OP_SULD, reduces = instr->opcode == PTX_OP_SURED;
  exec_texture_access *a = new_texture_access(d, load ? EXEC_OP_LOAD : reduces ? EXEC_OP_ATOMIC : EXEC_OP_STORE);
  if (instr->type_count != 1 || !set_geometry(d, a) || !set_bounds(d, a))
    return d->error->status != FF_OK ? false : decode_fail(d, "this form of a surface access");
  ptx_type type = instr->types[0];
  uint32_t bits = ptx_type_bits(type);
  a->formatted = ptx_has(instr, PTX_MOD_P);
  if (a->cube || bits < 8 || bits > 64 || bits * instr->vector > 128 || instr->vector > 4 || (a->formatted && load))
    return decode_fail(d, "this form of a surface access");
  if (a->formatted && !reduces && bits != 32) return decode_fail(d, "sust.p of type .%s", ptx_type_text(type));
  a->access.bytes = (uint8_t)(bits / 8);
  a->access.slot_bytes = bits == 64 ? 8 : 4;
  a->wanted = type;
  if (!set_place(d, a, &instr->operands[load ? 1 : 0], PTX_S32)) return false;
  if (load ? !set_results(d, a, &instr->operands[0], type) : !set_stored(d, a, &instr->operands[1], type)) return false;
  if (reduces) {
    static const ptx_mod operations[] = {PTX_MOD_ADD, PTX_MOD_MIN, PTX_MOD_MAX, PTX_MOD_AND, PTX_MOD_OR};
    a->reduction = PTX_MODS;
    for (size_t n = 0; n < sizeof operations / sizeof *operations; n++)
      if (ptx_has(instr, operations[n])) a->reduction = operations[n];
    bool typed = a->formatted || (a->reduction != PTX_MODS && exec_atomic_find(a->reduction, type, true));
    if (a->reduction == PTX_MODS || instr->vector != 1 || bits < 32 || !typed)
      return decode_fail(d, "this reduction of a surface");
    a->access.compare = a->access.data[0];
  }
  return emit(d, a, core_surface) != NULL;
}

/* ---- txq, suq, istypep ---- */

static bool decode_query(decoder *d) {
  static const ptx_mod queries[] = {PTX_MOD_WIDTH,
                                    PTX_MOD_HEIGHT,
                                    PTX_MOD_DEPTH,
                                    PTX_MOD_CHANNEL_DATA_TYPE,
                                    PTX_MOD_CHANNEL_ORDER,
                                    PTX_MOD_NORMALIZED_COORDS,
                                    PTX_MOD_FORCE_UNNORMALIZED_COORDS,
                                    PTX_MOD_FILTER_MODE,
                                    PTX_MOD_ADDR_MODE_0,
                                    PTX_MOD_ADDR_MODE_1,
                                    PTX_MOD_ADDR_MODE_2,
                                    PTX_MOD_ARRAY_SIZE,
                                    PTX_MOD_NUM_MIPMAP_LEVELS,
                                    PTX_MOD_NUM_SAMPLES,
                                    PTX_MOD_MEMORY_LAYOUT};
  const ptx_instr *instr = d->instr;
  exec_texture_access *a = new_texture_access(d, EXEC_OP_LOAD);
  uint32_t dst;
  a->query = PTX_MODS;
  for (size_t n = 0; n < sizeof queries / sizeof *queries; n++)
    if (ptx_has(instr, queries[n])) a->query = (uint16_t)queries[n];
  a->formatted = instr->opcode == PTX_OP_SUQ;
  if (a->query == PTX_MODS) return decode_fail(d, "this query");
  a->level = ptx_has(instr, PTX_MOD_LEVEL);
  if (a->level && (instr->operand_count < 3 || !decode_source(d, &instr->operands[2], PTX_B32, &a->lod)))
    return d->error->status != FF_OK ? false : decode_fail(d, "no level of detail");
  if (!set_handle(d, a, &instr->operands[1]) || !decode_destination(d, &instr->operands[0], PTX_B32, &dst))
    return false;
  emit(d, a, core_texture_query)->dst = dst;
  return true;
}

static bool decode_istypep(decoder *d) {
  exec_texture_access *a = new_texture_access(d, EXEC_OP_LOAD);
  uint32_t dst;
  if (d->instr->type_count != 1 || ptx_type_class(d->instr->types[0]) != 'O')
    return decode_fail(d, "istypep of this type");
  a->wanted = d->instr->types[0];
  if (!set_handle(d, a, &d->instr->operands[1]) || !decode_destination(d, &d->instr->operands[0], PTX_PRED, &dst))
    return false;
  emit(d, a, core_texture_query)->dst = dst;
  return true;
}

bool decode_texture(decoder *d) {
  switch (d->instr->opcode) {
  case PTX_OP_TEX:
  case PTX_OP_TLD4: return decode_fetch(d);
  case PTX_OP_TXQ:
  case PTX_OP_SUQ: return decode_query(d);
  case PTX_OP_ISTYPEP: return decode_istypep(d);
  default: return decode_surface(d);
  }
}
