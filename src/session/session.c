/* SPDX-License-Identifier: Apache-2.0 */
/* The wiring: machine, access stream, one simulation per manager in its own thread, the thread that writes results.
 *
 *   session_create --> program runs: trace_op_append, exec_launch, session_add_exec --> session_finish --> session_free
 *
 * The simulations are made before the first operation can be appended (trace_reader_create asserts it). The session's
 * threads take no signals, so that the program's handlers run where they would without farfault. A process that the
 * program forked leaves the session of its parent alone.
 *
 * Invariants (session_check, at the deep level, when a session has been made and when it ends):
 *     managers == devices that are simulated * managers that were named, each with a simulation of a simulated device
 *     a simulation that needs the future has a recorder on its device; only devices of the session have recorders
 *     there is a stream exactly if a simulation or a recording reads it */
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/rank.h"
#include "session/session_private.h"

/* "machines/h200.yaml" -> "h200" */
static void set_short_name(session *session) {
  const char *slash = strrchr(session->options.machine, '/');
  snprintf(session->machine, sizeof session->machine, "%.63s", slash ? slash + 1 : session->options.machine);
  char *dot = strrchr(session->machine, '.');
  if (dot && !strcmp(dot, ".yaml")) *dot = '\0';
}

/* Applies "NAME=VALUE,NAME=VALUE" to the machine that the program finds, too. */
static ff_status apply_settings(session *session, ff_error *error) {
  const char *set = session->options.choices.set;
  if (!*set) return FF_OK;
  ff_text note = {0};
  ff_text_add(&note, "machine %s with %s", session->machine, set);
  report_note(&session->notes, note.chars);
  free(note.chars);
  return machine_spec_set_all(&session->spec, set, error);
}

static void note_gpu_memory(session *session) {
  char own[32], given[32];
  if (session->managed_memory == session->spec.memory_bytes) return;
  ff_text note = {0};
  if (session->managed_share > 0)
    ff_text_add(&note, "the managers have %s of what the program allocates as GPU memory",
                session->options.choices.text[SIM_CHOICE_GPU_MEMORY]);
  else
    ff_text_add(&note, "machine %s with %s of memory instead of %s", session->machine,
                ff_format_bytes(session->managed_memory, given, sizeof given),
                ff_format_bytes(session->spec.memory_bytes, own, sizeof own));
  report_note(&session->notes, note.chars);
  free(note.chars);
}

static void note_choice(session *session, const sim_choice_info *choice, const char *value) {
  ff_text note = {0};
  ff_text_add(&note, "%s with --%s %s", choice->pages ? "paged managers" : "all managers", choice->name, value);
  report_note(&session->notes, note.chars);
  free(note.chars);
}

/* --gpu-memory: bytes, or a share of what the program will have allocated, which is not known yet. */
static ff_status parse_memory(session *session, ff_error *error) {
  const char *text = session->options.choices.text[SIM_CHOICE_GPU_MEMORY];
  session->gpu_memory = session->managed_memory = session->spec.memory_bytes;
  if (!*text) return FF_OK;
  ff_status status = sim_memory_read(text, &session->spec, &session->managed_memory, &session->managed_share, error);
  if (status) return ff_fail_at(error, status, "GPU memory");
  if (session->gpu_memory < session->managed_memory) session->gpu_memory = session->managed_memory;
  note_gpu_memory(session);
  return FF_OK;
}

static ff_status check_choices(session *session, ff_error *error) {
  for (int i = 0; i < SIM_CHOICE_COUNT; i++) {
    const char *text = session->options.choices.text[i];
    if (!*text || i == SIM_CHOICE_GPU_MEMORY) continue;
    ff_status status = sim_choice_check((sim_choice_id)i, text, &session->spec, error);
    if (status) return ff_fail_at(error, status, sim_choice_infos[i].name);
    note_choice(session, &sim_choice_infos[i], text);
  }
  return FF_OK;
}

/* The SMs that kernels are bound to must be there. */
static ff_status check_sm_range(session *session, ff_error *error) {
  uint32_t first = session->options.sm_first, count = session->options.sm_count, sms = (uint32_t)session->spec.sm_count;
  ff_text note = {0};
  if (!count) return FF_OK;
  if (first + count > sms)
    return ff_fail(error, FF_INVALID, "kernels cannot be bound to SMs %u to %u: %s has %u, numbered from 0", first,
                   first + count - 1, session->machine, sms);
  ff_text_add(&note, "kernels are bound to SMs %u to %u of %u, by persistent blocks", first, first + count - 1, sms);
  report_note(&session->notes, note.chars);
  free(note.chars);
  return FF_OK;
}

