/* SPDX-License-Identifier: Apache-2.0 */
/* A history as JSON (docs/json.md), written by hand, a list per line, and read back by jansson.
 *
 * Lists of events are written as columns of equal length; series of zeros and empty lists are left
 * out; maps are written sparse, as flat lists of bin, row, number. Of what is read, every index is one that the reader
 * of it may use: bins, rows, kernels; lists are as long as they say; begin <= end. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/json_parts.h"

typedef struct column {
  const char *name;
  size_t offset, size;      /* of the member: 1, 4 or 8 bytes; more: a text */
  const char *const *words; /* it is written as one of these; NULL: as a number */
  uint32_t word_count;
  bool later; /* files of earlier versions do not have it */
} column;

static const char *const direction_names[] = {"d2h", "h2d"};

#define NUMBER(type, name, member) \
  { name, offsetof(type, member), sizeof(((type *)0)->member), NULL, 0, false }
#define LATER(type, name, member) \
  { name, offsetof(type, member), sizeof(((type *)0)->member), NULL, 0, true }
#define WORD(type, name, member, words) \
  { name, offsetof(type, member), sizeof(((type *)0)->member), words, sizeof words / sizeof *words, false }
#define SPAN(type) NUMBER(type, "begin_ps", begin), NUMBER(type, "end_ps", end)
static const column kernel_columns[] = {
    NUMBER(history_kernel, "kernel", kernel),      NUMBER(history_kernel, "launch", launch),
    NUMBER(history_kernel, "stream", stream),      SPAN(history_kernel),
    NUMBER(history_kernel, "blocks", blocks),      LATER(history_kernel, "called_ps", called),
    LATER(history_kernel, "returned_ps", returned)};
static const column copy_columns[] = {WORD(history_copy, "kind", kind, history_copy_names),
                                      NUMBER(history_copy, "stream", stream),
                                      NUMBER(history_copy, "allocation", allocation),
                                      SPAN(history_copy),
                                      NUMBER(history_copy, "bytes", bytes),
                                      LATER(history_copy, "called_ps", called),
                                      LATER(history_copy, "returned_ps", returned),
                                      LATER(history_copy, "blocking", blocking)};
static const column batch_columns[] = {SPAN(history_batch), NUMBER(history_batch, "faults", faults),
                                       NUMBER(history_batch, "bytes", bytes)};
static const column transfer_columns[] = {WORD(history_transfer, "direction", in, direction_names),
                                          WORD(history_transfer, "cause", cause, history_cause_names),
                                          SPAN(history_transfer), NUMBER(history_transfer, "bytes", bytes),
                                          NUMBER(history_transfer, "pieces", pieces)};

static const column host_fault_columns[] = {
    NUMBER(history_host_faults, "begin_ps", begin), NUMBER(history_host_faults, "address", address),
    NUMBER(history_host_faults, "step_bytes", step), NUMBER(history_host_faults, "faults", faults)};
static const column range_columns[] = {
    NUMBER(history_range, "name", name), NUMBER(history_range, "domain_bytes", domain),
    NUMBER(history_range, "thread", thread), SPAN(history_range), NUMBER(history_range, "started", started)};
static const column block_columns[] = {NUMBER(history_block, "allocation", allocation),
                                       NUMBER(history_block, "offset", offset), NUMBER(history_block, "kernel", kernel),
                                       NUMBER(history_block, "accesses", accesses),
                                       NUMBER(history_block, "faults", faults)};

