/* SPDX-License-Identifier: Apache-2.0 */
/* One function: entries, blocks, branches and exits, and where its slots' values are. */
#include "compile/generator/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exec/launch/native.h"

/* ---- building ---- */

LLVMTypeRef gen_vector_type(LLVMTypeRef of) { return LLVMVectorType(of, EXEC_LANES); }
value gen_i32(generator *g, uint32_t v) { return LLVMConstInt(g->i32, v, false); }
value gen_i64(generator *g, uint64_t v) { return LLVMConstInt(g->i64, v, false); }

value gen_splat(generator *g, value scalar) {
  LLVMTypeRef type = gen_vector_type(LLVMTypeOf(scalar));
  if (LLVMIsConstant(scalar)) {
    value lanes[EXEC_LANES];
    for (uint32_t l = 0; l < EXEC_LANES; l++) lanes[l] = scalar;
    return LLVMConstVector(lanes, EXEC_LANES);
  }
  value one = LLVMBuildInsertElement(g->b, LLVMGetUndef(type), scalar, gen_i32(g, 0), "");
  return LLVMBuildShuffleVector(g->b, one, LLVMGetUndef(type), LLVMConstNull(gen_vector_type(g->i32)), "");
}

value gen_at(generator *g, value base, uint64_t offset) {
  if (!offset) return base;
  value index = gen_i64(g, offset);
  return LLVMBuildGEP2(g->b, g->i8, base, &index, 1, "");
}

value gen_load(generator *g, LLVMTypeRef type, value at, uint32_t align) {
  value loaded = LLVMBuildLoad2(g->b, type, LLVMBuildBitCast(g->b, at, LLVMPointerType(type, 0), ""), "");
  LLVMSetAlignment(loaded, align);
  return loaded;
}

void gen_store(generator *g, value v, value at, uint32_t align) {
  value stored = LLVMBuildStore(g->b, v, LLVMBuildBitCast(g->b, at, LLVMPointerType(LLVMTypeOf(v), 0), ""));
  LLVMSetAlignment(stored, align);
}

value gen_field(generator *g, LLVMTypeRef type, value base, uint32_t offset) {
  uint32_t align = type == g->i32 ? 4 : type == g->i8 ? 1 : 8;
  return gen_load(g, type, gen_at(g, base, offset), align);
}

value gen_intrinsic(generator *g, const char *name, LLVMTypeRef *types, uint32_t type_count, value *arguments,
                    uint32_t count) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  value function = LLVMGetIntrinsicDeclaration(g->module, id, types, type_count);
  return LLVMBuildCall2(g->b, LLVMIntrinsicGetType(g->context, id, types, type_count), function, arguments, count, "");
}

/* With AVX-512 that is a mask register. Else each lane's bit is moved to its sign, which is what blends look at: a
 * bitcast becomes instructions for every single bit. */
value gen_lanes(generator *g, value bits) {
  if (g->wide_vectors && !g->emulated) return LLVMBuildBitCast(g->b, bits, gen_vector_type(g->i1), "");
  value places[EXEC_LANES];
  for (uint32_t l = 0; l < EXEC_LANES; l++) places[l] = gen_i32(g, EXEC_LANES - 1 - l);
  value signs = LLVMBuildShl(g->b, gen_splat(g, bits), LLVMConstVector(places, EXEC_LANES), "");
  return LLVMBuildICmp(g->b, LLVMIntSLT, signs, LLVMConstNull(gen_vector_type(g->i32)), "");
}

value gen_bits(generator *g, value lanes) { return LLVMBuildBitCast(g->b, lanes, g->i32, ""); }

static value half(generator *g, value v, uint32_t lanes, uint32_t from) {
  value pick[EXEC_LANES];
  for (uint32_t l = 0; l < lanes; l++) pick[l] = gen_i32(g, from + l);
  return LLVMBuildShuffleVector(g->b, v, LLVMGetUndef(LLVMTypeOf(v)), LLVMConstVector(pick, lanes), "");
}

