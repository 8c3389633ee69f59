/* SPDX-License-Identifier: Apache-2.0 */
/* The driver API, for plans. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>

#include "driver/stand_ins/cufft/cufft_gpu.h"

#include "base/forks.h"

extern const char cufft_ptx[]; /* cufft_kernels.cu */

/* What is used of it: name, variable, parameters. Every call returns 0 for success. */
#define DRIVER_CALLS(X)                                                                                   \
  X(cuInit, init, (unsigned))                                                                             \
  X(cuDeviceGet, device_get, (int *, int))                                                                \
  X(cuDevicePrimaryCtxRetain, primary_retain, (cufft_context *, int))                                     \
  X(cuCtxGetCurrent, get_current, (cufft_context *))                                                      \
  X(cuCtxSetCurrent, set_current, (cufft_context))                                                        \
  X(cuCtxPushCurrent_v2, push, (cufft_context))                                                           \
  X(cuCtxPopCurrent_v2, pop, (cufft_context *))                                                           \
  X(cuCtxGetDevice, get_device, (int *))                                                                  \
  X(cuMemAlloc_v2, allocate, (cufft_address *, size_t))                                                   \
  X(cuMemFree_v2, release, (cufft_address))                                                               \
  X(cuMemcpyHtoD_v2, upload, (cufft_address, const void *, size_t))                                       \
  X(cuLibraryLoadData, load, (void **, const void *, int *, void **, unsigned, int *, void **, unsigned)) \
  X(cuLibraryGetKernel, get_kernel, (void **, void *, const char *))                                      \
  X(cuLaunchKernel, launch,                                                                               \
    (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cufft_stream, void **, void **))

static struct {
#define X(name, variable, parameters) int(*variable) parameters;
  DRIVER_CALLS(X)
#undef X
} driver;

static const char *const kernel_names[2][2][2] = {
    {{"farfault_fft_f32", "farfault_fft_f32_special"}, {"farfault_fft_f32_mixed", "farfault_fft_f32_mixed_special"}},
    {{"farfault_fft_f64", "farfault_fft_f64_special"}, {"farfault_fft_f64_mixed", "farfault_fft_f64_mixed_special"}}};
static void *kernels[2][2][2]; /* is_double, mixed, special */
static bool started;

static bool find_calls(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) fprintf(stderr, "farfault: cuFFT: %s\n", dlerror());
  if (!library) return false;
#define X(name, variable, parameters)                                    \
  *(void **)&driver.variable = dlsym(library, #name);                    \
  if (!driver.variable) {                                                \
    fprintf(stderr, "farfault: cuFFT: libcuda.so.1 has no %s\n", #name); \
    return false;                                                        \
  }
  DRIVER_CALLS(X)
#undef X
  return true;
}

static bool find_kernels(void) {
  void *library;
  int result = driver.load(&library, cufft_ptx, NULL, NULL, 0, NULL, NULL, 0);
  for (unsigned i = 0; !result && i < 8; i++)
    result = driver.get_kernel(&kernels[i >> 2][i >> 1 & 1][i & 1], library, kernel_names[i >> 2][i >> 1 & 1][i & 1]);
  if (result) fprintf(stderr, "farfault: cuFFT: its kernels cannot be loaded: error %d of the driver's\n", result);
  return !result;
}

static bool find_context(cufft_context *context) {
  int device;
  if (driver.get_current(context)) return false;
  if (*context) return true;
  return !driver.device_get(&device, 0) && !driver.primary_retain(context, device) && !driver.set_current(*context);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(lock)

bool cufft_gpu_start(cufft_context *context) {
  pthread_mutex_lock(&lock);
  bool found = started || (find_calls() && !driver.init(0));
  found = found && find_context(context) && (started || find_kernels());
  if (found && !started)
    fputs(
        "farfault: cuFFT is farfault's stand-in: its results are a transform's to rounding, its times those of its own kernels and not of "
        "NVIDIA's\n",
        stderr);
  started |= found;
  pthread_mutex_unlock(&lock);
  return found;
}

cufft_entry cufft_gpu_enter(cufft_context context, bool *pushed) {
  cufft_context current;
  int device, own;
  *pushed = false;
  if (driver.get_current(&current)) return CUFFT_CONTEXT_GONE;
  if (current == context) return CUFFT_ENTERED;
  bool has = current && !driver.get_device(&device);
  if (driver.push(context)) return CUFFT_CONTEXT_GONE;
  *pushed = true;
  if (!has || driver.get_device(&own) || own == device) return CUFFT_ENTERED;
  cufft_gpu_leave(true);
  *pushed = false;
  return CUFFT_OTHER_DEVICE;
}

void cufft_gpu_leave(bool pushed) {
  cufft_context left;
  if (pushed) driver.pop(&left);
}

bool cufft_gpu_allocate(size_t bytes, cufft_address *memory) { return !driver.allocate(memory, bytes); }
void cufft_gpu_free(cufft_address memory) { driver.release(memory); }
bool cufft_gpu_upload(cufft_address to, const void *from, size_t bytes) { return !driver.upload(to, from, bytes); }

bool cufft_gpu_launch(const cufft_launch *launch, cufft_stream stream) {
  cufft_address pass = launch->pass, in = launch->in, out = launch->out;
  unsigned inverse = launch->inverse;
  void *arguments[] = {&pass, &in, &out, &inverse};
  void *kernel = kernels[launch->is_double][launch->mixed][launch->special];
  if (launch->blocks > INT_MAX) return false;
  return !driver.launch(kernel, (unsigned)launch->blocks, 1, 1, launch->threads, 1, 1, launch->shared_bytes, stream,
                        arguments, NULL);
}
