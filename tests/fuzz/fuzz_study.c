/* SPDX-License-Identifier: Apache-2.0 */
/* A study file from anywhere: read or refused with a message, and whatever is accepted has what its readers rely on. */
#include "base/check.h"
#include "sweep/study.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  study study;
  ff_error error;
  error.message[0] = '\0';
  if (study_read("fuzz", (const char *)data, size, &study, &error)) {
    FF_ASSERT(error.message[0]);
    return 0;
  }
  FF_ASSERT(study.grids.count);
  for (size_t i = 0; i < study.grids.count; i++) {
    const study_grid *grid = study.grids.items[i];
    FF_ASSERT(grid->axes[AXIS_TRACE] && grid->axes[AXIS_MEMORY] && study_grid_size(grid));
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
      if (!grid->axes[axis]) continue;
      FF_ASSERT(grid->axes[axis]->values.count &&
                (!grid->point || !grid->own[axis] || grid->axes[axis]->values.count == 1));
      for (size_t j = 0; j < grid->axes[axis]->values.count; j++) FF_ASSERT(grid->axes[axis]->values.items[j].text[0]);
    }
  }
  study_free(&study);
  return 0;
}
