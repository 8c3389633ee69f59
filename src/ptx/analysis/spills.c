/* SPDX-License-Identifier: Apache-2.0 */
/* See spills.h. Blocks are walked in their order, each with a set of registers that are `held` at its begin; before an
 * instruction what it reads is loaded if it is not held, and of what is held too much, that goes which is needed
 * furthest away. What made_again says goes first, and costs nothing here. A value with one definition that is not in a
 * deeper loop than the place where it goes is stored where it is defined, once; another one behind its last use, and so
 * is one that a load brings, which is not there at once. Where two blocks hold different registers, loads and stores
 * stand on the edge between them.
 *
 *     sum of words over the registers that are held <= room, but for what one instruction needs at once
 *     a register that is live and not held is in local memory: stored, or stored where it is defined */
#include "ptx/analysis/spills.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ptx/analysis/dataflow.h"
#include "ptx/analysis/values.h"
#include "ptx/syntax/pending.h"

#define NEVER UINT32_MAX
#define BEHIND_LOOP 100000u         /* instructions that a loop's end is taken to be away */
#define TABLE_MAX ((size_t)1 << 25) /* distances: of blocks times registers that are live between blocks */
/* registers that are no value's: the pointer to local memory, and one beside pairs */
enum { OF_COMPILER = 2 };
enum { AHEAD = 16 }; /* instructions that a load may go up, to be there in time */

typedef struct access { /* of a block: a register, and where it is needed next behind the instruction */
  uint32_t reg, next;
} access;

typedef struct candidate { /* to be held at a block's begin */
  uint32_t distance, bit;
} candidate;

typedef struct spiller {
  const ptx_func *func;
  const ptx_cfg *cfg;
  ptx_value *values;
  uint32_t room;
  dataflow flow; /* bits: registers that are live between blocks */
  uint32_t *reg_of_bit;
  uint32_t *distance;                          /* [block][bit]: from the block's begin to the next use; or NEVER */
  uint64_t *in, *in_stored, *out, *out_stored; /* [block]: what is held, and what is stored, at its begin and end */
  uint32_t *pressure;                          /* [block]: words that are live at once, at most */
  bool *done;                                  /* [block] */
  uint8_t *at_definition;                      /* per register: it is stored there */
  FF_VEC(ptx_spill) code;
  touched t;
  uint32_t *behind; /* [bit]: distances from a block's end */
  candidate *list;
  /* of the block that is walked: */
  uint32_t *next;         /* per register: the place, from the block's begin, where it is needed */
  uint32_t *since, *last; /* per register that is held: places, from which on, and that of its last access */
  uint8_t *held, *stored; /* per register; held: PINNED while an instruction needs it */
  FF_VEC(uint32_t) set;   /* what is held */
  uint32_t width;         /* its words */
  /* per place: words that are held by need: by how much they change there, then how many */
  int32_t *used;
  FF_VEC(uint32_t) load_floor; /* of each of the block's loads: the place above which it cannot go */
} spiller;

enum { HELD = 1, PINNED = 2 };

static uint32_t words_of(const spiller *s, uint32_t reg) { return s->values[reg].words; }

/* Reads, and writes that leave some lanes as they were. */
static uint32_t uses_of(const spiller *s, const ptx_instr *instr) {
  return s->t.reads + (instr->guard != PTX_NO_REG ? s->t.writes : 0);
}

/* ---- how far away the next use is ---- */

static void find_exposed(spiller *s) {
  uint32_t *seen = ff_alloc((s->func->reg_count + (size_t)1) * sizeof *seen);
  for (uint32_t i = 0; i < s->func->instr_count; i++) {
    const ptx_instr *instr = &s->func->instrs[i];
    uint32_t block = s->cfg->block_of[i] + 1;
    ptx_touched(instr, &s->t);
    for (uint32_t k = 0; k < uses_of(s, instr); k++)
      if (words_of(s, s->t.regs[k]) && seen[s->t.regs[k]] != block) ptx_dataflow_add(&s->flow, s->t.regs[k]);
    for (uint32_t k = s->t.reads; k < s->t.reads + s->t.writes; k++)
      if (instr->guard == PTX_NO_REG) seen[s->t.regs[k]] = block;
  }
  free(seen);
}

