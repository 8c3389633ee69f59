/* SPDX-License-Identifier: Apache-2.0 */
/* Memory through pointers, globals, and what all accesses share: lower_memory.h.
 *
 * Only the owners of elements store. Loads are made by all that want the value, but for those that other blocks may
 * write meanwhile: copies must agree, so that owners load and share. Tokens order what different threads do: a barrier
 * stands between two operations that a token may order. */
#include "tile/lower_memory.h"

#include <stdio.h>
#include <string.h>

uint64_t memory_power_of(int64_t value) {
  uint64_t bits = (uint64_t)value;
  return bits ? bits & -bits : UINT64_C(1) << 32;
}

/* ---- orders ---- */

const char *memory_scope_text(uint32_t scope) {
  return scope == TILE_SCOPE_BLOCK ? "cta" : scope == TILE_SCOPE_DEVICE ? "gpu" : "sys";
}

/* ".relaxed.gpu" and the like; "" if weak. */
const char *memory_order_text(char *text, size_t size, uint32_t ordering, uint32_t scope) {
  static const char *const names[] = {"", ".relaxed", ".acquire", ".release", ".acq_rel"};
  if (ordering == TILE_WEAK || ordering > TILE_ACQ_REL) *text = 0;
  else snprintf(text, size, "%s.%s", names[ordering], memory_scope_text(scope));
  return text;
}

/* Before an operation: what its token may order was done by other threads, and what it releases. */
void memory_before(lower *l, const tile_op *op, bool writes) {
  bool releases = op->ordering == TILE_RELEASE || op->ordering == TILE_ACQ_REL;
  bool ordered = op->token >= 0 && (l->stored || (writes && l->loaded));
  /* A value that was loaded as copies, by each thread for itself, may decide what is stored, without a token. */
  if (releases || ordered || (writes && l->loaded_copies)) lower_barrier(l);
}

static uint32_t threads_of(const tile_layout *layout) { /* thread bits that elements lie in */
  uint32_t threads = 0;
  for (uint32_t b = 0; b < layout->bits; b++) threads += (layout->of[b] & LAYOUT_THREAD) != 0;
  return threads;
}

void memory_after(lower *l, const tile_op *op, bool writes) {
  if (op->ordering == TILE_ACQUIRE || op->ordering == TILE_ACQ_REL) lower_barrier(l);
  if (writes) l->stored = true;
  else l->loaded = true;
}

void memory_note_copies(lower *l, const tile_layout *layout) {
  if (threads_of(layout) < l->thread_bits) l->loaded_copies = true;
}

/* ---- values in memory ---- */

static const char *memory_type(tile_scalar scalar) {
  switch (lower_bytes(scalar)) {
  case 1: return "u8";
  case 2: return lower_class(scalar) == CLASS_WORD ? "u16" : "b16";
  case 4: return "b32";
  default: return "b64";
  }
}

/* One load of n registers; i1 is a byte in memory. */
void memory_load(lower *l, const char *order, tile_scalar scalar, const uint32_t *to, uint32_t n, const char *address,
                 uint32_t predicate) {
  char guard[24], text[96];
  lower_guard_text(guard, sizeof guard, predicate);
  if (tile_scalar_bits(scalar) == 4) { /* a pair */
    uint32_t byte = lower_register(l, CLASS_WORD);
    lower_emit(l, "%sld%s.global.u8 %%r%u, %s;", guard, order, byte, address);
    lower_emit(l, "%sand.b32 %%r%u, %%r%u, 15;", guard, to[0], byte);
    lower_emit(l, "%sshr.u32 %%r%u, %%r%u, 4;", guard, to[1], byte);
    return;
  }
  if (scalar == TILE_I1) {
    uint32_t byte = lower_register(l, CLASS_WORD);
    lower_emit(l, "%sld%s.global.u8 %%r%u, %s;", guard, order, byte, address);
    lower_emit(l, "%ssetp.ne.u32 %%p%u, %%r%u, 0;", guard, to[0], byte);
    return;
  }
  lower_emit(l, "%sld%s.global%s.%s %s, %s;", guard, order, lower_vector_suffix(n), memory_type(scalar),
             lower_registers_text(text, sizeof text, lower_letter(lower_class(scalar)), to, n), address);
}

