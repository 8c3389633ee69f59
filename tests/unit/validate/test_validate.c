/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of measurements: what is read of them and where each mistake is shown; values, scores and limits by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "validate/validate.h"

#define HEADER "group\trow\tx\tgpu\tmachine\tset\tmemory\tprogram\tquantity\tunit\tsilicon\trole\truns\tsource\n"

/* A row of group g on GPU. */
#define ROW(name, x, program, quantity, silicon, role, runs) \
  "g\t" name "\t" x "\tGPU\tv100\t-\tcopy\t" program "\t" quantity "\tus\t" silicon "\t" role "\t" runs "\ta paper\n"

static ff_status read_text(const char *text, validate_table *table, ff_error *error) {
  return validate_table_read("t.tsv", text, strlen(text), table, error);
}

static void rows_and_runs(void **state) {
  validate_table t = {0};
  assert_int_equal(read_text(HEADER ROW("a", "1.5", "p 1", "q", "2", "held", "quick")
                                 ROW("b", "-", "p 1", "r", "4e3", "fitted", "full")
                                     ROW("c", "-", "p 2", "q", "0.5", "input", "full"),
                             &t, NULL),
                   FF_OK);
  assert_int_equal(t.rows.count, 3);
  assert_int_equal(t.runs.count, 2); /* a and b are of one run */
  assert_string_equal(t.rows.items[0].row, "a");
  assert_true(t.rows.items[0].at == 1.5 && isnan(t.rows.items[1].at) && t.rows.items[1].measured == 4000);
  assert_int_equal(t.rows.items[0].is, VALIDATE_HELD);
  assert_int_equal(t.rows.items[1].is, VALIDATE_FITTED);
  assert_int_equal(t.rows.items[2].is, VALIDATE_INPUT);
  assert_true(t.rows.items[0].is_quick && !t.rows.items[1].is_quick && isnan(t.rows.items[0].ours));
  assert_int_equal(t.rows.items[1].run, 0);
  assert_int_equal(t.rows.items[2].run, 1);
  assert_string_equal(t.runs.items[1].program, "p 2");
  /* a second file */
  assert_int_equal(read_text(HEADER "\n" ROW("d", "0", "p 2", "q", "1", "held", "full"), &t, NULL), FF_OK);
  assert_int_equal(t.rows.count, 4);
  assert_int_equal(t.rows.items[3].run, 1);
  validate_choose(&t, &(validate_choice){.group = "g", .quick = true});
  assert_int_equal(t.rows.count, 1);
  assert_int_equal(t.runs.count, 1);
  validate_choose(&t, &(validate_choice){.machine = "h200"});
  assert_int_equal(t.rows.count + t.runs.count, 0);
  validate_table_free(&t);
}

/* The message has the place, the line that is wrong and a caret. */
static void refuses(const char *text, const char *place, const char *what) {
  validate_table t = {0};
  ff_error error = {0};
  assert_int_equal(read_text(text, &t, &error), FF_PARSE);
  if (!strstr(error.message, place) || !strstr(error.message, what)) fail_msg("%s", error.message);
  validate_table_free(&t);
}

static void mistakes(void **state) {
  refuses("", "t.tsv", "is empty");
  refuses("group\trow\n", "t.tsv:1:1", "2 fields, where the header has 14");
  refuses("grp" HEADER, "t.tsv:1:1", "column 1 must be called group");
  refuses(HEADER "a\tb\n", "t.tsv:2:1", "2 fields");
  refuses(HEADER ROW("a", "1", "p", "q", "2", "held", "quick") "x", "t.tsv:3:1", "1 fields");
  refuses(HEADER ROW("a", "one", "p", "q", "2", "held", "quick"), "t.tsv:2:5", "'one' is neither a number nor -");
  refuses(HEADER ROW("", "1", "p", "q", "2", "held", "quick"), "t.tsv:2:3", "row is empty");
  refuses(HEADER ROW("a\x01", "1", "p", "q", "2", "held", "quick"), "t.tsv:2:4", "not printable");
  refuses(HEADER ROW("a\r", "1", "p", "q", "2", "held", "quick"), "t.tsv:2:4", "not printable");
  static const char *const bad[] = {"0", "-1", "nan", "inf", "1e999", "2x", "-"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[512];
    snprintf(text, sizeof text, HEADER ROW("a", "1", "p", "q", "%s", "held", "quick"), bad[i]);
    refuses(text, "t.tsv:2:", "is no number above 0");
  }
  refuses(HEADER ROW("a", "1", "p", "q", "2", "hold", "quick"), "t.tsv:2:", "'hold' is neither held, fitted nor input");
  refuses(HEADER ROW("a", "1", "p", "q", "2", "held", "fast"), "t.tsv:2:", "'fast' is neither quick nor full");
  refuses(HEADER ROW("a", "1", "p", "q", "2", "held", "full") ROW("a", "2", "p", "q", "3", "held", "full"), "t.tsv:3:3",
          "g of GPU has a row 'a' already");
}

