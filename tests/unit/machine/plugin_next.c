/* SPDX-License-Identifier: Apache-2.0 */
/* next: the N pages behind the faulting one (8 if not told otherwise), as far as its allocation goes. */
#include <farfault/policy.h>

#include <stdlib.h>

typedef struct next {
  uint64_t bytes;
} next;

static void *create(const char *argument, const char **problem) {
  char *end = NULL;
  unsigned long pages = argument ? strtoul(argument, &end, 10) : 8;
  if (argument && (end == argument || *end || pages == 0 || pages > 512)) {
    *problem = "the number of pages is from 1 to 512";
    return NULL;
  }
  next *n = malloc(sizeof *n);
  if (!n) abort();
  n->bytes = pages * FF_PAGE_BYTES;
  return n;
}

static void faulted(void *state, ff_view *view, const ff_fault *faults, size_t count) {
  const next *n = state;
  for (size_t i = 0; i < count; i++) {
    ff_allocation a;
    if (!view->allocation(view, faults[i].address, &a)) continue;
    uint64_t begin = (faults[i].address & ~(FF_PAGE_BYTES - 1)) + FF_PAGE_BYTES, end = a.address + a.bytes;
    if (begin < end) view->propose(view, begin, end - begin < n->bytes ? end - begin : n->bytes);
  }
}

const ff_policy ff_policy_plugin = {
    .version = FF_POLICY_VERSION,
    .name = "next",
    .summary = "the N pages behind the faulting one",
    .create = create,
    .destroy = free,
    .faulted = faulted,
};
