/* SPDX-License-Identifier: Apache-2.0 */
/* The access stream: what is written comes back, whole and in order, whatever the threads, the budget and the pace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "trace/stream.h"

/* A small generator, so that writer and checker agree on the content without sharing it. */
static uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= UINT64_C(0xff51afd7ed558ccd);
  x ^= x >> 29;
  x *= UINT64_C(0xc4ceb9fe1a85ec53);
  return x ^ x >> 32;
}

static uint32_t records_of(uint64_t seed, uint32_t most) { return (uint32_t)(mix(seed) % (most + 1)); }

static uint64_t seed_of(uint64_t launch, uint64_t block, uint32_t warp) {
  return mix(launch * 1000003 + block * 64 + warp);
}

static void write_warp(trace_chunk *chunk, uint64_t seed, uint32_t warp, uint32_t most) {
  trace_writer w;
  trace_chunk_writer(chunk, warp, &w);
  uint32_t n = records_of(seed, most);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t r = mix(seed + i);
    switch (r % 4) {
    case 0: {
      uint32_t lines = 1 + (uint32_t)(r / 8 % 64);
      uint64_t *at = trace_put_access(&w, r / 1024 % 4, (uint32_t)(r / 4096 % 5), (uint32_t)(r / 65536 % 16), i,
                                      (uint32_t)r, lines);
      for (uint32_t l = 0; l < lines; l++) at[l] = trace_line(mix(r + l) >> 24, 1 + l % 32, 1 + l % 15);
      break;
    }
    case 1: trace_put_issue(&w, 1 + (uint32_t)(r / 8 % 8000), (uint32_t)(r / 65536 % 8000), 0, 0); break;
    case 2: trace_put_wait(&w, (uint32_t)(r >> 40)); break;
    case 3: trace_put_barrier(&w, r / 8 % 16, r / 128 % 2, r / 256 % 65536); break;
    }
  }
  trace_put_exit(&w);
}

static void write_block(trace_launch *launch, uint64_t block, uint32_t most) {
  trace_chunk *chunk = trace_chunk_begin(launch, block);
  for (uint32_t w = 0; w < launch->warps_per_block; w++) write_warp(chunk, seed_of(launch->id, block, w), w, most);
  trace_chunk_publish(chunk);
}

/* Sums of ISSUEs are compared, since neighbours are merged while they are written. */
static void check_warp(trace_reader *reader, trace_chunk *chunk, uint64_t seed, uint32_t warp, uint32_t most) {
  trace_cursor cursor;
  trace_cursor_open(reader, chunk, warp, &cursor);
  uint32_t n = records_of(seed, most);
  uint64_t issue = 0, memory = 0, issue_seen = 0, memory_seen = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t r = mix(seed + i);
    if (r % 4 == 1) {
      issue += 1 + r / 8 % 8000;
      memory += r / 65536 % 8000;
      continue;
    }
    const uint64_t *at = trace_cursor_next(reader, &cursor);
    for (; trace_word_kind(*at) == TRACE_ISSUE; at = trace_cursor_next(reader, &cursor)) {
      issue_seen += trace_issue_count(*at);
      memory_seen += trace_issue_memory(*at);
    }
    assert_int_equal(issue_seen, issue);
    if (r % 4 == 0) {
      assert_int_equal(trace_word_kind(*at), TRACE_ACCESS);
      assert_int_equal(trace_access_lines(*at), 1 + r / 8 % 64);
      assert_int_equal(trace_access_operation(*at), r / 1024 % 4);
      assert_int_equal(trace_access_bytes(*at), 1u << r / 4096 % 5);
      assert_int_equal(trace_access_flags(*at), r / 65536 % 16);
      assert_int_equal(trace_access_pc(*at), i);
      assert_int_equal(at[1], (uint32_t)r);
      for (uint32_t l = 0; l < trace_access_lines(*at); l++) {
        assert_int_equal(trace_line_address(at[2 + l]), (mix(r + l) >> 24) / 128 * 128);
        assert_int_equal(trace_line_lanes(at[2 + l]), 1 + l % 32);
        assert_int_equal(trace_line_sectors(at[2 + l]), 1 + l % 15);
      }
    } else if (r % 4 == 2) {
      assert_int_equal(trace_word_kind(*at), TRACE_WAIT);
      assert_int_equal(trace_wait_k(*at), (uint32_t)(r >> 40));
    } else {
      assert_int_equal(trace_word_kind(*at), TRACE_BARRIER);
      assert_int_equal(trace_barrier_id(*at), r / 8 % 16);
      assert_int_equal(trace_barrier_arrive_only(*at), r / 128 % 2);
      assert_int_equal(trace_barrier_expected(*at), r / 256 % 65536);
    }
  }
  const uint64_t *at = trace_cursor_next(reader, &cursor);
  for (; trace_word_kind(*at) == TRACE_ISSUE; at = trace_cursor_next(reader, &cursor)) {
    issue_seen += trace_issue_count(*at);
    memory_seen += trace_issue_memory(*at);
  }
  assert_int_equal(issue_seen, issue);
  assert_int_equal(memory_seen, memory);
  assert_int_equal(trace_word_kind(*at), TRACE_EXIT);
  trace_cursor_close(reader, &cursor);
}

