/* SPDX-License-Identifier: Apache-2.0 */
/* How regular the accesses of offload candidates are (Hsieh et al., ISCA 2016, section 3.2.1): has an access the same distance from the block's first
 * one in every instance?
 *
 *   instance    first access F; each later one of another instruction is compared with the latest of F's instruction, once for each of these;
 *               where there is no other instruction, F's with its own one before
 *   fixed       the distance was the same at all comparisons within each launch, over all warps
 *
 * An access's address is that of its first line's first sector in use. What always holds: bounded memory; a candidate in which nothing can be
 * compared does not count. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "study/repro_private.h"
#include "trace/file.h"

enum { MOST_CANDIDATES = 1024, MOST_ACCESSES = 256 }; /* what is beyond is not looked at */

typedef struct access { /* an instruction of a candidate */
  uint32_t pc;
  uint64_t launch;       /* that `distance` is of; 0: none */
  int64_t distance;
  bool varies;
  uint64_t compared_with; /* how many accesses of F's instruction there had been */
} access;

typedef struct candidate {
  char *kernel;
  uint32_t pc;
  FF_VEC(access) others;
  access own;            /* F's instruction, from one to the next */
} candidate;

typedef struct walk {
  FF_VEC(candidate) candidates;
  uint64_t launch;       /* number of the current one, from 1 */
  candidate *in;         /* of the open instance; NULL: none */
  uint32_t first_pc;
  uint64_t first_count, first_address; /* of F's instruction so far; the latest */
} walk;

static candidate *candidate_of(walk *w, const char *kernel, uint32_t pc) {
  for (size_t i = 0; i < w->candidates.count; i++)
    if (w->candidates.items[i].pc == pc && !strcmp(w->candidates.items[i].kernel, kernel)) return &w->candidates.items[i];
  if (w->candidates.count == MOST_CANDIDATES) return NULL;
  candidate fresh = {.kernel = ff_strdup(kernel), .pc = pc};
  FF_PUSH(&w->candidates, fresh);
  return &w->candidates.items[w->candidates.count - 1];
}

static access *access_of(candidate *c, uint32_t pc) {
  for (size_t i = 0; i < c->others.count; i++)
    if (c->others.items[i].pc == pc) return &c->others.items[i];
  if (c->others.count == MOST_ACCESSES) return NULL;
  access fresh = {.pc = pc};
  FF_PUSH(&c->others, fresh);
  return &c->others.items[c->others.count - 1];
}

static void compare(const walk *w, access *a, int64_t distance) {
  if (a->launch == w->launch && a->distance != distance) a->varies = true;
  a->launch = w->launch;
  a->distance = distance;
}

static void take_access(walk *w, const uint64_t *record) {
  uint32_t pc = trace_access_pc(record[0]);
  if (!trace_access_lines(record[0])) return;
  uint64_t address = trace_line_address(record[2]) + (uint64_t)__builtin_ctz(trace_line_sectors(record[2]) | 16) * TRACE_SECTOR_BYTES;
  if (!w->first_count || pc == w->first_pc) {
    if (w->first_count) compare(w, &w->in->own, (int64_t)(address - w->first_address));
    w->first_pc = pc;
    w->first_count++;
    w->first_address = address;
    return;
  }
  access *a = access_of(w->in, pc);
  if (!a || a->compared_with == w->first_count) return;
  a->compared_with = w->first_count;
  compare(w, a, (int64_t)(address - w->first_address));
}

static void enter(walk *w, const trace_item *item) {
  w->in = candidate_of(w, item->launch->kernel, trace_mark_pc(item->record[0]));
  w->first_count = 0;
  for (size_t i = 0; w->in && i < w->in->others.count; i++) w->in->others.items[i].compared_with = 0;
}

static void take_item(walk *w, const trace_item *item) {
  if (item->kind == TRACE_ITEM_OPERATION) {
    w->launch += item->op->kind == TRACE_OP_LAUNCH;
    w->in = NULL;
    return;
  }
  switch (trace_word_kind(item->record[0])) {
  case TRACE_ENTER: enter(w, item); return;
  case TRACE_LEAVE: case TRACE_EXIT: w->in = NULL; return;
  case TRACE_ACCESS: if (w->in) take_access(w, item->record); return;
  default: return;
  }
}

static void count(const candidate *c, repro_offsets *out) {
  uint64_t looked_at = 0, fixed = 0;
  for (size_t i = 0; i < c->others.count; i++) {
    looked_at++;
    fixed += !c->others.items[i].varies;
  }
  if (!looked_at && c->own.launch) looked_at = 1, fixed = !c->own.varies;
  out->candidates += looked_at > 0;
  out->some_fixed += fixed > 0;
  out->all_fixed += looked_at && fixed == looked_at;
}

ff_status repro_offsets_run(const char *recording, repro_offsets *out, ff_error *error) {
  walk w = {0};
  trace_file *file;
  trace_item item = {0};
  *out = (repro_offsets){0};
  ff_status status = trace_file_open(recording, &file, error);
  if (status) return status;
  do {
    status = trace_file_next(file, &item, error);
    if (!status && item.kind != TRACE_ITEM_END) take_item(&w, &item);
  } while (!status && item.kind != TRACE_ITEM_END);
  trace_file_close(file);
  for (size_t i = 0; i < w.candidates.count; i++) {
    if (!status) count(&w.candidates.items[i], out);
    free(w.candidates.items[i].kernel);
    free(w.candidates.items[i].others.items);
  }
  free(w.candidates.items);
  return status;
}
