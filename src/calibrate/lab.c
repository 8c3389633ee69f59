/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the driver, what the driver reports of the GPU, and the small steps that all measurements are made of. */
#include "calibrate/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/kernels.h"

typedef struct attribute {
  int number;
  size_t offset;
} attribute;

static const attribute attributes[] = {
    /* CUdevice_attribute */
    {75, offsetof(calibrate_device, major)},
    {76, offsetof(calibrate_device, minor)},
    {16, offsetof(calibrate_device, sm_count)},
    {13, offsetof(calibrate_device, clock_khz)},
    {36, offsetof(calibrate_device, memory_clock_khz)},
    {37, offsetof(calibrate_device, bus_bits)},
    {38, offsetof(calibrate_device, l2_bytes)},
    {39, offsetof(calibrate_device, max_threads)},
    {106, offsetof(calibrate_device, max_blocks)},
    {82, offsetof(calibrate_device, registers)},
    {81, offsetof(calibrate_device, shared_bytes)},
    {8, offsetof(calibrate_device, shared_per_block)},
    {97, offsetof(calibrate_device, shared_per_block_optin)},
    {40, offsetof(calibrate_device, copy_engines)},
    {50, offsetof(calibrate_device, pci_domain)},
    {33, offsetof(calibrate_device, pci_bus)},
    {34, offsetof(calibrate_device, pci_device)},
};

/* An attribute that this driver does not know stays 0. */
static ff_status describe(lab *l) {
  calibrate_device *d = &l->result->device;
  size_t bytes;
  LAB_CALL(l, DeviceGetName, d->name, sizeof d->name, l->device);
  d->name[sizeof d->name - 1] = '\0';
  LAB_CALL(l, DeviceTotalMem, &bytes, l->device);
  LAB_CALL(l, DriverGetVersion, &d->driver_version);
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
    int value;
    if (!l->cuda->DeviceGetAttribute(&value, attributes[i].number, l->device))
      memcpy((char *)d + attributes[i].offset, &value, sizeof value);
  }
  d->memory_bytes = bytes;
  d->is_virtual = l->is_virtual;
  memcpy(d->driver_path, l->cuda->path, sizeof d->driver_path);
  if (d->sm_count < 1 || d->sm_count > 4096)
    return ff_fail(l->error, FF_UNSUPPORTED, "the driver says that the GPU has %d SMs", d->sm_count);
  return FF_OK;
}

static ff_status load_kernels(lab *l) {
  static const char *const names[KERNEL_COUNT] = {
#define K(name) #name,
#include "calibrate/kernels.def"
#undef K
  };
  ff_text ptx = {0};
  kernels_text(&ptx);
  int result = l->cuda->ModuleLoadDataEx(&l->module, ptx.chars, 0, NULL, NULL);
  free(ptx.chars);
  if (result) return cuda_fail(l->cuda, result, "cuModuleLoadDataEx (kernels of the calibration)", l->error);
  for (int i = 0; i < KERNEL_COUNT; i++) LAB_CALL(l, ModuleGetFunction, &l->kernels[i], l->module, names[i]);
  return FF_OK;
}

ff_status lab_open(lab *l, const calibrate_options *options, calibrate_result *result, ff_error *error) {
  *l = (lab){.result = result, .options = *options, .error = error, .random = 88172645463325252u};
  LAB_TRY(cuda_open(options->driver, &l->cuda, error));
  l->is_virtual = l->cuda->is_virtual;
  l->repeats = options->repeats;
  if (!l->repeats && l->is_virtual) l->repeats = options->quick ? 1 : 3;
  else if (!l->repeats) l->repeats = options->quick ? 5 : 11;
  LAB_CALL(l, DeviceGet, &l->device, 0);
  LAB_TRY(describe(l));
  LAB_CALL(l, DevicePrimaryCtxRetain, &l->context, l->device);
  LAB_CALL(l, CtxSetCurrent, l->context);
  LAB_TRY(load_kernels(l));
  LAB_CALL(l, StreamCreate, &l->stream, CUDA_STREAM_NON_BLOCKING);
  LAB_CALL(l, EventCreate, &l->begin, 0);
  LAB_CALL(l, EventCreate, &l->end, 0);
  return lab_allocate(l, 64, &l->sink);
}

void lab_record(lab *l, figure_id id, double value) {
  figure *f = &l->result->figures[id];
  if (isfinite(value) && f->count < CALIBRATE_SAMPLES) f->samples[f->count++] = value;
}

double lab_figure(const lab *l, figure_id id) {
  const figure *f = &l->result->figures[id];
  return f->count ? figure_summarise(f).median : NAN;
}

double lab_cycles(const lab *l, double us) { return us * lab_figure(l, FIGURE_clock_mhz); }

uint64_t lab_random(lab *l, uint64_t below) { /* xorshift64 */
  l->random ^= l->random << 13;
  l->random ^= l->random >> 7;
  l->random ^= l->random << 17;
  return below ? l->random % below : 0;
}

ff_status lab_launch(lab *l, lab_kernel kernel, uint32_t blocks, uint32_t threads, void **arguments) {
  LAB_CALL(l, LaunchKernel, l->kernels[kernel], blocks, 1, 1, threads, 1, 1, 0, l->stream, arguments, NULL);
  return FF_OK;
}

ff_status lab_time_kernel(lab *l, lab_kernel kernel, uint32_t blocks, uint32_t threads, void **arguments, double *us) {
  LAB_CALL(l, EventRecord, l->begin, l->stream);
  LAB_TRY(lab_launch(l, kernel, blocks, threads, arguments));
  LAB_CALL(l, EventRecord, l->end, l->stream);
  return lab_elapsed(l, l->begin, l->end, us);
}

ff_status lab_time_blocks(lab *l, lab_kernel kernel, uint32_t blocks, uint32_t shared, double *us) {
  LAB_CALL(l, EventRecord, l->begin, l->stream);
  LAB_CALL(l, LaunchKernel, l->kernels[kernel], blocks, 1, 1, 32, 1, 1, shared, l->stream, NULL, NULL);
  LAB_CALL(l, EventRecord, l->end, l->stream);
  return lab_elapsed(l, l->begin, l->end, us);
}

ff_status lab_burn(lab *l, double us) {
  double round =
      (COMPUTE_ROUND + LOOP_INSTRUCTIONS) * lab_figure(l, FIGURE_issue_interval) / lab_figure(l, FIGURE_clock_mhz);
  uint64_t rounds = round > 0 ? (uint64_t)(us / round) + 1 : 1000; /* the comparison is false for NAN */
  void *arguments[] = {&rounds, &l->sink};
  return lab_launch(l, KERNEL_chain, 1, 32, arguments);
}

ff_status lab_allocate(lab *l, size_t bytes, cuda_address *address) {
  LAB_CALL(l, MemAlloc, address, bytes);
  return FF_OK;
}

void lab_free(lab *l, cuda_address address) {
  if (address) l->cuda->MemFree(address);
}
