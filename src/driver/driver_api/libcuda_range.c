/* SPDX-License-Identifier: Apache-2.0 */
/* Asking what hints a range of managed memory has (Driver API: "Unified Addressing"). */
#include "driver/driver_api/libcuda.h"

#include "driver/engine/engine_range.h"

LIBCUDA_CALL(cuMemRangeGetAttribute, (void *data, size_t bytes, int attribute, CUdeviceptr pointer, size_t range)) {
  LIBCUDA_TRY(libcuda_enter());
  return libcuda_result(engine_range_attribute(data, bytes, attribute, pointer, range));
}
LIBCUDA_CALL(cuMemRangeGetAttributes,
             (void **data, size_t *bytes, int *attributes, size_t count, CUdeviceptr pointer, size_t range)) {
  LIBCUDA_TRY(libcuda_enter());
  return libcuda_result(engine_range_attributes(data, bytes, attributes, count, pointer, range));
}
