/* SPDX-License-Identifier: Apache-2.0 */
/* What libfarfault promises when something fails, each alone, on the model driver: a kernel's fault, a GPU with less
 * memory than the budget, files that cannot be read or written, no page-locked memory, a call in the middle of a
 * launch. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "farfault/farfault.h"
#include "model_driver.h"
#include "runtime/cuda.h"

enum { PIECE = 4096 };
static model_driver model;
static ff_gpu *gpu;
static ff_module *module;
static ff_kernel *add;

#define OK(call) assert_string_equal(ff_result_name(call), "FF_SUCCESS")
#define FAILS(call, wanted) assert_string_equal(ff_result_name(call), #wanted)

/* Every byte of [data, + bytes) plus one. */
static void add_one(model_launch *launch) {
  uint64_t at, bytes;
  memcpy(&at, launch->arguments[0], 8);
  memcpy(&bytes, launch->arguments[1], 8);
  unsigned char *data = malloc(bytes);
  launch->read(launch, at, data, bytes);
  for (uint64_t i = 0; i < bytes; i++) data[i]++;
  launch->write(launch, at, data, bytes);
  free(data);
}

static void open_gpu(model_options settings, uint64_t pieces) {
  model.inject(NULL);
  model.reset(&settings);
  ff_options o = {
      .size = sizeof o, .driver = FF_BUILD_DIR "/tests/model_driver.so", .budget = pieces * PIECE, .piece = PIECE};
  OK(ff_open(&o, &gpu));
  OK(ff_module_load(gpu, "test", "model\nadd_one 8 8\n", 0, &module));
  OK(ff_kernel_find(module, "add_one", &add));
}

static void close_gpu(ff_result wanted) {
  char text[2048];
  model.inject(NULL);
  assert_string_equal(ff_result_name(ff_close(gpu)), ff_result_name(wanted));
  if (model.violations(text, sizeof text)) fail_msg("%s", text);
  if (model.leaks(text, sizeof text)) fail_msg("%s", text);
}

static ff_result launch(ff_segment *segment, uint64_t bytes, ff_ticket *ticket) {
  ff_argument arguments[] = {FF_ADDRESS(segment), FF_VALUE(bytes)};
  ff_use use = {.segment = segment, .access = FF_READ_WRITE, .bytes = bytes};
  ff_launch_request request = {
      .kernel = add, .arguments = arguments, .argument_count = 2, .uses = &use, .use_count = 1};
  return ff_launch(gpu, &request, ticket);
}

/* All bytes of the segment are `value`. */
static void expect(ff_segment *segment, uint64_t bytes, unsigned char value) {
  void *host;
  OK(ff_segment_map(segment, FF_READ, 0, 0, &host));
  for (uint64_t i = 0; i < bytes; i++)
    if (((unsigned char *)host)[i] != value)
      fail_msg("byte %llu is %u, not %u", (unsigned long long)i, ((unsigned char *)host)[i], value);
  OK(ff_segment_unmap(segment, host));
}

static void a_fault_is_told_once_and_loses_the_gpu(void **state) {
  ff_segment *safe, *hit;
  ff_ticket first, second, third;
  open_gpu((model_options){.seed = 1}, 64);
  OK(ff_segment_create(gpu, "safe", 3 * PIECE, &safe));
  OK(ff_segment_create(gpu, "hit", 3 * PIECE, &hit));
  OK(launch(safe, 3 * PIECE, &first));
  OK(ff_wait(gpu, first));
  OK(ff_segment_flush(safe)); /* it has come back */
  model.inject(&(model_failure){.call = MODEL_RUN_KERNEL, .at = 1, .error = 700, .lost = true});
  OK(launch(hit, PIECE, &second));
  FAILS(ff_wait(gpu, second), FF_ERROR_FAULT);
  assert_non_null(strstr(ff_message(), "ILLEGAL_ADDRESS"));
  FAILS(launch(hit, PIECE, &third), FF_ERROR_LOST);
  FAILS(ff_wait_all(gpu), FF_ERROR_LOST);
  OK(ff_wait(gpu, first));
  expect(safe, 3 * PIECE, 1);
  close_gpu(FF_ERROR_LOST);
}

