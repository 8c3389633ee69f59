/* SPDX-License-Identifier: Apache-2.0 */
/* Runs conformance files on a CUDA driver, the one that FARFAULT_DRIVER names: what a GPU computes against what the
 * cases say. driver [--jobs N] [--seconds N] [--faults | --no-faults] [--case NAME] FILE-OR-FOLDER...
 *
 * Every case's text goes to cuModuleLoadDataEx as it is, and is launched in the shapes of the runner (arrays.h).
 * --jobs: so many processes side by side (1). --seconds: a case that takes longer is ended with its process, and has
 * failed (10).
 *
 * Cases that end in a fault end their context as well, so each has a process of its own, after all others. What the
 * device cannot run is left out, and counted with its reason: targets of other architectures, teams of devices, faults
 * that are limits of the executor's own.
 *
 * A tensor map's bytes are the driver's own: an array that begins with the executor's mark gets what
 * cuTensorMapEncodeTiled gives instead.
 *
 * Invariant: the parent makes no call of the driver; it starts a worker for each stride of the cases again until that
 * is through. Exit status: 0 all as expected, 1 not, 2 bad usage, 77 there is no GPU. */
#define _GNU_SOURCE /* memmem */
#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arrays.h"
#include "base/memory.h"
#include "base/text.h"
#include "case.h"
#include "exec/memory/tensor_map.h"
#include "runtime/cuda.h"

enum { MOST_JOBS = 64, PLACE = 4096 + 96, NO_GPU = 77, LOG = 4096, MOST_TIMEOUTS = 3 };
enum { JIT_LOG = 5, JIT_LOG_BYTES = 6, LAUNCH_COOPERATIVE = 2, LAUNCH_CLUSTER = 4 };
enum { DONE_LAST = 0, DONE_ONE = 3 }; /* exit statuses of a worker: no more cases, or one after which it must end */

typedef struct launch_attribute { /* CUlaunchAttribute */
  int id;
  unsigned padding;
  unsigned values[16];
} launch_attribute;

typedef struct launch_config { /* CUlaunchConfig */
  unsigned grid[3], block[3], shared;
  void *stream;
  launch_attribute *attributes;
  unsigned attribute_count;
} launch_config;

typedef int launch_function(const launch_config *config, cuda_function function, void **arguments, void **extra);
typedef int encode_function(void *map, int type, unsigned rank, void *address, const uint64_t *sizes,
                            const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                            int swizzle, int promotion, int fill);

typedef struct item { /* a case, where it stands */
  const char *file;
  case_place at;
  bool faults, executor_only;
} item;

typedef struct device { /* of one worker */
  const cuda_driver *driver;
  launch_function *launch;
  encode_function *encode;
  unsigned version; /* 90: compute capability 9.0 */
} device;

typedef enum reason { LEFT_TARGET, LEFT_TEAM, LEFT_LIMIT, LEFT_UNNOTICED, REASONS } reason;
static const char *const reasons[] = {"for other architectures", "for teams of devices", "for limits of the executor",
                                      "as what they access wrongly is in a page that is there"};

typedef struct progress { /* of one worker, seen by the parent */
  volatile unsigned next;
  volatile time_t since; /* when `next` was begun; 0: none is running */
  unsigned passed, failed, timeouts, not_run;
  unsigned left_out[REASONS];
} progress;

typedef struct options {
  unsigned jobs, seconds;
  bool faults, others;
  const char *only;
  item *items;
  size_t count, room;
} options;

/* ---- the driver ---- */

static ff_status open_device(device *d, ff_error *error) {
  int major = 0, minor = 0, number = 0;
  cuda_context context;
  ff_status status = cuda_open(NULL, &d->driver, error);
  if (status) return status;
  void *library = dlopen(d->driver->path, RTLD_NOW);
  d->launch = library ? (launch_function *)dlsym(library, "cuLaunchKernelEx") : NULL;
  d->encode = library ? (encode_function *)dlsym(library, "cuTensorMapEncodeTiled") : NULL;
  if (!d->launch || !d->encode) return ff_fail(error, FF_UNSUPPORTED, "the driver is older than CUDA 12");
  int result = d->driver->DeviceGet(&number, 0);
  if (!result) result = d->driver->DevicePrimaryCtxRetain(&context, number);
  if (!result) result = d->driver->CtxSetCurrent(context);
  if (!result) result = d->driver->DeviceGetAttribute(&major, CUDA_ATTRIBUTE_MAJOR, number);
  if (!result) result = d->driver->DeviceGetAttribute(&minor, CUDA_ATTRIBUTE_MINOR, number);
  d->version = (unsigned)(major * 10 + minor);
  return result ? cuda_fail(d->driver, result, "cuDevicePrimaryCtxRetain", error) : FF_OK;
}

