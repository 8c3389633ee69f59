/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of `farfault offload` share: a file's kernels with their regions, and how they are shown. */
#ifndef FF_CLI_OFFLOAD_H
#define FF_CLI_OFFLOAD_H

#include "base/memory.h"
#include "cli/code.h"
#include "offload/candidates.h"

/* What a trace says of a region, beside what is assumed. */
typedef struct offload_measured {
  uint64_t instances;      /* warps that came to it; 0: none, and nothing below means anything */
  double trips;            /* of an instance, on average */
  offload_ratios ratios;
} offload_measured;

typedef struct offload_shown {
  const ptx_module *module;
  offload_kernel *kernel;
  const offload_measured *measured; /* one for each region, or NULL: nothing was measured */
} offload_shown;
typedef FF_VEC(offload_shown) offload_list;

/* The kernels as a table of regions each; as one JSON text. */
void offload_write_table(const offload_list *list, ff_text *out);
void offload_write_json(const char *file, const offload_list *list, ff_text *out);

#endif