/* behind[] gets the distances from the block's end. */
static void look_behind(spiller *s, uint32_t b) {
  const ptx_block *block = &s->cfg->blocks[b];
  for (uint32_t v = 0; v < s->flow.bit_count; v++) s->behind[v] = NEVER;
  for (uint32_t n = 0; n < block->successor_count; n++) {
    const ptx_block *to = &s->cfg->blocks[block->successors[n]];
    const uint32_t *there = s->distance + (size_t)block->successors[n] * s->flow.bit_count;
    uint32_t more = to->loop_depth < block->loop_depth ? (block->loop_depth - to->loop_depth) * BEHIND_LOOP : 0;
    for (uint32_t v = 0; v < s->flow.bit_count; v++)
      if (there[v] != NEVER && there[v] + more < s->behind[v]) s->behind[v] = there[v] + more;
  }
}

/* Behind the block's end, counted from its begin. */
static uint32_t from_begin(const ptx_block *block, uint32_t distance) {
  return distance < NEVER / 2 ? distance + (block->end - block->first) : distance;
}

/* True: some got nearer. */
static bool flow_block(spiller *s, uint32_t b) {
  const ptx_block *block = &s->cfg->blocks[b];
  look_behind(s, b);
  for (uint32_t v = 0; v < s->flow.bit_count; v++) s->behind[v] = from_begin(block, s->behind[v]);
  for (uint32_t i = block->end; i-- > block->first;) {
    ptx_touched(&s->func->instrs[i], &s->t);
    uint32_t uses = uses_of(s, &s->func->instrs[i]);
    for (uint32_t k = s->t.reads + s->t.writes; k-- > 0;) {
      uint32_t bit = s->flow.bit_of[s->t.regs[k]];
      if (bit != PTX_NO_REG) s->behind[bit] = k < uses ? i - block->first : NEVER;
    }
  }
  uint32_t *begin = s->distance + (size_t)b * s->flow.bit_count;
  bool changed = false;
  for (uint32_t v = 0; v < s->flow.bit_count; v++) {
    if (s->behind[v] >= begin[v]) continue;
    begin[v] = s->behind[v];
    changed = true;
  }
  return changed;
}

static void find_distances(spiller *s) {
  memset(s->distance, 0xff, (size_t)s->cfg->block_count * s->flow.bit_count * sizeof *s->distance);
  bool changed = true;
  for (int pass = 0; changed && pass < DATAFLOW_PASSES; pass++) {
    changed = false;
    for (uint32_t o = s->cfg->block_count; o-- > 0;) changed |= flow_block(s, s->cfg->by_order[o]);
  }
}

/* The words that are live at once in a block, at most. */
static uint32_t pressure_of(spiller *s, uint32_t b) {
  const ptx_block *block = &s->cfg->blocks[b];
  uint32_t width = 0;
  uint8_t *live = s->held;
  memset(live, 0, s->func->reg_count);
  look_behind(s, b);
  for (uint32_t v = 0; v < s->flow.bit_count; v++) {
    live[s->reg_of_bit[v]] = s->behind[v] != NEVER;
    if (s->behind[v] != NEVER) width += words_of(s, s->reg_of_bit[v]);
  }
  uint32_t widest = width;
  for (uint32_t i = block->end; i-- > block->first;) {
    ptx_touched(&s->func->instrs[i], &s->t);
    uint32_t dead = 0, all = s->t.reads + s->t.writes, uses = uses_of(s, &s->func->instrs[i]);
    for (uint32_t k = s->t.reads; k < all; k++) dead += live[s->t.regs[k]] ? 0 : words_of(s, s->t.regs[k]);
    if (width + dead > widest) widest = width + dead;
    for (uint32_t k = all; k-- > 0;) {
      uint32_t reg = s->t.regs[k];
      if (live[reg] != (k < uses)) width += k < uses ? words_of(s, reg) : 0u - words_of(s, reg);
      live[reg] = k < uses;
    }
    if (width > widest) widest = width;
  }
  memset(live, 0, s->func->reg_count);
  return widest;
}

