/* SPDX-License-Identifier: Apache-2.0 */
/* A warp's instructions as records: what the interpreter's trace.c makes of PTX, made of SASS.
 *
 * Each instruction is counted in one ISSUE, before its ACCESS; a WAIT stands before the ISSUE of the
 * instruction that needs the value. Registers are known by their first one only: a value of 8 or 16 bytes takes those
 * behind it, too. */
#include <string.h>

#include "import/kernel.h"

enum { PENDING_MAX = 0x3fff };
#define WINDOW_BYTES (UINT64_C(1) << 24) /* of generic addresses for shared memory, and for local memory */

void warp_begin(warp_state *w) {
  memset(w->newest, 0, sizeof w->newest);
  w->loads = w->waited = w->issue = w->memory = w->sfu = w->fp64 = w->barriers = 0;
  w->groups.count = 0;
}

static void put(kernel_words *words, uint64_t word) { FF_PUSH(words, word); }

/* ---- issue ---- */

static void flush(warp_state *w, kernel_words *words) {
  if (w->issue || w->memory)
    put(words, TRACE_ISSUE | (uint64_t)w->issue << 4 | (uint64_t)w->memory << 20 | (uint64_t)w->sfu << 36 |
                   (uint64_t)w->fp64 << 50);
  w->issue = w->memory = w->sfu = w->fp64 = 0;
}

static void count(warp_state *w, const sass_instr *i, kernel_words *words) {
  if (w->issue == PENDING_MAX) flush(w, words);
  w->issue++;
  w->sfu += i->sfu;
  w->fp64 += i->fp64;
}

static void add_passes(warp_state *w, uint32_t passes, kernel_words *words) {
  if (passes < 2) return;
  if (w->memory + passes > PENDING_MAX) flush(w, words);
  w->memory += passes - 1;
}

/* ---- waits ---- */

static void wait_for(warp_state *w, uint32_t number, kernel_words *words) {
  if (!number || number == w->waited) return;
  w->waited = number;
  flush(w, words);
  put(words, TRACE_WAIT | (uint64_t)(w->loads - number) << 32);
}

/* The registers from `first` on, `bytes` of them: RZ is none. */
static void wait_for_registers(warp_state *w, uint32_t first, uint32_t bytes, kernel_words *words) {
  uint32_t end = first + (bytes > 4 ? bytes / 4 : 1);
  for (uint32_t r = first; r < end && r < SASS_ZERO; r++) {
    wait_for(w, w->newest[r], words);
    w->newest[r] = 0;
  }
}

static bool touches_memory(const sass_instr *i) {
  return i->kind >= SASS_LOAD && i->kind <= SASS_LOCAL && i->kind != SASS_GROUP && i->kind != SASS_WAIT_GROUPS;
}

/* The first source of a memory access is its address, of 8 bytes in global memory; LDGSTS has two addresses; the others
 * are values. */
static uint32_t source_bytes(const sass_instr *i, uint32_t source) {
  if (!touches_memory(i)) return i->fp64 ? 8 : 4;
  if (i->kind == SASS_ASYNC_LOAD) return 8;
  if (source) return i->bytes;
  return i->kind == SASS_SHARED || i->kind == SASS_SHARED_ATOMIC || i->kind == SASS_LOCAL ? 4 : 8;
}

/* What it reads, and what it writes while a load may still be on its way there. */
static void wait_for_operands(warp_state *w, const sass_instr *i, kernel_words *words) {
  for (uint32_t s = 0; s < i->sources; s++) wait_for_registers(w, i->source[s], source_bytes(i, s), words);
  for (uint32_t d = 0; d < i->destinations; d++)
    wait_for_registers(w, i->destination[d], touches_memory(i) ? i->bytes : i->fp64 ? 8 : 4, words);
}

/* DEPBAR: all but the newest `left` groups of asynchronous loads are there. */
static void wait_for_groups(warp_state *w, uint64_t left, kernel_words *words) {
  if (left >= w->groups.count) return;
  uint64_t last = w->groups.count - 1 - left;
  wait_for(w, w->groups.items[last], words);
  uint32_t kept = (uint32_t)(w->groups.count - 1 - last);
  memmove(w->groups.items, w->groups.items + last + 1, kept * sizeof w->groups.items[0]);
  w->groups.count = kept;
}

/* ---- accesses ---- */

/* Accesses that are wider than their addresses are aligned to do not exist: then the opcode was read wrongly, and less
 * is sure. */
