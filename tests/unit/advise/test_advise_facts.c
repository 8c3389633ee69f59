/* SPDX-License-Identifier: Apache-2.0 */
/* What advice takes from a trace itself: a small one is written, and every number of it is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "advise/advise_facts.h"

#define MIB (UINT64_C(1) << 20)
#define HIGH (UINT64_C(1) << 47)
#define BASE (UINT64_C(1) << 40)

static char path[64];
static trace_file_writer *writer;
static uint64_t launches;

static void begin(void) {
  trace_file_about about = {.farfault = "test", .complete = true};
  snprintf(path, sizeof path, "/tmp/farfault-facts-%d.fft", (int)getpid());
  unlink(path);
  launches = 0;
  assert_int_equal(trace_file_create(path, &about, &writer, NULL), FF_OK);
}

static void end(advise_facts *facts) {
  trace_file *file;
  ff_error error;
  trace_file_about about = {.farfault = "test", .complete = true};
  assert_int_equal(trace_file_finish(writer, &about, &error), FF_OK);
  assert_int_equal(trace_file_open(path, &file, &error), FF_OK);
  assert_int_equal(advise_facts_read(file, NULL, NULL, facts, &error), FF_OK);
  trace_file_close(file);
  unlink(path);
}

static void put(trace_op op) { trace_file_put_operation(writer, &op); }

static void alloc(uint32_t id, uint64_t address, uint64_t bytes, trace_memory_kind memory, const char *name) {
  trace_op op = {.kind = TRACE_OP_ALLOC, .alloc = {.address = address, .bytes = bytes, .memory = memory, .id = id}};
  snprintf(op.alloc.name, sizeof op.alloc.name, "%s", name);
  put(op);
}
static void copy(trace_direction direction, uint64_t to, uint64_t from) {
  put((trace_op){.kind = TRACE_OP_COPY,
                 .copy = {.to = to,
                          .from = from,
                          .width = 4096,
                          .height = 1,
                          .to_pitch = 4096,
                          .from_pitch = 4096,
                          .direction = direction,
                          .pinned = true}});
}

static void launch(const char *kernel, uint32_t number, uint32_t uses, const trace_use *use) {
  trace_launch l = {.id = launches++,
                    .grid = {1, 1, 1},
                    .block = {32, 1, 1},
                    .blocks = 1,
                    .warps_per_block = 1,
                    .kernel_index = number,
                    .use_count = uses};
  snprintf(l.kernel, sizeof l.kernel, "%s", kernel);
  if (uses) memcpy(l.uses, use, uses * sizeof *use);
  put((trace_op){.kind = TRACE_OP_LAUNCH, .launch = &l});
}
static void gpu_access(trace_access_op op, uint64_t address, uint32_t sectors) {
  const uint64_t words[] = {TRACE_ACCESS | (uint64_t)op << 4 | UINT64_C(2) << 6 | UINT64_C(1) << 16, 0xffffffff,
                            trace_line(address, 32, sectors)};
  trace_file_put_record(writer, words);
}
static void leave(void) { trace_file_put_record(writer, (const uint64_t[]){TRACE_EXIT}); }

static void every_number_is_known(void **state) {
  (void)state;
  advise_facts f;
  begin();
  alloc(1, BASE, 3 * MIB, TRACE_MEMORY_DEVICE, "one");
  alloc(2, BASE + 3 * MIB, 4096, TRACE_MEMORY_DEVICE, "two\x1b[31m`");
  alloc(3, BASE + MIB, 4096, TRACE_MEMORY_DEVICE, "within the first");
  alloc(4, BASE + 16 * MIB, MIB, TRACE_MEMORY_PINNED, "pinned");
  copy(TRACE_H2D, BASE, 0x1000);
  const trace_use uses[] = {{BASE, 3 * MIB}, {BASE + 3 * MIB, 4096}};
  launch("first", 5, 2, uses);
  gpu_access(TRACE_LOAD, BASE, 15);
  gpu_access(TRACE_LOAD, BASE + 128, 1);
  gpu_access(TRACE_STORE, BASE + 4096, 3);
  gpu_access(TRACE_ATOMIC, BASE + 16 * MIB, 1);
  gpu_access(TRACE_LOAD, BASE + 64 * MIB, 1); /* no allocation's */
  leave();
  launch("second", 6, 1, uses);
  gpu_access(TRACE_LOAD, BASE + 8192, 1);
  leave();
  copy(TRACE_D2H, 0x1000, BASE + 100);
  put((trace_op){.kind = TRACE_OP_HOST_TOUCH, .touch = {BASE + 3 * MIB, 0, false}}); /* of nothing */
  end(&f);
  assert_int_equal(f.allocations.count, 3);
  assert_int_equal(f.launches, 2);
  assert_int_equal(f.accesses, 6);
  assert_int_equal(f.footprint, 3 * MIB + 4096);
  assert_int_equal(f.footprint_blocks, 4 * MIB);
  assert_false(f.managed);
  const advise_allocation *a = advise_facts_find(&f, 1);
  assert_int_equal(a->pages, 768);
  assert_int_equal(a->touched_pages, 3);
  assert_int_equal(a->loads, 3);
  assert_int_equal(a->writes, 1);
  assert_int_equal(a->sector_bytes, (4 + 1 + 2 + 1) * 32);
  assert_int_equal(a->host_uses, 2);
  assert_int_equal(a->host_uses_later, 1);
  assert_int_equal(a->declared, 2);
  assert_int_equal(a->touched, 2);
  a = advise_facts_find(&f, 2);
  assert_string_equal(a->name, "two?[31m?"); /* nothing that a terminal would obey */
  assert_int_equal(a->declared, 1);
  assert_int_equal(a->touched, 0);
  assert_int_equal(a->host_uses, 0);
  assert_null(advise_facts_find(&f, 3));
  assert_int_equal(advise_facts_find(&f, 4)->writes, 1);
  assert_int_equal(f.kernels.count, 2);
  assert_int_equal(f.kernels.items[0].number, 5);
  assert_int_equal(f.kernels.items[0].uses.count, 3);
  assert_int_equal(f.kernels.items[0].uses.items[1].declared, 1);
  assert_int_equal(f.kernels.items[0].uses.items[1].touched, 0);
  advise_facts_free(&f);
}

