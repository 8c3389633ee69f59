/* SPDX-License-Identifier: Apache-2.0 */
/* MIG: which profiles fit a GPU together, what a slice has of it, and programs in slices: each as alone on a machine of
 * the slice's size, whatever runs in the others, but for the link.
 *
 * The GPU is the rig's with 16 SMs, 16 channels and L2 slices; its profiles have eighths of memory, and two SMs for
 * each of seven compute slices. */
#include <stdlib.h>

#include "base/text.h"
#include "machine/spec/mig.h"
#include "machine/spec/spec_table.h"
#include "tenants.h"

static void gpu(machine_spec *s) {
  ff_error error = {0};
  if (machine_spec_set_all(
          s,
          "sm_count=16,channels=16,l2_slices=16,l2_bytes=2M,dram_gbs=512,gpu_block_launch_cycles=3,"
          "l1_mshrs=64,l2_tlb_entries=64,l2_tlb_ways=4,mig_compute_slices=7,mig_memory_slices=8,"
          "mig_profiles=1g.1gb:2:1:1 1g.2gb:3:2:1 2g.2gb:4:2:2 3g.4gb:6:4:4 4g.4gb:8:4:4 7g.8gb:14:8:8",
          &error))
    fail_msg("%s", error.message);
}

static machine_spec gpu_spec(void) {
  machine_spec s = rig_spec();
  gpu(&s);
  return s;
}

/* ---- profiles ---- */

static uint32_t read_one(const machine_spec *s, const char *text) {
  uint32_t out[8], count = 0;
  ff_error error = {0};
  if (mig_read(s, "--mig", text, 8, out, &count, &error)) fail_msg("%s", error.message);
  assert_int_equal(count, 1);
  return out[0];
}

static void test_profiles_by_name(void **state) {
  machine_spec s = gpu_spec();
  assert_int_equal(read_one(&s, "3g.4gb"), 3);
  assert_int_equal(read_one(&s, "3g"), 3);
  assert_int_equal(read_one(&s, "1g"), 0); /* the first of two */
  assert_int_equal(read_one(&s, "1g.2gb"), 1);
}

static void not_read(const machine_spec *s, const char *text, ff_status status, const char *message) {
  uint32_t out[3], count;
  ff_error error = {0};
  assert_int_equal(mig_read(s, "--mig", text, 3, out, &count, &error), status);
  if (!strstr(error.message, message)) fail_msg("\"%s\" is not in \"%s\"", message, error.message);
}

static void test_profiles_that_are_none(void **state) {
  machine_spec s = gpu_spec(), other = rig_spec();
  not_read(&s, "3g,5g", FF_NOT_FOUND, "--mig:1:4: no profile '5g': rig has 1g.1gb, 1g.2gb, 2g.2gb");
  not_read(&s, "3", FF_NOT_FOUND, "no profile '3'");
  not_read(&s, "3g.", FF_NOT_FOUND, "no profile '3g.'");
  not_read(&s, "", FF_PARSE, "a profile is missing");
  not_read(&s, "3g,", FF_PARSE, "--mig:1:4: a profile is missing");
  not_read(&s, "1g,1g,1g,1g", FF_LIMIT, "--mig:1:10: more than 3 slices");
  not_read(&other, "3g", FF_UNSUPPORTED, "rig has no MIG");
}

