/* SPDX-License-Identifier: Apache-2.0 */
/* The address space: who owns which byte, what happens to freed ranges, and a random walk against a plain list. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec/memory/visibility.h"
#include "exec/memory/zero.h"

static exec_memory *memory;

static int set_up(void **state) { return exec_memory_create(&memory, NULL) != FF_OK; }
static int tear_down(void **state) {
  exec_memory_free(memory);
  return 0;
}

static const exec_allocation *allocate(uint64_t bytes) {
  const exec_allocation *allocation;
  ff_error error = {0};
  if (exec_memory_allocate(memory, bytes, 0, EXEC_MEMORY_DEVICE, "thing", &allocation, &error) != FF_OK)
    fail_msg("%s", error.message);
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
  assert_null(exec_memory_find(memory, exec_memory_base(memory) - 1));
  assert_null(exec_memory_find(memory, 0));
  assert_null(exec_memory_find(memory, UINT64_MAX));
  assert_null(exec_memory_find(memory, exec_memory_base(memory) + EXEC_ARENA_BYTES - 1));
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

static bool resident(uint64_t page) {
  unsigned char here;
  assert_int_equal(mincore((void *)(uintptr_t)page, 4096, &here), 0);
  return here & 1;
}

/* Zeros in much memory take no pages, and no byte beside them changes. */
static void test_zero(void **state) {
  uint64_t mib = 1 << 20, bytes = 72 * mib;
  const exec_allocation *a = allocate(bytes);
  unsigned char *at = (unsigned char *)(uintptr_t)a->address;
  memset(at, 7, bytes);
  exec_memory_zero(memory, a->address + 100, 70 * mib);
  for (uint64_t n = 0; n < bytes; n += 4096) assert_int_equal(at[n], n - 100 < 70 * mib ? 0 : 7);
  assert_int_equal(at[99], 7);
  assert_int_equal(at[100], 0);
  assert_int_equal(at[99 + 70 * mib], 0);
  assert_int_equal(at[100 + 70 * mib], 7);
  exec_memory_zero(memory, a->address, bytes);
  assert_false(resident(a->address + 8 * mib));
  memset(at, 7, bytes);
  exec_memory_zero(memory, a->address, 32 * mib); /* less is written */
  assert_true(resident(a->address + 8 * mib));
  assert_int_equal(at[32 * mib - 1], 0);
  assert_int_equal(at[32 * mib], 7);
}

static void assert_zeros(const unsigned char *at, uint64_t bytes) {
  for (uint64_t n = 0; n < bytes; n += 512) assert_int_equal(at[n], 0);
  assert_int_equal(at[bytes - 1], 0);
}

/* Of memory that is a file's, giving pages back would bring the file's bytes again: two mappings of one piece, an
 * allocation that other processes have, a private mapping that the program has registered. */
