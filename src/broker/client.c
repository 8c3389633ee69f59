/* SPDX-License-Identifier: Apache-2.0 */
/* Taking a share: connect (and start the daemon where there is none), ask, wait, lock what was granted. A daemon may
 * end at any moment, being idle: until it has answered, everything is tried again; an answer counts once its share is
 * locked and the daemon is still there. */
#include "broker/client.h"

#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "broker/broker_link.h"
#include "broker/start.h"

enum {
  CONNECT_PATIENCE_MS = 15000, /* until some daemon has taken the request */
  RETRY_MS = 10,
  SLACK_MS = 5000, /* the daemon keeps the time; it is given so much more until it counts as dead */
};

struct broker_share {
  broker_link link;
  broker_lock *lock;
  broker_grant grant;
};

/* ---- the request ---- */

/* A share of `all`, rounded down, at least one; a hair is added so that 0.29 * 100 is 29. */
static uint32_t count_of(uint32_t count, double share, uint32_t all) {
  if (count || share <= 0) return count;
  uint32_t rounded = (uint32_t)(share * all + 1e-6);
  return rounded ? rounded : 1;
}

static ff_status make_ask(const broker_request *r, wire_message *ask, ff_error *error) {
  if (!r->gpu || !*r->gpu || strlen(r->gpu) > BROKER_GPU_NAME)
    return ff_fail(error, FF_INVALID, "a GPU's name has 1 to %d bytes", BROKER_GPU_NAME);
  if (!r->gpu_sms || r->gpu_sms > BROKER_SMS || r->gpu_colours > BROKER_COLOURS)
    return ff_fail(error, FF_INVALID, "a GPU to be shared has 1 to %d SMs and at most %d colours, not %u and %u",
                   BROKER_SMS, BROKER_COLOURS, r->gpu_sms, r->gpu_colours);
  if (!(r->sm_share >= 0 && r->sm_share <= 1 && r->colour_share >= 0 && r->colour_share <= 1))
    return ff_fail(error, FF_INVALID, "a share is a number from 0 to 1, not %g or %g", r->sm_share, r->colour_share);
  if (isnan(r->timeout_s)) return ff_fail(error, FF_INVALID, "the time to wait is no number");
  *ask = (wire_message){
      .kind = WIRE_ASK, .gpu_sms = r->gpu_sms, .gpu_colours = r->gpu_colours, .sm_step = r->sm_step ? r->sm_step : 1};
  ask->sms = count_of(r->sms, r->sm_share, r->gpu_sms);
  ask->colours = r->gpu_colours || r->colours ? count_of(r->colours, r->colour_share, r->gpu_colours) : 0;
  ask->timeout_ms = r->timeout_s < 0 || r->timeout_s > 1e9 ? WIRE_FOREVER : (uint64_t)(r->timeout_s * 1000);
  if (!ask->sms || ask->sms > r->gpu_sms)
    return ff_fail(error, FF_INVALID, "%u SMs cannot be had of a GPU with %u", (unsigned)ask->sms, r->gpu_sms);
  if (ask->colours > r->gpu_colours)
    return ff_fail(error, FF_INVALID, "%u colours cannot be had of a GPU with %u", (unsigned)ask->colours,
                   r->gpu_colours);
  if (ask->sm_step > BROKER_SMS)
    return ff_fail(error, FF_INVALID, "SMs in steps of %u: at most %d", r->sm_step, BROKER_SMS);
  wire_clean(r->gpu, ask->gpu, sizeof ask->gpu);
  wire_clean(r->name ? r->name : "", ask->name, sizeof ask->name);
  return FF_OK;
}

/* ---- to the daemon and back ---- */

typedef struct taking { /* of one share */
  const wire_message *ask;
  broker_place place;
  char socket_name[PLACE_NAME], lock_name[PLACE_NAME];
  int64_t asked_ms, connect_until_ms;
  broker_share *share;
} taking;

/* FF_OK with *again: nothing came of it, and it may be tried again. */
static ff_status connect_once(taking *t, bool *again, ff_error *error) {
  *again = false;
  ff_status status = link_open(&t->place, t->socket_name, &t->share->link, error);
  if (status == FF_LIMIT) *again = true;
  if (status == FF_NOT_FOUND) {
    status = start_daemon(&t->place, t->ask->gpu, error);
    *again = !status;
  }
  return status == FF_LIMIT ? FF_OK : status;
}

/* What is left of the time to wait, for a daemon that is asked anew. */
static wire_message ask_now(const taking *t) {
  wire_message ask = *t->ask;
  uint64_t gone = (uint64_t)(link_now_ms() - t->asked_ms);
  if (ask.timeout_ms != WIRE_FOREVER && ask.timeout_ms)
    ask.timeout_ms = gone < ask.timeout_ms ? ask.timeout_ms - gone : 1;
  return ask;
}

