/* SPDX-License-Identifier: Apache-2.0 */
/* Asking what hints a range of managed memory has (CUDA Runtime API, "Memory Management"). */
#include "driver/runtime_api/cudart.h"
#include "driver/engine/engine_range.h"

CUDART_API cudaError_t cudaMemRangeGetAttribute(void *data, size_t bytes, cudaMemRangeAttribute attribute,
                                                const void *pointer, size_t range) {
  return engine_return(engine_range_attribute(data, bytes, (int)attribute, (uint64_t)(uintptr_t)pointer, range));
}

CUDART_API cudaError_t cudaMemRangeGetAttributes(void **data, size_t *bytes, cudaMemRangeAttribute *attributes,
                                                 size_t count, const void *pointer, size_t range) {
  return engine_return(
      engine_range_attributes(data, bytes, (const int *)attributes, count, (uint64_t)(uintptr_t)pointer, range));
}
