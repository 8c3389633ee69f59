/* SPDX-License-Identifier: Apache-2.0 */
/* PTX taken apart into what its kernels share and the kernels (kernel_text.h). */
#define _GNU_SOURCE
#include "driver/engine/kernel_text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "driver/engine/kernel_name.h"

/* ---- what a text defines ---- */

typedef struct scan {
  const char *text, *at, *end;
  const char *word; /* the last one of the statement; NULL: none */
  size_t word_length;
  uint32_t braces, brackets;
  bool function, variable, external; /* the statement says so */
  const char *begin;                 /* of what a kernel's statement may begin with; NULL: nothing yet */
  kernel_definition kernel;          /* its name; none: NULL */
  void (*each)(void *context, const kernel_definition *definition);
  void *context;
} scan;

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%'; }

static const char *find(const char *at, const char *end, const char *text) {
  const char *found = at < end ? memmem(at, (size_t)(end - at), text, strlen(text)) : NULL;
  return found ? found + strlen(text) : end;
}

/* Behind the comment or quoted text that begins here; where nothing of the kind does, `at`. */
static const char *behind_text(const char *at, const char *end) {
  if (*at == '"') return find(at + 1, end, "\"");
  if (*at != '/' || end - at < 2) return at;
  if (at[1] == '/') return find(at + 2, end, "\n");
  return at[1] == '*' ? find(at + 2, end, "*/") : at;
}

static bool word_is(const scan *s, const char *text) {
  return s->word && s->word_length == strlen(text) && !memcmp(s->word, text, s->word_length);
}

static void take_word(scan *s) {
  bool names_kernel = word_is(s, ".entry");
  s->word = s->at;
  while (s->at < s->end && in_word(*s->at)) s->at++;
  s->word_length = (size_t)(s->at - s->word);
  if (names_kernel && s->word[0] != '.')
    s->kernel = (kernel_definition){.name = s->word, .name_length = s->word_length, .kernel = true};
  bool begins = word_is(s, ".entry") || word_is(s, ".visible") || word_is(s, ".weak") || word_is(s, ".extern");
  if (begins && !s->begin) s->begin = s->word;
  if (word_is(s, ".entry") || word_is(s, ".func")) s->function = true;
  if (word_is(s, ".global") || word_is(s, ".const")) s->variable = true;
  if (word_is(s, ".extern")) s->external = true;
}

static void end_statement(scan *s, char sign) {
  if (s->kernel.name) {
    s->kernel.has_body = sign == '}';
    s->kernel.begin = (size_t)(s->begin - s->text);
    s->kernel.end = (size_t)(s->at - s->text);
    s->each(s->context, &s->kernel);
  }
  s->word = s->begin = s->kernel.name = NULL;
  s->function = s->variable = s->external = false;
}

static void take_sign(scan *s) {
  char c = *s->at++;
  if (c == '(') s->brackets++;
  if (c == ')' && s->brackets) s->brackets--;
  if (s->variable && !s->function && !s->external && s->word && (c == '[' || c == '=' || c == ';') &&
      s->word[0] != '.') {
    s->each(s->context, &(kernel_definition){.name = s->word, .name_length = s->word_length});
    s->variable = false; /* what follows is its size or its value */
  }
  if (c == '{') s->braces++;
  if (c == '}' && s->braces) s->braces--;
  if (!s->braces && (c == ';' || c == '}')) end_statement(s, c);
}

static bool is_ptx(const char *text, size_t length) {
  const char *at = text, *end = text + length;
  while (at < end) {
    const char *behind = behind_text(at, end);
    if (behind == at && !isspace((unsigned char)*at)) break;
    at = behind > at ? behind : at + 1;
  }
  return end - at > 8 && !memcmp(at, ".version", 8);
}

bool kernel_text_scan(const char *text, size_t length, void (*each)(void *context, const kernel_definition *definition),
                      void *context) {
  if (!is_ptx(text, length) || memchr(text, '\0', length)) return false;
  scan s = {.text = text, .at = text, .end = text + length, .each = each, .context = context};
  while (s.at < s.end) {
    const char *behind = behind_text(s.at, s.end);
    if (behind != s.at) s.at = behind;
    else if (s.braces || s.brackets) {
      if (strchr("(){}", *s.at)) take_sign(&s);
      else s.at++;
    } else if (in_word(*s.at)) take_word(&s);
    else take_sign(&s);
  }
  return true;
}

/* ---- a file ---- */

typedef struct kernel {
  uint64_t hash;
  char *name;
  size_t begin, end;
} kernel;

#define KEPT_BYTES (1u << 20) /* a file of no more is kept whole: a compiler may write the next kernel over it */

