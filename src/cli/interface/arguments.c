/* SPDX-License-Identifier: Apache-2.0 */
/* How every command parses its arguments: what all options have in common, --help, and old spellings.
 *
 * An option has one meaning, one kind of value and one letter in all commands
 * (tests/programs/options.sh). Where one had another once, the old spelling still works, says on stderr what it is now,
 * and is in no help text. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/output.h"
#include "cli/cli.h"
#include "cli/interface/config.h"
#include "cli/interface/describe.h"
#include "compile/compile.h"
#include "report/table.h"

static size_t text_width; /* of a command that prints tables; 0: any */

enum { KEY_USAGE = 1000, KEY_WIDE, CHILDREN_MAX = 8, MESSAGE_INDENT = 2 };

static const struct argp_option common_options[] = {{"help", '?', NULL, 0, "print this help", -1},
                                                    {NULL, 'h', NULL, OPTION_HIDDEN, NULL, -1},
                                                    {"usage", KEY_USAGE, NULL, 0, "print a short usage message", -1},
                                                    {"version", 'V', NULL, 0, "print the version", -1},
                                                    {0}};

void cli_print_version(void) {
  char compiler[PATH_MAX], real[PATH_MAX];
  puts("farfault " FARFAULT_VERSION);
  if (compile_find(compiler, sizeof compiler))
    printf("native code of kernels: by %s\n", realpath(compiler, real) ? real : compiler);
  else puts("native code of kernels: none, there is no farfault-compile; they are interpreted");
}

/* Prints a text that `write` makes of the command's tables, and ends. */
static void show_help(const struct argp_state *state, void (*write)(const cli_description *, const char *, ff_text *)) {
  cli_description d = {0};
  ff_text out = {0};
  cli_describe_tables(state->root_argp, &d);
  write(&d, state->name, &out);
  int status = cli_print(&out);
  cli_description_free(&d);
  free(out.chars);
  exit(status);
}

