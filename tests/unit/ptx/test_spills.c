/* SPDX-License-Identifier: Apache-2.0 */
/* What a register's value takes of a machine (values.h), and which values are stored and loaded where a function needs
 * more registers than it may have (spills.h): closed forms, and random programs whose spill code is carried out. */
#include "ptx_test.h"

#include "ptx/analysis/spills.h"
#include "ptx/analysis/values.h"

enum { OF_COMPILER = 2 }; /* registers that hold no value */

/* ---- values ---- */

static void expect_kept(const ptx_func *func, const ptx_value *values, const char *name, uint32_t words, bool again) {
  for (uint32_t r = 0; r < func->reg_count; r++) {
    if (strcmp(func->regs[r].name, name) != 0) continue;
    if (values[r].words != words || values[r].made_again != again)
      fail_msg("%s: %u words%s", name, values[r].words, values[r].made_again ? ", made again" : "");
    return;
  }
  fail_msg("no register %s", name);
}

static void test_values(void **state) {
  ptx_module *m = parse_body(
      ".reg .pred p<2>; .reg .b32 r<9>; .reg .b64 d<12>; .reg .f64 e<2>; .shared .b32 s[64];\n"
      "ld.param.u64 d0, [p]; cvta.to.global.u64 d1, d0;\n" /* the constant bank has them */
      "mov.u32 r0, %ntid.x; mov.u32 r1, %tid.x;\n"
      "mul.lo.s32 r2, r0, 12;\n" /* as well made again */
      "add.s32 r3, r1, r2;\n"    /* not of constants alone */
      "mul.wide.s32 d2, r1, 4; add.s64 d3, d1, d2;\n"
      "cvt.s64.s32 d4, r1;\n" /* of which one register is enough */
      "add.s64 d5, d4, d3;\n"
      "mov.u64 d6, s; mul.wide.u32 d7, r1, 4; add.s64 d8, d6, d7;\n" /* shared: 32 bits */
      "st.shared.b32 [d8], r3; ld.global.f64 e0, [d3]; setp.eq.s32 p0, r1, 0;\n"
      "st.global.f64 [d5], e0; ld.global.b32 r4, [d5]; @p0 mov.b32 r5, 1; mov.b32 r6, 2; mov.b32 r6, r1; ret;");
  const ptx_func *func = m->funcs[0];
  ptx_value *v = ptx_values(func);
  expect_kept(func, v, "d0", 0, false);
  expect_kept(func, v, "d1", 0, false);
  expect_kept(func, v, "r0", 0, false);
  expect_kept(func, v, "r1", 1, false);
  expect_kept(func, v, "r2", 1, true);
  expect_kept(func, v, "r3", 1, false);
  expect_kept(func, v, "d2", 2, false);
  expect_kept(func, v, "d3", 2, false);
  expect_kept(func, v, "d4", 1, false);
  expect_kept(func, v, "d5", 2, false);
  expect_kept(func, v, "d7", 1, false);
  expect_kept(func, v, "d8", 1, false);
  expect_kept(func, v, "e0", 2, false);
  expect_kept(func, v, "p0", 0, false);
  expect_kept(func, v, "r5", 1, false); /* for some lanes only */
  expect_kept(func, v, "r6", 1, false); /* written twice */
  for (uint32_t r = 0; r < func->reg_count; r++) {
    if (!strcmp(func->regs[r].name, "r1")) assert_int_equal(v[r].defined_at, 3);
    if (!strcmp(func->regs[r].name, "r5") || !strcmp(func->regs[r].name, "r6"))
      assert_int_equal(v[r].defined_at, PTX_NO_REG);
  }
  free(v);
  ptx_module_free(m);
}

/* ---- closed forms ---- */

#define HEAD_REGS ".reg .pred p<3>; .reg .b32 r<90>; .reg .b64 d<40>; .reg .b64 a; ld.param.u64 a, [p];\n"

typedef struct made {
  ptx_module *module;
  ptx_cfg *cfg;
  ptx_spills spills;
  uint32_t loads, stores, in_loops; /* in words; how many stand in a loop */
} made;

