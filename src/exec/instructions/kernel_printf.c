/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel printf: takes the format apart itself and lets the host's snprintf do each single conversion, so that no
 * format of the program ever reaches the host's printf whole. */
#include "exec/instructions/kernel_printf.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ARGUMENTS = 32, MAX_WIDTH = 1023, STRING_ROOM = 1024 };

typedef struct string_source { /* where strings are */
  const exec_memory *memory;
  const exec_print_reader *reader;
} string_source;

typedef struct argument_buffer {
  const unsigned char *bytes;
  size_t size, at;
  int used;
} argument_buffer;

/* The string at a device address, and how many bytes may be read there; NULL: neither inside a live allocation nor
 * where the reader can read, into `room`. */
static const char *device_string(const string_source *from, uint64_t address, char room[STRING_ROOM], size_t *limit) {
  const exec_allocation *allocation = exec_memory_find(from->memory, address);
  if (allocation && !allocation->freed && address < allocation->address + allocation->bytes) {
    *limit = allocation->address + allocation->bytes - address;
    return (const char *)(uintptr_t)address;
  }
  *limit = STRING_ROOM;
  return from->reader && from->reader->read(from->reader->context, address, room, STRING_ROOM) ? room : NULL;
}

static uint64_t next_argument(argument_buffer *arguments, size_t size) {
  uint64_t value = 0;
  size_t at = (arguments->at + size - 1) & ~(size - 1);
  if (at + size <= arguments->size) memcpy(&value, arguments->bytes + at, size);
  arguments->at = at + size;
  arguments->used++;
  return value;
}

typedef struct conversion { /* %[flags][width][.precision][length]type */
  char flags[8];
  int width, precision; /* -1: none */
  bool wide;            /* 64-bit integer */
  char type;
  size_t length; /* characters of the format, without the % */
} conversion;

static size_t parse_number(const char *text, size_t limit, argument_buffer *arguments, int *number) {
  size_t at = 0;
  if (at < limit && text[at] == '*') {
    *number = (int)(uint32_t)next_argument(arguments, 4);
    at++;
  } else {
    for (*number = 0; at < limit && text[at] >= '0' && text[at] <= '9'; at++)
      if (*number <= MAX_WIDTH) *number = *number * 10 + (text[at] - '0');
  }
  return at;
}

/* Reads what follows a '%'. type 0: the text ends before the conversion does. */
static conversion parse_conversion(const char *text, size_t limit, argument_buffer *arguments) {
  conversion c = {.width = -1, .precision = -1};
  size_t at = 0, flags = 0;
  for (; at < limit && text[at] && strchr("-+ #0", text[at]); at++)
    if (flags + 1 < sizeof c.flags && !strchr(c.flags, text[at])) c.flags[flags++] = text[at];
  if (at < limit && (text[at] == '*' || (text[at] >= '1' && text[at] <= '9')))
    at += parse_number(text + at, limit - at, arguments, &c.width);
  if (c.width < -1) { /* a negative `*` width means left-justified */
    if (flags + 1 < sizeof c.flags && !strchr(c.flags, '-')) c.flags[flags++] = '-';
    c.width = c.width == -2147483647 - 1 ? MAX_WIDTH : -c.width;
  }
  if (c.width > MAX_WIDTH) c.width = MAX_WIDTH;
  if (at < limit && text[at] == '.') at += 1 + parse_number(text + at + 1, limit - at - 1, arguments, &c.precision);
  if (c.precision > MAX_WIDTH) c.precision = MAX_WIDTH;
  for (; at < limit && text[at] && strchr("hlLjzt", text[at]); at++) c.wide |= text[at] != 'h' && text[at] != 'L';
  if (at < limit) c.type = text[at++];
  c.length = at;
  return c;
}

