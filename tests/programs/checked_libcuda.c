/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda.so.1 between a workload and the virtual GPU's that runs the workload's kernels in other forms: every launch
 * declares its uses, which are checked either by the virtual GPU or by the kernel itself, instrumented; or kernels are
 * bound to a range of SMs; or they come from another text.
 * Environment:
 *   REAL_LIBCUDA     the virtual GPU's
 *   CHECK_BY         virtual | code | windows (instrumented, then run in windows, one for each half of the grid) | persistent | text
 *   CHECK_TEXT       text: the file with the PTX that is run instead
 *   SM_FIRST         persistent: the range of SMs; 0
 *   SM_COUNT         how many of them; all
 *   CHECK_SHORT      bytes at the end of each use that are not declared; 0
 *   CHECK_READ_ONLY  set: nothing is declared for writing
 * Uses are the allocations that the parameters point into. On the first report: its words on stderr, exit status 3. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/rewrite/instrument.h"
#include "ptx/rewrite/persistent.h"
#include "ptx/rewrite/window.h"

typedef unsigned long long address;
enum { MOST_KERNELS = 16, MOST_USES = 32 };

/* X(symbol, parameters, arguments): handed on as they are. */
#define FORWARDED(X)                                                                       \
  X(cuInit, (unsigned a), (a))                                                             \
  X(cuGetErrorName, (int a, const char **b), (a, b))                                       \
  X(cuDeviceGet, (int *a, int b), (a, b))                                                  \
  X(cuDeviceGetAttribute, (int *a, int b, int c), (a, b, c))                               \
  X(cuDevicePrimaryCtxRetain, (void **a, int b), (a, b))                                   \
  X(cuDevicePrimaryCtxRelease_v2, (int a), (a))                                            \
  X(cuCtxSetCurrent, (void *a), (a))                                                       \
  X(cuCtxSynchronize, (void), ())                                                          \
  X(cuProfilerStart, (void), ())                                                           \
  X(cuProfilerStop, (void), ())                                                            \
  X(cuModuleUnload, (void *a), (a))                                                        \
  X(cuModuleGetGlobal_v2, (address * a, size_t * b, void *c, const char *d), (a, b, c, d)) \
  X(cuMemAlloc_v2, (address * a, size_t b), (a, b))                                        \
  X(cuMemAllocManaged, (address * a, size_t b, unsigned c), (a, b, c))                     \
  X(cuMemAllocHost_v2, (void **a, size_t b), (a, b))                                       \
  X(cuMemFreeHost, (void *a), (a))                                                         \
  X(cuMemFree_v2, (address a), (a))                                                        \
  X(cuMemcpyHtoD_v2, (address a, const void *b, size_t c), (a, b, c))                      \
  X(cuMemcpyDtoH_v2, (void *a, address b, size_t c), (a, b, c))                            \
  X(cuMemcpyHtoDAsync_v2, (address a, const void *b, size_t c, void *d), (a, b, c, d))     \
  X(cuMemcpy3D_v2, (const void *a), (a))                                                   \
  X(cuMemPrefetchAsync, (address a, size_t b, int c, void *d), (a, b, c, d))               \
  X(cuMemsetD32_v2, (address a, unsigned b, size_t c), (a, b, c))                          \
  X(cuStreamCreate, (void **a, unsigned b), (a, b))                                        \
  X(cuStreamDestroy_v2, (void *a), (a))                                                    \
  X(cuStreamWaitEvent, (void *a, void *b, unsigned c), (a, b, c))                          \
  X(cuEventCreate, (void **a, unsigned b), (a, b))                                         \
  X(cuEventRecord, (void *a, void *b), (a, b))                                             \
  X(cuEventSynchronize, (void *a), (a))                                                    \
  X(cuEventElapsedTime, (float *a, void *b, void *c), (a, b, c))                           \
  X(cuEventDestroy_v2, (void *a), (a))

typedef struct kernel { /* the application's handle of one */
  void *function;
  const ptx_func *func;
  const ptx_checked_kernel *checked;
  const ptx_window_kernel *window;
  const ptx_persistent_kernel *persistent;
} kernel;

static ptx_module *original, *instrumented;
static ptx_checked *checked;
static ptx_windows *windows;
static ptx_persistents *persistents;
static kernel kernels[MOST_KERNELS];
static unsigned kernel_count;

static void *real(const char *name) {
  static void *library;
  if (!library) library = dlopen(getenv("REAL_LIBCUDA"), RTLD_NOW | RTLD_LOCAL);
  void *found = library ? dlsym(library, name) : NULL;
  if (!found) {
    fprintf(stderr, "%s: %s\n", name, dlerror());
    exit(4);
  }
  return found;
}