static void check_block(trace_reader *reader, trace_launch *launch, uint64_t block, uint32_t most) {
  trace_chunk *chunk = trace_reader_chunk(reader, launch, block);
  for (uint32_t w = 0; w < launch->warps_per_block; w++)
    check_warp(reader, chunk, seed_of(launch->id, block, w), w, most);
  trace_reader_release(reader, chunk);
}

static trace_launch *append_launch(trace_program *program, uint64_t blocks, uint32_t warps) {
  trace_launch *launch = trace_launch_create(program, blocks, warps);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = launch});
  return launch;
}

static void append_end(trace_program *program) { trace_op_append(program, &(trace_op){.kind = TRACE_OP_END}); }

/* ---- one thread ---- */

static void test_round_trip(void **state) {
  trace_program *program = trace_program_create(0);
  trace_reader *reader = trace_reader_create(program);
  trace_launch *launch = append_launch(program, 3, 2);
  for (uint64_t b = 0; b < 3; b++) write_block(launch, b, 5000);
  trace_launch_finish(launch);
  append_end(program);
  const trace_op *op = trace_reader_next_op(reader);
  assert_int_equal(op->kind, TRACE_OP_LAUNCH);
  assert_int_equal(op->sequence, 0);
  for (uint64_t b = 0; b < 3; b++) check_block(reader, op->launch, b, 5000);
  assert_int_equal(trace_reader_next_op(reader)->kind, TRACE_OP_END);
  assert_null(trace_reader_next_op(reader));
  assert_int_equal(trace_program_usage(program).memory_bytes, 0);
  assert_true(trace_program_usage(program).words > 3 * 2 * 100);
  assert_int_equal(trace_program_usage(program).spilled_bytes, 0);
  trace_reader_free(reader);
  trace_program_free(program);
}

/* Launches use the memory of those that are over again, and have nothing of theirs. */
static void test_memory_is_used_again(void **state) {
  trace_program *program = trace_program_create(0);
  trace_reader *reader = trace_reader_create(program);
  for (uint64_t l = 0; l < 3; l++) {
    trace_launch *launch = append_launch(program, 3, 2);
    assert_int_equal(launch->kernel[0] | launch->range[0] | launch->site[0], 0);
    assert_int_equal(launch->block[0] | launch->shared_bytes | launch->use_count, 0);
    launch->kernel[0] = launch->range[0] = launch->site[0] = 'k';
    launch->block[0] = launch->shared_bytes = 7;
    for (uint64_t b = 0; b < 3; b++) write_block(launch, b, 50);
    trace_launch_finish(launch);
    trace_op_append(program, &(trace_op){.kind = TRACE_OP_SYNC_DEVICE});
    const trace_op *op = trace_reader_next_op(reader);
    for (uint64_t b = 0; b < 3; b++) check_block(reader, op->launch, b, 50);
    assert_int_equal(trace_reader_next_op(reader)->kind, TRACE_OP_SYNC_DEVICE);
  }
  trace_reader_free(reader);
  trace_program_free(program);
}

static void test_out_of_order_publishing(void **state) {
  enum { BLOCKS = 300 };
  trace_program *program = trace_program_create(0);
  trace_reader *reader = trace_reader_create(program);
  trace_launch *launch = append_launch(program, BLOCKS, 1);
  trace_chunk *open[BLOCKS];
  for (int b = 0; b < BLOCKS; b++) open[b] = trace_chunk_begin(launch, (uint64_t)b);
  for (int i = 0; i < BLOCKS; i++) {
    uint64_t b = (uint64_t)(i * 7 + 5) % BLOCKS; /* 7 and 300 have no common factor: a permutation */
    write_warp(open[b], seed_of(launch->id, b, 0), 0, 40);
    trace_chunk_publish(open[b]);
  }
  trace_launch_finish(launch);
  const trace_op *op = trace_reader_next_op(reader);
  for (uint64_t b = 0; b < BLOCKS; b++) check_block(reader, op->launch, b, 40);
  assert_int_equal(trace_program_usage(program).memory_bytes, 0);
  trace_reader_free(reader);
  trace_program_free(program);
}

