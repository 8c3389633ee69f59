/* SPDX-License-Identifier: Apache-2.0 */
/* How GPUs are joined: ways between two, and the time of copies, pages and accesses by line over each. The PCIe link
 * carries 16 GB/s, a join of GPUs 0 and 1 64 GB/s with 2 us, a switch 32 GB/s with 1 us; the host's calls take
 * nothing. */
#include "rig.h"

#include <pthread.h>

#include "machine/host/link.h"
#include "machine/observe/history.h"
#include "machine/spec/links.h"
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

typedef void (*tweak)(machine_spec *spec);

static uint32_t on(uint32_t device) { return trace_origin(1, device, false); }

static void begin(devices *d, const char *manager, uint32_t count, tweak links) {
  ff_error error = {0};
  *d = (devices){.count = count, .peers = sim_peers_create(0, count)};
  rig_open(&d->r, manager);
  if (links) links(&d->r.spec);
  d->r.program = trace_program_create(0);
  for (uint32_t i = 0; i < count; i++) {
    sim_options options = {
        .device_index = i, .peers = d->peers, .spec = &d->r.spec, .manager = manager, .history = true};
    if (sim_create(d->r.program, &options, &d->sims[i], &error)) fail_msg("%s", error.message);
  }
  for (uint32_t i = 0; i < count; i++) {
    rig_op(
        &d->r,
        (trace_op){
            .kind = TRACE_OP_ALLOC,
            .stream = trace_origin(0, i, false),
            .alloc = {
                .address = MEMORY(i), .bytes = 8 << 20, .memory = TRACE_MEMORY_DEVICE, .id = i + 1, .name = "array"}});
    rig_op(&d->r,
           (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = on(i), .stream_create = {TRACE_STREAM_NON_BLOCKING}});
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
  for (uint32_t i = 0; i < d->count; i++) {
    sim_snapshot(d->sims[i], &d->results[i]);
    assert_string_equal(d->results[i].error, "");
  }
}

static void end(devices *d) {
  for (uint32_t i = 0; i < d->count; i++) {
    sim_result_free(&d->results[i]);
    sim_free(d->sims[i]);
  }
  sim_peers_free(d->peers);
  trace_program_free(d->r.program);
}

static const sim_counters *of(const devices *d, uint32_t device) { return &d->results[device].counters; }

static void sync(devices *d, uint32_t device) {
  rig_op(&d->r, (trace_op){.kind = TRACE_OP_SYNC_DEVICE, .stream = trace_origin(0, device, false)});
}

static void copy(devices *d, uint32_t stream, uint32_t to, uint32_t from) {
  rig_copy(&d->r, TRACE_D2D, MEMORY(to), MEMORY(from), COPY_BYTES, false, on(stream));
}

/* ---- the machines ---- */

static void with_join(machine_spec *s) {
  s->gpus = 4;
  s->joins = (machine_join_table){.joins = {{{0, 1}, 64, 2}, {{2, 0}, 16, 0}}, .count = 2};
}
static void with_switch(machine_spec *s) {
  s->gpus = 4;
  s->switch_gbs = 32;
  s->switch_latency_us = 1;
}
static void with_roots(machine_spec *s) {
  s->gpus = 4;
  s->roots = (machine_mask_table){.masks = {3, 12}, .count = 2};
  s->root_gbs = 16;
}
static void with_root_peers(machine_spec *s) {
  with_roots(s);
  s->root_peers = 1;
}

/* ---- ways ---- */

static void test_ways(void **state) {
  machine_spec s = rig_spec();
  assert_int_equal(machine_path_between(&s, 0, 5).way, MACHINE_WAY_BUS);
  assert_true(machine_are_peers(&s, 0, 5));
  assert_false(machine_are_peers(&s, 5, 5));
  with_join(&s);
  assert_int_equal(machine_path_between(&s, 1, 0).way, MACHINE_WAY_JOINED);
  assert_true(machine_path_between(&s, 1, 0).gbs == 64 && machine_path_between(&s, 0, 2).gbs == 16);
  assert_int_equal(machine_path_between(&s, 1, 2).way, MACHINE_WAY_BUS);
  with_roots(&s);
  assert_int_equal(machine_path_between(&s, 2, 0).way, MACHINE_WAY_JOINED);
  assert_int_equal(machine_path_between(&s, 2, 3).way, MACHINE_WAY_BUS);
  assert_int_equal(machine_path_between(&s, 1, 3).way, MACHINE_WAY_HOST);
  assert_false(machine_are_peers(&s, 1, 3));
  assert_int_equal(machine_root_of(&s, 3), 1);
  with_root_peers(&s);
  assert_int_equal(machine_path_between(&s, 1, 3).way, MACHINE_WAY_BUS);
  with_switch(&s);
  assert_int_equal(machine_path_between(&s, 1, 3).way, MACHINE_WAY_SWITCH);
  assert_int_equal(machine_path_between(&s, 0, 1).way, MACHINE_WAY_JOINED);
}

/* ---- copies ---- */

static void expect_copy(tweak links, uint32_t to, uint32_t from, ps time, bool over_pcie) {
  devices d;
  begin(&d, "copy", 4, links);
  copy(&d, to, to, from);
  sync(&d, to);
  finish(&d);
  assert_int_equal(of(&d, 3)->time_ps, time);
  assert_int_equal(of(&d, to)->h2d_bytes, COPY_BYTES);
  assert_int_equal(of(&d, from)->d2h_bytes, COPY_BYTES);
  assert_int_equal(of(&d, to)->h2d_busy_ps, over_pcie ? 100 * US : 0);
  assert_int_equal(of(&d, from)->d2h_busy_ps, over_pcie ? 100 * US : 0);
  end(&d);
}

static void test_copies(void **state) {
  expect_copy(NULL, 0, 1, 100 * US, true);
  expect_copy(with_join, 0, 1, 27 * US, false); /* 25 us and the latency */
  expect_copy(with_join, 1, 0, 27 * US, false);
  expect_copy(with_join, 1, 2, 100 * US, true);
  expect_copy(with_switch, 2, 1, 51 * US, false);
  expect_copy(with_roots, 2, 1, 100 * US, true);
}

/* A join is its two GPUs' alone; a port of a switch is its GPU's for all others. */
static void test_what_copies_share(void **state) {
  for (uint32_t switched = 0; switched < 2; switched++) {
    devices d;
    begin(&d, "copy", 4, switched ? with_switch : with_join);
    copy(&d, 1, 1, 0);
    copy(&d, 2, 2, 0);
    copy(&d, 0, 0, 1); /* the other way */
    sync(&d, 0);
    sync(&d, 1);
    sync(&d, 2);
    finish(&d);
    /* joins: 25 us and 2, 100 us; ports: device 0's way out carries both, one after the other */
    assert_int_equal(of(&d, 0)->time_ps, switched ? 101 * US : 100 * US);
    end(&d);
  }
}

/* ---- pages ---- */

static void managed(devices *d, uint64_t bytes) {
  rig_op(
      &d->r,
      (trace_op){
          .kind = TRACE_OP_ALLOC,
          .stream = on(0),
          .alloc = {.address = MEMORY(8), .bytes = bytes, .memory = TRACE_MEMORY_MANAGED, .id = 9, .name = "managed"}});
  rig_op(&d->r, (trace_op){.kind = TRACE_OP_HOST_TOUCH,
                           .stream = on(0),
                           .touch = {.address = MEMORY(8), .bytes = bytes, .write = true}});
}

static void prefetch(devices *d, uint32_t device, uint64_t bytes) {
  rig_op(&d->r, (trace_op){.kind = TRACE_OP_PREFETCH,
                           .stream = on(device),
                           .hint = {.address = MEMORY(8), .bytes = bytes, .device = (int32_t)device}});
  sync(d, device);
}

/* 4 MiB come to GPU 0 over PCIe in 262.144 us, and go on to another one. */
static void expect_pages(tweak links, uint32_t to, ps more, bool over_pcie) {
  const uint64_t bytes = UINT64_C(4) << 20;
  const ps whole = bytes * 1000 / 16;
  devices d;
  begin(&d, "demand", 4, links);
  managed(&d, bytes);
  prefetch(&d, 0, bytes);
  prefetch(&d, to, bytes);
  finish(&d);
  assert_int_equal(of(&d, to)->time_ps, whole + more);
  assert_int_equal(of(&d, to)->h2d_bytes, bytes);
  assert_int_equal(of(&d, 0)->d2h_bytes, bytes);
  assert_int_equal(of(&d, to)->h2d_busy_ps, over_pcie ? whole : 0);
  assert_int_equal(of(&d, 0)->d2h_busy_ps, over_pcie ? whole : 0);
  end(&d);
}

static void test_pages(void **state) {
  const ps whole = (UINT64_C(4) << 20) * 1000 / 16;
  expect_pages(NULL, 1, whole, true);
  expect_pages(with_join, 1, whole / 4 + 2 * US, false);
  expect_pages(with_join, 3, whole, true);
  expect_pages(with_switch, 3, whole / 2 + 1 * US, false);
  expect_pages(with_roots, 1, whole, true);
  expect_pages(with_roots, 3, 2 * whole, true); /* into host memory, and out of it */
  expect_pages(with_root_peers, 3, whole, true);
}

/* ---- lines ---- */

static void read_lines(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint32_t n = 0; n < 100; n++) rig_load_wait(w, MEMORY(1) + n * TRACE_LINE_BYTES);
}

