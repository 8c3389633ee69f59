/* SPDX-License-Identifier: Apache-2.0 */
/* Footprints: random accesses beside a list of every line and what it got. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "trace/ahead.h"
#include "trace/trace_frame.h"

enum { PAGES = 64, LINES = PAGES * FOOTPRINT_LINES };

typedef struct naive_line {
  uint32_t read, written; /* sectors */
  uint64_t loads, stores, atomics, prefetches, lines, sectors, last;
  bool touched;
} naive_line;

static uint64_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 33;
}

static uint32_t asked[PAGES]; /* how often it was asked whether allocations meet there */

static bool every_fourth(void *context, uint64_t page) {
  assert_ptr_equal(context, asked);
  assert_int_equal(page % 4096, 0);
  asked[page / 4096]++;
  return page / 4096 % 4 == 0;
}

static void random_access(uint64_t *random, uint64_t block, naive_line *naive, uint64_t *record) {
  trace_access_op op = (trace_access_op)(next_random(random) % 4);
  uint64_t lines = next_random(random) % 5, near = next_random(random) % LINES;
  record[0] = TRACE_ACCESS | (uint64_t)op << 4 | lines << 16;
  record[1] = UINT32_MAX;
  for (uint64_t i = 0; i < lines; i++) {
    uint64_t line = (near + next_random(random) % 40) % LINES;
    uint32_t sectors = 1 + (uint32_t)(next_random(random) % 15);
    naive_line *n = &naive[line];
    record[2 + i] = trace_line(line * 128, 1, sectors);
    if (!i) {
      n->loads += op == TRACE_LOAD;
      n->stores += op == TRACE_STORE;
      n->atomics += op == TRACE_ATOMIC;
      n->prefetches += op == TRACE_PREFETCH;
    }
    if (op == TRACE_STORE || op == TRACE_ATOMIC) n->written |= sectors;
    else n->read |= sectors;
    n->lines++;
    n->sectors += (uint32_t)__builtin_popcount(sectors);
    n->last = block;
    n->touched = true;
  }
}

static void same(const footprint_piece *piece, const naive_line *naive) {
  footprint_piece sum = {0};
  bool touched = false;
  for (uint64_t i = 0; i < piece->span; i++) {
    const naive_line *n = &naive[piece->line + i];
    uint32_t within = (uint32_t)((piece->line + i) % FOOTPRINT_LINES);
    assert_int_equal(footprint_sectors(piece->read, within), n->read);
    assert_int_equal(footprint_sectors(piece->written, within), n->written);
    sum.loads += n->loads;
    sum.stores += n->stores;
    sum.atomics += n->atomics;
    sum.prefetches += n->prefetches;
    sum.lines += n->lines;
    sum.sectors += n->sectors;
    if (n->touched && n->last > sum.last) sum.last = n->last;
    touched |= n->touched;
  }
  assert_int_equal(piece->loads, sum.loads);
  assert_int_equal(piece->stores, sum.stores);
  assert_int_equal(piece->atomics, sum.atomics);
  assert_int_equal(piece->prefetches, sum.prefetches);
  assert_int_equal(piece->lines, sum.lines);
  assert_int_equal(piece->sectors, sum.sectors);
  if (touched) assert_int_equal(piece->last, sum.last);
}

/* Every touched line is in exactly one piece, which has the sums of its lines. */
static void compare(const footprint *f, const naive_line *naive) {
  static uint8_t found[LINES];
  memset(found, 0, sizeof found);
  footprint_piece sum = {0};
  for (size_t i = 0; i < f->pieces.count; i++) {
    const footprint_piece *piece = &f->pieces.items[i];
    assert_int_equal(piece->span, piece->line / FOOTPRINT_LINES % 4 ? FOOTPRINT_LINES : 1);
    if (i) assert_true(piece->last >= f->pieces.items[i - 1].last);
    same(piece, naive);
    for (uint64_t l = 0; l < piece->span; l++) found[piece->line + l]++;
    sum.loads += piece->loads;
    sum.stores += piece->stores;
    sum.atomics += piece->atomics;
    sum.prefetches += piece->prefetches;
    sum.lines += piece->lines;
    sum.sectors += piece->sectors;
  }
  for (uint32_t l = 0; l < LINES; l++) assert_true(naive[l].touched ? found[l] == 1 : found[l] <= 1);
  assert_memory_equal(&sum, &f->sum, sizeof sum);
}

static void as_a_list_of_lines(void **state) {
  uint64_t random = 7;
  footprint f;
  footprint_open(&f, every_fourth, asked);
  for (uint32_t round = 0; round < 30; round++) {
    static naive_line naive[LINES];
    memset(naive, 0, sizeof naive);
    memset(asked, 0, sizeof asked);
    footprint_clear(&f);
    uint64_t blocks = 1 + next_random(&random) % 20, accesses = next_random(&random) % 60;
    for (uint64_t b = 0; b < blocks; b++) {
      footprint_block(&f, b);
      for (uint64_t i = 0; i < accesses; i++) {
        uint64_t record[8];
        random_access(&random, b, naive, record);
        footprint_access(&f, record);
      }
    }
    footprint_sort(&f);
    compare(&f, naive);
    for (uint32_t p = 0; p < PAGES; p++) assert_in_range(asked[p], 0, 1);
  }
  footprint_free(&f);
}

