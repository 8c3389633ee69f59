/* SPDX-License-Identifier: Apache-2.0 */
/* Two GPUs by the driver API: half of a vector on each, whose sums meet on the first one, by a copy or by reaching for
 * the other's memory. devices copy|reach|forbidden: "forbidden" reaches without having asked for it. Exit status 0: the
 * sum is right. devices peers: which devices are peers, of how many there are. devices pages: 4 MiB of managed memory
 * are written by the first, and then four times by the other one of the two. devices multicast: all devices add up
 * their words through a multicast object, each a part of them, and store the sums to all. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_call.h"

enum { WORDS = 1 << 16, BYTES = WORDS * 4, MANAGED_WORDS = 1 << 20 };

static const char code[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n.visible .global .align 4 .u32 step = 1;\n"
    ".visible .entry fill(.param .u64 to)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [to];\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmad.lo.s32 %r2, %r3, %r4, %r2;\n"
    "mul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\nld.global.u32 %r5, [step];\nst.global.u32 [%rd3], %r5;\nret;\n}\n"
    ".visible .entry add(.param .u64 to, .param .u64 from)\n{\n.reg .b32 %r<7>;\n.reg .b64 %rd<6>;\n"
    "ld.param.u64 %rd1, [to];\nld.param.u64 %rd4, [from];\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\n"
    "mad.lo.s32 %r2, %r3, %r4, %r2;\nmul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\nadd.u64 %rd5, %rd4, %rd2;\n"
    "ld.global.u32 %r5, [%rd3];\nld.global.u32 %r6, [%rd5];\nadd.u32 %r5, %r5, %r6;\nst.global.u32 [%rd3], %r5;\nret;\n}\n";

/* Each thread adds up 4 words of all devices, from its place in the device's part on, and stores the sums to all, the
 * first once more as a plain word. */
static const char multicast_code[] =
    ".version 8.1\n.target sm_90\n.address_size 64\n"
    ".visible .entry reduce(.param .u64 team, .param .u32 first)\n{\n.reg .b32 %r<5>;\n.reg .f32 %f<5>;\n.reg .b64 %rd<3>;\n"
    "ld.param.u64 %rd1, [team];\nld.param.u32 %r1, [first];\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\n"
    "mad.lo.u32 %r2, %r3, %r4, %r2;\nadd.u32 %r2, %r2, %r1;\nmad.wide.u32 %rd1, %r2, 16, %rd1;\n"
    "multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];\n"
    "multimem.st.relaxed.sys.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};\nst.relaxed.sys.f32 [%rd1], %f1;\nret;\n}\n";

typedef struct device {
  void *context, *stream, *module;
  uint64_t memory;
} device;

static void launch_words(const device *on, const char *name, void **arguments, uint32_t words) {
  void *kernel;
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, on->module, name);
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       words / 256, 1, 1, 256, 1, 1, 0, on->stream, arguments, NULL);
}

static void launch(const device *on, const char *name, void **arguments) { launch_words(on, name, arguments, WORDS); }

/* A row for each two: who, may they, rank of the link, access, atomics. */
static int peers(int count) {
  for (int a = 0; a < count; a++)
    for (int b = 0; b < a; b++) {
      int can = 0, other = 0, values[3];
      CALL(cuDeviceCanAccessPeer, (int *, int, int), &can, a, b);
      CALL(cuDeviceCanAccessPeer, (int *, int, int), &other, b, a);
      for (int i = 0; i < 3; i++) CALL(cuDeviceGetP2PAttribute, (int *, int, int, int), &values[i], i + 1, a, b);
      if (can != other || can != values[1]) return 1;
      printf("%d-%d %d %d %d\n", b, a, can, values[0], values[2]);
    }
  return 0;
}

static int pages(const device *devices) {
  uint64_t managed;
  CALL(cuMemAllocManaged, (uint64_t *, size_t, unsigned), &managed, MANAGED_WORDS * 4, 1);
  memset((void *)managed, 7, MANAGED_WORDS * 4); /* NOLINT: the host's address, too */
  for (int turn = 0; turn < 5; turn++) {
    const device *on = &devices[turn % 2];
    CALL(cuCtxSetCurrent, (void *), on->context);
    launch_words(on, "fill", (void *[]){&managed}, MANAGED_WORDS);
    CALL(cuStreamSynchronize, (void *), on->stream);
  }
  for (int i = 0; i < MANAGED_WORDS; i++)
    if (((const uint32_t *)managed)[i] != 1) return 1;
  puts("good");
  return 0;
}

typedef struct location {
  int type, id;
} location;
typedef struct memory_properties {
  int type, handle_types;
  location where;
  void *security;
  unsigned char flags[8];
} memory_properties;
typedef struct access_for {
  location who;
  int flags;
} access_for;
typedef struct object_properties {
  unsigned devices;
  size_t bytes;
  unsigned long long handle_types, flags;
} object_properties;

static uint64_t map_for(unsigned long long handle, size_t bytes, int first, int end) {
  uint64_t at;
  CALL(cuMemAddressReserve, (uint64_t *, size_t, size_t, uint64_t, unsigned long long), &at, bytes, 0, 0, 0);
  CALL(cuMemMap, (uint64_t, size_t, size_t, unsigned long long, unsigned long long), at, bytes, 0, handle, 0);
  for (int d = first; d < end; d++)
    CALL(cuMemSetAccess, (uint64_t, size_t, const access_for *, size_t), at, bytes, &(access_for){{1, d}, 3}, 1);
  return at;
}

