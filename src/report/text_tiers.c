/* SPDX-License-Identifier: Apache-2.0 */
/* Tiers below GPU memory for people: docs/usage.md says what each column means. */
#include "report/text_tiers.h"

void text_tier_cells(const sim_tier *tier, table *t) {
  table_cell(t, "%s", tier->name);
  if (tier->capacity) table_bytes(t, tier->capacity);
  else table_cell(t, "-");
  table_bytes(t, tier->peak_bytes);
  table_bytes(t, tier->read_bytes);
  table_bytes(t, tier->written_bytes);
  table_count(t, tier->waits);
  table_time(t, tier->wait_ps);
}

static void tier_row(const sim_result *result, const sim_tier *tier, bool first, table *t) {
  table_cell(t, "%s", first ? result->memory : "");
  text_tier_cells(tier, t);
}

void text_tiers_write(const report_run *run, ff_text *out) {
  static const char *const names[] = {"memory", TEXT_TIER_NAMES, NULL};
  bool any = false;
  table t;
  table_start(&t, "l" TEXT_TIER_ALIGN);
  t.spare = (const char *const[]){TEXT_TIER_SPARE, NULL};
  table_names(&t, names);
  for (uint32_t i = 0; i < run->result_count; i++) {
    const sim_result *result = &run->results[i];
    for (uint32_t n = 0; n < result->tiers.count && !result->error[0]; n++, any = true)
      tier_row(result, &result->tiers.of[n], n == 0, &t);
  }
  if (any) table_write(&t, 0, out);
  table_free(&t);
}
