/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of managers: what can be chosen, in the order in which it is shown. */
#include "policy/manager.h"

#include <stddef.h>
#include <string.h>

extern const manager manager_copy, manager_demand, manager_replay, manager_random, manager_sequential, manager_locality, manager_oracle, manager_sl,
    manager_tbn, manager_uvm, manager_partial_single, manager_partial_multi, manager_zero_copy, manager_ideal;

const manager *const managers[] = {&manager_copy,     &manager_demand, &manager_replay, &manager_random, &manager_sequential,
                                   &manager_locality, &manager_oracle, &manager_sl,     &manager_tbn,    &manager_uvm,    &manager_partial_single,
                                   &manager_partial_multi, &manager_zero_copy, &manager_ideal, NULL};

const manager *manager_find(const char *name) {
  for (const manager *const *m = managers; *m; m++)
    if (!strcmp((*m)->name, name)) return *m;
  return NULL;
}
