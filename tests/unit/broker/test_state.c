/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets what, and when: by hand, and random operations against a model that tries every place. The clock and the
 * clients are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "broker/state.h"
#include "unit/share.h"

enum { SENT = 256, SMS = 20, COLOURS = 8, CLIENTS = 12, ORPHAN_PATIENCE_MS = 250 };

typedef struct sent {
  uint32_t id;
  wire_message message;
} sent;

typedef struct world {
  broker_state state;
  sent sent[SENT];
  uint32_t sent_count;
  int32_t sm_locks[SMS], colour_locks[COLOURS]; /* of processes that the daemon does not know */
} world;

static void keep(void *context, uint32_t id, const wire_message *message) {
  world *w = context;
  assert_true(w->sent_count < SENT);
  w->sent[w->sent_count++] = (sent){id, *message};
}

static void locks(void *context, uint32_t sms, int32_t *sm_pids, uint32_t colours, int32_t *colour_pids) {
  const world *w = context;
  memcpy(sm_pids, w->sm_locks, sms * sizeof *sm_pids);
  memcpy(colour_pids, w->colour_locks, colours * sizeof *colour_pids);
}

static void start(world *w) {
  memset(w, 0, sizeof *w);
  state_start(&w->state, "gpu", (state_world){w, keep, locks});
}

static wire_message want(uint32_t sms, uint32_t colours, uint64_t timeout_ms) {
  return (wire_message){.kind = WIRE_ASK,
                        .gpu = "gpu",
                        .gpu_sms = SMS,
                        .gpu_colours = COLOURS,
                        .sms = sms,
                        .colours = colours,
                        .sm_step = 1,
                        .timeout_ms = timeout_ms};
}

static void ask(world *w, uint32_t id, wire_message message, int64_t now_ms) {
  state_join(&w->state, id, (int32_t)(1000 + id), "program");
  state_message(&w->state, id, &message, now_ms);
}

/* The next message that was sent is this one. */
static const wire_message *next_sent(world *w, uint32_t id, wire_kind kind) {
  static wire_message kept;
  assert_true(w->sent_count > 0);
  assert_int_equal(w->sent[0].id, id);
  assert_int_equal(w->sent[0].message.kind, kind);
  kept = w->sent[0].message;
  memmove(w->sent, w->sent + 1, --w->sent_count * sizeof *w->sent);
  return &kept;
}

static void granted(world *w, uint32_t id, uint32_t first, uint32_t count, uint64_t mask) {
  const wire_message *m = next_sent(w, id, WIRE_GRANTED);
  assert_int_equal(m->sm_first, first);
  assert_int_equal(m->sms, count);
  assert_int_equal(m->mask, mask);
}

static void refused(world *w, uint32_t id, ff_status status, const char *part) {
  const wire_message *m = next_sent(w, id, WIRE_REFUSED);
  assert_int_equal(m->status, status);
  if (!strstr(m->text, part)) fail_msg("'%s' is not in '%s'", part, m->text);
}

static void nothing(const world *w) { assert_int_equal(w->sent_count, 0); }

static void disjoint_and_given_back(void **unused) {
  world w;
  start(&w);
  ask(&w, 1, want(5, 2, 0), 0);
  granted(&w, 1, 0, 5, 0x03);
  ask(&w, 2, want(10, 3, 0), 0);
  granted(&w, 2, 5, 10, 0x1c);
  ask(&w, 3, want(6, 1, 0), 0);
  refused(
      &w, 3, FF_LIMIT,
      "6 SMs and 1 colours are not to be had now: of 20 SMs 5 are free, of 8 colours 3: program (process 1001) has 5 SMs and 2 colours, program (process 1002)");
  ask(&w, 4, want(5, 4, 0), 0);
  refused(&w, 4, FF_LIMIT, "not to be had now");
  state_leave(&w.state, 1, 1);
  ask(&w, 5, want(6, 0, 0), 1);
  refused(&w, 5, FF_LIMIT, "of 20 SMs 10 are free, at most 5 side by side");
  ask(&w, 6, want(5, 5, 0), 1);
  granted(&w, 6, 0, 5, 0xe3);
  nothing(&w);
  state_free(&w.state);
}

