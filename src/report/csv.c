/* SPDX-License-Identifier: Apache-2.0 */
/* A run as CSV: one row per manager, the columns in the order of the JSON (RFC 4180, lines end in a bare newline).
 *
 * Every row has as many fields as the header row; texts are quoted if they hold a quote, a comma or
 * a line end, and a text that a spreadsheet would take for a formula is not produced by any name of ours. */
#include <string.h>

#include "report/columns.h"
#include "report/report.h"
#include "report/report_stacks.h"

static void add_field(ff_text *out, const char *text) {
  if (!strpbrk(text, "\",\n\r")) {
    ff_text_add(out, "%s", text);
    return;
  }
  ff_text_add(out, "\"");
  for (; *text; text++) ff_text_add(out, *text == '"' ? "\"\"" : "%c", *text);
  ff_text_add(out, "\"");
}

/* What a simulation with memory stacks has in addition to its counters. */
static void add_stacks_header(ff_text *out) {
  ff_text_add(out, ",stacks,offload,map,map_found");
#define X(name, unit, value, help) ff_text_add(out, ",stacks_" #name);
  REPORT_STACKS_REALS(X) REPORT_STACKS_SUMS(X)
#undef X
#define X(name, unit, help) ff_text_add(out, ",stacks_" #name);
#include "machine/stacks/stacks.def"
#undef X
}

static void add_stacks(const sim_result *result, ff_text *out) {
  const sim_stacks *s = &result->stacks;
  const sim_counters *c = &result->counters;
  ff_text_add(out, ",%u,%s,", s->count, s->count ? sim_offload_name(s->offload) : "");
  add_field(out, s->map);
  ff_text_add(out, ",");
  add_field(out, s->found);
#define X(name, unit, value, help) ff_text_add(out, ",%.12g", value);
  REPORT_STACKS_REALS(X)
#undef X
#define X(name, unit, value, help) ff_text_add(out, ",%llu", (unsigned long long)(value));
  REPORT_STACKS_SUMS(X)
#undef X
#define X(name, unit, help) ff_text_add(out, ",%llu", (unsigned long long)s->name);
#include "machine/stacks/stacks.def"
#undef X
}

bool report_has_stacks(const report_run *run) {
  for (uint32_t i = 0; i < run->result_count; i++)
    if (run->results[i].stacks.count) return true;
  return false;
}

void report_csv_tiers_head(uint32_t count, ff_text *out) {
  for (uint32_t i = 0; i < count; i++) {
    ff_text_add(out, ",tier%u_name,tier%u_capacity_bytes", i, i);
#define X(name, unit, help) ff_text_add(out, ",tier%u_" #name, i);
#include "machine/observe/tiers.def"
#undef X
  }
}

void report_csv_tiers(const sim_tiers *tiers, uint32_t count, ff_text *out) {
  for (uint32_t i = 0; i < count; i++) {
    const sim_tier *t = &tiers->of[i];
    bool there = i < tiers->count;
    ff_text_add(out, ",");
    add_field(out, there ? t->name : "");
    ff_text_add(out, ",");
    if (there) ff_text_add(out, "%llu", (unsigned long long)t->capacity);
#define X(field, unit, help) \
  ff_text_add(out, ",");     \
  if (there) ff_text_add(out, "%llu", (unsigned long long)t->field);
#include "machine/observe/tiers.def"
#undef X
  }
}

void report_columns_add(const report_run *run, report_columns *columns) {
  columns->stacks = columns->stacks || report_has_stacks(run);
  for (uint32_t i = 0; i < run->result_count; i++)
    if (columns->tiers < run->results[i].tiers.count) columns->tiers = run->results[i].tiers.count;
}

static void add_header(const report_columns *columns, ff_text *out) {
  ff_text_add(out, "memory,machine,complete,error");
#define X(key, value) ff_text_add(out, "," #key);
  REPORT_DERIVED(X)
#undef X
#define X(name, unit, help) ff_text_add(out, "," #name);
#include "machine/observe/counters.def"
#undef X
  if (columns->stacks) add_stacks_header(out);
  report_csv_tiers_head(columns->tiers, out);
  ff_text_add(out, "\n");
}

static void add_row(const report_run *run, const sim_result *result, const report_columns *columns, ff_text *out) {
  const sim_counters *c = &result->counters;
  add_field(out, result->memory);
  ff_text_add(out, ",");
  add_field(out, result->machine);
  ff_text_add(out, ",%d,", result->complete);
  add_field(out, result->error);
#define X(key, value) ff_text_add(out, ",%.12g", (double)(value));
  REPORT_DERIVED(X)
#undef X
#define X(name, unit, help) ff_text_add(out, ",%llu", (unsigned long long)c->name);
#include "machine/observe/counters.def"
#undef X
  if (columns->stacks) add_stacks(result, out);
  report_csv_tiers(&result->tiers, columns->tiers, out);
  ff_text_add(out, "\n");
}

void report_csv_write(const report_run *run, bool header, const report_columns *columns, ff_text *out) {
  if (header) add_header(columns, out);
  for (uint32_t i = 0; i < run->result_count; i++) add_row(run, &run->results[i], columns, out);
}
