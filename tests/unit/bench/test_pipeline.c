/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines: plans that can be and cannot; outputs that are right and wrong in one place; what is printed of
 * results. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "bench/pipeline_private.h"

#define MIB (UINT64_C(1) << 20)

static pipeline_plan plan_of(pipeline_shape shape, uint64_t data, uint64_t budget, uint64_t tile) {
  pipeline_plan plan;
  ff_error error;
  assert_int_equal(pipeline_make_plan(shape, data, budget, tile, 4, &plan, &error), FF_OK);
  return plan;
}

static void refuse(pipeline_shape shape, uint64_t data, uint64_t budget, uint64_t tile, const char *why) {
  pipeline_plan plan;
  ff_error error;
  assert_true(pipeline_make_plan(shape, data, budget, tile, 4, &plan, &error));
  if (!strstr(error.message, why)) fail_msg("'%s' says nothing of '%s'", error.message, why);
}

static void plans(void **state) {
  pipeline_plan p = plan_of(PIPELINE_CHAIN, 64 * MIB, 16 * MIB, 2 * MIB);
  assert_int_equal(p.tiles, 16);
  assert_int_equal(in_bytes(&p), 32 * MIB);
  assert_int_equal(out_bytes(&p), 32 * MIB);
  p = plan_of(PIPELINE_MATMUL, 48 * MIB, 12 * MIB, 2 * MIB);
  assert_int_equal(p.side, 2048);
  assert_int_equal(p.panel, 256);
  assert_int_equal(p.tiles, 8);
  assert_int_equal(in_bytes(&p) + out_bytes(&p), 48 * MIB);
  refuse(PIPELINE_STREAM, 64 * MIB, 16 * MIB, 3 * MIB, "multiple of --tile");
  refuse(PIPELINE_STREAM, 64 * MIB, 16 * MIB, 1000, "multiple of 4096");
  refuse(PIPELINE_STREAM, 64 * MIB, 16 * MIB, 0, "--tile");
  refuse(PIPELINE_STREAM, 64 * MIB, 16 * MIB, 64 * MIB, "holds two");
  refuse(PIPELINE_DIAMOND, 64 * MIB, 15 * MIB, 2 * MIB, "--budget");
  refuse(PIPELINE_MATMUL, 48 * MIB, 8 * MIB, 2 * MIB, "four panels");
  refuse(PIPELINE_MATMUL, 64 << 10, MIB, 8 << 10, "rows in a panel");
  refuse(PIPELINE_MATMUL, UINT64_MAX, UINT64_MAX, 2 * MIB, "--data");
}

static void steps_of_a_product(void **state) {
  pipeline_plan p = plan_of(PIPELINE_MATMUL, 48 * MIB, 12 * MIB, 2 * MIB);
  for (uint32_t step = 0; step < matmul_steps(&p); step++) {
    matmul_step at = matmul_step_at(&p, step);
    assert_int_equal(matmul_step_of(&p, at), step);
    assert_in_range(at.column, 0, 7);
    if (!step) continue;
    matmul_step before = matmul_step_at(&p, step - 1);
    bool same_column = at.column == before.column,
         next_column = at.column + 1 == before.column || at.column == before.column + 1;
    assert_true(step % PASS_ROWS || step % 16 == 0 ? same_column : next_column); /* 8 columns of a pass of two */
    assert_int_equal(at.row / PASS_ROWS, step / 16);
  }
}

/* The kernels in C, by other words than the check's own. */
static uint32_t rounds_of(uint32_t value, uint32_t seed) {
  for (int i = 0; i < 4; i++) value = value * 1664525u + seed;
  return value;
}

