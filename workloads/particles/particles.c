/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of particles: atoms near the points of a lattice, a few in each box. They stay in their boxes for the few steps that are taken (a step moves
 * an atom by a thousandth of a box). The CPU moves them with the same operations in the same order (cells.h); all numbers are compared bit for bit. */
#include "cells.h"
#include "gpu.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char workload_ptx[];

typedef struct atoms {
  unsigned side, boxes; /* side: of the grid, in boxes */
  float length;         /* of an edge */
  float *numbers;       /* ATOM_NUMBERS arrays of boxes x SLOTS */
  unsigned *counts;     /* of each box */
} atoms;

/* An atom near each of 3 x 3 x 2 points of each box, 18 a box: 1.15 of the potential's unit of length in a unit of volume. */
static atoms random_atoms(unsigned side) {
  workload_random random = {47};
  atoms a = {side, side * side * side, REACH * (float)side, NULL, NULL};
  size_t cells = (size_t)a.boxes * SLOTS;
  a.numbers = workload_memory(ATOM_NUMBERS * cells, sizeof *a.numbers);
  a.counts = workload_memory(a.boxes, sizeof *a.counts);
  for (unsigned box = 0; box < a.boxes; box++)
    for (unsigned i = 0; i < 18; i++) {
      float *atom = a.numbers + (size_t)box * SLOTS + a.counts[box]++;
      unsigned corner[3] = {box % side, box / side % side, box / (side * side)}, point[3] = {i % 3, i / 3 % 3, i / 9};
      for (unsigned d = 0; d < 3; d++) {
        float apart = REACH / (d < 2 ? 3.0f : 2.0f);
        atom[(PLACE + d) * cells] = REACH * (float)corner[d] + apart * ((float)point[d] + 0.45f + 0.1f * workload_random_float(&random));
        atom[(SPEED + d) * cells] = workload_random_float(&random) - 0.5f;
      }
    }
  return a;
}

static void forces_on_cpu(atoms *a) {
  size_t cells = (size_t)a->boxes * SLOTS;
  unsigned side = a->side;
  for (unsigned box = 0; box < a->boxes; box++)
    for (unsigned slot = 0; slot < a->counts[box]; slot++) {
      float *atom = a->numbers + (size_t)box * SLOTS + slot;
      particles_sum sum = {0, 0, 0, 0};
      for (unsigned i = 0; i < 27; i++) {
        unsigned x = (box % side + side + i % 3 - 1) % side, y = (box / side % side + side + i / 3 % 3 - 1) % side,
                 z = (box / (side * side) + side + i / 9 - 1) % side, near = (z * side + y) * side + x;
        for (unsigned other = 0; other < a->counts[near]; other++) {
          const float *of = a->numbers + (size_t)near * SLOTS + other;
          float way[3];
          for (unsigned d = 0; d < 3; d++) way[d] = particles_way(atom[(PLACE + d) * cells], of[(PLACE + d) * cells], a->length);
          sum = particles_add(sum, way[0], way[1], way[2]);
        }
      }
      atom[FORCE * cells] = sum.x, atom[(FORCE + 1) * cells] = sum.y, atom[(FORCE + 2) * cells] = sum.z, atom[ENERGY * cells] = sum.energy;
    }
}

static void move_on_cpu(atoms *a) {
  size_t cells = (size_t)a->boxes * SLOTS;
  for (unsigned box = 0; box < a->boxes; box++)
    for (unsigned slot = 0; slot < a->counts[box]; slot++)
      for (unsigned d = 0; d < 3; d++) {
        float *atom = a->numbers + (size_t)box * SLOTS + slot, *speed = atom + (SPEED + d) * cells, *place = atom + (PLACE + d) * cells;
        *speed = fmaf(STEP, atom[(FORCE + d) * cells], *speed);
        *place = fmaf(STEP, *speed, *place);
      }
}

static void move_on_gpu(atoms *a, unsigned steps) {
  size_t bytes = (size_t)ATOM_NUMBERS * a->boxes * SLOTS * sizeof *a->numbers;
  unsigned side = a->side, boxes = a->boxes;
  float length = a->length;
  gpu_open(workload_ptx);
  gpu_kernel force = gpu_find_kernel("particles_force"), move = gpu_find_kernel("particles_move");
  gpu_pointer numbers = gpu_upload(a->numbers, bytes), counts = gpu_upload(a->counts, boxes * sizeof *a->counts);
  gpu_shape shape = {boxes, 1, SLOTS, 1};
  for (unsigned i = 0; i < steps; i++) {
    GPU_LAUNCH(force, shape, numbers, counts, side, length);
    GPU_LAUNCH(move, shape, numbers, counts, boxes);
  }
  gpu_copy_to_host(a->numbers, numbers, bytes);
  gpu_free(numbers), gpu_free(counts);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"side", 8, 3, 128}, {"steps", 1, 1, 20}};
  workload_arguments(argc, argv, "particles", "molecular dynamics of a cube of so many boxes a side", arguments, 2);
  unsigned side = (unsigned)arguments[0].value, steps = (unsigned)arguments[1].value;
  atoms expected = random_atoms(side), got = random_atoms(side);
  workload_cpu_begins();
  for (unsigned i = 0; i < steps; i++) forces_on_cpu(&expected), move_on_cpu(&expected);
  workload_cpu_ends();
  move_on_gpu(&got, steps);
  size_t cells = (size_t)got.boxes * SLOTS, numbers = ATOM_NUMBERS * cells;
  double energy = 0;
  for (size_t i = 0; i < cells; i++) energy += got.numbers[ENERGY * cells + i];
  printf("particles: %u boxes of 18 atoms, energy of an atom %.6f\n", got.boxes, energy / (18.0 * got.boxes));
  size_t wrong = workload_floats_differ(got.numbers, expected.numbers, numbers);
  free(expected.numbers), free(expected.counts), free(got.numbers), free(got.counts);
  return workload_verdict_exact("particles", numbers, wrong);
}
