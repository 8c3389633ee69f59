/* SPDX-License-Identifier: Apache-2.0 */
/* Histories in reports: written, read back, refused where they are broken; the timeline against its format's rules and
 * a golden text.
 *
 * The golden texts lie in tests/unit/report/golden/; FARFAULT_GOLDEN=write rewrites them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/report.h"
#include "report/timeline.h"

#define BASE UINT64_C(0x200000000000)
#define US UINT64_C(1000000)

/* A run of about 300 us: a copy in, two kernels in two streams, far-faults with a prefetch and an eviction. */
static sim_history *sample_history(bool batches) {
  sim_history *h = history_create();
  h->keeps_resident = true;
  history_note_copy(
      h,
      (history_copy){.begin = 10 * US, .end = 60 * US + 1, .bytes = 800000, .kind = HISTORY_COPY_H2D, .allocation = 1});
  history_note_copy(
      h,
      (history_copy){
          .begin = 270 * US, .end = 290 * US, .bytes = 4096, .kind = HISTORY_COPY_D2H, .stream = 7, .allocation = 2});
  history_note_transfer(
      h, (history_transfer){
             .begin = 10 * US, .end = 60 * US, .bytes = 800000, .pieces = 1, .cause = HISTORY_CAUSE_COPY, .in = true});
  history_note_transfer(h, (history_transfer){.begin = 120 * US,
                                              .end = 124 * US + 96000,
                                              .bytes = 65536,
                                              .pieces = 1,
                                              .cause = HISTORY_CAUSE_FAULT,
                                              .in = true});
  history_note_transfer(
      h, (history_transfer){
             .begin = 121 * US, .end = 125 * US, .bytes = 65536, .pieces = 1, .cause = HISTORY_CAUSE_WRITE_BACK});
  history_note_transfer(h, (history_transfer){.begin = 130 * US,
                                              .end = 135 * US + 500000,
                                              .bytes = 90000,
                                              .pieces = 2,
                                              .cause = HISTORY_CAUSE_PREFETCH,
                                              .in = true});
  history_note_kernel(h, (history_kernel){.launch = 0,
                                          .begin = 70 * US,
                                          .end = 200 * US + 123456,
                                          .blocks = 100,
                                          .called = 65 * US,
                                          .returned = 69 * US,
                                          .kernel = 0});
  history_note_kernel(
      h, (history_kernel){.launch = 1, .begin = 100 * US, .end = 260 * US, .blocks = 7, .kernel = 1, .stream = 7});
  history_range range = {.begin = 60 * US, .number = 1, .domain = 3, .thread = 2, .started = true};
  strcpy(range.name, "own:\"step\" \xc2\xb2");
  history_note_range(h, range);
  history_end_range(h, 1, 250 * US);
  if (batches) history_note_batch(h, (history_batch){.begin = 110 * US, .end = 136 * US, .faults = 3, .bytes = 155536});
  history_spread(h, HISTORY_h2d_bytes, 10 * US, 60 * US, 800000);
  history_spread(h, HISTORY_h2d_busy_ps, 10 * US, 60 * US, 50 * US);
  history_spread(h, HISTORY_h2d_bytes, 120 * US, 124 * US, 65536);
  history_spread(h, HISTORY_h2d_busy_ps, 120 * US, 124 * US, 4 * US);
  history_spread(h, HISTORY_d2h_busy_ps, 121 * US, 125 * US, 4 * US);
  history_spread(h, HISTORY_kernel_ps, 70 * US, 260 * US, 190 * US);
  history_spread(h, HISTORY_block_ps, 70 * US, 260 * US, 1900 * US);
  history_add(h, HISTORY_faults, 112 * US, 3);
  history_add(h, HISTORY_evicted_bytes, 121 * US, 65536);
  history_level(h, HISTORY_resident_bytes, 61 * US, 0);
  history_level(h, HISTORY_resident_bytes, 130 * US, 800000);
  history_map *m = history_map_of(h, 1, 1, BASE, 800000);
  history_cell_at(h, m, 75 * US, BASE)->accesses = 12;
  history_cell_at(h, m, 112 * US, BASE + 70000)->faults = 3;
  history_cell_at(h, m, 121 * US, BASE + 700000)->evicted_bytes = 65536;
  history_note_block(h, 1, 1, 4096, 1);
  history_block_at(h, 1, 8191)->accesses = 12;
  history_block_at(h, 1, 4095)->faults = 3;
  uint32_t bin = history_bin(h, 70 * US) >> HISTORY_MAP_SHIFT, end = history_bin(h, 150 * US) >> HISTORY_MAP_SHIFT;
  for (uint32_t b = bin; b < end; b++) m->resident[b * m->rows + 3] = 16384;
  sim_history *copy = history_copy_of(h, 300 * US, 865536);
  copy->transfers_left_out = 5;
  history_free(h);
  return copy;
}

