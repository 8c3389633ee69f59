/* SPDX-License-Identifier: Apache-2.0 */
/* Tiers below GPU memory: bytes and times as anyone can do them on paper. The link carries 16 GB/s (a page of 4 KiB in
 * 256 ns); the tier "slow" reads 4 GB/s (1024 ns) and writes 2 GB/s (2048 ns), 100 us after it was asked. */
#include "rig.h"

#include "machine/spec/choice.h"

#define PAGE UINT64_C(4096)
#define READ_PS (1024 * NS)
#define WRITE_PS (2048 * NS)
#define LINK_PS (256 * NS)
#define LATENCY (100 * US)

enum { PAGES = 1024 }; /* 4 MiB, of which the host's memory holds 2 MiB */
#define BYTES (PAGES * PAGE)

/* One warp touches pages one after the other. */
typedef struct pages {
  uint64_t first, count;
  bool write;
} pages;

static void touch_pages(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const pages *p = context;
  for (uint64_t n = 0; n < p->count; n++) {
    rig_load_wait(w, RIG_BASE + (p->first + n) * PAGE);
    if (p->write) rig_store(w, RIG_BASE + (p->first + n) * PAGE);
  }
}

static void launch(rig *r, const pages *p) {
  rig_launch(r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_pages, .context = p});
}

static rig begin(const char *manager, bool mapped) {
  rig r;
  rig_open(&r, manager);
  r.spec.fault_us = 0;
  r.spec.host_memory_bytes = BYTES / 2;
  r.spec.below_host = (machine_tier_table){.count = 1,
                                           .tiers = {{.name = "slow",
                                                      .bytes = 1 << 30,
                                                      .unit_bytes = mapped ? 64 : 4096,
                                                      .read_gbs = 4,
                                                      .write_gbs = 2,
                                                      .latency_us = 100,
                                                      .mapped = mapped}}};
  return r;
}

static const sim_tier *slow(const rig *r) { return &r->result.tiers.of[1]; }

/* The host writes N bytes, its memory holds half of them: the first half goes down, and the host waits for that. */
static void test_host_writes_more_than_it_holds(void **state) {
  rig r = begin("replay", false);
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
  rig_h2d(&r, RIG_BASE, BYTES);
  const sim_result *result = rig_finish(&r);
  assert_string_equal(result->error, "");
  assert_int_equal(result->tiers.count, 2);
  assert_string_equal(result->tiers.of[0].name, "host");
  assert_int_equal(result->tiers.of[0].peak_bytes, BYTES / 2);
  assert_int_equal(result->tiers.of[0].read_bytes, BYTES / 2);
  assert_int_equal(result->tiers.of[0].written_bytes, 0);
  assert_int_equal(slow(&r)->peak_bytes, BYTES / 2);
  assert_int_equal(slow(&r)->written_bytes, BYTES / 2);
  assert_int_equal(slow(&r)->read_bytes, 0);
  assert_int_equal(slow(&r)->waits, 1);
  assert_int_equal(slow(&r)->wait_ps, LATENCY + PAGES / 2 * WRITE_PS);
  assert_int_equal(result->counters.time_ps, LATENCY + PAGES / 2 * WRITE_PS);
  rig_close(&r);
}

/* Far-faults one after the other on what has gone down: each waits for the tier's latency and read, then for the link.
 * Where the host's memory holds all, the same faults wait for the link alone. Nothing is written: the GPU only
 * reads. */
static void test_far_faults_read_the_tier(void **state) {
  enum { FAULTS = 8 };
  ps kernel_ps[2];
  for (int lower = 0; lower < 2; lower++) {
    pages p = {0, FAULTS, false};
    rig r = begin("replay", false);
    if (!lower) r.spec.host_memory_bytes = BYTES;
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
    rig_h2d(&r, RIG_BASE, BYTES);
    launch(&r, &p);
    const sim_result *result = rig_finish(&r);
    assert_int_equal(result->counters.faults, FAULTS);
    assert_int_equal(result->counters.h2d_bytes, FAULTS * PAGE);
    assert_int_equal(slow(&r)->written_bytes, lower ? BYTES / 2 : 0);
    assert_int_equal(slow(&r)->read_bytes, lower ? FAULTS * PAGE : 0);
    assert_int_equal(slow(&r)->waits, lower ? 1 + FAULTS : 0);
    kernel_ps[lower] = result->counters.kernel_ps;
    rig_close(&r);
  }
  assert_int_equal(kernel_ps[1] - kernel_ps[0], FAULTS * (LATENCY + READ_PS));
}

