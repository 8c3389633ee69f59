/* SPDX-License-Identifier: Apache-2.0 */
/* A recording whose footprints (trace/file_footprint.c) say anything: one of launches that repeat, so that sampling
 * leaves most of them out by what their footprints say, in which the input edits the footprints. Nothing may crash, run
 * on for ever or take memory without bound; every launch and block is counted, read or not.
 *
 * The input: a byte that says under which manager, and which frames of a launch are edited, one that says from which
 * launch on; then edits of three bytes: what is done, where, and a byte for it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/check.h"
#include "machine/sim.h"
#include "trace/ahead.h"
#include "trace/trace_frame.h"

enum { LAUNCHES = 14, BLOCKS = TRACE_FRAME_BLOCKS + 6, TIMED = 3, WORDS = 4 };
#define BASE (UINT64_C(1) << 40)

/* ---- the recording ---- */

static void put_block(trace_file_writer *to, uint64_t block) {
  uint64_t load[WORDS] = {TRACE_ACCESS | TRACE_LOAD << 4 | 2 << 6 | 2 << 16, UINT32_MAX,
                          trace_line(BASE + block * 384, 16, 15), trace_line(BASE + block * 384 + 128, 16, 3)},
           store[WORDS] = {TRACE_ACCESS | TRACE_STORE << 4 | 2 << 6 | 1 << 16, UINT32_MAX,
                           trace_line(BASE + (1 << 20) + block % 8 * 4096, 32, 15)},
           issue = TRACE_ISSUE | 20 << 4, end = TRACE_EXIT;
  trace_file_put_record(to, load);
  trace_file_put_record(to, &issue);
  trace_file_put_record(to, store);
  trace_file_put_record(to, &end);
}

/* Two arrays that meet in a page, then one a MiB away. */
static void put_program(trace_file_writer *to) {
  static const uint64_t arrays[3][2] = {{BASE, 5000}, {BASE + 5120, 64 << 10}, {BASE + (1 << 20), 64 << 10}};
  for (uint32_t i = 0; i < 3; i++)
    trace_file_put_operation(to, &(trace_op){.kind = TRACE_OP_ALLOC,
                                             .alloc = {.address = arrays[i][0],
                                                       .bytes = arrays[i][1],
                                                       .memory = i == 2 ? TRACE_MEMORY_DEVICE : TRACE_MEMORY_MANAGED,
                                                       .id = i + 1,
                                                       .name = "array"}});
  for (uint64_t n = 0; n < LAUNCHES; n++) {
    trace_launch launch = {.id = n,
                           .grid = {BLOCKS, 1, 1},
                           .block = {32, 1, 1},
                           .blocks = BLOCKS,
                           .warps_per_block = 1,
                           .registers = 16,
                           .kernel = "repeats"};
    trace_file_put_operation(to, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = &launch});
    for (uint64_t block = 0; block < BLOCKS; block++) put_block(to, block);
    trace_file_put_operation(to, &(trace_op){.kind = TRACE_OP_SYNC_DEVICE});
  }
}

static pack_bytes recorded;

static void record(void) {
  char path[] = "/tmp/fuzz_footprints.XXXXXX";
  trace_file_about about = {.complete = true, .footprints = true};
  trace_file_writer *writer;
  ff_error error;
  int fd = mkstemp(path);
  FF_ASSERT(fd >= 0 && trace_file_create(path, &about, &writer, &error) == FF_OK);
  put_program(writer);
  FF_ASSERT(trace_file_finish(writer, &about, &error) == FF_OK);
  FILE *file = fopen(path, "rb");
  FF_ASSERT(file);
  for (int c; (c = getc(file)) != EOF;) pack_byte(&recorded, (uint8_t)c);
  fclose(file);
  close(fd);
  unlink(path);
}

/* ---- other footprints ---- */

static void append(pack_bytes *to, const uint8_t *from, size_t count) {
  for (size_t i = 0; i < count; i++) pack_byte(to, from[i]);
}

static void edit(pack_bytes *column, const uint8_t *edits, size_t count) {
  for (; count >= 3; edits += 3, count -= 3) {
    size_t at = column->count ? edits[1] % column->count : 0;
    if (edits[0] % 4 == 0) { /* one more */
      pack_byte(column, 0);
      memmove(column->items + at + 1, column->items + at, column->count - 1 - at);
      column->items[at] = edits[2];
    } else if (column->count && edits[0] % 4 == 1) { /* one less */
      memmove(column->items + at, column->items + at + 1, column->count - 1 - at);
      column->count--;
    } else if (column->count) {
      column->items[at] = edits[0] % 4 == 2 ? edits[2] : (uint8_t)(column->items[at] + edits[2]);
    }
  }
}

