/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned columns of text: cells are added row by row, then the whole is written with each column as wide as its widest
 * cell. Private to report/ (and used by cli/ for its lists).
 *
 * What always holds: a line never ends in spaces; control characters in a cell are shown as '?'; a cell's width is its
 * number of UTF-8 characters. */
#ifndef FF_REPORT_TABLE_H
#define FF_REPORT_TABLE_H

#include "base/memory.h"
#include "base/text.h"

enum { TABLE_COLUMNS = 256 };

typedef struct table {
  const char *align;         /* one letter per column: l or r; its length is the number of columns, at most TABLE_COLUMNS */
  FF_VEC(char *) cells;      /* owned, row by row */
} table;

/* `align` is borrowed until table_free. */
void table_start(table *t, const char *align);
void table_cell(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As table_cell, but a text longer than `width` is cut in its middle ("start...end"). */
void table_cell_cut(table *t, const char *text, size_t width);
/* Cells as all tables have them: a time in picoseconds, a count, bytes, a share of a whole in percent ("-" where there is no whole), a header's
 * names (NULL-ended). */
void table_time(table *t, uint64_t picoseconds);
void table_count(table *t, uint64_t count);
void table_bytes(table *t, uint64_t bytes);
void table_share(table *t, uint64_t part, uint64_t whole);
void table_names(table *t, const char *const *names);
/* Adds the rows to `out`, each after `indent` spaces; a last row that is not full is written as far as it goes. */
void table_write(const table *t, int indent, ff_text *out);
void table_free(table *t);

#endif
