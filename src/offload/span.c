/* SPDX-License-Identifier: Apache-2.0 */
/* What has to be sent for a region.
 *
 * In: registers that some way from its entry reads before it writes them, and those that it writes on some ways only
 * and that live on (the lanes that took another way keep what they had). Out: registers that it may write and that are
 * live where it goes on.
 *
 * A region grows one step at a time (region_state): an instruction, or a span of whole blocks, whose effect on each
 * register is found once (span_make) by data flow over its blocks alone. in_words and out_words are the sums of the
 * weights of the registers that are in and out (region_state_check). */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "offload/analysis.h"

/* ---- spans ---- */

typedef struct flow {
  uint64_t *read, *killed;
  uint64_t *next;
} flow; /* per block of the span; `next` is one set */

static bool inside(const span *s, uint32_t block) { return block >= s->first && block <= s->last; }

/* One pass: read = uses or what a successor reads, less what is killed; killed = kills, or on all ways on. */
static bool flow_pass(const analysis *a, const span *s, flow *f) {
  bool changed = false;
  size_t words = a->flow.words;
  for (uint32_t b = s->last + 1; b-- > s->first;) {
    const ptx_block *block = &a->cfg->blocks[b];
    const uint64_t *uses = block_set(a, a->uses, b), *kills = block_set(a, a->kills, b);
    uint64_t *read = f->read + (b - s->first) * words, *killed = f->killed + (b - s->first) * words;
    memset(f->next, 0, words * sizeof *f->next);
    memset(f->next + words, 0xff, words * sizeof *f->next);
    for (uint32_t i = 0; i < block->successor_count; i++) {
      uint32_t to = block->successors[i];
      for (size_t w = 0; w < words; w++) {
        f->next[w] |= inside(s, to) ? f->read[(to - s->first) * words + w] : 0;
        f->next[words + w] &= inside(s, to) ? f->killed[(to - s->first) * words + w] : 0;
      }
    }
    for (size_t w = 0; w < words; w++) {
      uint64_t now_read = uses[w] | (f->next[w] & ~kills[w]), now_killed = kills[w] | f->next[words + w];
      changed |= now_read != read[w] || now_killed != killed[w];
      read[w] = now_read;
      killed[w] = now_killed;
    }
  }
  return changed;
}

/* What is read and killed where the span is entered, into f->next. */
static void flow_entry(const analysis *a, const span *s, flow *f) {
  size_t words = a->flow.words;
  memset(f->next, 0, words * sizeof *f->next);
  memset(f->next + words, 0xff, words * sizeof *f->next);
  const ptx_block *before = s->entry == OFFLOAD_NONE_INDEX ? &a->cfg->blocks[s->first - 1] : NULL;
  uint32_t count = before ? before->successor_count : 1;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t to = before ? before->successors[i] : s->entry;
    for (size_t w = 0; w < words; w++) {
      f->next[w] |= inside(s, to) ? f->read[(to - s->first) * words + w] : 0;
      f->next[words + w] &= inside(s, to) ? f->killed[(to - s->first) * words + w] : 0;
    }
  }
}

static void add_effects(const analysis *a, span *s, const flow *f, effects *all) {
  uint64_t *defines = ff_alloc((a->flow.words + 1) * sizeof *defines);
  const uint64_t *live = s->exit < a->func->instr_count ? block_set(a, a->live_in, a->cfg->block_of[s->exit]) : NULL;
  for (uint32_t b = s->first; b <= s->last; b++)
    for (size_t w = 0; w < a->flow.words; w++) defines[w] |= block_set(a, a->defines, b)[w];
  s->effect_first = (uint32_t)all->count;
  for (size_t w = 0; w < a->flow.words; w++)
    for (uint64_t rest = f->next[w] | defines[w]; rest; rest &= rest - 1) {
      uint32_t bit = (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest));
      uint8_t flags = bit_get(f->next, bit) ? TOUCH_READ : 0;
      if (bit_get(defines, bit))
        flags |= bit_get(f->next + a->flow.words, bit) ? TOUCH_WRITE : TOUCH_WRITE | TOUCH_MAYBE;
      if (live && bit_get(live, bit)) flags |= TOUCH_LIVE;
      FF_PUSH(all, ((effect){a->reg_of_bit[bit], flags}));
    }
  s->effect_count = (uint32_t)all->count - s->effect_first;
  free(defines);
}

