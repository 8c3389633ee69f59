/* SPDX-License-Identifier: Apache-2.0 */
/* Several devices of one program: one host, events across devices, copies over both links. A copy of 1.6 MB takes 100
 * us of a link, the kernel 100 us of a device, and the host's calls nothing. */
#include "rig.h"

#include <pthread.h>

#include "trace/origin.h"

#define COPY_BYTES UINT64_C(1600000)
#define MEMORY(device) (RIG_BASE + (uint64_t)(device) * (16 << 20))

typedef struct devices {
  rig r;
  uint32_t count;
  sim_peers *peers;
  sim *sims[TRACE_DEVICES_MAX];
  sim_result results[TRACE_DEVICES_MAX];
} devices;

static uint32_t on(uint32_t device, uint32_t stream) { return trace_origin(stream, device, false); }

static void begin(devices *d, const char *manager, uint32_t count, bool meet) {
  ff_error error = {0};
  *d = (devices){.count = count, .peers = meet ? sim_peers_create(0, count) : NULL};
  rig_open(&d->r, manager);
  d->r.program = trace_program_create(0);
  for (uint32_t i = 0; i < count; i++) {
    sim_options options = {.device_index = i, .peers = d->peers, .spec = &d->r.spec, .manager = manager};
    if (sim_create(d->r.program, &options, &d->sims[i], &error)) fail_msg("%s", error.message);
  }
  for (uint32_t i = 0; i < count; i++) {
    trace_op alloc = {
        .kind = TRACE_OP_ALLOC,
        .stream = on(i, 0),
        .alloc = {.address = MEMORY(i), .bytes = 8 << 20, .memory = TRACE_MEMORY_DEVICE, .id = i + 1, .name = "array"}};
    rig_op(&d->r, alloc);
    rig_op(
        &d->r,
        (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = on(i, 1), .stream_create = {TRACE_STREAM_NON_BLOCKING}});
    rig_op(
        &d->r,
        (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = on(i, 2), .stream_create = {TRACE_STREAM_NON_BLOCKING}});
  }
}

static void *run(void *of) {
  sim_run(of);
  return NULL;
}

static void finish(devices *d) {
  pthread_t threads[TRACE_DEVICES_MAX];
  rig_op(&d->r, (trace_op){.kind = TRACE_OP_END});
  for (uint32_t i = 0; i < d->count; i++) assert_int_equal(pthread_create(&threads[i], NULL, run, d->sims[i]), 0);
  for (uint32_t i = 0; i < d->count; i++) pthread_join(threads[i], NULL);
  for (uint32_t i = 0; i < d->count; i++) sim_snapshot(d->sims[i], &d->results[i]);
}

static void end(devices *d) {
  for (uint32_t i = 0; i < d->count; i++) {
    assert_string_equal(d->results[i].error, "");
    sim_result_free(&d->results[i]);
    sim_free(d->sims[i]);
  }
  sim_peers_free(d->peers);
  trace_program_free(d->r.program);
}

static void expect_times(devices *d, ps time) {
  finish(d);
  for (uint32_t i = 0; i < d->count; i++) assert_int_equal(d->results[i].counters.time_ps, time);
  end(d);
}

static void busy(trace_writer *w, uint64_t b, uint32_t i, const void *c) { /* 100 us: 25,000 instructions of 4 ns */
  for (int n = 0; n < 5; n++) rig_issue(w, 5000);
}
static void work(devices *d, uint32_t device, uint32_t stream) {
  rig_launch(&d->r, (rig_kernel){.blocks = 1, .warps = 1, .warp = busy, .stream = on(device, stream)});
}
static void sync_device(devices *d, uint32_t device) {
  rig_op(&d->r, (trace_op){.kind = TRACE_OP_SYNC_DEVICE, .stream = on(device, 0)});
}
static void wait_for(devices *d, uint32_t stream, uint32_t event) {
  rig_op(&d->r, (trace_op){.kind = TRACE_OP_STREAM_WAIT, .stream = stream, .event = {event}});
}

/* ---- the host ---- */

static void test_devices_work_side_by_side(void **state) {
  devices d;
  begin(&d, "copy", 3, true);
  for (uint32_t i = 0; i < 3; i++) work(&d, i, 1);
  for (uint32_t i = 0; i < 3; i++) sync_device(&d, i);
  expect_times(&d, 100 * US);
}

