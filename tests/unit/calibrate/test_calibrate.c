/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration without a GPU: spreads, what a machine says of a figure, the machine file that is written of made-up
 * figures, the comparison. tests/programs/calibrate.sh measures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "calibrate/calibrate.h"
#include "machine/spec/spec_table.h"
#include "unit/near.h"

static void load(const char *name, machine_spec *spec) {
  ff_error error;
  if (machine_spec_load(name, spec, &error)) fail_msg("%s", error.message);
}

static void put(calibrate_result *r, figure_id id, int count, ...) {
  va_list args;
  va_start(args, count);
  r->figures[id].count = (uint32_t)count;
  for (int i = 0; i < count; i++) r->figures[id].samples[i] = va_arg(args, double);
  va_end(args);
}

static calibrate_result *made_up(void) {
  calibrate_result *r = ff_alloc(sizeof *r);
  r->device = (calibrate_device){.name = "A \"GPU\"\\",
                                 .driver_version = 12040,
                                 .memory_bytes = UINT64_C(8) << 30,
                                 .major = 8,
                                 .minor = 6,
                                 .sm_count = 48,
                                 .max_threads = 1536,
                                 .max_blocks = 16,
                                 .registers = 65536,
                                 .shared_bytes = 100 << 10,
                                 .shared_per_block = 48 << 10,
                                 .shared_per_block_optin = 99 << 10};
  put(r, FIGURE_clock_mhz, 1, 1000.0);
  put(r, FIGURE_launch_us, 5, 12.0, 11.9, 12.2, 12.1, 12.0);
  put(r, FIGURE_l1_bytes, 1, 130000.0);
  put(r, FIGURE_l2_bytes, 1, 4.1e6);
  put(r, FIGURE_tlb_entries, 3, 31.0, 32.0, 32.0);
  return r;
}

static void medians_and_quartiles(void **state) {
  figure f = {.count = 5, .samples = {5, 1, 4, 2, 3}};
  figure_summary s = figure_summarise(&f);
  assert_true(s.median == 3 && s.low == 1 && s.high == 5 && s.quarter == 2 && s.three_quarters == 4);
  f = (figure){.count = 2, .samples = {10, 20}};
  s = figure_summarise(&f);
  assert_true(s.median == 15 && s.quarter == 12.5);
  f = (figure){.count = 1, .samples = {7}};
  s = figure_summarise(&f);
  assert_true(s.median == 7 && s.low == 7 && s.high == 7 && s.three_quarters == 7);
}

/* Against numbers worked out by hand from the machine files. */
static void what_machines_say(void **state) {
  machine_spec v100, h200;
  load("v100", &v100);
  load("h200", &h200);
  assert_within(figure_expected(FIGURE_tlb_near_cycles, &v100), 1 + 4 * 2, 1e-9);
  assert_within(figure_expected(FIGURE_tlb_far_cycles, &v100), 1 + 3 * 2 + 210, 1e-9);
  assert_within(figure_expected(FIGURE_block_interval_cycles, &v100), 80 * 2.25, 1e-9);
  assert_within(figure_expected(FIGURE_place_interval_cycles, &v100), 316 + v100.issue_interval, 1e-9);
  assert_within(figure_expected(FIGURE_launch_interval_us, &v100), 4 + 316 / 1530., 1e-9);
  assert_within(figure_expected(FIGURE_h2d_4K, &v100), 3.22, 1e-9);
  assert_within(figure_expected(FIGURE_h2d_2M, &v100), 2097152. / (1048576 / 11.22 + 1048576 / 12.5), 1e-9);
  assert_within(figure_expected(FIGURE_d2h_4K, &h200), 4096 / (1000 + 4096 / 55.), 1e-9);
  assert_within(figure_expected(FIGURE_l2_gbs, &v100), 80 * 22.2 * 1.53, 1e-9); /* the SMs' ports */
  v100.sm_read_bytes = 0;
  assert_within(figure_expected(FIGURE_l2_gbs, &v100), 32 * 64 * 1.53, 1e-9);
  assert_within(figure_expected(FIGURE_dram_conflict_cycles, &v100), 24 / 0.8775 * 1.53, 1e-6);
  assert_true(isnan(figure_expected(FIGURE_batch_page_bytes, &v100)));
}

static void same_figures_as_expected(calibrate_result *r, const machine_spec *m) {
  for (int i = 0; i < FIGURE_COUNT; i++)
    if (isfinite(figure_expected((figure_id)i, m))) put(r, (figure_id)i, 1, figure_expected((figure_id)i, m));
}

/* A machine's own figures, and the machine as base: what is solved is what the machine says. */
static void solved_values(void **state) {
  machine_spec m;
  load("v100", &m);
  m.sm_read_bytes = 0; /* the slices of the L2 are what binds */
  calibrate_result *r = made_up();
  same_figures_as_expected(r, &m);
  calibrate_solve(r, &m);
  assert_within(r->figures[FIGURE_tlb_miss_latency].samples[0], m.tlb_miss_latency, 1e-6);
  assert_within(r->figures[FIGURE_dram_latency].samples[0], m.dram_latency, 1e-6);
  assert_within(r->figures[FIGURE_sfu_cycles].samples[0], m.sfu_cycles, 1e-6);
  assert_within(r->figures[FIGURE_l2_bytes_per_cycle].samples[0], m.l2_bytes_per_cycle, 1e-6);
  assert_within(r->figures[FIGURE_block_launch_cycles].samples[0], m.block_launch_cycles, 1e-6);
  assert_within(r->figures[FIGURE_block_start_cycles].samples[0], m.block_start_cycles, 1e-6);
  assert_within(r->figures[FIGURE_launch_latency_us].samples[0], m.launch_latency_us, 1e-9);
  r->figures[FIGURE_tlb_near_cycles].count = 0; /* not found: not solved either */
  calibrate_solve(r, &m);
  assert_int_equal(r->figures[FIGURE_tlb_miss_latency].count, 0);
  free(r);
  load("h200", &m); /* half of what comes from DRAM comes over the other side of the L2 */
  r = made_up();
  same_figures_as_expected(r, &m);
  calibrate_solve(r, &m);
  assert_within(r->figures[FIGURE_dram_latency].samples[0], m.dram_latency, 0.5);
  free(r);
}

