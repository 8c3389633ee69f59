/* SPDX-License-Identifier: Apache-2.0 */
/* What this process has mapped: where a mapping begins and ends, what may be done there, and whose it is. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mappings.h"

static int of_the_program = 1;

static const char *name_at(const ff_mappings *mappings, const void *address) {
  const ff_mapping *mapping = ff_mapping_at(mappings, (uint64_t)(uintptr_t)address);
  return mapping ? mapping->name : NULL;
}

/* Four pages: one that nothing may be done with, one to read, one to write, one that nothing may be done with. */
static void test_edges(void **state) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  char *pages = mmap(NULL, 4 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(pages != MAP_FAILED);
  assert_int_equal(mprotect(pages + page, page, PROT_READ), 0);
  assert_int_equal(mprotect(pages + 2 * page, page, PROT_READ | PROT_WRITE), 0);
  ff_mappings mappings = ff_mappings_read();
  uint64_t at = (uint64_t)(uintptr_t)pages + page;
  assert_null(ff_mapping_at(&mappings, at - 1));
  assert_null(ff_mapping_at(&mappings, at + 2 * page));
  const ff_mapping *first = ff_mapping_at(&mappings, at), *second = ff_mapping_at(&mappings, at + page);
  assert_true(first && first->begin == at && first->end == at + page && first->readable && !first->writable);
  assert_true(ff_mapping_at(&mappings, at + page - 1) == first);
  assert_true(second == first + 1 && second->begin == at + page && second->end == at + 2 * page && second->writable);
  assert_string_equal(first->name, "");
  free(mappings.items);
  munmap(pages, 4 * page);
}

static void test_names(void **state) {
  int on_stack = of_the_program;
  char *on_heap = sbrk(4096);
  ff_mappings mappings = ff_mappings_read();
  assert_string_equal(name_at(&mappings, &on_stack), "[stack]");
  assert_string_equal(name_at(&mappings, on_heap), "[heap]");
  const char *file = name_at(&mappings, &of_the_program), *end = "test_mappings";
  assert_true(file && strlen(file) >= strlen(end) && !strcmp(file + strlen(file) - strlen(end), end));
  assert_null(name_at(&mappings, NULL));
  for (size_t i = 0; i < mappings.count; i++) {
    const ff_mapping *mapping = &mappings.items[i];
    assert_true(mapping->begin < mapping->end && (!i || mapping[-1].end <= mapping->begin));
    if (!strncmp(mapping->name, "[v", 2)) assert_null(ff_mapping_at(&mappings, mapping->begin));
  }
  free(mappings.items);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_edges), cmocka_unit_test(test_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
