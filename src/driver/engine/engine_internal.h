/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the engine, for the files of this folder only.
 *
 * Glossary: *enter* takes the lock, makes the engine if need be and refuses when an error is sticky; *leave* gives the
 * lock back. A function named *_locked expects the lock. *Local clock*: the engine's own estimate of virtual time, used
 * only when no simulation runs.
 *
 * Every operation that changes memory or time is appended to the access stream before it is carried out. Allocations
 * made by the program have `notes.items[id].owner == ENGINE_OWNER_PROGRAM`, module variables MODULE. engine_check.c has
 * the invariants that hold while the lock is free, and checks them. */
#ifndef FF_DRIVER_ENGINE_INTERNAL_H
#define FF_DRIVER_ENGINE_INTERNAL_H

#include <pthread.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "check/launch_check.h"
#include "driver/engine/engine.h"
#include "driver/engine/kernel_text.h"
#include "fatbin/fatbin.h"
#include "ptx/rewrite/persistent.h"
#include "session/session.h"

typedef enum engine_phase {
  ENGINE_NEW, /* nothing has needed it yet */
  ENGINE_READY,
  ENGINE_FAILED,   /* could not be made; said once */
  ENGINE_FORKED,   /* this process is the child of one that had it */
  ENGINE_FINISHED, /* the process is ending: results are written, calls are refused */
} engine_phase;

/* ---- handles ---- */

typedef enum engine_handle_kind {
  ENGINE_HANDLE_STREAM = 1,
  ENGINE_HANDLE_EVENT,
  ENGINE_HANDLE_MODULE,
  ENGINE_HANDLE_FUNCTION,
  ENGINE_HANDLE_VARIABLE,
  ENGINE_HANDLE_GREEN,
  ENGINE_HANDLE_ARRAY,
  ENGINE_HANDLE_MIPMAP,
  ENGINE_HANDLE_GRAPH,
  ENGINE_HANDLE_NODE,
  ENGINE_HANDLE_EXEC,
  ENGINE_HANDLE_OBJECT
} engine_handle_kind;
typedef struct engine_handles { /* open addressing by pointer; follows none */
  struct {
    const void *pointer;
    engine_handle_kind kind;
  } * slots;
  size_t count, used, capacity; /* used: live ones and tombstones */
} engine_handles;
void engine_handles_add(engine_handles *handles, const void *pointer, engine_handle_kind kind);
void engine_handles_remove(engine_handles *handles, const void *pointer);
bool engine_handles_have(const engine_handles *handles, const void *pointer, engine_handle_kind kind);

/* With the lock: assert the invariants of its being free. They return what the whole has of them: handles,
 * bytes of a device. */
void engine_check(void);           /* engine_check.c: all */
void engine_check_sometimes(void); /* at one call of many */
size_t engine_graphs_check(void);
size_t engine_arrays_check(void);
uint64_t engine_vmm_check(int device);
void engine_pools_check(void);
void engine_ranges_check(void);
void engine_textures_check(void);
uint64_t engine_whole_pages(uint64_t bytes);

/* ---- streams, events ---- */

/* what that stream did up to there is over */
typedef struct engine_known {
  uint32_t stream;
  uint64_t sequence;
} engine_known;
typedef struct engine_stream_attributes { /* engine_stream_attributes.c */
  bool policy_set, domains_set;           /* else those two are what the manual starts with; the others start with 0 */
  cudaLaunchAttributeValue window, policy, domain, domains;
} engine_stream_attributes;

typedef struct engine_stream {
  /* in the access stream, with its device (trace/origin.h); of the device's, 0 is the legacy default stream */
  uint32_t number;
  int device;
  unsigned flags;
  int priority;
  engine_stream_attributes attributes;
  uint64_t end_ps; /* local clock: when its last operation is over */
  bool dirty;      /* something was appended since `marker` */
  bool marked;
  uint64_t marker;  /* sequence of the event record that stands behind its last operation */
  uint32_t pending; /* host functions that have not returned */
  /* number of the last host function that is before its next operation; of the legacy stream those of blocking
   * streams, too: engine_host_before */
  uint64_t host_before;
  uint64_t queue;      /* of engine_bound.c, in device memory; 0: not needed yet */
  uint32_t turn;       /* of its next launch on that queue */
  engine_green *green; /* whose SMs its kernels have; NULL: all */
  bool orphan;         /* its green context was destroyed */
  /* operations of it are queued behind a kernel that has given way, or it is that kernel's: engine_deferred.c; else
   * NULL */
  struct engine_lane *lane;
  struct engine_capture *capture;    /* into which it is captured; NULL: none */
  FF_VEC(struct engine_node *) tips; /* then: what its next node comes after */
  FF_VEC(engine_known) known;        /* how far of other streams it has waited for */
  /* host functions, and launches of graphs that are under way: its address stays taken */
  uint32_t held;
  bool gone; /* destroyed: no handle, not listed; freed when none has it any more */
  struct engine_stream *next;
} engine_stream;

