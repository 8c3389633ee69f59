/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are one number for all lanes, from block to block of code for full warps: the same in each lane, or lane
 * 0's, with a step to the next that is known when the code is made.
 *
 * Each slot that is so somewhere has a spill_slot, a cell on the stack: as variables they would be phis of every block,
 * and each entry and way out a copy of all of them. Which spill_slots go to the frame, or come from there, is a table;
 * exec_native_api's functions read it. Only what an innermost loop needs is a variable, which LLVM keeps in a register;
 * its spill_slot has it on the ways in and out. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "compile/generator/generate.h"

static LLVMTypeRef type_of(generator *g, uint32_t slot) { return gen_scalar_type(g, g->plan->slots[slot].bytes); }

/* Is there a loop from block b back to block `first`, and none inside of it? */
static bool innermost(const plan *p, uint32_t first, uint32_t b) {
  for (uint32_t c = first; c < b; c++)
    for (uint32_t n = 0; n < p->blocks[c].next_count; n++)
      if (p->blocks[c].next[n] <= c && p->blocks[c].next[n] >= first) return false;
  return true;
}

static void keep_slots_of(generator *g, uint32_t b) {
  for (uint32_t s = 0; s < g->plan->slot_count; s++)
    if (!g->kept[s] && plan_passes(g->plan, b, s)) g->kept[s] = gen_variable(g, type_of(g, s));
}

static void keep_loops(generator *g) {
  const plan *p = g->plan;
  for (uint32_t b = 0; b < p->block_count; b++)
    for (uint32_t n = 0; n < p->blocks[b].next_count; n++) {
      uint32_t first = p->blocks[b].next[n];
      if (first > b || !innermost(p, first, b)) continue;
      for (uint32_t c = first; c <= b; c++) keep_slots_of(g, c);
    }
}

void gen_begin_spill_slots(generator *g) {
  g->spill_slot = ff_alloc((g->plan->slot_count + 1) * sizeof *g->spill_slot);
  g->kept = ff_alloc((g->plan->slot_count + 1) * sizeof *g->kept);
  g->spill_count = 0;
  g->spill_slots = LLVMBuildAlloca(g->b, g->i8, ""); /* stands for them until it is known how many there are */
  keep_loops(g);
}

/* LLVM's InstCombine rewrites addresses in an array that do not have the array's type, and each time looks at all
 * users of the array: with thousands of them that was half of the time a kernel took. So all of them get the type. */
void gen_end_spill_slots(generator *g) {
  LLVMTypeRef type = LLVMArrayType(g->i64, g->spill_count + 1);
  LLVMPositionBuilderBefore(g->b, g->spill_slots);
  value area = LLVMBuildAlloca(g->b, type, "spill_slots");
  for (size_t n = 0; n < g->spill_uses.count; n++) {
    const spill_use *use = &g->spill_uses.items[n];
    value index[2] = {gen_i64(g, 0), gen_i64(g, use->index)};
    LLVMPositionBuilderBefore(g->b, use->place);
    value place = LLVMBuildInBoundsGEP2(g->b, type, area, index, 2, "");
    LLVMReplaceAllUsesWith(use->place, LLVMBuildBitCast(g->b, place, g->pointer, ""));
    LLVMInstructionEraseFromParent(use->place);
  }
  LLVMPositionBuilderBefore(g->b, g->spill_slots);
  LLVMReplaceAllUsesWith(g->spill_slots, LLVMBuildBitCast(g->b, area, g->pointer, ""));
  LLVMInstructionEraseFromParent(g->spill_slots);
  free(g->spill_uses.items);
  memset(&g->spill_uses, 0, sizeof g->spill_uses);
  free(g->spill_slot);
  free(g->kept);
}

static uint32_t spill_slot_of(generator *g, uint32_t slot) {
  if (!g->spill_slot[slot]) g->spill_slot[slot] = ++g->spill_count;
  return g->spill_slot[slot];
}

static value spill_place(generator *g, uint32_t slot) {
  spill_use use = {.index = spill_slot_of(g, slot)};
  use.place = gen_at(g, g->spill_slots, 8 * (uint64_t)use.index);
  FF_PUSH(&g->spill_uses, use);
  return use.place;
}

value gen_uniform(generator *g, uint32_t slot) {
  return g->kept[slot] ? gen_read(g, type_of(g, slot), g->kept[slot])
                       : gen_load(g, type_of(g, slot), spill_place(g, slot), 8);
}

