/* SPDX-License-Identifier: Apache-2.0 */
/* Figures for people and programs: a table of measured against expected, JSON, CSV. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/calibrate.h"
#include "report/table.h"

#define RESOLUTION 1e-3     /* a nanosecond, a thousandth of a cycle: what is nearer than that is the same */
#define WALK_RESOLUTION 0.2 /* cycles: the difference of two chases of hundreds of cycles a step, each to 0.05 % */

static void number_cell(table *t, double value, const char *unit) {
  char text[32];
  if (!isfinite(value)) table_cell(t, "-");
  else if (!strcmp(unit, "bytes") && value >= 4096)
    table_cell(t, "%s", ff_format_bytes((uint64_t)llround(value), text, sizeof text));
  else table_cell(t, "%.5g", value);
}

uint32_t calibrate_compare(const calibrate_result *result, const machine_spec *m, double tolerance, ff_text *out) {
  table t;
  uint32_t off = 0, compared = 0, missing = 0;
  table_start(&t, "lrrrrrl");
  t.spare = (const char *const[]){"low", "high", NULL};
  static const char *const heads[] = {"figure", "measured", "low", "high", "machine", "off", ""};
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) table_cell(&t, "%s", heads[i]);
  for (int i = 0; i < FIGURE_COUNT; i++) {
    const figure_info *info = &figure_infos[i];
    double expected = figure_expected((figure_id)i, m);
    bool found = result->figures[i].count;
    figure_summary s = {.median = NAN, .low = NAN, .high = NAN};
    if (found) s = figure_summarise(&result->figures[i]);
    double difference = expected != 0 ? s.median / expected - 1 : s.median;
    double resolution = i == FIGURE_walk_cache_latency ? WALK_RESOLUTION : RESOLUTION;
    if (fabs(s.median - expected) < resolution) difference = 0;
    bool judged = isfinite(expected) && info->kind != FIGURE_SOLVED,
         wrong = judged && found && !(fabs(difference) <= tolerance);
    compared += judged && found;
    missing += judged && !found;
    off += wrong;
    table_cell(&t, "%s%s%s", info->name, info->unit[0] ? ", " : "", info->unit);
    number_cell(&t, s.median, info->unit);
    number_cell(&t, s.low, info->unit);
    number_cell(&t, s.high, info->unit);
    number_cell(&t, expected, info->unit);
    if (!isfinite(expected)) table_cell(&t, "-");
    else if (!found) table_cell(&t, "not found");
    else table_cell(&t, "%+.1f%%", difference * 100);
    table_cell(&t, "%s", wrong ? "!" : info->kind == FIGURE_SOLVED ? "with the base" : "");
  }
  table_write(&t, 0, out);
  table_free(&t);
  ff_text_add(out, "%u of %u figures within %.3g %%, %u not found\n", compared - off, compared, tolerance * 100,
              missing);
  return off + missing;
}

static void json_text(const char *text, ff_text *out) {
  ff_text_add(out, "\"");
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') ff_text_add(out, "\\%c", c);
    else if (c < 32 || c > 126) ff_text_add(out, "\\u%04x", c);
    else ff_text_add(out, "%c", c);
  }
  ff_text_add(out, "\"");
}

