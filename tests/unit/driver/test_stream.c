/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events without a simulation: time is the engine's own clock. */
#include "stream_cases.h"

int main(void) {
  unsetenv("FARFAULT_MEMORY");
  return run_stream_cases();
}
