/* SPDX-License-Identifier: Apache-2.0 */
/* Register slots by liveness: a linear scan over the order in which blocks run (ptx/analysis/cfg.h).
 *
 * PTX has a register for every value a compiler ever had; a frame with one slot each would not fit the host's caches.
 * Liveness is per thread, and slots hold one cell per thread, so sharing is safe however the warp diverges.
 *
 * The interval of a register covers every position where it is live, read or written. Two registers share cells only if
 * their intervals are disjoint and the cells of each lane are the same bytes (check_sharing, at the deep level). */
#include "exec/decode/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define MAX_SET_BYTES (UINT64_C(256) << 20) /* beyond that every register gets a slot of its own */

typedef struct interval {
  uint32_t start, end;
} interval; /* positions, both inclusive; start > end: unused */

typedef struct layout_maker {
  const ptx_func *func;
  const ptx_cfg *cfg;
  exec_layout *layout;
  uint32_t *position; /* per instruction: place in the order */
  uint32_t words;     /* of one set of registers */
  uint64_t *live_in, *live_out;
  interval *intervals; /* per register */
  uint32_t *regs, regs_room;
} layout_maker;

uint32_t exec_type_slot(ptx_type type) {
  if (type == PTX_PRED) return 0;
  uint32_t bits = ptx_type_bits(type);
  return bits <= 32 ? 4 : bits <= 64 ? 8 : 16;
}

/* ---- liveness ---- */

static uint32_t reads_of(layout_maker *m, const ptx_instr *instr) {
  uint32_t count;
  while ((count = ptx_instr_reads(instr, m->regs, m->regs_room)) > m->regs_room)
    m->regs = ff_realloc(m->regs, (m->regs_room = count) * sizeof *m->regs);
  return count;
}

static uint32_t writes_of(layout_maker *m, const ptx_instr *instr) {
  uint32_t count;
  while ((count = ptx_instr_writes(instr, m->regs, m->regs_room)) > m->regs_room)
    m->regs = ff_realloc(m->regs, (m->regs_room = count) * sizeof *m->regs);
  return count;
}

static void set_add(uint64_t *set, uint32_t reg) { set[reg / 64] |= UINT64_C(1) << (reg % 64); }
static void set_remove(uint64_t *set, uint32_t reg) { set[reg / 64] &= ~(UINT64_C(1) << (reg % 64)); }
static bool set_has(const uint64_t *set, uint32_t reg) { return set[reg / 64] >> (reg % 64) & 1; }

/* `.reg` results are read by every ret. */
static void results_live(const layout_maker *m, const ptx_instr *instr, uint64_t *live) {
  if (instr->opcode != PTX_OP_RET) return;
  for (uint32_t r = 0; r < m->func->result_count; r++)
    if (m->func->results[r]->reg != PTX_NO_REG) set_add(live, m->func->results[r]->reg);
}

/* live: after the instruction -> before it. */
static void step_back(layout_maker *m, const ptx_instr *instr, uint64_t *live, uint8_t *dead) {
  uint32_t count = writes_of(m, instr);
  bool needed = !count;
  for (uint32_t i = 0; i < count; i++) {
    needed = needed || set_has(live, m->regs[i]);
    if (instr->guard == PTX_NO_REG) set_remove(live, m->regs[i]); /* else lanes may keep the old value */
  }
  if (dead) *dead = !needed;
  count = reads_of(m, instr);
  for (uint32_t i = 0; i < count; i++) set_add(live, m->regs[i]);
  results_live(m, instr, live);
}

/* live = what is live at the block's end: what its successors need. True if the set in live_in changed. */
static bool flow_block(layout_maker *m, uint32_t b, uint64_t *live) {
  const ptx_block *block = &m->cfg->blocks[b];
  uint64_t *out = m->live_out + (size_t)b * m->words, *in = m->live_in + (size_t)b * m->words;
  for (uint32_t s = 0; s < block->successor_count; s++) {
    const uint64_t *next = m->live_in + (size_t)block->successors[s] * m->words;
    for (uint32_t i = 0; i < m->words; i++) out[i] |= next[i];
  }
  memcpy(live, out, m->words * sizeof *live);
  for (uint32_t i = block->end; i-- > block->first;) step_back(m, &m->func->instrs[i], live, &m->layout->dead[i]);
  if (!memcmp(live, in, m->words * sizeof *live)) return false;
  memcpy(in, live, m->words * sizeof *live);
  return true;
}

