/* SPDX-License-Identifier: Apache-2.0 */
/* memcheck: every access of a kernel before it happens.
 *
 * An access that is not good is reported and does not happen: a load gives 0, a store changes nothing, and the kernel
 * goes on. What a kernel reads of memory from cudaMalloc (if asked for: of shared and local memory, check_block.h)
 * before anything was written there is reported, element by element: one of which a part was written is taken for
 * padding and let through. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_block.h"
#include "check/check_private.h"
#include "exec/memory/heap.h"
#include "exec/memory/space.h"

static const char *verb(const exec_access *a) {
  return a->op == EXEC_OP_LOAD ? "read" : a->op == EXEC_OP_STORE ? "write" : "atomic";
}

/* ---- accesses that are not good ---- */

static void explain_place(check *c, const exec_watched *a, const exec_reach *at, ff_text *out, ff_text *tail) {
  const core_warp *w = a->warp;
  const char *fault = at->fault == EXEC_PLACE_MISALIGNED ? "misaligned" : "out of bounds";
  ff_text_add(out, "Access at 0x%" PRIx64 " is %s\n", at->address, fault);
  if (at->fault == EXEC_PLACE_MISALIGNED) ff_text_add(out, "and must be a multiple of %u\n", a->bytes);
  if (at->space == PTX_SPACE_SHARED) ff_text_add(out, "and the block has %u bytes of shared memory\n", w->shared_bytes);
  else if (at->space == PTX_SPACE_LOCAL)
    ff_text_add(out, "and the thread has %u bytes of local memory in use\n", w->frame->stack);
  else check_add_neighbour(c, at->address, a->bytes, out, tail);
}

static void append(char **text, ff_text *more) {
  if (!more->length) return;
  ff_text whole = {0};
  ff_text_add(&whole, "%s%s", *text ? *text : "", more->chars);
  free(*text);
  free(more->chars);
  *text = whole.chars;
}

static void report_access(check *c, const exec_watched *a, uint32_t lane, check_kind kind, const char *what,
                          const char *details) {
  const exec_reach *at = &a->at[lane];
  /* What it hits tells findings of one instruction apart: memory that was freed, another allocation's end or start,
   * nothing. */
  const exec_allocation *hit = at->space == PTX_SPACE_GLOBAL ? exec_memory_owner(c->memory, at->address) : NULL;
  uint64_t detail =
      at->space | (uint64_t)(a->access->op == EXEC_OP_STORE) << 8 | (uint64_t)(hit ? hit->id + 1 : 0) << 16;
  pthread_mutex_lock(&c->lock);
  check_finding *f = check_found_at(c, kind, CHECK_ERROR, a->warp, a->instr, lane, detail, NULL);
  if (f) {
    ff_text title = {0}, text = {0}, tail = {0};
    ff_text_add(&title, "%s __%s__ %s of size %u byte%s", what, check_space_text(at->space), verb(a->access), a->bytes,
                a->bytes == 1 ? "" : "s");
    f->title = title.chars;
    f->address = at->address;
    f->bytes = a->bytes;
    f->space = check_space_text(at->space);
    if (details) ff_text_add(&text, "%s", details);
    else explain_place(c, a, at, &text, &tail);
    f->details = text.chars;
    append(&f->tail, &tail);
  }
  pthread_mutex_unlock(&c->lock);
}

static void report_bad(check *c, const exec_watched *a, uint32_t lane) {
  static const check_kind kinds[] = {[EXEC_PLACE_OUTSIDE] = CHECK_OUTSIDE,
                                     [EXEC_PLACE_MISALIGNED] = CHECK_MISALIGNED,
                                     [EXEC_PLACE_NO_ATOMIC] = CHECK_NO_ATOMIC};
  exec_place_fault fault = a->at[lane].fault;
  report_access(c, a, lane, kinds[fault], "Invalid",
                fault == EXEC_PLACE_NO_ATOMIC ? "Local memory has no atomic operations\n" : NULL);
}

/* ---- the heap of device malloc ---- */

static bool in_heap(const exec_span *span) {
  return span && span->info.exempt && !strcmp(span->info.name, "device heap");
}