/* ---- a block ---- */

static void hold(spiller *s, uint32_t reg, uint32_t place) {
  if (s->held[reg]) return;
  s->held[reg] = HELD;
  s->since[reg] = place;
  s->last[reg] = NEVER; /* no access yet */
  FF_PUSH(&s->set, reg);
  s->width += words_of(s, reg);
}

/* It goes: its register was needed for it up to its last access. */
static void drop_at(spiller *s, size_t n) {
  uint32_t reg = s->set.items[n];
  s->held[reg] = 0;
  s->width -= words_of(s, reg);
  s->set.items[n] = s->set.items[--s->set.count];
  if (s->last[reg] == NEVER) return;
  s->used[s->since[reg]] += (int32_t)words_of(s, reg);
  s->used[s->last[reg] + 1] -= (int32_t)words_of(s, reg);
}

static void drop(spiller *s, uint32_t reg) {
  for (size_t n = 0; s->held[reg] && n < s->set.count; n++)
    if (s->set.items[n] == reg) drop_at(s, n);
}

static void put(spiller *s, uint32_t at, uint32_t reg, bool load) {
  if (s->values[reg].made_again) return;
  FF_PUSH(&s->code, ((ptx_spill){.at = at, .needed = at, .reg = reg, .words = s->values[reg].words, .load = load}));
}

static uint32_t depth_at(const spiller *s, uint32_t at) { return s->cfg->blocks[s->cfg->block_of[at]].loop_depth; }

/* The value goes before instruction `at`. */
static void store(spiller *s, uint32_t at, uint32_t reg) {
  uint32_t defined = s->values[reg].defined_at;
  if (s->stored[reg] || s->at_definition[reg]) return;
  s->stored[reg] = 1;
  if (defined != PTX_NO_REG && !ptx_is_pending_load(&s->func->instrs[defined]) && defined + 1 < s->func->instr_count &&
      depth_at(s, defined) <= depth_at(s, at)) {
    s->at_definition[reg] = 1;
    at = defined + 1;
  }
  put(s, at, reg, false);
}

static bool goes_before(const spiller *s, uint32_t a, uint32_t b) {
  if (s->values[a].made_again != s->values[b].made_again) return s->values[a].made_again;
  return s->next[a] != s->next[b] ? s->next[a] > s->next[b] : a < b;
}

/* At a place of the block: makes what is held no wider than the room, if all that is not pinned may go. */
static void make_room(spiller *s, const ptx_block *block, uint32_t place) {
  while (s->width > s->room) {
    size_t worst = s->set.count;
    for (size_t n = 0; n < s->set.count; n++)
      if (s->held[s->set.items[n]] != PINNED &&
          (worst == s->set.count || goes_before(s, s->set.items[n], s->set.items[worst])))
        worst = n;
    if (worst == s->set.count) return;
    uint32_t reg = s->set.items[worst];
    bool accessed = s->last[reg] != NEVER && s->last[reg] < place;
    bool stays = s->next[reg] != NEVER && !s->stored[reg] && !s->at_definition[reg]; /* until it is stored */
    if (stays && s->last[reg] == NEVER && place) s->last[reg] = place - 1;
    if (s->next[reg] != NEVER) store(s, block->first + (accessed ? s->last[reg] + 1 : place), reg);
    drop_at(s, worst);
  }
}

