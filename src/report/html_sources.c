/* SPDX-License-Identifier: Apache-2.0 */
/* The text of the lines of sources that a run with `--lines` names, for its page.
 *
 * The files' names come from a run's file, which may be another's: only what has the name of a source is read, and only
 * the named lines and the two before and behind each are taken. */
#define _GNU_SOURCE
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "report/html.h"

enum { AROUND = 2, FILES_LIMIT = 100, SOURCE_LIMIT = 4 << 20, WIDTH_LIMIT = 300 };

static bool is_source(const char *path) {
  static const char *const endings[] = {".cu", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".inl", ".py"};
  const char *dot = strrchr(path, '.');
  struct stat about;
  for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
    if (!strcmp(dot, endings[i])) return !stat(path, &about) && S_ISREG(about.st_mode) && about.st_size <= SOURCE_LIMIT;
  return false;
}

/* Of lines 1 to `count`: which are to be shown. */
static void mark(const report_run *run, const char *file, bool *wanted, uint32_t count) {
  for (uint32_t i = 0; i < run->result_count; i++)
    for (uint32_t n = 0; n < run->results[i].line_count; n++) {
      const sim_line_result *line = &run->results[i].lines[n];
      if (!line->file || !line->source || strcmp(line->file, file)) continue;
      uint32_t first = line->source > AROUND ? line->source - AROUND : 1;
      for (uint32_t at = first; at <= count && at - first <= 2 * AROUND; at++) wanted[at] = true;
    }
}

static json_t *lines_value(const report_run *run, const char *file, const char *text, size_t size) {
  json_t *object = json_object();
  uint32_t count = 1, number = 1;
  for (size_t i = 0; i < size; i++) count += text[i] == '\n';
  bool *wanted = ff_alloc((count + (size_t)1) * sizeof *wanted);
  mark(run, file, wanted, count);
  for (const char *at = text, *end = text + size; at < end; number++) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    size_t length = (size_t)((stop ? stop : end) - at);
    char name[16];
    snprintf(name, sizeof name, "%u", number);
    json_t *value = wanted[number] ? json_stringn(at, length < WIDTH_LIMIT ? length : WIDTH_LIMIT) : NULL;
    if (value) json_object_set_new(object, name, value);
    at += length + 1;
  }
  free(wanted);
  return object;
}

static void add_file(const report_run *run, const char *file, json_t *sources) {
  char *text;
  size_t size;
  if (json_object_get(sources, file) || json_object_size(sources) >= FILES_LIMIT || !is_source(file)) return;
  if (ff_file_read(file, SOURCE_LIMIT, &text, &size, NULL)) return;
  json_object_set_new(sources, file, lines_value(run, file, text, size));
  free(text);
}

void report_html_sources(const report_run *run, ff_text *out) {
  json_t *sources = json_object();
  for (uint32_t i = 0; i < run->result_count; i++)
    for (uint32_t n = 0; n < run->results[i].line_count; n++)
      if (run->results[i].lines[n].file) add_file(run, run->results[i].lines[n].file, sources);
  char *text = json_dumps(sources, JSON_COMPACT);
  ff_text_add(out, "%s", text ? text : "{}");
  free(text);
  json_decref(sources);
}