struct engine_green {
  uint64_t id; /* not used again */
  int device;
  trace_sms sms;
  uint16_t list[TRACE_SMS_MAX]; /* the same, in order */
  uint32_t count;
  engine_stream *main;  /* what NULL means where it is current */
  engine_stream *join;  /* engine_green_record: waits for the others; NULL: not needed yet */
  engine_stream *fence; /* engine_green_wait: what later streams wait for first; NULL likewise */
  engine_green_queues queues;
  struct engine_green *next;
};

typedef struct engine_ipc_event engine_ipc_event;

typedef struct engine_event {
  int device; /* whose streams may record it */
  unsigned flags;
  bool recorded;
  uint32_t number;       /* of the latest recording */
  uint64_t sequence;     /* of its operation */
  uint64_t time_ps;      /* local clock */
  uint64_t host_before;  /* number of the last host function that was before it */
  engine_stream *stream; /* recorded in; NULL once destroyed */
  uint32_t stream_number;
  uint32_t behind;                   /* recordings of it that are queued: engine_deferred.c; */
  uint64_t behind_over;              /* that were, and were carried out */
  uint32_t held;                     /* operations in queues that are about it */
  bool gone;                         /* destroyed: no handle, not listed; freed when no queue has it any more */
  engine_ipc_event *ipc;             /* other processes may have it, too; NULL: none can */
  uint64_t capture;                  /* last recorded in the capture of this id; 0: in none */
  FF_VEC(struct engine_node *) tips; /* then: what the stream had done */
  FF_VEC(engine_known) known;        /* else: what its stream knew */
  struct engine_event *next;
} engine_event;

typedef struct engine_host_call {
  cudaHostFn_t function;
  void *data;
  engine_stream *stream;
  struct engine_host_call *next;
} engine_host_call;

/* ---- modules ---- */

typedef struct engine_kernel { /* a function on one device */
  exec_kernel *code;           /* NULL until used */
  bool marked;                 /* engine_function_mark has looked at it */
  uint32_t promised;           /* threads that an SM has registers for: .maxntid times .minnctapersm; 0: not given */
  int dynamic_shared;          /* as set; -1: not set */
  int carveout;
  unsigned cache;
} engine_kernel;

struct engine_function {
  char *name;
  engine_module *module;
  engine_module *home;   /* whose code has it: `module`, or a part of it or of another file's; NULL: not loaded yet */
  const char *home_name; /* its name there, the text's; NULL: engine_kernels_name says it */
  char *title;           /* demangled */
  uint32_t index;        /* kernel_index of the access stream */
  engine_kernel on[ENGINE_DEVICES_MAX];
  uint32_t cluster[3]; /* as set by attributes; 0: not set */
  bool non_portable;
  bool tile;             /* translated from Tile IR; known when its code is loaded */
  uint64_t runs;         /* launches so far */
  engine_function *next; /* in its module */
};
/* Before it is changed: `info` says what it is so far on the thread's device. On cudaSuccess with the lock, until
 * engine_leave. */
cudaError_t engine_function_change(engine_function *function, engine_function_info *info);
/* engine_cluster.c: the blocks of a launch's clusters along each axis; 0: not said. */
cudaError_t engine_cluster_find(const engine_launch *launch, const engine_function_info *info, uint32_t shape[3]);

struct engine_variable {
  char *name;
  engine_module *module;
  size_t bytes;        /* as registered; 0: unknown */
  void **host_pointer; /* __managed__ */
  engine_variable *next;
};

typedef struct engine_source {
  char *name;
  char *text;
  size_t length;
  uint32_t max_registers; /* of a thread of its kernels, as the compiler was told; 0: nothing */
  bool tile;              /* it was translated from Tile IR */
  bool own_target;        /* whether the GPU runs it is for its own .target to say: it was in no fat binary */
} engine_source;          /* PTX, owned */

typedef struct engine_alias {
  uint64_t hash;    /* kernel_name_hash */
  const char *name; /* borrowed from the code */
} engine_alias;