static report_run sample(void) {
  report_run run = {.version = "0.1.0", .command = ff_strdup("./saxpy \"1000000\""), .complete = true};
  run.results = ff_alloc(3 * sizeof *run.results);
  run.result_count = 3;
  for (uint32_t i = 0; i < 3; i++) {
    sim_result *result = &run.results[i];
    strcpy(result->memory, i == 0 ? "copy" : i == 1 ? "uvm" : "\"history\": null");
    strcpy(result->machine, "gtx480");
    result->complete = true;
    result->counters.time_ps = 300 * US;
    result->kernels = ff_alloc(2 * sizeof *result->kernels);
    result->kernel_count = 2;
    strcpy(result->kernels[0].name, "saxpy(int, \"float\")");
    strcpy(result->kernels[1].name, "second");
    result->allocations = ff_alloc(sizeof *result->allocations);
    result->allocation_count = 1;
    result->allocations[0] =
        (sim_allocation_result){.name = "cudaMalloc #1", .id = 1, .address = BASE, .bytes = 800000};
    if (i) result->history = sample_history(i == 1);
  }
  return run;
}

static void compare_golden(const char *name, const ff_text *text) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/unit/report/golden/%s", FF_SOURCE_DIR, name);
  if (getenv("FARFAULT_GOLDEN")) assert_int_equal(ff_file_write(path, text->chars, text->length, NULL), FF_OK);
  char *expected;
  size_t size;
  ff_error error;
  if (ff_file_read(path, 0, &expected, &size, &error)) fail_msg("%s", error.message);
  assert_string_equal(text->chars, expected);
  free(expected);
}

/* ---- JSON ---- */

static void histories_are_written_as_documented(void **state) {
  report_run run = sample();
  ff_text text = {0};
  report_json_write_whole(&run, &text);
  compare_golden("history.json", &text);
  free(text.chars);
  report_free(&run);
}

static void without_them_the_text_has_none(void **state) {
  report_run run = sample(), bare = sample();
  ff_text text = {0}, other = {0}, whole = {0};
  for (int i = 0; i < 3; i++) {
    history_free(bare.results[i].history);
    bare.results[i].history = NULL;
  }
  report_json_write(&run, &text);
  report_json_write(&bare, &other);
  report_json_write_whole(&bare, &whole);
  assert_string_equal(text.chars, other.chars);
  const char *checksum = strstr(whole.chars, ",\n  \"checksum\": "); /* what else it has */
  assert_non_null(checksum);
  assert_memory_equal(text.chars, whole.chars, (size_t)(checksum - whole.chars));
  assert_string_equal(checksum + strlen(",\n  \"checksum\": \"0123456789abcdef\""),
                      text.chars + (checksum - whole.chars));
  assert_null(strstr(text.chars, "\n   \"history\""));
  free(text.chars);
  free(other.chars);
  free(whole.chars);
  report_free(&run);
  report_free(&bare);
}

