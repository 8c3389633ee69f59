/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of `farfault validate` from anywhere: measurements, limits (first byte '='), goals of two rows (first byte
 * '<'), or what a program printed (first byte '>'). Read or refused with a message; what is accepted is what its
 * readers rely on, and every output can be made of it. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "validate/validate.h"

static void read_limits(const char *text, size_t size) {
  validate_limits limits = {0};
  ff_error error;
  error.message[0] = '\0';
  if (validate_limits_read("fuzz", text, size, &limits, &error)) FF_ASSERT(error.message[0]);
  else
    for (size_t i = 0; i < limits.list.count; i++) FF_ASSERT(limits.list.items[i].quick >= 0);
  free(limits.list.items);
}

static void read_printed(const char *text, size_t size) {
  char *copy = ff_alloc(size + 1);
  memcpy(copy, text, size);
  double value = validate_printed(copy, "latency", "cycles");
  FF_ASSERT(isnan(value) || isfinite(value));
  free(copy);
}

static void write_all(const validate_table *table) {
  validate_scores scores = {0};
  validate_page page = {"farfault validate", ""};
  ff_text out = {0};
  validate_score_all(table, &scores);
  validate_table_text(table, &scores, true, &out);
  validate_json(table, &scores, &page, &out);
  validate_markdown(table, &scores, &page, &out);
  validate_html(table, &scores, &page, &out);
  free(out.chars);
  free(scores.list.items);
}

static void read_goals(const char *text, size_t size) {
  static const char rows[] =
      "group\trow\tx\tgpu\tmachine\tset\tmemory\tprogram\tquantity\tunit\tsilicon\trole\truns\tsource\n"
      "g\ta\t1\tG\tm\t-\tcopy\tp\tq\tus\t2\theld\tfull\ts\ng\tb\t-\tG\tm\t-\tcopy\tp\tq\tus\t3\theld\tfull\ts\n";
  validate_table table = {0};
  ff_error error;
  error.message[0] = '\0';
  FF_ASSERT(!validate_table_read("rows", rows, sizeof rows - 1, &table, &error));
  table.rows.items[0].ours = 3;
  if (validate_goals_read("fuzz", text, size, &table, &error)) FF_ASSERT(error.message[0]);
  for (size_t i = 0; i < table.goals.count; i++) {
    FF_ASSERT(table.goals.items[i].wanted > 0 && table.goals.items[i].held <= 2);
    FF_ASSERT(validate_attained(&table, &table.goals.items[i]).scored <= 1);
  }
  write_all(&table);
  validate_table_free(&table);
}

static void read_table(const char *text, size_t size) {
  validate_table table = {0};
  ff_error error;
  error.message[0] = '\0';
  if (validate_table_read("fuzz", text, size, &table, &error)) FF_ASSERT(error.message[0]);
  for (size_t i = 0; i < table.rows.count; i++) {
    validate_row *row = &table.rows.items[i];
    FF_ASSERT(row->run < table.runs.count && row->measured > 0 && isfinite(row->measured) && !isinf(row->at));
    if (i % 3) row->ours = row->measured * (double)i;
  }
  write_all(&table);
  validate_table_free(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data;
  if (size && *text == '=') read_limits(text + 1, size - 1);
  else if (size && *text == '<') read_goals(text + 1, size - 1);
  else if (size && *text == '>') read_printed(text + 1, size - 1);
  else read_table(text, size);
  return 0;
}
