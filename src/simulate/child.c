/* SPDX-License-Identifier: Apache-2.0 */
/* The child's stderr comes through a pipe, is passed on and its end kept; its end is seen by a process descriptor.
 *
 * No wait here is without an end: the pipe and the descriptor wake the loop, and where the caller wants to be asked, or
 * the system has no process descriptors, so does a tick. A stderr that is not read is waited for in ticks, too. The
 * caller's signal mask is what it was when the function returns. */
#define _GNU_SOURCE /* pipe2 */
#include "simulate/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/rank.h"

extern char **environ;

enum {
  TICK_MS = 100,
  PATIENCE_MS = 5000,    /* from SIGTERM to SIGKILL */
  CHUNK = 4096,          /* a pipe that is ready takes so much without a wait */
  KEPT = 64 * 1024,      /* of what it says, at least; twice that at most */
  CHILDREN_MAX = 1 << 16 /* bytes of the list of its own children */
};

typedef struct watch {
  simulate_child *child;
  pid_t process;
  int descriptor; /* of the process; -1: the system has none */
  int from, to;   /* its stderr: our end of the pipe, and where it goes on; -1: it has ended, nowhere */
  bool ended, killed;
  uint64_t asked;        /* the caller, when, in ms */
  uint64_t asked_to_end; /* the child */
} watch;

static uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- starting ---- */

/* The variables of the child, in a list whose strings are borrowed; its results are ours, whichever of mpirun's ranks
 * we are. */
static char **variables(const ff_simulate_options *options) {
  FF_VEC(char *) list = {0};
  const char *const *from = options->environment ? options->environment : (const char *const *)environ;
  for (; from && *from; from++)
    if (ff_rank() < 0 || strncmp(*from, "FARFAULT_RANK=", 14) != 0) FF_PUSH(&list, (char *)(uintptr_t)*from);
  if (ff_rank() >= 0) FF_PUSH(&list, (char *)(uintptr_t) "FARFAULT_RANK=none");
  FF_PUSH(&list, NULL);
  return list.items;
}

static void add_stream(posix_spawn_file_actions_t *files, int stream, int descriptor) {
  if (descriptor < 0)
    posix_spawn_file_actions_addopen(files, stream, "/dev/null", stream == STDIN_FILENO ? O_RDONLY : O_WRONLY, 0);
  else posix_spawn_file_actions_adddup2(files, descriptor, stream);
}

/* Two of the caller's streams may be each other's numbers: copies above all three are taken, with the pipe's end. */
static int copy_above(int descriptor) { return descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 3); }

static int spawn(const simulate_child *child, int errors, pid_t *process) {
  const int *streams = child->options->streams;
  int in = copy_above(streams ? streams[0] : STDIN_FILENO), out = copy_above(streams ? streams[1] : STDOUT_FILENO);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t none, usual;
  posix_spawn_file_actions_init(&files);
  add_stream(&files, STDIN_FILENO, in);
  add_stream(&files, STDOUT_FILENO, out);
  add_stream(&files, STDERR_FILENO, errors);
  sigemptyset(&none);
  sigemptyset(&usual); /* what the caller's runtime may ignore, and a program does not expect to be ignored */
  sigaddset(&usual, SIGPIPE);
  sigaddset(&usual, SIGCHLD);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  char **environment = variables(child->options);
  int failed = posix_spawn(process, child->argv[0], &files, &attributes, child->argv, environment);
  free(environment);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (in >= 0) close(in);
  if (out >= 0) close(out);
  return failed;
}

static ff_status start(watch *w, ff_error *error) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) return ff_fail(error, FF_IO, "cannot make a pipe: %s", strerror(errno));
  int errors = copy_above(ends[1]), failed = errors < 0 ? errno : spawn(w->child, errors, &w->process);
  if (errors >= 0) close(errors);
  close(ends[1]);
  if (failed) {
    close(ends[0]);
    return ff_fail(error, FF_IO, "%s: cannot be started: %s", w->child->argv[0], strerror(failed));
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  w->from = ends[0];
  w->descriptor = (int)syscall(SYS_pidfd_open, w->process, 0);
  return FF_OK;
}

/* ---- ending ---- */

