/* SPDX-License-Identifier: Apache-2.0 */
/* What may happen to a translation request whose page is absent: the ways of handling far-faults, of which a manager
 * has one (`decide`), and --faults chooses another. */
#include "policy/manager.h"

#include <stddef.h>
#include <string.h>

manager_answer manager_blocks(const manager_nack *nack) {
  (void)nack;
  return MANAGER_BLOCK;
}

manager_answer manager_replays(const manager_nack *nack) {
  return nack->pending < nack->allotment ? MANAGER_TRACK : MANAGER_THROTTLE;
}

manager_answer manager_buffers(const manager_nack *nack) {
  (void)nack;
  return MANAGER_BUFFER;
}

const manager_faults manager_fault_ways[] = {
    {"block", NULL, "one at a time per SM: its TLB stops until the page is there", manager_blocks, false},
    {"replay", "fault_mshrs",
     "only the faulting warps wait; N far-fault MSHRs per SM, the TLB throttles what is beyond", manager_replays,
     false},
    {"batch", "fault_batch", "a fault buffer that the host's driver serves up to N at once, as NVIDIA's does",
     manager_buffers, true},
    {0}};

const manager_faults *manager_faults_find(const char *name, size_t length) {
  for (const manager_faults *ways = manager_fault_ways; ways->name; ways++)
    if (strlen(ways->name) == length && !memcmp(ways->name, name, length)) return ways;
  return NULL;
}

const char *manager_faults_name(const manager *m) {
  for (const manager_faults *ways = manager_fault_ways; m->decide && ways->name; ways++)
    if (ways->decide == m->decide) return ways->name;
  return m->decide ? "own" : "none";
}
