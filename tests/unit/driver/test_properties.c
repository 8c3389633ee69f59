/* SPDX-License-Identifier: Apache-2.0 */
/* Device attributes and the three layouts of cudaDeviceProp. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "driver/cuda_abi.h"
#include "driver/properties.h"

static machine_spec machine;

static int load(void **state) {
  ff_error error;
  if (machine_spec_load("v100", &machine, &error) == FF_OK) return 0;
  print_error("%s\n", error.message);
  return 1;
}

static int attribute(int number) {
  int value = -12345;
  assert_true(properties_attribute(&machine, 0, number, &value));
  return value;
}

/* Sizes and offsets as in the CUDA 11.8, 12.5 and 13.0 interfaces, for x86-64. */
static void test_layout(void **state) {
  assert_int_equal(sizeof(cudaDeviceProp_11), 728);
  assert_int_equal(sizeof(cudaDeviceProp_12), 1032);
  assert_int_equal(sizeof(cudaDeviceProp_13), 1008);
  assert_int_equal(offsetof(cudaDeviceProp_11, totalGlobalMem), 288);
  assert_int_equal(offsetof(cudaDeviceProp_11, clockRate), 348);
  assert_int_equal(offsetof(cudaDeviceProp_11, major), 360);
  assert_int_equal(offsetof(cudaDeviceProp_11, multiProcessorCount), 388);
  assert_int_equal(offsetof(cudaDeviceProp_11, reservedSharedMemPerBlock), 720);
  assert_int_equal(offsetof(cudaDeviceProp_12, hostRegisterSupported), 728);
  assert_int_equal(offsetof(cudaDeviceProp_12, unifiedFunctionPointers), 776);
  assert_int_equal(offsetof(cudaDeviceProp_13, major), 360);
  assert_int_equal(offsetof(cudaDeviceProp_13, multiProcessorCount), 384);
  assert_int_equal(offsetof(cudaDeviceProp_13, l2CacheSize), 596);
  assert_int_equal(offsetof(cudaDeviceProp_13, hostRegisterSupported), 704);
  assert_int_equal(offsetof(cudaDeviceProp_13, reserved), 784);
  /* 11 is a prefix of 12 */
  assert_int_equal(offsetof(cudaDeviceProp_11, sharedMemPerBlockOptin),
                   offsetof(cudaDeviceProp_12, sharedMemPerBlockOptin));
  assert_int_equal(offsetof(cudaDeviceProp_11, reservedSharedMemPerBlock),
                   offsetof(cudaDeviceProp_12, reservedSharedMemPerBlock));
}

static void test_attributes(void **state) {
  int value;
  for (int number = 1; number <= 161; number++) assert_true(properties_attribute(&machine, 0, number, &value));
  assert_false(properties_attribute(&machine, 0, 0, &value));
  assert_false(properties_attribute(&machine, 0, 162, &value));
  assert_false(properties_attribute(&machine, 0, -1, &value));
  assert_int_equal(attribute(cudaDevAttrComputeCapabilityMajor), 7);
  assert_int_equal(attribute(cudaDevAttrComputeCapabilityMinor), 0);
  assert_int_equal(attribute(cudaDevAttrMultiProcessorCount), machine.sm_count);
  assert_int_equal(attribute(cudaDevAttrWarpSize), 32);
  assert_int_equal(attribute(cudaDevAttrMaxThreadsPerBlock), 1024);
  assert_int_equal(attribute(cudaDevAttrMaxBlockDimZ), 64);
  assert_int_equal(attribute(cudaDevAttrMaxSharedMemoryPerBlock), machine.shared_per_block);
  assert_int_equal(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin), machine.shared_per_block_optin);
  assert_int_equal(attribute(cudaDevAttrL2CacheSize), machine.l2_bytes);
  assert_int_equal(attribute(cudaDevAttrMaxRegistersPerBlock), 65536);
  assert_int_equal(attribute(cudaDevAttrSingleToDoublePrecisionPerfRatio), 2);
  assert_int_equal(attribute(cudaDevAttrClockRate), (int)(machine.clock_mhz * 1000 + 0.5));
}

