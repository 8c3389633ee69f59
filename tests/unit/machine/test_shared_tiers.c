/* SPDX-License-Identifier: Apache-2.0 */
/* Tiers below GPU memory that the devices of one program share. The link carries 16 GB/s (a page of 4 KiB in 256 ns);
 * the drive reads 4 GB/s (1024 ns) and writes 2 GB/s (2048 ns), 100 us after it was asked; calls take nothing. */
#include "devices.h"
#include "paging/tiers.h"

#include "unit/share.h"

#define PAGE UINT64_C(4096)
#define READ_PS (1024 * NS)
#define WRITE_PS (2048 * NS)
#define LINK_PS (256 * NS)
#define LATENCY (100 * US)

enum { PAGES = 1024 }; /* 4 MiB */
#define BYTES (PAGES * PAGE)

static void start(devices *d, const char *manager, uint32_t count, uint64_t gpu_memory, uint64_t host_memory) {
  devices_open(d, manager, count);
  d->r.spec.fault_us = 0;
  d->r.spec.first_touch_moves = 0;
  d->r.spec.host_memory_bytes = host_memory;
  d->r.spec.below_host = (machine_tier_table){
      .count = 1,
      .tiers = {
          {.name = "drive", .bytes = 1 << 30, .unit_bytes = 4096, .read_gbs = 4, .write_gbs = 2, .latency_us = 100}}};
  devices_start(d, gpu_memory);
}

static const sim_tier *of_host(const devices *d, uint32_t device) { return &d->results[device].tiers.of[0]; }
static const sim_tier *of_drive(const devices *d, uint32_t device) { return &d->results[device].tiers.of[1]; }

static void allocate(devices *d, uint32_t device, uint64_t address, uint64_t bytes, trace_memory_kind kind) {
  rig_op(&d->r,
         (trace_op){
             .kind = TRACE_OP_ALLOC,
             .stream = on(device),
             .alloc = {.address = address, .bytes = bytes, .memory = kind, .id = ++d->r.allocations, .name = "array"}});
}

static void touch(devices *d, uint32_t device, uint64_t first, uint64_t count, bool write) {
  rig_op(&d->r, (trace_op){.kind = TRACE_OP_HOST_TOUCH,
                           .stream = on(device),
                           .touch = {.address = RIG_BASE + first * PAGE, .bytes = count * PAGE, .write = write}});
}

static void prefetch(devices *d, uint32_t device, int32_t to, uint64_t first, uint64_t count) {
  rig_op(&d->r, (trace_op){.kind = TRACE_OP_PREFETCH,
                           .stream = on(device),
                           .hint = {.address = RIG_BASE + first * PAGE, .bytes = count * PAGE, .device = to}});
}

static void sync(devices *d, uint32_t device) {
  rig_op(&d->r, (trace_op){.kind = TRACE_OP_SYNC_DEVICE, .stream = on(device)});
}

typedef struct pages {
  uint64_t first, count;
  bool write;
} pages;

/* One warp, one page after the other. */
static void use_pages(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const pages *p = context;
  for (uint64_t n = 0; n < p->count; n++) {
    rig_load_wait(w, RIG_BASE + (p->first + n) * PAGE);
    if (p->write) rig_store(w, RIG_BASE + (p->first + n) * PAGE);
  }
}

static void launch(devices *d, uint32_t device, uint64_t first, uint64_t count, bool write) {
  pages p = {first, count, write};
  rig_launch(&d->r, (rig_kernel){.blocks = 1, .warps = 1, .warp = use_pages, .context = &p, .stream = on(device)});
}

static uint64_t read_by_all(const devices *d) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < d->count; i++) sum += of_drive(d, i)->read_bytes;
  return sum;
}

static uint64_t written_by_all(const devices *d) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < d->count; i++) sum += of_drive(d, i)->written_bytes;
  return sum;
}

