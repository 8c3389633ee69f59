/* SPDX-License-Identifier: Apache-2.0 */
/* compiled_random [--seed N] [--count N] [--sweep [--native]] [--stream] [--isa NAME] [--keep FOLDER] [--whole]
 * [--print] [--smaller] [--part K/N] [FILE.ptx | FOLDER]...
 *
 * Random programs from --seed on (or, with --sweep, programs that go through every computing form, with --native those
 * that the compiler has code of its own for), or the files, interpreted and compiled. One that differs is made smaller,
 * written to --keep (default: here; with --whole as it is), and the exit status is 1; so is one that crashes: programs
 * run in child processes. --smaller: files that differ are made smaller, to standard output. --stream: the launches
 * have an access stream, which is compared, too. --part: of a folder's files, by name, the Kth of each N. --print: only
 * the text of the first program. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "compare.h"
#include "program.h"

#define FORMS_AT_ONCE 16u
#define PART 100u /* programs of one child process */

typedef struct options {
  uint64_t seed, count;
  unsigned part, parts; /* from 1 */
  bool sweep, native, print, whole, smaller, stream;
  const char *isa, *keep;
} options;

static ff_text make(const program_forms *forms, const options *o, uint64_t n) {
  return o->sweep ? program_sweep(forms, o->native, (uint32_t)n * FORMS_AT_ONCE, FORMS_AT_ONCE, o->seed)
                  : program_random(forms, o->seed + n);
}

/* ---- smaller programs ---- */

typedef struct lines {
  char **at;
  uint32_t count;
} lines;

static lines split(char *text) {
  lines l = {ff_alloc((strlen(text) + 1) * sizeof(char *)), 0};
  for (char *at = strtok(text, "\n"); at; at = strtok(NULL, "\n")) l.at[l.count++] = at;
  return l;
}

static ff_text join(const lines *l) {
  ff_text text = {0};
  for (uint32_t n = 0; n < l->count; n++)
    if (l->at[n]) ff_text_add(&text, "%s\n", l->at[n]);
  return text;
}

static bool differs(comparer *c, const lines *l) {
  char why[4096];
  ff_text text = join(l);
  bool different = compare_text(c, text.chars, text.length, why, sizeof why) == COMPARE_DIFFERENT;
  free(text.chars);
  return different;
}

/* Leaves out runs of lines, shorter and shorter, for as long as what is left still differs. A label that is still used
 * or half a pair of braces makes a text that does not parse, and so is kept. */
static ff_text smaller(comparer *c, const ff_text *text) {
  char *copy = ff_strdup(text->chars);
  lines l = split(copy);
  char **saved = ff_alloc((l.count + 1) * sizeof *saved);
  for (uint32_t step = l.count / 2; step; step = step > 1 ? step / 2 : 0)
    for (uint32_t n = 0; n < l.count; n += step) {
      memcpy(saved, l.at, l.count * sizeof *saved);
      bool any = false;
      for (uint32_t k = n; k < n + step && k < l.count; k++) {
        any |= l.at[k] != NULL;
        l.at[k] = NULL;
      }
      if (!any || !differs(c, &l)) memcpy(l.at, saved, l.count * sizeof *saved);
    }
  ff_text result = join(&l);
  free(saved);
  free(l.at);
  free(copy);
  return result;
}

static void keep(comparer *c, const options *o, uint64_t n, const ff_text *text, const char *why) {
  char path[4096];
  ff_error error;
  ff_text less = o->whole ? (ff_text){0} : smaller(c, text);
  snprintf(path, sizeof path, "%s/%s-%llu.ptx", o->keep, o->sweep ? "sweep" : "random",
           (unsigned long long)(o->seed + n));
  printf("%s: %s\n", path, why);
  if (ff_file_write(path, less.chars ? less.chars : text->chars, less.chars ? less.length : text->length, &error))
    printf("%s\n", error.message);
  fflush(stdout);
  free(less.chars);
}

/* ---- running ---- */

static int run_part(const program_forms *forms, const options *o, uint64_t first, uint64_t end, compare_counts *counts,
                    uint64_t *at) {
  comparer *c = comparer_make(o->isa, o->stream);
  int failed = 0;
  for (uint64_t n = first; n < end; n++) {
    char why[4096];
    *at = n;
    ff_text text = make(forms, o, n);
    comparison result = compare_text(c, text.chars, text.length, why, sizeof why);
    if (result == COMPARE_INVALID)
      printf("%s %llu: %s\n", o->sweep ? "sweep" : "seed", (unsigned long long)(o->seed + n), why);
    if (result == COMPARE_DIFFERENT) keep(c, o, n, &text, why);
    failed |= result != COMPARE_SAME;
    free(text.chars);
  }
  *counts = *comparer_counts(c);
  comparer_free(c);
  return failed;
}

typedef struct report {
  compare_counts counts;
  uint64_t at;
} report;

/* A child does the work; what it counted comes back through memory that both have. */
static int run_child(const program_forms *forms, const options *o, uint64_t first, uint64_t end, report *shared) {
  int status;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    int failed = run_part(forms, o, first, end, &shared->counts, &shared->at);
    fflush(stdout);
    exit(failed);
  }
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  if (WIFEXITED(status) && WEXITSTATUS(status) <= 1) return WEXITSTATUS(status);
  printf("%s %llu: ended by %s %d\n", o->sweep ? "sweep" : "seed",
         (unsigned long long)(o->sweep ? shared->at : o->seed + shared->at), WIFSIGNALED(status) ? "signal" : "exit",
         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  return 1;
}

