/* SPDX-License-Identifier: Apache-2.0 */
/* Does a GPU compute what the executor computes? silicon [--jobs N] [--seconds N] [--as N] [--quick] [--strict] [--csv
 * FILE]
 *
 * Every item (items.h) runs on the driver that FARFAULT_DRIVER names and on the executor, as a machine of the device's
 * compute capability. Words that differ are printed, the first few of each item; the table at the end has the counts,
 * --csv the same as rows name,value,unit,min,max,command. --jobs: so many processes side by side (1). --seconds: what
 * is not done by then is left out, and said (300). --quick: a part of the items, with fewer inputs.
 *
 * Exit status: 0; 1 if an exact form differs, a function is off by more than the manual allows, a process ended early,
 * or nothing ran - with --strict also if functions or sums differ at all; 2 bad usage; 77 there is no GPU. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "both.h"
#include "judge.h"

enum { MOST_JOBS = 64, NO_GPU = 77 };

typedef struct options {
  uint32_t jobs, seconds, as;
  bool quick, strict;
  const char *csv;
} options;

/* ---- workers ---- */

static void run_item(both *b, const item *it, verdict *v) {
  ff_error error = {0};
  ff_text out = {0};
  both_result result = both_load(b, it, &error);
  unsigned char *theirs = ff_alloc(it->output_bytes), *ours = ff_alloc(it->output_bytes);
  for (uint32_t run = 0; run < it->runs && result == BOTH_RAN; run++) {
    result = both_run(b, it, run, theirs, ours, &error);
    if (result == BOTH_RAN) judge(it, run, both_inputs(b), theirs, ours, v, &out);
  }
  v->ran = result == BOTH_RAN;
  v->refused = result == BOTH_REFUSED;
  v->failed = result == BOTH_FAILED;
  if (v->failed) ff_text_add(&out, "%s: %s\n", it->name, error.message);
  if (out.chars && write(STDOUT_FILENO, out.chars, out.length) < 0) v->failed = true;
  free(out.chars);
  free(theirs);
  free(ours);
}

/* The first item of a worker that nothing is known of; NULL: there is none. */
static verdict *first_open(const options *o, const item_list *list, uint32_t number, verdict *verdicts) {
  for (size_t n = number; n < list->count; n += o->jobs)
    if (!verdicts[n].ran && !verdicts[n].refused && !verdicts[n].failed) return &verdicts[n];
  return NULL;
}

/* Does its items, or those that the worker before it left: one that failed is the end of its process. */
static int work(const options *o, const item_list *list, uint32_t number, verdict *verdicts) {
  both *b;
  ff_error error = {0};
  if (both_open(o->as, &b, &error)) {
    fprintf(stderr, "%s\n", error.message);
    return NO_GPU;
  }
  for (verdict *v; (v = first_open(o, list, number, verdicts)) != NULL;) {
    run_item(b, &list->items[v - verdicts], v);
    if (v->failed) return 1; /* the context may be gone */
  }
  both_close(b);
  return 0;
}

static pid_t start(const options *o, const item_list *list, uint32_t number, verdict *verdicts) {
  pid_t child = fork();
  if (!child) _exit(work(o, list, number, verdicts)); /* how a driver ends is of no interest */
  return child;
}

/* Returns the largest exit status, NO_GPU only of all of them; -1: a process was ended, or ended itself. */
static int run_all(const options *o, const item_list *list, verdict *verdicts) {
  pid_t children[MOST_JOBS];
  int worst = 0;
  uint32_t running = 0, without = 0;
  time_t end = time(NULL) + (time_t)o->seconds;
  for (uint32_t n = 0; n < o->jobs; n++) {
    children[n] = start(o, list, n, verdicts);
    if (children[n] > 0) running++;
    else worst = -1;
  }
  while (running) {
    for (uint32_t n = 0; n < o->jobs; n++) {
      int status;
      if (children[n] <= 0) continue;
      if (time(NULL) > end) kill(children[n], SIGKILL);
      if (waitpid(children[n], &status, WNOHANG) != children[n]) continue;
      int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      bool no_gpu = code == NO_GPU;
      without += no_gpu;
      if (no_gpu) code = 1;
      if (code < 0 || worst < 0) worst = -1;
      else if (code > worst) worst = code;
      verdict *open = first_open(o, list, n, verdicts);
      if (open && code < 0) open->failed = true; /* the process ended in it */
      bool again = code && !no_gpu && time(NULL) <= end && first_open(o, list, n, verdicts);
      children[n] = again ? start(o, list, n, verdicts) : 0;
      running -= children[n] <= 0;
    }
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  }
  return without >= o->jobs ? NO_GPU : worst;
}

/* ---- what came of it ---- */

