/* SPDX-License-Identifier: Apache-2.0 */
/* Random kernels against a naive checker that looks at every stretch of instructions alone: where control enters and
 * leaves it, instruction by instruction; what is live, by a fixed point over instructions; the best set, by trying all.
 * Loops go on by values from memory, so each trip counts once. And random counters: how often their loops go round, by
 * going round. */
#include <math.h>

#include "unit/offload/offload_test.h"

enum { MOST = 26, REGS = 64, KERNELS = 4000, COUNTERS = 3000 };

static uint64_t seed = 1;
static uint32_t any(uint32_t below) {
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(seed >> 33) % below;
}

/* ---- kernels ---- */

static void put_statement(ff_text *t, uint32_t i, uint32_t count) {
  uint32_t near = i + any(7) > 3 ? i + any(7) - 3 : 0, target = any(3) ? near : any(count);
  if (target >= count) target = count - 1;
  ff_text_add(t, "L%u: ", i);
  if (!any(5)) ff_text_add(t, "@%s%%p%u ", any(2) ? "!" : "", any(2));
  switch (any(16)) {
  case 0:
  case 1:
  case 2: ff_text_add(t, "ld.global.u32 %%r%u, [%%rd%u];\n", any(4), any(2)); return;
  case 3:
  case 4:
  case 5: ff_text_add(t, "st.global.u32 [%%rd%u], %%r%u;\n", any(2), any(4)); return;
  case 6: ff_text_add(t, "ld.u64 %%rd%u, [%%rd%u];\n", any(2), any(2)); return;
  case 7: ff_text_add(t, "mov.u32 %%r%u, %%tid.%c;\n", any(4), any(2) ? 'x' : 'y'); return;
  case 8: ff_text_add(t, "setp.eq.u32 %%p%u, %%r%u, %%r%u;\n", any(2), any(4), any(4)); return;
  case 9: ff_text_add(t, any(4) ? "ld.const.u32 %%r0, [c];\n" : "bar.sync 0;\n"); return;
  case 10:
  case 11: ff_text_add(t, "bra L%u;\n", target); return;
  case 12: ff_text_add(t, any(6) ? "mov.u32 %%r%u, 3;\n" : "ret;\n", any(4)); return;
  default: ff_text_add(t, "xor.b32 %%r%u, %%r%u, %%r%u;\n", any(4), any(4), any(4)); return;
  }
}

static ptx_module *make_kernel(void) {
  ff_text t = {0};
  uint32_t count = 4 + any(MOST - 5);
  ff_text_add(&t, "%s.const .u32 c;\n.visible .entry k()\n{\n.reg .b32 %%r<4>; .reg .b64 %%rd<2>; .reg .pred %%p<2>;\n",
              HEAD);
  for (uint32_t i = 0; i + 1 < count; i++) put_statement(&t, i, count);
  ff_text_add(&t, "L%u: ret;\n}\n", count - 1);
  ptx_module *module = parse(t.chars);
  free(t.chars);
  return module;
}

/* ---- the naive checker ---- */

typedef struct naive { /* of each instruction */
  const ptx_func *func;
  uint32_t count, next[MOST][2], next_count[MOST];
  bool reached[MOST], barred[MOST];
  uint64_t reads[MOST], writes[MOST], live[MOST + 1]; /* bits: registers of the function, then %tid.x, %tid.y */
  uint32_t loads[MOST], stores[MOST];
} naive;

static void add_next(naive *n, uint32_t i, uint32_t to) {
  for (uint32_t k = 0; k < n->next_count[i]; k++)
    if (n->next[i][k] == to) return;
  n->next[i][n->next_count[i]++] = to;
}

