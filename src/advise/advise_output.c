/* SPDX-License-Identifier: Apache-2.0 */
/* Advice for people (Markdown, which a terminal shows well, too: tables and commands are indented) and for programs
 * (JSON).
 *
 * Both say the same; behind each claim stand the settings that were simulated for it and the command
 * that simulates them again; what was not simulated is listed. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "report/table.h"
#include "advise/advise.h"
#include "session/session.h"

enum { COMMAND_LIMIT = 1900 }; /* characters of one --memory */

/* ---- commands ---- */

void advise_command(const advise_context *context, const char *const *memories, size_t count, ff_text *out) {
  ff_text list = {0};
  for (size_t i = 0; i < count; i++) ff_text_add(&list, "%s%s", i ? "," : "", memories[i]);
  ff_text_add(out, "farfault sim ");
  ff_text_add_quoted(out, context->trace);
  ff_text_add(out, "%s%s --memory ", context->options[0] ? " " : "", context->options);
  ff_text_add_quoted(out, list.chars);
  free(list.chars);
}

size_t advise_together(const char *const *memories, size_t count) {
  size_t length = 0, taken = 0;
  for (; taken < count && taken < SESSION_MANAGER_LIMIT; taken++) {
    length += strlen(memories[taken]) + 1;
    if (taken && length > COMMAND_LIMIT) break;
  }
  return taken;
}

/* The commands that simulate all of them: each goes to `take`. */
static void commands_of(const advise_context *context, const advise_setting *const *settings, size_t count,
                        void (*take)(void *to, const char *command), void *to) {
  FF_VEC(const char *) memories = {0};
  for (size_t i = 0; i < count; i++) FF_PUSH(&memories, settings[i]->memory);
  for (size_t i = 0, n; i < count; i += n) {
    ff_text command = {0};
    n = advise_together(memories.items + i, count - i);
    advise_command(context, memories.items + i, n, &command);
    take(to, command.chars);
    free(command.chars);
  }
  free(memories.items);
}

/* ---- Markdown ---- */

static void table_head(table *t) {
  static const char *const head[] = {"memory",   "time",   "against", "far-faults",
                                     "refaults", "to GPU", "to CPU",  "over link"};
  static const char *const spare[] = {"over link", "refaults", NULL};
  table_start(t, "lrrrrrrr");
  t->spare = spare;
  for (size_t i = 0; i < sizeof head / sizeof *head; i++) table_cell(t, "%s", head[i]);
}

static void table_setting(table *t, const advise_setting *s, uint64_t against) {
  char a[32];
  const sim_counters *c = &s->result.counters;
  table_cell(t, "%s", s->memory);
  if (!s->known) {
    table_cell(t, "%s", s->result.error[0] ? "cannot run" : "not simulated");
    for (int i = 0; i < 6; i++) table_cell(t, "-");
    return;
  }
  table_cell(t, "%s", report_format_time(c->time_ps, a, sizeof a));
  if (against) table_cell(t, "%.2fx", (double)c->time_ps / (double)against);
  else table_cell(t, "-");
  table_cell(t, "%s", report_format_count(c->faults, a, sizeof a));
  table_cell(t, "%s", report_format_count(c->refaults, a, sizeof a));
  table_cell(t, "%s", ff_format_bytes(c->h2d_bytes, a, sizeof a));
  table_cell(t, "%s", ff_format_bytes(c->d2h_bytes, a, sizeof a));
  table_cell(t, "%s", ff_format_bytes(c->remote_bytes, a, sizeof a));
}

static void write_table(table *t, ff_text *out) {
  table_write(t, 4, out);
  table_free(t);
  ff_text_add(out, "\n");
}

static void write_command(void *out, const char *command) { ff_text_add(out, "    %s\n", command); }

/* Why those that cannot run cannot. */
static void write_errors(const advise_setting *const *settings, size_t count, ff_text *out) {
  bool any = false;
  for (size_t i = 0; i < count; i++) {
    if (!settings[i]->result.error[0]) continue;
    ff_text_add(out, "- %s\n", settings[i]->result.error);
    any = true;
  }
  if (any) ff_text_add(out, "\n");
}

