/* SPDX-License-Identifier: Apache-2.0 */
/* A policy plug-in (farfault/policy.h) that asks another process: python.so, by which policies are written in Python.
 *
 *     a call of policy.h -> CALL, the view's numbers, arguments --> the process that has the policy
 *                           ANSWER                              <-- ASK_..., any number of times
 *                                                               <-- DONE, what is proposed -> view->propose
 *
 * The process listens on an abstract Unix socket whose name FARFAULT_POLICIES has; each simulation has a connection of
 * its own. A message is two 32-bit words, its kind and a count, and so many 64-bit words, all little-endian.
 * python/farfault/_policies.py is the other side.
 *
 * Invariant: between calls no message is on its way. When the connection is lost - the process has ended, or its policy
 * has failed, which it says itself - nothing more is asked or proposed, and the simulation goes on without. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "farfault/policy.h"

enum { VERSION = 1, WORDS_MAX = 1 << 20, VIEW_WORDS = 10, NAME_MAX_BYTES = 200 };

typedef enum message_kind { /* the numbers are _policies.py's */
                            HELLO = 1,
                            READY,
                            REFUSED,
                            DONE,
                            ANSWER,
                            FAULTED,
                            IDLE,
                            EVICT,
                            CLEAN,
                            ARRIVED,
                            LEFT,
                            SETTLED,
                            LAUNCHING,
                            REACHED,
                            HOST_FAULTED,
                            ASK_BLOCK,
                            ASK_ALLOCATION,
                            ASK_NEXT_ALLOCATION,
                            ASK_LAST_USE,
                            ASK_BLANK,
                            ASK_RANDOM
} message_kind;

typedef struct message { /* as it is sent */
  uint32_t kind, count;
} message;

typedef struct bridge {
  int socket;      /* -1: the connection is lost */
  uint64_t wanted; /* bit `kind`: the policy has that call */
  uint64_t *words; /* of the message that came last, or is made */
  size_t room;
} bridge;

static void lose(bridge *b) {
  if (b->socket >= 0) close(b->socket);
  b->socket = -1;
}

static uint64_t *make_room(bridge *b, size_t words) {
  if (words <= b->room) return b->words;
  free(b->words);
  b->room = words < 64 ? 64 : words;
  b->words = malloc(b->room * sizeof *b->words);
  if (b->words) return b->words;
  fprintf(stderr, "farfault: out of memory in a policy\n");
  exit(70);
}

/* ---- messages ---- */

static bool send_all(bridge *b, const void *bytes, size_t count) {
  for (const char *at = bytes; count && b->socket >= 0;) {
    ssize_t sent = send(b->socket, at, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) lose(b);
    at += sent > 0 ? sent : 0;
    count -= sent > 0 ? (size_t)sent : 0;
  }
  return b->socket >= 0;
}

static bool receive_all(bridge *b, void *bytes, size_t count) {
  for (char *at = bytes; count && b->socket >= 0;) {
    ssize_t got = recv(b->socket, at, count, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) lose(b);
    at += got > 0 ? got : 0;
    count -= got > 0 ? (size_t)got : 0;
  }
  return b->socket >= 0;
}

static bool send_message(bridge *b, message_kind kind, const uint64_t *words, size_t count) {
  const message head = {(uint32_t)kind, (uint32_t)count};
  return send_all(b, &head, sizeof head) && send_all(b, words, count * sizeof *words);
}

/* Its kind, with its words in b->words; 0: the connection is lost. */
static uint32_t receive_message(bridge *b, uint32_t *count) {
  message head;
  if (!receive_all(b, &head, sizeof head)) return 0;
  if (head.count > WORDS_MAX) lose(b);
  else receive_all(b, make_room(b, head.count + 1), head.count * sizeof *b->words);
  *count = head.count;
  return b->socket >= 0 ? head.kind : 0;
}

/* ---- what the policy asks ---- */

static size_t answer_block(const ff_view *view, uint64_t address, uint64_t *words) {
  ff_block block = {0};
  view->block(view, address, &block);
  const ff_pages *sets[] = {&block.mapped, &block.valid, &block.moving, &block.dirty};
  words[0] = block.address;
  for (size_t i = 0; i < 4; i++) memcpy(words + 1 + 8 * i, sets[i]->word, sizeof sets[i]->word);
  return 33;
}

