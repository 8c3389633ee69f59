/* SPDX-License-Identifier: Apache-2.0 */
/* Short regions under masks: where a branch parts lanes, and all ways meet again a few instructions later, the region
 * is executed here, in the order of its blocks, each once, for the lanes that come to it, without a call.
 *
 *   branch: which lanes go where --> block, for its lanes --> next block, for its lanes, with those that came later ... --> all go on at the meeting block
 *
 * A short loop is the same in rounds: lanes that its last branch leads back are those of the next one. Before each
 * round it is seen whether the turn could end in it; then the lanes are left to what runs parted lanes.
 *
 * That is the order in which the interpreter runs these lanes (ranks rise from block to block, and
 * no other split stands in between), so memory, counters and the running split are afterwards what they would be. In
 * the body for any lanes other splits may wait: then the region is executed here if the first of them stands no earlier
 * than where all ways meet. Only launches that are told of no access take this way: what is told looks at the running
 * split.
 *
 * Values pass from block to block through the frame, under the block's mask; those that were one for all lanes before
 * the branch, or linear, stay that up to the block that writes them. Their slots are often others' behind their last
 * use. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "compile/generator/generate.h"
#include "exec/core.h"

/* What is known at the branch, while the region's blocks, each for lanes of its own, are made. */
typedef struct lanes_scope {
  value active, mask;
  bool full, masked;
  uint32_t now, shape_count;
  gen_slot *slots;
  struct gen_shape shapes[sizeof((generator *)0)->shapes / sizeof(struct gen_shape)];
} lanes_scope;

typedef struct hammock {
  generator *g;
  const plan *p;
  const plan_hammock *plan;
  uint32_t branch;                 /* the block before */
  lanes_scope outer;               /* at its end */
  value into[PLAN_HAMMOCK_BLOCKS]; /* variables: the lanes that come to each block */
  /* slots of which some lanes may have written, at the block that is made: those of the blocks before it; of a loop all
   * that it writes */
  uint64_t *changed;
} hammock;

/* Does code for full warps take something for one number behind the region that the region writes? Then it is not for
 * here. */
static bool spoils(const hammock *h) {
  for (uint32_t s = 0; s < h->p->slot_count && h->g->full; s++)
    if (plan_has(h->plan->written, s) && plan_passes(h->p, h->plan->meet, s)) return true;
  return false;
}

/* ---- counting ---- */

/* The instructions up to `end` are done, by the lanes that run now; the lanes that run next begin at `next`. */
static void count_up_to(generator *g, uint32_t end, uint32_t next) {
  value passed = LLVMBuildSub(g->b, gen_i32(g, end), gen_read(g, g->i32, g->segment), "");
  gen_count_part(g, LLVMBuildAdd(g->b, gen_read(g, g->i32, g->count), passed, ""), gen_read(g, g->i32, g->lane_count));
  LLVMBuildStore(g->b, gen_i32(g, next), g->segment);
}

/* The lanes that run from here on. */
static void run_lanes(generator *g) {
  LLVMBuildStore(g->b, g->active, g->lanes);
  LLVMBuildStore(g->b, gen_intrinsic(g, "llvm.ctpop", &g->i32, 1, &g->active, 1), g->lane_count);
}

static uint32_t index_of(const hammock *h, uint32_t block) { return h->p->code[h->p->blocks[block].first].index; }

/* ---- which lanes go where ---- */

static void send(const hammock *h, uint32_t to, value lanes) {
  generator *g = h->g;
  for (uint32_t c = 0; c < h->plan->count; c++)
    if (h->plan->inside[c] == to)
      LLVMBuildStore(g->b, LLVMBuildOr(g->b, gen_read(g, g->i32, h->into[c]), lanes, ""), h->into[c]);
}

static value not_zero(generator *g, value v) { return LLVMBuildICmp(g->b, LLVMIntNE, v, gen_i32(g, 0), ""); }