static made make(const char *body, uint32_t room) {
  made o = {.module = parse_body(body)};
  const ptx_func *func = o.module->funcs[0];
  o.cfg = ptx_cfg_build(func);
  o.spills = ptx_spill_code(func, o.cfg, room + OF_COMPILER);
  for (uint32_t n = 0; n < o.spills.count; n++) {
    const ptx_spill *s = &o.spills.items[n];
    *(s->load ? &o.loads : &o.stores) += s->words;
    o.in_loops += o.cfg->blocks[o.cfg->block_of[s->at]].loop_depth > 0;
  }
  return o;
}

static void drop(made *o) {
  free(o->spills.items);
  ptx_cfg_free(o->cfg);
  ptx_module_free(o->module);
}

static void add_all(ff_text *text, const char *form, uint32_t first, uint32_t end) {
  for (uint32_t n = first; n < end; n++) {
    const char *rest = form;
    for (; *rest; rest++)
      if (*rest == '#') ff_text_add(text, "%u", n);
      else ff_text_add(text, "%c", *rest);
  }
}

/* n values one after the other, then each is used: of room for k, n - k are stored and loaded. */
static void test_straight_code(void **state) {
  for (uint32_t n = 12; n <= 40; n += 7)
    for (uint32_t k = 8; k <= n + 1; k++) {
      ff_text text = {0};
      ff_text_add(&text, "%s", HEAD_REGS);
      add_all(&text, "ld.global.b32 r#, [a+#0];\n", 0, n);
      add_all(&text, "st.global.b32 [a+#0], r#;\n", 0, n);
      made o = make(text.chars, k);
      uint32_t wanted = k < n ? n - k : 0;
      if (o.stores != wanted || o.loads != wanted || o.spills.words != wanted)
        fail_msg("%u values, room for %u: %u stored, %u loaded, %u words", n, k, o.stores, o.loads, o.spills.words);
      drop(&o);
      free(text.chars);
    }
}

static void test_pairs_of_registers(void **state) {
  ff_text text = {0};
  ff_text_add(&text, "%s", HEAD_REGS);
  add_all(&text, "ld.global.b64 d#, [a+#0];\n", 0, 20);
  add_all(&text, "st.global.b64 [a+#0], d#;\n", 0, 20);
  made o = make(text.chars, 30);
  assert_int_equal(o.stores, 10);
  assert_int_equal(o.loads, 10);
  assert_int_equal(o.spills.count, 10);
  for (uint32_t n = 0; n < o.spills.count; n++) assert_int_equal(o.spills.items[n].words, 2);
  drop(&o);
  free(text.chars);
}

/* Two such pieces have the same local memory, one after the other. */
static void test_slots_are_taken_again(void **state) {
  ff_text text = {0};
  ff_text_add(&text, "%s", HEAD_REGS);
  for (int piece = 0; piece < 2; piece++) {
    add_all(&text, "ld.global.b32 r#, [a+#0];\n", 40u * (uint32_t)piece, 40u * (uint32_t)piece + 20);
    add_all(&text, "st.global.b32 [a+#0], r#;\n", 40u * (uint32_t)piece, 40u * (uint32_t)piece + 20);
  }
  made o = make(text.chars, 12);
  assert_int_equal(o.stores, 16);
  assert_int_equal(o.loads, 16);
  assert_int_equal(o.spills.words, 8);
  drop(&o);
  free(text.chars);
}

/* What only passes through a loop goes before it and comes back behind it; what fits into the loop stays. */
static void test_loop(void **state) {
  ff_text text = {0};
  ff_text_add(&text, "%s", HEAD_REGS);
  add_all(&text, "ld.global.b32 r#, [a+#0];\n", 0, 24);
  ff_text_add(&text, "L:\n");
  add_all(&text, "add.s32 r#, r#, 1;\n", 0, 8);
  ff_text_add(&text, "setp.lt.s32 p0, r0, 100; @p0 bra L;\n");
  add_all(&text, "st.global.b32 [a+#0], r#;\n", 0, 24);
  made o = make(text.chars, 12);
  assert_int_equal(o.stores, 12);
  assert_int_equal(o.loads, 12);
  assert_int_equal(o.in_loops, 0);
  drop(&o);
  o = make(text.chars, 24);
  assert_int_equal(o.spills.count, 0);
  drop(&o);
  free(text.chars);
}

