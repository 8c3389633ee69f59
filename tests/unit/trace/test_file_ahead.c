/* SPDX-License-Identifier: Apache-2.0 */
/* Files with footprints: what they say of blocks is what the blocks' records say, and a reader that takes blocks late,
 * in another order of launches, or not at all, gets of each launch what was recorded. */
#include "file_program.h"

#include "trace/ahead.h"

/* What is left out, of a program without marks. */
enum { WAYS = 2 };
static const uint32_t left_out[WAYS] = {TRACE_NO_MARKS, TRACE_NO_MARKS | TRACE_NO_LATE_WAITS};

typedef struct opened { /* a launch of which blocks are left */
  trace_launch *launch;
  uint64_t number, next;
  bool looked; /* at all blocks from some block on: how many instructions they are said to have, and those taken had */
  uint64_t said[WAYS], had[WAYS];
} opened;

typedef struct lane {
  const shape *shape;
  trace_file *file;
  trace_program *program;
  trace_reader *reader;
  trace_feed *feed;
  FF_VEC(opened) open;
  uint64_t launches, taken, leapt, looks, idles;
} lane;

static void pull(void *context) {
  lane *l = context;
  if (!trace_feed_step(l->feed)) trace_op_append(l->program, &(trace_op){.kind = TRACE_OP_END});
}

static void idle(void *context) { ((lane *)context)->idles++; }

static bool no_page(void *context, uint64_t page) { return false; }

/* ---- what the records say ---- */

static void read_records(const lane *l, const opened *o, uint64_t block, footprint *to) {
  uint64_t words[WORDS];
  for (uint32_t warp = 0; warp < o->launch->warps_per_block; warp++)
    for (uint32_t n = 0; n <= records_of(l->shape, o->number, block, warp); n++) {
      make_record(l->shape, o->number, block, warp, n, words);
      if (trace_word_kind(words[0]) == TRACE_ACCESS) footprint_access(to, words);
    }
}

static void same_piece(const footprint_piece *a, const footprint_piece *b) { assert_memory_equal(a, b, sizeof *a); }

/* ---- what is done with blocks ---- */

/* As a simulation counts a warp's instructions. */
static uint64_t instructions_of(lane *l, trace_chunk *chunk, uint32_t warp, uint32_t without) {
  trace_cursor cursor;
  uint64_t instructions = 0;
  trace_cursor_open(l->reader, chunk, warp, &cursor);
  for (trace_kind kind = TRACE_ISSUE; kind != TRACE_EXIT;) {
    trace_counts units = {{0}};
    uint64_t word = *trace_cursor_next(l->reader, &cursor);
    kind = trace_word_kind(word);
    if (kind != TRACE_ISSUE) continue;
    word = trace_cursor_issue(l->reader, &cursor, word, without, &units);
    instructions += trace_issue_memory(word) && !trace_issue_count(word) ? 1 : trace_issue_count(word);
  }
  trace_cursor_close(l->reader, &cursor);
  return instructions;
}

static void take(lane *l, opened *o) {
  uint64_t words[WORDS];
  trace_chunk *chunk = trace_reader_chunk(l->reader, o->launch, o->next);
  for (uint32_t warp = 0; warp < o->launch->warps_per_block; warp++) {
    trace_cursor cursor;
    for (int way = 0; way < WAYS; way++) o->had[way] += instructions_of(l, chunk, warp, left_out[way]);
    if (l->shape->marks) continue; /* which are left out */
    trace_cursor_open(l->reader, chunk, warp, &cursor);
    for (uint32_t n = 0; n <= records_of(l->shape, o->number, o->next, warp); n++) {
      const uint64_t *record = trace_cursor_next(l->reader, &cursor);
      uint32_t count = make_record(l->shape, o->number, o->next, warp, n, words);
      assert_memory_equal(record, words, count * sizeof words[0]);
    }
    trace_cursor_close(l->reader, &cursor);
  }
  trace_reader_release(l->reader, chunk);
  o->next++;
  l->taken++;
  for (int way = 0; way < WAYS && o->looked && o->next == o->launch->blocks; way++)
    assert_int_equal(o->had[way], o->said[way]);
}

