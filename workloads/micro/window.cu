/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread doubles one element of a small array and one of a large one, as the kernel of the chapter "L2 Persisting Cache" in NVIDIA's
 * CUDA C++ Best Practices Guide does: the small array is gone through again and again, the large one once. */
#include "device.h"

extern "C" __global__ void window(int *kept, int *stream, unsigned kept_count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  kept[i % kept_count] = 2 * kept[i % kept_count];
  stream[i] = 2 * stream[i];
}
