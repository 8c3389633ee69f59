/* SPDX-License-Identifier: Apache-2.0 */
/* Reproductions: the rows' formulas on made-up counters, exactly; what is written; and that the papers' tables and the
 * committed results fit together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "farfault/trace.h"
#include "reproduce/repro_private.h"
#include "unit/near.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Three programs under copy (a second each), slow (2, 4, 8 s) and quick (0.5, 4, 1 s). */
static const repro_program programs[] = {
    {"one", "vectoradd", {"1", "2", "3"}, {1, 1, 1}},
    {"two", "vectoradd", {"1", "2", "3"}, {1, 1, 1}},
    {"three", "vectoradd", {"1", "2", "3"}, {1, 1, 1}},
};
static const repro_setting settings[] = {{"copy", "copy", NULL}, {"slow", "demand", NULL}, {"quick", "replay", NULL}};
static double own(const repro_measured *a, const repro_measured *b) { return repro_time_ratio(a, b) + 1; }
static const repro_row rows[] = {
    {"geometric", 2, REPRO_GEOMETRIC, repro_time_ratio, "slow", "copy", NULL, 0, false},
    {"arithmetic, with a comma", REPRO_NONE, REPRO_ARITHMETIC, repro_time_ratio, "slow", "copy", NULL, 0, false},
    {"highest", 16, REPRO_HIGHEST, repro_time_ratio, "slow", "copy", NULL, 0, false},
    {"lowest", 1, REPRO_LOWEST, repro_time_ratio, "slow", "copy", NULL, 0, false},
    {"share", 1, REPRO_SHARE, repro_time_ratio, "slow", "copy", NULL, 4, false},
    {"one", 1, REPRO_ONE, repro_speedup, "quick", "copy", "one", 0, false},
    {"best", 1, REPRO_GEOMETRIC, repro_time_ratio, "slow|quick", "copy", NULL, 0, false},
    {"best, the other way", 1, REPRO_ARITHMETIC, repro_time_ratio, "slow|quick", "copy", NULL, 0, true},
    {"worst of each", 1, REPRO_ARITHMETIC, repro_speedup, "slow+quick", "copy", NULL, 0, false},
    {"faults", 7, REPRO_ARITHMETIC, repro_faults, "slow", NULL, NULL, 0, false},
    {"in order", 1, REPRO_ORDERED, repro_time_ratio, "copy|quick|slow", "copy", NULL, 0, false},
    {"not in order", 1, REPRO_ORDERED, repro_time_ratio, "slow|copy|quick", "copy", NULL, 0, false},
    {"own", 1.5, REPRO_ONE, own, "quick", "copy", "one", 0, false},
    {"over the product", REPRO_NONE, REPRO_GEOMETRIC, repro_time_ratio, "quick=slow&slow", "copy", NULL, 0, false},
    {"less the sum", REPRO_NONE, REPRO_ARITHMETIC, repro_time_saved, "quick=slow&copy", "copy", NULL, 0, false},
};
static const repro_quantity gains[] = {own, NULL};
static const repro_note notes[] = {{"high", true, "made so"}, {"lo", false, "half the size"}, {NULL, false, NULL}};
static const repro_panel panels[] = {{"Title",
                                      "axis",
                                      "geometric mean",
                                      repro_time_ratio,
                                      REPRO_GEOMETRIC,
                                      true,
                                      1,
                                      "equal",
                                      {{"slow & <steady>", "slow", "copy"}},
                                      1}};
static const repro_paper paper = {.name = "made-up",
                                  .title = "Nobody: \"Nothing\"",
                                  .machine = "gtx480",
                                  .programs = programs,
                                  .settings = settings,
                                  .rows = rows,
                                  .panels = panels,
                                  .gains = gains,
                                  .notes = notes,
                                  .program_count = COUNT(programs),
                                  .setting_count = COUNT(settings),
                                  .row_count = COUNT(rows),
                                  .panel_count = COUNT(panels)};

static void put_time(repro_data *data, uint32_t program, uint32_t setting, double seconds) {
  repro_measured measured = {.counters = {.time_ps = (uint64_t)(seconds * 1e12), .faults = 6}};
  repro_put(data, program, setting, &measured);
}

static void fill(repro_data *data) {
  static const double slow[] = {2, 4, 8}, quick[] = {0.5, 4, 1};
  repro_data_start(data, &paper);
  for (uint32_t i = 0; i < 3; i++) {
    put_time(data, i, 0, 1);
    put_time(data, i, 1, slow[i]);
    put_time(data, i, 2, quick[i]);
  }
}

