/* SPDX-License-Identifier: Apache-2.0 */
/* Writing fat binaries, in the form that fatbin.c reads and that a CUDA compiler's host object embeds.
 *
 * Entries are 8-byte aligned and padded with zeros; a compressed entry gives both its sizes. */
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/memory.h"
#include "fatbin/fatbin.h"

static void put(ff_text *out, uint64_t value, size_t bytes) {
  unsigned char raw[8];
  for (size_t i = 0; i < bytes; i++) raw[i] = (unsigned char)(value >> 8 * i);
  ff_text_add_bytes(out, raw, bytes);
}

static void pad(ff_text *out, size_t from) {
  while ((out->length - from) % 8) ff_text_add_bytes(out, "", 1);
}

/* Packs the item; *packed is NULL if it stays raw. The caller frees it. */
static ff_status pack(const fatbin_item *item, char **packed, size_t *size, ff_error *error) {
  *packed = NULL;
  *size = item->size;
  if (item->size > FATBIN_MAX_PAYLOAD)
    return ff_fail(error, FF_LIMIT, "fat binary item of %zu bytes is too large", item->size);
  if (item->packing == FATBIN_RAW) return FF_OK;
  size_t room =
      item->packing == FATBIN_LZ4 ? (size_t)LZ4_compressBound((int)item->size) : ZSTD_compressBound(item->size);
  char *to = ff_alloc(room);
  size_t used;
  if (item->packing == FATBIN_LZ4) used = (size_t)LZ4_compress_default(item->bytes, to, (int)item->size, (int)room);
  else used = ZSTD_compress(to, room, item->bytes, item->size, 3);
  if (!used || (item->packing == FATBIN_ZSTD && ZSTD_isError(used))) {
    free(to);
    return ff_fail(error, FF_INTERNAL, "cannot compress %zu bytes for a fat binary", item->size);
  }
  *packed = to;
  *size = used;
  return FF_OK;
}

static ff_status put_item(const fatbin_item *item, ff_text *out, ff_error *error) {
  char *packed;
  size_t size, start = out->length;
  ff_status status = pack(item, &packed, &size, error);
  if (status != FF_OK) return status;
  size_t name_length = item->name ? strlen(item->name) : 0, options_length = item->options ? strlen(item->options) : 0;
  size_t name_space = (name_length + 7) / 8 * 8, options_at = FATBIN_ENTRY_BYTES + name_space;
  size_t header = options_at + (item->options ? 16 + (options_length + 7) / 8 * 8 : 0);
  uint64_t flags = FATBIN_FLAG_64BIT | FATBIN_FLAG_ALWAYS | (item->debug ? FATBIN_FLAG_DEBUG : 0);
  flags |= item->packing == FATBIN_LZ4 ? FATBIN_FLAG_LZ4 : item->packing == FATBIN_ZSTD ? FATBIN_FLAG_ZSTD : 0;
  flags |= item->suffix == 'a' ? FATBIN_FLAG_ARCHITECTURE : item->suffix == 'f' ? FATBIN_FLAG_FAMILY : 0;
  put(out, item->kind, 2);
  put(out, 0x0101, 2);
  put(out, header, 4);
  put(out, (size + 7) / 8 * 8, 8);
  put(out, packed ? size : 0, 4);
  put(out, item->options ? options_at : 0, 4);
  put(out, item->version_minor, 2);
  put(out, item->version_major, 2);
  put(out, item->arch, 4);
  put(out, name_length ? FATBIN_ENTRY_BYTES : 0, 4);
  put(out, name_length, 4);
  put(out, flags, 8);
  put(out, 0, 8);
  put(out, packed ? item->size : 0, 8);
  ff_text_add_bytes(out, item->name, name_length);
  pad(out, start);
  if (item->options) {
    put(out, options_at + 16, 4);
    put(out, options_length, 4);
    put(out, 0, 8);
    ff_text_add_bytes(out, item->options, options_length);
    pad(out, start);
  }
  ff_text_add_bytes(out, packed ? packed : item->bytes, size);
  pad(out, start);
  free(packed);
  return FF_OK;
}

ff_status fatbin_encode(const fatbin_item *items, uint32_t count, ff_text *out, ff_error *error) {
  ff_text body = {0};
  ff_status status = FF_OK;
  for (uint32_t i = 0; i < count && status == FF_OK; i++) status = put_item(&items[i], &body, error);
  if (status == FF_OK) {
    put(out, FATBIN_MAGIC, 4);
    put(out, 1, 2);
    put(out, FATBIN_HEADER_BYTES, 2);
    put(out, body.length, 8);
    if (body.length) ff_text_add_bytes(out, body.chars, body.length);
  }
  free(body.chars);
  return status;
}
