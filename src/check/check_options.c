/* SPDX-License-Identifier: Apache-2.0 */
/* Options as text and back: check_options.def is the one list of them. */
#include "check/check_options.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/memory/address_space.h"

static const char *const tools[] = {"none", "memcheck", "racecheck"};

const char *check_tool_name(check_tool tool) { return tools[tool]; }

void check_options_default(check_tool tool, check_options *options) {
  *options = (check_options){.tool = tool,
                             .initcheck = CHECK_INIT_GLOBAL,
                             .api_errors = 1,
                             .backtrace = 1,
                             .level = CHECK_WARNING,
                             .print_limit = 100,
                             .padding = tool == CHECK_MEMCHECK ? 256 : 0,
                             .shadow_mib = 4096};
}

typedef struct option_row {
  const char *name;
  size_t at;
  const char *words;
  uint32_t least, most;
  bool bytes;
} option_row;
static const option_row rows[] = {
#define W(field, name, words) {name, offsetof(check_options, field), words, 0, 0, false},
#define N(field, name, least, most) {name, offsetof(check_options, field), NULL, least, most, false},
#define B(field, name, least, most) {name, offsetof(check_options, field), NULL, least, most, true},
#include "check/check_options.def"
#undef W
#undef N
#undef B
};
enum { ROWS = sizeof rows / sizeof *rows };

static uint32_t *field(const check_options *options, const option_row *row) {
  return (uint32_t *)(void *)((char *)(uintptr_t)options + row->at);
}

/* The position of `value` in "a|b|c"; -1: it is not there. */
static int find_word(const char *words, const char *value) {
  size_t length = strlen(value);
  for (int n = 0; words; n++) {
    const char *end = strchr(words, '|');
    size_t have = end ? (size_t)(end - words) : strlen(words);
    if (have == length && !strncmp(words, value, length)) return n;
    words = end ? end + 1 : NULL;
  }
  return -1;
}

static ff_status set_row(check_options *options, const option_row *row, const char *value, ff_error *error) {
  if (row->words) {
    int found = find_word(row->words, value);
    if (found < 0) return ff_fail(error, FF_INVALID, "--%s: '%s' is none of %s", row->name, value, row->words);
    *field(options, row) = (uint32_t)found;
    return FF_OK;
  }
  if (row->bytes) {
    uint64_t bytes;
    if (ff_parse_bytes(value, 0, &bytes, NULL) || bytes < row->least || bytes > row->most)
      return ff_fail(error, FF_INVALID, "--%s: '%s' is not a number of bytes from %u to %u", row->name, value,
                     row->least, row->most);
    *field(options, row) = (uint32_t)bytes;
    return FF_OK;
  }
  char *end;
  errno = 0;
  unsigned long long number = strtoull(value, &end, 10);
  if (value[0] < '0' || value[0] > '9' || *end || errno || number < row->least || number > row->most)
    return ff_fail(error, FF_INVALID, "--%s: '%s' is not a number from %u to %u", row->name, value, row->least,
                   row->most);
  *field(options, row) = (uint32_t)number;
  return FF_OK;
}

ff_status check_option_set(check_options *options, const char *name, const char *value, ff_error *error) {
  for (size_t n = 0; n < ROWS; n++)
    if (!strcmp(rows[n].name, name)) return set_row(options, &rows[n], value, error);
  return ff_fail(error, FF_INVALID, "no option '%s' of a check", name);
}

void check_options_write(const check_options *options, ff_text *out) {
  ff_text_add(out, "%s", tools[options->tool]);
  for (size_t n = 0; n < ROWS; n++) {
    uint32_t value = *field(options, &rows[n]);
    const char *word = rows[n].words;
    ff_text_add(out, ",%s=", rows[n].name);
    for (uint32_t skip = value; word && skip; skip--) word = strchr(word, '|') + 1;
    if (word) ff_text_add(out, "%.*s", (int)strcspn(word, "|"), word);
    else ff_text_add(out, "%u", value);
  }
}

static ff_status read_pair(check_options *options, char *pair, ff_error *error) {
  char *value = strchr(pair, '=');
  if (!value) return ff_fail(error, FF_INVALID, "'%s' has no value", pair);
  *value++ = '\0';
  return check_option_set(options, pair, value, error);
}

static ff_status read_words(check_options *options, char *text, ff_error *error) {
  char *rest = NULL, *word = strtok_r(text, ",", &rest);
  int tool = word ? CHECK_RACECHECK : CHECK_NONE;
  while (tool > CHECK_NONE && strcmp(word, tools[tool])) tool--;
  if (tool == CHECK_NONE) return ff_fail(error, FF_INVALID, "FARFAULT_CHECKER names no check: memcheck or racecheck");
  check_options_default((check_tool)tool, options);
  while ((word = strtok_r(NULL, ",", &rest)))
    if (read_pair(options, word, error)) return error->status;
  return FF_OK;
}

static ff_status read_path(const char *name, char *to, size_t size, ff_error *error) {
  const char *value = getenv(name);
  if (!value) return FF_OK;
  if (strlen(value) >= size) return ff_fail(error, FF_INVALID, "%s is longer than %zu characters", name, size - 1);
  strcpy(to, value);
  return FF_OK;
}

ff_status check_options_from_environment(check_options *options, ff_error *error) {
  const char *value = getenv("FARFAULT_CHECKER");
  *options = (check_options){.tool = CHECK_NONE};
  if (!value || !*value) return FF_OK;
  char text[1024];
  ff_error local;
  if (!error) error = &local;
  if (strlen(value) >= sizeof text)
    return ff_fail(error, FF_INVALID, "FARFAULT_CHECKER is longer than %zu characters", sizeof text - 1);
  ff_status status = read_words(options, strcpy(text, value), error);
  if (!status) status = read_path("FARFAULT_CHECKER_KERNEL", options->kernel, sizeof options->kernel, error);
  if (!status) status = read_path("FARFAULT_CHECKER_LOG", options->log, sizeof options->log, error);
  if (!status) status = read_path("FARFAULT_CHECKER_RESULTS", options->results, sizeof options->results, error);
  return status;
}