typedef struct sum_of_kind {
  uint64_t items, refused, differing, missing;
  double worst_theirs;
} sum_of_kind;

static void add_row(FILE *csv, const char *what, const char *of, double value, const char *unit) {
  if (csv) fprintf(csv, "\"silicon: %s%s%s\",%.6g,%s,,,silicon_compare\n", what, *of ? ": " : "", of, value, unit);
}

static void print_item(const item *it, const verdict *v, FILE *csv) {
  static const char *const inputs[] = {"", " (all exponents)", " (near 1)", " (all)", ""};
  double same = 100.0 * (double)(v->words - v->different) / (double)(v->words ? v->words : 1);
  char name[128];
  snprintf(name, sizeof name, "%s%s", it->name, inputs[it->input]);
  printf("%-56s %9.4f %% the same", name, same);
  add_row(csv, "same bits", name, same, "%");
  if (it->kind == ITEM_FUNCTION) {
    printf("; worst error, of the manual's bound: the driver %.3f, the executor %.3f", v->worst_theirs, v->worst_ours);
    add_row(csv, "worst error over the bound", name, v->worst_theirs, "");
  }
  printf("\n");
}

static sum_of_kind sum_up(const item_list *list, const verdict *verdicts, item_kind kind, FILE *csv) {
  sum_of_kind sum = {0};
  for (size_t n = 0; n < list->count; n++) {
    const verdict *v = &verdicts[n];
    if (list->items[n].kind != kind) continue;
    sum.items += v->ran;
    sum.refused += v->refused;
    sum.missing += !v->ran && !v->refused;
    sum.differing += v->ran && v->different;
    if (v->worst_theirs > sum.worst_theirs) sum.worst_theirs = v->worst_theirs;
    if (kind != ITEM_FORM && v->ran) print_item(&list->items[n], v, csv);
  }
  return sum;
}

static int report(const options *o, const item_list *list, const verdict *verdicts) {
  static const char *const names[] = {"forms", "functions", "sums"};
  FILE *csv = o->csv ? fopen(o->csv, "w") : NULL;
  bool good = csv || !o->csv, any = false;
  if (csv) fprintf(csv, "name,value,unit,min,max,command\n");
  for (item_kind kind = ITEM_KINDS; kind-- > 0;) {
    sum_of_kind sum = sum_up(list, verdicts, kind, csv);
    printf("%s: %llu compared, %llu differ, %llu not taken by the driver, %llu not done\n", names[kind],
           (unsigned long long)sum.items, (unsigned long long)sum.differing, (unsigned long long)sum.refused,
           (unsigned long long)sum.missing);
    add_row(csv, names[kind], "compared", (double)sum.items, "");
    add_row(csv, names[kind], "differ", (double)sum.differing, "");
    add_row(csv, names[kind], "not taken by the driver", (double)sum.refused, "");
    any |= sum.items != 0;
    good &= !sum.missing && sum.worst_theirs <= 1 && !(sum.differing && (o->strict || kind == ITEM_FORM));
  }
  if (csv && fclose(csv)) good = false;
  return !(good && any);
}

static bool read_options(int argc, char **argv, options *o) {
  *o = (options){.jobs = 1, .seconds = 300};
  for (int i = 1; i < argc; i++) {
    bool more = i + 1 < argc;
    if (!strcmp(argv[i], "--quick")) o->quick = true;
    else if (!strcmp(argv[i], "--strict")) o->strict = true;
    else if (!strcmp(argv[i], "--jobs") && more) o->jobs = (uint32_t)strtoul(argv[++i], NULL, 10);
    else if (!strcmp(argv[i], "--seconds") && more) o->seconds = (uint32_t)strtoul(argv[++i], NULL, 10);
    else if (!strcmp(argv[i], "--as") && more) o->as = (uint32_t)strtoul(argv[++i], NULL, 10);
    else if (!strcmp(argv[i], "--csv") && more) o->csv = argv[++i];
    else return false;
  }
  return o->jobs && o->jobs <= MOST_JOBS;
}

int main(int argc, char **argv) {
  options o;
  if (!read_options(argc, argv, &o)) {
    fprintf(stderr, "usage: silicon_compare [--jobs N] [--seconds N] [--as N] [--quick] [--strict] [--csv FILE]\n");
    return 2;
  }
  item_list list = items_make(o.quick);
  verdict *verdicts =
      mmap(NULL, list.count * sizeof *verdicts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (verdicts == MAP_FAILED) return 2;
  int status = run_all(&o, &list, verdicts);
  if (status == NO_GPU) return NO_GPU;
  int result = report(&o, &list, verdicts);
  if (status) printf("a process ended early\n");
  free(list.items);
  return result || status;
}