static void write_settings(const advise_setting *const *settings, size_t count, uint64_t against,
                           const advise_context *context, ff_text *out) {
  table t;
  table_head(&t);
  for (size_t i = 0; i < count; i++) table_setting(&t, settings[i], against);
  write_table(&t, out);
  write_errors(settings, count, out);
  commands_of(context, settings, count, write_command, out);
  ff_text_add(out, "\n");
}

static void write_item(const advise_item *item, size_t number, const advise_context *context, ff_text *out) {
  ff_text_add(out, "### %zu. %s - %.1f %% less time\n\n%s\n\n", number, item->title, 100 * item->gain, item->text);
  write_settings(item->evidence.items, item->evidence.count, item->now->result.counters.time_ps, context, out);
}

typedef enum section { FIRM, CONDITIONAL, ALONE, SECTIONS } section;

static section section_of(const advise_item *item) {
  return item->kind == ADVISE_KIND_HINT ? ALONE : item->conditional ? CONDITIONAL : FIRM;
}

static size_t count_in(const advise_advice *advice, section which) {
  size_t count = 0;
  for (size_t i = 0; i < advice->items.count; i++) count += section_of(&advice->items.items[i]) == which;
  return count;
}

static void write_advice(const advise_advice *advice, const advise_context *context, ff_text *out) {
  static const char *const heads[SECTIONS] = {
      "## Advice\n\n",
      "## Under other conditions\n\nThis helps only a program with managed memory, one that declares its launches' data, or one with a driver that does not exist.\n\n",
      "## Each hint alone\n\nThe best hint on each allocation, with managed memory and no other hint.\n\n"};
  for (size_t which = 0, number = 0; which < SECTIONS; which++) {
    size_t count = count_in(advice, (section)which);
    if (count || which == FIRM) ff_text_add(out, "%s", heads[which]);
    if (!count && which == FIRM)
      ff_text_add(out,
                  "No advice: nothing that was simulated saves this program %.0f %% of its time on this machine.\n\n",
                  100 * ADVISE_WORTH);
    for (size_t i = 0; i < advice->items.count; i++)
      if (section_of(&advice->items.items[i]) == (section)which)
        write_item(&advice->items.items[i], ++number, context, out);
  }
}

static void write_managers(const advise_study *study, const advise_context *context, ff_text *out) {
  FF_VEC(const advise_setting *) list = {0};
  for (size_t i = 0; i < study->settings.count; i++)
    if (study->settings.items[i]->stage == ADVISE_MANAGERS) FF_PUSH(&list, study->settings.items[i]);
  ff_text_add(
      out, "## Every manager\n\nToday's GPUs and drivers have copy, uvm and zero-copy%s%s; the others are models.\n\n",
      study->facts.system_memory ? ", this machine's also " : "",
      study->facts.system_memory ? advise_system_manager(study) : "");
  write_settings(list.items, list.count, advise_time(study, study->baseline), context, out);
  free(list.items);
}

static void write_reach(table *t, uint32_t percent, uint64_t bytes) {
  char size[32];
  if (percent) table_cell(t, "%" PRIu32 " %%, %s", percent, ff_format_bytes(bytes, size, sizeof size));
  else table_cell(t, "-");
}

/* Which percentages were simulated, falling. */
static size_t percents_of(const advise_study *study, uint32_t *percents, size_t limit) {
  size_t count = 0;
  for (uint32_t percent = 100; percent && count < limit; percent--)
    for (size_t i = 0; i < study->settings.count; i++)
      if (study->settings.items[i]->stage == ADVISE_CAPACITY && study->settings.items[i]->percent == percent) {
        percents[count++] = percent;
        break;
      }
  return count;
}

static const advise_setting *at_percent(const advise_study *study, const char *manager, uint32_t percent) {
  for (size_t i = 0; i < study->settings.count; i++) {
    const advise_setting *s = study->settings.items[i];
    if (s->stage == ADVISE_CAPACITY && s->percent == percent && s->manager == manager) return s;
  }
  return NULL;
}

