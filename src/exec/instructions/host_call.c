/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of vprintf, __assertfail, malloc, free, cudaGraphSetConditional and what dynamic parallelism needs
 * (children.c): fetches their arguments lane by lane, in lane order. */

#include <stdio.h>
#include <string.h>

#include "exec/memory/access.h"
#include "exec/launch/checker.h"
#include "exec/launch/fault.h"
#include "exec/memory/heap.h"
#include "exec/instructions/host_call.h"
#include "exec/launch/print_order.h"
#include "exec/instructions/kernel_printf.h"

/* ---- names ---- */

static const struct {
  const char *name;
  exec_host_call call;
} functions[] = {
    {"vprintf", EXEC_HOST_VPRINTF},
    {"__assertfail", EXEC_HOST_ASSERT},
    {"malloc", EXEC_HOST_MALLOC},
    {"free", EXEC_HOST_FREE},
    {"cudaGraphSetConditional", EXEC_HOST_CONDITION},
    {"cudaGraphLaunch", EXEC_HOST_GRAPH_LAUNCH},
    {"__cuda_syscall_cnpv2GetParameterBufferV2", EXEC_HOST_PARAMETER_BUFFER},
    {"__cuda_syscall_cnpv2LaunchDeviceV2", EXEC_HOST_LAUNCH},
    {"__cuda_syscall_cnpv2StreamCreate", EXEC_HOST_NEW_HANDLE},
    {"__cuda_syscall_cnpv2EventCreate", EXEC_HOST_NEW_HANDLE},
    {"__cuda_syscall_cnpv2StreamDestroy", EXEC_HOST_NOTHING},
    {"__cuda_syscall_cnpv2EventDestroy", EXEC_HOST_NOTHING},
    {"__cuda_syscall_cnpv2EventRecord", EXEC_HOST_NOTHING},
    {"__cuda_syscall_cnpv2StreamWaitEvent", EXEC_HOST_NOTHING},
    {"__cuda_syscall_cnpv2SetLastError", EXEC_HOST_SET_ERROR},
    {"__cuda_syscall_cnpv2GetLastError", EXEC_HOST_LAST_ERROR},
    {"__cuda_syscall_cnpv2GetDevice", EXEC_HOST_DEVICE},
    {"__cuda_syscall_cnpv2GetDeviceCount", EXEC_HOST_DEVICE_COUNT},
    {"__cuda_syscall_cnpv2DeviceGetAttribute", EXEC_HOST_ATTRIBUTE},
    {"__cuda_syscall_cnpv2GetLimit", EXEC_HOST_LIMIT},
};

uint32_t exec_host_function(const char *name) {
  for (size_t n = 0; n < sizeof functions / sizeof *functions; n++)
    if (!strcmp(name, functions[n].name)) return functions[n].call;
  return EXEC_HOST_NONE;
}

/* ---- arguments and results ---- */

uint32_t core_argument_word(const core_warp *w, const exec_call *call, uint32_t n, uint32_t word, uint32_t lane) {
  if (n >= call->argument_count || word >= call->arguments[n].words) return 0;
  const exec_place *place = &call->arguments[n];
  const unsigned char *row = place->local != EXEC_NO_OFFSET
                                 ? core_local_word(w, w->frame->local + place->local + 4 * word, 0)
                                 : w->frame->registers + place->offset + word * EXEC_SLOT;
  uint32_t value;
  memcpy(&value, row + lane * 4, 4);
  return value;
}

uint64_t core_argument(const core_warp *w, const exec_call *call, uint32_t n, uint32_t lane) {
  return core_argument_word(w, call, n, 0, lane) | (uint64_t)core_argument_word(w, call, n, 1, lane) << 32;
}

static void give_result(const core_warp *w, const exec_call *call, uint32_t lane, uint64_t value) {
  if (!call->result_count) return;
  const exec_place *place = &call->results[0];
  for (uint32_t word = 0; word < place->words && word < 2; word++) {
    uint32_t part = (uint32_t)(value >> (32 * word));
    memcpy(w->frame->registers + place->offset + word * EXEC_SLOT + lane * 4, &part, 4);
  }
}

/* ---- the kernel's memory by generic addresses ---- */

typedef struct reader {
  core_warp *w;
  const exec_instr *i;
  uint32_t lane;
} reader;

#define PRINT_ARGUMENT_BYTES 512u /* more than 32 conversions with widths and precisions need */

void *core_global_bytes(const core_warp *w, uint64_t address, uint32_t count) {
  const exec_span *span = exec_memory_span(w->launch->memory, address);
  uint64_t offset = span ? address - span->info.address : 0;
  if (!span || offset >= span->readable || span->readable - offset < count) return NULL;
  return (void *)(uintptr_t)address;
}