typedef struct list { /* one of a history's seven */
  const char *name;
  const column *columns;
  uint32_t column_count;
  size_t item_size, items, count, left_out; /* the last three: offsets in sim_history */
} list;
#define LIST(name, columns, type)                                                                      \
  {                                                                                                    \
#name, columns, sizeof columns / sizeof *columns, sizeof(type), offsetof(sim_history, name.items), \
        offsetof(sim_history, name.count), offsetof(sim_history, name##_left_out)                      \
  }
static const list lists[] = {LIST(kernels, kernel_columns, history_kernel),
                             LIST(copies, copy_columns, history_copy),
                             LIST(batches, batch_columns, history_batch),
                             LIST(transfers, transfer_columns, history_transfer),
                             LIST(host_faults, host_fault_columns, history_host_faults),
                             LIST(ranges, range_columns, history_range),
                             LIST(blocks, block_columns, history_block)};
enum { LISTS = sizeof lists / sizeof *lists };

static uint64_t member_get(const void *item, const column *c) {
  const char *at = (const char *)item + c->offset;
  if (c->size == 8) return *(const uint64_t *)(const void *)at;
  return c->size == 4 ? *(const uint32_t *)(const void *)at : *(const bool *)(const void *)at;
}

static void member_set(void *item, const column *c, uint64_t value) {
  char *at = (char *)item + c->offset;
  if (c->size == 8) *(uint64_t *)(void *)at = value;
  else if (c->size == 4) *(uint32_t *)(void *)at = (uint32_t)value;
  else *(bool *)(void *)at = value != 0;
}

static uint32_t map_bins(const sim_history *h) {
  return (h->bins + (1u << HISTORY_MAP_SHIFT) - 1) >> HISTORY_MAP_SHIFT;
}

/* ---- writing ---- */

static void add_number(ff_text *out, const char *before, uint64_t value) {
  ff_text_add(out, "%s%llu", before, (unsigned long long)value);
}

static void add_quoted(ff_text *out, const char *text) {
  json_t *value = json_text_value(text);
  char *quoted = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
  ff_text_add(out, "%s", quoted ? quoted : "\"\"");
  free(quoted);
  json_decref(value);
}

static bool all_zero(const uint64_t *values, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (values[i]) return false;
  return true;
}

static void add_series(const sim_history *h, ff_text *out) {
  const char *separator = "";
  ff_text_add(out, ",\n    \"series\": {");
  for (int i = 0; i < HISTORY_SERIES_COUNT; i++) {
    if (all_zero(h->series[i], h->bins)) continue;
    ff_text_add(out, "%s\n     \"%s\": [", separator, history_series_infos[i].name);
    for (uint32_t bin = 0; bin < h->bins; bin++) add_number(out, bin ? "," : "", h->series[i][bin]);
    ff_text_add(out, "]");
    separator = ",";
  }
  ff_text_add(out, "}");
}

static void add_list(const sim_history *h, const list *l, ff_text *out) {
  const char *items = *(const char *const *)(const void *)((const char *)h + l->items);
  size_t count = *(const size_t *)(const void *)((const char *)h + l->count);
  if (!count) return;
  ff_text_add(out, ",\n    \"%s\": {\"count\": %zu, \"left_out\": %llu", l->name, count,
              (unsigned long long)*(const uint64_t *)(const void *)((const char *)h + l->left_out));
  for (uint32_t c = 0; c < l->column_count; c++) {
    ff_text_add(out, ",\n     \"%s\": [", l->columns[c].name);
    for (size_t i = 0; i < count; i++) {
      if (l->columns[c].size > 8) {
        ff_text_add(out, "%s", i ? "," : "");
        add_quoted(out, items + i * l->item_size + l->columns[c].offset);
        continue;
      }
      uint64_t value = member_get(items + i * l->item_size, &l->columns[c]);
      if (l->columns[c].words) ff_text_add(out, "%s\"%s\"", i ? "," : "", l->columns[c].words[value]);
      else add_number(out, i ? "," : "", value);
    }
    ff_text_add(out, "]");
  }
  ff_text_add(out, "}");
}

/* opened by the first number, or by sparse_end if `always` */
typedef struct sparse {
  ff_text *out;
  const char *name;
  bool open;
} sparse;

static void sparse_add(sparse *s, uint32_t bin, uint32_t row, uint64_t value) {
  if (!s->open) ff_text_add(s->out, ",\n      \"%s\": [", s->name);
  ff_text_add(s->out, "%s%u,%u,%llu", s->open ? "," : "", bin, row, (unsigned long long)value);
  s->open = true;
}

static void sparse_end(sparse *s, bool always) {
  if (!s->open && always) ff_text_add(s->out, ",\n      \"%s\": [", s->name);
  if (s->open || always) ff_text_add(s->out, "]");
}

typedef enum cell_member { CELL_ACCESSES, CELL_FAULTS, CELL_EVICTED, CELL_MEMBERS } cell_member;
static const char *const cell_names[CELL_MEMBERS] = {"accesses", "faults", "evicted_bytes"};
static uint64_t *cell_member_of(history_cell *cell, cell_member member) {
  return member == CELL_ACCESSES ? &cell->accesses : member == CELL_FAULTS ? &cell->faults : &cell->evicted_bytes;
}

static void add_cells(const history_map *m, uint32_t bins, cell_member member, ff_text *out) {
  sparse s = {out, cell_names[member], false};
  for (uint32_t i = 0; i < bins * m->rows; i++) {
    uint64_t value = *cell_member_of(&m->cells[i], member);
    if (value) sparse_add(&s, i / m->rows, i % m->rows, value);
  }
  sparse_end(&s, false);
}

/* Where it differs from the bin before. */
static void add_resident(const history_map *m, uint32_t bins, ff_text *out) {
  sparse s = {out, "resident_bytes", false};
  if (!m->resident) return;
  for (uint32_t i = 0; i < bins * m->rows; i++)
    if (m->resident[i] != (i < m->rows ? 0 : m->resident[i - m->rows]))
      sparse_add(&s, i / m->rows, i % m->rows, m->resident[i]);
  sparse_end(&s, true);
}

static void add_maps(const sim_history *h, ff_text *out) {
  if (!h->maps.count) return;
  ff_text_add(out, ",\n    \"heat\": {\"bin_ps\": %llu, \"bins\": %u, \"left_out\": %llu, \"maps\": [",
              1ull << (h->shift + HISTORY_MAP_SHIFT), map_bins(h), (unsigned long long)h->maps_left_out);
  for (size_t i = 0; i < h->maps.count; i++) {
    const history_map *m = h->maps.items[i];
    ff_text_add(out,
                "%s\n     {\"allocation\": %u, \"address\": %llu, \"bytes\": %llu, \"row_bytes\": %llu, \"rows\": %u",
                i ? "," : "", m->allocation, (unsigned long long)m->address, (unsigned long long)m->bytes,
                1ull << m->row_shift, m->rows);
    for (int member = 0; member < CELL_MEMBERS; member++) add_cells(m, map_bins(h), (cell_member)member, out);
    add_resident(m, map_bins(h), out);
    ff_text_add(out, "}");
  }
  ff_text_add(out, "]}");
}

void json_history_write(const sim_history *h, ff_text *out) {
  ff_text_add(out, "{\n    \"bin_ps\": %llu, \"bins\": %u", 1ull << h->shift, h->bins);
  add_series(h, out);
  for (int i = 0; i < LISTS; i++) add_list(h, &lists[i], out);
  add_maps(h, out);
  ff_text_add(out, "\n   }");
}

/* ---- reading ---- */

static ff_status get_number(json_reader *r, const json_t *value, const char *key, uint64_t limit, uint64_t *to) {
  if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > limit)
    return json_fail(r, key, "of whole numbers in range");
  *to = (uint64_t)json_integer_value(value);
  return FF_OK;
}

