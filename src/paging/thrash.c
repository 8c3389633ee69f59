/* SPDX-License-Identifier: Apache-2.0 */
/* Mitigation of thrashing, as NVIDIA's driver does it for pages that the CPU and the GPU take from each other (release
 * 595.45.04, by its public source). For managers that say so (manager.h: manager_thrashing, whose names are used here).
 *
 * An *event* is a page's migration to a processor because of a fault or of a prefetch that came with one; evictions are
 * none, and what the program orders (prefetches, advice) forgets the page. A block of 2 MiB keeps accounts of its pages
 * from its first event on that follows one of the other processor within `lapse`. An event counts if the page's last
 * one was the other processor's and no longer than `lapse` ago; with `events` of them the page thrashes.
 *
 * Asked at a fault on a thrashing page whose last event is no longer than `lapse` ago:
 *
 *     NONE --fault--> a period of `nap` begins: one processor is favoured (not the one of the period before), the other
 *                     is throttled: its fault is not served until the period is over
 *          --fault of the favoured one after `throttles` throttles--> PINNED for `pin`: where it is the CPU's, the GPU maps it
 *
 * PAGER_THRASH_PIN_CPU comes also where the GPU is favoured but the CPU could not reach its memory (PCIe). A block in
 * which nothing has thrashed for `epoch` and nothing was ever pinned forgets everything, at most `resets` times. A page
 * whose events lie further apart than `lapse` thrashes no longer, but what it was throttled counts on. */
#include <stdlib.h>

#include "paging/pager.h"

#define NEVER UINT64_MAX

typedef struct thrash_page {
  uint64_t last;    /* event; NEVER: none */
  uint64_t nap_end; /* of the current period; 0: none */
  uint32_t events, throttles;
  uint8_t last_processor, favoured; /* pager_processor; 0: none */
  uint8_t processors, throttled;    /* sets of them */
  uint8_t pinned;                   /* where; 0: nowhere */
} thrash_page;

struct pager_thrash { /* of a block */
  uint64_t last, last_thrashing;
  uint32_t resets;
  uint8_t last_processor;
  bool ever_pinned;
  thrash_page *pages; /* by unit; NULL: no account yet */
};

static const manager_thrashing *limits(const pager *p) {
  return p->config.manager->batches ? p->config.manager->thrashing : NULL;
}

static uint64_t ps_of(double microseconds) { return (uint64_t)(microseconds * 1e6 + 0.5); }

static uint32_t units_per_block(const pager *p) { return 1u << (PAGER_CHUNK_SHIFT - p->unit_shift); }

static thrash_page *page_of(const pager *p, const pager_chunk *chunk, uint64_t address) {
  if (!chunk->thrash || !chunk->thrash->pages) return NULL;
  return &chunk->thrash->pages[(address & ((UINT64_C(1) << PAGER_CHUNK_SHIFT) - 1)) >> p->unit_shift];
}

static bool thrashes(const pager *p, const thrash_page *page) { return page && page->events >= limits(p)->events; }

/* It no longer thrashes. How often it was throttled so far, and which processor was favoured, counts on if it does so
 * again. */
static void forget(thrash_page *page) {
  uint64_t nap_end = page->throttled ? 0 : page->nap_end;
  *page = (thrash_page){.last = NEVER, .nap_end = nap_end, .throttles = page->throttles, .favoured = page->favoured};
}

static void start_account(const pager *p, struct pager_thrash *block) {
  block->pages = ff_alloc(units_per_block(p) * sizeof *block->pages);
  for (uint32_t u = 0; u < units_per_block(p); u++) forget(&block->pages[u]);
}

void pager_thrash_free(pager_chunk *chunk) {
  if (chunk->thrash) free(chunk->thrash->pages);
  free(chunk->thrash);
}

/* ---- events ---- */

static void page_event(const pager *p, struct pager_thrash *block, thrash_page *page, pager_processor processor,
                       uint64_t now) {
  bool near = page->last != NEVER && now - page->last <= ps_of(limits(p)->lapse_us);
  if (near && page->last_processor != processor && page->events < UINT32_MAX) page->events++;
  page->processors |= (uint8_t)processor;
  page->last = now;
  page->last_processor = (uint8_t)processor;
  if (near && thrashes(p, page)) block->last_thrashing = now;
  if (!near && thrashes(p, page) && !page->pinned) forget(page);
}

void pager_thrash_event(pager *p, uint64_t address, pager_processor processor, uint64_t now) {
  if (!limits(p)) return;
  pager_chunk *chunk = pager_chunk_at(p, address);
  struct pager_thrash *block = chunk->thrash;
  if (!block) {
    block = chunk->thrash = ff_alloc(sizeof *block);
    block->last = block->last_thrashing = NEVER;
  }
  bool both =
      block->last != NEVER && block->last_processor != processor && now - block->last <= ps_of(limits(p)->lapse_us);
  if (!block->pages && both) start_account(p, block);
  if (block->pages) page_event(p, block, page_of(p, chunk, address), processor, now);
  block->last = now;
  block->last_processor = (uint8_t)processor;
}

/* ---- pins ---- */

static void pin(pager *p, struct pager_thrash *block, thrash_page *page, uint64_t address, pager_processor where,
                uint64_t now) {
  if (!page->pinned) {
    uint64_t deadline = now + ps_of(limits(p)->pin_us);
    FF_PUSH(&p->pins, ((pager_pin){.address = address, .deadline = deadline}));
    if (p->pins_due > deadline) p->pins_due = deadline;
    if (page->throttled) page->nap_end = 0; /* no warp waits any more */
    page->throttled = 0;
    page->throttles = 0;
    block->ever_pinned = true;
    p->pinned++;
  }
  page->pinned = (uint8_t)where;
  pager_unit *unit = pager_find(p, address);
  if (where == PAGER_CPU) unit->hints |= PAGER_PINNED;
  else unit->hints &= PAGER_HINTS & ~PAGER_PINNED;
}