static void read_instruction(naive *n, uint32_t i) {
  const ptx_instr *instr = &n->func->instrs[i];
  uint32_t regs[8], count = ptx_instr_reads(instr, regs, 8);
  bool ends = instr->opcode == PTX_OP_RET, jumps = instr->opcode == PTX_OP_BRA, guarded = instr->guard != PTX_NO_REG;
  for (uint32_t k = 0; k < count; k++) n->reads[i] |= UINT64_C(1) << regs[k];
  count = ptx_instr_writes(instr, regs, 8);
  for (uint32_t k = 0; k < count; k++) n->writes[i] |= UINT64_C(1) << regs[k];
  for (uint32_t k = 0; k < instr->operand_count; k++)
    if (instr->operands[k].kind == PTX_OPERAND_SREG)
      n->reads[i] |= UINT64_C(1) << (n->func->reg_count + instr->operands[k].sreg - PTX_SREG_TID_X);
  n->barred[i] = ends || instr->opcode == PTX_OP_BAR;
  n->loads[i] = instr->opcode == PTX_OP_LD && !ptx_has(instr, PTX_MOD_CONST);
  n->stores[i] = instr->opcode == PTX_OP_ST;
  if ((!ends && !jumps) || guarded) add_next(n, i, i + 1);
  if (jumps) add_next(n, i, instr->operands[0].label);
}

static uint64_t behind(const naive *n, uint32_t i, const uint64_t *live) {
  uint64_t all = 0;
  for (uint32_t k = 0; k < n->next_count[i]; k++) all |= live[n->next[i][k]];
  return all;
}

static uint64_t before(const naive *n, uint32_t i, uint64_t after) {
  bool guarded = n->func->instrs[i].guard != PTX_NO_REG;
  return n->reads[i] | (guarded ? after : after & ~n->writes[i]);
}

static void read_kernel(naive *n, const ptx_func *func) {
  *n = (naive){.func = func, .count = func->instr_count};
  for (uint32_t i = 0; i < n->count; i++) read_instruction(n, i);
  n->reached[0] = true;
  for (uint32_t round = 0; round < n->count; round++)
    for (uint32_t i = 0; i < n->count; i++)
      for (uint32_t k = 0; n->reached[i] && k < n->next_count[i]; k++) n->reached[n->next[i][k]] = true;
  for (uint32_t round = 0; round <= n->count; round++)
    for (uint32_t i = 0; i < n->count; i++) n->live[i] = before(n, i, behind(n, i, n->live));
}

typedef struct stretch {
  uint32_t entry, exit;
  uint64_t in, out;
  double saved;
} stretch;

/* One entry, one exit, nothing that bars? */
static bool is_region(const naive *n, uint32_t begin, uint32_t end, stretch *s) {
  uint32_t entries = begin == 0, exits = 0;
  s->entry = 0;
  for (uint32_t i = begin; i < end; i++)
    if (n->barred[i] || !n->reached[i]) return false;
  for (uint32_t i = 0; i < n->count; i++)
    for (uint32_t k = 0; n->reached[i] && k < n->next_count[i]; k++) {
      uint32_t to = n->next[i][k];
      bool from_inside = i >= begin && i < end, to_inside = to >= begin && to < end;
      if (!from_inside && to_inside && !(entries && s->entry == to)) entries++, s->entry = to;
      if (from_inside && !to_inside && !(exits && s->exit == to)) exits++, s->exit = to;
    }
  return entries == 1 && exits == 1;
}

static uint32_t words_of(const naive *n, uint64_t set) {
  uint32_t words = 0;
  for (uint32_t r = 0; r < REGS; r++)
    if (set >> r & 1) words += r < n->func->reg_count && n->func->regs[r].type == PTX_PRED ? 1 : 32;
  return words;
}

static void weigh(const naive *n, uint32_t begin, uint32_t end, stretch *s) {
  uint64_t live[MOST + 1] = {0};
  s->out = 0;
  s->saved = 0;
  for (uint32_t i = begin; i < end; i++) {
    s->out |= n->writes[i] & n->live[s->exit];
    s->saved += 16.5 * n->loads[i] + 33.25 * n->stores[i];
  }
  live[s->exit] = s->out;
  for (uint32_t round = 0; round <= end - begin; round++)
    for (uint32_t i = begin; i < end; i++) live[i] = before(n, i, behind(n, i, live));
  s->in = live[s->entry];
  s->saved -= words_of(n, s->in) + words_of(n, s->out);
}

typedef struct best {
  double saved;
  uint32_t covered;
} best;
static bool is_better(best a, best b) { return a.saved > b.saved || (a.saved == b.saved && a.covered < b.covered); }

