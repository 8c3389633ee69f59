/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault shares`: which processes of this user hold shares of a GPU, and which wait for one. Only asks; never starts
 * a broker. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/client.h"
#include "cli/cli.h"
#include "report/table.h"

/* "0-3", "5"; "-": none. */
static void add_range(ff_text *text, uint32_t first, uint32_t count) {
  if (!count) ff_text_add(text, "-");
  else if (count == 1) ff_text_add(text, "%u", first);
  else ff_text_add(text, "%u-%u", first, first + count - 1);
}

/* "0-3,6"; "-": none. */
static void add_colours(ff_text *text, uint64_t mask) {
  if (!mask) ff_text_add(text, "-");
  for (uint32_t first = 0, count; first < BROKER_COLOURS; first += count + 1) {
    for (count = 0; first + count < BROKER_COLOURS && mask >> (first + count) & 1;) count++;
    if (!count) continue;
    if (text->length) ff_text_add(text, ",");
    add_range(text, first, count);
  }
}

/* What a process has; of one that waits, how many it asks for. */
static void add_what(ff_text *sms, ff_text *colours, const broker_holder *h) {
  if (h->waits) {
    ff_text_add(sms, "wants %u", h->grant.sm_count);
    if (h->colour_count) ff_text_add(colours, "wants %u", h->colour_count);
    else ff_text_add(colours, "-");
  } else {
    add_range(sms, h->grant.sm_first, h->grant.sm_count);
    add_colours(colours, h->grant.colours);
  }
}

static void add_time(ff_text *text, const broker_holder *h) {
  uint64_t seconds = (uint64_t)h->since_s;
  if (h->orphan) ff_text_add(text, "-");
  else if (seconds < 60) ff_text_add(text, "%llu s", (unsigned long long)seconds);
  else if (seconds < 3600) ff_text_add(text, "%llu min", (unsigned long long)seconds / 60);
  else ff_text_add(text, "%llu h %llu min", (unsigned long long)seconds / 3600, (unsigned long long)seconds / 60 % 60);
}

static void add_row(table *t, const broker_holder *h) {
  ff_text sms = {0}, colours = {0}, since = {0};
  add_what(&sms, &colours, h);
  add_time(&since, h);
  if (h->pid) table_cell(t, "%d", h->pid);
  else table_cell(t, "?");
  table_cell(t, "%s", h->program[0] ? h->program : "?");
  table_cell(t, "%s", h->name[0] ? h->name : "-");
  table_cell(t, "%s", h->waits ? "waits" : h->orphan ? "holds (its broker is gone)" : "holds");
  table_cell(t, "%s", sms.chars);
  table_cell(t, "%s", colours.chars);
  table_cell(t, "%s", since.chars);
  free(sms.chars);
  free(colours.chars);
  free(since.chars);
}

static void write_free(const broker_listing *list, bool more, ff_text *out) {
  ff_text_add(out, "%s%s: ", more ? "\n" : "", list->gpu);
  if (!list->daemon_pid)
    ff_text_add(out, "its broker was killed; the next request starts another one, which leaves these their shares\n");
  else if (list->colours)
    ff_text_add(out, "%u of %u SMs and %u of %u colours are free\n", list->free_sms, list->sms, list->free_colours,
                list->colours);
  else ff_text_add(out, "%u of %u SMs are free\n", list->free_sms, list->sms);
}

static void write_text(const broker_listing *list, uint32_t count, ff_text *out) {
  static const char *const heads[] = {"process", "program", "name", "state", "SMs", "colours", "since"};
  if (!count) ff_text_add(out, "no shares are handed out\n");
  for (uint32_t i = 0; i < count; i++) {
    table t;
    write_free(&list[i], i > 0, out);
    table_start(&t, "rllllll");
    for (size_t c = 0; c < sizeof heads / sizeof *heads; c++) table_cell(&t, "%s", heads[c]);
    for (uint32_t h = 0; h < list[i].holder_count; h++) add_row(&t, &list[i].holders[h]);
    table_write(&t, 0, out);
    table_free(&t);
  }
}

static json_t *holder_json(const broker_holder *h) {
  json_t *colours = json_array();
  for (uint32_t c = 0; c < BROKER_COLOURS; c++)
    if (!h->waits && h->grant.colours >> c & 1) json_array_append_new(colours, json_integer(c));
  json_t *object = json_pack("{s:o, s:s, s:s, s:s, s:i, s:i}", "process", h->pid ? json_integer(h->pid) : json_null(),
                             "program", h->program, "name", h->name, "state",
                             h->waits    ? "waits"
                             : h->orphan ? "orphan"
                                         : "holds",
                             "sms", (int)h->grant.sm_count, "colours", (int)h->colour_count);
  if (!h->waits) json_object_set_new(object, "first_sm", json_integer(h->grant.sm_first));
  if (!h->waits) json_object_set(object, "colour_set", colours);
  json_decref(colours);
  if (!h->orphan) json_object_set_new(object, "since_s", json_real(h->since_s));
  return object;
}

static void write_json(const broker_listing *list, uint32_t count, ff_text *out) {
  json_t *all = json_array();
  for (uint32_t i = 0; i < count; i++) {
    json_t *shares = json_array();
    for (uint32_t h = 0; h < list[i].holder_count; h++) json_array_append_new(shares, holder_json(&list[i].holders[h]));
    json_array_append_new(all,
                          json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:o}", "gpu", list[i].gpu, "sms", (int)list[i].sms,
                                    "colours", (int)list[i].colours, "free_sms", (int)list[i].free_sms, "free_colours",
                                    (int)list[i].free_colours, "broker", (int)list[i].daemon_pid, "shares", shares));
  }
  char *text = json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
  ff_text_add(out, "%s\n", text);
  free(text);
  json_decref(all);
}

enum { KEY_JSON = 256 };

static const struct argp_option options[] = {
    {"json", KEY_JSON, "FILE", 0, "write JSON, an object for each GPU; -: to stdout instead of the text", 0},
    {NULL, 'j', NULL, OPTION_HIDDEN, "--json -", 0}, /* as it was once */
    {0}};

static error_t parse(int key, char *value, struct argp_state *state) {
  switch (key) {
  case KEY_JSON: *(const char **)state->input = cli_output(value, "--json", true, state); return 0;
  case 'j':
    cli_say_old(state, "-j", "--json -");
    *(const char **)state->input = "-";
    return 0;
  case ARGP_KEY_ARG: cli_refuse(state, "'%s': it takes no arguments", value); return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static int put(const broker_listing *list, uint32_t count, void (*write)(const broker_listing *, uint32_t, ff_text *),
               const char *file) {
  ff_text out = {0};
  write(list, count, &out);
  int status = cli_write_or_print(file, &out);
  free(out.chars);
  return status;
}

static int shares(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "",
      "Lists which of your processes hold a share of a GPU (a range of SMs and a set of memory colours, taken by "
      "libfarfault's ff_partition), which wait for one, and what is free.\v"
      "Example:\n  farfault shares\n  farfault shares --json -",
      NULL,
      NULL,
      NULL};
  const char *json = NULL; /* "-": instead of the text */
  broker_listing *list;
  uint32_t count;
  ff_error error;
  cli_old_flag("--json", &argc, &argv);
  cli_parse_tabular(&argp, argc, argv, &json, STDOUT_FILENO);
  ff_status failed = broker_list(&list, &count, &error);
  int status = CLI_DONE;
  if (!failed || count) {
    bool json_only = json && !strcmp(json, "-");
    if (!json_only) status = put(list, count, write_text, "-");
    if (json && !status) status = put(list, count, write_json, json);
  }
  broker_list_free(list, count);
  return failed ? cli_fail(CLI_FAILED, "%s", error.message) : status;
}

const cli_command cli_shares = {"shares", "list who holds shares of a GPU, and who waits for one", shares};
