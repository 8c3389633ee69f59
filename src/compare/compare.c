/* SPDX-License-Identifier: Apache-2.0 */
/* See compare.h. */
#include "compare/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is looked at ---- */

ff_status compare_choose(const char *names, compare_options *options, ff_error *error) {
  memset(options->metrics, 0, sizeof options->metrics);
  for (int id = 0; id < METRIC_COUNT; id++)
    options->metrics[id] = !names ? metric_is_shown((metric_id)id) : !strcmp(names, "all") && id != METRIC_ratio;
  if (!names || !strcmp(names, "all")) return FF_OK;
  char *copy = ff_strdup(names), *rest = NULL;
  ff_status status = *names ? FF_OK : ff_fail(error, FF_INVALID, "no metric is named");
  for (char *name = strtok_r(copy, ",", &rest); name && !status; name = strtok_r(NULL, ",", &rest)) {
    metric_id id = metric_find(name);
    const char *near = id == METRIC_COUNT ? ff_closest(name, metric_names) : NULL;
    if (id == METRIC_ratio) status = ff_fail(error, FF_NOT_FOUND, "'ratio' is of one run: compare 'time'");
    else if (id < METRIC_COUNT) options->metrics[id] = true;
    else
      status = near ? ff_fail(error, FF_NOT_FOUND, "no metric '%s': did you mean '%s'?", name, near)
                    : ff_fail(error, FF_NOT_FOUND, "no metric '%s' (docs/json.md lists them)", name);
  }
  free(copy);
  return status;
}

ff_status compare_threshold(const char *text, compare_options *options, ff_error *error) {
  char *end;
  bool digit = (*text >= '0' && *text <= '9') || *text == '.';
  double value = digit ? strtod(text, &end) : -1;
  if (digit && !strcmp(end, "%")) value /= 100;
  else if (!digit || *end) value = -1;
  if (!(value >= 0 && value <= 1e6)) return ff_fail(error, FF_INVALID, "'%s' is no share such as 5%% or 0.05", text);
  options->threshold = value;
  return FF_OK;
}

/* ---- changes ---- */

typedef struct part {       /* a run's own numbers, or a tier's, a kernel's, an allocation's */
  const char *name, *range; /* NULL: the run's own */
  const sim_counters *counters;
  const sim_tier *tier; /* of one: instead of counters */
} part;

typedef struct comparing {
  const compare_options *options;
  comparison *out;
  const sim_result *whole[2];
  compare_level level;
} comparing;

static void add(comparing *k, compare_change change) {
  comparison *out = k->out;
  change.order = out->changes.count;
  FF_PUSH(&out->changes, change);
  if (change.worse > 0) out->worse++;
  else if (change.worse < 0) out->better++;
  else out->other++;
}

static double larger(double a, double b) { return a > b ? a : b; }

/* How much of the run's number is this change? Shares and ratios do not add up: theirs is relative to themselves, as is
 * a tier's. */
static double effect_of(const comparing *k, metric_id id, double before, double after) {
  double change = fabs(after - before), whole = larger(before, after);
  metric_kind kind = metric_kind_of(id);
  if (isnan(change)) return 1;
  if (k->level != COMPARE_RUN && k->level != COMPARE_TIER && kind != METRIC_SHARE && kind != METRIC_RATIO)
    for (int i = 0; i < 2; i++) whole = larger(whole, metric_value(id, &k->whole[i]->counters, NAN));
  return whole > 0 ? change / whole : 0;
}

static bool changed(const comparing *k, double before, double after) {
  if (isnan(before) || isnan(after)) return isnan(before) != isnan(after);
  return fabs(after - before) > k->options->threshold * before;
}

static bool has_metric(const comparing *k, metric_id id) {
  if (metric_of_tiers(id) != (k->level == COMPARE_TIER)) return false;
  return k->level == COMPARE_RUN || !metric_of_runs_only(id);
}

static double value_of(metric_id id, const part *of) {
  return of->tier ? metric_tier_value(id, of->tier) : metric_value(id, of->counters, NAN);
}

