/* SPDX-License-Identifier: Apache-2.0 */
/* Adds to a number in managed memory three times by a stream's operations, and reads it at last. */
#include <stdint.h>

#include "driver_call.h"

typedef struct operation { /* CUstreamBatchMemOpParams */
  unsigned kind, flags;
  int operation, data; /* of a reduction */
  uint64_t address, value;
  uint64_t rest[2];
} operation;

enum { ATTACH_GLOBAL = 1, ATOMIC_REDUCTION = 8, ADD = 0, U32 = 14 };

int main(void) {
  uint64_t memory;
  driver_open(".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n");
  CALL(cuMemAllocManaged, (uint64_t *, size_t, unsigned), &memory, 1 << 16, ATTACH_GLOBAL);
  CALL(cuMemsetD32_v2, (uint64_t, unsigned, size_t), memory, 1, (1 << 16) / 4);
  for (unsigned i = 1; i <= 3; i++) {
    operation one = {.kind = ATOMIC_REDUCTION, .operation = ADD, .data = U32, .address = memory, .value = i};
    CALL(cuStreamBatchMemOp_v2, (void *, unsigned, operation *, unsigned), NULL, 1, &one, 0);
  }
  CALL(cuCtxSynchronize, (void));
  printf("%u\n", *(volatile unsigned *)(uintptr_t)memory);
  return 0;
}
