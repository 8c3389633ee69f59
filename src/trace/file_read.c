/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a trace file (file.h): the list of frames, from the index or by looking for them; then item by item.
 *
 *   trace_file_next: within a launch: the next record; else the next operation; at the end of a frame: the next frame
 *
 * `at` is the position in the program of the next item. A frame that does not begin there follows a frame that was
 * lost; reading goes on at its own position. One frame is in memory at a time. */
#define _GNU_SOURCE /* memmem */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/text.h"
#include "trace/trace_frame.h"

typedef struct position {        /* what comes next */
  uint64_t operation, launches;  /* their numbers */
  uint64_t launch_blocks, block; /* of the open launch; equal: none is open */
  uint32_t warps, warp;
} position;

struct trace_file {
  char *path;
  int descriptor;
  trace_file_info info;
  FF_VEC(trace_file_frame) frames;
  ZSTD_DCtx *decompressor;
  pack_coder *coder;
  pack_bytes payload, storage, footprint;
  pack_view columns[PACK_COLUMNS];
  operation_names names;
  uint64_t next_frame; /* the one behind that at hand */
  bool loaded;         /* there is one at hand */
  bool bad;            /* a record of it was found broken */
  bool lost;           /* the frame before was damaged: the next one may begin elsewhere */
  frame_header header; /* of it */
  uint32_t operations_left, words_left;
  position at;
  trace_op op;
  trace_launch launch; /* the last one; its parameters point into storage */
  uint64_t record[PACK_RECORD_WORDS];
};

/* ---- bytes from the disk ---- */

static bool read_at(const trace_file *f, uint64_t offset, void *bytes, size_t count) {
  char *to = bytes;
  while (count) {
    ssize_t got = pread(f->descriptor, to, count, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    offset += (uint64_t)got;
    count -= (size_t)got;
  }
  return true;
}

/* The header at the offset, if it is good and its payload lies in the file. */
static bool read_header(const trace_file *f, uint64_t offset, frame_header *header) {
  uint8_t bytes[FRAME_HEADER_BYTES];
  if (f->info.bytes < FRAME_HEADER_BYTES || offset > f->info.bytes - FRAME_HEADER_BYTES ||
      !read_at(f, offset, bytes, sizeof bytes))
    return false;
  return frame_header_read(bytes, header) && header->payload_bytes <= f->info.bytes - FRAME_HEADER_BYTES - offset;
}

/* The payload of a frame into f->payload. */
static bool read_payload(trace_file *f, uint64_t offset, const frame_header *header) {
  f->payload.count = 0;
  ff_vec_reserve((void **)&f->payload.items, &f->payload.capacity, header->payload_bytes + 1, 1);
  if (!read_at(f, offset + FRAME_HEADER_BYTES, f->payload.items, header->payload_bytes)) return false;
  f->payload.count = header->payload_bytes;
  return frame_hash(f->payload.items, f->payload.count) == header->payload_hash;
}

/* A text with its length in front, copied; NULL: broken. */
static char *take_text(pack_view *from) {
  uint64_t length;
  if (!pack_take_number(from, &length) || length > (uint64_t)(from->end - from->at)) return NULL;
  char *text = ff_alloc(length + 1);
  memcpy(text, from->at, length);
  from->at += length;
  return text;
}

/* ---- the list of frames ---- */

static void add_frame(trace_file *f, uint64_t offset, const frame_header *header) {
  trace_file_frame frame = {.offset = offset, .damaged = !header};
  if (header) {
    frame.bytes = FRAME_HEADER_BYTES + header->payload_bytes;
    frame.operation = header->operation;
    frame.operations = header->operations;
    frame.accesses = header->accesses;
    frame.launch = header->launch;
    frame.launches = header->launches;
    frame.open = header->open;
    frame.block = header->block;
    frame.warp = header->warp;
    f->info.operations += header->operations;
    f->info.launches += header->launches;
    f->info.accesses += header->accesses;
    f->info.words += header->words;
  }
  FF_PUSH(&f->frames, frame);
}

static bool take_notes(trace_file_about *about, pack_view *from) {
  uint64_t count;
  if (!pack_take_number(from, &count) || count > (uint64_t)(from->end - from->at)) return false;
  about->notes = ff_alloc(count * sizeof *about->notes);
  for (uint64_t i = 0; i < count; i++) {
    if (!(about->notes[i] = take_text(from))) return false;
    about->note_count++;
  }
  return true;
}

static void drop_notes(trace_file_about *about) {
  for (uint32_t i = 0; i < about->note_count; i++) free(about->notes[i]);
  free(about->notes);
  about->notes = NULL;
  about->note_count = 0;
}

static bool take_index(trace_file *f, uint64_t index_at) {
  pack_view from = {f->payload.items, f->payload.items + f->payload.count};
  trace_file_totals *t = &f->info.about.totals;
  uint64_t complete, frames, offset = 0, step;
  uint64_t *const totals[] = {&t->warp_instructions,
                              &t->thread_instructions,
                              &t->warp_accesses,
                              &t->sectors,
                              &t->blocks,
                              &t->divergent_branches,
                              &t->barriers};
  /* operations, launches, blocks, accesses, words: the frames are asked instead, but for the blocks */
  uint64_t sums[5];
  if (!pack_take_number(&from, &complete) || !take_notes(&f->info.about, &from)) return false;
  for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++)
    if (!pack_take_number(&from, totals[i])) return false;
  for (int i = 0; i < 5; i++)
    if (!pack_take_number(&from, &sums[i])) return false;
  if (!pack_take_number(&from, &f->info.checksum) || !pack_take_number(&from, &frames) ||
      frames > f->info.bytes / FRAME_HEADER_BYTES)
    return false;
  for (uint64_t i = 0; i < frames; i++) {
    if (!pack_take_number(&from, &step) || step > index_at - offset || (i && !step)) return false;
    offset += step;
    frame_header header;
    bool good = read_header(f, offset, &header) && header.kind == FRAME_DATA && header.number == i;
    add_frame(f, offset, good ? &header : NULL);
  }
  f->info.blocks = sums[2];
  f->info.about.complete = complete;
  return true;
}