/* Tries every set, from the left. */
static best try_all(const naive *n, stretch (*s)[MOST + 1], uint32_t from) {
  if (from >= n->count) return (best){0, 0};
  best found = try_all(n, s, from + 1);
  for (uint32_t end = from + 1; end <= n->count; end++) {
    if (s[from][end].saved <= 0) continue;
    best rest = try_all(n, s, end);
    rest.saved += s[from][end].saved;
    rest.covered += end - from;
    if (is_better(rest, found)) found = rest;
  }
  return found;
}

static uint64_t set_of(const uint32_t *regs, uint32_t count, uint32_t first) {
  uint64_t set = 0;
  for (uint32_t i = 0; i < count; i++) set |= UINT64_C(1) << (first + regs[i]);
  return set;
}

static uint64_t others_of(const offload_kernel *k, const offload_region *r) {
  uint64_t set = 0;
  for (uint32_t i = 0; i < r->other_count; i++)
    set |= UINT64_C(1) << (k->func->reg_count + k->others[r->others[i]].sreg - PTX_SREG_TID_X);
  return set;
}

static void check_region(const naive *n, const offload_kernel *k, const offload_region *r, const stretch *s) {
  assert_int_equal(r->entry, s->entry);
  assert_int_equal(r->exit, s->exit);
  assert_true((set_of(r->live_in, r->live_in_count, 0) | others_of(k, r)) == s->in);
  assert_true(set_of(r->live_out, r->live_out_count, 0) == s->out);
  assert_true(-(r->tx_fixed + r->tx_trip + r->rx_fixed + r->rx_trip) == s->saved);
  assert_int_equal(r->candidate, s->saved > 0);
}

/* ---- registers ---- */

static uint32_t width_of(const naive *n, uint64_t set) {
  uint32_t width = 0;
  for (uint32_t r = 0; r < REGS; r++)
    if (set >> r & 1)
      width += r >= n->func->reg_count             ? 1
               : n->func->regs[r].type == PTX_PRED ? 0
                                                   : ptx_type_bits(n->func->regs[r].type) / 32;
  return width;
}

/* The most at once, before an instruction or behind it with what it writes, of those that the region touches. */
static void check_registers(const naive *n, const offload_region *r) {
  uint64_t touched = 0;
  uint32_t most = 0;
  for (uint32_t i = r->begin; i < r->end; i++) touched |= n->reads[i] | n->writes[i];
  for (uint32_t i = r->begin; i < r->end; i++) {
    uint32_t front = width_of(n, n->live[i] & touched),
             back = width_of(n, (behind(n, i, n->live) | n->writes[i]) & touched);
    most = most > front ? most : front;
    most = most > back ? most : back;
  }
  assert_int_equal(r->registers, most);
}

/* ---- where trips begin ---- */

/* What is reached from `from` in [begin, end), itself only if it comes round; not through `around`. */
static uint32_t reach(const naive *n, uint32_t begin, uint32_t end, uint32_t from, uint32_t around) {
  uint32_t set = 0, before = 1;
  for (uint32_t k = 0; k < n->next_count[from]; k++)
    set |= n->next[from][k] >= begin && n->next[from][k] < end ? 1u << n->next[from][k] : 0;
  while (set != before) {
    before = set;
    for (uint32_t i = begin; i < end; i++)
      for (uint32_t k = 0; (set >> i & 1) && i != around && k < n->next_count[i]; k++)
        if (n->next[i][k] >= begin && n->next[i][k] < end) set |= 1u << n->next[i][k];
  }
  return set;
}

/* The cycle that the access is in is entered at one instruction, h; from there on no access and no way round comes
 * before it; and what is live at h is what has to be sent. */