static void compare_numbers(comparing *k, const part *before, const part *after) {
  for (int n = 0; n < METRIC_COUNT; n++) {
    metric_id id = (metric_id)n;
    if (!k->options->metrics[n] || !has_metric(k, id)) continue;
    double values[2] = {value_of(id, before), value_of(id, after)};
    k->out->compared++;
    if (!changed(k, values[0], values[1])) continue;
    int more = values[1] > values[0] ? 1 : values[1] < values[0] ? -1 : 0;
    metric_better better = metric_better_of(id);
    add(k, (compare_change){.level = k->level,
                            .memory = k->whole[0]->memory,
                            .name = before->name,
                            .range = before->range,
                            .metric = id,
                            .before = values[0],
                            .after = values[1],
                            .effect = effect_of(k, id, values[0], values[1]),
                            .worse = better == METRIC_LESS   ? more
                                     : better == METRIC_MORE ? -more
                                                             : 0});
  }
}

/* Of a kernel its time in the run's; of an allocation and of a tier no number says how much of the run it is. */
static void add_alone(comparing *k, const part *alone, bool is_new) {
  double time = alone->tier ? 0 : metric_value(METRIC_time, alone->counters, NAN);
  compare_presence presence = is_new ? COMPARE_NEW : COMPARE_GONE;
  add(k, (compare_change){.level = k->level,
                          .presence = presence,
                          .memory = k->whole[0]->memory,
                          .name = alone->name,
                          .range = alone->range,
                          .metric = METRIC_COUNT,
                          .before = NAN,
                          .after = NAN,
                          .effect = effect_of(k, METRIC_time, 0, time)});
}

/* A name without the place in the source that may stand before it: "saxpy.cu:41 cudaMalloc #2" and "saxpy.cu:43
 * cudaMalloc #2" are the same allocation of a program that was edited. */
static const char *without_site(const char *name) {
  const char *number = strrchr(name, ' '), *call = number;
  if (!number || number[1] != '#') return name;
  while (call > name && call[-1] != ' ') call--;
  return call;
}

/* A key of the map: name and range, and which one of several. */
static char *key_of(const part *parts, const uint32_t *numbers, size_t i) {
  ff_text key = {0};
  ff_text_add(&key, "%u\n%s\n%s", numbers[i], parts[i].range, without_site(parts[i].name));
  return key.chars;
}

/* Which one of those with its name each part is, from 0. */
static void number_parts(const part *parts, size_t count, uint32_t *numbers) {
  ff_map last = {0}; /* from a key without a number to the last part of that name */
  char **keys = ff_alloc((count + 1) * sizeof *keys);
  for (size_t i = 0; i < count; i++) {
    numbers[i] = 0;
    keys[i] = key_of(parts, numbers, i);
    const part *before = ff_map_get(&last, keys[i]);
    if (before) numbers[i] = numbers[before - parts] + 1;
    ff_map_set(&last, keys[i], (void *)(uintptr_t)&parts[i]);
  }
  ff_map_free(&last);
  for (size_t i = 0; i < count; i++) free(keys[i]);
  free(keys);
}

typedef struct part_list {
  FF_VEC(part) list;
  uint32_t *numbers;
  char **keys;
  ff_map by_key;
} part_list;

static void index_parts(part_list *p) {
  p->numbers = ff_alloc((p->list.count + 1) * sizeof *p->numbers);
  p->keys = ff_alloc((p->list.count + 1) * sizeof *p->keys);
  number_parts(p->list.items, p->list.count, p->numbers);
  for (size_t i = 0; i < p->list.count; i++) {
    p->keys[i] = key_of(p->list.items, p->numbers, i);
    ff_map_set(&p->by_key, p->keys[i], &p->list.items[i]);
  }
}

static void free_parts(part_list *p) {
  for (size_t i = 0; i < p->list.count; i++) free(p->keys[i]);
  free(p->keys);
  free(p->numbers);
  free(p->list.items);
  ff_map_free(&p->by_key);
}

static void compare_parts(comparing *k, part_list lists[2]) {
  index_parts(&lists[0]);
  index_parts(&lists[1]);
  for (size_t i = 0; i < lists[0].list.count; i++) {
    const part *before = &lists[0].list.items[i], *after = ff_map_get(&lists[1].by_key, lists[0].keys[i]);
    if (after) compare_numbers(k, before, after);
    else add_alone(k, before, false);
  }
  for (size_t i = 0; i < lists[1].list.count; i++)
    if (!ff_map_get(&lists[0].by_key, lists[1].keys[i])) add_alone(k, &lists[1].list.items[i], true);
  free_parts(&lists[0]);
  free_parts(&lists[1]);
}

