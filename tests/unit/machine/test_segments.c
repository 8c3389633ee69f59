/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: what a launch declares is there before it starts, comes while others run, and goes back when it is
 * wanted. */
#include "rig.h"
#include "unit/share.h"

#define A RIG_BASE
#define B (RIG_BASE + (UINT64_C(64) << 20))
#define C (RIG_BASE + (UINT64_C(128) << 20))
#define MIB (UINT64_C(1) << 20)
#define LINK_PS(bytes) ((bytes)*1000 / 16) /* over the rig's link */

typedef struct job {
  uint64_t at, bytes;
  bool store;
  uint32_t busy;
} job;

/* Touches each page once, then computes for `busy` instructions. */
static void work(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const job *j = context;
  for (uint64_t p = 0; p < j->bytes; p += 4096) {
    if (j->store) rig_store(w, j->at + p);
    else rig_load_wait(w, j->at + p);
  }
  for (uint32_t n = 0; n < j->busy; n += 1000) rig_issue(w, 1000);
}

static rig_kernel declared(const job *j, const char *name, trace_use use) {
  return (rig_kernel){
      .blocks = 1, .warps = 1, .warp = work, .context = j, .name = name, .use_count = use.bytes != 0, .uses = {use}};
}

/* An allocation with bytes in it. */
static void alloc(rig *r, uint64_t address, uint64_t bytes, trace_memory_kind kind) {
  rig_op(r, (trace_op){.kind = TRACE_OP_ALLOC,
                       .alloc = {.address = address,
                                 .bytes = bytes,
                                 .memory = kind,
                                 .id = ++r->allocations,
                                 .name = "array",
                                 .initialised = true}});
}

static void touch(rig *r, uint64_t address, uint64_t bytes, bool write) {
  rig_op(r, (trace_op){.kind = TRACE_OP_HOST_TOUCH, .touch = {.address = address, .bytes = bytes, .write = write}});
}

static void begin(rig *r) {
  rig_open(r, "segments");
  r->spec.host_fault_us = 8;
  rig_start(r);
}

/* The event's time in a program that is over. */
static ps event_at(rig *r, uint64_t sequence) { return sim_event_time(r->sim, sequence); }

/* All of it comes, whatever the kernel touches; the kernel begins with the last byte, and there are no far-faults. */
static void test_resident_before_the_start(void **state) {
  rig r;
  begin(&r);
  alloc(&r, A, 8 * MIB, TRACE_MEMORY_DEVICE);
  alloc(&r, B, MIB, TRACE_MEMORY_DEVICE);
  job reads = {A, 64 * 4096, false, 0};
  rig_launch(&r, declared(&reads, "reads", (trace_use){A, 8 * MIB}));
  rig_sync(&r);
  rig_launch(&r, declared(&reads, "reads", (trace_use){A, 8 * MIB})); /* it is there */
  rig_sync(&r);
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.faults, 0);
  assert_int_equal(c.h2d_bytes, 8 * MIB);
  assert_int_equal(c.prefetched_bytes, 8 * MIB);
  assert_int_equal(c.transfer_ps, LINK_PS(8 * MIB));
  assert_int_equal(c.time_ps, LINK_PS(8 * MIB) + c.kernel_ps);
  assert_int_equal(c.d2h_bytes, 0);
  rig_close(&r);
}

/* The second launch's segment comes while the first kernel runs; the second begins when both are over. */
static ps second_begins(uint64_t bytes, uint32_t busy, ps *first_ends) {
  rig r;
  uint64_t first, second;
  begin(&r);
  alloc(&r, A, MIB, TRACE_MEMORY_DEVICE);
  alloc(&r, B, bytes, TRACE_MEMORY_DEVICE);
  job one = {A, 4096, true, busy}, two = {B, 4096, true, 0};
  rig_launch(&r, declared(&one, "one", (trace_use){A, MIB}));
  rig_record(&r, 0, &first);
  rig_launch(&r, declared(&two, "two", (trace_use){B, bytes}));
  rig_record(&r, 0, &second);
  rig_sync(&r);
  const sim_result *result = rig_finish(&r);
  assert_int_equal(result->counters.faults, 0);
  assert_int_equal(result->counters.h2d_bytes, MIB + bytes);
  *first_ends = event_at(&r, first);
  ps kernel_two = 0;
  for (uint32_t i = 0; i < result->kernel_count; i++)
    if (!strcmp(result->kernels[i].name, "two")) kernel_two = result->kernels[i].counters.time_ps;
  ps begins = event_at(&r, second) - kernel_two;
  rig_close(&r);
  return begins;
}

