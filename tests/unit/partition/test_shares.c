/* SPDX-License-Identifier: Apache-2.0 */
/* Shares: what texts mean, where broken ones are broken, and how SMs and colours are divided. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "partition/shares.h"
#include "unit/near.h"

static void reads(const char *text, uint32_t count, ...) {
  partition_share shares[SHARES_MAX];
  uint32_t found = 0;
  ff_error error;
  va_list expected;
  if (shares_parse("shares", text, SHARES_MAX, shares, &found, &error)) fail_msg("%s", error.message);
  assert_int_equal(found, count);
  va_start(expected, count);
  for (uint32_t i = 0; i < count; i++) {
    double sm = va_arg(expected, double), memory = va_arg(expected, double);
    assert_within(shares[i].sm_share, sm, 1e-9);
    assert_within(shares[i].memory_share, memory, 1e-9);
  }
  va_end(expected);
}

static void test_texts(void **state) {
  reads("50:50", 2, .5, .5, .5, .5);
  reads("1:2:1", 3, .25, .25, .5, .5, .25, .25);
  reads("25:75", 2, .25, .25, .75, .75);
  reads("7", 1, 1., 1.);
  reads("25%:50%", 2, .25, .25, .5, .5); /* of the device: a quarter is idle */
  reads("sm=25%,memory=50%:sm=75%,memory=50%", 2, .25, .5, .75, .5);
  reads("memory=12.5%,sm=1%:sm=33.333333%", 2, .01, .125, .33333333, .33333333);
  reads("memory=40%:60%", 2, .4, .4, .6, .6);
  reads("33.3%:33.3%:33.4%", 3, .333, .333, .333, .333, .334, .334);
  reads("0.000001:999999", 2, 1e-6 / 999999.000001, 1e-6 / 999999.000001, 999999 / 999999.000001,
        999999 / 999999.000001);
}