/* The outermost loop around the block that lies in the span, or OFFLOAD_NONE_INDEX. */
static uint32_t top_loop(const analysis *a, const span *s, uint32_t block) {
  uint32_t top = OFFLOAD_NONE_INDEX;
  for (uint32_t l = a->loop_of[block];
       l != OFFLOAD_NONE_INDEX && a->loops[l].first_block >= s->first && a->loops[l].last_block <= s->last;
       l = a->loops[l].parent)
    top = l;
  return top;
}

/* Known trips before static ones before none; then what accesses most. */
static bool counts_more(const loop *x, const loop *y) {
  static const int rank[] = {
      [OFFLOAD_TRIPS_ONE] = 0, [OFFLOAD_TRIPS_UNKNOWN] = 1, [OFFLOAD_TRIPS_STATIC] = 2, [OFFLOAD_TRIPS_KNOWN] = 3};
  if (!x->loads && !x->stores) return false;
  if (!y->loads && !y->stores) return true;
  if (rank[x->trips.kind] != rank[y->trips.kind]) return rank[x->trips.kind] > rank[y->trips.kind];
  return x->loads + 2 * (uint64_t)x->stores > y->loads + 2 * (uint64_t)y->stores;
}

static void add_once(span *s, const loop *l) {
  uint64_t times = l->trips.kind == OFFLOAD_TRIPS_STATIC ? l->trips.count : 1, most = 1u << 24;
  uint64_t loads = s->once_loads + l->loads * times, stores = s->once_stores + l->stores * times;
  s->once_loads = (uint32_t)(loads < most ? loads : most);
  s->once_stores = (uint32_t)(stores < most ? stores : most);
}

static void count_accesses(const analysis *a, span *s) {
  s->loop = OFFLOAD_NONE_INDEX;
  for (uint32_t b = s->first; b <= s->last; b++) {
    uint32_t top = top_loop(a, s, b);
    if (top == OFFLOAD_NONE_INDEX) {
      for (uint32_t i = a->cfg->blocks[b].first; i < a->cfg->blocks[b].end; i++) {
        s->once_loads += a->accesses[i] == ACCESS_LOAD;
        s->once_stores += a->accesses[i] == ACCESS_STORE;
      }
    } else if (a->loops[top].first_block == b) {
      if (s->loop != OFFLOAD_NONE_INDEX && !counts_more(&a->loops[top], &a->loops[s->loop])) {
        add_once(s, &a->loops[top]);
      } else {
        if (s->loop != OFFLOAD_NONE_INDEX) add_once(s, &a->loops[s->loop]);
        s->loop = top;
      }
    }
  }
}

static bool writes_bound(const analysis *a, const span *s, uint32_t reg) {
  uint32_t bit = reg == PTX_NO_REG ? PTX_NO_REG : a->flow.bit_of[reg];
  if (bit == PTX_NO_REG) return false;
  for (uint32_t b = s->first; b <= s->last; b++)
    if (!in_loop(a, &a->loops[s->loop], b) && bit_get(block_set(a, a->defines, b), bit)) return true;
  return false;
}

bool span_make(const analysis *a, span *s, effects *all) {
  uint32_t count = s->last + 1 - s->first;
  size_t words = a->flow.words;
  flow f = {ff_alloc((count * words + 1) * sizeof(uint64_t)), ff_alloc((count * words + 1) * sizeof(uint64_t)),
            ff_alloc((2 * words + 1) * sizeof(uint64_t))};
  int passes = 0;
  memset(f.killed, 0xff, count * words * sizeof *f.killed);
  while (passes < DATAFLOW_PASSES && flow_pass(a, s, &f)) passes++;
  flow_entry(a, s, &f);
  add_effects(a, s, &f, all);
  free(f.read);
  free(f.killed);
  free(f.next);
  count_accesses(a, s);
  if (s->loop != OFFLOAD_NONE_INDEX)
    s->bounds_written =
        writes_bound(a, s, a->loops[s->loop].trips.from.reg) || writes_bound(a, s, a->loops[s->loop].trips.to.reg);
  s->work =
      (uint64_t)(passes + 2) * count * (words + 1) + (a->cfg->blocks[s->last].end - a->cfg->blocks[s->first].first) / 4;
  return passes < DATAFLOW_PASSES;
}

