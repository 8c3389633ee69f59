/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's life, its lock, its errors and its messages.
 *
 *            engine_enter            engine_finish (destructor, after the program's own exit handlers)
 *     NEW ----------------> READY ------------------------------------------> FINISHED
 *      |                      | after_fork (in the child)                         ^
 *      | session_create fails v                                                   |
 *      +-----> FAILED      FORKED ------------------------------------------------+
 *
 * In FAILED and FORKED every call is cudaErrorInitializationError, in FINISHED cudaErrorCudartUnloading. A child that
 * was forked before the parent used the GPU starts its own engine. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/forks.h"
#include "compile/compile.h"
#include "driver/engine/engine_array.h"
#include "driver/engine/engine_clock.h"
#include "driver/engine/engine_graph.h"
#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_ipc.h"
#include "driver/engine/engine_peer.h"
#include "driver/errors.h"
#include "driver/injection/nvtx.h"
#include "exec/memory/overrun.h"
#include "trace/origin.h"

#define FINISH_PATIENCE_SECONDS 5 /* for another thread's kernel to notice that the process ends */
#define END_PATIENCE_MS 2000      /* then for its workers */

engine_state ff_engine = {
    .lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
    .host_work = PTHREAD_COND_INITIALIZER,
    .host_done = PTHREAD_COND_INITIALIZER,
    .behind_done = PTHREAD_COND_INITIALIZER,
};

uint32_t engine_patience_ms = ENGINE_WAITING_MS, engine_grace_ms = 200;

static _Thread_local cudaError_t thread_error; /* what cudaGetLastError says */
static _Thread_local bool thread_called;       /* a call of the runtime */
static _Thread_local bool thread_in_callback;  /* a host function runs: no CUDA calls */

/* ---- messages ---- */

static void say(const char *format, va_list arguments) {
  char line[2600];
  int used = vsnprintf(line, sizeof line, format, arguments);
  if (used < 0) return;
  flockfile(stderr);
  fprintf(stderr, "farfault: %s\n", line);
  funlockfile(stderr);
}

void engine_say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say(format, arguments);
  va_end(arguments);
}

static pthread_mutex_t saying = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(saying)

/* Keys that were said; its own lock, because it is used inside and outside the engine's. */
static bool said_before(const char *key) {
  static ff_map said;
  pthread_mutex_lock(&saying);
  bool before = ff_map_get(&said, key) != NULL;
  if (!before) {
    char *copy = ff_strdup(key); /* lives as long as the process: the map borrows it */
    ff_map_set(&said, copy, copy);
  }
  pthread_mutex_unlock(&saying);
  return before;
}

void engine_say_once(const char *key, const char *format, ...) {
  if (said_before(key)) return;
  va_list arguments;
  va_start(arguments, format);
  say(format, arguments);
  va_end(arguments);
}

cudaError_t engine_unimplemented(const char *call) {
  engine_say_once(call, "%s is not implemented by the virtual GPU; it returned 'not supported'", call);
  return engine_return(cudaErrorNotSupported);
}

/* ---- errors ---- */

cudaError_t engine_sticky(void) { return ff_engine.sticky; }

/* Tells the checker of a failed call, but for cudaErrorNotReady; of a sticky error once. */
static void note_failure(const char *call, cudaError_t error, const char *name, const char *text) {
  static bool told_sticky;
  check *check = ff_engine.check;
  if (!check || error == cudaErrorNotReady || thread_in_callback) return;
  if (ff_engine.sticky && error == ff_engine.sticky && __atomic_exchange_n(&told_sticky, true, __ATOMIC_RELAXED))
    return;
  check_call_failed(check, call, (int)error, name, text);
}

cudaError_t engine_return_from(const char *call, cudaError_t error) {
  thread_called = true;
  if (error) {
    note_failure(call, error, cuda_error_name((int)error), cuda_error_string((int)error));
    if (error != cudaErrorNotReady) thread_error = error; /* NVIDIA's runtimes of CUDA 11 to 13 do not keep it */
  }
  return error;
}

bool engine_runtime_called(void) {
  bool called = thread_called;
  thread_called = false;
  return called;
}

cudaError_t engine_last_error(bool clear) {
  cudaError_t error = thread_error;
  if (clear) thread_error = cudaSuccess;
  return error;
}

