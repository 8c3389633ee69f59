/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of one text in several shapes: whole warps, warps in part, blocks of three dimensions. */
#include "compare.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exec/launch/native.h"
#include "native.h"
#include "program.h"
#include "trace/stream.h"
#include "trace/touched.h"

static const struct shape {
  uint32_t grid, block[3];
} shapes[] = {{1, {32, 1, 1}}, {2, {48, 1, 1}}, {2, {96, 1, 1}}, {1, {7, 5, 3}}};
enum { SHAPES = sizeof shapes / sizeof *shapes, MOST_INSTRUCTIONS = 60000 };

typedef struct outcome { /* of one launch */
  ff_status status;
  exec_stats stats;
  exec_fault fault;
  FF_VEC(uint64_t) records; /* of the access stream, warp after warp */
  footprint touched;        /* what these touch; of a launch without records, what is said */
  uint64_t instructions;    /* the same */
} outcome;

typedef struct reference { /* what interpreting gave on the first instruction set */
  const char *isa;         /* NULL: nothing yet */
  ff_status status;
  exec_stats stats;
  exec_fault fault;
  unsigned char *out;
} reference;

struct comparer {
  const char *isa;
  bool stream; /* launches have an access stream */
  exec_memory *memory;
  uint64_t out, table;
  unsigned char *expected; /* what interpreting left in `out` */
  reference first[SHAPES]; /* of the text that is compared */
  uint64_t most;           /* warp instructions of a launch of it */
  compare_counts counts;
};

static void fill_table(uint64_t *table) {
  uint64_t state = 7;
  for (uint32_t n = 0; n < PROGRAM_TABLE / 8; n++) {
    uint64_t noise = state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    table[n] = program_value(noise ^ noise >> 29);
  }
}

comparer *comparer_make(const char *isa, bool stream) {
  comparer *c = ff_alloc(sizeof *c);
  const exec_allocation *out, *table;
  ff_error error;
  c->isa = isa;
  c->stream = stream;
  if (exec_memory_create(&c->memory, &error) ||
      exec_memory_allocate(c->memory, PROGRAM_TABLE, 0, EXEC_MEMORY_DEVICE, "table", &table, &error) ||
      exec_memory_allocate(c->memory, PROGRAM_OUT, 0, EXEC_MEMORY_DEVICE, "out", &out, &error)) {
    fprintf(stderr, "%s\n", error.message);
    exit(2);
  }
  c->out = out->address;
  c->table = table->address;
  c->expected = ff_alloc(PROGRAM_OUT);
  for (int n = 0; n < SHAPES; n++) c->first[n].out = ff_alloc(PROGRAM_OUT);
  fill_table((uint64_t *)(uintptr_t)c->table);
  return c;
}

void comparer_free(comparer *c) {
  exec_memory_free(c->memory);
  for (int n = 0; n < SHAPES; n++) free(c->first[n].out);
  free(c->expected);
  free(c);
}

const compare_counts *comparer_counts(const comparer *c) { return &c->counts; }

/* ---- one launch ---- */

typedef struct stream {
  trace_program *program;
  trace_reader *reader;
  trace_launch *launch;
} stream;

/* touches: the launch has no records (trace/touched.h). */
static stream open_stream(const struct shape *shape, bool touches) {
  stream s = {.program = trace_program_create(0)};
  trace_program_units(s.program, true);
  s.reader = trace_reader_create(s.program);
  if (touches) trace_reader_answers(s.reader);
  s.launch = trace_launch_create(s.program, shape->grid,
                                 (shape->block[0] * shape->block[1] * shape->block[2] + EXEC_LANES - 1) / EXEC_LANES);
  if (touches) trace_launch_may_ask(s.launch);
  trace_op_append(s.program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = s.launch});
  trace_reader_next_op(s.reader);
  if (touches) trace_reader_answer(s.reader, s.launch, true);
  return s;
}

static void read_warp(stream *s, trace_chunk *chunk, uint32_t warp, outcome *o) {
  trace_cursor cursor;
  const uint64_t *word;
  trace_cursor_open(s->reader, chunk, warp, &cursor);
  do {
    word = trace_cursor_next(s->reader, &cursor);
    for (const uint64_t *at = word; at < cursor.at; at++) FF_PUSH(&o->records, *at);
    if (trace_word_kind(*word) == TRACE_ISSUE) o->instructions += trace_issue_count(*word);
    if (trace_word_kind(*word) == TRACE_ACCESS) footprint_access(&o->touched, word);
  } while (trace_word_kind(*word) != TRACE_EXIT);
  trace_cursor_close(s->reader, &cursor);
}

