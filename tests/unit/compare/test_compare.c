/* SPDX-License-Identifier: Apache-2.0 */
/* Runs next to each other: metrics, both sides of the threshold, what is matched with what, the order of changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "compare/compare.h"

static compare_options options;

static void choose(const char *names, const char *threshold) {
  assert_int_equal(compare_choose(names, &options, NULL), FF_OK);
  assert_int_equal(compare_threshold(threshold, &options, NULL), FF_OK);
}

static void add_result(report_run *run, const char *memory, uint64_t time, uint64_t faults) {
  run->results = ff_realloc(run->results, (run->result_count + 1) * sizeof *run->results);
  sim_result *r = &run->results[run->result_count++];
  *r = (sim_result){.complete = true, .counters = {.time_ps = time, .faults = faults}};
  strcpy(r->memory, memory);
  strcpy(r->machine, "gtx480");
}

static void add_kernel(report_run *run, const char *name, uint64_t time) {
  sim_result *r = &run->results[run->result_count - 1];
  r->kernels = ff_realloc(r->kernels, (r->kernel_count + 1) * sizeof *r->kernels);
  r->kernels[r->kernel_count] = (sim_kernel_result){.counters = {.time_ps = time}};
  strcpy(r->kernels[r->kernel_count++].name, name);
}

static report_run start(const char *command) {
  report_run run = {.complete = true, .command = ff_strdup(command)};
  strcpy(run.version, "1");
  return run;
}

static void test_metrics(void **state) {
  sim_counters c = {.time_ps = 1000, .tlb_lookups = 4, .tlb_misses = 1, .faults = 7};
  char text[64];
  assert_int_equal(metric_find("nonsense"), METRIC_COUNT);
  for (int id = 0; id < METRIC_COUNT; id++) {
    assert_int_equal(metric_find(metric_names[id]), id);
    assert_true(metric_kind_of((metric_id)id) <= METRIC_RATIO);
  }
  assert_true(metric_value(metric_find("time"), &c, NAN) == 1000);
  assert_true(metric_value(metric_find("time_ps"), &c, NAN) == 1000);
  assert_true(metric_value(metric_find("faults"), &c, NAN) == 7);
  assert_true(metric_value(metric_find("tlb_miss_rate"), &c, NAN) == 0.25);
  assert_true(metric_value(metric_find("ratio"), &c, 1.5) == 1.5);
  assert_true(isnan(metric_value(metric_find("l1_hit_rate"), &c, NAN))); /* no access: no rate */
  assert_string_equal(metric_unit(metric_find("time")), "ps");
  assert_string_equal(metric_unit(metric_find("h2d_bytes")), "B");
  assert_int_equal(metric_better_of(metric_find("l2_hit_rate")), METRIC_MORE);
  assert_int_equal(metric_better_of(metric_find("launches")), METRIC_NEITHER);
  assert_string_equal(metric_format(METRIC_TIME, 1.5e6, text, sizeof text), "1.50 us");
  assert_string_equal(metric_format(METRIC_BYTES, 1536, text, sizeof text), "1.50 KiB");
  assert_string_equal(metric_format(METRIC_SHARE, 0.125, text, sizeof text), "12.5 %");
  assert_string_equal(metric_format(METRIC_PLAIN, -3, text, sizeof text), "-3");
  assert_string_equal(metric_format(METRIC_PLAIN, NAN, text, sizeof text), "-");
}

/* docs/json.md lists all that are no counters. */
static void test_documented(void **state) {
  static const char *const derived[] = {
#define DERIVED(name, kind, better, level, value, help) "`" #name "`",
#include "compare/metrics.def"
  };
  char *text;
  size_t size;
  assert_int_equal(ff_file_read(FF_SOURCE_DIR "/docs/json.md", 0, &text, &size, NULL), FF_OK);
  const char *section = strstr(text, "\n## Metrics\n");
  assert_non_null(section);
  *strstr(section + 5, "\n## ") = '\0';
  for (size_t i = 0; i < sizeof derived / sizeof *derived; i++) assert_non_null(strstr(section, derived[i]));
  free(text);
}

