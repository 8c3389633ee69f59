/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of programs that are written here, record by record: what is counted, offsets, caches, colocation, and files
 * without marks or without an end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "offload/profile.h"
#include "unit/near.h"

enum { LINE = 128, A = 1 << 24, B = 2 << 24, C = 4 << 24 };

/* ---- a program, written ---- */

static char path[64];
static trace_file_writer *writer;

static void begin(void) {
  snprintf(path, sizeof path, "/tmp/farfault-profile-%d.fft", (int)getpid());
  unlink(path);
  assert_int_equal(trace_file_create(path, &(trace_file_about){.complete = true}, &writer, NULL), FF_OK);
}
static trace_file *end(void) {
  trace_file *file;
  assert_int_equal(trace_file_finish(writer, &(trace_file_about){.complete = true}, NULL), FF_OK);
  assert_int_equal(trace_file_open(path, &file, NULL), FF_OK);
  unlink(path);
  return file;
}
static void alloc(uint64_t address, uint64_t bytes, const char *name) {
  trace_op op = {.kind = TRACE_OP_ALLOC, .alloc = {.address = address, .bytes = bytes}};
  snprintf(op.alloc.name, sizeof op.alloc.name, "%s", name);
  trace_file_put_operation(writer, &op);
}
static void launch(uint32_t kernel_index, uint64_t blocks, uint32_t warps) {
  static uint64_t id;
  trace_launch l = {.id = id++,
                    .grid = {(uint32_t)blocks, 1, 1},
                    .block = {32 * warps, 1, 1},
                    .blocks = blocks,
                    .warps_per_block = warps,
                    .kernel_index = kernel_index};
  snprintf(l.kernel, sizeof l.kernel, "kernel%u(int*)", kernel_index);
  trace_file_put_operation(writer, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = &l});
}
static void issue(uint32_t n) { trace_file_put_record(writer, (uint64_t[]){TRACE_ISSUE | (uint64_t)n << 4}); }
static void mark(trace_kind kind, uint32_t pc, uint32_t trips) {
  trace_file_put_record(writer, (uint64_t[]){kind | (uint64_t)trips << 4 | (uint64_t)pc << 32});
}
static void leave_warp(void) { trace_file_put_record(writer, (uint64_t[]){TRACE_EXIT}); }
static void touch_lines(trace_access_op op, uint32_t pc, uint64_t address, uint32_t lines) { /* neighbouring ones */
  uint64_t words[2 + 32] = {TRACE_ACCESS | (uint64_t)op << 4 | 2 << 6 | (uint64_t)lines << 16 | (uint64_t)pc << 32,
                            0xffff};
  for (uint32_t i = 0; i < lines; i++) words[2 + i] = trace_line(address + i * LINE, 32 / lines - 1, 15);
  trace_file_put_record(writer, words);
}
static void touch(trace_access_op op, uint32_t pc, uint64_t address) { touch_lines(op, pc, address, 1); }

static machine_spec spec(void) { return (machine_spec){.l2_bytes = 16 * LINE, .l2_ways = 4, .stack_count = 4}; }

static offload_profile *profile_of(trace_file *file) {
  machine_spec machine = spec();
  offload_profile_options options = {.spec = &machine};
  return offload_profile_run(file, &options);
}

/* ---- tests ---- */

