/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory that other processes have by a handle (cudaIpc), or by what a pool exports. engine_ipc_event.c has
 * events.
 *
 *   exporter: an allocation's pages are its process's own until the first handle of it is made. Then they go to a file
 *             in memory, at the same addresses (exec_memory_share): a program that makes no handle pays nothing.
 *   importer: opens that file by the exporter's table of descriptors, /proc/PID/fd, which its user's processes may;
 *             checks that it is what the handle names; maps it. No thread of the exporter takes part, so nothing waits.
 *
 * The pages live as long as a process has mapped them. After the exporter has freed them, or has ended, a handle opens
 * nothing any more; who had opened it keeps what it has. On a GPU that is undefined.
 *
 * An imported allocation is the device's of the number that it has in the exporter, where this process has one, else
 * the current one's. device_used does not count it: the exporter's does. The access stream has it as an allocation that
 * holds something already.
 *
 * Invariants: an exported allocation is live and the program's, an imported one ENGINE_OWNER_IMPORT and has references;
 * both have pages of a file. */
#define _GNU_SOURCE
#include "driver/engine/engine_ipc.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const char magics[][8] = {[IPC_MEMORY] = "ffmemory", [IPC_EVENT] = "ff event", [IPC_POOLED] = "ffpooled"};
static const engine_shared_kind shared_kinds[] = {
    [IPC_MEMORY] = ENGINE_SHARED_BY_HANDLE, [IPC_EVENT] = ENGINE_SHARED_EVENT, [IPC_POOLED] = ENGINE_SHARED_POOLED};
static const uint64_t no_pool[2];

typedef struct export {
  const exec_allocation *allocation;
  uint64_t token[2];
  engine_shared file;
}
export;

typedef struct import {
  const exec_allocation *allocation;
  uint64_t token[2];
  uint32_t references; /* how often it was opened, and not closed */
  uint32_t devices;    /* bit d: on that one */
} import;

static struct {
  FF_VEC(export) exports;
  FF_VEC(import) imports;
  uint64_t opened; /* so far */
} ipc;

/* ---- handles ---- */

bool ipc_token_make(uint64_t token[2]) {
  return getrandom(token, 2 * sizeof *token, GRND_NONBLOCK) == (ssize_t)(2 * sizeof *token);
}

void ipc_handle_write(void *handle, ipc_kind kind, const uint64_t token[2], const uint64_t pool[2],
                      const engine_shared *file, uint64_t bytes) {
  ipc_handle made = {.token = {token[0], token[1]},
                     .process = (int32_t)getpid(),
                     .descriptor = file->file,
                     .bytes = bytes,
                     .pool = {pool[0], pool[1]}};
  memcpy(made.magic, magics[kind], sizeof made.magic);
  memcpy(handle, &made, sizeof made);
}

