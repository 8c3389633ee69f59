/* SPDX-License-Identifier: Apache-2.0 */
/* The table for people: one line per manager; with -v what each kernel and each allocation did under each manager, and
 * what the run cost the host.
 *
 * The widest line of the first table is below 140 columns whatever the numbers; a manager that could
 * not run is shown with its reason, never with zeros that look like a result. */
#include <stdio.h>
#include <string.h>

#include "report/text_stacks.h"
#include "report/report.h"
#include "report/table.h"
#include "report/text_lines.h"
#include "report/text_ranges.h"
#include "report/text_tiers.h"

/* A ratio that is as good as 1 has no colour. */
static const double RATIO_GOOD = 0.98, RATIO_BAD = 1.02;

/* Columns that a table has only if a row has something in them, of `remote` something that counts beside what moved. */
typedef struct extras {
  bool host_faults, zeros, remote;
} extras;

static bool has_remote(const sim_counters *c) { return c->remote_bytes > (c->h2d_bytes + c->d2h_bytes) / 8; }

static void manager_row(const report_run *run, const sim_result *result, extras with, table *t) {
  const sim_counters *c = &result->counters;
  double ratio = report_ratio(run, result);
  table_cell(t, "%s", result->memory);
  table_time(t, c->time_ps);
  if (ratio > 0) table_cell(t, ratio < 0.0995 ? "%.3fx" : ratio < 99.95 ? "%.2fx" : "%.0fx", ratio);
  else table_cell(t, "-");
  if (ratio > 0 && result != report_baseline(run, result->device))
    table_tone(t, ratio < RATIO_GOOD ? TABLE_GOOD : ratio > RATIO_BAD ? TABLE_BAD : TABLE_PLAIN);
  table_time(t, c->kernel_ps);
  table_time(t, c->transfer_ps);
  table_count(t, c->faults);
  if (with.host_faults) table_count(t, c->host_faults);
  table_bytes(t, c->h2d_bytes);
  if (with.zeros) table_bytes(t, c->zero_filled_bytes);
  table_bytes(t, c->d2h_bytes);
  if (with.remote) table_bytes(t, c->remote_bytes);
  table_cell(t, "%.1f %%", 100 * sim_link_utilisation(c));
  table_cell(t, "%.1f %%", 100 * sim_tlb_miss_rate(c));
}

/* A text of the program's or of a file's own, on one line and without what a terminal would obey. */
static void clean_write(const char *text, ff_text *out) {
  for (; *text; text++) {
    char shown = *text == '\n' ? ' ' : (unsigned char)*text < 32 || *text == 127 ? '?' : *text;
    ff_text_add_bytes(out, &shown, 1);
  }
}

/* "copy: could not run it: ..." */
static void error_write(const sim_result *result, ff_text *out) {
  clean_write(result->memory, out);
  ff_text_add(out, ": could not run it: ");
  clean_write(report_reason(result), out);
  ff_text_add(out, "\n");
}

static extras device_extras(const report_run *run, uint32_t device, bool verbose) {
  extras with = {0};
  for (uint32_t i = 0; i < run->result_count; i++) {
    const sim_counters *c = &run->results[i].counters;
    if (run->results[i].device != device) continue;
    with.host_faults |= verbose && c->host_faults;
    with.zeros |= c->zero_filled_bytes > 0;
    with.remote |= has_remote(c);
  }
  return with;
}