static bool in_bytes(uint64_t offset, uint64_t bytes, uint32_t count) {
  return offset < bytes && bytes - offset >= count;
}

static bool can_read(const core_warp *w, uint64_t address, uint32_t count) {
  return core_global_bytes(w, address, count) || in_bytes(address - EXEC_SHARED_WINDOW, w->shared_bytes, count) ||
         in_bytes(address - EXEC_LOCAL_WINDOW, w->frame->stack, count);
}

static void read_memory(const reader *r, uint64_t address, void *bytes, uint32_t count) {
  static const exec_access as_load = {.op = EXEC_OP_LOAD, .space = PTX_SPACE_GENERIC};
  core_warp *w = r->w;
  const unsigned char *global = core_global_bytes(w, address, count);
  uint64_t shared = address - EXEC_SHARED_WINDOW, local = address - EXEC_LOCAL_WINDOW;
  if (!can_read(w, address, count)) {
    exec_instr i = *r->i;
    i.side = &as_load;
    core_fault_access(w, &i, r->lane, EXEC_FAULT_ILLEGAL_ADDRESS, address, count);
  }
  if (global) memcpy(bytes, global, count);
  else if (in_bytes(shared, w->shared_bytes, count)) memcpy(bytes, w->shared + shared, count);
  else
    for (uint32_t n = 0; n < count; n++)
      ((unsigned char *)bytes)[n] = *core_local_word(w, (uint32_t)local + n, r->lane);
}

void core_write_memory(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, const void *bytes,
                       uint32_t count) {
  static const exec_access as_store = {.op = EXEC_OP_STORE, .space = PTX_SPACE_GENERIC};
  unsigned char *global = core_global_bytes(w, address, count);
  uint64_t shared = address - EXEC_SHARED_WINDOW, local = address - EXEC_LOCAL_WINDOW;
  if (!can_read(w, address, count)) {
    exec_instr store = *i;
    store.side = &as_store;
    core_fault_access(w, &store, lane, EXEC_FAULT_ILLEGAL_ADDRESS, address, count);
  }
  if (global) memcpy(global, bytes, count);
  else if (in_bytes(shared, w->shared_bytes, count)) memcpy(w->shared + shared, bytes, count);
  else
    for (uint32_t n = 0; n < count; n++)
      *core_local_word(w, (uint32_t)local + n, lane) = ((const unsigned char *)bytes)[n];
  exec_checker *checker = w->launch->checker;
  ptx_space space = global                                     ? PTX_SPACE_GLOBAL
                    : in_bytes(shared, w->shared_bytes, count) ? PTX_SPACE_SHARED
                                                               : PTX_SPACE_LOCAL;
  if (checker)
    checker->wrote(checker, w, lane, space,
                   space == PTX_SPACE_GLOBAL   ? address
                   : space == PTX_SPACE_SHARED ? shared
                                               : local,
                   count);
}

static void read_string(const reader *r, uint64_t address, char *string, uint32_t room) {
  uint32_t n = 0;
  if (address)
    for (; n + 1 < room; n++) {
      read_memory(r, address + n, &string[n], 1);
      if (!string[n]) break;
    }
  string[n] = 0;
}

/* ---- the functions ---- */

static bool read_printed(void *context, uint64_t address, char *string, size_t room) {
  const reader *r = context;
  size_t n = 0;
  while (n + 1 < room && can_read(r->w, address + n, 1)) {
    read_memory(r, address + n, &string[n], 1);
    if (!string[n++]) return true;
  }
  string[n] = 0;
  return n > 0;
}

static void call_vprintf(core_warp *w, const exec_instr *i, const exec_call *call, uint32_t lane) {
  unsigned char arguments[PRINT_ARGUMENT_BYTES];
  uint64_t format = core_argument(w, call, 0, lane), buffer = core_argument(w, call, 1, lane);
  size_t bytes = 0; /* how much of the buffer there is, is not said: as far as it can be read */
  while (buffer && bytes < sizeof arguments && can_read(w, buffer + bytes, 4)) {
    read_memory(&(reader){w, i, lane}, buffer + bytes, arguments + bytes, 4);
    bytes += 4;
  }
  int count = exec_print_format(&w->block->print, w->launch->memory, format, arguments, bytes,
                                &(exec_print_reader){read_printed, &(reader){w, i, lane}});
  if (count < 0)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_ADDRESS, format, "printf: the format at 0x%llx cannot be read",
               (unsigned long long)format);
  give_result(w, call, lane, (uint64_t)(int64_t)count);
  core_output_flush(w->launch->output, w->block, false);
}

