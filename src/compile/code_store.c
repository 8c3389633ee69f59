/* SPDX-License-Identifier: Apache-2.0 */
/* The cache on disk: $XDG_CACHE_HOME/farfault/native, or ~/.cache/farfault/native; one file per key, named by it.
 *
 * A file is used only if it and its folder belong to this user and no other user may write them
 * (a process that can write there could run anything as this user anyway), and if it is whole; a broken one is made
 * anew. Files appear whole (written aside, renamed). There are at most MAX_FILES and MAX_BYTES of them: the ones used
 * longest ago go. */
#define _GNU_SOURCE /* secure_getenv */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "compile/compile_private.h"

#define MAX_FILES 4096u
#define MAX_BYTES (UINT64_C(512) << 20)

static bool is_ours(const struct stat *s) { return s->st_uid == geteuid() && !(s->st_mode & (S_IWGRP | S_IWOTH)); }

/* The folder, made if it is missing; false: there is none that can be trusted. A program with thousands of kernels
 * comes here for each: usually it is there. */
static bool folder_of(char *path, size_t room) {
  const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
  int length = -1;
  if (cache && cache[0] == '/') length = snprintf(path, room, "%s", cache);
  else if (home && home[0] == '/') length = snprintf(path, room, "%s/.cache", home);
  if (length < 0 || (size_t)length + 32 > room) return false;
  static const char *const below[] = {"/farfault", "/native"};
  struct stat s;
  strcpy(path + length, "/farfault/native");
  bool there = !stat(path, &s);
  for (int n = 0; n < 3 && !there; n++) {
    path[length] = '\0';
    for (int part = 0; part < n; part++) strcat(path, below[part]);
    if (mkdir(path, 0700) && errno != EEXIST) return false;
  }
  return (there || !stat(path, &s)) && S_ISDIR(s.st_mode) && is_ours(&s);
}

bool compile_path(const compile_key *key, char *path, size_t room) {
  if (!folder_of(path, room)) return false;
  size_t length = strlen(path);
  return (size_t)snprintf(path + length, room - length, "/%016llx%016llx", (unsigned long long)key->half[1],
                          (unsigned long long)key->half[0]) < room - length;
}

/* By the time of its last change, which is exact enough if it is not older than that. */
#define USED_SECONDS 600

static void note_use(int fd, const struct stat *s) {
  time_t now = time(NULL);
  if (s->st_mtime <= now && now - s->st_mtime < USED_SECONDS) return;
  futimens(fd, (struct timespec[2]){{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}});
}

static unsigned char *load_file(const char *path, const compile_key *key, uint32_t function_count, uint32_t *bytes) {
  struct stat s;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); /* not to wait for a pipe */
  if (fd < 0) return NULL;
  unsigned char *image = NULL;
  if (!fstat(fd, &s) && S_ISREG(s.st_mode) && is_ours(&s) && s.st_size > 0 && s.st_size <= COMPILE_MAX_IMAGE) {
    *bytes = (uint32_t)s.st_size;
    image = ff_alloc(*bytes);
    uint32_t have = 0;
    for (ssize_t got; have < *bytes && (got = read(fd, image + have, *bytes - have)) > 0;) have += (uint32_t)got;
    if (have != *bytes || !compile_is_whole(image, *bytes, key, function_count)) {
      free(image);
      image = NULL;
    } else {
      note_use(fd, &s);
    }
  }
  close(fd);
  return image;
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
  return !lstat(path, &s) && S_ISREG(s.st_mode) && is_ours(&s);
}

/* ---- what goes when there is too much ---- */

typedef struct entry {
  char name[64];
  uint64_t bytes;
  struct timespec used;
} entry;

static int by_use(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
  return x->used.tv_nsec < y->used.tv_nsec ? -1 : x->used.tv_nsec > y->used.tv_nsec;
}

static void drop_oldest(const char *folder) {
  DIR *d = opendir(folder);
  if (!d) return;
  FF_VEC(entry) all = {0};
  uint64_t total = 0;
  struct stat s;
  for (struct dirent *e; (e = readdir(d));) {
    if (e->d_name[0] == '.' || strlen(e->d_name) >= sizeof all.items[0].name ||
        fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW) || !S_ISREG(s.st_mode))
      continue;
    entry one = {.bytes = (uint64_t)s.st_size, .used = s.st_mtim};
    strcpy(one.name, e->d_name);
    FF_PUSH(&all, one);
    total += one.bytes;
  }
  if (all.count > MAX_FILES || total > MAX_BYTES) {
    qsort(all.items, all.count, sizeof *all.items, by_use);
    for (size_t n = 0; n < all.count && (all.count - n > MAX_FILES / 2 || total > MAX_BYTES / 2); n++) {
      unlinkat(dirfd(d), all.items[n].name, 0);
      total -= all.items[n].bytes;
    }
  }
  free(all.items);
  closedir(d);
}

/* Written aside under a name that no other process has, for this user alone whatever the umask is, then renamed. */
static bool write_file(const char *path, const unsigned char *data, uint32_t bytes) {
  char aside[PATH_MAX + 8];
  snprintf(aside, sizeof aside, "%s.XXXXXX", path);
  int fd = mkostemp(aside, O_CLOEXEC);
  if (fd < 0) return false;
  bool good = true;
  while (bytes && good) {
    ssize_t put = write(fd, data, bytes);
    if (put < 0 && errno == EINTR) continue;
    good = put > 0;
    if (good) {
      data += put;
      bytes -= (uint32_t)put;
    }
  }
  if (close(fd)) good = false;
  if (good && !rename(aside, path)) return true;
  unlink(aside);
  return false;
}

static bool keep_file(char *path, const unsigned char *image, uint32_t bytes) {
  if (!write_file(path, image, bytes)) return false;
  *strrchr(path, '/') = '\0';
  drop_oldest(path);
  return true;
}

bool compile_keep_at(char *path, unsigned char *image, uint32_t bytes) {
  compile_key key;
  return key_of(path, &key) && compile_seal(image, bytes, &key) && keep_file(path, image, bytes);
}
