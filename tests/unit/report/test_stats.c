/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of a run: known durations and sizes, and the lines that they must give. */
#include "report/stats.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { US = 1000000 };

static void make_run(report_run *run) {
  *run = (report_run){.result_count = 1, .results = ff_alloc(sizeof(sim_result))};
  sim_result *result = run->results;
  strcpy(result->memory, "uvm");
  result->kernel_count = 3;
  result->kernels = ff_alloc(3 * sizeof *result->kernels);
  strcpy(result->kernels[0].name, "add");
  strcpy(result->kernels[1].name, "scale");
  strcpy(result->kernels[2].name, "add"); /* in another range of the program's */
  strcpy(result->kernels[2].range, "step");
}

static void note_all(sim_history *h) {
  static const uint32_t kernels[] = {0, 1, 2, 0};
  static const uint64_t lengths[] = {1 * US, 11 * US, 2 * US, 6 * US};
  for (int i = 0; i < 4; i++)
    history_note_kernel(
        h, (history_kernel){.launch = (uint64_t)i, .kernel = kernels[i], .begin = 5, .end = 5 + lengths[i]});
  history_note_copy(h, (history_copy){.kind = HISTORY_COPY_H2D, .end = 3 * US, .bytes = 4096});
  history_note_copy(h, (history_copy){.kind = HISTORY_COPY_PREFETCH_IN, .end = 9 * US, .bytes = 1 << 20});
  history_note_transfer(h, (history_transfer){.cause = HISTORY_CAUSE_COPY, .in = true, .end = 3 * US, .bytes = 4096});
  history_note_transfer(
      h, (history_transfer){.cause = HISTORY_CAUSE_FAULT, .in = true, .begin = 4 * US, .end = 5 * US, .bytes = 65536});
  history_note_transfer(
      h, (history_transfer){.cause = HISTORY_CAUSE_REMOTE, .in = true, .begin = 6 * US, .end = 7 * US, .bytes = 128});
  history_note_batch(h, (history_batch){.begin = 0, .end = 8 * US, .faults = 3, .bytes = 4096});
  history_note_batch(h, (history_batch){.begin = 0, .end = 2 * US, .faults = 8, .bytes = 4096});
}

/* The line of the text that ends in `name`, with single spaces; NULL: there is none. */
static const char *line_of(const char *text, const char *from, const char *name) {
  static char line[256];
  const char *at = strstr(text, from);
  while (at && (at = strchr(at, '\n')) && *++at) {
    size_t length = strcspn(at, "\n"), n = 0;
    if (length < strlen(name) || strncmp(at + length - strlen(name), name, strlen(name))) continue;
    for (size_t i = 0; i < length && n + 1 < sizeof line; i++)
      if (at[i] != ' ' || (n && line[n - 1] != ' ')) line[n++] = at[i];
    line[n] = '\0';
    return line;
  }
  return NULL;
}

static void known_summaries(void **state) {
  (void)state;
  report_run run;
  ff_text out = {0};
  make_run(&run);
  assert_false(report_stats_write(&run, &out));
  assert_int_equal(out.length, 0);
  run.results[0].history = history_create();
  note_all(run.results[0].history);
  assert_true(report_stats_write(&run, &out));
  /* 1, 2 and 6: their mean is 3, the squares of what they are off by 4 + 1 + 9, over 2 of them 7 */
  assert_string_equal(line_of(out.chars, "kernels", " add"),
                      "45.0 % 9.00 us 3 3.00 us 2.00 us 1.00 us 6.00 us 2.65 us add");
  assert_string_equal(line_of(out.chars, "kernels", " scale"),
                      "55.0 % 11.0 us 1 11.0 us 11.0 us 11.0 us 11.0 us 0 s scale");
  assert_true(strstr(out.chars, " scale\n") < strstr(out.chars, " add\n")); /* the larger total first */
  assert_string_equal(line_of(out.chars, "by time", "[CUDA memcpy Host-to-Device]"),
                      "75.0 % 3.00 us 1 3.00 us 3.00 us 3.00 us 3.00 us 0 s [CUDA memcpy Host-to-Device]");
  assert_string_equal(
      line_of(out.chars, "by size", "[CUDA Unified Memory memcpy HtoD]"),
      "94.1 % 64.00 KiB 1 64.00 KiB 64.00 KiB 64.00 KiB 64.00 KiB 0 B [CUDA Unified Memory memcpy HtoD]");
  assert_string_equal(line_of(out.chars, "batches by time", "[batch of far-faults]"),
                      "100.0 % 10.0 us 2 5.00 us 5.00 us 2.00 us 8.00 us 4.24 us [batch of far-faults]");
  assert_string_equal(line_of(out.chars, "faults: far-faults", "[far-faults of a batch]"),
                      "100.0 % 11 2 6 5 3 8 4 [far-faults of a batch]");
  assert_null(strstr(out.chars, "further"));
  run.results[0].history->kernels_left_out = 7;
  out.length = 0;
  report_stats_write(&run, &out);
  assert_non_null(strstr(out.chars, "note: 7 further launches are not in the history"));
  free(out.chars);
  report_free(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(known_summaries)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