/* A row per manager, a column per capacity: the time, and over the reference. */
static void write_times(const advise_study *study, uint64_t reference, const advise_context *context, ff_text *out) {
  uint32_t percents[7];
  size_t count = percents_of(study, percents, 7);
  FF_VEC(const advise_setting *) list = {0};
  table t;
  char align[] = "lrrrrrrr", a[32];
  align[count + 1] = '\0';
  table_start(&t, align);
  table_cell(&t, "memory");
  for (size_t j = 0; j < count; j++) table_cell(&t, "%" PRIu32 " %%", percents[j]);
  for (size_t m = 0; m < study->managers.count; m++) {
    table_cell(&t, "%s", study->managers.items[m]);
    for (size_t j = 0; j < count; j++) {
      const advise_setting *s = at_percent(study, study->managers.items[m], percents[j]);
      if (s) FF_PUSH(&list, s);
      if (!s || !s->known) table_cell(&t, "-");
      else
        table_cell(&t, "%s %.2fx", report_format_time(s->result.counters.time_ps, a, sizeof a),
                   (double)s->result.counters.time_ps / (double)reference);
    }
  }
  write_table(&t, out);
  commands_of(context, list.items, list.count, write_command, out);
  ff_text_add(out, "\n");
  free(list.items);
}

static void write_capacities(const advise_study *study, const advise_advice *advice, const advise_context *context,
                             ff_text *out) {
  char bytes[32], blocks[32];
  ff_text_add(out, "## With less memory\n\n%s\n\n", advice->verdict);
  if (!advice->reference) return;
  ff_text_add(out, "The program has %s allocated at most, in %s of 2 MiB blocks: that is 100 %%.\n\n",
              ff_format_bytes(study->facts.footprint, bytes, sizeof bytes),
              ff_format_bytes(study->facts.footprint_blocks, blocks, sizeof blocks));
  table t;
  table_start(&t, "lrrr");
  static const char *const head[] = {"memory", "within 10 %", "within 2x", "within 10 % of its own"};
  for (int i = 0; i < 4; i++) table_cell(&t, "%s", head[i]);
  for (size_t i = 0; i < advice->capacities.count; i++) {
    const advise_capacity *c = &advice->capacities.items[i];
    table_cell(&t, "%s%s", c->manager, advise_is_real(c->manager) ? "" : " (a model)");
    write_reach(&t, c->near_percent, c->near);
    write_reach(&t, c->viable_percent, c->viable);
    write_reach(&t, c->near_own_percent, c->near_own);
  }
  write_table(&t, out);
  write_times(study, advice->reference, context, out);
}

static void write_rest(const advise_study *study, const advise_advice *advice, const advise_context *context,
                       ff_text *out) {
  if (advice->tried.count) {
    ff_text_add(out, "## Simulated, and no advice\n\nEach gains less than %.0f %%.\n\n", 100 * ADVISE_WORTH);
    write_settings(advice->tried.items, advice->tried.count, advise_time(study, study->paged), context, out);
  }
  if (!study->skipped.count) return;
  ff_text_add(out, "## Not simulated\n\n");
  for (size_t i = 0; i < study->skipped.count; i++) ff_text_add(out, "- %s\n", study->skipped.items[i]);
  ff_text_add(out, "\n");
}

static void write_allocations(const advise_study *study, ff_text *out) {
  static const char *const kinds[] = {"device", "managed", "pinned", "host"};
  static const char *const head[] = {"id",        "allocation", "memory", "bytes",    "touched",
                                     "asked for", "loads",      "writes", "launches", "host's uses"};
  if (!study->facts.allocations.count) return;
  table t;
  char a[32];
  table_start(&t, "rllrrrrrrr");
  for (size_t i = 0; i < sizeof head / sizeof *head; i++) table_cell(&t, "%s", head[i]);
  for (size_t i = 0; i < study->facts.allocations.count && i < 64; i++) {
    const advise_allocation *x = &study->facts.allocations.items[i];
    table_cell(&t, "%" PRIu32, x->id);
    table_cell(&t, "%s", x->name);
    table_cell(&t, "%s", kinds[x->memory]);
    table_cell(&t, "%s", ff_format_bytes(x->bytes, a, sizeof a));
    if (x->pages) table_cell(&t, "%.1f %%", 100.0 * (double)x->touched_pages / (double)x->pages);
    else table_cell(&t, "-");
    table_cell(&t, "%s", ff_format_bytes(x->sector_bytes, a, sizeof a));
    table_cell(&t, "%s", report_format_count(x->loads, a, sizeof a));
    table_cell(&t, "%s", report_format_count(x->writes, a, sizeof a));
    table_cell(&t, "%s", report_format_count(x->touched, a, sizeof a));
    table_cell(&t, "%s", report_format_count(x->host_uses, a, sizeof a));
  }
  ff_text_add(out, "## What the program does with its memory\n\n");
  write_table(&t, out);
  if (study->facts.allocations.count > 64)
    ff_text_add(out, "(%zu further ones)\n\n", study->facts.allocations.count - 64);
}

