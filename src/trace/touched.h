/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of which the stream has what they touch (footprint.h), and no records of how: for readers that estimate a
 * launch's time from launches before it (machine/sm/sample.h). Executing such a launch costs a fraction.
 *
 *   trace_launch_may_ask(), trace_op_append(LAUNCH), trace_launch_ask() --> each reader: trace_reader_answer(yes or no)
 *       all said yes: trace_launch_touch(), trace_launch_finish()     <--'
 *                                                   --> each reader: trace_reader_touched(): what it touches
 *       else: its blocks' chunks have records, as always
 *                                                   --> each reader: trace_reader_touched(): NULL
 *
 * A reader answers when it has come to the launch, by what it knows from the launches before it; so whether a launch
 * has records depends on the program and on its readers, not on how fast they are. The question waits as all writers
 * do, for readers that work only (trace_private.h); one that waits before it has answered means no.
 *
 * A reader that has said yes may find that it cannot do without. Then it takes chunks, as of other launches: they are
 * made for it alone, and touch the same places, with as many instructions, but in no order that was executed. */
#ifndef FF_TRACE_TOUCHED_H
#define FF_TRACE_TOUCHED_H

#include "trace/footprint.h"
#include "trace/stream.h"

typedef struct trace_touched {
  uint64_t instructions; /* of warps */
  uint64_t count;
  footprint_piece pieces[]; /* sorted (footprint_sort) */
} trace_touched;

/* ---- writers ---- */

/* Before its operation is appended: trace_launch_ask will be called. */
void trace_launch_may_ask(trace_launch *launch);
/* By the thread that has appended the launch, before its first block begins. Waits for the answers, or until another
 * thread finishes the launch, as the process ends. true: it has no chunks, but trace_launch_touch is called when all of
 * it has been executed. */
bool trace_launch_ask(trace_launch *launch);
/* Once, before trace_launch_finish. Sorts the footprint. */
void trace_launch_touch(trace_launch *launch, footprint *touched, uint64_t instructions);

/* ---- readers ---- */

/* The reader answers for each launch. Before the first operation. A program with a reader that does not has records of
 * all launches. */
void trace_reader_answers(trace_reader *reader);
/* In the reader's thread, after it has taken the launch's operation and before the next: does it want no records? Only
 * its first answer counts. */
void trace_reader_answer(trace_reader *reader, trace_launch *launch, bool touched);
/* After that: waits until it is known whether the launch has records; NULL if it has. Else waits until all of it has
 * been executed. Lives until the reader has released or skipped the launch. */
const trace_touched *trace_reader_touched(trace_reader *reader, trace_launch *launch);

#endif
