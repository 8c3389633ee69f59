/* SPDX-License-Identifier: Apache-2.0 */
/* What `farfault share` reads from anywhere: a list of deadlines (first byte '=') or a simulation's outcomes. Read or
 * refused with a message; what is accepted is what its readers rely on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "share/share_slo.h"

static void read_deadlines(const char *text) {
  static const machine_spec spec = {.sm_count = 4};
  share_matrix m = {.spec = &spec};
  share_slo slo = {.m = &m};
  ff_error error;
  error.message[0] = '\0';
  share_matrix_add(&m, "runs/a.fft");
  share_matrix_add(&m, "b.fft");
  share_matrix_start(&m);
  if (share_slo_read(&slo, "fuzz", text, &error)) FF_ASSERT(error.message[0]);
  else FF_ASSERT(slo.deadlines.count);
  for (size_t i = 0; i < slo.deadlines.count; i++)
    FF_ASSERT(slo.deadlines.items[i].program < 2 && isfinite(slo.deadlines.items[i].us) &&
              slo.deadlines.items[i].us > 0);
  share_slo_free(&slo);
  share_matrix_free(&m);
}

static void read_outcomes(const char *text, size_t size) {
  share_outcome outcomes[2], again[2];
  ff_error error;
  ff_text out = {0};
  error.message[0] = '\0';
  if (share_outcomes_read("fuzz", text, size, outcomes, 2, &error)) {
    FF_ASSERT(error.message[0]);
    return;
  }
  for (int i = 0; i < 2; i++)
    FF_ASSERT(isfinite(outcomes[i].kernel_us) && outcomes[i].kernel_us >= 0 &&
              memchr(outcomes[i].error, 0, sizeof outcomes[i].error));
  share_outcomes_write(outcomes, 2, &out);
  FF_ASSERT(!share_outcomes_read("fuzz", out.chars, out.length, again, 2, &error) &&
            again[1].kernel_us == outcomes[1].kernel_us);
  free(out.chars);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ff_text text = {0};
  ff_text_add_bytes(&text, data, size);
  if (size && data[0] == '=') read_deadlines(text.chars + 1);
  else read_outcomes((const char *)data, size);
  free(text.chars);
  return 0;
}
