/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline (timeline.h): events are gathered as references, sorted by time, then written one per line.
 *
 * Tracks ("threads") of a process: 1 the link to the GPU, 2 the link to the CPU, 3 batches of far-faults, from 10 on
 * the streams in order of their numbers, from 100,000 on the program's threads with the ranges that they pushed (NVTX).
 * Ranges that were started may overlap in any way: they are asynchronous events. Counters have the process's track 0.
 */
#include "report/timeline.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { TRACK_COUNTERS, TRACK_TO_GPU, TRACK_TO_CPU, TRACK_BATCHES, TRACK_STREAMS = 10, TRACK_THREADS = 100000 };
typedef enum event_kind {
  EVENT_ENDED,
  EVENT_STARTED,
  EVENT_RANGE,
  EVENT_KERNEL,
  EVENT_COPY,
  EVENT_BATCH,
  EVENT_TRANSFER,
  EVENT_COUNTER
} event_kind;

typedef struct event {
  uint64_t begin, end;
  uint32_t run, index; /* index: into its list; of a counter: the bin */
  uint32_t kind, series;
} event;

typedef struct process { /* what the writer of one manager's events needs; texts are quoted JSON, owned */
  const sim_result *result;
  const sim_history *history;
  uint32_t pid;
  char **kernels;
  FF_VEC(uint32_t) streams;
} process;

typedef struct timeline {
  FF_VEC(event) events;
  process *processes;
  uint32_t count;
} timeline;

/* A text in quotes; the caller frees it. Bytes that are no UTF-8 make it empty. */
static char *quoted(const char *text) {
  json_t *value = json_string(text);
  char *out = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
  json_decref(value);
  return out ? out : ff_strdup("\"\"");
}

/* ---- gathering ---- */

static void add_stream(process *p, uint32_t stream) {
  size_t at = 0;
  while (at < p->streams.count && p->streams.items[at] < stream) at++;
  if (at < p->streams.count && p->streams.items[at] == stream) return;
  FF_PUSH(&p->streams, stream);
  memmove(&p->streams.items[at + 1], &p->streams.items[at], (p->streams.count - 1 - at) * sizeof stream);
  p->streams.items[at] = stream;
}

#define GATHER(list, event_name)                                  \
  for (size_t i = 0; i < h->list.count; i++)                      \
    FF_PUSH(&t->events, ((event){.begin = h->list.items[i].begin, \
                                 .end = h->list.items[i].end,     \
                                 .run = run,                      \
                                 .index = (uint32_t)i,            \
                                 .kind = event_name}))

/* A counter's value holds until its next event: one per bin where it changes, and a 0 at the end. */
static void gather_series(timeline *t, const sim_history *h, uint32_t run, uint32_t series) {
  const uint64_t *values = h->series[series];
  uint64_t before = 0;
  if (series == HISTORY_kernel_ps) return; /* the streams' tracks show it */
  for (uint32_t bin = 0; bin <= h->bins; bin++) {
    uint64_t value = bin < h->bins ? values[bin] : 0;
    if (value != before)
      FF_PUSH(&t->events, ((event){.begin = (uint64_t)bin << h->shift,
                                   .end = 0,
                                   .run = run,
                                   .index = bin,
                                   .kind = EVENT_COUNTER,
                                   .series = series}));
    before = value;
  }
}

/* Two events of one that was started. */
static void gather_ranges(timeline *t, const sim_history *h, uint32_t run) {
  for (size_t i = 0; i < h->ranges.count; i++) {
    const history_range *range = &h->ranges.items[i];
    event e = {.begin = range->begin,
               .end = range->end,
               .run = run,
               .index = (uint32_t)i,
               .kind = range->started ? EVENT_STARTED : EVENT_RANGE};
    FF_PUSH(&t->events, e);
    if (!range->started) continue;
    e.begin = range->end;
    e.kind = EVENT_ENDED;
    FF_PUSH(&t->events, e);
  }
}