static ps lines_time(tweak links, uint32_t device, bool busy_other) {
  devices d;
  begin(&d, "copy", 4, links);
  rig_launch(&d.r, (rig_kernel){.blocks = 1, .warps = 1, .warp = read_lines, .stream = on(device)});
  sync(&d, device);
  finish(&d);
  ps time = of(&d, device)->kernel_ps;
  assert_int_equal(of(&d, device)->remote_bytes, 100 * TRACE_LINE_BYTES);
  assert_int_equal(of(&d, 1)->d2h_busy_ps, busy_other ? 100 * 8 * NS : 0); /* at the other end, too */
  assert_int_equal(of(&d, 1)->d2h_bytes, 0);                               /* but nothing has moved */
  end(&d);
  return time;
}

static void test_lines(void **state) {
  ps bus = lines_time(NULL, 0, true), join = lines_time(with_join, 0, false), port = lines_time(with_switch, 3, false);
  assert_int_equal(join, bus + 100 * (2 * US - 6 * NS)); /* 128 bytes: 8 ns of the bus, 2 of the join */
  assert_int_equal(port, bus + 100 * (1 * US - 4 * NS));
}

/* ---- multicast memory ---- */

#define MULTICAST (RIG_BASE + (UINT64_C(1) << 30))
enum { OBJECT = 7, LINES = 100, TEAM = 7 }; /* devices 0 to 2 */

