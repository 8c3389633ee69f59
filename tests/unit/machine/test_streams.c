/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events, the host's clock: what overlaps, what waits. A copy of 1.6 MB takes 100 us of the rig's link. */
#include "rig.h"

#include <pthread.h>
#include <unistd.h>

#define COPY_BYTES UINT64_C(1600000)

static void busy(trace_writer *w, uint64_t b, uint32_t i, const void *c) { /* 100 us: 25,000 instructions of 4 ns */
  for (int n = 0; n < 5; n++) rig_issue(w, 5000);
}
static rig_kernel busy_kernel(uint32_t stream) {
  return (rig_kernel){.blocks = 1, .warps = 1, .warp = busy, .stream = stream};
}

static void make_stream(rig *r, uint32_t number, uint32_t flags) {
  rig_op(r, (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = number, .stream_create = {flags}});
}

static void begin(rig *r, const char *manager) {
  rig_open(r, manager);
  rig_start(r);
  rig_alloc(r, RIG_BASE, 8 << 20, TRACE_MEMORY_DEVICE);
}
static void copy_async(rig *r, trace_direction direction, uint32_t stream) {
  if (direction == TRACE_H2D) rig_copy(r, TRACE_H2D, RIG_BASE, 0x1000, COPY_BYTES, false, stream);
  else rig_copy(r, TRACE_D2H, 0x1000, RIG_BASE, COPY_BYTES, false, stream);
}
static ps finish_time(rig *r) {
  ps time = rig_finish(r)->counters.time_ps;
  rig_close(r);
  return time;
}

/* ---- overlap ---- */

static ps kernel_and_copy(uint32_t kernel_stream, uint32_t copy_stream, uint32_t flags) {
  rig r;
  begin(&r, "copy");
  make_stream(&r, 1, flags);
  make_stream(&r, 2, flags);
  rig_launch(&r, busy_kernel(kernel_stream));
  copy_async(&r, TRACE_H2D, copy_stream);
  rig_sync(&r);
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.overlap_ps, c.kernel_ps + c.transfer_ps - c.time_ps); /* something is always at work */
  rig_close(&r);
  return c.time_ps;
}

static void test_kernel_and_copy(void **state) {
  assert_int_equal(kernel_and_copy(1, 1, 0), 200 * US);
  assert_int_equal(kernel_and_copy(1, 2, 0), 100 * US);
  /* The legacy default stream waits for blocking streams and they for it; non-blocking ones do not. */
  assert_int_equal(kernel_and_copy(1, 0, 0), 200 * US);
  assert_int_equal(kernel_and_copy(0, 1, 0), 200 * US);
  assert_int_equal(kernel_and_copy(1, 0, TRACE_STREAM_NON_BLOCKING), 100 * US);
  assert_int_equal(kernel_and_copy(0, 1, TRACE_STREAM_NON_BLOCKING), 100 * US);
}

/* Copies before, during and after a kernel: 50 us of the link's 300 us are at the same time as it. */
static void test_overlap_counts_what_is_parallel(void **state) {
  rig r;
  begin(&r, "copy");
  make_stream(&r, 1, TRACE_STREAM_NON_BLOCKING);
  make_stream(&r, 2, TRACE_STREAM_NON_BLOCKING);
  copy_async(&r, TRACE_H2D, 1);
  rig_launch(&r, busy_kernel(1)); /* from 100 to 200 us */
  /* from 0 to 150 us, on an engine of its own */
  rig_copy(&r, TRACE_D2H, 0x1000, RIG_BASE, COPY_BYTES * 3 / 2, false, 2);
  copy_async(&r, TRACE_H2D, 1);
  rig_sync(&r);
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.time_ps, 300 * US);
  assert_int_equal(c.kernel_ps, 100 * US);
  assert_int_equal(c.transfer_ps, 250 * US);
  assert_int_equal(c.overlap_ps, 50 * US);
  rig_close(&r);
}

static void test_legacy_stream_is_a_fence(void **state) {
  rig r;
  begin(&r, "copy");
  make_stream(&r, 1, 0);
  make_stream(&r, 2, 0);
  rig_launch(&r, busy_kernel(1));
  rig_launch(&r, busy_kernel(0)); /* after the first */
  rig_launch(&r, busy_kernel(2)); /* after the second, though its stream is idle */
  rig_sync(&r);
  assert_int_equal(finish_time(&r), 300 * US);
}

