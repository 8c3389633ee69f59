/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface to trace files (include/farfault/trace.h) over file.h.
 *
 * The arguments of each call are checked here, before they reach file.h; an operation is checked by the function that
 * reads it back (operations.h), so that every trace that was written can be read. The layout of trace_op stays
 * inside. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "farfault/trace.h"
#include "trace/coalesce.h"
#include "trace/file.h"
#include "trace/operations.h"

/* Kinds and limits are the same numbers on both sides. */
_Static_assert(FF_TRACE_ISSUE == (int)TRACE_ISSUE && FF_TRACE_UNITS == (int)TRACE_UNITS &&
                   FF_TRACE_ASYNC == (int)TRACE_ASYNC && FF_TRACE_AWAIT_FAR == (int)TRACE_AWAIT_FAR &&
                   FF_TRACE_UNIT_COUNT == (int)TRACE_UNIT_COUNT && FF_TRACE_LOADS == (int)TRACE_LOADS &&
                   FF_TRACE_PRODUCTS == (int)TRACE_PRODUCTS && FF_TRACE_HALF == (int)TRACE_HALF &&
                   FF_TRACE_MINMAX == (int)TRACE_MINMAX && FF_TRACE_SPILL == (int)TRACE_SPILL &&
                   FF_TRACE_SPILL_WORDS == TRACE_SPILL_WORDS,
               "records");
_Static_assert(FF_TRACE_PREFETCH == (int)TRACE_PREFETCH && FF_TRACE_RETURNS == TRACE_RETURNS &&
                   FF_TRACE_STREAMING == TRACE_STREAMING && FF_TRACE_L2_PRIORITY == (int)TRACE_L2_PRIORITY &&
                   FF_TRACE_ASYNC_COPY == TRACE_ASYNC_COPY && FF_TRACE_BULK == TRACE_BULK,
               "accesses");
_Static_assert(FF_TRACE_ALLOCATE == (int)TRACE_OP_ALLOC && FF_TRACE_LAUNCH == (int)TRACE_OP_LAUNCH &&
                   FF_TRACE_MODULE == (int)TRACE_OP_MODULE && FF_TRACE_PROFILE == (int)TRACE_OP_PROFILE &&
                   FF_TRACE_NAMED_RANGE == (int)TRACE_OP_RANGE,
               "operations");
_Static_assert(FF_TRACE_MEMORY_HOST == (int)TRACE_MEMORY_HOST && FF_TRACE_ON_HOST == (int)TRACE_H2H,
               "kinds of memory, directions");
_Static_assert(FF_TRACE_USES_MAX == TRACE_USES_MAX && FF_TRACE_LINES_MAX == PACK_LINES_MAX &&
                   FF_TRACE_FORMAT == TRACE_FILE_VERSION && FF_TRACE_SMS_MAX == TRACE_SMS_MAX &&
                   FF_TRACE_TRIPS_MAX == TRACE_TRIPS_MAX,
               "limits");
_Static_assert(FF_TRACE_LANES == TRACE_LANES && FF_TRACE_LINE_BYTES == TRACE_LINE_BYTES &&
                   FF_TRACE_SECTOR_BYTES == TRACE_SECTOR_BYTES,
               "sizes");

uint32_t ff_trace_library_version(void) { return FF_TRACE_VERSION; }

/* ---- errors ---- */