static const char *error_name(const device *d, int result) {
  const char *name = NULL;
  return d->driver->GetErrorName(result, &name) || !name ? "an unknown error" : name;
}

/* ---- what can be run ---- */

/* "sm_90a" runs on 9.0 only, "sm_80" on all from 8.0 on. */
static bool has_target(const device *d, const char *text) {
  const char *at = strstr(text, "\n.target sm_");
  char *end;
  if (!at) return true;
  unsigned target = (unsigned)strtoul(at + 12, &end, 10);
  return *end == 'a' ? target == d->version : target <= d->version;
}

/* These say how far the executor goes, or would not end on a GPU. */
static bool is_own_limit(const char *fault) {
  static const char *const own[] = {"unsupported", "barrier", "timeout", "stack"};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (!strcmp(fault, own[i])) return true;
  return false;
}

static bool left_out(const device *d, const item *it, const conformance_case *c, reason *why) {
  *why = LEFT_TARGET;
  if (!has_target(d, c->text)) return true;
  *why = LEFT_LIMIT;
  if (it->executor_only || (c->fault[0] && is_own_limit(c->fault))) return true;
  *why = LEFT_TEAM;
  for (unsigned i = 0; i < c->array_count; i++)
    if (c->arrays[i].members) return true;
  return false;
}

