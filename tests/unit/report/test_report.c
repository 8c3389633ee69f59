/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: the same run as JSON, CSV and table against golden texts, what is read back, and broken files.
 *
 * The golden texts lie in tests/unit/report/golden/; after an intended change, FARFAULT_GOLDEN=write rewrites them and
 * the difference is reviewed like code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/report.h"

/* Every counter gets a number of its own, so that a swapped or forgotten one shows. */
static void number_counters(sim_counters *c, uint64_t start) {
#define X(name, unit, help) c->name = start++;
#include "machine/observe/counters.def"
#undef X
}

static void fill_result(sim_result *result, const char *memory, uint64_t time_ps) {
  strcpy(result->memory, memory);
  strcpy(result->machine, "gtx480");
  result->complete = true;
  number_counters(&result->counters, 1000);
  result->counters.time_ps = time_ps;
  result->counters.h2d_busy_ps = time_ps / 4;
  result->counters.d2h_busy_ps = time_ps / 8;
  result->counters.tlb_lookups = 4000;
  result->counters.tlb_misses = 100;
}

static void add_details(sim_result *result) {
  result->kernels = ff_alloc(2 * sizeof *result->kernels);
  result->kernel_count = 2;
  strcpy(result->kernels[0].name, "saxpy(int, float, float const*, float*)");
  number_counters(&result->kernels[0].counters, 50);
  strcpy(result->kernels[1].name, "void a::very::long_name<with<nested, arguments>, and_more>(int*, int*)");
  result->kernels[1].counters.launches = 3;
  result->allocations = ff_alloc(2 * sizeof *result->allocations);
  result->allocation_count = 2;
  result->allocations[0] =
      (sim_allocation_result){.name = "cudaMalloc #1", .id = 1, .address = UINT64_C(0x200000000000), .bytes = 4000000};
  result->allocations[0].counters.accesses = 31250;
  result->allocations[1] = (sim_allocation_result){
      .name = "table \"x\"", .id = 2, .address = UINT64_C(0x200000400000), .bytes = 12, .managed = true};
}

static report_run sample(void) {
  report_run run = {.version = "0.1.0", .command = ff_strdup("./saxpy 1000000 'two words'"), .complete = true};
  report_note(&run, "values depend on %clock");
  report_note(&run, "values depend on %clock");
  run.results = ff_alloc(3 * sizeof *run.results);
  run.result_count = 3;
  fill_result(&run.results[0], "demand", 3000000007);
  fill_result(&run.results[1], "copy", 2000000000);
  run.results[1].peaks = (machine_peaks){42, 2688, 537.6, 384, 16};
  add_details(&run.results[1]);
  strcpy(run.results[2].memory, "ideal");
  strcpy(run.results[2].machine, "gtx480");
  strcpy(run.results[2].error, "the program needs 9.00 GiB, the GPU has 8.00 GiB, \"and\" no eviction");
  uint64_t value = 1;
#define X(name, type, unit, help) run.host.name = (report_type_##type)(value *= 3);
#include "report/host.def"
#undef X
  run.host.wall_s = 1.25;
  return run;
}

/* Of four stacks, with a number of its own everywhere. */
static void fill_stacks(sim_stacks *s, sim_offload offload, const char *map, const char *found, uint64_t start) {
  *s = (sim_stacks){.count = 4,
                    .offload = offload,
                    .link_joule = 1.5e-3 * (double)start,
                    .idle_joule = 2.25e-6,
                    .activation_joule = 7e-10,
                    .read_joule = 1.0 / 3,
                    .sm_joule = 0.125};
  strcpy(s->map, map);
  strcpy(s->found, found);
#define X(name, unit, help) s->name = start++;
#include "machine/stacks/stacks.def"
#undef X
  s->instances = 40 * start;
  for (uint32_t i = 0; i < s->count; i++) {
    s->tx[i] = start++ * 1000;
    s->rx[i] = start++ * 3000;
    s->internal[i] = start++ * 7000;
    for (uint32_t k = 0; k < s->count; k++) s->cross[i][k] = i == k ? 0 : start++ * 100;
  }
}