static void check_again(const naive *n, const offload_region *r, const stretch *s) {
  uint32_t pc = r->again.pc, cycle = 0, header = MOST, headers = 0, left,
           behind_pc = reach(n, r->begin, r->end, pc, MOST);
  assert_true(n->loads[pc] + n->stores[pc] == 1 && n->func->instrs[pc].guard == PTX_NO_REG && behind_pc >> pc & 1);
  for (uint32_t i = r->begin; i < r->end; i++)
    if (behind_pc >> i & 1 && reach(n, r->begin, r->end, i, MOST) >> pc & 1) cycle |= 1u << i;
  for (uint32_t i = r->begin; i < r->end; i++)
    for (uint32_t k = 0; !(cycle >> i & 1) && k < n->next_count[i]; k++)
      if (n->next[i][k] < r->end && cycle >> n->next[i][k] & 1 && !(headers && header == n->next[i][k]))
        headers++, header = n->next[i][k];
  if (!headers) header = s->entry, headers = 1;
  assert_int_equal(headers, 1);
  uint32_t first = header == pc ? 0 : reach(n, r->begin, r->end, header, pc) & cycle;
  for (uint32_t i = r->begin; i < r->end; i++)
    if (first >> i & 1 && i != pc) assert_true(!n->loads[i] && !n->stores[i] && i != header);
  left = reach(n, r->begin, r->end, header, MOST) | 1u << header;
  uint64_t live[MOST + 1] = {0}, out = 0;
  for (uint32_t i = r->begin; i < r->end; i++)
    if (left >> i & 1) out |= n->writes[i] & n->live[s->exit];
  live[s->exit] = out;
  for (uint32_t round = 0; round <= r->end - r->begin; round++)
    for (uint32_t i = r->begin; i < r->end; i++)
      if (left >> i & 1) live[i] = before(n, i, behind(n, i, live));
  assert_int_equal(r->again.in_words, words_of(n, live[header]));
  assert_int_equal(r->again.out_words, words_of(n, out));
}

static void check_kernel(const ptx_func *func, uint32_t *chosen_ones, uint32_t *long_ones, uint32_t *again_ones) {
  static stretch s[MOST + 1][MOST + 1];
  naive n;
  read_kernel(&n, func);
  for (uint32_t begin = 0; begin < n.count; begin++)
    for (uint32_t end = begin + 1; end <= n.count; end++) {
      if (is_region(&n, begin, end, &s[begin][end])) weigh(&n, begin, end, &s[begin][end]);
      else s[begin][end].saved = -INFINITY;
    }
  best want = try_all(&n, s, 0), got = {0, 0};
  offload_kernel *k = offload_analyze(func);
  for (uint32_t i = 0, last = 0; i < k->region_count; i++) {
    const offload_region *r = &k->regions[i];
    bool valid = isfinite(s[r->begin][r->end].saved);
    assert_int_equal(valid, r->bar == OFFLOAD_NONE || r->bar == OFFLOAD_NO_SAVING || r->bar == OFFLOAD_NO_MEMORY);
    if (valid) check_region(&n, k, r, &s[r->begin][r->end]);
    if (!r->chosen) continue;
    assert_true(r->begin >= last && r->candidate);
    last = r->end;
    got.saved += s[r->begin][r->end].saved;
    got.covered += r->end - r->begin;
    ++*chosen_ones;
    check_registers(&n, r);
    if (r->again.any) check_again(&n, r, &s[r->begin][r->end]), ++*again_ones;
    for (uint32_t j = r->begin; j < r->end; j++)
      if (func->instrs[j].opcode == PTX_OP_BRA) {
        ++*long_ones;
        break;
      }
  }
  assert_true(got.saved == want.saved);
  assert_int_equal(got.covered, want.covered);
  offload_kernel_free(k);
}

static void random_kernels(void **state) {
  uint32_t chosen = 0, with_branches = 0, again = 0;
  for (uint32_t i = 0; i < KERNELS; i++) {
    seed = i + 1;
    ptx_module *module = make_kernel();
    check_kernel(module->funcs[0], &chosen, &with_branches, &again);
    ptx_module_free(module);
  }
  assert_true(chosen > KERNELS / 4 && with_branches > KERNELS / 40 && again > KERNELS / 400); /* something was tested */
}

/* ---- counters ---- */

