/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a trace file (file.h): items are packed into columns; a frame goes to the disk when its columns are full.
 *
 * A file that is cut off anywhere is a prefix of a good one: whole frames, and at most one that is incomplete. Memory
 * holds the frame that is being filled and the offsets of the others. At the deep check level all that is written is
 * read back (pack_mirror.c). */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/output.h"
#include "trace/ahead.h"
#include "trace/trace_frame.h"

enum { LOOK_RECORDS = 64 };
/* With footprints a frame ends with every so many blocks of a launch, and else only if it is so much larger. */
enum { FRAMES_OF_BLOCKS = 16 };

struct trace_file_writer {
  ff_output *output;
  uint64_t written; /* bytes */
  ZSTD_CCtx *compressor;
  pack_coder *coder;
  pack_mirror mirror;
  pack_bytes columns[PACK_COLUMNS];
  pack_bytes payload;
  operation_names names;
  frame_header frame;       /* the one that is being filled */
  FF_VEC(uint64_t) offsets; /* of the DATA frames */
  uint64_t checksum;        /* over the hashes of the DATA frames' payloads */
  uint64_t operations, launches, accesses, blocks, words;
  uint32_t since_look;           /* records since the frame's size was looked at */
  uint64_t open_launch;          /* its number */
  uint64_t launch_blocks, block; /* of the open launch: how many, and the one that comes; equal: none is open */
  uint32_t warps, warp;
  /* the file's version says so */
  bool marked, notes, units, sites, profiled, files, asynchronous, ranged, far, halves, minmax, priorities, spills;
  bool footprints;          /* frames have them */
  frame_touches touches;    /* of the frame that is being filled */
  pack_bytes footprint;     /* the column */
  trace_file_written *told; /* filled in at the end; NULL: not wanted */
};

/* ---- bytes to the disk ---- */

static void write_bytes(trace_file_writer *w, const void *bytes, size_t count) {
  ff_output_write(w->output, bytes, count);
  w->written += count;
}

static void write_frame(trace_file_writer *w, frame_header *header) {
  uint8_t bytes[FRAME_HEADER_BYTES];
  header->payload_bytes = w->payload.count;
  header->payload_hash = frame_hash(w->payload.items, w->payload.count);
  frame_header_write(header, bytes);
  write_bytes(w, bytes, sizeof bytes);
  write_bytes(w, w->payload.items, w->payload.count);
}

static void put_text(pack_bytes *to, const char *text) {
  size_t length = text ? strlen(text) : 0;
  pack_number(to, length);
  for (size_t i = 0; i < length; i++) pack_byte(to, (uint8_t)text[i]);
}

static void write_about(trace_file_writer *w, const trace_file_about *about) {
  w->payload.count = 0;
  put_text(&w->payload, about->farfault);
  put_text(&w->payload, about->command);
  put_text(&w->payload, about->machine);
  write_frame(w, &(frame_header){.kind = FRAME_ABOUT});
}

enum { VERSION_AT = 8 };

static void put_version(const trace_file_writer *w, uint8_t to[2]) { /* of the u32, what may be other than 0 */
  const uint32_t version = TRACE_FILE_PLAIN + w->marked + 2u * w->notes + 4u * w->units + 8u * w->sites +
                           16u * w->profiled + 32u * w->files + 64u * w->asynchronous + 128u * w->ranged +
                           256u * w->far + 512u * w->footprints + 1024u * w->halves + 2048u * w->minmax +
                           4096u * w->priorities + 8192u * w->spills;
  to[0] = (uint8_t)version;
  to[1] = (uint8_t)(version >> 8);
}

/* The first mark, range, carve-out, site, call of a profiler, copy of a file's bytes, asynchronous copy, begin of a
 * range, arrival from another block, count of products, half precision or minima, or spill of a file that was to have
 * none.
 * What is before it looks the same in every version. */
static void write_version(trace_file_writer *w) {
  uint8_t version[2];
  put_version(w, version);
  ff_output_change(w->output, VERSION_AT, version, sizeof version);
}

