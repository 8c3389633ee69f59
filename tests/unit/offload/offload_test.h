/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of src/offload share: kernels from PTX text, and regions by what is in them. */
#ifndef OFFLOAD_TEST_H
#define OFFLOAD_TEST_H

#include "unit/ptx/ptx_test.h"

#include "offload/candidates.h"

/* The loop of LIBOR Monte Carlo in the paper's figure 4, as it stands: 5 live-in registers (two pointers, two factors,
 * the trips left), none live out, one load, one store. What is before it comes from memory through an atomic, so that
 * nothing of that can be in a region with it. */
#define LIBOR_BODY                                                          \
  ".reg .b64 %rd<5>; .reg .b32 %r<4>; .reg .f32 %f<6>; .reg .pred %p<2>;\n" \
  "ld.param.u64 %rd3, [p];\n"                                               \
  "ld.global.u64 %rd1, [%rd3];\n"                                           \
  "ld.global.u64 %rd2, [%rd3+8];\n"                                         \
  "ld.global.f32 %f1, [%rd3+16];\n"                                         \
  "ld.global.f32 %f2, [%rd3+20];\n"                                         \
  "atom.global.add.u32 %r1, [%rd3+24], 1;\n"                                \
  "LOOP:\n"                                                                 \
  "ld.global.f32 %f3, [%rd1];\n"                                            \
  "fma.rn.f32 %f4, %f3, %f1, %f2;\n"                                        \
  "st.global.f32 [%rd2], %f4;\n"                                            \
  "add.s64 %rd1, %rd1, 4;\n"                                                \
  "add.s64 %rd2, %rd2, 4;\n"                                                \
  "add.s32 %r1, %r1, -1;\n"                                                 \
  "setp.ne.s32 %p1, %r1, 0;\n"                                              \
  "@%p1 bra LOOP;\n"                                                        \
  "ret;\n"

static inline ptx_func *only_kernel(const ptx_module *module) { return module->funcs[0]; }

static inline const offload_region *region_at(const offload_kernel *kernel, uint32_t begin, uint32_t end) {
  for (uint32_t i = 0; i < kernel->region_count; i++)
    if (kernel->regions[i].begin == begin && kernel->regions[i].end == end) return &kernel->regions[i];
  fail_msg("no region [%u, %u)", begin, end);
  return NULL;
}

#endif
