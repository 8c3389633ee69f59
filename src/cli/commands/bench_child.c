/* SPDX-License-Identifier: Apache-2.0 */
/* One measurement in a process of its own: the virtual GPU reads machine and manager at its first call, once per
 * process, and leaves what the simulation counted when the process ends. A real GPU ignores all that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cli/commands/bench_command.h"
#include "cli/running/run.h"

typedef struct shared { /* with the child */
  ff_status status;
  ff_error error;
  _Alignas(16) unsigned char result[];
} shared;

typedef struct child_context {
  const bench_job *job;
  shared *area;
} child_context;

static int child_body(void *context) {
  child_context *c = context;
  c->area->status = c->job->body(c->job->context, c->area->result, &c->area->error);
  return c->area->status ? CLI_FAILED : CLI_DONE;
}

static ff_status fill_setup(const bench_job *job, cli_setup *setup, ff_error *error) {
  *setup = (cli_setup){0};
  snprintf(setup->managers, sizeof setup->managers, "%s", job->memory);
  snprintf(setup->machine, sizeof setup->machine, "%s", job->machine);
  snprintf(setup->choices.set, sizeof setup->choices.set, "%s", job->set);
  if (job->gpu_memory) snprintf(setup->choices.text[SIM_CHOICE_GPU_MEMORY], SIM_CHOICE_LENGTH, "%s", job->gpu_memory);
  return cli_setup_check(setup, error);
}

/* What the simulation has counted; the run goes to job->keep. */
static int take_results(const bench_job *job, const char *folder, bench_moved *moved) {
  run_results results;
  int status = CLI_DONE;
  run_results_read(folder, &results);
  *moved = (bench_moved){0};
  for (uint32_t i = 0; i < results.count; i++) {
    const report_run *run = &results.runs[i];
    if (!run->result_count) continue;
    const sim_result *first = &run->results[0];
    if (first->error[0]) status = cli_fail(CLI_FAILED, "%s: %s", job->label, first->error);
    *moved = (bench_moved){true, first->counters.h2d_bytes, first->counters.d2h_bytes};
  }
  if (results.lost || (job->keep && results.count && !run_outputs_write(&(run_outputs){.output = job->keep}, &results)))
    status = CLI_FAILED;
  run_results_free(&results);
  return status;
}

static int run_in(const bench_job *job, const cli_setup *setup, const char *folder, shared *area, bench_moved *moved) {
  child_context context = {job, area};
  run_child child = {
      .folder = folder, .setup = setup, .history = job->keep != NULL, .body = child_body, .context = &context};
  run_end end;
  ff_error error;
  if (run_child_wait(&child, &end, &error)) return cli_fail(CLI_FAILED, "%s", error.message);
  if (end.signal)
    return cli_fail(end.status, "%s: ended by signal %d (%s)", job->label, end.signal, strsignal(end.signal));
  if (area->status) return cli_fail(CLI_FAILED, "%s: %s", job->label, area->error.message);
  if (end.status) return cli_fail(CLI_FAILED, "%s: its process ended with status %d", job->label, end.status);
  return take_results(job, folder, moved);
}

int bench_child_run(const bench_job *job, void *result, bench_moved *moved) {
  ff_error error;
  cli_setup *setup = malloc(sizeof *setup);
  size_t bytes = sizeof(shared) + job->bytes;
  shared *area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  char *folder = setup && area != MAP_FAILED ? run_make_folder() : NULL;
  int status = CLI_FAILED;
  if (!setup || area == MAP_FAILED) cli_fail(CLI_FAILED, "there is no memory for a measurement");
  else if (fill_setup(job, setup, &error)) status = cli_fail(CLI_SETUP_STATUS(error), "%s", error.message);
  else if (folder) status = run_in(job, setup, folder, area, moved);
  if (!status) memcpy(result, area->result, job->bytes);
  if (folder) run_remove_folder(folder);
  if (area != MAP_FAILED) munmap(area, bytes);
  free(setup);
  return status;
}
