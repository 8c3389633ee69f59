/* SPDX-License-Identifier: Apache-2.0 */
/* From an Accel-Sim trace to ours (import.h), in two passes:
 *
 *   1  each kernel's file: block by block into records, which go to a temporary file as they come; touched pages are
 *   noted
 *   2  allocations, as import_pages.h infers them; then the list's copies and launches, with their blocks in order from
 *   that file
 *
 * Memory has one block's records, an entry of 32 bytes per block, and the map of touched pages. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"
#include "base/text.h"
#include "import/import.h"
#include "import/kernel.h"
#include "import/kernel_list.h"
#include "import/import_pages.h"
#include "trace/file.h"
#include "trace/operations.h"

enum { MISSING_MAX = 1 << 24 }; /* blocks: each of them takes time in simulations, too */

/* a block: where its records are in the temporary file */
typedef struct stored {
  uint64_t number, at, words, line;
} stored;

typedef struct launch {
  kernel_header header;
  FF_VEC(stored) blocks;
} launch;

typedef struct importer {
  list_entries list;
  FF_VEC(launch) launches; /* in the list's order */
  FILE *spool;
  uint64_t spooled; /* words */
  page_map *pages;
  page_allocations allocations;
  kernel_counts counts;
  uint64_t missing;         /* blocks that the traces do not have */
  FF_VEC(uint64_t) streams; /* CUDA's handles; number i + 1 is ours */
  ff_map kernels;           /* name -> number + 1 */
  uint32_t kernel_count;
  kernel_words words; /* of the block at hand */
  trace_file_writer *to;
  uint64_t launched;
  void (*step)(void *context, const import_progress *progress);
  void *context;
  import_progress progress;
} importer;

/* ---- the temporary file ---- */

static ff_status open_spool(importer *im, ff_error *error) {
  const char *folder = getenv("TMPDIR");
  ff_text path = {0};
  ff_text_add(&path, "%s/farfault-import-XXXXXX", folder && *folder ? folder : "/tmp");
  int descriptor = mkstemp(path.chars);
  if (descriptor >= 0) unlink(path.chars);
  im->spool = descriptor >= 0 ? fdopen(descriptor, "w+b") : NULL;
  ff_status status =
      im->spool ? FF_OK
                : ff_fail(error, FF_IO, "%s: a temporary file cannot be made there: %s (TMPDIR names another folder)",
                          path.chars, strerror(errno));
  free(path.chars);
  return status;
}

static ff_status spool_failed(ff_error *error) {
  return ff_fail(error, FF_IO, "the temporary file cannot be written or read: %s (TMPDIR names another folder)",
                 strerror(errno));
}

static ff_status store(importer *im, launch *l, const kernel_block *block, ff_error *error) {
  stored s = {block->number, im->spooled, block->words.count, block->line};
  if (fwrite(block->words.items, sizeof(uint64_t), block->words.count, im->spool) != block->words.count)
    return spool_failed(error);
  im->spooled += block->words.count;
  FF_PUSH(&l->blocks, s);
  return FF_OK;
}

static ff_status load(importer *im, const stored *s, ff_error *error) {
  im->words.count = 0;
  ff_vec_reserve((void **)&im->words.items, &im->words.capacity, s->words, sizeof(uint64_t));
  if (fseeko(im->spool, (off_t)(s->at * sizeof(uint64_t)), SEEK_SET)) return spool_failed(error);
  if (fread(im->words.items, sizeof(uint64_t), s->words, im->spool) != s->words) return spool_failed(error);
  im->words.count = s->words;
  return FF_OK;
}

/* Calls `visit` for each record; false ends it. */
static bool each_record(importer *im, const kernel_words *words, bool (*visit)(importer *im, const uint64_t *record)) {
  for (size_t i = 0; i < words->count;) {
    if (!visit(im, &words->items[i])) return false;
    i += trace_word_kind(words->items[i]) == TRACE_ACCESS ? 2 + trace_access_lines(words->items[i]) : 1;
  }
  return true;
}

/* ---- the first pass ---- */

static bool touch_lines(importer *im, const uint64_t *record) {
  if (trace_word_kind(*record) != TRACE_ACCESS) return true;
  for (uint32_t i = 0; i < trace_access_lines(*record); i++)
    if (!page_map_touch(im->pages, trace_line_address(record[2 + i]))) return false;
  return true;
}

