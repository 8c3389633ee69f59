/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault share`: recorded programs side by side on one simulated GPU; every one in parallel with every other, or the
 * shares that keep a deadline.
 *
 *   arguments -> a share_matrix (share/share_matrix.h) -> its cells, or the steps of a search (share/share_slo.h), as
 *   child processes (share_run.c) -> table, JSON, CSV, picture
 *
 * What can be refused is refused before anything is simulated; files are written only when all was;
 * the same command gives the same bytes, whatever --jobs says. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/running/run.h"
#include "cli/commands/share_command.h"
#include "machine/spec/mig.h"
#include "partition/shares.h"
#include "share/share_slo.h"
#include "trace/file.h"

enum {
  KEY_PARTITIONS = 256,
  KEY_ISOLATE,
  KEY_MIG,
  KEY_BORROW,
  KEY_INTERFERERS,
  KEY_SLO,
  KEY_ONE,
  KEY_HOST_MEMORY,
  KEY_SET,
  KEY_JSON,
  KEY_CSV,
  KEY_SVG,
  FAILURES_SHOWN = 10
};

static const struct argp_option options[] = {
    {"machine", 'M', "NAME|FILE", 0,
     "the GPU: a name that `farfault list machines` prints, or a machine file (default: the one that the first program was recorded on)",
     1},
    {"partitions", KEY_PARTITIONS, "SHARES", 0,
     "shares of the GPU: 50:50 (default), 1:2:1, 25%:50%, or sm=25%,memory=50%:sm=75%,memory=50%; the measured program has the first",
     1},
    {"isolate", KEY_ISOLATE, "none|mps|sm|sm+memory|mig,...", 0,
     "how programs are kept apart: time slices, threads on any SM, SMs of their own, these and memory modules of their own, slices of the GPU (default: all that the machine has)",
     1},
    {"mig", KEY_MIG, "PROFILE,...", 0,
     "mig: a profile for each partition, as 3g.40gb,3g.40gb or 3g,4g (default: for all of them the largest of which so many fit)",
     1},
    {"borrow", KEY_BORROW, NULL, 0,
     "sm, sm+memory: what an idle partition has is lent, and taken back when its program goes on", 1},
    {"memory", 'm', "MANAGER", 0,
     "memory manager of all programs (default: copy); replay+prefetch=tbn+evict=lru:64K: with other policies", 1},
    {"host-memory", KEY_HOST_MEMORY, "SIZE", 0,
     "host memory that the pages of all programs together may take: bytes, 8G, 512M, or 75% of what they allocate (default: the machine's host_memory_bytes). What does not fit goes to the machine's tiers below it",
     1},
    {"set", KEY_SET, "NAME=VALUE", 0, "change a value of the machine, as in its file; may be repeated", 1},
    {"interferers", KEY_INTERFERERS, "FILE,...", 0,
     "what runs in parallel with the measured programs (default: each of these)", 2},
    {"slo", KEY_SLO, "FILE=TIME[/launch],...", 0,
     "instead of the matrix: the shares with which a program's kernels take at most TIME (2.5ms) together, or each launch on average, in parallel with any interferer; the smallest of them",
     2},
    {"one", KEY_ONE, NULL, 0,
     "one simulation: the first program in the first partition, each further one, looping, in the next; - is an idle partition",
     2},
    {"jobs", 'j', "N", 0, "simulations at once (default: one per core)", 3},
    {"json", KEY_JSON, "FILE", 0, "write all numbers as JSON", 4},
    {"csv", KEY_CSV, "FILE", 0, "write a row per simulation as CSV", 4},
    {"svg", KEY_SVG, "FILE", 0, "write the picture", 4},
    {0}};

/* One manager, for all programs; of its parts, policies may be others. What else may stand behind a manager in
 * `farfault sim` is of the machine or of its memory, which the programs share. */
static void take_only_policies(const char *value, struct argp_state *state) {
  if (strpbrk(value, ", ")) cli_refuse(state, "--memory: one manager, for all programs");
  for (const char *part = strchr(value, '+'); part; part = strchr(part + 1, '+'))
    if (strncmp(part, "+prefetch=", 10) && strncmp(part, "+evict=", 7))
      cli_refuse(state, "--memory: behind a manager there may be prefetch=POLICY and evict=POLICY here, not '%s'",
                 part + 1);
}

static error_t parse(int key, char *value, struct argp_state *state) {
  share_arguments *a = state->input;
  char *end;
  if (value && !*value)
    cli_refuse(state, key == ARGP_KEY_ARG ? "a recording's name is empty" : "an option's value is empty");
  switch (key) {
  case 'M':
    cli_copy_option(a->setup.machine, sizeof a->setup.machine, value, "machine", state);
    a->setup.machine_chosen = true;
    return 0;
  case 'm':
    take_only_policies(value, state);
    cli_copy_option(a->setup.managers, sizeof a->setup.managers, value, "memory", state);
    return 0;
  case KEY_HOST_MEMORY:
    cli_copy_option(a->setup.choices.text[SIM_CHOICE_HOST_MEMORY], SIM_CHOICE_LENGTH, value, "host-memory", state);
    return 0;
  case KEY_SET: cli_add_option(a->setup.choices.set, sizeof a->setup.choices.set, value, "set", state); return 0;
  case KEY_PARTITIONS: a->partitions = value; return 0;
  case KEY_ISOLATE: a->isolate = value; return 0;
  case KEY_MIG: a->mig = value; return 0;
  case KEY_BORROW: a->borrow = true; return 0;
  case KEY_INTERFERERS: FF_PUSH(&a->interferers, value); return 0;
  case KEY_SLO: FF_PUSH(&a->deadlines, value); return 0;
  case KEY_ONE: a->one = true; return 0;
  case KEY_JSON: a->json = cli_output(value, "--json", false, state); return 0;
  case KEY_CSV: a->csv = cli_output(value, "--csv", false, state); return 0;
  case KEY_SVG: a->svg = cli_output(value, "--svg", false, state); return 0;
  case 'j':
    a->jobs = (uint32_t)strtoul(value, &end, 10);
    if (*value < '1' || *value > '9' || *end || strlen(value) > 3)
      cli_refuse(state, "--jobs: '%s' is not a number from 1 to 999", value);
    return 0;
  case ARGP_KEY_ARG: FF_PUSH(&a->files, value); return 0;
  case ARGP_KEY_END:
    if (!a->files.count) cli_refuse(state, "which programs? (recordings that `farfault record -o FILE` wrote)");
    if (a->one && (a->interferers.count || a->deadlines.count || a->csv || a->svg))
      cli_refuse(state, "--one is one simulation: without --interferers, --slo, --csv and --svg");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- what the arguments say ---- */

static int refuse(ff_error *error) {
  return cli_fail(error->status == FF_IO || error->status == FF_PARSE ? CLI_BAD_FILE : CLI_USAGE, "%s", error->message);
}

/* A recording is there and is one; the first one's machine is the default. */
static int check_recording(share_arguments *a, const char *path, uint64_t *accesses) {
  trace_file *file;
  ff_error error;
  if (kind_refused(path, KIND_TRACE)) return CLI_BAD_FILE;
  if (trace_file_open(path, &file, &error)) return cli_fail(CLI_BAD_FILE, "%s", error.message);
  const trace_file_info *info = trace_file_information(file);
  int status = CLI_DONE;
  *accesses = info->accesses;
  if (!a->setup.machine[0] && !a->one) cli_choose_machine(&a->setup, info);
  if (!info->launches)
    status = cli_fail(CLI_BAD_FILE, "%s: the recorded program launches no kernel: there is nothing to measure", path);
  else if (!info->whole && !a->one) cli_fail(0, "%s: its end is missing; what is there is simulated", path);
  trace_file_close(file);
  return status;
}

static int add_program(share_arguments *a, share_matrix *m, const char *path, int32_t *program) {
  size_t before = m->programs.count;
  if ((*program = share_matrix_add(m, path)) < 0)
    return cli_fail(CLI_USAGE, "more than %d recordings", SHARE_RECORDINGS);
  return m->programs.count > before ? check_recording(a, path, &m->programs.items[before].accesses) : CLI_DONE;
}

static bool has(const uint32_t *list, uint32_t count, uint32_t wanted) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == wanted) return true;
  return false;
}

static int add_measured(share_arguments *a, share_matrix *m) {
  int32_t program;
  for (size_t i = 0; i < a->files.count; i++) {
    if (a->one && !strcmp(a->files.items[i], "-")) continue;
    int status = add_program(a, m, a->files.items[i], &program);
    if (status) return status;
    if (!has(m->measured, m->measured_count, (uint32_t)program)) m->measured[m->measured_count++] = (uint32_t)program;
  }
  return CLI_DONE;
}

static int add_interferers(share_arguments *a, share_matrix *m) {
  int32_t program;
  int status = CLI_DONE;
  for (size_t i = 0; i < a->interferers.count && !status; i++) {
    char *list = ff_strdup(a->interferers.items[i]), *rest = NULL;
    for (char *each = strtok_r(list, ",", &rest); each && !status; each = strtok_r(NULL, ",", &rest))
      if (!(status = add_program(a, m, each, &program)) && !has(m->interferers, m->interferer_count, (uint32_t)program))
        m->interferers[m->interferer_count++] = (uint32_t)program;
    free(list);
  }
  if (a->interferers.count && !m->interferer_count && !status) return cli_fail(CLI_USAGE, "--interferers names none");
  for (uint32_t i = 0; i < m->measured_count && !a->interferers.count; i++)
    m->interferers[m->interferer_count++] = m->measured[i];
  return status;
}

static int find_isolation(const char *word, share_isolation *isolation) {
  const char *names[SHARE_ISOLATIONS + 1] = {0};
  for (int i = 0; i < SHARE_ISOLATIONS; i++) {
    names[i] = share_isolation_name((share_isolation)i);
    *isolation = (share_isolation)i;
    if (!strcmp(names[i], word)) return CLI_DONE;
  }
  const char *near = cli_closest(word, names);
  if (near) return cli_fail(CLI_USAGE, "--isolate: no '%s': did you mean '%s'?", word, near);
  return cli_fail(CLI_USAGE, "--isolate: no '%s': there are none, mps, sm, sm+memory and mig", word);
}

/* Memory modules of their own: the machine's address hash must leave so many sets of pages that share none. */
static int check_colours(const share_arguments *a, const share_matrix *m) {
  uint32_t colours = share_machine_colours(&a->spec);
  if (colours == 1 && !a->spec.address_map[0])
    return cli_fail(
        CLI_USAGE,
        "--isolate sm+memory: the address hash of %s is not known (no `address_map` in its file), so its memory cannot be divided; gtx1080, gtx1070 and v100 have one",
        m->machine);
  if (colours < m->part_count)
    return cli_fail(
        CLI_USAGE,
        "--isolate sm+memory: %u partitions, but %s has %u colour%s of pages of %d KiB: no page of it can be kept to fewer memory modules",
        m->part_count, m->machine, colours, colours == 1 ? "" : "s", SHARE_PAGE / 1024);
  return CLI_DONE;
}

/* The profile of each partition's slice: they fit the machine together. */
static int choose_slices(const share_arguments *a, share_matrix *m) {
  machine_spec *slice = ff_alloc(sizeof *slice);
  ff_error error;
  uint32_t count = m->part_count;
  ff_status status = FF_OK, unread = FF_OK;
  if (a->mig) unread = mig_read(&a->spec, "--mig", a->mig, SHARE_PROGRAMS, m->profiles, &count, &error);
  else status = mig_largest(&a->spec, count, &m->profiles[0], &error);
  for (uint32_t i = 1; i < count && !a->mig && !status; i++) m->profiles[i] = m->profiles[0];
  if (!status && !unread && count != m->part_count)
    status = ff_fail(&error, FF_INVALID, "%u profiles, but %u partitions", count, m->part_count);
  if (!status && !unread) status = mig_fit(&a->spec, m->profiles, count, &error);
  for (uint32_t i = 0; i < count && !status && !unread; i++)
    status = mig_slice(&a->spec, m->profiles[i], slice, &error);
  free(slice);
  if (unread) return cli_fail(CLI_USAGE, "%s", error.message); /* it names the option */
  return status ? cli_fail(CLI_USAGE, "%s: %s", a->mig ? "--mig" : "--isolate mig", error.message) : CLI_DONE;
}

/* Slices stand beside the other isolations if the partitions are equal: there are none of 25 %. */
static bool has_slices(const share_arguments *a, const share_matrix *m) {
  uint32_t profile;
  ff_error none;
  if (a->mig) return true;
  for (uint32_t i = 1; i < m->part_count; i++)
    if (m->parts[i].sm != m->parts[0].sm || m->parts[i].memory != m->parts[0].memory) return false;
  return !mig_largest(&a->spec, m->part_count, &profile, &none);
}

/* Without --isolate. divides: the machine's colours can be divided among the partitions. The caller frees it. */
static char *usual_isolations(const share_arguments *a, const share_matrix *m, bool divides) {
  if (a->one) return ff_strdup(a->mig ? "mig" : "sm");
  ff_text list = {0};
  ff_text_add(&list, a->deadlines.count ? "mps,sm" : "none,mps,sm");
  if (divides) ff_text_add(&list, ",sm+memory");
  if (!a->deadlines.count && has_slices(a, m)) ff_text_add(&list, ",mig");
  return list.chars;
}

static int add_isolations(const share_arguments *a, share_matrix *m) {
  bool all = !a->isolate, divides = share_machine_colours(&a->spec) >= m->part_count;
  char *list = all ? usual_isolations(a, m, divides) : ff_strdup(a->isolate), *rest = NULL;
  int status = CLI_DONE;
  bool lends = false, slices = false;
  for (char *each = strtok_r(list, ", ", &rest); each && !status; each = strtok_r(NULL, ", ", &rest)) {
    share_isolation isolation;
    bool twice = false;
    if ((status = find_isolation(each, &isolation))) break;
    for (uint32_t i = 0; i < m->isolation_count; i++) twice = twice || m->isolations[i] == isolation;
    if (!twice) m->isolations[m->isolation_count++] = isolation;
    if (isolation == SHARE_SM_MEMORY) status = check_colours(a, m);
    if (isolation == SHARE_MIG) status = choose_slices(a, m);
    lends = lends || share_lends(isolation);
    slices = slices || isolation == SHARE_MIG;
  }
  free(list);
  if (!status && !m->isolation_count) return cli_fail(CLI_USAGE, "--isolate names none");
  if (!status && a->one && m->isolation_count > 1)
    return cli_fail(CLI_USAGE, "--one is one simulation: --isolate names several");
  if (!status && all && !divides && !a->one)
    cli_fail(0, "sm+memory is left out: %s has too few colours of pages for %u partitions", m->machine, m->part_count);
  if (!status && a->mig && !slices) return cli_fail(CLI_USAGE, "--mig is for --isolate mig");
  if (!status && a->borrow && !lends)
    return cli_fail(
        CLI_USAGE,
        "--borrow: with none and mps no program has anything to lend, with mig none may; it is for sm and sm+memory");
  return status;
}

/* Without --partitions: as many equal ones as --mig names profiles. */
static const char *usual_partitions(const share_arguments *a) {
  static const char *const equal[] = {"1",         "50:50",       "1:1:1",         "1:1:1:1",
                                      "1:1:1:1:1", "1:1:1:1:1:1", "1:1:1:1:1:1:1", "1:1:1:1:1:1:1:1"};
  size_t commas = 0;
  for (const char *c = a->mig; c && *c; c++) commas += *c == ',';
  if (!a->mig) return equal[1];
  return equal[commas < SHARE_PROGRAMS ? commas : SHARE_PROGRAMS - 1];
}

/* The partitions fit the machine. Counts that are not what was asked for are told (SMs and colours are whole). */
static int add_partitions(share_arguments *a, share_matrix *m) {
  partition_share shares[SHARE_PROGRAMS];
  sm_range ranges[SHARE_PROGRAMS];
  ff_error error;
  if (!a->partitions) a->partitions = usual_partitions(a);
  m->partitions = a->partitions;
  if (shares_parse("--partitions", a->partitions, SHARE_PROGRAMS, shares, &m->part_count, &error))
    return cli_fail(CLI_USAGE, "%s", error.message);
  for (uint32_t i = 0; i < m->part_count; i++) m->parts[i] = (share_part){shares[i].sm_share, shares[i].memory_share};
  if (shares_sms(shares, m->part_count, (uint32_t)a->spec.sm_count, ranges, &error))
    return cli_fail(CLI_USAGE, "--partitions: %s", error.message);
  if (m->part_count == 1 && !a->one)
    return cli_fail(CLI_USAGE, "--partitions: with one partition there is no neighbour");
  if (a->one && a->files.count > m->part_count)
    return cli_fail(CLI_USAGE, "%zu programs, but %u partitions", a->files.count, m->part_count);
  return CLI_DONE;
}

static void note_colours(const share_arguments *a, const share_matrix *m) {
  partition_share shares[SHARE_PROGRAMS];
  uint64_t sets[SHARE_PROGRAMS];
  ff_text note = {0};
  bool wanted = false;
  for (uint32_t i = 0; i < m->isolation_count; i++) wanted = wanted || m->isolations[i] == SHARE_SM_MEMORY;
  for (uint32_t i = 0; i < m->part_count; i++) shares[i] = (partition_share){m->parts[i].sm, m->parts[i].memory};
  if (wanted && !shares_colours(shares, m->part_count, share_machine_colours(&a->spec), sets, &note, NULL) &&
      note.chars)
    fprintf(stderr, "%s", note.chars);
  free(note.chars);
}

static int check_outputs(const share_arguments *a, const share_matrix *m) {
  ff_error error;
  run_outputs outputs = {.output = a->svg, .json = a->json, .csv = a->csv};
  for (size_t i = 0; i < m->programs.count; i++)
    if (run_outputs_check(&outputs, m->programs.items[i].path, "a recording", a->setup.machine, &error))
      return cli_fail(error.status == FF_INVALID ? CLI_USAGE : CLI_FAILED, "%s", error.message);
  if (a->svg && a->json && !strcmp(a->svg, a->json))
    return cli_fail(CLI_USAGE, "%s: is named twice: JSON and picture need a file each", a->svg);
  return CLI_DONE;
}

static int prepare(share_arguments *a, share_matrix *m) {
  ff_error error;
  int status = add_measured(a, m);
  if (!status && !m->measured_count)
    status = cli_fail(CLI_USAGE, "the first partition is the measured one: it needs a program");
  if (!status && a->one && !strcmp(a->files.items[0], "-"))
    status = cli_fail(CLI_USAGE, "the first partition is the measured one: it needs a program");
  if (!status && !a->one) status = add_interferers(a, m);
  if (status) return status;
  if (!a->setup.managers[0]) strcpy(a->setup.managers, "copy");
  m->machine = a->setup.machine_chosen || a->setup.machine[0] ? ff_strdup(a->setup.machine) : NULL;
  if (cli_setup_check(&a->setup, &error)) return refuse(&error);
  if (!m->machine) m->machine = ff_strdup(a->setup.machine);
  if (machine_spec_load(a->setup.machine, &a->spec, &error) ||
      machine_spec_set_all(&a->spec, a->setup.choices.set, &error))
    return refuse(&error);
  m->spec = &a->spec;
  m->set = a->setup.choices.set[0] ? a->setup.choices.set : NULL;
  m->manager = a->setup.managers;
  if (a->setup.choices.text[SIM_CHOICE_HOST_MEMORY][0]) m->host_memory = a->setup.choices.text[SIM_CHOICE_HOST_MEMORY];
  m->borrow = a->borrow;
  status = add_partitions(a, m);
  if (!status) status = add_isolations(a, m);
  if (!status) status = check_outputs(a, m);
  if (!status && !a->one && !a->deadlines.count) note_colours(a, m);
  return status;
}

/* ---- the end of both ---- */

typedef struct texts {
  ff_text table, json, csv, svg;
} texts;

static bool write_file(const char *path, const ff_text *text) {
  ff_error error;
  return !path || !ff_file_write(path, text->chars, text->length, &error) || cli_fail(false, "%s", error.message);
}

/* `whole`: everything was simulated; then files are written. */
static int conclude(const share_arguments *a, texts *t, bool whole, uint32_t missing, uint32_t all, int signal) {
  int status = cli_print(&t->table);
  bool files = a->json || a->csv || a->svg, good = true;
  if (!whole && all)
    cli_fail(0, "incomplete: %u of %u simulations are there%s", all - missing, all,
             files ? ", and no file was written" : "");
  else if (!whole)
    cli_fail(0, "incomplete: not all of the search was done%s", files ? ", and no file was written" : "");
  else {
    good = write_file(a->json, &t->json);
    good = write_file(a->csv, &t->csv) && good;
    good = write_file(a->svg, &t->svg) && good;
  }
  free(t->table.chars);
  free(t->json.chars);
  free(t->csv.chars);
  free(t->svg.chars);
  return signal ? 128 + signal : whole && good ? status : CLI_FAILED;
}

/* ---- the matrix ---- */

static void matrix_request(const void *context, uint32_t task, share_request *request) {
  share_matrix_request(context, task, request);
}

static void matrix_take(void *context, uint32_t task, share_outcome *outcomes, const char *why) {
  share_matrix_put(context, task, outcomes, why);
}

static void tell_failures(const share_matrix *m) {
  uint32_t told = 0, failed = 0;
  for (uint32_t i = 0; i < m->cell_count; i++) {
    if (!m->cells[i].error || ++failed > FAILURES_SHOWN) continue;
    ff_text name = {0};
    share_matrix_name(m, i, &name);
    cli_fail(0, "%s: %s", name.chars, m->cells[i].error);
    free(name.chars);
    told++;
  }
  if (failed > told) cli_fail(0, "%u further simulations failed", failed - told);
}

static int run_matrix(const share_arguments *a, share_matrix *m) {
  share_pool pool = {.arguments = a, .m = m, .context = m, .request = matrix_request, .take = matrix_take};
  texts t = {{0}, {0}, {0}, {0}};
  ff_text below = {0};
  int signal = share_pool_run(&pool, m->cell_count);
  ff_tasks_free(&pool.tasks);
  uint32_t missing = share_matrix_missing(m);
  tell_failures(m);
  if (missing < m->cell_count) share_matrix_table(m, &t.table);
  share_matrix_json(m, &t.json);
  share_matrix_csv(m, &t.csv);
  ff_text_add(&below, "%s", a->command);
  share_matrix_svg(m, below.chars, &t.svg);
  free(below.chars);
  return conclude(a, &t, !missing, missing, m->cell_count, signal);
}

/* ---- deadlines ---- */

static void slo_request(const void *context, uint32_t task, share_request *request) {
  share_slo_request(context, task, request);
}

static void slo_take(void *context, uint32_t task, share_outcome *outcomes, const char *why) {
  if (outcomes && outcomes[0].error[0]) why = outcomes[0].error;
  share_slo_put(context, task, why ? NULL : outcomes, why);
  free(outcomes);
}

static int run_slo(const share_arguments *a, share_slo *slo) {
  share_pool pool = {.arguments = a, .m = slo->m, .context = slo, .request = slo_request, .take = slo_take};
  texts t = {{0}, {0}, {0}, {0}};
  int signal = 0;
  bool failed = false;
  for (uint32_t count; !signal && (count = share_slo_next(slo));) {
    pool.later = share_slo_left(slo);
    signal = share_pool_run(&pool, count);
  }
  ff_tasks_free(&pool.tasks);
  for (size_t i = 0; i < slo->rows.count; i++) failed = failed || slo->rows.items[i].error;
  share_slo_table(slo, &t.table);
  share_slo_json(slo, &t.json);
  share_slo_csv(slo, &t.csv);
  share_slo_svg(slo, a->command, &t.svg);
  return conclude(a, &t, !failed && !signal, 0, 0, signal);
}

static int find_shares(const share_arguments *a, const share_matrix *m) {
  share_slo slo = {.m = m};
  ff_error error;
  ff_status status = FF_OK;
  for (size_t i = 0; i < a->deadlines.count && !status; i++)
    status = share_slo_read(&slo, "--slo", a->deadlines.items[i], &error);
  if (!status) status = share_slo_start(&slo, share_machine_colours(&a->spec), &error);
  int result = status ? cli_fail(CLI_USAGE, "%s", error.message) : run_slo(a, &slo);
  share_slo_free(&slo);
  return result;
}

/* ---- the command ---- */

/* The command without what says only where the output goes, and how fast it comes. */
static char *command_text(int argc, char **argv) {
  static const char *const left_out[] = {"--csv", "--svg", "--json", "--jobs", "-j"};
  enum { COUNT = sizeof left_out / sizeof left_out[0] };
  ff_text text = {0};
  ff_text_add(&text, "farfault share");
  for (int i = 1; i < argc; i++) {
    size_t which = 0;
    while (which < COUNT && strncmp(argv[i], left_out[which], strlen(left_out[which]))) which++;
    if (which < COUNT && !strcmp(argv[i], left_out[which])) i++;
    if (which < COUNT) continue;
    ff_text_add(&text, " ");
    ff_text_add_quoted(&text, argv[i]);
  }
  return text.chars;
}

static int share(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "TRACE...",
      "Runs recorded programs side by side on one simulated GPU: each in turn is measured in the first partition, next to idle neighbours and in parallel with each "
      "interferer, which loops in the others. Prints each one's kernel time alone, shared and normalised, and how much interferers change it (docs/share.md).\v"
      "Example:\n  farfault record -o mm.fft ./matmul 256\n  farfault record -o va.fft ./vectoradd 1000000\n"
      "  farfault share --machine gtx1080 --partitions 50:50 --isolate sm,sm+memory mm.fft va.fft --svg share.svg\n"
      "  farfault share --machine a100 --mig 3g,3g mm.fft va.fft\n"
      "  farfault share --machine gtx1080 --isolate sm+memory --slo mm.fft=2.5ms mm.fft va.fft\n\n"
      "Exit status: 0; 1 if a simulation failed, 2 a file is of no use, 64 wrong arguments, 128 + N stopped by signal N (what is there is printed).",
      NULL,
      NULL,
      NULL};
  share_arguments a = {0};
  share_matrix m = {0};
  char *words[argc + 1]; /* argp moves argv's words about; on the stack, as cli_parse does not always return */
  memcpy(words, argv, (size_t)argc * sizeof *words);
  cli_parse_tabular(&argp, argc, argv, &a, STDOUT_FILENO);
  a.command = command_text(argc, words);
  int status = prepare(&a, &m);
  if (!status) {
    share_matrix_start(&m);
    status = a.one ? share_one(&a, &m) : a.deadlines.count ? find_shares(&a, &m) : run_matrix(&a, &m);
  }
  free((char *)m.machine);
  share_matrix_free(&m);
  free(a.files.items);
  free(a.interferers.items);
  free(a.deadlines.items);
  free(a.command);
  return status;
}

const cli_command cli_share = {"share", "simulate programs side by side on one GPU", share};