static void test_fetched_while_another_runs(void **state) {
  ps ends, begins = second_begins(4 * MIB, 1000000, &ends); /* it runs for milliseconds */
  assert_true(ends > LINK_PS(5 * MIB));
  assert_int_equal(begins, ends);
  begins = second_begins(64 * MIB, 1000, &ends); /* the link is the longer one: it never rests */
  assert_true(ends < LINK_PS(65 * MIB));
  assert_int_equal(begins, LINK_PS(65 * MIB));
}

/* A copy between two launches may change what the second one reads: nothing is fetched ahead of it. */
static void not_ahead_of_a_copy(uint32_t stream) {
  rig r;
  begin(&r);
  /* then all of them are queued at once */
  if (stream) rig_op(&r, (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = stream});
  if (stream) rig_op(&r, (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = stream + 1});
  alloc(&r, A, MIB, TRACE_MEMORY_DEVICE);
  alloc(&r, B, 4 * MIB, TRACE_MEMORY_DEVICE);
  job one = {A, 4096, true, 1000000}, two = {B, 4096, false, 0};
  rig_kernel first = declared(&one, "one", (trace_use){A, MIB}),
             second = declared(&two, "two", (trace_use){B, 4 * MIB});
  first.stream = second.stream = stream;
  rig_launch(&r, first);
  rig_copy(&r, TRACE_H2D, B, 0x1000, 4 * MIB, false, stream);
  rig_launch(&r, second);
  rig_sync(&r);
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.h2d_bytes, 5 * MIB); /* B once */
  assert_int_equal(c.time_ps, LINK_PS(5 * MIB) + c.kernel_ps);
  rig_close(&r);
}
static void test_not_ahead_of_a_copy(void **state) {
  not_ahead_of_a_copy(0);
  not_ahead_of_a_copy(1);
}

/* Read segments are dropped, written ones come back when the host wants them: a copy costs its bytes, a touch one
 * fault. */
static void test_back_when_wanted(void **state) {
  rig r;
  begin(&r);
  alloc(&r, A, MIB, TRACE_MEMORY_DEVICE);
  alloc(&r, B, MIB, TRACE_MEMORY_MANAGED);
  job reads = {A, MIB, false, 0}, writes = {B, 64 * 4096, true, 0}, copies = {A, 16 * 4096, true, 0};
  rig_launch(&r, declared(&reads, "reads", (trace_use){A, MIB}));
  rig_launch(&r, declared(&writes, "writes", (trace_use){B, MIB}));
  rig_d2h(&r, A, MIB);           /* clean */
  touch(&r, B + 4096, 1, false); /* 64 dirty pages of B */
  touch(&r, B, 64 * 4096, true); /* they are the host's */
  rig_launch(&r, declared(&copies, "copies", (trace_use){A, MIB}));
  rig_d2h(&r, A, MIB); /* 16 dirty pages */
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.h2d_bytes, 2 * MIB);
  assert_int_equal(c.d2h_bytes, (64 + 16) * 4096);
  assert_int_equal(c.host_faults, 1);
  assert_int_equal(c.faults, 0);
  rig_close(&r);
}

/* What was not written has no bytes that could move; a part that the host has written does, and so does what was
 * evicted dirty. */