/* An array of `count` items; NULL: it is not, and the error is set. */
static const json_t *get_array(json_reader *r, const json_t *object, const char *key, size_t count) {
  const json_t *value = json_object_get(object, key);
  if (json_is_array(value) && json_array_size(value) == count) return value;
  json_fail(r, key, "a list as long as it has to be");
  return NULL;
}

/* A power of two as its logarithm. */
static ff_status get_shift(json_reader *r, const json_t *object, const char *key, uint32_t least, uint32_t most,
                           uint32_t *to) {
  uint64_t value = 0;
  if (json_get_count(r, object, key, &value)) return FF_PARSE;
  if (!value || value & (value - 1) || value < UINT64_C(1) << least || value > UINT64_C(1) << most)
    return json_fail(r, key, "an acceptable power of two");
  *to = (uint32_t)__builtin_ctzll(value);
  return FF_OK;
}

static ff_status get_limited(json_reader *r, const json_t *object, const char *key, uint64_t limit, uint32_t *to) {
  uint64_t value = 0;
  if (json_get_count(r, object, key, &value)) return FF_PARSE;
  if (value > limit) return json_fail(r, key, "a number in range");
  *to = (uint32_t)value;
  return FF_OK;
}

static ff_status get_series(json_reader *r, const json_t *from, sim_history *h) {
  const json_t *all = json_object_get(from, "series");
  for (int i = 0; i < HISTORY_SERIES_COUNT; i++) {
    const char *name = history_series_infos[i].name;
    if (!json_object_get(all, name)) continue;
    const json_t *values = get_array(r, all, name, h->bins);
    if (!values) return FF_PARSE;
    for (uint32_t bin = 0; bin < h->bins; bin++)
      if (get_number(r, json_array_get(values, bin), name, INT64_MAX, &h->series[i][bin])) return FF_PARSE;
  }
  return FF_OK;
}

