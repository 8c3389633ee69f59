/* SPDX-License-Identifier: Apache-2.0 */
/* Study files: what is read of them, and where each mistake is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sweep/study.h"

static ff_status read_text(const char *text, study *study, ff_error *error) {
  return study_read("s.yaml", text, strlen(text), study, error);
}

static const char *value(const study_grid *grid, int axis, size_t i) { return grid->axes[axis]->values.items[i].text; }

static void one_grid(void **state) {
  study s;
  assert_int_equal(read_text("title: hello\ntrace: a.fft\nmachine: [gtx480, h200]\nmemory: [copy, uvm+evict=lru:64K]\n"
                             "gpu-memory: [50%, 75%, 8G]\nset: {fault_us: [1, 2.5], sm_count: 4}\n",
                             &s, NULL),
                   FF_OK);
  assert_string_equal(s.title, "hello");
  assert_int_equal(s.grids.count, 1);
  const study_grid *grid = s.grids.items[0];
  assert_int_equal(study_grid_size(grid), 1 * 2 * 2 * 3 * 2 * 1);
  assert_string_equal(value(grid, AXIS_MEMORY, 1), "uvm+evict=lru:64K");
  assert_string_equal(value(grid, AXIS_CHOICE + SIM_CHOICE_GPU_MEMORY, 2), "8G");
  assert_string_equal(value(grid, AXIS_SET + SPEC_fault_us, 1), "2.5");
  assert_int_equal(grid->axes[AXIS_MEMORY]->values.items[1].line, 4);
  assert_int_equal(grid->axes[AXIS_MEMORY]->values.items[1].column, 16);
  assert_null(grid->axes[AXIS_CHOICE + SIM_CHOICE_EVICT]);
  study_free(&s);
}

/* A machine need not be named: the plan takes that of each recording. */
static void no_machine(void **state) {
  study s;
  assert_int_equal(read_text("trace: [a.fft, b.fft]\nmemory: copy\n", &s, NULL), FF_OK);
  assert_null(s.grids.items[0]->axes[AXIS_MACHINE]);
  assert_int_equal(study_grid_size(s.grids.items[0]), 2);
  study_free(&s);
}

/* What stands at the top is of those that do not say it themselves, wherever it stands. */
static void inheritance(void **state) {
  study s;
  assert_int_equal(
      read_text(
          "grids:\n- {memory: [demand, tbn]}\n- {memory: uvm, trace: b}\npoints:\n- {memory: ideal, set: {sm_count: 2}}\n"
          "trace: [a, c]\nmachine: h200\n",
          &s, NULL),
      FF_OK);
  assert_int_equal(s.grids.count, 3);
  assert_int_equal(study_grid_size(s.grids.items[0]), 4);
  assert_int_equal(study_grid_size(s.grids.items[1]), 1);
  assert_int_equal(study_grid_size(s.grids.items[2]), 2);
  assert_true(s.grids.items[2]->point && s.grids.items[2]->own[AXIS_MEMORY] && !s.grids.items[2]->own[AXIS_TRACE]);
  assert_ptr_equal(s.grids.items[0]->axes[AXIS_TRACE], s.grids.items[2]->axes[AXIS_TRACE]);
  assert_false(s.grids.items[0]->point);
  study_free(&s);
}

static void mistakes(void **state) {
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"", "s.yaml: is empty"},
      {"- a\n", "s.yaml: is not a study"},
      {"trace: [a\n", "s.yaml:"},
      {"trace: a\nmachnie: b\nmemory: c\n", "s.yaml:2:1: unknown key 'machnie': did you mean 'machine'?"},
      {"gpu_memory: 50%\n", "s.yaml:1:1: unknown key 'gpu_memory': did you mean 'gpu-memory'?"},
      {"grids:\n- {titel: x}\n", "s.yaml:2:4: unknown key 'titel'"},
      {"grids:\n- {points: x}\n", "s.yaml:2:4: unknown key 'points'"},
      {"sm_count: 4\n", "s.yaml:1:1: 'sm_count' is a value of the machine: write 'set: {sm_count: ...}'"},
      {"set: {prefetch: tbn}\n", "s.yaml:1:7: 'prefetch' is no value of a machine: write it next to 'set'"},
      {"set: {sm_cuont: 4}\n", "s.yaml:1:7: a machine has no value 'sm_cuont': did you mean 'sm_count'?"},
      {"set: 4\n", "s.yaml:1:1: 'set' holds values of the machine"},
      {"trace: a\ntrace: b\n", "s.yaml:2:1: 'trace' is given twice"},
      {"trace: a\nmachine: b\n", "s.yaml:1:1: this grid has no 'memory'"},
      {"points:\n- {machine: c, trace: d}\n", "s.yaml:2:4: this point has no 'memory'"},
      {"points:\n- {memory: [c]}\n", "s.yaml:2:4: a point has one 'memory'"},
      {"trace: []\n", "s.yaml:1:1: the list of 'trace' is empty"},
      {"trace: {a: b}\n", "s.yaml:1:1: 'trace' is one value, or a list of them"},
      {"trace: [[a]]\n", "s.yaml:1:1: 'trace' is one value, or a list of them"},
      {"trace:\n", "s.yaml:1:1: this value of 'trace' is empty"},
      {"trace: ''\n", "s.yaml:1:9: this value of 'trace' is empty"},
      {"x: &x a\ntrace: *x\n", "s.yaml:1:1: unknown key 'x'"},
      {"trace: &x a\nmachine: *x\n", "s.yaml:2:11: 'machine' is one value, or a list of them"},
      {"grids: []\n", "s.yaml:1:1: 'grids' is a list"},
      {"grids: {}\n", "s.yaml:1:1: 'grids' is a list"},
      {"grids: [a]\n", "s.yaml:1:9: each of the grids is a set of keys"},
      {"grids:\n", "s.yaml:1:1: 'grids'"},
      {"points: [{}]\n", "s.yaml:1:1: each of the points is a set of keys"},
      {"title: ''\n", "s.yaml:1:1: the title must be one line"},
      {"trace: a\n---\ntrace: b\n", "s.yaml:"},
      {"%YAML 1.2\n---\ntrace: a\n", "s.yaml:1:1: YAML directives are not used in study files"},
      {"trace: \xff\n", "s.yaml:1:8: not text"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    study s;
    ff_error error = {0};
    if (!read_text(cases[i].text, &s, &error)) fail_msg("accepted: %s", cases[i].text);
    if (strncmp(error.message, cases[i].message, strlen(cases[i].message)) != 0)
      fail_msg("%s\n  gives %s", cases[i].text, error.message);
    assert_int_equal(s.grids.count, 0);
  }
}

static void sizes_do_not_wrap(void **state) {
  study_axis axis = {.values = {.count = 100000}};
  study_grid grid = {0};
  for (int i = 0; i < AXIS_COUNT; i++) grid.axes[i] = &axis;
  assert_int_equal(study_grid_size(&grid), UINT64_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_grid), cmocka_unit_test(no_machine),
                                     cmocka_unit_test(inheritance), cmocka_unit_test(mistakes),
                                     cmocka_unit_test(sizes_do_not_wrap)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
