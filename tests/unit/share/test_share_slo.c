/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines: their texts; the search against every share simulated, on made-up programs, also ones that more SMs slow
 * down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "share/share_slo.h"

static machine_spec spec;

static void make(share_matrix *m, const char *machine, uint32_t parts) {
  assert_int_equal(machine_spec_load(machine, &spec, NULL), FF_OK);
  *m = (share_matrix){.spec = &spec,
                      .machine = machine,
                      .manager = "copy",
                      .partitions = "as said",
                      .part_count = parts,
                      .isolations = {SHARE_SM, SHARE_SM_MEMORY},
                      .isolation_count = 2};
  share_matrix_add(m, "runs/a.fft");
  share_matrix_add(m, "runs/b.fft");
  m->measured_count = m->interferer_count = 2;
  m->measured[1] = m->interferers[1] = 1;
  share_matrix_start(m);
}

static void test_deadlines(void **state) {
  static const struct {
    const char *text;
    double us;
    bool per_launch;
  } good[] = {
      {"2.5ms", 2500, false}, {"40us/launch", 40, true}, {"1e3ns", 1, false}, {"1s", 1e6, false}, {"7us", 7, false}};
  static const char *const bad[] = {"",       "2.5",      "ms",        "-1ms", "0us",          "1 ms",
                                    "nan",    "infs",     "inf ms",    "1ms/", "1ms/launches", "1m",
                                    "1e400s", "0x1p3us ", "us/launch", "1msx"};
  share_deadline d;
  ff_error error;
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    assert_int_equal(share_deadline_read(good[i].text, &d, &error), FF_OK);
    assert_true(d.us > good[i].us * 0.999999 && d.us < good[i].us * 1.000001);
    assert_int_equal(d.per_launch, good[i].per_launch);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_int_equal(share_deadline_read(bad[i], &d, &error), FF_PARSE);
}

static void test_lists(void **state) {
  share_matrix m;
  ff_error error;
  make(&m, "gtx1080", 2);
  share_slo slo = {.m = &m};
  assert_int_equal(share_slo_read(&slo, "--slo", "runs/a.fft=2.5ms,b=40us/launch", &error), FF_OK);
  assert_int_equal(slo.deadlines.count, 2);
  assert_int_equal(slo.deadlines.items[1].program, 1);
  assert_int_equal(share_slo_read(&slo, "--slo", "a=3ms", &error), FF_PARSE); /* has one already */
  assert_int_equal(share_slo_read(&slo, "--slo", "runs/c.fft=3ms", &error), FF_NOT_FOUND);
  assert_non_null(strstr(error.message, "did you mean 'runs/a.fft'?"));
  assert_int_equal(share_slo_read(&slo, "--slo", "", &error), FF_PARSE);
  share_slo_free(&slo);
  assert_int_equal(share_slo_read((slo = (share_slo){.m = &m}, &slo), "--slo", "a=3ms,b", &error), FF_PARSE);
  assert_non_null(strstr(error.message, "--slo:1:7: a deadline is PROGRAM=TIME"));
  m.isolations[0] = SHARE_NONE;
  assert_int_equal(share_slo_start(&slo, 2, &error), FF_INVALID);
  share_slo_free(&slo);
  share_matrix_free(&m);
}

/* The made-up program: time by SMs, colours and interferer. */
typedef double (*program)(uint32_t sms, uint32_t colours, uint32_t interferer);
static double smooth(uint32_t sms, uint32_t colours, uint32_t interferer) {
  return 1000.0 / sms + 200.0 / (colours ? colours : 8) * (1 + interferer);
}
static double never(uint32_t sms, uint32_t colours, uint32_t interferer) { return 1e6; }
static double always(uint32_t sms, uint32_t colours, uint32_t interferer) { return 1; }
/* where a check is made */
static double bumpy(uint32_t sms, uint32_t colours, uint32_t interferer) { return sms == 11 ? 500 : 1000.0 / sms; }
static double backwards(uint32_t sms, uint32_t colours, uint32_t interferer) { return 10.0 * sms; }

static bool meets(program p, uint32_t sms, uint32_t colours, double us) {
  return p(sms, colours, 0) <= us && p(sms, colours, 1) <= us;
}

/* From which number of SMs on all meet it, by trying each. */
static uint32_t try_all(program p, uint32_t most, uint32_t colours, double us) {
  uint32_t from = 0;
  for (uint32_t sms = most; sms && meets(p, sms, colours, us); sms--) from = sms;
  return from;
}

