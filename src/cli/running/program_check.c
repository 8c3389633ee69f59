/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the program before it runs: is it there, may it be executed, can its GPU code run here?
 *
 * A program is refused only if it certainly cannot work on the virtual GPU; anything else is left to
 * run and to fail by itself. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/running/run.h"
#include "fatbin/elf.h"

#define RUN_CLOCK \
  "libfarfault-clock.so" /* answers a program that asks for the time (driver/injection/virtual_clock.c) */
#define WRITTEN_OR_NOT "either a build is writing it, or farfault is not installed completely"
#define RUN_ENGINE "libfarfault-gpu.so"
#define RUN_PRELOAD "libfarfault-preload.so" /* driver/injection/preload.c */

/* LD_LIBRARY_PATH and LD_PRELOAD take these for separators or the start of a variable, and know no quotes
 * (ld.so(8)). */
static bool linker_takes(const char *path) { return !path[strcspn(path, " :;$\t\n")]; }

char *run_libraries(const char *folder, ff_error *error) {
  char *own = cli_own_folder();
  ff_text path = {0}, link = {0};
  ff_text_add(&path, "%s/../lib/farfault/libfarfault-gpu.so", own);
  char *real = realpath(path.chars, NULL);
  if (!real)
    ff_fail(error, FF_NOT_FOUND,
            "the virtual GPU's libraries (../lib/farfault/libfarfault-gpu.so) are not next to this program in %s", own);
  else *strrchr(real, '/') = '\0';
  if (real && !linker_takes(real)) {
    ff_text_add(&link, "%s/gpu", folder);
    bool linked = linker_takes(link.chars) && symlink(real, link.chars) == 0;
    if (!linked)
      ff_fail(error, FF_IO,
              "%s: the dynamic linker does not take a path like this, and %s cannot stand for it: set TMPDIR", real,
              link.chars);
    free(real);
    real = linked ? link.chars : NULL;
    if (!linked) free(link.chars);
  }
  free(path.chars);
  free(own);
  return real;
}

