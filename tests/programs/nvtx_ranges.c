/* SPDX-License-Identifier: Apache-2.0 */
/* A program with annotations, as NVTX 3's header puts them into programs: the library that NVTX_INJECTION64_PATH names
 * is loaded and given two tables of functions, which it fills. Without the variable the functions do nothing. With the
 * argument "2" the functions are those of libnvToolsExt.so.1. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

#include "driver_call.h"

typedef void (*any)(void);
enum { CORE = 1, CUDA, CUDART = 4, CORE2, CORE_SIZE = 16, CORE2_SIZE = 16 };

typedef struct event { /* nvtxEventAttributes_t */
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type; /* 1 bytes, 2 wide characters, 3 registered */
  const void *message;
} event;

static const char code[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry add(.param .u64 to)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [to];\nmov.u32 %r2, %tid.x;\nmul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\n"
    "ld.global.u32 %r5, [%rd3];\nadd.u32 %r5, %r5, 1;\nst.global.u32 [%rd3], %r5;\nret;\n}\n";

static any core[CORE_SIZE], core2[CORE2_SIZE], cuda[CORE_SIZE], runtime[CORE_SIZE];
static any *core_places[CORE_SIZE + 1], *core2_places[CORE2_SIZE + 1], *cuda_places[CORE_SIZE + 1],
    *runtime_places[CORE_SIZE + 1];

static int module_table(int module, any ***table, unsigned *size) {
  if (module != CORE && module != CORE2 && module != CUDA && module != CUDART) return 0;
  *table = module == CORE    ? core_places
           : module == CORE2 ? core2_places
           : module == CUDA  ? cuda_places
                             : runtime_places;
  *size = module == CORE ? CORE_SIZE : CORE2_SIZE;
  return 1;
}

static const void *export_table(uint32_t number) {
  static const struct {
    size_t size;
    int (*module_table)(int, any ***, unsigned *);
  } callbacks = {sizeof callbacks, module_table};
  return number == 1 ? &callbacks : NULL;
}

static void inject(void) {
  const char *path = getenv("NVTX_INJECTION64_PATH");
  for (int i = 1; i < CORE_SIZE; i++) {
    core_places[i] = &core[i], core2_places[i] = &core2[i];
    cuda_places[i] = &cuda[i], runtime_places[i] = &runtime[i];
  }
  void *tool = path ? dlopen(path, RTLD_LAZY) : NULL;
  int (*start)(const void *(*)(uint32_t)) =
      tool ? (int (*)(const void *(*)(uint32_t)))dlsym(tool, "InitializeInjectionNvtx2") : NULL;
  if (start && !start(export_table)) exit(4);
}

static void take_old(void) {
  static const struct {
    int number;
    const char *name;
  } names[] = {{9, "nvtxRangePushA"}, {10, "nvtxRangePushW"}, {11, "nvtxRangePop"}};
  void *old = dlopen("libnvToolsExt.so.1", RTLD_LAZY);
  if (!old || !dlvsym(old, "nvtxDomainCreateA", "libnvToolsExt.so.1") || !dlsym(old, "nvtxNameClEventW")) exit(5);
  for (int i = 0; i < 3; i++) core[names[i].number] = (any)dlsym(old, names[i].name);
}

static int push(const char *name) { return core[9] ? ((int (*)(const char *))core[9])(name) : -2; }
static int push_wide(const wchar_t *name) { return core[10] ? ((int (*)(const wchar_t *))core[10])(name) : -2; }
static int pop(void) { return core[11] ? ((int (*)(void))core[11])() : -2; }

static void *kernel, *context;

static void launch(uint64_t memory) {
  void *arguments[] = {&memory};
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       1, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL);
}

static uint64_t allocate(void) {
  uint64_t memory;
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &memory, (size_t)65536);
  return memory;
}

static void *other_thread(void *memory) { /* the ranges of its parent are not its own */
  CALL(cuCtxSetCurrent, (void *), context);
  launch((uint64_t)(uintptr_t)memory);
  return NULL;
}

static void registered_in_a_domain(uint64_t memory) {
  if (!core2[4]) return;
  void *domain = ((void *(*)(const char *))core2[12])("library");
  void *text = ((void *(*)(void *, const char *))core2[10])(domain, "inner");
  event one = {.version = 3, .size = sizeof one, .message_type = 3, .message = text};
  ((int (*)(void *, const event *))core2[4])(domain, &one);
  launch(memory + 8192); /* a block of its own */
  ((int (*)(void *))core2[5])(domain);
}

/* Three streams, two with names, and a copy on each. */
static void named_streams(void) {
  static char data[4096];
  void *streams[3];
  uint64_t memory = allocate();
  for (int i = 0; i < 3; i++) {
    CALL(cuStreamCreate, (void **, unsigned), &streams[i], 1);
    if (i == 0 && cuda[5]) ((void (*)(void *, const char *))cuda[5])(streams[i], "upload");
    if (i == 1 && runtime[4]) ((void (*)(void *, const wchar_t *))runtime[4])(streams[i], L"d\u00e9p\u00f4t");
    CALL(cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, void *), memory, data, sizeof data, streams[i]);
  }
  if (runtime[3]) ((void (*)(void *, const char *))runtime[3])((void *)(uintptr_t)0x1234, "no stream");
}

static void *ends_range(void *number) {
  if (core[7]) ((void (*)(uint64_t))core[7])((uint64_t)(uintptr_t)number);
  return NULL;
}

/* Three times the same range, each with a kernel that is over before it ends; one around them that another thread ends;
 * a range without a kernel, and one that is never closed. */
static void repeat(void) {
  pthread_t thread;
  uint64_t memory = allocate(), whole = 0;
  if (core[5]) whole = ((uint64_t(*)(const char *))core[5])("whole 'of it'");
  for (int i = 0; i < 3; i++) {
    push("iteration");
    launch(memory);
    CALL(cuCtxSynchronize, (void), );
    pop();
  }
  push("nothing");
  pop();
  if (pthread_create(&thread, NULL, ends_range, (void *)(uintptr_t)whole)) exit(1);
  pthread_join(thread, NULL);
  push("open");
  launch(memory);
}

int main(int count, char **arguments) {
  pthread_t thread;
  if (count > 1 && !strcmp(arguments[1], "2")) take_old();
  else inject();
  void *module = driver_open(code);
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, "add");
  CALL(cuCtxGetCurrent, (void **), &context);
  if (count > 1 && !strcmp(arguments[1], "streams")) named_streams();
  if (count > 1 && !strcmp(arguments[1], "repeat")) {
    repeat();
    return 0;
  }
  uint64_t plain = allocate();
  launch(plain);
  int outer = push("step"), inner = push("layer1");
  uint64_t first = allocate();
  launch(first);
  registered_in_a_domain(first);
  pop();
  push_wide(L"layer\u00b2");
  uint64_t second = allocate();
  launch(second);
  launch(first);
  if (pthread_create(&thread, NULL, other_thread, (void *)(uintptr_t)first)) return 1;
  pthread_join(thread, NULL);
  pop();
  int last = pop(), none = pop();
  printf("levels %d %d %d %d\n", outer, inner, last, none);
  launch(plain);
  return 0;
}