/* The bandwidth that programs compute from clock and width is the machine's, and both are a board's: the clock half the
 * data rate of a pin, even where the machine's timings are in one of four or eight transfers. */
static void test_bandwidth(void **state) {
  static const struct {
    const char *name;
    int bus, khz;
  } rows[] = {{"v100", 4096, 877500},     {"a100", 5120, 1593000},   {"gm200", 384, 3506000},
              {"gtx1070", 256, 4000000},  {"gtx1080", 256, 5000000}, {"gtx1080ti", 352, 5500000},
              {"dgx-v100", 4096, 877500}, {"gp100", 4096, 704000},   {"pcie-8", 384, 7251000}};
  const machine_spec before = machine;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_int_equal(machine_spec_load(rows[i].name, &machine, NULL), FF_OK);
    int bus = attribute(cudaDevAttrGlobalMemoryBusWidth), khz = attribute(cudaDevAttrMemoryClockRate);
    double gbs = 2.0 * khz * (bus / 8.0) / 1e6;
    assert_int_equal(bus, rows[i].bus);
    assert_int_equal(khz, rows[i].khz);
    assert_true(gbs > machine.dram_gbs * 0.998 && gbs < machine.dram_gbs * 1.002);
  }
  machine = before;
  machine.dram_bus_bits = 0; /* a file without it */
  assert_int_equal(attribute(cudaDevAttrGlobalMemoryBusWidth), 4096);
  assert_int_equal(attribute(cudaDevAttrMemoryClockRate), 877500);
  machine = before;
}

static void test_structs(void **state) {
  const uint64_t bytes = UINT64_C(5) << 30;
  cudaDeviceProp_11 *p11 = malloc(sizeof *p11);
  cudaDeviceProp_12 *p12 = malloc(sizeof *p12);
  cudaDeviceProp_13 *p13 = malloc(sizeof *p13);
  memset(p11, 0xa5, sizeof *p11);
  memset(p12, 0xa5, sizeof *p12);
  memset(p13, 0xa5, sizeof *p13);
  properties_fill_11(&machine, 0, bytes, p11);
  properties_fill_12(&machine, 0, bytes, p12);
  properties_fill_13(&machine, 0, bytes, p13);
  assert_string_equal(p11->name, machine.name);
  assert_string_equal(p13->name, machine.name);
  assert_int_equal(p11->totalGlobalMem, bytes);
  assert_int_equal(p13->totalGlobalMem, bytes);
  assert_memory_equal(p11, p12, offsetof(cudaDeviceProp_11, reservedSharedMemPerBlock));
  assert_int_equal(p13->major, 7);
  assert_int_equal(p13->maxThreadsDim[0], 1024);
  assert_int_equal(p13->maxThreadsDim[2], 64);
  assert_int_equal(p13->maxGridSize[0], INT32_MAX);
  assert_int_equal(p13->maxGridSize[1], 65535);
  assert_int_equal(p13->multiProcessorCount, machine.sm_count);
  assert_int_equal(p13->maxTexture2D[1], attribute(cudaDevAttrMaxTexture2DHeight));
  assert_int_equal(p13->maxSurface3D[2], attribute(cudaDevAttrMaxSurface3DDepth));
  assert_int_equal(p13->hostNumaId, attribute(cudaDevAttrHostNumaId));
  assert_int_equal(p12->clockRate, attribute(cudaDevAttrClockRate));
  assert_int_equal(p12->clusterLaunch, attribute(cudaDevAttrClusterLaunch));
  for (int i = 0; i < 56; i++) assert_int_equal(p13->reserved[i], 0);
  char uuid[16] = {0};
  assert_memory_not_equal(p13->uuid, uuid, 16);
  properties_uuid(&machine, 0, uuid);
  assert_memory_equal(p13->uuid, uuid, 16);
  machine_spec other = machine;
  strcpy(other.name, "another");
  properties_uuid(&other, 0, uuid);
  assert_memory_not_equal(p13->uuid, uuid, 16);
  free(p11);
  free(p12);
  free(p13);
}