static void compare_kernels(comparing *k) {
  part_list lists[2] = {0};
  k->level = COMPARE_KERNEL;
  for (int n = 0; n < 2; n++)
    for (uint32_t i = 0; i < k->whole[n]->kernel_count; i++) {
      const sim_kernel_result *kernel = &k->whole[n]->kernels[i];
      part p = {.name = kernel->name, .range = kernel->range, .counters = &kernel->counters};
      FF_PUSH(&lists[n].list, p);
    }
  compare_parts(k, lists);
}

static void compare_tiers(comparing *k) {
  part_list lists[2] = {0};
  k->level = COMPARE_TIER;
  for (int n = 0; n < 2; n++)
    for (uint32_t i = 0; i < k->whole[n]->tiers.count; i++) {
      const sim_tier *tier = &k->whole[n]->tiers.of[i];
      part p = {.name = tier->name, .range = "", .tier = tier};
      FF_PUSH(&lists[n].list, p);
    }
  compare_parts(k, lists);
}

static void compare_allocations(comparing *k) {
  part_list lists[2] = {0};
  k->level = COMPARE_ALLOCATION;
  for (int n = 0; n < 2; n++)
    for (uint32_t i = 0; i < k->whole[n]->allocation_count; i++) {
      const sim_allocation_result *allocation = &k->whole[n]->allocations[i];
      part p = {.name = allocation->name, .range = "", .counters = &allocation->counters};
      FF_PUSH(&lists[n].list, p);
    }
  compare_parts(k, lists);
}

static void add_result(comparing *k, const sim_result *result, compare_presence presence) {
  k->level = COMPARE_RUN;
  add(k, (compare_change){.presence = presence,
                          .memory = result->memory,
                          .metric = METRIC_COUNT,
                          .before = NAN,
                          .after = NAN,
                          .effect = 1,
                          .worse = presence == COMPARE_FAILS   ? 1
                                   : presence == COMPARE_WORKS ? -1
                                                               : 0});
}

static void compare_results(comparing *k, const sim_result *before, const sim_result *after) {
  bool failed[2] = {before->error[0] != '\0', after->error[0] != '\0'};
  k->whole[0] = before;
  k->whole[1] = after;
  k->level = COMPARE_RUN;
  if (failed[0] && failed[1]) return;
  if (failed[0] || failed[1]) {
    add_result(k, before, failed[1] ? COMPARE_FAILS : COMPARE_WORKS);
    return;
  }
  compare_numbers(k, &(part){.counters = &before->counters}, &(part){.counters = &after->counters});
  compare_tiers(k);
  compare_kernels(k);
  compare_allocations(k);
}

/* The result of that manager and device in the run that no other one has been compared with; NULL: none. */
static const sim_result *find_result(const report_run *run, const sim_result *wanted, bool *taken) {
  for (uint32_t i = 0; i < run->result_count; i++)
    if (!taken[i] && run->results[i].device == wanted->device && !strcmp(run->results[i].memory, wanted->memory)) {
      taken[i] = true;
      return &run->results[i];
    }
  return NULL;
}

static int by_effect(const void *a, const void *b) {
  const compare_change *x = a, *y = b;
  if (x->level != y->level) return x->level < y->level ? -1 : 1;
  if (x->effect != y->effect) return x->effect > y->effect ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

void compare_runs(const report_run *before, const report_run *after, const compare_options *options, comparison *out) {
  *out = (comparison){0};
  comparing k = {.options = options, .out = out};
  bool *taken = ff_alloc(after->result_count + 1);
  for (uint32_t i = 0; i < before->result_count; i++) {
    const sim_result *other = find_result(after, &before->results[i], taken);
    if (other) compare_results(&k, &before->results[i], other);
    else add_result(&k, &before->results[i], COMPARE_GONE);
  }
  for (uint32_t i = 0; i < after->result_count; i++)
    if (!taken[i]) add_result(&k, &after->results[i], COMPARE_NEW);
  free(taken);
  if (out->changes.count) qsort(out->changes.items, out->changes.count, sizeof *out->changes.items, by_effect);
}

void comparison_free(comparison *c) {
  free(c->changes.items);
  *c = (comparison){0};
}
