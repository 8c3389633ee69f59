/* SPDX-License-Identifier: Apache-2.0 */
/* A stream whose blocks need not come in the order of the operations: they come when the reader lacks them, and it may
 * leave some out, of which it knows what they touch. Only for a program that is pulled (trace_program_pull), from a
 * file with footprints (trace_feed_create_ahead). */
#ifndef FF_TRACE_AHEAD_H
#define FF_TRACE_AHEAD_H

#include "trace/footprint.h"
#include "trace/stream.h"

/* What is known of blocks is known of so many together, from a multiple of that on. */
#define TRACE_FRAME_BLOCKS 64u

/* All of these are called in the reader's thread. */
typedef struct trace_ahead {
  void *context;
  void (*fetch)(void *context, const trace_launch *launch); /* the launch's next blocks, some at least */
  /* What its next blocks, from `block` on, touch, to an empty footprint, and their instructions for a reader that
   * leaves this out. Changes nothing else. false: that is not known. */
  bool (*look)(void *context, const trace_launch *launch, uint64_t block, uint64_t blocks, uint32_t left_out,
               footprint *to, uint64_t *instructions);
  void (*leap)(void *context, const trace_launch *launch, uint64_t blocks); /* over blocks that were looked at */
} trace_ahead;
/* Before trace_program_pull. */
void trace_program_ahead(trace_program *program, const trace_ahead *ahead);

/* What the launch's next blocks touch, as trace_ahead says it, if none of them has been written. */
bool trace_reader_look(trace_reader *reader, const trace_launch *launch, uint64_t block, uint64_t blocks,
                       uint32_t left_out, footprint *to, uint64_t *instructions);
/* The reader takes none of the blocks that it has just looked at. */
void trace_reader_leap(trace_reader *reader, trace_launch *launch, uint64_t blocks);

#endif
