/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and sets: checking, the operation for the access stream, then the bytes.
 *
 * A side of a copy is known by its address: in a device or managed allocation it is the device's; pinned, registered
 * and pageable memory is the host's. What the caller claims (cudaMemcpyHostToDevice...) must not contradict that:
 *
 *   claimed    device  managed  pinned/registered  pageable
 *   host       error   ok       ok                 ok
 *   device     ok      ok       ok (unified va)    error
 *
 * Every range must lie inside one allocation, from the first byte of its first row to the last byte of its last, or in
 * mappings without a gap between them that may be read, or written. */
#include <stdatomic.h>
#include <string.h>

#include "driver/engine/engine_graph.h"
#include "driver/engine/engine_internal.h"
#include "exec/memory/zero.h"

typedef struct region { /* the rows one side of a copy touches */
  uint64_t address, width, height, depth, pitch, slice;
} region;

/* Bytes from the first to one past the last; false: more than an address space. */
static bool region_span(const region *r, uint64_t *span) {
  uint64_t rows, slices;
  if (__builtin_mul_overflow(r->height - 1, r->height > 1 ? r->pitch : 0, &rows)) return false;
  if (__builtin_mul_overflow(r->depth - 1, r->depth > 1 ? r->slice : 0, &slices)) return false;
  if (__builtin_add_overflow(rows, slices, span) || __builtin_add_overflow(*span, r->width, span)) return false;
  return r->address + *span >= r->address;
}

static cudaError_t check_region(const region *r, engine_side side, bool write, engine_memory *memory) {
  uint64_t span;
  if (!r->address || !region_span(r, &span)) return cudaErrorInvalidValue;
  if ((r->height > 1 && r->pitch < r->width)) return cudaErrorInvalidPitchValue;
  engine_pointer pointer = engine_pointer_find_locked(r->address);
  *memory = pointer.memory;
  if (pointer.memory == ENGINE_PAGEABLE)
    return side == ENGINE_SIDE_DEVICE || exec_memory_in_arena(ff_engine.memory, r->address) ? cudaErrorInvalidValue
                                                                                            : cudaSuccess;
  if (side == ENGINE_SIDE_HOST && pointer.memory == ENGINE_DEVICE) return cudaErrorInvalidValue;
  if (pointer.range == EXEC_MAPPED)
    return engine_mapped_range(r->address, span, write) ? cudaSuccess : cudaErrorInvalidValue;
  uint64_t offset = r->address - pointer.address;
  /* host memory goes on behind it */
  if (pointer.memory == ENGINE_REGISTERED && side != ENGINE_SIDE_DEVICE) return cudaSuccess;
  return span <= pointer.bytes - offset ? cudaSuccess : cudaErrorInvalidValue;
}

static bool on_device(engine_memory memory, engine_side side) {
  return memory == ENGINE_DEVICE || (memory == ENGINE_MANAGED && side != ENGINE_SIDE_HOST);
}

static trace_direction direction_of(bool to_device, bool from_device) {
  if (to_device) return from_device ? TRACE_D2D : TRACE_H2D;
  return from_device ? TRACE_D2H : TRACE_H2H;
}

/* Rows without gaps are one long row; slices without gaps are more rows. Fewer, larger operations say the same. */
static engine_copy simplify(engine_copy copy) {
  if (copy.depth > 1 && copy.to_slice == copy.to_pitch * copy.height &&
      copy.from_slice == copy.from_pitch * copy.height) {
    copy.height *= copy.depth;
    copy.depth = 1;
  }
  if (copy.height > 1 && copy.to_pitch == copy.width && copy.from_pitch == copy.width) {
    copy.width *= copy.height;
    copy.height = 1;
    copy.to_slice = copy.from_slice = copy.depth > 1 ? copy.to_slice : 0;
  }
  return copy;
}

static void move_rows(const engine_copy *copy, uint64_t slice) {
  char *to = (char *)(uintptr_t)(copy->to + slice * copy->to_slice);
  const char *from = (const char *)(uintptr_t)(copy->from + slice * copy->from_slice);
  for (uint64_t row = 0; row < copy->height; row++)
    memmove(to + row * copy->to_pitch, from + row * copy->from_pitch, copy->width);
}

/* The host waits for a copy that touches pageable memory to read back, and for every plain one but device to device. */
static bool host_waits(const engine_copy *copy, trace_direction direction, bool pageable) {
  if (!copy->async) return direction != TRACE_D2D;
  return pageable && direction != TRACE_D2D;
}

