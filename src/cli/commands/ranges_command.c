/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault ranges TRACE`: what each block of a recorded launch touches of each allocation, proved from the kernel's
 * PTX and the launch's parameters (ptx/ranges/ranges.h).
 *
 * With --check every access that was recorded is compared with what was proved, and one that lies
 * outside is told and makes the exit status CLI_FAILED. Records name 32-byte sectors: an access is outside if none of a
 * sector's bytes is in the range. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "ptx/ranges/ranges.h"
#include "trace/file.h"

typedef struct allocation {
  uint64_t address, bytes;
  uint32_t id;
  char name[64];
} allocation;

typedef struct code { /* a TRACE_OP_MODULE's number, and its texts */
  uint32_t id;
  FF_VEC(ptx_module *) parts;
  ptx_module *linked;
  bool refused;
} code;

typedef struct arguments {
  const char *file, *kernel;
  bool all, check;
} arguments;

typedef struct analyser {
  const arguments *a;
  FF_VEC(allocation) live;
  FF_VEC(code *) codes;
  FF_VEC(uint32_t) shown;     /* kernels, by kernel_index */
  const trace_launch *launch; /* the one whose records are checked, or NULL */
  ptx_ranges found;           /* of it */
  FF_VEC(ptx_ranges_segment) segments;
  uint64_t checked, outside, launches, proved;
  double milliseconds, longest;
  ff_text out;
} analyser;

/* ---- code ---- */

static code *code_of(analyser *r, uint32_t id) {
  for (size_t i = 0; i < r->codes.count; i++)
    if (r->codes.items[i]->id == id) return r->codes.items[i];
  code *c = ff_alloc(sizeof *c);
  c->id = id;
  FF_PUSH(&r->codes, c);
  return c;
}

static void take_module(analyser *r, const trace_op *op) {
  code *c = code_of(r, op->module.id);
  ptx_module *module;
  ff_error error;
  if (c->linked) return;
  if (ptx_module_parse("the recorded PTX", op->module.ptx, op->module.bytes, &module, &error)) {
    cli_fail(0, "%s", error.message);
    c->refused = true;
    return;
  }
  FF_PUSH(&c->parts, module);
}

static const ptx_module *linked(code *c) {
  ff_error error;
  if (c->linked || c->refused || !c->parts.count) return c->linked;
  if (ptx_link(c->parts.items, (uint32_t)c->parts.count, &c->linked, &error)) {
    cli_fail(0, "%s", error.message);
    c->refused = true;
    c->linked = NULL;
  }
  return c->linked;
}

/* By its name in the PTX or as C++ spells it: `saxpy(int, float*)` is _Z5saxpyiPf, whose name is in there with its
 * length. */
static const ptx_func *kernel_of(analyser *r, const trace_launch *launch) {
  const ptx_module *module = linked(code_of(r, launch->module));
  if (!module) return NULL;
  const ptx_func *found = ptx_find_func(module, launch->kernel);
  if (found) return found;
  char mangled[300];
  size_t length = strcspn(launch->kernel, "(<");
  snprintf(mangled, sizeof mangled, "_Z%zu%.*s", length, (int)length, launch->kernel);
  for (uint32_t i = 0; i < module->func_count; i++) {
    if (!module->funcs[i]->entry || strncmp(module->funcs[i]->name, mangled, strlen(mangled))) continue;
    if (found) return NULL; /* two of that name */
    found = module->funcs[i];
  }
  return found;
}

static void code_free(code *c) {
  ptx_module_free(c->linked);
  for (size_t i = 0; i < c->parts.count; i++) ptx_module_free(c->parts.items[i]);
  free(c->parts.items);
  free(c);
}

/* ---- output ---- */

static void put_term(ff_text *out, const char *name, int64_t factor, bool *first) {
  if (!factor) return;
  ff_text_add(out, "%s%s * %" PRId64, *first ? "" : " + ", name, factor);
  *first = false;
}

/* "x * 1024 + y * 65536 + [-4, 1028) of [0, 4194304)" */
static void put_range(ff_text *out, const char *mode, const ptx_range *range) {
  bool first = true;
  ff_text_add(out, " %s ", mode);
  if (!range->whole) {
    put_term(out, "x", range->per_block[0], &first);
    put_term(out, "y", range->per_block[1], &first);
    put_term(out, "z", range->per_block[2], &first);
    ff_text_add(out, " + [%" PRId64 ", %" PRId64 ") of ", range->start, range->start + (int64_t)range->block_bytes);
  }
  ff_text_add(out, "[%" PRIu64 ", %" PRIu64 ")", range->offset, range->offset + range->bytes);
}

static bool same_range(const ptx_range *a, const ptx_range *b) {
  return a->any == b->any && a->whole == b->whole && a->offset == b->offset && a->bytes == b->bytes &&
         a->start == b->start && a->block_bytes == b->block_bytes &&
         !memcmp(a->per_block, b->per_block, sizeof a->per_block);
}

static void put_segment(analyser *r, uint32_t s) {
  const ptx_segment_ranges *found = &r->found.segments[s];
  const allocation *at = NULL;
  for (size_t i = 0; i < r->live.count; i++)
    if (r->live.items[i].address == r->segments.items[s].base) at = &r->live.items[i];
  if (!found->all.any) return;
  ff_text_add(&r->out, "  %s:", at ? at->name : "?");
  if (found->reads.any && same_range(&found->reads, &found->writes)) {
    put_range(&r->out, "reads and writes", &found->reads);
  } else {
    if (found->reads.any) put_range(&r->out, "reads", &found->reads);
    if (found->reads.any && found->writes.any) ff_text_add(&r->out, ",");
    if (found->writes.any) put_range(&r->out, "writes", &found->writes);
  }
  if (found->reason[0]) ff_text_add(&r->out, "\n    %s", found->reason);
  ff_text_add(&r->out, "\n");
}

static void put_launch(analyser *r, const trace_launch *launch) {
  ff_text_add(&r->out, "launch %" PRIu64 ": %s, grid %u x %u x %u, block %u x %u x %u\n", launch->id, launch->kernel,
              launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0], launch->block[1], launch->block[2]);
  if (!r->found.complete) {
    ff_text_add(&r->out, "  not analysed: %s\n", r->found.reason);
    return;
  }
  for (uint32_t s = 0; s < r->found.segment_count; s++) put_segment(r, s);
  if (r->found.assumed)
    ff_text_add(&r->out, "  if pointers stay in what they point into (line %u)\n", r->found.assumed_line);
}

/* ---- launches ---- */

static bool is_new(analyser *r, uint32_t kernel) {
  for (size_t i = 0; i < r->shown.count; i++)
    if (r->shown.items[i] == kernel) return false;
  FF_PUSH(&r->shown, kernel);
  return true;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool is_used(const trace_launch *launch, const allocation *a) {
  for (uint32_t u = 0; u < launch->use_count; u++)
    if (launch->uses[u].address < a->address + a->bytes && a->address < launch->uses[u].address + launch->uses[u].bytes)
      return true;
  return false;
}

/* All that there is; if that is too much, what the launch's parameters point into. */
static void choose_segments(analyser *r, const trace_launch *launch) {
  r->segments.count = 0;
  for (size_t i = 0; i < r->live.count; i++) {
    const allocation *a = &r->live.items[i];
    if (r->live.count > PTX_RANGES_SEGMENTS && (!is_used(launch, a) || r->segments.count == PTX_RANGES_SEGMENTS))
      continue;
    FF_PUSH(&r->segments, ((ptx_ranges_segment){a->address, a->bytes}));
  }
}

static void take_launch(analyser *r, const trace_launch *launch) {
  ptx_ranges_free(&r->found);
  r->launch = NULL;
  if (r->a->kernel && !strstr(launch->kernel, r->a->kernel)) return;
  bool show = is_new(r, launch->kernel_index) || r->a->all;
  if (!show && !r->a->check) return;
  const ptx_func *kernel = kernel_of(r, launch);
  if (!kernel || !launch->parameters) {
    if (show)
      ff_text_add(&r->out, "launch %" PRIu64 ": %s: not analysed: %s\n", launch->id, launch->kernel,
                  kernel ? "its parameters were not recorded" : "its code was not recorded, or not under one name");
    return;
  }
  choose_segments(r, launch);
  ptx_ranges_launch asked = {.params = launch->parameters,
                             .param_bytes = launch->parameter_bytes,
                             .segments = r->segments.items,
                             .segment_count = (uint32_t)r->segments.count};
  memcpy(asked.grid, launch->grid, sizeof asked.grid);
  memcpy(asked.block, launch->block, sizeof asked.block);
  double start = now();
  ptx_ranges_find(kernel, &asked, &r->found);
  double took = now() - start;
  r->milliseconds += took;
  if (took > r->longest) r->longest = took;
  r->launches++;
  r->proved += r->found.complete;
  r->launch = launch;
  if (show) put_launch(r, launch);
}

/* ---- checking ---- */

static void check_sector(analyser *r, const uint64_t *record, uint64_t block, uint64_t sector) {
  trace_access_op op = trace_access_operation(record[0]);
  const uint32_t *grid = r->launch->grid, one[3] = {1, 1, 1};
  uint32_t at[3] = {(uint32_t)(block % grid[0]), (uint32_t)(block / grid[0] % grid[1]),
                    (uint32_t)(block / grid[0] / grid[1])};
  for (uint32_t s = 0; s < r->found.segment_count; s++) {
    const ptx_ranges_segment *segment = &r->segments.items[s];
    const ptx_segment_ranges *found = &r->found.segments[s];
    if (sector + TRACE_SECTOR_BYTES <= segment->base || sector >= segment->base + segment->bytes) continue;
    const ptx_range *ranges[2] = {op != TRACE_STORE ? &found->reads : NULL,
                                  op == TRACE_STORE || op == TRACE_ATOMIC ? &found->writes : NULL};
    for (int i = 0; i < 2; i++) {
      uint64_t begin, end;
      if (!ranges[i]) continue;
      ptx_range_of_blocks(ranges[i], at, one, &begin, &end);
      r->checked++;
      if (begin < end && segment->base + begin < sector + TRACE_SECTOR_BYTES && segment->base + end > sector) continue;
      if (r->outside++ < 10)
        ff_text_add(&r->out,
                    "  outside: block %u %u %u %s %#" PRIx64 ", offset %" PRId64
                    " of segment %u, pc %u; proved [%" PRIu64 ", %" PRIu64 ")\n",
                    at[0], at[1], at[2], i ? "writes" : "reads", sector, (int64_t)(sector - segment->base), s,
                    trace_access_pc(record[0]), begin, end);
    }
  }
}

static void check_record(analyser *r, const trace_item *item) {
  const uint64_t *record = item->record;
  if (!r->launch || !r->a->check || trace_word_kind(record[0]) != TRACE_ACCESS) return;
  for (uint32_t i = 0; i < trace_access_lines(record[0]); i++)
    for (uint32_t sector = 0; sector < 4; sector++)
      if (trace_line_sectors(record[2 + i]) >> sector & 1)
        check_sector(r, record, item->block, trace_line_address(record[2 + i]) + sector * TRACE_SECTOR_BYTES);
}

/* ---- the whole file ---- */

/* An allocation by its number, a reservation (UINT32_MAX) by its address. */
static void forget(analyser *r, uint32_t id, uint64_t address) {
  for (size_t i = 0; i < r->live.count; i++) {
    if (r->live.items[i].id != id || (id == UINT32_MAX && r->live.items[i].address != address)) continue;
    memmove(&r->live.items[i], &r->live.items[i + 1], (r->live.count - i - 1) * sizeof *r->live.items);
    r->live.count--;
    return;
  }
}

static void take_operation(analyser *r, const trace_op *op) {
  switch (op->kind) {
  case TRACE_OP_ALLOC: {
    allocation made = {op->alloc.address, op->alloc.bytes, op->alloc.id, ""};
    memcpy(made.name, op->alloc.name, sizeof made.name);
    FF_PUSH(&r->live, made);
    return;
  }
  case TRACE_OP_FREE: forget(r, op->free.id, 0); return;
  case TRACE_OP_RESERVE: {
    allocation made = {op->alloc.address, op->alloc.bytes, UINT32_MAX, ""};
    snprintf(made.name, sizeof made.name, "addresses from %#" PRIx64, op->alloc.address);
    FF_PUSH(&r->live, made);
    return;
  }
  case TRACE_OP_UNRESERVE: forget(r, UINT32_MAX, op->map.address); return;
  case TRACE_OP_MODULE: take_module(r, op); return;
  case TRACE_OP_LAUNCH: take_launch(r, op->launch); return;
  default: return;
  }
}

static int analyse(const arguments *a, trace_file *file) {
  analyser r = {.a = a};
  trace_item item = {0};
  ff_error error;
  int status = CLI_DONE;
  while (item.kind != TRACE_ITEM_END && status == CLI_DONE) {
    if (trace_file_next(file, &item, &error)) status = cli_fail(CLI_BAD_FILE, "%s", error.message);
    else if (item.kind == TRACE_ITEM_OPERATION) take_operation(&r, item.op);
    else if (item.kind == TRACE_ITEM_RECORD) check_record(&r, &item);
  }
  if (a->check)
    ff_text_add(&r.out,
                "%" PRIu64 " launches, %" PRIu64 " analysed in %.1f ms, %.2f ms the longest; %" PRIu64
                " accesses to 32 bytes checked, %" PRIu64 " outside\n",
                r.launches, r.proved, r.milliseconds, r.longest, r.checked, r.outside);
  if (status == CLI_DONE) status = cli_print(&r.out);
  if (status == CLI_DONE && r.outside) status = CLI_FAILED;
  ptx_ranges_free(&r.found);
  for (size_t i = 0; i < r.codes.count; i++) code_free(r.codes.items[i]);
  free(r.codes.items);
  free(r.live.items);
  free(r.shown.items);
  free(r.segments.items);
  free(r.out.chars);
  return status;
}

static const struct argp_option options[] = {
    {"kernel", 'k', "NAME", 0, "only launches of kernels whose name has this in it", 1},
    {"all", 'a', NULL, 0, "every launch; else the first one of each kernel", 1},
    {"check", 'c', NULL, 0, "also compare every recorded access of every launch with what was proved", 1},
    {0}};

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case 'k': a->kernel = value; return 0;
  case 'a': a->all = true; return 0;
  case 'c': a->check = true; return 0;
  default: return cli_take_file(key, value, &a->file, KIND_TRACE, state);
  }
}

static int ranges(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "TRACE",
      "Prints which bytes of each allocation the blocks of a recorded launch touch, as formulas in the block's index (x, y, z), "
      "proved from the kernel's PTX and the launch's parameters; or why there is no such formula.\v"
      "Example:\n  farfault record -o app.fft ./app\n  farfault ranges app.fft\n  farfault ranges --check app.fft",
      NULL,
      NULL,
      NULL};
  arguments a = {0};
  cli_parse(&argp, argc, argv, &a);
  trace_file *file;
  ff_error error;
  if (trace_file_open(a.file, &file, &error)) return cli_fail(CLI_BAD_FILE, "%s", error.message);
  int status = analyse(&a, file);
  trace_file_close(file);
  return status;
}

const cli_command cli_ranges = {"ranges", "say which bytes each block of a recorded kernel touches", ranges};