static report_run stacks_sample(void) {
  report_run run = sample();
  strcpy(run.results[0].memory, "copy+offload=none+map=baseline");
  strcpy(run.results[1].memory, "copy+offload=controlled+map=learned");
  fill_stacks(&run.results[0].stacks, SIM_OFFLOAD_NONE, "baseline", "", 1);
  fill_stacks(&run.results[1].stacks, SIM_OFFLOAD_CONTROLLED, "learned", "12:13", 100);
  run.results[0].counters.kernel_ps = 1500000000;
  run.results[1].counters.kernel_ps = 1000000000;
  return run;
}

/* The host's memory and a drive, with a number of its own everywhere. */
static void fill_tiers(sim_result *result) {
  uint64_t value = 4096;
  result->tiers.count = 2;
  for (uint32_t i = 0; i < 2; i++) {
    sim_tier *t = &result->tiers.of[i];
    strcpy(t->name, i ? "nvme" : "host");
    t->capacity = value *= 3;
#define X(name, unit, help) t->name = value *= 3;
#include "machine/observe/tiers.def"
#undef X
  }
}

static void compare_golden(const char *name, ff_text *text) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/unit/report/golden/%s", FF_SOURCE_DIR, name);
  if (getenv("FARFAULT_GOLDEN")) assert_int_equal(ff_file_write(path, text->chars, text->length, NULL), FF_OK);
  char *expected;
  size_t size;
  ff_error error;
  if (ff_file_read(path, 0, &expected, &size, &error)) fail_msg("%s", error.message);
  assert_string_equal(text->chars, expected);
  free(expected);
  free(text->chars);
}

static void json_is_as_documented(void **state) {
  report_run run = sample();
  ff_text text = {0};
  report_json_write(&run, &text);
  compare_golden("sample.json", &text);
  report_free(&run);
}

static void csv_is_as_documented(void **state) {
  report_run run = sample();
  ff_text text = {0};
  report_csv_write(&run, true, &(report_columns){0}, &text);
  report_csv_write(&run, false, &(report_columns){0}, &text);
  compare_golden("sample.csv", &text);
  report_free(&run);
}

static void the_table_is_as_documented(void **state) {
  report_run run = sample();
  ff_text text = {0};
  report_table_write(&run, &(report_style){.verbose = true}, &text);
  compare_golden("sample.txt", &text);
  report_free(&run);
}

static void stacks_are_as_documented(void **state) {
  report_run run = stacks_sample();
  ff_text json = {0}, csv = {0}, table = {0};
  report_json_write(&run, &json);
  compare_golden("stacks.json", &json);
  assert_true(report_has_stacks(&run));
  report_csv_write(&run, true, &(report_columns){.stacks = true}, &csv);
  compare_golden("stacks.csv", &csv);
  report_table_write(&run, &(report_style){.verbose = true}, &table);
  compare_golden("stacks.txt", &table);
  assert_true(report_stacks_speed(&run, &run.results[0]) == 1);
  /* Without the time that the SMs stood still. */
  uint64_t work[2];
  for (int i = 0; i < 2; i++) work[i] = run.results[i].counters.kernel_ps - run.results[i].stacks.stopped_ps;
  assert_true(run.results[1].stacks.stopped_ps > 0);
  assert_true(report_stacks_speed(&run, &run.results[1]) == (double)work[0] / (double)work[1]);
  assert_true(report_stacks_speed(&run, &run.results[2]) == 0);
  report_free(&run);
}