static ff_status read_blocks(importer *im, launch *l, kernel_reader *reader, lines *from, ff_error *error) {
  kernel_block block = {0};
  bool there = true;
  ff_status status;
  im->progress.blocks = l->header.blocks;
  while (!(status = kernel_read_block(reader, &block, &there, error)) && there) {
    if (!each_record(im, &block.words, touch_lines))
      status = lines_fail(from, error, "more than 2 TiB of memory are touched");
    else status = store(im, l, &block, error);
    if (status) break;
    im->progress.block = l->blocks.count;
    if (im->step) im->step(im->context, &im->progress);
  }
  free(block.words.items);
  return status;
}

static int by_number(const void *a, const void *b) {
  const stored *x = a, *y = b;
  return x->number != y->number ? (x->number > y->number) - (x->number < y->number)
                                : (x->line > y->line) - (x->line < y->line);
}

/* In their order; the file may have them in any. */
static ff_status sort_blocks(importer *im, launch *l, const char *file, ff_error *error) {
  if (l->blocks.count) qsort(l->blocks.items, l->blocks.count, sizeof(stored), by_number);
  for (size_t i = 1; i < l->blocks.count; i++)
    if (l->blocks.items[i].number == l->blocks.items[i - 1].number)
      return ff_fail(error, FF_PARSE, "%s:%" PRIu64 ": this thread block was there before, on line %" PRIu64, file,
                     l->blocks.items[i].line, l->blocks.items[i - 1].line);
  im->missing += l->header.blocks - l->blocks.count;
  if (im->missing <= MISSING_MAX) return FF_OK;
  return ff_fail(error, FF_PARSE, "%s: the grid has %" PRIu64 " thread blocks, but only %zu are in the file", file,
                 l->header.blocks, l->blocks.count);
}

static ff_status read_kernel(importer *im, const char *file, ff_error *error) {
  lines *from;
  launch l = {0};
  ff_status status = lines_open(file, &from, error);
  if (status) return status;
  im->progress.file = file;
  im->progress.launch++;
  status = kernel_read_header(from, &l.header, error);
  if (!status) {
    kernel_reader *reader = kernel_reader_create(from, &l.header, &im->counts);
    status = read_blocks(im, &l, reader, from, error);
    kernel_reader_free(reader);
  }
  if (!status) status = sort_blocks(im, &l, file, error);
  lines_close(from);
  if (status) free(l.blocks.items);
  else FF_PUSH(&im->launches, l);
  return status;
}

static ff_status read_all(importer *im, ff_error *error) {
  for (size_t i = 0; i < im->list.count; i++) im->progress.launches += im->list.items[i].file != NULL;
  for (size_t i = 0; i < im->list.count; i++) {
    const list_entry *e = &im->list.items[i];
    if (!e->file) page_map_copy(im->pages, e->address, e->bytes);
    ff_status status = e->file ? read_kernel(im, e->file, error) : FF_OK;
    if (status) return status;
  }
  if (fflush(im->spool)) return spool_failed(error);
  page_map_allocations(im->pages, &im->allocations);
  return FF_OK;
}

/* ---- the second pass ---- */

static void put_allocations(importer *im, import_result *result) {
  uint64_t others = 0;
  for (size_t i = 0; i < im->allocations.count; i++) {
    const page_allocation *a = &im->allocations.items[i];
    trace_op op = {
        .kind = TRACE_OP_ALLOC,
        .alloc = {.address = a->address, .bytes = a->bytes, .memory = TRACE_MEMORY_DEVICE, .id = (uint32_t)i + 1}};
    if (a->copy) snprintf(op.alloc.name, sizeof op.alloc.name, "copied #%" PRIu64, a->copy);
    else snprintf(op.alloc.name, sizeof op.alloc.name, "touched #%" PRIu64, ++others);
    trace_file_put_operation(im->to, &op);
    result->allocated += a->bytes;
  }
  result->allocations = im->allocations.count;
}

static void put_copy(importer *im, const list_entry *e) {
  trace_op op = {.kind = TRACE_OP_COPY, .blocking = true};
  op.copy.direction = e->to_host ? TRACE_D2H : TRACE_H2D;
  *(e->to_host ? &op.copy.from : &op.copy.to) = e->address;
  op.copy.width = op.copy.to_pitch = op.copy.from_pitch = e->bytes;
  op.copy.height = 1;
  trace_file_put_operation(im->to, &op);
}