static void test_blank(void **state) {
  rig r;
  rig_open(&r, "segments");
  r.gpu_memory = 4 * MIB;
  rig_start(&r);
  rig_alloc(&r, A, 4 * MIB, TRACE_MEMORY_DEVICE);
  rig_alloc(&r, B, 4 * MIB, TRACE_MEMORY_DEVICE);
  rig_alloc(&r, C, MIB, TRACE_MEMORY_MANAGED); /* no touch has been recorded: the host may write it unseen */
  job writes = {A, 16 * 4096, true, 0}, reads = {B, 4096, false, 0}, nothing = {C, 0, false, 0};
  rig_launch(&r, declared(&writes, "writes", (trace_use){A, 4 * MIB})); /* nothing comes */
  rig_h2d(&r, B, 100);
  rig_launch(&r, declared(&reads, "reads", (trace_use){B, 4 * MIB})); /* a page comes, 16 go */
  rig_sync(&r);
  rig_launch(&r, declared(&writes, "writes", (trace_use){A, 4 * MIB})); /* 16 come */
  rig_sync(&r);
  rig_launch(&r, declared(&nothing, "nothing", (trace_use){C, MIB}));
  rig_sync(&r);
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.faults, 0);
  assert_int_equal(c.h2d_bytes, (1 + 16) * 4096 + MIB);
  assert_in_range(c.d2h_bytes, 16 * 4096, 32 * 4096);
  rig_close(&r);
}

/* What no argument points at comes by far-faults, and is counted. */
static void test_undeclared(void **state) {
  rig r;
  begin(&r);
  alloc(&r, A, MIB, TRACE_MEMORY_DEVICE);
  alloc(&r, B, MIB, TRACE_MEMORY_DEVICE);
  job reads = {B, 10 * 4096, false, 0};
  rig_launch(&r, declared(&reads, "reads", (trace_use){A, MIB}));
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.faults, 10);
  assert_int_equal(c.undeclared_faults, 10);
  assert_int_equal(c.h2d_bytes, MIB + 10 * 4096);
  rig_close(&r);
}

/* Room is made from what no launch declares; what does not fit is paged on demand, and the rest of it has come
 * before. */
/* B comes in the place of 2 MiB that were written: serially, not before they are back on the host. */
static ps time_with_write_back(bool overlaps) {
  rig r;
  rig_open(&r, "segments");
  r.gpu_memory = 4 * MIB;
  r.write_back_overlaps = overlaps;
  rig_start(&r);
  alloc(&r, A, 3 * MIB, TRACE_MEMORY_DEVICE);
  alloc(&r, B, 3 * MIB, TRACE_MEMORY_DEVICE);
  job a = {A, 3 * MIB, true, 0}, b = {B, 4096, false, 0};
  rig_launch(&r, declared(&a, "a", (trace_use){A, 3 * MIB}));
  rig_sync(&r);
  rig_launch(&r, declared(&b, "b", (trace_use){B, 3 * MIB}));
  rig_sync(&r);
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.written_back_bytes, 2 * MIB);
  assert_int_equal(c.faults, 0);
  rig_close(&r);
  return c.time_ps;
}
static void test_waits_for_the_write_back(void **state) {
  /* the first transfer waits for the MiB that it displaces */
  ps later = time_with_write_back(false) - time_with_write_back(true);
  assert_between(later, LINK_PS(MIB), LINK_PS(MIB + 2 * 4096));
}

static void test_beyond_capacity(void **state) {
  rig r;
  rig_open(&r, "segments");
  r.gpu_memory = 4 * MIB;
  rig_start(&r);
  alloc(&r, A, 3 * MIB, TRACE_MEMORY_DEVICE);
  alloc(&r, B, 3 * MIB, TRACE_MEMORY_DEVICE);
  alloc(&r, C, 6 * MIB, TRACE_MEMORY_DEVICE);
  job a = {A, 3 * MIB, false, 0}, b = {B, 3 * MIB, true, 0}, c6 = {C, 6 * MIB, false, 0};
  rig_launch(&r, declared(&a, "a", (trace_use){A, 3 * MIB}));
  rig_launch(&r, declared(&b, "b", (trace_use){B, 3 * MIB}));
  rig_sync(&r);
  rig_launch(&r, declared(&a, "a", (trace_use){A, 3 * MIB})); /* 1 MiB is there still, or not: by age */
  rig_sync(&r);
  rig_launch(&r, declared(&c6, "c", (trace_use){C, 6 * MIB}));
  rig_sync(&r);
  sim_counters c = rig_finish(&r)->counters;
  assert_true(c.written_back_bytes == 3 * MIB);
  assert_int_equal(c.undeclared_faults, 0);
  assert_int_equal(c.faults, 2 * MIB / 4096); /* of C: 4 MiB came before, each of the others once */
  assert_true(c.resident_peak_bytes <= 4 * MIB);
  rig_close(&r);
}