/* Between two devices, the bytes go over the link; the local clock is the only one that needs this case. */
static uint64_t duration(const engine_copy *copy, trace_direction direction) {
  uint64_t bytes = copy->width * copy->height;
  if (direction != TRACE_D2D || engine_devices() == 1) return engine_time_transfer(bytes, direction);
  const exec_allocation *to = exec_memory_find(ff_engine.memory, copy->to),
                        *from = exec_memory_find(ff_engine.memory, copy->from);
  bool peers = to->kind == EXEC_MEMORY_DEVICE && from->kind == EXEC_MEMORY_DEVICE &&
               engine_memory_device(to) != engine_memory_device(from);
  return engine_time_transfer(bytes, peers ? TRACE_D2H : TRACE_D2D);
}

static void copy_slices(const engine_copy *copy, engine_stream *stream, trace_direction direction, bool pageable,
                        bool graph) {
  bool blocking = !graph && host_waits(copy, direction, pageable);
  engine_host_access_collect(false);
  for (uint64_t slice = 0; slice < copy->depth; slice++) {
    trace_op op = {.kind = TRACE_OP_COPY, .stream = stream->number, .blocking = blocking && slice + 1 == copy->depth};
    op.copy.to = copy->to + slice * copy->to_slice;
    op.copy.from = copy->from + slice * copy->from_slice;
    op.copy.width = copy->width;
    op.copy.height = copy->height;
    op.copy.to_pitch = copy->height > 1 ? copy->to_pitch : copy->width;
    op.copy.from_pitch = copy->height > 1 ? copy->from_pitch : copy->width;
    op.copy.direction = direction;
    op.copy.pinned = !pageable;
    op.copy.file = copy->file && (direction == TRACE_H2D || direction == TRACE_D2H);
    engine_append(&op);
    engine_time_spend(stream, duration(copy, direction), false, op.blocking);
    move_rows(copy, slice);
    engine_host_access_settle(op.copy.to, (op.copy.height - 1) * op.copy.to_pitch + op.copy.width);
    engine_host_access_settle(op.copy.from, (op.copy.height - 1) * op.copy.from_pitch + op.copy.width);
  }
}

static cudaError_t check_copy(const engine_copy *copy, engine_memory *to_memory, engine_memory *from_memory) {
  region to = {copy->to, copy->width, copy->height, copy->depth, copy->to_pitch, copy->to_slice};
  region from = {copy->from, copy->width, copy->height, copy->depth, copy->from_pitch, copy->from_slice};
  cudaError_t error = check_region(&to, copy->to_side, true, to_memory);
  return error ? error : check_region(&from, copy->from_side, false, from_memory);
}

cudaError_t engine_copy_check_locked(const engine_copy *copy) {
  engine_memory to, from;
  if (!copy->width || !copy->height || !copy->depth || engine_graph_address(copy->to) ||
      engine_graph_address(copy->from))
    return cudaSuccess;
  engine_copy simple = simplify(*copy);
  return check_copy(&simple, &to, &from);
}

cudaError_t engine_copy_on(engine_copy copy, engine_stream *stream, bool graph) {
  if (!copy.width || !copy.height || !copy.depth) return cudaSuccess;
  copy = simplify(copy);
  engine_memory to_memory, from_memory;
  cudaError_t error = check_copy(&copy, &to_memory, &from_memory);
  if (error) return error;
  trace_direction direction = direction_of(on_device(to_memory, copy.to_side), on_device(from_memory, copy.from_side));
  copy_slices(&copy, stream, direction, to_memory == ENGINE_PAGEABLE || from_memory == ENGINE_PAGEABLE, graph);
  if (!copy.async && !graph) engine_print_flush();
  return cudaSuccess;
}

static cudaError_t copy_locked(const engine_copy *copy) {
  engine_stream *stream = engine_stream_find(copy->stream);
  if (!stream) return engine_stream_error(copy->stream);
  bool taken;
  engine_node_params node = {.kind = ENGINE_NODE_COPY, .copy = *copy};
  cudaError_t error = engine_capture_take(stream, &node, copy->async, &taken);
  if (!error && !taken) error = engine_deferred_take(stream, &node, copy->async, &taken);
  return error || taken ? error : engine_copy_on(*copy, stream, false);
}

static _Thread_local bool of_files;

void engine_copies_of_files(bool files) { of_files = files; }

cudaError_t engine_copy_run(const engine_copy *copy) {
  cudaError_t error = copy->peer ? engine_enter_during_kernel() : engine_enter_stream(copy->stream);
  if (error) return error;
  engine_copy own = *copy;
  own.file = of_files;
  error = copy_locked(&own);
  engine_leave();
  return error;
}

