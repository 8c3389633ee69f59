/* SPDX-License-Identifier: Apache-2.0 */
/* The machine file: every value of params.def with its source: a measurement and its spread, what the driver says, or
 * the base machine.
 *
 * The text is a machine file that loads; apart from the date it depends on the result and the base
 * only. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "calibrate/calibrate.h"
#include "machine/spec/allocation.h"
#include "machine/spec/spec_table.h"

typedef struct writer {
  const calibrate_result *result;
  const machine_spec *base;
  const char *base_name;
  machine_spec made;               /* what is being written */
  char *sources[SPEC_PARAM_COUNT]; /* NULL: the base's */
} writer;

static void set_source(writer *w, spec_param_id id, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void set_source(writer *w, spec_param_id id, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  free(w->sources[id]);
  w->sources[id] = ff_strdup(text);
}

/* A text that can stand between double quotes. */
static void quote(const char *text, ff_text *out) {
  ff_text_add(out, "\"");
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') ff_text_add(out, "\\");
    ff_text_add(out, "%c", (unsigned char)*text < 32 || (unsigned char)*text > 126 ? '?' : *text);
  }
  ff_text_add(out, "\"");
}

/* ---- what the driver says ---- */

static void from_driver(writer *w, spec_param_id id, uint64_t value, const char *what) {
  if (!value) return;
  memcpy((char *)&w->made + spec_params[id].offset, &value, sizeof value);
  set_source(w, id, "the driver: %s", what);
}

static uint64_t positive(int value) { return value > 0 ? (uint64_t)value : 0; }

static void take_attributes(writer *w) {
  const calibrate_device *d = &w->result->device;
  snprintf(w->made.name, sizeof w->made.name, "%s", d->name[0] ? d->name : "a GPU");
  set_source(w, SPEC_name, "the driver: cuDeviceGetName");
  from_driver(w, SPEC_compute_major, positive(d->major), "compute capability, major");
  w->made.compute_minor = positive(d->minor);
  set_source(w, SPEC_compute_minor, "the driver: compute capability, minor");
  from_driver(w, SPEC_memory_bytes, d->memory_bytes, "cuDeviceTotalMem");
  from_driver(w, SPEC_sm_count, positive(d->sm_count), "multiprocessors");
  from_driver(w, SPEC_max_threads, positive(d->max_threads), "threads per multiprocessor");
  from_driver(w, SPEC_max_blocks, positive(d->max_blocks), "blocks per multiprocessor");
  from_driver(w, SPEC_registers, positive(d->registers), "registers per multiprocessor");
  from_driver(w, SPEC_shared_bytes, positive(d->shared_bytes), "shared memory per multiprocessor");
  from_driver(w, SPEC_shared_per_block, positive(d->shared_per_block), "shared memory per block");
  from_driver(w, SPEC_shared_per_block_optin,
              positive(d->shared_per_block_optin ? d->shared_per_block_optin : d->shared_per_block),
              "shared memory per block, opted in");
}

/* ---- what was measured ---- */

static void describe(const figure *f, const figure_info *info, ff_text *out) {
  figure_summary s = figure_summarise(f);
  ff_text_add(out, "measured: %s; median of %u, %.6g to %.6g", info->help, f->count, s.low, s.high);
  if (f->count >= 4) ff_text_add(out, ", quartiles %.6g and %.6g", s.quarter, s.three_quarters);
}

static void take_figure(writer *w, figure_id figure_number) {
  const figure *f = &w->result->figures[figure_number];
  const figure_info *info = &figure_infos[figure_number];
  const spec_param *param = spec_param_find(info->name);
  if (!param || !f->count || info->kind == FIGURE_SUM) return;
  double value = figure_summarise(f).median;
  uint64_t whole = value > 0 ? (uint64_t)llround(value) : 0;
  if (param->type == 'u') memcpy((char *)&w->made + param->offset, &whole, sizeof whole);
  else if (param->type == 'f') memcpy((char *)&w->made + param->offset, &value, sizeof value);
  else return;
  ff_text source = {0};
  describe(f, info, &source);
  if (info->kind == FIGURE_SOLVED) ff_text_add(&source, "; with values of %s", w->base_name);
  set_source(w, (spec_param_id)(param - spec_params), "%s", source.chars);
  free(source.chars);
}

