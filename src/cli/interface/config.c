/* SPDX-License-Identifier: Apache-2.0 */
/* See config.h. */
#include "cli/interface/config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/yaml.h"
#include "machine/spec/spec.h"

static const char *const together[] = {"run", "record", "sim", NULL};

/* ---- which options there are ---- */

static const cli_option *find_option(const cli_description *d, const char *name) {
  for (size_t i = 0; i < d->options.count; i++)
    if (d->options.items[i].name && !strcmp(d->options.items[i].name, name)) return &d->options.items[i];
  return NULL;
}

static bool is_read_file(const char *option) { return !strcmp(option, "machine") || !strcmp(option, "baseline"); }

/* "MANAGER,..." takes a list in one value. */
static bool takes_list(const cli_option *o) { return o->value && strstr(o->value, ",..."); }
static bool may_be_repeated(const cli_option *o) { return o->help && strstr(o->help, "may be repeated"); }

static bool may_be_given(const cli_option *o) {
  static const char *const never[] = {"help", "usage", "version", NULL};
  for (int i = 0; never[i]; i++)
    if (!strcmp(o->name, never[i])) return false;
  bool path = o->value && (strstr(o->value, "FILE") || strstr(o->value, "FOLDER") || strstr(o->value, "DATABASE"));
  return !path || is_read_file(o->name);
}

/* The option of the command; of those of all of them where `command` is NULL. `copy` and its name live as long as the
 * program. */
static bool look_up(const char *command, const char *name, cli_option *copy, const char **near) {
  const char *one[] = {command, NULL};
  bool found = false;
  for (const char *const *each = command ? one : together; *each && !found; each++) {
    cli_description d = {0};
    const cli_command *c = cli_command_find(*each);
    if (!c || !cli_describe(c, NULL, &d)) continue;
    const cli_option *option = find_option(&d, name);
    const char **names = ff_alloc((d.options.count + 1) * sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < d.options.count; i++)
      if (d.options.items[i].name && may_be_given(&d.options.items[i])) names[count++] = d.options.items[i].name;
    if (!*near) *near = ff_closest(name, names);
    if (option) *copy = *option;
    found = option != NULL;
    free(names);
    cli_description_free(&d);
  }
  return found;
}

/* ---- reading ---- */

typedef struct reader {
  configuration *c;
  ff_yaml yaml;
  const char *file;
  bool project;
  uint32_t lists;
} reader;

static bool is_true(const char *text) { return !strcmp(text, "true") || !strcmp(text, "yes") || !strcmp(text, "on"); }
static bool is_false(const char *text) { return !strcmp(text, "false") || !strcmp(text, "no") || !strcmp(text, "off"); }

/* A file relative to the folder of the file that names it; a bare machine's name stays. The caller frees. */
static char *whole_value(const reader *r, const char *option, const char *value) {
  bool bare = !strcmp(option, "machine") && !machine_spec_is_file(value);
  const char *slash = strrchr(r->file, '/');
  ff_text text = {0};
  if (is_read_file(option) && !bare && value[0] != '/' && slash)
    ff_text_add(&text, "%.*s/", (int)(slash - r->file), r->file);
  ff_text_add(&text, "%s", value);
  return text.chars;
}

static ff_status add_value(reader *r, const char *command, const cli_option *option, struct fy_node *key,
                           struct fy_node *node) {
  char value[FF_YAML_SCALAR + 1];
  uint32_t line, column;
  if (!ff_yaml_scalar(node, value) || !value[0])
    return ff_yaml_fail(&r->yaml, key, "the value of '%s' must be a single one, or a list of such", option->name);
  if (!option->value && !is_true(value) && !is_false(value))
    return ff_yaml_fail(&r->yaml, node, "'%s' is true or false", option->name);
  if (!is_read_file(option->name) && (strchr(value, '/') || strstr(value, ".so")) &&
      strcmp(option->name, "fail-if") != 0)
    return ff_yaml_fail(&r->yaml, node, "'%s' from a file cannot name another file: give it on the command line",
                        option->name);
  ff_yaml_place(node, &line, &column);
  config_value made = {.option = ff_strdup(option->name),
                       .command = command,
                       .file = r->file,
                       .line = line,
                       .column = column,
                       .joined = takes_list(option),
                       .project = r->project,
                       .off = !option->value && is_false(value),
                       .list = r->lists};
  if (option->value) made.value = whole_value(r, option->name, value);
  FF_PUSH(&r->c->values, made);
  return FF_OK;
}

