/* SPDX-License-Identifier: Apache-2.0 */
/* Frames go through four kernels, and none of it says what may overlap: that follows from what each launch reads and
 * writes.
 *
 *             blur -> edges
 *     frame <                > mix -> result          for each frame
 *             levels
 *
 * blur needs the rows above and below, so frames have one more at the top and at the bottom, and block b reads rows b
 * to b + 2. What lies between the kernels is in two sets of segments, used in turns; frames and results are more than
 * the GPU's budget holds.
 *
 *     image_pipeline [FRAMES [ROWS [BUDGET_IN_MEGABYTES]]]        6 frames of 512 rows by 512, 16 MiB of GPU memory */
#include <farfault/farfault.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                      \
  do {                                                                   \
    if (call) fprintf(stderr, "%s: %s\n", #call, ff_message()), exit(1); \
  } while (0)

enum { WIDTH = 512, ROW = WIDTH * 4, SETS = 2 };

/* A block has a row of the result, a thread a column. %d1, %d2: a pixel of what is read and of what is written; %i3:
 * the column. */
#define ENTRY(name, more)                                                                                \
  ".visible .entry " name "(.param .u64 from, " more ".param .u64 to) {\n"                               \
  "  .reg .b32 %i<16>; .reg .b64 %d<12>;\n"                                                              \
  "  mov.u32 %i1, %ctaid.x; mov.u32 %i2, %ntid.x; mov.u32 %i3, %tid.x; mad.lo.u32 %i4, %i1, %i2, %i3;\n" \
  "  ld.param.u64 %d1, [from]; ld.param.u64 %d2, [to]; mul.wide.u32 %d3, %i4, 4; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;\n"
static const char code[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n" ENTRY("blur", "") /* (above + 2 here + below) / 4 */
    "  ld.global.u32 %i5, [%d1]; ld.global.u32 %i6, [%d1+2048]; ld.global.u32 %i7, [%d1+4096];\n"
    "  mad.lo.u32 %i5, %i6, 2, %i5; add.u32 %i5, %i5, %i7; shr.u32 %i5, %i5, 2;\n"
    "  st.global.u32 [%d2], %i5; ret;\n}\n" ENTRY("edges", "") /* |right - here|, the last column with itself */
    "  min.u32 %i5, %i3, 510; sub.u32 %i6, %i3, %i5; cvt.u64.u32 %d4, %i6; shl.b64 %d4, %d4, 2; sub.u64 %d4, %d1, %d4;\n"
    "  ld.global.s32 %i7, [%d1]; ld.global.s32 %i8, [%d4+4]; sub.s32 %i7, %i8, %i7; abs.s32 %i7, %i7;\n"
    "  st.global.u32 [%d2], %i7; ret;\n}\n" ENTRY("levels", "") /* 255 - here, of the frame's own row */
    "  ld.global.u32 %i5, [%d1+2048]; sub.u32 %i5, 255, %i5;\n"
    "  st.global.u32 [%d2], %i5; ret;\n}\n" ENTRY("mix", ".param .u64 other, ") /* 4 edges + levels / 2 */
    "  ld.param.u64 %d4, [other]; add.u64 %d4, %d4, %d3; ld.global.u32 %i5, [%d1]; ld.global.u32 %i6, [%d4];\n"
    "  shr.u32 %i6, %i6, 1; mad.lo.u32 %i5, %i5, 4, %i6;\n"
    "  st.global.u32 [%d2], %i5; ret;\n}\n";

static uint32_t pixel(uint32_t frame, uint32_t row, uint32_t column) {
  return ((row * row + column * 3 + frame * 57) / 16) % 256;
}

static uint32_t blurred(uint32_t frame, uint32_t row, uint32_t column) {
  return (pixel(frame, row, column) + 2 * pixel(frame, row + 1, column) + pixel(frame, row + 2, column)) / 4;
}

static uint32_t expected(uint32_t frame, uint32_t row, uint32_t column) {
  uint32_t next = column + 1 < WIDTH ? column + 1 : column;
  int edge = abs((int)blurred(frame, row, next) - (int)blurred(frame, row, column));
  return 4 * (uint32_t)edge + (255 - pixel(frame, row + 1, column)) / 2;
}

typedef struct image {
  ff_segment *segment;
  uint64_t rows_per_block;
} image; /* that one block reads */

/* Launches a kernel with a block per row: reads `from` (and `other`), writes all of `to`. */
static void launch(ff_gpu *gpu, ff_module *module, const char *name, uint32_t rows, image from, ff_segment *other,
                   ff_segment *to) {
  ff_kernel *kernel;
  CHECK(ff_kernel_find(module, name, &kernel));
  ff_argument two[] = {FF_ADDRESS(from.segment), FF_ADDRESS(to)},
              three[] = {FF_ADDRESS(from.segment), FF_ADDRESS(other), FF_ADDRESS(to)};
  ff_use uses[] = {
      {.segment = from.segment, .access = FF_READ, .per_block = {ROW}, .block_bytes = from.rows_per_block * ROW},
      {.segment = to, .access = FF_WRITE, .per_block = {ROW}, .block_bytes = ROW},
      {.segment = other, .access = FF_READ, .per_block = {ROW}, .block_bytes = ROW},
  };
  ff_launch_request request = {.kernel = kernel,
                               .grid = {rows},
                               .block = {WIDTH},
                               .arguments = other ? three : two,
                               .argument_count = other ? 3 : 2,
                               .uses = uses,
                               .use_count = other ? 3 : 2};
  CHECK(ff_launch(gpu, &request, NULL));
}

static ff_segment *make(ff_gpu *gpu, const char *name, uint32_t rows) {
  ff_segment *segment;
  CHECK(ff_segment_create(gpu, name, (uint64_t)rows * ROW, &segment));
  return segment;
}

int main(int argc, char **argv) {
  uint32_t frames = argc > 1 ? (uint32_t)atoi(argv[1]) : 6, rows = argc > 2 ? (uint32_t)atoi(argv[2]) : 512;
  ff_options options = {.size = sizeof options, .budget = (uint64_t)(argc > 3 ? atoi(argv[3]) : 16) << 20};
  ff_gpu *gpu;
  ff_module *module;
  ff_statistics moved;
  CHECK(ff_open(&options, &gpu));
  CHECK(ff_module_load(gpu, "image", code, 0, &module));
  ff_segment **frame = calloc(frames, sizeof *frame), **result = calloc(frames, sizeof *result), *blur[SETS],
             *edges[SETS], *levels[SETS];
  for (int i = 0; i < SETS; i++)
    blur[i] = make(gpu, "blurred", rows), edges[i] = make(gpu, "edges", rows), levels[i] = make(gpu, "levels", rows);
  for (uint32_t f = 0; f < frames; f++) {
    uint32_t *pixels;
    frame[f] = make(gpu, "frame", rows + 2);
    result[f] = make(gpu, "result", rows);
    CHECK(ff_segment_map(frame[f], FF_WRITE, 0, 0, (void **)&pixels));
    for (uint32_t i = 0; i < (rows + 2) * WIDTH; i++) pixels[i] = pixel(f, i / WIDTH, i % WIDTH);
    CHECK(ff_segment_unmap(frame[f], pixels));
  }

  for (uint32_t f = 0; f < frames; f++) {
    uint32_t set = f % SETS;
    launch(gpu, module, "blur", rows, (image){frame[f], 3}, NULL, blur[set]);
    launch(gpu, module, "levels", rows, (image){frame[f], 2}, NULL, levels[set]);
    launch(gpu, module, "edges", rows, (image){blur[set], 1}, NULL, edges[set]);
    launch(gpu, module, "mix", rows, (image){edges[set], 1}, levels[set], result[f]);
  }

  uint32_t wrong = 0;
  for (uint32_t f = 0; f < frames; f++) {
    uint32_t *pixels;
    CHECK(ff_segment_map(result[f], FF_READ, 0, 0, (void **)&pixels)); /* waits for this frame only */
    for (uint32_t i = 0; i < rows * WIDTH; i++) wrong += pixels[i] != expected(f, i / WIDTH, i % WIDTH);
    CHECK(ff_segment_unmap(result[f], pixels));
  }
  CHECK(ff_statistics_get(gpu, &moved));
  CHECK(ff_close(gpu));
  free(frame);
  free(result);
  printf("image_pipeline: %u frames, %llu launches, %llu KiB to the GPU: %u pixels are wrong\n", frames,
         (unsigned long long)moved.launches, (unsigned long long)(moved.to_gpu_bytes >> 10), wrong);
  return wrong != 0;
}