static void branch_inside(const hammock *h, const native_instr *n, const plan_block *block) {
  generator *g = h->g;
  value bits = gen_guard_bits(g, n);
  value taken = LLVMBuildAnd(g->b, bits, g->active, ""),
        rest = LLVMBuildAnd(g->b, g->active, LLVMBuildNot(g->b, bits, ""), "");
  value parts = LLVMBuildAnd(g->b, not_zero(g, taken), not_zero(g, rest), "");
  gen_add_to(g, g->at->warp_diverged, g->i64, LLVMBuildZExt(g->b, parts, g->i64, ""));
  send(h, h->p->block_of[n->target], taken);
  send(h, h->p->block_of[block->end], rest);
}

/* ---- scopes ---- */

static void push_lanes(generator *g, lanes_scope *outer) {
  uint32_t bytes = g->plan->slot_count * (uint32_t)sizeof *g->slots;
  *outer = (lanes_scope){.active = g->active,
                         .mask = g->mask,
                         .full = g->full,
                         .masked = g->masked,
                         .now = g->now,
                         .shape_count = g->shape_count};
  outer->slots = ff_alloc(bytes + sizeof *g->slots);
  memcpy(outer->slots, g->slots, bytes);
  memcpy(outer->shapes, g->shapes, sizeof outer->shapes);
}

static void pop_lanes(generator *g, lanes_scope *outer) {
  g->active = outer->active;
  g->mask = outer->mask;
  g->full = outer->full;
  g->masked = outer->masked;
  g->now = outer->now;
  memcpy(g->slots, outer->slots, g->plan->slot_count * sizeof *g->slots);
  memcpy(g->shapes, outer->shapes, sizeof outer->shapes);
  g->shape_count = outer->shape_count;
  free(outer->slots);
}

/* ---- blocks ---- */

static void begin_part(const hammock *h) {
  generator *g = h->g;
  memset(g->slots, 0, h->p->slot_count * sizeof *g->slots);
  g->shape_count = 0;
  for (uint32_t s = 0; s < h->p->slot_count; s++) {
    const gen_slot *outer = &h->outer.slots[s];
    if ((!outer->scalar && !outer->affine.base) || plan_has(h->changed, s)) continue;
    bool in_frame = plan_has(h->plan->written, s); /* `begin` has put it there, if it is live */
    g->slots[s] = (gen_slot){.scalar = outer->scalar, .affine = outer->affine, .stale = !in_frame};
  }
  g->mask = gen_lanes(g, g->active);
  run_lanes(g);
}

static void end_part(const hammock *h, const plan_block *block) {
  generator *g = h->g;
  const native_instr *last = &h->p->code[block->end - 1];
  for (uint32_t s = 0; s < h->p->slot_count; s++)
    if (g->slots[s].stale && plan_has(h->plan->written, s) && plan_has(block->live_out, s)) gen_write_slot(g, s);
  uint32_t next = h->p->code[block->end].index;
  if (last->op == NATIVE_BRANCH) send(h, h->p->block_of[last->target], g->active);
  else if (last->op == NATIVE_BRANCH_IF) branch_inside(h, last, block);
  else send(h, h->p->block_of[block->end], g->active);
  if (plan_ends_block(last)) next = last->index + 1;
  count_up_to(g, next, next);
}

static void part(const hammock *h, uint32_t c) {
  generator *g = h->g;
  const plan_block *block = &h->p->blocks[h->plan->inside[c]];
  LLVMBasicBlockRef some = gen_block(g, "part"), on = gen_block(g, "parted");
  value lanes = gen_read(g, g->i32, h->into[c]);
  LLVMBuildCondBr(g->b, not_zero(g, lanes), some, on);
  LLVMPositionBuilderAtEnd(g->b, some);
  g->active = lanes;
  if (h->plan->loop) LLVMBuildStore(g->b, gen_i32(g, 0), h->into[c]);
  LLVMBuildStore(g->b, gen_i32(g, index_of(h, h->plan->inside[c])), g->segment);
  begin_part(h);
  for (uint32_t n = block->first; n < block->end; n++) {
    g->now = n;
    if (!plan_ends_block(&h->p->code[n])) gen_compute(g, &h->p->code[n]);
  }
  end_part(h, block);
  LLVMBuildBr(g->b, on);
  LLVMPositionBuilderAtEnd(g->b, on);
}

