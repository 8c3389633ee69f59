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

/* Lanes of one word take turns; those of other words go beside them. */
static void atomics_of_one_word_take_turns(void **unused) {
  uint32_t offset[TRACE_LANES] = {0};
  assert_int_equal(trace_shared_atomic_passes(offset, 4, 0), 0);
  for (uint32_t lanes = 1; lanes <= TRACE_LANES; lanes++)
    assert_int_equal(trace_shared_atomic_passes(offset, 4, UINT32_MAX >> (TRACE_LANES - lanes)), lanes);
  for (uint32_t l = 0; l < TRACE_LANES; l++) offset[l] = 4 * l;
  assert_int_equal(trace_shared_atomic_passes(offset, 4, UINT32_MAX), 1);
  for (uint32_t l = 0; l < TRACE_LANES; l++) offset[l] = l / 2 * 4; /* two each of 16 words */
  assert_int_equal(trace_shared_atomic_passes(offset, 4, UINT32_MAX), 2);
  for (uint32_t l = 0; l < TRACE_LANES; l++) offset[l] = l / 2 * 128; /* which all are of one bank */
  assert_int_equal(trace_shared_atomic_passes(offset, 4, UINT32_MAX), 17);
  assert_int_equal(trace_shared_atomic_passes(offset, 4, 5), 2);
}

/* A line set has the passes of the same words in shared memory. */
static void lines_take_passes_as_shared_memory_does(void **unused) {
  for (int round = 0; round < 20000; round++) {
    uint32_t bytes = 1u << next_random() % 8, offset[TRACE_LANES],
             mask = round % 3 ? next_random() << 1 ^ next_random() : UINT32_MAX;
    uint32_t range = 1u << next_random() % 10, stride = next_random() % 70, form = next_random() % 3;
    uint64_t address[TRACE_LANES], add = (uint64_t)next_random() * bytes;
    trace_line_set set;
    for (uint32_t l = 0; l < TRACE_LANES; l++) {
      address[l] = bytes * (form == 0 ? l * stride : form == 1 ? next_random() % range : (next_random() % range) * 32);
      offset[l] = (uint32_t)(address[l] + add);
    }
    trace_lines_collect(&set, address, add, bytes, mask);
    assert_int_equal(set.passes, trace_shared_passes(offset, bytes, mask));
  }
}

static void plain_passes_are_of_groups_without_conflicts(void **unused) {
  for (int round = 0; round < 1000; round++) {
    uint32_t bytes = 1u << next_random() % 8, row[TRACE_LANES], one[TRACE_LANES],
             mask = next_random() << 1 ^ next_random();
    for (uint32_t l = 0; l < TRACE_LANES; l++) {
      row[l] = l * bytes;
      one[l] = 128;
    }
    if (bytes <= 16) assert_int_equal(trace_plain_passes(bytes, mask), trace_shared_passes(row, bytes, mask));
    assert_int_equal(trace_plain_passes(bytes, mask), trace_shared_passes(one, bytes, mask));
  }
}

/* Passes stand in an ACCESS only where they are longer than looking its lines up can be. */
static void passes_in_a_word(void **unused) {
  assert_int_equal(trace_access_passes(trace_passes_bits(1, 1)), 0);
  assert_int_equal(trace_access_passes(trace_passes_bits(2, 1)), 2);
  assert_int_equal(trace_access_passes(trace_passes_bits(2, 9)), 0);
  assert_int_equal(trace_access_passes(trace_passes_bits(3, 9)), 3);
  assert_int_equal(trace_access_passes(trace_passes_bits(32, 32)), 32);
  assert_int_equal(trace_access_passes(trace_passes_bits(300, 32)), 255);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shared_memory_takes_a_pass_for_each_word_of_its_busiest_bank),
      cmocka_unit_test(atomics_of_one_word_take_turns), cmocka_unit_test(lines_take_passes_as_shared_memory_does),
      cmocka_unit_test(plain_passes_are_of_groups_without_conflicts), cmocka_unit_test(passes_in_a_word)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
