/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of a reproduction that no simulation measures, but one pass over a recording (offload/profile.h): how regular
 * the accesses of offload candidates are, and what share of their instances each map to memory stacks keeps in one
 * stack.
 *
 * What such a cell measures is in its setting's key:
 *   offsets            numbers of candidates with fixed offsets
 *   by baseline, by oracle, by linear, by 7:8 ... 16:17, by learned 0.1%, by learned 0.5%, by learned 1%
 *                      instances and, of these, those in one stack; their lines and, of these, those in the stack of
 *                      their instance's first one; and the pair of bits that it is
 *
 * A candidate whose instances make one access does not count for offsets, as it has no distance. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "offload/profile.h"
#include "offload/candidate_table.h"
#include "reproduce/repro_private.h"

static repro_offsets offsets_of(const offload_profile *profile) {
  repro_offsets out = {0};
  for (uint32_t i = 0; i < profile->candidate_count; i++) {
    offload_offsets offsets = profile->candidates[i].offsets;
    out.candidates += offsets != OFFLOAD_OFFSETS_SINGLE;
    out.some_fixed += offsets == OFFLOAD_OFFSETS_SOME || offsets == OFFLOAD_OFFSETS_ALL;
    out.all_fixed += offsets == OFFLOAD_OFFSETS_ALL;
  }
  return out;
}

/* Share of the instances in one stack, of their lines beside them (offload_profile), and the lowest bit of the pair
 * that says which (0: no pair does). false: no such map. */
static bool share_by(const offload_profile *profile, const char *map, double *share, double *beside, uint32_t *lowest) {
  char name[32];
  *lowest = 0;
  *share = profile->baseline;
  *beside = profile->baseline_beside;
  if (!strcmp(map, "baseline")) return true;
  if (!strcmp(map, "linear")) return *share = profile->linear, *beside = profile->linear_beside, true;
  if (!strcmp(map, "oracle")) *lowest = profile->best_worth ? profile->best_lowest : 0;
  bool known = !strcmp(map, "oracle");
  for (uint32_t i = 0; i < OFFLOAD_PROFILE_EARLY; i++) {
    snprintf(name, sizeof name, "learned %g%%", 100 * profile->early[i].share);
    if (strcmp(map, name)) continue;
    known = true;
    *lowest = profile->early[i].worth ? profile->early[i].lowest : 0;
  }
  for (uint32_t i = 0; i < STACK_MAP_PAIRS; i++) {
    snprintf(name, sizeof name, "%u:%u", STACK_MAP_LOWEST + i, STACK_MAP_LOWEST + i + profile->bits - 1);
    if (!strcmp(map, name)) known = true, *lowest = STACK_MAP_LOWEST + i;
  }
  if (!*lowest) return known; /* no pair is worth it: the baseline's map */
  *share = profile->pairs[*lowest - STACK_MAP_LOWEST];
  *beside = profile->pairs_beside[*lowest - STACK_MAP_LOWEST];
  return true;
}

static ff_status put_cells(const offload_profile *profile, uint32_t program, repro_data *data, ff_error *error) {
  for (uint32_t i = 0; i < data->paper->setting_count; i++) {
    const repro_setting *setting = &data->paper->settings[i];
    repro_measured measured = {.offsets = offsets_of(profile)};
    double share = 0, beside = 0;
    if (setting->memory || !repro_applies(data->paper, program, i)) continue;
    if (!strncmp(setting->key, "by ", 3)) {
      if (!share_by(profile, setting->key + 3, &share, &beside, &measured.lowest_bit))
        return ff_fail(error, FF_INVALID, "no map is '%s'", setting->key + 3);
      measured.stacks.instances = profile->instances;
      measured.stacks.colocated = (uint64_t)llround(share * (double)profile->instances);
      measured.offsets.lines = profile->lines;
      measured.offsets.lines_beside = (uint64_t)llround(beside * (double)profile->lines);
    }
    repro_put(data, program, i, &measured);
  }
  return FF_OK;
}

static ff_status read_recording(const char *recording, const machine_spec *spec, uint32_t program, repro_data *data,
                                ff_error *error) {
  trace_file *file;
  ff_status status = trace_file_open(recording, &file, error);
  if (status) return status;
  offload_table *table = offload_table_create();
  offload_profile_options options = {
      .spec = spec, .find = offload_table_find, .operation = offload_table_operation, .context = table};
  offload_profile *profile = offload_profile_run(file, &options);
  trace_file_close(file);
  if (!profile) status = ff_fail(error, FF_INVALID, "%s: the recording has no marks of offload candidates", recording);
  else
    status = profile->cut ? ff_fail(error, FF_PARSE, "%s: the recording is damaged", recording)
                          : put_cells(profile, program, data, error);
  offload_profile_free(profile);
  offload_table_free(table);
  return status;
}

ff_status repro_profile_run(repro_data *data, repro_size size, uint32_t program, const char *folder, ff_error *error) {
  char *recording = repro_recording(data->paper, size, program, 0, folder);
  machine_spec *spec = ff_alloc(sizeof *spec);
  ff_status status = machine_spec_load(data->paper->machine, spec, error);
  if (!status) status = read_recording(recording, spec, program, data, error);
  free(spec);
  free(recording);
  return status;
}