/* Random launches over many small arrays in a memory that holds a third of them: with what was declared and what was
 * not, in two streams; the version oracle and the pager's equations check every step. */
typedef struct two {
  job first, second;
} two;
static void work_two(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const two *t = context;
  work(w, b, i, &t->first);
  work(w, b, i, &t->second);
}

static sim_counters random_program(uint64_t seed) {
  enum { ARRAYS = 12, STEPS = 300 };
  rig r;
  uint64_t random = seed;
  rig_open(&r, "segments");
  r.gpu_memory = ARRAYS * MIB / 3;
  rig_start(&r);
  for (uint32_t stream = 1; stream < 3; stream++)
    rig_op(&r,
           (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = stream, .stream_create = {TRACE_STREAM_NON_BLOCKING}});
  for (int i = 0; i < ARRAYS; i++)
    (i % 3 ? rig_alloc : alloc)(&r, RIG_BASE + (uint64_t)i * 4 * MIB, MIB + (uint64_t)(i % 5) * 4096,
                                i % 2 ? TRACE_MEMORY_DEVICE : TRACE_MEMORY_MANAGED);
  for (int step = 0; step < STEPS; step++) {
    random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
    uint32_t what = (uint32_t)(random >> 60), first = (uint32_t)((random >> 33) % ARRAYS),
             second = (uint32_t)((random >> 40) % ARRAYS), pages = 1 + (uint32_t)((random >> 50) % 64);
    uint64_t one = RIG_BASE + first * 4 * MIB, other = RIG_BASE + second * 4 * MIB;
    two t = {{one, pages * 4096, what & 1, 100 * pages}, {other, pages * 4096, what & 2, 0}};
    if (what < 12)
      rig_launch(&r, (rig_kernel){.blocks = 1 + pages % 4,
                                  .warps = 2,
                                  .stream = seed & 1 ? what % 3 : 0,
                                  .warp = work_two,
                                  .context = &t,
                                  .use_count = 1 + what % 2,
                                  .uses = {{one, MIB}, {other, MIB}}});
    else if (what == 12) rig_h2d(&r, one, pages * 4096);
    else if (what == 13) rig_d2h(&r, one, pages * 4096);
    else if (what == 14) touch(&r, RIG_BASE + first / 2 * 2 * 4 * MIB, pages * 4096, pages & 1);
    else rig_sync(&r);
  }
  sim_counters c = rig_finish(&r)->counters;
  rig_close(&r);
  return c;
}

static void test_random_programs(void **state) {
  for (uint64_t seed = 1; seed <= fewer(8, 4); seed++) {
    sim_counters c = random_program(seed), again = random_program(seed);
    assert_memory_equal(&c, &again, sizeof c);
    assert_true(c.prefetched_bytes && c.evicted_bytes && c.undeclared_faults && c.undeclared_faults <= c.faults);
  }
}

/* ---- auto: what is absent is reached over the link ---- */

#define KIB UINT64_C(1024)
#define D (RIG_BASE + (UINT64_C(192) << 20))
#define SEGMENT (256 * KIB) /* what is small at most */

/* 512 KiB of memory are full with A and B, which a launch has used. Then one that declares `before` runs for 400 us,
 * behind which are queued one that declares `others` and does nothing, and one that declares `declares` and reads the
 * first 16 pages of C. */
typedef struct ahead_case {
  trace_use before, declares[2], others;
  uint64_t bytes; /* of C */
  bool comes;
} ahead_case;