/* A row without tiers leaves their columns empty. */
static void tiers_are_as_documented(void **state) {
  report_run run = sample(), back;
  ff_text json = {0}, csv = {0}, table = {0};
  report_columns columns = {0};
  fill_tiers(&run.results[0]);
  report_columns_add(&run, &columns);
  report_csv_write(&run, true, &columns, &csv);
  compare_golden("tiers.csv", &csv);
  report_table_write(&run, &(report_style){0}, &table);
  assert_non_null(strstr(table.chars, "nvme"));
  report_json_write(&run, &json);
  assert_int_equal(report_json_read("tiers", json.chars, json.length, &back, NULL), FF_OK);
  assert_memory_equal(&back.results[0].tiers, &run.results[0].tiers, sizeof run.results[0].tiers);
  assert_int_equal(back.results[1].tiers.count, 0);
  free(json.chars);
  free(table.chars);
  report_free(&run);
  report_free(&back);
}

/* A range has what is in the ranges inside of it, too. */
static void ranges_are_summed_as_a_tree(void **state) {
  report_run run = sample();
  sim_result *result = &run.results[1];
  ff_text table = {0};
  strcpy(result->kernels[0].range, "step/layer1");
  strcpy(result->kernels[1].range, "step/layer10/dense");
  result->kernels[0].counters.launches = 2, result->kernels[1].counters.launches = 5;
  result->kernels[0].counters.faults = 40, result->kernels[1].counters.faults = 2;
  report_table_write(&run, &(report_style){.verbose = true}, &table);
  const char *row = strstr(table.chars, "  range      launches ");
  static const char *const names[] = {"  step ", "    layer1 ", "    layer10 ", "      dense "};
  static const unsigned launches[] = {7, 2, 5, 5}, faults[] = {42, 40, 2, 2};
  assert_non_null(row);
  for (int i = 0; i < 4; i++) {
    unsigned found[2] = {0};
    row = strchr(row, '\n') + 1;
    assert_int_equal(strncmp(row, names[i], strlen(names[i])), 0);
    assert_int_equal(sscanf(row + strlen(names[i]), "%u %*s %*s %*s %*s %u", &found[0], &found[1]), 2);
    assert_int_equal(found[0], launches[i]);
    assert_int_equal(found[1], faults[i]);
  }
  assert_int_equal(row[strcspn(row, "\n") + 1], '\n');
  free(table.chars);
  report_free(&run);
}

/* A row's fields, quotes respected. */
static unsigned fields_of(const char *row) {
  unsigned count = 1;
  bool quoted = false;
  for (; *row && (quoted || *row != '\n'); row++) {
    if (*row == '"') quoted = !quoted;
    count += *row == ',' && !quoted;
  }
  return count;
}

static void every_csv_row_has_the_headers_fields(void **state) {
  for (int stacks = 0; stacks <= 1; stacks++) {
    report_run run = stacks ? stacks_sample() : sample();
    ff_text text = {0};
    report_columns columns = {0};
    if (!stacks) fill_tiers(&run.results[1]);
    report_columns_add(&run, &columns);
    assert_int_equal(columns.tiers, stacks ? 0 : 2);
    report_csv_write(&run, true, &columns, &text);
    unsigned header = fields_of(text.chars), rows = 0;
    assert_true(header > (stacks ? 70 : 40));
    for (char *row = text.chars; row && *row; row = strchr(row, '\n') + 1, rows++)
      assert_int_equal(fields_of(row), header);
    assert_int_equal(rows, 4);
    free(text.chars);
    report_free(&run);
  }
}

static void ranges_are_shown_where_there_are_some(void **state) {
  report_run run = sample(), back;
  ff_text text = {0}, table = {0}, without = {0};
  ff_error error;
  strcpy(run.results[1].kernels[1].range, "step/layer2");
  report_json_write(&run, &text);
  if (report_json_read("run", text.chars, text.length, &back, &error)) fail_msg("%s", error.message);
  assert_string_equal(back.results[1].kernels[0].range, "");
  assert_string_equal(back.results[1].kernels[1].range, "step/layer2");
  report_table_write(&back, &(report_style){.verbose = true}, &table);
  assert_non_null(strstr(table.chars, "  kernel                                    range        launches"));
  assert_non_null(strstr(table.chars, "  saxpy(int, float, float const*, float*)   -      "));
  assert_non_null(strstr(table.chars, "  step/layer2         3 "));
  back.results[1].kernels[1].range[0] = '\0';
  report_table_write(&back, &(report_style){.verbose = true}, &without);
  assert_null(strstr(without.chars, "range"));
  free(text.chars);
  free(table.chars);
  free(without.chars);
  report_free(&run);
  report_free(&back);
}

