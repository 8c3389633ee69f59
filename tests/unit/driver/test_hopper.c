/* SPDX-License-Identifier: Apache-2.0 */
/* Compute capability 9.0 through the driver API: launches in clusters with their documented errors, clusters that fit,
 * and tensor maps: what cuTensorMapEncode refuses, a tiled copy and an im2col copy against the same by hand, maps of
 * programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "driver/driver_api/libcuda.h"
#include "fatbin/fatbin.h"

typedef struct launch_config { /* CUlaunchConfig */
  unsigned grid[3], block[3], shared;
  CUstream stream;
  cudaLaunchAttribute *attributes;
  unsigned count;
} launch_config;
typedef struct tensor_map_bytes {
  _Alignas(64) unsigned char bytes[128];
} tensor_map_bytes;

CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext),
    cuCtxSynchronize(void), cuDeviceGetAttribute(int *, int, CUdevice);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr), cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t),
    cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleUnload(CUmodule),
    cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernelEx(const launch_config *, CUfunction, void **, void **);
CUresult cuFuncSetAttribute(CUfunction, int, int), cuFuncGetAttribute(int *, int, CUfunction);
CUresult cuOccupancyMaxActiveClusters(int *, CUfunction, const launch_config *),
    cuOccupancyMaxPotentialClusterSize(int *, CUfunction, const launch_config *);
CUresult cuTensorMapEncodeTiled(tensor_map_bytes *, int, unsigned, void *, const uint64_t *, const uint64_t *,
                                const uint32_t *, const uint32_t *, int, int, int, int),
    cuTensorMapEncodeIm2col(tensor_map_bytes *, int, unsigned, void *, const uint64_t *, const uint64_t *, const int *,
                            const int *, uint32_t, uint32_t, const uint32_t *, int, int, int, int),
    cuTensorMapReplaceAddress(tensor_map_bytes *, void *),
    cuTensorMapSetAllocationClass(tensor_map_bytes *, int, int *);

#define check(call, result) assert_int_equal(call, result)
#define succeed(call) check(call, CUDA_SUCCESS)
#define invalid(call) check(call, CUDA_ERROR_INVALID_VALUE)
enum { INVALID_CLUSTER_SIZE = 912, U32 = 2, F16 = 6, WIDTH = 11, NON_PORTABLE = 14 };

/* ranks: each block writes rank + 100 * blocks of its cluster, and the value of the next block's shared memory.
 * fixed: compiled for clusters of two. */
static const char text[] =
    ".version 8.6\n.target sm_90a\n.address_size 64\n"
    ".visible .entry ranks(.param .u64 out)\n{\n.reg .u32 %r<8>; .reg .u64 %a<3>; .shared .u32 cell;\n"
    "mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, %cluster_nctarank; mov.u32 %r2, %ctaid.x; st.shared.u32 [cell], %r2;\n"
    "barrier.cluster.arrive; barrier.cluster.wait;\n"
    "add.u32 %r3, %r0, 1; rem.u32 %r3, %r3, %r1; mapa.shared::cluster.u32 %r4, cell, %r3;\n"
    "ld.shared::cluster.u32 %r5, [%r4]; barrier.cluster.arrive; barrier.cluster.wait;\n"
    "mad.lo.u32 %r6, %r1, 100, %r0; ld.param.u64 %a0, [out]; mad.wide.u32 %a1, %r2, 8, %a0;\n"
    "st.global.v2.u32 [%a1], {%r6, %r5}; ret;\n}\n"
    ".visible .entry fixed(.param .u64 out)\n.reqnctapercluster 2, 1, 1\n{\n.reg .u32 %r<4>; .reg .u64 %a<3>;\n"
    "mov.u32 %r0, %cluster_nctarank; mov.u32 %r2, %ctaid.x; ld.param.u64 %a0, [out]; mad.wide.u32 %a1, %r2, 8, %a0;\n"
    "st.global.v2.u32 [%a1], {%r0, %r2}; ret;\n}\n"
