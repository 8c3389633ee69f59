/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of trace files: the stream that one feeds is the recorded one; a copy has what was selected; marks come
 * back, or are left out where nobody wants them. */
#include "file_program.h"

#include <pthread.h>

#include "trace/trace_frame.h"

/* ---- the stream, and copies ---- */

typedef struct fed {
  trace_program *program;
  trace_reader *reader;
  const shape *shape;
  uint64_t launches, operations;
} fed;

static void *read_stream(void *argument) {
  fed *f = argument;
  uint64_t words[WORDS];
  for (const trace_op *op; (op = trace_reader_next_op(f->reader)) && op->kind != TRACE_OP_END;) {
    trace_op wanted;
    trace_launch launch;
    make_operation(f->shape, f->operations, f->launches, &wanted, &launch);
    assert_int_equal(op->kind, wanted.kind);
    assert_int_equal(op->sequence, f->operations++);
    if (op->kind != TRACE_OP_LAUNCH) continue;
    assert_string_equal(op->launch->kernel, launch.kernel);
    assert_int_equal(op->launch->id, f->launches);
    assert_memory_equal(op->launch->parameters, launch.parameters, launch.parameter_bytes);
    for (uint64_t block = 0; block < op->launch->blocks; block++) {
      trace_chunk *chunk = trace_reader_chunk(f->reader, op->launch, block);
      for (uint32_t warp = 0; warp < op->launch->warps_per_block; warp++) {
        trace_cursor cursor;
        trace_cursor_open(f->reader, chunk, warp, &cursor);
        for (uint32_t n = 0; n <= records_of(f->shape, f->launches, block, warp); n++) {
          const uint64_t *record = trace_cursor_next(f->reader, &cursor);
          uint32_t count = make_record(f->shape, f->launches, block, warp, n, words);
          assert_memory_equal(record, words, count * sizeof words[0]);
        }
        trace_cursor_close(f->reader, &cursor);
      }
      trace_reader_release(f->reader, chunk);
    }
    f->launches++;
  }
  return NULL;
}

static void fed_streams_are_the_recorded_ones(void **state) {
  (void)state;
  char *path = path_of("feed.fft");
  write_file(path, &large);
  trace_file *file;
  assert_int_equal(trace_file_open(path, &file, NULL), FF_OK);
  fed f = {.program = trace_program_create(1 << 20), .shape = &large};
  f.reader = trace_reader_create(f.program);
  pthread_t thread;
  pthread_create(&thread, NULL, read_stream, &f);
  ff_error error;
  assert_int_equal(trace_file_feed(file, f.program, NULL, &error), FF_OK);
  trace_op_append(f.program, &(trace_op){.kind = TRACE_OP_END});
  pthread_join(thread, NULL);
  assert_int_equal(f.operations, large.operations);
  trace_reader_free(f.reader);
  trace_program_free(f.program);
  trace_file_close(file);
  unlink(path);
  free(path);
}

/* ---- marks ---- */

static const shape marked = {.seed = 8, .operations = 45, .blocks_most = 25, .records_most = 300, .marks = true};

static void expect_version(const char *path, int version) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_int_equal(fseek(file, 8, SEEK_SET), 0);
  int low = fgetc(file), high = fgetc(file);
  assert_int_equal(low | high << 8, version);
  fclose(file);
}