/* More than an eighth of what moved, under any manager of the table, and under the manager of its own tables. */
static void remote_bytes_are_shown_where_they_count(void **state) {
  for (uint64_t bytes = 1000; bytes <= 1001; bytes++) {
    report_run run = sample();
    ff_text text = {0};
    for (uint32_t i = 0; i < 2; i++) {
      sim_counters *c = &run.results[i].counters;
      c->h2d_bytes = 6000, c->d2h_bytes = 2000, c->remote_bytes = i ? bytes : 0;
    }
    report_table_write(&run, &(report_style){.verbose = true}, &text);
    uint32_t columns = 0;
    for (const char *at = text.chars; (at = strstr(at, "  remote")); at++) columns++;
    assert_int_equal(columns, bytes > 1000 ? 3 : 0);
    assert_int_equal(strstr(text.chars, "  1001 B  ") != NULL, bytes > 1000);
    free(text.chars);
    report_free(&run);
  }
}

/* With -v, under any manager of the table. */
static void cpu_faults_are_shown_where_there_are_any(void **state) {
  for (int way = 0; way < 3; way++) {
    uint64_t faults = way ? 7001 : 0;
    report_run run = sample();
    ff_text text = {0};
    for (uint32_t i = 0; i < run.result_count; i++) run.results[i].counters.host_faults = i == 1 ? faults : 0;
    report_table_write(&run, &(report_style){.verbose = way < 2}, &text);
    assert_int_equal(strstr(text.chars, "far-faults  CPU faults  ") != NULL, way == 1);
    assert_int_equal(strstr(text.chars, "        7001  ") != NULL, way == 1);
    free(text.chars);
    report_free(&run);
  }
}

static void many_unused_allocations_are_one_row(void **state) {
  for (uint32_t unused = 8; unused <= 9; unused++) {
    report_run run = sample();
    ff_text text = {0};
    sim_result *result = &run.results[1];
    free(result->allocations);
    result->allocations = ff_alloc((unused + 1) * sizeof *result->allocations);
    result->allocation_count = unused + 1;
    for (uint32_t i = 0; i <= unused; i++) {
      sim_allocation_result *a = &result->allocations[i];
      snprintf(a->name, sizeof a->name, "variable%u", i);
      a->bytes = 1024;
      if (i == 4) a->counters.h2d_bytes = 1024;
    }
    report_table_write(&run, &(report_style){.verbose = true}, &text);
    assert_non_null(strstr(text.chars, "  variable4  "));
    assert_int_equal(strstr(text.chars, "  variable5  ") != NULL, unused == 8);
    assert_int_equal(strstr(text.chars, "  (9 that were not used)  -       9.00 KiB  ") != NULL, unused == 9);
    free(text.chars);
    report_free(&run);
  }
}

static void what_is_written_is_read_back(void **state) {
  report_run run = sample(), back;
  ff_text text = {0}, again = {0};
  report_json_write(&run, &text);
  ff_error error;
  if (report_json_read("run", text.chars, text.length, &back, &error)) fail_msg("%s", error.message);
  assert_string_equal(back.command, run.command);
  assert_int_equal(back.note_count, 1);
  assert_int_equal(back.result_count, 3);
  assert_memory_equal(&back.results[1].counters, &run.results[1].counters, sizeof(sim_counters));
  assert_memory_equal(&back.results[1].kernels[0].counters, &run.results[1].kernels[0].counters, sizeof(sim_counters));
  assert_int_equal(back.results[1].allocations[1].address, UINT64_C(0x200000400000));
  assert_true(back.results[1].allocations[1].managed);
  assert_memory_equal(&back.results[1].peaks, &run.results[1].peaks, sizeof(machine_peaks));
  assert_string_equal(back.results[2].error, run.results[2].error);
  assert_memory_equal(&back.host, &run.host, sizeof run.host);
  report_json_write(&back, &again);
  assert_string_equal(again.chars, text.chars);
  free(text.chars);
  free(again.chars);
  report_free(&run);
  report_free(&back);
}