static ff_trace_status fail(ff_trace_error *error, ff_trace_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static ff_trace_status fail(ff_trace_error *error, ff_trace_status status, const char *format, ...) {
  if (!error) return status;
  va_list args;
  va_start(args, format);
  error->status = status;
  vsnprintf(error->message, sizeof error->message, format, args);
  va_end(args);
  return status;
}

#define refuse(error, ...) fail(error, FF_TRACE_INVALID, __VA_ARGS__)

/* ---- the writer ---- */

struct ff_trace_writer {
  trace_file_writer *file;
  char *path;
  ff_map kernels;                 /* name -> its number + 1 */
  FF_VEC(char *) names;           /* by number */
  trace_launch launch;            /* the last one */
  bool in_launch, in_warp, begun; /* begun: a warp of the launch has */
  uint64_t block;                 /* the last warp that began */
  uint32_t warp, loads;           /* loads: of it, so far */
  bool marked, issued;            /* it is between ENTER and LEAVE; behind an ISSUE and its UNITS */
  uint32_t mark;                  /* of this pc */
  trace_file_totals totals;
};

ff_trace_status ff_trace_create(const char *path, const char *command, const char *machine, ff_trace_writer **out,
                                ff_trace_error *error) {
  if (!path || !*path || !out) return refuse(error, "ff_trace_create: no path, or nowhere to put the writer");
  trace_file_about about = {.command = (char *)(uintptr_t)command, .machine = (char *)(uintptr_t)machine};
  snprintf(about.farfault, sizeof about.farfault, "%s (library)", FARFAULT_VERSION);
  trace_file_writer *file;
  ff_error why;
  if (trace_file_create(path, &about, &file, &why)) return fail(error, FF_TRACE_IO, "%s", why.message);
  ff_trace_writer *w = ff_alloc(sizeof *w);
  w->file = file;
  w->path = ff_strdup(path);
  *out = w;
  return FF_TRACE_OK;
}

static void writer_free(ff_trace_writer *w) {
  for (size_t i = 0; i < w->names.count; i++) free(w->names.items[i]);
  free(w->names.items);
  ff_map_free(&w->kernels);
  free(w->path);
  free(w);
}

void ff_trace_discard(ff_trace_writer *w) {
  if (!w) return;
  trace_file_abandon(w->file);
  writer_free(w);
}

ff_trace_status ff_trace_finish(ff_trace_writer *w, const ff_trace_ending *ending, ff_trace_error *error) {
  static const ff_trace_ending nothing;
  if (!w) return refuse(error, "ff_trace_finish: no writer");
  const ff_trace_ending *e = ending ? ending : &nothing;
  trace_file_about about = {.complete = !e->incomplete,
                            .totals = w->totals,
                            .notes = (char **)(uintptr_t)e->notes,
                            .note_count = e->notes ? e->note_count : 0};
  about.totals.thread_instructions = e->thread_instructions;
  about.totals.divergent_branches = e->divergent_branches;
  about.totals.barriers = e->barriers;
  if (w->in_launch) trace_file_seek(w->file, w->launch.blocks, 0);
  ff_error why;
  ff_trace_status status = FF_TRACE_OK;
  if (trace_file_finish(w->file, &about, &why)) status = fail(error, FF_TRACE_IO, "%s", why.message);
  writer_free(w);
  return status;
}

/* ---- operations ---- */

/* What the reader would say of it; fills in what it computes of a launch. NULL: good. */
static const char *check(const trace_op *op, trace_launch *read) {
  pack_bytes bytes = {0};
  operation_names names = {0};
  operation_put(&bytes, op, &names);
  operation_names_reset(&names);
  pack_view view = {bytes.items, bytes.items + bytes.count};
  trace_op back;
  const char *wrong = operation_take(&view, &back, read, &names);
  operation_names_free(&names);
  free(bytes.items);
  return wrong;
}

static const char *take_allocation(trace_op *op, const ff_trace_allocation *a) {
  const char *name = a->name ? a->name : "";
  if ((unsigned)a->memory > FF_TRACE_MEMORY_HOST) return "an unknown kind of memory";
  if (strnlen(name, sizeof op->alloc.name) == sizeof op->alloc.name) return "a name of more than 63 bytes";
  op->alloc.address = a->address;
  op->alloc.bytes = a->bytes;
  op->alloc.memory = (trace_memory_kind)a->memory;
  op->alloc.id = a->id;
  op->alloc.initialised = a->initialised;
  strcpy(op->alloc.name, name);
  return NULL;
}

static const char *take_copy(trace_op *op, const ff_trace_copy *c) {
  if ((unsigned)c->direction > FF_TRACE_ON_HOST) return "an unknown direction";
  op->copy.to = c->to;
  op->copy.from = c->from;
  op->copy.width = c->width;
  op->copy.height = c->height;
  op->copy.to_pitch = c->to_pitch;
  op->copy.from_pitch = c->from_pitch;
  op->copy.direction = (trace_direction)c->direction;
  op->copy.pinned = c->pinned;
  return NULL;
}

static const char *take_named_range(trace_op *op, const ff_trace_named_range *from) {
  const char *name = from->begin && from->name ? from->name : "";
  if (!from->number || from->number > INT64_MAX) return "a range without a number, or with one beyond 2^63";
  if (strnlen(name, sizeof op->range.name) == sizeof op->range.name) return "a name of more than 79 bytes";
  op->range.number = from->number;
  op->range.begin = from->begin;
  op->range.started = from->begin && from->started;
  op->range.thread = from->begin ? from->thread : 0;
  op->range.domain = from->begin ? from->domain : 0;
  strcpy(op->range.name, name);
  return NULL;
}

/* The union's members are told apart by the kind. NULL: good so far. */
static const char *take_operation(trace_op *op, const ff_trace_operation *from) {
  *op = (trace_op){.kind = (trace_op_kind)from->kind, .stream = from->stream, .blocking = from->blocking};
  switch (from->kind) {
  case FF_TRACE_ALLOCATE:
  case FF_TRACE_RESERVE:
  case FF_TRACE_CREATE_MEMORY: return take_allocation(op, &from->as.allocation);
  case FF_TRACE_MAP:
  case FF_TRACE_UNMAP:
  case FF_TRACE_SET_ACCESS:
  case FF_TRACE_FREE_RESERVATION:
    op->map.address = from->as.mapping.address;
    op->map.bytes = from->as.mapping.bytes;
    op->map.offset = from->as.mapping.offset;
    op->map.memory = from->as.mapping.memory;
    return NULL;
  case FF_TRACE_FREE:
  case FF_TRACE_RELEASE_MEMORY:
    op->free.address = from->as.allocation.address;
    op->free.id = from->as.allocation.id;
    return NULL;
  case FF_TRACE_COPY: return take_copy(op, &from->as.copy);
  case FF_TRACE_SET:
    op->set.to = from->as.copy.to;
    op->set.width = from->as.copy.width;
    op->set.height = from->as.copy.height;
    op->set.pitch = from->as.copy.to_pitch;
    return NULL;
  case FF_TRACE_LAUNCH: return "ff_trace_put_launch writes launches";
  case FF_TRACE_STREAM_CREATE: op->stream_create.flags = from->number; return NULL;
  case FF_TRACE_PROFILE:
    if (from->number > 1) return "neither a start (1) nor a stop (0)";
    op->profile.start = from->number;
    return NULL;
  case FF_TRACE_NAMED_RANGE: return take_named_range(op, &from->as.named_range);
  case FF_TRACE_STREAM_SMS: memcpy(op->sms.mask, from->as.sms.mask, sizeof op->sms.mask); return NULL;
  case FF_TRACE_EVENT_RECORD:
  case FF_TRACE_STREAM_WAIT:
  case FF_TRACE_SYNC_EVENT: op->event.event = from->number; return NULL;
  case FF_TRACE_HOST_TOUCH:
    op->touch.address = from->as.range.address;
    op->touch.bytes = from->as.range.bytes;
    op->touch.write = from->as.range.write;
    return NULL;
  case FF_TRACE_ADVISE:
  case FF_TRACE_PREFETCH_RANGE:
    if (from->kind == FF_TRACE_ADVISE && (from->number < 1 || from->number > TRACE_ADVICE_UNSET_ACCESSED_BY))
      return "an unknown advice";
    op->hint.address = from->as.range.address;
    op->hint.bytes = from->as.range.bytes;
    op->hint.advice = from->kind == FF_TRACE_ADVISE ? (int32_t)from->number : 0;
    op->hint.device = from->as.range.device;
    return NULL;
  case FF_TRACE_MODULE:
    if ((!from->as.module.ptx && from->as.module.bytes) || from->as.module.bytes > OPERATION_PTX_MAX)
      return "PTX of more than 64 MiB, or none";
    op->module.id = from->as.module.number;
    op->module.ptx = from->as.module.bytes ? from->as.module.ptx : "";
    op->module.bytes = from->as.module.bytes;
    return NULL;
  case FF_TRACE_STREAM_DESTROY:
  case FF_TRACE_SYNC_STREAM:
  case FF_TRACE_SYNC_DEVICE:
  case FF_TRACE_HOST_CALL: return NULL;
  }
  return "an unknown kind";
}

static void put_checked(ff_trace_writer *w, const trace_op *op) {
  trace_file_put_operation(w->file, op);
  w->in_launch = w->in_warp = w->begun = false;
}

ff_trace_status ff_trace_put_operation(ff_trace_writer *w, const ff_trace_operation *operation, ff_trace_error *error) {
  if (!w || !operation) return refuse(error, "ff_trace_put_operation: no writer or no operation");
  trace_op op;
  trace_launch none = {0};
  const char *wrong = take_operation(&op, operation);
  if (!wrong) wrong = check(&op, &none);
  if (wrong) return refuse(error, "%s: %s: %s", w->path, operation_kind_name((trace_op_kind)operation->kind), wrong);
  put_checked(w, &op);
  return FF_TRACE_OK;
}

static bool number_of(ff_trace_writer *w, const char *kernel, uint32_t *number) {
  uintptr_t known = (uintptr_t)ff_map_get(&w->kernels, kernel);
  if (!known) {
    if (w->names.count == OPERATION_KERNELS_MAX) return false;
    char *own = ff_strdup(kernel);
    FF_PUSH(&w->names, own);
    known = w->names.count;
    ff_map_set(&w->kernels, own, (void *)known);
  }
  *number = (uint32_t)(known - 1);
  return true;
}

static const char *take_launch(trace_launch *launch, const ff_trace_launch *from) {
  *launch = (trace_launch){.shared_bytes = from->shared_bytes,
                           .registers = from->registers,
                           .cooperative = from->cooperative,
                           .smids = from->smids,
                           .carve_out = (uint8_t)from->carve_out,
                           .module = from->module};
  if (!from->kernel || strnlen(from->kernel, sizeof launch->kernel) == sizeof launch->kernel)
    return "no name, or one of more than 255 bytes";
  if (from->carve_out > TRACE_CARVE_OUT_MAX) return "a carve-out of more than 100 percent";
  if (from->parameter_bytes > OPERATION_PARAMETERS_MAX || (from->parameter_bytes && !from->parameters))
    return "more than 65536 bytes of parameters, or none";
  if (from->use_count > TRACE_USES_MAX || (from->use_count && !from->uses)) return "more than 64 uses, or none";
  strcpy(launch->kernel, from->kernel);
  memcpy(launch->grid, from->grid, sizeof launch->grid);
  memcpy(launch->block, from->block, sizeof launch->block);
  launch->parameters = from->parameters;
  launch->parameter_bytes = from->parameter_bytes;
  launch->use_count = from->use_count;
  for (uint32_t i = 0; i < from->use_count; i++)
    launch->uses[i] = (trace_use){from->uses[i].address, from->uses[i].bytes};
  return NULL;
}

ff_trace_status ff_trace_put_launch(ff_trace_writer *w, uint32_t stream, const ff_trace_launch *from,
                                    ff_trace_error *error) {
  if (!w || !from) return refuse(error, "ff_trace_put_launch: no writer or no launch");
  trace_launch launch, read = {0};
  trace_op op = {.kind = TRACE_OP_LAUNCH, .stream = stream, .launch = &launch};
  const char *wrong = take_launch(&launch, from);
  if (!wrong) wrong = check(&op, &read);
  if (!wrong && !number_of(w, launch.kernel, &launch.kernel_index)) wrong = "too many kernels";
  if (wrong) return refuse(error, "%s: launch: %s", w->path, wrong);
  launch.blocks = read.blocks;
  launch.warps_per_block = read.warps_per_block;
  put_checked(w, &op);
  w->launch = launch;
  w->in_launch = true;
  w->totals.blocks += launch.blocks;
  return FF_TRACE_OK;
}

/* ---- records ---- */

ff_trace_status ff_trace_begin_warp(ff_trace_writer *w, uint64_t block, uint32_t warp, ff_trace_error *error) {
  if (!w || !w->in_launch) return refuse(error, "ff_trace_begin_warp: there is no launch");
  if (block >= w->launch.blocks || warp >= w->launch.warps_per_block)
    return refuse(error, "%s: %s has no warp %u in block %llu: it has %llu blocks of %u warps", w->path,
                  w->launch.kernel, warp, (unsigned long long)block, (unsigned long long)w->launch.blocks,
                  w->launch.warps_per_block);
  if (w->begun && (block < w->block || (block == w->block && warp <= w->warp)))
    return refuse(error, "%s: %s: warp %u of block %llu comes too late: warp %u of block %llu was there before",
                  w->path, w->launch.kernel, warp, (unsigned long long)block, w->warp, (unsigned long long)w->block);
  trace_file_seek(w->file, block, warp);
  w->begun = w->in_warp = true;
  w->block = block;
  w->warp = warp;
  w->loads = 0;
  w->marked = false;
  return FF_TRACE_OK;
}

static const char *check_lines(const uint64_t *words, size_t count) {
  uint32_t lines = trace_access_lines(words[0]);
  if (!lines || lines > PACK_LINES_MAX) return "an access to no line, or to more than 64";
  if (count != 2 + lines) return "an access whose lines are not all there";
  if (words[1] >> TRACE_LANES) return "an access by more than 32 lanes";
  for (uint32_t i = 0; i < lines; i++) {
    if (trace_line_address(words[2 + i]) >= OPERATION_ADDRESS_MAX) return "a line beyond all addresses";
    if (!trace_line_sectors(words[2 + i])) return "a line of no sector";
  }
  return NULL;
}

static const char *check_async(trace_async what, uint32_t count) {
  if (what >= TRACE_ASYNC_COUNT) return "an ASYNC of no kind that is known";
  if (count) return NULL;
  if (what == TRACE_AWAIT || what == TRACE_AWAIT_FAR) return "an AWAIT of no arrival";
  return what == TRACE_ARRIVE_FAR || what == TRACE_ARRIVE_FAR_COPIED ? "an ARRIVE_FAR at its own block" : NULL;
}

static const char *check_record(const ff_trace_writer *w, const uint64_t *words, size_t count) {
  if (!words || !count) return "nothing";
  uint64_t word = words[0];
  if (trace_word_kind(word) != TRACE_ACCESS && count != 1) return "more than one word";
  switch (trace_word_kind(word)) {
  case TRACE_ISSUE:
    return trace_issue_sfu(word) + trace_issue_fp64(word) > trace_issue_count(word)
               ? "more instructions of some units than of all"
               : NULL;
  case TRACE_ACCESS: return check_lines(words, count);
  case TRACE_WAIT: return trace_wait_k(word) >= w->loads ? "it waits for a load that the warp has not made" : NULL;
  case TRACE_BARRIER:
    return !trace_barrier_expected(word) ? "a barrier that expects no warp"
           : w->marked                   ? "a barrier between ENTER and LEAVE"
                                         : NULL;
  case TRACE_ENTER: return w->marked ? "an ENTER between ENTER and LEAVE" : NULL;
  case TRACE_LEAVE: return !w->marked || w->mark != trace_mark_pc(word) ? "a LEAVE without its ENTER" : NULL;
  case TRACE_UNITS: return w->issued ? NULL : "an UNITS that is not behind an ISSUE";
  case TRACE_ASYNC: return check_async(trace_async_what(word), trace_async_count(word));
  case TRACE_SPILL:
    return !trace_spill_words(word) || trace_spill_words(word) > TRACE_SPILL_WORDS
               ? "a SPILL of no word, or of more than 4"
           : !trace_spill_sectors(word) ? "a SPILL by no lane"
                                        : NULL;
  case TRACE_EXIT: return w->marked ? "an EXIT between ENTER and LEAVE" : NULL;
  case TRACE_END: break;
  }
  return "of no kind that is known";
}

static void count_record(ff_trace_writer *w, const uint64_t *words) {
  trace_kind kind = trace_word_kind(words[0]);
  w->issued = kind == TRACE_ISSUE || kind == TRACE_UNITS;
  if (kind == TRACE_ENTER) w->mark = trace_mark_pc(words[0]);
  if (kind == TRACE_ENTER || kind == TRACE_LEAVE) w->marked = kind == TRACE_ENTER;
  if (kind == TRACE_ISSUE) w->totals.warp_instructions += trace_issue_count(words[0]);
  if (kind == TRACE_SPILL) w->loads += !trace_spill_stores(words[0]);
  if (kind != TRACE_ACCESS) return;
  w->loads += trace_access_is_load(words[0]);
  w->totals.warp_accesses++;
  for (uint32_t i = 0; i < trace_access_lines(words[0]); i++)
    w->totals.sectors += trace_sector_count(trace_line_sectors(words[2 + i]));
}

ff_trace_status ff_trace_put_record(ff_trace_writer *w, const uint64_t *words, size_t count, ff_trace_error *error) {
  if (!w || !w->in_warp) return refuse(error, "a record, but no warp has begun");
  const char *wrong = check_record(w, words, count);
  if (wrong)
    return refuse(error, "%s: %s, warp %u of block %llu: a record: %s", w->path, w->launch.kernel, w->warp,
                  (unsigned long long)w->block, wrong);
  count_record(w, words);
  trace_file_put_record(w->file, words);
  if (trace_word_kind(words[0]) == TRACE_EXIT) w->in_warp = false;
  return FF_TRACE_OK;
}

ff_trace_status ff_trace_put_access(ff_trace_writer *w, ff_trace_access_op op, uint32_t flags, uint32_t pc,
                                    uint32_t bytes, uint32_t mask, const uint64_t address[FF_TRACE_LANES],
                                    ff_trace_error *error) {
  if (!w || !w->in_warp) return refuse(error, "an access, but no warp has begun");
  if ((unsigned)op > FF_TRACE_PREFETCH || flags > 127)
    return refuse(error, "%s: an access of an unknown kind, or with unknown flags", w->path);
  if (!bytes || bytes > TRACE_LINE_BYTES || bytes & (bytes - 1))
    return refuse(error, "%s: an access of %u bytes per lane: it must be a power of two up to 128", w->path, bytes);
  if (!address) return refuse(error, "%s: an access without addresses", w->path);
  if (!mask) return FF_TRACE_OK;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint64_t own = address[__builtin_ctz(m)];
    if (own >= OPERATION_ADDRESS_MAX || own & (bytes - 1))
      return refuse(error, "%s: lane %d: address %#llx is not aligned to %u bytes, or beyond 2^56", w->path,
                    __builtin_ctz(m), (unsigned long long)own, bytes);
  }
  trace_line_set set;
  uint64_t words[FF_TRACE_RECORD_WORDS];
  trace_lines_collect(&set, address, 0, bytes, mask);
  words[0] = ff_trace_access(op, (uint32_t)__builtin_ctz(bytes), flags, pc, set.count) |
             trace_passes_bits(set.passes, set.count);
  words[1] = mask;
  for (uint32_t i = 0; i < set.count; i++)
    words[2 + i] = trace_line(set.line[i] * TRACE_LINE_BYTES, set.lanes[i], set.sectors[i]);
  return ff_trace_put_record(w, words, 2 + set.count, error);
}