static void first_come_first_served(void **unused) {
  world w;
  start(&w);
  ask(&w, 1, want(5, 1, 0), 0);
  granted(&w, 1, 0, 5, 1);
  ask(&w, 2, want(20, 8, WIRE_FOREVER), 0);
  assert_int_equal(next_sent(&w, 2, WIRE_WAITING)->ahead, 0);
  ask(&w, 3, want(1, 1, WIRE_FOREVER), 0); /* there is room, but not for it */
  assert_int_equal(next_sent(&w, 3, WIRE_WAITING)->ahead, 1);
  ask(&w, 4, want(1, 1, 0), 0);
  refused(&w, 4, FF_LIMIT, "2 others wait");
  assert_int_equal(state_due(&w.state, 0), -1);
  state_leave(&w.state, 1, 5);
  granted(&w, 2, 0, 20, 0xff);
  nothing(&w);
  state_leave(&w.state, 2, 6);
  granted(&w, 3, 0, 1, 1);
  state_free(&w.state);
}

static void patience_ends_on_the_millisecond(void **unused) {
  world w;
  start(&w);
  ask(&w, 1, want(20, 0, 0), 0);
  granted(&w, 1, 0, 20, 0);
  ask(&w, 2, want(20, 0, 100), 1000);
  next_sent(&w, 2, WIRE_WAITING);
  ask(&w, 3, want(1, 0, 50), 1000);
  next_sent(&w, 3, WIRE_WAITING);
  assert_int_equal(state_due(&w.state, 1000), 1050);
  state_time(&w.state, 1049);
  nothing(&w);
  state_time(&w.state, 1050);
  refused(&w, 3, FF_LIMIT, "not to be had within the time");
  assert_int_equal(state_due(&w.state, 1050), 1100);
  ask(&w, 4, want(1, 0, WIRE_FOREVER), 1060);
  next_sent(&w, 4, WIRE_WAITING);
  state_leave(&w.state, 1, 1099); /* in time for both */
  granted(&w, 2, 0, 20, 0);
  state_leave(&w.state, 2, 2000);
  granted(&w, 4, 0, 1, 0);
  nothing(&w);
  state_free(&w.state);
}

/* Who gives up makes way for those behind. */
static void the_next_is_served_when_the_first_gives_up(void **unused) {
  world w;
  start(&w);
  ask(&w, 1, want(5, 0, 0), 0);
  ask(&w, 2, want(16, 0, 100), 0);
  ask(&w, 3, want(15, 0, WIRE_FOREVER), 0);
  w.sent_count = 0;
  state_time(&w.state, 100);
  refused(&w, 2, FF_LIMIT, "within the time");
  granted(&w, 3, 5, 15, 0);
  ask(&w, 4, want(20, 0, WIRE_FOREVER), 100);
  ask(&w, 5, want(1, 0, WIRE_FOREVER), 100);
  state_leave(&w.state, 3, 101);
  w.sent_count = 0;
  state_leave(&w.state, 4, 102); /* it had waited alone */
  granted(&w, 5, 5, 1, 0);
  state_free(&w.state);
}

static void steps(void **unused) {
  world w;
  start(&w);
  wire_message m = want(3, 0, 0);
  ask(&w, 1, want(1, 0, 0), 0);
  granted(&w, 1, 0, 1, 0);
  m.sm_step = 8;
  ask(&w, 2, m, 0);
  granted(&w, 2, 8, 8, 0);
  ask(&w, 3, m, 0);
  granted(&w, 3, 16, 4, 0); /* ends with the GPU */
  ask(&w, 4, m, 0);
  refused(&w, 4, FF_LIMIT, "of 20 SMs 7 are free");
  state_free(&w.state);
}

