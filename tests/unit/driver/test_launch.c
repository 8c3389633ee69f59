/* SPDX-License-Identifier: Apache-2.0 */
/* Registration and launches from end to end: PTX in a fat binary, host stubs, arguments, symbols, attributes,
 * faults. */
#include "driver/copy_attributes.h"
#include "program.h"

cudaError_t cudaFuncGetParamCount(const void *, size_t *),
    cudaLaunchHostFunc_v2(cudaStream_t, cudaHostFn_t, void *, unsigned),
    cudaMemcpyWithAttributesAsync(void *, const void *, size_t, cudaMemcpyAttributes *, cudaStream_t),
    cudaMemcpy3DWithAttributesAsync(cudaMemcpy3DBatchOp *, unsigned long long, cudaStream_t);

#define ENTRY ".visible .entry "
#define INDEX                \
  "mov.u32 %r1, %ctaid.x;\n" \
  "mov.u32 %r2, %ntid.x;\n"  \
  "mov.u32 %r3, %tid.x;\n"   \
  "mad.lo.s32 %r4, %r1, %r2, %r3;\n"

static const char main_module[] = PTX_HEAD
    ".visible .const .align 4 .b8 scale[4];\n"
    ".visible .global .align 4 .u32 counter = 40;\n"
    /* y[i] = scale * x[i] + b, i < n; parameters of mixed sizes */
    ENTRY "affine(.param .u64 x, .param .u8 b, .param .u64 y, .param .u32 n)\n{\n"
    ".reg .pred %p<2>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<8>;\n"
    "ld.param.u64 %rd1, [x];\nld.param.u8 %r5, [b];\nld.param.u64 %rd2, [y];\nld.param.u32 %r6, [n];\n" INDEX
    "setp.ge.u32 %p1, %r4, %r6;\n@%p1 bra DONE;\n"
    "mul.wide.u32 %rd3, %r4, 4;\nadd.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd2, %rd3;\n"
    "ld.global.u32 %r7, [%rd4];\nld.const.u32 %r8, [scale];\nmad.lo.u32 %r7, %r7, %r8, %r5;\nst.global.u32 [%rd5], %r7;\n"
    "DONE:\nret;\n}\n" ENTRY "count()\n{\n.reg .b32 %r<3>;\n"
    "atom.global.add.u32 %r1, [counter], 1;\nret;\n}\n" ENTRY "bounded() .maxntid 64, 1, 1\n{\nret;\n}\n" ENTRY
    "sharing(.param .u64 out)\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<3>;\n.shared .align 4 .b8 box[1024];\n"
    "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nst.shared.u32 [box], %r1;\nret;\n}\n" ENTRY
    "poke(.param .u64 at)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<3>;\n"
    "ld.param.u64 %rd1, [at];\nmov.u32 %r1, 5;\nst.global.u32 [%rd1], %r1;\nret;\n}\n" ENTRY "stop()\n{\ntrap;\n}\n";

static const char part_one[] = PTX_HEAD
    ".extern .func (.param .b32 result) twice(.param .b32 value);\n" ENTRY
    "linked(.param .u64 out)\n{\n.reg .b32 %r<5>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\n"
    "{\n.param .b32 a;\nst.param.b32 [a], %r1;\n.param .b32 r;\ncall.uni (r), twice, (a);\nld.param.b32 %r2, [r];\n}\n"
    "mul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], %r2;\nret;\n}\n";
/* Needed by nothing, though it speaks of the others' names: it is not even read. */
static const char part_useless[] = PTX_HEAD
    "/* } .visible .func twice */ .extern .func (.param .b32 result) twice(.param .b32 value);\n.extern .global .u32 step;\n"
    ".visible .func lost()\n{\nthis is linked to nothing, step and twice are called;\n}\n";
static const char part_three[] =
    PTX_HEAD ".visible .global .align 4 .u32 step = 7;\n.visible .entry other()\n{\nret;\n}\n";
