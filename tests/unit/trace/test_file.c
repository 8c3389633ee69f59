/* SPDX-License-Identifier: Apache-2.0 */
/* Trace files: what is written comes back word for word; a file that is cut, damaged or half-written gives a true part
 * and says so; regular streams take few bytes.
 *
 * The expected program is made again from a seed, item by item, so that each item that is read can be compared by its
 * place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "trace/file.h"
#include "trace/trace_frame.h"
#include "unit/share.h"

static uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= UINT64_C(0xff51afd7ed558ccd);
  x ^= x >> 29;
  x *= UINT64_C(0xc4ceb9fe1a85ec53);
  return x ^ x >> 32;
}

/* ---- a program from a seed ---- */

enum { WORDS = 2 + 64 };

/* late: the file is not told of its marks beforehand */
typedef struct shape {
  uint64_t seed;
  uint32_t operations, blocks_most, records_most;
  bool regular, marks, late;
} shape;

static uint32_t launch_warps(const shape *s, uint64_t op) { return 1 + (uint32_t)(mix(s->seed + op * 3) % 5); }
static uint64_t launch_blocks(const shape *s, uint64_t op) { return mix(s->seed + op * 5) % (s->blocks_most + 1); }

static void make_launch(const shape *s, uint64_t op, uint64_t id, trace_launch *launch) {
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
                           .use_count = 2,
                           .uses = {{op << 21, 4096}, {op << 22, 1}},
                           .parameters = parameters,
                           .parameter_bytes = sizeof parameters};
  snprintf(launch->kernel, sizeof launch->kernel, "kernel%u(float*, int)", launch->kernel_index);
  if (op % 4 == 1) snprintf(launch->range, sizeof launch->range, "step/layer%u", (unsigned)(op % 3));
  if (op % 4 == 1) snprintf(launch->site, sizeof launch->site, "main.cu:%u", (unsigned)(op % 3));
}