int engine_driver_result_from(const char *call, cudaError_t error) {
  int result = cuda_error_to_result((int)error);
  if (error) note_failure(call, error, cuda_result_name(result), cuda_result_string(result));
  return result;
}

/* Every message lives as long as the process; there are as many as resets. */
static const char *keep_message(const char *message) {
  static FF_VEC(char *) kept;
  FF_PUSH(&kept, ff_strdup(message));
  return kept.items[kept.count - 1];
}

void engine_fault_locked(cudaError_t error, int device, const char *message) {
  if (ff_engine.sticky) return;
  ff_engine.sticky = error;
  ff_engine.sticky_device = device;
  ff_engine.fault = keep_message(message);
  pthread_cond_broadcast(&ff_engine.behind_done); /* what another thread was to do, it can do no more */
}

const char *engine_fault_message(void) {
  if (pthread_mutex_lock(&ff_engine.lock)) return "";
  const char *message = ff_engine.sticky ? ff_engine.fault : NULL;
  pthread_mutex_unlock(&ff_engine.lock);
  return message ? message : "";
}

cudaError_t engine_status_error(ff_status status) {
  switch (status) {
  case FF_OK: return cudaSuccess;
  case FF_NO_MEMORY:
  case FF_LIMIT: return cudaErrorMemoryAllocation;
  case FF_INVALID: return cudaErrorInvalidValue;
  case FF_PARSE: return cudaErrorInvalidPtx;
  case FF_UNSUPPORTED: return cudaErrorNotSupported;
  case FF_NOT_FOUND: return cudaErrorSymbolNotFound;
  default: return cudaErrorUnknown;
  }
}

/* ---- life ---- */

static void after_fork(void) {
  if (ff_engine.phase == ENGINE_READY) ff_engine.phase = ENGINE_FORKED;
  ff_engine.host_thread_runs = false;
  pthread_mutex_t fresh = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
  ff_engine.lock = fresh; /* the child has one thread, which does not hold it */
  /* nor do others wait: a broadcast would wait for those of the parent's that had been woken */
  pthread_cond_t unawaited = PTHREAD_COND_INITIALIZER;
  ff_engine.behind_done = ff_engine.host_work = ff_engine.host_done = unawaited;
  ff_engine.given = 0;
  engine_deferred_forget();
}

static void set_default_limits(int device) {
  size_t *limits = ff_engine.limits[device];
  limits[cudaLimitStackSize] = 1024;
  limits[cudaLimitPrintfFifoSize] = 1 << 20;
  limits[cudaLimitMallocHeapSize] = 8 << 20;
  limits[cudaLimitDevRuntimeSyncDepth] = 2;
  limits[cudaLimitDevRuntimePendingLaunchCount] = 2048;
  limits[cudaLimitMaxL2FetchGranularity] = 64;
  limits[cudaLimitPersistingL2CacheSize] = 0;
}

/* Before anything is allocated: a checker has to be told of every allocation. */
static ff_status make_check(ff_error *error) {
  check_options options;
  ff_status status = check_options_from_environment(&options, error);
  if (status || options.tool == CHECK_NONE) return status;
  if (!ff_engine.options.threads) ff_engine.options.threads = 1; /* the same report on every run */
  if (options.tool == CHECK_RACECHECK) ff_engine.options.threads = 1;
  return check_create(&options, ff_engine.memory, engine_demangle, &ff_engine.check, error);
}

static void say_overrun(const char *text) {
  if (text)
    engine_say(
        "%s\n  a GPU does not notice that, and the kernel goes on; `farfault memcheck` reports all such accesses",
        text);
  else engine_say("accesses over the ends of further allocations are not said any more");
}

/* Also when the program ends by _exit, which runs no destructor: the preloaded library sees it. */
static void finish_before_exit(void) {
  void (*tell)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(RTLD_DEFAULT, "farfault_preload_before_exit");
  if (tell) tell(engine_finish);
}

static void mark_profile(bool start) {
  engine_append(&(trace_op){.kind = TRACE_OP_PROFILE, .stream = engine_origin(0), .profile.start = start});
  ff_engine.profiled = start;
}

/* A range of NVTX that is a profile range has begun or ended, in whichever thread; these may overlap. */
static void range_changed(void) {
  if (!engine_started() || engine_enter()) return;
  const bool inside = farfault_nvtx_watched() > 0;
  if (inside != ff_engine.profiled) mark_profile(inside);
  engine_leave();
}

