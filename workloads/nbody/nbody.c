/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of nbody. The CPU sums in double precision; the error is measured against the sum of the pulls' sizes,
 * since the pulls of a cloud of bodies nearly cancel. Roundings up and down mix: their sum grows like the root of their
 * number. */
#include "gpu.h"
#include "workload.h"

#include <math.h>
#include <stdlib.h>

extern const char workload_ptx[];

typedef struct body { /* same as in nbody.cu */
  float x, y, z, mass;
} body;

static const float softening = 1e-3f;

/* The largest error of body i's three components. */
static double body_error(const body *bodies, unsigned count, unsigned i, const float *acceleration) {
  double sum[3] = {0}, size = 0x1p-126;
  for (unsigned k = 0; k < count; k++) {
    double d[3] = {bodies[k].x - (double)bodies[i].x, bodies[k].y - (double)bodies[i].y,
                   bodies[k].z - (double)bodies[i].z};
    double square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2], pull = bodies[k].mass / pow(square + softening, 1.5);
    for (int axis = 0; axis < 3; axis++) sum[axis] += d[axis] * pull;
    size += sqrt(square) * pull;
  }
  double worst = 0;
  for (int axis = 0; axis < 3; axis++)
    worst = fmax(worst, workload_error(acceleration[(size_t)axis * count + i], sum[axis], size));
  return worst;
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"bodies", 2048, 1, 1 << 20}};
  workload_arguments(argc, argv, "nbody", "gravity between all pairs of bodies", arguments, 1);
  unsigned count = (unsigned)arguments[0].value;
  workload_random random = {12};
  body *bodies = workload_memory(count, sizeof *bodies);
  float *acceleration = workload_memory(count, 3 * sizeof *acceleration);
  for (unsigned i = 0; i < count; i++)
    bodies[i] = (body){workload_random_float(&random) - 0.5f, workload_random_float(&random) - 0.5f,
                       workload_random_float(&random) - 0.5f, workload_random_float(&random) + 0.5f};

  gpu_open(workload_ptx);
  gpu_pointer device_bodies = gpu_upload(bodies, count * sizeof *bodies),
              result = gpu_allocate(count * 3 * sizeof *acceleration);
  gpu_shape shape = {gpu_divide_up(count, 128), 1, 128, 1};
  float argument = softening;
  GPU_LAUNCH(gpu_find_kernel("nbody"), shape, device_bodies, result, count, argument);
  gpu_copy_to_host(acceleration, result, count * 3 * sizeof *acceleration);
  gpu_free(device_bodies), gpu_free(result);
  gpu_close();

  double worst = 0;
  for (unsigned i = 0; i < count; i++) worst = fmax(worst, body_error(bodies, count, i, acceleration));
  free(bodies), free(acceleration);
  return workload_verdict_error("nbody", (size_t)count * 3, worst, 8 * sqrt(count) * 0x1p-24);
}