static const char part_two[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".extern .global .align 4 .u32 step;\n"
    ".visible .func (.param .b32 result) twice(.param .b32 value)\n{\n.reg .b32 %r<3>;\n"
    "ld.param.b32 %r1, [value];\nld.global.u32 %r2, [step];\nmad.lo.u32 %r2, %r1, 2, %r2;\nst.param.b32 [result], %r2;\nret;\n}\n";

STUB(affine);
STUB(count);
STUB(bounded);
STUB(sharing);
STUB(poke);
STUB(stop);
STUB(linked);
STUB(absent);
STUB(scale);
STUB(counter);
STUB(ghost);

static int set_up(void **state) {
  (void)state;
  const char *one[] = {main_module}, *linked_parts[] = {part_three, part_useless, part_one, part_two};
  void **handle = register_ptx(one, 1);
  register_kernel(handle, affine, "affine");
  register_kernel(handle, count, "count");
  register_kernel(handle, bounded, "bounded");
  register_kernel(handle, sharing, "sharing");
  register_kernel(handle, poke, "poke");
  register_kernel(handle, stop, "stop");
  register_kernel(handle, absent, "absent");
  __cudaRegisterVar(handle, scale, "scale", "scale", 0, 4, 1, 0);
  __cudaRegisterVar(handle, counter, "counter", "counter", 0, 4, 0, 0);
  __cudaRegisterVar(handle, ghost, "ghost", "ghost", 0, 4, 0, 0);
  __cudaRegisterFatBinaryEnd(handle);
  register_kernel(register_ptx(linked_parts, 4), linked, "linked");
  return 0;
}

static void a_kernel_computes(void **state) {
  (void)state;
  enum { N = 1000 };
  uint32_t x[N], y[N], factor = 3, n = N - 1;
  uint32_t *device_x, *device_y;
  uint8_t b = 200;
  for (uint32_t i = 0; i < N; i++) x[i] = i * i;
  succeed(cudaMalloc((void **)&device_x, sizeof x));
  succeed(cudaMalloc((void **)&device_y, sizeof y));
  succeed(cudaMemset(device_y, 0xff, sizeof y));
  succeed(cudaMemcpyToSymbol(scale, &factor, 4, 0, cudaMemcpyHostToDevice));
  succeed(cudaMemcpy(device_x, x, sizeof x, cudaMemcpyHostToDevice));
  void *arguments[] = {&device_x, &b, &device_y, &n};
  succeed(launch(affine, (N + 63) / 64, 64, arguments));
  succeed(cudaGetLastError());
  succeed(cudaMemcpy(y, device_y, sizeof y, cudaMemcpyDeviceToHost));
  for (uint32_t i = 0; i < n; i++) assert_int_equal(y[i], 3 * x[i] + 200);
  assert_int_equal(y[n], UINT32_MAX);
  succeed(cudaFree(device_x));
  succeed(cudaFree(device_y));
}

/* As the code that nvcc generates for <<<...>>>. */
static void a_kernel_is_launched_by_its_handle(void **state) {
  (void)state;
  cudaKernel_t kernel, nothing;
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream, made;
  uint32_t before, after;
  succeed(cudaStreamCreate(&made));
  succeed(cudaMemcpyFromSymbol(&before, counter, 4, 0, cudaMemcpyDeviceToHost));
  assert_int_equal(__cudaPushCallConfiguration((dim3){2, 3, 1}, (dim3){4, 2, 1}, 64, made), 0);
  assert_int_equal(__cudaPushCallConfiguration((dim3){1, 1, 1}, (dim3){1, 1, 1}, 0, NULL), 0);
  succeed(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
  assert_int_equal(grid.x * block.x, 1);
  succeed(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
  assert_int_equal(grid.y, 3);
  assert_int_equal(block.x, 4);
  assert_int_equal(shared, 64);
  assert_ptr_equal(stream, made);
  expect(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaErrorMissingConfiguration);
  succeed(__cudaGetKernel(&kernel, count));
  succeed(__cudaLaunchKernel(kernel, grid, block, NULL, shared, stream));
  succeed(__cudaLaunchKernel_ptsz(kernel, grid, block, NULL, shared, NULL));
  succeed(cudaMemcpyFromSymbol(&after, counter, 4, 0, cudaMemcpyDeviceToHost));
  assert_int_equal(after - before, 2 * 6 * 8);
  expect(__cudaGetKernel(&nothing, &kernel), cudaErrorInvalidDeviceFunction);
  assert_null(nothing);
  expect(__cudaLaunchKernel(nothing, grid, block, NULL, 0, NULL), cudaErrorInvalidDeviceFunction);
  succeed(cudaStreamDestroy(made));
  (void)cudaGetLastError();
}

static void shapes_are_checked(void **state) {
  (void)state;
  const struct {
    dim3 grid, block;
  } bad[] = {{{0, 1, 1}, {1, 1, 1}},           {{1, 0, 1}, {1, 1, 1}},     {{1, 1, 0}, {1, 1, 1}},
             {{1, 1, 1}, {0, 1, 1}},           {{1, 1, 1}, {1, 0, 1}},     {{1, 1, 1}, {1, 1, 0}},
             {{0x80000000u, 1, 1}, {1, 1, 1}}, {{1, 65536, 1}, {1, 1, 1}}, {{1, 1, 65536}, {1, 1, 1}},
             {{1, 1, 1}, {1025, 1, 1}},        {{1, 1, 1}, {1, 1025, 1}},  {{1, 1, 1}, {1, 1, 65}},
             {{1, 1, 1}, {32, 33, 1}}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    expect(cudaLaunchKernel(count, bad[i].grid, bad[i].block, NULL, 0, NULL), cudaErrorInvalidConfiguration);
    expect(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
    expect(cudaGetLastError(), cudaErrorInvalidConfiguration);
    succeed(cudaGetLastError());
  }
  succeed(cudaLaunchKernel(count, (dim3){1, 1, 1}, (dim3){16, 16, 4}, NULL, 0, NULL));
  succeed(cudaLaunchKernel(count, (dim3){1, 2, 3}, (dim3){1, 1, 64}, NULL, 0, NULL));
}

static void launches_are_refused(void **state) {
  (void)state;
  char *out;
  succeed(cudaMalloc((void **)&out, 64));
  void *arguments[] = {&out}, *missing[] = {NULL};
  succeed(launch(bounded, 1, 64, NULL));
  expect(launch(bounded, 1, 65, NULL), cudaErrorInvalidValue);
  expect(launch(NULL, 1, 1, NULL), cudaErrorInvalidDeviceFunction);
  expect(launch(scale, 1, 1, NULL), cudaErrorInvalidResourceHandle); /* it could be a kernel's handle, and is none */
  expect(launch(absent, 1, 1, NULL), cudaErrorInvalidDeviceFunction);
  expect(launch(sharing, 1, 1, NULL), cudaErrorInvalidValue);
  expect(launch(sharing, 1, 1, missing), cudaErrorInvalidValue);
  expect(cudaLaunchKernel(count, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, (cudaStream_t)(uintptr_t)0x40),
         cudaErrorInvalidResourceHandle);
  succeed(cudaLaunchKernel(sharing, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 47 * 1024, NULL));
  expect(cudaLaunchKernel(sharing, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 48 * 1024, NULL),
         cudaErrorInvalidValue);
  succeed(cudaFuncSetAttribute(sharing, cudaFuncAttributeMaxDynamicSharedMemorySize, 60 * 1024));
  succeed(cudaLaunchKernel(sharing, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 60 * 1024, NULL));
  expect(cudaLaunchKernel(sharing, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 60 * 1024 + 1, NULL),
         cudaErrorInvalidValue);
  expect(cudaFuncSetAttribute(sharing, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20), cudaErrorInvalidValue);
  expect(cudaFuncSetAttribute(sharing, cudaFuncAttributeMaxDynamicSharedMemorySize, -1), cudaErrorInvalidValue);
  expect(cudaFuncSetAttribute(sharing, (cudaFuncAttribute)3, 1), cudaErrorInvalidValue);
  expect(cudaFuncSetAttribute(scale, cudaFuncAttributePreferredSharedMemoryCarveout, 50),
         cudaErrorInvalidResourceHandle);
  expect(cudaFuncSetAttribute(sharing, cudaFuncAttributePreferredSharedMemoryCarveout, 101), cudaErrorInvalidValue);
  succeed(cudaFuncSetAttribute(sharing, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
  succeed(cudaFree(out));
  (void)cudaGetLastError();
}

static void extended_launches(void **state) {
  (void)state;
  cudaLaunchAttribute attributes[2] = {{.id = cudaLaunchAttributeCooperative, .val.cooperative = 1},
                                       {.id = cudaLaunchAttributeClusterDimension, .val.clusterDim = {1, 1, 1}}};
  cudaLaunchConfig_t config = {.gridDim = {2, 1, 1}, .blockDim = {32, 1, 1}, .attrs = attributes, .numAttrs = 2};
  succeed(cudaLaunchKernelExC(&config, count, NULL));
  config.gridDim.x = 1u << 20;
  expect(cudaLaunchKernelExC(&config, count, NULL), cudaErrorCooperativeLaunchTooLarge);
  expect(cudaLaunchCooperativeKernel(count, (dim3){1u << 20, 1, 1}, (dim3){32, 1, 1}, NULL, 0, NULL),
         cudaErrorCooperativeLaunchTooLarge);
  config.gridDim.x = 2;
  attributes[1].val.clusterDim.x = 2;
  succeed(cudaLaunchKernelExC(&config, count, NULL));
  attributes[1].val.clusterDim.x = 3; /* does not divide the grid */
  expect(cudaLaunchKernelExC(&config, count, NULL), cudaErrorInvalidClusterSize);
  static const struct {
    cudaLaunchAttribute attribute;
    cudaError_t error;
  } others[] = {
      {{.id = cudaLaunchAttributeIgnore}, cudaSuccess},
      {{.id = cudaLaunchAttributePriority, .val.priority = -1}, cudaSuccess},
      {{.id = cudaLaunchAttributeProgrammaticStreamSerialization, .val.cooperative = 1}, cudaSuccess},
      {{.id = cudaLaunchAttributePreferredSharedMemoryCarveout, .val.sharedMemCarveout = 100}, cudaSuccess},
      {{.id = cudaLaunchAttributePreferredSharedMemoryCarveout, .val.sharedMemCarveout = 101}, cudaErrorInvalidValue},
      {{.id = cudaLaunchAttributeSynchronizationPolicy, .val.syncPolicy = 1}, cudaErrorInvalidValue},
      {{.id = cudaLaunchAttributeDeviceUpdatableKernelNode, .val.deviceUpdatableKernelNode.deviceUpdatable = 1},
       cudaErrorNotSupported},
      {{.id = (cudaLaunchAttributeID)19}, cudaErrorInvalidValue},
      {{.id = (cudaLaunchAttributeID)-1}, cudaErrorInvalidValue},
  };
  config.numAttrs = 1;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    attributes[0] = others[i].attribute;
    if (cudaLaunchKernelExC(&config, count, NULL) != others[i].error) fail_msg("attribute %zu", i);
  }
  config.attrs = NULL;
  expect(cudaLaunchKernelExC(&config, count, NULL), cudaErrorInvalidValue);
  (void)cudaGetLastError();
}

static void attributes_and_occupancy(void **state) {
  (void)state;
  cudaFuncAttributes attributes;
  const char *name;
  size_t offset, size, bytes;
  int blocks;
  succeed(cudaFuncGetAttributes(&attributes, sharing));
  assert_int_equal(attributes.sharedSizeBytes, 1024);
  assert_int_equal(attributes.maxThreadsPerBlock, 1024);
  assert_int_equal(attributes.ptxVersion, 75);
  assert_true(attributes.numRegs > 0);
  succeed(cudaFuncGetAttributes(&attributes, bounded));
  assert_int_equal(attributes.maxThreadsPerBlock, 64);
  expect(cudaFuncGetAttributes(NULL, bounded), cudaErrorInvalidValue);
  expect(cudaFuncGetAttributes(&attributes, NULL), cudaErrorInvalidDeviceFunction);
  expect(cudaFuncGetAttributes(&attributes, absent), cudaErrorInvalidDeviceFunction);
  succeed(cudaFuncGetName(&name, affine));
  assert_string_equal(name, "affine");
  succeed(cudaFuncGetParamInfo(affine, 2, &offset, &size));
  assert_int_equal(offset, 16);
  assert_int_equal(size, 8);
  expect(cudaFuncGetParamInfo(affine, 4, &offset, &size), cudaErrorInvalidValue);
  succeed(cudaFuncGetParamCount(affine, &size));
  assert_int_equal(size, 4);
  expect(cudaFuncGetParamCount(affine, NULL), cudaErrorInvalidValue);
  expect(cudaFuncGetParamCount(NULL, &size), cudaErrorInvalidDeviceFunction);
  succeed(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, count, 1024, 0, 0));
  int threads_per_sm;
  succeed(cudaDeviceGetAttribute(&threads_per_sm, cudaDevAttrMaxThreadsPerMultiProcessor, 0));
  assert_int_equal(blocks, threads_per_sm / 1024);
  int shared_per_sm;
  succeed(cudaDeviceGetAttribute(&shared_per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, 0));
  succeed(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, count, 32, 40 << 10));
  assert_int_equal(blocks, shared_per_sm / ((40 << 10) + 1024));
  expect(cudaOccupancyMaxActiveBlocksPerMultiprocessor(NULL, count, 32, 0), cudaErrorInvalidValue);
  expect(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, count, 0, 0), cudaErrorInvalidValue);
  expect(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, count, 32, 0, 2), cudaErrorInvalidValue);
  succeed(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, count, 1, 64)); /* what a launch takes without more ado */
  int per_block, opted_in;
  succeed(cudaDeviceGetAttribute(&per_block, cudaDevAttrMaxSharedMemoryPerBlock, 0));
  succeed(cudaDeviceGetAttribute(&opted_in, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  assert_int_equal(bytes, per_block);
  succeed(cudaFuncSetAttribute(count, cudaFuncAttributeMaxDynamicSharedMemorySize, opted_in));
  succeed(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, count, 1, 64));
  assert_true(bytes > (size_t)per_block && bytes <= (size_t)opted_in);
  succeed(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, count, 2, 64));
  succeed(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, count, 64, bytes));
  assert_true(blocks >= 2);
  succeed(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, count, 64, bytes + 256));
  assert_true(blocks < 2);
  succeed(cudaFuncSetCacheConfig(count, cudaFuncCachePreferL1));
  expect(cudaFuncSetCacheConfig(count, (cudaFuncCache)9), cudaErrorInvalidValue);
  (void)cudaGetLastError();
}