static void forget_frames(trace_file *f) {
  f->frames.count = 0;
  f->info.operations = f->info.launches = f->info.blocks = f->info.accesses = f->info.words = f->info.checksum = 0;
  f->info.about.totals = (trace_file_totals){0};
  f->info.about.complete = false;
  drop_notes(&f->info.about);
}

static bool read_index(trace_file *f, uint64_t offset) {
  frame_header header;
  if (!read_header(f, offset, &header) || header.kind != FRAME_INDEX || !read_payload(f, offset, &header)) return false;
  forget_frames(f);
  if (take_index(f, offset)) return f->info.whole = true;
  forget_frames(f);
  return false;
}

/* By the file's last bytes. */
static bool find_index(trace_file *f) {
  uint8_t end[FILE_END_BYTES];
  uint64_t offset, hash;
  if (f->info.bytes < FILE_HEADER_BYTES + FILE_END_BYTES ||
      !read_at(f, f->info.bytes - FILE_END_BYTES, end, sizeof end))
    return false;
  memcpy(&offset, end, 8);
  memcpy(&hash, end + 8, 8);
  return !memcmp(end + 16, END_MAGIC, 8) && hash == frame_hash(&offset, sizeof offset) && read_index(f, offset);
}

enum { WINDOW = 1 << 20 };

/* The next place, `offset` or later, where a frame's header stands whole; false: none. */
static bool find_header(trace_file *f, uint64_t *offset, frame_header *header) {
  static const uint8_t magic[4] = {'F', 'F', 'R', 'M'};
  if (read_header(f, *offset, header)) return true;
  uint8_t *window = ff_alloc(WINDOW);
  bool found = false;
  while (!found && f->info.bytes > FRAME_HEADER_BYTES && *offset < f->info.bytes - FRAME_HEADER_BYTES) {
    uint64_t left = f->info.bytes - *offset, count = left < WINDOW ? left : WINDOW;
    if (!read_at(f, *offset, window, count)) break;
    const uint8_t *at = window, *end = window + count;
    while (!found && (at = memmem(at, (size_t)(end - at), magic, sizeof magic))) {
      found = read_header(f, *offset + (uint64_t)(at - window), header);
      if (!found) at++;
    }
    *offset += found ? (uint64_t)(at - window) : count - (count > 3 ? 3 : count - 1);
  }
  free(window);
  return found;
}

