/* SPDX-License-Identifier: Apache-2.0 */
/* Manual pages in man(7), one of the program and one per command, from the same tables and texts as --help
 * (describe.h).
 *
 * A help text's part behind the options becomes sections: indented lines below "Example:" are EXAMPLES, others terms,
 * what follows "Exit status:" up to the paragraph's end is EXIT STATUS, all else goes behind the description.
 * No date, no path, nothing of the machine it is made on; all text is escaped, so none of it is a request
 * of troff's. */
#define _GNU_SOURCE /* memmem */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/interface/describe.h"

/* ---- text ---- */

/* A piece of running text: "-" must stay what it is when copied, "\" is troff's, a dot or quote at a line's start is a
 * request. */
static void add_escaped(ff_text *out, const char *text, size_t length) {
  bool code = false;
  for (size_t i = 0; i < length; i++) {
    char c = text[i];
    bool line_start = !out->length || out->chars[out->length - 1] == '\n';
    if (line_start && (c == '.' || c == '\'')) ff_text_add(out, "\\&");
    if (c == '`') ff_text_add(out, (code = !code) ? "\\fB" : "\\fR");
    else if (c == '-') ff_text_add(out, "\\-");
    else if (c == '\\') ff_text_add(out, "\\e");
    else ff_text_add_bytes(out, &c, 1);
  }
  if (code) ff_text_add(out, "\\fR");
}

static void add_plain(ff_text *out, const char *text) { add_escaped(out, text, strlen(text)); }

/* Placeholders are in italics, options and words that are typed as they stand in bold. */
static void add_synopsis(ff_text *out, const char *text, size_t length) {
  for (size_t i = 0; i < length;) {
    size_t n = 0;
    bool upper = isupper((unsigned char)text[i]), typed = islower((unsigned char)text[i]) || text[i] == '-';
    while (i + n < length && (isalnum((unsigned char)text[i + n]) || strchr("-_", text[i + n]))) n++;
    n = n ? n : 1;
    if (upper || typed) ff_text_add(out, upper ? "\\fI" : "\\fB");
    add_escaped(out, text + i, n);
    if (upper || typed) ff_text_add(out, "\\fR");
    i += n;
  }
}

static void add_title(ff_text *out, const char *name) {
  ff_text_add(out, ".TH ");
  for (const char *c = name; *c; c++) ff_text_add(out, *c == '-' ? "\\-" : "%c", toupper((unsigned char)*c));
  ff_text_add(out, " 1 \"\" \"farfault " FARFAULT_VERSION "\" \"User Commands\"\n.SH NAME\n");
  add_plain(out, name);
}

/* ---- the text behind the options ---- */

typedef struct sections {
  ff_text notes, examples, exit;
} sections;

enum { EXAMPLE_WIDTH = 66 }; /* what a page of 80 columns has behind its indentation */

/* Lines of a shell, which begin with a space. Returns where they end. */
static const char *add_examples(ff_text *out, const char *text) {
  ff_text lines = {0};
  ff_text_add(out, ".PP\n.nf\n.RS 4\n");
  while (*text == ' ') {
    size_t length = strcspn(text, "\n"), indent = strspn(text, " ");
    cli_example_write(text + indent, length - indent, EXAMPLE_WIDTH, &lines);
    text += length + (text[length] == '\n');
  }
  add_escaped(out, lines.chars, lines.length);
  ff_text_add(out, ".RE\n.fi\n");
  free(lines.chars);
  return text;
}

/* "  term   what it is", the same. */
static const char *add_terms(ff_text *out, const char *text) {
  while (*text == ' ') {
    size_t length = strcspn(text, "\n"), indent = strspn(text, " "), term = strcspn(text + indent, " \n"),
           start = indent + term + strspn(text + indent + term, " ");
    ff_text_add(out, ".TP\n\\fB");
    add_escaped(out, text + indent, term);
    ff_text_add(out, "\\fR\n");
    add_escaped(out, text + start, length - start);
    ff_text_add(out, "\n");
    text += length + (text[length] == '\n');
  }
  return text;
}

static void add_paragraph(ff_text *out, const char *text, size_t length) {
  if (!length) return;
  ff_text_add(out, ".PP\n");
  add_escaped(out, text, length);
  ff_text_add(out, "\n");
}

/* A line of running text, which is a paragraph. */
static void sort_paragraph(sections *into, const char *line, size_t length) {
  static const char mark[] = "Exit status: ";
  const char *found = memmem(line, length, mark, strlen(mark));
  size_t before = found ? (size_t)(found - line) : length;
  while (before && line[before - 1] == ' ') before--;
  add_paragraph(&into->notes, line, before);
  if (found) add_paragraph(&into->exit, found + strlen(mark), length - (size_t)(found - line) - strlen(mark));
}