static void finds_wrong_words(void **state) {
  for (int shape = PIPELINE_STREAM; shape <= PIPELINE_DIAMOND; shape++) {
    pipeline_plan p = plan_of((pipeline_shape)shape, MIB, 512 << 10, 16 << 10);
    uint32_t *in = ff_alloc(in_bytes(&p)), *out = ff_alloc(out_bytes(&p));
    fill_input(&p, in);
    for (uint64_t i = 0; i < out_bytes(&p) / 4; i++) {
      uint32_t f = rounds_of(in[i], SEED_F), g = rounds_of(in[i], SEED_G);
      out[i] = shape == PIPELINE_STREAM  ? f
               : shape == PIPELINE_CHAIN ? rounds_of(rounds_of(f, SEED_G), SEED_F)
                                         : (f * 3 ^ g);
    }
    pipeline_result result = {0};
    check_output(&p, in, out, &result);
    assert_int_equal(result.checked, MIB / 8);
    assert_int_equal(result.wrong, 0);
    out[1234] ^= 1;
    out[out_bytes(&p) / 4 - 1] ^= 0x80000000u;
    check_output(&p, in, out, &result);
    assert_int_equal(result.wrong, 2);
    free(in);
    free(out);
  }
}

static void finds_a_wrong_product(void **state) {
  pipeline_plan p = plan_of(PIPELINE_MATMUL, 192 << 10, 512 << 10, 32 << 10);
  assert_int_equal(p.side, 128);
  assert_int_equal(p.panel, 64);
  float *in = ff_alloc(in_bytes(&p)), *out = ff_alloc(out_bytes(&p));
  fill_input(&p, in);
  static const uint32_t order[2][2] = {{0, 2}, {1, 3}}; /* of the tiles: a pass is both rows, column by column */
  for (uint32_t i = 0; i < 128; i++)
    for (uint32_t j = 0; j < 128; j++) {
      float sum = 0;
      for (uint32_t k = 0; k < 128; k++) sum += in[i * 128 + k] * in[128 * 128 + j * 128 + k];
      out[(order[i / 64][j / 64] * 64 + i % 64) * 64 + j % 64] = sum;
    }
  pipeline_result result = {0};
  check_output(&p, in, out, &result);
  assert_int_equal(result.checked, 128);
  assert_int_equal(result.wrong, 0);
  out[64 * 64 + 3 * 64 + 7] += 1;
  check_output(&p, in, out, &result);
  assert_int_equal(result.wrong, 1);
  out[5] = NAN;
  result = (pipeline_result){0};
  check_output(&p, in, out, &result);
  assert_int_equal(result.wrong, 2);
  free(in);
  free(out);
}

static void prints_what_is_known(void **state) {
  pipeline_plan p = plan_of(PIPELINE_CHAIN, 64 * MIB, 16 * MIB, 2 * MIB);
  pipeline_machine machine = {.name = "v100"};
  machine.results[PIPELINE_STREAMS] =
      (pipeline_result){.known = true, .seconds = 2e-3, .to_gpu = MIB, .from_gpu = MIB, .checked = 10};
  machine.results[PIPELINE_SEGMENTS] = (pipeline_result){
      .known = true, .seconds = 3e-3, .to_gpu = UINT64_MAX, .from_gpu = 2 * MIB, .checked = 10, .wrong = 3};
  pipeline_report report = {
      .command = "farfault bench <pipeline>", .plans = &p, .plan_count = 1, .machines = &machine, .machine_count = 1};
  ff_text table = {0}, csv = {0}, json = {0}, svg = {0};
  pipeline_table(&report, &table);
  assert_non_null(strstr(table.chars, "3 of 10 WRONG"));
  assert_non_null(strstr(table.chars, "1.500"));
  assert_null(strstr(table.chars, "managed"));
  pipeline_csv(&report, &csv);
  assert_non_null(
      strstr(csv.chars, "chain,v100,segments,67108864,16777216,2097152,0.003000000000,1.500000,,2097152,10,3\n"));
  pipeline_json(&report, &json);
  assert_non_null(strstr(json.chars, "\"to_gpu_bytes\": null"));
  pipeline_svg(&report, &svg);
  assert_non_null(strstr(svg.chars, "farfault bench &lt;pipeline&gt;"));
  free(table.chars);
  free(csv.chars);
  free(json.chars);
  free(svg.chars);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plans),
      cmocka_unit_test(steps_of_a_product),
      cmocka_unit_test(finds_wrong_words),
      cmocka_unit_test(finds_a_wrong_product),
      cmocka_unit_test(prints_what_is_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
