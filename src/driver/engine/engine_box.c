/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of boxes of bytes between arrays and linear memory, and of stretches that go on from row to row of an array.
 *
 * An array's end becomes an address, a pitch and a slice: its layout is rows (engine_array.h), so every box is a copy
 * of linear memory with three strides. What a box may touch is checked here for arrays, in engine_copy.c for everything
 * else. */
#include "driver/engine/engine_array.h"
#include "driver/engine/engine_internal.h"

typedef struct resolved {
  uint64_t address, pitch, slice;
  engine_side side;
} resolved;

static bool box_inside(const engine_box *box, const engine_box_end *end, const exec_image *image,
                       engine_format format) {
  uint64_t texel = engine_format_bytes(format), row = engine_format_elements(format, image->width) * texel,
           rows = engine_format_elements(format, image->height);
  if ((end->x | box->width) % texel) return false;
  return end->x <= row && box->width <= row - end->x && end->y <= rows && box->height <= rows - end->y &&
         end->z <= image->depth && box->depth <= image->depth - end->z;
}

static cudaError_t resolve_array(const engine_box *box, const engine_box_end *end, resolved *out, uint32_t *texel) {
  engine_array_images images;
  if (!engine_array_images_of(end->array, &images)) return cudaErrorInvalidResourceHandle;
  const exec_image *image = &images.level[0];
  *texel = engine_format_bytes(images.shape->format);
  if (!box_inside(box, end, image, images.shape->format)) return cudaErrorInvalidValue;
  *out = (resolved){.address = image->address + end->z * image->slice + end->y * image->pitch + end->x,
                    .pitch = image->pitch,
                    .slice = image->slice,
                    .side = ENGINE_SIDE_DEVICE};
  return cudaSuccess;
}

static cudaError_t resolve_linear(const engine_box *box, const engine_box_end *end, resolved *out) {
  uint64_t slice, slices, rows, address = end->address;
  if (!address) return cudaErrorInvalidValue;
  if (box->height > 1 || box->depth > 1) {
    if (end->x + box->width < box->width || end->x + box->width > end->pitch) return cudaErrorInvalidPitchValue;
    if (box->depth > 1 && (end->y + box->height < box->height || end->y + box->height > end->rows))
      return cudaErrorInvalidValue;
  }
  if (__builtin_mul_overflow(end->pitch, end->rows, &slice) || __builtin_mul_overflow(end->pitch, end->y, &rows) ||
      __builtin_mul_overflow(slice, end->z, &slices) || __builtin_add_overflow(address, rows, &address) ||
      __builtin_add_overflow(address, slices, &address) || __builtin_add_overflow(address, end->x, &address))
    return cudaErrorInvalidValue;
  *out = (resolved){.address = address, .pitch = end->pitch, .slice = slice, .side = end->side};
  return cudaSuccess;
}

static cudaError_t resolve(const engine_box *box, const engine_box_end *end, resolved *out, uint32_t *texel) {
  return end->array ? resolve_array(box, end, out, texel) : resolve_linear(box, end, out);
}

cudaError_t engine_box_resolve(const engine_box *box, engine_copy *copy) {
  resolved to, from;
  uint32_t to_texel = 0, from_texel = 0; /* 0: linear memory, which takes any */
  cudaError_t error = engine_enter();
  if (error) return error;
  error = resolve(box, &box->to, &to, &to_texel);
  if (!error) error = resolve(box, &box->from, &from, &from_texel);
  if (!error && to_texel && from_texel && to_texel != from_texel) error = cudaErrorInvalidValue;
  engine_leave();
  if (!error)
    *copy = (engine_copy){.to = to.address,
                          .from = from.address,
                          .width = box->width,
                          .height = box->height,
                          .depth = box->depth,
                          .to_pitch = to.pitch,
                          .from_pitch = from.pitch,
                          .to_slice = to.slice,
                          .from_slice = from.slice,
                          .to_side = to.side,
                          .from_side = from.side,
                          .stream = box->stream,
                          .async = box->async};
  return error;
}

cudaError_t engine_box_run(const engine_box *box) {
  engine_copy copy;
  if (!box->width || !box->height || !box->depth) return engine_start();
  cudaError_t error = engine_box_resolve(box, &copy);
  return error ? error : engine_copy_run(&copy);
}

/* ---- stretches ---- */

/* Bytes of a row of the end's array; UINT64_MAX: linear memory, which is one row. */
static cudaError_t row_of(const engine_box_end *end, uint64_t *bytes) {
  engine_array_shape shape;
  *bytes = UINT64_MAX;
  if (!end->array) return cudaSuccess;
  cudaError_t error = engine_array_describe(end->array, &shape);
  if (!error) *bytes = engine_row_bytes(&shape);
  return error;
}

static void go_on(engine_box_end *end, uint64_t bytes, uint64_t rows, uint64_t row) {
  end->x += bytes * (row == UINT64_MAX ? rows : 1);
  if (end->x != row) return;
  end->x = 0;
  end->y += rows;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

cudaError_t engine_stretch_run(const engine_box *stretch, uint64_t bytes) {
  engine_box box = *stretch;
  uint64_t to_row, from_row;
  cudaError_t error = row_of(&box.to, &to_row);
  if (!error) error = row_of(&box.from, &from_row);
  if (!error && bytes && (box.to.x >= to_row || box.from.x >= from_row)) error = cudaErrorInvalidValue;
  if (!error && !bytes) return engine_start();
  uint64_t row = least(to_row, from_row);
  bool one_array = to_row == UINT64_MAX || from_row == UINT64_MAX || to_row == from_row;
  while (!error && bytes) {
    bool aligned = (to_row == UINT64_MAX || !box.to.x) && (from_row == UINT64_MAX || !box.from.x);
    box.width = least(bytes, least(to_row - box.to.x, from_row - box.from.x));
    box.height = aligned && one_array && box.width == row ? bytes / row : 1; /* whole rows in one piece */
    box.depth = 1;
    engine_box piece = box;
    for (int end = 0; end < 2; end++) {
      engine_box_end *linear = end ? &piece.to : &piece.from;
      if (linear->array) continue;
      linear->address += linear->x;
      linear->x = 0;
      linear->pitch = box.width;
    }
    error = engine_box_run(&piece);
    bytes -= box.width * box.height;
    go_on(&box.to, box.width, box.height, to_row);
    go_on(&box.from, box.width, box.height, from_row);
  }
  return error;
}
