/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface to traces: what is put in comes out, what must be refused is refused and costs nothing, damage
 * is reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "farfault/trace.h"
#include "trace/stream.h"

static char folder[] = "/tmp/test-public-XXXXXX", path[64];

static int enter(void **state) {
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/a.fft", folder);
  return 0;
}

static int leave(void **state) {
  unlink(path);
  return rmdir(folder); /* fails if anything else was left */
}

static int files(void) {
  DIR *d = opendir(folder);
  int count = 0;
  for (struct dirent *e; (e = readdir(d));) count += e->d_name[0] != '.';
  closedir(d);
  return count;
}

static ff_trace_error error;
#define good(call)                                             \
  do {                                                         \
    ff_trace_status good_status = (call);                      \
    if (good_status) fail_msg("%s: %s", #call, error.message); \
  } while (0)

/* Refused, with this in the message. */
#define bad(call, expected)                                                                         \
  do {                                                                                              \
    error.message[0] = '\0';                                                                        \
    assert_int_equal(call, FF_TRACE_INVALID);                                                       \
    assert_int_equal(error.status, FF_TRACE_INVALID);                                               \
    if (!strstr(error.message, expected)) fail_msg("'%s' is not in '%s'", expected, error.message); \
  } while (0)

static ff_trace_writer *begin(void) {
  ff_trace_writer *w;
  good(ff_trace_create(path, "a 'program'", "gtx480", &w, &error));
  return w;
}

static const ff_trace_launch small = {.kernel = "k", .grid = {2, 1, 1}, .block = {40, 1, 1}};

/* ---- what is put in comes out ---- */

static const ff_trace_use uses[2] = {{4096, 100}, {8192, 1}};
static const ff_trace_launch full = {.kernel = "void f<int>(int*)",
                                     .grid = {3, 2, 1},
                                     .block = {8, 4, 2},
                                     .shared_bytes = 99,
                                     .registers = 40,
                                     .cooperative = true,
                                     .smids = 5,
                                     .carve_out = 101,
                                     .module = 7,
                                     .parameters = "abcd",
                                     .parameter_bytes = 4,
                                     .uses = uses,
                                     .use_count = 2};
static const ff_trace_operation operations[] = {
    {.kind = FF_TRACE_MODULE, .as.module = {7, ".version 7.0", 12}},
    {.kind = FF_TRACE_ALLOCATE, .as.allocation = {4096, 100, FF_TRACE_MEMORY_MANAGED, 3, true, "x"}},
    {.kind = FF_TRACE_STREAM_CREATE, .stream = 2, .number = 1},
    {.kind = FF_TRACE_COPY,
     .stream = 2,
     .blocking = true,
     .as.copy = {4096, 1 << 20, 10, 5, 20, 30, FF_TRACE_TO_DEVICE, true}},
    {.kind = FF_TRACE_SET, .as.copy = {.to = 4096, .width = 10, .height = 2, .to_pitch = 16}},
    {.kind = FF_TRACE_EVENT_RECORD, .number = 9},
    {.kind = FF_TRACE_STREAM_WAIT, .stream = 2, .number = 9},
    {.kind = FF_TRACE_SYNC_EVENT, .number = 9},
    {.kind = FF_TRACE_SYNC_STREAM, .stream = 2},
    {.kind = FF_TRACE_HOST_CALL},
    {.kind = FF_TRACE_HOST_TOUCH, .as.range = {.address = 4096, .bytes = 7, .write = true}},
    {.kind = FF_TRACE_ADVISE, .number = 3, .as.range = {.address = 4096, .bytes = 7, .device = -1}},
    {.kind = FF_TRACE_PREFETCH_RANGE, .as.range = {.address = 4096, .bytes = 7, .device = 0}},
    {.kind = FF_TRACE_RESERVE, .as.allocation = {1 << 21, 1 << 24, FF_TRACE_MEMORY_DEVICE, 4, false, "addresses"}},
    {.kind = FF_TRACE_CREATE_MEMORY, .as.allocation = {0, 1 << 21, FF_TRACE_MEMORY_DEVICE, 1, false, "memory"}},
    {.kind = FF_TRACE_MAP, .as.mapping = {1 << 22, 1 << 21, 4096, 1}},
    {.kind = FF_TRACE_SET_ACCESS, .as.mapping = {.address = 1 << 22, .bytes = 1 << 21}},
    {.kind = FF_TRACE_RELEASE_MEMORY, .as.allocation = {.id = 1}},
    {.kind = FF_TRACE_UNMAP, .as.mapping = {.address = 1 << 22, .bytes = 1 << 21}},
    {.kind = FF_TRACE_FREE_RESERVATION, .as.mapping = {.address = 1 << 21, .bytes = 1 << 24}},
    {.kind = FF_TRACE_STREAM_SMS, .stream = 2, .as.sms = {{1, 0, UINT64_MAX, UINT64_C(1) << 63}}},
    {.kind = FF_TRACE_STREAM_DESTROY, .stream = 2},
    {.kind = FF_TRACE_PROFILE, .number = 1},
    {.kind = FF_TRACE_PROFILE, .number = 0},
    {.kind = FF_TRACE_NAMED_RANGE,
     .as.named_range = {.number = 7, .begin = true, .started = true, .domain = 3, .thread = 2, .name = "own:step"}},
    {.kind = FF_TRACE_NAMED_RANGE, .as.named_range = {.number = 7}},
    {.kind = FF_TRACE_SYNC_DEVICE},
    {.kind = FF_TRACE_FREE, .as.allocation = {.address = 4096, .id = 3}},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static void same_operation(const ff_trace_operation *a, const ff_trace_operation *b) {
  assert_int_equal(a->kind, b->kind);
  assert_int_equal(a->stream, b->stream);
  assert_int_equal(a->blocking, b->blocking);
  assert_int_equal(a->number, b->number);
  if (a->kind == FF_TRACE_MODULE) {
    assert_int_equal(a->as.module.bytes, b->as.module.bytes);
    assert_memory_equal(a->as.module.ptx, b->as.module.ptx, a->as.module.bytes);
  } else if (a->kind == FF_TRACE_ALLOCATE || a->kind == FF_TRACE_RESERVE || a->kind == FF_TRACE_CREATE_MEMORY) {
    assert_string_equal(a->as.allocation.name, b->as.allocation.name);
    assert_memory_equal(&a->as.allocation, &b->as.allocation, offsetof(ff_trace_allocation, initialised));
    assert_int_equal(a->as.allocation.initialised, b->as.allocation.initialised);
  } else if (a->kind == FF_TRACE_COPY || a->kind == FF_TRACE_SET) {
    assert_memory_equal(&a->as.copy, &b->as.copy, offsetof(ff_trace_copy, pinned));
    assert_int_equal(a->as.copy.pinned, b->as.copy.pinned);
  } else if (a->kind == FF_TRACE_MAP || a->kind == FF_TRACE_UNMAP || a->kind == FF_TRACE_SET_ACCESS ||
             a->kind == FF_TRACE_FREE_RESERVATION) {
    assert_int_equal(a->as.mapping.address, b->as.mapping.address);
    assert_int_equal(a->as.mapping.bytes, b->as.mapping.bytes);
    assert_int_equal(a->as.mapping.offset, b->as.mapping.offset);
    assert_int_equal(a->as.mapping.memory, b->as.mapping.memory);
  } else if (a->kind == FF_TRACE_FREE || a->kind == FF_TRACE_RELEASE_MEMORY) {
    assert_int_equal(a->as.allocation.address, b->as.allocation.address);
    assert_int_equal(a->as.allocation.id, b->as.allocation.id);
  } else if (a->kind == FF_TRACE_STREAM_SMS) {
    assert_memory_equal(&a->as.sms, &b->as.sms, sizeof a->as.sms);
  } else if (a->kind == FF_TRACE_NAMED_RANGE) {
    const ff_trace_named_range *x = &a->as.named_range, *y = &b->as.named_range;
    assert_int_equal(x->number, y->number);
    assert_true(x->begin == y->begin && x->started == y->started && x->domain == y->domain && x->thread == y->thread);
    assert_string_equal(x->name ? x->name : "", y->name ? y->name : "");
  } else {
    assert_int_equal(a->as.range.address, b->as.range.address);
    assert_int_equal(a->as.range.bytes, b->as.range.bytes);
    assert_int_equal(a->as.range.write, b->as.range.write);
    assert_int_equal(a->as.range.device, b->as.range.device);
  }
}

static void test_operations(void **state) {
  ff_trace_writer *w = begin();
  for (int i = 0; i < OPERATIONS; i++) good(ff_trace_put_operation(w, &operations[i], &error));
  good(ff_trace_put_launch(w, 5, &full, &error));
  good(ff_trace_finish(
      w, &(ff_trace_ending){.notes = (const char *const[]){"one", "two"}, .note_count = 2, .barriers = 8}, &error));
  assert_int_equal(files(), 1);
  ff_trace_reader *r;
  ff_trace_item item;
  good(ff_trace_open(path, &r, &error));
  const ff_trace_info *info = ff_trace_information(r);
  assert_string_equal(info->command, "a 'program'");
  assert_string_equal(info->machine, "gtx480");
  assert_true(info->whole && info->complete && info->note_count == 2 && info->barriers == 8 && info->launches == 1 &&
              info->blocks == 6);
  assert_string_equal(info->notes[1], "two");
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < OPERATIONS; i++) {
      good(ff_trace_next(r, &item, &error));
      assert_int_equal(item.kind, FF_TRACE_OPERATION);
      assert_int_equal(item.operation->sequence, i);
      same_operation(item.operation, &operations[i]);
    }
    good(ff_trace_next(r, &item, &error));
    const ff_trace_launch *l = item.operation->as.launch;
    assert_int_equal(item.operation->kind, FF_TRACE_LAUNCH);
    assert_int_equal(item.operation->stream, 5);
    assert_string_equal(l->kernel, full.kernel);
    assert_memory_equal(l->grid, full.grid, sizeof l->grid);
    assert_memory_equal(l->block, full.block, sizeof l->block);
    assert_true(l->shared_bytes == 99 && l->registers == 40 && l->cooperative && l->smids == 5 && l->module == 7 &&
                l->carve_out == 101 && l->blocks == 6 && l->warps_per_block == 2);
    assert_memory_equal(l->parameters, "abcd", 4);
    assert_memory_equal(l->uses, uses, sizeof uses);
    for (int i = 0; i < 12; i++) { /* warps that got nothing only end */
      good(ff_trace_next(r, &item, &error));
      assert_int_equal(item.kind, FF_TRACE_RECORD);
      assert_true(item.block == (uint64_t)i / 2 && item.warp == (uint32_t)i % 2 && item.words == 1 &&
                  item.record[0] == ff_trace_exit());
    }
    for (int i = 0; i < 2; i++) {
      good(ff_trace_next(r, &item, &error));
      assert_int_equal(item.kind, FF_TRACE_END);
    }
    ff_trace_rewind(r);
  }
  ff_trace_close(r);
}

