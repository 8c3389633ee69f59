/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel printf and the device heap: formats against the host's own printf, hostile formats, heap bookkeeping. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/memory/heap.h"
#include "exec/instructions/kernel_printf.h"
#include "unit/share.h"

static exec_memory *memory;
static char *arena; /* 4 KiB of device memory */

static int setup(void **state) {
  const exec_allocation *allocation;
  if (exec_memory_create(&memory, NULL) != FF_OK) return 1;
  if (exec_memory_allocate(memory, 4096, 256, EXEC_MEMORY_DEVICE, "text", &allocation, NULL) != FF_OK) return 1;
  arena = (char *)(uintptr_t)allocation->address;
  return 0;
}

static int teardown(void **state) {
  exec_memory_free(memory);
  return 0;
}

/* Formats with `arguments` and compares with `expected`; returns the number of arguments used. */
static int expect(const char *format, const void *arguments, size_t bytes, const char *expected) {
  strcpy(arena, format);
  ff_text out = {0};
  int used = exec_print_format(&out, memory, (uint64_t)(uintptr_t)arena, arguments, bytes, NULL);
  assert_string_equal(out.chars ? out.chars : "", expected);
  free(out.chars);
  return used;
}

static void test_integers(void **state) {
  struct {
    int32_t a;
    uint32_t b;
    int64_t c;
    uint64_t d;
  } args = {-5, 0xffffffffu, -1234567890123LL, UINT64_MAX};
  char expected[256];
  snprintf(expected, sizeof expected, "[%5d|%-8x|%lld|%llu]\n", args.a, args.b, (long long)args.c,
           (unsigned long long)args.d);
  assert_int_equal(expect("[%5d|%-8x|%ld|%llu]\n", &args, sizeof args, expected), 4);
}

static void test_alignment_between_arguments(void **state) {
  struct {
    int32_t a;
    double b;
    int32_t c;
  } args = {7, 2.5, -1}; /* b at 8, c at 16 */
  assert_int_equal(expect("%d %.3f %d", &args, sizeof args, "7 2.500 -1"), 3);
}

static void test_strings_and_chars(void **state) {
  char *text = arena + 2048;
  strcpy(text, "hello");
  struct {
    uint64_t s;
    int32_t c;
    uint64_t null;
    uint64_t wild;
  } args = {(uintptr_t)text, 'x', 0, 0x1234};
  expect("%8s|%c|%s|%s|%%", &args, sizeof args, "   hello|x|(null)|(bad address)|%");
  uint64_t again[2] = {(uintptr_t)text, (uintptr_t)text};
  expect("%-7s|%.2s", again, sizeof again, "hello  |he");
}

static void test_string_at_the_end_of_its_allocation(void **state) {
  char *text = arena + 4096 - 3; /* no NUL before the end */
  memcpy(text, "abc", 3);
  uint64_t address = (uintptr_t)text;
  expect("%s", &address, sizeof address, "abc");
}

/* Addresses below 64 are places in the text. */
static bool read_low(void *context, uint64_t address, char *string, size_t room) {
  if (address >= 64) return false;
  snprintf(string, room, "%s", (const char *)context + address);
  return true;
}

static void test_strings_in_no_allocation(void **state) {
  char elsewhere[64] = "<%s|%s>\0kept in local memory";
  exec_print_reader reader = {read_low, elsewhere};
  uint64_t arguments[2] = {8, 64};
  ff_text out = {0};
  assert_int_equal(exec_print_format(&out, memory, 0, (const unsigned char *)arguments, sizeof arguments, &reader), 2);
  assert_string_equal(out.chars, "<kept in local memory|(bad address)>");
  free(out.chars);
}

static void test_hostile_formats(void **state) {
  expect("100% n %", NULL, 0, "100% n %");
  expect("%n", NULL, 0, "%n");
  expect("%", NULL, 0, "%");
  char expected[1100];
  int32_t one = 1;
  snprintf(expected, sizeof expected, "%1023d", 1);
  expect("%99999999999d", &one, sizeof one, expected); /* width is cut */
  expect("%d %d", &one, sizeof one, "1 0");            /* a missing argument reads as zero, never past the buffer */
  int32_t width[2] = {-4, 3};
  expect("%*d|", width, sizeof width, "3   |");
  ff_text out = {0};
  assert_int_equal(exec_print_format(&out, memory, 0x10, NULL, 0, NULL), -1);
  free(out.chars);
}