/* What the meeting block takes for uniform is in its variables, as if a block before it had handed over. */
static void hand_uniform(const hammock *h) {
  generator *g = h->g;
  for (uint32_t s = 0; s < h->p->slot_count; s++) {
    if (!plan_passes(h->p, h->plan->meet, s)) continue;
    gen_put_uniform(g, s, gen_one_of_all(g, s, &g->slots[s]));
  }
}

/* ---- all together ---- */

/* What will be written in part has to be there as a whole; so has what is a vector for the meeting block, for other
 * ways lead there. */
static bool belongs_in_frame(const hammock *h, uint32_t slot) {
  if (plan_has(h->plan->written, slot)) return plan_has(h->p->blocks[h->branch].live_out, slot);
  return plan_has(h->p->blocks[h->plan->meet].live_in, slot) && !(h->g->full && plan_passes(h->p, h->plan->meet, slot));
}

static void begin(hammock *h, value taken) {
  generator *g = h->g;
  const plan_block *block = &h->p->blocks[h->branch];
  const native_instr *n = &h->p->code[block->end - 1];
  push_lanes(g, &h->outer); /* values that are made here are not there on the way around the region */
  for (uint32_t c = 0; c < h->plan->count; c++) {
    h->into[c] = gen_variable(g, g->i32);
    LLVMBuildStore(g->b, gen_i32(g, 0), h->into[c]);
  }
  for (uint32_t s = 0; s < h->p->slot_count; s++)
    if ((g->slots[s].scalar || g->slots[s].affine.base) && g->slots[s].stale && belongs_in_frame(h, s))
      gen_write_slot(g, s);
  count_up_to(g, n->index + 1, n->index + 1);
  gen_add_to(g, g->at->warp_diverged, g->i64, gen_i64(g, 1));
  send(h, h->p->block_of[n->target], taken);
  send(h, h->p->block_of[block->end], LLVMBuildAnd(g->b, g->active, LLVMBuildNot(g->b, taken, ""), ""));
}

static void parts(hammock *h) {
  generator *g = h->g;
  g->masked = true;
  g->rounds = h->plan->loop;
  g->full = false;
  h->changed = ff_alloc(h->p->words * sizeof *h->changed);
  if (h->plan->loop) memcpy(h->changed, h->plan->written, h->p->words * sizeof *h->changed);
  for (uint32_t c = 0; c < h->plan->count; c++) {
    part(h, c);
    plan_add_written(h->p, h->plan->inside[c], h->changed);
  }
  free(h->changed);
  g->rounds = false;
}

/* All lanes go on at the meeting block. */
static void end(hammock *h) {
  generator *g = h->g;
  pop_lanes(g, &h->outer);
  if (g->full) hand_uniform(h);
  gen_store(g, gen_i32(g, 0), gen_at(g, g->warp, g->at->warp_rotation), 4); /* as where lanes are together again */
  run_lanes(g);
  LLVMBuildStore(g->b, gen_i32(g, index_of(h, h->plan->meet)), g->segment);
  gen_call_flush(g);
  LLVMBuildBr(g->b, g->edges[h->plan->meet]);
  g->hammock_room -= h->plan->instructions;
}

/* Of a loop: these lanes are led back by the branch, all others have left, and the turn could end in the next round. It
 * is as if the branch had parted them only now. */
