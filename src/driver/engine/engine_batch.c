/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of copies (Driver API: cuMemcpyBatchAsync, CUDA_MEMCPY_BATCH_NODE_PARAMS) and of copies of boxes
 * (cuMemcpy3DBatchAsync); in the Runtime API likewise. Their order is not promised to programs; here it is the list's.
 *
 * A batch of boxes counts in elements: those of the copy's arrays, or bytes if both its ends are linear memory. A
 * pointer is where the copy begins, an array's offset where it begins in the array. */
#include <stdlib.h>
#include <string.h>

#include "driver/copy_attributes.h"
#include "driver/engine/engine_array.h"
#include "driver/engine/engine_graph_private.h"

/* ---- copies ---- */

static engine_copy copy_of(const engine_batch *batch, size_t i) {
  return (engine_copy){
      .to = batch->to[i], .from = batch->from[i], .width = batch->sizes[i], .height = 1, .depth = 1, .async = true};
}

static bool is_whole(const engine_batch *batch) {
  return batch->count && batch->to && batch->from && batch->sizes &&
         copy_attributes_valid(batch->attributes, batch->indices, batch->kinds, batch->count);
}

cudaError_t engine_copies_check_locked(const engine_batch *batch) {
  cudaError_t error = is_whole(batch) ? cudaSuccess : cudaErrorInvalidValue;
  for (size_t i = 0; !error && i < batch->count; i++) {
    engine_copy copy = copy_of(batch, i);
    error = engine_copy_check_locked(&copy);
  }
  return error;
}

static bool same_kind(const cudaMemcpyAttributes *a, const cudaMemcpyAttributes *b) {
  return a->srcAccessOrder == b->srcAccessOrder && a->flags == b->flags && a->srcLocHint.type == b->srcLocHint.type &&
         a->srcLocHint.id == b->srcLocHint.id && a->dstLocHint.type == b->dstLocHint.type &&
         a->dstLocHint.id == b->dstLocHint.id;
}

/* Pointers and sizes may change (Driver API, CUDA_MEMCPY_BATCH_NODE_PARAMS). */
bool engine_copies_replace(const engine_batch *old, const engine_batch *other) {
  bool same = is_whole(other) && old->count == other->count && old->kinds == other->kinds;
  for (size_t i = 0; same && i < old->kinds; i++)
    same = old->indices[i] == other->indices[i] && same_kind(&old->attributes[i], &other->attributes[i]);
  return same;
}

static void *kept(const void *list, size_t bytes) {
  void *copy = ff_alloc(bytes);
  memcpy(copy, list, bytes);
  return copy;
}

engine_batch engine_copies_keep(const engine_batch *batch) {
  return (engine_batch){.to = kept(batch->to, batch->count * sizeof *batch->to),
                        .from = kept(batch->from, batch->count * sizeof *batch->from),
                        .sizes = kept(batch->sizes, batch->count * sizeof *batch->sizes),
                        .indices = kept(batch->indices, batch->kinds * sizeof *batch->indices),
                        .attributes = kept(batch->attributes, batch->kinds * sizeof *batch->attributes),
                        .count = batch->count,
                        .kinds = batch->kinds};
}

void engine_copies_free(engine_batch *batch) {
  free((void *)(uintptr_t)batch->to);
  free((void *)(uintptr_t)batch->from);
  free((void *)(uintptr_t)batch->sizes);
  free((void *)(uintptr_t)batch->indices);
  free((void *)(uintptr_t)batch->attributes);
  *batch = (engine_batch){.count = 0};
}

cudaError_t engine_copies_on(const engine_batch *batch, engine_stream *stream) {
  cudaError_t error = cudaSuccess;
  for (size_t i = 0; !error && i < batch->count; i++) error = engine_copy_on(copy_of(batch, i), stream, true);
  return error;
}

static cudaError_t capture(const engine_batch *batch, cudaStream_t handle, bool *taken) {
  cudaError_t error = engine_enter_now();
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  engine_node_params params = {.kind = ENGINE_NODE_BATCH, .batch = *batch};
  error = stream ? engine_capture_take(stream, &params, true, taken) : engine_stream_error(handle);
  engine_leave();
  return error;
}