/* What the user guide's placements allow of seven and eight slices, and what not. */
static void test_what_fits(void **state) {
  static const struct {
    const char *text, *too_much;
  } cases[] = {{"3g,3g", NULL},
               {"4g,3g", NULL},
               {"4g,2g,1g", NULL},
               {"3g,2g,2g", NULL},
               {"2g,2g,2g,1g", NULL},
               {"1g,1g,1g,1g,1g,1g,1g", NULL},
               {"1g.2gb,1g.2gb,1g.2gb,1g.2gb", NULL},
               {"7g", NULL},
               {"4g,4g", "8 compute slices together: there are 7"},
               {"2g,2g,2g,2g", "8 compute slices"},
               {"1g,1g,1g,1g,1g,1g,1g,1g", "8 compute slices"},
               {"3g,3g,1g", "9 memory slices together: there are 8"},
               {"7g,1g", "8 compute slices"}};
  machine_spec s = gpu_spec();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t profiles[8], count;
    ff_error error = {0};
    assert_int_equal(mig_read(&s, "--mig", cases[i].text, 8, profiles, &count, &error), FF_OK);
    ff_status status = mig_fit(&s, profiles, count, &error);
    if (!cases[i].too_much) assert_int_equal(status, FF_OK);
    else if (status != FF_LIMIT || !strstr(error.message, cases[i].too_much))
      fail_msg("%s: %s", cases[i].text, error.message);
  }
  s.sm_count = 11; /* as --set may say */
  uint32_t two[] = {3, 3};
  ff_error error = {0};
  assert_int_equal(mig_fit(&s, two, 2, &error), FF_LIMIT);
  assert_non_null(strstr(error.message, "12 SMs together: there are 11"));
}

static void test_the_largest_that_fits(void **state) {
  static const char *const wanted[] = {NULL, "7g.8gb", "3g.4gb", "2g.2gb", "1g.2gb", "1g.1gb", "1g.1gb", "1g.1gb"};
  machine_spec s = gpu_spec(), none = rig_spec();
  uint32_t profile;
  ff_error error = {0};
  for (uint32_t n = 1; n <= 7; n++) {
    assert_int_equal(mig_largest(&s, n, &profile, &error), FF_OK);
    assert_string_equal(s.mig_profiles.profiles[profile].name, wanted[n]);
  }
  assert_int_equal(mig_largest(&s, 8, &profile, &error), FF_LIMIT);
  assert_int_equal(mig_largest(&s, 65, &profile, &error), FF_LIMIT);
  assert_int_equal(mig_largest(&none, 2, &profile, &error), FF_UNSUPPORTED);
}

/* ---- the text of a machine file ---- */

static void not_set(const char *assignment, const char *message) {
  machine_spec s = gpu_spec();
  ff_error error = {0};
  assert_int_not_equal(machine_spec_set_all(&s, assignment, &error), FF_OK);
  if (!strstr(error.message, message)) fail_msg("\"%s\" is not in \"%s\"", message, error.message);
}

static void test_profiles_on_the_command_line(void **state) {
  machine_spec s = gpu_spec();
  assert_int_equal(machine_spec_set_all(&s, "mig_profiles=3g.4gb:6:4:3", NULL), FF_OK);
  assert_int_equal(s.mig_profiles.count, 1);
  assert_int_equal(s.mig_profiles.profiles[0].l2, 3);
  assert_int_equal(mig_compute(&s.mig_profiles.profiles[0]), 3);
  assert_int_equal(machine_spec_set_all(&s, "mig_profiles=none,mig_compute_slices=0,mig_memory_slices=0", NULL), FF_OK);
  not_set("mig_profiles=3g.4gb:6:4", "'3g.4gb:6:4' is not a profile");
  not_set("mig_profiles=3g.4gb:6:4:4:4", "'3g.4gb:6:4:4:4' is not a profile");
  not_set("mig_profiles=g.4gb:6:4:4", "'g.4gb' is not a profile: they are like 3g.40gb");
  not_set("mig_profiles=3g4gb:6:4:4", "'3g4gb' is not a profile");
  not_set("mig_profiles=3g.4gb-4gb:6:4:4", "'3g.4gb-4gb' is not a profile");
  not_set("mig_profiles=3g.44444444444gb:6:4:4", "is not a profile");
  not_set("mig_profiles=3g.4gb:0:4:4", "'0' is not a number of SMs: 1 to 4096");
  not_set("mig_profiles=3g.4gb:6:-4:4", "'-4' is not a number of memory slices: 1 to 64");
  not_set("mig_profiles=3g.4gb:6:4:", "'' is not a number of L2 slices");
  not_set("mig_profiles=3g.4gb:6:4:4 3g.4gb:6:4:4", "profile 3g.4gb is given twice");
  not_set("mig_profiles=8g.4gb:6:4:4", "8g.4gb has 8 compute slices of 7");
  not_set("mig_profiles=3g.4gb:6:9:4", "3g.4gb has 9 memory and 4 L2 slices of 8");
  not_set("mig_profiles=none", "go together");
  not_set("mig_memory_slices=0", "go together");
}