static void give_up(hammock *h, value lanes) {
  generator *g = h->g;
  const plan_block *block = &h->p->blocks[h->branch];
  const native_instr *n = &h->p->code[block->end - 1];
  lanes_scope copy;
  push_lanes(g, &copy); /* the region's blocks are still to be ended with what they know */
  memcpy(g->slots, h->outer.slots, h->p->slot_count * sizeof *g->slots);
  g->full = h->outer.full;
  g->active = h->outer.active;
  g->mask = h->outer.mask;
  g->masked = false;
  g->now = block->end - 1;
  run_lanes(g);
  LLVMBuildStore(g->b, gen_i32(g, n->index + 1), g->segment);
  gen_add_to(g, g->at->warp_diverged, g->i64, gen_i64(g, UINT64_MAX)); /* it is counted again */
  uint64_t *live = ff_alloc(h->p->words * sizeof *live);
  for (uint32_t w = 0; w < h->p->words; w++) live[w] = block->live_out[w] & ~h->plan->written[w];
  gen_write_stale(g, live, true);
  free(live);
  bool back = h->p->block_of[n->target] == h->plan->inside[0];
  gen_part(g, back ? lanes : LLVMBuildAnd(g->b, g->active, LLVMBuildNot(g->b, lanes, ""), ""));
  pop_lanes(g, &copy);
}

static void rounds(hammock *h) {
  generator *g = h->g;
  LLVMBasicBlockRef again = gen_block(g, "round"), on = gen_block(g, "go_round"), out = gen_block(g, "gives_up"),
                    done = gen_block(g, "done");
  LLVMBuildBr(g->b, again);
  LLVMPositionBuilderAtEnd(g->b, again);
  value lanes = gen_read(g, g->i32, h->into[0]), left = gen_field(g, g->i32, g->warp, g->at->warp_budget);
  left = LLVMBuildSub(g->b, left, gen_read(g, g->i32, g->done), "");
  gen_branch(g, LLVMBuildICmp(g->b, LLVMIntSGT, left, gen_i32(g, h->plan->instructions), ""), on, out, on,
             GEN_NEARLY_ALWAYS);
  LLVMPositionBuilderAtEnd(g->b, out);
  give_up(h, lanes);
  LLVMPositionBuilderAtEnd(g->b, on);
  parts(h);
  LLVMBuildCondBr(g->b, not_zero(g, gen_read(g, g->i32, h->into[0])), again, done);
  LLVMPositionBuilderAtEnd(g->b, done);
}

static void execute(hammock *h, value taken) {
  begin(h, taken);
  if (h->plan->loop) rounds(h);
  else parts(h);
  end(h);
}

/* i1: may the region be executed here now? NULL: always.
 *
 * The interpreter sets the warp's rotation to 0 where lanes meet, in each round of a loop perhaps. Here that is done at
 * the meeting block alone, and a loop may be given up before: so beside other splits the rotation must be 0 already. */
static value may_run(const hammock *h) {
  generator *g = h->g;
  value may = h->plan->starts ? LLVMBuildNot(g->b, g->starting, "") : NULL;
  if (g->full) return may;
  value rank = gen_i64(g, h->p->code[h->p->blocks[h->plan->meet].first].rank),
        alone = LLVMBuildICmp(g->b, LLVMIntSGE, gen_read(g, g->i64, g->below), rank, "");
  if (h->plan->loop) {
    value rotation = gen_field(g, g->i32, g->warp, g->at->warp_rotation);
    alone = LLVMBuildAnd(g->b, alone, LLVMBuildICmp(g->b, LLVMIntEQ, rotation, gen_i32(g, 0), ""), "");
  }
  return may ? LLVMBuildAnd(g->b, may, alone, "") : alone;
}

bool gen_hammock(generator *g, uint32_t b, value taken) {
  hammock h = {.g = g, .p = g->plan, .plan = g->plan->blocks[b].hammock, .branch = b};
  if (!h.plan || g->watched || plan_branches_together(h.p, b) || h.plan->instructions > g->hammock_room || spoils(&h))
    return false;
  value may = may_run(&h);
  LLVMBasicBlockRef here = gen_block(g, "hammock"), apart = may ? gen_block(g, "apart") : NULL;
  if (may) LLVMBuildCondBr(g->b, may, here, apart);
  else LLVMBuildBr(g->b, here);
  LLVMPositionBuilderAtEnd(g->b, here);
  execute(&h, taken);
  if (may) LLVMPositionBuilderAtEnd(g->b, apart);
  return !may;
}
