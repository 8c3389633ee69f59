/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault share --one`: one simulation, the first program in partition 0, each further one looping in the next
 * partition.
 *
 * With the same arguments the same bytes; the JSON is what the other forms of the command read of
 * each of their simulations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/share_command.h"
#include "report/table.h"
#include "report/text_tiers.h"

static void show(void *context, double done) {
  bool *shown = context;
  fprintf(stderr, "\rfarfault: share: %.0f %%\033[K", 100 * done);
  fflush(stderr);
  *shown = true;
}

static void time_cell(table *t, double us) {
  char text[32];
  table_cell(t, "%s", report_format_time((uint64_t)(us * 1e6 + 0.5), text, sizeof text));
}

static void add_row(const share_arguments *a, const share_matrix *m, uint32_t partition, int32_t program,
                    const share_outcome *o, table *t) {
  table_cell(t, "%u", partition);
  table_cell_cut(t, program < 0 ? "(idle)" : m->programs.items[program].label, 24);
  table_cell(t, "%u", o->sms);
  table_cell(t, o->colours ? "%u" : "-", o->colours);
  time_cell(t, o->kernel_us);
  time_cell(t, o->total_us);
  table_cell(t, "%llu", (unsigned long long)o->launches);
  table_cell(t, program >= 0 && partition ? "%llu" : "-", (unsigned long long)o->passes);
  table_cell(t, "%.1f", o->dram_gbs);
  table_cell(t, "%.1f %%", 100 * o->dram_share);
  table_cell(t, "%.1f", o->dram_unused_gbs);
  if (!a->borrow) return;
  time_cell(t, o->borrowed_us);
  time_cell(t, o->take_back_us);
}

/* What each program took of the tiers below GPU memory; nothing where there are none. */
static void add_tiers(const share_matrix *m, const share_request *request, const share_outcome *outcomes,
                      ff_text *out) {
  static const char *const names[] = {"partition", "program", TEXT_TIER_NAMES, NULL};
  bool any = false;
  table t;
  table_start(&t, "rl" TEXT_TIER_ALIGN);
  t.spare = (const char *const[]){TEXT_TIER_SPARE, NULL};
  table_names(&t, names);
  for (uint32_t i = 0; i < request->count; i++)
    for (uint32_t n = 0; n < outcomes[i].tiers.count; n++, any = true) {
      if (n) table_cell(&t, "%s", "");
      else table_cell(&t, "%u", i);
      table_cell_cut(&t, n ? "" : m->programs.items[request->programs[i]].label, 24);
      text_tier_cells(&outcomes[i].tiers.of[n], &t);
    }
  if (any) table_write(&t, 0, out);
  table_free(&t);
}

static int print(const share_arguments *a, const share_matrix *m, const share_request *request,
                 const share_outcome *outcomes) {
  static const char *const head[] = {"partition",      "program",           "SMs",       "colours", "kernel time",
                                     "time",           "kernels",           "rounds",    "GB/s",    "of its own",
                                     "GB/s left idle", "had what was lent", "taken back"};
  int columns = a->borrow ? 13 : 11;
  ff_text out = {0};
  table t;
  table_start(&t, a->borrow ? "rlrrrrrrrrrrr" : "rlrrrrrrrrr");
  for (int i = 0; i < columns; i++) table_cell(&t, "%s", head[i]);
  for (uint32_t i = 0; i < request->count; i++) add_row(a, m, i, request->programs[i], &outcomes[i], &t);
  table_write(&t, 0, &out);
  table_free(&t);
  add_tiers(m, request, outcomes, &out);
  int status = cli_print(&out);
  free(out.chars);
  return status;
}

/* The programs in the order of the partitions; those without one are idle. */
static void make_request(const share_arguments *a, const share_matrix *m, share_request *request) {
  *request = (share_request){.isolation = m->isolations[0], .borrow = a->borrow, .count = m->part_count};
  for (uint32_t i = 0; i < m->part_count; i++) {
    request->parts[i] = m->parts[i];
    request->profiles[i] = m->profiles[i];
    request->programs[i] = -1;
    for (uint32_t j = 0; i < a->files.count && j < m->programs.count; j++)
      if (!strcmp(m->programs.items[j].path, a->files.items[i])) request->programs[i] = (int32_t)j;
  }
}

static ff_status simulate(const share_arguments *a, const share_matrix *m, const share_request *request,
                          share_outcome *outcomes, ff_error *error) {
  share_program programs[SHARE_PROGRAMS] = {0};
  bool shown = false;
  share_scenario scenario = {.spec = &a->spec,
                             .manager = a->setup.managers,
                             .host_memory = m->host_memory,
                             .isolation = request->isolation,
                             .borrow = request->borrow,
                             .programs = programs,
                             .count = request->count,
                             .progress = isatty(STDERR_FILENO) ? show : NULL,
                             .context = &shown};
  for (uint32_t i = 0; i < request->count; i++)
    programs[i] =
        (share_program){.trace = request->programs[i] < 0 ? NULL : m->programs.items[request->programs[i]].path,
                        .sm_share = request->parts[i].sm,
                        .memory_share = request->parts[i].memory,
                        .profile = request->profiles[i],
                        .loops = i > 0};
  ff_status status = share_run(&scenario, outcomes, error);
  if (shown) fprintf(stderr, "\r\033[K");
  return status;
}

static int exit_status_of(ff_status status) {
  switch (status) {
  case FF_PARSE:
  case FF_IO:
  case FF_NOT_FOUND: return CLI_BAD_FILE;
  case FF_INVALID:
  case FF_LIMIT: return CLI_USAGE;
  default: return CLI_FAILED;
  }
}

int share_one(const share_arguments *a, const share_matrix *m) {
  share_outcome outcomes[SHARE_PROGRAMS];
  share_request request;
  ff_error error;
  ff_text json = {0};
  memset(outcomes, 0, sizeof outcomes);
  make_request(a, m, &request);
  ff_status failed = simulate(a, m, &request, outcomes, &error);
  if (failed) return cli_fail(exit_status_of(failed), "%s", error.message);
  int status = print(a, m, &request, outcomes);
  for (uint32_t i = 0; i < request.count; i++)
    if (outcomes[i].error[0]) status = cli_fail(CLI_FAILED, "partition %u: %s", i, outcomes[i].error);
  share_outcomes_write(outcomes, request.count, &json);
  if (a->json && ff_file_write(a->json, json.chars, json.length, &error))
    status = cli_fail(CLI_FAILED, "%s", error.message);
  free(json.chars);
  return status;
}
