/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices of a program hold which unit of managed memory: the owner map that the simulations of one manager on
 * all devices share.
 *
 * Each device notes what comes to its memory and what leaves it. Where all devices meet (machine/host/peers.h) the
 * notes become the map: in order of time, of equal times the lower device's first, each device's own in their order.
 * Between two meetings the map stands still, so that what a device reads there depends on no thread's speed.
 *
 *   TAKES    the unit is the device's alone: it leaves all others
 *   COPIES   the device has it, too (read mostly)
 *   GIVES    the device has it no longer; if nobody has it, it is the host's
 *   WRITES   the device has written it where it is, in another one's memory, for the first time since it is there
 *
 * owners_note, owners_carried and what a device says are called by the device's own thread between two meetings,
 * owners_merge once per meeting while all devices wait, and the rest by any thread between two meetings. */
#ifndef FF_PAGING_OWNERS_H
#define FF_PAGING_OWNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OWNERS_DEVICES = 16 };
typedef uint16_t owners_set; /* a bit per device */

typedef enum owners_kind { OWNERS_TAKES, OWNERS_COPIES, OWNERS_GIVES, OWNERS_WRITES } owners_kind;

#define OWNERS_HOST (-1) /* it came from the host, or without bytes */

typedef struct owners_event {
  uint64_t address; /* the unit's first byte */
  uint64_t time;    /* ps; raised to that of the device's note before */
  uint32_t bytes;   /* of the unit */
  int32_t from;     /* the device whose bytes came; OWNERS_HOST: none */
  uint8_t kind, device;
} owners_event;

typedef struct owners_transfer { /* bytes that one device's link carried out to another one's memory */
  uint64_t bytes, begins;        /* ps */
  uint32_t from, to, by;         /* by: the device that has simulated it: one of the two */
  bool reached;                  /* by lines, without moving: not counted as moved */
} owners_transfer;

typedef struct owners_load { /* what a device's link has carried over the host's port, one way: ps */
  uint64_t bytes, first, last;
} owners_load;

typedef struct owners owners;
owners *owners_create(void);
void owners_free(owners *owners);

void owners_note(owners *owners, uint32_t device, owners_event event); /* sets event.device */
void owners_carried(owners *owners, uint32_t device, owners_transfer transfer);
/* Until when the device's ways out to others carry what they have been given (ps): what others are told after the next
 * meeting. */
typedef enum owners_out { OWNERS_OUT_BUS, OWNERS_OUT_SWITCH, OWNERS_OUTS } owners_out;
void owners_say_busy(owners *owners, uint32_t device, owners_out out, uint64_t until);

void owners_say_load(owners *owners, uint32_t device, bool in, owners_load load);

void owners_merge(owners *owners);

/* After a meeting: all that was noted before it, in the map's order, and what was carried. They live until the next. */
const owners_event *owners_events(const owners *owners, size_t *count);
const owners_transfer *owners_transfers(const owners *owners, size_t *count);
owners_set owners_of(const owners *owners, uint64_t address);               /* of the unit that begins there */
owners_load owners_load_of(const owners *owners, uint32_t device, bool in); /* that it said before the meeting */
uint64_t owners_busy(const owners *owners, uint32_t device, owners_out out);

#endif