static void test_zero_of_files(void **state) {
  uint64_t bytes = UINT64_C(72) << 20;
  const exec_allocation *place, *first, *second, *given = allocate(bytes), *registered;
  int file = memfd_create("piece", MFD_CLOEXEC), other = memfd_create("given", MFD_CLOEXEC);
  assert_true(!ftruncate(file, (off_t)bytes) && !ftruncate(other, (off_t)bytes));
  assert_int_equal(exec_memory_reserve(memory, 2 * bytes, 0, 0, "range", &place, NULL), FF_OK);
  assert_int_equal(exec_memory_map(memory, place->address, bytes, file, 0, 1, "first", &first, NULL), FF_OK);
  assert_int_equal(exec_memory_map(memory, place->address + bytes, bytes, file, 0, 1, "second", &second, NULL), FF_OK);
  memset((void *)(uintptr_t)first->address, 7, bytes);
  unsigned char *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  assert_true(host != MAP_FAILED);
  memset(host, 8, bytes);
  assert_int_equal(exec_memory_register(memory, host, bytes, &registered, NULL), FF_OK);
  exec_memory_zero(memory, (uintptr_t)host, bytes);
  assert_zeros(host, bytes);
  exec_memory_zero(memory, second->address, bytes);
  assert_zeros((unsigned char *)(uintptr_t)first->address, bytes);
  assert_zeros((unsigned char *)(uintptr_t)second->address, bytes);

  memset((void *)(uintptr_t)given->address, 7, bytes);
  assert_int_equal(exec_memory_share(memory, given, other, true, NULL), FF_OK);
  exec_memory_zero(memory, given->address, bytes);
  assert_zeros((unsigned char *)(uintptr_t)given->address, bytes);
  unsigned char byte;
  for (uint64_t n = 4096 - 1; n < bytes; n += 4096) {
    assert_int_equal(pread(other, &byte, 1, (off_t)n), 1);
    assert_int_equal(byte, 0);
  }
  assert_int_equal(exec_memory_unregister(memory, host, NULL), FF_OK);
  munmap(host, bytes);
  close(file);
  close(other);
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
  assert_int_equal(exec_memory_allocate(memory, EXEC_ARENA_BYTES + 1, 0, EXEC_MEMORY_DEVICE, "", &a, NULL),
                   FF_NO_MEMORY);
  assert_int_equal(exec_memory_allocate(memory, UINT64_MAX, 0, EXEC_MEMORY_DEVICE, "", &a, NULL), FF_NO_MEMORY);
  assert_int_equal(exec_memory_allocate(memory, 100, 1 << 20, EXEC_MEMORY_DEVICE, "", &a, NULL), FF_OK);
  assert_int_equal(a->address % (1 << 20), 0);
}

/* Each place is taken once, and when all are, the host finds others. */
static void test_places(void **state) {
  enum { MEMORIES = 12 };
  exec_memory *more[MEMORIES];
  uint64_t base[MEMORIES + 1] = {exec_memory_base(memory)};
  for (int n = 0; n < MEMORIES; n++) {
    assert_int_equal(exec_memory_create(&more[n], NULL), FF_OK);
    base[n + 1] = exec_memory_base(more[n]);
    assert_int_equal(base[n + 1] % (1 << 30), 0);
    assert_true(base[n + 1] + EXEC_ARENA_BYTES <= UINT64_C(1) << 47);
    for (int k = 0; k <= n; k++)
      assert_true(base[k] >= base[n + 1] + EXEC_ARENA_BYTES || base[n + 1] >= base[k] + EXEC_ARENA_BYTES);
    const exec_allocation *a, *b;
    assert_int_equal(exec_memory_allocate(more[n], 5000, 0, EXEC_MEMORY_DEVICE, "a", &a, NULL), FF_OK);
    assert_int_equal(exec_memory_allocate(more[n], 100, UINT64_C(1) << 33, EXEC_MEMORY_DEVICE, "b", &b, NULL), FF_OK);
    assert_int_equal(exec_memory_canonical(more[n], a->address + 7), EXEC_ARENA_CANONICAL + 7);
    assert_int_equal(b->address % (UINT64_C(1) << 33), 0);
    memset((void *)b->address, 1, 100);
    assert_ptr_equal(exec_memory_find(more[n], b->address), b);
    assert_null(exec_memory_find(memory, b->address));
  }
  for (int n = 0; n < MEMORIES; n++) exec_memory_free(more[n]);
}