cudaError_t engine_copies_run(const engine_batch *batch, cudaStream_t stream, size_t *failed) {
  bool taken = false;
  if (failed) *failed = SIZE_MAX;
  cudaError_t error = is_whole(batch) ? capture(batch, stream, &taken) : cudaErrorInvalidValue;
  for (size_t i = 0; !error && !taken && i < batch->count; i++) {
    engine_copy copy = copy_of(batch, i);
    copy.stream = stream;
    error = engine_copy_run(&copy);
    if (error && failed) *failed = i;
  }
  return error;
}

/* ---- copies of boxes ---- */

static bool is_array(const cudaMemcpy3DOperand *operand) { return operand->type == cudaMemcpyOperandTypeArray; }

/* Bytes of an element of the operand's array; it stays if there is none. */
static cudaError_t element_of(const cudaMemcpy3DOperand *operand, uint64_t *bytes) {
  engine_array_shape shape;
  if (!is_array(operand)) return operand->type == cudaMemcpyOperandTypePointer ? cudaSuccess : cudaErrorInvalidValue;
  cudaError_t error = engine_array_describe((engine_array *)operand->op.array.array, &shape);
  if (!error) *bytes = engine_format_bytes(shape.format);
  return error;
}

static cudaError_t linear_end(const cudaMemcpy3DOperand *operand, cudaExtent extent, uint64_t element,
                              engine_box_end *end) {
  uint64_t row = operand->op.ptr.rowLength ? operand->op.ptr.rowLength : extent.width;
  uint64_t layer = operand->op.ptr.layerHeight ? operand->op.ptr.layerHeight : extent.height;
  if (row < extent.width || layer < extent.height) return cudaErrorInvalidValue;
  *end = (engine_box_end){.address = (uint64_t)(uintptr_t)operand->op.ptr.ptr, .rows = layer};
  return __builtin_mul_overflow(row, element, &end->pitch) ? cudaErrorInvalidValue : cudaSuccess;
}

static cudaError_t array_end(const cudaMemcpy3DOperand *operand, uint64_t element, engine_box_end *end) {
  cudaPos at = operand->op.array.offset;
  *end = (engine_box_end){.array = (engine_array *)operand->op.array.array, .y = at.y, .z = at.z};
  return __builtin_mul_overflow((uint64_t)at.x, element, &end->x) ? cudaErrorInvalidValue : cudaSuccess;
}

static cudaError_t end_of(const cudaMemcpy3DOperand *operand, cudaExtent extent, uint64_t element,
                          engine_box_end *end) {
  return is_array(operand) ? array_end(operand, element, end) : linear_end(operand, extent, element, end);
}

static cudaError_t box_of(const cudaMemcpy3DBatchOp *copy, cudaStream_t stream, engine_box *box) {
  uint64_t element = 1, other;
  cudaExtent extent = copy->extent;
  if (!extent.width || !extent.height || !extent.depth || !copy_order_valid(copy->srcAccessOrder))
    return cudaErrorInvalidValue;
  cudaError_t error = element_of(&copy->src, &element);
  other = element;
  if (!error) error = element_of(&copy->dst, &other);
  if (error) return error;
  if (is_array(&copy->src) && other != element) return cudaErrorInvalidValue;
  *box = (engine_box){.height = extent.height, .depth = extent.depth, .stream = stream, .async = true};
  if (__builtin_mul_overflow((uint64_t)extent.width, other, &box->width)) return cudaErrorInvalidValue;
  error = end_of(&copy->src, extent, other, &box->from);
  return error ? error : end_of(&copy->dst, extent, other, &box->to);
}

cudaError_t engine_batch_run(const cudaMemcpy3DBatchOp *list, size_t count, unsigned long long flags,
                             cudaStream_t stream, size_t *failed) {
  engine_box box;
  if (failed) *failed = SIZE_MAX;
  if (!list || !count || flags || stream == cudaStreamLegacy) return cudaErrorInvalidValue;
  for (size_t pass = 0; pass < 2; pass++)
    for (size_t i = 0; i < count; i++) {
      cudaError_t error = box_of(&list[i], stream, &box);
      if (!error && pass) error = engine_box_run(&box);
      if (error && failed) *failed = i;
      if (error) return error;
    }
  return cudaSuccess;
}
