/* SPDX-License-Identifier: Apache-2.0 */
/* What `farfault bench pipeline` prints: a table per shape, CSV, JSON, the picture. A ratio is a time over that of
 * `streams`. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "bench/pipeline.h"
#include "bench/pipeline_private.h"
#include "report/bars.h"
#include "report/report.h"
#include "report/table.h"

static double ratio(const pipeline_machine *machine, uint32_t way) {
  const pipeline_result *mine = &machine->results[way], *streams = &machine->results[PIPELINE_STREAMS];
  return mine->known && streams->known && streams->seconds > 0 ? mine->seconds / streams->seconds : NAN;
}

static const pipeline_machine *machine_of(const pipeline_report *report, uint32_t plan, uint32_t machine) {
  return &report->machines[plan * report->machine_count + machine];
}

static void bytes_cell(table *t, uint64_t bytes) {
  char text[32];
  table_cell(t, "%s", bytes == UINT64_MAX ? "-" : ff_format_bytes(bytes, text, sizeof text));
}

static void check_cell(table *t, const pipeline_result *result) {
  if (!result->checked) table_cell(t, "-");
  else if (result->wrong)
    table_cell(t, "%llu of %llu WRONG", (unsigned long long)result->wrong, (unsigned long long)result->checked);
  else table_cell(t, "right");
}

static void write_title(const pipeline_plan *plan, ff_text *out) {
  char data[32], budget[32], tile[32];
  ff_format_bytes(in_bytes(plan) + out_bytes(plan), data, sizeof data);
  ff_format_bytes(plan->budget, budget, sizeof budget);
  ff_format_bytes(plan->tile, tile, sizeof tile);
  ff_text_add(out, "%s: %s of data, %s of GPU memory", pipeline_shape_names[plan->shape], data, budget);
  if (is_matmul(plan)) ff_text_add(out, ", %u x %u in %u panels of %s\n", plan->side, plan->side, plan->tiles, tile);
  else ff_text_add(out, ", tiles of %s, %u rounds\n", tile, plan->rounds);
}

static void write_plan(const pipeline_report *report, uint32_t plan, ff_text *out) {
  table t;
  char time[32];
  write_title(&report->plans[plan], out);
  table_start(&t, "llrrrrl");
  const char *const head[] = {"machine", "program", "time", "ratio", "to GPU", "to CPU", "result"};
  for (int i = 0; i < 7; i++) table_cell(&t, "%s", head[i]);
  for (uint32_t m = 0; m < report->machine_count; m++)
    for (uint32_t way = 0; way < PIPELINE_WAYS; way++) {
      const pipeline_machine *machine = machine_of(report, plan, m);
      const pipeline_result *result = &machine->results[way];
      if (!result->known) continue;
      table_cell(&t, "%s", machine->name);
      table_cell(&t, "%s", pipeline_ways[way].name);
      table_cell(&t, "%s", report_format_time((uint64_t)(result->seconds * 1e12 + 0.5), time, sizeof time));
      if (isnan(ratio(machine, way))) table_cell(&t, "-");
      else table_cell(&t, "%.3f", ratio(machine, way));
      bytes_cell(&t, result->to_gpu);
      bytes_cell(&t, result->from_gpu);
      check_cell(&t, result);
    }
  table_write(&t, 0, out);
  table_free(&t);
}

void pipeline_table(const pipeline_report *report, ff_text *out) {
  for (uint32_t plan = 0; plan < report->plan_count; plan++) {
    if (plan) ff_text_add(out, "\n");
    write_plan(report, plan, out);
  }
}

/* ---- CSV and JSON ---- */

static void csv_bytes(uint64_t bytes, ff_text *out) {
  if (bytes == UINT64_MAX) ff_text_add(out, ",");
  else ff_text_add(out, ",%llu", (unsigned long long)bytes);
}

void pipeline_csv(const pipeline_report *report, ff_text *out) {
  ff_text_add(
      out,
      "shape,machine,program,data_bytes,budget_bytes,tile_bytes,seconds,ratio,to_gpu_bytes,from_gpu_bytes,checked,wrong\n");
  for (uint32_t p = 0; p < report->plan_count; p++)
    for (uint32_t m = 0; m < report->machine_count; m++)
      for (uint32_t way = 0; way < PIPELINE_WAYS; way++) {
        const pipeline_plan *plan = &report->plans[p];
        const pipeline_machine *machine = machine_of(report, p, m);
        const pipeline_result *result = &machine->results[way];
        if (!result->known) continue;
        ff_text_add(out, "%s,%s,%s,%llu,%llu,%llu,%.12f,", pipeline_shape_names[plan->shape], machine->name,
                    pipeline_ways[way].key, (unsigned long long)(in_bytes(plan) + out_bytes(plan)),
                    (unsigned long long)plan->budget, (unsigned long long)plan->tile, result->seconds);
        if (!isnan(ratio(machine, way))) ff_text_add(out, "%.6f", ratio(machine, way));
        csv_bytes(result->to_gpu, out);
        csv_bytes(result->from_gpu, out);
        ff_text_add(out, ",%llu,%llu\n", (unsigned long long)result->checked, (unsigned long long)result->wrong);
      }
}