struct engine_module {
  uint32_t number;    /* from 1, in order of registration */
  const void *binary; /* registered: read when the module loads; NULL: `sources` are there from the start */
  int device;         /* that it is for; ENGINE_ANY_DEVICE: for each that uses it */
  bool failed;
  char *unsaid; /* why it failed, as long as that was not said: on stderr when the program first uses it; or NULL */
  bool managed_known; /* the program holds addresses of its managed variables: they never move */
  bool traced;        /* its code was given to the access stream */
  bool library;       /* the program has it as one */
  cudaError_t error;  /* why it failed */
  FF_VEC(engine_source) sources;
  FF_VEC(ptx_module *) parts;
  FF_VEC(const ptx_module *) tile_parts; /* those of `parts` that were translated from Tile IR */
  ptx_module *linked;                    /* NULL: the only part stands for itself */
  ptx_persistents *bound;                /* --bind-sms: from whose text `linked` is; NULL */
  /* where a file stands for machine code (engine_kernels.c); NULL: the image's own PTX */
  char *kernels_file;
  kernel_text *text;
  FF_VEC(engine_alias) aliases; /* of the code: its names by their common form, sorted */
  engine_module *base;          /* this one is a part of that: one of its kernels, on its variables; or NULL */
  /* where it is loaded: variables once per device, managed ones once in all */
  exec_program *programs[ENGINE_DEVICES_MAX];
  engine_function *functions;
  engine_variable *variables;
  ff_map function_names, variable_names; /* both lists, by name */
  engine_module *next, *before;
};

/* ---- everything ---- */

/* IMPORT: another process's program (engine_ipc.c) */
typedef enum engine_owner {
  ENGINE_OWNER_NONE,
  ENGINE_OWNER_PROGRAM,
  ENGINE_OWNER_MODULE,
  ENGINE_OWNER_IMPORT
} engine_owner;
typedef struct engine_note { /* on an exec_allocation, by its id */
  const exec_allocation *allocation;
  unsigned flags;
  int device; /* whose memory it is; of host and managed memory, which was current */
  engine_owner owner;
} engine_note;

typedef struct engine_state {
  pthread_mutex_t lock;
  _Atomic engine_phase phase; /* also looked at without the lock */
  session_options options;
  session *session;
  const machine_spec *machine;
  uint64_t gpu_memory;
  trace_program *trace;               /* NULL: no simulation */
  sim *primaries[ENGINE_DEVICES_MAX]; /* by device; NULL likewise */
  session_progress *progress;
  bool profiled; /* the last TRACE_OP_PROFILE was a start */
  exec_memory *memory;
  check *check; /* of `farfault memcheck` or `racecheck`; NULL: nothing is checked */

  cudaError_t sticky;
  int sticky_device; /* where it arose */
  const char *fault; /* its message; NULL: none */
  engine_handles handles;
  engine_handles ended; /* where a stream was that was destroyed, and none is now */
  engine_stream legacy[ENGINE_DEVICES_MAX];
  engine_stream *streams;
  engine_green *greens;
  uint64_t next_green;
  engine_event *events;
  engine_module *modules, *last_module; /* in order of registration */
  FF_VEC(engine_note) notes;
  uint32_t next_stream[ENGINE_DEVICES_MAX], generation[ENGINE_DEVICES_MAX];
  uint32_t next_event, next_module, next_kernel;
  uint64_t allocations, launches;
  /* bytes of each device's memory in use by device allocations, whole pages */
  uint64_t device_used[ENGINE_DEVICES_MAX];
  /* the launches that exec works on, or that have given way; none without a simulation */
  FF_VEC(trace_launch *) running;
  /* streams with a kernel that has given way, on a thread of the engine's own, or with a queue: engine_deferred.c */
  uint32_t given;
  /* one of them has finished, or an event that was queued is recorded; a device was added to a multicast object, or one
   * of these is gone; a fault became sticky */
  pthread_cond_t behind_done;
  uint32_t waiting;       /* threads that wait for that in engine_deferred.c */
  _Atomic bool stop;      /* the process ends: a running kernel is to stop */
  uint64_t last_sequence; /* of the latest operation */
  /* one call puts what is appended; has the host paid for it? */
  enum { ENGINE_BATCH_NONE, ENGINE_BATCH_UNPAID, ENGINE_BATCH_PAID } batch;

  uint64_t host_ps, device_ps[ENGINE_DEVICES_MAX]; /* local clock: the host; when the last kernel is over */
  size_t limits[ENGINE_DEVICES_MAX][cudaLimitCount];

  ff_text printed; /* kernel printf, not yet given to stdout */

  pthread_t host_thread; /* runs host functions */
  bool host_thread_runs;
  pthread_cond_t host_work, host_done;
  engine_host_call *host_first, *host_last;
  uint32_t host_pending, host_waiting;    /* functions that have not returned; threads that wait for some */
  uint64_t host_queued, host_over;        /* how many there were, and have returned: in that order */
  struct timespec host_since;             /* when the one that runs was called */
  uint32_t l2_resets[ENGINE_DEVICES_MAX]; /* calls of cudaCtxResetPersistingL2Cache */
} engine_state;

