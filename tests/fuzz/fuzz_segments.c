/* SPDX-License-Identifier: Apache-2.0 */
/* A program on libfarfault from anywhere, on the model driver: every choice of tests/unit/runtime/random_program.c
 * (segments, launches, sizes, what fails and when) comes from the bytes. Whatever it does, its results are the host's,
 * and nothing is left. */
#include <stdlib.h>

#include "base/check.h"
#include "random_program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static bool started;
  program_result result;
  if (!started) {
    FF_ASSERT(program_start(FF_BUILD_DIR "/tests/model_driver.so"));
    atexit(program_end);
    started = true;
  }
  if (!size || size > 4096) return 0;
  program_options options = {
      .bytes = data + 1, .byte_count = size - 1, .failures = (program_failures)(data[0] % 4), .steps = 200};
  program_run(&options, &result);
  if (!result.good) fprintf(stderr, "%s\nwrong: %s\n", result.trace ? result.trace : "", result.why);
  FF_ASSERT(result.good);
  free(result.trace);
  return 0;
}