static void gather(timeline *t, uint32_t run) {
  process *p = &t->processes[run];
  const sim_history *h = p->history;
  gather_ranges(t, h, run);
  GATHER(kernels, EVENT_KERNEL);
  GATHER(copies, EVENT_COPY);
  GATHER(batches, EVENT_BATCH);
  GATHER(transfers, EVENT_TRANSFER);
  for (uint32_t series = 0; series < HISTORY_SERIES_COUNT; series++) gather_series(t, h, run, series);
  for (size_t i = 0; i < h->kernels.count; i++) add_stream(p, h->kernels.items[i].stream);
  for (size_t i = 0; i < h->copies.count; i++) add_stream(p, h->copies.items[i].stream);
  p->kernels = ff_alloc((p->result->kernel_count + 1) * sizeof *p->kernels);
  for (uint32_t i = 0; i < p->result->kernel_count; i++) p->kernels[i] = quoted(p->result->kernels[i].name);
}

static int compare(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }

static int by_time(const void *left, const void *right) {
  const event *a = left, *b = right;
  int order = compare(a->begin, b->begin);
  if (!order) order = compare(a->run, b->run);
  if (!order) order = compare(a->kind, b->kind);
  if (!order) order = compare(a->series, b->series);
  return order ? order : compare(a->index, b->index);
}

/* ---- writing ---- */

/* Microseconds, without zeros at the end. */
static void add_time(ff_text *out, const char *key, uint64_t ps) {
  char fraction[8];
  snprintf(fraction, sizeof fraction, ".%06u", (unsigned)(ps % 1000000));
  for (size_t end = 7; end && (fraction[end - 1] == '0' || fraction[end - 1] == '.');) {
    bool point = fraction[--end] == '.';
    fraction[end] = '\0';
    if (point) break;
  }
  ff_text_add(out, "\"%s\":%llu%s", key, (unsigned long long)(ps / 1000000), fraction);
}

static void add_meta(ff_text *out, uint32_t pid, uint32_t tid, const char *what, const char *key, const char *value) {
  ff_text_add(out, "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"ts\":0,\"name\":\"%s\",\"args\":{\"%s\":%s}},\n", pid, tid,
              what, key, value);
}

static void add_track(ff_text *out, uint32_t pid, uint32_t tid, uint32_t order, const char *name) {
  char *text = quoted(name), number[16];
  snprintf(number, sizeof number, "%u", order);
  add_meta(out, pid, tid, "thread_name", "name", text);
  add_meta(out, pid, tid, "thread_sort_index", "sort_index", number);
  free(text);
}

static uint32_t stream_track(const process *p, uint32_t stream) {
  uint32_t at = 0;
  while (p->streams.items[at] != stream) at++;
  return TRACK_STREAMS + at;
}

static bool uses_link(const sim_history *h, bool in) {
  for (size_t i = 0; i < h->transfers.count; i++)
    if (h->transfers.items[i].in == in) return true;
  return false;
}

/* The first thread from *thread on that has pushed a range. */
static bool has_thread_from(const sim_history *h, uint32_t *thread) {
  bool found = false;
  uint32_t first = UINT32_MAX;
  for (size_t i = 0; i < h->ranges.count; i++) {
    const history_range *range = &h->ranges.items[i];
    if (range->started || range->thread < *thread || range->thread > first) continue;
    first = range->thread;
    found = true;
  }
  *thread = first;
  return found;
}

static void add_process(const report_run *run, const process *p, ff_text *out) {
  char number[16], *name = quoted(p->result->memory), *machine = quoted(p->result->machine);
  uint32_t order = 0;
  snprintf(number, sizeof number, "%u", p->pid);
  add_meta(out, p->pid, 0, "process_name", "name", name);
  add_meta(out, p->pid, 0, "process_labels", "labels", machine);
  add_meta(out, p->pid, 0, "process_sort_index", "sort_index", number);
  for (uint32_t thread = 0; has_thread_from(p->history, &thread); thread++) {
    char track[32];
    snprintf(track, sizeof track, "ranges of thread %u", (unsigned)thread);
    add_track(out, p->pid, TRACK_THREADS + thread, order++, track);
  }
  for (uint32_t i = 0; i < p->streams.count; i++) {
    char track[REPORT_STREAM_BYTES];
    add_track(out, p->pid, TRACK_STREAMS + i, order++, report_stream_name(run, p->streams.items[i], track));
  }
  if (uses_link(p->history, true)) add_track(out, p->pid, TRACK_TO_GPU, order++, "link to GPU");
  if (uses_link(p->history, false)) add_track(out, p->pid, TRACK_TO_CPU, order++, "link to CPU");
  if (p->history->batches.count) add_track(out, p->pid, TRACK_BATCHES, order++, "far-fault batches");
  free(name);
  free(machine);
}

