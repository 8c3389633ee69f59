/* SPDX-License-Identifier: Apache-2.0 */
/* Programs side by side: which simulations a matrix takes, its arithmetic on made-up outcomes, its texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "share/share_matrix.h"
#include "share/share_private.h"

static machine_spec spec;

static void make(share_matrix *m, uint32_t parts) {
  assert_int_equal(machine_spec_load("gtx1080", &spec, NULL), FF_OK);
  *m = (share_matrix){.spec = &spec,
                      .machine = "gtx1080",
                      .manager = "copy",
                      .partitions = "as said",
                      .part_count = parts,
                      .isolations = {SHARE_SM, SHARE_SM_MEMORY},
                      .isolation_count = 2};
  for (uint32_t i = 0; i < parts; i++) m->parts[i] = (share_part){1.0 / parts, 1.0 / parts};
  assert_int_equal(share_matrix_add(m, "runs/a.fft"), 0);
  assert_int_equal(share_matrix_add(m, "runs/b.fft"), 1);
  assert_int_equal(share_matrix_add(m, "runs/a.fft"), 0);
  m->measured_count = m->interferer_count = 2;
  m->measured[1] = m->interferers[1] = 1;
  share_matrix_start(m);
}

static void put(share_matrix *m, uint32_t cell, double us, double unused) {
  share_request request;
  share_matrix_request(m, cell, &request);
  share_outcome *o = ff_alloc(request.count * sizeof *o);
  o[0] = (share_outcome){.kernel_us = us, .total_us = us + 1, .launches = 4, .sms = 10, .dram_unused_gbs = unused};
  share_matrix_put(m, cell, o, NULL);
}

/* T(a): alone 100, none 210, with a 220, with b 315; T(b): alone 50, none 80, with a 80, with b 120. */
static void fill(share_matrix *m) {
  static const double times[2][3] = {{210, 220, 315}, {80, 80, 120}};
  put(m, share_matrix_alone(m, 0), 100, 0);
  put(m, share_matrix_alone(m, 1), 50, 0);
  for (uint32_t a = 0; a < 2; a++)
    for (uint32_t column = 0; column < 3; column++) {
      put(m, share_matrix_cell(m, 0, a, column), times[a][column], column ? 0 : 100);
      put(m, share_matrix_cell(m, 1, a, column), times[a][0] * (column ? 1.02 : 1), column ? 0 : 160);
    }
}

static void test_cells(void **state) {
  share_matrix m;
  share_request r;
  make(&m, 4);
  assert_int_equal(m.cell_count, 2 + 2 * 2 * 3);
  bool seen[14] = {0};
  for (uint32_t a = 0; a < 2; a++) {
    seen[share_matrix_alone(&m, a)] = true;
    for (uint32_t i = 0; i < 2; i++)
      for (uint32_t column = 0; column < 3; column++) {
        uint32_t cell = share_matrix_cell(&m, i, a, column);
        assert_false(seen[cell]);
        seen[cell] = true;
        share_matrix_request(&m, cell, &r);
        assert_int_equal(r.count, 4);
        assert_int_equal(r.isolation, i ? SHARE_SM_MEMORY : SHARE_SM);
        assert_int_equal(r.programs[0], a);
        /* the same one in all others; -1: idle */
        for (int p = 1; p < 4; p++) assert_int_equal(r.programs[p], (int)column - 1);
      }
  }
  for (int i = 0; i < 14; i++) assert_true(seen[i]);
  share_matrix_request(&m, share_matrix_alone(&m, 1), &r);
  assert_int_equal(r.count, 1);
  assert_int_equal(r.isolation, SHARE_NONE);
  assert_int_equal(r.programs[0], 1);
  assert_true(r.parts[0].sm == 1 && r.parts[0].memory == 1);
  assert_int_equal(share_matrix_missing(&m), 14);
  share_matrix_free(&m);
}

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static void test_arithmetic(void **state) {
  share_matrix m;
  uint32_t worst = 0;
  make(&m, 2);
  fill(&m);
  assert_int_equal(share_matrix_missing(&m), 0);
  NEAR(share_over_none(&m, 0, 0, 2), 1.5);
  NEAR(share_variation(&m, 0, 0, &worst), 50);
  assert_int_equal(worst, 2);
  NEAR(share_variation(&m, 0, 1, NULL), 50);
  NEAR(share_normalised(&m, 0, 0, 0), 210 / (2 * 100.0)); /* equal shares: n times the time alone */
  NEAR(share_normalised(&m, 0, 1, 2), 120 / (2 * 50.0));
  NEAR(share_variation(&m, 1, 0, NULL), 2);
  share_summary s = share_summarise(&m, 0), t = share_summarise(&m, 1);
  NEAR(s.variation_average, 50);
  NEAR(s.variation_most, 50);
  assert_int_equal(s.most_a, 0); /* of equals the first */
  NEAR(s.normalised_none, (1.05 + 0.8) / 2);
  NEAR(s.normalised_worst, (1.575 + 1.2) / 2);
  NEAR(s.unused_gbs, 100);
  NEAR(t.unused_gbs, 160);
  NEAR(t.variation_average, 2);
  m.parts[0] = (share_part){0.25, 0.5};
  NEAR(share_normalised(&m, 0, 0, 0), 210 / (100 / 0.25)); /* by the share of SMs */
  share_matrix_free(&m);
}

