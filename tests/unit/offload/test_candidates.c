/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates, costs, conditions and bars of kernels that are small enough to do by hand. */
#include "unit/offload/offload_test.h"

/* The numbers of Hsieh et al., section 3.1.5. */
static void libor_loop(void **state) {
  static const double sums[] = {110.25, 60.5, 10.75, -39, -88.75};
  ptx_module *module = parse_body(LIBOR_BODY);
  offload_kernel *kernel = offload_analyze(only_kernel(module));
  assert_int_equal(kernel->chosen_count, 1);
  const offload_region *r = region_at(kernel, 6, 14);
  assert_true(r->chosen && r->candidate);
  assert_int_equal(r->live_in_count, 5);
  assert_int_equal(r->other_count, 0);
  assert_int_equal(r->live_out_count, 0);
  assert_int_equal(r->loads, 1);
  assert_int_equal(r->stores, 1);
  assert_true(r->tx_fixed == 160 && r->tx_trip == -33.5 && r->rx_fixed == 0 && r->rx_trip == -16.25);
  for (int k = 1; k <= 5; k++) assert_true(r->tx_fixed + r->rx_fixed + k * (r->tx_trip + r->rx_trip) == sums[k - 1]);
  assert_int_equal(r->trips.kind, OFFLOAD_TRIPS_KNOWN);
  assert_int_equal(r->threshold, 4);
  assert_int_equal(r->tx_from, 5);
  assert_int_equal(r->rx_from, 1);
  assert_string_equal(kernel->func->regs[r->compared].name, "%r1");
  assert_int_equal(r->compared_with, 4);
  assert_false(r->compared_down);
  assert_int_equal(r->in_bytes, 2 * 256 + 3 * 128);
  for (uint32_t n = 1; n < 10; n++) assert_int_equal(offload_trips_of(&r->trips, n, 0), n);
  sim_candidate c = offload_candidate(r);
  assert_int_equal(c.pc, 6);
  assert_true(c.conditional);
  assert_int_equal(c.in_bytes, r->in_bytes);
  /* two registers of 64 bits: 224 - 4 * 49.75 > 0 */
  assert_true(c.tx_trip == -33.5 && c.rx_trip == -16.25 && c.tx_fixed == 160 + 2 * 32 && c.rx_fixed == 0);
  assert_int_equal(c.threshold, 5);
  assert_true(c.again); /* a warp may go at any trip, with the same registers */
  assert_int_equal(c.again_pc, 6);
  assert_int_equal(r->registers, 2 + 2 + 3 + 1); /* two pointers, %f1, %f2, %r1, and what is loaded */
  assert_int_equal(c.registers, r->registers + 4);
  assert_false(r->follows);
  assert_int_equal(c.left.in_bytes, c.in_bytes);
  assert_int_equal(c.left.out_bytes, c.out_bytes);
  assert_true(c.left.tx_fixed == c.tx_fixed && c.left.rx_fixed == c.rx_fixed && c.left.threshold == c.threshold);
  offload_kernel_free(kernel);
  ptx_module_free(module);
}

/* ---- bars ---- */

/* `middle` between two loads and a store that would be worth it alone. */
static void expect_bar(const char *middle, offload_bar bar) {
  ff_text body = {0};
  ff_text_add(
      &body,
      ".reg .b64 %%rd<4>; .reg .b32 %%r<8>; .reg .f32 %%f<4>; .reg .pred %%p<2>; .shared .b32 s[4]; .local .b32 l[4];\n"
      "ld.global.u32 %%r1, [%%rd1];\nld.global.u32 %%r2, [%%rd1+4];\n%s\nst.global.u32 [%%rd1], %%r1;\nst.global.u32 [%%rd1+4], %%r2;\nbar.sync 0;\nret;",
      middle);
  ptx_module *module = parse_body(body.chars);
  offload_kernel *kernel = offload_analyze(only_kernel(module));
  bool seen = false, across = false;
  for (uint32_t i = 0; i < kernel->region_count; i++) {
    const offload_region *r = &kernel->regions[i];
    seen |= r->bar == bar;
    across |= r->chosen && r->loads == 2 && r->stores == 2;
    /* behind HEAD, the entry, the brace and three lines of body */
    if (r->bar == bar && bar) assert_int_equal(r->bar_line, 9);
  }
  if (!seen || across != !bar)
    fail_msg("%s: bar %s %s, region across it %s", middle, offload_bar_text(bar), seen ? "seen" : "not seen",
             across ? "chosen" : "not chosen");
  offload_kernel_free(kernel);
  ptx_module_free(module);
  free(body.chars);
}

