/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of the access stream (trace_private.h), checked at the deep level: at every CHECK_EVERY-th operation,
 * when a launch has finished, when a reader leaves, and when the program is freed.
 *
 * Operations, under the program's mutex:
 *     freed_count <= min over active readers of the operations that they are past <= appended_count
 *                    (equal but for the moment in which a reader leaves)
 *     operations on the list == appended_count - freed_count, numbered without a gap
 *     references of a launch >= producer (until it has finished) + its operation (while it is on the list)
 *                               + readers that want blocks of it or hold some
 *
 * Chunks, under the mutexes of all stripes:
 *     chunks in the buckets of a stripe == its count; each hangs where its hash says, once
 *     pending != 0, and pending is a subset of the readers that there are
 *     a reader that has taken block b is past it; one that has not still stands at b or before it
 *     held chunks of a reader and launch <= taken - released, and released <= taken <= blocks
 *     records of a published stream fill its pages exactly, and the last one is the only EXIT   (trace_chunk_check)
 *     bytes in the file of a chunk == sum of its extents
 *     sum of the published chunks' unspilled pages <= memory_bytes
 *
 * While other threads are at work some of them are between two steps, which is why some of these are inequalities.
 * `quiet` says that none is: then the inequalities are equations, chunks that are being written included. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "trace/trace_private.h"

enum { CHECK_EVERY = 64 };

/* ---- one chunk ---- */

/* Of a page in memory: how many of its records are EXITs. The records fill it exactly. */
static uint32_t page_exits(const trace_page *page) {
  uint32_t at = 0, exits = 0;
  while (at < page->used) {
    uint64_t word = page->words[at];
    FF_ASSERT(trace_word_kind(word) > TRACE_END && trace_word_kind(word) <= TRACE_SPILL);
    exits += trace_word_kind(word) == TRACE_EXIT;
    at += trace_record_words(word);
  }
  FF_ASSERT(at == page->used);
  return exits;
}

/* Of a closed stream; returns the words of it that are in the file. */
static uint64_t check_stream(const trace_warp *stream) {
  uint64_t spilled = 0;
  uint32_t exits = 0;
  bool whole = true; /* all of it is in memory */
  for (const trace_page *page = stream->first; page; page = page->next) {
    FF_ASSERT(page->used != UINT32_MAX && (page->next || page == stream->last));
    if (page->size_class == PAGE_SPILLED) {
      spilled += page->used;
      whole = false;
      continue;
    }
    FF_ASSERT(page->size_class < PAGE_CLASSES && page->used <= PAGE_WORDS(page->size_class));
    exits += page_exits(page);
    if (!page->next) FF_ASSERT(exits == 1 && trace_word_kind(page->words[page->used - 1]) == TRACE_EXIT);
  }
  FF_ASSERT(exits <= 1 && (exits == 1 || !whole));
  return spilled;
}

void trace_chunk_check(const trace_chunk *chunk) {
  uint64_t spilled = 0, extents = 0;
  for (uint32_t w = 0; w < chunk->warps; w++) spilled += check_stream(&chunk->streams[w]);
  for (size_t i = 0; i < chunk->extents.count; i++) extents += chunk->extents.items[i].bytes;
  FF_ASSERT(spilled * 8 == extents);
}

/* A page's words, read back if they are in the file; to be freed. */
static uint64_t *words_of(const trace_chunk *chunk, const trace_page *page) {
  uint64_t *words = ff_alloc((page->used + (size_t)1) * sizeof *words);
  if (page->size_class != PAGE_SPILLED) memcpy(words, page->words, page->used * sizeof *words);
  else if (page->used) spill_read(&chunk->launch->chunks->program->spill, page->offset, words, page->used);
  return words;
}

uint64_t trace_chunk_instructions(const trace_chunk *chunk) {
  uint64_t instructions = 0;
  for (uint32_t w = 0; w < chunk->warps; w++)
    for (const trace_page *page = chunk->streams[w].first; page; page = page->next) {
      uint64_t *words = words_of(chunk, page);
      for (uint32_t at = 0; at < page->used; at += trace_record_words(words[at]))
        if (trace_word_kind(words[at]) == TRACE_ISSUE) instructions += trace_issue_count(words[at]);
      free(words);
    }
  return instructions;
}