static void printed(void **state) {
  static const char text[] =
      "latency = 27.9 cycles\nband = 3 GB/s\nband = 4 GB/s\nfarfault: latency = 1 cycles\nx = 5 us";
  assert_true(validate_printed(text, "latency", "cycles") == 27.9);
  assert_true(validate_printed(text, "x", "us") == 5); /* without a line end */
  assert_true(isnan(validate_printed(text, "latency", "us")));
  assert_true(isnan(validate_printed(text, "lat", "cycles")));
  assert_true(isnan(validate_printed(text, "band", "GB/s"))); /* which one? */
  assert_true(isnan(validate_printed("", "x", "us")) &&
              isnan(validate_printed("x = us\nx = nan us\nx =  us\n", "x", "us")));
}

static void counted(void **state) {
  sim_kernel_result kernels[2] = {{.name = "add"}, {.name = "add_again"}};
  sim_result r = {.kernels = kernels, .kernel_count = 2};
  r.counters.h2d_bytes = 3 << 20;
  kernels[0].counters.launches = 1, kernels[0].counters.time_ps = 5000000;
  kernels[1].counters.launches = 4, kernels[1].counters.time_ps = 8000000;
  assert_true(validate_counted(&r, "h2d_bytes", "MiB") == 3);
  assert_true(validate_counted(&r, "h2d_bytes", "bytes") == 3 << 20);
  assert_true(validate_counted(&r, "time_ps of add", "us") == 5);
  assert_true(validate_counted(&r, "time_ps of add_again", "us") == 2); /* of one launch */
  assert_true(validate_counted(&r, "time_ps of add", "cycles of 1600 MHz") == 8000);
  assert_true(validate_counted(&r, "time_ps of add", "cycles of 1600 MHz + 50.5") == 8050.5);
  assert_true(validate_counted(&r, "time_ps of add_again", "cycles of 1600 MHz + 5") == 3205); /* each launch */
  assert_true(validate_counted(&r, "time_ps of add", "cycles of 1600 MHz + ") == 5000000);
  assert_true(validate_counted(&r, "time_ps of add", "cycles of 1600 MHz + 5 x") == 5000000);
  assert_true(validate_counted(&r, "time_ps of add", "cycles of 0 MHz") == 5000000); /* as it is counted */
  assert_true(validate_counted(&r, "time_ps of add", "cycles of 1600 MHz or so") == 5000000);
  assert_true(isnan(validate_counted(&r, "time_ps of sub", "us")) && isnan(validate_counted(&r, "time of add", "us")));
  validate_row row = {.quantity = "h2d_bytes", .unit = "MiB"};
  assert_true(validate_value(&row, "h2d_bytes = 7 MiB\n", &r) == 7); /* what it says itself goes before */
  assert_true(validate_value(&row, "", &r) == 3 && isnan(validate_value(&row, "", NULL)));
}

static void near(double a, double b) { assert_true(fabs(a - b) < 1e-12); }

