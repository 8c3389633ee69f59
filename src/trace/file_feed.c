/* SPDX-License-Identifier: Apache-2.0 */
/* A trace file into a program's access stream, as exec/ and driver/ would have filled it.
 *
 * Operations are appended in the order of the recording, each launch's blocks in their order; a block starts when the
 * throttle lets it (trace_block_wait), and a launch that was opened is finished, after damage, too. A program without
 * marks gets the records that it would get from a file without marks. */
#include <stdlib.h>

#include "base/memory.h"
#include "trace/trace_frame.h"

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
  while (trace_file_take_warp(f->file, &f->writer, f->marks, &f->step.warp_instructions)) {
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
  free(f);
  return status;
}

ff_status trace_file_feed(trace_file *file, trace_program *program, const trace_file_watch *watch, ff_error *error) {
  trace_feed *f = trace_feed_create(file, program, watch);
  f->waits = true;
  while (trace_feed_step(f)) {}
  return trace_feed_free(f, error);
}
