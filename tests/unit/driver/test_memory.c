/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation, freeing, pointers and host memory as libcudart promises them, down to the error codes. */
#include "program.h"

static void allocation_is_zeroed_and_aligned(void **state) {
  (void)state;
  char *memory;
  succeed(cudaMalloc((void **)&memory, 1000));
  assert_non_null(memory);
  assert_int_equal((uintptr_t)memory % 256, 0);
  char host[1000];
  memset(host, 1, sizeof host);
  succeed(cudaMemcpy(host, memory, 1000, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 1000; i++) assert_int_equal(host[i], 0);
  succeed(cudaFree(memory));
}

static void zero_sizes(void **state) {
  (void)state;
  void *pointer = &pointer;
  succeed(cudaMalloc(&pointer, 0));
  assert_null(pointer);
  pointer = &pointer;
  succeed(cudaMallocHost(&pointer, 0));
  assert_null(pointer);
  pointer = &pointer;
  succeed(cudaHostAlloc(&pointer, 0, 0));
  assert_null(pointer);
  pointer = &pointer;
  succeed(cudaMallocManaged(&pointer, 0, cudaMemAttachGlobal));
  assert_null(pointer);
  size_t pitch;
  succeed(cudaMallocPitch(&pointer, &pitch, 0, 10));
  assert_null(pointer);
  succeed(cudaFree(NULL));
  succeed(cudaFreeHost(NULL));
}

static void bad_arguments(void **state) {
  (void)state;
  void *pointer;
  size_t pitch;
  expect(cudaMalloc(NULL, 10), cudaErrorInvalidValue);
  expect(cudaMallocHost(NULL, 10), cudaErrorInvalidValue);
  expect(cudaHostAlloc(NULL, 10, 0), cudaErrorInvalidValue);
  expect(cudaHostAlloc(&pointer, 10, 8), cudaErrorInvalidValue);
  expect(cudaMallocManaged(NULL, 10, cudaMemAttachGlobal), cudaErrorInvalidValue);
  expect(cudaMallocManaged(&pointer, 10, 0), cudaErrorInvalidValue);
  expect(cudaMallocManaged(&pointer, 10, cudaMemAttachSingle), cudaErrorInvalidValue);
  expect(cudaMallocPitch(&pointer, NULL, 10, 10), cudaErrorInvalidValue);
  expect(cudaMallocPitch(NULL, &pitch, 10, 10), cudaErrorInvalidValue);
  expect(cudaMalloc3D(NULL, (cudaExtent){1, 1, 1}), cudaErrorInvalidValue);
}

static void too_much(void **state) {
  (void)state;
  size_t available, total;
  void *pointer = NULL, *most;
  succeed(cudaMemGetInfo(&available, &total));
  assert_true(available <= total && total > 0);
  expect(cudaMalloc(&pointer, SIZE_MAX), cudaErrorMemoryAllocation);
  expect(cudaMalloc(&pointer, SIZE_MAX - 4095), cudaErrorMemoryAllocation);
  expect(cudaMalloc(&pointer, available + 1), cudaErrorMemoryAllocation);
  expect(cudaGetLastError(), cudaErrorMemoryAllocation); /* not sticky */
  succeed(cudaGetLastError());
  succeed(cudaMalloc(&most, available - 4096));
  size_t rest;
  succeed(cudaMemGetInfo(&rest, &total));
  assert_true(rest <= 4096);
  expect(cudaMalloc(&pointer, 8192), cudaErrorMemoryAllocation);
  succeed(cudaFree(most));
  succeed(cudaMemGetInfo(&rest, &total));
  assert_true(rest == available);
  size_t pitch;
  expect(cudaMallocPitch(&pointer, &pitch, (size_t)1 << 40, (size_t)1 << 40), cudaErrorMemoryAllocation);
  assert_null(pointer);
}

static void managed_may_exceed_the_device(void **state) {
  (void)state;
  size_t available, total;
  char *pointer;
  succeed(cudaMemGetInfo(&available, &total));
  succeed(cudaMallocManaged((void **)&pointer, total + 4096, cudaMemAttachGlobal));
  pointer[total] = 5; /* the host reaches it */
  assert_int_equal(pointer[total], 5);
  succeed(cudaFree(pointer));
}

static void wrong_frees(void **state) {
  (void)state;
  char *device, *pinned, *managed, local;
  succeed(cudaMalloc((void **)&device, 100));
  succeed(cudaMallocHost((void **)&pinned, 100));
  succeed(cudaMallocManaged((void **)&managed, 100, cudaMemAttachGlobal));
  expect(cudaFree(device + 1), cudaErrorInvalidValue);
  expect(cudaFree(&local), cudaErrorInvalidValue);
  expect(cudaFree(pinned), cudaErrorInvalidValue);
  expect(cudaFreeHost(device), cudaErrorInvalidValue);
  expect(cudaFreeHost(managed), cudaErrorInvalidValue);
  expect(cudaFreeHost(&local), cudaErrorInvalidValue);
  succeed(cudaFree(device));
  expect(cudaFree(device), cudaErrorInvalidValue);
  succeed(cudaFree(managed));
  succeed(cudaFreeHost(pinned));
  expect(cudaFreeHost(pinned), cudaErrorInvalidValue);
}

static void stream_ordered(void **state) {
  (void)state;
  void *a;
  cudaStream_t stream;
  succeed(cudaStreamCreate(&stream));
  succeed(cudaMallocAsync(&a, 100, stream));
  succeed(cudaFreeAsync(a, stream));
  expect(cudaFreeAsync(a, stream), cudaErrorInvalidValue);
  succeed(cudaMallocAsync(&a, 100, NULL));
  succeed(cudaFree(a));
  succeed(cudaStreamDestroy(stream));
  expect(cudaMallocAsync(&a, 100, stream), cudaErrorContextIsDestroyed);
}

static void registering(void **state) {
  (void)state;
  char *host = aligned_alloc(4096, 3 * 4096);
  memset(host, 7, 3 * 4096);
  expect(cudaHostUnregister(host), cudaErrorHostMemoryNotRegistered);
  expect(cudaHostRegister(NULL, 10, 0), cudaErrorInvalidValue);
  expect(cudaHostRegister(host, 0, 0), cudaErrorInvalidValue);
  expect(cudaHostRegister(host, 4096, 64), cudaErrorInvalidValue);
  succeed(cudaHostRegister(host, 2 * 4096, cudaHostRegisterMapped));
  expect(cudaHostRegister(host, 4096, 0), cudaErrorHostMemoryAlreadyRegistered);
  expect(cudaHostRegister(host + 4096, 2 * 4096, 0), cudaErrorHostMemoryAlreadyRegistered);
  void *device;
  succeed(cudaHostGetDevicePointer(&device, host + 16, 0));
  assert_ptr_equal(device, host + 16);
  expect(cudaHostUnregister(host + 16), cudaErrorInvalidValue); /* registered, but not from there on */
  succeed(cudaHostUnregister(host));
  expect(cudaHostGetDevicePointer(&device, host, 0), cudaErrorInvalidValue);
  assert_int_equal(host[5000], 7);
  free(host);
}

static void host_pointers(void **state) {
  (void)state;
  char *pinned;
  void *device;
  unsigned flags;
  succeed(cudaHostAlloc((void **)&pinned, 100, cudaHostAllocMapped | cudaHostAllocWriteCombined));
  succeed(cudaHostGetDevicePointer(&device, pinned, 0));
  assert_ptr_equal(device, pinned);
  expect(cudaHostGetDevicePointer(&device, pinned, 1), cudaErrorInvalidValue);
  expect(cudaHostGetDevicePointer(NULL, pinned, 0), cudaErrorInvalidValue);
  expect(cudaHostGetDevicePointer(&device, NULL, 0), cudaErrorInvalidValue);
  succeed(cudaHostGetFlags(&flags, pinned));
  assert_int_equal(flags, cudaHostAllocMapped | cudaHostAllocWriteCombined);
  succeed(cudaFreeHost(pinned));
  expect(cudaHostGetFlags(&flags, pinned), cudaErrorInvalidValue);
}

static void pointer_attributes(void **state) {
  (void)state;
  struct {
    int type, device;
    bool on_device, on_host;
  } cases[] = {{cudaMemoryTypeDevice, 0, true, false},
               {cudaMemoryTypeManaged, 0, true, true},
               {cudaMemoryTypeHost, 0, true, true},
               {cudaMemoryTypeUnregistered, cudaInvalidDeviceId, false, false}};
  char *pointers[4], local;
  succeed(cudaMalloc((void **)&pointers[0], 100));
  succeed(cudaMallocManaged((void **)&pointers[1], 100, cudaMemAttachGlobal));
  succeed(cudaMallocHost((void **)&pointers[2], 100));
  pointers[3] = &local;
  cudaPointerAttributes got;
  for (int i = 0; i < 4; i++) {
    char *inside = i < 3 ? pointers[i] + 50 : pointers[i];
    succeed(cudaPointerGetAttributes(&got, inside));
    assert_int_equal(got.type, cases[i].type);
    assert_int_equal(got.device, cases[i].device);
    assert_ptr_equal(got.devicePointer, cases[i].on_device ? inside : NULL);
    assert_ptr_equal(got.hostPointer, cases[i].on_host ? inside : NULL);
  }
  expect(cudaPointerGetAttributes(NULL, pointers[0]), cudaErrorInvalidValue);
  succeed(cudaFree(pointers[0]));
  succeed(cudaFree(pointers[1]));
  succeed(cudaFreeHost(pointers[2]));
  succeed(cudaPointerGetAttributes(&got, pointers[0]));
  assert_int_equal(got.type, cudaMemoryTypeUnregistered);
}

static void pitched(void **state) {
  (void)state;
  char *memory;
  size_t pitch;
  succeed(cudaMallocPitch((void **)&memory, &pitch, 100, 7));
  assert_true(pitch >= 100 && pitch % 256 == 0);
  succeed(cudaMemset2D(memory, pitch, 3, pitch, 7));
  expect(cudaMemset(memory, 0, 7 * pitch + 1), cudaErrorInvalidValue);
  succeed(cudaFree(memory));
  cudaPitchedPtr box;
  succeed(cudaMalloc3D(&box, (cudaExtent){100, 5, 3}));
  assert_int_equal(box.xsize, 100);
  assert_int_equal(box.ysize, 5);
  succeed(cudaMemset(box.ptr, 0, box.pitch * 15));
  succeed(cudaFree(box.ptr));
}

static void hints(void **state) {
  (void)state;
  char *managed, *device;
  const cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0}, cpu = {cudaMemLocationTypeHost, 0},
                        other = {cudaMemLocationTypeDevice, 3};
  succeed(cudaMallocManaged((void **)&managed, 10000, cudaMemAttachGlobal));
  succeed(cudaMalloc((void **)&device, 10000));
  succeed(cudaMemPrefetchAsync(managed, 10000, gpu, 0, NULL));
  succeed(cudaMemPrefetchAsync(managed + 5000, 5000, cpu, 0, NULL));
  expect(cudaMemPrefetchAsync(managed, 10001, gpu, 0, NULL), cudaErrorInvalidValue);
  expect(cudaMemPrefetchAsync(device, 100, gpu, 0, NULL), cudaErrorInvalidValue);
  expect(cudaMemPrefetchAsync(managed, 100, other, 0, NULL), cudaErrorInvalidDevice);
  succeed(cudaMemAdvise(managed, 10000, cudaMemAdviseSetReadMostly, gpu));
  expect(cudaMemAdvise(managed, 10000, (cudaMemoryAdvise)9, gpu), cudaErrorInvalidValue);
  expect(cudaMemAdvise(device, 10000, cudaMemAdviseSetReadMostly, gpu), cudaErrorInvalidValue);
  expect(cudaMemAdvise(managed, 10000, cudaMemAdviseSetAccessedBy, other), cudaErrorInvalidDevice);
  succeed(cudaFree(managed));
  succeed(cudaFree(device));
}

