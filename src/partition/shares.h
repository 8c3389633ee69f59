/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of a GPU: their text, and what they come to in SMs and in colours of memory.
 *
 *   "50:50", "1:2:1"                           parts of the whole: n of the sum, of SMs and of memory
 *   "25%:50%"                                  of the device; what is left of it stays idle
 *   "sm=25%,memory=50%:sm=75%,memory=50%"      each on its own; a partition that names only one of them has the same of the other
 *
 * A partition has at least one SM and one colour, and partitions follow each other without a gap; when the shares add
 * up to the device nothing is left over. shares_divide asserts that at the deep check level. Counts go by largest
 * remainder (Hamilton), ties to the lower partition: each is off by less than one, except where a partition too small
 * for one takes it from the largest. */
#ifndef FF_PARTITION_SHARES_H
#define FF_PARTITION_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

enum { SHARES_MAX = 64 };

typedef struct partition_share {
  double sm_share, memory_share;
} partition_share; /* of the device, above 0 to 1 */
typedef struct sm_range {
  uint32_t first, count;
} sm_range; /* SMs first .. first + count - 1 */

/* Reads the text into shares[0 .. *count - 1]. `limit`: how many the caller has room for (at most SHARES_MAX are
 * taken). FF_PARSE: not such a text; FF_INVALID: a sum above 100 %; FF_LIMIT: too many. Messages name `name` (the
 * option, for instance), the column and show it. */
ff_status shares_parse(const char *name, const char *text, uint32_t limit, partition_share *shares, uint32_t *count,
                       ff_error *error);

/* Divides `whole` things: out[i] >= 1 near shares[i] * whole, all together the rounded sum of the shares. FF_LIMIT:
 * more partitions than things. */
ff_status shares_divide(const double *shares, uint32_t count, uint32_t whole, uint32_t *out, ff_error *error);

/* Which SMs each partition has: neighbours, partition 0 from SM 0 on. FF_LIMIT: more partitions than SMs. */
ff_status shares_sms(const partition_share *shares, uint32_t count, uint32_t sms, sm_range *out, ff_error *error);

/* Which of `colours` (at most 64) each partition has, as sets: bit c is colour c. *note (not NULL): a line is added for
 * each partition whose share is no whole number of colours, and what it has instead. FF_LIMIT: more partitions than
 * colours. */
ff_status shares_colours(const partition_share *shares, uint32_t count, uint32_t colours, uint64_t *sets, ff_text *note,
                         ff_error *error);

#endif
