/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep/sweep_columns.h"

#include <stddef.h>
#include <string.h>

#include "report/report_stacks.h"

static const char *const taken[] = {
#define X(name, sql) #name,
    SWEEP_FIXED(X) SWEEP_DERIVED(X)
#undef X
#define X(name, unit, help) #name,
#include "machine/observe/counters.def"
#undef X
#define X(name, unit, value, help) "stacks_" #name,
        REPORT_STACKS_REALS(X) REPORT_STACKS_SUMS(X)
#undef X
#define X(name, unit, help) "stacks_" #name,
#include "machine/stacks/stacks.def"
#undef X
            "stacks_found",
    NULL};

bool sweep_column_taken(const char *name) {
  for (const char *const *each = taken; *each; each++)
    if (!strcmp(*each, name)) return true;
  return false;
}