/* after[]: for each access of the block, in order, where its register is needed next. */
static access *find_next(spiller *s, uint32_t b) {
  const ptx_block *block = &s->cfg->blocks[b];
  size_t count = 0;
  for (uint32_t i = block->first; i < block->end; i++) {
    ptx_touched(&s->func->instrs[i], &s->t);
    count += s->t.reads + s->t.writes;
  }
  access *after = ff_alloc((count + 1) * sizeof *after);
  for (uint32_t v = 0; v < s->flow.bit_count; v++) s->next[s->reg_of_bit[v]] = from_begin(block, s->behind[v]);
  for (uint32_t i = block->end; i-- > block->first;) {
    ptx_touched(&s->func->instrs[i], &s->t);
    uint32_t all = s->t.reads + s->t.writes, uses = uses_of(s, &s->func->instrs[i]);
    count -= all;
    for (uint32_t k = 0; k < all; k++) after[count + k] = (access){s->t.regs[k], s->next[s->t.regs[k]]};
    for (uint32_t k = all; k-- > 0;) s->next[s->t.regs[k]] = k < uses ? i - block->first : NEVER;
  }
  return after;
}

static void use(spiller *s, uint32_t reg, uint32_t at, uint32_t place) {
  if (!words_of(s, reg)) return;
  if (!s->held[reg] && (s->stored[reg] || s->at_definition[reg])) {
    size_t before = s->code.count;
    put(s, at, reg, true);
    bool left = s->last[reg] != NEVER; /* it was held in this block before */
    if (s->code.count > before) FF_PUSH(&s->load_floor, left ? s->last[reg] + 1 : 0);
  }
  hold(s, reg, place);
  s->held[reg] = PINNED;
}

static void step(spiller *s, const ptx_block *block, uint32_t i, const access *a) {
  const ptx_instr *instr = &s->func->instrs[i];
  uint32_t place = i - block->first;
  ptx_touched(instr, &s->t);
  uint32_t reads = s->t.reads, all = reads + s->t.writes, uses = uses_of(s, instr);
  for (uint32_t k = 0; k < uses; k++) use(s, a[k].reg, i, place);
  make_room(s, block, place);
  for (uint32_t k = 0; k < uses; k++)
    if (s->held[a[k].reg]) s->held[a[k].reg] = HELD, s->last[a[k].reg] = place;
  for (uint32_t k = 0; k < all; k++) s->next[a[k].reg] = a[k].next;
  for (uint32_t k = 0; k < reads; k++)
    if (a[k].next == NEVER) drop(s, a[k].reg);
  for (uint32_t k = reads; k < all; k++) {
    if (!words_of(s, a[k].reg)) continue;
    hold(s, a[k].reg, place);
    s->held[a[k].reg] = PINNED;
    s->stored[a[k].reg] = 0;
  }
  make_room(s, block, place);
  for (uint32_t k = reads; k < all; k++) {
    if (!s->held[a[k].reg]) continue;
    s->held[a[k].reg] = HELD;
    s->last[a[k].reg] = place;
    if (a[k].next == NEVER) drop(s, a[k].reg);
  }
}

/* Loads go up as long as registers are free, so that they are there in time. */
static void move_loads_up(spiller *s, const ptx_block *block, size_t from) {
  uint32_t length = block->end - block->first;
  size_t number = 0;
  for (uint32_t place = 1; place <= length; place++) s->used[place] += s->used[place - 1];
  for (size_t n = from; n < s->code.count; n++) {
    ptx_spill *l = &s->code.items[n];
    if (!l->load) continue;
    uint32_t floor = block->first + s->load_floor.items[number++];
    while (l->at > floor && l->needed - l->at < AHEAD &&
           s->used[l->at - 1 - block->first] + l->words <= (int32_t)s->room) {
      l->at--;
      s->used[l->at - block->first] += l->words;
    }
  }
}

static void walk(spiller *s, uint32_t b) {
  const ptx_block *block = &s->cfg->blocks[b];
  size_t from = s->code.count;
  look_behind(s, b);
  access *after = find_next(s, b), *at = after;
  s->load_floor.count = 0;
  memset(s->used, 0, (block->end - block->first + (size_t)2) * sizeof *s->used);
  for (uint32_t i = block->first; i < block->end; i++) {
    step(s, block, i, at);
    at += s->t.reads + s->t.writes;
  }
  for (size_t n = 0; n < s->set.count; n++) s->last[s->set.items[n]] = block->end - block->first - 1; /* to the end */
  for (size_t n = s->set.count; n-- > 0;) {
    uint32_t reg = s->set.items[n];
    drop_at(s, n);
    s->held[reg] = HELD; /* for `leave` */
  }
  move_loads_up(s, block, from);
  free(after);
}

