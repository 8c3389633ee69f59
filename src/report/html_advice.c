/* SPDX-License-Identifier: Apache-2.0 */
/* Advice for the page of a run, from the file that `farfault advise --json` wrote (docs/advise.md). Of what the page
 * shows, the types are checked here; its settings with all their counters stay behind. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "report/html.h"

enum { ADVICE_LIMIT = 64 << 20 };

/* type: of json_type */
typedef struct member {
  const char *key;
  json_type type;
} member;

static const member whole_members[] = {{"program", JSON_STRING}, {"machine", JSON_STRING}, {"baseline", JSON_STRING},
                                       {"summary", JSON_STRING}, {"verdict", JSON_STRING}, {"advice", JSON_ARRAY}};
static const member item_members[] = {{"title", JSON_STRING},        {"text", JSON_STRING},
                                      {"now", JSON_STRING},          {"then", JSON_STRING},
                                      {"time_now_ps", JSON_INTEGER}, {"time_then_ps", JSON_INTEGER},
                                      {"gain_percent", JSON_REAL},   {"commands", JSON_ARRAY}};
#define COUNT_OF(list) (sizeof(list) / sizeof *(list))

/* The key that is not as it has to be; NULL: all are. */
static const char *wrong_key(const json_t *object, const member *members, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const json_t *value = json_object_get(object, members[i].key);
    if (!value || json_typeof(value) != members[i].type) return members[i].key;
  }
  return NULL;
}

static const char *wrong_item(const json_t *item) {
  const json_t *commands = json_object_get(item, "commands");
  const char *wrong = wrong_key(item, item_members, COUNT_OF(item_members));
  for (size_t i = 0; !wrong && i < json_array_size(commands); i++)
    if (!json_is_string(json_array_get(commands, i))) wrong = "commands";
  return wrong;
}

static const char *wrong_advice(const json_t *root) {
  const json_t *items = json_object_get(root, "advice"), *schema = json_object_get(root, "schema");
  if (!json_is_integer(schema) || json_integer_value(schema) != 1) return "schema";
  const char *wrong = wrong_key(root, whole_members, COUNT_OF(whole_members));
  for (size_t i = 0; !wrong && i < json_array_size(items); i++) wrong = wrong_item(json_array_get(items, i));
  return wrong;
}

ff_status report_html_advice(const char *path, ff_text *out, ff_error *error) {
  char *text;
  size_t size;
  json_error_t place;
  ff_status status = ff_file_read(path, ADVICE_LIMIT, &text, &size, error);
  if (status) return status;
  json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &place), *shown = json_object();
  const char *wrong = root ? wrong_advice(root) : NULL;
  if (!root) status = ff_fail(error, FF_PARSE, "%s:%d:%d: %s", path, place.line, place.column, place.text);
  else if (wrong)
    status = ff_fail(error, FF_PARSE, "%s: is no advice of `farfault advise --json`: \"%s\" is not as it writes it",
                     path, wrong);
  for (size_t i = 0; !status && i < COUNT_OF(whole_members); i++)
    json_object_set(shown, whole_members[i].key, json_object_get(root, whole_members[i].key));
  char *dumped = status ? NULL : json_dumps(shown, JSON_COMPACT | JSON_REAL_PRECISION(6));
  if (dumped) ff_text_add_bytes(out, dumped, strlen(dumped));
  free(dumped);
  json_decref(shown);
  json_decref(root);
  free(text);
  return status;
}