static void what_can_never_be(void **unused) {
  world w;
  start(&w);
  wire_message odd[] = {want(0, 0, 0), want(21, 0, 0),         want(1, 9, 0),     want(1, 0, 0),
                        want(1, 0, 0), {.kind = WIRE_GRANTED}, {.kind = WIRE_END}};
  strcpy(odd[3].gpu, "another");
  odd[4].gpu_sms = 0;
  for (uint32_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    ask(&w, i + 1, odd[i], 0);
    refused(&w, i + 1, FF_INVALID, "");
  }
  ask(&w, 20, want(5, 0, 0), 0);
  granted(&w, 20, 0, 5, 0);
  wire_message other = want(5, 0, WIRE_FOREVER);
  other.gpu_sms = 24;
  ask(&w, 21, other, 0);
  refused(&w, 21, FF_INVALID, "it is shared as 20 SMs and 8 colours, not as 24 SMs and 8 colours");
  state_leave(&w.state, 20, 0);
  ask(&w, 22, other, 0); /* no client has anything: the GPU may be another now */
  granted(&w, 22, 0, 5, 0);
  state_message(&w.state, 22, &other, 0); /* twice on one connection */
  refused(&w, 22, FF_INVALID, "a message that cannot come now");
  assert_false(state_settled(&w.state, 22));
  nothing(&w);
  state_free(&w.state);
}

static void what_is_locked_is_nobodys(void **unused) {
  world w;
  start(&w);
  w.sm_locks[3] = 77;
  w.colour_locks[0] = 77;
  ask(&w, 1, want(5, 1, 0), 0);
  granted(&w, 1, 4, 5, 2);
  ask(&w, 2, want(12, 0, 0), 0); /* a lock may be going away just now */
  next_sent(&w, 2, WIRE_WAITING);
  assert_int_equal(state_due(&w.state, 0), 50);
  state_time(&w.state, 249);
  nothing(&w);
  state_time(&w.state, 250);
  refused(&w, 2, FF_LIMIT, "1 SMs are held since before this broker began");
  ask(&w, 3, want(4, 0, WIRE_FOREVER), 300);
  granted(&w, 3, 9, 4, 0);
  ask(&w, 4, want(8, 0, WIRE_FOREVER), 300);
  next_sent(&w, 4, WIRE_WAITING);
  state_leave(&w.state, 1, 310);
  w.sm_locks[3] = 0;
  state_time(&w.state, 350);
  granted(&w, 4, 0, 8, 0);
  assert_int_equal(state_due(&w.state, 350), -1);
  w.sm_locks[19] = 77;
  ask(&w, 5, want(8, 0, WIRE_FOREVER), 400); /* 8 and 13 to 18 */
  next_sent(&w, 5, WIRE_WAITING);
  state_leave(&w.state, 3, 410);
  granted(&w, 5, 8, 8, 0);
  ask(&w, 6, want(4, 0, WIRE_FOREVER), 420);
  next_sent(&w, 6, WIRE_WAITING);
  w.sm_locks[19] = 0;
  state_join(&w.state, 7, 7, "lister"); /* who lists sees it as well */
  state_message(&w.state, 7, &(wire_message){.kind = WIRE_LIST}, 430);
  granted(&w, 6, 16, 4, 0);
  w.sent_count = 0;
  nothing(&w);
  state_free(&w.state);
}

static void lists(void **unused) {
  world w;
  start(&w);
  state_join(&w.state, 9, 9, "lister");
  state_message(&w.state, 9, &(wire_message){.kind = WIRE_LIST}, 0);
  assert_int_equal(next_sent(&w, 9, WIRE_GPU)->gpu_sms, 0);
  next_sent(&w, 9, WIRE_END);
  ask(&w, 1, want(5, 2, 0), 1000);
  ask(&w, 2, want(20, 0, WIRE_FOREVER), 1500);
  w.sm_locks[6] = w.sm_locks[7] = w.sm_locks[10] = 77;
  w.colour_locks[7] = 77;
  w.colour_locks[6] = -1;
  w.sent_count = 0;
  state_join(&w.state, 10, 10, "lister");
  state_message(&w.state, 10, &(wire_message){.kind = WIRE_LIST}, 2000);
  const wire_message *m = next_sent(&w, 10, WIRE_GPU);
  assert_int_equal(m->sms, 12);
  assert_int_equal(m->colours, 4);
  m = next_sent(&w, 10, WIRE_HOLDER);
  assert_true(m->state == WIRE_HOLDS && m->pid == 1001 && m->sms == 5 && m->mask == 3 && m->age_ms == 1000);
  m = next_sent(&w, 10, WIRE_HOLDER);
  assert_true(m->state == WIRE_ORPHAN && m->pid == 77 && m->sm_first == 6 && m->sms == 2 && m->mask == 0x80);
  m = next_sent(&w, 10, WIRE_HOLDER);
  assert_true(m->state == WIRE_ORPHAN && m->pid == 77 && m->sm_first == 10 && m->sms == 1 && !m->mask);
  m = next_sent(&w, 10, WIRE_HOLDER);
  assert_true(m->state == WIRE_ORPHAN && !m->pid && !m->sms && m->mask == 0x40);
  m = next_sent(&w, 10, WIRE_HOLDER);
  assert_true(m->state == WIRE_WAITS && m->pid == 1002 && m->sms == 20 && m->age_ms == 500);
  next_sent(&w, 10, WIRE_END);
  nothing(&w);
  state_free(&w.state);
}

