/* SPDX-License-Identifier: Apache-2.0 */
/* A session's recording: a reader of the access stream, in a thread of its own, that writes what it reads into a trace
 * file.
 *
 * A thread that writes to the file holds the recording's lock, so that a program that a signal ends leaves a whole file
 * with all records up to then. The file says whether the program ended by itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "session/session_private.h"
#include "trace/file.h"

struct recording {
  trace_reader *reader;
  pthread_mutex_t lock;
  trace_file_writer *writer; /* NULL: finished; under the lock */
  atomic_bool over;          /* the reader has come to the program's end */
};

static void record_warp(recording *r, trace_chunk *chunk, uint32_t warp) {
  trace_cursor cursor;
  trace_cursor_open(r->reader, chunk, warp, &cursor);
  for (;;) {
    const uint64_t *record = trace_cursor_next(r->reader, &cursor);
    trace_file_put_record(r->writer, record);
    if (trace_word_kind(*record) == TRACE_EXIT) break;
  }
  trace_cursor_close(r->reader, &cursor);
}

/* false: the recording was finished meanwhile. */
static bool record_block(recording *r, trace_launch *launch, uint64_t block) {
  trace_chunk *chunk = trace_reader_chunk(r->reader, launch, block);
  pthread_mutex_lock(&r->lock);
  bool going = r->writer != NULL;
  for (uint32_t w = 0; going && w < launch->warps_per_block; w++) record_warp(r, chunk, w);
  pthread_mutex_unlock(&r->lock);
  trace_reader_release(r->reader, chunk);
  return going;
}

static bool record_operation(recording *r, const trace_op *op) {
  pthread_mutex_lock(&r->lock);
  bool going = r->writer != NULL;
  if (going) trace_file_put_operation(r->writer, op);
  pthread_mutex_unlock(&r->lock);
  return going;
}

void *recording_run(void *argument) {
  recording *r = argument;
  bool going = true;
  for (const trace_op *op; (op = trace_reader_next_op(r->reader));) {
    going = going && record_operation(r, op);
    if (op->kind != TRACE_OP_LAUNCH) continue;
    uint64_t block = 0;
    while (going && block < op->launch->blocks) going = record_block(r, op->launch, block++);
    if (block < op->launch->blocks) trace_reader_skip(r->reader, op->launch);
  }
  trace_reader_waits(r->reader, true);
  r->over = true;
  return NULL;
}

ff_status recording_create(session *session, recording **out, ff_error *error) {
  trace_file_about about = {.command = session_command(session),
                            .machine = session->options.machine,
                            .marks = trace_program_marks(session->program)};
  snprintf(about.farfault, sizeof about.farfault, "%s", FARFAULT_VERSION);
  char *path = session_own_path(session, session->options.record);
  trace_file_writer *writer;
  ff_status status = trace_file_create_part(path, &about, &writer, error);
  free(about.command);
  free(path);
  if (status) return status;
  recording *r = ff_alloc(sizeof *r);
  *r = (recording){.reader = trace_reader_create(session->program), .writer = writer};
  pthread_mutex_init(&r->lock, NULL);
  *out = r;
  return FF_OK;
}

bool recording_is_over(const recording *r) { return !r || r->over; }

void recording_finish(session *session, bool complete) {
  recording *r = session->recording;
  if (!r) return;
  trace_file_about about = {.complete = complete && r->over};
  report_run notes = {0};
  pthread_mutex_lock(&session->lock);
  const exec_stats *s = &session->stats;
  about.totals = (trace_file_totals){.warp_instructions = s->warp_instructions,
                                     .thread_instructions = s->thread_instructions,
                                     .warp_accesses = s->warp_accesses,
                                     .sectors = s->sectors,
                                     .blocks = s->blocks,
                                     .divergent_branches = s->divergent_branches,
                                     .barriers = s->barriers};
  for (uint32_t i = session->own_notes; i < session->notes.note_count; i++)
    report_note(&notes, session->notes.notes[i]);
  pthread_mutex_unlock(&session->lock);
  about.notes = notes.notes;
  about.note_count = notes.note_count;
  pthread_mutex_lock(&r->lock);
  trace_file_writer *writer = r->writer;
  r->writer = NULL;
  ff_error error;
  if (writer && trace_file_finish(writer, &about, &error)) fprintf(stderr, "farfault: %s\n", error.message);
  pthread_mutex_unlock(&r->lock);
  report_free(&notes);
}

void recording_free(recording *r) {
  if (!r) return;
  trace_file_abandon(r->writer);
  trace_reader_free(r->reader);
  pthread_mutex_destroy(&r->lock);
  free(r);
}