/* Footprints of groups of blocks, joined, are that of all blocks. */
static void joined_as_one(void **state) {
  uint64_t random = 11;
  footprint all, group, joined;
  footprint_open(&all, every_fourth, asked);
  footprint_open(&group, every_fourth, asked);
  footprint_open(&joined, every_fourth, asked);
  for (uint32_t round = 0; round < 30; round++) {
    static naive_line naive[LINES];
    memset(naive, 0, sizeof naive);
    footprint_clear(&all);
    footprint_clear(&joined);
    uint64_t first = 0, length = 1 + next_random(&random) % 9;
    for (; first < 40; first += length) {
      footprint_clear(&group);
      for (uint64_t b = 0; b < length; b++) {
        footprint_block(&all, first + b);
        footprint_block(&group, b);
        for (uint64_t i = next_random(&random) % 6; i; i--) {
          uint64_t record[8];
          random_access(&random, first + b, naive, record);
          footprint_access(&all, record);
          footprint_access(&group, record);
        }
      }
      footprint_sort(&group);
      for (size_t i = 0; i < group.pieces.count; i++) {
        footprint_piece piece = group.pieces.items[i];
        piece.last += first;
        assert_true(footprint_joins(&joined, &piece) && footprint_join(&joined, &piece));
      }
    }
    footprint_sort(&all);
    footprint_sort(&joined);
    compare(&joined, naive);
    assert_int_equal(joined.pieces.count, all.pieces.count);
    assert_memory_equal(joined.pieces.items, all.pieces.items, all.pieces.count * sizeof *all.pieces.items);
  }
  footprint_free(&all);
  footprint_free(&group);
  footprint_free(&joined);
}

static bool never(void *context, uint64_t page) { return false; }

/* A frame's column of one piece, which the last of so many blocks touched last. */
static bool column_is_taken(uint64_t blocks, uint64_t last) {
  pack_bytes bytes = {0};
  footprint to;
  frame_footprint out;
  footprint_open(&to, never, NULL);
  pack_number(&bytes, blocks);
  for (int way = 0; way < COUNT_WAYS; way++) pack_number(&bytes, 5);
  pack_number(&bytes, 1);
  pack_number(&bytes, 64 << 1); /* line 64, after line 0 */
  pack_number(&bytes, last);
  pack_byte(&bytes, 0);
  for (int count = 0; count < 6; count++) pack_number(&bytes, 1);
  bool taken = frame_footprint_take((pack_view){bytes.items, bytes.items + bytes.count}, 3, &to, &out);
  if (taken) {
    assert_int_equal(out.blocks, blocks);
    assert_int_equal(to.pieces.count, 1);
    assert_int_equal(to.pieces.items[0].line, 64);
    assert_int_equal(to.pieces.items[0].last, 3 + last);
    footprint_sort(&to);
  }
  free(bytes.items);
  footprint_free(&to);
  return taken;
}

/* Sorting takes memory by the number of the last block: a file must not name one that no frame has. */
static void no_more_blocks_than_a_frame_has(void **state) {
  assert_true(column_is_taken(1, 0));
  assert_false(column_is_taken(1, 1));
  assert_true(column_is_taken(TRACE_FRAME_BLOCKS, TRACE_FRAME_BLOCKS - 1));
  assert_false(column_is_taken(TRACE_FRAME_BLOCKS + 1, 0));
  assert_false(column_is_taken(UINT64_MAX, UINT64_MAX - 1));
}

/* More pieces than the table has room for at first; and none of them is found when the next launch begins. */
static void grows_and_is_cleared(void **state) {
  footprint f;
  footprint_open(&f, never, NULL);
  for (uint32_t round = 0; round < 3; round++) {
    footprint_clear(&f);
    for (uint64_t page = 0; page < 5000; page++) {
      uint64_t record[3] = {TRACE_ACCESS | UINT64_C(1) << 16, 1, trace_line(page * 7 * 4096 + 256, 1, 2)};
      footprint_access(&f, record);
      footprint_access(&f, record);
    }
    assert_int_equal(f.pieces.count, 5000);
    assert_int_equal(f.sum.loads, 10000);
    for (size_t i = 0; i < f.pieces.count; i++) {
      assert_int_equal(f.pieces.items[i].loads, 2);
      assert_int_equal(f.pieces.items[i].read[0], 0x200);
    }
  }
  footprint_free(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_a_list_of_lines), cmocka_unit_test(joined_as_one),
                                     cmocka_unit_test(no_more_blocks_than_a_frame_has),
                                     cmocka_unit_test(grows_and_is_cleared)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