static void test_heap(void **state) {
  exec_heap *heap;
  assert_int_equal(exec_heap_create(memory, 1 << 16, &heap, NULL), FF_OK);
  uint64_t a = exec_heap_malloc(heap, 100), b = exec_heap_malloc(heap, 100);
  assert_true(a && b && a % 16 == 0 && b % 16 == 0);
  assert_true(a + 100 <= b || b + 100 <= a);
  assert_int_equal(exec_heap_used(heap), 200);
  assert_int_equal(exec_heap_malloc(heap, 0), 0);
  assert_int_equal(exec_heap_malloc(heap, 1 << 17), 0);
  assert_true(exec_heap_release(heap, a));
  assert_false(exec_heap_release(heap, a));      /* twice */
  assert_false(exec_heap_release(heap, b + 16)); /* inside a block */
  assert_true(exec_heap_release(heap, 0));
  assert_int_equal(exec_heap_malloc(heap, 112), a); /* used again */
  int blocks = 0;
  while (exec_heap_malloc(heap, 1024)) blocks++;
  assert_int_equal(blocks, 63); /* 64 KiB less two blocks of 112 bytes */
  exec_heap_free(heap);
}

/* What was freed can be had in other sizes, smaller and larger. */
static void test_heap_in_other_sizes(void **state) {
  exec_heap *heap;
  uint64_t blocks[64], all;
  assert_int_equal(exec_heap_create(memory, 1 << 16, &heap, NULL), FF_OK);
  for (int round = 0; round < 2; round++) {
    assert_true((all = exec_heap_malloc(heap, 1 << 16)) != 0);
    assert_int_equal(exec_heap_malloc(heap, 1), 0);
    assert_true(exec_heap_release(heap, all));
    for (int n = 0; n < 64; n++) assert_true((blocks[n] = exec_heap_malloc(heap, 1009)) != 0);
    assert_int_equal(exec_heap_malloc(heap, 1), 0);
    for (int n = 0; n < 64; n++) assert_true(exec_heap_release(heap, blocks[n * 37 % 64]));
  }
  /* of two holes of nearly one size the one that was made first fits, and no other */
  const uint64_t sizes[] = {33 * 16, 16, 32 * 16, 65536 - 66 * 16};
  for (int n = 0; n < 4; n++) assert_true((blocks[n] = exec_heap_malloc(heap, sizes[n])) != 0);
  assert_true(exec_heap_release(heap, blocks[0]) && exec_heap_release(heap, blocks[2]));
  assert_int_equal(exec_heap_malloc(heap, 33 * 16), blocks[0]);
  exec_heap_free(heap);
}

/* Any sizes in any order against a map of units: a block lies in what was free, and 0 is said only if nothing is large
 * enough. */
static void test_heap_at_random(void **state) {
  enum { UNITS = 1000, BLOCKS = 300, STEPS = SHARE(60000, 10) };
  struct {
    uint64_t address, bytes;
  } blocks[BLOCKS] = {{0}};
  bool taken[UNITS] = {false};
  uint64_t seed = 1, base = 0, used = 0, refused = 0;
  exec_heap *heap;
  assert_int_equal(exec_heap_create(memory, 16 * UNITS + 9, &heap, NULL), FF_OK);
  for (int step = 0; step < STEPS; step++) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    uint32_t which = (uint32_t)(seed >> 33) % BLOCKS, draw = (uint32_t)(seed >> 44), from, length = 0;
    if (blocks[which].address) {
      assert_int_equal(exec_heap_block_bytes(heap, blocks[which].address), blocks[which].bytes);
      assert_true(exec_heap_release(heap, blocks[which].address));
      assert_false(exec_heap_release(heap, blocks[which].address));
      from = (uint32_t)(blocks[which].address - base) / 16;
      memset(&taken[from], 0, (blocks[which].bytes + 15) / 16);
      used -= blocks[which].bytes;
      blocks[which].address = 0;
    } else {
      uint64_t bytes = 1 + (draw % 16 ? draw / 16 % 200 : draw / 16 % 9000), units = (bytes + 15) / 16;
      uint64_t address = exec_heap_malloc(heap, bytes), nearest;
      if (!base) base = address;
      if (!address) {
        for (from = 0; from < UNITS && length < units; from++) length = taken[from] ? 0 : length + 1;
        assert_true(length < units);
        refused++;
        continue;
      }
      from = (uint32_t)(address - base) / 16;
      assert_true(address >= base && address % 16 == 0 && from + units <= UNITS);
      for (uint32_t n = 0; n < units; n++) assert_false(taken[from + n]);
      memset(&taken[from], 1, units);
      assert_int_equal(exec_heap_nearest(heap, address + bytes / 2, &nearest), address);
      assert_int_equal(nearest, bytes);
      blocks[which].address = address;
      blocks[which].bytes = bytes;
      used += bytes;
    }
    assert_int_equal(exec_heap_used(heap), used);
  }
  assert_true(refused > STEPS / 100 && refused < STEPS / 2);
  exec_heap_free(heap);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_integers),
      cmocka_unit_test(test_alignment_between_arguments),
      cmocka_unit_test(test_strings_and_chars),
      cmocka_unit_test(test_string_at_the_end_of_its_allocation),
      cmocka_unit_test(test_strings_in_no_allocation),
      cmocka_unit_test(test_hostile_formats),
      cmocka_unit_test(test_heap),
      cmocka_unit_test(test_heap_in_other_sizes),
      cmocka_unit_test(test_heap_at_random),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
