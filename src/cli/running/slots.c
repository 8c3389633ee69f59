/* SPDX-License-Identifier: Apache-2.0 */
/* Children with their results in memory files (memfd): see slots.h.
 *
 * A child is killed when this process ends, even by SIGKILL (PR_SET_PDEATHSIG; its own children are
 * its concern); descriptors 0 to 3 are all that it gets; a result of more than OUTPUT_LIMIT bytes is none. */
#define _GNU_SOURCE /* memfd_create, nftw, close_range */
#include "cli/running/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/estimate.h"
#include "base/memory.h"
#include "cli/cli.h"

enum { LOG_LIMIT = 2000, HIGH_FD = 10 };
static const off_t OUTPUT_LIMIT = (off_t)1 << 28;

extern char **environ;

double slots_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void slots_show_left(double seconds) {
  char text[32];
  if (seconds > 0) fprintf(stderr, ", %s left", ff_estimate_text(seconds, text));
}

/* ---- the folder ---- */

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) { return remove(path); }

static void remove_all(const char *folder) { nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

/* A new folder of that name that is ours alone, or NULL: then the children use the common one. */
static char *make_folder(const char *name) {
  const char *base = getenv("TMPDIR");
  struct stat info;
  ff_text path = {0};
  ff_text_add(&path, "%s/farfault-%s", base && *base == '/' ? base : "/tmp", name);
  if (lstat(path.chars, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid()) remove_all(path.chars);
  if (mkdir(path.chars, 0700) == 0) return path.chars;
  free(path.chars);
  return NULL;
}

void slots_start(slots *s, uint32_t count, const sigset_t *mask, const char *name) {
  *s = (slots){.items = ff_alloc(count * sizeof *s->items), .count = count, .mask = *mask, .folder = make_folder(name)};
}

/* ---- children ---- */

/* A memory file whose number is none of those that a child gets. */
static int memory_file(const char *name) {
  int low = memfd_create(name, MFD_CLOEXEC), high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, HIGH_FD);
  if (low >= 0) close(low);
  return high;
}

/* A copy of this process has its files, too: none of them is the child's (the database, MPI's connections). */
static _Noreturn void act(const slots *s, char **argv) {
  int argc = 0;
  prctl(PR_SET_NAME, "farfault-point");
  close_range(STDERR_FILENO + 2, UINT_MAX, 0);
  while (argv[argc]) argc++;
  int status = s->body(argc, argv);
  fflush(NULL);
  _exit(status);
}

static _Noreturn void become(const slots *s, const slot *slot, char **argv, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(CLI_FAILED); /* it ended before the line above */
  int empty = open("/dev/null", O_RDONLY);
  dup2(empty, STDIN_FILENO);
  dup2(slot->log, STDOUT_FILENO);
  dup2(slot->log, STDERR_FILENO);
  dup2(slot->output, STDERR_FILENO + 1);
  if (s->folder) setenv("TMPDIR", s->folder, 1);
  sigprocmask(SIG_SETMASK, &s->mask, NULL);
  if (s->body) act(s, argv);
  execve(argv[0], argv, environ);
  dprintf(STDERR_FILENO, "%s: cannot be executed: %s\n", argv[0], strerror(errno));
  _exit(CLI_NOT_EXECUTABLE);
}

void slots_run(slots *s, uint32_t task, char **argv) {
  slot *slot = s->items;
  while (slot->process) slot++;
  *slot = (struct slot){.task = task, .output = memory_file("result"), .log = memory_file("log"), .begun = slots_now()};
  pid_t parent = getpid();
  if (s->body) fflush(NULL); /* a copy of this process would write what is buffered once more, into files of its own */
  slot->process = slot->output >= 0 && slot->log >= 0 ? fork() : -1;
  if (slot->process == 0) become(s, slot, argv, parent);
  s->running++;
  if (slot->process < 0 && slot->log >= 0) dprintf(slot->log, "cannot start a process: %s\n", strerror(errno));
}

/* The file's bytes from `from` on (negative: so many from its end), with a NUL behind them. */
static char *file_text(int fd, off_t from, size_t *size) {
  struct stat info;
  if (fd < 0 || fstat(fd, &info) || !info.st_size || info.st_size > OUTPUT_LIMIT) return NULL;
  if (from < 0) from = info.st_size + from > 0 ? info.st_size + from : 0;
  char *text = ff_alloc((size_t)(info.st_size - from) + 1);
  ssize_t got = pread(fd, text, (size_t)(info.st_size - from), from);
  *size = got > 0 ? (size_t)got : 0;
  return text;
}

static void take_end(slots *s, slot *slot, int status, slot_end *end) {
  size_t size = 0;
  *end = (slot_end){.task = slot->task, .status = status, .seconds = slots_now() - slot->begun};
  end->output = file_text(slot->output, 0, &end->output_size);
  end->log = file_text(slot->log, -LOG_LIMIT, &size);
  if (!end->log) end->log = ff_strdup("");
  if (slot->output >= 0) close(slot->output);
  if (slot->log >= 0) close(slot->log);
  slot->process = 0;
  s->running--;
}

bool slots_reap(slots *s, slot_end *end) {
  for (uint32_t i = 0; i < s->count; i++) {
    slot *slot = &s->items[i];
    int status;
    if (slot->process < 0) {
      take_end(s, slot, CLI_NOT_EXECUTABLE, end);
      return true;
    }
    if (!slot->process || waitpid(slot->process, &status, WNOHANG) != slot->process) continue;
    take_end(s, slot, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), end);
    return true;
  }
  return false;
}

void slot_end_free(slot_end *end) {
  free(end->output);
  free(end->log);
  *end = (slot_end){0};
}

void slots_stop(slots *s) {
  for (uint32_t i = 0; i < s->count; i++)
    if (s->items[i].process > 0) kill(s->items[i].process, SIGKILL);
  for (uint32_t i = 0; i < s->count; i++) {
    slot *slot = &s->items[i];
    if (slot->process > 0) waitpid(slot->process, NULL, 0);
    if (slot->process && slot->output >= 0) close(slot->output);
    if (slot->process && slot->log >= 0) close(slot->log);
  }
  if (s->folder) remove_all(s->folder);
  free(s->folder);
  free(s->items);
  *s = (slots){0};
}
