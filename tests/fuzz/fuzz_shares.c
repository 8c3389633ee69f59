/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as shares of a GPU: it is refused with its place, or its shares are above 0, add up to no more than the
 * device, and can be divided. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "partition/shares.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_sums(const partition_share *shares, uint32_t count) {
  double sms = 0, memory = 0;
  for (uint32_t i = 0; i < count; i++) {
    FF_ASSERT(shares[i].sm_share > 0 && shares[i].memory_share > 0);
    sms += shares[i].sm_share;
    memory += shares[i].memory_share;
  }
  FF_ASSERT(sms < 1 + 1e-9 && memory < 1 + 1e-9);
}

static void check_division(const partition_share *shares, uint32_t count, uint32_t whole) {
  sm_range ranges[SHARES_MAX];
  uint64_t sets[SHARES_MAX], seen = 0;
  uint32_t next = 0;
  ff_text note = {0};
  ff_status status = shares_sms(shares, count, whole, ranges, NULL);
  FF_ASSERT(status == (count > whole ? FF_LIMIT : FF_OK) &&
            shares_colours(shares, count, whole, sets, &note, NULL) == status);
  for (uint32_t i = 0; i < count && !status; i++) {
    FF_ASSERT(ranges[i].first == next && ranges[i].count > 0 && sets[i] && !(sets[i] & seen));
    next += ranges[i].count;
    seen |= sets[i];
  }
  FF_ASSERT(next <= whole && (whole == 64 || !(seen >> whole)));
  free(note.chars);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  partition_share shares[SHARES_MAX];
  uint32_t count = 0;
  ff_error error = {0};
  char *text = ff_alloc(size + 1);
  memcpy(text, data, size);
  ff_status status = shares_parse("shares", text, SHARES_MAX, shares, &count, &error);
  FF_ASSERT(!!status == !!error.message[0]);
  if (!status) {
    FF_ASSERT(count > 0 && count <= SHARES_MAX);
    check_sums(shares, count);
    for (uint32_t whole = 1; whole <= 64; whole++) check_division(shares, count, whole);
  }
  free(text);
  return 0;
}
