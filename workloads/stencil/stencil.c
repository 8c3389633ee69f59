/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of stencil: a number of steps between two boxes of cells. The CPU does the same arithmetic in the same
 * order: the result is compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_X 32
#define BLOCK_Y 4

extern const char workload_ptx[];

typedef struct box {
  unsigned width, height, depth;
} box;

static const float centre = 0.4f, side = 0.1f;

static void step_on_cpu(const float *from, float *to, box box) {
  size_t row = box.width, plane = row * box.height;
  for (size_t z = 1; z + 1 < box.depth; z++)
    for (size_t y = 1; y + 1 < box.height; y++)
      for (size_t x = 1; x + 1 < box.width; x++) {
        const float *here = from + z * plane + y * row + x;
        float sum = here[-(ptrdiff_t)plane] + here[plane] + here[-(ptrdiff_t)row] + here[row] + here[-1] + here[1];
        to[here - from] = fmaf(side, sum, centre * *here);
      }
}

static void steps_on_gpu(float *cells, size_t bytes, box box, long steps) {
  gpu_open(workload_ptx);
  gpu_kernel kernel = gpu_find_kernel("stencil_step");
  gpu_pointer from = gpu_upload(cells, bytes), to = gpu_upload(cells, bytes);
  gpu_shape shape = {gpu_divide_up(box.width, BLOCK_X), gpu_divide_up(box.height, BLOCK_Y), BLOCK_X, BLOCK_Y};
  float centre_argument = centre, side_argument = side;
  for (long step = 0; step < steps; step++) {
    GPU_LAUNCH(kernel, shape, from, to, box.width, box.height, box.depth, centre_argument, side_argument);
    gpu_swap(&from, &to);
  }
  gpu_copy_to_host(cells, from, bytes);
  gpu_free(from), gpu_free(to);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {
      {"width", 128, 3, 1024}, {"height", 128, 3, 1024}, {"depth", 32, 3, 1024}, {"steps", 4, 0, 100000}};
  workload_arguments(argc, argv, "stencil", "seven-point Jacobi steps in three dimensions", arguments, 4);
  box box = {(unsigned)arguments[0].value, (unsigned)arguments[1].value, (unsigned)arguments[2].value};
  size_t count = (size_t)box.width * box.height * box.depth;
  workload_random random = {16};
  float *cells = workload_random_floats(&random, count, 0, 1);
  float *expected = workload_memory(count, sizeof *cells), *next = workload_memory(count, sizeof *cells);
  memcpy(expected, cells, count * sizeof *cells);
  memcpy(next, cells, count * sizeof *cells);
  for (long step = 0; step < arguments[3].value; step++) {
    workload_cpu_begins();
    step_on_cpu(expected, next, box);
    workload_cpu_ends();
    workload_swap(&expected, &next);
  }
  steps_on_gpu(cells, count * sizeof *cells, box, arguments[3].value);

  size_t wrong = workload_floats_differ(cells, expected, count);
  free(cells), free(expected), free(next);
  return workload_verdict_exact("stencil", count, wrong);
}
