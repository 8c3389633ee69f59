/* SPDX-License-Identifier: Apache-2.0 */
/* The lock file: flock for the one daemon, fcntl's byte locks for the holders of shares (byte s: SM s; byte BROKER_SMS
 * + c: colour c). The two kinds do not see each other.
 *
 * A process loses all its byte locks of a file when it closes any descriptor of it. So each process opens it once, for
 * all its shares, and closes it when the last of them is given back. A forked child has neither the locks nor, by its
 * closing, any effect on them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/memory.h"
#include "broker/broker_place.h"

/* The number is settled here, before there are locks: moving the file later would close it. */
ff_status lock_open(const broker_place *place, const char *name, int *fd, ff_error *error) {
  *fd = ff_descriptor_apart(openat(place->folder, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  return *fd < 0 ? ff_fail(error, FF_IO, "%s/%s: cannot be opened: %s", place->path, name, strerror(errno)) : FF_OK;
}

bool lock_is_there(const broker_place *place, const char *name, int fd) {
  struct stat held, there;
  return fstat(fd, &held) == 0 && fstatat(place->folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

ff_status lock_own(const broker_place *place, const char *name, int *fd, ff_error *error) {
  for (;;) { /* until the locked file is the one of that name: its last owner may have removed it in between */
    ff_status status = lock_open(place, name, fd, error);
    if (status) return status;
    if (flock(*fd, LOCK_EX | LOCK_NB)) {
      status = ff_fail(error, errno == EWOULDBLOCK ? FF_LIMIT : FF_IO, "%s/%s: cannot be locked: %s", place->path, name,
                       strerror(errno));
      close(*fd);
      return status;
    }
    if (lock_is_there(place, name, *fd)) return FF_OK;
    close(*fd);
  }
}

static int32_t who_locks(int fd, off_t byte, off_t count) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = count};
  if (fcntl(fd, F_GETLK, &lock)) return -1;
  return lock.l_type == F_UNLCK ? 0 : lock.l_pid > 0 ? (int32_t)lock.l_pid : -1;
}

void lock_look(int fd, uint32_t sms, int32_t *sm_pids, uint32_t colours, int32_t *colour_pids) {
  bool any = who_locks(fd, 0, 0) != 0;
  for (uint32_t i = 0; i < sms; i++) sm_pids[i] = any ? who_locks(fd, i, 1) : 0;
  for (uint32_t i = 0; i < colours; i++) colour_pids[i] = any ? who_locks(fd, BROKER_SMS + (off_t)i, 1) : 0;
}

/* ---- the locks of this process ---- */

struct broker_lock { /* one for each lock file in which it has any */
  broker_lock *next;
  dev_t device;
  ino_t inode;
  pid_t process; /* that opened it: a forked child has the list, and not the locks */
  int fd;
  uint32_t shares;
};

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static broker_lock *open_locks;

static bool set_lock(int fd, short type, off_t byte, off_t count) {
  struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = count};
  return fcntl(fd, F_SETLK, &lock) == 0;
}

static bool set_locks(int fd, short type, const broker_grant *grant) {
  bool good = set_lock(fd, type, grant->sm_first, grant->sm_count);
  for (uint32_t i = 0; i < BROKER_COLOURS; i++)
    if (grant->colours >> i & 1) good &= set_lock(fd, type, BROKER_SMS + (off_t)i, 1);
  return good;
}

/* The entry of the file that is there under this name now; NULL: none of this process. */
static broker_lock *find_open(const broker_place *place, const char *name) {
  struct stat there;
  if (fstatat(place->folder, name, &there, AT_SYMLINK_NOFOLLOW)) return NULL;
  for (broker_lock *each = open_locks; each; each = each->next)
    if (each->device == there.st_dev && each->inode == there.st_ino && each->process == getpid()) return each;
  return NULL;
}

static ff_status open_for_process(const broker_place *place, const char *name, broker_lock **out, ff_error *error) {
  struct stat st;
  int fd;
  if ((*out = find_open(place, name))) return FF_OK;
  ff_status status = lock_open(place, name, &fd, error);
  if (status) return status;
  if (fstat(fd, &st)) {
    close(fd);
    return ff_fail(error, FF_IO, "%s/%s: %s", place->path, name, strerror(errno));
  }
  *out = ff_alloc(sizeof **out);
  **out = (broker_lock){.next = open_locks, .device = st.st_dev, .inode = st.st_ino, .process = getpid(), .fd = fd};
  open_locks = *out;
  return FF_OK;
}

bool lock_look_there(const broker_place *place, const char *name, int32_t sm_pids[BROKER_SMS],
                     int32_t colour_pids[BROKER_COLOURS]) {
  pthread_mutex_lock(&guard);
  broker_lock *own = find_open(place, name); /* not to be opened once more: closing that would undo our locks */
  int fd = own ? own->fd : ff_descriptor_apart(openat(place->folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  bool any = fd >= 0 && who_locks(fd, 0, 0) != 0;
  if (any) lock_look(fd, BROKER_SMS, sm_pids, BROKER_COLOURS, colour_pids);
  if (!own && fd >= 0) close(fd);
  pthread_mutex_unlock(&guard);
  return any;
}

static void close_unused(broker_lock *unused) {
  if (unused->shares) return;
  for (broker_lock **each = &open_locks; *each; each = &(*each)->next)
    if (*each == unused) {
      *each = unused->next;
      break;
    }
  close(unused->fd);
  free(unused);
}

ff_status lock_take(const broker_place *place, const char *name, const broker_grant *grant, broker_lock **lock,
                    ff_error *error) {
  pthread_mutex_lock(&guard);
  ff_status status = open_for_process(place, name, lock, error);
  if (!status) {
    (*lock)->shares++;
    if (!set_locks((*lock)->fd, F_WRLCK, grant) || !lock_is_there(place, name, (*lock)->fd)) {
      set_locks((*lock)->fd, F_UNLCK, grant);
      status = ff_fail(error, FF_LIMIT, "%s/%s: another process has locked a part of the share that was handed out",
                       place->path, name);
      (*lock)->shares--;
      close_unused(*lock);
    }
  }
  pthread_mutex_unlock(&guard);
  return status;
}

void lock_drop(broker_lock *lock, const broker_grant *grant) {
  /* a forked child: closing its descriptor would undo what it may have locked itself */
  if (lock->process != getpid()) return;
  pthread_mutex_lock(&guard);
  set_locks(lock->fd, F_UNLCK, grant);
  lock->shares--;
  close_unused(lock);
  pthread_mutex_unlock(&guard);
}