#define COPY(name, rank, mode, extra)                                                                              \
  ".visible .entry " name "(.param .align 64 .b8 map[128], .param .u64 out, .param .s32 x, .param .s32 y, "        \
  ".param .s32 z, .param .s32 u, .param .u32 bytes)\n{\n.shared .align 1024 .b32 area[1024]; .shared .b64 mark;\n" \
  ".reg .s32 %c<4>; .reg .u32 %i<3>; .reg .u64 %a<4>; .reg .pred %p; .reg .b16 %h<2>;\n"                           \
  "ld.param.s32 %c0, [x]; ld.param.s32 %c1, [y]; ld.param.s32 %c2, [z]; ld.param.s32 %c3, [u];\n"                  \
  "ld.param.u32 %i0, [bytes]; mov.u64 %a0, map; cvta.param.u64 %a0, %a0; mov.b16 %h0, 1; mov.b16 %h1, 2;\n"        \
  "mbarrier.init.shared.b64 [mark], 1; mbarrier.arrive.expect_tx.shared.b64 _, [mark], %i0;\n"                     \
  "cp.async.bulk.tensor." rank ".shared::cluster.global" mode ".mbarrier::complete_tx::bytes [area], [%a0, " extra \
  ";\nwait:\nmbarrier.try_wait.parity.shared.b64 %p, [mark], 0;\n@!%p bra wait;\n"                                 \
  "ld.param.u64 %a1, [out]; mov.u32 %i1, 0;\ncopy:\nmov.u32 %i2, area; add.u32 %i2, %i2, %i1;\n"                   \
  "cvt.u64.u32 %a2, %i1; add.u64 %a2, %a2, %a1; ld.shared.b32 %i2, [%i2]; st.global.b32 [%a2], %i2;\n"             \
  "add.u32 %i1, %i1, 4; setp.lt.u32 %p, %i1, %i0;\n@%p bra copy;\nret;\n}\n"
    COPY("tiled", "2d", ".tile", "{%c0, %c1}], [mark]") COPY(
        "columns", "4d", ".im2col",
        "{%c0, %c1, %c2, %c3}], [mark], {%h0, %h1}") ".visible .entry narrow(.param .u64 map)\n{\n.reg .u64 %a; ld.param.u64 %a, [map];\n"
                                                     "tensormap.replace.tile.global_dim.global.b1024.b32 [%a], 0, 52; ret;\n}\n"
                                                     ".visible .entry single()\n.reqntid 1, 1, 1\n{\nret;\n}\n";

static CUfunction ranks, fixed, tiled, columns, narrow, single;
static CUdeviceptr out, data;

static int start(void **state) {
  CUcontext context;
  CUmodule module;
  succeed(cuInit(0));
  succeed(cuDevicePrimaryCtxRetain(&context, 0));
  succeed(cuCtxSetCurrent(context));
  succeed(cuModuleLoadData(&module, text));
  succeed(cuModuleGetFunction(&ranks, module, "ranks"));
  succeed(cuModuleGetFunction(&fixed, module, "fixed"));
  succeed(cuModuleGetFunction(&tiled, module, "tiled"));
  succeed(cuModuleGetFunction(&columns, module, "columns"));
  succeed(cuModuleGetFunction(&narrow, module, "narrow"));
  succeed(cuModuleGetFunction(&single, module, "single"));
  succeed(cuMemAlloc_v2(&out, 1 << 16));
  succeed(cuMemAlloc_v2(&data, 1 << 16));
  return 0;
}

#define KERNEL "\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"

static CUresult load_target(const char *target) {
  char text_of[200];
  CUmodule module;
  snprintf(text_of, sizeof text_of, ".version 9.0\n.target %s" KERNEL, target);
  CUresult result = cuModuleLoadData(&module, text_of);
  if (!result) succeed(cuModuleUnload(module));
  return result;
}

/* A letter behind a target says on which GPUs the text runs: on that architecture, or on its family from there on. */
static void loads_text_for_this_architecture(void **state) {
  static const char *const runs[] = {"sm_90a", "sm_90", "sm_80", "sm_100", "sm_120"};
  static const char *const others[] = {"sm_100a", "sm_100f", "sm_103a", "sm_120f", "sm_80a", "sm_89f", "sm_91f"};
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) succeed(load_target(runs[i]));
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) check(load_target(others[i]), CUDA_ERROR_INVALID_PTX);
}