/* The host writes N bytes of managed memory, its memory holds half of them: it waits once, whichever device's call it
 * was, and what the drive took is counted once. Capacities and peaks are the program's. */
static void test_the_host_writes_more_than_it_holds(void **state) {
  for (uint32_t device = 0; device < 2; device++) {
    devices d;
    start(&d, "replay", 2, 0, BYTES / 2);
    allocate(&d, device, RIG_BASE, BYTES, TRACE_MEMORY_MANAGED);
    touch(&d, device, 0, PAGES, true);
    finish(&d);
    for (uint32_t i = 0; i < 2; i++) {
      assert_int_equal(of(&d, i)->time_ps, LATENCY + PAGES / 2 * WRITE_PS);
      assert_int_equal(of_drive(&d, i)->written_bytes, i == device ? BYTES / 2 : 0);
      assert_int_equal(of_drive(&d, i)->peak_bytes, BYTES / 2);
      assert_int_equal(of_host(&d, i)->peak_bytes, BYTES / 2);
      assert_int_equal(of_host(&d, i)->read_bytes, i == device ? BYTES / 2 : 0);
    }
    end(&d);
  }
}

/* Far-faults of two GPUs on what has gone down, one after the other on each: the drive has time for both, and each
 * waits for its own. */
static void test_two_gpus_fault_on_the_drive(void **state) {
  enum { FAULTS = 8 };
  ps kernel_ps[2][2];
  for (uint32_t lower = 0; lower < 2; lower++) {
    devices d;
    start(&d, "replay", 2, 0, lower ? BYTES / 2 : BYTES);
    allocate(&d, 0, RIG_BASE, BYTES, TRACE_MEMORY_MANAGED);
    touch(&d, 0, 0, PAGES, true);
    launch(&d, 0, 0, FAULTS, false);
    launch(&d, 1, FAULTS, FAULTS, false);
    sync(&d, 0);
    sync(&d, 1);
    finish(&d);
    for (uint32_t i = 0; i < 2; i++) {
      kernel_ps[lower][i] = of(&d, i)->kernel_ps;
      assert_int_equal(of_drive(&d, i)->read_bytes, lower ? FAULTS * PAGE : 0);
    }
    ps writes = lower ? LATENCY + PAGES / 2 * WRITE_PS : 0;
    ps longer = kernel_ps[lower][0] > kernel_ps[lower][1] ? kernel_ps[lower][0] : kernel_ps[lower][1];
    assert_int_equal(of(&d, 0)->time_ps - writes, longer);
    end(&d);
  }
  for (uint32_t i = 0; i < 2; i++) assert_int_equal(kernel_ps[1][i] - kernel_ps[0][i], FAULTS * (LATENCY + READ_PS));
}

/* Two GPUs take 256 pages each from the drive at the same time: it reads them one after the other. Alone, each waits
 * for the latency, its pages and the last one's way over the link; the host waits for the other's pages as well. */
static void test_two_gpus_read_at_once(void **state) {
  enum { EACH = 256 };
  const ps written = LATENCY + PAGES / 2 * WRITE_PS, one = LATENCY + EACH * READ_PS + LINK_PS;
  for (uint32_t both = 0; both < 2; both++) {
    devices d;
    start(&d, "replay", 2, 0, BYTES / 2);
    allocate(&d, 0, RIG_BASE, BYTES, TRACE_MEMORY_MANAGED);
    touch(&d, 0, 0, PAGES, true);
    prefetch(&d, 0, 0, 0, EACH);
    if (both) prefetch(&d, 1, 1, EACH, EACH);
    sync(&d, 0);
    sync(&d, 1);
    finish(&d);
    for (uint32_t i = 0; i < 2; i++) assert_int_equal(of(&d, i)->time_ps, written + one + both * EACH * READ_PS);
    assert_int_equal(of_drive(&d, 0)->wait_ps, written + one - EACH * LINK_PS);
    assert_int_equal(read_by_all(&d), (1 + both) * EACH * PAGE);
    end(&d);
  }
}

