/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

void ff_text_add_bytes(ff_text *text, const void *bytes, size_t length) {
  ff_vec_reserve((void **)&text->chars, &text->capacity, text->length + length + 1, 1);
  if (length) memcpy(text->chars + text->length, bytes, length);
  text->length += length;
  text->chars[text->length] = '\0';
}

void ff_text_add_quoted(ff_text *text, const char *word) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%^";
  if (*word && !word[strspn(word, plain)]) {
    ff_text_add_bytes(text, word, strlen(word));
    return;
  }
  ff_text_add_bytes(text, "'", 1);
  for (; *word; word++) ff_text_add(text, *word == '\'' ? "'\\''" : "%c", *word);
  ff_text_add_bytes(text, "'", 1);
}

void ff_text_add(ff_text *text, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (length >= 0) {
    ff_vec_reserve((void **)&text->chars, &text->capacity, text->length + (size_t)length + 1, 1);
    vsnprintf(text->chars + text->length, (size_t)length + 1, format, again);
    text->length += (size_t)length;
  }
  va_end(again);
}

struct ff_map_slot {
  const char *key;
  void *value;
};

static size_t hash_string(const char *key) {
  uint64_t hash = 1469598103934665603u, word;
  size_t length = strlen(key);
  for (; length; key += sizeof word, length -= sizeof word) {
    size_t bytes = length < sizeof word ? length : sizeof word;
    word = 0;
    memcpy(&word, key, bytes);
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 32;
    if (bytes < sizeof word) break;
  }
  return (size_t)hash;
}

static struct ff_map_slot *find_slot(struct ff_map_slot *slots, size_t capacity, const char *key) {
  size_t at = hash_string(key) & (capacity - 1);
  while (slots[at].key && strcmp(slots[at].key, key) != 0) at = (at + 1) & (capacity - 1);
  return &slots[at];
}

void *ff_map_get(const ff_map *map, const char *key) {
  return map->count ? find_slot(map->slots, map->capacity, key)->value : NULL;
}

void ff_map_set(ff_map *map, const char *key, void *value) {
  if (map->count * 2 >= map->capacity) {
    size_t capacity = map->capacity ? map->capacity * 2 : 16;
    struct ff_map_slot *slots = ff_alloc(capacity * sizeof *slots);
    for (size_t i = 0; i < map->capacity; i++)
      if (map->slots[i].key) *find_slot(slots, capacity, map->slots[i].key) = map->slots[i];
    free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
  }
  struct ff_map_slot *slot = find_slot(map->slots, map->capacity, key);
  if (!slot->key) {
    slot->key = key;
    map->count++;
  }
  slot->value = value;
}

void ff_map_free(ff_map *map) {
  free(map->slots);
  *map = (ff_map){0};
}

ff_status ff_file_read(const char *path, size_t limit, char **data, size_t *size, ff_error *error) {
  if (!limit) limit = (size_t)1 << 30;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ff_fail(error, FF_IO, "%s: cannot open: %s", path, strerror(errno));
  struct stat info;
  ff_text text = {0};
  ff_status status = FF_OK;
  if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    status = ff_fail(error, FF_IO, "%s: is a directory", path);
    goto out;
  }
  for (;;) {
    char buffer[65536];
    ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      status = ff_fail(error, FF_IO, "%s: cannot read: %s", path, strerror(errno));
      goto out;
    }
    if (got == 0) break;
    if (text.length + (size_t)got > limit) {
      status = ff_fail(error, FF_LIMIT, "%s: larger than %zu bytes", path, limit);
      goto out;
    }
    ff_text_add_bytes(&text, buffer, (size_t)got);
  }
  ff_text_add_bytes(&text, "", 0);
  *data = text.chars;
  *size = text.length;
  text.chars = NULL;
out:
  free(text.chars);
  close(fd);
  return status;
}

ff_status ff_parse_bytes(const char *text, uint64_t whole, uint64_t *bytes, ff_error *error) {
  char *end;
  errno = 0;
  double number = strtod(text, &end);
  double scale = 1;
  if (end == text || errno || !(number >= 0)) goto bad;
  if (*end == '%') {
    if (!whole || number > 100000) goto bad;
    scale = (double)whole / 100;
    end++;
  } else if (*end) {
    const char *units = "kmgt";
    char lower = (char)(*end | 32);
    const char *unit = strchr(units, lower);
    if (unit) {
      for (const char *u = units; u <= unit; u++) scale *= 1024;
      end++;
      if (*end == 'i') end++;
    }
    if (*end == 'B' || *end == 'b') end++;
  }
  if (*end || number * scale >= 9e18) goto bad;
  *bytes = (uint64_t)(number * scale + 0.5);
  return FF_OK;
bad:
  return ff_fail(error, FF_INVALID, "'%s' is not a size: write bytes, or a number with K, M, G or T%s", text,
                 whole ? ", or a percentage" : "");
}

const char *ff_format_bytes(uint64_t bytes, char *buffer, size_t size) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = (double)bytes;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
    value /= 1024;
    unit++;
  }
  snprintf(buffer, size, unit ? "%.2f %s" : "%.0f %s", value, units[unit]);
  return buffer;
}