static void test_words(void **state) {
  uint64_t w = ff_trace_issue(65535, 1234, 16383, 77);
  assert_true(ff_trace_kind(w) == FF_TRACE_ISSUE && ff_trace_issue_instructions(w) == 65535 &&
              ff_trace_issue_memory(w) == 1234 && ff_trace_issue_sfu(w) == 16383 && ff_trace_issue_fp64(w) == 77);
  w = ff_trace_access(FF_TRACE_ATOMIC, 3, FF_TRACE_RETURNS, 0xdeadbeef, 32);
  assert_true(ff_trace_kind(w) == FF_TRACE_ACCESS && ff_trace_access_operation(w) == FF_TRACE_ATOMIC &&
              ff_trace_access_bytes(w) == 8 && ff_trace_access_flags(w) == FF_TRACE_RETURNS &&
              ff_trace_access_pc(w) == 0xdeadbeef && ff_trace_access_lines(w) == 32);
  w = ff_trace_line(0x123456789f, 32, 5);
  assert_true(ff_trace_line_address(w) == 0x1234567880 && ff_trace_line_lanes(w) == 32 &&
              ff_trace_line_sectors(w) == 5);
  w = ff_trace_barrier(255, true, 65535);
  assert_true(ff_trace_kind(w) == FF_TRACE_BARRIER && ff_trace_barrier_id(w) == 255 &&
              ff_trace_barrier_arrive_only(w) && ff_trace_barrier_expected(w) == 65535);
  w = ff_trace_asynchronous(FF_TRACE_AWAIT, 255, 65535);
  assert_true(ff_trace_kind(w) == FF_TRACE_ASYNC && ff_trace_async_what(w) == FF_TRACE_AWAIT &&
              ff_trace_async_id(w) == 255 && ff_trace_async_count(w) == 65535);
  assert_true(ff_trace_wait_k(ff_trace_wait(70000)) == 70000 && ff_trace_mark(ff_trace_leave(5)) == 5 &&
              ff_trace_kind(ff_trace_enter(5)) == FF_TRACE_ENTER);
  w = ff_trace_units((uint32_t[FF_TRACE_UNIT_COUNT]){1, 2, 3, 4, 5, 6, 7, 8, 63, 31, 30});
  assert_true(ff_trace_kind(w) == FF_TRACE_UNITS && ff_trace_units_count(w, FF_TRACE_SLOTS) == 1 &&
              ff_trace_units_count(w, FF_TRACE_LOADS) == 63 && ff_trace_units_count(w, FF_TRACE_PRODUCTS) == 31 &&
              ff_trace_units_count(w, FF_TRACE_HALF) == 0);
  w = ff_trace_units((uint32_t[FF_TRACE_UNIT_COUNT]){1, 2, 3, 4, 5, 6, 7, 8, 63, 0, 30});
  assert_true(ff_trace_units_count(w, FF_TRACE_LOADS) == 63 && ff_trace_units_count(w, FF_TRACE_PRODUCTS) == 0 &&
              ff_trace_units_count(w, FF_TRACE_HALF) == 30);
  w = ff_trace_units((uint32_t[FF_TRACE_UNIT_COUNT]){[FF_TRACE_MINMAX] = 100000});
  assert_int_equal(ff_trace_units_count(w, FF_TRACE_MINMAX), 100000);
  for (ff_trace_unit u = FF_TRACE_SLOTS; u < FF_TRACE_MINMAX; u++) assert_int_equal(ff_trace_units_count(w, u), 0);
  w = ff_trace_units(
      (uint32_t[FF_TRACE_UNIT_COUNT]){1, [FF_TRACE_HALF] = 2, [FF_TRACE_MINMAX] = 5}); /* not with others */
  assert_true(ff_trace_units_count(w, FF_TRACE_MINMAX) == 0 && ff_trace_units_count(w, FF_TRACE_SLOTS) == 1 &&
              ff_trace_units_count(w, FF_TRACE_HALF) == 2);
  w = ff_trace_units((uint32_t[FF_TRACE_UNIT_COUNT]){1, [FF_TRACE_HALF] = 32}); /* cut, and not taken for MINMAX */
  assert_true(ff_trace_units_count(w, FF_TRACE_SLOTS) == 1 && ff_trace_units_count(w, FF_TRACE_MINMAX) == 0);
  assert_true(ff_trace_wait_early(ff_trace_early_wait(3)) && ff_trace_wait_k(ff_trace_early_wait(3)) == 3 &&
              ff_trace_wait_late(ff_trace_late_wait(3)));
  w = ff_trace_enter_trips(0xfedcba98, 77);
  assert_true(ff_trace_kind(w) == FF_TRACE_ENTER && ff_trace_mark(w) == 0xfedcba98 && ff_trace_trips(w) == 77 &&
              ff_trace_trips(ff_trace_enter(5)) == 0);
  assert_int_equal(ff_trace_trips(ff_trace_enter_trips(1, UINT32_MAX)), FF_TRACE_TRIPS_MAX);
}

