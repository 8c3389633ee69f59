/* SPDX-License-Identifier: Apache-2.0 */
/* The records that a running warp writes into the access stream (trace/stream.h).
 *
 * Every executed instruction is counted in exactly one ISSUE, or is one of a round of waiting that is left out: the sum
 * over a block's chunk is what its warps have executed otherwise (core_block_check_end). The instruction that makes an
 * ACCESS is counted before it; a WAIT stands before the ISSUE that counts the instruction which reads the value.
 *
 * Loads are numbered per warp from 1. The frame remembers for each register that loads write the number of the newest
 * one that has not been waited for (0: none). As in the hardware's scoreboard, that is per warp, not per lane. */
#include "base/check.h"
#include "exec/launch/spin.h"
#include "exec/memory/access.h"
#include "exec/memory/cache_policy.h"
#include "trace/coalesce.h"
#include "trace/footprint.h"

/* ---- issue ---- */

/* An ISSUE is filled to the last instruction that fits, so that it does not matter in which pieces they are counted. */
void core_trace_issue(core_warp *w, uint32_t end) {
  FF_CHECK(!w->inside || !(w->active & ~w->inside));
  const exec_function *f = w->function;
  uint32_t at = w->segment, n = end - at;
  w->executed += n;
  w->thread_executed += (uint64_t)n * w->active_count;
  w->budget -= (int32_t)n;
  w->segment = end;
  for (uint32_t piece; n; at += piece, n -= piece) {
    uint32_t room = TRACE_ISSUE_MAX - w->trace->issue;
    if (!room) room = TRACE_ISSUE_MAX; /* of a new one */
    piece = n < room ? n : room;
    trace_put_issue(w->trace, piece, 0, f->sfu_before[at + piece] - f->sfu_before[at],
                    f->fp64_before[at + piece] - f->fp64_before[at]);
    trace_count_units(w->trace, &f->units_before[at + piece], &f->units_before[at]);
  }
}

/* How many of what is counted in `before` are among the first n instructions of a loop from `first` to `last`, round
 * after round. */
static uint32_t sum_of(const uint32_t *before, uint32_t first, uint32_t last, uint32_t n) {
  uint32_t round = last + 1 - first;
  return n / round * (before[last + 1] - before[first]) + before[first + n % round] - before[first];
}

void core_trace_rounds(core_warp *w, uint32_t first, uint32_t last, uint64_t rounds) {
  FF_CHECK(w->segment == first && (!w->inside || !(w->active & ~w->inside)));
  const exec_function *f = w->function;
  uint32_t round = last + 1 - first, at = 0; /* `at`: instructions of this round that are counted already */
  uint64_t n = rounds * round;
  w->executed += n;
  w->thread_executed += n * w->active_count;
  w->budget -= (int32_t)n;
  for (uint32_t piece; n; n -= piece, at = (at + piece) % round) {
    uint32_t room = TRACE_ISSUE_MAX - w->trace->issue;
    if (!room) room = TRACE_ISSUE_MAX; /* of a new one */
    piece = n < room ? (uint32_t)n : room;
    trace_put_issue(w->trace, piece, 0,
                    sum_of(f->sfu_before, first, last, at + piece) - sum_of(f->sfu_before, first, last, at),
                    sum_of(f->fp64_before, first, last, at + piece) - sum_of(f->fp64_before, first, last, at));
    uint32_t whole = (at + piece) / round, rest = (at + piece) % round;
    trace_counts end = f->units_before[first + rest], begin = f->units_before[first + at];
    for (int i = 0; i < TRACE_UNIT_WORDS; i++)
      end.word[i] += whole * (f->units_before[last + 1].word[i] - f->units_before[first].word[i]);
    trace_count_units(w->trace, &end, &begin);
  }
}

/* ---- looks ---- */

/* A warp that waits for another thread looks again and again, as often as it takes on the host on this day. One look at
 * each cell is recorded: it stands for the one that finds what the warp waits for. So when a warp comes to a look that
 * it has recorded already, and has recorded nothing but looks since, what it did since its last look is left out of the
 * stream, and this look, too. True: it was left out. */
bool core_trace_looked(core_warp *w, const exec_instr *i, uint64_t address, uint32_t mask) {
  for (uint32_t n = 0; n < w->looks; n++) {
    const core_look *look = &w->look[n];
    if (look->instr != i || look->address != address || look->mask != mask) continue;
    core_trace_issue(w, i->index + 1);
    w->unrecorded += trace_drop_issue(w->trace);
    return true;
  }
  if (w->looks < CORE_LOOKS) w->look[w->looks++] = (core_look){i, address, mask};
  return false;
}