/* What it has started itself, so that it can end as it always does; then it. */
static void kill_all(watch *w) {
  char path[64];
  char *list;
  size_t size;
  snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)w->process, (long)w->process);
  if (!ff_file_read(path, CHILDREN_MAX, &list, &size, NULL)) {
    char *rest = NULL;
    for (char *word = strtok_r(list, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest))
      if (atol(word) > 1) kill((pid_t)atol(word), SIGKILL);
    free(list);
  }
  if (w->killed) kill(w->process, SIGKILL);
  w->killed = true;
  w->asked_to_end = now_ms();
}

static void ask_caller(watch *w) {
  const ff_simulate_options *options = w->child->options;
  uint64_t now = now_ms();
  if (w->ended) return;
  if (!w->child->stopped && options->go_on && now - w->asked >= TICK_MS) {
    w->asked = now;
    w->child->stopped = !options->go_on(options->context);
    w->asked_to_end = now;
    if (w->child->stopped) kill(w->process, SIGTERM);
  }
  if (w->child->stopped && now_ms() - w->asked_to_end > PATIENCE_MS) kill_all(w);
}

static void see_whether_ended(watch *w) {
  int status = 0;
  pid_t got = w->ended ? 0 : waitpid(w->process, &status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return;
  w->ended = true; /* got < 0: the caller has taken its status, or has asked the system to */
  w->child->signal = got > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  w->child->status = got > 0 ? WEXITSTATUS(status) : -1;
}

/* ---- what it says ---- */

static void keep(ff_text *said, const char *bytes, size_t count) {
  ff_text_add_bytes(said, bytes, count);
  if (said->length < 2 * KEPT) return;
  const char *from = said->chars + said->length - KEPT, *line = memchr(from, '\n', KEPT);
  if (line) from = line + 1;
  said->length = (size_t)(said->chars + said->length - from);
  memmove(said->chars, from, said->length + 1);
}

/* Without a SIGPIPE for the caller. */
static ssize_t write_quietly(int to, const char *bytes, size_t count) {
  sigset_t pipe, old, pending;
  const struct timespec no_time = {0};
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe, &old);
  ssize_t written = write(to, bytes, count);
  int failed = errno;
  if (written < 0 && failed == EPIPE && !sigismember(&pending, SIGPIPE)) sigtimedwait(&pipe, NULL, &no_time);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  errno = failed;
  return written;
}

static void pass_on(watch *w, const char *bytes, size_t count) {
  while (count && w->to >= 0) {
    struct pollfd room = {.fd = w->to, .events = POLLOUT};
    int ready = poll(&room, 1, TICK_MS);
    ask_caller(w);
    if (ready == 0 && w->child->stopped) return; /* its reader may be what the caller no longer waits for */
    if (ready <= 0) continue;
    ssize_t written = write_quietly(w->to, bytes, count < CHUNK ? count : CHUNK);
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written < 0) w->to = -1;
    bytes += written > 0 ? written : 0;
    count -= written > 0 ? (size_t)written : 0;
  }
}

/* All that is there now. */
static void listen_to(watch *w) {
  char bytes[CHUNK];
  while (w->from >= 0) {
    ssize_t got = read(w->from, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      close(w->from);
      w->from = -1;
      return;
    }
    keep(&w->child->said, bytes, (size_t)got);
    pass_on(w, bytes, (size_t)got);
  }
}

static void wait_for_news(const watch *w) {
  struct pollfd news[] = {{.fd = w->from, .events = POLLIN}, {.fd = w->descriptor, .events = POLLIN}};
  bool ticks = w->child->options->go_on || w->descriptor < 0;
  poll(news, 2, ticks ? TICK_MS : -1);
}

ff_status simulate_child_run(simulate_child *child, ff_error *error) {
  const int *streams = child->options->streams;
  watch w = {.child = child, .to = streams ? streams[2] : STDERR_FILENO};
  ff_status status = start(&w, error);
  if (status) return status;
  while (!w.ended) {
    wait_for_news(&w);
    ask_caller(&w);
    see_whether_ended(&w); /* before what it said last is read */
    listen_to(&w);
  }
  if (w.from >= 0) close(w.from);
  if (w.descriptor >= 0) close(w.descriptor);
  return FF_OK;
}

void simulate_child_free(simulate_child *child) { free(child->said.chars); }
