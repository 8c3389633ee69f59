/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault trace info|dump|check|cut FILE`: what is in a recorded program, and parts of it.
 *
 * A damaged file is shown as far as it is whole, what is lost is said on stderr, and the exit status
 * is CLI_BAD_FILE; `cut` writes a whole trace or none. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/output.h"
#include "cli/cli.h"
#include "report/table.h"
#include "trace/file.h"
#include "trace/operations.h"
#include "trace/origin.h"

typedef enum action { INFO, DUMP, CHECK, CUT, ACTIONS } action;
static const char *const action_names[] = {"info", "dump", "check", "cut", NULL};

typedef struct arguments {
  action action;
  bool chosen;
  const char *file, *output;
  trace_selection selection;
  const char *json; /* "-": instead of the text */
  bool records, verbose;
} arguments;

enum { KEY_REPAIR = 256, KEY_RECORDS, KEY_JSON, KEY_FOOTPRINTS };

static const struct argp_option options[] = {
    {"launch", 'l', "N[-M]", 0, "dump, cut: only these launches, counted from 0", 1},
    {"kernel", 'k', "NAME", 0, "dump, cut: only launches of kernels whose name has this in it", 1},
    {"block", 'b', "N[-M]", 0, "dump, cut: only these thread blocks of each launch (cut: the others do nothing)", 1},
    {"records", KEY_RECORDS, NULL, 0, "dump: also what each warp does", 2},
    {"output", 'o', "FILE", 0, "cut: the trace to write", 2},
    {"repair", KEY_REPAIR, NULL, 0, "cut: go on behind damage, without what it cost", 2},
    {"footprints", KEY_FOOTPRINTS, NULL, 0,
     "cut: with what blocks touch, so that --sample reads only what it times; a larger file", 2},
    {"verbose", 'v', NULL, 0, "info: also tables of kernels and allocations (reads the whole file)", 2},
    {"json", KEY_JSON, "FILE", 0, "info: write all of it as JSON; -: to stdout instead of the text", 2},
    {0}};

static void parse_range(const char *value, const char *name, uint64_t *first, uint64_t *last,
                        struct argp_state *state) {
  char *end;
  errno = 0;
  *first = *last = strtoull(value, &end, 10);
  bool good = isdigit((unsigned char)value[0]);
  if (good && *end == '-') {
    good = isdigit((unsigned char)end[1]);
    *last = strtoull(end + 1, &end, 10);
  }
  if (!good || *end || errno || *last < *first)
    cli_refuse(state, "--%s: '%s' is not a number or a range (3, 0-9)", name, value);
}

static void parse_action(arguments *a, const char *value, struct argp_state *state) {
  for (int i = 0; i < ACTIONS; i++)
    if (!strcmp(value, action_names[i])) {
      a->action = (action)i;
      a->chosen = true;
      return;
    }
  const char *near = cli_closest(value, action_names);
  if (near) cli_refuse(state, "no action '%s': did you mean '%s'?", value, near);
  cli_refuse(state, "no action '%s': there are info, dump, check, cut", value);
}

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case 'l': parse_range(value, "launch", &a->selection.first_launch, &a->selection.last_launch, state); return 0;
  case 'b': parse_range(value, "block", &a->selection.first_block, &a->selection.last_block, state); return 0;
  case 'k': a->selection.kernel = value; return 0;
  case 'o': a->output = cli_output(value, "--output", false, state); return 0;
  case 'v': a->verbose = true; return 0;
  case KEY_RECORDS: a->records = true; return 0;
  case KEY_FOOTPRINTS: a->selection.footprints = true; return 0;
  case KEY_REPAIR: a->selection.repair = true; return 0;
  case KEY_JSON: a->json = cli_output(value, "--json", true, state); return 0;
  case ARGP_KEY_ARG:
    if (!a->chosen) parse_action(a, value, state);
    else if (a->file) cli_refuse(state, "one file at a time");
    else a->file = value;
    return 0;
  case ARGP_KEY_END:
    if (a->chosen && !a->file) a->file = cli_old_argument("--json", &a->json, state);
    if (!a->chosen) cli_refuse(state, "what is to be done? info, dump, check or cut");
    if (!a->file || !*a->file) cli_refuse(state, "which trace? (one that `farfault record -o FILE` wrote)");
    if (a->action == CUT && (!a->output || !*a->output)) cli_refuse(state, "cut: -o FILE says where the part is to go");
    if (a->action != CUT && a->output)
      cli_refuse(state, "-o is for cut; the output of %s goes to stdout", action_names[a->action]);
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static void say(const char *message) { cli_fail(0, "%s", message); }

/* ---- what all kernels and allocations did ---- */

/* instances: of its offload candidates */
typedef struct kernel_sum {
  char name[256];
  uint64_t launches, blocks, instructions, accesses, stores, lines, instances;
} kernel_sum;
typedef struct allocation_sum {
  char name[64];
  uint64_t bytes;
  trace_memory_kind memory;
} allocation_sum;

typedef struct sums {
  FF_VEC(kernel_sum) kernels; /* by kernel_index */
  FF_VEC(allocation_sum) allocations;
  uint64_t operations[TRACE_OP_END + 1];
  uint64_t lost;      /* frames */
  bool warp_known;    /* its records were all there so far */
  bool marked;        /* it is between ENTER and LEAVE, */
  uint32_t mark;      /* of this pc */
  uint64_t unmatched; /* ENTERs and LEAVEs without the other */
  char first_unmatched[400];
} sums;

static void sum_operation(sums *s, const trace_op *op) {
  s->operations[op->kind]++;
  if (op->kind == TRACE_OP_ALLOC || (op->kind == TRACE_OP_CREATE && !op->alloc.address)) {
    allocation_sum a = {.bytes = op->alloc.bytes, .memory = op->alloc.memory};
    memcpy(a.name, op->alloc.name, sizeof a.name);
    FF_PUSH(&s->allocations, a);
  }
  if (op->kind != TRACE_OP_LAUNCH) return;
  const trace_launch *launch = op->launch;
  while (s->kernels.count <= launch->kernel_index) FF_PUSH(&s->kernels, (kernel_sum){0});
  kernel_sum *k = &s->kernels.items[launch->kernel_index];
  strcpy(k->name, launch->kernel);
  k->launches++;
  k->blocks += launch->blocks;
}

static void unmatched(sums *s, const trace_item *item, const char *what) {
  if (!s->unmatched++)
    snprintf(s->first_unmatched, sizeof s->first_unmatched, "launch %" PRIu64 " (%s), block %" PRIu64 ", warp %u: %s",
             item->launch->id, item->launch->kernel, item->block, item->warp, what);
}

/* Each ENTER has its LEAVE, with no other mark, barrier or end between. */
static void match_marks(sums *s, const trace_item *item) {
  uint64_t word = item->record[0];
  trace_kind kind = trace_word_kind(word);
  if (s->warp_known && kind == TRACE_ENTER && s->marked) unmatched(s, item, "ENTER behind an ENTER");
  if (s->warp_known && kind == TRACE_LEAVE && !s->marked) unmatched(s, item, "LEAVE without an ENTER");
  if (s->warp_known && kind == TRACE_LEAVE && s->marked && s->mark != trace_mark_pc(word))
    unmatched(s, item, "LEAVE of another block than the ENTER before it");
  if (s->warp_known && (kind == TRACE_BARRIER || kind == TRACE_EXIT) && s->marked)
    unmatched(s, item, kind == TRACE_EXIT ? "EXIT before the LEAVE" : "BARRIER before the LEAVE");
  if (kind == TRACE_EXIT) s->warp_known = true;
  if (kind == TRACE_ENTER) s->mark = trace_mark_pc(word);
  s->marked = kind == TRACE_ENTER || (s->marked && kind != TRACE_LEAVE && kind != TRACE_EXIT);
}

static void sum_record(sums *s, const trace_item *item) {
  kernel_sum *k = item->launch->kernel_index < s->kernels.count ? &s->kernels.items[item->launch->kernel_index] : NULL;
  uint64_t word = item->record[0];
  match_marks(s, item);
  if (!k) return;
  k->instances += trace_word_kind(word) == TRACE_ENTER;
  if (trace_word_kind(word) == TRACE_ISSUE) k->instructions += trace_issue_count(word);
  if (trace_word_kind(word) != TRACE_ACCESS) return;
  k->accesses++;
  k->stores += trace_access_operation(word) == TRACE_STORE;
  k->lines += trace_access_lines(word);
}

static void sum_all(trace_file *file, sums *s) {
  trace_item item;
  ff_error error;
  s->warp_known = true;
  do {
    if (trace_file_next(file, &item, &error)) {
      say(error.message);
      s->lost++;
      s->warp_known = s->marked = false;
      item.kind = TRACE_ITEM_RECORD;
      continue;
    }
    if (item.kind == TRACE_ITEM_OPERATION) sum_operation(s, item.op);
    else if (item.kind == TRACE_ITEM_RECORD) sum_record(s, &item);
  } while (item.kind != TRACE_ITEM_END);
}

static void sums_free(sums *s) {
  free(s->kernels.items);
  free(s->allocations.items);
}

/* ---- info ---- */

static double bytes_per_access(const trace_file_info *info) {
  return info->accesses ? (double)info->bytes / (double)info->accesses : 0;
}

static void info_text(const trace_file_info *info, ff_text *out) {
  char size[32];
  const char *state = !info->whole           ? "no: its recording was cut off"
                      : info->about.complete ? "yes"
                                             : "no: the program was ended by a signal";
  ff_text_add(out, "program       %s\n", info->about.command ? info->about.command : "?");
  ff_text_add(out, "recorded by   farfault %s, on %s\n", info->about.farfault[0] ? info->about.farfault : "?",
              info->about.machine ? info->about.machine : "?");
  ff_text_add(out, "complete      %s\n", state);
  ff_text_add(out, "size          %s in %" PRIu64 " frame%s\n", ff_format_bytes(info->bytes, size, sizeof size),
              info->frame_count, cli_s(info->frame_count));
  ff_text_add(out, "operations    %" PRIu64 "\nlaunches      %" PRIu64 "\n", info->operations, info->launches);
  if (info->whole) ff_text_add(out, "blocks        %" PRIu64 "\n", info->blocks);
  ff_text_add(out, "warp accesses %" PRIu64 " (%.2f bytes each)\n", info->accesses, bytes_per_access(info));
  ff_text_add(out, "marks         %s\n", info->about.marks ? "yes: offload candidates" : "no");
  if (info->whole) ff_text_add(out, "checksum      %016" PRIx64 "\n", info->checksum);
  for (uint32_t i = 0; i < info->about.note_count; i++) ff_text_add(out, "note          %s\n", info->about.notes[i]);
}

static const char *const memory_names[] = {"device", "managed", "pinned", "host"};

static void kernels_text(const sums *s, ff_text *out) {
  table t;
  table_start(&t, "rrrrrrrl");
  t.spare = (const char *const[]){"instances", "lines each", "stores", "accesses", "blocks", NULL};
  table_names(&t, (const char *const[]){"launches", "blocks", "instructions", "accesses", "stores", "lines each",
                                        "instances", "kernel", NULL});
  for (size_t i = 0; i < s->kernels.count; i++) {
    const kernel_sum *k = &s->kernels.items[i];
    if (!k->launches) continue;
    double accesses = k->accesses ? (double)k->accesses : 1;
    table_cell(&t, "%" PRIu64, k->launches);
    table_cell(&t, "%" PRIu64, k->blocks);
    table_cell(&t, "%" PRIu64, k->instructions);
    table_cell(&t, "%" PRIu64, k->accesses);
    table_cell(&t, "%.1f %%", 100 * (double)k->stores / accesses);
    table_cell(&t, "%.2f", (double)k->lines / accesses);
    table_cell(&t, "%" PRIu64, k->instances);
    table_cell(&t, "%s", k->name);
  }
  table_write(&t, 2, out);
  table_free(&t);
}

static void sums_text(const sums *s, ff_text *out) {
  ff_text_add(out, "\n");
  kernels_text(s, out);
  ff_text_add(out, "\n%10s  %-8s allocation\n", "bytes", "memory");
  for (size_t i = 0; i < s->allocations.count; i++) {
    char size[32];
    const allocation_sum *a = &s->allocations.items[i];
    ff_text_add(out, "%10s  %-8s %s\n", ff_format_bytes(a->bytes, size, sizeof size), memory_names[a->memory], a->name);
  }
  ff_text_add(out, "\n%10s  operation\n", "count");
  for (int kind = 0; kind < TRACE_OP_END; kind++)
    if (s->operations[kind])
      ff_text_add(out, "%10" PRIu64 "  %s\n", s->operations[kind], operation_kind_name((trace_op_kind)kind));
}

/* Texts come from a file and may be no UTF-8: jansson refuses those. */
static json_t *text_of(const char *text) {
  json_t *string = text ? json_string(text) : json_null();
  return string ? string : json_string("?");
}

static void info_json(const trace_file_info *info, const sums *s, ff_text *out) {
  char checksum[20];
  snprintf(checksum, sizeof checksum, "%016" PRIx64, info->checksum);
  json_t *notes = json_array(), *kernels = json_array(), *allocations = json_array();
  for (uint32_t i = 0; i < info->about.note_count; i++) json_array_append_new(notes, text_of(info->about.notes[i]));
  for (size_t i = 0; i < s->kernels.count; i++) {
    const kernel_sum *k = &s->kernels.items[i];
    if (!k->launches) continue;
    json_array_append_new(kernels, json_pack("{s:o s:I s:I s:I s:I s:I s:I s:I}", "name", text_of(k->name), "launches",
                                             (json_int_t)k->launches, "blocks", (json_int_t)k->blocks,
                                             "warp_instructions", (json_int_t)k->instructions, "accesses",
                                             (json_int_t)k->accesses, "stores", (json_int_t)k->stores, "lines",
                                             (json_int_t)k->lines, "instances", (json_int_t)k->instances));
  }
  for (size_t i = 0; i < s->allocations.count; i++)
    json_array_append_new(allocations, json_pack("{s:o s:I s:s}", "name", text_of(s->allocations.items[i].name),
                                                 "bytes", (json_int_t)s->allocations.items[i].bytes, "memory",
                                                 memory_names[s->allocations.items[i].memory]));
  json_t *all = json_pack("{s:o s:o s:o s:b s:b s:b s:o s:I s:I s:I s:I s:I s:I s:o s:o s:o}", "command",
                          text_of(info->about.command), "version", text_of(info->about.farfault), "machine",
                          text_of(info->about.machine), "whole", info->whole, "complete", info->about.complete, "marks",
                          info->about.marks, "checksum", info->whole ? json_string(checksum) : json_null(), "bytes",
                          (json_int_t)info->bytes, "frames", (json_int_t)info->frame_count, "operations",
                          (json_int_t)info->operations, "launches", (json_int_t)info->launches, "blocks",
                          (json_int_t)info->blocks, "accesses", (json_int_t)info->accesses, "notes", notes, "kernels",
                          kernels, "allocations", allocations);
  char *text = json_dumps(all, JSON_INDENT(1));
  ff_text_add(out, "%s\n", text ? text : "{}");
  free(text);
  json_decref(all);
}

static int info(const arguments *a, trace_file *file) {
  const trace_file_info *about = trace_file_information(file);
  ff_text out = {0}, json = {0};
  sums s = {0};
  if (a->verbose || a->json) sum_all(file, &s);
  if (a->json) info_json(about, &s, &json);
  info_text(about, &out);
  if (a->verbose) sums_text(&s, &out);
  int status = a->json && !strcmp(a->json, "-") ? CLI_DONE : cli_print(&out);
  if (a->json && !status) status = cli_write_or_print(a->json, &json);
  if (!about->whole || about->nameless || s.lost) status = CLI_BAD_FILE;
  sums_free(&s);
  free(out.chars);
  free(json.chars);
  return status;
}

/* ---- dump ---- */

static void dump_l2_controls(const trace_l2_controls *l2, ff_text *out) {
  static const char *const priorities[] = {"plain", "evict first", "evict last", "normal"};
  if (l2->set_aside) ff_text_add(out, " with %" PRIu64 " bytes of the L2 set aside", l2->set_aside);
  if (l2->resets) ff_text_add(out, " after resets: %u", l2->resets);
  if (l2->bytes)
    ff_text_add(out, " and a window of %" PRIu64 " bytes at %#" PRIx64 ": %.0f %% %s, others %s", l2->bytes,
                l2->address, 100.0 * l2->share / TRACE_L2_SHARE, priorities[l2->hit], priorities[l2->miss]);
}

/* "0-9,12" */
static void dump_sms(const trace_sms *sms, ff_text *out) {
  uint32_t shown = 0;
  for (uint32_t i = 0, end; i < TRACE_SMS_MAX; i = end + 1) {
    for (end = i; end < TRACE_SMS_MAX && sms->mask[end / 64] >> end % 64 & 1; end++) {}
    if (end == i) continue;
    ff_text_add(out, shown++ ? ",%u" : "\t%u", i);
    if (end > i + 1) ff_text_add(out, "-%u", end - 1);
  }
  if (!shown) ff_text_add(out, "\tall");
}

static void dump_operation(const trace_op *op, ff_text *out) {
  static const char *const directions[] = {"to the GPU", "to the CPU", "on the GPU", "on the CPU"};
  ff_text_add(out, "%" PRIu64 "\t%s", op->sequence, operation_kind_name(op->kind));
  switch (op->kind) {
  case TRACE_OP_ALLOC:
    ff_text_add(out, "\t%s %#" PRIx64 " %" PRIu64 " bytes: %s", memory_names[op->alloc.memory], op->alloc.address,
                op->alloc.bytes, op->alloc.name);
    break;
  case TRACE_OP_FREE: ff_text_add(out, "\t%#" PRIx64, op->free.address); break;
  case TRACE_OP_RESERVE:
    ff_text_add(out, "\t%#" PRIx64 " %" PRIu64 " bytes: %s", op->alloc.address, op->alloc.bytes, op->alloc.name);
    break;
  case TRACE_OP_CREATE:
    ff_text_add(out, "\tmemory %u, %" PRIu64 " bytes: %s", op->alloc.id, op->alloc.bytes, op->alloc.name);
    for (uint32_t d = 0; d < TRACE_DEVICES_MAX; d++)
      if (op->alloc.address >> d & 1) ff_text_add(out, ", of device %u", d);
    break;
  case TRACE_OP_RELEASE: ff_text_add(out, "\tmemory %u", op->free.id); break;
  case TRACE_OP_MAP:
    ff_text_add(out, "\t%#" PRIx64 " %" PRIu64 " bytes -> memory %u + %" PRIu64, op->map.address, op->map.bytes,
                op->map.memory, op->map.offset);
    break;
  case TRACE_OP_UNMAP:
  case TRACE_OP_SET_ACCESS:
  case TRACE_OP_UNRESERVE: ff_text_add(out, "\t%#" PRIx64 " %" PRIu64 " bytes", op->map.address, op->map.bytes); break;
  case TRACE_OP_COPY:
    ff_text_add(out, "\t%s %#" PRIx64 " -> %#" PRIx64 " %" PRIu64 " bytes x %" PRIu64 "%s",
                directions[op->copy.direction], op->copy.from, op->copy.to, op->copy.width, op->copy.height,
                op->copy.pinned ? " pinned" : "");
    break;
  case TRACE_OP_SET:
    ff_text_add(out, "\t%#" PRIx64 " %" PRIu64 " bytes x %" PRIu64, op->set.to, op->set.width, op->set.height);
    break;
  case TRACE_OP_LAUNCH:
    ff_text_add(out, "\t%" PRIu64 ": %s <<<%ux%ux%u, %ux%ux%u, %u>>>", op->launch->id, op->launch->kernel,
                op->launch->grid[0], op->launch->grid[1], op->launch->grid[2], op->launch->block[0],
                op->launch->block[1], op->launch->block[2], op->launch->shared_bytes);
    if (op->launch->range[0]) ff_text_add(out, " in %s", op->launch->range);
    if (op->launch->site[0]) ff_text_add(out, " at %s", op->launch->site);
    if (op->launch->carve_out) ff_text_add(out, " preferring %u %% shared memory", op->launch->carve_out - 1u);
    dump_l2_controls(&op->launch->l2, out);
    break;
  case TRACE_OP_EVENT_RECORD:
  case TRACE_OP_STREAM_WAIT:
  case TRACE_OP_SYNC_EVENT: ff_text_add(out, "\tevent %u", op->event.event); break;
  case TRACE_OP_PROFILE: ff_text_add(out, "\t%s", op->profile.start ? "start" : "stop"); break;
  case TRACE_OP_RANGE:
    ff_text_add(out, "\t%s %" PRIu64, op->range.begin ? "begin" : "end", op->range.number);
    if (op->range.begin) ff_text_add(out, " %s, thread %u", op->range.name, op->range.thread);
    break;
  case TRACE_OP_STREAM_SMS: dump_sms(&op->sms, out); break;
  case TRACE_OP_HOST_TOUCH:
    ff_text_add(out, "\t%s %#" PRIx64 " %" PRIu64 " bytes", op->touch.write ? "write" : "read", op->touch.address,
                op->touch.bytes);
    break;
  case TRACE_OP_ADVISE:
  case TRACE_OP_PREFETCH:
    ff_text_add(out, "\t%#" PRIx64 " %" PRIu64 " bytes, advice %d, device %d", op->hint.address, op->hint.bytes,
                op->hint.advice, op->hint.device);
    break;
  case TRACE_OP_MODULE: ff_text_add(out, "\t%u: %" PRIu64 " bytes of PTX", op->module.id, op->module.bytes); break;
  default: break;
  }
  if (trace_device(op->stream)) ff_text_add(out, "\tdevice %u", trace_device(op->stream));
  ff_text_add(out, trace_stream_number(op->stream) ? "\tstream %u\n" : "\n", trace_stream_number(op->stream));
}

static void dump_access(const uint64_t *words, ff_text *out) {
  static const char *const operations[] = {"load", "store", "atomic", "prefetch"};
  uint32_t flags = trace_access_flags(words[0]);
  ff_text_add(out, "%s%s pc %u, %u bytes, mask %08" PRIx64, flags & TRACE_BULK ? "bulk " : "",
              flags & TRACE_ASYNC_COPY ? "copy" : operations[trace_access_operation(words[0])],
              trace_access_pc(words[0]), trace_access_bytes(words[0]), words[1]);
  if (flags & TRACE_L2_PRIORITY) ff_text_add(out, flags & TRACE_STREAMING ? ", evict first" : ", evict last");
  for (uint32_t i = 0; i < trace_access_lines(words[0]); i++)
    ff_text_add(out, " %#" PRIx64 "/%u/%x", trace_line_address(words[2 + i]), trace_line_lanes(words[2 + i]),
                trace_line_sectors(words[2 + i]));
}

static void add_units(ff_text *out, uint64_t word) {
  static const char *const names[TRACE_UNIT_COUNT] = {"slots",  "fma",   "alu",   "xu",       "fp64", "lsu",
                                                      "tensor", "chain", "loads", "products", "half", "minmax"};
  trace_counts counts = {{0}};
  trace_add_units(&counts, word);
  ff_text_add(out, "units");
  for (uint32_t u = 0; u < TRACE_UNIT_COUNT; u++)
    if (trace_count(&counts, (trace_unit)u)) ff_text_add(out, " %s %u", names[u], trace_count(&counts, (trace_unit)u));
}

static void add_async(ff_text *out, uint64_t word) {
  uint32_t id = trace_async_id(word), count = trace_async_count(word);
  switch (trace_async_what(word)) {
  case TRACE_GROUP: ff_text_add(out, "copies end a group"); break;
  case TRACE_WAIT_GROUPS: ff_text_add(out, "wait for all groups of copies but %u", count); break;
  case TRACE_ARRIVE: ff_text_add(out, "arrive at mbarrier %u", id); break;
  case TRACE_ARRIVE_COPIED: ff_text_add(out, "arrive at mbarrier %u with the copies", id); break;
  case TRACE_ARRIVE_FAR:
  case TRACE_ARRIVE_FAR_COPIED:
    ff_text_add(out, "arrive at mbarrier %u of the block %+d%s", id, trace_async_away(word),
                trace_async_what(word) == TRACE_ARRIVE_FAR ? "" : " with the copies");
    break;
  case TRACE_AWAIT_FAR: ff_text_add(out, "await %u arrivals of other blocks at mbarrier %u", count, id); break;
  default: ff_text_add(out, "await %u arrivals at mbarrier %u", count, id); break;
  }
}

static void dump_record(const trace_item *item, ff_text *out) {
  uint64_t word = item->record[0];
  ff_text_add(out, "\t%" PRIu64 ".%u\t", item->block, item->warp);
  switch (trace_word_kind(word)) {
  case TRACE_ISSUE:
    ff_text_add(out, "instructions %u, memory %u, sfu %u, fp64 %u", trace_issue_count(word), trace_issue_memory(word),
                trace_issue_sfu(word), trace_issue_fp64(word));
    break;
  case TRACE_ACCESS: dump_access(item->record, out); break;
  case TRACE_WAIT:
    ff_text_add(out, "%swait %u",
                trace_wait_early(word)  ? "early "
                : trace_wait_late(word) ? "late "
                                        : "",
                trace_wait_k(word));
    break;
  case TRACE_BARRIER:
    ff_text_add(out, "barrier %u, %u expected%s", trace_barrier_id(word), trace_barrier_expected(word),
                trace_barrier_arrive_only(word) ? ", arrives" : "");
    break;
  case TRACE_ENTER:
    ff_text_add(out, "enter pc %u", trace_mark_pc(word));
    if (trace_enter_trips(word)) ff_text_add(out, ", trips %u", trace_enter_trips(word));
    break;
  case TRACE_LEAVE: ff_text_add(out, "leave pc %u", trace_mark_pc(word)); break;
  case TRACE_UNITS: add_units(out, word); break;
  case TRACE_ASYNC: add_async(out, word); break;
  case TRACE_SPILL:
    ff_text_add(out, "spill %s pc %u slot %u, %u words, sectors %x", trace_spill_stores(word) ? "store" : "load",
                trace_spill_pc(word), trace_spill_slot(word), trace_spill_words(word), trace_spill_sectors(word));
    break;
  default: ff_text_add(out, "exit"); break;
  }
  ff_text_add(out, "\n");
}

static bool wanted(const trace_selection *s, const trace_launch *launch) {
  return launch->id >= s->first_launch && launch->id <= s->last_launch &&
         (!s->kernel || strstr(launch->kernel, s->kernel));
}

static bool chooses_launches(const trace_selection *s) {
  return s->kernel || s->first_launch || s->last_launch != UINT64_MAX;
}

/* Of a selection that no launch is in. */
static int fail_without_launch(const char *file, const trace_selection *s, uint64_t launches) {
  ff_text what = {0};
  if (s->first_launch || s->last_launch != UINT64_MAX) ff_text_add(&what, " %" PRIu64, s->first_launch);
  if (s->last_launch != s->first_launch && s->last_launch != UINT64_MAX)
    ff_text_add(&what, "-%" PRIu64, s->last_launch);
  if (s->kernel) ff_text_add(&what, " of a kernel with '%s' in its name", s->kernel);
  int status = cli_fail(CLI_BAD_FILE, "%s: has no launch%s: there %s %" PRIu64 " launch%s", file, what.chars,
                        launches == 1 ? "is" : "are", launches, cli_es(launches));
  free(what.chars);
  return status;
}

enum { PRINT_BYTES = 1 << 16 };

static void say_cut_off(const arguments *a, const trace_file_info *about) {
  if (about->whole) return;
  cli_fail(0,
           "%s: the recording was cut off: it has %" PRIu64 " operation%s, %" PRIu64
           " launch%s (farfault trace cut --repair makes a whole trace of them)",
           a->file, about->operations, cli_s(about->operations), about->launches, cli_es(about->launches));
}

static int dump(const arguments *a, trace_file *file) {
  bool chosen = chooses_launches(&a->selection), found = false, damaged = false;
  ff_text out = {0};
  trace_item item = {0};
  ff_error error;
  int status = CLI_DONE;
  while (item.kind != TRACE_ITEM_END && status == CLI_DONE) {
    if (trace_file_next(file, &item, &error)) {
      say(error.message);
      damaged = true;
      item.kind = TRACE_ITEM_RECORD;
      continue;
    }
    bool launch = item.kind == TRACE_ITEM_OPERATION && item.op->kind == TRACE_OP_LAUNCH;
    if (item.kind == TRACE_ITEM_OPERATION && (launch ? wanted(&a->selection, item.op->launch) : !chosen)) {
      dump_operation(item.op, &out);
      found = true;
    }
    if (item.kind == TRACE_ITEM_RECORD && a->records && wanted(&a->selection, item.launch) &&
        item.block >= a->selection.first_block && item.block <= a->selection.last_block)
      dump_record(&item, &out);
    if (out.length < PRINT_BYTES && item.kind != TRACE_ITEM_END) continue;
    status = cli_print(&out);
    out.length = 0;
  }
  free(out.chars);
  const trace_file_info *about = trace_file_information(file);
  say_cut_off(a, about);
  if (chosen && !found && status == CLI_DONE) status = fail_without_launch(a->file, &a->selection, about->launches);
  return damaged || about->nameless || !about->whole ? CLI_BAD_FILE : status;
}

/* ---- check ---- */

static int check(const arguments *a, trace_file *file) {
  const trace_file_info *about = trace_file_information(file);
  sums s = {0};
  sum_all(file, &s);
  ff_text out = {0};
  say_cut_off(a, about);
  if (s.unmatched)
    cli_fail(0, "%s: %" PRIu64 " marks of offload candidates do not match; the first: %s", a->file, s.unmatched,
             s.first_unmatched);
  bool good = about->whole && !about->nameless && !s.lost && !s.unmatched;
  if (good)
    ff_text_add(&out,
                "%s: good: %" PRIu64 " frame%s, %" PRIu64 " operation%s, %" PRIu64
                " warp access%s, checksum %016" PRIx64 "\n",
                a->file, about->frame_count, cli_s(about->frame_count), about->operations, cli_s(about->operations),
                about->accesses, cli_es(about->accesses), about->checksum);
  else if (s.lost)
    cli_fail(0, "%s: %" PRIu64 " of %" PRIu64 " frames %s damaged", a->file, s.lost, about->frame_count,
             s.lost == 1 ? "is" : "are");
  int status = cli_print(&out);
  sums_free(&s);
  free(out.chars);
  return good ? status : CLI_BAD_FILE;
}

/* ---- cut ---- */

static int cut(const arguments *a, trace_file *file) {
  ff_error error;
  trace_copied copied;
  if (trace_file_information(file)->nameless && !a->selection.repair)
    return cli_fail(CLI_BAD_FILE, "%s: nothing is written (--repair makes a trace without what is lost)", a->file);
  ff_status failed = trace_file_copy(file, a->output, &a->selection, say, &copied, &error);
  if (failed) {
    if (failed == FF_INVALID)
      return fail_without_launch(a->file, &a->selection, trace_file_information(file)->launches);
    return cli_fail(failed == FF_PARSE ? CLI_BAD_FILE : CLI_FAILED, "%s%s", error.message,
                    failed == FF_PARSE ? " (--repair goes on behind it)" : "");
  }
  ff_text out = {0};
  ff_text_add(&out, "%s: %" PRIu64 " operation%s, %" PRIu64 " launch%s, %" PRIu64 " warp access%s", a->output,
              copied.operations, cli_s(copied.operations), copied.launches, cli_es(copied.launches), copied.accesses,
              cli_es(copied.accesses));
  if (copied.lost_frames)
    ff_text_add(&out, "; %" PRIu64 " damaged frame%s left out", copied.lost_frames,
                copied.lost_frames == 1 ? " is" : "s are");
  ff_text_add(&out, "\n");
  char *target = ff_output_target(a->output);
  int status = CLI_DONE;
  if (target) status = cli_print(&out);
  else fputs(out.chars, stderr); /* stdout may be where the trace goes */
  free(target);
  free(out.chars);
  return status;
}

static int trace_command(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "info|dump|check|cut TRACE",
      "Looks into recorded programs: `info` says what a trace is of, `dump` lists its operations (with --records every warp's accesses), `check` "
      "reads all of it and says what is damaged, `cut` writes a part of it as a trace of its own.\v"
      "Example:\n  farfault trace info -v app.fft\n  farfault trace dump --records --launch 0 --block 3 app.fft\n"
      "  farfault trace cut --kernel gemm -o gemm.fft app.fft\n"
      "  farfault trace cut --repair -o whole.fft damaged.fft\n\n"
      "A dumped access is: instruction, bytes per lane, mask of active lanes, then for each line of 128 bytes its address / lanes / sectors. "
      "A copy is an asynchronous one to shared memory, for which `wait for all groups` and `await` wait; bulk: made by the SM's engine for bulk copies. "
      "Exit status: 2 if the file is damaged, its recording was cut off, or no launch is one that --launch and --kernel ask for; then `cut` writes nothing.",
      NULL,
      NULL,
      NULL};
  arguments a = {.selection = {.last_launch = UINT64_MAX, .last_block = UINT64_MAX}};
  cli_old_flag("--json", &argc, &argv);
  cli_parse_tabular(&argp, argc, argv, &a, STDOUT_FILENO);
  trace_file *file;
  ff_error error;
  if (cli_keep_input(a.file, (const char *const[]){a.json, a.output}, 2)) return CLI_USAGE;
  if (kind_refused(a.file, KIND_TRACE)) return CLI_BAD_FILE;
  if (trace_file_open(a.file, &file, &error)) return cli_fail(CLI_BAD_FILE, "%s", error.message);
  if (trace_file_information(file)->nameless)
    cli_fail(0, "%s: its first frame is damaged; lost: the program's name, and the machine of the recording", a.file);
  int (*const actions[])(const arguments *, trace_file *) = {info, dump, check, cut};
  int status = actions[a.action](&a, file);
  trace_file_close(file);
  return status;
}

const cli_command cli_trace = {"trace", "look into a trace, check it, cut parts out of it", trace_command};