/* code: the architecture of machine code beside the PTX; 0: none. */
static CUresult load_fatbin(unsigned code, unsigned arch, char suffix) {
  static const char kernel[] = ".version 9.0\n.target sm_120f" KERNEL;
  fatbin_item items[] = {{.kind = FATBIN_KIND_PTX,
                          .arch = arch,
                          .suffix = suffix,
                          .version_major = 9,
                          .bytes = kernel,
                          .size = sizeof kernel - 1},
                         {.kind = FATBIN_KIND_ELF, .arch = code, .bytes = "\177ELF....", .size = 8}};
  ff_text bytes = {0};
  CUmodule module;
  CUfunction function;
  assert_int_equal(fatbin_encode(items, code ? 2 : 1, &bytes, NULL), FF_OK);
  CUresult result = cuModuleLoadData(&module, bytes.chars);
  if (!result) succeed(cuModuleGetFunction(&function, module, "k"));
  if (!result) succeed(cuModuleUnload(module));
  free(bytes.chars);
  return result;
}

/* Of a fat binary its own word on the architecture counts; machine code for this GPU makes it loadable. */
static void loads_fat_binaries_for_this_architecture(void **state) {
  check(load_fatbin(0, 120, 'f'), CUDA_ERROR_NO_BINARY_FOR_GPU);
  check(load_fatbin(0, 100, 'a'), CUDA_ERROR_NO_BINARY_FOR_GPU);
  check(load_fatbin(80, 120, 'f'), CUDA_ERROR_NO_BINARY_FOR_GPU);
  succeed(load_fatbin(90, 120, 'f'));
  succeed(load_fatbin(0, 120, 0));
  succeed(load_fatbin(0, 90, 'a'));
}

static CUresult launch(CUfunction function, unsigned blocks, unsigned cluster) {
  cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeClusterDimension, .val.clusterDim = {cluster, 1, 1}};
  launch_config config = {.grid = {blocks, 1, 1}, .block = {1, 1, 1}, .attributes = &attribute, .count = cluster != 0};
  CUresult result = cuLaunchKernelEx(&config, function, (void *[]){&out}, NULL);
  if (!result) succeed(cuCtxSynchronize());
  return result;
}

static void runs_in_clusters(void **state) {
  uint32_t found[64];
  static const unsigned sizes[] = {0, 1, 2, 4, 8};
  for (unsigned s = 0; s < 5; s++) {
    unsigned blocks = sizes[s] ? sizes[s] : 1;
    succeed(launch(ranks, 16, sizes[s]));
    succeed(cuMemcpyDtoH_v2(found, out, 16 * 8));
    for (unsigned b = 0; b < 16; b++) {
      assert_int_equal(found[2 * b], b % blocks + 100 * blocks);
      assert_int_equal(found[2 * b + 1], b / blocks * blocks + (b + 1) % blocks);
    }
  }
}

static void refuses_clusters(void **state) {
  int value;
  check(launch(ranks, 15, 2), INVALID_CLUSTER_SIZE);
  check(launch(ranks, 32, 16), INVALID_CLUSTER_SIZE);
  check(launch(ranks, 34, 17), INVALID_CLUSTER_SIZE);
  succeed(cuFuncSetAttribute(ranks, NON_PORTABLE, 1));
  succeed(cuFuncGetAttribute(&value, NON_PORTABLE, ranks));
  assert_int_equal(value, 1);
  succeed(launch(ranks, 32, 16));
  check(launch(fixed, 8, 4), INVALID_CLUSTER_SIZE);
  succeed(launch(fixed, 8, 2));
  succeed(launch(fixed, 8, 0));
  check(launch(fixed, 7, 0), INVALID_CLUSTER_SIZE);
  succeed(cuFuncGetAttribute(&value, WIDTH, fixed));
  assert_int_equal(value, 2);
  invalid(cuFuncSetAttribute(fixed, WIDTH, 4));
}