static void less_memory_than_the_budget(void **state) {
  ff_segment *segments[6];
  ff_statistics statistics;
  open_gpu((model_options){.seed = 2, .memory = 64 * PIECE}, 64);
  model.inject(&(model_failure){.call = MODEL_MemCreate, .per_million = 700000});
  for (int i = 0; i < 6; i++) OK(ff_segment_create(gpu, NULL, 4 * PIECE, &segments[i]));
  unsigned char sums[6] = {0};
  for (int round = 0; round < 10; round++)
    for (int i = 0; i < 6; i++) {
      ff_ticket ticket;
      OK(launch(segments[i], 4 * PIECE, &ticket));
      if (ff_wait(gpu, ticket) == FF_SUCCESS) sums[i]++;
    }
  OK(ff_statistics_get(gpu, &statistics));
  assert_true(statistics.recoveries > 0 && model.failures() > 10);
  model.inject(NULL);
  for (int i = 0; i < 6; i++) expect(segments[i], 4 * PIECE, sums[i]);
  assert_true(sums[5] > 0);
  close_gpu(FF_SUCCESS);
}

static void no_page_locked_memory(void **state) {
  ff_segment *large;
  open_gpu((model_options){.seed = 3, .host_memory = 32 << 20}, 4);
  model.inject(&(model_failure){.call = MODEL_MemHostAlloc, .at = 1});
  OK(ff_segment_create(gpu, NULL, 12 * PIECE, &large));
  void *host;
  OK(ff_segment_map(large, FF_WRITE, 0, 0, &host)); /* pageable instead */
  memset(host, 5, 12 * PIECE);
  OK(ff_segment_unmap(large, host));
  OK(launch(large, 4 * PIECE, NULL));
  OK(ff_segment_map(large, FF_READ, 0, 4 * PIECE, &host));
  assert_int_equal(((unsigned char *)host)[4 * PIECE - 1], 6);
  OK(ff_segment_unmap(large, host));
  ff_statistics statistics;
  OK(ff_statistics_get(gpu, &statistics));
  assert_int_equal(statistics.pinned_host_bytes, 0);
  close_gpu(FF_SUCCESS);
}

static void make_file(char *path, uint64_t bytes, char value) {
  strcpy(path, "/tmp/farfault-test-XXXXXX");
  int file = mkstemp(path);
  assert_true(file >= 0);
  char *data = malloc(bytes);
  memset(data, value, bytes);
  assert_int_equal(write(file, data, bytes), bytes);
  close(file);
  free(data);
}

static void a_file_that_has_become_shorter(void **state) {
  char path[32];
  ff_segment *file, *other;
  ff_ticket first, second;
  make_file(path, 4 * PIECE, 3);
  open_gpu((model_options){.seed = 4}, 64);
  OK(ff_segment_open(gpu, "file", path, FF_FILE_WRITE, 0, 0, &file));
  OK(ff_segment_create(gpu, "other", PIECE, &other));
  assert_int_equal(truncate(path, PIECE), 0);
  OK(launch(file, 4 * PIECE, &first));
  OK(launch(other, PIECE, &second));
  FAILS(ff_wait(gpu, first), FF_ERROR_IO);
  assert_non_null(strstr(ff_message(), path));
  OK(ff_wait(gpu, second));
  expect(other, PIECE, 1);
  OK(launch(file, PIECE, &first)); /* what there is of it is as it was */
  OK(ff_wait(gpu, first));
  OK(ff_segment_flush(file));
  close_gpu(FF_SUCCESS);
  FILE *read = fopen(path, "r");
  for (int i = 0; i < PIECE; i++) assert_int_equal(fgetc(read), 4);
  fclose(read);
  unlink(path);
}

static void a_file_that_cannot_be_written(void **state) {
  char path[32];
  ff_segment *file;
  make_file(path, 4 * PIECE, 3);
  open_gpu((model_options){.seed = 5}, 64);
  OK(ff_segment_open(gpu, "file", path, FF_FILE_WRITE, 0, 0, &file));
  OK(launch(file, 4 * PIECE, NULL));
  struct rlimit old, none = {PIECE, PIECE};
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &old);
  none.rlim_max = old.rlim_max;
  setrlimit(RLIMIT_FSIZE, &none);
  ff_result flushed = ff_segment_flush(file), freed = ff_segment_free(file);
  setrlimit(RLIMIT_FSIZE, &old);
  FAILS(flushed, FF_ERROR_IO);
  FAILS(freed, FF_ERROR_IO); /* and is not freed: */
  expect(file, 4 * PIECE, 4);
  OK(ff_segment_free(file));
  FILE *read = fopen(path, "r");
  for (int i = 0; i < 4 * PIECE; i++) assert_int_equal(fgetc(read), 4);
  fclose(read);
  unlink(path);
  close_gpu(FF_SUCCESS);
}