static uint64_t memory_of(const trace_chunk *chunk) {
  uint64_t bytes = 0;
  for (uint32_t w = 0; w < chunk->warps; w++)
    for (const trace_page *page = chunk->streams[w].first; page; page = page->next)
      bytes += page->size_class == PAGE_SPILLED ? 0 : PAGE_BYTES(page->size_class);
  return bytes;
}

static uint64_t file_of(const trace_chunk *chunk) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < chunk->extents.count; i++) bytes += spill_extent_bytes(chunk->extents.items[i].bytes);
  return bytes;
}

/* ---- all chunks ---- */

typedef struct stripe_sums {
  uint64_t memory, file; /* bytes */
} stripe_sums;

/* Which readers stand where, by the chunk and by the launch's table; under the stripe's mutex. */
static void check_readers_of(const trace_program *program, const trace_chunk *chunk) {
  struct trace_chunks *chunks = chunk->launch->chunks;
  /* what a simulation that was stopped had taken stays, without its reader */
  uint64_t gone = chunk->pending & ~(program->active | program->leaving);
  FF_ASSERT(chunk->pending && !(gone & ~chunk->taken));
  for (uint64_t pending = chunk->pending; pending; pending &= pending - 1) {
    uint32_t reader = (uint32_t)__builtin_ctzll(pending);
    FF_ASSERT(reader < chunks->progress_count);
    uint64_t taken = chunks->progress[reader].taken;
    if (!(chunk->taken >> reader & 1)) {
      FF_ASSERT(taken <= chunk->block);
    } else {
      FF_ASSERT(taken >= chunk->block); /* counted as soon as the stripe is free again */
      chunks->progress[reader].found++;
    }
  }
}

static void check_stripe(const trace_program *program, chunk_stripe *stripe, bool quiet, stripe_sums *sums) {
  uint32_t count = 0;
  for (uint32_t b = 0; b < stripe->bucket_count; b++)
    for (const trace_chunk *chunk = stripe->buckets[b]; chunk; chunk = chunk->next, count++) {
      FF_ASSERT(*chunk->link == chunk && !chunk->empty && chunk->launch->chunks->program == program);
      FF_ASSERT(chunk_belongs(stripe, b, chunk) && stripe_find(stripe, chunk->launch, chunk->block) == chunk);
      trace_chunk_check(chunk);
      check_readers_of(program, chunk);
      sums->memory += memory_of(chunk);
      sums->file += file_of(chunk);
    }
  FF_ASSERT(count == stripe->count);
  for (const trace_chunk *chunk = stripe->begun; chunk; chunk = chunk->next) {
    FF_ASSERT(*chunk->link == chunk && !chunk->pending && !chunk->taken);
    if (!quiet) continue; /* its pages are its writer's */
    sums->memory += memory_of(chunk);
    sums->file += file_of(chunk);
  }
}

/* Of the lacking readers none counts as waiting for a chunk that is there. */
static void check_waiters(const trace_program *program, chunk_stripe *stripe) {
  for (const trace_reader *r = stripe->waiters; r; r = r->next_waiter)
    FF_ASSERT(!(program->waiting_chunk >> r->index & 1) || !stripe_find(stripe, r->lacks, r->lacks_block));
}

void chunk_waits_check(trace_program *program) {
  for (int i = 0; ff_check_level >= 2 && i < STRIPES; i++) {
    pthread_mutex_lock(&program->stripes[i].mutex);
    check_waiters(program, &program->stripes[i]);
    pthread_mutex_unlock(&program->stripes[i].mutex);
  }
}

/* What the launch's table says of a reader, with the number of chunks in its hands. */
static void check_progress(const trace_launch *launch, bool quiet) {
  struct trace_chunks *chunks = launch->chunks;
  for (uint32_t reader = 0; reader < chunks->progress_count; reader++) {
    uint64_t released = chunks->progress[reader].released, taken = chunks->progress[reader].taken;
    uint64_t found = chunks->progress[reader].found;
    FF_ASSERT(released <= taken && taken <= launch->blocks);
    FF_ASSERT(found <= taken - released + !quiet); /* one may be taken and not counted yet */
    chunks->progress[reader].found = 0;
  }
}