/* A transfer of many pages from the slower tier ends a page's time on the link after its last page was read; one that
 * lies half in the host's memory carries that half meanwhile. */
static void test_pieces_follow_each_other(void **state) {
  static const struct {
    uint64_t first, count, lower;
  } cases[] = {{0, 64, 64}, {PAGES / 2 - 8, 16, 8}, {PAGES / 2 - 1, 512, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rig r = begin("replay", false);
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
    rig_h2d(&r, RIG_BASE, BYTES);
    uint64_t sequence;
    rig_record(&r, 0, &sequence);
    rig_copy(&r, TRACE_D2D, RIG_BASE + BYTES, RIG_BASE + cases[i].first * PAGE, cases[i].count * PAGE, true, 0);
    const sim_result *result = rig_finish(&r);
    assert_int_equal(slow(&r)->read_bytes, cases[i].lower * PAGE);
    ps read = LATENCY + cases[i].lower * READ_PS, link = cases[i].count * LINK_PS,
       over = read + LINK_PS > link ? read + LINK_PS : link;
    ps written = LATENCY + PAGES / 2 * WRITE_PS, copied = result->counters.time_ps - written;
    assert_int_equal(result->counters.transfer_ps, link);
    ps device = (ps)(2.0 * (double)(cases[i].count * PAGE) / 384 * 1000 + 0.5);
    assert_true(copied >= over + device - 1 && copied <= over + device + 1);
    rig_close(&r);
  }
}

/* GPU memory of 2 MiB below which the host's memory is full: each page that is written and evicted sends the one that
 * moved longest ago down. */
static void test_evicted_pages_send_others_down(void **state) {
  pages all = {0, PAGES, true};
  rig r = begin("replay", false);
  r.gpu_memory = BYTES / 2;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
  rig_h2d(&r, RIG_BASE, BYTES);
  launch(&r, &all);
  const sim_result *result = rig_finish(&r);
  /* The first 512 come from below, and give up their places as they are written. For each of the last 512 one of these
   * goes back to the host's memory, which is full; what has moved longest ago there is the page that is wanted next: it
   * goes down, and is read at once. */
  assert_int_equal(result->counters.h2d_bytes, BYTES);
  assert_int_equal(result->counters.written_back_bytes, BYTES / 2);
  assert_int_equal(slow(&r)->read_bytes, BYTES);
  assert_int_equal(slow(&r)->written_bytes, BYTES);
  assert_int_equal(result->tiers.of[0].peak_bytes, BYTES / 2);
  rig_close(&r);
}

/* What comes back when the host touches or copies it is in the host's memory after that, and others are not. */
static void test_host_reads_what_went_down(void **state) {
  rig r = begin("replay", false);
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
  rig_h2d(&r, RIG_BASE, BYTES);
  rig_d2h(&r, RIG_BASE, 4 * PAGE);
  rig_d2h(&r, RIG_BASE, 4 * PAGE);
  const sim_result *result = rig_finish(&r);
  assert_int_equal(slow(&r)->read_bytes, 4 * PAGE);
  assert_int_equal(result->tiers.of[0].written_bytes, 4 * PAGE);
  assert_int_equal(slow(&r)->written_bytes, BYTES / 2 + 4 * PAGE);
  /* read and written at once; the write is the longer one */
  assert_int_equal(result->counters.time_ps, 2 * LATENCY + (PAGES / 2 + 4) * WRITE_PS);
  rig_close(&r);
}

/* Memory that the GPU reaches over the link: in a mapped tier it is read in place, a paged one gives the page up. */
static void test_reached_in_place_or_brought_up(void **state) {
  enum { LINES = 4 };
  for (int mapped = 0; mapped < 2; mapped++) {
    pages p = {0, LINES, false};
    rig r = begin("replay", mapped);
    r.advise = "all:cpu";
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_MANAGED);
    rig_h2d(&r, RIG_BASE, BYTES);
    launch(&r, &p);
    const sim_result *result = rig_finish(&r);
    assert_string_equal(result->error, "");
    assert_int_equal(result->counters.h2d_bytes, 0);
    assert_int_equal(slow(&r)->read_bytes, mapped ? result->counters.remote_bytes : LINES * PAGE);
    assert_int_equal(result->tiers.of[0].written_bytes, mapped ? 0 : LINES * PAGE);
    rig_close(&r);
  }
}

