/* SPDX-License-Identifier: Apache-2.0 */
/* See both.h. */
#include "both.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exec/exec.h"
#include "ptx/ir.h"
#include "runtime/cuda.h"

enum { JIT_LOG = 5, JIT_LOG_BYTES = 6, LOG = 2048, MOST_INSTRUCTIONS = 10000000 };

typedef struct memory_pair { /* of one buffer: the driver's, the executor's */
  cuda_address theirs;
  const exec_allocation *ours;
  size_t bytes;
} memory_pair;

struct both {
  const cuda_driver *driver;
  uint32_t compute, as; /* of the device; of the executor */
  cuda_module module;   /* NULL: none is loaded */
  cuda_function function;
  exec_memory *memory;
  ptx_module *text, *linked; /* linked uses text */
  exec_program *program;
  exec_kernel *kernel;
  memory_pair in, out;
  unsigned char *inputs;
};

static ff_status open_device(both *b, ff_error *error) {
  int number = 0, major = 0, minor = 0;
  cuda_context context;
  ff_status status = cuda_open(NULL, &b->driver, error);
  if (status) return status;
  int result = b->driver->DeviceGet(&number, 0);
  if (!result) result = b->driver->DevicePrimaryCtxRetain(&context, number);
  if (!result) result = b->driver->CtxSetCurrent(context);
  if (!result) result = b->driver->DeviceGetAttribute(&major, CUDA_ATTRIBUTE_MAJOR, number);
  if (!result) result = b->driver->DeviceGetAttribute(&minor, CUDA_ATTRIBUTE_MINOR, number);
  b->compute = (uint32_t)(major * 10 + minor);
  return result ? cuda_fail(b->driver, result, "cuDevicePrimaryCtxRetain", error) : FF_OK;
}

ff_status both_open(uint32_t as, both **out, ff_error *error) {
  both *b = ff_alloc(sizeof *b);
  ff_status status = open_device(b, error);
  if (!status) status = exec_memory_create(&b->memory, error);
  b->as = as ? as : b->compute;
  if (!status) *out = b;
  else free(b);
  return status;
}

const unsigned char *both_inputs(const both *b) { return b->inputs; }

static void unload(both *b) {
  if (b->module) b->driver->ModuleUnload(b->module);
  exec_program_free(b->program);
  ptx_module_free(b->linked);
  ptx_module_free(b->text);
  b->module = NULL;
  b->program = NULL;
  b->linked = b->text = NULL;
}

void both_close(both *b) {
  unload(b);
  exec_memory_free(b->memory);
  free(b->inputs);
  free(b);
}

/* ---- loading ---- */

static both_result load_theirs(both *b, const char *text, ff_error *error) {
  char log[LOG] = "";
  int names[] = {JIT_LOG, JIT_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)LOG};
  int result = b->driver->ModuleLoadDataEx(&b->module, text, 2, names, values);
  if (!result) result = b->driver->ModuleGetFunction(&b->function, b->module, "k");
  if (!result) return BOTH_RAN;
  if (!log[0]) cuda_fail(b->driver, result, "cuModuleLoadDataEx", error);
  else ff_fail(error, FF_INVALID, "%s", log);
  return BOTH_REFUSED;
}

static ff_status load_ours(both *b, const ff_text *text, ff_error *error) {
  ff_status status = ptx_module_parse("item", text->chars, text->length, &b->text, error);
  if (!status) status = ptx_link(&b->text, 1, &b->linked, error);
  if (!status) status = exec_program_create(b->linked, b->memory, &b->program, error);
  if (!status) status = exec_program_kernel(b->program, "k", &b->kernel, error);
  return status;
}

both_result both_load(both *b, const item *it, ff_error *error) {
  unload(b);
  ff_text text = item_text(it, b->compute);
  both_result result = load_theirs(b, text.chars, error);
  if (result == BOTH_RAN && load_ours(b, &text, error)) result = BOTH_FAILED;
  free(text.chars);
  return result;
}

/* ---- running ---- */

