/* SPDX-License-Identifier: Apache-2.0 */
/* The model driver's calls: every function of runtime/cuda.def, under its exported symbol, and the controls of
 * model_driver.h.
 *
 * Each call is ENTER (the lock, the trace, failures that the test wants, a lost context), its own work, and leave
 * (pending operations run, as the seed says). A call that releases does its work whatever ENTER found, then returns
 * that. */
#include <stdarg.h>
#include <stdlib.h>

#include "model_state.h"

#define CALL __attribute__((visibility("default")))

model_state model = {.lock = PTHREAD_MUTEX_INITIALIZER,
                     .changed = PTHREAD_COND_INITIALIZER,
                     .host_work = PTHREAD_COND_INITIALIZER,
                     .options = {.devices = 1, .memory = 1 << 30, .granularity = 4096, .idle_ms = 200}};
static _Thread_local cuda_context current;

uint64_t model_random(uint64_t below) {
  uint64_t value = model.random += 0x9e3779b97f4a7c15ull; /* splitmix64 */
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return below ? (value ^ (value >> 31)) % below : 0;
}

void model_violation(const char *format, ...) {
  size_t used = strlen(model.violations);
  if (model.quiet) return;
  model.violation_count++;
  if (used + 2 >= sizeof model.violations) return;
  if (used) model.violations[used++] = '\n';
  va_list list;
  va_start(list, format);
  vsnprintf(model.violations + used, sizeof model.violations - used, format, list);
  va_end(list);
  if (model.options.verbose) fprintf(stderr, "  model: VIOLATION %s\n", model.violations + used);
}

/* ---- around each call ---- */

static const char *const call_names[] = {
#define X(name, symbol, parameters) #name,
#include "runtime/cuda.def"
#undef X
    "(kernel runs)", "(copy runs)", "(any)"};

/* Whether MODEL_ANY means it: not what asks, waits or releases. */
static bool is_any(model_call call) {
  switch (call) {
  case MODEL_MemAlloc:
  case MODEL_MemHostAlloc:
  case MODEL_MemAddressReserve:
  case MODEL_MemCreate:
  case MODEL_MemMap:
  case MODEL_MemSetAccess:
  case MODEL_MemcpyHtoDAsync:
  case MODEL_MemcpyDtoHAsync:
  case MODEL_MemcpyDtoDAsync:
  case MODEL_MemcpyHtoD:
  case MODEL_MemcpyDtoH:
  case MODEL_MemsetD8Async:
  case MODEL_StreamCreate:
  case MODEL_StreamWaitEvent:
  case MODEL_EventCreate:
  case MODEL_EventRecord:
  case MODEL_ModuleLoadDataEx:
  case MODEL_LaunchKernel:
  case MODEL_LaunchHostFunc:
  case MODEL_DevicePrimaryCtxRetain: return true;
  default: return false;
  }
}

static int likely_error(model_call call) {
  switch (call) {
  case MODEL_LaunchKernel: return model_random(2) ? MODEL_LAUNCH_RESOURCES : MODEL_OUT_OF_MEMORY;
  case MODEL_MemcpyHtoDAsync:
  case MODEL_MemcpyDtoHAsync:
  case MODEL_MemcpyDtoDAsync:
  case MODEL_MemcpyHtoD:
  case MODEL_MemcpyDtoH:
  case MODEL_MemsetD8Async: return model_random(2) ? MODEL_UNKNOWN : MODEL_OUT_OF_MEMORY;
  case MODEL_EventRecord:
  case MODEL_StreamWaitEvent: return MODEL_UNKNOWN;
  case MODEL_RUN_KERNEL: return MODEL_LAUNCH_FAILED;
  case MODEL_RUN_COPY: return MODEL_UNKNOWN;
  default: return MODEL_OUT_OF_MEMORY;
  }
}

bool model_fails(model_call call, int *error, bool *lost) {
  for (uint32_t i = 0; i < model.failure_count; i++) {
    model_failure *one = &model.failures[i];
    if (one->call != call && !(one->call == MODEL_ANY && is_any(call))) continue;
    if (one->at ? one->at-- != 1 : model_random(1000000) >= one->per_million) continue;
    if (!one->at && !one->per_million) one->call = (model_call)-1; /* once */
    *error = one->error ? one->error : likely_error(call);
    *lost = one->lost;
    model.failed++;
    if (model.options.verbose)
      fprintf(stderr, "  model: %s fails with %d%s\n", call_names[call], *error, *lost ? ", the context is lost" : "");
    return true;
  }
  return false;
}