void memory_store(lower *l, const char *order, tile_scalar scalar, const uint32_t *from, uint32_t n,
                  const char *address, uint32_t predicate) {
  char guard[24], text[96];
  lower_guard_text(guard, sizeof guard, predicate);
  uint32_t byte;
  char letter = lower_letter(lower_class(scalar));
  if (tile_scalar_bits(scalar) == 4) {
    byte = lower_register(l, CLASS_WORD);
    lower_emit(l, "bfi.b32 %%r%u, %%r%u, %%r%u, 4, 4;", byte, from[1], from[0]);
    lower_emit(l, "%sst%s.global.u8 %s, %%r%u;", guard, order, address, byte);
    return;
  }
  if (scalar == TILE_I1) {
    byte = lower_register(l, CLASS_WORD);
    lower_emit(l, "selp.u32 %%r%u, 1, 0, %%p%u;", byte, from[0]);
    from = &byte;
    letter = 'r';
  }
  lower_emit(l, "%sst%s.global%s.%s %s, %s;", guard, order, lower_vector_suffix(n), memory_type(scalar), address,
             lower_registers_text(text, sizeof text, letter, from, n));
}

uint32_t memory_owner(lower *l, const tile_layout *layout) {
  uint32_t predicate;
  return layout_owner(l, layout, &predicate) ? predicate : NO_REGISTER;
}

/* After only owners have the value: in all threads. A splat's one register goes from thread 0 to all. */
void memory_share(lower *l, lowered *value, tile_scalar scalar) {
  lowered one = *value;
  if (value->splat) {
    one.splat = false;
    one.layout = (tile_layout){0};
  }
  value->registers = layout_share(l, &one, scalar)->registers;
}

bool memory_must_share(const lower *l, const tile_op *op, const tile_layout *layout) {
  return op->ordering != TILE_WEAK && threads_of(layout) < l->thread_bits;
}

/* ---- atomic operations ---- */

/* "add.f32" and the like; NULL: there is none. */
const char *memory_rmw_text(lower *l, const tile_op *op, tile_scalar scalar, char *text, size_t size) {
  static const char *const names[] = {"and", "or", "xor", "add", "add", "max", "min", "max", "min", "exch"};
  if (op->rmw >= sizeof names / sizeof *names) return NULL;
  uint32_t bits = tile_scalar_bits(scalar);
  bool whole = scalar == TILE_I32 || scalar == TILE_I64;
  switch ((tile_rmw)op->rmw) {
  case TILE_RMW_ADDF:
    if (scalar == TILE_F16) snprintf(text, size, "add.noftz.f16");
    else if (scalar == TILE_BF16) snprintf(text, size, "add.noftz.bf16");
    else if (scalar == TILE_F32 || scalar == TILE_F64) snprintf(text, size, "add.f%u", bits);
    else return NULL;
    if (scalar == TILE_BF16 && l->architecture < 90) l->architecture = 90;
    return text;
  case TILE_RMW_XCHG:
    if (bits < 32) return NULL;
    snprintf(text, size, "exch.b%u", bits);
    return text;
  case TILE_RMW_AND:
  case TILE_RMW_OR:
  case TILE_RMW_XOR:
    if (!whole) return NULL;
    snprintf(text, size, "%s.b%u", names[op->rmw], bits);
    return text;
  case TILE_RMW_MAX:
  case TILE_RMW_MIN:
    if (!whole) return NULL;
    snprintf(text, size, "%s.s%u", names[op->rmw], bits);
    return text;
  default:
    if (!whole) return NULL;
    snprintf(text, size, "%s.u%u", names[op->rmw], bits);
    return text;
  }
}

/* A layout for operands that go element by element: that of the first one which has another than the usual. */
static tile_layout common_layout(lower *l, const tile_op *op, const tile_type *type) {
  tile_layout usual = layout_default(l, type);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    const tile_value *operand = op->operands[i];
    if (operand->type->kind != TILE_KIND_TILE || tile_elements(operand->type) != tile_elements(type)) continue;
    const lowered *value = lower_value(l, operand);
    if (!value->splat && !value->lazy && !layout_equal(&value->layout, &usual)) return value->layout;
  }
  return usual;
}

/* Operand i in that layout; fails if it has another number of elements. */
static const lowered *operand_in(lower *l, const tile_op *op, uint32_t i, const tile_layout *layout) {
  const tile_value *operand = op->operands[i];
  if (operand->type->kind != TILE_KIND_TILE || lower_log2(tile_elements(operand->type)) != layout->bits) {
    lower_fail(l, op, FF_PARSE, "operand %u has another shape", i);
    return NULL;
  }
  return layout_convert(l, lower_value(l, operand), operand->type->scalar, layout);
}