/* h100's file with another list of profiles. */
static void not_loaded(const char *list, const char *message) {
  machine_spec s;
  char *text;
  size_t size;
  ff_error error = {0};
  ff_text changed = {0};
  assert_int_equal(machine_spec_load("h100", &s, &error), FF_OK);
  assert_int_equal(ff_file_read(s.file, 1 << 20, &text, &size, &error), FF_OK);
  char *begin = strstr(text, "mig_profiles: {value: ") + strlen("mig_profiles: {value: "),
       *end = strstr(begin, "]]") + 2;
  ff_text_add(&changed, "%.*s%s%s", (int)(begin - text), text, list, end);
  assert_int_not_equal(spec_text_load("file", changed.chars, changed.length, &s, &error), FF_OK);
  if (!strstr(error.message, message)) fail_msg("\"%s\" is not in \"%s\"", message, error.message);
  free(changed.chars);
  free(text);
}

static void test_profiles_in_a_file(void **state) {
  not_loaded("3g.40gb", "'mig_profiles' is a list: [[name, SMs, memory slices, L2 slices], ...]");
  not_loaded("[]", "'mig_profiles' is a list");
  not_loaded("[3g.40gb]", "each profile is [name, SMs, memory slices, L2 slices]");
  not_loaded("[[3g.40gb, 60, 4]]", "each profile is [name, SMs, memory slices, L2 slices]");
  not_loaded("[[3g.40gb, 60, 4, [4]]]", "each profile is [name, SMs, memory slices, L2 slices]");
  not_loaded("[[3g.40gb, 60, 4, 65]]", "'65' is not a number of L2 slices: 1 to 64");
  not_loaded("[[3g.40gb, 60, 4, 9]]", "3g.40gb has 4 memory and 9 L2 slices of 8");
}

/* ---- a slice ---- */

static machine_spec slice_of(const machine_spec *s, const char *name) {
  machine_spec slice;
  ff_error error = {0};
  if (mig_slice(s, read_one(s, name), &slice, &error)) fail_msg("%s", error.message);
  return slice;
}

static void test_what_a_slice_has(void **state) {
  machine_spec s = gpu_spec(), half = slice_of(&s, "3g.4gb"), wide = slice_of(&s, "1g.2gb");
  assert_string_equal(half.name, "rig MIG 3g.4gb");
  assert_int_equal(half.sm_count, 6);
  assert_int_equal(half.memory_bytes, s.memory_bytes / 2);
  assert_int_equal(half.channels, 8);
  assert_int_equal(half.l2_slices, 8);
  assert_int_equal(half.l2_bytes, 1 << 20);
  assert_true(half.dram_gbs == 256);
  assert_int_equal(half.walkers, 32);
  assert_int_equal(half.walk_cache_bytes, 4096);
  assert_int_equal(half.l2_tlb_entries, 32);
  assert_int_equal(half.copy_engines, 3);
  assert_true(half.gpu_block_launch_cycles == 8); /* 3 x 16 / 6 */
  assert_int_equal(half.mig_profiles.count, 0);   /* a slice is not divided again */
  /* twice the memory and channels of a 1g, and no more of the L2 */
  assert_int_equal(wide.channels, 4);
  assert_int_equal(wide.memory_bytes, s.memory_bytes / 4);
  assert_int_equal(wide.l2_bytes, 256 << 10);
  assert_int_equal(wide.copy_engines, 1);
}