struct kernel_text {
  char *path, *whole; /* whole: NULL where the file is read again */
  struct stat about;
  ff_text shared;
  FF_VEC(kernel) kernels; /* sorted by hash */
};

static void add_kernel(void *context, const kernel_definition *found) {
  kernel_text *text = context;
  if (!found->kernel || !found->has_body) return;
  kernel one = {.hash = kernel_name_hash(found->name, found->name_length), .begin = found->begin, .end = found->end};
  one.name = ff_alloc(found->name_length + 1);
  memcpy(one.name, found->name, found->name_length);
  FF_PUSH(&text->kernels, one);
}

static int compare_kernels(const void *left, const void *right) {
  uint64_t a = ((const kernel *)left)->hash, b = ((const kernel *)right)->hash;
  return (a > b) - (a < b);
}

/* What lies between the kernels, which are in the order of the file. */
static void add_shared(kernel_text *text, const char *chars, size_t length) {
  size_t at = 0;
  for (size_t i = 0; i < text->kernels.count; i++) {
    ff_text_add_bytes(&text->shared, chars + at, text->kernels.items[i].begin - at);
    at = text->kernels.items[i].end;
  }
  ff_text_add_bytes(&text->shared, chars + at, length - at);
}

static void drop_kernels(kernel_text *text) {
  for (size_t i = 0; i < text->kernels.count; i++) free(text->kernels.items[i].name);
  free(text->kernels.items);
  memset(&text->kernels, 0, sizeof text->kernels);
}

ff_status kernel_text_open(const char *path, kernel_text **out, ff_error *error) {
  kernel_text *text = ff_alloc(sizeof *text);
  char *chars = NULL;
  size_t length;
  text->path = ff_strdup(path);
  ff_status status = ff_file_read(path, 0, &chars, &length, error);
  if (!status && stat(path, &text->about)) status = ff_fail(error, FF_IO, "%s: %s", path, strerror(errno));
  if (!status && !kernel_text_scan(chars, length, add_kernel, text))
    status = ff_fail(error, FF_PARSE, "%s is no PTX text: it must begin with .version", path);
  if (!status) {
    bool whole = memmem(chars, length, "cudaGetParameterBuffer", 22) != NULL;
    if (whole) drop_kernels(text);
    add_shared(text, chars, length);
    if (text->kernels.count)
      qsort(text->kernels.items, text->kernels.count, sizeof *text->kernels.items, compare_kernels);
    if (length <= KEPT_BYTES) text->whole = chars, chars = NULL;
    *out = text;
  } else kernel_text_close(text);
  free(chars);
  return status == FF_NOT_FOUND ? FF_IO : status;
}

void kernel_text_close(kernel_text *text) {
  if (!text) return;
  drop_kernels(text);
  free(text->shared.chars);
  free(text->whole);
  free(text->path);
  free(text);
}

const char *kernel_text_shared(const kernel_text *text, size_t *length) {
  *length = text->shared.length;
  return text->shared.chars;
}

static const kernel *find_kernel(const kernel_text *text, const char *name) {
  const kernel wanted = {.hash = kernel_name_hash(name, strlen(name))};
  return text->kernels.count
             ? bsearch(&wanted, text->kernels.items, text->kernels.count, sizeof wanted, compare_kernels)
             : NULL;
}

const char *kernel_text_name(const kernel_text *text, const char *name) {
  const kernel *found = find_kernel(text, name);
  return found ? found->name : NULL;
}

const char *kernel_text_next(const kernel_text *text, size_t index) {
  return index < text->kernels.count ? text->kernels.items[index].name : NULL;
}

static bool read_part(const kernel_text *text, size_t begin, size_t length, char *to) {
  struct stat now;
  if (text->whole) {
    memcpy(to, text->whole + begin, length);
    return true;
  }
  int fd = open(text->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool same = fd >= 0 && !fstat(fd, &now) && now.st_size == text->about.st_size &&
              now.st_mtim.tv_sec == text->about.st_mtim.tv_sec && now.st_mtim.tv_nsec == text->about.st_mtim.tv_nsec;
  if (same) same = pread(fd, to, length, (off_t)begin) == (ssize_t)length;
  if (fd >= 0) close(fd);
  return same;
}

ff_status kernel_text_read(const kernel_text *text, const char *name, char **statement, size_t *length,
                           ff_error *error) {
  const kernel *found = find_kernel(text, name);
  if (!found) return ff_fail(error, FF_NOT_FOUND, "%s: no kernel '%s'", text->path, name);
  *length = found->end - found->begin;
  *statement = ff_alloc(*length + 1);
  if (read_part(text, found->begin, *length, *statement)) return FF_OK;
  free(*statement);
  return ff_fail(error, FF_IO, "%s has changed while the program runs", text->path);
}
