/* SPDX-License-Identifier: Apache-2.0 */
/* Shares handed out in order. SMs: the first place where enough neighbours are free. Colours: the lowest ones that are
 * free. */
#include "broker/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum {
  ORPHAN_LOOK_MS = 50, /* how often locks are looked at while a client waits for them to go */
  /* a client that will not wait does so for a lock, which may be that of a process that is just ending */
  ORPHAN_PATIENCE_MS = 250,
};

void state_start(broker_state *state, const char *gpu, state_world world) {
  *state = (broker_state){.world = world};
  wire_clean(gpu, state->gpu, sizeof state->gpu);
}

void state_free(broker_state *state) {
  free(state->clients.items);
  free(state->queue.items);
}

static state_client *find(const broker_state *state, uint32_t id) {
  for (size_t i = 0; i < state->clients.count; i++)
    if (state->clients.items[i].id == id) return &state->clients.items[i];
  return NULL;
}

static uint32_t bits(uint64_t mask) { return (uint32_t)__builtin_popcountll(mask); }

/* ---- what is free ---- */

static bool sm_free(const broker_state *state, uint32_t sm) { return !state->sm_owner[sm] && !state->sm_orphan[sm]; }
static bool colour_free(const broker_state *state, uint32_t colour) {
  return !state->colour_owner[colour] && !state->colour_orphan[colour];
}

static void look_for_orphans(broker_state *state) {
  state->world.locked(state->world.context, state->sms, state->sm_orphan, state->colours, state->colour_orphan);
  for (uint32_t i = 0; i < state->sms; i++)
    if (state->sm_owner[i]) state->sm_orphan[i] = 0;
  for (uint32_t i = 0; i < state->colours; i++)
    if (state->colour_owner[i]) state->colour_orphan[i] = 0;
}

static bool has_orphans(const broker_state *state) {
  for (uint32_t i = 0; i < state->sms; i++)
    if (state->sm_orphan[i]) return true;
  for (uint32_t i = 0; i < state->colours; i++)
    if (state->colour_orphan[i]) return true;
  return false;
}

static uint32_t free_sms(const broker_state *state, uint32_t *longest) {
  uint32_t count = 0, run = 0, most = 0;
  for (uint32_t i = 0; i < state->sms; i++) {
    run = sm_free(state, i) ? run + 1 : 0;
    count += run > 0;
    if (run > most) most = run;
  }
  if (longest) *longest = most;
  return count;
}

static uint32_t free_colours(const broker_state *state) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < state->colours; i++) count += colour_free(state, i);
  return count;
}

/* The first range that begins at a multiple of the step, has all SMs that are wanted, and ends at a multiple or with
 * the GPU. */
static bool find_sms(const broker_state *state, const wire_message *ask, broker_grant *grant) {
  uint64_t step = ask->sm_step ? ask->sm_step : 1;
  for (uint64_t first = 0; first + ask->sms <= state->sms; first += step) {
    uint64_t end = (first + ask->sms + step - 1) / step * step, at = first;
    if (end > state->sms) end = state->sms;
    while (at < end && sm_free(state, (uint32_t)at)) at++;
    if (at < end) continue;
    grant->sm_first = (uint32_t)first;
    grant->sm_count = (uint32_t)(end - first);
    return true;
  }
  return false;
}

static bool find_colours(const broker_state *state, const wire_message *ask, broker_grant *grant) {
  grant->colours = 0;
  for (uint32_t i = 0; i < state->colours && bits(grant->colours) < ask->colours; i++)
    if (colour_free(state, i)) grant->colours |= UINT64_C(1) << i;
  return bits(grant->colours) == ask->colours;
}

/* ---- what is said ---- */

static void forget(broker_state *state, state_client *client) {
  uint32_t id = client->id;
  size_t left = 0;
  for (uint32_t i = 0; i < state->sms; i++)
    if (state->sm_owner[i] == id) state->sm_owner[i] = 0;
  for (uint32_t i = 0; i < state->colours; i++)
    if (state->colour_owner[i] == id) state->colour_owner[i] = 0;
  for (size_t i = 0; i < state->queue.count; i++)
    if (state->queue.items[i] != id) state->queue.items[left++] = state->queue.items[i];
  state->queue.count = left;
  size_t behind = state->clients.count - (size_t)(client - state->clients.items) - 1;
  memmove(client, client + 1, behind * sizeof *client);
  state->clients.count--;
}

