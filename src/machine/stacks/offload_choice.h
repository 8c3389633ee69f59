/* SPDX-License-Identifier: Apache-2.0 */
/* Near-data processing, as a simulation is told of it and what it says of it (Hsieh et al., ISCA 2016: TOM). A machine
 * with a group `stacks` has its memory in stacks with SMs in their logic layers; blocks of code that ENTER and LEAVE
 * records mark may run there.
 *
 * A *candidate* is such a block of a kernel; an *instance* is one warp's way through it, from ENTER to LEAVE. */
#ifndef FF_MACHINE_OFFLOAD_H
#define FF_MACHINE_OFFLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "partition/stack_map.h"
#include "trace/stream.h"

enum { SIM_STACKS = 1 << STACK_MAP_BITS };

typedef enum sim_offload {
  SIM_OFFLOAD_NONE,       /* the stacks are memory alone, and the GPU has the SMs that it would have without theirs */
  SIM_OFFLOAD_ALWAYS,     /* each instance whose condition holds, whatever that does to links and stacks */
  SIM_OFFLOAD_CONTROLLED, /* as the controller decides: condition, channels, room at the stack (section 3.3) */
  /* controlled, but sending costs nothing, and all that an instance accesses lies in its stack */
  SIM_OFFLOAD_IDEAL,
  /* the controller of the paper alone: condition, channels above their threshold, warps that the stack holds (sections
   * 3.3 and 4.2); each instance is decided once */
  SIM_OFFLOAD_PAPER,
} sim_offload;

/* What it takes to send a warp. */
typedef struct sim_sending {
  uint32_t in_bytes, out_bytes; /* of a whole warp's live-in and live-out registers */
  double tx_fixed, rx_fixed;    /* equations (3) and (4) */
  uint32_t threshold;           /* trips from which TX + RX is negative; UINT32_MAX: never */
} sim_sending;

/* What the compiler says of a candidate (sections 3.1, 4.2). Saved words of 4 bytes on a channel are -(fixed + trips *
 * trip). */
typedef struct sim_candidate {
  uint32_t pc;                                 /* of the instruction where it is entered: what ENTER and LEAVE carry */
  uint32_t in_bytes, out_bytes;                /* of a whole warp's live-in and live-out registers */
  double tx_fixed, tx_trip, rx_fixed, rx_trip; /* equations (3) and (4) */
  uint32_t threshold;                          /* trips from which the sum is negative; UINT32_MAX: never */
  bool conditional; /* the trips are known at ENTER; else it counts as unconditional with `trips` */
  uint32_t trips;
  /* each trip begins with the access `again_pc`, before all others of it: a warp may go there, too, */
  bool again;
  uint32_t again_pc;
  sim_sending left;   /* with the registers that are live there */
  uint32_t registers; /* of a thread, that it takes where it runs; 0: not known, all of its kernel's */
  bool follows;       /* it has addresses that it loads itself */
} sim_candidate;

/* The trips of an instance: what ENTER says (0: nothing), else the code, else one. */
static inline uint32_t sim_trips_of(const sim_candidate *c, uint32_t said) {
  if (c->conditional && said) return said;
  return c->trips ? c->trips : 1;
}
/* Does its condition hold? Nothing is learned from an instance that stays anyway. */
static inline bool sim_condition(const sim_candidate *c, uint32_t trips) { return trips >= c->threshold; }

/* The map of a range; what has none has the baseline's. */
typedef struct sim_range_map {
  uint64_t address, bytes;
  stack_map map;
} sim_range_map;

