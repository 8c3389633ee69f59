/* SPDX-License-Identifier: Apache-2.0 */
/* nonsense: proposes what is of no use. Ranges that overflow, that lie outside of everything, that are empty,
 * huge, unaligned, or there already; the same range again and again; every page by itself; nothing at all; and asks the
 * view about such addresses. As a prefetcher and as an evictor it may cost time, and must cost nothing else.
 *
 * "nonsense:N" begins with another seed. Its choices depend on its calls alone: the same run gives the same
 * nonsense. */
#include <farfault/policy.h>

#include <stdlib.h>

typedef struct nonsense {
  uint64_t random, seen;
} nonsense; /* `seen`: an address that exists, or did */

static uint64_t next(nonsense *n) { /* splitmix64 */
  uint64_t x = n->random += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

static void *create(const char *argument, const char **problem) {
  nonsense *n = calloc(1, sizeof *n);
  if (!n) abort();
  n->random = argument ? strtoull(argument, NULL, 10) : 1;
  return n;
}

static uint64_t some_address(nonsense *n, const ff_view *view) {
  ff_allocation a;
  switch (next(n) % 8) {
  case 0: return 0;
  case 1: return UINT64_MAX - next(n) % 5000;
  case 2: return next(n);
  case 3: return n->seen;
  case 4: return view->next_allocation(view, 0, &a) ? a.address + a.bytes - next(n) % 3 : 7;
  case 5: return (n->seen & ~(FF_BLOCK_BYTES - 1)) - next(n) % 2;
  default: return n->seen + (next(n) % 4096 - 2048) * (next(n) % 2 ? FF_PAGE_BYTES : 1); /* near it; may wrap */
  }
}

static uint64_t some_bytes(nonsense *n) {
  static const uint64_t sizes[] = {0,
                                   1,
                                   4095,
                                   4096,
                                   4097,
                                   65536,
                                   FF_BLOCK_BYTES - 1,
                                   FF_BLOCK_BYTES,
                                   FF_BLOCK_BYTES + 1,
                                   UINT64_C(1) << 40,
                                   UINT64_MAX / 2,
                                   UINT64_MAX - 1,
                                   UINT64_MAX};
  return next(n) % 2 ? sizes[next(n) % (sizeof sizes / sizeof *sizes)] : next(n) >> next(n) % 64;
}

static void ask(nonsense *n, ff_view *view) {
  ff_block block;
  ff_allocation a;
  uint64_t address = some_address(n, view), bytes = next(n) % (4 * FF_BLOCK_BYTES);
  view->block(view, address, &block);
  n->random +=
      view->allocation(view, address, &a) + view->next_allocation(view, address, &a) + block.valid.word[next(n) % 8];
  n->random += view->last_use(view, address, bytes) + view->next_use(view, address, bytes) +
               view->first_touch(view, next(n) % 1000);
  n->random += view->free_bytes(view) + view->random(view);
}

static void propose_nonsense(nonsense *n, ff_view *view) {
  uint64_t kind = next(n) % 16, count = kind < 8 ? 1 : 5;
  if (kind == 0) count = 0;
  if (kind == 1) count = 1000;
  uint64_t address = some_address(n, view), bytes = some_bytes(n);
  if (next(n) % 4 == 0) ask(n, view);
  for (uint64_t i = 0; i < count; i++) {
    view->propose(view, address, bytes);
    if (kind % 3 == 0) continue; /* the same again */
    if (kind == 1) {
      address += FF_PAGE_BYTES;
      bytes = 1;
    } else {
      address = some_address(n, view);
      bytes = some_bytes(n);
    }
  }
}

static void faulted(void *state, ff_view *view, const ff_fault *faults, size_t count) {
  nonsense *n = state;
  if (count) n->seen = faults[next(n) % count].address;
  propose_nonsense(n, view);
}
static void idle(void *state, ff_view *view) { propose_nonsense(state, view); }
static void evict(void *state, ff_view *view, uint64_t bytes) { propose_nonsense(state, view); }
static void moved(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  nonsense *n = state;
  if (next(n) % 4 == 0) n->seen = address;
  if (next(n) % 16 == 0) view->propose(view, address, bytes); /* at the wrong time, too */
}

const ff_policy ff_policy_plugin = {
    .version = FF_POLICY_VERSION,
    .name = "nonsense",
    .summary = "what no user could want",
    .create = create,
    .destroy = free,
    .faulted = faulted,
    .idle = idle,
    .evict = evict,
    .arrived = moved,
    .left = moved,
};
