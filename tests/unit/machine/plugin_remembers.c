/* SPDX-License-Identifier: Apache-2.0 */
/* remembers: of a plug-in that stays in its process: each prefetcher that is made there takes one page more than the
 * one before. Points of a sweep must not depend on what ran before them. */
#define _GNU_SOURCE /* dladdr */
#include <farfault/policy.h>

#include <dlfcn.h>
#include <stdlib.h>

static uint64_t made;

static void *create(const char *argument, const char **problem) {
  Dl_info here;
  if (dladdr(&made, &here)) dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  uint64_t *pages = malloc(sizeof *pages);
  if (!pages) abort();
  *pages = ++made;
  return pages;
}

static void faulted(void *state, ff_view *view, const ff_fault *faults, size_t count) {
  const uint64_t *pages = state;
  for (size_t i = 0; i < count; i++) {
    ff_allocation a;
    if (!view->allocation(view, faults[i].address, &a)) continue;
    uint64_t begin = (faults[i].address & ~(FF_PAGE_BYTES - 1)) + FF_PAGE_BYTES, end = a.address + a.bytes,
             bytes = *pages * FF_PAGE_BYTES;
    if (begin < end) view->propose(view, begin, end - begin < bytes ? end - begin : bytes);
  }
}

const ff_policy ff_policy_plugin = {
    .version = FF_POLICY_VERSION,
    .name = "remembers",
    .summary = "more pages behind the faulting one each time",
    .create = create,
    .destroy = free,
    .faulted = faulted,
};
