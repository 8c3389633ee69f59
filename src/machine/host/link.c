/* SPDX-License-Identifier: Apache-2.0 */
/* The link between host and device: two directions at once, each a server; copy engines for bulk transfers.
 *
 * Busy time. Requests come in order of time, so between two of them a direction is busy without a break until its
 * server's `free`; link_account adds up the union of both directions before every change, and what of it is beside kernels: before every
 * change of whether any runs, too. */
#include <math.h>

#include "machine/simulation.h"

static ps duration(double per_byte, uint64_t bytes) { return (ps)llround(per_byte * (double)bytes); }

void link_init(sim *s) {
  s->d->link.h2d.per_byte = s->t.h2d_per_byte;
  s->d->link.d2h.per_byte = s->t.d2h_per_byte;
}

void link_account(sim *s, ps now) {
  host_link *l = &s->d->link;
  if (now <= l->accounted) return;
  ps end = l->h2d.bus.free > l->d2h.bus.free ? l->h2d.bus.free : l->d2h.bus.free;
  if (end > now) end = now;
  if (end > l->accounted) {
    l->union_busy += end - l->accounted;
    ps from = l->accounted > s->dispatch.kernels.since ? l->accounted : s->dispatch.kernels.since;
    ps to = s->dispatch.kernels.running || end < s->dispatch.kernels.until ? end : s->dispatch.kernels.until;
    if (to > from) l->beside_kernels += to - from;
  }
  l->accounted = now;
}

typedef struct load { history_cause cause; bool in; uint64_t bytes; ps service; } load;

static ps direction_take(sim *s, const load *what, ps ask, ps at) {
  link_direction *d = what->in ? &s->d->link.h2d : &s->d->link.d2h;
  link_account(s, ask);
  d->busy += what->service;
  ps served = server_take(&d->bus, ask, at, what->service);
  if (s->observer.history) record_link(s, what->cause, what->in, what->bytes, d->bus.free - what->service, d->bus.free);
  return served;
}

ps link_transfer(const sim *s, uint64_t bytes) { return duration(s->d->link.h2d.per_byte, bytes); }

ps link_carry(sim *s, history_cause cause, bool in, uint64_t bytes, ps from) {
  load what = {cause, in, bytes, duration(in ? s->d->link.h2d.per_byte : s->d->link.d2h.per_byte, bytes)};
  return direction_take(s, &what, from, from) + what.service;
}

ps link_remote(sim *s, bool write, uint64_t bytes, ps ask, ps at) {
  load what = {HISTORY_CAUSE_COUNT, !write, bytes, duration(write ? s->d->link.d2h.per_byte : s->d->link.h2d.per_byte, bytes)};
  return direction_take(s, &what, ask, at) + what.service + s->t.link_latency;
}

/* How long a measured transfer takes, its latency within: GB/s interpolated over the logarithm of the size; below the
 * table as long as its smallest, above it the largest and the rest at the link's peak. 0: there is no table. */
static double table_ps(const machine_size_table *table, uint64_t bytes, double peak_per_byte) {
  if (!table->count) return 0;
  const machine_size_point *points = table->points, *last = &points[table->count - 1];
  if (bytes >= last->bytes) return 1000 / last->gbs * (double)last->bytes + peak_per_byte * (double)(bytes - last->bytes);
  if (bytes <= points[0].bytes) return 1000 / points[0].gbs * (double)points[0].bytes;
  uint32_t i = 1;
  while (points[i].bytes < bytes) i++;
  const machine_size_point *a = &points[i - 1], *b = &points[i];
  double x = log((double)bytes / (double)a->bytes) / log((double)b->bytes / (double)a->bytes);
  return 1000 / (a->gbs + x * (b->gbs - a->gbs)) * (double)bytes;
}

ps link_copy(sim *s, history_cause cause, bool in, uint64_t bytes, bool pageable, ps from) {
  host_link *l = &s->d->link;
  const link_direction *d = in ? &l->h2d : &l->d2h;
  server *engine = &l->engines[s->spec->copy_engines > 1 && !in];
  if (!bytes || s->instant) return from;
  double measured = table_ps(&s->spec->link_table, bytes, d->per_byte), staged = pageable ? s->t.host_per_byte * (double)bytes : 0;
  double own = measured > 0 ? measured : d->per_byte * (double)bytes;
  ps latency = measured > 0 ? 0 : s->t.link_latency;
  ps begin = engine->free > from ? engine->free : from;
  load what = {cause, in, bytes, (ps)llround(own)};
  ps first_byte = direction_take(s, &what, begin, begin) + latency;
  engine->free = first_byte + (ps)llround(own > staged ? own : staged); /* pageable: piece by piece through host memory */
  return engine->free;
}

ps link_device_copy(sim *s, uint64_t bytes, ps from) {
  if (s->instant) return from;
  ps begin = server_take(&s->d->link.device, from, from, 0) + s->t.launch;
  s->d->link.device.free = begin + duration(s->t.dram_per_byte, bytes);
  return s->d->link.device.free;
}
