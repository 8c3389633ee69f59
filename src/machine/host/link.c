/* SPDX-License-Identifier: Apache-2.0 */
/* The link between host and device: two directions at once, each a server; copy engines for bulk transfers.
 *
 * Busy time. Requests come in order of time, so between two of them a direction is busy without a break until its
 * server's `free`; link_account adds up the union of both directions before every change, and what of it is at the
 * same time as kernels: before every change of whether any runs, too. */
#include "machine/host/link.h"

#include <math.h>
#include <string.h>

#include "machine/observe/observer.h"

static ps duration(double per_byte, uint64_t bytes) { return (ps)llround(per_byte * (double)bytes); }

void link_server_add(link_server *s, ps work, ps from) {
  if (!work) return;
  const ps last = s->count ? s->pieces[s->count - 1].from : 0;
  if (s->count == LINK_PIECES) {
    s->pieces[s->count - 1].work += work;
    return;
  }
  s->pieces[s->count].work = work;
  s->pieces[s->count++].from = from > last ? from : last;
}

void link_server_settle(link_server *s, ps now) {
  uint32_t over = 0;
  for (; over < s->count; over++) {
    const ps from = s->pieces[over].from, idle = s->bus.free > from ? s->bus.free : from;
    if (now <= idle) break;
    const ps work = s->pieces[over].work, done = now - idle < work ? now - idle : work;
    s->bus.free = idle + done;
    s->pieces[over].work -= done;
    if (s->pieces[over].work) break;
  }
  s->count -= over;
  if (over) memmove(s->pieces, s->pieces + over, s->count * sizeof *s->pieces);
}

/* Of what has begun by then, so much service as `service`, if there is as much. */
static ps take_turns(link_server *s, ps now, ps service) {
  ps turns = 0;
  for (uint32_t n = 0; n < s->count && s->pieces[n].from <= now; n++) {
    const ps left = service - turns, work = s->pieces[n].work, taken = work < left ? work : left;
    s->pieces[n].work -= taken;
    turns += taken;
  }
  return turns;
}

ps link_server_take(link_server *s, ps ask, ps at, ps service) {
  if (!s->count) return server_take(&s->bus, ask, at, service);
  link_server_settle(s, ask);
  const ps turns = take_turns(s, s->bus.free > ask ? s->bus.free : ask, service);
  return server_take(&s->bus, ask, at, service + turns) + turns;
}

ps link_server_free(const link_server *s) {
  ps free = s->bus.free;
  for (uint32_t n = 0; n < s->count; n++)
    if (s->pieces[n].work) free = (free > s->pieces[n].from ? free : s->pieces[n].from) + s->pieces[n].work;
  return free;
}

/* Up to `now`, before which no work beside begins. */
static void account_piece(link_port *p, ps now) {
  host_link *l = p->wire;
  link_server_settle(&l->h2d.server, now);
  link_server_settle(&l->d2h.server, now);
  ps end = l->h2d.server.bus.free > l->d2h.server.bus.free ? l->h2d.server.bus.free : l->d2h.server.bus.free;
  if (end > now) end = now;
  if (end > l->accounted) {
    l->union_busy += end - l->accounted;
    ps from = l->accounted > p->kernels->since ? l->accounted : p->kernels->since;
    ps to = p->kernels->running || end < p->kernels->until ? end : p->kernels->until;
    if (to > from) l->during_kernels += to - from;
  }
  l->accounted = now;
}

/* Where work beside begins next, or `until`. */
static ps beside_begins(const link_server *s, ps after, ps until) {
  for (uint32_t n = 0; n < s->count; n++)
    if (s->pieces[n].from > after && s->pieces[n].from < until) until = s->pieces[n].from;
  return until;
}

void link_account(link_port *p, ps now) {
  host_link *l = p->wire;
  while (now > l->accounted)
    account_piece(p, beside_begins(&l->h2d.server, l->accounted, beside_begins(&l->d2h.server, l->accounted, now)));
}

typedef struct load {
  history_cause cause;
  bool in;
  uint64_t bytes;
  ps service;
} load;

