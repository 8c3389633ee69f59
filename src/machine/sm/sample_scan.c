/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of one launch, read without time: does their access stream touch anything that is not resident, what does it
 * count, and which marks does it leave.
 *
 * They are read once, into a footprint (trace/footprint.h). Nothing changes by that: if a page turns out to be absent,
 * the launch is simulated as if nothing had been read, with the blocks that were taken. If they are skipped, pages are
 * marked as used and written from the footprint, in the order of the last blocks that touch them.
 *
 * Their lines come into the L2, too, which a later launch finds there. A skipped launch's do so only when somebody may
 * look (sample_settle): when a launch begins that is timed, or lines are dropped. Until then launches that touch the
 * same count once, and those that so many others have followed that nothing of them would be left do not count. */
#include <stdlib.h>
#include <string.h>

#include "machine/answers.h"
#include "machine/memory/address_map.h"
#include "machine/memory/hierarchy.h"
#include "machine/observe/observer.h"
#include "machine/sm/dispatch.h"
#include "machine/sm/sample.h"
#include "trace/ahead.h"
#include "trace/touched.h"

/* ---- what is there ---- */

bool sample_page_meets(void *context, uint64_t page) {
  pager *p = ((sampler *)context)->pager;
  const pager_unit *first = pager_find(p, page), *last = pager_find(p, page + FF_PAGE_BYTES - TRACE_LINE_BYTES);
  if (first->allocation != last->allocation) return true;
  return !first->allocation && (first->shared || last->shared || p->config.unit_bytes < FF_PAGE_BYTES);
}

/* Of a piece, what lies in one unit: lines [first, end). */
typedef struct part {
  pager_unit *unit;
  uint32_t first, end;
} part;

static uint64_t address_of(const footprint_piece *piece, uint32_t line) {
  return (piece->line + line) * TRACE_LINE_BYTES;
}

static bool next_part(pager *p, const footprint_piece *piece, part *at) {
  uint32_t unit_lines = (uint32_t)(p->config.unit_bytes / TRACE_LINE_BYTES);
  if (at->end >= piece->span) return false;
  at->first = at->end;
  at->end = unit_lines < FOOTPRINT_LINES && piece->span > 1 ? at->first + unit_lines : (uint32_t)piece->span;
  at->unit = pager_find(p, address_of(piece, at->first));
  return true;
}

/* The sectors of lines [first, end) of a page, 4 bits a line. A piece of one line has it where it lies in its page. */
static bool any_sector(const footprint_piece *piece, const uint64_t mask[2], const part *at) {
  if (at->end - at->first == piece->span) return (mask[0] | mask[1]) != 0;
  uint32_t shift = piece->span == 1 ? (uint32_t)(piece->line % FOOTPRINT_LINES) : 0;
  for (uint32_t i = at->first; i < at->end; i++)
    if (footprint_sectors(mask, shift + i)) return true;
  return false;
}

/* Needs the piece no far-fault, and not the link? */
static bool is_here(pager *p, const footprint_piece *piece) {
  for (part at = {0}; next_part(p, piece, &at);) {
    bool written = any_sector(piece, piece->written, &at);
    if (!written && !any_sector(piece, piece->read, &at)) continue;
    if (at.unit->state != PAGER_RESIDENT || (at.unit->duplicate && written)) return false;
  }
  return true;
}

static bool all_here(const sampler *s, size_t first) {
  for (size_t i = first; i < s->touched.pieces.count; i++)
    if (!is_here(s->pager, &s->touched.pieces.items[i])) return false;
  return true;
}

/* What no allocation has counts as resident. */
static bool is_allocated(pager *p, const footprint_piece *piece) {
  return pager_find(p, address_of(piece, 0))->allocation != 0;
}

void sample_note_touched(const sampler *s, sample_kind *kind) {
  kind->touched.count = 0;
  for (size_t i = 0; i < s->touched.pieces.count; i++)
    if (is_allocated(s->pager, &s->touched.pieces.items[i])) FF_PUSH(&kind->touched, s->touched.pieces.items[i]);
}

