/* SPDX-License-Identifier: Apache-2.0 */
/* base/memory.h: what the allocators promise about zeroes, alignment and growth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

static void fill_and_free(void *memory, size_t bytes) {
  memset(memory, 0xa5, bytes);
  free(memory);
}

static void allocations_are_zero(void **state) {
  for (size_t bytes = 0; bytes < 3000; bytes += 37) {
    fill_and_free(ff_alloc(bytes), bytes); /* so that the next one may get a used block */
    unsigned char *memory = ff_alloc(bytes);
    assert_non_null(memory);
    for (size_t i = 0; i < bytes; i++) assert_int_equal(memory[i], 0);
    free(memory);
  }
}

static void aligned_allocations_are_aligned_and_zero(void **state) {
  for (size_t alignment = 16; alignment <= 4096; alignment *= 2)
    for (size_t bytes = 0; bytes < 300; bytes += 99) {
      unsigned char *memory = ff_alloc_aligned(alignment, bytes);
      assert_int_equal((uintptr_t)memory % alignment, 0);
      for (size_t i = 0; i < bytes; i++) assert_int_equal(memory[i], 0);
      free(memory);
    }
}

static void arena_memory_is_zero_aligned_and_apart(void **state) {
  ff_arena arena = {0};
  unsigned char *last = NULL;
  for (size_t i = 0; i < 3000; i++) {
    size_t bytes = i % 50 == 0 ? 70000 : i % 97; /* some are larger than a block of the arena */
    unsigned char *memory = ff_arena_alloc(&arena, bytes);
    assert_int_equal((uintptr_t)memory % 16, 0);
    for (size_t j = 0; j < bytes; j++) assert_int_equal(memory[j], 0);
    memset(memory, 0xff, bytes);
    if (last && i % 50 == 1) assert_int_equal(last[69999], 0xff);
    last = i % 50 == 0 ? memory : NULL;
  }
  char *copy = ff_arena_strndup(&arena, "abcdef", 3);
  assert_string_equal(copy, "abc");
  ff_arena_free(&arena);
  assert_null(arena.blocks);
}

static void vectors_keep_their_items(void **state) {
  FF_VEC(uint64_t) numbers = {0};
  for (uint64_t i = 0; i < 10000; i++) FF_PUSH(&numbers, i * i);
  assert_int_equal(numbers.count, 10000);
  assert_true(numbers.capacity >= 10000);
  for (uint64_t i = 0; i < 10000; i++) assert_int_equal(numbers.items[i], i * i);
  free(numbers.items);
}

static void strings_are_copied(void **state) {
  char text[] = "text";
  char *copy = ff_strdup(text);
  text[0] = 'n';
  assert_string_equal(copy, "text");
  free(copy);
}

/* A host without memory ends the process with a message (status 70, or the sanitizer's own), never with a null
 * pointer. */
static void no_memory_is_the_end(void **state) {
  pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO);
    volatile size_t too_much = SIZE_MAX / 2;
    ff_alloc(too_much);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_not_equal(WEXITSTATUS(status), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(allocations_are_zero),
                                     cmocka_unit_test(aligned_allocations_are_aligned_and_zero),
                                     cmocka_unit_test(arena_memory_is_zero_aligned_and_apart),
                                     cmocka_unit_test(vectors_keep_their_items),
                                     cmocka_unit_test(strings_are_copied),
                                     cmocka_unit_test(no_memory_is_the_end)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
