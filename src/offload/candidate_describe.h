/* SPDX-License-Identifier: Apache-2.0 */
/* A region in words, and a module's PTX with its chosen regions marked. */
#ifndef FF_OFFLOAD_DESCRIBE_H
#define FF_OFFLOAD_DESCRIBE_H

#include "base/text.h"
#include "offload/candidates.h"

/* "160 - 33.5 k" words of 4 bytes; without k where there is no loop. */
void offload_put_formula(const offload_region *region, double fixed, double trip, ff_text *out);
/* Which channels it saves on: "TX, RX", "RX, TX from 5", "-". */
void offload_put_bits(const offload_region *region, ff_text *out);
/* "%rd1 %r2 %tid.x", "-" if there are none: what it reads from outside, what it leaves there. */
void offload_put_live_in(const offload_kernel *kernel, const offload_region *region, ff_text *out);
void offload_put_live_out(const offload_kernel *kernel, const offload_region *region, ff_text *out);
/* When a chosen region is offloaded: "always", "always: 16 trips", "from 4 trips on: %r1 >= 4"; of any other why
 * not. */
void offload_put_verdict(const offload_kernel *kernel, const offload_region *region, ff_text *out);
const char *offload_other_name(const offload_other *other);

/* The module's own text with comments where chosen regions begin and end: PTX that means the same. Kernels: of this
 * module's functions, in its order. */
void offload_annotate(const ptx_module *module, offload_kernel *const *kernels, uint32_t count, ff_text *out);

#endif
