/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and sets: every direction, shape and refusal. */
#include "program.h"

#define BYTES 4096

static char *device, *device2, *pinned, *managed;
static char host[BYTES], back[BYTES];

static int set_up(void **state) {
  (void)state;
  succeed(cudaMalloc((void **)&device, BYTES));
  succeed(cudaMalloc((void **)&device2, BYTES));
  succeed(cudaMallocHost((void **)&pinned, BYTES));
  succeed(cudaMallocManaged((void **)&managed, BYTES, cudaMemAttachGlobal));
  for (int i = 0; i < BYTES; i++) host[i] = (char)(i * 7 + i / 256);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  succeed(cudaFree(device));
  succeed(cudaFree(device2));
  succeed(cudaFreeHost(pinned));
  succeed(cudaFree(managed));
  return 0;
}

static void all_ways(void **state) {
  (void)state;
  succeed(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice));
  succeed(cudaMemcpy(device2, device, BYTES, cudaMemcpyDeviceToDevice));
  succeed(cudaMemcpy(managed, device2, BYTES, cudaMemcpyDeviceToHost));
  succeed(cudaMemcpy(pinned, managed, BYTES, cudaMemcpyHostToHost));
  succeed(cudaMemcpy(device, pinned, BYTES, cudaMemcpyDefault));
  succeed(cudaMemcpyAsync(back, device, BYTES, cudaMemcpyDefault, NULL));
  succeed(cudaStreamSynchronize(NULL));
  assert_memory_equal(back, host, BYTES);
}

static void every_direction_against_every_memory(void **state) {
  (void)state;
  enum { DEVICE, MANAGED, PINNED, PAGEABLE };
  char *memory[] = {device, managed, pinned, host};
  bool as_host[] = {false, true, true, true}, as_device[] = {true, true, true, false};
  for (int to = 0; to < 4; to++)
    for (int from = 0; from < 4; from++)
      for (int kind = cudaMemcpyHostToHost; kind <= cudaMemcpyDefault; kind++) {
        char *target = to == PAGEABLE ? back : to == DEVICE ? device2 : memory[to];
        bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
        bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
        bool to_host = as_host[to] || kind == cudaMemcpyDeviceToHost; /* as NVIDIA's driver has it */
        bool good = kind == cudaMemcpyDefault ||
                    ((to_device ? as_device[to] : to_host) && (from_device ? as_device[from] : as_host[from]));
        assert_int_equal(cudaMemcpy(target, memory[from], 64, (cudaMemcpyKind)kind),
                         good ? cudaSuccess : cudaErrorInvalidValue);
      }
}