/* Three held rows with 2, 4 and 1/2 of silicon's value; one that is an input; one without a value. */
static void scores(void **state) {
  validate_table t = {0};
  validate_scores s = {0};
  assert_int_equal(
      read_text(HEADER ROW("a", "1", "p", "q", "1", "held", "full") ROW("b", "2", "p", "q", "10", "held", "full")
                    ROW("c", "3", "p", "q", "100", "held", "full") ROW("d", "4", "p", "q", "100", "input", "full")
                        ROW("e", "5", "p", "q", "100", "held", "full"),
                &t, NULL),
      FF_OK);
  static const double ours[] = {2, 40, 50, 7};
  for (int i = 0; i < 4; i++) t.rows.items[i].ours = ours[i];
  validate_score_all(&t, &s);
  assert_int_equal(s.list.count, 1);
  assert_int_equal(s.list.items[0].rows, 5);
  assert_int_equal(s.list.items[0].held, 4);
  assert_int_equal(s.list.items[0].scored, 3);
  near(s.list.items[0].ratio, cbrt(4.0));
  near(s.list.items[0].error, (1 + 3 + 0.5) / 3);
  /* of x = 0, 1, 2 and y = lg 2, lg 40, lg 50 */
  double y[] = {log10(2), log10(40), log10(50)}, mean = (y[0] + y[1] + y[2]) / 3, yy = 0;
  for (int i = 0; i < 3; i++) yy += (y[i] - mean) * (y[i] - mean);
  near(s.list.items[0].correlation, (y[2] - y[0]) / sqrt(2 * yy));
  free(s.list.items);
  memset(&s, 0, sizeof s);
  for (int i = 0; i < 5; i++) t.rows.items[i].ours = VALIDATE_NONE;
  validate_score_all(&t, &s);
  assert_true(isnan(s.list.items[0].ratio) && isnan(s.list.items[0].error) && isnan(s.list.items[0].correlation));
  free(s.list.items);
  validate_table_free(&t);
}

#define GOALS "goal\tgroups\tgpus\trows\tleast\tmost\tmeasure\tbefore\ttarget\n"

/* Goal n of the table. */
static validate_attainment attained(const validate_table *t, size_t n) {
  return validate_attained(t, &t->goals.items[n]);
}