static int multicast(int count) {
  static float words[WORDS];
  const size_t bytes = (size_t)2 << 20;
  unsigned long long team, memory;
  device devices[16];
  int has = 0;
  CALL(cuDeviceGetAttribute, (int *, int, int), &has, 132, 0);
  printf("multicast: %d\n", has);
  fflush(stdout);
  CALL(cuMulticastCreate, (unsigned long long *, const object_properties *), &team,
       &(object_properties){.devices = (unsigned)count, .bytes = bytes});
  for (int d = 0; d < count; d++) {
    CALL(cuCtxCreate_v2, (void **, unsigned, int), &devices[d].context, 0, d);
    CALL(cuStreamCreate, (void **, unsigned), &devices[d].stream, 1);
    CALL(cuModuleLoadData, (void **, const void *), &devices[d].module, multicast_code);
    CALL(cuMulticastAddDevice, (unsigned long long, int), team, d);
  }
  for (int d = 0; d < count; d++) {
    CALL(cuCtxSetCurrent, (void *), devices[d].context);
    CALL(cuMemCreate, (unsigned long long *, size_t, const memory_properties *, unsigned long long), &memory, bytes,
         &(memory_properties){.type = 1, .where = {1, d}}, 0);
    devices[d].memory = map_for(memory, bytes, d, d + 1);
    CALL(cuMulticastBindMem, (unsigned long long, size_t, unsigned long long, size_t, size_t, unsigned long long), team,
         0, memory, 0, bytes, 0);
    for (int i = 0; i < WORDS; i++) words[i] = (float)(i + d * WORDS);
    CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), devices[d].memory, words, BYTES);
  }
  uint64_t at = map_for(team, bytes, 0, count);
  for (int d = 0; d < count; d++) {
    unsigned part = WORDS / 4 / (unsigned)count, first = part * (unsigned)d;
    CALL(cuCtxSetCurrent, (void *), devices[d].context);
    launch_words(&devices[d], "reduce", (void *[]){&at, &first}, part);
  }
  for (int d = 0; d < count; d++) {
    CALL(cuCtxSetCurrent, (void *), devices[d].context);
    CALL(cuStreamSynchronize, (void *), devices[d].stream);
    CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), words, devices[d].memory, BYTES);
    for (int i = 0; i < WORDS; i++)
      if (words[i] != (float)(i * count + WORDS * (count * (count - 1) / 2))) return 1;
  }
  puts("good");
  return 0;
}

/* The word that is stored everywhere is a variable of the device's own. */
static void begin(device *d, int number) {
  uint64_t step;
  size_t bytes;
  const uint32_t value = (uint32_t)number + 1;
  CALL(cuCtxCreate_v2, (void **, unsigned, int), &d->context, 0, number);
  CALL(cuStreamCreate, (void **, unsigned), &d->stream, 1);
  CALL(cuModuleLoadData, (void **, const void *), &d->module, code);
  CALL(cuModuleGetGlobal_v2, (uint64_t *, size_t *, void *, const char *), &step, &bytes, d->module, "step");
  CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), step, &value, sizeof value);
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &d->memory, BYTES);
  launch(d, "fill", (void *[]){&d->memory});
}

int main(int argc, char **argv) {
  static uint32_t words[WORDS];
  const char *how = argc > 1 ? argv[1] : "copy";
  int count = 0, version = 0;
  device devices[2];
  uint64_t other;
  void *event;
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return 3;
  CALL(cuInit, (unsigned), 0);
  CALL(cuDeviceGetCount, (int *), &count);
  CALL(cuDriverGetVersion, (int *), &version);
  printf("%d devices, driver %d\n", count, version);
  fflush(stdout);
  if (!strcmp(how, "peers")) return peers(count);
  if (!strcmp(how, "multicast")) return multicast(count);
  if (count < 2) return 4;
  for (int i = 0; i < 2; i++) begin(&devices[i], i);
  if (!strcmp(how, "pages")) return pages(devices);
  CALL(cuEventCreate, (void **, unsigned), &event, 2);
  CALL(cuEventRecord, (void *, void *), event, devices[1].stream);
  CALL(cuCtxSetCurrent, (void *), devices[0].context);
  CALL(cuStreamWaitEvent, (void *, void *, unsigned), devices[0].stream, event, 0);
  other = devices[1].memory;
  if (!strcmp(how, "reach")) CALL(cuCtxEnablePeerAccess, (void *, unsigned), devices[1].context, 0);
  if (!strcmp(how, "copy")) {
    CALL(cuMemAlloc_v2, (uint64_t *, size_t), &other, BYTES);
    CALL(cuMemcpyPeerAsync, (uint64_t, void *, uint64_t, void *, size_t, void *), other, devices[0].context,
         devices[1].memory, devices[1].context, BYTES, devices[0].stream);
  }
  launch(&devices[0], "add", (void *[]){&devices[0].memory, &other});
  CALL(cuStreamSynchronize, (void *), devices[0].stream);
  CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), words, devices[0].memory, BYTES);
  for (int i = 0; i < WORDS; i++)
    if (words[i] != 3) return 1;
  puts("good");
  return 0;
}