/* i1: is one of these bits set? They are in as many lanes as AVX2 has in one register. */
static value any_bit(generator *g, value v) {
  v = LLVMBuildBitCast(g->b, v, LLVMVectorType(g->i64, 4), "");
  value arguments[2] = {v, v};
  return LLVMBuildICmp(g->b, LLVMIntEQ, gen_intrinsic(g, "llvm.x86.avx.ptestz.256", NULL, 0, arguments, 2),
                       gen_i32(g, 0), "");
}

static value fold(generator *g, value v, uint32_t lanes) { /* to so many, by OR */
  for (uint32_t now = LLVMGetVectorSize(LLVMTypeOf(v)); now > lanes; now /= 2)
    v = LLVMBuildOr(g->b, half(g, v, now / 2, 0), half(g, v, now / 2, now / 2), "");
  return v;
}

/* Without mask registers, what differs is brought into one register and tested there: putting a bit of each comparison
 * together takes twice as long. */
value gen_same(generator *g, value x, value y) {
  if (g->wide_vectors && !g->emulated) {
    value bits = gen_bits(g, LLVMBuildICmp(g->b, LLVMIntEQ, x, y, ""));
    return LLVMBuildICmp(g->b, LLVMIntEQ, bits, gen_i32(g, UINT32_MAX), "");
  }
  value apart = fold(g, LLVMBuildXor(g->b, x, y, ""), LLVMGetElementType(LLVMTypeOf(x)) == g->i32 ? 8 : 4);
  return LLVMBuildNot(g->b, any_bit(g, apart), "");
}

/* One comparison asks two numbers. */
value gen_any_nan(generator *g, value v) {
  value none =
      LLVMBuildFCmp(g->b, LLVMRealUNO, half(g, v, EXEC_LANES / 2, 0), half(g, v, EXEC_LANES / 2, EXEC_LANES / 2), "");
  if (g->wide_vectors && !g->emulated) {
    LLVMTypeRef bits = LLVMIntTypeInContext(g->context, EXEC_LANES / 2);
    return LLVMBuildICmp(g->b, LLVMIntNE, LLVMBuildBitCast(g->b, none, bits, ""), LLVMConstInt(bits, 0, false), "");
  }
  return any_bit(g, fold(g, LLVMBuildSExt(g->b, none, LLVMVectorType(g->i64, EXEC_LANES / 2), ""), 4));
}

void gen_set_attributes(generator *g) {
  const char *const attributes[][2] = {
      {"prefer-vector-width", "512"}, {"min-legal-vector-width", "512"}, {"no-builtins", ""}};
  for (int a = 0; a < 3; a++)
    LLVMAddAttributeAtIndex(g->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(g->context, attributes[a][0], (unsigned)strlen(attributes[a][0]),
                                                      attributes[a][1], (unsigned)strlen(attributes[a][1])));
}

LLVMBasicBlockRef gen_block(generator *g, const char *name) {
  return LLVMAppendBasicBlockInContext(g->context, g->function, name);
}
void gen_branch(generator *g, value condition, LLVMBasicBlockRef yes, LLVMBasicBlockRef no, LLVMBasicBlockRef usual,
                uint32_t times) {
  LLVMValueRef branch = LLVMBuildCondBr(g->b, condition, yes, no);
  LLVMMetadataRef weights[3] = {LLVMMDStringInContext2(g->context, "branch_weights", strlen("branch_weights")),
                                LLVMValueAsMetadata(gen_i32(g, usual == yes ? times : 1)),
                                LLVMValueAsMetadata(gen_i32(g, usual == yes ? 1 : times))};
  LLVMMetadataRef node = LLVMMDNodeInContext2(g->context, weights, 3);
  LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(g->context, "prof", strlen("prof")),
                  LLVMMetadataAsValue(g->context, node));
}

value gen_instr_address(generator *g) { return gen_at(g, g->code, (uint64_t)g->now * g->at->instr_bytes); }