static void take_table(writer *w) {
  machine_size_table table = {0};
  uint32_t samples = 0;
  for (int i = FIGURE_h2d_4K; i <= FIGURE_h2d_64M; i += 2) {
    const figure *f = &w->result->figures[i];
    if (!f->count) continue;
    samples = f->count;
    table.points[table.count++] =
        (machine_size_point){UINT64_C(4096) << (i - FIGURE_h2d_4K) / 2, figure_summarise(f).median};
  }
  if (!table.count) return;
  w->made.link_table = table;
  set_source(w, SPEC_link_table, "measured: pinned copies to the device, queued, latency included; medians of %u",
             samples);
}

/* ---- what must fit together ---- */

static uint64_t whole_multiple(uint64_t value, uint64_t unit) {
  uint64_t count = (value + unit / 2) / unit;
  return (count ? count : 1) * unit;
}

/* Caches are whole sets of the base's ways; a cache of fewer lines than the base has ways has fewer ways. */
static void fit_caches(writer *w) {
  machine_spec *m = &w->made;
  if (w->result->figures[FIGURE_dram_gbs].count) /* the best that was seen is what the shares leave of the peak */
    m->dram_gbs /= fmax(spec_read_share(m), spec_copy_share(m));
  uint64_t l1 = allocation_l1_from_small_blocks(m, m->l1_bytes);
  bool shares = l1 != m->l1_bytes; /* with shared memory: whole sets are what is left, not all of it */
  if (shares) set_source(w, SPEC_l1_bytes, "measured: %" PRIu64 " bytes beside a carve-out", m->l1_bytes);
  m->l1_bytes = l1;
  if (m->l1_bytes < m->l1_ways * 128) {
    m->l1_ways = m->l1_bytes / 128 ? m->l1_bytes / 128 : 1;
    set_source(w, SPEC_l1_ways, "all lines of l1_bytes: fewer than the ways of %s", w->base_name);
  }
  if (m->l2_bytes / m->l2_slices < m->l2_ways * 128) {
    m->l2_ways = m->l2_bytes / m->l2_slices / 128 ? m->l2_bytes / m->l2_slices / 128 : 1;
    set_source(w, SPEC_l2_ways, "all lines of a slice: fewer than the ways of %s", w->base_name);
  }
  if (!shares) m->l1_bytes = whole_multiple(m->l1_bytes, m->l1_ways * 128);
  m->l2_bytes = whole_multiple(m->l2_bytes, m->l2_ways * m->l2_slices * 128);
}

/* The ports of the on-chip network are the base's as long as they let through what was measured: they are not measured
 * themselves, and may be another GPU's. */
static void fit_ports(writer *w) {
  machine_spec *m = &w->made;
  const figure *read = &w->result->figures[FIGURE_l2_gbs];
  double gbs = read->count ? figure_summarise(read).median : 0,
         lets = (double)m->sm_count * m->sm_read_bytes * m->clock_mhz / 1000;
  if (m->sm_read_bytes <= 0 || gbs <= lets * 1.01) return;
  m->sm_read_bytes = m->sm_write_bytes = m->cluster_read_bytes = m->cluster_write_bytes = 0;
  m->cluster_sms = 0;
}

/* The address hash of the base stands only while it fits what was measured: it is another GPU's then. (`farfault probe`
 * measures it.) */
static void fit_hash(machine_spec *m) {
  ff_error why;
  if (!spec_check(m, &why)) return;
  memset(m->address_map, 0, sizeof m->address_map);
  m->module_masks = m->bank_masks = m->set_masks = m->side_masks = (machine_mask_table){.count = 0};
  m->piece_bytes = m->polynomial = 0;
  m->side_latency = 0;
}

/* ---- the text ---- */

static void write_masks(const machine_mask_table *table, ff_text *out) {
  for (uint32_t i = 0; i < table->count; i++) {
    const char *between = "[";
    ff_text_add(out, i ? ", " : "[");
    for (uint32_t bit = 0; bit < 64; bit++) {
      if (!(table->masks[i] >> bit & 1)) continue;
      ff_text_add(out, "%s%u", between, bit);
      between = ", ";
    }
    ff_text_add(out, "]");
  }
  ff_text_add(out, "]");
}

static void write_joins(const machine_join_table *table, ff_text *out) {
  for (uint64_t i = 0; i < table->count; i++)
    ff_text_add(out, "%s[%u, %u, %.6g, %.6g]", i ? ", " : "[", table->joins[i].gpus[0], table->joins[i].gpus[1],
                table->joins[i].gbs, table->joins[i].latency_us);
  ff_text_add(out, "]");
}

static void write_profiles(const machine_profile_table *table, ff_text *out) {
  for (uint64_t i = 0; i < table->count; i++) {
    const machine_profile *p = &table->profiles[i];
    ff_text_add(out, "%s[%s, %u, %u, %u]", i ? ", " : "[", p->name, p->sms, p->memory, p->l2);
  }
  ff_text_add(out, "]");
}

