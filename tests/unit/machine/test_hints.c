/* SPDX-License-Identifier: Apache-2.0 */
/* Advice and prefetches of the program, and the host's loads and stores, under managers that move pages: which faults
 * there are, what crosses the link, which side has the page then. Each case runs under far-faults served one by one
 * (replay) and in batches (uvm, without its prefetcher), with pages of 4 KiB. A step is checked by counters; what a
 * step changed is in the difference to a run without it. */
#include "rig.h"

#include "policy/manager.h"

#define PAGE(n) (RIG_BASE + (uint64_t)(n)*4096)

typedef struct pages {
  uint64_t first, count;
  bool read, write;
} pages;

static void touch_pages(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const pages *p = context;
  for (uint64_t n = p->first; n < p->first + p->count; n++) {
    if (p->read) rig_load_wait(w, PAGE(n));
    if (p->write) rig_store(w, PAGE(n));
  }
}

static rig *r;
static pages kept[64];
static unsigned kept_count;

static void gpu(const char *how, uint64_t first, uint64_t count) { /* "r", "w", "rw" */
  kept[kept_count] = (pages){first, count, strchr(how, 'r'), strchr(how, 'w')};
  rig_launch(r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_pages, .context = &kept[kept_count++]});
  rig_sync(r);
}
static void cpu(const char *how, uint64_t first, uint64_t count) {
  rig_op(r, (trace_op){.kind = TRACE_OP_HOST_TOUCH, .touch = {PAGE(first), count * 4096, *how == 'w'}});
}
static void advise(trace_advice advice, int device, uint64_t first, uint64_t count) {
  rig_op(r, (trace_op){.kind = TRACE_OP_ADVISE, .hint = {PAGE(first), count * 4096, (int32_t)advice, device}});
}
static void prefetch(int device, uint64_t first, uint64_t count) {
  rig_op(r, (trace_op){.kind = TRACE_OP_PREFETCH, .hint = {PAGE(first), count * 4096, 0, device}});
}

typedef struct expected {
  uint64_t faults, in, host_faults, out, remote;
} expected; /* in, out: pages; remote: lines */

static void check(void (*steps)(void), expected e) {
  static const char *const names[] = {"replay", "uvm"};
  for (int m = 0; m < 2; m++) {
    rig made;
    r = &made;
    kept_count = 0;
    rig_open(r, names[m]);
    r->prefetch = "none";
    r->spec.fault_batch_us = 10;
    rig_start(r);
    rig_alloc(r, RIG_BASE, 16 * 4096, TRACE_MEMORY_MANAGED);
    cpu("w", 0, 16);
    steps();
    const sim_counters *c = &rig_finish(r)->counters;
    if (c->faults != e.faults || c->h2d_bytes != e.in * 4096 || c->host_faults != e.host_faults ||
        c->d2h_bytes != e.out * 4096 || c->remote_bytes != e.remote * 128)
      fail_msg("%s: faults %llu, in %g, host faults %llu, out %g, remote %g", names[m], (unsigned long long)c->faults,
               (double)c->h2d_bytes / 4096, (unsigned long long)c->host_faults, (double)c->d2h_bytes / 4096,
               (double)c->remote_bytes / 128);
    rig_close(r);
  }
}

/* ---- no advice ---- */

static void back_and_forth(void) {
  gpu("rw", 0, 4);
  cpu("r", 0, 2); /* a read takes it, too */
  gpu("r", 0, 4);
}
static void written_in_part(void) {
  gpu("rw", 0, 4);
  cpu("w", 1, 1); /* some of the page: the GPU's bytes come first */
  cpu("r", 1, 1);
  cpu("w", 9, 2); /* not on the GPU */
}
static void test_no_advice(void **state) {
  check(back_and_forth, (expected){.faults = 6, .in = 6, .host_faults = 2, .out = 2});
  check(written_in_part, (expected){.faults = 4, .in = 4, .host_faults = 1, .out = 1});
}

/* A clean page that the host touches leaves the GPU; it is copied only where it is not known to be clean. */
static void test_clean_pages(void **state) {
  for (int m = 0; m < 2; m++) {
    rig made;
    r = &made;
    kept_count = 0;
    rig_open(r, m ? "uvm" : "replay");
    r->prefetch = "none";
    rig_start(r);
    rig_alloc(r, RIG_BASE, 16 * 4096, TRACE_MEMORY_MANAGED);
    gpu("r", 0, 4);
    cpu("r", 0, 1);
    cpu("w", 1, 1);
    gpu("r", 0, 4);
    const sim_counters *c = &rig_finish(r)->counters;
    assert_int_equal(c->faults, 6);
    assert_int_equal(c->host_faults, 2);
    assert_int_equal(c->d2h_bytes, m ? 2 * 4096 : 0);
    rig_close(r);
  }
}