value gen_variable(generator *g, LLVMTypeRef type) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
  value first = LLVMGetFirstInstruction(g->entry);
  if (first) LLVMPositionBuilderBefore(g->b, first);
  else LLVMPositionBuilderAtEnd(g->b, g->entry);
  value made = LLVMBuildAlloca(g->b, type, "");
  LLVMPositionBuilderAtEnd(g->b, here);
  return made;
}

value gen_in_memory(generator *g, value v) {
  value row = gen_variable(g, LLVMTypeOf(v));
  gen_store(g, v, row, 64);
  return LLVMBuildBitCast(g->b, row, g->pointer, "");
}

value gen_read(generator *g, LLVMTypeRef type, value v) { return LLVMBuildLoad2(g->b, type, v, ""); }

/* ---- slots ---- */

LLVMTypeRef gen_scalar_type(generator *g, uint32_t bytes) { return bytes == 0 ? g->i1 : bytes == 4 ? g->i32 : g->i64; }
static LLVMTypeRef frame_type(generator *g, uint32_t bytes) {
  return bytes == 0 ? g->i32 : gen_vector_type(gen_scalar_type(g, bytes));
}

static value to_vector(generator *g, uint32_t bytes, value scalar) {
  return bytes ? gen_splat(g, scalar) : LLVMBuildSExt(g->b, scalar, g->i32, "");
}

value gen_frame_vector(generator *g, uint32_t slot) {
  const plan_slot *s = &g->plan->slots[slot];
  return gen_load(g, frame_type(g, s->bytes), gen_at(g, g->frame, s->offset), s->bytes ? 64 : 4);
}

value gen_one_of_all(generator *g, uint32_t slot, const gen_slot *known) {
  if (known->scalar) return known->scalar;
  if (known->affine.base) return gen_affine_at(g, &known->affine, gen_i32(g, 0));
  value v = known->vector ? known->vector : gen_frame_vector(g, slot);
  return g->plan->slots[slot].bytes ? LLVMBuildExtractElement(g->b, v, gen_i32(g, 0), "")
                                    : LLVMBuildTrunc(g->b, v, g->i1, "");
}

/* Writes a vector to its slot in the frame, for the active lanes. */
static void frame_store(generator *g, uint32_t slot, value v) {
  const plan_slot *s = &g->plan->slots[slot];
  value at = gen_at(g, g->frame, s->offset);
  if (g->full) {
    gen_store(g, v, at, s->bytes ? 64 : 4);
  } else if (!s->bytes) {
    value kept = LLVMBuildAnd(g->b, gen_load(g, g->i32, at, 4), LLVMBuildNot(g->b, g->active, ""), "");
    gen_store(g, LLVMBuildOr(g->b, kept, LLVMBuildAnd(g->b, v, g->active, ""), ""), at, 4);
  } else if (!g->wide_vectors) { /* masked stores are slow there, and no other code writes the frame */
    gen_store(g, LLVMBuildSelect(g->b, g->mask, v, gen_load(g, LLVMTypeOf(v), at, 64), ""), at, 64);
  } else {
    LLVMTypeRef type = LLVMTypeOf(v), pointer = LLVMPointerType(type, 0), types[2] = {type, pointer};
    value arguments[4] = {v, LLVMBuildBitCast(g->b, at, pointer, ""), gen_i32(g, 64), g->mask};
    gen_intrinsic(g, "llvm.masked.store", types, 2, arguments, 4);
  }
}

void gen_write_slot(generator *g, uint32_t slot) {
  const gen_slot *s = &g->slots[slot];
  value v = s->vector   ? s->vector
            : s->scalar ? to_vector(g, g->plan->slots[slot].bytes, s->scalar)
                        : gen_affine_vector(g, &s->affine);
  frame_store(g, slot, v);
}

void gen_write_back(generator *g, uint32_t k) {
  uint32_t slot = g->plan->slot_of[k];
  if (slot != NATIVE_NONE && g->slots[slot].stale) gen_write_slot(g, slot);
}