static void comes_ahead(const ahead_case *c) {
  rig r;
  rig_open(&r, "auto");
  r.gpu_memory = 2 * SEGMENT;
  rig_start(&r);
  static const uint64_t at[] = {A, B, C, D};
  for (int i = 0; i < 4; i++) alloc(&r, at[i], i == 2 ? c->bytes : SEGMENT, TRACE_MEMORY_DEVICE);
  job lingers = {A, 0, false, 100000}, reads = {C, 16 * 4096, false, 0};
  rig_kernel fills = declared(&lingers, "fills", (trace_use){A, SEGMENT}), second = fills, other = fills;
  fills.use_count = 2, fills.uses[1] = (trace_use){B, SEGMENT};
  rig_launch(&r, fills);
  rig_sync(&r);
  rig_launch(&r, declared(&lingers, "before", c->before));
  second.name = "reads", second.context = &reads, second.use_count = c->declares[1].bytes ? 2 : 1;
  memcpy(second.uses, c->declares, sizeof c->declares);
  other.warp = NULL, other.use_count = c->others.bytes != 0, other.uses[0] = c->others;
  rig_launch(&r, other);
  rig_launch(&r, second);
  rig_sync(&r);
  sim_counters counters = rig_finish(&r)->counters;
  assert_int_equal(counters.faults, 0);
  assert_int_equal(counters.h2d_bytes, (c->comes ? 3 : 2) * SEGMENT);
  assert_int_equal(counters.evicted_bytes, c->comes ? SEGMENT : 0);
  assert_int_equal(counters.remote_bytes, c->comes ? 0 : 16 * 128);
  rig_close(&r);
}

/* Memory is full: what a queued launch declares comes while another one runs if all of it fits and what
 * is absent is small; only what no other launch declares goes for it. */
static void test_ahead_where_memory_is_full(void **state) {
  const trace_use a = {A, SEGMENT}, b = {B, SEGMENT}, c = {C, SEGMENT + 4096}, d = {D, SEGMENT}, none = {0};
  const uint64_t small = SEGMENT, larger = SEGMENT + 4096;
  comes_ahead(&(ahead_case){a, {c}, none, small, true});
  comes_ahead(&(ahead_case){a, {c}, none, larger, false});
  comes_ahead(&(ahead_case){none, {c, b}, none, small, true}); /* as much as memory is; A goes */
  comes_ahead(&(ahead_case){a, {c}, b, small, false});         /* the others need the rest */
  comes_ahead(&(ahead_case){a, {c, d}, none, small, false});   /* twice as much is absent */
}

/* All that is declared is larger than memory by a page: it is reached where it is, although what is absent of it would
 * come in time. */
static void test_not_ahead_of_what_does_not_fit(void **state) {
  for (int over = 0; over < 2; over++) {
    rig r;
    rig_open(&r, "auto");
    r.gpu_memory = 2 * SEGMENT;
    rig_start(&r);
    alloc(&r, A, SEGMENT - (over ? 4096 : 0), TRACE_MEMORY_DEVICE);
    alloc(&r, B, SEGMENT + (over ? 4096 : 0), TRACE_MEMORY_DEVICE);
    alloc(&r, C, SEGMENT, TRACE_MEMORY_DEVICE);
    job lingers = {A, 0, false, 100000}, reads = {C, 16 * 4096, false, 0};
    rig_kernel fills = declared(&lingers, "fills", (trace_use){A, SEGMENT}),
               second = declared(&reads, "reads", (trace_use){C, SEGMENT + 4096});
    fills.use_count = 2, fills.uses[1] = (trace_use){B, SEGMENT};
    second.use_count = 2, second.uses[1] = (trace_use){B, SEGMENT};
    rig_launch(&r, fills);
    rig_sync(&r);
    rig_launch(&r, declared(&lingers, "before", (trace_use){0}));
    rig_launch(&r, second);
    rig_sync(&r);
    sim_counters c = rig_finish(&r)->counters;
    assert_int_equal(c.h2d_bytes, (over ? 2 : 3) * SEGMENT);
    assert_int_equal(c.remote_bytes, over ? 16 * 128 : 0);
    rig_close(&r);
  }
}