/* Half of the memory is on one side of the L2; all of it on two. */
static void test_sides(void **state) {
  machine_spec s = gpu_spec();
  s.l2_copies = 1;
  s.side_latency = 50;
  s.side_masks = (machine_mask_table){.count = 1, .masks = {0x1000}};
  machine_spec half = slice_of(&s, "4g"), all = slice_of(&s, "7g");
  assert_int_equal(half.l2_copies, 0);
  assert_true(half.side_latency == 0);
  assert_int_equal(half.side_masks.count, 0);
  assert_int_equal(all.l2_copies, 1);
  assert_true(all.side_latency == 50);
  assert_int_equal(all.side_masks.masks[0], 0x1000);
}

static void test_what_cannot_be_divided(void **state) {
  machine_spec s = gpu_spec(), slice;
  ff_error error = {0};
  s.channels = s.l2_slices = 12;
  assert_int_equal(mig_slice(&s, 0, &slice, &error), FF_INVALID);
  assert_non_null(strstr(error.message, "12 channels and 12 L2 slices cannot be divided into 8"));
  s = gpu_spec();
  s.l2_bytes = 16 << 10; /* a line of each way, and no more: half of that is none */
  assert_int_equal(mig_slice(&s, 1, &slice, &error), FF_INVALID);
  assert_non_null(strstr(error.message, "profile 1g.2gb: a slice of the L2"));
}

/* Every bundled machine with MIG: all profiles are machines, and so many fit as the user guide says. */
static void test_bundled_machines(void **state) {
  static const char *const machines[] = {"a100", "h100", "h100-pcie", "h200", "gh200"};
  static const char *const names[] = {"1g", "2g", "3g", "4g", "7g"};
  static const uint32_t most[] = {7, 3, 2, 1, 1};
  for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
    machine_spec s;
    ff_error error = {0};
    if (machine_spec_load(machines[m], &s, &error)) fail_msg("%s", error.message);
    for (uint32_t i = 0; i < s.mig_profiles.count; i++) {
      machine_spec slice;
      if (mig_slice(&s, i, &slice, &error)) fail_msg("%s: %s", machines[m], error.message);
      timing whole_times, slice_times;
      timing_init(&whole_times, &s);
      timing_init(&slice_times, &slice);
      assert_int_equal(whole_times.dram_read[4], slice_times.dram_read[4]); /* of a channel */
    }
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
      uint32_t profiles[9], profile = read_one(&s, names[n]);
      for (uint32_t i = 0; i <= most[n]; i++) profiles[i] = profile;
      assert_int_equal(mig_fit(&s, profiles, most[n], &error), FF_OK);
      assert_int_equal(mig_fit(&s, profiles, most[n] + 1, &error), FF_LIMIT);
    }
  }
}

/* ---- programs in slices ---- */

enum { LINES = 64, CHASE = 300 };
/* Each warp reads lines of its own, one after the other: none twice. */
static void read_once(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint64_t n = 0; n < LINES; n++) rig_load(w, RIG_BASE + (b * LINES + n) * 128);
  trace_put_wait(w, 0);
}
/* Bursts, loads of up to 32 lines and stores by a fixed pseudo-random sequence of each warp: many are held up, and many
 * come at the same time as another warp's. */