extern engine_state ff_engine;

/* With the lock held on cudaSuccess only. engine_enter waits for host functions, and for a kernel that has given way;
 * engine_enter_during_kernel for host functions only (what is behind that kernel is seen to: engine_deferred.c),
 * engine_enter_now for neither (queries). */
cudaError_t engine_enter(void);
cudaError_t engine_enter_during_kernel(void);
cudaError_t engine_enter_now(void);
/* As engine_enter_during_kernel, but a host function that has not returned for engine_grace_ms holds up only what comes
 * after it: operations of `stream`; what waits for `event`; nothing. Until then all calls wait for it, so that a
 * program whose host functions return finds the same order in every run; one that waits for another thread's call would
 * not return. Calls that use none of these wait for all, also those of other streams that CUDA would let go on:
 * cudaMallocAsync, cuStreamWriteValue, batches, cudaStreamDestroy ... (README.md). */
cudaError_t engine_enter_stream(cudaStream_t stream);
cudaError_t engine_enter_event(cudaEvent_t event);
/* Nothing, either: but other processes' waits for an event that they may have, too, do not know of host functions, so
 * it is recorded when those before it have returned. */
cudaError_t engine_enter_record(cudaEvent_t event, cudaStream_t stream);
cudaError_t engine_enter_apart(void);
uint64_t engine_host_before(const engine_stream *stream); /* the last host function before its next operation */
/* What is carried out later than its call: has a host function before the stream's next operation not returned? Waits
 * until it has, and gives the lock away meanwhile. */
bool engine_host_holds_up(const engine_stream *stream);
void engine_host_wait(engine_stream *stream);
void engine_host_wait_event(cudaEvent_t event); /* likewise, after a wait for an event that was queued */
/* After engine_enter_now: what engine_enter waits for, and what it returns; the lock is held in any case. For calls
 * that look at what they are about before they wait. */
cudaError_t engine_wait_locked(void);
void engine_leave(void);
void engine_fault_locked(cudaError_t error, int device, const char *message); /* makes it sticky */

/* Appends to the access stream (if there is one); remembers and returns the sequence. */
uint64_t engine_append(const trace_op *op);
void engine_append_host(void); /* a call that only costs host time */

engine_stream *engine_stream_find(cudaStream_t stream);   /* NULL: not a stream, or not one any more: */
cudaError_t engine_stream_error(cudaStream_t stream);     /* why */
void engine_stream_named(void *stream, const char *name); /* by the program, to a tool; without the lock */
engine_stream *engine_stream_make(int device, unsigned flags, int priority, engine_green *green);
bool engine_stream_is_legacy(const engine_stream *stream);
bool engine_stream_lives(const engine_stream *stream); /* what the pointer pointed to may be gone */
void engine_stream_free(engine_stream *stream);
/* Around what gives the lock away and goes on in the stream, if that lives then: no new one gets its address. */
void engine_stream_hold(engine_stream *stream);
void engine_stream_release(engine_stream *stream);
/* wait: until it has returned */
cudaError_t engine_stream_host_locked(engine_stream *stream, cudaHostFn_t function, void *data, bool wait);
/* what was recorded there, by now; costs nothing */
bool engine_happened(int device, uint64_t sequence, uint64_t local_ps);
uint32_t engine_stream_record(engine_stream *stream); /* appends an event's recording; its number */
void engine_stream_wait_for(engine_stream *stream, uint32_t number, uint64_t time_ps);
/* The same for an event, and for all that is in another stream so far: with the host functions before it. */
void engine_stream_wait_for_event(engine_stream *stream, const engine_event *event);
void engine_stream_follow(engine_stream *stream, engine_stream *after);
bool engine_event_is_shared(const engine_event *event);    /* other processes may have it */
uint64_t engine_stream_ready(const engine_stream *stream); /* local clock */
engine_event *engine_event_find(cudaEvent_t event);
engine_event *engine_event_make(unsigned flags); /* of the thread's device */
void engine_event_release(engine_event *event);  /* one that was held; frees it with the last, if it is gone */
void engine_event_record_locked(engine_event *event, engine_stream *stream);
/* a new stream: waits for what engine_green_wait and engine_device_wait said */
void engine_green_admit(engine_stream *stream);
engine_green *engine_green_current(void); /* of this thread; NULL: none */
void engine_greens_reset(int device);
uint32_t engine_stream_sms(const engine_stream *stream); /* how many SMs its kernels have */
void engine_streams_reset(int device);
cudaError_t engine_synchronize_stream_locked(engine_stream *stream);
void engine_synchronize_device_locked(int device);

