/* SPDX-License-Identifier: Apache-2.0 */
/* Launches without records (trace/touched.h): who is asked, what comes of the answers, and the records that stand for
 * those that were not written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "trace/touched.h"
#include "unit/share.h"

enum { READERS = 3, BLOCKS = 5, WARPS = 3, PAGES = 40 };

static bool no_page_meets(void *context, uint64_t page) { return false; }
static bool all_pages_meet(void *context, uint64_t page) { return true; }

/* ---- the question ---- */

typedef struct listener { /* a reader in its own thread */
  trace_reader *reader;
  bool answers, yes, skips; /* skips: it lets the launch pass without a look or an answer */
  bool saw_records;
  uint64_t pieces;
} listener;

static void *listen(void *context) {
  listener *l = context;
  for (const trace_op *op; (op = trace_reader_next_op(l->reader));) {
    if (op->kind != TRACE_OP_LAUNCH) continue;
    if (l->skips) {
      trace_reader_skip(l->reader, op->launch);
      continue;
    }
    if (l->answers) trace_reader_answer(l->reader, op->launch, l->yes);
    const trace_touched *touched = trace_reader_touched(l->reader, op->launch);
    l->saw_records = !touched;
    l->pieces = touched ? touched->count : 0;
    for (uint64_t b = 0; b < BLOCKS; b++) trace_reader_release(l->reader, trace_reader_chunk(l->reader, op->launch, b));
  }
  trace_reader_waits(l->reader, true);
  return NULL;
}

static void touch_pages(footprint *f, uint64_t pages) {
  for (uint64_t p = 0; p < pages; p++) {
    uint64_t record[3] = {TRACE_ACCESS | (uint64_t)TRACE_LOAD << 4 | 1 << 16, UINT32_MAX, trace_line(p * 4096, 32, 15)};
    footprint_block(f, p % BLOCKS);
    footprint_access(f, record);
  }
}

static void execute(trace_launch *launch, bool touches) {
  if (touches) {
    footprint f;
    footprint_open(&f, no_page_meets, NULL);
    touch_pages(&f, PAGES);
    trace_launch_touch(launch, &f, 100);
    footprint_free(&f);
  }
  for (uint64_t b = 0; b < BLOCKS && !touches; b++) {
    trace_chunk *chunk = trace_chunk_begin(launch, b);
    for (uint32_t w = 0; w < WARPS; w++) {
      trace_writer writer;
      trace_chunk_writer(chunk, w, &writer);
      trace_put_exit(&writer);
    }
    trace_chunk_publish(chunk);
  }
  trace_launch_finish(launch);
}

/* Three readers of which some say yes: whether the launch had footprints. asks: the writer does. */
static bool ask(listener l[READERS], bool asks) {
  trace_program *program = trace_program_create(0);
  pthread_t threads[READERS];
  for (int i = 0; i < READERS; i++) {
    l[i].reader = trace_reader_create(program);
    if (l[i].answers) trace_reader_answers(l[i].reader);
  }
  for (int i = 0; i < READERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, listen, &l[i]), 0);
  trace_launch *launch = trace_launch_create(program, BLOCKS, WARPS);
  if (asks) trace_launch_may_ask(launch);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = launch});
  bool touches = asks && trace_launch_ask(launch);
  execute(launch, touches);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_END});
  for (int i = 0; i < READERS; i++) {
    pthread_join(threads[i], NULL);
    trace_reader_free(l[i].reader);
    if (!l[i].skips) assert_int_equal(l[i].saw_records, !touches);
    if (!l[i].skips) assert_int_equal(l[i].pieces, touches ? PAGES : 0);
  }
  trace_program_free(program);
  return touches;
}

static void all_must_want_none(void **state) {
  for (uint32_t yes = 0; yes < 1 << READERS; yes++)
    for (uint32_t round = 0; round < 20; round++) {
      listener l[READERS];
      memset(l, 0, sizeof l);
      for (uint32_t i = 0; i < READERS; i++) l[i].answers = true, l[i].yes = yes >> i & 1;
      assert_int_equal(ask(l, true), yes == (1 << READERS) - 1);
    }
}

static void who_is_not_asked_has_records(void **state) {
  listener l[READERS];
  memset(l, 0, sizeof l);
  for (uint32_t i = 0; i < READERS; i++) l[i].answers = l[i].yes = true;
  assert_false(ask(l, false));
}

static void a_reader_that_never_answers_has_records(void **state) {
  listener l[READERS];
  memset(l, 0, sizeof l);
  for (uint32_t i = 0; i < READERS; i++) l[i].answers = l[i].yes = i != 1;
  assert_false(ask(l, true));
}

/* It waits for the next operation, and has not answered: the question does not wait for it. */
static void a_reader_that_waits_means_no(void **state) {
  listener l[READERS];
  memset(l, 0, sizeof l);
  for (uint32_t i = 0; i < READERS; i++) l[i].answers = true, l[i].yes = true;
  l[2].skips = true;
  assert_false(ask(l, true));
}

static void nobody_reads(void **state) {
  trace_program *program = trace_program_create(0);
  trace_launch *launch = trace_launch_create(program, BLOCKS, WARPS);
  trace_launch_may_ask(launch);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = launch});
  assert_false(trace_launch_ask(launch));
  trace_launch_finish(launch);
  trace_program_free(program);
}

/* A launch that may ask, and has come to one reader, which answers. */
static trace_launch *launch_with_reader(trace_program *program, trace_reader **reader) {
  trace_reader_answers(*reader = trace_reader_create(program));
  trace_launch *launch = trace_launch_create(program, BLOCKS, WARPS);
  trace_launch_may_ask(launch);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = launch});
  return launch;
}

