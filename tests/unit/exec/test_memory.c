/* SPDX-License-Identifier: Apache-2.0 */
/* The address space: who owns which byte, what happens to freed ranges, and a random walk against a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/memory.h"

static exec_memory *memory;

static int set_up(void **state) { return exec_memory_create(&memory, NULL) != FF_OK; }
static int tear_down(void **state) {
  exec_memory_free(memory);
  return 0;
}

static const exec_allocation *allocate(uint64_t bytes) {
  const exec_allocation *allocation;
  ff_error error = {0};
  if (exec_memory_allocate(memory, bytes, 0, EXEC_MEMORY_DEVICE, "thing", &allocation, &error) != FF_OK) fail_msg("%s", error.message);
  return allocation;
}

static void test_bounds(void **state) {
  const exec_allocation *a = allocate(100), *b = allocate(5000);
  assert_true(a->address % 4096 == 0 && b->address % 4096 == 0);
  assert_ptr_equal(exec_memory_find(memory, a->address), a);
  assert_ptr_equal(exec_memory_find(memory, a->address + 99), a);
  assert_null(exec_memory_find(memory, a->address + 100));
  assert_ptr_equal(exec_memory_find(memory, b->address + 4999), b);
  assert_null(exec_memory_find(memory, b->address + 5000));
  assert_null(exec_memory_find(memory, EXEC_ARENA_BASE - 1));
  assert_null(exec_memory_find(memory, 0));
  assert_null(exec_memory_find(memory, UINT64_MAX));
  assert_null(exec_memory_find(memory, EXEC_ARENA_BASE + EXEC_ARENA_BYTES - 1));
  assert_int_equal(exec_memory_bytes(memory, EXEC_MEMORY_DEVICE), 5100);
  memset((void *)(uintptr_t)b->address, 1, 5000);
}

static void test_large(void **state) {
  const exec_allocation *small = allocate(1), *large = allocate((UINT64_C(5) << 20) + 3), *next = allocate(4096);
  assert_int_equal(large->address % (2 << 20), 0);
  assert_ptr_equal(exec_memory_find(memory, large->address + (5 << 20) + 2), large);
  assert_null(exec_memory_find(memory, large->address + (5 << 20) + 3));
  assert_ptr_equal(exec_memory_find(memory, small->address), small);
  assert_ptr_equal(exec_memory_find(memory, next->address + 4095), next);
  assert_true(next->address < large->address); /* the gap before the large one is used */
}

static void test_tombstones(void **state) {
  const exec_allocation *a = allocate(64);
  uint64_t address = a->address;
  *(int *)(uintptr_t)address = 7;
  assert_int_equal(exec_memory_release(memory, address + 1, NULL), FF_NOT_FOUND);
  assert_int_equal(exec_memory_release(memory, address, NULL), FF_OK);
  assert_true(a->freed);
  assert_ptr_equal(exec_memory_find(memory, address + 63), a);
  ff_error error;
  assert_int_equal(exec_memory_release(memory, address, &error), FF_NOT_FOUND);
  assert_non_null(strstr(error.message, "freed before"));
  assert_int_equal(exec_memory_bytes(memory, EXEC_MEMORY_DEVICE), 0);
  bool again = false;
  for (int n = 0; n < 5000 && !again; n++) { /* the range comes back when it has been forgotten, and is zero */
    const exec_allocation *b = allocate(64);
    again = b->address == address;
    if (again) assert_int_equal(*(int *)(uintptr_t)address, 0);
    assert_int_equal(exec_memory_release(memory, b->address, NULL), FF_OK);
  }
  assert_true(again);
}

static void test_limits(void **state) {
  const exec_allocation *a;
  assert_int_equal(exec_memory_allocate(memory, 0, 0, EXEC_MEMORY_DEVICE, "", &a, NULL), FF_INVALID);
  assert_int_equal(exec_memory_allocate(memory, 1, 3, EXEC_MEMORY_DEVICE, "", &a, NULL), FF_INVALID);
  assert_int_equal(exec_memory_allocate(memory, EXEC_ARENA_BYTES + 1, 0, EXEC_MEMORY_DEVICE, "", &a, NULL), FF_NO_MEMORY);
  assert_int_equal(exec_memory_allocate(memory, UINT64_MAX, 0, EXEC_MEMORY_DEVICE, "", &a, NULL), FF_NO_MEMORY);
  assert_int_equal(exec_memory_allocate(memory, 100, 1 << 20, EXEC_MEMORY_DEVICE, "", &a, NULL), FF_OK);
  assert_int_equal(a->address % (1 << 20), 0);
  exec_memory *second;
  ff_error error;
  assert_int_equal(exec_memory_create(&second, &error), FF_NO_MEMORY);
}