static void report_heap(check *c, const exec_watched *a, uint32_t lane) {
  uint64_t at = a->at[lane].address, bytes, block = exec_heap_nearest(*exec_memory_heap(c->memory), at, &bytes);
  ff_text details = {0};
  ff_text_add(&details,
              "Access at 0x%" PRIx64
              " is out of bounds\nand is in the heap of device malloc, but not in a live block of it\n",
              at);
  if (block) {
    uint64_t end = block + bytes, distance = at < block ? block - at : at < end ? a->bytes - (end - at) : at - end + 1;
    const char *does = at >= block && at < end ? "goes" : "is", *where = at < block ? "before"
                                                                         : at < end ? "past the end of"
                                                                                    : "after";
    ff_text_add(&details, "and %s %" PRIu64 " byte%s %s the nearest block at 0x%" PRIx64 " of size %" PRIu64 " bytes\n",
                does, distance, distance == 1 ? "" : "s", where, block, bytes);
  }
  report_access(c, a, lane, CHECK_OUTSIDE, "Invalid", details.chars);
  free(details.chars);
}

static void heap_malloc(exec_checker *checker, core_warp *w, uint64_t address, uint64_t bytes) {
  check *c = check_of(checker);
  pthread_mutex_lock(&c->lock);
  check_shadow_set(&c->heap, address, bytes);
  c->heap_blocks++;
  pthread_mutex_unlock(&c->lock);
}

static void heap_freed(exec_checker *checker, core_warp *w, uint64_t address, uint64_t bytes) {
  check *c = check_of(checker);
  pthread_mutex_lock(&c->lock);
  check_shadow_clear(&c->heap, address, bytes);
  c->heap_blocks--;
  pthread_mutex_unlock(&c->lock);
}

static bool heap_misuse(exec_checker *checker, core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address) {
  check *c = check_of(checker);
  if (c->muted) return false;
  pthread_mutex_lock(&c->lock);
  check_finding *f = check_found_at(c, CHECK_HEAP_FREE, CHECK_ERROR, w, i, lane, 0, NULL);
  if (f) {
    ff_text text = {0};
    ff_text_add(
        &text, "0x%" PRIx64 " is not the start of a live block of device malloc: it was freed before, or never given\n",
        address);
    f->title = ff_strdup("Malloc/Free Error encountered: Invalid pointer to free");
    f->details = text.chars;
  }
  pthread_mutex_unlock(&c->lock);
  return true;
}

void check_heap_leaks(check *c) {
  if (!c->heap_blocks || !c->options.leaks) return;
  bool fresh;
  check_finding *f =
      check_report_find(c->report, CHECK_LEAK, CHECK_ERROR, check_key(CHECK_LEAK, NULL, 0, NULL, 1), &fresh);
  if (!fresh) return;
  ff_text title = {0};
  ff_text_add(&title, "Leaked %" PRIu64 " block%s of device malloc", c->heap_blocks, c->heap_blocks == 1 ? "" : "s");
  f->title = title.chars;
}

/* ---- reads of bytes without a value ---- */

static bool of_block(const exec_reach *at) { return at->space == PTX_SPACE_SHARED || at->space == PTX_SPACE_LOCAL; }

static bool written(const check *c, const exec_watched *a, uint32_t lane, uint32_t element) {
  const exec_reach *at = &a->at[lane];
  uint32_t bytes = a->access->bytes;
  uint64_t from = at->address + (uint64_t)element * bytes;
  return of_block(at) ? check_block_any(a->warp->block->watched, a->warp, at->space, lane, from, bytes)
                      : check_shadow_any(&c->written, from, bytes);
}

static void mark(check *c, const exec_watched *a, uint32_t lane) {
  const exec_reach *at = &a->at[lane];
  if (of_block(at)) check_block_stored(a->warp->block->watched, a, lane);
  else check_shadow_set(&c->written, at->address, a->bytes);
}

