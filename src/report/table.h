/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned columns of text: cells are added row by row, then the whole is written with each column as wide as its widest
 * cell. Private to report/ (and used by cli/ for its lists).
 *
 * Without table_fit all columns are written; a line never ends in spaces; control characters in a
 * cell are shown as '?'; a cell's width is its number of UTF-8 characters. */
#ifndef FF_REPORT_TABLE_H
#define FF_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory.h"
#include "base/text.h"

enum { TABLE_COLUMNS = 256 };

typedef struct table {
  const char *
      align; /* one letter per column: l or r, w: left, of words that may go on in a further line; its length is the number of columns,
                                at most TABLE_COLUMNS */
  const char *const *names; /* of the columns, NULL-ended; NULL: the first row has them */
  /* names of columns that a narrow terminal can do without, the first one first, NULL-ended; then come those on the
   * right. NULL: none */
  const char *const *spare;
  FF_VEC(char *) cells;        /* owned, row by row */
  FF_VEC(unsigned char) tones; /* table_tone of the first cells; the others have none */
} table;

/* How many characters a line of tables may have from now on, of the whole program; 0 (at the start): any number.
 * Columns that do not fit are left out, but for the first two, and a line below the table says which; the same line is
 * not said twice. */
void table_fit(size_t width);

/* Whether cells with a tone are written in colour from now on, of the whole program (at the start: not): green for
 * good, red for bad. */
typedef enum table_tones { TABLE_PLAIN, TABLE_GOOD, TABLE_BAD } table_tones;
void table_colour(bool on);

/* `align` is borrowed until table_free, as names and spare are that are set behind it. */
void table_start(table *t, const char *align);
void table_cell(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As table_cell, but a text longer than `width` is cut in its middle ("start...end"). */
void table_cell_cut(table *t, const char *text, size_t width);
/* The tone of the cell that was added last. */
void table_tone(table *t, table_tones tone);
/* Cells as all tables have them: a time in picoseconds, a count, bytes, a share of a whole in percent ("-" where there
 * is no whole), a header's names (NULL-ended). */
void table_time(table *t, uint64_t picoseconds);
void table_count(table *t, uint64_t count);
void table_bytes(table *t, uint64_t bytes);
void table_share(table *t, uint64_t part, uint64_t whole);
void table_names(table *t, const char *const *names);
/* Adds the rows to `out`, each after `indent` spaces; a last row that is not full is written as far as it goes. */
void table_write(const table *t, int indent, ff_text *out);
void table_free(table *t);

#endif
