/* SPDX-License-Identifier: Apache-2.0 */
/* What every command takes, read off its own argp tables: manual pages (manual.c) and shell completion (completion.c)
 * are made of this.
 *
 * Nothing is listed a second time. A command is called as usual, and its call of cli_parse hands its
 * tables over instead of parsing; so a new command in commands.def has its page and its completion by itself. */
#ifndef FF_CLI_DESCRIBE_H
#define FF_CLI_DESCRIBE_H

#include "base/memory.h"
#include "cli/cli.h"

typedef struct cli_option {
  const char *name;  /* without its dashes; NULL: a short option only */
  char letter;       /* 0: none */
  const char *value; /* the placeholder (FILE); NULL: takes no value */
  bool optional;     /* the value may be left out */
  const char *help;
  int group; /* as argp's: 0, 1, ... then the negative ones */
} cli_option;

typedef struct cli_group {
  int group;
  const char *title;
} cli_group;

typedef struct cli_description {
  const cli_command *command;
  char *arguments;                   /* "[--] PROGRAM [ARGUMENTS]"; empty: none. One more form per line */
  char *before, *after;              /* the help's text before and behind the options */
  FF_VEC(cli_option) options;        /* in the order of their groups, then of their tables */
  FF_VEC(cli_option) hidden_options; /* hidden ones and aliases: old spellings, and what farfault asks itself */
  FF_VEC(cli_group) groups;          /* those with titles */
} cli_description;

extern const cli_command *const cli_commands[]; /* NULL-ended */

/* NULL: there is none. */
const cli_command *cli_command_find(const char *name);
/* For "did you mean": the name of the command nearest to `name`, or NULL if none is near. */
const char *cli_command_near(const char *name);

/* Fills it in from the command's tables, those of its action where it is not NULL ("profile" of `farfault offload
 * profile`); false if it does not parse its arguments by cli_parse. Names and help texts belong to the command,
 * the rest is freed with cli_description_free. */
bool cli_describe(const cli_command *command, const char *action, cli_description *description);
void cli_description_free(cli_description *description);

/* As cli_describe, from a table itself; `command` stays NULL. Freed the same way. */
void cli_describe_tables(const struct argp *argp, cli_description *description);

/* Which options the command line gives: given[i] of options.items[i] becomes true. It is read as getopt_long does, up
 * to a program whose own arguments follow. Returns the first word that is no option of the command's, as it stands
 * ("--memroy=uvm"); NULL: there is none. */
const char *cli_options_given(const cli_description *description, int argc, char **argv, bool *given);

/* ---- help.c ---- */

/* The texts of --help and --usage of "farfault NAME", added to *out. */
void cli_help_write(const cli_description *description, const char *name, ff_text *out);
/* A line of a shell as it stands, or where it is longer than `width` as several that go on behind a backslash; each
 * ends in a newline. */
void cli_example_write(const char *line, size_t length, size_t width, ff_text *out);
void cli_usage_write(const cli_description *description, const char *name, ff_text *out);

/* For cli_parse: true while a command is only asked for its tables; then cli_describe_take does not return. */
bool cli_describing(void);
void cli_describe_take(const struct argp *argp) __attribute__((noreturn));

/* ---- what a placeholder stands for ---- */

typedef struct cli_placeholder {
  const char *word, *bash, *zsh, *fish;
} cli_placeholder; /* placeholders.def */
/* NULL: it stands for nothing that could be listed. */
const cli_placeholder *cli_placeholder_find(const char *word, size_t length);
/* "accelsim", "small|normal|full", also "block|replay[:MSHRS]": each in small letters up to "[" or ":". The words with
 * spaces between, which the caller frees; NULL: these are not words. */
char *cli_placeholder_words(const char *word, size_t length);

typedef struct cli_argument { /* points into cli_description.arguments */
  const char *word;
  size_t length;
  bool repeated; /* there may be more of it */
} cli_argument;
enum { CLI_ARGUMENTS_MAX = 16 };
/* The placeholders of a form of the arguments, without brackets, dashes and options ("-o FILE"): returns how many.
 * *form goes on to the next line; NULL behind the last. */
int cli_arguments(const char **form, cli_argument arguments[CLI_ARGUMENTS_MAX]);

/* ---- manual.c ---- */

/* The manual page in man(7) of the command, or of the program for NULL, to stdout. Returns the exit status. The same
 * text for the same program. */
int cli_manual(const char *name);

/* ---- markdown.c ---- */

/* `farfault help --markdown`: docs/options.md, to stdout. Returns the exit status. */
int cli_markdown(void);

#endif
