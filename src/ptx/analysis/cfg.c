/* SPDX-License-Identifier: Apache-2.0 */
/* Basic blocks, their priority order, and postdominators: see cfg.h for what each means.
 *
 * The order is made from strongly connected components. Outside loops it is a reverse postorder of a depth-first
 * search that prefers the text's own order. A component with a cycle is a loop: its blocks get one contiguous stretch
 * of the order, the entered block first, and the rest of it is ordered the same way with the edges to that block left
 * out, which finds the loops inside. Loops nested deeper than MAX_DEPTH, and what is left when MAX_WORK blocks and four
 * passes over the function have been looked at, are ordered without looking further inside: no function that a compiler
 * made comes near, and hostile ones stay linear. */
#include "ptx/analysis/cfg.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "ptx/analysis/dominators.h"

#define NONE PTX_NO_REG
enum { MAX_DEPTH = 64, MAX_WORK = 1 << 20 };

/* ---- blocks and edges ---- */

static bool is_terminator(const ptx_instr *instr) {
  switch (instr->opcode) {
  case PTX_OP_BRA:
  case PTX_OP_BRX:
  case PTX_OP_RET:
  case PTX_OP_EXIT:
  case PTX_OP_TRAP: return true;
  case PTX_OP_CALL: {
    const ptx_operand *callee = ptx_call_parts(instr).callee;
    return callee->kind == PTX_OPERAND_SYMBOL && callee->symbol->func->noreturn;
  }
  default: return false;
  }
}

/* brx branches, guarded or not; every other instruction goes on if it is guarded. */
static bool falls_through(const ptx_instr *instr) {
  if (!is_terminator(instr)) return true;
  return instr->guard != PTX_NO_REG;
}

static void mark_label(const ptx_operand *operand, uint8_t *leaders) {
  if (operand->kind == PTX_OPERAND_LABEL) leaders[operand->label] = 1;
  for (uint32_t i = 0; operand->kind == PTX_OPERAND_LABELS && i < operand->element_count; i++)
    if (operand->elements[i].kind == PTX_OPERAND_LABEL) leaders[operand->elements[i].label] = 1;
}

static void make_blocks(const ptx_func *func, ptx_cfg *cfg) {
  uint32_t count = func->instr_count;
  uint8_t *leaders = ff_alloc(count + 1);
  leaders[0] = 1;
  for (uint32_t i = 0; i < count; i++) {
    const ptx_instr *instr = &func->instrs[i];
    for (uint32_t k = 0; k < instr->operand_count; k++) mark_label(&instr->operands[k], leaders);
    if (is_terminator(instr)) leaders[i + 1] = 1;
  }
  for (uint32_t i = 0; i < count; i++) cfg->block_count += leaders[i];
  cfg->blocks = ff_alloc(cfg->block_count * sizeof *cfg->blocks);
  cfg->block_of = ff_alloc(count * sizeof *cfg->block_of);
  uint32_t block = NONE;
  for (uint32_t i = 0; i < count; i++) {
    if (leaders[i]) cfg->blocks[++block].first = i;
    cfg->block_of[i] = block;
    cfg->blocks[block].end = i + 1;
  }
  free(leaders);
}

/* Adds an edge to the block of instruction `at`, once; the end of the function is no block. */
static void add_target(const ptx_func *func, ptx_cfg *cfg, uint32_t at, uint32_t *list, uint32_t *count, uint32_t *seen,
                       uint32_t from) {
  if (at >= func->instr_count) return;
  uint32_t to = cfg->block_of[at];
  if (seen[to] == from + 1) return;
  seen[to] = from + 1;
  list[(*count)++] = to;
}

static uint32_t most_targets(const ptx_instr *last) {
  uint32_t most = 2;
  for (uint32_t k = 0; k < last->operand_count; k++)
    if (last->operands[k].kind == PTX_OPERAND_LABELS) most += last->operands[k].element_count;
  return most;
}

static void add_targets(const ptx_func *func, ptx_cfg *cfg, uint32_t from, uint32_t *seen) {
  ptx_block *block = &cfg->blocks[from];
  const ptx_instr *last = &func->instrs[block->end - 1];
  uint32_t *list = ff_alloc(most_targets(last) * sizeof *list), count = 0;
  if (falls_through(last)) add_target(func, cfg, block->end, list, &count, seen, from);
  if (last->opcode == PTX_OP_BRA) add_target(func, cfg, last->operands[0].label, list, &count, seen, from);
  if (last->opcode == PTX_OP_BRX) {
    const ptx_operand *targets = &last->operands[1];
    for (uint32_t i = 0; i < targets->element_count; i++)
      if (targets->elements[i].kind == PTX_OPERAND_LABEL)
        add_target(func, cfg, targets->elements[i].label, list, &count, seen, from);
  }
  block->successors = list;
  block->successor_count = count;
}

