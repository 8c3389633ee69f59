/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of tiles, `add` and `turn`, from Tile IR (tile_ir.py): tile_ir WAY IMAGE [COUNT].
 *
 *   module, library   loaded from memory that ends where the image does, with no size
 *   file              loaded by its path
 *   registered        registered as nvcc's code does, by the runtime; IMAGE is a fat binary
 *   turn              as module, but the other kernel: 64 KiB of shared memory
 *   outside           as module, but half of the sums have no memory: for the checkers
 *   broken            loads what is left of it by every cut and with every byte changed: an error or a module
 *
 * What is loaded adds arrays: launched, launched in a graph, launched wrongly; prints PASSED, and what it is told of
 * it. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver_call.h"

enum { INVALID_VALUE = 1, INVALID_IMAGE = 200, NO_BINARY_FOR_GPU = 209 };
enum { MAX_THREADS, SHARED_BYTES, MAX_DYNAMIC_SHARED = 8 };
#define TILE 256u
#define SIDE 128u

static void *load(const char *library_name) {
  library = dlopen(library_name, RTLD_NOW);
  if (!library) exit(3);
  return library;
}

static void *call(const char *name) {
  void *entry = dlsym(library, name);
  if (!entry) fprintf(stderr, "there is no %s\n", name), exit(3);
  return entry;
}

#define CHECK(what)                                          \
  do {                                                       \
    if (!(what)) {                                           \
      fprintf(stderr, "line %d: not %s\n", __LINE__, #what); \
      exit(1);                                               \
    }                                                        \
  } while (0)

typedef struct bytes {
  char *data;
  size_t size;
} bytes;

static bytes read_file(const char *path) {
  bytes file = {calloc(1, 1 << 20), 0};
  FILE *stream = fopen(path, "rb");
  if (!stream || !(file.size = fread(file.data, 1, 1 << 20, stream))) exit(4);
  fclose(stream);
  return file;
}

/* A copy behind which nothing can be read. */
static char *at_the_end(bytes image) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (image.size + page - 1) / page * page;
  char *memory = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED && !mprotect(memory + room, page, PROT_NONE));
  return memcpy(memory + room - image.size, image.data, image.size);
}

static void open_device(void) {
  void *context;
  load("libcuda.so.1");
  CALL(cuInit, (unsigned), 0);
  CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, 0);
  CALL(cuCtxSetCurrent, (void *), context);
}

/* ---- the kernel ---- */

typedef struct arrays {
  uint32_t count, stride;
  uint64_t a, b, c;
} arrays;

static float value(uint32_t i, uint32_t seed) { return (float)((i * seed) % 1000) / 8; }

static uint64_t upload(uint32_t count, uint32_t seed) {
  uint64_t address;
  float *values = malloc(count * sizeof *values);
  for (uint32_t i = 0; i < count; i++) values[i] = value(i, seed);
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &address, count * sizeof *values);
  CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), address, values, count * sizeof *values);
  free(values);
  return address;
}

static void clear(const arrays *x) {
  CALL(cuMemsetD8_v2, (uint64_t, unsigned char, size_t), x->c, 0xff, (size_t)x->count * 4);
}

static void check_sum(const arrays *x) {
  float *values = calloc(x->count, sizeof *values);
  CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), values, x->c, (size_t)x->count * 4);
  for (uint32_t i = 0; i < x->count; i++) CHECK(values[i] == value(i, 7) + value(i, 13));
  free(values);
}

typedef int launch_function(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                            void **, void **);

static int launch(void *kernel, arrays *x, unsigned width, unsigned height, unsigned depth, unsigned shared) {
  launch_function *entry = (launch_function *)call("cuLaunchKernel");
  void *arguments[] = {&x->a, &x->count, &x->stride, &x->b, &x->count, &x->stride, &x->c, &x->count, &x->stride};
  int outcome = entry(kernel, (x->count + TILE - 1) / TILE, 1, 1, width, height, depth, shared, NULL, arguments, NULL);
  CALL(cuCtxSynchronize, (void));
  return outcome;
}

