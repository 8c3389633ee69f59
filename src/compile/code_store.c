/* SPDX-License-Identifier: Apache-2.0 */
/* The cache on disk: files that are kept (base/kept.h) as `native`, one per key, named by it. A broken one is made
 * anew. There are at most MAX_FILES and MAX_BYTES of them. */
#define _GNU_SOURCE /* lstat, PATH_MAX */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/kept.h"
#include "compile/compile_private.h"

#define MAX_FILES 4096u
#define MAX_BYTES (UINT64_C(512) << 20)

bool compile_path(const compile_key *key, char *path, size_t room) {
  if (!ff_kept_folder("native", path, room)) return false;
  size_t length = strlen(path);
  return (size_t)snprintf(path + length, room - length, "/%016llx%016llx", (unsigned long long)key->half[1],
                          (unsigned long long)key->half[0]) < room - length;
}

typedef struct wanted {
  const compile_key *key;
  uint32_t function_count;
} wanted;

static bool is_whole(const void *context, const unsigned char *image, uint32_t bytes) {
  const wanted *w = context;
  return compile_is_whole(image, bytes, w->key, w->function_count);
}

static unsigned char *load_file(const char *path, const compile_key *key, uint32_t function_count, uint32_t *bytes) {
  return ff_kept_read(path, COMPILE_MAX_IMAGE, is_whole, &(wanted){key, function_count}, bytes);
}

unsigned char *compile_load(const compile_key *key, uint32_t function_count, uint32_t *bytes) {
  char path[PATH_MAX];
  return compile_path(key, path, sizeof path) ? load_file(path, key, function_count, bytes) : NULL;
}

/* The key in the last part of such a path. */
static bool key_of(const char *path, compile_key *key) {
  const char *name = strrchr(path, '/');
  unsigned long long high, low;
  if (!name || strlen(name) != 33 || sscanf(name, "/%16llx%16llx", &high, &low) != 2) return false;
  *key = (compile_key){{low, high}};
  return true;
}

unsigned char *compile_load_at(const char *path, uint32_t function_count, uint32_t *bytes) {
  compile_key key;
  return key_of(path, &key) ? load_file(path, &key, function_count, bytes) : NULL;
}

bool compile_refused(const compile_key *key) {
  char path[PATH_MAX];
  struct stat s;
  if (!compile_path(key, path, sizeof path) || strlen(path) + sizeof ".refused" > sizeof path) return false;
  strcat(path, ".refused");
  return !lstat(path, &s) && S_ISREG(s.st_mode) && ff_kept_is_ours(&s);
}

static bool keep_file(char *path, const unsigned char *image, uint32_t bytes) {
  if (!ff_kept_write(path, image, bytes)) return false;
  *strrchr(path, '/') = '\0';
  ff_kept_trim(path, MAX_FILES, MAX_BYTES);
  return true;
}

bool compile_keep_at(char *path, unsigned char *image, uint32_t bytes) {
  compile_key key;
  return key_of(path, &key) && compile_seal(image, bytes, &key) && keep_file(path, image, bytes);
}