/* A line of a mapped tier takes that tier's latency and its time, then the link's: a warp that reads one after the
 * other waits so much longer for each. */
static void test_lines_of_a_mapped_tier(void **state) {
  enum { LINES = 4 };
  ps kernel_ps[2];
  for (int lower = 0; lower < 2; lower++) {
    pages p = {0, LINES, false};
    rig r = begin("replay", true);
    if (!lower) r.spec.host_memory_bytes = BYTES;
    r.advise = "all:cpu";
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_MANAGED);
    rig_h2d(&r, RIG_BASE, BYTES);
    launch(&r, &p);
    kernel_ps[lower] = rig_finish(&r)->counters.kernel_ps;
    rig_close(&r);
  }
  assert_int_equal(kernel_ps[1] - kernel_ps[0], LINES * (LATENCY + 128 * NS / 4));
}

/* Three tiers: what does not fit the second goes on to the third. */
static void test_a_tier_gives_to_the_next(void **state) {
  rig r = begin("replay", false);
  r.spec.below_host.tiers[1] = r.spec.below_host.tiers[0];
  r.spec.below_host.count = 2;
  strcpy(r.spec.below_host.tiers[1].name, "slower");
  r.spec.below_host.tiers[0].bytes = BYTES / 4;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
  rig_h2d(&r, RIG_BASE, BYTES);
  const sim_result *result = rig_finish(&r);
  assert_int_equal(result->tiers.count, 3);
  assert_int_equal(result->tiers.of[1].peak_bytes, BYTES / 4);
  assert_int_equal(result->tiers.of[1].written_bytes, BYTES / 2);
  assert_int_equal(result->tiers.of[1].read_bytes, BYTES / 4);
  assert_int_equal(result->tiers.of[2].peak_bytes, BYTES / 4);
  assert_int_equal(result->tiers.of[2].written_bytes, BYTES / 4);
  rig_close(&r);
}

/* ---- far memory between GPU memory and the host's ---- */

#define FAR_READ_PS (512 * NS)
#define FAR_WRITE_PS (1024 * NS)
#define FAR_LATENCY (3 * US)

/* "far" reads 8 GB/s and writes 4 GB/s, 3 us after it was asked; GPU memory holds half of the program. */
static rig begin_far(uint64_t far_bytes, uint64_t host_bytes, bool drive) {
  rig r = begin("replay", false);
  r.gpu_memory = BYTES / 2;
  r.spec.host_memory_bytes = host_bytes;
  if (!drive) r.spec.below_host = (machine_tier_table){0};
  r.spec.above_host = (machine_tier_table){
      .count = 1,
      .tiers = {
          {.name = "far", .bytes = far_bytes, .unit_bytes = 4096, .read_gbs = 8, .write_gbs = 4, .latency_us = 3}}};
  return r;
}

/* What leaves GPU memory goes to far memory; what the host has written begins in the host's. The host's copy of four
 * pages brings them there, and waits for far memory's latency and read. */
