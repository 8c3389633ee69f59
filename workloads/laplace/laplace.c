/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of laplace: a box with a hot floor, random inside, a number of steps between two buffers. The box may be a
 * part of a larger grid, with the cells around it as its outermost ones: then only it is copied, row by row. The CPU does the
 * same arithmetic in the same order: the result is compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_X 32
#define BLOCK_Y 4

extern const char workload_ptx[];

typedef struct laplace_box { /* same as in laplace.cu */
  int width, height, depth, pitch, plane;
} laplace_box;

static void step_on_cpu(const float *from, float *to, laplace_box box) {
  ptrdiff_t row = box.width, plane = row * box.height;
  for (ptrdiff_t z = 1; z + 1 < box.depth; z++)
    for (ptrdiff_t y = 1; y + 1 < box.height; y++)
      for (ptrdiff_t x = 1; x + 1 < box.width; x++) {
        const float *here = from + z * plane + y * row + x;
        float value = here[-1] + here[1] + here[-row];
        value = value + here[row] + here[-plane] + here[plane];
        to[here - from] = value * (1.0f / 6);
      }
}

static void steps_on_gpu(float *cells, laplace_box box, long steps) {
  gpu_open(workload_ptx);
  gpu_kernel kernel = gpu_find_kernel("laplace_step");
  size_t bytes = (size_t)box.plane * (size_t)box.depth * sizeof(float), row = (size_t)box.width * sizeof(float);
  gpu_box part = {row, (size_t)box.height, (size_t)box.depth, (size_t)box.pitch * sizeof(float),
                  (size_t)(box.plane / box.pitch)};
  bool whole = row * (size_t)box.height * (size_t)box.depth == bytes;
  gpu_pointer from = gpu_allocate(bytes), to;
  if (whole) gpu_copy_to_device(from, cells, bytes);
  else gpu_copy_box(from, cells, part);
  to = gpu_allocate(bytes);
  gpu_shape shape = {gpu_divide_up((uint64_t)box.width, BLOCK_X), gpu_divide_up((uint64_t)box.height, BLOCK_Y), BLOCK_X,
                     BLOCK_Y};
  for (long step = 0; step < steps; step++) {
    GPU_LAUNCH(kernel, shape, from, to, box);
    gpu_swap(&from, &to);
  }
  if (whole) gpu_copy_to_host(cells, from, bytes);
  else gpu_copy_box_to_host(cells, from, part);
  gpu_free(from), gpu_free(to);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {
      {"width", 100, 1, 1024},     {"height", 100, 1, 1024}, {"depth", 100, 1, 1024},
      {"steps", 2, 0, 100000},     {"pitch", 0, 0, 1 << 16}, {"plane-rows", 0, 0, 1024}};
  workload_arguments(argc, argv, "laplace", "Laplace's equation in a box, planes in shared memory", arguments, 6);
  laplace_box box = {
      .width = (int)arguments[0].value, .height = (int)arguments[1].value, .depth = (int)arguments[2].value};
  box.pitch = arguments[4].value > box.width ? (int)arguments[4].value : box.width; /* 0: the box is all there is */
  box.plane = box.pitch * (arguments[5].value > box.height ? (int)arguments[5].value : box.height);
  size_t plane = (size_t)box.width * (size_t)box.height, count = plane * (size_t)box.depth;
  workload_random random = {20};
  float *cells = workload_random_floats(&random, count, 0, 1);
  for (size_t i = 0; i < plane; i++) cells[i] = 10;
  float *expected = workload_memory(count, sizeof *cells), *next = workload_memory(count, sizeof *cells);
  memcpy(expected, cells, count * sizeof *cells);
  memcpy(next, cells, count * sizeof *cells);
  for (long step = 0; step < arguments[3].value; step++) {
    workload_cpu_begins();
    step_on_cpu(expected, next, box);
    workload_cpu_ends();
    workload_swap(&expected, &next);
  }
  steps_on_gpu(cells, box, arguments[3].value);

  size_t wrong = workload_floats_differ(cells, expected, count);
  free(cells), free(expected), free(next);
  return workload_verdict_exact("laplace", count, wrong);
}
