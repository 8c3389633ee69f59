/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that show a place in a text, and the nearest word to a mistyped one.
 *
 * The shown line is at most SHOWN_WIDTH bytes and printable, whatever the text holds; the caret stands under the
 * character that has the byte which line:column names. Of an empty line nothing is shown; where that is the end of the
 * text, its last line is, and the caret stands behind it. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_WIDTH = 100, SHOWN_BEFORE = 60, WORD_LIMIT = 63 };

/* The first byte of line `line` (from 1), or NULL if the text has fewer lines. */
static const char *find_line(const char *text, size_t size, uint32_t line) {
  const char *end = text + size;
  for (uint32_t at = 1; at < line; at++) {
    const char *newline = memchr(text, '\n', (size_t)(end - text));
    if (!newline) return NULL;
    text = newline + 1;
  }
  return text;
}

/* Bytes of the UTF-8 character at `text`, of which `length` bytes are left; 0: it is none, or one that moves a
 * cursor. */
static size_t character_length(const unsigned char *text, size_t length) {
  unsigned char c = text[0];
  size_t wanted = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
  if (c < 32 || c == 127 || !wanted || wanted > length) return 0;
  if (c == 0xc2 && text[1] < 0xa0) return 0; /* C1 controls */
  for (size_t i = 1; i < wanted; i++)
    if ((text[i] & 0xc0) != 0x80) return 0;
  return wanted;
}

/* The same with at least one byte: what is no character is shown as one `?`. */
static size_t shown_length(const char *text, size_t length) {
  size_t bytes = character_length((const unsigned char *)text, length);
  return bytes ? bytes : 1;
}

uint32_t ff_column_in_bytes(const char *text, size_t size, uint32_t line, uint32_t column) {
  const char *start = text && line && column ? find_line(text, size, line) : NULL;
  if (!start) return column;
  size_t length = (size_t)(text + size - start), at = 0;
  uint32_t passed = 1;
  for (; passed < column && at < length && start[at] != '\n'; passed++) at += shown_length(start + at, length - at);
  return (uint32_t)at + 1 + column - passed;
}

/* Adds the line and the caret line below it to `out`. */
static void show_line(ff_text *out, const char *start, size_t length, uint32_t column) {
  size_t first = 0, caret = 0; /* bytes left out on the left; characters before the caret */
  while (column > SHOWN_BEFORE && first < length && first < column - SHOWN_BEFORE)
    first += shown_length(start + first, length - first);
  size_t shown = length - first < SHOWN_WIDTH ? length - first : SHOWN_WIDTH;
  ff_text_add(out, "\n  ");
  for (size_t i = 0; i < shown;) {
    const char *c = start + first + i;
    size_t bytes = character_length((const unsigned char *)c, shown - i);
    if (bytes) ff_text_add(out, "%.*s", (int)bytes, c);
    else ff_text_add(out, "%c", *c == '\t' ? ' ' : '?');
    i += bytes ? bytes : 1;
    caret += first + i < column;
  }
  if (column && column <= length + 1) ff_text_add(out, "\n  %*s^", (int)caret, "");
}

static size_t line_length(const char *start, const char *end) {
  const char *newline = memchr(start, '\n', (size_t)(end - start));
  return (size_t)((newline ? newline : end) - start);
}

/* Without the white space at its end. */
static size_t trimmed_length(const char *text, size_t size) {
  while (size && memchr(" \t\r\n", text[size - 1], 4)) size--;
  return size;
}

/* The place behind all of the text, which is trimmed: its last line, and the caret behind that. */
static void show_end(ff_text *out, const char *text, size_t size) {
  const char *start = text + size;
  while (start > text && start[-1] != '\n') start--;
  size_t length = (size_t)(text + size - start);
  if (length) show_line(out, start, length, (uint32_t)length + 1);
}

ff_status ff_fail_in_text(ff_error *error, ff_status status, const char *file, const char *text, size_t size,
                          uint32_t line, uint32_t column, const char *format, ...) {
  if (!error) return status;
  ff_text out = {0};
  if (column) ff_text_add(&out, "%s:%u:%u: ", file, line, column);
  else ff_text_add(&out, "%s:%u: ", file, line);
  char what[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  ff_text_add(&out, "%s", what);
  const char *start = text ? find_line(text, size, line) : NULL;
  size_t length = start ? line_length(start, text + size) : 0, end = start ? trimmed_length(text, size) : 0;
  if (start && start >= text + end) {
    if (column && (length || start == text + size)) show_end(&out, text, end);
  } else if (length) show_line(&out, start, length, column);
  ff_fail(error, status, "%s", out.chars);
  free(out.chars);
  return status;
}

/* Edit distance of two words of at most WORD_LIMIT letters, a transposition counting as one edit. */
static unsigned edit_distance(const char *a, const char *b) {
  unsigned rows[3][WORD_LIMIT + 1];
  size_t a_length = strlen(a), b_length = strlen(b);
  for (size_t j = 0; j <= b_length; j++) rows[0][j] = (unsigned)j;
  for (size_t i = 1; i <= a_length; i++) {
    unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
    row[0] = (unsigned)i;
    for (size_t j = 1; j <= b_length; j++) {
      unsigned best = above[j - 1] + (a[i - 1] != b[j - 1]);
      if (above[j] + 1 < best) best = above[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && above2[j - 2] + 1 < best)
        best = above2[j - 2] + 1;
      row[j] = best;
    }
  }
  return rows[a_length % 3][b_length];
}

const char *ff_closest(const char *word, const char *const *candidates) {
  size_t length = strlen(word);
  if (length > WORD_LIMIT) return NULL;
  const char *closest = NULL;
  unsigned best = (unsigned)(length < 3 ? 1 : length / 3 + 1) + 1;
  for (; *candidates; candidates++) {
    if (strlen(*candidates) > WORD_LIMIT) continue;
    unsigned distance = edit_distance(word, *candidates);
    if (distance < best) {
      best = distance;
      closest = *candidates;
    }
  }
  return closest;
}