/* The table of one of the program's devices. */
static void device_write(const report_run *run, uint32_t device, bool verbose, ff_text *out) {
  extras with = device_extras(run, device, verbose);
  const char *const names[] = {"memory",
                               "time",
                               "ratio",
                               "kernels",
                               "transfers",
                               "far-faults",
                               with.host_faults ? "CPU faults" : NULL,
                               "to GPU",
                               with.zeros ? "zeros" : NULL,
                               "to CPU",
                               with.remote ? "remote" : NULL,
                               "link used",
                               "TLB miss"};
  static const char *const aligns[] = {"lrrrrrrrrr", "lrrrrrrrrrr", "lrrrrrrrrrrr", "lrrrrrrrrrrrr"};
  table t;
  table_start(&t, aligns[with.host_faults + with.zeros + with.remote]);
  t.spare =
      (const char *const[]){"zeros", "TLB miss", "CPU faults", "remote", "link used", "transfers", "kernels", NULL};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i]) table_cell(&t, "%s", names[i]);
  for (uint32_t i = 0; i < run->result_count; i++)
    if (run->results[i].device == device && !run->results[i].error[0]) manager_row(run, &run->results[i], with, &t);
  table_write(&t, 0, out);
  table_free(&t);
  for (uint32_t i = 0; i < run->result_count; i++)
    if (run->results[i].device == device && run->results[i].error[0]) error_write(&run->results[i], out);
}

static bool has_device(const report_run *run, uint32_t device) {
  for (uint32_t i = 0; i < run->result_count; i++)
    if (run->results[i].device == device) return true;
  return false;
}

static void managers_write(const report_run *run, bool verbose, ff_text *out) {
  for (uint32_t device = 0; device <= 128; device++) {
    if (!has_device(run, device)) continue;
    if (device) ff_text_add(out, "device %u\n", device - 1);
    device_write(run, device, verbose, out);
  }
  text_stacks_write(run, out);
  text_tiers_write(run, out);
}

static bool has_sites(const sim_result *result) {
  for (uint32_t i = 0; i < result->kernel_count; i++)
    if (result->kernels[i].site[0]) return true;
  return false;
}

static bool has_ranges(const sim_result *result) {
  for (uint32_t i = 0; i < result->kernel_count; i++)
    if (result->kernels[i].range[0]) return true;
  return false;
}

static void kernels_write(const sim_result *result, ff_text *out) {
  static const char *const names[] = {"kernel",      "range",    "launched at", "launches", "blocks", "time",
                                      "warp instr.", "accesses", "sectors",     "L1 hit",   "L2 hit", "TLB miss",
                                      "far-faults",  "to GPU",   "remote",      NULL};
  static const char *const aligns[2][3] = {{"lrrrrrrrrrrr", "llrrrrrrrrrrr", "lllrrrrrrrrrrr"},
                                           {"lrrrrrrrrrrrr", "llrrrrrrrrrrrr", "lllrrrrrrrrrrrr"}};
  bool ranges = has_ranges(result), sites = has_sites(result), remote = has_remote(&result->counters);
  table t;
  table_start(&t, aligns[remote][ranges + sites]);
  t.spare = (const char *const[]){"sectors", "accesses",    "L1 hit",      "L2 hit", "TLB miss",
                                  "blocks",  "warp instr.", "launched at", NULL};
  for (size_t i = 0; names[i]; i++)
    if ((i != 1 || ranges) && (i != 2 || sites) && (i != 14 || remote)) table_cell(&t, "%s", names[i]);
  for (uint32_t i = 0; i < result->kernel_count; i++) {
    const sim_counters *c = &result->kernels[i].counters;
    table_cell_cut(&t, result->kernels[i].name, 40);
    if (ranges) table_cell_cut(&t, result->kernels[i].range[0] ? result->kernels[i].range : "-", 40);
    if (sites) table_cell_cut(&t, result->kernels[i].site[0] ? result->kernels[i].site : "-", 40);
    table_count(&t, c->launches);
    table_count(&t, c->blocks);
    table_time(&t, c->time_ps);
    table_count(&t, c->warp_instructions);
    table_count(&t, c->accesses);
    table_count(&t, c->sectors);
    table_share(&t, c->l1_hits, c->l1_hits + c->l1_misses);
    table_share(&t, c->l2_hits, c->l2_hits + c->l2_misses);
    table_share(&t, c->tlb_misses, c->tlb_lookups);
    table_count(&t, c->faults);
    table_bytes(&t, c->h2d_bytes);
    if (remote) table_bytes(&t, c->remote_bytes);
  }
  table_write(&t, 2, out);
  table_free(&t);
}