static void read_blocks(stream *s, const struct shape *shape, outcome *o) {
  uint32_t warps = (shape->block[0] * shape->block[1] * shape->block[2] + EXEC_LANES - 1) / EXEC_LANES;
  for (uint64_t b = 0; b < shape->grid; b++) {
    trace_chunk *chunk = trace_reader_chunk(s->reader, s->launch, b);
    footprint_block(&o->touched, b);
    for (uint32_t w = 0; w < warps; w++) read_warp(s, chunk, w, o);
    trace_reader_release(s->reader, chunk);
  }
  footprint_sort(&o->touched);
}

static void read_touched(stream *s, outcome *o) {
  const trace_touched *touched = trace_reader_touched(s->reader, s->launch);
  for (uint64_t n = 0; touched && n < touched->count; n++) FF_PUSH(&o->touched.pieces, touched->pieces[n]);
  o->instructions = touched ? touched->instructions : 0;
  trace_reader_skip(s->reader, s->launch);
}

static void read_stream(stream *s, const struct shape *shape, bool touches, outcome *o) {
  trace_launch_finish(s->launch);
  trace_op_append(s->program, &(trace_op){.kind = TRACE_OP_END});
  if (touches) read_touched(s, o);
  else read_blocks(s, shape, o);
  trace_reader_next_op(s->reader);
  trace_reader_free(s->reader);
  trace_program_free(s->program);
}

/* Pages that are not one allocation's whole. */
static bool meets(void *context, uint64_t page) {
  const comparer *c = context;
  uint64_t out = exec_memory_canonical(c->memory, c->out), table = exec_memory_canonical(c->memory, c->table);
  return !((page >= out && page + 4096 <= out + PROGRAM_OUT) ||
           (page >= table && page + 4096 <= table + PROGRAM_TABLE));
}

static void run(comparer *c, exec_kernel *kernel, const char *isa, const struct shape *shape, bool touches,
                outcome *o) {
  struct {
    uint64_t out, table;
    uint32_t n;
    float f;
  } params = {c->out, c->table, 37, 1.5f};
  exec_config config = {.memory = c->memory,
                        .threads = 1,
                        .sm_count = 4,
                        .max_shared = 48 << 10,
                        .max_instructions = c->most,
                        .clock_hz = 1000000000,
                        .isa = isa};
  exec_launch_request request = {.kernel = kernel,
                                 .grid = {shape->grid, 1, 1},
                                 .block = {shape->block[0], shape->block[1], shape->block[2]},
                                 .params = &params,
                                 .launch_id = 1};
  ff_error error = {0};
  stream s = {0};
  memset(o, 0, sizeof *o);
  for (uint32_t n = 0; n < PROGRAM_OUT / 4; n++) ((uint32_t *)(uintptr_t)c->out)[n] = n * 2654435761u;
  footprint_open(&o->touched, meets, c);
  if (c->stream) {
    s = open_stream(shape, touches);
    request.trace = s.launch;
    request.touches = touches && trace_launch_ask(s.launch);
  }
  o->status = exec_launch(&config, &request, &o->stats, &o->fault, &error);
  if (c->stream) read_stream(&s, shape, touches, o);
  if (o->status != FF_OK && o->status != FF_FAULT)
    snprintf(o->fault.message, sizeof o->fault.message, "%s", error.message);
}

/* ---- comparing ---- */

typedef struct telling {
  char *why;
  size_t room;
  const char *isa;
  const struct shape *shape;
} telling;

__attribute__((format(printf, 2, 3))) static bool tell(const telling *t, const char *format, ...) {
  int length = snprintf(t->why, t->room, "%s, %u blocks of (%u,%u,%u): ", t->isa, t->shape->grid, t->shape->block[0],
                        t->shape->block[1], t->shape->block[2]);
  va_list list;
  va_start(list, format);
  vsnprintf(t->why + length, t->room - (size_t)length, format, list);
  va_end(list);
  return false;
}