static double value(const repro_data *data, const char *name) {
  for (size_t i = 0; i < COUNT(rows); i++)
    if (!strcmp(rows[i].name, name)) return repro_value(data, &rows[i], NULL);
  fail();
  return 0;
}

static void test_means(void **state) {
  repro_data data;
  fill(&data);
  assert_within(value(&data, "geometric"), 4, 1e-12);
  assert_within(value(&data, "arithmetic, with a comma"), 14.0 / 3, 1e-12);
  assert_within(value(&data, "highest"), 8, 0);
  assert_within(value(&data, "lowest"), 2, 0);
  assert_within(value(&data, "share"), 2.0 / 3, 1e-12);
  assert_within(value(&data, "one"), 2, 0);
  assert_within(value(&data, "best"), cbrt(2), 1e-12);
  assert_within(value(&data, "best, the other way"), 14.0 / 3, 1e-12);
  assert_within(value(&data, "worst of each"), (2 + 0.25 + 1) / 3.0, 1e-12); /* each program's higher one */
  /* 0.5 / (2 * 2), 4 / (4 * 4), 1 / (8 * 8); 0.5, -3 and 0 are saved, apart -1, -3 and -7 */
  assert_within(value(&data, "over the product"), cbrt(1.0 / 2048), 1e-12);
  assert_within(value(&data, "less the sum"), (1.5 + 0 + 7) / 3, 1e-12);
  repro_data_free(&data);
}

/* What was not measured does not count; over nothing there is no mean. */
static void test_missing(void **state) {
  repro_data data;
  uint32_t count;
  repro_data_start(&data, &paper);
  for (size_t i = 0; i < COUNT(rows); i++) {
    assert_true(isnan(repro_value(&data, &rows[i], &count)));
    assert_int_equal(count, 0);
  }
  put_time(&data, 1, 0, 1);
  put_time(&data, 1, 1, 3);
  put_time(&data, 2, 1, 100); /* without copy */
  assert_within(repro_value(&data, &rows[0], &count), 3, 1e-12);
  assert_int_equal(count, 1);
  assert_within(value(&data, "best"), 3, 1e-12); /* the one that was measured */
  assert_true(isnan(value(&data, "one")));
  put_time(&data, 2, 0, 0); /* a time of nothing */
  assert_within(repro_value(&data, &rows[0], &count), 3, 1e-12);
  assert_int_equal(count, 1);
  repro_data_free(&data);
  assert_true(isnan(repro_ratio(REPRO_NONE, 1)));
  assert_true(isnan(repro_ratio(1, REPRO_NONE)));
  assert_true(isnan(repro_ratio(0, 1)));
  assert_within(repro_ratio(4, 1), 0.25, 0);
}

static void test_quantities(void **state) {
  const repro_measured a = {.counters = {.time_ps = 4000000,
                                         .kernel_ps = 3000000,
                                         .transfer_ps = 1000000,
                                         .h2d_busy_ps = 600000,
                                         .footprint_bytes = 5000000,
                                         .faults = 7,
                                         .tlb_lookups = 10,
                                         .tlb_misses = 4,
                                         .h2d_bytes = 300,
                                         .launches = 2}};
  const repro_measured b = {.counters = {.time_ps = 5000000, .kernel_ps = 4000000, .h2d_bytes = 200}}, none = {0};
  assert_within(repro_time_ratio(&a, &b), 0.8, 1e-12);
  assert_within(repro_speedup(&a, &b), 1.25, 1e-12);
  /* what b does not copy: 100 of 300 bytes, in 0.3 us, as it copies 200 in 0.6; a copies more than its footprint */
  const repro_measured copies = {
      .counters = {.time_ps = 5000000, .h2d_busy_ps = 600000, .h2d_bytes = 200, .footprint_bytes = 300}};
  const repro_measured again = {
      .counters = {.time_ps = 5000000, .h2d_busy_ps = 600000, .h2d_bytes = 300, .footprint_bytes = 200}};
  assert_within(repro_time_over_all_copied(&a, &copies), 4.0 / 5.3, 1e-12);
  assert_within(repro_speed_over_all_copied(&a, &copies), 5.3 / 4, 1e-12);
  assert_within(repro_time_over_all_copied(&a, &again), 0.8, 1e-12);
  assert_true(isnan(repro_time_over_all_copied(&a, &none)));
  assert_true(repro_is_gain(repro_time_over_all_copied) && repro_is_gain(repro_speed_over_all_copied));
  assert_within(repro_time_lost(&b, &a), 0.2, 1e-12);
  assert_within(repro_time_saved(&a, &b), 0.2, 1e-12);
  assert_within(repro_kernel_speedup(&a, &b), 4.0 / 3, 1e-12);
  assert_within(repro_kernel_saved(&a, &b), 0.25, 1e-12);
  assert_within(repro_link_used(&a, NULL), 0.2, 1e-12);
  assert_within(repro_overlap_saved(&a, NULL), 0.25, 1e-12);
  assert_within(repro_transfer_share(&a, NULL), 0.25, 1e-12);
  assert_within(repro_footprint(&a, NULL), 5, 1e-12);
  assert_within(repro_faults(&a, NULL), 7, 0);
  assert_within(repro_tlb_misses(&a, NULL), 0.4, 1e-12);
  assert_within(repro_bytes_ratio(&a, &b), 1.5, 1e-12);
  assert_within(repro_launch_microseconds(&a, NULL), 2, 1e-12);
  assert_within(repro_launch_bandwidth(&a, NULL), 2500000, 1e-6);
  assert_true(isnan(repro_time_ratio(&a, &none)));
  assert_true(isnan(repro_tlb_misses(&none, NULL)));
  assert_true(isnan(repro_overlap_saved(&none, NULL)));
  assert_true(isnan(repro_launch_microseconds(&none, NULL)));
}

