/* SPDX-License-Identifier: Apache-2.0 */
/* The folder, its names, and the sockets in it. Sockets are reached as /proc/self/fd/N/NAME: by the folder that was
 * checked, and whatever the length of its path (a socket's address has 108 bytes). */
#define _GNU_SOURCE /* struct ucred, accept4 */
#include "broker/broker_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "broker/wire.h"

enum { WAITING_CONNECTIONS = 128, READABLE = 40 };

static bool is_mine(const char *path) {
  struct stat st;
  return path && path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

/* A runtime folder that is not ours (left in the environment by su) does not count, as the XDG specification has it. */
static void choose_path(char *path, size_t room) {
  char user[64];
  const char *runtime = getenv("XDG_RUNTIME_DIR");
  snprintf(user, sizeof user, "/run/user/%ld", (long)geteuid());
  if (!is_mine(runtime) || strlen(runtime) > room - 16) runtime = is_mine(user) ? user : NULL;
  if (runtime) snprintf(path, room, "%s/farfault", runtime);
  else snprintf(path, room, "/tmp/farfault-%ld", (long)geteuid());
}

ff_status place_check(int folder, broker_place *place, ff_error *error) {
  struct stat st;
  place->folder = folder;
  if (fstat(folder, &st)) return ff_fail(error, FF_IO, "%s: %s", place->path, strerror(errno));
  if (!S_ISDIR(st.st_mode)) return ff_fail(error, FF_INVALID, "%s: it is no folder", place->path);
  if (st.st_uid != geteuid())
    return ff_fail(
        error, FF_INVALID,
        "%s belongs to user %ld, not to %ld: shares are not handed out there (XDG_RUNTIME_DIR names a folder of yours)",
        place->path, (long)st.st_uid, (long)geteuid());
  if (st.st_mode & 077)
    return ff_fail(error, FF_INVALID, "%s: others may look into it (mode %o): chmod 700 it", place->path,
                   (unsigned)st.st_mode & 0777);
  return FF_OK;
}

ff_status place_open(bool make, broker_place *place, ff_error *error) {
  *place = (broker_place){.folder = -1};
  choose_path(place->path, sizeof place->path);
  if (make && mkdir(place->path, 0700) && errno != EEXIST)
    return ff_fail(error, FF_IO, "%s: cannot be made: %s", place->path, strerror(errno));
  int folder = ff_descriptor_apart(open(place->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder < 0 && (errno == ELOOP || errno == ENOTDIR))
    return ff_fail(error, FF_INVALID, "%s: it is no folder", place->path);
  if (folder < 0)
    return ff_fail(error, errno == ENOENT ? FF_NOT_FOUND : FF_IO, "%s: cannot be opened: %s", place->path,
                   strerror(errno));
  ff_status status = place_check(folder, place, error);
  if (status) place_close(place);
  return status;
}

void place_close(broker_place *place) {
  if (place->folder >= 0) close(place->folder);
  place->folder = -1;
}

void place_file_name(const char *gpu, const char *ending, char name[PLACE_NAME]) {
  uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
  char readable[READABLE];
  size_t length = 0;
  for (const char *c = gpu; *c; c++) hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
  for (; gpu[length] && length < READABLE - 1; length++) {
    char c = gpu[length];
    bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    readable[length] = plain ? c : '-';
  }
  readable[length] = '\0';
  snprintf(name, PLACE_NAME, "%s-%016llx%.5s", readable, (unsigned long long)hash, ending);
}

static ff_status make_socket(const broker_place *place, const char *name, struct sockaddr_un *address, int *fd,
                             ff_error *error) {
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  int length = snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/%s", place->folder, name);
  if (length < 0 || (size_t)length >= sizeof address->sun_path)
    return ff_fail(error, FF_INVALID, "%s/%s: too long a name for a socket", place->path, name);
  *fd = ff_descriptor_apart(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return *fd < 0 ? ff_fail(error, FF_IO, "no socket can be made: %s", strerror(errno)) : FF_OK;
}

/* What went wrong with the socket `fd`, which is closed. */
static ff_status fail_socket(int fd, ff_status status, const broker_place *place, const char *name, const char *what,
                             ff_error *error) {
  int cause = errno;
  close(fd);
  return ff_fail(error, status, "%s/%s: %s: %s", place->path, name, what, strerror(cause));
}

ff_status place_listen(const broker_place *place, const char *name, int *fd, ff_error *error) {
  struct sockaddr_un address;
  ff_status status = make_socket(place, name, &address, fd, error);
  if (status) return status;
  if (bind(*fd, (struct sockaddr *)&address, sizeof address))
    return fail_socket(*fd, FF_IO, place, name, "cannot be made", error);
  if (listen(*fd, WAITING_CONNECTIONS)) return fail_socket(*fd, FF_IO, place, name, "cannot listen", error);
  return FF_OK;
}

ff_status place_connect(const broker_place *place, const char *name, int *fd, ff_error *error) {
  struct sockaddr_un address;
  ff_status status = make_socket(place, name, &address, fd, error);
  if (status) return status;
  int result;
  do result = connect(*fd, (struct sockaddr *)&address, sizeof address);
  while (result && errno == EINTR);
  if (!result) return FF_OK;
  status = errno == ENOENT || errno == ECONNREFUSED ? FF_NOT_FOUND : errno == EAGAIN ? FF_LIMIT : FF_IO;
  return fail_socket(*fd, status, place, name, "cannot connect", error);
}

ff_status place_peer(int fd, int32_t *pid, ff_error *error) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
    return ff_fail(error, FF_IO, "who is at the other end of a socket cannot be known: %s", strerror(errno));
  *pid = peer.pid;
  if (peer.uid != geteuid())
    return ff_fail(error, FF_INVALID, "process %ld is of user %ld, not of %ld", (long)peer.pid, (long)peer.uid,
                   (long)geteuid());
  return FF_OK;
}
