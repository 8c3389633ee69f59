/* SPDX-License-Identifier: Apache-2.0 */
/* The log of shared tiers: each device's notes since the last meeting, and what they became there. */
#include "paging/tier_log.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

typedef struct device_part {
  FF_VEC(tier_note) notes;
  size_t next;                                    /* while they are merged */
  tier_moved moving[TIERS_MAX], moved[TIERS_MAX]; /* since the last meeting, and before it */
  tier_load said[TIERS_MAX][TIER_WAYS], load[TIERS_MAX][TIER_WAYS];
  uint64_t digest; /* 0: it has said none */
} device_part;

struct tier_log {
  device_part each[TIER_LOG_DEVICES];
  FF_VEC(tier_note) notes;
};

tier_log *tier_log_create(void) {
  tier_log *log = ff_alloc(sizeof *log);
  return log;
}

void tier_log_free(tier_log *log) {
  if (!log) return;
  for (uint32_t d = 0; d < TIER_LOG_DEVICES; d++) free(log->each[d].notes.items);
  free(log->notes.items);
  free(log);
}

void tier_log_note(tier_log *log, uint32_t device, tier_note note) {
  FF_ASSERT(device < TIER_LOG_DEVICES);
  device_part *own = &log->each[device];
  size_t count = own->notes.count;
  note.device = (uint8_t)device;
  if (count && own->notes.items[count - 1].time > note.time) note.time = own->notes.items[count - 1].time;
  FF_PUSH(&own->notes, note);
}

void tier_log_moved(tier_log *log, uint32_t device, uint32_t tier, tier_moved moved) {
  log->each[device].moving[tier].read += moved.read;
  log->each[device].moving[tier].written += moved.written;
}

void tier_log_say(tier_log *log, uint32_t device, uint32_t tier, tier_way way, tier_load load) {
  log->each[device].said[tier][way] = load;
}

void tier_log_say_digest(tier_log *log, uint32_t device, uint64_t digest) { log->each[device].digest = digest; }

static void digests_check(tier_log *log) {
  uint64_t first = 0;
  for (uint32_t d = 0; d < TIER_LOG_DEVICES; d++) {
    uint64_t digest = log->each[d].digest;
    FF_ASSERT(!digest || !first || digest == first);
    if (digest) first = digest;
    log->each[d].digest = 0;
  }
}

/* The device whose next note is the earliest; TIER_LOG_DEVICES: none is left. */
static uint32_t earliest(const tier_log *log) {
  uint32_t best = TIER_LOG_DEVICES;
  uint64_t time = 0;
  for (uint32_t d = 0; d < TIER_LOG_DEVICES; d++) {
    const device_part *own = &log->each[d];
    if (own->next == own->notes.count) continue;
    uint64_t at = own->notes.items[own->next].time;
    if (best < TIER_LOG_DEVICES && at >= time) continue;
    best = d;
    time = at;
  }
  return best;
}

void tier_log_merge(tier_log *log) {
  digests_check(log);
  log->notes.count = 0;
  for (uint32_t d; (d = earliest(log)) < TIER_LOG_DEVICES;) {
    tier_note note = log->each[d].notes.items[log->each[d].next++];
    FF_PUSH(&log->notes, note);
  }
  for (uint32_t d = 0; d < TIER_LOG_DEVICES; d++) {
    device_part *own = &log->each[d];
    own->notes.count = own->next = 0;
    memcpy(own->moved, own->moving, sizeof own->moved);
    memset(own->moving, 0, sizeof own->moving);
    memcpy(own->load, own->said, sizeof own->load);
    memset(own->said, 0, sizeof own->said);
  }
}

const tier_note *tier_log_notes(const tier_log *log, size_t *count) {
  *count = log->notes.count;
  return log->notes.items;
}

tier_moved tier_log_moved_by(const tier_log *log, uint32_t device, uint32_t tier) {
  return log->each[device].moved[tier];
}

tier_load tier_log_load(const tier_log *log, uint32_t device, uint32_t tier, tier_way way) {
  return log->each[device].load[tier][way];
}
