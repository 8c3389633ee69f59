/* SPDX-License-Identifier: Apache-2.0 */
/* Which registers an instruction reads and writes, form by form; outstanding loads; the register estimate. */
#include "ptx_test.h"

#include "ptx/analysis/cfg.h"
#include "ptx/syntax/pending.h"

#define REGS                                                                                             \
  ".reg .pred p<4>; .reg .b32 r<10>; .reg .b64 d<4>; .reg .f32 f<9>; .reg .b16 h<4>; .reg .v2 .f32 v;\n" \
  ".param .b32 q; .shared .b32 s[4];\n"

static void list(const ptx_func *func, const uint32_t *regs, uint32_t count, ff_text *out) {
  for (uint32_t i = 0; i < count; i++) ff_text_add(out, "%s%s", i ? " " : "", func->regs[regs[i]].name);
}

/* One instruction; what it writes and reads, in order, as names. */
static void expect(const char *text, const char *written, const char *read) {
  ff_text body = {0}, got = {0};
  ff_text_add(
      &body,
      "%s.extern .func (.reg .b32 r) callee(.reg .b32 a, .reg .b32 b);\n.entry k() { %s T: .branchtargets L; P: .callprototype (.reg .b32 _) _ (.reg .b32 _, .reg .b32 _);\n%s\nL: }",
      HEAD, REGS, text);
  ptx_module *m = parse(body.chars);
  const ptx_func *func = ptx_find_func(m, "k");
  assert_int_equal(func->instr_count, 1);
  uint32_t regs[32];
  uint32_t count = ptx_instr_writes(&func->instrs[0], regs, 32);
  list(func, regs, count, &got);
  ff_text_add(&got, " <- ");
  count = ptx_instr_reads(&func->instrs[0], regs, 32);
  list(func, regs, count, &got);
  ff_text wanted = {0};
  ff_text_add(&wanted, "%s <- %s", written, read);
  if (strcmp(wanted.chars, got.chars) != 0) fail_msg("%s gives %s, not %s", text, got.chars, wanted.chars);
  uint32_t few[1] = {12345};
  assert_int_equal(ptx_instr_reads(&func->instrs[0], few, 0), count); /* counts without room, writes nothing */
  assert_int_equal(few[0], 12345);
  free(body.chars);
  free(got.chars);
  free(wanted.chars);
  ptx_module_free(m);
}

static void reads_and_writes(void **state) {
  expect("add.s32 r1, r2, r3;", "r1", "r2 r3");
  expect("@!p1 add.s32 r1, r2, 4;", "r1", "p1 r2");
  expect("setp.lt.and.s32 p1|p2, r1, r2, !p3;", "p1 p2", "r1 r2 p3");
  expect("setp.lt.s32 _|p2, r1, r2;", "p2", "r1 r2");
  expect("shfl.sync.down.b32 r1|p1, r2, 1, 31, -1;", "r1 p1", "r2");
  expect("ld.global.v4.f32 {f1, _, f3, f4}, [d1+4];", "f1 f3 f4", "d1");
  expect("ld.global.v2.f32 v, [d1];", "v.x v.y", "d1");
  expect("ld.shared.b32 r1, [s];", "r1", "");
  expect("st.global.v2.f32 [d1], {f1, f2};", "", "d1 f1 f2");
  expect("st.shared.b32 [s+4], r1;", "", "r1");
  expect("atom.global.cas.b32 r1, [d1], r2, r3;", "r1", "d1 r2 r3");
  expect("atom.global.add.u32 _, [d1], r2;", "", "d1 r2");
  expect("red.global.add.u32 [d1], r2;", "", "d1 r2");
  expect("bar.sync r1, r2;", "", "r1 r2");
  expect("bar.red.popc.u32 r1, r2, p1;", "r1", "r2 p1");
  expect("barrier.cta.red.and.pred p1, 0, p2;", "p1", "p2");
  expect("bar.warp.sync r1;", "", "r1");
  expect("bra L;", "", "");
  expect("@p1 bra L;", "", "p1");
  expect("brx.idx r1, T;", "", "r1");
  expect("call (r1), callee, (r2, r3);", "r1", "r2 r3");
  expect("call (r1), d1, (r2, r3), P;", "r1", "d1 r2 r3");
  expect("call (q), d1, (r2, r3), P;", "", "d1 r2 r3");
  expect("mov.b64 {r1, r2}, d1;", "r1 r2", "d1");
  expect("mov.b64 d1, {r1, 7};", "d1", "r1");
  expect("mov.u32 r1, %tid.x;", "r1", "");
  expect("tex.2d.v4.f32.f32 {f1, f2, f3, f4}|p1, [d1, {f5, f6}];", "p1 f1 f2 f3 f4", "d1 f5 f6");
  expect("sust.b.1d.b32.trap [d1, {r1}], r2;", "", "d1 r1 r2");
  expect("suld.b.1d.b32.trap r2, [d1, {r1}];", "r2", "d1 r1");
  expect("vadd.s32.u32.u32 r1.b0, r2.b1, r3.h0, r4;", "r1", "r1 r2 r3 r4");
  expect("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {f1, f2, f3, f4}, {r1, r2}, {r3}, {f5, f6, f7, f8};",
         "f1 f2 f3 f4", "r1 r2 r3 f5 f6 f7 f8");
  expect("wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [d1], {r1, r2, r3, r4}, r5;", "", "d1 r1 r2 r3 r4 r5");
  expect("cp.async.ca.shared.global [r1], [d1], 4, r2;", "", "r1 d1 r2");
  expect("mbarrier.arrive.shared.b64 d2, [r1];", "d2", "r1");
  expect("mbarrier.init.shared.b64 [r1], r2;", "", "r1 r2");
  expect("prefetch.global.L2 [d1];", "", "d1");
  expect("nanosleep.u32 r1;", "", "r1");
  expect("stmatrix.sync.aligned.m8n8.x1.shared.b16 [r1], {r2};", "", "r1 r2");
  expect("tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {r1, r2}, [r3], 16;", "r1 r2", "r3");
  expect("tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {r1, r2}, r4, [r3];", "r1 r2 r4", "r3");
  expect("tcgen05.st.sync.aligned.32x32b.x2.b32 [r3], {r1, r2};", "", "r3 r1 r2");
  expect("future.op r1, r2;", "", "");
  expect("membar.gl;", "", "");
}