/* The header's words are the access stream's. */
static void test_same_words(void **state) {
  srand(11);
  for (int i = 0; i < 20000; i++) {
    uint64_t w = (uint64_t)rand() << 42 ^ (uint64_t)rand() << 21 ^ (uint64_t)rand();
    assert_true((int)ff_trace_kind(w) == (int)trace_word_kind(w));
    assert_true(ff_trace_issue_instructions(w) == trace_issue_count(w) &&
                ff_trace_issue_memory(w) == trace_issue_memory(w) && ff_trace_issue_sfu(w) == trace_issue_sfu(w) &&
                ff_trace_issue_fp64(w) == trace_issue_fp64(w));
    assert_true((int)ff_trace_access_operation(w) == (int)trace_access_operation(w) &&
                ff_trace_access_bytes(w) == trace_access_bytes(w) &&
                ff_trace_access_flags(w) == trace_access_flags(w) &&
                ff_trace_access_lines(w) == trace_access_lines(w) && ff_trace_access_pc(w) == trace_access_pc(w));
    assert_true(ff_trace_line_address(w) == trace_line_address(w) && ff_trace_line_lanes(w) == trace_line_lanes(w) &&
                ff_trace_line_sectors(w) == trace_line_sectors(w));
    assert_true(ff_trace_wait_k(w) == trace_wait_k(w) && ff_trace_barrier_id(w) == trace_barrier_id(w) &&
                ff_trace_barrier_arrive_only(w) == trace_barrier_arrive_only(w) &&
                ff_trace_barrier_expected(w) == trace_barrier_expected(w));
    assert_true((int)ff_trace_async_what(w) == (int)trace_async_what(w) && ff_trace_async_id(w) == trace_async_id(w) &&
                ff_trace_async_count(w) == trace_async_count(w));
    trace_counts counts = {{0}};
    trace_add_units(&counts, w);
    assert_true(ff_trace_wait_early(w) == trace_wait_early(w) && ff_trace_wait_late(w) == trace_wait_late(w));
    for (int u = 0; u < FF_TRACE_UNIT_COUNT; u++)
      assert_int_equal(ff_trace_units_count(w, (ff_trace_unit)u), trace_count(&counts, (trace_unit)u));
    assert_true(ff_trace_line(w >> 8, (uint32_t)w & 63, (uint32_t)(w >> 32) & 15) ==
                trace_line(w >> 8, (uint32_t)w & 63, (uint32_t)(w >> 32) & 15));
  }
}

