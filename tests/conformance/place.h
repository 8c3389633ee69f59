/* SPDX-License-Identifier: Apache-2.0 */
/* Where the cases of a conformance file stand. A case begins with a line "// case: NAME" and goes on to the next such
 * line; what stands before the first belongs to none. A file without such lines is one case. */
#ifndef TESTS_CONFORMANCE_PLACE_H
#define TESTS_CONFORMANCE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct case_place {
  const char *text; /* of this case; NULL: none has been asked for yet */
  size_t length;
  unsigned line, lines; /* the file's line that it begins at, and how many it has */
  char name[96];        /* "": the file has no lines "// case:" */
} case_place;

static const char case_mark[] = "// case:";

/* From `text` on: the first line that begins a case, or `end`; `lines` counts those before it. */
static inline const char *case_find(const char *text, const char *end, unsigned *lines) {
  for (; text < end; ++*lines) {
    if ((size_t)(end - text) >= sizeof case_mark && !memcmp(text, case_mark, sizeof case_mark - 1)) break;
    const char *next = memchr(text, '\n', (size_t)(end - text));
    text = next ? next + 1 : end;
  }
  return text;
}

static inline void case_read_name(case_place *place) {
  const char *at = place->text + sizeof case_mark - 1, *end = place->text + place->length;
  size_t used = 0;
  while (at < end && *at == ' ') at++;
  while (at < end && (unsigned char)*at > ' ' && used < sizeof place->name - 1) place->name[used++] = *at++;
}

/* The case behind `place`, which is all zero for the first; false: that was the last. */
static inline bool case_next(const char *text, size_t length, case_place *place) {
  const char *end = text + length, *begin;
  unsigned line = place->line + place->lines, before = 0;
  if (!place->text) begin = case_find(text, end, &before), line = 1 + before;
  else if ((begin = place->text + place->length) == end) return false;
  bool whole = begin == end;
  *place = (case_place){.text = whole ? text : begin, .line = whole ? 1 : line, .lines = 1};
  const char *second = whole ? NULL : memchr(begin, '\n', (size_t)(end - begin));
  place->length = (size_t)((second ? case_find(second + 1, end, &place->lines) : end) - place->text);
  if (!whole) case_read_name(place);
  return true;
}

#endif