/* The faults of the executor as a driver reports them. */
static bool is_fault(const char *fault, const char *error) {
  static const struct {
    const char *fault, *errors;
  } names[] = {
      {"illegal_address", "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {"misaligned", "CUDA_ERROR_MISALIGNED_ADDRESS"},
      {"invalid_space", "CUDA_ERROR_INVALID_ADDRESS_SPACE"},
      {"assert", "CUDA_ERROR_ASSERT"},
      {"trap", "CUDA_ERROR_LAUNCH_FAILED"},
      {"invalid_pc", "CUDA_ERROR_INVALID_PC"},
      {"illegal_instruction", "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(names[i].fault, fault)) return !strcmp(names[i].errors, error);
  return false;
}

/* ---- one case ---- */

typedef struct run {
  const device *device;
  const char *place;
  const conformance_case *c;
  case_shape shape;
  cuda_address buffers[CASE_ARRAYS];
  unsigned char *bytes[CASE_ARRAYS];   /* what the kernel begins with; by value: the parameter itself */
  _Alignas(64) unsigned char map[128]; /* a tensor map of the driver's */
  bool is_map[CASE_ARRAYS];
  bool unnoticed; /* an access outside of an allocation, inside of a page */
  unsigned failures;
  bool faulted; /* the context is gone */
  ff_text out;
} run;

static void report_start(run *r) {
  const unsigned *block = r->shape.block;
  ff_text_add(&r->out, "%s (blocks of %u): ", r->place, block[0] * block[1] * block[2]);
  r->failures++;
}

static void report_call(run *r, const char *call, int result) {
  report_start(r);
  ff_text_add(&r->out, "%s: %s\n", call, error_name(r->device, result));
}

/* The executor's tensor maps are a layout of its own; a GPU's are what its driver writes. tensormap.replace then gives
 * every field its value. */
static bool make_map(run *r, unsigned index, size_t size) {
  unsigned char *bytes = r->bytes[index];
  uint64_t mark, sizes[3] = {64, 64, 64}, strides[2] = {256, 256 * 64};
  uint32_t box[3] = {8, 8, 1}, steps[3] = {1, 1, 1};
  if (size != sizeof r->map) return true;
  memcpy(&mark, bytes, sizeof mark);
  if (mark != TENSOR_MAP_MAGIC) return true;
  int result = r->device->encode(r->map, TENSOR_MAP_U32, 3, (void *)(uintptr_t)r->buffers[0], sizes, strides, box,
                                 steps, 0, 0, 0, 0);
  if (result) report_call(r, "cuTensorMapEncodeTiled", result);
  else memcpy(bytes, r->map, size);
  r->is_map[index] = true;
  return !result;
}

static bool make_buffers(run *r) {
  const cuda_driver *driver = r->device->driver;
  for (unsigned i = 0; i < r->c->array_count; i++) {
    const case_array *array = &r->c->arrays[i];
    size_t size = case_elements(&r->shape, array) * value_bytes(array->type);
    r->bytes[i] = ff_alloc(size);
    case_fill(&r->shape, array, r->bytes[i]);
    if (array->by_value) continue;
    int result = driver->MemAlloc(&r->buffers[i], size);
    if (!result && !make_map(r, i, size)) return false;
    if (!result) result = driver->MemcpyHtoD(r->buffers[i], r->bytes[i], size);
    if (result) {
      report_call(r, "cuMemAlloc", result);
      return false;
    }
  }
  return true;
}

static void free_buffers(run *r) {
  for (unsigned i = 0; i < r->c->array_count; i++) {
    if (r->buffers[i] && !r->faulted) r->device->driver->MemFree(r->buffers[i]);
    free(r->bytes[i]);
    r->bytes[i] = NULL;
    r->buffers[i] = 0;
  }
}

static int launch(run *r, cuda_function function) {
  void *arguments[CASE_ARRAYS];
  launch_attribute attributes[2] = {0};
  launch_config config = {.shared = r->c->shared, .attributes = attributes};
  memcpy(config.grid, r->shape.grid, sizeof config.grid);
  memcpy(config.block, r->shape.block, sizeof config.block);
  for (unsigned i = 0; i < r->c->array_count; i++)
    arguments[i] = r->c->arrays[i].by_value ? (void *)r->bytes[i] : (void *)&r->buffers[i];
  if (r->c->cluster[0]) {
    launch_attribute *cluster = &attributes[config.attribute_count++];
    cluster->id = LAUNCH_CLUSTER;
    for (unsigned axis = 0; axis < 3; axis++) cluster->values[axis] = r->c->cluster[axis] ? r->c->cluster[axis] : 1;
  }
  if (r->c->cooperative)
    attributes[config.attribute_count++] = (launch_attribute){.id = LAUNCH_COOPERATIVE, .values = {1}};
  int result = r->device->launch(&config, function, arguments, NULL);
  return result ? result : r->device->driver->CtxSynchronize();
}

static void compare(run *r) {
  char start[PLACE + 64];
  const unsigned *block = r->shape.block;
  snprintf(start, sizeof start, "%s (blocks of %u): ", r->place, block[0] * block[1] * block[2]);
  for (unsigned i = 0; i < r->c->array_count; i++) {
    const case_array *array = &r->c->arrays[i];
    if (array->by_value || r->is_map[i]) continue;
    size_t size = case_elements(&r->shape, array) * value_bytes(array->type);
    int result = r->device->driver->MemcpyDtoH(r->bytes[i], r->buffers[i], size);
    if (result) {
      report_call(r, "cuMemcpyDtoH", result);
      return;
    }
    r->failures += case_compare(r->c, &r->shape, array, r->bytes[i], start, &r->out);
  }
}

static void run_function(run *r, cuda_function function) {
  if (make_buffers(r)) {
    int result = launch(r, function);
    r->faulted = result != CUDA_OK;
    bool expected = r->c->fault[0] ? result && is_fault(r->c->fault, error_name(r->device, result)) : !result;
    r->unnoticed = !result && !strcmp(r->c->fault, "illegal_address");
    if (!expected && !r->unnoticed) {
      report_start(r);
      ff_text_add(&r->out, "the launch ends with %s, expected %s\n", result ? error_name(r->device, result) : "success",
                  r->c->fault[0] ? r->c->fault : "success");
    } else if (!r->faulted && !r->unnoticed) {
      compare(r);
    }
  }
  free_buffers(r);
}

static int load(const device *d, const char *text, cuda_module *module, char log[LOG]) {
  int names[] = {JIT_LOG, JIT_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)LOG};
  log[0] = 0;
  return d->driver->ModuleLoadDataEx(module, text, 2, names, values);
}

/* A module of its own for every launch, so that its variables have their initial values. */
static void run_shape(run *r) {
  char log[LOG];
  cuda_module module;
  cuda_function function;
  const cuda_driver *driver = r->device->driver;
  int result = load(r->device, r->c->text, &module, log);
  if (result) {
    report_call(r, "cuModuleLoadDataEx", result);
    ff_text_add(&r->out, "%s%s", log, log[0] ? "\n" : "");
    return;
  }
  result = driver->ModuleGetFunction(&function, module, r->c->kernel);
  if (!result && r->c->shared > 48u << 10)
    result = driver->FuncSetAttribute(function, CUDA_FUNCTION_DYNAMIC_SHARED, (int)r->c->shared);
  if (result) report_call(r, "cuModuleGetFunction", result);
  else run_function(r, function);
  if (!r->faulted) driver->ModuleUnload(module);
}

/* true: this process's context is gone */
static bool run_case(const device *d, const item *it, progress *p) {
  char place[PLACE];
  ff_error error = {0};
  conformance_case c;
  case_shape shapes[2];
  reason why;
  snprintf(place, sizeof place, "%s:%u%s%s", it->file, it->at.line, *it->at.name ? ": " : "", it->at.name);
  if (case_read(it->file, &it->at, &c, &error)) {
    printf("%s\n", error.message);
    p->failed++;
    return false;
  }
  run r = {.device = d, .place = place, .c = &c};
  if (left_out(d, it, &c, &why)) {
    p->left_out[why]++;
  } else {
    unsigned count = case_shapes(&c, shapes);
    for (unsigned i = 0; i < count && !r.faulted; i++) {
      r.shape = shapes[i];
      run_shape(&r);
    }
    *(r.failures ? &p->failed : r.unnoticed ? &p->left_out[LEFT_UNNOTICED] : &p->passed) += 1;
  }
  if (r.out.chars && write(STDOUT_FILENO, r.out.chars, r.out.length) < 0) p->failed++;
  free(r.out.chars);
  case_free(&c);
  return r.faulted;
}

/* ---- workers ---- */

static int work(const options *o, unsigned number, bool faults, progress *p) {
  device d = {0};
  ff_error error = {0};
  p->since = time(NULL); /* opening may hang, too, behind a kernel that was ended */
  if (open_device(&d, &error)) {
    fprintf(stderr, "%s\n", error.message);
    return NO_GPU;
  }
  while (p->next < o->count) {
    const item *it = &o->items[p->next];
    if (it->faults != faults || p->next % o->jobs != number) {
      p->next++;
      continue;
    }
    p->since = time(NULL);
    bool gone = run_case(&d, it, p);
    p->since = 0;
    p->next++;
    if (gone) return DONE_ONE;
  }
  return DONE_LAST;
}

static pid_t start(const options *o, unsigned number, bool faults, progress *p) {
  fflush(stdout);
  pid_t child = fork();
  if (child) return child;
  int status = work(o, number, faults, p);
  fflush(stdout);
  _exit(status); /* what the driver does at a process's end is of no interest, and may fail after a fault */
}

/* The worker ended: true if it is to be started again. */
static bool ended(const options *o, unsigned number, bool faults, progress *p, int status, bool *no_gpu) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == DONE_LAST) return false;
  if (WIFEXITED(status) && WEXITSTATUS(status) == NO_GPU) {
    *no_gpu = true;
    return false;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == DONE_ONE) return p->next < o->count;
  const item *it = &o->items[p->next < o->count ? p->next : o->count - 1];
  printf("%s:%u: %s: the process ended by %s %d\n", it->file, it->at.line, it->at.name,
         WIFSIGNALED(status) ? "signal" : "exit", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  p->failed++;
  p->since = 0;
  p->next++;
  if (p->timeouts < MOST_TIMEOUTS) return p->next < o->count;
  for (; p->next < o->count; p->next++) p->not_run += o->items[p->next].faults == faults && p->next % o->jobs == number;
  return false;
}

static void end_late(const options *o, pid_t child, progress *p) {
  const time_t since = p->since; /* once: the worker sets it to 0 at any time */
  if (!since || time(NULL) - since <= (time_t)o->seconds) return;
  p->timeouts++;
  p->since = 0;
  kill(child, SIGKILL);
}

/* All cases that end in a fault, or all others. */
static bool run_all(const options *o, bool faults, progress *all) {
  pid_t children[MOST_JOBS];
  bool no_gpu = false;
  unsigned running = o->jobs;
  for (unsigned n = 0; n < o->jobs; n++) {
    all[n].next = all[n].timeouts = 0;
    children[n] = start(o, n, faults, &all[n]);
    running -= children[n] < 0;
    all[n].failed += children[n] < 0;
  }
  while (running) {
    for (unsigned n = 0; n < o->jobs; n++) {
      int status;
      if (children[n] <= 0) continue;
      end_late(o, children[n], &all[n]);
      if (waitpid(children[n], &status, WNOHANG) != children[n]) continue;
      children[n] = ended(o, n, faults, &all[n], status, &no_gpu) ? start(o, n, faults, &all[n]) : 0;
      running -= children[n] <= 0;
    }
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  }
  return no_gpu;
}

/* ---- files ---- */

/* Has the case a line that begins so? */
static bool has_line(const case_place *at, const char *start) {
  return memmem(at->text, at->length, start, strlen(start)) != NULL;
}

static bool add_file(options *o, const char *file) {
  char *text;
  size_t size;
  ff_error error = {0};
  if (ff_file_read(file, 1 << 24, &text, &size, &error)) {
    fprintf(stderr, "%s: %s\n", file, error.message);
    return false;
  }
  char *name = ff_strdup(file); /* the cases point at it, and into the text */
  size_t before = o->count;
  for (case_place at = {0}; case_next(text, size, &at);) {
    if (o->only && strcmp(o->only, at.name)) continue;
    if (o->count == o->room) {
      o->room = o->room ? 2 * o->room : 256;
      o->items = ff_realloc(o->items, o->room * sizeof *o->items);
    }
    o->items[o->count++] = (item){name, at, has_line(&at, "\n// fault:"), has_line(&at, "\n// executor only")};
  }
  if (o->count == before) free(text), free(name);
  return true;
}

static int is_ptx(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  return length > 4 && !strcmp(entry->d_name + length - 4, ".ptx");
}

static bool add_path(options *o, const char *path) {
  struct dirent **entries;
  struct stat info;
  bool good = true;
  if (stat(path, &info) || !S_ISDIR(info.st_mode)) return add_file(o, path);
  int count = scandir(path, &entries, is_ptx, alphasort);
  for (int i = 0; i < count; i++) {
    char file[4096];
    snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
    good = add_file(o, file) && good;
    free(entries[i]);
  }
  if (count >= 0) free(entries);
  return good;
}

static int sum_up(const options *o, const progress *all) {
  progress sum = {0};
  for (unsigned n = 0; n < o->jobs; n++) {
    sum.passed += all[n].passed;
    sum.failed += all[n].failed;
    sum.not_run += all[n].not_run;
    for (unsigned w = 0; w < REASONS; w++) sum.left_out[w] += all[n].left_out[w];
  }
  printf("%u cases, %u failed", sum.passed + sum.failed, sum.failed);
  for (unsigned w = 0; w < REASONS; w++)
    if (sum.left_out[w]) printf(", %u left out %s", sum.left_out[w], reasons[w]);
  if (sum.not_run) printf(", %u not run after %d that did not end", sum.not_run, MOST_TIMEOUTS);
  printf("\n");
  return sum.failed || sum.not_run || !(sum.passed + sum.failed);
}

int main(int argc, char **argv) {
  static options o = {.jobs = 1, .seconds = 10, .faults = true, .others = true}; /* its cases stay until the end */
  bool no_gpu = false, good = true;
  int first = 1;
  for (; first < argc && argv[first][0] == '-'; first++) {
    if (!strcmp(argv[first], "--faults")) o.others = false;
    else if (!strcmp(argv[first], "--no-faults")) o.faults = false;
    else if (!strcmp(argv[first], "--case") && first + 1 < argc) o.only = argv[++first];
    else if (!strcmp(argv[first], "--jobs") && first + 1 < argc) o.jobs = (unsigned)strtoul(argv[++first], NULL, 10);
    else if (!strcmp(argv[first], "--seconds") && first + 1 < argc)
      o.seconds = (unsigned)strtoul(argv[++first], NULL, 10);
    else first = argc;
  }
  if (first >= argc || !o.jobs || o.jobs > MOST_JOBS) {
    fprintf(stderr,
            "usage: driver [--jobs N] [--seconds N] [--faults | --no-faults] [--case NAME] FILE-OR-FOLDER...\n");
    return 2;
  }
  for (int i = first; i < argc; i++) good = add_path(&o, argv[i]) && good;
  progress *all = mmap(NULL, o.jobs * sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED || !good) return 2;
  if (o.others) no_gpu = run_all(&o, false, all);
  if (o.faults && !no_gpu) no_gpu = run_all(&o, true, all);
  for (unsigned n = 0; no_gpu && n < o.jobs; n++) no_gpu = !(all[n].passed + all[n].failed);
  if (no_gpu) return NO_GPU;
  return sum_up(&o, all);
}
