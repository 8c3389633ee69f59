/* SPDX-License-Identifier: Apache-2.0 */
/* Children with their results in memory files (memfd): see slots.h.
 *
 * A child is killed when this process ends, even by SIGKILL (PR_SET_PDEATHSIG; its own children are
 * its concern); descriptors 0 to 3 are all that it gets, and 4 if it is a copy; a result of more than OUTPUT_LIMIT
 * bytes is none.
 *
 * A copy of this process takes one task after the other, which saves a fork and what is touched first after it:
 *
 *     slots_run: words of argv --socket--> act: body, flush --socket--> status, and SIGCHLD to this process
 *     slots_reap: reads its files --> idle --> slots_run: ...
 *
 * It empties its files before the next task, which it is given after they were read. A task that ends the process is
 * reaped as any other child. */
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/estimate.h"
#include "base/memory.h"
#include "cli/cli.h"

enum { LOG_LIMIT = 2000, HIGH_FD = 10, OUTPUT_FD = STDERR_FILENO + 1, ORDERS_FD };
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

/* The same file under a number that is none of those that a child gets. */
static int high(int fd) {
  int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
  if (fd >= 0) close(fd);
  return moved;
}

static int memory_file(const char *name) { return high(memfd_create(name, MFD_CLOEXEC)); }

static bool read_all(int fd, void *to, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t got = read(fd, (char *)to + at, size - at);
    if (got <= 0 && !(got < 0 && errno == EINTR)) return false;
    if (got > 0) at += (size_t)got;
  }
  return true;
}

static bool send_all(int fd, const void *from, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t put = send(fd, (const char *)from + at, size - at, MSG_NOSIGNAL);
    if (put <= 0 && !(put < 0 && errno == EINTR)) return false;
    if (put > 0) at += (size_t)put;
  }
  return true;
}

/* ---- in a copy of this process ---- */

typedef struct order { /* the words, each with its NUL, in one piece */
  char *text, **words;
  int count;
} order;

static bool order_read(order *o) {
  size_t size;
  free(o->text);
  free(o->words);
  *o = (order){0};
  if (!read_all(ORDERS_FD, &size, sizeof size)) return false;
  o->text = ff_alloc(size + 1);
  if (!read_all(ORDERS_FD, o->text, size)) return false;
  for (size_t at = 0; at < size; at += strlen(o->text + at) + 1) o->count++;
  o->words = ff_alloc((size_t)(o->count + 1) * sizeof *o->words);
  int word = 0;
  for (size_t at = 0; at < size; at += strlen(o->text + at) + 1) o->words[word++] = o->text + at;
  return true;
}

static void empty(int fd) {
  if (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET)) _exit(CLI_FAILED);
}

static char **copy_of(char **variables) {
  size_t count = 0;
  while (variables[count]) count++;
  char **copy = ff_alloc((count + 1) * sizeof *copy);
  return memcpy(copy, variables, count * sizeof *copy);
}

/* A copy of this process has its files, too: none of them is the child's (the database, MPI's connections). */
static _Noreturn void act(const slots *s, char **argv, pid_t parent) {
  char **variables = copy_of(environ);
  order next = {0};
  prctl(PR_SET_NAME, "farfault-point");
  close_range(ORDERS_FD + 1, UINT_MAX, 0);
  for (int tasks = 1;; tasks++) {
    int argc = 0;
    while (argv[argc]) argc++;
    bool ends = s->ends && s->ends(argv); /* the body may move the words about */
    int status = s->body(argc, argv);
    fflush(NULL);
    if (tasks == SLOT_TASKS || ends || !send_all(ORDERS_FD, &status, sizeof status)) _exit(status);
    if (getppid() == parent) kill(parent, SIGCHLD);
    if (!order_read(&next)) _exit(status);
    argv = next.words;
    environ = copy_of(variables);
    empty(STDOUT_FILENO);
    empty(OUTPUT_FD);
  }
}