void gen_put_uniform(generator *g, uint32_t slot, value scalar) {
  if (g->kept[slot]) LLVMBuildStore(g->b, scalar, g->kept[slot]);
  else gen_store(g, scalar, spill_place(g, slot), 8);
}

/* A constant of the module: place of each of these slots, its spill_slot, or its number if it is kept, and its step. */
static value table_of(generator *g, const gen_one *slots, uint32_t count, bool kept) {
  value *items = ff_alloc((3 * count + 1) * sizeof *items);
  for (uint32_t n = 0; n < count; n++) {
    const plan_slot *s = &g->plan->slots[slots[n].slot];
    items[3 * n] = gen_i32(g, s->offset | (s->bytes == 8 ? 1 : s->bytes ? 0 : 2));
    items[3 * n + 1] = gen_i32(g, kept ? n : spill_slot_of(g, slots[n].slot));
    items[3 * n + 2] = gen_i32(g, (uint32_t)slots[n].step);
  }
  items[3 * count] = gen_i32(g, UINT32_MAX);
  value all = LLVMConstArray(g->i32, items, 3 * count + 1), made = LLVMAddGlobal(g->module, LLVMTypeOf(all), "places");
  LLVMSetInitializer(made, all);
  LLVMSetGlobalConstant(made, true);
  LLVMSetLinkage(made, LLVMPrivateLinkage);
  free(items);
  return LLVMConstBitCast(made, g->pointer);
}

void gen_spread(generator *g, const gen_one *slots, uint32_t count, bool put) {
  if (!count) return;
  for (uint32_t n = 0; n < count; n++)
    if (!put || g->kept[slots[n].slot])
      gen_store(g, gen_one_of_all(g, slots[n].slot, &g->slots[slots[n].slot]), spill_place(g, slots[n].slot), 8);
  LLVMTypeRef types[3] = {g->pointer, g->pointer, g->pointer},
              type = LLVMFunctionType(LLVMVoidTypeInContext(g->context), types, 3, false);
  value arguments[3] = {g->warp, table_of(g, slots, count, false), g->spill_slots};
  LLVMBuildCall2(g->b, type, gen_field(g, LLVMPointerType(type, 0), g->api, g->at->api_spread), arguments, 3, "");
}

value gen_collect(generator *g, const gen_one *slots, uint32_t count) {
  LLVMTypeRef types[4] = {g->pointer, g->pointer, g->pointer, g->i32}, type = LLVMFunctionType(g->i8, types, 4, false);
  value arguments[4] = {g->warp, table_of(g, slots, count, false), g->spill_slots, LLVMGetParam(g->function, 1)};
  value good =
      LLVMBuildCall2(g->b, type, gen_field(g, LLVMPointerType(type, 0), g->api, g->at->api_collect), arguments, 4, "");
  for (uint32_t n = 0; n < count; n++)
    if (g->kept[slots[n].slot])
      LLVMBuildStore(g->b, gen_load(g, type_of(g, slots[n].slot), spill_place(g, slots[n].slot), 8),
                     g->kept[slots[n].slot]);
  return LLVMBuildICmp(g->b, LLVMIntNE, good, LLVMConstInt(g->i8, 0, false), "");
}

void gen_keep(generator *g, const gen_one *slots, uint32_t count) {
  for (uint32_t n = 0; n < count; n++) {
    value wide = LLVMBuildZExt(g->b, gen_one_of_all(g, slots[n].slot, &g->slots[slots[n].slot]), g->i64, "");
    gen_store(g, wide, gen_at(g, g->warp, g->at->warp_kept + 8 * (uint64_t)n), 8);
  }
  gen_store(g, table_of(g, slots, count, true), gen_at(g, g->warp, g->at->warp_kept_places), 8);
}

void gen_take_kept(generator *g, const gen_one *slots, uint32_t count) {
  for (uint32_t n = 0; n < count; n++) {
    value wide = gen_field(g, g->i64, g->warp, g->at->warp_kept + 8 * n);
    gen_put_uniform(g, slots[n].slot, LLVMBuildTrunc(g->b, wide, type_of(g, slots[n].slot), ""));
  }
  gen_store(g, LLVMConstNull(g->pointer), gen_at(g, g->warp, g->at->warp_kept_places), 8);
}