static void test_arguments(void **state) {
  static const char *const refused[] = {"", "%", "-1", "5 %", "x", "nan", "inf", "1e300", "5%%", NULL};
  ff_error error;
  for (int i = 0; refused[i]; i++) assert_int_equal(compare_threshold(refused[i], &options, NULL), FF_INVALID);
  choose("faults", "5%");
  assert_true(options.threshold == 0.05);
  assert_true(options.metrics[METRIC_faults] && !options.metrics[METRIC_time]);
  assert_int_equal(compare_choose("time,fault", &options, &error), FF_NOT_FOUND);
  assert_non_null(strstr(error.message, "did you mean 'faults'"));
  assert_int_equal(compare_choose("ratio", &options, &error), FF_NOT_FOUND);
  assert_int_equal(compare_choose("", &options, &error), FF_INVALID);
  choose(NULL, "0");
  assert_true(options.metrics[METRIC_time] && options.metrics[METRIC_faults] && !options.metrics[METRIC_time_ps]);
}

/* More than the threshold counts, the threshold itself does not. */
static void test_threshold(void **state) {
  static const struct {
    uint64_t after;
    size_t worse, better;
  } cases[] = {{105, 0, 0}, {106, 1, 0}, {95, 0, 0}, {94, 0, 1}, {0, 0, 1}};
  choose("faults", "5%");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    report_run before = start("p"), after = start("p");
    comparison c;
    add_result(&before, "uvm", 100, 100);
    add_result(&after, "uvm", 100, cases[i].after);
    compare_runs(&before, &after, &options, &c);
    assert_int_equal(c.compared, 1);
    assert_int_equal(c.worse, cases[i].worse);
    assert_int_equal(c.better, cases[i].better);
    assert_int_equal(c.changes.count, cases[i].worse + cases[i].better);
    comparison_free(&c);
    report_free(&before);
    report_free(&after);
  }
}

static void test_matching(void **state) {
  report_run before = start("p"), after = start("p");
  comparison c;
  choose("time", "0");
  add_result(&before, "copy", 1000, 0);
  add_kernel(&before, "twice", 100);
  add_kernel(&before, "gone", 10);
  add_kernel(&before, "twice", 200);
  add_result(&before, "uvm", 1000, 0);
  add_result(&before, "fails", 5, 0);
  add_result(&after, "fails", 0, 0);
  strcpy(after.results[0].error, "no memory");
  add_result(&after, "copy", 1000, 0);
  add_kernel(&after, "twice", 100);
  add_kernel(&after, "twice", 500);
  add_kernel(&after, "new", 40);
  compare_runs(&before, &after, &options, &c);
  assert_int_equal(c.changes.count, 5);
  const compare_change *found = c.changes.items;
  assert_string_equal(found[0].memory, "uvm");
  assert_int_equal(found[0].presence, COMPARE_GONE);
  assert_int_equal(found[1].presence, COMPARE_FAILS);
  assert_int_equal(found[1].worse, 1);
  assert_string_equal(found[2].name, "twice"); /* the second with the second; most effect first */
  assert_true(found[2].before == 200 && found[2].after == 500 && fabs(found[2].effect - 0.3) < 1e-9);
  assert_string_equal(found[3].name, "new");
  assert_int_equal(found[3].presence, COMPARE_NEW);
  assert_string_equal(found[4].name, "gone");
  comparison_free(&c);
  report_free(&before);
  report_free(&after);
}

static void add_tier(report_run *run, const char *name, uint64_t read, uint64_t written) {
  sim_tiers *tiers = &run->results[run->result_count - 1].tiers;
  sim_tier *t = &tiers->of[tiers->count++];
  strcpy(t->name, name);
  t->read_bytes = read;
  t->written_bytes = written;
}