static void watch_ranges(void) {
  const char *name = ff_engine.options.profile_nvtx;
  if (!name[0]) return;
  ff_text note = {0};
  ff_text_add(&note, "profile ranges are the NVTX ranges '%s'", name);
  session_note(ff_engine.session, note.chars);
  free(note.chars);
  farfault_nvtx_watch(name, range_changed);
  if (farfault_nvtx_watched()) mark_profile(true);
}

static void append_range(const nvtx_event *event) {
  trace_op op = {.kind = TRACE_OP_RANGE,
                 .stream = engine_origin(0),
                 .range = {.number = event->number,
                           .thread = event->thread,
                           .begin = event->begin,
                           .started = event->started,
                           .domain = event->domain}};
  _Static_assert(sizeof op.range.name == sizeof event->name, "a range's name");
  if (event->begin) memcpy(op.range.name, event->name, sizeof op.range.name);
  engine_append(&op);
}

/* NVTX waits for nothing of the device. */
static void range_told(const nvtx_event *event) {
  if (!engine_started() || engine_enter_now()) return;
  if (engine_deferred_full()) engine_deferred_wait();
  append_range(event);
  engine_leave();
}

static ff_status make(ff_error *error) {
  static bool fork_watched;
  if (!fork_watched) pthread_atfork(NULL, NULL, after_fork);
  fork_watched = true;
  session_options_from_environment(&ff_engine.options);
  ff_status status = session_create(&ff_engine.options, &ff_engine.session, error);
  if (status) return status;
  ff_engine.options.threads = session_threads(ff_engine.session);
  exec_overrun_use(say_overrun);
  status = exec_memory_create(&ff_engine.memory, error);
  if (!status) status = make_check(error);
  if (status) return status;
  compile_mode mode = COMPILE_AUTO;
  if (ff_engine.options.execute[0]) compile_mode_parse(ff_engine.options.execute, &mode);
  status = compile_use(mode, error);
  if (status) return status;
  ff_engine.machine = session_machine(ff_engine.session);
  engine_system_begin();
  ff_engine.gpu_memory = session_gpu_memory(ff_engine.session);
  ff_engine.trace = session_program(ff_engine.session);
  ff_engine.progress = session_progress_area(ff_engine.session);
  if (engine_devices() > 1)
    engine_append(&(trace_op){.kind = TRACE_OP_STREAM_SMS, .stream = engine_origin((int)engine_devices() - 1)});
  for (uint32_t d = 0; d < engine_devices(); d++) {
    ff_engine.primaries[d] = session_primary(ff_engine.session, d);
    set_default_limits((int)d);
    engine_streams_reset((int)d);
  }
  engine_clock_attach();
  farfault_nvtx_tell_streams(engine_stream_named);
  watch_ranges();
  farfault_nvtx_tell_ranges(range_told, append_range);
  finish_before_exit();
  return FF_OK;
}

/* However the program ends: there is nothing more to come for the report. */
static void say_failed(const ff_error *error) {
  engine_say("the virtual GPU cannot start: %s", error->message);
  if (ff_engine.session) session_note(ff_engine.session, "the virtual GPU could not start: nothing ran on it");
  if (ff_engine.session) session_finish(ff_engine.session);
}

/* ---- waiting for host functions ---- */

typedef enum waiting { WAIT_NOT, WAIT_APART, WAIT_STREAM, WAIT_EVENT, WAIT_RECORD, WAIT_HELD, WAIT_ALL } waiting;

typedef struct waited {
  waiting what;
  cudaStream_t stream; /* STREAM, RECORD */
  cudaEvent_t event;   /* EVENT, RECORD */
  engine_stream *held; /* HELD: without any grace */
} waited;

uint64_t engine_host_before(const engine_stream *stream) {
  const engine_stream *legacy = &ff_engine.legacy[stream->device];
  uint64_t before = stream->host_before;
  if (!(stream->flags & cudaStreamNonBlocking) && legacy->host_before > before) before = legacy->host_before;
  for (const engine_stream *s = ff_engine.streams; stream == legacy && s; s = s->next)
    if (s->device == stream->device && !(s->flags & cudaStreamNonBlocking) && s->host_before > before)
      before = s->host_before;
  return before;
}