static const char *kind_of(const sim_allocation_result *allocation) {
  return allocation->managed ? "managed" : allocation->pinned ? "pinned" : "device";
}

static bool is_used(const sim_allocation_result *allocation) {
  const sim_counters *c = &allocation->counters;
  return c->accesses || c->faults || c->h2d_bytes || c->d2h_bytes || c->remote_bytes;
}

/* A framework's modules have hundreds of variables; where so many are not used, they are one row. */
enum { UNUSED_SHOWN = 8 };

static uint32_t count_unused(const sim_result *result, uint64_t *bytes) {
  uint32_t count = 0;
  *bytes = 0;
  for (uint32_t i = 0; i < result->allocation_count; i++)
    if (!is_used(&result->allocations[i])) {
      count++;
      *bytes += result->allocations[i].bytes;
    }
  return count;
}

static uint64_t block_end(const sim_history *h, size_t block, const sim_allocation_result *allocation) {
  bool more = block + 1 < h->blocks.count && h->blocks.items[block + 1].allocation == allocation->id;
  return more ? h->blocks.items[block + 1].offset : allocation->bytes;
}

/* The range of the kernel, else its name without result, template arguments and parameters; how long it is. */
static const char *label_of(const sim_kernel_result *kernel, size_t *length) {
  const char *name = strncmp(kernel->name, "void ", 5) ? kernel->name : kernel->name + 5;
  *length = kernel->range[0] ? strlen(kernel->range) : strcspn(name, "<(");
  if (!*length) *length = strlen(name); /* "(anonymous namespace)::..." */
  return kernel->range[0] ? kernel->range : name;
}

/* The parts of an allocation that launches had pointers to, and which was the first; of runs with a history. */
static void blocks_write(const sim_result *result, const sim_allocation_result *allocation, bool remote, table *t) {
  const sim_history *h = result->history;
  char offset[32], text[400];
  for (size_t i = 0; h && i < h->blocks.count; i++) {
    const history_block *b = &h->blocks.items[i];
    if (b->allocation != allocation->id || b->offset >= allocation->bytes) continue;
    size_t length;
    const char *label = label_of(&result->kernels[b->kernel], &length);
    snprintf(text, sizeof text, "  +%s: %.*s", ff_format_bytes(b->offset, offset, sizeof offset), (int)length, label);
    table_cell_cut(t, text, 40);
    table_cell(t, "block");
    table_bytes(t, block_end(h, i, allocation) - b->offset);
    table_count(t, b->accesses);
    table_cell(t, "-");
    table_count(t, b->faults);
    for (int c = 0; c < 2 + remote; c++) table_cell(t, "-");
  }
}

static void allocations_write(const sim_result *result, ff_text *out) {
  static const char *const names[] = {"allocation", "kind",   "bytes",  "accesses", "sectors",
                                      "far-faults", "to GPU", "to CPU", "remote",   NULL};
  bool remote = has_remote(&result->counters);
  table t;
  table_start(&t, remote ? "llrrrrrrr" : "llrrrrrr");
  t.spare = (const char *const[]){"sectors", "accesses", NULL};
  for (size_t i = 0; names[i]; i++)
    if (i != 8 || remote) table_cell(&t, "%s", names[i]);
  uint64_t unused_bytes;
  uint32_t unused = count_unused(result, &unused_bytes);
  for (uint32_t i = 0; i < result->allocation_count; i++) {
    const sim_allocation_result *allocation = &result->allocations[i];
    const sim_counters *c = &allocation->counters;
    if (unused > UNUSED_SHOWN && !is_used(allocation)) continue;
    table_cell_cut(&t, allocation->name, 48);
    table_cell(&t, "%s", kind_of(allocation));
    table_bytes(&t, allocation->bytes);
    table_count(&t, c->accesses);
    table_count(&t, c->sectors);
    table_count(&t, c->faults);
    table_bytes(&t, c->h2d_bytes);
    table_bytes(&t, c->d2h_bytes);
    if (remote) table_bytes(&t, c->remote_bytes);
    blocks_write(result, allocation, remote, &t);
  }
  if (unused > UNUSED_SHOWN) {
    table_cell(&t, "(%u that were not used)", unused);
    table_cell(&t, "-");
    table_bytes(&t, unused_bytes);
    for (int i = 0; i < 5 + remote; i++) table_count(&t, 0);
  }
  table_write(&t, 2, out);
  table_free(&t);
}

