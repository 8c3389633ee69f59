/* SPDX-License-Identifier: Apache-2.0 */
/* Hints that a simulation is given from outside (machine/host/given_hints.h): their text; and that each does what the
 * program's own call would do, to the picosecond. */
#include "rig.h"

#include "machine/host/given_hints.h"
#include "policy/manager.h"

#define PAGES 16
#define BYTES (PAGES * UINT64_C(4096))
#define FIRST RIG_BASE
#define SECOND (RIG_BASE + (UINT64_C(4) << 20))

/* ---- text ---- */

static void good_text(void **state) {
  (void)state;
  sim_hints h;
  assert_int_equal(sim_hints_read("1:prefetch/all:read-mostly/12:undeclared@3/7:undeclared/2:pin", &h, NULL), FF_OK);
  assert_int_equal(h.count, 5);
  assert_true(sim_hints_have(&h, 1, SIM_HINT_PREFETCH));
  assert_false(sim_hints_have(&h, 12, SIM_HINT_PREFETCH));
  assert_true(sim_hints_have(&h, 1, SIM_HINT_READ_MOSTLY) && sim_hints_have(&h, 99, SIM_HINT_READ_MOSTLY));
  assert_true(sim_hints_undeclare(&h, 12, 3));
  assert_false(sim_hints_undeclare(&h, 12, 4));
  assert_true(sim_hints_undeclare(&h, 7, 0) && sim_hints_undeclare(&h, 7, 9));
  assert_false(sim_hints_undeclare(&h, 1, 3));
}

static void bad_text(void **state) {
  (void)state;
  static const char *const bad[] = {"",
                                    "1",
                                    "1:",
                                    ":pin",
                                    "1:pin/",
                                    "/1:pin",
                                    "x:pin",
                                    "-1:pin",
                                    "1:pins",
                                    "1:pin@2",
                                    "1:undeclared@",
                                    "1:undeclared@x",
                                    "all",
                                    "allpin",
                                    "1 :pin",
                                    "9999999999:pin",
                                    "1:undeclared@9999999999",
                                    "1:pin//2:pin",
                                    "1:undeclared@1@2"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    sim_hints h;
    ff_error error = {0};
    if (sim_hints_read(bad[i], &h, &error) != FF_INVALID) fail_msg("'%s' was read", bad[i]);
    assert_true(error.message[0]);
  }
  char many[SIM_HINTS_MAX * 8 + 16] = "1:pin";
  for (int i = 1; i < SIM_HINTS_MAX; i++) strcat(many, "/1:pin");
  sim_hints h;
  assert_int_equal(sim_hints_read(many, &h, NULL), FF_OK);
  strcat(many, "/1:pin");
  assert_int_equal(sim_hints_read(many, &h, NULL), FF_LIMIT);
}

/* ---- what they do ---- */

static void work(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  for (uint64_t n = 0; n < PAGES; n++) {
    rig_load_wait(w, FIRST + n * 4096);
    rig_store(w, SECOND + n * 4096);
  }
}

static void advise(rig *r, uint64_t address, trace_advice advice, int device) {
  rig_op(r, (trace_op){.kind = TRACE_OP_ADVISE, .hint = {address, BYTES, (int32_t)advice, device}});
}
static void prefetch(rig *r, uint64_t address) {
  rig_op(r, (trace_op){.kind = TRACE_OP_PREFETCH, .hint = {address, BYTES, 0, 0}});
}
static void launch(rig *r) {
  rig_launch(r, (rig_kernel){
                    .blocks = 1, .warps = 1, .warp = work, .use_count = 2, .uses = {{FIRST, BYTES}, {SECOND, BYTES}}});
}
static void touch(rig *r, bool write) {
  rig_op(r, (trace_op){.kind = TRACE_OP_HOST_TOUCH, .touch = {FIRST, 4096, write}});
}

typedef enum what { NONE, PIN, CPU, READ_MOSTLY, PREFETCH } what;

/* Two launches, after the second of which the host reads the first allocation, and a third. `own`: the program's own
 * hints on the first allocation; `given`: hints from outside. */
static sim_counters run(const char *manager, what own, const char *given, trace_memory_kind memory) {
  rig r;
  rig_open(&r, manager);
  r.spec.api_us = 1;
  r.spec.fault_batch_us = 10;
  r.prefetch = "none";
  r.advise = given;
  rig_start(&r);
  rig_alloc(&r, FIRST, BYTES, memory);
  if (own == PIN || own == CPU) advise(&r, FIRST, TRACE_ADVICE_SET_PREFERRED_LOCATION, -1);
  if (own == PIN) advise(&r, FIRST, TRACE_ADVICE_SET_ACCESSED_BY, 0);
  if (own == READ_MOSTLY) advise(&r, FIRST, TRACE_ADVICE_SET_READ_MOSTLY, 0);
  rig_alloc(&r, SECOND, BYTES, TRACE_MEMORY_MANAGED);
  rig_h2d(&r, FIRST, BYTES);
  if (own == PREFETCH) prefetch(&r, FIRST);
  launch(&r);
  launch(&r);
  rig_sync(&r);
  touch(&r, false);
  if (own == PREFETCH) prefetch(&r, FIRST);
  launch(&r);
  rig_sync(&r);
  sim_counters c = rig_finish(&r)->counters;
  rig_close(&r);
  return c;
}