bool sample_still_here(const sampler *s, const sample_kind *kind) {
  for (size_t i = 0; i < kind->touched.count; i++) {
    const footprint_piece *piece = &kind->touched.items[i];
    if (!is_allocated(s->pager, piece) || !is_here(s->pager, piece)) return false;
  }
  return true;
}

/* ---- reading ---- */

static uint64_t issued(sampler *s, trace_cursor *cursor, uint64_t word) {
  trace_counts units;
  if (s->front->left_out) word = trace_cursor_issue(s->reader, cursor, word, s->front->left_out, &units);
  uint64_t count = trace_issue_count(word);
  return !count && trace_issue_memory(word) ? 1 : count;
}

static uint64_t read_warp(sampler *s, trace_chunk *chunk, uint32_t warp) {
  trace_cursor cursor;
  uint64_t instructions = 0;
  trace_cursor_open(s->reader, chunk, warp, &cursor);
  for (trace_kind kind = TRACE_ISSUE; kind != TRACE_EXIT;) {
    const uint64_t *record = trace_cursor_next(s->reader, &cursor);
    kind = trace_word_kind(*record);
    if (kind == TRACE_ISSUE) instructions += issued(s, &cursor, *record);
    if (kind == TRACE_ACCESS) footprint_access(&s->touched, record);
  }
  trace_cursor_close(s->reader, &cursor);
  return instructions;
}

/* Of a block that has not been started; those before it are not kept any more. */
static trace_chunk *take(sampler *s, kernel *k, sample_launch *launch, uint64_t number) {
  trace_chunk *chunk = sample_taken(launch, number);
  if (chunk) return chunk;
  answers_unlock(s->answers); /* waits until the block has been executed */
  chunk = trace_reader_chunk(s->reader, k->launch, number);
  answers_lock(s->answers);
  FF_PUSH(&launch->taken, chunk);
  return chunk;
}

/* Blocks that were started, or skipped, are not kept. */
static void drop_begun(const kernel *k, sample_launch *launch) {
  uint64_t begun = k->next_block - launch->taken_first;
  if (begun > launch->taken.count) begun = launch->taken.count;
  launch->taken.count -= begun;
  if (begun)
    memmove(launch->taken.items, launch->taken.items + begun, launch->taken.count * sizeof *launch->taken.items);
  launch->taken_first = k->next_block;
}

static void take_sums(const footprint *f, uint64_t instructions, sample_counts *counts) {
  *counts = (sample_counts){.warp_instructions = instructions,
                            .accesses = f->sum.loads + f->sum.stores + f->sum.atomics + f->sum.prefetches,
                            .load_accesses = f->sum.loads,
                            .store_accesses = f->sum.stores,
                            .atomic_accesses = f->sum.atomics,
                            .lines = f->sum.lines,
                            .sectors = f->sum.sectors};
}

/* Do allocations meet in a page that the footprint has in one piece? They did not when it was recorded. */
static bool is_divided(sampler *s, const footprint_piece *piece) {
  if (piece->span > 1 && sample_page_meets(s, address_of(piece, 0))) return true;
  return !footprint_joins(&s->touched, piece);
}

static bool any_divided(sampler *s) {
  for (size_t i = 0; i < s->ahead.pieces.count; i++)
    if (is_divided(s, &s->ahead.pieces.items[i])) return true;
  return false;
}

/* The blocks from the `first` of them on as they were recorded, if the recording says what they touch: none of these is
 * taken. What they touch is joined to what those before them do. */
static bool look_ahead(sampler *s, const kernel *k, sample_launch *launch, uint64_t first, uint64_t blocks,
                       uint64_t *instructions) {
  uint64_t own;
  footprint *f = &s->ahead;
  footprint_clear(f);
  if (launch->taken.count > first ||
      !trace_reader_look(s->reader, k->launch, k->next_block + first, blocks - first, s->front->left_out, f, &own) ||
      any_divided(s))
    return false;
  for (size_t i = 0; i < f->pieces.count; i++) {
    f->pieces.items[i].last += first;
    footprint_join(&s->touched, &f->pieces.items[i]);
  }
  *instructions += own;
  launch->ahead = blocks - first;
  return true;
}