static void make_edges(const ptx_func *func, ptx_cfg *cfg) {
  uint32_t *seen = ff_alloc(cfg->block_count * sizeof *seen);
  for (uint32_t b = 0; b < cfg->block_count; b++) add_targets(func, cfg, b, seen);
  for (uint32_t b = 0; b < cfg->block_count; b++)
    for (uint32_t i = 0; i < cfg->blocks[b].successor_count; i++)
      cfg->blocks[cfg->blocks[b].successors[i]].predecessor_count++;
  for (uint32_t b = 0; b < cfg->block_count; b++) {
    ptx_block *block = &cfg->blocks[b];
    block->predecessors = ff_alloc(block->predecessor_count * sizeof *block->predecessors);
    block->predecessor_count = 0;
  }
  for (uint32_t b = 0; b < cfg->block_count; b++)
    for (uint32_t i = 0; i < cfg->blocks[b].successor_count; i++) {
      ptx_block *to = &cfg->blocks[cfg->blocks[b].successors[i]];
      to->predecessors[to->predecessor_count++] = b;
    }
  free(seen);
}

/* ---- the order ---- */

typedef struct frame {
  uint32_t block, next;
} frame;
typedef struct component {
  uint32_t root, begin, end, depth;
} component; /* blocks by_order[begin, end) */

typedef struct orderer {
  ptx_cfg *cfg;
  uint32_t *region;       /* which region a block is in; an edge counts only inside one region */
  uint32_t *number, *low; /* Tarjan's; number 0: not seen yet in this region */
  uint32_t *stack, stack_count;
  uint8_t *on_stack;
  frame *frames;
  uint32_t last_number;
  FF_VEC(component) found; /* loops to look into */
  uint64_t work;           /* blocks that may still be looked at */
} orderer;

static bool has_self_edge(const ptx_block *block, uint32_t index) {
  for (uint32_t i = 0; i < block->successor_count; i++)
    if (block->successors[i] == index) return true;
  return false;
}

/* A component is complete: it is the top of the stack down to `root`. Components come out last first, so it goes in
 * front of by_order[*end...]. */
static void close_component(orderer *o, uint32_t root, uint32_t header, uint32_t *end, uint32_t depth) {
  uint32_t last = *end, block;
  do {
    block = o->stack[--o->stack_count];
    o->on_stack[block] = 0;
    o->cfg->by_order[--*end] = block;
  } while (block != root);
  bool loop = last - *end > 1 || (root != header && has_self_edge(&o->cfg->blocks[root], root));
  if (loop) FF_PUSH(&o->found, ((component){root, *end, last, depth}));
}

static void open_block(orderer *o, uint32_t block) {
  o->number[block] = o->low[block] = ++o->last_number;
  o->stack[o->stack_count++] = block;
  o->on_stack[block] = 1;
}

/* Tarjan's components of what `start` reaches inside its region, edges to `header` left out, without recursion.
 * by_order[.., *end) is filled from the back, in topological order. Successors are visited last first, so that of two
 * equal ones the first (the fall-through) comes first in the order. */
static void find_components(orderer *o, uint32_t start, uint32_t header, uint32_t *end, uint32_t depth) {
  uint32_t frames = 0, region = o->region[start];
  o->frames[frames++] = (frame){start, 0};
  while (frames) {
    frame *f = &o->frames[frames - 1];
    uint32_t from = f->block;
    const ptx_block *block = &o->cfg->blocks[from];
    if (!o->number[from]) open_block(o, from);
    if (f->next < block->successor_count) {
      uint32_t to = block->successors[block->successor_count - 1 - f->next++];
      if (o->region[to] != region || to == header) continue;
      if (!o->number[to]) o->frames[frames++] = (frame){to, 0};
      else if (o->on_stack[to] && o->number[to] < o->low[from]) o->low[from] = o->number[to];
      continue;
    }
    if (o->low[from] == o->number[from]) close_component(o, from, header, end, depth);
    frames--;
    uint32_t *above = frames ? &o->low[o->frames[frames - 1].block] : NULL;
    if (above && o->low[from] < *above) *above = o->low[from];
  }
}

/* Orders the inside of a loop: with the edges to its header gone, the header comes first and inner loops show. */
static void order_loop(orderer *o, component loop, uint32_t region) {
  ptx_cfg *cfg = o->cfg;
  for (uint32_t i = loop.begin; i < loop.end; i++) {
    uint32_t block = cfg->by_order[i];
    cfg->blocks[block].loop_depth++;
    o->region[block] = region;
    o->number[block] = 0;
  }
  uint32_t end = loop.end;
  uint32_t size = loop.end - loop.begin;
  bool look = loop.depth < MAX_DEPTH && o->work >= size;
  o->work -= look ? size : 0;
  if (look) find_components(o, loop.root, loop.root, &end, loop.depth + 1);
  else end = loop.begin;
  FF_CHECK(end == loop.begin);
  uint32_t *last = &cfg->blocks[loop.root].loop_end;
  if (*last < loop.end - 1) *last = loop.end - 1;
}

