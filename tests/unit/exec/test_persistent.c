/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels bound to SMs (ptx/rewrite/persistent.h): what is made parses back to itself; run on any range of SMs, twice
 * in a row, it leaves what the kernel leaves; no block outside of the range does any of it, and all in the range take
 * their part. Threads and lanes that leave early are what most of these kernels are about, the random ones above
 * all. */
#include "core_harness.h"
#include "ptx/rewrite/persistent.h"
#include "ptx/rewrite/window.h"

#define OUT_BYTES (1u << 18)
#define HEAD_70 ".version 7.0\n.target sm_80\n.address_size 64\n"

typedef struct shape {
  uint32_t grid[3], block[3], shared;
} shape;

static ptx_persistents *made_of(const char *text, const ptx_persistent_options *options) {
  ff_error error = {0};
  ptx_module *module, *again;
  if (ptx_module_parse("test.ptx", text, strlen(text), &module, &error)) fail_msg("%s\n%s", error.message, text);
  ptx_persistents *made = ptx_persistent_make(module, options);
  ptx_module_free(module);
  if (ptx_module_parse("made", made->text.chars, made->text.length, &again, &error))
    fail_msg("%s\n%s", error.message, made->text.chars);
  ff_text printed = {0};
  ptx_print_module(again, &printed);
  assert_string_equal(printed.chars, made->text.chars);
  for (uint32_t i = 0; i < made->kernel_count; i++) {
    const ptx_persistent_kernel *kernel = &made->kernels[i];
    assert_int_equal(!kernel->persistent_name, !!kernel->reason);
    const ptx_func *func = kernel->persistent_name ? ptx_find_func(again, kernel->persistent_name) : NULL;
    if (!kernel->persistent_name) continue;
    assert_true(func && func->entry && func->has_body);
    assert_int_equal(ptx_param_layout(func, NULL), kernel->bytes);
    assert_int_equal(kernel->bytes, kernel->offset + sizeof(ptx_persistent_params));
  }
  free(printed.chars);
  ptx_module_free(again);
  return made;
}

static void launch_form(kernel_test *t, const ptx_persistent_kernel *kernel, const shape *s, uint64_t out, uint32_t n,
                        ptx_persistent_params own) {
  unsigned char params[256] = {0};
  ff_error error = {0};
  struct {
    uint64_t out;
    uint32_t n;
  } plain = {out, n};
  memcpy(own.grid, s->grid, sizeof own.grid);
  memcpy(params, &plain, 12);
  memcpy(params + kernel->offset, &own, sizeof own);
  uint32_t blocks = ptx_persistent_blocks(2, 4, own.sm_count, own.grid);
  if (launch_with(t, kernel->persistent_name, (uint32_t[3]){blocks, 1, 1}, s->block, params, &error))
    fail_msg("%s", error.message);
}

/* Kernel k(.param .u64 out, .param .u32 n) as it is, and bound to every range of four SMs; its reason, if it has no
 * such form. */
static bool same(const char *text, const shape *s, uint32_t n, const ptx_persistent_options *options) {
  ptx_persistents *made = made_of(text, options);
  const ptx_persistent_kernel *kernel = ptx_persistent_find(made, "k");
  assert_non_null(kernel);
  bool good = kernel->persistent_name;
  if (good) {
    kernel_test *t = open_ptx(made->text.chars);
    uint64_t whole = buffer(t, OUT_BYTES), bound = buffer(t, OUT_BYTES),
             queue = buffer(t, sizeof(ptx_persistent_queue));
    struct {
      uint64_t out;
      uint32_t n;
    } params = {whole, n};
    ff_error error = {0};
    uint32_t turn = 0;
    t->shared = s->shared;
    t->config.max_instructions = 20000000;
    memset((void *)(uintptr_t)whole, 0, OUT_BYTES);
    memset((void *)(uintptr_t)queue, 0, sizeof(ptx_persistent_queue));
    if (launch_with(t, "k", s->grid, s->block, &params, &error)) fail_msg("%s\n%s", error.message, text);
    for (uint32_t first = 0; first < 4; first++)
      for (uint32_t count = 1; first + count <= 4; count += 1 + first % 2) {
        memset((void *)(uintptr_t)bound, 0, OUT_BYTES);
        launch_form(t, kernel, s, bound, n,
                    (ptx_persistent_params){.queue = queue, .sm_first = first, .sm_count = count, .turn = turn++ % 2});
        if (memcmp((void *)(uintptr_t)whole, (void *)(uintptr_t)bound, OUT_BYTES))
          fail_msg("SMs %u to %u differ:\n%s", first, first + count - 1, text);
      }
    close_ptx(t);
  }
  ptx_persistent_free(made);
  return good;
}

