/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a run's data into the page that was made from web/. The run's own text goes in, not what was read of it: keys
 * that this version does not know reach the page too. See html.h. */
#define _GNU_SOURCE /* memmem */
#include "report/html.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"

enum { PAGE_LIMIT = 64 << 20 };

/* How many bytes at `at` must not stand as they are, and what stands for them; 0: none. */
static size_t unsafe(const char *at, const char *end, const char **instead) {
  switch (*at) {
  case '<': *instead = "\\u003c"; return 1;
  case '>': *instead = "\\u003e"; return 1;
  case '&': *instead = "\\u0026"; return 1;
  case '\xe2': /* U+2028 and U+2029, which end a line to readers of JavaScript */
    if (end - at < 3 || at[1] != '\x80' || (at[2] != '\xa8' && at[2] != '\xa9')) return 0;
    *instead = at[2] == '\xa8' ? "\\u2028" : "\\u2029";
    return 3;
  default: return 0;
  }
}

void report_html_embed(const char *json, size_t size, ff_text *out) {
  const char *end = json + size, *kept = json, *instead;
  for (const char *at = json; at < end;) {
    size_t length = unsafe(at, end, &instead);
    if (!length) {
      at++;
      continue;
    }
    ff_text_add_bytes(out, kept, (size_t)(at - kept));
    ff_text_add(out, "%s", instead);
    kept = at += length;
  }
  ff_text_add_bytes(out, kept, (size_t)(end - kept));
}

/* Any text as JSON: what is not UTF-8 is left out. */
static json_t *text_value(const char *text) {
  json_t *value = json_string(text);
  return value ? value : json_string("");
}

/* What the page says about the counters: [name, unit, meaning] each. */
static json_t *counters_value(void) {
  json_t *list = json_array();
#define X(name, unit, help) json_array_append_new(list, json_pack("[sss]", #name, unit, help));
#include "machine/observe/counters.def"
#undef X
  return list;
}

static json_t *tier_counters_value(void) {
  json_t *list = json_array();
#define X(name, unit, help) json_array_append_new(list, json_pack("[sss]", #name, unit, help));
#include "machine/observe/tiers.def"
#undef X
  return list;
}

/* The data up to the value of its last key. */
static void add_head(const char *kind, const char *file, const char *more, ff_text *out) {
  json_t *head = json_object();
  json_object_set_new(head, "kind", text_value(kind));
  const char *slash = strrchr(file, '/');
  json_object_set_new(head, "file", text_value(slash ? slash + 1 : file));
  json_object_set_new(head, "counters", counters_value());
  json_object_set_new(head, "tier_counters", tier_counters_value());
  char *text = json_dumps(head, JSON_COMPACT);
  report_html_embed(text, strlen(text) - 1, out); /* without the last brace */
  if (more) {
    ff_text_add(out, ",");
    report_html_embed(more, strlen(more), out);
  }
  ff_text_add(out, ",\"%s\":", kind);
  free(text);
  json_decref(head);
}

ff_status report_html_write(const char *page_name, const char *page, size_t page_size, const char *kind,
                            const char *file, const char *more, const char *json, size_t size, ff_text *out,
                            ff_error *error) {
  size_t length = strlen(REPORT_HTML_PLACE);
  const char *end = page + page_size, *place = memmem(page, page_size, REPORT_HTML_PLACE, length);
  if (!place || memmem(place + length, (size_t)(end - place) - length, REPORT_HTML_PLACE, length))
    return ff_fail(error, FF_PARSE, "%s: is not farfault's page: it must have one place for data, %s", page_name,
                   REPORT_HTML_PLACE);
  ff_text_add_bytes(out, page, (size_t)(place - page));
  add_head(kind, file, more, out);
  report_html_embed(json, size, out);
  ff_text_add(out, "}");
  ff_text_add_bytes(out, place + length, (size_t)(end - place) - length);
  return FF_OK;
}

ff_status report_html_make(const char *page_path, const char *kind, const char *file, const char *more,
                           const char *json, size_t size, ff_text *out, ff_error *error) {
  char *page;
  size_t page_size;
  ff_status status = ff_file_read(page_path, PAGE_LIMIT, &page, &page_size, error);
  if (status) return status;
  status = report_html_write(page_path, page, page_size, kind, file, more, json, size, out, error);
  free(page);
  return status;
}