/* Ours for CUDA's handle; a new one is created. */
static uint32_t stream_of(importer *im, uint64_t handle) {
  if (!handle) return TRACE_STREAM_LEGACY;
  for (size_t i = 0; i < im->streams.count; i++)
    if (im->streams.items[i] == handle) return (uint32_t)i + 1;
  FF_PUSH(&im->streams, handle);
  uint32_t number = (uint32_t)im->streams.count;
  trace_file_put_operation(im->to, &(trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = number});
  return number;
}

static uint32_t kernel_of(importer *im, const char *name) {
  uintptr_t known = (uintptr_t)ff_map_get(&im->kernels, name);
  if (!known) {
    /* the last ones share a number */
    known = im->kernel_count < OPERATION_KERNELS_MAX ? ++im->kernel_count : im->kernel_count;
    ff_map_set(&im->kernels, name, (void *)known);
  }
  return (uint32_t)known - 1;
}

static bool note_uses(importer *im, const uint64_t *record) {
  if (trace_word_kind(*record) != TRACE_ACCESS) return true;
  page_allocation *last = NULL;
  for (uint32_t i = 0; i < trace_access_lines(*record); i++) {
    uint64_t address = trace_line_address(record[2 + i]);
    if (!last || address - last->address >= last->bytes) last = page_allocation_at(&im->allocations, address);
    if (last) last->used_by = im->launched;
  }
  return true;
}

/* The allocations that its accesses reach stand for what its parameters would point to. */
static ff_status find_uses(importer *im, const launch *l, trace_launch *to, ff_error *error) {
  for (size_t i = 0; i < l->blocks.count; i++) {
    ff_status status = load(im, &l->blocks.items[i], error);
    if (status) return status;
    each_record(im, &im->words, note_uses);
  }
  for (size_t i = 0; i < im->allocations.count && to->use_count < TRACE_USES_MAX; i++) {
    const page_allocation *a = &im->allocations.items[i];
    if (a->used_by == im->launched) to->uses[to->use_count++] = (trace_use){a->address, a->bytes};
  }
  return FF_OK;
}

static bool put_record(importer *im, const uint64_t *record) {
  trace_file_put_record(im->to, record);
  return true;
}

static ff_status put_launch(importer *im, const launch *l, ff_error *error) {
  const kernel_header *h = &l->header;
  trace_launch launch = {
      .blocks = h->blocks, .warps_per_block = h->warps, .shared_bytes = h->shared_bytes, .registers = h->registers};
  memcpy(launch.kernel, h->name, sizeof launch.kernel);
  memcpy(launch.grid, h->grid, sizeof launch.grid);
  memcpy(launch.block, h->block, sizeof launch.block);
  launch.kernel_index = kernel_of(im, h->name);
  im->launched++;
  ff_status status = find_uses(im, l, &launch, error);
  if (status) return status;
  uint32_t stream = stream_of(im, h->stream);
  trace_file_put_operation(im->to, &(trace_op){.kind = TRACE_OP_LAUNCH, .stream = stream, .launch = &launch});
  for (size_t i = 0; i < l->blocks.count; i++) {
    status = load(im, &l->blocks.items[i], error);
    if (status) return status;
    trace_file_seek(im->to, l->blocks.items[i].number, 0);
    each_record(im, &im->words, put_record);
  }
  return FF_OK;
}

static ff_status put_all(importer *im, import_result *result, ff_error *error) {
  put_allocations(im, result);
  for (size_t i = 0; i < im->list.count; i++) {
    const list_entry *e = &im->list.items[i];
    if (!e->file) put_copy(im, e);
    ff_status status = e->file ? put_launch(im, &im->launches.items[im->launched], error) : FF_OK;
    if (status) return status;
  }
  trace_file_put_operation(im->to, &(trace_op){.kind = TRACE_OP_SYNC_DEVICE});
  return FF_OK;
}

/* ---- the trace ---- */

enum { NOTES_MAX = 3 };

static uint32_t make_notes(const importer *im, char *notes[NOTES_MAX]) {
  ff_text text[NOTES_MAX] = {{0}};
  uint32_t count = 0;
  ff_text_add(
      &text[count++],
      "imported from an Accel-Sim trace: allocations are inferred from copies and accesses; the host's accesses are not known");
  if (im->missing)
    ff_text_add(&text[count++], "%" PRIu64 " thread blocks are not in the Accel-Sim trace: they do nothing",
                im->missing);
  if (im->counts.bulk)
    ff_text_add(&text[count++], "%" PRIu64 " bulk copies (tensor memory accelerator) are left out", im->counts.bulk);
  for (uint32_t i = 0; i < count; i++) notes[i] = text[i].chars;
  return count;
}