static int attribute(void *kernel, int which) {
  int found = -1;
  CALL(cuFuncGetAttribute, (int *, int, void *), &found, which, kernel);
  return found;
}

static void check_launches(void *kernel, arrays *x) {
  clear(x);
  CHECK(launch(kernel, x, 1, 1, 1, 0) == 0);
  check_sum(x);
  clear(x);
  CHECK(launch(kernel, x, 2, 1, 1, 0) == INVALID_VALUE);
  CHECK(launch(kernel, x, 1, 1, 2, 0) == INVALID_VALUE);
  CHECK(launch(kernel, x, (unsigned)attribute(kernel, MAX_THREADS), 1, 1, 0) == INVALID_VALUE);
  CHECK(launch(kernel, x, 1, 1, 1, (unsigned)attribute(kernel, MAX_DYNAMIC_SHARED) + 1) == INVALID_VALUE);
  CHECK(launch(kernel, x, 1, 1, 1, 0) == 0);
  check_sum(x);
}

/* Its node has the blocks that the program gave it. */
static void check_graph(void *kernel, arrays *x) {
  void *stream, *graph, *instance, *node = NULL;
  size_t count = 1;
  struct kernel_node {
    void *function;
    unsigned grid[3], block[3], shared;
    void **arguments, **extra, *kernel, *context;
  } params;
  void *arguments[] = {&x->a, &x->count, &x->stride, &x->b, &x->count, &x->stride, &x->c, &x->count, &x->stride};
  clear(x);
  CALL(cuStreamCreate, (void **, unsigned), &stream, 1);
  CALL(cuStreamBeginCapture_v2, (void *, int), stream, 0);
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       (x->count + TILE - 1) / TILE, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
  CALL(cuStreamEndCapture, (void *, void **), stream, &graph);
  CALL(cuGraphGetNodes, (void *, void **, size_t *), graph, &node, &count);
  CALL(cuGraphKernelNodeGetParams_v2, (void *, struct kernel_node *), node, &params);
  CHECK(count == 1 && params.block[0] == 1 && params.block[1] == 1 && params.block[2] == 1);
  CALL(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long), &instance, graph, 0);
  CALL(cuGraphLaunch, (void *, void *), instance, stream);
  CALL(cuStreamSynchronize, (void *), stream);
  check_sum(x);
}

static void check_questions(void *kernel) {
  int blocks = 0, grid = 0, block = 0;
  CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, void *, int, size_t), &blocks, kernel, 1, 0);
  CALL(cuOccupancyMaxPotentialBlockSize, (int *, int *, void *, void *, size_t, int), &grid, &block, kernel, NULL, 0,
       0);
  printf("threads %d, shared %d, blocks of an SM %d, most %d with blocks of %d\n", attribute(kernel, MAX_THREADS),
         attribute(kernel, SHARED_BYTES), blocks, grid, block);
}

static int use(void *kernel, uint32_t count) {
  arrays x = {.count = count, .stride = 1, .a = upload(count, 7), .b = upload(count, 13), .c = upload(count, 1)};
  check_launches(kernel, &x);
  check_graph(kernel, &x);
  check_questions(kernel);
  puts("PASSED");
  return 0;
}

static int turn(void *kernel) {
  arrays x = {.count = SIDE * SIDE, .a = upload(SIDE * SIDE, 7), .c = upload(SIDE * SIDE, 1)};
  float *values = calloc(x.count, sizeof *values);
  void *arguments[] = {&x.a, &x.c};
  printf("shared %d\n", attribute(kernel, SHARED_BYTES));
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL);
  CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), values, x.c, (size_t)x.count * 4);
  for (uint32_t i = 0; i < x.count; i++) CHECK(values[i] == value(i % SIDE * SIDE + i / SIDE, 7));
  free(values);
  puts("PASSED");
  return 0;
}

static int write_outside(void *kernel, uint32_t count) {
  arrays x = {.count = count, .stride = 1, .a = upload(count, 7), .b = upload(count, 13), .c = upload(count / 2, 1)};
  return launch(kernel, &x, 1, 1, 1, 0);
}

/* ---- the ways to load it ---- */

