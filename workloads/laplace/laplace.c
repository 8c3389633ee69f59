/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of laplace: a box with a hot floor, random inside, a number of steps between two buffers. The CPU does the
 * same arithmetic in the same order: the result is compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_X 32
#define BLOCK_Y 4

extern const char workload_ptx[];

typedef struct laplace_box { /* same as in laplace.cu */
  int width, height, depth;
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

static void steps_on_gpu(float *cells, size_t bytes, laplace_box box, long steps) {
  gpu_open(workload_ptx);
  gpu_kernel kernel = gpu_find_kernel("laplace_step");
  gpu_pointer from = gpu_upload(cells, bytes), to = gpu_allocate(bytes);
  gpu_shape shape = {gpu_divide_up((uint64_t)box.width, BLOCK_X), gpu_divide_up((uint64_t)box.height, BLOCK_Y), BLOCK_X,
                     BLOCK_Y};
  for (long step = 0; step < steps; step++) {
    GPU_LAUNCH(kernel, shape, from, to, box);
    gpu_swap(&from, &to);
  }
  gpu_copy_to_host(cells, from, bytes);
  gpu_free(from), gpu_free(to);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {
      {"width", 100, 1, 1024}, {"height", 100, 1, 1024}, {"depth", 100, 1, 1024}, {"steps", 2, 0, 100000}};
  workload_arguments(argc, argv, "laplace", "Laplace's equation in a box, planes in shared memory", arguments, 4);
  laplace_box box = {(int)arguments[0].value, (int)arguments[1].value, (int)arguments[2].value};
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
  steps_on_gpu(cells, count * sizeof *cells, box, arguments[3].value);

  size_t wrong = workload_floats_differ(cells, expected, count);
  free(cells), free(expected), free(next);
  return workload_verdict_exact("laplace", count, wrong);
}
