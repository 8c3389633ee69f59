/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault COMMAND ...`: finds the command, or says what there is. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "cli/cli.h"

static const cli_command *const commands[] = {
#define X(name) &cli_##name,
#include "cli/commands.def"
#undef X
    NULL};

__attribute__((visibility("default"))) /* glibc must see it: it adds --version to every command */
const char *argp_program_version = "farfault " FARFAULT_VERSION;

int cli_fail(int status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "farfault: ");
  vfprintf(stderr, format, args);
  fprintf(stderr, "\n");
  va_end(args);
  return status;
}

void cli_parse(const struct argp *argp, int argc, char **argv, void *input) {
  argp_err_exit_status = CLI_USAGE;
  int failed = argp_parse(argp, argc, argv, ARGP_IN_ORDER, NULL, input);
  if (failed) exit(cli_fail(CLI_USAGE, "%s", strerror(failed)));
}

int cli_print(const ff_text *text) {
  signal(SIGPIPE, SIG_IGN);
  bool good = !text->length || fwrite(text->chars, 1, text->length, stdout) == text->length;
  if (fflush(stdout) != 0) good = false;
  if (good || errno == EPIPE) return CLI_DONE;
  return cli_fail(CLI_FAILED, "cannot write the output: %s", strerror(errno));
}

static int help(FILE *out) {
  fprintf(out, "Usage: farfault COMMAND [ARGUMENTS]\n"
               "Runs CUDA programs on a virtual GPU and says what their memory would do: no GPU is needed.\n\n");
  for (const cli_command *const *command = commands; *command; command++)
    fprintf(out, "  %-8s %s\n", (*command)->name, (*command)->summary);
  fprintf(out, "\nExample:\n"
               "  nvcc -cudart shared saxpy.cu -o saxpy\n"
               "  farfault run --memory copy,demand,replay,ideal ./saxpy 1000000\n\n"
               "`farfault COMMAND --help` says more about a command, `farfault --version` the version.\n");
  return CLI_DONE;
}

static int unknown(const char *name) {
  const char *names[sizeof commands / sizeof commands[0]] = {0};
  for (int i = 0; commands[i]; i++) names[i] = commands[i]->name;
  const char *near = ff_closest(name, names);
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

int main(int argc, char **argv) {
  if (argc < 2) {
    help(stderr);
    return CLI_USAGE;
  }
  const char *name = argv[1];
  if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "-?")) return help(stdout);
  if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
    puts(argp_program_version);
    return CLI_DONE;
  }
  bool help_of = !strcmp(name, "help");
  if (help_of && argc < 3) return help(stdout);
  if (help_of) name = argv[2];
  for (const cli_command *const *command = commands; *command; command++)
    if (!strcmp(name, (*command)->name)) {
      if (!help_of) return run_command(*command, argc - 1, argv + 1);
      char *arguments[] = {NULL, "--help", NULL};
      return run_command(*command, 2, arguments);
    }
  return unknown(name);
}