/* ---- the reader ---- */

struct ff_trace_reader {
  trace_file *file;
  ff_trace_info info;
  ff_trace_operation operation;
  ff_trace_launch launch;
  char kernel[256], name[64];
  ff_trace_use uses[FF_TRACE_USES_MAX];
};

static void fill_info(ff_trace_info *to, const trace_file_info *from) {
  const trace_file_totals *t = &from->about.totals;
  *to = (ff_trace_info){.recorder = from->about.farfault,
                        .command = from->about.command,
                        .machine = from->about.machine,
                        .whole = from->whole,
                        .complete = from->about.complete,
                        .bytes = from->bytes,
                        .checksum = from->checksum,
                        .operations = from->operations,
                        .launches = from->launches,
                        .blocks = from->blocks,
                        .accesses = from->accesses,
                        .words = from->words,
                        .warp_instructions = t->warp_instructions,
                        .thread_instructions = t->thread_instructions,
                        .sectors = t->sectors,
                        .divergent_branches = t->divergent_branches,
                        .barriers = t->barriers,
                        .notes = (const char *const *)from->about.notes,
                        .note_count = from->about.note_count,
                        .marks = from->about.marks};
}

ff_trace_status ff_trace_open(const char *path, ff_trace_reader **out, ff_trace_error *error) {
  if (!path || !out) return refuse(error, "ff_trace_open: no path, or nowhere to put the reader");
  trace_file *file;
  ff_error why;
  ff_status status = trace_file_open(path, &file, &why);
  if (status) return fail(error, status == FF_PARSE ? FF_TRACE_NO_TRACE : FF_TRACE_IO, "%s", why.message);
  ff_trace_reader *r = ff_alloc(sizeof *r);
  r->file = file;
  fill_info(&r->info, trace_file_information(file));
  *out = r;
  return FF_TRACE_OK;
}