static void test_abandoned_launch(void **state) {
  trace_program *program = trace_program_create(0);
  trace_reader *reader = trace_reader_create(program);
  trace_launch *launch = append_launch(program, 4, 2);
  write_block(launch, 1, 50);
  trace_chunk *begun = trace_chunk_begin(launch, 2); /* stopped by a fault: never published */
  trace_writer w;
  trace_chunk_writer(begun, 0, &w);
  trace_put_issue(&w, 5, 0, 0, 0);
  trace_launch_finish(launch);
  const trace_op *op = trace_reader_next_op(reader);
  launch = op->launch;
  for (uint64_t b = 0; b < 4; b++) {
    if (b == 1) {
      check_block(reader, launch, b, 50);
      continue;
    }
    trace_chunk *chunk = trace_reader_chunk(reader, launch, b);
    for (uint32_t warp = 0; warp < 2; warp++) {
      trace_cursor cursor;
      trace_cursor_open(reader, chunk, warp, &cursor);
      assert_int_equal(trace_word_kind(*trace_cursor_next(reader, &cursor)), TRACE_EXIT);
    }
    trace_reader_release(reader, chunk);
  }
  assert_int_equal(trace_program_usage(program).memory_bytes, 0);
  trace_reader_free(reader);
  trace_program_free(program);
}

/* A stream of 5 instructions with `words` UNITS of 63 each and `further` in the upper six bits (0: as older recordings
 * have them, without products and half precision), a late wait, and 2 instructions. */
static trace_chunk *paired(trace_program *program, trace_reader *reader, uint32_t words, uint64_t further) {
  trace_launch *launch = append_launch(program, 1, 1);
  trace_chunk *chunk = trace_chunk_begin(launch, 0);
  trace_writer w;
  trace_chunk_writer(chunk, 0, &w);
  trace_put_issue(&w, 5, 0, 0, 0);
  for (uint32_t i = 0; i < words; i++) trace_copy_word(&w, further << 58 | ((UINT64_C(1) << 58) - 16 + TRACE_UNITS));
  trace_put_paired_wait(&w, 0, TRACE_LATE);
  trace_put_issue(&w, 2, 0, 0, 0);
  trace_put_exit(&w);
  trace_chunk_publish(chunk);
  trace_launch_finish(launch);
  append_end(program);
  return trace_reader_chunk(reader, trace_reader_next_op(reader)->launch, 0);
}

/* A launch of one warp with an ISSUE of so many instructions and their counts, as its reader has it. */
static trace_chunk *counted(trace_program *program, trace_reader *reader, uint32_t instructions,
                            const trace_counts *counts) {
  trace_launch *launch = append_launch(program, 1, 1);
  trace_chunk *chunk = trace_chunk_begin(launch, 0);
  const trace_counts none = {{0}};
  trace_writer w;
  trace_chunk_writer(chunk, 0, &w);
  trace_put_issue(&w, instructions, 0, 0, 0);
  trace_count_units(&w, counts, &none);
  trace_put_exit(&w);
  trace_chunk_publish(chunk);
  trace_launch_finish(launch);
  append_end(program);
  return trace_reader_chunk(reader, trace_reader_next_op(reader)->launch, 0);
}

/* Counts of more than an UNITS has room for come in several. */
static void test_units_of_an_issue_add_up(void **state) {
  uint32_t want[TRACE_UNIT_COUNT];
  trace_counts all = {{0}}, read = {{0}};
  for (uint32_t u = 0; u < TRACE_UNIT_COUNT; u++) {
    want[u] = 17 + 50 * u;
    all.word[u / 3] += (uint64_t)want[u] << u % 3 * TRACE_UNIT_BITS;
  }
  trace_program *program = trace_program_create(0);
  trace_program_units(program, true);
  trace_reader *reader = trace_reader_create(program);
  trace_chunk *chunk = counted(program, reader, 900, &all);
  trace_cursor cursor;
  trace_cursor_open(reader, chunk, 0, &cursor);
  trace_cursor_issue(reader, &cursor, *trace_cursor_next(reader, &cursor), 0, &read);
  for (uint32_t u = 0; u < TRACE_UNIT_COUNT; u++) assert_int_equal(trace_count(&read, (trace_unit)u), want[u]);
  assert_int_equal(trace_word_kind(*trace_cursor_next(reader, &cursor)), TRACE_EXIT);
  trace_cursor_close(reader, &cursor);
  trace_reader_release(reader, chunk);
  trace_reader_free(reader);
  trace_program_free(program);
}

