/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of bulk copies and reductions, with tensors and without, of tensormap.replace, and of st.async and red.async
 * (PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy").
 *
 * One handler does each; st.async and red.async are the ordinary access and then the mbarrier that is told of its
 * bytes. */
#include <string.h>

#include "exec/decode/decode.h"
#include "exec/memory/bulk.h"

/* ---- operands ---- */

/* The n-th state space that the instruction names; GENERIC: none. */
static ptx_space space_of(const ptx_instr *instr, uint32_t n) {
  for (uint32_t k = 0; k < instr->mod_count; k++) {
    ptx_mod mod = (ptx_mod)instr->mods[k];
    bool shared = mod == PTX_MOD_SHARED || mod == PTX_MOD_SHARED__CTA || mod == PTX_MOD_SHARED__CLUSTER;
    if ((shared || mod == PTX_MOD_GLOBAL) && !n--) return shared ? PTX_SPACE_SHARED : PTX_SPACE_GLOBAL;
  }
  return PTX_SPACE_GENERIC;
}

static void set_access(exec_access *a, exec_op op, ptx_space space) {
  static exec_span nowhere; /* no address is inside it */
  a->hint = &nowhere;
  a->op = (uint8_t)op;
  a->space = (uint8_t)space;
  a->wide = 1;
  a->bytes = 16;
  a->elements = 1;
  a->slot_bytes = 8;
  a->log2_total = 4;
  a->trace_flags = TRACE_BYPASS_L1 | TRACE_BULK; /* these copies go through the L2 cache alone */
  for (uint32_t e = 0; e < 8; e++) a->load[e] = EXEC_NO_OFFSET;
}

/* What may stand behind the others: a mask of blocks, a cache policy, a mask of bytes. */
static bool set_rest(decoder *d, exec_bulk *b, uint32_t next) {
  const ptx_instr *instr = d->instr;
  uint32_t rest = next + ptx_has(instr, PTX_MOD_MULTICAST__CLUSTER) + ptx_has(instr, PTX_MOD_L2__CACHE_HINT) +
                  ptx_has(instr, PTX_MOD_CP_MASK);
  if (instr->operand_count != rest) return decode_fail(d, "%u operands", instr->operand_count);
  if (ptx_has(instr, PTX_MOD_MULTICAST__CLUSTER) && !decode_source(d, &instr->operands[next++], PTX_B16, &b->ranks))
    return false;
  if (ptx_has(instr, PTX_MOD_L2__CACHE_HINT)) {
    const ptx_operand *policy = &instr->operands[next++];
    if (!decode_cache_policy(d, &b->from, policy) || !decode_cache_policy(d, &b->to, policy)) return false;
  }
  return !ptx_has(instr, PTX_MOD_CP_MASK) || decode_source(d, &instr->operands[next], PTX_B16, &b->bytes_mask);
}

/* ---- reductions ---- */

exec_atomic_function exec_bulk_reduction(ptx_mod op, ptx_type type, bool global) {
  bool logical = op == PTX_MOD_AND || op == PTX_MOD_OR || op == PTX_MOD_XOR;
  if (logical) type = ptx_type_bits(type) == 64 ? PTX_B64 : ptx_type_bits(type) == 32 ? PTX_B32 : PTX_TYPE_NONE;
  return exec_atomic_find(op, type, global);
}

static bool set_reduction(decoder *d, exec_bulk *b) {
  static const ptx_mod operations[] = {PTX_MOD_ADD, PTX_MOD_MIN, PTX_MOD_MAX, PTX_MOD_INC,
                                       PTX_MOD_DEC, PTX_MOD_AND, PTX_MOD_OR,  PTX_MOD_XOR};
  const ptx_instr *instr = d->instr;
  b->reduces = true;
  b->operation = PTX_MODS;
  for (size_t n = 0; n < sizeof operations / sizeof *operations; n++)
    if (ptx_has(instr, operations[n])) b->operation = (uint16_t)operations[n];
  if (b->operation == PTX_MODS) return decode_fail(d, "a bulk reduction without an operation");
  if (b->dimensions) return true; /* the tensor map has the type */
  if (!instr->type_count) return decode_fail(d, "a bulk reduction without a type");
  ptx_type type = instr->types[instr->type_count - 1];
  b->type = (uint8_t)type;
  b->reduce = exec_bulk_reduction((ptx_mod)b->operation, type, true);
  b->reduce_shared = exec_bulk_reduction((ptx_mod)b->operation, type, false);
  return b->reduce ? true : decode_fail(d, "this reduction of .%s", ptx_type_text(type));
}

/* ---- copies ---- */

static exec_bulk *new_bulk(decoder *d) {
  exec_bulk *b = ff_arena_alloc(d->arena, sizeof *b);
  const ptx_instr *instr = d->instr;
  b->bytes_mask = b->ranks = EXEC_NO_OFFSET;
  b->prefetches = ptx_has(instr, PTX_MOD_PREFETCH);
  b->completes = ptx_has(instr, PTX_MOD_MBARRIER__COMPLETE_TX__BYTES);
  ptx_space to = b->prefetches ? PTX_SPACE_GLOBAL : space_of(instr, 0),
            from = b->prefetches ? PTX_SPACE_GLOBAL : space_of(instr, 1);
  bool reduces = ptx_has(instr, PTX_MOD_REDUCE);
  set_access(&b->to, reduces ? EXEC_OP_ATOMIC : EXEC_OP_STORE, to);
  set_access(&b->from, b->prefetches ? EXEC_OP_PREFETCH : EXEC_OP_LOAD, from);
  if (!b->prefetches) b->from.trace_flags |= TRACE_ASYNC_COPY;
  return b;
}

static bool decode_range(decoder *d) {
  const ptx_instr *instr = d->instr;
  const ptx_operand *operands = instr->operands;
  exec_bulk *b = new_bulk(d);
  uint32_t next = 0;
  if (instr->operand_count < (b->prefetches ? 2u : 3u) + b->completes) return decode_fail(d, "too few operands");
  if (b->from.space == PTX_SPACE_GENERIC || b->to.space == PTX_SPACE_GENERIC)
    return decode_fail(d, "a bulk copy without its state spaces");
  if (!b->prefetches && !decode_bulk_address(d, &operands[next++], (ptx_space)b->to.space, &b->target)) return false;
  if (!decode_bulk_address(d, &operands[next++], (ptx_space)b->from.space, &b->source)) return false;
  if (!decode_source(d, &operands[next++], PTX_U32, &b->size)) return false;
  if (b->completes && !decode_bulk_address(d, &operands[next++], PTX_SPACE_SHARED, &b->barrier)) return false;
  if (ptx_has(instr, PTX_MOD_REDUCE) && !set_reduction(d, b)) return false;
  return set_rest(d, b, next) && decode_handler(d, core_bulk, b);
}

/* ---- tensors ---- */

static bool set_dimensions(decoder *d, exec_bulk *b) {
  static const ptx_mod dimensions[] = {PTX_MOD__1D, PTX_MOD__2D, PTX_MOD__3D, PTX_MOD__4D, PTX_MOD__5D};
  for (uint8_t n = 0; n < TENSOR_MAP_DIMENSIONS; n++)
    if (ptx_has(d->instr, dimensions[n])) b->dimensions = (uint8_t)(n + 1);
  return b->dimensions ? true : decode_fail(d, "a tensor copy without dimensions");
}

static bool set_vector(decoder *d, const ptx_operand *operand, ptx_type type, uint32_t count, uint32_t *slots) {
  bool vector = operand->kind == PTX_OPERAND_VECTOR;
  if ((vector ? operand->element_count : 1) < count) return decode_fail(d, "%u values are needed", count);
  for (uint32_t n = 0; n < count; n++)
    if (!decode_source(d, vector ? &operand->elements[n] : operand, type, &slots[n])) return false;
  return true;
}

/* [map, {x, y}] */
static bool set_tensor(decoder *d, exec_bulk *b, const ptx_operand *operand) {
  if (operand->kind != PTX_OPERAND_ADDRESS || operand->element_count != 2)
    return decode_fail(d, "no [tensor map, coordinates]");
  ptx_operand map = operand->elements[0];
  if (map.kind == PTX_OPERAND_ADDRESS && map.symbol) map.kind = PTX_OPERAND_SYMBOL;
  b->map.wide = true;
  return decode_source(d, &map, PTX_U64, &b->map.slot) &&
         set_vector(d, &operand->elements[1], PTX_S32, b->four ? 5 : b->dimensions, b->coordinate);
}

static bool decode_tensor(decoder *d) {
  const ptx_instr *instr = d->instr;
  const ptx_operand *operands = instr->operands;
  exec_bulk *b = new_bulk(d);
  uint32_t next = 0;
  b->stores = b->to.space == PTX_SPACE_GLOBAL && !b->prefetches;
  b->no_offsets = ptx_has(instr, PTX_MOD_IM2COL_NO_OFFS);
  b->im2col = ptx_has(instr, PTX_MOD_IM2COL) || b->no_offsets;
  b->four = ptx_has(instr, PTX_MOD_TILE__GATHER4) || ptx_has(instr, PTX_MOD_TILE__SCATTER4);
  if (ptx_has(instr, PTX_MOD_IM2COL__W) || ptx_has(instr, PTX_MOD_IM2COL__W__128))
    return decode_fail(d, "this mode of a tensor copy");
  b->pair = ptx_has(instr, PTX_MOD_CTA_GROUP__2);
  if (instr->operand_count < (b->prefetches ? 1u : 2u) + b->completes + (b->im2col && !b->no_offsets))
    return decode_fail(d, "too few operands");
  if (!set_dimensions(d, b)) return false;
  if (b->four && b->dimensions != 2) return decode_fail(d, "four rows of a tensor of %u dimensions", b->dimensions);
  if (b->im2col && b->dimensions < 3) return decode_fail(d, "im2col of a tensor of %u dimensions", b->dimensions);
  if (!b->prefetches && !b->stores && !decode_bulk_address(d, &operands[next++], PTX_SPACE_SHARED, &b->target))
    return false;
  if (!set_tensor(d, b, &operands[next++])) return false;
  if (b->stores && !decode_bulk_address(d, &operands[next++], PTX_SPACE_SHARED, &b->source)) return false;
  if (b->completes && !decode_bulk_address(d, &operands[next++], PTX_SPACE_SHARED, &b->barrier)) return false;
  if (b->im2col && !b->no_offsets && !b->stores &&
      !set_vector(d, &operands[next++], PTX_U16, b->dimensions - 2u, b->offset))
    return false;
  if (b->stores && b->im2col) b->no_offsets = true;
  if (ptx_has(instr, PTX_MOD_REDUCE) && !set_reduction(d, b)) return false;
  return set_rest(d, b, next) && decode_handler(d, core_bulk, b);
}

bool decode_bulk(decoder *d) {
  if (ptx_has(d->instr, PTX_MOD_COMMIT_GROUP) || ptx_has(d->instr, PTX_MOD_WAIT_GROUP))
    return decode_move(d, EXEC_MOVE_NOTHING) != NULL; /* copies are over when they are issued */
  return ptx_has(d->instr, PTX_MOD_TENSOR) ? decode_tensor(d) : decode_range(d);
}

/* ---- what writes as bulk copies do ---- */

/* clusterlaunchcontrol (PTX ISA, "Parallel Synchronization and Communication Instructions"). The response is a format
 * of farfault's own: 32 bits that say whether a launch was canceled, and its first block. */
static bool decode_try_cancel(decoder *d) {
  const ptx_instr *instr = d->instr;
  exec_bulk *b = new_bulk(d);
  b->cancels = true;
  b->everywhere = ptx_has(instr, PTX_MOD_MULTICAST__CLUSTER__ALL);
  if (instr->operand_count != 2 || !b->completes) return decode_fail(d, "this form of clusterlaunchcontrol");
  return decode_bulk_address(d, &instr->operands[0], (ptx_space)b->to.space, &b->target) &&
         decode_bulk_address(d, &instr->operands[1], PTX_SPACE_SHARED, &b->barrier) && decode_handler(d, core_bulk, b);
}

static bool decode_query_cancel(decoder *d) {
  static const ptx_mod axes[] = {PTX_MOD_GET_FIRST_CTAID__X, PTX_MOD_GET_FIRST_CTAID__Y, PTX_MOD_GET_FIRST_CTAID__Z};
  const ptx_instr *instr = d->instr;
  const ptx_operand *to = &instr->operands[0];
  bool vector = to->kind == PTX_OPERAND_VECTOR, asks = ptx_has(instr, PTX_MOD_IS_CANCELED);
  uint32_t word[4], from, predicate = 0;
  if (vector != ptx_has(instr, PTX_MOD_GET_FIRST_CTAID) || (vector && to->element_count != 4))
    return decode_fail(d, "this form of clusterlaunchcontrol");
  for (uint32_t n = 0; n < 4; n++) word[n] = decode_temp(d);
  if (!decode_source(d, &instr->operands[1], PTX_B128, &from)) return false;
  if (asks && !decode_destination(d, to, PTX_PRED, &predicate)) return false;
  for (uint32_t n = 0; n < 3; n++) {
    const ptx_operand *one = vector ? &to->elements[n] : to;
    if ((vector || ptx_has(instr, axes[n])) && !decode_destination(d, one, PTX_B32, &word[n + 1])) return false;
  }
  exec_instr *i = decode_move(d, EXEC_MOVE_UNPACK_4x32);
  i->src[0] = from;
  i->dst = word[0];
  i->dst2 = word[1];
  i->src[2] = word[2];
  i->src[3] = word[3];
  if (!asks) return true;
  i = decode_move(d, EXEC_MOVE_IS_NOT_ZERO);
  i->src[0] = word[0];
  i->dst = predicate;
  return true;
}

bool decode_clusterlaunchcontrol(decoder *d) {
  return ptx_has(d->instr, PTX_MOD_TRY_CANCEL) ? decode_try_cancel(d) : decode_query_cancel(d);
}

/* st.bulk: the value is 0, the only one that the manual has. */
bool decode_store_bulk(decoder *d) {
  const ptx_instr *instr = d->instr;
  exec_bulk *b = new_bulk(d);
  b->zeroes = true;
  if (instr->operand_count < 2 ||
      (instr->operand_count > 2 && (instr->operands[2].kind != PTX_OPERAND_INT || instr->operands[2].bits)))
    return decode_fail(d, "this form of st.bulk");
  return decode_bulk_address(d, &instr->operands[0], (ptx_space)b->to.space, &b->target) &&
         decode_source(d, &instr->operands[1], PTX_U64, &b->size) && decode_handler(d, core_bulk, b);
}

/* ---- tensor maps ---- */

bool decode_tensormap(decoder *d) {
  static const ptx_mod fields[] = {
      PTX_MOD_GLOBAL_ADDRESS, PTX_MOD_RANK,     PTX_MOD_BOX_DIM,      PTX_MOD_GLOBAL_DIM, PTX_MOD_GLOBAL_STRIDE,
      PTX_MOD_ELEMENT_STRIDE, PTX_MOD_ELEMTYPE, PTX_MOD_SWIZZLE_MODE, PTX_MOD_FILL_MODE,  PTX_MOD_INTERLEAVE_LAYOUT};
  const ptx_instr *instr = d->instr;
  exec_replace *r = ff_arena_alloc(d->arena, sizeof *r);
  ptx_space space = space_of(instr, 0);
  set_access(&r->access, EXEC_OP_STORE, space);
  if (instr->operand_count < 2) return decode_fail(d, "too few operands");
  if (!decode_bulk_address(d, &instr->operands[0], space, &r->map)) return false;
  if (ptx_has(instr, PTX_MOD_CP_FENCEPROXY))
    return decode_bulk_address(d, &instr->operands[1], PTX_SPACE_SHARED, &r->from) &&
           decode_handler(d, core_tensor_replace, r);
  for (size_t n = 0; n < sizeof fields / sizeof *fields; n++)
    if (ptx_has(instr, fields[n])) r->field = (uint16_t)fields[n];
  bool ordinal = instr->operand_count > 2;
  const ptx_operand *value = &instr->operands[ordinal ? 2 : 1];
  if (!r->field || !instr->type_count || (ordinal && instr->operands[1].kind != PTX_OPERAND_INT) ||
      (ordinal && instr->operands[1].bits >= TENSOR_MAP_DIMENSIONS))
    return decode_fail(d, "this form of tensormap");
  if (ordinal) r->ordinal = (uint8_t)instr->operands[1].bits;
  ptx_type type = instr->types[instr->type_count - 1];
  r->wide = ptx_type_bits(type) == 64;
  return decode_source(d, value, type, &r->value) && decode_handler(d, core_tensor_replace, r);
}

/* ---- st.async, red.async ---- */

bool decode_async_access(decoder *d) {
  const ptx_instr *instr = d->instr;
  bool completes = ptx_has(instr, PTX_MOD_MBARRIER__COMPLETE_TX__BYTES);
  if (!completes || instr->operand_count != 3 || !instr->type_count || ptx_instr_space(instr) != PTX_SPACE_SHARED)
    return decode_fail(d, "this form of st.async or red.async");
  uint32_t bytes = ptx_type_bits(instr->types[instr->type_count - 1]) / 8 * instr->vector;
  if (!(instr->opcode == PTX_OP_ST ? decode_memory(d) : decode_atomic(d))) return false;
  return decode_complete_tx(d, &instr->operands[2], bytes);
}