/* The instructions, by number, that `body` may have to wait at. */
static void expect_waits(const char *body, const char *numbers) {
  ff_text text = {0}, got = {0};
  ff_text_add(&text, "%s%s", REGS, body);
  ptx_module *m = parse_body(text.chars);
  ptx_cfg *cfg = ptx_cfg_build(m->funcs[0]);
  bool *flags = ptx_pending_loads(m->funcs[0], cfg);
  ff_text_add(&got, "%s", "");
  for (uint32_t i = 0; i < m->funcs[0]->instr_count; i++)
    if (flags[i]) ff_text_add(&got, "%s%u", got.length ? " " : "", i);
  if (strcmp(got.chars, numbers) != 0) fail_msg("%s\nwaits at %s, not %s", body, got.chars, numbers);
  free(flags);
  free(text.chars);
  free(got.chars);
  ptx_cfg_free(cfg);
  ptx_module_free(m);
}

static void outstanding_loads(void **state) {
  expect_waits("ld.global.b32 r1, [d1]; add.s32 r2, r3, r4; add.s32 r2, r1, r1; add.s32 r2, r1, r1;", "2");
  expect_waits("ld.global.b32 r1, [d1]; mov.b32 r1, 0; add.s32 r2, r1, r1;", "1"); /* an overwrite waits too */
  expect_waits("ld.b32 r1, [d1]; ld.local.b32 r2, [d1]; add.s32 r3, r2, 1; add.s32 r3, r1, 1;", "2 3");
  expect_waits("ld.shared.b32 r1, [s]; ld.const.b32 r2, [d1]; add.s32 r3, r2, r1;", "");
  expect_waits("atom.global.add.u32 r1, [d1], 1; st.global.b32 [d1], r1;", "1");
  expect_waits("atom.global.add.u32 _, [d1], 1; red.global.add.u32 [d1], r1; mov.b32 r1, 0;", "");
  expect_waits("ld.global.b64 d1, [d1]; ld.global.b64 d1, [d1];", "1"); /* a chain */
  /* around a loop: the load at its end is used at its start */
  expect_waits("L: add.s32 r2, r1, 1; ld.global.b32 r1, [d1]; @p1 bra L; ret;", "0");
  /* only one side uses it, so behind the join it may still be outstanding */
  expect_waits("ld.global.b32 r1, [d1]; @p1 bra M; add.s32 r2, r1, 1; M: add.s32 r2, r1, 1; add.s32 r2, r1, 1;", "2 3");
  /* a guarded use may not have happened; its guard is always read */
  expect_waits("ld.global.b32 r1, [d1]; @p1 add.s32 r2, r1, 1; add.s32 r2, r1, 1; add.s32 r2, r1, 1;", "1 2");
  expect_waits("@p2 ld.global.b32 r1, [d1]; add.s32 r2, r1, 1;", "1");
  expect_waits("ld.global.v2.b32 {r1, r2}, [d1]; add.s32 r3, r2, 1; add.s32 r3, r1, 1;", "1 2");
  expect_waits("bra E; ld.global.b32 r1, [d1]; add.s32 r2, r1, 1; E: add.s32 r2, r1, 1;", ""); /* never reached */
}

static void fetches_are_outstanding_too(void **state) {
  expect_waits("tex.1d.v4.f32.s32 {f1, f2, f3, f4}, [d1, {r1}]; add.f32 f5, f4, f4;", "1");
  expect_waits("suld.b.1d.b32.trap r2, [d1, {r1}]; mov.b32 r1, r2;", "1");
  expect_waits("wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {f1, f2, f3, f4}, [d1]; mov.f32 f5, f3;", "1");
  expect_waits("wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 {f1, f2, f3, f4}, [r1]; mov.f32 f5, f3;", "");
  expect_waits("multimem.ld_reduce.global.add.u32 r1, [d1]; mov.b32 r2, r1;", "1");
}

