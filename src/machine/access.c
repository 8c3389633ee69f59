/* SPDX-License-Identifier: Apache-2.0 */
/* One warp's access: its lines go through the load/store unit one per cycle, each page is translated once, and each
 * translated line goes down (memory.c). Lines whose page is absent stay in `todo`; the warp sleeps and tries those again
 * when it is woken (hits under misses: the others have gone). */
#include "machine/model.h"

typedef struct seen_page {
  uint64_t page;      /* address >> page_shift */
  uint32_t ordinal;
  ps ready;
  bool here;
} seen_page;

typedef struct progress { /* of one call of access_continue */
  sim *s;
  sm *m;
  warp *w;
  kernel *k;
  ps ask, at;         /* when the warp came; when the unit takes the next line */
  uint64_t window;    /* unit that `unit` and `tally` belong to */
  pager_unit *unit;
  tally tally;
  uint32_t seen_count;
  bool blocked;
  seen_page seen[SEEN_PAGES];
} progress;

static void count_access(sim *s, warp *w, const uint64_t *record) {
  trace_access_op op = trace_access_operation(*record);
  tally t = tally_of(s, w->block->kernel, pager_find(s->pager, trace_line_address(record[2])));
  COUNT(&t, accesses, 1);
  if (op == TRACE_LOAD) COUNT(&t, load_accesses, 1);
  if (op == TRACE_STORE) COUNT(&t, store_accesses, 1);
  if (op == TRACE_ATOMIC) COUNT(&t, atomic_accesses, 1);
}

static bool is_load(uint64_t word) {
  trace_access_op op = trace_access_operation(word);
  return op == TRACE_LOAD || (op == TRACE_ATOMIC && trace_access_flags(word) & TRACE_RETURNS);
}

static uint64_t lines_from(const uint64_t *record, uint32_t first) {
  uint32_t left = trace_access_lines(*record) - first;
  return left >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << left) - 1;
}

void access_begin(sim *s, warp *w, const uint64_t *record, ps *time) {
  if (!trace_access_lines(*record)) return; /* no lane was active */
  if (is_load(*record)) { /* the load before the last LOAD_RING must have arrived */
    ps oldest = w->ring[w->loads % LOAD_RING];
    if (oldest > *time) {
      w->block->kernel->counters->warp_stall_ps += oldest - *time;
      *time = oldest;
    }
  }
  count_access(s, w, record);
  w->record = record;
  w->first_line = 0;
  w->todo = lines_from(record, 0);
  w->arrival = *time;
}

/* Translates the line's page, unless this call has done so. false: the line must wait. *ready: when it may go on. */
static bool translate(progress *p, uint64_t address, ps *ready) {
  uint64_t page = address >> p->s->page_shift;
  for (uint32_t i = p->seen_count; i-- > 0;)
    if (p->seen[i].page == page && p->seen[i].ordinal == p->unit->ordinal) {
      *ready = p->seen[i].ready;
      return p->seen[i].here;
    }
  translation result = tlb_translate(p->s, p->m, p->w, address, p->unit, p->ask, p->at, ready, &p->tally);
  if (result == TRANSLATION_ABSENT) p->w->waiting_units++;
  p->blocked = p->m->tlb_blocked;
  if (result == TRANSLATION_BLOCKED) return false;
  if (p->seen_count == SEEN_PAGES) p->seen_count = 0; /* only ever asks again */
  p->seen[p->seen_count++] = (seen_page){page, p->unit->ordinal, *ready, result == TRANSLATION_DONE};
  return result == TRANSLATION_DONE;
}

/* One line whose page is translated: down to the caches, or over the link if it is pinned host memory. */
static void send_line(progress *p, uint64_t word, uint64_t line, ps ready) {
  sim *s = p->s;
  uint32_t flags = trace_access_flags(word);
  request r = {.address = trace_line_address(line), .sectors = trace_line_sectors(line), .lanes = trace_line_lanes(line),
               .op = trace_access_operation(word), .bypass_l1 = flags & TRACE_BYPASS_L1, .ask = p->at,
               .at = ready > p->at ? ready : p->at, .tally = p->tally};
  if (r.op == TRACE_STORE || r.op == TRACE_ATOMIC) pager_gpu_write(s->pager, p->unit);
  else pager_gpu_read(s->pager, p->unit);
  ps data, accepted = p->at;
  if (p->unit->state == PAGER_REMOTE) {
    uint64_t bytes = (uint64_t)__builtin_popcount(r.sectors) * TRACE_SECTOR_BYTES;
    COUNT(&p->tally, remote_bytes, bytes);
    r.at = slots_wait(&p->m->l1_mshrs, r.at);
    accepted += r.at - (ready > p->at ? ready : p->at);
    data = link_remote(s, r.op == TRACE_STORE, bytes, r.ask, r.at);
    slots_hold(&p->m->l1_mshrs, data);
  } else {
    data = memory_access(s, p->m, &r, &accepted);
  }
  p->at = accepted + s->t.cycle;
  if (data > p->w->arrival) p->w->arrival = data;
}

static void one_line(progress *p, uint64_t word, uint64_t line, uint64_t bit) {
  uint64_t address = trace_line_address(line), window = address & ~(p->s->pager->config.unit_bytes - 1);
  if (window != p->window || p->unit->sibling || p->unit->ordinal) {
    p->window = window;
    p->unit = pager_find(p->s->pager, address);
    p->tally = tally_of(p->s, p->k, p->unit);
  }
  ps ready;
  if (!translate(p, address, &ready)) return;
  COUNT(&p->tally, lines, 1);
  COUNT(&p->tally, sectors, (uint32_t)__builtin_popcount(trace_line_sectors(line)));
  send_line(p, word, line, ready);
  p->w->todo &= ~bit;
}

static void access_over(sim *s, warp *w) {
  uint64_t word = *w->record;
  w->record = NULL;
  if (is_load(word)) w->ring[w->loads++ % LOAD_RING] = w->arrival;
  if (w->block->drained < w->arrival) w->block->drained = w->arrival;
}

bool access_continue(sim *s, warp *w, ps *time) {
  sm *m = w->block->sm;
  progress p = {.s = s, .m = m, .w = w, .k = w->block->kernel, .ask = *time, .window = 1};
  p.at = server_take(&m->lsu, *time, *time, 0);
  while (w->todo) {
    for (uint64_t left = w->todo; left && !p.blocked; left &= left - 1) {
      uint32_t i = (uint32_t)__builtin_ctzll(left);
      one_line(&p, *w->record, w->record[2 + w->first_line + i], UINT64_C(1) << i);
    }
    if (w->todo) break;
    if (w->first_line + 64 >= trace_access_lines(*w->record)) break;
    w->first_line += 64;
    w->todo = lines_from(w->record, w->first_line);
  }
  m->lsu.free = p.at;
  if (p.at > *time + s->t.cycle) *time = p.at - s->t.cycle; /* the warp is held until its last line was taken */
  if (!w->todo) {
    access_over(s, w);
    return true;
  }
  warp_sleep(s, w, *time);
  if (!w->waiting_units) FF_PUSH(&m->blocked_warps, w->index); /* not its own fault: the TLB is stopped */
  return false;
}