/* All that are left. They can be looked at only if no frame of theirs was begun. */
static void look(lane *l, opened *o, bool leaps) {
  uint64_t blocks = o->launch->blocks - o->next;
  footprint said, own;
  footprint_open(&said, no_page, NULL);
  footprint_open(&own, no_page, NULL);
  bool known = false;
  for (int way = 0; way < WAYS; way++) {
    footprint_clear(&said);
    known = trace_reader_look(l->reader, o->launch, o->next, blocks, left_out[way], &said, &o->said[way]);
    o->had[way] = 0;
  }
  o->looked = known;
  if (known) {
    for (uint64_t b = 0; b < blocks; b++) {
      footprint_block(&own, b);
      read_records(l, o, o->next + b, &own);
    }
    footprint_sort(&own);
    footprint_sort(&said);
    assert_int_equal(said.pieces.count, own.pieces.count);
    for (size_t i = 0; i < own.pieces.count; i++) same_piece(&said.pieces.items[i], &own.pieces.items[i]);
    assert_memory_equal(&said.sum, &own.sum, sizeof own.sum);
    l->looks++;
  }
  footprint_free(&said);
  footprint_free(&own);
  assert_true(known || o->next);
  if (!known || !leaps) return;
  trace_reader_leap(l->reader, o->launch, blocks);
  o->next += blocks;
  l->leapt += blocks;
}

static void work(lane *l, uint64_t random) {
  size_t at = mix(random) % l->open.count;
  opened *o = &l->open.items[at];
  if (random % 4 == 0) look(l, o, random % 8 == 0);
  for (uint64_t n = mix(random + 1) % 90; n && o->next < o->launch->blocks; n--) take(l, o);
  if (o->next == o->launch->blocks) l->open.items[at] = l->open.items[--l->open.count];
}

static void blocks_come_when_they_are_wanted(void **state) {
  char *path = path_of("ahead.fft");
  uint64_t looks = 0, leapt = 0, taken = 0;
  for (uint64_t seed = 1; seed <= 6; seed++) {
    const shape s = {.seed = seed,
                     .operations = 60,
                     .blocks_most = 200,
                     .records_most = 20,
                     .marks = seed % 3 == 0,
                     .footprints = true};
    write_file(path, &s);
    lane l = {.shape = &s};
    ff_error error;
    assert_int_equal(trace_file_open(path, &l.file, &error), FF_OK);
    assert_true(trace_file_information(l.file)->about.footprints);
    l.program = trace_program_create(0);
    l.reader = trace_reader_create(l.program);
    assert_int_equal(trace_feed_create_ahead(l.file, l.program, NULL, idle, &l, &l.feed, &error), FF_OK);
    trace_program_pull(l.program, pull, &l);
    uint64_t operations = 0, random = seed;
    for (const trace_op *op; (op = trace_reader_next_op(l.reader)) && op->kind != TRACE_OP_END; operations++) {
      if (op->kind == TRACE_OP_LAUNCH && op->launch->blocks)
        FF_PUSH(&l.open, ((opened){.launch = op->launch, .number = l.launches}));
      l.launches += op->kind == TRACE_OP_LAUNCH;
      while (l.open.count && mix(random++) % 3) work(&l, mix(random++));
    }
    assert_int_equal(operations, s.operations);
    assert_true(trace_feed_is_idle(l.feed) || l.open.count);
    while (l.open.count) work(&l, mix(random++));
    assert_true(trace_feed_is_idle(l.feed));
    looks += l.looks;
    leapt += l.leapt;
    taken += l.taken;
    assert_int_equal(trace_feed_free(l.feed, &error), FF_OK);
    trace_reader_free(l.reader);
    trace_program_free(l.program);
    trace_file_close(l.file);
    free(l.open.items);
  }
  assert_true(looks > 20 && leapt > 500 && taken > 2000);
  unlink(path);
  free(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_come_when_they_are_wanted)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
