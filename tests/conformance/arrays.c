/* SPDX-License-Identifier: Apache-2.0 */
/* See arrays.h. */
#include "arrays.h"

#include <string.h>

#define MOST_SHOWN 4 /* mismatches of one array */

unsigned case_shapes(const conformance_case *c, case_shape shapes[2]) {
  if (c->has_launch) {
    shapes[0] = (case_shape){.elements = 0};
    memcpy(shapes[0].grid, c->grid, sizeof c->grid);
    memcpy(shapes[0].block, c->block, sizeof c->block);
    return 1;
  }
  unsigned count = (unsigned)c->arrays[0].count, warps = (count + 31) / 32;
  unsigned grid = (warps + 31) / 32, few = (count + 30) / 31, block = (warps + grid - 1) / grid * 32;
  shapes[0] = (case_shape){{grid, 1, 1}, {block, 1, 1}, (size_t)grid * block};
  shapes[1] = (case_shape){{few, 1, 1}, {31, 1, 1}, (size_t)few * 31};
  return 2;
}

size_t case_elements(const case_shape *shape, const case_array *array) {
  return shape->elements ? shape->elements : array->count;
}

static const value_part *value_at(const case_array *array, const value_part *list, size_t i) {
  return list + i % array->count * array->type->parts;
}

void case_fill(const case_shape *shape, const case_array *array, unsigned char *bytes) {
  size_t size = value_bytes(array->type);
  for (size_t i = 0; i < case_elements(shape, array); i++)
    if (array->has_input) value_store(array->type, value_at(array, array->input, i), bytes + i * size);
    else memset(bytes + i * size, 0xa5, size);
}

static void add_inputs(const conformance_case *c, size_t lane, ff_text *out) {
  char text[128];
  for (unsigned i = 0; i < c->array_count; i++) {
    const case_array *array = &c->arrays[i];
    if (!array->has_input || lane >= array->count) continue;
    unsigned char bytes[16];
    value_store(array->type, value_at(array, array->input, lane), bytes);
    value_print(array->type, bytes, text, sizeof text);
    ff_text_add(out, "; %s = %s", array->name, text);
  }
}

static void add_value(const conformance_case *c, const case_array *array, const value_part *expected, size_t lane,
                      const unsigned char *got, ff_text *out) {
  char expected_text[128], got_text[128];
  unsigned char bytes[16];
  value_store(array->type, expected, bytes);
  value_print(array->type, bytes, expected_text, sizeof expected_text);
  value_print(array->type, got, got_text, sizeof got_text);
  ff_text_add(out, "lane %zu: %s is %s, expected %s", lane, array->name, got_text,
              expected->any_nan ? "any NaN" : expected_text);
  add_inputs(c, lane % array->count, out);
  ff_text_add(out, "\n");
}

unsigned case_compare(const conformance_case *c, const case_shape *shape, const case_array *array,
                      const unsigned char *bytes, const char *start, ff_text *out) {
  const value_part *list = array->has_output ? array->output : array->input;
  unsigned shown = 0;
  for (size_t i = 0; i < case_elements(shape, array) && shown < MOST_SHOWN; i++) {
    const unsigned char *got = bytes + i * value_bytes(array->type);
    const value_part *expected = value_at(array, list, i);
    value_part unchanged[2] = {expected[0], array->type->parts > 1 ? expected[1] : expected[0]};
    unchanged[0].any_nan = unchanged[1].any_nan = false;
    if (array->has_output ? value_matches(array->type, expected, got, array->bound)
                          : value_matches(array->type, unchanged, got, (value_bound){BOUND_EXACT, 0}))
      continue;
    ff_text_add(out, "%s", start);
    add_value(c, array, expected, i, got, out);
    shown++;
  }
  return shown;
}
