/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as bytes, by the table of wire.def. Nothing is trusted: lengths, limits, characters and what is left over
 * are checked before a field is taken. */
#include "broker/wire.h"

#include <string.h>

#include "base/check.h"

enum { NO_MORE = UINT16_MAX };

typedef struct field {
  uint16_t offset;
  uint16_t room; /* of a text; 0: a number; NO_MORE: behind the last */
  uint64_t most;
} field;

#define NUMBER(name, most) {offsetof(wire_message, name), 0, most},
#define TEXT(name) {offsetof(wire_message, name), sizeof((wire_message *)0)->name, 0},

#define MESSAGE(kind, number, fields) static const field fields_of_##kind[] = {fields{0, NO_MORE, 0}};
#include "broker/wire.def"
#undef MESSAGE

static const field *fields_of(uint32_t kind) {
  switch (kind) {
#define MESSAGE(kind, number, fields) \
  case number:                        \
    return fields_of_##kind;
#include "broker/wire.def"
#undef MESSAGE
  default: return NULL;
  }
}

static uint64_t get(const uint8_t *bytes, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; i++) value |= (uint64_t)bytes[i] << (8 * i);
  return value;
}

static void put(uint8_t *bytes, int count, uint64_t value) {
  for (int i = 0; i < count; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}

/* Takes one field off [*bytes, *bytes + *left) and puts it where it belongs. */
static bool read_field(const field *f, const uint8_t **bytes, size_t *left, wire_message *message) {
  size_t head = f->room ? 2 : 8;
  if (*left < head) return false;
  uint64_t value = get(*bytes, (int)head);
  *bytes += head;
  *left -= head;
  if (!f->room) {
    memcpy((char *)message + f->offset, &value, sizeof value);
    return value <= f->most;
  }
  if (value >= f->room || value > *left) return false;
  for (uint64_t i = 0; i < value; i++)
    if ((*bytes)[i] < 32 || (*bytes)[i] > 126) return false;
  memcpy((char *)message + f->offset, *bytes, value);
  *bytes += value;
  *left -= value;
  return true;
}

size_t wire_write(const wire_message *message, uint8_t frame[WIRE_FRAME]) {
  size_t size = WIRE_HEAD;
  for (const field *f = fields_of(message->kind); f->room != NO_MORE; f++) {
    const char *from = (const char *)message + f->offset;
    if (f->room) {
      size_t length = strnlen(from, f->room - 1u);
      put(frame + size, 2, length);
      memcpy(frame + size + 2, from, length);
      size += 2 + length;
    } else {
      uint64_t value;
      memcpy(&value, from, sizeof value);
      put(frame + size, 8, value);
      size += 8;
    }
  }
  put(frame, 4, size - 4);
  put(frame + 4, 2, WIRE_VERSION);
  put(frame + 6, 2, message->kind);
  return size;
}

static bool writes_again(const wire_message *message, const uint8_t *bytes, size_t size) {
  uint8_t again[WIRE_FRAME];
  return wire_write(message, again) == size && !memcmp(again, bytes, size);
}

wire_result wire_read(const uint8_t *bytes, size_t size, wire_message *message, size_t *used, uint32_t *version) {
  if (size < 4) return WIRE_MORE;
  size_t length = get(bytes, 4);
  if (length < WIRE_HEAD - 4 || length > WIRE_FRAME - 4) return WIRE_BAD;
  if (size < WIRE_HEAD) return WIRE_MORE;
  *version = (uint32_t)get(bytes + 4, 2);
  if (*version != WIRE_VERSION) return WIRE_FOREIGN;
  *message = (wire_message){.kind = (wire_kind)get(bytes + 6, 2)};
  const field *f = fields_of(message->kind);
  if (!f) return WIRE_BAD;
  if (size < 4 + length) return WIRE_MORE;
  size_t left = length - (WIRE_HEAD - 4);
  const uint8_t *at = bytes + WIRE_HEAD;
  for (; f->room != NO_MORE; f++)
    if (!read_field(f, &at, &left, message)) return WIRE_BAD;
  *used = 4 + length;
  if (left) return WIRE_BAD;
  FF_CHECK_DEEP(writes_again(message, bytes, *used));
  return WIRE_GOOD;
}

void wire_clean(const char *text, char *out, size_t room) {
  size_t length = strnlen(text, room - 1);
  for (size_t i = 0; i < length; i++)
    out[i] = (char)((unsigned char)text[i] < 32 || (unsigned char)text[i] > 126 ? '?' : text[i]);
  out[length] = '\0';
}
