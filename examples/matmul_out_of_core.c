/* SPDX-License-Identifier: Apache-2.0 */
/* C = A B with a C that does not fit the GPU's budget, in one launch: a band of blocks needs a band of A's rows, all of
 * B, and makes a band of C's rows. Declared per block, that is run in windows of bands: A and C go by, B stays.
 *
 *     matmul_out_of_core [SIDE [DEPTH [BUDGET_IN_MEGABYTES]]]        a C of 2048 x 2048 (16 MiB), sums of 16, 8 MiB of GPU memory */
#include <farfault/farfault.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                      \
  do {                                                                   \
    if (call) fprintf(stderr, "%s: %s\n", #call, ff_message()), exit(1); \
  } while (0)

enum { TILE = 16 };

/* A thread makes c[row][column], the sum of a[row][k] * b[k][column]. */
static const char code[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry multiply(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 side, .param .u32 depth) {\n"
    "  .reg .pred %p; .reg .b32 %i<12>; .reg .b64 %d<12>; .reg .f32 %f<4>;\n"
    "  mov.u32 %i1, %ctaid.x; mov.u32 %i2, %tid.x; mad.lo.u32 %i3, %i1, 16, %i2; // the column\n"
    "  mov.u32 %i4, %ctaid.y; mov.u32 %i5, %tid.y; mad.lo.u32 %i6, %i4, 16, %i5; // the row\n"
    "  ld.param.u32 %i7, [side]; ld.param.u32 %i8, [depth];\n"
    "  ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u64 %d3, [c];\n"
    "  mul.wide.u32 %d4, %i6, %i8; shl.b64 %d4, %d4, 2; add.u64 %d1, %d1, %d4; // a[row]\n"
    "  mul.wide.u32 %d5, %i3, 4; add.u64 %d2, %d2, %d5;                        // b[0][column]\n"
    "  mul.wide.u32 %d6, %i6, %i7; shl.b64 %d6, %d6, 2; add.u64 %d3, %d3, %d6; add.u64 %d3, %d3, %d5;\n"
    "  mul.wide.u32 %d7, %i7, 4; mov.f32 %f1, 0f00000000;\n"
    "more:\n"
    "  ld.global.f32 %f2, [%d1]; ld.global.f32 %f3, [%d2]; fma.rn.f32 %f1, %f2, %f3, %f1;\n"
    "  add.u64 %d1, %d1, 4; add.u64 %d2, %d2, %d7; sub.u32 %i8, %i8, 1;\n"
    "  setp.ne.u32 %p, %i8, 0; @%p bra more;\n"
    "  st.global.f32 [%d3], %f1;\n"
    "  ret;\n}\n";

/* Small whole numbers: every sum is exact, in any order. */
static float a_at(uint32_t row, uint32_t k) { return (float)((row * 7 + k * 3) % 11) - 5; }
static float b_at(uint32_t k, uint32_t column) { return (float)((k * 5 + column) % 7) - 3; }

static ff_segment *make_segment(ff_gpu *gpu, const char *name, uint32_t rows, uint32_t columns,
                                float (*at)(uint32_t, uint32_t)) {
  ff_segment *segment;
  float *values;
  CHECK(ff_segment_create(gpu, name, sizeof(float) * rows * columns, &segment));
  if (!at) return segment;
  CHECK(ff_segment_map(segment, FF_WRITE, 0, 0, (void **)&values));
  for (uint32_t i = 0; i < rows; i++)
    for (uint32_t j = 0; j < columns; j++) values[(size_t)i * columns + j] = at(i, j);
  CHECK(ff_segment_unmap(segment, values));
  return segment;
}

/* Every value of C, band by band: the host does not hold more of it than that. */
static uint32_t count_wrong(ff_segment *c, uint32_t side, uint32_t depth) {
  uint32_t wrong = 0;
  for (uint32_t band = 0; band < side; band += TILE) {
    uint64_t bytes = sizeof(float) * TILE * side;
    float *values;
    CHECK(ff_segment_map(c, FF_READ, band / TILE * bytes, bytes, (void **)&values));
    for (uint32_t i = 0; i < TILE; i++)
      for (uint32_t j = 0; j < side; j++) {
        float sum = 0;
        for (uint32_t k = 0; k < depth; k++) sum += a_at(band + i, k) * b_at(k, j);
        wrong += values[i * side + j] != sum;
      }
    CHECK(ff_segment_unmap(c, values));
  }
  return wrong;
}

int main(int argc, char **argv) {
  uint32_t side = (argc > 1 ? (uint32_t)atoi(argv[1]) : 2048) / TILE * TILE,
           depth = argc > 2 ? (uint32_t)atoi(argv[2]) : 16;
  ff_options options = {.size = sizeof options, .budget = (uint64_t)(argc > 3 ? atoi(argv[3]) : 8) << 20};
  ff_gpu *gpu;
  ff_module *module;
  ff_kernel *multiply;
  ff_plan plan;
  CHECK(ff_open(&options, &gpu));
  ff_segment *a = make_segment(gpu, "A", side, depth, a_at), *b = make_segment(gpu, "B", depth, side, b_at),
             *c = make_segment(gpu, "C", side, side, NULL);
  CHECK(ff_module_load(gpu, "multiply", code, 0, &module));
  CHECK(ff_kernel_find(module, "multiply", &multiply));

  int64_t band_of_a = 4ll * TILE * depth, band_of_c = 4ll * TILE * side; /* bytes that one row of blocks needs */
  ff_argument arguments[] = {FF_ADDRESS(a), FF_ADDRESS(b), FF_ADDRESS(c), FF_VALUE(side), FF_VALUE(depth)};
  ff_use uses[] = {
      {.segment = a, .access = FF_READ, .per_block = {0, band_of_a}, .block_bytes = (uint64_t)band_of_a},
      {.segment = b, .access = FF_READ},
      {.segment = c, .access = FF_READ_WRITE, .per_block = {0, band_of_c}, .block_bytes = (uint64_t)band_of_c},
  };
  ff_launch_request launch = {.kernel = multiply,
                              .grid = {side / TILE, side / TILE},
                              .block = {TILE, TILE},
                              .arguments = arguments,
                              .argument_count = 5,
                              .uses = uses,
                              .use_count = 3};
  CHECK(ff_launch_plan(gpu, &launch, &plan));
  CHECK(ff_launch(gpu, &launch, NULL));
  uint32_t wrong = count_wrong(c, side, depth);
  printf("matmul_out_of_core: needs %llu KiB at once, so %llu windows (%s): %u of %u values are wrong\n",
         (unsigned long long)(plan.needed >> 10), (unsigned long long)plan.windows, plan.reason, wrong, side * side);
  CHECK(ff_close(gpu));
  return wrong != 0;
}
