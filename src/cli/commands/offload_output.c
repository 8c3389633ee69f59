/* SPDX-License-Identifier: Apache-2.0 */
/* Regions as a table and as JSON. In the JSON everything counts as in offload/candidates.h: instructions from 0, words
 * of 4 bytes, null for "never". */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/commands/offload_command.h"
#include "offload/candidate_describe.h"
#include "report/table.h"

/* ---- table ---- */

static void cell_text(table *t, ff_text *text) {
  table_cell(t, "%s", text->chars ? text->chars : "");
  free(text->chars);
  *text = (ff_text){0};
}

static void put_row(table *t, const offload_kernel *kernel, const offload_region *r, uint32_t *number) {
  ff_text text = {0};
  if (r->chosen) table_cell(t, "%u", ++*number);
  else table_cell(t, "-");
  table_cell(t, "%u-%u", r->first_line, r->last_line);
  table_cell(t, "%u-%u", r->begin, r->end - 1);
  table_cell(t, "%u", r->loads + r->once_loads);
  table_cell(t, "%u", r->stores + r->once_stores);
  offload_put_formula(r, r->tx_fixed, r->tx_trip, &text);
  cell_text(t, &text);
  offload_put_formula(r, r->rx_fixed, r->rx_trip, &text);
  cell_text(t, &text);
  offload_put_bits(r, &text);
  cell_text(t, &text);
  offload_put_verdict(kernel, r, &text);
  cell_text(t, &text);
  offload_put_live_in(kernel, r, &text);
  cell_text(t, &text);
  offload_put_live_out(kernel, r, &text);
  cell_text(t, &text);
}

void offload_write_table(const offload_list *list, ff_text *out) {
  static const char *const names[] = {"",   "lines", "pc",        "loads",   "stores",   "TX",
                                      "RX", "saves", "offloaded", "live in", "live out", NULL};
  for (size_t i = 0; i < list->count; i++) {
    const offload_kernel *kernel = list->items[i].kernel;
    uint32_t number = 0;
    table t;
    ff_text_add(out, "%s%s (%s): %u instruction%s, %u of %u blocks chosen\n", i ? "\n" : "", kernel->func->name,
                list->items[i].module->name, kernel->func->instr_count, cli_s(kernel->func->instr_count),
                kernel->chosen_count, kernel->region_count);
    if (!kernel->region_count) continue;
    table_start(&t, "rrrrrrrwwww");
    t.spare = (const char *const[]){"live out", "live in", "loads", "stores", NULL};
    table_names(&t, names);
    for (uint32_t r = 0; r < kernel->region_count; r++) put_row(&t, kernel, &kernel->regions[r], &number);
    table_write(&t, 2, out);
    table_free(&t);
  }
}

/* ---- JSON ---- */

static json_t *count_or_never(uint32_t count) { return count == OFFLOAD_NEVER ? json_null() : json_integer(count); }

/* Names come from a file and may be no UTF-8: jansson refuses those. */
static json_t *text_of(const char *text) {
  json_t *string = json_string(text);
  return string ? string : json_string("?");
}

static json_t *registers(const ptx_func *func, const uint32_t *regs, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; i++) json_array_append_new(list, text_of(func->regs[regs[i]].name));
  return list;
}

static json_t *others(const offload_kernel *kernel, const offload_region *r) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < r->other_count; i++)
    json_array_append_new(list, text_of(offload_other_name(&kernel->others[r->others[i]])));
  return list;
}

static json_t *bound(const ptx_func *func, const offload_bound *b) {
  return json_pack("{s:o s:I}", "register", b->reg == PTX_NO_REG ? json_null() : text_of(func->regs[b->reg].name),
                   "add", (json_int_t)b->value);
}

static json_t *trips(const ptx_func *func, const offload_trips *t) {
  static const char *const kinds[] = {[OFFLOAD_TRIPS_ONE] = "no loop",
                                      [OFFLOAD_TRIPS_STATIC] = "static",
                                      [OFFLOAD_TRIPS_KNOWN] = "known before",
                                      [OFFLOAD_TRIPS_UNKNOWN] = "unknown"};
  json_t *value = json_pack("{s:s}", "kind", kinds[t->kind]);
  if (t->kind == OFFLOAD_TRIPS_STATIC) json_object_set_new(value, "count", json_integer(t->count));
  if (t->kind != OFFLOAD_TRIPS_KNOWN) return value;
  json_object_set_new(value, "from", bound(func, &t->from));
  json_object_set_new(value, "to", bound(func, &t->to));
  json_object_set_new(value, "step", json_integer(t->step));
  json_object_set_new(value, "while", json_string(ptx_mod_text(t->compare)));
  json_object_set_new(value, "signed", json_boolean(t->is_signed));
  json_object_set_new(value, "bits", json_integer(t->bits));
  json_object_set_new(value, "tested_first", json_boolean(t->tested_first));
  return value;
}