typedef enum form { BEFORE_TEST, BEHIND_TEST, COPIED, TESTED_FIRST, FORMS } form; /* where the counter moves */
typedef struct counter {
  form form;
  uint32_t compare, bits;
  bool is_signed, swapped, inverted, from_constant, to_constant;
  int64_t step;
  uint64_t from, to;
} counter;
static const char *const compares[] = {"lt", "le", "gt", "ge", "ne", "eq"}, *const opposites[] = {"ge", "gt", "le",
                                                                                                  "lt", "eq", "ne"},
                         *const turned[] = {"gt", "ge", "lt", "le", "ne", "eq"},
                         *const turned_opposites[] = {"le", "lt", "ge", "gt", "eq", "ne"};

static bool holds(const counter *c, uint64_t x) {
  uint64_t mask = c->bits == 64 ? UINT64_MAX : UINT32_MAX, a = x & mask, b = c->to & mask;
  int64_t sa = c->bits == 64 ? (int64_t)a : (int32_t)a, sb = c->bits == 64 ? (int64_t)b : (int32_t)b;
  switch (c->compare) {
  case 0: return c->is_signed ? sa < sb : a < b;
  case 1: return c->is_signed ? sa <= sb : a <= b;
  case 2: return c->is_signed ? sa > sb : a > b;
  case 3: return c->is_signed ? sa >= sb : a >= b;
  case 4: return a != b;
  default: return a == b;
  }
}

/* 0: more than a thousand. */
static uint32_t go_round(const counter *c) {
  uint64_t x = c->from, step = (uint64_t)c->step;
  for (uint32_t trips = 0; trips < 1000; trips++) {
    uint64_t tested = c->form == BEFORE_TEST || c->form == COPIED ? x + step : x;
    if (c->form == TESTED_FIRST && !holds(c, x)) return trips;
    if (c->form != TESTED_FIRST && !holds(c, tested)) return trips + 1;
    x += step;
  }
  return 0;
}

static void put_test(ff_text *t, const counter *c, const char *reg, bool leaves) {
  bool opposite = leaves != c->inverted; /* inverted: the opposite, behind a "not" */
  const char *const *table = c->swapped ? (opposite ? turned_opposites : turned) : (opposite ? opposites : compares);
  char to[40] = "%n";
  if (c->to_constant)
    snprintf(to, sizeof to, "%lld", (long long)(c->bits == 64 || !c->is_signed ? (int64_t)c->to : (int32_t)c->to));
  ff_text_add(t, "setp.%s.%c%u %%p, %s, %s;\n", table[c->compare], c->is_signed ? 's' : 'u', c->bits,
              c->swapped ? to : reg, c->swapped ? reg : to);
}

static ptx_module *make_loop(const counter *c) {
  ff_text t = {0};
  const char *no = c->inverted ? "!" : "";
  ff_text_add(&t, "%s.visible .entry k()\n{\n.reg .b%u %%c, %%t, %%n; .reg .b64 %%d; .reg .pred %%p;\n", HEAD, c->bits);
  ff_text_add(&t, "ld.global.u%u %%n, [%%d];\nld.global.u%u %%c, [%%d+8];\nbar.sync 0;\n", c->bits, c->bits);
  if (c->from_constant) ff_text_add(&t, "mov.u%u %%c, %llu;\n", c->bits, (unsigned long long)c->from);
  char add[80];
  snprintf(add, sizeof add, any(2) ? "add.s%u %%%s, %%c, %lld;\n" : "sub.s%u %%%s, %%c, %lld;\n", c->bits,
           c->form == COPIED ? "t" : "c", (long long)c->step);
  if (!strncmp(add, "sub", 3))
    snprintf(add, sizeof add, "sub.s%u %%%s, %%c, %lld;\n", c->bits, c->form == COPIED ? "t" : "c",
             -(long long)c->step);
  ff_text_add(&t, "L: ");
  if (c->form == TESTED_FIRST) {
    put_test(&t, c, "%c", true);
    ff_text_add(&t, "@%s%%p bra END;\nst.global.u32 [%%d], 1;\n%sbra L;\n", no, add);
  } else {
    ff_text_add(&t, "st.global.u32 [%%d], 1;\n");
    if (c->form != BEHIND_TEST) ff_text_add(&t, "%s", add);
    put_test(&t, c, c->form == COPIED ? "%t" : "%c", false);
    if (c->form == BEHIND_TEST) ff_text_add(&t, "%s", add);
    if (c->form == COPIED) ff_text_add(&t, "mov.u%u %%c, %%t;\n", c->bits);
    ff_text_add(&t, "@%s%%p bra L;\n", no);
  }
  ff_text_add(&t, "END: bar.sync 0; ret;\n}\n");
  ptx_module *module = parse(t.chars);
  free(t.chars);
  return module;
}

