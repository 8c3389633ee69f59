/* SPDX-License-Identifier: Apache-2.0 */
/* What accesses of a warp cost on the chip, against counting in the plainest way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/coalesce.h"

static uint32_t next_random(void) {
  static uint64_t state = 42;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}

/* How many different words bank `bank` has to serve to these lanes. */
static uint32_t words_of_bank(const uint32_t *offset, uint32_t word_bytes, uint32_t banks, uint32_t bank,
                              uint32_t first, uint32_t end, uint32_t mask) {
  uint32_t count = 0;
  for (uint32_t l = first; l < end; l++) {
    uint32_t word = offset[l] / word_bytes, seen = 0;
    if (!(mask >> l & 1) || word % banks != bank) continue;
    for (uint32_t k = first; k < l; k++) seen |= (mask >> k & 1) && offset[k] / word_bytes == word;
    count += !seen;
  }
  return count;
}

static uint32_t plain_passes(const uint32_t *offset, uint32_t bytes, uint32_t mask) {
  uint32_t word_bytes = bytes < 4 ? 4 : bytes, banks = 128 / word_bytes, passes = 0;
  for (uint32_t first = 0; first < TRACE_LANES; first += banks) {
    uint32_t most = 0;
    for (uint32_t bank = 0; bank < banks; bank++) {
      uint32_t words = words_of_bank(offset, word_bytes, banks, bank, first, first + banks, mask);
      if (words > most) most = words;
    }
    passes += most;
  }
  return passes;
}

static void shared_memory_takes_a_pass_for_each_word_of_its_busiest_bank(void **unused) {
  for (int round = 0; round < 20000; round++) {
    uint32_t bytes = 1u << next_random() % 5, offset[TRACE_LANES],
             mask = round % 3 ? next_random() << 1 ^ next_random() : UINT32_MAX;
    uint32_t range = 1u << next_random() % 10, stride = next_random() % 40, form = next_random() % 3;
    for (uint32_t l = 0; l < TRACE_LANES; l++)
      offset[l] = bytes * (form == 0 ? l * stride : form == 1 ? next_random() % range : (next_random() % range) * 32);
    assert_int_equal(trace_shared_passes(offset, bytes, mask), plain_passes(offset, bytes, mask));
  }
  assert_int_equal(trace_shared_passes((uint32_t[TRACE_LANES]){0}, 4, 0), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shared_memory_takes_a_pass_for_each_word_of_its_busiest_bank)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