static bool points(lower *l, const tile_op *op) {
  const tile_type *type = op->operands[0]->type;
  if (type->kind == TILE_KIND_TILE && type->scalar == TILE_POINTER) return true;
  lower_fail(l, op, FF_PARSE, "its first operand has no pointers");
  return false;
}

/* atomic_rmw_tko and atomic_cas_tko: each element once, by its owner. */
static void lower_atomic(lower *l, tile_op *op) {
  if (!points(l, op)) return;
  memory_before(l, op, true);
  bool cas = op->opcode == TILE_OP_ATOMIC_CAS_TKO;
  const tile_type *type = op->results[0].type;
  tile_scalar scalar = type->scalar;
  tile_layout layout = common_layout(l, op, op->operands[0]->type);
  const lowered *pointers = operand_in(l, op, 0, &layout), *first = operand_in(l, op, 1, &layout);
  const lowered *second = cas ? operand_in(l, op, 2, &layout) : NULL;
  const lowered *mask = op->mask >= 0 ? operand_in(l, op, (uint32_t)op->mask, &layout) : NULL;
  if (l->status) return;
  if (lower_log2(tile_elements(type)) != layout.bits || op->operands[1]->type->scalar != scalar) {
    lower_fail(l, op, FF_PARSE, "its result has another shape or element");
    return;
  }
  char what[32], order[32], guard[24];
  if (cas) {
    if (tile_scalar_bits(scalar) < 32) {
      lower_fail(l, op, FF_UNSUPPORTED, "on %s", tile_scalar_name(scalar));
      return;
    }
    snprintf(what, sizeof what, "cas.b%u", tile_scalar_bits(scalar));
  } else if (!memory_rmw_text(l, op, scalar, what, sizeof what)) {
    lower_fail(l, op, FF_UNSUPPORTED, "this operation on %s", tile_scalar_name(scalar));
    return;
  }
  memory_order_text(order, sizeof order, op->ordering == TILE_WEAK ? TILE_RELAXED : op->ordering, op->scope);
  lowered *result = lower_result(l, &op->results[0], &layout);
  uint32_t mine = memory_owner(l, &layout);
  char letter = lower_letter(result->class);
  for (uint32_t r = 0; r < 1u << layout.registers; r++) {
    uint32_t predicate = lower_both(l, mask ? mask->registers[r] : NO_REGISTER, mine);
    lower_guard_text(guard, sizeof guard, predicate);
    if (predicate) lower_set(l, result->class, result->registers[r], 0);
    if (cas)
      lower_emit(l, "%satom%s.global.%s %%%c%u, [%%d%u], %%%c%u, %%%c%u;", guard, order, what, letter,
                 result->registers[r], pointers->registers[r], letter, first->registers[r], letter,
                 second->registers[r]);
    else
      lower_emit(l, "%satom%s.global.%s %%%c%u, [%%d%u], %%%c%u;", guard, order, what, letter, result->registers[r],
                 pointers->registers[r], letter, first->registers[r]);
  }
  if (mine) memory_share(l, result, scalar);
  memory_after(l, op, true);
}

/* ---- tiles of pointers ---- */

static void lower_load_pointers(lower *l, tile_op *op) {
  if (!points(l, op)) return;
  memory_before(l, op, false);
  const tile_type *type = op->results[0].type;
  tile_layout layout = common_layout(l, op, op->operands[0]->type);
  const lowered *pointers = operand_in(l, op, 0, &layout);
  const lowered *mask = op->mask >= 0 ? operand_in(l, op, (uint32_t)op->mask, &layout) : NULL;
  const lowered *padding = op->padding >= 0 ? operand_in(l, op, (uint32_t)op->padding, &layout) : NULL;
  if (l->status) return;
  if (type->kind != TILE_KIND_TILE || lower_log2(tile_elements(type)) != layout.bits ||
      tile_scalar_bits(type->scalar) == 4) {
    lower_fail(l, op, type->kind == TILE_KIND_TILE ? FF_UNSUPPORTED : FF_PARSE,
               "its result has another shape, or elements of 4 bits");
    return;
  }
  lowered *result = lower_result(l, &op->results[0], &layout);
  bool share = memory_must_share(l, op, &layout);
  uint32_t mine = share ? memory_owner(l, &layout) : NO_REGISTER;
  char order[32], address[32];
  memory_order_text(order, sizeof order, op->ordering, op->scope);
  char letter = lower_letter(result->class);
  for (uint32_t r = 0; r < 1u << layout.registers && !l->status; r++) {
    uint32_t predicate = lower_both(l, mask ? mask->registers[r] : NO_REGISTER, mine);
    if (predicate && padding)
      lower_emit(l, "mov.%s %%%c%u, %%%c%u;", lower_untyped(result->class), letter, result->registers[r], letter,
                 padding->registers[r]);
    else if (predicate) lower_set(l, result->class, result->registers[r], 0);
    snprintf(address, sizeof address, "[%%d%u]", pointers->registers[r]);
    memory_load(l, order, type->scalar, &result->registers[r], 1, address, predicate);
  }
  if (share) memory_share(l, result, type->scalar);
  memory_after(l, op, false);
  memory_note_copies(l, &layout);
}