static void search(share_slo *slo, program p) {
  for (uint32_t count; (count = share_slo_next(slo));)
    for (uint32_t i = 0; i < count; i++) {
      share_request r;
      share_slo_request(slo, i, &r);
      uint32_t sms = (uint32_t)(r.parts[0].sm * (double)spec.sm_count + 0.5),
               colours = (uint32_t)(r.parts[0].memory * share_machine_colours(&spec) + 0.5);
      double sm = 0, memory = 0;
      for (uint32_t j = 0; j < r.count; j++) {
        sm += r.parts[j].sm;
        memory += r.parts[j].memory;
      }
      assert_true(sm < 1 + 1e-9 && memory < 1 + 1e-9 && r.count == slo->m->part_count &&
                  r.programs[1] == r.programs[r.count - 1] && r.programs[1] >= 0);
      if (r.isolation != SHARE_SM_MEMORY) colours = 0;
      share_slo_put(
          slo, i,
          &(share_outcome){
              .kernel_us = p(sms, colours, (uint32_t)r.programs[1]), .launches = 1, .sms = sms, .colours = colours},
          NULL);
    }
}

static void check_search(const char *machine, uint32_t parts, program p, double us, bool irregular) {
  share_matrix m;
  share_slo slo = {.m = &m};
  make(&m, machine, parts);
  FF_PUSH(&slo.deadlines, ((share_deadline){.program = 0, .us = us}));
  uint32_t colours = share_machine_colours(&spec);
  assert_int_equal(share_slo_start(&slo, colours, NULL), FF_OK);
  assert_int_equal(slo.rows.count, 1 + colours - (parts - 1));
  search(&slo, p);
  for (size_t i = 0; i < slo.rows.count; i++) {
    const share_row *row = &slo.rows.items[i];
    uint32_t answer = share_row_answer(row);
    assert_int_equal(row->most, spec.sm_count - (parts - 1));
    assert_int_equal(answer, try_all(p, row->most, row->colours, us));
    assert_int_equal(row->irregular, irregular);
    if (answer) assert_true(share_row_looked(row, answer)->meets);
    if (answer > 1) assert_false(share_row_looked(row, answer - 1)->meets);
    if (!irregular) assert_true(row->looked.count <= 9); /* log2(80) and the checks */
  }
  share_slo_free(&slo);
  share_matrix_free(&m);
}

static void test_search(void **state) {
  for (double us = 50; us < 2000; us *= 1.3) {
    check_search("gtx1080", 2, smooth, us, false);
    check_search("v100", 2, smooth, us, false);
    check_search("v100", 4, smooth, us, false);
  }
  check_search("v100", 2, never, 10, false);
  check_search("v100", 2, always, 10, false);
  check_search("gtx1080", 2, bumpy, 260, true);     /* 4 would do, but 11 does not: 12 */
  check_search("gtx1080", 2, backwards, 100, true); /* 1 to 10 meet it, 11 to 19 do not: none is safe */
}

static void test_smallest(void **state) {
  share_matrix m;
  share_slo slo = {.m = &m};
  ff_text table = {0};
  make(&m, "v100", 2);
  FF_PUSH(&slo.deadlines, ((share_deadline){.program = 1, .us = 200}));
  share_slo_start(&slo, 8, NULL);
  search(&slo, smooth);
  /* 1000/s + 400/c <= 200: c = 3: s >= 15 (0.1875 + 0.375), c = 4: 10 (0.125 + 0.5), c = 2: never */
  const share_row *best = share_slo_smallest(&slo, 0, SHARE_SM_MEMORY, 8);
  assert_int_equal(best->colours, 3);
  assert_int_equal(share_row_answer(best), 15);
  assert_int_equal(share_row_answer(share_slo_smallest(&slo, 0, SHARE_SM, 8)), 7); /* 1000/s + 50 <= 200 */
  share_slo_table(&slo, &table);
  assert_non_null(
      strstr(table.chars,
             "smallest share under sm+memory: 15 of 80 SMs, 3 of 8 colours (sm=18.75%,memory=37.5%): 200 us beside b"));
  free(table.chars);
  share_slo_free(&slo);
  share_matrix_free(&m);
}

/* A simulation that failed, or had another share than was asked for: the row is not known, the others are. */
static void test_failures(void **state) {
  share_matrix m;
  share_slo slo = {.m = &m};
  make(&m, "gtx1080", 2);
  FF_PUSH(&slo.deadlines, ((share_deadline){.us = 100}));
  share_slo_start(&slo, 2, NULL);
  assert_int_equal(share_slo_next(&slo), 4);
  share_slo_put(&slo, 0, NULL, "killed");
  share_slo_put(&slo, 1, &(share_outcome){.kernel_us = 1, .sms = 19}, NULL);
  share_slo_put(&slo, 2, &(share_outcome){.kernel_us = 1, .sms = 18, .colours = 1}, NULL);
  share_slo_put(&slo, 3, &(share_outcome){.kernel_us = 1, .sms = 19, .colours = 1}, NULL);
  assert_int_equal(share_slo_next(&slo), 0);
  assert_string_equal(slo.rows.items[0].error, "killed");
  assert_string_equal(slo.rows.items[1].error, "the simulation had 18 SMs and 1 colours, not 19 and 1");
  assert_int_equal(share_row_answer(&slo.rows.items[0]), 0);
  share_slo_free(&slo);
  share_matrix_free(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_deadlines), cmocka_unit_test(test_lists),    cmocka_unit_test(test_search),
      cmocka_unit_test(test_smallest),  cmocka_unit_test(test_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
