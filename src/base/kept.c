/* SPDX-License-Identifier: Apache-2.0 */
/* Files that processes keep for later ones: see kept.h. */
#define _GNU_SOURCE /* secure_getenv */
#include "base/kept.h"

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

bool ff_kept_is_ours(const struct stat *s) { return s->st_uid == geteuid() && !(s->st_mode & (S_IWGRP | S_IWOTH)); }

/* A program with thousands of kernels comes here for each: usually the folder is there. */
bool ff_kept_folder(const char *kind, char *path, size_t room) {
  const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
  int length = -1;
  if (cache && cache[0] == '/') length = snprintf(path, room, "%s", cache);
  else if (home && home[0] == '/') length = snprintf(path, room, "%s/.cache", home);
  if (length < 0 || (size_t)length + strlen("/farfault/") + strlen(kind) + 1 > room) return false;
  const char *const below[] = {"/farfault", "/", kind};
  struct stat s;
  sprintf(path + length, "/farfault/%s", kind);
  bool there = !stat(path, &s);
  for (int n = 0; n < 4 && !there; n++) {
    path[length] = '\0';
    for (int part = 0; part < n; part++) strcat(path, below[part]);
    if (mkdir(path, 0700) && errno != EEXIST) return false;
  }
  return (there || !stat(path, &s)) && S_ISDIR(s.st_mode) && ff_kept_is_ours(&s);
}

/* By the time of its last change, which is exact enough if it is not older than that. */
#define USED_SECONDS 600

static void note_use(int fd, const struct stat *s) {
  time_t now = time(NULL);
  if (s->st_mtime <= now && now - s->st_mtime < USED_SECONDS) return;
  futimens(fd, (struct timespec[2]){{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}});
}

unsigned char *ff_kept_read(const char *path, uint32_t most,
                            bool (*is_whole)(const void *context, const unsigned char *data, uint32_t bytes),
                            const void *context, uint32_t *bytes) {
  struct stat s;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); /* not to wait for a pipe */
  if (fd < 0) return NULL;
  unsigned char *data = NULL;
  if (!fstat(fd, &s) && S_ISREG(s.st_mode) && ff_kept_is_ours(&s) && s.st_size > 0 && s.st_size <= most) {
    *bytes = (uint32_t)s.st_size;
    data = ff_alloc(*bytes);
    uint32_t have = 0;
    for (ssize_t got; have < *bytes && (got = read(fd, data + have, *bytes - have)) > 0;) have += (uint32_t)got;
    if (have != *bytes || !is_whole(context, data, *bytes)) {
      free(data);
      data = NULL;
    } else {
      note_use(fd, &s);
    }
  }
  close(fd);
  return data;
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

void ff_kept_trim(const char *folder, uint32_t most_files, uint64_t most_bytes) {
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
  if (all.count > most_files || total > most_bytes) {
    qsort(all.items, all.count, sizeof *all.items, by_use);
    for (size_t n = 0; n < all.count && (all.count - n > most_files / 2 || total > most_bytes / 2); n++) {
      unlinkat(dirfd(d), all.items[n].name, 0);
      total -= all.items[n].bytes;
    }
  }
  free(all.items);
  closedir(d);
}

/* For this user alone, whatever the umask is. */
bool ff_kept_write(const char *path, const void *bytes_of, uint32_t bytes) {
  const unsigned char *data = bytes_of;
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
