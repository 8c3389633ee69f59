/* SPDX-License-Identifier: Apache-2.0 */
/* The table of lines (text_lines.h). Its rows add up to the simulation's counters: behind the lines that are shown come
 * those that are not, and what is of no line. No row is wider than 80 characters. */
#include "report/text_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/table.h"

enum { LABEL_WIDTH = 33, PARTS_SHOWN = 4 };

typedef struct traffic { /* what the table shows of a line */
  uint64_t faults, in, remote, sectors, dram;
} traffic;

typedef struct row { /* a line of the source in one kernel, or of the PTX where no source is known */
  const sim_line_result *first;
  const char *kernel; /* its name */
  traffic sum;
  FF_VEC(const sim_line_result *) parts;
} row;

typedef struct row_list {
  row *items;
  size_t count, capacity;
} row_list;

static traffic traffic_of(const sim_counters *c) {
  return (traffic){c->faults, c->h2d_bytes, c->remote_bytes, c->sectors, c->dram_read_bytes + c->dram_write_bytes};
}

static void add_traffic(traffic *to, const traffic *more) {
  to->faults += more->faults;
  to->in += more->in;
  to->remote += more->remote;
  to->sectors += more->sectors;
  to->dram += more->dram;
}

static int compare(uint64_t a, uint64_t b) { return a > b ? -1 : a < b; }

/* Most far-faults first; where there are none, what moves most. */
static int by_traffic(const traffic *a, const traffic *b) {
  int order = compare(a->faults, b->faults);
  if (!order) order = compare(a->in + a->remote, b->in + b->remote);
  if (!order) order = compare(a->dram, b->dram);
  return order ? order : compare(a->sectors, b->sectors);
}

static int by_order(const sim_line_result *a, const sim_line_result *b) {
  return a->kernel != b->kernel ? (a->kernel > b->kernel) - (a->kernel < b->kernel) : (a->pc > b->pc) - (a->pc < b->pc);
}

static int by_sum(const void *a, const void *b) {
  const row *x = a, *y = b;
  int order = by_traffic(&x->sum, &y->sum);
  return order ? order : by_order(x->first, y->first);
}

static int by_part(const void *a, const void *b) {
  const sim_line_result *x = *(const sim_line_result *const *)a, *y = *(const sim_line_result *const *)b;
  traffic of_x = traffic_of(&x->counters), of_y = traffic_of(&y->counters);
  int order = by_traffic(&of_x, &of_y);
  return order ? order : by_order(x, y);
}

/* ---- lines to rows ---- */

/* So that what belongs into one row is side by side: kernels of one name (in several ranges) are one. */
typedef struct keyed {
  const sim_line_result *line;
  const char *kernel;
} keyed;

static int by_row(const keyed *a, const keyed *b) {
  int order = strcmp(a->kernel, b->kernel);
  const sim_line_result *x = a->line, *y = b->line;
  if (!order) order = (x->file != NULL) - (y->file != NULL);
  if (!order && x->file) order = strcmp(x->file, y->file);
  if (!order && x->file) return (x->source > y->source) - (x->source < y->source);
  if (!order) order = (x->place > y->place) - (x->place < y->place);
  return order || x->place ? order : (x->pc > y->pc) - (x->pc < y->pc);
}

static int by_row_and_order(const void *a, const void *b) {
  const keyed *x = a, *y = b;
  int order = by_row(x, y);
  return order ? order : by_order(x->line, y->line);
}

static void collect(const sim_result *result, row_list *rows) {
  keyed *all = ff_alloc((result->line_count + (size_t)1) * sizeof *all);
  for (uint32_t i = 0; i < result->line_count; i++)
    all[i] = (keyed){&result->lines[i], result->kernels[result->lines[i].kernel].name};
  qsort(all, result->line_count, sizeof *all, by_row_and_order);
  for (uint32_t i = 0; i < result->line_count; i++) {
    traffic more = traffic_of(&all[i].line->counters);
    if (!i || by_row(&all[i - 1], &all[i])) FF_PUSH(rows, ((row){.first = all[i].line, .kernel = all[i].kernel}));
    row *r = &rows->items[rows->count - 1];
    add_traffic(&r->sum, &more);
    FF_PUSH(&r->parts, all[i].line);
  }
  free(all);
  if (rows->count) qsort(rows->items, rows->count, sizeof *rows->items, by_sum);
}

static void free_rows(row_list *rows) {
  for (size_t i = 0; i < rows->count; i++) free(rows->items[i].parts.items);
  free(rows->items);
}

/* ---- writing ---- */

/* The instruction without its guard and operands. */
static void add_opcode(const sim_line_result *line, ff_text *out) {
  const char *text = line->text ? line->text : "";
  if (*text == '@') text += strcspn(text, " ");
  while (*text == ' ') text++;
  if (*text) ff_text_add(out, " %.*s", (int)strcspn(text, " ;"), text);
}

static void add_ptx(const sim_line_result *line, ff_text *out) {
  if (line->place) ff_text_add(out, "PTX %u", line->place);
  else ff_text_add(out, "instruction %u", line->pc);
  add_opcode(line, out);
}