/* ---- read mostly ---- */

static void both_read(void) {
  advise(TRACE_ADVICE_SET_READ_MOSTLY, 0, 0, 8);
  gpu("r", 0, 8);
  cpu("r", 0, 8);
  gpu("r", 0, 8);
}
static void host_writes_a_duplicate(void) {
  both_read();
  cpu("w", 3, 1); /* the GPU's copy is no longer valid; nothing needs to be copied */
  gpu("r", 0, 8);
}
static void gpu_writes_duplicates(void) {
  both_read();
  gpu("rw", 0, 4); /* the right to write is a fault without a transfer */
  cpu("r", 0, 2);  /* the newest bytes are copied, and both have them again */
  gpu("r", 0, 4);
}
static void gpu_writes_first(void) {
  advise(TRACE_ADVICE_SET_READ_MOSTLY, 0, 0, 8);
  gpu("w", 0, 2); /* moves, as without advice */
  gpu("rw", 0, 2);
  cpu("w", 0, 1);
}
static void collapsed_at_the_cpu(void) {
  both_read();
  advise(TRACE_ADVICE_UNSET_READ_MOSTLY, 0, 0, 4);
  cpu("w", 0, 1);
  gpu("r", 0, 8);
}
static void collapsed_at_the_gpu(void) {
  both_read();
  advise(TRACE_ADVICE_SET_PREFERRED_LOCATION, 0, 0, 4);
  advise(TRACE_ADVICE_UNSET_READ_MOSTLY, 0, 0, 8);
  gpu("rw", 0, 4); /* there, alone */
  cpu("r", 0, 1);
}
static void test_read_mostly(void **state) {
  check(both_read, (expected){.faults = 8, .in = 8});
  check(host_writes_a_duplicate, (expected){.faults = 9, .in = 9, .host_faults = 1});
  check(gpu_writes_duplicates, (expected){.faults = 12, .in = 8, .host_faults = 2, .out = 2});
  check(gpu_writes_first, (expected){.faults = 2, .in = 2, .host_faults = 1, .out = 1});
  check(collapsed_at_the_cpu, (expected){.faults = 12, .in = 12});
  check(collapsed_at_the_gpu, (expected){.faults = 8, .in = 8, .host_faults = 1, .out = 1});
}

/* ---- preferred location ---- */

static void preferred_cpu(void) {
  advise(TRACE_ADVICE_SET_PREFERRED_LOCATION, -1, 0, 4);
  gpu("r", 0, 6); /* four are mapped, by a fault each; two move */
  cpu("w", 0, 4);
  gpu("rw", 0, 4);
}
static void preferred_cpu_on_the_gpu(void) {
  gpu("rw", 0, 2);
  advise(TRACE_ADVICE_SET_PREFERRED_LOCATION, -1, 0, 2);
  gpu("r", 0, 2); /* advice moves nothing */
  cpu("r", 0, 2); /* this does */
  gpu("r", 0, 2);
}
static void preferred_cpu_unset(void) {
  advise(TRACE_ADVICE_SET_PREFERRED_LOCATION, -1, 0, 2);
  gpu("r", 0, 2);
  advise(TRACE_ADVICE_UNSET_PREFERRED_LOCATION, -1, 0, 2);
  gpu("r", 0, 2);
}
static void preferred_cpu_prefetched(void) {
  advise(TRACE_ADVICE_SET_PREFERRED_LOCATION, -1, 0, 2);
  gpu("r", 0, 1);
  prefetch(0, 0, 2);
  gpu("r", 0, 2);
}
static void preferred_gpu(void) {
  advise(TRACE_ADVICE_SET_PREFERRED_LOCATION, 0, 0, 2);
  gpu("rw", 0, 2);
  cpu("r", 0, 2); /* the CPU cannot map GPU memory behind PCIe */
  gpu("r", 0, 2);
}
static void test_preferred_location(void **state) {
  check(preferred_cpu, (expected){.faults = 6, .in = 2, .remote = 4 + 2 * 4});
  check(preferred_cpu_on_the_gpu, (expected){.faults = 4, .in = 2, .host_faults = 2, .out = 2, .remote = 2});
  check(preferred_cpu_unset, (expected){.faults = 4, .in = 2, .remote = 2});
  check(preferred_cpu_prefetched, (expected){.faults = 1, .in = 2, .remote = 1});
  check(preferred_gpu, (expected){.faults = 4, .in = 4, .host_faults = 2, .out = 2});
}

