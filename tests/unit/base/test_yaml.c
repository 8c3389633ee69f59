/* SPDX-License-Identifier: Apache-2.0 */
/* base/yaml.h: what scalars decode to, and that nothing of the memory is lost, whatever they are. The files' own errors
 * are the readers' tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <string.h>

#include "base/yaml.h"

/* The text's root is a scalar: `decoded` gets it. */
static bool decode(const char *text, char *decoded) {
  ff_yaml yaml;
  ff_error error;
  if (ff_yaml_open("t", text, strlen(text), "test", &yaml, &error)) fail_msg("%s: %s", text, error.message);
  bool is_scalar = ff_yaml_scalar(ff_yaml_root(&yaml), decoded);
  ff_yaml_close(&yaml);
  return is_scalar;
}

static void scalars_are_what_the_file_says(void **state) {
  static const struct {
    const char *text, *decoded;
  } rows[] = {{"plain text", "plain text"},
              {"two\n  lines", "two lines"},
              {"\"two\n\n lines\"", "two\nlines"},
              {"|\n a\n b\n", "a\nb\n"},
              {">\n a\n b\n", "a b\n"},
              {"''", ""},
              {"\"\"", ""},
              {"'it''s'", "it's"},
              {"''''", "'"},
              {"''''''", "''"},
              {"''''''''", "'''"},
              {"'a''''b'", "a''b"},
              {"'a''''''b'''", "a'''b'"},
              {"'''a'", "'a"},
              {"'a'' ''b'", "a' 'b"},
              {"''''''''']''''z'", "'''']''z"},
              {"\n''''''''']''''z'", "'''']''z"},
              {"'''''''''\n ''''z'", "'''' ''z"},
              {"'1''2''3''4''5''6''7''8''9''10'", "1'2'3'4'5'6'7'8'9'10"},
              {"\"it''''s\"", "it''''s"},
              {"a''''b", "a''''b"},
              {"\"\\t\\\"\\\\\\x41\\u00e9\\n\"", "\t\"\\A\xc3\xa9\n"},
              {"\"\\0\"", NULL},
              {"\"\\x41\\x41\\x41\\x41\\x41\\x41\\x41\\x41\\x41\\x41\\x41\\x41\"", "AAAAAAAAAAAA"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char decoded[FF_YAML_SCALAR + 1] = "";
    bool is_scalar = decode(rows[i].text, decoded);
    if (is_scalar != (rows[i].decoded != NULL)) fail_msg("%s: %s", rows[i].text, is_scalar ? "a scalar" : "no scalar");
    if (rows[i].decoded && strcmp(decoded, rows[i].decoded))
      fail_msg("%s: expected %s, not %s", rows[i].text, rows[i].decoded, decoded);
  }
}

static void long_scalars_are_none(void **state) {
  static char text[FF_YAML_SCALAR + 2], decoded[FF_YAML_SCALAR + 1];
  memset(text, 'x', FF_YAML_SCALAR);
  assert_true(decode(text, decoded));
  assert_string_equal(decoded, text);
  text[FF_YAML_SCALAR] = 'x';
  assert_false(decode(text, decoded));
}

static void a_place_counts_bytes_and_its_caret_letters(void **state) {
  static const char text[] = "[\xc3\xa4, b]\n";
  ff_yaml yaml;
  ff_error error;
  assert_int_equal(ff_yaml_open("t", text, sizeof text - 1, "test", &yaml, &error), FF_OK);
  struct fy_node *second = fy_node_sequence_get_by_index(ff_yaml_root(&yaml), 1);
  assert_int_equal(ff_yaml_fail(&yaml, second, "bad"), FF_PARSE);
  assert_string_equal(error.message, "t:1:6: bad\n  [\xc3\xa4, b]\n      ^");
  ff_yaml_close(&yaml);
}

static void a_value_left_out_is_empty(void **state) {
  ff_yaml yaml;
  ff_error error;
  char decoded[FF_YAML_SCALAR + 1] = "before";
  assert_int_equal(ff_yaml_open("t", "[a, ]\n", 6, "test", &yaml, &error), FF_OK);
  assert_false(ff_yaml_scalar(ff_yaml_root(&yaml), decoded));
  assert_false(ff_yaml_scalar(NULL, decoded));
  ff_yaml_close(&yaml);
  assert_int_equal(ff_yaml_open("t", "a:\n", 3, "test", &yaml, &error), FF_OK);
  void *at = NULL;
  struct fy_node_pair *pair = fy_node_mapping_iterate(ff_yaml_root(&yaml), &at);
  assert_true(ff_yaml_scalar(fy_node_pair_value(pair), decoded));
  assert_string_equal(decoded, "");
  ff_yaml_close(&yaml);
}

/* Each of these costs 512 bytes where the pieces' list is lost (mallinfo2 is empty where the sanitizer, which looks for
 * leaks itself, allocates). */
static void quotes_lose_no_memory(void **state) {
  static const char *const texts[] = {"''''''''']''''z'", "''''''''''''''", "'a''''b''''c''''d''''e'",
                                      "'''''''''\n ''''z'"};
  char decoded[FF_YAML_SCALAR + 1];
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) decode(texts[i], decoded);
  size_t before = mallinfo2().uordblks;
  for (int round = 0; round < 100; round++)
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) decode(texts[i], decoded);
  assert_in_range(mallinfo2().uordblks, 0, before + 64 * 1024);
}