/* Positions of what `start` reaches are final when this returns; by_order[count..] gets what it does not reach. */
static void order_all(orderer *o) {
  ptx_cfg *cfg = o->cfg;
  uint32_t end = cfg->block_count, regions = 0, kept = 0;
  find_components(o, 0, NONE, &end, 0);
  memmove(cfg->by_order, cfg->by_order + end, (cfg->block_count - end) * sizeof *cfg->by_order);
  for (size_t i = 0; i < o->found.count; i++) {
    o->found.items[i].begin -= end;
    o->found.items[i].end -= end;
  }
  kept = cfg->block_count - end;
  for (uint32_t b = 0; b < cfg->block_count; b++) {
    cfg->blocks[b].reachable = o->number[b] != 0;
    if (!cfg->blocks[b].reachable) cfg->by_order[kept++] = b;
  }
  while (o->found.count) {
    component loop = o->found.items[--o->found.count];
    order_loop(o, loop, ++regions);
  }
  for (uint32_t i = 0; i < cfg->block_count; i++) {
    ptx_block *block = &cfg->blocks[cfg->by_order[i]];
    block->order = i;
    if (block->loop_end < i) block->loop_end = i;
  }
}

static void make_order(ptx_cfg *cfg) {
  uint32_t count = cfg->block_count;
  orderer o = {.cfg = cfg, .work = MAX_WORK + 4 * (uint64_t)count};
  o.region = ff_alloc(count * sizeof *o.region);
  o.number = ff_alloc(count * sizeof *o.number);
  o.low = ff_alloc(count * sizeof *o.low);
  o.stack = ff_alloc(count * sizeof *o.stack);
  o.on_stack = ff_alloc(count);
  o.frames = ff_alloc((count + 1) * sizeof *o.frames);
  cfg->by_order = ff_alloc(count * sizeof *cfg->by_order);
  order_all(&o);
  free(o.region);
  free(o.number);
  free(o.low);
  free(o.stack);
  free(o.on_stack);
  free(o.frames);
  free(o.found.items);
}

/* ---- postdominators ---- */

/* Does control leave the function at the end of the block, if only for some threads? */
static bool leaves(const ptx_func *func, const ptx_block *block) {
  const ptx_instr *last = &func->instrs[block->end - 1];
  if (block->end == func->instr_count && falls_through(last)) return true;
  if (!is_terminator(last)) return false;
  if (last->opcode == PTX_OP_BRA) return last->operands[0].label >= func->instr_count;
  if (last->opcode != PTX_OP_BRX) return true;
  for (uint32_t i = 0; i < last->operands[1].element_count; i++)
    if (last->operands[1].elements[i].label >= func->instr_count) return true;
  return last->operands[1].element_count == 0;
}

/* The edges backwards from the exit (node block_count) through the blocks, and the same edges forwards. */
static void make_graphs(const ptx_func *func, const ptx_cfg *cfg, ptx_graph *backward, ptx_graph *forward) {
  uint32_t count = cfg->block_count, edges = 0, exits = 0;
  for (uint32_t b = 0; b < count; b++) edges += cfg->blocks[b].successor_count + 1;
  *backward = (ptx_graph){count + 1, ff_alloc((count + 2) * sizeof(uint32_t)), ff_alloc(edges * sizeof(uint32_t))};
  *forward = (ptx_graph){count + 1, ff_alloc((count + 2) * sizeof(uint32_t)), ff_alloc(edges * sizeof(uint32_t))};
  uint32_t back = 0, fore = 0;
  for (uint32_t b = 0; b < count; b++) {
    const ptx_block *block = &cfg->blocks[b];
    backward->first[b] = back;
    forward->first[b] = fore;
    for (uint32_t i = 0; i < block->predecessor_count; i++) backward->to[back++] = block->predecessors[i];
    for (uint32_t i = 0; i < block->successor_count; i++) forward->to[fore++] = block->successors[i];
    if (leaves(func, block)) forward->to[fore++] = count;
  }
  backward->first[count] = back;
  for (uint32_t b = 0; b < count; b++)
    if (leaves(func, &cfg->blocks[b])) backward->to[back + exits++] = b;
  backward->first[count + 1] = back + exits;
  forward->first[count] = forward->first[count + 1] = fore;
}