static void what_bars(void **state) {
  expect_bar("add.u32 %r3, %r1, %r2;", OFFLOAD_NONE);
  expect_bar("ld.local.u32 %r3, [l];", OFFLOAD_NONE);
  expect_bar("ld.param.u64 %rd2, [p];", OFFLOAD_NONE);
  expect_bar("mov.u32 %r3, %laneid;", OFFLOAD_NONE);
  expect_bar("prefetch.global.L1 [%rd1];", OFFLOAD_NONE);
  expect_bar("ld.shared.u32 %r3, [s];", OFFLOAD_SHARED);
  expect_bar("st.shared.u32 [s], %r1;", OFFLOAD_SHARED);
  expect_bar("bar.sync 0;", OFFLOAD_BARRIER);
  expect_bar("membar.gl;", OFFLOAD_BARRIER);
  expect_bar("fence.acq_rel.gpu;", OFFLOAD_BARRIER);
  expect_bar("ld.volatile.global.u32 %r3, [%rd1];", OFFLOAD_BARRIER);
  expect_bar("ld.acquire.gpu.global.u32 %r3, [%rd1];", OFFLOAD_BARRIER);
  expect_bar("atom.global.add.u32 %r3, [%rd1], 1;", OFFLOAD_ATOMIC);
  expect_bar("red.global.add.u32 [%rd1], 1;", OFFLOAD_ATOMIC);
  expect_bar("shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;", OFFLOAD_LANES);
  expect_bar("vote.sync.any.pred %p1, %p0, -1;", OFFLOAD_LANES);
  expect_bar("activemask.b32 %r3;", OFFLOAD_LANES);
  expect_bar("mov.u32 %r3, %clock;", OFFLOAD_CLOCK);
  expect_bar("add.u32 %r3, %r1, %smid;", OFFLOAD_CLOCK);
  expect_bar("cp.async.wait_all;", OFFLOAD_ASYNC);
  expect_bar("@%p1 trap;", OFFLOAD_EXIT);
}

static const offload_region *sole_chosen(const offload_kernel *kernel) {
  const offload_region *found = NULL;
  for (uint32_t i = 0; i < kernel->region_count; i++)
    if (kernel->regions[i].chosen) {
      assert_null(found);
      found = &kernel->regions[i];
    }
  return found;
}

/* A generic access through an address that can only be one of shared memory. */
static void generic_shared(void **state) {
  static const char body[] =
      ".reg .b64 %%rd<4>; .reg .b32 %%r<4>; .shared .b32 s[64];\nmov.u64 %%rd1, s;\ncvta.shared.u64 %%rd2, %%rd1;\nadd.u64 %%rd2, %%rd2, 4;\n%s"
      "st.u32 [%%rd2], 1;\nst.u32 [%%rd2+4], 1;\nst.u32 [%%rd2+8], 1;\nret;";
  for (int other = 0; other < 2; other++) {
    ff_text text = {0};
    ff_text_add(&text, body, other ? "ld.param.u64 %rd2, [p];\n" : "");
    ptx_module *module = parse_body(text.chars);
    offload_kernel *kernel = offload_analyze(only_kernel(module));
    assert_int_equal(kernel->chosen_count, other);
    if (!other) assert_int_equal(kernel->regions[0].bar, OFFLOAD_SHARED);
    offload_kernel_free(kernel);
    ptx_module_free(module);
    free(text.chars);
  }
}

/* ---- loops ---- */

#define LOOP_HEAD \
  ".reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .pred %p<3>;\nld.global.u64 %rd1, [%rd0];\nld.global.u32 %r1, [%rd0+8];\nld.global.u32 %r2, [%rd0+12];\nbar.sync 0;\n"