/* Room for so many bytes; what was there is lost. */
static ff_status make_room(both *b, memory_pair *pair, size_t bytes, ff_error *error) {
  if (pair->bytes >= bytes) return FF_OK;
  if (pair->bytes) {
    b->driver->MemFree(pair->theirs);
    exec_memory_release(b->memory, pair->ours->address, NULL);
  }
  pair->bytes = 0;
  int result = b->driver->MemAlloc(&pair->theirs, bytes);
  if (result) return cuda_fail(b->driver, result, "cuMemAlloc", error);
  ff_status status = exec_memory_allocate(b->memory, bytes, 256, EXEC_MEMORY_DEVICE, "room", &pair->ours, error);
  if (!status) pair->bytes = bytes;
  return status;
}

static ff_status put_inputs(both *b, const item *it, uint32_t run, ff_error *error) {
  b->inputs = ff_realloc(b->inputs, it->input_bytes);
  inputs_fill(it->input, it->types, run, b->inputs, it->input_bytes);
  ff_status status = make_room(b, &b->in, it->input_bytes, error);
  if (!status) status = make_room(b, &b->out, it->output_bytes, error);
  if (status) return status;
  memcpy((void *)(uintptr_t)b->in.ours->address, b->inputs, it->input_bytes);
  memset((void *)(uintptr_t)b->out.ours->address, 0, it->output_bytes);
  int result = b->driver->MemcpyHtoD(b->in.theirs, b->inputs, it->input_bytes);
  if (!result) result = b->driver->MemsetD8Async(b->out.theirs, 0, it->output_bytes, NULL);
  return result ? cuda_fail(b->driver, result, "cuMemcpyHtoD", error) : FF_OK;
}

static uint32_t third_of(const item *it) { return it->kind == ITEM_SUM ? (uint32_t)(it->input_bytes / 3) : 37; }

static ff_status run_theirs(both *b, const item *it, unsigned char *out, ff_error *error) {
  uint32_t n = third_of(it);
  float f = 1.5f;
  void *arguments[] = {&b->out.theirs, &b->in.theirs, &n, &f};
  int result = b->driver->LaunchKernel(b->function, it->grid, 1, 1, it->block, 1, 1, 0, NULL, arguments, NULL);
  if (!result) result = b->driver->CtxSynchronize();
  if (!result) result = b->driver->MemcpyDtoH(out, b->out.theirs, it->output_bytes);
  return result ? cuda_fail(b->driver, result, "cuLaunchKernel", error) : FF_OK;
}

static ff_status run_ours(both *b, const item *it, unsigned char *out, ff_error *error) {
  struct {
    uint64_t out, in;
    uint32_t n;
    float f;
  } params = {b->out.ours->address, b->in.ours->address, third_of(it), 1.5f};
  exec_config config = {.memory = b->memory,
                        .threads = 1,
                        .sm_count = 4,
                        .max_shared = 48 << 10,
                        .compute = b->as,
                        .max_instructions = MOST_INSTRUCTIONS,
                        .clock_hz = 1000000000};
  exec_launch_request request = {
      .kernel = b->kernel, .grid = {it->grid, 1, 1}, .block = {it->block, 1, 1}, .params = &params, .launch_id = 1};
  exec_stats stats = {0};
  exec_fault fault = {.kind = EXEC_FAULT_NONE};
  ff_status status = exec_launch(&config, &request, &stats, &fault, error);
  if (status == FF_FAULT) return ff_fail(error, FF_FAULT, "the executor: %s", fault.message);
  if (!status) memcpy(out, (const void *)(uintptr_t)b->out.ours->address, it->output_bytes);
  return status;
}

both_result both_run(both *b, const item *it, uint32_t run, unsigned char *theirs, unsigned char *ours,
                     ff_error *error) {
  bool good = !put_inputs(b, it, run, error) && !run_theirs(b, it, theirs, error) && !run_ours(b, it, ours, error);
  return good ? BOTH_RAN : BOTH_FAILED;
}