static error_t parse_common(int key, char *value, struct argp_state *state) {
  switch (key) {
  case '?':
  case 'h': show_help(state, cli_help_write); return 0;
  case KEY_USAGE: show_help(state, cli_usage_write); return 0;
  case 'V': cli_print_version(); exit(CLI_DONE);
  default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp common_argp = {common_options, parse_common, NULL, NULL, NULL, NULL, NULL};

/* ---- tables ---- */

/* How wide tables may be that go to this descriptor: the terminal's columns; 0, any width: it is none, or does not
 * say. */
static size_t terminal_width(int descriptor) {
  struct winsize size;
  const char *columns = getenv("COLUMNS");
  unsigned long said = columns && strspn(columns, "0123456789") == strlen(columns) && strlen(columns) < 8
                           ? strtoul(columns, NULL, 10)
                           : 0;
  if (!isatty(descriptor)) return 0;
  if (said) return said;
  return ioctl(descriptor, TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

/* Colours are for terminals that know them, and for people who want them (no-color.org). */
static bool terminal_has_colours(int descriptor) {
  const char *none = getenv("NO_COLOR"), *kind = getenv("TERM");
  return isatty(descriptor) && !(none && *none) && kind && *kind && strcmp(kind, "dumb") != 0;
}

static const struct argp_option wide_options[] = {
    {NULL, 0, NULL, 0, "Tables:", 9},
    {"wide", KEY_WIDE, NULL, 0,
     "show all columns (default: on a terminal those that fit its width; what is left out is said)", 9},
    {0}};

static error_t parse_wide(int key, char *value, struct argp_state *state) {
  if (key != KEY_WIDE) return ARGP_ERR_UNKNOWN;
  table_fit(0);
  text_width = 0;
  return 0;
}

static const struct argp wide_argp = {wide_options, parse_wide, NULL, NULL, NULL, NULL, NULL};

size_t cli_text_width(int descriptor) { return isatty(descriptor) ? text_width : 0; }

/* ---- messages ---- */

/* "farfault: message", on a terminal with its long lines broken: its `place` in a file of defaults comes first. */
static void say(const char *name, const char *place, const char *message) {
  ff_text whole = {0}, shown = {0};
  ff_text_add(&whole, "%s: %s%s\n", name, place, message);
  cli_wrap(whole.chars, terminal_width(STDERR_FILENO), MESSAGE_INDENT, &shown);
  fputs(shown.chars, stderr);
  free(whole.chars);
  free(shown.chars);
}

static void add_list(ff_text *text, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char *chars = ff_alloc((size_t)(length < 0 ? 0 : length) + 1);
  if (length > 0) vsnprintf(chars, (size_t)length + 1, format, args);
  ff_text_add(text, "%s", chars);
  free(chars);
}

int cli_fail(int status, const char *format, ...) {
  ff_text message = {0};
  va_list args;
  va_start(args, format);
  add_list(&message, format, args);
  va_end(args);
  say("farfault", configuration_place(message.chars), message.chars);
  free(message.chars);
  return status;
}

void cli_refuse(const struct argp_state *state, const char *format, ...) {
  ff_text message = {0};
  va_list args;
  va_start(args, format);
  add_list(&message, format, args);
  va_end(args);
  const char *place = configuration_place(message.chars);
  say(state->name, place, message.chars);
  if (!*place) argp_help(state->root_argp, stderr, ARGP_HELP_SEE, (char *)state->name);
  exit(CLI_USAGE);
}

/* ---- parsing ---- */

/* An option that there is not, and is much like one that there is: says so and ends. The rest is left to argp. */
static void check_spelling(const struct argp *argp, const cli_description *d, int argc, char **argv) {
  bool *given = ff_alloc(d->options.count + 1);
  const char *word = cli_options_given(d, argc, argv, given);
  free(given);
  if (!word || strncmp(word, "--", 2)) return;
  const char **names = ff_alloc((d->options.count + 1) * sizeof *names);
  char *name = ff_strdup(word + 2);
  size_t count = 0;
  name[strcspn(name, "=")] = '\0';
  bool begins = false; /* it is short for several */
  for (size_t i = 0; i < d->options.count; i++) {
    const char *own = d->options.items[i].name;
    if (own) names[count++] = own;
    begins = begins || (own && !strncmp(own, name, strlen(name)));
  }
  const char *near = begins ? NULL : ff_closest(name, names);
  if (near) {
    fprintf(stderr, "%s: no option '--%s': did you mean '--%s'?\n", argv[0], name, near);
    argp_help(argp, stderr, ARGP_HELP_SEE, argv[0]);
    exit(CLI_USAGE);
  }
  free(names);
  free(name);
}

/* The command line with what farfault.yaml says; argv[0] is "farfault NAME". */
static char **with_defaults(const struct argp *argp, int *argc, char **argv) {
  const char *name = strrchr(argv[0], ' ');
  cli_description d = {0};
  cli_describe_tables(argp, &d);
  check_spelling(argp, &d, *argc, argv);
  if (name && strcmp(name, " config")) argv = configuration_apply(name + 1, &d, argc, argv);
  cli_description_free(&d);
  return argv;
}

static void parse_with(const struct argp *argp, const struct argp *const *more, int argc, char **argv, void *input) {
  struct argp_child children[CHILDREN_MAX + 4] = {{0}};
  struct argp whole = *argp;
  int own = 0;
  for (; argp->children && argp->children[own].argp && own < CHILDREN_MAX; own++) children[own] = argp->children[own];
  for (; *more; more++) children[own++].argp = *more;
  whole.children = children;
  if (cli_describing()) cli_describe_take(&whole);
  argv = with_defaults(&whole, &argc, argv);
  argp_err_exit_status = CLI_USAGE;
  int failed = argp_parse(&whole, argc, argv, ARGP_IN_ORDER | ARGP_NO_HELP, NULL, input);
  if (failed) exit(cli_fail(CLI_USAGE, "%s", strerror(failed)));
}

void cli_parse(const struct argp *argp, int argc, char **argv, void *input) {
  parse_with(argp, (const struct argp *const[]){&common_argp, NULL}, argc, argv, input);
}

void cli_parse_tabular(const struct argp *argp, int argc, char **argv, void *input, int descriptor) {
  if (!cli_describing()) { /* else another command is being parsed */
    text_width = terminal_width(descriptor);
    table_fit(text_width);
    table_colour(terminal_has_colours(descriptor));
  }
  parse_with(argp, (const struct argp *const[]){&wide_argp, &common_argp, NULL}, argc, argv, input);
}

/* ---- old spellings ---- */

void cli_say_old(const struct argp_state *state, const char *old, const char *now) {
  fprintf(stderr, "%s: %s is now %s (what you wrote still works)\n", state->name, old, now);
}

/* Nothing that could be the option's value follows: it is the last argument, or an option is next. */
static bool stands_alone(const char *next) { return !next || (next[0] == '-' && next[1]); }

static void say_old_flag(const char *name, const char *flag) {
  fprintf(stderr, "%s: %s is now %s FILE, or %s - for stdout (what you wrote still works)\n", name, flag, flag, flag);
}

const char *cli_old_argument(const char *flag, const char **value, const struct argp_state *state) {
  const char *argument = *value;
  if (!argument || !strcmp(argument, "-")) return NULL;
  say_old_flag(state->name, flag);
  *value = "-";
  return argument;
}

void cli_old_flag(const char *flag, int *argc, char ***argv) {
  FF_VEC(char *) words = {0};
  bool found = false, options = true;
  for (int i = 0; i < *argc; i++) {
    char *word = (*argv)[i];
    FF_PUSH(&words, word);
    options = options && strcmp(word, "--");
    if (!options || i == 0 || strcmp(word, flag) || !stands_alone((*argv)[i + 1])) continue;
    say_old_flag((*argv)[0], flag);
    FF_PUSH(&words, (char *)"-");
    found = true;
  }
  FF_PUSH(&words, NULL);
  static char **kept; /* the last one stays as long as the program */
  if (!found) {
    free(words.items);
    return;
  }
  *argc = (int)words.count - 1;
  free(kept);
  *argv = kept = words.items;
}

error_t cli_take_file(int key, const char *value, const char **file, unsigned wanted, struct argp_state *state) {
  char by[160];
  const char *what = kind_name(wanted, by);
  switch (key) {
  case ARGP_KEY_ARG:
    if (!*value) cli_refuse(state, "the %s's name is empty", what);
    if (*file) cli_refuse(state, "one %s at a time", what);
    *file = value;
    return 0;
  case ARGP_KEY_END:
    if (!*file) cli_refuse(state, "which %s? (one that %s wrote)", what, by);
    if (kind_refused(*file, wanted)) exit(CLI_BAD_FILE);
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

const char *cli_output(const char *value, const char *option, bool dash, struct argp_state *state) {
  if (!*value) cli_refuse(state, "%s: the file's name is empty", option);
  if (!dash && !strcmp(value, "-"))
    cli_refuse(state, "%s -: write /dev/stdout (or ./- for a file of that name)", option);
  if (*value == '-' && value[1]) /* the option's value was left out */
    cli_refuse(state, "%s %s: the file's name is missing (or write ./%s)", option, value, value);
  return value;
}

int cli_keep_input(const char *input, const char *const *outputs, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (ff_output_same(outputs[i], input))
      return cli_fail(CLI_USAGE, "%s: is what is read: the output would take its place", outputs[i]);
  return CLI_DONE;
}

int cli_check_outputs(const char *const *outputs, size_t count) {
  ff_error error;
  for (size_t i = 0; i < count; i++)
    if (outputs[i] && strcmp(outputs[i], "-") && ff_output_check(outputs[i], &error))
      return cli_fail(CLI_FAILED, "%s", error.message);
  return CLI_DONE;
}

int cli_write_or_print(const char *file, const ff_text *text) {
  ff_error error;
  if (!strcmp(file, "-")) return cli_print_as_it_is(text);
  if (ff_file_write(file, text->chars, text->length, &error)) return cli_fail(CLI_FAILED, "%s", error.message);
  return CLI_DONE;
}