static void all_same(const char *text, shape s, uint32_t n) {
  if (same(text, &s, n, &(ptx_persistent_options){0})) return;
  ptx_persistents *made = made_of(text, &(ptx_persistent_options){0});
  fail_msg("%s", made->kernels[0].reason);
}

#define KERNEL                                                                                                             \
  ".visible .entry k(.param .u64 p_out, .param .u32 p_n)\n{\n.shared .align 4 .b8 area[1024];\n"                           \
  ".reg .b64 %out; .reg .b32 %n; .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .b32 %t, %b, %s, %x;\n"        \
  "ld.param.u64 %out, [p_out]; ld.param.u32 %n, [p_n];\n"                                                                  \
  "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z; mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y;\n" \
  "mad.lo.u32 %b, %r3, %r5, %r2; mad.lo.u32 %b, %b, %r4, %r1; mov.u32 %t, %tid.x; mov.u32 %r6, %ntid.x;\n"                 \
  "mad.lo.u32 %r7, %b, %r6, %t; mul.wide.u32 %rd1, %r7, 4; add.u64 %rd1, %rd1, %out;\n"                                    \
  "mov.u32 %s, area; mad.lo.u32 %s, %t, 4, %s; mad.lo.u32 %x, %r7, 2654435761, 12345;\n"

static void grids(void **state) {
  const char *text =
      HEAD_70 KERNEL "mov.u32 %r8, %nctaid.z; mad.lo.u32 %x, %r8, 7, %x; st.global.u32 [%rd1], %x; ret;\n}\n";
  all_same(text, (shape){{100, 1, 1}, {33, 1, 1}, 0}, 0);
  all_same(text, (shape){{7, 5, 1}, {64, 1, 1}, 0}, 0);
  all_same(text, (shape){{3, 5, 7}, {32, 1, 1}, 0}, 0);
  all_same(text, (shape){{1, 1, 1}, {1, 1, 1}, 0}, 0);
  all_same(text, (shape){{1, 1, 40}, {5, 1, 1}, 0}, 0);
}

/* The queue's counter begins near the end of a grid of more than 2^32 blocks; the last five are left. */
static void huge_grid(void **state) {
  const char *text = HEAD_70
      ".visible .entry k(.param .u64 out, .param .u32 n)\n{\n.reg .b64 %rd<4>; .reg .b32 %r<9>;\n"
      "ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z; mov.u32 %r5, 1;\n"
      "and.b32 %r4, %r1, 7; mul.wide.u32 %rd2, %r4, 16; add.u64 %rd1, %rd1, %rd2; st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r5}; ret;\n}\n";
  ptx_persistents *made = made_of(text, &(ptx_persistent_options){0});
  kernel_test *t = open_ptx(made->text.chars);
  uint64_t out = buffer(t, 128), queue = buffer(t, sizeof(ptx_persistent_queue));
  const shape s = {{2000000003, 3, 5}, {32, 1, 1}, 0};
  const uint64_t total = UINT64_C(2000000003) * 15;
  memset((void *)(uintptr_t)out, 0, 128);
  u64_at(queue)[0] = total - 5;
  launch_form(t, &made->kernels[0], &s, out, 0, (ptx_persistent_params){.queue = queue, .sm_count = 4});
  uint32_t seen = 0;
  for (uint32_t i = 0; i < 8; i++) {
    const uint32_t *at = u32_at(out) + 4 * i;
    if (!at[3]) continue;
    seen++;
    assert_true(at[0] >= 2000000003 - 5 && at[0] < 2000000003);
    assert_int_equal(at[1], 2);
    assert_int_equal(at[2], 4);
  }
  assert_int_equal(seen, 5);
  assert_true(u64_at(queue)[0] > total && u64_at(queue)[1] == 0);
  close_ptx(t);
  ptx_persistent_free(made);
}