static int load_module(const char *image, void **module) {
  int (*entry)(void **, const void *) = (int (*)(void **, const void *))call("cuModuleLoadData");
  return entry(module, image);
}

static void *kernel_of(void *module, const char *name) {
  void *kernel;
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, name);
  return kernel;
}

static void *from_library(const char *image) {
  void *loaded, *kernel;
  CALL(cuLibraryLoadData, (void **, const void *, int *, void **, unsigned, int *, void **, unsigned), &loaded, image,
       NULL, NULL, 0, NULL, NULL, 0);
  CALL(cuLibraryGetKernel, (void **, void *, const char *), &kernel, loaded, "add");
  return kernel;
}

static void *from_file(const char *path) {
  void *module;
  CALL(cuModuleLoad, (void **, const char *), &module, path);
  return kernel_of(module, "add");
}

static void stub(void) {} /* what the program calls instead of the kernel */

static void *registered(const char *image) {
  static struct {
    uint32_t magic, version;
    const void *data, *linked;
  } wrapper = {0x466243b1, 1, NULL, NULL};
  void *driver = library, *entry;
  wrapper.data = image;
  load("libcudart.so.13");
  void **(*begin)(const void *) = (void **(*)(const void *))call("__cudaRegisterFatBinary");
  void (*end)(void **) = (void (*)(void **))call("__cudaRegisterFatBinaryEnd");
  void (*add)(void **, const void *, char *, const char *, int, void *, void *, void *, void *, int *) =
      (void (*)(void **, const void *, char *, const char *, int, void *, void *, void *, void *, int *))call(
          "__cudaRegisterFunction");
  void **handle = begin(&wrapper);
  add(handle, (const void *)stub, "add", "add", -1, NULL, NULL, NULL, NULL, NULL);
  end(handle);
  CALL(cudaGetFuncBySymbol, (void **, const void *), &entry, (const void *)stub);
  library = driver;
  return entry;
}

static int load_file(int file, const char *path, const char *data, size_t size, void **module) {
  int (*entry)(void **, const char *) = (int (*)(void **, const char *))call("cuModuleLoad");
  CHECK(!ftruncate(file, 0) && pwrite(file, data, size, 0) == (ssize_t)size);
  return entry(module, path);
}

/* From files, whose size the driver knows. */
static int break_it(bytes image) {
  size_t loaded = 0, refused = 0;
  void *module;
  char path[32];
  int file = memfd_create("broken", 0);
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  for (size_t size = 1; size < image.size; size++)
    CHECK(load_file(file, path, image.data, size, &module) == INVALID_IMAGE);
  for (size_t at = 0; at < image.size; at++) {
    image.data[at] ^= 0x15;
    int outcome = load_file(file, path, image.data, image.size, &module);
    CHECK(outcome == 0 || outcome == INVALID_IMAGE || outcome == NO_BINARY_FOR_GPU);
    if (!outcome) CALL(cuModuleUnload, (void *), module);
    outcome ? refused++ : loaded++;
    image.data[at] ^= 0x15;
  }
  CHECK(load_file(file, path, image.data, image.size, &module) == 0);
  printf("%s, %s\n", loaded ? "some are modules" : "none is a module",
         refused ? "some are refused" : "none is refused");
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 3) return 4;
  const char *way = argv[1];
  uint32_t count = argc > 3 ? (uint32_t)atoi(argv[3]) : 1000;
  static bytes image; /* kept until the end, as the library's image is */
  image = read_file(argv[2]);
  void *module;
  open_device();
  if (!strcmp(way, "broken")) return break_it(image);
  if (!strcmp(way, "file")) return use(from_file(argv[2]), count);
  char *copy = at_the_end(image);
  if (!strcmp(way, "library")) return use(from_library(copy), count);
  if (!strcmp(way, "registered")) return use(registered(copy), count);
  int outcome = load_module(copy, &module);
  if (outcome) return printf("cuModuleLoadData: %d\n", outcome), 5;
  if (!strcmp(way, "turn")) return turn(kernel_of(module, "turn"));
  return !strcmp(way, "outside") ? write_outside(kernel_of(module, "add"), count)
                                 : use(kernel_of(module, "add"), count);
}