/* ---- coalescing, against the plainest way to do it ---- */

static uint32_t plain_lines(const uint64_t *address, uint32_t mask, uint32_t bytes, uint64_t *lines) {
  uint32_t count = 0;
  for (int lane = 0; lane < 32; lane++) {
    if (!(mask >> lane & 1)) continue;
    uint64_t line = address[lane] / 128 * 128;
    uint32_t n = 0, lanes = 0, sectors = 0;
    while (n < count && ff_trace_line_address(lines[n]) != line) n++;
    if (n < count) {
      lanes = ff_trace_line_lanes(lines[n]);
      sectors = ff_trace_line_sectors(lines[n]);
    } else {
      count++;
    }
    for (uint32_t b = 0; b < bytes; b++) sectors |= 1u << (address[lane] + b - line) / 32;
    lines[n] = ff_trace_line(line, lanes + 1, sectors);
  }
  return count;
}

static void test_coalescing(void **state) {
  enum { ROUNDS = 3000 };
  static uint64_t address[ROUNDS][32], lines[32];
  static uint32_t mask[ROUNDS], bytes[ROUNDS];
  srand(3);
  ff_trace_writer *w = begin();
  good(ff_trace_put_launch(w, 0, &small, &error));
  good(ff_trace_begin_warp(w, 0, 1, &error));
  for (int i = 0; i < ROUNDS; i++) {
    bytes[i] = 1u << rand() % 8;
    mask[i] = ((uint32_t)rand() << 16 ^ (uint32_t)rand()) | 1;
    uint64_t spread = UINT64_C(1) << rand() % 40, base = (uint64_t)rand() << 20;
    for (int lane = 0; lane < 32; lane++)
      address[i][lane] = (base + ((uint64_t)rand() * 0x9e3779b9 % spread)) & ~(uint64_t)(bytes[i] - 1);
    good(ff_trace_put_access(w, (ff_trace_access_op)(i % 4), 0, (uint32_t)i, bytes[i], mask[i], address[i], &error));
  }
  good(ff_trace_finish(w, NULL, &error));
  ff_trace_reader *r;
  ff_trace_item item;
  good(ff_trace_open(path, &r, &error));
  int seen = 0;
  do {
    good(ff_trace_next(r, &item, &error));
    if (item.kind != FF_TRACE_RECORD || ff_trace_kind(item.record[0]) != FF_TRACE_ACCESS) continue;
    uint32_t count = plain_lines(address[seen], mask[seen], bytes[seen], lines);
    assert_true(item.block == 0 && item.warp == 1);
    assert_int_equal(item.words, 2 + count);
    assert_int_equal(ff_trace_access_lines(item.record[0]), count);
    assert_int_equal(ff_trace_access_bytes(item.record[0]), bytes[seen]);
    assert_int_equal(item.record[1], mask[seen]);
    assert_memory_equal(item.record + 2, lines, count * sizeof lines[0]);
    seen++;
  } while (item.kind != FF_TRACE_END);
  assert_int_equal(seen, ROUNDS);
  ff_trace_close(r);
}

