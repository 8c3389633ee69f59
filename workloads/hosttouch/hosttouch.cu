/* SPDX-License-Identifier: Apache-2.0 */
/* Two kernels of one thread: one does nothing; the other adds one to a byte in every page, so that the host can see
 * that the GPU had its newest bytes, and the host the GPU's. */
#include "device.h"

extern "C" __global__ void null_kernel(void) {}

extern "C" __global__ void count_pages(unsigned char *pages, unsigned count, unsigned page_bytes) {
  for (unsigned i = 0; i < count; i++) pages[(unsigned long long)i * page_bytes]++;
}