static void symbols(void **state) {
  (void)state;
  uint32_t value = 77, back = 0, *address;
  size_t size;
  succeed(cudaMemcpyToSymbol(counter, &value, 4, 0, cudaMemcpyHostToDevice));
  succeed(cudaMemcpyFromSymbol(&back, counter, 4, 0, cudaMemcpyDefault));
  assert_int_equal(back, 77);
  succeed(cudaGetSymbolAddress((void **)&address, counter));
  succeed(cudaGetSymbolSize(&size, counter));
  assert_int_equal(size, 4);
  succeed(cudaMemcpy(&back, address, 4, cudaMemcpyDeviceToHost));
  assert_int_equal(back, 77);
  expect(cudaFree(address), cudaErrorInvalidValue); /* not the program's to free */
  expect(cudaMemcpyToSymbol(counter, &value, 4, 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect(cudaMemcpyToSymbol(counter, &value, 5, 0, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect(cudaMemcpyToSymbol(counter, &value, 4, SIZE_MAX, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect(cudaMemcpyToSymbol(counter, &value, 4, 0, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
  expect(cudaMemcpyFromSymbol(&value, counter, 4, 0, cudaMemcpyHostToDevice), cudaErrorInvalidMemcpyDirection);
  expect(cudaMemcpyToSymbol(&value, &value, 4, 0, cudaMemcpyHostToDevice), cudaErrorInvalidSymbol);
  expect(cudaMemcpyToSymbol(NULL, &value, 4, 0, cudaMemcpyHostToDevice), cudaErrorInvalidSymbol);
  expect(cudaGetSymbolAddress((void **)&address, ghost), cudaErrorInvalidSymbol);
  expect(cudaGetSymbolSize(NULL, counter), cudaErrorInvalidValue);
  (void)cudaGetLastError();
}

/* Of four translation units three are needed, one for a name of the program's, two for names of theirs. */
static void linked_modules(void **state) {
  (void)state;
  uint32_t *device, host[32];
  succeed(cudaMalloc((void **)&device, sizeof host));
  void *arguments[] = {&device};
  succeed(launch(linked, 1, 32, arguments));
  succeed(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  for (uint32_t i = 0; i < 32; i++) assert_int_equal(host[i], 2 * i + 7);
  succeed(cudaFree(device));
  cudaFuncAttributes attributes;
  succeed(cudaFuncGetAttributes(&attributes, linked));
  assert_int_equal(attributes.ptxVersion, 75); /* its own part's, whatever it is linked to */
}

static void kernel_time(void **state) {
  (void)state;
  cudaEvent_t start, end;
  float ms = 0;
  succeed(cudaEventCreate(&start));
  succeed(cudaEventCreate(&end));
  succeed(cudaEventRecord(start, NULL));
  succeed(launch(count, 100, 64, NULL));
  succeed(cudaEventRecord(end, NULL));
  succeed(cudaEventSynchronize(end));
  succeed(cudaEventElapsedTime(&ms, start, end));
  assert_true(ms > 0);
  succeed(cudaEventDestroy(start));
  succeed(cudaEventDestroy(end));
}

/* A fault is met by the call after the launch, by every call from then on, and goes with a reset. */
static void check_sticky(const void *stub, void **arguments, cudaError_t error) {
  int count_of_devices;
  char *pointer = NULL;
  succeed(launch(stub, 1, 1, arguments));
  succeed(cudaPeekAtLastError());
  assert_int_equal(cudaDeviceSynchronize(), error);
  assert_int_equal(cudaGetLastError(), error);
  succeed(cudaGetLastError()); /* read and gone, until another call returns it */
  assert_int_equal(cudaMalloc((void **)&pointer, 10), error);
  assert_null(pointer);
  assert_int_equal(cudaPeekAtLastError(), error);
  assert_int_equal(launch(count, 1, 1, NULL), error);
  assert_int_equal(cudaFree(NULL), error);
  assert_int_equal(cudaGetDeviceCount(&count_of_devices), error);
  succeed(cudaDeviceReset());
  succeed(cudaGetLastError());
  succeed(cudaMalloc((void **)&pointer, 10));
  succeed(cudaFree(pointer));
  succeed(launch(count, 1, 1, NULL));
  succeed(cudaDeviceSynchronize());
}

/* A kernel that writes over the end of its array, but not of the array's last page: said, for eight arrays, and no
 * error. */
static void overruns_are_said(void **state) {
  (void)state;
  fflush(stderr);
  int saved = dup(2), words = 0;
  FILE *messages = tmpfile();
  dup2(fileno(messages), 2);
  for (uint32_t n = 0; n < 12; n++) {
    char *memory;
    uint64_t behind;
    succeed(cudaMalloc((void **)&memory, 64));
    behind = (uint64_t)(uintptr_t)memory + 1024;
    void *arguments[] = {&behind};
    succeed(launch(poke, 1, 1, arguments));
    succeed(cudaDeviceSynchronize());
    succeed(cudaFree(memory));
  }
  dup2(saved, 2);
  close(saved);
  char text[16384] = {0};
  rewind(messages);
  assert_true(fread(text, 1, sizeof text - 1, messages) > 0);
  fclose(messages);
  for (const char *at = text; (at = strstr(at, "a write of 4 bytes at 0x")); at++) words++;
  assert_int_equal(words, 8);
  assert_non_null(strstr(
      text, "a GPU does not notice that, and the kernel goes on; `farfault memcheck` reports all such accesses"));
  assert_non_null(strstr(text, "farfault: accesses over the ends of further allocations are not said any more"));
}

static void faults_are_sticky(void **state) {
  (void)state;
  fflush(stderr);
  int saved = dup(2); /* their messages are not this test's output */
  FILE *messages = tmpfile();
  dup2(fileno(messages), 2);
  uint64_t nowhere = 16, odd;
  char *memory;
  void *arguments[] = {&nowhere};
  check_sticky(poke, arguments, cudaErrorIllegalAddress);
  succeed(cudaMalloc((void **)&memory, 64));
  odd = (uint64_t)(uintptr_t)memory + 2;
  arguments[0] = &odd;
  check_sticky(poke, arguments, cudaErrorMisalignedAddress);
  check_sticky(stop, NULL, cudaErrorLaunchFailure);
  dup2(saved, 2);
  close(saved);
  char text[8192] = {0};
  rewind(messages);
  size_t length = fread(text, 1, sizeof text - 1, messages);
  assert_true(length > 0);
  assert_memory_equal(text, "farfault: ", 10);
  assert_non_null(strstr(text, "poke"));
  assert_non_null(strstr(text, "stop"));
  fclose(messages);
}

static void reset_restores_variables(void **state) {
  (void)state;
  uint32_t value = 1;
  succeed(cudaMemcpyToSymbol(counter, &value, 4, 0, cudaMemcpyHostToDevice));
  succeed(cudaDeviceReset());
  succeed(cudaMemcpyFromSymbol(&value, counter, 4, 0, cudaMemcpyDeviceToHost));
  assert_int_equal(value, 40); /* its initial value */
}

static void unregistered_code_is_refused(void **state) {
  (void)state;
  STUB(leaving);
  const char *text[] = {PTX_HEAD ENTRY "leaving()\n{\nret;\n}\n"};
  void **handle = register_ptx(text, 1);
  register_kernel(handle, leaving, "leaving");
  succeed(launch(leaving, 1, 1, NULL));
  __cudaUnregisterFatBinary(handle);
  expect(launch(leaving, 1, 1, NULL), cudaErrorInvalidDeviceFunction);
  __cudaUnregisterFatBinary(handle); /* twice: ignored */
  (void)cudaGetLastError();
}

/* More values at once than 1024 threads have registers for; the compiler that fits 512 threads into an SM four times
 * spills them. */
static void promised_threads_have_registers(void **state) {
  (void)state;
  STUB(free_kernel);
  STUB(promised_kernel);
  ff_text text = {0};
  ff_text_add(&text, PTX_HEAD);
  for (int promised = 0; promised < 2; promised++) {
    ff_text_add(&text, ".visible .entry %s(.param .u64 out) %s\n{\n.reg .b64 %%p;\n.reg .b32 %%v<230>;\n",
                promised ? "promised" : "free", promised ? ".maxntid 512\n.minnctapersm 2" : "");
    ff_text_add(&text, "ld.param.u64 %%p, [out];\n");
    for (int i = 0; i < 200; i++) ff_text_add(&text, "ld.global.u32 %%v%d, [%%p+%d];\n", i, 4 * i);
    for (int i = 0; i < 200; i++) ff_text_add(&text, "st.global.u32 [%%p+%d], %%v%d;\n", 4 * i, 199 - i);
    ff_text_add(&text, "ret;\n}\n");
  }
  void **handle = register_ptx((const char *const[]){text.chars}, 1);
  register_kernel(handle, free_kernel, "free");
  register_kernel(handle, promised_kernel, "promised");
  void *memory;
  succeed(cudaMalloc(&memory, 4096));
  void *arguments[] = {&memory};
  expect(launch(free_kernel, 1, 512, arguments), cudaErrorLaunchOutOfResources);
  succeed(launch(promised_kernel, 1, 512, arguments));
  cudaFuncAttributes attributes;
  int blocks;
  succeed(cudaFuncGetAttributes(&attributes, promised_kernel));
  assert_true(attributes.numRegs <= 64);
  succeed(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, promised_kernel, 512, 0));
  assert_int_equal(blocks, 2);
  succeed(cudaFree(memory));
  free(text.chars);
  (void)cudaGetLastError();
}

static void no_ptx_is_said(void **state) {
  (void)state;
  STUB(machine_only);
  fatbin_item item = {.kind = FATBIN_KIND_ELF, .arch = 75, .bytes = "\177ELF....", .size = 8};
  ff_text bytes = {0};
  assert_int_equal(fatbin_encode(&item, 1, &bytes, NULL), FF_OK);
  static wrapper made;
  made = (wrapper){.magic = FATBIN_WRAPPER_MAGIC, .version = 1, .data = bytes.chars};
  register_kernel(__cudaRegisterFatBinary(&made), machine_only, "machine_only");
  int saved = dup(2);
  FILE *messages = tmpfile();
  dup2(fileno(messages), 2);
  expect(launch(machine_only, 1, 1, NULL), cudaErrorNoKernelImageForDevice);
  expect(launch(machine_only, 1, 1, NULL), cudaErrorNoKernelImageForDevice);
  dup2(saved, 2);
  close(saved);
  char text[4096] = {0};
  rewind(messages);
  assert_true(fread(text, 1, sizeof text - 1, messages) > 0);
  char *said = strstr(text, "-gencode");
  assert_non_null(said);
  assert_null(strstr(said + 1, "-gencode")); /* once */
  fclose(messages);
  (void)cudaGetLastError();
}

/* The container keeps what nvcc was told: -maxrregcount holds for kernels that say nothing themselves. */
static void a_register_limit_of_the_compiler(void **state) {
  (void)state;
  STUB(many);
  STUB(own_limit);
  ff_text text = {0}, bytes = {0};
  for (int k = 0; k < 2; k++) {
    ff_text_add(
        &text, "%s" ENTRY "%s(.param .u64 p)%s\n{\n.reg .b64 %%rd<2>;\n.reg .b32 %%v<100>;\nld.param.u64 %%rd1, [p];\n",
        k ? "" : PTX_HEAD, k ? "own_limit" : "many", k ? " .maxnreg 64" : "");
    for (int n = 0; n < 100; n++) ff_text_add(&text, "ld.volatile.global.u32 %%v%d, [%%rd1+%d];\n", n, 4 * n);
    for (int n = 0; n < 100; n++) ff_text_add(&text, "st.volatile.global.u32 [%%rd1], %%v%d;\n", n);
    ff_text_add(&text, "ret;\n}\n");
  }
  fatbin_item item = {.kind = FATBIN_KIND_PTX,
                      .arch = 75,
                      .version_major = 7,
                      .packing = FATBIN_ZSTD,
                      .options = "-maxrregcount=40 --compile-only",
                      .bytes = text.chars,
                      .size = strlen(text.chars) + 1};
  assert_int_equal(fatbin_encode(&item, 1, &bytes, NULL), FF_OK);
  wrapper *made = calloc(1, sizeof *made);
  *made = (wrapper){.magic = FATBIN_WRAPPER_MAGIC, .version = 1, .data = bytes.chars, .next = registered_wrappers};
  registered_wrappers = made;
  void **handle = __cudaRegisterFatBinary(made);
  register_kernel(handle, many, "many");
  register_kernel(handle, own_limit, "own_limit");
  cudaFuncAttributes attributes;
  succeed(cudaFuncGetAttributes(&attributes, many));
  assert_int_equal(attributes.numRegs, 40);
  succeed(cudaFuncGetAttributes(&attributes, own_limit));
  assert_int_equal(attributes.numRegs, 64);
  free(text.chars);
}

/* Calls that came with CUDA 13.1 and 13.2. */
static void count_call(void *calls) { ++*(int *)calls; }

static void calls_of_later_versions(void **state) {
  uint32_t words[4] = {5, 6, 7, 8}, back[4], *a, *b;
  int calls = 0;
  cudaMemcpyAttributes in_order = {.srcAccessOrder = 1}, of_no_order = {0};
  cudaStream_t stream;
  succeed(cudaStreamCreate(&stream));
  for (unsigned mode = 0; mode < 2; mode++) succeed(cudaLaunchHostFunc_v2(stream, count_call, &calls, mode));
  succeed(cudaStreamSynchronize(stream));
  assert_int_equal(calls, 2);
  expect(cudaLaunchHostFunc_v2(stream, count_call, &calls, 2), cudaErrorInvalidValue);
  succeed(cudaMalloc((void **)&a, 16));
  succeed(cudaMalloc((void **)&b, 16));
  succeed(cudaMemcpy(a, words, 16, cudaMemcpyHostToDevice));
  succeed(cudaMemcpyWithAttributesAsync(b + 1, a, 8, &in_order, stream));
  cudaMemcpy3DBatchOp box = {
      .src = {.type = 1, .op.ptr = {.ptr = a + 3}}, .dst = {.type = 1, .op.ptr = {.ptr = b + 3}}, .extent = {4, 1, 1}};
  box.srcAccessOrder = 1;
  succeed(cudaMemcpy3DWithAttributesAsync(&box, 0, stream));
  succeed(cudaStreamSynchronize(stream));
  succeed(cudaMemcpy(back, b, 16, cudaMemcpyDeviceToHost));
  assert_memory_equal(back, ((uint32_t[]){0, 5, 6, 8}), 16);
  expect(cudaMemcpyWithAttributesAsync(b, a, 8, &of_no_order, stream), cudaErrorInvalidValue);
  expect(cudaMemcpyWithAttributesAsync(b, a, 8, &in_order, NULL), cudaErrorInvalidValue);
  expect(cudaMemcpy3DWithAttributesAsync(&box, 1, stream), cudaErrorInvalidValue);
  succeed(cudaFree(a));
  succeed(cudaFree(b));
  succeed(cudaStreamDestroy(stream));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_register_limit_of_the_compiler),
      cmocka_unit_test(a_kernel_computes),
      cmocka_unit_test(a_kernel_is_launched_by_its_handle),
      cmocka_unit_test(shapes_are_checked),
      cmocka_unit_test(launches_are_refused),
      cmocka_unit_test(extended_launches),
      cmocka_unit_test(attributes_and_occupancy),
      cmocka_unit_test(calls_of_later_versions),
      cmocka_unit_test(symbols),
      cmocka_unit_test(linked_modules),
      cmocka_unit_test(kernel_time),
      cmocka_unit_test(overruns_are_said),
      cmocka_unit_test(faults_are_sticky),
      cmocka_unit_test(reset_restores_variables),
      cmocka_unit_test(unregistered_code_is_refused),
      cmocka_unit_test(promised_threads_have_registers),
      cmocka_unit_test(no_ptx_is_said),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
