/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to other devices, and the ports of the host that they share.
 *
 *     BUS      both PCIe links at once: begins when this one's way in and the other one's way out are free
 *     JOINED   the two devices' own link, a server for each direction
 *     SWITCH   a server for each direction of each device's port
 *     HOST     pages: out of the other one's link, then in over this one's; copies: both at once, and the latency twice
 *
 * A shared port. Each device's link is simulated as if the port were its own. Where the host waits, what all devices
 * below it have carried over it since the last time takes sum(bytes) / root_gbs; if that is longer than the time from
 * the first byte to the last, the host waits for the rest, too. */
#include "machine/host/peer_link.h"

#include <math.h>

#include "machine/observe/observer.h"

void peer_link_begin(peer_link *l) {
  for (uint32_t d = 0; d < OWNERS_DEVICES; d++) {
    if (d == l->device) continue;
    machine_path path = machine_path_between(l->spec, l->device, d);
    l->ways[d] = (peer_way){
        .way = path.way, .per_byte = path.gbs > 0 ? 1000 / path.gbs : 0, .latency = (ps)llround(path.latency_us * 1e6)};
  }
}

owners_set peer_link_peers(const peer_link *l) {
  owners_set peers = 0;
  for (uint32_t d = 0; d < OWNERS_DEVICES; d++)
    if (machine_are_peers(l->spec, l->device, d)) peers |= (owners_set)(1u << d);
  return peers;
}

static bool own_wires(const peer_way *w) { return w->way == MACHINE_WAY_JOINED || w->way == MACHINE_WAY_SWITCH; }

static link_server *server_of(peer_link *l, peer_way *w, bool in) {
  return w->way == MACHINE_WAY_JOINED ? &w->directions[in] : &l->ports[in];
}

/* JOINED, SWITCH: returns when the last byte has passed. */
static ps wires_take(peer_link *l, uint32_t device, history_cause cause, bool in, uint64_t bytes, ps from) {
  peer_way *w = &l->ways[device];
  ps service = (ps)llround(w->per_byte * (double)bytes);
  ps begin = link_server_take(server_of(l, w, in), from, from, service);
  if (cause < HISTORY_CAUSE_REMOTE) l->port->moved[in] += bytes;
  if (l->port->history) record_peer(l->port->history, cause, in, bytes, begin, begin + service);
  return begin + service;
}

/* When the other end is free. */
static ps other_free(const peer_link *l, uint32_t device, ps from) {
  const peer_way *w = &l->ways[device];
  if (w->way == MACHINE_WAY_JOINED) return from;
  ps busy = owners_busy(l->owners, device, w->way == MACHINE_WAY_SWITCH ? OWNERS_OUT_SWITCH : OWNERS_OUT_BUS);
  return busy > from ? busy : from;
}

/* Over the bus to a device below the same port: nothing of it passes that. */
static void crosses_no_root(peer_link *l, uint32_t device, bool in, uint64_t bytes) {
  if (machine_root_of(l->spec, l->device) == machine_root_of(l->spec, device)) l->port->crossed[in].bytes -= bytes;
}

/* One move, simulated by the device that it comes to; `copies`: by a copy engine. */
static ps move(peer_link *l, history_cause cause, uint32_t device, uint64_t bytes, bool copies, ps from) {
  const peer_way *w = &l->ways[device];
  ps begin = other_free(l, device, from), end;
  owners_transfer told = {.bytes = bytes, .from = device, .to = l->device, .by = l->device};
  if (own_wires(w)) {
    end = wires_take(l, device, cause, true, bytes, begin);
    told.begins = end - (ps)llround(w->per_byte * (double)bytes);
    if (copies) end += w->latency;
  } else {
    ps took = link_transfer(l->port, bytes), out = w->way == MACHINE_WAY_HOST ? begin + took : begin;
    end = copies ? link_copy(l->port, cause, true, bytes, false, out) : link_carry(l->port, cause, true, bytes, out);
    crosses_no_root(l, device, true, bytes);
    told.begins = w->way == MACHINE_WAY_HOST ? begin : end > took ? end - took : 0;
  }
  owners_carried(l->owners, l->device, told);
  return end;
}

ps peer_carry(peer_link *l, history_cause cause, uint32_t device, uint64_t bytes, ps from) {
  return move(l, cause, device, bytes, false, from);
}

ps peer_bring(peer_link *l, history_cause cause, uint32_t device, uint64_t bytes, ps from) {
  return move(l, cause, device, bytes, true, from);
}

ps peer_copies(peer_link *l, bool in, int device, uint64_t bytes, bool pageable, ps from) {
  const peer_way *w = device >= 0 ? &l->ways[device] : NULL;
  if (w && own_wires(w)) return wires_take(l, (uint32_t)device, HISTORY_CAUSE_COPY, in, bytes, from) + w->latency;
  ps end = link_copy(l->port, HISTORY_CAUSE_COPY, in, bytes, pageable, from);
  if (w) crosses_no_root(l, (uint32_t)device, in, bytes);
  return w && w->way == MACHINE_WAY_HOST ? end + l->port->latency : end;
}

static void note_reached(peer_way *w, bool write, uint64_t bytes, ps ask) {
  if (!w->reached[0] && !w->reached[1]) w->reached_first = ask;
  if (w->reached_last < ask) w->reached_last = ask;
  w->reached[write] += bytes;
}