/* Looked up each time: while this waits, others may destroy it. */
static uint64_t host_before(waited w) {
  const bool in_stream = w.what == WAIT_STREAM || w.what == WAIT_RECORD;
  const engine_stream *stream = w.what == WAIT_HELD ? w.held : in_stream ? engine_stream_find(w.stream) : NULL;
  const engine_event *event = w.what == WAIT_EVENT || w.what == WAIT_RECORD ? engine_event_find(w.event) : NULL;
  if (w.what == WAIT_ALL) return ff_engine.host_queued;
  if (w.what == WAIT_EVENT) return event ? event->host_before : 0;
  if (!stream || (w.what == WAIT_RECORD && (stream->capture || !event || !engine_event_is_shared(event)))) return 0;
  return engine_host_before(stream);
}

static struct timespec later(struct timespec from, uint32_t ms) {
  from.tv_sec += ms / 1000;
  from.tv_nsec += ms % 1000 * 1000000L;
  return (struct timespec){from.tv_sec + from.tv_nsec / 1000000000L, from.tv_nsec % 1000000000L};
}

static bool is_before(struct timespec a, struct timespec b) {
  return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec);
}

/* Does the call wait on? *until: when to look again, if nothing has happened. */
static bool host_holds_up(waited w, struct timespec now, struct timespec *until) {
  if (!ff_engine.host_pending || ff_engine.phase != ENGINE_READY) return false;
  if (ff_engine.host_over < host_before(w)) return true;
  if (w.what == WAIT_HELD) return false;
  struct timespec end = later(ff_engine.host_since, engine_grace_ms);
  if (!is_before(now, end)) return false;
  if (is_before(end, *until)) *until = end;
  return true;
}

/* Who ends the wait: the thread that runs them, or the end of the process. A host function may never return, because it
 * waits for a call of another thread's that waits here, for what comes after it; that is said. */
static void wait_for_host_functions(waited w) {
  struct timespec now, patience;
  bool said = false;
  if (!ff_engine.host_pending) return;
  clock_gettime(CLOCK_REALTIME, &now);
  patience = later(now, engine_patience_ms);
  for (;; clock_gettime(CLOCK_REALTIME, &now)) {
    struct timespec until = said ? later(now, ENGINE_WAITING_MS) : patience;
    if (!host_holds_up(w, now, &until)) return;
    if (!said && !is_before(now, patience)) {
      said = true;
      engine_say_once("host function",
                      "a call has been waiting for %g s for a host function (cudaLaunchHostFunc, "
                      "cudaStreamAddCallback) to return, as it comes after it; if that waits for this call, neither "
                      "goes on",
                      engine_patience_ms / 1e3);
      continue;
    }
    ff_engine.host_waiting++;
    pthread_cond_timedwait(&ff_engine.host_done, &ff_engine.lock, &until);
    ff_engine.host_waiting--;
  }
}

bool engine_host_holds_up(const engine_stream *stream) {
  return ff_engine.host_pending && ff_engine.phase == ENGINE_READY && ff_engine.host_over < engine_host_before(stream);
}

void engine_host_wait(engine_stream *stream) {
  engine_stream_hold(stream);
  wait_for_host_functions((waited){.what = WAIT_HELD, .held = stream});
  engine_stream_release(stream);
}

void engine_host_wait_event(cudaEvent_t event) {
  wait_for_host_functions((waited){.what = WAIT_EVENT, .event = event});
}

static cudaError_t wait_locked(waited w, bool for_kernel) {
  if (w.what != WAIT_NOT && engine_deferred_full()) engine_deferred_wait();
  if (for_kernel) engine_deferred_wait_device(engine_device_of(NULL));
  if (w.what != WAIT_NOT) wait_for_host_functions(w);
  return ff_engine.phase == ENGINE_READY      ? ff_engine.sticky
         : ff_engine.phase == ENGINE_FINISHED ? cudaErrorCudartUnloading
                                              : cudaErrorInitializationError;
}

static const waited wait_for_all = {.what = WAIT_ALL};

cudaError_t engine_wait_locked(void) { return wait_locked(wait_for_all, true); }