static void what_is_written_is_read_back(void **state) {
  report_run run = sample(), back;
  ff_text text = {0}, again = {0};
  ff_error error;
  report_json_write_whole(&run, &text);
  if (report_json_read("run", text.chars, text.length, &back, &error)) fail_msg("%s", error.message);
  assert_null(back.results[0].history);
  const sim_history *h = back.results[1].history, *first = run.results[1].history;
  assert_int_equal(h->shift, first->shift);
  assert_int_equal(h->bins, first->bins);
  assert_memory_equal(h->series, first->series, sizeof h->series);
  assert_int_equal(h->kernels.count, 2);
  assert_memory_equal(h->kernels.items, first->kernels.items, 2 * sizeof *h->kernels.items);
  assert_int_equal(h->transfers_left_out, 5);
  assert_true(h->transfers.items[1].in && h->transfers.items[1].cause == HISTORY_CAUSE_FAULT &&
              h->transfers.items[1].bytes == 65536);
  assert_int_equal(h->batches.count, 1);
  const history_map *m = h->maps.items[0], *one = first->maps.items[0];
  assert_memory_equal(m->cells, one->cells, HISTORY_MAP_BINS * m->rows * sizeof *m->cells);
  assert_memory_equal(m->resident, one->resident, HISTORY_MAP_BINS * m->rows * sizeof *m->resident);
  report_json_write_whole(&back, &again);
  assert_string_equal(again.chars, text.chars);
  free(text.chars);
  free(again.chars);
  report_free(&run);
  report_free(&back);
}

/* A digit that has become another one is still JSON, and a history like any other. */
static void a_changed_byte_is_noticed(void **state) {
  report_run run = sample(), back;
  ff_text text = {0};
  ff_error error;
  ff_text_add(&text, "%s", "{}\n"); /* of another process, in front */
  size_t begin = text.length, changed = 0;
  report_json_write_whole(&run, &text);
  char *key = strstr(text.chars, "\"checksum\""), *digits = key + strlen("\"checksum\": \"");
  for (char *at = text.chars + begin; at < text.chars + text.length; at += at < digits - 60 ? 41 : 1) {
    if (at >= key && at < digits) continue; /* without its key there is none */
    *at ^= 1;
    if (!report_json_read("run", text.chars + begin, text.length - begin, &back, &error))
      fail_msg("byte %zu may be '%c'", (size_t)(at - text.chars), *at);
    changed += strstr(error.message, "run: is damaged, or was changed") != NULL;
    *at ^= 1;
  }
  assert_true(changed > 300);
  text.chars[text.length - 1] = ' '; /* as another program may end it */
  assert_int_equal(report_json_read("run", text.chars + begin, text.length - begin, &back, &error), FF_PARSE);
  memcpy(key, "\"comment_\"", strlen("\"comment_\"")); /* without the key it is taken as it is */
  if (report_json_read("run", text.chars + begin, text.length - begin, &back, &error)) fail_msg("%s", error.message);
  free(text.chars);
  report_free(&run);
  report_free(&back);
}