static _Noreturn void become(const slots *s, const slot *slot, int orders, char **argv, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(CLI_FAILED); /* it ended before the line above */
  int empty = open("/dev/null", O_RDONLY);
  dup2(empty, STDIN_FILENO);
  dup2(slot->log, STDOUT_FILENO);
  dup2(slot->log, STDERR_FILENO);
  dup2(slot->output, OUTPUT_FD);
  if (s->body) dup2(orders, ORDERS_FD);
  if (s->folder) setenv("TMPDIR", s->folder, 1);
  sigprocmask(SIG_SETMASK, &s->mask, NULL);
  if (s->body) act(s, argv, parent);
  execve(argv[0], argv, environ);
  dprintf(STDERR_FILENO, "%s: cannot be executed: %s\n", argv[0], strerror(errno));
  _exit(CLI_NOT_EXECUTABLE);
}

/* ---- starting ---- */

static void close_slot(slot *slot) {
  if (slot->output >= 0) close(slot->output);
  if (slot->log >= 0) close(slot->log);
  if (slot->orders >= 0) close(slot->orders);
  *slot = (struct slot){.output = -1, .log = -1, .orders = -1};
}

/* A new process in a slot that has none. */
static void start(slots *s, slot *slot, uint32_t task, char **argv) {
  int pair[2] = {-1, -1};
  *slot = (struct slot){.busy = true,
                        .task = task,
                        .output = memory_file("result"),
                        .log = memory_file("log"),
                        .orders = -1,
                        .begun = slots_now()};
  pid_t parent = getpid();
  bool ready = slot->output >= 0 && slot->log >= 0;
  if (s->body) {
    fflush(NULL); /* a copy of this process would write what is buffered once more, into files of its own */
    ready = ready && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
    slot->orders = high(pair[0]);
    pair[1] = high(pair[1]);
    ready = ready && slot->orders >= 0 && pair[1] >= 0;
  }
  slot->process = ready ? fork() : -1;
  if (slot->process == 0) become(s, slot, pair[1], argv, parent);
  if (slot->process < 0 && slot->log >= 0) dprintf(slot->log, "cannot start a process: %s\n", strerror(errno));
  if (pair[1] >= 0) close(pair[1]);
}

/* The next task of a process that waits. false: it is gone, and the slot has none. */
static bool go_on(slot *slot, uint32_t task, char **argv) {
  ff_text words = {0};
  for (char **word = argv; *word; word++) ff_text_add_bytes(&words, *word, strlen(*word) + 1);
  slot->busy = true;
  slot->task = task;
  slot->begun = slots_now();
  bool sent =
      send_all(slot->orders, &words.length, sizeof words.length) && send_all(slot->orders, words.chars, words.length);
  free(words.chars);
  if (sent) return true;
  kill(slot->process, SIGKILL);
  waitpid(slot->process, NULL, 0);
  close_slot(slot);
  return false;
}

void slots_run(slots *s, uint32_t task, char **argv) {
  slot *slot = s->items, *last = s->items + s->count;
  while (slot < last && (!slot->process || slot->busy)) slot++; /* one that waits */
  if (slot == last || !go_on(slot, task, argv)) {
    for (slot = s->items; slot->process;) slot++;
    start(s, slot, task, argv);
  }
  s->running++;
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

/* `waits`: the process does, for the next task. */
static void take_end(slots *s, slot *slot, int status, bool waits, slot_end *end) {
  size_t size = 0;
  *end = (slot_end){.task = slot->task, .status = status, .seconds = slots_now() - slot->begun};
  end->output = file_text(slot->output, 0, &end->output_size);
  end->log = file_text(slot->log, -LOG_LIMIT, &size);
  if (!end->log) end->log = ff_strdup("");
  slot->busy = false;
  if (!waits) close_slot(slot);
  s->running--;
}

bool slots_reap(slots *s, slot_end *end) {
  for (uint32_t i = 0; i < s->count; i++) {
    slot *slot = &s->items[i];
    int status;
    if (!slot->busy) continue;
    if (slot->process < 0) {
      take_end(s, slot, CLI_NOT_EXECUTABLE, false, end);
      return true;
    }
    if (slot->orders >= 0 && recv(slot->orders, &status, sizeof status, MSG_DONTWAIT) == sizeof status) {
      take_end(s, slot, status, true, end);
      return true;
    }
    if (waitpid(slot->process, &status, WNOHANG) != slot->process) continue;
    take_end(s, slot, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), false, end);
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
    if (slot->process) close_slot(slot);
  }
  if (s->folder) remove_all(s->folder);
  free(s->folder);
  free(s->items);
  *s = (slots){0};
}
