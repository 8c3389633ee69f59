/* SPDX-License-Identifier: Apache-2.0 */
/* Before the interpretation: which registers matter. After it: accesses gathered per segment.
 *
 * An access whose address is a number in known bounds touches what those bounds hold of a segment; one of an unknown
 * number touches the whole of every segment that its address was computed from, and of all segments if it came from
 * memory. */
#include "ptx/ranges/ranges.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/analysis/dominators.h"
#include "ptx/ranges/ranges_private.h"
#include "ptx/rewrite/window.h"

enum { REGS_SEEN = 64 };
#define STEPS_MAX 1500000u
#define GRID_MAX INT32_MAX

typedef __int128 wide;

void ranges_fail(ranges_finder *f, const char *format, ...) {
  va_list args;
  if (f->failed) return;
  f->failed = true;
  va_start(args, format);
  vsnprintf(f->reason, sizeof f->reason, format, args);
  va_end(args);
}

/* ---- which registers matter ---- */

typedef struct writers {
  uint32_t *first, *instrs;
} writers; /* per register: the instructions that write it */

static bool is_followed(const ptx_reg *reg) {
  uint32_t bits = ptx_type_bits(reg->type);
  char class = ptx_type_class(reg->type);
  return class == 'P' || ((class == 'U' || class == 'S' || class == 'B') && bits >= 8 && bits <= 64);
}

static writers find_writers(const ptx_func *func) {
  writers w = {ff_alloc((func->reg_count + 2u) * sizeof *w.first), NULL};
  uint32_t regs[REGS_SEEN];
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t i = 0; i < func->instr_count; i++) {
      uint32_t count = ptx_instr_writes(&func->instrs[i], regs, REGS_SEEN);
      for (uint32_t k = 0; k < count && k < REGS_SEEN; k++) {
        if (pass == 0) w.first[regs[k] + 2]++;
        else w.instrs[w.first[regs[k] + 1]++] = i;
      }
    }
    if (pass) break;
    uint64_t total = 0;
    for (uint32_t r = 0; r <= func->reg_count + 1; r++) total += w.first[r], w.first[r] = (uint32_t)total;
    w.instrs = ff_alloc((size_t)(total + 1) * sizeof *w.instrs);
  }
  return w;
}

typedef struct worklist {
  ranges_finder *f;
  FF_VEC(uint32_t) left;
} worklist;

static void want(worklist *work, uint32_t reg) {
  ranges_finder *f = work->f;
  if (reg == PTX_NO_REG || f->slot_of[reg] != RANGES_NONE || !is_followed(&f->func->regs[reg])) return;
  f->slot_of[reg] = f->slot_count++;
  FF_PUSH(&work->left, reg);
}

static void want_operand(worklist *work, const ptx_operand *operand, bool addresses) {
  bool address = operand->kind == PTX_OPERAND_ADDRESS;
  if (address == addresses || !addresses) {
    want(work, operand->reg);
    want(work, operand->reg2);
  }
  for (uint32_t i = 0; i < operand->element_count; i++)
    want_operand(work, &operand->elements[i], addresses && !address);
}

static bool from_elsewhere(const ptx_instr *instr) {
  switch (instr->opcode) {
  case PTX_OP_ATOM:
  case PTX_OP_SHFL:
  case PTX_OP_VOTE:
  case PTX_OP_MATCH:
  case PTX_OP_REDUX:
  case PTX_OP_CALL:
  case PTX_OP_MMA:
  case PTX_OP_WMMA: return true;
  default: return false;
  }
}

/* Addresses, guards, and all that they are computed from. */
static void choose_registers(ranges_finder *f) {
  const ptx_func *func = f->func;
  worklist work = {.f = f};
  writers w = find_writers(func);
  for (uint32_t i = 0; i < func->instr_count; i++) {
    want(&work, func->instrs[i].guard);
    for (uint32_t k = 0; k < func->instrs[i].operand_count; k++)
      want_operand(&work, &func->instrs[i].operands[k], true);
  }
  while (work.left.count) {
    uint32_t reg = work.left.items[--work.left.count];
    for (uint32_t n = w.first[reg]; n < w.first[reg + 1]; n++) {
      const ptx_instr *instr = &func->instrs[w.instrs[n]];
      for (uint32_t k = 1; k < instr->operand_count && !from_elsewhere(instr); k++)
        want_operand(&work, &instr->operands[k], false);
    }
  }
  free(work.left.items);
  free(w.first);
  free(w.instrs);
}