/* ---- accessed by ---- */

static void accessed_by(void) {
  advise(TRACE_ADVICE_SET_ACCESSED_BY, 0, 0, 4);
  gpu("rw", 0, 4);
  cpu("w", 0, 4);
  gpu("r", 0, 4);
}
static void accessed_by_moves(void) {
  advise(TRACE_ADVICE_SET_ACCESSED_BY, 0, 0, 4);
  prefetch(0, 0, 4);
  gpu("rw", 0, 4); /* in GPU memory */
  cpu("r", 0, 2);  /* and back: mapped there at once */
  gpu("r", 0, 4);
}
static void accessed_by_unset(void) {
  advise(TRACE_ADVICE_SET_ACCESSED_BY, 0, 0, 4);
  gpu("r", 0, 4);
  advise(TRACE_ADVICE_UNSET_ACCESSED_BY, 0, 0, 2);
  gpu("r", 0, 4);
}
/* preferred: GPU overrides; preferred: CPU means the same without the fault */
static void accessed_by_and_preferred(void) {
  advise(TRACE_ADVICE_SET_ACCESSED_BY, 0, 0, 4);
  advise(TRACE_ADVICE_SET_PREFERRED_LOCATION, 0, 0, 2);
  advise(TRACE_ADVICE_SET_PREFERRED_LOCATION, -1, 2, 2);
  gpu("r", 0, 4);
}
static void accessed_by_the_cpu(void) {
  advise(TRACE_ADVICE_SET_ACCESSED_BY, -1, 0, 4);
  gpu("rw", 0, 4);
  cpu("r", 0, 1);
}
static void test_accessed_by(void **state) {
  check(accessed_by, (expected){.remote = 12});
  check(accessed_by_moves, (expected){.in = 4, .host_faults = 2, .out = 2, .remote = 2});
  check(accessed_by_unset, (expected){.faults = 2, .in = 2, .remote = 6});
  check(accessed_by_and_preferred, (expected){.faults = 2, .in = 2, .remote = 2});
  check(accessed_by_the_cpu, (expected){.faults = 4, .in = 4, .host_faults = 1, .out = 1});
}

/* ---- prefetches ---- */

static void there_and_back(void) {
  prefetch(0, 0, 8);
  gpu("rw", 0, 8);
  prefetch(-1, 0, 4); /* no fault of the host's */
  cpu("w", 0, 4);
  gpu("r", 0, 8);
}
static void read_mostly_copies(void) {
  advise(TRACE_ADVICE_SET_READ_MOSTLY, 0, 0, 8);
  prefetch(0, 0, 8);
  cpu("r", 0, 8);
  gpu("rw", 0, 2);
  prefetch(-1, 0, 8); /* two are newer on the GPU; all stay there */
  gpu("r", 0, 8);
}
static void test_prefetch(void **state) {
  check(there_and_back, (expected){.faults = 4, .in = 12, .out = 4});
  check(read_mostly_copies, (expected){.faults = 2, .in = 8, .out = 2});
}

/* Advice for all of an allocation counts for pages that were not touched yet; device memory takes none. */
static void test_whole_allocations(void **state) {
  rig made;
  r = &made;
  kept_count = 0;
  rig_open(r, "replay");
  rig_start(r);
  rig_alloc(r, RIG_BASE, UINT64_C(1) << 38, TRACE_MEMORY_MANAGED);
  rig_alloc(r, RIG_BASE + (UINT64_C(1) << 38), 4096, TRACE_MEMORY_DEVICE);
  advise(TRACE_ADVICE_SET_PREFERRED_LOCATION, -1, 0, UINT64_C(1) << 26);
  advise(TRACE_ADVICE_SET_ACCESSED_BY, 0, UINT64_C(1) << 26, 1);
  gpu("r", (UINT64_C(1) << 26) - 1, 2);
  assert_int_equal(rig_finish(r)->counters.faults, 2);
  assert_int_equal(r->result.counters.remote_bytes, 128);
  assert_true(r->sim->pager->chunk_count <= 2);
  rig_close(r);
}