static void marks_come_back(void **state) {
  (void)state;
  char *path = path_of("marks.fft"), *part = path_of("marks-part.fft");
  shape late = marked, none = {.seed = 9, .operations = 40, .blocks_most = 3, .records_most = 12, .marks = true};
  late.late = true;
  trace_file *file;
  trace_copied copied;
  ff_error error;
  trace_selection all = {.last_launch = UINT64_MAX, .last_block = UINT64_MAX};
  for (int i = 0; i < 2; i++) {
    write_file(path, i ? &late : &marked);
    check_file(path, &marked);
    /* there are ranges, launches in them, sites and ASYNC records, some of other blocks, and priorities in the L2,
     * too */
    expect_version(path, 476 + 4096);
    assert_int_equal(trace_file_open(path, &file, NULL), FF_OK);
    assert_true(trace_file_information(file)->about.marks);
    unlink(part);
    assert_int_equal(trace_file_copy(file, part, &all, NULL, &copied, &error), FF_OK);
    trace_file_close(file);
    check_file(part, &marked);
    expect_version(part, 476 + 4096);
  }
  write_file(path, &small);
  expect_version(path, 475 + 4096);
  none.operations = 0;
  write_file(path, &none);
  expect_version(path, 2); /* it was told that there are to be some */
  unlink(path);
  unlink(part);
  free(path);
  free(part);
}

/* What is left of a warp's words: two ISSUEs with marks between them are one if they fit. */
static size_t leave_out_marks(const shape *s, uint64_t launch, uint64_t block, uint32_t warp, uint64_t *out) {
  uint64_t words[WORDS];
  size_t count = 0, last = SIZE_MAX; /* the ISSUE that is still open, and whether a mark came behind it */
  bool mark = false;
  for (uint32_t n = 0; n <= records_of(s, launch, block, warp); n++) {
    uint32_t length = make_record(s, launch, block, warp, n, words);
    trace_kind kind = trace_word_kind(words[0]);
    if (kind == TRACE_ENTER || kind == TRACE_LEAVE) {
      mark = true;
      continue;
    }
    uint64_t issue = last == SIZE_MAX ? 0 : out[last];
    if (kind == TRACE_ISSUE && !trace_issue_count(words[0]) && !trace_issue_memory(words[0])) continue;
    if (kind == TRACE_ISSUE && mark && issue && trace_issue_count(issue) + trace_issue_count(words[0]) <= 0x3fff &&
        trace_issue_memory(issue) + trace_issue_memory(words[0]) <= 0x3fff) {
      out[last] += words[0] & ~UINT64_C(15);
    } else {
      last = kind == TRACE_ISSUE ? count : SIZE_MAX;
      memcpy(out + count, words, length * sizeof *words);
      count += length;
    }
    mark = false;
  }
  return count;
}

typedef struct unmarked {
  trace_reader *reader;
  uint64_t launches, words;
  bool joins;
} unmarked;

static void *read_unmarked(void *argument) {
  unmarked *u = argument;
  uint64_t *want = malloc(sizeof *want * WORDS * 400);
  for (const trace_op *op; (op = trace_reader_next_op(u->reader)) && op->kind != TRACE_OP_END;) {
    if (op->kind != TRACE_OP_LAUNCH) continue;
    for (uint64_t block = 0; block < op->launch->blocks; block++) {
      trace_chunk *chunk = trace_reader_chunk(u->reader, op->launch, block);
      for (uint32_t warp = 0; warp < op->launch->warps_per_block; warp++) {
        trace_cursor cursor;
        size_t count = leave_out_marks(&marked, u->launches, block, warp, want);
        trace_cursor_open(u->reader, chunk, warp, &cursor);
        for (size_t at = 0; at < count;) {
          const uint64_t *record = trace_cursor_next(u->reader, &cursor);
          trace_kind kind = trace_word_kind(*record);
          uint64_t word = *record;
          if (u->joins && kind == TRACE_ISSUE && !trace_issue_count(word) && !trace_issue_memory(word)) continue;
          trace_counts units = {{0}};
          if (u->joins && kind == TRACE_ISSUE)
            word = trace_cursor_issue(u->reader, &cursor, word, TRACE_NO_MARKS, &units);
          if (u->joins && (kind == TRACE_ENTER || kind == TRACE_LEAVE)) continue;
          assert_int_equal(word, want[at]);
          uint32_t length = kind == TRACE_ACCESS ? 2 + trace_access_lines(word) : 1;
          if (length > 1) assert_memory_equal(record, want + at, length * sizeof *want);
          at += length;
        }
        trace_cursor_close(u->reader, &cursor);
        u->words += count;
      }
      trace_reader_release(u->reader, chunk);
    }
    u->launches++;
  }
  free(want);
  return NULL;
}

