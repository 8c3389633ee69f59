/* SPDX-License-Identifier: Apache-2.0 */
/* See fail_if.h. A condition that cannot be evaluated counts as one that holds: a check that did not happen is no
 * success. */
#include "cli/running/fail_if.h"

#include <stdlib.h>
#include <string.h>

#include "compare/junit.h"

void fail_if_add(fail_if *f, const char *text, struct argp_state *state) {
  ff_error error;
  condition *c;
  if (condition_parse(text, &c, &error)) cli_refuse(state, "--fail-if: %s", error.message);
  FF_PUSH(&f->conditions, c);
}

/* The managers of the setup ("uvm+evict=lru:64K,copy"), NULL-ended, in a copy of the text that *words takes. */
static const char **list_managers(const cli_setup *setup, char **words) {
  size_t count = 2;
  *words = ff_strdup(setup->managers);
  for (const char *c = *words; *c; c++) count += *c == ',';
  const char **list = ff_alloc(count * sizeof *list);
  char *rest = NULL;
  size_t at = 0;
  for (char *word = strtok_r(*words, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) list[at++] = word;
  return list;
}

static ff_status check_baseline(const fail_if *f, bool used, ff_error *error) {
  report_run run;
  if (used && !f->baseline)
    return ff_fail(error, FF_INVALID, "--fail-if speaks of a baseline: --baseline FILE names one");
  if (!f->baseline) return FF_OK;
  if (!f->conditions.count)
    return ff_fail(
        error, FF_INVALID,
        "--baseline %s compares nothing without a condition: add --fail-if 'copy.time > 1.1 * baseline.copy.time', or "
        "use farfault compare",
        f->baseline);
  ff_status status = kind_check(f->baseline, KIND_RUN, error);
  if (!status) status = report_file_read(f->baseline, &run, error);
  if (!status) report_free(&run);
  return status;
}

ff_status fail_if_check(const fail_if *f, const cli_setup *setup, ff_error *error) {
  char *words;
  const char **names = list_managers(setup, &words);
  ff_status status = FF_OK;
  bool baseline = false;
  for (size_t i = 0; i < f->conditions.count && !status; i++) {
    status = condition_check_managers(f->conditions.items[i], names, error);
    baseline = baseline || condition_uses_baseline(f->conditions.items[i]);
  }
  free(names);
  free(words);
  if (status) ff_fail_at(error, status, "--fail-if");
  return status ? status : check_baseline(f, baseline, error);
}

typedef struct settling {
  const fail_if *f;
  const run_outputs *outputs;
  FF_VEC(junit_suite) suites;
  bool holds;
} settling;

static void settle_condition(settling *s, const condition *c, const report_run *run, const report_run *baseline,
                             junit_suite *suite) {
  ff_text values = {0}, message = {0};
  ff_error error;
  bool holds;
  if (condition_evaluate(c, run, baseline, &holds, &values, &error)) {
    junit_add(suite, condition_text(c), JUNIT_ERROR, error.message);
    cli_fail(0, "--fail-if: %s", error.message);
    s->holds = true;
  } else {
    ff_text_add(&message, "%s: %s", holds ? "it holds" : "it does not hold", values.chars ? values.chars : "");
    junit_add(suite, condition_text(c), holds ? JUNIT_FAILED : JUNIT_PASSED, message.chars);
    s->holds = s->holds || holds;
    if (holds) cli_fail(0, "--fail-if '%s': %s", condition_text(c), message.chars);
  }
  free(values.chars);
  free(message.chars);
}

static void settle_process(settling *s, const run_results *results, uint32_t process, junit_suite *suite) {
  report_run baseline;
  bool known = false;
  ff_error error;
  char *name = s->f->baseline ? run_output_name(s->outputs, s->f->baseline, process) : NULL;
  if (name && s->f->conditions.count) {
    known = !report_file_read(name, &baseline, &error);
    if (!known) cli_fail(0, "--baseline: %s", error.message);
  }
  for (size_t i = 0; i < s->f->conditions.count; i++)
    settle_condition(s, s->f->conditions.items[i], &results->runs[process], known ? &baseline : NULL, suite);
  if (known) report_free(&baseline);
  free(name);
}

/* Without results there is nothing that a condition could be about. */
static void settle_nothing(settling *s, junit_suite *suite) {
  for (size_t i = 0; i < s->f->conditions.count; i++) {
    junit_add(suite, condition_text(s->f->conditions.items[i]), JUNIT_ERROR,
              "there are no numbers: nothing was simulated");
    s->holds = true;
  }
  if (s->f->conditions.count) cli_fail(0, "--fail-if: there are no numbers: nothing was simulated");
}

static junit_suite *add_suite(settling *s, const char *program, uint32_t process) {
  ff_text name = {0};
  ff_text_add(&name, "farfault: %s", program);
  if (process) ff_text_add(&name, " (process %u)", process + 1);
  junit_suite suite = {.name = name.chars};
  FF_PUSH(&s->suites, suite);
  return &s->suites.items[s->suites.count - 1];
}

static void add_end(junit_suite *suite, int status) {
  ff_text message = {0};
  ff_text_add(&message, "exit status %d", status);
  junit_add(suite, "the program ends with status 0", status ? JUNIT_FAILED : JUNIT_PASSED, message.chars);
  free(message.chars);
}

static bool write_junit(const char *path, const settling *s) {
  ff_text xml = {0};
  ff_error error;
  junit_write(s->suites.items, s->suites.count, &xml);
  ff_status status = ff_file_write(path, xml.chars, xml.length, &error);
  free(xml.chars);
  return !status || cli_fail(false, "--junit: %s", error.message);
}

int fail_if_settle(const run_outputs *outputs, const run_results *results, const char *program, int status) {
  settling s = {.f = outputs->conditions, .outputs = outputs};
  bool good = true;
  if (!s.f || (!s.f->conditions.count && !outputs->junit)) return status;
  add_end(add_suite(&s, program, 0), status);
  for (uint32_t i = 0; i < results->count; i++)
    settle_process(&s, results, i, i ? add_suite(&s, program, i) : &s.suites.items[0]);
  if (!results->count) settle_nothing(&s, &s.suites.items[0]);
  if (outputs->junit) good = write_junit(outputs->junit, &s);
  for (size_t i = 0; i < s.suites.count; i++) junit_free(&s.suites.items[i]);
  free(s.suites.items);
  if (status) return status;
  return !good ? CLI_FAILED : s.holds ? CLI_CONDITION : CLI_DONE;
}
