/* SPDX-License-Identifier: Apache-2.0 */
/* Bins, maps and lists of a history (history.h): adding to them, widening, copying. Knows nothing of the simulation.
 *
 * Widening adds neighbours, and sharing out rounds the running sum, not its parts, so that no amount is lost
 * (history.h). A bin's level is the last one that was known in it. */
#include "machine/observe/history.h"

#include <stdlib.h>
#include <string.h>

const history_series_info history_series_infos[HISTORY_SERIES_COUNT] = {
#define HISTORY_SUM(name, unit, help) {#name, unit, help, false},
#define HISTORY_LEVEL(name, unit, help) {#name, unit, help, true},
#include "machine/observe/history.def"
#undef HISTORY_SUM
#undef HISTORY_LEVEL
};

#define X(id, name, help) name,
const char *const history_cause_names[HISTORY_CAUSE_COUNT] = {HISTORY_CAUSES(X)};
#undef X
#define X(id, name) name,
const char *const history_copy_names[HISTORY_COPY_COUNT] = {HISTORY_COPIES(X)};
#undef X

enum { PAGE_SHIFT = 12 };

sim_history *history_create(void) {
  sim_history *h = ff_alloc(sizeof *h);
  h->shift = HISTORY_FIRST_SHIFT;
  return h;
}

static void map_free(history_map *m) {
  if (!m) return;
  free(m->cells);
  free(m->resident);
  free(m);
}

void history_free(sim_history *h) {
  if (!h) return;
  for (size_t i = 0; i < h->maps.count; i++) map_free(h->maps.items[i]);
  free(h->kernels.items);
  free(h->copies.items);
  free(h->batches.items);
  free(h->transfers.items);
  free(h->host_faults.items);
  free(h->ranges.items);
  free(h->blocks.items);
  for (size_t i = 0; i < h->block_sets.count; i++) free(h->block_sets.items[i]);
  free(h->block_sets.items);
  free(h->maps.items);
  free(h);
}

/* ---- bins ---- */

static void merge_map(history_map *m) {
  for (uint32_t bin = 0; bin < HISTORY_MAP_BINS / 2; bin++)
    for (uint32_t row = 0; row < m->rows; row++) {
      const history_cell *a = &m->cells[2 * bin * m->rows + row], *b = a + m->rows;
      m->cells[bin * m->rows + row] =
          (history_cell){a->accesses + b->accesses, a->faults + b->faults, a->evicted_bytes + b->evicted_bytes};
      if (m->resident) m->resident[bin * m->rows + row] = m->resident[(2 * bin + 1) * m->rows + row];
    }
  size_t half = (size_t)HISTORY_MAP_BINS / 2 * m->rows;
  memset(m->cells + half, 0, half * sizeof *m->cells);
  if (m->resident) memset(m->resident + half, 0, half * sizeof *m->resident);
}

/* The bin that `sampled` falls into has no level yet: what is merged into it now is written over. */
static void merge(sim_history *h) {
  for (int i = 0; i < HISTORY_SERIES_COUNT; i++) {
    uint64_t *bins = h->series[i];
    for (uint32_t b = 0; b < HISTORY_BINS / 2; b++)
      bins[b] = history_series_infos[i].level ? bins[2 * b + 1] : bins[2 * b] + bins[2 * b + 1];
    memset(bins + HISTORY_BINS / 2, 0, HISTORY_BINS / 2 * sizeof *bins);
  }
  for (size_t i = 0; i < h->maps.count; i++)
    if (h->maps.items[i]) merge_map(h->maps.items[i]);
  h->shift++;
  h->sampled /= 2;
  h->map_sampled /= 2;
  h->bins = (h->bins + 1) / 2;
}

void history_widen(sim_history *h, uint64_t time) {
  while (time >> h->shift >= HISTORY_BINS) merge(h);
}

void history_spread(sim_history *h, history_series series, uint64_t begin, uint64_t end, uint64_t amount) {
  if (!h || !amount || h->paused) return;
  uint32_t first = history_bin(h, begin), last = end > begin ? history_bin(h, end - 1) : first;
  first = history_bin(h, begin); /* the bins may be wider now */
  uint64_t before = 0;
  for (uint32_t bin = first; bin < last; bin++) {
    uint64_t edge = (uint64_t)(bin + 1) << h->shift;
    uint64_t upto = edge - begin; /* right for times; the division is only made for others */
    if (amount != end - begin) upto = (uint64_t)((unsigned __int128)amount * upto / (end - begin));
    h->series[series][bin] += upto - before;
    before = upto;
  }
  h->series[series][last] += amount - before;
}