__attribute__((format(printf, 4, 5))) static void refuse(broker_state *state, state_client *client, ff_status status,
                                                         const char *format, ...) {
  wire_message message = {.kind = WIRE_REFUSED, .status = status};
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message.text, sizeof message.text, format, arguments);
  va_end(arguments);
  uint32_t id = client->id;
  forget(state, client);
  state->world.send(state->world.context, id, &message);
}

static void describe_one(const state_client *client, ff_text *text) {
  ff_text_add(text, "%s%s", text->length ? ", " : "", client->program);
  if (client->ask.name[0]) ff_text_add(text, " '%s'", client->ask.name);
  ff_text_add(text, " (process %d) has %u SMs", client->pid, client->grant.sm_count);
  if (client->grant.colours) ff_text_add(text, " and %u colours", bits(client->grant.colours));
}

/* "of 20 SMs 4 are free, 3 side by side; of 8 colours none; a (process 1) has ..."; the wire cuts what is too long. */
static void describe(const broker_state *state, ff_text *text) {
  uint32_t longest, count = free_sms(state, &longest), orphans = 0;
  ff_text who = {0};
  ff_text_add(text, "of %u SMs %u are free", state->sms, count);
  if (longest < count) ff_text_add(text, ", at most %u side by side", longest);
  if (state->colours) ff_text_add(text, ", of %u colours %u", state->colours, free_colours(state));
  if (state->queue.count > 1) ff_text_add(text, "; %zu others wait", state->queue.count - 1);
  for (size_t i = 0; i < state->clients.count; i++)
    if (state->clients.items[i].phase == STATE_HOLDS) describe_one(&state->clients.items[i], &who);
  for (uint32_t i = 0; i < state->sms; i++) orphans += state->sm_orphan[i] != 0;
  if (orphans) ff_text_add(&who, "%s%u SMs are held since before this broker began", who.length ? ", " : "", orphans);
  if (who.length) ff_text_add(text, ": %s", who.chars);
  free(who.chars);
}

static void refuse_unserved(broker_state *state, state_client *client, const char *why) {
  ff_text text = {0};
  char colours[32] = "";
  if (client->ask.colours) snprintf(colours, sizeof colours, " and %u colours", (unsigned)client->ask.colours);
  describe(state, &text);
  refuse(state, client, FF_LIMIT, "%u SMs%s are not to be had %s: %s", (unsigned)client->ask.sms, colours, why,
         text.chars);
  free(text.chars);
}

/* ---- asking ---- */

static bool in_use(const broker_state *state) {
  for (size_t i = 0; i < state->clients.count; i++)
    if (state->clients.items[i].phase != STATE_JOINED) return true;
  return false;
}

/* Can it ever be met, and does it fit what others said? If not it is refused. */
static bool acceptable(broker_state *state, state_client *client, const wire_message *ask) {
  if (strcmp(ask->gpu, state->gpu))
    refuse(state, client, FF_INVALID, "this broker hands out '%.200s', not '%.200s'", state->gpu, ask->gpu);
  else if (!ask->sms || ask->sms > ask->gpu_sms)
    refuse(state, client, FF_INVALID, "%u SMs cannot be had of a GPU with %u", (uint32_t)ask->sms,
           (uint32_t)ask->gpu_sms);
  else if (ask->colours > ask->gpu_colours)
    refuse(state, client, FF_INVALID, "%u colours cannot be had of a GPU with %u", (uint32_t)ask->colours,
           (uint32_t)ask->gpu_colours);
  else if (in_use(state) && (ask->gpu_sms != state->sms || ask->gpu_colours != state->colours))
    refuse(
        state, client, FF_INVALID,
        "it is shared as %u SMs and %u colours, not as %u SMs and %u colours, until all have given back what they have",
        state->sms, state->colours, (uint32_t)ask->gpu_sms, (uint32_t)ask->gpu_colours);
  else return true;
  return false;
}

static void grant(broker_state *state, state_client *client, broker_grant found, int64_t now_ms) {
  for (uint32_t i = 0; i < found.sm_count; i++) state->sm_owner[found.sm_first + i] = client->id;
  for (uint32_t i = 0; i < state->colours; i++)
    if (found.colours >> i & 1) state->colour_owner[i] = client->id;
  client->phase = STATE_HOLDS;
  client->grant = found;
  client->since_ms = now_ms;
  memmove(state->queue.items, state->queue.items + 1, --state->queue.count * sizeof *state->queue.items);
  state->world.send(
      state->world.context, client->id,
      &(wire_message){.kind = WIRE_GRANTED, .sm_first = found.sm_first, .sms = found.sm_count, .mask = found.colours});
}

