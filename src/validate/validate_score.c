/* SPDX-License-Identifier: Apache-2.0 */
/* From runs to values, from values to scores, and their limits. See validate.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/validate_fields.h"
#include "validate/validate_sums.h"

/* ---- what a run gave ---- */

/* The value of the line from `line` to `end`, if it is of the quantity in the unit. */
static bool line_value(const char *line, const char *end, const char *quantity, const char *unit, double *value) {
  size_t length = strlen(quantity);
  if ((size_t)(end - line) < length + 4 || memcmp(line, quantity, length) || memcmp(line + length, " = ", 3))
    return false;
  char number[48], *stop;
  size_t rest = (size_t)(end - line) - length - 3;
  if (rest >= sizeof number) return false;
  memcpy(number, line + length + 3, rest);
  number[rest] = '\0';
  *value = strtod(number, &stop);
  return stop != number && *stop == ' ' && !strcmp(stop + 1, unit) && isfinite(*value);
}

double validate_printed(const char *text, const char *quantity, const char *unit) {
  double found = VALIDATE_NONE, value;
  for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
    end = strchr(line, '\n');
    if (!end) end = line + strlen(line);
    if (!line_value(line, end, quantity, unit, &value)) continue;
    if (!isnan(found) && found != value) return VALIDATE_NONE;
    found = value;
  }
  return found;
}

