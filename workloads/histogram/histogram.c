/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of histogram: bytes with a few frequent values (the larger of two random ones), counted exactly. */
#include "gpu.h"
#include "workload.h"

#include <stdlib.h>

#define BINS 256

extern const char workload_ptx[];

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"words", 1 << 20, 1, 1 << 28}, {"blocks", 64, 1, 65535}};
  workload_arguments(argc, argv, "histogram", "counts the bytes of an array (four to a word)", arguments, 2);
  unsigned count = (unsigned)arguments[0].value;

  workload_random random = {6};
  unsigned char *data = workload_memory(count, 4);
  unsigned expected[BINS] = {0}, bins[BINS];
  for (size_t i = 0; i < (size_t)count * 4; i++) {
    unsigned one = workload_random_below(&random, 256), other = workload_random_below(&random, 256);
    data[i] = (unsigned char)(one > other ? one : other);
    expected[data[i]]++;
  }

  gpu_open(workload_ptx);
  gpu_pointer device_data = gpu_upload(data, (size_t)count * 4), device_bins = gpu_allocate(sizeof bins);
  gpu_set_words(device_bins, 0, BINS);
  gpu_shape shape = {(unsigned)arguments[1].value, 1, 256, 1};
  GPU_LAUNCH(gpu_find_kernel("histogram"), shape, device_data, count, device_bins);
  gpu_copy_to_host(bins, device_bins, sizeof bins);
  gpu_free(device_data), gpu_free(device_bins);
  gpu_close();

  size_t wrong = 0;
  for (unsigned i = 0; i < BINS; i++) wrong += bins[i] != expected[i];
  free(data);
  return workload_verdict_exact("histogram", BINS, wrong);
}
