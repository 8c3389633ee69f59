/* SPDX-License-Identifier: Apache-2.0 */
/* base/status.h, check.h, and the messages of place.c: what is written where, and that nothing overruns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"

static void every_status_has_a_text(void **state) {
#define X(name, text) assert_string_equal(ff_status_text(FF_##name), text);
#include "base/status.def"
#undef X
  assert_string_equal(ff_status_text((ff_status)999), "unknown status");
}

static void a_failure_writes_status_and_message(void **state) {
  ff_error error = {0};
  assert_int_equal(ff_fail(&error, FF_LIMIT, "%s has %d", "it", 3), FF_LIMIT);
  assert_int_equal(error.status, FF_LIMIT);
  assert_string_equal(error.message, "it has 3");
  assert_int_equal(ff_fail(NULL, FF_IO, "no error is asked for"), FF_IO);
}

static void a_long_message_is_cut(void **state) {
  static char text[5000];
  memset(text, 'x', sizeof text - 1);
  ff_error error;
  ff_fail(&error, FF_IO, "%s", text);
  assert_int_equal(strlen(error.message), sizeof error.message - 1);
  ff_fail_at(&error, FF_IO, "place");
  assert_int_equal(strlen(error.message), sizeof error.message - 1);
  assert_memory_equal(error.message, "place: xxx", 10);
  ff_fail_at(&error, FF_IO, text);
  assert_int_equal(strlen(error.message), sizeof error.message - 1);
}

static void a_place_is_put_in_front(void **state) {
  ff_error error;
  ff_fail(&error, FF_PARSE, "wrong");
  assert_int_equal(ff_fail_at(&error, FF_PARSE, "file"), FF_PARSE);
  assert_string_equal(error.message, "file: wrong");
  assert_int_equal(ff_fail_at(NULL, FF_PARSE, "file"), FF_PARSE);
}

static const char sample[] = "first\nse\tcond line\n\nlast";

static const char *shown(uint32_t line, uint32_t column) {
  static ff_error error;
  assert_int_equal(ff_fail_in_text(&error, FF_PARSE, "f.x", sample, sizeof sample - 1, line, column, "bad %d", 7),
                   FF_PARSE);
  return error.message;
}

static void the_caret_stands_under_the_column(void **state) {
  assert_string_equal(shown(1, 1), "f.x:1:1: bad 7\n  first\n  ^");
  assert_string_equal(shown(2, 4), "f.x:2:4: bad 7\n  se cond line\n     ^");
  assert_string_equal(shown(3, 1), "f.x:3:1: bad 7"); /* an empty line: nothing to point at */
  assert_string_equal(shown(4, 5), "f.x:4:5: bad 7\n  last\n      ^");
}