static void find_liveness(layout_maker *m) {
  uint64_t *live = ff_alloc(m->words * sizeof *live);
  bool changed = true;
  while (changed) {
    changed = false;
    for (uint32_t o = m->cfg->block_count; o-- > 0;) changed |= flow_block(m, m->cfg->by_order[o], live);
  }
  free(live);
}

/* ---- intervals ---- */

static void extend(interval *in, uint32_t position) {
  if (position < in->start) in->start = position;
  if (position > in->end) in->end = position;
}

static void extend_set(layout_maker *m, const uint64_t *set, uint32_t position) {
  for (uint32_t word = 0; word < m->words; word++)
    for (uint64_t bits = set[word]; bits; bits &= bits - 1)
      extend(&m->intervals[word * 64 + (uint32_t)__builtin_ctzll(bits)], position);
}

static void find_intervals(layout_maker *m) {
  for (uint32_t r = 0; r < m->func->reg_count; r++) m->intervals[r] = (interval){UINT32_MAX, 0};
  for (uint32_t b = 0; b < m->cfg->block_count; b++) {
    const ptx_block *block = &m->cfg->blocks[b];
    extend_set(m, m->live_in + (size_t)b * m->words, m->position[block->first]);
    extend_set(m, m->live_out + (size_t)b * m->words, m->position[block->end - 1]);
    for (uint32_t i = block->first; i < block->end; i++) {
      uint32_t count = writes_of(m, &m->func->instrs[i]);
      for (uint32_t k = 0; k < count; k++) extend(&m->intervals[m->regs[k]], m->position[i]);
      count = reads_of(m, &m->func->instrs[i]);
      for (uint32_t k = 0; k < count; k++) extend(&m->intervals[m->regs[k]], m->position[i]);
    }
  }
  /* `.reg` parameters and results are moved at the function's two ends */
  for (uint32_t v = 0; v < m->func->var_count; v++)
    if (m->func->vars[v]->reg < m->func->reg_count) m->intervals[m->func->vars[v]->reg] = (interval){0, UINT32_MAX - 1};
}

/* ---- slots: units of one kind, the lowest free ones first ---- */

typedef struct units {
  FF_VEC(uint8_t) taken;
} units;

static uint32_t units_take(units *u, uint32_t width) {
  uint32_t run = 0;
  for (uint32_t i = 0; i < u->taken.count; i++) {
    run = u->taken.items[i] ? 0 : run + 1;
    if (run < width) continue;
    memset(u->taken.items + i + 1 - width, 1, width);
    return i + 1 - width;
  }
  uint32_t first = (uint32_t)u->taken.count - run;
  if (run) memset(u->taken.items + first, 1, run);
  for (; run < width; run++) FF_PUSH(&u->taken, 1);
  return first;
}

typedef struct thing { /* a register or variable that needs units for an interval */
  interval in;
  uint32_t index, width, first;
} thing;

static int by_start(const void *a, const void *b) {
  const thing *x = a, *y = b;
  if (x->in.start != y->in.start) return x->in.start < y->in.start ? -1 : 1;
  return x->index < y->index ? -1 : 1;
}

