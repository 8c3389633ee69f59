/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of record words, in a few sizes, kept for reuse. exec threads take them, readers give them back: under one lock
 * per size, touched once per page of several hundred records.
 *
 * Pages of one size are carved from slabs of 2 MiB (huge pages of the host: a simulation reads thousands of streams at
 * once, and misses in the host's TLB would cost it more than the reading). A slab's first place holds its header, so a
 * page finds its slab by its address. A slab whose pages are all back goes to the system if others have room enough.
 * What a page holds when it is taken is not known.
 *
 * pool_check:
 *     slab->free_count == pages on slab->free + places that were not used yet
 *     class->free_count == sum of slab->free_count over the class's list, which has the slabs with free pages */
#include "base/check.h"
#include "trace/trace_private.h"

#define SLAB_BYTES (UINT64_C(2) << 20)
/* of free pages, per class: a stream that is fed comes and goes in pieces of this size */
#define KEEP_BYTES (UINT64_C(16) << 20)

struct pool_slab {
  struct pool_slab *next, **link; /* in its class's list, while it has free pages */
  trace_page *free;
  uint32_t free_count, places, fresh; /* fresh: the first place that was not used yet; place 0 is this header */
};

/* Slabs of pools that are gone, for the next ones of this process: a fresh one costs the host 2 MiB of zeros, which is
 * as much as a small simulation. */
enum { KEPT_SLABS = 4 };
static pthread_mutex_t kept_mutex = PTHREAD_MUTEX_INITIALIZER;
static pool_slab *kept[KEPT_SLABS];
static uint32_t kept_count;

static pool_slab *slab_map(void) {
  pthread_mutex_lock(&kept_mutex);
  pool_slab *slab = kept_count ? kept[--kept_count] : NULL;
  pthread_mutex_unlock(&kept_mutex);
  if (!slab) return ff_map_huge(SLAB_BYTES);
  *slab = (pool_slab){0};
  return slab;
}

static void slab_keep(pool_slab *slab) {
  pthread_mutex_lock(&kept_mutex);
  bool room = kept_count < KEPT_SLABS;
  if (room) kept[kept_count++] = slab;
  pthread_mutex_unlock(&kept_mutex);
  if (!room) ff_unmap_huge(slab, SLAB_BYTES);
}

void pool_init(page_pool *pool) {
  for (int c = 0; c < PAGE_CLASSES; c++) pthread_mutex_init(&pool->classes[c].mutex, NULL);
}

static void list_add(pool_slab **list, pool_slab *slab) {
  slab->next = *list;
  slab->link = list;
  if (slab->next) slab->next->link = &slab->next;
  *list = slab;
}

static void list_drop(pool_slab *slab) {
  *slab->link = slab->next;
  if (slab->next) slab->next->link = slab->link;
}

static void slab_check(const pool_slab *slab, uint32_t size_class) {
  uint32_t pages = slab->places - slab->fresh;
  for (const trace_page *page = slab->free; page; page = page->next, pages++)
    FF_ASSERT(((uintptr_t)page & ~(uintptr_t)(SLAB_BYTES - 1)) == (uintptr_t)slab && page->size_class == size_class);
  FF_ASSERT(pages == slab->free_count && pages && slab->places == SLAB_BYTES / PAGE_BYTES(size_class));
}

void pool_check(page_pool *pool) {
  for (uint32_t c = 0; c < PAGE_CLASSES; c++) {
    uint64_t free_count = 0;
    pthread_mutex_lock(&pool->classes[c].mutex);
    for (pool_slab *const *link = &pool->classes[c].slabs; *link; link = &(*link)->next) {
      FF_ASSERT((*link)->link == link);
      slab_check(*link, c);
      free_count += (*link)->free_count;
    }
    FF_ASSERT(free_count == pool->classes[c].free_count);
    pthread_mutex_unlock(&pool->classes[c].mutex);
  }
}

void pool_free(page_pool *pool) {
  for (int c = 0; c < PAGE_CLASSES; c++) {
    for (pool_slab *slab; (slab = pool->classes[c].slabs);) {
      FF_ASSERT(slab->free_count + 1 == slab->places); /* every page is back */
      list_drop(slab);
      slab_keep(slab);
    }
    pthread_mutex_destroy(&pool->classes[c].mutex);
  }
}

static pool_slab *slab_make(page_pool *pool, uint32_t size_class) {
  pool_slab *slab = slab_map();
  slab->places = (uint32_t)(SLAB_BYTES / PAGE_BYTES(size_class));
  slab->free_count = slab->places - 1;
  slab->fresh = 1;
  pool->classes[size_class].free_count += slab->free_count;
  list_add(&pool->classes[size_class].slabs, slab);
  return slab;
}

static trace_page *page_take(page_pool *pool, uint32_t size_class) {
  pool_slab *slab = pool->classes[size_class].slabs;
  if (!slab) slab = slab_make(pool, size_class);
  trace_page *page = slab->free;
  if (page) slab->free = page->next;
  else page = (trace_page *)((char *)slab + slab->fresh++ * PAGE_BYTES(size_class));
  page->size_class = size_class;
  pool->classes[size_class].free_count--;
  if (--slab->free_count == 0) list_drop(slab);
  return page;
}

static void page_give(page_pool *pool, trace_page *page) {
  uint32_t c = page->size_class;
  pool_slab *slab = (pool_slab *)((uintptr_t)page & ~(uintptr_t)(SLAB_BYTES - 1));
  page->next = slab->free;
  slab->free = page;
  pool->classes[c].free_count++;
  if (slab->free_count++ == 0) list_add(&pool->classes[c].slabs, slab);
  if (slab->free_count + 1 < slab->places || pool->classes[c].free_count * PAGE_BYTES(c) < SLAB_BYTES + KEEP_BYTES)
    return;
  pool->classes[c].free_count -= slab->free_count;
  list_drop(slab);
  ff_unmap_huge(slab, SLAB_BYTES);
}

trace_page *pool_take(page_pool *pool, uint32_t size_class, uint32_t count) {
  trace_page *list = NULL;
  pthread_mutex_lock(&pool->classes[size_class].mutex);
  while (count--) {
    trace_page *page = page_take(pool, size_class);
    page->next = list;
    list = page;
  }
  pthread_mutex_unlock(&pool->classes[size_class].mutex);
  return list;
}

void pool_give(page_pool *pool, trace_page *list) {
  while (list) {
    uint32_t c = list->size_class;
    pthread_mutex_lock(&pool->classes[c].mutex);
    while (list && list->size_class == c) {
      trace_page *next = list->next;
      page_give(pool, list);
      list = next;
    }
    pthread_mutex_unlock(&pool->classes[c].mutex);
  }
}