static void test_the_host_waits_for_any(void **state) {
  devices d;
  begin(&d, "copy", 3, true);
  for (uint32_t i = 0; i < 3; i++) {
    work(&d, i, 1);
    sync_device(&d, i);
  }
  expect_times(&d, 300 * US);
  begin(&d, "copy", 2, false); /* alone, none knows how long the host waits for the other */
  work(&d, 0, 1);
  sync_device(&d, 0);
  work(&d, 1, 1);
  sync_device(&d, 1);
  expect_times(&d, 100 * US);
}

static void test_a_blocking_copy_is_waited_for(void **state) {
  devices d;
  begin(&d, "copy", 2, true);
  rig_copy(&d.r, TRACE_D2H, 0x1000, MEMORY(1), COPY_BYTES, true, on(1, 0));
  work(&d, 0, 1);
  sync_device(&d, 0);
  finish(&d);
  assert_int_equal(d.results[0].counters.time_ps, 200 * US);
  assert_int_equal(d.results[1].counters.time_ps, 200 * US);
  assert_int_equal(d.results[0].counters.d2h_bytes, 0); /* it is the other one's */
  assert_int_equal(d.results[1].counters.d2h_bytes, COPY_BYTES);
  end(&d);
}

static void test_freeing_waits_for_its_device(void **state) {
  devices d;
  begin(&d, "copy", 2, true);
  work(&d, 1, 1);
  rig_op(&d.r, (trace_op){.kind = TRACE_OP_FREE, .stream = on(1, 0), .free = {.address = MEMORY(1), .id = 2}});
  work(&d, 0, 1);
  sync_device(&d, 0);
  expect_times(&d, 200 * US);
}

/* ---- events ---- */

static void test_a_stream_waits_for_another_devices_event(void **state) {
  devices d;
  uint64_t sequence;
  begin(&d, "copy", 3, true); /* device 2 has nothing to do with it */
  work(&d, 1, 1);
  uint32_t event = rig_record(&d.r, on(1, 1), &sequence);
  wait_for(&d, on(0, 1), event);
  work(&d, 0, 1); /* from 100 us on */
  work(&d, 0, 2); /* in parallel, from 0 on */
  sync_device(&d, 0);
  finish(&d);
  for (uint32_t i = 0; i < 3; i++) assert_int_equal(d.results[i].counters.time_ps, 200 * US);
  assert_int_equal(d.results[0].counters.kernel_ps, 200 * US);
  assert_int_equal(d.results[1].counters.kernel_ps, 100 * US);
  end(&d);
}

static void test_an_event_that_was_never_recorded(void **state) {
  devices d;
  begin(&d, "copy", 2, true);
  work(&d, 1, 1);
  wait_for(&d, on(0, 1), 77);
  work(&d, 0, 1);
  sync_device(&d, 0);
  sync_device(&d, 1);
  expect_times(&d, 100 * US);
}

/* ---- copies ---- */

static void peer_copy(devices *d, uint32_t stream, uint32_t to, uint32_t from) {
  rig_copy(&d->r, TRACE_D2D, MEMORY(to), MEMORY(from), COPY_BYTES, false, stream);
}

static void test_a_peer_copy_takes_both_links(void **state) {
  devices d;
  begin(&d, "copy", 3, true);
  peer_copy(&d, on(0, 1), 0, 1);
  sync_device(&d, 0);
  finish(&d);
  const sim_counters *to = &d.results[0].counters, *from = &d.results[1].counters, *other = &d.results[2].counters;
  assert_int_equal(to->time_ps, 100 * US);
  assert_int_equal(to->h2d_busy_ps, 100 * US);
  assert_int_equal(to->d2h_busy_ps, 0);
  assert_int_equal(from->d2h_busy_ps, 100 * US);
  assert_int_equal(from->h2d_busy_ps, 0);
  assert_int_equal(to->h2d_bytes, COPY_BYTES);
  assert_int_equal(from->d2h_bytes, COPY_BYTES);
  assert_int_equal(other->h2d_bytes + other->d2h_bytes, 0);
  end(&d);
}

static void test_two_peer_copies_share_a_link(void **state) {
  devices d;
  begin(&d, "copy", 3, true);
  peer_copy(&d, on(1, 1), 1, 0); /* both leave device 0 */
  peer_copy(&d, on(2, 1), 2, 0);
  sync_device(&d, 1);
  sync_device(&d, 2);
  finish(&d);
  assert_int_equal(d.results[0].counters.d2h_busy_ps, 200 * US);
  assert_int_equal(d.results[1].counters.h2d_busy_ps, 100 * US);
  assert_int_equal(d.results[2].counters.h2d_busy_ps, 100 * US);
  end(&d);
}

