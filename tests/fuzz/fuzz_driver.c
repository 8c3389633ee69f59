/* SPDX-License-Identifier: Apache-2.0 */
/* A program that calls the driver's and the runtime's interface with anything: handles that are none, of another kind
 * or gone, addresses that are nowhere, sizes, numbers. No call crashes or hangs, and one that is given a handle that
 * never was one fails.
 *
 * A byte chooses the call, one or two each argument; what calls give back is what later ones are given. Between inputs
 * the devices are reset. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define X(name, arguments) int name();
#include "driver_calls.def"
#undef X
int cuInit(unsigned), cudaDeviceReset(void), cuCtxPopCurrent_v2(), cuCtxSetCurrent();
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

typedef int (*call)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
static const struct {
  const char *name;
  call call;
  const char *arguments;
} calls[] = {
#define X(name, arguments) {#name, (call)(void *)name, arguments},
#include "driver_calls.def"
#undef X
};

typedef struct ipc_handle {
  uint64_t words[8];
} ipc_handle;
int cuIpcOpenMemHandle_v2(uint64_t *, ipc_handle, unsigned), cuIpcOpenEventHandle(uint64_t *, ipc_handle);

enum { CALLS = sizeof calls / sizeof *calls, KNOWN = 64, ROOM = 512, CALLS_OF_AN_INPUT = 60 };

static const char kernels[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n.visible .global .align 4 .u32 v = 1;\n.visible .entry k(.param .u64 to, .param .u32 n)\n{\n"
    ".reg .b64 %a;\n.reg .b32 %r<2>;\nld.param.u64 %a, [to];\nld.global.u32 %r0, [%a];\nadd.u32 %r0, %r0, 1;\nst.global.u32 [%a], %r0;\nret;\n}\n"
    ".visible .entry loop()\n{\nL: bra L;\n}\n";

typedef struct input {
  const uint8_t *data;
  size_t left;
  uint64_t known[KNOWN]; /* what calls gave back */
  uint32_t known_count;
  uint64_t rooms[6][ROOM / 8];
  bool broken; /* an argument of this call is a handle that never was one */
  bool empty;  /* a size is 0, so that there may be nothing to do */
} input;

static uint32_t byte(input *in) { return in->left ? in->left--, *in->data++ : 0; }

static bool is_known(const input *in, uint64_t value) {
  for (uint32_t n = 0; n < in->known_count; n++)
    if (in->known[n] == value) return true;
  return false;
}

/* An address or a handle: one that a call gave, perhaps a little next to it, or none. */
static uint64_t any_known(input *in, bool or_near) {
  uint32_t b = byte(in);
  if (b < 16) return 0;
  if (b < 24) return b - 15; /* the streams that have numbers */
  if (b < 40) return UINT64_C(0x9e3779b97f4a7c15) * (b + 1);
  if (b < 48) return (uint64_t)(uintptr_t)kernels + b; /* somewhere in the host's memory */
  uint64_t value = in->known_count ? in->known[b % in->known_count] : 0;
  return or_near && b > 200 ? value + byte(in) * 4 : value;
}

static uint64_t handle(input *in) {
  uint64_t value = any_known(in, false);
  if (value > 2 && !is_known(in, value)) in->broken = true;
  return value;
}

static uint64_t number(input *in) {
  uint32_t b = byte(in);
  return b < 200   ? b % 32
         : b < 230 ? UINT64_C(1) << (b % 64)
         : b < 250 ? (uint64_t) - (int64_t)(b - 229)
                   : byte(in) | byte(in) << 8;
}

static uint64_t size_of(input *in, uint64_t most) {
  uint64_t n = byte(in) & 1 ? number(in) : (uint64_t)byte(in) * 64;
  if (n > most) n = most;
  if (!n) in->empty = true;
  return n;
}

static uint64_t argument(input *in, char kind, int position) {
  static const char *const names[] = {"k", "loop", "v", "no such name", ""};
  uint64_t *room = in->rooms[position], b;
  switch (kind) {
  case 'z': return 0;
  case 'o':
  case 'H': return byte(in) < 12 ? 0 : (uintptr_t)room;
  case 'n': return size_of(in, ROOM);
  case 's': return size_of(in, UINT64_MAX);
  case 'q': return size_of(in, 8);
  case 'b': return byte(in) < 240 ? 1 + byte(in) % 40 : (uint32_t)number(in);
  case 'd': return byte(in) < 200 ? byte(in) % 2 : (uint32_t)number(in);
  case 'P': return any_known(in, true);
  case 'A': b = any_known(in, true); return b >> 44 == 2 ? b : 0;
  case 'h': return handle(in);
  case 'l':
    for (int n = 0; n < 8; n++) room[n] = any_known(in, false);
    return byte(in) < 24 ? 0 : (uintptr_t)room;
  case 't': b = byte(in) % 6; return b < 5 ? (uintptr_t)names[b] : 0;
  case 'u': b = byte(in) % 8; return b ? (uintptr_t)kernels + (b == 7) * 40 : (uintptr_t)room;
  default: return (uint32_t)number(in);
  }
}

/* What calls wrote where results go is known from now on. */
static void learn(input *in, const char *arguments, const uint64_t *values) {
  for (int n = 0; arguments[n]; n++) {
    if (arguments[n] != 'o' || !values[n]) continue;
    uint64_t got = *(const uint64_t *)(uintptr_t)values[n];
    if (got > 4096 && !is_known(in, got)) in->known[in->known_count++ % KNOWN] = got;
    if (in->known_count > KNOWN) in->known_count = KNOWN;
  }
}

