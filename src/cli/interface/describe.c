/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a command's argp tables (describe.h).
 *
 * cli_describe calls the command; cli_parse, with which every command begins, sees that it is only asked, and jumps
 * back here with the tables. What a command allocated before that is lost to it, so it should be nothing. */
#include "cli/interface/describe.h"

#include <getopt.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
  cli_description *into;
  jmp_buf back;
} asked;

bool cli_describing(void) { return asked.into != NULL; }

const cli_command *cli_command_find(const char *name) {
  for (const cli_command *const *command = cli_commands; *command; command++)
    if (!strcmp((*command)->name, name)) return *command;
  return NULL;
}

/* ---- from argp's tables ---- */

/* argp.h: an entry without name and key is a title, and begins a new group unless it gives one; other entries without
 * a group are in that of the entry before. */
static void take_options(const struct argp_option *options, cli_description *d) {
  int group = 0;
  for (const struct argp_option *o = options; o && (o->name || o->key || o->doc); o++) {
    bool title = !o->name && !o->key;
    group = o->group ? o->group : title ? group + 1 : group;
    if (title) FF_PUSH(&d->groups, ((cli_group){group, o->doc}));
    if (title || o->flags & OPTION_DOC) continue;
    char letter = o->key > ' ' && o->key < 127 && !(o->flags & OPTION_ALIAS) ? (char)o->key : 0;
    cli_option option = {o->name, letter, o->arg, (o->flags & OPTION_ARG_OPTIONAL) != 0, o->doc ? o->doc : "", group};
    if (o->flags & (OPTION_HIDDEN | OPTION_ALIAS)) FF_PUSH(&d->hidden_options, option);
    else FF_PUSH(&d->options, option);
  }
}

static void take_tables(const struct argp *argp, cli_description *d) {
  take_options(argp->options, d);
  for (const struct argp_child *child = argp->children; child && child->argp; child++) take_tables(child->argp, d);
}

/* 0, 1, 2 ..., then -1, -2 ..., as --help has them. */
static bool group_before(int a, int b) {
  if (a >= 0 && b >= 0) return a < b;
  if (a < 0 && b < 0) return a > b;
  return a >= 0;
}

/* By insertion: it keeps the tables' order within a group. */
static void sort_options(cli_description *d) {
  for (size_t i = 1; i < d->options.count; i++)
    for (size_t j = i; j > 0 && group_before(d->options.items[j].group, d->options.items[j - 1].group); j--) {
      cli_option swapped = d->options.items[j];
      d->options.items[j] = d->options.items[j - 1];
      d->options.items[j - 1] = swapped;
    }
}

void cli_describe_tables(const struct argp *argp, cli_description *d) {
  const char *doc = argp->doc ? argp->doc : "", *behind = strchr(doc, '\v');
  ff_text before = {0};
  ff_text_add_bytes(&before, doc, behind ? (size_t)(behind - doc) : strlen(doc));
  d->before = before.chars;
  d->after = ff_strdup(behind ? behind + 1 : "");
  d->arguments = ff_strdup(argp->args_doc ? argp->args_doc : "");
  take_tables(argp, d);
  sort_options(d);
}

void cli_describe_take(const struct argp *argp) {
  cli_describe_tables(argp, asked.into);
  longjmp(asked.back, 1);
}

bool cli_describe(const cli_command *command, const char *action, cli_description *description) {
  char name[] = "farfault";
  char *arguments[] = {name, (char *)action, NULL};
  *description = (cli_description){.command = command};
  asked.into = description;
  if (!setjmp(asked.back)) command->run(action ? 2 : 1, arguments);
  asked.into = NULL;
  return description->after != NULL;
}

void cli_description_free(cli_description *d) {
  free(d->arguments);
  free(d->before);
  free(d->after);
  free(d->options.items);
  free(d->hidden_options.items);
  free(d->groups.items);
}

/* ---- all of them ---- */

static void list_options(const cli_description *d, const char *action, bool hidden, ff_text *out) {
  size_t count = hidden ? d->hidden_options.count : d->options.count;
  for (size_t i = 0; i < count; i++) {
    const cli_option *o = hidden ? &d->hidden_options.items[i] : &d->options.items[i];
    ff_text_add(out, "%s%s%s\t%s\t", d->command->name, action ? " " : "", action ? action : "",
                hidden ? "hidden" : "shown");
    if (o->letter) ff_text_add(out, "%c", o->letter);
    ff_text_add(out, "\t%s\t%s%s\t%s\n", o->name ? o->name : "", o->optional ? "=" : "", o->value ? o->value : "",
                o->help);
  }
}

