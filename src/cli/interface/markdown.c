/* SPDX-License-Identifier: Apache-2.0 */
/* docs/options.md, the reference of all commands, from the same tables and texts as --help (describe.h).
 *
 * Of a help text's part behind the options, indented lines below "Example:" become a block of code, other indented
 * lines a list, and every other line a paragraph. The text depends on the program alone: no date, no path. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/interface/describe.h"

/* The options that every command has are said once, at the top. */
enum { EVERY_COMMAND = -1 };

/* Running text: outside of `code` what Markdown would take for markup is escaped. */
static void add_text(ff_text *out, const char *text, size_t length) {
  bool code = false;
  for (size_t i = 0; i < length; i++) {
    if (text[i] == '`') code = !code;
    if (!code && strchr("<*[", text[i])) ff_text_add(out, "\\");
    ff_text_add_bytes(out, &text[i], 1);
  }
}

/* A cell of a table, which "|" would end. */
static void add_cell(ff_text *out, const ff_text *text) {
  ff_text_add(out, "| ");
  for (size_t i = 0; i < text->length; i++) ff_text_add(out, text->chars[i] == '|' ? "\\|" : "%c", text->chars[i]);
  ff_text_add(out, " ");
}

static void add_paragraph(ff_text *out, const char *text, size_t length) {
  if (!length) return;
  add_text(out, text, length);
  ff_text_add(out, "\n\n");
}

static void add_paragraphs(ff_text *out, const char *text) {
  while (*text) {
    size_t length = strcspn(text, "\n");
    add_paragraph(out, text, length);
    text += length + (text[length] == '\n');
  }
}

/* Lines of a shell, which begin with a space. Returns where they end. */
static const char *add_example(ff_text *out, const char *text) {
  ff_text_add(out, "```\n");
  while (*text == ' ') {
    size_t length = strcspn(text, "\n"), indent = strspn(text, " ");
    ff_text_add_bytes(out, text + indent, length - indent);
    ff_text_add(out, "\n");
    text += length + (text[length] == '\n');
  }
  ff_text_add(out, "```\n\n");
  return text;
}

/* "  term   what it is", the same. */
static const char *add_terms(ff_text *out, const char *text) {
  while (*text == ' ') {
    size_t length = strcspn(text, "\n"), indent = strspn(text, " "), term = strcspn(text + indent, " \n"),
           start = indent + term + strspn(text + indent + term, " ");
    ff_text_add(out, "- `%.*s` ", (int)term, text + indent);
    add_text(out, text + start, length - start);
    ff_text_add(out, "\n");
    text += length + (text[length] == '\n');
  }
  ff_text_add(out, "\n");
  return text;
}

static void add_behind(ff_text *out, const char *text) {
  bool example = false;
  while (*text) {
    size_t length = strcspn(text, "\n");
    if (*text == ' ') {
      text = example ? add_example(out, text) : add_terms(out, text);
      continue;
    }
    if (length) example = !strncmp(text, "Example", 7);
    add_paragraph(out, text, length);
    text += length + (text[length] == '\n');
  }
}

/* "| `-m`, `--memory=MANAGER,...` | what it does |" */
static void add_option(ff_text *out, const cli_option *o) {
  ff_text term = {0}, meaning = {0};
  if (o->letter) ff_text_add(&term, "`-%c", o->letter);
  if (o->letter && !o->name && o->value) ff_text_add(&term, " %s", o->value);
  if (o->letter) ff_text_add(&term, o->name ? "`, " : "`");
  if (o->name) ff_text_add(&term, "`--%s", o->name);
  if (o->name && o->value) ff_text_add(&term, o->optional ? "[=%s]" : "=%s", o->value);
  if (o->name) ff_text_add(&term, "`");
  add_text(&meaning, o->help, strlen(o->help));
  add_cell(out, &term);
  add_cell(out, &meaning);
  ff_text_add(out, "|\n");
  free(term.chars);
  free(meaning.chars);
}

static const char *title_of(const cli_description *d, int group) {
  for (size_t g = 0; g < d->groups.count; g++)
    if (d->groups.items[g].group == group) return d->groups.items[g].title;
  return NULL;
}

/* A table per group of options that has a title; the others go on in the table before them. */
static void add_options(ff_text *out, const cli_description *d) {
  bool open = false;
  for (size_t i = 0; i < d->options.count; i++) {
    const cli_option *o = &d->options.items[i];
    if (o->group == EVERY_COMMAND) continue;
    const char *title = !i || o->group != o[-1].group ? title_of(d, o->group) : NULL;
    if (title) ff_text_add(out, "%s%s\n\n", open ? "\n" : "", title);
    if (title || !open) ff_text_add(out, "| option | meaning |\n|---|---|\n");
    add_option(out, o);
    open = true;
  }
  if (open) ff_text_add(out, "\n");
}

static void add_forms(ff_text *out, const char *name, const char *form) {
  ff_text_add(out, "```\n");
  while (form) {
    size_t length = strcspn(form, "\n");
    ff_text_add(out, "farfault %s [OPTION...]%s%.*s\n", name, length ? " " : "", (int)length, form);
    form = form[length] ? form + length + 1 : NULL;
  }
  ff_text_add(out, "```\n\n");
}

static void add_command(ff_text *out, const cli_command *command, const char *action) {
  cli_description d;
  char name[80];
  snprintf(name, sizeof name, "%s%s%s", command->name, action ? " " : "", action ? action : "");
  ff_text_add(out, "## farfault %s\n\n", name);
  if (cli_describe(command, action, &d)) {
    add_forms(out, name, d.arguments);
    add_paragraphs(out, d.before);
    add_options(out, &d);
    add_behind(out, d.after);
  }
  cli_description_free(&d);
}

int cli_markdown(void) {
  ff_text out = {0};
  ff_text_add(
      &out,
      "# Options\n\n<!-- Made by `farfault help --markdown`; the test programs/usage compares. -->\n\n"
      "The reference of all commands, made of the same tables as `--help`. [usage.md](usage.md) explains them.\n\n"
      "Every command has `-?`, `-h`, `--help`; `--usage`, a line with all options; `-V`, `--version`.\n\n");
  for (const cli_command *const *command = cli_commands; *command; command++) {
    add_command(&out, *command, NULL);
    if (*command == &cli_offload) add_command(&out, *command, "profile");
  }
  while (out.length > 1 && out.chars[out.length - 2] == '\n') out.chars[--out.length] = '\0';
  int status = cli_print(&out);
  free(out.chars);
  return status;
}