static void check_chunks(trace_program *program, bool quiet) {
  stripe_sums sums = {0};
  for (int i = 0; i < STRIPES; i++) pthread_mutex_lock(&program->stripes[i].mutex);
  for (int i = 0; i < STRIPES; i++) {
    check_stripe(program, &program->stripes[i], quiet, &sums);
    check_waiters(program, &program->stripes[i]);
  }
  for (const trace_launch *launch = program->launches; launch; launch = launch->chunks->next)
    check_progress(launch, quiet);
  uint64_t memory = program->memory_bytes;
  FF_ASSERT(quiet ? sums.memory == memory : sums.memory <= memory);
  spill_check(&program->spill, sums.file, quiet);
  for (int i = STRIPES; i-- > 0;) pthread_mutex_unlock(&program->stripes[i].mutex);
}

/* ---- operations ---- */

static void check_reader(const trace_program *program, const trace_reader *reader) {
  uint64_t past = reader->next - reader->holds;
  FF_ASSERT(program->freed_count <= past && reader->next <= program->appended_count);
  if (reader->segment) FF_ASSERT(past >= reader->segment->base && past < reader->segment->base + OP_SEGMENT);
  FF_ASSERT(!(program->waiting_op >> reader->index & 1) || reader->next == program->appended_count);
}

static void check_readers(const trace_program *program) {
  uint64_t slots = program->reader_count < 64 ? (UINT64_C(1) << program->reader_count) - 1 : UINT64_MAX;
  uint64_t slowest = program->appended_count;
  FF_ASSERT(!((program->active | program->deferred | program->leaving) & ~slots));
  for (uint32_t i = 0; i < program->reader_count; i++) {
    const trace_reader *reader = program->readers[i];
    FF_ASSERT(!reader == !(program->active >> i & 1));
    if (!reader) continue;
    check_reader(program, reader);
    if (reader->next - reader->holds < slowest) slowest = reader->next - reader->holds;
  }
  FF_ASSERT(program->leaving ? program->freed_count <= slowest : program->freed_count == slowest);
}

/* The operations that some reader is not past yet. */
static void check_list(trace_program *program) {
  uint64_t next = program->freed_count;
  const op_segment *last = NULL;
  if (!program->active) { /* operations without a reader are not kept */
    FF_ASSERT(program->leaving || next == program->appended_count);
    return;
  }
  for (const op_segment *s = program->first; s; last = s, s = s->next) {
    FF_ASSERT(next >= s->base && next - s->base <= OP_SEGMENT && (!last || s->base == last->base + OP_SEGMENT));
    for (; next < program->appended_count && next - s->base < OP_SEGMENT; next++) {
      const trace_op *op = &s->ops[next - s->base];
      FF_ASSERT(op->sequence == next);
      if (op->kind == TRACE_OP_LAUNCH) op->launch->chunks->listed = true;
    }
  }
  FF_ASSERT(last == program->last && next == program->appended_count);
}

/* Threads give a reference back after they have given up what it stood for, so there may be more of them. */
static void check_launches(const trace_program *program, bool quiet) {
  for (trace_launch *const *link = &program->launches; *link; link = &(*link)->chunks->next) {
    struct trace_chunks *chunks = (*link)->chunks;
    uint64_t wanting = chunks->wanting;
    FF_ASSERT(chunks->link == link && !(wanting & ~(program->active | program->leaving)));
    uint32_t users = !chunks->finished + chunks->listed;
    chunks->listed = false;
    for (uint32_t reader = 0; reader < chunks->progress_count; reader++) {
      uint64_t released = chunks->progress[reader].released;
      users += wanting >> reader & 1 || released < chunks->progress[reader].taken;
    }
    FF_ASSERT(quiet ? chunks->references == users : chunks->references + 0u >= users);
  }
}

void trace_check(trace_program *program, bool quiet) {
  pthread_mutex_lock(&program->mutex);
  trace_check_locked(program, quiet);
  pthread_mutex_unlock(&program->mutex);
}

void trace_check_locked(trace_program *program, bool quiet) {
  check_readers(program);
  check_list(program);
  check_launches(program, quiet);
  check_chunks(program, quiet);
  pool_check(&program->pool);
}

void trace_check_sometimes(trace_program *program) {
  if (++program->changes % CHECK_EVERY == 0) trace_check_locked(program, false);
}
