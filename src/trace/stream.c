/* SPDX-License-Identifier: Apache-2.0 */
/* The program: its operations in order, its readers, its launches, and the throttle. Chunks are in chunk.c.
 *
 * trace_op_append waits until no working reader (trace_private.h) is OPS_OUTSTANDING operations behind. An operation is
 * freed when the slowest reader is past it. A launch is freed with its last reference; the references are the
 * producer's until trace_launch_finish, the operation's until all readers are past it, and each reader's until that
 * reader has released every block (or skipped the launch). trace_check.c has the equations. */
#include "trace/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "trace/trace_private.h"

enum { BLOCK_WINDOW = 64 }; /* blocks beyond the slowest reader's next that may start in any case */
/* the same where they are fed one after the other: little is gained by running ahead */
enum { FED_WINDOW = 4 };
enum { SPARE_LAUNCHES = 64 };
#define DEFAULT_BUDGET (UINT64_C(256) << 20)

trace_program *trace_program_create(uint64_t memory_budget) {
  trace_program *program = ff_alloc_aligned(64, sizeof *program);
  program->budget = memory_budget ? memory_budget : DEFAULT_BUDGET;
  program->ahead = program->budget;
  program->window = BLOCK_WINDOW;
  pthread_mutex_init(&program->mutex, NULL);
  pthread_cond_init(&program->appended, NULL);
  pthread_cond_init(&program->consumed, NULL);
  pthread_cond_init(&program->told, NULL);
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&program->room, &monotonic);
  pthread_condattr_destroy(&monotonic);
  pool_init(&program->pool);
  spill_init(&program->spill);
  chunk_stripes_init(program);
  return program;
}

static void launch_free(trace_launch *launch) {
  free(launch->chunks->touched);
  free(launch->chunks->parameters);
  free(launch->chunks);
  free(launch);
}

/* Many launches are alike and short: their memory, which two threads have in their caches, is used again. */
static void launch_keep_locked(trace_program *program, trace_launch *launch) {
  free(launch->chunks->touched);
  launch->chunks->touched = NULL;
  if (program->spare_count == SPARE_LAUNCHES) {
    launch_free(launch);
    return;
  }
  launch->chunks->next = program->spare;
  program->spare = launch;
  program->spare_count++;
}

/* Cleared but for the texts and uses behind their ends; NULL: there is none for so many readers. */
static trace_launch *launch_again_locked(trace_program *program, uint32_t readers) {
  trace_launch *launch = program->spare;
  if (!launch) return NULL;
  struct trace_chunks *chunks = launch->chunks;
  program->spare = chunks->next;
  program->spare_count--;
  if (chunks->progress_count != readers) {
    launch_free(launch);
    return NULL;
  }
  launch->kernel[0] = launch->range[0] = launch->site[0] = '\0';
  memset(&launch->id, 0, offsetof(trace_launch, uses) - offsetof(trace_launch, id));
  void *parameters = chunks->parameters;
  uint32_t room = chunks->parameter_room;
  memset(chunks, 0, sizeof *chunks + readers * sizeof chunks->progress[0]);
  chunks->parameters = parameters;
  chunks->parameter_room = room;
  return launch;
}

void trace_program_free(trace_program *program) {
  if (!program) return;
  FF_ASSERT(!program->active);
  if (ff_check_level >= 2) trace_check(program, true);
  chunk_stripes_free(program);
  FF_CHECK(!program->memory_bytes);
  if (ff_check_level >= 2) spill_check(&program->spill, 0, true);
  while (program->launches) {
    trace_launch *launch = program->launches;
    program->launches = launch->chunks->next;
    launch_free(launch);
  }
  while (program->spare) {
    trace_launch *launch = program->spare;
    program->spare = launch->chunks->next;
    launch_free(launch);
  }
  for (size_t i = 0; i < program->kept.count; i++) free(program->kept.items[i]);
  free(program->kept.items);
  while (program->first) {
    op_segment *next = program->first->next;
    free(program->first);
    program->first = next;
  }
  pool_free(&program->pool);
  spill_close(&program->spill);
  pthread_cond_destroy(&program->appended);
  pthread_cond_destroy(&program->consumed);
  pthread_cond_destroy(&program->told);
  pthread_cond_destroy(&program->room);
  pthread_mutex_destroy(&program->mutex);
  free(program);
}