static cudaError_t enter_locked(waited w, bool wait_for_kernel) {
  if (pthread_mutex_lock(&ff_engine.lock)) return cudaErrorCudartUnloading; /* this thread is exiting inside a call */
  if (ff_engine.phase == ENGINE_NEW) {
    ff_error error;
    engine_phase made = make(&error) == FF_OK ? ENGINE_READY : ENGINE_FAILED;
    atomic_store_explicit(&ff_engine.phase, made, memory_order_release); /* behind all that was made */
    if (ff_engine.phase == ENGINE_FAILED) say_failed(&error);
  }
  cudaError_t error = wait_locked(w, wait_for_kernel);
  if (error) pthread_mutex_unlock(&ff_engine.lock);
  return error;
}

/* Without the lock, which the end of the process may not get. */
static engine_phase phase_now(void) { return atomic_load_explicit(&ff_engine.phase, memory_order_acquire); }

static cudaError_t enter(waited w, bool wait_for_kernel) {
  if (thread_in_callback) return cudaErrorNotPermitted;
  if (phase_now() == ENGINE_NEW) engine_clock_find();
  engine_clock_enter();
  cudaError_t error = enter_locked(w, wait_for_kernel);
  if (error) engine_clock_leave();
  return error;
}

cudaError_t engine_enter(void) { return enter(wait_for_all, true); }
cudaError_t engine_enter_during_kernel(void) { return enter(wait_for_all, false); }
cudaError_t engine_enter_stream(cudaStream_t stream) {
  return enter((waited){.what = WAIT_STREAM, .stream = stream}, false);
}
cudaError_t engine_enter_event(cudaEvent_t event) { return enter((waited){.what = WAIT_EVENT, .event = event}, false); }
cudaError_t engine_enter_record(cudaEvent_t event, cudaStream_t stream) {
  return enter((waited){.what = WAIT_RECORD, .stream = stream, .event = event}, false);
}
cudaError_t engine_enter_apart(void) { return enter((waited){.what = WAIT_APART}, false); }
cudaError_t engine_enter_now(void) { return enter((waited){.what = WAIT_NOT}, false); }
void engine_leave(void) {
  if (ff_check_level >= 2) engine_check_sometimes();
  pthread_mutex_unlock(&ff_engine.lock);
  engine_clock_leave();
}

cudaError_t engine_start(void) {
  cudaError_t error = engine_enter_now();
  if (!error) engine_leave();
  return error;
}

bool engine_started(void) { return phase_now() == ENGINE_READY; }
const machine_spec *engine_machine(void) { return ff_engine.machine; }
uint64_t engine_gpu_memory(void) { return ff_engine.gpu_memory; }

static void (*_Atomic before_reset)(int device);
void engine_reset_tell(void (*function)(int device)) { before_reset = function; }

cudaError_t engine_reset(int device) {
  if (phase_now() == ENGINE_NEW) return cudaSuccess; /* nothing to reset */
  void (*tell)(int device) = before_reset;
  if (tell && engine_started()) tell(device);
  cudaError_t error = engine_enter();
  if (error && error != ff_engine.sticky) return error;
  if (error) pthread_mutex_lock(&ff_engine.lock); /* only the sticky error was in the way, and here it may go */
  engine_deferred_wait_device(device);
  engine_synchronize_device_locked(device);
  /* else others' memory would be leaked */
  if (ff_engine.check && engine_devices() == 1) check_finish(ff_engine.check, false);
  engine_graphs_reset(device);
  engine_modules_reset(device);
  engine_textures_reset(device);
  engine_arrays_reset(device);
  engine_vmm_reset(device);
  engine_pools_reset(device);
  engine_ipc_reset(device);
  engine_memory_reset(device);
  engine_streams_reset(device);
  engine_peers_reset(device);
  set_default_limits(device);
  if (ff_engine.sticky_device == device) {
    ff_engine.sticky = cudaSuccess;
    ff_engine.fault = NULL;
    thread_error = cudaSuccess;
  }
  engine_leave();
  return ff_engine.sticky;
}

/* Runs when the process ends, in whatever way. Another thread may be inside a kernel: it is told to stop, and after a
 * while the results are written without it. */