/* Local clock: the stream's next operation takes `ps`; blocking: the host waits for it. */
void engine_time_spend(engine_stream *stream, uint64_t ps, bool kernel, bool blocking);
uint64_t engine_time_transfer(uint64_t bytes, trace_direction direction);
uint64_t engine_time_kernel(const exec_stats *stats, uint32_t sms);
void engine_time_host(double microseconds);
void engine_time_wait_device(int device); /* the host waits for all its streams */

/* engine_declare.c: what the calling thread has declared for its next launch, now the caller's; NULL: nothing. */
typedef struct engine_declared {
  ff_virtual_use *uses;
  uint32_t count;
} engine_declared; /* uses is not NULL */
engine_declared *engine_declared_take(void);
void engine_declared_free(engine_declared *declared);

/* Operations, checked and on a stream. What a graph has is checked before it is launched, and again then: `graph` means
 * that the host waits for nothing. Memory that only a running graph has is let through by _check_. */
cudaError_t engine_copy_check_locked(const engine_copy *copy);
cudaError_t engine_copy_on(engine_copy copy, engine_stream *stream, bool graph);
cudaError_t engine_set_check_locked(const engine_set *set);
cudaError_t engine_set_on(engine_set set, engine_stream *stream, bool graph);
cudaError_t engine_set_run_locked(const engine_set *set); /* engine_set_run */
/* The parameter block, the caller's, and what the function is; or why it cannot be launched so. */
cudaError_t engine_launch_pack_locked(const engine_launch *launch, int device, engine_function_info *info,
                                      unsigned char **params);
/* Why it cannot be launched now, if so; adds 1 to *lanes if its kernel may wait and its stream has no lane. */
cudaError_t engine_launch_check_locked(const engine_launch *launch, uint32_t *lanes);
cudaError_t engine_launch_on(const engine_launch *launch, engine_stream *stream); /* with `packed` */
/* It, and what the calling thread says of it besides: before the lock is taken for engine_launch_locked, which takes
 * *declared over where it has to (NULL: nothing), and gives the lock away only if the stream's operations are queued
 * and there is no lane for it (engine_deferred_have_room). */
engine_launch engine_launch_noted(const engine_launch *launch);
cudaError_t engine_launch_locked(const engine_launch *launch, engine_declared **declared);
cudaError_t engine_launch_packed(const engine_launch *launch, const engine_function_info *info, engine_stream *stream,
                                 unsigned char *params,
                                 /* what engine_launch_pack_locked gave; declared: NULL or borrowed */
                                 const engine_declared *declared);

/* ---- kernels from Tile IR: engine_tile.c ---- */

/* Translates the bytecode and makes it a source of the module. bytes == 0: it knows its own end. FF_PARSE: it is
 * broken; FF_UNSUPPORTED: an operation in it is not translated. */
ff_status engine_tile_add(engine_module *module, const void *bytecode, size_t bytes, ff_error *error);
bool engine_tile_has(const engine_module *module); /* has it such a source? */
/* Says once that the Tile IR of that library or program is translated. */
void engine_tile_say(const char *owner);
/* Was this kernel of the module's own code translated? */
bool engine_tile_kernel(const engine_module *module, const char *name);
/* The launch as it runs: a program launches such a kernel with one thread per block, and it runs with as many as its
 * translation needs. cudaErrorInvalidValue: blocks of more; *settled is the launch as it is. */
cudaError_t engine_tile_settle(const engine_launch *launch, const engine_function_info *info, engine_launch *settled);

/* ---- kernels bound to SMs: engine_bound.c ---- */

/* The module's code gets its kernels' persistent forms, if that was asked for. */
ff_status engine_bound_module(engine_module *module, ff_error *error);
typedef struct engine_bound { /* what a launch becomes */
  engine_launch launch;
  engine_function_info info;
  unsigned char *params; /* of malloc */
} engine_bound;
/* `params`: as engine_launch_pack_locked gave them. false: the launch stays as it is. */
bool engine_bound_launch(const engine_launch *launch, const engine_function_info *info, engine_stream *stream,
                         const unsigned char *params, engine_bound *out);
void engine_bound_forget(engine_stream *stream); /* it ends: its queue goes */