static ff_status create(const char *path, ff_output_kind kind, const trace_file_about *about, trace_file_writer **out,
                        ff_error *error) {
  ZSTD_CCtx *compressor = ZSTD_createCCtx(); /* first: a part that was opened stays */
  if (!compressor) return ff_fail(error, FF_LIMIT, "%s: cannot be written: the host is out of memory", path);
  ff_output *output;
  ff_status status = ff_output_open(path, kind, &output, error);
  if (status) {
    ZSTD_freeCCtx(compressor);
    return status;
  }
  trace_file_writer *w = ff_alloc(sizeof *w);
  w->output = output;
  w->compressor = compressor;
  w->coder = pack_coder_create();
  pack_mirror_open(&w->mirror);
  uint8_t start[FILE_HEADER_BYTES] = FILE_MAGIC;
  /* what has gone into a pipe cannot be changed when one of them comes */
  w->notes = w->sites = w->profiled = w->files = w->asynchronous = w->ranged = w->far = w->halves =
      !ff_output_is_file(output);
  w->marked = about->marks || w->notes;
  w->units = about->units;
  w->footprints = about->footprints;
  frame_touches_open(&w->touches);
  put_version(w, start + VERSION_AT);
  write_bytes(w, start, sizeof start);
  write_about(w, about);
  w->frame = (frame_header){.kind = FRAME_DATA};
  *out = w;
  return FF_OK;
}

ff_status trace_file_create(const char *path, const trace_file_about *about, trace_file_writer **out, ff_error *error) {
  return create(path, FF_OUTPUT_KEPT, about, out, error);
}

ff_status trace_file_create_part(const char *path, const trace_file_about *about, trace_file_writer **out,
                                 ff_error *error) {
  return create(path, FF_OUTPUT_PART, about, out, error);
}

/* ---- frames ---- */

static void end_frame(trace_file_writer *w) {
  w->payload.count = 0;
  w->footprint.count = 0;
  if (w->frame.words) frame_touches_put(&w->touches, w->warp != 0, &w->footprint);
  frame_pack(w->compressor, w->columns, w->footprints ? &w->footprint : NULL, &w->payload);
  w->frame.number = w->offsets.count;
  FF_PUSH(&w->offsets, w->written);
  write_frame(w, &w->frame);
  uint64_t both[2] = {w->checksum, w->frame.payload_hash};
  w->checksum = frame_hash(both, sizeof both);
  for (int i = 0; i < PACK_COLUMNS; i++) w->columns[i].count = 0;
  pack_coder_reset(w->coder);
  pack_mirror_reset(&w->mirror);
  operation_names_reset(&w->names);
  w->frame = (frame_header){.kind = FRAME_DATA};
}

static bool frame_is_empty(const trace_file_writer *w) { return !w->frame.operations && !w->frame.words; }

static void begin_frame(trace_file_writer *w) {
  w->frame.operation = w->operations;
  w->frame.open = w->block < w->launch_blocks;
  w->frame.launch = w->frame.open ? w->open_launch : w->launches;
  w->frame.block = w->frame.open ? w->block : 0;
  w->frame.warp = w->warp;
  w->frame.warps = w->frame.open ? w->warps : 0;
  w->frame.launch_blocks = w->frame.open ? w->launch_blocks : 0;
  if (w->footprints) frame_touches_begin(&w->touches, w->frame.block, w->frame.warp);
}

static bool is_full(const trace_file_writer *w) {
  size_t bytes = 0;
  for (int i = 0; i < PACK_COLUMNS; i++) bytes += w->columns[i].count;
  return bytes >= FRAME_COLUMN_BYTES * (w->footprints ? FRAMES_OF_BLOCKS : 1u);
}

/* ---- items ---- */

static void start_warp(trace_file_writer *w) {
  pack_coder_warp(w->coder);
  if (w->mirror.coder) pack_coder_warp(w->mirror.coder);
}

static void start_block(trace_file_writer *w) {
  pack_coder_block(w->coder);
  if (w->mirror.coder) pack_coder_block(w->mirror.coder);
  start_warp(w);
}