static value constant(generator *g, const native_operand *o) {
  if (o->constant == 1) return LLVMConstInt(gen_scalar_type(g, o->bytes), o->value, false);
  return gen_load(g, gen_scalar_type(g, o->bytes), gen_at(g, g->pool, o->offset & ~1u), 8);
}

value gen_scalar(generator *g, uint32_t k) {
  uint32_t slot = g->plan->slot_of[k];
  if (slot != NATIVE_NONE) return g->slots[slot].scalar;
  const native_operand *o = &g->plan->operands[k];
  return o->constant ? constant(g, o) : NULL;
}

/* What is one number becomes a vector where it is needed: that place may be on a side path. */
value gen_slot_vector(generator *g, uint32_t slot) {
  gen_slot *s = &g->slots[slot];
  if (s->vector) return s->vector;
  if (s->scalar) return to_vector(g, g->plan->slots[slot].bytes, s->scalar);
  if (s->affine.base) return gen_affine_vector(g, &s->affine);
  return s->vector = gen_frame_vector(g, slot);
}

value gen_vector(generator *g, uint32_t k) {
  uint32_t slot = g->plan->slot_of[k];
  const native_operand *o = &g->plan->operands[k];
  if (slot == NATIVE_NONE)
    return o->constant ? to_vector(g, o->bytes, constant(g, o))
                       : gen_load(g, frame_type(g, o->bytes), gen_at(g, g->pool, o->offset & ~1u), 64);
  return gen_slot_vector(g, slot);
}

/* The same place under another width: what was known of it is gone. */
static void forget_others(generator *g, uint32_t slot) {
  for (uint32_t s = 0; s < g->plan->slot_count; s++)
    if (s != slot && g->plan->slots[s].offset == g->plan->slots[slot].offset) g->slots[s] = (gen_slot){0};
}

void gen_put(generator *g, uint32_t k, value scalar, value vector) {
  uint32_t slot = g->plan->slot_of[k];
  forget_others(g, slot);
  g->slots[slot] = (gen_slot){.scalar = scalar, .vector = vector, .stale = true};
}

void gen_put_raw(generator *g, uint32_t k, value raw) { g->slots[g->plan->slot_of[k]].raw = raw; }

value gen_raw(generator *g, uint32_t k, bool vector) {
  uint32_t slot = g->plan->slot_of[k];
  if (slot == NATIVE_NONE || !g->slots[slot].raw) return NULL;
  value raw = g->slots[slot].raw;
  bool is_vector = LLVMGetTypeKind(LLVMTypeOf(raw)) == LLVMVectorTypeKind;
  return is_vector == vector ? raw : vector ? gen_splat(g, raw) : NULL;
}

/* ---- leaving ---- */

/* Back to the interpreter, which goes on at instruction pc. */
static void leave(generator *g, uint32_t pc, uint32_t how) {
  LLVMBuildStore(g->b, gen_i32(g, pc), g->leave_pc);
  LLVMBuildStore(g->b, gen_i32(g, how), g->leave_how);
  LLVMBuildBr(g->b, g->leaving);
}

static void end_leaving(generator *g) {
  LLVMPositionBuilderAtEnd(g->b, g->leaving);
  gen_flush_counters(g);
  value number = LLVMBuildZExt(g->b, gen_read(g, g->i32, g->leave_pc), g->i64, "");
  value offset = LLVMBuildMul(g->b, number, gen_i64(g, g->at->instr_bytes), "");
  gen_store(g, LLVMBuildGEP2(g->b, g->i8, g->code, &offset, 1, ""), gen_at(g, g->warp, g->at->warp_pc), 8);
  LLVMBuildRet(g->b, gen_read(g, g->i32, g->leave_how));
}

void gen_write_stale(generator *g, const uint64_t *live, bool put) {
  gen_one *scalars = ff_alloc((g->plan->slot_count + 1) * sizeof *scalars);
  uint32_t count = 0;
  for (uint32_t s = 0; s < g->plan->slot_count; s++) {
    const gen_slot *slot = &g->slots[s];
    if (!slot->stale || (live && !plan_has(live, s))) continue;
    if (g->full && !slot->vector && !slot->affine.narrow) scalars[count++] = (gen_one){s, (int32_t)slot->affine.step};
    else gen_write_slot(g, s);
  }
  gen_spread(g, scalars, count, put);
  free(scalars);
}

