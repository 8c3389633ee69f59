/* SPDX-License-Identifier: Apache-2.0 */
/* From a trace file to a session's access stream.
 *
 * The same machine, managers and options give the same results as when the program ran with them (test_session.c). */
#include "session/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "session/near_data.h"
#include "session/session_private.h"
#include "trace/origin.h"

static void show(void *context, const trace_file_step *step) {
  session_progress *progress = context;
  progress->warp_instructions = step->warp_instructions;
  if (!step->launch) return;
  if (!step->blocks) {
    progress->launches++;
    snprintf(progress->kernel, sizeof progress->kernel, "%.127s", step->launch->kernel);
    progress->blocks_total = step->launch->blocks;
  }
  progress->blocks_done = step->blocks;
}

static void add_totals(session *session, const trace_file_totals *t) {
  exec_stats stats = {.warp_instructions = t->warp_instructions,
                      .thread_instructions = t->thread_instructions,
                      .warp_accesses = t->warp_accesses,
                      .sectors = t->sectors,
                      .blocks = t->blocks,
                      .divergent_branches = t->divergent_branches,
                      .barriers = t->barriers};
  session_add_exec(session, &stats);
}

/* What the program's own run would have said of it, and that the trace has only a part. */
static void add_notes(session *session, const trace_file_info *info) {
  for (uint32_t i = 0; i < info->about.note_count; i++) session_note(session, info->about.notes[i]);
  if (!info->whole) session_note(session, REPORT_NOTE_RECORDING " was cut off: it ends early");
  else if (!info->about.complete) session_note(session, "the recorded program was ended by a signal");
}

static void note_damage(session *session, const ff_error *error) {
  ff_text note = {0};
  ff_text_add(&note, REPORT_NOTE_RECORDING " is damaged%s%s", error ? ": " : "", error ? error->message : "");
  session_note(session, note.chars);
  free(note.chars);
}

typedef struct puller {
  trace_feed *feed;
  session *session;
  sem_t over;
  bool ahead; /* blocks come when they are asked for */
} puller;

/* In the simulation's thread. */
static void pull(void *context) {
  puller *p = context;
  if (trace_feed_step(p->feed)) return;
  session_end_stream(p->session);
  if (!p->ahead || trace_feed_is_idle(p->feed)) sem_post(&p->over);
}

static void idle(void *context) {
  puller *p = context;
  sem_post(&p->over);
}

/* One simulation reads the file itself, when it needs more: nothing passes between processors, no thread waits. Blocks
 * that sampling leaves out are not read, if the file has footprints. */
static ff_status feed_one(session *session, trace_file *file, const trace_file_watch *watch, ff_error *error) {
  const trace_file_info *info = trace_file_information(file);
  puller p = {.session = session,
              .ahead = info->whole && info->about.footprints && session->managers[0].choice.options.sample};
  sem_init(&p.over, 0, 0);
  ff_status status = FF_OK;
  if (p.ahead) status = trace_feed_create_ahead(file, session_program(session), watch, idle, &p, &p.feed, error);
  else p.feed = trace_feed_create(file, session_program(session), watch);
  if (status) {
    sem_destroy(&p.over);
    return status;
  }
  trace_program_pull(session_program(session), pull, &p);
  while (sem_wait(&p.over)) {}
  sem_destroy(&p.over);
  return trace_feed_free(p.feed, error);
}

static ff_status feed(session *session, trace_file *file, const trace_file_watch *watch, ff_error *error) {
  trace_program *program = session_program(session);
  if (!program) return FF_OK;
  if (session->manager_count == 1 && !session_has_recorder(session) && !session->recording)
    return feed_one(session, file, watch, error);
  /* A simulation that asks for the future reads it all at the program's end: it is better kept in memory then. */
  if (!session_has_recorder(session)) trace_program_limit(program, TRACE_FEED_BYTES);
  return trace_file_feed(file, program, watch, error);
}

/* The first pass over the trace, if there must be one, shown as such. */
static ff_status prepare(trace_file *file, session_options *options, near_data **data, ff_error *error) {
  size_t mapped;
  session_progress own = {0}, *area = session_progress_map(options->progress, &mapped);
  trace_file_watch watch = {.step = show, .context = area ? area : &own};
  if (area) area->first_pass = 1;
  ff_status status = near_data_prepare(file, options, &watch, data, error);
  if (!area) return status;
  memset((void *)area, 0, sizeof *area);
  munmap(area, mapped);
  return status;
}

static ff_status simulate(trace_file *file, const session_options *options, const char *problem, ff_error *error) {
  const trace_file_info *info = trace_file_information(file);
  session *session;
  ff_status status = session_create(options, &session, error);
  if (status) return status;
  session_set_command(session, info->about.command && *info->about.command ? info->about.command : "?");
  add_notes(session, info);
  if (problem) session_note(session, problem);
  add_totals(session, &info->about.totals);
  trace_file_watch watch = {.step = show, .context = session_progress_area(session)};
  status = feed(session, file, &watch, error);
  if (status) note_damage(session, error);
  if (status || !info->about.complete) session_break_off(session);
  session_free(session);
  return status;
}

uint32_t replay_devices(trace_file *file) {
  trace_item item;
  uint32_t devices = 1;
  if (!trace_file_next(file, &item, NULL) && item.kind == TRACE_ITEM_OPERATION) devices = trace_devices_named(item.op);
  trace_file_rewind(file);
  return devices;
}

ff_status replay_run(trace_file *file, const session_options *options, ff_error *error) {
  session_options own = *options;
  near_data *data;
  ff_status status = prepare(file, &own, &data, error);
  if (!status) status = simulate(file, &own, near_data_problem(data), error);
  near_data_free(data);
  return status;
}
