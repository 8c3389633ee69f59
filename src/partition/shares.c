/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of a GPU: see shares.h. Numbers are read as whole millionths, so that sums are exact: 33.3 three times is
 * 99.9, and 100 % is 100 %. */
#include "partition/shares.h"

#include <string.h>

#include "base/check.h"

#define MILLION UINT64_C(1000000)
#define WHOLE (100 * MILLION) /* 100 % */
#define ROUNDING 1e-6         /* what sums of shares as doubles may be off */

enum { DIGITS = 6, DECIMALS = 6 };

typedef enum unit { UNIT_NONE, UNIT_PARTS, UNIT_PERCENT } unit;

typedef struct reader {
  const char *name, *text, *at;
  ff_error *error;
  unit unit; /* of the numbers so far: one text has one */
  uint64_t sm[SHARES_MAX], memory[SHARES_MAX];
  uint32_t count;
} reader;

#define FAIL(r, place, status, ...)                                                                                    \
  ff_fail_in_text((r)->error, status, (r)->name, (r)->text, strlen((r)->text), 1, (uint32_t)((place) - (r)->text) + 1, \
                  __VA_ARGS__)

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* "12.5" or "12.5%", in millionths. */
static ff_status read_number(reader *r, uint64_t *value) {
  const char *start = r->at;
  uint64_t whole = 0, part = 0, weight = MILLION;
  for (; is_digit(*r->at); r->at++) {
    if (r->at - start >= DIGITS) return FAIL(r, start, FF_PARSE, "a number of more than %d digits", DIGITS);
    whole = whole * 10 + (uint64_t)(*r->at - '0');
  }
  if (r->at == start)
    return FAIL(r, start, FF_PARSE,
                "a number is missing: shares are like 50:50, 25%%:75%% or sm=25%%,memory=50%%:sm=75%%,memory=50%%");
  if (*r->at == '.') {
    const char *point = r->at++;
    for (; is_digit(*r->at); r->at++) {
      if (r->at - point > DECIMALS) return FAIL(r, start, FF_PARSE, "a number of more than %d decimals", DECIMALS);
      part += (uint64_t)(*r->at - '0') * (weight /= 10);
    }
    if (r->at - point == 1) return FAIL(r, point, FF_PARSE, "digits are missing behind the point");
  }
  *value = whole * MILLION + part;
  if (!*value) return FAIL(r, start, FF_PARSE, "a partition with a share of 0");
  unit is = *r->at == '%' ? UNIT_PERCENT : UNIT_PARTS;
  if (r->unit != UNIT_NONE && r->unit != is)
    return FAIL(r, start, FF_PARSE, "either all shares are percentages or none is");
  r->unit = is;
  r->at += is == UNIT_PERCENT;
  return FF_OK;
}

/* "sm=25%": into the one it names. */
static ff_status read_named(reader *r, uint64_t *sm, uint64_t *memory) {
  const char *start = r->at;
  uint64_t *into = NULL;
  if (!strncmp(start, "sm=", 3)) into = sm;
  else if (!strncmp(start, "memory=", 7)) into = memory;
  if (!into) return FAIL(r, start, FF_PARSE, "neither sm=, memory= nor a number");
  if (*into)
    return FAIL(r, start, FF_PARSE, "the partition's share of %s stands here twice", into == sm ? "SMs" : "memory");
  r->at += into == sm ? 3 : 7;
  const char *number = r->at;
  ff_status status = read_number(r, into);
  if (!status && r->unit != UNIT_PERCENT)
    return FAIL(r, number, FF_PARSE, "sm= and memory= are percentages: a %% is missing");
  return status;
}

static ff_status read_partition(reader *r) {
  uint64_t sm = 0, memory = 0;
  ff_status status;
  if (is_digit(*r->at) || !*r->at || *r->at == ':') {
    status = read_number(r, &sm);
  } else {
    while (!(status = read_named(r, &sm, &memory)) && *r->at == ',') r->at++;
  }
  if (status) return status;
  if (*r->at && *r->at != ':')
    return FAIL(r, r->at, FF_PARSE, "here the partition should end, with : or the text's end");
  r->sm[r->count] = sm ? sm : memory;
  r->memory[r->count++] = memory ? memory : sm;
  return FF_OK;
}

static uint64_t sum(const uint64_t *values, uint32_t count) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < count; i++) all += values[i];
  return all;
}

/* Shares above the device: the message points at the partition with which it overflows. */
static ff_status check_sum(reader *r, const uint64_t *values, const char *what) {
  uint64_t all = sum(values, r->count), until = 0;
  const char *place = r->text;
  if (r->unit != UNIT_PERCENT || all <= WHOLE) return FF_OK;
  for (uint32_t i = 0; (until += values[i]) <= WHOLE; i++) place = strchr(place, ':') + 1;
  return FAIL(r, place, FF_INVALID, "the shares of %s add up to %g %%: at most 100 %% can be had", what,
              (double)all / MILLION);
}