ps peer_reach_team(peer_link *l, owners_set team, bool write, uint64_t bytes, ps ask, ps at) {
  ps service = (ps)llround(1000 / l->spec->switch_gbs * (double)bytes),
     latency = (ps)llround(l->spec->switch_latency_us * 1e6);
  for (uint32_t d = 0; d < OWNERS_DEVICES; d++)
    if (d != l->device && team >> d & 1) note_reached(&l->ways[d], write, bytes, ask);
  ps served = link_server_take(&l->ports[!write], ask, at, service);
  if (team >> l->device & 1) { /* its own memory is reached through the switch, too */
    ps own = link_server_take(&l->ports[write], ask, at, service);
    if (own > served) served = own;
  }
  if (l->port->history) history_spread(l->port->history, HISTORY_remote_bytes, served, served + service, bytes);
  return served + service + latency;
}

ps peer_reach(peer_link *l, uint32_t device, bool write, uint64_t bytes, ps ask, ps at) {
  peer_way *w = &l->ways[device];
  note_reached(w, write, bytes, ask);
  if (own_wires(w)) {
    ps service = (ps)llround(w->per_byte * (double)bytes);
    ps served = link_server_take(server_of(l, w, !write), ask, at, service);
    if (l->port->history) history_spread(l->port->history, HISTORY_remote_bytes, served, served + service, bytes);
    return served + service + w->latency;
  }
  ps done = link_remote(l->port, write, bytes, ask, at);
  crosses_no_root(l, device, !write, bytes);
  return done;
}

static void tell_reached(peer_link *l, uint32_t device) {
  peer_way *w = &l->ways[device];
  for (uint32_t write = 0; write < 2; write++)
    if (w->reached[write])
      owners_carried(l->owners, l->device,
                     (owners_transfer){.bytes = w->reached[write],
                                       .begins = w->reached_first,
                                       .from = write ? l->device : device,
                                       .to = write ? device : l->device,
                                       .by = l->device,
                                       .reached = true});
  w->reached[0] = w->reached[1] = w->reached_last = 0;
}

void peer_tell(peer_link *l, bool waits) {
  if (!l->owners) return;
  owners_say_busy(l->owners, l->device, OWNERS_OUT_BUS, link_free(&l->port->wire->d2h));
  owners_say_busy(l->owners, l->device, OWNERS_OUT_SWITCH, link_server_free(&l->ports[0]));
  for (uint32_t d = 0; d < OWNERS_DEVICES; d++) tell_reached(l, d);
  for (uint32_t in = 0; in < 2; in++) {
    link_crossed *own = &l->port->crossed[in];
    owners_say_load(l->owners, l->device, in,
                    waits ? (owners_load){.bytes = own->bytes, .first = own->first, .last = own->last}
                          : (owners_load){0});
    if (waits) *own = (link_crossed){0};
  }
}

static void wires_beside(peer_link *l, peer_way *w, bool in, const owners_transfer *t) {
  link_server *server = server_of(l, w, in);
  const ps free = link_server_free(server), begin = free > t->begins ? free : t->begins;
  const ps service = (ps)llround(w->per_byte * (double)t->bytes);
  link_server_add(server, service, t->begins);
  if (l->port->history) record_peer(l->port->history, HISTORY_CAUSE_REMOTE, in, t->bytes, begin, begin + service);
}

/* The end of a transfer that another device has simulated. */
static void charge(peer_link *l, const owners_transfer *t) {
  bool in = t->to == l->device;
  uint32_t other = in ? t->from : t->to;
  if (own_wires(&l->ways[other])) {
    if (t->reached) wires_beside(l, &l->ways[other], in, t);
    else wires_take(l, other, HISTORY_CAUSE_FAULT, in, t->bytes, t->begins);
    return;
  }
  if (t->reached) link_carry_beside(l->port, in, t->bytes, t->begins);
  else link_carry(l->port, HISTORY_CAUSE_FAULT, in, t->bytes, t->begins);
  crosses_no_root(l, other, in, t->bytes);
}

/* How much longer the port's traffic took than the devices below it had it for. */
static ps root_excess(const peer_link *l, uint32_t root, bool in) {
  owners_load sum = {.first = UINT64_MAX};
  uint32_t devices = 0;
  for (uint32_t d = 0; d < OWNERS_DEVICES; d++) {
    owners_load load = owners_load_of(l->owners, d, in);
    if (!(l->spec->roots.masks[root] >> d & 1) || !load.bytes) continue;
    devices++;
    sum.bytes += load.bytes;
    if (load.first < sum.first) sum.first = load.first;
    if (load.last > sum.last) sum.last = load.last;
  }
  ps takes = (ps)llround(1000 / l->spec->root_gbs * (double)sum.bytes);
  return devices > 1 && takes > sum.last - sum.first ? takes - (sum.last - sum.first) : 0;
}

ps peer_charge(peer_link *l, bool waits) {
  size_t count;
  const owners_transfer *transfers = owners_transfers(l->owners, &count);
  for (size_t i = 0; i < count; i++)
    if (transfers[i].by != l->device && (transfers[i].from == l->device || transfers[i].to == l->device))
      charge(l, &transfers[i]);
  ps longest = 0;
  for (uint32_t root = 0; waits && l->spec->root_gbs > 0 && root < l->spec->roots.count; root++)
    for (uint32_t in = 0; in < 2; in++) {
      ps excess = root_excess(l, root, in);
      if (excess > longest) longest = excess;
    }
  return longest;
}
