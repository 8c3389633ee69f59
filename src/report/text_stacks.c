/* SPDX-License-Identifier: Apache-2.0 */
/* Memory stacks for people (text_stacks.h): docs/offload.md says what each column means. */
#include "report/text_stacks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report_stacks.h"
#include "report/table.h"

static bool shown(const sim_result *result) { return result->stacks.count && !result->error[0]; }

/* "1.23 mJ". */
static void joule_cell(table *t, double joule) {
  static const struct {
    double size;
    const char *unit;
  } units[] = {{1, "J"}, {1e-3, "mJ"}, {1e-6, "uJ"}, {1e-9, "nJ"}, {1e-12, "pJ"}};
  size_t i = 0;
  if (!(joule > 0)) {
    table_cell(t, "0 J");
    return;
  }
  while (i + 1 < sizeof units / sizeof *units && joule < 0.9995 * units[i].size) i++;
  double value = joule / units[i].size;
  table_cell(t, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, units[i].unit);
}

/* The map, with what was found for it. */
static void map_cell(table *t, const sim_stacks *s) {
  if (s->found[0] && strcmp(s->found, s->map)) table_cell(t, "%s: %s", s->map, s->found);
  else table_cell(t, "%s", s->map);
}

static void traffic_row(const report_run *run, const sim_result *result, table *t) {
  const sim_stacks *s = &result->stacks;
  double speed = report_stacks_speed(run, result);
  table_cell(t, "%s", result->memory);
  if (speed > 0) table_cell(t, speed < 0.0995 ? "%.3fx" : "%.2fx", speed);
  else table_cell(t, "-");
  if (s->learning_kernel_ps) table_time(t, s->learning_kernel_ps);
  else table_cell(t, "-");
  table_bytes(t, sim_stacks_traffic(s));
  table_bytes(t, stacks_sum(s, s->tx));
  table_bytes(t, stacks_sum(s, s->rx));
  table_bytes(t, stacks_cross(s));
  table_bytes(t, stacks_sum(s, s->internal));
  joule_cell(t, sim_stacks_joule(s));
  joule_cell(t, s->link_joule);
  joule_cell(t, s->idle_joule);
  joule_cell(t, s->activation_joule);
  joule_cell(t, s->read_joule);
  joule_cell(t, s->sm_joule);
}

static void instances_row(const sim_result *result, table *t) {
  const sim_stacks *s = &result->stacks;
  table_cell(t, "%s", result->memory);
  table_count(t, s->instances);
  table_share(t, s->colocated, s->instances);
  table_share(t, s->offloaded, s->instances);
  table_share(t, s->refused_learning, s->instances);
  table_share(t, s->refused_condition, s->instances);
  table_share(t, s->refused_tx, s->instances);
  table_share(t, s->refused_rx, s->instances);
  table_share(t, s->refused_slow, s->instances);
  table_share(t, s->refused_full, s->instances);
  table_share(t, s->offloaded_instructions, result->counters.warp_instructions);
  map_cell(t, s);
}

static bool any_instances(const report_run *run) {
  for (uint32_t i = 0; i < run->result_count; i++)
    if (shown(&run->results[i]) && run->results[i].stacks.instances) return true;
  return false;
}

void text_stacks_write(const report_run *run, ff_text *out) {
  static const char *const traffic[] = {"memory stacks", "speed",  "learning", "off-chip", "TX",   "RX",
                                        "between",       "inside", "energy",   "links",    "idle", "rows",
                                        "reads",         "SMs",    NULL};
  static const char *const instances[] = {"candidates",   "instances", "colocated", "offloaded", "learning",
                                          "too few",      "TX busy",   "RX busy",   "slow",      "full",
                                          "instructions", "map",       NULL};
  table t;
  if (!report_has_stacks(run)) return;
  ff_text_add(out, "\n");
  table_start(&t, "lrrrrrrrrrrrrr");
  t.spare = (const char *const[]){"SMs",    "reads",   "rows",   "idle", "links", "learning",
                                  "inside", "between", "energy", "RX",   "TX",    NULL};
  table_names(&t, traffic);
  for (uint32_t i = 0; i < run->result_count; i++)
    if (shown(&run->results[i])) traffic_row(run, &run->results[i], &t);
  table_write(&t, 0, out);
  table_free(&t);
  if (!any_instances(run)) return; /* the trace was simulated without its marks */
  ff_text_add(out, "\n");
  table_start(&t, "lrrrrrrrrrrl");
  t.spare = (const char *const[]){"full", "slow", "RX busy", "TX busy", "too few", "learning", "map", NULL};
  table_names(&t, instances);
  for (uint32_t i = 0; i < run->result_count; i++)
    if (shown(&run->results[i])) instances_row(&run->results[i], &t);
  table_write(&t, 0, out);
  table_free(&t);
}

void text_links_write(const sim_result *result, ff_text *out) {
  const sim_stacks *s = &result->stacks;
  char align[SIM_STACKS + 8] = "rrrr";
  table t;
  memset(align + 4, 'r', s->count);
  table_start(&t, align);
  table_names(&t, (const char *const[]){"stack", "TX", "RX", "inside", NULL});
  for (uint32_t k = 0; k < s->count; k++) table_cell(&t, "to %u", k);
  for (uint32_t i = 0; i < s->count; i++) {
    table_cell(&t, "%u", i);
    table_bytes(&t, s->tx[i]);
    table_bytes(&t, s->rx[i]);
    table_bytes(&t, s->internal[i]);
    for (uint32_t k = 0; k < s->count; k++)
      if (i == k) table_cell(&t, "-");
      else table_bytes(&t, s->cross[i][k]);
  }
  table_write(&t, 2, out);
  table_free(&t);
}