static void stacks_are_read_back(void **state) {
  report_run run = stacks_sample(), back;
  ff_text text = {0}, again = {0};
  report_json_write(&run, &text);
  ff_error error;
  if (report_json_read("run", text.chars, text.length, &back, &error)) fail_msg("%s", error.message);
  for (int i = 0; i < 2; i++) {
    sim_stacks *a = &run.results[i].stacks, *b = &back.results[i].stacks;
    a->read_joule = b->read_joule; /* twelve digits of a third */
    a->link_joule = b->link_joule;
    assert_memory_equal(a, b, sizeof *a);
  }
  assert_int_equal(back.results[2].stacks.count, 0);
  report_json_write(&back, &again);
  assert_string_equal(again.chars, text.chars);
  free(text.chars);
  free(again.chars);
  report_free(&run);
  report_free(&back);
}

static void names_that_are_no_utf8_are_written_all_the_same(void **state) {
  report_run run = {.command = ff_strdup("./a \xff\xfe"), .complete = true}, back;
  ff_text text = {0};
  report_json_write(&run, &text);
  assert_int_equal(report_json_read("run", text.chars, text.length, &back, NULL), FF_OK);
  assert_string_equal(back.command, "./a ??");
  free(text.chars);
  report_free(&run);
  report_free(&back);
}

static void the_ratio_is_to_copy_or_to_the_first(void **state) {
  report_run run = sample();
  assert_ptr_equal(report_baseline(&run, 0), &run.results[1]);
  assert_true(report_ratio(&run, &run.results[0]) == 3000000007.0 / 2000000000.0);
  assert_true(report_ratio(&run, &run.results[1]) == 1);
  assert_true(report_ratio(&run, &run.results[2]) == 0);
  run.results[0].complete = false; /* a snapshot: of another moment of the program */
  assert_true(report_ratio(&run, &run.results[0]) == 0);
  assert_true(report_ratio(&run, &run.results[1]) == 1);
  run.results[0].complete = true;
  strcpy(run.results[1].error, "no");
  assert_ptr_equal(report_baseline(&run, 0), &run.results[0]);
  strcpy(run.results[0].error, "no");
  assert_null(report_baseline(&run, 0));
  assert_true(report_ratio(&run, &run.results[0]) == 0);
  report_free(&run);
}

static void times_and_counts_have_three_digits(void **state) {
  static const struct {
    uint64_t value;
    const char *time, *count;
  } rows[] = {{0, "0 s", "0"},
              {999, "999 ps", "999"},
              {1000, "1.00 ns", "1000"},
              {12345, "12.3 ns", "12345"},
              {99999, "100 ns", "99999"},
              {100000, "100 ns", "100 k"},
              {999499, "999 ns", "999 k"},
              {999500, "1.00 us", "1.00 M"},
              {9994999, "9.99 us", "9.99 M"},
              {1234567890, "1.23 ms", "1.23 G"},
              {UINT64_C(7200000000000000), "7200 s", "7.20 P"}};
  char text[32];
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_string_equal(report_format_time(rows[i].value, text, sizeof text), rows[i].time);
    assert_string_equal(report_format_count(rows[i].value, text, sizeof text), rows[i].count);
  }
}

static void an_incomplete_run_says_so(void **state) {
  report_run run = sample();
  run.complete = false;
  ff_text text = {0};
  report_table_write(&run, &(report_style){0}, &text);
  assert_non_null(strstr(text.chars, "(incomplete)"));
  assert_non_null(strstr(text.chars, "did not end by itself; the numbers are of what it did until then"));
  text.length = 0;
  run.results[0].complete = run.results[1].complete = false;
  report_table_write(&run, &(report_style){0}, &text);
  assert_non_null(strstr(text.chars, "so there are no ratios"));
  assert_null(strstr(text.chars, "1.50x"));
  free(text.chars);
  report_free(&run);
}