/* __assertfail(message, file, line, function, character size): CUDA's text of a failed assertion. */
static _Noreturn void call_assert(core_warp *w, const exec_instr *i, const exec_call *call, uint32_t lane) {
  reader r = {w, i, lane};
  char message[512], file[512], function[512], text[2048];
  read_string(&r, core_argument(w, call, 0, lane), message, sizeof message);
  read_string(&r, core_argument(w, call, 1, lane), file, sizeof file);
  read_string(&r, core_argument(w, call, 3, lane), function, sizeof function);
  const uint32_t *block = w->block->ctaid, *tid[3] = {w->tid[0], w->tid[1], w->tid[2]};
  snprintf(text, sizeof text, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.", file,
           (uint32_t)core_argument(w, call, 2, lane), function, block[0], block[1], block[2], tid[0][lane],
           tid[1][lane], tid[2][lane], message);
  core_fault_assert(w, i, lane, text);
}

#define DEFAULT_HEAP_BYTES (UINT64_C(8) << 20) /* cudaLimitMallocHeapSize, unless a program sets it */

/* The heap is made when a kernel first asks for memory. 0: no room. */
uint64_t core_device_malloc(core_warp *w, uint64_t bytes) {
  exec_heap **heap = exec_memory_heap(w->launch->memory);
  uint64_t heap_bytes = w->launch->config->heap_bytes;
  pthread_mutex_lock(&w->launch->lock);
  if (!*heap) exec_heap_create(w->launch->memory, heap_bytes ? heap_bytes : DEFAULT_HEAP_BYTES, heap, NULL);
  exec_heap *made = *heap;
  pthread_mutex_unlock(&w->launch->lock);
  uint64_t address = made ? exec_heap_malloc(made, bytes) : 0;
  exec_checker *checker = w->launch->checker;
  if (address && checker) checker->heap_malloc(checker, w, address, bytes);
  return address;
}

bool core_device_free(core_warp *w, uint64_t address) {
  pthread_mutex_lock(&w->launch->lock); /* another block may be making the heap */
  exec_heap *heap = *exec_memory_heap(w->launch->memory);
  pthread_mutex_unlock(&w->launch->lock);
  exec_checker *checker = w->launch->checker;
  uint64_t bytes = heap && checker ? exec_heap_block_bytes(heap, address) : 0;
  if (bytes) checker->heap_freed(checker, w, address, bytes);
  return heap && exec_heap_release(heap, address);
}

/* The program's own call of malloc. False: there was no room, and other threads may make some. */
static bool malloc_called(core_warp *w, const exec_call *call, uint32_t lane) {
  uint64_t address = core_device_malloc(w, core_argument(w, call, 0, lane));
  give_result(w, call, lane, address);
  return address;
}

/* The program's own call of free. */
static void free_called(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address) {
  exec_checker *checker = w->launch->checker;
  if (!address || core_device_free(w, address) || (checker && checker->heap_misuse(checker, w, i, lane, address)))
    return;
  core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_ADDRESS, address,
             "free of 0x%llx, which device malloc did not give or which was freed", (unsigned long long)address);
}

/* cudaGraphSetConditional(handle, value): the handle is the address of the word that holds the condition. */
static void set_condition(core_warp *w, const exec_instr *i, uint64_t handle, uint32_t value, uint32_t lane) {
  const exec_span *span = exec_memory_span(w->launch->memory, handle);
  if (!span || !span->info.exempt || span->info.freed || handle != span->info.address ||
      span->info.bytes != sizeof value)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_ADDRESS, handle,
               "cudaGraphSetConditional of 0x%llx, which is no condition of a graph", (unsigned long long)handle);
  __atomic_store_n((uint32_t *)(uintptr_t)handle, value, __ATOMIC_RELAXED);
}

void core_host_call(core_warp *w, const exec_instr *i) {
  const exec_call *call = i->side;
  bool served = true;
  core_count(w, i->index + 1);
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    switch (call->host) {
    case EXEC_HOST_VPRINTF: call_vprintf(w, i, call, lane); break;
    case EXEC_HOST_ASSERT: call_assert(w, i, call, lane);
    case EXEC_HOST_MALLOC: served &= malloc_called(w, call, lane); break;
    case EXEC_HOST_FREE: free_called(w, i, lane, core_argument(w, call, 0, lane)); break;
    case EXEC_HOST_CONDITION:
      set_condition(w, i, core_argument(w, call, 0, lane), (uint32_t)core_argument(w, call, 1, lane), lane);
      break;
    default: give_result(w, call, lane, core_child_call(w, i, lane));
    }
  }
  if (!served) core_poll(w); /* a loop around it waits for a thread that frees */
}
