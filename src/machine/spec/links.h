/* SPDX-License-Identifier: Apache-2.0 */
/* How the GPUs of a system reach each other, of what a machine file says under `links:`. */
#ifndef FF_MACHINE_SPEC_LINKS_H
#define FF_MACHINE_SPEC_LINKS_H

#include <stdbool.h>

#include "machine/spec/spec.h"

typedef enum machine_way {
  MACHINE_WAY_BUS,    /* over both GPUs' PCIe links at once */
  MACHINE_WAY_JOINED, /* over a link that only these two have */
  MACHINE_WAY_SWITCH, /* over both GPUs' ports of a switch */
  MACHINE_WAY_HOST    /* over both PCIe links, one after the other, through host memory */
} machine_way;

typedef struct machine_path {
  machine_way way;
  double gbs, latency_us; /* of JOINED and SWITCH; else those of the machine's link to the host */
} machine_path;

/* The way between two GPUs, the same in both directions: a join before the switch, the switch before the bus. A machine
 * without links has the bus between any two. */
machine_path machine_path_between(const machine_spec *spec, uint32_t one, uint32_t other);
/* Kernels of one may use memory of the other, and copies need not go through host memory. */
bool machine_are_peers(const machine_spec *spec, uint32_t one, uint32_t other);
/* The GPU's root, from 0; -1: the machine says nothing of roots. */
int machine_root_of(const machine_spec *spec, uint32_t gpu);

#endif