/* As clang lays some: the last block of the loop comes first, and the loop is entered in its middle. */
static void rotated_loop(void **state) {
  ptx_module *module = parse_body(
      LOOP_HEAD
      "bra MIDDLE;\nLATCH:\nadd.s32 %r1, %r1, 1;\nsetp.ge.s32 %p1, %r1, %r2;\n@%p1 bra END;\nMIDDLE:\nst.global.u32 [%rd1], %r1;\nst.global.u32 [%rd1+4], %r1;\n"
      "setp.eq.s32 %p2, %r1, 7;\n@%p2 bra LATCH;\nst.global.u32 [%rd1+8], %r1;\nbra LATCH;\nEND:\nbar.sync 0;\nret;");
  offload_kernel *kernel = offload_analyze(only_kernel(module));
  const offload_region *r = sole_chosen(kernel);
  assert_non_null(r);
  assert_int_equal(r->begin, 5);
  assert_int_equal(r->end, 14);
  assert_int_equal(r->entry, 8);
  assert_int_equal(r->exit, 14);
  assert_int_equal(r->stores, 3); /* of a trip, with what only some lanes do */
  assert_int_equal(r->live_in_count, 3);
  assert_int_equal(r->trips.kind, OFFLOAD_TRIPS_KNOWN);
  assert_int_equal(offload_trips_of(&r->trips, 2, 9), 7);
  assert_int_equal(offload_candidate(r).pc, 8);
  assert_true(r->again.any); /* each trip makes the first access, and the others behind it */
  assert_int_equal(r->again.pc, 8);
  assert_int_equal(r->again.in_bytes, r->in_bytes);
  offload_kernel_free(kernel);
  ptx_module_free(module);
}

static void static_trips(void **state) {
  ptx_module *module = parse_body(
      LOOP_HEAD
      "mov.u32 %r3, 0;\nL:\nld.global.u32 %r4, [%rd1];\nxor.b32 %r1, %r1, %r4;\nadd.s64 %rd1, %rd1, 4;\nadd.u32 %r3, %r3, 2;\nsetp.lo.u32 %p1, %r3, 20;\n@%p1 bra L;\n"
      "bar.sync 0;\nst.global.u32 [%rd0], %r1;\nret;");
  offload_kernel *kernel = offload_analyze(only_kernel(module));
  const offload_region *r = sole_chosen(kernel);
  assert_non_null(r);
  assert_int_equal(r->begin, 4); /* with the counter's first value: one register less to send */
  assert_int_equal(r->trips.kind, OFFLOAD_TRIPS_STATIC);
  assert_int_equal(r->trips.count, 10);
  assert_int_equal(r->live_in_count, 2);
  assert_int_equal(r->live_out_count, 1);
  assert_true(r->tx_fixed == 64 && r->rx_fixed == 32 && r->tx_trip == -0.5 && r->rx_trip == -16);
  assert_int_equal(r->threshold, 6);
  assert_false(offload_candidate(r).conditional);
  assert_int_equal(offload_candidate(r).trips, 10);
  assert_int_equal(r->again.pc, 5);
  assert_int_equal(r->in_bytes, 256 + 128);
  assert_int_equal(r->again.in_bytes, 256 + 128 + 128); /* and the counter */
  assert_int_equal(r->again.out_bytes, 128);
  sim_candidate c = offload_candidate(r);
  /* 160 - 9 * 16.5 > 0 */
  assert_true(c.again && c.left.tx_fixed == 128 && c.left.rx_fixed == 32 && c.left.threshold == 10);
  offload_kernel_free(kernel);
  ptx_module_free(module);
}

/* A loop that saves in each trip, around one that saves nothing: the outer one pays its registers once. And the other
 * way round, where a barrier is between. */
