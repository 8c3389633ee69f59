/* SPDX-License-Identifier: Apache-2.0 */
/* How tensor cores of each generation add (exec/instructions/tensor_sum.h): both sides of each edge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/instructions/tensor_sum.h"

enum { MOST = 32 };

typedef struct sum { /* one element of D: c + left[k] */
  double c, left[MOST];
  uint32_t count;
  ptx_type type, to;
} sum;

static double add(const sum *s, tensor_rule rule) {
  double across[MOST * TENSOR_AT_ONCE], d[TENSOR_AT_ONCE];
  int32_t left_exponents[MOST], across_exponents[MOST * TENSOR_AT_ONCE];
  for (uint32_t n = 0; n < s->count * TENSOR_AT_ONCE; n++) across[n] = 1;
  for (uint32_t n = 0; n < TENSOR_AT_ONCE; n++) d[n] = s->c;
  tensor_exponents(s->left, s->count, s->type, left_exponents);
  tensor_exponents(across, s->count * TENSOR_AT_ONCE, s->type, across_exponents);
  tensor_operands o = {.left = s->left,
                       .across = across,
                       .left_exponents = left_exponents,
                       .across_exponents = across_exponents,
                       .count = s->count,
                       .columns = TENSOR_AT_ONCE,
                       .stride = TENSOR_AT_ONCE};
  tensor_sum(&o, rule, s->to, d);
  for (uint32_t n = 1; n < TENSOR_AT_ONCE; n++) assert_true(d[n] == d[0] || d[0] != d[0]);
  return d[0];
}

static double power(int exponent) { return __builtin_ldexp(1, exponent); }

/* What is left when 1 and -1 are gone: bits below the largest exponent. */
static void check_fraction(uint32_t compute, ptx_type type, bool warpgroup, int fraction) {
  tensor_rule rule = tensor_rule_of(compute, type, warpgroup);
  sum s = {.left = {1, -1, power(-fraction)}, .count = 4, .type = type, .to = PTX_F32};
  assert_true(add(&s, rule) == power(-fraction));
  s.left[2] = 1.5 * power(-fraction);
  assert_true(add(&s, rule) == power(-fraction));
  s.left[2] = -s.left[2];
  assert_true(add(&s, rule) == -power(-fraction)); /* toward zero */
  s.left[2] = 0.5 * power(-fraction);
  assert_true(add(&s, rule) == 0);
}

static void test_fraction(void **state) {
  (void)state;
  check_fraction(70, PTX_F16, false, 23);
  check_fraction(75, PTX_F16, false, 24);
  check_fraction(80, PTX_F16, false, 24);
  check_fraction(86, PTX_BF16, false, 24);
  check_fraction(80, PTX_TF32, false, 24);
  check_fraction(89, PTX_E4M3, false, 13);
  check_fraction(90, PTX_F16, false, 25);
  check_fraction(90, PTX_E4M3, false, 25);
  check_fraction(90, PTX_BF16, true, 25);
  check_fraction(90, PTX_TF32, true, 25);
  check_fraction(90, PTX_E5M2, true, 13);
  check_fraction(100, PTX_F16, false, 25);
  check_fraction(0, PTX_F16, false, 25);
}

/* A product before and one behind a group's end do not meet: what is below D's last bit is gone between them. */
static void check_group(uint32_t compute, ptx_type type, uint32_t group) {
  tensor_rule rule = tensor_rule_of(compute, type, false);
  sum s = {.count = MOST, .type = type, .to = PTX_F32};
  double small = power(-rule.fraction - 1);
  for (uint32_t k = 1; k + 1 < MOST; k++) {
    for (uint32_t n = 0; n < MOST; n++) s.left[n] = 0;
    s.left[0] = 1;
    s.left[k] = -1;
    s.left[k + 1] = small;
    bool kept = group < MOST && k / group != (k + 1) / group; /* the small one is alone with a sum of 0 */
    assert_true(add(&s, rule) == (kept ? small : 0));
  }
}

static void test_groups(void **state) {
  (void)state;
  check_group(70, PTX_F16, 4);
  check_group(75, PTX_F16, 8);
  check_group(80, PTX_F16, 8);
  check_group(86, PTX_TF32, 4);
  check_group(89, PTX_E4M3, 16);
  check_group(90, PTX_F16, MOST);
  check_group(100, PTX_BF16, MOST);
}

static void test_results(void **state) {
  (void)state;
  tensor_rule rule = tensor_rule_of(90, PTX_F16, false), eight = tensor_rule_of(90, PTX_E4M3, true);
  sum s = {.c = 1, .left = {power(-23), power(-24)}, .count = 2, .type = PTX_F16, .to = PTX_F32};
  assert_true(add(&s, rule) == 1 + power(-23)); /* f32: cut off */
  s.left[1] = -power(-24);
  assert_true(add(&s, rule) == 1); /* 1 + 2^-24 */
  s = (sum){.c = 1, .left = {power(-13), power(-14)}, .count = 2, .type = PTX_E4M3, .to = PTX_F32};
  assert_true(add(&s, eight) == 1 + power(-13)); /* 13 bits */
  s = (sum){.left = {power(-126), power(-149), power(-150)}, .count = 3, .type = PTX_BF16, .to = PTX_F32};
  s.left[0] = -s.left[0];
  assert_true(add(&s, rule) == -power(-126) + 2 * power(-149)); /* 1.5 units of 2^-149 nearer to 0, cut off to 2 */
  s = (sum){.c = power(10), .left = {power(-1)}, .count = 1, .type = PTX_F16, .to = PTX_F16};
  assert_true(add(&s, rule) == power(10) + 0.5); /* f16: rounded by the caller, once */
}

/* The exponent of a product is the sum of its factors': 1.5 * 1.5 = 2.25 has that of 1. A subnormal has the least. */
static void test_exponents(void **state) {
  (void)state;
  assert_int_equal(tensor_exponent(1.5, -14), 0);
  assert_int_equal(tensor_exponent(-power(-14), -14), -14);
  assert_int_equal(tensor_exponent(power(-20), -14), -14);
  assert_int_equal(tensor_exponent(0, -14), TENSOR_NOWHERE);
  assert_int_equal(tensor_exponent(__builtin_inf(), -14), TENSOR_NOWHERE);
  assert_int_equal(tensor_least(PTX_E4M3), -6);
  assert_int_equal(tensor_least(PTX_E2M1), 0);
  assert_int_equal(tensor_least(PTX_BF16), -126);
}

static void test_special(void **state) {
  (void)state;
  tensor_rule rule = tensor_rule_of(90, PTX_F16, false);
  sum s = {.c = 1, .left = {__builtin_inf(), 1}, .count = 2, .type = PTX_F16, .to = PTX_F32};
  assert_true(add(&s, rule) == __builtin_inf());
  s.c = -__builtin_inf();
  double nan = add(&s, rule);
  assert_true(nan != nan);
  s = (sum){.c = -0.0, .left = {-0.0, -0.0}, .count = 2, .type = PTX_F16, .to = PTX_F32};
  assert_true(add(&s, rule) == 0 && !__builtin_signbit(add(&s, rule)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fraction),  cmocka_unit_test(test_groups),  cmocka_unit_test(test_results),
      cmocka_unit_test(test_exponents), cmocka_unit_test(test_special),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
