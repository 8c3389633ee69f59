/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of vectoradd: launches of the same sum, compared bit for bit (a single-precision addition has one right result).
 * The CPU writes its sum, as the kernel does, to memory that has been touched: first touches are none of its work. */
#include "gpu.h"
#include "workload.h"

#include <stdlib.h>

extern const char workload_ptx[];

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"elements", 1 << 20, 1, 1 << 28}, {"iterations", 1, 1, 1000000}};
  workload_arguments(argc, argv, "vectoradd", "adds two vectors", arguments, 2);
  unsigned count = (unsigned)arguments[0].value;
  size_t bytes = count * sizeof(float);

  workload_random random = {1};
  float *a = workload_memory(count, sizeof *a), *b = workload_memory(count, sizeof *b),
        *sum = workload_memory(count, sizeof *sum), *expected = workload_memory(count, sizeof *expected);
  for (unsigned i = 0; i < count; i++) {
    a[i] = workload_random_float(&random);
    b[i] = workload_random_float(&random) * 1000;
    expected[i] = 0;
  }

  gpu_open(workload_ptx);
  gpu_pointer device_a = gpu_upload(a, bytes), device_b = gpu_upload(b, bytes), device_sum = gpu_allocate(bytes);
  gpu_shape shape = {gpu_divide_up(count, 256), 1, 256, 1};
  gpu_kernel kernel = gpu_find_kernel("vectoradd");
  for (long i = 0; i < arguments[1].value; i++) GPU_LAUNCH(kernel, shape, device_a, device_b, device_sum, count);
  gpu_copy_to_host(sum, device_sum, bytes);
  gpu_free(device_a), gpu_free(device_b), gpu_free(device_sum);
  gpu_close();

  workload_cpu_begins();
  for (unsigned i = 0; i < count; i++) expected[i] = a[i] + b[i];
  workload_cpu_ends();
  size_t wrong = workload_floats_differ(sum, expected, count);
  free(a), free(b), free(sum), free(expected);
  return workload_verdict_exact("vectoradd", count, wrong);
}