static void says_what_fits(void **state) {
  int found, supported, sms = 132;
  succeed(cuDeviceGetAttribute(&supported, 120, 0));
  assert_int_equal(supported, 1);
  cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeClusterDimension, .val.clusterDim = {4, 1, 1}};
  launch_config config = {.grid = {4, 1, 1}, .block = {1024, 1, 1}, .attributes = &attribute, .count = 1};
  succeed(cuOccupancyMaxActiveClusters(&found, ranks, &config));
  assert_int_equal(found, 2 * sms / 4);
  attribute.val.clusterDim.x = config.grid[0] = 32; /* more than any device has: none fits, which is no error */
  succeed(cuOccupancyMaxActiveClusters(&found, ranks, &config));
  assert_int_equal(found, 0);
  check(cuOccupancyMaxActiveClusters(&found, fixed, &config), INVALID_CLUSTER_SIZE);
  attribute.val.clusterDim.x = attribute.val.clusterDim.y = 1u << 31; /* 2^64 blocks */
  attribute.val.clusterDim.z = 4;
  found = 1;
  succeed(cuOccupancyMaxActiveClusters(&found, ranks, &config));
  assert_int_equal(found, 0);
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  attribute.val.clusterDim.x = 3;
  check(cuOccupancyMaxActiveClusters(&found, ranks, &config), INVALID_CLUSTER_SIZE); /* not a part of the grid */
  attribute.val.clusterDim.x = config.grid[0] = 4;
  succeed(cuOccupancyMaxPotentialClusterSize(&found, fixed, &config));
  assert_int_equal(found, 8);
  config.block[0] = 128; /* more than the kernel is compiled for: the answer is of the device */
  succeed(cuOccupancyMaxActiveClusters(&found, single, &config));
  assert_int_equal(found, 16 * sms / 4);
  config.block[0] = 2048;
  succeed(cuOccupancyMaxActiveClusters(&found, single, &config));
  assert_int_equal(found, 0);
  config.block[0] = (1u << 22) + 1, config.block[1] = 1024; /* 2^32 + 1024 threads: not 1024 */
  succeed(cuOccupancyMaxActiveClusters(&found, single, &config));
  assert_int_equal(found, 0);
  succeed(cuOccupancyMaxPotentialClusterSize(&found, single, &config));
  assert_int_equal(found, 0);
  config.block[0] = config.block[1] = config.block[2] = 1u << 22; /* 2^66: not 0 */
  succeed(cuOccupancyMaxActiveClusters(&found, single, &config));
  assert_int_equal(found, 0);
  config.block[2] = 0;
  invalid(cuOccupancyMaxActiveClusters(&found, single, &config));
  invalid(cuOccupancyMaxActiveClusters(NULL, ranks, &config));
}

static const uint32_t ones[5] = {1, 1, 1, 1, 1};

