/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that only one CUDA major has, in its own libcudart: texture objects of CUDA 11 whose description has one field
 * more, the elapsed time of CUDA 12.8, launches on several devices until CUDA 12. */
#include <stdlib.h>
#include <string.h>

#define CUDART_MAJOR 11
#include "driver/runtime_api/cudart_array.h"
#include "fatbin/fatbin.h"
#include "opened_library.h"

static void open_library(const char *file) {
  setenv("FARFAULT_MACHINE", "v100", 1);
  library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
}

static void seamless_textures(void **state) {
  (void)state;
  void *data;
  unsigned long long object;
  enum { BEHIND = 0x55555555 };
  cudaTextureDesc texture = {.maxAnisotropy = 3, .seamlessCubemap = 1}, found;
  cudaResourceDesc linear = {.resType = cudaResourceTypeLinear};
  open_library(FF_BUILD_DIR "/lib/farfault/libcudart.so.11.0");
  assert_int_equal(CALL(cudaMalloc, (void **, size_t), &data, 64), 0);
  linear.res.linear.devPtr = data;
  linear.res.linear.desc = (cudaChannelFormatDesc){32, 0, 0, 0, cudaChannelFormatKindFloat};
  linear.res.linear.sizeInBytes = 64;
  for (int whole = 0; whole < 2; whole++) {
    if (whole)
      assert_int_equal(CALL(cudaCreateTextureObject_v2,
                            (unsigned long long *, const void *, const void *, const void *), &object, &linear,
                            &texture, NULL),
                       0);
    else
      assert_int_equal(CALL(cudaCreateTextureObject, (unsigned long long *, const void *, const void *, const void *),
                            &object, &linear, &texture, NULL),
                       0);
    memset(&found, 0x55, sizeof found);
    assert_int_equal(CALL(cudaGetTextureObjectTextureDesc, (void *, unsigned long long), &found, object), 0);
    assert_true(found.maxAnisotropy == 3 && found.seamlessCubemap == BEHIND); /* that is not the caller's here */
    assert_int_equal(CALL(cudaGetTextureObjectTextureDesc_v2, (void *, unsigned long long), &found, object), 0);
    assert_true(found.maxAnisotropy == 3 && found.seamlessCubemap == whole);
    assert_int_equal(CALL(cudaDestroyTextureObject, (unsigned long long), object), 0);
  }
  assert_int_equal(CALL(cudaGetTextureObjectTextureDesc_v2, (void *, unsigned long long), NULL, object), 1);
}

static void elapsed_time(void **state) {
  (void)state;
  void *events[2], *data;
  float first = -1, second = -2;
  open_library(FF_BUILD_DIR "/lib/farfault/libcudart.so.12");
  assert_int_equal(CALL(cudaMalloc, (void **, size_t), &data, 1 << 20), 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(CALL(cudaEventCreate, (void **), &events[i]), 0);
    assert_int_equal(CALL(cudaMemsetAsync, (void *, int, size_t, void *), data, 1, 1 << 20, NULL), 0);
    assert_int_equal(CALL(cudaEventRecord, (void *, void *), events[i], NULL), 0);
  }
  assert_int_equal(CALL(cudaEventSynchronize, (void *), events[1]), 0);
  assert_int_equal(CALL(cudaEventElapsedTime, (float *, void *, void *), &first, events[0], events[1]), 0);
  assert_int_equal(CALL(cudaEventElapsedTime_v2, (float *, void *, void *), &second, events[0], events[1]), 0);
  assert_true(first > 0 && memcmp(&first, &second, sizeof first) == 0);
  assert_int_equal(CALL(cudaEventElapsedTime_v2, (float *, void *, void *), NULL, events[0], events[1]), 1);
}

static const char seven[] = ".version 7.0\n.target sm_60\n.address_size 64\n"
                            ".visible .entry seven(.param .u64 to)\n{\n.reg .b32 %r1;\n.reg .b64 %rd1;\n"
                            "ld.param.u64 %rd1, [to];\nmov.u32 %r1, 7;\nst.global.u32 [%rd1], %r1;\nret;\n}\n";
static char stub, other;

static void register_seven(void) {
  static struct {
    uint32_t magic, version;
    const void *data, *extra;
  } wrapper = {FATBIN_WRAPPER_MAGIC, 1, NULL, NULL};
  static ff_text bytes;
  fatbin_item item = {.kind = FATBIN_KIND_PTX, .arch = 60, .version_major = 7, .bytes = seven, .size = sizeof seven};
  assert_int_equal(fatbin_encode(&item, 1, &bytes, NULL), FF_OK);
  wrapper.data = bytes.chars;
  typedef void **open_binary(void *);
  typedef void name_function(void **, const void *, char *, const char *, int, void *, void *, void *, void *, int *);
  void **binary = ((open_binary *)dlsym(library, "__cudaRegisterFatBinary"))(&wrapper);
  ((name_function *)dlsym(library, "__cudaRegisterFunction"))(binary, &stub, "seven", "seven", -1, NULL, NULL, NULL,
                                                              NULL, NULL);
}

static void launch_on_devices(void **state) {
  (void)state;
  struct {
    const void *function;
    dim3 grid, block;
    void **arguments;
    size_t shared;
    void *stream;
  } list[2] = {{.function = &stub, .grid = {1, 1, 1}, .block = {1, 1, 1}}};
  void *to;
  int found = 0;
  open_library(FF_BUILD_DIR "/lib/farfault/libcudart.so.12");
  register_seven();
  assert_int_equal(CALL(cudaMalloc, (void **, size_t), &to, 4), 0);
  assert_int_equal(CALL(cudaStreamCreate, (void **), &list[0].stream), 0);
  list[0].arguments = (void *[]){&to};
  list[1] = list[0];
#define LAUNCH(count, flags) \
  CALL(cudaLaunchCooperativeKernelMultiDevice, (void *, unsigned, unsigned), list, count, flags)
  assert_int_equal(LAUNCH(1, 0), 0);
  assert_int_equal(CALL(cudaMemcpy, (void *, const void *, size_t, int), &found, to, 4, 2), 0);
  assert_int_equal(found, 7);
  assert_int_equal(LAUNCH(0, 0), cudaErrorInvalidValue);
  assert_int_equal(LAUNCH(1, 4), cudaErrorInvalidValue);
  assert_int_equal(LAUNCH(2, 0), cudaErrorInvalidValue); /* there is one device */
  list[0].function = &other;
  assert_int_equal(LAUNCH(1, 0), cudaErrorInvalidResourceHandle); /* as every launch of what was not registered */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(seamless_textures), cmocka_unit_test(elapsed_time),
                                     cmocka_unit_test(launch_on_devices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