/* What was stored before a loop and is written in it: a store of the old value saves none of the new one. */
static void test_written_in_a_loop(void **state) {
  ff_text text = {0};
  ff_text_add(&text, "%s", HEAD_REGS);
  add_all(&text, "ld.global.b32 r#, [a+#0];\n", 0, 24);
  add_all(&text, "st.global.b32 [a+#0], r#;\n", 8, 24);
  ff_text_add(&text, "L:\n");
  add_all(&text, "add.s32 r#, r#, 1;\n", 0, 8);
  ff_text_add(&text, "setp.lt.s32 p0, r0, 100; @p0 bra L;\n");
  add_all(&text, "st.global.b32 [a+#0], r#;\n", 0, 8);
  made o = make(text.chars, 12);
  assert_int_equal(o.stores, 12);
  assert_int_equal(o.in_loops, 0);
  drop(&o);
  free(text.chars);
}

/* Parameters take no register, and what is made of them is made again: nothing is stored or loaded. */
static void test_made_again(void **state) {
  ff_text text = {0};
  ff_text_add(&text, "%s ld.param.u32 r80, [p];\n", HEAD_REGS);
  add_all(&text, "mul.lo.s32 r#, r80, #7;\n", 1, 41);
  add_all(&text, "st.global.b32 [a+#0], r#;\n", 1, 41);
  made o = make(text.chars, 10);
  assert_int_equal(o.spills.count, 0);
  drop(&o);
  free(text.chars);
}

/* A load stands early enough to have come, if registers are free, and no earlier than 16 instructions before. */
static void test_loads_go_up(void **state) {
  ff_text text = {0};
  ff_text_add(&text, "%s", HEAD_REGS);
  add_all(&text, "ld.global.b32 r#, [a+#0];\n", 0, 12);
  add_all(&text, "st.global.b32 [a+#0], r#;\n", 0, 10);
  add_all(&text, "membar.gl;\n", 0, 30);
  add_all(&text, "st.global.b32 [a+#0], r#;\n", 10, 12);
  made o = make(text.chars, 10);
  assert_int_equal(o.loads, 2);
  const ptx_spill *last = &o.spills.items[o.spills.count - 1];
  assert_true(last->load && last->needed > 50);
  assert_int_equal(last->needed - last->at, 16);
  drop(&o);
  free(text.chars);
}

/* ---- random programs ---- */

static uint64_t random_state;
static uint32_t below(uint32_t n) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)((random_state >> 11) % n);
}

enum { NARROW = 24, WIDE = 6 };

static void add_operation(ff_text *text) {
  uint32_t x = below(NARROW), y = below(NARROW), z = below(NARROW), w = below(WIDE), v = below(WIDE);
  switch (below(9)) {
  case 0: ff_text_add(text, "ld.global.b32 r%u, [a+%u];\n", x, 4 * y); break;
  case 1: ff_text_add(text, "st.global.b32 [a+%u], r%u;\n", 4 * y, x); break;
  case 2: ff_text_add(text, "@p0 add.s32 r%u, r%u, r%u;\n", x, y, z); break;
  case 3: ff_text_add(text, "setp.lt.s32 p0, r%u, r%u;\n", x, y); break;
  case 4: ff_text_add(text, "add.s64 d%u, d%u, d%u;\n", w, v, below(WIDE)); break;
  case 5: ff_text_add(text, "st.global.b64 [a+%u], d%u;\n", 8 * v, w); break;
  default: ff_text_add(text, "mad.lo.s32 r%u, r%u, r%u, r%u;\n", x, y, z, below(NARROW));
  }
}

static uint32_t label;

