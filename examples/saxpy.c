/* SPDX-License-Identifier: Apache-2.0 */
/* y = a x + y in 40 lines: two segments, one launch, the result checked. No copy, no stream, no allocation on a GPU. */
#include <farfault/farfault.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                      \
  do {                                                                   \
    if (call) fprintf(stderr, "%s: %s\n", #call, ff_message()), exit(1); \
  } while (0)

static const char code[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n) {\n"
    ".reg .pred %p; .reg .b32 %i<5>; .reg .b64 %d<6>; .reg .f32 %f<4>;\n"
    "mov.u32 %i1, %ctaid.x; mov.u32 %i2, %ntid.x; mov.u32 %i3, %tid.x; mad.lo.u32 %i4, %i1, %i2, %i3;\n"
    "ld.param.u32 %i1, [n]; setp.ge.u32 %p, %i4, %i1; @%p ret;\n"
    "ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y]; ld.param.f32 %f1, [a];\n"
    "mul.wide.u32 %d3, %i4, 4; add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3;\n"
    "ld.global.f32 %f2, [%d4]; ld.global.f32 %f3, [%d5]; fma.rn.f32 %f3, %f1, %f2, %f3; st.global.f32 [%d5], %f3; ret; }\n";

int main(void) {
  enum { N = 100000 };
  ff_gpu *gpu;
  ff_segment *x, *y;
  ff_module *module;
  ff_kernel *saxpy;
  float *xs, *ys, a = 2;
  uint32_t n = N, wrong = 0;
  CHECK(ff_open(NULL, &gpu));
  CHECK(ff_segment_create(gpu, "x", sizeof *xs * N, &x));
  CHECK(ff_segment_create(gpu, "y", sizeof *ys * N, &y));
  CHECK(ff_segment_map(x, FF_WRITE, 0, 0, (void **)&xs));
  CHECK(ff_segment_map(y, FF_WRITE, 0, 0, (void **)&ys));
  for (int i = 0; i < N; i++) xs[i] = (float)i, ys[i] = 1;
  CHECK(ff_segment_unmap(x, xs));
  CHECK(ff_segment_unmap(y, ys));
  CHECK(ff_module_load(gpu, "saxpy", code, 0, &module));
  CHECK(ff_kernel_find(module, "saxpy", &saxpy));
  ff_argument arguments[] = {FF_ADDRESS(x), FF_ADDRESS(y), FF_VALUE(a), FF_VALUE(n)};
  ff_use uses[] = {{.segment = x, .access = FF_READ}, {.segment = y, .access = FF_READ_WRITE}};
  CHECK(ff_launch(gpu,
                  &(ff_launch_request){.kernel = saxpy,
                                       .grid = {(N + 255) / 256},
                                       .block = {256},
                                       .arguments = arguments,
                                       .argument_count = 4,
                                       .uses = uses,
                                       .use_count = 2},
                  NULL));
  CHECK(ff_segment_map(y, FF_READ, 0, 0, (void **)&ys));
  for (int i = 0; i < N; i++) wrong += ys[i] != 2 * (float)i + 1;
  CHECK(ff_close(gpu));
  printf("saxpy: %u of %u values are wrong\n", wrong, n);
  return wrong != 0;
}