/* Each with the column where it is broken, and a part of what is said. */
static void test_broken(void **state) {
  static const struct {
    const char *text;
    ff_status status;
    int column;
    const char *says;
  } cases[] = {
      {"", FF_PARSE, 1, "number is missing"},
      {"50:", FF_PARSE, 4, "number is missing"},
      {":50", FF_PARSE, 1, "number is missing"},
      {"50::50", FF_PARSE, 4, "number is missing"},
      {"50;50", FF_PARSE, 3, "should end"},
      {"50: 50", FF_PARSE, 4, "neither"},
      {"-5:105", FF_PARSE, 1, "neither"},
      {"0:50", FF_PARSE, 1, "share of 0"},
      {"50:0.0", FF_PARSE, 4, "share of 0"},
      {"50%:50", FF_PARSE, 5, "percentages or none"},
      {"50:50%", FF_PARSE, 4, "percentages or none"},
      {"1234567:1", FF_PARSE, 1, "more than 6 digits"},
      {"1:1.2345678", FF_PARSE, 3, "more than 6 decimals"},
      {"1.:2", FF_PARSE, 2, "behind the point"},
      {"sm=25:sm=75", FF_PARSE, 4, "% is missing"},
      {"sm=25%,sm=30%", FF_PARSE, 8, "twice"},
      {"sm=25%,", FF_PARSE, 8, "neither"},
      {"sm=25%,colour=1", FF_PARSE, 8, "neither"},
      {"sm=", FF_PARSE, 4, "number is missing"},
      {"60%:60%", FF_INVALID, 5, "SMs add up to 120 %"},
      {"50%:50%:1%", FF_INVALID, 9, "SMs add up to 101 %"},
      {"101%", FF_INVALID, 1, "add up to 101 %"},
      {"sm=25%,memory=50%:sm=25%,memory=30%:sm=25%,memory=30.5%", FF_INVALID, 37, "memory add up to 110.5 %"},
      {"1:1:1:1:1", FF_LIMIT, 9, "more than 4"},
      {"1\n:2", FF_PARSE, 2, "should end"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    partition_share shares[4];
    uint32_t count;
    ff_error error = {0};
    char place[32];
    snprintf(place, sizeof place, "--partitions:1:%d: ", cases[i].column);
    ff_status status = shares_parse("--partitions", cases[i].text, 4, shares, &count, &error);
    if (status != cases[i].status || strncmp(error.message, place, strlen(place)) ||
        !strstr(error.message, cases[i].says))
      fail_msg("'%s': status %d, %s", cases[i].text, status, error.message);
  }
}

static void test_sms(void **state) {
  static const partition_share quarters[] = {{.25, .5}, {.75, .5}}, thirds[] = {{1 / 3., 1}, {1 / 3., 1}, {1 / 3., 1}},
                               small[] = {{.01, 1}, {.98, 1}, {.01, 1}}, part[] = {{.25, 1}, {.25, 1}};
  sm_range r[3];
  assert_int_equal(shares_sms(quarters, 2, 20, r, NULL), FF_OK);
  assert_int_equal(r[0].first, 0);
  assert_int_equal(r[0].count, 5);
  assert_int_equal(r[1].first, 5);
  assert_int_equal(r[1].count, 15);
  assert_int_equal(shares_sms(thirds, 3, 80, r, NULL), FF_OK);
  assert_int_equal(r[0].count + 100 * r[1].count + 10000 * r[2].count, 262727);
  assert_int_equal(r[2].first, 54);
  assert_int_equal(shares_sms(small, 3, 10, r, NULL), FF_OK); /* 9.8 SMs are 8, so that the small ones have one */
  assert_int_equal(r[0].count + 100 * r[1].count + 10000 * r[2].count, 10801);
  assert_int_equal(shares_sms(part, 2, 20, r, NULL), FF_OK);
  assert_int_equal(r[1].first + r[1].count, 10); /* the other half is for none */
  assert_int_equal(shares_sms(thirds, 3, 2, r, NULL), FF_LIMIT);
}

static void test_colours(void **state) {
  static const partition_share halves[] = {{.25, .5}, {.75, .5}}, three[] = {{.2, .3}, {.2, .2}, {.6, .5}};
  uint64_t sets[3];
  ff_text note = {0};
  ff_error error;
  assert_int_equal(shares_colours(halves, 2, 8, sets, &note, NULL), FF_OK);
  assert_int_equal(sets[0], 0x0f);
  assert_int_equal(sets[1], 0xf0);
  assert_null(note.chars);
  assert_int_equal(shares_colours(three, 3, 8, sets, &note, NULL), FF_OK); /* 2.4, 1.6 and 4 */
  assert_int_equal(sets[0], 0x03);
  assert_int_equal(sets[1], 0x0c);
  assert_int_equal(sets[2], 0xf0);
  assert_string_equal(
      note.chars,
      "partition 0: 30 % of memory are 2.40 of 8 colours: it has 2 (25 %)\npartition 1: 20 % of memory are 1.60 of 8 colours: it has 2 (25 %)\n");
  assert_int_equal(shares_colours(halves, 2, 64, sets, NULL, NULL), FF_OK);
  assert_true(sets[0] == UINT32_MAX && sets[1] == ~sets[0]);
  assert_int_equal(shares_colours(halves, 1, 1, sets, NULL, NULL), FF_OK);
  assert_int_equal(shares_colours(three, 3, 2, sets, NULL, &error), FF_LIMIT);
  assert_non_null(strstr(error.message, "colours of memory: 3 partitions cannot have one each of 2"));
  free(note.chars);
}

static uint32_t random_state = 12345;
static uint32_t random_below(uint32_t n) { return (random_state = random_state * 1664525 + 1013904223) / 65536 % n; }

/* Any shares: all is given out, each partition has one, and none is off by one or more that did not have to help a
 * small one. */
static void test_random_divisions(void **state) {
  for (int round = 0; round < 20000; round++) {
    double shares[16], sum = 0;
    uint32_t count = 1 + random_below(16), whole = count + random_below(150), out[16], given = 0;
    bool small = false;
    for (uint32_t i = 0; i < count; i++) sum += shares[i] = 1 + random_below(random_below(3) ? 100 : 3000);
    if (random_below(3) == 0) sum *= 1.5; /* a third is idle */
    for (uint32_t i = 0; i < count; i++) small |= (shares[i] /= sum) * whole < 1;
    assert_int_equal(shares_divide(shares, count, whole, out, NULL), FF_OK);
    double total = 0;
    for (uint32_t i = 0; i < count; i++) {
      double off = out[i] - shares[i] * whole;
      total += shares[i] * whole;
      given += out[i];
      assert_true(out[i] >= 1 && (small || (off < 1 && off > -1)));
      for (uint32_t j = 0; j < i; j++) assert_true(shares[i] < shares[j] || out[i] + 1 >= out[j]);
    }
    assert_true(given <= whole && (given == (uint32_t)(total + .5) || (given == count && given > total)));
  }
}

static void test_refused(void **state) {
  uint32_t out[2];
  ff_error error;
  assert_int_equal(shares_divide((double[]){.7, .7}, 2, 10, out, &error), FF_INVALID);
  assert_non_null(strstr(error.message, "140 %"));
  assert_int_equal(shares_divide((double[]){.7, 0}, 2, 10, out, &error), FF_INVALID);
  assert_int_equal(shares_divide((double[]){.7, -.1}, 2, 10, out, &error), FF_INVALID);
  assert_int_equal(shares_divide((double[]){1e300}, 1, 10, out, &error), FF_INVALID);
  assert_int_equal(shares_divide((double[]){1}, 0, 10, out, &error), FF_LIMIT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_texts),   cmocka_unit_test(test_broken),           cmocka_unit_test(test_sms),
      cmocka_unit_test(test_colours), cmocka_unit_test(test_random_divisions), cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
