/* SPDX-License-Identifier: Apache-2.0 */
/* See candidate_describe.h. Marks are comments between two statements, each on a line of its own. */
#define _GNU_SOURCE /* memmem */
#include "offload/candidate_describe.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

const char *offload_other_name(const offload_other *other) {
  return other->param ? other->param->name : ptx_sreg_text(other->sreg);
}

void offload_put_formula(const offload_region *r, double fixed, double trip, ff_text *out) {
  if (r->trips.kind == OFFLOAD_TRIPS_ONE) ff_text_add(out, "%.10g", fixed + trip + 0.0);
  else ff_text_add(out, "%.10g %c %.10g k", fixed, trip > 0 ? '+' : '-', fabs(trip));
}

/* Trips that a region is sure to make, as far as the code says. */
static uint32_t sure_trips(const offload_region *r) {
  return r->trips.kind == OFFLOAD_TRIPS_STATIC ? r->trips.count : 1;
}

static void put_bit(const offload_region *r, const char *channel, uint32_t from, ff_text *out, bool *any) {
  bool known = r->trips.kind == OFFLOAD_TRIPS_KNOWN;
  if (from == OFFLOAD_NEVER || (!known && from > sure_trips(r))) return;
  ff_text_add(out, "%s%s", *any ? ", " : "", channel);
  if (known && from > 1) ff_text_add(out, " from %u", from);
  *any = true;
}

void offload_put_bits(const offload_region *r, ff_text *out) {
  bool any = false;
  put_bit(r, "TX", r->tx_from, out, &any);
  put_bit(r, "RX", r->rx_from, out, &any);
  if (!any) ff_text_add(out, "-");
}

void offload_put_live_in(const offload_kernel *kernel, const offload_region *r, ff_text *out) {
  for (uint32_t i = 0; i < r->live_in_count; i++)
    ff_text_add(out, "%s%s", i ? " " : "", kernel->func->regs[r->live_in[i]].name);
  for (uint32_t i = 0; i < r->other_count; i++)
    ff_text_add(out, "%s%s", r->live_in_count + i ? " " : "", offload_other_name(&kernel->others[r->others[i]]));
  if (r->live_in_count + r->other_count == 0) ff_text_add(out, "-");
}

void offload_put_live_out(const offload_kernel *kernel, const offload_region *r, ff_text *out) {
  for (uint32_t i = 0; i < r->live_out_count; i++)
    ff_text_add(out, "%s%s", i ? " " : "", kernel->func->regs[r->live_out[i]].name);
  if (!r->live_out_count) ff_text_add(out, "-");
}

static void put_bound(const ptx_func *func, const offload_bound *bound, ff_text *out) {
  if (bound->reg == PTX_NO_REG) ff_text_add(out, "%" PRId64, bound->value);
  else if (!bound->value) ff_text_add(out, "%s", func->regs[bound->reg].name);
  else
    ff_text_add(out, "%s %c %" PRIu64, func->regs[bound->reg].name, bound->value < 0 ? '-' : '+',
                bound->value < 0 ? 0 - (uint64_t)bound->value : (uint64_t)bound->value);
}

static void put_condition(const offload_kernel *kernel, const offload_region *r, ff_text *out) {
  if (r->threshold == 1 && !r->trips.tested_first) {
    ff_text_add(out, "always, for any number of trips");
    return;
  }
  ff_text_add(out, "from %u trip%s on", r->threshold, r->threshold == 1 ? "" : "s");
  if (r->compared != PTX_NO_REG) {
    ff_text_add(out, ": %s %s %" PRId64, kernel->func->regs[r->compared].name,
                r->compared_down ? "<=" : ">=", r->compared_with);
    return;
  }
  ff_text_add(out, ", which a counter makes from ");
  put_bound(kernel->func, &r->trips.from, out);
  ff_text_add(out, " to ");
  put_bound(kernel->func, &r->trips.to, out);
  ff_text_add(out, " by %" PRId64, r->trips.step);
}

void offload_put_verdict(const offload_kernel *kernel, const offload_region *r, ff_text *out) {
  if (r->bar) {
    ff_text_add(out, "no: %s", offload_bar_text(r->bar));
    if (r->bar != OFFLOAD_NO_MEMORY && r->bar != OFFLOAD_NO_SAVING) ff_text_add(out, " (line %u)", r->bar_line);
  } else if (!r->chosen) {
    ff_text_add(out, "no: what overlaps it saves more");
  } else if (r->trips.kind == OFFLOAD_TRIPS_KNOWN) {
    put_condition(kernel, r, out);
  } else if (r->trips.kind == OFFLOAD_TRIPS_STATIC) {
    ff_text_add(out, "always: %u trips", r->trips.count);
  } else {
    ff_text_add(out, r->trips.kind == OFFLOAD_TRIPS_UNKNOWN ? "always, with one trip assumed" : "always");
  }
}

/* ---- marks in the text ---- */

/* own_line: `at` is the beginning of a line */
typedef struct mark {
  size_t at;
  uint32_t order;
  char *comment;
  bool own_line;
} mark;
typedef struct marks {
  const char *text;
  size_t length;
  size_t *lines; /* where line i + 1 begins */
  uint32_t line_count;
  FF_VEC(mark) all;
} marks;

static void find_line_starts(marks *m) {
  FF_VEC(size_t) starts = {0};
  FF_PUSH(&starts, 0);
  for (size_t i = 0; i < m->length; i++)
    if (m->text[i] == '\n') FF_PUSH(&starts, i + 1);
  m->lines = starts.items;
  m->line_count = (uint32_t)starts.count;
}