static size_t answer_allocation(bool found, const ff_allocation *allocation, uint64_t *words) {
  memset(words, 0, 4 * sizeof *words);
  if (!found) return 4;
  words[0] = 1;
  words[1] = allocation->address;
  words[2] = allocation->bytes;
  words[3] = allocation->number;
  return 4;
}

/* Into words; how many, 0: there is no such question. */
static size_t answer(ff_view *view, uint32_t kind, const uint64_t *asked, uint32_t count, uint64_t words[33]) {
  const uint64_t address = count > 0 ? asked[0] : 0, bytes = count > 1 ? asked[1] : 0;
  ff_allocation allocation;
  switch (kind) {
  case ASK_BLOCK: return answer_block(view, address, words);
  case ASK_ALLOCATION: return answer_allocation(view->allocation(view, address, &allocation), &allocation, words);
  case ASK_NEXT_ALLOCATION:
    return answer_allocation(view->next_allocation(view, address, &allocation), &allocation, words);
  case ASK_LAST_USE: words[0] = view->last_use(view, address, bytes); return 1;
  case ASK_BLANK: words[0] = view->blank_bytes(view, address, bytes); return 1;
  case ASK_RANDOM: words[0] = view->random(view); return 1;
  default: return 0;
  }
}

/* Answers until the policy is done, then proposes what it does. */
static void listen_to(bridge *b, ff_view *view) {
  uint64_t words[33];
  uint32_t count;
  for (uint32_t kind; (kind = receive_message(b, &count)) != 0;) {
    if (kind == DONE) {
      for (uint32_t i = 0; i + 1 < count; i += 2) view->propose(view, b->words[i], b->words[i + 1]);
      return;
    }
    size_t answered = answer(view, kind, b->words, count, words);
    if (!answered) lose(b);
    else send_message(b, ANSWER, words, answered);
  }
}

/* ---- the calls ---- */

static void add_view(const ff_view *view, uint64_t *words) {
  const uint64_t numbers[VIEW_WORDS] = {view->now,           view->unit_bytes,   view->capacity, view->free_bytes(view),
                                        view->running_first, view->running_last, view->queued,   view->group_time,
                                        view->service_bytes, view->by_host};
  memcpy(words, numbers, sizeof numbers);
}

/* Room for a call with so many arguments, which stand behind the view; NULL: the policy has no such call. */
static uint64_t *begin(bridge *b, message_kind kind, const ff_view *view, size_t arguments) {
  if (b->socket < 0 || !(b->wanted >> kind & 1)) return NULL;
  uint64_t *words = make_room(b, VIEW_WORDS + arguments);
  add_view(view, words);
  return words + VIEW_WORDS;
}

static void finish(bridge *b, message_kind kind, ff_view *view, size_t arguments) {
  if (send_message(b, kind, b->words, VIEW_WORDS + arguments)) listen_to(b, view);
}

static void call(void *state, message_kind kind, ff_view *view, size_t count, const uint64_t *arguments) {
  uint64_t *words = begin(state, kind, view, count);
  if (!words) return;
  if (count) memcpy(words, arguments, count * sizeof *words);
  finish(state, kind, view, count);
}

static void faulted(void *state, ff_view *view, const ff_fault *faults, size_t count) {
  uint64_t *words = begin(state, FAULTED, view, 3 * count);
  if (!words) return;
  for (size_t i = 0; i < count; i++) {
    words[3 * i] = faults[i].address;
    words[3 * i + 1] = faults[i].time;
    words[3 * i + 2] = faults[i].sm;
  }
  finish(state, FAULTED, view, 3 * count);
}

static void launching(void *state, ff_view *view, const ff_allocation *declared, size_t count) {
  uint64_t *words = begin(state, LAUNCHING, view, 3 * count);
  if (!words) return;
  for (size_t i = 0; i < count; i++) {
    words[3 * i] = declared[i].address;
    words[3 * i + 1] = declared[i].bytes;
    words[3 * i + 2] = declared[i].number;
  }
  finish(state, LAUNCHING, view, 3 * count);
}