/* Without the end: frame after frame; what is between two good ones counts as one damaged frame. */
static void scan(trace_file *f, uint64_t offset) {
  frame_header header;
  for (uint64_t expected = 0; offset < f->info.bytes; offset += FRAME_HEADER_BYTES + header.payload_bytes) {
    uint64_t from = offset;
    if (!find_header(f, &offset, &header)) return;
    if (header.kind == FRAME_INDEX && read_index(f, offset)) return;
    if (header.kind != FRAME_DATA) continue;
    if (header.number > expected) add_frame(f, from, NULL);
    expected = header.number + 1;
    add_frame(f, offset, &header);
  }
}

/* ---- opening ---- */

static ff_status check_start(trace_file *f, ff_error *error) {
  uint8_t start[FILE_HEADER_BYTES];
  if (f->info.bytes < sizeof start || !read_at(f, 0, start, sizeof start) || memcmp(start, FILE_MAGIC, 8))
    return ff_fail(error, FF_PARSE, "%s: no trace (one that `farfault record` wrote begins with FFTRACE)", f->path);
  uint32_t version = start[8] | start[9] << 8 | start[10] << 16 | (uint32_t)start[11] << 24;
  if (version < TRACE_FILE_PLAIN || version > TRACE_FILE_VERSION)
    return ff_fail(error, FF_PARSE, "%s: a trace of version %" PRIu32 "; this farfault reads versions up to %u",
                   f->path, version, TRACE_FILE_VERSION);
  f->info.about.marks = (version - TRACE_FILE_PLAIN) & 1;
  f->info.about.units = (version - TRACE_FILE_PLAIN) & 4;
  f->info.about.footprints = (version - TRACE_FILE_PLAIN) & 512;
  if (!f->info.about.marks) pack_coder_plain(f->coder);
  return FF_OK;
}

/* Behind it frames begin. Where it is damaged, the program's name is not known. */
static uint64_t read_about(trace_file *f) {
  frame_header header;
  f->info.nameless = true;
  if (!read_header(f, FILE_HEADER_BYTES, &header) || header.kind != FRAME_ABOUT) return FILE_HEADER_BYTES;
  uint64_t end = FILE_HEADER_BYTES + FRAME_HEADER_BYTES + header.payload_bytes;
  if (!read_payload(f, FILE_HEADER_BYTES, &header)) return end;
  f->info.nameless = false;
  pack_view from = {f->payload.items, f->payload.items + f->payload.count};
  char *version = take_text(&from);
  if (version) strncpy(f->info.about.farfault, version, sizeof f->info.about.farfault - 1);
  free(version);
  f->info.about.command = take_text(&from);
  f->info.about.machine = take_text(&from);
  return end;
}

ff_status trace_file_open(const char *path, trace_file **out, ff_error *error) {
  struct stat info;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return ff_fail(error, FF_IO, "%s: cannot be read: %s", path, strerror(errno));
  if (fstat(descriptor, &info) || !S_ISREG(info.st_mode)) {
    close(descriptor);
    return ff_fail(error, FF_IO, "%s: cannot be read: it is no regular file", path);
  }
  trace_file *f = ff_alloc(sizeof *f);
  f->path = ff_strdup(path);
  f->descriptor = descriptor;
  f->info.bytes = (uint64_t)info.st_size;
  f->decompressor = ZSTD_createDCtx();
  f->coder = pack_coder_create();
  ff_status status = f->decompressor ? check_start(f, error)
                                     : ff_fail(error, FF_LIMIT, "%s: cannot be read: the host is out of memory", path);
  if (status) {
    trace_file_close(f);
    return status;
  }
  uint64_t frames = read_about(f);
  if (!find_index(f)) scan(f, frames);
  f->info.frames = f->frames.items;
  f->info.frame_count = f->frames.count;
  *out = f;
  return FF_OK;
}

