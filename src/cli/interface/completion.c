/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault completion bash|zsh|fish`: a script that completes farfault's commands, options and names in that shell.
 *
 *   the commands' tables (describe.h) -> tables in the shell's language -> put where completion.bash (.zsh, .fish) says
 *   @tables@
 *
 * Every command, option and name comes from where farfault itself has it. Machines are files, which
 * the scripts ask for when they complete (`farfault list machines`). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/interface/describe.h"
#include "policy/manager.h"
#include "policy/policies.h"
#include "reproduce/reproduce.h"

extern const char completion_bash[], completion_zsh[], completion_fish[]; /* the files next to this one */

/* ---- names ---- */

typedef struct names {
  FF_VEC(const char *) list;
} names;

static names manager_names(void) {
  names n = {0};
  for (const manager *const *m = managers; *m; m++) FF_PUSH(&n.list, (*m)->name);
  return n;
}

static names policy_names(void) {
  names n = {0};
  for (int use = POLICY_PREFETCH; use <= POLICY_EVICT; use++)
    for (const policy_entry *entry = policy_list((policy_use)use); entry->policy; entry++) {
      bool known = false; /* a policy may be of both uses */
      for (size_t i = 0; i < n.list.count; i++) known = known || !strcmp(n.list.items[i], entry->policy->name);
      if (!known) FF_PUSH(&n.list, entry->policy->name);
    }
  return n;
}

static names paper_names(void) {
  names n = {0};
  for (const repro_paper *const *paper = repro_papers; *paper; paper++) FF_PUSH(&n.list, (*paper)->name);
  return n;
}

static names command_names(void) {
  names n = {0};
  for (const cli_command *const *command = cli_commands; *command; command++) FF_PUSH(&n.list, (*command)->name);
  return n;
}

/* "sm_count=": what --set and "MANAGER+" take. */
static names value_names(void) {
  names n = {0};
#define X(group, name, type, unit, required, help) FF_PUSH(&n.list, #name "=");
#include "machine/spec/params.def"
#undef X
  return n;
}

static names setting_names(void) {
  names n = {0}, values = value_names();
#define X(id, name, variable, pages, value, help) FF_PUSH(&n.list, name "=");
#include "machine/spec/choices.def"
#undef X
  for (size_t i = 0; i < values.list.count; i++) FF_PUSH(&n.list, values.list.items[i]);
  free(values.list.items);
  return n;
}

static const struct {
  const char *name;
  names (*list)(void);
} lists[] = {{"managers", manager_names}, {"policies", policy_names}, {"papers", paper_names},
             {"commands", command_names}, {"values", value_names},    {"settings", setting_names}};
enum { LISTS = sizeof lists / sizeof lists[0] };

static void add_lists(ff_text *out, const char *start, const char *open, const char *close) {
  for (int i = 0; i < LISTS; i++) {
    names n = lists[i].list();
    ff_text_add(out, "%s%s%s", start, lists[i].name, open);
    for (size_t j = 0; j < n.list.count; j++) ff_text_add(out, j ? " %s" : "%s", n.list.items[j]);
    ff_text_add(out, "%s\n", close);
    free(n.list.items);
  }
}

/* The first clause of a help text, for a line next to the option. Inside '...': "'" goes as `quote`; zsh's "[" and "]"
 * with a backslash. */
static void add_summary(ff_text *out, const char *help, const char *quote, bool brackets) {
  size_t end = 0;
  while (help[end] && help[end] != ';' && !(help[end] == ':' && help[end + 1] == ' ' && end > 20) &&
         strncmp(help + end, " (", 2) && strncmp(help + end, ". ", 2))
    end++;
  for (size_t i = 0; i < end; i++) {
    char c = help[i];
    if (c == '\'') ff_text_add(out, "%s", quote);
    else if (c == '\\' || (brackets && (c == '[' || c == ']'))) ff_text_add(out, "\\%c", c);
    else ff_text_add(out, "%c", c);
  }
}

/* ---- bash ---- */

static void add_bash_kind(ff_text *out, const char *word, size_t length) {
  const cli_placeholder *known = cli_placeholder_find(word, length);
  char *words = known ? NULL : cli_placeholder_words(word, length);
  ff_text_add(out, "%s%s", known ? known->bash : words ? "words:" : "any", words ? words : "");
  free(words);
}

static void add_bash_options(const cli_description *d, ff_text *out) {
  ff_text_add(out, "_farfault_options[%s]='", d->command->name);
  bool first = true;
  for (size_t i = 0; i < d->options.count; i++) {
    const cli_option *o = &d->options.items[i];
    for (int form = 0; form < 2; form++) {
      if (form ? !o->name : !o->letter) continue;
      if (form) ff_text_add(out, "%s--%s\t", first ? "" : "\n", o->name);
      else ff_text_add(out, "%s-%c\t", first ? "" : "\n", o->letter);
      if (o->value && !o->optional) add_bash_kind(out, o->value, strlen(o->value));
      first = false;
    }
  }
  ff_text_add(out, "'\n");
}

static void add_bash_command(const cli_description *d, ff_text *out) {
  cli_argument arguments[CLI_ARGUMENTS_MAX];
  const char *form = d->arguments;
  add_bash_options(d, out);
  ff_text_add(out, "_farfault_arguments[%s]='", d->command->name);
  int count = cli_arguments(&form, arguments);
  for (int i = 0; i < count; i++) {
    ff_text_add(out, i ? "\t" : "");
    add_bash_kind(out, arguments[i].word, arguments[i].length);
    ff_text_add(out, arguments[i].repeated ? "+" : "");
  }
  ff_text_add(out, "'\n");
}

/* What stands behind "MANAGER+NAME=". */
static void add_bash_parts(ff_text *out) {
  static const struct {
    const char *name, *value;
  } parts[] = {
#define X(id, name, variable, pages, value, help) {name, value},
#include "machine/spec/choices.def"
#undef X
  };
  ff_text_add(out, "declare -gA _farfault_parts=()\n");
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    char *words = cli_placeholder_words(parts[i].value, strlen(parts[i].value));
    if (words) ff_text_add(out, "_farfault_parts[%s]='words:%s'\n", parts[i].name, words);
    free(words);
  }
}

static void begin_bash(ff_text *out) {
  add_lists(out, "_farfault_", "='", "'");
  add_bash_parts(out);
  ff_text_add(out, "declare -gA _farfault_options=() _farfault_arguments=()\n");
}

/* ---- zsh ---- */

/* ":WHAT:ACTION", inside '...'. */
static void add_zsh_kind(ff_text *out, const char *word, size_t length) {
  const cli_placeholder *known = cli_placeholder_find(word, length);
  char *words = known ? NULL : cli_placeholder_words(word, length);
  ff_text_add(out, ":");
  for (size_t i = 0; i < length; i++) ff_text_add(out, word[i] == ':' ? "\\:" : "%c", word[i]);
  if (words) ff_text_add(out, ":(%s)", words);
  else ff_text_add(out, ":%s", known ? known->zsh : " ");
  free(words);
}

static void add_zsh_option(const cli_option *o, ff_text *out) {
  const char *equals = "", *plus = "";
  if (o->value) {
    equals = o->optional ? "=-" : "=";
    plus = o->optional ? "-" : "+";
  }
  ff_text_add(out, "    '*'");
  if (o->letter && o->name) ff_text_add(out, "{'-%c%s','--%s%s'}", o->letter, plus, o->name, equals);
  else if (o->name) ff_text_add(out, "'--%s%s'", o->name, equals);
  else ff_text_add(out, "'-%c%s'", o->letter, plus);
  ff_text_add(out, "'[");
  add_summary(out, o->help, "'\\''", true);
  ff_text_add(out, "]");
  if (o->value) add_zsh_kind(out, o->value, strlen(o->value));
  ff_text_add(out, "' \\\n");
}

static void add_zsh_command(const cli_description *d, ff_text *out) {
  cli_argument arguments[CLI_ARGUMENTS_MAX];
  const char *form = d->arguments;
  ff_text_add(out, "_farfault-%s() {\n  _arguments -s -S \\\n", d->command->name);
  for (size_t i = 0; i < d->options.count; i++) add_zsh_option(&d->options.items[i], out);
  int count = cli_arguments(&form, arguments);
  for (int i = 0; i < count; i++) {
    const cli_argument *a = &arguments[i];
    if (a->length == 9 && !strncmp(a->word, "ARGUMENTS", 9)) {
      ff_text_add(out, "    '*::arguments:_normal' \\\n");
      continue;
    }
    if (a->repeated) ff_text_add(out, "    '*");
    else ff_text_add(out, "    '%d", i + 1);
    add_zsh_kind(out, a->word, a->length);
    ff_text_add(out, "' \\\n");
  }
  ff_text_add(out, "    && return\n}\n");
}

static void begin_zsh(ff_text *out) {
  names commands = command_names();
  add_lists(out, "_farfault_", "=(", ")");
  ff_text_add(out, "_farfault_described=(\n");
  for (size_t i = 0; i < commands.list.count; i++) {
    ff_text_add(out, "  '%s:", commands.list.items[i]);
    add_summary(out, cli_commands[i]->summary, "'\\''", false);
    ff_text_add(out, "'\n");
  }
  ff_text_add(out, ")\n");
  free(commands.list.items);
}

/* ---- fish ---- */

static void add_fish_kind(ff_text *out, const char *word, size_t length) {
  const cli_placeholder *known = cli_placeholder_find(word, length);
  char *words = known ? NULL : cli_placeholder_words(word, length);
  if (words) ff_text_add(out, " -f -a '%s'", words);
  else ff_text_add(out, " %s", known ? known->fish : "-f");
  free(words);
}

static void add_fish_option(const cli_description *d, const cli_option *o, ff_text *out) {
  ff_text_add(out, "complete -c farfault -n '__farfault_at %s'", d->command->name);
  if (o->letter) ff_text_add(out, " -s '%c'", o->letter);
  if (o->name) ff_text_add(out, " -l %s", o->name);
  if (o->value && !o->optional) {
    ff_text_add(out, " -r");
    add_fish_kind(out, o->value, strlen(o->value));
  }
  ff_text_add(out, " -d '");
  add_summary(out, o->help, "\\'", false);
  ff_text_add(out, "'\n");
}

static void add_fish_command(const cli_description *d, ff_text *out) {
  cli_argument arguments[CLI_ARGUMENTS_MAX];
  const char *form = d->arguments;
  ff_text_add(out, "complete -c farfault -n 'test (count (commandline -opc)) -eq 1' -a %s -d '", d->command->name);
  add_summary(out, d->command->summary, "\\'", false);
  ff_text_add(out, "'\n");
  for (size_t i = 0; i < d->options.count; i++) add_fish_option(d, &d->options.items[i], out);
  int count = cli_arguments(&form, arguments);
  for (int i = 0; i < count; i++) {
    bool program = arguments[i].length == 9 && !strncmp(arguments[i].word, "ARGUMENTS", 9);
    ff_text_add(out, "complete -c farfault -n '__farfault_at %s %d%s", d->command->name, i + 1,
                program || arguments[i].repeated ? "+" : "");
    for (size_t j = 0; j < d->options.count; j++) {
      const cli_option *o = &d->options.items[j];
      if (o->value && !o->optional && o->letter) ff_text_add(out, " -%c", o->letter);
      if (o->value && !o->optional && o->name) ff_text_add(out, " --%s", o->name);
    }
    ff_text_add(out, "'");
    if (program) ff_text_add(out, " -F");
    else add_fish_kind(out, arguments[i].word, arguments[i].length);
    ff_text_add(out, "\n");
  }
}

static void begin_fish(ff_text *out) {
  add_lists(out, "set -g __farfault_", " ", "");
  ff_text_add(out,
              "complete -c farfault -f\n"
              "complete -c farfault -n 'test (count (commandline -opc)) -eq 1' -a help -d 'the help of a command'\n");
}

/* ---- the command ---- */

typedef struct shell {
  const char *name, *script;
  void (*begin)(ff_text *out);
  void (*add)(const cli_description *d, ff_text *out);
} shell;

static const shell shells[] = {{"bash", completion_bash, begin_bash, add_bash_command},
                               {"zsh", completion_zsh, begin_zsh, add_zsh_command},
                               {"fish", completion_fish, begin_fish, add_fish_command}};
enum { SHELLS = sizeof shells / sizeof shells[0] };

static int print_script(const shell *shell) {
  static const char mark[] = "@tables@\n";
  const char *behind = strstr(shell->script, mark);
  ff_text out = {0};
  ff_text_add_bytes(&out, shell->script, (size_t)(behind - shell->script));
  shell->begin(&out);
  for (const cli_command *const *command = cli_commands; *command; command++) {
    cli_description d;
    if (cli_describe(*command, NULL, &d)) shell->add(&d, &out);
    cli_description_free(&d);
  }
  ff_text_add(&out, "%s", behind + strlen(mark));
  int status = cli_print(&out);
  free(out.chars);
  return status;
}

static error_t parse(int key, char *value, struct argp_state *state) {
  const shell **chosen = state->input;
  switch (key) {
  case ARGP_KEY_ARG:
    if (*chosen) cli_refuse(state, "one shell at a time");
    for (int i = 0; i < SHELLS; i++)
      if (!strcmp(value, shells[i].name)) *chosen = &shells[i];
    if (!*chosen) cli_refuse(state, "no completion for '%s': there are bash, zsh, fish", value);
    return 0;
  case ARGP_KEY_END:
    if (!*chosen) cli_refuse(state, "for which shell? bash, zsh or fish");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static int completion(int argc, char **argv) {
  static const struct argp argp = {
      NULL,
      parse,
      "bash|zsh|fish",
      "Prints a script that completes farfault's commands, options, names of managers, machines, policies and papers, and files "
      "in a shell. An installation has it where the shells look for it.\v"
      "Example:\n  source <(farfault completion bash)\n"
      "  farfault completion zsh > ~/.zfunc/_farfault\n"
      "  farfault completion fish > ~/.config/fish/completions/farfault.fish",
      NULL,
      NULL,
      NULL};
  const shell *chosen = NULL;
  cli_parse(&argp, argc, argv, &chosen);
  return print_script(chosen);
}

const cli_command cli_completion = {"completion", "print a script that completes farfault's command line in a shell",
                                    completion};