/* ---- what is held at a block's begin ---- */

static int nearer(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
  return x->bit < y->bit ? -1 : x->bit > y->bit;
}

static bool is_loop_head(const spiller *s, const ptx_block *block) {
  for (uint32_t p = 0; p < block->predecessor_count; p++)
    if (!s->done[block->predecessors[p]] && s->cfg->blocks[block->predecessors[p]].reachable) return true;
  return false;
}

/* What some block before holds; of a loop's head, what the loop needs and what passes through it. */
static uint32_t find_candidates(spiller *s, const ptx_block *block, bool heads) {
  const uint32_t *distance = s->distance + (size_t)(block - s->cfg->blocks) * s->flow.bit_count;
  uint64_t *stored = s->in_stored + (size_t)(block - s->cfg->blocks) * s->flow.words;
  uint32_t count = 0;
  for (uint32_t v = 0; v < s->flow.bit_count; v++) {
    if (distance[v] == NEVER) continue;
    uint32_t holding = 0, known = 0, storing = 0;
    for (uint32_t p = 0; p < block->predecessor_count; p++) {
      if (!s->done[block->predecessors[p]]) continue;
      known++;
      holding += bit_get(s->out + block->predecessors[p] * s->flow.words, v);
      storing += bit_get(s->out_stored + block->predecessors[p] * s->flow.words, v);
    }
    if (known && storing == known) bit_set(stored, v);
    if (!heads && known && !holding) continue;
    /* those that all hold come before: of a loop's head, among what passes through the loop */
    bool later = holding < known && (heads ? distance[v] >= BEHIND_LOOP : distance[v] < BEHIND_LOOP / 2);
    s->list[count++] = (candidate){distance[v] + (later ? BEHIND_LOOP / 2 : 0), v};
  }
  qsort(s->list, count, sizeof *s->list, nearer);
  return count;
}

/* How many words a loop leaves for what only passes through it. */
static uint32_t left_by_loop(const spiller *s, const ptx_block *head, uint32_t count) {
  uint32_t most = 0, through = 0;
  for (uint32_t o = head->order; o <= head->loop_end; o++)
    if (s->pressure[s->cfg->by_order[o]] > most) most = s->pressure[s->cfg->by_order[o]];
  for (uint32_t n = 0; n < count; n++)
    if (s->list[n].distance >= BEHIND_LOOP) through += words_of(s, s->reg_of_bit[s->list[n].bit]);
  uint32_t inside = most > through ? most - through : 0;
  return s->room > inside ? s->room - inside : 0;
}

/* What is written in the loop is not what was stored before it. */
static void forget_written(spiller *s, const ptx_block *head, const uint64_t *in, uint64_t *stored) {
  for (uint32_t o = head->order; o <= head->loop_end; o++) {
    const ptx_block *block = &s->cfg->blocks[s->cfg->by_order[o]];
    for (uint32_t i = block->first; i < block->end; i++) {
      ptx_touched(&s->func->instrs[i], &s->t);
      for (uint32_t k = s->t.reads; k < s->t.reads + s->t.writes; k++) {
        uint32_t bit = s->flow.bit_of[s->t.regs[k]];
        if (bit != PTX_NO_REG && bit_get(in, bit)) bit_clear(stored, bit);
      }
    }
  }
}

