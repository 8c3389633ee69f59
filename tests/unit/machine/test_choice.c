/* SPDX-License-Identifier: Apache-2.0 */
/* A manager with other parts, as text: what it becomes, what is refused, and that the simulation is the one that was
 * asked for. */
#include "rig.h"

#include "machine/spec/choice.h"

static machine_spec spec;
static sim_choices none;

static sim_choice c; /* what was read last */

static void read_good(const char *text, const sim_choices *given) {
  ff_error error = {0};
  if (sim_choice_read(text, given, &spec, &c, &error)) fail_msg("%s: %s", text, error.message);
}

static void test_parts(void **state) {
  read_good("uvm+evict=lru:64K+gpu-memory=50%+unit=64K+fault_us=5+page=64K+write-back=overlapped+link=32:8", &none);
  assert_string_equal(c.manager, "uvm");
  assert_string_equal(c.label,
                      "uvm+evict=lru:64K+gpu-memory=50%+unit=64K+fault_us=5+page=64K+write-back=overlapped+link=32:8");
  assert_string_equal(c.choices.text[SIM_CHOICE_EVICT], "lru:64K");
  assert_string_equal(c.choices.text[SIM_CHOICE_PAGE], "64K");
  assert_string_equal(c.choices.set, "link_h2d_gbs=32,link_d2h_gbs=8,link_table=none,fault_us=5");
  assert_int_equal(c.options.unit_bytes, 65536);
  assert_int_equal(c.options.gpu_memory, 0);
  assert_true(c.options.gpu_memory_share == 0.5 && c.options.write_back_overlaps);
  assert_null(c.options.prefetch);
  read_good("uvm+access-counters=128:64K", &none);
  assert_string_equal(c.options.access_counters, "128:64K");
  read_good("partial-multi+ranges=unlimited+gap=none", &none);
  assert_true(c.options.ranges == UINT32_MAX && c.options.gap_chosen && !c.options.gap_bytes);
  read_good("partial-multi+ranges=4+gap=16K", &none);
  assert_true(c.options.ranges == 4 && c.options.gap_bytes == 16384);
  read_good("partial-multi", &none);
  assert_true(!c.options.ranges && !c.options.gap_chosen);
  read_good("replay+gpu-memory=8M+evict=/far/away/mine.so:3", &none);
  assert_int_equal(c.options.gpu_memory, 8 << 20);
  assert_string_equal(c.label, "replay+gpu-memory=8M+evict=mine.so:3"); /* without the folders */
}

/* What stands behind a manager counts before what is chosen for all. */
static void test_own_before_all(void **state) {
  sim_choices all = {.set = "fault_us=50,fault_mshrs=2"};
  strcpy(all.text[SIM_CHOICE_PREFETCH], "tbn");
  strcpy(all.text[SIM_CHOICE_LINK], "12");
  read_good("replay+fault_us=5+prefetch=sl+link_h2d_gbs=3", &all);
  assert_string_equal(c.choices.text[SIM_CHOICE_PREFETCH], "sl");
  machine_spec changed = spec;
  assert_int_equal(machine_spec_set_all(&changed, c.choices.set, NULL), FF_OK);
  assert_true(changed.fault_us == 5 && changed.fault_mshrs == 2 && changed.link_h2d_gbs == 3 &&
              changed.link_d2h_gbs == 12);
  read_good("replay", &all);
  assert_string_equal(c.choices.text[SIM_CHOICE_PREFETCH], "tbn");
}