static void test_evicted_pages_go_to_far_memory(void **state) {
  pages all = {0, PAGES, true};
  ps last_time = 0;
  for (uint64_t copied = 0; copied <= 4; copied += 4) {
    rig r = begin_far(1 << 30, BYTES, false);
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
    rig_h2d(&r, RIG_BASE, BYTES);
    launch(&r, &all);
    rig_sync(&r);
    if (copied) rig_d2h(&r, RIG_BASE, copied * PAGE);
    const sim_result *result = rig_finish(&r);
    const sim_tier *far = &result->tiers.of[0], *host = &result->tiers.of[1];
    assert_string_equal(result->error, "");
    assert_int_equal(result->tiers.count, 2);
    assert_string_equal(far->name, "far");
    assert_string_equal(host->name, "host");
    assert_int_equal(result->counters.written_back_bytes, BYTES / 2);
    assert_int_equal(far->written_bytes, BYTES / 2);
    assert_int_equal(far->peak_bytes, BYTES / 2);
    assert_int_equal(far->read_bytes, copied * PAGE);
    assert_int_equal(host->written_bytes, copied * PAGE);
    assert_int_equal(host->read_bytes, 0);
    assert_int_equal(host->peak_bytes, BYTES);
    if (copied) assert_int_equal(result->counters.time_ps - last_time, FAR_LATENCY + copied * FAR_READ_PS);
    last_time = result->counters.time_ps;
    rig_close(&r);
  }
}

/* Far memory for 128 pages, the host's for 256, a drive below: 1024 pages that the host writes and the GPU after it,
 * one after the other, with room for 512. */
static void test_from_far_memory_to_the_host_to_the_drive(void **state) {
  pages all = {0, PAGES, true};
  rig r = begin_far(BYTES / 8, BYTES / 4, true);
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
  rig_h2d(&r, RIG_BASE, BYTES);
  launch(&r, &all);
  const sim_result *result = rig_finish(&r);
  const sim_tier *far = &result->tiers.of[0], *host = &result->tiers.of[1], *drive = &result->tiers.of[2];
  assert_string_equal(result->error, "");
  assert_int_equal(far->written_bytes, 512 * PAGE); /* evicted */
  assert_int_equal(far->peak_bytes, 128 * PAGE);
  assert_int_equal(far->read_bytes, 384 * PAGE); /* for what came after them */
  assert_int_equal(host->written_bytes, 384 * PAGE);
  assert_int_equal(host->peak_bytes, 256 * PAGE);
  /* 768 while the host wrote; then the 256 that had stayed, each before the GPU wanted it; and 128 that came from far
   * memory */
  assert_int_equal(host->read_bytes, 1152 * PAGE);
  assert_int_equal(drive->written_bytes, 1152 * PAGE);
  assert_int_equal(drive->read_bytes, 1024 * PAGE);
  rig_close(&r);
}

/* Far-faults one after the other on what went to far memory, each of which evicts a page that was written: the room is
 * there when that is in far memory, which takes it while the link carries it; what is read meanwhile is there
 * sooner. */
static void test_far_faults_read_far_memory(void **state) {
  enum { FAULTS = 8 };
  ps kernel_ps[2];
  for (int with = 0; with < 2; with++) {
    pages all = {0, PAGES, true}, again = {0, FAULTS, false};
    rig r = begin_far(with ? 1 << 30 : 4096, 2 * BYTES, false);
    if (!with) r.spec.above_host = (machine_tier_table){0}, r.spec.host_memory_bytes = 0;
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
    rig_h2d(&r, RIG_BASE, BYTES);
    launch(&r, &all);
    rig_sync(&r);
    launch(&r, &again);
    const sim_result *result = rig_finish(&r);
    assert_int_equal(result->counters.faults, PAGES + FAULTS);
    kernel_ps[with] = result->counters.kernel_ps;
    if (with) {
      assert_int_equal(result->tiers.of[0].read_bytes, FAULTS * PAGE);
      assert_int_equal(result->tiers.of[0].written_bytes, BYTES / 2 + FAULTS * PAGE);
    }
    rig_close(&r);
  }
  assert_int_equal(kernel_ps[1] - kernel_ps[0], (PAGES / 2 + FAULTS) * (FAR_LATENCY + FAR_WRITE_PS - LINK_PS));
}

/* ---- files ---- */