static void mixed(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  uint32_t state = (uint32_t)(b * 8 + i) * 2654435761u + 1;
  for (int n = 0; n < 12; n++) {
    uint32_t random = (state = state * 1664525 + 1013904223) >> 8, lines = random % 3 ? 1 : 1 + random / 8 % 32;
    rig_issue(w, 1 + random % 4);
    uint64_t *line = trace_put_access(w, random % 5 ? TRACE_LOAD : TRACE_STORE, 2, 0, 0, ~0u, lines);
    for (uint32_t l = 0; l < lines; l++)
      line[l] = trace_line(RIG_BASE + (random / 4 % 1999 * 32 + l * 37) * 128 % (6 << 20), 1, 15);
    if (n % 3 == 2) trace_put_wait(w, 1);
  }
}
/* One warp with nothing beside it: alone it runs without a stop. */
static void chase(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint64_t n = 0; n < CHASE; n++) {
    rig_load(w, RIG_BASE + (n * 7919 * 128) % (6 << 20));
    trace_put_wait(w, 0);
    rig_issue(w, 2);
  }
}
#define SYNC \
  { .kind = PLAN_SYNC }
#define END \
  { .kind = PLAN_END }
static const plan_step streaming[] = {{.kind = PLAN_ALLOC, .bytes = 8 << 20},
                                      {.kind = PLAN_KERNEL, .kernel = {.blocks = 1024, .warps = 1, .warp = read_once}},
                                      SYNC,
                                      END};
static const plan_step mixture[] = {
    {.kind = PLAN_STREAM, .kernel = {.stream = 1}},
    {.kind = PLAN_ALLOC, .bytes = 8 << 20},
    {.kind = PLAN_KERNEL, .kernel = {.blocks = 60, .warps = 3, .warp = mixed}},
    {.kind = PLAN_KERNEL, .kernel = {.blocks = 40, .warps = 8, .registers = 64, .warp = mixed, .stream = 1}},
    {.kind = PLAN_HOST, .repeat = 3},
    SYNC,
    {.kind = PLAN_KERNEL, .kernel = {.blocks = 31, .warps = 1, .warp = mixed}, .repeat = 3},
    {.kind = PLAN_KERNEL, .kernel = {.blocks = 1, .warps = 1, .warp = chase}},
    {.kind = PLAN_FREE},
    END};
static const plan_step chasing[] = {{.kind = PLAN_ALLOC, .bytes = 8 << 20},
                                    {.kind = PLAN_KERNEL, .kernel = {.blocks = 1, .warps = 1, .warp = chase}},
                                    END};
static const plan_step others[] = {{.kind = PLAN_ALLOC, .bytes = 8 << 20},
                                   {.kind = PLAN_KERNEL, .kernel = {.blocks = 1, .warps = 1, .warp = chase}},
                                   {.kind = PLAN_KERNEL, .kernel = {.blocks = 50, .warps = 2, .warp = mixed}},
                                   SYNC,
                                   END};

typedef struct sliced {
  bench b;
  machine_spec slices[3];
} sliced;

static void sliced_open(sliced *s, const char *first, const char *second) {
  bench_open(&s->b, SIM_ISOLATION_MIG, 2);
  gpu(&s->b.spec);
  s->b.spec.api_us = 1.25;
  s->b.spec.launch_us = 3;
  s->b.spec.launch_latency_us = 2;
  const char *const names[] = {first, second};
  for (uint32_t i = 0; i < 2; i++) {
    s->slices[i] = slice_of(&s->b.spec, names[i]);
    s->b.lanes[i].given = (sim_tenant){.slice = &s->slices[i]};
  }
}

/* The first plan on a machine of the first slice's size. */
static sim_counters slice_alone(const sliced *s) {
  bench b = s->b;
  b.spec = s->slices[0];
  return bench_alone(&b);
}

static sim_counters run_first(sliced *s) {
  bench_run(&s->b);
  sim_counters c = s->b.lanes[0].r.result.counters;
  bench_close(&s->b);
  return c;
}