static void written_machine(void **state) {
  machine_spec base, made;
  ff_text text = {0}, again = {0};
  ff_error error;
  load("v100", &base);
  calibrate_result *r = made_up();
  if (calibrate_write_machine(r, &base, "v100", "2026-11-21", &text, &error)) fail_msg("%s", error.message);
  assert_int_equal(spec_text_load("made", text.chars, text.length, &made, &error), FF_OK);
  assert_string_equal(made.name, "A \"GPU\"\\");
  assert_string_equal(made.title, "A \"GPU\"\\, measured 2026-11-21 (48 SMs)");
  assert_true(made.launch_us == 12 && made.tlb_entries == 32 && made.sm_count == 48 && made.compute_minor == 6);
  assert_non_null(strstr(
      text.chars,
      "launch_us: {value: 12, source: \"measured: host time of an asynchronous null launch; median of 5, 11.9 to 12.2, quartiles 12 and 12.1\"}"));
  assert_non_null(strstr(text.chars, "walkers: {value: 64, source: \"not measured: as v100\"}"));
  assert_int_equal(made.l1_bytes, 130176); /* whole sets of the base's three ways */
  assert_int_equal(made.l2_bytes % (made.l2_ways * made.l2_slices * 128), 0);
  assert_true(fabs((double)made.l2_bytes / 4.1e6 - 1) < 0.02);
  assert_int_equal(calibrate_write_machine(r, &base, "v100", "2026-11-21", &again, &error), FF_OK);
  assert_string_equal(text.chars, again.chars);
  free(text.chars);
  free(again.chars);
  free(r);
}

/* An L1 of fewer lines than the base has ways; figures that make no machine are an error, not a file that does not
 * load. */
static void odd_machines(void **state) {
  machine_spec base, made;
  ff_text text = {0};
  ff_error error;
  load("v100", &base);
  calibrate_result *r = made_up();
  put(r, FIGURE_l1_bytes, 1, 256.0);
  assert_int_equal(calibrate_write_machine(r, &base, "v100", "d", &text, &error), FF_OK);
  assert_int_equal(spec_text_load("made", text.chars, text.length, &made, &error), FF_OK);
  assert_true(made.l1_ways == 2 && made.l1_bytes == 256);
  text.length = 0;
  put(r, FIGURE_launch_us, 1, -1.0);
  assert_int_not_equal(calibrate_write_machine(r, &base, "v100", "d", &text, &error), FF_OK);
  assert_non_null(strstr(error.message, "launch_us"));
  text.length = 0;
  r->device.shared_per_block = 200 << 10;
  put(r, FIGURE_launch_us, 1, 1.0);
  assert_int_not_equal(calibrate_write_machine(r, &base, "v100", "d", &text, &error), FF_OK);
  free(text.chars);
  free(r);
}

static void comparison(void **state) {
  machine_spec m;
  ff_text text = {0};
  load("v100", &m);
  calibrate_result *r = made_up();
  same_figures_as_expected(r, &m);
  assert_int_equal(calibrate_compare(r, &m, 0.05, &text), 0);
  text.length = 0;
  put(r, FIGURE_l2_latency, 1, 210 * 1.051); /* one too far off, one just not, one not found */
  put(r, FIGURE_api_us, 1, 1.049);
  r->figures[FIGURE_sync_us].count = 0;
  assert_int_equal(calibrate_compare(r, &m, 0.05, &text), 2);
  assert_non_null(strstr(text.chars, "+5.1%  !"));
  assert_null(strstr(text.chars, "+4.9%  !"));
  assert_non_null(strstr(text.chars, "1 not found"));
  free(text.chars);
  free(r);
}

static void other_outputs(void **state) {
  ff_text text = {0};
  calibrate_result *r = made_up();
  strcpy(r->failures, "DRAM: \"why\"\n");
  r->curve[r->curve_count++] = (curve_point){2048, 30};
  r->curve[r->curve_count++] = (curve_point){1 << 20, 200};
  calibrate_json(r, &text);
  assert_non_null(strstr(text.chars, "\"gpu\": \"A \\\"GPU\\\"\\\\\""));
  assert_non_null(
      strstr(text.chars, "\"launch_us\": {\"median\": 12, \"unit\": \"us\", \"low\": 11.9, \"high\": 12.2"));
  assert_non_null(strstr(text.chars, "\"failures\": \"DRAM: \\\"why\\\"\\u000a\""));
  text.length = 0;
  calibrate_csv(r, "command", &text);
  assert_non_null(strstr(text.chars, "launch_us,12,us,11.9,12.2,command\n"));
  text.length = 0;
  calibrate_picture(r, &text);
  assert_non_null(strstr(text.chars, "<svg"));
  assert_non_null(strstr(text.chars, "L1 126.95 KiB"));
  assert_null(strstr(text.chars, "nan"));
  free(text.chars);
  free(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(medians_and_quartiles), cmocka_unit_test(what_machines_say),
                                     cmocka_unit_test(solved_values),         cmocka_unit_test(written_machine),
                                     cmocka_unit_test(odd_machines),          cmocka_unit_test(comparison),
                                     cmocka_unit_test(other_outputs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