/* The frame once more, with an edited column. */
static void edit_frame(frame_header header, const uint8_t *payload, const uint8_t *edits, size_t count,
                       pack_bytes *to) {
  static ZSTD_CCtx *compressor;
  static ZSTD_DCtx *decompressor;
  static pack_bytes storage, other;
  if (!compressor) {
    compressor = ZSTD_createCCtx();
    decompressor = ZSTD_createDCtx();
  }
  pack_view views[PACK_COLUMNS], said;
  pack_bytes columns[PACK_COLUMNS] = {0}, column = {0}, packed = {0};
  FF_ASSERT(frame_unpack(decompressor, payload, header.payload_bytes, true, &storage, views) &&
            frame_unpack_footprint(decompressor, payload, header.payload_bytes, &other, &said));
  for (int i = 0; i < PACK_COLUMNS; i++) append(&columns[i], views[i].at, (size_t)(views[i].end - views[i].at));
  append(&column, said.at, (size_t)(said.end - said.at));
  edit(&column, edits, count);
  frame_pack(compressor, columns, &column, &packed);
  header.payload_bytes = packed.count;
  header.payload_hash = frame_hash(packed.items, packed.count);
  uint8_t head[FRAME_HEADER_BYTES];
  frame_header_write(&header, head);
  append(to, head, sizeof head);
  append(to, packed.items, packed.count);
  for (int i = 0; i < PACK_COLUMNS; i++) free(columns[i].items);
  free(column.items);
  free(packed.items);
}

/* The recording, without its index, with the footprints of some frames of blocks edited. */
static pack_bytes edited(uint8_t which, uint8_t from, const uint8_t *edits, size_t count) {
  pack_bytes all = {0};
  append(&all, recorded.items, FILE_HEADER_BYTES);
  frame_header header;
  for (size_t at = FILE_HEADER_BYTES; frame_header_read(recorded.items + at, &header) && header.kind != FRAME_INDEX;
       at += FRAME_HEADER_BYTES + header.payload_bytes) {
    const uint8_t *payload = recorded.items + at + FRAME_HEADER_BYTES;
    bool blocks = header.kind == FRAME_DATA && header.open && header.launch >= from % LAUNCHES;
    if (blocks && (which & (header.block ? 1 : 2))) edit_frame(header, payload, edits, count, &all);
    else append(&all, recorded.items + at, FRAME_HEADER_BYTES + header.payload_bytes);
  }
  return all;
}

/* ---- reading it ---- */

typedef struct feeding {
  trace_program *program;
  trace_feed *feed;
} feeding;

static void pull(void *context) {
  feeding *f = context;
  if (!trace_feed_step(f->feed)) trace_op_append(f->program, &(trace_op){.kind = TRACE_OP_END});
}

static void idle(void *context) {}

static void simulate(trace_file *file, const char *manager) {
  static machine_spec spec;
  static bool loaded;
  ff_error error;
  if (!loaded) FF_ASSERT(machine_spec_load(FF_SOURCE_DIR "/machines/gtx480.yaml", &spec, &error) == FF_OK);
  loaded = true;
  feeding f = {.program = trace_program_create(0)};
  sim *s;
  sim_result result;
  FF_ASSERT(sim_create(f.program, &(sim_options){.spec = &spec, .manager = manager, .sample = TIMED}, &s, &error) ==
            FF_OK);
  FF_ASSERT(trace_feed_create_ahead(file, f.program, NULL, idle, NULL, &f.feed, &error) == FF_OK);
  trace_program_pull(f.program, pull, &f);
  sim_run(s);
  sim_snapshot(s, &result);
  FF_ASSERT(result.complete && trace_feed_is_idle(f.feed));
  FF_ASSERT(result.sampling.timed + result.sampling.estimated == LAUNCHES);
  FF_ASSERT(result.counters.blocks == LAUNCHES * BLOCKS);
  sim_result_free(&result);
  FF_ASSERT(trace_feed_free(f.feed, &error) == FF_OK);
  sim_free(s);
  trace_program_free(f.program);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const managers[] = {"copy", "uvm", "replay", "partial-multi"};
  if (size < 2) return 0;
  if (!recorded.count) record();
  pack_bytes bytes = edited(data[0], data[1], data + 2, size - 2);
  int fd = memfd_create("footprints", MFD_CLOEXEC);
  char path[64];
  trace_file *file;
  ff_error error;
  FF_ASSERT(fd >= 0 && write(fd, bytes.items, bytes.count) == (ssize_t)bytes.count);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  FF_ASSERT(trace_file_open(path, &file, &error) == FF_OK);
  simulate(file, managers[data[0] >> 2 & 3]);
  trace_file_close(file);
  close(fd);
  free(bytes.items);
  return 0;
}
