/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault config`: what the files of defaults say, where each value is from, and which one counts
 * (interface/config.h). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/interface/config.h"
#include "report/table.h"
#include "session/session.h"

static error_t parse(int key, char *value, struct argp_state *state) {
  if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
  cli_refuse(state, "'%s': it takes no arguments (defaults are written into ./farfault.yaml by hand)", value);
  return 0;
}

static const char *of_command(const config_value *v) { return v->command ? v->command : "run, record, sim"; }

/* Whether it counts for some command that it is of. */
static bool counts(const configuration *c, const config_value *v) {
  static const char *const together[] = {"run", "record", "sim", NULL};
  const char *one[] = {v->command, NULL};
  for (const char *const *each = v->command ? one : together; *each; each++) {
    const config_value *found = configuration_find(c, *each, v->option);
    if (found && found->file == v->file && found->list == v->list) return true;
  }
  return false;
}

static void add_row(const configuration *c, const config_value *v, table *t) {
  table_cell(t, "%s", v->option);
  table_cell_cut(t, v->value ? v->value : v->off ? "false" : "true", 60);
  table_cell(t, "%s", of_command(v));
  table_cell(t, "%s:%u%s", v->file, v->line, counts(c, v) ? "" : " (another one counts)");
}

static void add_default(const configuration *c, const char *option, const char *value, table *t) {
  if (configuration_find(c, "run", option)) return;
  table_cell(t, "%s", option);
  table_cell(t, "%s", value);
  table_cell(t, "run, record, sim");
  table_cell(t, "default");
}

static int print(const configuration *c) {
  ff_text out = {0};
  table t;
  table_start(&t, "lllw");
  table_names(&t, (const char *const[]){"option", "value", "of", "from", NULL});
  for (size_t i = 0; i < c->values.count; i++) add_row(c, &c->values.items[i], &t);
  add_default(c, "machine", MACHINE_DEFAULT, &t);
  add_default(c, "memory", CLI_DEFAULT_MANAGERS, &t);
  table_write(&t, 0, &out);
  if (!c->files[0] && !c->files[1])
    ff_text_add(&out,
                "(no file: neither ./farfault.yaml nor farfault/farfault.yaml in $XDG_CONFIG_HOME\n or ~/.config)\n");
  int status = cli_print(&out);
  table_free(&t);
  free(out.chars);
  return status;
}

/* ---- whether the values mean anything ---- */

static bool copy_value(const configuration *c, const char *command, const char *option, char *to, size_t size) {
  ff_text value = {0};
  configuration_value(c, command, option, &value);
  bool fits = value.length < size;
  if (value.length && fits) strcpy(to, value.chars);
  if (!fits) cli_fail(0, "--%s is longer than %zu characters", option, size - 1);
  free(value.chars);
  return fits;
}

/* What is to be simulated, as the command looks at it before anything runs. Other options are looked at with the rest
 * of the command line only. */
static bool is_good(const configuration *c, const char *command) {
  cli_setup setup = {0};
  ff_error error;
  bool good = copy_value(c, command, "machine", setup.machine, sizeof setup.machine) &&
              copy_value(c, command, "memory", setup.managers, sizeof setup.managers) &&
              copy_value(c, command, "set", setup.choices.set, sizeof setup.choices.set);
  for (int i = 0; i < SIM_CHOICE_COUNT && good; i++)
    good = copy_value(c, command, sim_choice_infos[i].name, setup.choices.text[i], SIM_CHOICE_LENGTH);
  if (good && cli_setup_check(&setup, &error)) {
    cli_fail(0, "%s", error.message);
    good = false;
  }
  return good;
}

static int config(int argc, char **argv) {
  static const struct argp argp = {
      NULL,
      parse,
      "",
      "Shows the defaults of options that files give, where each is from, and which one counts. The files are farfault.yaml in the current "
      "folder (the project's) and farfault/farfault.yaml in $XDG_CONFIG_HOME or ~/.config (the user's). The command line goes "
      "before the project's file, that before the user's.\v"
      "Example:\n  echo 'machine: h100' >farfault.yaml\n  echo 'memory: [copy, uvm, auto]' >>farfault.yaml\n  farfault config\n\n"
      "Options stand there by their long names: of run, record and sim; or of one command, below its name. An option that may be repeated takes "
      "a list. A machine or a manager that there is not is told with its place. What is written, and what is loaded as code, cannot be named in a file. FARFAULT_CONFIG=FILE: that file instead of both; FARFAULT_CONFIG=none: no file is read.",
      NULL,
      NULL,
      NULL};
  configuration c;
  ff_error error;
  cli_parse_tabular(&argp, argc, argv, NULL, STDOUT_FILENO);
  if (configuration_read(&c, &error)) return cli_fail(CLI_BAD_FILE, "%s", error.message);
  int status = print(&c);
  configuration_blame(&c);
  if (!status && !(is_good(&c, "run") && is_good(&c, "sim"))) status = CLI_BAD_FILE;
  configuration_blame(NULL);
  configuration_free(&c);
  return status;
}

const cli_command cli_config = {"config", "show defaults of options, and which file they are from", config};
