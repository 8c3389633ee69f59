/* SPDX-License-Identifier: Apache-2.0 */
/* Distances between accesses, counted per launch. */
#include "offload/distances.h"

#include <string.h>

#include "base/check.h"

#define FIXED 0.95 /* of a launch's instances: the others may meet an array's end, or lanes that were masked */

void distances_add(distances *d, uint32_t position, uint64_t first_line, uint64_t line) {
  if (position >= OFFLOAD_PROFILE_POSITIONS) return;
  struct distances_position *p = &d->at[position];
  int64_t distance = (int64_t)(line - first_line);
  if (d->used <= position) d->used = position + 1;
  p->seen++;
  for (uint32_t i = 0; i < DISTANCES; i++) {
    if (p->counts[i] && p->distance[i] != distance) continue;
    p->distance[i] = distance;
    if (p->counts[i] < UINT32_MAX) p->counts[i]++;
    return;
  }
}

static void distances_check(const struct distances_position *p) {
  uint64_t sum = 0;
  bool open = false; /* a place without a distance yet: no instance had another one */
  for (uint32_t i = 0; i < DISTANCES; i++) {
    FF_ASSERT(!open || !p->counts[i]);
    open |= !p->counts[i];
    sum += p->counts[i];
  }
  FF_ASSERT((open ? sum == p->seen : sum <= p->seen) && p->most <= p->total);
}

/* The first instance of a launch does not count: it agrees with itself. */
void distances_end_launch(distances *d) {
  for (uint32_t position = 1; position < d->used; position++) {
    struct distances_position *p = &d->at[position];
    uint32_t most = 0;
    if (ff_check_level >= 2) distances_check(p);
    for (uint32_t i = 0; i < DISTANCES; i++)
      if (p->counts[i] > most) most = p->counts[i];
    if (p->seen > 1) {
      p->total += p->seen - 1;
      p->most += most - 1;
    }
    p->seen = 0;
    memset(p->counts, 0, sizeof p->counts);
  }
}

void distances_say(const distances *d, offload_profile_candidate *out) {
  for (uint32_t position = 1; position < d->used; position++) {
    const struct distances_position *p = &d->at[position];
    if (!p->total) continue;
    out->positions++;
    out->fixed_positions += (double)p->most >= FIXED * (double)p->total;
    out->distances += p->total;
    out->fixed_distances += p->most;
  }
  out->offsets = !out->positions                         ? OFFLOAD_OFFSETS_SINGLE
                 : !out->fixed_positions                 ? OFFLOAD_OFFSETS_NONE
                 : out->fixed_positions < out->positions ? OFFLOAD_OFFSETS_SOME
                                                         : OFFLOAD_OFFSETS_ALL;
}

const char *offload_offsets_name(offload_offsets offsets) {
  static const char *const names[] = {"single", "none", "some", "all"};
  return names[offsets];
}