/* Whatever the counts, their UNITS add up to them, and there are no more than it takes. */
static void test_any_units_add_up(void **state) {
  static const uint32_t most[4] = {2, 64, 130, 900};
  for (uint64_t seed = 0; seed < 400; seed++) {
    uint32_t want[TRACE_UNIT_COUNT], words = 0, last = 0;
    trace_counts all = {{0}}, read = {{0}};
    for (uint32_t u = 0; u < TRACE_UNIT_COUNT; u++) {
      uint64_t r = mix(seed * 16 + u);
      want[u] = r % 3 ? (uint32_t)(r / 3 % most[seed % 4]) : 0;
      all.word[u / 3] += (uint64_t)want[u] << u % 3 * TRACE_UNIT_BITS;
      if (u < TRACE_PRODUCTS && words < (want[u] + 62) / 63) words = (want[u] + 62) / 63;
      if (u == TRACE_PRODUCTS || u == TRACE_HALF) last += (want[u] + 30) / 31;
    }
    if (words < last) words = last;
    words += want[TRACE_MINMAX] > 0; /* one of its own */
    trace_program *program = trace_program_create(0);
    trace_program_units(program, true);
    trace_reader *reader = trace_reader_create(program);
    trace_chunk *chunk = counted(program, reader, 900, &all);
    trace_cursor cursor;
    trace_cursor_open(reader, chunk, 0, &cursor);
    assert_int_equal(trace_word_kind(*trace_cursor_next(reader, &cursor)), TRACE_ISSUE);
    for (uint32_t n = 0; n < words; n++) {
      uint64_t word = *trace_cursor_next(reader, &cursor);
      assert_int_equal(trace_word_kind(word), TRACE_UNITS);
      trace_add_units(&read, word);
    }
    for (uint32_t u = 0; u < TRACE_UNIT_COUNT; u++) assert_int_equal(trace_count(&read, (trace_unit)u), want[u]);
    assert_int_equal(trace_word_kind(*trace_cursor_next(reader, &cursor)), TRACE_EXIT);
    trace_cursor_close(reader, &cursor);
    trace_reader_release(reader, chunk);
    trace_reader_free(reader);
    trace_program_free(program);
  }
}

/* An UNITS with minima and maxima goes before the others, and has nothing else in it. */
static void test_minima_have_units_of_their_own(void **state) {
  trace_program *program = trace_program_create(0);
  trace_program_units(program, true);
  trace_reader *reader = trace_reader_create(program);
  const trace_counts counts = {{70, 0, 0, 7 | UINT64_C(500) << 2 * TRACE_UNIT_BITS}};
  trace_chunk *chunk = counted(program, reader, 500, &counts);
  trace_cursor cursor;
  trace_cursor_open(reader, chunk, 0, &cursor);
  assert_int_equal(trace_word_kind(*trace_cursor_next(reader, &cursor)), TRACE_ISSUE);
  for (int n = 0; n < 3; n++) {
    const uint64_t word = *trace_cursor_next(reader, &cursor);
    trace_counts read = {{0}};
    trace_add_units(&read, word);
    assert_int_equal(trace_word_kind(word), TRACE_UNITS);
    assert_int_equal(trace_units_minmax(word), n == 0);
    assert_int_equal(trace_units_further(word), n == 1);
    assert_int_equal(trace_count(&read, TRACE_MINMAX), n == 0 ? 500 : 0);
    assert_int_equal(trace_count(&read, TRACE_SLOTS), n == 0 ? 0 : n == 1 ? 63 : 7);
    assert_int_equal(trace_count(&read, TRACE_PRODUCTS), n == 1 ? 7 : 0);
  }
  assert_int_equal(trace_word_kind(*trace_cursor_next(reader, &cursor)), TRACE_EXIT);
  trace_cursor_close(reader, &cursor);
  trace_reader_release(reader, chunk);
  trace_reader_free(reader);
  trace_program_free(program);
}