static void print_string(ff_text *out, const string_source *from, const conversion *c, uint64_t address) {
  char room[STRING_ROOM];
  size_t limit;
  const char *string = address ? device_string(from, address, room, &limit) : NULL;
  if (!string) {
    string = address ? "(bad address)" : "(null)";
    limit = strlen(string);
  }
  int length = (int)strnlen(string, limit < 1 << 20 ? limit : 1 << 20);
  if (c->precision >= 0 && c->precision < length) length = c->precision;
  int pad = c->width > length ? c->width - length : 0;
  bool left = strchr(c->flags, '-') != NULL;
  ff_text_add(out, "%*s", left ? 0 : pad, "");
  ff_text_add_bytes(out, string, (size_t)length);
  ff_text_add(out, "%*s", left ? pad : 0, "");
}

/* Prints one conversion; false: its type is none that kernels can print. */
static bool print_conversion(ff_text *out, const string_source *from, const conversion *c, argument_buffer *arguments) {
  char spec[64];
  int at = snprintf(spec, sizeof spec, "%%%s", c->flags);
  if (c->width >= 0) at += snprintf(spec + at, sizeof spec - (size_t)at, "%d", c->width);
  if (c->precision >= 0) at += snprintf(spec + at, sizeof spec - (size_t)at, ".%d", c->precision);
  char text[4096];
  int length = 0;
  switch (c->type) {
  case 'd':
  case 'i':
  case 'u':
  case 'o':
  case 'x':
  case 'X': {
    snprintf(spec + at, sizeof spec - (size_t)at, "ll%c", c->type);
    bool is_signed = c->type == 'd' || c->type == 'i';
    uint64_t value = next_argument(arguments, c->wide ? 8 : 4);
    if (is_signed && !c->wide) value = (uint64_t)(int64_t)(int32_t)value;
    length = snprintf(text, sizeof text, spec, (long long)value);
    break;
  }
  case 'e':
  case 'E':
  case 'f':
  case 'F':
  case 'g':
  case 'G':
  case 'a':
  case 'A': {
    snprintf(spec + at, sizeof spec - (size_t)at, "%c", c->type);
    uint64_t bits = next_argument(arguments, 8);
    double value;
    memcpy(&value, &bits, 8);
    length = snprintf(text, sizeof text, spec, value);
    break;
  }
  case 'c':
    snprintf(spec + at, sizeof spec - (size_t)at, "c");
    length = snprintf(text, sizeof text, spec, (int)(unsigned char)next_argument(arguments, 4));
    break;
  case 'p':
    snprintf(spec + at, sizeof spec - (size_t)at, "p");
    length = snprintf(text, sizeof text, spec, (void *)(uintptr_t)next_argument(arguments, 8));
    break;
  case 's': print_string(out, from, c, next_argument(arguments, 8)); return true;
  default: return false;
  }
  if (length > 0) ff_text_add_bytes(out, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
  return true;
}

int exec_print_format(ff_text *out, const exec_memory *memory, uint64_t format, const unsigned char *arguments,
                      size_t bytes, const exec_print_reader *reader) {
  string_source from = {memory, reader};
  char room[STRING_ROOM];
  size_t limit;
  const char *text = device_string(&from, format, room, &limit);
  if (!text) return -1;
  limit = strnlen(text, limit);
  argument_buffer buffer = {.bytes = arguments, .size = bytes};
  for (size_t at = 0; at < limit;) {
    const char *percent = memchr(text + at, '%', limit - at);
    size_t plain = percent ? (size_t)(percent - text) - at : limit - at;
    ff_text_add_bytes(out, text + at, plain);
    at += plain;
    if (!percent) break;
    if (at + 1 < limit && text[at + 1] == '%') {
      ff_text_add_bytes(out, "%", 1);
      at += 2;
      continue;
    }
    conversion c = parse_conversion(text + at + 1, limit - at - 1, &buffer);
    if (buffer.used >= MAX_ARGUMENTS || !c.type || !print_conversion(out, &from, &c, &buffer))
      ff_text_add_bytes(out, text + at, 1 + c.length);
    at += 1 + c.length;
  }
  return buffer.used;
}
