/* SPDX-License-Identifier: Apache-2.0 */
/* The ways between GPUs. GPUs that the machine file does not number (more are asked for than it has) are refused before
 * anything asks here (session/session.c). */
#include "machine/spec/links.h"

int machine_root_of(const machine_spec *spec, uint32_t gpu) {
  for (uint32_t r = 0; r < spec->roots.count; r++)
    if (spec->roots.masks[r] >> gpu & 1) return (int)r;
  return -1;
}

machine_path machine_path_between(const machine_spec *spec, uint32_t one, uint32_t other) {
  machine_path path = {.way = MACHINE_WAY_BUS, .gbs = spec->link_h2d_gbs, .latency_us = spec->link_latency_us};
  for (uint64_t i = 0; i < spec->joins.count; i++) {
    const machine_join *join = &spec->joins.joins[i];
    if ((join->gpus[0] == one && join->gpus[1] == other) || (join->gpus[0] == other && join->gpus[1] == one))
      return (machine_path){MACHINE_WAY_JOINED, join->gbs, join->latency_us};
  }
  if (spec->switch_gbs > 0) return (machine_path){MACHINE_WAY_SWITCH, spec->switch_gbs, spec->switch_latency_us};
  if (machine_root_of(spec, one) != machine_root_of(spec, other) && !spec->root_peers) path.way = MACHINE_WAY_HOST;
  return path;
}

bool machine_are_peers(const machine_spec *spec, uint32_t one, uint32_t other) {
  return one != other && machine_path_between(spec, one, other).way != MACHINE_WAY_HOST;
}
