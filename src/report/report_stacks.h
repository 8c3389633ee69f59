/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of memory stacks (machine/stacks/offload_choice.h) that are sums and ratios of others, once for JSON,
 * CSV, tables, pictures and databases.
 *
 * X(name, unit, value, help): `s` is a sim_stacks, `c` the simulation's sim_counters. */
#ifndef FF_REPORT_STACKS_H
#define FF_REPORT_STACKS_H

#include "machine/observe/result.h"

static inline uint64_t stacks_sum(const sim_stacks *s, const uint64_t *list) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < s->count; i++) sum += list[i];
  return sum;
}

static inline uint64_t stacks_cross(const sim_stacks *s) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < s->count; i++) sum += stacks_sum(s, s->cross[i]);
  return sum;
}

static inline double stacks_ratio(uint64_t part, uint64_t whole) { return whole ? (double)part / (double)whole : 0; }

/* Whole numbers. */
#define REPORT_STACKS_SUMS(X)                                                                \
  X(tx_total_bytes, "B", stacks_sum(s, s->tx), "from the GPU to its memory stacks")          \
  X(rx_total_bytes, "B", stacks_sum(s, s->rx), "from the stacks to the GPU")                 \
  X(cross_total_bytes, "B", stacks_cross(s), "from stack to stack")                          \
  X(internal_total_bytes, "B", stacks_sum(s, s->internal), "on the buses inside the stacks") \
  X(off_chip_bytes, "B", sim_stacks_traffic(s), "over all links: to the stacks, from them, between them")

#define REPORT_STACKS_REALS(X)                                                                              \
  X(link_joule, "J", s->link_joule, "of the links while they carry bits")                                   \
  X(idle_joule, "J", s->idle_joule, "of the links while they do not")                                       \
  X(activation_joule, "J", s->activation_joule, "of opening rows in the stacks")                            \
  X(read_joule, "J", s->read_joule, "of bits read from and written to open rows")                           \
  X(sm_joule, "J", s->sm_joule, "of the SMs, on the GPU and in the stacks")                                 \
  X(joule, "J", sim_stacks_joule(s), "of links, memory and SMs together")                                   \
  X(colocation, "", sim_stacks_colocation(s), "share of the instances whose accesses all lie in one stack") \
  X(offloaded_share, "", stacks_ratio(s->offloaded_instructions, c->warp_instructions),                     \
    "share of the warp instructions that SMs in stacks issued")

#endif