static void a_run_without_managers_says_so(void **state) {
  report_run run = {.complete = true};
  ff_text text = {0};
  report_table_write(&run, &(report_style){0}, &text);
  assert_non_null(strstr(text.chars, "executed, not timed\nhost: 0.00 s"));
  text.length = 0;
  run.complete = false;
  report_table_write(&run, &(report_style){0}, &text);
  assert_non_null(strstr(text.chars, "did not end by itself\n"));
  free(text.chars);
}

static void a_manager_is_named_once_with_its_error(void **state) {
  report_run run = sample();
  strcpy(run.results[2].error, "ideal: no room");
  ff_text text = {0};
  report_table_write(&run, &(report_style){0}, &text);
  assert_non_null(strstr(text.chars, "\nideal: could not run it: no room\n"));
  free(text.chars);
  report_free(&run);
}

static void a_run_without_kernels_says_so(void **state) {
  report_run run = sample();
  ff_text text = {0};
  run.results[0].counters.launches = run.results[1].counters.launches = 0;
  run.results[2].error[0] = '\0';
  report_table_write(&run, &(report_style){0}, &text);
  assert_non_null(strstr(text.chars, "note: the program launched no kernel\n"));
  text.length = 0;
  run.results[1].counters.launches = 1;
  report_table_write(&run, &(report_style){0}, &text);
  assert_null(strstr(text.chars, "launched no kernel"));
  text.length = 0;
  run.results[1].counters.launches = 0;
  report_note(&run, "nothing is counted: only what happens in profile ranges is, and the program began none");
  report_table_write(&run, &(report_style){0}, &text);
  assert_null(strstr(text.chars, "launched no kernel"));
  free(text.chars);
  report_free(&run);
}

static void small_ratios_keep_their_digits(void **state) {
  static const struct {
    uint64_t time;
    const char *shown;
  } rows[] = {{2000, " 0.000x "},     {2469135, " 0.001x "},      {172000000, " 0.086x "}, {198999999, " 0.099x "},
              {199000000, " 0.10x "}, {199890000000, " 99.94x "}, {199900000000, " 100x "}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    report_run run = sample();
    ff_text text = {0};
    run.results[0].counters.time_ps = rows[i].time;
    report_table_write(&run, &(report_style){0}, &text);
    if (!strstr(text.chars, rows[i].shown)) fail_msg("expected '%s' in '%s'", rows[i].shown, text.chars);
    free(text.chars);
    report_free(&run);
  }
}

/* A saved run comes from anywhere; a terminal obeys what looks harmless in a file. */
static void nothing_in_a_table_commands_the_terminal(void **state) {
  report_run run = sample();
  ff_text text = {0};
  free(run.command);
  run.command = ff_strdup("./a\033]0;b\007\nfarfault: c");
  report_note(&run, "one\033[2J\ntwo");
  strcpy(run.results[0].memory, "de\033mand");
  strcpy(run.results[0].machine, "m\033");
  strcpy(run.results[1].kernels[0].name, "k\033[1m");
  strcpy(run.results[1].allocations[0].name, "a\n");
  strcpy(run.results[2].memory, "i\rdeal");
  strcpy(run.results[2].error, "no\033\n");
  report_table_write(&run, &(report_style){.verbose = true}, &text);
  for (const char *c = text.chars; *c; c++)
    if ((unsigned char)*c < 32 && *c != '\n') fail_msg("a control character %d in the table", *c);
  assert_non_null(strstr(text.chars, "farfault: ./a?]0;b? farfault: c on m?\n"));
  assert_non_null(strstr(text.chars, "note: one?[2J two\n"));
  free(text.chars);
  report_free(&run);
}

