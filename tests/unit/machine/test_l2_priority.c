/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines an L2 keeps: the part that is set aside for lines that persist, windows, cache hints, resets.
 *
 * The L2 of the rig: 12 slices of 128 sets of 8 lines, 1536 KiB. Pieces of 256 bytes go round the slices, so an array
 * of 768 KiB has four lines of each set. All loads pass the L1; pages are of 2 MiB and their tables' entries in the
 * walk cache after the first use, so that what DRAM reads is arrays, and a line or two of tables. */
#include "rig.h"
#include "unit/share.h"

#define KIB UINT64_C(1024)
#define KEPT RIG_BASE
#define STREAM (RIG_BASE + (8 << 20))
#define WHOLE (1536 * KIB)
#define TABLES (4 * KIB) /* more than the tables of a test */

typedef struct range {
  uint64_t address, bytes;
  uint32_t flags;
  trace_access_op op;
} range;

static void go_through(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const range *r = context;
  for (uint64_t at = 0; at < r->bytes; at += 128) {
    rig_access(w, r->op, TRACE_BYPASS_L1 | r->flags, r->address + at, 15);
    if (r->op == TRACE_LOAD) trace_put_wait(w, 0);
  }
}

static void ampere(machine_spec *s) {
  s->compute_major = 8;
  s->page_bytes = 2 << 20;
}
static void turing(machine_spec *s) { s->page_bytes = 2 << 20; }

static uint32_t threads; /* of simulations in rounds; 0: event by event */

static void open_rig(rig *r, rig_tweak tweak) {
  rig_open(r, "ideal");
  tweak(&r->spec);
  r->threads = threads;
  rig_start(r);
  rig_alloc(r, RIG_BASE, 64 << 20, TRACE_MEMORY_DEVICE);
}
static void launch(rig *r, range what, trace_l2_controls l2, const char *name) {
  rig_launch(r, (rig_kernel){.blocks = 1, .warps = 1, .warp = go_through, .context = &what, .l2 = l2, .name = name});
}
/* What the kernels of that name read from DRAM. */
static uint64_t read_by(rig *r, const char *name) {
  const sim_result *result = rig_finish(r);
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < result->kernel_count; k++)
    if (!strcmp(result->kernels[k].name, name)) bytes = result->kernels[k].counters.dram_read_bytes;
  rig_close(r);
  return bytes;
}

static trace_l2_controls window(uint64_t set_aside, uint64_t bytes, double share, trace_l2_priority hit) {
  return (trace_l2_controls){.set_aside = set_aside,
                             .address = KEPT,
                             .bytes = bytes,
                             .share = (uint32_t)(share * TRACE_L2_SHARE),
                             .hit = (uint8_t)hit,
                             .miss = TRACE_L2_FIRST};
}
static const trace_l2_controls none;

static range reads(uint64_t address, uint64_t bytes) { return (range){address, bytes, 0, TRACE_LOAD}; }

/* `kept` bytes under the first controls, a stream twice as large as the L2 under the second ones, `kept` once more:
 * what of it is read from DRAM again. */
static uint64_t again(rig_tweak tweak, uint64_t kept, trace_l2_controls first, trace_l2_controls second) {
  rig r;
  open_rig(&r, tweak);
  launch(&r, reads(KEPT, kept), first, "first");
  launch(&r, reads(STREAM, 2 * WHOLE), second, "stream");
  launch(&r, reads(KEPT, kept), second, "again");
  return read_by(&r, "again");
}

static void test_what_persists(void **state) {
  trace_l2_controls half = window(WHOLE / 2, WHOLE / 2, 1, TRACE_L2_LAST);
  assert_in_range(again(ampere, WHOLE / 2, half, half), 0, TABLES);
  assert_in_range(again(ampere, WHOLE / 2, half, none), 0, TABLES); /* also without the window, whoever comes later */
  assert_in_range(again(ampere, WHOLE / 2, none, none), WHOLE / 2, WHOLE / 2 + TABLES);
  /* three quarters at most */
  trace_l2_controls all = window(2 * WHOLE, WHOLE / 4 * 3, 1, TRACE_L2_LAST);
  assert_in_range(again(ampere, WHOLE / 4 * 3, all, all), 0, TABLES);
  all.bytes = WHOLE;
  assert_in_range(again(ampere, WHOLE, all, all), WHOLE / 4, WHOLE + TABLES);
  /* 1.5 lines of a set: 192 KiB stay, which every second set has two lines of */
  trace_l2_controls part = window(WHOLE / 16 * 3, WHOLE / 16 * 3, 1, TRACE_L2_LAST);
  uint64_t left = again(ampere, WHOLE / 16 * 3, part, part);
  assert_in_range(left, 0, WHOLE / 16 + TABLES);
}