static void test_csv(void **state) {
  repro_data data;
  ff_text out = {0};
  fill(&data);
  repro_csv(&data, &out);
  assert_string_equal(out.chars, "row,paper,ours,ratio,claim,score,within,note\n"
                                 "geometric,2,4,2,gain,3,no,\n"
                                 "\"arithmetic, with a comma\",,4.66667,,,,,\n"
                                 "highest,16,8,0.5,gain,0.466667,fitted,made so\n"
                                 "lowest,1,2,2,gain,,,half the size\n"
                                 "share,1,0.666667,0.666667,value,0.666667,no,\n"
                                 "one,1,2,2,gain,,,\n"
                                 "best,1,1.25992,1.25992,gain,,,\n"
                                 "\"best, the other way\",1,4.66667,4.66667,gain,,,\n"
                                 "worst of each,1,1.08333,1.08333,gain,,,\n"
                                 "faults,7,6,0.857143,value,0.857143,yes,\n"
                                 "in order,1,1,1,order,1,yes,\n"
                                 "not in order,1,0.5,0.5,order,0.5,no,\n"
                                 "own,1.5,1.5,1,gain,1,yes,\n"
                                 "over the product,,0.0787451,,,,,\n"
                                 "less the sum,,2.83333,,,,,\n");
  repro_tally tally = repro_count(&data);
  assert_int_equal(tally.rows, 6);
  assert_int_equal(tally.near, 3);
  assert_int_equal(tally.fitted, 1);
  free(out.chars);
  repro_data_free(&data);
}

/* 1.30 against 1.21 is 0.7 of the gain, and 0.9 against 0.8 half of what was saved. An edge belongs to it. */
static void test_scores(void **state) {
  static const repro_row gain = {"x", 1.3, REPRO_GEOMETRIC, repro_speedup, "slow", "copy", NULL, 0, false},
                         saved = {"x", 0.8, REPRO_GEOMETRIC, repro_time_ratio, "slow", "copy", NULL, 0, false},
                         plain = {"x", 4, REPRO_GEOMETRIC, repro_faults, "slow", NULL, NULL, 0, false};
  assert_within(repro_score(&paper, &gain, 1.21), 0.7, 1e-12);
  assert_within(repro_score(&paper, &gain, 0.94), -0.2, 1e-12);
  assert_within(repro_score(&paper, &saved, 0.9), 0.5, 1e-12);
  assert_within(repro_score(&paper, &plain, 3), 0.75, 0);
  assert_true(isnan(repro_score(&paper, &plain, REPRO_NONE)));
  assert_true(repro_near(&paper, &plain, 0.75) && repro_near(&paper, &plain, 1.25));
  assert_false(repro_near(&paper, &plain, 0.7499) || repro_near(&paper, &plain, 1.2501));
}

