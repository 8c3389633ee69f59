/* SPDX-License-Identifier: Apache-2.0 */
/* Segments and launches on the virtual GPU: contents, budgets, windows, files, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "farfault/farfault.h"

enum { MIB = 1 << 20, BLOCK = 256 };

/* add: y[i] += x[i], u32, for i < n;  fill: y[i] = i + c;  follow: y[i] = *p[i] */
static const char code[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry add(.param .u64 x, .param .u64 y, .param .u32 n)\n{\n"
    "  .reg .pred %p<2>; .reg .b32 %r<10>; .reg .b64 %rd<10>;\n"
    "  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [n];\n"
    "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "  setp.ge.u32 %p1, %r5, %r1; @%p1 bra END;\n"
    "  mul.wide.u32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;\n"
    "  ld.global.u32 %r6, [%rd4]; ld.global.u32 %r7, [%rd5]; add.u32 %r8, %r6, %r7; st.global.u32 [%rd5], %r8;\n"
    "END: ret;\n}\n"
    ".visible .entry fill(.param .u64 y, .param .u32 n, .param .u32 c)\n{\n"
    "  .reg .pred %p<2>; .reg .b32 %r<10>; .reg .b64 %rd<10>;\n"
    "  ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [n]; ld.param.u32 %r6, [c];\n"
    "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "  setp.ge.u32 %p1, %r5, %r1; @%p1 bra END;\n"
    "  mul.wide.u32 %rd3, %r5, 4; add.s64 %rd5, %rd2, %rd3; add.u32 %r7, %r5, %r6; st.global.u32 [%rd5], %r7;\n"
    "END: ret;\n}\n"
    ".visible .entry follow(.param .u64 p, .param .u64 y, .param .u32 n)\n{\n"
    "  .reg .pred %p<2>; .reg .b32 %r<10>; .reg .b64 %rd<10>;\n"
    "  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [n];\n"
    "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "  setp.ge.u32 %p1, %r5, %r1; @%p1 bra END;\n"
    "  mul.wide.u32 %rd3, %r5, 8; add.s64 %rd4, %rd1, %rd3; ld.global.u64 %rd6, [%rd4]; ld.global.u32 %r6, [%rd6];\n"
    "  mul.wide.u32 %rd7, %r5, 4; add.s64 %rd5, %rd2, %rd7; st.global.u32 [%rd5], %r6;\n"
    "END: ret;\n}\n";

typedef struct fixture {
  ff_gpu *gpu;
  ff_module *module;
  ff_kernel *add, *fill, *follow;
} fixture;

#define OK(call) assert_string_equal(ff_result_name(call), "FF_SUCCESS")

static fixture start(uint64_t budget, uint32_t lookahead) {
  fixture f;
  ff_options o = {.size = sizeof o, .driver = "virtual", .budget = budget, .lookahead = lookahead};
  OK(ff_open(&o, &f.gpu));
  OK(ff_module_load(f.gpu, "test", code, 0, &f.module));
  OK(ff_kernel_find(f.module, "add", &f.add));
  OK(ff_kernel_find(f.module, "fill", &f.fill));
  OK(ff_kernel_find(f.module, "follow", &f.follow));
  return f;
}

static ff_segment *segment(const fixture *f, uint32_t words) {
  ff_segment *s;
  OK(ff_segment_create(f->gpu, NULL, words * 4ull, &s));
  return s;
}

static ff_result add(const fixture *f, ff_segment *x, ff_segment *y, uint32_t words, bool per_block,
                     ff_ticket *ticket) {
  ff_use uses[] = {{.segment = x, .access = FF_READ}, {.segment = y, .access = FF_READ_WRITE}};
  for (int i = 0; i < 2 && per_block; i++) uses[i].per_block[0] = uses[i].block_bytes = BLOCK * 4;
  ff_argument arguments[] = {FF_ADDRESS(x), FF_ADDRESS(y), FF_VALUE(words)};
  ff_launch_request r = {.kernel = f->add,
                         .grid = {(words + BLOCK - 1) / BLOCK},
                         .block = {BLOCK},
                         .arguments = arguments,
                         .argument_count = 3,
                         .uses = uses,
                         .use_count = 2};
  return ff_launch(f->gpu, &r, ticket);
}

static ff_result fill(const fixture *f, ff_segment *y, uint32_t words, uint32_t c) {
  ff_use uses[] = {{.segment = y, .access = FF_WRITE, .bytes = words * 4ull}};
  ff_argument arguments[] = {FF_ADDRESS(y), FF_VALUE(words), FF_VALUE(c)};
  ff_launch_request r = {.kernel = f->fill,
                         .grid = {(words + BLOCK - 1) / BLOCK},
                         .block = {BLOCK},
                         .arguments = arguments,
                         .argument_count = 3,
                         .uses = uses,
                         .use_count = 1};
  return ff_launch(f->gpu, &r, NULL);
}

static void put(ff_segment *s, uint32_t words, uint32_t factor) {
  uint32_t *host;
  OK(ff_segment_map(s, FF_WRITE, 0, 0, (void **)&host));
  for (uint32_t i = 0; i < words; i++) host[i] = i * factor;
  OK(ff_segment_unmap(s, host));
}

static void expect(ff_segment *s, uint32_t words, uint32_t factor, uint32_t constant) {
  const uint32_t *host;
  OK(ff_segment_map(s, FF_READ, 0, 0, (void **)&host));
  for (uint32_t i = 0; i < words; i++)
    if (host[i] != i * factor + constant) assert_int_equal(host[i], i * factor + constant);
  OK(ff_segment_unmap(s, (void *)host));
}

static void runs_in_order(void **state) {
  fixture f = start(64 * MIB, 0);
  ff_segment *x = segment(&f, 1000), *y = segment(&f, 1000);
  ff_ticket ticket;
  put(x, 1000, 3);
  expect(y, 1000, 0, 0); /* new segments are zero */
  OK(add(&f, x, y, 1000, false, NULL));
  OK(add(&f, x, y, 1000, false, NULL));
  OK(add(&f, y, x, 1000, false, &ticket));
  OK(ff_wait(f.gpu, ticket));
  expect(y, 1000, 6, 0);
  expect(x, 1000, 9, 0);
  bool done;
  OK(ff_done(f.gpu, ticket, &done));
  assert_true(done);
  ff_statistics st;
  OK(ff_statistics_get(f.gpu, &st));
  assert_int_equal(st.launches, 3);
  assert_int_equal(st.to_gpu_bytes, 4000); /* y was blank */
  assert_int_equal(st.from_gpu_bytes, 8000);
  assert_int_equal(st.zeroed_bytes, 4000);
  OK(ff_close(f.gpu));
}

/* Twelve segments of 2 MiB through a budget of five pieces; what is written only is not copied in. */
static void evicts(void **state) {
  enum { COUNT = 12, WORDS = MIB / 2 };
  for (uint32_t lookahead = 1; lookahead < 40; lookahead += 31) {
    fixture f = start(10 * MIB, lookahead);
    ff_segment *s[COUNT];
    ff_ticket ticket;
    for (uint32_t i = 0; i < COUNT; i++) OK(fill(&f, s[i] = segment(&f, WORDS), WORDS, i));
    for (uint32_t i = 1; i < COUNT; i++) OK(add(&f, s[i - 1], s[i], WORDS, false, &ticket));
    OK(ff_wait(f.gpu, ticket));
    for (uint32_t i = 0, c = 0; i < COUNT; c += ++i) expect(s[i], WORDS, i + 1, c);
    ff_statistics st;
    OK(ff_statistics_get(f.gpu, &st));
    assert_true(st.peak_resident_bytes <= 10 * MIB);
    assert_true(st.evicted_bytes > 0);
    assert_int_equal(st.windows, 0);
    OK(ff_close(f.gpu));
  }
}

static void runs_in_windows(void **state) {
  enum { WORDS = 5 * MIB };
  for (int declared = 0; declared < 2; declared++) { /* else proved from the PTX */
    fixture f = start(16 * MIB, 0);
    ff_segment *x = segment(&f, WORDS), *y = segment(&f, WORDS);
    put(x, WORDS, 5);
    put(y, WORDS, 2);
    OK(add(&f, x, y, WORDS, declared, NULL));
    OK(add(&f, x, y, WORDS, declared, NULL));
    OK(ff_wait_all(f.gpu));
    expect(y, WORDS, 12, 0);
    ff_statistics st;
    OK(ff_statistics_get(f.gpu, &st));
    assert_true(st.windows >= 4);
    assert_true(st.peak_resident_bytes <= 16 * MIB);
    ff_use uses[] = {{.segment = x, .access = FF_READ}, {.segment = y, .access = FF_READ_WRITE}};
    uint32_t words = WORDS;
    ff_argument arguments[] = {FF_ADDRESS(x), FF_ADDRESS(y), FF_VALUE(words)};
    ff_plan plan;
    ff_launch_request r = {.kernel = f.add,
                           .grid = {WORDS / BLOCK},
                           .block = {BLOCK},
                           .arguments = arguments,
                           .argument_count = 3,
                           .uses = uses,
                           .use_count = 2};
    OK(ff_launch_plan(f.gpu, &r, &plan));
    assert_int_equal(plan.needed, 40 * MIB);
    assert_true(plan.windows > 1);
    assert_string_equal(plan.reason, "uses per block proved from the PTX");
    OK(ff_close(f.gpu));
  }
}

static void refuses_what_is_too_large(void **state) {
  enum { WORDS = 5 * MIB };
  fixture f = start(16 * MIB, 0);
  ff_segment *p = segment(&f, 2 * WORDS), *y = segment(&f, WORDS), *data = segment(&f, WORDS);
  ff_use uses[] = {
      {.segment = p, .access = FF_READ}, {.segment = data, .access = FF_READ}, {.segment = y, .access = FF_WRITE}};
  uint32_t words = WORDS;
  ff_argument arguments[] = {FF_ADDRESS(p), FF_ADDRESS(y), FF_VALUE(words)};
  ff_launch_request r = {.kernel = f.follow,
                         .grid = {WORDS / BLOCK},
                         .block = {BLOCK},
                         .arguments = arguments,
                         .argument_count = 3,
                         .uses = uses,
                         .use_count = 3};
  assert_int_equal(ff_launch(f.gpu, &r, NULL), FF_ERROR_TOO_LARGE);
  assert_non_null(strstr(ff_message(), "83886080")); /* 80 MiB */
  assert_non_null(strstr(ff_message(), "16777216"));
  OK(ff_segment_free(p));
  OK(ff_segment_free(data));
  put(y, WORDS, 1);
  expect(y, WORDS, 1, 0);
  OK(ff_close(f.gpu));
}

/* Pointers stored in data stay right while the segment they point into is evicted and brought back. */
static void keeps_addresses(void **state) {
  enum { WORDS = MIB };
  fixture f = start(12 * MIB, 0);
  ff_segment *data = segment(&f, WORDS), *p, *y = segment(&f, 1000), *other = segment(&f, 2 * WORDS);
  uint64_t address, again, *pointers, offset;
  ff_segment *owner;
  OK(ff_segment_create(f.gpu, "pointers", 8000, &p));
  put(data, WORDS, 7);
  OK(ff_segment_address(data, 0, &address));
  OK(ff_segment_map(p, FF_WRITE, 0, 0, (void **)&pointers));
  for (uint64_t i = 0; i < 1000; i++) pointers[i] = address + 4 * (i * 1000);
  OK(ff_segment_unmap(p, pointers));
  for (int round = 0; round < 2; round++) {
    ff_use uses[] = {
        {.segment = p, .access = FF_READ}, {.segment = data, .access = FF_READ}, {.segment = y, .access = FF_WRITE}};
    uint32_t words = 1000;
    ff_argument arguments[] = {FF_ADDRESS(p), FF_ADDRESS(y), FF_VALUE(words)};
    ff_launch_request r = {.kernel = f.follow,
                           .grid = {4},
                           .block = {BLOCK},
                           .arguments = arguments,
                           .argument_count = 3,
                           .uses = uses,
                           .use_count = 3};
    OK(ff_launch(f.gpu, &r, NULL));
    expect(y, 1000, 7000, 0);
    OK(fill(&f, other, 2 * WORDS, 1));
    OK(ff_segment_evict(data));
    ff_segment_info info;
    OK(ff_segment_describe(data, &info));
    assert_int_equal(info.resident_bytes, 0);
    OK(ff_segment_address(data, 0, &again));
    assert_int_equal(again, address);
  }
  OK(ff_owner(f.gpu, address + 17, &owner, &offset));
  assert_ptr_equal(owner, data);
  assert_int_equal(offset, 17);
  assert_int_equal(ff_owner(f.gpu, 16, &owner, &offset), FF_ERROR_NOT_FOUND);
  OK(ff_close(f.gpu));
}

static void streams_files(void **state) {
  enum { WORDS = 5 * MIB };
  char path[] = "/tmp/farfault-segment-XXXXXX";
  int file = mkstemp(path);
  uint32_t *words = malloc(WORDS * 4);
  for (uint32_t i = 0; i < WORDS; i++) words[i] = i * 3;
  assert_int_equal(write(file, words, WORDS * 4), WORDS * 4);
  fixture f = start(8 * MIB, 0);
  ff_segment *in, *out, *sum = segment(&f, WORDS);
  OK(ff_segment_open(f.gpu, NULL, path, FF_FILE_READ, 0, 0, &in));
  char made[64];
  snprintf(made, sizeof made, "%s.out", path);
  assert_int_equal(ff_segment_open(f.gpu, NULL, made, FF_FILE_WRITE, 0, WORDS * 4, &out), FF_ERROR_IO);
  OK(ff_segment_open(f.gpu, NULL, made, FF_FILE_WRITE | FF_FILE_CREATE, 0, WORDS * 4, &out));
  OK(add(&f, in, sum, WORDS, false, NULL));
  OK(add(&f, sum, out, WORDS, false, NULL));
  OK(add(&f, in, out, WORDS, true, NULL));
  assert_int_equal(add(&f, sum, in, WORDS, false, NULL), FF_ERROR_INVALID);
  expect(sum, WORDS, 3, 0);
  OK(ff_segment_free(out));
  FILE *again = fopen(made, "rb");
  assert_int_equal(fread(words, 4, WORDS, again), WORDS);
  for (uint32_t i = 0; i < WORDS; i++) assert_int_equal(words[i], i * 6);
  fclose(again);
  OK(ff_close(f.gpu));
  unlink(path);
  unlink(made);
  close(file);
  free(words);
}

static void guards_mappings(void **state) {
  fixture f = start(64 * MIB, 0);
  ff_segment *x = segment(&f, 1000), *y = segment(&f, 1000);
  void *a, *b;
  OK(ff_segment_map(x, FF_READ, 0, 2000, &a));
  OK(ff_segment_map(x, FF_READ, 1000, 2000, &b));
  OK(add(&f, x, y, 1000, false, NULL));
  assert_int_equal(add(&f, y, x, 1000, false, NULL), FF_ERROR_BUSY);
  assert_int_equal(ff_segment_free(x), FF_ERROR_BUSY);
  OK(ff_segment_unmap(x, a));
  assert_int_equal(ff_segment_unmap(x, a), FF_ERROR_INVALID);
  OK(ff_segment_map(x, FF_READ_WRITE, 0, 1000, &a));
  assert_int_equal(ff_segment_map(x, FF_READ, 999, 1, &a), FF_ERROR_BUSY);
  assert_int_equal(add(&f, x, y, 1000, false, NULL), FF_ERROR_BUSY);
  assert_int_equal(ff_segment_map(x, FF_READ, 4000, 1, &a), FF_ERROR_INVALID);
  OK(ff_segment_unmap(x, a));
  OK(ff_segment_unmap(x, b));
  OK(ff_segment_free(x));
  OK(ff_close(f.gpu));
}

static void pins(void **state) {
  enum { WORDS = MIB };
  fixture f = start(12 * MIB, 0);
  ff_segment *x = segment(&f, WORDS), *y = segment(&f, WORDS), *z = segment(&f, WORDS),
             *tight = segment(&f, 2 * WORDS + WORDS / 2);
  put(x, WORDS, 2);
  OK(ff_segment_pin(x, 0, true));
  assert_int_equal(ff_segment_pin(tight, 0, true), FF_ERROR_TOO_LARGE);
  for (int i = 0; i < 3; i++) {
    OK(add(&f, x, y, WORDS, false, NULL));
    OK(fill(&f, z, WORDS, 1));
    OK(ff_segment_evict(x));
  }
  ff_statistics st;
  OK(ff_statistics_get(f.gpu, &st));
  assert_int_equal(st.to_gpu_bytes, 4 * MIB); /* x, once */
  OK(ff_segment_pin(x, 0, false));
  OK(ff_segment_evict(x));
  expect(y, WORDS, 6, 0);
  OK(ff_close(f.gpu));
}

static void refuses_wrong_calls(void **state) {
  fixture f = start(64 * MIB, 0);
  ff_segment *x = segment(&f, 1000);
  ff_kernel *none;
  ff_module *module;
  uint32_t words = 1000;
  ff_argument arguments[] = {FF_ADDRESS(x), FF_VALUE(words)};
  ff_launch_request r = {.kernel = f.fill, .grid = {4}, .block = {BLOCK}, .arguments = arguments, .argument_count = 2};
  assert_int_equal(ff_launch(f.gpu, &r, NULL), FF_ERROR_INVALID);
  assert_string_equal(ff_message(), "kernel 'fill' takes 3 arguments, not 2");
  uint64_t wide = 1;
  ff_argument wrong[] = {FF_ADDRESS(x), FF_VALUE(words), FF_VALUE(wide)};
  r.arguments = wrong;
  r.argument_count = 3;
  assert_int_equal(ff_launch(f.gpu, &r, NULL), FF_ERROR_INVALID);
  assert_string_equal(ff_message(), "argument 2 of kernel 'fill' has 4 bytes, not 8");
  assert_int_equal(ff_kernel_find(f.module, "nothing", &none), FF_ERROR_NOT_FOUND);
  assert_int_equal(ff_module_load(f.gpu, "broken", ".version 6.0 .target sm_50 .entry {", 0, &module), FF_ERROR_CODE);
  assert_int_equal(ff_module_load_file(f.gpu, "/nowhere.ptx", &module), FF_ERROR_NOT_FOUND);
  assert_int_equal(ff_wait(f.gpu, 17), FF_ERROR_INVALID);
  OK(ff_close(f.gpu));
  ff_options o = {.size = sizeof o, .driver = "virtual", .budget = UINT64_MAX};
  assert_int_equal(ff_open(&o, &f.gpu), FF_ERROR_NO_MEMORY);
  o.driver = "/nowhere/libcuda.so.1";
  unsetenv("FARFAULT_DRIVER");
  assert_int_equal(ff_open(&o, &f.gpu), FF_ERROR_NO_DRIVER);
}

static uint64_t copied_back(const fixture *f) {
  ff_statistics st;
  OK(ff_wait_all(f->gpu));
  OK(ff_statistics_get(f->gpu, &st));
  return st.from_gpu_bytes;
}

/* Once the host has read what a launch wrote, it is brought back as it is written, until that was in vain; what is
 * larger than half the budget always is. */
static void brings_back_early(void **state) {
  fixture f = start(10 * MIB, 0);
  ff_segment *x = segment(&f, 1000), *large = segment(&f, 3 * MIB / 2);
  OK(fill(&f, x, 1000, 1));
  assert_int_equal(copied_back(&f), 0);
  expect(x, 1000, 1, 1);
  assert_int_equal(copied_back(&f), 4000);
  OK(fill(&f, x, 1000, 2));
  assert_int_equal(copied_back(&f), 8000);
  OK(fill(&f, x, 1000, 3)); /* no kernel and no copy has read it: in vain */
  OK(fill(&f, x, 1000, 4));
  assert_int_equal(copied_back(&f), 8000);
  expect(x, 1000, 1, 4);
  assert_int_equal(copied_back(&f), 12000);
  OK(fill(&f, large, 3 * MIB / 2, 5));
  assert_int_equal(copied_back(&f), 12000 + 6 * MIB);
  OK(ff_close(f.gpu));
}

/* Gone through piece by piece, from the second one on some more are mapped with it. */
static void maps_ahead(void **state) {
  enum { PIECE_WORDS = MIB / 2 };
  fixture f;
  ff_options o = {.size = sizeof o, .driver = "virtual", .budget = 32 * MIB, .commit = true};
  ff_segment_info info;
  OK(ff_open(&o, &f.gpu));
  OK(ff_module_load(f.gpu, "test", code, 0, &f.module));
  OK(ff_kernel_find(f.module, "fill", &f.fill));
  ff_segment *y = segment(&f, 8 * PIECE_WORDS);
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t words = PIECE_WORDS, c = i;
    ff_use use = {.segment = y, .access = FF_WRITE, .offset = i * 2ull * MIB, .bytes = 2 * MIB};
    ff_argument arguments[] = {FF_ADDRESS_AT(y, use.offset), FF_VALUE(words), FF_VALUE(c)};
    ff_launch_request r = {.kernel = f.fill,
                           .grid = {PIECE_WORDS / BLOCK},
                           .block = {BLOCK},
                           .arguments = arguments,
                           .argument_count = 3,
                           .uses = &use,
                           .use_count = 1};
    OK(ff_launch(f.gpu, &r, NULL));
    OK(ff_segment_describe(y, &info));
    assert_int_equal(info.resident_bytes, i ? 8 * MIB : 2 * MIB);
  }
  OK(ff_close(f.gpu));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_in_order),       cmocka_unit_test(evicts),
      cmocka_unit_test(runs_in_windows),     cmocka_unit_test(refuses_what_is_too_large),
      cmocka_unit_test(keeps_addresses),     cmocka_unit_test(streams_files),
      cmocka_unit_test(guards_mappings),     cmocka_unit_test(pins),
      cmocka_unit_test(brings_back_early),   cmocka_unit_test(maps_ahead),
      cmocka_unit_test(refuses_wrong_calls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
