/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations from copies and touched pages: edges by hand, then random programs against what must always hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "import/import_pages.h"

#define MIB (UINT64_C(1) << 20)
#define BASE (UINT64_C(1) << 40)

typedef struct piece {
  uint64_t address, bytes, copy;
} piece;

static void expect(page_map *map, const piece *pieces, size_t count) {
  page_allocations all = {0};
  page_map_allocations(map, &all);
  for (size_t i = 0; i < count && i < all.count; i++)
    if (all.items[i].address != pieces[i].address || all.items[i].bytes != pieces[i].bytes ||
        all.items[i].copy != pieces[i].copy)
      fail_msg("%zu: %llx, %llu bytes, copy %llu", i, (unsigned long long)all.items[i].address,
               (unsigned long long)all.items[i].bytes, (unsigned long long)all.items[i].copy);
  assert_int_equal(all.count, count);
  free(all.items);
  page_map_free(map);
}
#define pieces(map, ...) expect(map, (const piece[]){__VA_ARGS__}, sizeof((const piece[]){__VA_ARGS__}) / sizeof(piece))

static void test_edges(void **state) {
  page_map *m = page_map_create();
  expect(m, NULL, 0);

  m = page_map_create(); /* neighbours in one page keep apart; the last is widened to the page's end */
  page_map_copy(m, BASE + 1024, 512);
  page_map_copy(m, BASE + 512, 512);
  pieces(m, {BASE, 1024, 2}, {BASE + 1024, 3072, 1});

  m = page_map_create(); /* overlapping copies are one, with the first's number */
  page_map_copy(m, BASE + 8192, 4096);
  page_map_copy(m, BASE, 8193);
  page_map_copy(m, BASE + 100, 5);
  pieces(m, {BASE, 12288, 1});

  m = page_map_create(); /* what was touched within a copy's pages belongs to it; behind it not */
  page_map_copy(m, BASE, 4096 + 1);
  assert_true(page_map_touch(m, BASE + 8191) && page_map_touch(m, BASE) && page_map_touch(m, BASE + 8192));
  pieces(m, {BASE, 8192, 1}, {BASE + 8192, 4096, 0});

  m = page_map_create(); /* neighbouring blocks of 2 MiB are one allocation, from the first touched page to the last */
  assert_true(page_map_touch(m, BASE + 4096) && page_map_touch(m, BASE + 4 * MIB - 1) &&
              page_map_touch(m, BASE + 6 * MIB));
  pieces(m, {BASE + 4096, 4 * MIB - 4096, 0}, {BASE + 6 * MIB, 4096, 0});

  m = page_map_create(); /* a copy between them parts them */
  page_map_copy(m, BASE + MIB, 10);
  assert_true(page_map_touch(m, BASE + MIB / 2) && page_map_touch(m, BASE + MIB + 4096) &&
              page_map_touch(m, BASE + MIB * 3 / 2));
  pieces(m, {BASE + MIB / 2, 4096, 0}, {BASE + MIB, 4096, 1}, {BASE + MIB + 4096, MIB / 2, 0});
}

static void test_random(void **state) {
  srand(7);
  for (int round = 0; round < 200; round++) {
    enum { TOUCHES = 300, COPIES = 20 };
    uint64_t touched[TOUCHES], copied[COPIES][2];
    uint64_t spread = MIB << rand() % 8;
    page_map *m = page_map_create();
    for (int i = 0; i < COPIES; i++) {
      copied[i][0] = BASE + (uint64_t)rand() * 256 % spread;
      copied[i][1] = 1 + (uint64_t)rand() % (spread / 16);
      page_map_copy(m, copied[i][0], copied[i][1]);
    }
    for (int i = 0; i < TOUCHES; i++) {
      touched[i] = BASE + (uint64_t)rand() * 128 % spread;
      assert_true(page_map_touch(m, touched[i]));
    }
    page_allocations all = {0};
    page_map_allocations(m, &all);
    for (size_t i = 0; i < all.count; i++) {
      assert_true(all.items[i].bytes > 0);
      if (i) assert_true(all.items[i].address >= all.items[i - 1].address + all.items[i - 1].bytes);
    }
    for (int i = 0; i < TOUCHES; i++) {
      page_allocation *a = page_allocation_at(&all, touched[i]);
      assert_true(a && touched[i] >= a->address && touched[i] - a->address < a->bytes);
    }
    for (int i = 0; i < COPIES; i++) { /* whole, in one */
      page_allocation *a = page_allocation_at(&all, copied[i][0]);
      assert_true(a && a->copy && copied[i][0] + copied[i][1] <= a->address + a->bytes);
    }
    assert_null(page_allocation_at(&all, BASE - 1));
    free(all.items);
    page_map_free(m);
  }
}

static void test_limit(void **state) {
  page_map *m = page_map_create();
  for (uint64_t i = 0; i < PAGE_BLOCKS_MAX; i++) assert_true(page_map_touch(m, i * 2 * MIB));
  assert_true(page_map_touch(m, 5));
  assert_false(page_map_touch(m, PAGE_BLOCKS_MAX * 2 * MIB));
  page_map_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_edges), cmocka_unit_test(test_random),
                                     cmocka_unit_test(test_limit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
