/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulation adds to its history (history.h), apart from single numbers, which stand next to their counters.
 *
 * What is resident is looked at when time passes the end of a bin: in series from the pager's sum, in maps from its
 * sets of valid pages, four bins apart. Between two events nothing changes, so what is there when the first event
 * behind the end comes was there at the end; what the host frees and allocates between events asks for itself. */
#include <string.h>

#include "machine/observe/observer.h"

static const pager_allocation *allocation_of(const observer *o, const pager_unit *unit) {
  return &o->pager->allocations.items[unit->allocation];
}

/* NULL: it has no map. */
static history_map *map_of(observer *o, const pager_unit *unit) {
  uint32_t owner = allocation_of(o, unit)->owner;
  sim_history *h = o->history;
  if (owner < h->maps.count && h->maps.items[owner]) return h->maps.items[owner];
  if (!owner || owner == ALLOCATIONS_SHOWN) return NULL; /* no allocation, or several */
  const sim_allocation_result *a = o->allocations.items[owner];
  return history_map_of(h, owner, a->id, a->address, a->bytes);
}

static history_block *block_of(observer *o, const pager_unit *unit, uint64_t address) {
  uint32_t owner = allocation_of(o, unit)->owner;
  const sim_allocation_result *a = o->allocations.items[owner];
  return history_block_at(o->history, owner, address > a->address ? address - a->address : 0);
}

void record_accesses(observer *o, const pager_unit *unit, uint64_t address, ps time, uint64_t count) {
  if (o->history->paused) return;
  uint32_t bin = history_bin(o->history, time);
  history_map *map = map_of(o, unit);
  o->history->series[HISTORY_accesses][bin] += count;
  if (map) history_cell_in(map, bin, address)->accesses += count;
  history_block *block = block_of(o, unit, address);
  if (block) block->accesses += count;
}

void record_access(observer *o, const pager_unit *unit, uint64_t address, ps time) {
  record_accesses(o, unit, address, time, 1);
}

void record_fault(observer *o, const pager_unit *unit, uint64_t address, ps time) {
  if (o->history->paused) return;
  history_add(o->history, HISTORY_faults, time, 1);
  history_add(o->history, HISTORY_refaults, time, unit->evicted);
  history_map *map = map_of(o, unit);
  if (map) history_cell_at(o->history, map, time, address)->faults++;
  history_block *block = block_of(o, unit, address);
  if (block) block->faults++;
}

/* A unit may cover several rows: each gets its bytes. */
void record_evicted(observer *o, const pager_unit *unit, uint64_t address, bool write_back, ps time) {
  sim_history *h = o->history;
  if (h->paused) return;
  history_add(h, HISTORY_evicted_bytes, time, pager_bytes(o->pager, unit));
  if (write_back) history_add(h, HISTORY_written_back_bytes, time, pager_bytes(o->pager, unit));
  if (unit->prefetched && !unit->last_use)
    history_add(h, HISTORY_prefetched_unused_bytes, time, pager_bytes(o->pager, unit));
  history_map *map = map_of(o, unit);
  if (!map) return;
  uint64_t at = address & ~(o->pager->config.unit_bytes - 1);
  if (at < map->address) at = map->address;
  uint64_t row_bytes = UINT64_C(1) << map->row_shift;
  for (uint64_t left = pager_bytes(o->pager, unit); left;) {
    uint64_t to_edge = row_bytes - (at - map->address) % row_bytes, bytes = left < to_edge ? left : to_edge;
    history_cell_at(h, map, time, at)->evicted_bytes += bytes;
    at += bytes;
    left -= bytes;
  }
}

/* A remote access (HISTORY_CAUSE_COUNT) is not listed: there are as many as accesses. */
void record_link(sim_history *h, history_cause cause, bool in, uint64_t bytes, ps begin, ps end) {
  history_spread(h, in ? HISTORY_h2d_busy_ps : HISTORY_d2h_busy_ps, begin, end, end - begin);
  if (cause == HISTORY_CAUSE_COUNT) {
    history_spread(h, HISTORY_remote_bytes, begin, end, bytes);
    return;
  }
  record_peer(h, cause, in, bytes, begin, end);
}

