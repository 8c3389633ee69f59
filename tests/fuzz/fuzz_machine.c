/* SPDX-License-Identifier: Apache-2.0 */
/* A machine file from anywhere: read or refused, and whatever is accepted passes the checks that the simulation relies
 * on. */
#include "base/check.h"
#include "machine/spec/spec_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static machine_spec spec;
  ff_error error;
  if (spec_text_load("fuzz", (const char *)data, size, &spec, &error)) {
    FF_ASSERT(error.message[0]);
    return 0;
  }
  FF_ASSERT(spec_check(&spec, NULL) == FF_OK && spec.sm_count && spec.clock_mhz > 0 && spec.title[0]);
  return 0;
}
