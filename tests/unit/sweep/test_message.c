/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks: there and back, and what is none; hashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sweep/rank_message.h"
#include "sweep/study_plan.h"

static void there_and_back(void **state) {
  sweep_message from = {.kind = SWEEP_DONE,
                        .task = 4000000000u,
                        .status = -7,
                        .seconds = 1.5,
                        .texts = {"a\nb", "x\0y"},
                        .sizes = {3, 3}},
                to;
  ff_text bytes = {0};
  sweep_message_write(&from, &bytes);
  assert_true(sweep_message_read(bytes.chars, bytes.length, &to));
  assert_true(to.kind == from.kind && to.task == from.task && to.status == from.status && to.seconds == from.seconds);
  assert_string_equal(to.texts[0], "a\nb");
  assert_int_equal(to.sizes[1], 3);
  assert_memory_equal(to.texts[1], "x\0y", 4);
  for (size_t cut = 0; cut < bytes.length; cut++) assert_false(sweep_message_read(bytes.chars, cut, &to));
  ff_text_add_bytes(&bytes, "z", 1);
  assert_false(sweep_message_read(bytes.chars, bytes.length, &to));
  free(bytes.chars);
}

static void empty_texts(void **state) {
  sweep_message from = {.kind = SWEEP_ALIVE}, to;
  ff_text bytes = {0};
  sweep_message_write(&from, &bytes);
  assert_true(sweep_message_read(bytes.chars, bytes.length, &to));
  assert_string_equal(to.texts[0], "");
  assert_string_equal(to.texts[1], "");
  free(bytes.chars);
}

static void no_messages(void **state) {
#define NONE(text) \
  { text, sizeof text }
  static const struct {
    const char *bytes;
    size_t size;
  } none[] = {NONE(""),
              NONE("\n"),
              NONE("X 1 1 1 0 0\n\0"),
              NONE("A 1 1 1 0\n\0"),
              NONE("A 1 1 1 99999999999999999999 0\n\0"),
              NONE("A 1 1 1 18446744073709551615 1\n\0"),
              NONE("A 1 1 1 0 0 0\n\0"),
              NONE("A 1 1 1 0 0\n")};
#undef NONE
  sweep_message to;
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    assert_false(sweep_message_read(none[i].bytes, none[i].size, &to));
}

/* The published value of FNV-1a, 128 bits, of nothing; and lists of texts that would be the same bytes without
 * lengths. */
static void hashes(void **state) {
  sweep_hash a, b;
  char first[SWEEP_KEY], second[SWEEP_KEY];
  sweep_hash_start(&a);
  sweep_hash_end(&a, first);
  assert_string_equal(first, "6c62272e07bb014262b821756295c58d");
  sweep_hash_start(&b);
  sweep_hash_text(&a, "ab");
  sweep_hash_text(&a, "c");
  sweep_hash_text(&b, "a");
  sweep_hash_text(&b, "bc");
  sweep_hash_end(&a, first);
  sweep_hash_end(&b, second);
  assert_string_not_equal(first, second);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back), cmocka_unit_test(empty_texts),
                                     cmocka_unit_test(no_messages), cmocka_unit_test(hashes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