static void add_span(ff_text *out, const process *p, uint32_t tid, const event *e, const char *category) {
  ff_text_add(out, "{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,", p->pid, tid);
  add_time(out, "ts", e->begin);
  ff_text_add(out, ",");
  add_time(out, "dur", e->end - e->begin);
  ff_text_add(out, ",\"cat\":\"%s\",", category);
}

static void add_kernel(ff_text *out, const process *p, const event *e) {
  const history_kernel *k = &p->history->kernels.items[e->index];
  add_span(out, p, stream_track(p, k->stream), e, "kernel");
  ff_text_add(out, "\"name\":%s,\"args\":{\"launch\":%llu,\"blocks\":%llu", p->kernels[k->kernel],
              (unsigned long long)k->launch, (unsigned long long)k->blocks);
  const char *range = p->result->kernels[k->kernel].range;
  char *text = range[0] ? quoted(range) : NULL;
  if (text) ff_text_add(out, ",\"range\":%s", text);
  const char *site = p->result->kernels[k->kernel].site;
  char *place = site[0] ? quoted(site) : NULL;
  if (place) ff_text_add(out, ",\"site\":%s", place);
  free(place);
  ff_text_add(out, "}}");
  free(text);
}

static void add_range(ff_text *out, const process *p, const event *e) {
  const history_range *range = &p->history->ranges.items[e->index];
  char *name = quoted(range->name);
  add_span(out, p, TRACK_THREADS + range->thread, e, "range");
  ff_text_add(out, "\"name\":%s}", name);
  free(name);
}

static void add_started(ff_text *out, const process *p, const event *e) {
  const history_range *range = &p->history->ranges.items[e->index];
  char *name = quoted(range->name);
  ff_text_add(out, "{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u,\"id\":%u,", e->kind == EVENT_STARTED ? "b" : "e", p->pid,
              TRACK_THREADS + range->thread, e->index);
  add_time(out, "ts", e->begin);
  ff_text_add(out, ",\"cat\":\"range\",\"name\":%s}", name);
  free(name);
}

static void add_copy(ff_text *out, const process *p, const event *e) {
  static const char *const names[HISTORY_COPY_COUNT] = {
      "copy to GPU", "copy to CPU", "copy within GPU", "copy within CPU", "set", "prefetch to GPU", "prefetch to CPU"};
  const history_copy *c = &p->history->copies.items[e->index];
  add_span(out, p, stream_track(p, c->stream), e, "copy");
  ff_text_add(out, "\"name\":\"%s\",\"args\":{\"bytes\":%llu,\"allocation\":%u}}", names[c->kind],
              (unsigned long long)c->bytes, c->allocation);
}

static void add_batch(ff_text *out, const process *p, const event *e) {
  const history_batch *b = &p->history->batches.items[e->index];
  add_span(out, p, TRACK_BATCHES, e, "far-fault");
  ff_text_add(out, "\"name\":\"batch\",\"args\":{\"faults\":%llu,\"bytes\":%llu}}", (unsigned long long)b->faults,
              (unsigned long long)b->bytes);
}

static void add_transfer(ff_text *out, const process *p, const event *e) {
  const history_transfer *x = &p->history->transfers.items[e->index];
  add_span(out, p, x->in ? TRACK_TO_GPU : TRACK_TO_CPU, e, "link");
  ff_text_add(out, "\"name\":\"%s\",\"args\":{\"bytes\":%llu,\"pieces\":%llu}}", history_cause_names[x->cause],
              (unsigned long long)x->bytes, (unsigned long long)x->pieces);
}