void trace_program_mark(trace_program *program, bool marks) { program->marks = marks; }
void trace_program_units(trace_program *program, bool units) { program->units = units; }
bool trace_program_has_units(const trace_program *program) { return program->units; }

bool trace_program_marks(const trace_program *program) { return program->marks; }

void trace_program_limit(trace_program *program, uint64_t bytes) {
  FF_ASSERT(!program->appended_count);
  program->ahead = bytes;
  program->window = FED_WINDOW;
}

void trace_program_pull(trace_program *program, void (*pull)(void *context), void *context) {
  pthread_mutex_lock(&program->mutex);
  FF_ASSERT(!program->appended_count && program->reader_count == 1);
  program->pull_context = context;
  program->pull = pull;
  pthread_cond_broadcast(&program->appended);
  pthread_mutex_unlock(&program->mutex);
}

void trace_program_ahead(trace_program *program, const trace_ahead *ahead) {
  pthread_mutex_lock(&program->mutex);
  FF_ASSERT(!program->appended_count && program->reader_count == 1);
  program->leaps = *ahead;
  pthread_mutex_unlock(&program->mutex);
}

trace_usage trace_program_usage(trace_program *program) {
  pthread_mutex_lock(&program->spill.mutex);
  uint64_t spilled = program->spill.written;
  int error = program->spill.failed;
  pthread_mutex_unlock(&program->spill.mutex);
  return (trace_usage){program->memory_bytes, program->peak_bytes, spilled, program->words, error};
}

/* ---- launches ---- */

trace_launch *trace_launch_create(trace_program *program, uint64_t blocks, uint32_t warps_per_block) {
  uint32_t readers = program->reader_count;
  pthread_mutex_lock(&program->mutex);
  trace_launch *launch = launch_again_locked(program, readers);
  if (!launch) {
    launch = ff_alloc(sizeof *launch);
    launch->chunks = ff_alloc(sizeof *launch->chunks + readers * sizeof launch->chunks->progress[0]);
  }
  struct trace_chunks *chunks = launch->chunks;
  launch->blocks = blocks;
  launch->warps_per_block = warps_per_block;
  chunks->program = program;
  chunks->references = 1;
  chunks->progress_count = readers;
  launch->id = chunks->serial = program->next_launch++;
  chunks->next = program->launches;
  chunks->link = &program->launches;
  if (chunks->next) chunks->next->chunks->link = &chunks->next;
  program->launches = launch;
  pthread_mutex_unlock(&program->mutex);
  return launch;
}

void trace_launch_set_parameters(trace_launch *launch, const void *bytes, uint32_t count) {
  struct trace_chunks *chunks = launch->chunks;
  if (chunks->parameter_room <= count) {
    free(chunks->parameters);
    chunks->parameters = ff_alloc(count + 1);
    chunks->parameter_room = count + 1;
  }
  memcpy(chunks->parameters, bytes, count);
  launch->parameters = chunks->parameters;
  launch->parameter_bytes = count;
}

const char *trace_keep(trace_program *program, const char *text, uint64_t bytes) {
  char *copy = ff_alloc(bytes + 1);
  memcpy(copy, text, bytes);
  pthread_mutex_lock(&program->mutex);
  FF_PUSH(&program->kept, copy);
  pthread_mutex_unlock(&program->mutex);
  return copy;
}

static void launch_unreference_locked(trace_launch *launch) {
  struct trace_chunks *chunks = launch->chunks;
  if (atomic_fetch_sub(&chunks->references, 1) != 1) return;
  *chunks->link = chunks->next;
  if (chunks->next) chunks->next->chunks->link = chunks->link;
  launch_keep_locked(chunks->program, launch);
}

void launch_unreference(trace_launch *launch) {
  trace_program *program = launch->chunks->program;
  pthread_mutex_lock(&program->mutex);
  launch_unreference_locked(launch);
  pthread_mutex_unlock(&program->mutex);
}