static void the_caret_stands_under_the_letter_of_several_bytes(void **state) {
  static const char text[] = "a\xc3\xa4\xe2\x82\xac = z\n"; /* 1, 2 and 3 bytes */
  static const struct {
    uint32_t column;
    const char *caret;
  } rows[] = {{1, "\n  ^"},   {2, "\n   ^"},   {3, "\n   ^"},      {4, "\n    ^"},
              {6, "\n    ^"}, {7, "\n     ^"}, {10, "\n        ^"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ff_error error;
    ff_fail_in_text(&error, FF_PARSE, "f", text, sizeof text - 1, 1, rows[i].column, "bad");
    assert_string_equal(strrchr(error.message, '\n'), rows[i].caret);
  }
}

static void at_the_end_of_the_text_its_last_line_is_shown(void **state) {
  static const struct {
    const char *text;
    uint32_t line, column;
    const char *shown;
  } rows[] = {{"a: [b\n", 2, 1, "\n  a: [b\n       ^"},
              {"a: [b\n \n\n", 4, 1, "\n  a: [b\n       ^"},
              {"x\na: [b", 2, 6, "\n  a: [b\n       ^"},
              {"x\n\"a\": 1,\n   \n", 3, 4, "\n  \"a\": 1,\n         ^"}, /* cut off behind an indent */
              {"x\n   \n", 2, 0, ""},
              {"\n", 2, 1, ""},
              {"", 1, 1, ""},
              {"a\n\n", 2, 1, ""},
              {"a\n", 2, 0, ""}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ff_error error;
    ff_fail_in_text(&error, FF_PARSE, "f", rows[i].text, strlen(rows[i].text), rows[i].line, rows[i].column, "bad");
    assert_string_equal(strstr(error.message, "bad") + 3, rows[i].shown);
  }
}

static void columns_of_characters_become_bytes(void **state) {
  static const char text[] = "plain\na\xc3\xa4\xff\xe2\x82\xac.\nlast";
  static const uint32_t bytes[] = {0, 1, 2, 4, 5, 8, 9, 10}; /* by column; beyond the line they count on */
  for (uint32_t column = 0; column < sizeof bytes / sizeof *bytes; column++)
    assert_int_equal(ff_column_in_bytes(text, sizeof text - 1, 2, column), bytes[column]);
  assert_int_equal(ff_column_in_bytes(text, sizeof text - 1, 3, 5), 5);
  assert_int_equal(ff_column_in_bytes(text, sizeof text - 1, 4, 5), 5); /* no such line */
  assert_int_equal(ff_column_in_bytes(NULL, 0, 1, 5), 5);
}

static void places_outside_the_text_show_what_there_is(void **state) {
  assert_string_equal(shown(5, 1), "f.x:5:1: bad 7");
  assert_string_equal(shown(4, 6), "f.x:4:6: bad 7\n  last");
  assert_string_equal(shown(1, 0), "f.x:1: bad 7\n  first");
  assert_string_equal(shown(3, 0), "f.x:3: bad 7"); /* an empty line, and no caret */
  ff_error error;
  ff_fail_in_text(&error, FF_PARSE, "f.x", NULL, 0, 3, 2, "bad");
  assert_string_equal(error.message, "f.x:3:2: bad");
  assert_int_equal(ff_fail_in_text(NULL, FF_PARSE, "f.x", sample, 3, 1, 1, "bad"), FF_PARSE);
}

static void long_lines_are_cut_around_the_column(void **state) {
  static char line[1000];
  memset(line, '.', sizeof line);
  line[500] = '!';
  ff_error error;
  ff_fail_in_text(&error, FF_PARSE, "f", line, sizeof line, 1, 501, "here");
  const char *first = strchr(error.message, '\n') + 1, *second = strchr(first, '\n') + 1;
  assert_true(second - first < 110);
  assert_int_equal(first[strchr(second, '^') - second], '!');
  for (size_t i = 0; i < 499; i += 2) memcpy(line + i, "\xc3\xa4", 2); /* letters are not cut in two */
  ff_fail_in_text(&error, FF_PARSE, "f", line, 501, 1, 501, "here");
  first = strchr(error.message, '\n') + 1, second = strchr(first, '\n') + 1;
  assert_null(strchr(error.message, '?'));
  size_t letters = 0; /* before the '!': two bytes each */
  while ((unsigned char)first[2 + 2 * letters] == 0xc3) letters++;
  assert_int_equal(first[2 + 2 * letters], '!');
  assert_int_equal(strchr(second, '^') - second, 2 + letters);
}

static void control_characters_do_not_reach_the_terminal(void **state) {
  ff_error error;
  ff_fail_in_text(&error, FF_PARSE, "f", "a\033[2Jb\177", 7, 1, 1, "here");
  assert_string_equal(error.message, "f:1:1: here\n  a?[2Jb?\n  ^");
  /* letters of UTF-8 do; a C1 control, what is no UTF-8 and half a letter do not */
  static const char bytes[] = "\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82\xc2\x9b\xab\xff\xe2\x82z\xc3";
  ff_fail_in_text(&error, FF_PARSE, "f", bytes, sizeof bytes - 1, 1, 1, "here");
  assert_string_equal(error.message, "f:1:1: here\n  \xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82????"
                                     "??z?\n  ^");
}

static void the_nearest_word_is_found(void **state) {
  static const char *const words[] = {"copy", "demand", "replay", "ideal", NULL};
  assert_string_equal(ff_closest("cpoy", words), "copy");
  assert_string_equal(ff_closest("demnd", words), "demand");
  assert_string_equal(ff_closest("replays", words), "replay");
  assert_string_equal(ff_closest("copy", words), "copy");
  assert_null(ff_closest("xyzzy", words));
  assert_null(ff_closest("", words));
  static char long_word[200];
  memset(long_word, 'c', sizeof long_word - 1);
  assert_null(ff_closest(long_word, words));
}

static int status_of_child(const char *level, void (*act)(void)) {
  pid_t child = fork();
  if (child == 0) {
    setenv("FARFAULT_CHECK", level, 1);
    ff_check_level_read();
    close(STDERR_FILENO);
    signal(SIGABRT, SIG_DFL);
    act();
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void assert_false_thing(void) { FF_ASSERT(1 == 2); }
static void check_false_thing(void) { FF_CHECK(1 == 2); }
static void check_deep_false_thing(void) { FF_CHECK_DEEP(1 == 2); }

static void checks_abort_from_their_level_on(void **state) {
  assert_int_equal(status_of_child("0", assert_false_thing), -SIGABRT);
  assert_int_equal(status_of_child("0", check_false_thing), 0);
  assert_int_equal(status_of_child("1", check_false_thing), -SIGABRT);
  assert_int_equal(status_of_child("1", check_deep_false_thing), 0);
  assert_int_equal(status_of_child("2", check_deep_false_thing), -SIGABRT);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_status_has_a_text),
                                     cmocka_unit_test(a_failure_writes_status_and_message),
                                     cmocka_unit_test(a_long_message_is_cut),
                                     cmocka_unit_test(a_place_is_put_in_front),
                                     cmocka_unit_test(the_caret_stands_under_the_column),
                                     cmocka_unit_test(the_caret_stands_under_the_letter_of_several_bytes),
                                     cmocka_unit_test(at_the_end_of_the_text_its_last_line_is_shown),
                                     cmocka_unit_test(columns_of_characters_become_bytes),
                                     cmocka_unit_test(places_outside_the_text_show_what_there_is),
                                     cmocka_unit_test(long_lines_are_cut_around_the_column),
                                     cmocka_unit_test(control_characters_do_not_reach_the_terminal),
                                     cmocka_unit_test(the_nearest_word_is_found),
                                     cmocka_unit_test(checks_abort_from_their_level_on)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
