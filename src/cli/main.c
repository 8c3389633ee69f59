/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault COMMAND ...`: finds the command, or says what there is. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/interface/describe.h"

const cli_command *const cli_commands[] = {
#define X(name) &cli_##name,
#include "cli/interface/commands.def"
#undef X
    NULL};

const char *cli_closest(const char *word, const char *const *candidates) {
  const char *near = ff_closest(word, candidates);
  char *lower = ff_strdup(word);
  for (char *c = lower; *c; c++) *c = (char)tolower((unsigned char)*c);
  if (!near) near = ff_closest(lower, candidates);
  free(lower);
  return near;
}

int cli_print_as_it_is(const ff_text *text) {
  signal(SIGPIPE, SIG_IGN);
  bool good = !text->length || fwrite(text->chars, 1, text->length, stdout) == text->length;
  if (fflush(stdout) != 0) good = false;
  if (good || errno == EPIPE) return CLI_DONE;
  return cli_fail(CLI_FAILED, "cannot write the output: %s", strerror(errno));
}

int cli_print(const ff_text *text) {
  size_t width = cli_text_width(STDOUT_FILENO);
  if (!width || !text->length || *text->chars == '{') return cli_print_as_it_is(text);
  ff_text wrapped = {0};
  cli_wrap(text->chars, width, 0, &wrapped);
  int status = cli_print_as_it_is(&wrapped);
  free(wrapped.chars);
  return status;
}

/* Help and version texts go through stdio's buffer, argp's too: whether they could be written is known at the end. */
static void check_stdout(void) {
  if (fflush(stdout) == 0 || errno == EPIPE) return;
  _exit(cli_fail(CLI_FAILED, "cannot write the output: %s", strerror(errno)));
}

static int help(FILE *out) {
  fprintf(out, "Usage: farfault COMMAND [ARGUMENTS]\n"
               "Runs CUDA programs on a virtual GPU and says what their memory would do: no GPU\nis needed.\n");
#define GROUP(title) fprintf(out, "\n%s:\n", title);
#define X(command) fprintf(out, "  %-11s %s\n", cli_##command.name, cli_##command.summary);
#include "cli/interface/commands.def"
#undef X
  fprintf(out, "\nExample:\n"
               "  nvcc saxpy.cu -o saxpy\n"
               "  farfault run --memory copy,demand,replay,ideal ./saxpy 1000000\n\n"
               "`farfault COMMAND --help` says more about a command, `farfault --version` the\nversion.\n");
  return CLI_DONE;
}

const char *cli_command_near(const char *name) {
  const char *names[sizeof cli_commands / sizeof cli_commands[0]] = {0};
  for (int i = 0; cli_commands[i]; i++) names[i] = cli_commands[i]->name;
  return cli_closest(name, names);
}

static int unknown(const char *name) {
  const char *near = cli_command_near(name);
  if (name[0] == '-')
    return cli_fail(CLI_USAGE,
                    "no option '%s' here: options go behind the command, as in farfault run --memory copy ./saxpy",
                    name);
  if (near) return cli_fail(CLI_USAGE, "no command '%s': did you mean '%s'? (farfault --help lists them)", name, near);
  if (strchr(name, '/') || access(name, X_OK) == 0)
    return cli_fail(CLI_USAGE, "no command '%s': did you mean 'farfault run %s'? (farfault --help lists the commands)",
                    name, name);
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

/* In the place of a standard file that is closed, one that can be used as little: else the next file that is opened
 * would get what is printed. Programs that farfault runs have it closed, as they would without farfault. */
static void hold_closed(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

int main(int argc, char **argv) {
  hold_closed();
  atexit(check_stdout);
  json_set_alloc_funcs(ff_alloc, free); /* JSON without a part that there was no memory for is wrong */
  if (argc < 2) {
    help(stderr);
    return CLI_USAGE;
  }
  const char *name = argv[1];
  if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "-?")) return help(stdout);
  if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
    cli_print_version();
    return CLI_DONE;
  }
  bool help_of = !strcmp(name, "help");
  if (help_of && argc < 3) return help(stdout);
  if (help_of && !strcmp(argv[2], "--man")) return manual(argv[3]);
  if (help_of && !strcmp(argv[2], "--options")) return cli_options_list();
  if (help_of && !strcmp(argv[2], "--markdown")) return cli_markdown();
  if (help_of) name = argv[2];
  const cli_command *command = cli_command_find(name);
  if (!command) return unknown(name);
  if (!help_of) return run_command(command, argc - 1, argv + 1);
  char *arguments[] = {NULL, "--help", NULL};
  return run_command(command, 2, arguments);
}