/* Each of two GPUs writes 4 MiB with room for half: 2 MiB of each leave it. The host's memory has room for one of them:
 * no device knows that before they meet, and then the host waits for what goes down. */
static void test_two_gpus_fill_the_hosts_memory(void **state) {
  ps time[2];
  for (uint32_t fits = 0; fits < 2; fits++) {
    devices d;
    start(&d, "replay", 2, BYTES / 2, fits ? BYTES : BYTES / 2);
    for (uint32_t i = 0; i < 2; i++) {
      allocate(&d, i, RIG_BASE + i * BYTES, BYTES, TRACE_MEMORY_DEVICE);
      launch(&d, i, i * PAGES, PAGES, true);
    }
    sync(&d, 0);
    sync(&d, 1);
    finish(&d);
    for (uint32_t i = 0; i < 2; i++) {
      assert_int_equal(of(&d, i)->written_back_bytes, BYTES / 2);
      assert_int_equal(of_host(&d, i)->peak_bytes, fits ? BYTES : BYTES / 2);
      assert_int_equal(of_drive(&d, i)->peak_bytes, fits ? 0 : BYTES / 2);
      assert_int_equal(of(&d, i)->time_ps, of(&d, 0)->time_ps);
    }
    assert_int_equal(written_by_all(&d), fits ? 0 : BYTES / 2);
    assert_int_equal(read_by_all(&d), 0);
    time[fits] = of(&d, 0)->time_ps;
    end(&d);
  }
  assert_int_equal(time[0] - time[1], LATENCY + PAGES / 2 * WRITE_PS);
}

static void work(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  for (uint32_t n = 0; n < 1000; n++) rig_issue(w, 10000);
}

/* As before, but device 0 begins when device 1 has long been over: by the time of the notes device 1's pages moved
 * longest ago and went down, of which the host copies four. */
static void test_who_was_first_goes_down_first(void **state) {
  enum { COPIED = 4 };
  devices d;
  start(&d, "replay", 2, BYTES / 2, BYTES / 2);
  for (uint32_t i = 0; i < 2; i++) allocate(&d, i, RIG_BASE + i * BYTES, BYTES, TRACE_MEMORY_DEVICE);
  rig_launch(&d.r, (rig_kernel){.blocks = 1, .warps = 1, .warp = work, .stream = on(0)});
  launch(&d, 0, 0, PAGES, true);
  launch(&d, 1, PAGES, PAGES, true);
  sync(&d, 0);
  sync(&d, 1);
  rig_op(&d.r, (trace_op){.kind = TRACE_OP_COPY,
                          .blocking = true,
                          .stream = on(1),
                          .copy = {.to = 0x1000,
                                   .from = RIG_BASE + BYTES,
                                   .width = COPIED * PAGE,
                                   .height = 1,
                                   .to_pitch = COPIED * PAGE,
                                   .from_pitch = COPIED * PAGE,
                                   .direction = TRACE_D2H,
                                   .pinned = true}});
  finish(&d);
  assert_true(of(&d, 0)->kernel_ps > 2 * of(&d, 1)->kernel_ps);
  for (uint32_t i = 0; i < 2; i++) assert_int_equal(of(&d, i)->written_back_bytes, BYTES / 2);
  assert_int_equal(read_by_all(&d), COPIED * PAGE);
  end(&d);
}

