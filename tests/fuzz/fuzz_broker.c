/* SPDX-License-Identifier: Apache-2.0 */
/* What any bytes on its sockets do to a broker: they are taken apart as messages, and those go to the state machine as
 * of several clients, between which connections end, time passes and locks come and go. What was taken must be written
 * again as the same bytes; the sums are checked by state_check, and no two clients may ever have been granted the same.
 * A first byte before each message says what happens around it. */
#include <string.h>

#include "base/check.h"
#include "broker/state.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { CLIENTS = 6 };

typedef struct told {
  bool has;
  broker_grant grant;
} told;
typedef struct world {
  broker_state state;
  told told[CLIENTS];
  uint32_t ids[CLIENTS], last_id; /* of the connections; 0: none */
  int32_t locked;                 /* a byte more than the SM that a stranger has locked; 0: none */
} world;

static void on_send(void *context, uint32_t id, const wire_message *message) {
  world *w = context;
  uint8_t frame[WIRE_FRAME];
  wire_message back;
  size_t used, bytes = wire_write(message, frame);
  uint32_t version;
  FF_ASSERT(wire_read(frame, bytes, &back, &used, &version) == WIRE_GOOD && used == bytes); /* clients can read it */
  for (uint32_t i = 0; i < CLIENTS; i++)
    if (w->ids[i] == id && message->kind == WIRE_GRANTED)
      w->told[i] = (told){true, {(uint32_t)message->sm_first, (uint32_t)message->sms, message->mask}};
    else if (w->ids[i] == id && message->kind == WIRE_REFUSED) w->told[i].has = false;
}

static void on_locked(void *context, uint32_t sms, int32_t *sm_pids, uint32_t colours, int32_t *colour_pids) {
  const world *w = context;
  for (uint32_t i = 0; i < sms; i++) sm_pids[i] = (int32_t)i + 1 == w->locked ? 7 : 0;
  for (uint32_t i = 0; i < colours; i++) colour_pids[i] = (int32_t)i + 1 == w->locked ? 7 : 0;
}

static void check_disjoint(const world *w) {
  for (uint32_t a = 0; a < CLIENTS; a++)
    for (uint32_t b = 0; b < a; b++) {
      const broker_grant *x = &w->told[a].grant, *y = &w->told[b].grant;
      if (!w->told[a].has || !w->told[b].has) continue;
      FF_ASSERT(!(x->colours & y->colours));
      FF_ASSERT(x->sm_first + x->sm_count <= y->sm_first || y->sm_first + y->sm_count <= x->sm_first);
    }
}

static void leave(world *w, uint32_t client, int64_t now_ms) {
  uint32_t id = w->ids[client];
  w->told[client].has = false;
  w->ids[client] = 0;
  if (id) state_leave(&w->state, id, now_ms);
}

static void say(world *w, uint32_t client, const wire_message *message, int64_t now_ms) {
  if (!w->ids[client]) state_join(&w->state, w->ids[client] = ++w->last_id, 100 + (int32_t)client, "a\nprogram");
  state_message(&w->state, w->ids[client], message, now_ms);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  world w = {0};
  int64_t now_ms = 0;
  ff_check_level = 2;
  state_start(&w.state, "gpu", (state_world){&w, on_send, on_locked});
  while (size > 1) {
    wire_message message;
    uint8_t frame[WIRE_FRAME];
    uint32_t what = *data, version;
    size_t used;
    if (what & 0x80) leave(&w, what % CLIENTS, now_ms);
    if (what & 0x40) state_time(&w.state, now_ms += 60);
    if (what & 0x20) w.locked = (int32_t)(what & 7);
    if (wire_read(data + 1, size - 1, &message, &used, &version) != WIRE_GOOD) break;
    FF_ASSERT(wire_write(&message, frame) == used && !memcmp(frame, data + 1, used));
    say(&w, what % CLIENTS, &message, now_ms);
    check_disjoint(&w);
    int64_t due = state_due(&w.state, now_ms);
    FF_ASSERT(due == -1 || w.state.queue.count);
    data += 1 + used;
    size -= 1 + used;
  }
  for (uint32_t i = 0; i < CLIENTS; i++) leave(&w, i, now_ms);
  FF_ASSERT(!w.state.clients.count && !w.state.queue.count);
  state_free(&w.state);
  return 0;
}
