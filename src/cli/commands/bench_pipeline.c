/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault bench pipeline`: every shape on every machine in every way, each in a process of its own, then table,
 * files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/commands/bench_command.h"

#define MIB (UINT64_C(1) << 20)

typedef struct context {
  const pipeline_plan *plan;
  pipeline_way way;
} context;

typedef struct work {
  const bench_arguments *a;
  pipeline_plan plans[PIPELINE_SHAPES];
  const char *machines[BENCH_MACHINES];
  uint32_t plan_count, machine_count;
  pipeline_machine *measured; /* machine_count per plan */
  bool wrong;
} work;

static ff_status body(const void *given, void *result, ff_error *error) {
  const context *c = given;
  return pipeline_run(c->plan, c->way, result, error);
}

static int make_plans(work *w) {
  const bench_arguments *a = w->a;
  uint32_t shapes = a->shapes ? a->shapes : 1u << PIPELINE_STREAM | 1u << PIPELINE_CHAIN | 1u << PIPELINE_DIAMOND;
  for (uint32_t shape = 0; shape < PIPELINE_SHAPES; shape++) {
    ff_error error;
    bool matmul = shape == PIPELINE_MATMUL;
    uint64_t data = a->data ? a->data : matmul ? 48 * MIB : 128 * MIB, budget = a->budget ? a->budget : data / 4;
    if (!(shapes & 1u << shape)) continue;
    if (pipeline_make_plan((pipeline_shape)shape, data, budget, a->tile ? a->tile : 2 * MIB, a->rounds,
                           &w->plans[w->plan_count++], &error))
      return cli_fail(CLI_USAGE, "bench pipeline: %s", error.message);
  }
  return CLI_DONE;
}

/* One way; its result. */
static int measure(work *w, uint32_t plan, uint32_t machine, pipeline_way way) {
  const bench_arguments *a = w->a;
  const char *shape = pipeline_shape_names[w->plans[plan].shape], *name = w->machines[machine];
  pipeline_result *result = &w->measured[plan * w->machine_count + machine].results[way];
  char label[320], keep[1024], budget[32];
  context c = {&w->plans[plan], way};
  bench_moved moved;
  snprintf(label, sizeof label, "%s, %s on %s", shape, pipeline_ways[way].name, name);
  snprintf(keep, sizeof keep, "%s/%s-%s-%s.ffr", a->keep ? a->keep : "", shape, name, pipeline_ways[way].key);
  snprintf(budget, sizeof budget, "%llu", (unsigned long long)w->plans[plan].budget);
  bench_job job = {.label = label,
                   .machine = name,
                   .memory = way == PIPELINE_MANAGED && a->memory ? a->memory : pipeline_ways[way].memory,
                   .gpu_memory = way == PIPELINE_MANAGED ? budget : NULL,
                   .set = a->setup.choices.set,
                   .keep = a->keep && !strchr(name, '/') ? keep : NULL,
                   .body = body,
                   .context = &c,
                   .bytes = sizeof *result};
  int status = bench_child_run(&job, result, &moved);
  if (status) return status;
  if (moved.known && way == PIPELINE_MANAGED) {
    result->to_gpu = moved.to_gpu;
    result->from_gpu = moved.from_gpu;
  }
  if (result->wrong)
    cli_fail(0, "%s: %llu of %llu values are wrong", label, (unsigned long long)result->wrong,
             (unsigned long long)result->checked);
  w->wrong = w->wrong || result->wrong;
  if (!moved.known) { /* a real GPU: there is one */
    w->measured[plan * w->machine_count].name = result->device;
    if (w->machine_count > 1 && !machine) return -1;
  }
  return CLI_DONE;
}

static int measure_all(work *w) {
  for (uint32_t plan = 0; plan < w->plan_count; plan++)
    for (uint32_t machine = 0; machine < w->machine_count; machine++) {
      w->measured[plan * w->machine_count + machine].name = w->machines[machine];
      for (uint32_t way = 0; way < PIPELINE_WAYS; way++) {
        if (w->a->ways && !(w->a->ways & 1u << way)) continue;
        int status = measure(w, plan, machine, (pipeline_way)way);
        if (status) return status;
      }
    }
  return CLI_DONE;
}

static void choose_machines(work *w, bool one) {
  static const char *const usual[] = {"v100", "h200"};
  w->machine_count = w->a->machine_count ? w->a->machine_count : 2;
  for (uint32_t i = 0; i < w->machine_count; i++) w->machines[i] = w->a->machine_count ? w->a->machines[i] : usual[i];
  if (one) w->machine_count = 1;
  free(w->measured);
  w->measured = ff_alloc(w->machine_count * w->plan_count * sizeof *w->measured);
}

int bench_pipeline(const bench_arguments *a) {
  work w = {.a = a};
  int status = make_plans(&w);
  if (status) return status;
  choose_machines(&w, false);
  status = measure_all(&w);
  if (status < 0) { /* it was no virtual GPU: machines make no difference */
    choose_machines(&w, true);
    status = measure_all(&w);
  }
  pipeline_report report = {.command = a->command,
                            .plans = w.plans,
                            .plan_count = w.plan_count,
                            .machine_count = w.machine_count,
                            .machines = w.measured};
  ff_text table = {0}, json = {0}, csv = {0}, svg = {0};
  if (!status) {
    pipeline_table(&report, &table);
    pipeline_json(&report, &json);
    pipeline_csv(&report, &csv);
    pipeline_svg(&report, &svg);
    status = bench_write(a, &table, &json, &csv, &svg);
  }
  free(table.chars);
  free(json.chars);
  free(csv.chars);
  free(svg.chars);
  free(w.measured);
  return status ? status : w.wrong ? CLI_FAILED : CLI_DONE;
}
