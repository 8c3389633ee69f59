/* SPDX-License-Identifier: Apache-2.0 */
/* See file_kinds.h. */
#define _GNU_SOURCE /* memmem, strcasestr */
#include "cli/interface/file_kinds.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

enum { LOOKED_AT = 8192 };

typedef struct kind {
  file_kind id;
  const char *name, *what, *by, *use;
} kind;

static const kind kinds[] = {
#define X(id, bit, name, what, by, use) {KIND_##id, name, what, by, use},
#include "cli/interface/file_kinds.def"
#undef X
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- by content ---- */

static bool starts(const char *text, const char *start) { return !strncmp(text, start, strlen(start)); }

/* What stands behind blanks, and comments of PTX (//, slash-star) or of YAML (#). */
static const char *skip_comments(const char *text) {
  for (;;) {
    text += strspn(text, " \t\r\n");
    const char *end = starts(text, "//") || *text == '#' ? strchr(text, '\n')
                      : starts(text, "/*")               ? strstr(text, "*/")
                                                         : NULL;
    if (!end) return text;
    text = end + (*end == '\n' ? 1 : 2);
  }
}

/* A line begins with this. */
static bool has_line(const char *text, const char *start) {
  for (const char *at = text; (at = strstr(at, start)); at++)
    if (at == text || at[-1] == '\n') return true;
  return false;
}

static file_kind kind_of_text(const char *text) {
  const char *first = skip_comments(text);
  if (starts(first, ".version")) return KIND_PTX;
  if (*first == '{' && strstr(first, "\"traceEvents\"")) return KIND_TIMELINE;
  if (*first == '{' && strstr(first, "\"schema\"") && strstr(first, "\"command\"")) return KIND_RUN;
  if (*first == '<' && strcasestr(first, "<!doctype html") == first) return KIND_PAGE;
  if (*first == '{') return KIND_UNKNOWN;
  if (has_line(first, "device:") && strstr(first, "{value:")) return KIND_MACHINE;
  if (has_line(first, "trace:") &&
      (has_line(first, "memory:") || has_line(first, "machine:") || has_line(first, "grids:")))
    return KIND_STUDY;
  if (has_line(first, "kernel-") && strstr(first, ".trace")) return KIND_ACCELSIM;
  return KIND_UNKNOWN;
}

static file_kind kind_of_bytes(const char *bytes, size_t size) {
  static const char sqlite[] = "SQLite format 3"; /* and its NUL */
  if (starts(bytes, "FFTRACE")) return KIND_TRACE;
  if (starts(bytes, "\177ELF")) return KIND_PROGRAM;
  if (size >= sizeof sqlite && !memcmp(bytes, sqlite, sizeof sqlite)) return KIND_DATABASE;
  return strlen(bytes) == size ? kind_of_text(bytes) : KIND_UNKNOWN;
}

file_kind kind_of_file(const char *path) {
  char bytes[LOOKED_AT + 1];
  struct stat info;
  if (stat(path, &info) || !S_ISREG(info.st_mode)) return KIND_UNKNOWN;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return KIND_UNKNOWN;
  ssize_t size = pread(descriptor, bytes, LOOKED_AT, 0);
  close(descriptor);
  if (size <= 0) return KIND_UNKNOWN;
  bytes[size] = '\0';
  return kind_of_bytes(bytes, (size_t)size);
}

/* ---- in words ---- */

const char *kind_name(unsigned wanted, char by[160]) {
  const char *name = NULL;
  size_t used = 0;
  by[0] = '\0';
  for (int i = 0; i < KINDS; i++) {
    if (!(kinds[i].id & wanted)) continue;
    if (kinds[i].by) used += (size_t)snprintf(by + used, 160 - used, "%s%s", used ? " or " : "", kinds[i].by);
    name = name ? "file" : kinds[i].name;
  }
  return name ? name : "file";
}

/* The path for every %s of the sentence. */
static void add_use(ff_text *out, const char *use, const char *path) {
  for (const char *at; (at = strstr(use, "%s")); use = at + 2) {
    ff_text_add_bytes(out, use, (size_t)(at - use));
    ff_text_add_quoted(out, path);
  }
  ff_text_add(out, "%s", use);
}

ff_status kind_check(const char *path, unsigned wanted, ff_error *error) {
  file_kind found = kind_of_file(path);
  if (found == KIND_UNKNOWN || found & wanted) return FF_OK;
  ff_text text = {0};
  char by[160];
  const char *name = kind_name(wanted, by);
  for (int i = 0; i < KINDS; i++)
    if (kinds[i].id == found) {
      ff_text_add(&text, "is %s%s%s: ", kinds[i].what, strcmp(name, "file") ? ", no " : "",
                  strcmp(name, "file") ? name : "");
      add_use(&text, kinds[i].use, path);
    }
  ff_fail(error, FF_PARSE, "%s: %s", path, text.chars);
  free(text.chars);
  return FF_PARSE;
}

bool kind_refused(const char *path, unsigned wanted) {
  ff_error error;
  bool refused = kind_check(path, wanted, &error) != FF_OK;
  if (refused) cli_fail(CLI_BAD_FILE, "%s", error.message);
  return refused;
}
