/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of race.h, checked at the deep level when a block ends.
 *
 *     what a warp knows of another one is not ahead of that one's clock: seen[v] <= warp[v].clock, and its own marks
 *     (met, parted, together) and its lanes' knowledge not ahead of its own
 *     a view has its blocks in ascending order, at most RACE_VIEW_BLOCKS, of launches up to now: floor <= now
 *     race.used == sum of the cells of all pages, page_count of them, each where its number is looked up */
#include "base/check.h"
#include "check/race_private.h"

static void check_view(const race *r, const race_view *view) {
  if (!view) return;
  FF_ASSERT(view->refs && view->count <= RACE_VIEW_BLOCKS && view->floor <= r->now);
  for (uint32_t n = 1; n < view->count; n++)
    FF_ASSERT(view->words[(n - 1) * (size_t)(1 + r->warps)] < view->words[n * (size_t)(1 + r->warps)]);
}

static void check_warp(const race_block *b, uint32_t warp) {
  const race_warp *w = &b->warp[warp];
  for (uint32_t v = 0; v < b->warps; v++) FF_ASSERT(v == warp || w->seen[v] <= b->warp[v].clock);
  FF_ASSERT(w->met <= w->clock && w->parted <= w->clock && w->together <= w->clock);
  for (uint32_t lane = 0; w->lane_seen && lane < RACE_LANES; lane++)
    for (uint32_t of = 0; of < RACE_LANES; of++) FF_ASSERT(w->lane_seen[lane][of] <= w->clock);
  check_view(b->race, w->others);
  check_view(b->race, w->fenced[0]);
  check_view(b->race, w->fenced[1]);
}

void race_block_check(const race_block *b) {
  for (uint32_t w = 0; w < b->warps; w++) check_warp(b, w);
  race_pages_check(b->race);
}