static void open_launch(trace_file_writer *w, const trace_launch *launch) {
  w->open_launch = w->launches++;
  w->launch_blocks = launch->blocks;
  w->warps = launch->warps_per_block;
  w->block = w->warp = 0;
  w->frame.launches++;
  pack_coder_kernel(w->coder, launch->kernel_index);
  if (w->mirror.coder) pack_coder_kernel(w->mirror.coder, launch->kernel_index);
  start_block(w);
}

static const uint64_t only_exit[1] = {TRACE_EXIT};

void trace_file_seek(trace_file_writer *w, uint64_t block, uint32_t warp) {
  while (w->block < w->launch_blocks && (w->block < block || (w->block == block && w->warp < warp)))
    trace_file_put_record(w, only_exit);
}

/* In its last and its first page another one may begin or end. */
static void allocated(trace_file_writer *w, const trace_op *op) {
  if (op->kind == TRACE_OP_ALLOC) frame_touches_allocated(&w->touches, op->alloc.address, op->alloc.bytes);
  else frame_touches_allocated(&w->touches, op->map.address, op->map.bytes);
}

void trace_file_put_operation(trace_file_writer *w, const trace_op *op) {
  if (op->kind == TRACE_OP_END) return;
  trace_file_seek(w, w->launch_blocks, 0);
  bool large = op->kind == TRACE_OP_MODULE && op->module.bytes > FRAME_COLUMN_BYTES;
  if (!frame_is_empty(w) && (large || is_full(w))) end_frame(w);
  if (frame_is_empty(w)) begin_frame(w);
  if (!w->notes && op->kind == TRACE_OP_LAUNCH && (op->launch->range[0] || op->launch->carve_out)) {
    w->notes = true;
    write_version(w);
  }
  if (!w->sites && op->kind == TRACE_OP_LAUNCH && op->launch->site[0]) {
    w->sites = true;
    write_version(w);
  }
  if (!w->priorities && op->kind == TRACE_OP_LAUNCH && trace_l2_controls_some(&op->launch->l2)) {
    w->priorities = true;
    write_version(w);
  }
  if (!w->profiled && op->kind == TRACE_OP_PROFILE) {
    w->profiled = true;
    write_version(w);
  }
  if (!w->ranged && op->kind == TRACE_OP_RANGE) {
    w->ranged = true;
    write_version(w);
  }
  if (!w->files && op->kind == TRACE_OP_COPY && op->copy.file) {
    w->files = true;
    write_version(w);
  }
  trace_op cut = *op;
  if (op->kind == TRACE_OP_MODULE && op->module.bytes > OPERATION_PTX_MAX) cut.module.bytes = 0;
  operation_put(&w->columns[PACK_TEXT], &cut, &w->names);
  if (w->mirror.coder) pack_mirror_operation(&w->mirror, &w->columns[PACK_TEXT]);
  w->frame.operations++;
  w->operations++;
  if (w->footprints && (op->kind == TRACE_OP_ALLOC || op->kind == TRACE_OP_MAP)) allocated(w, op);
  if (op->kind == TRACE_OP_LAUNCH) open_launch(w, op->launch);
  if (w->footprints && op->kind == TRACE_OP_LAUNCH) end_frame(w); /* its blocks have frames of their own */
}

static void end_warp(trace_file_writer *w) {
  if (++w->warp < w->warps) {
    start_warp(w);
    return;
  }
  w->warp = 0;
  w->block++;
  w->blocks++;
  start_block(w);
  if (!w->footprints) return;
  frame_touches_block_over(&w->touches);
  if (w->block % TRACE_FRAME_BLOCKS == 0 || w->block == w->launch_blocks) end_frame(w);
}

