/* SPDX-License-Identifier: Apache-2.0 */
/* Molecular dynamics with short-range forces: atoms in boxes of a grid that is closed in itself, a thread per slot of a box. For the force it goes
 * through the atoms of its own box and of the 26 around it. Boxes have room for more atoms than they hold, so a part of all memory is never touched. */
#include "device.h"

#include "cells.h"

/* side: boxes along each edge; counts: atoms of each box. One block of SLOTS threads per box. */
extern "C" __global__ void particles_force(float *atoms, const unsigned *counts, unsigned side, float length) {
  unsigned boxes = side * side * side, box = blockIdx.x, slot = threadIdx.x, cells = boxes * SLOTS, mine = box * SLOTS + slot;
  if (slot >= counts[box]) return;
  unsigned box_x = box % side, box_y = box / side % side, box_z = box / (side * side);
  float x = atoms[PLACE * cells + mine], y = atoms[(PLACE + 1) * cells + mine], z = atoms[(PLACE + 2) * cells + mine];
  particles_sum sum = {0, 0, 0, 0};
  for (unsigned i = 0; i < 27; i++) {
    unsigned near_x = (box_x + side + i % 3 - 1) % side, near_y = (box_y + side + i / 3 % 3 - 1) % side, near_z = (box_z + side + i / 9 - 1) % side;
    unsigned near = (near_z * side + near_y) * side + near_x, count = counts[near];
    for (unsigned other = near * SLOTS; other < near * SLOTS + count; other++)
      sum = particles_add(sum, particles_way(x, atoms[PLACE * cells + other], length), particles_way(y, atoms[(PLACE + 1) * cells + other], length),
                          particles_way(z, atoms[(PLACE + 2) * cells + other], length));
  }
  atoms[FORCE * cells + mine] = sum.x, atoms[(FORCE + 1) * cells + mine] = sum.y, atoms[(FORCE + 2) * cells + mine] = sum.z;
  atoms[ENERGY * cells + mine] = sum.energy;
}

/* Speeds by the forces, places by the speeds. */
extern "C" __global__ void particles_move(float *atoms, const unsigned *counts, unsigned boxes) {
  unsigned box = blockIdx.x, slot = threadIdx.x, cells = boxes * SLOTS, mine = box * SLOTS + slot;
  if (slot >= counts[box]) return;
  for (unsigned d = 0; d < 3; d++) {
    float speed = fmaf(STEP, atoms[(FORCE + d) * cells + mine], atoms[(SPEED + d) * cells + mine]);
    atoms[(SPEED + d) * cells + mine] = speed;
    atoms[(PLACE + d) * cells + mine] = fmaf(STEP, speed, atoms[(PLACE + d) * cells + mine]);
  }
}
