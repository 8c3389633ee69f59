/* SPDX-License-Identifier: Apache-2.0 */
/* Events of several processes (cudaIpcGetEventHandle).
 *
 * The virtual GPU does its work at once, so a recording is over when its call returns, and nothing has to wait for it
 * in any process (it returns when the host functions before it have): unless the stream is behind a kernel that has
 * given way (engine_deferred.c). Such recordings are
 * counted in a page that the processes share: each process that has the event has a row of it.
 *
 *   of a row: begun >= ended; recordings begun - ended of `process` are queued
 *
 * A wait is for what is queued when it begins, row by row. It ends when each has come so far, when the process of a row
 * is gone (an error: what it was to record never happens), and when this process ends. Processes have clocks of their
 * own in virtual time: a wait for another process takes none.
 *
 * Another process may write anything into the page. Nothing here follows what is in it; a lie makes a wait long, or
 * short. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "driver/engine/engine_ipc.h"

#define REST_NANOSECONDS 1000000
#define ASK_EVERY 100u  /* rests: whether the others are still there */
#define PROCESS_BITS 22 /* of a process's number; above it the time when the process began, in ticks */

typedef struct recorder { /* only its process writes `begun` and `ended` */
  uint64_t process;       /* 0: nobody's */
  uint64_t begun, ended;
} recorder;

struct engine_ipc_event {
  recorder *rows; /* IPC_RECORDERS of them; shared */
  engine_shared file;
  uint64_t token[2];
  uint32_t references; /* the event, and its waits */
  uint32_t own;        /* our row */
  bool imported;
};

struct engine_ipc_wait {
  engine_ipc_event *event;
  uint32_t asked;
  uint64_t process[IPC_RECORDERS], begun[IPC_RECORDERS]; /* 0: that row has nothing queued */
};

/* ---- processes ---- */

/* A number that no other process has, also later; 0: there is no such process, or it has ended. */
static uint64_t identity(int process) {
  char path[40], text[1024];
  unsigned long long began;
  char state;
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  size_t got = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[got] = 0;
  const char *name_end = strrchr(text, ')'); /* the name may have anything in it */
  if (!name_end ||
      sscanf(name_end + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &state,
             &began) != 2)
    return 0;
  return state == 'Z' || state == 'X' ? 0 : (uint64_t)began << PROCESS_BITS | (uint64_t)process;
}

static bool is_gone(uint64_t process) {
  return identity((int)(process & ((UINT64_C(1) << PROCESS_BITS) - 1))) != process;
}

/* ---- the page ---- */

static uint64_t get(const uint64_t *value) { return __atomic_load_n(value, __ATOMIC_ACQUIRE); }
static void put(uint64_t *value, uint64_t to) { __atomic_store_n(value, to, __ATOMIC_RELEASE); }

