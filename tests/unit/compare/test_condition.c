/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions: what binds how, units, dimensions, both sides of a comparison, and messages with their place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compare/condition.h"

static sim_result results[4], old[1];
static report_run run = {.complete = true, .results = results, .result_count = 4},
                  baseline = {.complete = true, .results = old, .result_count = 1};

static int prepare(void **state) {
  static const char *const names[] = {"copy", "uvm", "zero-copy", "tbn+gpu-memory=60%"};
  for (int i = 0; i < 4; i++) {
    strcpy(results[i].memory, names[i]);
    results[i].complete = true;
    results[i].counters = (sim_counters){.time_ps = 1000000ull * (uint64_t)(i + 1)}; /* 1, 2, 3, 4 us */
  }
  results[1].counters.faults = 690;
  results[1].counters.h2d_bytes = 3 << 20;
  results[1].tiers = (sim_tiers){.count = 4,
                                 .of = {{.name = "far", .read_bytes = 30},
                                        {.name = "host", .read_bytes = 5},
                                        {.name = "nvme", .read_bytes = 400},
                                        {.name = SIM_FILES, .read_bytes = 7}}};
  strcpy(results[2].error, "zero-copy: no memory");
  strcpy(old[0].memory, "copy");
  old[0].complete = true;
  old[0].counters.time_ps = 900000;
  return 0;
}

static bool holds(const char *text) {
  condition *c;
  ff_error error;
  bool result = false;
  ff_text values = {0};
  if (condition_parse(text, &c, &error)) fail_msg("%s", error.message);
  if (condition_evaluate(c, &run, &baseline, &result, &values, &error)) fail_msg("%s", error.message);
  condition_free(c);
  free(values.chars);
  return result;
}

