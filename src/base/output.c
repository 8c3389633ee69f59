/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs: see output.h. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/descriptor.h"
#include "base/memory.h"
#include "base/text.h"

enum { LINKS_MAX = 40, NAMES_TRIED = 100, NAME_KEPT = 200, STREAM_PIECE = 4096, LOOK_MS = 100, COPY_PIECE = 1 << 16 };

struct ff_output {
  char *path;   /* as the user called it: for messages */
  char *target; /* the regular file that it becomes; NULL: written in place */
  char *aside;  /* the name that it has until then; NULL: none */
  ff_output_kind kind;
  int descriptor, failed; /* failed: errno of the first thing that did; 0: none. EBADF: see still_ours */
  struct stat opened;     /* what the descriptor was opened for */
};

bool ff_output_unnamed = true;

static ff_status fail_write(const char *path, int reason, ff_error *error) {
  const char *why = reason == EINTR   ? "interrupted"
                    : reason == EBADF ? "its descriptor was closed, or given to another file, while it was open here"
                                      : strerror(reason);
  return ff_fail(error, FF_IO, "%s: cannot be written: %s", path, why);
}

/* ---- where a path leads ---- */

/* /dev/stdout, /dev/stderr, /dev/fd/N and /proc/self/fd/N are files that are open already: -1 for any other path.
 * Opening their name anew would start at the file's beginning. */
static int open_already(const char *path) {
  if (!strcmp(path, "/dev/stdout")) return STDOUT_FILENO;
  if (!strcmp(path, "/dev/stderr")) return STDERR_FILENO;
  const char *number = !strncmp(path, "/dev/fd/", 8) ? path + 8 : !strncmp(path, "/proc/self/fd/", 14) ? path + 14 : "";
  size_t digits = strspn(number, "0123456789");
  return digits && digits < 9 && !number[digits] ? atoi(number) : -1;
}

/* What the symbolic link says, from where the link is. NULL: it is none. The caller frees. */
static char *follow_once(const char *path) {
  char to[PATH_MAX];
  ssize_t length = readlink(path, to, sizeof to - 1);
  if (length <= 0) return NULL;
  to[length] = '\0';
  const char *slash = strrchr(path, '/');
  ff_text next = {0};
  ff_text_add(&next, "%.*s%s", to[0] != '/' && slash ? (int)(slash - path) + 1 : 0, path, to);
  return next.chars;
}

/* The path behind all symbolic links of its last part, whether a file is there or not; of links in a circle one of
 * them. The caller frees. */
static char *follow(const char *path) {
  char *at = ff_strdup(path);
  for (int i = 0; i < LINKS_MAX && open_already(at) < 0; i++) {
    char *next = follow_once(at);
    if (!next) break;
    free(at);
    at = next;
  }
  return at;
}

char *ff_output_target(const char *path) {
  struct stat there;
  char *target = follow(path);
  if (open_already(target) < 0 && (stat(target, &there) || S_ISREG(there.st_mode))) return target;
  free(target);
  return NULL;
}

static char *folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return ff_strdup(".");
  ff_text folder = {0};
  ff_text_add(&folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
  return folder.chars;
}

/* FF_OK: a file of this name may be made, or replaced. */
static ff_status check_target(const char *path, const char *target, ff_error *error) {
  size_t length = strlen(target);
  if (!length) return ff_fail(error, FF_IO, "the name of a file to write is empty");
  if (target[length - 1] == '/') return ff_fail(error, FF_IO, "%s: cannot write there: it is a folder", path);
  struct stat there;
  if (stat(target, &there) && errno != ENOENT)
    return ff_fail(error, FF_IO, "%s: cannot write there: %s", path, strerror(errno));
  if (faccessat(AT_FDCWD, target, W_OK, AT_EACCESS) && errno != ENOENT)
    return ff_fail(error, FF_IO, "%s: cannot write there: %s", path, strerror(errno));
  char *folder = folder_of(target);
  ff_status status = FF_OK;
  if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS))
    status = ff_fail(error, FF_IO, "%s: cannot write there: %s: %s", path, folder, strerror(errno));
  free(folder);
  return status;
}

