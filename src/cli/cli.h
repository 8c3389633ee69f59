/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the program `farfault`, and what they share.
 *
 * A command's own output (lists, PTX, tables of saved runs) goes to stdout, messages go to stderr
 * and start with "farfault: " (those about arguments with the command, "farfault run: "); `farfault run` writes nothing
 * to stdout, which is the program's. Exit statuses are those below for every command; `run` returns the program's own
 * where it ran. */
#ifndef FF_CLI_CLI_H
#define FF_CLI_CLI_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "cli/interface/file_kinds.h"
#include "machine/spec/choice.h"
#include "report/report.h"

enum {
  CLI_DONE = 0,
  CLI_FAILED = 1,           /* something of ours or the system's failed */
  CLI_BAD_FILE = 2,         /* an input file is missing, broken or of no use */
  CLI_CONDITION = 3,        /* a condition of --fail-if holds, or cannot be evaluated */
  CLI_NONE_RAN = 4,         /* `sim`: none of the managers could run the program */
  CLI_USAGE = 64,           /* wrong arguments (EX_USAGE) */
  CLI_NOT_EXECUTABLE = 126, /* as shells have it */
  CLI_NO_PROGRAM = 127,
};

typedef struct cli_command {
  const char *name, *summary;
  /* argv[0] is "farfault NAME", for argp's messages. Returns the exit status. */
  int (*run)(int argc, char **argv);
} cli_command;

#define X(name) extern const cli_command cli_##name;
#include "cli/interface/commands.def"
#undef X

/* Adds the text with its long lines broken at spaces so that none is longer than `width` characters (less than 40: they
 * stay); they go on below where they begin, or behind `indent` spaces if they begin with none. A line that begins with
 * four spaces and `farfault` goes on behind a backslash; rows of Markdown's tables stay. */
void cli_wrap(const char *text, size_t width, size_t indent, ff_text *out);
/* What a command prints: how long its lines may be there, 0: any length (it is no terminal, or --wide was given). */
size_t cli_text_width(int descriptor);
/* "farfault: " and the message and a line end, to stderr; with its place, if it complains of what a file of defaults
 * says (interface/config.h). Returns `status`. */
int cli_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Parses the command's arguments in order: everything from the first one that is no option is left to the parser as
 * ARGP_KEY_ARGS. Prints help or a message and exits (CLI_USAGE) by itself where argp does. */
void cli_parse(const struct argp *argp, int argc, char **argv, void *input);
/* The same for commands that print tables to this descriptor: with --wide, and with tables as wide as its terminal. */
void cli_parse_tabular(const struct argp *argp, int argc, char **argv, void *input, int descriptor);
/* An option was spelled as it was once: says what it is now. */
void cli_say_old(const struct argp_state *state, const char *old, const char *now);
/* Before parsing: where `flag` ("--json") stands alone, as it did once, it gets the value "-". */
void cli_old_flag(const char *flag, int *argc, char ***argv);
/* At the end of parsing, where the argument that a command must have is missing: it may stand behind `flag`, which had
 * no value once. Returns it, and *value becomes "-"; NULL: it is not there either. */
const char *cli_old_argument(const char *flag, const char **value, const struct argp_state *state);
/* Writes what an option like --json FILE asks for: "-" is stdout. Returns the exit status; a failure is told to the
 * user. */
int cli_write_or_print(const char *file, const ff_text *text);
/* What follows a noun: "" for one of them, else "s"; "", "es". */
static inline const char *cli_s(uint64_t count) { return count == 1 ? "" : "s"; }
static inline const char *cli_es(uint64_t count) { return count == 1 ? "" : "es"; }
/* Of --version, to stdout. */
void cli_print_version(void);
/* `farfault help --options`: a line per option of every command, also of hidden ones, to stdout: command, letter, name,
 * value, help, with tabs between. Returns the exit status. */
int cli_options_list(void);
/* The parsers' way to refuse an argument: the message with the hint at --help, or with its place in a file of defaults
 * (interface/config.h), then exit(CLI_USAGE). */
void cli_refuse(const struct argp_state *state, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Refuses outputs (NULL: none is wanted) that would take the place of the file that is read: CLI_USAGE, told; else
 * CLI_DONE. */
int cli_keep_input(const char *input, const char *const *outputs, size_t count);

/* Whether outputs (NULL or "-": none is wanted) can be written, before anything long begins: CLI_FAILED, told; else
 * CLI_DONE. */
int cli_check_outputs(const char *const *outputs, size_t count);

/* For commands that take one file: ARGP_KEY_ARG puts it into *file, ARGP_KEY_END refuses that there is none; all else
 * is ARGP_ERR_UNKNOWN. A file that is of another kind than `wanted` (file_kinds.h) is refused with the command that
 * takes it: exit(CLI_BAD_FILE). */
error_t cli_take_file(int key, const char *value, const char **file, unsigned wanted, struct argp_state *state);

/* The name of a file to write, as an option's value; refuses an empty one. "-" stands for stdout where `dash`, and is
 * refused elsewhere. Returns it. */
const char *cli_output(const char *value, const char *option, bool dash, struct argp_state *state);

/* For "did you mean": as ff_closest, but also if only the case differs. */
const char *cli_closest(const char *word, const char *const *candidates);

/* Writes the whole text to stdout; CLI_FAILED with a message if that fails (a full disk), CLI_DONE for a closed
 * pipe. */
int cli_print(const ff_text *text);
/* The same for what might go into a file: its lines stay on a terminal, too. */
int cli_print_as_it_is(const ff_text *text);

/* ---- setup.c: what --machine, --memory, --set and the options of choices.def say ---- */

#define CLI_DEFAULT_MANAGERS "copy,demand,replay,ideal"

typedef struct cli_setup {
  char managers[2048], machine[256]; /* in the form of session_options */
  sim_choices choices;               /* for all managers */
  bool machine_chosen;               /* by the user, not by default */
  bool tried;                        /* it is known that a simulation can be made of it: of a sweep's point */
  bool recorded;                     /* the program is: what needs to look at all of it first may be chosen */
} cli_setup;

/* The exit status that goes with a setup that was refused. */
#define CLI_SETUP_STATUS(error) ((error).status == FF_IO || (error).status == FF_PARSE ? CLI_BAD_FILE : CLI_USAGE)

/* Checks everything that can be known before the program runs, and fills in the defaults: managers exist and none is
 * named twice, the machine's file is good, its overrides fit, the memory size is one. A machine's file gets its
 * absolute path. */
ff_status cli_setup_check(cli_setup *setup, ff_error *error);

/* The folder of this executable ("/opt/farfault/bin"); the caller frees it. */
char *cli_own_folder(void);

/* ---- find_installed.c ---- */

/* The first of these paths (NULL-ended) under this executable's folder that exists, absolute; the caller frees it.
 * NULL: none. */
char *cli_find_installed(const char *const *paths);
/* The folder of the bundled workloads' executables; the caller frees it. NULL: they are not part of this build. */
char *cli_workload_folder(void);

#endif
