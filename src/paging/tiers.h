/* SPDX-License-Identifier: Apache-2.0 */
/* Tiers: where below GPU memory the newest bytes of a page are. Tier 0 is the nearest to the GPU, each next one is
 * further away; one of them is the host's memory, mostly tier 0, with far memory before it or behind it, and drives
 * behind it. It is given no time: it counts what must move, and the machine carries that (machine/host/tier_store.h).
 *
 * A *place* is room for one unit's bytes in one tier. A unit has a place exactly while the copy outside GPU memory is
 * its newest (pager_unit.cpu_newest) and has bytes; it has one place at most:
 *
 *             tiers_arrive: comes from GPU memory      needed by another unit, least recently moved first
 *        .------------------------------------> tier 0 --------> tier 1 --------> ... --------> the last tier
 *        |                                                          |
 *     no place ---------------------------------> the host's <------'  tiers_raise: the host wants it, from any tier
 *        ^      tiers_put: the host has written it     |
 *        `---------------------------------------------'  tiers_drop, of any tier: the GPU has written it, or it is
 *        freed
 *
 * What the GPU takes (tiers_read) stays where it is until the GPU writes it.
 *
 *     used == the sum of its places' bytes, and used <= capacity, but for the last tier, which takes what is left
 *     over where units do not divide the tiers before it (tiers_check)
 *
 * Several devices of a program have one set of tiers (tiers_share). Each has all of it, as it was at the last meeting
 * of the devices with what it has done itself since; where they meet, it takes that back, newest first, and does again
 * what all have noted, in the log's order (tier_log.h). So all have the same behind it (asserted at the deep check
 * level). */
#ifndef FF_PAGING_TIERS_H
#define FF_PAGING_TIERS_H

#include <stdbool.h>
#include <stdint.h>

#include "paging/tier_log.h"

typedef struct tier_place {
  uint64_t address; /* the unit's first byte */
  uint64_t ready;   /* the machine's: when its bytes will be there that are on their way up */
  uint32_t bytes;   /* 0: the place is free */
  uint32_t tier;
  uint32_t newer, older; /* of its tier; 0: none */
  uint32_t next;         /* in its bucket, or in the list of free places */
} tier_place;

typedef struct tier {
  uint64_t capacity, used, peak; /* bytes */
  uint32_t newest, oldest;       /* its places, by when their units last moved */
  /* bytes to be moved that the machine has not carried yet: read for the GPU, read for the host, written, read for
   * the tier below */
  uint64_t to_gpu, to_host, written, down;
} tier;

typedef struct tiers tiers;

/* Tier 0 first; capacities in bytes, above 0. host: which of them is the host's memory. */
tiers *tiers_create(const uint64_t *capacities, uint32_t count, uint32_t host);
void tiers_free(tiers *t);                 /* NULL: nothing */
void tiers_grow(tiers *t, uint64_t bytes); /* the host's memory becomes larger */
/* They are those of several devices, of which this is one; before anything is in them. The log is borrowed. */
void tiers_share(tiers *t, tier_log *log, uint32_t device);
void tiers_met(tiers *t); /* after tier_log_merge; nothing may wait to be carried */
/* Bytes of the tier that the device has moved, as all together have it, beyond what it has carried since the meeting
 * before: another one's units were in the place that it counted on. */
tier_moved tiers_owed(const tiers *t, uint32_t device, uint32_t number);
uint32_t tiers_count(const tiers *t);
tier *tiers_of(tiers *t, uint32_t number);
/* The unit's place; NULL: it has none. Lives until the next call that changes places. */
tier_place *tiers_find(tiers *t, uint64_t address);
/* `now`: ps, what orders the calls of shared tiers. The unit's bytes have come from the GPU: it is in tier 0, and has
 * moved last. Other units go down for it. */
tier_place *tiers_arrive(tiers *t, uint64_t address, uint32_t bytes, uint64_t now);
/* The unit's bytes are in the host's memory, none of them read from where they were before; it has moved last. Other
 * units go down for it. */
tier_place *tiers_put(tiers *t, uint64_t address, uint32_t bytes, uint64_t now);
/* The host wants the unit: it comes to the host's memory if it is in another tier, and has moved last. NULL: it has no
 * place. */
tier_place *tiers_raise(tiers *t, uint64_t address, uint64_t now);
/* The unit's bytes go to the GPU from where they are, and stay there, too. */
void tiers_read(tiers *t, uint64_t address, uint32_t bytes, uint64_t now);
void tiers_drop(tiers *t, uint64_t address, uint64_t now); /* the place, if there is one, is free */
void tiers_forget(tiers *t, uint64_t bits, uint64_t mask); /* the same of all units with these bits in their address */
bool tiers_waiting(const tiers *t);                        /* there is something that the machine has not carried: */
void tiers_settled(tiers *t);                              /* it has, and has set the numbers to 0 */
void tiers_check(const tiers *t);                          /* the equations, by counting all places */

#endif