/* Whatever the numbers, every row of a table has its cells under the header's. */
static void columns_line_up(void **state) {
  static const uint64_t values[] = {0, 1, 999, UINT64_C(5000000000000), UINT64_C(36000000000000000), UINT64_MAX};
  for (uint32_t count = 1; count <= 4; count++) {
    report_run run = {.complete = true, .results = ff_alloc(4 * sizeof(sim_result)), .result_count = count};
    for (uint32_t i = 0; i < count; i++) {
      fill_result(&run.results[i], i ? "other" : "copy", 1);
      uint64_t *counters = (uint64_t *)&run.results[i].counters;
      for (size_t k = 0; k < sizeof(sim_counters) / sizeof *counters; k++) counters[k] = values[(k + i) % 6];
    }
    ff_text text = {0};
    report_table_write(&run, &(report_style){0}, &text);
    char *line = strchr(text.chars, '\n') + 1;
    size_t width = strcspn(line, "\n");
    for (uint32_t i = 0; i <= count; i++, line += width + 1) assert_int_equal(strcspn(line, "\n"), width);
    free(text.chars);
    report_free(&run);
  }
}

static void the_widest_table_fits(void **state) {
  report_run run = sample();
  memset(&run.results[1].counters, 0x3f, sizeof(sim_counters));
  ff_text text = {0};
  report_table_write(&run, &(report_style){0}, &text);
  for (char *line = text.chars; line && *line; line = strchr(line, '\n') + 1)
    if (strncmp(line, "ideal:", 6) && strncmp(line, "farfault:", 9)) assert_true(strcspn(line, "\n") <= 140);
  free(text.chars);
  report_free(&run);
}

static void broken_files_are_refused(void **state) {
#define STACKS(x) RUN(",\"stacks\":{\"count\":1,\"offload\":\"none\",\"map\":\"baseline\"" x "}")
#define LISTS ",\"tx_bytes\":[1],\"rx_bytes\":[1],\"internal_bytes\":[1]"
#define RUN(x) "{\"schema\":1,\"host\":{},\"runs\":[{\"memory\":\"copy\",\"machine\":\"m\"" x "}]}"
  static const struct {
    const char *text, *expected;
  } rows[] = {
      {"", "r: is empty"},
      {"{", "cut off"},
      {"{\"schema\":1,}", "r:1:"},
      {"[]", "an object is expected"},
      {"{}", "it has no \"schema\""},
      {"{\"schema\":\"1\"}", "it has no \"schema\""},
      {"{\"schema\":2}", "has schema 2; this version reads schema 1"},
      {"{\"schema\":1}", "\"runs\" is not"},
      {"{\"schema\":1,\"runs\":{}}", "\"runs\" is not"},
      {"{\"schema\":1,\"runs\":[]}", "\"host\" is not an object"},
      {"{\"schema\":1,\"runs\":[3],\"host\":{}}", "\"runs\" is not"},
      {"{\"schema\":1,\"runs\":[{}],\"host\":{}}", "\"memory\" is not"},
      {"{\"schema\":1,\"schema\":1,\"runs\":[],\"host\":{}}", "duplicate"},
      {"{\"schema\":1,\"runs\":[],\"host\":{\"wall_s\":\"x\"}}", "\"wall_s\" is not a number"},
      {"{\"schema\":1,\"runs\":[],\"host\":{},\"notes\":[1]}", "\"notes\" is not"},
      {"{\"schema\":1,\"runs\":[],\"host\":{},\"command\":1}", "\"command\" is not"},
      {RUN(",\"stacks\":3"), "\"stacks\" is not"},
      {RUN(",\"stacks\":{}"), "\"offload\" is not"},
      {RUN(",\"stacks\":{\"offload\":\"none\",\"map\":\"x\"}"), "\"count\" is not"},
      {RUN(",\"stacks\":{\"count\":17,\"offload\":\"none\",\"map\":\"x\"}"), "\"count\" is not"},
      {RUN(",\"stacks\":{\"count\":4,\"offload\":\"some\",\"map\":\"x\"}"), "\"offload\" is not"},
      {STACKS(""), "\"tx_bytes\" is not"},
      {STACKS(",\"instances\":-1"), "\"instances\" is not"},
      {STACKS(",\"link_joule\":-1"), "\"link_joule\" is not"},
      {STACKS(LISTS), "\"cross_bytes\" is not"},
      {STACKS(LISTS ",\"cross_bytes\":[[1,2]]"), "\"cross_bytes\" is not"},
      {STACKS(LISTS ",\"cross_bytes\":[[0.5]]"), "\"cross_bytes\" is not"},
      {RUN(",\"peaks\":3"), "\"peaks\" is not"},
      {RUN(",\"peaks\":{}"), "\"warp_instructions\" is not a number above 0"},
      {RUN(",\"peaks\":{\"warp_instructions\":1,\"l1\":-1}"), "\"l1\" is not a number above 0"},
      {RUN(",\"faults\":-1"), "\"faults\" is not"},
      {RUN(",\"faults\":1.5"), "\"faults\" is not"},
      {RUN(",\"complete\":1"), "\"complete\" is not"},
      {RUN(",\"kernels\":5"), "\"kernels\" is not"},
      {RUN(",\"kernels\":[5]"), "\"name\" is not"},
      {RUN(",\"kernels\":[{\"name\":\"k\",\"faults\":\"x\"}]"), "\"faults\" is not"},
      {RUN(",\"allocations\":[{\"name\":\"a\",\"id\":4294967296}]"), "\"id\" is not"},
      {RUN(",\"allocations\":[{\"name\":\"a\",\"managed\":3}]"), "\"managed\" is not"},
      {RUN(",\"allocations\":[{\"name\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"}]"),
       "\"name\" is not"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    report_run run;
    ff_error error = {0};
    assert_int_not_equal(report_json_read("r", rows[i].text, strlen(rows[i].text), &run, &error), FF_OK);
    if (!strstr(error.message, rows[i].expected))
      fail_msg("%s: expected '%s' in '%s'", rows[i].text, rows[i].expected, error.message);
  }
}