int cli_options_list(void) {
  ff_text out = {0};
  for (const cli_command *const *command = cli_commands; *command; command++)
    for (int second = 0; second < (*command == &cli_offload ? 2 : 1); second++) {
      const char *action = second ? "profile" : NULL;
      cli_description d;
      if (cli_describe(*command, action, &d)) {
        list_options(&d, action, false, &out);
        list_options(&d, action, true, &out);
      }
      cli_description_free(&d);
    }
  int status = cli_print(&out);
  free(out.chars);
  return status;
}

/* ---- what a placeholder stands for ---- */

const cli_placeholder *cli_placeholder_find(const char *word, size_t length) {
  static const cli_placeholder table[] = {
#define X(word, bash, zsh, fish) {word, bash, zsh, fish},
#include "cli/interface/placeholders.def"
#undef X
  };
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (strlen(table[i].word) == length && !strncmp(table[i].word, word, length)) return &table[i];
  return NULL;
}

char *cli_placeholder_words(const char *word, size_t length) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
  ff_text words = {0};
  bool good = length > 0;
  for (size_t at = 0; good && at < length;) {
    const char *bar = memchr(word + at, '|', length - at);
    size_t whole = bar ? (size_t)(bar - word) - at : length - at, plain = strspn(word + at, letters);
    plain = plain < whole ? plain : whole;
    good = plain && word[at] != '-' && (plain == whole || strchr("[:", word[at + plain]));
    ff_text_add(&words, at ? " %.*s" : "%.*s", (int)plain, word + at);
    at += whole + 1;
  }
  if (good) return words.chars;
  free(words.chars);
  return NULL;
}

/* "[--] PROGRAM [ARGUMENTS]", "-o FILE STUDY...": without the brackets and the dots that say "more of these". */
static cli_argument bare(const char *word, size_t length) {
  cli_argument bare = {word, length, false};
  while (bare.length && *bare.word == '[') {
    bare.word++;
    bare.length--;
  }
  while (bare.length && bare.word[bare.length - 1] == ']') bare.length--;
  if (bare.length > 3 && !strncmp(bare.word + bare.length - 3, "...", 3) && bare.word[bare.length - 4] != ',') {
    bare.length -= 3;
    bare.repeated = true;
  }
  while (bare.length && bare.word[bare.length - 1] == ']') bare.length--;
  return bare;
}

int cli_arguments(const char **form, cli_argument arguments[CLI_ARGUMENTS_MAX]) {
  const char *at = *form;
  int count = 0;
  bool value = false; /* the word is that of the option before it */
  while (*at && *at != '\n') {
    size_t length = strcspn(at, " \n");
    cli_argument word = bare(at, length);
    bool option = word.length && *word.word == '-', closed = length && at[length - 1] == ']';
    if (word.length && !option && !value && count < CLI_ARGUMENTS_MAX) arguments[count++] = word;
    value = option && !closed && !(word.length == 2 && word.word[1] == '-') && !memchr(word.word, '=', word.length);
    at += length;
    at += *at == ' ';
  }
  *form = *at ? at + 1 : NULL;
  return count;
}

/* ---- the command line ---- */

static void add_option(const cli_option *o, int key, struct option *options, size_t *count, ff_text *letters) {
  int argument = !o->value ? no_argument : o->optional ? optional_argument : required_argument;
  if (o->letter) ff_text_add(letters, "%c%s", o->letter, !o->value ? "" : o->optional ? "::" : ":");
  if (o->name) options[(*count)++] = (struct option){o->name, argument, NULL, key};
}

const char *cli_options_given(const cli_description *d, int argc, char **argv, bool *given) {
  enum { KEY = 1000 }; /* of options.items[0]; that of hidden ones is KEY - 1 */
  struct option *options = ff_alloc((d->options.count + d->hidden_options.count + 1) * sizeof *options);
  ff_text letters = {0};
  size_t count = 0;
  const bool program = strstr(d->arguments, "PROGRAM") != NULL;
  const char *unknown = NULL;
  ff_text_add(&letters, "-:");
  for (size_t i = 0; i < d->options.count; i++)
    add_option(&d->options.items[i], KEY + (int)i, options, &count, &letters);
  for (size_t i = 0; i < d->hidden_options.count; i++)
    add_option(&d->hidden_options.items[i], KEY - 1, options, &count, &letters);
  char **copy = ff_alloc(((size_t)argc + 1) * sizeof *copy);
  memcpy(copy, argv, (size_t)argc * sizeof *copy);
  optind = 0;
  opterr = 0;
  for (int key; (key = getopt_long(argc, copy, letters.chars, options, NULL)) != -1 && !(key == 1 && program);) {
    if (key == '?' && !optopt && !unknown) unknown = copy[optind - 1];
    for (size_t i = 0; i < d->options.count; i++)
      if (key == KEY + (int)i || (key > 1 && key == d->options.items[i].letter)) given[i] = true;
  }
  free(copy);
  free(options);
  free(letters.chars);
  return unknown;
}