static void test_every_manager_takes_them(void **state) {
  uint32_t count;
  const sim_manager *list = sim_managers(&count);
  for (uint32_t m = 0; m < count; m++) {
    devices d;
    uint64_t sequence;
    if (!strcmp(list[m].name, "oracle")) continue; /* needs the future */
    begin(&d, list[m].name, 2, true);
    rig_copy(&d.r, TRACE_H2D, MEMORY(1), 0x1000, COPY_BYTES, true, on(1, 0));
    peer_copy(&d, on(0, 1), 0, 1);
    rig_copy(&d.r, TRACE_H2D, MEMORY(1), 0x1000, COPY_BYTES, false, on(0, 1)); /* in a stream of the other device */
    rig_op(&d.r, (trace_op){.kind = TRACE_OP_SET,
                            .stream = on(0, 1),
                            .set = {.to = MEMORY(1), .width = 4096, .height = 1, .pitch = 4096}});
    uint32_t event = rig_record(&d.r, on(0, 1), &sequence);
    wait_for(&d, on(1, 1), event);
    work(&d, 1, 1);
    rig_copy(&d.r, TRACE_D2H, 0x1000, MEMORY(0), COPY_BYTES, true, on(1, 0));
    sync_device(&d, 1);
    finish(&d);
    assert_int_equal(d.results[0].counters.time_ps, d.results[1].counters.time_ps);
    end(&d);
  }
}

/* Managed memory under managers that follow the program's own copies: what a copy brings from another device is the
 * GPU's, and so is all that was the host's until then. (That no newer bytes are lost is checked by the pager.) */
static void test_a_peer_copy_into_managed_memory(void **state) {
  static const char *const managers[] = {"copy", "cuda6", "gp100"};
  for (int m = 0; m < 3; m++) {
    devices d;
    const uint64_t managed = MEMORY(4);
    begin(&d, managers[m], 2, true);
    rig_op(&d.r,
           (trace_op){
               .kind = TRACE_OP_ALLOC,
               .stream = on(0, 0),
               .alloc = {
                   .address = managed, .bytes = 8 << 20, .memory = TRACE_MEMORY_MANAGED, .id = 9, .name = "managed"}});
    rig_op(&d.r, (trace_op){.kind = TRACE_OP_HOST_TOUCH,
                            .stream = on(0, 0),
                            .touch = {.address = managed, .bytes = 4 << 20, .write = true}});
    rig_copy(&d.r, TRACE_D2D, managed, MEMORY(1), COPY_BYTES, false, on(0, 1));
    sync_device(&d, 0);
    work(&d, 0, 1);
    sync_device(&d, 0);
    finish(&d);
    assert_true(d.results[0].counters.h2d_bytes >= COPY_BYTES + (4 << 20));
    end(&d);
  }
}

/* Without a record of the host's touches it may have written anything since the last wait: a copy from the host changes
 * its bytes, which go in. */
static void test_a_copy_into_what_the_host_may_have_written(void **state) {
  devices d;
  const uint64_t managed = MEMORY(4);
  begin(&d, "copy", 1, false);
  rig_op(
      &d.r,
      (trace_op){
          .kind = TRACE_OP_ALLOC,
          .stream = on(0, 0),
          .alloc = {.address = managed, .bytes = 8 << 20, .memory = TRACE_MEMORY_MANAGED, .id = 9, .name = "managed"}});
  work(&d, 0, 1); /* all of it goes in */
  sync_device(&d, 0);
  rig_copy(&d.r, TRACE_H2D, managed, 0x1000, COPY_BYTES, true, on(0, 1));
  work(&d, 0, 1); /* and again */
  sync_device(&d, 0);
  finish(&d);
  assert_int_equal(d.results[0].counters.h2d_bytes, 2 * (8 << 20));
  end(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_devices_work_side_by_side),
                                     cmocka_unit_test(test_the_host_waits_for_any),
                                     cmocka_unit_test(test_a_blocking_copy_is_waited_for),
                                     cmocka_unit_test(test_freeing_waits_for_its_device),
                                     cmocka_unit_test(test_a_stream_waits_for_another_devices_event),
                                     cmocka_unit_test(test_an_event_that_was_never_recorded),
                                     cmocka_unit_test(test_a_peer_copy_takes_both_links),
                                     cmocka_unit_test(test_two_peer_copies_share_a_link),
                                     cmocka_unit_test(test_every_manager_takes_them),
                                     cmocka_unit_test(test_a_peer_copy_into_managed_memory),
                                     cmocka_unit_test(test_a_copy_into_what_the_host_may_have_written)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
