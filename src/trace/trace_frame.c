/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of a trace file (file.h): headers of fixed size, columns compressed one by one, each with statistics of its
 * own.
 *
 * Sizes that come from a file are compared with limits before memory is taken for them. */
#include "trace/trace_frame.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

enum { COMPRESSION_LEVEL = 3 };

uint64_t frame_hash(const void *bytes, size_t count) { return XXH64(bytes, count, 0); }

/* ---- headers ---- */

typedef struct writer {
  uint8_t *at;
} writer;

static void put(writer *w, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) *w->at++ = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t **at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++) value |= (uint64_t) * (*at)++ << 8 * i;
  return value;
}

void frame_header_write(const frame_header *h, uint8_t bytes[FRAME_HEADER_BYTES]) {
  writer w = {bytes};
  put(&w, FRAME_MAGIC, 4);
  put(&w, h->kind, 2);
  put(&w, h->open, 2);
  put(&w, h->number, 8);
  put(&w, h->payload_bytes, 8);
  put(&w, h->payload_hash, 8);
  put(&w, h->operation, 8);
  put(&w, h->launch, 8);
  put(&w, h->block, 8);
  put(&w, h->operations, 4);
  put(&w, h->launches, 4);
  put(&w, h->accesses, 4);
  put(&w, h->warp, 4);
  put(&w, h->warps, 4);
  put(&w, h->words, 4);
  put(&w, h->launch_blocks, 8);
  put(&w, frame_hash(bytes, FRAME_HEADER_BYTES - 8), 8);
}

bool frame_header_read(const uint8_t bytes[FRAME_HEADER_BYTES], frame_header *h) {
  const uint8_t *at = bytes, *end = bytes + FRAME_HEADER_BYTES - 8;
  if (get(&at, 4) != FRAME_MAGIC || get(&end, 8) != frame_hash(bytes, FRAME_HEADER_BYTES - 8)) return false;
  *h = (frame_header){.kind = (frame_kind)get(&at, 2)};
  h->open = get(&at, 2);
  h->number = get(&at, 8);
  h->payload_bytes = get(&at, 8);
  h->payload_hash = get(&at, 8);
  h->operation = get(&at, 8);
  h->launch = get(&at, 8);
  h->block = get(&at, 8);
  h->operations = (uint32_t)get(&at, 4);
  h->launches = (uint32_t)get(&at, 4);
  h->accesses = (uint32_t)get(&at, 4);
  h->warp = (uint32_t)get(&at, 4);
  h->warps = (uint32_t)get(&at, 4);
  h->words = (uint32_t)get(&at, 4);
  h->launch_blocks = get(&at, 8);
  return h->kind >= FRAME_ABOUT && h->kind <= FRAME_INDEX && h->payload_bytes <= FRAME_PAYLOAD_MAX;
}

/* ---- columns ---- */

static void append(pack_bytes *to, const uint8_t *bytes, size_t count) {
  if (!count) return;
  ff_vec_reserve((void **)&to->items, &to->capacity, to->count + count, 1);
  memcpy(to->items + to->count, bytes, count);
  to->count += count;
}

static void pack_column_into(ZSTD_CCtx *compressor, const pack_bytes *column, pack_bytes *payload, pack_bytes *room) {
  size_t bound = ZSTD_compressBound(column->count), stored = column->count;
  ff_vec_reserve((void **)&room->items, &room->capacity, bound, 1);
  if (column->count > 8) stored = ZSTD_compress2(compressor, room->items, bound, column->items, column->count);
  bool shorter = !ZSTD_isError(stored) && stored < column->count;
  pack_number(payload, column->count);
  pack_number(payload, shorter ? stored : column->count);
  append(payload, shorter ? room->items : column->items, shorter ? stored : column->count);
}

void frame_pack(ZSTD_CCtx *compressor, const pack_bytes columns[PACK_COLUMNS], const pack_bytes *footprint,
                pack_bytes *payload) {
  pack_bytes room = {0};
  ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel, COMPRESSION_LEVEL);
  ZSTD_CCtx_setParameter(compressor, ZSTD_c_contentSizeFlag, 0);
  for (int i = 0; i < PACK_COLUMNS; i++) pack_column_into(compressor, &columns[i], payload, &room);
  if (footprint) pack_column_into(compressor, footprint, payload, &room);
  free(room.items);
}

/* How many bytes the columns have in all; false: broken, or more than a frame may have. */
static bool measure(pack_view from, int count, uint64_t *total) {
  *total = 0;
  for (int i = 0; i < count; i++) {
    uint64_t bytes, stored;
    if (!pack_take_number(&from, &bytes) || !pack_take_number(&from, &stored)) return false;
    if (bytes > FRAME_PAYLOAD_MAX || stored > bytes || stored > (uint64_t)(from.end - from.at)) return false;
    from.at += stored;
    *total += bytes;
  }
  return from.at == from.end && *total <= FRAME_PAYLOAD_MAX;
}

static bool unpack_column(ZSTD_DCtx *decompressor, pack_view *from, uint8_t *to, uint64_t *bytes) {
  uint64_t stored;
  if (!pack_take_number(from, bytes) || !pack_take_number(from, &stored)) return false;
  if (stored == *bytes) memcpy(to, from->at, *bytes);
  else if (ZSTD_decompressDCtx(decompressor, to, *bytes, from->at, stored) != *bytes) return false;
  from->at += stored;
  return true;
}

bool frame_unpack(ZSTD_DCtx *decompressor, const uint8_t *payload, size_t size, bool footprints, pack_bytes *storage,
                  pack_view columns[PACK_COLUMNS]) {
  pack_view from = {payload, payload + size};
  uint64_t total;
  if (!measure(from, PACK_COLUMNS + footprints, &total)) return false;
  ff_vec_reserve((void **)&storage->items, &storage->capacity, total + 1, 1);
  uint8_t *at = storage->items;
  for (int i = 0; i < PACK_COLUMNS; i++) {
    uint64_t bytes;
    if (!unpack_column(decompressor, &from, at, &bytes)) return false;
    columns[i] = (pack_view){at, at + bytes};
    at += bytes;
  }
  return true;
}

bool frame_unpack_footprint(ZSTD_DCtx *decompressor, const uint8_t *payload, size_t size, pack_bytes *storage,
                            pack_view *footprint) {
  pack_view from = {payload, payload + size};
  uint64_t bytes, stored;
  if (!measure(from, PACK_COLUMNS + 1, &bytes)) return false;
  for (int i = 0; i < PACK_COLUMNS; i++) {
    if (!pack_take_number(&from, &bytes) || !pack_take_number(&from, &stored)) return false;
    from.at += stored;
  }
  pack_view peek = from;
  if (!pack_take_number(&peek, &bytes)) return false;
  ff_vec_reserve((void **)&storage->items, &storage->capacity, bytes + 1, 1);
  if (!unpack_column(decompressor, &from, storage->items, &bytes)) return false;
  *footprint = (pack_view){storage->items, storage->items + bytes};
  return true;
}
