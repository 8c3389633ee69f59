/* SPDX-License-Identifier: Apache-2.0 */
/* anypage: the random prefetcher of Ganguly et al., ISCA 2019: with each far-fault one page of its block (2 MiB, as far
 * as its allocation goes), all with equal chances; if it is there already, none. The published simulator draws so;
 * Zheng et al.'s `random` is another one, which uses the idle link. */
#include "policy/pages.h"
#include "policy/policies.h"

static void faulted(void *state, ff_view *view, const ff_fault *faults, size_t count) {
  for (size_t i = 0; i < count; i++) {
    pages_piece piece;
    if (!pages_piece_at(view, faults[i].address, &piece)) continue;
    uint64_t page = piece.first + view->random(view) % (piece.end - piece.first);
    view->propose(view, piece.block + page * FF_PAGE_BYTES, FF_PAGE_BYTES);
  }
}

const ff_policy policy_prefetch_anypage = {
    .version = FF_POLICY_VERSION,
    .name = "anypage",
    .summary = "Ganguly: a random page of the fault's 2M block",
    .faulted = faulted,
};
