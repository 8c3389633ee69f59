/* SPDX-License-Identifier: Apache-2.0 */
/* Tiers below GPU memory, in time: paging/tiers.h says what moves, here it takes the tier's latency and bandwidth. */
#ifndef FF_MACHINE_HOST_TIER_STORE_H
#define FF_MACHINE_HOST_TIER_STORE_H

#include "machine/observe/result.h"
#include "machine/sim.h"
#include "machine/spec/spec.h"
#include "machine/time.h"
#include "paging/pager.h"

typedef struct tier_drive { /* one tier that is not the host's memory */
  server read, write;
  double read_per_byte, write_per_byte; /* picoseconds */
  ps latency;
  uint64_t unit;
  bool mapped;
  tier_load load[TIER_WAYS]; /* several devices: since the last meeting at which the host waited */
} tier_drive;

typedef struct tier_set { /* of a device (tenants/device.h): all programs on it share them */
  tiers *places;          /* owned; NULL: the host's memory holds everything */
  tier_drive drives[TIERS_MAX];
  uint64_t allocated[SIM_TENANTS]; /* bytes of each program, which must have places */
} tier_set;

typedef struct tier_store {
  tier_set *set; /* the device's, of which it is this one's: */
  uint32_t tenant;
  tiers *places;      /* the set's */
  tier_drive *drives; /* the set's; [host] is not used: it is as fast as the link */
  uint32_t host;      /* which of them is the host's memory */
  double share;       /* of the most that was allocated so far, for the host's memory; 0: it has its size */
  const struct link_port *link;
  /* what the devices of a program do with tiers that they share, of which this is one; NULL: it is alone */
  tier_log *log;
  uint32_t device;
  /* its own state */
  sim_tiers counted;
  tier_drive *files; /* the drive that files are on: one of `drives`; NULL: the machine has none */
  sim_tier of_files; /* what was copied from and to files */
  /* of what has been read for the GPU and no transfer has taken yet: its bytes, when the first piece was there and when
   * the last, which is so large, and the tier that was last */
  uint64_t gpu_bytes, gpu_piece;
  ps gpu_first, gpu_last;
  uint32_t gpu_tier;
  /* when what the host waits for is there and has room, and the tier that was last */
  ps host_ready;
  uint32_t host_tier;
  ps owed[TIERS_MAX][TIER_WAYS]; /* of all devices, that the host has still to wait for */
} tier_store;

void tier_store_on(tier_store *s, tier_set *set, uint32_t tenant); /* which program on whose tiers it is: at first */
/* host_memory: bytes; 0: the machine's. share: of what is allocated, instead; 0: none. FF_INVALID: the machine has no
 * tier but the host's memory. */
ff_status tier_store_begin(tier_store *s, const machine_spec *spec, uint64_t host_memory, double share,
                           ff_error *error);
/* Where files are: on the machine's last paged tier below the host's memory. After tier_store_begin. */
void tier_store_files(tier_store *s, const machine_spec *spec);
void tier_set_free(tier_set *set);
/* So much the program has allocated. Returns what all on the device have; the host's memory grows if it is a share of
 * that. */
uint64_t tier_store_allocated(tier_store *s, uint64_t bytes);
/* The program is over: what it has in the tiers is free. Its addresses have its number from this bit on. */
void tier_store_leave(tier_store *s, uint32_t shift);
uint64_t tier_store_capacity(const tier_store *s); /* of all tiers; UINT64_MAX: there are none */
/* `bytes` are about to go to the GPU, no earlier than `begin`; what must be read for that is asked for at `from`.
 * Returns when their transfer can begin so that it never waits: what lies in the host's memory goes first, then each
 * piece when it has been read. */
ps tier_to_gpu(tier_store *s, uint64_t bytes, ps from, ps begin);
/* What the host has been given, or touches, from `from` on: a transfer that ends at `end`, or none. Returns when that
 * is over, room has been made for it, and what had gone down is there. */
ps tier_to_host(tier_store *s, ps from, ps end);
/* What has moved and was not carried takes neither time nor anything of the drives. */
void tier_pass(tier_store *s);
/* The GPU reads or writes `bytes` of the unit where it is. Returns when the link can be asked for them: a unit in a
 * tier that is not mapped comes up first. */
ps tier_reach(tier_store *s, pager *pager, const pager_unit *unit, bool write, uint64_t address, uint64_t bytes, ps ask,
              ps at);
/* `bytes` of a file are to be copied to the GPU, which is asked for at `from`. Returns when that can begin so that the
 * link never waits for the drive; *read: when the drive has read the last byte. */
ps tier_file_read(tier_store *s, uint64_t bytes, ps from, ps *read);
/* A copy from the GPU to a file, from `from` to `end`: returns when the drive, which takes it from the moment on at
 * which the copy begins, has written it, too. */
ps tier_file_write(tier_store *s, uint64_t bytes, ps from, ps end);

/* Several devices of a program. Each has the drives as if alone; where the host waits, it waits longer by what all of
 * them together took more than that, and for what moved as the devices were in each other's way (tiers_owed), which is
 * carried there, by the device that owes it.
 *
 * Before a meeting; after it, what the tiers hold; and after that what is charged: tier_charge returns how much longer
 * the host waits, which is the same for all devices. */
void tier_tell(tier_store *s, bool waits, ps now);
void tier_meet(tier_store *s);
ps tier_charge(tier_store *s, bool waits, ps now);

void tier_store_result(const tier_store *s, sim_tiers *out);

#endif