/* Likewise, for what is written in place. */
static ff_status check_place(const char *path, ff_error *error) {
  struct stat there;
  char *last = follow(path);
  int open = open_already(last);
  bool good = open >= 0 ? fcntl(open, F_GETFL) >= 0 : !stat(last, &there);
  int reason = errno;
  free(last);
  if (!good) return ff_fail(error, FF_IO, "%s: cannot write there: %s", path, strerror(reason));
  if (open >= 0) return FF_OK;
  if (S_ISDIR(there.st_mode)) return ff_fail(error, FF_IO, "%s: cannot write there: it is a folder", path);
  if (S_ISSOCK(there.st_mode)) return ff_fail(error, FF_IO, "%s: cannot write there: it is a socket", path);
  return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS)
             ? ff_fail(error, FF_IO, "%s: cannot write there: %s", path, strerror(errno))
             : FF_OK;
}

ff_status ff_output_check(const char *path, ff_error *error) {
  char *target = ff_output_target(path);
  ff_status status = target ? check_target(path, target, error) : check_place(path, error);
  free(target);
  return status;
}

/* The target's one absolute name; NULL: it has none. The caller frees. */
static char *one_name(const char *path) {
  char *target = path && *path ? ff_output_target(path) : NULL;
  if (!target) return NULL;
  char *folder = folder_of(target), *real = realpath(folder, NULL);
  const char *slash = strrchr(target, '/');
  ff_text name = {0};
  if (real) ff_text_add(&name, "%s/%s", real, slash ? slash + 1 : target);
  free(folder);
  free(real);
  free(target);
  return name.chars;
}

bool ff_output_same(const char *path, const char *other) {
  char *first = one_name(path), *second = one_name(other);
  bool same = first && second && !strcmp(first, second);
  free(first);
  free(second);
  return same;
}

/* ---- opening ---- */

/* A name next to the target that says what it is; of a long name only the beginning. The caller frees. */
static char *aside_name(const char *target) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    random = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 32;
  }
  const char *slash = strrchr(target, '/'), *name = slash ? slash + 1 : target;
  ff_text aside = {0};
  ff_text_add(&aside, "%.*s%.*s.tmp-%ld-%08x", (int)(name - target), target, NAME_KEPT, name, (long)getpid(),
              (unsigned)random);
  return aside.chars;
}

static int open_unnamed(const char *target) {
  char *folder = folder_of(target), link[64];
  int fd = ff_output_unnamed ? ff_descriptor_apart(open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666)) : -1;
  free(folder);
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (fd >= 0 && access(link, F_OK)) { /* it would never get a name */
    close(fd);
    return -1;
  }
  return fd;
}

static int open_aside(ff_output *o) {
  int fd = open_unnamed(o->target);
  for (int i = 0; fd < 0 && i < NAMES_TRIED; i++) {
    o->aside = aside_name(o->target);
    fd = ff_descriptor_apart(open(o->aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd >= 0) break;
    free(o->aside);
    o->aside = NULL;
    if (errno != EEXIST) break;
  }
  return fd;
}

/* The new file is as the old one was. */
static void keep_mode(int fd, const char *target) {
  struct stat old, new;
  if (stat(target, &old) || fstat(fd, &new)) return;
  bool own = (old.st_uid == new.st_uid &&old.st_gid == new.st_gid) || !fchown(fd, old.st_uid, old.st_gid);
  mode_t mode = old.st_mode & (own ? 07777 : 0777);
  if (mode != (new.st_mode & 07777) && fchmod(fd, mode)) return; /* a file system without modes */
}

/* Signals may be blocked (while a program runs as our child): one that is to end us is then only pending. */
static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static bool is_to_end(void) {
  sigset_t pending;
  if (sigpending(&pending)) return false;
  for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
    if (sigismember(&pending, ending[i])) return true;
  return false;
}

/* While the file has a name aside it would stay behind: this thread ends then when it has its own, or none. */
static void hold_end(sigset_t *old) {
  sigset_t held;
  sigemptyset(&held);
  for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) sigaddset(&held, ending[i]);
  pthread_sigmask(SIG_BLOCK, &held, old);
}