static void details_write(const sim_result *result, ff_text *out) {
  if (result->error[0] || (!result->kernel_count && !result->allocation_count && !result->stacks.count)) return;
  ff_text_add(out, "\n");
  clean_write(result->memory, out);
  ff_text_add(out, "\n");
  if (result->stacks.count) text_links_write(result, out);
  if (result->stacks.count && (result->kernel_count || result->allocation_count)) ff_text_add(out, "\n");
  if (text_ranges_write(result, out)) ff_text_add(out, "\n");
  if (result->kernel_count) kernels_write(result, out);
  if (result->kernel_count && result->allocation_count) ff_text_add(out, "\n");
  if (result->allocation_count) allocations_write(result, out);
}

static void host_write(const report_host *host, ff_text *out) {
  char instructions[32], rate[32], accesses[32], memory[32];
  double per_second = host->wall_s > 1e-6 ? (double)host->warp_instructions / host->wall_s : 0;
  ff_text_add(out, "host: %.2f s (processor %.2f s), at most %s of memory\n", host->wall_s, host->cpu_s,
              ff_format_bytes(host->peak_rss_bytes, memory, sizeof memory));
  ff_text_add(out, "executed: %s warp instructions (%s per second), %s accesses of warps to global memory\n",
              report_format_count(host->warp_instructions, instructions, sizeof instructions),
              report_format_count((uint64_t)per_second, rate, sizeof rate),
              report_format_count(host->warp_accesses, accesses, sizeof accesses));
  if (host->compiled_launches)
    ff_text_add(out, "native code: in %s of %s kernel launches\n",
                report_format_count(host->compiled_launches, accesses, sizeof accesses),
                report_format_count(host->launches, instructions, sizeof instructions));
}

/* The same manager on the same device with every launch timed; NULL: it is not in the run. */
static const sim_result *timed_in_full(const report_run *run, const sim_result *sampled) {
  const char *sample = strstr(sampled->memory, "+sample=");
  if (!sample) return NULL;
  size_t before = (size_t)(sample - sampled->memory);
  const char *after = sample + 1 + strcspn(sample + 1, "+@");
  for (uint32_t i = 0; i < run->result_count; i++) {
    const sim_result *full = &run->results[i];
    if (full->device == sampled->device && !full->sampling.chosen && !full->error[0] && full->complete &&
        !strncmp(full->memory, sampled->memory, before) && !strcmp(full->memory + before, after))
      return full;
  }
  return NULL;
}

static void difference_write(const char *name, uint64_t sampled, uint64_t full, ff_text *out) {
  if (sampled == full) ff_text_add(out, ", %s equal", name);
  else ff_text_add(out, ", %s %+.3g %%", name, full ? 100 * ((double)sampled / (double)full - 1) : 100);
}

/* How wrong it was. */
static void check_write(const sim_result *sampled, const sim_result *full, ff_text *out) {
  const sim_counters *a = &sampled->counters, *b = &full->counters;
  ff_text_add(out, "; beside all timed: time %+.2f %%",
              b->time_ps ? 100 * ((double)a->time_ps / (double)b->time_ps - 1) : 0);
  difference_write("far-faults", a->faults, b->faults, out);
  difference_write("to GPU", a->h2d_bytes, b->h2d_bytes, out);
  difference_write("to CPU", a->d2h_bytes, b->d2h_bytes, out);
  difference_write("evicted", a->evicted_bytes, b->evicted_bytes, out);
}

