/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of copies of boxes (Driver API: cuMemcpy3DBatchAsync; Runtime API: cudaMemcpy3DBatchAsync).
 *
 * A batch counts in elements: those of the copy's arrays, or bytes if both its ends are linear memory. A pointer is
 * where the copy begins, an array's offset where it begins in the array. */
#include "driver/copy_attributes.h"
#include "driver/engine/engine_array.h"
#include "driver/engine/engine_internal.h"

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
