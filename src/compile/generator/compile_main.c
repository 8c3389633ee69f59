/* SPDX-License-Identifier: Apache-2.0 */
/* farfault-compile [FILE]: a request on standard input, an image on standard output. Started by the virtual GPU; a
 * program of its own, so that the user's process never has LLVM in it, and so that nothing that goes wrong here can
 * hurt it. If no process reads the image any more, it goes to FILE, its place in the cache. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "compile/generator/emit_check.h"
#include "compile/generator/emit.h"
#include "compile/compile_private.h"

#define MAX_REQUEST (64u << 20)

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

int main(int argc, char **argv) {
  uint32_t bytes, image_bytes;
  unsigned char *image;
  const char *message = "";
  /* the program that started us may wait for children of its own */
  if (!getenv("FARFAULT_COMPILE_STAY") && fork() > 0) _exit(0);
  setrlimit(RLIMIT_CPU, &(struct rlimit){60, 60});
#ifdef COMPILE_LIMITS_MEMORY /* not with sanitizers, which reserve more than there is */
  setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)4 << 30, (rlim_t)4 << 30});
#endif
  unsigned char *request = read_all(&bytes);
  if (!check_request(request, bytes, &message) ||
      !emit_image((const native_request *)(const void *)request, &image, &image_bytes, &message)) {
    fprintf(stderr, "farfault-compile: %s\n", message);
    return 1;
  }
  signal(SIGPIPE, SIG_IGN);
  return write_all(image, image_bytes) || (argc > 1 && compile_keep_at(argv[1], image, image_bytes)) ? 0 : 1;
}