static ff_status read_option(reader *r, const char *command, const char *name, struct fy_node *key,
                             struct fy_node *node) {
  cli_option option;
  const char *near = NULL;
  void *at = NULL;
  struct fy_node *item;
  if (!look_up(command, name, &option, &near)) {
    const char *of = command ? command : "run, record and sim";
    return near ? ff_yaml_fail(&r->yaml, key, "no option '%s' of %s: did you mean '%s'?", name, of, near)
                : ff_yaml_fail(&r->yaml, key, "no option '%s' of %s", name, of);
  }
  if (!may_be_given(&option))
    return ff_yaml_fail(&r->yaml, key, "'%s' cannot be given in a file, only on the command line", name);
  for (size_t i = 0; i < r->c->values.count; i++) {
    const config_value *v = &r->c->values.items[i];
    bool same = v->command == command || (v->command && command && !strcmp(v->command, command));
    if (v->file == r->file && same && !strcmp(v->option, name))
      return ff_yaml_fail(&r->yaml, key, "'%s' is given twice", name);
  }
  r->lists++;
  if (!fy_node_is_sequence(node)) return add_value(r, command, &option, key, node);
  if (!takes_list(&option) && !may_be_repeated(&option))
    return ff_yaml_fail(&r->yaml, key, "'%s' takes one value, not a list", name);
  ff_status status = FF_OK;
  while (!status && (item = fy_node_sequence_iterate(node, &at))) status = add_value(r, command, &option, key, item);
  return status;
}

static ff_status read_section(reader *r, const cli_command *command, struct fy_node *node) {
  struct fy_node_pair *pair;
  void *at = NULL;
  char name[FF_YAML_SCALAR + 1];
  ff_status status = FF_OK;
  while (!status && (pair = fy_node_mapping_iterate(node, &at))) {
    struct fy_node *key = fy_node_pair_key(pair);
    if (!ff_yaml_scalar(key, name)) return ff_yaml_fail(&r->yaml, key, "an option's name must be a plain word");
    status = read_option(r, command->name, name, key, fy_node_pair_value(pair));
  }
  return status;
}

/* An entry of the file that is neither an option's nor a command's. */
static ff_status fail_section(const reader *r, const char *name, struct fy_node *key) {
  const char *near = cli_command_near(name);
  if (near) return ff_yaml_fail(&r->yaml, key, "no command '%s': did you mean '%s'?", name, near);
  return ff_yaml_fail(&r->yaml, key, "no command '%s' (farfault --help lists them)", name);
}

static ff_status read_top(reader *r) {
  struct fy_node *root = ff_yaml_root(&r->yaml);
  struct fy_node_pair *pair;
  void *at = NULL;
  char name[FF_YAML_SCALAR + 1];
  ff_status status = FF_OK;
  if (!root || !fy_node_is_mapping(root)) return ff_yaml_fail(&r->yaml, root, "options are wanted here: NAME: VALUE");
  while (!status && (pair = fy_node_mapping_iterate(root, &at))) {
    struct fy_node *key = fy_node_pair_key(pair), *node = fy_node_pair_value(pair);
    if (!ff_yaml_scalar(key, name)) return ff_yaml_fail(&r->yaml, key, "an option's name must be a plain word");
    const cli_command *command = cli_command_find(name);
    cli_option option;
    const char *near = NULL;
    if (!fy_node_is_mapping(node)) {
      if (command && !look_up(NULL, name, &option, &near))
        return ff_yaml_fail(&r->yaml, key, "below the command '%s' its options are wanted: NAME: VALUE", name);
      status = read_option(r, NULL, name, key, node);
    } else status = command ? read_section(r, command, node) : fail_section(r, name, key);
  }
  return status;
}

