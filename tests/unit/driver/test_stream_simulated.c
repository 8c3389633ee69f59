/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events in parallel with two simulations: the first one says what time it is. */
#include "stream_cases.h"

int main(void) {
  setenv("FARFAULT_MEMORY", "copy,replay", 1);
  return run_stream_cases();
}