static uint32_t aligned_bytes(const sass_instr *i, uint32_t mask) {
  uint64_t all = i->bytes > TRACE_LINE_BYTES ? TRACE_LINE_BYTES : i->bytes;
  for (uint32_t m = mask; m; m &= m - 1) all |= i->address[__builtin_ctz(m)];
  return (uint32_t)(all & -all);
}

static void put_access(warp_state *w, const sass_instr *i, uint32_t mask, kernel_words *words, kernel_counts *counts) {
  bool loads = i->kind == SASS_LOAD || i->kind == SASS_ASYNC_LOAD;
  bool returns = i->kind == SASS_ATOMIC && i->destinations && i->destination[0] != SASS_ZERO;
  trace_access_op op = loads ? TRACE_LOAD : i->kind == SASS_STORE ? TRACE_STORE : TRACE_ATOMIC;
  uint32_t bytes = aligned_bytes(i, mask);
  trace_line_set set;
  trace_lines_collect(&set, i->address, 0, bytes, mask);
  flush(w, words);
  put(words, TRACE_ACCESS | (uint64_t)op << 4 | (uint64_t)__builtin_ctz(bytes) << 6 |
                 (uint64_t)(i->flags | (returns ? TRACE_RETURNS : 0)) << 9 | (uint64_t)set.count << 16 |
                 trace_passes_bits(set.passes, set.count) | (uint64_t)i->pc << 32);
  put(words, mask);
  for (uint32_t n = 0; n < set.count; n++) {
    put(words, trace_line(set.line[n] * TRACE_LINE_BYTES, set.lanes[n], set.sectors[n]));
    counts->sectors += trace_sector_count(set.sectors[n]);
  }
  counts->accesses++;
  if (!loads && !returns) return;
  w->loads++;
  if (i->kind == SASS_ASYNC_LOAD) return;
  for (uint32_t d = 0; d < i->destinations; d++)
    for (uint32_t r = i->destination[d]; r < SASS_ZERO && r < i->destination[d] + (i->bytes > 4 ? i->bytes / 4 : 1);
         r++)
      w->newest[r] = w->loads;
}

static bool inside(uint64_t address, uint64_t base) { return base && address - base < WINDOW_BYTES; }

/* Which memory each lane's address is of; those on the chip cost passes, global memory is an ACCESS. */
static void memory_access(warp_state *w, const sass_instr *i, const kernel_header *h, kernel_words *words,
                          kernel_counts *counts) {
  uint32_t global = 0, shared = 0, local = 0, offset[TRACE_LANES] = {0};
  for (uint32_t m = i->mask; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m), bit = 1u << lane;
    uint64_t address = i->address[lane];
    if (i->kind == SASS_SHARED || i->kind == SASS_SHARED_ATOMIC || inside(address, h->shared_base)) shared |= bit;
    else if (i->kind == SASS_LOCAL || inside(address, h->local_base)) local |= bit;
    else global |= bit;
    offset[lane] = (uint32_t)(address % WINDOW_BYTES);
  }
  bool atomic = i->kind == SASS_SHARED_ATOMIC || i->kind == SASS_ATOMIC;
  if (shared)
    add_passes(w,
               atomic ? trace_shared_atomic_passes(offset, i->bytes, shared)
                      : trace_shared_passes(offset, i->bytes, shared),
               words);
  if (local) add_passes(w, trace_local_passes(offset, i->bytes, local), words);
  if (global) put_access(w, i, global, words, counts);
}

/* ---- instructions ---- */

/* How many arrive is known when the whole block was read. */
static void put_barrier(warp_state *w, const sass_instr *i, kernel_words *words) {
  flush(w, words);
  put(words, TRACE_BARRIER | (uint64_t)i->arrive_only << 12);
  w->barriers++;
}

void warp_instruction(warp_state *w, const sass_instr *i, const kernel_header *header, kernel_words *words,
                      kernel_counts *counts) {
  if (i->mask) wait_for_operands(w, i, words);
  if (i->kind == SASS_WAIT_GROUPS) wait_for_groups(w, i->immediate, words);
  count(w, i, words);
  counts->warp_instructions++;
  counts->thread_instructions += (uint32_t)__builtin_popcount(i->mask);
  counts->bulk += i->kind == SASS_BULK;
  if (i->kind == SASS_GROUP) FF_PUSH(&w->groups, w->loads);
  if (!i->mask) return;
  if (i->has_address && touches_memory(i)) memory_access(w, i, header, words, counts);
  if (i->kind == SASS_BARRIER) put_barrier(w, i, words);
}

void warp_end(warp_state *w, kernel_words *words) {
  flush(w, words);
  put(words, TRACE_EXIT);
}
