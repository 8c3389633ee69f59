/* SPDX-License-Identifier: Apache-2.0 */
/* See condition.h: what a parsed condition says of a run. The text is parsed in condition_parse.c. */
#include "compare/condition.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/condition_private.h"

void condition_free(condition *c) {
  if (!c) return;
  for (size_t i = 0; i < c->nodes.count; i++) free(c->nodes.items[i].manager);
  free(c->nodes.items);
  free(c->text);
  free(c);
}

const char *condition_text(const condition *c) { return c->text; }

bool condition_uses_baseline(const condition *c) {
  for (size_t i = 0; i < c->nodes.count; i++)
    if (c->nodes.items[i].baseline) return true;
  return false;
}

/* "copy@2" is copy on the second device. */
static bool is_of_manager(const char *name, const char *manager) {
  size_t length = strlen(manager);
  return !strncmp(name, manager, length) &&
         (!name[length] ||
          (name[length] == '@' && strspn(name + length + 1, "0123456789") == strlen(name + length + 1)));
}

ff_status condition_check_managers(const condition *c, const char *const *managers, ff_error *error) {
  for (size_t i = 0; i < c->nodes.count; i++) {
    const condition_node *n = &c->nodes.items[i];
    bool found = n->operation != OP_NAME || n->baseline;
    for (const char *const *each = managers; *each && !found; each++) found = is_of_manager(n->manager, *each);
    if (found) continue;
    const char *near = ff_closest(n->manager, managers);
    return near ? condition_fail(c, n->column, FF_NOT_FOUND, error, "'%s' is not simulated: did you mean '%s'?",
                                 n->manager, near)
                : condition_fail(c, n->column, FF_NOT_FOUND, error, "'%s' is not simulated (--memory says what is)",
                                 n->manager);
  }
  return FF_OK;
}

typedef struct evaluation {
  const condition *c;
  const report_run *run, *baseline;
  ff_text *values;
  ff_error *error;
  ff_status failed;
} evaluation;

static const sim_result *find_result(const report_run *run, const char *manager) {
  for (uint32_t i = 0; i < run->result_count; i++)
    if (!strcmp(run->results[i].memory, manager)) return &run->results[i];
  return NULL;
}

/* "uvm.faults = 690", once. */
static void say_value(evaluation *e, const condition_node *n, double value) {
  ff_text said = {0};
  char text[64];
  ff_text_add(&said, "%s%s.%s = %s", n->baseline ? "baseline." : "", n->manager, metric_names[n->metric],
              metric_format(metric_kind_of(n->metric), value, text, sizeof text));
  if (!e->values->chars || !strstr(e->values->chars, said.chars))
    ff_text_add(e->values, "%s%s", e->values->length ? ", " : "", said.chars);
  free(said.chars);
}

static double fail_name(evaluation *e, const condition_node *n, const char *what) {
  e->failed = condition_fail(e->c, n->column, FF_NOT_FOUND, e->error, "%s", what);
  return NAN;
}

static double value_of(evaluation *e, const condition_node *n) {
  const report_run *run = n->baseline ? e->baseline : e->run;
  const sim_result *result = run ? find_result(run, n->manager) : NULL;
  char what[900];
  if (!result) {
    snprintf(what, sizeof what, "there are no numbers of '%s' in %s", n->manager,
             n->baseline ? "the baseline" : "this run");
    return fail_name(e, n, what);
  }
  if (result->error[0]) {
    snprintf(what, sizeof what, "%s could not run the program: %s", n->manager, report_reason(result));
    return fail_name(e, n, what);
  }
  double ratio = report_ratio(run, result), value = metric_value(n->metric, &result->counters, ratio > 0 ? ratio : NAN);
  if (metric_of_tiers(n->metric)) value = metric_of_all_tiers(n->metric, &result->tiers);
  if (isnan(value)) {
    snprintf(what, sizeof what, "%s.%s has no value in %s", n->manager, metric_names[n->metric],
             n->baseline ? "the baseline" : "this run");
    return fail_name(e, n, what);
  }
  say_value(e, n, value);
  return value;
}

/* Conditions are 1 or 0. */
static double evaluate(evaluation *e, uint32_t node) {
  const condition_node *n = &e->c->nodes.items[node];
  if (e->failed) return NAN;
  if (n->operation == OP_NUMBER) return n->number;
  if (n->operation == OP_NAME) return value_of(e, n);
  double left = evaluate(e, n->left);
  if (e->failed || (n->operation == OP_AND && left == 0) || (n->operation == OP_OR && left != 0)) return left;
  if (n->operation == OP_NEGATE) return -left;
  if (n->operation == OP_NOT) return left == 0;
  double right = evaluate(e, n->right);
  if (n->operation == OP_DIVIDE && right == 0 && !e->failed)
    e->failed = condition_fail(e->c, n->column, FF_INVALID, e->error, "a division by 0");
  if (e->failed) return NAN;
  switch (n->operation) {
  case OP_ADD: return left + right;
  case OP_SUBTRACT: return left - right;
  case OP_MULTIPLY: return left * right;
  case OP_DIVIDE: return left / right;
  case OP_LESS: return left < right;
  case OP_LESS_EQUAL: return left <= right;
  case OP_MORE: return left > right;
  case OP_MORE_EQUAL: return left >= right;
  case OP_EQUAL: return left == right;
  case OP_UNEQUAL: return left != right;
  default: return right; /* AND, OR: the left one did not decide it */
  }
}

ff_status condition_evaluate(const condition *c, const report_run *run, const report_run *baseline, bool *holds,
                             ff_text *values, ff_error *error) {
  evaluation e = {.c = c, .run = run, .baseline = baseline, .values = values, .error = error};
  double value = evaluate(&e, (uint32_t)c->nodes.count - 1);
  *holds = !e.failed && value != 0;
  return e.failed;
}
