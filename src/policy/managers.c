/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of managers: what can be chosen, in the order in which it is shown. */
#include "policy/manager.h"

#include <stddef.h>
#include <string.h>

/* X(name): manager_NAME stands in a file of this folder. */
#define MANAGERS(X) \
  X(copy)           \
  X(demand)         \
  X(replay)         \
  X(random)         \
  X(sequential)     \
  X(locality)       \
  X(oracle)         \
  X(sl)             \
  X(tbn)            \
  X(uvm)            \
  X(auto)           \
  X(partial_single) \
  X(partial_multi)  \
  X(segments)       \
  X(cuda6)          \
  X(gm200)          \
  X(gp100)          \
  X(zero_copy)      \
  X(ideal)

#define X(name) extern const manager manager_##name;
MANAGERS(X)
#undef X

#define X(name) &manager_##name,
const manager *const managers[] = {MANAGERS(X) NULL};
#undef X

const manager *manager_find(const char *name) {
  for (const manager *const *m = managers; *m; m++)
    if (!strcmp((*m)->name, name)) return *m;
  return NULL;
}