static ff_status load_machine(session *session, ff_error *error) {
  if (!session->options.machine[0]) strcpy(session->options.machine, MACHINE_DEFAULT);
  ff_status status = machine_spec_load(session->options.machine, &session->spec, error);
  if (status) return status;
  set_short_name(session);
  if (session->spec.gpus && session->options.devices > session->spec.gpus)
    return ff_fail(error, FF_INVALID, "%s has %u GPU%s, not %u", session->machine, (unsigned)session->spec.gpus,
                   session->spec.gpus == 1 ? "" : "s", session->options.devices);
  if ((status = apply_settings(session, error))) return status;
  if ((status = check_sm_range(session, error))) return status;
  if ((status = parse_memory(session, error))) return status;
  return check_choices(session, error);
}

session_progress *session_progress_map(const char *path, size_t *mapped) {
  *mapped = 0;
  if (!path[0]) return NULL;
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return NULL;
  void *area = MAP_FAILED;
  if (ftruncate(fd, sizeof(session_progress)) == 0)
    area = mmap(NULL, sizeof(session_progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (area == MAP_FAILED) return NULL;
  *mapped = sizeof(session_progress);
  return area;
}

/* The file that `farfault run` made for the progress area; without one, the session's own memory serves. */
static void map_progress(session *session) {
  session->progress = session_progress_map(session->options.progress, &session->progress_mapped);
  if (!session->progress) session->progress = &session->own_progress;
}

bool session_has_recorder(const session *session) {
  for (uint32_t d = 0; d < TRACE_DEVICES_MAX; d++)
    if (session->recorders[d].sim) return true;
  return false;
}

/* "copy@1": in results that are told apart by their names. */
static ff_status name_device(sim_choice *choice, uint32_t device, ff_error *error) {
  size_t length = strlen(choice->label);
  int more = snprintf(choice->label + length, sizeof choice->label - length, "@%u", device);
  return more < (int)(sizeof choice->label - length) ? FF_OK : ff_fail(error, FF_LIMIT, "the name is too long");
}

static ff_status add_manager(session *session, const char *text, uint32_t device, ff_error *error) {
  if (session->manager_count == SESSION_MANAGER_LIMIT)
    return ff_fail(error, FF_LIMIT,
                   session->device_count > 1 ? "more than %d memory managers and devices at once"
                                             : "more than %d memory managers at once",
                   SESSION_MANAGER_LIMIT);
  sim_choice *choice = &session->managers[session->manager_count].choice;
  ff_status status = sim_choice_read(text, &session->options.choices, &session->spec, choice, error);
  if (!session->recorders[device].future) session->recorders[device].future = trace_future_create();
  choice->options.device_index = device;
  choice->options.peers = session->device_count > 1 ? session->peers[session->peers_count - 1] : NULL;
  if (!status && session->device_count > 1) status = name_device(choice, device, error);
  choice->options.future = session->recorders[device].future;
  choice->options.history = session->options.history;
  choice->options.lines = session->options.lines;
  choice->options.profile = session->options.profile;
  choice->options.offloading = session->options.offloading;
  if (!status)
    status = sim_create(session->program, &choice->options, &session->managers[session->manager_count].sim, error);
  if (status) return ff_fail_at(error, status, text);
  if (session->gpu_memory < choice->options.gpu_memory) session->gpu_memory = choice->options.gpu_memory;
  session->manager_count++;
  return FF_OK;
}

static ff_status add_managers(session *session, ff_error *error) {
  char names[sizeof session->options.managers], *rest = NULL;
  strcpy(names, session->options.managers);
  for (char *name = strtok_r(names, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
    if (!session->program) {
      session->program = trace_program_create(session->options.stream_bytes);
      trace_program_mark(session->program, session->options.marks);
      trace_program_units(session->program, true);
    }
    if (session->device_count > 1 && session->peers_count < SESSION_MANAGER_LIMIT)
      session->peers[session->peers_count++] = sim_peers_create(session->device_first, session->device_count);
    for (uint32_t d = 0; d < session->device_count; d++) {
      ff_status status = add_manager(session, name, session->device_first + d, error);
      if (status) return status;
    }
  }
  return FF_OK;
}

/* A simulation that asks for the future gets it from a further one, under the manager `ideal`. */
static ff_status add_recorders(session *session, ff_error *error) {
  ff_status status = FF_OK;
  for (uint32_t i = 0; i < session->manager_count && !status; i++) {
    uint32_t device = session->managers[i].choice.options.device_index;
    if (!sim_needs_future(session->managers[i].sim) || session->recorders[device].sim) continue;
    sim_options options = {.device_index = device,
                           .spec = &session->spec,
                           .manager = "ideal",
                           .future = session->recorders[device].future,
                           .records_future = true};
    status = sim_create(session->program, &options, &session->recorders[device].sim, error);
  }
  return status;
}

static void *run_manager(void *argument) {
  sim_run(argument);
  return NULL;
}

static ff_status start_thread(pthread_t *thread, void *(*run)(void *), void *argument, ff_error *error) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int failed = pthread_create(thread, NULL, run, argument);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return failed ? ff_fail(error, FF_IO, "cannot start a thread: %s", strerror(failed)) : FF_OK;
}

void session_end_stream(session *session) {
  trace_op end = {.kind = TRACE_OP_END};
  if (session->program && !atomic_exchange(&session->stream_ended, true)) trace_op_append(session->program, &end);
}

/* Ends the stream and joins the first `started` simulations: the way out of a half-made session, too. The recording and
 * the recorder were started before them. No simulation waits for one that was not started. */
static void end_simulations(session *session, uint32_t started) {
  session_end_stream(session);
  for (uint32_t i = started; i < session->manager_count; i++) sim_withdraw(session->managers[i].sim);
  if (session->recording) pthread_join(session->recording_thread, NULL);
  for (uint32_t d = 0; d < TRACE_DEVICES_MAX; d++)
    if (session->recorders[d].started) pthread_join(session->recorders[d].thread, NULL);
  for (uint32_t i = 0; i < started; i++) pthread_join(session->managers[i].thread, NULL);
}

static ff_status start_recorders(session *session, ff_error *error) {
  ff_status status = FF_OK;
  if (session->recording) status = start_thread(&session->recording_thread, recording_run, session->recording, error);
  if (status) {
    session_end_stream(session);
    return status;
  }
  for (uint32_t d = 0; d < TRACE_DEVICES_MAX && !status; d++) {
    if (!session->recorders[d].sim) continue;
    status = start_thread(&session->recorders[d].thread, run_manager, session->recorders[d].sim, error);
    session->recorders[d].started = !status;
  }
  if (status) end_simulations(session, 0);
  return status;
}

static ff_status start_threads(session *session, ff_error *error) {
  ff_status started = start_recorders(session, error);
  if (started) return started;
  for (uint32_t i = 0; i < session->manager_count; i++) {
    ff_status status = start_thread(&session->managers[i].thread, run_manager, session->managers[i].sim, error);
    if (status) {
      end_simulations(session, i);
      return status;
    }
  }
  if (session->options.take) return FF_OK;
  ff_status status = start_thread(&session->writer, session_writer, session, error);
  if (status) end_simulations(session, session->manager_count);
  return status;
}

static void release(session *session) {
  for (uint32_t i = 0; i < session->manager_count; i++) sim_free(session->managers[i].sim);
  for (uint32_t d = 0; d < TRACE_DEVICES_MAX; d++) sim_free(session->recorders[d].sim);
  for (uint32_t i = 0; i < session->peers_count; i++) sim_peers_free(session->peers[i]);
  recording_free(session->recording);
  for (uint32_t d = 0; d < TRACE_DEVICES_MAX; d++) trace_future_free(session->recorders[d].future);
  if (session->program) trace_program_free(session->program);
  if (session->progress_mapped) munmap(session->progress, session->progress_mapped);
  report_free(&session->notes);
  free(session->results);
  free(session->command);
  ff_ending_free(&session->ending);
  pthread_mutex_destroy(&session->lock);
  free(session);
}

/* The option's path with "%p" replaced by the process number, of a rank of mpirun's by "rRANK-NUMBER"; a program that
 * another one of the same process number exec'ed gets "NUMBER.2", so that the first one's numbers stay. */
static char *results_path(const char *pattern, pid_t process, unsigned copy) {
  const char *number = strstr(pattern, "%p");
  int rank = ff_rank();
  ff_text path = {0};
  ff_text_add(&path, "%.*s", number ? (int)(number - pattern) : (int)strlen(pattern), pattern);
  if (number && rank >= 0) ff_text_add(&path, "r%d-", rank);
  if (number) ff_text_add(&path, "%ld", (long)process);
  if (number && copy > 1) ff_text_add(&path, ".%u", copy);
  if (number) ff_text_add(&path, "%s", number + 2);
  return path.chars;
}

char *session_own_path(const session *session, const char *pattern) {
  char *path = results_path(pattern, session->process, 1);
  for (unsigned copy = 2; copy < 1000 && strstr(pattern, "%p") && access(path, F_OK) == 0; copy++) {
    free(path);
    path = results_path(pattern, session->process, copy);
  }
  return path;
}

static ff_status add_recording(session *session, ff_error *error) {
  if (!session->options.record[0]) return FF_OK;
  if (!session->program) session->program = trace_program_create(session->options.stream_bytes);
  trace_program_mark(session->program, true);
  trace_program_units(session->program, true);
  return recording_create(session, &session->recording, error);
}

static void note_device(session *session) {
  ff_text note = {0};
  ff_text_add(&note, "device %u of the program's %u; the host waits for no other", session->device_first,
              session->options.devices);
  if (session->options.devices > 1) report_note(&session->notes, note.chars);
  free(note.chars);
}

/* With one thread the order of blocks depends on the program alone. The simulations, which run in parallel to it, take
 * most of the time. */
static void choose_threads(session *session) {
  uint32_t chosen = session->options.threads;
  if (!session->program) return;
  if (!chosen) session->options.threads = 1;
  if (chosen <= 1) return;
  ff_text note = {0};
  ff_text_add(
      &note,
      "%u threads executed kernels: if blocks race, numbers may differ from run to run (without --threads they do not)",
      chosen);
  report_note(&session->notes, note.chars);
  free(note.chars);
}

static ff_status set_up(session *session, ff_error *error) {
  if (session->options.problem[0]) return ff_fail(error, FF_INVALID, "%s", session->options.problem);
  session->device_count = session->options.devices ? session->options.devices : 1;
  if (session->options.device) {
    session->device_first = session->options.device - 1;
    session->device_count = 1;
    note_device(session);
  }
  map_progress(session);
  ff_status status = load_machine(session, error);
  if (!status) status = add_managers(session, error);
  if (!status) status = add_recorders(session, error);
  if (!status) status = add_recording(session, error);
  if (status) return status;
  if (session->options.results[0] && !session->options.take)
    session->results = session_own_path(session, session->options.results);
  session->own_notes = session->notes.note_count;
  choose_threads(session); /* its note goes into a recording, too */
  if (!session->options.take) session_write_results(session, false);
  return start_threads(session, error);
}

static void session_check(const session *s) {
  uint32_t end = s->device_first + s->device_count;
  FF_ASSERT(s->device_count && end <= TRACE_DEVICES_MAX && s->manager_count % s->device_count == 0);
  FF_ASSERT(s->peers_count == (s->device_count > 1 ? s->manager_count / s->device_count : 0));
  for (uint32_t i = 0; i < s->manager_count; i++) {
    uint32_t device = s->managers[i].choice.options.device_index;
    FF_ASSERT(s->managers[i].sim && device >= s->device_first && device < end);
    FF_ASSERT(!sim_needs_future(s->managers[i].sim) || s->recorders[device].started);
  }
  for (uint32_t d = 0; d < TRACE_DEVICES_MAX; d++) {
    FF_ASSERT(!s->recorders[d].sim == !s->recorders[d].started);
    FF_ASSERT(!s->recorders[d].sim || (s->recorders[d].future && d >= s->device_first && d < end));
  }
  FF_ASSERT(!s->program == !(s->manager_count || s->recording) && s->own_notes <= s->notes.note_count);
  FF_ASSERT(s->progress && (s->finished || !s->stopping));
}

ff_status session_create(const session_options *options, session **out, ff_error *error) {
  session *session = ff_alloc(sizeof *session);
  session->options = *options;
  session->process = getpid();
  clock_gettime(CLOCK_MONOTONIC, &session->started);
  pthread_mutex_init(&session->lock, NULL);
  ff_ending_create(&session->ending);
  ff_status status = set_up(session, error);
  if (status) {
    release(session);
    return status;
  }
  if (session->results) ff_ending_watch(&session->ending);
  if (ff_check_level >= 2) session_check(session);
  *out = session;
  return FF_OK;
}

const machine_spec *session_machine(const session *session) { return &session->spec; }
uint64_t session_gpu_memory(const session *session) { return session->gpu_memory; }
trace_program *session_program(session *session) { return session->program; }
uint32_t session_devices(const session *session) { return session->device_count; }
uint32_t session_threads(const session *session) { return session->options.threads; }
sim *session_primary(session *session, uint32_t device) {
  for (uint32_t i = 0; i < session->manager_count; i++)
    if (session->managers[i].choice.options.device_index == device && !sim_needs_future(session->managers[i].sim))
      return session->managers[i].sim;
  return session->recorders[device].sim;
}
session_progress *session_progress_area(session *session) { return session->progress; }

void session_add_exec(session *session, const exec_stats *stats) {
  pthread_mutex_lock(&session->lock);
  session->stats.warp_instructions += stats->warp_instructions;
  session->stats.thread_instructions += stats->thread_instructions;
  session->stats.warp_accesses += stats->warp_accesses;
  session->stats.sectors += stats->sectors;
  session->stats.blocks += stats->blocks;
  session->stats.divergent_branches += stats->divergent_branches;
  session->stats.barriers += stats->barriers;
  pthread_mutex_unlock(&session->lock);
}

void session_count_launches(session *session, uint64_t compiled, uint64_t all) {
  pthread_mutex_lock(&session->lock);
  session->compiled_launches = compiled;
  session->launches = all;
  pthread_mutex_unlock(&session->lock);
}

void session_note(session *session, const char *text) {
  pthread_mutex_lock(&session->lock);
  report_note(&session->notes, text);
  pthread_mutex_unlock(&session->lock);
}

void session_note_clocks(session *session) {
  const sim *primary = session_primary(session, session->device_first);
  const char *who = NULL;
  for (uint32_t i = 0; i < session->manager_count && !who; i++)
    if (session->managers[i].sim == primary) who = session->managers[i].choice.label;
  ff_text note = {0};
  if (who) ff_text_add(&note, "the program's clocks showed its processor time and the simulated time of %s", who);
  else
    ff_text_add(
        &note,
        "the program's clocks showed its processor time and a rough guess of the GPU's: nothing was simulated with it");
  session_note(session, note.chars);
  free(note.chars);
}

void session_name_stream(session *session, uint32_t stream, const char *name) {
  pthread_mutex_lock(&session->lock);
  report_name_stream(&session->notes, stream, name);
  pthread_mutex_unlock(&session->lock);
}

void session_note_no_room(session *session, const char *call, uint64_t bytes, uint64_t used) {
  char wanted[32], taken[32], all[32];
  if (atomic_exchange(&session->no_room_noted, true)) return;
  ff_text note = {0};
  ff_text_add(&note, "%s of %s did not fit and failed: the GPU has %s, of which %s were taken", call,
              ff_format_bytes(bytes, wanted, sizeof wanted), ff_format_bytes(session->gpu_memory, all, sizeof all),
              ff_format_bytes(used, taken, sizeof taken));
  session_note(session, note.chars);
  free(note.chars);
}

static void finish(session *session, bool complete) {
  if (session->finished || getpid() != session->process) return;
  if (ff_check_level >= 2) session_check(session);
  session->finished = true;
  end_simulations(session, session->manager_count);
  session->stopping = true;
  sem_post(&session->ending.wake);
  if (!session->options.take) pthread_join(session->writer, NULL);
  ff_ending_forget(&session->ending);
  recording_finish(session, complete);
  session_write_final_results(session, complete);
  session->progress->done = 1;
}

void session_finish(session *session) { finish(session, true); }
void session_break_off(session *session) { finish(session, false); }

void session_set_command(session *session, const char *command) {
  free(session->command);
  session->command = ff_strdup(command);
}

void session_free(session *session) {
  if (getpid() != session->process) return;
  session_finish(session);
  release(session);
}