/* "saxpy.cu:5 in saxpy", "PTX 41 ld.global.f32 in saxpy": of a kernel's name, as much as tells it. */
static void label_cell(table *t, const row *r) {
  ff_text text = {0};
  const char *slash = r->first->file ? strrchr(r->first->file, '/') : NULL;
  if (r->first->file) ff_text_add(&text, "%s:%u", slash ? slash + 1 : r->first->file, r->first->source);
  else add_ptx(r->first, &text);
  const char *name = strncmp(r->kernel, "void ", 5) ? r->kernel : r->kernel + 5;
  size_t length = strcspn(name, "<(");
  ff_text_add(&text, " in %.*s", (int)(length ? length : strlen(name)), name);
  table_cell_cut(t, text.chars, LABEL_WIDTH);
  free(text.chars);
}

static void traffic_cells(table *t, const traffic *sum, const traffic *total, bool remote) {
  table_count(t, sum->faults);
  table_share(t, sum->faults, total->faults);
  table_bytes(t, sum->in);
  if (remote) table_bytes(t, sum->remote);
  else table_count(t, sum->sectors);
  table_bytes(t, sum->dram);
}

static void parts_write(table *t, row *r, const traffic *total, bool remote) {
  traffic rest = {0};
  qsort(r->parts.items, r->parts.count, sizeof *r->parts.items, by_part);
  size_t shown = r->parts.count > PARTS_SHOWN ? PARTS_SHOWN - 1 : r->parts.count;
  for (size_t i = 0; i < r->parts.count; i++) {
    traffic one = traffic_of(&r->parts.items[i]->counters);
    if (i >= shown) {
      add_traffic(&rest, &one);
      continue;
    }
    ff_text text = {0};
    ff_text_add(&text, "  ");
    add_ptx(r->parts.items[i], &text);
    table_cell_cut(t, text.chars, LABEL_WIDTH);
    free(text.chars);
    traffic_cells(t, &one, total, remote);
  }
  if (shown == r->parts.count) return;
  table_cell(t, "  %zu further lines of PTX", r->parts.count - shown);
  traffic_cells(t, &rest, total, remote);
}

static uint64_t less(uint64_t all, uint64_t part) { return all > part ? all - part : 0; }

static void rows_write(const sim_result *result, row_list *rows, size_t limit, ff_text *out) {
  traffic total = traffic_of(&result->counters), lines = {0}, rest = {0};
  for (size_t i = 0; i < rows->count; i++) {
    add_traffic(&lines, &rows->items[i].sum);
    if (i >= limit) add_traffic(&rest, &rows->items[i].sum);
  }
  bool remote = lines.remote != 0;
  table t;
  table_start(&t, "lrrrrr");
  const char *const names[] = {"line", "far-faults", "share", "to GPU", remote ? "remote" : "sectors", "DRAM", NULL};
  table_names(&t, names);
  for (size_t i = 0; i < rows->count && i < limit; i++) {
    label_cell(&t, &rows->items[i]);
    traffic_cells(&t, &rows->items[i].sum, &total, remote);
    if (rows->items[i].first->file) parts_write(&t, &rows->items[i], &total, remote);
  }
  if (rows->count > limit) {
    table_cell(&t, "(%zu further lines)", rows->count - limit);
    traffic_cells(&t, &rest, &total, remote);
  }
  traffic none = {less(total.faults, lines.faults), less(total.in, lines.in), less(total.remote, lines.remote),
                  less(total.sectors, lines.sectors), less(total.dram, lines.dram)};
  if (none.faults || none.in || none.sectors || none.remote || none.dram) {
    table_cell(&t, "(of no line)"); /* the program's copies, what a launch declares, the host's accesses */
    traffic_cells(&t, &none, &total, remote);
  }
  table_write(&t, 2, out);
  table_free(&t);
}

static void notes_write(const sim_result *result, ff_text *out) {
  bool ptx = false, source = false;
  for (uint32_t i = 0; i < result->line_count; i++) {
    ptx = ptx || result->lines[i].place;
    source = source || result->lines[i].file;
  }
  if (!ptx)
    ff_text_add(out, "  note: the lines are not known: the program's PTX is not there, so instructions are numbered\n");
  else if (!source) ff_text_add(out, "  note: the PTX names no lines of the source: nvcc -lineinfo puts them in\n");
}

void text_lines_write(const report_run *run, uint32_t limit, ff_text *out) {
  for (uint32_t i = 0; i < run->result_count; i++) {
    const sim_result *result = &run->results[i];
    row_list rows = {0};
    if (!result->lines_kept || result->error[0]) continue;
    ff_text_add(out, "\n%s", result->memory);
    ff_text_add(out, ": lines with the most far-faults\n");
    collect(result, &rows);
    if (rows.count) rows_write(result, &rows, limit, out);
    else ff_text_add(out, "  none: no kernel has accessed global memory\n");
    if (rows.count) notes_write(result, out);
    free_rows(&rows);
  }
}
