/* SPDX-License-Identifier: Apache-2.0 */
/* One loop of poll(2): the listening socket, the signals, and for each client its socket and its process (a pidfd: a
 * forked child may keep the socket open when the process that holds the share is long dead).
 *
 * A client that comes is let in, or refused, a round later: by then a poll has told of all that had gone before, and
 * they are closed. One descriptor is kept spare, for telling the clients for which there are no descriptors. */
#define _GNU_SOURCE
#include "broker/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "broker/state.h"

typedef struct connection {
  uint32_t id;
  int fd, pid, process; /* process: pidfd, -1: its end is not told */
  bool let_in;          /* a client; else it is not yet decided, or it is refused (ending) */
  int64_t heard_ms;     /* since when the patience runs: it came, or took some of `out` */
  bool ending;          /* to be closed when `out` has gone */
  bool gone;            /* to be closed now */
  size_t in_size;
  uint8_t in[WIRE_FRAME];
  ff_text out;
  size_t out_sent;
} connection;

typedef struct server {
  const broker_place *place;
  char socket_name[PLACE_NAME], lock_name[PLACE_NAME];
  int listener, lock, signals;
  int spare;  /* a descriptor to give up for telling one more that there are none left; -1: even it is gone */
  bool waits; /* a client has waited to be accepted since before the last poll, for want of descriptors */
  bool full;  /* no descriptors left, not even the spare one: no client is heard until one has gone */
  uint32_t last_id;
  FF_VEC(connection *) connections;
  broker_state state;
} server;

enum { SERVER_CONNECTIONS = SERVER_CLIENTS + 16 };   /* the last ones are told that there are too many */
enum { SERVER_FILES = 2 * SERVER_CONNECTIONS + 32 }; /* a socket and a process each */
enum { POLL_LISTENER, POLL_SIGNALS, POLL_CLIENTS };

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- what the state machine asks for ---- */

static void send_some(connection *c) {
  while (c->out_sent < c->out.length) {
    ssize_t sent = send(c->fd, c->out.chars + c->out_sent, c->out.length - c->out_sent, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent <= 0) {
      c->gone = true;
      return;
    }
    c->out_sent += (size_t)sent;
    c->heard_ms = now_ms();
  }
  c->out.length = c->out_sent = 0;
  if (c->ending) c->gone = true;
}

static void send_message(void *context, uint32_t id, const wire_message *message) {
  server *s = context;
  uint8_t frame[WIRE_FRAME];
  for (size_t i = 0; i < s->connections.count; i++) {
    connection *c = s->connections.items[i];
    if (c->id != id || c->gone) continue;
    size_t size = wire_write(message, frame);
    if (c->out.length + size > SERVER_OUT) c->gone = true;
    else ff_text_add_bytes(&c->out, frame, size);
    c->ending |= message->kind == WIRE_REFUSED || message->kind == WIRE_END;
  }
}

static void look_at_locks(void *context, uint32_t sms, int32_t *sm_pids, uint32_t colours, int32_t *colour_pids) {
  lock_look(((server *)context)->lock, sms, sm_pids, colours, colour_pids);
}

/* ---- clients ---- */

static void read_program(int32_t pid, char *program, size_t room) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
  int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  ssize_t length = fd >= 0 ? read(fd, program, room - 1) : 0;
  if (fd >= 0) close(fd);
  program[length > 0 ? length : 0] = '\0';
  program[strcspn(program, "\n")] = '\0';
}

static const char no_files[] =
    "the broker has no file descriptors left (ulimit -n): processes that hold or want shares take two each";

/* 0, or why not; a process that cannot be watched on this system is not. */
static int watch_process(connection *c) {
  if (c->pid <= 0 || c->process >= 0) return 0;
  c->process = (int)syscall(SYS_pidfd_open, c->pid, 0);
  return c->process < 0 && (errno == ESRCH || errno == EMFILE || errno == ENFILE || errno == ENOMEM) ? errno : 0;
}

/* One that is not of this user is turned away without a word. False: there is no descriptor left for its process;
 * decide() tries again. */
