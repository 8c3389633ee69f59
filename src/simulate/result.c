/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a result. All texts and lists are made with it, so that reading one changes nothing in it and any
 * number of threads may. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "simulate/simulate.h"

uint32_t ff_simulate_version(void) { return FF_SIMULATE_VERSION; }
const char *ff_simulate_release(void) { return FARFAULT_VERSION; }

const char *ff_simulate_status_name(ff_simulate_status status) {
  switch (status) {
#define NAME(x) \
  case x: return #x;
    NAME(FF_SIMULATE_OK)
    NAME(FF_SIMULATE_INVALID)
    NAME(FF_SIMULATE_BAD_FILE)
    NAME(FF_SIMULATE_NO_PROGRAM)
    NAME(FF_SIMULATE_NOT_INSTALLED)
    NAME(FF_SIMULATE_NO_RESULTS)
    NAME(FF_SIMULATE_STOPPED)
    NAME(FF_SIMULATE_FAILED)
#undef NAME
  }
  return "unknown";
}

ff_simulate_status simulate_fail(ff_simulate_error *error, ff_simulate_status status, const char *format, ...) {
  if (!error) return status;
  va_list args;
  va_start(args, format);
  vsnprintf(error->message, sizeof error->message, format, args);
  va_end(args);
  error->status = status;
  return status;
}

/* ---- making ---- */

static ff_simulate_kernel *list_kernels(const sim_result *from) {
  ff_simulate_kernel *list = ff_alloc((from->kernel_count + 1) * sizeof *list);
  for (uint32_t i = 0; i < from->kernel_count; i++)
    list[i] = (ff_simulate_kernel){.name = from->kernels[i].name, .range = from->kernels[i].range};
  return list;
}

static ff_simulate_allocation *list_allocations(const sim_result *from) {
  ff_simulate_allocation *list = ff_alloc((from->allocation_count + 1) * sizeof *list);
  for (uint32_t i = 0; i < from->allocation_count; i++) {
    const sim_allocation_result *a = &from->allocations[i];
    list[i] = (ff_simulate_allocation){.name = a->name,
                                       .id = a->id,
                                       .address = a->address,
                                       .bytes = a->bytes,
                                       .managed = a->managed,
                                       .pinned = a->pinned};
  }
  return list;
}

static void add_simulation(ff_simulate_result *result, uint32_t process, const sim_result *from) {
  result->simulations = ff_realloc(result->simulations, (result->simulation_count + 1) * sizeof *result->simulations);
  const uint32_t i = result->simulation_count++;
  result->simulations[i].from = from;
  result->simulations[i].kernels = list_kernels(from);
  result->simulations[i].allocations = list_allocations(from);
  result->simulations[i].shown = (ff_simulate_simulation){.memory = from->memory,
                                                          .machine = from->machine,
                                                          .error = from->error[0] ? from->error : NULL,
                                                          .process = process,
                                                          .device = (int32_t)from->device - 1,
                                                          .complete = from->complete,
                                                          .ratio = report_ratio(&result->processes[process].run, from),
                                                          .kernel_count = from->kernel_count,
                                                          .allocation_count = from->allocation_count};
}

ff_simulate_result *simulate_result_make(report_run *runs, uint32_t count, int exit_status) {
  ff_simulate_result *result = ff_alloc(sizeof *result);
  result->processes = ff_alloc((count + 1) * sizeof *result->processes);
  result->process_count = count;
  result->exit_status = exit_status;
  for (uint32_t p = 0; p < count; p++) {
    ff_text json = {0};
    report_json_write_whole(&runs[p], &json);
    result->processes[p].run = runs[p];
    result->processes[p].json = json.chars;
    result->processes[p].shown = (ff_simulate_process){.command = runs[p].command,
                                                       .complete = runs[p].complete,
                                                       .notes = (const char *const *)runs[p].notes,
                                                       .note_count = runs[p].note_count};
    for (uint32_t i = 0; i < runs[p].result_count; i++) add_simulation(result, p, &runs[p].results[i]);
  }
  return result;
}

void ff_simulate_free(ff_simulate_result *result) {
  if (!result) return;
  for (uint32_t i = 0; i < result->simulation_count; i++) {
    free(result->simulations[i].kernels);
    free(result->simulations[i].allocations);
  }
  for (uint32_t p = 0; p < result->process_count; p++) {
    report_free(&result->processes[p].run);
    free(result->processes[p].json);
  }
  free(result->simulations);
  free(result->processes);
  free(result);
}