uint64_t launch_slowest(const trace_launch *launch) {
  const struct trace_chunks *chunks = launch->chunks;
  uint64_t slowest = UINT64_MAX;
  for (uint64_t wanting = chunks->wanting & ~chunks->program->deferred; wanting; wanting &= wanting - 1) {
    uint64_t taken = chunks->progress[__builtin_ctzll(wanting)].taken;
    if (taken < slowest) slowest = taken;
  }
  return slowest;
}

/* ---- the throttle ---- */

/* A stream that is fed is woken when half of what may lie there is gone (`wanted`: or its block is nearly the next
 * one): a wake for each block would cost more than to read it. */
void program_signal_room(trace_program *program, bool wanted) {
  if (!program->room_waiters ||
      (program->window == FED_WINDOW && !wanted && program->memory_bytes > program->ahead / 2))
    return;
  pthread_mutex_lock(&program->mutex);
  pthread_cond_broadcast(&program->room);
  pthread_mutex_unlock(&program->mutex);
}

void program_signal_waiting(trace_program *program) {
  if (!program->room_waiters) return;
  pthread_mutex_lock(&program->mutex);
  pthread_cond_broadcast(&program->room);
  pthread_cond_broadcast(&program->consumed);
  pthread_mutex_unlock(&program->mutex);
}

uint64_t trace_readers_working(const trace_program *program) {
  return program->active & ~program->deferred &
         ~(program->waiting_op | program->waiting_chunk | program->waiting_told | program->waiting_other);
}

/* Whether no working reader holds the block back. */
static bool block_may_start(const trace_program *program, const trace_launch *launch, uint64_t block) {
  const struct trace_chunks *chunks = launch->chunks;
  if (launch->cooperative || program->memory_bytes < program->ahead) return true;
  for (uint64_t holding = chunks->wanting & trace_readers_working(program); holding; holding &= holding - 1)
    if (block >= chunks->progress[__builtin_ctzll(holding)].taken + program->window) return false;
  return true;
}

/* Check level 2, under the mutex: no reader counts as waiting for an operation or a chunk that exists. */
static void reader_waits_check(trace_program *program) {
  for (uint64_t waiting = ff_check_level >= 2 ? program->waiting_op : 0; waiting; waiting &= waiting - 1) {
    const trace_reader *reader = program->readers[__builtin_ctzll(waiting)];
    FF_CHECK_DEEP(!reader || reader->next == program->appended_count);
  }
  chunk_waits_check(program);
}

static struct timespec after_milliseconds(int milliseconds) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  t.tv_nsec += milliseconds % 1000 * 1000000L;
  t.tv_sec += milliseconds / 1000 + t.tv_nsec / 1000000000L;
  t.tv_nsec %= 1000000000L;
  return t;
}

bool trace_block_wait(trace_launch *launch, uint64_t block, int milliseconds) {
  trace_program *program = launch->chunks->program;
  if (block_may_start(program, launch, block)) return true;
  if (!milliseconds) return false;
  bool start, late = false;
  struct timespec until = after_milliseconds(milliseconds > 0 ? milliseconds : 0);
  program->room_block = block;
  atomic_fetch_add(&program->room_waiters, 1);
  pthread_mutex_lock(&program->mutex);
  while (!(start = block_may_start(program, launch, block)) && !late) {
    reader_waits_check(program);
    if (milliseconds < 0) pthread_cond_wait(&program->room, &program->mutex);
    else late = pthread_cond_timedwait(&program->room, &program->mutex, &until) == ETIMEDOUT;
  }
  pthread_mutex_unlock(&program->mutex);
  atomic_fetch_sub(&program->room_waiters, 1);
  return start;
}

/* ---- operations ---- */

static void append_launch(trace_program *program, trace_launch *launch) {
  struct trace_chunks *chunks = launch->chunks;
  uint64_t wanting = launch->blocks ? program->active : 0;
  if (chunks->progress_count < 64) wanting &= (UINT64_C(1) << chunks->progress_count) - 1;
  atomic_fetch_add(&chunks->references, (program->active ? 1 : 0) + (uint32_t)__builtin_popcountll(wanting));
  chunks->wanting = wanting;
}

/* How many operations these readers are all past. */
static uint64_t passed_by(const trace_program *program, uint64_t readers) {
  uint64_t passed = program->appended_count;
  for (; readers; readers &= readers - 1) {
    const trace_reader *reader = program->readers[__builtin_ctzll(readers)];
    if (reader && reader->next - reader->holds < passed) passed = reader->next - reader->holds;
  }
  return passed;
}