/* Too large for tables of bits: the answers are coarse but safe. */
static void very_large_functions(void **state) {
  ff_text text = {0};
  ff_text_add(&text, ".reg .b32 %%r<80001>; .reg .b64 %%d; .reg .pred %%q;\n");
  for (int i = 0; i < 16000; i++) {
    ff_text_add(&text, "L%d: ld.global.v4.b32 {%%r%d, %%r%d, %%r%d, %%r%d}, [%%d];", i, i * 5, i * 5 + 1, i * 5 + 2,
                i * 5 + 3);
    ff_text_add(&text, "ld.global.b32 %%r%d, [%%d]; @%%q bra L%d;\n", i * 5 + 4, i);
  }
  ff_text_add(&text, "mov.b32 %%r80000, %%r7; mov.b32 %%r80000, 1;\n");
  ptx_module *m = parse_body(text.chars);
  const ptx_func *k = m->funcs[0];
  ptx_cfg *cfg = ptx_cfg_build(k);
  bool *flags = ptx_pending_loads(k, cfg);
  assert_true(flags[k->instr_count - 2]);
  assert_false(flags[k->instr_count - 1]);
  assert_int_equal(ptx_register_estimate(k, cfg), 255);
  free(flags);
  free(text.chars);
  ptx_cfg_free(cfg);
  ptx_module_free(m);
}

static uint32_t estimate(const char *body) {
  ptx_module *m = parse_body(body);
  ptx_cfg *cfg = ptx_cfg_build(m->funcs[0]);
  uint32_t registers = ptx_register_estimate(m->funcs[0], cfg);
  ptx_cfg_free(cfg);
  ptx_module_free(m);
  return registers;
}

/* `count` registers of a type are loaded, live together, and then summed up. */
static uint32_t estimate_live(const char *type, int count) {
  ff_text text = {0};
  ff_text_add(&text, ".reg .%s %%x<%d>; .reg .b64 %%d;\n", type, count + 1);
  for (int i = 0; i < count; i++) ff_text_add(&text, "ld.shared.%s %%x%d, [%d];\n", type, i, i * 8);
  for (int i = 1; i < count; i++) ff_text_add(&text, "add.%s %%x0, %%x0, %%x%d;\n", type, i);
  ff_text_add(&text, "st.shared.%s [0], %%x0;\nret;", type);
  uint32_t registers = estimate(text.chars);
  free(text.chars);
  return registers;
}

static void estimates(void **state) {
  assert_int_equal(estimate("ret;"), 8);
  assert_int_equal(estimate("call k, (p);"), 24);
  uint32_t twenty = estimate_live("f32", 20);
  assert_int_equal(estimate_live("f32", 30), twenty + 10);
  assert_int_equal(estimate_live("f64", 20), twenty + 20);
  assert_int_equal(estimate_live("f32", 400), 255);
  /* one after the other they share */
  assert_true(estimate(".reg .f32 %x<40>; add.f32 %x1, %x0, %x0; add.f32 %x2, %x1, %x1; add.f32 %x3, %x2, %x2; ret;") <
              twenty);
  /* live around a loop: both counters at once */
  uint32_t one = estimate(".reg .pred %q; .reg .b32 %r<30>; L: add.s32 %r1, %r1, 1; @%q bra L; ret;");
  ff_text text = {0};
  ff_text_add(&text, ".reg .pred %%q; .reg .b32 %%r<30>; L:\n");
  for (int i = 0; i < 30; i++) ff_text_add(&text, "add.s32 %%r%d, %%r%d, 1;\n", i, i);
  ff_text_add(&text, "@%%q bra L; ret;");
  assert_true(estimate(text.chars) >= one + 20);
  free(text.chars);
}

static void maxnreg_caps(void **state) {
  ptx_module *m =
      parse(HEAD ".entry k() .maxnreg 16 { .reg .f32 %x<40>; .reg .v4 .f32 a, b, c, d, e, f;\n"
                 "ld.shared.v4.f32 a, [0]; ld.shared.v4.f32 b, [0]; ld.shared.v4.f32 c, [0]; ld.shared.v4.f32 d, [0];\n"
                 "ld.shared.v4.f32 e, [0]; st.shared.v4.f32 [0], a; st.shared.v4.f32 [0], b; st.shared.v4.f32 [0], c;\n"
                 "st.shared.v4.f32 [0], d; st.shared.v4.f32 [0], e; }");
  ptx_cfg *cfg = ptx_cfg_build(m->funcs[0]);
  assert_int_equal(ptx_register_estimate(m->funcs[0], cfg), 16);
  ptx_cfg_free(cfg);
  ptx_module_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_and_writes),
      cmocka_unit_test(outstanding_loads),
      cmocka_unit_test(fetches_are_outstanding_too),
      cmocka_unit_test(very_large_functions),
      cmocka_unit_test(estimates),
      cmocka_unit_test(maxnreg_caps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
