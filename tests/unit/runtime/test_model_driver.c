/* SPDX-License-Identifier: Apache-2.0 */
/* The model driver finds what it is there to find: a wait that is missing gives a wrong result, memory unmapped or
 * freed under a pending operation is a violation, what is left over is counted, and a correct program has none of
 * these, in any order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model_driver.h"
#include "runtime/cuda.h"

enum { PIECE = 4096 };
static const cuda_driver *cuda;
static model_driver model;
static cuda_context context;

/* to[i] = from[i] + 1 */
static void add_one(model_launch *launch) {
  uint64_t to, from, bytes;
  memcpy(&to, launch->arguments[0], 8);
  memcpy(&from, launch->arguments[1], 8);
  memcpy(&bytes, launch->arguments[2], 8);
  unsigned char *data = malloc(bytes);
  launch->read(launch, from, data, bytes);
  for (uint64_t i = 0; i < bytes; i++) data[i]++;
  launch->write(launch, to, data, bytes);
  free(data);
}

static void begin(model_options options) {
  model.reset(&options);
  model.inject(NULL);
  assert_int_equal(cuda->DevicePrimaryCtxRetain(&context, 0), CUDA_OK);
  assert_int_equal(cuda->CtxSetCurrent(context), CUDA_OK);
}

static cuda_function find_add_one(cuda_module *module) {
  cuda_function function;
  assert_int_equal(cuda->ModuleLoadDataEx(module, "model\nadd_one 8 8 8\n", 0, NULL, NULL), CUDA_OK);
  assert_int_equal(cuda->ModuleGetFunction(&function, *module, "add_one"), CUDA_OK);
  return function;
}

static int launch(cuda_function function, cuda_stream stream, uint64_t to, uint64_t from, uint64_t bytes) {
  void *arguments[] = {&to, &from, &bytes};
  return cuda->LaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL);
}

static cuda_address map_piece(cuda_address address, bool access) {
  cuda_memory memory;
  cuda_memory_properties properties = {.type = 1, .location = {1, 0}};
  if (!address) assert_int_equal(cuda->MemAddressReserve(&address, PIECE, 0, 0, 0), CUDA_OK);
  assert_int_equal(cuda->MemCreate(&memory, PIECE, &properties, 0), CUDA_OK);
  assert_int_equal(cuda->MemMap(address, PIECE, 0, memory, 0), CUDA_OK);
  if (access) assert_int_equal(cuda->MemSetAccess(address, PIECE, &(cuda_memory_access){{1, 0}, 3}, 1), CUDA_OK);
  assert_int_equal(cuda->MemRelease(memory), CUDA_OK);
  return address;
}

/* Up in one stream, a kernel in another, down in a third; `waits`: with the two events that order them. True: the
 * result is right. */
static bool three_streams(uint64_t seed, uint32_t eagerness, bool waits) {
  begin((model_options){.seed = seed, .eagerness = eagerness});
  cuda_module module;
  cuda_function function = find_add_one(&module);
  cuda_stream streams[3];
  cuda_event events[2];
  unsigned char *host;
  for (int i = 0; i < 3; i++) assert_int_equal(cuda->StreamCreate(&streams[i], CUDA_STREAM_NON_BLOCKING), CUDA_OK);
  for (int i = 0; i < 2; i++) assert_int_equal(cuda->EventCreate(&events[i], CUDA_EVENT_DISABLE_TIMING), CUDA_OK);
  assert_int_equal(cuda->MemHostAlloc((void **)&host, 2 * PIECE, 0), CUDA_OK);
  memset(host, 7, 2 * PIECE);
  uint64_t address = map_piece(0, true);
  cuda->MemcpyHtoDAsync(address, host, PIECE, streams[0]);
  cuda->EventRecord(events[0], streams[0]);
  if (waits) cuda->StreamWaitEvent(streams[1], events[0], 0);
  launch(function, streams[1], address, address, PIECE);
  cuda->EventRecord(events[1], streams[1]);
  if (waits) cuda->StreamWaitEvent(streams[2], events[1], 0);
  cuda->MemcpyDtoHAsync(host + PIECE, address, PIECE, streams[2]);
  cuda->StreamSynchronize(streams[2]);
  bool right = true;
  for (int i = 0; i < PIECE; i++) right &= host[PIECE + i] == 8;
  cuda->CtxSynchronize();
  char text[1024];
  for (int i = 0; i < 3; i++) cuda->StreamDestroy(streams[i]);
  for (int i = 0; i < 2; i++) cuda->EventDestroy(events[i]);
  cuda->MemUnmap(address, PIECE);
  cuda->MemAddressFree(address, PIECE);
  cuda->MemFreeHost(host);
  cuda->ModuleUnload(module);
  cuda->DevicePrimaryCtxRelease(0);
  assert_int_equal(model.violations(text, sizeof text), 0);
  assert_int_equal(model.leaks(text, sizeof text), 0);
  return right;
}