void ff_trace_close(ff_trace_reader *r) {
  if (!r) return;
  trace_file_close(r->file);
  free(r);
}

const ff_trace_info *ff_trace_information(const ff_trace_reader *r) { return r ? &r->info : NULL; }

void ff_trace_rewind(ff_trace_reader *r) {
  if (!r) return;
  trace_file_rewind(r->file);
  r->launch = (ff_trace_launch){0};
}

static void give_launch(ff_trace_reader *r, const trace_launch *from) {
  memcpy(r->kernel, from->kernel, sizeof r->kernel);
  for (uint32_t i = 0; i < from->use_count; i++)
    r->uses[i] = (ff_trace_use){from->uses[i].address, from->uses[i].bytes};
  r->launch = (ff_trace_launch){.kernel = r->kernel,
                                .shared_bytes = from->shared_bytes,
                                .registers = from->registers,
                                .cooperative = from->cooperative,
                                .smids = from->smids,
                                .carve_out = from->carve_out,
                                .module = from->module,
                                .parameters = from->parameters,
                                .parameter_bytes = from->parameter_bytes,
                                .uses = r->uses,
                                .use_count = from->use_count,
                                .number = from->id,
                                .blocks = from->blocks,
                                .warps_per_block = from->warps_per_block,
                                .kernel_number = from->kernel_index};
  memcpy(r->launch.grid, from->grid, sizeof from->grid);
  memcpy(r->launch.block, from->block, sizeof from->block);
}

