/* SPDX-License-Identifier: Apache-2.0 */
/* window: all that is allocated in the aligned window of a far-fault's unit around it, whatever the allocations: what
 * moves if a page of the page table moves whole (Zhang et al., 2019, whole pages of 2 MiB). A far-fault by itself moves
 * its own allocation's part. */
#include "policy/policies.h"

static void faulted(void *state, ff_view *view, const ff_fault *faults, size_t count) {
  for (size_t i = 0; i < count; i++) view->propose(view, faults[i].address & ~(view->unit_bytes - 1), view->unit_bytes);
}

const ff_policy policy_prefetch_window = {
    .version = FF_POLICY_VERSION,
    .name = "window",
    .summary = "all allocations' parts of the fault's aligned unit",
    .faulted = faulted,
};