/* The counter of that name (so many characters) in its unit. */
static double counter_value(const sim_counters *c, const char *name, size_t length) {
#define X(counter, unit, help) \
  if (strlen(#counter) == length && !memcmp(name, #counter, length)) return (double)c->counter;
#include "machine/observe/counters.def"
#undef X
  return VALIDATE_NONE;
}

/* A value in the unit: what is counted (picoseconds, bytes), divided by `size`, and `more`. */
typedef struct scale {
  double size, more;
} scale;

static scale scale_of(const char *unit) {
  static const struct {
    const char *name;
    double size;
  } units[] = {{"us", 1e6}, {"ms", 1e9}, {"KiB", 1024}, {"MiB", 1048576}};
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (!strcmp(unit, units[i].name)) return (scale){units[i].size, 0};
  double mhz, more = 0;
  int end = 0, end_of_more = 0;
  int read = sscanf(unit, "cycles of %lf MHz%n + %lf%n", &mhz, &end, &more, &end_of_more);
  if (read == 2) end = end_of_more;
  if (read >= 1 && end && !unit[end] && mhz > 0) return (scale){1e6 / mhz, more};
  return (scale){1, 0};
}

static double scaled(double counted, double launches, const char *unit) {
  scale s = scale_of(unit);
  return counted / s.size / launches + s.more;
}

double validate_counted(const sim_result *result, const char *quantity, const char *unit) {
  const char *of = strstr(quantity, " of ");
  size_t length = of ? (size_t)(of - quantity) : strlen(quantity);
  if (!of) return scaled(counter_value(&result->counters, quantity, length), 1, unit);
  for (uint32_t i = 0; i < result->kernel_count; i++) {
    const sim_counters *c = &result->kernels[i].counters;
    if (!strcmp(result->kernels[i].name, of + 4) && c->launches)
      return scaled(counter_value(c, quantity, length), (double)c->launches, unit);
  }
  return VALIDATE_NONE;
}

double validate_value(const validate_row *row, const char *printed, const sim_result *result) {
  double value = validate_printed(printed, row->quantity, row->unit);
  return isnan(value) && result ? validate_counted(result, row->quantity, row->unit) : value;
}

/* ---- scores ---- */

bool validate_scored_by(const validate_score *score, const validate_row *row) {
  return !strcmp(score->group, row->group) && !strcmp(score->gpu, row->gpu) && !strcmp(score->machine, row->machine);
}

bool validate_row_counts(const validate_row *row) { return row->is == VALIDATE_HELD && row->ours > 0; }

void validate_sum(validate_sums *s, const validate_row *row) {
  double x = log(row->measured), y = log(row->ours);
  s->n++;
  s->ratio += y - x;
  s->error += fabs(row->ours / row->measured - 1);
  s->x += x, s->y += y;
  s->xx += x * x, s->yy += y * y, s->xy += x * y;
}

double validate_mean_error(const validate_sums *s) { return s->n ? s->error / s->n : VALIDATE_NONE; }

double validate_correlation(const validate_sums *s) {
  double cxx = s->xx - s->x * s->x / s->n, cyy = s->yy - s->y * s->y / s->n;
  return s->n > 2 && cxx > 1e-9 && cyy > 1e-9 ? (s->xy - s->x * s->y / s->n) / sqrt(cxx * cyy) : VALIDATE_NONE;
}

static void score_rows(const validate_table *table, validate_score *score) {
  validate_sums s = {0};
  for (size_t i = 0; i < table->rows.count; i++) {
    const validate_row *row = &table->rows.items[i];
    if (!validate_scored_by(score, row)) continue;
    score->rows++;
    score->held += row->is == VALIDATE_HELD;
    if (validate_row_counts(row)) validate_sum(&s, row);
  }
  score->scored = s.n;
  score->ratio = s.n ? exp(s.ratio / s.n) : VALIDATE_NONE;
  score->error = validate_mean_error(&s);
  score->correlation = validate_correlation(&s);
}

void validate_score_all(const validate_table *table, validate_scores *scores) {
  for (size_t i = 0; i < table->rows.count; i++) {
    const validate_row *row = &table->rows.items[i];
    bool known = false;
    for (size_t j = 0; j < scores->list.count; j++) known = known || validate_scored_by(&scores->list.items[j], row);
    if (known) continue;
    validate_score score = {.group = row->group, .gpu = row->gpu, .machine = row->machine};
    score_rows(table, &score);
    FF_PUSH(&scores->list, score);
  }
}

/* ---- limits ---- */

static ff_status add_limit(const fields *f, validate_limits *limits, ff_error *error) {
  validate_limit limit;
  char numbers[2][48];
  for (int i = 0; i < 4; i++)
    if (f->length[i] >= 48) return fields_fail(f, i, error, "is too long");
  snprintf(limit.group, sizeof limit.group, "%.*s", (int)f->length[0], f->at[0]);
  snprintf(limit.gpu, sizeof limit.gpu, "%.*s", (int)f->length[1], f->at[1]);
  for (int i = 0; i < 2; i++) snprintf(numbers[i], sizeof numbers[i], "%.*s", (int)f->length[2 + i], f->at[2 + i]);
  if (!fields_number(numbers[0], &limit.quick) || limit.quick < 0)
    return fields_fail(f, 2, error, "'%s' is no number of percent", numbers[0]);
  if (!fields_number(numbers[1], &limit.full) || limit.full < 0)
    return fields_fail(f, 3, error, "'%s' is no number of percent", numbers[1]);
  limit.quick /= 100;
  limit.full /= 100;
  FF_PUSH(&limits->list, limit);
  return FF_OK;
}

ff_status validate_limits_read(const char *file, const char *text, size_t size, validate_limits *limits,
                               ff_error *error) {
  static const char *const names[] = {"group", "gpu", "quick", "full"};
  fields f = {.file = file, .text = text, .size = size, .names = names, .count = 4};
  ff_status status = fields_header(&f, error);
  while (!status && fields_more(&f)) {
    status = fields_next(&f, error);
    if (!status) status = add_limit(&f, limits, error);
  }
  return status;
}

static const validate_limit *limit_of(const validate_limits *limits, const validate_score *score) {
  for (size_t i = 0; i < limits->list.count; i++)
    if (!strcmp(limits->list.items[i].group, score->group) && !strcmp(limits->list.items[i].gpu, score->gpu))
      return &limits->list.items[i];
  return NULL;
}

uint32_t validate_exceeded(const validate_scores *scores, const validate_limits *limits, bool quick, ff_text *out) {
  uint32_t count = 0;
  for (size_t i = 0; i < scores->list.count; i++) {
    const validate_score *score = &scores->list.items[i];
    const validate_limit *limit = limit_of(limits, score);
    double most = !limit ? 0 : quick ? limit->quick : limit->full;
    bool whole = score->scored == score->held;
    if (!score->held || (limit && whole && score->error <= most)) continue;
    if (!limit) ff_text_add(out, "%s of %s has no limit\n", score->group, score->gpu);
    else if (!whole)
      ff_text_add(out, "%s of %s: %u of %u rows have no value\n", score->group, score->gpu, score->held - score->scored,
                  score->held);
    else
      ff_text_add(out, "%s of %s: its mean error is %.1f %%, above its limit of %.1f %%\n", score->group, score->gpu,
                  100 * score->error, 100 * most);
    count++;
  }
  return count;
}