static json_t *whole(uint64_t value) { return value == UINT64_MAX ? json_null() : json_integer((json_int_t)value); }

static json_t *machine_value(const pipeline_machine *machine) {
  json_t *object = json_object(), *programs = json_object();
  json_object_set_new(object, "machine", json_string(machine->name));
  for (uint32_t way = 0; way < PIPELINE_WAYS; way++) {
    const pipeline_result *result = &machine->results[way];
    if (!result->known) continue;
    json_t *one = json_object();
    json_object_set_new(one, "seconds", json_real(result->seconds));
    json_object_set_new(one, "ratio", isnan(ratio(machine, way)) ? json_null() : json_real(ratio(machine, way)));
    json_object_set_new(one, "to_gpu_bytes", whole(result->to_gpu));
    json_object_set_new(one, "from_gpu_bytes", whole(result->from_gpu));
    json_object_set_new(one, "checked", whole(result->checked));
    json_object_set_new(one, "wrong", whole(result->wrong));
    json_object_set_new(programs, pipeline_ways[way].key, one);
  }
  json_object_set_new(object, "programs", programs);
  return object;
}

static int add_chunk(const char *bytes, size_t size, void *out) {
  ff_text_add_bytes(out, bytes, size);
  return 0;
}

void pipeline_json(const pipeline_report *report, ff_text *out) {
  json_t *root = json_object(), *shapes = json_array();
  for (uint32_t p = 0; p < report->plan_count; p++) {
    const pipeline_plan *plan = &report->plans[p];
    json_t *shape = json_object(), *machines = json_array();
    json_object_set_new(shape, "shape", json_string(pipeline_shape_names[plan->shape]));
    json_object_set_new(shape, "data_bytes", whole(in_bytes(plan) + out_bytes(plan)));
    json_object_set_new(shape, "budget_bytes", whole(plan->budget));
    json_object_set_new(shape, "tile_bytes", whole(plan->tile));
    json_object_set_new(shape, "tiles", whole(plan->tiles));
    json_object_set_new(shape, "rounds", whole(plan->rounds));
    for (uint32_t m = 0; m < report->machine_count; m++)
      json_array_append_new(machines, machine_value(machine_of(report, p, m)));
    json_object_set_new(shape, "machines", machines);
    json_array_append_new(shapes, shape);
  }
  json_object_set_new(root, "shapes", shapes);
  json_dump_callback(root, add_chunk, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
  ff_text_add(out, "\n");
  json_decref(root);
}

/* ---- the picture: a panel per machine, a group per shape ---- */

static void fill_panel(const pipeline_report *report, uint32_t m, bars_panel *panel, ff_text *title) {
  ff_text_add(title, "%s", machine_of(report, 0, m)->name);
  *panel = (bars_panel){.title = title->chars,
                        .axis = "time, streams = 1",
                        .line = 1,
                        .line_label = "written by hand with streams",
                        .group_count = report->plan_count};
  panel->groups = ff_alloc(report->plan_count * sizeof *panel->groups);
  panel->series = ff_alloc(PIPELINE_WAYS * sizeof *panel->series);
  panel->ours = ff_alloc(report->plan_count * PIPELINE_WAYS * sizeof *panel->ours);
  panel->paper = ff_alloc(report->plan_count * PIPELINE_WAYS * sizeof *panel->paper);
  for (uint32_t way = 0; way < PIPELINE_WAYS; way++) {
    if (way == PIPELINE_STREAMS) continue; /* the line */
    panel->series[panel->series_count++] = pipeline_ways[way].name;
  }
  for (uint32_t p = 0; p < report->plan_count; p++) {
    uint32_t at = p * panel->series_count;
    panel->groups[p] = pipeline_shape_names[report->plans[p].shape];
    for (uint32_t way = 0; way < PIPELINE_WAYS; way++) {
      if (way == PIPELINE_STREAMS) continue;
      panel->ours[at] = ratio(machine_of(report, p, m), way);
      panel->paper[at++] = NAN;
    }
  }
}

void pipeline_svg(const pipeline_report *report, ff_text *out) {
  bars_panel *panels = ff_alloc(report->machine_count * sizeof *panels);
  ff_text *titles = ff_alloc(report->machine_count * sizeof *titles), below = {0};
  ff_text_add(&below, "bars: %s", report->command);
  for (uint32_t m = 0; m < report->machine_count; m++) fill_panel(report, m, &panels[m], &titles[m]);
  bars_write("More data than the GPU may hold: managed memory and segments over hand-written streams", below.chars,
             panels, report->machine_count, out);
  for (uint32_t m = 0; m < report->machine_count; m++) {
    free(panels[m].groups);
    free(panels[m].series);
    free(panels[m].ours);
    free(panels[m].paper);
    free(titles[m].chars);
  }
  free(titles);
  free(panels);
  free(below.chars);
}
