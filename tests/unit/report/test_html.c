/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a run: the data stands in its place, and no text of it can end the element that it stands in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "report/html.h"

#define PAGE "<p>{}</p><script type=\"application/json\">" REPORT_HTML_PLACE "</script><b>end</b>"

static char *embed(const char *text) {
  ff_text out = {0};
  report_html_embed(text, strlen(text), &out);
  return out.chars;
}

static void expect_embedded(const char *text, const char *expected) {
  char *got = embed(text);
  assert_string_equal(got, expected);
  free(got);
}

static void test_nothing_ends_the_element(void **state) {
  expect_embedded("\"</script>\"", "\"\\u003c/script\\u003e\"");
  expect_embedded("\"<!--&amp;\"", "\"\\u003c!--\\u0026amp;\"");
  expect_embedded("\"a\xe2\x80\xa8"
                  "b\xe2\x80\xa9"
                  "c\"",
                  "\"a\\u2028b\\u2029c\"");
}

static void test_other_texts_stay(void **state) {
  expect_embedded("{\"a\": [1, -2.5e3, \"\xe2\x80\xa6 \xc3\xa9 \\\" \\\\ \xf0\x9f\x98\x80\"]}",
                  "{\"a\": [1, -2.5e3, \"\xe2\x80\xa6 \xc3\xa9 \\\" \\\\ \xf0\x9f\x98\x80\"]}");
  expect_embedded("\xe2", "\xe2"); /* cut short: nothing behind it is looked at */
  expect_embedded("\xe2\x80", "\xe2\x80");
}

/* What is between the page's ends is JSON with the same texts as before. */
static void test_data_comes_back(void **state) {
  const char *json = "{\"name\": \"</script><img src=x onerror=alert(1)>\\u0001\", \"n\": 9007199254740993}";
  ff_text out = {0};
  ff_error error;
  assert_int_equal(
      report_html_write("page", PAGE, strlen(PAGE), "run", "a/b/run.json", NULL, json, strlen(json), &out, &error),
      FF_OK);
  const char *begin = "<p>{}</p><script type=\"application/json\">", *end = "</script><b>end</b>";
  assert_memory_equal(out.chars, begin, strlen(begin));
  assert_string_equal(out.chars + out.length - strlen(end), end);
  assert_null(memchr(out.chars + strlen(begin), '<', out.length - strlen(begin) - strlen(end)));
  json_t *data =
      json_loadb(out.chars + strlen(begin), out.length - strlen(begin) - strlen(end), JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(data);
  assert_string_equal(json_string_value(json_object_get(data, "kind")), "run");
  /* not where it was on this computer */
  assert_string_equal(json_string_value(json_object_get(data, "file")), "run.json");
  const json_t *run = json_object_get(data, "run"), *counter = json_array_get(json_object_get(data, "counters"), 0);
  assert_string_equal(json_string_value(json_object_get(run, "name")), "</script><img src=x onerror=alert(1)>\x01");
  assert_int_equal(json_integer_value(json_object_get(run, "n")), 9007199254740993);
  assert_string_equal(json_string_value(json_array_get(counter, 0)), "time_ps");
  assert_string_equal(json_string_value(json_array_get(counter, 1)), "ps");
  json_decref(data);
  free(out.chars);
}

static void test_pages_without_one_place(void **state) {
  const char *pages[] = {"", "<html></html>", PAGE PAGE};
  for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
    ff_text out = {0};
    ff_error error;
    assert_int_equal(report_html_write("the/page", pages[i], strlen(pages[i]), "run", "f", NULL, "{}", 2, &out, &error),
                     FF_PARSE);
    assert_non_null(strstr(error.message, "the/page: is not farfault's page"));
    assert_null(out.chars);
  }
}

static void test_name_that_is_no_utf8(void **state) {
  ff_text out = {0};
  ff_error error;
  assert_int_equal(report_html_write("p", PAGE, strlen(PAGE), "run", "\xff.json", NULL, "{}", 2, &out, &error), FF_OK);
  assert_non_null(strstr(out.chars, "\"file\":\"\""));
  free(out.chars);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_ends_the_element), cmocka_unit_test(test_other_texts_stay),
      cmocka_unit_test(test_data_comes_back),          cmocka_unit_test(test_pages_without_one_place),
      cmocka_unit_test(test_name_that_is_no_utf8),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