/* All memory of the program must have a place, on whichever device it was allocated; all devices say so. */
static void test_memory_that_no_tier_holds(void **state) {
  devices d;
  devices_open(&d, "replay", 2);
  d.r.spec.host_memory_bytes = BYTES;
  d.r.spec.below_host = (machine_tier_table){
      .count = 1,
      .tiers = {
          {.name = "drive", .bytes = BYTES, .unit_bytes = 4096, .read_gbs = 4, .write_gbs = 2, .latency_us = 100}}};
  devices_start(&d, 0);
  allocate(&d, 0, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
  allocate(&d, 1, RIG_BASE + BYTES, BYTES, TRACE_MEMORY_DEVICE);
  rig_op(&d.r, (trace_op){.kind = TRACE_OP_FREE, .stream = on(0), .free = {.address = RIG_BASE, .id = 1}});
  allocate(&d, 1, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE); /* fits again */
  allocate(&d, 0, RIG_BASE + 2 * BYTES, PAGE, TRACE_MEMORY_MANAGED);
  run_all_devices(&d);
  for (uint32_t i = 0; i < 2; i++)
    assert_non_null(strstr(d.results[i].error, "with array there are 8.00 MiB of pages, but the host's memory"));
  end(&d);
}

/* ---- the log and the table by themselves ---- */

/* Each device's notes keep their order, whatever their times; what was said counts for one meeting. */
static void test_the_log(void **state) {
  tier_log *log = tier_log_create();
  static const struct {
    uint32_t device;
    uint64_t time, address;
  } noted[] = {{1, 50, 1}, {1, 20, 2}, {0, 30, 3}, {0, 50, 4}, {2, 10, 5}};
  static const uint64_t merged[] = {5, 3, 4, 1, 2};
  size_t count;
  for (size_t i = 0; i < sizeof noted / sizeof *noted; i++)
    tier_log_note(log, noted[i].device,
                  (tier_note){.address = noted[i].address, .time = noted[i].time, .kind = TIER_READ});
  tier_log_say(log, 1, 1, TIER_WRITES, (tier_load){.service = 7, .first = 1, .last = 9});
  tier_log_moved(log, 1, 1, (tier_moved){.read = 3, .written = 4});
  tier_log_say_digest(log, 0, 5);
  tier_log_say_digest(log, 1, 5);
  tier_log_merge(log);
  const tier_note *notes = tier_log_notes(log, &count);
  assert_int_equal(count, 5);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(notes[i].address, merged[i]);
    assert_true(!i || notes[i].time >= notes[i - 1].time);
  }
  assert_int_equal(tier_log_load(log, 1, 1, TIER_WRITES).service, 7);
  assert_int_equal(tier_log_moved_by(log, 1, 1).written, 4);
  tier_log_say_digest(log, 0, 6); /* device 1 has said none since */
  tier_log_merge(log);
  tier_log_notes(log, &count);
  assert_int_equal(count, 0);
  assert_int_equal(tier_log_load(log, 1, 1, TIER_WRITES).service, 0);
  assert_int_equal(tier_log_moved_by(log, 1, 1).written, 0);
  tier_log_free(log);
}

/* Bytes that come from a GPU do not wait for those that were on their way up from the drive. */
static void test_a_place_that_is_written_is_ready(void **state) {
  tiers *t = tiers_create((const uint64_t[]){BYTES, BYTES}, 2, 0);
  tiers_put(t, RIG_BASE, PAGE, 0)->ready = 100 * US;
  assert_int_equal(tiers_raise(t, RIG_BASE, 1)->ready, 100 * US);
  assert_int_equal(tiers_put(t, RIG_BASE, PAGE, 2)->ready, 0);
  tiers_free(t);
}

/* ---- random programs ---- */

static uint64_t seed;
static uint64_t draw(uint64_t below) {
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (seed >> 33) % below;
}

enum { UNITS = 64, HOST_UNITS = 24, STEPS = 60, GPUS = 3 };

/* Pages outside GPU memory, those that moved longest ago first, in the host's memory and on the drive. */
typedef struct naive {
  uint32_t units[2][UNITS], counts[2];
  uint64_t reads, writes; /* pages, of the drive */
} naive;

static bool naive_take(naive *n, uint32_t unit, uint32_t *tier) {
  for (*tier = 0; *tier < 2; ++*tier)
    for (uint32_t i = 0; i < n->counts[*tier]; i++)
      if (n->units[*tier][i] == unit) {
        memmove(&n->units[*tier][i], &n->units[*tier][i + 1], (--n->counts[*tier] - i) * sizeof unit);
        return true;
      }
  return false;
}