static void host_faulted(void *state, ff_view *view, uint64_t address, const ff_pages *there) {
  uint64_t words[9] = {address};
  memcpy(words + 1, there->word, sizeof there->word);
  call(state, HOST_FAULTED, view, 9, words);
}

static void idle(void *state, ff_view *view) { call(state, IDLE, view, 0, NULL); }
static void clean(void *state, ff_view *view) { call(state, CLEAN, view, 0, NULL); }
static void evict(void *state, ff_view *view, uint64_t bytes) { call(state, EVICT, view, 1, &bytes); }
static void arrived(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  call(state, ARRIVED, view, 2, (const uint64_t[]){address, bytes});
}
static void left(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  call(state, LEFT, view, 2, (const uint64_t[]){address, bytes});
}
static void settled(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  call(state, SETTLED, view, 2, (const uint64_t[]){address, bytes});
}
static void reached(void *state, ff_view *view, uint64_t group, uint64_t bytes) {
  call(state, REACHED, view, 2, (const uint64_t[]){group, bytes});
}

/* ---- making ---- */

/* A socket whose number is none of a program's standard files, even where the program has closed them. */
static int make_socket(void) {
  int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0 || made > STDERR_FILENO) return made;
  int moved = fcntl(made, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), failed = errno;
  close(made);
  errno = failed;
  return moved;
}

/* A socket that is connected with the process; -1: errno says why. */
static int connect_to(const char *name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t length = strlen(name);
  if (length + 1 > sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(address.sun_path + 1, name, length); /* behind a NUL: abstract */
  int made = make_socket();
  if (made < 0) return -1;
  if (!connect(made, (const struct sockaddr *)&address,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)))
    return made;
  int failed = errno;
  close(made);
  errno = failed;
  return -1;
}

/* Says which policy is meant; what is wrong with that, or NULL. */
static const char *greet(bridge *b, const char *name) {
  static _Thread_local char refused[NAME_MAX_BYTES + 8]; /* outlives the call */
  uint64_t words[1 + NAME_MAX_BYTES / 8 + 1] = {VERSION};
  size_t length = strlen(name);
  uint32_t count = 0;
  if (length > NAME_MAX_BYTES) return "the policy's name is too long";
  memcpy(words + 1, name, length);
  send_message(b, HELLO, words, 1 + length / 8 + 1);
  uint32_t kind = receive_message(b, &count);
  if (kind == READY && count == 1) {
    b->wanted = b->words[0];
    return NULL;
  }
  if (kind != REFUSED) return "the process that has the policy could not make it";
  size_t bytes = count * sizeof *b->words < NAME_MAX_BYTES ? count * sizeof *b->words : NAME_MAX_BYTES;
  memcpy(refused, b->words, bytes);
  refused[bytes] = '\0';
  return refused;
}

static void destroy(void *state) {
  bridge *b = state;
  lose(b);
  free(b->words);
  free(b);
}

static void *create(const char *argument, const char **problem) {
  const char *process = getenv("FARFAULT_POLICIES");
  if (!process || !*process || !argument) {
    *problem = "it is for policies in Python, which the Python package farfault gives it (docs/python.md)";
    return NULL;
  }
  bridge *b = calloc(1, sizeof *b);
  if (!b) {
    *problem = "the host is out of memory";
    return NULL;
  }
  b->socket = connect_to(process);
  const char *wrong = b->socket < 0 ? "the process that has the policy is not there" : greet(b, argument);
  if (!wrong) return b;
  *problem = wrong;
  destroy(b);
  return NULL;
}

const ff_policy ff_policy_plugin = {
    .version = FF_POLICY_VERSION,
    .name = "python",
    .summary = "a policy in another process, written in Python",
    .create = create,
    .destroy = destroy,
    .faulted = faulted,
    .idle = idle,
    .evict = evict,
    .clean = clean,
    .arrived = arrived,
    .left = left,
    .shares_state = true,
    .settled = settled,
    .launching = launching,
    .reached = reached,
    .host_faulted = host_faulted,
};