static size_t offset_of(const marks *m, ptx_place place) {
  if (!place.line || place.line > m->line_count) return m->length;
  size_t at = m->lines[place.line - 1] + (place.column ? place.column - 1 : 0);
  return at < m->length ? at : m->length;
}

static bool is_guard_char(char c) {
  return c == ' ' || c == '\t' || c == '%' || c == '_' || c == '$' || c == '!' || (c >= '0' && c <= '9') ||
         (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The statement's first character: its guard's, if it has one just before. */
static size_t statement_start(const marks *m, const ptx_instr *instr) {
  size_t at = offset_of(m, instr->place), back = at;
  if (instr->guard == PTX_NO_REG) return at;
  while (back > 0 && is_guard_char(m->text[back - 1])) back--;
  return back > 0 && m->text[back - 1] == '@' ? back - 1 : at;
}

/* Behind the statement's semicolon. */
static size_t statement_end(const marks *m, const ptx_instr *instr) {
  size_t i = offset_of(m, instr->place);
  while (i < m->length && m->text[i] != ';') {
    const char *closed = NULL;
    if (m->text[i] == '/' && i + 1 < m->length && m->text[i + 1] == '/')
      closed = memchr(m->text + i, '\n', m->length - i);
    else if (m->text[i] == '/' && i + 1 < m->length && m->text[i + 1] == '*')
      closed = memmem(m->text + i + 2, m->length - i - 2, "*/", 2);
    else if (m->text[i] == '"') closed = memchr(m->text + i + 1, '"', m->length - i - 1);
    i = closed ? (size_t)(closed - m->text) + 1 : i + 1;
  }
  return i < m->length ? i + 1 : m->length;
}

/* Only blanks before it on its line: the mark goes onto a line before that. */
static size_t line_start(const marks *m, size_t at, bool *own_line) {
  size_t back = at;
  while (back > 0 && (m->text[back - 1] == ' ' || m->text[back - 1] == '\t')) back--;
  *own_line = back == 0 || m->text[back - 1] == '\n';
  return *own_line ? back : at;
}

/* Only blanks or a comment behind it on its line: the mark goes onto the next. */
static size_t line_end(const marks *m, size_t at, bool *own_line) {
  size_t next = at;
  while (next < m->length && (m->text[next] == ' ' || m->text[next] == '\t' || m->text[next] == '\r')) next++;
  if (next + 1 < m->length && m->text[next] == '/' && m->text[next + 1] == '/')
    while (next < m->length && m->text[next] != '\n') next++;
  *own_line = next < m->length && m->text[next] == '\n';
  return *own_line ? next + 1 : at;
}

static void add_mark(marks *m, size_t at, bool own_line, ff_text *comment) {
  FF_PUSH(&m->all, ((mark){at, (uint32_t)m->all.count, comment->chars, own_line}));
}

static void mark_region(marks *m, const offload_kernel *kernel, const offload_region *r, uint32_t number) {
  const ptx_instr *instrs = kernel->func->instrs;
  ff_text begin = {0}, end = {0}, entry = {0};
  bool own_line;
  ff_text_add(&begin, "// offload %u begin: ", number);
  offload_put_verdict(kernel, r, &begin);
  ff_text_add(&begin, "; saves ");
  offload_put_bits(r, &begin);
  ff_text_add(&begin, "; TX = ");
  offload_put_formula(r, r->tx_fixed, r->tx_trip, &begin);
  ff_text_add(&begin, ", RX = ");
  offload_put_formula(r, r->rx_fixed, r->rx_trip, &begin);
  ff_text_add(&begin, "; in ");
  offload_put_live_in(kernel, r, &begin);
  ff_text_add(&begin, "; out ");
  offload_put_live_out(kernel, r, &begin);
  size_t at = line_start(m, statement_start(m, &instrs[r->begin]), &own_line);
  add_mark(m, at, own_line, &begin);
  if (r->entry != r->begin) {
    ff_text_add(&entry, "// offload %u is entered here", number);
    at = line_start(m, statement_start(m, &instrs[r->entry]), &own_line);
    add_mark(m, at, own_line, &entry);
  }
  ff_text_add(&end, "// offload %u end", number);
  at = line_end(m, statement_end(m, &instrs[r->end - 1]), &own_line);
  add_mark(m, at, own_line, &end);
}

static int by_place(const void *x, const void *y) {
  const mark *a = x, *b = y;
  if (a->at != b->at) return a->at < b->at ? -1 : 1;
  return a->order < b->order ? -1 : a->order > b->order;
}

void offload_annotate(const ptx_module *module, offload_kernel *const *kernels, uint32_t count, ff_text *out) {
  marks m = {.text = module->text, .length = module->text_length};
  size_t at = 0;
  find_line_starts(&m);
  for (uint32_t k = 0; k < count; k++) {
    uint32_t number = 0;
    for (uint32_t i = 0; i < kernels[k]->region_count; i++)
      if (kernels[k]->regions[i].chosen) mark_region(&m, kernels[k], &kernels[k]->regions[i], ++number);
  }
  if (m.all.count) qsort(m.all.items, m.all.count, sizeof *m.all.items, by_place);
  for (size_t i = 0; i < m.all.count; i++) {
    const mark *mark = &m.all.items[i];
    ff_text_add_bytes(out, m.text + at, mark->at - at);
    ff_text_add(out, mark->own_line ? "\t%s\n" : "\n\t%s\n", mark->comment);
    at = mark->at;
    free(mark->comment);
  }
  ff_text_add_bytes(out, m.text + at, m.length - at);
  free(m.all.items);
  free(m.lines);
}