static void naive_enter(naive *n, uint32_t tier, uint32_t unit) {
  if (tier == 0 && n->counts[0] == HOST_UNITS) {
    uint32_t victim = n->units[0][0];
    memmove(&n->units[0][0], &n->units[0][1], --n->counts[0] * sizeof victim);
    naive_enter(n, 1, victim);
    n->writes++;
  }
  n->units[tier][n->counts[tier]++] = unit;
}

/* The page comes to the host's memory, from a GPU (`put`) or from the drive if it is there. */
static void naive_host(naive *n, uint32_t unit, bool put) {
  uint32_t tier;
  if (naive_take(n, unit, &tier)) n->reads += tier == 1 && !put;
  naive_enter(n, 0, unit);
}

/* A page is where the last that touched it wanted it; newer: than the copy outside GPU memory, which then has no
 * place. */
typedef struct world {
  naive n;
  int owner[UNITS]; /* -1: the host */
  bool newer[UNITS];
} world;

static void gpu_uses(world *w, int who, const pages *p) {
  for (uint32_t u = (uint32_t)p->first; u < p->first + p->count; u++) {
    uint32_t tier;
    int from = w->owner[u];
    if (from < 0 && naive_take(&w->n, u, &tier)) {
      w->n.reads += tier == 1;
      naive_enter(&w->n, tier, u);
    }
    w->newer[u] = from == who ? w->newer[u] || p->write : p->write || from >= 0;
    if (w->newer[u]) naive_take(&w->n, u, &tier);
    w->owner[u] = who;
  }
}

/* At one moment: what device 0 has, or is the host's, as device 0 made the call; then what the others have. */
static void host_uses(world *w, const pages *p) {
  for (int device = 0; device < GPUS; device++)
    for (uint32_t u = (uint32_t)p->first; u < p->first + p->count; u++) {
      if (w->owner[u] != device && (w->owner[u] >= 0 || device)) continue;
      if (w->owner[u] >= 0 && w->newer[u]) naive_host(&w->n, u, true);
      naive_host(&w->n, u, false);
    }
  for (uint32_t u = (uint32_t)p->first; u < p->first + p->count; u++) {
    w->owner[u] = -1;
    w->newer[u] = false;
  }
}

/* Each step is waited for: the drive reads and writes what one list of pages for each tier says. */
static void test_random_steps(void **state) {
  for (uint32_t round = 0; round < fewer(24, 4); round++) {
    devices d;
    world w = {0};
    seed = round + 1;
    start(&d, round % 2 ? "replay" : "demand", GPUS, 0, HOST_UNITS * PAGE);
    allocate(&d, 0, RIG_BASE, UNITS * PAGE, TRACE_MEMORY_MANAGED);
    touch(&d, 0, 0, UNITS, true);
    for (uint32_t u = 0; u < UNITS; u++) {
      w.owner[u] = -1;
      naive_host(&w.n, u, true);
    }
    for (uint32_t step = 0; step < STEPS; step++) {
      int who = (int)draw(GPUS + 1) - 1;
      pages p = {.first = draw(UNITS), .write = draw(2)};
      p.count = 1 + draw(UNITS - p.first);
      if (who < 0) {
        host_uses(&w, &p);
        touch(&d, 0, p.first, p.count, p.write);
        continue;
      }
      gpu_uses(&w, who, &p);
      launch(&d, (uint32_t)who, p.first, p.count, p.write);
      sync(&d, (uint32_t)who);
    }
    finish(&d);
    assert_int_equal(read_by_all(&d), w.n.reads * PAGE);
    assert_int_equal(written_by_all(&d), w.n.writes * PAGE);
    end(&d);
  }
}

