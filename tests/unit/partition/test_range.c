/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges over coloured frames: no frame and no byte of one is wasted, and no byte is another range's or another colour's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "known_hashes.h"
#include "partition/range.h"

typedef struct rig { address_hash *hash; frames *frames; } rig;

static rig rig_make(uint64_t memory) {
  rig r = {NULL, NULL};
  ff_error error;
  if (hash_create(&gtx1080_hash, &r.hash, &error) || frames_create(r.hash, memory, 4096, &r.frames, &error)) fail_msg("%s", error.message);
  return r;
}
static void rig_free(rig r) {
  frames_check(r.frames);
  frames_free(r.frames);
  hash_free(r.hash);
}

/* Two programs take half the memory each, in ranges of any size, until no page is left: every frame is in exactly one range, all its bytes are used. */
static void test_nothing_wasted(void **state) {
  enum { PAGES = 2048, RANGES = 64 };
  rig r = rig_make(PAGES * 4096);
  coloured_range ranges[2][RANGES];
  uint8_t used[PAGES] = {0};
  uint32_t count[2] = {0};
  for (uint32_t program = 0; program < 2; program++) {
    uint64_t set = UINT64_C(1) << program, left;
    assert_int_equal(frames_all(r.frames, set), PAGES / 2);
    while ((left = frames_left(r.frames, set)) > 0) {
      uint64_t pages = 1 + (count[program] * 37 + 11) % 50, bytes = (pages < left ? pages : left) * 4096;
      assert_true(count[program] < RANGES);
      assert_int_equal(coloured_range_make(r.frames, set, bytes, &ranges[program][count[program]++], NULL), FF_OK);
    }
  }
  assert_int_equal(frames_left(r.frames, 3), 0);
  for (uint32_t program = 0; program < 2; program++)
    for (uint32_t i = 0; i < count[program]; i++) {
      const coloured_range *range = &ranges[program][i];
      assert_int_equal(range->page_count * 4096, range->bytes);
      for (uint64_t at = 0; at < range->bytes; at += 4096) {
        uint64_t physical = coloured_range_physical(range, at);
        assert_int_equal(colours_of(frames_colours(r.frames), physical), program);
        assert_int_equal(coloured_range_physical(range, at + 4095), physical + 4095);
        assert_int_equal(used[physical / 4096]++, 0);
      }
    }
  assert_null(memchr(used, 0, sizeof used));
  for (uint32_t program = 0; program < 2; program++)
    for (uint32_t i = 0; i < count[program]; i++) coloured_range_free(&ranges[program][i]);
  assert_int_equal(frames_left(r.frames, 3), PAGES);
  rig_free(r);
}

static void test_resize(void **state) {
  rig r = rig_make(100 * 4096);
  coloured_range a, b;
  assert_int_equal(coloured_range_make(r.frames, 1, 5000, &a, NULL), FF_OK);
  assert_int_equal(a.page_count, 2);
  uint64_t first = coloured_range_physical(&a, 0), all = frames_all(r.frames, 1);
  assert_int_equal(coloured_range_make(r.frames, 1, (all - 2) * 4096 + 1, &b, NULL), FF_NO_MEMORY);
  assert_int_equal(coloured_range_make(r.frames, 1, UINT64_MAX, &b, NULL), FF_NO_MEMORY);
  assert_int_equal(coloured_range_make(r.frames, 1, 0, &b, NULL), FF_INVALID);
  assert_int_equal(frames_left(r.frames, 1), all - 2);
  assert_int_equal(coloured_range_resize(&a, all * 4096 + 1, NULL), FF_NO_MEMORY);
  assert_int_equal(a.page_count, 2);
  assert_int_equal(coloured_range_resize(&a, all * 4096, NULL), FF_OK);
  assert_int_equal(frames_left(r.frames, 1), 0);
  assert_int_equal(coloured_range_resize(&a, 1, NULL), FF_OK);
  assert_int_equal(coloured_range_physical(&a, 0), first);
  assert_int_equal(frames_left(r.frames, 1), all - 1);
  coloured_range_free(&a);
  coloured_range_free(&a);
  rig_free(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_wasted), cmocka_unit_test(test_resize)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
