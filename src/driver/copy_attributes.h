/* SPDX-License-Identifier: Apache-2.0 */
/* Of which kind the copies of a batch are (cudaMemcpyBatchAsync, cuMemcpyBatchAsync): those from indices[i] on are of
 * kind i. All of it is hints here, but for what no copy can have. */
#ifndef FF_DRIVER_COPY_ATTRIBUTES_H
#define FF_DRIVER_COPY_ATTRIBUTES_H

#include <stdbool.h>

#include "driver/cuda_abi.h"

enum { cudaMemcpySrcAccessOrderStream = 1, cudaMemcpySrcAccessOrderAny = 3 };
typedef struct cudaMemcpyAttributes { /* CUmemcpyAttributes */
  int srcAccessOrder;
  cudaMemLocation srcLocHint, dstLocHint;
  unsigned int flags;
} cudaMemcpyAttributes;

static inline bool copy_order_valid(int order) {
  return order >= cudaMemcpySrcAccessOrderStream && order <= cudaMemcpySrcAccessOrderAny;
}

/* Whether a batch of `count` copies can be of these kinds. */
static inline bool copy_attributes_valid(const cudaMemcpyAttributes *attributes, const size_t *indices, size_t kinds,
                                         size_t count) {
  if (!attributes || !indices || !kinds || kinds > count || indices[0]) return false;
  for (size_t i = 0; i < kinds; i++) {
    if (!copy_order_valid(attributes[i].srcAccessOrder)) return false;
    if (i && (indices[i] <= indices[i - 1] || indices[i] >= count)) return false;
  }
  return true;
}

#endif