ff_status shares_parse(const char *name, const char *text, uint32_t limit, partition_share *shares, uint32_t *count,
                       ff_error *error) {
  reader r = {.name = name, .text = text, .at = text, .error = error};
  ff_status status = FF_OK;
  if (limit > SHARES_MAX) limit = SHARES_MAX;
  for (;;) {
    if (r.count == limit) return FAIL(&r, r.at, FF_LIMIT, "more than %u partitions", limit);
    if ((status = read_partition(&r))) return status;
    if (!*r.at) break;
    r.at++;
  }
  if ((status = check_sum(&r, r.sm, "SMs")) || (status = check_sum(&r, r.memory, "memory"))) return status;
  double whole = r.unit == UNIT_PERCENT ? (double)WHOLE : (double)sum(r.sm, r.count);
  for (uint32_t i = 0; i < r.count; i++)
    shares[i] = (partition_share){(double)r.sm[i] / whole, (double)r.memory[i] / whole};
  *count = r.count;
  return FF_OK;
}

/* ---- dividing ---- */

/* The partition that is furthest below what it should have; to take one away, furthest above, of those with more than
 * one. */
static uint32_t next_to_change(const double *wanted, const uint32_t *have, uint32_t count, bool more) {
  uint32_t best = count;
  double best_gap = 0;
  for (uint32_t i = 0; i < count; i++) {
    double gap = more ? wanted[i] - have[i] : have[i] - wanted[i];
    if (!more && have[i] == 1) continue;
    if (best == count || gap > best_gap + ROUNDING) {
      best = i;
      best_gap = gap;
    }
  }
  return best;
}

static void check_counts(const uint32_t *counts, uint32_t count, uint32_t target, uint32_t whole) {
  uint32_t all = 0;
  for (uint32_t i = 0; i < count; i++) {
    FF_ASSERT(counts[i]);
    all += counts[i];
  }
  FF_ASSERT(all == target && target <= whole);
}

ff_status shares_divide(const double *shares, uint32_t count, uint32_t whole, uint32_t *out, ff_error *error) {
  double wanted[SHARES_MAX], total = 0;
  if (!count || count > SHARES_MAX)
    return ff_fail(error, FF_LIMIT, "%u partitions: must be 1 to %d", count, SHARES_MAX);
  if (count > whole) return ff_fail(error, FF_LIMIT, "%u partitions cannot have one each of %u", count, whole);
  uint32_t given = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!(shares[i] > 0 && shares[i] <= 1 + ROUNDING))
      return ff_fail(error, FF_INVALID, "partition %u's share is %g: must be above 0, at most 1", i, shares[i]);
    wanted[i] = shares[i] * whole;
    total += wanted[i];
    out[i] = (uint32_t)(wanted[i] + ROUNDING);
    if (!out[i]) out[i] = 1;
    given += out[i];
  }
  if (total > whole * (1 + ROUNDING))
    return ff_fail(error, FF_INVALID, "the shares add up to %g %%: at most 100 %% can be had", 100 * total / whole);
  uint32_t target = (uint32_t)(total + 0.5);
  if (target < count) target = count;
  for (; given < target; given++) out[next_to_change(wanted, out, count, true)]++;
  for (; given > target; given--) out[next_to_change(wanted, out, count, false)]--;
  if (ff_check_level >= 2) check_counts(out, count, target, whole);
  return FF_OK;
}

ff_status shares_sms(const partition_share *shares, uint32_t count, uint32_t sms, sm_range *out, ff_error *error) {
  double parts[SHARES_MAX] = {0};
  uint32_t counts[SHARES_MAX], first = 0;
  for (uint32_t i = 0; i < count && i < SHARES_MAX; i++) parts[i] = shares[i].sm_share;
  ff_status status = shares_divide(parts, count, sms, counts, error);
  if (status) return ff_fail_at(error, status, "SMs");
  for (uint32_t i = 0; i < count; first += counts[i++]) out[i] = (sm_range){first, counts[i]};
  return FF_OK;
}

static void note_rounding(ff_text *note, uint32_t partition, double share, uint32_t colours, uint32_t has) {
  double wanted = share * colours;
  if (wanted - has < ROUNDING && has - wanted < ROUNDING) return;
  ff_text_add(note, "partition %u: %g %% of memory are %.2f of %u colours: it has %u (%g %%)\n", partition, share * 100,
              wanted, colours, has, 100.0 * has / colours);
}

ff_status shares_colours(const partition_share *shares, uint32_t count, uint32_t colours, uint64_t *sets, ff_text *note,
                         ff_error *error) {
  double parts[SHARES_MAX] = {0};
  uint32_t counts[SHARES_MAX], first = 0;
  FF_ASSERT(colours && colours <= 64);
  for (uint32_t i = 0; i < count && i < SHARES_MAX; i++) parts[i] = shares[i].memory_share;
  ff_status status = shares_divide(parts, count, colours, counts, error);
  if (status) return ff_fail_at(error, status, "colours of memory");
  for (uint32_t i = 0; i < count; first += counts[i++]) {
    sets[i] = (counts[i] < 64 ? (UINT64_C(1) << counts[i]) - 1 : UINT64_MAX) << first;
    if (note) note_rounding(note, i, parts[i], colours, counts[i]);
  }
  return FF_OK;
}