static void do_launch(input *in) {
  uint64_t values[2] = {any_known(in, true), number(in)};
  void *arguments[2] = {&values[0], &values[1]};
  uint64_t function = handle(in), stream = handle(in);
  cuLaunchKernel((void *)(uintptr_t)function, (unsigned)argument(in, 'b', 0), (unsigned)argument(in, 'b', 0), 1,
                 (unsigned)argument(in, 'b', 0), 1, 1, (unsigned)number(in) % 65536, (void *)(uintptr_t)stream,
                 arguments, NULL);
}

/* A handle of our own memory or event with some bytes changed; none opens anything in this process. */
static void do_ipc(input *in) {
  ipc_handle handle = {{0}};
  uint64_t got;
  if (byte(in) & 1) cuIpcGetMemHandle(&handle, any_known(in, true), 0, 0, 0, 0);
  else cuIpcGetEventHandle(&handle, any_known(in, false), 0, 0, 0, 0);
  for (uint32_t n = byte(in) % 8; n; n--) ((uint8_t *)&handle)[byte(in) % sizeof handle] ^= (uint8_t)byte(in);
  FF_ASSERT(cuIpcOpenMemHandle_v2(&got, handle, byte(in) % 2) && cuIpcOpenEventHandle(&got, handle));
}

static void do_call(input *in) {
  uint32_t which = byte(in);
  if (which == 254) {
    do_ipc(in);
    return;
  }
  if (which == 255) {
    do_launch(in);
    return;
  }
  uint64_t values[6] = {0};
  const char *arguments = calls[which % CALLS].arguments;
  in->broken = in->empty = false;
  memset(in->rooms, 0, sizeof in->rooms);
  for (int n = 0; arguments[n]; n++) values[n] = argument(in, arguments[n], n);
  int result = calls[which % CALLS].call(values[0], values[1], values[2], values[3], values[4], values[5]);
  if (getenv("FUZZ_DRIVER_SHOW"))
    fprintf(stderr, "%s(%#llx, %#llx, %#llx, %#llx, %#llx) = %d\n", calls[which % CALLS].name,
            (unsigned long long)values[0], (unsigned long long)values[1], (unsigned long long)values[2],
            (unsigned long long)values[3], (unsigned long long)values[4], result);
  if (in->broken && !in->empty && !result)
    fprintf(stderr, "%s took a handle that never was one\n", calls[which % CALLS].name);
  FF_ASSERT(!in->broken || in->empty || result);
  if (!result) learn(in, arguments, values);
}

/* Everything is there that an input may want to break. */
static void begin(input *in) {
  static const struct {
    const char *name;
    call call;
    uint64_t a, b;
  } first[] = {{"cuDevicePrimaryCtxRetain", (call)(void *)cuDevicePrimaryCtxRetain, 0, 0},
               {"cuStreamCreate", (call)(void *)cuStreamCreate, 1, 0},
               {"cuEventCreate", (call)(void *)cuEventCreate, 0, 0},
               {"cuMemAlloc_v2", (call)(void *)cuMemAlloc_v2, 4096, 0},
               {"cuMemAllocManaged", (call)(void *)cuMemAllocManaged, 8192, 1},
               {"cuGraphCreate", (call)(void *)cuGraphCreate, 0, 0}};
  uint64_t got = 0, module = 0;
  for (size_t n = 0; n < sizeof first / sizeof *first; n++) {
    int result = first[n].call((uintptr_t)&got, first[n].a, first[n].b, 0, 0, 0);
    if (result) fprintf(stderr, "%s: %d\n", first[n].name, result);
    FF_ASSERT(!result);
    in->known[in->known_count++] = got;
    if (!n) FF_ASSERT(!cuCtxSetCurrent(got));
  }
  FF_ASSERT(!cuModuleLoadData(&module, kernels) && !cuModuleGetFunction(&got, module, "k"));
  in->known[in->known_count++] = module;
  in->known[in->known_count++] = got;
}

/* Contexts that an input left on the thread's stack go first. */
static void end(void) {
  uint64_t context = 0;
  for (int n = 0; n < CALLS_OF_AN_INPUT + 4 && !cuCtxPopCurrent_v2(&context); n++) {}
  for (int device = 1; device >= 0; device--) {
    cudaSetDevice(device);
    cudaDeviceReset();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static bool ready;
  static input in;
  if (!ready) {
    setenv("FARFAULT_MACHINE", "v100", 1);
    setenv("FARFAULT_DEVICES", "2", 1);
    setenv("FARFAULT_MAX_INSTRUCTIONS", "2000", 1);
    setenv("FARFAULT_EXECUTE", "interpret", 1);
    setenv("FARFAULT_THREADS", "1", 1);
    setenv("FARFAULT_MACHINES", FF_SOURCE_DIR "/machines", 1);
    unsetenv("FARFAULT_MEMORY");
    ff_check_level = 2;
    FF_ASSERT(!cuInit(0));
    ready = true;
  }
  in = (input){.data = data, .left = size};
  begin(&in);
  for (int n = 0; in.left && n < CALLS_OF_AN_INPUT; n++) do_call(&in);
  end();
  return 0;
}