void record_peer(sim_history *h, history_cause cause, bool in, uint64_t bytes, ps begin, ps end) {
  if (cause != HISTORY_CAUSE_REMOTE) history_spread(h, in ? HISTORY_h2d_bytes : HISTORY_d2h_bytes, begin, end, bytes);
  history_note_transfer(
      h, (history_transfer){.begin = begin, .end = end, .bytes = bytes, .pieces = 1, .cause = cause, .in = in});
}

/* ---- operations ---- */

static uint32_t id_at(observer *o, uint64_t address) {
  return o->allocations.items[allocation_of(o, pager_find(o->pager, address))->owner]->id;
}

void record_operation(observer *o, const trace_op *op, host_call call, ps begin, ps end) {
  if (!o->history) return;
  history_copy copy = {.begin = begin,
                       .end = end,
                       .called = call.began,
                       .returned = op->blocking && call.returned < end ? end : call.returned,
                       .stream = op->stream,
                       .blocking = op->blocking};
  if (op->kind == TRACE_OP_COPY) {
    static const history_copy_kind kinds[] = {HISTORY_COPY_H2D, HISTORY_COPY_D2H, HISTORY_COPY_D2D, HISTORY_COPY_H2H};
    copy.kind = kinds[op->copy.direction];
    copy.bytes = op->copy.width * op->copy.height;
    if (op->copy.direction != TRACE_H2H)
      copy.allocation = id_at(o, op->copy.direction == TRACE_D2H ? op->copy.from : op->copy.to);
  } else if (op->kind == TRACE_OP_SET) {
    copy.kind = HISTORY_COPY_SET;
    copy.bytes = op->set.width * op->set.height;
    copy.allocation = id_at(o, op->set.to);
  } else if (op->kind == TRACE_OP_PREFETCH) {
    copy.kind = op->hint.device >= 0 ? HISTORY_COPY_PREFETCH_IN : HISTORY_COPY_PREFETCH_OUT;
    copy.bytes = op->hint.bytes;
    copy.allocation = id_at(o, op->hint.address);
  } else {
    return;
  }
  history_note_copy(o->history, copy);
}

static uint32_t number_of(const observer *o, const sim_counters *counters) {
  uint32_t i = 0;
  while (&o->kernels.items[i]->counters != counters) i++;
  return i;
}

static bool in_uses(const trace_launch *launch, uint64_t address) {
  for (uint32_t i = 0; i < launch->use_count; i++)
    if (address - launch->uses[i].address < launch->uses[i].bytes) return true;
  return false;
}

void record_arguments(observer *o, const trace_launch *launch, const sim_counters *counters) {
  const unsigned char *parameters = launch->parameters;
  for (uint32_t at = 0; parameters && at + 8 <= launch->parameter_bytes; at += 8) {
    uint64_t address;
    memcpy(&address, parameters + at, sizeof address);
    if (!in_uses(launch, address)) continue;
    uint32_t owner = allocation_of(o, pager_find(o->pager, address))->owner;
    const sim_allocation_result *a = o->allocations.items[owner];
    if (owner && owner != ALLOCATIONS_SHOWN && address - a->address < a->bytes)
      history_note_block(o->history, owner, a->id, address - a->address, number_of(o, counters));
  }
}

void record_range(observer *o, const trace_op *op, ps time) {
  if (!o->history) return;
  if (!op->range.begin) {
    history_end_range(o->history, op->range.number, time);
    return;
  }
  history_range range = {.begin = time,
                         .thread = op->range.thread,
                         .domain = op->range.domain,
                         .started = op->range.started,
                         .number = op->range.number};
  _Static_assert(sizeof range.name == sizeof op->range.name, "a range's name");
  memcpy(range.name, op->range.name, sizeof range.name);
  history_note_range(o->history, range);
}

void record_kernel(observer *o, const kernel *k, uint32_t stream) {
  history_note_kernel(o->history, (history_kernel){.launch = k->number,
                                                   .begin = k->began,
                                                   .end = k->ended,
                                                   .blocks = k->blocks,
                                                   .called = k->call.began,
                                                   .returned = k->call.returned,
                                                   .kernel = number_of(o, k->counters),
                                                   .stream = stream});
}

