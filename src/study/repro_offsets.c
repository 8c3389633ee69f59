/* SPDX-License-Identifier: Apache-2.0 */
/* How regular the accesses of offload candidates are (Hsieh et al., ISCA 2016, section 3.2.1), as offload/profile.h measures it, in numbers of candidates.
 *
 * What always holds: a candidate whose instances make one access does not count, as it has no distance. */
#include <stdlib.h>

#include "base/memory.h"
#include "offload/profile.h"
#include "study/repro_private.h"

static ff_status read_recording(const char *recording, const machine_spec *spec, repro_offsets *out, ff_error *error) {
  trace_file *file;
  ff_status status = trace_file_open(recording, &file, error);
  if (status) return status;
  offload_profile_options options = {.spec = spec};
  offload_profile *profile = offload_profile_run(file, &options);
  trace_file_close(file);
  for (uint32_t i = 0; profile && i < profile->candidate_count; i++) {
    offload_offsets offsets = profile->candidates[i].offsets;
    out->candidates += offsets != OFFLOAD_OFFSETS_SINGLE;
    out->some_fixed += offsets == OFFLOAD_OFFSETS_SOME || offsets == OFFLOAD_OFFSETS_ALL;
    out->all_fixed += offsets == OFFLOAD_OFFSETS_ALL;
  }
  if (profile && profile->cut) status = ff_fail(error, FF_PARSE, "%s: the recording is damaged", recording);
  offload_profile_free(profile);
  return status;
}

ff_status repro_offsets_run(const repro_paper *paper, repro_size size, uint32_t program, const char *folder, repro_offsets *out, ff_error *error) {
  char *recording = repro_recording(paper, size, program, folder);
  machine_spec *spec = ff_alloc(sizeof *spec);
  *out = (repro_offsets){0};
  ff_status status = machine_spec_load(paper->machine, spec, error);
  if (!status) status = read_recording(recording, spec, out, error);
  free(spec);
  free(recording);
  return status;
}
