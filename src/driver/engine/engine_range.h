/* SPDX-License-Identifier: Apache-2.0 */
/* What hints a program has given on managed memory: for cudaMemRangeGetAttribute and cuMemRangeGetAttribute.
 *
 * Hints go to the access stream when they are given, and the simulated managers act on them; this copy of them answers
 * the attribute calls. A span has its allocation's id, so that the hints of a freed allocation are not those of a later
 * one at its address. */
#ifndef FF_DRIVER_ENGINE_RANGE_H
#define FF_DRIVER_ENGINE_RANGE_H

#include "driver/engine/engine.h"

/* For engine_advise and engine_prefetch, with the lock held, after their checks. */
void engine_range_advise(uint64_t address, uint64_t bytes, int advice, int device);
void engine_range_prefetch(uint64_t address, uint64_t bytes, int device);

/* Has a page of the allocation at `address` a hint, but for this preferred location (cudaInvalidDeviceId: none) and
 * prefetches? With the lock held. */
bool engine_range_hinted(uint64_t address, uint64_t bytes, int preferred);

/* The numbers of cudaMemRangeAttribute and CUmem_range_attribute, 1 to 8. `data`: `bytes` bytes, 4, or of AccessedBy a
 * multiple of it. A hint counts if the whole range has it. cudaErrorInvalidValue: not managed memory, or no such
 * attribute, or wrong sizes. */
ENGINE_API cudaError_t engine_range_attribute(void *data, size_t bytes, int attribute, uint64_t address,
                                              uint64_t range);
/* Several at once. */
ENGINE_API cudaError_t engine_range_attributes(void **data, const size_t *bytes, const int *attributes, size_t count,
                                               uint64_t address, uint64_t range);

#endif