static bool take_row(recorder *row, uint64_t before, uint64_t process) {
  if (!__atomic_compare_exchange_n(&row->process, &before, process, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return false;
  put(&row->ended, get(&row->begun));
  return true;
}

/* An empty row, or that of a process that is gone. */
static bool find_row(engine_ipc_event *event) {
  uint64_t process = identity((int)getpid());
  for (uint32_t pass = 0; process && pass < 2; pass++)
    for (uint32_t i = 0; i < IPC_RECORDERS; i++) {
      uint64_t before = get(&event->rows[i].process);
      if (before && !(pass && is_gone(before))) continue;
      if (!take_row(&event->rows[i], before, process)) continue;
      event->own = i;
      return true;
    }
  return false;
}

/* Takes `file` over. NULL: the host cannot map it, or too many processes have the event. */
static engine_ipc_event *open_event(engine_shared file, const uint64_t token[2], bool imported) {
  engine_ipc_event made = {.file = file, .token = {token[0], token[1]}, .references = 1, .imported = imported};
  made.rows = mmap(NULL, IPC_RECORDERS * sizeof *made.rows, PROT_READ | PROT_WRITE, MAP_SHARED, file.file, 0);
  if (made.rows == MAP_FAILED || !find_row(&made)) {
    if (made.rows != MAP_FAILED) munmap(made.rows, IPC_RECORDERS * sizeof *made.rows);
    engine_shared_close(&made.file);
    return NULL;
  }
  madvise(made.rows, IPC_RECORDERS * sizeof *made.rows, MADV_DONTFORK);
  engine_ipc_event *event = ff_alloc(sizeof *event);
  *event = made;
  return event;
}

static void let_go(engine_ipc_event *event) {
  if (--event->references) return;
  recorder *row = &event->rows[event->own];
  put(&row->ended, get(&row->begun));
  put(&row->process, 0);
  munmap(event->rows, IPC_RECORDERS * sizeof *event->rows);
  engine_shared_close(&event->file);
  free(event);
}

void engine_ipc_event_free(engine_ipc_event *event) {
  if (event) let_go(event);
}

/* ---- recordings ---- */

void engine_ipc_event_begin(engine_ipc_event *event) {
  recorder *row = &event->rows[event->own];
  put(&row->begun, get(&row->begun) + 1);
}

void engine_ipc_event_end(engine_ipc_event *event) {
  recorder *row = &event->rows[event->own];
  put(&row->ended, get(&row->ended) + 1);
}

/* ---- waits ---- */

/* What this process has queued is waited for by engine_deferred.c. */
engine_ipc_wait *engine_ipc_wait_begin(const engine_event *event) {
  engine_ipc_event *ipc = event->ipc;
  engine_ipc_wait *wait = NULL;
  for (uint32_t i = 0; ipc && i < IPC_RECORDERS; i++) {
    uint64_t process = get(&ipc->rows[i].process), begun = get(&ipc->rows[i].begun);
    if (!process || i == ipc->own || begun == get(&ipc->rows[i].ended)) continue;
    if (!wait) {
      wait = ff_alloc(sizeof *wait);
      *wait = (engine_ipc_wait){.event = ipc};
      ipc->references++;
    }
    wait->process[i] = process;
    wait->begun[i] = begun;
  }
  return wait;
}

static cudaError_t ask_row(engine_ipc_wait *wait, uint32_t i, bool whether_gone) {
  const recorder *row = &wait->event->rows[i];
  if (!wait->process[i]) return cudaSuccess;
  if (get(&row->ended) >= wait->begun[i] || get(&row->process) != wait->process[i]) {
    wait->process[i] = 0; /* who lets go of an event has nothing to record any more */
    return cudaSuccess;
  }
  return whether_gone && is_gone(wait->process[i]) ? cudaErrorLaunchFailure : cudaErrorNotReady;
}

cudaError_t engine_ipc_wait_ask(engine_ipc_wait *wait) {
  bool whether_gone = wait->asked++ % ASK_EVERY == 0;
  cudaError_t worst = cudaSuccess;
  for (uint32_t i = 0; i < IPC_RECORDERS; i++) {
    cudaError_t error = ask_row(wait, i, whether_gone);
    if (error == cudaErrorLaunchFailure) {
      engine_say_once("cudaIpc event", "an event was to be recorded by process %llu, which has ended",
                      (unsigned long long)(wait->process[i] & ((UINT64_C(1) << PROCESS_BITS) - 1)));
      return error;
    }
    if (error) worst = error;
  }
  return worst;
}

cudaError_t engine_ipc_wait_for(engine_ipc_wait *wait) {
  cudaError_t error;
  while ((error = engine_ipc_wait_ask(wait)) == cudaErrorNotReady && !ff_engine.stop &&
         ff_engine.phase == ENGINE_READY) {
    pthread_mutex_unlock(&ff_engine.lock);
    nanosleep(&(struct timespec){.tv_nsec = REST_NANOSECONDS}, NULL);
    pthread_mutex_lock(&ff_engine.lock);
  }
  return error;
}

void engine_ipc_wait_free(engine_ipc_wait *wait) {
  if (!wait) return;
  let_go(wait->event);
  free(wait);
}

/* ---- handles ---- */

static cudaError_t share(engine_event *event) {
  engine_shared file;
  uint64_t token[2];
  engine_shared_head head = {.bytes = EXEC_PAGE_BYTES, .device = event->device, .kind = ENGINE_SHARED_EVENT};
  if (!ipc_token_make(token)) return cudaErrorOperatingSystem;
  memcpy(head.note, token, sizeof token);
  if (!engine_shared_make(&file, &head)) return cudaErrorMemoryAllocation;
  event->ipc = open_event(file, token, false);
  if (!event->ipc) return cudaErrorMapBufferObjectFailed;
  for (uint32_t i = 0; i < event->behind; i++) engine_ipc_event_begin(event->ipc);
  return cudaSuccess;
}

cudaError_t engine_ipc_event_export(cudaEvent_t handle, void *out) {
  cudaError_t error = engine_enter_during_kernel();
  if (error) return error;
  engine_event *event = engine_event_find(handle);
  bool own = event && event->flags & cudaEventInterprocess && !(event->ipc && event->ipc->imported);
  if (!own) error = cudaErrorInvalidResourceHandle;
  else if (!event->ipc) error = share(event);
  if (!error && !engine_shared_lives(&event->ipc->file)) error = cudaErrorOperatingSystem;
  if (!error) {
    ipc_handle_write(out, IPC_EVENT, event->ipc->token, (uint64_t[2]){0}, &event->ipc->file, 0);
    engine_append_host();
  }
  engine_leave();
  return error;
}

static bool is_own(const ipc_handle *handle) {
  for (const engine_event *e = ff_engine.events; e; e = e->next)
    if (e->ipc && !e->ipc->imported && !memcmp(e->ipc->token, handle->token, sizeof handle->token)) return true;
  return false;
}

static cudaError_t import_new(const ipc_handle *handle, cudaEvent_t *out) {
  engine_shared file;
  engine_shared_head head;
  cudaError_t error = ipc_handle_reach(handle, IPC_EVENT, &file, &head);
  if (error) return error;
  if (head.bytes != EXEC_PAGE_BYTES) {
    engine_shared_close(&file);
    return cudaErrorMapBufferObjectFailed;
  }
  engine_ipc_event *ipc = open_event(file, handle->token, true);
  if (!ipc) return cudaErrorMapBufferObjectFailed;
  engine_event *event = engine_event_make(cudaEventInterprocess | cudaEventDisableTiming);
  event->ipc = ipc;
  *out = (cudaEvent_t)event;
  return cudaSuccess;
}

cudaError_t engine_ipc_event_import(const void *handle, cudaEvent_t *out) {
  ipc_handle read;
  cudaError_t error = engine_enter_during_kernel();
  if (error) return error;
  error = ipc_handle_read(&read, IPC_EVENT, handle);
  if (!error && is_own(&read)) error = cudaErrorDeviceUninitialized;
  if (!error) error = import_new(&read, out);
  if (!error) engine_append_host();
  engine_leave();
  return error;
}