/* ---- random operations against a model ---- */

typedef struct model_client {
  int phase;
  uint32_t sms, colours, step;
  int64_t deadline;
  bool patient;
  uint32_t first, count;
  uint64_t mask;
} model_client;
enum { GONE, WAITS, HOLDS };

typedef struct model {
  model_client clients[CLIENTS + 1];
  uint32_t queue[CLIENTS], waiting;
} model;

static bool model_sm_free(const world *w, const model *m, uint32_t sm) {
  for (uint32_t i = 1; i <= CLIENTS; i++)
    if (m->clients[i].phase == HOLDS && sm >= m->clients[i].first && sm < m->clients[i].first + m->clients[i].count)
      return false;
  return sm < SMS && !w->sm_locks[sm];
}

static uint64_t model_colours_free(const world *w, const model *m) {
  uint64_t mask = 0;
  for (uint32_t c = 0; c < COLOURS; c++) mask |= (uint64_t)!w->colour_locks[c] << c;
  for (uint32_t i = 1; i <= CLIENTS; i++)
    if (m->clients[i].phase == HOLDS) mask &= ~m->clients[i].mask;
  return mask;
}

static bool model_place(const world *w, const model *m, model_client *c) {
  for (uint32_t first = 0; first < SMS; first++)
    for (uint32_t count = c->sms; first + count <= SMS; count++) {
      bool fits = first % c->step == 0 && ((first + count) % c->step == 0 || first + count == SMS);
      for (uint32_t i = first; i < first + count; i++) fits = fits && model_sm_free(w, m, i);
      if (!fits) continue;
      uint64_t left = model_colours_free(w, m), mask = 0;
      for (uint32_t i = 0; i < c->colours && left; i++, left &= left - 1) mask |= left & -left;
      if ((uint32_t)__builtin_popcountll(mask) < c->colours) return false;
      c->first = first;
      c->count = count;
      c->mask = mask;
      return true;
    }
  return false;
}

static void model_drop(model *m, uint32_t id) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < m->waiting; i++)
    if (m->queue[i] != id) m->queue[left++] = m->queue[i];
  m->waiting = left;
}

/* What the daemon must have sent by now: grants to the first in the queue as long as they fit. */
static void model_serve(world *w, model *m) {
  while (m->waiting && model_place(w, m, &m->clients[m->queue[0]])) {
    model_client *c = &m->clients[m->queue[0]];
    granted(w, m->queue[0], c->first, c->count, c->mask);
    c->phase = HOLDS;
    model_drop(m, m->queue[0]);
  }
}

static bool model_orphans(const world *w) {
  for (uint32_t i = 0; i < SMS; i++)
    if (w->sm_locks[i]) return true;
  for (uint32_t i = 0; i < COLOURS; i++)
    if (w->colour_locks[i]) return true;
  return false;
}