void trace_file_close(trace_file *f) {
  if (!f) return;
  close(f->descriptor);
  ZSTD_freeDCtx(f->decompressor);
  pack_coder_free(f->coder);
  drop_notes(&f->info.about);
  free(f->info.about.command);
  free(f->info.about.machine);
  free(f->frames.items);
  free(f->payload.items);
  free(f->storage.items);
  free(f->footprint.items);
  operation_names_free(&f->names);
  free(f->path);
  free(f);
}

const trace_file_info *trace_file_information(const trace_file *f) { return &f->info; }

void trace_file_rewind(trace_file *f) {
  f->loaded = f->lost = false;
  f->next_frame = 0;
  f->at = (position){0};
  f->launch = (trace_launch){0};
}

void trace_file_go_to(trace_file *f, uint64_t frame) {
  f->loaded = false;
  f->lost = true;
  f->next_frame = frame;
}

uint64_t trace_file_next_frame(const trace_file *f) {
  return f->loaded && (f->words_left || f->operations_left) ? UINT64_MAX : f->next_frame;
}

/* In a buffer of its own: the columns at hand stay. */
bool trace_file_footprint(trace_file *f, uint64_t number, uint64_t first, footprint *to, frame_footprint *out) {
  frame_header header;
  pack_view column;
  const trace_file_frame *frame = &f->frames.items[number];
  return !frame->damaged && read_header(f, frame->offset, &header) && read_payload(f, frame->offset, &header) &&
         frame_unpack_footprint(f->decompressor, f->payload.items, f->payload.count, &f->footprint, &column) &&
         frame_footprint_take(column, first, to, out);
}

ff_status trace_file_again(const trace_file *f, trace_file **out, ff_error *error) {
  return trace_file_open(f->path, out, error);
}

/* ---- frames ---- */

/* "app.fft: frame 7 at byte 1234 (from operation 120, launch 3, block 64): why". */
static ff_status broken(trace_file *f, uint64_t number, const char *why, ff_error *error) {
  const trace_file_frame *frame = &f->frames.items[number], *next = number + 1 < f->frames.count ? frame + 1 : NULL;
  ff_text lost = {0};
  ff_text_add(&lost, "from operation %" PRIu64, f->at.operation);
  if (f->at.block < f->at.launch_blocks)
    ff_text_add(&lost, ", launch %" PRIu64 ", block %" PRIu64, f->at.launches - 1, f->at.block);
  if (next && !next->damaged) {
    ff_text_add(&lost, " to operation %" PRIu64, next->operation);
    if (next->open) ff_text_add(&lost, ", launch %" PRIu64 ", block %" PRIu64, next->launch, next->block);
  }
  ff_status status = ff_fail(error, FF_PARSE, "%s: frame %" PRIu64 " at byte %" PRIu64 " is damaged (%s); lost: %s",
                             f->path, number, frame->offset, why, lost.chars);
  free(lost.chars);
  f->loaded = false;
  f->lost = true;
  return status;
}

/* Where the program goes on after frames that were lost. */
static void jump(trace_file *f) {
  const frame_header *h = &f->header;
  f->at = (position){.operation = h->operation,
                     .launches = h->launch + h->open,
                     .launch_blocks = h->launch_blocks,
                     .block = h->block,
                     .warps = h->warps,
                     .warp = h->warp};
  if (!h->open) f->at.launch_blocks = f->at.block = 0;
  if (!h->open || f->launch.id == h->launch) return;
  f->launch =
      (trace_launch){.kernel = "(lost)", .id = h->launch, .blocks = h->launch_blocks, .warps_per_block = h->warps};
}

static bool follows(const trace_file *f) {
  const frame_header *h = &f->header;
  bool open = f->at.block < f->at.launch_blocks;
  return h->operation == f->at.operation && h->open == open && h->launch + h->open == f->at.launches &&
         (!open || (h->block == f->at.block && h->warp == f->at.warp && h->launch_blocks == f->at.launch_blocks &&
                    h->warps == f->at.warps));
}