void engine_prefetch_on(engine_stream *stream, uint64_t address, uint64_t bytes, int device);
void engine_stream_wait_event_locked(engine_stream *stream, engine_event *event);

/* engine_deferred.c: a kernel that waits for the host, and what comes after it */
struct engine_node_params;
bool engine_deferred(const engine_stream *stream); /* is what is put on the stream now queued? */
/* Until nothing is, or nothing of a device or a stream, or the event is recorded; they give the lock away meanwhile.
 * NULL: the stream or event is no more. */
void engine_deferred_wait(void);
void engine_deferred_wait_device(int device);
engine_stream *engine_deferred_wait_stream(engine_stream *stream);
cudaError_t engine_deferred_settle(engine_stream *stream); /* waits likewise; what has gone wrong meanwhile */
engine_event *engine_deferred_wait_event(cudaEvent_t handle);
bool engine_deferred_is_active(int device); /* has it such a kernel, or a queue? */
bool engine_deferred_full(void);            /* no more can be appended until then */
/* without the lock, after a query of queued operations: the kernel needs the lock */
void engine_deferred_rest(void);
/* cudaSuccess and *taken: it is queued. Else it is to be carried out now; `async`: the call need not wait for it. */
cudaError_t engine_deferred_take(engine_stream *stream, const struct engine_node_params *params, bool async,
                                 bool *taken);
/* Before a stream waits for the event: if its recording is queued, also by another process, so will be the wait; or it
 * is over when this returns. */
cudaError_t engine_deferred_begin_wait(engine_stream *stream, const engine_event *event);
/* As engine_deferred_take. */
cudaError_t engine_deferred_prefetch(engine_stream *stream, uint64_t address, uint64_t bytes, int device, bool *taken);
/* Launches: on the engine's own thread if the kernel may wait, or queued, or here. Takes *declared over where it has
 * to. */
cudaError_t engine_deferred_launch(const engine_launch *launch, engine_stream *stream, engine_declared **declared);
bool engine_deferred_can(void); /* does this thread's kernel give way? then by */
void engine_deferred_give_way(void *unused);
void engine_deferred_forget(void); /* in a forked child */
/* engine_grids.c: has a launch that is queued or has given way this meeting? */
bool engine_deferred_meet(uint64_t meeting);
/* Can this many kernels give way, too, that are launched before this thread gives the lock back? If not, it says why,
 * about the kernel of `launch`. */
bool engine_deferred_have_room(const engine_launch *launch, uint32_t kernels);

/* engine_capture.c: before work is put on a stream. cudaSuccess and *taken: it became a node. Else the stream is not
 * captured, or the error ends the capture. `async`: may the call be captured at all? */
struct engine_node_params;
cudaError_t engine_capture_take(engine_stream *stream, struct engine_node_params *params, bool async, bool *taken);
/* a call that no captured stream allows: a query, a synchronisation */
cudaError_t engine_capture_refuse(engine_stream *stream);
/* a call that no capture anywhere allows: cudaDeviceSynchronize */
cudaError_t engine_capture_any(void);
/* a call that this thread's and others' captures may forbid: cudaMalloc */
cudaError_t engine_capture_unsafe(void);
cudaError_t engine_capture_record(engine_event *event, engine_stream *stream, bool *taken);
cudaError_t engine_capture_wait(engine_stream *stream, engine_event *event, bool *taken);
void engine_capture_forget(engine_stream *stream); /* it is destroyed */

#define ENGINE_WAITING_MS 10000u    /* of the host's time, after which it is said that something waits */
extern uint32_t engine_patience_ms; /* the same for host functions; tests have less */
extern uint32_t engine_grace_ms;    /* of the host's time: engine_enter_stream */

/* ---- graphs that kernels launch ---- */
uint64_t engine_graph_inside(void);             /* the exec whose node this thread runs; 0: none */
bool engine_graph_ask(const exec_child *child); /* to run when what asks has ended; false: it is none for kernels */
/* Runs all that was asked for on this thread, unless it is still inside a graph. After an error, which is returned,
 * nothing of it runs, now or later. */
cudaError_t engine_graph_run_asked(engine_stream *stream, cudaError_t error);
void engine_graphs_reset(int device);                  /* its graphs and captures go */
void engine_execs_forget(const engine_stream *stream); /* that goes */
bool engine_graph_address(uint64_t address);           /* in memory that alloc nodes give out */
cudaError_t engine_graph_free_address(uint64_t address, engine_stream *stream, bool *found);