static void what_later_versions_may_add_is_ignored(void **state) {
  static const char text[] = RUN(",\"a_new_counter\":{\"x\":1}");
  report_run run;
  assert_int_equal(report_json_read("r", text, sizeof text - 1, &run, NULL), FF_OK);
  assert_int_equal(run.result_count, 1);
  report_free(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(json_is_as_documented),
                                     cmocka_unit_test(csv_is_as_documented),
                                     cmocka_unit_test(the_table_is_as_documented),
                                     cmocka_unit_test(every_csv_row_has_the_headers_fields),
                                     cmocka_unit_test(what_is_written_is_read_back),
                                     cmocka_unit_test(stacks_are_as_documented),
                                     cmocka_unit_test(tiers_are_as_documented),
                                     cmocka_unit_test(stacks_are_read_back),
                                     cmocka_unit_test(names_that_are_no_utf8_are_written_all_the_same),
                                     cmocka_unit_test(the_ratio_is_to_copy_or_to_the_first),
                                     cmocka_unit_test(times_and_counts_have_three_digits),
                                     cmocka_unit_test(an_incomplete_run_says_so),
                                     cmocka_unit_test(a_run_without_managers_says_so),
                                     cmocka_unit_test(a_manager_is_named_once_with_its_error),
                                     cmocka_unit_test(the_widest_table_fits),
                                     cmocka_unit_test(a_run_without_kernels_says_so),
                                     cmocka_unit_test(ranges_are_shown_where_there_are_some),
                                     cmocka_unit_test(ranges_are_summed_as_a_tree),
                                     cmocka_unit_test(remote_bytes_are_shown_where_they_count),
                                     cmocka_unit_test(cpu_faults_are_shown_where_there_are_any),
                                     cmocka_unit_test(many_unused_allocations_are_one_row),
                                     cmocka_unit_test(small_ratios_keep_their_digits),
                                     cmocka_unit_test(nothing_in_a_table_commands_the_terminal),
                                     cmocka_unit_test(columns_line_up),
                                     cmocka_unit_test(broken_files_are_refused),
                                     cmocka_unit_test(what_later_versions_may_add_is_ignored)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
