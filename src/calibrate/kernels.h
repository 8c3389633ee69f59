/* SPDX-License-Identifier: Apache-2.0 */
/* The PTX of the measurements, and how many instructions its loops have. */
#ifndef FF_CALIBRATE_KERNELS_H
#define FF_CALIBRATE_KERNELS_H

#include <stdbool.h>

#include "base/text.h"

enum {
  CHASE_ROUND = 32,      /* dependent loads of a round */
  COMPUTE_ROUND = 64,    /* computing instructions of a round */
  STREAM_ROUND = 4,      /* accesses of 16 bytes of a round and thread */
  LOOP_INSTRUCTIONS = 3, /* of each round in addition to these */
};

void kernels_text(ff_text *out); /* PTX, NUL-terminated */

#endif
