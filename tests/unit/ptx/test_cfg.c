/* SPDX-License-Identifier: Apache-2.0 */
/* Control flow: hand-made shapes, then random functions against naive definitions of every property that cfg.h
 * promises. */
#include "ptx_test.h"

#include "ptx/analysis/cfg.h"

enum { MAX_BLOCKS = 40 };

static void expect_successors(const ptx_cfg *cfg, uint32_t block, uint32_t count, uint32_t first, uint32_t second) {
  assert_int_equal(cfg->blocks[block].successor_count, count);
  if (count > 0) assert_int_equal(cfg->blocks[block].successors[0], first);
  if (count > 1) assert_int_equal(cfg->blocks[block].successors[1], second);
}

static void diamond(void **state) {
  ptx_module *m = parse_body(".reg .pred %q; .reg .b32 r;\n"
                             "mov.b32 r, 0; @%q bra ELSE;\n"
                             "mov.b32 r, 1; bra END;\n"
                             "ELSE: mov.b32 r, 2;\n"
                             "END: ret;");
  ptx_cfg *cfg = ptx_cfg_build(m->funcs[0]);
  assert_int_equal(cfg->block_count, 4);
  expect_successors(cfg, 0, 2, 1, 2);
  expect_successors(cfg, 1, 1, 3, 0);
  expect_successors(cfg, 2, 1, 3, 0);
  expect_successors(cfg, 3, 0, 0, 0);
  for (uint32_t b = 0; b < 4; b++) assert_int_equal(cfg->blocks[b].order, b);
  assert_int_equal(cfg->blocks[0].postdominator, 3);
  assert_int_equal(cfg->blocks[3].postdominator, PTX_NO_REG);
  assert_int_equal(cfg->block_of[4], 2);
  ptx_cfg_free(cfg);
  ptx_module_free(m);
}

static void nested_loops(void **state) {
  /* OUT and the way out of the outer loop stand inside the loops' text: the order must put them behind the loops. */
  ptx_module *m = parse_body(".reg .pred %q; .reg .b32 r;\n"
                             "A: mov.b32 r, 0;\n"   /* 0 */
                             "B: @%q bra OUT;\n"    /* 1 */
                             "@%q bra B;\n"         /* 2 */
                             "bra C;\n"             /* 3 */
                             "OUT: mov.b32 r, 9;\n" /* 4 */
                             "ret;\n"
                             "C: @%q bra A;\n" /* 5 */
                             "D: bra D;");     /* 6, without end */
  ptx_cfg *cfg = ptx_cfg_build(m->funcs[0]);
  assert_int_equal(cfg->block_count, 7);
  static const uint32_t depths[] = {1, 2, 2, 1, 0, 1, 1};
  for (uint32_t b = 0; b < 7; b++) assert_int_equal(cfg->blocks[b].loop_depth, depths[b]);
  assert_int_equal(cfg->blocks[0].loop_end, 4);
  assert_int_equal(cfg->blocks[1].loop_end, 2);
  assert_int_equal(cfg->blocks[2].loop_end, cfg->blocks[2].order);
  assert_true(cfg->blocks[4].order > 4);
  assert_int_equal(cfg->blocks[6].postdominator, PTX_NO_REG);
  assert_int_equal(cfg->blocks[1].postdominator, 4);
  ptx_cfg_free(cfg);
  ptx_module_free(m);
}

static void terminators(void **state) {
  ptx_module *m = parse(HEAD ".func stop() .noreturn { trap; }\n.func go() { ret; }\n"
                             ".entry k() { .reg .pred %q; .reg .b32 r; T: .branchtargets A, B, A, Z;\n"
                             "@%q exit;\n"         /* 0 -> 1 */
                             "call go;\n"          /* 1 */
                             "brx.idx r, T;\n"     /* 1 -> A B, and the end */
                             "A: call stop;\n"     /* 2 */
                             "B: @%q bra.uni Z;\n" /* 3 -> 4 and the end */
                             "bar.sync 0;\n"       /* 4 -> the end */
                             "Z: }");
  const ptx_func *k = ptx_find_func(m, "k");
  ptx_cfg *cfg = ptx_cfg_build(k);
  assert_int_equal(cfg->block_count, 5);
  expect_successors(cfg, 0, 1, 1, 0);
  expect_successors(cfg, 1, 2, 2, 3);
  expect_successors(cfg, 2, 0, 0, 0);
  expect_successors(cfg, 3, 1, 4, 0);
  expect_successors(cfg, 4, 0, 0, 0);
  for (uint32_t b = 0; b < 5; b++) assert_int_equal(cfg->blocks[b].postdominator, PTX_NO_REG);
  ptx_cfg_free(cfg);
  ptx_func *declared = ptx_find_func(m, "go");
  (void)declared;
  ptx_module_free(m);
  m = parse(HEAD ".entry e() { }");
  cfg = ptx_cfg_build(m->funcs[0]);
  assert_int_equal(cfg->block_count, 0);
  ptx_cfg_free(cfg);
  ptx_module_free(m);
}

/* ---- random functions ---- */