static ff_status get_member(json_reader *r, const json_t *value, const column *c, void *item) {
  uint64_t number = 0;
  if (c->size > 8) {
    const char *text = json_string_value(value);
    if (!text || strlen(text) >= c->size) return json_fail(r, c->name, "of texts that are not too long");
    strcpy((char *)item + c->offset, text);
    return FF_OK;
  }
  if (!c->words) {
    if (get_number(r, value, c->name, c->size == 8 ? INT64_MAX : UINT32_MAX, &number)) return FF_PARSE;
  } else {
    const char *word = json_string_value(value);
    while (number < c->word_count && (!word || strcmp(word, c->words[number]))) number++;
    if (number == c->word_count) return json_fail(r, c->name, "of words that are known");
  }
  member_set(item, c, number);
  return FF_OK;
}

static ff_status get_list(json_reader *r, const json_t *from, const list *l, sim_history *h) {
  const json_t *object = json_object_get(from, l->name);
  uint32_t count = 0;
  if (!object) return FF_OK;
  if (!json_is_object(object)) return json_fail(r, l->name, "an object");
  if (get_limited(r, object, "count", HISTORY_EVENTS, &count) ||
      json_get_count(r, object, "left_out", (uint64_t *)(void *)((char *)h + l->left_out)))
    return FF_PARSE;
  char *items = ff_alloc((count ? count : 1) * l->item_size);
  *(char **)(void *)((char *)h + l->items) = items;
  *(size_t *)(void *)((char *)h + l->count) = count;
  for (uint32_t c = 0; c < l->column_count; c++) {
    if (l->columns[c].later && !json_object_get(object, l->columns[c].name)) continue;
    const json_t *values = get_array(r, object, l->columns[c].name, count);
    for (uint32_t i = 0; values && i < count; i++)
      if (get_member(r, json_array_get(values, i), &l->columns[c], items + i * l->item_size)) return FF_PARSE;
    if (!values) return FF_PARSE;
  }
  return FF_OK;
}

static ff_status check_lists(json_reader *r, const sim_history *h, const sim_result *result) {
  for (size_t i = 0; i < h->kernels.count; i++) {
    if (h->kernels.items[i].kernel >= result->kernel_count)
      return json_fail(r, "kernel", "of numbers of the run's kernels");
    if (h->kernels.items[i].begin > h->kernels.items[i].end) return json_fail(r, "end_ps", "behind the begin");
  }
  for (size_t i = 0; i < h->copies.count; i++)
    if (h->copies.items[i].begin > h->copies.items[i].end) return json_fail(r, "end_ps", "behind the begin");
  for (size_t i = 0; i < h->batches.count; i++)
    if (h->batches.items[i].begin > h->batches.items[i].end) return json_fail(r, "end_ps", "behind the begin");
  for (size_t i = 0; i < h->blocks.count; i++) {
    const history_block *b = &h->blocks.items[i];
    if (b->kernel >= result->kernel_count) return json_fail(r, "kernel", "of numbers of the run's kernels");
    if (i && b[-1].allocation == b->allocation && b[-1].offset >= b->offset)
      return json_fail(r, "offset", "rising within an allocation");
  }
  for (size_t i = 0; i < h->ranges.count; i++) {
    const history_range *range = &h->ranges.items[i];
    if (range->begin > range->end) return json_fail(r, "end_ps", "behind the begin");
    if (range->thread > INT32_MAX) return json_fail(r, "thread", "of numbers in range");
    if (range->domain && (range->domain >= sizeof range->name || range->name[range->domain] != ':'))
      return json_fail(r, "domain_bytes", "where the name has its colon");
  }
  for (size_t i = 0; i < h->transfers.count; i++)
    if (h->transfers.items[i].begin > h->transfers.items[i].end) return json_fail(r, "end_ps", "behind the begin");
  return FF_OK;
}

/* The next bin, row, number of a sparse list; *at moves on. */
static ff_status get_triple(json_reader *r, const json_t *values, const char *key, const history_map *m, uint32_t bins,
                            size_t *at, uint64_t triple[3]) {
  const uint64_t limits[3] = {bins - 1, m->rows - 1, INT64_MAX};
  if (!bins) return json_fail(r, key, "empty, but there are no bins");
  for (int i = 0; i < 3; i++)
    if (get_number(r, json_array_get(values, *at + (size_t)i), key, limits[i], &triple[i])) return FF_PARSE;
  *at += 3;
  return FF_OK;
}

