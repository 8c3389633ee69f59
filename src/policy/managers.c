/* SPDX-License-Identifier: Apache-2.0 */
/* The list of managers (managers.def), and finding one by its name. */
#include "policy/manager.h"

#include <stddef.h>
#include <string.h>

#define X(name) &manager_##name,
const manager *const managers[] = {
#include "policy/managers.def"
    NULL};
#undef X

const manager *manager_find(const char *name) {
  for (const manager *const *m = managers; *m; m++)
    if (!strcmp((*m)->name, name)) return *m;
  return NULL;
}