/* Per slot, the instructions that read it and write some slot. */
static void find_users(ranges_finder *f) {
  uint32_t regs[REGS_SEEN];
  f->reg_of = ff_alloc((f->slot_count + 1u) * sizeof *f->reg_of);
  f->user_first = ff_alloc((f->slot_count + 2u) * sizeof *f->user_first);
  for (uint32_t r = 0; r < f->func->reg_count; r++)
    if (f->slot_of[r] != RANGES_NONE) f->reg_of[f->slot_of[r]] = r;
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t i = 0; i < f->func->instr_count; i++) {
      const ptx_instr *instr = &f->func->instrs[i];
      uint32_t writes = ptx_instr_writes(instr, regs, REGS_SEEN), followed = 0;
      for (uint32_t k = 0; k < writes && k < REGS_SEEN; k++) followed += f->slot_of[regs[k]] != RANGES_NONE;
      if (!followed) continue;
      uint32_t reads = ptx_instr_reads(instr, regs, REGS_SEEN);
      for (uint32_t k = 0; k < reads && k < REGS_SEEN; k++) {
        uint32_t slot = f->slot_of[regs[k]];
        if (slot == RANGES_NONE) continue;
        if (pass == 0) f->user_first[slot + 2]++;
        else f->users[f->user_first[slot + 1]++] = i;
      }
    }
    if (pass) break;
    uint64_t total = 0;
    for (uint32_t s = 0; s <= f->slot_count + 1; s++) total += f->user_first[s], f->user_first[s] = (uint32_t)total;
    f->users = ff_alloc((size_t)(total + 1) * sizeof *f->users);
  }
}

/* ---- control flow ---- */

static void fill_graph(const ptx_cfg *cfg, ptx_graph *graph, bool reverse) {
  uint32_t edges = 0;
  graph->node_count = cfg->block_count;
  graph->first = ff_alloc((cfg->block_count + 1u) * sizeof *graph->first);
  for (uint32_t b = 0; b < cfg->block_count; b++)
    edges += reverse ? cfg->blocks[b].predecessor_count : cfg->blocks[b].successor_count;
  graph->to = ff_alloc((edges + 1u) * sizeof *graph->to);
  edges = 0;
  for (uint32_t b = 0; b < cfg->block_count; b++) {
    const ptx_block *block = &cfg->blocks[b];
    uint32_t count = reverse ? block->predecessor_count : block->successor_count;
    graph->first[b] = edges;
    for (uint32_t i = 0; i < count; i++) graph->to[edges++] = reverse ? block->predecessors[i] : block->successors[i];
  }
  graph->first[cfg->block_count] = edges;
}

static void find_dominators(ranges_finder *f) {
  ptx_graph graph, reverse;
  f->dominator = ff_alloc((f->cfg->block_count + 1u) * sizeof *f->dominator);
  if (!f->cfg->block_count) return;
  fill_graph(f->cfg, &graph, false);
  fill_graph(f->cfg, &reverse, true);
  ptx_dominators(&graph, &reverse, f->cfg->block_of[0], f->dominator);
  free(graph.first);
  free(graph.to);
  free(reverse.first);
  free(reverse.to);
}

/* ---- accesses to segments ---- */

typedef struct gathered {   /* of one segment, one direction */
  bool any, measured;       /* some access; one whose bounds are known */
  bool whole;               /* nothing is known of some access */
  uint32_t line, flat_line; /* of that access; of one that is the same for all blocks */
  affine bytes;             /* addresses from the first byte to the last */
  affine_grid blocks;       /* by which */
  char reason[256];
} gathered;

typedef struct gatherer {
  const ranges_finder *f;
  ptx_ranges *result;
  gathered *reads, *writes, *all; /* per segment */
} gatherer;

typedef struct access_at {
  const ptx_instr *instr;
  const ranges_access *access;
} access_at;