typedef struct refusal {
  const char *text, *expected;
} refusal;

static void check_refused(const refusal *row) {
  ff_yaml yaml;
  ff_error error;
  assert_int_equal(ff_yaml_open("t", row->text, strlen(row->text), "test", &yaml, &error), FF_PARSE);
  if (!strstr(error.message, row->expected)) fail_msg("%s: expected %s in %s", row->text, row->expected, error.message);
}

static void check_opens(const char *text) {
  ff_yaml yaml;
  ff_error error;
  if (ff_yaml_open("t", text, strlen(text), "test", &yaml, &error)) fail_msg("%s: %s", text, error.message);
  ff_yaml_close(&yaml);
}

/* libfyaml 0.7.12 reads a directive with bytes that are no text for ever, so that it gets neither. */
static void directives_and_what_is_no_text_are_refused(void **state) {
  static const refusal rows[] = {{"%a", "t:1:1: YAML directives"},
                                 {"a: 1\n%a", "t:2:1: YAML directives"},
                                 {"a: [\r%a]", "t:1:6: YAML directives"},
                                 {"\xef\xbb\xbf%a", "directives"},
                                 {"\r\n%", "t:2:1: YAML directives"},
                                 {"a\x80", "t:1:2: not text: this byte is 0x80"},
                                 {"\xc1\xbf", "not text"},
                                 {"\xe0\x84\x92", "t:1:1: not text: this byte is 0xe0"},
                                 {"\xe0\x9f\xbf", "not text"},
                                 {"\xed\xa0\x80", "not text"},
                                 {"\xf0\x8f\xbf\xbf", "not text"},
                                 {"\xf4\x90\x80\x80", "not text"},
                                 {"\xf5\x80\x80\x80", "not text"},
                                 {"\xe2\x82", "not text"},
                                 {"a\x7f", "not text"},
                                 {" \r%a\xe0\x84\x92", "directives"}};
  static const char *const fine[] = {"\xe0\xa0\x80",     "\xed\x9f\xbf", "\xee\x80\x80", "\xf0\x90\x80\x80",
                                     "\xf4\x8f\xbf\xbd", "a%",           "a\n %",        "\xc2\xb5s"};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) check_refused(&rows[i]);
  for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) check_opens(fine[i]);
}

/* libfyaml 0.7.12 reads foreign memory when it closes some refused documents with such a key. */
static void keys_behind_a_question_mark_are_refused(void **state) {
  static const refusal rows[] = {{"? a:\t:", "t:1:1: keys behind a '?'"},
                                 {": ? m:\t?", "t:1:3: keys behind a '?'"},
                                 {"l:\t: ? ::\t?", "t:1:6: keys behind a '?'"},
                                 {"a: [b, ? c]", "t:1:8: keys behind a '?'"},
                                 {"? 'l2''I\n\t ':\t:", "t:1:1: keys"},
                                 {"a: 1\n  ? ::\t?", "t:2:3: keys"},
                                 {"- - ? ::\t?", "t:1:5: keys"},
                                 {"? {a:}:\t?? ", "t:1:1: keys"},
                                 {"a:\r?\tb", "keys"},
                                 {"a:\n?", "t:2:1: keys"}};
  static const char *const fine[] = {"a: why ?", "a: ?b", "?b: c", "- -?", "a: # so\n ?x"};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) check_refused(&rows[i]);
  for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) check_opens(fine[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scalars_are_what_the_file_says),
      cmocka_unit_test(long_scalars_are_none),
      cmocka_unit_test(a_place_counts_bytes_and_its_caret_letters),
      cmocka_unit_test(a_value_left_out_is_empty),
      cmocka_unit_test(quotes_lose_no_memory),
      cmocka_unit_test(directives_and_what_is_no_text_are_refused),
      cmocka_unit_test(keys_behind_a_question_mark_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
