/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of open files (descriptor.h). */
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int ff_descriptor_apart(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), reason = errno;
  close(fd);
  errno = reason;
  return moved;
}
