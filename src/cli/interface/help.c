/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of --help and --usage, made of a command's tables (describe.h).
 *
 * No line is longer than HELP_WIDTH characters but for a word that is; an option's help begins in
 * HELP_COLUMN; options stand in the order of their tables. Lines of examples stay as they are, or go on behind a
 * backslash, so that a shell takes them as they stand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/interface/describe.h"

enum { HELP_WIDTH = 79, HELP_COLUMN = 29, LONG_OPTION_COLUMN = 6, EXAMPLE_INDENT = 4, NARROWEST = 40 };

/* A line that is being filled. */
typedef struct writer {
  ff_text *out;
  size_t indent;     /* of the lines that follow */
  size_t column;     /* characters on the line so far */
  const char *go_on; /* what ends a line that goes on: "" or " \" */
  size_t width;      /* of a line */
} writer;

static size_t characters(const char *text, size_t length) {
  size_t count = 0;
  for (size_t i = 0; i < length; i++) count += ((unsigned char)text[i] & 0xc0) != 0x80;
  return count;
}

static void end_line(writer *w) {
  ff_text_add(w->out, "\n");
  w->column = 0;
}

static void go_to(writer *w, size_t column) {
  for (; w->column < column; w->column++) ff_text_add(w->out, " ");
}

static void add_word(writer *w, const char *word, size_t length) {
  size_t width = characters(word, length);
  if (w->column > w->indent && w->column + 1 + width + strlen(w->go_on) > w->width) {
    ff_text_add(w->out, "%s", w->go_on);
    end_line(w);
  }
  if (w->column > w->indent) go_to(w, w->column + 1);
  else go_to(w, w->indent);
  ff_text_add_bytes(w->out, word, length);
  w->column += width;
}

/* Where the word ends that begins the text: at a space, but not between quotes, if these count. */
static size_t word_length(const char *text, size_t length, bool quotes) {
  char open = 0;
  for (size_t i = 0; i < length; i++) {
    if (open) open = text[i] == open ? 0 : open;
    else if (text[i] == ' ') return i;
    else if (quotes && strchr("'\"", text[i])) open = text[i];
  }
  return length;
}

static void add_words(writer *w, const char *text, size_t length) {
  for (size_t at = 0, word; at < length; at += word) {
    size_t space = strspn(text + at, " ");
    at += space < length - at ? space : length - at;
    word = word_length(text + at, length - at, *w->go_on != '\0');
    if (word) add_word(w, text + at, word);
  }
}

void cli_example_write(const char *line, size_t length, size_t width, ff_text *out) {
  size_t indent = strspn(line, " ");
  writer w = {out, indent, 0, " \\", width};
  if (characters(line, length) <= width) ff_text_add_bytes(out, line, length);
  else {
    size_t first = word_length(line + indent, length - indent, true);
    add_word(&w, line + indent, first);
    w.indent = indent + EXAMPLE_INDENT;
    add_words(&w, line + indent + first, length - indent - first);
  }
  end_line(&w);
}

/* "  term   what it is", which goes on below itself. */
static void add_term(writer *w, const char *line, size_t length) {
  size_t indent = strspn(line, " "), term = word_length(line + indent, length - indent, false),
         start = indent + term + strspn(line + indent + term, " ");
  if (start > length) start = length;
  ff_text_add_bytes(w->out, line, start);
  w->indent = w->column = characters(line, start);
  add_words(w, line + start, length - start);
  end_line(w);
}

/* ---- what goes to a terminal ---- */

/* "- " and what stands before it. */
static size_t list_indent(const char *line, size_t length) {
  size_t spaces = strspn(line, " ");
  return spaces + (length > spaces + 2 && !strncmp(line + spaces, "- ", 2) ? 2 : 0);
}

/* Rows of Markdown's tables and colours stay as they are. */
static bool may_be_wrapped(const char *line, size_t length) { return *line != '|' && !memchr(line, '\033', length); }

static void wrap_line(const char *line, size_t length, size_t width, size_t indent, ff_text *out) {
  size_t start = strspn(line, " ");
  writer w = {out, start, 0, "", width};
  size_t first = word_length(line + start, length - start, false);
  add_word(&w, line + start, first);
  w.indent = indent;
  add_words(&w, line + start + first, length - start - first);
}