cudaError_t ipc_handle_read(ipc_handle *out, ipc_kind kind, const void *handle) {
  static const unsigned char zero[sizeof out->zero];
  memcpy(out, handle, sizeof *out);
  bool good = !memcmp(out->magic, magics[kind], sizeof out->magic) && !memcmp(out->zero, zero, sizeof zero) &&
              out->process > 0 && out->descriptor >= 0 && !out->bytes == (kind == IPC_EVENT) &&
              (kind == IPC_POOLED || !memcmp(out->pool, no_pool, sizeof no_pool));
  return good ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t ipc_handle_reach(const ipc_handle *handle, ipc_kind kind, engine_shared *file, engine_shared_head *head) {
  if (!engine_shared_reach(file, handle->process, handle->descriptor, shared_kinds[kind], head))
    return cudaErrorMapBufferObjectFailed;
  if (!memcmp(head->note, handle->token, sizeof handle->token) &&
      !memcmp(head->note + sizeof handle->token, handle->pool, sizeof handle->pool))
    return cudaSuccess;
  engine_shared_close(file);
  return cudaErrorMapBufferObjectFailed;
}

/* ---- giving ---- */

static export *exported(const exec_allocation *allocation) {
  for (size_t i = 0; i < ipc.exports.count; i++)
    if (ipc.exports.items[i].allocation == allocation) return &ipc.exports.items[i];
  return NULL;
}

bool engine_ipc_capable_locked(uint64_t address) {
  const exec_allocation *a = exec_memory_find(ff_engine.memory, address);
  int access;
  return a && !a->freed && a->range == EXEC_ALLOCATED && a->kind == EXEC_MEMORY_DEVICE &&
         ff_engine.notes.items[a->id].owner == ENGINE_OWNER_PROGRAM && !engine_pool_allows(a, 0, &access);
}

/* Its bytes may come from another process from now on: for a checker of this one they all have a value. */
static void tell_checker(const exec_allocation *allocation) {
  trace_op op = {.kind = TRACE_OP_SET};
  op.set.to = allocation->address;
  op.set.width = op.set.pitch = allocation->bytes;
  op.set.height = 1;
  if (ff_engine.check) check_operation(ff_engine.check, &op);
}

static cudaError_t share(const exec_allocation *allocation, ipc_kind kind, const uint64_t pool[2], export **out) {
  export made = {.allocation = allocation};
  engine_shared_head head = {.bytes = engine_whole_pages(allocation->bytes),
                             .device = engine_memory_device(allocation),
                             .kind = shared_kinds[kind]};
  if (!ipc_token_make(made.token)) return cudaErrorOperatingSystem;
  memcpy(head.note, made.token, sizeof made.token);
  memcpy(head.note + sizeof made.token, pool, sizeof made.token);
  if (!engine_shared_make(&made.file, &head)) return cudaErrorMemoryAllocation;
  if (exec_memory_share(ff_engine.memory, allocation, made.file.file, true, NULL)) {
    engine_shared_close(&made.file);
    return cudaErrorMemoryAllocation;
  }
  tell_checker(allocation);
  FF_PUSH(&ipc.exports, made);
  *out = &ipc.exports.items[ipc.exports.count - 1];
  return cudaSuccess;
}

static cudaError_t export_locked(const exec_allocation *allocation, ipc_kind kind, const uint64_t pool[2],
                                 void *handle) {
  export *e = exported(allocation);
  cudaError_t error = e ? cudaSuccess : share(allocation, kind, pool, &e);
  if (error) return error;
  if (!engine_shared_lives(&e->file)) {
    engine_say_once("cudaIpc", "the program has closed a file that memory it shares lies in: no process can open it");
    return cudaErrorOperatingSystem;
  }
  ipc_handle_write(handle, kind, e->token, pool, &e->file, allocation->bytes);
  engine_append_host();
  return cudaSuccess;
}

cudaError_t engine_ipc_export(uint64_t address, void *handle) {
  cudaError_t error = engine_enter_during_kernel();
  if (error) return error;
  if (engine_ipc_capable_locked(address))
    error = export_locked(exec_memory_find(ff_engine.memory, address), IPC_MEMORY, no_pool, handle);
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

cudaError_t engine_ipc_export_pooled(const exec_allocation *allocation, const uint64_t pool[2], void *data) {
  return export_locked(allocation, IPC_POOLED, pool, data);
}

bool engine_ipc_capable(uint64_t address) {
  cudaError_t error = engine_enter_now();
  if (error) return false;
  bool capable = engine_ipc_capable_locked(address);
  engine_leave();
  return capable;
}

void engine_ipc_forget(const exec_allocation *allocation) {
  export *e = exported(allocation);
  if (!e) return;
  engine_shared_close(&e->file);
  *e = ipc.exports.items[--ipc.exports.count];
}

/* ---- taking ---- */

static bool is_own(const ipc_handle *handle) {
  for (size_t i = 0; i < ipc.exports.count; i++)
    if (!memcmp(ipc.exports.items[i].token, handle->token, sizeof handle->token)) return true;
  return false;
}

static import *opened_before(const ipc_handle *handle) {
  for (size_t i = 0; i < ipc.imports.count; i++)
    if (!memcmp(ipc.imports.items[i].token, handle->token, sizeof handle->token)) return &ipc.imports.items[i];
  return NULL;
}

/* Addresses of its own, with the file's pages. */
static cudaError_t map(const char *call, const engine_shared *file, uint64_t bytes, int device,
                       const exec_allocation **out) {
  char title[48], name[80];
  snprintf(title, sizeof title, "%s #%llu", call, (unsigned long long)ipc.opened + 1);
  snprintf(name, sizeof name, "%s (%llu bytes)", title, (unsigned long long)bytes);
  if (exec_memory_allocate(ff_engine.memory, bytes, 512, EXEC_MEMORY_DEVICE, name, out, NULL))
    return cudaErrorMemoryAllocation;
  if (exec_memory_share(ff_engine.memory, *out, file->file, false, NULL)) {
    exec_memory_release(ff_engine.memory, (*out)->address, NULL);
    return cudaErrorMapBufferObjectFailed;
  }
  ipc.opened++;
  engine_note_allocation(device, *out, 0, ENGINE_OWNER_IMPORT, title, TRACE_MEMORY_DEVICE);
  return cudaSuccess;
}

/* `call`: whose name the allocation gets. */
static cudaError_t map_handle(const ipc_handle *handle, ipc_kind kind, const char *call, const exec_allocation **out) {
  engine_shared file;
  engine_shared_head head;
  cudaError_t error = ipc_handle_reach(handle, kind, &file, &head);
  if (error) return error;
  int device = engine_device_exists(head.device) ? head.device : engine_device_of(NULL);
  if (handle->bytes > head.bytes || head.bytes != engine_whole_pages(handle->bytes)) error = cudaErrorInvalidValue;
  else error = map(call, &file, handle->bytes, device, out);
  engine_shared_close(&file); /* what is mapped stays */
  return error;
}

cudaError_t engine_ipc_import_pooled(const void *data, const uint64_t pool[2], const exec_allocation **out) {
  ipc_handle read;
  cudaError_t error = ipc_handle_read(&read, IPC_POOLED, data);
  if (!error && memcmp(read.pool, pool, sizeof read.pool)) error = cudaErrorInvalidValue;
  return error ? error : map_handle(&read, IPC_POOLED, "cudaMemPoolImportPointer", out);
}

static cudaError_t import_new(const ipc_handle *handle, import **out) {
import made = {.token = { handle->token[0], handle->token[1] } };
  cudaError_t error = map_handle(handle, IPC_MEMORY, "cudaIpcOpenMemHandle", &made.allocation);
  if (error) return error;
  FF_PUSH(&ipc.imports, made);
  *out = &ipc.imports.items[ipc.imports.count - 1];
  return cudaSuccess;
}

cudaError_t engine_ipc_import(const void *handle, uint64_t *address) {
  ipc_handle read;
  cudaError_t error = engine_enter_during_kernel();
  if (error) return error;
  import *i = NULL;
  error = ipc_handle_read(&read, IPC_MEMORY, handle);
  if (!error && is_own(&read)) error = cudaErrorDeviceUninitialized; /* the manual: not in its own process */
  if (!error) i = opened_before(&read);
  if (!error && !i) error = import_new(&read, &i);
  if (!error) {
    i->references++;
    i->devices |= UINT32_C(1) << engine_device_of(NULL);
    engine_peers_changed();
    engine_append_host();
    *address = i->allocation->address;
  }
  engine_leave();
  return error;
}

bool engine_ipc_allows(const exec_allocation *allocation, int device, bool *may) {
  for (size_t i = 0; i < ipc.imports.count; i++) {
    if (ipc.imports.items[i].allocation != allocation) continue;
    *may = ipc.imports.items[i].devices >> device & 1;
    return true;
  }
  return false;
}

static void drop(size_t at) {
  const exec_allocation *allocation = ipc.imports.items[at].allocation;
  engine_time_wait_device(engine_memory_device(allocation));
  engine_forget_allocation(allocation);
  exec_memory_release(ff_engine.memory, allocation->address, NULL);
  ipc.imports.items[at] = ipc.imports.items[--ipc.imports.count];
}

cudaError_t engine_ipc_close(uint64_t address) {
  cudaError_t error = engine_enter();
  if (error) return error;
  size_t at = 0;
  while (at < ipc.imports.count && ipc.imports.items[at].allocation->address != address) at++;
  if (at == ipc.imports.count) error = cudaErrorInvalidValue;
  else if (--ipc.imports.items[at].references) engine_append_host();
  else drop(at);
  engine_leave();
  return error;
}

void engine_ipc_reset(int device) {
  for (size_t i = ipc.imports.count; i-- > 0;)
    if (engine_memory_device(ipc.imports.items[i].allocation) == device) drop(i);
}