/* engine_pool.c: what streams know of each other's past; what the host has waited for; what came from a pool */
void engine_known_record(engine_event *event, const engine_stream *stream);
void engine_known_wait(engine_stream *stream, const engine_event *event);
void engine_pools_synchronised(int device); /* and when streams and events were: */
void engine_pools_synchronised_stream(const engine_stream *stream);
void engine_pools_synchronised_event(const engine_event *event);
void engine_pools_reset(int device); /* before all its memory goes */
bool engine_pool_take_back(uint64_t address, engine_stream *stream);
bool engine_pool_allows(const exec_allocation *allocation, int device, int *access);
/* How much was allocated from the device with the memory that an allocation is part of; its own bytes if it is no
 * pool's. The part of the same memory behind it; NULL: none. */
uint64_t engine_pool_bytes(const exec_allocation *allocation);
const exec_allocation *engine_pool_next(const exec_allocation *allocation);
bool engine_pools_on_host(void); /* is there one whose memory devices may use only when they are told so? */
cudaError_t engine_allocate_locked(int device, engine_memory memory, uint64_t bytes, unsigned flags, const char *call,
                                   uint64_t *address);
cudaError_t engine_free_locked(uint64_t address, unsigned allowed);
/* cudaMemAdvise on a range of one managed allocation */
void engine_advise_managed(uint64_t address, uint64_t bytes, int advice, int device);

#define ENGINE_ANY_DEVICE (-1)
int engine_device_of(const engine_stream *stream); /* NULL: the calling thread's */
uint32_t engine_origin(int device);                /* trace_op.stream of what is no stream's */
bool engine_device_exists(int device);
void engine_peers_changed(void);    /* whose memory which device may use, or what memory there is */
void engine_peers_show(int device); /* before a kernel of its: it sees what it may use, and nothing else */
/* use memory of its own or of another one's */
bool engine_peer_may(int device, const exec_allocation *allocation, bool write);
int engine_memory_device(const exec_allocation *allocation); /* whose it is */

/* device memory that is not the program's; 0: no room */
uint64_t engine_allocate_hidden(int device, uint64_t bytes, const char *name);
void engine_release_hidden(uint64_t address);

/* engine_vmm.c with the lock: as the functions of the same name */
cudaError_t engine_reserve_locked(uint64_t bytes, uint64_t alignment, uint64_t wanted, uint64_t *address);
cudaError_t engine_unreserve_locked(uint64_t address);
cudaError_t engine_memory_create_locked(int device, uint64_t bytes, const void *note, uint32_t note_bytes, bool shared,
                                        uint64_t *handle);
void engine_memory_release_locked(uint64_t handle);
cudaError_t engine_map_locked(uint64_t address, uint64_t bytes, uint64_t handle);
cudaError_t engine_unmap_locked(uint64_t address, uint64_t bytes);

/* An allocation's name in the access stream: its title, and the range of NVTX that the thread is in, if one is:
 * "layer2/conv (cuMemAlloc #4)". Of a range that is too long its end. */
void engine_name_allocation(char name[64], const char *title);
void engine_note_allocation(int device, const exec_allocation *allocation, unsigned flags, engine_owner owner,
                            const char *name, trace_memory_kind memory);
void engine_forget_allocation(const exec_allocation *allocation);
engine_pointer engine_pointer_find_locked(uint64_t address);
void engine_memory_reset(int device);
void engine_vmm_reset(int device); /* unmaps, releases and gives back all that is its */
void engine_vmm_show(int device);  /* mappings as it may use them; engine_peers_show */
/* Is all of the range mapped, with such access for some device, without gaps? The address is in a mapping. */
bool engine_mapped_range(uint64_t address, uint64_t bytes, bool write);
bool engine_mapped_may(const exec_allocation *mapping, int device, bool write);
int engine_mapped_device(const exec_allocation *mapping);                             /* whose memory is mapped there */
void engine_mapped_open(const exec_allocation *mapping, int device, unsigned access); /* engine_set_access */
bool engine_memory_fits(int device, engine_memory memory, uint64_t bytes);

/* Parses the module's sources (at least one), as far as they are needed: fills `parts`, in the order of the sources. */
ff_status engine_parts_parse(engine_module *module, ff_error *error);
const ptx_module *engine_module_code(const engine_module *module); /* of one that has its parts */

/* ---- PTX in the place of machine code (engine_kernels.c) ---- */

/* Adds the text from the folders of --kernels that defines what the module's images do, of which none has PTX. `image`:
 * the only image, where it is machine code itself; else NULL, and `set` has the images. FF_NOT_FOUND: there is none;
 * the message names the source file, and the list of missing ones (--missing) has it. */
ff_status engine_kernels_take(engine_module *module, const fatbin_set *set, const void *image, size_t bytes,
                              ff_error *error);
