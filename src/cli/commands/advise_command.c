/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault advise TRACE`: what to do about the program's memory, by simulating it.
 *
 *   the trace is read once (advise/advise_facts.h) -> stages of settings (advise/advise.h), each simulated by children
 *   `farfault sim TRACE --memory ... --json FILE`, many settings each (jobs.c) -> advice
 *
 * Each number comes from a child's JSON; a child that fails is named, with what it said, and what it
 * was to simulate counts as not simulated, as does what did not come to its end; the same trace and options give the
 * same bytes. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/running/jobs.h"
#include "cli/running/run.h"
#include "report/table.h"
#include "advise/advise.h"
#include "session/session.h"

enum { KEY_BASELINE = 512, KEY_NOW, KEY_QUICK, KEY_JSON, KEY_SET, KEY_GPU_MEMORY, KEY_SAMPLE, LOG_LIMIT = 1 << 20 };

typedef struct arguments {
  cli_setup setup; /* its managers are not used */
  const char *file, *baseline, *output, *gpu_memory, *sample;
  const char *json; /* "-": instead of the text */
  bool quick;
} arguments;

typedef struct part {
  size_t first, count;
  char *file;
} part; /* settings that one child simulates */

typedef struct work {
  const arguments *arguments;
  advise_study study;
  jobs jobs;
  FF_VEC(part) parts; /* as jobs.list */
  char *folder, self[4096], *options;
  double per_setting; /* seconds that one took in the stage before */
  uint32_t failed;
} work;

static const struct argp_option options[] = {
    {"machine", 'M', "NAME|FILE", 0,
     "the GPU to give advice for: a name of `farfault list machines`, or a machine file (default: that of the recording)",
     0},
    {"set", KEY_SET, "NAME=VALUE", 0, "change a value of the machine, as in its file (fault_us=50); may be repeated",
     0},
    {"gpu-memory", KEY_GPU_MEMORY, "SIZE", 0,
     "GPU memory that there is: bytes, 8G, or 75% of what the program allocates (default: the machine's)", 0},
    {"now", KEY_NOW, "MANAGER", 0, "what the program does now (default: uvm if it has managed memory, else copy)", 0},
    {"quick", KEY_QUICK, NULL, 0, "simulate less: fewer managers, hints and capacities; what is skipped is listed", 0},
    {"sample", KEY_SAMPLE, "none|on|check|N", 0,
     "on, N: time only some of the launches that repeat and of the blocks of long ones, as `farfault sim --sample` does: sooner, and times are estimates (default: none)",
     0},
    {"output", 'o', "FILE", 0, "also write the advice as Markdown", 0},
    {"json", KEY_JSON, "FILE", 0,
     "also write the advice and every setting's counters as JSON; -: to stdout instead of the text", 0},
    {"baseline", KEY_BASELINE, "MANAGER", OPTION_HIDDEN, "--now", 0}, /* as it was once */
    {0}};

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case 'M': cli_copy_option(a->setup.machine, sizeof a->setup.machine, value, "machine", state); return 0;
  case KEY_SET: cli_add_option(a->setup.choices.set, sizeof a->setup.choices.set, value, "set", state); return 0;
  case KEY_GPU_MEMORY:
    cli_copy_option(a->setup.choices.text[SIM_CHOICE_GPU_MEMORY], SIM_CHOICE_LENGTH, value, "gpu-memory", state);
    a->gpu_memory = value;
    return 0;
  case KEY_BASELINE: cli_say_old(state, "--baseline", "--now"); /* fall through */
  case KEY_NOW:
    cli_copy_option(a->setup.managers, sizeof a->setup.managers, value, "now", state);
    a->baseline = value;
    return 0;
  case KEY_SAMPLE:
    if (!strcmp(value, "check"))
      cli_refuse(state,
                 "--sample check: `farfault sim --memory uvm --sample check` says how wrong sampling is; here: on, "
                 "none, or how many launches are timed");
    cli_copy_option(a->setup.choices.text[SIM_CHOICE_SAMPLE], SIM_CHOICE_LENGTH, value, "sample", state);
    a->sample = value;
    return 0;
  case KEY_QUICK: a->quick = true; return 0;
  case KEY_JSON: a->json = cli_output(value, "--json", true, state); return 0;
  case 'o': a->output = cli_output(value, "--output", false, state); return 0;
  case ARGP_KEY_END:
    if (!a->file) a->file = cli_old_argument("--json", &a->json, state);
    /* fall through */
  default: return cli_take_file(key, value, &a->file, KIND_TRACE, state);
  }
}

/* ---- simulations ---- */

static void add_word(char ***argv, size_t *count, const char *word) {
  *argv = ff_realloc(*argv, (*count + 2) * sizeof **argv);
  (*argv)[(*count)++] = ff_strdup(word);
  (*argv)[*count] = NULL;
}

static char **command(const work *w, const part *p) {
  const arguments *a = w->arguments;
  const char *set = a->setup.choices.set;
  ff_text memory = {0};
  char **argv = NULL;
  size_t count = 0;
  for (size_t i = 0; i < p->count; i++)
    ff_text_add(&memory, "%s%s", i ? "," : "", w->study.settings.items[p->first + i]->memory);
  const char *words[] = {w->self,
                         "sim",
                         "--device",
                         "0",
                         "--machine",
                         a->setup.machine,
                         "--memory",
                         memory.chars,
                         "--json",
                         p->file,
                         *set ? "--set" : NULL,
                         *set ? set : NULL,
                         a->gpu_memory ? "--gpu-memory" : NULL,
                         a->gpu_memory,
                         a->sample ? "--sample" : NULL,
                         a->sample,
                         "--",
                         a->file};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (words[i]) add_word(&argv, &count, words[i]);
  free(memory.chars);
  return argv;
}

static char *name_in(const work *w, size_t first, const char *ending) {
  ff_text path = {0};
  ff_text_add(&path, "%s/advise-%zu.%s", w->folder, first, ending);
  return path.chars;
}

/* The settings from `first` on, as many in one child as it takes. */
static void plan(work *w, size_t first) {
  FF_VEC(const char *) memories = {0};
  for (size_t i = 0; i < w->study.settings.count; i++) FF_PUSH(&memories, w->study.settings.items[i]->memory);
  for (size_t at = first, count; at < memories.count; at += count) {
    count = advise_together(memories.items + at, memories.count - at);
    part p = {at, count, name_in(w, at, "json")};
    static const char *const labels[] = {"managers", "hints", "hints together", "less memory"};
    job j = {.argv = command(w, &p),
             .log = name_in(w, at, "log"),
             .label = labels[w->study.settings.items[at]->stage],
             .seconds = w->per_setting * (double)count};
    FF_PUSH(&w->parts, p);
    FF_PUSH(&w->jobs.list, j);
  }
  free(memories.items);
}

/* The last lines of what a child said. */
static void show_log(const char *path) {
  char *text;
  size_t size, from;
  if (ff_file_read(path, LOG_LIMIT, &text, &size, NULL)) return;
  from = size;
  for (int lines = 0; from && lines < 6; from--) lines += text[from - 1] == '\n' && from < size;
  if (from) from++;
  fwrite(text + from, 1, size - from, stderr);
  free(text);
}

static bool take(work *w, const part *p) {
  report_run run;
  ff_error error;
  if (report_file_read(p->file, &run, &error)) return cli_fail(false, "%s", error.message);
  bool good = run.result_count == p->count;
  for (size_t i = 0; i < p->count && good; i++)
    if (!run.results[i].complete)
      good = cli_fail(false, "the simulation of %s did not come to its end", run.results[i].memory);
  for (size_t i = 0; i < p->count && good; i++) advise_put(&w->study, p->first + i, &run.results[i]);
  report_free(&run);
  return good;
}

static void job_ended(void *context, job *job) {
  work *w = context;
  const part *p = &w->parts.items[job - w->jobs.list.items];
  bool done = !job->status || job->status == CLI_NONE_RAN; /* then each result says why */
  if (!done) {
    cli_fail(0, "%zu simulation%s (%s) failed with status %d:", p->count, cli_s(p->count), job->label, job->status);
    show_log(job->log);
  }
  if (done && take(w, p)) return;
  w->failed++;
  advise_skip(&w->study, "%zu simulation%s (%s) that failed", p->count, cli_s(p->count), job->label);
}

static void forget_parts(work *w) {
  for (size_t i = 0; i < w->parts.count; i++) {
    unlink(w->parts.items[i].file);
    free(w->parts.items[i].file);
  }
  w->parts.count = 0;
  jobs_free(&w->jobs);
  w->jobs.list.items = NULL;
  w->jobs.list.count = w->jobs.list.capacity = 0;
}

/* All stages; returns the signal that stopped them, 0: none. */
static int simulate(work *w) {
  size_t first;
  int stopped = 0;
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  w->per_setting = 1e-6 * (double)w->study.facts.accesses / (double)(cores > 0 ? cores : 1);
  while (!stopped && advise_next(&w->study, &first)) {
    size_t count = w->study.settings.count - first;
    struct timespec begin, end;
    w->jobs.title = "advise";
    /* a child has a thread per setting */
    w->jobs.at_once = cores > SESSION_MANAGER_LIMIT ? (uint32_t)(cores / SESSION_MANAGER_LIMIT) : 1;
    w->jobs.ended = job_ended;
    w->jobs.context = w;
    plan(w, first);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    stopped = jobs_run(&w->jobs);
    clock_gettime(CLOCK_MONOTONIC, &end);
    w->per_setting =
        ((double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec)) / (double)count;
    forget_parts(w);
  }
  if (stopped) advise_skip(&w->study, "what was left when it was stopped");
  return stopped;
}

/* ---- the command ---- */

/* What the printed commands have behind the trace. */
static char *options_text(const arguments *a) {
  ff_text text = {0};
  ff_text_add(&text, "--machine ");
  ff_text_add_quoted(&text, a->setup.machine);
  if (*a->setup.choices.set) {
    ff_text_add(&text, " --set ");
    ff_text_add_quoted(&text, a->setup.choices.set);
  }
  if (a->gpu_memory) {
    ff_text_add(&text, " --gpu-memory ");
    ff_text_add_quoted(&text, a->gpu_memory);
  }
  if (a->sample) ff_text_add(&text, " --sample %s", a->sample);
  return text.chars;
}

/* The files that were asked for, whole: tables in them have all their columns. */
static int write_files(work *w, const advise_advice *advice, const advise_context *context, const ff_text *json) {
  const arguments *a = w->arguments;
  ff_text markdown = {0};
  int status = CLI_DONE;
  table_fit(0);
  advise_markdown(&w->study, advice, context, &markdown);
  if (a->output) status = cli_write_or_print(a->output, &markdown);
  if (a->json && json && !status) status = cli_write_or_print(a->json, json);
  free(markdown.chars);
  return status;
}

/* Whether each manager was simulated to its end, or is known not to be able to run the program: without that there is
 * no advice. */
static bool managers_are_known(const advise_study *study) {
  bool any = false;
  for (size_t i = 0; i < study->settings.count; i++) {
    const advise_setting *s = study->settings.items[i];
    if (s->stage != ADVISE_MANAGERS) continue;
    if (!s->known && !s->result.error[0]) return false;
    any = true;
  }
  return any;
}

static int conclude(work *w, const char *program, int signal) {
  const arguments *a = w->arguments;
  if ((signal || w->failed) && !managers_are_known(&w->study)) {
    cli_fail(0, "incomplete: no advice, as not all managers were simulated to the end%s",
             a->output ? ", and no file was written" : "");
    return signal ? 128 + signal : CLI_FAILED;
  }
  advise_advice advice;
  ff_text out = {0}, markdown = {0};
  advise_context context = {.trace = a->file, .command = program, .machine = a->setup.machine, .options = w->options};
  advise_conclude(&w->study, &advice);
  advise_markdown(&w->study, &advice, &context, &markdown);
  bool json_only = a->json && !strcmp(a->json, "-"), whole = !signal && !w->failed;
  if (a->json) advise_json(&w->study, &advice, &context, &out);
  int status = cli_print(json_only ? &out : &markdown);
  if (!whole)
    cli_fail(0, "incomplete: the advice is from what was simulated%s",
             a->output || (a->json && !json_only) ? ", and no file was written" : "");
  else status = write_files(w, &advice, &context, json_only ? NULL : &out) ? CLI_FAILED : status;
  advise_advice_free(&advice);
  free(out.chars);
  free(markdown.chars);
  return signal ? 128 + signal : w->failed ? CLI_FAILED : status;
}

static void show_reading(void *context, uint64_t launch) {
  uint64_t *launches = context;
  if (launch % 256 == 1 && isatty(STDERR_FILENO))
    fprintf(stderr, "\rfarfault: advise: reading, launch %llu of %llu\033[K", (unsigned long long)launch,
            (unsigned long long)*launches);
}

static ff_status read_facts(trace_file *file, advise_facts *facts, ff_error *error) {
  uint64_t launches = trace_file_information(file)->launches;
  ff_status status = advise_facts_read(file, show_reading, &launches, facts, error);
  if (launches && isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K");
  return status;
}

static int advise_in(work *w, trace_file *file) {
  const arguments *a = w->arguments;
  const trace_file_info *info = trace_file_information(file);
  advise_facts facts;
  ff_error error;
  if (!info->whole)
    return cli_fail(CLI_BAD_FILE,
                    "%s: the recording was cut off: `farfault trace cut --repair` makes a whole trace of it", a->file);
  machine_spec spec;
  if (machine_spec_load(a->setup.machine, &spec, &error) || machine_spec_set_all(&spec, a->setup.choices.set, &error))
    return cli_fail(CLI_BAD_FILE, "%s", error.message);
  if (read_facts(file, &facts, &error)) return cli_fail(CLI_BAD_FILE, "%s", error.message);
  facts.system_memory = (uint32_t)spec.system_memory;
  ff_status status = advise_start(&w->study, &facts, a->baseline, a->quick, &error);
  int result = CLI_FAILED; /* the folder is made no sooner, as until then a signal just ends the process */
  if (status) result = cli_fail(CLI_USAGE, "advise: %s", error.message);
  else if ((w->folder = run_make_folder())) {
    int signal = simulate(w);
    run_clear_folder(w->folder);
    result = conclude(w, info->about.command ? info->about.command : "?", signal);
  }
  if (w->folder) run_remove_folder(w->folder);
  advise_free(&w->study);
  return result;
}

static int advise_with(arguments *a, trace_file *file) {
  work w = {.arguments = a, .options = options_text(a)};
  ssize_t length = readlink("/proc/self/exe", w.self, sizeof w.self - 1);
  w.self[length > 0 ? length : 0] = '\0';
  int status = advise_in(&w, file);
  forget_parts(&w);
  free(w.parts.items);
  free(w.options);
  return status;
}

static int advise_command_line(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "TRACE",
      "Says what to do about a recorded program's memory: which manager is best for it, which allocations to prefetch, to pin in host memory, to keep "
      "on the CPU or to mark as mostly read, how little GPU memory it could do with, and what declaring its launches' data would gain. "
      "Every gain is of two simulations, whose command is printed.\v"
      "Example:\n  farfault record -o saxpy.fft ./saxpy 1000000\n  farfault advise saxpy.fft --machine v100\n"
      "  farfault advise saxpy.fft --gpu-memory 8G --quick -o advice.md\n\n"
      "Exit status: 0; 64 wrong arguments, 2 the trace is of no use or damaged, 1 something else failed, 128 + N stopped by signal N (the "
      "advice is then from what was simulated to its end; none if that is not even all managers).",
      NULL,
      NULL,
      NULL};
  arguments a = {0};
  cli_old_flag("--json", &argc, &argv);
  cli_parse_tabular(&argp, argc, argv, &a, STDOUT_FILENO);
  trace_file *file;
  ff_error error;
  if (trace_file_open(a.file, &file, &error)) return cli_fail(CLI_BAD_FILE, "%s", error.message);
  int status = CLI_DONE;
  cli_choose_machine(&a.setup, trace_file_information(file));
  if (cli_setup_check(&a.setup, &error)) status = cli_fail(CLI_SETUP_STATUS(error), "advise: %s", error.message);
  else if (run_outputs_check(&(run_outputs){.output = a.output, .csv = a.json && strcmp(a.json, "-") ? a.json : NULL},
                             a.file, "the trace", a.setup.machine, &error))
    status = cli_fail(error.status == FF_INVALID ? CLI_USAGE : CLI_FAILED, "%s", error.message);
  else status = advise_with(&a, file);
  trace_file_close(file);
  return status;
}

const cli_command cli_advise = {"advise", "say what to do about a recorded program's memory", advise_command_line};
