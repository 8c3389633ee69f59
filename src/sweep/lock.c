/* SPDX-License-Identifier: Apache-2.0 */
/* One sweep writes a database at a time: FILE-lock next to it is locked as long as the process lives, and gone when it
 * ends well. Not the database itself: SQLite has locks of its own there, which end when any descriptor of the file is
 * closed. */
#include "sweep/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The locked file may have been removed by its last owner between our open and our lock. */
static bool is_there(int fd, const char *path) {
  struct stat held, there;
  return fstat(fd, &held) == 0 && stat(path, &there) == 0 && held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

static ff_status fail_busy(int fd, const char *database, ff_error *error) {
  char owner[128] = "";
  ssize_t length = read(fd, owner, sizeof owner - 1);
  owner[length > 0 ? length : 0] = '\0';
  for (char *c = owner; *c; c++)
    if ((unsigned char)*c < 32 || (unsigned char)*c > 126) *c = '\0';
  return ff_fail(
      error, FF_INVALID,
      "%s: another sweep is writing to it (%s): wait for its end, or give this one a file of its own with -o", database,
      owner[0] ? owner : "of an unknown process");
}

ff_status sweep_lock_take(const char *database, sweep_lock *lock, ff_error *error) {
  ff_text path = {0};
  ff_text_add(&path, "%s-lock", database);
  *lock = (sweep_lock){.path = path.chars, .fd = -1};
  for (;;) {
    lock->fd = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock->fd < 0) {
      ff_status status = ff_fail(error, FF_IO, "%s: cannot create: %s", lock->path, strerror(errno));
      sweep_lock_release(lock);
      return status;
    }
    if (flock(lock->fd, LOCK_EX | LOCK_NB)) {
      ff_status status = fail_busy(lock->fd, database, error);
      close(lock->fd);
      lock->fd = -1;
      sweep_lock_release(lock);
      return status;
    }
    if (is_there(lock->fd, lock->path)) break;
    close(lock->fd);
  }
  char owner[96], host[64] = "";
  gethostname(host, sizeof host - 1);
  int length = snprintf(owner, sizeof owner, "process %ld on %s", (long)getpid(), host);
  /* only for the other's message */
  if (ftruncate(lock->fd, 0) == 0 && write(lock->fd, owner, (size_t)length) < 0) errno = 0;
  return FF_OK;
}

void sweep_lock_release(sweep_lock *lock) {
  if (lock->fd >= 0) {
    unlink(lock->path);
    close(lock->fd);
  }
  free(lock->path);
  *lock = (sweep_lock){.fd = -1};
}