static ps both_directions(uint64_t engines) {
  rig r;
  rig_open(&r, "copy");
  r.spec.copy_engines = engines;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 8 << 20, TRACE_MEMORY_DEVICE);
  make_stream(&r, 1, 0);
  make_stream(&r, 2, 0);
  copy_async(&r, TRACE_H2D, 1);
  copy_async(&r, TRACE_D2H, 2);
  rig_sync(&r);
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->h2d_busy_ps, 100 * US);
  assert_int_equal(c->d2h_busy_ps, 100 * US);
  assert_int_equal(c->transfer_ps, c->time_ps);
  ps time = c->time_ps;
  rig_close(&r);
  return time;
}

static void test_copy_engines(void **state) {
  assert_int_equal(both_directions(1), 200 * US);
  assert_int_equal(both_directions(2), 100 * US);
}

static ps two_kernels(uint32_t first, uint32_t second, uint64_t blocks) {
  rig r;
  begin(&r, "copy");
  make_stream(&r, 1, 0);
  make_stream(&r, 2, 0);
  rig_kernel k = busy_kernel(first);
  k.blocks = blocks;
  rig_launch(&r, k);
  k.stream = second;
  rig_launch(&r, k);
  rig_sync(&r);
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.kernel_ps, c.time_ps); /* the union, not the sum */
  rig_close(&r);
  return c.time_ps;
}

static void test_kernels_share_the_device(void **state) {
  assert_int_equal(two_kernels(1, 1, 15), 200 * US);
  assert_int_equal(two_kernels(1, 2, 15), 100 * US);      /* one warp each on every SM */
  assert_int_equal(two_kernels(1, 2, 15 * 8), 200 * US);  /* the first fills all places for blocks */
  assert_near(two_kernels(1, 2, 15 * 4), 100 * US, 0.01); /* each takes half of them, and half of the issue slots */
}

/* ---- events ---- */

static void test_event_times_and_stream_wait(void **state) {
  rig r;
  uint64_t before, after, other;
  begin(&r, "copy");
  make_stream(&r, 1, 0);
  make_stream(&r, 2, 0);
  rig_record(&r, 1, &before);
  rig_launch(&r, busy_kernel(1));
  uint32_t event = rig_record(&r, 1, &after);
  rig_op(&r, (trace_op){.kind = TRACE_OP_STREAM_WAIT, .stream = 2, .event = {event}});
  copy_async(&r, TRACE_H2D, 2);
  rig_record(&r, 2, &other);
  rig_op(&r, (trace_op){.kind = TRACE_OP_SYNC_EVENT, .event = {event}});
  uint64_t synchronised = rig_op(&r, (trace_op){.kind = TRACE_OP_HOST});
  rig_finish(&r);
  assert_int_equal(sim_event_time(r.sim, before), 0);
  assert_int_equal(sim_event_time(r.sim, after), 100 * US);
  assert_int_equal(sim_event_time(r.sim, other), 200 * US);
  assert_int_equal(sim_host_time(r.sim, synchronised), 100 * US);
  assert_false(sim_event_happened(r.sim, after, before));
  assert_true(sim_event_happened(r.sim, after, synchronised));
  assert_false(sim_event_happened(r.sim, other, synchronised));
  rig_close(&r);
}

/* With one stream at work its launches are simulated ahead of the host; what waits for their events still waits. */
static void test_wait_for_an_event_that_is_known(void **state) {
  rig r;
  uint64_t sequence;
  begin(&r, "copy");
  make_stream(&r, 1, TRACE_STREAM_NON_BLOCKING);
  rig_launch(&r, busy_kernel(1));
  uint32_t event = rig_record(&r, 1, &sequence);
  rig_launch(&r, busy_kernel(1));
  rig_op(&r, (trace_op){.kind = TRACE_OP_STREAM_WAIT, .stream = 0, .event = {event}});
  rig_record(&r, 0, &sequence);
  rig_finish(&r);
  assert_int_equal(sim_event_time(r.sim, sequence), 100 * US);
  rig_close(&r);
}

static void *run_thread(void *simulation) {
  sim_run(simulation);
  return NULL;
}