static counter make_counter(void) {
  static const int64_t steps[] = {1, 2, 3, 4, 7, 32, -1, -2, -3, -4, -7, -32};
  counter c = {.form = (form)any(FORMS),
               .compare = any(6),
               .bits = any(2) ? 32 : 64,
               .is_signed = any(2),
               .swapped = any(2),
               .inverted = any(2),
               .from_constant = any(2),
               .to_constant = any(2)};
  c.step = steps[any(12)];
  c.from = any(2) ? any(60) : any(2) ? 0 - (uint64_t)any(60) : UINT64_C(0x7fffff00) + any(200);
  c.to = c.from + (uint64_t)(int64_t)(c.step * (int64_t)any(40)) + (any(3) ? 0 : any(5));
  if (c.bits == 32) c.from &= UINT32_MAX, c.to &= UINT32_MAX;
  return c;
}

/* The condition says the same as the trips do, on both sides of its edge. */
static void check_condition(const counter *c, const offload_region *r) {
  if (r->compared == PTX_NO_REG || r->threshold == OFFLOAD_NEVER) return;
  int64_t edge = r->compared_with;
  for (int64_t value = edge - 2; value <= edge + 2; value++) {
    if (value < 0 || value > 1000 || edge < 0 || edge > 1000) continue; /* far from where numbers wrap */
    bool by_from = r->trips.from.reg != PTX_NO_REG;
    int64_t way = by_from ? (int64_t)c->to - value : value - (int64_t)c->from;
    if ((int64_t)c->to < 0 || (int64_t)c->to > 1000 || (int64_t)c->from < 0 || (int64_t)c->from > 1000 ||
        (c->compare == 4 && way % c->step))
      continue;
    uint32_t trips = offload_trips_of(&r->trips, (uint64_t)value, (uint64_t)value);
    if (trips > 2000) continue; /* past its end: once round all numbers, or never */
    assert_int_equal(trips >= r->threshold, r->compared_down ? value <= edge : value >= edge);
  }
}

static void random_counters(void **state) {
  uint32_t known = 0;
  for (uint32_t i = 0; i < COUNTERS; i++) {
    seed = i + 1;
    counter c = make_counter();
    ptx_module *module = make_loop(&c);
    offload_kernel *k = offload_analyze(module->funcs[0]);
    const offload_region *r = NULL;
    for (uint32_t j = 0; j < k->region_count; j++)
      if (k->regions[j].trips.kind != OFFLOAD_TRIPS_ONE &&
          (!r || k->regions[j].end - k->regions[j].begin < r->end - r->begin))
        r = &k->regions[j];
    assert_non_null(r);
    uint32_t trips = go_round(&c);
    bool towards = c.compare == 4 || (c.step > 0 ? c.compare < 2 : c.compare == 2 || c.compare == 3);
    if (r->trips.kind == OFFLOAD_TRIPS_KNOWN && trips) {
      assert_int_equal(offload_trips_of(&r->trips, c.from, c.to), trips);
      check_condition(&c, r);
      known++;
    }
    if (r->trips.kind == OFFLOAD_TRIPS_STATIC && trips) {
      assert_int_equal(r->trips.count, trips);
      known++;
    }
    if (!towards) assert_int_equal(r->trips.kind, OFFLOAD_TRIPS_UNKNOWN);
    else if (trips) assert_int_not_equal(r->trips.kind, OFFLOAD_TRIPS_UNKNOWN);
    offload_kernel_free(k);
    ptx_module_free(module);
  }
  assert_true(known > COUNTERS / 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_kernels), cmocka_unit_test(random_counters)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
