/* SPDX-License-Identifier: Apache-2.0 */
#include "report/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "report/report.h"

void table_start(table *t, const char *align) {
  FF_ASSERT(strlen(align) <= TABLE_COLUMNS && align[0]);
  *t = (table){.align = align};
}

static void add_clean(table *t, char *text) {
  for (char *c = text; *c; c++)
    if ((unsigned char)*c < 32 || *c == 127) *c = '?';
  FF_PUSH(&t->cells, text);
}

void table_cell(table *t, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  add_clean(t, ff_strdup(text));
}

void table_cell_cut(table *t, const char *text, size_t width) {
  size_t length = strlen(text);
  char *cell = ff_strdup(text);
  if (length > width && width > 8) {
    size_t tail = (width - 3) / 3, head = width - 3 - tail;
    memcpy(cell + head, "...", 3);
    memmove(cell + head + 3, text + length - tail, tail + 1);
  }
  add_clean(t, cell);
}

void table_time(table *t, uint64_t picoseconds) {
  char text[32];
  table_cell(t, "%s", report_format_time(picoseconds, text, sizeof text));
}

void table_count(table *t, uint64_t count) {
  char text[32];
  table_cell(t, "%s", report_format_count(count, text, sizeof text));
}

void table_bytes(table *t, uint64_t bytes) {
  char text[32];
  table_cell(t, "%s", ff_format_bytes(bytes, text, sizeof text));
}

void table_share(table *t, uint64_t part, uint64_t whole) {
  if (!whole) table_cell(t, "-");
  else table_cell(t, "%.1f %%", 100 * (double)part / (double)whole);
}

void table_names(table *t, const char *const *names) {
  for (; *names; names++) table_cell(t, "%s", *names);
}

static size_t characters(const char *text) {
  size_t count = 0;
  for (; *text; text++) count += ((unsigned char)*text & 0xc0) != 0x80;
  return count;
}

static void add_spaces(ff_text *out, size_t count) {
  while (count--) ff_text_add_bytes(out, " ", 1);
}

void table_write(const table *t, int indent, ff_text *out) {
  size_t columns = strlen(t->align), widths[TABLE_COLUMNS] = {0};
  for (size_t i = 0; i < t->cells.count; i++) {
    size_t width = characters(t->cells.items[i]);
    if (width > widths[i % columns]) widths[i % columns] = width;
  }
  for (size_t i = 0; i < t->cells.count; i++) {
    size_t column = i % columns, pad = widths[column] - characters(t->cells.items[i]);
    bool last = column + 1 == columns || i + 1 == t->cells.count;
    if (column == 0) add_spaces(out, (size_t)indent);
    if (t->align[column] == 'r') add_spaces(out, pad);
    ff_text_add_bytes(out, t->cells.items[i], strlen(t->cells.items[i]));
    if (last) {
      while (out->length && out->chars[out->length - 1] == ' ') out->chars[--out->length] = '\0';
      ff_text_add_bytes(out, "\n", 1);
    } else {
      add_spaces(out, (t->align[column] == 'l' ? pad : 0) + 2);
    }
  }
}

void table_free(table *t) {
  for (size_t i = 0; i < t->cells.count; i++) free(t->cells.items[i]);
  free(t->cells.items);
  *t = (table){0};
}