/* What a series is as a counter: a level in MiB, a share of the time, GB/s, or events per microsecond. */
static void add_counter(ff_text *out, const process *p, const event *e) {
  const sim_history *h = p->history;
  const history_series_info *info = &history_series_infos[e->series];
  double value = e->index < h->bins ? (double)h->series[e->series][e->index] : 0,
         width = (double)(UINT64_C(1) << h->shift);
  const char *unit = "per us";
  if (info->level) {
    value /= 1 << 20;
    unit = "MiB";
  } else if (e->series == HISTORY_block_ps) {
    value /= width;
    unit = "at one time";
  } else if (!strcmp(info->unit, "ps")) {
    value *= 100 / width;
    unit = "%";
  } else if (!strcmp(info->unit, "B")) {
    value *= 1000 / width;
    unit = "GB/s";
  } else value *= 1e6 / width;
  char name[64];
  size_t length = strlen(info->name);
  if (!strcmp(info->unit, "B")) length -= strlen("_bytes");
  else if (!strcmp(info->unit, "ps")) length -= strlen("_ps");
  snprintf(name, sizeof name, "%.*s%s", (int)length, info->name, e->series == HISTORY_block_ps ? "s" : "");
  for (char *c = name; *c; c++)
    if (*c == '_') *c = ' ';
  ff_text_add(out, "{\"ph\":\"C\",\"pid\":%u,\"tid\":%u,", p->pid, TRACK_COUNTERS);
  add_time(out, "ts", e->begin);
  ff_text_add(out, ",\"name\":\"%s (%s)\",\"args\":{\"value\":%.6g}}", name, unit, value);
}

static void add_event(ff_text *out, const process *p, const event *e) {
  switch ((event_kind)e->kind) {
  case EVENT_STARTED:
  case EVENT_ENDED: add_started(out, p, e); break;
  case EVENT_RANGE: add_range(out, p, e); break;
  case EVENT_KERNEL: add_kernel(out, p, e); break;
  case EVENT_COPY: add_copy(out, p, e); break;
  case EVENT_BATCH: add_batch(out, p, e); break;
  case EVENT_TRANSFER: add_transfer(out, p, e); break;
  case EVENT_COUNTER: add_counter(out, p, e); break;
  }
}

static void timeline_free(timeline *t) {
  for (uint32_t i = 0; i < t->count; i++) {
    process *p = &t->processes[i];
    for (uint32_t k = 0; k < p->result->kernel_count; k++) free(p->kernels[k]);
    free(p->kernels);
    free(p->streams.items);
  }
  free(t->processes);
  free(t->events.items);
}

uint32_t report_timeline_write(const report_run *run, ff_text *out) {
  timeline t = {.processes = ff_alloc((run->result_count + 1) * sizeof *t.processes)};
  for (uint32_t i = 0; i < run->result_count; i++) {
    if (!run->results[i].history) continue;
    t.processes[t.count] = (process){.result = &run->results[i], .history = run->results[i].history, .pid = i + 1};
    gather(&t, t.count++);
  }
  if (t.events.count) qsort(t.events.items, t.events.count, sizeof *t.events.items, by_time);
  uint32_t count = t.count;
  if (count) {
    char *command = quoted(run->command ? run->command : "");
    ff_text_add(
        out,
        "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"command\":%s,\"version\":\"farfault %s\"},\n\"traceEvents\":[\n",
        command, FARFAULT_VERSION);
    for (uint32_t i = 0; i < count; i++) add_process(run, &t.processes[i], out);
    for (size_t i = 0; i < t.events.count; i++) {
      add_event(out, &t.processes[t.events.items[i].run], &t.events.items[i]);
      ff_text_add(out, i + 1 < t.events.count ? ",\n" : "\n");
    }
    if (!t.events.count) { /* the comma behind the last metadata */
      out->length -= 2;
      ff_text_add(out, "\n");
    }
    ff_text_add(out, "]}\n");
    free(command);
  }
  timeline_free(&t);
  return count;
}
