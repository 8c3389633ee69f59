/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of `farfault offload` share: a file's kernels with their regions, and how they are shown. */
#ifndef FF_CLI_OFFLOAD_H
#define FF_CLI_OFFLOAD_H

#include "base/memory.h"
#include "cli/commands/ptx_code.h"
#include "machine/spec/spec.h"
#include "offload/candidates.h"

/* What a trace says of a region, next to what is assumed. */
typedef struct offload_measured {
  uint64_t instances; /* warps that came to it; 0: none, and nothing below means anything */
  double trips;       /* of an instance, on average */
  offload_ratios ratios;
} offload_measured;

typedef struct offload_shown {
  const ptx_module *module;
  offload_kernel *kernel;
  offload_measured *measured; /* owned; one for each region, or NULL: nothing was measured */
} offload_shown;
typedef FF_VEC(offload_shown) offload_list;

/* The kernels as a table of regions each; as one JSON text. */
void offload_write_table(const offload_list *list, ff_text *out);
void offload_write_json(const char *file, const offload_list *list, ff_text *out);

/* ---- offload_measured.c ---- */

/* Reads the trace and fills in what it has of the kernels' chosen regions. The exit status; not CLI_DONE: with a
 * message. */
int offload_measure(const char *path, const machine_spec *spec, offload_list *list);
/* What a warp's way through a region costs (above 0) or saves, in words of 4 bytes each way, at so many trips. */
typedef struct offload_words {
  double trips, tx, rx;
} offload_words;
offload_words offload_words_of(const offload_region *region, const offload_ratios *ratios, double trips);
offload_words offload_words_assumed(const offload_region *region, const offload_measured *measured);
offload_words offload_words_measured(const offload_region *region, const offload_measured *measured);
/* A table of assumed and measured for each kernel of the list. */
void offload_write_measured(const offload_list *list, ff_text *out);

#endif