/* What deviceQuery prints on boards of each compute capability. */
static void test_boards(void **state) {
  static const struct {
    const char *name;
    int major, minor, sms, threads, blocks, shared, optin, reserved, bus, memory_mhz, l2, ratio, ecc;
  } rows[] = {
      {"p100", 6, 0, 56, 2048, 32, 65536, 49152, 0, 4096, 715, 4194304, 2, 1},
      {"rtx2080ti", 7, 5, 68, 1024, 16, 65536, 65536, 0, 352, 7000, 5767168, 32, 0},
      {"a40", 8, 6, 84, 1536, 16, 102400, 101376, 1024, 384, 7251, 6291456, 64, 1},
      {"rtx3090", 8, 6, 82, 1536, 16, 102400, 101376, 1024, 384, 9751, 6291456, 64, 0},
      {"l40s", 8, 9, 142, 1536, 24, 102400, 101376, 1024, 384, 9001, 100663296, 64, 1},
      {"rtx4090", 8, 9, 128, 1536, 24, 102400, 101376, 1024, 384, 10501, 75497472, 64, 0},
      {"h100", 9, 0, 132, 2048, 32, 233472, 232448, 1024, 5120, 2619, 52428800, 2, 1},
      {"h100-pcie", 9, 0, 114, 2048, 32, 233472, 232448, 1024, 5120, 1593, 52428800, 2, 1},
      {"gh200", 9, 0, 132, 2048, 32, 233472, 232448, 1024, 6144, 2619, 62914560, 2, 1},
      {"h200", 9, 0, 132, 2048, 32, 233472, 232448, 1024, 6144, 3125, 62914560, 2, 1},
      {"b200", 10, 0, 148, 2048, 32, 233472, 232448, 1024, 8192, 3906, 132120576, 2, 1},
      {"rtx5090", 12, 0, 170, 1536, 24, 102400, 101376, 1024, 512, 14001, 100663296, 64, 0},
  };
  const machine_spec before = machine;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_int_equal(machine_spec_load(rows[i].name, &machine, NULL), FF_OK);
    assert_int_equal(attribute(cudaDevAttrComputeCapabilityMajor), rows[i].major);
    assert_int_equal(attribute(cudaDevAttrComputeCapabilityMinor), rows[i].minor);
    assert_int_equal(attribute(cudaDevAttrMultiProcessorCount), rows[i].sms);
    assert_int_equal(attribute(cudaDevAttrMaxThreadsPerMultiProcessor), rows[i].threads);
    assert_int_equal(attribute(cudaDevAttrMaxBlocksPerMultiprocessor), rows[i].blocks);
    assert_int_equal(attribute(cudaDevAttrMaxRegistersPerMultiprocessor), 65536);
    assert_int_equal(attribute(cudaDevAttrMaxRegistersPerBlock), 65536);
    assert_int_equal(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor), rows[i].shared);
    assert_int_equal(attribute(cudaDevAttrMaxSharedMemoryPerBlock), 49152);
    assert_int_equal(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin), rows[i].optin);
    assert_int_equal(attribute(cudaDevAttrReservedSharedMemoryPerBlock), rows[i].reserved);
    assert_int_equal(attribute(cudaDevAttrGlobalMemoryBusWidth), rows[i].bus);
    assert_int_equal(attribute(cudaDevAttrMemoryClockRate), rows[i].memory_mhz * 1000);
    assert_int_equal(attribute(cudaDevAttrL2CacheSize), rows[i].l2);
    assert_int_equal(attribute(cudaDevAttrSingleToDoublePrecisionPerfRatio), rows[i].ratio);
    assert_int_equal(attribute(cudaDevAttrEccEnabled), rows[i].ecc);
  }
  machine = before;
}

/* Values beyond an int are cut to the largest one, not wrapped. */
static void test_large(void **state) {
  machine_spec large = machine;
  large.l2_bytes = UINT64_C(5) << 30;
  int value;
  assert_true(properties_attribute(&large, 0, cudaDevAttrL2CacheSize, &value));
  assert_int_equal(value, INT32_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_layout),  cmocka_unit_test(test_attributes), cmocka_unit_test(test_bandwidth),
      cmocka_unit_test(test_structs), cmocka_unit_test(test_boards),     cmocka_unit_test(test_large),
  };
  return cmocka_run_group_tests(tests, load, NULL);
}