/* The table and the JSON say the same; the picture has ours as bars and the paper's as marks. */
static void test_texts(void **state) {
  repro_data data;
  ff_text table = {0}, json = {0}, svg = {0}, again = {0};
  fill(&data);
  repro_table(&data, true, &table);
  assert_non_null(strstr(table.chars, "\ngeometric                     2       4      3  no\n"));
  assert_non_null(strstr(table.chars, "\narithmetic, with a comma      -    4.67      -\n"));
  assert_non_null(
      strstr(table.chars,
             "Title (axis)\n  program  slow & <steady>\n  one                    2\n  two                    4\n"));
  repro_json(&data, REPRO_FULL, &json);
  assert_non_null(strstr(json.chars, "\"size\": \"full\""));
  assert_non_null(strstr(json.chars, "\"paper\": null"));
  assert_non_null(strstr(json.chars, "\"time_ps\": 8000000000000"));
  repro_svg(&data, REPRO_SMALL, &svg);
  assert_non_null(strstr(svg.chars, "Nobody: &quot;Nothing&quot;"));
  assert_non_null(strstr(svg.chars, "slow &amp; &lt;steady&gt;"));
  assert_non_null(strstr(svg.chars, "<title>paper: 2</title>")); /* the row with the same formula */
  repro_svg(&data, REPRO_SMALL, &again);
  assert_string_equal(svg.chars, again.chars);
  free(table.chars);
  free(json.chars);
  free(svg.chars);
  free(again.chars);
  repro_data_free(&data);
}

static const repro_row own_rows[] = {
    {"slow and quick: speed over the product", REPRO_NONE, REPRO_GEOMETRIC, repro_speedup, "quick=slow&copy", "copy",
     NULL, 0, false},
    {"quick: speed", REPRO_NONE, REPRO_GEOMETRIC, repro_speedup, "quick", "copy", NULL, 0, false}};

static void write_page(const repro_paper *which, repro_size size, ff_text *out) {
  repro_page page = {0};
  repro_data data;
  fill(&data);
  data.paper = which;
  repro_page_add(&page, &data, size);
  repro_page_write(&page, out);
  repro_page_free(&page);
  data.paper = &paper;
  repro_data_free(&data);
}

/* Where the paper has numbers ours stand next to them; where none has, ideas apart and together, and each picture's
 * numbers. */
static void test_page(void **state) {
  ff_text page = {0}, own_page = {0};
  write_page(&paper, REPRO_NORMAL, &page);
  assert_non_null(strstr(page.chars, "<tr class=\"no\"><td>geometric</td><td class=\"n\">2</td><td class=\"n\">4</td>"
                                     "<td class=\"n\">3</td><td class=\"w\">no</td>"));
  assert_null(strstr(page.chars, "alone"));
  assert_null(strstr(page.chars, "small"));
  repro_paper ours = paper;
  ours.rows = own_rows;
  ours.row_count = COUNT(own_rows);
  write_page(&ours, REPRO_SMALL, &own_page);
  assert_non_null(strstr(own_page.chars, "The programs are small ones"));
  /* slow 1/4, copy 1, quick cbrt(1/2) of copy's speed: over the product cbrt(32); 4, 1 and 8 of the programs */
  assert_non_null(strstr(own_page.chars, "<td>slow and quick</td><td class=\"n less\">0.25</td>"
                                         "<td class=\"n\">1</td><td class=\"n less\">0.794</td>"
                                         "<td class=\"n more\">3.17</td><td class=\"n\">1</td>"
                                         "<td class=\"n more\">8</td></tr>"));
  assert_non_null(strstr(own_page.chars, "<th class=\"n\">slow &amp; &lt;steady&gt;</th></tr>\n<tr><td>one</td>"
                                         "<td class=\"n more\">2</td></tr>\n<tr><td>two</td>"));
  assert_non_null(strstr(own_page.chars, "<tr><td>geometric mean</td><td class=\"n more\">4</td></tr>\n</table>"));
  assert_non_null(strstr(own_page.chars, "<tr class=\"\"><td>quick: speed</td><td class=\"n\">0.794</td></tr>"));
  assert_null(strstr(own_page.chars, "<th class=\"n\">paper</th><th class=\"n\">ours"));
  free(page.chars);
  free(own_page.chars);
}

/* ---- the papers' tables ---- */

static void check_key(const repro_paper *p, const char *keys) {
  char copy[256], *rest = NULL;
  assert_true(strlen(keys) < sizeof copy);
  strcpy(copy, keys);
  for (char *key = strtok_r(copy, "|+=&", &rest); key; key = strtok_r(NULL, "|+=&", &rest))
    if (repro_setting_index(p, key) < 0) fail_msg("%s: no setting '%s'", p->name, key);
}