static void explain(const ptx_instr *instr, const affine *address, char *reason, size_t room) {
  static const char *const causes[] = {[AFFINE_COMPUTED] = "a value computed at line %u in a way that is not followed",
                                       [AFFINE_LOADED] = "a value loaded at line %u",
                                       [AFFINE_ATOMIC] = "what an atomic operation at line %u returned",
                                       [AFFINE_EXCHANGED] = "a value of other threads, got at line %u",
                                       [AFFINE_CALLED] = "the result of a call at line %u",
                                       [AFFINE_LOOPED] = "a loop at line %u whose bounds were not found",
                                       [AFFINE_CONVERTED] = "a floating-point value, converted at line %u"};
  int at = snprintf(reason, room, "the access at line %u: its address depends on ", instr->place.line);
  char cause[128];
  uint32_t kind = address->cause < sizeof causes / sizeof *causes ? address->cause : AFFINE_COMPUTED;
  snprintf(cause, sizeof cause, causes[kind], address->line);
  if (at > 0 && (size_t)at < room)
    snprintf(reason + at, room - (size_t)at, "%s", address->line ? cause : "a value that is not known");
}

static void gather_whole(gathered *to, const ptx_instr *instr, const affine *address) {
  to->any = true;
  if (to->whole) return;
  to->whole = true;
  to->line = instr->place.line;
  explain(instr, address, to->reason, sizeof to->reason);
}

/* The bounds cut to the segment; false: it is not touched. */
static bool cut(const affine_grid *grid, const ptx_ranges_segment *segment, affine *bytes) {
  wide end = (wide)segment->base + segment->bytes - 1;
  if ((wide)bytes->max < (wide)segment->base || (wide)bytes->min > end || !segment->bytes) return false;
  bytes->min = (wide)bytes->min < (wide)segment->base ? (int64_t)segment->base : bytes->min;
  bytes->max = (wide)bytes->max > end ? (int64_t)end : bytes->max;
  return affine_tighten(grid, bytes);
}

static void gather_bytes(gathered *to, const access_at *a, const affine *bytes) {
  affine plain = *bytes;
  plain.points = 0;
  bool flat = !plain.c[0] && !plain.c[1] && !plain.c[2];
  affine_grid blocks = to->measured ? affine_grid_join(&to->blocks, &a->access->blocks) : a->access->blocks;
  if (flat && !to->flat_line) to->flat_line = a->instr->place.line;
  to->bytes = to->measured ? affine_join_of(&blocks, &to->blocks, &to->bytes, &a->access->blocks, &plain) : plain;
  to->blocks = blocks;
  to->any = to->measured = true;
}

static void assume(const gatherer *g, const ptx_instr *instr) {
  if (g->result->assumed) return;
  g->result->assumed = true;
  g->result->assumed_line = instr->place.line;
}

static void gather_in(const gatherer *g, uint32_t segment, const access_at *a, const affine *bytes) {
  gathered *targets[3] = {a->access->reads ? &g->reads[segment] : NULL, a->access->writes ? &g->writes[segment] : NULL,
                          &g->all[segment]};
  for (int i = 0; i < 3; i++) {
    if (!targets[i]) continue;
    if (bytes) gather_bytes(targets[i], a, bytes);
    else gather_whole(targets[i], a->instr, &a->access->address);
  }
}

/* A made-up address that stays within its parameter or variable. */
static bool in_its_object(const gatherer *g, const affine *address) {
  const ptx_func *func = g->f->func;
  int64_t offset = address->min - RANGES_MADE_UP;
  if (address->top || address->min < RANGES_MADE_UP) return false;
  if (address->max - RANGES_MADE_UP < (int64_t)g->f->launch->param_bytes) return true;
  uint64_t index = (uint64_t)(offset / RANGES_MADE_UP_STEP);
  if (!index || index > func->module->var_count) return false;
  uint64_t size = func->module->vars[index - 1]->size;
  return address->max - RANGES_MADE_UP - (int64_t)index * RANGES_MADE_UP_STEP < (int64_t)size;
}