static void find_postdominators(const ptx_func *func, ptx_cfg *cfg) {
  ptx_graph backward, forward;
  uint32_t count = cfg->block_count;
  make_graphs(func, cfg, &backward, &forward);
  uint32_t *idom = ff_alloc((count + 1) * sizeof *idom);
  ptx_dominators(&backward, &forward, count, idom);
  for (uint32_t b = 0; b < count; b++) cfg->blocks[b].postdominator = idom[b] == count ? NONE : idom[b];
  free(idom);
  free(backward.first);
  free(backward.to);
  free(forward.first);
  free(forward.to);
}

/* ---- the whole ---- */

static uint32_t edges_between(const uint32_t *ends, uint32_t count, uint32_t block) {
  uint32_t edges = 0;
  for (uint32_t i = 0; i < count; i++) edges += ends[i] == block;
  return edges;
}

static void check_edges(const ptx_cfg *cfg, uint32_t b) {
  const ptx_block *block = &cfg->blocks[b];
  bool reached = b == 0; /* from a block before it in the order */
  for (uint32_t i = 0; i < block->successor_count; i++) {
    const ptx_block *to = &cfg->blocks[block->successors[i]];
    FF_ASSERT(edges_between(to->predecessors, to->predecessor_count, b) ==
              edges_between(block->successors, block->successor_count, block->successors[i]));
    FF_ASSERT(!block->reachable || to->reachable);
  }
  for (uint32_t i = 0; i < block->predecessor_count; i++) {
    const ptx_block *from = &cfg->blocks[block->predecessors[i]];
    FF_ASSERT(edges_between(from->successors, from->successor_count, b));
    reached |= from->reachable && from->order < block->order;
  }
  FF_ASSERT(block->reachable == reached);
}

/* From which blocks the function's end can be reached. */
static uint8_t *find_leading_out(const ptx_func *func, const ptx_cfg *cfg) {
  uint8_t *leads = ff_alloc(cfg->block_count);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t b = cfg->block_count; b-- > 0;) {
      bool now = leaves(func, &cfg->blocks[b]);
      for (uint32_t i = 0; i < cfg->blocks[b].successor_count; i++) now |= leads[cfg->blocks[b].successors[i]];
      changed |= now != leads[b];
      leads[b] = now;
    }
  }
  return leads;
}

/* Every way from the block to the function's end passes its postdominator. */
static void check_postdominator(const ptx_cfg *cfg, uint32_t b, const uint8_t *leads) {
  const ptx_block *block = &cfg->blocks[b];
  for (uint32_t i = 0; block->postdominator != NONE && i < block->successor_count; i++) {
    uint32_t at = block->successors[i];
    for (uint32_t steps = 0; at != NONE && at != block->postdominator; at = cfg->blocks[at].postdominator)
      FF_ASSERT(++steps <= cfg->block_count);
    FF_ASSERT(at == block->postdominator || !leads[block->successors[i]]);
  }
}

enum { CHECKED_BLOCKS = 512 }; /* edges and postdominators of larger functions would take too long */

/* Blocks cover the instructions one behind the other; `order` numbers them, and to each reachable one an edge leads
 * from a smaller number; edges stand at both ends. */
static void check(const ptx_func *func, const ptx_cfg *cfg) {
  for (uint32_t i = 0; i < cfg->block_count; i++) {
    const ptx_block *block = &cfg->blocks[i];
    FF_ASSERT(cfg->blocks[cfg->by_order[i]].order == i);
    FF_ASSERT(block->first < block->end && block->first == (i ? block[-1].end : 0));
    for (uint32_t n = block->first; n < block->end; n++) FF_ASSERT(cfg->block_of[n] == i);
    FF_ASSERT(block->loop_end >= block->order && block->loop_end < cfg->block_count);
  }
  FF_ASSERT(cfg->blocks[cfg->block_count - 1].end == func->instr_count);
  if (cfg->block_count > CHECKED_BLOCKS) return;
  uint8_t *leads = find_leading_out(func, cfg);
  for (uint32_t i = 0; i < cfg->block_count; i++) {
    check_edges(cfg, i);
    check_postdominator(cfg, i, leads);
  }
  free(leads);
}

ptx_cfg *ptx_cfg_build(const ptx_func *func) {
  ptx_cfg *cfg = ff_alloc(sizeof *cfg);
  if (!func->instr_count) return cfg;
  make_blocks(func, cfg);
  make_edges(func, cfg);
  make_order(cfg);
  find_postdominators(func, cfg);
  if (ff_check_level >= 2) check(func, cfg);
  return cfg;
}

void ptx_cfg_free(ptx_cfg *cfg) {
  if (!cfg) return;
  for (uint32_t b = 0; b < cfg->block_count; b++) {
    free(cfg->blocks[b].successors);
    free(cfg->blocks[b].predecessors);
  }
  free(cfg->blocks);
  free(cfg->block_of);
  free(cfg->by_order);
  free(cfg);
}