static void sampling_write(const report_run *run, const sim_result *result, ff_text *out) {
  const sim_sampling *s = &result->sampling;
  char timed[32], estimated[32], blocks[32], sum[32], half[32];
  clean_write(result->memory, out);
  ff_text_add(out, ": %s launches timed, %s estimated", report_format_count(s->timed, timed, sizeof timed),
              report_format_count(s->estimated, estimated, sizeof estimated));
  if (s->blocks)
    ff_text_add(out, ", and %s blocks of timed ones", report_format_count(s->blocks, blocks, sizeof blocks));
  if (s->estimated || s->blocks)
    ff_text_add(out, " (%s +- %s)", report_format_time(s->estimated_ps, sum, sizeof sum),
                report_format_time(s->interval_ps, half, sizeof half));
  if (s->without_records)
    ff_text_add(out, "; %s of the timed ones only by what they touch",
                report_format_count(s->without_records, blocks, sizeof blocks));
  const sim_result *full = result->complete ? timed_in_full(run, result) : NULL;
  if (full) check_write(result, full, out);
  ff_text_add(out, "\n");
}

/* What was simulated from a recording may be incomplete because the file is. */
static bool recording_ends(const report_run *run) {
  for (uint32_t i = 0; i < run->note_count; i++)
    if (!strncmp(run->notes[i], REPORT_NOTE_RECORDING, sizeof REPORT_NOTE_RECORDING - 1)) return true;
  return false;
}

static void incomplete_write(const report_run *run, ff_text *out) {
  bool over = true;
  for (uint32_t i = 0; i < run->result_count; i++)
    over = over && (run->results[i].complete || run->results[i].error[0]);
  ff_text_add(out, run->running          ? "incomplete: written while the program ran"
                   : recording_ends(run) ? "incomplete: the recording ends early"
                                         : "incomplete: the program did not end by itself");
  if (run->result_count && over) ff_text_add(out, "; the numbers are of what it did until then");
  else if (run->result_count)
    ff_text_add(out, "; the numbers are as far as each simulation was, so there are no ratios");
  ff_text_add(out, "\n");
}

/* A note of a run of which only profile ranges count (session_results.c). */
static bool note_says_it(const report_run *run) {
  for (uint32_t i = 0; i < run->note_count; i++)
    if (!strncmp(run->notes[i], "nothing is counted: ", 20) || strstr(run->notes[i], ", in which the program launched"))
      return true;
  return false;
}

static bool launched_nothing(const report_run *run) {
  for (uint32_t i = 0; i < run->result_count; i++)
    if (run->results[i].error[0] || run->results[i].counters.launches) return false;
  return run->complete && run->result_count && !note_says_it(run);
}

static void header_write(const report_run *run, ff_text *out) {
  ff_text_add(out, "farfault: ");
  clean_write(run->command ? run->command : "program", out);
  if (run->result_count) ff_text_add(out, " on ");
  if (run->result_count) clean_write(run->results[0].machine, out);
  ff_text_add(out, "%s\n", run->complete ? "" : " (incomplete)");
}

void report_table_write(const report_run *run, const report_style *style, ff_text *out) {
  header_write(run, out);
  if (run->result_count) managers_write(run, style->verbose, out);
  else ff_text_add(out, "no manager was asked for: the program was executed, not timed\n");
  if (!run->complete) incomplete_write(run, out);
  if (launched_nothing(run)) ff_text_add(out, "note: the program launched no kernel\n");
  for (uint32_t i = 0; i < run->result_count; i++)
    if (run->results[i].sampling.chosen && !run->results[i].error[0]) sampling_write(run, &run->results[i], out);
  for (uint32_t i = 0; i < run->note_count; i++) {
    ff_text_add(out, "note: ");
    clean_write(run->notes[i], out);
    ff_text_add(out, "\n");
  }
  for (uint32_t i = 0; style->verbose && i < run->result_count; i++) details_write(&run->results[i], out);
  if (style->lines) text_lines_write(run, style->lines, out);
  if (style->verbose && run->result_count) ff_text_add(out, "\n");
  if (style->verbose || !run->result_count) host_write(&run->host, out);
}