static void gather(const gatherer *g, const access_at *a) {
  const affine *address = &a->access->address;
  const ptx_ranges_launch *launch = g->f->launch;
  uint64_t into = address->points & ~(AFFINE_OTHER | AFFINE_ANY);
  bool free_pointer = (address->points & AFFINE_ANY) || !address->points;
  if (address->points == AFFINE_OTHER) {
    if (!in_its_object(g, address)) assume(g, a->instr);
    return;
  }
  if (address->top && !free_pointer) assume(g, a->instr);
  for (uint32_t s = 0; s < launch->segment_count; s++) {
    bool meant = into >> s & 1;
    if (address->top) {
      if (meant || free_pointer) gather_in(g, s, a, NULL);
      continue;
    }
    affine bytes = *address;
    if (!cut(&a->access->blocks, &launch->segments[s], &bytes)) continue;
    if (meant || free_pointer) gather_in(g, s, a, &bytes);
    else assume(g, a->instr);
  }
}

/* ---- the answer ---- */

static void whole_range(ptx_range *range, uint64_t offset, uint64_t bytes) {
  *range = (ptx_range){.any = bytes > 0,
                       .whole = bytes > 0,
                       .offset = offset,
                       .bytes = bytes,
                       .start = (int64_t)offset,
                       .block_bytes = bytes};
}

static void answer_range(const ranges_finder *f, uint32_t s, const gathered *from, ptx_range *range) {
  const ptx_ranges_segment *segment = &f->launch->segments[s];
  const affine *b = &from->bytes;
  *range = (ptx_range){0};
  if (!from->any) return;
  if (from->whole || b->top) {
    whole_range(range, 0, segment->bytes);
    return;
  }
  uint64_t offset = (uint64_t)b->min - segment->base, bytes = (uint64_t)(b->max - b->min) + 1;
  bool flat = !b->c[0] && !b->c[1] && !b->c[2];
  for (int d = 0; d < 3; d++) flat = flat && from->blocks.first[d] == 0 && from->blocks.last[d] == f->grid.last[d];
  wide length = (wide)b->hi - b->lo + 1, start = (wide)b->lo - (wide)segment->base;
  if (flat || length > INT64_MAX || start < INT64_MIN || start > INT64_MAX) {
    whole_range(range, offset, bytes);
    return;
  }
  *range = (ptx_range){
      .any = true, .offset = offset, .bytes = bytes, .start = (int64_t)start, .block_bytes = (uint64_t)length};
  memcpy(range->per_block, b->c, sizeof range->per_block);
}

static void answer_segment(const gatherer *g, uint32_t s) {
  ptx_segment_ranges *to = &g->result->segments[s];
  const gathered *all = &g->all[s];
  answer_range(g->f, s, &g->reads[s], &to->reads);
  answer_range(g->f, s, &g->writes[s], &to->writes);
  answer_range(g->f, s, all, &to->all);
  if (!to->all.whole) return;
  bool one_block = !g->f->grid.last[0] && !g->f->grid.last[1] && !g->f->grid.last[2];
  if (all->whole) {
    to->line = all->line;
    memcpy(to->reason, all->reason, sizeof to->reason);
  } else if (one_block) {
    snprintf(to->reason, sizeof to->reason, "the grid has one block");
  } else {
    to->line = all->flat_line;
    snprintf(to->reason, sizeof to->reason,
             "the access at line %u: the range of its addresses is the same for all blocks", all->flat_line);
  }
}

static void answer(const ranges_finder *f, ptx_ranges *result) {
  uint32_t count = f->launch->segment_count;
  gathered *table = ff_alloc((3u * (size_t)count + 1) * sizeof *table);
  gatherer g = {f, result, table, table + count, table + 2 * count};
  for (uint32_t i = 0; i < f->func->instr_count; i++)
    if (f->accesses[i].seen) gather(&g, &(access_at){&f->func->instrs[i], &f->accesses[i]});
  for (uint32_t s = 0; s < count; s++) answer_segment(&g, s);
  free(table);
}

static void answer_nothing(const ptx_ranges_launch *launch, const char *reason, ptx_ranges *result) {
  result->complete = false;
  result->assumed = false;
  snprintf(result->reason, sizeof result->reason, "%s", reason);
  for (uint32_t s = 0; s < launch->segment_count; s++) {
    ptx_segment_ranges *to = &result->segments[s];
    whole_range(&to->reads, 0, launch->segments[s].bytes);
    to->writes = to->all = to->reads;
    snprintf(to->reason, sizeof to->reason, "%s", reason);
  }
}