static void note_crossed(link_port *p, const load *what, ps begin, ps end) {
  link_crossed *crossed = &p->crossed[what->in];
  if (!crossed->bytes) crossed->first = begin;
  if (end > crossed->last) crossed->last = end;
  crossed->bytes += what->bytes;
  if (p->history) record_link(p->history, what->cause, what->in, what->bytes, begin, end);
}

static ps direction_take(link_port *p, const load *what, ps ask, ps at) {
  link_direction *d = what->in ? &p->wire->h2d : &p->wire->d2h;
  link_account(p, ask);
  if (what->cause < HISTORY_CAUSE_REMOTE) p->moved[what->in] += what->bytes;
  d->busy += what->service;
  ps served = link_server_take(&d->server, ask, at, what->service);
  note_crossed(p, what, d->server.bus.free - what->service, d->server.bus.free);
  return served;
}

void link_carry_beside(link_port *p, bool in, uint64_t bytes, ps from) {
  link_direction *d = in ? &p->wire->h2d : &p->wire->d2h;
  const load what = {HISTORY_CAUSE_REMOTE, in, bytes, duration(d->per_byte, bytes)};
  const ps begin = from > link_free(d) ? from : link_free(d); /* at the latest */
  d->busy += what.service;
  link_server_add(&d->server, what.service, from);
  note_crossed(p, &what, begin, begin + what.service);
}

ps link_transfer(const link_port *p, uint64_t bytes) { return duration(p->wire->h2d.per_byte, bytes); }

ps link_carry(link_port *p, history_cause cause, bool in, uint64_t bytes, ps from) {
  load what = {cause, in, bytes, duration(in ? p->wire->h2d.per_byte : p->wire->d2h.per_byte, bytes)};
  return direction_take(p, &what, from, from) + what.service;
}

ps link_remote(link_port *p, bool write, uint64_t bytes, ps ask, ps at) {
  load what = {HISTORY_CAUSE_COUNT, !write, bytes,
               duration(write ? p->wire->d2h.per_byte : p->wire->h2d.per_byte, bytes)};
  return direction_take(p, &what, ask, at) + what.service + p->latency;
}

/* How long a measured transfer takes, its latency within: GB/s interpolated over the logarithm of the size; below the
 * table as long as its smallest, above it the largest and the rest at the link's peak. 0: there is no table. */
static double table_ps(const machine_size_table *table, uint64_t bytes, double peak_per_byte) {
  if (!table->count) return 0;
  const machine_size_point *points = table->points, *last = &points[table->count - 1];
  if (bytes >= last->bytes)
    return 1000 / last->gbs * (double)last->bytes + peak_per_byte * (double)(bytes - last->bytes);
  if (bytes <= points[0].bytes) return 1000 / points[0].gbs * (double)points[0].bytes;
  uint32_t i = 1;
  while (points[i].bytes < bytes) i++;
  const machine_size_point *a = &points[i - 1], *b = &points[i];
  double x = log((double)bytes / (double)a->bytes) / log((double)b->bytes / (double)a->bytes);
  return 1000 / (a->gbs + x * (b->gbs - a->gbs)) * (double)bytes;
}

ps link_copy(link_port *p, history_cause cause, bool in, uint64_t bytes, bool pageable, ps from) {
  host_link *l = p->wire;
  const link_direction *d = in ? &l->h2d : &l->d2h;
  server *engine = &p->engines->link[p->two_engines && !in];
  if (!bytes || p->instant) return from;
  double measured = table_ps(p->table, bytes, d->per_byte), staged = pageable ? p->host_per_byte * (double)bytes : 0;
  double own = measured > 0 ? measured : d->per_byte * (double)bytes;
  ps latency = measured > 0 ? 0 : p->latency;
  ps begin = engine->free > from ? engine->free : from;
  load what = {cause, in, bytes, (ps)llround(own)};
  ps first_byte = direction_take(p, &what, begin, begin) + latency;
  /* pageable: piece by piece through host memory */
  engine->free = first_byte + (ps)llround(own > staged ? own : staged);
  return engine->free;
}

ps link_device_copy(link_port *p, uint64_t bytes, ps from) {
  if (p->instant) return from;
  ps begin = server_take(&p->engines->device, from, from, 0) + p->device_latency;
  p->engines->device.free = begin + duration(p->dram_per_byte, bytes);
  return p->engines->device.free;
}
