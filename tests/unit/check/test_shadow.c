/* SPDX-License-Identifier: Apache-2.0 */
/* The bit per byte against an array of bools; and options as text and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/check_options.h"
#include "check/shadow.h"
#include "exec/memory/address_space.h"

#define BASE UINT64_C(0x280000000000)

enum { ROOM = 1 << 18, STEPS = 3000 };

static uint32_t random_state = 1;
static uint32_t pick(uint32_t below) {
  random_state = random_state * 1664525u + 1013904223u;
  return (random_state >> 8) % below;
}

static void random_ranges(void **state) {
  check_shadow shadow = {0};
  unsigned char *naive = calloc(ROOM, 1);
  assert_int_equal(check_shadow_create(&shadow, BASE, NULL), FF_OK);
  for (int step = 0; step < STEPS; step++) {
    uint32_t most = pick(4) ? 40 : ROOM / 2, from = pick(ROOM / 2), bytes = 1 + pick(most), what = pick(4);
    uint64_t address = BASE + from;
    if (what == 0) check_shadow_set(&shadow, address, bytes), memset(naive + from, 1, bytes);
    if (what == 1) check_shadow_clear(&shadow, address, bytes), memset(naive + from, 0, bytes);
    if (what == 2) {
      uint32_t to = pick(2) ? pick(ROOM / 2) & ~7u : pick(ROOM / 2);
      check_shadow_copy(&shadow, BASE + to, address, bytes);
      memmove(naive + to, naive + from, bytes);
    }
    uint32_t width = 1u << pick(5), at = pick(ROOM / width - 1) * width; /* aligned, as accesses are */
    bool any = false, all = true;
    for (uint32_t n = 0; n < width; n++) any |= naive[at + n], all &= naive[at + n];
    assert_int_equal(check_shadow_any(&shadow, BASE + at, width), any);
    assert_int_equal(check_shadow_all(&shadow, BASE + at, width), all);
  }
  free(naive);
  check_shadow_free(&shadow);
}

static void outside_of_the_arena(void **state) {
  check_shadow shadow = {0};
  assert_true(check_shadow_any(&shadow, 0x1000, 4)); /* nothing is known: no alarm */
  assert_int_equal(check_shadow_create(&shadow, BASE, NULL), FF_OK);
  check_shadow_set(&shadow, 0x1000, 64);
  assert_true(check_shadow_all(&shadow, 0x1000, 4));
  check_shadow_set(&shadow, BASE + EXEC_ARENA_BYTES - 4, 1000);
  assert_true(check_shadow_all(&shadow, BASE + EXEC_ARENA_BYTES - 4, 4));
  assert_false(check_shadow_any(&shadow, BASE, 4));
  check_shadow_free(&shadow);
}

static void options_survive(void **state) {
  check_options options, again;
  ff_text text = {0};
  ff_error error;
  check_options_default(CHECK_RACECHECK, &options);
  assert_int_equal(check_option_set(&options, "leak-check", "full", &error), FF_OK);
  assert_int_equal(check_option_set(&options, "print-level", "info", &error), FF_OK);
  assert_int_equal(check_option_set(&options, "print-limit", "7", &error), FF_OK);
  check_options_write(&options, &text);
  setenv("FARFAULT_CHECKER", text.chars, 1);
  setenv("FARFAULT_CHECKER_KERNEL", "sa,xpy", 1);
  assert_int_equal(check_options_from_environment(&again, &error), FF_OK);
  strcpy(options.kernel, "sa,xpy");
  assert_memory_equal(&options, &again, sizeof options);
  free(text.chars);
  static const char *const wrong[] = {"nothing",
                                      "memcheck,leak-check",
                                      "memcheck,leak-check=maybe",
                                      "memcheck,print-limit=0",
                                      "memcheck,print-limit=x",
                                      "memcheck,x=1",
                                      ","};
  for (size_t n = 0; n < sizeof wrong / sizeof *wrong; n++) {
    setenv("FARFAULT_CHECKER", wrong[n], 1);
    assert_int_equal(check_options_from_environment(&again, &error), FF_INVALID);
  }
  unsetenv("FARFAULT_CHECKER");
  assert_int_equal(check_options_from_environment(&again, &error), FF_OK);
  assert_int_equal(again.tool, CHECK_NONE);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_ranges), cmocka_unit_test(outside_of_the_arena),
                                     cmocka_unit_test(options_survive)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