/* Waits for 40 us, in which the link carries four segments. */
static void late_reads(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  rig_issue(w, 10000);
  work(w, b, i, context);
}

/* While there is room for what a queued launch declares, the one that runs comes first: a segment is free, of which its
 * first half has just been put on the link. */
static void test_not_ahead_while_memory_has_room(void **state) {
  rig r;
  rig_open(&r, "auto");
  r.gpu_memory = 2 * SEGMENT;
  rig_start(&r);
  alloc(&r, A, 2 * SEGMENT, TRACE_MEMORY_DEVICE);
  alloc(&r, B, SEGMENT, TRACE_MEMORY_DEVICE);
  alloc(&r, C, SEGMENT / 2, TRACE_MEMORY_DEVICE);
  job nothing = {B, 0, false, 1}, reads = {A, SEGMENT, false, 0}, too = {C, 8 * 4096, false, 0};
  rig_kernel first = declared(&reads, "one", (trace_use){A, 2 * SEGMENT});
  first.warp = late_reads;
  rig_launch(&r, declared(&nothing, "fills", (trace_use){B, SEGMENT}));
  rig_sync(&r);
  rig_launch(&r, first);
  rig_launch(&r, declared(&too, "two", (trace_use){C, SEGMENT / 2}));
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.h2d_bytes, 2 * SEGMENT);
  assert_int_equal(c.evicted_bytes, 0);
  assert_int_equal(c.remote_bytes, 8 * 128); /* of C */
  rig_close(&r);
}

/* Reads two groups, one of them over the link. */
static void both(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  for (uint64_t line = i; line < 512; line += 2) {
    rig_load_wait(w, B + line * 128);
    rig_load_wait(w, C + line * 128);
  }
}

/* For what is reached that goes which was used longest ago, declared or not. */
static void test_what_is_reached_takes_the_coldest(void **state) {
  rig r;
  rig_open(&r, "auto");
  r.gpu_memory = 2 * FF_GROUP_BYTES;
  rig_start(&r);
  alloc(&r, A, FF_GROUP_BYTES, TRACE_MEMORY_DEVICE);
  alloc(&r, B, FF_GROUP_BYTES, TRACE_MEMORY_DEVICE);
  alloc(&r, C, FF_GROUP_BYTES, TRACE_MEMORY_DEVICE);
  job lingers = {A, 0, false, 100000};
  rig_kernel fills = declared(&lingers, "fills", (trace_use){A, FF_GROUP_BYTES}), reaches = fills;
  fills.use_count = 2, fills.uses[1] = (trace_use){B, FF_GROUP_BYTES};
  rig_launch(&r, fills);
  rig_sync(&r);
  reaches.warps = 2, reaches.warp = both, reaches.use_count = 2, reaches.uses[1] = (trace_use){C, FF_GROUP_BYTES};
  rig_launch(&r, reaches);
  const sim_result *result = rig_finish(&r);
  assert_int_equal(result->allocations[0].counters.evicted_bytes, FF_GROUP_BYTES);
  assert_int_equal(result->counters.evicted_bytes, FF_GROUP_BYTES);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_resident_before_the_start),
      cmocka_unit_test(test_fetched_while_another_runs),
      cmocka_unit_test(test_not_ahead_of_a_copy),
      cmocka_unit_test(test_back_when_wanted),
      cmocka_unit_test(test_undeclared),
      cmocka_unit_test(test_blank),
      cmocka_unit_test(test_waits_for_the_write_back),
      cmocka_unit_test(test_beyond_capacity),
      cmocka_unit_test(test_random_programs),
      cmocka_unit_test(test_ahead_where_memory_is_full),
      cmocka_unit_test(test_not_ahead_of_what_does_not_fit),
      cmocka_unit_test(test_not_ahead_while_memory_has_room),
      cmocka_unit_test(test_what_is_reached_takes_the_coldest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