/* Rows are chosen by group, GPU, pattern and x; an error is met up to its target, a correlation from it on. */
static void goals(void **state) {
  static const char text[] = GOALS "all\tg\t-\t-\t-\t-\terror\t9 %\t50\n"
                                   "low\tf,g\tx,GPU\t-\t-\t2\terror\t-\t50.0001\n"
                                   "high\tg\t-\t-\t2\t-\terror\t-\t49.9\n"
                                   "some\tg\t-\tz|b*|c\t-\t-\terror\t-\t10\n"
                                   "shape\tg\t-\t-\t-\t-\tcorrelation\t-\t0.5\n"
                                   "other\tg\tx\t-\t-\t-\terror\t-\t10\n";
  validate_table t = {0};
  assert_int_equal(
      read_text(HEADER ROW("a", "1", "p", "q", "1", "held", "full") ROW("b2", "2", "p", "q", "10", "held", "full")
                    ROW("c", "3", "p", "q", "100", "held", "full") ROW("d", "4", "p", "q", "100", "fitted", "full")
                        ROW("none", "-", "p", "q", "8", "held", "full"),
                &t, NULL),
      FF_OK);
  assert_int_equal(validate_goals_read("goals.tsv", text, strlen(text), &t, NULL), FF_OK);
  static const uint32_t held[] = {4, 2, 2, 2, 4, 0};
  assert_int_equal(t.goals.count, 6);
  for (size_t i = 0; i < 6; i++) assert_int_equal(t.goals.items[i].held, held[i]);
  for (size_t i = 0; i < 5; i++) assert_int_equal(attained(&t, i).verdict, VALIDATE_NOT_RUN);
  assert_int_equal(attained(&t, 5).verdict, VALIDATE_NONE_HELD);
  t.rows.items[0].ours = 1.5, t.rows.items[1].ours = 5, t.rows.items[3].ours = 7;
  assert_int_equal(attained(&t, 0).verdict, VALIDATE_IN_PART);
  assert_int_equal(attained(&t, 0).scored, 2);
  near(attained(&t, 0).now, 0.5);
  assert_int_equal(attained(&t, 1).verdict, VALIDATE_MET);
  assert_int_equal(attained(&t, 3).verdict, VALIDATE_IN_PART);
  t.rows.items[2].ours = 150;
  assert_int_equal(attained(&t, 2).verdict, VALIDATE_MISSED);
  assert_int_equal(attained(&t, 3).verdict, VALIDATE_MISSED);
  t.rows.items[4].ours = 12;
  assert_int_equal(attained(&t, 0).verdict, VALIDATE_MET); /* exactly its target */
  assert_int_equal(attained(&t, 4).verdict, VALIDATE_MET);
  t.goals.items[4].wanted = 0.999;
  assert_int_equal(attained(&t, 4).verdict, VALIDATE_MISSED);
  /* what is not run is still held: a choice changes what is known, not what is asked for */
  validate_choose(&t, &(validate_choice){.quick = true});
  assert_int_equal(t.rows.count, 0);
  assert_int_equal(t.goals.count, 6);
  assert_int_equal(attained(&t, 0).verdict, VALIDATE_NOT_RUN);
  validate_choose(&t, &(validate_choice){.group = "f"});
  assert_int_equal(t.goals.count, 0);
  validate_table_free(&t);
  static const struct {
    const char *fields, *what;
  } bad[] = {{"g\tg\t-\t-\tx\t-\terror\t-\t5", "'x' is neither a number nor -"},
             {"g\tg\t-\t-\t-\tx\terror\t-\t5", "'x' is neither a number nor -"},
             {"g\tg\t-\t-\t-\t-\terrors\t-\t5", "'errors' is neither error nor correlation"},
             {"g\tg\t-\t-\t-\t-\terror\t-\t0", "'0' is no number above 0"},
             {"g\tg\t-\t-\t-\t-\tcorrelation\t-\t1.1", "a correlation is at most 1"},
             {"g\tg\t-\t-\t-\t-\terror\t5", "8 fields"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char line[256];
    ff_error error = {0};
    snprintf(line, sizeof line, GOALS "%s\n", bad[i].fields);
    assert_int_equal(validate_goals_read("goals.tsv", line, strlen(line), &t, &error), FF_PARSE);
    if (!strstr(error.message, "goals.tsv:2:") || !strstr(error.message, bad[i].what)) fail_msg("%s", error.message);
    validate_table_free(&t);
  }
}

/* Rows of programs that are not bundled go where there is no folder of them; their goals say that they were not run. */
static void folder(void **state) {
  static const char text[] = GOALS "all\tg\t-\t-\t-\t-\terror\t-\t5\n";
  validate_table t = {0};
  assert_int_equal(read_text(HEADER ROW("a", "1", "p", "q", "1", "held", "full")
                                 ROW("b", "2", "{programs}/p", "q", "1", "held", "full"),
                             &t, NULL),
                   FF_OK);
  assert_int_equal(validate_goals_read("goals.tsv", text, strlen(text), &t, NULL), FF_OK);
  assert_true(!validate_needs_folder(&t.rows.items[0]) && validate_needs_folder(&t.rows.items[1]));
  validate_choose(&t, &(validate_choice){.without_folder = true});
  assert_int_equal(t.rows.count, 1);
  assert_int_equal(t.runs.count, 1);
  assert_string_equal(t.rows.items[0].row, "a");
  t.rows.items[0].ours = 1;
  assert_int_equal(attained(&t, 0).verdict, VALIDATE_IN_PART);
  validate_choose(&t, &(validate_choice){.group = "g", .quick = true});
  assert_int_equal(attained(&t, 0).verdict, VALIDATE_NOT_RUN);
  validate_table_free(&t);
}

static uint32_t exceeded(double error, uint32_t held, uint32_t scored, const char *limits_text, bool quick,
                         ff_text *out) {
  validate_score score = {.group = "g", .gpu = "GPU", .rows = held, .held = held, .scored = scored, .error = error};
  validate_scores s = {.list = {.items = &score, .count = 1}};
  validate_limits limits = {0};
  assert_int_equal(validate_limits_read("l.tsv", limits_text, strlen(limits_text), &limits, NULL), FF_OK);
  uint32_t count = validate_exceeded(&s, &limits, quick, out);
  free(limits.list.items);
  return count;
}

/* Both sides of the edge. */
static void limits(void **state) {
  static const char text[] = "group\tgpu\tquick\tfull\ng\tGPU\t10\t20\n",
                    other[] = "group\tgpu\tquick\tfull\ng\tother\t10\t20\n";
  ff_text out = {0};
  assert_int_equal(exceeded(0.1, 3, 3, text, true, &out), 0);
  assert_int_equal(exceeded(0.2, 3, 3, text, false, &out), 0);
  assert_null(out.chars);
  assert_int_equal(exceeded(0.101, 3, 3, text, true, &out), 1);
  assert_non_null(strstr(out.chars, "g of GPU: its mean error is 10.1 %, above its limit of 10.0 %"));
  assert_int_equal(exceeded(0.201, 3, 3, text, false, &out), 1);
  assert_int_equal(exceeded(0.1, 3, 2, text, true, &out), 1); /* a row without a value */
  assert_non_null(strstr(out.chars, "1 of 3 rows have no value"));
  assert_int_equal(exceeded(VALIDATE_NONE, 3, 0, text, true, &out), 1);
  assert_int_equal(exceeded(0, 3, 3, other, true, &out), 1);
  assert_non_null(strstr(out.chars, "g of GPU has no limit"));
  assert_int_equal(exceeded(VALIDATE_NONE, 0, 0, other, true, &out), 0); /* nothing to hold */
  free(out.chars);
  static const char *const bad[] = {"", "group\tgpu\n", "group\tgpu\tquick\tfull\ng\tGPU\tx\t1\n",
                                    "group\tgpu\tquick\tfull\ng\tGPU\t1\t-1\n", "group\tgpu\tquick\tfull\ng\tGPU\t1\n"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    validate_limits l = {0};
    ff_error error = {0};
    assert_int_equal(validate_limits_read("l.tsv", bad[i], strlen(bad[i]), &l, &error), FF_PARSE);
    assert_non_null(strstr(error.message, "l.tsv"));
    free(l.list.items);
  }
}

static uint32_t count_of(const char *text, const char *what) {
  uint32_t count = 0;
  while ((text = strstr(text, what))) count++, text++;
  return count;
}

/* Names from a table cannot become markup, and the same rows give the same bytes. */
static void outputs(void **state) {
  validate_table t = {0};
  validate_scores s = {0};
  validate_page page = {.command = "farfault validate --group '<b>'", .set = ""};
  assert_int_equal(read_text(HEADER ROW("<script>|: 1", "0", "p", "q", "1", "held", "full")
                                 ROW("b: 2", "2", "p", "q", "10", "held", "full")
                                     ROW("b: 3", "3", "p", "q", "9", "input", "full"),
                             &t, NULL),
                   FF_OK);
  static const char aims[] = GOALS "<i>|\tg\t-\t-\t-\t-\terror\t9 %\t80\nshape\tg\t-\t-\t-\t-\tcorrelation\t-\t0.5\n"
                                   "none\tf\t-\t-\t-\t-\terror\t-\t5\n";
  assert_int_equal(validate_goals_read("goals.tsv", aims, strlen(aims), &t, NULL), FF_OK);
  t.rows.items[0].ours = 2;
  t.rows.items[1].ours = 5;
  validate_score_all(&t, &s);
  ff_text html[2] = {0}, json = {0}, document = {0}, table = {0}, list = {0};
  for (int i = 0; i < 2; i++) validate_html(&t, &s, &page, &html[i]);
  assert_string_equal(html[0].chars, html[1].chars);
  assert_null(strstr(html[0].chars, "<script"));
  assert_null(strstr(html[0].chars, "<b>"));
  assert_non_null(strstr(html[0].chars, "<meta name=\"viewport\"")); /* a phone shows the page in its own width */
  assert_int_equal(count_of(html[0].chars, "<svg"), count_of(html[0].chars, "<div class=\"picture\"><svg"));
  assert_non_null(strstr(html[0].chars, "&lt;script&gt;|: 1, GPU: silicon 1, ours 2 us</title>"));
  validate_json(&t, &s, &page, &json);
  assert_non_null(strstr(json.chars, "\"ours\": null"));
  validate_markdown(&t, &s, &page, &document);
  assert_non_null(strstr(document.chars, "| <script>\\|: 1 | us | 1 | 2 | 2.00 | held |"));
  validate_table_text(&t, &s, true, &table);
  assert_non_null(strstr(table.chars, "2 of 3"));
  assert_null(strstr(html[0].chars, "<i>"));
  assert_non_null(strstr(html[0].chars,
                         "<td>&lt;i&gt;|</td><td class=\"n\">2 of 2</td><td>9 %</td><td class=\"n\">75.0 %</td><td "
                         "class=\"n\">&le; 80 %</td><td>yes</td>"));
  assert_non_null(strstr(json.chars, "\"met\": \"none held\""));
  assert_non_null(strstr(document.chars, "| <i>\\| | 2 | 9 % | 75.0 % | <= 80 % | yes |"));
  assert_non_null(strstr(document.chars, "| shape | 2 | - | - | >= 0.5 | no |")); /* two rows have none */
  assert_non_null(strstr(document.chars, "| none | 0 | - | - | <= 5 % | none held |"));
  assert_non_null(strstr(table.chars, "<= 80 %  yes"));
  validate_list_text(&t, true, &list);
  assert_non_null(strstr(list.chars, "b: 3"));
  for (int i = 0; i < 2; i++) free(html[i].chars);
  free(json.chars), free(document.chars), free(table.chars), free(list.chars);
  free(s.list.items);
  validate_table_free(&t);
}

/* Values at the ends of what a number can be: axes have some ticks, all of them at a place. */
static void far_values(void **state) {
  static const char *const numbers[] = {"1e308", "1e-308", "4e-324", "1e300", "7e-30", "1.7976931348623157e308"};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
      validate_table t = {0};
      validate_scores s = {0};
      validate_page page = {.command = "far", .set = ""};
      ff_text text = {0}, html = {0};
      ff_text_add(&text, "%s", HEADER);
      for (int row = 0; row < 3; row++)
        ff_text_add(&text, "g\tg: %d\t%s\tGPU\tv100\t-\tcopy\tp\tq\tus\t%s\theld\tquick\ts\n", row,
                    row ? numbers[i] : "0", numbers[row == 2 ? i : k]);
      assert_int_equal(read_text(text.chars, &t, NULL), FF_OK);
      for (size_t row = 0; row < t.rows.count; row++) t.rows.items[row].ours = strtod(numbers[k], NULL);
      validate_score_all(&t, &s);
      validate_html(&t, &s, &page, &html);
      assert_null(strstr(html.chars, "nan"));
      assert_null(strstr(html.chars, "=\"inf"));
      assert_null(strstr(html.chars, "=\"-inf"));
      assert_in_range(count_of(html.chars, "<line"), 4, 150);
      free(text.chars), free(html.chars), free(s.list.items);
      validate_table_free(&t);
    }
}

