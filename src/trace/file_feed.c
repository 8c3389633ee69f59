/* SPDX-License-Identifier: Apache-2.0 */
/* A trace file into a program's access stream, as exec/ and driver/ would have filled it.
 *
 * Operations are appended in the order of the recording, each launch's blocks in their order; a block starts when the
 * throttle lets it (trace_block_wait), and a launch that was opened is finished, after damage, too. A program without
 * marks gets the records that it would get from a file without marks.
 *
 * Of a file with footprints the blocks may come later than the operations behind them, or not at all
 * (trace_feed_create_ahead): one reader of the file goes from operation to operation, another one from frame to frame
 * of the launch that lacks blocks. A launch is open until its last block has come or was left out. */
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "trace/ahead.h"
#include "trace/trace_frame.h"

typedef struct open_launch { /* some of its blocks have not come */
  trace_launch *launch;
  uint64_t frame, end; /* of the file, with these blocks */
  uint64_t block;      /* the first of them */
} open_launch;

typedef struct trace_feed feeder;
struct trace_feed {
  trace_program *program;
  trace_file *file;
  trace_launch *launch; /* open; NULL: none */
  trace_chunk *chunk;   /* of the block that is being filled; NULL: none */
  uint64_t block;
  uint32_t warp; /* the one that comes */
  trace_writer writer;
  bool writing; /* the writer is open */
  trace_file_step step;
  const trace_file_watch *watch;
  bool marks; /* the program has them */
  bool waits; /* for room, as exec/ does */
  bool over;
  ff_status status; /* of the file */
  ff_error error;
  /* ahead: */
  trace_file *blocks; /* owned; NULL: blocks come in the order of the operations */
  FF_VEC(open_launch) open;
  bool ended; /* a step has said so */
  void (*idle)(void *context);
  void *idle_context;
};

static void report(feeder *f) {
  if (f->watch && f->watch->step) f->watch->step(f->watch->context, &f->step);
}

/* What is missing of the block: warps that only end. */
static void end_block(feeder *f) {
  if (!f->chunk) return;
  for (; f->warp < f->launch->warps_per_block; f->warp++) {
    if (!f->writing) trace_chunk_writer(f->chunk, f->warp, &f->writer);
    trace_put_exit(&f->writer);
    f->writing = false;
  }
  trace_chunk_publish(f->chunk);
  f->chunk = NULL;
  f->step.blocks++;
  report(f);
}

static void end_launch(feeder *f) {
  if (!f->launch) return;
  end_block(f);
  trace_launch_finish(f->launch);
  f->launch = NULL;
  f->step.launch = NULL;
}

/* ---- operations ---- */

static trace_launch *copy_launch(trace_program *program, const trace_launch *from) {
  trace_launch *launch = trace_launch_create(program, from->blocks, from->warps_per_block);
  struct trace_chunks *chunks = launch->chunks;
  uint64_t id = launch->id;
  *launch = *from;
  launch->chunks = chunks;
  launch->id = id;
  launch->parameters = NULL;
  trace_launch_set_parameters(launch, from->parameters, from->parameter_bytes);
  return launch;
}

static void feed_operation(feeder *f, const trace_op *op) {
  end_launch(f);
  trace_op own = *op;
  if (op->kind == TRACE_OP_MODULE) own.module.ptx = trace_keep(f->program, op->module.ptx, op->module.bytes);
  if (op->kind == TRACE_OP_LAUNCH) own.launch = f->launch = copy_launch(f->program, op->launch);
  trace_op_append(f->program, &own);
  f->step.launch = f->launch;
  f->step.blocks = 0;
  report(f);
}

/* ---- records ---- */

static void begin_block(feeder *f, uint64_t block) {
  end_block(f);
  if (f->waits) trace_block_wait(f->launch, block, -1);
  f->chunk = trace_chunk_begin(f->launch, block);
  f->block = block;
  f->warp = 0;
}

static void end_warp(feeder *f) {
  trace_put_exit(&f->writer);
  f->writing = false;
  f->warp++;
  if (f->warp == f->launch->warps_per_block) end_block(f);
}