static void model_ask(world *w, model *m, uint32_t id, int64_t now) {
  static const uint64_t timeouts[] = {0, 40, 400, WIRE_FOREVER};
  static const uint32_t sizes[] = {1, 1, 2, 4};
  wire_message message = want(1 + (uint32_t)rand() % (rand() % 4 ? 6 : SMS),
                              (uint32_t)rand() % (rand() % 3 ? 4 : COLOURS + 1), timeouts[rand() % 4]);
  message.sm_step = sizes[rand() % 4];
  m->clients[id] =
      (model_client){.phase = WAITS,
                     .sms = (uint32_t)message.sms,
                     .colours = (uint32_t)message.colours,
                     .step = (uint32_t)message.sm_step,
                     .deadline = message.timeout_ms == WIRE_FOREVER ? INT64_MAX : now + (int64_t)message.timeout_ms};
  m->queue[m->waiting++] = id;
  ask(w, id, message, now);
  model_serve(w, m);
  model_client *c = &m->clients[id];
  if (c->phase != WAITS) return;
  if (!message.timeout_ms && !model_orphans(w)) {
    refused(w, id, FF_LIMIT, "not to be had now");
    model_drop(m, id);
    c->phase = GONE;
    return;
  }
  if (!message.timeout_ms) c->deadline = now + ORPHAN_PATIENCE_MS;
  assert_int_equal(next_sent(w, id, WIRE_WAITING)->ahead, m->waiting - 1);
}

static void model_time(world *w, model *m, int64_t now) {
  state_time(&w->state, now);
  model_serve(w, m);
  for (uint32_t i = 0; i < m->waiting;) {
    uint32_t id = m->queue[i];
    if (m->clients[id].deadline > now) {
      i++;
      continue;
    }
    refused(w, id, FF_LIMIT, "not to be had");
    model_drop(m, id);
    m->clients[id].phase = GONE;
  }
  model_serve(w, m);
}

/* A process that no broker knows of locks something, or lets it go. */
static void change_locks(world *w, const model *m) {
  uint32_t sm = (uint32_t)rand() % SMS, colour = (uint32_t)rand() % COLOURS;
  if (w->sm_locks[sm]) w->sm_locks[sm] = 0;
  else if (rand() % 8 == 0 && model_sm_free(w, m, sm)) w->sm_locks[sm] = 77;
  if (w->colour_locks[colour]) w->colour_locks[colour] = 0;
  else if (rand() % 8 == 0 && model_colours_free(w, m) >> colour & 1) w->colour_locks[colour] = 77;
}

static void random_operations(void **unused) {
  uint64_t grants = 0;
  for (unsigned seed = 1; seed <= fewer(60, 3); seed++) {
    static world w;
    model m = {0};
    int64_t now = 0;
    srand(seed);
    start(&w);
    for (int step = 0; step < 4000; step++) {
      uint32_t id = 1 + (uint32_t)rand() % CLIENTS;
      now += rand() % 30;
      if (rand() % 4 == 0) change_locks(&w, &m);
      if (rand() % 5 == 0) model_time(&w, &m, now);
      else if (m.clients[id].phase == GONE) model_ask(&w, &m, id, now);
      else if (rand() % 3 == 0) {
        state_leave(&w.state, id, now);
        grants += m.clients[id].phase == HOLDS;
        model_drop(&m, id);
        m.clients[id].phase = GONE;
        model_serve(&w, &m);
      }
      nothing(&w);
      for (uint32_t i = 0; i < m.waiting; i++) {
        int64_t due = state_due(&w.state, now);
        if (m.clients[m.queue[i]].deadline != INT64_MAX) assert_true(due >= 0 && due <= m.clients[m.queue[i]].deadline);
      }
    }
    state_free(&w.state);
  }
  print_message("%llu shares given back\n", (unsigned long long)grants);
  assert_true(grants > fewer(10000, 3)); /* it did something */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(disjoint_and_given_back),
                                     cmocka_unit_test(first_come_first_served),
                                     cmocka_unit_test(patience_ends_on_the_millisecond),
                                     cmocka_unit_test(the_next_is_served_when_the_first_gives_up),
                                     cmocka_unit_test(steps),
                                     cmocka_unit_test(what_can_never_be),
                                     cmocka_unit_test(what_is_locked_is_nobodys),
                                     cmocka_unit_test(lists),
                                     cmocka_unit_test(random_operations)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