static void *ask_readers(void *launch) { return trace_launch_ask(launch) ? launch : NULL; }

/* The process ends while a reader that works has not come to the launch: the question ends, and there is nothing to
 * read. */
static void a_launch_may_be_finished_meanwhile(void **state) {
  trace_program *program = trace_program_create(0);
  trace_reader *reader;
  trace_launch *launch = launch_with_reader(program, &reader);
  pthread_t asker;
  void *touched;
  assert_int_equal(pthread_create(&asker, NULL, ask_readers, launch), 0);
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  trace_launch_finish(launch);
  assert_int_equal(pthread_join(asker, &touched), 0);
  assert_null(touched);
  assert_ptr_equal(trace_reader_next_op(reader)->launch, launch);
  trace_reader_answer(reader, launch, true);
  assert_null(trace_reader_touched(reader, launch));
  for (uint64_t b = 0; b < BLOCKS; b++) trace_reader_release(reader, trace_reader_chunk(reader, launch, b));
  trace_reader_free(reader);
  trace_program_free(program);
}

/* All want none, but it has been finished before the question ends. */
static void a_finished_launch_is_not_touched(void **state) {
  trace_program *program = trace_program_create(0);
  trace_reader *reader;
  trace_launch *launch = launch_with_reader(program, &reader);
  trace_reader_answer(reader, launch, true);
  trace_launch_finish(launch);
  assert_false(trace_launch_ask(launch));
  assert_null(trace_reader_touched(reader, launch));
  trace_reader_free(reader);
  trace_program_free(program);
}

/* ---- what stands for the records ---- */

typedef struct seen {
  uint64_t instructions, exits;
  footprint touched;
} seen;

static void read_warp(trace_reader *reader, trace_chunk *chunk, uint32_t warp, seen *s) {
  trace_cursor cursor;
  const uint64_t *word;
  trace_cursor_open(reader, chunk, warp, &cursor);
  do {
    word = trace_cursor_next(reader, &cursor);
    if (trace_word_kind(*word) == TRACE_ISSUE) s->instructions += trace_issue_count(*word);
    if (trace_word_kind(*word) == TRACE_ACCESS) footprint_access(&s->touched, word);
  } while (trace_word_kind(*word) != TRACE_EXIT);
  s->exits++;
  trace_cursor_close(reader, &cursor);
}

/* Random accesses by random blocks: the chunks touch the same sectors, each block what it was the last to touch, with
 * as many instructions. */
static void the_same_is_touched(footprint_meets *meets, uint64_t seed) {
  trace_program *program = trace_program_create(0);
  trace_program_units(program, seed & 1);
  trace_reader *reader = trace_reader_create(program);
  trace_reader_answers(reader);
  trace_launch *launch = trace_launch_create(program, BLOCKS, WARPS);
  footprint f;
  footprint_open(&f, meets, NULL);
  uint64_t state = seed, instructions = 77777 * seed;
  for (int n = 0; n < 300; n++) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t op = state >> 60 & 3, line = (state >> 20) % (PAGES * 32), sectors = 1 + (state >> 40) % 15;
    uint64_t record[3] = {TRACE_ACCESS | op << 4 | 1 << 16, UINT32_MAX, trace_line(line * 128, 32, (uint32_t)sectors)};
    footprint_block(&f, (state >> 33) % BLOCKS);
    footprint_access(&f, record);
  }
  trace_launch_may_ask(launch);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = launch});
  const trace_op *op = trace_reader_next_op(reader);
  trace_reader_answer(reader, op->launch, true);
  assert_true(trace_launch_ask(launch));
  trace_launch_touch(launch, &f, instructions);
  trace_launch_finish(launch);
  const trace_touched *touched = trace_reader_touched(reader, op->launch);
  assert_int_equal(touched->count, f.pieces.count);
  seen s = {0};
  footprint_open(&s.touched, meets, NULL);
  for (uint64_t b = 0; b < BLOCKS; b++) {
    trace_chunk *chunk = trace_reader_chunk(reader, op->launch, b);
    footprint_block(&s.touched, b);
    for (uint32_t w = 0; w < WARPS; w++) read_warp(reader, chunk, w, &s);
    if (b != 2 || seed % 3) trace_reader_release(reader, chunk); /* else a reader leaves that holds one */
  }
  footprint_sort(&s.touched);
  assert_int_equal(s.exits, BLOCKS * WARPS);
  assert_int_equal(s.instructions, instructions);
  size_t at = 0;
  for (size_t i = 0; i < f.pieces.count; i++) {
    const footprint_piece *a = &f.pieces.items[i], *b = &s.touched.pieces.items[at];
    if (!a->lines) continue; /* it only says that its page is divided */
    while (!b->lines) b = &s.touched.pieces.items[++at];
    assert_int_equal(a->line, b->line);
    assert_int_equal(a->last, b->last);
    assert_memory_equal(a->read, b->read, sizeof a->read);
    assert_memory_equal(a->written, b->written, sizeof a->written);
    at++;
  }
  footprint_free(&f);
  footprint_free(&s.touched);
  trace_reader_free(reader);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_END});
  trace_program_free(program);
}

static void chunks_are_made(void **state) {
  for (uint64_t seed = 0; seed < 12; seed++) the_same_is_touched(seed % 2 ? no_page_meets : all_pages_meet, seed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_must_want_none),
      cmocka_unit_test(who_is_not_asked_has_records),
      cmocka_unit_test(a_reader_that_never_answers_has_records),
      cmocka_unit_test(a_reader_that_waits_means_no),
      cmocka_unit_test(nobody_reads),
      cmocka_unit_test(a_launch_may_be_finished_meanwhile),
      cmocka_unit_test(a_finished_launch_is_not_touched),
      cmocka_unit_test(chunks_are_made),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