static void test_true_and_false(void **state) {
  static const struct {
    const char *text;
    bool holds;
  } cases[] = {
      {"uvm.faults > 690", false},
      {"uvm.faults > 689", true},
      {"uvm.faults >= 690", true},
      {"uvm.faults < 690", false},
      {"uvm.faults <= 690", true},
      {"uvm.faults == 690", true},
      {"uvm.faults != 690", false},
      {"uvm.time == 2 us", true},
      {"uvm.time == 2000ns and uvm.time == 2e6 ps and uvm.time == 0.002ms and uvm.time < 1s", true},
      {"uvm.h2d_bytes == 3 MiB and uvm.h2d_bytes == 3072KiB and uvm.h2d_bytes < 1G and uvm.h2d_bytes == 3145728 B",
       true},
      {"copy.time > 1.1 * baseline.copy.time", true},
      {"copy.time > 1.2 * baseline.copy.time", false},
      {"copy.time - baseline.copy.time == 100 ns", true},
      {"copy.time > 111% * baseline.copy.time", true},
      {"uvm.ratio == 2 && 'tbn+gpu-memory=60%'.ratio == 4", true},
      {"\"tbn+gpu-memory=60%\".time-copy.time == 3us", true},
      {"2 + 3 * 4 == 14 and (2 + 3) * 4 == 20 and 8 - 3 - 2 == 3 and 16 / 4 / 2 == 2", true},
      {"-2 * 3 == -6 and --2 == 2 and 1 - -1 == 2", true},
      {"1 < 2 or 1 < 2 and 2 < 1", true}, /* and before or */
      {"(1 < 2 or 1 < 2) and 2 < 1", false},
      {"not 1 < 2 or 1 < 2", true}, /* not before or */
      {"not (1 < 2 or 1 < 2)", false},
      {"!(1 > 2) && !!(1 < 2)", true},
      {"1 != 2 and 1<2and 2>1", true},
      {"1 < 2 or zero-copy.time > 1s", true}, /* decided: the other side is not looked at */
      {"1 > 2 and zero-copy.time > 1s", false},
      {"uvm.h2d_bytes / uvm.time > 1 TiB / 1 s", true}, /* 3 MiB in 2 us */
      {"uvm.h2d_bytes / uvm.time > 2 TiB / 1 s", false},
      {"uvm.tier_read_bytes == 430 B", true}, /* but the host's memory, and files */
      {"uvm.time * uvm.time / uvm.time == 2us\n", true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (holds(cases[i].text) != cases[i].holds) fail_msg("%s: %d", cases[i].text, !cases[i].holds);
}

static void test_refused(void **state) {
  static const struct {
    const char *text, *place, *message;
  } cases[] = {
      {"", ":1:1:", "ends where a number"},
      {"   ", ":1:4:", "ends where a number"},
      {"uvm.faults", ":1:1:", "a condition is wanted"},
      {"1 + 2", ":1:1:", "a condition is wanted"},
      {"uvm.faults > ", ":1:14:", "ends where a number"},
      {"uvm.fault > 1", ":1:5:", "did you mean 'faults'"},
      {"uvm. > 1", ":1:5:", "a metric's name"},
      {"uvm.gr\xc3\xb6\xc3\x9f"
       "e > 1",
       ":1:5:",
       "no metric 'gr\xc3\xb6\xc3\x9f"
       "e'"},
      {"uvm > 1", ":1:1:", "MANAGER.METRIC"},
      {"baseline.time > 1us", ":1:1:", "MANAGER.METRIC"},
      {"'uvm.faults > 1", ":1:1:", "the quote is not closed"},
      {"''.faults > 1", ":1:1:", "a manager's name"},
      {"uvm.faults > 1 ms", ":1:12:", "a number and a time cannot be compared"},
      {"uvm.time + 1 KiB > 1 ms", ":1:10:", "a time and bytes cannot be added"},
      {"uvm.h2d_bytes / uvm.time > 1", ":1:26:", "bytes per time and a number cannot be compared"},
      {"1 < 2 < 3", ":1:7:", "put 'and' between"},
      {"(1 < 2", ":1:1:", "the parenthesis is not closed"},
      {"1 < 2)", ":1:6:", "an operator is wanted"},
      {"1 < 2 3", ":1:7:", "an operator is wanted"},
      {"1 lightyear < 2", ":1:3:", "no unit 'lightyear'"},
      {"1.2.3 < 2", ":1:1:", "this is no number"},
      {"1e999 < 2", ":1:1:", "this is no number"},
      {"(1 < 2) + 1 < 2", ":1:9:", "a number is wanted here"},
      {"1 and 2", ":1:3:", "a condition is wanted"},
      {"not 3", ":1:4:", "a condition is wanted"},
      {"1 = 2", ":1:3:", "write =="},
      {"1s*1s*1s*1s*1s*1s*1s*1s*1s > 1", ":1:24:", "the power of a unit"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    condition *c;
    ff_error error;
    if (condition_parse(cases[i].text, &c, &error) != FF_PARSE || c) fail_msg("%s: taken", cases[i].text);
    if (!strstr(error.message, cases[i].place) || !strstr(error.message, cases[i].message))
      fail_msg("%s: %s", cases[i].text, error.message);
  }
}

static void test_limits(void **state) {
  condition *c;
  char *text = ff_alloc(CONDITION_LENGTH + 2);
  /* each level is one of not and of sign */
  for (int depth = CONDITION_DEPTH / 2 - 1; depth < CONDITION_DEPTH + 2; depth++) {
    memset(text, '(', (size_t)depth);
    snprintf(text + depth, CONDITION_LENGTH - 500, "1<2");
    memset(text + strlen(text), ')', (size_t)depth);
    text[2 * depth + 3] = '\0';
    assert_int_equal(condition_parse(text, &c, NULL), depth < CONDITION_DEPTH / 2 ? FF_OK : FF_LIMIT);
    condition_free(c);
  }
  memset(text, '-', CONDITION_LENGTH + 1);
  text[CONDITION_LENGTH + 1] = '\0';
  assert_int_equal(condition_parse(text, &c, NULL), FF_LIMIT);
  text[CONDITION_LENGTH] = '\0';
  assert_int_equal(condition_parse(text, &c, NULL), FF_LIMIT);
  strcpy(text, "1");
  for (size_t i = 1; i + 4 < CONDITION_LENGTH; i += 2) strcpy(text + i, "+1");
  strcat(text, ">0"); /* long, not deep */
  assert_true(holds(text));
  free(text);
}

static void cannot(const char *text, const report_run *before, const char *message) {
  condition *c;
  ff_error error;
  bool result = true;
  ff_text values = {0};
  assert_int_equal(condition_parse(text, &c, NULL), FF_OK);
  assert_int_not_equal(condition_evaluate(c, &run, before, &result, &values, &error), FF_OK);
  assert_false(result);
  if (!strstr(error.message, message)) fail_msg("%s: %s", text, error.message);
  condition_free(c);
  free(values.chars);
}

static void test_no_value(void **state) {
  cannot("tbn.time > 1us", &baseline, "no numbers of 'tbn' in this run");
  cannot("baseline.uvm.time > 1us", &baseline, "no numbers of 'uvm' in the baseline");
  cannot("baseline.copy.time > 1us", NULL, "no numbers of 'copy' in the baseline");
  cannot("zero-copy.time > 1us", &baseline, "zero-copy could not run the program: no memory");
  cannot("copy.tier_read_bytes > 1 B", &baseline, "copy.tier_read_bytes has no value in this run");
  cannot("copy.l1_hit_rate > 1", &baseline, "copy.l1_hit_rate has no value in this run");
  cannot("1 / copy.faults > 1", &baseline, ":1:3: a division by 0");
}

static void test_names(void **state) {
  static const char *const managers[] = {"copy", "uvm", NULL};
  condition *c;
  ff_error error;
  ff_text values = {0};
  bool result;
  assert_int_equal(condition_parse("copy.time > baseline.tbn.time or uvm@2.faults > 3", &c, NULL), FF_OK);
  assert_true(condition_uses_baseline(c));
  assert_int_equal(condition_check_managers(c, managers, NULL), FF_OK);
  condition_free(c);
  assert_int_equal(condition_parse("1 < 2 and uvn.faults > 3", &c, NULL), FF_OK);
  assert_false(condition_uses_baseline(c));
  assert_int_equal(condition_check_managers(c, managers, &error), FF_NOT_FOUND);
  assert_non_null(strstr(error.message, ":1:11: 'uvn' is not simulated: did you mean 'uvm'?"));
  condition_free(c);
  assert_int_equal(condition_parse("uvm.faults + uvm.faults > 3 and copy.time > 1 us", &c, NULL), FF_OK);
  assert_int_equal(condition_evaluate(c, &run, NULL, &result, &values, NULL), FF_OK);
  assert_string_equal(values.chars, "uvm.faults = 690, copy.time = 1.00 us");
  condition_free(c);
  free(values.chars);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_true_and_false), cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_limits), cmocka_unit_test(test_no_value),
                                     cmocka_unit_test(test_names)};
  return cmocka_run_group_tests(tests, prepare, NULL);
}