static void give_operation(ff_trace_reader *r, const trace_op *from) {
  ff_trace_operation *to = &r->operation;
  *to = (ff_trace_operation){.kind = (ff_trace_operation_kind)from->kind,
                             .stream = from->stream,
                             .blocking = from->blocking,
                             .sequence = from->sequence};
  switch (from->kind) {
  case TRACE_OP_ALLOC:
  case TRACE_OP_RESERVE:
  case TRACE_OP_CREATE:
    memcpy(r->name, from->alloc.name, sizeof r->name);
    to->as.allocation =
        (ff_trace_allocation){from->alloc.address, from->alloc.bytes,       (ff_trace_memory)from->alloc.memory,
                              from->alloc.id,      from->alloc.initialised, r->name};
    break;
  case TRACE_OP_MAP:
  case TRACE_OP_UNMAP:
  case TRACE_OP_SET_ACCESS:
  case TRACE_OP_UNRESERVE:
    to->as.mapping = (ff_trace_mapping){from->map.address, from->map.bytes, from->map.offset, from->map.memory};
    break;
  case TRACE_OP_FREE:
  case TRACE_OP_RELEASE:
    to->as.allocation = (ff_trace_allocation){.address = from->free.address, .id = from->free.id};
    break;
  case TRACE_OP_COPY:
    to->as.copy = (ff_trace_copy){from->copy.to,
                                  from->copy.from,
                                  from->copy.width,
                                  from->copy.height,
                                  from->copy.to_pitch,
                                  from->copy.from_pitch,
                                  (ff_trace_direction)from->copy.direction,
                                  from->copy.pinned};
    break;
  case TRACE_OP_SET:
    to->as.copy = (ff_trace_copy){
        .to = from->set.to, .width = from->set.width, .height = from->set.height, .to_pitch = from->set.pitch};
    break;
  case TRACE_OP_LAUNCH:
    give_launch(r, from->launch);
    to->as.launch = &r->launch;
    break;
  case TRACE_OP_STREAM_CREATE: to->number = from->stream_create.flags; break;
  case TRACE_OP_PROFILE: to->number = from->profile.start; break;
  case TRACE_OP_RANGE:
    memcpy(r->name, from->range.name, sizeof from->range.name);
    to->as.named_range = (ff_trace_named_range){from->range.number, from->range.begin,  from->range.started,
                                                from->range.domain, from->range.thread, r->name};
    break;
  case TRACE_OP_STREAM_SMS: memcpy(to->as.sms.mask, from->sms.mask, sizeof from->sms.mask); break;
  case TRACE_OP_EVENT_RECORD:
  case TRACE_OP_STREAM_WAIT:
  case TRACE_OP_SYNC_EVENT: to->number = from->event.event; break;
  case TRACE_OP_HOST_TOUCH:
    to->as.range =
        (ff_trace_range){.address = from->touch.address, .bytes = from->touch.bytes, .write = from->touch.write};
    break;
  case TRACE_OP_ADVISE:
  case TRACE_OP_PREFETCH:
    to->number = (uint32_t)from->hint.advice;
    to->as.range =
        (ff_trace_range){.address = from->hint.address, .bytes = from->hint.bytes, .device = from->hint.device};
    break;
  case TRACE_OP_MODULE: to->as.module = (ff_trace_module){from->module.id, from->module.ptx, from->module.bytes}; break;
  case TRACE_OP_STREAM_DESTROY:
  case TRACE_OP_SYNC_STREAM:
  case TRACE_OP_SYNC_DEVICE:
  case TRACE_OP_HOST:
  case TRACE_OP_END: break;
  }
}

ff_trace_status ff_trace_next(ff_trace_reader *r, ff_trace_item *item, ff_trace_error *error) {
  if (!r || !item) return refuse(error, "ff_trace_next: no reader or no item");
  trace_item next;
  ff_error why;
  r->launch.parameters = NULL; /* they are the file's, which goes on */
  r->launch.parameter_bytes = 0;
  if (trace_file_next(r->file, &next, &why)) return fail(error, FF_TRACE_DAMAGED, "%s", why.message);
  if (next.kind == TRACE_ITEM_OPERATION) {
    give_operation(r, next.op);
    *item = (ff_trace_item){.kind = FF_TRACE_OPERATION, .operation = &r->operation};
  } else if (next.kind == TRACE_ITEM_RECORD) {
    /* one that damage took */
    if (r->launch.number != next.launch->id || !r->launch.kernel) give_launch(r, next.launch);
    *item = (ff_trace_item){.kind = FF_TRACE_RECORD,
                            .launch = &r->launch,
                            .block = next.block,
                            .warp = next.warp,
                            .words = next.words,
                            .record = next.record};
  } else {
    *item = (ff_trace_item){.kind = FF_TRACE_END};
  }
  return FF_TRACE_OK;
}