static const char *unfit(const ptx_func *kernel, const ptx_ranges_launch *launch) {
  if (!kernel->has_body) return "it has no code";
  if (kernel->module->address_size != 64) return "its addresses have 32 bits";
  if (launch->segment_count > PTX_RANGES_SEGMENTS) return "the launch has more than 62 segments";
  for (int d = 0; d < 3; d++)
    if (!launch->grid[d] || !launch->block[d] || launch->grid[d] > GRID_MAX || launch->block[d] > 1024)
      return "its grid or block is none that can be launched";
  for (uint32_t s = 0; s < launch->segment_count; s++)
    if (launch->segments[s].base >= (uint64_t)RANGES_MADE_UP ||
        launch->segments[s].bytes > (uint64_t)RANGES_MADE_UP - launch->segments[s].base)
      return "a segment's addresses are above 2^60";
  return NULL;
}

static void start(ranges_finder *f) {
  const ptx_func *func = f->func;
  f->step_limit = STEPS_MAX;
  f->cfg = ptx_cfg_build(func);
  f->param_offsets = ff_alloc((func->param_count + 1u) * sizeof *f->param_offsets);
  f->slot_of = ff_alloc((func->reg_count + 1u) * sizeof *f->slot_of);
  f->pending = ff_alloc((f->cfg->block_count + 1u) * sizeof *f->pending);
  f->accesses = ff_alloc((func->instr_count + 1u) * sizeof *f->accesses);
  for (uint32_t r = 0; r < func->reg_count; r++) f->slot_of[r] = RANGES_NONE;
  for (int d = 0; d < 3; d++) f->grid.last[d] = (int64_t)f->launch->grid[d] - 1;
  if (ptx_param_layout(func, f->param_offsets) == UINT32_MAX) ranges_fail(f, "its parameters are too many");
  choose_registers(f);
  find_users(f);
  find_dominators(f);
}

static void end(ranges_finder *f) {
  ptx_cfg_free(f->cfg);
  free(f->dominator);
  free(f->param_offsets);
  free(f->slot_of);
  free(f->reg_of);
  free(f->user_first);
  free(f->users);
  free(f->pending);
  free(f->accesses);
  free(f->compared.items);
}

void ptx_ranges_find(const ptx_func *kernel, const ptx_ranges_launch *launch, ptx_ranges *result) {
  ranges_finder f = {.func = kernel, .launch = launch};
  *result = (ptx_ranges){.complete = true, .segment_count = launch->segment_count};
  result->segments = ff_alloc((launch->segment_count + 1u) * sizeof *result->segments);
  const char *reason = unfit(kernel, launch);
  if (reason) {
    answer_nothing(launch, reason, result);
    return;
  }
  start(&f);
  if (!f.failed) ranges_run(&f);
  result->steps = f.steps > UINT32_MAX ? UINT32_MAX : (uint32_t)f.steps;
  if (f.failed) answer_nothing(launch, f.reason, result);
  else answer(&f, result);
  end(&f);
}

void ptx_ranges_free(ptx_ranges *result) {
  free(result->segments);
  *result = (ptx_ranges){0};
}

void ptx_range_of_blocks(const ptx_range *range, const uint32_t first[3], const uint32_t count[3], uint64_t *begin,
                         uint64_t *end) {
  wide low = range->start, high = (wide)range->start + range->block_bytes, limit = (wide)range->offset + range->bytes;
  *begin = *end = 0;
  if (!range->any || !count[0] || !count[1] || !count[2]) return;
  for (int d = 0; d < 3; d++) {
    wide at_first = (wide)range->per_block[d] * first[d],
         at_last = (wide)range->per_block[d] * ((wide)first[d] + count[d] - 1);
    low += at_first < at_last ? at_first : at_last;
    high += at_first < at_last ? at_last : at_first;
  }
  if (low < (wide)range->offset) low = range->offset;
  if (high > limit) high = limit;
  if (low >= high) return;
  *begin = (uint64_t)low;
  *end = (uint64_t)high;
}