static bool looked_already(core_warp *w, const exec_instr *i, uint64_t address, uint32_t mask) {
  const exec_access *a = i->side;
  if (__builtin_expect(a->awaits, false) && w->trace) return core_trace_looked(w, i, address, mask);
  w->looks = 0;
  return false;
}

/* Of scattered lanes: one number for all their addresses. */
static uint64_t all_addresses(const uint64_t *value, uint64_t add, uint32_t mask) {
  uint64_t all = 0;
  for (; mask; mask &= mask - 1) all = (all ^ (value[__builtin_ctz(mask)] + add)) * UINT64_C(0x9e3779b97f4a7c15);
  return all;
}

/* ---- accesses ---- */

#define PLACES_WORDS (2 + TRACE_LANES) /* of an ACCESS */

static trace_access_op operation(const exec_access *a) {
  return a->op == EXEC_OP_LOAD     ? TRACE_LOAD
         : a->op == EXEC_OP_STORE  ? TRACE_STORE
         : a->op == EXEC_OP_ATOMIC ? TRACE_ATOMIC
                                   : TRACE_PREFETCH;
}

/* The ACCESS of instruction i, which end_access ends: returns where its line words go. Where only places are wanted it
 * goes to `places`, of which footprint_access reads no more than is set here. */
static uint64_t *begin_access(core_warp *w, const exec_instr *i, uint32_t mask, uint32_t lines, uint32_t passes,
                              uint64_t *places) {
  const exec_access *a = i->side;
  if (!w->trace) {
    places[0] = TRACE_ACCESS | (uint64_t)operation(a) << 4 | (uint64_t)lines << 16;
    return places + 2;
  }
  core_trace_issue(w, i->index + 1);
  uint64_t *at = trace_put_banked(w->trace, operation(a), a->log2_total, a->trace_flags,
                                  w->function->pc_base + i->index, mask, lines, passes);
  if (a->op != EXEC_OP_LOAD && !(a->op == EXEC_OP_ATOMIC && a->returns)) return at;
  if (a->trace_flags & TRACE_ASYNC_COPY) return at;
  w->loads++;
  uint32_t *newest = (uint32_t *)(void *)(w->frame->registers + w->function->loads_offset);
  for (uint32_t e = 0; e < a->elements; e++)
    if (a->load[e] != EXEC_NO_OFFSET) newest[a->load[e]] = w->loads;
  return at;
}

/* An access's lines get the addresses that they have in the access stream; mostly they have them already. */
static void make_canonical(const exec_memory *memory, uint64_t *lines, uint32_t count) {
  for (uint32_t n = 0; n < count; n++) {
    uint64_t address = exec_memory_canonical_line(memory, trace_line_address(lines[n]), TRACE_LINE_BYTES);
    lines[n] = trace_line(address, trace_line_lanes(lines[n]), trace_line_sectors(lines[n]));
  }
}

/* By a cache policy, which is of the warp's first active lane, for the access's first line. */
static void add_priority(const core_warp *w, const exec_access *a, uint64_t *words) {
  uint64_t policy = exec_u64(&w->x, a->policy)[__builtin_ctz(w->active)];
  trace_l2_priority priority = cache_policy_priority(policy, trace_line_address(words[2]));
  if (priority == TRACE_L2_PLAIN) return;
  uint8_t flags = cache_policy_flags((uint8_t)trace_access_flags(words[0]), priority);
  words[0] = (words[0] & ~(UINT64_C(0x7f) << 9)) | (uint64_t)flags << 9;
}

/* `lines` are what begin_access returned for instruction i, filled. */
static inline void end_access(const core_warp *w, const exec_instr *i, uint64_t *lines, uint32_t count) {
  const exec_memory *memory = w->launch->memory;
  const exec_access *a = i->side;
  if (__builtin_expect(!exec_memory_arena(memory)->plain, false)) make_canonical(memory, lines, count);
  if (__builtin_expect(a->hinted, false) && w->trace) add_priority(w, a, lines - 2);
  if (!w->trace) footprint_access(w->touched, lines - 2);
}

/* The sectors of [low, high) in the 128-byte line that begins at `line`. */
static uint32_t sectors_of(uint64_t low, uint64_t high, uint64_t line) {
  uint32_t first = low > line ? (uint32_t)(low - line) / TRACE_SECTOR_BYTES : 0;
  uint64_t end = high - line;
  uint32_t last = end >= TRACE_LINE_BYTES ? 3 : (uint32_t)(end - 1) / TRACE_SECTOR_BYTES;
  return (2u << last) - (1u << first);
}

