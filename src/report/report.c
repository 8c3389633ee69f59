/* SPDX-License-Identifier: Apache-2.0 */
/* The run as data: its lifetime, its notes, what the ratios are relative to, and how numbers are written for people.
 *
 * Three significant digits and a unit of thousand (time, counts) or 1024 (bytes) in the table; exact
 * integers in JSON and CSV. */
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void report_free(report_run *run) {
  free(run->command);
  for (uint32_t i = 0; i < run->note_count; i++) free(run->notes[i]);
  free(run->notes);
  free(run->streams);
  for (uint32_t i = 0; i < run->result_count; i++) sim_result_free(&run->results[i]);
  free(run->results);
  *run = (report_run){0};
}

void report_note(report_run *run, const char *text) {
  for (uint32_t i = 0; i < run->note_count; i++)
    if (!strcmp(run->notes[i], text)) return;
  run->notes = ff_realloc(run->notes, (run->note_count + 1) * sizeof *run->notes);
  run->notes[run->note_count++] = ff_strdup(text);
}

void report_cut_name(char *to, size_t size, const char *name) {
  size_t length = strlen(name);
  if (length >= size)
    for (length = size - 1; length && ((unsigned char)name[length] & 0xc0) == 0x80;) length--;
  memcpy(to, name, length);
  to[length] = '\0';
}

void report_name_stream(report_run *run, uint32_t stream, const char *name) {
  uint32_t at = 0;
  while (at < run->stream_count && run->streams[at].stream < stream) at++;
  bool known = at < run->stream_count && run->streams[at].stream == stream;
  if (known && !name[0]) {
    memmove(&run->streams[at], &run->streams[at + 1], (--run->stream_count - at) * sizeof *run->streams);
    return;
  }
  if (!name[0]) return;
  if (!known) {
    run->streams = ff_realloc(run->streams, (run->stream_count + 1) * sizeof *run->streams);
    memmove(&run->streams[at + 1], &run->streams[at], (run->stream_count++ - at) * sizeof *run->streams);
  }
  run->streams[at].stream = stream;
  report_cut_name(run->streams[at].name, sizeof run->streams[at].name, name);
}

const char *report_stream_name(const report_run *run, uint32_t stream, char buffer[REPORT_STREAM_BYTES]) {
  char number[32];
  snprintf(number, sizeof number, stream ? "stream %u" : "default stream", stream);
  for (uint32_t i = 0; i < run->stream_count; i++) {
    if (run->streams[i].stream != stream) continue;
    snprintf(buffer, REPORT_STREAM_BYTES, "%.63s (%s)", run->streams[i].name, number);
    return buffer;
  }
  snprintf(buffer, REPORT_STREAM_BYTES, "%s", number);
  return buffer;
}

static bool has_time(const sim_result *result) { return !result->error[0] && result->counters.time_ps; }

/* "copy", of one of several devices "copy@1". */
static bool is_copy(const sim_result *result) {
  size_t length = strcspn(result->memory, "@");
  return length == 4 && !strncmp(result->memory, "copy", 4) && (!result->memory[4] || result->device);
}

const char *report_reason(const sim_result *result) {
  size_t length = strlen(result->memory);
  bool named = !strncmp(result->error, result->memory, length) && !strncmp(result->error + length, ": ", 2);
  return result->error + (named ? length + 2 : 0);
}

const sim_result *report_baseline(const report_run *run, uint32_t device) {
  const sim_result *first = NULL;
  for (uint32_t i = 0; i < run->result_count; i++) {
    const sim_result *result = &run->results[i];
    if (result->device != device || !has_time(result)) continue;
    if (is_copy(result)) return result;
    if (!first) first = result;
  }
  return first;
}

double report_ratio(const report_run *run, const sim_result *result) {
  const sim_result *baseline = report_baseline(run, result->device);
  if (!baseline || !has_time(result)) return 0;
  if (!baseline->complete || !result->complete) return 0; /* snapshots are not of the same moment of the program */
  return (double)result->counters.time_ps / (double)baseline->counters.time_ps;
}

/* Of kernels; the copies that a map waits for, while the SMs stand still, are copies of the program. */
static uint64_t work_ps(const sim_result *result) {
  return result->counters.kernel_ps > result->stacks.stopped_ps ? result->counters.kernel_ps - result->stacks.stopped_ps
                                                                : 0;
}

static bool has_kernels(const sim_result *result) {
  return result->stacks.count && has_time(result) && result->complete && work_ps(result);
}

double report_stacks_speed(const report_run *run, const sim_result *result) {
  const sim_result *first = NULL;
  for (uint32_t i = 0; i < run->result_count && !first; i++)
    if (run->results[i].stacks.count && has_time(&run->results[i])) first = &run->results[i];
  if (!first || !has_kernels(first) || !has_kernels(result)) return 0;
  return (double)work_ps(first) / (double)work_ps(result);
}

/* value scaled down by `step` until it is below `limit`, with three significant digits. */
static void format_scaled(double value, double step, double limit, const char *const *units, size_t unit_count,
                          char *buffer, size_t size) {
  size_t unit = 0;
  while (value >= limit && unit + 1 < unit_count) {
    value /= step;
    unit++;
  }
  int digits = unit == 0 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  snprintf(buffer, size, "%.*f%s%s", digits, value, units[unit][0] ? " " : "", units[unit]);
}

const char *report_format_time(uint64_t picoseconds, char *buffer, size_t size) {
  static const char *const units[] = {"ps", "ns", "us", "ms", "s"};
  if (!picoseconds) snprintf(buffer, size, "0 s");
  else format_scaled((double)picoseconds, 1000, 999.5, units, 5, buffer, size);
  return buffer;
}

const char *report_format_count(uint64_t count, char *buffer, size_t size) {
  static const char *const units[] = {"", "k", "M", "G", "T", "P"};
  if (count < 100000) snprintf(buffer, size, "%llu", (unsigned long long)count);
  else format_scaled((double)count, 1000, 999.5, units, 6, buffer, size);
  return buffer;
}

void report_note_thrashing(report_run *run, const sim_result *result) {
  char count[32], times[32];
  double came = result->error[0] ? 0 : sim_thrashes(result);
  if (came <= 0) return;
  ff_text note = {0};
  ff_text_add(&note, "%s", result->memory);
  if (result->device) ff_text_add(&note, " on device %u", result->device - 1);
  ff_text_add(&note,
              " is thrashing: %s far-faults, each page came %s times on average, the link was used %.0f %% of the time",
              report_format_count(result->counters.faults, count, sizeof count),
              report_format_count((uint64_t)came, times, sizeof times), 100 * sim_link_utilisation(&result->counters));
  report_note(run, note.chars);
  free(note.chars);
}
