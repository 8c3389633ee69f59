/* SPDX-License-Identifier: Apache-2.0 */
/* farfault-compile [FILE]: a request on standard input, an image on standard output. Started by the virtual GPU; a
 * program of its own, so that the user's process never has LLVM in it, and so that nothing that goes wrong here can
 * hurt it. The image goes to FILE, too, its place in the cache, also if no process reads it any more.
 *
 * Processes that are asked for the same FILE at once (ranks of one program) make it once: the others wait for a lock on
 * FILE.lock, whose holder ends after CPU_SECONDS of processor time, and take what it left in FILE. A kernel that takes
 * longer leaves FILE.refused, so that it is not tried again. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "compile/generator/emit_check.h"
#include "compile/generator/emit.h"
#include "compile/compile_private.h"

#define MAX_REQUEST (64u << 20)
enum { CPU_SECONDS = 60 };

static unsigned char *read_all(uint32_t *bytes) {
  size_t room = 1 << 16, have = 0;
  unsigned char *data = ff_alloc(room);
  for (ssize_t got; (got = read(STDIN_FILENO, data + have, room - have)) > 0;) {
    have += (size_t)got;
    if (have == room && room < MAX_REQUEST) data = ff_realloc(data, room *= 2);
  }
  *bytes = (uint32_t)have;
  return data;
}

static bool write_all(const unsigned char *data, uint32_t bytes) {
  for (ssize_t put; bytes; data += put, bytes -= (uint32_t)put)
    if ((put = write(STDOUT_FILENO, data, bytes)) <= 0) return false;
  return true;
}

static char refused[PATH_MAX];

/* The limit of processor time is reached. */
static void give_up(int number) {
  int fd = *refused ? open(refused, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
  if (fd >= 0) close(fd);
  _exit(number);
}

static void limit_resources(void) {
  signal(SIGXCPU, give_up);
  struct rlimit now;
  bool less = !getrlimit(RLIMIT_CPU, &now) && now.rlim_cur < CPU_SECONDS;
  if (!less) setrlimit(RLIMIT_CPU, &(struct rlimit){CPU_SECONDS, CPU_SECONDS + 1});
#ifdef COMPILE_LIMITS_MEMORY /* not with sanitizers, which reserve more than there is */
  setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)4 << 30, (rlim_t)4 << 30});
#endif
}

/* Holds the lock on `lock` until this process ends; without one, images are made twice at worst. */
static void wait_for_others(const char *lock) {
  int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  while (fd >= 0 && flock(fd, LOCK_EX) && errno == EINTR) {}
}

/* Another process has made it meanwhile: passes it on. */
static bool pass_on(const char *path, const native_request *request) {
  uint32_t bytes;
  unsigned char *image = compile_load_at(path, request->function_count, &bytes);
  return image && write_all(image, bytes);
}

static int fail(const char *message) {
  fprintf(stderr, "farfault-compile: %s\n", message);
  return 1;
}

/* Makes the image and hands it out: to `path` (NULL: nowhere), and to the process that waits for it. */
static int make(const native_request *request, char *path) {
  uint32_t bytes;
  unsigned char *image;
  const char *message = "";
  if (!emit_image(request, &image, &bytes, &message)) return fail(message);
  bool kept = path && compile_keep_at(path, image, bytes);
  return write_all(image, bytes) || kept ? 0 : 1;
}

static int make_once(const native_request *request, char *path) {
  char lock[PATH_MAX];
  if ((size_t)snprintf(refused, sizeof refused, "%s.refused", path) >= sizeof refused)
    return fail("its path is too long");
  snprintf(lock, sizeof lock, "%s.lock", path);
  wait_for_others(lock);
  int status = pass_on(path, request)       ? 0
               : access(refused, F_OK) == 0 ? fail("it has taken too long before")
                                            : make(request, path);
  unlink(lock);
  return status;
}

int main(int argc, char **argv) {
  uint32_t bytes;
  const char *message = "";
  /* the program that started us may wait for children of its own */
  if (!getenv("FARFAULT_COMPILE_STAY") && fork() > 0) _exit(0);
  signal(SIGPIPE, SIG_IGN);
  limit_resources();
  unsigned char *data = read_all(&bytes);
  if (!check_request(data, bytes, &message)) return fail(message);
  const native_request *request = (const native_request *)(const void *)data;
  return argc > 1 ? make_once(request, argv[1]) : make(request, NULL);
}
