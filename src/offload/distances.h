/* SPDX-License-Identifier: Apache-2.0 */
/* How far accesses of an instance lie from its first one, position by position, and whether that is the same in all
 * instances of a launch (Hsieh et al., ISCA 2016, section 3.2.1: "fixed offset"; a launch's parameters, and with them
 * the offsets, are its own).
 *
 * Per position and launch, `counts` are exact for the first DISTANCES different distances:
 *     sum of counts <= seen (less: there were others), most <= total                        (distances_check) */
#ifndef FF_OFFLOAD_DISTANCES_H
#define FF_OFFLOAD_DISTANCES_H

#include "offload/profile.h"

enum { DISTANCES = 8 };

typedef struct distances {
  struct distances_position {
    int64_t distance[DISTANCES]; /* in lines; of this launch */
    uint32_t counts[DISTANCES];
    uint64_t seen;        /* of this launch */
    uint64_t total, most; /* of the launches before: one instance more than one of each counts */
  } at[OFFLOAD_PROFILE_POSITIONS];
  uint32_t used; /* positions that any instance had */
} distances;

void distances_add(distances *d, uint32_t position, uint64_t first_line, uint64_t line); /* position: from 1 */
void distances_end_launch(distances *d);
void distances_say(const distances *d, offload_profile_candidate *out);

#endif
