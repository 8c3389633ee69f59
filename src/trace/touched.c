/* SPDX-License-Identifier: Apache-2.0 */
/* Launches without records: the question (touched.h), and the records that stand for those that were not written. */
#include "trace/touched.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "trace/trace_private.h"

/* ---- the question ---- */

static uint64_t bit_of(const trace_reader *reader) { return UINT64_C(1) << reader->index; }

void trace_reader_answers(trace_reader *reader) {
  pthread_mutex_lock(&reader->program->mutex);
  FF_ASSERT(!reader->program->appended_count);
  reader->program->answering |= bit_of(reader);
  pthread_mutex_unlock(&reader->program->mutex);
}

void trace_reader_answer(trace_reader *reader, trace_launch *launch, bool touched) {
  trace_program *program = reader->program;
  struct trace_chunks *chunks = launch->chunks;
  if (chunks->answered & bit_of(reader)) return;
  if (touched) atomic_fetch_or(&chunks->without_records, bit_of(reader));
  atomic_fetch_or(&chunks->answered, bit_of(reader));
  if (!program->room_waiters) return;
  pthread_mutex_lock(&program->mutex);
  pthread_cond_broadcast(&program->consumed);
  pthread_mutex_unlock(&program->mutex);
}

void trace_launch_may_ask(trace_launch *launch) { launch->chunks->told = TOLD_LATER; }

/* Readers that wait look again; whatever they find, they work from here on. A writer that asks does, too. Under the
 * mutex. */
static void wake(trace_program *program) {
  program->waiting_told = 0;
  pthread_cond_broadcast(&program->told);
  pthread_cond_broadcast(&program->consumed);
}

bool trace_launch_ask(trace_launch *launch) {
  struct trace_chunks *chunks = launch->chunks;
  trace_program *program = chunks->program;
  pthread_mutex_lock(&program->mutex);
  atomic_fetch_add(&chunks->references, 1); /* another thread may finish it */
  uint64_t asked = program->active;
  bool all = asked && !(asked & ~program->answering);
  atomic_fetch_add(&program->room_waiters, 1);
  while (all && !chunks->finished && asked & trace_readers_working(program) & ~chunks->answered)
    pthread_cond_wait(&program->consumed, &program->mutex);
  atomic_fetch_sub(&program->room_waiters, 1);
  all = all && !chunks->finished && !(program->active & ~chunks->without_records);
  chunks->told = all ? TOLD_TOUCHED : TOLD_RECORDS;
  wake(program);
  pthread_mutex_unlock(&program->mutex);
  launch_unreference(launch);
  return all;
}

void trace_launch_touch(trace_launch *launch, footprint *touched, uint64_t instructions) {
  footprint_sort(touched);
  size_t bytes = touched->pieces.count * sizeof(footprint_piece);
  trace_touched *own = ff_realloc(NULL, sizeof *own + bytes);
  *own = (trace_touched){.instructions = instructions, .count = touched->pieces.count};
  if (bytes) memcpy(own->pieces, touched->pieces.items, bytes);
  FF_ASSERT(launch->chunks->told == TOLD_TOUCHED && !launch->chunks->touched);
  launch->chunks->touched = own;
}

/* A launch that is not executed after all has no records, and touches nothing. */
void trace_touched_finish(trace_launch *launch) {
  trace_program *program = launch->chunks->program;
  if (launch->chunks->told == TOLD_RECORDS) return;
  pthread_mutex_lock(&program->mutex);
  if (!launch->chunks->touched) launch->chunks->told = TOLD_RECORDS;
  wake(program);
  pthread_mutex_unlock(&program->mutex);
}

/* Known whether it has records, and what it touches if it has none; under the mutex. */
static bool is_told(const struct trace_chunks *chunks) {
  return chunks->told == TOLD_RECORDS || (chunks->told == TOLD_TOUCHED && chunks->finished);
}

const trace_touched *trace_reader_touched(trace_reader *reader, trace_launch *launch) {
  trace_program *program = reader->program;
  struct trace_chunks *chunks = launch->chunks;
  if (!(chunks->without_records & bit_of(reader))) return NULL;
  pthread_mutex_lock(&program->mutex);
  while (!is_told(chunks)) {
    atomic_fetch_or(&program->waiting_told, bit_of(reader));
    pthread_cond_broadcast(&program->room);
    pthread_cond_broadcast(&program->consumed);
    pthread_cond_wait(&program->told, &program->mutex);
  }
  pthread_mutex_unlock(&program->mutex);
  return chunks->touched;
}

/* ---- records in their place ---- */

/* An access to all lines of the piece that the mask has sectors of; a piece's sectors stand where they lie in its
 * page. */
