/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to other devices of the program, as one device's simulation has them (machine/spec/links.h): managed pages
 * that come from their memory, copies between two devices, accesses to their memory line by line; and what others have
 * carried in and out of this one's.
 *
 * Who moves bytes simulates it: on its own end of the way at once, at the other end after the next meeting of the
 * devices, at the time when they moved (peer_charge). Copies that both devices' simulations have are not told. */
#ifndef FF_MACHINE_HOST_PEER_LINK_H
#define FF_MACHINE_HOST_PEER_LINK_H

#include "machine/host/link.h"
#include "machine/spec/links.h"
#include "paging/owners.h"

typedef struct peer_way { /* to one other device */
  machine_way way;
  double per_byte; /* ps; JOINED, SWITCH */
  ps latency;
  link_server directions[2]; /* JOINED: out, in */
  /* accesses by lines since the last meeting: read and written bytes, when the first and the last was */
  uint64_t reached[2];
  ps reached_first, reached_last;
} peer_way;

typedef struct peer_link {
  uint32_t device;
  const machine_spec *spec;
  link_port *port; /* to the host, and over it to other devices */
  owners *owners;  /* NULL: there is one device */
  peer_way ways[OWNERS_DEVICES];
  link_server ports[2]; /* SWITCH: this device's, out and in */
} peer_link;

void peer_link_begin(peer_link *l);             /* of spec */
owners_set peer_link_peers(const peer_link *l); /* whose memory kernels can reach */

/* A page, or pages that move in one piece, from the device's memory; returns when the last byte is here. No earlier
 * than `from`, and than the other end has carried what it was given before the last meeting. */
ps peer_carry(peer_link *l, history_cause cause, uint32_t device, uint64_t bytes, ps from);
/* The same by a copy engine, with the way's latency. */
ps peer_bring(peer_link *l, history_cause cause, uint32_t device, uint64_t bytes, ps from);
/* This device's part of a copy to it (in), or out of it, from or to the device; -1: it is not known which. */
ps peer_copies(peer_link *l, bool in, int device, uint64_t bytes, bool pageable, ps from);
/* An access by line to the device's memory; as link_remote. */
ps peer_reach(peer_link *l, uint32_t device, bool write, uint64_t bytes, ps ask, ps at);
/* The same to multicast memory of the devices, through the switch, which sends copies on and adds up: what is written
 * goes up once and comes down at each of them, what is read goes up at each of them and comes down here once. */
ps peer_reach_team(peer_link *l, owners_set team, bool write, uint64_t bytes, ps ask, ps at);

/* Before a meeting, and after it. `waits`: the host waits there: then peer_charge returns how much longer it does, as
 * the ports of the host that several devices share had to carry more than they could since the last such meeting. */
void peer_tell(peer_link *l, bool waits);
ps peer_charge(peer_link *l, bool waits);

#endif
