/* SPDX-License-Identifier: Apache-2.0 */
/* A program's trace from a seed, and files of it, for test_file*.c: the program is made again item by item, so that
 * each item that is read can be compared by its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "trace/file.h"

static inline uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= UINT64_C(0xff51afd7ed558ccd);
  x ^= x >> 29;
  x *= UINT64_C(0xc4ceb9fe1a85ec53);
  return x ^ x >> 32;
}

/* ---- a program from a seed ---- */

enum { WORDS = 2 + 64 };

/* late: the file is not told of its marks beforehand; footprints: the file has them, and ISSUEs are small, between late
 * WAITs, so that many are one where these are left out */
typedef struct shape {
  uint64_t seed;
  uint32_t operations, blocks_most, records_most;
  bool regular, marks, late, footprints;
} shape;

static inline uint32_t launch_warps(const shape *s, uint64_t op) { return 1 + (uint32_t)(mix(s->seed + op * 3) % 5); }
static inline uint64_t launch_blocks(const shape *s, uint64_t op) {
  return mix(s->seed + op * 5) % (s->blocks_most + 1);
}

static inline void make_launch(const shape *s, uint64_t op, uint64_t id, trace_launch *launch) {
  static const unsigned char parameters[16] = "parameters";
  *launch = (trace_launch){.id = id,
                           .grid = {(uint32_t)launch_blocks(s, op), 1, 1},
                           .block = {32 * launch_warps(s, op) - (uint32_t)(op % 31), 1, 1},
                           .blocks = launch_blocks(s, op),
                           .warps_per_block = launch_warps(s, op),
                           .shared_bytes = (uint32_t)op * 16,
                           .registers = 20 + (uint32_t)op % 100,
                           .kernel_index = (uint32_t)(op % 3),
                           .cooperative = op % 2,
                           .symbol = s->marks ? trace_symbol("_Z6kernel") + op % 2 : 0,
                           .smids = op % 3 ? 0 : 80,
                           .module = 7,
                           .carve_out = op % 5 == 2 ? (uint8_t)(1 + op % 101) : 0,
                           .l2 = op % 7 == 3 ? (trace_l2_controls){.set_aside = op << 20,
                                                                   .resets = (uint32_t)op % 3,
                                                                   .address = op << 21,
                                                                   .bytes = 4096,
                                                                   .share = (uint32_t)op % (TRACE_L2_SHARE + 1),
                                                                   .hit = op % 4,
                                                                   .miss = op / 4 % 4}
                                             : (trace_l2_controls){0},
                           .use_count = 2,
                           .uses = {{op << 21, 4096}, {op << 22, 1}},
                           .parameters = parameters,
                           .parameter_bytes = sizeof parameters};
  snprintf(launch->kernel, sizeof launch->kernel, "kernel%u(float*, int)", launch->kernel_index);
  if (op % 4 == 1) snprintf(launch->range, sizeof launch->range, "step/layer%u", (unsigned)(op % 3));
  if (op % 4 == 1) snprintf(launch->site, sizeof launch->site, "main.cu:%u", (unsigned)(op % 3));
}

