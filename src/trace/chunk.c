/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks: the record streams of one block's warps, from the first word written to the last reader's release.
 *
 *                begin                publish                  last release
 *   (nothing) ----------> begun ------------------> published --------------> (freed)
 *                           |  no readers: freed at once        trace_reader_skip drops a reader's claim as well
 *                           `-- trace_launch_finish: freed
 *
 * One thread writes a chunk. Begun and published chunks hang in stripes (by hash of launch and block), each with its
 * own lock, so that threads contend once per chunk, not per record. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "trace/trace_private.h"

/* ---- stripes ---- */

static uint64_t chunk_hash(const trace_launch *launch, uint64_t block) {
  uint64_t h = (block + launch->chunks->serial * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);
  return h ^ h >> 32;
}

static chunk_stripe *stripe_of(const trace_launch *launch, uint64_t block) {
  return &launch->chunks->program->stripes[chunk_hash(launch, block) % STRIPES];
}

void chunk_stripes_init(trace_program *program) {
  for (int i = 0; i < STRIPES; i++) {
    pthread_mutex_init(&program->stripes[i].mutex, NULL);
    pthread_cond_init(&program->stripes[i].published, NULL);
  }
}

static trace_chunk **bucket_of(chunk_stripe *stripe, const trace_launch *launch, uint64_t block) {
  return &stripe->buckets[chunk_hash(launch, block) / STRIPES & (stripe->bucket_count - 1)];
}

static void list_insert(trace_chunk **list, trace_chunk *chunk) {
  chunk->next = *list;
  chunk->link = list;
  if (chunk->next) chunk->next->link = &chunk->next;
  *list = chunk;
}

static void list_remove(trace_chunk *chunk) {
  *chunk->link = chunk->next;
  if (chunk->next) chunk->next->link = chunk->link;
}

static void stripe_grow(chunk_stripe *stripe) {
  uint32_t old_count = stripe->bucket_count;
  trace_chunk **old = stripe->buckets;
  stripe->bucket_count = old_count ? old_count * 2 : 16;
  stripe->buckets = ff_alloc(stripe->bucket_count * sizeof *stripe->buckets);
  for (uint32_t i = 0; i < old_count; i++)
    while (old[i]) {
      trace_chunk *chunk = old[i];
      list_remove(chunk);
      list_insert(bucket_of(stripe, chunk->launch, chunk->block), chunk);
    }
  free(old);
}

trace_chunk *stripe_find(chunk_stripe *stripe, const trace_launch *launch, uint64_t block) {
  if (!stripe->bucket_count) return NULL;
  trace_chunk *chunk = *bucket_of(stripe, launch, block);
  while (chunk && (chunk->launch != launch || chunk->block != block)) chunk = chunk->next;
  return chunk;
}

bool chunk_belongs(chunk_stripe *stripe, uint32_t bucket, const trace_chunk *chunk) {
  return stripe_of(chunk->launch, chunk->block) == stripe &&
         bucket_of(stripe, chunk->launch, chunk->block) == &stripe->buckets[bucket];
}

/* ---- memory of a chunk ---- */

static void memory_add(trace_program *program, uint64_t bytes) {
  uint64_t now = atomic_fetch_add_explicit(&program->memory_bytes, bytes, memory_order_relaxed) + bytes;
  uint64_t peak = program->peak_bytes;
  while (now > peak && !atomic_compare_exchange_weak(&program->peak_bytes, &peak, now)) {}
}

/* Frees the chunk. The caller has unlinked it and holds no lock. */
static void chunk_free(trace_program *program, trace_chunk *chunk) {
  uint64_t bytes = 0;
  trace_page *pages = NULL;
  for (uint32_t w = 0; w < chunk->warps; w++)
    for (trace_page *page = chunk->streams[w].first; page;) {
      trace_page *next = page->next;
      if (page->size_class == PAGE_SPILLED) {
        free(page);
      } else {
        bytes += PAGE_BYTES(page->size_class);
        page->next = pages;
        pages = page;
      }
      page = next;
    }
  pool_give(&program->pool, pages);
  for (size_t i = 0; i < chunk->extents.count; i++) spill_release(&program->spill, &chunk->extents.items[i]);
  free(chunk->extents.items);
  free(chunk);
  atomic_fetch_sub_explicit(&program->memory_bytes, bytes, memory_order_relaxed);
  program_signal_room(program, false);
}

void chunk_stripes_free(trace_program *program) {
  for (int i = 0; i < STRIPES; i++) {
    chunk_stripe *stripe = &program->stripes[i];
    for (uint32_t b = 0; b <= stripe->bucket_count; b++) {
      trace_chunk **list = b < stripe->bucket_count ? &stripe->buckets[b] : &stripe->begun;
      while (*list) {
        trace_chunk *chunk = *list;
        list_remove(chunk);
        chunk_free(program, chunk);
      }
    }
    free(stripe->buckets);
    pthread_mutex_destroy(&stripe->mutex);
    pthread_cond_destroy(&stripe->published);
  }
}

/* ---- writing ---- */

trace_chunk *trace_chunk_begin(trace_launch *launch, uint64_t block) {
  trace_program *program = launch->chunks->program;
  uint32_t warps = launch->warps_per_block;
  trace_chunk *chunk = ff_alloc(sizeof *chunk + warps * sizeof chunk->streams[0]);
  chunk->launch = launch;
  chunk->block = block;
  chunk->warps = warps;
  trace_page *pages = pool_take(&program->pool, 0, warps);
  memory_add(program, warps * PAGE_BYTES(0));
  for (uint32_t w = 0; w < warps; w++) {
    trace_page *page = pages;
    pages = page->next;
    page->next = NULL;
    page->used = 1;
    page->words[0] = TRACE_EXIT; /* what a warp without a writer did */
    chunk->streams[w] = (trace_warp){.first = page, .last = page};
  }
  chunk_stripe *stripe = stripe_of(launch, block);
  pthread_mutex_lock(&stripe->mutex);
  list_insert(&stripe->begun, chunk);
  pthread_mutex_unlock(&stripe->mutex);
  launch->chunks->begun++;
  return chunk;
}

void trace_chunk_writer(trace_chunk *chunk, uint32_t warp, trace_writer *writer) {
  FF_ASSERT(warp < chunk->warps);
  trace_warp *stream = &chunk->streams[warp];
  *writer = (trace_writer){.chunk = chunk, .warp = warp, .at = stream->first->words};
  writer->end = writer->at + PAGE_WORDS(stream->first->size_class) - 1; /* room for the terminator */
  stream->first->used = UINT32_MAX;                                     /* open */
}

/* Moves the words of the chunk's closed pages in memory to the file; pages become headers. */
static void chunk_spill(trace_program *program, trace_chunk *chunk) {
  FF_VEC(spill_run) runs = {0};
  for (uint32_t w = 0; w < chunk->warps; w++)
    for (trace_page *page = chunk->streams[w].first; page; page = page->next)
      if (page->size_class != PAGE_SPILLED) FF_PUSH(&runs, ((spill_run){page->words, page->used}));
  spill_extent extent;
  if (spill_write(&program->spill, runs.items, (uint32_t)runs.count, &extent)) {
    uint64_t offset = extent.offset, bytes = 0;
    trace_page *pages = NULL;
    for (uint32_t w = 0; w < chunk->warps; w++)
      for (trace_page **link = &chunk->streams[w].first; *link; link = &(*link)->next) {
        trace_page *page = *link;
        if (page->size_class == PAGE_SPILLED) continue;
        trace_page *header = ff_alloc(sizeof *header);
        *header = (trace_page){page->next, offset, page->used, PAGE_SPILLED};
        offset += page->used * UINT64_C(8);
        bytes += PAGE_BYTES(page->size_class);
        *link = header;
        if (chunk->streams[w].last == page) chunk->streams[w].last = header;
        page->next = pages;
        pages = page;
      }
    pool_give(&program->pool, pages);
    atomic_fetch_sub_explicit(&program->memory_bytes, bytes, memory_order_relaxed);
    FF_PUSH(&chunk->extents, extent);
  }
  free(runs.items);
}

/* Moves one full page to the file while its block still runs. */
static void page_spill(trace_program *program, trace_chunk *chunk, trace_warp *stream) {
  trace_page *page = stream->last;
  spill_run run = {page->words, page->used};
  spill_extent extent;
  if (!spill_write(&program->spill, &run, 1, &extent)) return;
  FF_PUSH(&chunk->extents, extent);
  trace_page *header = ff_alloc(sizeof *header);
  *header = (trace_page){NULL, extent.offset, page->used, PAGE_SPILLED};
  *(stream->before ? &stream->before->next : &stream->first) = stream->last = header;
  atomic_fetch_sub_explicit(&program->memory_bytes, PAGE_BYTES(page->size_class), memory_order_relaxed);
  page->next = NULL;
  pool_give(&program->pool, page);
}

void trace_writer_grow(trace_writer *writer, uint32_t words) {
  trace_chunk *chunk = writer->chunk;
  trace_program *program = chunk->launch->chunks->program;
  trace_warp *stream = &chunk->streams[writer->warp];
  trace_page *page = stream->last;
  uint32_t size_class = page->size_class + 1 < PAGE_CLASSES ? page->size_class + 1 : PAGE_CLASSES - 1;
  *writer->at = TRACE_END;
  page->used = (uint32_t)(writer->at - page->words);
  page->next = NULL;
  if (size_class >= 2 && program->memory_bytes > program->budget) page_spill(program, chunk, stream);
  while (words + 1 > PAGE_WORDS(size_class)) {
    FF_ASSERT(size_class + 1 < PAGE_CLASSES);
    size_class++;
  }
  page = pool_take(&program->pool, size_class, 1);
  memory_add(program, PAGE_BYTES(size_class));
  page->next = NULL;
  page->used = UINT32_MAX;
  stream->before = stream->last;
  stream->before->next = stream->last = page;
  writer->at = page->words;
  writer->end = page->words + PAGE_WORDS(size_class) - 1;
}

static uint64_t least_of(uint64_t three, uint64_t *left) { /* of three counts, up to 63 of each */
  uint64_t taken = 0, bits = 0;
  for (int i = 0; i < 3; i++) {
    uint64_t count = three >> i * TRACE_UNIT_BITS & ((1u << TRACE_UNIT_BITS) - 1), part = count < 63 ? count : 63;
    taken |= part << i * TRACE_UNIT_BITS;
    bits |= part << 6 * i;
  }
  *left = (three - taken) & ((UINT64_C(1) << 3 * TRACE_UNIT_BITS) - 1); /* above: counts of a bad file ran over */
  return bits;
}

/* Up to 31 of the first of them of which there are some; 0: there are none. */
static uint64_t products_or_halves(uint64_t *left) {
  const uint64_t all = (1u << TRACE_UNIT_BITS) - 1;
  uint64_t half = !(*left & all) && (*left >> TRACE_UNIT_BITS & all), shift = half * TRACE_UNIT_BITS,
           count = *left >> shift & all;
  uint64_t part = count < 31 ? count : 31;
  *left = (*left - (part << shift)) & ((UINT64_C(1) << 2 * TRACE_UNIT_BITS) - 1); /* as above */
  return half | part << 1;
}

bool trace_writer_has_units(const trace_writer *w) { return w->chunk->launch->chunks->program->units; }

#define COUNT_BITS(bits) ((UINT64_C(1) << (bits)) - 1)
#define EACH_COUNT(bits) ((bits) | (uint64_t)(bits) << TRACE_UNIT_BITS | (uint64_t)(bits) << 2 * TRACE_UNIT_BITS)

/* Whether all counts go into one UNITS, as they mostly do. */
static inline bool fit_one(const trace_counts *u) {
  const uint64_t *w = u->word, last = w[TRACE_UNIT_WORDS - 1],
                 over = EACH_COUNT(COUNT_BITS(TRACE_UNIT_BITS) & ~UINT64_C(63));
  bool one_kind = last < 32 || !(last & ~(UINT64_C(31) << TRACE_UNIT_BITS));
  return one_kind && !((w[0] | w[1] | w[2]) & over);
}

static inline uint64_t packed(uint64_t three) { /* counts below 64, in 6 bits each */
  return (three & 63) | (three >> TRACE_UNIT_BITS & 63) << 6 | (three >> 2 * TRACE_UNIT_BITS & 63) << 12;
}

static inline uint64_t one_of(const trace_counts *u) {
  uint64_t last = u->word[TRACE_UNIT_WORDS - 1], half = last > 31;
  return TRACE_UNITS | packed(u->word[0]) << 4 | packed(u->word[1]) << 22 | packed(u->word[2]) << 40 | half << 58 |
         (half ? last >> TRACE_UNIT_BITS : last) << 59;
}

__attribute__((noinline)) static void put_many_units(trace_writer *w) {
  trace_counts *u = &w->units;
  while (trace_counts_some(u)) {
    uint64_t word = TRACE_UNITS | products_or_halves(&u->word[TRACE_UNIT_WORDS - 1]) << 58;
    for (int i = 0; i < TRACE_UNIT_WORDS - 1; i++) word |= least_of(u->word[i], &u->word[i]) << (4 + 18 * i);
    *trace_room(w, 1) = word;
  }
}

/* MINMAX has an UNITS of its own. */
__attribute__((noinline)) static void put_minmax(trace_writer *w) {
  *trace_room(w, 1) = TRACE_UNITS | (uint64_t)trace_count(&w->units, TRACE_MINMAX) << 4 | UINT64_C(1) << 58;
  w->units.word[TRACE_UNIT_WORDS - 1] &= COUNT_BITS(2 * TRACE_UNIT_BITS);
}

void trace_put_units(trace_writer *w) {
  bool units = trace_writer_has_units(w);
  if (units && __builtin_expect(w->units.word[TRACE_UNIT_WORDS - 1] >> 2 * TRACE_UNIT_BITS != 0, 0)) put_minmax(w);
  if (!units) {
    w->units = (trace_counts){{0}};
  } else if (__builtin_expect(!fit_one(&w->units), 0)) {
    put_many_units(w);
  } else {
    uint64_t word = one_of(&w->units);
    w->units = (trace_counts){{0}};
    if (word != TRACE_UNITS) *trace_room(w, 1) = word;
  }
}

void trace_flush_cut(trace_writer *w) {
  uint32_t issue = w->issue - w->cut_issue, memory = w->memory - w->cut_memory, sfu = w->sfu - w->cut_sfu,
           fp64 = w->fp64 - w->cut_fp64;
  for (int i = 0; i < TRACE_UNIT_WORDS; i++) w->units.word[i] -= w->cut_units.word[i];
  w->cut_units = (trace_counts){{0}};
  w->issue = w->memory = w->sfu = w->fp64 = w->cut_issue = w->cut_memory = w->cut_sfu = w->cut_fp64 = 0;
  if (!issue && !memory) return;
  *trace_room(w, 1) =
      TRACE_ISSUE | (uint64_t)issue << 4 | (uint64_t)memory << 20 | (uint64_t)sfu << 36 | (uint64_t)fp64 << 50;
  trace_put_units(w);
}

/* What is pending is written, but goes on counting, so that the ISSUE behind the mark ends where it would have ended
 * without. */
void trace_put_mark(trace_writer *w, uint64_t word) {
  uint32_t issue = w->issue, memory = w->memory, sfu = w->sfu, fp64 = w->fp64;
  trace_counts units = w->units;
  trace_flush_issue(w);
  *trace_room(w, 1) = word;
  w->issue = w->cut_issue = issue;
  w->memory = w->cut_memory = memory;
  w->sfu = w->cut_sfu = sfu;
  w->fp64 = w->cut_fp64 = fp64;
  w->units = w->cut_units = units;
}

void trace_writer_close(trace_writer *writer) {
  trace_page *page = writer->chunk->streams[writer->warp].last;
  page->used = (uint32_t)(writer->at - page->words);
}

static uint64_t chunk_words(const trace_chunk *chunk) {
  uint64_t words = 0;
  for (uint32_t w = 0; w < chunk->warps; w++)
    for (const trace_page *page = chunk->streams[w].first; page; page = page->next) {
      FF_ASSERT(page->used != UINT32_MAX); /* trace_put_exit on every writer comes first */
      words += page->used;
    }
  return words;
}

#define ANY_BLOCK UINT64_MAX

/* The readers that lack the block wait no longer: it is there, or will not come. Under the stripe's lock. */
static void end_waits(trace_program *program, chunk_stripe *stripe, const trace_launch *launch, uint64_t block) {
  bool any = false;
  for (const trace_reader *r = stripe->waiters; r; r = r->next_waiter) {
    if (r->lacks != launch || (block != ANY_BLOCK && r->lacks_block != block)) continue;
    atomic_fetch_and(&program->waiting_chunk, ~(UINT64_C(1) << r->index));
    any = true;
  }
  if (any) pthread_cond_broadcast(&stripe->published);
}

void trace_chunk_publish(trace_chunk *chunk) {
  trace_launch *launch = chunk->launch;
  trace_program *program = launch->chunks->program;
  chunk_stripe *stripe = stripe_of(launch, chunk->block);
  atomic_fetch_add_explicit(&program->words, chunk_words(chunk), memory_order_relaxed);
  uint64_t slowest = launch_slowest(launch), wanting = launch->chunks->wanting;
  bool later = slowest == UINT64_MAX ? wanting != 0 : chunk->block > slowest + 1 || wanting & program->deferred;
  if (later && program->memory_bytes > program->budget) chunk_spill(program, chunk);
  if (ff_check_level >= 2) trace_chunk_check(chunk);
  pthread_mutex_lock(&stripe->mutex);
  list_remove(chunk);
  launch->chunks->begun--;
  chunk->pending = launch->chunks->wanting; /* a skip that comes later visits this stripe after us */
  bool wanted = chunk->pending != 0;
  if (wanted) {
    if (stripe->count >= stripe->bucket_count) stripe_grow(stripe);
    list_insert(bucket_of(stripe, launch, chunk->block), chunk);
    stripe->count++;
    end_waits(program, stripe, launch, chunk->block);
  }
  pthread_mutex_unlock(&stripe->mutex);
  if (!wanted) chunk_free(program, chunk);
}

/* Frees the chunks that were begun and not published, and wakes the readers that wait for any. */
static void abandon(trace_program *program, const trace_launch *launch) {
  for (int i = 0; i < STRIPES; i++) {
    chunk_stripe *stripe = &program->stripes[i];
    trace_chunk *abandoned = NULL;
    pthread_mutex_lock(&stripe->mutex);
    for (trace_chunk *chunk = stripe->begun, *next; chunk; chunk = next) {
      next = chunk->next;
      if (chunk->launch != launch) continue;
      list_remove(chunk);
      list_insert(&abandoned, chunk);
    }
    end_waits(program, stripe, launch, ANY_BLOCK);
    pthread_mutex_unlock(&stripe->mutex);
    while (abandoned) {
      trace_chunk *chunk = abandoned;
      list_remove(chunk);
      chunk_free(program, chunk);
    }
  }
}

/* A reader that is not seen to wait here sees `finished` before it does: wait_for_chunk. */
void trace_launch_finish(trace_launch *launch) {
  trace_program *program = launch->chunks->program;
  launch->chunks->finished = true;
  trace_touched_finish(launch);
  if (launch->chunks->begun || program->waiting_chunk) abandon(program, launch);
  if (ff_check_level >= 2) {
    pthread_mutex_lock(&program->mutex);
    trace_check_sometimes(program);
    pthread_mutex_unlock(&program->mutex);
  }
  launch_unreference(launch);
}

/* ---- reading ---- */

static trace_chunk *chunk_empty(trace_launch *launch, uint64_t block) {
  trace_chunk *chunk = ff_alloc(sizeof *chunk);
  chunk->launch = launch;
  chunk->block = block;
  chunk->empty = true;
  return chunk;
}

/* Waits until the reader's chunk is there or will not come; under the stripe's lock, which it gives up meanwhile. */
static void wait_for_chunk(trace_reader *reader, chunk_stripe *stripe, const trace_launch *launch, uint64_t block) {
  trace_program *program = reader->program;
  reader->lacks = launch;
  reader->lacks_block = block;
  reader->next_waiter = stripe->waiters;
  stripe->waiters = reader;
  atomic_fetch_or(&program->waiting_chunk, UINT64_C(1) << reader->index);
  pthread_mutex_unlock(&stripe->mutex);
  program_signal_waiting(program);
  pthread_mutex_lock(&stripe->mutex);
  while (!stripe_find(stripe, launch, block) && !launch->chunks->finished) {
    if (!program->pull) {
      pthread_cond_wait(&stripe->published, &stripe->mutex);
      continue;
    }
    pthread_mutex_unlock(&stripe->mutex);
    if (program->leaps.fetch) program->leaps.fetch(program->leaps.context, launch);
    else program->pull(program->pull_context);
    pthread_mutex_lock(&stripe->mutex);
  }
  trace_reader **link = &stripe->waiters;
  while (*link != reader) link = &(*link)->next_waiter;
  *link = reader->next_waiter;
  reader->lacks = NULL;
  /* The thread that brought it has cleared the bit; but a launch may be seen as finished before its chunks' waits are
   * ended. */
  atomic_fetch_and(&program->waiting_chunk, ~(UINT64_C(1) << reader->index));
}

trace_chunk *trace_reader_chunk(trace_reader *reader, trace_launch *launch, uint64_t block) {
  struct trace_chunks *chunks = launch->chunks;
  chunk_stripe *stripe = stripe_of(launch, block);
  uint64_t bit = UINT64_C(1) << reader->index;
  FF_ASSERT(block < launch->blocks && chunks->progress[reader->index].taken == block);
  pthread_mutex_lock(&stripe->mutex);
  trace_chunk *chunk = stripe_find(stripe, launch, block);
  if (!chunk && !chunks->finished) {
    wait_for_chunk(reader, stripe, launch, block);
    chunk = stripe_find(stripe, launch, block);
  }
  if (chunk) chunk->taken |= bit;
  pthread_mutex_unlock(&stripe->mutex);
  if (!chunk) chunk = chunks->touched ? trace_touched_chunk(reader, launch, block) : chunk_empty(launch, block);
  chunks->progress[reader->index].taken = block + 1;
  if (block + 1 == launch->blocks) atomic_fetch_and(&chunks->wanting, ~bit);
  program_signal_room(reader->program, block + 2 >= reader->program->room_block);
  return chunk;
}

bool trace_reader_look(trace_reader *reader, const trace_launch *launch, uint64_t block, uint64_t blocks,
                       uint32_t left_out, footprint *to, uint64_t *instructions) {
  const trace_ahead *ahead = &reader->program->leaps;
  return ahead->look && !launch->chunks->finished &&
         ahead->look(ahead->context, launch, block, blocks, left_out, to, instructions);
}

void trace_reader_leap(trace_reader *reader, trace_launch *launch, uint64_t blocks) {
  struct trace_chunks *chunks = launch->chunks;
  uint64_t bit = UINT64_C(1) << reader->index, taken = chunks->progress[reader->index].taken + blocks;
  FF_ASSERT(taken <= launch->blocks);
  const trace_ahead *ahead = &reader->program->leaps;
  chunks->progress[reader->index].taken = taken;
  uint64_t released = atomic_fetch_add(&chunks->progress[reader->index].released, blocks) + blocks;
  if (taken == launch->blocks) atomic_fetch_and(&chunks->wanting, ~bit);
  bool last = released == taken && taken == launch->blocks;
  ahead->leap(ahead->context, launch, blocks); /* the launch is there still: it may be finished by this */
  if (last) launch_unreference(launch);
}

/* Takes the reader's claim from the chunk; whether that was the last one (then it is unlinked). Under the lock. */
static bool chunk_drop(chunk_stripe *stripe, trace_chunk *chunk, uint64_t bit) {
  chunk->pending &= ~bit;
  if (chunk->pending) return false;
  list_remove(chunk);
  stripe->count--;
  return true;
}

void trace_reader_release(trace_reader *reader, trace_chunk *chunk) {
  trace_launch *launch = chunk->launch;
  struct trace_chunks *chunks = launch->chunks;
  trace_program *program = reader->program;
  uint64_t bit = UINT64_C(1) << reader->index;
  bool last = chunk->empty;
  if (chunk->made) {
    trace_touched_chunk_free(chunk);
  } else if (!last) {
    chunk_stripe *stripe = stripe_of(launch, chunk->block);
    pthread_mutex_lock(&stripe->mutex);
    last = chunk_drop(stripe, chunk, bit);
    pthread_mutex_unlock(&stripe->mutex);
  }
  if (last) chunk_free(program, chunk);
  uint64_t released = ++chunks->progress[reader->index].released;
  if (released == chunks->progress[reader->index].taken && !(chunks->wanting & bit)) launch_unreference(launch);
}

void chunk_drop_reader(trace_program *program, uint32_t reader, const trace_launch *launch) {
  uint64_t bit = UINT64_C(1) << reader;
  for (int i = 0; i < STRIPES; i++) {
    chunk_stripe *stripe = &program->stripes[i];
    trace_chunk *dropped = NULL;
    pthread_mutex_lock(&stripe->mutex);
    for (uint32_t b = 0; b < stripe->bucket_count; b++)
      for (trace_chunk *chunk = stripe->buckets[b], *next; chunk; chunk = next) {
        next = chunk->next;
        if (chunk->launch != launch || !(chunk->pending & bit) || (chunk->taken & bit)) continue;
        if (chunk_drop(stripe, chunk, bit)) list_insert(&dropped, chunk);
      }
    pthread_mutex_unlock(&stripe->mutex);
    while (dropped) {
      trace_chunk *chunk = dropped;
      list_remove(chunk);
      chunk_free(program, chunk);
    }
  }
}

/* ---- cursors ---- */

enum { BUFFER_WORDS = 320 }; /* more than the longest record, 257 words */
typedef struct cursor_buffer {
  struct cursor_buffer *all_next;
  struct cursor_buffer *free_next;
  uint64_t words[BUFFER_WORDS + 1];
} cursor_buffer;

static const uint64_t only_exit[1] = {TRACE_EXIT};

static cursor_buffer *buffer_take(trace_reader *reader) {
  cursor_buffer *buffer = reader->free_buffers;
  if (buffer) {
    reader->free_buffers = buffer->free_next;
    return buffer;
  }
  buffer = ff_realloc(NULL, sizeof *buffer);
  buffer->all_next = reader->buffers;
  reader->buffers = buffer;
  return buffer;
}

/* Reads the next whole records of a spilled page into the cursor's buffer and ends them with a zero word. */
static void cursor_load(trace_reader *reader, trace_cursor *cursor) {
  const trace_page *page = cursor->page;
  cursor_buffer *buffer = cursor->buffer ? cursor->buffer : buffer_take(reader);
  uint32_t count = page->used - cursor->loaded, whole = 0;
  if (count > BUFFER_WORDS) count = BUFFER_WORDS;
  spill_read(&reader->program->spill, page->offset + cursor->loaded * UINT64_C(8), buffer->words, count);
  while (whole < count && whole + trace_record_words(buffer->words[whole]) <= count)
    whole += trace_record_words(buffer->words[whole]);
  FF_ASSERT(whole || !count);
  buffer->words[whole] = TRACE_END;
  cursor->loaded += whole;
  cursor->buffer = buffer;
  cursor->at = buffer->words;
}

static void cursor_enter(trace_reader *reader, trace_cursor *cursor, trace_page *page) {
  cursor->page = page;
  cursor->loaded = 0;
  cursor->at = page->words;
  if (page->size_class == PAGE_SPILLED) cursor_load(reader, cursor);
}

void trace_chunk_prefetch(const trace_chunk *chunk) {
  for (uint32_t w = 0; w < chunk->warps && !chunk->empty; w++) __builtin_prefetch(chunk->streams[w].first);
}

void trace_cursor_open(trace_reader *reader, trace_chunk *chunk, uint32_t warp, trace_cursor *cursor) {
  *cursor = (trace_cursor){.chunk = chunk, .warp = warp, .at = only_exit};
  if (!chunk->empty) cursor_enter(reader, cursor, chunk->streams[warp].first);
}

const uint64_t *trace_cursor_turn(trace_reader *reader, trace_cursor *cursor) {
  do {
    trace_page *page = cursor->page;
    if (page->size_class == PAGE_SPILLED && cursor->loaded < page->used) cursor_load(reader, cursor);
    else cursor_enter(reader, cursor, page->next);
  } while (trace_word_kind(*cursor->at) == TRACE_END);
  return cursor->at;
}

uint64_t trace_cursor_issue(trace_reader *reader, trace_cursor *cursor, uint64_t issue, uint32_t left_out,
                            trace_counts *units) {
  bool cut = false;
  for (;; cursor->at++) {
    uint64_t next = trace_word_kind(*cursor->at) == TRACE_END ? *trace_cursor_turn(reader, cursor) : *cursor->at;
    switch (trace_word_kind(next)) {
    case TRACE_UNITS: trace_add_units(units, next); continue;
    case TRACE_ENTER:
    case TRACE_LEAVE:
      if (!(left_out & TRACE_NO_MARKS)) return issue;
      cut = true;
      continue;
    case TRACE_WAIT:
      if (!(left_out & TRACE_NO_LATE_WAITS) || !trace_wait_late(next)) return issue;
      cut = true;
      continue;
    case TRACE_ISSUE:
      if (!cut || !trace_issues_fit(issue, next)) return issue;
      issue += (next >> 4) << 4; /* no field overflows: sfu and fp64 are at most the instructions */
      cut = false;
      continue;
    default: return issue;
    }
  }
}

void trace_cursor_close(trace_reader *reader, trace_cursor *cursor) {
  cursor_buffer *buffer = cursor->buffer;
  if (!buffer) return;
  buffer->free_next = reader->free_buffers;
  reader->free_buffers = buffer;
  cursor->buffer = NULL;
}

void cursor_buffers_free(trace_reader *reader) {
  while (reader->buffers) {
    cursor_buffer *next = reader->buffers->all_next;
    free(reader->buffers);
    reader->buffers = next;
  }
}