/* ---- what must be refused ---- */

static void test_operations_refused(void **state) {
  ff_trace_writer *w = begin();
#define OP(...) (&(ff_trace_operation){__VA_ARGS__})
  bad(ff_trace_put_operation(NULL, OP(.kind = FF_TRACE_HOST_CALL), &error), "no writer");
  bad(ff_trace_put_operation(w, NULL, &error), "no operation");
  bad(ff_trace_put_operation(w, OP(.kind = (ff_trace_operation_kind)99), &error), "an unknown kind");
  bad(ff_trace_put_operation(w, OP(.kind = FF_TRACE_NAMED_RANGE + 1), &error), "an unknown kind");
  bad(ff_trace_put_operation(w, OP(.kind = FF_TRACE_NAMED_RANGE), &error), "a range without a number");
  bad(ff_trace_put_operation(
          w,
          OP(.kind = FF_TRACE_NAMED_RANGE, .as.named_range = {.number = 1, .begin = true, .domain = 4, .name = "a:b"}),
          &error),
      "a range's name without its domain");
  bad(ff_trace_put_operation(w, OP(.kind = FF_TRACE_PROFILE, .number = 2), &error), "neither a start (1) nor a stop");
  bad(ff_trace_put_operation(w, OP(.kind = FF_TRACE_LAUNCH), &error), "ff_trace_put_launch");
  bad(ff_trace_put_operation(w, OP(.kind = FF_TRACE_ALLOCATE, .as.allocation = {.address = 4096, .bytes = UINT64_MAX}),
                             &error),
      "allocate: a number is out of range");
  bad(ff_trace_put_operation(w, OP(.kind = FF_TRACE_ALLOCATE, .as.allocation = {.address = UINT64_C(1) << 57}), &error),
      "out of range");
  bad(ff_trace_put_operation(w, OP(.kind = FF_TRACE_ALLOCATE, .as.allocation = {.memory = (ff_trace_memory)4}), &error),
      "kind of memory");
  char name[65] = {0};
  memset(name, 'n', 64);
  bad(ff_trace_put_operation(w, OP(.kind = FF_TRACE_ALLOCATE, .as.allocation = {.name = name}), &error), "63 bytes");
  bad(ff_trace_put_operation(w, OP(.kind = FF_TRACE_COPY, .as.copy = {.direction = (ff_trace_direction)-1}), &error),
      "direction");
  bad(ff_trace_put_operation(
          w, OP(.kind = FF_TRACE_COPY, .as.copy = {.to = 1, .width = UINT64_C(1) << 56, .height = 1}), &error),
      "rows go beyond");
  bad(ff_trace_put_operation(w, OP(.kind = FF_TRACE_SET, .as.copy = {.width = 1, .height = UINT64_MAX}), &error),
      "out of range");
  bad(ff_trace_put_operation(w, OP(.kind = FF_TRACE_ADVISE, .number = 0), &error), "advice");
  bad(ff_trace_put_operation(w, OP(.kind = FF_TRACE_ADVISE, .number = 7), &error), "advice");
  bad(ff_trace_put_operation(w, OP(.kind = FF_TRACE_MODULE, .as.module = {1, NULL, 5}), &error), "PTX");
  bad(ff_trace_put_operation(w, OP(.kind = FF_TRACE_MODULE, .as.module = {1, "x", UINT64_MAX}), &error), "PTX");
  assert_int_equal(ff_trace_put_operation(w, NULL, NULL), FF_TRACE_INVALID);
  good(ff_trace_put_operation(w, OP(.kind = FF_TRACE_HOST_CALL), &error));
  ff_trace_discard(w);
  ff_trace_discard(NULL);
  assert_int_equal(files(), 1); /* of the test before */
}

#define LAUNCH(...) (&(ff_trace_launch){__VA_ARGS__})