void calibrate_json(const calibrate_result *r, ff_text *out) {
  const char *between = "";
  ff_text_add(out, "{\n  \"gpu\": ");
  json_text(r->device.name, out);
  ff_text_add(out, ",\n  \"cuda\": \"%d.%d\",\n  \"virtual\": %s,\n  \"figures\": {", r->device.driver_version / 1000,
              r->device.driver_version % 1000 / 10, r->device.is_virtual ? "true" : "false");
  for (int i = 0; i < FIGURE_COUNT; i++) {
    const figure *f = &r->figures[i];
    if (!f->count) continue;
    figure_summary s = figure_summarise(f);
    ff_text_add(
        out,
        "%s\n    \"%s\": {\"median\": %.9g, \"unit\": \"%s\", \"low\": %.9g, \"high\": %.9g, \"quartiles\": [%.9g, %.9g], \"samples\": %u}",
        between, figure_infos[i].name, s.median, figure_infos[i].unit, s.low, s.high, s.quarter, s.three_quarters,
        f->count);
    between = ",";
  }
  ff_text_add(out, "\n  },\n  \"latency\": [");
  for (uint32_t i = 0; i < r->curve_count; i++)
    ff_text_add(out, "%s\n    {\"bytes\": %llu, \"cycles\": %.6g}", i ? "," : "", (unsigned long long)r->curve[i].bytes,
                r->curve[i].cycles);
  ff_text_add(out, "%s],\n  \"failures\": ", r->curve_count ? "\n  " : "");
  json_text(r->failures, out);
  ff_text_add(out, "\n}\n");
}

void calibrate_csv(const calibrate_result *r, const char *command, ff_text *out) {
  for (int i = 0; i < FIGURE_COUNT; i++) {
    const figure *f = &r->figures[i];
    if (!f->count) continue;
    figure_summary s = figure_summarise(f);
    ff_text_add(out, "%s,%.9g,%s,%.9g,%.9g,%s\n", figure_infos[i].name, s.median, figure_infos[i].unit, s.low, s.high,
                command);
  }
}

/* ---- what the GPU is ---- */

/* A file of /sys/bus/pci/devices of the GPU, its first line; "" if there is none. */
static void read_link(const calibrate_device *d, const char *file, char *text, size_t size) {
  char path[160];
  text[0] = '\0';
  if (d->is_virtual) return;
  snprintf(path, sizeof path, "/sys/bus/pci/devices/%04x:%02x:%02x.0/%s", (unsigned)d->pci_domain, (unsigned)d->pci_bus,
           (unsigned)d->pci_device, file);
  FILE *from = fopen(path, "r");
  if (!from) return;
  if (!fgets(text, (int)size, from)) text[0] = '\0';
  text[strcspn(text, "\r\n")] = '\0';
  fclose(from);
}

/* A cell between quotes, as what drivers say may hold anything. */
static void info_row(ff_text *out, const char *name, const char *value, const char *unit, const char *command) {
  ff_text_add(out, "%s,\"", name);
  for (; *value; value++)
    if ((unsigned char)*value >= 32 && *value != '"') ff_text_add(out, "%c", *value);
  ff_text_add(out, "\",%s,,,%s\n", unit, command);
}

void calibrate_info_csv(const calibrate_device *d, const char *command, ff_text *out) {
  static const struct {
    const char *name, *file;
  } links[] = {{"pcie_speed", "current_link_speed"},
               {"pcie_width", "current_link_width"},
               {"pcie_speed_most", "max_link_speed"},
               {"pcie_width_most", "max_link_width"}};
  char text[64];
  info_row(out, "gpu", d->name, "", command);
  info_row(out, "virtual", d->is_virtual ? "yes" : "no", "", command);
  snprintf(text, sizeof text, "%d.%d", d->driver_version / 1000, d->driver_version % 1000 / 10);
  info_row(out, "driver_cuda", text, "", command);
  FILE *version = d->is_virtual ? NULL : fopen("/sys/module/nvidia/version", "r");
  if (version && fgets(text, sizeof text, version)) {
    text[strcspn(text, "\r\n")] = '\0';
    info_row(out, "driver_version", text, "", command);
  }
  if (version) fclose(version);
  snprintf(text, sizeof text, "%d.%d", d->major, d->minor);
  info_row(out, "compute_capability", text, "", command);
  snprintf(text, sizeof text, "%llu", (unsigned long long)d->memory_bytes);
  info_row(out, "memory", text, "bytes", command);
  snprintf(text, sizeof text, "%d", d->sm_count);
  info_row(out, "sm_count", text, "", command);
  for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
    read_link(d, links[i].file, text, sizeof text);
    if (text[0]) info_row(out, links[i].name, text, "", command);
  }
}
