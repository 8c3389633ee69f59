/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU as a meter, through the CUDA driver API.
 *
 *   virtual GPU  all of its memory in one allocation, whose physical addresses it tells (farfaultPhysical); events give
 *                the time of a launch, one pair each, less that of a launch which reads nothing
 *   real GPU     mappings of 2 MiB, of which the low 21 bits of an address are physical; %clock64 in the kernel times many pairs of a launch
 *
 * All kernels run in one stream; what is timed begins when the stream is idle. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "probe/meter.h"
#include "runtime/cuda.h"

extern const char probe_ptx[]; /* probe_kernels.ptx */

enum {
  LIST_PAIRS = 120,
  LIST_LINES = 480,
  WARP = 32,  /* as in probe_kernels.ptx */
  GROUP = 12, /* pairs that are timed together where only events tell the time */
  USUAL = 33, /* groups that show how long one usually takes */
  SWEEP_THREADS = 1024,
  LINES_AT_ONCE = 512,
  LINE_LOADS = 8, /* of a line, after the first */
  ATTRIBUTE_CLOCK = 13,
  ATTRIBUTE_L2 = 38,
};
#define PAGE (UINT64_C(2) << 20)     /* a mapping's unit, physically contiguous */
#define MAX_REAL (UINT64_C(4) << 30) /* taken of a real GPU's memory */

/* one conflict among them is more: a tenth of the time of one of twelve pairs */
static const double GROUP_TOLERANCE = 0.005;

typedef enum kernel { KERNEL_pairs, KERNEL_visit, KERNEL_reload, KERNEL_sweep, KERNEL_lines, KERNELS } kernel;

struct gpu {
  const cuda_driver *cuda;
  const probe_options *options;
  meter meter;
  bool clocks; /* time by %clock64 */
  uint32_t sm_count;
  cuda_address memory, sink; /* addresses of the meter's base; of 1 KiB next to it */
  cuda_context context;
  cuda_module module;
  cuda_function kernels[KERNELS];
  cuda_stream stream;
  cuda_event begin, end;
  double cycles_per_us, nothing_us; /* the time of a launch that reads nothing */
  double usual[USUAL];              /* of a load in the last groups */
  uint32_t usual_count;             /* groups */
  double shown;                     /* when progress was written last */
  double until;                     /* when the time is over; 0: never */
};

