/* SPDX-License-Identifier: Apache-2.0 */
/* The first pass over a recorded program, for simulations with memory stacks: see near_data.h.
 *
 * Choices that are refused are refused before the pass. Simulations that neither offload nor look for a map need no
 * pass; they get one only where a way or a map was asked for by name, to count their instances. */
#include "session/near_data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "offload/profile.h"
#include "offload/candidate_table.h"

struct near_data {
  machine_spec spec;
  offload_table *table;
  offload_profile *profile;
  offload_profile_options pass;
  sim_offloading offloading;
};

/* ---- what is asked for ---- */

typedef struct wishes {
  bool named;  /* a way of offloading, or a map */
  bool needed; /* it cannot be done without marks */
  bool oracle;
  uint64_t oracle_stacks; /* of the machines of those that have an oracle's map */
} wishes;

/* One simulation's text. */
static ff_status read_one(const char *text, const session_options *options, const machine_spec *spec,
                          sim_choice *choice, wishes *w, ff_error *error) {
  ff_status status = sim_choice_read(text, &options->choices, spec, choice, error);
  if (status) return status;
  const sim_options *o = &choice->options;
  machine_spec own = *spec;
  sim_map_choice map = {0};
  status = machine_spec_set_all(&own, o->set, error);
  if (!status && o->map) status = sim_map_read(o->map, own.stack_count, &map, error);
  if (!status)
    status = sim_offload_check(own.name, own.stack_count, o->offload, o->map, &sim_offloading_nothing, error);
  if (status) return status;
  w->named = w->named || (own.stack_count && (o->map || choice->choices.text[SIM_CHOICE_OFFLOAD][0]));
  w->needed = w->needed || o->offload || map.kind != SIM_MAP_FIXED;
  if (map.kind != SIM_MAP_ORACLE) return FF_OK;
  if (w->oracle && w->oracle_stacks != own.stack_count)
    return ff_fail(error, FF_INVALID,
                   "the oracle's maps are made for one number of stacks, not for %" PRIu64 " and %" PRIu64,
                   w->oracle_stacks, own.stack_count);
  w->oracle = true;
  w->oracle_stacks = own.stack_count;
  return FF_OK;
}

static ff_status read_wishes(const session_options *options, const machine_spec *spec, wishes *w, ff_error *error) {
  char names[sizeof options->managers], *rest = NULL;
  sim_choice *choice = ff_alloc(sizeof *choice);
  ff_status status = FF_OK;
  strcpy(names, options->managers);
  for (char *name = strtok_r(names, ", ", &rest); name && !status; name = strtok_r(NULL, ", ", &rest)) {
    status = read_one(name, options, spec, choice, w, error);
    if (status) status = ff_fail_at(error, status, name);
  }
  free(choice);
  return status;
}

static ff_status read_machine(const session_options *options, machine_spec *spec, ff_error *error) {
  if (options->problem[0]) return ff_fail(error, FF_INVALID, "%s", options->problem);
  ff_status status = machine_spec_load(options->machine[0] ? options->machine : MACHINE_DEFAULT, spec, error);
  return status ? status : machine_spec_set_all(spec, options->choices.set, error);
}

/* ---- the pass ---- */

/* A program without instances has no maps: the baseline's is everybody's. */
static void fill_offloading(near_data *data) {
  data->offloading = sim_offloading_nothing;
  if (data->profile) offload_profile_offloading(data->profile, &data->pass, &data->offloading);
  data->offloading.any = offload_table_any;
  if (!data->offloading.oracle) data->offloading.oracle = sim_offloading_nothing.oracle;
  if (!data->offloading.oracle_linear) data->offloading.oracle_linear = sim_offloading_nothing.oracle_linear;
}

static near_data *run_pass(trace_file *file, const machine_spec *spec, const trace_file_watch *watch) {
  near_data *data = ff_alloc(sizeof *data);
  data->spec = *spec;
  data->table = offload_table_create();
  data->pass = (offload_profile_options){.spec = &data->spec,
                                         .find = offload_table_find,
                                         .operation = offload_table_operation,
                                         .context = data->table,
                                         .watch = watch};
  data->profile = offload_profile_run(file, &data->pass);
  data->pass.watch = NULL;
  fill_offloading(data);
  return data;
}

ff_status near_data_prepare(trace_file *file, session_options *options, const trace_file_watch *watch, near_data **out,
                            ff_error *error) {
  machine_spec spec;
  wishes w = {0};
  *out = NULL;
  ff_status status = read_machine(options, &spec, error);
  if (!status) status = read_wishes(options, &spec, &w, error);
  if (status || (!w.named && !w.needed)) return status;
  if (!trace_file_information(file)->about.marks) {
    if (!w.needed) return FF_OK;
    return ff_fail(
        error, FF_UNSUPPORTED,
        "the trace has no marks of the blocks that could be offloaded: an earlier farfault recorded it, or it is another simulator's; "
        "`farfault record` makes one that has them");
  }
  if (w.oracle) spec.stack_count = w.oracle_stacks;
  *out = run_pass(file, &spec, watch);
  options->marks = true;
  options->offloading = &(*out)->offloading;
  return FF_OK;
}

const char *near_data_problem(const near_data *data) { return data ? offload_table_problem(data->table) : NULL; }

void near_data_free(near_data *data) {
  if (!data) return;
  offload_profile_free(data->profile);
  offload_table_free(data->table);
  free(data);
}
