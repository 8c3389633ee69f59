/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses of kernels over the end of an allocation, in its last page: the callbacks that get them.
 *
 * Every allocation begins on a page of its own (address_space.h), so the page of such an access begins inside of the
 * allocation, and has no byte of another one. */
#include "exec/memory/overrun.h"

#include <pthread.h>
#include <stdlib.h>

#include "exec/memory/space.h"

static void (*told)(const char *text);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t said_of[EXEC_OVERRUNS_TOLD], said; /* allocations' numbers; one more when others have been met */

void exec_overrun_use(void (*tell)(const char *text)) {
  pthread_mutex_lock(&lock);
  told = tell;
  said = 0;
  pthread_mutex_unlock(&lock);
}

typedef enum news { NEWS_NONE, NEWS_ALLOCATION, NEWS_OTHERS } news;

static bool is_known(uint32_t allocation) {
  uint32_t count = __atomic_load_n(&said, __ATOMIC_ACQUIRE);
  bool known = count > EXEC_OVERRUNS_TOLD;
  for (uint32_t n = 0; n < count && n < EXEC_OVERRUNS_TOLD; n++) known = known || said_of[n] == allocation;
  return known;
}

/* What is in said_of does not change any more. */
static news note(uint32_t allocation) {
  news is = NEWS_NONE;
  if (is_known(allocation)) return is;
  pthread_mutex_lock(&lock);
  if (!is_known(allocation)) {
    is = said < EXEC_OVERRUNS_TOLD ? NEWS_ALLOCATION : NEWS_OTHERS;
    if (is == NEWS_ALLOCATION) said_of[said] = allocation;
    __atomic_store_n(&said, said + 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&lock);
  return is;
}

static void tell(const core_warp *w, const exec_instr *i, uint32_t lane, const exec_allocation *allocation,
                 uint64_t address, uint32_t bytes) {
  news is = note(allocation->id);
  ff_text text = {0};
  if (is == NEWS_ALLOCATION) core_overrun_explain(w, i, lane, allocation, address, bytes, &text);
  if (is != NEWS_NONE) told(text.chars);
  free(text.chars);
}

bool core_overrun(const core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, uint32_t bytes,
                  bool writes) {
  if (!told || !exec_memory_in_arena(w->launch->memory, address) || address % EXEC_PAGE_BYTES + bytes > EXEC_PAGE_BYTES)
    return false;
  const exec_span *span = exec_memory_span(w->launch->memory, address - address % EXEC_PAGE_BYTES);
  if (!span || span->info.range != EXEC_ALLOCATED) return false;
  if (span->info.exempt && writes) return false; /* a module's variables lie side by side on a GPU */
  if ((writes ? span->writable : span->readable) != span->info.bytes) return false; /* freed, closed, read only */
  tell(w, i, lane, &span->info, address, bytes);
  return true;
}

uint64_t core_overrun_room(const core_warp *w, const exec_span *span) {
  if (!told || !exec_memory_in_arena(w->launch->memory, span->info.address)) return 0;
  if (span->info.range != EXEC_ALLOCATED || span->readable != span->info.bytes || !is_known(span->info.id)) return 0;
  return (span->readable + EXEC_PAGE_BYTES - 1) / EXEC_PAGE_BYTES * EXEC_PAGE_BYTES;
}