static void test_where_there_is_none(void **state) {
  trace_l2_controls half = window(WHOLE / 2, WHOLE / 2, 1, TRACE_L2_LAST), nothing = half;
  nothing.set_aside = 0;
  assert_in_range(again(turing, WHOLE / 2, half, half), WHOLE / 2, WHOLE / 2 + TABLES);
  assert_in_range(again(ampere, WHOLE / 2, nothing, nothing), WHOLE / 2, WHOLE / 2 + TABLES);
}

static void test_resets(void **state) {
  trace_l2_controls half = window(WHOLE / 2, WHOLE / 2, 1, TRACE_L2_LAST), reset = half;
  reset.resets = 1;
  reset.bytes = 0;
  assert_in_range(again(ampere, WHOLE / 2, half, reset), WHOLE / 2, WHOLE / 2 + TABLES);
  /* by a window of normal accesses */
  rig r;
  open_rig(&r, ampere);
  launch(&r, reads(KEPT, WHOLE / 2), half, "first");
  launch(&r, reads(KEPT, WHOLE / 2), window(WHOLE / 2, WHOLE / 2, 1, TRACE_L2_NORMAL), "normal");
  launch(&r, reads(STREAM, 2 * WHOLE), none, "stream");
  launch(&r, reads(KEPT, WHOLE / 2), none, "again");
  assert_in_range(read_by(&r, "again"), WHOLE / 2, WHOLE / 2 + TABLES);
}

/* A launch of before the reset may begin behind one of after it: what has come to stay since then stays. */
static void test_a_reset_counts_once(void **state) {
  trace_l2_controls old = window(WHOLE / 2, 0, 1, TRACE_L2_LAST), new = window(WHOLE / 2, WHOLE / 2, 1, TRACE_L2_LAST);
  new.resets = 1;
  rig r;
  open_rig(&r, ampere);
  launch(&r, reads(KEPT, WHOLE / 2), new, "first");
  launch(&r, reads(STREAM, WHOLE / 4), old, "late");
  launch(&r, reads(STREAM, 2 * WHOLE), new, "stream");
  launch(&r, reads(KEPT, WHOLE / 2), new, "again");
  assert_in_range(read_by(&r, "again"), 0, TABLES);
}

/* A window has whole lines, those that it begins and ends in among them. */
static void test_ends_of_a_window(void **state) {
  trace_l2_controls inside = window(WHOLE / 2, WHOLE / 2 - 96, 1, TRACE_L2_LAST);
  inside.address += 64;
  assert_in_range(again(ampere, WHOLE / 2, inside, inside), 0, TABLES);
  trace_l2_controls two = {.set_aside = WHOLE / 2, .address = KEPT + 64, .bytes = 128, .share = TRACE_L2_SHARE};
  memory y = {.ranks = true};
  two.hit = TRACE_L2_LAST;
  const uint64_t load = TRACE_ACCESS;
  assert_int_equal(l2_priority(&y, &two, load, KEPT), TRACE_L2_LAST);
  assert_int_equal(l2_priority(&y, &two, load, KEPT + 128), TRACE_L2_LAST);
  assert_int_equal(l2_priority(&y, &two, load, KEPT + 256), TRACE_L2_PLAIN);
}

/* Twice as much as is set aside: each line that persists pushes out the oldest one, which comes up next. With half of
 * the lines those persist whose sets have no more of them than room. */
static void test_more_than_is_set_aside(void **state) {
  trace_l2_controls all = window(WHOLE / 2, WHOLE, 1, TRACE_L2_LAST),
                    half = window(WHOLE / 2, WHOLE, 0.5, TRACE_L2_LAST);
  assert_in_range(again(ampere, WHOLE, all, all), WHOLE / 2, WHOLE + TABLES);
  rig r;
  open_rig(&r, ampere);
  for (int i = 0; i < 3; i++) {
    launch(&r, reads(STREAM, WHOLE), all, "stream");
    launch(&r, reads(KEPT, WHOLE), all, i == 2 ? "third" : "before");
  }
  uint64_t thrashes = read_by(&r, "third");
  open_rig(&r, ampere);
  for (int i = 0; i < 3; i++) {
    launch(&r, reads(STREAM, WHOLE), half, "stream");
    launch(&r, reads(KEPT, WHOLE), half, i == 2 ? "third" : "before");
  }
  uint64_t tuned = read_by(&r, "third");
  assert_in_range(thrashes, WHOLE - TABLES, WHOLE + TABLES);
  assert_in_range(tuned, WHOLE / 2 - TABLES, WHOLE / 3 * 2);
}

