/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of graphs that are batches of copies: the parameters that both interfaces have, and the engine's. Neither
 * copies what the lists have; the context is the caller's to translate. */
#ifndef FF_DRIVER_BATCH_PARAMS_H
#define FF_DRIVER_BATCH_PARAMS_H

#include "driver/engine/engine_graph.h"
#include "driver/graph_abi.h"

static inline engine_batch batch_from_params(const cudaMemcpyBatchNodeParams *from) {
  return (engine_batch){.to = (const uint64_t *)from->dsts,
                        .from = (const uint64_t *)from->srcs,
                        .sizes = from->sizes,
                        .indices = from->attrsIdxs,
                        .attributes = from->attrs,
                        .count = from->count,
                        .kinds = from->numAttrs};
}

/* As a node's parameters are given back: the lists are the node's, and not to be changed. */
static inline cudaMemcpyBatchNodeParams batch_to_params(const engine_batch *batch) {
  return (cudaMemcpyBatchNodeParams){.count = batch->count,
                                     .dsts = (void **)(uintptr_t)batch->to,
                                     .srcs = (void **)(uintptr_t)batch->from,
                                     .sizes = (size_t *)(uintptr_t)batch->sizes,
                                     .attrs = (cudaMemcpyAttributes *)(uintptr_t)batch->attributes,
                                     .attrsIdxs = (size_t *)(uintptr_t)batch->indices,
                                     .numAttrs = batch->kinds};
}

#endif