/* Borrowed until sim_free. */
typedef struct sim_offloading {
  /* NULL: the code has no such candidate */
  const sim_candidate *(*find)(void *context, const trace_launch *launch, uint32_t pc);
  bool (*any)(void *context, const trace_launch *launch); /* has its kernel candidates? NULL: it may */
  void *context;
  /* instances that may go follow indices that they load: where the first ones lead says nothing of the others */
  bool follows;
  uint64_t instances;          /* of the whole program: what shares to be learned are of; 0: not known */
  const sim_range_map *oracle; /* by address: what all instances would choose, as neighbouring bits; NULL: not made */
  const sim_range_map *oracle_linear; /* the same with any linear maps */
  uint32_t oracle_count, oracle_linear_count;
} sim_offloading;

typedef enum sim_map_kind { SIM_MAP_FIXED, SIM_MAP_LEARNED, SIM_MAP_ORACLE } sim_map_kind;
typedef struct sim_map_choice {
  sim_map_kind kind;
  /* LEARNED, ORACLE: any linear map for each allocation, not two neighbouring bits for all */
  bool linear;
  double share; /* LEARNED: of the instances, that is learned from */
  stack_map fixed;
} sim_map_choice;

/* "baseline", "12:13", "learned", "learned:0.5%", "learned-linear[:SHARE]", "oracle", "oracle-linear"; FF_INVALID.
 * stacks: a power of two. */
ff_status sim_map_read(const char *text, uint64_t stacks, sim_map_choice *choice, ff_error *error);
/* The lowest bit of two neighbouring ones that a map may have at most: lines of all warps that the machine holds at
 * once reach each stack twice. */
uint32_t sim_highest_pair(uint64_t sms, uint64_t threads, uint64_t stacks);
/* "none", "always", "controlled", "ideal", "paper". */
ff_status sim_offload_read(const char *text, sim_offload *offload, ff_error *error);
const char *sim_offload_name(sim_offload offload);
/* May a simulation on a machine of so many stacks (0: none) do that? map: NULL for baseline. FF_INVALID: the machine
 * (its name is for the message) has no stacks; FF_UNSUPPORTED: what is known of the program's candidates is needed, and
 * `offloading` is NULL; or its oracle's maps are, and are not there. */
ff_status sim_offload_check(const char *machine, uint64_t stacks, sim_offload offload, const char *map,
                            const sim_offloading *offloading, ff_error *error);
/* Of a program without candidates: to try whether a simulation can be made. */
extern const sim_offloading sim_offloading_nothing;

/* What a simulation with stacks found. X(name, unit, help) in machine/stacks/stacks.def. */
typedef struct sim_stacks {
  uint32_t count; /* stacks; 0: the machine has none, and all below is nothing */
  sim_offload offload;
  char map[64];   /* as chosen */
  char found[64]; /* learned, oracle: the map of most bytes */
#define X(name, unit, help) uint64_t name;
#include "machine/stacks/stacks.def"
#undef X
  uint64_t tx[SIM_STACKS], rx[SIM_STACKS]; /* bytes from the GPU to the stack, and back */
  uint64_t cross[SIM_STACKS][SIM_STACKS];  /* bytes from stack to stack */
  uint64_t internal[SIM_STACKS];           /* bytes on the stack's own buses */
  /* of links while they carry, and while they do not; of the DRAM */
  double link_joule, idle_joule, activation_joule, read_joule;
  double sm_joule; /* of the SMs, those in stacks too: sm_static_w while kernels run, and their warp instructions */
} sim_stacks;

/* Ratios that the reports show; 0 where the denominator is 0. */
static inline uint64_t sim_stacks_traffic(const sim_stacks *s) { /* off-chip: all links */
  uint64_t sum = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    sum += s->tx[i] + s->rx[i];
    for (uint32_t k = 0; k < s->count; k++) sum += s->cross[i][k];
  }
  return sum;
}
static inline double sim_stacks_joule(const sim_stacks *s) {
  return s->link_joule + s->idle_joule + s->activation_joule + s->read_joule + s->sm_joule;
}
static inline double sim_stacks_colocation(const sim_stacks *s) {
  return s->instances ? (double)s->colocated / (double)s->instances : 0;
}

#endif
