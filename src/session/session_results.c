/* SPDX-License-Identifier: Apache-2.0 */
/* What the session found, as a file that is whole at any time: collected, written aside, renamed; soon after the start,
 * then about twice a second.
 *
 * Results are written in the C locale, whatever the program has set, so that numbers have a point (checked). The writer
 * holds the session's lock only to copy small things, not while it waits for a simulation or a disk. */
#define _GNU_SOURCE /* sem_clockwait */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/output.h"
#include "session/session_private.h"
#include "session/source_lines.h"

enum { FIRST_PERIOD_MS = 20, PERIOD_MS = 500, COMMAND_LIMIT = 4096 };

/* The command of this process as a shell would take it, at most COMMAND_LIMIT bytes of arguments. */
static char *own_command(void) {
  char *data;
  size_t size;
  if (ff_file_read("/proc/self/cmdline", 1 << 22, &data, &size, NULL)) return NULL;
  ff_text out = {0};
  for (size_t at = 0; at < size && at < COMMAND_LIMIT; at += strlen(data + at) + 1) {
    if (at) ff_text_add(&out, " ");
    ff_text_add_quoted(&out, data + at);
  }
  free(data);
  return out.chars;
}

char *session_command(const session *session) { return session->command ? ff_strdup(session->command) : own_command(); }

static double seconds_since(const struct timespec *start) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

static double seconds(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec / 1e6; }

static void collect_host(session *session, report_host *host) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  host->wall_s = seconds_since(&session->started);
  host->cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  host->peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
  host->process = (uint64_t)session->process;
  host->threads = session->options.threads;
  pthread_mutex_lock(&session->lock);
  exec_stats stats = session->stats;
  host->launches = session->launches;
  host->compiled_launches = session->compiled_launches;
  pthread_mutex_unlock(&session->lock);
  host->warp_instructions = stats.warp_instructions;
  host->thread_instructions = stats.thread_instructions;
  host->warp_accesses = stats.warp_accesses;
  host->sectors = stats.sectors;
  host->blocks = stats.blocks;
  host->divergent_branches = stats.divergent_branches;
  host->barriers = stats.barriers;
  if (session->program) {
    trace_usage stream = trace_program_usage(session->program);
    host->stream_words = stream.words;
    host->stream_peak_bytes = stream.peak_memory_bytes;
    host->stream_spilled_bytes = stream.spilled_bytes;
  }
}

/* Simulations that fall behind, or that ask for the program's future and so begin at its end, have what they lack in a
 * temporary file. */
static void note_spill(session *session, report_run *run) {
  char memory[32];
  trace_usage usage = session->program ? trace_program_usage(session->program) : (trace_usage){0};
  if (!usage.spill_error) return;
  ff_text note = {0};
  ff_text_add(
      &note,
      "the temporary file of the access stream could take no more (%s; TMPDIR chooses another place): %s were kept in memory",
      strerror(usage.spill_error), ff_format_bytes(usage.peak_memory_bytes, memory, sizeof memory));
  if (session_has_recorder(session))
    ff_text_add(&note, ", as managers that know the future read the whole program at its end");
  report_note(run, note.chars);
  free(note.chars);
}

static void collect_notes(session *session, report_run *run) {
  pthread_mutex_lock(&session->lock);
  for (uint32_t i = 0; i < session->notes.note_count; i++) report_note(run, session->notes.notes[i]);
  for (uint32_t i = 0; i < session->notes.stream_count; i++)
    report_name_stream(run, session->notes.streams[i].stream, session->notes.streams[i].name);
  pthread_mutex_unlock(&session->lock);
  note_spill(session, run);
}

/* First the history and the lines: their kernels are among the snapshot's. */
static void collect_result(sim *sim, bool whole, sim_result *result) {
  sim_result lines = {0};
  sim_history *kept = whole ? sim_history_take(sim) : NULL;
  if (whole) sim_lines_take(sim, &lines);
  sim_snapshot(sim, result);
  result->history = kept;
  result->lines_kept = lines.lines_kept;
  result->lines = lines.lines;
  result->line_count = lines.line_count;
  result->codes = lines.codes;
  result->code_count = lines.code_count;
  if (result->profiled) sim_result_drop_idle(result);
}

static void note_profile(const session *session, report_run *run) {
  if (!run->result_count || !run->results[0].profiled) return;
  uint64_t ranges = 0, kernels = 0;
  bool failed = false;
  for (uint32_t i = 0; i < run->result_count; i++) {
    if (run->results[i].profiles > ranges) ranges = run->results[i].profiles;
    kernels += run->results[i].kernel_count;
    failed = failed || run->results[i].error[0];
  }
  ff_text note = {0};
  if (ranges)
    ff_text_add(&note, "only what happened in profile ranges is counted: %" PRIu64 " range%s%s", ranges,
                ranges == 1 ? "" : "s", kernels || failed ? "" : ", in which the program launched no kernel");
  else
    ff_text_add(&note, "nothing is counted: only what happens in profile ranges is, and the program began none%s",
                session->options.profile_nvtx[0]
                    ? ""
                    : ": it has not called cudaProfilerStart (--profile-range=NAME is for ranges of NVTX)");
  report_note(run, note.chars);
  free(note.chars);
}