static ff_status sparse_list(json_reader *r, const json_t *object, const char *key, const json_t **values) {
  *values = json_object_get(object, key);
  if (!*values) return FF_OK;
  if (!json_is_array(*values) || json_array_size(*values) % 3 ||
      json_array_size(*values) > 3 * HISTORY_ROWS * HISTORY_MAP_BINS)
    return json_fail(r, key, "a list of bin, row, number");
  return FF_OK;
}

static ff_status get_cells(json_reader *r, const json_t *object, cell_member member, const history_map *m,
                           uint32_t bins) {
  const json_t *values;
  uint64_t triple[3];
  if (sparse_list(r, object, cell_names[member], &values)) return FF_PARSE;
  for (size_t at = 0; at < json_array_size(values);) {
    if (get_triple(r, values, cell_names[member], m, bins, &at, triple)) return FF_PARSE;
    *cell_member_of(&m->cells[triple[0] * m->rows + triple[1]], member) = triple[2];
  }
  return FF_OK;
}

static ff_status get_resident(json_reader *r, const json_t *object, history_map *m, uint32_t bins) {
  const json_t *values;
  uint64_t triple[3];
  if (sparse_list(r, object, "resident_bytes", &values)) return FF_PARSE;
  if (!values) return FF_OK;
  m->resident = ff_alloc((size_t)HISTORY_MAP_BINS * m->rows * sizeof *m->resident);
  for (size_t at = 0; at < json_array_size(values);) {
    if (get_triple(r, values, "resident_bytes", m, bins, &at, triple)) return FF_PARSE;
    for (uint64_t bin = triple[0]; bin < bins; bin++) m->resident[bin * m->rows + triple[1]] = triple[2];
  }
  return FF_OK;
}

static ff_status get_map(json_reader *r, const json_t *object, sim_history *h) {
  history_map *m = ff_alloc(sizeof *m);
  FF_PUSH(&h->maps, m);
  if (!json_is_object(object)) return json_fail(r, "maps", "a list of objects");
  if (get_limited(r, object, "allocation", UINT32_MAX, &m->allocation) ||
      json_get_count(r, object, "address", &m->address) || json_get_count(r, object, "bytes", &m->bytes) ||
      get_shift(r, object, "row_bytes", 12, 62, &m->row_shift) ||
      get_limited(r, object, "rows", HISTORY_ROWS, &m->rows))
    return FF_PARSE;
  if (!m->bytes || (m->bytes - 1) >> m->row_shift != (uint64_t)m->rows - 1)
    return json_fail(r, "rows", "what bytes and row_bytes make");
  m->cells = ff_alloc((size_t)HISTORY_MAP_BINS * m->rows * sizeof *m->cells);
  for (int member = 0; member < CELL_MEMBERS; member++)
    if (get_cells(r, object, (cell_member)member, m, map_bins(h))) return FF_PARSE;
  return get_resident(r, object, m, map_bins(h));
}

static ff_status get_maps(json_reader *r, const json_t *from, sim_history *h) {
  const json_t *heat = json_object_get(from, "heat"), *maps = json_object_get(heat, "maps");
  if (!heat) return FF_OK;
  if (!json_is_array(maps) || json_array_size(maps) > HISTORY_MAPS)
    return json_fail(r, "maps", "a list of acceptable length");
  if (json_get_count(r, heat, "left_out", &h->maps_left_out)) return FF_PARSE;
  for (size_t i = 0; i < json_array_size(maps); i++)
    if (get_map(r, json_array_get(maps, i), h)) return FF_PARSE;
  return FF_OK;
}

ff_status json_history_read(json_reader *r, const json_t *from, sim_result *result) {
  sim_history *h = result->history = history_create();
  if (!json_is_object(from)) return json_fail(r, "history", "an object");
  if (get_shift(r, from, "bin_ps", 0, 53, &h->shift) || get_limited(r, from, "bins", HISTORY_BINS, &h->bins) ||
      get_series(r, from, h))
    return FF_PARSE;
  for (int i = 0; i < LISTS; i++)
    if (get_list(r, from, &lists[i], h)) return FF_PARSE;
  ff_status status = check_lists(r, h, result);
  return status ? status : get_maps(r, from, h);
}