/* ---- what is resident ---- */

static uint64_t resident_bytes(const observer *o) {
  return o->paged ? o->pager->resident + o->pager->in_flight : *o->mapped;
}

/* Adds the valid pages of 64 in a row, from `address` on, to the rows of the map: at once where one row has them
 * all. */
static void add_pages(const history_map *m, uint64_t address, uint64_t valid, uint64_t *rows) {
  uint64_t first = address - m->address, last = first + 63 * FF_PAGE_BYTES;
  if (address >= m->address && last < m->bytes && first >> m->row_shift == last >> m->row_shift) {
    rows[first >> m->row_shift] += (uint64_t)__builtin_popcountll(valid) * FF_PAGE_BYTES;
    return;
  }
  for (; valid; valid &= valid - 1) {
    uint64_t page = address + (uint64_t)__builtin_ctzll(valid) * FF_PAGE_BYTES;
    if (page >= m->address && page - m->address < m->bytes) rows[(page - m->address) >> m->row_shift] += FF_PAGE_BYTES;
  }
}

static void add_block(const history_map *m, uint64_t block, const ff_pages *valid, uint64_t *rows) {
  for (uint32_t w = 0; w < sizeof valid->word / sizeof *valid->word; w++)
    if (valid->word[w]) add_pages(m, block + (uint64_t)w * 64 * FF_PAGE_BYTES, valid->word[w], rows);
}

static void resident_rows(observer *o, const history_map *m, uint64_t *rows) {
  for (uint32_t row = 0; row < m->rows; row++) rows[row] = 0;
  if (m->released) return;
  for (uint64_t block = m->address >> PAGER_CHUNK_SHIFT; block <= (m->address + m->bytes - 1) >> PAGER_CHUNK_SHIFT;
       block++)
    if (pager_chunk_made(o->pager, block))
      add_block(m, block << PAGER_CHUNK_SHIFT, &pager_chunk_find(o->pager, block)->valid, rows);
}

/* Fills the maps of `h` up to the map's bin `until`. */
static void sample_maps(observer *o, sim_history *h, uint32_t until) {
  uint64_t rows[HISTORY_ROWS];
  for (size_t i = 0; i < h->maps.count && h->map_sampled < until; i++) {
    history_map *m = h->maps.items[i];
    if (!m || !m->resident) continue;
    resident_rows(o, m, rows);
    for (uint32_t bin = h->map_sampled; bin < until; bin++)
      for (uint32_t row = 0; row < m->rows; row++) m->resident[bin * m->rows + row] = rows[row];
  }
  if (h->map_sampled < until) h->map_sampled = until;
}

void record_sample(observer *o, ps time) {
  sim_history *h = o->history;
  if (!h || time < o->next_sample) return;
  history_level(h, HISTORY_resident_bytes, time, resident_bytes(o));
  sample_maps(o, h, h->sampled >> HISTORY_MAP_SHIFT);
  o->next_sample = history_next_sample(h);
}

void record_released(observer *o, uint32_t owner, ps time) {
  record_sample(o, time);
  if (o->history && owner < o->history->maps.count && o->history->maps.items[owner])
    o->history->maps.items[owner]->released = true;
}

static uint64_t used_allocations(const observer *o) {
  uint64_t count = 0;
  for (size_t i = 1; i < o->allocations.count; i++) {
    const sim_counters *c = &o->allocations.items[i]->counters;
    count += c->accesses || c->faults || c->evicted_bytes;
  }
  return count;
}

sim_history *record_copy(observer *o, ps end) {
  sim_history *copy = history_copy_of(o->history, end, resident_bytes(o));
  /* what was used outside of the ranges has no map, and lacks none */
  if (!copy->profiled || copy->maps.count == HISTORY_MAPS) copy->maps_left_out = used_allocations(o) - copy->maps.count;
  sample_maps(o, copy, (copy->bins + (1u << HISTORY_MAP_SHIFT) - 1) >> HISTORY_MAP_SHIFT);
  return copy;
}