#define EXCHANGE(distance)                                           \
  "st.shared.u32 [%s], %x; bar.sync 0; add.u32 %r20, %t, " #distance \
  "; rem.u32 %r20, %r20, %r6; mov.u32 %r21, area;\n"                 \
  "mad.lo.u32 %r20, %r20, 4, %r21; ld.shared.u32 %r22, [%r20]; xor.b32 %x, %x, %r22; bar.sync 0;\n"
#define STORE "st.global.u32 [%rd1], %x;\n"

/* Threads leave before barriers that others pass: some, whole warps, all but one; in a loop; before bar.red. */
static void leaving(void **state) {
  all_same(HEAD_70 KERNEL EXCHANGE(
               1) "shr.u32 %r8, %x, 5; and.b32 %r8, %r8, 3; setp.eq.u32 %p1, %r8, 0; @%p1 exit;\n" EXCHANGE(3) STORE
           "ret;\n}\n",
           (shape){{40, 1, 1}, {96, 1, 1}, 0}, 0);
  all_same(HEAD_70 KERNEL EXCHANGE(1) "setp.ge.u32 %p1, %t, 32; @%p1 bra END;\n" EXCHANGE(3) STORE "END: ret;\n}\n",
           (shape){{40, 1, 1}, {96, 1, 1}, 0}, 0);
  all_same(HEAD_70 KERNEL EXCHANGE(1) "setp.ne.u32 %p1, %t, 5; @%p1 ret;\n" EXCHANGE(3) STORE "ret;\n}\n",
           (shape){{40, 1, 1}, {70, 1, 1}, 0}, 0);
  all_same(HEAD_70 KERNEL "mov.u32 %r9, 0;\nL:\n" EXCHANGE(7) STORE
           "and.b32 %r8, %x, 7; setp.eq.u32 %p1, %r8, 1; @%p1 exit; add.u32 %r9, %r9, 1;\n"
           "setp.lt.u32 %p2, %r9, 9; @%p2 bra L;\nret;\n}\n",
           (shape){{40, 1, 1}, {70, 1, 1}, 0}, 0);
  all_same(
      HEAD_70 KERNEL EXCHANGE(
          1) "and.b32 %r8, %x, 3; setp.eq.u32 %p1, %r8, 1; @%p1 exit; setp.gt.s32 %p2, %x, 0;\n"
             "bar.red.popc.u32 %r10, 0, %p2; bar.red.and.pred %p3, 0, %p2; bar.red.or.pred %p4, 0, !%p2; bar.sync 0;\n"
             "mad.lo.u32 %x, %r10, 100, %x; @%p3 add.u32 %x, %x, 7; @%p4 add.u32 %x, %x, 11;\n" STORE "ret;\n}\n",
      (shape){{40, 1, 1}, {45, 1, 1}, 0}, 0);
}