static bool take_connection(server *s, int fd) {
  int32_t pid;
  if (place_peer(fd, &pid, NULL)) {
    close(fd);
    return true;
  }
  connection *c = ff_alloc(sizeof *c);
  *c = (connection){
      .id = ++s->last_id ? s->last_id : ++s->last_id, .fd = fd, .process = -1, .pid = pid, .heard_ms = now_ms()};
  FF_PUSH(&s->connections, c);
  int cause = watch_process(c);
  c->gone = cause == ESRCH;
  return !cause || c->gone;
}

static void refuse(server *s, connection *c, const char *why) {
  wire_message message = {.kind = WIRE_REFUSED, .status = FF_LIMIT};
  snprintf(message.text, sizeof message.text, "%s", why);
  send_message(s, c->id, &message);
}

static void decide(server *s, connection *c, size_t clients) {
  char text[64];
  if (clients >= SERVER_CLIENTS) {
    snprintf(text, sizeof text, "%d processes hold or want shares already", SERVER_CLIENTS);
    refuse(s, c, text);
    return;
  }
  read_program(c->pid, text, sizeof text);
  int cause = watch_process(c);
  if (cause == ESRCH) c->gone = true;
  else if (cause) refuse(s, c, no_files);
  else {
    c->let_in = true;
    state_join(&s->state, c->id, c->pid, text);
  }
}

static bool is_undecided(const connection *c) { return !c->let_in && !c->ending && !c->gone; }

static void let_in(server *s) {
  size_t clients = 0;
  for (size_t i = 0; i < s->connections.count; i++) clients += s->connections.items[i]->let_in;
  for (size_t i = 0; i < s->connections.count; i++) {
    connection *c = s->connections.items[i];
    if (!is_undecided(c)) continue;
    decide(s, c, clients);
    clients += c->let_in;
  }
}

/* The spare descriptor is given up for one more connection, which is told that there are no others; what does not fit
 * into its socket is not said. */
static void accept_spare(server *s) {
  uint8_t frame[WIRE_FRAME];
  wire_message message = {.kind = WIRE_REFUSED, .status = FF_LIMIT};
  snprintf(message.text, sizeof message.text, "%s", no_files);
  close(s->spare);
  int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0) {
    ssize_t sent = send(fd, frame, wire_write(&message, frame), MSG_NOSIGNAL);
    (void)sent;
    close(fd);
  }
  s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* accept4 has failed for want of descriptors, which it does whether there is a client or not. */
static void accept_none(server *s) {
  struct pollfd one = {.fd = s->listener, .events = POLLIN};
  if (s->waits && s->spare >= 0) accept_spare(s);
  s->full = s->spare < 0;
  s->waits = poll(&one, 1, 0) > 0;
}

static void accept_all(server *s) {
  while (s->connections.count < SERVER_CONNECTIONS) {
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), cause = errno;
    if (fd < 0 && (cause == ECONNABORTED || cause == EINTR)) continue;
    if (fd < 0 && cause != EAGAIN && cause != EWOULDBLOCK) {
      accept_none(s);
      return;
    }
    s->waits = false;
    if (fd < 0 || !take_connection(s, fd)) return;
  }
}

static void refuse_foreign(server *s, connection *c, uint32_t version) {
  wire_message message = {.kind = WIRE_REFUSED, .status = FF_UNSUPPORTED};
  snprintf(message.text, sizeof message.text, "version %u is asked for, this broker speaks %d", version, WIRE_VERSION);
  send_message(s, c->id, &message);
}

/* Every whole message in the buffer goes to the state machine. */
static void take_messages(server *s, connection *c) {
  wire_message message;
  size_t used;
  uint32_t version;
  while (!c->ending && !c->gone) {
    wire_result result = wire_read(c->in, c->in_size, &message, &used, &version);
    if (result == WIRE_MORE) return;
    if (result == WIRE_BAD) c->gone = true;
    if (result == WIRE_FOREIGN) refuse_foreign(s, c, version);
    if (result != WIRE_GOOD) return;
    memmove(c->in, c->in + used, c->in_size - used);
    c->in_size -= used;
    state_message(&s->state, c->id, &message, now_ms());
  }
}