void history_level(sim_history *h, history_series series, uint64_t time, uint64_t value) {
  uint32_t until = history_bin(h, time);
  while (h->sampled < until) h->series[series][h->sampled++] = value;
}

/* ---- lists ---- */

#define NOTE(h, list, item)                                          \
  do {                                                               \
    if (!(h) || (h)->paused) return;                                 \
    if ((h)->list.count < HISTORY_EVENTS) FF_PUSH(&(h)->list, item); \
    else (h)->list##_left_out++;                                     \
  } while (0)

void history_note_kernel(sim_history *h, history_kernel kernel) { NOTE(h, kernels, kernel); }
void history_note_copy(sim_history *h, history_copy copy) { NOTE(h, copies, copy); }
void history_note_batch(sim_history *h, history_batch batch) { NOTE(h, batches, batch); }
void history_note_host_faults(sim_history *h, history_host_faults faults) { NOTE(h, host_faults, faults); }

/* Also while it is paused: whether anything is counted in the range is not known yet. */
void history_note_range(sim_history *h, history_range range) {
  if (!h) return;
  if (h->ranges.count == HISTORY_EVENTS) {
    h->ranges_left_out++;
    return;
  }
  range.resumed = h->resumed;
  range.counted = !h->paused;
  if (h->last_range < range.number) h->last_range = range.number;
  FF_PUSH(&h->ranges, range);
}

static void end_range(const sim_history *h, history_range *range, uint64_t time) {
  range->end = time < range->begin ? range->begin : time;
  range->counted = range->counted || !h->paused || range->resumed != h->resumed;
  range->over = true;
}

void history_end_range(sim_history *h, uint64_t number, uint64_t time) {
  if (!h || number > h->last_range) return;
  for (size_t i = h->ranges.count; i-- > 0;) {
    history_range *range = &h->ranges.items[i];
    if (range->number != number || range->over) continue;
    end_range(h, range, time);
    return;
  }
}

void history_pause(sim_history *h, bool paused) {
  h->resumed += h->paused && !paused;
  h->paused = paused;
}

/* Of a profiled history only ranges in which something was counted. */
static void close_ranges(sim_history *c, uint64_t end) {
  size_t kept = 0;
  for (size_t i = 0; i < c->ranges.count; i++) {
    history_range *range = &c->ranges.items[i];
    if (!range->over) end_range(c, range, end);
    if (range->counted || !c->profiled) c->ranges.items[kept++] = *range;
  }
  c->ranges.count = kept;
}

void history_note_transfer(sim_history *h, history_transfer transfer) {
  if (!h || h->paused) return;
  size_t *open = transfer.in ? &h->open_in : &h->open_out;
  history_transfer *last = *open ? &h->transfers.items[*open - 1] : NULL;
  if (last && last->cause == transfer.cause && last->end == transfer.begin) {
    last->end = transfer.end;
    last->bytes += transfer.bytes;
    last->pieces += transfer.pieces;
    return;
  }
  *open = h->transfers.count < HISTORY_EVENTS ? h->transfers.count + 1 : 0;
  NOTE(h, transfers, transfer);
}

/* ---- maps ---- */

history_map *history_map_of(sim_history *h, uint32_t owner, uint32_t id, uint64_t address, uint64_t bytes) {
  while (h->maps.count <= owner) FF_PUSH(&h->maps, NULL);
  if (h->maps.items[owner] || h->map_count == HISTORY_MAPS || !bytes) return h->maps.items[owner];
  history_map *m = ff_alloc(sizeof *m);
  uint64_t page = (UINT64_C(1) << PAGE_SHIFT) - 1,
           end = address + bytes > UINT64_MAX - page ? UINT64_MAX & ~page : (address + bytes + page) & ~page;
  *m = (history_map){
      .address = address & ~page, .bytes = end - (address & ~page), .row_shift = PAGE_SHIFT, .allocation = id};
  while ((m->bytes - 1) >> m->row_shift >= HISTORY_ROWS) m->row_shift++;
  m->rows = (uint32_t)((m->bytes - 1) >> m->row_shift) + 1;
  m->cells = ff_alloc((size_t)HISTORY_MAP_BINS * m->rows * sizeof *m->cells);
  if (h->keeps_resident) m->resident = ff_alloc((size_t)HISTORY_MAP_BINS * m->rows * sizeof *m->resident);
  h->maps.items[owner] = m;
  h->map_count++;
  return m;
}

/* ---- blocks ---- */

enum { LINE_BYTES = 128 };

/* The last one that begins at the offset or before it. */
static uint32_t block_index(const history_blocks *blocks, uint64_t offset) {
  uint32_t low = 0, high = blocks->count;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (blocks->items[middle].offset <= offset) low = middle;
    else high = middle;
  }
  return low;
}

