/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries as `nsys stats` has them (stats.h): what ran, grouped by name, with total, average, median, least, most and
 * the sample's standard deviation; the group with the largest total first, groups of one total by name.
 *
 * The program's copies and sets are those that the history lists; "[CUDA Unified Memory memcpy ...]" is what the link
 * carried for another reason than these, but for accesses that reach over it. */
#include "report/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/table.h"

typedef struct group {
  const char *name; /* borrowed */
  FF_VEC(uint64_t) values;
  double total;
} group;

typedef struct summary {
  FF_VEC(group) groups;
  double total;
} summary;

static void add(summary *s, const char *name, uint64_t value) {
  size_t at = 0;
  while (at < s->groups.count && strcmp(s->groups.items[at].name, name)) at++;
  if (at == s->groups.count) FF_PUSH(&s->groups, (group){.name = name});
  group *g = &s->groups.items[at];
  FF_PUSH(&g->values, value);
  g->total += (double)value;
  s->total += (double)value;
}

static int by_value(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static int by_total(const void *a, const void *b) {
  const group *x = a, *y = b;
  return x->total > y->total ? -1 : x->total < y->total ? 1 : strcmp(x->name, y->name);
}

static uint64_t median_of(const group *g) {
  size_t half = g->values.count / 2;
  uint64_t upper = g->values.items[half];
  if (g->values.count % 2) return upper;
  uint64_t lower = g->values.items[half - 1];
  return lower + (upper - lower) / 2;
}

static uint64_t deviation_of(const group *g) {
  double average = g->total / (double)g->values.count, squares = 0;
  if (g->values.count < 2) return 0;
  for (size_t i = 0; i < g->values.count; i++) {
    double off = (double)g->values.items[i] - average;
    squares += off * off;
  }
  return (uint64_t)(sqrt(squares / (double)(g->values.count - 1)) + 0.5);
}

static void free_summary(summary *s) {
  for (size_t i = 0; i < s->groups.count; i++) free(s->groups.items[i].values.items);
  free(s->groups.items);
  *s = (summary){0};
}

/* `cell`: table_time or table_bytes. Frees the summary. */
static void summary_write(summary *s, const char *title, const char *share, void (*cell)(table *, uint64_t),
                          ff_text *out) {
  const char *const names[] = {share, "total", "instances", "avg", "med", "min", "max", "stddev", "name", NULL};
  static const char *const spare[] = {"stddev", "med", "min", "max", NULL};
  table t;
  ff_text_add(out, "\n  %s\n", title);
  table_start(&t, "rrrrrrrrl");
  t.spare = spare;
  table_names(&t, names);
  if (s->groups.count) qsort(s->groups.items, s->groups.count, sizeof *s->groups.items, by_total);
  for (size_t i = 0; i < s->groups.count; i++) {
    group *g = &s->groups.items[i];
    qsort(g->values.items, g->values.count, sizeof *g->values.items, by_value);
    table_share(&t, (uint64_t)g->total, (uint64_t)s->total);
    cell(&t, (uint64_t)g->total);
    table_count(&t, g->values.count);
    cell(&t, (uint64_t)(g->total / (double)g->values.count + 0.5));
    cell(&t, median_of(g));
    cell(&t, g->values.items[0]);
    cell(&t, g->values.items[g->values.count - 1]);
    cell(&t, deviation_of(g));
    table_cell_cut(&t, g->name, 64);
  }
  if (s->groups.count) table_write(&t, 2, out);
  else ff_text_add(out, "  none\n");
  table_free(&t);
  free_summary(s);
}

static const char *copy_name(uint32_t kind) {
  switch (kind) {
  case HISTORY_COPY_H2D: return "[CUDA memcpy Host-to-Device]";
  case HISTORY_COPY_D2H: return "[CUDA memcpy Device-to-Host]";
  case HISTORY_COPY_D2D: return "[CUDA memcpy Device-to-Device]";
  case HISTORY_COPY_H2H: return "[CUDA memcpy Host-to-Host]";
  case HISTORY_COPY_SET: return "[CUDA memset]";
  default: return NULL; /* a prefetch: its transfers are counted */
  }
}

static const char *transfer_name(const history_transfer *t) {
  if (t->cause == HISTORY_CAUSE_COPY || t->cause == HISTORY_CAUSE_REMOTE) return NULL;
  return t->in ? "[CUDA Unified Memory memcpy HtoD]" : "[CUDA Unified Memory memcpy DtoH]";
}

static void kernels_write(const sim_result *result, ff_text *out) {
  const sim_history *h = result->history;
  summary times = {0};
  for (size_t i = 0; i < h->kernels.count; i++) {
    const history_kernel *k = &h->kernels.items[i];
    if (k->kernel < result->kernel_count) add(&times, result->kernels[k->kernel].name, k->end - k->begin);
  }
  summary_write(&times, "kernels", "time %", table_time, out);
}

static void memory_write(const sim_history *h, ff_text *out) {
  summary times = {0}, sizes = {0};
  for (size_t i = 0; i < h->copies.count; i++) {
    const history_copy *c = &h->copies.items[i];
    const char *name = copy_name(c->kind);
    if (!name) continue;
    add(&times, name, c->end - c->begin);
    add(&sizes, name, c->bytes);
  }
  for (size_t i = 0; i < h->transfers.count; i++) {
    const history_transfer *t = &h->transfers.items[i];
    const char *name = transfer_name(t);
    if (!name) continue;
    add(&times, name, t->end - t->begin);
    add(&sizes, name, t->bytes);
  }
  summary_write(&times, "memory operations by time", "time %", table_time, out);
  summary_write(&sizes, "memory operations by size", "size %", table_bytes, out);
}

static void faults_write(const sim_history *h, ff_text *out) {
  summary times = {0};
  for (size_t i = 0; i < h->batches.count; i++) {
    const history_batch *b = &h->batches.items[i];
    add(&times, "[batch of far-faults]", b->end - b->begin);
  }
  summary_write(&times, "unified memory faults: batches by time", "time %", table_time, out);
  summary counts = {0};
  for (size_t i = 0; i < h->batches.count; i++) add(&counts, "[far-faults of a batch]", h->batches.items[i].faults);
  summary_write(&counts, "unified memory faults: far-faults", "faults %", table_count, out);
}

static void left_out_write(uint64_t count, const char *what, ff_text *out) {
  if (count) ff_text_add(out, "\n  note: %llu further %s are not in the history\n", (unsigned long long)count, what);
}

bool report_stats_write(const report_run *run, ff_text *out) {
  bool any = false;
  for (uint32_t i = 0; i < run->result_count; i++) {
    const sim_result *result = &run->results[i];
    const sim_history *h = result->history;
    if (!h) continue;
    any = true;
    ff_text_add(out, "\n%s", result->memory);
    if (result->device) ff_text_add(out, ", device %u", result->device - 1);
    ff_text_add(out, "\n");
    kernels_write(result, out);
    memory_write(h, out);
    faults_write(h, out);
    left_out_write(h->kernels_left_out, "launches", out);
    left_out_write(h->copies_left_out, "copies", out);
    left_out_write(h->transfers_left_out, "transfers", out);
    left_out_write(h->batches_left_out, "batches", out);
  }
  return any;
}