void gen_leave_if(generator *g, value condition, uint32_t pc, uint32_t how, const uint64_t *live, uint32_t also) {
  LLVMBasicBlockRef out = gen_block(g, "leave"), on = gen_block(g, "stay");
  gen_branch(g, condition, out, on, on, GEN_NEARLY_ALWAYS);
  LLVMPositionBuilderAtEnd(g->b, out);
  gen_write_stale(g, live, true);
  if (also != NATIVE_NONE) gen_write_back(g, also);
  leave(g, pc, how);
  LLVMPositionBuilderAtEnd(g->b, on);
}

void gen_leave_unless(generator *g, value good, uint32_t pc, const uint64_t *live) {
  LLVMBasicBlockRef out = gen_block(g, "leave"), on = gen_block(g, "stay");
  gen_branch(g, good, on, out, on, GEN_NEARLY_ALWAYS);
  LLVMPositionBuilderAtEnd(g->b, out);
  gen_write_stale(g, live, false);
  leave(g, pc, EXEC_NATIVE_UNLIKE);
  LLVMPositionBuilderAtEnd(g->b, on);
}

/* ---- handlers ---- */

void gen_written(generator *g, const native_instr *n) {
  for (uint32_t w = 0; w < n->write_count; w++) {
    uint32_t slot = g->plan->slot_of[n->operands + n->read_count + w];
    forget_others(g, slot);
    g->slots[slot] = (gen_slot){0};
  }
}

void gen_handler(generator *g, const native_instr *n) {
  gen_call_handler(g, n);
  for (uint32_t r = 0; r < n->read_count; r++)
    if (g->plan->slot_of[n->operands + r] != NATIVE_NONE) g->slots[g->plan->slot_of[n->operands + r]].stale = false;
  gen_written(g, n);
}

/* ---- blocks ---- */

/* What is live at the end of the block, before its last instruction if that is a branch. */
static uint64_t *live_at_end(const generator *g, const plan_block *block) {
  const native_instr *last = &g->plan->code[block->end - 1];
  uint64_t *live = ff_alloc(g->plan->words * sizeof *live);
  memcpy(live, block->live_out, g->plan->words * sizeof *live);
  if (plan_ends_block(last)) plan_live_before(g->plan, last, live);
  return live;
}

/* What the blocks that follow need: vectors go to the frame, what is one number to its spill_slot. */
static void hand_over(generator *g, const plan_block *block) {
  const plan *p = g->plan;
  uint64_t *live = live_at_end(g, block);
  uint32_t pc = plan_ends_block(&p->code[block->end - 1]) && p->code[block->end - 1].op != NATIVE_SYNC ? block->end - 1
                                                                                                       : block->end;
  gen_settle_steps(g, block->next, block->next_count, live, pc);
  free(live);
  for (uint32_t s = 0; s < p->slot_count; s++) {
    gen_slot *slot = &g->slots[s];
    if (!plan_has(block->live_out, s)) continue;
    bool as_scalar = false, as_steps = false, as_vector = false;
    for (uint32_t n = 0; n < block->next_count; n++) {
      const plan_block *next = &p->blocks[block->next[n]];
      if (!plan_has(next->live_in, s)) continue;
      if (g->full && plan_has(next->uniform_in, s)) as_scalar = true;
      else if (g->full && plan_step_in(p, block->next[n], s)) as_steps = true;
      else as_vector = true;
    }
    if (!block->next_count) as_vector = true;
    if (as_scalar) slot->scalar = gen_one_of_all(g, s, slot);
    if (as_scalar || as_steps) gen_put_uniform(g, s, as_scalar ? slot->scalar : slot->affine.base);
    if (slot->stale && (as_vector || !(slot->scalar || as_steps))) {
      gen_write_slot(g, s);
      slot->stale = false;
    }
  }
}

