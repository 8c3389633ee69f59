/* SPDX-License-Identifier: Apache-2.0 */
/* farfault-compile is asked over a socket that is its standard input and output. It detaches itself at once, so that
 * the user's program never finds a child of ours among its own for longer than that takes. */
#define _GNU_SOURCE /* posix_spawn_file_actions_addclosefrom_np, secure_getenv */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/descriptor.h"
#include "base/installed.h"
#include "base/memory.h"
#include "compile/compile_private.h"

/* microseconds for one kernel: its processor time is limited to as much (generator/main.c) */
static uint64_t patience = 60000000;

static struct {
  pthread_once_t once;
  bool found;
  char path[PATH_MAX];
  struct stat file;
} compiler = {.once = PTHREAD_ONCE_INIT};

static void look(void) {
#ifdef FARFAULT_LIBRARY_FOLDER
  static const char folder[] = FARFAULT_LIBRARY_FOLDER;
#else
  static const char *folder;
#endif
  const char *told = secure_getenv("FARFAULT_COMPILER");
  if (told && *told)
    compiler.found = (size_t)snprintf(compiler.path, sizeof compiler.path, "%s", told) < sizeof compiler.path &&
                     access(told, X_OK) == 0;
  else
    compiler.found =
        ff_find_installed("farfault-compile", X_OK, (void *)look, folder, true, compiler.path, sizeof compiler.path);
  if (compiler.found && stat(compiler.path, &compiler.file)) compiler.found = false;
}

bool compile_find(char *path, size_t room) {
  pthread_once(&compiler.once, look);
  return compiler.found && (size_t)snprintf(path, room, "%s", compiler.path) < room;
}

/* The compiler is part of the key: one that was built anew may make other code. */
bool compile_make_key(const void *request, uint32_t bytes, compile_key *key) {
  pthread_once(&compiler.once, look);
  if (!compiler.found) return false;
  uint64_t identity[4] = {(uint64_t)compiler.file.st_size, (uint64_t)compiler.file.st_mtim.tv_sec,
                          (uint64_t)compiler.file.st_mtim.tv_nsec, 0};
  XXH128_hash_t hash = XXH3_128bits_withSeed(request, bytes, XXH3_64bits(identity, sizeof identity));
  key->half[0] = hash.low64;
  key->half[1] = hash.high64;
  return true;
}

/* keep_at: where it puts an image that no thread waits for any more; NULL: nowhere. */
static pid_t start(int end, char *keep_at) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  char *arguments[] = {(char *)"farfault-compile", keep_at, NULL}, *environment[] = {NULL, NULL};
#ifdef FARFAULT_COVERED /* a build for the coverage figure: it writes its profile where the others do */
  static char profile[PATH_MAX];
  if (getenv("LLVM_PROFILE_FILE") &&
      (size_t)snprintf(profile, sizeof profile, "LLVM_PROFILE_FILE=%s", getenv("LLVM_PROFILE_FILE")) < sizeof profile)
    environment[0] = profile;
#endif
  pid_t pid = -1;
  sigemptyset(&none);
  sigfillset(&all);
  if (posix_spawn_file_actions_init(&files)) return -1;
  if (posix_spawnattr_init(&attributes)) {
    posix_spawn_file_actions_destroy(&files);
    return -1;
  }
  posix_spawn_file_actions_adddup2(&files, end, 0);
  posix_spawn_file_actions_adddup2(&files, end, 1);
  posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (posix_spawn(&pid, compiler.path, &files, &attributes, arguments, environment)) pid = -1;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return pid;
}

void compile_patience(uint32_t milliseconds) { patience = (uint64_t)milliseconds * 1000; }

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Waits until the socket can be written or read; false: it has taken too long. */
static bool wait_for(int fd, short what, uint64_t end) {
  for (;;) {
    uint64_t at = now();
    struct pollfd one = {.fd = fd, .events = what};
    int ready = at < end ? poll(&one, 1, (int)((end - at) / 1000 + 1)) : 0;
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) return false;
  }
}

static bool send_all(int fd, const unsigned char *data, uint32_t bytes, uint64_t end) {
  while (bytes) {
    if (!wait_for(fd, POLLOUT, end)) return false;
    ssize_t put = send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (put <= 0) return false;
    data += put;
    bytes -= (uint32_t)put;
  }
  return shutdown(fd, SHUT_WR) == 0;
}

static unsigned char *receive_all(int fd, uint32_t *bytes, uint64_t end) {
  size_t room = 1 << 16, have = 0;
  unsigned char *data = ff_alloc(room);
  while (wait_for(fd, POLLIN, end)) {
    ssize_t got = recv(fd, data + have, room - have, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) break;
    have += (size_t)got;
    if (have < room) continue;
    if (room >= COMPILE_MAX_IMAGE) break;
    data = ff_realloc(data, room *= 2);
  }
  *bytes = (uint32_t)have;
  return data;
}

/* farfault-compile itself is gone at once, as it detaches itself; one that is still there would not end. */
static void end_child(pid_t pid) {
  if (waitpid(pid, NULL, WNOHANG) == 0) kill(pid, SIGKILL);
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
}

unsigned char *compile_ask(const void *request, uint32_t bytes, const compile_key *key, uint32_t *image_bytes,
                           uint64_t *microseconds) {
  int ends[2];
  char keep_at[PATH_MAX];
  uint64_t begun = now(), end = begun + patience;
  pthread_once(&compiler.once, look);
  if (!compiler.found || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return NULL;
  ends[0] = ff_descriptor_apart(ends[0]);
  pid_t pid = ends[0] < 0 ? -1 : start(ends[1], compile_path(key, keep_at, sizeof keep_at) ? keep_at : NULL);
  close(ends[1]);
  unsigned char *image = NULL;
  if (pid > 0 && send_all(ends[0], request, bytes, end)) image = receive_all(ends[0], image_bytes, end);
  if (ends[0] >= 0) close(ends[0]);
  if (pid > 0) end_child(pid);
  *microseconds = now() - begun;
  return image;
}