/* Whichever of the calls that a program makes fails, the program is right about what has become of its launches. */
static void every_call_fails_once(void **state) {
  for (uint64_t at = 1;; at++) {
    ff_segment *a, *b;
    ff_ticket tickets[4];
    unsigned char sums[2] = {0};
    open_gpu((model_options){.seed = at, .eagerness = at % 2 * 50}, 5);
    OK(ff_segment_create(gpu, NULL, 3 * PIECE, &a));
    OK(ff_segment_create(gpu, NULL, 4 * PIECE, &b));
    model.inject(&(model_failure){.call = MODEL_ANY, .at = at});
    for (int i = 0; i < 4; i++) OK(launch(i % 2 ? b : a, (uint64_t)(i % 2 ? 4 : 3) * PIECE, &tickets[i]));
    for (int i = 0; i < 4; i++)
      if (ff_wait(gpu, tickets[i]) == FF_SUCCESS) sums[i % 2]++;
    bool done = !model.failures();
    model.inject(NULL);
    assert_true(sums[0] + sums[1] >= (done ? 4 : 3));
    expect(a, 3 * PIECE, sums[0]);
    expect(b, 4 * PIECE, sums[1]);
    close_gpu(FF_SUCCESS);
    if (done) {
      assert_in_range(at, 20, 200);
      return;
    }
  }
}

/* A program that uses the driver itself finds its own context current after each call. */
static void the_callers_context_stays(void **state) {
  const cuda_driver *cuda;
  cuda_context own, found;
  ff_segment *segment;
  void *host;
  ff_ticket ticket;
  open_gpu((model_options){.seed = 6, .devices = 2}, 4);
  OK(ff_segment_create(gpu, NULL, 3 * PIECE, &segment));
  assert_int_equal(cuda_open(FF_BUILD_DIR "/tests/model_driver.so", &cuda, NULL), FF_OK);
  assert_int_equal(cuda->DevicePrimaryCtxRetain(&own, 1), CUDA_OK);
  for (int round = 0; round < 2; round++) {
    cuda_context wanted = round ? own : NULL;
    assert_int_equal(cuda->CtxSetCurrent(wanted), CUDA_OK);
#define STAYS(call) (OK(call), cuda->CtxGetCurrent(&found), assert_ptr_equal(found, wanted))
    STAYS(launch(segment, 3 * PIECE, &ticket));
    STAYS(ff_wait(gpu, ticket));
    STAYS(ff_segment_map(segment, FF_READ_WRITE, 0, 0, &host));
    STAYS(ff_segment_unmap(segment, host));
    STAYS(ff_segment_pin(segment, 0, true));
    STAYS(ff_segment_pin(segment, 0, false));
    STAYS(ff_segment_evict(segment));
    STAYS(ff_wait_all(gpu));
  }
  cuda->CtxSetCurrent(NULL);
  cuda->DevicePrimaryCtxRelease(1);
  close_gpu(FF_SUCCESS);
}

static int load(void **state) {
  unsetenv("FARFAULT_DRIVER");
  unsetenv("FF_CHECK");
  if (!model_load(FF_BUILD_DIR "/tests/model_driver.so", &model)) return 1;
  model.kernel("add_one", add_one, false);
  return 0;
}
static int unload(void **state) {
  model.reset(&(model_options){.seed = 0});
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_fault_is_told_once_and_loses_the_gpu),
      cmocka_unit_test(less_memory_than_the_budget),
      cmocka_unit_test(no_page_locked_memory),
      cmocka_unit_test(a_file_that_has_become_shorter),
      cmocka_unit_test(a_file_that_cannot_be_written),
      cmocka_unit_test(every_call_fails_once),
      cmocka_unit_test(the_callers_context_stays),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