static void lower_store_pointers(lower *l, tile_op *op) {
  if (!points(l, op)) return;
  memory_before(l, op, true);
  tile_layout layout = common_layout(l, op, op->operands[0]->type);
  const lowered *pointers = operand_in(l, op, 0, &layout), *value = operand_in(l, op, 1, &layout);
  const lowered *mask = op->mask >= 0 ? operand_in(l, op, (uint32_t)op->mask, &layout) : NULL;
  if (l->status) return;
  tile_scalar scalar = op->operands[1]->type->scalar;
  if (tile_scalar_bits(scalar) == 4) {
    lower_fail(l, op, FF_UNSUPPORTED, "elements of 4 bits in memory");
    return;
  }
  uint32_t mine = memory_owner(l, &layout);
  char order[32], address[32];
  memory_order_text(order, sizeof order, op->ordering, op->scope);
  for (uint32_t r = 0; r < 1u << layout.registers; r++) {
    snprintf(address, sizeof address, "[%%d%u]", pointers->registers[r]);
    memory_store(l, order, scalar, &value->registers[r], 1, address,
                 lower_both(l, mask ? mask->registers[r] : NO_REGISTER, mine));
  }
  memory_after(l, op, true);
}

static void lower_get_global(lower *l, tile_op *op) {
  const tile_global *global = NULL;
  for (uint32_t i = 0; i < l->module->global_count; i++)
    if (!strcmp(l->module->globals[i].name, op->string)) global = &l->module->globals[i];
  lowered *result = lower_result(l, &op->results[0], NULL);
  if (!global || result->class != CLASS_DOUBLE) {
    lower_fail(l, op, FF_PARSE, "there is no global \"%.60s\", or it gives no pointer", op->string);
    return;
  }
  result->divisor = global->alignment ? memory_power_of((int64_t)global->alignment) : 16;
  if (!l->status) ff_text_add(l->text, "  mov.u64 %%d%u, %s;\n", result->registers[0], op->string);
  lower_emit(l, "cvta.global.u64 %%d%u, %%d%u;", result->registers[0], result->registers[0]);
}

bool lower_memory_op(lower *l, tile_op *op) {
  switch (op->opcode) {
  case TILE_OP_LOAD_PTR_TKO: lower_load_pointers(l, op); return true;
  case TILE_OP_STORE_PTR_TKO: lower_store_pointers(l, op); return true;
  case TILE_OP_ATOMIC_RMW_TKO:
  case TILE_OP_ATOMIC_CAS_TKO: lower_atomic(l, op); return true;
  case TILE_OP_GET_GLOBAL: lower_get_global(l, op); return true;
  case TILE_OP_MAKE_TOKEN:
  case TILE_OP_JOIN_TOKENS: return true; /* memory_before looks at what was done, not at which token */
  case TILE_OP_MEMORY_FENCE_ALIAS_TKO: lower_barrier(l); return true;
  case TILE_OP_GDC_LAUNCH_DEPENDENTS_TKO:
  case TILE_OP_GDC_WAIT_TKO:
    if (l->architecture < 90) l->architecture = 90;
    if (op->opcode == TILE_OP_GDC_WAIT_TKO) lower_emit(l, "griddepcontrol.wait;");
    else {
      lower_barrier(l); /* what all threads wrote */
      lower_emit(l, "griddepcontrol.launch_dependents;");
    }
    return true;
  default: return false;
  }
}