__attribute__((destructor)) void engine_finish(void) {
  struct timespec until;
  engine_clock_enter(); /* deadlines are the host's */
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += FINISH_PATIENCE_SECONDS;
  engine_phase before = phase_now();
  if (before == ENGINE_READY) /* also tells host functions */
    atomic_store_explicit(&ff_engine.phase, ENGINE_FINISHED, memory_order_release);
  atomic_store_explicit(&ff_engine.stop, true, memory_order_release);
  /* Inside a launch the lock is held for it, by this thread or by one that waits for this one. */
  int locked = exec_is_inside() ? EDEADLK : pthread_mutex_timedlock(&ff_engine.lock, &until);
  if (before == ENGINE_READY && !locked && ff_check_level >= 2) {
    ff_engine.phase = before;
    engine_check();
    ff_engine.phase = ENGINE_FINISHED;
  }
  pthread_cond_broadcast(&ff_engine.host_done); /* a lane may wait for a host function */
  while (!locked && before == ENGINE_READY && ff_engine.given)
    if (pthread_cond_timedwait(&ff_engine.behind_done, &ff_engine.lock, &until) == ETIMEDOUT) break;
  if (locked) exec_end(END_PATIENCE_MS); /* this thread may be one that has the lock: exit was called inside a launch */
  for (size_t i = 0; (locked || ff_engine.given) && i < ff_engine.running.count; i++)
    trace_launch_finish(ff_engine.running.items[i]); /* they will not; no simulation may wait for them */
  if (before == ENGINE_READY && !locked) engine_host_access_collect(false);
  if (before == ENGINE_READY) session_finish(ff_engine.session);
  if (before == ENGINE_READY && ff_engine.check && !locked) check_finish(ff_engine.check, true);
  ff_engine.phase = ENGINE_FINISHED;
  pthread_cond_broadcast(&ff_engine.host_work);
  pthread_cond_broadcast(&ff_engine.host_done);
  pthread_cond_broadcast(&ff_engine.behind_done);
  if (!locked) pthread_mutex_unlock(&ff_engine.lock);
  engine_clock_leave();
}

/* ---- host functions ---- */

/* The engine's own thread: takes them in order, runs each without the lock. */
static void *host_thread(void *unused) {
  thread_in_callback = true;
  pthread_mutex_lock(&ff_engine.lock);
  while (ff_engine.phase == ENGINE_READY) {
    engine_host_call *call = ff_engine.host_first;
    if (!call) {
      pthread_cond_wait(&ff_engine.host_work, &ff_engine.lock);
      continue;
    }
    ff_engine.host_first = call->next;
    if (!call->next) ff_engine.host_last = NULL;
    engine_clock_enter(); /* the host's time */
    clock_gettime(CLOCK_REALTIME, &ff_engine.host_since);
    engine_clock_leave();
    pthread_mutex_unlock(&ff_engine.lock);
    call->function(call->data);
    pthread_mutex_lock(&ff_engine.lock);
    ff_engine.host_over++;
    call->stream->pending--;
    engine_stream_release(call->stream);
    free(call);
    ff_engine.host_pending--;
    pthread_cond_broadcast(&ff_engine.host_done);
  }
  pthread_mutex_unlock(&ff_engine.lock);
  return unused;
}

cudaError_t engine_stream_host_locked(engine_stream *stream, cudaHostFn_t function, void *data, bool wait) {
  if (!ff_engine.host_thread_runs) {
    if (pthread_create(&ff_engine.host_thread, NULL, host_thread, NULL)) return cudaErrorUnknown;
    ff_engine.host_thread_runs = true;
    pthread_detach(ff_engine.host_thread);
  }
  engine_print_flush(); /* the manual: printed output is flushed before a callback */
  engine_append_host();
  engine_host_call *call = ff_alloc(sizeof *call);
  *call = (engine_host_call){.function = function, .data = data, .stream = stream};
  if (ff_engine.host_last) ff_engine.host_last->next = call;
  else ff_engine.host_first = call;
  ff_engine.host_last = call;
  stream->pending++;
  engine_stream_hold(stream);
  if (!ff_engine.host_pending++) clock_gettime(CLOCK_REALTIME, &ff_engine.host_since);
  stream->host_before = ++ff_engine.host_queued;
  pthread_cond_signal(&ff_engine.host_work);
  if (wait) wait_for_host_functions(wait_for_all);
  return ff_engine.phase == ENGINE_READY ? cudaSuccess : cudaErrorCudartUnloading;
}

cudaError_t engine_stream_host(cudaStream_t handle, cudaHostFn_t function, void *data) {
  if (!function) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter_now();
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  bool taken = false;
  engine_node_params node = {.kind = ENGINE_NODE_HOST, .host = {function, data}};
  error = stream ? engine_capture_take(stream, &node, true, &taken) : engine_stream_error(handle);
  if (!error && !taken) error = engine_deferred_take(stream, &node, true, &taken);
  if (!error && !taken) error = engine_stream_host_locked(stream, function, data, false);
  engine_leave();
  return error;
}

