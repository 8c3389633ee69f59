/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault bench managed`: each way of having memory on both sides in a process of its own, then table, files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/bench_command.h"

typedef struct context {
  managed_way way;
  uint32_t turns;
} context;

static ff_status body(const void *given, void *result, ff_error *error) {
  const context *c = given;
  return managed_measure(c->way, c->turns, result, error);
}

/* The manager that stands for the GPU's own managed memory. */
static const char *manager_of(const bench_arguments *a, const char *machine) {
  if (a->memory) return a->memory;
  return !strcmp(machine, "gm200") ? "gm200" : !strcmp(machine, "gp100") ? "gp100" : "uvm";
}

static int measure(const bench_arguments *a, const char *machine, managed_report *report) {
  for (uint32_t way = 0; way < MANAGED_WAYS; way++) {
    if (a->ways && !(a->ways & 1u << way)) continue;
    char label[320], keep[512];
    context c = {(managed_way)way, report->turns};
    snprintf(label, sizeof label, "%s on %s", managed_ways[way].name, machine);
    snprintf(keep, sizeof keep, "%s/managed-%s.ffr", a->keep ? a->keep : "", managed_ways[way].key);
    bench_job job = {.label = label,
                     .machine = machine,
                     .memory = way == MANAGED_MANAGED ? manager_of(a, machine) : "copy",
                     .set = a->setup.choices.set,
                     .keep = a->keep ? keep : NULL,
                     .body = body,
                     .context = &c,
                     .bytes = sizeof(managed_times)};
    bench_moved moved;
    int status = bench_child_run(&job, &report->times[way], &moved);
    if (status) return status;
    report->turns = report->times[way].turns;
    if (!moved.known) report->machine = report->times[way].device; /* a real GPU */
  }
  return CLI_DONE;
}

int bench_managed(const bench_arguments *a) {
  const char *machine = a->machine_count ? a->machines[0] : "gp100";
  managed_report *report = calloc(1, sizeof *report);
  if (!report) return cli_fail(CLI_FAILED, "there is no memory for the measurements");
  *report = (managed_report){
      .command = a->command, .machine = machine, .paper_gm200 = !strcmp(machine, "gm200"), .turns = a->repeat};
  int status = measure(a, machine, report);
  ff_text table = {0}, json = {0}, csv = {0}, svg = {0};
  if (!status) {
    managed_table(report, &table);
    managed_json(report, &json);
    managed_csv(report, &csv);
    managed_svg(report, &svg);
    status = bench_write(a, &table, &json, &csv, &svg);
  }
  free(table.chars);
  free(json.chars);
  free(csv.chars);
  free(svg.chars);
  free(report);
  return status;
}