static void write_tiers(const machine_tier_table *table, ff_text *out) {
  for (uint64_t i = 0; i < table->count; i++) {
    const machine_tier *t = &table->tiers[i];
    ff_text_add(out, "%s[%s, %" PRIu64 ", %.12g, %.12g, %.12g, %" PRIu64 ", %s]", i ? ", " : "[", t->name, t->bytes,
                t->read_gbs, t->write_gbs, t->latency_us, t->unit_bytes, t->mapped ? "mapped" : "paged");
  }
  ff_text_add(out, "]");
}

static void write_value(const spec_param *p, const machine_spec *m, ff_text *out) {
  const void *at = (const char *)m + p->offset;
  uint64_t whole;
  double number;
  switch (p->type) {
  case 'u':
    memcpy(&whole, at, sizeof whole);
    if (!strcmp(p->unit, "bytes") && whole && whole % (1 << 20) == 0) ff_text_add(out, "%" PRIu64 "M", whole >> 20);
    else if (!strcmp(p->unit, "bytes") && whole && whole % 1024 == 0) ff_text_add(out, "%" PRIu64 "K", whole >> 10);
    else ff_text_add(out, "%" PRIu64, whole);
    return;
  case 'f':
    memcpy(&number, at, sizeof number);
    ff_text_add(out, "%.6g", number);
    return;
  case 's': quote(at, out); return;
  case 'm': write_masks(at, out); return;
  case 'j': write_joins(at, out); return;
  case 'p': write_profiles(at, out); return;
  case 'l': write_tiers(at, out); return;
  default: {
    const machine_size_table *t = at;
    for (uint32_t i = 0; i < t->count; i++)
      ff_text_add(out, "%s[%" PRIu64 "K, %.6g]", i ? ", " : "[", t->points[i].bytes >> 10, t->points[i].gbs);
    ff_text_add(out, "]");
  }
  }
}

/* Optional values that the base does not give are left out, too. */
static bool is_given(const writer *w, int id) {
  const spec_param *p = &spec_params[id];
  if (p->required || w->sources[id]) return true;
  if (p->type == 'm')
    return ((const machine_mask_table *)(const void *)((const char *)&w->made + p->offset))->count > 0;
  if (p->type == 't')
    return ((const machine_size_table *)(const void *)((const char *)&w->made + p->offset))->count > 0;
  uint64_t zero = 0;
  return memcmp((const char *)&w->made + p->offset, &zero, sizeof zero) != 0;
}

static void write_text(const writer *w, const char *date, ff_text *out) {
  const calibrate_device *d = &w->result->device;
  char title[160];
  ff_text_add(out, "# Written by `farfault calibrate`. Driver of CUDA %d.%d%s.\n", d->driver_version / 1000,
              d->driver_version % 1000 / 10, d->is_virtual ? ", the virtual GPU" : "");
  snprintf(title, sizeof title, "%s, measured %s (%d SMs)", d->name, date, d->sm_count);
  ff_text_add(out, "title: ");
  quote(title, out);
  ff_text_add(out, "\n");
  const char *group = "";
  for (int i = 0; i < SPEC_PARAM_COUNT; i++) {
    if (!is_given(w, i)) continue;
    if (strcmp(group, spec_params[i].group)) ff_text_add(out, "\n%s:\n", group = spec_params[i].group);
    ff_text_add(out, "  %s: {value: ", spec_params[i].name);
    write_value(&spec_params[i], &w->made, out);
    ff_text_add(out, ", source: ");
    char own[512];
    snprintf(own, sizeof own, "not measured: as %s", w->base_name);
    quote(w->sources[i] ? w->sources[i] : own, out);
    ff_text_add(out, "}\n");
  }
}

ff_status calibrate_write_machine(const calibrate_result *result, const machine_spec *base, const char *base_name,
                                  const char *date, ff_text *out, ff_error *error) {
  writer w = {.result = result, .base = base, .base_name = base_name, .made = *base};
  take_attributes(&w);
  for (int i = 0; i < FIGURE_COUNT; i++) take_figure(&w, (figure_id)i);
  take_table(&w);
  fit_caches(&w);
  fit_ports(&w);
  fit_hash(&w.made);
  write_text(&w, date, out);
  for (int i = 0; i < SPEC_PARAM_COUNT; i++) free(w.sources[i]);
  machine_spec checked;
  ff_status status = spec_text_load("the measured machine", out->chars, out->length, &checked, error);
  return status;
}
