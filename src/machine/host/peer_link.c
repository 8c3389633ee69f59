/* SPDX-License-Identifier: Apache-2.0 */
/* The way to other devices. A transfer is simulated by the device that it comes to, which has the times; the other
 * one's link takes the same bytes after the next meeting, at the time at which they moved, or behind what it carried
 * then. */
#include "machine/host/peer_link.h"

static ps begins(const peer_link *l, uint32_t device, ps from) {
  ps busy = owners_busy(l->owners, device);
  return busy > from ? busy : from;
}

static ps note(peer_link *l, uint32_t device, uint64_t bytes, ps end) {
  ps took = link_transfer(l->port, bytes);
  owners_carried(
      l->owners, l->device,
      (owners_transfer){
          .bytes = bytes, .begins = end > took ? end - took : 0, .ends = end, .from = device, .to = l->device});
  return end;
}

ps peer_carry(peer_link *l, history_cause cause, uint32_t device, uint64_t bytes, ps from) {
  return note(l, device, bytes, link_carry(l->port, cause, true, bytes, begins(l, device, from)));
}

ps peer_bring(peer_link *l, history_cause cause, uint32_t device, uint64_t bytes, ps from) {
  return note(l, device, bytes, link_copy(l->port, cause, true, bytes, false, begins(l, device, from)));
}

void peer_say_busy(peer_link *l) {
  if (l->owners) owners_say_busy(l->owners, l->device, l->port->wire->d2h.bus.free);
}

void peer_charge(peer_link *l) {
  size_t count;
  const owners_transfer *transfers = owners_transfers(l->owners, &count);
  for (size_t i = 0; i < count; i++)
    if (transfers[i].from == l->device)
      link_carry(l->port, HISTORY_CAUSE_FAULT, false, transfers[i].bytes, transfers[i].begins);
}
