/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of coulomb: atoms over a plane, more of them in one portion after another. The CPU does the same arithmetic
 * in the same order (square root and division are rounded once): compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ATOMS 4000
#define CELLS 4
#define BLOCK_X 16
#define BLOCK_Y 8

extern const char workload_ptx[];

typedef struct atom { /* same as in coulomb.cu */
  float x, y, above, charge;
} atom;

typedef struct plane {
  unsigned width, height;
  float spacing, *potential;
} plane;

/* The four cells of the thread whose first is at `left`. */
static void cells_on_cpu(plane p, const atom *atoms, unsigned count, unsigned left, unsigned row) {
  float x = p.spacing * (float)left, y = p.spacing * (float)row, step = p.spacing * BLOCK_X, sum[CELLS] = {0};
  for (unsigned i = 0; i < count; i++) {
    float dy = y - atoms[i].y, dx = x - atoms[i].x, across = fmaf(dy, dy, atoms[i].above);
    for (int k = 0; k < CELLS; k++, dx += step) sum[k] += atoms[i].charge / sqrtf(fmaf(dx, dx, across));
  }
  for (unsigned k = 0; k < CELLS && left + k * BLOCK_X < p.width; k++)
    p.potential[(size_t)row * p.width + left + k * BLOCK_X] += sum[k];
}

static void portion_on_cpu(plane p, const atom *atoms, unsigned count) {
  for (unsigned row = 0; row < p.height; row++)
    for (unsigned left = 0; left < p.width; left++)
      if (left / BLOCK_X % CELLS == 0) cells_on_cpu(p, atoms, count, left, row);
}

static void portions_on_gpu(plane p, const atom *atoms, unsigned count, unsigned portions) {
  size_t bytes = (size_t)p.width * p.height * sizeof(float);
  gpu_open(workload_ptx);
  gpu_kernel kernel = gpu_find_kernel("coulomb");
  gpu_pointer constant = gpu_find_variable("atoms"), potential = gpu_upload(p.potential, bytes);
  gpu_shape shape = {gpu_divide_up(p.width, BLOCK_X * CELLS), gpu_divide_up(p.height, BLOCK_Y), BLOCK_X, BLOCK_Y};
  for (unsigned i = 0; i < portions; i++) {
    gpu_copy_to_device(constant, atoms + (size_t)i * count, count * sizeof *atoms);
    GPU_LAUNCH(kernel, shape, potential, p.width, p.height, p.spacing, count);
  }
  gpu_copy_to_host(p.potential, potential, bytes);
  gpu_free(potential);
  gpu_close();
}

static atom random_atom(workload_random *random, float width, float height) {
  float above = 0.5f + workload_random_float(random);
  return (atom){width * workload_random_float(random), height * workload_random_float(random), above * above,
                workload_random_float(random) - 0.5f};
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {
      {"width", 512, 1, 16384}, {"height", 512, 1, 16384}, {"atoms", 64, 1, MOST_ATOMS}, {"portions", 1, 1, 1000}};
  workload_arguments(argc, argv, "coulomb", "the potential of point charges on a grid", arguments, 4);
  plane got = {(unsigned)arguments[0].value, (unsigned)arguments[1].value, 0.1f, NULL}, expected = got;
  unsigned count = (unsigned)arguments[2].value, portions = (unsigned)arguments[3].value;
  size_t cells = (size_t)got.width * got.height;
  workload_random random = {22};
  got.potential = workload_random_floats(&random, cells, 0, 1);
  expected.potential = workload_memory(cells, sizeof(float));
  memcpy(expected.potential, got.potential, cells * sizeof(float));
  atom *atoms = workload_memory((size_t)count * portions, sizeof *atoms);
  for (size_t i = 0; i < (size_t)count * portions; i++)
    atoms[i] = random_atom(&random, got.spacing * (float)got.width, got.spacing * (float)got.height);
  workload_cpu_begins();
  for (unsigned i = 0; i < portions; i++) portion_on_cpu(expected, atoms + (size_t)i * count, count);
  workload_cpu_ends();
  portions_on_gpu(got, atoms, count, portions);

  size_t wrong = workload_floats_differ(got.potential, expected.potential, cells);
  free(atoms), free(got.potential), free(expected.potential);
  return workload_verdict_exact("coulomb", cells, wrong);
}