/* What follows in the warp at hand, and in the block's further warps, as far as the frame goes. */
static void feed_block(feeder *f) {
  while (trace_file_take_warp(f->blocks ? f->blocks : f->file, &f->writer, f->marks, &f->step.warp_instructions)) {
    end_warp(f);
    if (!f->chunk) return;
    trace_chunk_writer(f->chunk, f->warp, &f->writer);
    f->writing = true;
  }
}

/* The record, and what follows it in its block. */
static void feed_record(feeder *f, const trace_item *item) {
  if (!f->chunk || item->block != f->block) begin_block(f, item->block);
  if (!f->writing) trace_chunk_writer(f->chunk, f->warp, &f->writer);
  f->writing = true;
  if (trace_word_kind(item->record[0]) == TRACE_EXIT) {
    end_warp(f);
    return;
  }
  if (item->words == 1 && !f->marks) {
    trace_copy_word(&f->writer, item->record[0]);
  } else {
    trace_flush_issue(&f->writer);
    uint64_t *room = trace_room(&f->writer, item->words);
    for (uint32_t i = 0; i < item->words; i++) room[i] = item->record[i];
  }
  if (trace_word_kind(item->record[0]) == TRACE_ISSUE) f->step.warp_instructions += trace_issue_count(item->record[0]);
  feed_block(f);
}

/* ---- ahead ---- */

/* All its blocks have come, or none will. */
static void launch_over(feeder *f, size_t at) {
  trace_launch_finish(f->open.items[at].launch);
  f->open.count--;
  for (; at < f->open.count; at++) f->open.items[at] = f->open.items[at + 1];
}

static void give_up(feeder *f, ff_status status) {
  if (!f->status) f->status = status;
  f->over = true;
  while (f->open.count) launch_over(f, f->open.count - 1);
}

static void open_ahead(feeder *f, trace_launch *launch, uint64_t number) {
  const trace_file_info *info = trace_file_information(f->file);
  open_launch own = {.launch = launch, .frame = trace_file_next_frame(f->file)};
  if (own.frame == UINT64_MAX) own.frame = info->frame_count; /* not as file.h says */
  for (own.end = own.frame; own.end < info->frame_count; own.end++)
    if (!info->frames[own.end].open || info->frames[own.end].launch != number) break;
  FF_PUSH(&f->open, own);
  if (own.end == own.frame) launch_over(f, f->open.count - 1);
  else trace_file_go_to(f->file, own.end);
}

static bool step_ahead(feeder *f) {
  trace_item item;
  if (f->over) return false;
  ff_status status = trace_file_next(f->file, &item, &f->error);
  if (status || item.kind == TRACE_ITEM_RECORD) {
    give_up(f, status ? status : ff_fail(&f->error, FF_PARSE, "its blocks are not where footprints have them"));
  } else if (item.kind == TRACE_ITEM_END) {
    f->over = true;
  } else {
    uint64_t number = item.op->kind == TRACE_OP_LAUNCH ? item.op->launch->id : 0;
    feed_operation(f, item.op);
    if (f->launch) open_ahead(f, f->launch, number);
    f->launch = NULL;
    f->step.launch = NULL;
  }
  return !f->over;
}

static size_t find_open(const feeder *f, const trace_launch *launch) {
  size_t at = 0;
  while (at < f->open.count && f->open.items[at].launch != launch) at++;
  return at;
}

bool trace_feed_is_idle(const trace_feed *f) { return f->ended && !f->open.count; }

/* The feed may be gone when it returns. */
static void say_idle(feeder *f) {
  if (trace_feed_is_idle(f)) f->idle(f->idle_context);
}

