/* SPDX-License-Identifier: Apache-2.0 */
/* Where an operation comes from, in addition to its stream: which device of the program it is of, and whether the host
 * has paid for it already, because one call appended several operations (a graph's launch). Both are parts of
 * trace_op.stream:
 *
 *     paid:1 | device:7 | number:24 of the stream, among the device's
 *
 * A program with one device and no graphs has plain stream numbers there, as in the first traces. In the trace of a
 * program with several devices the first operation binds the legacy stream of its last device to all SMs, which
 * changes nothing. */
#ifndef FF_TRACE_ORIGIN_H
#define FF_TRACE_ORIGIN_H

#include "trace/stream.h"

#define TRACE_STREAM_NUMBERS (UINT32_C(1) << 24)
#define TRACE_DEVICES_MAX 16u
#define TRACE_PAID (UINT32_C(1) << 31)

static inline uint32_t trace_origin(uint32_t number, uint32_t device, bool paid) {
  return number | device << 24 | (paid ? TRACE_PAID : 0);
}
static inline uint32_t trace_stream_number(uint32_t stream) { return stream & (TRACE_STREAM_NUMBERS - 1); }
static inline uint32_t trace_device(uint32_t stream) { return stream >> 24 & 127; }
static inline bool trace_is_paid(uint32_t stream) { return stream & TRACE_PAID; }

/* The program's devices, by its first operation. */
static inline uint32_t trace_devices_named(const trace_op *first) {
  uint32_t last = first->kind == TRACE_OP_STREAM_SMS ? trace_device(first->stream) : 0;
  return last < TRACE_DEVICES_MAX ? last + 1 : 1;
}

#endif