static trace_access_op access_op;
static uint64_t access_base;

static void reach_lines(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint32_t n = 0; n < LINES; n++) {
    rig_access(w, access_op, TRACE_BYPASS_L1, access_base + n * TRACE_LINE_BYTES, 15);
    if (access_op == TRACE_LOAD) trace_put_wait(w, 0);
  }
}

/* What went over a device's port because another one accessed lines. */
static uint64_t carried(const devices *d, uint32_t device, bool in) {
  sim_history *h = sim_history_take(d->sims[device]);
  uint64_t bytes = 0;
  for (size_t i = 0; i < h->transfers.count; i++)
    if (h->transfers.items[i].cause == HISTORY_CAUSE_REMOTE && h->transfers.items[i].in == in)
      bytes += h->transfers.items[i].bytes;
  history_free(h);
  return bytes;
}

/* `device` reaches the lines of multicast memory, or of device 1's; the time that it takes. */
static ps reach_time(uint32_t device, trace_access_op op, bool multicast) {
  const uint64_t bytes = LINES * TRACE_LINE_BYTES;
  devices d;
  access_op = op;
  access_base = multicast ? MULTICAST : MEMORY(1);
  begin(&d, "copy", 4, with_switch);
  const trace_op ops[] = {
      {.kind = TRACE_OP_CREATE, .alloc = {.address = TEAM, .bytes = 2 << 20, .id = OBJECT, .name = "team"}},
      {.kind = TRACE_OP_RESERVE, .alloc = {.address = MULTICAST, .bytes = 2 << 20, .id = 20, .name = "addresses"}},
      {.kind = TRACE_OP_MAP, .map = {.address = MULTICAST, .bytes = 2 << 20, .memory = OBJECT}}};
  for (size_t n = 0; n < 3; n++) rig_op(&d.r, ops[n]);
  rig_launch(&d.r, (rig_kernel){.blocks = 1, .warps = 1, .warp = reach_lines, .stream = on(device)});
  sync(&d, device);
  sync(&d, device);
  rig_op(&d.r, (trace_op){.kind = TRACE_OP_UNMAP, .map = {.address = MULTICAST, .bytes = 2 << 20}});
  rig_op(&d.r, (trace_op){.kind = TRACE_OP_RELEASE, .free = {.id = OBJECT}});
  finish(&d);
  assert_int_equal(of(&d, device)->remote_bytes, bytes);
  for (uint32_t other = 0; other < 4; other++) {
    bool reached = other != device && (multicast ? TEAM >> other & 1 : other == 1);
    assert_int_equal(carried(&d, other, op != TRACE_LOAD), reached ? bytes : 0);
    assert_int_equal(carried(&d, other, op == TRACE_LOAD), 0);
    assert_int_equal(of(&d, other)->h2d_bytes + of(&d, other)->d2h_bytes, 0); /* nothing has moved */
  }
  ps time = of(&d, device)->kernel_ps;
  end(&d);
  return time;
}