static void fetch(void *context, const trace_launch *launch) {
  feeder *f = context;
  size_t at = find_open(f, launch);
  trace_item item;
  FF_ASSERT(at < f->open.count);
  open_launch *own = &f->open.items[at];
  f->launch = own->launch;
  f->step.launch = own->launch;
  f->step.blocks = own->block;
  trace_file_go_to(f->blocks, own->frame);
  do {
    ff_status status = trace_file_next(f->blocks, &item, &f->error);
    if (!status && item.kind != TRACE_ITEM_RECORD)
      status = ff_fail(&f->error, FF_PARSE, "its blocks are not where footprints have them");
    if (status) {
      end_block(f);
      give_up(f, status);
      break;
    }
    feed_record(f, &item);
    own->frame = trace_file_next_frame(f->blocks);
  } while (own->frame == UINT64_MAX || f->chunk);
  if (!f->over || f->open.count) {
    own->block = f->block + 1;
    if (own->frame >= own->end) launch_over(f, at);
  }
  f->launch = NULL;
  f->step.launch = NULL;
  say_idle(f);
}

static bool look(void *context, const trace_launch *launch, uint64_t block, uint64_t blocks, uint32_t left_out,
                 footprint *to, uint64_t *instructions) {
  feeder *f = context;
  size_t at = find_open(f, launch);
  if (at == f->open.count || f->open.items[at].block != block) return false;
  uint64_t seen = 0;
  *instructions = 0;
  for (uint64_t frame = f->open.items[at].frame; seen < blocks; frame++) {
    frame_footprint part;
    if (frame == f->open.items[at].end || trace_file_information(f->blocks)->frames[frame].block != block + seen ||
        !trace_file_footprint(f->blocks, frame, seen, to, &part))
      return false;
    seen += part.blocks;
    *instructions += part.instructions[left_out & TRACE_NO_LATE_WAITS ? WITHOUT_LATE_WAITS : WITH_LATE_WAITS];
  }
  return seen == blocks;
}

static void leap(void *context, const trace_launch *launch, uint64_t blocks) {
  feeder *f = context;
  size_t at = find_open(f, launch);
  open_launch *own = &f->open.items[at];
  own->block += blocks;
  while (own->frame < own->end && trace_file_information(f->blocks)->frames[own->frame].block < own->block)
    own->frame++;
  if (own->frame == own->end) launch_over(f, at);
  say_idle(f);
}

ff_status trace_feed_create_ahead(trace_file *file, trace_program *program, const trace_file_watch *watch,
                                  void (*idle)(void *context), void *context, trace_feed **out, ff_error *error) {
  trace_file *blocks;
  ff_status status = trace_file_again(file, &blocks, error);
  if (status) return status;
  feeder *f = *out = trace_feed_create(file, program, watch);
  f->blocks = blocks;
  f->idle = idle;
  f->idle_context = context;
  trace_program_ahead(program, &(trace_ahead){.context = f, .fetch = fetch, .look = look, .leap = leap});
  return FF_OK;
}

/* ---- steps ---- */

trace_feed *trace_feed_create(trace_file *file, trace_program *program, const trace_file_watch *watch) {
  feeder *f = ff_alloc(sizeof *f);
  f->file = file;
  f->program = program;
  f->marks = trace_program_marks(program);
  trace_program_units(program, trace_file_information(file)->about.units);
  f->watch = watch;
  trace_file_rewind(file);
  return f;
}

bool trace_feed_step(trace_feed *f) {
  trace_item item;
  if (f->blocks) {
    f->ended = !step_ahead(f);
    return !f->ended;
  }
  if (f->over) return false;
  f->status = trace_file_next(f->file, &item, &f->error);
  f->over = f->status || item.kind == TRACE_ITEM_END;
  if (!f->over && item.kind == TRACE_ITEM_OPERATION) feed_operation(f, item.op);
  else if (!f->over) feed_record(f, &item);
  if (f->over) end_launch(f);
  return !f->over;
}

ff_status trace_feed_free(trace_feed *f, ff_error *error) {
  end_launch(f);
  ff_status status = f->status;
  if (status) ff_fail(error, status, "%s", f->error.message);
  while (f->open.count) launch_over(f, f->open.count - 1);
  trace_file_close(f->blocks);
  free(f->open.items);
  free(f);
  return status;
}

ff_status trace_file_feed(trace_file *file, trace_program *program, const trace_file_watch *watch, ff_error *error) {
  trace_feed *f = trace_feed_create(file, program, watch);
  f->waits = true;
  while (trace_feed_step(f)) {}
  return trace_feed_free(f, error);
}
