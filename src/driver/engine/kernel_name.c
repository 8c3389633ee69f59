/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernels, without what differs between builds (kernel_name.h). */
#include "driver/engine/kernel_name.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct text_part {
  const char *chars;
  size_t length;
} text_part;

static bool starts(text_part part, const char *word) {
  size_t length = strlen(word);
  return part.length >= length && !memcmp(part.chars, word, length);
}

static void skip(text_part *part, size_t length) {
  part->chars += length;
  part->length -= length;
}

/* The digits at the start, and their value; 0 digits: there are none, or the value is senselessly large. */
static size_t read_number(text_part part, size_t *value) {
  size_t digits = 0;
  for (*value = 0; digits < part.length && isdigit((unsigned char)part.chars[digits]); digits++) {
    if (*value > 1000000) return 0;
    *value = *value * 10 + (size_t)(part.chars[digits] - '0');
  }
  return digits;
}

/* "<length>_<file>" at the start: the file. */
static bool counted_file(text_part part, text_part *file) {
  size_t length, digits = read_number(part, &length);
  if (!digits || part.length < digits + 1 || part.chars[digits] != '_') return false;
  skip(&part, digits + 1);
  if (!length || length > part.length) return false;
  *file = (text_part){part.chars, length};
  return true;
}

static void cut_ending(text_part *file, const char *ending) {
  size_t length = strlen(ending);
  if (file->length > length && !memcmp(file->chars + file->length - length, ending, length)) file->length -= length;
}

/* In an identifier of nvcc's ("_GLOBAL__N__fd5ea9ae_14_SparseMatMul_cu_..."): the file, without its ending. */
static bool internal_file(text_part identifier, text_part *file) {
  if (starts(identifier, "_GLOBAL__N_")) skip(&identifier, strlen("_GLOBAL__N_"));
  else if (starts(identifier, "_INTERNAL_")) skip(&identifier, strlen("_INTERNAL_"));
  else return false;
  for (; identifier.length; skip(&identifier, 1)) { /* after a hash */
    if (identifier.chars[0] != '_') continue;
    text_part after = {identifier.chars + 1, identifier.length - 1};
    if (!counted_file(after, file) || starts(*file, "tmpxft_")) continue; /* there the file comes later */
    cut_ending(file, "_cpp1_ii");
    cut_ending(file, "_cu");
    return true;
  }
  return false;
}

/* In a namespace of CUB's or Thrust's ("CUB_200302_500_600_NS"): its name and version. */
static bool library_version(text_part identifier, text_part *version) {
  size_t at = starts(identifier, "CUB_") ? 4 : starts(identifier, "THRUST_") ? 7 : 0, ignored;
  if (!at || identifier.length < 4 || memcmp(identifier.chars + identifier.length - 3, "_NS", 3)) return false;
  text_part rest = {identifier.chars + at, identifier.length - at};
  size_t digits = read_number(rest, &ignored);
  if (!digits || rest.chars[digits] != '_') return false;
  *version = (text_part){identifier.chars, at + digits};
  return true;
}

/* "<length><identifier>" at the start: how long it is; 0: nothing of the kind. */
static size_t identifier_at(text_part name, text_part *identifier) {
  size_t length, digits = read_number(name, &length);
  if (!digits || length > name.length - digits) return 0;
  *identifier = (text_part){name.chars + digits, length};
  return digits + length;
}

void kernel_name_common(const char *name, size_t length, ff_text *common) {
  text_part rest = {name, length}, identifier, kept;
  while (rest.length) {
    size_t bytes = 0, digits, ignored;
    if (isdigit((unsigned char)rest.chars[0])) bytes = identifier_at(rest, &identifier);
    if (bytes && internal_file(identifier, &kept)) {
      ff_text_add(common, "<%.*s>", (int)kept.length, kept.chars);
      skip(&rest, bytes);
    } else if (bytes && library_version(identifier, &kept)) {
      ff_text_add(common, "<%.*s>", (int)kept.length, kept.chars);
      skip(&rest, bytes);
    } else {
      digits = read_number(rest, &ignored); /* at once: "65_GLOBAL" has no "5_GLOBAL" in it */
      ff_text_add_bytes(common, rest.chars, digits ? digits : 1);
      skip(&rest, digits ? digits : 1);
    }
  }
}

uint64_t kernel_name_hash(const char *name, size_t length) {
  ff_text common = {0};
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  kernel_name_common(name, length, &common);
  for (size_t i = 0; i < common.length; i++) hash = (hash ^ (unsigned char)common.chars[i]) * UINT64_C(0x100000001b3);
  free(common.chars);
  return hash;
}

bool kernel_name_file(const char *name, char *file, size_t room) {
  text_part rest = {name, strlen(name)}, identifier, found;
  while (rest.length) {
    size_t digits, ignored;
    if (isdigit((unsigned char)rest.chars[0]) && identifier_at(rest, &identifier) &&
        internal_file(identifier, &found)) {
      snprintf(file, room, "%.*s.cu", (int)found.length, found.chars);
      return true;
    }
    digits = read_number(rest, &ignored);
    skip(&rest, digits ? digits : 1);
  }
  return false;
}
