/* SPDX-License-Identifier: Apache-2.0 */
/* The simulations of one manager on the devices of one program: each has a thread, a device and a host clock of its
 * own, and the clock is to be the same in all of them.
 *
 * They meet at the same operations, in the program's order (asserted at the deep check level): those before which the
 * host, or a stream, may have to wait for a device. Each says a time there before it looks at the others'. So what a
 * thread waits for follows from earlier operations alone, and the times do not depend on which thread is faster. */
#ifndef FF_MACHINE_PEERS_H
#define FF_MACHINE_PEERS_H

#include <stdint.h>

#include "machine/sim.h"
#include "paging/owners.h"
#include "paging/tier_log.h"

/* Says `time` for the operation where all are, and returns the latest that was said. Called without locks. */
uint64_t peers_meet(sim_peers *peers, uint32_t device, uint64_t operation, uint64_t time);
/* Who holds which managed page: what each has noted before a meeting all know behind it. */
owners *peers_owners(sim_peers *peers);
tier_log *peers_tiers(sim_peers *peers);             /* and what each has done with the tiers that they share */
void peers_leave(sim_peers *peers, uint32_t device); /* no longer comes; the others do not wait for it */

#endif