static void nested_loops(void **state) {
  static const char body[] = LOOP_HEAD
      "OUTER:\nst.global.u32 [%rd1], %r1;\nst.global.u32 [%rd1+4], %r1;\nINNER:\nadd.s64 %rd1, %rd1, 8;\nld.global.u32 %r5, [%rd1];\nsetp.ne.s32 %p1, %r5, %r2;\n@%p1 bra INNER;\n";
  for (int barrier = 0; barrier < 2; barrier++) {
    ff_text text = {0};
    ff_text_add(&text, "%s%sadd.s32 %%r1, %%r1, -1;\nsetp.ne.s32 %%p2, %%r1, 0;\n@%%p2 bra OUTER;\nbar.sync 0;\nret;",
                body, barrier ? "bar.sync 0;\n" : "");
    ptx_module *module = parse_body(text.chars);
    offload_kernel *kernel = offload_analyze(only_kernel(module));
    const offload_region *outer = region_at(kernel, 4, barrier ? 14 : 13);
    assert_int_equal(outer->chosen, !barrier);
    assert_int_equal(outer->bar, barrier ? OFFLOAD_BARRIER : OFFLOAD_NONE);
    assert_int_equal(outer->loads, 1);
    assert_int_equal(outer->stores, 2);
    assert_int_equal(outer->again.any, !barrier); /* with the first store, how often the inner loop goes round or not */
    if (!barrier) assert_int_equal(outer->again.pc, 4);
    assert_true(outer->times == 1 && region_at(kernel, 6, 10)->times == 16);
    assert_int_equal(region_at(kernel, 6, 10)->trips.kind, OFFLOAD_TRIPS_UNKNOWN);
    offload_kernel_free(kernel);
    ptx_module_free(module);
    free(text.chars);
  }
}

/* Which access begins a trip, and what is left of the region there. */
static void expect_again(const char *body, uint32_t begin, uint32_t end, uint32_t pc, uint32_t in_bytes,
                         uint32_t out_bytes, uint32_t once_stores) {
  ff_text text = {0};
  ff_text_add(&text, "%s%s", LOOP_HEAD, body);
  ptx_module *module = parse_body(text.chars);
  offload_kernel *kernel = offload_analyze(only_kernel(module));
  const offload_region *r = region_at(kernel, begin, end);
  assert_true(r->candidate);
  assert_int_equal(r->again.any, pc != UINT32_MAX);
  assert_int_equal(offload_candidate(r).again, r->again.any);
  if (r->again.any) {
    assert_int_equal(r->again.pc, pc);
    assert_int_equal(r->again.in_bytes, in_bytes);
    assert_int_equal(r->again.out_bytes, out_bytes);
    assert_int_equal(r->again.once_stores, once_stores);
  }
  offload_kernel_free(kernel);
  ptx_module_free(module);
  free(text.chars);
}

#define TRIP_END "add.s32 %r1, %r1, 1;\nsetp.lt.s32 %p1, %r1, %r2;\n@%p1 bra L;\n"
#define LAST "bar.sync 0;\nret;"

static void where_trips_begin(void **state) {
  enum { D = 256, W = 128, P = 4 };
  /* stores before, in and behind the loop; %r3 is what it adds up */
  expect_again(
      "st.global.u32 [%rd1], %r2;\nmov.u32 %r3, 0;\nL:\nst.global.u32 [%rd1+4], %r3;\nadd.u32 %r3, %r3, %r1;\n" TRIP_END
      "st.global.u32 [%rd1+8], %r3;\n" LAST,
      4, 12, 6, D + 3 * W, 0, 1);
  /* the first access is not every lane's; nor is it in every trip */
  expect_again(
      "setp.eq.s32 %p2, %r2, 9;\nL:\n@%p2 st.global.u32 [%rd1], %r2;\nst.global.u32 [%rd1+4], %r1;\nst.global.u32 [%rd1+8], %r1;\n" TRIP_END
          LAST,
      4, 11, UINT32_MAX, 0, 0, 0);
  expect_again(
      "setp.eq.s32 %p2, %r2, 9;\nL:\n@%p2 bra N;\nst.global.u32 [%rd1], %r2;\nst.global.u32 [%rd1+8], %r2;\nN:\nst.global.u32 [%rd1+4], %r1;\n" TRIP_END
          LAST,
      4, 12, UINT32_MAX, 0, 0, 0);
  /* other accesses may be some trips' alone */
  expect_again(
      "setp.eq.s32 %p2, %r2, 9;\nL:\nst.global.u32 [%rd1+4], %r1;\n@%p2 bra N;\nst.global.u32 [%rd1], %r2;\nst.global.u32 [%rd1+8], %r2;\nN:\n" TRIP_END
          LAST,
      4, 12, 5, D + 2 * W + P, 0, 0);
}

