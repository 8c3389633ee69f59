/* SPDX-License-Identifier: Apache-2.0 */
/* Memory stacks and near-data processing (Hsieh et al., ISCA 2016): the state that a simulation of a machine with a
 * group `stacks` has in addition to the device's. Private to machine/.
 *
 *   main SM -- L1 -- L2 --(miss, write)-- tx[stack] -- vault -- rx[stack] --> back        stacks.c
 *   stack's SM -- its L1 --(miss, write)-- own vaults, or cross[own][other] -- vault -- cross[other][own] --> back
 *
 * A warp between ENTER and LEAVE is an *instance* of a candidate. At its first access it stays, or goes (controller.c):
 *
 *   ENTER .. first ACCESS --controller_decide--> stays
 *                                            `-> request packet --> SM of the stack .. LEAVE --> answer packet --> its own SM
 *
 * A warp that is away comes back at LEAVE, with all its accesses over: when a program has ended none is away
 * (sim_check). An instance's home is the stack of its first line. */
#ifndef FF_MACHINE_STACKS_H
#define FF_MACHINE_STACKS_H

#include "base/memory.h"
#include "machine/memory/hierarchy.h"
#include "machine/memory/lru.h"
#include "machine/sim.h"

typedef struct stack_channel { /* one direction of a link */
  server bus;
  ps byte_fixed; /* time of a byte: picoseconds << 20 */
  ps length;     /* of a time window */
  uint64_t bytes;
  ps carried;           /* how long it has carried in all */
  uint64_t window;      /* number of the time window that `in_window` is of */
  ps in_window, before; /* how long it carried in it, and in the one before */
} stack_channel;

/* A row that a bank has open, or will have: from `open` on, when it can take columns, until `closed`. Those of a bank
 * are in the order of time; the last one is not closed yet, its bank has it open. */
typedef struct vault_row {
  int64_t row;
  ps open, closed;
} vault_row;
enum { VAULT_ROWS = 8 }; /* of a bank that requests can still join */
typedef struct vault_bank {
  dram_bank bank;
  vault_row rows[VAULT_ROWS]; /* a ring */
  uint32_t next;              /* of it: is overwritten next */
} vault_bank;
typedef struct stack_vault {
  server bus;
  vault_bank *banks;
} stack_vault;

typedef struct memory_stack {
  stack_channel tx, rx; /* from the GPU, and to it */
  stack_channel *cross; /* to each other stack */
  stack_vault *vaults;
  slots walkers; /* its own page walkers, and their cache */
  lru walk_cache;
  uint32_t pending;                     /* instances that were sent here and have not answered */
  uint64_t registers;                   /* that these have */
  uint32_t running;                     /* of these, warps in its SMs */
  uint32_t first_waiting, last_waiting; /* warps whose request has come and finds no room, by warp.next */
  uint64_t internal;                    /* bytes on the vaults' buses */
} memory_stack;

/* Steps of coherence, for tests that leave one out: the oracle (versions.c) must see it. */
enum { COHERENCE_PUSH = 1, COHERENCE_EMPTY = 2, COHERENCE_DROP_L2 = 4, COHERENCE_DROP_L1 = 8 };

typedef struct stack_instance {     /* of a warp, from ENTER to LEAVE */
  const sim_candidate *candidate;   /* NULL: the warp is in none */
  uint32_t trips, accesses, rounds; /* rounds: trips that it has begun, where these can be told */
  bool learns;                      /* it will be learned from */
  bool first_seen, apart;           /* apart: it has touched more than one stack */
  bool away;
  uint32_t home, to; /* stack of its first line; of the line at which it was sent away */
  bool asks;         /* it may go still */
  /* at the access with that number (from 1) it is decided, again if it stayed before; 0: at none yet */
  uint32_t ask;
  uint32_t out_bytes;       /* away: registers that come back */
  uint64_t *stayed;         /* counter of the reason why it stayed; NULL: it was not decided yet */
  uint32_t accesses_before; /* the decision */
  sm *own;                  /* away: the SM that it comes back to, and its scheduler there */
  struct scheduler *own_scheduler;
  uint32_t began_version; /* away: of all writes that it must see the last one, when it was sent (versions.c) */
  uint32_t pace;          /* index of its candidate's */
  ps left;                /* when it was decided */
  ps drained;             /* away: when the last of its accesses is over */
  FF_VEC(uint64_t) lines; /* learning: all that it touched; away: all that it wrote */
} stack_instance;

typedef struct stacks {
  const machine_spec *spec;
  const timing *t;
  uint32_t count, bits, warps; /* warps: that one stack's SMs hold */
  sim_offload offload;
  sim_map_choice choice;
  const sim_offloading *offloading;
  stack_map baseline;           /* of all addresses that no range has */
  FF_VEC(sim_range_map) ranges; /* sorted by address */
  size_t last;                  /* of ranges: that was asked for */
  memory_stack *items;
  /* the SMs in stacks: of stack i the near_each ones from near_first + i * near_each on */
  uint32_t near_first, near_each;
  divider by_vaults, by_lines, by_banks; /* by_lines: those of a row */
  ps link_latency, pack;
  ps burst[5]; /* of so many sectors on a vault's bus */
  sim_stacks result;
  uint32_t left_out;         /* steps of coherence; none but in tests */
  struct versions *versions; /* versions.c; NULL: nothing is checked */
} stacks;

/* memory: what lives as long as the device. *out: NULL, if the machine has no memory stacks. */
ff_status stacks_create(const machine_spec *spec, const timing *t, arena *memory, const sim_options *options,
                        stacks **out, ff_error *error);
void stacks_free(stacks *k);
/* A line's way to its stack and back, from a slice of the L2 (near == 0) or from an SM in a stack (its sm.stack).
 * Returns when the answer is there. */
ps stacks_access(stacks *k, uint32_t near, uint64_t address, uint32_t sectors, bool write, ps ask, ps at,
                 const tally *tally);
/* What stands below the L1 of an SM in a stack. */
ps stacks_below(stacks *k, const sm *m, const request *r);
void stacks_describe(stacks *k);                                                 /* result.found */
void stacks_result(const stacks *k, const sim_counters *total, sim_stacks *out); /* total: of the run */
/* A packet of the controller: it goes before all others (a virtual channel of its own), and holds them up. */
ps stacks_send_first(stack_channel *c, uint64_t bytes, ps at);
double stacks_load(const stack_channel *c, ps now); /* of its time that it carries, lately: 0 to 1 */
uint32_t stacks_find(stacks *k, uint64_t address);  /* which stack has it */

#endif