static void check_rows(const repro_paper *p) {
  for (uint32_t i = 0; i < p->row_count; i++) {
    const repro_row *row = &p->rows[i];
    check_key(p, row->a);
    if (row->b) check_key(p, row->b);
    if (row->mean == REPRO_ONE && repro_program_index(p, row->program) < 0)
      fail_msg("%s: no program '%s'", p->name, row->program);
    if (row->paper == 1 && repro_claim_of(p, row) == REPRO_GAIN)
      fail_msg("%s: '%s': gains nothing", p->name, row->name);
    if (!isnan(row->paper) && row->paper <= 0) fail_msg("%s: '%s': the paper's number", p->name, row->name);
    if (strpbrk(row->name, "\"\n\r")) fail_msg("%s: '%s' cannot be written as it is", p->name, row->name);
    for (uint32_t j = 0; j < i; j++)
      if (!strcmp(row->name, p->rows[j].name)) fail_msg("%s: two rows '%s'", p->name, row->name);
  }
}

static void check_programs(const repro_paper *p, const char *workloads) {
  for (uint32_t i = 0; i < p->program_count; i++) {
    char start[64];
    snprintf(start, sizeof start, "\n%s\t", p->programs[i].workload ? p->programs[i].workload : "");
    if (!p->programs[i].workload) assert_non_null(p->shares);
    else if (!strstr(workloads, start)) fail_msg("%s: no workload '%s'", p->name, p->programs[i].workload);
    assert_int_equal(repro_program_index(p, p->programs[i].label), i);
    for (int size = 0; size < REPRO_SIZES; size++) {
      assert_non_null(p->programs[i].arguments[size]);
      assert_true(p->programs[i].seconds[size] > 0);
    }
  }
}

/* Each note is of some row, and can stand at the end of a line of CSV. */
static void check_notes(const repro_paper *p) {
  for (const repro_note *note = p->notes; note && note->start; note++) {
    bool any = false;
    for (uint32_t i = 0; i < p->row_count; i++) any = any || repro_note_of(p, &p->rows[i]) == note;
    if (!any) fail_msg("%s: no row begins with '%s'", p->name, note->start);
    if (strpbrk(note->text, ",\"\n")) fail_msg("%s: the note '%s'", p->name, note->text);
  }
}

/* Every share has a place for all its programs, and every program settings. */
static void check_shares(const repro_paper *p) {
  for (uint32_t i = 0; i < p->setting_count && p->shares; i++) {
    const repro_share *share = &p->shares[i];
    assert_in_range(share->partitions, p->recorded ? 0 : 1, SHARE_PROGRAMS);
    if (share->neighbour && strcmp(share->neighbour, "chain") && repro_program_index(p, share->neighbour) < 0)
      fail_msg("%s: no program '%s'", p->name, share->neighbour);
    if (share->bound) assert_true(share->isolation >= SHARE_SM && share->partitions > 1);
    if (strpbrk(p->settings[i].key, "|+")) fail_msg("%s: '%s' cannot stand in a list", p->name, p->settings[i].key);
  }
  for (uint32_t i = 0; i < p->program_count; i++) {
    bool any = false;
    for (uint32_t j = 0; j < p->setting_count; j++) any = any || repro_applies(p, i, j);
    assert_true(any);
  }
}

static char *jain_recording(const char *setting) {
  const repro_paper *p = repro_find("jain2019");
  return repro_recording(p, REPRO_SMALL, (uint32_t)repro_program_index(p, "VA"),
                         (uint32_t)repro_setting_index(p, setting), "kept");
}

/* Kernels that are bound are recorded for each number of SMs; the others once. A neighbour's recording is taken,
 * too. */
static void test_bound(void **state) {
  static const char *const settings[][2] = {{"1080 alone", "kept/jain2019-small-VA.fft"},
                                            {"V100/4 MPS VA", "kept/jain2019-small-VA.fft"},
                                            {"1080 CP none", "kept/jain2019-small-VA-gtx1080-1of2.fft"},
                                            {"1080 CMP VA", "kept/jain2019-small-VA-gtx1080-1of2.fft"},
                                            {"V100 CP MM", "kept/jain2019-small-VA-v100-1of2.fft"},
                                            {"V100/4 CMP VA", "kept/jain2019-small-VA-v100-1of4.fft"}};
  const repro_paper *p = repro_find("jain2019");
  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
    char *path = jain_recording(settings[i][0]);
    assert_string_equal(path, settings[i][1]);
    free(path);
  }
  uint32_t va = (uint32_t)repro_program_index(p, "VA"), chain = (uint32_t)repro_program_index(p, "n=2");
  assert_true(repro_takes(p, va, (uint32_t)repro_setting_index(p, "V100 CP none")));
  assert_true(repro_takes(p, va, (uint32_t)repro_setting_index(p, "IC CP VA"))); /* as AlexNet's neighbour */
  assert_false(repro_takes(p, va, (uint32_t)repro_setting_index(p, "IC CP MM")));
  assert_false(repro_takes(p, chain, (uint32_t)repro_setting_index(p, "SCSB"))); /* chains are not recorded */
}

