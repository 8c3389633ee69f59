/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka's assert_float_equal rounds its doubles to float first, so that it sees no difference below 1e-7. */
#ifndef FF_TESTS_NEAR_H
#define FF_TESTS_NEAR_H

#include <math.h>

/* Fails unless `got` is within `slack` of `expected`; a NaN is near nothing. */
#define assert_within(got, expected, slack)                                                 \
  do {                                                                                      \
    const double near_got = (got), near_expected = (expected), near_slack = (slack);        \
    if (!(fabs(near_got - near_expected) <= near_slack))                                    \
      fail_msg("%s is %.17g, not %.17g (+-%g)", #got, near_got, near_expected, near_slack); \
  } while (0)

#endif