static void begin(spiller *s, uint32_t b) {
  const ptx_block *block = &s->cfg->blocks[b];
  uint64_t *in = s->in + b * s->flow.words, *stored = s->in_stored + b * s->flow.words;
  bool heads = is_loop_head(s, block);
  uint32_t count = find_candidates(s, block, heads), room = s->room;
  uint32_t through = heads ? left_by_loop(s, block, count) : room;
  for (uint32_t n = 0; n < count; n++) {
    uint32_t words = words_of(s, s->reg_of_bit[s->list[n].bit]);
    bool passes = heads && s->list[n].distance >= BEHIND_LOOP;
    if (words > room || (passes && words > through)) continue;
    room -= words;
    if (passes) through -= words;
    bit_set(in, s->list[n].bit);
  }
  if (heads) forget_written(s, block, in, stored);
  const uint32_t *distance = s->distance + (size_t)b * s->flow.bit_count;
  s->set.count = 0;
  s->width = 0;
  for (uint32_t v = 0; v < s->flow.bit_count; v++) {
    uint32_t reg = s->reg_of_bit[v];
    bool live = distance[v] != NEVER;
    s->held[reg] = 0;
    s->last[reg] = NEVER;
    s->stored[reg] = live && (bit_get(stored, v) || !bit_get(in, v));
    if (live && bit_get(in, v)) hold(s, reg, 0);
  }
}

static void leave(spiller *s, uint32_t b) {
  uint64_t *out = s->out + b * s->flow.words, *stored = s->out_stored + b * s->flow.words;
  for (uint32_t v = 0; v < s->flow.bit_count; v++) {
    uint32_t reg = s->reg_of_bit[v];
    if (s->held[reg]) bit_set(out, v);
    if (s->stored[reg] || s->at_definition[reg]) bit_set(stored, v);
  }
  memset(s->held, 0, s->func->reg_count);
  s->done[b] = true;
}

/* The block's first instruction that reads the register; its last one, if none does. */
static uint32_t first_use(spiller *s, const ptx_block *block, uint32_t reg) {
  for (uint32_t i = block->first; i < block->end; i++) {
    ptx_touched(&s->func->instrs[i], &s->t);
    for (uint32_t k = 0; k < uses_of(s, &s->func->instrs[i]); k++)
      if (s->t.regs[k] == reg) return i;
  }
  return block->end - 1;
}

/* With an item of this block's end, for another edge, that does the same. */
static void put_behind(spiller *s, size_t first, uint32_t at, uint32_t to, uint32_t reg, bool load) {
  for (size_t n = first; n < s->code.count; n++)
    if (s->code.items[n].at == at && s->code.items[n].reg == reg && s->code.items[n].load == load) return;
  size_t count = s->code.count;
  put(s, at, reg, load);
  if (s->code.count == count) return;
  s->code.items[count].behind = true;
  if (load) s->code.items[count].needed = first_use(s, &s->cfg->blocks[to], reg);
}

/* What stands on an edge stands at one of its ends: at that of the block it comes from, if the other one has several.
 * A loop's last round has it then, too. first: the code's first item of an edge from that block. */
static void join(spiller *s, size_t first, uint32_t from, uint32_t to) {
  const ptx_block *b = &s->cfg->blocks[to];
  const uint32_t *distance = s->distance + (size_t)to * s->flow.bit_count;
  size_t words = s->flow.words;
  bool alone = b->predecessor_count == 1;
  for (uint32_t v = 0; v < s->flow.bit_count; v++) {
    if (distance[v] == NEVER) continue;
    uint32_t reg = s->reg_of_bit[v];
    bool had = bit_get(s->out + from * words, v), has = bit_get(s->in + to * words, v);
    bool was = bit_get(s->out_stored + from * words, v) || s->at_definition[reg],
         is = bit_get(s->in_stored + to * words, v) || !has;
    if (!(had ? is && !was : has && was)) continue;
    if (alone) put(s, b->first, reg, !had);
    else put_behind(s, first, s->cfg->blocks[from].end - 1, to, reg, !had);
  }
}

/* ---- slots ---- */

typedef struct interval { /* of a spilled register: places in the order of the blocks, both inclusive */
  uint32_t reg, begin, end;
} interval;