/* Four MiB between the GPU and a file, or pinned memory. */
static ps copied(const char *manager, bool drive, bool file, trace_direction direction, sim_tiers *tiers) {
  rig r = begin(manager, false);
  r.spec.host_memory_bytes = drive ? BYTES : 0;
  if (!drive) r.spec.below_host = (machine_tier_table){0};
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
  trace_op op = {.kind = TRACE_OP_COPY,
                 .blocking = true,
                 .copy = {.to = direction == TRACE_H2D ? RIG_BASE : 0x1000,
                          .from = direction == TRACE_H2D ? 0x1000 : RIG_BASE,
                          .width = BYTES,
                          .height = 1,
                          .to_pitch = BYTES,
                          .from_pitch = BYTES,
                          .direction = direction,
                          .pinned = true,
                          .file = file}};
  rig_op(&r, op);
  const sim_result *result = rig_finish(&r);
  ps time = result->counters.time_ps;
  assert_string_equal(result->error, "");
  *tiers = result->tiers;
  rig_close(&r);
  return time;
}

/* A file that is read: the link carries its last unit when the drive has read that. One that is written: the drive is
 * the slower one. */
static void test_files_take_the_drives_time(void **state) {
  static const struct {
    const char *manager;
    bool drive;
    ps in, out;
  } cases[] = {
      {"copy", true, LATENCY + PAGES * READ_PS + LINK_PS - PAGES * LINK_PS, LATENCY + PAGES * (WRITE_PS - LINK_PS)},
      {"copy", false, 0, 0},
      {"replay", true, LATENCY + PAGES * READ_PS, LATENCY + PAGES * WRITE_PS},
      {"ideal", true, 0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int out = 0; out < 2; out++) {
      sim_tiers with, without;
      trace_direction direction = out ? TRACE_D2H : TRACE_H2D;
      ps file = copied(cases[i].manager, cases[i].drive, true, direction, &with),
         pinned = copied(cases[i].manager, cases[i].drive, false, direction, &without);
      assert_int_equal(file - pinned, out ? cases[i].out : cases[i].in);
      if (!strcmp(cases[i].manager, "ideal")) continue;
      const sim_tier *files = &with.of[with.count - 1];
      assert_int_equal(with.count, without.count + 1);
      assert_string_equal(files->name, SIM_FILES);
      assert_int_equal(files->read_bytes, out ? 0 : BYTES);
      assert_int_equal(files->written_bytes, out ? BYTES : 0);
      assert_int_equal(files->waits, cases[i].drive);
      assert_int_equal(files->capacity, 0);
    }
}

/* ---- places, by a list for each tier ---- */

enum { UNITS = 40, TIERS = 3 };

typedef struct naive {
  uint32_t units[TIERS][UNITS], counts[TIERS]; /* those that moved longest ago first */
} naive;

static bool naive_take(naive *n, uint32_t unit, uint32_t *tier) {
  for (uint32_t t = 0; t < TIERS; t++)
    for (uint32_t i = 0; i < n->counts[t]; i++)
      if (n->units[t][i] == unit) {
        memmove(&n->units[t][i], &n->units[t][i + 1], (--n->counts[t] - i) * sizeof unit);
        *tier = t;
        return true;
      }
  return false;
}

/* Each tier but the last holds four units. */
static void naive_enter(naive *n, uint32_t tier, uint32_t unit) {
  if (tier + 1 < TIERS && n->counts[tier] == 4) {
    uint32_t victim = n->units[tier][0];
    memmove(&n->units[tier][0], &n->units[tier][1], --n->counts[tier] * sizeof victim);
    naive_enter(n, tier + 1, victim);
  }
  n->units[tier][n->counts[tier]++] = unit;
}

typedef struct operation {
  uint32_t unit, what; /* what: of eight */
  uint64_t time;
} operation;

static operation random_operation(uint32_t *random, uint64_t time) {
  *random = *random * 1664525 + 1013904223;
  return (operation){.unit = (*random >> 8 & 0xffff) % UNITS, .what = *random >> 24 & 7, .time = time};
}

static void naive_do(naive *n, uint32_t host, const operation *o) {
  uint32_t at = 0;
  bool there = naive_take(n, o->unit, &at);
  if (o->what < 2) naive_enter(n, 0, o->unit);
  else if (o->what < 3 || (o->what < 5 && there)) naive_enter(n, host, o->unit);
  else if (o->what >= 5 && o->what < 7) naive_enter(n, there ? at : host, o->unit);
}

static void tiers_do(tiers *t, const operation *o) {
  uint64_t address = RIG_BASE + o->unit * PAGE;
  bool there = tiers_find(t, address) != NULL;
  if (o->what < 2) tiers_arrive(t, address, PAGE, o->time);
  else if (o->what < 3) tiers_put(t, address, PAGE, o->time);
  else if (o->what < 5) assert_true((tiers_raise(t, address, o->time) != NULL) == there);
  else if (o->what < 7) tiers_read(t, address, PAGE, o->time);
  else tiers_drop(t, address, o->time);
  tiers_check(t);
}

/* The order within a tier is seen in what goes down next. */
static void same(tiers *t, const naive *n) {
  for (uint32_t tier = 0; tier < TIERS; tier++) {
    assert_int_equal(tiers_of(t, tier)->used, n->counts[tier] * PAGE);
    for (uint32_t i = 0; i < n->counts[tier]; i++)
      assert_int_equal(tiers_find(t, RIG_BASE + n->units[tier][i] * PAGE)->tier, tier);
  }
}

static const uint64_t capacities[] = {4 * PAGE, 4 * PAGE, UNITS *PAGE};

static void test_places_as_a_naive_model_has_them(void **state) {
  for (uint32_t host = 0; host < TIERS; host++) {
    tiers *t = tiers_create(capacities, TIERS, host);
    naive n = {0};
    uint32_t random = 1 + host;
    for (int i = 0; i < 4000; i++) {
      operation o = random_operation(&random, 0);
      naive_do(&n, host, &o);
      tiers_do(t, &o);
      same(t, &n);
    }
    tiers_free(t);
  }
}

/* ---- places that several devices share ---- */

enum { SHARERS = 3, AT_MOST = 24 };

/* What each tier was read and written between two meetings, were all operations done one by one. */
static void carried(tiers *t, tier_moved *sum) {
  for (uint32_t tier = 0; tier < TIERS; tier++) {
    struct tier *of = tiers_of(t, tier);
    sum[tier].read += of->to_gpu + of->to_host + of->down;
    sum[tier].written += of->written;
    of->to_gpu = of->to_host = of->written = of->down = 0;
  }
  tiers_settled(t);
}

/* Each device has what was at the last meeting with its own operations since; behind a meeting all have what all
 * operations make in order of time. A device owes what that order has it move beyond what it has moved. */
static void test_shared_places_as_a_naive_model_has_them(void **state) {
  for (uint32_t host = 0; host < TIERS; host++) {
    tier_log *log = tier_log_create();
    tiers *t[SHARERS], *alone = tiers_create(capacities, TIERS, host); /* all operations, one by one */
    for (uint32_t d = 0; d < SHARERS; d++) tiers_share(t[d] = tiers_create(capacities, TIERS, host), log, d);
    naive met = {0};
    uint32_t random = 7 + host;
    uint64_t owed = 0;
    for (int meeting = 0; meeting < 400; meeting++) {
      operation all[SHARERS][AT_MOST];
      uint32_t counts[SHARERS], next[SHARERS] = {0};
      tier_moved own[SHARERS][TIERS] = {0}, whole[SHARERS][TIERS] = {0};
      for (uint32_t d = 0; d < SHARERS; d++) {
        naive n = met;
        uint64_t time = 0;
        random = random * 1664525 + 1013904223;
        counts[d] = (random >> 16) % AT_MOST;
        for (uint32_t i = 0; i < counts[d]; i++) {
          all[d][i] = random_operation(&random, time);
          time += random >> 16 & 3;
          naive_do(&n, host, &all[d][i]);
          tiers_do(t[d], &all[d][i]);
          same(t[d], &n);
          carried(t[d], own[d]);
        }
      }
      for (;;) {
        uint32_t best = SHARERS;
        for (uint32_t d = 0; d < SHARERS; d++)
          if (next[d] < counts[d] && (best == SHARERS || all[d][next[d]].time < all[best][next[best]].time)) best = d;
        if (best == SHARERS) break;
        const operation *o = &all[best][next[best]++];
        naive_do(&met, host, o);
        tiers_do(alone, o);
        carried(alone, whole[best]);
      }
      tier_log_merge(log);
      for (uint32_t d = 0; d < SHARERS; d++) {
        tiers_met(t[d]);
        tiers_check(t[d]);
        same(t[d], &met);
        for (uint32_t of = 0; of < SHARERS; of++)
          for (uint32_t tier = 0; tier < TIERS; tier++) {
            assert_int_equal(tiers_of(t[d], tier)->peak, tiers_of(alone, tier)->peak);
            if (tier == host) continue;
            const tier_moved *w = &whole[of][tier], *o = &own[of][tier];
            tier_moved owes = tiers_owed(t[d], of, tier);
            assert_int_equal(owes.read, w->read > o->read ? w->read - o->read : 0);
            assert_int_equal(owes.written, w->written > o->written ? w->written - o->written : 0);
            owed += owes.read + owes.written;
          }
      }
    }
    assert_true(owed > 0);
    for (uint32_t d = 0; d < SHARERS; d++) tiers_free(t[d]);
    tiers_free(alone);
    tier_log_free(log);
  }
}

static void test_memory_that_no_tier_holds(void **state) {
  rig r = begin("replay", false);
  r.spec.below_host.tiers[0].bytes = 2 << 20;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, BYTES + 1, TRACE_MEMORY_DEVICE);
  assert_non_null(strstr(rig_finish(&r)->error, "the tiers below it hold 4.00 MiB"));
  rig_close(&r);
}