static void test_launches_refused(void **state) {
  ff_trace_writer *w = begin();
  bad(ff_trace_put_launch(w, 0, NULL, &error), "no launch");
  bad(ff_trace_put_launch(w, 0, LAUNCH(.grid = {1, 1, 1}, .block = {1, 1, 1}), &error), "no name");
  char name[257] = {0};
  memset(name, 'n', 256);
  bad(ff_trace_put_launch(w, 0, LAUNCH(.kernel = name, .grid = {1, 1, 1}, .block = {1, 1, 1}), &error), "255 bytes");
  bad(ff_trace_put_launch(w, 0, LAUNCH(.kernel = "k", .grid = {1, 1, 1}, .block = {1, 0, 1}), &error), "no threads");
  bad(ff_trace_put_launch(w, 0, LAUNCH(.kernel = "k", .grid = {1, 1, 1}, .block = {1025, 1, 1}), &error), "launch:");
  bad(ff_trace_put_launch(w, 0, LAUNCH(.kernel = "k", .grid = {1, 1, 1}, .block = {1024, 2, 1}), &error),
      "more than 1024");
  bad(ff_trace_put_launch(w, 0, LAUNCH(.kernel = "k", .grid = {UINT32_MAX, UINT32_MAX, UINT32_MAX}, .block = {1, 1, 1}),
                          &error),
      "too many blocks");
  bad(ff_trace_put_launch(w, 0, LAUNCH(.kernel = "k", .grid = {1, 1, 1}, .block = {1, 1, 1}, .parameter_bytes = 4),
                          &error),
      "parameters");
  bad(ff_trace_put_launch(
          w, 0,
          LAUNCH(.kernel = "k", .grid = {1, 1, 1}, .block = {1, 1, 1}, .parameters = "", .parameter_bytes = 65537),
          &error),
      "parameters");
  bad(ff_trace_put_launch(w, 0, LAUNCH(.kernel = "k", .grid = {1, 1, 1}, .block = {1, 1, 1}, .use_count = 1), &error),
      "uses");
  bad(ff_trace_put_launch(
          w, 0, LAUNCH(.kernel = "k", .grid = {1, 1, 1}, .block = {1, 1, 1}, .uses = uses, .use_count = 65), &error),
      "uses");
  good(ff_trace_put_launch(w, 0, LAUNCH(.kernel = "empty", .grid = {0, 1, 1}, .block = {1, 1, 1}), &error));
  bad(ff_trace_begin_warp(w, 0, 0, &error), "has no warp 0 in block 0");
  ff_trace_discard(w);
}

static void test_records_refused(void **state) {
  ff_trace_writer *w = begin();
  uint64_t words[80] = {ff_trace_exit()}, address[32] = {0};
  bad(ff_trace_begin_warp(w, 0, 0, &error), "no launch");
  bad(ff_trace_put_record(w, words, 1, &error), "no warp has begun");
  good(ff_trace_put_launch(w, 0, &small, &error));
  bad(ff_trace_put_record(w, words, 1, &error), "no warp has begun");
  bad(ff_trace_put_access(w, FF_TRACE_LOAD, 0, 0, 4, 1, address, &error), "no warp has begun");
  bad(ff_trace_begin_warp(w, 0, 2, &error), "2 blocks of 2 warps");
  bad(ff_trace_begin_warp(w, 2, 0, &error), "2 blocks of 2 warps");
  good(ff_trace_begin_warp(w, 0, 1, &error));
  bad(ff_trace_begin_warp(w, 0, 1, &error), "too late");
  bad(ff_trace_begin_warp(w, 0, 0, &error), "too late");
  bad(ff_trace_put_record(w, NULL, 1, &error), "nothing");
  bad(ff_trace_put_record(w, words, 0, &error), "nothing");
  bad(ff_trace_put_record(w, words, 2, &error), "more than one word");
  words[0] = 0;
  bad(ff_trace_put_record(w, words, 1, &error), "of no kind");
  words[0] = 15;
  bad(ff_trace_put_record(w, words, 1, &error), "of no kind");
  words[0] = ff_trace_access(FF_TRACE_LOAD, 2, 0, 0, 0);
  bad(ff_trace_put_record(w, words, 2, &error), "no line");
  words[0] = ff_trace_access(FF_TRACE_LOAD, 2, 0, 0, 65);
  bad(ff_trace_put_record(w, words, 67, &error), "more than 64");
  words[0] = ff_trace_access(FF_TRACE_LOAD, 2, 0, 0, 3);
  bad(ff_trace_put_record(w, words, 4, &error), "not all there");
  words[1] = UINT64_C(1) << 32;
  bad(ff_trace_put_record(w, words, 5, &error), "32 lanes");
  words[1] = 1;
  words[2] = words[3] = 15;
  words[4] = UINT64_MAX;
  bad(ff_trace_put_record(w, words, 5, &error), "beyond all addresses");
  words[2] = words[3] = words[4] = UINT64_C(1) << 10;
  bad(ff_trace_put_record(w, words, 5, &error), "of no sector");
  words[0] = ff_trace_wait(0);
  bad(ff_trace_put_record(w, words, 1, &error), "has not made");
  words[0] = ff_trace_barrier(0, false, 0);
  bad(ff_trace_put_record(w, words, 1, &error), "expects no warp");
  words[0] = ff_trace_asynchronous((ff_trace_async)8, 0, 0);
  bad(ff_trace_put_record(w, words, 1, &error), "ASYNC of no kind");
  words[0] = ff_trace_asynchronous(FF_TRACE_AWAIT, 0, 0);
  bad(ff_trace_put_record(w, words, 1, &error), "of no arrival");
  words[0] = ff_trace_asynchronous(FF_TRACE_AWAIT_FAR, 0, 0);
  bad(ff_trace_put_record(w, words, 1, &error), "of no arrival");
  words[0] = ff_trace_asynchronous(FF_TRACE_ARRIVE_FAR_COPIED, 0, 0);
  bad(ff_trace_put_record(w, words, 1, &error), "at its own block");
  words[0] = ff_trace_access(FF_TRACE_LOAD, 2, FF_TRACE_ASYNC_COPY, 0, 1);
  words[1] = 1;
  words[2] = ff_trace_line(4096, 1, 1);
  good(ff_trace_put_record(w, words, 3, &error)); /* no load, so that */
  words[0] = ff_trace_wait(0);
  bad(ff_trace_put_record(w, words, 1, &error), "has not made");
  words[0] = ff_trace_issue(5, 0, 3, 3);
  bad(ff_trace_put_record(w, words, 1, &error), "some units");
  words[0] = ff_trace_spill(true, 0, 15, 0, 0);
  bad(ff_trace_put_record(w, words, 1, &error), "a SPILL of no word, or of more than 4");
  words[0] = ff_trace_spill(true, 5, 15, 0, 0);
  bad(ff_trace_put_record(w, words, 1, &error), "a SPILL of no word, or of more than 4");
  words[0] = ff_trace_spill(false, 1, 0, 0, 0);
  bad(ff_trace_put_record(w, words, 1, &error), "a SPILL by no lane");
  bad(ff_trace_put_access(w, (ff_trace_access_op)4, 0, 0, 4, 1, address, &error), "unknown kind");
  bad(ff_trace_put_access(w, FF_TRACE_LOAD, 128, 0, 4, 1, address, &error), "unknown flags");
  bad(ff_trace_put_access(w, FF_TRACE_LOAD, 0, 0, 0, 1, address, &error), "power of two");
  bad(ff_trace_put_access(w, FF_TRACE_LOAD, 0, 0, 12, 1, address, &error), "power of two");
  bad(ff_trace_put_access(w, FF_TRACE_LOAD, 0, 0, 256, 1, address, &error), "power of two");
  bad(ff_trace_put_access(w, FF_TRACE_LOAD, 0, 0, 4, 1, NULL, &error), "without addresses");
  address[5] = 6;
  bad(ff_trace_put_access(w, FF_TRACE_LOAD, 0, 0, 4, 1u << 5, address, &error),
      "lane 5: address 0x6 is not aligned to 4");
  address[5] = UINT64_C(1) << 56;
  bad(ff_trace_put_access(w, FF_TRACE_LOAD, 0, 0, 4, 1u << 5, address, &error), "beyond 2^56");
  good(ff_trace_put_access(w, FF_TRACE_LOAD, 0, 0, 4, 0, address, &error)); /* no lane: nothing */
  words[0] = ff_trace_wait(0);
  bad(ff_trace_put_record(w, words, 1, &error), "has not made");
  good(ff_trace_put_access(w, FF_TRACE_ATOMIC, FF_TRACE_RETURNS, 0, 4, 1, address, &error));
  good(ff_trace_put_record(w, words, 1, &error));
  words[0] = ff_trace_exit();
  good(ff_trace_put_record(w, words, 1, &error));
  bad(ff_trace_put_record(w, words, 1, &error), "no warp has begun");
  good(ff_trace_begin_warp(w, 1, 0, &error));
  good(ff_trace_finish(w, NULL, &error));
  /* What was refused has left nothing: two accesses, a wait, and four ends. */
  ff_trace_reader *r;
  good(ff_trace_open(path, &r, &error));
  assert_int_equal(ff_trace_information(r)->words, 3 + 3 + 1 + 4);
  assert_int_equal(ff_trace_information(r)->accesses, 2);
  ff_trace_close(r);
  bad(ff_trace_finish(NULL, NULL, &error), "no writer");
  bad(ff_trace_create(NULL, NULL, NULL, &w, &error), "no path");
  bad(ff_trace_create(path, NULL, NULL, NULL, &error), "nowhere");
  bad(ff_trace_open(NULL, &r, &error), "no path");
  bad(ff_trace_next(NULL, NULL, &error), "no reader");
  assert_null(ff_trace_information(NULL));
}