/* A thread asks when an event happens, and nothing else will come: the simulation must go on by itself. */
static void test_question_without_further_operations(void **state) {
  rig r;
  uint64_t event;
  pthread_t thread;
  begin(&r, "copy");
  pthread_create(&thread, NULL, run_thread, r.sim);
  make_stream(&r, 1, TRACE_STREAM_NON_BLOCKING);
  make_stream(&r, 2, TRACE_STREAM_NON_BLOCKING);
  copy_async(&r, TRACE_H2D, 2); /* a second stream has work: launches are not simulated at once */
  rig_launch(&r, busy_kernel(1));
  rig_record(&r, 1, &event);
  assert_false(sim_event_happened(r.sim, event, event));
  assert_int_equal(sim_event_time(r.sim, event), 100 * US);
  assert_int_equal(sim_host_time(r.sim, event), 0); /* the host has not waited */
  sim_result snapshot;
  sim_snapshot(r.sim, &snapshot);
  assert_false(snapshot.complete);
  assert_int_equal(snapshot.counters.blocks, 1);
  sim_result_free(&snapshot);
  rig_op(&r, (trace_op){.kind = TRACE_OP_END});
  pthread_join(thread, NULL);
  rig_close(&r);
}

/* The simulation follows a program that is still being written, with blocks published late; snapshots come between. */
static void *write_late(void *argument) {
  rig *r = argument;
  for (int i = 0; i < 5; i++) {
    rig_kernel k = {.blocks = 40, .warps = 2, .warp = busy};
    trace_launch *l = rig_launch_begin(r, k);
    for (uint64_t b = 0; b < k.blocks; b++) {
      if (b % 10 == 3) usleep(500);
      rig_block(l, &k, b);
    }
    trace_launch_finish(l);
  }
  rig_op(r, (trace_op){.kind = TRACE_OP_END});
  return NULL;
}
static void test_co_simulation(void **state) {
  rig r;
  pthread_t writer, simulation;
  begin(&r, "copy");
  pthread_create(&simulation, NULL, run_thread, r.sim);
  pthread_create(&writer, NULL, write_late, &r);
  uint64_t last = 0;
  for (bool complete = false; !complete; usleep(200)) {
    sim_result snapshot;
    sim_snapshot(r.sim, &snapshot);
    assert_true(snapshot.counters.warp_instructions >= last);
    last = snapshot.counters.warp_instructions;
    complete = snapshot.complete;
    sim_result_free(&snapshot);
  }
  pthread_join(writer, NULL);
  pthread_join(simulation, NULL);
  assert_int_equal(last, UINT64_C(5) * 40 * 2 * 25000);
  rig_close(&r);
}

/* ---- the host's clock ---- */

static void test_host_costs(void **state) {
  rig r;
  rig_open(&r, "copy");
  r.spec.api_us = 1;
  r.spec.launch_us = 3;
  r.spec.sync_us = 5;
  r.spec.malloc_us = 10;
  r.spec.link_copy_us = 7;
  r.spec.link_latency_us = 2;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 8 << 20, TRACE_MEMORY_DEVICE);
  uint64_t copied = rig_h2d(&r, RIG_BASE, COPY_BYTES); /* waits */
  rig_launch(&r, busy_kernel(0));                      /* does not */
  uint64_t host = rig_op(&r, (trace_op){.kind = TRACE_OP_HOST});
  uint64_t synchronised = rig_sync(&r);
  rig_finish(&r);
  assert_int_equal(sim_host_time(r.sim, copied), (10 + 7 + 2 + 100) * US);
  assert_int_equal(sim_host_time(r.sim, host), (119 + 3 + 1) * US);
  assert_int_equal(sim_host_time(r.sim, synchronised), (119 + 3 + 100 + 5) * US);
  assert_int_equal(r.result.counters.host_api_ps, (10 + 7 + 3 + 1 + 5) * US);
  assert_int_equal(r.result.counters.host_wait_ps, (102 + 99) * US);
  rig_close(&r);
}