static void reset_takes_everything(void **state) {
  (void)state;
  void *device, *pinned;
  cudaStream_t stream;
  cudaEvent_t event;
  succeed(cudaMalloc(&device, 100));
  succeed(cudaMallocHost(&pinned, 100));
  succeed(cudaStreamCreate(&stream));
  succeed(cudaEventCreate(&event));
  expect(cudaSetDevice(9), cudaErrorInvalidDevice);
  succeed(cudaDeviceReset());
  succeed(cudaGetLastError());
  expect(cudaFree(device), cudaErrorInvalidValue);
  expect(cudaFreeHost(pinned), cudaErrorInvalidValue);
  expect(cudaStreamDestroy(stream), cudaErrorContextIsDestroyed);
  expect(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
  succeed(cudaMalloc(&device, 100));
  succeed(cudaFree(device));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(allocation_is_zeroed_and_aligned),
      cmocka_unit_test(zero_sizes),
      cmocka_unit_test(bad_arguments),
      cmocka_unit_test(too_much),
      cmocka_unit_test(managed_may_exceed_the_device),
      cmocka_unit_test(wrong_frees),
      cmocka_unit_test(stream_ordered),
      cmocka_unit_test(registering),
      cmocka_unit_test(host_pointers),
      cmocka_unit_test(pointer_attributes),
      cmocka_unit_test(pitched),
      cmocka_unit_test(hints),
      cmocka_unit_test(reset_takes_everything),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