/* Half of the channels take twice as long, an eighth of them eight times: SMs are not what holds it up. */
static void test_bandwidth_by_memory_slices(void **state) {
  static const struct {
    const char *profile;
    uint64_t channels;
  } cases[] = {{"7g", 16}, {"4g", 8}, {"3g", 8}, {"2g", 4}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sliced s;
    sliced_open(&s, cases[i].profile, "1g");
    s.b.lanes[1].given.idle = true;
    s.b.lanes[0].plan = streaming;
    s.slices[0].l1_mshrs = 4096;
    sim_counters c = run_first(&s);
    assert_in_range(c.dram_read_bytes, 8 << 20, (8 << 20) * 101 / 100); /* with page walks */
    double gbs = (double)c.dram_read_bytes / (double)c.kernel_ps * 1000, peak = 32.0 * (double)cases[i].channels;
    if (gbs < 0.85 * peak || gbs > peak) fail_msg("%s: %.1f of %.1f GB/s", cases[i].profile, gbs, peak);
  }
}

/* Counter for counter and picosecond for picosecond: as on a machine of that size, and as beside an idle slice. */
static void test_neighbours_are_not_noticed(void **state) {
  static const plan_step *const plans[] = {streaming, mixture, others};
  for (size_t p = 0; p < 3; p++)
    for (int idle = 0; idle < 2; idle++)
      for (int loops = 0; loops < 2 - idle; loops++) {
        sliced s;
        sliced_open(&s, "3g", "4g");
        s.b.lanes[0].plan = plans[p];
        s.b.lanes[1].plan = others;
        s.b.lanes[1].given.idle = idle;
        s.b.lanes[1].given.loops = loops;
        sim_counters alone = slice_alone(&s), beside = run_first(&s);
        assert_true(alone.kernel_ps > 0);
        counters_equal(&alone, &beside);
      }
}

/* The same if threads come in another order. */
static void test_threads_make_no_difference(void **state) {
  sim_counters all[3];
  for (int i = 0; i < 3; i++) {
    sliced s;
    sliced_open(&s, "3g", "3g");
    s.b.jitter = i;
    s.b.manager = "demand";
    s.b.lanes[0].plan = mixture;
    s.b.lanes[1].plan = others;
    s.b.lanes[1].given.loops = true;
    all[i] = run_first(&s);
    assert_true(all[i].faults > 0);
    if (i) counters_equal(&all[0], &all[i]);
  }
}

/* ---- the link ---- */

static const plan_step copies[] = {{.kind = PLAN_ALLOC, .bytes = 8 << 20}, {.kind = PLAN_H2D, .bytes = 8 << 20}, END};

static ps time_of(const bench *b, uint32_t lane) { return b->lanes[lane].r.result.counters.time_ps; }

/* 8 MiB at 16 GB/s each: the second tenant's wait for the first one's. */
static void test_the_link_is_common(void **state) {
  sliced s;
  sliced_open(&s, "3g", "3g");
  s.b.spec.api_us = s.slices[0].api_us = s.slices[1].api_us = 0;
  s.b.lanes[0].plan = s.b.lanes[1].plan = copies;
  bench_run(&s.b);
  ps each = (ps)(8 << 20) * 1000 / 16;
  assert_int_equal(time_of(&s.b, 0), each);
  assert_int_equal(time_of(&s.b, 1), 2 * each);
  bench_close(&s.b);
}

/* One warp that reaches over the link load by load (zero-copy), beside another one that does: the link is asked in
 * order of time, so that a load waits for no more than the other's last one. */
static void test_the_link_is_asked_in_order(void **state) {
  ps alone = 0, line = 128 * 1000 / 16;
  for (int both = 0; both < 2; both++) {
    sliced s;
    sliced_open(&s, "3g", "3g");
    s.slices[0].link_latency_us = s.slices[1].link_latency_us = 1;
    s.b.manager = "zero-copy";
    s.b.lanes[0].plan = s.b.lanes[1].plan = chasing;
    s.b.lanes[1].given.idle = !both;
    bench_run(&s.b);
    for (int i = 0; i <= both; i++) {
      ps time = s.b.lanes[i].r.result.counters.kernel_ps;
      if (both) assert_in_range(time, alone, alone + CHASE * line);
      else alone = time;
    }
    bench_close(&s.b);
  }
  assert_in_range(alone, CHASE * US, 2 * CHASE * US);
}

