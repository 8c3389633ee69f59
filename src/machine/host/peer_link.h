/* SPDX-License-Identifier: Apache-2.0 */
/* The way to other devices of the program, as one device's simulation has it: what brings managed pages here from
 * their memory, and what they have taken from this one's. */
#ifndef FF_MACHINE_HOST_PEER_LINK_H
#define FF_MACHINE_HOST_PEER_LINK_H

#include "machine/host/link.h"
#include "paging/owners.h"

typedef struct peer_link {
  uint32_t device;
  link_port *port; /* to the host, and over it to other devices */
  owners *owners;  /* NULL: there is one device */
} peer_link;

/* `bytes` from the device's memory, in one piece; returns when the last one is here. Over both links at once: no
 * earlier than `from`, and than the other one's link has carried what it was given before the last meeting. */
ps peer_carry(peer_link *l, history_cause cause, uint32_t device, uint64_t bytes, ps from);
/* The same by a copy engine. */
ps peer_bring(peer_link *l, history_cause cause, uint32_t device, uint64_t bytes, ps from);
void peer_say_busy(peer_link *l); /* before a meeting */
void peer_charge(peer_link *l);   /* after it: what others have carried out of this device's memory since the last */

#endif
