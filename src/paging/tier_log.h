/* SPDX-License-Identifier: Apache-2.0 */
/* What the devices of a program do with the tiers below GPU memory that they share (tiers.h): the log of one manager's
 * simulations on all devices.
 *
 * Each device notes what it does. Where all devices meet (machine/host/peers.h) the notes are put in one order: of
 * time, of equal times the lower device's first, each device's own in their order. So what the tiers hold behind a
 * meeting depends on no thread's speed.
 *
 * tier_log_note, tier_log_moved and what a device says are called by the device's own thread between two meetings,
 * tier_log_merge once per meeting while all devices wait, and the rest by any thread between two meetings. */
#ifndef FF_PAGING_TIER_LOG_H
#define FF_PAGING_TIER_LOG_H

#include <stddef.h>
#include <stdint.h>

enum { TIERS_MAX = 5 };         /* the host's memory and the others */
enum { TIER_LOG_DEVICES = 16 }; /* as OWNERS_DEVICES */

typedef enum tier_note_kind { TIER_ARRIVE, TIER_PUT, TIER_RAISE, TIER_READ, TIER_DROP } tier_note_kind;

typedef struct tier_note { /* a call of the function of tiers.h with that name */
  uint64_t address;        /* the unit's first byte */
  uint64_t time;           /* ps; raised to that of the device's note before */
  uint32_t bytes;          /* of the unit; RAISE, DROP: 0 */
  uint8_t kind, device;
} tier_note;

typedef struct tier_moved { /* bytes of one tier */
  uint64_t read, written;
} tier_moved;

typedef enum tier_way { TIER_READS, TIER_WRITES, TIER_WAYS } tier_way;

typedef struct tier_load { /* what a drive has been busy with, one way: ps */
  uint64_t service, first, last;
} tier_load;

typedef struct tier_log tier_log;
tier_log *tier_log_create(void);
void tier_log_free(tier_log *log); /* NULL: nothing */

void tier_log_note(tier_log *log, uint32_t device, tier_note note); /* sets note.device */
/* So much more of the tier has moved for what the device has noted, and so has its drive been busy: what others are
 * told at the next meeting. */
void tier_log_moved(tier_log *log, uint32_t device, uint32_t tier, tier_moved moved);
void tier_log_say(tier_log *log, uint32_t device, uint32_t tier, tier_way way, tier_load load);

/* For the deep check: a number of what the device's table holds behind a meeting. */
void tier_log_say_digest(tier_log *log, uint32_t device, uint64_t digest);

void tier_log_merge(tier_log *log); /* asserts that all that have said one have said the same */

/* After a meeting: all that was noted and said before it. It lives until the next. */
const tier_note *tier_log_notes(const tier_log *log, size_t *count);
tier_moved tier_log_moved_by(const tier_log *log, uint32_t device, uint32_t tier);
tier_load tier_log_load(const tier_log *log, uint32_t device, uint32_t tier, tier_way way);

#endif
