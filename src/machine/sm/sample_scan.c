/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of one launch, read without time: does their access stream touch anything that is not resident, what does it
 * count, and which marks does it leave.
 *
 * It is read twice. The first time nothing changes: if a page turns out to be absent, the launch is simulated as if
 * nothing had been read, with the blocks that were taken. The second time, block by block and warp by warp, pages are
 * marked as used and written, and lines come into the L2, which a later launch finds there. */
#include <string.h>

#include "machine/answers.h"
#include "machine/memory/address_map.h"
#include "machine/memory/hierarchy.h"
#include "machine/observe/observer.h"
#include "machine/sm/dispatch.h"
#include "machine/sm/sample.h"

/* Where in the page table the reading is. */
typedef struct place {
  uint64_t window; /* unit of memory that `unit` belongs to; 1: none yet */
  pager_unit *unit;
  sim_counters *counters; /* of the unit's allocation */
  uint64_t marked;        /* the piece of a unit, with its own bit of `used`, that was marked last; */
  bool written;           /* as written, too */
} place;

static pager_unit *unit_at(pager *p, place *at, uint64_t address) {
  uint64_t window = address & ~(p->config.unit_bytes - 1);
  if (window != at->window || at->unit->shared || at->unit->alias_tag) {
    at->window = window;
    at->unit = pager_find(p, address);
  }
  return at->unit;
}

static bool is_write(uint64_t word) {
  trace_access_op op = trace_access_operation(word);
  return op == TRACE_STORE || op == TRACE_ATOMIC;
}

/* ---- the first time ---- */

/* Needs the line a far-fault, or the link? */
static bool is_here(const pager_unit *unit, bool write) {
  return unit->state == PAGER_RESIDENT && !(unit->duplicate && write);
}

static bool read_access(sampler *s, const uint64_t *record, place *at, sample_counts *counts) {
  uint32_t lines = trace_access_lines(*record);
  bool write = is_write(*record);
  if (!lines) return true; /* no lane was active */
  switch (trace_access_operation(*record)) {
  case TRACE_LOAD: counts->load_accesses++; break;
  case TRACE_STORE: counts->store_accesses++; break;
  case TRACE_ATOMIC: counts->atomic_accesses++; break;
  case TRACE_PREFETCH: break;
  }
  counts->accesses++;
  counts->lines += lines;
  for (uint32_t i = 0; i < lines; i++) {
    uint64_t line = record[2 + i];
    counts->sectors += sector_count(trace_line_sectors(line));
    if (!is_here(unit_at(s->pager, at, trace_line_address(line)), write)) return false;
  }
  return true;
}

static uint64_t issued(sampler *s, trace_cursor *cursor, uint64_t word) {
  trace_counts units;
  if (s->front->left_out) word = trace_cursor_issue(s->reader, cursor, word, s->front->left_out, &units);
  uint64_t count = trace_issue_count(word);
  return !count && trace_issue_memory(word) ? 1 : count;
}

static bool read_warp(sampler *s, trace_chunk *chunk, uint32_t warp, place *at, sample_counts *counts) {
  trace_cursor cursor;
  bool here = true;
  trace_cursor_open(s->reader, chunk, warp, &cursor);
  for (trace_kind kind = TRACE_ISSUE; kind != TRACE_EXIT && here;) {
    const uint64_t *record = trace_cursor_next(s->reader, &cursor);
    kind = trace_word_kind(*record);
    if (kind == TRACE_ISSUE) counts->warp_instructions += issued(s, &cursor, *record);
    if (kind == TRACE_ACCESS) here = read_access(s, record, at, counts);
  }
  trace_cursor_close(s->reader, &cursor);
  return here;
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
  memmove(launch->taken.items, launch->taken.items + begun, launch->taken.count * sizeof *launch->taken.items);
  launch->taken_first = k->next_block;
}

bool sample_read(sampler *s, kernel *k, sample_launch *launch, uint64_t blocks, sample_counts *counts) {
  bool here = true;
  if (launch->taken_first != k->next_block) drop_begun(k, launch);
  for (uint64_t b = 0; b < blocks && here; b++) {
    trace_chunk *chunk = take(s, k, launch, k->next_block + b);
    place at = {.window = 1, .marked = UINT64_MAX};
    for (uint32_t w = 0; w < k->warps_per_block && here; w++) here = read_warp(s, chunk, w, &at, counts);
  }
  return here;
}

/* ---- the second time ---- */

static sim_counters *allocation_of(const sampler *s, const pager_unit *unit) {
  return &s->observer->allocations.items[s->pager->allocations.items[unit->allocation].owner]->counters;
}

static void count_access(sampler *s, const uint64_t *record, const pager_unit *unit) {
  sim_counters *c = allocation_of(s, unit);
  trace_access_op op = trace_access_operation(*record);
  c->accesses++;
  c->load_accesses += op == TRACE_LOAD;
  c->store_accesses += op == TRACE_STORE;
  c->atomic_accesses += op == TRACE_ATOMIC;
  if (s->observer->history) record_access(s->observer, unit, trace_line_address(record[2]), s->pager->now);
}

/* Marks the unit, unless the line before was of the same piece and did so. */
static void mark(sampler *s, place *at, pager_unit *unit, uint64_t address, bool write) {
  uint64_t piece = address >> (s->pager->unit_shift - 5);
  if (piece == at->marked && !unit->alias_tag && !unit->shared && (at->written || !write)) return;
  at->marked = piece;
  at->written = write;
  at->counters = allocation_of(s, unit);
  if (write) pager_gpu_write(s->pager, unit, address);
  else pager_gpu_read(s->pager, unit, address);
}

static void touch_access(sampler *s, const uint64_t *record, place *at) {
  trace_access_op op = trace_access_operation(*record);
  uint32_t lines = trace_access_lines(*record);
  bool write = is_write(*record);
  if (lines) count_access(s, record, unit_at(s->pager, at, trace_line_address(record[2])));
  for (uint32_t i = 0; i < lines; i++) {
    uint64_t address = trace_line_address(record[2 + i]);
    uint32_t sectors = trace_line_sectors(record[2 + i]);
    mark(s, at, unit_at(s->pager, at, address), address, write);
    at->counters->lines++;
    at->counters->sectors += sector_count(sectors);
    l2_warm(s->memory, physical_address(s->map, address), sectors, op);
  }
}

static void touch_warp(sampler *s, trace_chunk *chunk, uint32_t warp, place *at) {
  trace_cursor cursor;
  trace_cursor_open(s->reader, chunk, warp, &cursor);
  for (trace_kind kind = TRACE_ISSUE; kind != TRACE_EXIT;) {
    const uint64_t *record = trace_cursor_next(s->reader, &cursor);
    kind = trace_word_kind(*record);
    if (kind == TRACE_ACCESS) touch_access(s, record, at);
  }
  trace_cursor_close(s->reader, &cursor);
}

void sample_touch(sampler *s, kernel *k, sample_launch *launch, uint64_t blocks, ps began, ps ended) {
  ps now = s->pager->now, step = (ended - began) / blocks;
  for (uint64_t b = 0; b < blocks; b++) {
    place at = {.window = 1, .marked = UINT64_MAX};
    trace_chunk *chunk = sample_taken(launch, k->next_block);
    s->pager->now = began + (b + 1) * step;
    for (uint32_t w = 0; w < k->warps_per_block; w++) touch_warp(s, chunk, w, &at);
    trace_reader_release(s->reader, chunk);
    k->next_block++;
    k->done_blocks++;
  }
  s->pager->now = now;
}