static void freed_memory_is_another_allocation(void **state) {
  (void)state;
  advise_facts f;
  begin();
  for (uint32_t id = 1; id <= 3; id++) {
    alloc(id, BASE, 2 * MIB, TRACE_MEMORY_MANAGED, "again");
    launch("kernel", 0, 0, NULL);
    gpu_access(TRACE_LOAD, BASE + 4096 * id, 1);
    leave();
    put((trace_op){.kind = TRACE_OP_FREE, .free = {.address = BASE, .id = id}});
  }
  end(&f);
  assert_int_equal(f.allocations.count, 3);
  assert_true(f.managed);
  for (uint32_t id = 1; id <= 3; id++) assert_int_equal(advise_facts_find(&f, id)->loads, 1);
  assert_int_equal(f.footprint_blocks, 2 * MIB);
  assert_int_equal(f.kernels.items[0].launches, 3);
  advise_facts_free(&f);
}

/* Sizes that no machine has, and more allocations than are kept. */
static void nothing_overflows(void **state) {
  (void)state;
  advise_facts f;
  begin();
  alloc(2, 0, 0, TRACE_MEMORY_DEVICE, "nothing");
  alloc(3, HIGH, UINT64_C(1) << 46, TRACE_MEMORY_DEVICE, "too large for a map of its pages");
  for (uint32_t i = 0; i < ADVISE_ALLOCATIONS_MAX + 10; i++)
    alloc(10 + i, BASE + i * 4096, 4096, TRACE_MEMORY_DEVICE, "small");
  launch("kernel", 0, 0, NULL);
  gpu_access(TRACE_LOAD, HIGH, 1);
  gpu_access(TRACE_LOAD, BASE + (ADVISE_ALLOCATIONS_MAX + 5) * UINT64_C(4096), 1);
  leave();
  end(&f);
  assert_int_equal(f.allocations.count, ADVISE_ALLOCATIONS_MAX);
  assert_int_equal(f.left_out, 11);
  assert_int_equal(advise_facts_find(&f, 3)->pages, 0);
  assert_int_equal(advise_facts_find(&f, 3)->loads, 1);
  advise_facts_free(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_number_is_known),
      cmocka_unit_test(freed_memory_is_another_allocation),
      cmocka_unit_test(nothing_overflows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