/* On the GTX 1080 several launches are measured, on the V100 one; neighbours, which loop, are of one. */
static void test_launches(void **state) {
  static const struct {
    const char *program, *setting;
    bool measured, taken;
  } expected[] = {{"VAx10", "1080 alone", true, true},    {"VAx10", "1080 CMP VA", true, true},
                  {"VAx10", "V100 CP VA", false, false},  {"VA", "1080 CP none", false, false},
                  {"VA", "1080 CP VA", false, true},      {"VA", "V100/4 MPS none", true, true},
                  {"FWT", "1080 alone", true, true},      {"FWT", "V100 alone", true, true},
                  {"VAx10", "IC CP VA", false, false},    {"AlexNet", "IC CP VA", true, true},
                  {"AlexNet", "1080 CP VA", false, false}};
  const repro_paper *p = repro_find("jain2019");
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
    uint32_t program = (uint32_t)repro_program_index(p, expected[i].program),
             setting = (uint32_t)repro_setting_index(p, expected[i].setting);
    if (repro_applies(p, program, setting) != expected[i].measured ||
        repro_takes(p, program, setting) != expected[i].taken)
      fail_msg("%s under %s", expected[i].program, expected[i].setting);
  }
}

/* Figure 8's cycles are those of the machine's clock. */
static void test_clock(void **state) {
  machine_spec spec;
  setenv("FARFAULT_MACHINES", FF_SOURCE_DIR "/machines", 1);
  assert_int_equal(machine_spec_load("gtx1080", &spec, NULL), FF_OK);
  assert_within(spec.clock_mhz, REPRO_GTX1080_MHZ, 0);
  assert_int_equal(machine_spec_load("tom", &spec, NULL), FF_OK);
  assert_within(spec.stack_tx_gbs, REPRO_TOM_LINK_GBS, 0);
  assert_within(spec.stack_rx_gbs, REPRO_TOM_LINK_GBS, 0);
}

/* A setting names what a cell before it found. */
static void test_memory(void **state) {
  static const repro_setting chained[] = {{"by 0.1%", NULL, NULL},
                                          {"found", "copy+map=<by 0.1%>+stack_warps=96", NULL},
                                          {"plain", "copy", NULL},
                                          {"unknown", "copy+map=<by x>", NULL}};
  repro_paper other = paper;
  repro_data data;
  ff_text text = {0};
  repro_measured measured = {.lowest_bit = 12};
  other.settings = chained;
  other.setting_count = COUNT(chained);
  repro_data_start(&data, &other);
  assert_false(repro_memory(&data, 1, 1, &text)); /* not measured */
  repro_put(&data, 1, 0, &measured);
  assert_true(repro_memory(&data, 1, 1, &text));
  assert_string_equal(text.chars, "copy+map=12:13+stack_warps=96");
  text.length = 0;
  assert_true(repro_memory(&data, 1, 2, &text));
  assert_string_equal(text.chars, "copy");
  assert_false(repro_memory(&data, 2, 1, &text)); /* another program's */
  assert_false(repro_memory(&data, 1, 3, &text));
  measured.lowest_bit = 0;
  repro_put(&data, 1, 0, &measured);
  text.length = 0;
  assert_true(repro_memory(&data, 1, 1, &text)); /* no pair is worth it */
  assert_string_equal(text.chars, "copy+map=baseline+stack_warps=96");
  free(text.chars);
  repro_data_free(&data);
}

