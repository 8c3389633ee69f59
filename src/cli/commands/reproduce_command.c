/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault reproduce PAPER`: runs a paper's experiments on the bundled workloads, and prints its numbers next to ours;
 * `all`: of every paper, one after the other.
 *
 *   tables of reproduce/ -> a `farfault run --json` per program and group of settings (jobs.c) -> counters -> rows,
 *   picture recorded programs:  a `farfault record` per program, then a `farfault sim --json` of that per group of
 *   settings
 *   shares of a GPU:    a `farfault record` per program (and per number of SMs to which its kernels are bound), then this
 *   command with --cells per program and group of settings
 *
 * Programs are executed by one thread, so that even floating-point atomics come in one order and the
 * same command gives the same bytes; files are written only when all runs were made; a run that failed is named, with
 * what it said. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/running/jobs.h"
#include "cli/running/run.h"
#include "reproduce/reproduce.h"
#include "trace/file.h"

enum {
  KEY_CSV = 256,
  KEY_SVG,
  KEY_HTML,
  KEY_SIZE,
  KEY_KEEP,
  KEY_JSON,
  KEY_CELLS,
  KEY_RECORDINGS,
  SETTINGS_PER_RUN = 24,
  LOG_LIMIT = 1 << 20
};

typedef struct arguments {
  const repro_paper *paper;
  bool all; /* instead of one paper: each in turn */
  repro_size size;
  uint32_t jobs;
  const char *csv, *svg, *html, *keep;
  repro_page *page; /* --html: each paper is added to it */
  const char *json; /* "-": instead of the table */
  bool verbose;
  uint32_t program, first, count; /* --cells: of one process of many; count 0: not such a one */
  const char *recordings, *cells; /* its input's folder, its output */
} arguments;

/* Which cells of the measurements a job fills: settings [first, first + count) of one program. */
typedef struct part {
  uint32_t program, first, count;
  char *file;
} part;

typedef struct work {
  const arguments *arguments;
  repro_data data;
  jobs jobs;
  FF_VEC(part) parts; /* as jobs.list */
  char *folder, *self, *workloads;
  uint32_t failed;
} work;

static const struct argp_option options[] = {
    {"csv", KEY_CSV, "FILE|FOLDER", 0,
     "write the rows as CSV: row,paper,ours,ratio,claim,score,within,note; in a folder as PAPER.csv", 0},
    {"svg", KEY_SVG, "FILE|FOLDER", 0, "write the picture; in a folder as PAPER.svg", 0},
    {"html", KEY_HTML, "FILE", 0, "write a page with the picture and all rows; of `all`, of every paper", 0},
    {"size", KEY_SIZE, "small|normal|full", 0,
     "of the programs: small (seconds, for tests), normal (minutes; default), full (near the paper's, an hour)", 0},
    {"jobs", 'j', "N", 0, "programs that run at once (default: 1; each uses several cores)", 0},
    {"keep", KEY_KEEP, "FOLDER", 0,
     "keep each finished run there, and take what is there already: an interrupted reproduction goes on", 0},
    {"json", KEY_JSON, "FILE", 0,
     "write the rows and every program's counters as JSON; -: to stdout instead of the table", 0},
    {"cells", KEY_CELLS, "PROGRAM:FIRST:COUNT:FILE", OPTION_HIDDEN, "simulate these shares only, into a file", 0},
    {"recordings", KEY_RECORDINGS, "FOLDER", OPTION_HIDDEN, "where the programs' recordings are", 0},
    {"verbose", 'v', NULL, 0, "add the values of each program", 0},
    {0}};

static void parse_size(arguments *a, const char *value, struct argp_state *state) {
  for (int i = 0; i < REPRO_SIZES; i++)
    if (!strcmp(value, repro_size_names[i])) {
      a->size = (repro_size)i;
      return;
    }
  cli_refuse(state, "--size: '%s' is neither small, normal nor full", value);
}

static void parse_paper(arguments *a, const char *value, struct argp_state *state) {
  const char *names[32] = {0};
  ff_text known = {0};
  for (int i = 0; repro_papers[i]; i++) {
    names[i] = repro_papers[i]->name;
    ff_text_add(&known, "%s%s", i ? ", " : "", names[i]);
  }
  if (a->paper || a->all) cli_refuse(state, "one paper, or all");
  if (!strcmp(value, "all")) {
    a->all = true;
    free(known.chars);
    return;
  }
  a->paper = repro_find(value);
  const char *near = cli_closest(value, names);
  if (!a->paper && near) cli_refuse(state, "no paper '%s': did you mean '%s'?", value, near);
  if (!a->paper) cli_refuse(state, "no paper '%s': there are %s, and all", value, known.chars);
  free(known.chars);
}

/* Not simulated by `farfault run` or `sim`, but by this command with --cells. */
static bool is_own(const repro_paper *paper, uint32_t setting) {
  return !paper->settings[setting].memory || (paper->shares && paper->shares[setting].partitions);
}

static bool needs_recordings(const repro_paper *paper) { return paper->shares || paper->recorded; }

/* Checked against the paper when that is known. */
static void parse_cells(arguments *a, const char *value, struct argp_state *state) {
  int length = 0;
  if (sscanf(value, "%u:%u:%u:%n", &a->program, &a->first, &a->count, &length) < 3 || !length || !a->count ||
      !value[length])
    cli_refuse(state, "--cells: '%s' is not PROGRAM:FIRST:COUNT:FILE", value);
  a->cells = value + length;
}

static void check_cells(const arguments *a, struct argp_state *state) {
  const repro_paper *p = a->paper;
  bool fits = needs_recordings(p) && a->program < p->program_count && a->first < p->setting_count &&
              a->count <= p->setting_count - a->first;
  for (uint32_t i = a->first; fits && i < a->first + a->count; i++) fits = is_own(p, i);
  if (!fits || !a->recordings) cli_refuse(state, "--cells: %s has no such shares, or --recordings is missing", p->name);
}

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  char *end;
  switch (key) {
  case KEY_CSV: a->csv = cli_output(value, "--csv", false, state); return 0;
  case KEY_SVG: a->svg = cli_output(value, "--svg", false, state); return 0;
  case KEY_HTML: a->html = cli_output(value, "--html", false, state); return 0;
  case KEY_KEEP: a->keep = cli_output(value, "--keep", false, state); return 0;
  case KEY_SIZE: parse_size(a, value, state); return 0;
  case 'j':
    a->jobs = (uint32_t)strtoul(value, &end, 10);
    if (*value < '1' || *value > '9' || *end || strlen(value) > 3)
      cli_refuse(state, "--jobs: '%s' is not a number from 1 to 999", value);
    return 0;
  case KEY_JSON: a->json = cli_output(value, "--json", true, state); return 0;
  case 'v': a->verbose = true; return 0;
  case KEY_CELLS: parse_cells(a, value, state); return 0;
  case KEY_RECORDINGS: a->recordings = value; return 0;
  case ARGP_KEY_ARG: parse_paper(a, value, state); return 0;
  case ARGP_KEY_END: {
    const char *old = a->paper || a->all ? NULL : cli_old_argument("--json", &a->json, state);
    if (old) parse_paper(a, old, state);
    if (!a->paper && !a->all) cli_refuse(state, "which paper? (farfault reproduce --help lists them)");
    if (a->all && (a->json || a->count)) cli_refuse(state, "--json: one paper at a time");
    if (a->count) check_cells(a, state);
    return 0;
  }
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- the runs ---- */

static void add_word(char ***argv, size_t *count, const char *word) {
  *argv = ff_realloc(*argv, (*count + 2) * sizeof **argv);
  (*argv)[(*count)++] = ff_strdup(word);
  (*argv)[*count] = NULL;
}

static char *file_in(const char *folder, const char *format, const char *name, uint32_t number) {
  ff_text path = {0};
  ff_text_add(&path, "%s/", folder);
  ff_text_add(&path, format, name, number);
  for (char *c = path.chars + strlen(folder) + 1; *c; c++)
    if (*c == '/' || *c == ' ') *c = '-';
  return path.chars;
}

static const char *machine_of(const repro_paper *paper, uint32_t setting) {
  return paper->settings[setting].machine ? paper->settings[setting].machine : paper->machine;
}

/* How many settings from `first` on one run can take: they are of one machine. */
static uint32_t settings_together(const repro_paper *paper, uint32_t first) {
  uint32_t count = 1;
  while (count < SETTINGS_PER_RUN && first + count < paper->setting_count &&
         is_own(paper, first) == is_own(paper, first + count) &&
         !paper->settings[first].memory == !paper->settings[first + count].memory &&
         !strcmp(machine_of(paper, first), machine_of(paper, first + count)))
    count++;
  return count;
}

static char *workload_path(const work *w, const repro_program *program) {
  ff_text path = {0};
  ff_text_add(&path, "%s/%s", w->workloads, program->workload);
  return path.chars;
}

static void add_program(const work *w, const repro_program *program, char ***argv, size_t *count) {
  char *path = workload_path(w, program), *words = ff_strdup(program->arguments[w->arguments->size]), *rest = NULL;
  add_word(argv, count, "--");
  add_word(argv, count, path);
  for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) add_word(argv, count, word);
  free(words);
  free(path);
}

/* The caller frees it. */
static char *recording_of(const work *w, uint32_t program, uint32_t setting) {
  const arguments *a = w->arguments;
  return repro_recording(a->paper, a->size, program, setting, a->keep ? a->keep : w->folder);
}

/* What the run of a part simulates, each thing once: two settings may come to the same when their maps are known.
 * result: of each of the part's settings that apply to the program, which of the run's results is its own. Returns
 * their number. */
static uint32_t part_memory(const work *w, const part *part, uint32_t result[SETTINGS_PER_RUN], ff_text *out) {
  ff_text one[SETTINGS_PER_RUN] = {0};
  uint32_t count = 0;
  for (uint32_t i = 0; i < part->count; i++) {
    uint32_t same = 0;
    if (!repro_applies(w->data.paper, part->program, part->first + i)) continue; /* its text stays empty */
    /* the cells that it names are known: they were made before */
    repro_memory(&w->data, part->program, part->first + i, &one[i]);
    while (same < i && strcmp(one[same].chars ? one[same].chars : "", one[i].chars ? one[i].chars : "")) same++;
    result[i] = same < i ? result[same] : count++;
    if (same == i) ff_text_add(out, "%s%s", out->length ? "," : "", one[i].chars ? one[i].chars : "");
  }
  for (uint32_t i = 0; i < part->count; i++) free(one[i].chars);
  return count;
}

/* The command line of one run: all words are the child's own copies. */
static char **run_command(const work *w, const part *part) {
  const repro_paper *paper = w->data.paper;
  const repro_program *program = &paper->programs[part->program];
  ff_text memory = {0};
  uint32_t result[SETTINGS_PER_RUN];
  part_memory(w, part, result, &memory);
  const char *run[] = {w->self, "run", "--threads", "1"}, *sim[] = {w->self, "sim"};
  const char *head[] = {"--machine", machine_of(paper, part->first), "--memory", memory.chars, "--json", part->file};
  char **argv = NULL;
  size_t count = 0;
  for (size_t i = 0; i < (paper->recorded ? 2 : 4); i++) add_word(&argv, &count, paper->recorded ? sim[i] : run[i]);
  for (size_t i = 0; i < sizeof head / sizeof head[0]; i++) add_word(&argv, &count, head[i]);
  if (paper->set) {
    add_word(&argv, &count, "--set");
    add_word(&argv, &count, paper->set);
  }
  if (paper->recorded) {
    char *recording = recording_of(w, part->program, part->first);
    add_word(&argv, &count, recording);
    free(recording);
  } else add_program(w, program, &argv, &count);
  free(memory.chars);
  return argv;
}

/* The same for shares: this program again, for these cells only. */
static char **share_command(const work *w, const part *part) {
  const arguments *a = w->arguments;
  ff_text cells = {0};
  ff_text_add(&cells, "%u:%u:%u:%s", part->program, part->first, part->count, part->file);
  const char *head[] = {w->self,
                        "reproduce",
                        a->paper->name,
                        "--size",
                        repro_size_names[a->size],
                        "--recordings",
                        a->keep ? a->keep : w->folder,
                        "--cells",
                        cells.chars};
  char **argv = NULL;
  size_t count = 0;
  for (size_t i = 0; i < sizeof head / sizeof head[0]; i++) add_word(&argv, &count, head[i]);
  free(cells.chars);
  return argv;
}

/* The SMs of a partition, as --bind-sms takes them: as many whichever partition it is. */
static void add_bound(const repro_paper *paper, uint32_t setting, char ***argv, size_t *count) {
  machine_spec *spec = ff_alloc(sizeof *spec);
  ff_text sms = {0};
  ff_error error;
  if (machine_spec_load(machine_of(paper, setting), spec, &error)) cli_fail(0, "%s", error.message);
  else ff_text_add(&sms, "0-%u", (unsigned)spec->sm_count / paper->shares[setting].partitions - 1);
  add_word(argv, count, "--bind-sms");
  add_word(argv, count, sms.chars ? sms.chars : "");
  free(sms.chars);
  free(spec);
}

static char **record_command(const work *w, const part *part) {
  const repro_paper *paper = w->data.paper;
  bool bound = repro_bound(paper, part->first);
  const char *head[] = {w->self, "record",    "--threads",
                        "1",     "--machine", bound ? machine_of(paper, part->first) : paper->machine,
                        "-o",    part->file};
  char **argv = NULL;
  size_t count = 0;
  for (size_t i = 0; i < sizeof head / sizeof head[0]; i++) add_word(&argv, &count, head[i]);
  if (bound) add_bound(paper, part->first, &argv, &count);
  add_program(w, &paper->programs[part->program], &argv, &count);
  return argv;
}

static void add_part(work *w, part part, const char *name, double seconds) {
  const repro_program *of = &w->data.paper->programs[part.program];
  char **argv = !part.count                         ? record_command(w, &part)
                : is_own(w->data.paper, part.first) ? share_command(w, &part)
                                                    : run_command(w, &part);
  job job = {.argv = argv,
             .log = file_in(w->folder, "%s-%u.log", name, part.first + 1),
             .label = of->label,
             .seconds = seconds};
  FF_PUSH(&w->parts, part);
  FF_PUSH(&w->jobs.list, job);
}

static bool any_applies(const repro_paper *paper, uint32_t program, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; i++)
    if (repro_applies(paper, program, i)) return true;
  return false;
}

/* Without `own` what this command does not do by itself, and the other way round. */
static void plan_program(work *w, uint32_t program, bool own) {
  const arguments *a = w->arguments;
  const repro_paper *paper = a->paper;
  const repro_program *of = &paper->programs[program];
  ff_text name = {0};
  ff_text_add(&name, "%s-%s-%s", paper->name, repro_size_names[a->size], of->label);
  for (uint32_t first = 0, count; first < paper->setting_count; first += count) {
    count = settings_together(paper, first);
    if (is_own(paper, first) != own || !any_applies(paper, program, first, count)) continue;
    part part = {program, first, count, file_in(a->keep ? a->keep : w->folder, "%s-%u.json", name.chars, first + 1)};
    add_part(w, part, name.chars, of->seconds[a->size] * count / paper->setting_count);
  }
  free(name.chars);
}

static void plan(work *w, bool own) {
  for (uint32_t program = 0; program < w->data.paper->program_count; program++) plan_program(w, program, own);
}

static bool is_planned(const work *w, const char *file) {
  for (size_t i = 0; i < w->parts.count; i++)
    if (!strcmp(w->parts.items[i].file, file)) return true;
  return false;
}

/* Of the programs whose recordings the settings will take, each once. */
static void plan_recordings(work *w) {
  const repro_paper *paper = w->arguments->paper;
  for (uint32_t program = 0; program < paper->program_count; program++)
    for (uint32_t setting = 0; setting < paper->setting_count; setting++) {
      if (!repro_takes(paper, program, setting)) continue;
      part part = {program, setting, 0, recording_of(w, program, setting)};
      if (is_planned(w, part.file)) free(part.file);
      else add_part(w, part, paper->programs[program].label, 1);
    }
}

/* ---- what they found ---- */

/* A recording that is whole, or cells of shares. */
static bool take_share(work *w, const part *part, bool quiet) {
  ff_error error = {0};
  if (part->count) {
    bool good = !repro_cells_read(&w->data, part->program, part->first, part->count, part->file, &error);
    if (!good && !quiet) cli_fail(0, "%s", error.message);
    return good;
  }
  trace_file *file;
  if (trace_file_open(part->file, &file, &error)) {
    if (!quiet) cli_fail(0, "%s", error.message);
    return false;
  }
  const trace_file_info *info = trace_file_information(file);
  bool good = info->whole && info->about.complete;
  if (!good && !quiet) cli_fail(0, "%s: the recording is not complete", part->file);
  trace_file_close(file);
  return good;
}

/* Takes over the results of one part. `quiet`: a file that is not what is wanted is no mistake. */
static bool take(work *w, const part *part, bool quiet) {
  const repro_paper *paper = w->data.paper;
  if (!part->count || is_own(paper, part->first)) return take_share(w, part, quiet);
  report_run run;
  ff_error error;
  if (report_file_read(part->file, &run, &error)) {
    if (!quiet) cli_fail(0, "%s", error.message);
    return false;
  }
  ff_text memory = {0};
  uint32_t own[SETTINGS_PER_RUN];
  bool good = run.complete && run.result_count == part_memory(w, part, own, &memory);
  free(memory.chars);
  for (uint32_t i = 0; i < part->count && good; i++) {
    if (!repro_applies(paper, part->program, part->first + i)) continue;
    const repro_setting *setting = &paper->settings[part->first + i];
    const sim_result *result = &run.results[own[i]];
    if (result->error[0] && !quiet)
      cli_fail(0, "%s under %s: %s", paper->programs[part->program].label, setting->memory, result->error);
    if (result->error[0]) w->failed += !quiet;
    else
      repro_put(&w->data, part->program, part->first + i,
                &(repro_measured){.counters = result->counters, .stacks = result->stacks});
  }
  if (!good && !quiet) cli_fail(0, "%s: the run is not complete", paper->programs[part->program].label);
  report_free(&run);
  return good;
}

/* The last lines of what a run that failed has said. */
static void show_log(const char *path) {
  char *text;
  size_t size, from;
  if (ff_file_read(path, LOG_LIMIT, &text, &size, NULL)) return;
  from = size;
  for (int lines = 0; from && lines < 12; from--) lines += text[from - 1] == '\n' && from < size;
  if (from) from++;
  fwrite(text + from, 1, size - from, stderr);
  free(text);
}

static void job_ended(void *context, job *job) {
  work *w = context;
  const part *part = &w->parts.items[job - w->jobs.list.items];
  const repro_program *program = &w->data.paper->programs[part->program];
  bool done = !job->status || job->status == CLI_NONE_RAN; /* then each result says why */
  bool good = done && take(w, part, false);
  if (!done) {
    cli_fail(0, "%s %s: failed with status %d:", program->workload ? program->workload : "chains",
             program->arguments[w->arguments->size], job->status);
    show_log(job->log);
  }
  if (!good) w->failed++;
  if (!w->arguments->keep && part->count) unlink(part->file); /* recordings: with the folder */
}

static bool is_older(const char *path, const struct stat *than) {
  struct stat info;
  if (stat(path, &info)) return false;
  return info.st_mtim.tv_sec != than->st_mtim.tv_sec ? info.st_mtim.tv_sec < than->st_mtim.tv_sec
                                                     : info.st_mtim.tv_nsec < than->st_mtim.tv_nsec;
}

/* Are all recordings that the part takes older than that? */
static bool recordings_older(const work *w, const part *part, const struct stat *than) {
  const repro_paper *paper = w->data.paper;
  bool older = true;
  for (uint32_t i = 0; i < paper->program_count && older; i++)
    for (uint32_t setting = part->first; setting < part->first + part->count && older; setting++) {
      if (!repro_takes(paper, i, setting) || (i != part->program && !paper->shares)) continue;
      char *recording = recording_of(w, i, setting);
      older = is_older(recording, than);
      free(recording);
    }
  return older;
}

/* Newer than everything that it was made by, so that a run of an older build is not taken for one of this. Cells of
 * shares: newer than any of the recordings. */
static bool is_fresh(const work *w, const part *part) {
  const repro_paper *paper = w->data.paper;
  ff_text library = {0};
  struct stat kept;
  ff_text_add(&library, "%.*s/../lib/farfault/libfarfault-gpu.so", (int)(strrchr(w->self, '/') - w->self), w->self);
  bool fresh = stat(part->file, &kept) == 0 && is_older(w->self, &kept) && is_older(library.chars, &kept);
  if (!part->count || !needs_recordings(paper)) {
    char *maker = paper->programs[part->program].workload ? workload_path(w, &paper->programs[part->program]) : NULL;
    fresh = fresh && (!maker || is_older(maker, &kept));
    free(maker);
  } else fresh = fresh && recordings_older(w, part, &kept);
  free(library.chars);
  return fresh;
}

/* With --keep: the same command's results are there already. The command is kept next to them. */
static char *kept_command(const part *part, const job *job, ff_text *text) {
  ff_text path = {0};
  ff_text_add(&path, "%s.command", part->file);
  for (char **word = job->argv + 1; *word; word++) {
    ff_text_add_quoted(text, *word);
    ff_text_add(text, " ");
  }
  return path.chars;
}

static void take_kept(work *w) {
  size_t count = 0;
  for (size_t i = 0; i < w->jobs.list.count; i++) {
    job *job = &w->jobs.list.items[i];
    const part *part = &w->parts.items[i];
    ff_text wanted = {0};
    char *path = kept_command(part, job, &wanted), *text = NULL;
    size_t size;
    bool same = !ff_file_read(path, LOG_LIMIT, &text, &size, NULL) && !strcmp(text, wanted.chars);
    if (same && is_fresh(w, part) && take(w, part, true)) {
      job->started = job->ended = true;
      count++;
    } else ff_file_write(path, wanted.chars, wanted.length, NULL);
    free(text);
    free(path);
    free(wanted.chars);
  }
  const char *what = w->parts.count && !w->parts.items[0].count ? "recordings" : "runs";
  if (count) cli_fail(0, "%zu of %zu %s are in %s already", count, w->jobs.list.count, what, w->arguments->keep);
}

/* ---- the command ---- */

static ff_status write_files(const work *w, ff_error *error) {
  const arguments *a = w->arguments;
  ff_text csv = {0}, svg = {0}, json = {0};
  repro_csv(&w->data, &csv);
  repro_json(&w->data, a->size, &json);
  repro_svg(&w->data, a->size, &svg);
  ff_status status = a->csv ? ff_file_write(a->csv, csv.chars, csv.length, error) : FF_OK;
  if (!status && a->svg) status = ff_file_write(a->svg, svg.chars, svg.length, error);
  if (!status && a->json && strcmp(a->json, "-")) status = ff_file_write(a->json, json.chars, json.length, error);
  if (!status && a->page) repro_page_add(a->page, &w->data, a->size);
  free(json.chars);
  free(csv.chars);
  free(svg.chars);
  return status;
}

/* How many programs have all their runs. */
static uint32_t whole_programs(const work *w) {
  const repro_paper *paper = w->data.paper;
  uint32_t whole = 0;
  for (uint32_t i = 0; i < paper->program_count; i++) {
    bool all = true;
    for (uint32_t j = 0; j < paper->setting_count; j++)
      all = all && (w->data.cells[i * paper->setting_count + j].known || !repro_applies(paper, i, j));
    whole += all;
  }
  return whole;
}

static int conclude(const work *w, int signal) {
  const arguments *a = w->arguments;
  ff_text out = {0};
  ff_error error;
  if (a->json && !strcmp(a->json, "-")) repro_json(&w->data, a->size, &out);
  else repro_table(&w->data, a->verbose, &out);
  int status = cli_print(&out);
  free(out.chars);
  bool all = !w->failed && !signal;
  if (!all)
    cli_fail(0, "incomplete: %u of %u programs have all their runs; the numbers are over what there is%s",
             whole_programs(w), a->paper->program_count,
             a->csv || a->svg || a->json || a->html ? ", and no file was written" : "");
  else if (write_files(w, &error)) status = cli_fail(CLI_FAILED, "%s", error.message);
  return signal ? 128 + signal : w->failed ? CLI_FAILED : status;
}

/* What was planned; returns the signal that stopped it, or 0. */
static int run_planned(work *w) {
  if (w->arguments->keep) take_kept(w);
  w->jobs.title = w->arguments->paper->name;
  w->jobs.at_once = w->arguments->jobs;
  w->jobs.ended = job_ended;
  w->jobs.context = w;
  int signal = jobs_run(&w->jobs);
  for (size_t i = 0; i < w->parts.count; i++) free(w->parts.items[i].file);
  free(w->parts.items);
  jobs_free(&w->jobs);
  memset(&w->parts, 0, sizeof w->parts);
  memset(&w->jobs, 0, sizeof w->jobs);
  return signal;
}

static int reproduce_in(work *w) {
  int signal = 0;
  if (needs_recordings(w->arguments->paper)) {
    plan_recordings(w);
    signal = run_planned(w);
  }
  for (int own = 1; own >= 0 && !signal && !w->failed; own--) { /* simulations may name what was found before */
    plan(w, own);
    signal = run_planned(w);
  }
  run_clear_folder(w->folder);
  return conclude(w, signal);
}

/* --cells: in one of many processes. */
static int simulate_cells(const arguments *a) {
  repro_data data;
  ff_text out = {0};
  ff_error error = {0};
  ff_status status = FF_OK;
  repro_data_start(&data, a->paper);
  if (!a->paper->shares) {
    status = repro_profile_run(&data, a->size, a->program, a->recordings, &error);
    if (status) cli_fail(0, "%s: %s", a->paper->programs[a->program].label, error.message);
  }
  for (uint32_t i = a->first; i < a->first + a->count && a->paper->shares && !status; i++) {
    repro_measured measured = {0};
    if (!repro_applies(a->paper, a->program, i)) continue;
    status = repro_share_run(a->paper, a->size, a->program, i, a->recordings, &measured.counters, &error);
    if (status)
      cli_fail(0, "%s under %s: %s", a->paper->programs[a->program].label, a->paper->settings[i].key, error.message);
    else repro_put(&data, a->program, i, &measured);
  }
  if (!status) {
    repro_cells_json(&data, a->program, a->first, a->count, &out);
    status = ff_file_write(a->cells, out.chars, out.length, &error);
    if (status) cli_fail(0, "%s", error.message);
  }
  free(out.chars);
  repro_data_free(&data);
  return status ? CLI_FAILED : CLI_DONE;
}

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The name of a paper's file: a folder is completed by the paper's. NULL: none is wanted. The caller frees it. */
static char *output_of(const char *path, const repro_paper *paper, const char *ending) {
  ff_text out = {0};
  if (!path) return NULL;
  ff_text_add(&out, "%s", path);
  if (is_folder(path)) ff_text_add(&out, "/%s.%s", paper->name, ending);
  return out.chars;
}

/* Refuses what cannot be written before anything runs. */
static int check_outputs(const arguments *a) {
  ff_error error;
  if (a->keep && mkdir(a->keep, 0777) && errno != EEXIST)
    return cli_fail(CLI_FAILED, "%s: cannot make the folder: %s", a->keep, strerror(errno));
  if (run_outputs_check(&(run_outputs){.csv = a->csv,
                                       .json = a->svg,
                                       .record = a->html,
                                       .output = a->json && strcmp(a->json, "-") ? a->json : NULL},
                        "", "", "", &error))
    return cli_fail(error.status == FF_INVALID ? CLI_USAGE : CLI_FAILED, "%s", error.message);
  return CLI_DONE;
}

static char *own_path(void) {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  return ff_strdup(path);
}

static int reproduce_with(const arguments *a) {
  if (a->count) return simulate_cells(a);
  int status = check_outputs(a);
  if (status) return status;
  work w = {.arguments = a, .workloads = cli_workload_folder()};
  if (!w.workloads) return cli_fail(CLI_FAILED, "the bundled workloads are not part of this build (they need clang)");
  w.folder = run_make_folder();
  w.self = own_path();
  repro_data_start(&w.data, a->paper);
  status = w.folder ? reproduce_in(&w) : CLI_FAILED;
  repro_data_free(&w.data);
  if (w.folder) run_remove_folder(w.folder);
  free(w.self);
  free(w.workloads);
  return status;
}

static int reproduce_one(const arguments *all, const repro_paper *paper, repro_page *page) {
  arguments a = *all;
  char *csv = output_of(a.csv, paper, "csv"), *svg = output_of(a.svg, paper, "svg");
  a.paper = paper;
  a.csv = csv;
  a.svg = svg;
  a.page = a.html ? page : NULL;
  int status = reproduce_with(&a);
  free(csv);
  free(svg);
  return status;
}

static int reproduce_all(const arguments *a, repro_page *page) {
  const char *files[] = {a->csv, a->svg}, *names[] = {"csv", "svg"};
  for (int i = 0; i < 2; i++)
    if (files[i] && !is_folder(files[i]))
      return cli_fail(CLI_USAGE, "--%s: %s is no folder, and all papers have a file each", names[i], files[i]);
  for (int i = 0; repro_papers[i]; i++) {
    ff_text title = {0};
    ff_text_add(&title, "%s%s\n", i ? "\n" : "", repro_papers[i]->title);
    int status = cli_print(&title);
    free(title.chars);
    if (!status) status = reproduce_one(a, repro_papers[i], page);
    if (status) return status;
  }
  return CLI_DONE;
}

static int write_page(const arguments *a, const repro_page *page) {
  ff_text out = {0};
  ff_error error;
  repro_page_write(page, &out);
  ff_status status = ff_file_write(a->html, out.chars, out.length, &error);
  free(out.chars);
  return status ? cli_fail(CLI_FAILED, "%s", error.message) : CLI_DONE;
}

static const char help_head[] =
    "Runs a paper's experiments on the bundled workloads, and prints each number that the paper gives next to ours.\v"
    "Papers:\n";
static const char help_tail[] =
    "  all          each of them in turn\n\n"
    "`combined` has no paper: what the ideas of the others give together, on the same programs.\n"
    "\nExample:\n  farfault reproduce zheng2016 --csv zheng2016.csv --svg zheng2016.svg\n"
    "  farfault reproduce ganguly2019 --size small -v\n  farfault reproduce all --html papers.html\n\n"
    "A row without the paper's number is ours alone. The programs are of the paper's kinds, not its own: docs/results says "
    "why numbers differ.\n\nExit status: 0 if every run was made; 128 + N if signal N stopped it: the table is then over what "
    "was finished.";

/* The caller frees it. */
static char *help_text(void) {
  ff_text out = {0};
  ff_text_add(&out, "%s", help_head);
  for (int i = 0; repro_papers[i]; i++)
    ff_text_add(&out, "  %-12s %s\n", repro_papers[i]->name, repro_papers[i]->title);
  ff_text_add(&out, "%s", help_tail);
  return out.chars;
}

static int reproduce(int argc, char **argv) {
  arguments a = {.size = REPRO_NORMAL, .jobs = 1};
  static char *text; /* what the tables point to outlives the call */
  if (!text) text = help_text();
  const struct argp argp = {options, parse, "PAPER", text, NULL, NULL, NULL};
  cli_old_flag("--json", &argc, &argv);
  cli_parse_tabular(&argp, argc, argv, &a, STDOUT_FILENO);
  repro_page page = {0};
  int status = a.all ? reproduce_all(&a, &page) : reproduce_one(&a, a.paper, &page);
  if (!status && a.html) status = write_page(&a, &page);
  repro_page_free(&page);
  return status;
}

const cli_command cli_reproduce = {"reproduce", "run a paper's experiments and print its numbers next to ours",
                                   reproduce};