static bool is_executable_file(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

/* The first executable of that name on PATH, or NULL. The caller frees it. */
static char *find_on_path(const char *name) {
  const char *path = getenv("PATH");
  while (path && *path) {
    size_t length = strcspn(path, ":");
    ff_text candidate = {0};
    ff_text_add(&candidate, "%.*s%s%s", (int)length, path, length ? "/" : "./", name);
    if (is_executable_file(candidate.chars)) return candidate.chars;
    free(candidate.chars);
    path += length + (path[length] == ':');
  }
  return NULL;
}

static ff_status fail_missing(const char *name, run_program *program, ff_error *error) {
  program->status = CLI_NO_PROGRAM;
  if (strchr(name, '/')) return ff_fail(error, FF_NOT_FOUND, "%s: %s", name, strerror(errno));
  if (kind_check(name, KIND_PROGRAM, error)) return FF_PARSE;
  if (access(name, F_OK) == 0)
    return ff_fail(error, FF_NOT_FOUND, "%s: not found on PATH; for the file in this folder write ./%s", name, name);
  return ff_fail(error, FF_NOT_FOUND, "%s: not found on PATH", name);
}

static ff_status find(const char *name, run_program *program, ff_error *error) {
  program->path = strchr(name, '/') ? ff_strdup(name) : find_on_path(name);
  struct stat info;
  if (!program->path || stat(program->path, &info)) return fail_missing(name, program, error);
  program->status = CLI_NOT_EXECUTABLE;
  if (S_ISDIR(info.st_mode)) return ff_fail(error, FF_INVALID, "%s: is a directory", name);
  bool executable = S_ISREG(info.st_mode) && !access(program->path, X_OK);
  if (!executable && kind_check(program->path, KIND_PROGRAM, error)) return FF_PARSE;
  if (!executable)
    return ff_fail(error, FF_INVALID, "%s: is not executable (chmod +x %s, if it is a program)", name, name);
  return FF_OK;
}

/* "libraries/name" exists. */
static bool have_library(const char *libraries, const char *name) {
  ff_text path = {0};
  ff_text_add(&path, "%s/%s", libraries, name);
  bool there = access(path.chars, R_OK) == 0;
  free(path.chars);
  return there;
}

char *run_clock(const char *libraries) {
  if (!libraries || !have_library(libraries, RUN_CLOCK)) return NULL;
  ff_text path = {0};
  ff_text_add(&path, "%s/%s", libraries, RUN_CLOCK);
  return path.chars;
}

/* Every way from a program to the virtual GPU. A sanitizer's build has none by preloading (driver/driver.cmake). */
static const char *const ways[] = {
    "libcuda.so.1", "libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13", RUN_ENGINE,
#ifdef FARFAULT_PRELOADS
    RUN_PRELOAD,
#endif
};
#define WAYS (sizeof ways / sizeof ways[0])

/* A library that a linker is writing has no name inside yet. */
static bool is_whole_library(const char *libraries, const char *name) {
  ff_text path = {0};
  ff_text_add(&path, "%s/%s", libraries, name);
  fatbin_report report;
  ff_error error;
  bool whole = false;
  if (!fatbin_check_links(path.chars, &report, &error)) {
    whole = report.soname != NULL;
    fatbin_report_free(&report);
  }
  free(path.chars);
  return whole;
}

uint32_t run_missing_libraries(const char *libraries) {
  uint32_t missing = 0;
  for (uint32_t i = 0; i < WAYS; i++)
    if (!is_whole_library(libraries, ways[i])) missing |= 1u << i;
  return missing;
}

void run_say_missing(const run_end *end) {
  ff_text names = {0};
  for (uint32_t i = 0; i < WAYS; i++)
    if (end->missing >> i & 1) ff_text_add(&names, "%s%s", names.length ? ", " : "", ways[i]);
  if (end->missing) cli_fail(0, "in %s there is no whole %s: " WRITTEN_OR_NOT, end->libraries, names.chars);
  free(names.chars);
}

static ff_status check_code(const char *name, const fatbin_report *report, ff_error *error) {
  if (report->ptx || report->tile || !report->images) return FF_OK;
  if (report->damaged)
    return ff_fail(error, FF_PARSE, "%s: the GPU code in it is broken: %s", name, report->damage.message);
  /* nothing that runs, or nothing that would load it */
  if (!report->kernels || report->runtime == FATBIN_RUNTIME_NONE) return FF_OK;
  const char *kernels = getenv("FARFAULT_KERNELS");
  if (kernels && *kernels) return FF_OK; /* the PTX is there */
  return ff_fail(
      error, FF_UNSUPPORTED,
      "%s: has GPU machine code (sm_%u) but no PTX, which the virtual GPU needs: `nvcc -gencode "
      "arch=compute_%u,code=compute_%u` embeds it, next to the machine code or alone; --kernels names folders of it",
      name, report->code_highest, report->code_highest, report->code_highest);
}

static ff_status check_runtime(const char *name, const char *libraries, const fatbin_report *report, ff_error *error) {
  if (!report->cudart || have_library(libraries, report->cudart)) return FF_OK;
  for (uint32_t i = 0; i < WAYS; i++)
    if (!strcmp(report->cudart, ways[i]))
      return ff_fail(error, FF_NOT_FOUND, "%s: needs %s, which is missing in %s: " WRITTEN_OR_NOT, name, ways[i],
                     libraries);
  return ff_fail(error, FF_UNSUPPORTED, "%s: needs %s; the virtual GPU stands in for CUDA 11, 12 and 13", name,
                 report->cudart);
}

static void add_preload(ff_text *list, const char *libraries, const char *name) {
  ff_text_add(list, "%s%s/%s", list->length ? " " : "", libraries, name);
}

/* Libraries may be loaded by the program, a library of it or a program that it starts. */
static void choose_preload(const char *libraries, const fatbin_report *report, run_program *program) {
  ff_text preload = {0};
  for (uint32_t i = 0; i < report->needed_count; i++) /* which insists on being the first library of all */
    if (!strncmp(report->needed[i], "libasan.so.", 11)) ff_text_add(&preload, "%s", report->needed[i]);
  bool other = report->kind == FATBIN_FILE_ELF_OTHER; /* 32 bits: cannot take it */
  if (!other && have_library(libraries, RUN_PRELOAD)) add_preload(&preload, libraries, RUN_PRELOAD);
  program->preload = preload.chars;
}

ff_status run_program_find(const char *name, const char *libraries, run_program *program, ff_error *error) {
  *program = (run_program){0};
  ff_status status = find(name, program, error);
  if (status) return status;
  fatbin_report report;
  program->status = CLI_BAD_FILE;
  status = fatbin_check_executable(program->path, &report, error);
  if (status == FF_IO) return FF_OK; /* may be executed without being readable */
  if (status) return status;
  status = check_code(name, &report, error);
  if (!status) status = check_runtime(name, libraries, &report, error);
  if (!status) choose_preload(libraries, &report, program);
  fatbin_report_free(&report);
  return status;
}

void run_program_free(run_program *program) {
  free(program->path);
  free(program->preload);
}