ff_simulate_status ff_simulate_read(const char *path, ff_simulate_result **out, ff_simulate_error *error) {
  report_run run;
  ff_error why;
  if (!out) return simulate_fail(error, FF_SIMULATE_INVALID, "there is no place for the result");
  *out = NULL;
  if (!path || !*path) return simulate_fail(error, FF_SIMULATE_INVALID, "the file's name is empty");
  if (report_file_read(path, &run, &why)) return simulate_fail(error, FF_SIMULATE_BAD_FILE, "%s", why.message);
  *out = simulate_result_make(&run, 1, 0);
  return FF_SIMULATE_OK;
}

/* ---- asking ---- */

int ff_simulate_exit_status(const ff_simulate_result *result) { return result->exit_status; }
uint32_t ff_simulate_process_count(const ff_simulate_result *result) { return result->process_count; }
uint32_t ff_simulate_count(const ff_simulate_result *result) { return result->simulation_count; }

const ff_simulate_process *ff_simulate_get_process(const ff_simulate_result *result, uint32_t process) {
  return process < result->process_count ? &result->processes[process].shown : NULL;
}

const char *ff_simulate_json(const ff_simulate_result *result, uint32_t process) {
  return process < result->process_count ? result->processes[process].json : NULL;
}

char *ff_simulate_table(const ff_simulate_result *result, uint32_t process, bool verbose) {
  if (process >= result->process_count) return NULL;
  ff_text text = {0};
  report_table_write(&result->processes[process].run, &(report_style){.verbose = verbose}, &text);
  return text.chars ? text.chars : ff_strdup("");
}

void ff_simulate_free_text(char *text) { free(text); }

const ff_simulate_simulation *ff_simulate_get(const ff_simulate_result *result, uint32_t index) {
  return index < result->simulation_count ? &result->simulations[index].shown : NULL;
}

int64_t ff_simulate_find(const ff_simulate_result *result, const char *memory) {
  for (uint32_t i = 0; memory && i < result->simulation_count; i++)
    if (!strcmp(result->simulations[i].shown.memory, memory)) return i;
  return -1;
}

const ff_simulate_kernel *ff_simulate_get_kernel(const ff_simulate_result *result, uint32_t index, uint32_t kernel) {
  const ff_simulate_simulation *simulation = ff_simulate_get(result, index);
  return simulation && kernel < simulation->kernel_count ? &result->simulations[index].kernels[kernel] : NULL;
}

const ff_simulate_allocation *ff_simulate_get_allocation(const ff_simulate_result *result, uint32_t index,
                                                         uint32_t allocation) {
  const ff_simulate_simulation *simulation = ff_simulate_get(result, index);
  return simulation && allocation < simulation->allocation_count ? &result->simulations[index].allocations[allocation]
                                                                 : NULL;
}

/* ---- counters ---- */

static const ff_simulate_counter_info counter_infos[] = {
#define X(name, unit, help) {#name, unit, help},
#include "machine/observe/counters.def"
#undef X
};
enum { COUNTERS = sizeof counter_infos / sizeof *counter_infos };
_Static_assert(sizeof(sim_counters) == COUNTERS * sizeof(uint64_t), "every counter has a name");

const ff_simulate_counter_info *ff_simulate_counters(uint32_t *count) {
  if (count) *count = COUNTERS;
  return counter_infos;
}

static bool get_counter(const sim_counters *counters, const char *name, uint64_t *value) {
  for (uint32_t i = 0; name && i < COUNTERS; i++) {
    if (strcmp(counter_infos[i].name, name) != 0) continue;
    memcpy(value, (const char *)counters + i * sizeof *value, sizeof *value);
    return true;
  }
  return false;
}

bool ff_simulate_counter(const ff_simulate_result *result, uint32_t index, const char *name, uint64_t *value) {
  return index < result->simulation_count && get_counter(&result->simulations[index].from->counters, name, value);
}

bool ff_simulate_kernel_counter(const ff_simulate_result *result, uint32_t index, uint32_t kernel, const char *name,
                                uint64_t *value) {
  return ff_simulate_get_kernel(result, index, kernel) &&
         get_counter(&result->simulations[index].from->kernels[kernel].counters, name, value);
}

bool ff_simulate_allocation_counter(const ff_simulate_result *result, uint32_t index, uint32_t allocation,
                                    const char *name, uint64_t *value) {
  return ff_simulate_get_allocation(result, index, allocation) &&
         get_counter(&result->simulations[index].from->allocations[allocation].counters, name, value);
}