void gen_compute(generator *g, const native_instr *n) {
  switch (n->op) {
  case NATIVE_NOTHING: return;
  case NATIVE_HANDLER: gen_handler(g, n); return;
  case NATIVE_WARP_SYNC: LLVMBuildFence(g->b, LLVMAtomicOrderingSequentiallyConsistent, true, ""); return;
  case NATIVE_ACCESS:
    if (!gen_access(g, n)) gen_handler(g, n);
    return;
  default:
    if (!gen_form(g, n)) gen_handler(g, n);
  }
}

static void begin_block(generator *g, uint32_t b) {
  memset(g->slots, 0, g->plan->slot_count * sizeof *g->slots);
  g->shape_count = 0;
  if (!g->full) {
    g->active = gen_read(g, g->i32, g->lanes);
    g->mask = gen_lanes(g, g->active);
    return;
  }
  for (uint32_t s = 0; s < g->plan->slot_count; s++) {
    if (!plan_passes(g->plan, b, s)) continue;
    value one = gen_uniform(g, s);
    int32_t step = plan_step_in(g->plan, b, s);
    g->slots[s] = step ? (gen_slot){.affine = {.base = one, .step = step}, .stale = true}
                       : (gen_slot){.scalar = one, .stale = true};
  }
}

/* A warp's first turn ends before this instruction. What is needed then: what is live at the block's end, and whatever
 * this block still reads: all that has changed. */
static void end_first_turn(generator *g) {
  LLVMBasicBlockRef out = gen_block(g, "first_turn"), on = gen_block(g, "stay");
  gen_branch(g, g->starting, out, on, on, GEN_NEARLY_ALWAYS);
  LLVMPositionBuilderAtEnd(g->b, out);
  gen_write_stale(g, NULL, false);
  leave(g, g->now, EXEC_NATIVE_EXIT);
  LLVMPositionBuilderAtEnd(g->b, on);
}

static bool is_entry(const plan *p, uint32_t b) {
  const native_instr *first = &p->code[p->blocks[b].first];
  return (first->attention & EXEC_ATTEND_NATIVE) && first->op != NATIVE_EXIT;
}

/* What block b takes for one number; returns how many slots that are. */
static uint32_t uniform_slots(const plan *p, uint32_t b, gen_one *slots) {
  uint32_t count = 0;
  for (uint32_t s = 0; s < p->slot_count; s++)
    if (plan_passes(p, b, s)) slots[count++] = (gen_one){s, plan_step_in(p, b, s)};
  return count;
}

/* Is this the end of block b at a barrier behind which code for full warps goes on, and tests nothing
 * (EXEC_NATIVE_KNOWN)? */
static bool goes_on_behind(const generator *g, uint32_t b) {
  const plan *p = g->plan;
  const native_instr *last = &p->code[p->blocks[b].end - 1];
  return g->full && last->op == NATIVE_EXIT && last->flow == EXEC_FLOW_BARRIER && last->guard == NATIVE_NONE &&
         p->blocks[b].end < p->count && p->block_of[p->blocks[b].end] == b + 1 && is_entry(p, b + 1);
}

/* Are there no more values to keep over that barrier than there is room for? */
static bool keeps(const generator *g, uint32_t b, gen_one *slots, uint32_t *count) {
  if (!goes_on_behind(g, b)) return false;
  *count = uniform_slots(g->plan, b + 1, slots);
  return *count && *count <= EXEC_KEPT;
}

/* The warp waits at a barrier: what is one number stays that, but for what the barrier itself reads. Whether kept or in
 * the frame, it is linear where code behind relies on that. */