/* The program's op-th operation; a launch goes to *launch. */
static void make_operation(const shape *s, uint64_t op, uint64_t launches, trace_op *out, trace_launch *launch) {
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

static uint32_t records_of(const shape *s, uint64_t launch, uint64_t block, uint32_t warp) {
  return s->regular ? s->records_most
                    : (uint32_t)(mix(s->seed ^ launch << 40 ^ block << 8 ^ warp) % (s->records_most + 1));
}

/* The n-th record of a warp; the one behind the last is EXIT. Returns its length. */
static uint32_t make_record(const shape *s, uint64_t launch, uint64_t block, uint32_t warp, uint32_t n,
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
  case 0: words[0] = TRACE_ISSUE | (r >> 8 & 0xffff) << 4 | (r >> 30 & 15) << 20; return 1;
  case 1: words[0] = TRACE_WAIT | (r >> 40) << 32; return 1;
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

static void write_program(trace_file_writer *w, const shape *s) {
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
static int set_up(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "%s/test-trace-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
  return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  return rmdir(folder); /* every test removes its files */
}

static char *path_of(const char *name) {
  ff_text path = {0};
  ff_text_add(&path, "%s/%s", folder, name);
  return path.chars;
}

static void write_file(const char *path, const shape *s) {
  char command[] = "./app 1 2", machine[] = "gtx480", note[] = "a note";
  char *notes[] = {note};
  trace_file_about about = {.farfault = "1.2.3",
                            .command = command,
                            .machine = machine,
                            .complete = true,
                            .notes = notes,
                            .note_count = 1,
                            .marks = s->marks && !s->late,
                            .totals = {.warp_instructions = 11, .barriers = 17}};
  trace_file_writer *w;
  ff_error error;
  unlink(path);
  assert_int_equal(trace_file_create(path, &about, &w, &error), FF_OK);
  write_program(w, s);
  assert_int_equal(trace_file_finish(w, &about, &error), FF_OK);
}

static void write_bytes(const char *path, const char *bytes, size_t size) {
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

static void expect_operation(const shape *s, place *at, const trace_op *op) {
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

static void expect_record(const shape *s, place *at, const trace_item *item) {
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
static ff_status read_beginning(trace_file *file, const shape *s, place *at, ff_error *error) {
  trace_item item;
  ff_status status;
  *at = (place){0};
  while (!(status = trace_file_next(file, &item, error)) && item.kind != TRACE_ITEM_END) {
    if (item.kind == TRACE_ITEM_OPERATION) expect_operation(s, at, item.op);
    else expect_record(s, at, &item);
  }
  return status;
}

static void check_file(const char *path, const shape *s) {
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

/* ---- tests ---- */

static void what_is_written_comes_back(void **state) {
  (void)state;
  char *path = path_of("round.fft");
  for (uint64_t seed = 1; seed < fewer(30, 3); seed++) {
    shape s = {.seed = seed, .operations = 1 + (uint32_t)(mix(seed) % 60), .blocks_most = 5, .records_most = 30};
    write_file(path, &s);
    check_file(path, &s);
  }
  write_file(path, &(shape){.seed = 1}); /* of nothing */
  check_file(path, &(shape){.seed = 1});
  write_file(path, &large);
  check_file(path, &large);
  trace_file *file;
  assert_int_equal(trace_file_open(path, &file, NULL), FF_OK);
  assert_true(trace_file_information(file)->frame_count > 3); /* so that frames end within launches, blocks and warps */
  trace_file_close(file);
  unlink(path);
  free(path);
}

static void the_same_program_gives_the_same_bytes(void **state) {
  (void)state;
  char *path = path_of("same.fft"), *first, *second;
  size_t sizes[2];
  write_file(path, &large);
  assert_int_equal(ff_file_read(path, 0, &first, &sizes[0], NULL), FF_OK);
  write_file(path, &large);
  assert_int_equal(ff_file_read(path, 0, &second, &sizes[1], NULL), FF_OK);
  assert_int_equal(sizes[0], sizes[1]);
  assert_memory_equal(first, second, sizes[0]);
  free(first);
  free(second);
  unlink(path);
  free(path);
}

static void regular_streams_take_few_bytes(void **state) {
  (void)state;
  char *path = path_of("regular.fft");
  shape s = {.seed = 9, .operations = 40, .blocks_most = 2000, .records_most = 16, .regular = true};
  write_file(path, &s);
  check_file(path, &s);
  trace_file *file;
  assert_int_equal(trace_file_open(path, &file, NULL), FF_OK);
  const trace_file_info *info = trace_file_information(file);
  assert_true(info->accesses > 10000);
  assert_true(info->bytes < info->accesses / 5);
  trace_file_close(file);
  unlink(path);
  free(path);
}

/* However short the file is: it is refused, or what comes is the beginning, and it is not called whole. */
static void a_file_that_is_cut_gives_its_beginning(void **state) {
  (void)state;
  char *path = path_of("cut.fft"), *bytes;
  size_t size, opened = 0;
  for (int big = 0; big < 2; big++) {
    const shape *s = big ? &medium : &small;
    write_file(path, s);
    assert_int_equal(ff_file_read(path, 0, &bytes, &size, NULL), FF_OK);
    for (size_t cut = 0; cut < size; cut += big ? 1 + mix(cut) % (size / 15) : 1) {
      trace_file *file;
      ff_error error;
      place at;
      write_bytes(path, bytes, cut);
      if (trace_file_open(path, &file, &error)) {
        assert_true(cut < 16);
        continue;
      }
      opened++;
      assert_int_equal(read_beginning(file, s, &at, &error), FF_OK);
      /* The index is behind all that counts: without the last bytes it is found by looking for it. */
      if (!trace_file_information(file)->whole) assert_false(trace_file_information(file)->about.complete);
      else assert_true(cut + 24 >= size && at.operation == s->operations);
      trace_file_close(file);
    }
    free(bytes);
  }
  assert_true(opened > 1000);
  unlink(path);
  free(path);
}

/* Reads all of a damaged file: what comes is what was written, in its place; returns the frames that were lost. */
static uint32_t read_around(trace_file *file, const shape *s) {
  trace_item item;
  ff_error error;
  uint32_t lost = 0;
  place at = {0};
  bool in_step = true; /* no frame was lost since the last operation */
  for (;;) {
    if (trace_file_next(file, &item, &error)) {
      assert_non_null(strstr(error.message, "is damaged"));
      lost++;
      in_step = false;
      continue;
    }
    if (item.kind == TRACE_ITEM_END) return lost;
    if (item.kind == TRACE_ITEM_RECORD) {
      if (in_step) expect_record(s, &at, &item);
      continue;
    }
    if (!in_step) { /* launches before it */
      trace_op op;
      trace_launch launch;
      at = (place){0};
      for (; at.operation < item.op->sequence; at.operation++) {
        make_operation(s, at.operation, 0, &op, &launch);
        at.launches += op.kind == TRACE_OP_LAUNCH;
      }
      in_step = true;
    }
    expect_operation(s, &at, item.op);
  }
}

/* Any byte may be wrong: one frame is lost, the rest is true. */
static void damage_costs_a_frame(void **state) {
  (void)state;
  char *path = path_of("damaged.fft"), *bytes;
  size_t size;
  uint32_t lost_in_all = 0;
  for (int big = 0; big < 2; big++) {
    const shape *s = big ? &medium : &small;
    write_file(path, s);
    assert_int_equal(ff_file_read(path, 0, &bytes, &size, NULL), FF_OK);
    for (size_t at = 12; at < size; at += big ? 1 + mix(at) % (size / 25) : 1) {
      trace_file *file;
      ff_error error;
      bytes[at] ^= (char)(1 << mix(at) % 8);
      write_bytes(path, bytes, size);
      bytes[at] ^= (char)(1 << mix(at) % 8);
      if (trace_file_open(path, &file, &error)) fail_msg("%zu: %s", at, error.message);
      uint32_t lost = read_around(file, s);
      assert_true(lost <= 1);
      lost_in_all += lost;
      trace_file_close(file);
    }
    free(bytes);
  }
  assert_true(lost_in_all > 100);
  unlink(path);
  free(path);
}

static void what_is_no_trace_is_refused(void **state) {
  (void)state;
  char *path = path_of("no.fft");
  trace_file *file;
  ff_error error;
  write_bytes(path, "", 0);
  assert_int_equal(trace_file_open(path, &file, &error), FF_PARSE);
  write_bytes(path, "something else, and long enough", 31);
  assert_int_equal(trace_file_open(path, &file, &error), FF_PARSE);
  assert_non_null(strstr(error.message, "no trace"));
  write_bytes(path, "FFTRACE\n\201\0\0\0\0\0\0\0", 16);
  assert_int_equal(trace_file_open(path, &file, &error), FF_PARSE);
  assert_non_null(strstr(error.message, "version 129"));
  unlink(path);
  assert_int_equal(trace_file_open(path, &file, &error), FF_IO);
  assert_int_equal(trace_file_open(folder, &file, &error), FF_IO);
  free(path);
}

/* Good checksums, but the only frame begins within a launch that never was. */
static void a_frame_out_of_nowhere_is_refused(void **state) {
  (void)state;
  char *path = path_of("nowhere.fft");
  uint8_t bytes[FILE_HEADER_BYTES + FRAME_HEADER_BYTES + 64] = FILE_MAGIC,
                                                         *payload = bytes + FILE_HEADER_BYTES + FRAME_HEADER_BYTES;
  bytes[8] = TRACE_FILE_VERSION;
  size_t size = 0;
  for (int column = 0; column < PACK_COLUMNS; column++) { /* a new head, EXIT */
    uint8_t count = column == PACK_HEADS ? 1 : column == PACK_WORDS ? 8 : 0;
    payload[size++] = count;
    payload[size++] = count;
    if (count) payload[size] = column == PACK_HEADS ? 1 : TRACE_EXIT;
    size += count;
  }
  frame_header header = {.kind = FRAME_DATA,
                         .open = true,
                         .launch_blocks = 1,
                         .warps = 1,
                         .words = 1,
                         .payload_bytes = size,
                         .payload_hash = frame_hash(payload, size)};
  frame_header_write(&header, bytes + FILE_HEADER_BYTES);
  write_bytes(path, (const char *)bytes, FILE_HEADER_BYTES + FRAME_HEADER_BYTES + size);
  trace_file *file;
  ff_error error;
  assert_int_equal(trace_file_open(path, &file, &error), FF_OK);
  assert_int_equal(trace_file_information(file)->frame_count, 1);
  trace_program *program = trace_program_create(0);
  assert_int_equal(trace_file_feed(file, program, NULL, &error), FF_PARSE);
  assert_non_null(strstr(error.message, "does not follow"));
  trace_program_free(program);
  trace_file_close(file);
  unlink(path);
  free(path);
}

static void a_full_disk_is_said_at_the_end(void **state) {
  (void)state;
  trace_file_writer *w;
  ff_error error;
  trace_file_about about = {0};
  char *path = path_of("full.fft");
  assert_int_equal(trace_file_create_part(path, &about, &w, &error), FF_OK);
  assert_int_equal(trace_file_create_part(path, &about, &(trace_file_writer *){0}, &error), FF_IO); /* it is there */
  signal(SIGXFSZ, SIG_IGN);
  pid_t child = fork(); /* a limit of the file's size stands for a full disk */
  if (child == 0) {
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){2000, 2000});
    write_program(w, &large);
    _exit(trace_file_finish(w, &about, &error) == FF_IO && strstr(error.message, "cannot be written") ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  trace_file_abandon(w);
  unlink(path);
  free(path);
}

/* A process that is killed while it records, at any moment: what it leaves is a beginning. */
static void a_killed_recording_is_never_misread(void **state) {
  (void)state;
  char *path = path_of("killed.fft");
  uint32_t with_something = 0;
  struct stat all;
  write_file(path, &medium);
  assert_int_equal(stat(path, &all), 0);
  uint64_t whole = (uint64_t)all.st_size;
  for (unsigned i = 0; i < SHARE(100, 4); i++) {
    unlink(path);
    pid_t child = fork();
    if (child == 0) {
      trace_file_writer *w;
      trace_file_about about = {.complete = true};
      if (trace_file_create_part(path, &about, &w, NULL)) _exit(1);
      write_program(w, &medium);
      trace_file_finish(w, &about, NULL);
      _exit(0);
    }
    struct stat now = {0};
    uint64_t enough = mix(i) % whole; /* bytes; about so many, then */
    for (int wait = 0; wait < 5000 && (uint64_t)now.st_size < enough && !waitpid(child, NULL, WNOHANG); wait++) {
      usleep(100);
      if (stat(path, &now)) now.st_size = 0;
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    trace_file *file;
    ff_error error;
    place at;
    if (access(path, F_OK) || trace_file_open(path, &file, &error)) continue; /* too early */
    assert_int_equal(read_beginning(file, &medium, &at, &error), FF_OK);
    if (trace_file_information(file)->whole) assert_int_equal(at.operation, medium.operations);
    with_something += at.operation > 0;
    trace_file_close(file);
  }
  assert_true(with_something > 5);
  unlink(path);
  free(path);
}

/* ---- the stream, and copies ---- */

typedef struct fed {
  trace_program *program;
  trace_reader *reader;
  const shape *shape;
  uint64_t launches, operations;
} fed;

static void *read_stream(void *argument) {
  fed *f = argument;
  uint64_t words[WORDS];
  for (const trace_op *op; (op = trace_reader_next_op(f->reader)) && op->kind != TRACE_OP_END;) {
    trace_op wanted;
    trace_launch launch;
    make_operation(f->shape, f->operations, f->launches, &wanted, &launch);
    assert_int_equal(op->kind, wanted.kind);
    assert_int_equal(op->sequence, f->operations++);
    if (op->kind != TRACE_OP_LAUNCH) continue;
    assert_string_equal(op->launch->kernel, launch.kernel);
    assert_int_equal(op->launch->id, f->launches);
    assert_memory_equal(op->launch->parameters, launch.parameters, launch.parameter_bytes);
    for (uint64_t block = 0; block < op->launch->blocks; block++) {
      trace_chunk *chunk = trace_reader_chunk(f->reader, op->launch, block);
      for (uint32_t warp = 0; warp < op->launch->warps_per_block; warp++) {
        trace_cursor cursor;
        trace_cursor_open(f->reader, chunk, warp, &cursor);
        for (uint32_t n = 0; n <= records_of(f->shape, f->launches, block, warp); n++) {
          const uint64_t *record = trace_cursor_next(f->reader, &cursor);
          uint32_t count = make_record(f->shape, f->launches, block, warp, n, words);
          assert_memory_equal(record, words, count * sizeof words[0]);
        }
        trace_cursor_close(f->reader, &cursor);
      }
      trace_reader_release(f->reader, chunk);
    }
    f->launches++;
  }
  return NULL;
}

static void fed_streams_are_the_recorded_ones(void **state) {
  (void)state;
  char *path = path_of("feed.fft");
  write_file(path, &large);
  trace_file *file;
  assert_int_equal(trace_file_open(path, &file, NULL), FF_OK);
  fed f = {.program = trace_program_create(1 << 20), .shape = &large};
  f.reader = trace_reader_create(f.program);
  pthread_t thread;
  pthread_create(&thread, NULL, read_stream, &f);
  ff_error error;
  assert_int_equal(trace_file_feed(file, f.program, NULL, &error), FF_OK);
  trace_op_append(f.program, &(trace_op){.kind = TRACE_OP_END});
  pthread_join(thread, NULL);
  assert_int_equal(f.operations, large.operations);
  trace_reader_free(f.reader);
  trace_program_free(f.program);
  trace_file_close(file);
  unlink(path);
  free(path);
}

/* ---- marks ---- */

static const shape marked = {.seed = 8, .operations = 45, .blocks_most = 25, .records_most = 300, .marks = true};

static void expect_version(const char *path, int version) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_int_equal(fseek(file, 8, SEEK_SET), 0);
  assert_int_equal(fgetc(file), version);
  fclose(file);
}

static void marks_come_back(void **state) {
  (void)state;
  char *path = path_of("marks.fft"), *part = path_of("marks-part.fft");
  shape late = marked, none = {.seed = 9, .operations = 40, .blocks_most = 3, .records_most = 12, .marks = true};
  late.late = true;
  trace_file *file;
  trace_copied copied;
  ff_error error;
  trace_selection all = {.last_launch = UINT64_MAX, .last_block = UINT64_MAX};
  for (int i = 0; i < 2; i++) {
    write_file(path, i ? &late : &marked);
    check_file(path, &marked);
    expect_version(path, 76); /* launches have ranges and sites, too, and there are ASYNC records */
    assert_int_equal(trace_file_open(path, &file, NULL), FF_OK);
    assert_true(trace_file_information(file)->about.marks);
    unlink(part);
    assert_int_equal(trace_file_copy(file, part, &all, NULL, &copied, &error), FF_OK);
    trace_file_close(file);
    check_file(part, &marked);
    expect_version(part, 76);
  }
  write_file(path, &small);
  expect_version(path, 75);
  none.operations = 0;
  write_file(path, &none);
  expect_version(path, 2); /* it was told that there are to be some */
  unlink(path);
  unlink(part);
  free(path);
  free(part);
}

/* What is left of a warp's words: two ISSUEs with marks between them are one if they fit. */
static size_t leave_out_marks(const shape *s, uint64_t launch, uint64_t block, uint32_t warp, uint64_t *out) {
  uint64_t words[WORDS];
  size_t count = 0, last = SIZE_MAX; /* the ISSUE that is still open, and whether a mark came behind it */
  bool mark = false;
  for (uint32_t n = 0; n <= records_of(s, launch, block, warp); n++) {
    uint32_t length = make_record(s, launch, block, warp, n, words);
    trace_kind kind = trace_word_kind(words[0]);
    if (kind == TRACE_ENTER || kind == TRACE_LEAVE) {
      mark = true;
      continue;
    }
    uint64_t issue = last == SIZE_MAX ? 0 : out[last];
    if (kind == TRACE_ISSUE && !trace_issue_count(words[0]) && !trace_issue_memory(words[0])) continue;
    if (kind == TRACE_ISSUE && mark && issue && trace_issue_count(issue) + trace_issue_count(words[0]) <= 0x3fff &&
        trace_issue_memory(issue) + trace_issue_memory(words[0]) <= 0x3fff) {
      out[last] += words[0] & ~UINT64_C(15);
    } else {
      last = kind == TRACE_ISSUE ? count : SIZE_MAX;
      memcpy(out + count, words, length * sizeof *words);
      count += length;
    }
    mark = false;
  }
  return count;
}

typedef struct unmarked {
  trace_reader *reader;
  uint64_t launches, words;
  bool joins;
} unmarked;

static void *read_unmarked(void *argument) {
  unmarked *u = argument;
  uint64_t *want = malloc(sizeof *want * WORDS * 400);
  for (const trace_op *op; (op = trace_reader_next_op(u->reader)) && op->kind != TRACE_OP_END;) {
    if (op->kind != TRACE_OP_LAUNCH) continue;
    for (uint64_t block = 0; block < op->launch->blocks; block++) {
      trace_chunk *chunk = trace_reader_chunk(u->reader, op->launch, block);
      for (uint32_t warp = 0; warp < op->launch->warps_per_block; warp++) {
        trace_cursor cursor;
        size_t count = leave_out_marks(&marked, u->launches, block, warp, want);
        trace_cursor_open(u->reader, chunk, warp, &cursor);
        for (size_t at = 0; at < count;) {
          const uint64_t *record = trace_cursor_next(u->reader, &cursor);
          trace_kind kind = trace_word_kind(*record);
          uint64_t word = *record;
          if (u->joins && kind == TRACE_ISSUE && !trace_issue_count(word) && !trace_issue_memory(word)) continue;
          trace_counts units = {{0}};
          if (u->joins && kind == TRACE_ISSUE)
            word = trace_cursor_issue(u->reader, &cursor, word, TRACE_NO_MARKS, &units);
          if (u->joins && (kind == TRACE_ENTER || kind == TRACE_LEAVE)) continue;
          assert_int_equal(word, want[at]);
          uint32_t length = kind == TRACE_ACCESS ? 2 + trace_access_lines(word) : 1;
          if (length > 1) assert_memory_equal(record, want + at, length * sizeof *want);
          at += length;
        }
        trace_cursor_close(u->reader, &cursor);
        u->words += count;
      }
      trace_reader_release(u->reader, chunk);
    }
    u->launches++;
  }
  free(want);
  return NULL;
}

/* Left out by the feed, and by a reader of a stream that has them. */
static void marks_are_left_out(void **state) {
  (void)state;
  char *path = path_of("unmarked.fft");
  write_file(path, &marked);
  uint64_t words[2];
  for (int joins = 0; joins < 2; joins++) {
    trace_file *file;
    assert_int_equal(trace_file_open(path, &file, NULL), FF_OK);
    trace_program *program = trace_program_create(1 << 20);
    trace_program_mark(program, joins);
    unmarked u = {.reader = trace_reader_create(program), .joins = joins};
    pthread_t thread;
    pthread_create(&thread, NULL, read_unmarked, &u);
    ff_error error;
    assert_int_equal(trace_file_feed(file, program, NULL, &error), FF_OK);
    trace_op_append(program, &(trace_op){.kind = TRACE_OP_END});
    pthread_join(thread, NULL);
    trace_reader_free(u.reader);
    trace_program_free(program);
    trace_file_close(file);
    words[joins] = u.words;
  }
  assert_true(words[0] == words[1] && words[0] > 10000);
  unlink(path);
  free(path);
}

/* Records of version 1: the first word of an ENTER has its trips. */
static void plain_marks(void **state) {
  (void)state;
  pack_coder *coder = pack_coder_create();
  pack_coder_plain(coder);
  pack_bytes columns[PACK_COLUMNS] = {0};
  uint64_t words[3] = {TRACE_ENTER | 7 << 4 | UINT64_C(3) << 32, TRACE_ENTER | UINT64_C(3) << 32,
                       TRACE_LEAVE | UINT64_C(3) << 32},
           back[PACK_RECORD_WORDS];
  for (int i = 0; i < 3; i++) pack_put(coder, columns, &words[i]);
  assert_int_equal(columns[PACK_WORDS].count, 24);
  pack_view views[PACK_COLUMNS];
  for (int i = 0; i < PACK_COLUMNS; i++)
    views[i] = (pack_view){columns[i].items, columns[i].count ? columns[i].items + columns[i].count : NULL};
  pack_coder_reset(coder);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(pack_take(coder, views, back), 1);
    assert_int_equal(back[0], words[i]);
  }
  for (int i = 0; i < PACK_COLUMNS; i++) free(columns[i].items);
  pack_coder_free(coder);
}

static void parts_have_what_was_selected(void **state) {
  (void)state;
  char *path = path_of("whole.fft"), *part = path_of("part.fft");
  write_file(path, &large);
  trace_file *file, *copy;
  ff_error error;
  trace_copied copied;
  trace_item item;
  trace_selection all = {.last_launch = UINT64_MAX, .last_block = UINT64_MAX},
                  some = {.first_launch = 1, .last_launch = 4, .first_block = 2, .last_block = 2, .kernel = "kernel1"};
  assert_int_equal(trace_file_open(path, &file, NULL), FF_OK);
  assert_int_equal(trace_file_copy(file, part, &all, NULL, &copied, &error), FF_OK);
  check_file(part, &large);
  assert_int_equal(copied.operations, large.operations);
  unlink(part);
  assert_int_equal(trace_file_copy(file, part, &some, NULL, &copied, &error), FF_OK);
  uint64_t launches = 0, expected = 0, operations = 0, kept = 0;
  for (uint64_t op = 0; op < large.operations; op++) {
    trace_op wanted;
    trace_launch launch;
    make_operation(&large, op, launches, &wanted, &launch);
    if (wanted.kind != TRACE_OP_LAUNCH) {
      expected++;
      continue;
    }
    bool keep = launches >= 1 && launches <= 4 && launch.kernel_index == 1;
    expected += keep;
    kept += keep;
    launches++;
  }
  assert_int_equal(trace_file_open(part, &copy, NULL), FF_OK);
  uint64_t records = 0;
  while (trace_file_next(copy, &item, &error) == FF_OK && item.kind != TRACE_ITEM_END) {
    if (item.kind == TRACE_ITEM_OPERATION) {
      operations++;
      if (item.op->kind == TRACE_OP_LAUNCH) assert_int_equal(item.op->launch->kernel_index, 1);
    } else {
      if (item.block != 2) assert_int_equal(item.record[0], TRACE_EXIT);
      records += item.block == 2;
    }
  }
  assert_int_equal(operations, expected);
  assert_int_equal(copied.launches, kept);
  assert_true(kept > 0 && records > 10);
  trace_file_close(copy);
  trace_file_close(file);
  unlink(path);
  unlink(part);
  free(path);
  free(part);
}

/* On the host's side of a copy there may be managed memory, which is simulated: its address is kept, whatever the
 * direction. */
static void both_addresses_of_a_copy_come_back(void **state) {
  (void)state;
  char *path = path_of("copies.fft");
  trace_file_about about = {.farfault = "1.2.3", .complete = true};
  trace_file_writer *w;
  trace_file *file;
  trace_item item;
  assert_int_equal(trace_file_create(path, &about, &w, NULL), FF_OK);
  for (int i = 0; i < 8; i++) {
    trace_op op = {.kind = TRACE_OP_COPY,
                   .copy = {.to = 0x200000001254,
                            .from = 0x200000042000,
                            .width = 44,
                            .height = 1,
                            .direction = (trace_direction)(i % 4),
                            .pinned = i >= 4}};
    trace_file_put_operation(w, &op);
  }
  assert_int_equal(trace_file_finish(w, &about, NULL), FF_OK);
  assert_int_equal(trace_file_open(path, &file, NULL), FF_OK);
  for (int i = 0; i < 8; i++) {
    assert_int_equal(trace_file_next(file, &item, NULL), FF_OK);
    assert_int_equal(item.kind, TRACE_ITEM_OPERATION);
    assert_int_equal(item.op->copy.direction, i % 4);
    assert_int_equal(item.op->copy.to, 0x200000001254);
    assert_int_equal(item.op->copy.from, 0x200000042000);
  }
  trace_file_close(file);
  unlink(path);
  free(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_comes_back),
      cmocka_unit_test(both_addresses_of_a_copy_come_back),
      cmocka_unit_test(the_same_program_gives_the_same_bytes),
      cmocka_unit_test(regular_streams_take_few_bytes),
      cmocka_unit_test(a_file_that_is_cut_gives_its_beginning),
      cmocka_unit_test(damage_costs_a_frame),
      cmocka_unit_test(what_is_no_trace_is_refused),
      cmocka_unit_test(a_frame_out_of_nowhere_is_refused),
      cmocka_unit_test(a_full_disk_is_said_at_the_end),
      cmocka_unit_test(a_killed_recording_is_never_misread),
      cmocka_unit_test(fed_streams_are_the_recorded_ones),
      cmocka_unit_test(parts_have_what_was_selected),
      cmocka_unit_test(marks_come_back),
      cmocka_unit_test(marks_are_left_out),
      cmocka_unit_test(plain_marks),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