static void a_missing_wait_is_a_wrong_result(void **state) {
  unsigned wrong = 0;
  for (uint64_t seed = 0; seed < 100; seed++) {
    assert_true(three_streams(seed, (uint32_t)seed, true));
    assert_false(three_streams(seed, 0, false)); /* what is not needed has not run */
    wrong += !three_streams(seed, 50, false);
  }
  assert_in_range(wrong, 20, 99);
}

static void nothing_runs_at_its_call(void **state) {
  begin((model_options){.seed = 1});
  unsigned char *host, byte = 9;
  cuda_stream stream;
  cuda->StreamCreate(&stream, CUDA_STREAM_NON_BLOCKING);
  cuda->MemHostAlloc((void **)&host, PIECE, 0);
  uint64_t address = map_piece(0, true);
  host[0] = 1;
  cuda->MemcpyHtoDAsync(address, host, PIECE, stream);
  host[0] = 2; /* is what arrives */
  cuda->MemcpyDtoHAsync(host + 1, address, 1, stream);
  assert_int_not_equal(host[1], 2);
  cuda->StreamSynchronize(stream);
  assert_int_equal(host[1], 2);
  cuda->MemcpyHtoDAsync(address, &byte, 1, stream); /* pageable: read at the call */
  byte = 10;
  cuda->MemcpyDtoHAsync(&byte, address, 1, stream); /* and done at it */
  assert_int_equal(byte, 9);
}

static void violations_are_told(void **state) {
  char text[2048];
  cuda_stream stream;
  cuda_module module;
  unsigned char *host;
  begin((model_options){.seed = 2});
  cuda_function function = find_add_one(&module);
  cuda->StreamCreate(&stream, CUDA_STREAM_NON_BLOCKING);
  uint64_t address = map_piece(0, true), other = map_piece(0, true);
  launch(function, stream, address, address, PIECE);
  assert_int_equal(cuda->MemUnmap(other, PIECE), CUDA_OK); /* no kernel uses that one */
  assert_int_equal(model.violations(NULL, 0), 0);
  cuda->MemUnmap(address, PIECE);
  assert_int_equal(model.violations(text, sizeof text), 1);
  assert_non_null(strstr(text, "use of memory that is unmapped under it"));
  assert_int_equal(cuda->CtxSynchronize(), 700); /* and the context is lost */
  assert_int_equal(cuda->StreamSynchronize(stream), 700);

  begin((model_options){.seed = 3});
  cuda->StreamCreate(&stream, CUDA_STREAM_NON_BLOCKING);
  cuda->MemHostAlloc((void **)&host, PIECE, 0);
  address = map_piece(0, true);
  cuda->MemcpyHtoDAsync(address, host, PIECE, stream);
  cuda->MemFreeHost(host);
  assert_int_equal(model.violations(text, sizeof text), 1);
  assert_non_null(strstr(text, "freed under a pending copy"));

  begin((model_options){.seed = 4});
  function = find_add_one(&module);
  address = map_piece(0, false);
  launch(function, NULL, address, address, 8);
  cuda->CtxSynchronize();
  assert_int_equal(model.violations(text, sizeof text), 1);
  assert_non_null(strstr(text, "not accessible"));
}