static void add(compare_counts *to, const compare_counts *from) {
  to->launches += from->launches;
  to->compiled += from->compiled;
  to->faults += from->faults;
  to->instructions += from->instructions;
  to->divergent += from->divergent;
}

static int run_all(const program_forms *forms, const options *o) {
  report *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  compare_counts all = {0};
  int failed = 0;
  for (uint64_t n = 0; n < o->count; n += PART) {
    memset(shared, 0, sizeof *shared);
    failed |= run_child(forms, o, n, n + PART < o->count ? n + PART : o->count, shared);
    add(&all, &shared->counts);
  }
  printf(
      "%llu programs, %llu launches each way, %llu compiled, %llu ended by faults, %llu warp instructions, %llu divergent branches\n",
      (unsigned long long)o->count, all.launches, all.compiled, all.faults, all.instructions, all.divergent);
  if (all.compiled != all.launches) printf("not every launch was compiled\n");
  return failed || all.compiled != all.launches;
}

static int run_file(comparer *c, const options *o, const char *path) {
  char *text, why[4096];
  size_t length;
  ff_error error;
  if (ff_file_read(path, 1 << 22, &text, &length, &error)) {
    printf("%s\n", error.message);
    return 1;
  }
  comparison result = compare_text(c, text, length, why, sizeof why);
  if (result != COMPARE_SAME) printf("%s: %s\n", path, why);
  if (result == COMPARE_DIFFERENT && o->smaller) {
    ff_text less = smaller(c, &(ff_text){.chars = text, .length = length});
    fputs(less.chars, stdout);
    free(less.chars);
  }
  free(text);
  return result != COMPARE_SAME;
}

static int is_text(const struct dirent *entry) { return strstr(entry->d_name, ".ptx") != NULL; }

static int run_folder(comparer *c, const options *o, const char *folder, struct dirent **files, int count) {
  int failed = 0;
  for (int n = 0; n < count; n++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, files[n]->d_name);
    if ((unsigned)n % o->parts == o->part - 1) failed |= run_file(c, o, path);
    free(files[n]);
  }
  free(files);
  return failed;
}

static int run_files(const options *o, char **paths) {
  comparer *c = comparer_make(o->isa, o->stream);
  int failed = 0;
  for (; *paths; paths++) {
    struct dirent **files;
    int count = scandir(*paths, &files, is_text, alphasort);
    failed |= count < 0 ? run_file(c, o, *paths) : run_folder(c, o, *paths, files, count);
  }
  const compare_counts *counts = comparer_counts(c);
  printf("%llu launches each way, %llu compiled, %llu ended by faults\n", counts->launches, counts->compiled,
         counts->faults);
  failed |= counts->compiled != counts->launches || !counts->launches;
  comparer_free(c);
  return failed;
}

/* Forms that no statement was found for: said, and too many of them are a fault of the test. */
static int look_at_forms(const program_forms *forms) {
  const char *const *names;
  uint32_t missing = program_forms_missing(forms, &names);
  for (uint32_t n = 0; n < missing; n++) printf("no statement for %s\n", names[n]);
  printf("%u forms, %u of them native\n", program_forms_count(forms, false), program_forms_count(forms, true));
  return missing > 0;
}

int main(int argc, char **argv) {
  options o = {.seed = 1, .part = 1, .parts = 1, .keep = "."};
  int n = 1;
  for (; n < argc && argv[n][0] == '-'; n++) {
    bool more = n + 1 < argc;
    if (!strcmp(argv[n], "--sweep")) o.sweep = true;
    else if (!strcmp(argv[n], "--native")) o.native = true;
    else if (!strcmp(argv[n], "--print")) o.print = true;
    else if (!strcmp(argv[n], "--whole")) o.whole = true;
    else if (!strcmp(argv[n], "--stream")) o.stream = true;
    else if (!strcmp(argv[n], "--smaller")) o.smaller = true;
    else if (!strcmp(argv[n], "--seed") && more) o.seed = strtoull(argv[++n], NULL, 10);
    else if (!strcmp(argv[n], "--count") && more) o.count = strtoull(argv[++n], NULL, 10);
    else if (!strcmp(argv[n], "--isa") && more) o.isa = argv[++n];
    else if (!strcmp(argv[n], "--keep") && more) o.keep = argv[++n];
    else if (!strcmp(argv[n], "--part") && more && sscanf(argv[n + 1], "%u/%u", &o.part, &o.parts) == 2 && o.part &&
             o.part <= o.parts)
      n++;
    else {
      fprintf(
          stderr,
          "usage: compiled_random [--seed N] [--count N] [--sweep [--native]] [--stream] [--isa NAME] [--keep FOLDER] [--whole] [--print] [--smaller] [--part K/N] [FILE.ptx | FOLDER]...\n");
      return 2;
    }
  }
  if (n < argc) return run_files(&o, argv + n);
  program_forms *forms = program_forms_make();
  int failed = 0;
  if (o.sweep) {
    uint64_t all = (program_forms_count(forms, o.native) + FORMS_AT_ONCE - 1) / FORMS_AT_ONCE;
    failed = look_at_forms(forms);
    if (o.count > all || !o.count) o.count = all;
  }
  if (!o.count) o.count = 20;
  if (o.print) {
    ff_text text = make(forms, &o, 0);
    fputs(text.chars, stdout);
    free(text.chars);
  } else {
    failed |= run_all(forms, &o);
  }
  program_forms_free(forms);
  return failed;
}