/* What comes with the program, no call allocates: many variables of a module are no many allocations. */
static void test_variables_take_no_time(void **state) {
  rig r;
  rig_open(&r, "copy");
  r.spec.malloc_us = 10;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 8 << 20, TRACE_MEMORY_DEVICE);
  for (uint32_t i = 0; i < 30; i++)
    rig_op(&r, (trace_op){.kind = TRACE_OP_ALLOC,
                          .alloc = {.address = 2 * RIG_BASE + i * 4096,
                                    .bytes = 4,
                                    .memory = i & 1 ? TRACE_MEMORY_MANAGED : TRACE_MEMORY_DEVICE,
                                    .id = 2 + i,
                                    .name = "variable",
                                    .initialised = true}});
  uint64_t there = rig_op(&r, (trace_op){.kind = TRACE_OP_HOST});
  for (uint32_t i = 0; i < 30; i++)
    rig_op(&r, (trace_op){.kind = TRACE_OP_FREE, .free = {.address = 2 * RIG_BASE + i * 4096, .id = 2 + i}});
  uint64_t freed = rig_op(&r, (trace_op){.kind = TRACE_OP_HOST});
  rig_finish(&r);
  assert_int_equal(sim_host_time(r.sim, there), 10 * US);
  assert_int_equal(sim_host_time(r.sim, freed), sim_host_time(r.sim, there));
  rig_close(&r);
}

static void test_free_waits_for_the_device(void **state) {
  rig r;
  begin(&r, "copy");
  rig_launch(&r, busy_kernel(0));
  uint64_t freed = rig_op(&r, (trace_op){.kind = TRACE_OP_FREE, .free = {.address = RIG_BASE}});
  rig_finish(&r);
  assert_int_equal(sim_host_time(r.sim, freed), 100 * US);
  rig_close(&r);
}

static void test_link_table(void **state) {
  rig r;
  rig_open(&r, "copy");
  r.spec.link_latency_us = 2;
  r.spec.link_table = (machine_size_table){.points = {{4096, 4}, {65536, 8}}, .count = 2};
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 8 << 20, TRACE_MEMORY_DEVICE);
  uint64_t sizes[] = {4096, 65536, 16384, 1024, COPY_BYTES};
  uint64_t expected_ps[] = {4096 * 250, 65536 * 125, 16384 * 1000 / 6, 4096 * 250,
                            65536 * 125 + (COPY_BYTES - 65536) * 1000 / 16};
  ps last = 0;
  uint64_t sequences[5];
  for (int i = 0; i < 5; i++) sequences[i] = rig_h2d(&r, RIG_BASE, sizes[i]);
  rig_finish(&r);
  for (int i = 0; i < 5; i++) {
    ps now = sim_host_time(r.sim, sequences[i]);
    assert_near(now - last, expected_ps[i], 1e-5); /* 16 KiB: half way between the points in the logarithm: 6 GB/s */
    last = now;
  }
  rig_close(&r);
}

static void test_stream_destroyed_with_work(void **state) {
  rig r;
  begin(&r, "copy");
  make_stream(&r, 1, 0);
  make_stream(&r, 2, 0);
  rig_launch(&r, busy_kernel(1));
  rig_launch(&r, busy_kernel(2));
  rig_op(&r, (trace_op){.kind = TRACE_OP_STREAM_DESTROY, .stream = 1});
  rig_launch(&r, busy_kernel(0)); /* still waits for it */
  rig_sync(&r);
  assert_int_equal(finish_time(&r), 200 * US);
}

static void test_many_operations_need_no_memory(void **state) {
  rig r;
  begin(&r, "copy");
  for (int i = 0; i < 20000; i++) {
    rig_h2d(&r, RIG_BASE, 16);
    rig_set(&r, RIG_BASE, 16);
  }
  rig_finish(&r);
  assert_true(r.sim->streams.nodes.count < 10);
  assert_int_equal(r.result.counters.copies, 40000);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kernel_and_copy),
      cmocka_unit_test(test_overlap_counts_what_is_parallel),
      cmocka_unit_test(test_legacy_stream_is_a_fence),
      cmocka_unit_test(test_copy_engines),
      cmocka_unit_test(test_kernels_share_the_device),
      cmocka_unit_test(test_event_times_and_stream_wait),
      cmocka_unit_test(test_wait_for_an_event_that_is_known),
      cmocka_unit_test(test_question_without_further_operations),
      cmocka_unit_test(test_co_simulation),
      cmocka_unit_test(test_host_costs),
      cmocka_unit_test(test_variables_take_no_time),
      cmocka_unit_test(test_free_waits_for_the_device),
      cmocka_unit_test(test_link_table),
      cmocka_unit_test(test_stream_destroyed_with_work),
      cmocka_unit_test(test_many_operations_need_no_memory),
  };
  return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