void trace_file_put_record(trace_file_writer *w, const uint64_t *words) {
  trace_kind kind = trace_word_kind(words[0]);
  bool access = kind == TRACE_ACCESS;
  if (!w->marked && (kind == TRACE_ENTER || kind == TRACE_LEAVE)) {
    w->marked = true;
    write_version(w);
  }
  if (!w->units && kind == TRACE_UNITS) {
    w->units = true;
    write_version(w);
  }
  if (!w->halves && kind == TRACE_UNITS && trace_units_further(words[0])) {
    w->halves = true;
    write_version(w);
  }
  if (!w->minmax && kind == TRACE_UNITS && trace_units_minmax(words[0])) {
    w->minmax = true;
    write_version(w);
  }
  if (!w->asynchronous &&
      (kind == TRACE_ASYNC || (access && trace_access_flags(words[0]) & (TRACE_ASYNC_COPY | TRACE_BULK)))) {
    w->asynchronous = true;
    write_version(w);
  }
  if (!w->priorities && access && trace_access_flags(words[0]) & TRACE_L2_PRIORITY) {
    w->priorities = true;
    write_version(w);
  }
  if (!w->far && kind == TRACE_ASYNC && trace_async_far(words[0])) {
    w->far = true;
    write_version(w);
  }
  if (!w->spills && kind == TRACE_SPILL) {
    w->spills = true;
    write_version(w);
  }
  if (frame_is_empty(w)) begin_frame(w);
  if (w->footprints) frame_touches_record(&w->touches, w->block, words);
  pack_put(w->coder, w->columns, words);
  if (w->mirror.coder) pack_mirror_record(&w->mirror, w->columns, words);
  uint32_t count = access ? 2 + trace_access_lines(words[0]) : 1;
  w->frame.words += count;
  w->words += count;
  w->frame.accesses += access;
  w->accesses += access;
  if (kind == TRACE_EXIT) end_warp(w);
  if (++w->since_look < LOOK_RECORDS) return;
  w->since_look = 0;
  if (is_full(w) && !frame_is_empty(w)) end_frame(w);
}

/* ---- the end ---- */

static void write_index(trace_file_writer *w, const trace_file_about *about) {
  pack_bytes *to = &w->payload;
  to->count = 0;
  pack_byte(to, about->complete);
  pack_number(to, about->note_count);
  for (uint32_t i = 0; i < about->note_count; i++) put_text(to, about->notes[i]);
  const trace_file_totals *t = &about->totals;
  const uint64_t totals[] = {
      t->warp_instructions, t->thread_instructions, t->warp_accesses, t->sectors, t->blocks,   t->divergent_branches,
      t->barriers,          w->operations,          w->launches,      w->blocks,  w->accesses, w->words,
      w->checksum,          w->offsets.count};
  for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++) pack_number(to, totals[i]);
  for (size_t i = 0; i < w->offsets.count; i++)
    pack_number(to, w->offsets.items[i] - (i ? w->offsets.items[i - 1] : 0));
  uint64_t offset = w->written;
  write_frame(w, &(frame_header){.kind = FRAME_INDEX, .number = w->offsets.count});
  uint8_t end[FILE_END_BYTES];
  uint64_t hash = frame_hash(&offset, sizeof offset);
  memcpy(end, &offset, 8);
  memcpy(end + 8, &hash, 8);
  memcpy(end + 16, END_MAGIC, 8);
  write_bytes(w, end, sizeof end);
}

static void writer_free(trace_file_writer *w) {
  ZSTD_freeCCtx(w->compressor);
  pack_coder_free(w->coder);
  pack_mirror_close(&w->mirror);
  for (int i = 0; i < PACK_COLUMNS; i++) free(w->columns[i].items);
  free(w->payload.items);
  free(w->footprint.items);
  frame_touches_free(&w->touches);
  operation_names_free(&w->names);
  free(w->offsets.items);
  free(w);
}

void trace_file_tell(trace_file_writer *w, trace_file_written *written) { w->told = written; }

void trace_file_abandon(trace_file_writer *w) {
  if (!w) return;
  ff_output_discard(w->output);
  writer_free(w);
}

ff_status trace_file_finish(trace_file_writer *w, const trace_file_about *about, ff_error *error) {
  if (!frame_is_empty(w)) end_frame(w);
  write_index(w, about);
  if (w->told) *w->told = (trace_file_written){w->operations, w->launches, w->blocks, w->accesses, w->written};
  ff_status status = ff_output_finish(w->output, error);
  writer_free(w);
  return status;
}
