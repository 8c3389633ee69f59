/* SPDX-License-Identifier: Apache-2.0 */
/* Reading fat binaries (fatbin.h says what they are).
 *
 * fatbin_open refuses entries that do not lie whole inside the given bytes, with their name, options and payload.
 * Unpacked sizes are only claims until fatbin_unpack has compared them. */
#include "fatbin/fatbin.h"

#include <inttypes.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/memory.h"

static uint16_t read16(const unsigned char *at) {
  uint16_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static uint32_t read32(const unsigned char *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static uint64_t read64(const unsigned char *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

/* The compiler options: a descriptor {u32 offset of the text, u32 length} stands at `at`, inside the entry's header. */
static void read_options(const unsigned char *entry, uint32_t header, uint32_t at, fatbin_entry *out) {
  if (at < FATBIN_ENTRY_BYTES || at > header || header - at < 8) return;
  uint32_t text = read32(entry + at), length = read32(entry + at + 4);
  if (text < FATBIN_ENTRY_BYTES || text > header || length > header - text) return;
  out->options = (const char *)entry + text;
  out->options_length = (uint32_t)strnlen(out->options, length);
}

static void read_name(const unsigned char *entry, uint32_t header, fatbin_entry *out) {
  uint32_t at = read32(entry + 32), length = read32(entry + 36);
  if (at < FATBIN_ENTRY_BYTES || at > header || length > header - at) return;
  out->name = (const char *)entry + at;
  out->name_length = (uint32_t)strnlen(out->name, length);
  while (out->name_length && out->name[out->name_length - 1] == ' ') out->name_length--;
}

/* How the payload is packed and how long it is; `stored` bytes are there, padding included. */
static ff_status read_packing(const unsigned char *entry, uint64_t stored, fatbin_entry *out, ff_error *error) {
  uint64_t packed = read32(entry + 16), unpacked = read64(entry + 56);
  bool lz4 = out->flags & FATBIN_FLAG_LZ4, zstd = out->flags & FATBIN_FLAG_ZSTD;
  if (lz4 && zstd)
    return ff_fail(error, FF_PARSE, "entry at offset %#" PRIx64 ": its flags name two compressions at once",
                   out->offset);
  if (!lz4 && !zstd) {
    out->packing = FATBIN_RAW;
    out->payload_bytes = out->unpacked_bytes = stored;
    return FF_OK;
  }
  if (!packed || packed > stored)
    return ff_fail(error, FF_PARSE,
                   "entry at offset %#" PRIx64 ": compressed size %" PRIu64 " of %" PRIu64 " stored bytes", out->offset,
                   packed, stored);
  out->packing = lz4 ? FATBIN_LZ4 : FATBIN_ZSTD;
  out->payload_bytes = packed;
  out->unpacked_bytes = unpacked;
  return FF_OK;
}

/* Reads the entry at `at`, of which `left` bytes remain in the fat binary; *used is its whole length. */
static ff_status read_entry(const unsigned char *at, uint64_t left, fatbin_entry *out, uint64_t *used,
                            ff_error *error) {
  if (left < FATBIN_ENTRY_BYTES)
    return ff_fail(error, FF_PARSE, "entry at offset %#" PRIx64 ": %" PRIu64 " bytes are left, its header needs %u",
                   out->offset, left, FATBIN_ENTRY_BYTES);
  uint32_t header = read32(at + 4);
  uint64_t stored = read64(at + 8);
  if (header < FATBIN_ENTRY_BYTES || header > left)
    return ff_fail(error, FF_PARSE,
                   "entry at offset %#" PRIx64 ": header size %" PRIu32 " (%u to %" PRIu64 " are possible)",
                   out->offset, header, FATBIN_ENTRY_BYTES, left);
  if (stored > left - header)
    return ff_fail(error, FF_PARSE,
                   "entry at offset %#" PRIx64 ": payload of %" PRIu64 " bytes, but %" PRIu64 " are left", out->offset,
                   stored, left - header);
  out->kind = read16(at);
  out->version_minor = read16(at + 24);
  out->version_major = read16(at + 26);
  out->arch = read32(at + 28);
  out->flags = read64(at + 40);
  out->suffix = out->flags & FATBIN_FLAG_ARCHITECTURE ? 'a' : out->flags & FATBIN_FLAG_FAMILY ? 'f' : 0;
  out->payload = at + header;
  read_name(at, header, out);
  read_options(at, header, read32(at + 20), out);
  *used = header + stored;
  return read_packing(at, stored, out, error);
}

ff_status fatbin_open(const void *data, uint64_t limit, fatbin *out, ff_error *error) {
  const unsigned char *bytes = data;
  *out = (fatbin){.data = bytes};
  if (limit < FATBIN_HEADER_BYTES)
    return ff_fail(error, FF_PARSE, "fat binary: %" PRIu64 " bytes, its header needs %u", limit, FATBIN_HEADER_BYTES);
  if (read32(bytes) != FATBIN_MAGIC)
    return ff_fail(error, FF_PARSE, "fat binary: it starts with %#" PRIx32 ", not %#x", read32(bytes), FATBIN_MAGIC);
  uint32_t version = read16(bytes + 4), header = read16(bytes + 6);
  uint64_t size = read64(bytes + 8);
  if (version != 1)
    return ff_fail(error, FF_UNSUPPORTED, "fat binary: format version %" PRIu32 "; only version 1 is known", version);
  if (header < FATBIN_HEADER_BYTES || header > limit || size > limit - header)
    return ff_fail(error, FF_PARSE,
                   "fat binary: header of %" PRIu32 " and content of %" PRIu64 " bytes, but there are %" PRIu64, header,
                   size, limit);
  out->bytes = header + size;
  FF_VEC(fatbin_entry) entries = {0};
  ff_status status = FF_OK;
  for (uint64_t at = header, used = 0; at < out->bytes && status == FF_OK; at += used) {
    fatbin_entry entry = {.offset = at};
    if (entries.count == FATBIN_MAX_ENTRIES)
      status = ff_fail(error, FF_LIMIT, "fat binary: more than %u entries", FATBIN_MAX_ENTRIES);
    else if ((status = read_entry(bytes + at, out->bytes - at, &entry, &used, error)) == FF_OK)
      FF_PUSH(&entries, entry);
  }
  out->entries = entries.items;
  out->entry_count = (uint32_t)entries.count;
  if (status != FF_OK) fatbin_close(out);
  return status;
}

void fatbin_close(fatbin *image) {
  free(image->entries);
  *image = (fatbin){0};
}

static ff_status set_add(fatbin_set *set, const void *data, ff_error *error) {
  set->images = ff_realloc(set->images, (set->count + 1) * sizeof *set->images);
  ff_status status = fatbin_open(data, FATBIN_MAX_IMAGE, &set->images[set->count], error);
  if (status == FF_OK) set->count++;
  return status;
}

static ff_status set_add_linked(fatbin_set *set, const unsigned char *array, ff_error *error) {
  for (uint32_t i = 0; array; i++) {
    uint64_t address = read64(array + i * UINT64_C(8));
    if (!address) break;
    if (i == FATBIN_MAX_LINKED) return ff_fail(error, FF_LIMIT, "more than %u linked fat binaries", FATBIN_MAX_LINKED);
    ff_status status = set_add(set, (const void *)(uintptr_t)address, error);
    if (status != FF_OK) return status;
  }
  return FF_OK;
}

ff_status fatbin_open_registered(const void *wrapper, fatbin_set *set, ff_error *error) {
  const unsigned char *bytes = wrapper;
  *set = (fatbin_set){0};
  if (!bytes) return ff_fail(error, FF_INVALID, "fat binary: no address was given");
  ff_status status;
  if (read32(bytes) == FATBIN_MAGIC) {
    status = set_add(set, bytes, error);
  } else if (read32(bytes) != FATBIN_WRAPPER_MAGIC) {
    return ff_fail(error, FF_PARSE, "fat binary wrapper: it starts with %#" PRIx32 ", not %#x", read32(bytes),
                   FATBIN_WRAPPER_MAGIC);
  } else {
    uint32_t version = read32(bytes + 4);
    uint64_t data = read64(bytes + 8), linked = read64(bytes + 16);
    if (version != 1 && version != 2)
      return ff_fail(error, FF_UNSUPPORTED, "fat binary wrapper: version %" PRIu32 "; 1 and 2 are known", version);
    if (!data) return ff_fail(error, FF_PARSE, "fat binary wrapper: it points to nothing");
    set->relocatable = version == 2;
    status = set_add(set, (const void *)(uintptr_t)data, error);
    if (status == FF_OK && version == 2) status = set_add_linked(set, (const void *)(uintptr_t)linked, error);
  }
  if (status != FF_OK) fatbin_set_close(set);
  return status;
}

void fatbin_set_close(fatbin_set *set) {
  for (uint32_t i = 0; i < set->count; i++) fatbin_close(&set->images[i]);
  free(set->images);
  *set = (fatbin_set){0};
}

/* Neither format expands further than this, so that a small file cannot ask for a large allocation: an LZ4 byte
 * stands for at most 255, a zstd block of 4 bytes for 128 KiB. */
static bool expansion_is_possible(const fatbin_entry *entry) {
  uint64_t most = entry->packing == FATBIN_LZ4 ? 255 : 128 * 1024 / 4;
  return entry->packing == FATBIN_RAW || entry->unpacked_bytes / most <= entry->payload_bytes;
}

static bool unpack_into(const fatbin_entry *entry, char *to) {
  size_t packed = (size_t)entry->payload_bytes, whole = (size_t)entry->unpacked_bytes;
  if (entry->packing == FATBIN_RAW) {
    if (whole) memcpy(to, entry->payload, whole);
    return true;
  }
  if (entry->packing == FATBIN_LZ4) /* sizes are below 2^29, so the ints hold them */
    return LZ4_decompress_safe((const char *)entry->payload, to, (int)packed, (int)whole) == (int)whole;
  return ZSTD_decompress(to, whole, entry->payload, packed) == whole;
}

ff_status fatbin_unpack(const fatbin_entry *entry, char **bytes, size_t *size, ff_error *error) {
  static const char *const words[] = {"raw", "LZ4", "zstd"};
  if (entry->unpacked_bytes > FATBIN_MAX_PAYLOAD || entry->payload_bytes > FATBIN_MAX_PAYLOAD)
    return ff_fail(error, FF_LIMIT, "entry at offset %#" PRIx64 ": %" PRIu64 " bytes; at most %" PRIu64 " are read",
                   entry->offset, entry->unpacked_bytes, FATBIN_MAX_PAYLOAD);
  if (!expansion_is_possible(entry))
    return ff_fail(error, FF_PARSE, "entry at offset %#" PRIx64 ": %" PRIu64 " %s bytes cannot become %" PRIu64,
                   entry->offset, entry->payload_bytes, words[entry->packing], entry->unpacked_bytes);
  char *to = ff_alloc((size_t)entry->unpacked_bytes + 1);
  if (!unpack_into(entry, to)) {
    free(to);
    return ff_fail(error, FF_PARSE,
                   "entry at offset %#" PRIx64 ": its %s data is damaged (%" PRIu64 " bytes for %" PRIu64 ")",
                   entry->offset, words[entry->packing], entry->payload_bytes, entry->unpacked_bytes);
  }
  *bytes = to;
  *size = (size_t)entry->unpacked_bytes;
  return FF_OK;
}

ff_status fatbin_ptx(const fatbin_entry *entry, char **text, size_t *length, ff_error *error) {
  if (entry->kind != FATBIN_KIND_PTX)
    return ff_fail(error, FF_INVALID, "entry at offset %#" PRIx64 ": it is of kind %" PRIu32 ", not PTX", entry->offset,
                   entry->kind);
  ff_status status = fatbin_unpack(entry, text, length, error);
  if (status == FF_OK) *length = strlen(*text);
  return status;
}

bool fatbin_target_runs(uint32_t arch, char suffix, uint32_t capability) {
  if (arch == 101) arch = 110;
  if (suffix == 'a') return arch == capability;
  return arch <= capability && (suffix != 'f' || arch / 10 == capability / 10);
}

/* Machine code runs on GPUs of the same major number only. */
static bool has_code_for(const fatbin *image, uint32_t capability) {
  for (uint32_t i = 0; i < image->entry_count; i++) {
    const fatbin_entry *entry = &image->entries[i];
    if (entry->kind != FATBIN_KIND_ELF) continue;
    if (fatbin_target_runs(entry->arch, entry->suffix == 'a' ? 'a' : 'f', capability)) return true;
  }
  return false;
}

/* Of the entries of a kind: the best that runs there, or NULL; *lowest: the one of the lowest architecture that may
 * stand in, *other: of those that may not. */
static const fatbin_entry *best_of(const fatbin *image, uint32_t kind, uint32_t capability, const fatbin_entry **lowest,
                                   const fatbin_entry **other) {
  const fatbin_entry *best = NULL;
  bool any = has_code_for(image, capability);
  *lowest = *other = NULL;
  for (uint32_t i = 0; i < image->entry_count; i++) {
    const fatbin_entry *entry = &image->entries[i];
    if (entry->kind != kind) continue;
    const fatbin_entry **least = any || !entry->suffix ? lowest : other;
    if (!*least || entry->arch < (*least)->arch) *least = entry;
    if (!fatbin_target_runs(entry->arch, entry->suffix, capability)) continue;
    if (!best || entry->arch > best->arch || (entry->arch == best->arch && best->suffix && !entry->suffix))
      best = entry;
  }
  return best;
}

const fatbin_entry *fatbin_best_tile(const fatbin *image, uint32_t capability) {
  const fatbin_entry *lowest, *other, *best = best_of(image, FATBIN_KIND_TILE, capability, &lowest, &other);
  return best ? best : lowest;
}

const fatbin_entry *fatbin_best_ptx(const fatbin *image, uint32_t capability, fatbin_note *note) {
  const fatbin_entry *lowest, *other, *best = best_of(image, FATBIN_KIND_PTX, capability, &lowest, &other);
  if (note) {
    (*note)[0] = '\0';
    const fatbin_entry *named = lowest ? lowest : other;
    if (!best && named)
      snprintf(*note, sizeof *note,
               "its PTX is for compute_%" PRIu32 "%.1s, the machine has compute capability %" PRIu32 ".%" PRIu32,
               named->arch, named->suffix ? &named->suffix : "", capability / 10, capability % 10);
  }
  return best ? best : lowest;
}
