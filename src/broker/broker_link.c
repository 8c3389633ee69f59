/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that do not block, and poll with what is left of the time. */
#define _GNU_SOURCE
#include "broker/broker_link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t link_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

ff_status link_open(const broker_place *place, const char *socket_name, broker_link *link, ff_error *error) {
  *link = LINK_CLOSED;
  ff_status status = place_connect(place, socket_name, &link->fd, error);
  if (status) {
    link->fd = -1;
    return status;
  }
  status = place_peer(link->fd, &link->pid, error);
  if (status) link_close(link);
  return status;
}

static ff_status wait_until(const broker_link *link, short events, int64_t until_ms, ff_error *error) {
  for (;;) {
    int64_t left = until_ms < 0 ? 3600000 : until_ms - link_now_ms();
    struct pollfd one = {.fd = link->fd, .events = events};
    int ready = poll(&one, 1, left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left);
    if (ready > 0) return FF_OK;
    if (ready < 0 && errno != EINTR) return ff_fail(error, FF_IO, "poll: %s", strerror(errno));
    if (ready == 0 && until_ms >= 0 && link_now_ms() >= until_ms)
      return ff_fail(error, FF_IO,
                     "the broker (process %d) does not answer: is it stopped? Killing it harms nobody's share",
                     link->pid);
  }
}

static ff_status fail_gone(const broker_link *link, ff_error *error) {
  return ff_fail(error, FF_NOT_FOUND, "the broker (process %d) has ended", link->pid);
}

ff_status link_send(broker_link *link, const wire_message *message, int64_t until_ms, ff_error *error) {
  uint8_t frame[WIRE_FRAME];
  size_t size = wire_write(message, frame), sent = 0;
  while (sent < size) {
    ssize_t got = send(link->fd, frame + sent, size - sent, MSG_NOSIGNAL);
    if (got > 0) sent += (size_t)got;
    else if (got < 0 && errno == EINTR) continue;
    else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      ff_status status = wait_until(link, POLLOUT, until_ms, error);
      if (status) return status;
    } else return fail_gone(link, error);
  }
  return FF_OK;
}

/* FF_OK with *whole if there is one in what was received. */
static ff_status take_message(broker_link *link, wire_message *message, bool *whole, ff_error *error) {
  size_t used;
  uint32_t version;
  wire_result result = wire_read(link->bytes, link->size, message, &used, &version);
  *whole = result == WIRE_GOOD;
  if (result == WIRE_BAD) return ff_fail(error, FF_IO, "the broker (process %d) sends what is no message", link->pid);
  if (result == WIRE_FOREIGN)
    return ff_fail(
        error, FF_UNSUPPORTED,
        "the broker (process %d) is of another version of farfault: it speaks version %u, this program %d; it ends when the programs that use "
        "it have ended",
        link->pid, version, WIRE_VERSION);
  if (!*whole) return FF_OK;
  memmove(link->bytes, link->bytes + used, link->size - used);
  link->size -= used;
  return FF_OK;
}

ff_status link_receive(broker_link *link, int64_t until_ms, wire_message *message, ff_error *error) {
  for (;;) {
    bool whole;
    ff_status status = take_message(link, message, &whole, error);
    if (status || whole) return status;
    ssize_t got = recv(link->fd, link->bytes + link->size, sizeof link->bytes - link->size, 0);
    if (got > 0) link->size += (size_t)got;
    else if (got < 0 && errno == EINTR) continue;
    else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      status = wait_until(link, POLLIN, until_ms, error);
      if (status) return status;
    } else return fail_gone(link, error);
  }
}

/* Nothing is sent to a client that holds a share: whatever can be read is the end. */
bool link_alive(const broker_link *link) {
  struct pollfd one = {.fd = link->fd, .events = POLLIN};
  int ready;
  do ready = poll(&one, 1, 0);
  while (ready < 0 && errno == EINTR);
  return ready == 0;
}

void link_close(broker_link *link) {
  if (link->fd >= 0) close(link->fd);
  *link = LINK_CLOSED;
}
