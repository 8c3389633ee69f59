/* SPDX-License-Identifier: Apache-2.0 */
/* See metrics.h. Whole numbers up to 2^53 are exact in a double: two hours and a half of picoseconds. */
#include "compare/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const metric_names[METRIC_COUNT + 1] = {
#define DERIVED(name, kind, better, level, value, help) #name,
#include "compare/metrics.def"
#define X(name, unit, help) #name,
#include "machine/observe/counters.def"
#undef X
#define X(name, unit, help) "tier_" #name,
#include "machine/observe/tiers.def"
#undef X
    NULL};

static const char *const units[METRIC_COUNT] = {
/* of counters and of what is counted of tiers */
#define X(name, unit, help) [METRIC_##name] = unit,
#include "machine/observe/counters.def"
#undef X
#define X(name, unit, help) [METRIC_tier_##name] = unit,
#include "machine/observe/tiers.def"
#undef X
};
static const metric_kind derived_kinds[] = {
#define DERIVED(name, kind, better, level, value, help) METRIC_##kind,
#include "compare/metrics.def"
};
#define DERIVED_COUNT (sizeof derived_kinds / sizeof *derived_kinds)
static const metric_better derived_better[] = {
#define DERIVED(name, kind, better, level, value, help) METRIC_##better,
#include "compare/metrics.def"
};
enum { LEVEL_ALL, LEVEL_RUN };
static const int derived_levels[] = {
#define DERIVED(name, kind, better, level, value, help) LEVEL_##level,
#include "compare/metrics.def"
};
static const bool better_less[METRIC_COUNT] = {
#define BETTER_LESS(name) [METRIC_##name] = true,
#include "compare/metrics.def"
};
static const bool shown[METRIC_COUNT] = {
#define SHOWN(name) [METRIC_##name] = true,
#include "compare/metrics.def"
};

metric_id metric_find(const char *name) {
  int id = 0;
  while (id < METRIC_COUNT && strcmp(metric_names[id], name) != 0) id++;
  return (metric_id)id;
}

metric_kind metric_kind_of(metric_id id) {
  if (id < DERIVED_COUNT) return derived_kinds[id];
  return !strcmp(units[id], "ps") ? METRIC_TIME : !strcmp(units[id], "B") ? METRIC_BYTES : METRIC_PLAIN;
}

metric_better metric_better_of(metric_id id) {
  if (id < DERIVED_COUNT) return derived_better[id];
  return better_less[id] ? METRIC_LESS : METRIC_NEITHER;
}

bool metric_of_runs_only(metric_id id) { return id < DERIVED_COUNT && derived_levels[id] == LEVEL_RUN; }
bool metric_is_shown(metric_id id) { return shown[id]; }

static double share_of(uint64_t whole, double share) { return whole ? share : NAN; }
static double part_of(uint64_t part, uint64_t rest) { return part + rest ? (double)part / (double)(part + rest) : NAN; }

double metric_value(metric_id id, const sim_counters *c, double ratio) {
  switch (id) {
#define DERIVED(name, kind, better, level, value, help) \
  case METRIC_##name:                                   \
    return value;
#include "compare/metrics.def"
#define X(name, unit, help) \
  case METRIC_##name:       \
    return (double)c->name;
#include "machine/observe/counters.def"
#undef X
  default: return NAN;
  }
}

bool metric_of_tiers(metric_id id) {
  switch (id) {
#define X(name, unit, help) case METRIC_tier_##name:
#include "machine/observe/tiers.def"
#undef X
    return true;
  default: return false;
  }
}

double metric_tier_value(metric_id id, const sim_tier *tier) {
  switch (id) {
#define X(name, unit, help) \
  case METRIC_tier_##name:  \
    return (double)tier->name;
#include "machine/observe/tiers.def"
#undef X
  default: return NAN;
  }
}

double metric_of_all_tiers(metric_id id, const sim_tiers *tiers) {
  double sum = 0;
  bool any = false;
  for (uint32_t i = 0; i < tiers->count; i++) {
    const sim_tier *t = &tiers->of[i];
    if (!strcmp(t->name, "host") || !strcmp(t->name, SIM_FILES)) continue;
    sum += metric_tier_value(id, t);
    any = true;
  }
  return any ? sum : NAN;
}

const char *metric_unit(metric_id id) {
  metric_kind kind = metric_kind_of(id);
  return kind == METRIC_TIME ? "ps" : kind == METRIC_BYTES ? "B" : "";
}

const char *metric_format(metric_kind kind, double value, char *buffer, size_t size) {
  bool whole = kind != METRIC_SHARE && kind != METRIC_RATIO;
  uint64_t number = whole && value >= 0 && value < 1e19 ? (uint64_t)(value + 0.5) : 0;
  if (isnan(value)) snprintf(buffer, size, "-");
  else if (kind == METRIC_SHARE) snprintf(buffer, size, "%.1f %%", 100 * value);
  else if (kind == METRIC_RATIO) snprintf(buffer, size, "%.3gx", value);
  else if (!number && value != 0)
    snprintf(buffer, size, "%.4g%s", value, kind == METRIC_TIME ? " ps" : kind == METRIC_BYTES ? " B" : "");
  else if (kind == METRIC_TIME) report_format_time(number, buffer, size);
  else if (kind == METRIC_BYTES) ff_format_bytes(number, buffer, size);
  else if (fabs(value - (double)number) > 1e-9) snprintf(buffer, size, "%.4g", value);
  else report_format_count(number, buffer, size);
  return buffer;
}
