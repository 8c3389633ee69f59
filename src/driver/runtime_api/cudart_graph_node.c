/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of the CUDA runtime's graphs, by kind: the runtime's structures to the engine's, and back (cudart_graph.h).
 *
 * A structure that is given back describes the same operation, but may differ from the one that was set: a copy's
 * positions are part of its pointers. */
#include <string.h>

#include "driver/batch_params.h"
#include "driver/runtime_api/cudart_graph.h"

/* An impossible grid or block is a launch's own error only where something is launched. */
cudaError_t cudart_node_error(cudaError_t error) {
  return error == cudaErrorInvalidConfiguration ? cudaErrorInvalidValue : error;
}

static cudaError_t add(CUDART_ADD, cudaError_t error, engine_node_params *params) {
  if (!error) error = engine_graph_add(graph, (engine_node *const *)before, NULL, count, params, node);
  return engine_return(cudart_node_error(error));
}
static cudaError_t set(cudaGraphNode_t node, cudaError_t error, const engine_node_params *params) {
  return engine_return(error ? error : cudart_node_error(engine_node_set(node, params)));
}
static cudaError_t set_exec(cudaGraphExec_t exec, cudaGraphNode_t node, cudaError_t error,
                            const engine_node_params *params) {
  return engine_return(error ? error : cudart_node_error(engine_exec_set(exec, node, params)));
}
static cudaError_t get(cudaGraphNode_t node, engine_node_kind kind, const void *out, engine_node_params *params) {
  cudaError_t error = out ? engine_node_get(node, params) : cudaErrorInvalidValue;
  return error ? error : params->kind == kind ? cudaSuccess : cudaErrorInvalidValue;
}

/* The calls that set what an Add call sets: on the node, and on an exec's. MAKE fills `made` from the PARAMETERS. */
#define NODE_CALLS(ADD, SET, SET_EXEC, PARAMETERS, MAKE)                                    \
  CUDART_API cudaError_t ADD(CUDART_ADD, PARAMETERS) {                                      \
    engine_node_params made = {.kind = ENGINE_NODE_EMPTY};                                  \
    cudaError_t error = MAKE;                                                               \
    return add(node, graph, before, count, error, &made);                                   \
  }                                                                                         \
  CUDART_API cudaError_t SET(cudaGraphNode_t node, PARAMETERS) {                            \
    engine_node_params made = {.kind = ENGINE_NODE_EMPTY};                                  \
    cudaError_t error = MAKE;                                                               \
    return set(node, error, &made);                                                         \
  }                                                                                         \
  CUDART_API cudaError_t SET_EXEC(cudaGraphExec_t exec, cudaGraphNode_t node, PARAMETERS) { \
    engine_node_params made = {.kind = ENGINE_NODE_EMPTY};                                  \
    cudaError_t error = MAKE;                                                               \
    return set_exec(exec, node, error, &made);                                              \
  }
#define LIST(...) __VA_ARGS__

/* ---- kernels ---- */

static cudaError_t read_extra(void **extra, engine_launch *launch) {
  size_t *bytes = NULL;
  for (; *extra; extra += 2) {
    if (extra[0] == (void *)1) launch->packed = extra[1];
    else if (extra[0] == (void *)2) bytes = extra[1];
    else return cudaErrorInvalidValue;
  }
  if (!launch->packed || !bytes) return cudaErrorInvalidValue;
  launch->packed_bytes = *bytes;
  return cudaSuccess;
}

static cudaError_t make_kernel(const cudaKernelNodeParams *from, engine_node_params *to) {
  if (!from || (from->kernelParams && from->extra)) return cudaErrorInvalidValue;
  engine_function *function;
  cudaError_t error = cudart_function_find(from->func, &function);
  if (error) return error;
  *to = (engine_node_params){.kind = ENGINE_NODE_KERNEL,
                             .launch = {.function = function,
                                        .grid = {from->gridDim.x, from->gridDim.y, from->gridDim.z},
                                        .block = {from->blockDim.x, from->blockDim.y, from->blockDim.z},
                                        .dynamic_shared = from->sharedMemBytes,
                                        .arguments = from->kernelParams}};
  return from->extra ? read_extra(from->extra, &to->launch) : cudaSuccess;
}

NODE_CALLS(cudaGraphAddKernelNode, cudaGraphKernelNodeSetParams, cudaGraphExecKernelNodeSetParams,
           LIST(const cudaKernelNodeParams *params), make_kernel(params, &made))

