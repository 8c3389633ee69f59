/* SPDX-License-Identifier: Apache-2.0 */
/* What a frame's blocks touch, as a column of its own (file.h): a reader that needs only places and counts reads
 * nothing else of the frame.
 *
 *   column  blocks, instructions with late WAITs, instructions without, pieces; then each piece
 *   piece   line less that of the piece before (zigzag), last block less that of the piece before, how (a byte: 1 if it
 *           is a single line; 2, 4: read none, all, else its mask follows; 8, 16: the same of written), masks, counts
 *
 * All numbers are of seven bits a byte; masks are 16 bytes. Pieces are in the order of footprint_sort. A frame that is
 * not of whole blocks of one launch has an empty column. */
#include <stdlib.h>
#include <string.h>

#include "trace/ahead.h"
#include "trace/trace_frame.h"

/* ---- writing ---- */

static size_t edge_place(const frame_touches *t, uint64_t page) {
  size_t low = 0, high = t->edges.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (t->edges.items[middle] < page) low = middle + 1;
    else high = middle;
  }
  return low;
}

static bool meets(void *context, uint64_t page) {
  const frame_touches *t = context;
  size_t at = edge_place(t, page);
  return at < t->edges.count && t->edges.items[at] == page;
}

enum { PAGE = FOOTPRINT_LINES * TRACE_LINE_BYTES };

static void add_edge(frame_touches *t, uint64_t address) {
  uint64_t page = address & ~(uint64_t)(PAGE - 1);
  if (address == page || meets(t, page)) return;
  size_t at = edge_place(t, page);
  FF_PUSH(&t->edges, page);
  memmove(t->edges.items + at + 1, t->edges.items + at, (t->edges.count - 1 - at) * sizeof page);
  t->edges.items[at] = page;
}

void frame_touches_open(frame_touches *t) {
  *t = (frame_touches){0};
  footprint_open(&t->touched, meets, t);
}

void frame_touches_free(frame_touches *t) {
  footprint_free(&t->touched);
  free(t->edges.items);
}

void frame_touches_allocated(frame_touches *t, uint64_t address, uint64_t bytes) {
  add_edge(t, address);
  add_edge(t, address + bytes);
}

void frame_touches_begin(frame_touches *t, uint64_t block, uint32_t warp) {
  footprint_clear(&t->touched);
  t->first = block;
  t->blocks = 0;
  t->parted = warp != 0;
  for (int way = 0; way < COUNT_WAYS; way++) {
    t->instructions[way] = 0;
    t->pending[way] = (pending_issue){0};
  }
}

static void end_issue(frame_touches *t, int way) {
  uint64_t word = t->pending[way].word, count = trace_issue_count(word);
  t->instructions[way] += !count && trace_issue_memory(word) ? 1 : count;
  t->pending[way] = (pending_issue){0};
}

static void take_issue(frame_touches *t, int way, uint64_t word) {
  pending_issue *p = &t->pending[way];
  if (p->word && p->joins && trace_issues_fit(p->word, word)) {
    p->word += (word >> 4) << 4;
    p->joins = false;
    return;
  }
  end_issue(t, way);
  p->word = word;
}

static void take_word(frame_touches *t, int way, uint64_t word) {
  trace_kind kind = trace_word_kind(word);
  bool left_out = kind == TRACE_ENTER || kind == TRACE_LEAVE ||
                  (way == WITHOUT_LATE_WAITS && kind == TRACE_WAIT && trace_wait_late(word));
  if (kind == TRACE_ISSUE) take_issue(t, way, word);
  else if (left_out) t->pending[way].joins = true;
  else if (kind != TRACE_UNITS) end_issue(t, way);
}

void frame_touches_record(frame_touches *t, uint64_t block, const uint64_t *words) {
  for (int way = 0; way < COUNT_WAYS; way++) take_word(t, way, words[0]);
  if (trace_word_kind(words[0]) != TRACE_ACCESS) return;
  footprint_block(&t->touched, block - t->first);
  footprint_access(&t->touched, words);
}

void frame_touches_block_over(frame_touches *t) { t->blocks++; }

static uint64_t zigzag(uint64_t distance) { return distance << 1 ^ (uint64_t)((int64_t)distance >> 63); }
static uint64_t unzigzag(uint64_t number) { return number >> 1 ^ -(number & 1); }

static bool is_all(const uint64_t mask[2]) { return mask[0] == UINT64_MAX && mask[1] == UINT64_MAX; }
static bool is_none(const uint64_t mask[2]) { return !mask[0] && !mask[1]; }

