/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of lattice: cells of a lattice-Boltzmann method that a GPU updates per time, in a box of 256 x 256 x `planes`, by blocks of 64 threads. The
 * populations of a direction lie as far apart as in a box of 256 x 256 x 256. The difference of launches over all and over half of the
 * cells counts, behind one over all that leaves the L2 as it will be found. With `weigh` 1 it prints the mass after all steps over that
 * before, too, as a check: what cells exchange is not lost. */
#include "micro.h"

enum { SIDE = 256, THREADS = 64, DIRECTIONS = 19 };

static double weigh(gpu_pointer populations, uint64_t pitch, uint32_t cells, gpu_pointer mass) {
  double sum;
  GPU_LAUNCH(gpu_find_kernel("weigh"), ((gpu_shape){1, 1, 256, 1}), populations, pitch, cells, mass);
  gpu_copy_to_host(&sum, mass, sizeof sum);
  return sum;
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"planes", 16, 2, 256}, {"weigh", 0, 0, 1}};
  workload_arguments(argc, argv, "lattice", "updates of cells of a lattice-Boltzmann method in place", arguments, 2);
  uint32_t planes = (uint32_t)arguments[0].value, cells = planes * SIDE * SIDE, half = cells / 2;
  uint64_t pitch = SIDE * SIDE * SIDE;
  float rate = 1;
  double us[2], before = 0;
  gpu_open(workload_ptx);
  gpu_kernel step = gpu_find_kernel("step");
  gpu_pointer populations = gpu_allocate(DIRECTIONS * pitch * sizeof(float)), solid = gpu_allocate(pitch), mass = gpu_allocate(8);
  gpu_shape all = {cells / THREADS, 1, THREADS, 1}, some = {half / THREADS, 1, THREADS, 1};
  GPU_LAUNCH(gpu_find_kernel("fill"), all, populations, solid, pitch, cells);
  if (arguments[1].value) before = weigh(populations, pitch, cells, mass);
  uint32_t odd = 0;
  GPU_LAUNCH(step, all, populations, solid, pitch, planes, cells, odd, rate);
  odd = 1;
  MICRO_TIME(us[0], GPU_LAUNCH(step, all, populations, solid, pitch, planes, cells, odd, rate));
  odd = 0;
  MICRO_TIME(us[1], GPU_LAUNCH(step, some, populations, solid, pitch, planes, half, odd, rate));
  if (arguments[1].value) printf("mass = %.9f of it\n", weigh(populations, pitch, cells, mass) / before);
  micro_print("updates", (cells - half) / (us[0] - us[1]), "MLUP/s");
  gpu_close();
  return 0;
}