static void receive(server *s, connection *c) {
  for (int round = 0; round < 4 && !c->gone; round++) { /* no one keeps the others waiting */
    if (c->ending) c->in_size = 0;                      /* what it still says is not listened to */
    ssize_t got = recv(c->fd, c->in + c->in_size, sizeof c->in - c->in_size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) c->gone = true;
    else c->in_size += (size_t)got;
    if (got > 0) take_messages(s, c);
  }
}

static void remove_gone(server *s) {
  for (size_t i = 0; i < s->connections.count;) {
    connection *c = s->connections.items[i];
    if (!c->gone) {
      i++;
      continue;
    }
    s->connections.items[i] = s->connections.items[--s->connections.count];
    close(c->fd);
    if (c->process >= 0) close(c->process);
    state_leave(&s->state, c->id, now_ms()); /* others may be served: `out` of theirs grows */
    free(c->out.chars);
    free(c);
    if (s->spare < 0) s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    s->full = s->spare < 0;
    i = 0;
  }
}

/* Has it kept us waiting for too long? Who waits for a share or holds one may be silent. */
static int64_t patience_ends(const server *s, const connection *c) {
  bool owes = c->out_sent < c->out.length || c->ending || !state_settled(&s->state, c->id);
  return owes ? c->heard_ms + SERVER_PATIENCE_MS : -1;
}

/* ---- the loop ---- */

static int wait_time(const server *s, int64_t idle_since, int64_t grace_ms) {
  int64_t now = now_ms(), due = state_due(&s->state, now);
  if (!s->connections.count) due = idle_since + grace_ms;
  for (size_t i = 0; i < s->connections.count; i++) {
    int64_t end = patience_ends(s, s->connections.items[i]);
    if (end >= 0 && (due < 0 || end < due)) due = end;
    if (is_undecided(s->connections.items[i])) return 0;
  }
  if (due < 0) return -1;
  return due <= now ? 0 : due - now > 60000 ? 60000 : (int)(due - now);
}

static size_t fill_polls(const server *s, struct pollfd *polls) {
  polls[POLL_LISTENER] =
      (struct pollfd){.fd = s->full || s->connections.count >= SERVER_CONNECTIONS ? -1 : s->listener, .events = POLLIN};
  polls[POLL_SIGNALS] = (struct pollfd){.fd = s->signals, .events = POLLIN};
  for (size_t i = 0; i < s->connections.count; i++) {
    const connection *c = s->connections.items[i];
    polls[POLL_CLIENTS + 2 * i] =
        (struct pollfd){.fd = c->fd, .events = (short)(POLLIN | (c->out_sent < c->out.length ? POLLOUT : 0))};
    polls[POLL_CLIENTS + 2 * i + 1] = (struct pollfd){.fd = c->process, .events = POLLIN};
  }
  return POLL_CLIENTS + 2 * s->connections.count;
}

static void serve_clients(server *s, const struct pollfd *polls, size_t count) {
  for (size_t i = 0; i < count; i++) {
    connection *c = s->connections.items[i];
    /* whatever it said last */
    if (polls[POLL_CLIENTS + 2 * i + 1].revents || (polls[POLL_CLIENTS + 2 * i].revents & (POLLHUP | POLLERR)))
      c->gone = true;
    if (polls[POLL_CLIENTS + 2 * i].revents && !c->gone && !is_undecided(c)) receive(s, c);
  }
  state_time(&s->state, now_ms());
  for (size_t i = 0; i < s->connections.count; i++) {
    connection *c = s->connections.items[i];
    int64_t end = patience_ends(s, c);
    if (end >= 0 && end <= now_ms()) c->gone = true;
  }
}

/* remove_gone serves other clients, to which something is then to be sent, which may find them gone: until nothing
 * changes. */