void core_trace_row(core_warp *w, const exec_instr *i, uint64_t address, uint32_t bytes, uint32_t mask) {
  uint32_t first = (uint32_t)__builtin_ctz(mask), run = mask >> first;
  if (run & (run + 1)) { /* holes */
    uint64_t value[EXEC_LANES];
    for (uint32_t lane = 0; lane < EXEC_LANES; lane++)
      value[lane] = address + (uint64_t)lane * bytes - (uint64_t)first * bytes;
    core_trace_gather(w, i, value, 0, bytes, mask);
    return;
  }
  if (looked_already(w, i, address, mask)) return;
  uint64_t high = address + (uint64_t)__builtin_popcount(mask) * bytes,
           line = address & ~(uint64_t)(TRACE_LINE_BYTES - 1);
  uint32_t lines = (uint32_t)((high - 1 - line) / TRACE_LINE_BYTES) + 1;
  uint64_t places[PLACES_WORDS], *at = begin_access(w, i, mask, lines, trace_plain_passes(bytes, mask), places);
  for (uint32_t n = 0; n < lines; n++, line += TRACE_LINE_BYTES) {
    uint64_t low = address > line ? address : line,
             end = high < line + TRACE_LINE_BYTES ? high : line + TRACE_LINE_BYTES;
    uint32_t sectors = sectors_of(address, high, line);
    at[n] = trace_line(line, (uint32_t)((end - low) / bytes), sectors);
    w->sectors += trace_sector_count(sectors);
  }
  end_access(w, i, at, lines);
}

void core_trace_one(core_warp *w, const exec_instr *i, uint64_t address, uint32_t bytes, uint32_t mask) {
  if (looked_already(w, i, address, mask)) return;
  uint64_t line = address & ~(uint64_t)(TRACE_LINE_BYTES - 1);
  uint32_t sectors = sectors_of(address, address + bytes, line);
  uint64_t places[PLACES_WORDS], *at = begin_access(w, i, mask, 1, trace_plain_passes(bytes, mask), places);
  *at = trace_line(line, (uint32_t)__builtin_popcount(mask), sectors);
  w->sectors += trace_sector_count(sectors);
  end_access(w, i, at, 1);
}

void core_trace_gather(core_warp *w, const exec_instr *i, const uint64_t *value, uint64_t add, uint32_t bytes,
                       uint32_t mask) {
  const exec_access *a = i->side;
  trace_line_set set;
  if (looked_already(w, i, a->awaits ? all_addresses(value, add, mask) : 0, mask)) return;
  trace_lines_collect(&set, value, add, bytes, mask);
  uint64_t places[PLACES_WORDS], *at = begin_access(w, i, mask, set.count, set.passes, places);
  for (uint32_t n = 0; n < set.count; n++) {
    at[n] = trace_line(set.line[n] * TRACE_LINE_BYTES, set.lanes[n], set.sectors[n]);
    w->sectors += trace_sector_count(set.sectors[n]);
  }
  end_access(w, i, at, set.count);
}

/* Addresses that nothing is allocated at are left out. */
void core_trace_prefetch(core_warp *w, const exec_instr *i) {
  const uint64_t *value = exec_u64(&w->x, i->src[0]);
  uint32_t mask = 0;
  for (uint32_t m = w->active; m; m &= m - 1) {
    const exec_span *span = exec_memory_span(w->launch->memory, value[__builtin_ctz(m)] + (uint64_t)i->immediate);
    if (span && span->readable) mask |= m & -m;
  }
  if (mask) core_trace_gather(w, i, value, (uint64_t)i->immediate, 1, mask);
}

/* ---- memories on the chip: only the cycles that an access takes beyond its first ---- */

/* Extra cycles come behind the instructions up to the one that costs them, so that a mark has them on its right
 * side. */
void core_trace_passes(core_warp *w, const exec_instr *i, uint32_t more) {
  if (!more) return;
  core_trace_issue(w, i->index + 1);
  trace_put_issue(w->trace, 0, more, 0, 0);
}

static void add_passes(core_warp *w, const exec_instr *i, uint32_t passes) {
  core_trace_passes(w, i, passes ? passes - 1 : 0);
}

void core_trace_shared(core_warp *w, const exec_instr *i, const uint32_t *offset, uint32_t bytes, uint32_t mask) {
  add_passes(w, i, trace_shared_passes(offset, bytes, mask));
}

void core_trace_shared_atomic(core_warp *w, const exec_instr *i, const uint32_t *offset, uint32_t bytes,
                              uint32_t mask) {
  add_passes(w, i, trace_shared_atomic_passes(offset, bytes, mask));
}

void core_trace_local(core_warp *w, const exec_instr *i, const uint32_t *offset, uint32_t bytes, uint32_t mask) {
  add_passes(w, i, trace_local_passes(offset, bytes, mask));
}

