/* SPDX-License-Identifier: Apache-2.0 */
/* The link between host and device: two directions at once, each a server; copy engines for bulk transfers.
 *
 * Busy time. Requests come in order of time, so between two of them a direction is busy without a break until its
 * server's `free`; link_account adds up the union of both directions before every change. */
#include <math.h>

#include "machine/model.h"

static ps duration(double per_byte, uint64_t bytes) { return (ps)llround(per_byte * (double)bytes); }

void link_init(sim *s) {
  s->link.h2d.per_byte = s->t.h2d_per_byte;
  s->link.d2h.per_byte = s->t.d2h_per_byte;
}

void link_account(sim *s, ps now) {
  host_link *l = &s->link;
  if (now <= l->accounted) return;
  ps end = l->h2d.bus.free > l->d2h.bus.free ? l->h2d.bus.free : l->d2h.bus.free;
  if (end > now) end = now;
  if (end > l->accounted) l->union_busy += end - l->accounted;
  l->accounted = now;
}

static ps direction_take(sim *s, link_direction *d, ps ask, ps at, ps service) {
  link_account(s, ask);
  d->busy += service;
  return server_take(&d->bus, ask, at, service);
}

ps link_carry(sim *s, bool in, uint64_t bytes, ps from) {
  link_direction *d = in ? &s->link.h2d : &s->link.d2h;
  ps service = duration(d->per_byte, bytes);
  return direction_take(s, d, from, from, service) + service;
}

ps link_remote(sim *s, bool write, uint64_t bytes, ps ask, ps at) {
  link_direction *d = write ? &s->link.d2h : &s->link.h2d;
  ps service = duration(d->per_byte, bytes);
  return direction_take(s, d, ask, at, service) + service + s->t.link_latency;
}

/* The table's GB/s for a size: interpolated over the logarithm of the size; 0: the table does not speak of it. */
static double table_gbs(const machine_size_table *table, uint64_t bytes) {
  if (!table->count || bytes > table->points[table->count - 1].bytes) return 0;
  if (bytes <= table->points[0].bytes) /* as long as the smallest transfer that was measured */
    return table->points[0].gbs * (double)bytes / (double)table->points[0].bytes;
  uint32_t i = 1;
  while (table->points[i].bytes < bytes) i++;
  const machine_size_point *a = &table->points[i - 1], *b = &table->points[i];
  double x = log((double)bytes / (double)a->bytes) / log((double)b->bytes / (double)a->bytes);
  return a->gbs + x * (b->gbs - a->gbs);
}

ps link_copy(sim *s, bool in, uint64_t bytes, bool pageable, ps from) {
  host_link *l = &s->link;
  link_direction *d = in ? &l->h2d : &l->d2h;
  server *engine = &l->engines[s->spec->copy_engines > 1 && !in];
  double per_byte = d->per_byte, gbs = table_gbs(&s->spec->link_table, bytes);
  ps latency = s->t.link_latency;
  if (!bytes) return from;
  if (gbs > 0) { /* measured transfers hold their latency */
    per_byte = 1000 / gbs;
    latency = 0;
  }
  if (pageable && per_byte < s->t.host_per_byte) per_byte = s->t.host_per_byte; /* staged through host memory */
  ps begin = engine->free > from ? engine->free : from;
  ps service = duration(per_byte, bytes);
  ps first_byte = direction_take(s, d, begin, begin, service) + latency;
  engine->free = first_byte + service;
  return engine->free;
}

ps link_device_copy(sim *s, uint64_t bytes, ps from) {
  ps begin = server_take(&s->link.device, from, from, 0) + s->t.launch;
  s->link.device.free = begin + duration(s->t.dram_per_byte, bytes);
  return s->link.device.free;
}
