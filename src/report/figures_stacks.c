/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of memory stacks: what the ways of offloading and the maps gain and cost, as bars of all simulations; and
 * what went over which link, as a matrix for each simulation.
 *
 * The matrices of a run share one scale, so that their colours can be compared; every cell has its
 * number in it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/bars.h"
#include "report/figures.h"
#include "report/report_stacks.h"
#include "report/svg.h"

/* ---- bars ---- */

static bool has_stacks(const sim_result *r) { return r->stacks.count && !r->error[0]; }

enum { NAME_LENGTH = 48, PANELS = 4 };

/* "controlled, learned" where these two tell the simulations apart, else the manager's text; cut at its beginning, as
 * its end tells more. */
static void name_groups(const report_run *run, char (*names)[NAME_LENGTH]) {
  uint32_t count = 0;
  bool distinct = true;
  for (uint32_t i = 0; i < run->result_count; i++) {
    if (!has_stacks(&run->results[i])) continue;
    snprintf(names[count], NAME_LENGTH, "%s, %.32s", sim_offload_name(run->results[i].stacks.offload),
             run->results[i].stacks.map);
    for (uint32_t k = 0; k < count; k++) distinct = distinct && strcmp(names[k], names[count]) != 0;
    count++;
  }
  count = 0;
  for (uint32_t i = 0; i < run->result_count && !distinct; i++) {
    const char *text = run->results[i].memory;
    size_t length = strlen(text), most = 30;
    if (has_stacks(&run->results[i]))
      snprintf(names[count++], NAME_LENGTH, "%s%.*s", length > most ? "..." : "", (int)most,
               length > most ? text + length - most : text);
  }
}

typedef struct unit {
  double size;
  const char *name;
} unit;

static unit choose_unit(double most, const unit *units, size_t count) {
  size_t at = 0;
  while (at + 1 < count && most >= 2 * units[at + 1].size) at++;
  return units[at];
}

/* The values of a panel, one group after another. */
typedef struct values {
  double numbers[5 * BARS_GROUPS], most;
} values;

static void put(values *v, uint32_t at, double number) {
  v->numbers[at] = number;
  v->most = fmax(v->most, number);
}

static void scale(values *v, uint32_t count, double size) {
  for (uint32_t i = 0; i < count; i++) v->numbers[i] /= size;
}

typedef struct numbers {
  values speed, traffic, energy, shares, none;
  uint32_t count;
} numbers;

static void add_numbers(const report_run *run, const sim_result *r, numbers *v) {
  const sim_stacks *s = &r->stacks;
  const double joule[] = {s->link_joule, s->idle_joule, s->activation_joule, s->read_joule, s->sm_joule};
  const uint64_t bytes[] = {stacks_sum(s, s->tx), stacks_sum(s, s->rx), stacks_cross(s)};
  const double parts[] = {sim_stacks_colocation(s), stacks_ratio(s->offloaded, s->instances),
                          stacks_ratio(s->offloaded_instructions, r->counters.warp_instructions)};
  double speed = report_stacks_speed(run, r);
  uint32_t n = v->count++;
  put(&v->speed, n, speed > 0 ? speed : NAN);
  for (uint32_t k = 0; k < 3; k++) {
    put(&v->traffic, 3 * n + k, (double)bytes[k]);
    put(&v->shares, 3 * n + k, 100 * parts[k]);
  }
  for (uint32_t k = 0; k < 5; k++) put(&v->energy, 5 * n + k, joule[k]);
}