static bool same_counts(const telling *t, const exec_stats *a, const exec_stats *b) {
#define SAME(field)         \
  if (a->field != b->field) \
  return tell(t, #field ": interpreted %llu, compiled %llu", (unsigned long long)a->field, (unsigned long long)b->field)
  SAME(warp_instructions);
  SAME(thread_instructions);
  SAME(warp_accesses);
  SAME(divergent_branches);
  SAME(barriers);
  SAME(blocks);
  SAME(sectors);
#undef SAME
  return true;
}

static bool same_end(const telling *t, const outcome *a, const outcome *b) {
  if (a->status != b->status || strcmp(a->fault.message, b->fault.message))
    return tell(t, "interpreted: %s\n  compiled: %s", a->status ? a->fault.message : "no fault",
                b->status ? b->fault.message : "no fault");
  return a->fault.kind == b->fault.kind && a->fault.address == b->fault.address && a->fault.line == b->fault.line &&
                 !memcmp(a->fault.block, b->fault.block, sizeof a->fault.block) &&
                 !memcmp(a->fault.thread, b->fault.thread, sizeof a->fault.thread)
             ? true
             : tell(t, "the faults are at different places");
}

static bool same_memory(const comparer *c, const telling *t) {
  const uint32_t *a = (const uint32_t *)(const void *)c->expected, *b = (const uint32_t *)(uintptr_t)c->out;
  if (!memcmp(a, b, PROGRAM_OUT)) return true;
  uint32_t n = 0;
  while (a[n] == b[n]) n++;
  return tell(t, "slot %u, thread %u, byte %u: interpreted 0x%08x, compiled 0x%08x", n / 2 / PROGRAM_THREADS,
              n / 2 % PROGRAM_THREADS, n % 2 * 4, a[n], b[n]);
}

static bool same_stream(const telling *t, const outcome *a, const outcome *b) {
  size_t n = 0;
  while (n < a->records.count && n < b->records.count && a->records.items[n] == b->records.items[n]) n++;
  if (n == a->records.count && n == b->records.count) return true;
  return tell(t, "word %zu of the access stream, of %zu: interpreted 0x%llx, compiled 0x%llx", n, a->records.count,
              n < a->records.count ? (unsigned long long)a->records.items[n] : 0,
              n < b->records.count ? (unsigned long long)b->records.items[n] : 0);
}

static void free_outcome(outcome *o) {
  free(o->records.items);
  footprint_free(&o->touched);
}

/* Without records, interpreted or compiled, the launch touches what its records touched, and ends as it did. */
static bool same_touched(comparer *c, exec_kernel *kernel, const telling *t, const outcome *recorded, bool native) {
  outcome o;
  native_inside(native);
  run(c, kernel, t->isa, t->shape, true, &o);
  native_inside(false);
  const footprint *a = &recorded->touched, *b = &o.touched;
  bool same = same_end(t, recorded, &o) && same_memory(c, t) && same_counts(t, &recorded->stats, &o.stats);
  size_t n = 0;
  while (n < a->pieces.count && n < b->pieces.count &&
         !memcmp(&a->pieces.items[n], &b->pieces.items[n], sizeof(footprint_piece)))
    n++;
  if (same && (n < a->pieces.count || n < b->pieces.count || recorded->instructions != o.instructions))
    same = tell(t, "touched, %s: piece %zu of %zu and %zu; %llu and %llu instructions",
                native ? "compiled" : "interpreted", n, a->pieces.count, b->pieces.count,
                (unsigned long long)recorded->instructions, (unsigned long long)o.instructions);
  free_outcome(&o);
  return same;
}

/* All instruction sets compute the same bits. */
static bool same_as_first(comparer *c, const telling *t, const outcome *o) {
  reference *first = &c->first[t->shape - shapes];
  if (!first->isa) {
    memcpy(first->out, c->expected, PROGRAM_OUT);
    first->isa = t->isa;
    first->status = o->status;
    first->stats = o->stats;
    first->fault = o->fault;
    return true;
  }
  const uint32_t *a = (const uint32_t *)(const void *)first->out, *b = (const uint32_t *)(const void *)c->expected;
  uint32_t n = 0;
  while (n < PROGRAM_OUT / 4 && a[n] == b[n]) n++;
  if (n < PROGRAM_OUT / 4)
    return tell(t, "slot %u, thread %u, byte %u: interpreted with %s 0x%08x, here 0x%08x", n / 2 / PROGRAM_THREADS,
                n / 2 % PROGRAM_THREADS, n % 2 * 4, first->isa, a[n], b[n]);
  if (first->status != o->status || strcmp(first->fault.message, o->fault.message))
    return tell(t, "interpreted with %s: %s\n  here: %s", first->isa, first->status ? first->fault.message : "no fault",
                o->status ? o->fault.message : "no fault");
  return same_counts(t, &first->stats, &o->stats);
}

static bool compare_shape(comparer *c, exec_kernel *kernel, const telling *t) {
  outcome interpreted, compiled;
  native_inside(false);
  run(c, kernel, t->isa, t->shape, false, &interpreted);
  memcpy(c->expected, (const void *)(uintptr_t)c->out, PROGRAM_OUT);
  bool alike = same_as_first(c, t, &interpreted);
  if (!alike || !strcmp(t->isa, "baseline")) { /* that is always interpreted */
    free_outcome(&interpreted);
    return alike;
  }
  uint64_t with, all, with_before;
  exec_native_count(&with_before, &all);
  native_inside(true);
  run(c, kernel, t->isa, t->shape, false, &compiled);
  native_inside(false);
  exec_native_count(&with, &all);
  if (native_problem()) {
    free_outcome(&interpreted);
    free_outcome(&compiled);
    return tell(t, "not compiled: %s", native_problem());
  }
  c->counts.launches++;
  c->counts.compiled += with - with_before;
  c->counts.faults += interpreted.status == FF_FAULT;
  c->counts.instructions += interpreted.stats.warp_instructions;
  c->counts.divergent += interpreted.stats.divergent_branches;
  bool same = same_end(t, &interpreted, &compiled) && same_memory(c, t) &&
              same_counts(t, &interpreted.stats, &compiled.stats) && same_stream(t, &interpreted, &compiled);
  const exec_kernel_info *info = exec_kernel_describe(kernel);
  bool waits = info->may_wait || info->uses_mbarriers; /* looks in vain are counted otherwise */
  for (int native = 0; same && c->stream && !waits && native < 2; native++)
    same = same_touched(c, kernel, t, &interpreted, native);
  free_outcome(&interpreted);
  free_outcome(&compiled);
  return same;
}

/* Not of shapes that a kernel's clusters do not divide. */
static comparison compare_isa(comparer *c, exec_kernel *kernel, const char *isa, char *why, size_t room) {
  uint32_t cluster = exec_kernel_describe(kernel)->cluster[0];
  for (int s = 0; s < SHAPES; s++)
    if (cluster <= 1 || shapes[s].grid % cluster == 0)
      if (!compare_shape(c, kernel, &(telling){why, room, isa, &shapes[s]})) return COMPARE_DIFFERENT;
  return COMPARE_SAME;
}

/* Warp instructions that a launch of this text may execute. A text in which turns are to end by their budget needs
 * many, and begins with "// instructions: " and their number. */
static uint64_t most_instructions(const char *text, size_t length) {
  static const char says[] = "// instructions: ";
  size_t n = sizeof says - 1;
  if (length <= n || memcmp(text, says, n)) return MOST_INSTRUCTIONS;
  uint64_t most = 0;
  for (; n < length && text[n] >= '0' && text[n] <= '9'; n++) most = most * 10 + (uint64_t)(text[n] - '0');
  return most;
}

comparison compare_text(comparer *c, const char *text, size_t length, char *why, size_t room) {
  ff_error error = {0};
  ptx_module *module = NULL, *linked = NULL;
  exec_program *program = NULL;
  exec_kernel *kernel = NULL;
  comparison result = COMPARE_SAME;
  for (int n = 0; n < SHAPES; n++) c->first[n].isa = NULL;
  c->most = most_instructions(text, length);
  if (ptx_module_parse("program.ptx", text, length, &module, &error) || ptx_link(&module, 1, &linked, &error) ||
      exec_program_create(linked, c->memory, &program, &error) || exec_program_kernel(program, "k", &kernel, &error)) {
    snprintf(why, room, "%s", error.message);
    result = COMPARE_INVALID;
  }
  for (const char *const *isa = exec_isas(); result == COMPARE_SAME && *isa; isa++) {
    if (c->isa && strcmp(c->isa, *isa)) continue;
    result = compare_isa(c, kernel, *isa, why, room);
  }
  if (program) exec_program_free(program);
  ptx_module_free(linked);
  ptx_module_free(module);
  return result;
}