/* Lanes leave before warp operations that name them. */
static void leaving_lanes(void **state) {
  all_same(
      HEAD_70 KERNEL
      "and.b32 %r8, %x, 96; setp.eq.u32 %p1, %r8, 0; @%p1 exit; setp.gt.s32 %p2, %x, 0;\n"
      "vote.sync.ballot.b32 %r9, %p2, -1; add.u32 %x, %x, %r9; redux.sync.add.u32 %r9, %t, 0xffffffff; add.u32 %x, %x, %r9; bar.warp.sync -1;\n" STORE
      "ret;\n}\n",
      (shape){{40, 1, 1}, {70, 1, 1}, 0}, 0);
  all_same(
      HEAD_70 KERNEL
      "and.b32 %r10, %x, 7; mov.u32 %r9, 0;\nL: setp.ge.u32 %p1, %r9, %r10; @%p1 bra END; redux.sync.add.u32 %r11, %r9, -1;\n"
      "mad.lo.u32 %x, %r11, 31, %x; add.u32 %r9, %r9, 1; bra L;\nEND:\n" STORE "ret;\n}\n",
      (shape){{40, 1, 1}, {70, 1, 1}, 0}, 0);
}

/* Named barriers with counts, half of the block at each; dynamic and static shared memory; local memory. */
static void partners(void **state) {
  all_same(
      HEAD_70 KERNEL
      "st.shared.u32 [%s], %x; shr.u32 %r8, %t, 5; setp.ge.u32 %p1, %r8, 2; @%p1 bra OTHERS; bar.sync 1, 64; bar.arrive 3, 128; bra READ;\n"
      "OTHERS: bar.sync 2, 64; bar.sync 3, 128;\nREAD: xor.b32 %r9, %s, 4; ld.shared.u32 %r10, [%r9]; add.u32 %x, %x, %r10;\n" STORE
      "ret;\n}\n",
      (shape){{40, 1, 1}, {128, 1, 1}, 0}, 0);
  all_same(
      HEAD_70
      ".extern .shared .align 16 .b8 dynamic[];\n" KERNEL
      ".local .align 4 .b8 mine[64]; mov.u32 %r8, dynamic; mad.lo.u32 %r8, %t, 4, %r8; st.shared.u32 [%r8], %x;\n"
      "st.local.u32 [mine+8], %b; bar.sync 0; xor.b32 %r9, %t, 1; mov.u32 %r10, dynamic; mad.lo.u32 %r9, %r9, 4, %r10; ld.shared.u32 %r11, [%r9];\n"
      "ld.local.u32 %r12, [mine+8]; mad.lo.u32 %x, %r11, 3, %r12;\n" STORE "ret;\n}\n",
      (shape){{40, 1, 1}, {64, 1, 1}, 256}, 0);
}

static void functions(void **state) {
  all_same(
      HEAD_70
      ".func (.param .b32 r) index(.param .b32 a) { .reg .b32 %a<9>; ld.param.b32 %a1, [a]; mov.u32 %a2, %ctaid.x; mov.u32 %a3, %nctaid.x;\n"
      "  mad.lo.u32 %a4, %a2, %a3, %a1; st.param.b32 [r], %a4; ret; }\n" KERNEL
      ".param .b32 one; .param .b32 two; st.param.b32 [one], %x; call.uni (two), index, (one); ld.param.b32 %x, [two];\n" STORE
      "ret;\n}\n",
      (shape){{31, 1, 1}, {32, 1, 1}, 0}, 0);
}

static void refused(const char *text, const char *reason, bool even_so) {
  ptx_persistents *made = made_of(text, &(ptx_persistent_options){0});
  assert_null(made->kernels[0].persistent_name);
  expect_text(made->kernels[0].reason, reason);
  ptx_persistent_free(made);
  made = made_of(text, &(ptx_persistent_options){.whole_warps = true, .polling = true});
  assert_int_equal(made->kernels[0].persistent_name != NULL, even_so);
  ptx_persistent_free(made);
}