/* The program's op-th operation; a launch goes to *launch. */
static inline void make_operation(const shape *s, uint64_t op, uint64_t launches, trace_op *out, trace_launch *launch) {
  uint64_t r = mix(s->seed + op);
  *out = (trace_op){.kind = r >> 58 < 20 ? TRACE_OP_LAUNCH : (trace_op_kind)(r % TRACE_OP_END),
                    .stream = (uint32_t)(r >> 32 & 7),
                    .sequence = op,
                    .blocking = r >> 40 & 1};
  uint64_t address = (r >> 8 & 0xffff) << 12, bytes = r >> 20 & 0xfffff;
  switch (out->kind) {
  case TRACE_OP_ALLOC:
  case TRACE_OP_RESERVE:
  case TRACE_OP_CREATE:
    out->alloc.address = address;
    out->alloc.bytes = bytes;
    out->alloc.memory = (trace_memory_kind)(r >> 50 & 3);
    out->alloc.initialised = r >> 52 & 1;
    out->alloc.id = (uint32_t)op;
    snprintf(out->alloc.name, sizeof out->alloc.name, "cudaMalloc #%u", (unsigned)op);
    break;
  case TRACE_OP_MAP:
  case TRACE_OP_UNMAP:
  case TRACE_OP_SET_ACCESS:
  case TRACE_OP_UNRESERVE:
    out->map.address = address;
    out->map.bytes = bytes;
    out->map.offset = r >> 44 & 0xffff;
    out->map.memory = (uint32_t)op;
    break;
  case TRACE_OP_FREE:
  case TRACE_OP_RELEASE:
    out->free.address = address;
    out->free.id = (uint32_t)r;
    break;
  case TRACE_OP_COPY: /* pinned: the host's address counts */
    out->copy.to = address;
    out->copy.from = address + 4096;
    out->copy.width = bytes;
    out->copy.height = 1 + r % 9;
    out->copy.to_pitch = out->copy.from_pitch = bytes + 512;
    out->copy.direction = (trace_direction)(r >> 50 & 3);
    out->copy.pinned = true;
    out->copy.file = r >> 54 & 1;
    break;
  case TRACE_OP_SET:
    out->set.to = address;
    out->set.width = bytes;
    out->set.height = 1;
    break;
  case TRACE_OP_LAUNCH:
    make_launch(s, op, launches, launch);
    out->launch = launch;
    break;
  case TRACE_OP_STREAM_CREATE: out->stream_create.flags = 1; break;
  case TRACE_OP_PROFILE: out->profile.start = r & 1; break;
  case TRACE_OP_RANGE:
    out->range.number = 1 + op;
    out->range.begin = r & 1;
    if (!out->range.begin) break;
    out->range.thread = (uint32_t)(r >> 8 & 3);
    out->range.started = r >> 10 & 1;
    out->range.domain = r >> 11 & 1 ? 3 : 0;
    snprintf(out->range.name, sizeof out->range.name, "%sstep%u", out->range.domain ? "own:" : "", (unsigned)(r % 5));
    break;
  case TRACE_OP_STREAM_SMS:
    for (uint32_t i = 0; i < TRACE_SMS_MAX / 64; i++) out->sms.mask[i] = mix(r + i);
    break;
  case TRACE_OP_EVENT_RECORD:
  case TRACE_OP_STREAM_WAIT:
  case TRACE_OP_SYNC_EVENT: out->event.event = (uint32_t)op; break;
  case TRACE_OP_HOST_TOUCH:
    out->touch.address = address;
    out->touch.bytes = bytes;
    out->touch.write = r >> 50 & 1;
    break;
  case TRACE_OP_ADVISE:
  case TRACE_OP_PREFETCH:
    out->hint.address = address;
    out->hint.bytes = bytes;
    out->hint.advice = 3;
    out->hint.device = -1;
    break;
  case TRACE_OP_MODULE:
    out->module.id = 7;
    out->module.ptx = ".version 8.0";
    out->module.bytes = 12;
    break;
  default: break;
  }
}

static inline uint32_t records_of(const shape *s, uint64_t launch, uint64_t block, uint32_t warp) {
  return s->regular ? s->records_most
                    : (uint32_t)(mix(s->seed ^ launch << 40 ^ block << 8 ^ warp) % (s->records_most + 1));
}