static ff_status finish(importer *im, ff_error *error) {
  const kernel_counts *c = &im->counts;
  char *notes[NOTES_MAX];
  trace_file_about about = {.complete = true, .notes = notes, .note_count = make_notes(im, notes)};
  about.totals = (trace_file_totals){.warp_instructions = c->warp_instructions,
                                     .thread_instructions = c->thread_instructions,
                                     .warp_accesses = c->accesses,
                                     .sectors = c->sectors,
                                     .blocks = c->blocks,
                                     .barriers = c->barriers};
  ff_status status = trace_file_finish(im->to, &about, error);
  im->to = NULL;
  for (uint32_t i = 0; i < about.note_count; i++) free(notes[i]);
  return status;
}

static ff_status write_trace(importer *im, const char *to, const char *command, import_result *result,
                             ff_error *error) {
  trace_file_about about = {.farfault = FARFAULT_VERSION, .command = (char *)(uintptr_t)command};
  trace_file_written written = {0};
  ff_status status = trace_file_create(to, &about, &im->to, error);
  if (status) return status;
  trace_file_tell(im->to, &written);
  status = put_all(im, result, error);
  if (!status) status = finish(im, error);
  trace_file_abandon(im->to);
  result->operations = written.operations;
  result->launches = written.launches;
  result->blocks = written.blocks;
  result->accesses = written.accesses;
  result->bytes = written.bytes;
  return status;
}

/* ---- the list ---- */

static ff_status keep_input(const char *to, const char *file, ff_error *error) {
  if (!ff_output_same(to, file)) return FF_OK;
  return ff_fail(error, FF_INVALID, "%s: is what is read: the trace would take its place", to);
}

static ff_status keep_kernels(const importer *im, const char *to, ff_error *error) {
  ff_status status = FF_OK;
  for (size_t i = 0; i < im->list.count && !status; i++) status = keep_input(to, im->list.items[i].file, error);
  return status;
}

static ff_status read_list(importer *im, const char *from, const char *to, ff_error *error) {
  struct stat info;
  if (stat(from, &info)) return ff_fail(error, FF_NOT_FOUND, "%s: cannot be read: %s", from, strerror(errno));
  ff_text path = {0}, raw = {0};
  ff_text_add(&path, S_ISDIR(info.st_mode) ? "%s/kernelslist.g" : "%s", from);
  ff_text_add(&raw, "%s/kernelslist", from);
  lines *list;
  ff_status status;
  if (S_ISDIR(info.st_mode) && access(path.chars, F_OK) && !access(raw.chars, F_OK))
    status = ff_fail(
        error, FF_PARSE,
        "%s: a raw trace: Accel-Sim's post-traces-processing makes kernelslist.g of it, with the blocks of each kernel together",
        raw.chars);
  else if (!(status = keep_input(to, path.chars, error)) && !(status = lines_open(path.chars, &list, error))) {
    char *slash = strrchr(path.chars, '/');
    ff_text folder = {0};
    if (slash) ff_text_add_bytes(&folder, path.chars, (size_t)(slash - path.chars));
    else ff_text_add(&folder, ".");
    status = list_read(list, folder.chars, &im->list, error);
    if (!status && !im->list.count) status = ff_fail(error, FF_PARSE, "%s: no copy and no kernel is in it", path.chars);
    lines_close(list);
    free(folder.chars);
  }
  free(path.chars);
  free(raw.chars);
  return status;
}

static void importer_free(importer *im) {
  list_free(&im->list);
  for (size_t i = 0; i < im->launches.count; i++) free(im->launches.items[i].blocks.items);
  free(im->launches.items);
  if (im->spool) fclose(im->spool);
  page_map_free(im->pages);
  free(im->allocations.items);
  free(im->streams.items);
  ff_map_free(&im->kernels);
  free(im->words.items);
}

ff_status import_accelsim(const char *from, const char *to, const char *command,
                          void (*step)(void *context, const import_progress *progress), void *context,
                          import_result *result, ff_error *error) {
  importer im = {.pages = page_map_create(), .step = step, .context = context};
  *result = (import_result){0};
  ff_status status = ff_output_check(to, error);
  if (!status) status = read_list(&im, from, to, error);
  if (!status) status = keep_kernels(&im, to, error);
  if (!status) status = open_spool(&im, error);
  if (!status) status = read_all(&im, error);
  if (!status) status = write_trace(&im, to, command, result, error);
  importer_free(&im);
  return status;
}
