/* SPDX-License-Identifier: Apache-2.0 */
/* What NVIDIA's driver library does not have: include/farfault/virtual.h. */
#include "farfault/virtual.h"

#include "driver/libcuda.h"

LIBCUDA int farfaultHostTime(uint64_t *picoseconds) {
  LIBCUDA_TRY(libcuda_ready());
  if (!picoseconds) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_host_time(picoseconds));
}