static uint32_t seed;
static uint32_t chance(uint32_t below) {
  return (seed = seed * 1664525 + 1013904223) >> 8 & 0xffff ? (seed >> 8) % below : 0;
}

static ptx_module *random_function(uint32_t blocks) {
  ff_text text = {0};
  ff_text_add(&text, ".reg .pred %%q; .reg .b32 r;\n");
  for (uint32_t b = 0; b < blocks; b++) {
    ff_text_add(&text, "L%u: mov.b32 r, %u;\n", b, b);
    uint32_t near = (b + chance(4)) % (blocks + 1), far = chance(blocks + 1);
    switch (chance(8)) {
    case 0: ff_text_add(&text, "bra L%u;\n", far); break;
    case 1: ff_text_add(&text, "@%%q exit;\n"); break;
    case 2: ff_text_add(&text, chance(3) ? "" : "ret;\n"); break;
    case 3: ff_text_add(&text, "T%u: .branchtargets L%u, L%u; brx.idx r, T%u;\n", b, near, far, b); break;
    default: ff_text_add(&text, "@%%q bra L%u;\n", chance(2) ? near : far);
    }
  }
  ff_text_add(&text, "L%u:", blocks);
  ptx_module *m = parse_body(text.chars);
  free(text.chars);
  return m;
}

typedef struct naive { /* reach[a][b]: a path of one edge or more, inside the blocks that are in */
  bool in[MAX_BLOCKS + 1], edge[MAX_BLOCKS + 1][MAX_BLOCKS + 1], reach[MAX_BLOCKS + 1][MAX_BLOCKS + 1];
  uint32_t count;
} naive;

static void close_paths(naive *n) {
  memcpy(n->reach, n->edge, sizeof n->reach);
  for (uint32_t a = 0; a < n->count; a++)
    for (uint32_t b = 0; b < n->count; b++)
      if (!n->in[a] || !n->in[b]) n->reach[a][b] = false;
  for (uint32_t via = 0; via < n->count; via++)
    for (uint32_t a = 0; a < n->count; a++)
      for (uint32_t b = 0; n->reach[a][via] && b < n->count; b++) n->reach[a][b] |= n->reach[via][b];
}

/* The exit is one more node. What leaves is worked out here anew, from the text's meaning. */
static void naive_edges(const ptx_func *func, const ptx_cfg *cfg, naive *n) {
  memset(n, 0, sizeof *n);
  n->count = cfg->block_count + 1;
  for (uint32_t b = 0; b < cfg->block_count; b++) {
    const ptx_instr *last = &func->instrs[cfg->blocks[b].end - 1];
    bool ends = last->opcode == PTX_OP_RET || last->opcode == PTX_OP_EXIT;
    bool jumps = last->opcode == PTX_OP_BRA || last->opcode == PTX_OP_BRX;
    uint32_t next = b + 1;
    n->in[b] = true;
    if (ends) n->edge[b][cfg->block_count] = true;
    if ((!ends && !jumps) || last->guard != PTX_NO_REG) n->edge[b][next] = true;
    for (uint32_t k = 0; jumps && k < last->operand_count; k++) {
      const ptx_operand *o = &last->operands[k];
      const ptx_operand *labels = o->kind == PTX_OPERAND_LABEL ? o : o->elements;
      uint32_t count = o->kind == PTX_OPERAND_LABEL ? 1 : o->element_count;
      for (uint32_t i = 0; i < count; i++)
        n->edge[b][labels[i].label == func->instr_count ? cfg->block_count : cfg->block_of[labels[i].label]] = true;
    }
  }
  n->in[cfg->block_count] = true;
}

static void check_edges(const ptx_cfg *cfg, const naive *n) {
  for (uint32_t a = 0; a < cfg->block_count; a++) {
    uint32_t out = 0, in = 0;
    for (uint32_t b = 0; b < cfg->block_count; b++) {
      out += n->edge[a][b];
      in += n->edge[b][a];
    }
    assert_int_equal(cfg->blocks[a].successor_count, out);
    assert_int_equal(cfg->blocks[a].predecessor_count, in);
    for (uint32_t s = 0; s < out; s++) assert_true(n->edge[a][cfg->blocks[a].successors[s]]);
    for (uint32_t s = 0; s < in; s++) assert_true(n->edge[cfg->blocks[a].predecessors[s]][a]);
  }
}

static void check_reachable(const ptx_cfg *cfg, const naive *n) {
  uint32_t reachable = 0;
  for (uint32_t b = 0; b < cfg->block_count; b++) {
    assert_int_equal(cfg->blocks[b].reachable, b == 0 || n->reach[0][b]);
    reachable += cfg->blocks[b].reachable;
    assert_int_equal(cfg->by_order[cfg->blocks[b].order], b);
  }
  for (uint32_t b = 0; b < cfg->block_count; b++)
    assert_int_equal(cfg->blocks[b].order < reachable, cfg->blocks[b].reachable);
  assert_int_equal(cfg->blocks[0].order, 0);
}