static char *read_bundled(const char *name, char *path, size_t room, size_t *size) {
  char *text;
  snprintf(path, room, FF_SOURCE_DIR "/validation/%s.tsv", name);
  assert_int_equal(ff_file_read(path, 0, &text, size, NULL), FF_OK);
  return text;
}

/* The bundled tables: each file can be read together with the others; every goal has rows. */
static void bundled(void **state) {
  static const char *const names[] = {"cache",    "copies",  "kernels", "l2cache", "latency",
                                      "launches", "managed", "stream",  "strides"};
  validate_table t = {0};
  char path[512];
  size_t size;
  ff_error error = {0};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t before = t.rows.count;
    char *text = read_bundled(names[i], path, sizeof path, &size);
    if (validate_table_read(path, text, size, &t, &error)) fail_msg("%s", error.message);
    assert_true(t.rows.count > before + 5);
    free(text);
  }
  char *text = read_bundled("goals", path, sizeof path, &size);
  if (validate_goals_read(path, text, size, &t, &error)) fail_msg("%s", error.message);
  free(text);
  assert_true(t.goals.count >= 10);
  for (size_t i = 0; i < t.goals.count; i++) {
    bool any = false;
    for (size_t k = 0; k < t.rows.count; k++) any = any || validate_goal_is_of(&t.goals.items[i], &t.rows.items[k]);
    if (!any) fail_msg("no row is of the goal '%s'", t.goals.items[i].goal);
  }
  validate_table_free(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_and_runs), cmocka_unit_test(mistakes), cmocka_unit_test(printed),
      cmocka_unit_test(counted),       cmocka_unit_test(scores),   cmocka_unit_test(goals),
      cmocka_unit_test(folder),        cmocka_unit_test(limits),   cmocka_unit_test(outputs),
      cmocka_unit_test(far_values),    cmocka_unit_test(bundled)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
