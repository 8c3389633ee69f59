/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs that were measured elsewhere: lines "primary,secondary,cycles".
 *
 * Any bytes are an answer or an error with file, line and column; a line is a pair of two different
 * addresses and a finite time that is not negative. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/meter.h"

enum { MAX_LINES = 1 << 24, NUMBER = 64 };

typedef struct reader {
  const char *file, *text;
  size_t size, at, line_start;
  uint32_t line;
  ff_error *error;
} reader;

static ff_status fail(const reader *r, const char *what) {
  return ff_fail_in_text(r->error, FF_PARSE, r->file, r->text, r->size, r->line, (uint32_t)(r->at - r->line_start + 1),
                         "%s", what);
}

static int peek(const reader *r) { return r->at < r->size ? (unsigned char)r->text[r->at] : '\n'; }

static void skip_blanks(reader *r) {
  while (peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\r') r->at++;
}

static void next_line(reader *r) {
  while (r->at < r->size && r->text[r->at] != '\n') r->at++;
  r->line_start = ++r->at;
  r->line++;
}

/* The characters of a number, as a string of its own. */
static size_t take_number(reader *r, char text[NUMBER]) {
  size_t length = 0, at = r->at;
  while (at < r->size && length < NUMBER - 1 &&
         (isalnum((unsigned char)r->text[at]) || r->text[at] == '.' || r->text[at] == '+' || r->text[at] == '-'))
    text[length++] = r->text[at++];
  text[length] = '\0';
  return length;
}

static ff_status read_address(reader *r, uint64_t *address) {
  char text[NUMBER], *end;
  skip_blanks(r);
  size_t length = take_number(r, text);
  bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  if (!isdigit((unsigned char)text[0])) return fail(r, "an address is expected, decimal or 0x...");
  if (length > 20) return fail(r, "an address has at most 64 bits");
  unsigned long long value = strtoull(text, &end, hexadecimal ? 16 : 10);
  if (*end || (hexadecimal && !text[2])) return fail(r, "an address is expected, decimal or 0x...");
  if (value >> 52) return fail(r, "a physical address has at most 52 bits");
  *address = value;
  r->at += length;
  return FF_OK;
}

static ff_status read_time(reader *r, double *cycles) {
  char text[NUMBER], *end;
  skip_blanks(r);
  size_t length = take_number(r, text);
  if (!length || strspn(text, "0123456789.eE+-") != length)
    return fail(r, "a time in cycles is expected, as 512 or 512.5");
  *cycles = strtod(text, &end);
  if (*end || !isfinite(*cycles) || *cycles < 0 || *cycles > 1e12)
    return fail(r, "a time in cycles is expected: 0 to 1e12");
  r->at += length;
  return FF_OK;
}

static ff_status read_comma(reader *r) {
  skip_blanks(r);
  if (peek(r) != ',' && peek(r) != ';') return fail(r, "a comma is expected: primary,secondary,cycles");
  r->at++;
  return FF_OK;
}

static ff_status read_line(reader *r, probe_pair *pair, double *cycles) {
  ff_status status = read_address(r, &pair->a);
  if (!status) status = read_comma(r);
  if (!status) status = read_address(r, &pair->b);
  if (!status && pair->a == pair->b) return fail(r, "both addresses are the same");
  if (!status) status = read_comma(r);
  if (!status) status = read_time(r, cycles);
  if (status) return status;
  skip_blanks(r);
  return peek(r) == '\n' ? FF_OK : fail(r, "the line does not end behind the cycles");
}

typedef struct table {
  FF_VEC(uint64_t) differences;
  FF_VEC(double) cycles;
} table;

static ff_status read_table(reader *r, table *t) {
  bool heading = true; /* the first line that is no comment may be one */
  while (r->at < r->size) {
    skip_blanks(r);
    if (peek(r) == '\n' || peek(r) == '#' || (heading && (isalpha(peek(r)) || peek(r) == '"'))) {
      heading &= peek(r) == '\n' || peek(r) == '#';
    } else {
      probe_pair pair;
      double cycles = 0;
      ff_status status = read_line(r, &pair, &cycles);
      if (status) return status;
      if (t->cycles.count == MAX_LINES)
        return ff_fail(r->error, FF_LIMIT, "%s: more than %d pairs", r->file, MAX_LINES);
      FF_PUSH(&t->differences, pair.a ^ pair.b);
      FF_PUSH(&t->cycles, cycles);
      heading = false;
    }
    next_line(r);
  }
  return t->cycles.count
             ? FF_OK
             : ff_fail(r->error, FF_PARSE, "%s: there are no pairs: lines primary,secondary,cycles", r->file);
}

static ff_status solve(const char *file, const table *t, const probe_options *options, probe_finding *found,
                       ff_error *error) {
  findings f = {.tested = 0};
  modes_histogram(t->cycles.items, t->cycles.count, &found->times);
  if (!modes_split(t->cycles.items, t->cycles.count, &found->fast, &found->slow, &found->threshold))
    return ff_fail(error, FF_INVALID, "%s: the times of %zu pairs do not divide into many fast and some slow ones",
                   file, t->cycles.count);
  for (size_t i = 0; i < t->cycles.count; i++) {
    if (t->cycles.items[i] > found->threshold) FF_PUSH(&f.conflicts, t->differences.items[i]);
    else FF_PUSH(&f.others, t->differences.items[i]);
  }
  f.tested = t->cycles.count;
  findings_solve(&f, options, found);
  findings_free(&f);
  return FF_OK;
}

ff_status probe_pairs_text(const char *file, const char *text, size_t size, probe_kind kind,
                           const probe_options *options, probe_result *result, ff_error *error) {
  reader r = {.file = file, .text = text, .size = size, .line = 1, .error = error};
  table t = {.cycles = {0}};
  *result = (probe_result){.physical = true};
  snprintf(result->device, sizeof result->device, "%.60s", file);
  ff_status status = read_table(&r, &t);
  if (!status) status = solve(file, &t, options, &result->kinds[kind], error);
  free(t.differences.items);
  free(t.cycles.items);
  return status;
}
