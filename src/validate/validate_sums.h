/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over rows, from which errors and correlations follow. Private to validate/. */
#ifndef FF_VALIDATE_SUMS_H
#define FF_VALIDATE_SUMS_H

#include "validate/validate.h"

/* over n rows: of log(ours/silicon), |ours/silicon - 1|, x = log silicon, y = log ours */
typedef struct validate_sums {
  uint32_t n;
  double ratio, error, x, y, xx, yy, xy;
} validate_sums;

/* Whether the row is held and has a value of ours. */
bool validate_row_counts(const validate_row *row);
/* Adds one that counts. */
void validate_sum(validate_sums *sums, const validate_row *row);
/* VALIDATE_NONE: of no row; of the correlation fewer than three, or all equal. */
double validate_mean_error(const validate_sums *sums);
double validate_correlation(const validate_sums *sums);

#endif