/* An interferer that makes it faster: the variation is below 0, not hidden. */
static void test_faster(void **state) {
  share_matrix m;
  make(&m, 2);
  fill(&m);
  for (uint32_t column = 1; column < 3; column++) put(&m, share_matrix_cell(&m, 0, 0, column), 189, 0);
  NEAR(share_variation(&m, 0, 0, NULL), -10);
  NEAR(share_summarise(&m, 0).variation_average, 20);
  share_matrix_free(&m);
}

static void test_nothing_has_no_sign(void **state) {
  assert_false(signbit(share_percent(-0.049)));
  assert_true(share_percent(-0.051) == -0.051 && share_percent(0.049) == 0.049 && isnan(share_percent(NAN)));
}

static void test_what_is_missing(void **state) {
  share_matrix m;
  make(&m, 2);
  assert_true(isnan(share_variation(&m, 0, 0, NULL)));
  assert_true(isnan(share_summarise(&m, 0).variation_average));
  fill(&m);
  share_matrix_put(&m, share_matrix_cell(&m, 0, 0, 2), NULL, "ended by signal 9"); /* its worst: what is left counts */
  NEAR(share_variation(&m, 0, 0, NULL), (220 / 210.0 - 1) * 100);
  share_outcome *bad = ff_alloc(2 * sizeof *bad);
  bad[0].kernel_us = 5;
  snprintf(bad[1].error, sizeof bad[1].error, "no memory");
  share_matrix_put(&m, share_matrix_cell(&m, 0, 1, 0), bad, NULL); /* an error of any program is one of the cell */
  assert_string_equal(m.cells[share_matrix_cell(&m, 0, 1, 0)].error, "no memory");
  assert_true(isnan(share_over_none(&m, 0, 1, 1)));
  put(&m, share_matrix_cell(&m, 1, 0, 0), 0, 0); /* no kernel */
  assert_true(isnan(share_normalised(&m, 1, 0, 0)));
  assert_int_equal(share_matrix_missing(&m), 2);
  share_matrix_free(&m);
}

static void test_labels(void **state) {
  static const struct {
    const char *path, *label;
  } names[] = {{"x/mm.fft", "x/mm"},     {"y/mm.fft", "y/mm"}, {"y/va.fft", "va"},      {"va2", "va2"},
               {"none.fft", "none.fft"}, {".fft", ".fft"},     {"z/none.fft", "z/none"}};
  share_matrix m = {0};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) share_matrix_add(&m, names[i].path);
  share_matrix_start(&m);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    assert_string_equal(m.programs.items[i].label, names[i].label);
  for (uint32_t i = (uint32_t)m.programs.count; i < SHARE_RECORDINGS; i++) {
    char path[16];
    snprintf(path, sizeof path, "p%u", i);
    assert_int_equal(share_matrix_add(&m, path), i);
  }
  assert_int_equal(share_matrix_add(&m, "one too many"), -1);
  assert_int_equal(share_matrix_add(&m, "va2"), 3);
  share_matrix_free(&m);
}

static void test_texts(void **state) {
  share_matrix m;
  ff_text table = {0}, csv = {0}, json = {0}, svg = {0};
  make(&m, 2);
  fill(&m);
  share_matrix_put(&m, share_matrix_cell(&m, 1, 1, 2), NULL, "broken");
  share_matrix_table(&m, &table);
  assert_non_null(strstr(table.chars, "variation: 50.0 % on average, 50.0 % at most (a beside b)"));
  share_matrix_csv(&m, &csv);
  uint32_t rows = 0, commas = 0, least = UINT32_MAX, most = 0;
  for (const char *c = csv.chars; *c; c++) {
    commas += *c == ',';
    if (*c != '\n') continue;
    rows++;
    least = commas < least ? commas : least;
    most = commas > most ? commas : most;
    commas = 0;
  }
  assert_int_equal(rows, 1 + 14 - 1);
  assert_int_equal(least, most);
  assert_non_null(strstr(csv.chars, "\nsm,a,b,1.5,1.575,315,316,4,"));
  share_matrix_json(&m, &json);
  json_t *root = json_loads(json.chars, 0, NULL);
  assert_non_null(root);
  json_t *cell = json_array_get(
      json_object_get(
          json_array_get(json_object_get(json_array_get(json_object_get(root, "isolations"), 1), "rows"), 1), "beside"),
      2);
  assert_string_equal(json_string_value(json_object_get(cell, "error")), "broken");
  assert_true(json_is_null(json_object_get(cell, "over_none")));
  json_decref(root);
  share_matrix_svg(&m, "below", &svg);
  assert_non_null(strstr(svg.chars, "<title>1.1 to 1.57</title>")); /* the whisker of a under sm */
  free(table.chars);
  free(csv.chars);
  free(json.chars);
  free(svg.chars);
  share_matrix_free(&m);
}

