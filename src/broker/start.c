/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon is a small program of its own, farfault-broker, not a fork of the process that asks first: a fork of a
 * program with a GPU would keep its memory, its mappings of the driver and the locks of its other threads. It lies next
 * to the virtual GPU's libraries:
 *
 *   $FARFAULT_BROKER; lib/farfault next to this library or next to the program; of the farfault that the shell would
 *   start; of the installation
 *
 * It is started by posix_spawn: no handler of the caller's runs, no signal of his is lost, nothing of his is inherited
 * but the environment (without LD_*, which puts other libraries in front). */
#define _GNU_SOURCE /* posix_spawn_file_actions_addclosefrom_np, secure_getenv */
#include "broker/start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/installed.h"
#include "base/memory.h"

enum { START_PATIENCE_MS = 10000, ABOVE_OURS = 10 };

extern char **environ;

/* ---- where it is ---- */

static bool find_daemon(char *path, size_t room) {
#ifdef FARFAULT_LIBRARY_FOLDER
  static const char folder[] = FARFAULT_LIBRARY_FOLDER;
#else
  static const char *folder;
#endif
  const char *told = secure_getenv("FARFAULT_BROKER");
  if (!told || !*told) return ff_find_installed("farfault-broker", X_OK, (void *)find_daemon, folder, true, path, room);
  int length = snprintf(path, room, "%s", told);
  return length > 0 && (size_t)length < room;
}

/* ---- how it is started ---- */

/* The environment without LD_*; the strings are the caller's. */
static char **clean_environment(void) {
  size_t count = 0, kept = 0;
  while (environ && environ[count]) count++;
  char **clean = ff_alloc((count + 1) * sizeof *clean);
  for (size_t i = 0; i < count; i++)
    if (strncmp(environ[i], "LD_", 3)) clean[kept++] = environ[i];
  return clean;
}

/* What the daemon finds in its place: /dev/null (or a file for what it has to say) for 0 to 2, the pipe and the folder,
 * and nothing else. */
static int set_files(posix_spawn_file_actions_t *files, int status, int folder) {
  const char *log = secure_getenv("FARFAULT_BROKER_LOG");
  int result = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDWR, 0);
  if (!result) result = posix_spawn_file_actions_adddup2(files, 0, 1);
  if (!result && log && *log)
    result = posix_spawn_file_actions_addopen(files, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  else if (!result) result = posix_spawn_file_actions_adddup2(files, 0, 2);
  if (!result) result = posix_spawn_file_actions_adddup2(files, status, BROKER_FD_STATUS);
  if (!result) result = posix_spawn_file_actions_adddup2(files, folder, BROKER_FD_FOLDER);
  if (!result) result = posix_spawn_file_actions_addclosefrom_np(files, BROKER_FD_FOLDER + 1);
  return result;
}

static int set_attributes(posix_spawnattr_t *attributes) {
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  int result = posix_spawnattr_setsigmask(attributes, &none);
  if (!result) result = posix_spawnattr_setsigdefault(attributes, &all);
  if (!result)
    result = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  return result;
}

/* 0, or an errno. */
static int spawn(const char *path, const char *gpu, int status, int folder, pid_t *pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  char *arguments[] = {(char *)"farfault-broker", (char *)gpu, NULL};
  int result = posix_spawn_file_actions_init(&files);
  if (result) return result;
  result = posix_spawnattr_init(&attributes);
  if (!result) {
    char **environment = clean_environment();
    result = set_files(&files, status, folder);
    if (!result) result = set_attributes(&attributes);
    if (!result) result = posix_spawn(pid, path, &files, &attributes, arguments, environment);
    free(environment);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_destroy(&files);
  return result;
}

/* What the daemon writes until it closes the pipe; "" if nothing comes in time. */
static void read_status(int fd, char *said, size_t room) {
  size_t length = 0;
  while (length < room - 1) {
    struct pollfd poll_one = {.fd = fd, .events = POLLIN};
    int ready = poll(&poll_one, 1, START_PATIENCE_MS);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) break;
    ssize_t got = read(fd, said + length, room - 1 - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    length += (size_t)got;
  }
  said[length] = '\0';
}

/* The pipe's ends and the folder above the numbers that they have in the daemon. */
static ff_status start_at(const char *path, const broker_place *place, const char *gpu, int ends[2], ff_error *error) {
  char said[1024];
  pid_t pid = -1;
  int folder = fcntl(place->folder, F_DUPFD_CLOEXEC, ABOVE_OURS), status = fcntl(ends[1], F_DUPFD_CLOEXEC, ABOVE_OURS);
  int result = folder < 0 || status < 0 ? errno : spawn(path, gpu, status, folder, &pid);
  if (folder >= 0) close(folder);
  if (status >= 0) close(status);
  close(ends[1]);
  ends[1] = -1;
  if (result) return ff_fail(error, FF_IO, "%s: cannot be started: %s", path, strerror(result));
  read_status(ends[0], said, sizeof said);
  /* the first of its two processes; a process that ignores SIGCHLD has none to wait for */
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
  if (!strcmp(said, START_READY) || !strcmp(said, START_BUSY)) return FF_OK;
  return ff_fail(error, FF_IO, "%s: %s", path, said[0] ? said : "it did not come up");
}

ff_status start_daemon(const broker_place *place, const char *gpu, ff_error *error) {
  char path[PATH_MAX];
  int ends[2];
  if (!find_daemon(path, sizeof path))
    return ff_fail(
        error, FF_NOT_FOUND,
        "farfault-broker is neither next to libfarfault (lib/farfault of an installation), nor next to the program, nor is there a "
        "farfault on PATH; FARFAULT_BROKER=PATH names it");
  if (pipe2(ends, O_CLOEXEC)) return ff_fail(error, FF_IO, "no pipe can be made: %s", strerror(errno));
  ff_status status = start_at(path, place, gpu, ends, error);
  close(ends[0]);
  if (ends[1] >= 0) close(ends[1]);
  return status;
}