/* Launches, prefetches, hints and the host's accesses in any order, mostly without a wait, with room for a quarter in
 * GPU memory and in the host's. */
static void random_operation(devices *d, pages *own) {
  uint32_t device = (uint32_t)draw(GPUS);
  *own = (pages){.first = draw(UNITS), .write = draw(2)};
  own->count = 1 + draw(UNITS - own->first);
  switch (draw(8)) {
  case 0: touch(d, device, own->first, own->count, own->write); break;
  case 1: prefetch(d, device, (int32_t)draw(GPUS + 1) - 1, own->first, own->count); break;
  case 2:
    rig_op(&d->r, (trace_op){.kind = TRACE_OP_ADVISE,
                             .stream = on(device),
                             .hint = {.address = RIG_BASE + own->first * PAGE,
                                      .bytes = own->count * PAGE,
                                      .advice = (uint8_t)draw(6),
                                      .device = (int32_t)draw(GPUS + 1) - 1}});
    break;
  case 3: sync(d, device); break;
  case 4:
    rig_op(&d->r, (trace_op){.kind = TRACE_OP_COPY,
                             .blocking = draw(2),
                             .stream = on(device),
                             .copy = {.to = own->write ? RIG_BASE + own->first * PAGE : 0x1000,
                                      .from = own->write ? 0x1000 : RIG_BASE + own->first * PAGE,
                                      .width = own->count * PAGE,
                                      .height = 1,
                                      .to_pitch = own->count * PAGE,
                                      .from_pitch = own->count * PAGE,
                                      .direction = own->write ? TRACE_H2D : TRACE_D2H,
                                      .pinned = true}});
    break;
  default: launch(d, device, own->first, own->count, own->write);
  }
}

/* No check fails at any level (places are counted at the end), and the same program gives the same numbers, whichever
 * thread is faster. */
static void test_anything_at_once(void **state) {
  static const char *const managers[] = {"demand", "replay", "uvm", "tbn", "segments", "auto", "hmm"};
  for (uint32_t round = 0; round < fewer(42, 6); round++) {
    sim_result first[GPUS];
    for (uint32_t again = 0; again < 2; again++) {
      devices d;
      pages own;
      seed = 1000 + round;
      /* memory for what the largest unit needs */
      start(&d, managers[round % (sizeof managers / sizeof *managers)], GPUS, 4 << 20, 16 * PAGE);
      allocate(&d, 0, RIG_BASE, UNITS * PAGE, TRACE_MEMORY_MANAGED);
      if (draw(2)) touch(&d, 0, 0, UNITS, true);
      for (uint32_t step = 0; step < STEPS; step++) random_operation(&d, &own);
      for (uint32_t i = 0; i < GPUS; i++) sync(&d, i);
      finish(&d);
      for (uint32_t i = 0; i < GPUS; i++) {
        assert_int_equal(of(&d, i)->time_ps, of(&d, 0)->time_ps);
        assert_true(of_host(&d, i)->peak_bytes <= 16 * PAGE);
        if (again) {
          assert_memory_equal(of(&d, i), &first[i].counters, sizeof *of(&d, i));
          assert_memory_equal(&d.results[i].tiers, &first[i].tiers, sizeof first[i].tiers);
        }
        first[i] = d.results[i];
      }
      end(&d);
    }
  }
}

int main(void) {
  ff_check_level = 2;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_host_writes_more_than_it_holds),
      cmocka_unit_test(test_two_gpus_fault_on_the_drive),
      cmocka_unit_test(test_two_gpus_read_at_once),
      cmocka_unit_test(test_two_gpus_fill_the_hosts_memory),
      cmocka_unit_test(test_who_was_first_goes_down_first),
      cmocka_unit_test(test_memory_that_no_tier_holds),
      cmocka_unit_test(test_the_log),
      cmocka_unit_test(test_a_place_that_is_written_is_ready),
      cmocka_unit_test(test_random_steps),
      cmocka_unit_test(test_anything_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