/* A pipe without a reader does not open for writing (ENXIO). */
static int open_place(const char *path) {
  char *last = follow(path);
  int already = open_already(last), fd;
  if (already >= 0) fd = fcntl(already, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  else {
    struct stat there;
    bool pipe = !stat(last, &there) && S_ISFIFO(there.st_mode);
    const int flags = O_WRONLY | O_NOCTTY | O_CLOEXEC | (pipe ? O_NONBLOCK : 0);
    while ((fd = ff_descriptor_apart(open(last, flags))) < 0 && (errno == EINTR || (pipe && errno == ENXIO))) {
      nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
      if (!is_to_end()) continue;
      errno = EINTR;
      break;
    }
    if (fd >= 0 && pipe) fcntl(fd, F_SETFL, O_WRONLY);
  }
  int reason = errno;
  free(last);
  errno = reason;
  return fd;
}

ff_status ff_output_open(const char *path, ff_output_kind kind, ff_output **out, ff_error *error) {
  ff_output *o = ff_alloc(sizeof *o);
  *o = (ff_output){.path = ff_strdup(path), .kind = kind, .descriptor = -1};
  if (kind != FF_OUTPUT_PART) o->target = ff_output_target(path);
  ff_status status = FF_OK;
  if (kind == FF_OUTPUT_PART)
    o->descriptor = ff_descriptor_apart(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  else if (o->target) {
    status = check_target(path, o->target, error);
    if (!status) o->descriptor = open_aside(o);
  } else {
    status = check_place(path, error);
    if (!status) o->descriptor = open_place(path);
  }
  if (!status && (o->descriptor < 0 || fstat(o->descriptor, &o->opened))) status = fail_write(path, errno, error);
  if (status) ff_output_discard(o);
  else *out = o;
  return status;
}

/* ---- writing ---- */

/* A program in whose process we are may have closed the descriptor, as those do that close all, or put another file
 * under its number: that file is the program's, which we neither write nor close. */
static bool is_ours(const ff_output *o) {
  struct stat now;
  return !fstat(o->descriptor, &now) && now.st_dev == o->opened.st_dev && now.st_ino == o->opened.st_ino;
}

/* False: nothing more can be written. */
static bool still_ours(ff_output *o) {
  if (!o->failed && !is_ours(o)) o->failed = EBADF;
  return !o->failed;
}

/* One write without SIGPIPE: that is for programs, and this may be one's process. */
static ssize_t write_quietly(int fd, const void *bytes, size_t count) {
  sigset_t broken, pending, old;
  sigemptyset(&broken);
  sigaddset(&broken, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &broken, &old);
  ssize_t put = write(fd, bytes, count);
  int reason = errno;
  if (put < 0 && reason == EPIPE && !sigismember(&pending, SIGPIPE)) sigtimedwait(&broken, NULL, &(struct timespec){0});
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  errno = reason;
  return put;
}

/* To what takes its time, in pieces that do not block once there is room: a signal that is to end us is seen. */
static ssize_t write_stream(int fd, const void *bytes, size_t count) {
  struct pollfd room = {.fd = fd, .events = POLLOUT};
  while (poll(&room, 1, LOOK_MS) == 0)
    if (is_to_end()) {
      errno = ECANCELED;
      return -1;
    }
  return write_quietly(fd, bytes, count < STREAM_PIECE ? count : STREAM_PIECE);
}

bool ff_output_is_file(const ff_output *o) { return o->target || o->kind == FF_OUTPUT_PART; }

void ff_output_write(ff_output *o, const void *bytes, size_t count) {
  const char *at = bytes;
  while (count && still_ours(o)) {
    ssize_t put = ff_output_is_file(o) ? write(o->descriptor, at, count) : write_stream(o->descriptor, at, count);
    if (put < 0) {
      if (errno != EINTR && errno != EAGAIN) o->failed = errno == ECANCELED ? EINTR : errno;
      continue;
    }
    at += put;
    count -= (size_t)put;
  }
}

void ff_output_change(ff_output *o, uint64_t at, const void *bytes, size_t count) {
  FF_ASSERT(ff_output_is_file(o));
  for (size_t done = 0; done < count && still_ours(o);) {
    ssize_t put = pwrite(o->descriptor, (const char *)bytes + done, count - done, (off_t)(at + done));
    if (put < 0 && errno != EINTR) o->failed = errno;
    if (put > 0) done += (size_t)put;
  }
}

/* ---- the end ---- */

/* Some things cannot be flushed, which says nothing of what is in them. */
static void flush(ff_output *o) {
  if (o->kind == FF_OUTPUT_SCRATCH || o->failed) return;
  if (fsync(o->descriptor) && errno != EINVAL && errno != EROFS && errno != ENOTSUP) o->failed = errno;
}

static void give_name(ff_output *o) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", o->descriptor);
  for (int i = 0; !o->aside && i < NAMES_TRIED; i++) {
    char *name = aside_name(o->target);
    if (!linkat(AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW)) o->aside = name;
    else free(name);
    if (!o->aside && errno != EEXIST) break;
  }
  if (!o->aside) o->failed = errno;
}

static void output_free(ff_output *o) {
  free(o->path);
  free(o->target);
  free(o->aside);
  free(o);
}

void ff_output_discard(ff_output *o) {
  if (!o) return;
  if (o->descriptor >= 0 && is_ours(o)) close(o->descriptor);
  if (o->aside) unlink(o->aside);
  output_free(o);
}

ff_status ff_output_finish(ff_output *o, ff_error *error) {
  if (still_ours(o) && o->target) keep_mode(o->descriptor, o->target);
  flush(o);
  sigset_t old;
  hold_end(&old);
  if (o->target && !o->failed && !o->aside) give_name(o);
  if (is_ours(o) && close(o->descriptor) && !o->failed && errno != EINTR) o->failed = errno;
  if (o->target && !o->failed && rename(o->aside, o->target)) o->failed = errno;
  if (o->failed && o->aside) unlink(o->aside);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  ff_status status = o->failed ? fail_write(o->path, o->failed, error) : FF_OK;
  output_free(o);
  return status;
}

/* ---- whole files ---- */

static ff_status write_whole(const char *path, ff_output_kind kind, const void *data, size_t size, ff_error *error) {
  ff_output *output;
  ff_status status = ff_output_open(path, kind, &output, error);
  if (status) return status;
  ff_output_write(output, data, size);
  return ff_output_finish(output, error);
}

ff_status ff_file_write(const char *path, const void *data, size_t size, ff_error *error) {
  return write_whole(path, FF_OUTPUT_KEPT, data, size, error);
}
ff_status ff_file_write_scratch(const char *path, const void *data, size_t size, ff_error *error) {
  return write_whole(path, FF_OUTPUT_SCRATCH, data, size, error);
}

static ff_status copy_into(int from, const char *name, const char *path, ff_error *error) {
  ff_output *to;
  ff_status status = ff_output_open(path, FF_OUTPUT_KEPT, &to, error);
  if (status) return status;
  char *bytes = ff_alloc(COPY_PIECE);
  ssize_t got;
  while ((got = read(from, bytes, COPY_PIECE)) > 0 || (got < 0 && errno == EINTR))
    if (got > 0) ff_output_write(to, bytes, (size_t)got);
  int reason = errno;
  free(bytes);
  if (got < 0) {
    ff_output_discard(to);
    return ff_fail(error, FF_IO, "%s: cannot read: %s", name, strerror(reason));
  }
  return ff_output_finish(to, error);
}

ff_status ff_output_move(const char *from, const char *path, ff_error *error) {
  int fd = open(from, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ff_fail(error, FF_IO, "%s: cannot open: %s", from, strerror(errno));
  char *target = ff_output_target(path);
  ff_status status = target ? check_target(path, target, error) : FF_OK;
  bool renamed = false;
  if (!status && target) {
    keep_mode(fd, target);
    renamed = !rename(from, target);
    if (!renamed && errno != EXDEV) status = fail_write(path, errno, error);
  }
  if (!status && !renamed && !(status = copy_into(fd, from, path, error))) unlink(from);
  close(fd);
  free(target);
  return status;
}