/* Waits for readers that work and are far behind; under the mutex. */
static void wait_for_readers(trace_program *program) {
  atomic_fetch_add(&program->room_waiters, 1);
  while (program->appended_count - passed_by(program, trace_readers_working(program)) >= OPS_OUTSTANDING) {
    reader_waits_check(program);
    pthread_cond_wait(&program->consumed, &program->mutex);
  }
  atomic_fetch_sub(&program->room_waiters, 1);
}

uint64_t trace_op_append(trace_program *program, const trace_op *op) {
  pthread_mutex_lock(&program->mutex);
  bool full = program->appended_count - program->freed_count >= OPS_OUTSTANDING;
  if (full && op->kind != TRACE_OP_END) wait_for_readers(program); /* the end of the program waits for nothing */
  if (op->kind == TRACE_OP_LAUNCH) append_launch(program, op->launch);
  uint64_t sequence = program->appended_count++;
  if (!program->active) {
    program->freed_count = program->appended_count;
    pthread_mutex_unlock(&program->mutex);
    return sequence;
  }
  op_segment *segment = program->last;
  if (!segment || sequence >= segment->base + OP_SEGMENT) {
    op_segment *fresh = ff_alloc(sizeof *fresh);
    fresh->base = sequence;
    *(segment ? &segment->next : &program->first) = fresh;
    program->last = segment = fresh;
  }
  trace_op *slot = &segment->ops[sequence - segment->base];
  *slot = *op;
  slot->sequence = sequence;
  program->waiting_op = 0;
  pthread_cond_broadcast(&program->appended);
  if (ff_check_level >= 2) trace_check_sometimes(program);
  pthread_mutex_unlock(&program->mutex);
  return sequence;
}

/* Frees what every reader is past; under the mutex. */
static void free_passed(trace_program *program) {
  uint64_t freed = passed_by(program, program->active);
  pthread_cond_broadcast(&program->consumed);
  for (; program->freed_count < freed; program->freed_count++) {
    op_segment *segment = program->first;
    uint64_t at = program->freed_count - segment->base;
    if (segment->ops[at].kind == TRACE_OP_LAUNCH) launch_unreference_locked(segment->ops[at].launch);
    if (at + 1 < OP_SEGMENT) continue;
    program->first = segment->next;
    if (!program->first) program->last = NULL;
    free(segment);
  }
}

/* ---- readers ---- */

trace_reader *trace_reader_create(trace_program *program) {
  pthread_mutex_lock(&program->mutex);
  FF_ASSERT(program->appended_count == 0);
  trace_reader *reader = NULL;
  if (program->reader_count < TRACE_READERS_MAX) {
    reader = ff_alloc(sizeof *reader);
    reader->program = program;
    reader->index = program->reader_count++;
    program->readers[reader->index] = reader;
    atomic_fetch_or(&program->active, UINT64_C(1) << reader->index);
  }
  pthread_mutex_unlock(&program->mutex);
  return reader;
}

void trace_reader_defer(trace_reader *reader) {
  pthread_mutex_lock(&reader->program->mutex);
  FF_ASSERT(reader->program->appended_count == 0);
  reader->program->deferred |= UINT64_C(1) << reader->index;
  pthread_mutex_unlock(&reader->program->mutex);
}

/* The live launches of which the reader wants blocks, each with a reference for the caller. */
static size_t wanted_launches(trace_program *program, uint64_t bit, trace_launch ***out) {
  FF_VEC(trace_launch *) wanted = {0};
  for (trace_launch *launch = program->launches; launch; launch = launch->chunks->next) {
    if (!(launch->chunks->wanting & bit)) continue;
    atomic_fetch_add(&launch->chunks->references, 1);
    FF_PUSH(&wanted, launch);
  }
  *out = wanted.items;
  return wanted.count;
}

