/* SPDX-License-Identifier: Apache-2.0 */
#include "report/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "report/report.h"

static bool colour;

void table_colour(bool on) { colour = on; }

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

void table_tone(table *t, table_tones tone) {
  FF_ASSERT(t->cells.count);
  while (t->tones.count + 1 < t->cells.count) FF_PUSH(&t->tones, TABLE_PLAIN);
  if (t->tones.count < t->cells.count) FF_PUSH(&t->tones, (unsigned char)tone);
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

static size_t characters_in(const char *text, size_t length) {
  size_t count = 0;
  for (size_t i = 0; i < length; i++) count += ((unsigned char)text[i] & 0xc0) != 0x80;
  return count;
}

static size_t characters(const char *text) { return characters_in(text, strlen(text)); }

static void add_spaces(ff_text *out, size_t count) {
  while (count--) ff_text_add_bytes(out, " ", 1);
}

/* ---- what fits ---- */

/* between columns; the least for a column of words; columns that are always there */
enum { GAP = 2, WORDS_MIN = 40, KEPT = 2 };

static struct {
  size_t width;
  FF_VEC(char *) said;
} fit; /* `said` is freed with the program */

void table_fit(size_t width) { fit.width = width; }

/* How the table is written. */
typedef struct layout {
  size_t columns, widths[TABLE_COLUMNS];
  bool shown[TABLE_COLUMNS];
} layout;

static const char *name_of(const table *t, size_t column) {
  if (t->names) return t->names[column];
  return column < t->cells.count ? t->cells.items[column] : "";
}

static size_t line_width(const layout *l, size_t indent) {
  size_t width = indent, count = 0;
  for (size_t i = 0; i < l->columns; i++)
    if (l->shown[i]) width += l->widths[i] + (count++ ? GAP : 0);
  return width;
}

/* Columns of words become narrower, as far as they can, until the line fits. */
static void narrow_words(const table *t, layout *l, size_t indent) {
  for (size_t i = 0; i < l->columns; i++) {
    size_t line = line_width(l, indent), over = line > fit.width ? line - fit.width : 0;
    if (t->align[i] != 'w' || !l->shown[i] || l->widths[i] <= WORDS_MIN) continue;
    size_t least = l->widths[i] > over + WORDS_MIN ? l->widths[i] - over : WORDS_MIN;
    l->widths[i] = least;
  }
}

static size_t spare_column(const table *t, const layout *l) {
  for (const char *const *name = t->spare; name && *name; name++)
    for (size_t i = 0; i < l->columns; i++)
      if (l->shown[i] && !strcmp(name_of(t, i), *name)) return i;
  for (size_t i = l->columns; i-- > KEPT;)
    if (l->shown[i] && t->align[i] != 'w') return i;
  for (size_t i = l->columns; i-- > KEPT;)
    if (l->shown[i]) return i;
  return l->columns;
}

static bool fits(const table *t, const layout *l, size_t indent) {
  layout narrow = *l;
  narrow_words(t, &narrow, indent);
  return line_width(&narrow, indent) <= fit.width;
}

static void choose_columns(const table *t, layout *l, size_t indent) {
  *l = (layout){.columns = strlen(t->align)};
  for (size_t i = 0; i < l->columns; i++) l->shown[i] = true;
  for (size_t i = 0; i < t->cells.count; i++) {
    size_t width = characters(t->cells.items[i]);
    if (width > l->widths[i % l->columns]) l->widths[i % l->columns] = width;
  }
  if (!fit.width) return;
  for (size_t spare; !fits(t, l, indent) && (spare = spare_column(t, l)) < l->columns;) l->shown[spare] = false;
  narrow_words(t, l, indent);
}

/* ---- writing ---- */

/* How many bytes of a text go into a line of `width` characters: up to a space, if there is one. */
static size_t line_length(const char *text, size_t width) {
  size_t length = 0, count = 0, space = 0;
  for (; text[length]; length++) {
    bool starts = ((unsigned char)text[length] & 0xc0) != 0x80;
    if (starts && count == width) return text[length] == ' ' || !space ? length : space;
    count += starts;
    if (text[length] == ' ') space = length;
  }
  return length;
}

static void end_line(ff_text *out) {
  while (out->length && out->chars[out->length - 1] == ' ') out->chars[--out->length] = '\0';
  ff_text_add_bytes(out, "\n", 1);
}

/* Part of a cell, in its colour: its padding has none, so that a line's end can be cut. */
static void add_toned(const table *t, size_t cell, const char *text, size_t length, ff_text *out) {
  static const char *const starts[] = {"", "\033[32m", "\033[31m"}; /* SGR of ECMA-48 */
  table_tones tone = colour && cell < t->tones.count ? (table_tones)t->tones.items[cell] : TABLE_PLAIN;
  ff_text_add(out, "%s", starts[tone]);
  ff_text_add_bytes(out, text, length);
  ff_text_add(out, "%s", tone ? "\033[0m" : "");
}

/* One line of the row whose cells begin with `first_cell`: what is left of its cells, of which only columns of words go
 * on in a further one. True: there is more. */
static bool write_line(const table *t, const layout *l, const char **rest, size_t first_cell, size_t indent,
                       ff_text *out) {
  bool more = false, first = true;
  add_spaces(out, indent);
  for (size_t i = 0; i < l->columns; i++) {
    if (!l->shown[i] || !rest[i]) continue;
    if (!first) add_spaces(out, GAP);
    size_t length = t->align[i] == 'w' ? line_length(rest[i], l->widths[i]) : strlen(rest[i]),
           width = characters_in(rest[i], length);
    size_t pad = l->widths[i] > width ? l->widths[i] - width : 0;
    if (t->align[i] == 'r') add_spaces(out, pad);
    add_toned(t, first_cell + i, rest[i], length, out);
    if (t->align[i] != 'r') add_spaces(out, pad);
    rest[i] += length;
    rest[i] += strspn(rest[i], " ");
    more = more || *rest[i];
    first = false;
  }
  end_line(out);
  return more;
}

static void write_row(const table *t, const layout *l, size_t first, size_t indent, ff_text *out) {
  const char *rest[TABLE_COLUMNS] = {0};
  for (size_t i = 0; i < l->columns && first + i < t->cells.count; i++) rest[i] = t->cells.items[first + i];
  while (write_line(t, l, rest, first, indent, out)) {}
}

/* "(not shown: A, B; --wide shows all)", on as many lines as it takes. */
static void write_words(const char *names, size_t indent, ff_text *out) {
  ff_text text = {0};
  ff_text_add(&text, "(not shown: %s; --wide shows all)", names);
  for (const char *rest = text.chars; *rest;) {
    size_t length = line_length(rest, fit.width > indent + WORDS_MIN ? fit.width - indent : WORDS_MIN);
    add_spaces(out, indent);
    ff_text_add_bytes(out, rest, length);
    end_line(out);
    rest += length;
    rest += strspn(rest, " ");
  }
  free(text.chars);
}

static void say_left_out(const table *t, const layout *l, size_t indent, ff_text *out) {
  ff_text names = {0};
  for (size_t i = 0; i < l->columns; i++)
    if (!l->shown[i]) ff_text_add(&names, "%s%s", names.length ? ", " : "", name_of(t, i));
  for (size_t i = 0; i < fit.said.count && names.length; i++)
    if (!strcmp(fit.said.items[i], names.chars)) names.length = 0;
  if (!names.length) {
    free(names.chars);
    return;
  }
  write_words(names.chars, indent, out);
  FF_PUSH(&fit.said, names.chars);
}

void table_write(const table *t, int indent, ff_text *out) {
  layout l;
  choose_columns(t, &l, (size_t)indent);
  for (size_t i = 0; i < t->cells.count; i += l.columns) write_row(t, &l, i, (size_t)indent, out);
  say_left_out(t, &l, (size_t)indent, out);
}

void table_free(table *t) {
  for (size_t i = 0; i < t->cells.count; i++) free(t->cells.items[i]);
  free(t->cells.items);
  free(t->tones.items);
  *t = (table){0};
}