static int earlier(const void *a, const void *b) {
  const interval *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->reg < y->reg ? -1 : x->reg > y->reg;
}

static void extend(interval *i, uint32_t begin, uint32_t end) {
  if (begin < i->begin) i->begin = begin;
  if (end > i->end) i->end = end;
}

/* The first words that are free from `begin` on. */
static uint32_t take_slot(uint32_t *free_from, uint32_t *slots, uint32_t words, const interval *i) {
  uint32_t at = 0;
  for (uint32_t run = 0; run < words; at++) run = at < *slots && free_from[at] > i->begin ? 0 : run + 1;
  uint32_t slot = at - words;
  for (uint32_t n = slot; n < at; n++) free_from[n] = i->end + 1;
  if (at > *slots) *slots = at;
  return slot;
}

/* Registers that are not spilled have no interval. */
static interval *find_intervals(const spiller *s) {
  interval *intervals = ff_alloc((s->func->reg_count + (size_t)1) * sizeof *intervals);
  uint32_t *starts = ff_alloc((s->cfg->block_count + (size_t)1) * sizeof *starts), start = 0;
  for (uint32_t o = 0; o < s->cfg->block_count; o++) {
    const ptx_block *block = &s->cfg->blocks[s->cfg->by_order[o]];
    starts[s->cfg->by_order[o]] = start;
    start += block->end - block->first;
  }
  for (uint32_t r = 0; r < s->func->reg_count; r++) intervals[r] = (interval){r, NEVER, 0};
  for (size_t n = 0; n < s->code.count; n++) {
    const ptx_spill *p = &s->code.items[n];
    uint32_t b = s->cfg->block_of[p->at], place = starts[b] + p->at - s->cfg->blocks[b].first;
    extend(&intervals[p->reg], place, place);
  }
  for (uint32_t b = 0; b < s->cfg->block_count; b++)
    for (uint32_t v = 0; v < s->flow.bit_count; v++) {
      interval *i = &intervals[s->reg_of_bit[v]];
      if (i->begin == NEVER || s->distance[(size_t)b * s->flow.bit_count + v] == NEVER) continue;
      extend(i, starts[b], starts[b] + (s->cfg->blocks[b].end - s->cfg->blocks[b].first));
    }
  free(starts);
  return intervals;
}

static uint32_t give_slots(spiller *s) {
  interval *intervals = find_intervals(s);
  uint32_t *slot_of = ff_alloc((s->func->reg_count + (size_t)1) * sizeof *slot_of), slots = 0;
  uint32_t *free_from = ff_alloc(((size_t)s->func->reg_count + 1) * UINT8_MAX * sizeof *free_from);
  qsort(intervals, s->func->reg_count, sizeof *intervals, earlier);
  for (uint32_t n = 0; n < s->func->reg_count && intervals[n].begin != NEVER; n++)
    slot_of[intervals[n].reg] = take_slot(free_from, &slots, words_of(s, intervals[n].reg), &intervals[n]);
  for (size_t n = 0; n < s->code.count; n++) s->code.items[n].slot = slot_of[s->code.items[n].reg];
  free(intervals);
  free(slot_of);
  free(free_from);
  return slots;
}

static int in_order(const void *a, const void *b) {
  const ptx_spill *x = a, *y = b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  if (x->behind != y->behind) return x->behind ? 1 : -1;
  if (x->load != y->load) return x->load ? 1 : -1;
  if (x->needed != y->needed) return x->needed < y->needed ? -1 : 1;
  return x->reg < y->reg ? -1 : x->reg > y->reg;
}

/* ---- the function ---- */