/* The host's faults cost host_fault_us each, neighbours one per fault_page_bytes, and the transfer comes before. */
static void test_time_of_host_faults(void **state) {
  for (int pages = 1; pages <= 17; pages += 16) {
    rig made;
    ps times[2];
    for (int touched = 0; touched < 2; touched++) {
      r = &made;
      kept_count = 0;
      rig_open(r, "replay");
      r->spec.host_fault_us = 7;
      r->spec.fault_page_bytes = 65536;
      r->unit_bytes = 4096;
      rig_start(r);
      rig_alloc(r, RIG_BASE, 32 * 4096, TRACE_MEMORY_MANAGED);
      gpu("rw", 0, 32);
      if (touched) cpu("r", 0, (uint64_t)pages);
      times[touched] = rig_finish(r)->counters.host_wait_ps;
      rig_close(r);
    }
    assert_int_equal(times[1] - times[0], (uint64_t)pages * 256 * NS + (pages > 16 ? 2 : 1) * 7 * US);
  }
}

/* ---- what the driver's prefetcher adds to faults of the host ---- */

enum { BLOCK = 512, BLOCKS = 2, LEAF = 16 };

static void start_density(uint64_t bytes) {
  static rig made;
  r = &made;
  kept_count = 0;
  rig_open(r, "uvm");
  r->spec.host_fault_us = 7;
  r->spec.fault_page_bytes = 65536;
  rig_start(r);
  rig_alloc(r, RIG_BASE, bytes, TRACE_MEMORY_MANAGED);
}

/* Each leaf of 64 KiB is touched in order: 0, 1, 2, 4, 8 and 16 fault, and bring 1, 1, 2, 4, 8 and 16 of them. Each
 * fault is a transfer and host_fault_us. */
static void test_host_prefetch(void **state) {
  ps times[2];
  for (int touched = 0; touched < 2; touched++) {
    start_density(BLOCKS * BLOCK * 4096);
    gpu("w", 0, BLOCKS * BLOCK);
    if (touched) cpu("r", 0, BLOCKS * BLOCK);
    const sim_counters *c = &rig_finish(r)->counters;
    assert_int_equal(c->host_faults, touched * BLOCKS * 6);
    assert_int_equal(c->d2h_bytes, (uint64_t)touched * BLOCKS * BLOCK * 4096);
    times[touched] = c->host_wait_ps;
    rig_close(r);
  }
  assert_int_equal(times[1] - times[0], (uint64_t)BLOCKS * (BLOCK * 256 * NS + 6 * 7 * US));
}

/* The CPU has 28 leaves of 32, so its fault on one of the others brings all four. */
static void test_host_prefetch_of_the_rest(void **state) {
  start_density(BLOCK * 4096);
  cpu("w", 0, BLOCK);
  gpu("w", 8 * LEAF, 4 * LEAF);
  cpu("r", 9 * LEAF + 5, 1);
  cpu("r", 0, BLOCK);
  const sim_counters *c = &rig_finish(r)->counters;
  assert_int_equal(c->d2h_bytes, 4 * LEAF * 4096);
  assert_int_equal(c->host_faults, 1);
  rig_close(r);
}

/* What a fault of the CPU on the page brings, by the words of the rule: of all aligned ranges of 2^n leaves around it
 * the largest of which the CPU has more than 51 %, the leaf itself counted. */
static void naive_host_fault(bool *host, uint32_t page) {
  uint32_t leaf = page / LEAF, best = 1;
  for (uint32_t size = 1; size <= BLOCK / LEAF; size *= 2) {
    uint32_t first = leaf / size * size * LEAF, count = 0;
    for (uint32_t i = first; i < first + size * LEAF; i++) count += host[i] || i / LEAF == leaf;
    if (count * 100 > size * LEAF * 51) best = size;
  }
  for (uint32_t i = leaf / best * best * LEAF; i < (leaf / best + 1) * best * LEAF; i++) host[i] = true;
}

