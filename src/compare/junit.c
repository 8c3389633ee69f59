/* SPDX-License-Identifier: Apache-2.0 */
/* See junit.h. */
#include "compare/junit.h"

#include <stdlib.h>
#include <string.h>

void junit_add(junit_suite *suite, const char *name, junit_verdict verdict, const char *message) {
  junit_case made = {ff_strdup(name), ff_strdup(message), verdict};
  FF_PUSH(&suite->cases, made);
}

/* How many bytes the character has; 0: it is no character of XML 1.0 (section 2.2) in UTF-8 (RFC 3629). */
static size_t character(const unsigned char *at) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  size_t length = at[0] < 0x80 ? 1 : at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : at[0] >= 0xc0 ? 2 : 0;
  uint32_t code = length == 1 ? at[0] : at[0] & (0x7fu >> length);
  if (!length || at[0] >= 0xf8) return 0;
  for (size_t i = 1; i < length; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
    code = code << 6 | (at[i] & 0x3f);
  }
  bool control = code < 32 && code != '\t' && code != '\n' && code != '\r';
  bool outside =
      code < least[length] || (code >= 0xd800 && code < 0xe000) || code == 0xfffe || code == 0xffff || code > 0x10ffff;
  return control || outside ? 0 : length;
}

/* In an attribute or an element. */
static void add_escaped(ff_text *out, const char *text) {
  while (*text) {
    size_t length = character((const unsigned char *)text);
    const char *entity = *text == '&'    ? "&amp;"
                         : *text == '<'  ? "&lt;"
                         : *text == '>'  ? "&gt;"
                         : *text == '"'  ? "&quot;"
                         : *text == '\n' ? "&#10;"
                         : *text == '\r' ? "&#13;"
                         : *text == '\t' ? "&#9;"
                         : !length       ? "?"
                                         : NULL;
    if (entity) ff_text_add(out, "%s", entity);
    else ff_text_add_bytes(out, text, length);
    text += length ? length : 1;
  }
}

static size_t count_verdicts(const junit_suite *suite, junit_verdict verdict) {
  size_t count = 0;
  for (size_t i = 0; i < suite->cases.count; i++) count += suite->cases.items[i].verdict == verdict;
  return count;
}

static void write_case(const junit_suite *suite, const junit_case *c, ff_text *out) {
  static const char *const elements[] = {"system-out", "failure", "error"};
  ff_text_add(out, "    <testcase classname=\"");
  add_escaped(out, suite->name);
  ff_text_add(out, "\" name=\"");
  add_escaped(out, c->name);
  ff_text_add(out, "\">\n      <%s", elements[c->verdict]);
  if (c->verdict != JUNIT_PASSED) {
    ff_text_add(out, " message=\"");
    add_escaped(out, c->message);
    ff_text_add(out, "\"");
  }
  ff_text_add(out, ">");
  add_escaped(out, c->message);
  ff_text_add(out, "</%s>\n    </testcase>\n", elements[c->verdict]);
}

void junit_write(const junit_suite *suites, size_t count, ff_text *out) {
  ff_text_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
  for (size_t i = 0; i < count; i++) {
    const junit_suite *suite = &suites[i];
    ff_text_add(out, "  <testsuite name=\"");
    add_escaped(out, suite->name);
    ff_text_add(out, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"0\">\n", suite->cases.count,
                count_verdicts(suite, JUNIT_FAILED), count_verdicts(suite, JUNIT_ERROR));
    for (size_t j = 0; j < suite->cases.count; j++) write_case(suite, &suite->cases.items[j], out);
    ff_text_add(out, "  </testsuite>\n");
  }
  ff_text_add(out, "</testsuites>\n");
}

void junit_free(junit_suite *suite) {
  for (size_t i = 0; i < suite->cases.count; i++) {
    free(suite->cases.items[i].name);
    free(suite->cases.items[i].message);
  }
  free(suite->cases.items);
  free(suite->name);
  *suite = (junit_suite){0};
}