/* Launches of all simulations together, and blocks that were skipped in timed ones; chosen: sampling was asked for. */
static sim_sampling sampled(const advise_study *study) {
  sim_sampling all = {0};
  for (size_t i = 0; i < study->settings.count; i++) {
    const advise_setting *s = study->settings.items[i];
    if (!s->known || !s->result.sampling.chosen) continue;
    all.chosen = true;
    all.timed += s->result.sampling.timed;
    all.estimated += s->result.sampling.estimated;
    all.blocks += s->result.sampling.blocks;
  }
  return all;
}

static void write_sampled(const advise_study *study, ff_text *out) {
  sim_sampling all = sampled(study);
  if (!all.chosen) return;
  if (!all.estimated && !all.blocks) {
    ff_text_add(out, "No launch repeats often enough for `--sample`, or is long enough: all were timed whole.\n\n");
    return;
  }
  ff_text_add(out,
              "Times, and so gains, are estimated (`--sample`): of the %" PRIu64 " launches of all simulations %" PRIu64
              " were timed, and the others have the time that these took",
              all.timed + all.estimated, all.timed);
  if (all.blocks) ff_text_add(out, "; of the timed ones %" PRIu64 " blocks were not", all.blocks);
  ff_text_add(out, ". Far-faults and bytes are counted.\n\n");
}

void advise_markdown(const advise_study *study, const advise_advice *advice, const advise_context *context,
                     ff_text *out) {
  size_t begin = out->length;
  ff_text_add(out, "# Advice for %s on %s\n\n%s\n\n", context->command, context->machine, advice->summary);
  write_sampled(study, out);
  write_advice(advice, context, out);
  write_capacities(study, advice, context, out);
  write_managers(study, context, out);
  write_rest(study, advice, context, out);
  write_allocations(study, out);
  for (char *c = out->chars + begin; *c; c++) /* names come from the trace */
    if (((unsigned char)*c < 32 && *c != '\n') || *c == 127) *c = '?';
}

/* ---- JSON ---- */

static void put(json_t *object, const char *key, json_t *value) { json_object_set_new(object, key, value); }
static json_t *number(uint64_t value) { return json_integer((json_int_t)value); }
static json_t *text(const char *value) {
  json_t *made = json_string(value);
  return made ? made : json_string("?"); /* it is not UTF-8 */
}

static json_t *json_counters(const sim_counters *c) {
  json_t *o = json_object();
#define X(name, unit, help) put(o, #name, number(c->name));
#include "machine/observe/counters.def"
#undef X
  return o;
}

static json_t *json_setting(const advise_setting *s) {
  static const char *const stages[] = {"managers", "hints", "together", "capacity"};
  json_t *o = json_object();
  put(o, "memory", text(s->memory));
  put(o, "stage", text(stages[s->stage]));
  put(o, "known", json_boolean(s->known));
  if (s->result.error[0]) put(o, "error", text(s->result.error));
  if (s->stage == ADVISE_CAPACITY) {
    put(o, "manager", text(s->manager));
    put(o, "percent", number(s->percent));
    put(o, "gpu_memory_bytes", number(s->capacity));
  }
  if (s->known) put(o, "counters", json_counters(&s->result.counters));
  return o;
}

static void append(void *array, const char *command) { json_array_append_new(array, text(command)); }