/* Addresses that the block loads itself, or computes from integers that it loads. */
static void follows_indices(void **state) {
  static const struct {
    const char *middle;
    bool follows;
  } cases[] = {
      {"", false},
      {"add.s64 %rd2, %rd1, 8;", false},
      {"ld.global.u64 %rd2, [%rd1];", true},
      {"ld.global.u32 %r3, [%rd1];\nmul.wide.u32 %rd2, %r3, 4;", true},
      {"ld.global.u32 %r3, [%rd1];\nadd.u32 %r4, %r3, 1;\nmul.wide.u32 %rd2, %r4, 4;\nadd.s64 %rd2, %rd2, %rd1;", true},
      /* chosen, not computed */
      {"ld.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p1, %r3, 0;\nselp.b64 %rd2, %rd1, %rd3, %p1;", false},
      /* of a table, not of a structure */
      {"ld.global.f32 %f1, [%rd1];\ncvt.rzi.u32.f32 %r3, %f1;\nmul.wide.u32 %rd2, %r3, 4;", false},
      {"ld.global.b32 %r3, [%rd1];\nadd.f32 %r4, %r3, %r3;\nmul.wide.u32 %rd2, %r4, 4;", false},
      {"ld.const.u32 %r3, [c];\nmul.wide.u32 %rd2, %r3, 4;", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ff_text body = {0};
    ff_text_add(
        &body,
        ".reg .b64 %%rd<4>; .reg .b32 %%r<8>; .reg .f32 %%f<4>; .reg .pred %%p<2>; .const .u32 c;\nbar.sync 0;\n%s\nst.global.u32 [%%rd2], 1;\nst.global.u32 [%%rd2+4], 1;\n"
        "st.global.u32 [%%rd2+8], 1;\nst.global.u32 [%%rd2+12], 1;\nst.global.u32 [%%rd2+16], 1;\nbar.sync 0;\nret;",
        cases[i].middle);
    ptx_module *module = parse_body(body.chars);
    offload_kernel *kernel = offload_analyze(only_kernel(module));
    const offload_region *r = sole_chosen(kernel);
    assert_non_null(r);
    if (r->follows != cases[i].follows) fail_msg("%s: %s", cases[i].middle, r->follows ? "follows" : "does not follow");
    assert_int_equal(offload_candidate(r).follows, r->follows);
    offload_kernel_free(kernel);
    ptx_module_free(module);
    free(body.chars);
  }
}

/* ---- costs ---- */

static void measured_costs(void **state) {
  offload_region r = {.in_words = 100, .out_words = 10, .loads = 2, .stores = 3, .once_loads = 1, .once_stores = 1};
  offload_ratios ratios = {.coal_load = 4, .coal_store = 2, .miss_load = 0.25, .line_words = 32};
  double tx_fixed, tx_trip, rx_fixed, rx_trip;
  offload_cost(&r, &ratios, &tx_fixed, &tx_trip, &rx_fixed, &rx_trip);
  assert_true(tx_fixed == 100 - (1 * 4 * 0.25 + 1 * (32 + 2)));
  assert_true(tx_trip == -(2 * 4 * 0.25 + 3 * (32 + 2)));
  assert_true(rx_fixed == 10 - (1 * 4 * 32 * 0.25 + 1 * 2 / 4.0));
  assert_true(rx_trip == -(2 * 4 * 32 * 0.25 + 3 * 2 / 4.0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(libor_loop),        cmocka_unit_test(what_bars),       cmocka_unit_test(generic_shared),
      cmocka_unit_test(rotated_loop),      cmocka_unit_test(static_trips),    cmocka_unit_test(nested_loops),
      cmocka_unit_test(where_trips_begin), cmocka_unit_test(follows_indices), cmocka_unit_test(measured_costs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
