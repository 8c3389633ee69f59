/* SPDX-License-Identifier: Apache-2.0 */
/* sequential: Zheng et al., HPCA 2016. While the link is idle, 4 KiB pages from the lowest address of all allocations
 * to the highest, whatever the faults are. At the end it begins again at the lowest, for what has left or is new; if
 * there is nothing either, it rests until a fault or an eviction says that something is absent. */
#include <stdlib.h>

#include "base/memory.h"
#include "policy/pages.h"
#include "policy/policies.h"

typedef struct sequential {
  uint64_t next; /* the address to go on from */
  bool rests;
} sequential;

static void *create(const char *argument, const char **problem) {
  if (!argument) return ff_alloc(sizeof(sequential));
  *problem = "sequential takes no argument";
  return NULL;
}

static void destroy(void *state) { free(state); }

static void faulted(void *state, ff_view *view, const ff_fault *faults, size_t count) {
  ((sequential *)state)->rests = false;
}

static void idle(void *state, ff_view *view) {
  sequential *s = state;
  if (s->rests || view->free_bytes(view) < FF_PAGE_BYTES) return;
  uint64_t page = pages_next_absent(view, s->next);
  if (page == FF_NEVER && s->next) page = pages_next_absent(view, 0);
  s->rests = page == FF_NEVER;
  s->next = s->rests ? 0 : page + FF_PAGE_BYTES;
  if (!s->rests) view->propose(view, page, FF_PAGE_BYTES);
}

static void left(void *state, ff_view *view, uint64_t address, uint64_t bytes) { ((sequential *)state)->rests = false; }

const ff_policy policy_prefetch_sequential = {
    .version = FF_POLICY_VERSION,
    .name = "sequential",
    .summary = "Zheng: while the link is idle, pages from the lowest address to the highest",
    .create = create,
    .destroy = destroy,
    .faulted = faulted,
    .idle = idle,
    .left = left,
};