/* ---- sets ---- */

#define FILL_BYTES (UINT64_C(64) << 10) /* at once: what a cache holds */

static void store_word(uint64_t to, uint32_t bytes, uint64_t value) {
  if (bytes == 4) atomic_store((_Atomic uint32_t *)(uintptr_t)to, (uint32_t)value);
  else atomic_store((_Atomic uint64_t *)(uintptr_t)to, value);
}

static void fill_row(char *to, uint64_t elements, uint32_t element, uint64_t value) {
  uint64_t bytes = elements * element;
  if (!value) {
    exec_memory_zero(ff_engine.memory, (uint64_t)(uintptr_t)to, bytes);
  } else if (element == 1) {
    memset(to, (int)(value & 0xff), bytes);
  } else {
    memcpy(to, &value, element); /* little-endian */
    for (uint64_t done = element, more; done < bytes; done += more) {
      more = done < FILL_BYTES ? done : FILL_BYTES;
      if (more > bytes - done) more = bytes - done;
      memcpy(to + done, to, more);
    }
  }
}

static void set_slices(const engine_set *set, engine_stream *stream, bool blocking) {
  engine_host_access_collect(false);
  for (uint64_t slice = 0; slice < set->depth; slice++) {
    trace_op op = {.kind = TRACE_OP_SET, .stream = stream->number, .blocking = blocking && slice + 1 == set->depth};
    op.set.to = set->to + slice * set->slice;
    op.set.width = set->width * set->element;
    op.set.height = set->height;
    op.set.pitch = set->height > 1 ? set->pitch : op.set.width;
    engine_append(&op);
    engine_time_spend(stream, engine_time_transfer(op.set.width * set->height, TRACE_D2D), false, op.blocking);
    if (set->word && !set->done) store_word(set->to, set->element, set->value);
    for (uint64_t row = 0; !set->done && !set->word && row < set->height; row++)
      fill_row((char *)(uintptr_t)(op.set.to + row * set->pitch), set->width, set->element, set->value);
    engine_host_access_settle(op.set.to, (op.set.height - 1) * op.set.pitch + op.set.width);
  }
}

/* Rows without gaps become one. */
static cudaError_t check_set(engine_set *set, engine_memory *memory) {
  uint64_t width;
  FF_ASSERT(!set->word || (set->width == 1 && set->height == 1 && set->depth == 1));
  if (__builtin_mul_overflow(set->width, (uint64_t)set->element, &width)) return cudaErrorInvalidValue;
  if (set->to % set->element) return cudaErrorInvalidValue;
  if (set->height > 1 && set->pitch == width) {
    if (set->depth > 1 && set->slice == set->pitch * set->height) {
      set->height *= set->depth;
      set->depth = 1;
    }
    if (__builtin_mul_overflow(set->width, set->height, &set->width)) return cudaErrorInvalidValue;
    width = set->width * set->element;
    set->height = 1;
  }
  region to = {set->to, width, set->height, set->depth, set->pitch, set->slice};
  return check_region(&to, ENGINE_SIDE_DEVICE, true, memory);
}

cudaError_t engine_set_check_locked(const engine_set *set) {
  engine_memory memory;
  engine_set simple = *set;
  if (!set->width || !set->height || !set->depth || engine_graph_address(set->to)) return cudaSuccess;
  return check_set(&simple, &memory);
}

cudaError_t engine_set_on(engine_set set, engine_stream *stream, bool graph) {
  if (!set.width || !set.height || !set.depth) return cudaSuccess;
  engine_memory memory;
  cudaError_t error = check_set(&set, &memory);
  if (error) return error;
  set_slices(&set, stream, !graph && !set.async && memory != ENGINE_DEVICE && memory != ENGINE_MANAGED);
  return cudaSuccess;
}

cudaError_t engine_set_run_locked(const engine_set *set) {
  engine_stream *stream = engine_stream_find(set->stream);
  if (!stream) return engine_stream_error(set->stream);
  bool taken;
  engine_node_params node = {.kind = ENGINE_NODE_SET, .set = *set};
  cudaError_t error = engine_capture_take(stream, &node, set->async, &taken);
  if (!error && !taken) error = engine_deferred_take(stream, &node, set->async, &taken);
  return error || taken ? error : engine_set_on(*set, stream, false);
}

cudaError_t engine_set_run(const engine_set *set) {
  cudaError_t error = engine_enter_stream(set->stream);
  if (error) return error;
  error = engine_set_run_locked(set);
  engine_leave();
  return error;
}
