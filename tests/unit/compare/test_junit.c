/* SPDX-License-Identifier: Apache-2.0 */
/* JUnit XML: counts, elements, and texts that XML does not allow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compare/junit.h"

static void test_counts(void **state) {
  junit_suite suites[2] = {{.name = ff_strdup("one")}, {.name = ff_strdup("two")}};
  ff_text xml = {0};
  junit_add(&suites[0], "a", JUNIT_PASSED, "fine");
  junit_add(&suites[0], "b", JUNIT_FAILED, "x > 1");
  junit_add(&suites[0], "c", JUNIT_ERROR, "none");
  junit_write(suites, 2, &xml);
  assert_string_equal(
      xml.chars,
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      "  <testsuite name=\"one\" tests=\"3\" failures=\"1\" errors=\"1\" skipped=\"0\">\n"
      "    <testcase classname=\"one\" name=\"a\">\n      <system-out>fine</system-out>\n    </testcase>\n"
      "    <testcase classname=\"one\" name=\"b\">\n"
      "      <failure message=\"x &gt; 1\">x &gt; 1</failure>\n    </testcase>\n"
      "    <testcase classname=\"one\" name=\"c\">\n      <error message=\"none\">none</error>\n    </testcase>\n"
      "  </testsuite>\n"
      "  <testsuite name=\"two\" tests=\"0\" failures=\"0\" errors=\"0\" skipped=\"0\">\n  </testsuite>\n"
      "</testsuites>\n");
  free(xml.chars);
  junit_free(&suites[0]);
  junit_free(&suites[1]);
}

static void expect(const char *text, const char *escaped) {
  junit_suite suite = {.name = ff_strdup(text)};
  ff_text xml = {0}, wanted = {0};
  junit_write(&suite, 1, &xml);
  ff_text_add(&wanted, "name=\"%s\" tests", escaped);
  if (!strstr(xml.chars, wanted.chars)) fail_msg("%s: %s", escaped, xml.chars);
  free(xml.chars);
  free(wanted.chars);
  junit_free(&suite);
}

static void test_texts(void **state) {
  expect("a<b>&\"'", "a&lt;b&gt;&amp;&quot;'");
  expect("]]>", "]]&gt;");
  expect("a\n\t\rb", "a&#10;&#9;&#13;b");
  expect("\033[2J\001\177", "?[2J?\177");
  expect("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  expect("\xc3", "?");                /* cut off */
  expect("\xc3(", "?(");              /* no continuation */
  expect("\xc0\xaf", "??");           /* longer than it must be */
  expect("\xed\xa0\x80", "???");      /* a surrogate */
  expect("\xef\xbf\xbf", "???");      /* U+FFFF */
  expect("\xf4\x90\x80\x80", "????"); /* above U+10FFFF */
  expect("\xff\xfe\x80", "???");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts), cmocka_unit_test(test_texts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
