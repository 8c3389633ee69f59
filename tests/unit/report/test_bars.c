/* SPDX-License-Identifier: Apache-2.0 */
/* The SVG of grouped bars: where bars and marks stand, what is left out, escapes. The plot is 300 high, its top at 92
 * in the first panel; the axis ends at a round number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/bars.h"

static uint32_t count(const char *text, const char *what) {
  uint32_t found = 0;
  for (; (text = strstr(text, what)); text += strlen(what)) found++;
  return found;
}

static char *draw(bars_panel panel) {
  ff_text out = {0};
  bars_write("a < b", "below", &panel, 1, &out);
  return out.chars;
}

static const char *groups[] = {"first", "second"}, *series[] = {"x", "y"};

static void test_linear(void **state) {
  double ours[] = {10, 5, 2.5, NAN}, paper[] = {NAN, 7.5, NAN, NAN};
  bars_panel panel = {.title = "t",
                      .axis = "a",
                      .groups = groups,
                      .series = series,
                      .group_count = 2,
                      .series_count = 2,
                      .ours = ours,
                      .paper = paper,
                      .line = NAN};
  char *svg = draw(panel), *again = draw(panel);
  assert_string_equal(svg, again);
  assert_non_null(strstr(svg, "a &lt; b"));
  assert_int_equal(count(svg, "<title>"), 4); /* three bars, one mark */
  /* 70 + 505 per group, a tenth of it free on each side; 10 of 10 is 300 high, 5 is 150, 2.5 is 75 */
  assert_non_null(strstr(svg, "x=\"120.5\" y=\"92.0\" width=\"185.8\" height=\"300.0\" fill=\"#0072b2\""));
  assert_non_null(strstr(svg, "x=\"322.5\" y=\"242.0\" width=\"185.8\" height=\"150.0\" fill=\"#e69f00\""));
  assert_non_null(strstr(svg, "x=\"625.5\" y=\"317.0\" width=\"185.8\" height=\"75.0\" fill=\"#0072b2\""));
  assert_non_null(strstr(
      svg,
      "x1=\"320.5\" y1=\"167.0\" x2=\"510.3\" y2=\"167.0\" stroke=\"#000\" stroke-width=\"3\"><title>paper: 7.5</title>"));
  assert_int_equal(count(svg, "the paper's value"), 1);
  free(svg);
  free(again);
}

/* From 1 to 100: 10 is in the middle. What is not positive has no place on it. */
static void test_logarithmic(void **state) {
  double ours[] = {10, 100, 0, -3}, paper[] = {NAN, NAN, NAN, NAN};
  char *svg = draw((bars_panel){.title = "t",
                                .axis = "a",
                                .groups = groups,
                                .series = series,
                                .group_count = 2,
                                .series_count = 2,
                                .ours = ours,
                                .paper = paper,
                                .logarithmic = true,
                                .line = 1,
                                .line_label = "equal"});
  assert_int_equal(count(svg, "<title>"), 2);
  assert_int_equal(count(svg, "the paper's value"), 0);
  assert_int_equal(count(svg, ">equal<"), 1);
  assert_non_null(strstr(svg, ">100<"));
  free(svg);
}

/* Forty groups of 25.25 pixels: two curves instead of bars, one of them with a gap; a name below every fourth. */
static void test_curves(void **state) {
  enum { GROUPS = 40 };
  static const char *names[GROUPS];
  double ours[2 * GROUPS], paper[2 * GROUPS];
  for (uint32_t i = 0; i < GROUPS; i++) {
    names[i] = i == 3 ? "fourth" : "other";
    ours[2 * i] = 10;
    ours[2 * i + 1] = i == 0 ? NAN : 5;
    paper[2 * i] = paper[2 * i + 1] = NAN;
  }
  paper[2 * 39] = 7.5;
  char *svg = draw((bars_panel){.title = "t",
                                .axis = "a",
                                .groups = names,
                                .series = series,
                                .group_count = GROUPS,
                                .series_count = 2,
                                .ours = ours,
                                .paper = paper,
                                .line = NAN});
  assert_non_null(strstr(svg, "<polyline points=\"82.6,92.0 107.9,92.0 "));
  assert_non_null(strstr(svg, "<polyline points=\"107.9,242.0 133.1,242.0 "));
  assert_int_equal(count(svg, "/>\n"), count(svg, "<line") - 1 + count(svg, "<rect") + 2); /* the mark has a title */
  assert_non_null(strstr(
      svg,
      "x1=\"1060.4\" y1=\"167.0\" x2=\"1074.4\" y2=\"167.0\" stroke=\"#000\" stroke-width=\"3\"><title>paper: 7.5</title>"));
  assert_int_equal(count(svg, ">fourth<"), 1);
  assert_int_equal(count(svg, ">other<"), 9);
  free(svg);
}

/* A legend that is wider than the picture goes on in the next line, and the plot begins below that. */
static void test_long_legend(void **state) {
  static const char *long_series[] = {
      "a name of more than half of the picture, which is a thousand and one hundred pixels wide, as everybody knows",
      "another one of the same length, so that there is no room for both of them in one line of the legend above"};
  double ours[] = {10, 5, 2.5, 1}, paper[] = {NAN, NAN, NAN, NAN};
  char *svg = draw((bars_panel){.title = "t",
                                .axis = "a",
                                .groups = groups,
                                .series = long_series,
                                .group_count = 2,
                                .series_count = 2,
                                .ours = ours,
                                .paper = paper,
                                .line = NAN});
  assert_non_null(strstr(svg, "x=\"70.0\" y=\"62.0\" width=\"12\" height=\"12\" fill=\"#0072b2\""));
  assert_non_null(strstr(svg, "x=\"70.0\" y=\"82.0\" width=\"12\" height=\"12\" fill=\"#e69f00\""));
  assert_non_null(strstr(svg, "x=\"120.5\" y=\"112.0\" width=\"185.8\" height=\"300.0\" fill=\"#0072b2\""));
  free(svg);
}

static void test_nothing(void **state) {
  double none[] = {NAN, INFINITY, NAN, NAN};
  for (int logarithmic = 0; logarithmic < 2; logarithmic++) {
    char *svg = draw((bars_panel){.title = "t",
                                  .axis = "a",
                                  .groups = groups,
                                  .series = series,
                                  .group_count = 2,
                                  .series_count = 2,
                                  .ours = none,
                                  .paper = none,
                                  .logarithmic = logarithmic,
                                  .line = NAN});
    assert_int_equal(count(svg, "<title>"), 0);
    assert_int_equal(count(svg, "nan") + count(svg, "inf"), 0);
    assert_non_null(strstr(svg, "</svg>\n"));
    free(svg);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_linear), cmocka_unit_test(test_logarithmic),
                                     cmocka_unit_test(test_curves), cmocka_unit_test(test_long_legend),
                                     cmocka_unit_test(test_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
