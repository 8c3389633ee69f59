/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses are multicast memory: a list in order of address, under a lock that kernels only read. */
#include "exec/memory/multicast.h"

#include <pthread.h>
#include <string.h>

#include "base/memory.h"

typedef struct range {
  uint64_t address, bytes;
  const exec_multicast *team;
  bool reads, writes;
} range;

static struct {
  pthread_rwlock_t lock;
  FF_VEC(range) ranges; /* apart from each other */
} all = {.lock = PTHREAD_RWLOCK_INITIALIZER};

bool exec_multicast_any(void) { return __atomic_load_n(&all.ranges.count, __ATOMIC_RELAXED) != 0; }

static size_t place_of(uint64_t address) { /* the first that ends behind it */
  size_t low = 0, high = all.ranges.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (all.ranges.items[middle].address + all.ranges.items[middle].bytes > address) high = middle;
    else low = middle + 1;
  }
  return low;
}

static range *range_of(uint64_t address) {
  size_t at = place_of(address);
  return at < all.ranges.count && all.ranges.items[at].address <= address ? &all.ranges.items[at] : NULL;
}

void exec_multicast_add(uint64_t address, uint64_t bytes, const exec_multicast *team) {
  pthread_rwlock_wrlock(&all.lock);
  size_t at = place_of(address);
  FF_PUSH(&all.ranges, ((range){0}));
  memmove(&all.ranges.items[at + 1], &all.ranges.items[at], (all.ranges.count - 1 - at) * sizeof(range));
  all.ranges.items[at] = (range){.address = address, .bytes = bytes, .team = team};
  pthread_rwlock_unlock(&all.lock);
}

void exec_multicast_remove(uint64_t address) {
  pthread_rwlock_wrlock(&all.lock);
  range *r = range_of(address);
  if (r) {
    all.ranges.count--;
    memmove(r, r + 1, (size_t)(all.ranges.items + all.ranges.count - r) * sizeof *r);
  }
  pthread_rwlock_unlock(&all.lock);
}

bool exec_multicast_open(uint64_t address, bool reads, bool writes) {
  pthread_rwlock_wrlock(&all.lock);
  range *r = range_of(address);
  if (r) {
    r->reads = reads;
    r->writes = writes;
  }
  pthread_rwlock_unlock(&all.lock);
  return r != NULL;
}

exec_team_view exec_multicast_find(uint64_t address) {
  pthread_rwlock_rdlock(&all.lock);
  const range *r = range_of(address);
  exec_team_view view = {0};
  if (r) view = (exec_team_view){r->team, address - r->address, r->reads, r->writes};
  pthread_rwlock_unlock(&all.lock);
  return view;
}
