/* SPDX-License-Identifier: Apache-2.0 */
/* linked_image.h. An image may have been kept in a file meanwhile, so nothing in it is trusted. */
#include "driver/linked_image.h"

#include <stdint.h>
#include <string.h>

#define MAGIC "\177farfault linked" /* 16 bytes without its NUL */
#define HEADER_BYTES 32u

void linked_image_write(const link_part *parts, size_t count, uint32_t max_registers, ff_text *out) {
  uint64_t whole = 0;
  uint32_t number = (uint32_t)count;
  size_t start = out->length;
  ff_text_add_bytes(out, MAGIC, 16);
  ff_text_add_bytes(out, &whole, 8);
  ff_text_add_bytes(out, &number, 4);
  ff_text_add_bytes(out, &max_registers, 4);
  for (size_t i = 0; i < count; i++) {
    uint64_t sizes[2] = {strlen(parts[i].name) + 1, parts[i].size};
    ff_text_add_bytes(out, sizes, sizeof sizes);
    ff_text_add_bytes(out, parts[i].name, sizes[0]);
    ff_text_add_bytes(out, parts[i].bytes, parts[i].size);
  }
  whole = out->length - start;
  memcpy(out->chars + start + 16, &whole, 8);
}

bool linked_image_is(const void *image, size_t bytes) {
  return (!bytes || bytes >= HEADER_BYTES) && strncmp(image, MAGIC, 16) == 0;
}

/* One part at `at`, of which `left` bytes are there; its length, or 0 if it is broken. */
static uint64_t read_part(const char *at, uint64_t left, link_part *part) {
  uint64_t sizes[2];
  if (left < sizeof sizes) return 0;
  memcpy(sizes, at, sizeof sizes);
  left -= sizeof sizes;
  if (!sizes[0] || sizes[0] > left || !sizes[1] || sizes[1] > left - sizes[0] || at[16 + sizes[0] - 1]) return 0;
  *part = (link_part){.name = (char *)at + 16, .bytes = (char *)at + 16 + sizes[0], .size = sizes[1]};
  return sizeof sizes + sizes[0] + sizes[1];
}

size_t linked_image_read(const void *image, size_t bytes, link_part parts[LINKED_PARTS_MAX], uint32_t *max_registers) {
  const char *start = image;
  uint64_t whole, used;
  uint32_t count;
  memcpy(&whole, start + 16, 8);
  memcpy(&count, start + 24, 4);
  memcpy(max_registers, start + 28, 4);
  if (whole < HEADER_BYTES || (bytes && whole > bytes) || !count || count > LINKED_PARTS_MAX) return 0;
  uint64_t at = HEADER_BYTES;
  for (uint64_t i = 0; i < count; i++, at += used) {
    used = read_part(start + at, whole - at, &parts[i]);
    if (!used) return 0;
  }
  return count;
}
