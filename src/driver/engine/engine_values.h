/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on one value in memory: a stream, or a node of a graph, writes it, waits for it, or adds to it
 * (Driver API, "Stream Memory Operations"). A batch is carried out in its order.
 *
 * Waiting holds up the thread that carries it out, as every device operation does here: it can only be for what is
 * there already, or what another thread of the program writes. After ENGINE_VALUE_PATIENCE_MS it is given up, with a
 * message. */
#ifndef FF_DRIVER_ENGINE_VALUES_H
#define FF_DRIVER_ENGINE_VALUES_H

#include "driver/engine/engine.h"

#define ENGINE_VALUE_PATIENCE_MS 2000
#define ENGINE_VALUES_MAX 256u /* of one batch */

enum { /* CUstreamBatchMemOpType */
       ENGINE_VALUE_WAIT_32 = 1,
       ENGINE_VALUE_WRITE_32,
       ENGINE_VALUE_FLUSH,
       ENGINE_VALUE_WAIT_64,
       ENGINE_VALUE_WRITE_64,
       ENGINE_VALUE_BARRIER,
       ENGINE_VALUE_REDUCE = 8
};
enum { /* CUstreamAtomicReductionOpType */
       ENGINE_REDUCE_ADD = 0,
       ENGINE_REDUCE_AND = 5,
       ENGINE_REDUCE_OR = 6
};
enum { /* CUstreamAtomicReductionDataType */
       ENGINE_REDUCE_U32 = 14,
       ENGINE_REDUCE_U64 = 22
};

typedef union engine_value { /* CUstreamBatchMemOpParams */
  int type;
  struct {
    int type;
    uint64_t address, value;
    unsigned flags;
    uint64_t alias; /* the driver's own: not looked at */
  } of;
  struct { /* of ENGINE_VALUE_REDUCE; no flags */
    int type;
    unsigned flags;
    int operation, data;
    uint64_t address, value, alias;
  } reduce;
  uint64_t room[6];
} engine_value;

/* In the stream, or, if that is captured, as a node of its graph. cudaErrorInvalidValue: more than ENGINE_VALUES_MAX,
 * an operation or flag that is not there, or an address that is not aligned or not the GPU's: what came before it has
 * been done. cudaErrorNotSupported: waited in vain. */
ENGINE_API cudaError_t engine_values_run(cudaStream_t stream, const engine_value *list, size_t count);

#endif
