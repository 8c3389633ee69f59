/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of the process: how many there are, and which one a thread or a stream means. */
#include "driver/engine_internal.h"

uint32_t engine_devices(void) { return 1; }

int engine_device_of(const engine_stream *stream) {
  (void)stream;
  return 0;
}

void engine_peers_changed(void) {}
