/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults of options from files: farfault.yaml in the current folder (the project's), and farfault/farfault.yaml in
 * $XDG_CONFIG_HOME, else in ~/.config (the user's).
 *
 *   machine: h100            options of run, record and sim, by their long names
 *   memory: [copy, uvm]      a list, of an option that may be repeated or takes one
 *   sim:                     options of one command
 *     verbose: true
 *
 * What the command line gives counts, then the project's file, then the user's; in a file a command's own options go
 * before those of all. No file can name what is written or loaded as code: options that write files are refused, as are
 * values with "/" or ".so" in them; only a machine and a baseline are files, relative to the folder of the file that
 * names them. FARFAULT_CONFIG=FILE: that file instead of both; none: no file is read, as it is set for farfault's own
 * child processes. */
#ifndef FF_CLI_CONFIG_H
#define FF_CLI_CONFIG_H

#include "base/memory.h"
#include "cli/interface/describe.h"

typedef struct config_value {
  char *option, *value;  /* owned; value: as behind "=", NULL: an option without one; "false" of such: `off` */
  const char *command;   /* NULL: of run, record and sim */
  const char *file;      /* of configuration.files */
  uint32_t line, column; /* of the value, from 1 */
  bool project, off;
  bool joined;   /* values of one list are one text with commas, not an option each */
  uint32_t list; /* values of one list, or one value, have one number */
} config_value;

typedef struct configuration {
  char *files[2]; /* the project's, the user's or the one that FARFAULT_CONFIG names; NULL: not there */
  FF_VEC(config_value) values;
} configuration;

/* Reads both files. FF_PARSE with the place; FF_IO: there is a file that cannot be read. configuration_free. */
ff_status configuration_read(configuration *c, ff_error *error);
void configuration_free(configuration *c);

/* The value that counts for this option of the command, or the first of a list; NULL: none. */
const config_value *configuration_find(const configuration *c, const char *command, const char *option);

/* What counts for this option of the command, a list with commas; `out` stays empty where nothing does, or the option
 * has no value. */
void configuration_value(const configuration *c, const char *command, const char *option, ff_text *out);

/* Where what a message complains of stands in a file: "/folder/farfault.yaml:3:10: ", if the message names an option
 * that configuration_apply has put on the command line ("--memory") or quotes its value ("'nosuch'"); an empty text: it
 * does not. The text is valid until the next call. */
const char *configuration_place(const char *message);
/* configuration_place looks for these values, too, from now on; they stay the caller's, until it is given NULL. */
void configuration_blame(const configuration *c);

/* The command line with what the files say put behind argv[0], but for options that it gives itself; argv itself if
 * there is nothing. Exits with CLI_BAD_FILE where a file is wrong. `name`: the command's. The new list lives as long as
 * the program. */
char **configuration_apply(const char *name, const cli_description *description, int *argc, char **argv);

#endif