/* Left out by the feed, and by a reader of a stream that has them. */
static void marks_are_left_out(void **state) {
  (void)state;
  char *path = path_of("unmarked.fft");
  write_file(path, &marked);
  uint64_t words[2];
  for (int joins = 0; joins < 2; joins++) {
    trace_file *file;
    assert_int_equal(trace_file_open(path, &file, NULL), FF_OK);
    trace_program *program = trace_program_create(1 << 20);
    trace_program_mark(program, joins);
    unmarked u = {.reader = trace_reader_create(program), .joins = joins};
    pthread_t thread;
    pthread_create(&thread, NULL, read_unmarked, &u);
    ff_error error;
    assert_int_equal(trace_file_feed(file, program, NULL, &error), FF_OK);
    trace_op_append(program, &(trace_op){.kind = TRACE_OP_END});
    pthread_join(thread, NULL);
    trace_reader_free(u.reader);
    trace_program_free(program);
    trace_file_close(file);
    words[joins] = u.words;
  }
  assert_true(words[0] == words[1] && words[0] > 10000);
  unlink(path);
  free(path);
}

/* ---- ISSUEs, their UNITS and marks between them ---- */

/* What warp `warp` of the chunk has: each ISSUE with its UNITS added up, and the other words. Returns how many records
 * there are. */
typedef struct counted_word {
  uint64_t word;
  trace_counts units;
} counted_word;

static uint32_t counted_words(trace_reader *reader, trace_chunk *chunk, uint32_t warp, counted_word *out) {
  trace_cursor cursor;
  trace_cursor_open(reader, chunk, warp, &cursor);
  for (uint32_t n = 0;; n++) {
    out[n] = (counted_word){.word = *trace_cursor_next(reader, &cursor)};
    if (trace_word_kind(out[n].word) == TRACE_ISSUE)
      out[n].word = trace_cursor_issue(reader, &cursor, out[n].word, 0, &out[n].units);
    if (trace_word_kind(out[n].word) != TRACE_EXIT) continue;
    trace_cursor_close(reader, &cursor);
    return n + 1;
  }
}

/* A random stream of one warp; an EXIT is its last word. */
static uint32_t make_words(uint64_t seed, uint64_t *words) {
  uint32_t count = 0;
  bool inside = false;
  for (uint64_t n = 0; n < 60; n++) {
    uint64_t r = mix(seed * 64 + n);
    if (r % 8 < 5) {
      uint64_t instructions = r / 8 % 16 ? 1 + r / 128 % 9000 : 0;
      words[count++] = TRACE_ISSUE | instructions << 4 | (r / 1024 % 4 ? 0 : r / 4096 % 9000) << 20;
      for (uint64_t u = 0; instructions && u < r / 65536 % 8; u++)
        words[count++] = TRACE_UNITS | (mix(r + u) & ~UINT64_C(15) & ~(UINT64_C(63) << 58)) | mix(u + r) % 64 << 58;
    } else if (r % 8 == 5) {
      words[count++] = TRACE_WAIT | r / 8 % 4 << 32;
    } else {
      words[count++] = (inside ? TRACE_LEAVE : TRACE_ENTER) | UINT64_C(5) << 32;
      inside = !inside;
    }
  }
  words[count++] = TRACE_EXIT;
  return count;
}