/* ---- the access stream ---- */

/* The stream is the same in every run: it has canonical addresses, and none of pageable memory. (A launch's are made so
 * in engine_launch.c.) */
static void make_canonical(trace_op *op) {
  uint64_t *address[2] = {NULL, NULL};
  switch (op->kind) {
  case TRACE_OP_ALLOC:
  case TRACE_OP_RESERVE: address[0] = &op->alloc.address; break;
  case TRACE_OP_FREE: address[0] = &op->free.address; break;
  case TRACE_OP_MAP:
  case TRACE_OP_UNMAP:
  case TRACE_OP_SET_ACCESS:
  case TRACE_OP_UNRESERVE: address[0] = &op->map.address; break;
  case TRACE_OP_COPY: address[0] = &op->copy.to, address[1] = &op->copy.from; break;
  case TRACE_OP_SET: address[0] = &op->set.to; break;
  case TRACE_OP_HOST_TOUCH: address[0] = &op->touch.address; break;
  case TRACE_OP_ADVISE:
  case TRACE_OP_PREFETCH: address[0] = &op->hint.address; break;
  default: break;
  }
  for (int i = 0; i < 2 && address[i]; i++) *address[i] = exec_memory_canonical(ff_engine.memory, *address[i]);
}

uint64_t engine_append(const trace_op *op) {
  if (ff_engine.check) check_operation(ff_engine.check, op);
  if (!ff_engine.trace) return ++ff_engine.last_sequence;
  trace_op own = *op;
  make_canonical(&own);
  if (ff_engine.batch) { /* one call has put it: its first launch pays for all */
    own.stream = trace_origin(op->stream, 0, !(op->kind == TRACE_OP_LAUNCH && ff_engine.batch == ENGINE_BATCH_UNPAID));
    if (op->kind == TRACE_OP_LAUNCH) ff_engine.batch = ENGINE_BATCH_PAID;
  }
  return ff_engine.last_sequence = trace_op_append(ff_engine.trace, &own);
}

void engine_append_host(void) {
  engine_append(&(trace_op){.kind = TRACE_OP_HOST});
  engine_time_host(ff_engine.machine->api_us);
}

cudaError_t engine_profile(bool start) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!ff_engine.options.profile_nvtx[0]) mark_profile(start);
  engine_leave();
  return cudaSuccess;
}

/* ---- limits ---- */

enum { /* CU_LIMIT_CIG_ENABLED, CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED; a runtime hands them on */
       LIMIT_GRAPHICS = 7,
       LIMIT_GRAPHICS_SHARED = 8
};

cudaError_t engine_limit_get(cudaLimit limit, size_t *value) {
  if (!value) return cudaErrorInvalidValue;
  bool graphics = (int)limit == LIMIT_GRAPHICS || (int)limit == LIMIT_GRAPHICS_SHARED;
  if ((unsigned)limit >= cudaLimitCount && !graphics) return cudaErrorUnsupportedLimit;
  cudaError_t error = engine_enter();
  if (error) return error;
  *value = graphics ? 0 : ff_engine.limits[engine_device_current()][limit]; /* no context is a graphics client's */
  engine_leave();
  return cudaSuccess;
}

cudaError_t engine_l2_reset(void) {
  cudaError_t error = engine_enter();
  if (error) return error;
  ff_engine.l2_resets[engine_device_current()]++;
  engine_leave();
  return cudaSuccess;
}

cudaError_t engine_limit_set(cudaLimit limit, size_t value) {
  if ((unsigned)limit >= cudaLimitCount) return cudaErrorUnsupportedLimit;
  cudaError_t error = engine_enter();
  if (error) return error;
  const size_t stack_most = 512 << 10; /* local memory per thread on every device so far */
  if (limit == cudaLimitStackSize && value > stack_most) error = cudaErrorInvalidValue;
  else if (limit == cudaLimitMallocHeapSize && value > ff_engine.gpu_memory) error = cudaErrorMemoryAllocation;
  else ff_engine.limits[engine_device_current()][limit] = limit == cudaLimitStackSize ? (value + 15) / 16 * 16 : value;
  engine_leave();
  return error;
}