/* What was looked at is looked at again in the end: it may have been written to since. */
bool sample_read(sampler *s, kernel *k, sample_launch *launch, uint64_t blocks, sample_counts *counts) {
  footprint *f = &s->touched;
  uint64_t instructions = 0;
  footprint_clear(f);
  if (launch->taken_first != k->next_block) drop_begun(k, launch);
  launch->ahead = 0;
  for (uint64_t b = 0; b < blocks; b++) {
    bool whole = (k->next_block + b) % TRACE_FRAME_BLOCKS == 0;
    if (whole && look_ahead(s, k, launch, b, blocks, &instructions)) break;
    trace_chunk *chunk = take(s, k, launch, k->next_block + b);
    size_t known = f->pieces.count;
    footprint_block(f, b);
    for (uint32_t w = 0; w < k->warps_per_block; w++) instructions += read_warp(s, chunk, w);
    if (!all_here(s, known)) return false;
  }
  if (!all_here(s, 0)) return false;
  take_sums(f, instructions, counts);
  footprint_sort(f);
  return true;
}

/* What a launch without records touches is sorted already. false: a page of it is divided otherwise here. */
static bool join_touched(sampler *s, const trace_touched *touched) {
  for (uint64_t i = 0; i < touched->count; i++)
    if (is_divided(s, &touched->pieces[i]) || !footprint_join(&s->touched, &touched->pieces[i])) return false;
  return true;
}

bool sample_read_touched(sampler *s, kernel *k, sample_launch *launch, sample_counts *counts) {
  answers_unlock(s->answers); /* waits until the launch has been executed */
  const trace_touched *touched = trace_reader_touched(s->reader, k->launch);
  answers_lock(s->answers);
  launch->touched = touched != NULL;
  if (!touched) return false;
  footprint_clear(&s->touched);
  bool joined = join_touched(s, touched);
  take_sums(&s->touched, touched->instructions, counts);
  return joined && all_here(s, 0);
}

/* ---- marks ---- */

static void count_piece(sampler *s, const footprint_piece *piece, const pager_unit *unit) {
  sim_counters *c = &s->observer->allocations.items[s->pager->allocations.items[unit->allocation].owner]->counters;
  uint64_t accesses = piece->loads + piece->stores + piece->atomics + piece->prefetches;
  c->accesses += accesses;
  c->load_accesses += piece->loads;
  c->store_accesses += piece->stores;
  c->atomic_accesses += piece->atomics;
  c->lines += piece->lines;
  c->sectors += piece->sectors;
  if (s->observer->history && accesses)
    record_accesses(s->observer, unit, address_of(piece, 0), s->pager->now, accesses);
}

/* The unit is used, once for all lines of it that were; each has its bit in unit->used. */
static void mark_part(pager *p, const footprint_piece *piece, const part *at) {
  uint32_t shift = piece->span == 1 ? (uint32_t)(piece->line % FOOTPRINT_LINES) : 0;
  uint64_t bit_lines = p->config.unit_bytes / 32 / TRACE_LINE_BYTES;
  bool marked = false, written = any_sector(piece, piece->written, at);
  for (uint32_t i = at->first; i < at->end; i++) {
    if (!(footprint_sectors(piece->read, shift + i) | footprint_sectors(piece->written, shift + i))) continue;
    uint64_t address = address_of(piece, i);
    if (marked) pager_note_line(p, at->unit, address);
    else if (written) pager_gpu_write(p, at->unit, address);
    else pager_gpu_read(p, at->unit, address);
    if (marked && bit_lines >= FOOTPRINT_LINES) return; /* the page is in one bit */
    marked = true;
  }
}

static void mark_piece(sampler *s, const footprint_piece *piece) {
  bool counted = false;
  for (part at = {0}; next_part(s->pager, piece, &at);) {
    if (!counted) count_piece(s, piece, at.unit); /* all of its units are of one allocation */
    counted = true;
    mark_part(s->pager, piece, &at);
  }
  if (s->map->hash) physical_address(s->map, address_of(piece, 0)); /* a place, as soon as it is used */
}

/* ---- lines ---- */