/* Blank lines and comments only. */
static bool says_nothing(const char *text) {
  for (;;) {
    text += strspn(text, " \t\r\n");
    if (*text != '#') return !*text;
    text += strcspn(text, "\n");
  }
}

static ff_status read_file(configuration *c, const char *file, bool project, ff_error *error) {
  reader r = {.c = c, .file = file, .project = project};
  char *text;
  size_t size;
  ff_status status = ff_file_read(file, 1 << 16, &text, &size, error);
  if (status) return status;
  if (size == strlen(text) && says_nothing(text)) {
    free(text);
    return FF_OK;
  }
  status = ff_yaml_open(file, text, size, "configuration", &r.yaml, error);
  if (!status) {
    status = read_top(&r);
    ff_yaml_close(&r.yaml);
  }
  free(text);
  return status;
}

/* NULL: it is not there. */
static char *project_file(void) {
  char *folder = getcwd(NULL, 0);
  ff_text path = {0};
  ff_text_add(&path, "%s/farfault.yaml", folder ? folder : ".");
  free(folder);
  if (access(path.chars, F_OK) == 0) return path.chars;
  free(path.chars);
  return NULL;
}

static char *user_file(void) {
  const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
  ff_text path = {0};
  if (config && *config == '/') ff_text_add(&path, "%s/farfault/farfault.yaml", config);
  else if (home && *home == '/') ff_text_add(&path, "%s/.config/farfault/farfault.yaml", home);
  if (path.chars && access(path.chars, F_OK) == 0) return path.chars;
  free(path.chars);
  return NULL;
}

ff_status configuration_read(configuration *c, ff_error *error) {
  const char *wanted = getenv("FARFAULT_CONFIG");
  *c = (configuration){0};
  if (wanted && !strcmp(wanted, "none")) return FF_OK;
  ff_status status = FF_OK;
  const bool chosen = wanted && *wanted;
  c->files[0] = chosen ? NULL : project_file();
  c->files[1] = chosen ? ff_strdup(wanted) : user_file();
  for (int i = 0; i < 2 && !status; i++)
    if (c->files[i]) status = read_file(c, c->files[i], i == 0, error);
  if (status) configuration_free(c);
  return status;
}

void configuration_free(configuration *c) {
  for (size_t i = 0; i < c->values.count; i++) {
    free(c->values.items[i].option);
    free(c->values.items[i].value);
  }
  free(c->values.items);
  free(c->files[0]);
  free(c->files[1]);
  *c = (configuration){0};
}

static bool is_together(const char *command) {
  for (int i = 0; together[i]; i++)
    if (!strcmp(command, together[i])) return true;
  return false;
}

const config_value *configuration_find(const configuration *c, const char *command, const char *option) {
  for (int project = 1; project >= 0; project--)
    for (int own = 1; own >= 0; own--)
      for (size_t i = 0; i < c->values.count; i++) {
        const config_value *v = &c->values.items[i];
        bool of = own ? v->command && !strcmp(v->command, command) : !v->command && is_together(command);
        if (v->project == project && of && !strcmp(v->option, option)) return v;
      }
  return NULL;
}

static bool is_next(const config_value *v, const config_value *first) {
  return v->file == first->file && v->list == first->list && !v->off;
}

void configuration_value(const configuration *c, const char *command, const char *option, ff_text *out) {
  const config_value *first = configuration_find(c, command, option);
  for (size_t i = 0; first && i < c->values.count; i++) {
    const config_value *v = &c->values.items[i];
    if (is_next(v, first) && v->value) ff_text_add(out, "%s%s", out->length ? "," : "", v->value);
  }
}

/* ---- places in messages ---- */

static configuration applied;       /* what configuration_apply has put on the command line; as long as the program */
static const configuration *blamed; /* what it is told to look at */

/* "--memory", not as the beginning of a longer option. */
static bool names_option(const char *message, const config_value *v) {
  ff_text option = {0};
  bool is = false;
  ff_text_add(&option, "--%s", v->option);
  for (const char *at = message; !is && (at = strstr(at, option.chars)); at++) {
    char after = at[option.length];
    is = after != '-' && !(after >= 'a' && after <= 'z');
  }
  free(option.chars);
  return is;
}