/* ---- memory ---- */

/* The GPU has 32 MiB, so that an eighth is 4 MiB and a half 16 MiB; the program has 8 MiB and reads all of it. */
static void run_in(const char *profile, const char *manager, sim_counters *c, char error[256]) {
  sliced s;
  sliced_open(&s, profile, "1g");
  s.b.spec.memory_bytes = 32 << 20;
  s.slices[0] = slice_of(&s.b.spec, profile);
  s.slices[1] = slice_of(&s.b.spec, "1g");
  s.b.manager = manager;
  s.b.lanes[0].plan = streaming;
  s.b.lanes[1].given.idle = true;
  s.b.fails = true;
  bench_run(&s.b);
  *c = s.b.lanes[0].r.result.counters;
  snprintf(error, 256, "%.255s", s.b.lanes[0].r.result.error);
  bench_close(&s.b);
}

static void test_memory_of_a_slice(void **state) {
  static const char *const paged[] = {"demand", "replay", "uvm", "auto"};
  sim_counters c;
  char error[256];
  run_in("1g", "copy", &c, error);
  if (!strstr(error, "has 8.00 MiB in use, but the GPU has 4.00 MiB")) fail_msg("%s", error);
  run_in("3g", "copy", &c, error);
  assert_string_equal(error, "");
  for (size_t i = 0; i < sizeof paged / sizeof *paged; i++) {
    run_in("1g", paged[i], &c, error);
    assert_string_equal(error, "");
    if (!c.evicted_bytes) fail_msg("%s: nothing is evicted in 4 MiB", paged[i]);
    run_in("3g", paged[i], &c, error);
    assert_string_equal(error, "");
    if (c.evicted_bytes) fail_msg("%s: something is evicted in 16 MiB", paged[i]);
  }
}

static void test_what_a_device_of_slices_needs(void **state) {
  machine_spec s = gpu_spec(), slice = slice_of(&s, "3g");
  sim_tenant t[2] = {{.slice = &slice}};
  ff_error error = {0};
  sim_device *d;
  sim_device_options o = {.spec = &s, .isolation = SIM_ISOLATION_MIG, .tenants = t, .count = 2};
  assert_int_equal(sim_device_create(&o, &d, &error), FF_INVALID);
  assert_non_null(strstr(error.message, "tenant 1 has no slice"));
  t[1].slice = &slice;
  o.borrow = true;
  assert_int_equal(sim_device_create(&o, &d, &error), FF_INVALID);
  assert_non_null(strstr(error.message, "not lent"));
  o.borrow = false;
  assert_int_equal(sim_device_create(&o, &d, &error), FF_OK);
  sim_device_free(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_profiles_by_name),
                                     cmocka_unit_test(test_profiles_that_are_none),
                                     cmocka_unit_test(test_what_fits),
                                     cmocka_unit_test(test_the_largest_that_fits),
                                     cmocka_unit_test(test_profiles_on_the_command_line),
                                     cmocka_unit_test(test_profiles_in_a_file),
                                     cmocka_unit_test(test_what_a_slice_has),
                                     cmocka_unit_test(test_sides),
                                     cmocka_unit_test(test_what_cannot_be_divided),
                                     cmocka_unit_test(test_bundled_machines),
                                     cmocka_unit_test(test_bandwidth_by_memory_slices),
                                     cmocka_unit_test(test_neighbours_are_not_noticed),
                                     cmocka_unit_test(test_threads_make_no_difference),
                                     cmocka_unit_test(test_the_link_is_common),
                                     cmocka_unit_test(test_the_link_is_asked_in_order),
                                     cmocka_unit_test(test_memory_of_a_slice),
                                     cmocka_unit_test(test_what_a_device_of_slices_needs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