/* The CPU touches random pages of a block that the GPU has written: as the naive model. */
static void test_random_host_prefetch(void **state) {
  for (uint64_t seed = 1; seed <= 8; seed++) {
    bool host[BLOCK] = {false};
    uint64_t faults = 0, bytes = 0, random = seed;
    start_density(BLOCK * 4096);
    gpu("w", 0, BLOCK);
    for (int i = 0; i < 40; i++) {
      random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
      uint32_t first = (uint32_t)(random >> 40) % BLOCK, count = 1 + (uint32_t)(random >> 33) % 24;
      if (count > BLOCK - first) count = BLOCK - first;
      cpu(random >> 63 ? "r" : "w", first, count);
      for (uint32_t page = first; page < first + count; page++) {
        if (!host[page]) faults++;
        if (!host[page]) naive_host_fault(host, page);
      }
    }
    for (uint32_t i = 0; i < BLOCK; i++) bytes += host[i] * UINT64_C(4096);
    const sim_counters *c = &rig_finish(r)->counters;
    assert_int_equal(c->host_faults, faults);
    assert_int_equal(c->d2h_bytes, bytes);
    rig_close(r);
  }
}

/* ---- anything at all ---- */

static uint64_t random_state;
static uint64_t random_below(uint64_t n) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (random_state >> 11) % n;
}

/* `streams`: kernels of two streams run while the host and the others go on. */
static sim_counters random_program(const manager *m, uint64_t seed, uint64_t memory, bool streams) {
  static const char *const hows[] = {"r", "w", "rw"};
  rig made;
  r = &made;
  kept_count = 0;
  random_state = seed * 77 + 1;
  rig_open(r, m->name);
  r->gpu_memory = memory;
  r->spec.fault_batch_us = 1;
  r->spec.first_touch_moves = seed % 2;
  rig_start(r);
  for (int a = 0; a < 4; a++)
    rig_alloc(r, PAGE(a * 200), 150 * 4096, a == 3 ? TRACE_MEMORY_DEVICE : TRACE_MEMORY_MANAGED);
  for (uint32_t s = 1; s <= 2 && streams; s++)
    rig_op(r, (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = s, .stream_create = {TRACE_STREAM_NON_BLOCKING}});
  for (int step = 0; step < 200; step++) {
    uint64_t first = random_below(4) * 200 + random_below(130), count = 1 + random_below(20);
    bool managed = first < 600;
    switch (random_below(4)) {
    case 0:
      if (kept_count == 64) break;
      if (!streams) {
        gpu(hows[random_below(3)], first, count);
        break;
      }
      kept[kept_count] = (pages){first, count, true, random_below(2)};
      rig_launch(r, (rig_kernel){.blocks = 4,
                                 .warps = 2,
                                 .warp = touch_pages,
                                 .context = &kept[kept_count++],
                                 .stream = 1 + (uint32_t)random_below(2)});
      break;
    case 1:
      if (managed) cpu(random_below(2) ? "w" : "r", first, count);
      break;
    case 2:
      advise((trace_advice)(1 + random_below(6)), random_below(3) ? 0 : -1, first, random_below(2) ? 600 : count);
      break;
    case 3: prefetch(random_below(2) ? 0 : -1, first, count); break;
    }
  }
  rig_finish(r);
  pager_check_all(r->sim->pager);
  sim_counters c = r->result.counters;
  rig_close(r);
  return c;
}

/* Under every manager: the oracle finds the newest bytes everywhere (FARFAULT_CHECK), and the same twice. */
static void test_random_programs(void **state) {
  for (const manager *const *m = managers; *m; m++)
    for (uint64_t seed = 0; seed < 6; seed++) {
      uint64_t memory = seed < 3 || (*m)->placement != MANAGER_PAGED ? 64 << 20
                        : (*m)->whole_blocks || (*m)->ranges         ? 4 << 20
                                                                     : 40 * 4096;
      for (int streams = 0; streams < 2; streams++) {
        sim_counters a = random_program(*m, seed, memory, streams), b = random_program(*m, seed, memory, streams);
        assert_memory_equal(&a, &b, sizeof a);
      }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_advice),
      cmocka_unit_test(test_clean_pages),
      cmocka_unit_test(test_read_mostly),
      cmocka_unit_test(test_preferred_location),
      cmocka_unit_test(test_accessed_by),
      cmocka_unit_test(test_prefetch),
      cmocka_unit_test(test_whole_allocations),
      cmocka_unit_test(test_time_of_host_faults),
      cmocka_unit_test(test_host_prefetch),
      cmocka_unit_test(test_host_prefetch_of_the_rest),
      cmocka_unit_test(test_random_host_prefetch),
      cmocka_unit_test(test_random_programs),
  };
  return cmocka_run_group_tests_name("hints", tests, NULL, NULL);
}