static void keep_over_barrier(generator *g, const plan_block *block, const native_instr *barrier) {
  gen_one *slots = ff_alloc((g->plan->slot_count + 1) * sizeof *slots);
  uint32_t b = (uint32_t)(block - g->plan->blocks), behind = b + 1, count;
  if (goes_on_behind(g, b)) {
    uint64_t *live = live_at_end(g, block);
    gen_settle_steps(g, &behind, 1, live, block->end - 1);
    free(live);
  }
  if (keeps(g, b, slots, &count)) {
    for (uint32_t r = 0; r < barrier->read_count; r++) gen_write_back(g, barrier->operands + r);
    gen_keep(g, slots, count);
    for (uint32_t n = 0; n < count; n++)
      if (!g->slots[slots[n].slot].vector) g->slots[slots[n].slot].stale = false;
  }
  free(slots);
}

static void end_block(generator *g, const plan_block *block) {
  const native_instr *last = &g->plan->code[block->end - 1];
  if (!plan_ends_block(last)) {
    hand_over(g, block);
    if (block->end < g->plan->count) gen_go_to(g, block->end);
    else leave(g, g->now, EXEC_NATIVE_EXIT);
    return;
  }
  switch (last->op) {
  case NATIVE_BRANCH:
    hand_over(g, block);
    gen_take(g, last);
    return;
  case NATIVE_BRANCH_IF:
    hand_over(g, block);
    gen_branch_if(g, last, block);
    return;
  case NATIVE_BRANCH_INDEXED:
    hand_over(g, block);
    gen_branch_indexed(g, last, block);
    return;
  case NATIVE_SYNC:
    if (g->full) {
      gen_handler(g, last);
      hand_over(g, block);
      gen_go_to(g, block->end);
      return;
    }
    /* fall through */
  default: {
    uint64_t *live = live_at_end(g, block);
    keep_over_barrier(g, block, last);
    gen_write_stale(g, live, false);
    free(live);
    leave(g, g->now, EXEC_NATIVE_EXIT);
  }
  }
}

static void body(generator *g, uint32_t b) {
  const plan_block *block = &g->plan->blocks[b];
  LLVMPositionBuilderAtEnd(g->b, g->edges[b]);
  memset(g->slots, 0, g->plan->slot_count * sizeof *g->slots);
  g->now = block->first;
  if (!g->full && (g->plan->code[block->first].attention & EXEC_ATTEND_LEADER)) {
    value later = LLVMBuildICmp(g->b, LLVMIntSGE, gen_i64(g, g->plan->code[block->first].rank),
                                gen_read(g, g->i64, g->below), "");
    LLVMBasicBlockRef others = gen_block(g, "others");
    LLVMBuildCondBr(g->b, later, others, g->bodies[b]);
    LLVMPositionBuilderAtEnd(g->b, others);
    gen_meet(g);
  } else {
    LLVMBuildBr(g->b, g->bodies[b]);
  }
  LLVMPositionBuilderAtEnd(g->b, g->bodies[b]);
  begin_block(g, b);
  for (uint32_t n = block->first; n < block->end; n++) {
    g->now = n;
    if (g->plan->code[n].attention & EXEC_ATTEND_START) end_first_turn(g);
    if (g->full || g->plan->code[n].op != NATIVE_SYNC) {
      gen_mark(g, &g->plan->code[n]);
      gen_wait(g, &g->plan->code[n]);
    }
    if (!plan_ends_block(&g->plan->code[n])) gen_compute(g, &g->plan->code[n]);
  }
  g->now = block->end - 1;
  end_block(g, block);
}

/* ---- entries ---- */

/* Behind a barrier they may have been kept. */
static void enter_with_kept(generator *g, uint32_t b, const gen_one *slots, uint32_t count) {
  LLVMBasicBlockRef kept = gen_block(g, "kept"), not_kept = gen_block(g, "not_kept");
  value places = gen_field(g, g->i64, g->warp, g->at->warp_kept_places);
  LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, places, gen_i64(g, 0), ""), not_kept, kept);
  LLVMPositionBuilderAtEnd(g->b, kept);
  gen_take_kept(g, slots, count);
  LLVMBuildBr(g->b, g->bodies[b]);
  LLVMPositionBuilderAtEnd(g->b, not_kept);
}