static void as_the_program_would(void **state) {
  (void)state;
  static const struct {
    what own;
    const char *given;
  } hints[] = {
      {PIN, "1:pin"}, {CPU, "1:cpu"}, {READ_MOSTLY, "1:read-mostly"}, {PREFETCH, "1:prefetch"}, {NONE, "3:pin"}};
  static const char *const managers[] = {"replay", "uvm", "demand", "auto"};
  for (size_t m = 0; m < 4; m++) {
    sim_counters plain = run(managers[m], NONE, NULL, TRACE_MEMORY_MANAGED);
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
      sim_counters own = run(managers[m], hints[i].own, NULL, TRACE_MEMORY_MANAGED),
                   given = run(managers[m], NONE, hints[i].given, TRACE_MEMORY_MANAGED);
      if (memcmp(&own, &given, sizeof own))
        fail_msg("%s: %s is not what the program's own calls do", managers[m], hints[i].given);
      if ((hints[i].own == NONE) == (memcmp(&plain, &given, sizeof own) != 0))
        fail_msg("%s: %s", managers[m], hints[i].given);
    }
  }
}

static void device_memory_with_a_hint_is_managed(void **state) {
  (void)state;
  sim_counters managed = run("uvm", NONE, "1:pin", TRACE_MEMORY_MANAGED),
               device = run("uvm", NONE, "1:pin", TRACE_MEMORY_DEVICE);
  assert_memory_equal(&managed, &device, sizeof managed);
  assert_true(device.remote_bytes > 0);
  assert_int_equal(run("uvm", NONE, NULL, TRACE_MEMORY_DEVICE).remote_bytes, 0);
  assert_int_equal(run("uvm", NONE, "1:undeclared", TRACE_MEMORY_DEVICE).remote_bytes, 0);
}

static void all_means_every_allocation(void **state) {
  (void)state;
  sim_counters c = run("uvm", NONE, "all:prefetch", TRACE_MEMORY_DEVICE);
  assert_int_equal(c.faults, 0);
  c = run("uvm", NONE, "1:prefetch/2:prefetch", TRACE_MEMORY_DEVICE);
  assert_int_equal(c.faults, 0);
  c = run("uvm", NONE, "1:prefetch", TRACE_MEMORY_DEVICE);
  assert_int_equal(c.faults, PAGES); /* of the second */
}

static void what_is_undeclared_comes_by_far_faults(void **state) {
  (void)state;
  rig r;
  uint64_t faults[2];
  for (int i = 0; i < 2; i++) {
    rig_open(&r, "segments");
    r.advise = i ? "1:undeclared" : "1:undeclared@5"; /* 5: of another kernel */
    rig_start(&r);
    rig_alloc(&r, FIRST, BYTES, TRACE_MEMORY_DEVICE);
    rig_alloc(&r, SECOND, BYTES, TRACE_MEMORY_DEVICE);
    rig_h2d(&r, FIRST, BYTES);
    launch(&r);
    faults[i] = rig_finish(&r)->counters.undeclared_faults;
    rig_close(&r);
  }
  assert_int_equal(faults[0], 0);
  assert_int_equal(faults[1], PAGES);
}

static void memory_that_is_freed_is_forgotten(void **state) {
  (void)state;
  uint64_t faults[2];
  for (int i = 0; i < 2; i++) {
    rig r;
    rig_open(&r, "replay");
    r.advise = i ? "1:prefetch" : NULL;
    rig_start(&r);
    rig_alloc(&r, FIRST, BYTES, TRACE_MEMORY_MANAGED);
    rig_op(&r, (trace_op){.kind = TRACE_OP_FREE, .free = {.address = FIRST, .id = 1}});
    rig_alloc(&r, FIRST, BYTES, TRACE_MEMORY_MANAGED); /* number 2, in the same place */
    rig_alloc(&r, SECOND, BYTES, TRACE_MEMORY_MANAGED);
    launch(&r);
    faults[i] = rig_finish(&r)->counters.faults;
    rig_close(&r);
  }
  assert_int_equal(faults[0], 2 * PAGES);
  assert_int_equal(faults[1], faults[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(good_text),
      cmocka_unit_test(bad_text),
      cmocka_unit_test(as_the_program_would),
      cmocka_unit_test(device_memory_with_a_hint_is_managed),
      cmocka_unit_test(all_means_every_allocation),
      cmocka_unit_test(what_is_undeclared_comes_by_far_faults),
      cmocka_unit_test(memory_that_is_freed_is_forgotten),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
