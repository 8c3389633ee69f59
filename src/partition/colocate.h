/* SPDX-License-Identifier: Apache-2.0 */
/* Which map keeps what belongs together in one stack: statistics over *instances* (sets of lines that one warp's way
 * through a candidate block touches), the best two neighbouring bits (Hsieh et al., ISCA 2016, section 3.2), and the
 * best linear map of each range.
 *
 * An instance is colocated under a map if all its lines are in one stack. What it accesses is near it, where it is sent
 * to the stack of its first line, as far as its lines are *beside* that one: instances of tens of lines that follow
 * indices are never colocated, and yet one map puts more of them beside it than another. So pairs are chosen by lines
 * beside. Maps under which the data does not spread
 * over the stacks are no use, however well they colocate: the paper's machine has data that is larger than its highest
 * bit many times, small runs do not. So a pair counts only if its busiest stack has at most COLOCATE_UNEVEN times the
 * share that it has under the pair that spreads best (our choice). A share of what: of the lines of instances once all
 * are counted (colocate_complete); the first few of many touch only the beginning of the data, and say nothing of high
 * bits: of the bytes of touched ranges until then.
 *
 *   colocate *c = colocate_create(bits, ranges, count);
 *   colocate_instance(c, lines, line_count) ...
 *   colocate_best_pair(c) / colocate_linear(c, maps)
 *   colocate_free(c);
 *
 * Pairs count all instances; for the linear maps a sample of at most COLOCATE_KEPT is kept, drawn by a generator with a
 * fixed seed. */
#ifndef FF_PARTITION_COLOCATE_H
#define FF_PARTITION_COLOCATE_H

#include "partition/stack_map.h"

#define COLOCATE_UNEVEN 1.5
#define COLOCATE_WORTH \
  0.1 /* share of the lines that a map must have beside beyond the baseline's to be worth its less even spread (our choice) */

typedef struct colocate colocate;
/* an allocation; none overlaps another, sorted by address. A line that two have counts for the first */
typedef struct colocate_range {
  uint64_t address, bytes;
} colocate_range;

colocate *colocate_create(uint32_t bits, const colocate_range *ranges, uint32_t count); /* copies the ranges */
void colocate_free(colocate *c);
/* One more, now that instances come. Where it overlaps others, they become one range with what lies between (memory
 * that was freed and allocated anew): its index is the first one's, those behind it move. */
void colocate_add_range(colocate *c, colocate_range range);
uint32_t colocate_range_count(const colocate *c);
colocate_range colocate_range_at(const colocate *c, uint32_t i); /* as whole lines */
/* Addresses of its lines, in the order in which they were touched, at least one; doubles do no harm. */
void colocate_instance(colocate *c, const uint64_t *lines, uint32_t count);
/* These were all the instances of the program. */
void colocate_complete(colocate *c);
uint64_t colocate_instances(const colocate *c);
/* Share of instances colocated by the pair whose lowest bit is STACK_MAP_LOWEST + i, i < STACK_MAP_PAIRS; and by the
 * baseline's map. */
double colocate_pair_share(const colocate *c, uint32_t i);
double colocate_baseline_share(const colocate *c);
/* Share of the lines of instances that lie in the stack of their instance's first one, where it is sent: by that pair,
 * by the baseline's map, and by a map of each range (of the kept sample, as colocate_share). */
double colocate_pair_beside(const colocate *c, uint32_t i);
double colocate_baseline_beside(const colocate *c);
double colocate_beside(const colocate *c, const stack_map *maps, const stack_map *other);
/* Lines of instances in the busiest stack by that pair over its fair share of them: 1 to the number of stacks. The same
 * of the bytes of touched ranges. */
double colocate_pair_uneven(const colocate *c, uint32_t i);
double colocate_pair_uneven_bytes(const colocate *c, uint32_t i);
/* No pair with a lowest bit beyond `highest` is taken from now on: what runs at one time would lie in few stacks. */
void colocate_bound(colocate *c, uint32_t highest);
/* The instances so far are the first of many and may not tell pairs apart. From now on the highest of equals is taken,
 * up to the lowest bit `to`: what later instances touch together may not lie at the distances that these had, and is
 * rather near than far. (Else the lowest, which spreads best.) */
void colocate_lean(colocate *c, uint32_t to);
/* Does that pair put enough more lines beside than the baseline's map? */
bool colocate_worth(const colocate *c, uint32_t lowest);
/* The lowest bit of the pair that has most lines beside, of those that spread (see above); the lower of equals, but
 * for colocate_lean. */
uint32_t colocate_best_pair(const colocate *c);
/* What the first instances would have chosen, as many as make that share of all so far (rounded up, and then by up to 1
 * % of them): figure 6. Gets how many these were. */
/* worth: colocate_worth, of these instances */
uint32_t colocate_early_pair(const colocate *c, double share, uint64_t *instances, bool *worth);
/* Was range i touched by an instance? What was not keeps the baseline's map. */
bool colocate_touched(const colocate *c, uint32_t i);
/* For each range its own linear map, all together colocating as many of the instances as can be found (null space of
 * the pairs of lines that meet in instances); `maps` has room for all ranges. Returns the share of instances colocated.
 * No worse than the best pair: else it is the best pair. */
double colocate_linear(const colocate *c, stack_map *maps);
/* Share of instances colocated when each range has a map of its own (maps[i]); lines in no range have `other`. Counts
 * the kept sample. */
double colocate_share(const colocate *c, const stack_map *maps, const stack_map *other);

#endif