void trace_reader_free(trace_reader *reader) {
  if (!reader) return;
  trace_program *program = reader->program;
  uint64_t bit = UINT64_C(1) << reader->index;
  trace_launch **wanted;
  pthread_mutex_lock(&program->mutex);
  atomic_fetch_and(&program->active, ~bit);
  program->leaving |= bit;
  program->readers[reader->index] = NULL;
  size_t count = wanted_launches(program, bit, &wanted);
  pthread_mutex_unlock(&program->mutex);
  for (size_t i = 0; i < count; i++) {
    trace_reader_skip(reader, wanted[i]);
    launch_unreference(wanted[i]);
  }
  free(wanted);
  pthread_mutex_lock(&program->mutex);
  program->leaving &= ~bit;
  free_passed(program);
  if (ff_check_level >= 2) trace_check_locked(program, false);
  pthread_cond_broadcast(&program->consumed);
  pthread_cond_broadcast(&program->room);
  pthread_mutex_unlock(&program->mutex);
  while (reader->made) trace_touched_chunk_free(reader->made);
  cursor_buffers_free(reader);
  free(reader);
}

/* Waits for an operation, and for a poke too if `pokes`; under the mutex. */
static void reader_wait(trace_reader *reader, bool pokes) {
  trace_program *program = reader->program;
  if (reader->next < program->appended_count || (pokes && reader->poked)) return;
  atomic_fetch_or(&program->waiting_op, UINT64_C(1) << reader->index);
  pthread_cond_broadcast(&program->room);
  pthread_cond_broadcast(&program->consumed);
  while (reader->next >= program->appended_count && !(pokes && reader->poked)) {
    if (!program->pull) {
      pthread_cond_wait(&program->appended, &program->mutex);
      continue;
    }
    pthread_mutex_unlock(&program->mutex);
    program->pull(program->pull_context);
    pthread_mutex_lock(&program->mutex);
  }
  atomic_fetch_and(&program->waiting_op, ~(UINT64_C(1) << reader->index));
}

const trace_op *trace_reader_next_op(trace_reader *reader) {
  trace_program *program = reader->program;
  if (reader->ended) return NULL;
  pthread_mutex_lock(&program->mutex);
  if (reader->holds) {
    reader->holds = false;
    if (reader->segment && reader->next >= reader->segment->base + OP_SEGMENT) reader->segment = NULL;
    free_passed(program);
  }
  reader_wait(reader, false);
  if (!reader->segment)
    for (reader->segment = program->first; reader->next >= reader->segment->base + OP_SEGMENT;)
      reader->segment = reader->segment->next;
  const trace_op *op = &reader->segment->ops[reader->next - reader->segment->base];
  reader->next++;
  reader->holds = true;
  reader->ended = op->kind == TRACE_OP_END;
  pthread_mutex_unlock(&program->mutex);
  return op;
}

bool trace_reader_has_op(trace_reader *reader) {
  if (reader->ended) return true;
  pthread_mutex_lock(&reader->program->mutex);
  bool has = reader->next < reader->program->appended_count;
  pthread_mutex_unlock(&reader->program->mutex);
  return has;
}

bool trace_reader_wait(trace_reader *reader) {
  if (reader->ended) return true;
  pthread_mutex_lock(&reader->program->mutex);
  reader_wait(reader, true);
  bool has = reader->next < reader->program->appended_count;
  reader->poked = false;
  pthread_mutex_unlock(&reader->program->mutex);
  return has;
}

void trace_reader_poke(trace_reader *reader) {
  pthread_mutex_lock(&reader->program->mutex);
  reader->poked = true;
  pthread_cond_broadcast(&reader->program->appended);
  pthread_mutex_unlock(&reader->program->mutex);
}

void trace_reader_waits(trace_reader *reader, bool waits) {
  uint64_t bit = UINT64_C(1) << reader->index;
  if (waits) atomic_fetch_or(&reader->program->waiting_other, bit);
  else atomic_fetch_and(&reader->program->waiting_other, ~bit);
  if (waits) program_signal_waiting(reader->program);
}

void trace_reader_skip(trace_reader *reader, trace_launch *launch) {
  struct trace_chunks *chunks = launch->chunks;
  uint64_t bit = UINT64_C(1) << reader->index;
  if (!(atomic_fetch_and(&chunks->wanting, ~bit) & bit)) return;
  chunk_drop_reader(chunks->program, reader->index, launch);
  program_signal_room(chunks->program, true);
  if (chunks->progress[reader->index].released == chunks->progress[reader->index].taken) launch_unreference(launch);
}