/* Only counts of products and half precision are further ones: without them a recording is as older ones are. */
static void test_units_without_further_counts(void **state) {
  static const struct {
    uint32_t fma, products, half; /* of one ISSUE */
    bool further[2];              /* its UNITS */
  } cases[] = {{5, 0, 0, {false}}, {70, 3, 0, {true, false}}, {70, 0, 3, {true, false}}, {70, 31, 1, {true, true}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    trace_program *program = trace_program_create(0);
    trace_program_units(program, true);
    trace_reader *reader = trace_reader_create(program);
    const trace_counts counts = {{(uint64_t)cases[i].fma << TRACE_UNIT_BITS, 0, 0,
                                  cases[i].products | (uint64_t)cases[i].half << TRACE_UNIT_BITS}};
    trace_chunk *chunk = counted(program, reader, 100, &counts);
    trace_cursor cursor;
    trace_cursor_open(reader, chunk, 0, &cursor);
    assert_int_equal(trace_word_kind(*trace_cursor_next(reader, &cursor)), TRACE_ISSUE);
    for (uint32_t n = 0; n < (cases[i].fma > 63 ? 2 : 1); n++) {
      const uint64_t word = *trace_cursor_next(reader, &cursor);
      assert_int_equal(trace_word_kind(word), TRACE_UNITS);
      assert_int_equal(trace_units_further(word), cases[i].further[n]);
      if (!cases[i].further[n]) assert_int_equal(word >> 58, 0);
    }
    assert_int_equal(trace_word_kind(*trace_cursor_next(reader, &cursor)), TRACE_EXIT);
    trace_cursor_close(reader, &cursor);
    trace_reader_release(reader, chunk);
    trace_reader_free(reader);
    trace_program_free(program);
  }
}

static void test_late_waits_can_be_left_out(void **state) {
  for (uint32_t left_out = 0; left_out <= TRACE_NO_LATE_WAITS; left_out += TRACE_NO_LATE_WAITS) {
    trace_program *program = trace_program_create(0);
    trace_program_units(program, true);
    trace_reader *reader = trace_reader_create(program);
    trace_chunk *chunk = paired(program, reader, 3, 0);
    trace_cursor cursor;
    trace_counts units = {{0}};
    trace_cursor_open(reader, chunk, 0, &cursor);
    uint64_t issue = *trace_cursor_next(reader, &cursor);
    issue = trace_cursor_issue(reader, &cursor, issue, left_out, &units);
    assert_int_equal(trace_issue_count(issue), left_out ? 7 : 5);
    for (uint32_t u = 0; u < TRACE_UNIT_COUNT; u++)
      assert_int_equal(trace_count(&units, (trace_unit)u), u <= TRACE_LOADS ? 3 * 63 : 0);
    assert_int_equal(trace_word_kind(*trace_cursor_next(reader, &cursor)), left_out ? TRACE_EXIT : TRACE_WAIT);
    trace_cursor_close(reader, &cursor);
    trace_reader_release(reader, chunk);
    trace_reader_free(reader);
    trace_program_free(program);
  }
}

/* More UNITS than an ISSUE can have, as a bad file may say: the counts run over, and writing them ends. */
static void test_too_many_units_end(void **state) {
  static const uint64_t further[] = {0, 31 << 1, 31 << 1 | 1};
  for (size_t i = 0; i < sizeof further / sizeof *further; i++) {
    trace_program *program = trace_program_create(0);
    trace_program_units(program, true);
    trace_reader *reader = trace_reader_create(program);
    trace_chunk *chunk = paired(program, reader, 100000, further[i]);
    trace_reader_release(reader, chunk);
    trace_reader_free(reader);
    trace_program_free(program);
  }
}

static void test_no_readers(void **state) {
  trace_program *program = trace_program_create(0);
  for (int i = 0; i < 70000; i++) assert_int_equal(trace_op_append(program, &(trace_op){.kind = TRACE_OP_HOST}), i);
  trace_launch *launch = append_launch(program, 1000, 4);
  for (uint64_t b = 0; b < 1000; b++) {
    assert_true(trace_block_wait(launch, b, 0));
    write_block(launch, b, 100);
    assert_int_equal(trace_program_usage(program).memory_bytes, 0);
  }
  trace_launch_finish(launch);
  append_end(program);
  trace_program_free(program);
}

static void test_warp_without_writer(void **state) {
  trace_program *program = trace_program_create(1);
  trace_reader *reader = trace_reader_create(program);
  trace_launch *launch = append_launch(program, 3, 3);
  for (uint64_t b = 0; b < 3; b++) { /* also through the file: block 2 is spilled */
    trace_chunk *chunk = trace_chunk_begin(launch, b);
    write_warp(chunk, seed_of(launch->id, b, 1), 1, 10);
    trace_chunk_publish(chunk);
  }
  trace_launch_finish(launch);
  const trace_op *op = trace_reader_next_op(reader);
  for (uint64_t b = 0; b < 3; b++) {
    trace_chunk *chunk = trace_reader_chunk(reader, op->launch, b);
    for (uint32_t warp = 0; warp < 3; warp += 2) {
      trace_cursor cursor;
      trace_cursor_open(reader, chunk, warp, &cursor);
      assert_int_equal(trace_word_kind(*trace_cursor_next(reader, &cursor)), TRACE_EXIT);
      trace_cursor_close(reader, &cursor);
    }
    check_warp(reader, chunk, seed_of(op->launch->id, b, 1), 1, 10);
    trace_reader_release(reader, chunk);
  }
  assert_true(trace_program_usage(program).spilled_bytes > 0);
  trace_reader_free(reader);
  trace_program_free(program);
}

/* ---- spilling and the throttle ---- */

static void test_spill(void **state) {
  enum { BLOCKS = 200 };
  trace_program *program = trace_program_create(64 << 10);
  trace_reader *readers[2] = {trace_reader_create(program), trace_reader_create(program)};
  for (int round = 0; round < 3; round++) {
    trace_launch *launch = append_launch(program, BLOCKS, 2);
    for (uint64_t b = 0; b < BLOCKS; b++) write_block(launch, b, 2000);
    trace_launch_finish(launch);
    trace_usage usage = trace_program_usage(program);
    assert_true(usage.spilled_bytes > usage.words * 8 / 2);
    assert_true(usage.memory_bytes < 512 << 10); /* the budget and what was being written */
    for (int r = 0; r < 2; r++) {
      const trace_op *op = trace_reader_next_op(readers[r]);
      for (uint64_t b = 0; b < BLOCKS; b++) check_block(readers[r], op->launch, b, 2000);
    }
    assert_int_equal(trace_program_usage(program).memory_bytes, 0);
  }
  assert_true(trace_program_usage(program).peak_memory_bytes < 1 << 20);
  trace_reader_free(readers[0]);
  trace_reader_free(readers[1]);
  trace_program_free(program);
}

/* In a child, as the limit stays: how the process that wrote beyond it ends, 0 if all came back. */
static int read_back_under_a_limit(rlim_t bytes) {
  enum { BLOCKS = 200 };
  struct rlimit limit = {bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
  trace_program *program = trace_program_create(64 << 10);
  trace_reader *reader = trace_reader_create(program);
  trace_launch *launch = append_launch(program, BLOCKS, 2);
  for (uint64_t b = 0; b < BLOCKS; b++) write_block(launch, b, 2000);
  trace_launch_finish(launch);
  trace_usage usage = trace_program_usage(program);
  const trace_op *op = trace_reader_next_op(reader);
  for (uint64_t b = 0; b < BLOCKS; b++) check_block(reader, op->launch, b, 2000);
  trace_reader_free(reader);
  trace_program_free(program);
  return usage.spill_error == EFBIG && usage.spilled_bytes > 0 && usage.memory_bytes > 1 << 20 ? 0 : 1;
}

/* A temporary file that can take no more: what it has is read, the rest stays in memory, and it is said why. */
static void test_spill_that_fails(void **state) {
  pid_t child = fork();
  int status;
  if (child == 0) _exit(read_back_under_a_limit(1 << 20));
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void *wait_for_op(void *reader) { return (void *)(uintptr_t)trace_reader_next_op(reader); }

static void test_throttle(void **state) {
  trace_program *program = trace_program_create(4096);
  trace_reader *reader = trace_reader_create(program);
  trace_launch *launch = append_launch(program, 1000, 1);
  uint64_t b = 0;
  for (; trace_block_wait(launch, b, 0); b++) write_block(launch, b, 300);
  assert_int_equal(b, 64); /* over the budget from the first few blocks on: only the window may start */
  assert_true(trace_program_usage(program).memory_bytes >= 4096);
  const trace_op *op = trace_reader_next_op(reader);
  check_block(reader, op->launch, 0, 300);
  assert_true(trace_block_wait(launch, 64, 0)); /* the window went on by one */
  assert_false(trace_block_wait(launch, 65, 0));
  assert_false(trace_block_wait(launch, 65, 1));
  pthread_t thread; /* a reader that waits for an operation cannot free anything: the block must be let go */
  pthread_create(&thread, NULL, wait_for_op, reader);
  while (!trace_block_wait(launch, 65, 50)) {}
  append_end(program);
  void *end;
  pthread_join(thread, &end);
  assert_int_equal(((const trace_op *)end)->kind, TRACE_OP_END);
  for (b = 64; b < 1000; b++) write_block(launch, b, 30);
  trace_launch_finish(launch);
  for (b = 1; b < 1000; b++) check_block(reader, launch, b, b < 64 ? 300 : 30);
  trace_reader_free(reader);
  trace_program_free(program);
}

static void *wait_for_block_0(void *argument) {
  trace_reader *reader = argument;
  const trace_op *op = trace_reader_next_op(reader);
  trace_chunk *chunk = trace_reader_chunk(reader, op->launch, 0);
  trace_reader_release(reader, chunk);
  return NULL;
}

/* Block 0 waits (in the program) for a flag that block 100 sets: the throttle must not keep block 100 back for ever. */
static void test_throttle_lets_a_dependent_block_go(void **state) {
  trace_program *program = trace_program_create(1);
  trace_reader *reader = trace_reader_create(program);
  trace_launch *launch = append_launch(program, 101, 1);
  for (uint64_t b = 1; b < 64; b++) write_block(launch, b, 100);
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_block_0, reader);
  int tries = 0;
  while (!trace_block_wait(launch, 100, 10)) assert_true(++tries < 1000);
  write_block(launch, 100, 100);
  write_block(launch, 0, 100);
  pthread_join(thread, NULL);
  trace_launch_finish(launch);
  trace_reader_free(reader);
  trace_program_free(program);
}

/* ---- operations ---- */

static _Atomic uint64_t appended;
static void *append_many(void *program) {
  for (uint32_t i = 0; i < 70000; i++) {
    trace_op_append(program, &(trace_op){.kind = TRACE_OP_HOST, .stream = i});
    appended = i + 1;
  }
  append_end(program);
  return NULL;
}

static void test_operations_back_pressure(void **state) {
  trace_program *program = trace_program_create(0);
  trace_reader *readers[2] = {trace_reader_create(program), trace_reader_create(program)};
  appended = 0;
  pthread_t thread;
  pthread_create(&thread, NULL, append_many, program);
  for (uint32_t i = 0; i < 1000; i++) assert_int_equal(trace_reader_next_op(readers[0])->stream, i);
  while (appended < 65536) usleep(100);
  usleep(20000);
  assert_int_equal(appended, 65536); /* the second reader has read nothing */
  for (uint32_t i = 0; i < 70000; i++) {
    const trace_op *op = trace_reader_next_op(readers[1]);
    assert_int_equal(op->stream, i);
    assert_int_equal(op->sequence, i);
    if (i >= 1000) assert_int_equal(trace_reader_next_op(readers[0])->stream, i);
  }
  pthread_join(thread, NULL);
  for (int r = 0; r < 2; r++) {
    assert_true(trace_reader_has_op(readers[r]));
    assert_int_equal(trace_reader_next_op(readers[r])->kind, TRACE_OP_END);
    trace_reader_free(readers[r]);
  }
  trace_program_free(program);
}

static void *wait_for_a_chunk(void *of) {
  trace_reader *reader = of;
  const trace_op *op = trace_reader_next_op(reader);
  trace_reader_release(reader, trace_reader_chunk(reader, op->launch, 0));
  return NULL;
}

/* A launch gives way until another thread of the host has gone on: that one must not wait for who waits for the
 * launch. */
static void test_operations_behind_a_launch_that_waits(void **state) {
  trace_program *program = trace_program_create(0);
  trace_reader *reader = trace_reader_create(program);
  trace_launch *launch = append_launch(program, 1, 1);
  pthread_t thread;
  alarm(60); /* a watchdog */
  pthread_create(&thread, NULL, wait_for_a_chunk, reader);
  for (uint32_t i = 0; i < 70000; i++) trace_op_append(program, &(trace_op){.kind = TRACE_OP_HOST});
  write_block(launch, 0, 10);
  trace_launch_finish(launch);
  pthread_join(thread, NULL);
  alarm(0);
  append_end(program);
  for (uint32_t i = 0; i < 70000; i++) assert_int_equal(trace_reader_next_op(reader)->kind, TRACE_OP_HOST);
  assert_int_equal(trace_reader_next_op(reader)->kind, TRACE_OP_END);
  trace_reader_free(reader);
  trace_program_free(program);
}

static void *poke_later(void *reader) {
  usleep(5000);
  trace_reader_poke(reader);
  return NULL;
}

static void test_poke(void **state) {
  trace_program *program = trace_program_create(0);
  trace_reader *reader = trace_reader_create(program);
  assert_false(trace_reader_has_op(reader));
  trace_reader_poke(reader);
  assert_false(trace_reader_wait(reader));
  pthread_t thread;
  pthread_create(&thread, NULL, poke_later, reader);
  assert_false(trace_reader_wait(reader));
  pthread_join(thread, NULL);
  append_end(program);
  assert_true(trace_reader_wait(reader));
  assert_true(trace_reader_has_op(reader));
  trace_reader_free(reader);
  trace_program_free(program);
}

/* ---- readers that leave or skip ---- */

static void test_skip_and_leave(void **state) {
  trace_program *program = trace_program_create(0);
  trace_reader *stays = trace_reader_create(program), *leaves = trace_reader_create(program);
  trace_launch *launch = append_launch(program, 10, 1);
  for (uint64_t b = 0; b < 5; b++) write_block(launch, b, 50);
  const trace_op *op = trace_reader_next_op(stays);
  for (uint64_t b = 0; b < 5; b++) check_block(stays, op->launch, b, 50);
  assert_true(trace_program_usage(program).memory_bytes > 0);
  op = trace_reader_next_op(leaves);
  check_block(leaves, op->launch, 0, 50);
  trace_reader_skip(leaves, op->launch);
  assert_int_equal(trace_program_usage(program).memory_bytes, 0);
  for (uint64_t b = 5; b < 10; b++) write_block(launch, b, 50);
  for (uint64_t b = 5; b < 10; b++) check_block(stays, launch, b, 50);
  assert_int_equal(trace_program_usage(program).memory_bytes, 0);
  trace_launch_finish(launch);
  launch = append_launch(program, 10, 1);
  for (uint64_t b = 0; b < 5; b++) write_block(launch, b, 50);
  trace_reader_free(leaves); /* never saw the second launch */
  for (uint64_t b = 5; b < 10; b++) write_block(launch, b, 50);
  trace_launch_finish(launch);
  op = trace_reader_next_op(stays);
  for (uint64_t b = 0; b < 10; b++) check_block(stays, op->launch, b, 50);
  assert_int_equal(trace_program_usage(program).memory_bytes, 0);
  append_end(program);
  trace_reader_free(stays); /* without having read END */
  trace_program_free(program);
}

/* A chunk that a reader has taken stays its own when it skips the rest. */
static void test_skip_with_a_chunk_in_hand(void **state) {
  trace_program *program = trace_program_create(0);
  trace_reader *reader = trace_reader_create(program);
  trace_launch *launch = append_launch(program, 10, 1);
  for (uint64_t b = 0; b < 10; b++) write_block(launch, b, 50);
  trace_launch_finish(launch);
  const trace_op *op = trace_reader_next_op(reader);
  trace_chunk *chunk = trace_reader_chunk(reader, op->launch, 0);
  uint64_t all = trace_program_usage(program).memory_bytes;
  trace_reader_skip(reader, op->launch);
  uint64_t left = trace_program_usage(program).memory_bytes;
  assert_true(left > 0 && left < all);
  check_warp(reader, chunk, seed_of(op->launch->id, 0, 0), 0, 50);
  trace_reader_release(reader, chunk);
  assert_int_equal(trace_program_usage(program).memory_bytes, 0);
  trace_reader_free(reader);
  trace_program_free(program);
}

/* ---- threads ---- */

typedef struct run {
  trace_program *program;
  trace_launch *launch;
  _Atomic uint64_t next;
  uint32_t most;
} run;

static void *writer_thread(void *argument) {
  run *r = argument;
  for (uint64_t b; (b = atomic_fetch_add(&r->next, 1)) < r->launch->blocks;) {
    while (!trace_block_wait(r->launch, b, 5)) {}
    write_block(r->launch, b, r->most);
  }
  return NULL;
}

typedef struct reading {
  trace_reader *reader;
  uint32_t most;
  unsigned pause_us;
  uint64_t blocks;
} reading;
static void *reader_thread(void *argument) {
  reading *r = argument;
  for (const trace_op *op; (op = trace_reader_next_op(r->reader))->kind != TRACE_OP_END;) {
    uint64_t blocks = op->launch->blocks;
    for (uint64_t b = 0; b < blocks; b++) {
      if (r->pause_us && b % 16 == 0) usleep(r->pause_us);
      check_block(r->reader, op->launch, b, r->most);
      r->blocks++;
    }
  }
  return NULL;
}

static void threads(uint64_t budget, uint64_t blocks, uint32_t most, bool spills) {
  enum { WRITERS = 4, READERS = 3, LAUNCHES = 5 };
  trace_program *program = trace_program_create(budget);
  reading readings[READERS] = {{.most = most}, {.most = most, .pause_us = 300}, {.most = most, .pause_us = 50}};
  pthread_t reader_threads[READERS];
  for (int i = 0; i < READERS; i++) {
    readings[i].reader = trace_reader_create(program);
    pthread_create(&reader_threads[i], NULL, reader_thread, &readings[i]);
  }
  for (int l = 0; l < LAUNCHES; l++) {
    run r = {.program = program, .launch = append_launch(program, blocks, 3), .most = most};
    pthread_t writer_threads[WRITERS];
    for (int i = 0; i < WRITERS; i++) pthread_create(&writer_threads[i], NULL, writer_thread, &r);
    for (int i = 0; i < WRITERS; i++) pthread_join(writer_threads[i], NULL);
    trace_launch_finish(r.launch);
  }
  append_end(program);
  for (int i = 0; i < READERS; i++) {
    pthread_join(reader_threads[i], NULL);
    assert_int_equal(readings[i].blocks, LAUNCHES * blocks);
    trace_reader_free(readings[i].reader);
  }
  trace_usage usage = trace_program_usage(program);
  assert_int_equal(usage.memory_bytes, 0);
  if (spills) assert_true(usage.spilled_bytes > 0);
  else assert_int_equal(usage.spilled_bytes, 0);
  trace_program_free(program);
}

static void test_threads(void **state) { threads(0, 400, 60, false); }
static void test_threads_small_budget(void **state) { threads(32 << 10, 300, 400, true); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_memory_is_used_again),
      cmocka_unit_test(test_out_of_order_publishing),
      cmocka_unit_test(test_units_of_an_issue_add_up),
      cmocka_unit_test(test_any_units_add_up),
      cmocka_unit_test(test_minima_have_units_of_their_own),
      cmocka_unit_test(test_units_without_further_counts),
      cmocka_unit_test(test_late_waits_can_be_left_out),
      cmocka_unit_test(test_too_many_units_end),
      cmocka_unit_test(test_abandoned_launch),
      cmocka_unit_test(test_no_readers),
      cmocka_unit_test(test_warp_without_writer),
      cmocka_unit_test(test_spill),
      cmocka_unit_test(test_spill_that_fails),
      cmocka_unit_test(test_throttle),
      cmocka_unit_test(test_throttle_lets_a_dependent_block_go),
      cmocka_unit_test(test_operations_back_pressure),
      cmocka_unit_test(test_poke),
      cmocka_unit_test(test_operations_behind_a_launch_that_waits),
      cmocka_unit_test(test_skip_and_leave),
      cmocka_unit_test(test_skip_with_a_chunk_in_hand),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_threads_small_budget),
  };
  return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