#define CALL(name, type, ...) ((int(*) type)real(name))(__VA_ARGS__)
#define X(name, parameters, arguments) \
  int name parameters;                 \
  int name parameters { return ((int(*) parameters)real(#name))arguments; }
FORWARDED(X)
#undef X

static bool by(const char *how) { return strcmp(getenv("CHECK_BY"), how) == 0; }

static void need(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "%s\n", what);
  exit(4);
}

int cuModuleLoadData(void **module, const void *image);
int cuModuleLoadData(void **module, const void *image) {
  ff_error error;
  need(ptx_module_parse("workload", image, strlen(image), &original, &error) == FF_OK, error.message);
  checked = ptx_instrument(original);
  const char *text = by("virtual") ? image : checked->text.chars;
  if (by("windows")) {
    need(ptx_module_parse("instrumented", text, strlen(text), &instrumented, &error) == FF_OK, error.message);
    windows = ptx_windows_make(instrumented);
    text = windows->text.chars;
  }
  if (by("persistent")) {
    const ptx_persistent_options options = {.polling = true};
    persistents = ptx_persistent_make(original, &options);
    text = persistents->text.chars;
  }
  if (by("text")) {
    char *other;
    size_t size;
    need(ff_file_read(getenv("CHECK_TEXT"), 0, &other, &size, &error) == FF_OK, error.message);
    text = other;
  }
  return CALL("cuModuleLoadData", (void **, const void *), module, text);
}

int cuModuleGetFunction(void **function, void *module, const char *name);
int cuModuleGetFunction(void **function, void *module, const char *name) {
  need(kernel_count < MOST_KERNELS, "too many kernels");
  kernel *k = &kernels[kernel_count++];
  k->func = ptx_find_func(original, name);
  k->checked = ptx_checked_find(checked, name);
  if (by("persistent")) {
    k->persistent = ptx_persistent_find(persistents, name);
    need(k->persistent && k->persistent->persistent_name, k->persistent ? k->persistent->reason : "no such kernel");
    name = k->persistent->persistent_name;
  } else if (!by("virtual") && !by("text")) {
    need(k->checked && k->checked->checked_name, k->checked ? k->checked->reason : "no such kernel");
    name = k->checked->checked_name;
  }
  k->window = by("windows") ? ptx_windows_find(windows, name) : NULL;
  if (k->window && k->window->window_name) name = k->window->window_name;
  *function = k;
  return CALL("cuModuleGetFunction", (void **, void *, const char *), &k->function, module, name);
}

int cuFuncSetAttribute(void *function, int attribute, int value);
int cuFuncSetAttribute(void *function, int attribute, int value) {
  return CALL("cuFuncSetAttribute", (void *, int, int), ((const kernel *)function)->function, attribute, value);
}

/* ---- launches ---- */

static void add_use(ff_virtual_use *uses, uint32_t *count, uint64_t pointer) {
  address base;
  size_t bytes;
  if (CALL("cuMemGetAddressRange_v2", (address *, size_t *, address), &base, &bytes, pointer)) return;
  for (uint32_t i = 0; i < *count; i++)
    if (uses[i].base == base) return;
  need(*count < MOST_USES, "too many uses");
  size_t less = getenv("CHECK_SHORT") ? strtoull(getenv("CHECK_SHORT"), NULL, 10) : 0;
  uses[(*count)++] = (ff_virtual_use){.base = base,
                                      .bytes = bytes > less ? bytes - less : 0,
                                      .read = 1,
                                      .write = !getenv("CHECK_READ_ONLY"),
                                      .segment = "allocation"};
}

static unsigned char *pack(const ptx_func *func, void **arguments, uint32_t bytes, ff_virtual_use *uses,
                           uint32_t *count) {
  uint32_t offsets[64];
  unsigned char *block = calloc(1, bytes + sizeof(ptx_window_params) + 16u);
  need(func->param_count <= 64, "too many parameters");
  ptx_param_layout(func, offsets);
  for (uint32_t i = 0; i < func->param_count; i++) {
    uint64_t word;
    memcpy(block + offsets[i], arguments[i], func->params[i]->size);
    for (uint64_t at = 0; at + 8 <= func->params[i]->size; at += 8) {
      memcpy(&word, block + offsets[i] + at, 8);
      add_use(uses, count, word);
    }
  }
  return block;
}

static int launch(const kernel *k, const unsigned *shape, unsigned shared, void *stream, unsigned char *block,
                  size_t bytes) {
  void *extra[] = {(void *)1 /* CU_LAUNCH_PARAM_BUFFER_POINTER */, block, (void *)2 /* _SIZE */, &bytes, NULL};
  return CALL("cuLaunchKernel",
              (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
              k->function, shape[0], shape[1], shape[2], shape[3], shape[4], shape[5], shared, stream, NULL, extra);
}

/* The grid cut in halves along its longest side, so that there are two launches. */
static int launch_windows(const kernel *k, const unsigned *shape, unsigned shared, void *stream, unsigned char *block) {
  unsigned side = shape[0] >= shape[1] ? 0 : 1, half = (shape[side] + 1) / 2;
  for (unsigned first = 0; first < shape[side]; first += half) {
    unsigned part[6];
    memcpy(part, shape, sizeof part);
    part[side] = shape[side] - first < half ? shape[side] - first : half;
    ptx_window_params window = {.grid = {shape[0], shape[1], shape[2]}};
    window.first[side] = first;
    memcpy(block + k->window->offset, &window, sizeof window);
    int error = launch(k, part, shared, stream, block, k->window->bytes);
    if (error) return error;
  }
  return 0;
}

static unsigned number_of(const char *name, unsigned otherwise) {
  return getenv(name) ? (unsigned)strtoul(getenv(name), NULL, 10) : otherwise;
}

static int launch_persistent(const kernel *k, const unsigned *shape, unsigned shared, void *stream,
                             unsigned char *block) {
  static address queue;
  static unsigned turn;
  int sms, fitting;
  if (!queue)
    need(!CALL("cuMemAlloc_v2", (address *, size_t), &queue, sizeof(ptx_persistent_queue)) &&
             !CALL("cuMemsetD32_v2", (address, unsigned, size_t), queue, 0, sizeof(ptx_persistent_queue) / 4),
         "no queue");
  need(!CALL("cuDeviceGetAttribute", (int *, int, int), &sms, 16 /* MULTIPROCESSOR_COUNT */, 0),
       "the SMs cannot be counted");
  need(!CALL("cuOccupancyMaxActiveBlocksPerMultiprocessor", (int *, void *, int, size_t), &fitting, k->function,
             (int)(shape[3] * shape[4] * shape[5]), shared) &&
           fitting,
       "no block fits");
  ptx_persistent_params own = {.queue = queue,
                               .sm_first = number_of("SM_FIRST", 0),
                               .sm_count = number_of("SM_COUNT", (unsigned)sms),
                               .grid = {shape[0], shape[1], shape[2]},
                               .turn = turn++ % 2};
  unsigned launched[6] = {ptx_persistent_blocks((uint32_t)fitting, (uint32_t)sms, own.sm_count, own.grid),
                          1,
                          1,
                          shape[3],
                          shape[4],
                          shape[5]};
  memcpy(block + k->persistent->offset, &own, sizeof own);
  return launch(k, launched, shared, stream, block, k->persistent->bytes);
}

static void look_at_report(const kernel *k, address table, const ff_virtual_use *uses, uint32_t count) {
  ptx_check_report report;
  ff_text text = {0};
  ff_error error;
  int failed = CALL("cuMemcpyDtoH_v2", (void *, address, size_t), &report, table, sizeof report);
  need(!failed, "the report cannot be read");
  if (!report.taken) return;
  need(ptx_check_explain(checked, k->checked->name, &report, uses, count, &text, &error) == FF_OK, error.message);
  fprintf(stderr, "farfault: %s\n", text.chars);
  exit(3);
}

static int launch_checked(const kernel *k, const unsigned *shape, unsigned shared, void *stream, unsigned char *block,
                          const ff_virtual_use *uses, uint32_t count) {
  static address device;
  ptx_check_table *table = calloc(1, ptx_check_bytes(MOST_USES));
  ff_error error;
  if (!device)
    need(!CALL("cuMemAlloc_v2", (address *, size_t), &device, ptx_check_bytes(MOST_USES)), "no memory for the table");
  need(ptx_check_fill(uses, count, shape, table, &error) == FF_OK, error.message);
  need(!CALL("cuMemcpyHtoD_v2", (address, const void *, size_t), device, table, ptx_check_bytes(count)),
       "the table cannot be written");
  free(table);
  memcpy(block + k->checked->offset, &device, sizeof device);
  int failed = k->window && k->window->window_name ? launch_windows(k, shape, shared, stream, block)
                                                   : launch(k, shape, shared, stream, block, k->checked->bytes);
  if (!failed) look_at_report(k, device, uses, count);
  return failed;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by_, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **extra);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by_, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **extra) {
  const kernel *k = function;
  const unsigned shape[6] = {gx, gy, gz, bx, by_, bz};
  ff_virtual_use uses[MOST_USES];
  uint32_t count = 0;
  int error;
  need(!extra, "a launch with extra arguments");
  unsigned char *block =
      pack(k->func, arguments, k->persistent ? k->persistent->bytes : k->checked->bytes, uses, &count);
  if (k->persistent) {
    error = launch_persistent(k, shape, shared, stream, block);
  } else if (by("virtual") || by("text")) {
    if (by("virtual"))
      need(!CALL("farfaultDeclareUses", (const ff_virtual_use *, uint32_t), uses, count),
           "the uses cannot be declared");
    error = launch(k, shape, shared, stream, block, ptx_param_layout(k->func, NULL));
  } else {
    error = launch_checked(k, shape, shared, stream, block, uses, count);
  }
  free(block);
  return error;
}