/* On a GPU the load is repeated for each further address: it takes the unit again, not only a pass more. */
void core_trace_const(core_warp *w, const exec_instr *i, const uint64_t *value, uint32_t mask) {
  uint32_t passes = 0;
  for (uint32_t left = mask; left; passes++) {
    uint64_t word = value[__builtin_ctz(left)];
    for (uint32_t m = left; m; m &= m - 1)
      if (value[__builtin_ctz(m)] == word) left &= ~(m & -m);
  }
  add_passes(w, i, passes);
  if (passes > 1) w->trace->units.word[TRACE_LSU / 3] += (uint64_t)(passes - 1) << TRACE_LSU % 3 * TRACE_UNIT_BITS;
}

void core_trace_tensor(core_warp *w, const exec_instr *i, uint32_t units) {
  core_trace_issue(w, i->index + 1);
  uint32_t room = (1u << TRACE_UNIT_BITS) - 1 - trace_count(&w->trace->units, TRACE_TENSOR);
  w->trace->units.word[TRACE_TENSOR / 3] += (uint64_t)(units < room ? units : room)
                                            << TRACE_TENSOR % 3 * TRACE_UNIT_BITS;
}

void core_trace_lanes(core_warp *w, const exec_instr *i, const core_target *at) {
  const exec_access *a = i->side;
  uint32_t bytes = (uint32_t)a->bytes * a->elements, global = 0, shared = 0, local = 0, offset[EXEC_LANES] = {0};
  uint64_t address[EXEC_LANES] = {0};
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m), bit = 1u << lane;
    address[lane] = (uint64_t)(uintptr_t)at[lane].host;
    if (at[lane].space == PTX_SPACE_SHARED) {
      shared |= bit;
      offset[lane] = at[lane].offset;
    } else if (at[lane].space == PTX_SPACE_LOCAL) {
      local |= bit;
      offset[lane] = at[lane].offset;
    } else global |= bit;
  }
  if (global && a->space == PTX_SPACE_CONST && w->trace) core_trace_const(w, i, address, global);
  else if (global && a->space != PTX_SPACE_CONST) core_trace_gather(w, i, address, 0, bytes, global);
  if (!w->trace) return;
  if (shared && a->takes_turns) core_trace_shared_atomic(w, i, offset, bytes, shared);
  else if (shared) core_trace_shared(w, i, offset, bytes, shared);
  if (local) core_trace_local(w, i, offset, bytes, local);
}

/* ---- waits ---- */

/* A wait that a compiler would have moved down (decode_waits.c) is recorded in both places. */
static void wait_early(core_warp *w, const exec_instr *i, uint32_t number) {
  if (number == w->waited_early) return;
  w->waited_early = number;
  core_trace_issue(w, i->index);
  trace_put_paired_wait(w->trace, w->loads - number, TRACE_EARLY);
}

/* Where a warp looks until another thread has written, how often it does so is chance: from its first look on nothing
 * is recorded but looks (core_trace_looked), and no spill either. */
static void put_spill(core_warp *w, const exec_instr *i, const exec_spill *spill) {
  if (w->looks) return;
  uint32_t sectors = 0;
  for (uint32_t n = 0; n < 4; n++) sectors |= (uint32_t)((w->active >> 8 * n & 0xff) != 0) << n;
  core_trace_issue(w, i->index);
  bool store = spill->load == EXEC_NO_OFFSET;
  trace_put_spill(w->trace, store, spill->words, sectors, spill->slot, w->function->pc_base + i->index);
  if (store) return;
  uint32_t *newest = (uint32_t *)(void *)(w->frame->registers + w->function->loads_offset);
  newest[spill->load] = ++w->loads;
}

void core_trace_waits(core_warp *w, const exec_instr *i) {
  const uint32_t *list = w->function->waits + i->wait - 1;
  uint32_t *newest = (uint32_t *)(void *)(w->frame->registers + w->function->loads_offset);
  for (uint32_t n = 1; n <= list[0]; n++) {
    if (__builtin_expect(list[n] & EXEC_WAIT_SPILL, false)) {
      put_spill(w, i, &w->function->spills[list[n] & EXEC_WAIT_NUMBER]);
      continue;
    }
    bool paired = list[n] & (EXEC_WAIT_EARLY | EXEC_WAIT_LATE) && trace_writer_has_units(w->trace);
    uint32_t *last = &newest[list[n] & EXEC_WAIT_NUMBER], number = *last;
    if (!number) continue;
    if (paired && list[n] & EXEC_WAIT_EARLY) {
      wait_early(w, i, number);
      continue;
    }
    *last = 0;
    if (number == w->waited) continue; /* another register of the same load */
    w->waited = number;
    core_trace_issue(w, i->index);
    trace_put_paired_wait(w->trace, w->loads - number, paired ? TRACE_LATE : 0);
  }
}
