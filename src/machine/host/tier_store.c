/* SPDX-License-Identifier: Apache-2.0 */
/* Tiers below GPU memory, in time.
 *
 * A tier reads and writes at the same time, each way a server: requests are served in order, and each takes
 *
 *     latency + whole units / bandwidth            (the server is busy for the second part)
 *
 * What the pager has moved since the last call is one request for each tier and way. Of a tier that gives to the one
 * below, the read comes before that one's write. The host's memory takes no time of its own. */
#include "machine/host/tier_store.h"

#include <math.h>
#include <stdio.h>

#include "machine/host/link.h"

static uint64_t whole_units(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

static tier_drive drive_of(const machine_tier *tier) {
  return (tier_drive){.read_per_byte = 1000 / tier->read_gbs,
                      .write_per_byte = 1000 / tier->write_gbs,
                      .latency = (ps)llround(tier->latency_us * 1e6),
                      .unit = tier->unit_bytes,
                      .mapped = tier->mapped};
}

/* The first program on the device makes the drive. */
static void drive_make(tier_drive *d, const machine_tier *tier) {
  if (!d->unit) *d = drive_of(tier);
}

/* The next tier, behind those that are there. */
static void add_tier(tier_store *s, const machine_tier *tier, uint64_t *capacities) {
  uint32_t i = s->counted.count++;
  capacities[i] = tier->bytes;
  snprintf(s->counted.of[i].name, sizeof s->counted.of[i].name, "%s", tier->name);
  drive_make(&s->drives[i], tier);
}

void tier_store_on(tier_store *s, tier_set *set, uint32_t tenant) {
  s->set = set;
  s->tenant = tenant;
  s->drives = set->drives;
}

ff_status tier_store_begin(tier_store *s, const machine_spec *spec, uint64_t host_memory, double share,
                           ff_error *error) {
  const machine_tier_table *above = &spec->above_host, *below = &spec->below_host;
  uint64_t capacities[TIERS_MAX], of_host = host_memory ? host_memory : spec->host_memory_bytes;
  _Static_assert((int)TIERS_MAX == (int)MACHINE_TIERS + 1, "a machine's tiers and the host's memory");
  if ((host_memory || share > 0) && !below->count && !above->count)
    return ff_fail(error, FF_INVALID,
                   "host-memory: %s has nothing below the host's memory for what does not fit: give it a tier "
                   "(below_host), or choose a machine that has one",
                   spec->name);
  if (share > 0) of_host = FF_BLOCK_BYTES; /* grows */
  s->share = share;
  if (!of_host) return FF_OK;
  for (uint32_t i = 0; i < above->count; i++) add_tier(s, &above->tiers[i], capacities);
  s->host = s->counted.count++;
  capacities[s->host] = of_host;
  snprintf(s->counted.of[s->host].name, sizeof s->counted.of[s->host].name, "host");
  for (uint32_t i = 0; i < below->count; i++) add_tier(s, &below->tiers[i], capacities);
  if (!s->set->places) s->set->places = tiers_create(capacities, s->counted.count, s->host);
  s->places = s->set->places;
  return FF_OK;
}

void tier_store_files(tier_store *s, const machine_spec *spec) {
  const machine_tier_table *below = &spec->below_host;
  uint64_t i = below->count;
  while (i && below->tiers[i - 1].mapped) i--;
  if (!i) return;
  s->files = &s->drives[s->host + i];
  drive_make(s->files, &below->tiers[i - 1]);
}

void tier_set_free(tier_set *set) { tiers_free(set->places); }

uint64_t tier_store_allocated(tier_store *s, uint64_t bytes) {
  uint64_t all = 0;
  s->set->allocated[s->tenant] = bytes;
  for (uint32_t i = 0; i < SIM_TENANTS; i++) all += s->set->allocated[i];
  if (!(s->share > 0)) return all;
  uint64_t wanted = (uint64_t)llround(s->share * (double)all), has = tiers_of(s->places, s->host)->capacity;
  wanted = whole_units(wanted, FF_PAGE_BYTES);
  if (wanted > has) tiers_grow(s->places, wanted - has);
  return all;
}

void tier_store_leave(tier_store *s, uint32_t shift) {
  if (!s->places) return;
  tiers_forget(s->places, (uint64_t)s->tenant << shift, UINT64_MAX << shift);
  s->set->allocated[s->tenant] = 0;
}

uint64_t tier_store_capacity(const tier_store *s) {
  uint64_t sum = 0;
  if (!s->places) return UINT64_MAX;
  for (uint32_t i = 0; i < s->counted.count; i++) sum += tiers_of(s->places, i)->capacity;
  return sum;
}

static void latest(ps *time, uint32_t *tier, ps other, uint32_t number) {
  if (*time >= other) return;
  *time = other;
  *tier = number;
}

static ps service_of(const tier_drive *d, tier_way way, uint64_t whole) {
  return (ps)llround((way == TIER_WRITES ? d->write_per_byte : d->read_per_byte) * (double)whole);
}

static void add_load(tier_load *load, ps begin, ps service) {
  if (!load->service) load->first = begin;
  load->service += service;
  load->last = begin + service;
}

/* Returns when it has all been read or written. */
static ps take(tier_drive *d, sim_tier *counted, bool write, uint64_t bytes, ps ask, ps at) {
  uint64_t whole = whole_units(bytes, d->unit);
  ps service = service_of(d, write ? TIER_WRITES : TIER_READS, whole);
  server *side = write ? &d->write : &d->read;
  *(write ? &counted->written_bytes : &counted->read_bytes) += whole;
  ps begin = server_take(side, ask, at, service);
  add_load(&d->load[write ? TIER_WRITES : TIER_READS], side->free - service, service);
  return begin + service + d->latency;
}

static ps drive_take(tier_store *s, uint32_t number, bool write, uint64_t bytes, ps ask, ps at) {
  return take(&s->drives[number], &s->counted.of[number], write, bytes, ask, at);
}

static void read_for_gpu(tier_store *s, uint32_t number, uint64_t bytes, ps from) {
  tier_drive *d = &s->drives[number];
  uint64_t piece = bytes < d->unit ? bytes : d->unit;
  ps rest = (ps)llround(d->read_per_byte * (double)(whole_units(bytes, d->unit) - d->unit)),
     last = drive_take(s, number, false, bytes, from, from);
  if (s->gpu_first < last - rest) s->gpu_first = last - rest;
  latest(&s->gpu_last, &s->gpu_tier, last, number);
  s->gpu_bytes += bytes;
  if (s->gpu_piece < piece) s->gpu_piece = piece;
}

/* Carries what the pager has moved. */
static void settle(tier_store *s, ps from) {
  sim_tier *host = &s->counted.of[s->host];
  ps above = from; /* when what goes down has been read in the tier above */
  if (!tiers_waiting(s->places)) return;
  for (uint32_t i = 0; i < s->counted.count; i++) {
    tier *t = tiers_of(s->places, i);
    if (t->to_gpu) read_for_gpu(s, i, t->to_gpu, from);
    if (t->to_host) latest(&s->host_ready, &s->host_tier, drive_take(s, i, false, t->to_host, from, from), i);
    host->written_bytes += t->to_host;
    if (i == s->host) {
      if (t->written) latest(&s->host_ready, &s->host_tier, above, i - 1);
      host->written_bytes += t->written;
      host->read_bytes += t->down;
      above = from;
    } else {
      if (t->written) latest(&s->host_ready, &s->host_tier, drive_take(s, i, true, t->written, above, above), i);
      if (t->down) above = drive_take(s, i, false, t->down, from, from);
    }
    t->to_gpu = t->to_host = t->written = t->down = 0;
  }
  tiers_settled(s->places);
}

void tier_pass(tier_store *s) {
  if (!s->places || !tiers_waiting(s->places)) return;
  for (uint32_t i = 0; i < s->counted.count; i++) {
    tier *t = tiers_of(s->places, i);
    t->to_gpu = t->to_host = t->written = t->down = 0;
  }
  tiers_settled(s->places);
}

static ps held_up(sim_tier *counted, ps time, ps until) {
  if (until <= time) return time;
  counted->waits++;
  counted->wait_ps += until - time;
  return until;
}

ps tier_to_gpu(tier_store *s, uint64_t bytes, ps from, ps begin) {
  if (!s->places) return begin;
  settle(s, from);
  if (!s->gpu_bytes) return begin;
  uint64_t near = bytes > s->gpu_bytes ? bytes - s->gpu_bytes : 0;
  ps ahead = link_transfer(s->link, near), whole = link_transfer(s->link, bytes) - link_transfer(s->link, s->gpu_piece);
  ps first = s->gpu_first > ahead ? s->gpu_first - ahead : 0, last = s->gpu_last > whole ? s->gpu_last - whole : 0;
  s->gpu_bytes = s->gpu_piece = s->gpu_first = s->gpu_last = 0;
  return held_up(&s->counted.of[s->gpu_tier], begin, first > last ? first : last);
}

ps tier_to_host(tier_store *s, ps from, ps end) {
  if (!s->places) return end;
  settle(s, from);
  ps ready = s->host_ready;
  s->host_ready = 0;
  return held_up(&s->counted.of[s->host_tier], end, ready);
}

ps tier_reach(tier_store *s, pager *pager, const pager_unit *unit, bool write, uint64_t address, uint64_t bytes, ps ask,
              ps at) {
  if (!s->places) return at;
  tier_place *place = pager_tier_place(pager, unit, address);
  tier_drive *d = place && place->tier != s->host ? &s->drives[place->tier] : NULL;
  if (d && d->mapped) return drive_take(s, place->tier, write, bytes, ask, at);
  pager_tier_host(pager, unit, write, address);
  place = pager_tier_place(pager, unit, address);
  if (place && tiers_waiting(s->places)) place->ready = tier_to_host(s, at, at);
  return place && place->ready > at ? place->ready : at;
}

ps tier_file_read(tier_store *s, uint64_t bytes, ps from, ps *read) {
  tier_drive *d = s->link->instant ? NULL : s->files;
  *read = from;
  if (!d) s->of_files.read_bytes += bytes;
  if (!d || !bytes) return from;
  uint64_t whole = whole_units(bytes, d->unit), piece = bytes < d->unit ? bytes : d->unit;
  ps rest = (ps)llround(d->read_per_byte * (double)(whole - d->unit)),
     link = link_transfer(s->link, bytes) - link_transfer(s->link, piece);
  *read = take(d, &s->of_files, false, bytes, from, from);
  ps first = *read - rest, last = *read > link ? *read - link : 0;
  return held_up(&s->of_files, from, first > last ? first : last);
}

ps tier_file_write(tier_store *s, uint64_t bytes, ps from, ps end) {
  bool drive = s->files && !s->link->instant;
  if (!drive) s->of_files.written_bytes += bytes;
  if (!drive || !bytes) return end;
  return held_up(&s->of_files, end, take(s->files, &s->of_files, true, bytes, from, from));
}

/* ---- several devices ---- */

void tier_tell(tier_store *s, bool waits, ps now) {
  if (!s->log) return;
  if (s->places) settle(s, now);
  for (uint32_t i = 0; waits && i < TIERS_MAX; i++)
    for (uint32_t way = 0; way < TIER_WAYS; way++) {
      tier_load *load = &s->drives[i].load[way];
      tier_log_say(s->log, s->device, i, (tier_way)way, *load);
      *load = (tier_load){0};
    }
}

void tier_meet(tier_store *s) {
  if (s->log && s->places) tiers_met(s->places);
}

/* What the device has to move of the tier beyond what it has carried; its own it carries now. */
static void charge_owed(tier_store *s, uint32_t device, uint32_t number, ps now) {
  tier_drive *d = &s->drives[number];
  sim_tier *counted = device == s->device ? &s->counted.of[number] : NULL;
  tier_moved owed = tiers_owed(s->places, device, number);
  bool drive = number != s->host;
  uint64_t bytes[TIER_WAYS] = {owed.read, owed.written};
  for (uint32_t way = 0; way < TIER_WAYS; way++) {
    uint64_t whole = drive ? whole_units(bytes[way], d->unit) : bytes[way];
    if (counted) *(way == TIER_WRITES ? &counted->written_bytes : &counted->read_bytes) += whole;
    if (!whole || !drive) continue;
    ps service = service_of(d, (tier_way)way, whole);
    s->owed[number][way] += service;
    if (counted) server_take(way == TIER_WRITES ? &d->write : &d->read, now, now, service);
  }
}

/* How much longer the drive takes than the devices had it for. Where nobody waited for it, its latency comes, too. */
static ps excess(tier_store *s, uint32_t number, tier_way way) {
  tier_load sum = {.service = s->owed[number][way], .first = UINT64_MAX};
  for (uint32_t d = 0; d < TIER_LOG_DEVICES; d++) {
    tier_load load = tier_log_load(s->log, d, number, way);
    if (!load.service) continue;
    sum.service += load.service;
    if (load.first < sum.first) sum.first = load.first;
    if (load.last > sum.last) sum.last = load.last;
  }
  s->owed[number][way] = 0;
  if (!sum.last) return sum.service ? sum.service + s->drives[number].latency : 0;
  return sum.service > sum.last - sum.first ? sum.service - (sum.last - sum.first) : 0;
}

ps tier_charge(tier_store *s, bool waits, ps now) {
  ps longest = 0;
  if (!s->log) return 0;
  if (s->places) settle(s, now); /* what pager_tier_agree has moved */
  for (uint32_t i = 0; i < s->counted.count && s->places; i++)
    for (uint32_t d = 0; d < TIER_LOG_DEVICES; d++) charge_owed(s, d, i, now);
  for (uint32_t i = 0; waits && i < TIERS_MAX; i++)
    for (uint32_t way = 0; way < TIER_WAYS; way++) {
      ps longer = excess(s, i, (tier_way)way);
      if (longer > longest) longest = longer;
    }
  return longest;
}

void tier_store_result(const tier_store *s, sim_tiers *out) {
  *out = s->counted;
  for (uint32_t i = 0; s->places && i < out->count; i++) {
    out->of[i].capacity = tiers_of(s->places, i)->capacity;
    out->of[i].peak_bytes = tiers_of(s->places, i)->peak;
  }
  if (!s->of_files.read_bytes && !s->of_files.written_bytes) return;
  out->of[out->count] = s->of_files;
  snprintf(out->of[out->count].name, sizeof out->of[0].name, SIM_FILES);
  out->count++;
}