/* Two kernels with one candidate each at the same pc, instances without an access, what is outside. */
static void test_counts(void **state) {
  begin();
  alloc(A, 1 << 20, "a");
  alloc(B, 1 << 20, "b");
  alloc(C, 1 << 20, "c");
  for (uint32_t kernel = 0; kernel < 2; kernel++) {
    launch(kernel, 2, 3);
    for (uint64_t warp = 0; warp < 6; warp++) {
      uint64_t at = warp * LINE;
      issue(10);
      touch(TRACE_LOAD, 3, C + at); /* outside */
      mark(TRACE_ENTER, 7, kernel ? 0 : (uint32_t)warp + 2);
      issue(5);
      if (warp != 5) {
        touch(TRACE_LOAD, 8, A + at);
        if (kernel) touch(TRACE_LOAD, 8, A + at);
        touch_lines(TRACE_STORE, 9, B + 2 * at, 2);
        touch(TRACE_PREFETCH, 10, C);
      }
      mark(TRACE_LEAVE, 7, 0);
      issue(1);
      leave_warp();
    }
  }
  trace_file *file = end();
  offload_profile *p = profile_of(file);
  assert_int_equal(p->bits, 2);
  assert_int_equal(p->warp_instructions, 2 * 6 * 16);
  assert_int_equal(p->candidate_instructions, 2 * 6 * 5);
  assert_int_equal(p->instances, 10);
  assert_int_equal(p->accesses, 12 + 10 + 15 + 10);
  assert_int_equal(p->candidate_accesses, 10 + 15);
  assert_int_equal(p->candidate_count, 2);
  const offload_profile_candidate *m = &p->candidates[0];
  assert_string_equal(m->kernel, "kernel0(int*)");
  assert_true(m->pc == 7 && m->instances == 5 && m->without_access == 1 && m->loads == 5 && m->stores == 5 &&
              m->instructions == 30);
  assert_true(m->trips_known == 5 && m->trips == 2 + 3 + 4 + 5 + 6 && m->trips_least == 2 && m->trips_most == 6);
  assert_within(offload_profile_trips(m), 4, 0);
  assert_within(offload_profile_coal_load(m), 1, 0);
  assert_within(offload_profile_coal_store(m), 2, 0);
  assert_within(offload_profile_miss_load(m), 1, 0);
  assert_int_equal(m->lanes, 10 * 16);
  m = &p->candidates[1];
  assert_string_equal(m->kernel, "kernel1(int*)");
  /* the first access came twice */
  assert_true(m->trips_known == 0 && m->trips == 10 && m->trips_least == 2 && m->trips_most == 2);
  assert_true(offload_profile_miss_load(m) <= 0.5);
  assert_int_equal(p->range_count, 3);
  assert_true(p->ranges[0].touched && p->ranges[1].touched && !p->ranges[2].touched);
  assert_string_equal(p->ranges[1].name, "b");
  assert_int_equal(p->oracle_count, 2);
  assert_true(p->oracle[1].address == B && p->oracle[1].bytes == 1 << 20);
  offload_profile_free(p);
  p = profile_of(file); /* the file is read again */
  assert_int_equal(p->instances, 10);
  offload_profile_free(p);
  trace_file_close(file);
}

/* Loads of a set that fits the cache miss once; of one line more than it has, in turn, always. */
static void test_misses(void **state) {
  for (uint32_t lines = 16; lines <= 20; lines += 4) {
    begin();
    alloc(A, 1 << 20, "a");
    launch(0, 1, 1);
    mark(TRACE_ENTER, 1, 0);
    for (uint32_t round = 0; round < 10; round++)
      for (uint32_t i = 0; i < lines; i++) touch(TRACE_LOAD, 2, A + i * LINE);
    mark(TRACE_LEAVE, 1, 0);
    leave_warp();
    trace_file *file = end();
    offload_profile *p = profile_of(file);
    assert_within(offload_profile_miss_load(&p->candidates[0]), lines == 16 ? 0.1 : 1, 0);
    offload_profile_free(p);
    trace_file_close(file);
  }
}

/* One candidate each: an access alone; b always as far from a; b as far in each launch; one fixed and one anywhere;
 * none. */
static void test_offsets(void **state) {
  begin();
  alloc(A, 1 << 24, "a");
  alloc(B, 1 << 24, "b");
  for (uint64_t round = 0; round < 2; round++) {
    launch(0, 25, 4);
    for (uint64_t warp = 0; warp < 100; warp++) {
      uint64_t at = warp * LINE, anywhere = warp * warp % 97 * LINE, other = round * 4096;
      for (uint32_t pc = 1; pc <= 5; pc++) {
        mark(TRACE_ENTER, pc, 0);
        touch(TRACE_LOAD, 10, A + at);
        if (pc == 2) touch(TRACE_STORE, 11, B + at);
        if (pc == 3) touch(TRACE_STORE, 11, B + at + other);
        if (pc == 4) touch(TRACE_LOAD, 11, B + at), touch(TRACE_STORE, 12, B + anywhere);
        if (pc == 5) touch(TRACE_STORE, 11, B + anywhere);
        mark(TRACE_LEAVE, pc, 0);
      }
      leave_warp();
    }
  }
  trace_file *file = end();
  offload_profile *p = profile_of(file);
  static const offload_offsets expected[] = {OFFLOAD_OFFSETS_SINGLE, OFFLOAD_OFFSETS_ALL, OFFLOAD_OFFSETS_ALL,
                                             OFFLOAD_OFFSETS_SOME, OFFLOAD_OFFSETS_NONE};
  assert_int_equal(p->candidate_count, 5);
  for (uint32_t i = 0; i < 5; i++) assert_int_equal(p->candidates[i].offsets, expected[i]);
  assert_true(p->candidates[3].positions == 2 && p->candidates[3].fixed_positions == 1);
  assert_true(p->candidates[1].distances == 2 * 99 && p->candidates[1].fixed_distances == 2 * 99);
  offload_profile_free(p);
  trace_file_close(file);
}

/* a and b apart by 2^14: all pairs below are good, and 0.1 % of the instances are enough to see it. b of elements twice
 * as large: only a linear map is. */
