/* SPDX-License-Identifier: Apache-2.0 */
/* What two outputs of the same inputs say. */
#ifndef TESTS_SILICON_JUDGE_H
#define TESTS_SILICON_JUDGE_H

#include "items.h"

typedef struct verdict { /* of all runs of an item */
  uint64_t words, different;
  double worst_theirs, worst_ours; /* of functions: the largest error, in units of the manual's bound */
  bool ran, refused, failed;
} verdict;

/* Adds a run. The first few words that differ are written to `out`, a line each. */
void judge(const item *it, uint32_t run, const unsigned char *inputs, const unsigned char *theirs,
           const unsigned char *ours, verdict *v, ff_text *out);

#endif