static void mapping_has_rules(void **state) {
  cuda_memory memory;
  cuda_memory_properties properties = {.type = 1, .location = {1, 0}};
  begin((model_options){.seed = 5, .memory = 4 * PIECE});
  cuda_address address, alias;
  assert_int_equal(cuda->MemAddressReserve(&address, 2 * PIECE, 0, 0, 0), CUDA_OK);
  assert_int_equal(cuda->MemAddressReserve(&alias, 2 * PIECE, 0, 0, 0), CUDA_OK);
  assert_int_equal(cuda->MemCreate(&memory, 2 * PIECE, &properties, 0), CUDA_OK);
  assert_int_equal(cuda->MemMap(address, PIECE, 0, memory, 0), CUDA_INVALID_VALUE);
  assert_int_equal(cuda->MemMap(address, 2 * PIECE, 0, memory, 0), CUDA_OK);
  assert_int_equal(cuda->MemMap(address, 2 * PIECE, 0, memory, 0), CUDA_INVALID_VALUE);
  assert_int_equal(cuda->MemMap(alias, 2 * PIECE, 0, memory, 0), CUDA_OK);
  assert_int_equal(cuda->MemUnmap(address, PIECE), CUDA_INVALID_VALUE);
  assert_int_equal(cuda->MemSetAccess(alias, 2 * PIECE, &(cuda_memory_access){{1, 0}, 3}, 1), CUDA_OK);
  assert_int_equal(cuda->MemSetAccess(address, 2 * PIECE, &(cuda_memory_access){{1, 0}, 1}, 1), CUDA_OK);
  unsigned char byte = 77;
  assert_int_equal(cuda->MemcpyHtoD(alias + 5000, &byte, 1), CUDA_OK);
  byte = 0;
  assert_int_equal(cuda->MemcpyDtoH(&byte, address + 5000, 1), CUDA_OK);
  assert_int_equal(byte, 77);
  assert_int_equal(cuda->MemRelease(memory), CUDA_OK);
  assert_int_equal(cuda->MemRelease(memory), CUDA_INVALID_VALUE);
  assert_int_equal(cuda->MemAddressFree(alias, 2 * PIECE), CUDA_INVALID_VALUE);
  assert_int_equal(cuda->MemUnmap(alias, 2 * PIECE), CUDA_OK);
  cuda_memory more, last;
  assert_int_equal(cuda->MemCreate(&more, 2 * PIECE, &properties, 0), CUDA_OK);
  assert_int_equal(cuda->MemCreate(&last, PIECE, &properties, 0), CUDA_OUT_OF_MEMORY);
  assert_int_equal(cuda->MemUnmap(address, 2 * PIECE), CUDA_OK); /* the first's last mapping */
  assert_int_equal(cuda->MemCreate(&last, PIECE, &properties, 0), CUDA_OK);
}

static void leaks_are_counted(void **state) {
  begin((model_options){.seed = 6});
  cuda_stream stream;
  cuda_event event;
  void *host;
  model_counts counts;
  cuda->StreamCreate(&stream, 0);
  cuda->EventCreate(&event, 0);
  cuda->MemHostAlloc(&host, 10, 0);
  map_piece(0, true);
  model.count(&counts);
  assert_int_equal(counts.streams, 1);
  assert_int_equal(counts.events, 1);
  assert_int_equal(counts.host_allocations, 1);
  assert_int_equal(counts.mappings, 1);
  assert_int_equal(counts.reservations, 1);
  assert_int_equal(counts.handles, 0);
  assert_int_equal(counts.contexts, 1);
  assert_int_equal(model.leaks(NULL, 0), 6);
}