/* ---- a region that grows ---- */

enum { STATE_IN = 1, STATE_MUST = 2, STATE_MAY = 4, STATE_LIVE = 8, STATE_TOUCHED = 16 };

void region_state_make(region_state *r, const analysis *a) {
  *r = (region_state){
      .a = a, .flags = ff_alloc(a->reg_count + 1), .changed = ff_alloc((a->reg_count + 1) * sizeof *r->changed)};
}

void region_state_free(region_state *r) {
  free(r->flags);
  free(r->changed);
}

void region_state_clear(region_state *r) {
  if (ff_check_level >= 2) region_state_check(r);
  for (uint32_t i = 0; i < r->changed_count; i++) r->flags[r->changed[i]] = 0;
  r->changed_count = r->in_words = r->out_words = r->loads = r->stores = 0;
}

static bool is_in(uint8_t flags) {
  return flags & STATE_IN || (flags & (STATE_MAY | STATE_MUST | STATE_LIVE)) == (STATE_MAY | STATE_LIVE);
}
static bool is_out(uint8_t flags) { return (flags & (STATE_MAY | STATE_LIVE)) == (STATE_MAY | STATE_LIVE); }

static void touch_register(region_state *r, uint32_t reg, uint8_t how, undo_log *log) {
  uint8_t before = r->flags[reg], now = before & ~STATE_LIVE;
  uint32_t weight = r->a->weights[reg];
  if (log) FF_PUSH(log, ((undo){reg, before}));
  if (!(before & STATE_TOUCHED)) r->changed[r->changed_count++] = reg;
  now |= STATE_TOUCHED;
  if (how & TOUCH_READ && !(before & STATE_MUST)) now |= STATE_IN;
  if (how & TOUCH_WRITE) now |= how & TOUCH_MAYBE ? STATE_MAY : STATE_MAY | STATE_MUST;
  if (how & TOUCH_LIVE) now |= STATE_LIVE;
  r->in_words += (is_in(now) ? weight : 0) - (is_in(before) ? weight : 0);
  r->out_words += (is_out(now) ? weight : 0) - (is_out(before) ? weight : 0);
  r->flags[reg] = now;
}

void region_state_add(region_state *r, uint32_t instr, undo_log *log) {
  const analysis *a = r->a;
  for (uint32_t k = a->touch_first[instr]; k < a->touch_first[instr + 1]; k++)
    touch_register(r, a->touches[k].reg, a->touches[k].flags, log);
  r->loads += a->accesses[instr] == ACCESS_LOAD;
  r->stores += a->accesses[instr] == ACCESS_STORE;
}

void region_state_add_span(region_state *r, const effect *effects, uint32_t count, undo_log *log) {
  for (uint32_t k = 0; k < count; k++) touch_register(r, effects[k].reg, effects[k].flags, log);
}

void region_state_undo(region_state *r, const undo_log *log) {
  for (size_t k = log->count; k-- > 0;) {
    uint32_t reg = log->items[k].reg, weight = r->a->weights[reg];
    uint8_t before = log->items[k].flags, now = r->flags[reg];
    r->in_words += (is_in(before) ? weight : 0) - (is_in(now) ? weight : 0);
    r->out_words += (is_out(before) ? weight : 0) - (is_out(now) ? weight : 0);
    r->flags[reg] = before;
    if (!(before & STATE_TOUCHED)) r->changed_count--;
  }
}

bool region_state_writes(const region_state *r, uint32_t reg) { return r->flags[reg] & STATE_MAY; }
bool region_state_is_in(const region_state *r, uint32_t reg) { return is_in(r->flags[reg]); }
bool region_state_is_out(const region_state *r, uint32_t reg) { return is_out(r->flags[reg]); }