/* ---- damage ---- */

static size_t slurp(char *bytes, size_t limit) {
  FILE *f = fopen(path, "rb");
  size_t size = fread(bytes, 1, limit, f);
  fclose(f);
  return size;
}

static void spill(const char *bytes, size_t size) {
  FILE *f = fopen(path, "wb");
  fwrite(bytes, 1, size, f);
  fclose(f);
}

/* Only a file with products of integers, half precision or minima is of a version that older readers refuse. */
static void test_versions_of_units(void **state) {
  static const struct {
    uint32_t counts[FF_TRACE_UNIT_COUNT];
    int version;
  } cases[] = {{{1, 2, 3, 4, 5, 6, 7, 8, 63}, 5},
               {{1, 1, [FF_TRACE_PRODUCTS] = 1}, 5 + 1024},
               {{1, [FF_TRACE_HALF] = 1}, 5 + 1024},
               {{[FF_TRACE_MINMAX] = 1}, 5 + 2048}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const uint64_t issue = ff_trace_issue(1, 0, 0, 0), units = ff_trace_units(cases[i].counts);
    ff_trace_writer *w = begin();
    good(ff_trace_put_launch(w, 0, LAUNCH(.kernel = "k", .grid = {1, 1, 1}, .block = {32, 1, 1}), &error));
    good(ff_trace_begin_warp(w, 0, 0, &error));
    good(ff_trace_put_record(w, &issue, 1, &error));
    good(ff_trace_put_record(w, &units, 1, &error));
    good(ff_trace_finish(w, NULL, &error));
    static char bytes[1 << 16];
    assert_true(slurp(bytes, sizeof bytes) > 16);
    assert_int_equal((uint8_t)bytes[8] | (uint8_t)bytes[9] << 8, cases[i].version);
  }
}