/* "'TEXT'" somewhere, or "TEXT: " behind nothing or a space. */
static bool quotes(const char *message, const char *text, size_t length) {
  for (const char *at = message; (at = strstr(at, text)); at++) {
    char before = at > message ? at[-1] : ' ', after = at[length];
    if ((before == '\'' && after == '\'') || (before == ' ' && after == ':')) return true;
  }
  return false;
}

/* Also the name in NAME=VALUE. */
static bool quotes_value(const char *message, const config_value *v) {
  if (!v->value) return false;
  size_t name = strcspn(v->value, "=");
  bool is = quotes(message, v->value, strlen(v->value));
  if (is || !v->value[name]) return is;
  char *text = ff_strdup(v->value);
  text[name] = '\0';
  is = quotes(message, text, name);
  free(text);
  return is;
}

/* Of a list, several values are of the option that a message names: the one that it quotes goes first. */
static const config_value *find_blamed(const configuration *c, const char *message) {
  for (size_t i = 0; i < c->values.count; i++)
    if (quotes_value(message, &c->values.items[i])) return &c->values.items[i];
  for (size_t i = 0; i < c->values.count; i++)
    if (names_option(message, &c->values.items[i])) return &c->values.items[i];
  return NULL;
}

const char *configuration_place(const char *message) {
  static char place[PATH_MAX + 32];
  const config_value *v = find_blamed(blamed ? blamed : &applied, message);
  place[0] = '\0';
  if (v) snprintf(place, sizeof place, "%s:%u:%u: ", v->file, v->line, v->column);
  return place;
}

void configuration_blame(const configuration *c) { blamed = c; }

/* ---- the command line ---- */

typedef FF_VEC(char *) words;

static void note_applied(const config_value *v) {
  config_value copy = *v;
  copy.option = ff_strdup(v->option);
  copy.value = v->value ? ff_strdup(v->value) : NULL;
  FF_PUSH(&applied.values, copy);
}

/* The option with the values of one list. */
static void add_words(const configuration *c, const config_value *first, words *w) {
  ff_text word = {0};
  for (size_t i = 0; i < c->values.count; i++) {
    const config_value *v = &c->values.items[i];
    if (!is_next(v, first)) continue;
    note_applied(v);
    if (word.length) ff_text_add(&word, ",%s", v->value);
    else ff_text_add(&word, "--%s%s%s", v->option, v->value ? "=" : "", v->value ? v->value : "");
    if (v->joined) continue;
    FF_PUSH(w, word.chars);
    word = (ff_text){0};
  }
  if (word.chars) FF_PUSH(w, word.chars);
}

char **configuration_apply(const char *name, const cli_description *d, int *argc, char **argv) {
  configuration c;
  ff_error error;
  words w = {0};
  if (configuration_read(&c, &error)) exit(cli_fail(CLI_BAD_FILE, "%s", error.message));
  /* what it runs itself gets all by options */
  if (!strstr(d->arguments, "PROGRAM")) setenv("FARFAULT_CONFIG", "none", 1);
  if (!c.values.count) {
    configuration_free(&c);
    return argv;
  }
  bool *given = ff_alloc(d->options.count + 1);
  cli_options_given(d, *argc, argv, given);
  FF_PUSH(&w, argv[0]);
  for (size_t i = 0; i < d->options.count; i++) {
    const char *option = d->options.items[i].name;
    const config_value *found = option && !given[i] ? configuration_find(&c, name, option) : NULL;
    if (found) add_words(&c, found, &w);
  }
  for (int i = 1; i < *argc; i++) FF_PUSH(&w, argv[i]);
  FF_PUSH(&w, NULL);
  free(given);
  for (int i = 0; i < 2; i++) { /* applied values name them */
    applied.files[i] = c.files[i];
    c.files[i] = NULL;
  }
  configuration_free(&c);
  *argc = (int)w.count - 1;
  return w.items;
}