static void send_and_remove(server *s) {
  bool again = true;
  while (again) {
    again = false;
    for (size_t i = 0; i < s->connections.count; i++)
      if (!s->connections.items[i]->gone) send_some(s->connections.items[i]);
    for (size_t i = 0; i < s->connections.count; i++) again |= s->connections.items[i]->gone;
    remove_gone(s);
  }
}

static void loop(server *s, int64_t grace_ms) {
  struct pollfd polls[POLL_CLIENTS + 2 * SERVER_CONNECTIONS];
  int64_t idle_since = now_ms();
  for (;;) {
    size_t clients = s->connections.count, count = fill_polls(s, polls);
    int ready = poll(polls, count, wait_time(s, idle_since, grace_ms));
    if (ready < 0 && errno != EINTR) return;
    if (ready > 0 && polls[POLL_SIGNALS].revents) return;
    if (ready < 0) continue;
    serve_clients(s, polls, clients);
    send_and_remove(s);
    let_in(s);
    if (polls[POLL_LISTENER].revents) accept_all(s);
    send_and_remove(s);
    if (s->connections.count || clients) idle_since = now_ms();
    else if (now_ms() >= idle_since + grace_ms) return;
  }
}

/* ---- begin and end ---- */

/* SIGTERM and its like come by a descriptor, and nothing by a handler. */
static ff_status take_signals(server *s, ff_error *error) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  sigprocmask(SIG_BLOCK, &set, NULL);
  s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  return s->signals < 0 ? ff_fail(error, FF_IO, "signalfd: %s", strerror(errno)) : FF_OK;
}

/* The starter's limit may be made for less (a soft limit that ulimit -n lowered, or a system's low default). */
static void take_files(server *s) {
  struct rlimit files;
  if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < SERVER_FILES) {
    files.rlim_cur = files.rlim_max < SERVER_FILES ? files.rlim_max : SERVER_FILES;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* The lock is ours from here on, so a socket of that name is one that no daemon listens at any more. */
static ff_status begin(server *s, ff_error *error) {
  ff_status status = lock_own(s->place, s->lock_name, &s->lock, error);
  if (!status) status = take_signals(s, error);
  if (!status && unlinkat(s->place->folder, s->socket_name, 0) && errno != ENOENT)
    status = ff_fail(error, FF_IO, "%s/%s: cannot be removed: %s", s->place->path, s->socket_name, strerror(errno));
  if (!status) status = place_listen(s->place, s->socket_name, &s->listener, error);
  if (!status) take_files(s);
  return status;
}

/* The lock file goes only if no process has locked a share in it or could be about to; the folder's other files are
 * other daemons'. */
static void end(server *s) {
  int32_t held[BROKER_SMS], held_colours[BROKER_COLOURS];
  bool used = s->connections.count > 0;
  if (s->listener >= 0) {
    unlinkat(s->place->folder, s->socket_name, 0);
    close(s->listener);
    lock_look(s->lock, BROKER_SMS, held, BROKER_COLOURS, held_colours);
    for (uint32_t i = 0; i < BROKER_SMS; i++) used |= held[i] != 0;
    for (uint32_t i = 0; i < BROKER_COLOURS; i++) used |= held_colours[i] != 0;
    if (!used) unlinkat(s->place->folder, s->lock_name, 0);
  }
  for (size_t i = 0; i < s->connections.count; i++) s->connections.items[i]->gone = true;
  remove_gone(s);
  free(s->connections.items);
  state_free(&s->state);
  if (s->spare >= 0) close(s->spare);
  if (s->signals >= 0) close(s->signals);
  if (s->lock >= 0) close(s->lock);
}

ff_status server_run(const broker_place *place, const char *gpu, const server_options *options, ff_error *error) {
  server s = {.place = place, .listener = -1, .lock = -1, .signals = -1, .spare = -1};
  place_file_name(gpu, ".sock", s.socket_name);
  place_file_name(gpu, ".lock", s.lock_name);
  state_start(&s.state, gpu, (state_world){.context = &s, .send = send_message, .locked = look_at_locks});
  ff_status status = begin(&s, error);
  if (!status && options->ready) options->ready(options->context);
  if (!status) loop(&s, options->grace_ms);
  end(&s);
  return status;
}