void cli_wrap(const char *text, size_t width, size_t indent, ff_text *out) {
  while (*text) {
    size_t length = strcspn(text, "\n"), own = list_indent(text, length);
    if (width < NARROWEST || characters(text, length) <= width || !may_be_wrapped(text, length))
      ff_text_add_bytes(out, text, length);
    else if (own == EXAMPLE_INDENT && !strncmp(text + own, "farfault ", 9)) {
      cli_example_write(text, length, width, out);
      out->chars[--out->length] = '\0'; /* its line end */
    } else wrap_line(text, length, width, own ? own : indent, out);
    if (text[length]) ff_text_add(out, "\n");
    text += length + (text[length] == '\n');
  }
}

/* ---- the whole ---- */

/* Paragraphs, a line each; lines that begin with a space are of a shell behind "Example:", else terms. */
static void add_text(ff_text *out, const char *text) {
  bool example = false;
  while (*text) {
    size_t length = strcspn(text, "\n");
    writer w = {out, 0, 0, "", HELP_WIDTH};
    if (*text == ' ' && example) cli_example_write(text, length, HELP_WIDTH, out);
    else if (*text == ' ') add_term(&w, text, length);
    else {
      example = !strncmp(text, "Example", 7);
      add_words(&w, text, length);
      end_line(&w);
    }
    text += length + (text[length] == '\n');
  }
}

/* "-m, --memory=MANAGER,...", "    --compare[=MACHINE]". */
static void add_option(ff_text *out, const cli_option *o) {
  ff_text name = {0};
  writer w = {out, HELP_COLUMN, 0, "", HELP_WIDTH};
  if (o->letter) ff_text_add(&name, "  -%c%s", o->letter, o->name ? ", " : "");
  while (o->name && name.length < LONG_OPTION_COLUMN) ff_text_add(&name, " ");
  if (o->name) ff_text_add(&name, "--%s", o->name);
  if (o->value)
    ff_text_add(&name, "%s%s%s%s", o->optional ? "[" : "", o->name ? "=" : " ", o->value, o->optional ? "]" : "");
  ff_text_add(out, "%s", name.chars);
  w.column = name.length;
  free(name.chars);
  if (w.column + 1 > HELP_COLUMN) end_line(&w);
  go_to(&w, HELP_COLUMN);
  add_words(&w, o->help, strlen(o->help));
  end_line(&w);
}

static const char *title_of(const cli_description *d, int group) {
  for (size_t g = 0; g < d->groups.count; g++)
    if (d->groups.items[g].group == group) return d->groups.items[g].title;
  return NULL;
}

static void add_options(const cli_description *d, ff_text *out) {
  for (size_t i = 0; i < d->options.count; i++) {
    const cli_option *o = &d->options.items[i];
    const char *title = title_of(d, o->group);
    if (!i || o->group != o[-1].group) ff_text_add(out, "\n");
    if (title && (!i || o->group != o[-1].group)) ff_text_add(out, " %s\n", title);
    add_option(out, o);
  }
}

static void add_forms(const cli_description *d, const char *name, ff_text *out) {
  const char *form = d->arguments;
  for (bool first = true; form; first = false) {
    size_t length = strcspn(form, "\n");
    writer w = {out, 7, 7, "", HELP_WIDTH};
    ff_text_add(out, first ? "Usage: " : "  or:  ");
    add_words(&w, name, strlen(name));
    add_words(&w, "[OPTION...]", 11);
    add_words(&w, form, length);
    end_line(&w);
    form = form[length] ? form + length + 1 : NULL;
  }
}

void cli_help_write(const cli_description *d, const char *name, ff_text *out) {
  add_forms(d, name, out);
  add_text(out, d->before);
  add_options(d, out);
  if (*d->after) ff_text_add(out, "\n");
  add_text(out, d->after);
}

void cli_usage_write(const cli_description *d, const char *name, ff_text *out) {
  writer w = {out, 12, 0, "", HELP_WIDTH};
  ff_text_add(out, "Usage: %s", name);
  w.column = 7 + strlen(name);
  for (size_t i = 0; i < d->options.count; i++) {
    const cli_option *o = &d->options.items[i];
    char word[160], *at = word, *end = word + sizeof word;
    at += snprintf(at, (size_t)(end - at), "[%s%.*s", o->letter ? "-" : "", o->letter != 0, &o->letter);
    if (o->name) at += snprintf(at, (size_t)(end - at), "%s--%s", o->letter ? "|" : "", o->name);
    if (o->value)
      at += snprintf(at, (size_t)(end - at), "%s%s%s%s", o->optional ? "[" : "", o->name ? "=" : " ", o->value,
                     o->optional ? "]" : "");
    snprintf(at, (size_t)(end - at), "]");
    add_word(&w, word, strlen(word));
  }
  add_words(&w, d->arguments, strcspn(d->arguments, "\n"));
  end_line(&w);
}
