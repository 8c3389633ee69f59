/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault offload analyze --measured TRACE`: what equations (3) and (4) give with what a recording says, next to what
 * they give with what the paper assumes (section 3.1.1: every access one line, half of the loads miss, one trip where
 * nothing is known).
 *
 * A region that no warp came to is left as it is assumed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands/offload_command.h"
#include "cli/commands/offload_profile.h"
#include "offload/candidate_table.h"
#include "report/table.h"

/* ---- from a profile to regions ---- */

typedef struct functions { /* which function of the PTX each kernel is, by kernel_index */
  offload_table *table;
  FF_VEC(const char *) names; /* NULL: its code is not there */
} functions;

static void see_operation(void *context, const trace_op *op) {
  functions *f = context;
  offload_table_operation(f->table, op);
  if (op->kind != TRACE_OP_LAUNCH) return;
  while (f->names.count <= op->launch->kernel_index) FF_PUSH(&f->names, NULL);
  if (f->names.items[op->launch->kernel_index]) return;
  const offload_kernel *kernel = offload_table_kernel(f->table, op->launch);
  if (kernel) f->names.items[op->launch->kernel_index] = kernel->func->name;
}

/* The chosen region that is entered there in the function of that name, and its kernel's place in the list; NULL: there
 * is none, or more than one. */
static const offload_region *region_of(const offload_list *list, const char *name, uint32_t pc, size_t *place) {
  const offload_region *found = NULL;
  for (size_t i = 0; i < list->count; i++) {
    const offload_kernel *kernel = list->items[i].kernel;
    if (strcmp(kernel->func->name, name)) continue;
    for (uint32_t r = 0; r < kernel->region_count; r++) {
      if (!kernel->regions[r].chosen || kernel->regions[r].entry != pc) continue;
      if (found) return NULL;
      found = &kernel->regions[r];
      *place = i;
    }
  }
  return found;
}

static void take(offload_measured *m, const offload_profile_candidate *c) {
  *m = (offload_measured){.instances = c->instances,
                          .trips = offload_profile_trips(c),
                          .ratios = {.coal_load = offload_profile_coal_load(c),
                                     .coal_store = offload_profile_coal_store(c),
                                     .miss_load = offload_profile_miss_load(c),
                                     .line_words = offload_assumed.line_words}};
}

static void take_all(offload_list *list, const offload_profile *profile, const functions *f) {
  for (size_t i = 0; i < list->count; i++)
    list->items[i].measured = ff_alloc(list->items[i].kernel->region_count * sizeof *list->items[i].measured + 1);
  for (uint32_t i = 0; i < profile->candidate_count; i++) {
    const offload_profile_candidate *c = &profile->candidates[i];
    size_t place = 0;
    const char *name = f->names.items[c->kernel_index];
    const offload_region *region = name ? region_of(list, name, c->pc, &place) : NULL;
    if (region) take(&list->items[place].measured[region - list->items[place].kernel->regions], c);
  }
}

int offload_measure(const char *path, const machine_spec *spec, offload_list *list) {
  trace_file *file;
  ff_error error;
  if (trace_file_open(path, &file, &error))
    return cli_fail(CLI_BAD_FILE, "%s (--measured needs a recording)", error.message);
  functions f = {.table = offload_table_create()};
  offload_profile_options options = {.spec = spec, .operation = see_operation, .context = &f};
  offload_profile *profile = cli_profile(file, path, &options);
  trace_file_close(file);
  if (profile) take_all(list, profile, &f);
  const char *problem = offload_table_problem(f.table);
  if (problem) cli_fail(0, "%s: %s", path, problem);
  bool found = profile != NULL;
  offload_profile_free(profile);
  free(f.names.items);
  offload_table_free(f.table);
  return found ? CLI_DONE : CLI_BAD_FILE;
}

/* ---- both sides ---- */

offload_words offload_words_of(const offload_region *r, const offload_ratios *ratios, double trips) {
  double tx_fixed, tx_trip, rx_fixed, rx_trip;
  offload_cost(r, ratios, &tx_fixed, &tx_trip, &rx_fixed, &rx_trip);
  return (offload_words){.trips = trips, .tx = tx_fixed + trips * tx_trip, .rx = rx_fixed + trips * rx_trip};
}

/* The trips that a machine goes by: those that it is told at the entry, those in the code, else one. */
offload_words offload_words_assumed(const offload_region *r, const offload_measured *m) {
  double trips = r->trips.kind == OFFLOAD_TRIPS_KNOWN    ? m->trips
                 : r->trips.kind == OFFLOAD_TRIPS_STATIC ? r->trips.count
                                                         : 1;
  return offload_words_of(r, &offload_assumed, trips);
}
offload_words offload_words_measured(const offload_region *r, const offload_measured *m) {
  return offload_words_of(r, &m->ratios, m->trips);
}

static const char *saves_text(offload_words w) {
  if (w.tx < 0) return w.rx < 0 ? "TX, RX" : "TX";
  return w.rx < 0 ? "RX" : "-";
}

static void words_row(table *t, const offload_ratios *ratios, offload_words w, bool loads, bool stores) {
  table_cell(t, "%.4g", w.trips);
  if (loads) table_cell(t, "%.2f", ratios->coal_load);
  else table_cell(t, "-");
  if (stores) table_cell(t, "%.2f", ratios->coal_store);
  else table_cell(t, "-");
  if (loads) table_cell(t, "%.1f %%", 100 * ratios->miss_load);
  else table_cell(t, "-");
  table_cell(t, "%.1f", w.tx);
  table_cell(t, "%.1f", w.rx);
  table_cell(t, "%s", saves_text(w));
  table_cell(t, "%s", w.tx + w.rx < 0 ? "yes" : "no");
}

static void difference_cell(table *t, offload_words assumed, offload_words measured) {
  bool was = assumed.tx + assumed.rx < 0, is = measured.tx + measured.rx < 0;
  if (was != is) table_cell(t, is ? "<- worth it" : "<- not worth it");
  else table_cell(t, "%s", strcmp(saves_text(assumed), saves_text(measured)) ? "<- other channels" : "");
}

static void region_rows(table *t, const offload_region *r, const offload_measured *m, uint32_t number) {
  bool loads = r->loads + r->once_loads, stores = r->stores + r->once_stores;
  offload_words assumed = offload_words_assumed(r, m), measured = offload_words_measured(r, m);
  table_cell(t, "%u", number);
  table_cell(t, "%u-%u", r->first_line, r->last_line);
  table_cell(t, "assumed");
  table_cell(t, "%s", "");
  words_row(t, &offload_assumed, assumed, loads, stores);
  table_cell(t, "%s", "");
  table_cell(t, "%s", "");
  table_cell(t, "%s", "");
  table_cell(t, "measured");
  table_count(t, m->instances);
  words_row(t, &m->ratios, measured, loads, stores);
  difference_cell(t, assumed, measured);
}

void offload_write_measured(const offload_list *list, ff_text *out) {
  static const char *const names[] = {"",       "lines", "",   "instances", "trips",    "lines/load", "lines/store",
                                      "misses", "TX",    "RX", "saves",     "worth it", "",           NULL};
  for (size_t i = 0; i < list->count; i++) {
    const offload_shown *shown = &list->items[i];
    uint32_t number = 0, rows = 0;
    table t;
    table_start(&t, "rrlrrrrrrrllw");
    t.spare = (const char *const[]){"lines/store", "misses", "lines/load", NULL};
    table_names(&t, names);
    for (uint32_t r = 0; r < shown->kernel->region_count; r++) {
      const offload_region *region = &shown->kernel->regions[r];
      number += region->chosen;
      if (!region->chosen || !shown->measured[r].instances) continue;
      region_rows(&t, region, &shown->measured[r], number);
      rows++;
    }
    ff_text_add(out, "%s%s (%s): %u of %u chosen blocks measured\n", i ? "\n" : "", shown->kernel->func->name,
                shown->module->name, rows, shown->kernel->chosen_count);
    if (rows) table_write(&t, 2, out);
    table_free(&t);
  }
}