/* By pack_take_warp, in pieces of so many words (as frames end anywhere), and word by word: the same stream. */
static void issues_are_copied(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 300; seed++) {
    uint64_t words[1000], instructions = 0, want = 0;
    uint32_t count = make_words(seed, words), piece = seed % 3 ? count : 1 + (uint32_t)(seed / 3 % 11);
    pack_coder *coder = pack_coder_create();
    pack_bytes columns[PACK_COLUMNS] = {0};
    for (uint32_t i = 0; i < count; i++) pack_put(coder, columns, &words[i]);
    pack_view views[PACK_COLUMNS];
    for (int i = 0; i < PACK_COLUMNS; i++)
      views[i] = (pack_view){columns[i].items, columns[i].count ? columns[i].items + columns[i].count : NULL};
    pack_coder_reset(coder);
    trace_program *program = trace_program_create(0);
    trace_program_units(program, seed % 5 != 0);
    trace_reader *reader = trace_reader_create(program);
    trace_launch *launch = trace_launch_create(program, 1, 2);
    trace_op_append(program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = launch});
    trace_chunk *chunk = trace_chunk_begin(launch, 0);
    trace_writer writer;
    trace_chunk_writer(chunk, 0, &writer);
    for (uint32_t left, done = 0; done < count; done += piece) {
      left = count - done < piece ? count - done : piece;
      assert_int_equal(pack_take_warp(coder, views, &writer, false, &left, &instructions), done + piece >= count);
      assert_int_equal(left, 0);
    }
    trace_put_exit(&writer);
    trace_chunk_writer(chunk, 1, &writer);
    for (uint32_t i = 0; i + 1 < count; i++) {
      trace_copy_word(&writer, words[i]);
      if (trace_word_kind(words[i]) == TRACE_ISSUE) want += trace_issue_count(words[i]);
    }
    trace_put_exit(&writer);
    trace_chunk_publish(chunk);
    trace_launch_finish(launch);
    trace_op_append(program, &(trace_op){.kind = TRACE_OP_END});
    assert_int_equal(instructions, want);
    chunk = trace_reader_chunk(reader, trace_reader_next_op(reader)->launch, 0);
    counted_word copied[1000] = {0}, wanted[1000] = {0};
    assert_int_equal(counted_words(reader, chunk, 0, copied), counted_words(reader, chunk, 1, wanted));
    assert_memory_equal(copied, wanted, sizeof copied);
    trace_reader_release(reader, chunk);
    trace_reader_free(reader);
    trace_program_free(program);
    for (int i = 0; i < PACK_COLUMNS; i++) free(columns[i].items);
    pack_coder_free(coder);
  }
}

/* Records of version 1: the first word of an ENTER has its trips. */
static void plain_marks(void **state) {
  (void)state;
  pack_coder *coder = pack_coder_create();
  pack_coder_plain(coder);
  pack_bytes columns[PACK_COLUMNS] = {0};
  uint64_t words[3] = {TRACE_ENTER | 7 << 4 | UINT64_C(3) << 32, TRACE_ENTER | UINT64_C(3) << 32,
                       TRACE_LEAVE | UINT64_C(3) << 32},
           back[PACK_RECORD_WORDS];
  for (int i = 0; i < 3; i++) pack_put(coder, columns, &words[i]);
  assert_int_equal(columns[PACK_WORDS].count, 24);
  pack_view views[PACK_COLUMNS];
  for (int i = 0; i < PACK_COLUMNS; i++)
    views[i] = (pack_view){columns[i].items, columns[i].count ? columns[i].items + columns[i].count : NULL};
  pack_coder_reset(coder);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(pack_take(coder, views, back), 1);
    assert_int_equal(back[0], words[i]);
  }
  for (int i = 0; i < PACK_COLUMNS; i++) free(columns[i].items);
  pack_coder_free(coder);
}