/* Tiers are compared by their names, on a level of their own; a run's own numbers have nothing of them. */
static void test_tiers(void **state) {
  report_run before = start("p"), after = start("p");
  comparison c;
  choose(NULL, "0");
  add_result(&before, "uvm", 1000, 5);
  add_tier(&before, "host", 10, 10);
  add_tier(&before, "nvme", 100, 50);
  add_result(&after, "uvm", 1000, 5);
  add_tier(&after, "host", 10, 10);
  add_tier(&after, "cxl", 1, 1);
  add_tier(&after, "nvme", 400, 40);
  compare_runs(&before, &after, &options, &c);
  assert_int_equal(c.changes.count, 3);
  const compare_change *found = c.changes.items;
  for (int i = 0; i < 3; i++) assert_int_equal(found[i].level, COMPARE_TIER);
  assert_string_equal(found[0].name, "nvme");
  assert_int_equal(found[0].metric, METRIC_tier_read_bytes);
  assert_true(found[0].before == 100 && found[0].after == 400 && found[0].effect == 0.75 && found[0].worse == 1);
  assert_int_equal(found[1].metric, METRIC_tier_written_bytes);
  assert_true(found[1].effect == 0.2 && found[1].worse == -1);
  assert_string_equal(found[2].name, "cxl");
  assert_int_equal(found[2].presence, COMPARE_NEW);
  comparison_free(&c);
  choose("faults", "0");
  compare_runs(&before, &after, &options, &c);
  assert_int_equal(c.compared, 1); /* the run's */
  comparison_free(&c);
  sim_tiers *tiers = &after.results[0].tiers;
  assert_true(metric_of_all_tiers(METRIC_tier_read_bytes, tiers) == 401);
  tiers->count = 0;
  assert_true(isnan(metric_of_all_tiers(METRIC_tier_read_bytes, tiers)));
  report_free(&before);
  report_free(&after);
}

static void test_output(void **state) {
  report_run before = start("p 1"), after = start("p\033[2J 2");
  comparison c;
  ff_text table = {0}, json = {0};
  compare_names names = {"a", "b", {&before, &after}};
  choose("time,faults", "10%");
  add_result(&before, "uvm", 1000, 0);
  add_result(&after, "uvm", 2000, 3);
  for (int i = 0; i < 30; i++) add_kernel(&before, "k", 100);
  for (int i = 0; i < 30; i++) add_kernel(&after, "k", 200);
  compare_runs(&before, &after, &options, &c);
  compare_table_write(&c, &names, &options, false, &table);
  assert_non_null(strstr(table.chars, "32 changes of more than 10 % in 62 numbers: 32 worse, 0 better\n"));
  assert_non_null(strstr(table.chars, "note: the programs differ: p 1 before, p?[2J 2 after\n"));
  assert_non_null(strstr(table.chars, "from 0"));
  assert_non_null(strstr(table.chars, "+100.0 %"));
  assert_non_null(strstr(table.chars, "(10 more with less effect"));
  table.length = 0;
  compare_table_write(&c, &names, &options, true, &table);
  assert_null(strstr(table.chars, "more with less effect"));
  compare_json_write(&c, &names, &options, &json);
  json_t *root = json_loadb(json.chars, json.length, 0, NULL);
  assert_int_equal(json_array_size(json_object_get(root, "changes")), 32);
  assert_true(json_is_null(json_object_get(json_array_get(json_object_get(root, "changes"), 0), "change")));
  json_decref(root);
  free(table.chars);
  free(json.chars);
  comparison_free(&c);
  report_free(&before);
  report_free(&after);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_metrics),   cmocka_unit_test(test_documented),
                                     cmocka_unit_test(test_arguments), cmocka_unit_test(test_threshold),
                                     cmocka_unit_test(test_matching),  cmocka_unit_test(test_tiers),
                                     cmocka_unit_test(test_output)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