static void sort_sections(const char *text, sections *into) {
  bool example = false;
  while (*text) {
    size_t length = strcspn(text, "\n");
    if (*text == ' ') {
      text = example ? add_examples(&into->examples, text) : add_terms(&into->notes, text);
      continue;
    }
    if (length) {
      example = !strncmp(text, "Example", 7) && text[length - 1] == ':';
      if (!example) sort_paragraph(into, text, length);
    }
    text += length + (text[length] == '\n');
  }
}

static void add_section(ff_text *out, const char *title, const ff_text *text) {
  if (!text->length) return;
  ff_text_add(out, ".SH %s\n", title);
  bool paragraph = !strncmp(text->chars, ".PP\n", 4); /* a section begins one by itself */
  ff_text_add(out, "%s", text->chars + (paragraph ? 4 : 0));
}

/* ---- options ---- */

static void add_option(ff_text *out, const cli_option *o) {
  ff_text_add(out, ".TP\n");
  if (o->letter) ff_text_add(out, "\\fB\\-%c\\fR", o->letter);
  if (o->letter && o->name) ff_text_add(out, ", ");
  if (o->name) {
    ff_text_add(out, "\\fB\\-\\-");
    add_plain(out, o->name);
    ff_text_add(out, "\\fR");
  }
  if (o->value) {
    ff_text_add(out, o->optional ? "[%s" : "%s", o->name ? "=" : " ");
    add_synopsis(out, o->value, strlen(o->value));
    if (o->optional) ff_text_add(out, "]");
  }
  ff_text_add(out, "\n");
  add_plain(out, o->help);
  ff_text_add(out, "\n");
}

static void add_options(ff_text *out, const cli_description *d) {
  ff_text_add(out, ".SH OPTIONS\n");
  for (size_t i = 0; i < d->options.count; i++) {
    const cli_option *o = &d->options.items[i];
    const char *title = o->group == -1 ? "Help:" : NULL;
    for (size_t g = 0; g < d->groups.count; g++)
      if (d->groups.items[g].group == o->group) title = d->groups.items[g].title;
    if (d->groups.count && title && (!i || o->group != o[-1].group)) {
      ff_text_add(out, ".SS ");
      add_escaped(out, title, strcspn(title, ":"));
      ff_text_add(out, "\n");
    }
    add_option(out, o);
  }
}

/* ---- pages ---- */

/* farfault(1) and the commands that the texts name. */
static void add_see_also(ff_text *out, const cli_description *d) {
  ff_text_add(out, ".SH SEE ALSO\n.BR farfault (1)");
  for (const cli_command *const *other = cli_commands; *other; other++) {
    char words[80];
    int length = snprintf(words, sizeof words, "farfault %s", (*other)->name);
    const char *texts[] = {d->before, d->after, NULL};
    bool named = false;
    for (const char *const *text = texts; *text; text++)
      for (const char *at = *text; (at = strstr(at, words)); at++) named = named || !isalnum((unsigned char)at[length]);
    for (size_t i = 0; i < d->options.count; i++) named = named || strstr(d->options.items[i].help, words);
    if (named && *other != d->command) ff_text_add(out, ",\n.BR farfault\\-%s (1)", (*other)->name);
  }
  ff_text_add(out, "\n");
}

static void add_forms(ff_text *out, const cli_description *d) {
  for (const char *form = d->arguments; form;) {
    const char *end = strchr(form, '\n');
    ff_text_add(out, ".PP\n\\fBfarfault %s\\fR [\\fIOPTION\\fR ...] ", d->command->name);
    add_synopsis(out, form, end ? (size_t)(end - form) : strlen(form));
    ff_text_add(out, "\n");
    form = end ? end + 1 : NULL;
  }
}

static int print_command(const cli_command *command) {
  cli_description d;
  sections s = {0};
  ff_text out = {0}, forms = {0};
  char name[80];
  snprintf(name, sizeof name, "farfault-%s", command->name);
  add_title(&out, name);
  ff_text_add(&out, " \\- ");
  add_plain(&out, command->summary);
  ff_text_add(&out, "\n");
  if (cli_describe(command, NULL, &d)) {
    add_forms(&forms, &d);
    add_section(&out, "SYNOPSIS", &forms);
    ff_text_add(&out, ".SH DESCRIPTION\n");
    add_plain(&out, d.before);
    ff_text_add(&out, "\n");
    sort_sections(d.after, &s);
    ff_text_add(&out, "%s", s.notes.chars ? s.notes.chars : "");
    add_options(&out, &d);
    add_section(&out, "EXIT STATUS", &s.exit);
    add_section(&out, "EXAMPLES", &s.examples);
    add_see_also(&out, &d);
  }
  int status = cli_print(&out);
  cli_description_free(&d);
  free(s.notes.chars);
  free(s.examples.chars);
  free(s.exit.chars);
  free(forms.chars);
  free(out.chars);
  return status;
}

