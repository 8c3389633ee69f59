/* SPDX-License-Identifier: Apache-2.0 */
/* Counters by instruction (lines.h): a hash table for each code of each kernel. Numbers of instructions come from a
 * file, too, so that they are no index. */
#include "machine/observe/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

line_table *lines_create(void) { return ff_alloc(sizeof(line_table)); }

void lines_free(line_table *table) {
  if (!table) return;
  for (size_t i = 0; i < table->kernels.count; i++) {
    kernel_lines *k = table->kernels.items[i];
    for (size_t n = 0; n < k->items.count; n++) free(k->items.items[n]);
    free(k->items.items);
    free(k->offsets.items);
    free(k->buckets);
    free(k->name);
    free(k);
  }
  free(table->kernels.items);
  free(table->codes.items);
  free(table);
}

void lines_take_module(line_table *table, const trace_op *op) {
  FF_PUSH(&table->codes, ((sim_code){op->module.id, op->module.ptx, op->module.bytes}));
}

kernel_lines *lines_of_launch(line_table *table, const trace_launch *launch, uint32_t number, sim_counters *counters) {
  for (size_t i = table->kernels.count; i-- > 0;) {
    kernel_lines *k = table->kernels.items[i];
    if (k->number == number && k->module == launch->module && k->symbol == launch->symbol &&
        !strcmp(k->name, launch->kernel))
      return k;
  }
  kernel_lines *made = ff_alloc(sizeof *made);
  *made = (kernel_lines){.table = table,
                         .kernel = counters,
                         .number = number,
                         .module = launch->module,
                         .symbol = launch->symbol,
                         .name = ff_strdup(launch->kernel)};
  FF_PUSH(&table->kernels, made);
  return made;
}

/* Its bucket, or the free one where it belongs. */
static uint32_t *bucket_of(const kernel_lines *k, uint32_t pc) {
  uint32_t at = (pc * UINT32_C(0x9e3779b1)) & (k->bucket_count - 1);
  while (k->buckets[at] && k->items.items[k->buckets[at] - 1]->pc != pc) at = (at + 1) & (k->bucket_count - 1);
  return &k->buckets[at];
}

static void grow(kernel_lines *k) {
  free(k->buckets);
  k->bucket_count = k->bucket_count ? 2 * k->bucket_count : 64;
  k->buckets = ff_alloc(k->bucket_count * sizeof *k->buckets);
  for (size_t i = 0; i < k->items.count; i++) *bucket_of(k, k->items.items[i]->pc) = (uint32_t)i + 1;
}

sim_counters *lines_at(kernel_lines *k, uint32_t pc) {
  uint32_t found = k->bucket_count ? *bucket_of(k, pc) : 0;
  if (found) return &k->items.items[found - 1]->counters;
  if (k->table->item_count >= LINES_SHOWN) return k->kernel;
  if (2 * (k->items.count + 1) > k->bucket_count) grow(k);
  line_item *item = ff_alloc(sizeof *item);
  item->pc = pc;
  FF_PUSH(&k->items, item);
  *bucket_of(k, pc) = (uint32_t)k->items.count;
  k->table->item_count++;
  return &item->counters;
}

void lines_add(const line_table *table, uint32_t number, sim_counters *to) {
  for (size_t i = 0; i < table->kernels.count; i++) {
    const kernel_lines *k = table->kernels.items[i];
    for (size_t n = 0; k->number == number && n < k->items.count; n++)
      sim_counters_add(to, &k->items.items[n]->counters);
  }
}

void lines_profile(line_table *table, bool start) {
  table->inside = start;
  for (size_t i = 0; i < table->kernels.count; i++) {
    kernel_lines *k = table->kernels.items[i];
    while (k->offsets.count < k->items.count) FF_PUSH(&k->offsets, (sim_counters){0});
    for (size_t n = 0; n < k->items.count; n++)
      if (start) sim_counters_subtract(&k->offsets.items[n], &k->items.items[n]->counters);
      else sim_counters_add(&k->offsets.items[n], &k->items.items[n]->counters);
  }
}

/* Of the n-th instruction. */
static sim_counters reported(const kernel_lines *k, size_t n) {
  sim_counters counters = {0};
  if (!k->table->profiled || k->table->inside) counters = k->items.items[n]->counters;
  if (n < k->offsets.count) sim_counters_add(&counters, &k->offsets.items[n]);
  return counters;
}

/* Codes of one kernel stay in the order in which they were launched first. */
static int by_place(const void *a, const void *b) {
  const sim_line_result *x = a, *y = b;
  if (x->kernel != y->kernel) return x->kernel < y->kernel ? -1 : 1;
  if (x->code != y->code) return x->code < y->code ? -1 : 1;
  return x->pc < y->pc ? -1 : x->pc > y->pc;
}

void lines_copy(const line_table *table, sim_result *result) {
  result->lines = ff_alloc((table->item_count + (size_t)1) * sizeof *result->lines);
  result->lines_kept = true;
  for (size_t i = 0; i < table->kernels.count; i++) {
    const kernel_lines *k = table->kernels.items[i];
    for (size_t n = 0; n < k->items.count; n++) {
      sim_line_result *line = &result->lines[result->line_count];
      *line = (sim_line_result){.kernel = k->number,
                                .code = (uint32_t)i,
                                .module = k->module,
                                .symbol = k->symbol,
                                .pc = k->items.items[n]->pc,
                                .counters = reported(k, n)};
      result->line_count += !table->profiled || line->counters.accesses;
    }
  }
  FF_CHECK(table->profiled || result->line_count == table->item_count);
  qsort(result->lines, result->line_count, sizeof *result->lines, by_place);
  result->codes = ff_alloc((table->codes.count + 1) * sizeof *result->codes);
  result->code_count = (uint32_t)table->codes.count;
  if (table->codes.count) memcpy(result->codes, table->codes.items, table->codes.count * sizeof *result->codes);
}