void figure_stacks(const report_run *run, ff_text *out) {
  static const char *speed_of[] = {"speed of the kernels, the first simulation's is 1"},
                    *traffic_of[] = {"from the GPU (TX)", "to the GPU (RX)", "between stacks"};
  static const char *energy_of[] = {"links that carry", "idle links", "rows opened", "bits read and written", "SMs"},
                    *share_of[] = {"instances colocated", "instances offloaded", "instructions in stacks"};
  static const unit bytes[] = {
      {1, "bytes"}, {1024, "KiB"}, {1 << 20, "MiB"}, {1 << 30, "GiB"}, {1099511627776.0, "TiB"}};
  static const unit joules[] = {{1e-12, "pJ"}, {1e-9, "nJ"}, {1e-6, "uJ"}, {1e-3, "mJ"}, {1, "J"}};
  char(*names)[NAME_LENGTH] = ff_alloc((run->result_count + 1) * sizeof *names);
  const char *groups[BARS_GROUPS];
  numbers v = {0};
  const sim_result *any = NULL;
  name_groups(run, names);
  for (uint32_t i = 0; i < run->result_count && v.count < BARS_GROUPS; i++) {
    if (!has_stacks(&run->results[i])) continue;
    any = &run->results[i];
    groups[v.count] = names[v.count];
    add_numbers(run, any, &v);
  }
  unit b = choose_unit(v.traffic.most, bytes, sizeof bytes / sizeof *bytes),
       j = choose_unit(v.energy.most, joules, sizeof joules / sizeof *joules);
  scale(&v.traffic, 3 * v.count, b.size);
  scale(&v.energy, 5 * v.count, j.size);
  for (uint32_t i = 0; i < 5 * BARS_GROUPS; i++) v.none.numbers[i] = NAN;
  const bars_panel panels[PANELS] = {{.title = "Speed",
                                      .axis = "times",
                                      .groups = groups,
                                      .series = speed_of,
                                      .group_count = v.count,
                                      .series_count = 1,
                                      .ours = v.speed.numbers,
                                      .paper = v.none.numbers,
                                      .line = 1},
                                     {.title = "Off-chip traffic",
                                      .axis = b.name,
                                      .groups = groups,
                                      .series = traffic_of,
                                      .group_count = v.count,
                                      .series_count = 3,
                                      .ours = v.traffic.numbers,
                                      .paper = v.none.numbers,
                                      .line = NAN},
                                     {.title = "Colocated and offloaded",
                                      .axis = "%",
                                      .groups = groups,
                                      .series = share_of,
                                      .group_count = v.count,
                                      .series_count = 3,
                                      .ours = v.shares.numbers,
                                      .paper = v.none.numbers,
                                      .line = NAN},
                                     {.title = "Energy",
                                      .axis = j.name,
                                      .groups = groups,
                                      .series = energy_of,
                                      .group_count = v.count,
                                      .series_count = 4,
                                      .ours = v.energy.numbers,
                                      .paper = v.none.numbers,
                                      .line = NAN}};
  sim_result bare = any ? *any : (sim_result){0};
  bare.history = NULL;
  char *title = figure_title(run, &bare);
  bars_write(title, "", panels, PANELS, out);
  free(title);
  free(names);
}

/* ---- links ---- */

enum { CELL = 86, ROW = 44, LEFT = 150, TOP = 84, SHADES = 6 };
static const char *const shades[SHADES] = {"#cfe1f2", "#a3cbe6", "#6aaed6", "#3989c1", "#1561a9", "#08306b"};

/* From the GPU or a stack (row) to the GPU or a stack (column); 0 is the GPU. */
static uint64_t bytes_between(const sim_stacks *s, uint32_t from, uint32_t to) {
  if (!from && !to) return 0;
  return !from ? s->tx[to - 1] : !to ? s->rx[from - 1] : s->cross[from - 1][to - 1];
}

static uint64_t most_of(const report_run *run) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < run->result_count; i++) {
    const sim_stacks *s = &run->results[i].stacks;
    for (uint32_t from = 0; s->count && from <= s->count; from++)
      for (uint32_t to = 0; to <= s->count; to++)
        most = bytes_between(s, from, to) > most ? bytes_between(s, from, to) : most;
  }
  return most;
}

static void add_cell(double x, double y, uint64_t bytes, uint64_t most, ff_text *out) {
  char style[64], text[32];
  int shade = (int)fmin(SHADES - 1, floor(SHADES * (double)bytes / (double)(most ? most : 1)));
  snprintf(style, sizeof style, "fill=\"%s\" stroke=\"#fff\"", bytes ? shades[shade] : "#f4f4f4");
  svg_rect(out, x, y, CELL, ROW, style);
  snprintf(style, sizeof style, "text-anchor=\"middle\" font-size=\"12\" fill=\"%s\"",
           bytes && shade >= 3 ? "#fff" : "#222");
  svg_text(out, x + CELL / 2.0, y + ROW / 2.0 + 4, style, ff_format_bytes(bytes, text, sizeof text));
}

static void end_name(uint32_t end, char *text, size_t size) {
  if (end) snprintf(text, size, "stack %u", end - 1);
  else snprintf(text, size, "GPU");
}

bool figure_stack_links(const report_run *run, const sim_result *result, ff_text *out) {
  const sim_stacks *s = &result->stacks;
  uint64_t most = most_of(run);
  char text[sizeof result->memory + 64];
  if (!has_stacks(result)) return false;
  double width = LEFT + CELL * (s->count + 1.0) + 20;
  snprintf(text, sizeof text, "Bytes by link, memory %s", result->memory);
  svg_begin(width < 700 ? 700 : width, TOP + ROW * (s->count + 1.0) + 20, text, out);
  for (uint32_t end = 0; end <= s->count; end++) {
    end_name(end, text, sizeof text);
    svg_text(out, LEFT + CELL * (end + 0.5), TOP - 8, "text-anchor=\"middle\" font-size=\"12\"", text);
    svg_text(out, LEFT - 10, TOP + ROW * (end + 0.5) + 4, "text-anchor=\"end\" font-size=\"12\"", text);
  }
  svg_text(out, LEFT - 10, TOP - 8, "text-anchor=\"end\" font-size=\"12\" fill=\"#444\"", "from \\ to");
  for (uint32_t from = 0; from <= s->count; from++)
    for (uint32_t to = 0; to <= s->count; to++)
      if (from != to)
        add_cell(LEFT + (double)CELL * to, TOP + (double)ROW * from, bytes_between(s, from, to), most, out);
  svg_end(out);
  return true;
}