static void checks_tensor_maps(void **state) {
  tensor_map_bytes map;
  uint64_t sizes[2] = {64, 32}, strides[1] = {256};
  uint32_t box[2] = {16, 8}, none[2] = {0, 8}, large[2] = {16, 257}, odd[2] = {3, 8};
  void *at = (void *)(uintptr_t)data;
  succeed(cuTensorMapEncodeTiled(&map, U32, 2, at, sizes, strides, box, ones, 0, 0, 0, 0));
  tensor_map_bytes maps[2]; /* a map may lie anywhere, and is the same there */
  void *odd_place = (char *)maps + 16;
  succeed(cuTensorMapEncodeTiled(odd_place, U32, 2, at, sizes, strides, box, ones, 0, 0, 0, 0));
  assert_memory_equal(odd_place, &map, sizeof map);
  succeed(cuTensorMapReplaceAddress(odd_place, at));
  assert_memory_equal(odd_place, &map, sizeof map);
  invalid(cuTensorMapEncodeTiled(NULL, U32, 2, at, sizes, strides, box, ones, 0, 0, 0, 0));
  invalid(cuTensorMapEncodeTiled(&map, U32, 0, at, sizes, strides, box, ones, 0, 0, 0, 0));
  invalid(cuTensorMapEncodeTiled(&map, U32, 6, at, sizes, strides, box, ones, 0, 0, 0, 0));
  invalid(cuTensorMapEncodeTiled(&map, U32, 2, (char *)at + 8, sizes, strides, box, ones, 0, 0, 0, 0));
  invalid(cuTensorMapEncodeTiled(&map, U32, 2, at, sizes, strides, none, ones, 0, 0, 0, 0));
  invalid(cuTensorMapEncodeTiled(&map, U32, 2, at, sizes, strides, large, ones, 0, 0, 0, 0));
  invalid(cuTensorMapEncodeTiled(&map, U32, 2, at, sizes, strides, odd, ones, 0, 0, 0, 0));
  invalid(cuTensorMapEncodeTiled(&map, U32, 2, at, sizes, (uint64_t[]){250}, box, ones, 0, 0, 0, 0));
  invalid(cuTensorMapEncodeTiled(&map, U32, 2, at, sizes, strides, box, ones, 0, 1, 0, 0)); /* 64 bytes in rows of 32 */
  invalid(cuTensorMapEncodeTiled(&map, U32, 2, at, sizes, strides, box, ones, 0, 0, 0, 1)); /* NaN of an integer */
  invalid(cuTensorMapEncodeTiled(&map, 99, 2, at, sizes, strides, box, ones, 0, 0, 0, 0));
  check(cuTensorMapEncodeTiled(&map, U32, 2, at, sizes, strides, box, ones, 1, 0, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
  succeed(cuTensorMapReplaceAddress(&map, (char *)at + 256));
  invalid(cuTensorMapReplaceAddress(&map, (char *)at + 4));
  for (int wanted = 0; wanted < 3; wanted++) { /* whichever is asked for, it is the small class */
    int class = 9;
    tensor_map_bytes before = map;
    succeed(cuTensorMapSetAllocationClass(&map, wanted, wanted ? &class : NULL));
    assert_int_equal(class, wanted ? 1 : 9);
    assert_memory_equal(&map, &before, sizeof map);
  }
  invalid(cuTensorMapSetAllocationClass(&map, 3, NULL));
  memset(&map, 0, sizeof map);
  invalid(cuTensorMapReplaceAddress(&map, at));
  invalid(cuTensorMapSetAllocationClass(&map, 0, NULL));
}

static void copy(CUfunction function, tensor_map_bytes *map, const int at[4], void *to, uint32_t bytes) {
  int c[4] = {at[0], at[1], at[2], at[3]};
  launch_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
  succeed(cuLaunchKernelEx(&config, function, (void *[]){map, &out, &c[0], &c[1], &c[2], &c[3], &bytes}, NULL));
  succeed(cuCtxSynchronize());
  succeed(cuMemcpyDtoH_v2(to, out, bytes));
}

static void copies_boxes(void **state) {
  tensor_map_bytes map;
  uint32_t host[32][64], found[8][16];
  for (uint32_t n = 0; n < 32 * 64; n++) host[n / 64][n % 64] = n * 2654435761u;
  succeed(cuMemcpyHtoD_v2(data, host, sizeof host));
  succeed(cuTensorMapEncodeTiled(&map, U32, 2, (void *)(uintptr_t)data, (uint64_t[]){60, 32}, (uint64_t[]){256},
                                 (uint32_t[]){16, 8}, ones, 0, 0, 2, 0));
  copy(tiled, &map, (int[]){50, -3, 0, 0}, found, sizeof found);
  for (int y = 0; y < 8; y++)
    for (int x = 0; x < 16; x++) assert_int_equal(found[y][x], y < 3 || 50 + x >= 60 ? 0 : host[y - 3][50 + x]);
}

/* A program may write a map itself, in the layout of GPUs, as the host code of CUTLASS's CuTe DSL does; and replace
 * fields of such a map in memory. */
static void reads_maps_of_programs(void **state) {
  uint32_t host[32][64], found[8][16], expected[8][16];
  for (uint32_t n = 0; n < 32 * 64; n++) host[n / 64][n % 64] = n * 2654435761u;
  succeed(cuMemcpyHtoD_v2(data, host, sizeof host));
  tensor_map_bytes map;
  const uint32_t words[32] = {(uint32_t)data, (uint32_t)(data >> 32), 0x00040112, 256 / 16,         [8] = 59,
                              [9] = 31,       [13] = 15u << 24,       [14] = 7,   [16] = 0xffffffff};
  memcpy(&map, words, sizeof map);
  copy(tiled, &map, (int[]){50, -3, 0, 0}, found, sizeof found);
  for (int y = 0; y < 8; y++)
    for (int x = 0; x < 16; x++) expected[y][x] = y < 3 || 50 + x >= 60 ? 0 : host[y - 3][50 + x];
  assert_memory_equal(found, expected, sizeof found);
  CUdeviceptr there = data + sizeof host;
  succeed(cuMemcpyHtoD_v2(there, &map, sizeof map));
  launch_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
  succeed(cuLaunchKernelEx(&config, narrow, (void *[]){&there}, NULL));
  succeed(cuCtxSynchronize());
  succeed(cuMemcpyDtoH_v2(&map, there, sizeof map));
  copy(tiled, &map, (int[]){50, -3, 0, 0}, found, sizeof found);
  for (int y = 0; y < 8; y++)
    for (int x = 2; x < 16; x++) expected[y][x] = 0;
  assert_memory_equal(found, expected, sizeof found);
}

/* A program may clear bit 21 of the map's second word, as CUTLASS does of small tensors: with the tensor at an address
 * that has that bit. */
static void leaves_a_bit_to_programs(void **state) {
  tensor_map_bytes map;
  CUdeviceptr area, at;
  uint32_t host[8][16], found[8][16];
  uint64_t second;
  succeed(cuMemAlloc_v2(&area, 4 << 20));
  at = (area + (1 << 21)) & ~(CUdeviceptr)((1 << 21) - 1);
  if (!(at >> 21 & 1)) at -= 1024; /* just below: the bit is set there */
  assert_true(at >= area && at + sizeof host <= area + (4 << 20) && at >> 21 & 1);
  for (uint32_t n = 0; n < 8 * 16; n++) host[n / 16][n % 16] = n * 2654435761u;
  succeed(cuMemcpyHtoD_v2(at, host, sizeof host));
  succeed(cuTensorMapEncodeTiled(&map, U32, 2, (void *)(uintptr_t)at, (uint64_t[]){16, 8}, (uint64_t[]){64},
                                 (uint32_t[]){16, 8}, ones, 0, 0, 0, 0));
  memcpy(&second, map.bytes + 8, sizeof second);
  second &= ~(UINT64_C(1) << 21);
  memcpy(map.bytes + 8, &second, sizeof second);
  copy(tiled, &map, (int[]){0, 0, 0, 0}, found, sizeof found);
  assert_memory_equal(found, host, sizeof host);
  succeed(cuMemFree_v2(area));
}

/* Pixels of a bounding box from (-1, -1) to (width - 2, height - 2), as for a filter of three by three; its element
 * (1, 2) is asked for. */
static void copies_columns(void **state) {
  enum { CHANNELS = 16, W = 6, H = 5, IMAGES = 2, PIXELS = 32, TAKEN = 8 };
  tensor_map_bytes map;
  static uint16_t host[IMAGES][H][W][CHANNELS], found[PIXELS][TAKEN];
  for (uint32_t n = 0; n < IMAGES * H * W * CHANNELS; n++) (&host[0][0][0][0])[n] = (uint16_t)(n * 40503u);
  succeed(cuMemcpyHtoD_v2(data, host, sizeof host));
  succeed(cuTensorMapEncodeIm2col(&map, F16, 4, (void *)(uintptr_t)data, (uint64_t[]){CHANNELS, W, H, IMAGES},
                                  (uint64_t[]){2 * CHANNELS, 2 * CHANNELS * W, 2 * CHANNELS * W * H}, (int[]){-1, -1},
                                  (int[]){-1, -1}, TAKEN, PIXELS, ones, 0, 0, 0, 0));
  copy(columns, &map, (int[]){8, 2, 3, 0}, found, sizeof found);
  int x = 2, y = 3, image = 0;
  for (int p = 0; p < PIXELS; p++) {
    int from_x = x + 1, from_y = y + 2;
    bool inside = from_x >= 0 && from_x < W && from_y >= 0 && from_y < H && image < IMAGES;
    for (int c = 0; c < TAKEN; c++) assert_int_equal(found[p][c], inside ? host[image][from_y][from_x][8 + c] : 0);
    if (++x <= W - 2) continue;
    x = -1;
    if (++y <= H - 2) continue;
    y = -1;
    image++;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_in_clusters),
      cmocka_unit_test(refuses_clusters),
      cmocka_unit_test(says_what_fits),
      cmocka_unit_test(loads_text_for_this_architecture),
      cmocka_unit_test(loads_fat_binaries_for_this_architecture),
      cmocka_unit_test(checks_tensor_maps),
      cmocka_unit_test(copies_boxes),
      cmocka_unit_test(copies_columns),
      cmocka_unit_test(reads_maps_of_programs),
      cmocka_unit_test(leaves_a_bit_to_programs),
  };
  setenv("FARFAULT_MACHINE", "h200", 1);
  setenv("FARFAULT_MEMORY", "copy", 1);
  return cmocka_run_group_tests(tests, start, NULL);
}