/* A heap of things by the end of their intervals. */
static void heap_push(thing **heap, uint32_t *count, thing *t) {
  uint32_t i = (*count)++;
  for (; i && heap[(i - 1) / 2]->in.end > t->in.end; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
  heap[i] = t;
}
static thing *heap_pop(thing **heap, uint32_t *count) {
  thing *top = heap[0], *last = heap[--*count];
  uint32_t i = 0;
  for (uint32_t child; (child = 2 * i + 1) < *count; i = child) {
    if (child + 1 < *count && heap[child + 1]->in.end < heap[child]->in.end) child++;
    if (heap[child]->in.end >= last->in.end) break;
    heap[i] = heap[child];
  }
  if (*count) heap[i] = last;
  return top;
}

/* Gives every thing its first unit; returns how many units there are. */
static uint32_t assign(thing *things, uint32_t count) {
  units u = {0};
  thing **active = ff_alloc((count + 1) * sizeof *active);
  uint32_t active_count = 0;
  qsort(things, count, sizeof *things, by_start);
  for (uint32_t t = 0; t < count; t++) {
    while (active_count && active[0]->in.end < things[t].in.start) {
      thing *done = heap_pop(active, &active_count);
      memset(u.taken.items + done->first, 0, done->width);
    }
    things[t].first = units_take(&u, things[t].width);
    heap_push(active, &active_count, &things[t]);
  }
  free(active);
  uint32_t total = (uint32_t)u.taken.count;
  free(u.taken.items);
  return total;
}

/* ---- putting it together ---- */

static bool needs_zero(const layout_maker *m, uint32_t reg) {
  return m->cfg->block_count && set_has(m->live_in + (size_t)m->cfg->block_of[0] * m->words, reg);
}

/* [0, ...): registers that must start as zero, then all predicates. */
static void place_zeroed(layout_maker *m) {
  const ptx_func *func = m->func;
  uint32_t at = 0, count = 0;
  thing *things = ff_alloc((func->reg_count + 1) * sizeof *things);
  for (uint32_t r = 0; r < func->reg_count; r++) {
    uint32_t slot = exec_type_slot(func->regs[r].type);
    if (slot && needs_zero(m, r)) {
      m->layout->reg[r] = at;
      at += slot * EXEC_LANES;
    } else if (!slot) {
      interval in = needs_zero(m, r) ? (interval){0, UINT32_MAX - 1} : m->intervals[r];
      things[count++] = (thing){.in = in, .index = r, .width = 1};
    }
  }
  uint32_t cells = assign(things, count);
  for (uint32_t t = 0; t < count; t++) m->layout->reg[things[t].index] = at + things[t].first * 4;
  free(things);
  m->layout->zero_bytes = (at + cells * 4 + 63) & ~63u;
}

/* Registers of one width, in units of that width: where registers of two widths shared bytes, one lane's cell would
 * cover other lanes', which may be elsewhere in the program. */
static void place_width(layout_maker *m, uint32_t slot) {
  const ptx_func *func = m->func;
  uint32_t count = 0;
  thing *things = ff_alloc((func->reg_count + 1) * sizeof *things);
  for (uint32_t r = 0; r < func->reg_count; r++) {
    if (exec_type_slot(func->regs[r].type) == slot && !needs_zero(m, r))
      things[count++] = (thing){.in = m->intervals[r], .index = r, .width = 1};
  }
  uint32_t total = assign(things, count);
  for (uint32_t t = 0; t < count; t++)
    m->layout->reg[things[t].index] = m->layout->bytes + things[t].first * slot * EXEC_LANES;
  free(things);
  m->layout->bytes += total * slot * EXEC_LANES;
}

static void note_use(layout_maker *m, interval *uses, const ptx_operand *operand, uint32_t at) {
  const ptx_var *var = operand->symbol ? operand->symbol->var : NULL;
  if (var && var->func == m->func && var->space == PTX_SPACE_PARAM) extend(&uses[var->index], at);
  for (uint32_t e = 0; e < operand->element_count; e++) note_use(m, uses, &operand->elements[e], at);
}

/* Words of .param variables of calls: one call's are free for the next if they are used within one basic block. */
static void place_params(layout_maker *m) {
  const ptx_func *func = m->func;
  interval *uses = ff_alloc((func->var_count + 1) * sizeof *uses);
  thing *things = ff_alloc((func->var_count + 1) * sizeof *things);
  uint32_t count = 0;
  for (uint32_t v = 0; v < func->var_count; v++) uses[v] = (interval){UINT32_MAX, 0};
  for (uint32_t i = 0; i < func->instr_count; i++)
    for (uint32_t k = 0; k < func->instrs[i].operand_count; k++) note_use(m, uses, &func->instrs[i].operands[k], i);
  for (uint32_t v = 0; v < func->var_count; v++) {
    const ptx_var *var = func->vars[v];
    bool own = false;
    for (uint32_t p = 0; p < func->param_count; p++) own = own || func->params[p] == var;
    for (uint32_t r = 0; r < func->result_count; r++) own = own || func->results[r] == var;
    bool placed = var->space == PTX_SPACE_PARAM || (own && var->space == PTX_SPACE_REG);
    if (!placed || (own && func->entry)) continue;
    bool local =
        !own && uses[v].start <= uses[v].end && m->cfg->block_of[uses[v].start] == m->cfg->block_of[uses[v].end];
    uint64_t words = (var->size + 3) / 4;
    things[count++] = (thing){
        .in = local ? uses[v] : (interval){0, UINT32_MAX - 1}, .index = v, .width = words ? (uint32_t)words : 1};
  }
  uint32_t total = assign(things, count);
  for (uint32_t t = 0; t < count; t++) m->layout->var[things[t].index] = m->layout->bytes + things[t].first * EXEC_SLOT;
  m->layout->bytes += total * EXEC_SLOT;
  free(things);
  free(uses);
}

static void number_positions(layout_maker *m) {
  uint32_t next = 0;
  for (uint32_t o = 0; o < m->cfg->block_count; o++) {
    const ptx_block *block = &m->cfg->blocks[m->cfg->by_order[o]];
    for (uint32_t i = block->first; i < block->end; i++) m->position[i] = next++;
  }
}

/* ---- checks ---- */

typedef struct placed {
  uint32_t offset, bytes;
  interval in;
} placed;

static int by_offset_and_start(const void *a, const void *b) {
  const placed *x = a, *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return (x->in.start > y->in.start) - (x->in.start < y->in.start);
}

static placed placed_register(const layout_maker *m, uint32_t reg) {
  uint32_t slot = exec_type_slot(m->func->regs[reg].type);
  interval in = needs_zero(m, reg) ? (interval){0, UINT32_MAX - 1} : m->intervals[reg];
  return (placed){m->layout->reg[reg], slot ? slot * EXEC_LANES : 4, in};
}

/* Registers that share bytes have the same cells and disjoint intervals; what must be zero is in the zeroed part. */
static void check_sharing(const layout_maker *m) {
  placed *all = ff_alloc((m->func->reg_count + 1) * sizeof *all);
  uint32_t count = 0;
  for (uint32_t r = 0; r < m->func->reg_count; r++) {
    placed p = placed_register(m, r);
    FF_ASSERT(p.offset + p.bytes <= m->layout->bytes);
    FF_ASSERT(!needs_zero(m, r) || p.offset + p.bytes <= m->layout->zero_bytes);
    if (p.in.start <= p.in.end) all[count++] = p;
  }
  qsort(all, count, sizeof *all, by_offset_and_start);
  for (uint32_t i = 1; i < count; i++) {
    if (all[i].offset != all[i - 1].offset) FF_ASSERT(all[i - 1].offset + all[i - 1].bytes <= all[i].offset);
    else FF_ASSERT(all[i].bytes == all[i - 1].bytes && all[i - 1].in.end < all[i].in.start);
  }
  free(all);
}

exec_layout *exec_layout_make(const ptx_func *func, const ptx_cfg *cfg) {
  exec_layout *layout = ff_alloc(sizeof *layout);
  layout_maker m = {.func = func, .cfg = cfg, .layout = layout, .words = func->reg_count / 64 + 1, .regs_room = 64};
  uint64_t set_bytes = (uint64_t)m.words * 8 * (cfg->block_count + 1);
  bool share = set_bytes <= MAX_SET_BYTES;
  layout->reg = ff_alloc((func->reg_count + 1) * sizeof *layout->reg);
  layout->var = ff_alloc((func->var_count + 1) * sizeof *layout->var);
  layout->dead = ff_alloc(func->instr_count + 1);
  for (uint32_t v = 0; v < func->var_count; v++) layout->var[v] = EXEC_NO_OFFSET;
  m.position = ff_alloc((func->instr_count + 1) * sizeof *m.position);
  m.intervals = ff_alloc((func->reg_count + 1) * sizeof *m.intervals);
  m.regs = ff_alloc(m.regs_room * sizeof *m.regs);
  m.live_in = ff_alloc(share ? set_bytes : 8);
  m.live_out = ff_alloc(share ? set_bytes : 8);
  number_positions(&m);
  if (share) {
    find_liveness(&m);
    find_intervals(&m);
  } else {
    for (uint32_t r = 0; r < func->reg_count; r++) m.intervals[r] = (interval){0, UINT32_MAX - 1};
  }
  if (share) {
    place_zeroed(&m);
    layout->bytes = layout->zero_bytes;
    for (uint32_t slot = 4; slot <= 16; slot *= 2) place_width(&m, slot);
    if (ff_check_level >= 2) check_sharing(&m);
  } else { /* everything may be read first: everything starts as zero */
    uint32_t at = 0;
    for (uint32_t r = 0; r < func->reg_count; r++) {
      uint32_t slot = exec_type_slot(func->regs[r].type);
      layout->reg[r] = at;
      at += slot ? slot * EXEC_LANES : 64;
    }
    layout->bytes = layout->zero_bytes = at;
  }
  place_params(&m);
  free(m.position);
  free(m.intervals);
  free(m.regs);
  free(m.live_in);
  free(m.live_out);
  return layout;
}

void exec_layout_free(exec_layout *layout) {
  if (!layout) return;
  free(layout->reg);
  free(layout->var);
  free(layout->dead);
  free(layout);
}