static ff_status refused(const taking *t, const wire_message *answer, ff_error *error) {
  static const ff_status known[] = {FF_LIMIT, FF_INVALID, FF_UNSUPPORTED};
  ff_status status = FF_IO;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (answer->status == known[i]) status = known[i];
  return ff_fail(error, status, "no share of %s: %s", t->ask->gpu, answer->text);
}

/* The answer after WAITING: the daemon has the request, so that its end is told. */
static ff_status wait_for_share(taking *t, const wire_message *ask, wire_message *answer, ff_error *error) {
  int64_t until = ask->timeout_ms == WIRE_FOREVER ? -1 : link_now_ms() + (int64_t)ask->timeout_ms + SLACK_MS;
  ff_status status = link_receive(&t->share->link, until, answer, error);
  if (status == FF_NOT_FOUND)
    return ff_fail(error, FF_IO, "no share of %s: its broker (process %d) ended while this process waited for one",
                   t->ask->gpu, t->share->link.pid);
  return status ? ff_fail_at(error, status, t->ask->gpu) : FF_OK;
}

/* Locked, and then the daemon still there: no other one can have handed it out in between. */
static ff_status take_granted(taking *t, const wire_message *answer, bool *again, ff_error *error) {
  broker_share *share = t->share;
  share->grant = (broker_grant){(uint32_t)answer->sm_first, (uint32_t)answer->sms, answer->mask};
  bool colours_exist = t->ask->gpu_colours == BROKER_COLOURS || !(share->grant.colours >> t->ask->gpu_colours);
  if (!share->grant.sm_count || share->grant.sm_first + share->grant.sm_count > t->ask->gpu_sms || !colours_exist)
    return ff_fail(error, FF_IO, "no share of %s: its broker handed out SMs that there are not, or colours",
                   t->ask->gpu);
  ff_status status = lock_take(&t->place, t->lock_name, &share->grant, &share->lock, error);
  if (!status && link_alive(&share->link)) return FF_OK;
  if (!status) lock_drop(share->lock, &share->grant);
  if (status && status != FF_LIMIT) return status;
  *again = true; /* another daemon came in between */
  return FF_OK;
}

static ff_status ask_once(taking *t, bool *again, ff_error *error) {
  wire_message answer, ask = ask_now(t);
  ff_status status = link_send(&t->share->link, &ask, t->connect_until_ms, error);
  if (!status || status == FF_NOT_FOUND) /* it may have said why before it closed */
    status = link_receive(&t->share->link, t->connect_until_ms, &answer, error);
  *again = status == FF_NOT_FOUND;
  if (status) return *again ? FF_OK : ff_fail_at(error, status, t->ask->gpu);
  if (answer.kind == WIRE_WAITING) status = wait_for_share(t, &ask, &answer, error);
  if (status) return status;
  if (answer.kind == WIRE_REFUSED) return refused(t, &answer, error);
  if (answer.kind == WIRE_GRANTED) return take_granted(t, &answer, again, error);
  return ff_fail(error, FF_IO, "no share of %s: its broker answered what no broker answers", t->ask->gpu);
}

static ff_status take(taking *t, ff_error *error) {
  for (;;) {
    bool again = false;
    ff_status status = connect_once(t, &again, error);
    if (!status && !again) status = ask_once(t, &again, error);
    if (status || !again) return status;
    link_close(&t->share->link);
    if (link_now_ms() >= t->connect_until_ms)
      return ff_fail(error, FF_IO, "%s: the broker cannot be reached: it is neither there nor can it be started",
                     t->place.path);
    poll(NULL, 0, RETRY_MS);
  }
}

ff_status broker_take(const broker_request *request, broker_share **share, ff_error *error) {
  wire_message ask;
  ff_status status = make_ask(request, &ask, error);
  if (status) return status;
  int64_t now = link_now_ms();
  taking t = {.ask = &ask, .asked_ms = now, .connect_until_ms = now + CONNECT_PATIENCE_MS};
  status = place_open(true, &t.place, error);
  if (status) return status;
  place_file_name(ask.gpu, ".sock", t.socket_name);
  place_file_name(ask.gpu, ".lock", t.lock_name);
  t.share = ff_alloc(sizeof *t.share);
  t.share->link = LINK_CLOSED;
  status = take(&t, error);
  place_close(&t.place);
  if (status) {
    link_close(&t.share->link);
    free(t.share);
    return status;
  }
  *share = t.share;
  return FF_OK;
}

const broker_grant *broker_granted(const broker_share *share) { return &share->grant; }

bool broker_connected(const broker_share *share) { return link_alive(&share->link); }

void broker_give_back(broker_share *share) {
  if (!share) return;
  lock_drop(share->lock, &share->grant); /* first: the client that is served next finds nothing locked */
  link_close(&share->link);
  free(share);
}