/* ---- cache hints ---- */

static uint64_t again_after(uint32_t kept_flags, uint32_t stream_flags) {
  rig r;
  open_rig(&r, ampere);
  launch(&r, (range){KEPT, WHOLE / 2, kept_flags, TRACE_LOAD}, none, "first");
  launch(&r, (range){STREAM, 2 * WHOLE, stream_flags, TRACE_LOAD}, none, "stream");
  launch(&r, reads(KEPT, WHOLE / 2), none, "again");
  return read_by(&r, "again");
}

static void test_hints(void **state) {
  const uint32_t last = TRACE_L2_PRIORITY, first = TRACE_L2_PRIORITY | TRACE_STREAMING;
  assert_in_range(again_after(0, 0), WHOLE / 2, WHOLE / 2 + TABLES);
  assert_in_range(again_after(0, first), 0, TABLES);
  assert_in_range(again_after(last, 0), 0, TABLES);
  assert_in_range(again_after(first, 0), WHOLE / 2, WHOLE / 2 + TABLES);
  assert_in_range(again_after(0, TRACE_STREAMING), WHOLE / 2, WHOLE / 2 + TABLES);
}

/* What is written persists, and leaves as it would: a stream of stores is evicted before it. */
static void test_stores(void **state) {
  trace_l2_controls half = window(WHOLE / 2, WHOLE / 2, 1, TRACE_L2_LAST);
  rig r;
  open_rig(&r, ampere);
  launch(&r, (range){KEPT, WHOLE / 2, 0, TRACE_STORE}, half, "first");
  launch(&r, (range){STREAM, 2 * WHOLE, 0, TRACE_STORE}, half, "stream");
  launch(&r, reads(KEPT, WHOLE / 2), half, "again");
  const sim_result *result = rig_finish(&r);
  assert_in_range(result->counters.dram_write_bytes, WHOLE / 2 * 3, WHOLE / 2 * 3 + TABLES);
  assert_in_range(result->counters.dram_read_bytes, 0, TABLES);
  rig_close(&r);
}

/* Many SMs on several threads, all of whose counters are those of one thread. */
static sim_counters together(uint32_t count) {
  rig r;
  threads = count;
  open_rig(&r, ampere);
  threads = 0;
  trace_l2_controls half = window(WHOLE / 2, WHOLE / 2, 0.7, TRACE_L2_LAST);
  for (uint64_t i = 0; i < 6; i++) {
    range what = reads(i % 2 ? STREAM : KEPT, WHOLE / 2 + i * 96 * KIB);
    rig_launch(&r,
               (rig_kernel){.blocks = 8, .warps = 4, .warp = go_through, .context = &what, .l2 = half, .name = "k"});
  }
  sim_counters counters = rig_finish(&r)->counters;
  rig_close(&r);
  return counters;
}

static void test_in_rounds(void **state) {
  threads = 2;
  if (!CHECKED_BUILD || one_in(2) == 1) test_what_persists(state);
  test_hints(state);
  threads = 0;
  const sim_counters one = together(1);
  for (uint32_t count = 2; count <= (one_in(2) == 1 ? 3 : 2); count++) {
    const sim_counters more = together(count);
    assert_memory_equal(&one, &more, sizeof one);
  }
}

/* ---- two sides ---- */

static void sides(machine_spec *s) {
  ampere(s);
  s->l2_copies = 1;
  s->side_latency = 40;
}
/* All that is set aside is for lines: SM 0 alone keeps that much of both sides, the far half on the other side. */
static void test_two_sides(void **state) {
  trace_l2_controls half = window(WHOLE / 2, WHOLE / 2, 1, TRACE_L2_LAST);
  assert_in_range(again(sides, WHOLE / 2, half, half), 0, TABLES);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_persists),
                                     cmocka_unit_test(test_where_there_is_none),
                                     cmocka_unit_test(test_a_reset_counts_once),
                                     cmocka_unit_test(test_ends_of_a_window),
                                     cmocka_unit_test(test_resets),
                                     cmocka_unit_test(test_more_than_is_set_aside),
                                     cmocka_unit_test(test_hints),
                                     cmocka_unit_test(test_stores),
                                     cmocka_unit_test(test_in_rounds),
                                     cmocka_unit_test(test_two_sides)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