CUDART_API cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams *out) {
  engine_node_params p;
  cudaError_t error = get(node, ENGINE_NODE_KERNEL, out, &p);
  if (error) return engine_return(error);
  const void *host = cudart_function_host(p.launch.function);
  *out = (cudaKernelNodeParams){.func = host ? (void *)(uintptr_t)host : p.launch.function,
                                .gridDim = {p.launch.grid[0], p.launch.grid[1], p.launch.grid[2]},
                                .blockDim = {p.launch.block[0], p.launch.block[1], p.launch.block[2]},
                                .sharedMemBytes = (unsigned)p.launch.dynamic_shared,
                                .kernelParams = p.launch.arguments};
  return cudaSuccess;
}

CUDART_API cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t first, cudaGraphNode_t second) {
  return engine_return(CUDART_MAJOR >= 13 ? engine_node_copy_attributes(first, second)
                                          : engine_node_copy_attributes(second, first));
}
CUDART_API cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, int attribute,
                                                       cudaLaunchAttributeValue *value) {
  return engine_return(engine_node_attribute(node, attribute, value));
}
CUDART_API cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, int attribute,
                                                       const cudaLaunchAttributeValue *value) {
  return engine_return(engine_node_set_attribute(node, attribute, value));
}

/* ---- copies ---- */

static cudaError_t make_copy(const cudaMemcpy3DParms *from, engine_node_params *to) {
  if (!from) return cudaErrorInvalidValue;
  if (!from->extent.width || !from->extent.height || !from->extent.depth) return cudaErrorInvalidValue; /* no node */
  *to = (engine_node_params){.kind = ENGINE_NODE_COPY};
  return cudart_copy_params(from, &to->copy);
}

NODE_CALLS(cudaGraphAddMemcpyNode, cudaGraphMemcpyNodeSetParams, cudaGraphExecMemcpyNodeSetParams,
           LIST(const cudaMemcpy3DParms *params), make_copy(params, &made))

static cudaPitchedPtr pitched(uint64_t address, uint64_t pitch, uint64_t slice, const engine_copy *copy) {
  size_t row = copy->height > 1 || copy->depth > 1 ? pitch : copy->width;
  return (cudaPitchedPtr){(void *)(uintptr_t)address, row, 0, /* the logical width is not kept */
                          copy->depth > 1 && row ? slice / row : copy->height};
}

static cudaMemcpyKind kind_of(const engine_copy *copy) {
  if (copy->to_side == ENGINE_SIDE_ANY || copy->from_side == ENGINE_SIDE_ANY) return cudaMemcpyDefault;
  if (copy->to_side == ENGINE_SIDE_DEVICE)
    return copy->from_side == ENGINE_SIDE_DEVICE ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  return copy->from_side == ENGINE_SIDE_DEVICE ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

CUDART_API cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms *out) {
  engine_node_params p;
  cudaError_t error = get(node, ENGINE_NODE_COPY, out, &p);
  if (error) return engine_return(error);
  *out = (cudaMemcpy3DParms){.srcPtr = pitched(p.copy.from, p.copy.from_pitch, p.copy.from_slice, &p.copy),
                             .dstPtr = pitched(p.copy.to, p.copy.to_pitch, p.copy.to_slice, &p.copy),
                             .extent = {p.copy.width, p.copy.height, p.copy.depth},
                             .kind = kind_of(&p.copy)};
  return cudaSuccess;
}

static cudaError_t make_1d(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, engine_node_params *made) {
  cudaMemcpy3DParms p = {.srcPtr = {(void *)(uintptr_t)from, bytes, bytes, 1},
                         .dstPtr = {to, bytes, bytes, 1},
                         .extent = {bytes, 1, 1},
                         .kind = kind};
  return make_copy(&p, made);
}

NODE_CALLS(cudaGraphAddMemcpyNode1D, cudaGraphMemcpyNodeSetParams1D, cudaGraphExecMemcpyNodeSetParams1D,
           LIST(void *to, const void *from, size_t bytes, cudaMemcpyKind kind), make_1d(to, from, bytes, kind, &made))

static cudaError_t make_to_symbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                                  cudaMemcpyKind kind, engine_node_params *made) {
  uint64_t to;
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  cudaError_t error = cudart_symbol_part(symbol, bytes, offset, &to);
  return error ? error : make_1d((void *)(uintptr_t)to, from, bytes, kind, made);
}

NODE_CALLS(cudaGraphAddMemcpyNodeToSymbol, cudaGraphMemcpyNodeSetParamsToSymbol,
           cudaGraphExecMemcpyNodeSetParamsToSymbol,
           LIST(const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind),
           make_to_symbol(symbol, from, bytes, offset, kind, &made))

static cudaError_t make_from_symbol(void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                                    engine_node_params *made) {
  uint64_t from;
  if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  cudaError_t error = cudart_symbol_part(symbol, bytes, offset, &from);
  return error ? error : make_1d(to, (const void *)(uintptr_t)from, bytes, kind, made);
}