/* The n-th record of a warp; the one behind the last is EXIT. Returns its length. */
static inline uint32_t make_record(const shape *s, uint64_t launch, uint64_t block, uint32_t warp, uint32_t n,
                                   uint64_t words[WORDS]) {
  uint64_t r = mix(s->seed ^ launch << 40 ^ block << 8 ^ warp ^ (uint64_t)n << 20);
  if (n == records_of(s, launch, block, warp)) {
    words[0] = TRACE_EXIT;
    return 1;
  }
  if (s->regular) { /* c[i] = a[i] + b[i], four times a warp */
    static const trace_access_op ops[4] = {TRACE_LOAD, TRACE_LOAD, TRACE_STORE};
    if (n % 4 == 3) {
      words[0] = TRACE_ISSUE | 7 << 4;
      return 1;
    }
    words[0] = TRACE_ACCESS | (uint64_t)ops[n % 4] << 4 | 2 << 6 | 1 << 16 | (uint64_t)(n % 4) << 32;
    words[1] = UINT32_MAX;
    words[2] = trace_line((UINT64_C(1) << 40) + (uint64_t)(n % 4) * (1 << 24) + ((block * 4 + warp) * 4 + n / 4) * 128,
                          32, 15);
    return 3;
  }
  if (s->marks && mix(r) % 3 == 0) {
    words[0] = r & 1 ? TRACE_LEAVE | (r >> 9 & 3) << 32
                     : TRACE_ENTER | (r >> 40 & (r & 2 ? TRACE_TRIPS_MAX : 3)) << 4 | (r >> 9 & 3) << 32;
    return 1;
  }
  switch (r % 6) {
  case 0:
    words[0] = TRACE_ISSUE | (r >> 8 & (s->footprints ? 1 : 0xffff)) << 4 | (r >> 30 & 15) << 20;
    if (s->footprints) words[0] |= 1 << 20; /* an ISSUE of nothing is none */
    return 1;
  case 1: words[0] = TRACE_WAIT | (r >> 40) << 32 | (s->footprints && r >> 8 & 3 ? TRACE_LATE : 0); return 1;
  case 2: words[0] = TRACE_BARRIER | (r >> 8 & 15) << 4 | (r >> 12 & 1) << 12 | (r >> 20 & 31) << 16; return 1;
  case 3:
    words[0] = TRACE_ASYNC | (r >> 8 & 15) << 4 | (r >> 12) % TRACE_ASYNC_COUNT << 12 | (r >> 20 & 3) << 16;
    return 1;
  default: break;
  }
  uint32_t lines = 1 + (uint32_t)(r >> 8) % (r >> 60 ? 3 : 64);
  words[0] = TRACE_ACCESS | (r >> 16 & 3) << 4 | (r >> 18 & 3) << 6 | (r >> 20 & 15) << 9 | (uint64_t)lines << 16 |
             (r >> 24 & 15) << 32;
  words[1] = r >> 30 & 1 ? UINT32_MAX : (uint32_t)(r >> 31);
  for (uint32_t i = 0; i < lines; i++)
    words[2 + i] = (mix(r + i) >> (r >> 50 & 1 ? 11 : 40)) << 10 | (mix(r - i) & 0x3f0) | (1 + mix(r - i) % 15);
  return 2 + lines;
}

static inline void write_program(trace_file_writer *w, const shape *s) {
  uint64_t launches = 0, words[WORDS];
  for (uint64_t op = 0; op < s->operations; op++) {
    trace_op operation;
    trace_launch launch;
    make_operation(s, op, launches, &operation, &launch);
    trace_file_put_operation(w, &operation);
    if (operation.kind != TRACE_OP_LAUNCH) continue;
    for (uint64_t block = 0; block < launch.blocks; block++)
      for (uint32_t warp = 0; warp < launch.warps_per_block; warp++)
        for (uint32_t n = 0; n <= records_of(s, launches, block, warp); n++) {
          make_record(s, launches, block, warp, n, words);
          trace_file_put_record(w, words);
        }
    launches++;
  }
}

/* ---- files ---- */

static char folder[64];

/* In memory where there is such a place: hundreds of files are flushed. */
static inline int set_up(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "%s/test-trace-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
  return mkdtemp(folder) ? 0 : -1;
}

static inline int tear_down(void **state) {
  (void)state;
  return rmdir(folder); /* every test removes its files */
}

static inline char *path_of(const char *name) {
  ff_text path = {0};
  ff_text_add(&path, "%s/%s", folder, name);
  return path.chars;
}

static inline void write_file(const char *path, const shape *s) {
  char command[] = "./app 1 2", machine[] = "gtx480", note[] = "a note";
  char *notes[] = {note};
  trace_file_about about = {.farfault = "1.2.3",
                            .command = command,
                            .machine = machine,
                            .complete = true,
                            .notes = notes,
                            .note_count = 1,
                            .marks = s->marks && !s->late,
                            .footprints = s->footprints,
                            .totals = {.warp_instructions = 11, .barriers = 17}};
  trace_file_writer *w;
  ff_error error;
  unlink(path);
  assert_int_equal(trace_file_create(path, &about, &w, &error), FF_OK);
  write_program(w, s);
  assert_int_equal(trace_file_finish(w, &about, &error), FF_OK);
}

static inline void write_bytes(const char *path, const char *bytes, size_t size) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

