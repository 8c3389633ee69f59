/* SPDX-License-Identifier: Apache-2.0 */
/* Which lane each lane of a whole warp reads in a shfl whose b and c are constants (PTX ISA, "shfl.sync", the pseudo
 * code). */
#ifndef FF_EXEC_SHUFFLE_LANES_H
#define FF_EXEC_SHUFFLE_LANES_H

#include "exec/core.h"

/* lane[l]: the lane that lane l reads, itself if it reads no other. Returns the instruction's predicate: bit l, whether
 * lane l reads another one inside its segment. */
static inline uint32_t shuffle_lanes(exec_sync_mode mode, uint32_t b, uint32_t c, uint32_t lane[EXEC_LANES]) {
  uint32_t delta = b & 31, segment = c >> 8 & 31, all_valid = 0;
  for (uint32_t l = 0; l < EXEC_LANES; l++) {
    uint32_t last = (l & segment) | (c & 31 & ~segment);
    int32_t source;
    bool valid;
    switch (mode) {
    case EXEC_SHFL_UP: source = (int32_t)(l - delta), valid = source >= (int32_t)last; break;
    case EXEC_SHFL_DOWN: source = (int32_t)(l + delta), valid = source <= (int32_t)last; break;
    case EXEC_SHFL_BFLY: source = (int32_t)(l ^ delta), valid = source <= (int32_t)last; break;
    default: source = (int32_t)((l & segment) | (delta & ~segment)), valid = source <= (int32_t)last; break;
    }
    lane[l] = valid ? (uint32_t)source & 31 : l;
    all_valid |= (uint32_t)valid << l;
  }
  return all_valid;
}

#endif