#define TRY_CUDA(g, name, ...)                                            \
  do {                                                                    \
    int result_ = (g)->cuda->name(__VA_ARGS__);                           \
    if (result_) return cuda_fail((g)->cuda, result_, "cu" #name, error); \
  } while (0)
#define TRY(call)                \
  do {                           \
    ff_status status_ = (call);  \
    if (status_) return status_; \
  } while (0)

static cuda_address device_address(const gpu *g, uint64_t a) {
  FF_CHECK(a % PROBE_LINE == 0 && a - g->meter.base < g->meter.bytes);
  return g->memory + (a - g->meter.base);
}

/* ---- launches ---- */

static ff_status launch(gpu *g, kernel k, uint32_t blocks, uint32_t threads, void **arguments, ff_error *error) {
  TRY_CUDA(g, LaunchKernel, g->kernels[k], blocks, 1, 1, threads, 1, 1, 0, g->stream, arguments, NULL);
  return FF_OK;
}

static ff_status wait_for_all(gpu *g, ff_error *error) {
  TRY_CUDA(g, StreamSynchronize, g->stream);
  return FF_OK;
}

/* The launch alone between two events. The stream is idle when it begins, or busy until after it was queued. */
static ff_status time_launch(gpu *g, kernel k, void **arguments, double *us, ff_error *error) {
  float ms;
  TRY_CUDA(g, EventRecord, g->begin, g->stream);
  TRY(launch(g, k, 1, 1, arguments, error));
  TRY_CUDA(g, EventRecord, g->end, g->stream);
  TRY_CUDA(g, EventSynchronize, g->end);
  TRY_CUDA(g, EventElapsedTime, &ms, g->begin, g->end);
  *us = (double)ms * 1e3;
  return FF_OK;
}

static ff_status read_clocks(gpu *g, cuda_address from, uint64_t *cycles, size_t count, ff_error *error) {
  TRY(wait_for_all(g, error));
  TRY_CUDA(g, MemcpyDtoH, cycles, from, count * sizeof *cycles);
  return FF_OK;
}

/* ---- the meter's functions ---- */

typedef struct pass {
  uint32_t first, step, loads, warm;
} pass; /* as the kernel's parameters */

/* Within a KiB around an address. What a pass has read is in the L2: each reads other lines. Where events tell the
 * time, a launch before has the pages in the TLB, and there are many loads to a pair, of all four sectors of a line, so
 * that what it misses yet counts little. */
static const pass warming = {0, 32, 1, 0}, together = {128, 32, 8, 0}, alone = {384, 32, 16, 0},
                  by_clocks = {128, 128, 7, 1};

/* count: at most LIST_PAIRS. us NULL: the launch is not waited for. */
static ff_status launch_pairs(gpu *g, const probe_pair *pairs, uint32_t count, pass p, double *us, ff_error *error) {
  cuda_address list[2 * LIST_PAIRS] = {0};
  uint64_t zero = 0;
  for (uint32_t i = 0; i < count; i++) {
    list[2 * i] = device_address(g, pairs[i].a);
    list[2 * i + 1] = device_address(g, pairs[i].b);
  }
  void *arguments[] = {list, &count, &p.first, &p.step, &p.loads, &p.warm, &zero, &g->sink};
  return us ? time_launch(g, KERNEL_pairs, arguments, us, error) : launch(g, KERNEL_pairs, 1, 1, arguments, error);
}

/* Cycles of a load, in the middle of all pairs. */
static ff_status time_group(gpu *g, const probe_pair *pairs, uint32_t count, pass p, double *cycles, ff_error *error) {
  double us;
  TRY(launch_pairs(g, pairs, count, p, &us, error));
  *cycles = (us - g->nothing_us) * g->cycles_per_us / (2 * p.loads * count);
  return FF_OK;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(const double *values, size_t count) {
  double sorted[USUAL];
  memcpy(sorted, values, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, compare);
  return sorted[count / 2];
}

/* Whether a group took longer than the last ones did; the first ones only show what that is. */
static bool is_slow(gpu *g, double cycles) {
  bool slow = g->usual_count < USUAL || cycles > (1 + GROUP_TOLERANCE) * median(g->usual, USUAL);
  g->usual[g->usual_count++ % USUAL] = cycles;
  return slow;
}

/* By events: a group together, and its pairs one by one only if it took longer than groups do. Else none of them is
 * slow: NAN. */
static ff_status time_by_events(gpu *g, const probe_pair *pairs, uint32_t count, double *cycles, ff_error *error) {
  double all = 0;
  TRY(launch_pairs(g, pairs, count, warming, NULL, error));
  /* queued while the launch before still reads */
  if (count == GROUP) TRY(time_group(g, pairs, count, together, &all, error));
  else TRY(wait_for_all(g, error));
  bool slow = count < GROUP || is_slow(g, all);
  for (uint32_t i = 0; i < count; i++) {
    cycles[i] = NAN;
    if (slow) TRY(time_group(g, &pairs[i], 1, alone, &cycles[i], error));
  }
  return FF_OK;
}

static ff_status time_by_clocks(gpu *g, const probe_pair *pairs, uint32_t count, double *cycles, ff_error *error) {
  uint64_t clocks[LIST_PAIRS];
  TRY(launch_pairs(g, pairs, count, by_clocks, NULL, error));
  TRY(read_clocks(g, g->sink, clocks, count, error));
  for (uint32_t i = 0; i < count; i++) cycles[i] = (double)clocks[i] / (2 * by_clocks.loads);
  return FF_OK;
}

static ff_status time_pairs(void *context, const probe_pair *pairs, size_t count, double *cycles, ff_error *error) {
  gpu *g = context;
  size_t most = g->clocks ? LIST_PAIRS : GROUP;
  for (size_t i = 0; i < count; i += most) {
    uint32_t some = count - i < most ? (uint32_t)(count - i) : (uint32_t)most;
    TRY((g->clocks ? time_by_clocks : time_by_events)(g, &pairs[i], some, &cycles[i], error));
  }
  return FF_OK;
}

/* What the kernel writes goes next to x: its page is in the TLB as x's is. */
static ff_status reload(gpu *g, uint64_t x, double *cycles, ff_error *error) {
  cuda_address address = device_address(g, x), neighbour = device_address(g, x ^ PROBE_LINE);
  uint64_t zero = 0, clocks;
  void *arguments[] = {&address, &zero, &neighbour};
  double us;
  TRY(wait_for_all(g, error));
  TRY(time_launch(g, KERNEL_reload, arguments, &us, error));
  *cycles = (us - g->nothing_us) * g->cycles_per_us;
  if (!g->clocks) return FF_OK;
  TRY(read_clocks(g, neighbour, &clocks, 1, error));
  *cycles = (double)clocks;
  return FF_OK;
}

/* The first warp of addresses is x alone: it is read before all others. At the end all SMs read the line next to x,
 * which is in another set: whichever has the last launch finds x's page in its TLB. */
static ff_status time_again(void *context, uint64_t x, const uint64_t *lines, size_t count, double *cycles,
                            ff_error *error) {
  gpu *g = context;
  cuda_address list[LIST_LINES] = {0};
  uint32_t used = 0;
  uint64_t zero = 0;
  void *arguments[] = {list, &used, &zero, &g->sink};
  while (used < WARP) list[used++] = device_address(g, x);
  for (size_t i = 0; i < count; i++) {
    if (used == LIST_LINES) {
      TRY(launch(g, KERNEL_visit, 1, WARP, arguments, error));
      used = 0;
    }
    list[used++] = device_address(g, lines[i]);
  }
  TRY(launch(g, KERNEL_visit, 1, WARP, arguments, error));
  list[0] = device_address(g, x ^ PROBE_LINE);
  used = 1;
  TRY(launch(g, KERNEL_visit, g->sm_count, WARP, arguments, error));
  return reload(g, x, cycles, error);
}

/* ---- lines, one by one ---- */

/* From SM `sm`; us: of the launch, NULL where clocks tell the time. A real GPU puts its blocks where it likes: enough
 * that one comes to each SM. */
static ff_status launch_lines(gpu *g, uint32_t sm, cuda_address from, uint32_t count, uint32_t again, double *us,
                              ff_error *error) {
  uint64_t zero = 0;
  uint32_t blocks = g->clocks ? 8 * g->sm_count : g->sm_count;
  cuda_address out = g->sink + sizeof zero;
  void *arguments[] = {&from, &count, &sm, &again, &zero, &g->sink, &out};
  TRY_CUDA(g, MemsetD8Async, g->sink, 0, sizeof zero, g->stream);
  if (!us) return launch(g, KERNEL_lines, blocks, 1, arguments, error);
  float ms;
  TRY(wait_for_all(g, error));
  TRY_CUDA(g, EventRecord, g->begin, g->stream);
  TRY(launch(g, KERNEL_lines, blocks, 1, arguments, error));
  TRY_CUDA(g, EventRecord, g->end, g->stream);
  TRY_CUDA(g, EventSynchronize, g->end);
  TRY_CUDA(g, EventElapsedTime, &ms, g->begin, g->end);
  *us = (double)ms * 1e3;
  return FF_OK;
}

static ff_status lines_by_clocks(gpu *g, uint32_t sm, uint64_t from, uint32_t count, double *first, double *again,
                                 ff_error *error) {
  struct {
    uint64_t flag;
    uint32_t cycles[LINES_AT_ONCE][2];
  } read;
  for (uint32_t i = 0; i < count; i += LINES_AT_ONCE) {
    uint32_t some = count - i < LINES_AT_ONCE ? count - i : LINES_AT_ONCE;
    TRY(launch_lines(g, sm, device_address(g, from + i * PROBE_LINE), some, LINE_LOADS, NULL, error));
    TRY(wait_for_all(g, error));
    TRY_CUDA(g, MemcpyDtoH, &read, g->sink, sizeof read);
    if (!(read.flag & 1)) return ff_fail(error, FF_UNSUPPORTED, "no block of a kernel came to SM %u", sm);
    for (uint32_t k = 0; k < some; k++) {
      first[i + k] = read.cycles[k][0];
      again[i + k] = read.cycles[k][1];
    }
  }
  return FF_OK;
}

/* A launch of the line that is read then, too, is taken off; what only the first launch of an SM misses is not the
 * line's. */
static ff_status lines_by_events(gpu *g, uint32_t sm, uint64_t from, uint32_t count, double *first, double *again,
                                 ff_error *error) {
  double came, there, more;
  TRY(launch_lines(g, sm, device_address(g, from + count * PROBE_LINE), 1, 0, &came, error));
  for (uint32_t i = 0; i < count; i++) {
    cuda_address line = device_address(g, from + i * PROBE_LINE);
    TRY(launch_lines(g, sm, line, 1, 0, &came, error));
    TRY(launch_lines(g, sm, line, 1, 0, &there, error));
    TRY(launch_lines(g, sm, line, 1, LINE_LOADS, &more, error));
    again[i] = (more - there) * g->cycles_per_us / LINE_LOADS;
    first[i] = (came - there) * g->cycles_per_us + again[i];
  }
  return FF_OK;
}

static ff_status time_lines(void *context, uint32_t sm, uint64_t from, uint32_t count, double *first, double *again,
                            ff_error *error) {
  gpu *g = context;
  return (g->clocks ? lines_by_clocks : lines_by_events)(g, sm, from, count, first, again, error);
}

/* Reads twice the L2's size, from another place each time there is one. */
static ff_status flush(void *context, ff_error *error) {
  gpu *g = context;
  uint64_t bytes = 2 * g->meter.l2_bytes, block = UINT64_C(64) << 10;
  if (bytes > g->meter.bytes) bytes = g->meter.bytes;
  uint32_t blocks = (uint32_t)(bytes / block);
  void *arguments[] = {&g->memory, &block, &g->sink};
  if (!blocks) return FF_OK;
  TRY(launch(g, KERNEL_sweep, blocks, SWEEP_THREADS, arguments, error));
  return wait_for_all(g, error);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void progress(void *context, const char *what, double done) {
  gpu *g = context;
  double time = now();
  if (time - g->shown < 0.2) return;
  g->shown = time;
  fprintf(stderr, "\r\033[Kfarfault: %s: %.0f %% ", what, 100 * done);
  fflush(stderr);
}

static bool over(void *context) {
  const gpu *g = context;
  return g->until > 0 && now() > g->until;
}

void gpu_begin(gpu *g, ff_text *raw) {
  g->until = g->options->seconds > 0 ? now() + g->options->seconds : 0;
  g->meter.raw = raw;
}

/* ---- opening ---- */

static ff_status describe(gpu *g, int device, probe_result *result, ff_error *error) {
  int khz = 0, l2 = 0;
  TRY_CUDA(g, DeviceGetName, result->device, sizeof result->device, device);
  result->device[sizeof result->device - 1] = '\0';
  g->cuda->DeviceGetAttribute(&khz, ATTRIBUTE_CLOCK, device); /* 0: this driver does not say */
  g->cuda->DeviceGetAttribute(&l2, ATTRIBUTE_L2, device);
  int sms = 0;
  TRY_CUDA(g, DeviceGetAttribute, &sms, CUDA_ATTRIBUTE_SM_COUNT, device);
  if (sms < 1 || sms > 4096) return ff_fail(error, FF_UNSUPPORTED, "the driver says that the GPU has %d SMs", sms);
  g->sm_count = g->meter.sm_count = (uint32_t)sms;
  if (khz <= 0) return ff_fail(error, FF_UNSUPPORTED, "the driver does not say at which clock the GPU's SMs run");
  g->cycles_per_us = khz / 1e3;
  g->meter.l2_bytes = l2 > 0 ? (uint64_t)l2 : UINT64_C(64) << 20;
  result->clock_mhz = g->cycles_per_us;
  result->l2_bytes = l2 > 0 ? (uint64_t)l2 : 0;
  result->is_virtual = g->cuda->is_virtual;
  return FF_OK;
}

static ff_status load_kernels(gpu *g, ff_error *error) {
  static const char *const names[KERNELS] = {"pairs", "visit", "reload", "sweep", "lines"};
  int result = g->cuda->ModuleLoadDataEx(&g->module, probe_ptx, 0, NULL, NULL);
  if (result) return cuda_fail(g->cuda, result, "cuModuleLoadDataEx (kernels of the probe)", error);
  for (int i = 0; i < KERNELS; i++) TRY_CUDA(g, ModuleGetFunction, &g->kernels[i], g->module, names[i]);
  return FF_OK;
}

/* Almost all memory in one piece; its physical addresses must follow each other, as is looked at in many places. */
static ff_status take_physical(gpu *g, bool *contiguous, ff_error *error) {
  size_t available, total;
  uint64_t first, other, step;
  TRY_CUDA(g, MemGetInfo, &available, &total);
  int result = CUDA_OUT_OF_MEMORY;
  for (uint64_t bytes = (available > 4 * PAGE ? available - 4 * PAGE : available) / PAGE * PAGE;
       bytes >= 16 * PAGE && result == CUDA_OUT_OF_MEMORY; bytes -= bytes / 16 / PAGE * PAGE + PAGE) {
    result = g->cuda->MemAlloc(&g->memory, bytes);
    g->meter.bytes = bytes;
  }
  if (result) return cuda_fail(g->cuda, result, "cuMemAlloc", error);
  result = g->cuda->physical(g->memory, &first);
  if (result == CUDA_NOT_SUPPORTED) return FF_OK; /* this machine's memory has no places */
  if (result) return cuda_fail(g->cuda, result, "farfaultPhysical", error);
  *contiguous = true;
  step = g->meter.bytes / 4096 / PROBE_LINE * PROBE_LINE;
  for (uint64_t at = 0; at < g->meter.bytes && *contiguous; at += step) {
    result = g->cuda->physical(g->memory + at, &other);
    if (result) return cuda_fail(g->cuda, result, "farfaultPhysical", error);
    *contiguous = other == first + at;
  }
  g->meter.base = first;
  return FF_OK;
}

/* Memory whose addresses are physical within a span. */
static ff_status take_mapped(gpu *g, int device, ff_error *error) {
  uint64_t span = g->options->span ? g->options->span : PAGE, unit = span > PAGE ? span : PAGE;
  size_t available, total, granularity = 0;
  cuda_memory_properties properties = {.type = 1, .location = {1, device}};
  cuda_memory_access access = {.location = {1, device}, .flags = 3};
  cuda_memory memory;
  TRY_CUDA(g, MemGetInfo, &available, &total);
  TRY_CUDA(g, MemGetAllocationGranularity, &granularity, &properties, 0);
  if (granularity % PAGE)
    return ff_fail(
        error, FF_UNSUPPORTED,
        "the driver maps memory in units of %zu bytes, not of 2 MiB: nothing is known of its physical addresses",
        granularity);
  uint64_t bytes = available / 2 < MAX_REAL ? available / 2 : MAX_REAL;
  bytes = bytes / unit * unit;
  if (!bytes) return ff_fail(error, FF_NO_MEMORY, "the GPU has only %zu bytes free", available);
  TRY_CUDA(g, MemAddressReserve, &g->memory, bytes, unit, 0, 0);
  TRY_CUDA(g, MemCreate, &memory, bytes, &properties, 0);
  TRY_CUDA(g, MemMap, g->memory, bytes, 0, memory, 0);
  TRY_CUDA(g, MemSetAccess, g->memory, bytes, &access, 1);
  g->meter.base = g->memory;
  g->meter.bytes = bytes;
  g->meter.span = span;
  return FF_OK;
}

static ff_status take_memory(gpu *g, int device, probe_result *result, ff_error *error) {
  bool contiguous = false;
  if (g->cuda->physical && !g->options->mapped) TRY(take_physical(g, &contiguous, error));
  if (!contiguous && g->memory) {
    g->cuda->MemFree(g->memory);
    g->memory = 0;
  }
  if (!contiguous) TRY(take_mapped(g, device, error));
  TRY_CUDA(g, MemAlloc, &g->sink, (1 + LINES_AT_ONCE) * sizeof(uint64_t));
  result->physical = contiguous;
  result->memory_bytes = g->meter.bytes;
  result->span = g->meter.span ? g->meter.span : g->meter.bytes;
  return FF_OK;
}

/* The kernel that reads nothing takes so long, in the middle. */
static ff_status time_nothing(gpu *g, ff_error *error) {
  double us[9];
  for (size_t i = 0; i < sizeof us / sizeof *us; i++) TRY(launch_pairs(g, NULL, 0, alone, &us[i], error));
  g->nothing_us = median(us, sizeof us / sizeof *us);
  return FF_OK;
}

static ff_status open_parts(gpu *g, probe_result *result, ff_error *error) {
  int device;
  TRY(cuda_open(g->options->driver, &g->cuda, error));
  TRY_CUDA(g, DeviceGet, &device, g->options->device);
  TRY(describe(g, device, result, error));
  TRY_CUDA(g, DevicePrimaryCtxRetain, &g->context, device);
  TRY_CUDA(g, CtxSetCurrent, g->context);
  TRY(load_kernels(g, error));
  TRY_CUDA(g, StreamCreate, &g->stream, CUDA_STREAM_NON_BLOCKING);
  TRY_CUDA(g, EventCreate, &g->begin, 0);
  TRY_CUDA(g, EventCreate, &g->end, 0);
  TRY(take_memory(g, device, result, error));
  g->clocks = !g->cuda->is_virtual;
  g->meter.line_count = g->clocks ? 4096 : 128; /* three launches to each */
  return time_nothing(g, error);
}

ff_status gpu_open(const probe_options *options, gpu **out, probe_result *result, ff_error *error) {
  gpu *g = ff_alloc(sizeof *g);
  g->options = options;
  g->meter = (meter){.context = g,
                     .time_pairs = time_pairs,
                     .time_again = time_again,
                     .time_lines = time_lines,
                     .flush = flush,
                     .over = over,
                     .progress = options->progress ? progress : NULL};
  ff_status status = open_parts(g, result, error);
  if (status) free(g);
  else *out = g;
  return status;
}

const meter *gpu_meter(const gpu *g) { return &g->meter; }