static void refusals(void **state) {
  refused(HEAD_70 KERNEL "and.b32 %r8, %x, 3; setp.eq.u32 %p1, %r8, 0; @%p1 exit; bar.sync 1, 64; ret;\n}\n",
          "before others come to a barrier with a count", true);
  refused(
      HEAD_70 KERNEL
      "setp.eq.u32 %p1, %t, 0; @%p1 bra E; setp.lt.u32 %p2, %t, 9; @%p2 bra F; add.u32 %t, %t, 1; F: redux.sync.add.u32 %x, %x, -1;"
      "setp.lt.u32 %p2, %t, 99; @%p2 bra G; bra H; G: setp.eq.u32 %p3, %x, 3; @%p3 exit; redux.sync.add.u32 %x, %x, -1;"
      "H: redux.sync.add.u32 %x, %x, 1; E: ret;\n}\n",
      "where not all lanes come", true);
  refused(HEAD_70 KERNEL "mov.u32 %r9, %envreg1; ret;\n}\n", "%envreg1", false);
  refused(HEAD_70 ".func f() { exit; }\n" KERNEL "call f; ret;\n}\n", "calls f, which ends threads", false);
  refused(HEAD_70 ".func f() { bar.sync 0; ret; }\n" KERNEL "setp.eq.u32 %p1, %t, 3; @%p1 exit; call f; ret;\n}\n",
          "a function that waits at a barrier", false);
  refused(".version 5.0\n.target sm_60\n.address_size 64\n" KERNEL
          "setp.eq.u32 %p1, %t, 3; @%p1 exit; bar.sync 0; ret;\n}\n",
          "needs sm_70", false);
}

/* ---- random kernels ---- */

static uint64_t random_state;
static uint32_t below(uint32_t n) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)(random_state * UINT64_C(0x2545f4914f6cdd1d) >> 40) % n;
}

static void put_condition(ff_text *text, uint32_t bits) { /* %p1: of one thread in 2^bits */
  ff_text_add(text, "shr.u32 %%r8, %%x, %u; and.b32 %%r8, %%r8, %u; setp.eq.u32 %%p1, %%r8, 0;\n", below(25),
              (1u << bits) - 1);
}

static void put_warp_operation(ff_text *text) {
  static const char *const forms[] = {"vote.sync.ballot.b32 %r9, %p1, -1;", "redux.sync.add.u32 %r9, %x, 0xffffffff;",
                                      "match.any.sync.b32 %r9, %r8, 0xffffffff;",
                                      "redux.sync.xor.b32 %r9, %x, -1; bar.warp.sync -1;"};
  put_condition(text, 2);
  ff_text_add(text, "%s mad.lo.u32 %%x, %%r9, 17, %%x;\n", forms[below(4)]);
}

static void put_statement(ff_text *text, uint32_t *labels, uint32_t depth, bool warps) {
  uint32_t label = (*labels)++;
  switch (below(7)) {
  case 0:
  case 1: /* some leave */
    put_condition(text, 1 + below(4));
    ff_text_add(text, "@%%p1 st.global.u32 [%%rd1], %u; @%%p1 %s;\n", label, below(2) ? "exit" : "ret");
    break;
  case 2: ff_text_add(text, "%s", EXCHANGE(5)); break;
  case 3: {
    static const char *const forms[] = {"bar.red.popc.u32 %r9, 0, %p1; add.u32 %x, %x, %r9;",
                                        "bar.red.and.pred %p2, 0, !%p1; @%p2 add.u32 %x, %x, 99;",
                                        "barrier.cta.red.or.pred %p2, 0, %p1; @!%p2 add.u32 %x, %x, 77;"};
    put_condition(text, 4);
    ff_text_add(text, "%s\n", forms[below(3)]);
    break;
  }
  case 4:
    if (warps) put_warp_operation(text);
    break;
  case 5: /* paths that meet again */
    put_condition(text, 1);
    ff_text_add(text, "@%%p1 bra E%u; mad.lo.u32 %%x, %%x, 3, %u; E%u: add.u32 %%x, %%x, 1;\n", label, label, label);
    break;
  default: /* the same rounds for all */
    if (depth > 1) break;
    ff_text_add(text, "mov.u32 %%r%u, 0;\nL%u:\n", 30 + depth, label);
    for (uint32_t i = 0; i < 3; i++) put_statement(text, labels, depth + 1, warps);
    ff_text_add(text, "add.u32 %%r%u, %%r%u, 1; setp.lt.u32 %%p3, %%r%u, 3; @%%p3 bra L%u;\n", 30 + depth, 30 + depth,
                30 + depth, label);
  }
}