static void warm_piece(sampler *s, const footprint_piece *piece) {
  uint32_t shift = piece->span == 1 ? (uint32_t)(piece->line % FOOTPRINT_LINES) : 0;
  for (uint32_t i = 0; i < piece->span; i++) {
    uint32_t read = footprint_sectors(piece->read, shift + i), written = footprint_sectors(piece->written, shift + i);
    uint64_t address = address_of(piece, i);
    if (!(read | written)) continue;
    if (s->map->hash) {
      if (!address_map_peek(s->map, address, &address)) continue;
    } else {
      address |= s->map->space;
    }
    l2_warm(s->memory, address, read | written, TRACE_LOAD);
    if (written) l2_warm(s->memory, address, written, TRACE_STORE);
  }
}

static uint64_t lines_of(const footprint_piece *piece) {
  uint64_t lines = 0;
  for (int half = 0; half < 2; half++)
    lines += (uint64_t)__builtin_popcountll(footprint_lines(piece->read[half] | piece->written[half]));
  return lines;
}

static void drop_lines(sampler *s, size_t first, size_t end) {
  if (first == end) return; /* there may be no array yet */
  for (size_t i = first; i < end; i++) free(s->owed.items[i].pieces);
  memmove(s->owed.items + first, s->owed.items + end, (s->owed.count - end) * sizeof *s->owed.items);
  s->owed.count -= end - first;
}

static bool same_lines(const sample_lines *a, const footprint_piece *pieces, size_t count) {
  return a->count == count && !memcmp(a->pieces, pieces, count * sizeof *pieces);
}

/* Twice what the L2 holds: of lines that so many have followed nothing is left in it. */
static void owe_lines(sampler *s) {
  const footprint *f = &s->touched;
  if (!f->pieces.count) return;
  uint64_t most = 2 * s->memory->spec->l2_bytes / TRACE_LINE_BYTES, lines = 0;
  size_t first = f->pieces.count;
  while (first && lines < most) lines += lines_of(&f->pieces.items[--first]);
  size_t count = f->pieces.count - first;
  const footprint_piece *from = f->pieces.items + first;
  sample_lines own = {.count = count, .lines = lines};
  for (size_t i = 0; i < s->owed.count && !own.pieces; i++) {
    if (!same_lines(&s->owed.items[i], from, count)) continue;
    own.pieces = s->owed.items[i].pieces;
    s->owed.items[i].pieces = NULL;
    drop_lines(s, i, i + 1);
  }
  if (!own.pieces) own.pieces = memcpy(ff_alloc((count + 1) * sizeof *from), from, count * sizeof *from);
  FF_PUSH(&s->owed, own);
  size_t keep = s->owed.count;
  for (lines = 0; keep && lines < most; keep--) lines += s->owed.items[keep - 1].lines;
  drop_lines(s, 0, keep);
}

void sample_settle(void *context) {
  sampler *s = context;
  for (size_t i = 0; i < s->owed.count; i++)
    for (size_t p = 0; p < s->owed.items[i].count; p++) warm_piece(s, &s->owed.items[i].pieces[p]);
  sample_forget(s);
}

void sample_forget(sampler *s) { drop_lines(s, 0, s->owed.count); }

/* ---- skipping ---- */

void sample_touch(sampler *s, kernel *k, sample_launch *launch, uint64_t blocks, ps began, ps ended, bool later) {
  ps now = s->pager->now, step = (ended - began) / blocks;
  for (size_t i = 0; i < s->touched.pieces.count; i++) {
    const footprint_piece *piece = &s->touched.pieces.items[i];
    s->pager->now = began + (piece->last + 1) * step;
    mark_piece(s, piece);
    if (!later) warm_piece(s, piece);
  }
  s->pager->now = now;
  if (later) owe_lines(s);
  if (launch->touched) {
    k->next_block = k->done_blocks = k->blocks;
    trace_reader_skip(s->reader, k->launch);
    return;
  }
  for (uint64_t b = launch->ahead; b < blocks; b++) {
    trace_reader_release(s->reader, sample_taken(launch, k->next_block));
    k->next_block++;
    k->done_blocks++;
  }
  if (!launch->ahead) return;
  k->next_block += launch->ahead;
  k->done_blocks += launch->ahead;
  trace_reader_leap(s->reader, k->launch, launch->ahead);
}