/* Everything fits: not a picosecond more than without tiers, under every manager that pages. */
static void test_nothing_changes_where_all_fits(void **state) {
  static const char *const names[] = {"replay", "demand", "uvm", "segments", "auto", "hmm", "partial-multi"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    ps time[2];
    for (int with = 0; with < 2; with++) {
      pages all = {0, 256, true};
      rig r = begin(names[i], false);
      r.gpu_memory = 4 << 20;
      r.spec.host_memory_bytes = with ? 2 * BYTES : 0;
      rig_start(&r);
      rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
      rig_h2d(&r, RIG_BASE, BYTES);
      launch(&r, &all);
      rig_d2h(&r, RIG_BASE, BYTES);
      const sim_result *result = rig_finish(&r);
      assert_string_equal(result->error, "");
      assert_int_equal(result->tiers.count, with ? 2 : 0);
      if (with) assert_int_equal(slow(&r)->written_bytes + slow(&r)->read_bytes + slow(&r)->waits, 0);
      time[with] = result->counters.time_ps;
      rig_close(&r);
    }
    assert_int_equal(time[0], time[1]);
  }
}

int main(void) {
  ff_check_level = 2;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_host_writes_more_than_it_holds),
      cmocka_unit_test(test_far_faults_read_the_tier),
      cmocka_unit_test(test_pieces_follow_each_other),
      cmocka_unit_test(test_evicted_pages_send_others_down),
      cmocka_unit_test(test_host_reads_what_went_down),
      cmocka_unit_test(test_reached_in_place_or_brought_up),
      cmocka_unit_test(test_lines_of_a_mapped_tier),
      cmocka_unit_test(test_a_tier_gives_to_the_next),
      cmocka_unit_test(test_evicted_pages_go_to_far_memory),
      cmocka_unit_test(test_from_far_memory_to_the_host_to_the_drive),
      cmocka_unit_test(test_far_faults_read_far_memory),
      cmocka_unit_test(test_places_as_a_naive_model_has_them),
      cmocka_unit_test(test_shared_places_as_a_naive_model_has_them),
      cmocka_unit_test(test_files_take_the_drives_time),
      cmocka_unit_test(test_memory_that_no_tier_holds),
      cmocka_unit_test(test_nothing_changes_where_all_fits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
