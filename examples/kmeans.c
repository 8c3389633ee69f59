/* SPDX-License-Identifier: Apache-2.0 */
/* k-means over more points than the GPU's budget holds. Each turn is one launch: it reads all points, block by block,
 * and adds them to the sums of their nearest centres; the host makes new centres of the sums, which are all that it
 * maps between launches.
 *
 *     kmeans [MILLIONS_OF_POINTS [BUDGET_IN_MEGABYTES]]        1 million points (8 MiB) with 6 MiB of GPU memory */
#include <farfault/farfault.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                      \
  do {                                                                   \
    if (call) fprintf(stderr, "%s: %s\n", #call, ff_message()), exit(1); \
  } while (0)

enum { THREADS = 256, PER_THREAD = 16, PER_BLOCK = THREADS * PER_THREAD, CENTRES = 8, TURNS = 3 };
typedef struct point {
  int32_t x, y;
} point;
typedef struct sum {
  uint64_t x, y, count;
} sum; /* of the points that are nearest to a centre */

/* Thread t of block b looks at the points b * 4096 + t, + 256 ... and finds the centre with the least (x - cx)^2 + (y -
 * cy)^2. */
static const char code[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry assign(.param .u64 points, .param .u64 centres, .param .u64 sums) {\n"
    "  .reg .pred %p; .reg .b32 %i<16>; .reg .b64 %d<12>;\n"
    "  mov.u32 %i1, %ctaid.x; mov.u32 %i2, %tid.x; mad.lo.u32 %i3, %i1, 4096, %i2;\n"
    "  ld.param.u64 %d1, [points]; mul.wide.u32 %d2, %i3, 8; add.u64 %d1, %d1, %d2;\n"
    "  mov.u32 %i4, 16;\n"
    "next_point:\n"
    "  ld.global.v2.u32 {%i5, %i6}, [%d1];\n"
    "  ld.param.u64 %d3, [centres]; mov.u32 %i7, 0; mov.u32 %i8, 4294967295; mov.u32 %i9, 0;\n"
    "next_centre:\n"
    "  ld.global.v2.u32 {%i10, %i11}, [%d3];\n"
    "  sub.s32 %i10, %i5, %i10; sub.s32 %i11, %i6, %i11;\n"
    "  mul.lo.s32 %i10, %i10, %i10; mad.lo.s32 %i10, %i11, %i11, %i10;\n"
    "  setp.lt.u32 %p, %i10, %i8; selp.u32 %i8, %i10, %i8, %p; selp.u32 %i9, %i7, %i9, %p;\n"
    "  add.u64 %d3, %d3, 8; add.u32 %i7, %i7, 1; setp.lt.u32 %p, %i7, 8; @%p bra next_centre;\n"
    "  ld.param.u64 %d4, [sums]; mul.wide.u32 %d5, %i9, 24; add.u64 %d4, %d4, %d5;\n"
    "  cvt.u64.u32 %d6, %i5; cvt.u64.u32 %d7, %i6; mov.u64 %d8, 1;\n"
    "  red.global.add.u64 [%d4], %d6; red.global.add.u64 [%d4+8], %d7; red.global.add.u64 [%d4+16], %d8;\n"
    "  add.u64 %d1, %d1, 2048; sub.u32 %i4, %i4, 1; setp.ne.u32 %p, %i4, 0; @%p bra next_point;\n"
    "  ret;\n}\n";

static point point_at(uint32_t i) {
  uint32_t hash = i * 2654435761u, group = i % CENTRES;
  return (point){(int32_t)(group * 3000 + (hash >> 20) % 2000), (int32_t)(group * group * 400 + (hash >> 8) % 2000)};
}

static void move_centres(point *centres, const sum *sums) {
  for (int c = 0; c < CENTRES; c++)
    if (sums[c].count) centres[c] = (point){(int32_t)(sums[c].x / sums[c].count), (int32_t)(sums[c].y / sums[c].count)};
}

/* The same turn on the host. */
static void turn_on_host(point *centres, uint32_t points) {
  sum sums[CENTRES] = {{0, 0, 0}};
  for (uint32_t i = 0; i < points; i++) {
    point p = point_at(i);
    uint32_t best = UINT32_MAX, nearest = 0;
    for (uint32_t c = 0; c < CENTRES; c++) {
      uint32_t dx = (uint32_t)(p.x - centres[c].x), dy = (uint32_t)(p.y - centres[c].y), distance = dx * dx + dy * dy;
      if (distance < best) best = distance, nearest = c;
    }
    sums[nearest].x += (uint32_t)p.x, sums[nearest].y += (uint32_t)p.y, sums[nearest].count++;
  }
  move_centres(centres, sums);
}

int main(int argc, char **argv) {
  uint32_t blocks = (uint32_t)((argc > 1 ? atof(argv[1]) : 1) * 1e6 / PER_BLOCK) + 1, points = blocks * PER_BLOCK;
  ff_options options = {.size = sizeof options, .budget = (uint64_t)(argc > 2 ? atoi(argv[2]) : 8) << 20};
  ff_gpu *gpu;
  ff_segment *all, *centres, *sums;
  ff_module *module;
  ff_kernel *assign;
  point *p, expected[CENTRES];
  sum *s;
  int wrong = 0;
  CHECK(ff_open(&options, &gpu));
  CHECK(ff_segment_create(gpu, "points", sizeof *p * points, &all));
  CHECK(ff_segment_create(gpu, "centres", sizeof *p * CENTRES, &centres));
  CHECK(ff_segment_create(gpu, "sums", sizeof *s * CENTRES, &sums));
  CHECK(ff_segment_map(all, FF_WRITE, 0, 0, (void **)&p));
  for (uint32_t i = 0; i < points; i++) p[i] = point_at(i);
  CHECK(ff_segment_unmap(all, p));
  CHECK(ff_segment_map(centres, FF_WRITE, 0, 0, (void **)&p));
  for (uint32_t c = 0; c < CENTRES; c++) p[c] = expected[c] = point_at(c * 1001);
  CHECK(ff_segment_unmap(centres, p));
  CHECK(ff_module_load(gpu, "assign", code, 0, &module));
  CHECK(ff_kernel_find(module, "assign", &assign));

  ff_argument arguments[] = {FF_ADDRESS(all), FF_ADDRESS(centres), FF_ADDRESS(sums)};
  ff_use uses[] = {
      {.segment = all, .access = FF_READ, .per_block = {PER_BLOCK * sizeof *p}, .block_bytes = PER_BLOCK * sizeof *p},
      {.segment = centres, .access = FF_READ},
      {.segment = sums, .access = FF_READ_WRITE},
  };
  ff_launch_request launch = {.kernel = assign,
                              .grid = {blocks},
                              .block = {THREADS},
                              .arguments = arguments,
                              .argument_count = 3,
                              .uses = uses,
                              .use_count = 3};
  for (int turn = 0; turn < TURNS; turn++) {
    CHECK(ff_segment_map(sums, FF_WRITE, 0, 0, (void **)&s));
    memset(s, 0, sizeof *s * CENTRES);
    CHECK(ff_segment_unmap(sums, s));
    CHECK(ff_launch(gpu, &launch, NULL));
    CHECK(ff_segment_map(sums, FF_READ, 0, 0, (void **)&s)); /* waits for the launch */
    CHECK(ff_segment_map(centres, FF_READ_WRITE, 0, 0, (void **)&p));
    move_centres(p, s);
    turn_on_host(expected, points);
    wrong += memcmp(p, expected, sizeof expected) != 0;
    CHECK(ff_segment_unmap(centres, p));
    CHECK(ff_segment_unmap(sums, s));
  }
  CHECK(ff_close(gpu));
  printf("kmeans: %u points, %d turns, %d of them wrong; centres:", points, TURNS, wrong);
  for (int c = 0; c < CENTRES; c++) printf(" (%d, %d)", expected[c].x, expected[c].y);
  printf("\n");
  return wrong != 0;
}