void session_collect(session *session, bool complete, bool whole, report_run *run) {
  *run = (report_run){.complete = complete, .command = session_command(session)};
  snprintf(run->version, sizeof run->version, "%s", FARFAULT_VERSION);
  run->results = ff_alloc(session->manager_count * sizeof *run->results);
  run->result_count = session->manager_count;
  for (uint32_t i = 0; i < session->manager_count; i++) {
    collect_result(session->managers[i].sim, whole, &run->results[i]);
    run->results[i].device = session->device_count > 1 ? session->managers[i].choice.options.device_index + 1 : 0;
    snprintf(run->results[i].machine, sizeof run->results[i].machine, "%s", session->machine);
    if (!run->results[i].complete && !run->results[i].error[0]) run->complete = false;
  }
  if (whole) source_lines_fill(run->results, run->result_count);
  note_profile(session, run);
  collect_notes(session, run);
  for (uint32_t i = 0; i < run->result_count; i++) report_note_thrashing(run, &run->results[i]);
  collect_host(session, &run->host);
}

const char *const session_other_folders[] = {"/dev/shm", "/var/tmp", "/tmp", NULL};

char *session_elsewhere(const char *results, const char *other) {
  const char *file = strrchr(results, '/'), *folder = file;
  while (folder && folder > results && folder[-1] != '/') folder--;
  if (!folder || strncmp(folder, SESSION_FOLDER, sizeof SESSION_FOLDER - 1)) return NULL;
  ff_text path = {0};
  ff_text_add(&path, "%s/%.*s-%s", other, (int)(file - folder), folder, file + 1);
  return path.chars;
}

/* The results' folder has no room: another place has, where the command that made the folder looks, too. */
static bool write_elsewhere(session *session, const ff_text *text) {
  bool written = false;
  for (int i = 0; session_other_folders[i] && !written; i++) {
    char *path = session_elsewhere(session->results, session_other_folders[i]);
    written = path && !ff_file_write_scratch(path, text->chars, text->length, NULL);
    free(path);
  }
  session->elsewhere = session->elsewhere || written;
  return written;
}

static void forget_elsewhere(session *session) {
  for (int i = 0; session_other_folders[i] && session->elsewhere; i++) {
    char *path = session_elsewhere(session->results, session_other_folders[i]);
    unlink(path);
    free(path);
  }
  session->elsewhere = false;
}

/* Where nothing can be written at all (all disks are full), an empty file may still say that there was something to
 * write. */
static void write_file(session *session, const report_run *run) {
  if (!session->results) return;
  ff_text text = {0};
  report_json_write_whole(run, &text);
  if (!ff_file_write_scratch(session->results, text.chars, text.length, NULL)) {
    forget_elsewhere(session);
  } else if (!write_elsewhere(session, &text)) {
    int fd = open(session->results, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
  }
  free(text.chars);
}

/* The one that thrashes most. The name is written once, before the number that says that it is there. */
static void show_thrashing(session *session, const report_run *run) {
  const sim_result *worst = NULL;
  for (uint32_t i = 0; i < run->result_count; i++)
    if (!worst || sim_thrashes(&run->results[i]) > sim_thrashes(worst)) worst = &run->results[i];
  if (!worst || sim_thrashes(worst) == 0) return;
  snprintf(session->progress->thrashing, sizeof session->progress->thrashing, "%.63s", worst->memory);
  session->progress->thrashing_times = (uint64_t)sim_thrashes(worst);
}

/* The progress display asks how far the slowest simulation is. */
static void show_progress(session *session, const report_run *run) {
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < run->result_count; i++)
    if (!run->results[i].error[0] && run->results[i].counters.warp_instructions < least) {
      least = run->results[i].counters.warp_instructions;
      session->progress->simulated_ps = run->results[i].counters.time_ps;
    }
  if (least != UINT64_MAX) session->progress->simulated_instructions = least;
  show_thrashing(session, run);
}

static void write_results(session *session, bool complete, bool history) {
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), old = uselocale(c);
  FF_CHECK(!strcmp(localeconv()->decimal_point, "."));
  report_run run;
  session_collect(session, complete, history, &run);
  show_progress(session, &run);
  if (session->options.take) {
    session->options.take(session->options.take_context, &run);
  } else {
    write_file(session, &run);
    report_free(&run);
  }
  uselocale(old);
  freelocale(c);
}

void session_write_results(session *session, bool complete) { write_results(session, complete, false); }
void session_write_final_results(session *session, bool complete) { write_results(session, complete, true); }

static void wait_for_wake(session *session, unsigned milliseconds) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += milliseconds * 1000000L;
  until.tv_sec += until.tv_nsec / 1000000000L;
  until.tv_nsec %= 1000000000L;
  while (sem_clockwait(&session->ending.wake, CLOCK_MONOTONIC, &until) && errno == EINTR) {}
}

void *session_writer(void *argument) {
  session *session = argument;
  for (unsigned period = FIRST_PERIOD_MS;; period = period * 2 < PERIOD_MS ? period * 2 : PERIOD_MS) {
    wait_for_wake(session, period);
    if (session->ending.number) session_write_ending(session);
    if (session->stopping || session->ending.number) return NULL;
    session_write_results(session, false);
  }
}