static void report_unwritten(check *c, const exec_watched *a, uint32_t lane, uint32_t element) {
  const exec_reach *at = &a->at[lane];
  ff_text text = {0}, tail = {0};
  ff_text_add(&text, "Access at 0x%" PRIx64 " reads what nothing has written\n",
              at->address + (uint64_t)element * a->access->bytes);
  if (at->space == PTX_SPACE_GLOBAL) check_add_neighbour(c, at->address, a->bytes, &text, &tail);
  else if (at->space == PTX_SPACE_SHARED) ff_text_add(&text, "and shared memory has no values when its block begins\n");
  else ff_text_add(&text, "and local memory has no values when its function begins\n");
  report_access(c, a, lane, CHECK_UNINITIALIZED, "Uninitialized", text.chars);
  free(text.chars);
  free(tail.chars);
}

static void check_written(check *c, const exec_watched *a, uint32_t lane) {
  check_block *block = a->at[lane].space == PTX_SPACE_LOCAL ? a->warp->block->watched : NULL;
  for (uint32_t e = 0; e < a->bytes / a->access->bytes; e++) {
    if (written(c, a, lane, e) || (block && check_block_carry(block, a, lane, e))) continue;
    if (!c->muted) report_unwritten(c, a, lane, e);
    mark(c, a, lane); /* each byte once */
    return;
  }
}

/* Is it known of these bytes whether they were written? */
static bool knows(check *c, const exec_watched *a, const exec_reach *at) {
  if (of_block(at)) return a->warp->block->watched != NULL;
  if (at->space != PTX_SPACE_GLOBAL || !at->span || c->options.initcheck == CHECK_INIT_NONE) return false;
  const check_allocation *allocation = check_allocation_of(c, &at->span->info);
  return allocation && allocation->tracked;
}

static void follow_values(check *c, const exec_watched *a, uint32_t lane) {
  const exec_access *access = a->access;
  if (a->warp->block->watched && access->op == EXEC_OP_LOAD) check_block_loaded(a->warp->block->watched, a, lane);
  if (!knows(c, a, &a->at[lane])) return;
  bool reads = access->op == EXEC_OP_LOAD || (access->op == EXEC_OP_ATOMIC && !a->synchronises);
  if (reads) check_written(c, a, lane);
  if (access->op != EXEC_OP_LOAD) mark(c, a, lane);
}

static uint32_t access_memory(exec_checker *checker, const exec_watched *a) {
  check *c = check_of(checker);
  uint32_t good = 0;
  for (uint32_t m = a->lanes; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    const exec_reach *at = &a->at[lane];
    if (at->fault != EXEC_PLACE_GOOD) {
      if (c->muted) good |= 1u << lane; /* faults as without a check */
      else report_bad(c, a, lane);
      continue;
    }
    if (at->span && at->span->info.exempt && in_heap(at->span) && !check_shadow_all(&c->heap, at->address, a->bytes) &&
        !c->muted) {
      report_heap(c, a, lane);
      continue;
    }
    follow_values(c, a, lane);
    good |= 1u << lane;
  }
  return good;
}

/* ---- blocks ---- */

static void block_begin(exec_checker *checker, core_block *block) {
  block->watched = check_of(checker)->options.initcheck == CHECK_INIT_ALL ? check_block_create(block) : NULL;
}

static void block_end(exec_checker *checker, core_block *block) {
  check_block_free(block->watched);
  block->watched = NULL;
}

static void entered(exec_checker *checker, core_warp *w, const exec_frame *frame) {
  if (w->block->watched) check_block_enter(w->block->watched, w, frame);
}

static void wrote(exec_checker *checker, core_warp *w, uint32_t lane, ptx_space space, uint64_t address,
                  uint32_t bytes) {
  if (space == PTX_SPACE_GLOBAL) check_shadow_set(&check_of(checker)->written, address, bytes);
  else if (w->block->watched) check_block_set(w->block->watched, w, space, lane, address, bytes);
}

void check_memcheck_hooks(exec_checker *hooks) {
  hooks->access = access_memory;
  hooks->block_begin = block_begin;
  hooks->block_end = block_end;
  hooks->entered = entered;
  hooks->wrote = wrote;
  hooks->launch_end = check_launch_end;
  hooks->heap_malloc = heap_malloc;
  hooks->heap_freed = heap_freed;
  hooks->heap_misuse = heap_misuse;
}
