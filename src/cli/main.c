/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault COMMAND ...`: finds the command, or says what there is. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/describe.h"
#include "compile/compile.h"

const cli_command *const cli_commands[] = {
#define X(name) &cli_##name,
#include "cli/commands.def"
#undef X
    NULL};

int cli_fail(int status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "farfault: ");
  vfprintf(stderr, format, args);
  fprintf(stderr, "\n");
  va_end(args);
  return status;
}

/* ---- what every command's options have in common ---- */

enum { KEY_USAGE = 1000, CHILDREN_MAX = 8 };

static const struct argp_option common_options[] = {{"help", '?', NULL, 0, "print this help", -1},
                                                    {NULL, 'h', NULL, OPTION_HIDDEN, NULL, -1},
                                                    {"usage", KEY_USAGE, NULL, 0, "print a short usage message", -1},
                                                    {"version", 'V', NULL, 0, "print the version", -1},
                                                    {0}};

static void print_version(void) {
  char compiler[PATH_MAX], real[PATH_MAX];
  puts("farfault " FARFAULT_VERSION);
  if (compile_find(compiler, sizeof compiler)) printf("native code of kernels: by %s\n", realpath(compiler, real) ? real : compiler);
  else puts("native code of kernels: none, there is no farfault-compile; they are interpreted");
}

static error_t parse_common(int key, char *value, struct argp_state *state) {
  switch (key) {
  case '?': case 'h': argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP); return 0;
  case KEY_USAGE: argp_state_help(state, state->out_stream, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK); return 0;
  case 'V': print_version(); exit(CLI_DONE);
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* argp's texts without the paragraph about short options, which says what everybody expects. */
static char *filter_help(int key, const char *text, void *input) {
  return key == ARGP_KEY_HELP_DUP_ARGS_NOTE ? NULL : (char *)text;
}

void cli_parse(const struct argp *argp, int argc, char **argv, void *input) {
  static const struct argp common = {common_options, parse_common, NULL, NULL, NULL, NULL, NULL};
  struct argp_child children[CHILDREN_MAX + 2] = {{0}};
  struct argp whole = *argp;
  int own = 0;
  for (; argp->children && argp->children[own].argp && own < CHILDREN_MAX; own++) children[own] = argp->children[own];
  children[own].argp = &common;
  whole.children = children;
  whole.help_filter = filter_help;
  if (cli_describing()) cli_describe_take(&whole);
  argp_err_exit_status = CLI_USAGE;
  int failed = argp_parse(&whole, argc, argv, ARGP_IN_ORDER | ARGP_NO_HELP, NULL, input);
  if (failed) exit(cli_fail(CLI_USAGE, "%s", strerror(failed)));
}

error_t cli_take_file(int key, const char *value, const char **file, const char *what, const char *by, struct argp_state *state) {
  switch (key) {
  case ARGP_KEY_ARG:
    if (!*value) cli_refuse(state, "the %s's name is empty", what);
    if (*file) cli_refuse(state, "one %s at a time", what);
    *file = value;
    return 0;
  case ARGP_KEY_END:
    if (!*file) cli_refuse(state, "which %s? (one that %s wrote)", what, by);
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

const char *cli_closest(const char *word, const char *const *candidates) {
  const char *near = ff_closest(word, candidates);
  char *lower = ff_strdup(word);
  for (char *c = lower; *c; c++) *c = (char)tolower((unsigned char)*c);
  if (!near) near = ff_closest(lower, candidates);
  free(lower);
  return near;
}

int cli_print(const ff_text *text) {
  signal(SIGPIPE, SIG_IGN);
  bool good = !text->length || fwrite(text->chars, 1, text->length, stdout) == text->length;
  if (fflush(stdout) != 0) good = false;
  if (good || errno == EPIPE) return CLI_DONE;
  return cli_fail(CLI_FAILED, "cannot write the output: %s", strerror(errno));
}

/* Help and version texts go through stdio's buffer, argp's too: whether they could be written is known at the end. */
static void check_stdout(void) {
  if (fflush(stdout) == 0 || errno == EPIPE) return;
  _exit(cli_fail(CLI_FAILED, "cannot write the output: %s", strerror(errno)));
}

static int help(FILE *out) {
  fprintf(out, "Usage: farfault COMMAND [ARGUMENTS]\n"
               "Runs CUDA programs on a virtual GPU and says what their memory would do: no GPU is needed.\n\n");
  for (const cli_command *const *command = cli_commands; *command; command++)
    fprintf(out, "  %-10s %s\n", (*command)->name, (*command)->summary);
  fprintf(out, "\nExample:\n"
               "  nvcc saxpy.cu -o saxpy\n"
               "  farfault run --memory copy,demand,replay,ideal ./saxpy 1000000\n\n"
               "`farfault COMMAND --help` says more about a command, `farfault --version` the version.\n");
  return CLI_DONE;
}

static int unknown(const char *name) {
  const char *names[sizeof cli_commands / sizeof cli_commands[0]] = {0};
  for (int i = 0; cli_commands[i]; i++) names[i] = cli_commands[i]->name;
  const char *near = cli_closest(name, names);
  if (name[0] == '-')
    return cli_fail(CLI_USAGE, "no option '%s' here: options go behind the command, as in farfault run --memory copy ./saxpy", name);
  if (near) return cli_fail(CLI_USAGE, "no command '%s': did you mean '%s'? (farfault --help lists them)", name, near);
  if (strchr(name, '/') || access(name, X_OK) == 0)
    return cli_fail(CLI_USAGE, "no command '%s': did you mean 'farfault run %s'? (farfault --help lists the commands)", name, name);
  return cli_fail(CLI_USAGE, "no command '%s' (farfault --help lists them)", name);
}

static int run_command(const cli_command *command, int argc, char **argv) {
  char name[64];
  snprintf(name, sizeof name, "farfault %s", command->name);
  argv[0] = name;
  return command->run(argc, argv);
}

/* `farfault help --man [COMMAND]`: what the manual pages are made of when farfault is built. */
static int manual(const char *name) { return name && !cli_command_find(name) ? unknown(name) : cli_manual(name); }

int main(int argc, char **argv) {
  atexit(check_stdout);
  if (argc < 2) {
    help(stderr);
    return CLI_USAGE;
  }
  const char *name = argv[1];
  if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "-?")) return help(stdout);
  if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
    print_version();
    return CLI_DONE;
  }
  bool help_of = !strcmp(name, "help");
  if (help_of && argc < 3) return help(stdout);
  if (help_of && !strcmp(argv[2], "--man")) return manual(argv[3]);
  if (help_of) name = argv[2];
  const cli_command *command = cli_command_find(name);
  if (!command) return unknown(name);
  if (!help_of) return run_command(command, argc - 1, argv + 1);
  char *arguments[] = {NULL, "--help", NULL};
  return run_command(command, 2, arguments);
}
