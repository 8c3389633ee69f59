/* SPDX-License-Identifier: Apache-2.0 */
/* Goals: read, checked, and how far they are reached. See validate.h. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "validate/validate_fields.h"
#include "validate/validate_sums.h"

const char *const validate_measure_names[VALIDATE_MEASURES] = {"error", "correlation"};
const char *const validate_verdict_names[VALIDATE_VERDICTS] = {"yes", "no", "in part", "not run", "none held"};

enum {
#define X(name, help) COLUMN_##name,
#include "validate/goals.def"
#undef X
  COLUMNS
};

static const char *const column_names[] = {
#define X(name, help) #name,
#include "validate/goals.def"
#undef X
    NULL};

/* ---- which rows ---- */

static bool equal(const char *pattern, const char *name) { return !strcmp(pattern, name); }
static bool matches(const char *pattern, const char *name) { return !fnmatch(pattern, name, 0); }

/* Whether the name is one of the list, or all are. */
static bool is_among(const char *list, char between, const char *name, bool (*is)(const char *, const char *)) {
  char item[256];
  if (!strcmp(list, "-")) return true;
  for (;;) {
    const char *end = strchr(list, between);
    size_t length = end ? (size_t)(end - list) : strlen(list);
    if (length < sizeof item) {
      memcpy(item, list, length);
      item[length] = '\0';
      if (is(item, name)) return true;
    }
    if (!end) return false;
    list = end + 1;
  }
}

bool validate_goal_is_of(const validate_goal *goal, const validate_row *row) {
  return is_among(goal->groups, ',', row->group, equal) && is_among(goal->gpus, ',', row->gpu, equal) &&
         is_among(goal->rows, '|', row->row, matches) && (isnan(goal->from) || row->at >= goal->from) &&
         (isnan(goal->to) || row->at <= goal->to);
}

/* ---- reading ---- */

static ff_status bound(const fields *f, int column, const char *text, double *value, ff_error *error) {
  *value = VALIDATE_NONE;
  if (!strcmp(text, "-") || fields_number(text, value)) return FF_OK;
  return fields_fail(f, column, error, "'%s' is neither a number nor -", text);
}

static ff_status convert(const fields *f, validate_goal *goal, ff_error *error) {
  ff_status status = bound(f, COLUMN_least, goal->least, &goal->from, error);
  if (!status) status = bound(f, COLUMN_most, goal->most, &goal->to, error);
  if (status) return status;
  while (goal->of < VALIDATE_MEASURES && strcmp(goal->measure, validate_measure_names[goal->of]) != 0) goal->of++;
  if (goal->of == VALIDATE_MEASURES)
    return fields_fail(f, COLUMN_measure, error, "'%s' is neither error nor correlation", goal->measure);
  if (!fields_number(goal->target, &goal->wanted) || goal->wanted <= 0)
    return fields_fail(f, COLUMN_target, error, "'%s' is no number above 0", goal->target);
  if (goal->of == VALIDATE_ERROR) goal->wanted /= 100;
  else if (goal->wanted > 1) return fields_fail(f, COLUMN_target, error, "a correlation is at most 1");
  return FF_OK;
}

static ff_status add_goal(const fields *f, validate_table *table, ff_error *error) {
  validate_goal goal = {0};
  const char **texts[] = {
#define X(name, help) &goal.name,
#include "validate/goals.def"
#undef X
  };
  for (int i = 0; i < COLUMNS; i++) *texts[i] = ff_arena_strndup(&table->texts, f->at[i], f->length[i]);
  ff_status status = convert(f, &goal, error);
  for (size_t i = 0; i < table->rows.count; i++)
    goal.held += table->rows.items[i].is == VALIDATE_HELD && validate_goal_is_of(&goal, &table->rows.items[i]);
  if (!status) FF_PUSH(&table->goals, goal);
  return status;
}

ff_status validate_goals_read(const char *file, const char *text, size_t size, validate_table *table, ff_error *error) {
  fields f = {.file = file, .text = text, .size = size, .names = column_names, .count = COLUMNS};
  ff_status status = fields_header(&f, error);
  while (!status && fields_more(&f)) {
    status = fields_next(&f, error);
    if (!status) status = add_goal(&f, table, error);
  }
  return status;
}

/* ---- how far ---- */

static validate_verdict judge(const validate_goal *goal, const validate_attainment *a) {
  if (!goal->held) return VALIDATE_NONE_HELD;
  if (!a->scored) return VALIDATE_NOT_RUN;
  if (a->scored < goal->held) return VALIDATE_IN_PART;
  bool met = goal->of == VALIDATE_ERROR ? a->now <= goal->wanted : a->now >= goal->wanted; /* no: not a number */
  return met ? VALIDATE_MET : VALIDATE_MISSED;
}

validate_attainment validate_attained(const validate_table *table, const validate_goal *goal) {
  validate_attainment a = {0};
  validate_sums s = {0};
  for (size_t i = 0; i < table->rows.count; i++) {
    const validate_row *row = &table->rows.items[i];
    if (validate_row_counts(row) && validate_goal_is_of(goal, row)) validate_sum(&s, row);
  }
  a.scored = s.n;
  a.now = goal->of == VALIDATE_ERROR ? validate_mean_error(&s) : validate_correlation(&s);
  a.verdict = judge(goal, &a);
  return a;
}