static void test_colocation(void **state) {
  for (uint64_t scale = 1; scale <= 2; scale++) {
    begin();
    alloc(A, 4096 * LINE, "a");
    alloc(B + (1 << 14), scale * 4096 * LINE, "b");
    launch(0, 1024, 4);
    for (uint64_t i = 0; i < 4096; i++) {
      mark(TRACE_ENTER, 1, 1);
      touch(TRACE_LOAD, 2, A + i * LINE);
      touch(TRACE_STORE, 3, B + (1 << 14) + scale * i * LINE);
      mark(TRACE_LEAVE, 1, 0);
      leave_warp();
    }
    trace_file *file = end();
    offload_profile *p = profile_of(file);
    for (uint32_t i = 0; i < 6 && scale == 1; i++) assert_within(p->pairs[i], 1, 0);
    if (scale == 1)
      assert_true(p->best_lowest == 7 && p->best == 1 && p->early[0].instances == 5 && p->early[0].lowest == 7 &&
                  p->early[0].colocation == 1);
    else assert_true(p->best < 0.6);
    assert_true(p->baseline < p->linear);
    assert_within(p->linear, 1, 0);
    sim_offloading told;
    machine_spec machine = spec();
    offload_profile_offloading(p, &(offload_profile_options){.spec = &machine}, &told);
    assert_true(told.instances == 4096 && told.oracle_count == 2 && told.oracle_linear_count == 2);
    for (uint64_t i = 0; i < 4096; i++)
      assert_int_equal(stack_of(&told.oracle_linear[0].map, A + i * LINE),
                       stack_of(&told.oracle_linear[1].map, B + (1 << 14) + scale * i * LINE));
    offload_profile_free(p);
    trace_file_close(file);
  }
}

/* Whether instances that may go follow indices is told of the whole program; those whose condition does not hold do not
 * count. */
static const sim_candidate *one_follows(void *context, const trace_launch *launch, uint32_t pc) {
  static const sim_candidate all[] = {{.pc = 1, .threshold = 1, .trips = 1},
                                      {.pc = 2, .threshold = 3, .conditional = true, .follows = true}};
  return pc == 1 ? &all[0] : &all[1];
}

static void test_follows(void **state) {
  for (uint32_t trips = 2; trips <= 3; trips++) {
    begin();
    alloc(A, 4096 * LINE, "a");
    launch(0, 4, 1);
    for (uint32_t i = 0; i < 4; i++) {
      mark(TRACE_ENTER, i < 3 ? 1 : 2, i < 3 ? 0 : trips);
      touch(TRACE_LOAD, 2, A + i * LINE);
      mark(TRACE_LEAVE, i < 3 ? 1 : 2, 0);
      leave_warp();
    }
    trace_file *file = end();
    machine_spec machine = spec();
    machine.sm_count = 64, machine.max_threads = 1536;
    offload_profile_options options = {.spec = &machine, .find = one_follows};
    offload_profile *p = offload_profile_run(file, &options);
    sim_offloading told;
    offload_profile_offloading(p, &options, &told);
    assert_int_equal(told.follows, trips == 3);
    assert_int_equal(p->early[0].lowest, trips == 3 ? 14 : 7); /* its one line says nothing of pairs */
    offload_profile_free(p);
    trace_file_close(file);
  }
}

/* No marks: no profile. A candidate that never ends, ENTER behind ENTER, LEAVE of nothing, lines in no allocation: no
 * harm. */
static void test_odd_files(void **state) {
  begin();
  launch(0, 1, 1);
  touch(TRACE_LOAD, 1, A);
  leave_warp();
  trace_file *file = end();
  assert_null(profile_of(file));
  trace_file_close(file);
  begin();
  launch(70000, 1, 2);
  mark(TRACE_LEAVE, 9, 0);
  mark(TRACE_ENTER, 1, 0);
  touch(TRACE_LOAD, 1, A);
  mark(TRACE_ENTER, 2, 0);
  touch(TRACE_ATOMIC, 1, A);
  leave_warp();
  for (uint32_t pc = 0; pc < OFFLOAD_PROFILE_CANDIDATES + 100; pc++) {
    mark(TRACE_ENTER, pc, TRACE_TRIPS_MAX);
    for (uint32_t i = 0; pc == 5 && i < OFFLOAD_PROFILE_LINES + 100; i++) touch(TRACE_STORE, 1, (uint64_t)i * LINE);
    mark(TRACE_LEAVE, pc, 0);
  }
  leave_warp();
  file = end();
  offload_profile *p = profile_of(file);
  assert_int_equal(p->candidate_count, OFFLOAD_PROFILE_CANDIDATES);
  assert_int_equal(p->instances, 3);
  assert_int_equal(p->candidates[5].stores, OFFLOAD_PROFILE_LINES + 100);
  assert_false(p->cut);
  offload_profile_free(p);
  trace_file_close(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_counts),     cmocka_unit_test(test_misses),  cmocka_unit_test(test_offsets),
      cmocka_unit_test(test_colocation), cmocka_unit_test(test_follows), cmocka_unit_test(test_odd_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
