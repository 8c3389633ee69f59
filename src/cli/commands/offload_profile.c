/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault offload profile TRACE`: what the candidate blocks of a recorded program really did, and which map to memory
 * stacks keeps them together.
 *
 * Tables go to stdout; the same trace and machine give the same text. */
#include "cli/commands/offload_profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "offload/candidate_table.h"
#include "report/table.h"

typedef struct arguments {
  const char *file, *machine, *json;
} arguments;

enum { KEY_JSON = 256, KERNEL_WIDTH = 32, NAME_WIDTH = 24, MAP_WIDTH = 48 };

static const struct argp_option options[] = {
    {NULL, 'm', "NAME|FILE", OPTION_HIDDEN, "--machine", 1}, /* as it was once */
    {"machine", 'M', "NAME|FILE", 0,
     "the machine whose memory stacks and L2 cache are looked at (default: tom; one without stacks counts as one with four)",
     1},
    {"json", KEY_JSON, "FILE", 0, "write all of it as JSON; -: to stdout instead of the tables", 1},
    {0}};

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case 'm':
    cli_say_old(state, "-m", "-M");
    a->machine = value;
    return 0;
  case 'M': a->machine = value; return 0;
  case KEY_JSON: a->json = cli_output(value, "--json", true, state); return 0;
  default: return cli_take_file(key, value, &a->file, KIND_TRACE, state);
  }
}

/* ---- text ---- */

static double each(uint64_t sum, uint64_t count) { return count ? (double)sum / (double)count : 0; }

static void ratio_cell(table *t, uint64_t sum, uint64_t count) {
  if (!count) table_cell(t, "-");
  else table_cell(t, "%.2f", each(sum, count));
}

static void trips_cell(table *t, const offload_profile_candidate *m) {
  if (!m->instances) table_cell(t, "-");
  else if (m->trips_least == m->trips_most) table_cell(t, "%" PRIu64, m->trips_most);
  else table_cell(t, "%.1f (%" PRIu64 "-%" PRIu64 ")", offload_profile_trips(m), m->trips_least, m->trips_most);
}

static void candidate_row(table *t, const offload_profile_candidate *m) {
  table_cell_cut(t, m->kernel, KERNEL_WIDTH);
  table_cell(t, "%u", m->pc);
  table_count(t, m->instances);
  trips_cell(t, m);
  ratio_cell(t, m->instructions, m->instances);
  ratio_cell(t, m->loads, m->instances);
  ratio_cell(t, m->load_lines, m->loads);
  table_share(t, m->load_misses, m->load_lines);
  ratio_cell(t, m->stores, m->instances);
  ratio_cell(t, m->store_lines, m->stores);
  ratio_cell(t, m->lanes, m->loads + m->stores);
  if (m->offsets == OFFLOAD_OFFSETS_SOME) table_cell(t, "%" PRIu32 " of %" PRIu32, m->fixed_positions, m->positions);
  else table_cell(t, "%s", offload_offsets_name(m->offsets));
}

static void candidates_text(const offload_profile *p, ff_text *out) {
  static const char *const names[] = {"kernel", "pc",     "instances", "trips", "instr.",        "loads", "lines",
                                      "misses", "stores", "lines",     "lanes", "fixed offsets", NULL};
  table t;
  table_start(&t, "lrrrrrrrrrrl");
  table_names(&t, names);
  for (uint32_t i = 0; i < p->candidate_count; i++) candidate_row(&t, &p->candidates[i]);
  table_write(&t, 0, out);
  table_free(&t);
}

static void share_cell(table *t, double share) { table_cell(t, "%.1f %%", 100 * share); }

static void map_row(table *t, const char *name, const char *map, double share, double beside, const char *spread) {
  table_cell(t, "%s", name);
  table_cell(t, "%s", map);
  share_cell(t, share);
  share_cell(t, beside);
  table_cell(t, "%s", spread);
}

static const char *pair_text(const offload_profile *p, uint32_t lowest, char *text, uint32_t room) {
  stack_map map = stack_map_pair(lowest, p->bits);
  return p->bits ? stack_map_text(&map, text, room) : "-";
}

static void maps_text(const offload_profile *p, ff_text *out) {
  static const char *const names[] = {"map", "bits", "instances in one stack", "lines beside", "busiest stack", NULL};
  char text[64], name[64], spread[32];
  table t;
  table_start(&t, "llrrr");
  table_names(&t, names);
  map_row(&t, "baseline", "", p->baseline, p->baseline_beside, "");
  for (uint32_t i = 0; i < STACK_MAP_PAIRS; i++) {
    snprintf(spread, sizeof spread, "%.2f x its share", p->uneven[i]);
    map_row(&t, "pair", pair_text(p, STACK_MAP_LOWEST + i, text, sizeof text), p->pairs[i], p->pairs_beside[i], spread);
  }
  map_row(&t, "oracle: the best pair", pair_text(p, p->best_lowest, text, sizeof text), p->best,
          p->pairs_beside[p->best_lowest - STACK_MAP_LOWEST], "");
  for (uint32_t i = 0; i < OFFLOAD_PROFILE_EARLY; i++) {
    const offload_early *e = &p->early[i];
    snprintf(name, sizeof name, "learned from %g %%, %" PRIu64 " instance%s", 100 * e->share, e->instances,
             e->instances == 1 ? "" : "s");
    map_row(&t, name, pair_text(p, e->lowest, text, sizeof text), e->colocation,
            p->pairs_beside[e->lowest - STACK_MAP_LOWEST], "");
  }
  map_row(&t, "linear, each allocation its own", "", p->linear, p->linear_beside, "");
  table_write(&t, 0, out);
  table_free(&t);
}

/* How many lines instances touch: "1: 5.0 %, 2-3: 10.0 %, ..." of those that may go. */
static void sizes_text(const offload_profile *p, ff_text *out) {
  const char *between = " ";
  ff_text_add(out, "lines of an instance, %.1f in the mean:", each(p->lines, p->instances));
  for (uint32_t i = 0; i < OFFLOAD_PROFILE_SIZES; i++) {
    if (!p->by_lines[i]) continue;
    if (!i) ff_text_add(out, "%s1", between);
    else ff_text_add(out, "%s%" PRIu32 "-%" PRIu32, between, UINT32_C(1) << i, (UINT32_C(2) << i) - 1);
    ff_text_add(out, " %.1f %%", 100 * each(p->by_lines[i], p->instances));
    between = ", ";
  }
  ff_text_add(out, "\n\n");
}

static void ranges_text(const offload_profile *p, ff_text *out) {
  static const char *const names[] = {"allocation", "bytes", "candidates", "linear map", NULL};
  table t;
  table_start(&t, "lrll");
  table_names(&t, names);
  for (uint32_t i = 0; i < p->range_count; i++) {
    char map[256];
    const offload_profile_range *r = &p->ranges[i];
    table_cell_cut(&t, r->name, NAME_WIDTH);
    table_bytes(&t, r->bytes);
    table_cell(&t, "%s", r->touched ? "yes" : "no");
    table_cell(&t, "%s", stack_map_text(&r->linear, map, sizeof map));
  }
  table_write(&t, 0, out);
  table_free(&t);
}

static uint64_t all_instances(const offload_profile *p) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < p->candidate_count; i++) all += p->candidates[i].instances;
  return all;
}

void offload_profile_text(const offload_profile *p, ff_text *out) {
  ff_text_add(out,
              "%" PRIu64 " instances of %" PRIu32
              " candidate%s: %.1f %% of the warp instructions, %.1f %% of the accesses; %" PRIu64 " may go\n\n",
              all_instances(p), p->candidate_count, p->candidate_count == 1 ? "" : "s",
              100 * each(p->candidate_instructions, p->warp_instructions),
              100 * each(p->candidate_accesses, p->accesses), p->instances);
  candidates_text(p, out);
  ff_text_add(out, "\n");
  if (!p->instances) {
    ff_text_add(
        out,
        "no instance may go: none makes as many trips as make up for sending it; there is nothing to compare maps by\n");
    return;
  }
  sizes_text(p, out);
  maps_text(p, out);
  ff_text_add(out, "\n");
  ranges_text(p, out);
}

/* ---- JSON ---- */

/* Texts come from a file and may be no UTF-8: jansson refuses those. */
static json_t *text_of(const char *text) {
  json_t *string = json_string(text);
  return string ? string : json_string("?");
}

static json_t *candidate_json(const offload_profile_candidate *m) {
  return json_pack("{s:o s:I s:I s:I s:I s:f s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I s:f s:f s:f s:s s:I s:I s:I s:I}",
                   "kernel", text_of(m->kernel), "pc", (json_int_t)m->pc, "instances", (json_int_t)m->instances,
                   "may_go", (json_int_t)m->may_go, "without_access", (json_int_t)m->without_access, "trips",
                   offload_profile_trips(m), "trips_least", (json_int_t)m->trips_least, "trips_most",
                   (json_int_t)m->trips_most, "trips_known", (json_int_t)m->trips_known, "warp_instructions",
                   (json_int_t)m->instructions, "loads", (json_int_t)m->loads, "stores", (json_int_t)m->stores,
                   "load_lines", (json_int_t)m->load_lines, "store_lines", (json_int_t)m->store_lines, "load_misses",
                   (json_int_t)m->load_misses, "lanes", (json_int_t)m->lanes, "coal_load", offload_profile_coal_load(m),
                   "coal_store", offload_profile_coal_store(m), "miss_load", offload_profile_miss_load(m),
                   "fixed_offsets", offload_offsets_name(m->offsets), "positions", (json_int_t)m->positions,
                   "fixed_positions", (json_int_t)m->fixed_positions, "distances", (json_int_t)m->distances,
                   "fixed_distances", (json_int_t)m->fixed_distances);
}

static json_t *range_json(const offload_profile_range *r) {
  char map[256];
  return json_pack("{s:o s:I s:I s:b s:s}", "name", text_of(r->name), "address", (json_int_t)r->address, "bytes",
                   (json_int_t)r->bytes, "touched", r->touched, "linear", stack_map_text(&r->linear, map, sizeof map));
}

static json_t *maps_json(const offload_profile *p) {
  char text[64];
  json_t *pairs = json_array(), *learned = json_array();
  for (uint32_t i = 0; i < STACK_MAP_PAIRS; i++)
    json_array_append_new(pairs,
                          json_pack("{s:s s:f s:f s:f}", "bits", pair_text(p, STACK_MAP_LOWEST + i, text, sizeof text),
                                    "colocation", p->pairs[i], "beside", p->pairs_beside[i], "uneven", p->uneven[i]));
  for (uint32_t i = 0; i < OFFLOAD_PROFILE_EARLY; i++)
    json_array_append_new(learned, json_pack("{s:f s:I s:s s:f}", "share", p->early[i].share, "instances",
                                             (json_int_t)p->early[i].instances, "bits",
                                             pair_text(p, p->early[i].lowest, text, sizeof text), "colocation",
                                             p->early[i].colocation));
  return json_pack("{s:f s:f s:o s:s s:f s:o s:f s:f}", "baseline", p->baseline, "baseline_beside", p->baseline_beside,
                   "pairs", pairs, "oracle_bits", pair_text(p, p->best_lowest, text, sizeof text), "oracle", p->best,
                   "learned", learned, "linear", p->linear, "linear_beside", p->linear_beside);
}

json_t *offload_profile_json(const offload_profile *p) {
  json_t *candidates = json_array(), *ranges = json_array();
  for (uint32_t i = 0; i < p->candidate_count; i++)
    json_array_append_new(candidates, candidate_json(&p->candidates[i]));
  for (uint32_t i = 0; i < p->range_count; i++) json_array_append_new(ranges, range_json(&p->ranges[i]));
  json_t *sizes = json_array();
  for (uint32_t i = 0; i < OFFLOAD_PROFILE_SIZES; i++)
    if (p->by_lines[i])
      json_array_append_new(
          sizes, json_pack("{s:I s:I}", "lines", (json_int_t)1 << i, "instances", (json_int_t)p->by_lines[i]));
  return json_pack("{s:I s:b s:I s:I s:I s:I s:I s:I s:o s:o s:o s:o}", "stacks", (json_int_t)1 << p->bits, "cut",
                   p->cut, "warp_instructions", (json_int_t)p->warp_instructions, "candidate_instructions",
                   (json_int_t)p->candidate_instructions, "accesses", (json_int_t)p->accesses, "candidate_accesses",
                   (json_int_t)p->candidate_accesses, "instances", (json_int_t)p->instances, "lines",
                   (json_int_t)p->lines, "instances_by_lines", sizes, "candidates", candidates, "colocation",
                   maps_json(p), "allocations", ranges);
}

/* ---- the command ---- */

typedef struct progress {
  uint64_t all, launches, shown;
} progress;

static void show(void *context, const trace_file_step *step) {
  progress *p = context;
  if (step->launch && !step->blocks) p->launches++;
  uint64_t now = p->all ? 100 * p->launches / p->all : 0;
  if (now == p->shown) return;
  p->shown = now;
  fprintf(stderr, "\rfarfault: reading, %" PRIu64 " %% of the launches", now < 100 ? now : 100);
}

offload_profile *cli_profile(trace_file *file, const char *name, offload_profile_options *profile_options) {
  progress at = {.all = trace_file_information(file)->launches};
  trace_file_watch watch = {show, &at};
  if (isatty(2)) profile_options->watch = &watch;
  offload_profile *profile = offload_profile_run(file, profile_options);
  profile_options->watch = NULL;
  if (at.shown) fprintf(stderr, "\r\033[K");
  if (!profile)
    cli_fail(0,
             "%s: no warp came to a candidate block: the program has none, or its trace is an older one, without marks",
             name);
  else if (profile->cut) cli_fail(0, "%s: the trace is damaged or was cut off: this is of what stands before", name);
  return profile;
}

static void json_text(const offload_profile *profile, ff_text *out) {
  json_t *all = offload_profile_json(profile);
  char *text = json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
  ff_text_add(out, "%s\n", text ? text : "{}");
  free(text);
  json_decref(all);
}

static int print(const arguments *a, const offload_profile *profile) {
  ff_text out = {0}, json = {0};
  ff_error error;
  int status = CLI_DONE;
  bool json_only = a->json && !strcmp(a->json, "-");
  if (a->json) json_text(profile, json_only ? &out : &json);
  if (!json_only) offload_profile_text(profile, &out);
  if (json.chars && ff_file_write(a->json, json.chars, json.length, &error))
    status = cli_fail(CLI_FAILED, "%s", error.message);
  if (!status) status = cli_print(&out);
  free(json.chars);
  free(out.chars);
  return profile->cut && !status ? CLI_BAD_FILE : status;
}

int cli_offload_profile(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "TRACE",
      "Reads a recorded program once and says what its offload candidates really did: instances (a warp's way through one), trips, warp instructions, loads and stores "
      "of each, lines per access, loads that miss an L2 cache, active lanes, whether their accesses lie at fixed offsets from each other; and how many instances have "
      "all their accesses in one memory stack, by each map of addresses to stacks.\v"
      "Example:\n  farfault record -o app.fft ./app\n  farfault offload profile app.fft\n\n"
      "Exit status: 0; 64 wrong arguments, 2 the file is of no use, damaged, or has no candidates, 1 something else failed.",
      NULL,
      NULL,
      NULL};
  arguments a = {.machine = "tom"};
  cli_parse_tabular(&argp, argc, argv, &a, STDOUT_FILENO);
  machine_spec spec;
  trace_file *file;
  ff_error error;
  if (cli_keep_input(a.file, (const char *const[]){a.json}, 1)) return CLI_USAGE;
  if (machine_spec_load(a.machine, &spec, &error)) return cli_fail(CLI_BAD_FILE, "%s", error.message);
  if (trace_file_open(a.file, &file, &error)) return cli_fail(CLI_BAD_FILE, "%s", error.message);
  offload_table *table = offload_table_create();
  offload_profile_options profile_options = {
      .spec = &spec, .find = offload_table_find, .operation = offload_table_operation, .context = table};
  offload_profile *profile = cli_profile(file, a.file, &profile_options);
  int status = profile ? print(&a, profile) : CLI_BAD_FILE;
  offload_profile_free(profile);
  offload_table_free(table);
  trace_file_close(file);
  return status;
}