/* Cells to a file's text and back; what is broken or lacks a cell gives nothing. */
static void test_cells(void **state) {
  char path[] = "/tmp/test_reproduce-XXXXXX";
  int file = mkstemp(path);
  repro_data data, back;
  ff_text text = {0};
  ff_error error;
  assert_true(file >= 0);
  close(file);
  fill(&data);
  repro_data_start(&back, &paper);
  repro_cells_json(&data, 2, 1, 2, &text);
  assert_int_equal(ff_file_write(path, text.chars, text.length, NULL), FF_OK);
  assert_int_equal(repro_cells_read(&back, 2, 1, 2, path, &error), FF_OK);
  assert_within(repro_program_value(&back, 2, repro_time_ratio, "slow", "quick"), 8, 1e-12);
  assert_true(isnan(repro_program_value(&back, 2, repro_time_ratio, "slow", "copy")));
  repro_data_free(&back);
  repro_data_start(&back, &paper);
  assert_int_equal(repro_cells_read(&back, 2, 0, 3, path, &error), FF_PARSE); /* copy is not in it */
  assert_non_null(strstr(error.message, "no numbers for 'copy'"));
  for (size_t length = 0; length < text.length - 2; length += 7) {
    assert_int_equal(ff_file_write(path, text.chars, length, NULL), FF_OK);
    assert_int_equal(repro_cells_read(&back, 2, 1, 2, path, &error), FF_PARSE);
  }
  for (uint32_t i = 0; i < 9; i++) assert_false(back.cells[i].known);
  unlink(path);
  assert_int_equal(repro_cells_read(&back, 2, 1, 2, path, &error), FF_IO);
  free(text.chars);
  repro_data_free(&data);
  repro_data_free(&back);
}

/* ---- chains ---- */

typedef struct seen {
  uint32_t lines, loads[4];
  uint64_t bytes, line[128];
  hash_place place[128];
} seen;

/* What a recording of chains has: each chain's lines, with their places. */
static void read_chains(const char *path, const address_hash *hash, uint64_t physical, seen *out) {
  ff_trace_reader *reader;
  ff_trace_item item;
  uint64_t begin = 0;
  memset(out, 0, sizeof *out);
  assert_int_equal(ff_trace_open(path, &reader, NULL), FF_TRACE_OK);
  for (;;) {
    assert_int_equal(ff_trace_next(reader, &item, NULL), FF_TRACE_OK);
    if (item.kind == FF_TRACE_END) break;
    if (item.kind == FF_TRACE_OPERATION && item.operation->kind == FF_TRACE_ALLOCATE) {
      begin = item.operation->as.allocation.address;
      out->bytes = item.operation->as.allocation.bytes;
    }
    if (item.kind != FF_TRACE_RECORD || ff_trace_kind(item.record[0]) != FF_TRACE_ACCESS) continue;
    uint64_t at = physical + ff_trace_line_address(item.record[2]) - begin;
    uint32_t i = 0;
    out->loads[item.block]++;
    while (i < out->lines && out->line[i] != at) i++;
    if (i == out->lines) {
      out->line[out->lines] = at;
      out->place[out->lines++] = hash_of(hash, at);
    } else assert_true(i / 20 == item.block); /* a line of its own */
  }
  ff_trace_close(reader);
}

static void test_chains(void **state) {
  char path[] = "/tmp/test_reproduce-XXXXXX";
  int file = mkstemp(path);
  machine_spec spec;
  hash_spec described;
  address_hash *hash;
  seen found;
  const chain_request request = {.chains = 3, .loads = 50, .physical = UINT64_C(208) << 20, .place = {1, 3, 5}};
  assert_true(file >= 0);
  close(file);
  setenv("FARFAULT_MACHINES", FF_SOURCE_DIR "/machines", 1);
  assert_int_equal(machine_spec_load("gtx1080", &spec, NULL), FF_OK);
  assert_int_equal(machine_spec_hash(&spec, &described, NULL), FF_OK);
  assert_int_equal(hash_create(&described, &hash, NULL), FF_OK);
  assert_int_equal(chain_write(hash, &request, path, NULL), FF_OK);
  read_chains(path, hash, request.physical, &found);
  assert_int_equal(found.lines, 60);
  for (uint32_t i = 0; i < 60; i++) {
    assert_true(found.line[i] - request.physical < found.bytes);
    assert_int_equal(found.place[i].module, 1);
    assert_int_equal(found.place[i].bank, 3);
    assert_int_equal(found.place[i].set, 5);
    for (uint32_t j = i / 20 * 20; j < i; j++) assert_true(found.place[j].row != found.place[i].row);
  }
  for (uint32_t i = 0; i < 3; i++) assert_int_equal(found.loads[i], 50);
  assert_int_equal(found.bytes, chain_bytes(&request));
  ff_error error;
  const chain_request nowhere = {.chains = 1, .loads = 1, .place = {8, 0, 0}}; /* there are modules 0 to 7 */
  assert_int_equal(chain_write(hash, &nowhere, path, &error), FF_LIMIT);
  assert_non_null(strstr(error.message, "only 0 of 20 lines"));
  hash_free(hash);
  unlink(path);
}