static void broken_histories_are_refused(void **state) {
  static const struct {
    const char *history, *message;
  } cases[] = {
      {"3", "\"history\" is not an object"},
      {"{}", "\"bin_ps\" is not an acceptable power of two"},
      {"{\"bin_ps\": 3, \"bins\": 1}", "\"bin_ps\""},
      {"{\"bin_ps\": 4096, \"bins\": 513}", "\"bins\""},
      {"{\"bin_ps\": 4096, \"bins\": -1}", "\"bins\""},
      {"{\"bin_ps\": 4096, \"bins\": 2, \"series\": {\"faults\": [1]}}",
       "\"faults\" is not a list as long as it has to be"},
      {"{\"bin_ps\": 4096, \"bins\": 1, \"series\": {\"faults\": [1.5]}}", "\"faults\""},
      {"{\"bin_ps\": 4096, \"bins\": 1, \"kernels\": 1}", "\"kernels\" is not an object"},
      {"{\"bin_ps\": 4096, \"bins\": 1, \"kernels\": {\"count\": 20001}}", "\"count\""},
      {"{\"bin_ps\": 4096, \"bins\": 1, \"kernels\": {\"count\": 1}}", "\"kernel\""},
      {"{\"bin_ps\": 4096, \"bins\": 1, \"kernels\": {\"count\": 1, \"kernel\": [1], \"launch\": [0], \"stream\": [0], \"begin_ps\": [1], \"end_ps\": [2], \"blocks\": [1]}}",
       "\"kernel\" is not of numbers of the run's kernels"},
      {"{\"bin_ps\": 4096, \"bins\": 1, \"kernels\": {\"count\": 1, \"kernel\": [0], \"launch\": [0], \"stream\": [4294967296], \"begin_ps\": [1], \"end_ps\": [2], \"blocks\": [1]}}",
       "\"stream\""},
      {"{\"bin_ps\": 4096, \"bins\": 1, \"batches\": {\"count\": 1, \"begin_ps\": [3], \"end_ps\": [2], \"faults\": [1], \"bytes\": [1]}}",
       "\"end_ps\" is not behind the begin"},
      {"{\"bin_ps\": 4096, \"bins\": 1, \"transfers\": {\"count\": 1, \"direction\": [\"up\"]}}",
       "\"direction\" is not of words that are known"},
      {"{\"bin_ps\": 4096, \"bins\": 1, \"blocks\": {\"count\": 2, \"allocation\": [1,1], \"offset\": [128,128], \"kernel\": [0,0], \"accesses\": [1,1], \"faults\": [0,0]}}",
       "\"offset\" is not rising within an allocation"},
      {"{\"bin_ps\": 4096, \"bins\": 1, \"blocks\": {\"count\": 1, \"allocation\": [1], \"offset\": [0], \"kernel\": [1], \"accesses\": [1], \"faults\": [0]}}",
       "\"kernel\" is not of numbers of the run's kernels"},
      {"{\"bin_ps\": 4096, \"bins\": 1, \"heat\": {}}", "\"maps\""},
      {"{\"bin_ps\": 4096, \"bins\": 1, \"heat\": {\"maps\": [{\"bytes\": 8192, \"row_bytes\": 4096, \"rows\": 3}]}}",
       "\"rows\" is not what bytes and row_bytes make"},
      {"{\"bin_ps\": 4096, \"bins\": 1, \"heat\": {\"maps\": [{\"bytes\": 8192, \"row_bytes\": 2048, \"rows\": 4}]}}",
       "\"row_bytes\""},
      {"{\"bin_ps\": 4096, \"bins\": 1, \"heat\": {\"maps\": [{\"bytes\": 8192, \"row_bytes\": 4096, \"rows\": 2, \"faults\": [0,0]}]}}",
       "\"faults\" is not a list of bin, row, number"},
      {"{\"bin_ps\": 4096, \"bins\": 1, \"heat\": {\"maps\": [{\"bytes\": 8192, \"row_bytes\": 4096, \"rows\": 2, \"faults\": [1,0,1]}]}}",
       "\"faults\""},
      {"{\"bin_ps\": 4096, \"bins\": 1, \"heat\": {\"maps\": [{\"bytes\": 8192, \"row_bytes\": 4096, \"rows\": 2, \"resident_bytes\": [0,2,1]}]}}",
       "\"resident_bytes\""},
      {"{\"bin_ps\": 4096, \"bins\": 0, \"heat\": {\"maps\": [{\"bytes\": 8192, \"row_bytes\": 4096, \"rows\": 2, \"faults\": [0,0,1]}]}}",
       "\"faults\""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[2048];
    report_run run;
    ff_error error = {0};
    snprintf(
        text, sizeof text,
        "{\"schema\": 1, \"runs\": [{\"memory\": \"m\", \"machine\": \"g\", \"kernels\": [{\"name\": \"k\"}], \"history\": %s}], \"host\": {}}",
        cases[i].history);
    if (report_json_read("broken.ffr", text, strlen(text), &run, &error) != FF_PARSE)
      fail_msg("accepted: %s", cases[i].history);
    if (!strstr(error.message, cases[i].message) || !strstr(error.message, "broken.ffr"))
      fail_msg("%s: '%s'", cases[i].history, error.message);
  }
}

/* ---- the timeline ---- */

typedef struct track {
  json_int_t process, thread;
  double end;
} track;

static double number_of(const json_t *event, const char *key) {
  const json_t *value = json_object_get(event, key);
  if (!json_is_number(value)) fail_msg("an event's %s is no number: %s", key, json_dumps(event, 0));
  return json_number_value(value);
}

/* Every event has ph, ts, pid, tid and a name; in order of time; spans of one track do not overlap; counters are
 * numbers. */
static void check_trace(const char *text) {
  static track tracks[256];
  size_t count = 0, spans = 0, counters = 0;
  json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *events = json_object_get(root, "traceEvents");
  double last = 0;
  assert_true(json_is_array(events));
  assert_string_equal(json_string_value(json_object_get(root, "displayTimeUnit")), "ns");
  for (size_t i = 0; i < json_array_size(events); i++) {
    const json_t *e = json_array_get(events, i);
    const char *phase = json_string_value(json_object_get(e, "ph"));
    double ts = number_of(e, "ts"), process = number_of(e, "pid"), thread = number_of(e, "tid");
    assert_true(json_is_string(json_object_get(e, "name")) && phase && strlen(phase) == 1 && strchr("XCMbe", *phase));
    assert_true(ts >= last);
    last = ts;
    if (*phase == 'C') {
      assert_true(number_of(json_object_get(e, "args"), "value") >= 0);
      counters++;
    }
    if (*phase != 'X') continue;
    size_t at = 0;
    while (at < count && ((double)tracks[at].process != process || (double)tracks[at].thread != thread)) at++;
    if (at == count) tracks[count++] = (track){(json_int_t)process, (json_int_t)thread, 0};
    double length = number_of(e, "dur");
    assert_true(length >= 0 && ts >= tracks[at].end - 1e-9);
    tracks[at].end = ts + length;
    spans++;
  }
  assert_true(spans && counters);
  json_decref(root);
}

static void the_timeline_is_as_documented(void **state) {
  report_run run = sample();
  ff_text text = {0};
  assert_int_equal(report_timeline_write(&run, &text), 2);
  check_trace(text.chars);
  compare_golden("timeline.json", &text);
  free(text.chars);
  report_free(&run);
}

static void a_run_without_a_history_has_no_timeline(void **state) {
  report_run run = sample();
  ff_text text = {0};
  for (int i = 0; i < 3; i++) {
    history_free(run.results[i].history);
    run.results[i].history = NULL;
  }
  assert_int_equal(report_timeline_write(&run, &text), 0);
  assert_int_equal(text.length, 0);
  report_free(&run);
}

static void an_empty_history_is_a_valid_timeline(void **state) {
  report_run run = {.results = ff_alloc(sizeof *run.results), .result_count = 1};
  ff_text text = {0};
  strcpy(run.results[0].memory, "copy");
  run.results[0].history = history_create();
  assert_int_equal(report_timeline_write(&run, &text), 1);
  json_t *root = json_loads(text.chars, 0, NULL);
  assert_int_equal(json_array_size(json_object_get(root, "traceEvents")), 3);
  json_decref(root);
  free(text.chars);
  report_free(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(histories_are_written_as_documented),
      cmocka_unit_test(without_them_the_text_has_none),
      cmocka_unit_test(what_is_written_is_read_back),
      cmocka_unit_test(a_changed_byte_is_noticed),
      cmocka_unit_test(broken_histories_are_refused),
      cmocka_unit_test(the_timeline_is_as_documented),
      cmocka_unit_test(a_run_without_a_history_has_no_timeline),
      cmocka_unit_test(an_empty_history_is_a_valid_timeline),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