/* The switch sends copies on, and adds up: it takes as long as to reach one device's memory. */
static void test_multicast(void **state) {
  for (uint32_t device = 0; device < 4; device += 3) { /* one of the team, and another one */
    assert_int_equal(reach_time(device, TRACE_LOAD, true), reach_time(device, TRACE_LOAD, false));
    assert_int_equal(reach_time(device, TRACE_STORE, true), reach_time(device, TRACE_STORE, false));
    assert_int_equal(reach_time(device, TRACE_ATOMIC, true), reach_time(device, TRACE_STORE, true));
  }
}

/* ---- what another device has reached, and has told of afterwards ---- */

static ps work_left(const link_server *s) {
  ps work = 0;
  for (uint32_t n = 0; n < s->count; n++) work += s->pieces[n].work;
  return work;
}

static void test_others_takes_turns(void **state) {
  link_server s = {.bus = {50}};
  assert_int_equal(link_server_take(&s, 60, 65, 10), 65); /* there is none of it: as ever */
  assert_int_equal(s.bus.free, 70);
  link_server_add(&s, 1000, 20);
  assert_int_equal(link_server_free(&s), 1070);
  assert_int_equal(link_server_take(&s, 100, 100, 10), 110); /* idle from 70 to 100; then it in turns */
  assert_int_equal(s.bus.free, 120);
  assert_int_equal(work_left(&s), 1000 - 30 - 10);
  assert_int_equal(link_server_take(&s, 110, 110, 2000), 120 + 960); /* what is left of it is less */
  assert_int_equal(s.bus.free, 120 + 2960);
  assert_int_equal(work_left(&s), 0);
}

static void test_others_begins_when_it_was(void **state) {
  link_server s = {.bus = {0}};
  link_server_add(&s, 1, 0);
  link_server_add(&s, 100, 1000);
  assert_int_equal(link_server_free(&s), 1100);
  assert_int_equal(link_server_take(&s, 10, 10, 50), 10); /* it has no turn before it begins */
  link_server_settle(&s, 1001);
  assert_int_equal(work_left(&s), 99);
  assert_int_equal(s.bus.free, 1001);
  link_server_settle(&s, 2000);
  assert_int_equal(s.bus.free, 1100);
  assert_int_equal(work_left(&s), 0);
  link_server_add(&s, 5, 200); /* the server was idle then, but what has been is over */
  link_server_settle(&s, 2000);
  assert_int_equal(s.bus.free, 1105);
}

