/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of reduce. The maximum and the sum of the integers must be exact: every element counts once. The order of
 * the floating-point additions differs from the CPU's, so that sum is compared with one in double precision: with n
 * values in [0, 1) added in a tree, the relative error stays far under (strides + tree levels) units in the last place.
 */
#include "gpu.h"
#include "workload.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

extern const char workload_ptx[];

typedef struct partial { /* same as in reduce.cu */
  float sum;
  unsigned total;
  int most;
} partial;

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"elements", 1 << 20, 1, 1 << 28}, {"blocks", 128, 1, 65535}, {"stretches", 0, 0, 1}};
  workload_arguments(argc, argv, "reduce", "sums and maximum of two arrays, by warp shuffles", arguments, 3);
  unsigned count = (unsigned)arguments[0].value, blocks = (unsigned)arguments[1].value, threads = 256;

  workload_random random = {7};
  float *floats = workload_memory(count, sizeof *floats);
  int *integers = workload_memory(count, sizeof *integers), most = INT_MIN;
  unsigned total = 0;
  double sum = 0;
  for (unsigned i = 0; i < count; i++) {
    sum += floats[i] = workload_random_float(&random);
    integers[i] = (int)workload_random_u32(&random) / 2;
    total += (unsigned)integers[i];
    if (integers[i] > most) most = integers[i];
  }

  partial result;
  gpu_open(workload_ptx);
  gpu_pointer device_floats = gpu_upload(floats, count * sizeof *floats);
  gpu_pointer device_integers = gpu_upload(integers, count * sizeof *integers);
  gpu_pointer partials = gpu_allocate(blocks * sizeof result), device_result = gpu_allocate(sizeof result);
  gpu_shape many = {blocks, 1, threads, 1}, one = {1, 1, threads, 1};
  if (arguments[2].value) {
    unsigned stretch = gpu_divide_up(gpu_divide_up(count, blocks), threads) * threads;
    GPU_LAUNCH(gpu_find_kernel("reduce_stretches"), many, device_floats, device_integers, count, stretch, partials);
  } else GPU_LAUNCH(gpu_find_kernel("reduce_array"), many, device_floats, device_integers, count, partials);
  GPU_LAUNCH(gpu_find_kernel("reduce_partials"), one, partials, blocks, device_result);
  gpu_copy_to_host(&result, device_result, sizeof result);
  gpu_free(device_floats), gpu_free(device_integers), gpu_free(partials), gpu_free(device_result);
  gpu_close();

  unsigned longest = gpu_divide_up(count, blocks * threads) + gpu_divide_up(blocks, threads) + 20;
  printf("reduce: sum %.9g (%.9g in double precision), total %u (%u), maximum %d (%d)\n", result.sum, sum, result.total,
         total, result.most, most);
  free(floats), free(integers);
  size_t wrong = (result.most != most) + (result.total != total);
  if (wrong) return workload_verdict_exact("reduce", 2, wrong);
  return workload_verdict_error("reduce", count, workload_error(result.sum, sum, sum > 0 ? sum : 1), longest * 0x1p-24);
}
