/* SPDX-License-Identifier: Apache-2.0 */
/* What NVIDIA's driver library does not have: include/farfault/virtual.h. */
#include "farfault/virtual.h"

#include "driver/driver_api/libcuda.h"

LIBCUDA int farfaultDeclareUses(const ff_virtual_use *uses, uint32_t count) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_declare_uses(uses, count));
}

LIBCUDA const char *farfaultFault(void) { return engine_fault_message(); }

LIBCUDA int farfaultPhysical(uint64_t address, uint64_t *physical) {
  LIBCUDA_TRY(libcuda_ready());
  if (!physical) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_physical(address, physical));
}

LIBCUDA int farfaultFiles(int files) {
  engine_copies_of_files(files != 0);
  return CUDA_SUCCESS;
}

LIBCUDA int farfaultHostTime(uint64_t *picoseconds) {
  LIBCUDA_TRY(libcuda_ready());
  if (!picoseconds) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_host_time(picoseconds));
}