/* The link is busy while it carries something, in whatever order it is told. */
static void test_others_is_accounted(void **state) {
  kernel_time kernels = {.running = 1};
  host_link wire = {.h2d.per_byte = 1, .d2h.per_byte = 1};
  link_port port = {.wire = &wire, .kernels = &kernels};
  link_carry_beside(&port, true, 50, 200);
  link_carry_beside(&port, true, 10, 400);
  link_carry_beside(&port, false, 100, 220);
  link_account(&port, 300);
  assert_int_equal(wire.union_busy, 100); /* 200 to 250, 220 to 320 */
  link_account(&port, 1000);
  assert_int_equal(wire.union_busy, 120 + 10);
  assert_int_equal(wire.during_kernels, 130);
  assert_int_equal(wire.h2d.busy + wire.d2h.busy, 160);
  assert_true(port.crossed[1].first == 200 && port.crossed[1].last == 410 && port.crossed[1].bytes == 60);
  link_carry_beside(&port, true, 1000, 1000);
  assert_int_equal(link_remote(&port, false, 10, 1000, 1000), 1020);
  assert_int_equal(port.crossed[1].last, 2000);
}

/* All service is done, never two at once, and none waits for more of it than takes itself. */
static void test_others_keeps_all_work(void **state) {
  uint64_t random = 1;
  int waits = 0;
  for (int round = 0; round < 2000; round++) {
    link_server s = {0};
    ps now = 0, done = 0, last = 0;
    for (int n = 0; n < 40; n++) {
      now += (random = random * 6364136223846793005u + 1442695040888963407u) >> 58;
      const ps service = 1 + (random >> 40) % 50;
      done += service;
      if (random >> 33 & 1) {
        link_server_add(&s, service, now + (random >> 50) % 60 > 30 ? now + (random >> 50) % 60 - 30 : 0);
        continue;
      }
      link_server_settle(&s, now);
      const ps soonest = s.bus.free > now ? s.bus.free : now, begins = link_server_take(&s, now, now, service);
      assert_true(begins >= last && begins >= soonest && begins <= soonest + service);
      assert_true(begins + service == s.bus.free);
      last = begins + service;
      waits += begins > soonest;
    }
    const ps free = link_server_free(&s);
    link_server_settle(&s, UINT64_MAX / 2);
    assert_int_equal(work_left(&s), 0);
    assert_true(s.bus.free == free && free >= done && free <= now + 30 + done);
  }
  assert_true(waits > 1000);
}

/* Three devices write 1000 lines each to device 1's memory, 8 us of its link, at once; then the host copies 1600 bytes
 * to it, or nothing. */
static ps time_behind_others(bool copies) {
  devices d;
  access_op = TRACE_STORE;
  access_base = MEMORY(1);
  begin(&d, "copy", 4, NULL);
  for (uint32_t device = 0; device < 4; device++)
    if (device != 1)
      rig_launch(&d.r, (rig_kernel){.blocks = 10, .warps = 1, .warp = reach_lines, .stream = on(device)});
  for (uint32_t device = 0; device < 4; device++)
    if (device != 1) sync(&d, device);
  if (copies) rig_copy(&d.r, TRACE_H2D, MEMORY(1), 0x1000, 1600, false, on(1));
  sync(&d, 1);
  finish(&d);
  ps time = of(&d, 1)->time_ps;
  end(&d);
  return time;
}

/* It does not wait for all that is left of their 24 us. */
static void test_others_hold_up_no_copy(void **state) {
  ps without = time_behind_others(false), with = time_behind_others(true);
  assert_true(without < 20 * US);
  assert_in_range(with - without, 100 * NS, 2 * US); /* 100 ns of the bus, twice, and its latency */
}

/* ---- shared ports of the host ---- */

static void from_host(devices *d, uint32_t device) {
  rig_copy(&d->r, TRACE_H2D, MEMORY(device), 0x1000, COPY_BYTES, false, on(device));
}

static void expect_shared(tweak links, uint32_t a, uint32_t b, ps time) {
  devices d;
  begin(&d, "copy", 4, links);
  from_host(&d, a);
  from_host(&d, b);
  sync(&d, a);
  sync(&d, b);
  finish(&d);
  for (uint32_t i = 0; i < 4; i++) assert_int_equal(of(&d, i)->time_ps, time);
  end(&d);
}