static void test_full(void **state) { /* tombstones give their ranges back rather than let an allocation fail */
  const exec_allocation *a = allocate(EXEC_ARENA_BYTES / 4 * 3), *b;
  uint64_t address = a->address;
  assert_int_equal(exec_memory_allocate(memory, EXEC_ARENA_BYTES / 2, 0, EXEC_MEMORY_DEVICE, "", &b, NULL), FF_NO_MEMORY);
  exec_memory_release(memory, address, NULL);
  assert_int_equal(exec_memory_allocate(memory, EXEC_ARENA_BYTES / 2, 0, EXEC_MEMORY_DEVICE, "", &b, NULL), FF_OK);
}

static void test_registered(void **state) {
  static char host[1000], other[100];
  const exec_allocation *a, *b;
  assert_int_equal(exec_memory_register(memory, host, sizeof host, &a, NULL), FF_OK);
  assert_int_equal(exec_memory_register(memory, host + 500, 10, &b, NULL), FF_INVALID);
  assert_int_equal(exec_memory_register(memory, other, sizeof other, &b, NULL), FF_OK);
  assert_ptr_equal(exec_memory_find(memory, (uintptr_t)host + 999), a);
  assert_ptr_equal(exec_memory_find(memory, (uintptr_t)other), b);
  assert_int_equal(exec_memory_unregister(memory, host + 1, NULL), FF_NOT_FOUND);
  assert_int_equal(exec_memory_unregister(memory, host, NULL), FF_OK);
  assert_true(a->freed);
  assert_int_equal(exec_memory_unregister(memory, host, NULL), FF_NOT_FOUND);
  assert_int_equal(exec_memory_register(memory, host, 10, &b, NULL), FF_OK);
  assert_int_equal(exec_memory_bytes(memory, EXEC_MEMORY_REGISTERED), 110);
  assert_int_equal(exec_memory_register(memory, (void *)EXEC_ARENA_BASE, 10, &b, NULL), FF_INVALID);
}

static void test_nearest(void **state) {
  assert_null(exec_memory_nearest(memory, EXEC_ARENA_BASE));
  const exec_allocation *a = allocate(100), *b = allocate(100);
  assert_ptr_equal(exec_memory_nearest(memory, a->address + 100), a);
  assert_ptr_equal(exec_memory_nearest(memory, b->address - 1), b);
  assert_ptr_equal(exec_memory_nearest(memory, 0), a);
  exec_memory_release(memory, a->address, NULL);
  assert_ptr_equal(exec_memory_nearest(memory, 0), b);
}

/* Random allocations and releases against a list: every byte asked for belongs to whom the list says. */
static void test_random(void **state) {
  enum { MOST = 200 };
  static struct { uint64_t address, bytes; } live[MOST];
  uint32_t count = 0, seed = 1;
  for (int n = 0; n < 20000; n++) {
    seed = seed * 1664525 + 1013904223;
    uint32_t pick = seed >> 8;
    if (count < MOST && (pick & 3)) {
      uint64_t bytes = (pick >> 2) % 37 == 0 ? (3u << 20) + pick % 1000 : 1 + pick % 20000;
      const exec_allocation *a = allocate(bytes);
      for (uint32_t k = 0; k < count; k++)
        assert_true(a->address + bytes <= live[k].address || live[k].address + live[k].bytes <= a->address);
      live[count].address = a->address;
      live[count++].bytes = bytes;
    } else if (count) {
      uint32_t k = pick % count;
      assert_int_equal(exec_memory_release(memory, live[k].address, NULL), FF_OK);
      live[k] = live[--count];
    }
    if (count) {
      uint32_t k = (seed >> 4) % count;
      const exec_allocation *found = exec_memory_find(memory, live[k].address + live[k].bytes - 1);
      assert_non_null(found);
      assert_int_equal(found->address, live[k].address);
      assert_false(found->freed);
    }
  }
  uint64_t total = 0;
  for (uint32_t k = 0; k < count; k++) total += live[k].bytes;
  assert_int_equal(exec_memory_bytes(memory, EXEC_MEMORY_DEVICE), total);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {T(test_bounds), T(test_large), T(test_tombstones), T(test_limits), T(test_full),
                                     T(test_registered), T(test_nearest), T(test_random)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