enum { HOW_SINGLE = 1, HOW_READ_ALL = 2, HOW_READ_MASK = 4, HOW_WRITTEN_ALL = 8, HOW_WRITTEN_MASK = 16, HOW_MAX = 32 };

static void put_mask(pack_bytes *to, const uint64_t mask[2]) {
  for (int i = 0; i < 16; i++) pack_byte(to, (uint8_t)(mask[i / 8] >> i % 8 * 8));
}

static void put_piece(pack_bytes *to, const footprint_piece *piece, const footprint_piece *before) {
  uint8_t how = piece->span == 1 ? HOW_SINGLE : 0;
  if (is_all(piece->read)) how |= HOW_READ_ALL;
  else if (!is_none(piece->read)) how |= HOW_READ_MASK;
  if (is_all(piece->written)) how |= HOW_WRITTEN_ALL;
  else if (!is_none(piece->written)) how |= HOW_WRITTEN_MASK;
  pack_number(to, zigzag(piece->line - before->line));
  pack_number(to, piece->last - before->last);
  pack_byte(to, how);
  if (how & HOW_READ_MASK) put_mask(to, piece->read);
  if (how & HOW_WRITTEN_MASK) put_mask(to, piece->written);
  const uint64_t counts[] = {piece->loads,      piece->stores, piece->atomics,
                             piece->prefetches, piece->lines,  piece->sectors};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) pack_number(to, counts[i]);
}

void frame_touches_put(frame_touches *t, bool inside, pack_bytes *to) {
  if (t->parted || inside || !t->blocks) return;
  footprint_piece before = {0};
  footprint_sort(&t->touched);
  pack_number(to, t->blocks);
  for (int way = 0; way < COUNT_WAYS; way++) pack_number(to, t->instructions[way]);
  pack_number(to, t->touched.pieces.count);
  for (size_t i = 0; i < t->touched.pieces.count; i++) {
    put_piece(to, &t->touched.pieces.items[i], &before);
    before = t->touched.pieces.items[i];
  }
}

/* ---- reading ---- */

static bool take_mask(pack_view *from, uint8_t how, uint8_t all, uint64_t mask[2]) {
  mask[0] = mask[1] = how & all ? UINT64_MAX : 0;
  if (!(how & (all << 1))) return true;
  if (how & all || from->end - from->at < 16) return false;
  for (int i = 0; i < 16; i++) mask[i / 8] |= (uint64_t)*from->at++ << i % 8 * 8;
  return true;
}

/* A piece of one line has no sectors of others. */
static bool fits(const footprint_piece *piece) {
  if (piece->line >> 54) return false;
  if (piece->span == FOOTPRINT_LINES) return piece->line % FOOTPRINT_LINES == 0;
  uint64_t within = piece->line % FOOTPRINT_LINES, own[2] = {0};
  own[within / 16] = UINT64_C(15) << within % 16 * 4;
  for (int i = 0; i < 2; i++)
    if ((piece->read[i] | piece->written[i]) & ~own[i]) return false;
  return true;
}

static bool take_piece(pack_view *from, footprint_piece *piece) {
  uint64_t line, last;
  if (!pack_take_number(from, &line) || !pack_take_number(from, &last) || from->at == from->end) return false;
  uint8_t how = *from->at++;
  piece->line += unzigzag(line);
  piece->last += last;
  piece->span = how & HOW_SINGLE ? 1 : FOOTPRINT_LINES;
  if (how >= HOW_MAX || !take_mask(from, how, HOW_READ_ALL, piece->read) ||
      !take_mask(from, how, HOW_WRITTEN_ALL, piece->written))
    return false;
  uint64_t *const counts[] = {&piece->loads,      &piece->stores, &piece->atomics,
                              &piece->prefetches, &piece->lines,  &piece->sectors};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    if (!pack_take_number(from, counts[i])) return false;
  return fits(piece);
}

bool frame_footprint_take(pack_view from, uint64_t first, footprint *to, frame_footprint *out) {
  uint64_t pieces;
  footprint_piece at = {0};
  if (!pack_take_number(&from, &out->blocks) || out->blocks > TRACE_FRAME_BLOCKS) return false;
  for (int way = 0; way < COUNT_WAYS; way++)
    if (!pack_take_number(&from, &out->instructions[way])) return false;
  if (!pack_take_number(&from, &pieces)) return false;
  for (uint64_t i = 0; i < pieces; i++) {
    if (!take_piece(&from, &at) || at.last >= out->blocks) return false;
    footprint_piece piece = at;
    piece.last += first;
    if (!footprint_join(to, &piece)) return false;
  }
  return from.at == from.end;
}
