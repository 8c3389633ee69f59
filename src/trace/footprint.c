/* SPDX-License-Identifier: Apache-2.0 */
/* Footprints (footprint.h): pieces in a vector, found by a hash table of their first lines.
 *
 * Entries of the table are of an epoch, so that clearing it, which happens for each launch, costs nothing. */
#include "trace/footprint.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { TABLE_SIZE = 1024 };

static void table_size(footprint *f, size_t size) {
  free(f->table);
  f->table = ff_alloc(size * sizeof *f->table);
  f->size = size;
  f->epoch = 1;
}

void footprint_open(footprint *f, footprint_meets *meets, void *context) {
  *f = (footprint){.meets = meets, .context = context};
  table_size(f, TABLE_SIZE);
}

void footprint_free(footprint *f) {
  free(f->pieces.items);
  free(f->table);
  *f = (footprint){0};
}

void footprint_clear(footprint *f) {
  f->pieces.count = 0;
  f->sum = (footprint_piece){0};
  if (!++f->epoch) table_size(f, f->size);
}

void footprint_block(footprint *f, uint64_t block) { f->block = block; }

/* ---- pieces ---- */

static size_t first_place(const footprint *f, uint64_t line) {
  return (size_t)(line * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (f->size - 1);
}

static void table_put(footprint *f, uint32_t index) {
  size_t at = first_place(f, f->pieces.items[index].line);
  while (f->table[at] >> 32 == f->epoch) at = (at + 1) & (f->size - 1);
  f->table[at] = (uint64_t)f->epoch << 32 | index;
}

static footprint_piece *add_piece(footprint *f, uint64_t line, uint64_t span) {
  FF_CHECK(f->pieces.count < UINT32_MAX);
  FF_PUSH(&f->pieces, ((footprint_piece){.line = line, .span = span}));
  uint32_t index = (uint32_t)f->pieces.count - 1;
  if (2 * f->pieces.count <= f->size) {
    table_put(f, index);
  } else {
    table_size(f, 2 * f->size);
    for (uint32_t i = 0; i <= index; i++) table_put(f, i);
  }
  return &f->pieces.items[index];
}

/* A page in which allocations meet has an entry, for its first line, that says so only by its span. */
static footprint_piece *find(footprint *f, uint64_t line) {
  for (size_t at = first_place(f, line); f->table[at] >> 32 == f->epoch; at = (at + 1) & (f->size - 1)) {
    footprint_piece *piece = &f->pieces.items[(uint32_t)f->table[at]];
    if (piece->line == line) return piece;
  }
  return NULL;
}

static footprint_piece *piece_of(footprint *f, uint64_t line) {
  uint64_t page = line & ~(uint64_t)(FOOTPRINT_LINES - 1);
  footprint_piece *piece = find(f, page);
  if (__builtin_expect(piece && piece->span == FOOTPRINT_LINES, 1)) return piece;
  if (!piece && !f->meets(f->context, page * TRACE_LINE_BYTES)) return add_piece(f, page, FOOTPRINT_LINES);
  if (!piece) add_piece(f, page, 1); /* even if nothing touches this line */
  piece = find(f, line);
  return piece ? piece : add_piece(f, line, 1);
}

/* ---- accesses ---- */

static void count(footprint_piece *piece, trace_access_op op) {
  switch (op) {
  case TRACE_LOAD: piece->loads++; return;
  case TRACE_STORE: piece->stores++; return;
  case TRACE_ATOMIC: piece->atomics++; return;
  case TRACE_PREFETCH: piece->prefetches++; return;
  }
}

void footprint_access(footprint *f, const uint64_t *record) {
  uint32_t lines = trace_access_lines(*record);
  if (!lines) return; /* no lane was active */
  trace_access_op op = trace_access_operation(*record);
  bool write = op == TRACE_STORE || op == TRACE_ATOMIC;
  uint64_t page = UINT64_MAX;
  footprint_piece *piece = NULL;
  for (uint32_t i = 0; i < lines; i++) {
    uint64_t word = record[2 + i], line = trace_line_address(word) / TRACE_LINE_BYTES,
             sectors = trace_line_sectors(word);
    uint32_t within = (uint32_t)(line % FOOTPRINT_LINES);
    if (line / FOOTPRINT_LINES != page || piece->span == 1) {
      piece = piece_of(f, line);
      if (piece->last < f->block) piece->last = f->block;
      page = line / FOOTPRINT_LINES;
    }
    if (!i) count(piece, op);
    uint64_t *mask = write ? piece->written : piece->read;
    mask[within / 16] |= sectors << within % 16 * 4;
    uint32_t sector_count = (uint32_t)__builtin_popcountll(sectors);
    piece->lines++;
    piece->sectors += sector_count;
    f->sum.sectors += sector_count;
  }
  f->sum.lines += lines;
  count(&f->sum, op);
}

/* ---- several ---- */

static void add_counts(footprint_piece *to, const footprint_piece *piece) {
  to->loads += piece->loads;
  to->stores += piece->stores;
  to->atomics += piece->atomics;
  to->prefetches += piece->prefetches;
  to->lines += piece->lines;
  to->sectors += piece->sectors;
}

bool footprint_joins(footprint *f, const footprint_piece *piece) {
  const footprint_piece *own = find(f, piece->line);
  return !own || own->span == piece->span;
}

bool footprint_join(footprint *f, const footprint_piece *piece) {
  footprint_piece *own = find(f, piece->line);
  if (!own) own = add_piece(f, piece->line, piece->span);
  if (own->span != piece->span) return false;
  if (piece->lines && own->last < piece->last) own->last = piece->last; /* no lines: nothing touched it, see find */
  for (int i = 0; i < 2; i++) {
    own->read[i] |= piece->read[i];
    own->written[i] |= piece->written[i];
  }
  add_counts(own, piece);
  add_counts(&f->sum, piece);
  return true;
}

/* ---- order ---- */

static bool before(const footprint_piece *a, const footprint_piece *b) {
  return a->last != b->last ? a->last < b->last : a->line < b->line;
}

static int by_last(const void *a, const void *b) { return before(a, b) ? -1 : before(b, a); }

/* Blocks touch much the same: pieces are nearly in order, but for those that many blocks touch. They are put into
 * buckets of 64 blocks first. */
static void into_buckets(footprint *f) {
  enum { BUCKET = 64 };
  uint64_t most = 0, from = 0;
  for (size_t i = 0; i < f->pieces.count; i++)
    if (f->pieces.items[i].last > most) most = f->pieces.items[i].last;
  uint64_t buckets = most / BUCKET + 1;
  uint64_t *starts = ff_alloc((buckets + 1) * sizeof *starts);
  footprint_piece *ordered = ff_alloc((f->pieces.capacity + 1) * sizeof *ordered);
  for (size_t i = 0; i < f->pieces.count; i++) starts[f->pieces.items[i].last / BUCKET + 1]++;
  for (uint64_t b = 0; b < buckets; b++) starts[b + 1] += starts[b];
  for (size_t i = 0; i < f->pieces.count; i++) ordered[starts[f->pieces.items[i].last / BUCKET]++] = f->pieces.items[i];
  for (uint64_t b = 0; b < buckets; from = starts[b++])
    if (starts[b] - from > 1) qsort(ordered + from, starts[b] - from, sizeof *ordered, by_last);
  free(f->pieces.items);
  f->pieces.items = ordered;
  free(starts);
}

void footprint_sort(footprint *f) {
  for (size_t i = 1; i < f->pieces.count; i++) {
    if (!before(&f->pieces.items[i], &f->pieces.items[i - 1])) continue;
    into_buckets(f);
    return;
  }
}