static void put_sectors(trace_writer *w, const footprint_piece *piece, const uint64_t mask[2], trace_access_op op) {
  uint64_t page = piece->line & ~(uint64_t)(FOOTPRINT_LINES - 1);
  uint32_t lines = 0;
  for (uint32_t half = 0; half < 2; half++) lines += (uint32_t)__builtin_popcountll(footprint_lines(mask[half]));
  if (!lines) return;
  uint64_t *at = trace_put_access(w, op, 2, 0, 0, UINT32_MAX, lines);
  for (uint32_t half = 0; half < 2; half++)
    for (uint64_t left = footprint_lines(mask[half]); left; left &= left - 1) {
      uint32_t bit = (uint32_t)__builtin_ctzll(left), line = 16 * half + bit / 4;
      *at++ = trace_line((page + line) * TRACE_LINE_BYTES, TRACE_LINE_BYTES / 4, (uint32_t)(mask[half] >> bit) & 15);
    }
}

/* ISSUEs without UNITS: they are counted, and take no time where there are such. */
static void put_issues(trace_writer *w, uint64_t instructions) {
  for (uint64_t n; instructions; instructions -= n) {
    n = instructions < TRACE_ISSUE_MAX / 2 ? instructions : TRACE_ISSUE_MAX / 2;
    trace_put_issue(w, (uint32_t)n, 0, 0, 0);
    trace_flush_issue(w);
  }
}

/* Part `part` of `whole` in `parts` equal ones. */
static uint64_t share_of(uint64_t whole, uint64_t part, uint64_t parts) {
  return whole / parts + (part < whole % parts);
}

typedef struct share {
  const footprint_piece *pieces;
  uint64_t count, instructions;
} share;

/* The block has the pieces that it was the last to touch. */
static share share_of_block(const trace_launch *launch, uint64_t block) {
  const trace_touched *t = launch->chunks->touched;
  uint64_t low = 0, high = t->count, end;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (t->pieces[middle].last < block) low = middle + 1;
    else high = middle;
  }
  for (end = low; end < t->count && t->pieces[end].last == block;) end++;
  return (share){t->pieces + low, end - low, share_of(t->instructions, block, launch->blocks)};
}

/* Warp w of the block has pieces w, w + warps, ..., each behind its share of the warp's instructions; what it loads
 * must have arrived before it ends. */
static void put_warp(trace_writer *w, const share *block, uint32_t warps) {
  uint64_t instructions = share_of(block->instructions, w->warp, warps);
  uint64_t pieces = share_of(block->count, w->warp, warps);
  bool loads = false;
  for (uint64_t n = 0; n < pieces; n++) {
    const footprint_piece *piece = &block->pieces[w->warp + n * warps];
    put_issues(w, share_of(instructions, n, pieces + 1));
    put_sectors(w, piece, piece->read, TRACE_LOAD);
    put_sectors(w, piece, piece->written, TRACE_STORE);
    loads |= (piece->read[0] | piece->read[1]) != 0;
  }
  if (loads) trace_put_wait(w, 0);
  put_issues(w, share_of(instructions, pieces, pieces + 1));
  trace_flush_issue(w);
  *trace_room(w, 1) = TRACE_EXIT;
}

/* Its pages are no pool's, and have room for all that put_warp writes. */
trace_chunk *trace_touched_chunk(trace_reader *reader, trace_launch *launch, uint64_t block) {
  share own = share_of_block(launch, block);
  uint32_t warps = launch->warps_per_block;
  trace_chunk *chunk = ff_alloc(sizeof *chunk + warps * sizeof chunk->streams[0]);
  chunk->launch = launch;
  chunk->block = block;
  chunk->warps = warps;
  chunk->made = true;
  for (uint32_t w = 0; w < warps; w++) {
    uint64_t pieces = own.count / warps + 1, issues = own.instructions / warps / (TRACE_ISSUE_MAX / 2) + 2;
    uint64_t words = pieces * (1 + 2 * (2 + FOOTPRINT_LINES)) + pieces + issues + 3;
    trace_page *page = ff_alloc(sizeof *page + words * sizeof page->words[0]);
    trace_writer writer = {.chunk = chunk, .warp = w, .at = page->words, .end = page->words + words};
    put_warp(&writer, &own, warps);
    FF_ASSERT(writer.at <= writer.end);
    page->used = (uint32_t)(writer.at - page->words);
    chunk->streams[w].first = chunk->streams[w].last = page;
  }
  chunk->next = reader->made;
  chunk->link = &reader->made;
  if (chunk->next) chunk->next->link = &chunk->next;
  reader->made = chunk;
  return chunk;
}

void trace_touched_chunk_free(trace_chunk *chunk) {
  *chunk->link = chunk->next;
  if (chunk->next) chunk->next->link = chunk->link;
  for (uint32_t w = 0; w < chunk->warps; w++) free(chunk->streams[w].first);
  free(chunk);
}
