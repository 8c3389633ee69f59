/* SPDX-License-Identifier: Apache-2.0 */
/* An ordered set of numbers: which is the nearest at some place or above, or below? A tree of 64 branches to a node, as
 * high as the largest number needs: every operation takes as many steps as that has digits to the base 64, however many
 * numbers there are.
 *
 *     a node's bit i is set exactly if its branch i holds a number; no node but the root is without a bit */
#ifndef FF_BASE_NUMBERS_H
#define FF_BASE_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ff_numbers {
  struct ff_numbers_node *root; /* NULL: nothing was ever in it */
  uint32_t levels;              /* of the tree: it has room for numbers below 64 to this power */
  size_t count;
} ff_numbers; /* all zero: empty */

void ff_numbers_free(ff_numbers *set);
void ff_numbers_add(ff_numbers *set, uint64_t number);    /* nothing if it is there */
void ff_numbers_remove(ff_numbers *set, uint64_t number); /* nothing if it is not there */
bool ff_numbers_has(const ff_numbers *set, uint64_t number);
/* The smallest number that is `from` or more, in *found; false: there is none. */
bool ff_numbers_next(const ff_numbers *set, uint64_t from, uint64_t *found);
/* The largest number that is `to` or less. */
bool ff_numbers_previous(const ff_numbers *set, uint64_t to, uint64_t *found);

#endif