/* Where a reader is in the expected program. */
typedef struct place {
  uint64_t operation, launches, block;
  uint32_t warp, record;
  uint64_t blocks;
  uint32_t warps;
  uint64_t launch_operation;
} place;

static inline void expect_operation(const shape *s, place *at, const trace_op *op) {
  trace_op wanted;
  trace_launch launch;
  assert_true(at->operation < s->operations);
  make_operation(s, at->operation, at->launches, &wanted, &launch);
  assert_int_equal(op->kind, wanted.kind);
  assert_int_equal(op->sequence, wanted.sequence);
  assert_int_equal(op->stream, wanted.stream);
  assert_int_equal(op->blocking, wanted.blocking);
  at->operation++;
  if (op->kind == TRACE_OP_MODULE) {
    assert_int_equal(op->module.bytes, wanted.module.bytes);
    assert_memory_equal(op->module.ptx, wanted.module.ptx, wanted.module.bytes);
  } else if (op->kind == TRACE_OP_LAUNCH) {
    trace_launch read = *op->launch;
    assert_int_equal(read.parameter_bytes, launch.parameter_bytes);
    assert_memory_equal(read.parameters, launch.parameters, launch.parameter_bytes);
    read.parameters = launch.parameters;
    assert_memory_equal(&read, &launch, sizeof launch);
    at->launch_operation = at->operation - 1;
    at->launches++;
    at->block = at->warp = at->record = 0;
    at->blocks = launch.blocks;
    at->warps = launch.warps_per_block;
  } else {
    assert_memory_equal(&op->alloc, &wanted.alloc, sizeof op->alloc); /* the largest of the union */
  }
}

static inline void expect_record(const shape *s, place *at, const trace_item *item) {
  uint64_t words[WORDS];
  assert_int_equal(item->launch->id, at->launches - 1);
  assert_int_equal(item->block, at->block);
  assert_int_equal(item->warp, at->warp);
  assert_int_equal(item->words, make_record(s, at->launches - 1, at->block, at->warp, at->record, words));
  assert_memory_equal(item->record, words, item->words * sizeof words[0]);
  at->record++;
  if (trace_word_kind(words[0]) != TRACE_EXIT) return;
  at->record = 0;
  if (++at->warp < at->warps) return;
  at->warp = 0;
  at->block++;
}

/* Reads until an error or the end; all of it must be the program's beginning. */
static inline ff_status read_beginning(trace_file *file, const shape *s, place *at, ff_error *error) {
  trace_item item;
  ff_status status;
  *at = (place){0};
  while (!(status = trace_file_next(file, &item, error)) && item.kind != TRACE_ITEM_END) {
    if (item.kind == TRACE_ITEM_OPERATION) expect_operation(s, at, item.op);
    else expect_record(s, at, &item);
  }
  return status;
}

static inline void check_file(const char *path, const shape *s) {
  trace_file *file;
  ff_error error;
  place at;
  assert_int_equal(trace_file_open(path, &file, &error), FF_OK);
  const trace_file_info *info = trace_file_information(file);
  assert_true(info->whole && info->about.complete);
  assert_string_equal(info->about.command, "./app 1 2");
  assert_string_equal(info->about.machine, "gtx480");
  assert_string_equal(info->about.farfault, "1.2.3");
  assert_int_equal(info->about.note_count, 1);
  assert_string_equal(info->about.notes[0], "a note");
  assert_int_equal(info->about.totals.warp_instructions, 11);
  assert_int_equal(info->about.totals.barriers, 17);
  for (int pass = 0; pass < 2; pass++) {
    assert_int_equal(read_beginning(file, s, &at, &error), FF_OK);
    assert_int_equal(at.operation, s->operations);
    assert_int_equal(at.block, at.blocks);
    assert_int_equal(info->operations, s->operations);
    assert_int_equal(info->launches, at.launches);
    trace_file_rewind(file);
  }
  trace_file_close(file);
}

static const shape small = {.seed = 3, .operations = 40, .blocks_most = 3, .records_most = 12};
/* for what is done many times */
static const shape medium = {.seed = 4, .operations = 30, .blocks_most = 30, .records_most = 400};
static const shape large = {.seed = 4, .operations = 45, .blocks_most = 45, .records_most = 400};