static void test_refused(void **state) {
  static const struct {
    const char *text, *expected;
  } rows[] = {{"repaly", "did you mean 'replay'?"},
              {"", "no memory manager ''"},
              {"replay+", "'' is not NAME=VALUE"},
              {"replay+=3", "'=3' is not NAME=VALUE"},
              {"replay+unit=", "'unit=' is not NAME=VALUE"},
              {"replay+unit=3K", "unit: '3K' is not a power of two"},
              {"replay+Prefetch=tbn", "did you mean 'prefetch'?"},
              {"replay+fault_us=1,5", "'fault_us=1,5' is not"},
              {"replay+faults=replay:3,fault_us=3", "is not NAME=VALUE"},
              {"replay+faults=batch:x", "fault_batch: 'x' is not a whole number"},
              {"replay+write-back=no", "neither 'serial' nor"},
              {"partial-multi+ranges=0", "neither a number from 1 to 8192 nor unlimited"},
              {"partial-multi+ranges=8193", "neither a number"},
              {"partial-multi+ranges=2x", "neither a number"},
              {"partial-multi+gap=64", "not a gap from 128 to 2M"},
              {"partial-multi+gap=3M", "not a gap from"},
              {"replay+ranges=2", "says nothing to replay, which has no partial pages"},
              {"copy+gap=4K", "does not page"},
              {"uvm+access-counters=0", "neither a number of accesses from 1 to 65535"},
              {"uvm+access-counters=65536", "neither a number of accesses"},
              {"uvm+access-counters=4x", "neither a number of accesses"},
              {"ats+access-counters=4:", "are of 64K or 2M"},
              {"ats+access-counters=4:4K", "are of 64K or 2M"},
              {"copy+access-counters=4", "does not page"},
              {"replay+watermark=8M:4M", "HIGH is less than LOW"},
              {"replay+watermark=51%", "at most half"},
              {"replay+watermark=", "not NAME=VALUE"},
              {"replay+watermark=1%:", "watermark"},
              {"copy+watermark=1M", "does not page"},
              {"ideal+faults=block", "says nothing to ideal"},
              {"zero-copy+unit=4K", "says nothing to zero-copy"},
              {"replay+link=1:2:3", "link_d2h_gbs: '2:3' is not a number"},
              {"replay+page_bytes=5000", "page_bytes must be a power of two"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ff_error error = {0};
    assert_int_not_equal(sim_choice_read(rows[i].text, &none, &spec, &c, &error), FF_OK);
    if (!strstr(error.message, rows[i].expected))
      fail_msg("%s: expected '%s' in '%s'", rows[i].text, rows[i].expected, error.message);
  }
  static char text[8192]; /* longer than any part may be */
  strcpy(text, "replay+prefetch=");
  memset(text + strlen(text), 'x', sizeof text - strlen(text) - 1);
  assert_int_equal(sim_choice_read(text, &none, &spec, &c, NULL), FF_LIMIT);
}

/* ---- what comes of it ---- */

static void sweep(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  for (uint64_t page = 0; page < 16; page++) rig_load_wait(w, RIG_BASE + (block * 16 + page) * 4096);
}

static sim_counters outcome(const char *text) {
  rig r;
  rig_open(&r, "replay");
  spec = r.spec;
  read_good(text, &none);
  r.program = trace_program_create(0);
  ff_error error = {0};
  if (sim_create(r.program, &c.options, &r.sim, &error)) fail_msg("%s: %s", text, error.message);
  memset(&c.choices, 'x', sizeof c.choices); /* the texts were only borrowed */
  memset(&spec, 'x', sizeof spec);
  rig_alloc(&r, RIG_BASE, 4 << 20, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = 60, .warps = 1, .warp = sweep});
  sim_counters counters = rig_finish(&r)->counters;
  assert_string_equal(r.result.memory, text);
  rig_close(&r);
  spec = rig_spec();
  return counters;
}

static void assert_same(const char *a, const char *b) {
  sim_counters x = outcome(a), y = outcome(b);
  if (memcmp(&x, &y, sizeof x)) fail_msg("%s and %s are not the same", a, b);
}

static void test_equal_ways(void **state) {
  assert_same("replay+faults=block", "demand");
  assert_same("demand+faults=replay", "replay");
  assert_same("replay+faults=replay:2", "replay+fault_mshrs=2");
  assert_same("replay+unit=4K+prefetch=tbn+evict=tree", "tbn");
  assert_same("uvm", "uvm+faults=batch:256");
  assert_same("replay+link=8", "replay+link_h2d_gbs=8+link_d2h_gbs=8");
  assert_same("copy+page=64K", "copy+page_bytes=65536");
}

static void test_it_counts(void **state) {
  assert_true(outcome("demand+fault_us=5").time_ps < outcome("demand").time_ps);
  assert_true(outcome("replay+faults=replay:1").time_ps > outcome("replay").time_ps);
  assert_true(outcome("replay+faults=batch").faults_throttled == 0);
  assert_true(outcome("uvm+faults=replay").faults > 0);
  assert_true(outcome("replay+gpu-memory=256K").evicted_bytes > 0);
  assert_true(outcome("replay+link=1").time_ps > outcome("replay").time_ps);
}

int main(void) {
  spec = rig_spec();
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_own_before_all),
                                     cmocka_unit_test(test_refused), cmocka_unit_test(test_equal_ways),
                                     cmocka_unit_test(test_it_counts)};
  return cmocka_run_group_tests_name("choice", tests, NULL, NULL);
}
