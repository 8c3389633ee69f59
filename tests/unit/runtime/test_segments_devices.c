/* SPDX-License-Identifier: Apache-2.0 */
/* Segments and launches on several devices of the virtual GPU: where launches run, what goes from one device to
 * another, budgets of each, and random launches against a model that has one memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "farfault/farfault.h"

enum { MIB = 1 << 20, DEVICES = 3, BLOCK = 256 };

/* mix: y[i] = y[i] * 3 + x[i] + c for i < n; where: y[0] = the address that y has here */
static const char code[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry mix(.param .u64 x, .param .u64 y, .param .u32 n, .param .u32 c)\n{\n"
    "  .reg .pred %p<2>; .reg .b32 %r<10>; .reg .b64 %rd<10>;\n"
    "  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [n]; ld.param.u32 %r9, [c];\n"
    "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "  setp.ge.u32 %p1, %r5, %r1; @%p1 bra END;\n"
    "  mul.wide.u32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;\n"
    "  ld.global.u32 %r6, [%rd4]; ld.global.u32 %r7, [%rd5]; mad.lo.u32 %r8, %r7, 3, %r6; add.u32 %r8, %r8, %r9; st.global.u32 [%rd5], %r8;\n"
    "END: ret;\n}\n"
    ".visible .entry where(.param .u64 y)\n{\n  .reg .b64 %rd<4>;\n  ld.param.u64 %rd1, [y]; st.global.u64 [%rd1], %rd1; ret;\n}\n";

typedef struct fixture {
  ff_gpu *gpu;
  ff_kernel *mix, *where;
} fixture;

#define OK(call) assert_string_equal(ff_result_name(call), "FF_SUCCESS")

static fixture start(const int *numbers, uint32_t count, uint64_t budget) {
  fixture f;
  ff_module *module;
  ff_options o = {.size = sizeof o, .driver = "virtual", .devices = numbers, .device_count = count, .budget = budget};
  OK(ff_open(&o, &f.gpu));
  OK(ff_module_load(f.gpu, "test", code, 0, &module));
  OK(ff_kernel_find(module, "mix", &f.mix));
  OK(ff_kernel_find(module, "where", &f.where));
  return f;
}

static ff_segment *segment(const fixture *f, uint32_t words) {
  ff_segment *s;
  OK(ff_segment_create(f->gpu, NULL, words * 4ull, &s));
  return s;
}

/* device: as in the request, 0: any. */
static ff_result mix(const fixture *f, ff_segment *x, ff_segment *y, uint32_t words, uint32_t c, uint32_t device) {
  ff_use uses[] = {{.segment = x, .access = FF_READ}, {.segment = y, .access = FF_READ_WRITE}};
  ff_argument arguments[] = {FF_ADDRESS(x), FF_ADDRESS(y), FF_VALUE(words), FF_VALUE(c)};
  ff_launch_request r = {.kernel = f->mix,
                         .grid = {(words + BLOCK - 1) / BLOCK},
                         .block = {BLOCK},
                         .arguments = arguments,
                         .argument_count = 4,
                         .uses = uses,
                         .use_count = 2,
                         .device = device};
  return ff_launch(f->gpu, &r, NULL);
}

static ff_result where(const fixture *f, ff_segment *y, uint32_t device) {
  ff_use use = {.segment = y, .access = FF_READ_WRITE};
  ff_argument argument[] = {FF_ADDRESS(y)};
  ff_launch_request r = {
      .kernel = f->where, .arguments = argument, .argument_count = 1, .uses = &use, .use_count = 1, .device = device};
  return ff_launch(f->gpu, &r, NULL);
}

static void put(ff_segment *s, const uint32_t *data, uint32_t words) {
  void *host;
  OK(ff_segment_map(s, FF_WRITE, 0, 0, &host));
  memcpy(host, data, words * 4ull);
  OK(ff_segment_unmap(s, host));
}

static void expect(ff_segment *s, const uint32_t *data, uint32_t words) {
  void *host;
  OK(ff_segment_map(s, FF_READ, 0, 0, &host));
  assert_memory_equal(host, data, words * 4ull);
  OK(ff_segment_unmap(s, host));
}

static void opens_what_is_named(void **state) {
  static const struct {
    int numbers[DEVICES];
    uint32_t count;
  } cases[] = {{{0, 1, 2}, 3}, {{2, 0}, 2}, {{1}, 1}};
  ff_gpu_info info;
  ff_gpu *none;
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    fixture f = start(cases[n].numbers, cases[n].count, 16 * MIB);
    OK(ff_gpu_describe(f.gpu, &info));
    assert_int_equal(info.device_count, cases[n].count);
    assert_int_equal(info.budget, 16 * MIB);
    OK(ff_close(f.gpu));
  }
  static const struct {
    int numbers[DEVICES];
    uint32_t count;
    ff_result want;
  } wrong[] = {{{0, 3}, 2, FF_ERROR_DRIVER},
               {{-1}, 1, FF_ERROR_DRIVER},
               {{1, 2, 1}, 3, FF_ERROR_INVALID},
               {{0}, 0, FF_ERROR_INVALID}};
  for (size_t n = 0; n < sizeof wrong / sizeof *wrong; n++) {
    ff_options o = {.size = sizeof o, .driver = "virtual", .devices = wrong[n].numbers, .device_count = wrong[n].count};
    assert_string_equal(ff_result_name(ff_open(&o, &none)), ff_result_name(wrong[n].want));
  }
}

/* Each launch sees what the one before it left, on whichever device; a segment has an address on each, and all are its
 * own. */
static void goes_from_one_to_the_next(void **state) {
  enum { WORDS = 3000 };
  static uint32_t x[WORDS], y[WORDS];
  fixture f = start((const int[]){0, 1, 2}, DEVICES, 16 * MIB);
  ff_segment *a = segment(&f, WORDS), *b = segment(&f, WORDS), *owner;
  ff_segment_info info;
  for (uint32_t i = 0; i < WORDS; i++) x[i] = i * 7;
  put(a, x, WORDS);
  for (uint32_t turn = 0; turn < 2 * DEVICES; turn++) {
    OK(mix(&f, a, b, WORDS, turn, turn % DEVICES + 1));
    for (uint32_t i = 0; i < WORDS; i++) y[i] = y[i] * 3 + x[i] + turn;
  }
  OK(ff_wait_all(f.gpu));
  OK(ff_segment_describe(a, &info));
  assert_true(info.resident_bytes >= WORDS * 4);
  assert_int_equal(info.newer_bytes, 0); /* only read: the host has it as well */
  expect(b, y, WORDS);
  expect(a, x, WORDS);
  for (uint32_t d = 0; d < DEVICES; d++) {
    uint64_t address, offset, found;
    OK(ff_segment_address(b, d, &address));
    OK(where(&f, b, d + 1));
    uint32_t *host;
    OK(ff_segment_map(b, FF_READ, 0, 8, (void **)&host));
    memcpy(&found, host, 8);
    OK(ff_segment_unmap(b, host));
    assert_int_equal(found, address);
    OK(ff_owner(f.gpu, address + 12, &owner, &offset));
    assert_ptr_equal(owner, b);
    assert_int_equal(offset, 12);
  }
  OK(ff_close(f.gpu));
}

/* What is only read is brought to each device once; what one wrote has to be brought to the next. */
static void copies_no_more_than_needed(void **state) {
  enum { WORDS = MIB / 4 };
  fixture f = start((const int[]){0, 1, 2}, DEVICES, 64 * MIB);
  ff_segment *x = segment(&f, WORDS), *y[DEVICES];
  ff_statistics before, after;
  uint32_t *ones = calloc(WORDS, 4);
  for (uint32_t i = 0; i < WORDS; i++) ones[i] = 1;
  put(x, ones, WORDS);
  for (uint32_t d = 0; d < DEVICES; d++) y[d] = segment(&f, WORDS);
  for (uint32_t turn = 0; turn < 4; turn++)
    for (uint32_t d = 0; d < DEVICES; d++) {
      if (turn == 1 && !d) {
        OK(ff_wait_all(f.gpu));
        OK(ff_statistics_get(f.gpu, &before));
      }
      OK(mix(&f, x, y[d], WORDS, 0, d + 1));
    }
  OK(ff_wait_all(f.gpu));
  OK(ff_statistics_get(f.gpu, &after));
  assert_true(before.to_gpu_bytes >= DEVICES * (uint64_t)MIB);
  assert_int_equal(after.to_gpu_bytes, before.to_gpu_bytes); /* all is there */
  for (uint32_t i = 0; i < WORDS; i++) ones[i] = 1 + 3 + 9 + 27;
  for (uint32_t d = 0; d < DEVICES; d++) expect(y[d], ones, WORDS);
  free(ones);
  OK(ff_close(f.gpu));
}

static void refuses_devices_that_are_not_there(void **state) {
  fixture f = start((const int[]){2, 0}, 2, 16 * MIB);
  ff_segment *x = segment(&f, 100), *y = segment(&f, 100);
  uint64_t address;
  assert_string_equal(ff_result_name(mix(&f, x, y, 100, 0, 3)), "FF_ERROR_INVALID");
  assert_string_equal(ff_result_name(mix(&f, x, y, 100, 0, UINT32_MAX)), "FF_ERROR_INVALID");
  assert_string_equal(ff_result_name(ff_segment_address(x, 2, &address)), "FF_ERROR_INVALID");
  assert_string_equal(ff_result_name(ff_segment_pin(x, 2, true)), "FF_ERROR_INVALID");
  ff_partition *partition;
  ff_partition_options o = {.size = sizeof o, .share = "sm=25%", .device = 2};
  assert_string_equal(ff_result_name(ff_partition_create(f.gpu, &o, &partition)), "FF_ERROR_INVALID");
  OK(ff_segment_pin(x, 1, true));
  OK(mix(&f, x, y, 100, 0, 1));
  OK(ff_wait_all(f.gpu));
  OK(ff_close(f.gpu));
}

static uint32_t random_number(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

/* Random launches on named and unnamed devices, with budgets that hold less than half of the segments, mappings and
 * evictions in between. */
static void follows_one_memory(void **state) {
  enum { SEGMENTS = 10, WORDS = MIB / 4 * 3, STEPS = 60 };
  uint32_t *model[SEGMENTS], seed = 12345;
  fixture f = start((const int[]){0, 1, 2}, DEVICES, 14 * MIB);
  ff_segment *s[SEGMENTS];
  for (uint32_t n = 0; n < SEGMENTS; n++) {
    s[n] = segment(&f, WORDS);
    model[n] = calloc(WORDS, 4);
    for (uint32_t i = 0; i < WORDS; i++) model[n][i] = i * (n + 1);
    put(s[n], model[n], WORDS);
  }
  for (uint32_t step = 0; step < STEPS; step++) {
    uint32_t x = random_number(&seed) % SEGMENTS, y = (x + 1 + random_number(&seed) % (SEGMENTS - 1)) % SEGMENTS,
             what = random_number(&seed) % 16;
    if (what == 0) {
      expect(s[x], model[x], WORDS);
    } else if (what == 1) {
      OK(ff_segment_evict(s[x]));
    } else if (what == 2) {
      for (uint32_t i = 0; i < WORDS; i++) model[x][i] = i ^ step;
      put(s[x], model[x], WORDS);
    } else {
      OK(mix(&f, s[x], s[y], WORDS, step, random_number(&seed) % (DEVICES + 1)));
      for (uint32_t i = 0; i < WORDS; i++) model[y][i] = model[y][i] * 3 + model[x][i] + step;
    }
  }
  ff_statistics st;
  OK(ff_wait_all(f.gpu));
  OK(ff_statistics_get(f.gpu, &st));
  assert_true(st.evicted_bytes > 0);
  assert_true(st.peak_resident_bytes <= DEVICES * 14ull * MIB);
  for (uint32_t n = 0; n < SEGMENTS; n++) {
    expect(s[n], model[n], WORDS);
    free(model[n]);
  }
  OK(ff_close(f.gpu));
}

int main(void) {
  setenv("FARFAULT_DEVICES", "3", 1);
  unsetenv("FARFAULT_DRIVER");
  const struct CMUnitTest tests[] = {cmocka_unit_test(opens_what_is_named), cmocka_unit_test(goes_from_one_to_the_next),
                                     cmocka_unit_test(copies_no_more_than_needed),
                                     cmocka_unit_test(refuses_devices_that_are_not_there),
                                     cmocka_unit_test(follows_one_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