static void add_part(ff_text *text, uint32_t depth) {
  uint32_t parts = 1 + below(4);
  for (uint32_t n = 0; n < parts; n++) {
    uint32_t l = label++, kind = depth ? below(5) : 9;
    if (kind == 0) {
      ff_text_add(text, "L%u:\n", l);
      add_part(text, depth - 1);
      ff_text_add(text, "@p1 bra L%u;\n", l);
    } else if (kind == 1) {
      ff_text_add(text, "@p0 bra L%u;\n", l);
      add_part(text, depth - 1);
      if (below(2)) {
        ff_text_add(text, "bra M%u;\nL%u:\n", l, l);
        add_part(text, depth - 1);
        ff_text_add(text, "M%u:\n", l);
      } else {
        ff_text_add(text, "L%u:\n", l);
      }
    } else {
      for (uint32_t i = 1 + below(12); i-- > 0;) add_operation(text);
    }
  }
}

static char *random_program(uint64_t seed) {
  ff_text text = {0};
  random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
  label = 0;
  ff_text_add(&text, "%s", HEAD_REGS);
  add_all(&text, "ld.global.b32 r#, [a+#0];\n", 0, NARROW);
  add_all(&text, "ld.global.b64 d#, [a+#0];\n", 0, WIDE);
  ff_text_add(&text, "setp.lt.s32 p0, r0, r1; setp.lt.s32 p1, r2, r3;\n");
  add_part(&text, 3);
  add_all(&text, "st.global.b32 [a+#0], r#;\n", 0, NARROW);
  add_all(&text, "st.global.b64 [a+#0], d#;\n", 0, WIDE);
  ff_text_add(&text, "ret;\n");
  return text.chars;
}

static uint32_t words_live(const ptx_value *values, const bool *live, uint32_t count) {
  uint32_t words = 0;
  for (uint32_t r = 0; r < count; r++) words += live[r] ? values[r].words : 0;
  return words;
}

/* Backwards over a block, with stores as reads and loads as writes: what is live at its begin. Returns by how many
 * words too much is in registers, where more is than an instruction needs. */
static uint32_t live_back(const made *o, const ptx_value *values, uint32_t b, uint32_t room, bool *live) {
  const ptx_func *func = o->module->funcs[0];
  uint32_t worst = 0, n = o->spills.count, regs[64];
  while (n && o->spills.items[n - 1].at >= o->cfg->blocks[b].end) n--;
  for (; n && o->spills.items[n - 1].behind && o->spills.items[n - 1].at == o->cfg->blocks[b].end - 1; n--)
    live[o->spills.items[n - 1].reg] = !o->spills.items[n - 1].load;
  for (uint32_t i = o->cfg->blocks[b].end; i-- > o->cfg->blocks[b].first;) {
    const ptx_instr *instr = &func->instrs[i];
    uint32_t writes = ptx_instr_writes(instr, regs, 64), own = 0;
    for (uint32_t k = 0; k < writes; k++) live[regs[k]] = true;
    uint32_t behind = words_live(values, live, func->reg_count);
    for (uint32_t k = 0; k < writes && instr->guard == PTX_NO_REG; k++) live[regs[k]] = false;
    uint32_t reads = ptx_instr_reads(instr, regs, 64);
    for (uint32_t k = 0; k < reads; k++) {
      own += values[regs[k]].words;
      live[regs[k]] = true;
    }
    uint32_t before = words_live(values, live, func->reg_count), most = room > own ? room : own;
    if (behind > most && behind - most > worst) worst = behind - most;
    if (before > most && before - most > worst) worst = before - most;
    for (; n && o->spills.items[n - 1].at == i; n--) live[o->spills.items[n - 1].reg] = !o->spills.items[n - 1].load;
  }
  return worst;
}