static void test_roots(void **state) {
  expect_shared(NULL, 0, 1, 100 * US);
  expect_shared(with_roots, 0, 1, 200 * US);
  expect_shared(with_roots, 2, 3, 200 * US);
  expect_shared(with_roots, 1, 2, 100 * US);
  devices d; /* one after the other they share nothing, nor do both directions */
  begin(&d, "copy", 4, with_roots);
  from_host(&d, 0);
  sync(&d, 0);
  from_host(&d, 1);
  rig_copy(&d.r, TRACE_D2H, 0x1000, MEMORY(0), COPY_BYTES, false, on(0));
  sync(&d, 0);
  sync(&d, 1);
  copy(&d, 0, 0, 1); /* below the port */
  copy(&d, 1, 1, 0);
  sync(&d, 0);
  sync(&d, 1);
  finish(&d);
  assert_int_equal(of(&d, 0)->time_ps, 300 * US);
  end(&d);
}

/* ---- what is refused ---- */

static void expect_refused(const char *set, const char *message) {
  machine_spec s = rig_spec();
  ff_error error = {0};
  assert_int_not_equal(machine_spec_set_all(&s, set, &error), FF_OK);
  if (!strstr(error.message, message)) fail_msg("%s: \"%s\" has no \"%s\"", set, error.message, message);
}

static void test_refusals(void **state) {
  machine_spec s = rig_spec();
  ff_error error = {0};
  s.max_threads = 1536;
  if (machine_spec_set_all(&s, "gpus=4,joins=0-1:25:0.7 3-2:50:0,switch_gbs=3,roots=0.1 2.3,root_gbs=1", &error))
    fail_msg("%s", error.message);
  assert_int_equal(s.joins.count, 2);
  assert_int_equal(s.joins.joins[1].gpus[0], 3);
  assert_true(s.joins.joins[0].latency_us == 0.7);
  assert_int_equal(s.roots.masks[1], 12);
  expect_refused("joins=0-1:25:0.7", "gpus is missing");
  expect_refused("gpus=2,joins=0-2:25:0.7", "there is no GPU 2: gpus is 2");
  expect_refused("gpus=4,joins=1-1:25:0.7", "GPU 1 is joined with itself");
  expect_refused("gpus=4,joins=0-1:25:0.7 1-0:25:0.7", "GPUs 1 and 0 are joined twice");
  expect_refused("gpus=4,joins=0-16:25:0.7", "'16' is not a GPU: 0 to 15");
  expect_refused("gpus=4,joins=0-1:0:0.7", "0 is out of range: 0.001 to 1000000 GB/s");
  expect_refused("gpus=4,joins=0-1:nan:0.7", "'nan' is not a number");
  expect_refused("gpus=4,joins=0-1:25:-1", "-1 is out of range: 0 to 1000000 us");
  expect_refused("gpus=4,joins=0-1:25", "is not a join: write GPU-GPU:GB/s:us");
  expect_refused("gpus=4,roots=0.1 1.2.3", "GPU 1 is below two of them");
  expect_refused("gpus=4,roots=0.1 2", "GPU 3 is below none of them");
  expect_refused("gpus=4,roots=0.1 2.3.4", "there is no GPU 4: gpus is 4");
  expect_refused("gpus=4,roots=0.1.1 2.3", "GPU 1 is twice below one root");
  expect_refused("gpus=4,root_gbs=3", "need roots");
  expect_refused("gpus=17", "17 is out of range: 0 to 16");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_ways),
                                     cmocka_unit_test(test_copies),
                                     cmocka_unit_test(test_what_copies_share),
                                     cmocka_unit_test(test_pages),
                                     cmocka_unit_test(test_lines),
                                     cmocka_unit_test(test_multicast),
                                     cmocka_unit_test(test_roots),
                                     cmocka_unit_test(test_refusals),
                                     cmocka_unit_test(test_others_takes_turns),
                                     cmocka_unit_test(test_others_begins_when_it_was),
                                     cmocka_unit_test(test_others_is_accounted),
                                     cmocka_unit_test(test_others_keeps_all_work),
                                     cmocka_unit_test(test_others_hold_up_no_copy)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
