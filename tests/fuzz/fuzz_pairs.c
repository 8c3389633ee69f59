/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of pairs: an answer or an error with its place, soon; the answer can be written. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "probe/probe.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  if (size > 1 << 14) return 0;
  static probe_result result;
  probe_options options = {.seed = 1};
  ff_error error = {.message = ""};
  ff_text text = {0};
  if (probe_pairs_text("fuzz.csv", (const char *)data, size, size % 2 ? PROBE_BANKS : PROBE_SETS, &options, &result,
                       &error)) {
    FF_ASSERT(error.message[0]);
    return 0;
  }
  const recover_result *map = &result.kinds[size % 2 ? PROBE_BANKS : PROBE_SETS].map;
  FF_ASSERT(map->rank <= RECOVER_MASKS && map->confidence >= 0 && map->confidence <= 1);
  probe_text(&result, &text);
  probe_json(&result, "fuzz.csv", &text);
  probe_picture(&result, "fuzz.csv", &text);
  FF_ASSERT(text.length == strlen(text.chars));
  free(text.chars);
  return 0;
}
