/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of walsh: dyadic convolution of data with a short filter, again and again: transform, multiply by the filter's
 * spectrum, transform back. The CPU takes its rounds one by one; each sum has the same two terms: compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <stdlib.h>

#define LOG2_TILE 11
#define THREADS ((1u << LOG2_TILE) / 4)
#define FILTER 64 /* numbers of the filter that are not zero, at most; their sizes add up to at most 1 */

extern const char workload_ptx[];

typedef struct kernels {
  gpu_kernel step, tile, multiply;
} kernels;

static void transform_on_gpu(const kernels *k, gpu_pointer data, unsigned log2_count) {
  unsigned count = 1u << log2_count, left = log2_count;
  for (; left > LOG2_TILE; left -= 2) {
    unsigned stride = 1u << (left - 2);
    gpu_shape fours = {gpu_divide_up(count / 4, 256), 1, 256, 1};
    GPU_LAUNCH(k->step, fours, data, stride, count);
  }
  gpu_shape tiles = {1u << (log2_count - left), 1, THREADS, 1};
  GPU_LAUNCH(k->tile, tiles, data, left);
}

static void convolve_on_gpu(float *data, const float *filter, unsigned log2_count, long iterations) {
  unsigned count = 1u << log2_count;
  float scale = 1.0f / (float)count;
  gpu_shape all = {gpu_divide_up(count, 256), 1, 256, 1};
  gpu_open(workload_ptx);
  kernels k = {gpu_find_kernel("walsh_step"), gpu_find_kernel("walsh_tile"), gpu_find_kernel("walsh_multiply")};
  gpu_pointer device_data = gpu_upload(data, count * sizeof *data), spectrum = gpu_upload(filter, count * sizeof *filter);
  transform_on_gpu(&k, spectrum, log2_count);
  for (long i = 0; i < iterations; i++) {
    transform_on_gpu(&k, device_data, log2_count);
    GPU_LAUNCH(k.multiply, all, device_data, spectrum, scale, count);
    transform_on_gpu(&k, device_data, log2_count);
  }
  gpu_copy_to_host(data, device_data, count * sizeof *data);
  gpu_free(device_data), gpu_free(spectrum);
  gpu_close();
}

static void transform_on_cpu(float *data, size_t count) {
  for (size_t distance = count / 2; distance > 0; distance /= 2)
    for (size_t first = 0; first < count; first += 2 * distance)
      for (size_t i = first; i < first + distance; i++) {
        float a = data[i], b = data[i + distance];
        data[i] = a + b;
        data[i + distance] = a - b;
      }
}

static void convolve_on_cpu(float *data, float *filter, size_t count, long iterations) {
  float scale = 1.0f / (float)count;
  transform_on_cpu(filter, count);
  for (long i = 0; i < iterations; i++) {
    transform_on_cpu(data, count);
    for (size_t at = 0; at < count; at++) data[at] = data[at] * filter[at] * scale;
    transform_on_cpu(data, count);
  }
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"log2-elements", 18, 1, 27}, {"iterations", 1, 0, 1000000}};
  workload_arguments(argc, argv, "walsh", "dyadic convolution by fast Walsh transforms", arguments, 2);
  unsigned log2_count = (unsigned)arguments[0].value;
  size_t count = (size_t)1 << log2_count, filter_count = count < FILTER ? count : FILTER;

  workload_random random = {32};
  float *expected = workload_random_floats(&random, count, -1, 2), *got = workload_memory(count, sizeof *got),
        *filter = workload_memory(count, sizeof *filter);
  for (size_t i = 0; i < filter_count; i++) filter[i] = (workload_random_float(&random) - 0.5f) * (2.0f / FILTER);
  for (size_t i = 0; i < count; i++) got[i] = expected[i];
  convolve_on_gpu(got, filter, log2_count, arguments[1].value);
  workload_cpu_begins();
  convolve_on_cpu(expected, filter, count, arguments[1].value);
  workload_cpu_ends();

  size_t wrong = workload_floats_differ(got, expected, count);
  free(got), free(expected), free(filter);
  return workload_verdict_exact("walsh", count, wrong);
}