static void test_papers(void **state) {
  char *workloads;
  size_t size;
  assert_int_equal(ff_file_read(FF_SOURCE_DIR "/workloads/workloads.tsv", 0, &workloads, &size, NULL), FF_OK);
  for (int i = 0; repro_papers[i]; i++) {
    const repro_paper *p = repro_papers[i];
    assert_ptr_equal(repro_find(p->name), p);
    assert_true(p->program_count <= REPRO_PROGRAMS && p->setting_count <= REPRO_SETTINGS);
    check_rows(p);
    check_notes(p);
    check_programs(p, workloads);
    check_shares(p);
    for (uint32_t j = 0; j < p->setting_count; j++) assert_int_equal(repro_setting_index(p, p->settings[j].key), j);
    for (uint32_t j = 0; j < p->panel_count; j++)
      for (uint32_t k = 0; k < p->panels[j].series_count; k++) {
        check_key(p, p->panels[j].series[k].a);
        if (p->panels[j].series[k].b) check_key(p, p->panels[j].series[k].b);
      }
  }
  assert_null(repro_find("zheng"));
  free(workloads);
}

/* The length of a row's name and the paper's number, with their commas. */
static size_t name_and_number(const char *line) {
  const char *end = *line == '"' ? strchr(line + 1, '"') + 1 : strchr(line, ',');
  return (size_t)(strchr(end + 1, ',') + 1 - line);
}

/* A field counted from the line's end, 1 the last: the first characters of it. */
static const char *field_from_end(const char *line, int which) {
  const char *at = line + strlen(line);
  while (at > line && which) which -= *--at == ',';
  return at + 1;
}

static void check_results(const repro_paper *p, char *text, const char *readme) {
  repro_data data;
  ff_text empty = {0}, row = {0}, cell = {0};
  char *rest = NULL, *now_rest = NULL;
  repro_tally tally = {0};
  repro_data_start(&data, p);
  repro_csv(&data, &empty);
  char *line = strtok_r(text, "\n", &rest), *now = strtok_r(empty.chars, "\n", &now_rest);
  assert_string_equal(line, now); /* the header row */
  while ((now = strtok_r(NULL, "\n", &now_rest))) {
    line = strtok_r(NULL, "\n", &rest);
    size_t length = name_and_number(now);
    if (!line || strncmp(line, now, length) || line[length] == ',' || !line[length] ||
        strcmp(field_from_end(line, 1), field_from_end(now, 1)))
      fail_msg("%s.csv: '%s' instead of '%s'", p->name, line ? line : "", now);
    const char *within = field_from_end(line, 2);
    tally.near += *within == 'y';
    tally.rows += *within == 'y' || *within == 'n';
    tally.fitted += *within == 'f';
  }
  assert_null(strtok_r(NULL, "\n", &rest));
  ff_text_add(&row, " | %u | %u | %u |\n", tally.rows, tally.near, tally.fitted);
  ff_text_add(&cell, "| [%s](", p->name);
  const char *start = strstr(readme, cell.chars), *found = start ? strstr(start, row.chars) : NULL;
  if (!found || found > strchr(start, '\n')) fail_msg("docs/results/README.md: not '%s' of %s", row.chars, p->name);
  free(empty.chars);
  free(row.chars);
  free(cell.chars);
  repro_data_free(&data);
}

/* docs/results/PAPER.csv has the rows that the code has, with the paper's numbers and notes, and none without ours; the
 * table in README.md next to it counts them. */
static void test_committed_results(void **state) {
  char *readme, *text;
  size_t size;
  assert_int_equal(ff_file_read(FF_SOURCE_DIR "/docs/results/README.md", 0, &readme, &size, NULL), FF_OK);
  for (int i = 0; repro_papers[i]; i++) {
    ff_text path = {0};
    ff_text_add(&path, "%s/docs/results/%s.csv", FF_SOURCE_DIR, repro_papers[i]->name);
    if (ff_file_read(path.chars, 0, &text, &size, NULL)) fail_msg("%s is missing", path.chars);
    check_results(repro_papers[i], text, readme);
    free(text);
    free(path.chars);
  }
  free(readme);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_means),  cmocka_unit_test(test_missing), cmocka_unit_test(test_quantities),
      cmocka_unit_test(test_csv),    cmocka_unit_test(test_scores),  cmocka_unit_test(test_texts),
      cmocka_unit_test(test_page),   cmocka_unit_test(test_bound),   cmocka_unit_test(test_launches),
      cmocka_unit_test(test_clock),  cmocka_unit_test(test_memory),  cmocka_unit_test(test_cells),
      cmocka_unit_test(test_chains), cmocka_unit_test(test_papers),  cmocka_unit_test(test_committed_results),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