/* A spill comes back as it was put, one that loads is a load that a WAIT may name, and the file's version says so. */
static void test_spills(void **state) {
  const uint64_t words[] = {ff_trace_spill(true, 4, 15, 65535, UINT32_MAX), ff_trace_spill(false, 1, 2, 7, 9),
                            ff_trace_wait(0), ff_trace_exit()};
  assert_true(ff_trace_spill_stores(words[0]) && !ff_trace_spill_stores(words[1]));
  assert_int_equal(ff_trace_spill_words(words[0]), 4);
  assert_int_equal(ff_trace_spill_sectors(words[0]), 15);
  assert_int_equal(ff_trace_spill_slot(words[0]), 65535);
  assert_int_equal(ff_trace_spill_pc(words[0]), UINT32_MAX);
  ff_trace_writer *w = begin();
  good(ff_trace_put_launch(w, 0, LAUNCH(.kernel = "k", .grid = {1, 1, 1}, .block = {32, 1, 1}), &error));
  good(ff_trace_begin_warp(w, 0, 0, &error));
  good(ff_trace_put_record(w, &words[0], 1, &error));
  bad(ff_trace_put_record(w, &words[2], 1, &error), "has not made"); /* a store is no load */
  for (int i = 1; i < 4; i++) good(ff_trace_put_record(w, &words[i], 1, &error));
  good(ff_trace_finish(w, NULL, &error));
  static char bytes[1 << 16];
  assert_true(slurp(bytes, sizeof bytes) > 16);
  assert_int_equal((uint8_t)bytes[8] | (uint8_t)bytes[9] << 8, 1 + 8192);
  ff_trace_reader *r;
  ff_trace_item item = {.kind = FF_TRACE_RECORD};
  good(ff_trace_open(path, &r, &error));
  for (uint32_t n = 0; item.kind != FF_TRACE_END;) {
    good(ff_trace_next(r, &item, &error));
    if (item.kind == FF_TRACE_RECORD) assert_int_equal(item.record[0], words[n++]);
    else assert_true(item.kind != FF_TRACE_END || n == 4);
  }
  ff_trace_close(r);
}

/* Reads everything; how many records and losses there are. */
static void read_all(uint64_t *records, uint64_t *lost) {
  ff_trace_reader *r;
  ff_trace_item item = {.kind = FF_TRACE_RECORD};
  *records = *lost = 0;
  good(ff_trace_open(path, &r, &error));
  do {
    ff_trace_status status = ff_trace_next(r, &item, &error);
    if (status) {
      assert_int_equal(status, FF_TRACE_DAMAGED);
      assert_non_null(strstr(error.message, "is damaged"));
      ++*lost;
    } else if (item.kind == FF_TRACE_RECORD) {
      assert_true(item.launch && item.launch->kernel && item.block < item.launch->blocks &&
                  item.warp < item.launch->warps_per_block);
      ++*records;
    }
  } while (item.kind != FF_TRACE_END);
  ff_trace_close(r);
}

static void test_damage(void **state) {
  enum { BLOCKS = 30000 };
  ff_trace_writer *w = begin();
  good(ff_trace_put_launch(w, 0, LAUNCH(.kernel = "k", .grid = {BLOCKS, 1, 1}, .block = {32, 1, 1}), &error));
  uint64_t address[32];
  srand(5);
  for (uint64_t block = 0; block < BLOCKS; block++) {
    for (int lane = 0; lane < 32; lane++) address[lane] = (uint64_t)rand() * 4;
    good(ff_trace_begin_warp(w, block, 0, &error));
    good(ff_trace_put_access(w, FF_TRACE_LOAD, 0, 8, 4, UINT32_MAX, address, &error));
  }
  good(ff_trace_finish(w, NULL, &error));
  static char bytes[16 << 20];
  size_t size = slurp(bytes, sizeof bytes);
  uint64_t records, lost;
  read_all(&records, &lost);
  assert_true(records == 2 * BLOCKS && !lost);
  bytes[size / 2] ^= 1;
  spill(bytes, size);
  read_all(&records, &lost);
  assert_true(lost == 1 && records > BLOCKS && records < 2 * BLOCKS);
  bytes[size / 2] ^= 1;
  spill(bytes, size / 2);
  read_all(&records, &lost);
  assert_true(records > 0 && records < 2 * BLOCKS);
  ff_trace_reader *r;
  good(ff_trace_open(path, &r, &error));
  assert_false(ff_trace_information(r)->whole);
  ff_trace_close(r);
  spill("FFTRACE\n\1\100\0\0\0\0\0\0", 16); /* a format that there is not */
  assert_int_equal(ff_trace_open(path, &r, &error), FF_TRACE_NO_TRACE);
  spill("no trace", 8);
  assert_int_equal(ff_trace_open(path, &r, &error), FF_TRACE_NO_TRACE);
  assert_int_equal(ff_trace_open(folder, &r, &error), FF_TRACE_IO);
  assert_int_equal(ff_trace_create(folder, NULL, NULL, &w, &error), FF_TRACE_IO);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_operations),
                                     cmocka_unit_test(test_words),
                                     cmocka_unit_test(test_same_words),
                                     cmocka_unit_test(test_coalescing),
                                     cmocka_unit_test(test_operations_refused),
                                     cmocka_unit_test(test_launches_refused),
                                     cmocka_unit_test(test_records_refused),
                                     cmocka_unit_test(test_spills),
                                     cmocka_unit_test(test_damage),
                                     cmocka_unit_test(test_versions_of_units)};
  return cmocka_run_group_tests(tests, enter, leave);
}