/* The name in the module's code of what the program knows as `name`: that name itself, or the one that has the same
 * common form. It lives as long as the code or `name`. */
const char *engine_kernels_name(engine_module *module, const char *name);
/* Finds the module whose code has the kernel, of a loaded module: that one, or a part of it, which is made. */
ff_status engine_kernels_home(engine_function *function, ff_error *error);
const char *engine_kernels_home_name(const engine_function *function); /* the kernel's name there */
/* Does another file than the module's have the kernel, as it has a template's? */
bool engine_kernels_elsewhere(const engine_module *module, const char *name);
engine_module *engine_module_of_text(void); /* one that has no sources yet */
/* A part of `module` that has this text, owned by it from now on. */
engine_module *engine_module_part(engine_module *module, engine_source source);
/* The module's text from a folder lacks the kernel: says so once, and lists it. */
void engine_kernels_lacks(const engine_module *module, const char *name);
/* The kernel is asked for of a module without PTX: lists it, and says its name once, of the first few of a library. */
void engine_kernels_no_text(const engine_module *module, const char *name);
/* A registered kernel that is needed is missing. Without folders it is named, as by engine_kernels_no_text. With
 * folders of the user's the error is made sticky, since programs ignore that of the call that needs it (PyTorch those
 * of CUB). */
void engine_kernels_fault(const engine_function *function, int device);

/* The text is owned by the module from now on. */
void engine_module_add_source(engine_module *module, engine_source source);
/* The file that a registered module is in: a library's, or the program's name. */
const char *engine_module_owner(const engine_module *module);
/* On a device that it is for. */
cudaError_t engine_module_load_locked(engine_module *module, int device, ff_error *error);
int engine_module_device(const engine_module *module, int wanted); /* where it is used: that one, or its own */
/* The module's PTX to the access stream, once. */
void engine_module_trace(engine_module *module);
char *engine_demangle(const char *name); /* the C++ name a person reads, or the name; of malloc */
/* In a message of the interpreter's, in `size` bytes. The text of an instruction stays as the module has it. */
void engine_name_functions(char *message, size_t size);
/* of one that is loaded */
const ptx_func *engine_function_code(const engine_function *function);
void engine_function_mark(engine_function *function, int device); /* before its kernel's first launch; engine_marks.c */
/* of a loaded module; NULL: it has no such kernel */
engine_function *engine_function_of_locked(engine_module *module, const char *name);
cudaError_t engine_function_load_locked(engine_function *function, int device);
void engine_modules_reset(int device);
void engine_function_info_locked(engine_function *function, int device, engine_function_info *info);
cudaError_t engine_status_error(ff_status status);

#define DEVICE_THREADS 1024u /* the most of a block, on every device */
void engine_occupancy_of(const engine_function_info *info, uint32_t threads, uint64_t dynamic_shared,
                         engine_occupancy *out);

/* ---- the program's own memory, where the machine lets kernels touch it: engine_system.c ---- */

void engine_system_begin(void); /* when the machine is known */
/* Before a launch's operation: what its parameters point at, and what was shown before and is there no more. */
void engine_system_show(const void *params, uint32_t bytes, int device);
void engine_system_settle(int device); /* behind a launch: what the kernel found by itself */
/* How much of the bytes at `address` is in one piece, which is made known; 0: the host has no such memory there, or the
 * machine lets no kernel touch it. */
uint64_t engine_system_part(uint64_t address, uint64_t bytes, int device);
/* The program registers these pages: they are shown no more. */
void engine_system_hide(uint64_t address, uint64_t bytes);

/* What the program does with managed memory between its calls: engine_host_access.c. `filled`: it has contents already.
 * collect: before an operation of the device, or one that says how far the host is; appends what was touched since. The
 * device's own accesses lie between a collect and a settle. `launch`: a settle_all follows, so nothing need be
 * armed. */
typedef enum engine_host_access_level {
  ENGINE_TOUCH_OFF,
  ENGINE_TOUCH_GROUPS,
  ENGINE_TOUCH_PAGES,
  ENGINE_TOUCH_EXACT
} engine_host_access_level;
engine_host_access_level engine_host_access_level_now(void);
void engine_host_access_begin(void); /* before the first managed allocation is put into the access stream */
void engine_host_access_track(const exec_allocation *allocation, bool filled);
void engine_host_access_forget(const exec_allocation *allocation);
void engine_host_access_collect(bool launch);
void engine_host_access_settle(uint64_t address, uint64_t bytes);
void engine_host_access_settle_all(void);

void engine_print_flush(void); /* kernel printf to stdout; done at every synchronisation */

#endif