static void calls_fail_when_told(void **state) {
  begin((model_options){.seed = 7});
  cuda_stream streams[3];
  model.inject(&(model_failure){.call = MODEL_StreamCreate, .at = 2});
  assert_int_equal(cuda->StreamCreate(&streams[0], 0), CUDA_OK);
  assert_int_equal(cuda->StreamCreate(&streams[1], 0), CUDA_OUT_OF_MEMORY);
  assert_int_equal(cuda->StreamCreate(&streams[1], 0), CUDA_OK);
  assert_int_equal(model.failures(), 1);
  model.inject(&(model_failure){.call = MODEL_ANY, .per_million = 500000});
  unsigned failed = 0;
  cuda_event event;
  for (int i = 0; i < 100; i++) failed += cuda->EventCreate(&event, 0) != CUDA_OK;
  assert_in_range(failed, 20, 80);
  model.inject(NULL);
  model.inject(&(model_failure){.call = MODEL_StreamSynchronize, .at = 1, .error = 719, .lost = true});
  assert_int_equal(cuda->StreamSynchronize(streams[0]), 719);
  assert_int_equal(cuda->StreamCreate(&streams[2], 0), 719);
  assert_int_equal(cuda->StreamDestroy(streams[0]), 719); /* and is destroyed */
  model_counts counts;
  model.count(&counts);
  assert_int_equal(counts.streams, 1);
}

static void remember(void *data) { (*(int *)data)++; }

static void legacy_stream_and_host_functions(void **state) {
  for (uint64_t seed = 0; seed < 50; seed++) {
    begin((model_options){.seed = seed, .eagerness = (uint32_t)(seed % 3) * 30});
    cuda_stream blocking, other;
    cuda_module module;
    cuda_function function = find_add_one(&module);
    int count = 0;
    cuda->StreamCreate(&blocking, 0);
    cuda->StreamCreate(&other, 0);
    uint64_t address = map_piece(0, true);
    unsigned char byte = 1;
    cuda->MemsetD8Async(address, 1, PIECE, blocking);
    launch(function, NULL, address, address, PIECE); /* after blocking's, before other's */
    launch(function, other, address, address, PIECE);
    cuda->LaunchHostFunc(other, remember, &count);
    cuda->MemcpyDtoH(&byte, address, 1);
    assert_int_equal(byte, 3);
    cuda->StreamSynchronize(other);
    assert_int_equal(count, 1);
    assert_int_equal(model.violations(NULL, 0), 0);
  }
}

static void contexts_are_kept_apart(void **state) {
  begin((model_options){.seed = 8, .devices = 2});
  cuda_context second;
  cuda_stream stream;
  cuda_event event;
  cuda_module module;
  cuda_function function = find_add_one(&module);
  cuda->EventCreate(&event, 0);
  assert_int_equal(cuda->DevicePrimaryCtxRetain(&second, 1), CUDA_OK);
  assert_int_equal(cuda->CtxSetCurrent(second), CUDA_OK);
  assert_int_equal(cuda->StreamCreate(&stream, CUDA_STREAM_NON_BLOCKING), CUDA_OK);
  assert_int_equal(cuda->EventRecord(event, stream), 400);
  assert_int_equal(launch(function, stream, 0, 0, 0), 400);
  uint64_t address = map_piece(0, true); /* the first's */
  unsigned char byte = 1;
  cuda->MemcpyHtoDAsync(address, &byte, 1, stream);
  assert_int_equal(cuda->StreamSynchronize(stream), 700);
  assert_int_equal(cuda->CtxSetCurrent(context), CUDA_OK);
  assert_int_equal(cuda->CtxSynchronize(), CUDA_OK); /* the first is none the worse */
  assert_int_equal(model.violations(NULL, 0), 3);
}

static int load(void **state) {
  ff_error error;
  unsetenv("FARFAULT_DRIVER");
  if (!model_load(FF_BUILD_DIR "/tests/model_driver.so", &model)) return 1;
  if (cuda_open(FF_BUILD_DIR "/tests/model_driver.so", &cuda, &error)) return 1;
  model.kernel("add_one", add_one, false);
  return cuda->is_virtual;
}

static int unload(void **state) {
  model.reset(&(model_options){.seed = 0});
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_missing_wait_is_a_wrong_result),
      cmocka_unit_test(nothing_runs_at_its_call),
      cmocka_unit_test(violations_are_told),
      cmocka_unit_test(mapping_has_rules),
      cmocka_unit_test(leaks_are_counted),
      cmocka_unit_test(calls_fail_when_told),
      cmocka_unit_test(legacy_stream_and_host_functions),
      cmocka_unit_test(contexts_are_kept_apart),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