static ff_status load_frame(trace_file *f, ff_error *error) {
  uint64_t number = f->next_frame++;
  const trace_file_frame *frame = &f->frames.items[number];
  frame_header *h = &f->header;
  if (frame->damaged || !read_header(f, frame->offset, h)) return broken(f, number, "its header", error);
  if (!read_payload(f, frame->offset, h)) return broken(f, number, "its contents", error);
  if (h->open && (h->block >= h->launch_blocks || h->warp >= h->warps || h->warps > 32))
    return broken(f, number, "its position", error);
  if (!frame_unpack(f->decompressor, f->payload.items, f->payload.count, f->info.about.footprints, &f->storage,
                    f->columns))
    return broken(f, number, "its columns", error);
  f->launch.parameters = NULL; /* they were the last frame's */
  f->launch.parameter_bytes = 0;
  if (!follows(f)) {
    if (!f->lost) return broken(f, number, "it does not follow what stands before it", error);
    jump(f);
  }
  f->lost = false;
  pack_coder_reset(f->coder);
  operation_names_reset(&f->names);
  f->operations_left = h->operations;
  f->words_left = h->words;
  f->bad = false;
  f->loaded = true;
  return FF_OK;
}

/* ---- items ---- */

static ff_status next_operation(trace_file *f, trace_item *item, ff_error *error) {
  trace_launch launch = {.id = f->at.launches};
  const char *wrong = operation_take(&f->columns[PACK_TEXT], &f->op, &launch, &f->names);
  if (wrong) return broken(f, f->next_frame - 1, wrong, error);
  f->operations_left--;
  f->op.sequence = f->at.operation++;
  if (f->op.kind == TRACE_OP_LAUNCH) {
    f->launch = launch;
    f->op.launch = &f->launch;
    f->at.launches++;
    f->at.launch_blocks = launch.blocks;
    f->at.warps = launch.warps_per_block;
    f->at.block = f->at.warp = 0;
    pack_coder_kernel(f->coder, launch.kernel_index);
    pack_coder_block(f->coder);
    pack_coder_warp(f->coder);
  }
  *item = (trace_item){.kind = TRACE_ITEM_OPERATION, .op = &f->op};
  return FF_OK;
}

static void end_warp(trace_file *f) {
  if (++f->at.warp == f->at.warps) {
    f->at.warp = 0;
    f->at.block++;
    pack_coder_block(f->coder);
  }
  pack_coder_warp(f->coder);
}

static ff_status next_record(trace_file *f, trace_item *item, ff_error *error) {
  uint32_t words = f->bad ? 0 : pack_take(f->coder, f->columns, f->record);
  if (!words || words > f->words_left) return broken(f, f->next_frame - 1, "its records", error);
  f->words_left -= words;
  *item = (trace_item){.kind = TRACE_ITEM_RECORD,
                       .launch = &f->launch,
                       .block = f->at.block,
                       .warp = f->at.warp,
                       .words = words,
                       .record = f->record};
  if (trace_word_kind(f->record[0]) == TRACE_EXIT) end_warp(f);
  return FF_OK;
}

bool trace_file_take_warp(trace_file *f, trace_writer *to, bool marks, uint64_t *instructions) {
  if (!f->loaded || f->bad || !f->words_left) return false;
  if (pack_take_warp(f->coder, f->columns, to, marks, &f->words_left, instructions)) {
    end_warp(f);
    return true;
  }
  f->bad = f->words_left != 0;
  return false;
}

ff_status trace_file_next(trace_file *f, trace_item *item, ff_error *error) {
  for (;;) {
    if (f->loaded) {
      bool open = f->at.block < f->at.launch_blocks;
      if (open && f->words_left) return next_record(f, item, error);
      if (!open && f->operations_left) return next_operation(f, item, error);
      if (f->words_left || f->operations_left) return broken(f, f->next_frame - 1, "its counts", error);
    }
    f->loaded = false;
    if (f->next_frame == f->frames.count) break;
    ff_status status = load_frame(f, error);
    if (status) return status;
  }
  *item = (trace_item){.kind = TRACE_ITEM_END};
  return FF_OK;
}