static void random_kernels(void **state) {
  uint32_t compared = 0;
  random_state = 88172645463325252u;
  for (uint32_t n = 0; n < SHARE(160, 5); n++) {
    ff_text text = {0};
    uint32_t labels = 1;
    bool warps = below(2);
    ff_text_add(&text, "%s", HEAD_70 KERNEL "st.shared.u32 [%s], %x; bar.sync 0;\n");
    for (uint32_t i = 0; i < 6; i++) put_statement(&text, &labels, 0, warps);
    ff_text_add(&text, "%s", STORE "ret;\n}\n");
    shape s = {{3 + below(20), 1 + below(3), 1 + below(2)}, {1 + below(100), 1, 1}, 0};
    compared += same(text.chars, &s, n, &(ptx_persistent_options){0});
    free(text.chars);
  }
  assert_int_equal(compared, SHARE(160, 5));
}

/* Each block that stays has its share of equal virtual blocks; those outside of the range only end. */
static void shared_out(void **state) {
  const char *text = HEAD_70
      ".visible .entry k(.param .u64 out, .param .u32 n)\n{\n.reg .b64 %rd<4>; .reg .b32 %r<9>;\n"
      "ld.param.u64 %rd1, [out]; mov.u32 %r1, %smid; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; atom.global.add.u32 %r2, [%rd1], 1; ret;\n}\n";
  ptx_persistents *made = made_of(text, &(ptx_persistent_options){0});
  kernel_test *t = open_ptx(made->text.chars);
  uint64_t out = buffer(t, 64), queue = buffer(t, sizeof(ptx_persistent_queue));
  const shape s = {{120, 1, 1}, {32, 1, 1}, 0};
  memset((void *)(uintptr_t)out, 0, 64);
  memset((void *)(uintptr_t)queue, 0, sizeof(ptx_persistent_queue));
  t->config.threads = 2;
  launch_form(t, &made->kernels[0], &s, out, 0, (ptx_persistent_params){.queue = queue, .sm_first = 1, .sm_count = 3});
  for (uint32_t sm = 0; sm < 4; sm++) assert_int_equal(u32_at(out)[sm], sm ? 40 * 32 : 0);
  close_ptx(t);
  ptx_persistent_free(made);
}

static void blocks_to_launch(void **state) {
  assert_int_equal(ptx_persistent_blocks(4, 80, 80, (uint32_t[3]){100000, 1, 1}), 320);
  assert_int_equal(ptx_persistent_blocks(4, 80, 20, (uint32_t[3]){41, 1, 1}), 240);
  assert_int_equal(ptx_persistent_blocks(4, 80, 80, (uint32_t[3]){1, 1, 1}), 80);
  assert_int_equal(ptx_persistent_blocks(0, 0, 0, (uint32_t[3]){1, 1, 1}), 1);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(grids),      cmocka_unit_test(huge_grid),
                                          cmocka_unit_test(leaving),    cmocka_unit_test(leaving_lanes),
                                          cmocka_unit_test(partners),   cmocka_unit_test(functions),
                                          cmocka_unit_test(refusals),   cmocka_unit_test(random_kernels),
                                          cmocka_unit_test(shared_out), cmocka_unit_test(blocks_to_launch)};
RUN_ON_EVERY_ISA(tests)