static void make_tables(spiller *s) {
  size_t regs = s->func->reg_count + (size_t)1, blocks = s->cfg->block_count + (size_t)1,
         bits = s->flow.bit_count + (size_t)1, sets = blocks * s->flow.words + 1;
  s->reg_of_bit = ff_alloc(bits * sizeof *s->reg_of_bit);
  for (uint32_t r = 0; r < s->func->reg_count; r++)
    if (s->flow.bit_of[r] != PTX_NO_REG) s->reg_of_bit[s->flow.bit_of[r]] = r;
  s->distance = ff_alloc(blocks * bits * sizeof *s->distance);
  s->in = ff_alloc(sets * sizeof *s->in);
  s->in_stored = ff_alloc(sets * sizeof *s->in);
  s->out = ff_alloc(sets * sizeof *s->in);
  s->out_stored = ff_alloc(sets * sizeof *s->in);
  s->pressure = ff_alloc(blocks * sizeof *s->pressure);
  s->done = ff_alloc(blocks * sizeof *s->done);
  s->behind = ff_alloc(bits * sizeof *s->behind);
  s->list = ff_alloc(bits * sizeof *s->list);
  s->at_definition = ff_alloc(regs);
  s->held = ff_alloc(regs);
  s->stored = ff_alloc(regs);
  s->next = ff_alloc(regs * sizeof *s->next);
  s->since = ff_alloc(regs * sizeof *s->since);
  s->last = ff_alloc(regs * sizeof *s->last);
  memset(s->next, 0xff, regs * sizeof *s->next);
  memset(s->last, 0xff, regs * sizeof *s->last);
  s->used = ff_alloc((s->func->instr_count + (size_t)2) * sizeof *s->used);
}

static void free_all(spiller *s) {
  void *const tables[] = {s->values,        s->flow.bit_of, s->reg_of_bit,       s->distance, s->in,     s->in_stored,
                          s->out,           s->out_stored,  s->pressure,         s->done,     s->behind, s->list,
                          s->at_definition, s->held,        s->stored,           s->next,     s->since,  s->last,
                          s->used,          s->set.items,   s->load_floor.items, s->t.regs};
  for (size_t n = 0; n < sizeof tables / sizeof tables[0]; n++) free(tables[n]);
}

static bool is_too_wide(spiller *s) {
  uint32_t most = 0;
  for (uint32_t b = 0; b < s->cfg->block_count; b++) {
    s->pressure[b] = s->cfg->blocks[b].reachable ? pressure_of(s, b) : 0;
    if (s->pressure[b] > most) most = s->pressure[b];
  }
  return most > s->room;
}

static void spill(spiller *s) {
  for (uint32_t o = 0; o < s->cfg->block_count; o++) {
    uint32_t b = s->cfg->by_order[o];
    if (!s->cfg->blocks[b].reachable) continue;
    begin(s, b);
    walk(s, b);
    leave(s, b);
  }
  for (uint32_t b = 0; b < s->cfg->block_count; b++) {
    size_t first = s->code.count;
    for (uint32_t n = 0; s->cfg->blocks[b].reachable && n < s->cfg->blocks[b].successor_count; n++)
      join(s, first, b, s->cfg->blocks[b].successors[n]);
  }
}

ptx_spills ptx_spill_code(const ptx_func *func, const ptx_cfg *cfg, uint32_t registers) {
  spiller s = {.func = func, .cfg = cfg, .room = registers > OF_COMPILER ? registers - OF_COMPILER : 0};
  ptx_spills made = {0};
  s.values = ptx_values(func);
  s.flow.bit_of = ff_alloc((func->reg_count + (size_t)1) * sizeof *s.flow.bit_of);
  memset(s.flow.bit_of, 0xff, (func->reg_count + (size_t)1) * sizeof *s.flow.bit_of);
  find_exposed(&s);
  s.flow.words = (s.flow.bit_count + 63) / 64;
  if ((cfg->block_count + (size_t)1) * (s.flow.bit_count + (size_t)1) <= TABLE_MAX) {
    make_tables(&s);
    find_distances(&s);
    if (is_too_wide(&s)) spill(&s);
    made.words = give_slots(&s);
    if (s.code.count) qsort(s.code.items, s.code.count, sizeof *s.code.items, in_order);
    made.items = s.code.items;
    made.count = (uint32_t)s.code.count;
  }
  free_all(&s);
  return made;
}