static void refusals(void **state) {
  (void)state;
  expect(cudaMemcpy(device, host, 8, (cudaMemcpyKind)5), cudaErrorInvalidMemcpyDirection);
  expect(cudaMemcpy(device, host, 8, (cudaMemcpyKind)-1), cudaErrorInvalidMemcpyDirection);
  succeed(cudaMemcpy(NULL, NULL, 0, (cudaMemcpyKind)5)); /* nothing goes any way, as NVIDIA's runtimes say */
  succeed(cudaMemcpyAsync(NULL, NULL, 0, (cudaMemcpyKind)-1, NULL));
  succeed(cudaMemcpy2D(device, 20, host, 20, 10, 0, (cudaMemcpyKind)7));
  succeed(cudaMemset(device2, 3, BYTES));
  succeed(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice));
  succeed(cudaMemcpy(device2, device, 8, cudaMemcpyDeviceToHost));
  succeed(cudaMemcpyAsync(device2 + 8, device + 8, 8, cudaMemcpyDeviceToHost, NULL));
  succeed(cudaMemcpy(back, device2, 17, cudaMemcpyDeviceToHost));
  assert_memory_equal(back, host, 16);
  assert_int_equal(back[16], 3);
  succeed(cudaMemcpyPeer(device, 0, host, 99, 0));
  expect(cudaMemcpyPeer(device, 0, host, 99, 8), cudaErrorInvalidDevice);
  expect(cudaMemcpy(NULL, host, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect(cudaMemcpy(device, NULL, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect(cudaMemcpy(device, host, BYTES + 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect(cudaMemcpy(device + 1, host, BYTES, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect(cudaMemcpy(device, host, SIZE_MAX, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  /* the device's range, never allocated */
  expect(cudaMemcpy(host, device + ((uint64_t)1 << 38), 8, cudaMemcpyDefault), cudaErrorInvalidValue);
  expect(cudaMemcpyAsync(device, host, 8, cudaMemcpyHostToDevice, (cudaStream_t)(uintptr_t)0x1234),
         cudaErrorInvalidResourceHandle);
  expect(cudaMemcpyPeer(device, 1, device2, 0, 8), cudaErrorInvalidDevice);
  succeed(cudaMemcpyPeer(device, 0, device2, 0, 8));
  succeed(cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToDevice));
  succeed(cudaMemcpy(device + BYTES, host, 0, cudaMemcpyHostToDevice));
  expect(cudaMemset(NULL, 0, 1), cudaErrorInvalidValue);
  expect(cudaMemset(host, 0, 1), cudaErrorInvalidValue);
  expect(cudaMemset(device, 0, BYTES + 1), cudaErrorInvalidValue);
  expect(cudaMemset2D(device, 10, 0, 20, 2), cudaErrorInvalidValue);
  succeed(cudaMemset(NULL, 0, 0));
}

static void freed_memory_is_refused(void **state) {
  (void)state;
  char *gone;
  succeed(cudaMalloc((void **)&gone, 64));
  succeed(cudaFree(gone));
  expect(cudaMemcpy(gone, host, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect(cudaMemcpy(back, gone, 8, cudaMemcpyDefault), cudaErrorInvalidValue);
  expect(cudaMemset(gone, 0, 8), cudaErrorInvalidValue);
}

static void sets(void **state) {
  (void)state;
  succeed(cudaMemset(device, 0x1ff, BYTES)); /* the low byte counts */
  succeed(cudaMemcpy(back, device, BYTES, cudaMemcpyDeviceToHost));
  for (int i = 0; i < BYTES; i++) assert_int_equal((unsigned char)back[i], 0xff);
  succeed(cudaMemset2D(device + 3, 100, 5, 10, 4));
  succeed(cudaMemcpy(back, device, BYTES, cudaMemcpyDeviceToHost));
  for (int i = 0; i < BYTES; i++) {
    bool inside = i >= 3 && i < 400 && (i - 3) % 100 < 10;
    assert_int_equal((unsigned char)back[i], inside ? 5 : 0xff);
  }
  succeed(cudaMemset3D((cudaPitchedPtr){device, 16, 16, 8}, 9, (cudaExtent){4, 2, 3}));
  succeed(cudaMemcpy(back, device, BYTES, cudaMemcpyDeviceToHost));
  for (int z = 0; z < 3; z++)
    for (int y = 0; y < 8; y++)
      for (int x = 0; x < 16; x++) assert_int_equal((unsigned char)back[z * 128 + y * 16 + x] == 9, x < 4 && y < 2);
}

static void copies_2d(void **state) {
  (void)state;
  succeed(cudaMemset(device, 0, BYTES));
  succeed(cudaMemcpy2D(device, 64, host, 20, 10, 5, cudaMemcpyHostToDevice));
  memset(back, 0, sizeof back);
  succeed(cudaMemcpy2DAsync(back, 10, device, 64, 10, 5, cudaMemcpyDeviceToHost, NULL));
  for (int y = 0; y < 5; y++) assert_memory_equal(back + 10 * y, host + 20 * y, 10);
  expect(cudaMemcpy2D(device, 9, host, 20, 10, 5, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
  expect(cudaMemcpy2D(device, 20, host, 9, 10, 5, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
  expect(cudaMemcpy2D(device, 20, host, 20, 10, 5, (cudaMemcpyKind)7), cudaErrorInvalidMemcpyDirection);
  expect(cudaMemcpy2D(device, 1024, host, 20, 10, 5, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  /* 4 * 1022 + 10 > 4096 */
  expect(cudaMemcpy2D(device, 1022, host, 20, 10, 5, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  succeed(cudaMemcpy2D(device, 1021, host, 20, 10, 5, cudaMemcpyHostToDevice));
  succeed(cudaMemcpy2D(device, 0, host, 0, 0, 5, cudaMemcpyHostToDevice));
  expect(cudaMemcpy2D(device, SIZE_MAX / 2, host, 20, 10, 5, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
}

static void copies_3d(void **state) {
  (void)state;
  succeed(cudaMemset(device, 0, BYTES));
  cudaMemcpy3DParms p = {.srcPtr = {host, 16, 16, 8},
                         .srcPos = {2, 1, 1},
                         .dstPtr = {device, 32, 32, 8},
                         .dstPos = {4, 3, 2},
                         .extent = {6, 3, 2},
                         .kind = cudaMemcpyHostToDevice};
  succeed(cudaMemcpy3D(&p));
  succeed(cudaMemcpy(back, device, BYTES, cudaMemcpyDeviceToHost));
  for (int z = 0; z < 2; z++)
    for (int y = 0; y < 3; y++)
      assert_memory_equal(back + (z + 2) * 256 + (y + 3) * 32 + 4, host + (z + 1) * 128 + (y + 1) * 16 + 2, 6);
  int nonzero = 0, expected = 0;
  for (int i = 0; i < BYTES; i++) nonzero += back[i] != 0;
  for (int z = 0; z < 2; z++)
    for (int y = 0; y < 3; y++)
      for (int x = 0; x < 6; x++) expected += host[(z + 1) * 128 + (y + 1) * 16 + 2 + x] != 0;
  assert_int_equal(nonzero, expected);
  expect(cudaMemcpy3D(NULL), cudaErrorInvalidValue);
  p.extent.depth = 20;
  expect(cudaMemcpy3D(&p), cudaErrorInvalidValue); /* runs out of the allocation */
  p.extent = (cudaExtent){40, 3, 2};
  expect(cudaMemcpy3D(&p), cudaErrorInvalidPitchValue);
}

static void overlapping_and_large(void **state) {
  (void)state;
  const size_t large = 5 << 20;
  char *a, *from = malloc(large), *to = malloc(large);
  for (size_t i = 0; i < large; i++) from[i] = (char)(i * 31 >> 3);
  succeed(cudaMalloc((void **)&a, large));
  succeed(cudaMemcpy(a, from, large, cudaMemcpyHostToDevice));
  succeed(cudaMemcpy(a + 1, a, large - 1, cudaMemcpyDeviceToDevice));
  succeed(cudaMemcpy(to, a, large, cudaMemcpyDeviceToHost));
  assert_memory_equal(to + 1, from, large - 1);
  succeed(cudaFree(a));
  free(from);
  free(to);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_ways),  cmocka_unit_test(every_direction_against_every_memory),
      cmocka_unit_test(refusals),  cmocka_unit_test(freed_memory_is_refused),
      cmocka_unit_test(sets),      cmocka_unit_test(copies_2d),
      cmocka_unit_test(copies_3d), cmocka_unit_test(overlapping_and_large),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
