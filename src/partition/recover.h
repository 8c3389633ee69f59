/* SPDX-License-Identifier: Apache-2.0 */
/* Address hashes from what was measured: pairs of physical addresses that were seen to share a bank (or a cache set)
 * give the XOR masks of its number (Jain 2019, section V-C, solved by linear algebra instead of trying all masks).
 *
 * A mask f gives one bit of the number: the parity of the address under f. Two addresses that share the bank have equal
 * bits, so their difference d = a XOR b has f.d = 0 for every mask f: the masks are the null space of all differences.
 * One false pair (seen to share what it does not) takes masks out of that space. So small random subsets are solved,
 * each as large as it needs to be until further pairs tell nothing new, and every solution is judged on the pairs of
 * the other half, which no subset is drawn from.
 *
 * The masks are a reduced basis (each one's lowest bit stands in no other mask, in increasing order), of bits that
 * differ in some pair, and no mask holds on all the pairs that were looked at: recover_masks asserts that at the deep
 * check level. What it draws depends on the sample's seed alone. */
#ifndef FF_PARTITION_RECOVER_H
#define FF_PARTITION_RECOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "partition/gf2.h"

enum { RECOVER_MASKS = 64 };

typedef struct recover_sample {
  const uint64_t *conflicts, *others; /* differences of pairs that share the bank, and of pairs that do not */
  size_t conflict_count, other_count;
  uint64_t tested; /* pairs, drawn at random, that the conflicts were found among; 0: not known */
  uint64_t seed;
} recover_sample;

typedef enum recover_verdict {
  RECOVER_LINEAR, /* the masks are the whole map */
  /* the masks hold, but pairs that they allow share the bank far too rarely: the rest of the map is not linear */
  RECOVER_PARTLY,
  RECOVER_NOT_LINEAR, /* no mask holds */
  RECOVER_TOO_FEW,    /* the pairs are too few to say */
} recover_verdict;

typedef struct recover_mask {
  uint64_t bits;
  /* share of the held-out conflicts, and of the other pairs, on which it holds: nearly 1, and about half */
  double conflicts, others;
} recover_mask;

typedef struct recover_result {
  recover_verdict verdict;
  recover_mask masks[RECOVER_MASKS];
  uint32_t rank;    /* masks */
  uint32_t nullity; /* dimension of the differences that the masks allow: address bits that vary, less rank */
  uint64_t bits;    /* of the address that vary in the pairs */
  /* share of the held-out conflicts that all masks hold on, less what chance gives (2^-rank), scaled to 1 */
  double confidence;
  double spurious;    /* upper bound of the chance that a further, wrong mask passed all pairs */
  double false_pairs; /* share of all conflicts that the masks do not explain */
  /* share of pairs that the masks say share the bank, but were not seen to (pairs in one row of a bank are among
   * them) */
  double missed;
  /* bits by which conflicts are rarer than the masks say: log2(2^-rank / share seen); NAN: tested is not known */
  double residue;
  uint32_t solved;  /* subsets that gave this solution */
  uint32_t subsets; /* that were solved */
} recover_result;

void recover_masks(const recover_sample *sample, recover_result *result);
/* "linear", "partly linear", "not linear", "too few pairs" */
const char *recover_verdict_name(recover_verdict verdict);
/* A space's basis as results have it: reduced by the lowest bits. Returns its rank. */
uint32_t recover_basis(const gf2_space *space, uint64_t masks[RECOVER_MASKS]);
/* The masks as a plain list; returns how many. */
uint32_t recover_list(const recover_result *result, uint64_t masks[RECOVER_MASKS]);

#endif
