/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of fdtd: a number of steps from fields at random. The CPU does the same arithmetic in the same order: the
 * three fields are compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ACROSS, DOWN, MAGNETIC, FIELDS };

extern const char workload_ptx[];

typedef struct problem {
  unsigned width, height;
  size_t cells;
  float *field[FIELDS];
} problem;

static problem random_problem(unsigned width, unsigned height) {
  workload_random random = {17};
  problem p = {.width = width, .height = height, .cells = (size_t)width * height};
  for (int field = 0; field < FIELDS; field++) p.field[field] = workload_random_floats(&random, p.cells, -0.5f, 1);
  return p;
}

static float source_at(long step) { return (float)(step % 32) / 32; }

static void step_on_cpu(problem *p, long step) {
  float *across = p->field[ACROSS], *down = p->field[DOWN], *magnetic = p->field[MAGNETIC];
  size_t width = p->width;
  for (size_t i = 0; i < p->cells; i++) {
    across[i] = i < width ? source_at(step) : fmaf(-0.5f, magnetic[i] - magnetic[i - width], across[i]);
    if (i % width) down[i] = fmaf(-0.5f, magnetic[i] - magnetic[i - 1], down[i]);
  }
  for (size_t y = 0; y + 1 < p->height; y++)
    for (size_t i = y * width; i + 1 < (y + 1) * width; i++) {
      float curl = down[i + 1] - down[i] + across[i + width] - across[i];
      magnetic[i] = fmaf(-0.7f, curl, magnetic[i]);
    }
}

static void steps_on_gpu(problem *p, long steps) {
  size_t bytes = p->cells * sizeof(float);
  gpu_open(workload_ptx);
  gpu_kernel step_across = gpu_find_kernel("fdtd_across"), step_down = gpu_find_kernel("fdtd_down"),
             step_magnetic = gpu_find_kernel("fdtd_magnetic");
  gpu_pointer across = gpu_upload(p->field[ACROSS], bytes), down = gpu_upload(p->field[DOWN], bytes),
              magnetic = gpu_upload(p->field[MAGNETIC], bytes);
  gpu_shape shape = {gpu_divide_up(p->width, 32), gpu_divide_up(p->height, 8), 32, 8};
  for (long step = 0; step < steps; step++) {
    float source = source_at(step);
    GPU_LAUNCH(step_across, shape, across, magnetic, p->width, p->height, source);
    GPU_LAUNCH(step_down, shape, down, magnetic, p->width, p->height);
    GPU_LAUNCH(step_magnetic, shape, across, down, magnetic, p->width, p->height);
  }
  gpu_copy_to_host(p->field[ACROSS], across, bytes);
  gpu_copy_to_host(p->field[DOWN], down, bytes);
  gpu_copy_to_host(p->field[MAGNETIC], magnetic, bytes);
  gpu_free(across), gpu_free(down), gpu_free(magnetic);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"width", 512, 2, 16384}, {"height", 512, 2, 16384}, {"steps", 4, 0, 100000}};
  workload_arguments(argc, argv, "fdtd", "an electromagnetic field by finite differences in time", arguments, 3);
  unsigned width = (unsigned)arguments[0].value, height = (unsigned)arguments[1].value;
  problem expected = random_problem(width, height), got = random_problem(width, height);
  workload_cpu_begins();
  for (long step = 0; step < arguments[2].value; step++) step_on_cpu(&expected, step);
  workload_cpu_ends();
  steps_on_gpu(&got, arguments[2].value);

  size_t wrong = 0;
  for (int field = 0; field < FIELDS; field++) {
    wrong += workload_floats_differ(got.field[field], expected.field[field], got.cells);
    free(got.field[field]), free(expected.field[field]);
  }
  return workload_verdict_exact("fdtd", FIELDS * got.cells, wrong);
}