NODE_CALLS(cudaGraphAddMemcpyNodeFromSymbol, cudaGraphMemcpyNodeSetParamsFromSymbol,
           cudaGraphExecMemcpyNodeSetParamsFromSymbol,
           LIST(void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind),
           make_from_symbol(to, symbol, bytes, offset, kind, &made))

/* ---- sets ---- */

static cudaError_t make_set(const cudaMemsetParams *from, engine_node_params *to) {
  if (!from || (from->elementSize != 1 && from->elementSize != 2 && from->elementSize != 4))
    return cudaErrorInvalidValue;
  if (from->height > 1 && from->pitch / from->elementSize < from->width) return cudaErrorInvalidValue;
  *to = (engine_node_params){.kind = ENGINE_NODE_SET,
                             .set = {.to = (uint64_t)(uintptr_t)from->dst,
                                     .width = from->width,
                                     .height = from->height,
                                     .depth = 1,
                                     .pitch = from->pitch,
                                     .value = from->value,
                                     .element = from->elementSize,
                                     .async = true}};
  return cudaSuccess;
}

NODE_CALLS(cudaGraphAddMemsetNode, cudaGraphMemsetNodeSetParams, cudaGraphExecMemsetNodeSetParams,
           LIST(const cudaMemsetParams *params), make_set(params, &made))

CUDART_API cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams *out) {
  engine_node_params p;
  cudaError_t error = get(node, ENGINE_NODE_SET, out, &p);
  if (!error)
    *out = (cudaMemsetParams){
        (void *)(uintptr_t)p.set.to, p.set.pitch, (unsigned)p.set.value, p.set.element, p.set.width, p.set.height};
  return engine_return(error);
}

/* ---- host functions, child graphs, events ---- */

static cudaError_t make_host(const cudaHostNodeParams *from, engine_node_params *to) {
  if (!from) return cudaErrorInvalidValue;
  *to = (engine_node_params){.kind = ENGINE_NODE_HOST, .host = {from->fn, from->userData}};
  return cudaSuccess;
}

NODE_CALLS(cudaGraphAddHostNode, cudaGraphHostNodeSetParams, cudaGraphExecHostNodeSetParams,
           LIST(const cudaHostNodeParams *params), make_host(params, &made))

CUDART_API cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams *out) {
  engine_node_params p;
  cudaError_t error = get(node, ENGINE_NODE_HOST, out, &p);
  if (!error) *out = (cudaHostNodeParams){p.host.function, p.host.data};
  return engine_return(error);
}

CUDART_API cudaError_t cudaGraphAddChildGraphNode(CUDART_ADD, cudaGraph_t child) {
  engine_node_params made = {.kind = ENGINE_NODE_GRAPH, .graph = child};
  return add(node, graph, before, count, cudaSuccess, &made);
}

CUDART_API cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *out) {
  engine_node_params p;
  cudaError_t error = get(node, ENGINE_NODE_GRAPH, out, &p);
  if (!error) *out = p.graph;
  return engine_return(error);
}

CUDART_API cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                            cudaGraph_t child) {
  engine_node_params made = {.kind = ENGINE_NODE_GRAPH, .graph = child};
  return set_exec(exec, node, cudaSuccess, &made);
}

CUDART_API cudaError_t cudaGraphAddEmptyNode(CUDART_ADD) {
  engine_node_params made = {.kind = ENGINE_NODE_EMPTY};
  return add(node, graph, before, count, cudaSuccess, &made);
}

static cudaError_t make_event(engine_node_kind kind, cudaEvent_t event, engine_node_params *to) {
  *to = (engine_node_params){.kind = kind, .event = event};
  return event ? cudaSuccess : cudaErrorInvalidValue;
}

NODE_CALLS(cudaGraphAddEventRecordNode, cudaGraphEventRecordNodeSetEvent, cudaGraphExecEventRecordNodeSetEvent,
           LIST(cudaEvent_t event), make_event(ENGINE_NODE_RECORD, event, &made))
NODE_CALLS(cudaGraphAddEventWaitNode, cudaGraphEventWaitNodeSetEvent, cudaGraphExecEventWaitNodeSetEvent,
           LIST(cudaEvent_t event), make_event(ENGINE_NODE_WAIT, event, &made))

static cudaError_t get_event(cudaGraphNode_t node, engine_node_kind kind, cudaEvent_t *out) {
  engine_node_params p;
  cudaError_t error = get(node, kind, out, &p);
  if (!error) *out = p.event;
  return engine_return(error);
}
CUDART_API cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {
  return get_event(node, ENGINE_NODE_RECORD, event);
}
CUDART_API cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {
  return get_event(node, ENGINE_NODE_WAIT, event);
}

