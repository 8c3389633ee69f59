/* SPDX-License-Identifier: Apache-2.0 */
/* sl: sequential-local, Ganguly et al., ISCA 2019: the 64 KiB group around the fault, as far as its allocation goes. */
#include "policy/pages.h"
#include "policy/policies.h"

static void faulted(void *state, ff_view *view, const ff_fault *faults, size_t count) {
  for (size_t i = 0; i < count; i++) {
    pages_piece piece;
    if (!pages_piece_at(view, faults[i].address, &piece)) continue;
    ff_block block;
    view->block(view, piece.block, &block);
    uint32_t page = pages_index(faults[i].address), first = page / FF_GROUP_PAGES * FF_GROUP_PAGES,
             end = first + FF_GROUP_PAGES;
    ff_pages group = pages_between(first > piece.first ? first : piece.first, end < piece.end ? end : piece.end);
    ff_pages known = block.valid;
    pages_add_faulted(view, piece.block, faults, count, &known);
    for (size_t earlier = 0; earlier < i; earlier++) /* proposed already */
      if (faults[earlier].address / FF_GROUP_BYTES == faults[i].address / FF_GROUP_BYTES) group = (ff_pages){0};
    group = pages_without(&group, &known);
    pages_propose(view, piece.block, &group, page);
  }
}

const ff_policy policy_prefetch_sl = {
    .version = FF_POLICY_VERSION,
    .name = "sl",
    .summary = "the 64K group around the fault",
    .faulted = faulted,
};