static void parts_have_what_was_selected(void **state) {
  (void)state;
  char *path = path_of("whole.fft"), *part = path_of("part.fft");
  write_file(path, &large);
  trace_file *file, *copy;
  ff_error error;
  trace_copied copied;
  trace_item item;
  trace_selection all = {.last_launch = UINT64_MAX, .last_block = UINT64_MAX},
                  some = {.first_launch = 1, .last_launch = 4, .first_block = 2, .last_block = 2, .kernel = "kernel1"};
  assert_int_equal(trace_file_open(path, &file, NULL), FF_OK);
  assert_int_equal(trace_file_copy(file, part, &all, NULL, &copied, &error), FF_OK);
  check_file(part, &large);
  assert_int_equal(copied.operations, large.operations);
  unlink(part);
  assert_int_equal(trace_file_copy(file, part, &some, NULL, &copied, &error), FF_OK);
  uint64_t launches = 0, expected = 0, operations = 0, kept = 0;
  for (uint64_t op = 0; op < large.operations; op++) {
    trace_op wanted;
    trace_launch launch;
    make_operation(&large, op, launches, &wanted, &launch);
    if (wanted.kind != TRACE_OP_LAUNCH) {
      expected++;
      continue;
    }
    bool keep = launches >= 1 && launches <= 4 && launch.kernel_index == 1;
    expected += keep;
    kept += keep;
    launches++;
  }
  assert_int_equal(trace_file_open(part, &copy, NULL), FF_OK);
  uint64_t records = 0;
  while (trace_file_next(copy, &item, &error) == FF_OK && item.kind != TRACE_ITEM_END) {
    if (item.kind == TRACE_ITEM_OPERATION) {
      operations++;
      if (item.op->kind == TRACE_OP_LAUNCH) assert_int_equal(item.op->launch->kernel_index, 1);
    } else {
      if (item.block != 2) assert_int_equal(item.record[0], TRACE_EXIT);
      records += item.block == 2;
    }
  }
  assert_int_equal(operations, expected);
  assert_int_equal(copied.launches, kept);
  assert_true(kept > 0 && records > 10);
  trace_file_close(copy);
  trace_file_close(file);
  unlink(path);
  unlink(part);
  free(path);
  free(part);
}

/* A spill of no word, of more than a record holds, or by no lane is no record, word by word and by the warp. */
static void spills_that_are_none(void **state) {
  (void)state;
  static const uint64_t spill = TRACE_SPILL | UINT64_C(9) << 12 | UINT64_C(3) << 32;
  for (uint64_t words = 0; words < 8; words++)
    for (uint64_t sectors = 0; sectors < 16; sectors += 5) {
      const uint64_t put[2] = {spill | words << 5 | sectors << 8, TRACE_EXIT};
      bool good = words >= 1 && words <= TRACE_SPILL_WORDS && sectors;
      uint64_t back[PACK_RECORD_WORDS], instructions = 0;
      pack_coder *coder = pack_coder_create();
      pack_bytes columns[PACK_COLUMNS] = {0};
      for (int i = 0; i < 2; i++) pack_put(coder, columns, &put[i]);
      pack_view views[PACK_COLUMNS], again[PACK_COLUMNS];
      for (int i = 0; i < PACK_COLUMNS; i++)
        views[i] = (pack_view){columns[i].items, columns[i].count ? columns[i].items + columns[i].count : NULL};
      memcpy(again, views, sizeof again);
      pack_coder_reset(coder);
      assert_int_equal(pack_take(coder, views, back), good);
      if (good) assert_int_equal(back[0], put[0]);
      trace_program *program = trace_program_create(0);
      trace_launch *launch = trace_launch_create(program, 1, 1);
      trace_writer writer;
      trace_chunk *chunk = trace_chunk_begin(launch, 0);
      trace_chunk_writer(chunk, 0, &writer);
      uint32_t left = 2;
      pack_coder_reset(coder);
      assert_int_equal(pack_take_warp(coder, again, &writer, false, &left, &instructions), good);
      assert_int_equal(left, good ? 0 : 2);
      trace_put_exit(&writer);
      trace_chunk_publish(chunk);
      trace_launch_finish(launch);
      trace_program_free(program);
      for (int i = 0; i < PACK_COLUMNS; i++) free(columns[i].items);
      pack_coder_free(coder);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fed_streams_are_the_recorded_ones),
      cmocka_unit_test(parts_have_what_was_selected),
      cmocka_unit_test(marks_come_back),
      cmocka_unit_test(marks_are_left_out),
      cmocka_unit_test(issues_are_copied),
      cmocka_unit_test(plain_marks),
      cmocka_unit_test(spills_that_are_none),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
