/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of tiles: values are small whole numbers, whose sums are exact in any order. Only the box is copied, row by row, to where it lies in the volume, as cudaMemcpy2D and
 * cudaMemcpy3D do; nothing else of the volume is ever touched. */
#include "gpu.h"
#include "workload.h"

#include <stdbool.h>
#include <stdlib.h>

extern const char workload_ptx[];

typedef struct box {
  size_t width, rows, planes; /* points */
  size_t pitch, plane;        /* of the volume, in floats */
  bool sums;                  /* of rows; else seven points' */
} box;

static size_t results(const box *b) { return b->rows * b->planes * (b->sums ? 1 : b->width); }
static size_t points(const box *b) { return b->width * b->rows * b->planes; }

static float seven_points(const box *b, const float *from, size_t x, size_t y, size_t z) {
  const float *at = from + (z * b->rows + y) * b->width + x;
  float sum = *at;
  sum += x > 0 ? at[-1] : *at;
  sum += x + 1 < b->width ? at[1] : *at;
  sum += y > 0 ? *(at - b->width) : *at;
  sum += y + 1 < b->rows ? at[b->width] : *at;
  sum += z > 0 ? *(at - b->width * b->rows) : *at;
  sum += z + 1 < b->planes ? at[b->width * b->rows] : *at;
  return sum;
}

static void compute_on_cpu(const box *b, const float *from, float *to) {
  for (size_t i = 0; b->sums && i < points(b); i++) to[i / b->width] += from[i];
  if (b->sums) return;
  for (size_t z = 0; z < b->planes; z++)
    for (size_t y = 0; y < b->rows; y++)
      for (size_t x = 0; x < b->width; x++) to[(z * b->rows + y) * b->width + x] = seven_points(b, from, x, y, z);
}

static void compute_on_gpu(const box *b, const float *from, float *to) {
  unsigned width = (unsigned)b->width, rows = (unsigned)b->rows, planes = (unsigned)b->planes;
  unsigned long long pitch = b->pitch, plane = b->plane;
  gpu_open(workload_ptx);
  gpu_pointer volume = gpu_allocate(b->plane * b->planes * sizeof(float)),
              out = gpu_allocate(results(b) * sizeof(float));
  gpu_copy_box(volume, from,
               (gpu_box){b->width * sizeof(float), b->rows, b->planes, b->pitch * sizeof(float), b->plane / b->pitch});
  gpu_shape by_point = {gpu_divide_up(b->width, 128), rows * planes, 128, 1}, by_row = {rows * planes, 1, 128, 1};
  if (b->sums) GPU_LAUNCH(gpu_find_kernel("row_sums"), by_row, volume, pitch, plane, out, width, rows);
  else GPU_LAUNCH(gpu_find_kernel("tiles"), by_point, volume, pitch, plane, out, width, rows, planes);
  gpu_copy_to_host(to, out, results(b) * sizeof(float));
  gpu_free(volume), gpu_free(out);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"width", 512, 1, 1 << 16},
                                   {"rows", 64, 1, 1 << 16},
                                   {"planes", 1, 1, 1 << 10},
                                   {"pitch_kb", 256, 1, 1 << 16},
                                   {"plane_rows", 64, 1, 1 << 16},
                                   {"sums", 0, 0, 1}};
  workload_arguments(argc, argv, "tiles", "sums points of a box whose short rows lie far apart in a volume", arguments,
                     6);
  box b = {.width = (size_t)arguments[0].value,
           .rows = (size_t)arguments[1].value,
           .planes = (size_t)arguments[2].value,
           .pitch = (size_t)arguments[3].value * 1024 / sizeof(float),
           .sums = arguments[5].value};
  if (b.width > b.pitch) b.width = b.pitch;
  b.plane = b.pitch * (size_t)(arguments[4].value > arguments[1].value ? arguments[4].value : arguments[1].value);
  if (b.rows * b.planes > 65535) b.planes = 65535 / b.rows; /* what a grid can have */
  workload_random random = {31};
  float *from = workload_memory(points(&b), sizeof(float));
  float *expected = workload_memory(results(&b), sizeof(float)), *got = workload_memory(results(&b), sizeof(float));
  for (size_t i = 0; i < points(&b); i++) from[i] = (float)workload_random_below(&random, 64);
  workload_cpu_begins();
  compute_on_cpu(&b, from, expected);
  workload_cpu_ends();
  compute_on_gpu(&b, from, got);
  size_t wrong = workload_floats_differ(got, expected, results(&b));
  int status = workload_verdict_exact("tiles", results(&b), wrong);
  free(from), free(expected), free(got);
  return status;
}