static const struct {
  const char *name, *meaning;
} variables[] = {
    {"FARFAULT_MACHINES", "folders with more machine files, separated by colons"},
    {"FARFAULT_THREADS", "threads of the host that execute kernels, where --threads is not given"},
    {"FARFAULT_DEVICES", "how many GPUs the program finds, where --devices is not given"},
    {"FARFAULT_DRIVER_VERSION", "the version of CUDA that the driver says it is, where --driver-version is not given"},
    {"FARFAULT_MAX_INSTRUCTIONS", "as --max-instructions, where it is not given"},
    {"FARFAULT_BIND_SMS", "as --bind-sms, where it is not given"},
    {"FARFAULT_EXECUTE", "interpret, compile or auto, where --execute is not given"},
    {"FARFAULT_KERNELS", "folders of PTX, separated by colons, where --kernels is not given"},
    {"FARFAULT_COMPILER", "the program farfault-compile to take instead of the installed one"},
    {"XDG_CACHE_HOME",
     "where native code of kernels is kept, in farfault/native, and what functions of large modules need, in "
     "farfault/facts (default: ~/.cache)"},
    {"FARFAULT_ISA", "the host's instruction set, baseline, avx2 or avx512, instead of the best it has"},
    {"FARFAULT_HOST_TOUCHES", "how what the program does with managed memory is recorded: on, pages, groups or off"},
    {"FARFAULT_CHECK", "1 or 2: more checks of farfault by itself"},
    {"TMPDIR", "where temporary files go (default: /tmp)"}};

static const struct {
  const char *name, *meaning;
} statuses[] = {{"0", "done (of `farfault run`: the program's own status)"},
                {"1", "something failed, such as writing a file"},
                {"2", "an input file is missing, broken or of no use"},
                {"64", "wrong arguments"},
                {"126, 127", "the program cannot be executed, is not there"}};

static void add_term(ff_text *out, const char *term, const char *meaning) {
  ff_text_add(out, ".TP\n\\fB");
  add_plain(out, term);
  ff_text_add(out, "\\fR\n");
  add_plain(out, meaning);
  ff_text_add(out, "\n");
}

static void add_command(ff_text *out, const cli_command *command) {
  ff_text_add(out, ".TP\n\\fBfarfault\\-%s\\fR(1)\n", command->name);
  add_plain(out, command->summary);
  ff_text_add(out, "\n");
}

static int print_program(void) {
  ff_text out = {0};
  add_title(&out, "farfault");
  ff_text_add(
      &out,
      " \\- where every page of GPU memory lives and when it moves\n"
      ".SH SYNOPSIS\n\\fBfarfault\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n"
      ".SH DESCRIPTION\nRuns CUDA programs on a virtual GPU and says what their memory would do under different memory managers: the "
      "program's own copies, demand paging with prefetch and eviction, partial pages, the real driver's managed memory, segments, and more. "
      "No GPU, no driver and no CUDA toolkit are needed.\n.SH COMMANDS\n");
#define GROUP(title) ff_text_add(&out, ".SS " title "\n");
#define X(command) add_command(&out, &cli_##command);
#include "cli/interface/commands.def"
#undef X
  ff_text_add(&out, ".SS Help\n");
  ff_text_add(&out,
              ".TP\n\\fBfarfault help\\fR \\fICOMMAND\\fR\nthe help of a command, as \\fB\\-\\-help\\fR behind it\n"
              ".TP\n\\fBfarfault \\-\\-version\\fR\nthe version\n.SH EXIT STATUS\n");
  for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
    add_term(&out, statuses[i].name, statuses[i].meaning);
  ff_text_add(&out, ".SH ENVIRONMENT\n");
  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
    add_term(&out, variables[i].name, variables[i].meaning);
  ff_text_add(&out, ".SH EXAMPLES\n.nf\n.RS 4\n");
  add_plain(&out, "nvcc saxpy.cu -o saxpy\nfarfault run --memory copy,demand,replay,ideal ./saxpy 1000000\n");
  ff_text_add(&out, ".RE\n.fi\n.SH SEE ALSO\n");
  for (const cli_command *const *command = cli_commands; *command; command++)
    ff_text_add(&out, ".BR farfault\\-%s (1)%s\n", (*command)->name, command[1] ? "," : "");
  int status = cli_print(&out);
  free(out.chars);
  return status;
}

int cli_manual(const char *name) {
  const cli_command *command = name ? cli_command_find(name) : NULL;
  return command ? print_command(command) : print_program();
}