static json_t *condition(const ptx_func *func, const offload_region *r) {
  if (r->compared == PTX_NO_REG) return json_null();
  return json_pack("{s:o s:I}", "register", text_of(func->regs[r->compared].name),
                   r->compared_down ? "at_most" : "at_least", (json_int_t)r->compared_with);
}

static const char *bar_name(offload_bar bar) {
  static const char *const names[] = {
#define X(id, text) #id,
#include "offload/eligibility.def"
#undef X
  };
  return names[bar];
}

static json_t *region(const offload_kernel *kernel, const offload_region *r) {
  const ptx_func *func = kernel->func;
  json_t *value = json_pack("{s:b s:b s:i s:i s:i s:i s:i s:i}", "candidate", r->candidate, "chosen", r->chosen,
                            "begin", (int)r->begin, "end", (int)r->end, "entry", (int)r->entry, "exit", (int)r->exit,
                            "first_line", (int)r->first_line, "last_line", (int)r->last_line);
  json_object_set_new(value, "live_in", registers(func, r->live_in, r->live_in_count));
  json_object_set_new(value, "also_reads", others(kernel, r));
  json_object_set_new(value, "live_out", registers(func, r->live_out, r->live_out_count));
  json_object_set_new(value, "in_bytes", json_integer(r->in_bytes));
  json_object_set_new(value, "out_bytes", json_integer(r->out_bytes));
  json_object_set_new(value, "loads", json_integer(r->loads));
  json_object_set_new(value, "stores", json_integer(r->stores));
  json_object_set_new(value, "once_loads", json_integer(r->once_loads));
  json_object_set_new(value, "once_stores", json_integer(r->once_stores));
  json_object_set_new(value, "tx",
                      json_pack("{s:f s:f s:o}", "fixed", r->tx_fixed, "per_trip", r->tx_trip, "saved_from",
                                count_or_never(r->tx_from)));
  json_object_set_new(value, "rx",
                      json_pack("{s:f s:f s:o}", "fixed", r->rx_fixed, "per_trip", r->rx_trip, "saved_from",
                                count_or_never(r->rx_from)));
  json_object_set_new(value, "trips", trips(func, &r->trips));
  json_object_set_new(value, "threshold", count_or_never(r->threshold));
  json_object_set_new(value, "condition", condition(func, r));
  json_object_set_new(value, "times", json_real(r->times));
  json_object_set_new(value, "bar",
                      r->bar ? json_pack("{s:s s:s s:i}", "name", bar_name(r->bar), "text", offload_bar_text(r->bar),
                                         "line", (int)r->bar_line)
                             : json_null());
  return value;
}

static json_t *words(offload_words w) {
  return json_pack("{s:f s:f s:f s:b}", "trips", w.trips, "tx", w.tx, "rx", w.rx, "worth_it", w.tx + w.rx < 0);
}

static json_t *measured(const offload_region *r, const offload_measured *m) {
  return json_pack("{s:I s:f s:f s:f s:f s:f s:o s:o}", "instances", (json_int_t)m->instances, "trips", m->trips,
                   "lines_per_load", m->ratios.coal_load, "lines_per_store", m->ratios.coal_store, "load_misses",
                   m->ratios.miss_load, "words_per_line", m->ratios.line_words, "words_assumed",
                   words(offload_words_assumed(r, m)), "words_measured", words(offload_words_measured(r, m)));
}

void offload_write_json(const char *file, const offload_list *list, ff_text *out) {
  json_t *kernels = json_array();
  for (size_t i = 0; i < list->count; i++) {
    const offload_shown *shown = &list->items[i];
    json_t *regions = json_array();
    for (uint32_t r = 0; r < shown->kernel->region_count; r++) {
      json_t *value = region(shown->kernel, &shown->kernel->regions[r]);
      if (shown->measured && shown->measured[r].instances)
        json_object_set_new(value, "measured", measured(&shown->kernel->regions[r], &shown->measured[r]));
      json_array_append_new(regions, value);
    }
    json_array_append_new(kernels,
                          json_pack("{s:o s:o s:i s:i s:o}", "name", text_of(shown->kernel->func->name), "module",
                                    text_of(shown->module->name), "instructions", (int)shown->kernel->func->instr_count,
                                    "chosen", (int)shown->kernel->chosen_count, "regions", regions));
  }
  json_t *all = json_pack("{s:o s:o}", "file", text_of(file), "kernels", kernels);
  char *text = json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
  ff_text_add(out, "%s\n", text ? text : "{}");
  free(text);
  json_decref(all);
}