/* Rows and columns of tiers are there where an outcome has some, each line of the CSV as long as its head. */
static void test_tiers(void **state) {
  share_matrix m;
  ff_text table = {0}, csv = {0}, json = {0};
  make(&m, 2);
  fill(&m);
  share_matrix_table(&m, &table);
  share_matrix_csv(&m, &csv);
  assert_null(strstr(table.chars, "below GPU memory"));
  assert_null(strstr(csv.chars, "tier"));
  free(table.chars);
  free(csv.chars);
  table = csv = (ff_text){0};
  sim_tiers two = {.count = 2, .of = {{.name = "host", .capacity = 4096}, {.name = "nvme", .wait_ps = 5000000}}};
  share_outcome *o = m.cells[share_matrix_cell(&m, 0, 1, 2)].outcomes;
  o[0].tiers = o[1].tiers = two;
  share_matrix_table(&m, &table);
  assert_non_null(strstr(table.chars,
                         "\n  below GPU memory  beside  tier     holds  peak  read  written  waits   waited\n"
                         "  b                 b       host  4.00 KiB   0 B   0 B      0 B      0      0 s\n"
                         "                            nvme         -   0 B   0 B      0 B      0  5.00 us\n"
                         "  variation"));
  share_matrix_csv(&m, &csv);
  assert_non_null(strstr(csv.chars, ",tier1_name,tier1_capacity_bytes,tier1_peak_bytes,"));
  assert_non_null(strstr(csv.chars, ",host,4096,0,0,0,0,0,nvme,0,0,0,0,0,5000000\n"));
  assert_int_equal(strchr(csv.chars, '\0')[-2], ','); /* the last row has none */
  share_matrix_json(&m, &json);
  assert_non_null(strstr(json.chars, "\"wait_ps\": 5000000"));
  free(table.chars);
  free(csv.chars);
  free(json.chars);
  share_matrix_free(&m);
}

static void test_outcomes(void **state) {
  share_outcome in[2] = {{.kernel_us = 1.0 / 3,
                          .total_us = 2,
                          .launches = UINT64_C(1) << 53,
                          .sms = 7,
                          .colours = 1,
                          .take_back_us = 1e-9,
                          .tiers = {.count = 2, .of = {{"host", 1, 2, 3, 4, 5, 6}, {"nvme", 7, 8, 9, 10, 11, 12}}},
                          .error = "\"oh\xff\""},
                         {.passes = 3}},
                out[2];
  ff_text text = {0};
  ff_error error;
  share_outcomes_write(in, 2, &text);
  assert_int_equal(share_outcomes_read("it", text.chars, text.length, out, 2, &error), FF_OK);
  assert_true(out[0].kernel_us == in[0].kernel_us && out[0].take_back_us == in[0].take_back_us &&
              out[0].launches == in[0].launches);
  assert_int_equal(out[0].sms, 7);
  assert_int_equal(out[1].passes, 3);
  assert_memory_equal(&out[0].tiers, &in[0].tiers, sizeof in[0].tiers);
  assert_int_equal(out[1].tiers.count, 0);
  assert_string_equal(out[0].error, "\"oh?\"");
  assert_int_equal(share_outcomes_read("it", text.chars, text.length, out, 1, &error), FF_PARSE);
  assert_string_equal(error.message, "it: not the outcomes of 1 programs");
  assert_int_equal(share_outcomes_read("it", text.chars, text.length / 2, out, 2, &error), FF_PARSE);
  char *at = strstr(text.chars, "\"sms\": 7");
  memcpy(at + 7, "-", 1);
  assert_int_equal(share_outcomes_read("it", text.chars, text.length, out, 2, &error), FF_PARSE);
  memcpy(at + 7, " ", 1);
  memcpy(strstr(text.chars, "\"wait_ps\": 6") + 11, "-", 1);
  assert_int_equal(share_outcomes_read("it", text.chars, text.length, out, 2, &error), FF_PARSE);
  free(text.chars);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cells),    cmocka_unit_test(test_arithmetic),
      cmocka_unit_test(test_faster),   cmocka_unit_test(test_what_is_missing),
      cmocka_unit_test(test_labels),   cmocka_unit_test(test_texts),
      cmocka_unit_test(test_outcomes), cmocka_unit_test(test_nothing_has_no_sign),
      cmocka_unit_test(test_tiers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
