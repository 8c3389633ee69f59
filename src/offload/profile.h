/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over a recorded program with marks: what its candidate blocks really do, and which maps to memory stacks fit
 * them.
 *
 *   measured    trips, lines per access, misses, active lanes of each candidate, where the compiler has to assume (section 3.1.1)
 *   offsets     whether accesses of an instance lie at the same distance from its first one in all instances (section 3.2.1)
 *   colocation  share of instances that stay in one stack: by the baseline's map, each pair of bits, the best pair
 *               ("oracle"), a linear map for each range; and by the pair that the first 0.1, 0.5 and 1 % of the
 *               instances would have chosen (section
 *               3.2.2, figure 6)
 *
 * An *instance* is a warp's way through a candidate, from ENTER to LEAVE, that makes an access. The pass comes before a
 * simulation that offloads, which is told what it found (offload_profile_offloading). Instances come in the order of
 * the file: block by block, warp by warp.
 *
 * A load *misses* if its line is not in an LRU cache as large as the machine's L2, which all accesses of the program go
 * through in the order of the file. That is an estimate from above of what caches can do: blocks that run side by side
 * take each other's lines.
 *
 * The same file gives the same profile. Memory is bounded by constants, whatever the file has. Addresses that are freed
 * and allocated anew are one range with what they overlap. */
#ifndef FF_OFFLOAD_PROFILE_H
#define FF_OFFLOAD_PROFILE_H

#include "machine/stacks/offload_choice.h"
#include "machine/spec/spec.h"
#include "partition/colocate.h"
#include "trace/file.h"

enum {
  OFFLOAD_PROFILE_CANDIDATES = 4096, /* further ones are not looked at */
  OFFLOAD_PROFILE_RANGES = 8192,     /* further ones have the baseline's map */
  OFFLOAD_PROFILE_LINES = 1 << 16,   /* of an instance, as touched, that count for its colocation */
  OFFLOAD_PROFILE_POSITIONS = 64,    /* accesses of an instance whose distance to the first is looked at */
  OFFLOAD_PROFILE_EARLY = 3,
  OFFLOAD_PROFILE_SIZES = 17, /* of instances: by powers of two of their lines */
};

typedef enum offload_offsets {
  OFFLOAD_OFFSETS_SINGLE, /* instances make one access: there is no distance */
  OFFLOAD_OFFSETS_NONE,   /* at no position */
  OFFLOAD_OFFSETS_SOME,
  OFFLOAD_OFFSETS_ALL, /* at every position, the distance is the same in 95 % of a launch's instances */
} offload_offsets;
const char *offload_offsets_name(offload_offsets offsets); /* "single", "none", "some", "all" */

typedef struct offload_profile_candidate { /* a candidate of a kernel */
  const char *kernel;
  uint32_t kernel_index, pc;
  const sim_candidate *candidate; /* what options.find says of it; NULL: nothing */
  uint64_t instances, without_access;
  uint64_t may_go;       /* instances whose condition holds: those that maps are of */
  uint64_t instructions; /* warp instructions inside */
  /* sum over instances; known: instances whose trips ENTER told; else it is how often the first access came */
  uint64_t trips, trips_least, trips_most, trips_known;
  uint64_t loads, stores;                               /* accesses of a warp; prefetches are neither */
  uint64_t load_lines, store_lines, load_misses, lanes; /* lanes: active ones of loads and stores, summed */
  uint32_t positions, fixed_positions;
  uint64_t distances, fixed_distances; /* all that were looked at; those that were the launch's most frequent */
  offload_offsets offsets;
} offload_profile_candidate;

typedef struct offload_profile_range {
  uint64_t address, bytes;
  char name[64];
  bool touched;
  stack_map linear;
} offload_profile_range;

/* lowest: bit of the pair; worth: else the baseline's map is kept */
typedef struct offload_early {
  double share;
  uint64_t instances;
  uint32_t lowest;
  bool worth;
  double colocation;
} offload_early;

typedef struct offload_profile {
  uint32_t bits; /* of a stack's number */
  bool cut;      /* the file is damaged or ends early: what stands before */
  uint64_t warp_instructions, candidate_instructions, accesses, candidate_accesses, instances;
  offload_profile_candidate *candidates; /* by kernel and pc, as they were launched */
  uint32_t candidate_count;
  offload_profile_range *ranges;
  uint32_t range_count;
  /* shares of instances; uneven: lines of the busiest stack over its fair share */
  double baseline, pairs[STACK_MAP_PAIRS], uneven[STACK_MAP_PAIRS], best, linear;
  /* shares of the instances' lines in the stack of their instance's first one */
  double baseline_beside, pairs_beside[STACK_MAP_PAIRS], linear_beside;
  /* of the same instances: the lines that they touched, without repeats in a row; of 2^i to 2^(i+1) - 1 lines */
  uint64_t lines, by_lines[OFFLOAD_PROFILE_SIZES];
  uint32_t best_lowest;
  bool follows;    /* instances that may go follow indices that they load: sim_offloading */
  bool best_worth; /* else the baseline's map is kept: colocate_worth */
  offload_early early[OFFLOAD_PROFILE_EARLY];
  sim_range_map *oracle, *oracle_linear; /* of the touched ranges */
  uint32_t oracle_count;
} offload_profile;

typedef struct offload_profile_options {
  const machine_spec *spec; /* its L2 and stacks; none: four */
  /* NULL: nothing is known of candidates but their marks */
  const sim_candidate *(*find)(void *context, const trace_launch *launch, uint32_t pc);
  void (*operation)(void *context, const trace_op *op); /* each of the program's, before its records; NULL */
  void *context;
  const trace_file_watch *watch; /* called for each launch and block; NULL */
} offload_profile_options;

/* Reads the file from its beginning, and rewinds it. NULL: it has no marks of candidates. Free with
 * offload_profile_free. */
offload_profile *offload_profile_run(trace_file *file, const offload_profile_options *options);
void offload_profile_free(offload_profile *profile);
/* What simulations are told; find and its context as the options said. Borrows the profile. */
void offload_profile_offloading(const offload_profile *profile, const offload_profile_options *options,
                                sim_offloading *out);

/* Ratios as measured; what was not seen is as assumed: 0 loads miss half of the time. */
double offload_profile_coal_load(const offload_profile_candidate *m);
double offload_profile_coal_store(const offload_profile_candidate *m);
double offload_profile_miss_load(const offload_profile_candidate *m);
double offload_profile_trips(const offload_profile_candidate *m);

#endif
