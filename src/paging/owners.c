/* SPDX-License-Identifier: Apache-2.0 */
/* The owner map: a hash table from a unit's address to the set of devices that hold it, and each device's notes since
 * the last meeting. Entries are never removed: a unit that nobody holds has an empty set. */
#include "paging/owners.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

typedef struct entry {
  uint64_t key; /* the unit's address + 1; 0: free */
  owners_set set;
} entry;

struct owners {
  entry *entries;
  size_t count, capacity; /* capacity: a power of two, at least twice the count */
  struct {
    FF_VEC(owners_event) events;
    FF_VEC(owners_transfer) transfers;
    size_t next; /* while they are merged */
    owners_load said_load[2], load[2];
    uint64_t said[OWNERS_OUTS], busy[OWNERS_OUTS];
  } each[OWNERS_DEVICES];
  FF_VEC(owners_event) events;
  FF_VEC(owners_transfer) transfers;
};

owners *owners_create(void) {
  owners *o = ff_alloc(sizeof *o);
  o->capacity = 1024;
  o->entries = ff_alloc(o->capacity * sizeof *o->entries);
  return o;
}

void owners_free(owners *o) {
  if (!o) return;
  for (uint32_t d = 0; d < OWNERS_DEVICES; d++) {
    free(o->each[d].events.items);
    free(o->each[d].transfers.items);
  }
  free(o->events.items);
  free(o->transfers.items);
  free(o->entries);
  free(o);
}

static size_t slot_of(const owners *o, uint64_t key) {
  size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (o->capacity - 1);
  while (o->entries[at].key && o->entries[at].key != key) at = (at + 1) & (o->capacity - 1);
  return at;
}

static void grow(owners *o) {
  entry *old = o->entries;
  size_t old_capacity = o->capacity;
  o->capacity *= 2;
  o->entries = ff_alloc(o->capacity * sizeof *o->entries);
  for (size_t i = 0; i < old_capacity; i++)
    if (old[i].key) o->entries[slot_of(o, old[i].key)] = old[i];
  free(old);
}

static owners_set *set_of(owners *o, uint64_t address) {
  size_t at = slot_of(o, address + 1);
  if (!o->entries[at].key) {
    if (2 * ++o->count > o->capacity) {
      grow(o);
      at = slot_of(o, address + 1);
    }
    o->entries[at].key = address + 1;
  }
  return &o->entries[at].set;
}

owners_set owners_of(const owners *o, uint64_t address) { return o->entries[slot_of(o, address + 1)].set; }

void owners_note(owners *o, uint32_t device, owners_event event) {
  FF_ASSERT(device < OWNERS_DEVICES && event.from < OWNERS_DEVICES);
  size_t count = o->each[device].events.count;
  event.device = (uint8_t)device;
  if (count && o->each[device].events.items[count - 1].time > event.time)
    event.time = o->each[device].events.items[count - 1].time;
  FF_PUSH(&o->each[device].events, event);
}

void owners_carried(owners *o, uint32_t device, owners_transfer transfer) {
  FF_PUSH(&o->each[device].transfers, transfer);
}

void owners_say_busy(owners *o, uint32_t device, owners_out out, uint64_t until) { o->each[device].said[out] = until; }
uint64_t owners_busy(const owners *o, uint32_t device, owners_out out) { return o->each[device].busy[out]; }

void owners_say_load(owners *o, uint32_t device, bool in, owners_load load) { o->each[device].said_load[in] = load; }
owners_load owners_load_of(const owners *o, uint32_t device, bool in) { return o->each[device].load[in]; }

/* The device whose next note is the earliest; OWNERS_DEVICES: none is left. */
static uint32_t earliest(const owners *o) {
  uint32_t best = OWNERS_DEVICES;
  uint64_t time = 0;
  for (uint32_t d = 0; d < OWNERS_DEVICES; d++) {
    if (o->each[d].next == o->each[d].events.count) continue;
    uint64_t own = o->each[d].events.items[o->each[d].next].time;
    if (best < OWNERS_DEVICES && own >= time) continue;
    best = d;
    time = own;
  }
  return best;
}

static void apply(owners *o, const owners_event *event) {
  owners_set *set = set_of(o, event->address), own = (owners_set)(1u << event->device);
  switch ((owners_kind)event->kind) {
  case OWNERS_TAKES: *set = own; break;
  case OWNERS_COPIES: *set |= own; break;
  case OWNERS_GIVES: *set &= (owners_set)~own; break;
  case OWNERS_WRITES: break;
  }
}

void owners_merge(owners *o) {
  o->events.count = o->transfers.count = 0;
  for (uint32_t d; (d = earliest(o)) < OWNERS_DEVICES;) {
    owners_event event = o->each[d].events.items[o->each[d].next++];
    apply(o, &event);
    FF_PUSH(&o->events, event);
  }
  for (uint32_t d = 0; d < OWNERS_DEVICES; d++) {
    for (size_t i = 0; i < o->each[d].transfers.count; i++) FF_PUSH(&o->transfers, o->each[d].transfers.items[i]);
    o->each[d].events.count = o->each[d].transfers.count = o->each[d].next = 0;
    memcpy(o->each[d].load, o->each[d].said_load, sizeof o->each[d].load);
    memcpy(o->each[d].busy, o->each[d].said, sizeof o->each[d].busy);
  }
}

const owners_event *owners_events(const owners *o, size_t *count) {
  *count = o->events.count;
  return o->events.items;
}

const owners_transfer *owners_transfers(const owners *o, size_t *count) {
  *count = o->transfers.count;
  return o->transfers.items;
}