/* Serves the clients that wait, in their order, as far as there is room. */
static void serve(broker_state *state, int64_t now_ms) {
  broker_grant found = {0};
  if (state->queue.count) look_for_orphans(state);
  while (state->queue.count) {
    state_client *first = find(state, state->queue.items[0]);
    if (!find_sms(state, &first->ask, &found) || !find_colours(state, &first->ask, &found)) return;
    grant(state, first, found, now_ms);
  }
}

static void ask(broker_state *state, state_client *client, const wire_message *message, int64_t now_ms) {
  uint32_t id = client->id;
  if (!acceptable(state, client, message)) return;
  state->sms = (uint32_t)message->gpu_sms;
  state->colours = (uint32_t)message->gpu_colours;
  client->ask = *message;
  client->phase = STATE_WAITS;
  client->since_ms = now_ms;
  client->deadline_ms = message->timeout_ms > INT64_MAX / 2 ? -1 : now_ms + (int64_t)message->timeout_ms;
  FF_PUSH(&state->queue, id);
  serve(state, now_ms);
  client = find(state, id);
  if (client->phase != STATE_WAITS) return;
  if (!message->timeout_ms && has_orphans(state)) client->deadline_ms = now_ms + ORPHAN_PATIENCE_MS;
  else if (!message->timeout_ms) {
    refuse_unserved(state, client, "now");
    return;
  }
  state->world.send(state->world.context, id, &(wire_message){.kind = WIRE_WAITING, .ahead = state->queue.count - 1});
}

/* ---- listing ---- */

static void list_client(const broker_state *state, uint32_t to, const state_client *client, int64_t now_ms) {
  wire_message message = {.kind = WIRE_HOLDER,
                          .state = client->phase == STATE_HOLDS ? WIRE_HOLDS : WIRE_WAITS,
                          .pid = (uint64_t)client->pid,
                          .sms = client->ask.sms,
                          .colours = client->ask.colours,
                          .age_ms = (uint64_t)(now_ms - client->since_ms)};
  memcpy(message.program, client->program, sizeof message.program);
  memcpy(message.name, client->ask.name, sizeof message.name);
  if (client->phase == STATE_HOLDS) {
    message.sm_first = client->grant.sm_first;
    message.sms = client->grant.sm_count;
    message.mask = client->grant.colours;
  }
  state->world.send(state->world.context, to, &message);
}

/* A run of orphaned SMs of one process; that process's colours go with its first run. Colours alone: sms == 0. */
static void list_orphan(broker_state *state, uint32_t to, uint32_t first, uint32_t count, int32_t pid,
                        uint64_t *listed) {
  wire_message message = {
      .kind = WIRE_HOLDER, .state = WIRE_ORPHAN, .pid = (uint64_t)(pid > 0 ? pid : 0), .sm_first = first, .sms = count};
  for (uint32_t i = 0; i < state->colours; i++)
    if (state->colour_orphan[i] == pid && !(*listed >> i & 1)) message.mask |= UINT64_C(1) << i;
  *listed |= message.mask;
  message.colours = bits(message.mask);
  state->world.send(state->world.context, to, &message);
}

static void list_orphans(broker_state *state, uint32_t to) {
  uint64_t listed = 0;
  for (uint32_t i = 0, end; i < state->sms; i = end) {
    for (end = i + 1; end < state->sms && state->sm_orphan[end] == state->sm_orphan[i];) end++;
    if (state->sm_orphan[i]) list_orphan(state, to, i, end - i, state->sm_orphan[i], &listed);
  }
  for (uint32_t i = 0; i < state->colours; i++)
    if (state->colour_orphan[i] && !(listed >> i & 1)) list_orphan(state, to, 0, 0, state->colour_orphan[i], &listed);
}

static void list(broker_state *state, uint32_t to, int64_t now_ms) {
  serve(state, now_ms);
  look_for_orphans(state);
  wire_message all = {.kind = WIRE_GPU,
                      .gpu_sms = state->sms,
                      .gpu_colours = state->colours,
                      .sms = free_sms(state, NULL),
                      .colours = free_colours(state)};
  memcpy(all.gpu, state->gpu, sizeof all.gpu);
  state->world.send(state->world.context, to, &all);
  for (uint32_t i = 0; i < state->sms; i++) {
    const state_client *owner = state->sm_owner[i] ? find(state, state->sm_owner[i]) : NULL;
    if (owner && owner->grant.sm_first == i) list_client(state, to, owner, now_ms);
  }
  list_orphans(state, to);
  for (size_t i = 0; i < state->queue.count; i++) list_client(state, to, find(state, state->queue.items[i]), now_ms);
  state->world.send(state->world.context, to, &(wire_message){.kind = WIRE_END});
}

