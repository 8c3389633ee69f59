/* SPDX-License-Identifier: Apache-2.0 */
/* oracle: Zheng et al., HPCA 2016. While the link is idle, the pages in the order in which the program will touch them
 * first. It needs the program's future, so it runs when the program has ended. What is evicted is not brought again.
 *
 * A page that does not exist yet but will be used is waited for: the future behind it is no nearer. */
#include <stdlib.h>

#include "base/memory.h"
#include "policy/pages.h"
#include "policy/policies.h"

typedef struct oracle {
  uint64_t next;
} oracle; /* how many first touches have been dealt with */

static void *create(const char *argument, const char **problem) {
  if (!argument) return ff_alloc(sizeof(oracle));
  *problem = "oracle takes no argument";
  return NULL;
}

static void destroy(void *state) { free(state); }

static void idle(void *state, ff_view *view) {
  oracle *o = state;
  if (view->free_bytes(view) < FF_PAGE_BYTES) return;
  for (uint64_t address; (address = view->first_touch(view, o->next)) != FF_NEVER; o->next++) {
    address &= ~(FF_PAGE_BYTES - 1);
    ff_block block;
    view->block(view, address, &block);
    bool exists = pages_has(&block.mapped, pages_index(address));
    if (!exists && view->next_use(view, address, FF_PAGE_BYTES) != FF_NEVER) return;
    if (!exists || pages_has(&block.valid, pages_index(address))) continue;
    view->propose(view, address, FF_PAGE_BYTES);
    o->next++;
    return;
  }
}

const ff_policy policy_prefetch_oracle = {
    .version = FF_POLICY_VERSION,
    .name = "oracle",
    .summary = "Zheng: while the link is idle, pages in the order of first touch (runs when the program has ended)",
    .needs_future = true,
    .create = create,
    .destroy = destroy,
    .idle = idle,
};