static int enter(model_call call) {
  pthread_mutex_lock(&model.lock);
  model.calls[call]++;
  model.activity++;
  if (model.options.verbose) fprintf(stderr, "  model: %s\n", call_names[call]);
  int error;
  bool lost;
  if (!model_fails(call, &error, &lost)) return MODEL_OK;
  if (lost && current) queue_lose(current->device, error);
  return error;
}

static int leave(int result) {
  model.quiet = false;
  queue_progress();
  if (model.options.verbose && result && result != MODEL_NOT_READY) fprintf(stderr, "  model:   = %d\n", result);
  pthread_mutex_unlock(&model.lock);
  return result;
}

static int invalid(int result, const char *call, const char *what) {
  model_violation("%s: %s", call, what);
  return result;
}

/* The current context's error: none, lost, no context. */
static int context_error(const char *call) {
  if (!current || !model.devices[current->device].retained)
    return invalid(MODEL_INVALID_CONTEXT, call, "this thread has no context");
  return model.devices[current->device].lost;
}

/* ENTER: what fails, has no effect. */
#define ENTER(name)                 \
  int result = enter(MODEL_##name); \
  if (result) return leave(result)
#define ENTER_CONTEXT(name) \
  ENTER(name);              \
  if ((result = context_error("cu" #name))) return leave(result)
/* For releasing calls: goes on, `result` is what is returned when the work went well. */
#define ENTER_RELEASE(name, on_device)                                                \
  int result = enter(MODEL_##name);                                                   \
  if (!result && (on_device) < MODEL_DEVICES) result = model.devices[on_device].lost; \
  model.quiet = result != 0 /* who is told of an error tries again what was done */

static struct cuda_stream_ *find_stream(cuda_stream stream, const char *call) {
  if (!stream) return current ? &model.devices[current->device].null : NULL;
  for (struct cuda_stream_ *one = model.streams; one; one = one->next)
    if (one == stream && !one->destroyed) return one;
  model_violation("%s: there is no such stream", call);
  return NULL;
}
static struct cuda_event_ *find_event(cuda_event event, const char *call) {
  for (struct cuda_event_ *one = model.events; one; one = one->next)
    if (one == event) return one;
  model_violation("%s: there is no such event", call);
  return NULL;
}

/* ---- devices and contexts ---- */

CALL int cuInit(unsigned flags) { return leave(enter(MODEL_Init)); }
CALL int cuDriverGetVersion(int *version) { return *version = 12040, leave(enter(MODEL_DriverGetVersion)); }

static const char *error_name(int error) {
  switch (error) {
#define E(number, name) \
  case number: return name;
    /* clang-format off */
    E(0, "CUDA_SUCCESS") E(1, "CUDA_ERROR_INVALID_VALUE") E(2, "CUDA_ERROR_OUT_OF_MEMORY") E(101, "CUDA_ERROR_INVALID_DEVICE")
    E(200, "CUDA_ERROR_INVALID_IMAGE") E(201, "CUDA_ERROR_INVALID_CONTEXT") E(400, "CUDA_ERROR_INVALID_HANDLE") E(500, "CUDA_ERROR_NOT_FOUND")
    E(600, "CUDA_ERROR_NOT_READY") E(700, "CUDA_ERROR_ILLEGAL_ADDRESS") E(701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")
    E(719, "CUDA_ERROR_LAUNCH_FAILED") E(801, "CUDA_ERROR_NOT_SUPPORTED") E(999, "CUDA_ERROR_UNKNOWN")
/* clang-format on */
#undef E
                        default : return NULL;
  }
}
CALL int cuGetErrorName(int error, const char **text) {
  return (*text = error_name(error)) ? MODEL_OK : MODEL_INVALID_VALUE;
}
CALL int cuGetErrorString(int error, const char **text) {
  return (*text = error_name(error)) ? MODEL_OK : MODEL_INVALID_VALUE;
}

CALL int cuDeviceGetCount(int *count) {
  ENTER(DeviceGetCount);
  *count = (int)model.options.devices;
  return leave(MODEL_OK);
}
static bool is_device(int device) { return device >= 0 && (uint32_t)device < model.options.devices; }
CALL int cuDeviceGet(int *device, int ordinal) {
  ENTER(DeviceGet);
  *device = ordinal;
  return leave(is_device(ordinal) ? MODEL_OK : MODEL_INVALID_DEVICE);
}
CALL int cuDeviceGetName(char *name, int length, int device) {
  ENTER(DeviceGetName);
  snprintf(name, (size_t)length, "model %d", device);
  return leave(is_device(device) ? MODEL_OK : MODEL_INVALID_DEVICE);
}
CALL int cuDeviceGetAttribute(int *value, int attribute, int device) {
  ENTER(DeviceGetAttribute);
  *value = attribute == CUDA_ATTRIBUTE_SM_COUNT ? 4
           : attribute == CUDA_ATTRIBUTE_MAJOR  ? 7
                                                : attribute == CUDA_ATTRIBUTE_VIRTUAL_MEMORY;
  return leave(is_device(device) ? MODEL_OK : MODEL_INVALID_DEVICE);
}
CALL int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  ENTER(DeviceTotalMem);
  *bytes = model.options.memory;
  return leave(is_device(device) ? MODEL_OK : MODEL_INVALID_DEVICE);
}
CALL int cuDevicePrimaryCtxRetain(cuda_context *context, int device) {
  ENTER(DevicePrimaryCtxRetain);
  if (!is_device(device)) return leave(MODEL_INVALID_DEVICE);
  model.devices[device].retained++;
  model.devices[device].context.device = (uint32_t)device;
  *context = &model.devices[device].context;
  return leave(MODEL_OK);
}
CALL int cuDevicePrimaryCtxRelease_v2(int device) {
  ENTER_RELEASE(DevicePrimaryCtxRelease, MODEL_DEVICES);
  if (!is_device(device) || !model.devices[device].retained)
    return leave(invalid(MODEL_INVALID_CONTEXT, "cuDevicePrimaryCtxRelease", "not retained"));
  if (!--model.devices[device].retained) { /* a context made anew is a good one */
    queue_wait_device((uint32_t)device);
    model.devices[device].lost = 0;
  }
  return leave(result);
}
CALL int cuCtxGetCurrent(cuda_context *context) {
  *context = current;
  return MODEL_OK;
}
CALL int cuCtxSetCurrent(cuda_context context) {
  ENTER(CtxSetCurrent);
  for (uint32_t d = 0; context && d < MODEL_DEVICES; d++)
    if (context == &model.devices[d].context && !model.devices[d].retained)
      return leave(invalid(MODEL_INVALID_CONTEXT, "cuCtxSetCurrent", "no such context"));
  current = context;
  return leave(MODEL_OK);
}
CALL int cuCtxSynchronize(void) {
  ENTER_CONTEXT(CtxSynchronize);
  queue_wait_device(current->device);
  return leave(model.devices[current->device].lost);
}

/* ---- memory ---- */

CALL int cuMemGetInfo_v2(size_t *available, size_t *total) {
  ENTER_CONTEXT(MemGetInfo);
  *total = model.options.memory;
  *available = *total - model.devices[current->device].used;
  return leave(MODEL_OK);
}
CALL int cuMemAlloc_v2(cuda_address *address, size_t bytes) {
  ENTER_CONTEXT(MemAlloc);
  return leave(memory_allocate(address, bytes, current->device));
}
CALL int cuMemFree_v2(cuda_address address) {
  ENTER_RELEASE(MemFree, current ? current->device : MODEL_DEVICES);
  for (uint32_t d = 0; d < model.options.devices; d++) queue_wait_device(d); /* it waits, CUDA's does */
  int done = memory_free(address);
  return leave(done ? done : result);
}
CALL int cuMemAllocManaged(cuda_address *address, size_t bytes, unsigned flags) {
  ENTER(MemAllocManaged);
  return leave(MODEL_NOT_SUPPORTED);
}
CALL int cuMemHostAlloc(void **host, size_t bytes, unsigned flags) {
  ENTER_CONTEXT(MemHostAlloc);
  if (!bytes) return leave(invalid(MODEL_INVALID_VALUE, "cuMemHostAlloc", "no bytes"));
  if (model.options.host_memory && bytes > model.options.host_memory - model.host_used)
    return leave(MODEL_OUT_OF_MEMORY);
  char *made = malloc(bytes);
  if (!made) return leave(MODEL_OUT_OF_MEMORY);
  memset(made, 0xa5, bytes < 1 << 16 ? bytes : 1 << 16);
  model.host_used += bytes;
  FF_PUSH(&model.hosts, ((host_allocation){made, bytes}));
  *host = made;
  return leave(MODEL_OK);
}
CALL int cuMemFreeHost(void *host) {
  ENTER_RELEASE(MemFreeHost, current ? current->device : MODEL_DEVICES);
  for (size_t i = 0; i < model.hosts.count; i++) {
    host_allocation one = model.hosts.items[i];
    if (one.address != host) continue;
    const operation *user = queue_host_user(one.address, one.address + one.bytes);
    if (user) {
      model_violation("page-locked memory is freed under a pending %s", operation_name(user));
      for (uint32_t d = 0; d < model.options.devices; d++) queue_wait_device(d);
    }
    model.hosts.items[i] = model.hosts.items[--model.hosts.count];
    model.host_used -= one.bytes;
    free(one.address);
    return leave(result);
  }
  return leave(invalid(MODEL_INVALID_VALUE, "cuMemFreeHost", "not allocated"));
}
CALL int cuMemAddressReserve(cuda_address *address, size_t bytes, size_t alignment, cuda_address wanted,
                             unsigned long long flags) {
  ENTER(MemAddressReserve);
  return leave(memory_reserve(address, bytes, alignment, false));
}
CALL int cuMemAddressFree(cuda_address address, size_t bytes) {
  ENTER_RELEASE(MemAddressFree, MODEL_DEVICES);
  int done = memory_unreserve(address, bytes);
  return leave(done ? done : result);
}
CALL int cuMemCreate(cuda_memory *memory, size_t bytes, const cuda_memory_properties *properties,
                     unsigned long long flags) {
  ENTER(MemCreate);
  if (properties->type != 1 || properties->location.type != 1 || !is_device(properties->location.id) || flags)
    return leave(invalid(MODEL_INVALID_VALUE, "cuMemCreate", "properties"));
  int lost = model.devices[properties->location.id].lost;
  return leave(lost ? lost : memory_create(memory, bytes, (uint32_t)properties->location.id));
}
CALL int cuMemRelease(cuda_memory memory) {
  ENTER_RELEASE(MemRelease, MODEL_DEVICES);
  int done = memory_release(memory);
  return leave(done ? done : result);
}
CALL int cuMemMap(cuda_address address, size_t bytes, size_t offset, cuda_memory memory, unsigned long long flags) {
  ENTER(MemMap);
  if (offset || flags) return leave(invalid(MODEL_INVALID_VALUE, "cuMemMap", "offset and flags must be 0"));
  return leave(memory_map(address, bytes, memory, false));
}
CALL int cuMemUnmap(cuda_address address, size_t bytes) {
  ENTER_RELEASE(MemUnmap, MODEL_DEVICES);
  int done = memory_unmap(address, bytes);
  return leave(done ? done : result);
}
CALL int cuMemSetAccess(cuda_address address, size_t bytes, const cuda_memory_access *access, size_t count) {
  ENTER(MemSetAccess);
  return leave(memory_access(address, bytes, access, count));
}
CALL int cuMemGetAllocationGranularity(size_t *bytes, const cuda_memory_properties *properties, int option) {
  ENTER(MemGetAllocationGranularity);
  *bytes = model.options.granularity;
  return leave(MODEL_OK);
}

/* ---- copies ---- */

/* Queues a copy, `to` or `from` a device address or NULL; waits if the call is a synchronous one. */
static int copy(const char *call, cuda_address to, char *host_to, cuda_address from, const char *host_from,
                uint64_t bytes, cuda_stream handle, bool wait) {
  struct cuda_stream_ *stream = find_stream(handle, call);
  if (!stream) return MODEL_INVALID_HANDLE;
  if (model.devices[stream->device].lost) return model.devices[stream->device].lost;
  if (!bytes) return MODEL_OK;
  if ((to && !memory_is_mapped(to, bytes)) || (from && !memory_is_mapped(from, bytes)))
    return invalid(MODEL_INVALID_VALUE, call, "not all of it is mapped");
  const char *host = host_to ? host_to : host_from;
  const host_allocation *locked = host ? memory_host_find(host, bytes) : NULL;
  if (locked && (host < locked->address || host + bytes > locked->address + locked->bytes))
    return invalid(MODEL_INVALID_VALUE, call, "page-locked memory in part");
  bool staged =
      host && !locked &&
      (wait || model.options.pageable == MODEL_STAGED || (model.options.pageable == MODEL_EITHER && model_random(2)));
  if (staged && wait && host_from) queue_wait_stream(stream);
  operation *op = queue_make(OPERATION_COPY);
  op->to = to;
  op->from = from;
  op->host_to = host_to;
  op->host_from = host_from;
  op->bytes = bytes;
  if (staged && host_from) {
    op->staging = ff_alloc(bytes);
    memcpy(op->staging, host_from, bytes);
  }
  queue_add(stream, op);
  if (host && (wait || (staged && host_to)) && !op->staging) {
    uint32_t device = stream->device;
    queue_wait(op->own);
    return model.devices[device].lost;
  }
  return MODEL_OK;
}

CALL int cuMemcpyHtoDAsync_v2(cuda_address to, const void *from, size_t bytes, cuda_stream stream) {
  ENTER_CONTEXT(MemcpyHtoDAsync);
  return leave(copy("cuMemcpyHtoDAsync", to, NULL, 0, from, bytes, stream, false));
}
CALL int cuMemcpyDtoHAsync_v2(void *to, cuda_address from, size_t bytes, cuda_stream stream) {
  ENTER_CONTEXT(MemcpyDtoHAsync);
  return leave(copy("cuMemcpyDtoHAsync", 0, to, from, NULL, bytes, stream, false));
}
CALL int cuMemcpyDtoDAsync_v2(cuda_address to, cuda_address from, size_t bytes, cuda_stream stream) {
  ENTER_CONTEXT(MemcpyDtoDAsync);
  return leave(copy("cuMemcpyDtoDAsync", to, NULL, from, NULL, bytes, stream, false));
}
CALL int cuMemcpyHtoD_v2(cuda_address to, const void *from, size_t bytes) {
  ENTER_CONTEXT(MemcpyHtoD);
  return leave(copy("cuMemcpyHtoD", to, NULL, 0, from, bytes, NULL, true));
}
CALL int cuMemcpyDtoH_v2(void *to, cuda_address from, size_t bytes) {
  ENTER_CONTEXT(MemcpyDtoH);
  return leave(copy("cuMemcpyDtoH", 0, to, from, NULL, bytes, NULL, true));
}
CALL int cuMemsetD8Async(cuda_address to, unsigned char value, size_t count, cuda_stream handle) {
  ENTER_CONTEXT(MemsetD8Async);
  struct cuda_stream_ *stream = find_stream(handle, "cuMemsetD8Async");
  if (!stream) return leave(MODEL_INVALID_HANDLE);
  if (stream->device != current->device)
    return leave(invalid(MODEL_INVALID_HANDLE, "cuMemsetD8Async", "the stream is of another context"));
  if (!memory_is_mapped(to, count))
    return leave(invalid(MODEL_INVALID_VALUE, "cuMemsetD8Async", "not all of it is mapped"));
  operation *op = queue_make(OPERATION_SET);
  op->to = to;
  op->value = value;
  op->bytes = count;
  queue_add(stream, op);
  return leave(MODEL_OK);
}

/* ---- streams and events ---- */

CALL int cuStreamCreate(cuda_stream *stream, unsigned flags) {
  ENTER_CONTEXT(StreamCreate);
  struct cuda_stream_ *made = ff_alloc(sizeof *made);
  *made = (struct cuda_stream_){
      .device = current->device, .blocking = !(flags & CUDA_STREAM_NON_BLOCKING), .next = model.streams};
  *stream = model.streams = made;
  return leave(MODEL_OK);
}
CALL int cuStreamDestroy_v2(cuda_stream handle) {
  ENTER_RELEASE(StreamDestroy, current ? current->device : MODEL_DEVICES);
  struct cuda_stream_ *stream = handle ? find_stream(handle, "cuStreamDestroy") : NULL;
  if (!stream) return leave(MODEL_INVALID_HANDLE);
  stream->destroyed = true;
  for (struct cuda_stream_ **at = &model.streams; *at && !stream->first; at = &(*at)->next)
    if (*at == stream) { /* else when its last operation is over */
      *at = stream->next;
      free(stream);
      break;
    }
  return leave(result);
}
CALL int cuStreamSynchronize(cuda_stream handle) {
  ENTER_CONTEXT(StreamSynchronize);
  struct cuda_stream_ *stream = find_stream(handle, "cuStreamSynchronize");
  if (!stream) return leave(MODEL_INVALID_HANDLE);
  uint32_t device = stream->device;
  queue_wait_stream(stream);
  return leave(model.devices[device].lost);
}
CALL int cuStreamWaitEvent(cuda_stream handle, cuda_event event, unsigned flags) {
  ENTER_CONTEXT(StreamWaitEvent);
  struct cuda_stream_ *stream = find_stream(handle, "cuStreamWaitEvent");
  struct cuda_event_ *awaited = find_event(event, "cuStreamWaitEvent");
  if (!stream || !awaited) return leave(MODEL_INVALID_HANDLE);
  if (model.devices[stream->device].lost) return leave(model.devices[stream->device].lost);
  if (!awaited->recorded || awaited->recorded->done)
    return leave(awaited->recorded ? awaited->recorded->lost : MODEL_OK);
  operation *op = queue_make(OPERATION_WAIT);
  op->awaited = completion_hold(awaited->recorded);
  queue_add(stream, op);
  return leave(MODEL_OK);
}
CALL int cuEventCreate(cuda_event *event, unsigned flags) {
  ENTER_CONTEXT(EventCreate);
  struct cuda_event_ *made = ff_alloc(sizeof *made);
  *made = (struct cuda_event_){
      .device = current->device, .timing = !(flags & CUDA_EVENT_DISABLE_TIMING), .next = model.events};
  *event = model.events = made;
  return leave(MODEL_OK);
}
CALL int cuEventDestroy_v2(cuda_event event) {
  ENTER_RELEASE(EventDestroy, current ? current->device : MODEL_DEVICES);
  if (!find_event(event, "cuEventDestroy")) return leave(MODEL_INVALID_HANDLE);
  struct cuda_event_ **at = &model.events;
  while (*at != event) at = &(*at)->next;
  *at = event->next;
  completion_drop(event->recorded);
  free(event);
  return leave(result);
}
CALL int cuEventRecord(cuda_event event, cuda_stream handle) {
  ENTER_CONTEXT(EventRecord);
  struct cuda_event_ *one = find_event(event, "cuEventRecord");
  struct cuda_stream_ *stream = find_stream(handle, "cuEventRecord");
  if (!one || !stream) return leave(MODEL_INVALID_HANDLE);
  if (one->device != stream->device)
    return leave(invalid(MODEL_INVALID_HANDLE, "cuEventRecord", "event and stream are of two contexts"));
  if (model.devices[stream->device].lost) return leave(model.devices[stream->device].lost);
  operation *op = queue_make(OPERATION_RECORD);
  completion_drop(one->recorded);
  one->recorded = completion_hold(op->own);
  queue_add(stream, op);
  return leave(MODEL_OK);
}
CALL int cuEventQuery(cuda_event event) {
  ENTER(EventQuery);
  struct cuda_event_ *one = find_event(event, "cuEventQuery");
  if (!one) return leave(MODEL_INVALID_HANDLE);
  if (model.devices[one->device].lost) return leave(model.devices[one->device].lost);
  if (!one->recorded || one->recorded->done) return leave(MODEL_OK);
  if (!model_random(4)) queue_step_towards(one->recorded); /* asking again and again comes to an end */
  return leave(MODEL_NOT_READY);
}
CALL int cuEventSynchronize(cuda_event event) {
  ENTER(EventSynchronize);
  struct cuda_event_ *one = find_event(event, "cuEventSynchronize");
  if (!one) return leave(MODEL_INVALID_HANDLE);
  uint32_t device = one->device;
  if (one->recorded) queue_wait(one->recorded);
  return leave(model.devices[device].lost);
}
CALL int cuEventElapsedTime(float *milliseconds, cuda_event start, cuda_event stop) {
  ENTER(EventElapsedTime);
  struct cuda_event_ *a = find_event(start, "cuEventElapsedTime"), *b = find_event(stop, "cuEventElapsedTime");
  if (!a || !b || !a->timing || !b->timing || !a->recorded || !b->recorded || a->device != b->device)
    return leave(invalid(MODEL_INVALID_HANDLE, "cuEventElapsedTime", "not recorded, without time, or of two contexts"));
  if (!a->recorded->done || !b->recorded->done) return leave(MODEL_NOT_READY);
  *milliseconds = (float)b->recorded->time - (float)a->recorded->time;
  return leave(MODEL_OK);
}

/* ---- modules and launches ---- */

CALL int cuModuleLoadDataEx(cuda_module *module, const void *image, unsigned count, const int *options, void **values) {
  ENTER_CONTEXT(ModuleLoadDataEx);
  struct cuda_module_ *made = ff_alloc(sizeof *made);
  made->device = current->device;
  if (!module_read(made, image)) {
    free(made);
    return leave(MODEL_INVALID_IMAGE);
  }
  made->next = model.modules;
  *module = model.modules = made;
  return leave(MODEL_OK);
}
CALL int cuModuleUnload(cuda_module module) {
  ENTER_RELEASE(ModuleUnload, current ? current->device : MODEL_DEVICES);
  for (struct cuda_module_ **at = &model.modules; *at; at = &(*at)->next)
    if (*at == module) {
      *at = module->next;
      free(module);
      return leave(result);
    }
  return leave(invalid(MODEL_INVALID_HANDLE, "cuModuleUnload", "there is no such module"));
}
CALL int cuModuleGetFunction(cuda_function *function, cuda_module module, const char *name) {
  ENTER_CONTEXT(ModuleGetFunction);
  for (uint32_t i = 0; i < module->count; i++)
    if (!strcmp(module->functions[i].name, name)) {
      *function = &module->functions[i];
      return leave(MODEL_OK);
    }
  return leave(MODEL_NOT_FOUND);
}
CALL int cuFuncSetAttribute(cuda_function function, int attribute, int value) {
  ENTER_CONTEXT(FuncSetAttribute);
  (void)attribute, (void)value;
  return function ? leave(MODEL_OK)
                  : leave(invalid(MODEL_INVALID_HANDLE, "cuFuncSetAttribute", "there is no such function"));
}
static void copy_arguments(operation *op, const struct cuda_function_ *function, void **arguments) {
  size_t total = 0, at = 0;
  for (uint32_t i = 0; i < function->count; i++) total += (function->size[i] + 7) & ~7u;
  op->argument_bytes = ff_alloc(total ? total : 1);
  for (uint32_t i = 0; i < function->count; i++) {
    op->argument[i] = (char *)op->argument_bytes + at;
    memcpy(op->argument[i], arguments[i], function->size[i]);
    at += (function->size[i] + 7) & ~7u;
  }
}

/* The last six arguments are the window's. */
static void take_window(model_launch *launch) {
  launch->argument_count -= 6;
  for (int i = 0; i < 3; i++) {
    memcpy(&launch->from[i], launch->arguments[launch->argument_count + i], 4);
    memcpy(&launch->grid[i], launch->arguments[launch->argument_count + 3 + i], 4);
    launch->to[i] += launch->from[i];
    if (launch->to[i] > launch->grid[i])
      model_violation("cuLaunchKernel: a window up to block %u of a grid of %u", launch->to[i], launch->grid[i]);
  }
}

CALL int cuLaunchKernel(cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, cuda_stream handle, void **arguments,
                        void **extra) {
  ENTER_CONTEXT(LaunchKernel);
  struct cuda_stream_ *stream = find_stream(handle, "cuLaunchKernel");
  if (!stream) return leave(MODEL_INVALID_HANDLE);
  if (stream->device != current->device || function->device != current->device)
    return leave(invalid(MODEL_INVALID_HANDLE, "cuLaunchKernel", "the stream or the kernel is of another context"));
  if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z || extra || (function->count && !arguments))
    return leave(invalid(MODEL_INVALID_VALUE, "cuLaunchKernel", "grid, block or arguments"));
  operation *op = queue_make(OPERATION_KERNEL);
  op->kernel = function->kernel;
  copy_arguments(op, function, arguments);
  op->launch = (model_launch){.grid = {grid_x, grid_y, grid_z},
                              .block = {block_x, block_y, block_z},
                              .shared = shared,
                              .to = {grid_x, grid_y, grid_z},
                              .arguments = (const void *const *)op->argument,
                              .argument_count = function->count,
                              .device = stream->device};
  if (function->window) take_window(&op->launch);
  queue_add(stream, op);
  return leave(MODEL_OK);
}
CALL int cuLaunchHostFunc(cuda_stream handle, void (*function)(void *data), void *data) {
  ENTER_CONTEXT(LaunchHostFunc);
  struct cuda_stream_ *stream = find_stream(handle, "cuLaunchHostFunc");
  if (!stream) return leave(MODEL_INVALID_HANDLE);
  operation *op = queue_make(OPERATION_HOST);
  op->function = function;
  op->data = data;
  queue_add(stream, op);
  return leave(MODEL_OK);
}