void history_note_block(sim_history *h, uint32_t owner, uint32_t id, uint64_t offset, uint32_t kernel) {
  if (h->paused) return;
  offset -= offset % LINE_BYTES;
  while (h->block_sets.count <= owner) FF_PUSH(&h->block_sets, NULL);
  history_blocks *blocks = h->block_sets.items[owner];
  if (!blocks) {
    blocks = h->block_sets.items[owner] = ff_alloc(sizeof *blocks);
    blocks->items[blocks->count++] = (history_block){.allocation = id, .kernel = kernel};
  }
  uint32_t at = block_index(blocks, offset) + 1;
  if (blocks->items[at - 1].offset == offset) return;
  if (blocks->count == HISTORY_BLOCKS) {
    h->blocks_left_out++;
    return;
  }
  memmove(blocks->items + at + 1, blocks->items + at, (blocks->count - at) * sizeof *blocks->items);
  blocks->items[at] = (history_block){.offset = offset, .allocation = id, .kernel = kernel};
  blocks->count++;
}

history_block *history_block_at(sim_history *h, uint32_t owner, uint64_t offset) {
  history_blocks *blocks = owner < h->block_sets.count ? h->block_sets.items[owner] : NULL;
  return blocks ? &blocks->items[block_index(blocks, offset)] : NULL;
}

static void copy_blocks(sim_history *to, const sim_history *from) {
  to->block_sets.items = NULL;
  to->block_sets.count = to->block_sets.capacity = 0;
  for (size_t i = 0; i < from->block_sets.count; i++) {
    const history_blocks *blocks = from->block_sets.items[i];
    bool fits = blocks && to->blocks.count + blocks->count <= HISTORY_EVENTS;
    if (blocks && !fits) to->blocks_left_out += blocks->count;
    for (uint32_t k = 0; fits && blocks->count > 1 && k < blocks->count; k++) FF_PUSH(&to->blocks, blocks->items[k]);
  }
}

/* ---- copying ---- */

static void *copy_items(const void *items, size_t bytes) {
  if (!bytes) return NULL;
  void *copy = ff_alloc(bytes);
  memcpy(copy, items, bytes);
  return copy;
}

static history_map *map_copy(const history_map *from) {
  history_map *m = copy_items(from, sizeof *from);
  size_t count = (size_t)HISTORY_MAP_BINS * m->rows;
  m->cells = copy_items(from->cells, count * sizeof *m->cells);
  if (from->resident) m->resident = copy_items(from->resident, count * sizeof *m->resident);
  return m;
}

/* The lists are of structs that open with `begin` and whose order is that of their ends: few are out of place. */
#define SORT(list, type, before)                                          \
  for (size_t i = 1; i < (list)->count; i++) {                            \
    type item = (list)->items[i];                                         \
    size_t at = i;                                                        \
    for (; at && before; at--) (list)->items[at] = (list)->items[at - 1]; \
    (list)->items[at] = item;                                             \
  }

#define COPY_LIST(to, from, list)                                                                     \
  (to)->list.items = copy_items((from)->list.items, (from)->list.count * sizeof *(from)->list.items), \
  (to)->list.capacity = (from)->list.count

sim_history *history_copy_of(const sim_history *h, uint64_t end, uint64_t resident) {
  sim_history *c = copy_items(h, sizeof *h);
  COPY_LIST(c, h, kernels);
  COPY_LIST(c, h, copies);
  COPY_LIST(c, h, batches);
  COPY_LIST(c, h, transfers);
  COPY_LIST(c, h, host_faults);
  COPY_LIST(c, h, ranges);
  close_ranges(c, end);
  copy_blocks(c, h);
  c->maps.items = NULL;
  c->maps.count = c->maps.capacity = 0;
  for (size_t i = 0; i < h->maps.count; i++)
    if (h->maps.items[i]) FF_PUSH(&c->maps, map_copy(h->maps.items[i]));
  if (end) history_bin(c, end - 1);
  for (; c->sampled < c->bins; c->sampled++) c->series[HISTORY_resident_bytes][c->sampled] = resident;
  SORT(&c->kernels, history_kernel, (c->kernels.items[at - 1].begin > item.begin));
  SORT(&c->copies, history_copy, (c->copies.items[at - 1].begin > item.begin));
  SORT(&c->host_faults, history_host_faults, (c->host_faults.items[at - 1].begin > item.begin));
  SORT(&c->transfers, history_transfer, (c->transfers.items[at - 1].begin > item.begin));
  return c;
}