static json_t *json_item(const advise_item *item, const advise_context *context) {
  json_t *o = json_object(), *evidence = json_array(), *commands = json_array();
  commands_of(context, item->evidence.items, item->evidence.count, append, commands);
  for (size_t i = 0; i < item->evidence.count; i++)
    json_array_append_new(evidence, text(item->evidence.items[i]->memory));
  put(o, "kind", text(advise_kind_names[item->kind]));
  put(o, "conditional", json_boolean(item->conditional));
  put(o, "title", text(item->title));
  put(o, "text", text(item->text));
  put(o, "now", text(item->now->memory));
  put(o, "then", text(item->then->memory));
  put(o, "time_now_ps", number(item->now->result.counters.time_ps));
  put(o, "time_then_ps", number(item->then->result.counters.time_ps));
  put(o, "gain_percent", json_real(100 * item->gain));
  if (item->allocation) put(o, "allocation", number(item->allocation->id));
  put(o, "evidence", evidence);
  put(o, "commands", commands);
  return o;
}

static json_t *json_capacity(const advise_capacity *c) {
  json_t *o = json_object();
  put(o, "memory", text(c->manager));
  put(o, "real", json_boolean(advise_is_real(c->manager)));
  put(o, "within_10_percent_bytes", number(c->near));
  put(o, "within_2x_bytes", number(c->viable));
  put(o, "within_10_percent_of_own_bytes", number(c->near_own));
  return o;
}

static json_t *json_allocation(const advise_allocation *a) {
  json_t *o = json_object();
  put(o, "id", number(a->id));
  put(o, "name", text(a->name));
  put(o, "bytes", number(a->bytes));
  put(o, "managed", json_boolean(a->memory == TRACE_MEMORY_MANAGED));
  put(o, "pages", number(a->pages));
  put(o, "touched_pages", number(a->touched_pages));
  put(o, "load_accesses", number(a->loads));
  put(o, "write_accesses", number(a->writes));
  put(o, "sector_bytes", number(a->sector_bytes));
  put(o, "launches_declaring", number(a->declared));
  put(o, "launches_touching", number(a->touched));
  put(o, "host_uses", number(a->host_uses));
  return o;
}

void advise_json(const advise_study *study, const advise_advice *advice, const advise_context *context, ff_text *out) {
  json_t *o = json_object(), *items = json_array(), *capacities = json_array(), *settings = json_array(),
         *skipped = json_array(), *allocations = json_array();
  sim_sampling all = sampled(study);
  for (size_t i = 0; i < advice->items.count; i++)
    json_array_append_new(items, json_item(&advice->items.items[i], context));
  for (size_t i = 0; i < advice->capacities.count; i++)
    json_array_append_new(capacities, json_capacity(&advice->capacities.items[i]));
  for (size_t i = 0; i < study->settings.count; i++)
    json_array_append_new(settings, json_setting(study->settings.items[i]));
  for (size_t i = 0; i < study->skipped.count; i++) json_array_append_new(skipped, text(study->skipped.items[i]));
  for (size_t i = 0; i < study->facts.allocations.count; i++)
    json_array_append_new(allocations, json_allocation(&study->facts.allocations.items[i]));
  put(o, "schema", number(1));
  put(o, "program", text(context->command));
  put(o, "machine", text(context->machine));
  put(o, "baseline", text(study->baseline));
  put(o, "paged", text(study->paged));
  put(o, "footprint_bytes", number(study->facts.footprint));
  put(o, "footprint_block_bytes", number(study->facts.footprint_blocks));
  put(o, "summary", text(advice->summary));
  put(o, "advice", items);
  if (all.chosen)
    put(o, "sampling",
        json_pack("{s:I, s:I, s:I}", "timed", (json_int_t)all.timed, "estimated", (json_int_t)all.estimated, "blocks",
                  (json_int_t)all.blocks));
  put(o, "reference_ps", number(advice->reference));
  put(o, "verdict", text(advice->verdict));
  put(o, "capacities", capacities);
  put(o, "allocations", allocations);
  put(o, "settings", settings);
  put(o, "skipped", skipped);
  char *dumped = json_dumps(o, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
  ff_text_add(out, "%s\n", dumped ? dumped : "{}");
  free(dumped);
  json_decref(o);
}