static void check_width(const made *o, const ptx_value *values, uint32_t room, uint64_t seed) {
  const ptx_func *func = o->module->funcs[0];
  uint32_t blocks = o->cfg->block_count, regs = func->reg_count, worst = 0;
  bool *in = calloc((size_t)blocks * regs + 1, 1), *live = calloc(regs + (size_t)1, 1);
  for (bool changed = true; changed;) {
    changed = false;
    worst = 0;
    for (uint32_t b = blocks; b-- > 0;) {
      memset(live, 0, regs);
      for (uint32_t s = 0; s < o->cfg->blocks[b].successor_count; s++)
        for (uint32_t r = 0; r < regs; r++) live[r] |= in[(size_t)o->cfg->blocks[b].successors[s] * regs + r];
      uint32_t over = live_back(o, values, b, room, live);
      if (over > worst) worst = over;
      for (uint32_t r = 0; r < regs; r++) {
        if (!live[r] || in[(size_t)b * regs + r]) continue;
        in[(size_t)b * regs + r] = changed = true;
      }
    }
  }
  if (worst) fail_msg("seed %llu, room %u: %u words too many", (unsigned long long)seed, room, worst);
  free(live);
  free(in);
}

static void carry_out(const made *o, const ptx_spill *s, const uint64_t *value, uint64_t *memory, uint64_t seed) {
  const ptx_func *func = o->module->funcs[0];
  assert_true(s->slot + s->words <= o->spills.words);
  if (!s->behind) assert_true(s->needed >= s->at && o->cfg->block_of[s->needed] == o->cfg->block_of[s->at]);
  for (uint32_t w = 0; w < s->words; w++) {
    if (!s->load) memory[s->slot + w] = value[s->reg] + w;
    else if (memory[s->slot + w] != value[s->reg] + w)
      fail_msg("seed %llu: %s is loaded at instruction %u, and not what is in slot %u", (unsigned long long)seed,
               func->regs[s->reg].name, s->at, s->slot + w);
  }
}

/* One way through the program: a load finds what its register was given last. */
static void check_slots(const made *o, uint64_t seed) {
  const ptx_func *func = o->module->funcs[0];
  uint64_t *value = calloc(func->reg_count + (size_t)1, sizeof *value), next = 1;
  uint64_t *memory = calloc(o->spills.words + (size_t)1, sizeof *memory);
  uint32_t b = o->cfg->block_of[0], regs[64];
  for (uint32_t steps = 0; steps < 400; steps++) {
    const ptx_block *block = &o->cfg->blocks[b];
    uint32_t n = 0;
    while (n < o->spills.count && o->spills.items[n].at < block->first) n++;
    for (uint32_t i = block->first; i < block->end; i++) {
      for (; n < o->spills.count && o->spills.items[n].at == i && !o->spills.items[n].behind; n++)
        carry_out(o, &o->spills.items[n], value, memory, seed);
      uint32_t writes = ptx_instr_writes(&func->instrs[i], regs, 64);
      for (uint32_t k = 0; k < writes; k++) value[regs[k]] = 16 * next++;
    }
    for (; n < o->spills.count && o->spills.items[n].at < block->end; n++)
      carry_out(o, &o->spills.items[n], value, memory, seed);
    if (!block->successor_count) break;
    b = block->successors[below(block->successor_count)];
  }
  free(memory);
  free(value);
}

static void test_random_programs(void **state) {
  uint32_t spilled = 0;
  for (uint64_t seed = 0; seed < 400; seed++) {
    char *text = random_program(seed);
    uint32_t room = 8 + below(32);
    made o = make(text, room);
    ptx_value *values = ptx_values(o.module->funcs[0]);
    check_width(&o, values, room, seed);
    for (uint32_t way = 0; way < 10; way++) check_slots(&o, seed);
    spilled += o.spills.count != 0;
    free(values);
    drop(&o);
    free(text);
  }
  assert_true(spilled > 200);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_straight_code),
      cmocka_unit_test(test_pairs_of_registers),
      cmocka_unit_test(test_slots_are_taken_again),
      cmocka_unit_test(test_loop),
      cmocka_unit_test(test_written_in_a_loop),
      cmocka_unit_test(test_made_again),
      cmocka_unit_test(test_loads_go_up),
      cmocka_unit_test(test_random_programs),
  };
  return cmocka_run_group_tests_name("spills", tests, NULL, NULL);
}