/* ---- what happens ---- */

void state_join(broker_state *state, uint32_t id, int32_t pid, const char *program) {
  state_client client = {.id = id, .pid = pid};
  FF_ASSERT(id && !find(state, id));
  wire_clean(program, client.program, sizeof client.program);
  FF_PUSH(&state->clients, client);
}

void state_message(broker_state *state, uint32_t id, const wire_message *message, int64_t now_ms) {
  state_client *client = find(state, id);
  if (!client) return;
  bool expected = client->phase == STATE_JOINED;
  if (expected && message->kind == WIRE_ASK) ask(state, client, message, now_ms);
  else if (expected && message->kind == WIRE_LIST) list(state, id, now_ms);
  else {
    refuse(state, client, FF_INVALID, "a message that cannot come now");
    serve(state, now_ms);
  }
  state_check(state);
}

void state_leave(broker_state *state, uint32_t id, int64_t now_ms) {
  state_client *client = find(state, id);
  if (client) forget(state, client);
  serve(state, now_ms);
  state_check(state);
}

void state_time(broker_state *state, int64_t now_ms) {
  serve(state, now_ms);
  for (size_t i = 0; i < state->queue.count;) {
    state_client *client = find(state, state->queue.items[i]);
    bool over = client->deadline_ms >= 0 && client->deadline_ms <= now_ms;
    if (over) refuse_unserved(state, client, client->ask.timeout_ms ? "within the time" : "now");
    i += !over;
  }
  serve(state, now_ms); /* those behind one that has given up */
  state_check(state);
}

int64_t state_due(const broker_state *state, int64_t now_ms) {
  int64_t due = state->queue.count && has_orphans(state) ? now_ms + ORPHAN_LOOK_MS : -1;
  for (size_t i = 0; i < state->queue.count; i++) {
    int64_t deadline = find(state, state->queue.items[i])->deadline_ms;
    if (deadline >= 0 && (due < 0 || deadline < due)) due = deadline;
  }
  return due;
}

bool state_settled(const broker_state *state, uint32_t id) {
  const state_client *client = find(state, id);
  return client && client->phase != STATE_JOINED;
}

/* ---- the equation ---- */

static void check_client(const broker_state *state, const state_client *client, uint32_t *handed_sms,
                         uint32_t *handed_colours) {
  if (client->phase != STATE_HOLDS) return;
  for (uint32_t i = 0; i < client->grant.sm_count; i++)
    FF_ASSERT(state->sm_owner[client->grant.sm_first + i] == client->id);
  for (uint32_t i = 0; i < state->colours; i++)
    FF_ASSERT((client->grant.colours >> i & 1) == (state->colour_owner[i] == client->id));
  FF_ASSERT(client->grant.sm_count >= client->ask.sms && bits(client->grant.colours) == client->ask.colours);
  *handed_sms += client->grant.sm_count;
  *handed_colours += bits(client->grant.colours);
}

void state_check(const broker_state *state) {
  uint32_t handed_sms = 0, handed_colours = 0, orphan_sms = 0, orphan_colours = 0;
  size_t waiting = 0;
  for (size_t i = 0; i < state->clients.count; i++) {
    check_client(state, &state->clients.items[i], &handed_sms, &handed_colours);
    waiting += state->clients.items[i].phase == STATE_WAITS;
  }
  for (uint32_t i = 0; i < state->sms; i++) orphan_sms += !state->sm_owner[i] && state->sm_orphan[i];
  for (uint32_t i = 0; i < state->colours; i++) orphan_colours += !state->colour_owner[i] && state->colour_orphan[i];
  FF_ASSERT(free_sms(state, NULL) + handed_sms + orphan_sms == state->sms);
  FF_ASSERT(free_colours(state) + handed_colours + orphan_colours == state->colours);
  FF_ASSERT(waiting == state->queue.count);
  if (!waiting) return;
  broker_grant found;
  const state_client *first = find(state, state->queue.items[0]);
  FF_ASSERT(first->phase == STATE_WAITS &&
            !(find_sms(state, &first->ask, &found) && find_colours(state, &first->ask, &found)));
}