void pager_thrash_forget(pager *p, uint64_t address) {
  pager_chunk *chunk = pager_chunk_at(p, address);
  thrash_page *page = page_of(p, chunk, address);
  if (!page) return;
  forget(page);
  pager_unit *unit = pager_find(p, address);
  if (!(unit->hints & PAGER_PINNED)) return;
  unit->hints &= PAGER_HINTS & ~PAGER_PINNED;
  pager_remap(p, unit, address);
}

void pager_unpin(pager *p, uint64_t now) {
  while (p->pins_first < p->pins.count && p->pins.items[p->pins_first].deadline <= now) {
    uint64_t address = p->pins.items[p->pins_first++].address;
    thrash_page *page = page_of(p, pager_chunk_at(p, address), address);
    if (page && page->pinned) pager_thrash_forget(p, address); /* else it was freed, or the program moved it */
  }
  p->pins_due = p->pins_first < p->pins.count ? p->pins.items[p->pins_first].deadline : NEVER;
  if (p->pins_first == p->pins.count) p->pins_first = p->pins.count = 0;
}

/* ---- faults ---- */

/* Nothing has thrashed here for an epoch: what is known of the block's pages is forgotten. */
static bool epoch_over(const pager *p, struct pager_thrash *block, uint64_t now) {
  const manager_thrashing *l = limits(p);
  if (block->last_thrashing == NEVER || now - block->last_thrashing <= ps_of(l->epoch_us)) return false;
  if (block->ever_pinned || block->resets >= l->resets) return false;
  block->resets++;
  free(block->pages);
  block->pages = NULL;
  block->last = block->last_thrashing = NEVER;
  return true;
}

/* A new period begins when the last one is over; the processor that is favoured in it. */
static void next_period(const pager *p, thrash_page *page, pager_processor asks, uint64_t now) {
  if (now > page->nap_end) {
    page->nap_end = now + ps_of(limits(p)->nap_us);
    page->favoured = page->favoured == asks ? 0 : (uint8_t)asks;
  } else if (!page->favoured) {
    page->favoured = (uint8_t)asks;
  }
}

/* Of two processors, of which the GPU can reach the CPU's memory and the CPU not the GPU's. */
static pager_thrash_answer decide(const pager *p, const thrash_page *page, const pager_unit *unit,
                                  pager_processor asks) {
  bool favoured = page->favoured == asks, enough = page->throttles >= limits(p)->throttles;
  if (unit->hints & PAGER_PREFERS_CPU) return PAGER_THRASH_PIN_CPU;
  if (unit->hints & PAGER_PREFERS_GPU && asks == PAGER_GPU) {
    if (page->pinned) return page->pinned == PAGER_GPU || favoured ? PAGER_THRASH_PIN_GPU : PAGER_THRASH_THROTTLE;
    if (!favoured) return PAGER_THRASH_THROTTLE;
    return enough ? PAGER_THRASH_PIN_GPU : PAGER_THRASH_NONE;
  }
  if (page->pinned) {
    bool both = page->processors == (PAGER_CPU | PAGER_GPU);
    if (favoured) return asks == PAGER_CPU || both ? PAGER_THRASH_PIN_CPU : PAGER_THRASH_PIN_GPU;
    if (page->pinned == asks || page->pinned == PAGER_CPU)
      return page->pinned == PAGER_CPU ? PAGER_THRASH_PIN_CPU : PAGER_THRASH_PIN_GPU;
    return PAGER_THRASH_THROTTLE;
  }
  if (!favoured) return PAGER_THRASH_THROTTLE;
  if (!enough) return PAGER_THRASH_NONE;
  return asks == PAGER_CPU ? PAGER_THRASH_PIN_CPU : PAGER_THRASH_PIN_GPU;
}

static void throttle(pager *p, thrash_page *page, pager_processor asks) {
  if (page->throttled & asks) return;
  page->throttled |= (uint8_t)asks;
  if (!page->pinned) page->throttles++;
  p->throttled++;
}

pager_thrash_answer pager_thrash_ask(pager *p, uint64_t address, pager_processor asks, uint64_t now, uint64_t *until) {
  if (!limits(p)) return PAGER_THRASH_NONE;
  pager_chunk *chunk = pager_chunk_at(p, address);
  thrash_page *page = page_of(p, chunk, address);
  if (!page || epoch_over(p, chunk->thrash, now) || !thrashes(p, page)) return PAGER_THRASH_NONE;
  *until = page->nap_end;
  if (page->throttled & asks) {
    if (now < page->nap_end && page->favoured != asks) return PAGER_THRASH_THROTTLE;
    page->throttled &= (uint8_t)~asks;
    if (!page->throttled) page->nap_end = 0;
  }
  if (now - page->last > ps_of(limits(p)->lapse_us) && !page->pinned) return PAGER_THRASH_NONE;
  page->processors |= (uint8_t)asks;
  next_period(p, page, asks, now);
  *until = page->nap_end;
  pager_thrash_answer answer = decide(p, page, pager_find(p, address), asks);
  if (answer == PAGER_THRASH_THROTTLE) throttle(p, page, asks);
  else if (answer != PAGER_THRASH_NONE)
    pin(p, chunk->thrash, page, address, answer == PAGER_THRASH_PIN_CPU ? PAGER_CPU : PAGER_GPU, now);
  return answer;
}

bool pager_thrashes(const pager *p, const pager_chunk *chunk, uint64_t address) {
  return limits(p) && chunk->thrash && thrashes(p, page_of(p, chunk, address));
}