/* Something that lies in the arena's first place, anywhere in it, stays as it is. */
static void test_place_taken(void **state) {
  static const uint64_t offsets[] = {0, EXEC_ARENA_BYTES / 2, EXEC_ARENA_BYTES - EXEC_PAGE_BYTES};
  for (size_t n = 0; n < sizeof offsets / sizeof *offsets; n++) {
    exec_memory_free(memory);
    char *taken = mmap((void *)(EXEC_ARENA_CANONICAL + offsets[n]), EXEC_PAGE_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    assert_ptr_equal(taken, EXEC_ARENA_CANONICAL + offsets[n]);
    *taken = 5;
    assert_int_equal(exec_memory_create(&memory, NULL), FF_OK);
    assert_true(exec_memory_base(memory) != EXEC_ARENA_CANONICAL);
    const exec_allocation *a = allocate(EXEC_ARENA_BYTES / 4 * 3);
    assert_int_equal(exec_memory_canonical(memory, a->address), EXEC_ARENA_CANONICAL);
    *(char *)(a->address + EXEC_ARENA_BYTES / 2) = 7;
    assert_int_equal(*taken, 5);
    munmap(taken, EXEC_PAGE_BYTES);
  }
}

/* No matter where the host has its memory, what is registered in the same order has the same canonical addresses, and
 * no two the same. */
static void test_canonical(void **state) {
  enum { PAGES = 5 };
  for (int round = 0; round < 3; round++) {
    char *host = mmap(NULL, (PAGES + (size_t)round) * EXEC_PAGE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(host, MAP_FAILED);
    char *first = host + round * (int)EXEC_PAGE_BYTES + 48, *second = first + 100;
    const exec_allocation *a;
    assert_int_equal(exec_memory_canonical(memory, (uintptr_t)first), 0);
    assert_int_equal(exec_memory_register(memory, first, 100, &a, NULL), FF_OK);
    assert_int_equal(exec_memory_register(memory, second, 3 * EXEC_PAGE_BYTES, &a, NULL), FF_OK);
    assert_int_equal(exec_memory_canonical(memory, (uintptr_t)first + 99), EXEC_REGISTERED_CANONICAL + 48 + 99);
    assert_int_equal(exec_memory_canonical(memory, (uintptr_t)second), EXEC_REGISTERED_CANONICAL + (2 << 20) + 148);
    assert_int_equal(exec_memory_unregister(memory, first, NULL), FF_OK);
    assert_int_equal(exec_memory_canonical(memory, (uintptr_t)first), 0);
    assert_int_equal(exec_memory_register(memory, first, 10, &a, NULL), FF_OK); /* the place is free again */
    assert_int_equal(exec_memory_canonical(memory, (uintptr_t)first), EXEC_REGISTERED_CANONICAL + 48);
    exec_memory_unregister(memory, first, NULL);
    exec_memory_unregister(memory, second, NULL);
    munmap(host, (PAGES + (size_t)round) * EXEC_PAGE_BYTES);
  }
}

/* With padding no byte next to an allocation, near enough, is anyone's, live or freed; starts are as aligned as
 * without. */
static void test_padding(void **state) {
  enum { PADDING = 300, COUNT = 60 };
  static const uint64_t sizes[] = {1, 4096, 8192, 5000, 2 << 20, (2 << 20) + 4096, 4095, 3796, 3797};
  const exec_allocation *all[COUNT];
  exec_memory_pad(memory, PADDING);
  for (int n = 0; n < COUNT; n++) {
    if (n >= 40) assert_int_equal(exec_memory_release(memory, all[n - 40]->address, NULL), FF_OK);
    all[n] = allocate(sizes[n % 9]);
    assert_int_equal(all[n]->address % (all[n]->bytes >= 2 << 20 ? 2 << 20 : 4096), 0);
  }
  for (int n = 0; n < COUNT; n++)
    for (uint64_t k = 0; k < PADDING; k++) {
      assert_null(exec_memory_find(memory, all[n]->address + all[n]->bytes + k));
      assert_null(exec_memory_find(memory, all[n]->address - 1 - k));
    }
  for (int n = 20; n < COUNT; n++) memset((void *)all[n]->address, n, all[n]->bytes);
  assert_ptr_equal(exec_memory_nearest(memory, all[30]->address + all[30]->bytes), all[30]);
  assert_ptr_equal(exec_memory_nearest(memory, all[30]->address - 1), all[30]);
}

static void test_row(void **state) {
  static const exec_wanted wanted[] = {{8, 4, "one"}, {5000, 16384, "two"}, {1, 1, "three"}};
  const exec_allocation *first = allocate(4096), *between = allocate(1), *made[3];
  assert_int_equal(exec_memory_release(memory, first->address, NULL), FF_OK);
  assert_int_equal(exec_memory_allocate_row(memory, wanted, 3, EXEC_MEMORY_DEVICE, made, NULL), FF_OK);
  for (int n = 0; n < 3; n++) {
    assert_int_equal(made[n]->bytes, wanted[n].bytes);
    assert_int_equal(made[n]->address % wanted[n].alignment, 0);
    assert_string_equal(made[n]->name, wanted[n].name);
    assert_ptr_equal(exec_memory_find(memory, made[n]->address + wanted[n].bytes - 1), made[n]);
    assert_null(exec_memory_find(memory, made[n]->address + wanted[n].bytes));
    assert_true(made[n]->address > (n ? made[n - 1]->address : between->address));
  }
  assert_true(made[2]->address - made[0]->address <= 3 * 16384);
  assert_int_equal(exec_memory_release(memory, made[1]->address, NULL), FF_OK);
  assert_ptr_equal(exec_memory_find(memory, made[2]->address), made[2]);
  assert_true(!made[0]->freed && made[1]->freed && !made[2]->freed);
}

static void test_full(void **state) { /* tombstones give their ranges back rather than let an allocation fail */
  const exec_allocation *a = allocate(EXEC_ARENA_BYTES / 4 * 3), *b;
  uint64_t address = a->address;
  assert_int_equal(exec_memory_allocate(memory, EXEC_ARENA_BYTES / 2, 0, EXEC_MEMORY_DEVICE, "", &b, NULL),
                   FF_NO_MEMORY);
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
  assert_int_equal(exec_memory_register(memory, (void *)exec_memory_base(memory), 10, &b, NULL), FF_INVALID);
}

static void test_nearest(void **state) {
  assert_null(exec_memory_nearest(memory, exec_memory_base(memory)));
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

/* Cut at a page, twice, and joined to what it was. */
static void test_parts(void **state) {
  enum { WHOLE = (5 << 20) + 3, FIRST = (3 << 20) + 1 };
  const exec_allocation *a = allocate(WHOLE), *next = allocate(4096);
  uint64_t at = a->address, live = exec_memory_bytes(memory, EXEC_MEMORY_DEVICE);
  uint32_t id = a->id;
  exec_memory_park(a, true);
  const exec_allocation *b = exec_memory_cut(memory, a, FIRST, WHOLE - FIRST - 4095),
                        *c = exec_memory_cut(memory, b, 4096, WHOLE - FIRST - 4095 - 4096);
  assert_int_equal(b->address, at + (3 << 20) + 4096);
  assert_int_equal(c->address, b->address + 4096);
  assert_true(a->id == id && b->id == id && c->id == id && a->freed && b->freed && c->freed);
  exec_memory_park(b, false);
  assert_ptr_equal(exec_memory_find(memory, at + FIRST - 1), a);
  assert_null(exec_memory_find(memory, at + FIRST));
  assert_ptr_equal(exec_memory_find(memory, b->address + 4095), b);
  assert_ptr_equal(exec_memory_find(memory, at + WHOLE - 1), c);
  assert_null(exec_memory_find(memory, at + WHOLE));
  assert_true(exec_memory_may(b, true) && !exec_memory_may(a, false) && !exec_memory_may(c, false));
  memset((void *)(uintptr_t)b->address, 1, 4096);
  exec_memory_name(b, "part");
  assert_string_equal(b->name, "part");
  assert_string_equal(c->name, "thing");
  exec_memory_park(b, true);
  exec_memory_join(memory, a, b, FIRST + 4095 + 4096);
  exec_memory_join(memory, a, c, WHOLE);
  assert_ptr_equal(exec_memory_find(memory, at + WHOLE - 1), a);
  assert_int_equal(exec_memory_bytes(memory, EXEC_MEMORY_DEVICE), live);
  exec_memory_park(a, false);
  assert_true(exec_memory_release(memory, at, NULL) == FF_OK);
  assert_int_equal(exec_memory_bytes(memory, EXEC_MEMORY_DEVICE), next->bytes);
  assert_int_equal(allocate(1)->id, next->id + 1); /* parts have no number of their own */
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {T(test_bounds),      T(test_large),     T(test_tombstones), T(test_places),
                                     T(test_place_taken), T(test_canonical), T(test_padding),    T(test_limits),
                                     T(test_full),        T(test_row),       T(test_zero),       T(test_zero_of_files),
                                     T(test_registered),  T(test_nearest),   T(test_random),     T(test_parts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