/* Every loop is contiguous in the order; with the edges to its first block gone, so is every loop inside. */
static void check_loops(const ptx_cfg *cfg, naive *n, uint32_t depth) {
  close_paths(n);
  bool done[MAX_BLOCKS + 1] = {0};
  for (uint32_t a = 0; a < cfg->block_count; a++) {
    if (!n->in[a] || !cfg->blocks[a].reachable || done[a]) continue;
    if (!n->reach[a][a]) {
      assert_int_equal(cfg->blocks[a].loop_depth, depth);
      continue;
    }
    uint32_t low = UINT32_MAX, high = 0, size = 0;
    naive *inside = malloc(sizeof *inside);
    *inside = *n;
    for (uint32_t b = 0; b < n->count; b++) {
      inside->in[b] = n->in[b] && n->reach[a][b] && n->reach[b][a];
      if (!inside->in[b]) continue;
      done[b] = true;
      size++;
      if (cfg->blocks[b].order < low) low = cfg->blocks[b].order;
      if (cfg->blocks[b].order > high) high = cfg->blocks[b].order;
    }
    assert_int_equal(high - low + 1, size);
    uint32_t header = cfg->by_order[low];
    assert_int_equal(cfg->blocks[header].loop_end >= high, true);
    for (uint32_t b = 0; b < n->count; b++) inside->edge[b][header] = false;
    check_loops(cfg, inside, depth + 1);
    free(inside);
  }
}

/* An edge that does not go forward in the order goes to the first block of a loop around its start. (Loops nested
 * deeper than 64 are not looked into.) */
static void check_back_edges(const ptx_cfg *cfg) {
  for (uint32_t a = 0; a < cfg->block_count; a++)
    for (uint32_t s = 0;
         cfg->blocks[a].reachable && cfg->blocks[a].loop_depth <= 64 && s < cfg->blocks[a].successor_count; s++) {
      const ptx_block *to = &cfg->blocks[cfg->blocks[a].successors[s]];
      if (to->order <= cfg->blocks[a].order) assert_true(to->loop_end >= cfg->blocks[a].order);
    }
}

/* Does `by` stand on every way from `block` to the exit? */
static bool stands_on_every_way(const naive *n, uint32_t block, uint32_t by) {
  naive *without = malloc(sizeof *without);
  *without = *n;
  without->in[by] = false;
  close_paths(without);
  bool way = without->reach[block][n->count - 1];
  free(without);
  return !way;
}

static void check_postdominators(const ptx_cfg *cfg, naive *n) {
  uint32_t exit = cfg->block_count;
  close_paths(n);
  for (uint32_t b = 0; b < cfg->block_count; b++) {
    uint32_t nearest = PTX_NO_REG;
    for (uint32_t by = 0; by < cfg->block_count && n->reach[b][exit]; by++) {
      if (by == b || !n->reach[b][by] || !stands_on_every_way(n, b, by)) continue;
      /* the nearest is the one that the others all stand behind */
      if (nearest == PTX_NO_REG || stands_on_every_way(n, by, nearest)) nearest = by;
    }
    assert_int_equal(cfg->blocks[b].postdominator, nearest);
  }
}

static void random_functions(void **state) {
  static naive n;
  for (uint32_t round = 0; round < 300; round++) {
    seed = round * 7919 + 1;
    ptx_module *m = random_function(2 + round % 14);
    const ptx_func *func = m->funcs[0];
    ptx_cfg *cfg = ptx_cfg_build(func);
    assert_true(cfg->block_count < MAX_BLOCKS);
    naive_edges(func, cfg, &n);
    check_edges(cfg, &n);
    check_postdominators(cfg, &n);
    n.in[cfg->block_count] = false;
    close_paths(&n);
    check_reachable(cfg, &n);
    check_back_edges(cfg);
    check_loops(cfg, &n, 0);
    ptx_cfg_free(cfg);
    ptx_module_free(m);
  }
}

/* 8000 loops, each inside the one before, and as many one after the other: no recursion, no quadratic work. */
static void large_functions(void **state) {
  ff_text nested = {0}, chain = {0};
  ff_text_add(&nested, ".reg .pred %%q;\n");
  ff_text_add(&chain, ".reg .pred %%q;\n");
  for (int i = 0; i < 8000; i++) {
    ff_text_add(&nested, "N%d:\n", i);
    ff_text_add(&chain, "C%d: @%%q bra C%d; @%%q bra C%d;\n", i, i, (i * 7919 + 13) % 8000);
  }
  for (int i = 8000; i-- > 0;) ff_text_add(&nested, "@%%q bra N%d;\n", i);
  ptx_module *modules[] = {parse_body(nested.chars), parse_body(chain.chars)};
  for (int i = 0; i < 2; i++) {
    ptx_cfg *cfg = ptx_cfg_build(modules[i]->funcs[0]);
    assert_true(cfg->block_count >= 8000);
    check_back_edges(cfg);
    ptx_cfg_free(cfg);
    ptx_module_free(modules[i]);
  }
  free(nested.chars);
  free(chain.chars);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(diamond),          cmocka_unit_test(nested_loops),    cmocka_unit_test(terminators),
      cmocka_unit_test(random_functions), cmocka_unit_test(large_functions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
