/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of hotspot: a number of steps between two buffers. The CPU does the same steps in double precision; single
 * precision may stray from it by a few units in the last place per step. */
#include "gpu.h"
#include "workload.h"

#include <stdlib.h>

#define TILE 16

extern const char workload_ptx[];

typedef struct hotspot_constants { /* same as in hotspot.cu */
  float step, across, down, up_to_air, air;
} hotspot_constants;

static const hotspot_constants constants = {
    .step = 0.0625f, .across = 1.5f, .down = 1.25f, .up_to_air = 0.03125f, .air = 80};

static int clamp_to(int value, int most) { return value < 0 ? 0 : value > most ? most : value; }

static void step_on_cpu(const float *power, const double *from, double *to, int width, int height) {
  for (int y = 0; y < height; y++) {
    const double *row = from + (size_t)y * width;
    const double *above = from + (size_t)clamp_to(y - 1, height - 1) * width,
                 *below = from + (size_t)clamp_to(y + 1, height - 1) * width;
    for (int x = 0; x < width; x++) {
      double sides = row[clamp_to(x - 1, width - 1)] + row[clamp_to(x + 1, width - 1)];
      double flow = power[(size_t)y * width + x] + constants.down * (above[x] + below[x] - 2 * row[x]) +
                    constants.across * (sides - 2 * row[x]) + constants.up_to_air * (constants.air - row[x]);
      to[(size_t)y * width + x] = row[x] + constants.step * flow;
    }
  }
}

static double *steps_on_cpu(const float *power, const float *start, int width, int height, long steps) {
  size_t cells = (size_t)width * height;
  double *from = workload_memory(cells, sizeof *from), *to = workload_memory(cells, sizeof *to);
  for (size_t i = 0; i < cells; i++) from[i] = start[i];
  for (long step = 0; step < steps; step++) {
    step_on_cpu(power, from, to, width, height);
    double *swap = from;
    from = to;
    to = swap;
  }
  free(to);
  return from;
}

static void steps_on_gpu(const float *power, const float *start, float *result, int width, int height, long steps) {
  size_t bytes = (size_t)width * height * sizeof(float);
  gpu_open(workload_ptx);
  gpu_kernel kernel = gpu_find_kernel("hotspot_step");
  gpu_pointer device_power = gpu_upload(power, bytes), from = gpu_upload(start, bytes), to = gpu_allocate(bytes);
  gpu_shape shape = {gpu_divide_up((uint64_t)width, TILE), gpu_divide_up((uint64_t)height, TILE), TILE, TILE};
  hotspot_constants argument = constants;
  for (long step = 0; step < steps; step++) {
    GPU_LAUNCH(kernel, shape, device_power, from, to, width, height, argument);
    gpu_swap(&from, &to);
  }
  gpu_copy_to_host(result, from, bytes);
  gpu_free(device_power), gpu_free(from), gpu_free(to);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"width", 512, 1, 16384}, {"height", 512, 1, 16384}, {"steps", 8, 0, 100000}};
  workload_arguments(argc, argv, "hotspot", "heat on a chip, a five-point stencil", arguments, 3);
  int width = (int)arguments[0].value, height = (int)arguments[1].value;
  long steps = arguments[2].value;
  size_t cells = (size_t)width * height;

  workload_random random = {5};
  float *start = workload_random_floats(&random, cells, 320, 20), *power = workload_random_floats(&random, cells, 0, 8);
  float *result = workload_memory(cells, sizeof *result);
  steps_on_gpu(power, start, result, width, height, steps);
  workload_cpu_begins();
  double *expected = steps_on_cpu(power, start, width, height, steps);
  workload_cpu_ends();

  double worst = 0;
  for (size_t i = 0; i < cells; i++) {
    double error = workload_error(result[i], expected[i], expected[i]);
    if (error > worst) worst = error;
  }
  free(start), free(power), free(result), free(expected);
  return workload_verdict_error("hotspot", cells, worst, 3e-7 * (double)(steps + 1));
}