/* From the interpreter into block b: what is one number comes out of the frame, if it is that. */
static void enter_block(generator *g, uint32_t b, LLVMBasicBlockRef decline) {
  const plan *p = g->plan;
  gen_one *slots = ff_alloc((p->slot_count + 1) * sizeof *slots);
  uint32_t count = g->full ? uniform_slots(p, b, slots) : 0, kept;
  if (b && keeps(g, b - 1, slots, &kept)) enter_with_kept(g, b, slots, count);
  if (count) LLVMBuildCondBr(g->b, gen_collect(g, slots, count), g->bodies[b], decline);
  else LLVMBuildBr(g->b, g->bodies[b]);
  free(slots);
}

static void prologue(generator *g) {
  const native_layout *at = g->at;
  g->warp = LLVMGetParam(g->function, 0);
  g->api = LLVMGetParam(g->function, 2);
  g->leave_pc = gen_variable(g, g->i32);
  g->leave_how = gen_variable(g, g->i32);
  LLVMPositionBuilderAtEnd(g->b, g->entry);
  gen_begin_counting(g);
  if (g->full) gen_begin_spill_slots(g);
  g->frame = gen_field(g, g->pointer, g->warp, at->warp_base0);
  g->pool = gen_field(g, g->pointer, g->warp, at->warp_base1);
  g->code = gen_field(g, g->pointer, gen_field(g, g->pointer, g->warp, at->warp_function), at->function_code);
  g->starting = LLVMBuildICmp(g->b, LLVMIntNE, gen_field(g, g->i8, g->warp, at->warp_starting),
                              LLVMConstInt(g->i8, 0, false), "");
  if (g->full) g->active = gen_i32(g, UINT32_MAX);
  gen_begin_splits(g);
}

void gen_function(generator *g, const plan *p, const native_function *function, uint32_t number) {
  char name[64];
  snprintf(name, sizeof name, "native_%u", number);
  LLVMTypeRef parameters[3] = {g->pointer, g->i32, g->pointer};
  g->plan = p;
  g->full = !g->request->any;
  g->hammock_room = p->count + 96;
  g->has_sfu = function->has_sfu;
  g->has_fp64 = function->has_fp64;
  g->function = LLVMAddFunction(g->module, name, LLVMFunctionType(g->i32, parameters, 3, false));
  gen_set_attributes(g);
  g->slots = ff_alloc((p->slot_count + 1) * sizeof *g->slots);
  g->edges = ff_alloc((p->block_count + 1) * sizeof *g->edges);
  g->bodies = ff_alloc((p->block_count + 1) * sizeof *g->bodies);
  g->entry = gen_block(g, "entry");
  LLVMPositionBuilderAtEnd(g->b, g->entry);
  prologue(g);
  g->leaving = gen_block(g, "leaving");
  for (uint32_t b = 0; b < p->block_count; b++) {
    g->edges[b] = gen_block(g, "edge");
    g->bodies[b] = gen_block(g, "body");
  }
  for (uint32_t b = 0; b < p->block_count; b++) body(g, b);
  end_leaving(g);
  LLVMBasicBlockRef none = gen_block(g, "no_entry"), decline = gen_block(g, "decline");
  LLVMPositionBuilderAtEnd(g->b, none);
  LLVMBuildRet(g->b, gen_i32(g, EXEC_NATIVE_NOTHING));
  LLVMPositionBuilderAtEnd(g->b, decline);
  LLVMBuildRet(g->b, gen_i32(g, EXEC_NATIVE_DECLINE));
  gen_end_splits(g);
  value where = gen_dispatch(g, none);
  for (uint32_t b = 0; b < p->block_count; b++) {
    if (!is_entry(p, b)) continue;
    LLVMBasicBlockRef from = gen_block(g, "enter");
    LLVMAddCase(where, gen_i32(g, p->blocks[b].first), from);
    LLVMPositionBuilderAtEnd(g->b, from);
    enter_block(g, b, decline);
  }
  if (g->full) gen_end_spill_slots(g);
  free(g->slots);
  free(g->edges);
  free(g->bodies);
}