/* ---- memory ---- */

static cudaError_t make_alloc(const cudaMemAllocNodeParams *from, engine_node_params *to) {
  /* 1: pinned */
  if (!from || from->poolProps.allocType != 1 || (from->accessDescCount && !from->accessDescs))
    return cudaErrorInvalidValue;
  if (from->poolProps.handleTypes) return cudaErrorNotSupported;
  if (from->poolProps.location.type != cudaMemLocationTypeDevice) return cudaErrorInvalidValue;
  *to = (engine_node_params){.kind = ENGINE_NODE_ALLOC,
                             .memory = {.bytes = from->bytesize,
                                        .device = from->poolProps.location.id,
                                        .access = from->accessDescs,
                                        .access_count = from->accessDescCount}};
  return cudaSuccess;
}

CUDART_API cudaError_t cudaGraphAddMemAllocNode(CUDART_ADD, cudaMemAllocNodeParams *params) {
  engine_node_params made;
  cudaError_t error = make_alloc(params, &made);
  error = add(node, graph, before, count, error, &made);
  if (!error) params->dptr = (void *)(uintptr_t)made.memory.address;
  return error;
}

static void fill_alloc(const engine_node_params *from, cudaMemAllocNodeParams *to) {
  *to = (cudaMemAllocNodeParams){
      .poolProps = {.allocType = 1, .location = {cudaMemLocationTypeDevice, from->memory.device}},
      .bytesize = from->memory.bytes,
      .accessDescs = from->memory.access,
      .accessDescCount = from->memory.access_count,
      .dptr = (void *)(uintptr_t)from->memory.address};
}

CUDART_API cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams *out) {
  engine_node_params p;
  cudaError_t error = get(node, ENGINE_NODE_ALLOC, out, &p);
  if (!error) fill_alloc(&p, out);
  return engine_return(error);
}

CUDART_API cudaError_t cudaGraphAddMemFreeNode(CUDART_ADD, void *pointer) {
  engine_node_params made = {.kind = ENGINE_NODE_FREE, .memory = {.address = (uint64_t)(uintptr_t)pointer}};
  return add(node, graph, before, count, cudaSuccess, &made);
}

CUDART_API cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *out) {
  engine_node_params p;
  cudaError_t error = get(node, ENGINE_NODE_FREE, out, &p);
  if (!error) memcpy(out, &p.memory.address, sizeof p.memory.address);
  return engine_return(error);
}

/* ---- batches of copies ---- */

static cudaError_t make_batch(const cudaMemcpyBatchNodeParams *from, engine_node_params *to) {
  *to = (engine_node_params){.kind = ENGINE_NODE_BATCH, .batch = batch_from_params(from)};
  return cudart_node_where(from->ctx, &to->where);
}

/* ---- any kind ---- */

static cudaError_t with_context(cudaError_t error, cudaExecutionContext_t context, engine_node_params *to) {
  return error ? error : cudart_node_where(context, &to->where);
}

cudaError_t cudart_node_params(const cudaGraphNodeParams *from, engine_node_params *to) {
  *to = (engine_node_params){.kind = (engine_node_kind)from->type};
  switch (from->type) {
  case ENGINE_NODE_KERNEL: return with_context(make_kernel(&from->kernel.of, to), from->kernel.ctx, to);
  case ENGINE_NODE_COPY: return with_context(make_copy(&from->memcpy.copyParams, to), from->memcpy.ctx, to);
  case ENGINE_NODE_SET: return with_context(make_set(&from->memset.of, to), from->memset.ctx, to);
  case ENGINE_NODE_BATCH: return make_batch(&from->memcpyBatch, to);
  case ENGINE_NODE_HOST: return make_host(&from->host, to);
  case ENGINE_NODE_GRAPH: to->graph = from->graph.graph; return cudaSuccess;
  case ENGINE_NODE_EMPTY: return cudaSuccess;
  case ENGINE_NODE_WAIT:
  case ENGINE_NODE_RECORD: to->event = from->event.event; return cudaSuccess;
  case ENGINE_NODE_ALLOC: return make_alloc(&from->alloc, to);
  case ENGINE_NODE_FREE: to->memory.address = (uint64_t)(uintptr_t)from->free.dptr; return cudaSuccess;
  case ENGINE_NODE_CONDITIONAL:
    to->conditional.handle = from->conditional.handle;
    to->conditional.type = (uint32_t)from->conditional.type;
    to->conditional.count = from->conditional.size;
    return cudaSuccess;
  default: return cudaErrorInvalidValue;
  }
}
