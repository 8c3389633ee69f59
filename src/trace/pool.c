/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of record words, in a few sizes, kept for reuse. exec threads take them, readers give them back: a list per
 * size under its own lock, touched once per page of several hundred records. */
#include <stdlib.h>

#include "trace/private.h"

enum { POOL_KEEP_BYTES = 8 << 20 }; /* per class; more goes back to the system */

void pool_init(page_pool *pool) {
  for (int c = 0; c < PAGE_CLASSES; c++) pthread_mutex_init(&pool->classes[c].mutex, NULL);
}

void pool_free(page_pool *pool) {
  for (int c = 0; c < PAGE_CLASSES; c++) {
    for (trace_page *page = pool->classes[c].free; page;) {
      trace_page *next = page->next;
      free(page);
      page = next;
    }
    pthread_mutex_destroy(&pool->classes[c].mutex);
  }
}

static trace_page *page_allocate(uint32_t size_class) {
  trace_page *page = ff_realloc(NULL, PAGE_BYTES(size_class));
  page->size_class = size_class;
  return page;
}

trace_page *pool_take(page_pool *pool, uint32_t size_class, uint32_t count) {
  trace_page *list = NULL;
  pthread_mutex_lock(&pool->classes[size_class].mutex);
  while (count && pool->classes[size_class].free) {
    trace_page *page = pool->classes[size_class].free;
    pool->classes[size_class].free = page->next;
    pool->classes[size_class].count--;
    page->next = list;
    list = page;
    count--;
  }
  pthread_mutex_unlock(&pool->classes[size_class].mutex);
  while (count--) {
    trace_page *page = page_allocate(size_class);
    page->next = list;
    list = page;
  }
  return list;
}

void pool_give(page_pool *pool, trace_page *list) {
  while (list) {
    uint32_t c = list->size_class;
    trace_page *surplus = NULL;
    pthread_mutex_lock(&pool->classes[c].mutex);
    while (list && list->size_class == c) {
      trace_page *next = list->next;
      bool keep = pool->classes[c].count * PAGE_BYTES(c) < POOL_KEEP_BYTES;
      list->next = keep ? pool->classes[c].free : surplus;
      *(keep ? &pool->classes[c].free : &surplus) = list;
      pool->classes[c].count += keep;
      list = next;
    }
    pthread_mutex_unlock(&pool->classes[c].mutex);
    while (surplus) {
      trace_page *next = surplus->next;
      free(surplus);
      surplus = next;
    }
  }
}
