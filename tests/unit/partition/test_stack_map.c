/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of addresses to stacks: stack and local address name one address, each stack has its share, texts come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "partition/stack_map.h"

static uint64_t seed = 88172645463325252;
static uint64_t random_bits(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

/* Bytes that all masks and flips of `map` see are those of a range of 2^log2 bytes: each line of it has a place of its
 * own. */
static void is_bijection(const stack_map *map, uint32_t log2) {
  uint64_t lines = UINT64_C(1) << (log2 - STACK_MAP_LOWEST), stacks = UINT64_C(1) << map->bits, each = lines / stacks;
  bool *taken = calloc(lines, 1);
  uint64_t base = random_bits() >> 24 << log2; /* anywhere */
  uint64_t offset = random_bits() % 128;
  uint64_t lowest = stack_local(map, base) & ~((UINT64_C(1) << (log2 - map->bits)) - 1);
  for (uint64_t i = 0; i < lines; i++) {
    uint64_t address = base + i * 128 + offset, local = stack_local(map, address);
    assert_int_equal(local % 128, offset); /* a line stays whole */
    assert_true(local - lowest < each * 128);
    uint64_t place = stack_of(map, address) * each + (local - lowest) / 128;
    assert_true(place < lines && !taken[place]);
    taken[place] = true;
  }
  free(taken); /* as many places as lines, none twice: each stack has exactly its share */
}

static void test_bijection(void **state) {
  for (uint32_t bits = 0; bits <= STACK_MAP_BITS; bits++) {
    for (uint32_t lowest = STACK_MAP_LOWEST; lowest < STACK_MAP_LOWEST + STACK_MAP_PAIRS; lowest++) {
      stack_map map = stack_map_pair(lowest, bits);
      is_bijection(&map, 21);
    }
    stack_map map = stack_map_baseline(bits);
    is_bijection(&map, 20);
    for (int round = 0; round < 40; round++) {
      uint64_t masks[STACK_MAP_BITS];
      for (uint32_t i = 0; i < bits; i++) masks[i] = random_bits() % (1 << 19) & ~UINT64_C(127);
      if (!stack_map_make(masks, bits, (uint32_t)random_bits(), &map, NULL)) is_bijection(&map, 19);
    }
  }
}

static void test_definition(void **state) {
  stack_map map = stack_map_pair(12, 2);
  for (uint64_t i = 0; i < 1000; i++) {
    uint64_t address = random_bits() >> 20;
    assert_int_equal(stack_of(&map, address), address >> 12 & 3);
  }
  map = stack_map_pair(7, 0);
  assert_int_equal(stack_of(&map, 0xdeadbeef), 0);
  map = stack_map_baseline(2);
  for (uint64_t line = 0; line < 4; line++) assert_int_equal(stack_of(&map, line * 128), line); /* they go round */
  /* and higher bits are XORed on */
  assert_int_not_equal(stack_of(&map, 0), stack_of(&map, 0) ^ stack_of(&map, 128 << 5));
}

/* However far apart lines of a power of two bytes lie, the baseline spreads them. */
static void test_baseline_spreads(void **state) {
  stack_map map = stack_map_baseline(2);
  for (uint32_t stride = 7; stride < 30; stride++) {
    uint32_t seen = 0;
    for (uint64_t i = 0; i < 1024; i++) seen |= 1u << stack_of(&map, i << stride);
    assert_int_equal(seen, 15);
  }
}

static void test_texts(void **state) {
  char text[100];
  stack_map map, again;
  for (uint32_t bits = 1; bits <= STACK_MAP_BITS; bits++) {
    for (uint32_t lowest = STACK_MAP_LOWEST; lowest + bits <= STACK_MAP_HIGHEST + 1; lowest++) {
      map = stack_map_pair(lowest, bits);
      assert_int_equal(stack_map_parse(stack_map_text(&map, text, sizeof text), bits, &again, NULL), FF_OK);
      assert_memory_equal(&map, &again, sizeof map);
    }
    map = stack_map_baseline(bits);
    assert_string_equal(stack_map_text(&map, text, sizeof text), "baseline");
    assert_int_equal(stack_map_parse(text, bits, &again, NULL), FF_OK);
    assert_memory_equal(&map, &again, sizeof map);
  }
  uint64_t masks[] = {0x80, 0x1100};
  assert_int_equal(stack_map_make(masks, 2, 3, &map, NULL), FF_OK);
  assert_string_equal(stack_map_text(&map, text, sizeof text), "linear 0x80/0x1100^3");
  char small[8];
  stack_map_text(&map, small, sizeof small); /* cut, not beyond */
  assert_true(strlen(small) < sizeof small);
}

static void test_broken(void **state) {
  static const char *const texts[] = {"",        "x",       "12",   "12:",      ":12",
                                      "12:14",   "13:12",   "6:7",  "40:41",    "12:13 ",
                                      " 12:13",  "012:13x", "-1:0", "12:13:14", "99999999999999999999:13",
                                      "Baseline"};
  stack_map map;
  ff_error error;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    assert_int_equal(stack_map_parse(texts[i], 2, &map, &error), FF_INVALID);
    assert_non_null(strstr(error.message, "7:8")); /* what would do */
  }
  static const struct {
    uint64_t masks[2];
    const char *says;
  } masks[] = {{{0x80, 0x80}, "depend"},
               {{0, 0x80}, "depend"},
               {{0x40, 0x80}, "bits other"},
               {{0x80, UINT64_C(1) << 41}, "bits other"}};
  for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
    assert_int_equal(stack_map_make(masks[i].masks, 2, 0, &map, &error), FF_INVALID);
    assert_non_null(strstr(error.message, masks[i].says));
  }
  uint64_t many[STACK_MAP_BITS + 1] = {0x80, 0x100, 0x200, 0x400, 0x800};
  assert_int_equal(stack_map_make(many, STACK_MAP_BITS + 1, 0, &map, &error), FF_INVALID);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bijection), cmocka_unit_test(test_definition), cmocka_unit_test(test_baseline_spreads),
      cmocka_unit_test(test_texts),     cmocka_unit_test(test_broken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
