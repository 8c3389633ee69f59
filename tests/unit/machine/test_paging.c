/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetch, eviction and batches with their times: what the pager decides, the machine carries. 16 GB/s: a page takes
 * 256 ns. */
#include "rig.h"

#include "machine/spec/choice.h"

#define PAGE(n) (RIG_BASE + (uint64_t)(n)*4096)
#define PAGE_PS (256 * NS)

typedef struct pages {
  uint64_t first, count, stride;
  bool write;
} pages;

/* One warp touches pages one after the other. */
static void touch_pages(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const pages *p = context;
  for (uint64_t n = 0; n < p->count; n++) {
    uint64_t address = PAGE(p->first + n * (p->stride ? p->stride : 1));
    rig_load_wait(w, address);
    if (p->write) rig_store(w, address);
  }
}

static void launch(rig *r, pages p) {
  static pages kept[16];
  static uint32_t at;
  kept[at % 16] = p;
  rig_launch(r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_pages, .context = &kept[at++ % 16]});
}

static rig begin(const char *manager, uint64_t memory) {
  rig r;
  rig_open(&r, manager);
  r.gpu_memory = memory;
  return r;
}

/* A far-fault that has to evict: clean pages go for nothing, dirty ones first go over the link, or at the same time. */
static void test_write_back(void **state) {
  ps kernel_ps[3];
  for (int how = 0; how < 3; how++) { /* clean, dirty and serial, dirty and overlapped */
    rig r = begin("replay", 64 << 10);
    r.spec.fault_us = 0;
    r.write_back_overlaps = how == 2;
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 32 * 4096, TRACE_MEMORY_DEVICE);
    launch(&r, (pages){0, 16, 1, how > 0});
    launch(&r, (pages){16, 16, 1, false});
    const sim_counters *c = &rig_finish(&r)->counters;
    assert_int_equal(c->faults, 32);
    assert_int_equal(c->evicted_bytes, 16 * 4096);
    assert_int_equal(c->written_back_bytes, how ? 16 * 4096 : 0);
    assert_int_equal(c->d2h_bytes, how ? 16 * 4096 : 0);
    assert_int_equal(c->refaults, 0);
    assert_int_equal(c->resident_peak_bytes, 64 << 10);
    kernel_ps[how] = r.result.counters.kernel_ps;
    rig_close(&r);
  }
  assert_true(kernel_ps[1] >= kernel_ps[2] + 15 * PAGE_PS && kernel_ps[1] <= kernel_ps[2] + 17 * PAGE_PS);
  assert_true(kernel_ps[2] - kernel_ps[0] < 2 * US); /* the stores alone */
}

/* Evicted ahead, what is dirty goes back while the page before it comes: the serial way is as fast as the overlapped
 * one. */
static void test_write_back_ahead(void **state) {
  ps kernel_ps[3];
  for (int how = 0; how < 3; how++) { /* serial, overlapped, serial with a page kept free */
    rig r = begin("replay", 64 << 10);
    r.spec.fault_us = 0;
    r.write_back_overlaps = how == 1;
    if (how == 2) r.watermarks = (watermarks){.low = 4096, .high = 4096};
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 32 * 4096, TRACE_MEMORY_DEVICE);
    launch(&r, (pages){0, 16, 1, true});
    launch(&r, (pages){16, 16, 1, false});
    const sim_counters *c = &rig_finish(&r)->counters;
    assert_int_equal(c->faults, 32);
    assert_int_equal(c->written_back_bytes, 16 * 4096);
    assert_int_equal(c->evicted_bytes, (how == 2 ? 17 : 16) * 4096);
    kernel_ps[how] = r.result.counters.kernel_ps;
    rig_close(&r);
  }
  assert_true(kernel_ps[0] >= kernel_ps[1] + 15 * PAGE_PS);
  assert_true(kernel_ps[2] <= kernel_ps[1] + PAGE_PS);
}

/* Stores to 16 pages, then a load of each again and again for longer than it takes until they are written back
 * ahead. */
static void store_and_linger(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  touch_pages(w, b, i, &(pages){.count = 16, .write = true});
  for (uint32_t n = 0; n < 40; n++) {
    rig_issue(w, 2000);
    rig_load_wait(w, PAGE(20));
  }
  if (context) rig_store(w, PAGE(3)); /* dirty again */
}

/* Pages that the GPU has stopped writing to are copied to the host while the link there idles, and stay: the host's
 * copy of them moves nothing. One that is written to afterwards is dirty again. */
static void test_cleaning(void **state) {
  static const bool yes = true;
  /* 0: not, 1: a page is written to again, 2: an evictor that does not clean */
  for (int again = 0; again < 3; again++) {
    rig r = begin("replay", 1 << 20);
    r.evict = again == 2 ? "lru:64K" : "auto";
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 32 * 4096, TRACE_MEMORY_DEVICE);
    rig_launch(&r,
               (rig_kernel){.blocks = 1, .warps = 1, .warp = store_and_linger, .context = again == 1 ? &yes : NULL});
    rig_sync(&r);
    rig_d2h(&r, RIG_BASE, 16 * 4096);
    const sim_counters *c = &rig_finish(&r)->counters;
    assert_int_equal(c->d2h_bytes, (again == 1 ? 17 : 16) * 4096);
    assert_int_equal(c->evicted_bytes, 0);
    assert_int_equal(c->host_faults, again == 2 ? 16 : again);
    rig_close(&r);
  }
}

/* Under auto nothing faults. Of 16 pages that the host has written and 16 that were never written, one warp loads the
 * first and stores to the others, while the link is held up by nothing else: no byte of the others comes, and the host
 * gets all of them. In half the memory what does not fit is read and written where it is, as long as it costs less than
 * a group. */
static void copy_pages(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  for (uint32_t page = 0; page < 16; page++) {
    rig_load_wait(w, PAGE(page));
    rig_store(w, PAGE(16 + page));
  }
}

static void test_reached_over_the_link(void **state) {
  for (int scarce = 0; scarce < 2; scarce++) {
    rig r = begin("auto", scarce ? 64 << 10 : 1 << 20);
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 16 * 4096, TRACE_MEMORY_DEVICE);
    rig_alloc(&r, PAGE(16), 16 * 4096, TRACE_MEMORY_DEVICE);
    rig_h2d(&r, RIG_BASE, 16 * 4096);
    rig_launch(&r, (rig_kernel){.blocks = 1,
                                .warps = 1,
                                .warp = copy_pages,
                                .use_count = 2,
                                .uses = {{RIG_BASE, 16 * 4096}, {PAGE(16), 16 * 4096}}});
    rig_sync(&r);
    rig_d2h(&r, PAGE(16), 16 * 4096);
    const sim_counters *c = &rig_finish(&r)->counters;
    assert_int_equal(c->faults, 0);
    assert_int_equal(c->h2d_bytes, 16 * 4096);
    if (scarce) assert_int_equal(c->remote_bytes, 16 * 128); /* the stores */
    assert_int_equal(c->d2h_bytes, scarce ? 0 : 16 * 4096);
    assert_int_equal(c->evicted_bytes, 0);
    rig_close(&r);
  }
}

/* Two warps read a group over the link, the last eighth of it when it is to come already; then one stores, at once or
 * while the group moves, and goes on. */
typedef struct late_store {
  uint32_t after, linger;
} late_store; /* instructions, 4 ns each */

static void read_and_store(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const late_store *store = context;
  for (uint32_t line = i; line < 512; line += 2) rig_load_wait(w, PAGE(16) + line * 128);
  if (i) return;
  rig_issue(w, store->after);
  rig_store(w, PAGE(20));
  rig_issue(w, store->linger);
  rig_load_wait(w, PAGE(20));
}

/* A group that is to come is mapped to the host until its bytes move: 20 us of service, the last 4.1 us of them the
 * transfer. All that one warp reads meanwhile it reads over the link. What it stores before, the group brings along;
 * what it stores later waits until it has landed, and is dirty then. */
static void test_reached_until_it_moves(void **state) {
  static const late_store stores[] = {{1, 10000}, {3300, 1}};
  for (int late = 0; late < 2; late++) {
    rig r = begin("auto", 64 << 10);
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 16 * 4096, TRACE_MEMORY_DEVICE);
    rig_alloc(&r, PAGE(16), 16 * 4096, TRACE_MEMORY_DEVICE);
    rig_h2d(&r, RIG_BASE, 32 * 4096);
    launch(&r, (pages){.count = 16});
    rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 2, .warp = read_and_store, .context = &stores[late]});
    rig_sync(&r);
    rig_d2h(&r, PAGE(16), 16 * 4096);
    const sim_counters *c = &rig_finish(&r)->counters;
    assert_int_equal(c->evicted_bytes, 16 * 4096);
    assert_int_equal(c->h2d_bytes, 32 * 4096);
    assert_int_equal(c->remote_bytes, 512 * 128 + (late ? 0 : 128));
    assert_int_equal(c->d2h_bytes, late ? 4096 : 0);
    rig_close(&r);
  }
}

/* The same kernel, ending while the group is to come: until its bytes move the host reads and writes its own pages
 * without waiting, as it does other pages. */
static void test_host_does_not_wait_for_what_is_to_come(void **state) {
  static const late_store store = {1, 1};
  ps host_ps[2];
  for (int flying = 0; flying < 2; flying++) {
    rig r = begin("auto", 64 << 10);
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 16 * 4096, TRACE_MEMORY_DEVICE);
    rig_alloc(&r, PAGE(16), 16 * 4096, TRACE_MEMORY_DEVICE);
    rig_h2d(&r, RIG_BASE, 32 * 4096);
    launch(&r, (pages){.count = 16});
    rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 2, .warp = read_and_store, .context = &store});
    rig_d2h(&r, PAGE(flying ? 16 : 0), 4096);
    rig_h2d(&r, PAGE(flying ? 16 : 0), 8 * 4096);
    const sim_counters *c = &rig_finish(&r)->counters;
    assert_int_equal(c->prefetched_bytes, 32 * 4096);
    assert_int_equal(c->d2h_bytes, 0);
    host_ps[flying] = r.result.counters.host_wait_ps;
    rig_close(&r);
  }
  assert_int_equal(host_ps[0], host_ps[1]);
}

static void host_touch(rig *r, uint64_t page, uint64_t count, bool write) {
  rig_op(r, (trace_op){.kind = TRACE_OP_HOST_TOUCH,
                       .touch = {.address = PAGE(page), .bytes = count * 4096, .write = write}});
}

/* Under auto, of managed memory that was not written nothing comes for a launch that does not declare it: the
 * host writes it without a fault. What was written back ahead the host takes back with what was not, by one fault. */
static void test_host_takes_back_at_once(void **state) {
  static const bool yes = true;
  rig r = begin("auto", 1 << 20);
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 32 * 4096, TRACE_MEMORY_MANAGED);
  host_touch(&r, 0, 0, false); /* touches are recorded */
  rig_launch(&r, (rig_kernel){.blocks = 1,
                              .warps = 1,
                              .warp = store_and_linger,
                              .use_count = 1,
                              .uses = {{RIG_BASE, 32 * 4096}},
                              .context = &yes});
  rig_sync(&r);
  host_touch(&r, 0, 1, false);
  host_touch(&r, 4, 12, false);
  rig_alloc(&r, PAGE(64), 32 * 4096, TRACE_MEMORY_MANAGED);
  launch(&r, (pages){.first = 20, .count = 1});
  rig_sync(&r);
  host_touch(&r, 64, 32, true);
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->d2h_bytes, 17 * 4096); /* 16 ahead, one of them once more */
  assert_int_equal(c->host_faults, 1);
  rig_close(&r);
}

/* Writes the first page only. */
static void one_store(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  touch_pages(w, b, i, &(pages){.count = 1, .write = true});
  touch_pages(w, b, i, &(pages){.first = 1, .count = 16});
}

/* A page that is being copied ahead can be dropped, but its memory is not free before the copy has ended; nor has the
 * host the bytes. */
static void test_cleaning_takes_its_time(void **state) {
  ps kernel_ps[2];
  for (int slow = 0; slow < 2; slow++) {
    rig r = begin("replay", 64 << 10);
    r.evict = FF_BUILD_DIR "/tests/plugins/plugin_cleaner.so";
    r.spec.fault_us = 0;
    r.spec.link_d2h_gbs = slow ? 0.01 : 16; /* a page takes 410 us */
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 32 * 4096, TRACE_MEMORY_DEVICE);
    rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = one_store});
    const sim_counters *c = &rig_finish(&r)->counters;
    assert_int_equal(c->d2h_bytes, 4096);
    assert_int_equal(c->written_back_bytes, 0); /* all was clean when it went */
    assert_int_equal(c->evicted_bytes, 16 * 4096);
    kernel_ps[slow] = c->kernel_ps;
    rig_close(&r);
  }
  assert_true(kernel_ps[0] < 100 * US && kernel_ps[1] > 409 * US);

  rig r = begin("replay", 1 << 20); /* the kernel has ended long before its only page is the host's */
  r.evict = FF_BUILD_DIR "/tests/plugins/plugin_cleaner.so";
  r.spec.fault_us = 0;
  r.spec.link_d2h_gbs = 0.01;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 32 * 4096, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = one_store});
  rig_d2h(&r, RIG_BASE, 4096);
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->d2h_bytes, 4096);
  assert_true(c->time_ps > 409 * US && c->time_ps < 700 * US);
  rig_close(&r);
}

/* LRU keeps what is used again, FIFO does not. */
static void test_what_is_evicted(void **state) {
  const char *evictors[] = {"lru", "fifo", "lrm:4K"};
  uint64_t expected[] = {0, 1, 1}; /* refaults on page 0 */
  for (int e = 0; e < 3; e++) {
    rig r = begin("replay", 64 << 10);
    r.evict = evictors[e];
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 32 * 4096, TRACE_MEMORY_DEVICE);
    launch(&r, (pages){0, 16, 1, false});
    launch(&r, (pages){0, 1, 1, false});
    launch(&r, (pages){16, 1, 1, false}); /* evicts page 1, or page 0 */
    launch(&r, (pages){0, 1, 1, false});
    const sim_counters *c = &rig_finish(&r)->counters;
    assert_int_equal(c->refaults, expected[e]);
    assert_int_equal(c->evicted_bytes, (1 + expected[e]) * 4096);
    rig_close(&r);
  }
}

/* While a lone warp waits for its faults, the sequential prefetcher fills the link. */
static void test_idle_prefetch_fills_the_link(void **state) {
  rig r = begin("sequential", 0);
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 64 << 20, TRACE_MEMORY_DEVICE);
  launch(&r, (pages){16284, 100, 1, false}); /* the last pages: each a fault of 20 us */
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->faults, 100);
  double carried = (double)(c->faults + c->prefetched_bytes / 4096) * (double)PAGE_PS; /* of 4.2 ms for all */
  assert_true(carried > 0.99 * (double)c->kernel_ps && carried < 1.01 * (double)c->kernel_ps);
  rig_close(&r);
}

/* The driver's table, through the pager: one fault at a time, in order of address, moves 64 64 128 256 512 1024 KB. */
static void test_density_through_the_pager(void **state) {
  rig r = begin("uvm", 0);
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 4 << 20, TRACE_MEMORY_DEVICE);
  launch(&r, (pages){0, 512, 1, false});
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->faults, 6);
  assert_int_equal(c->h2d_bytes, 2 << 20);
  assert_int_equal(c->prefetched_bytes, (512 - 6) * 4096);
  assert_int_equal(r.result.kernels[0].counters.h2d_bytes, 2 << 20); /* the kernel's own doing */
  rig_close(&r);
}

/* A batch: from the first fault to its begin, then per block its service, while the copies of those before it are made;
 * all waiting warps go on at its end. */
static void test_batch_time(void **state) {
  ps kernel_ps[3];
  for (int blocks = 0; blocks < 3; blocks++) { /* none, one, two blocks of 2 MiB with one fault each */
    rig r = begin("uvm", 0);
    r.prefetch = "none";
    r.spec.fault_batch_us = 10;
    r.spec.fault_block_us = 5;
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 8 << 20, TRACE_MEMORY_DEVICE);
    static const pages each[] = {{0, 1, 1, false}, {512, 1, 1, false}};
    for (uint32_t b = 1; b <= 2; b++) rig_op(&r, (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = b});
    for (int b = 0; b < blocks; b++) {
      rig_launch(&r, (rig_kernel){
                         .blocks = 1, .warps = 1, .stream = (uint32_t)b + 1, .warp = touch_pages, .context = &each[b]});
    }
    kernel_ps[blocks] = rig_finish(&r)->counters.kernel_ps;
    assert_int_equal(r.result.counters.faults, blocks);
    rig_close(&r);
  }
  ps one = 15 * US + PAGE_PS, two = 20 * US + PAGE_PS;
  assert_true(kernel_ps[1] >= one && kernel_ps[1] < one + 3 * US); /* and two walks and an access */
  assert_true(kernel_ps[2] >= two && kernel_ps[2] < two + 3 * US);
}

/* One access of 32 pages that lie together. */
static void run_of_pages(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const pages *p = context;
  uint64_t *at = trace_put_access(w, p->write ? TRACE_STORE : TRACE_LOAD, 2, 0, 0, ~0u, 32);
  for (uint64_t n = 0; n < 32; n++) at[n] = trace_line(PAGE(p->first + n), 1, 1);
  if (!p->write) trace_put_wait(w, 0);
}

/* Two blocks of a batch that each take the place of another one: the copy in of the first and the write-back for the
 * second go at the same time, but neither copy in before its own memory is free. Or all goes one after the other. */
static void test_batch_evicts_meanwhile(void **state) {
  static const pages each[] = {{0, 32, 1, true}, {512, 32, 1, true}, {1024, 32, 1, false}, {1536, 32, 1, false}};
  static const char *const names[] = {"first", "second", "third", "fourth"};
  for (uint32_t wait = 0; wait < 2; wait++) {
    rig r = begin("uvm", 4 << 20);
    r.prefetch = "none";
    r.spec.fault_batch_us = 10;
    r.spec.fault_block_us = 5;
    r.spec.fault_copies_wait = wait;
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 8 << 20, TRACE_MEMORY_DEVICE);
    for (uint32_t b = 1; b <= 2; b++) rig_op(&r, (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = b});
    for (uint32_t b = 0; b < 4; b++) {
      if (b == 2) rig_op(&r, (trace_op){.kind = TRACE_OP_SYNC_DEVICE});
      rig_launch(&r, (rig_kernel){.blocks = 1,
                                  .warps = 1,
                                  .stream = b % 2 + 1,
                                  .warp = run_of_pages,
                                  .context = &each[b],
                                  .name = names[b]});
    }
    const sim_result *result = rig_finish(&r);
    assert_int_equal(result->counters.fault_batches, 2);
    assert_int_equal(result->counters.written_back_bytes, 64 * 4096);
    ps time = 0;
    for (size_t k = 0; k < result->kernel_count; k++)
      if (!strcmp(result->kernels[k].name, "fourth")) time = result->kernels[k].counters.time_ps;
    ps expected = wait ? 20 * US + 4 * 32 * PAGE_PS : 15 * US + 3 * 32 * PAGE_PS; /* out; out and in; in */
    assert_true(time >= expected && time < expected + 2 * US);
    rig_close(&r);
  }
}

/* Of 64 warps that wait for a block each, batches of one far-fault wake one after the other: the others are not asked
 * again. */
static void own_block(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  rig_load_wait(w, PAGE(512 * ((uint64_t)b * 8 + i)));
}

static void test_replay_asks_only_for_what_has_come(void **state) {
  rig r = begin("uvm", 0);
  r.prefetch = "none";
  r.spec.fault_batch = 1;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 128 << 20, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = 8, .warps = 8, .warp = own_block});
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->faults, 64);
  assert_int_equal(c->fault_batches, 64);
  assert_int_equal(c->tlb_lookups, 128); /* when it faults, and when its page has come */
  rig_close(&r);
}

/* What a batch left in the buffer is taken before what a warp raises that goes on: of three kernels the one that needs
 * two blocks is over last. */
static void test_replay_keeps_the_order(void **state) {
  static const pages each[] = {{0, 2, 512, false}, {1024, 1, 1, false}, {1536, 1, 1, false}};
  static const char *const names[] = {"two blocks", "first of one", "last of one"};
  rig r = begin("uvm", 0);
  r.prefetch = "none";
  r.spec.fault_batch = 1;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 8 << 20, TRACE_MEMORY_DEVICE);
  for (uint32_t b = 1; b <= 3; b++) rig_op(&r, (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = b});
  for (uint32_t b = 0; b < 3; b++)
    rig_launch(
        &r, (rig_kernel){
                .blocks = 1, .warps = 1, .stream = b + 1, .warp = touch_pages, .context = &each[b], .name = names[b]});
  const sim_result *result = rig_finish(&r);
  assert_int_equal(result->counters.fault_batches, 4);
  assert_int_equal(result->kernel_count, 3);
  ps over[3];
  for (int k = 0; k < 3; k++)
    for (int b = 0; b < 3; b++)
      if (!strcmp(result->kernels[k].name, names[b])) over[b] = result->kernels[k].counters.time_ps;
  assert_true(over[1] < over[2] && over[2] < over[0]);
  rig_close(&r);
}

/* One access of 32 blocks, of which memory holds two: it takes each page when it has come, so each comes once. */
static void many_blocks(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  uint64_t *at = trace_put_access(w, TRACE_LOAD, 2, 0, 0, ~0u, 32);
  for (uint64_t n = 0; n < 32; n++) at[n] = trace_line(PAGE(512 * n), 1, 1);
  trace_put_wait(w, 0);
}

static void test_replay_takes_each_page_that_has_come(void **state) {
  rig r = begin("uvm", 4 << 20);
  r.prefetch = "none";
  r.spec.fault_batch = 1;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 64 << 20, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = many_blocks});
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->faults, 32);
  assert_int_equal(c->refaults, 0);
  assert_int_equal(c->lines, 32);
  rig_close(&r);
}

/* One page costs a block of GPU memory under uvm; clean pages are copied back. */
static void test_whole_blocks(void **state) {
  rig r = begin("uvm", 4 << 20);
  r.prefetch = "none";
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 16 << 20, TRACE_MEMORY_DEVICE);
  launch(&r, (pages){0, 4, 512, false}); /* a page in each of four blocks: two have to go */
  launch(&r, (pages){0, 1, 512, false});
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->faults, 5);
  assert_int_equal(c->evicted_bytes, 3 * 4096);
  assert_int_equal(c->written_back_bytes, 3 * 4096);
  assert_int_equal(c->refaults, 1);
  assert_int_equal(c->resident_peak_bytes, 4 << 20);
  rig_close(&r);
}

/* ---- partial pages ---- */

/* units of 1 KiB, touched one after the other */
typedef struct steps {
  uint32_t count;
  uint32_t unit[24];
  bool write;
} steps;

#define TOUCH(n, ...)                   \
  &(steps) {                            \
    .count = n, .unit = { __VA_ARGS__ } \
  }

static void touch_units(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const steps *s = context;
  for (uint32_t n = 0; n < s->count; n++) {
    rig_load_wait(w, RIG_BASE + s->unit[n] * 1024ull);
    if (s->write) rig_store(w, RIG_BASE + s->unit[n] * 1024ull);
  }
}

/* Bytes moved in, and the ranges left, after these touches. `ranges`, `gap`: chosen; 0, NULL: the manager's. */
static void partial_with(const char *manager, uint32_t ranges, const char *gap, const steps *s, uint64_t faults,
                         uint64_t units, uint32_t page_ranges) {
  rig r = begin(manager, 0);
  r.ranges = ranges;
  r.gap = gap != NULL;
  if (gap) assert_int_equal(sim_gap_read(gap, &r.gap_bytes, NULL), FF_OK);
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 4 << 20, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_units, .context = s});
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->faults, faults);
  assert_int_equal(c->h2d_bytes, units * 1024);
  assert_int_equal(pager_page_ranges(r.sim->pager, RIG_BASE), page_ranges);
  rig_close(&r);
}

static void partial(const char *manager, const steps *s, uint64_t faults, uint64_t units, uint32_t page_ranges) {
  partial_with(manager, 0, NULL, s, faults, units, page_ranges);
}

/* The number of ranges and the gap that closes are values. */
static void test_ranges_and_gap(void **state) {
  const steps *apart = TOUCH(9, 0, 10, 21, 33, 46, 60, 75, 91, 200);
  partial_with("partial-multi", UINT32_MAX, NULL, apart, 9, 9, 9);
  partial_with("partial-multi", 9, NULL, apart, 9, 9, 9);
  partial_with("partial-multi", 2, NULL, TOUCH(3, 0, 10, 200), 3, 3 + 9, 2);
  partial_with("partial-multi", 1, NULL, TOUCH(3, 0, 10, 200), 3, 201, 1); /* as partial-single */
  partial_with("partial-single", 2, NULL, TOUCH(3, 0, 10, 200), 3, 3 + 9, 2);
  partial_with("partial-multi", 0, "none", TOUCH(2, 0, 2), 2, 2, 2);
  partial_with("partial-multi", 0, "2K", TOUCH(2, 0, 2), 2, 3, 1);
  partial_with("partial-multi", 0, "2K", TOUCH(2, 0, 3), 2, 2, 2);
  partial_with("partial-multi", 0, "16K", TOUCH(2, 0, 16), 2, 17, 1);
}

/* A page of 2 MiB moves whole, with all that lies in it: two allocations by one far-fault, if the prefetcher is
 * `window`. */
static void test_whole_window(void **state) {
  for (int window = 0; window < 2; window++) {
    rig r = begin("replay", 0);
    r.unit_bytes = 2 << 20;
    if (window) r.prefetch = "window";
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 1 << 20, TRACE_MEMORY_DEVICE);
    rig_alloc(&r, RIG_BASE + (1 << 20), 1 << 20, TRACE_MEMORY_DEVICE);
    rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_units, .context = TOUCH(2, 0, 1500)});
    const sim_counters *c = &rig_finish(&r)->counters;
    assert_int_equal(c->faults, window ? 1 : 2);
    assert_int_equal(c->h2d_bytes, 2 << 20);
    rig_close(&r);
  }
}

static void test_hull_rule(void **state) {
  partial("partial-single", TOUCH(1, 7), 1, 1, 1);
  partial("partial-single", TOUCH(2, 7, 7), 1, 1, 1);
  partial("partial-single", TOUCH(2, 0, 10), 2, 11, 1);
  partial("partial-single", TOUCH(3, 10, 0, 5), 2, 11, 1);  /* 5 lies within: a hit */
  partial("partial-single", TOUCH(3, 10, 20, 0), 3, 21, 1); /* widened on either side */
  partial("partial-single", TOUCH(2, 0, 2047), 2, 2048, 1); /* the whole page */
  partial("partial-single", TOUCH(2, 2047, 2048), 2, 2, 1); /* another page */
}

static void test_gap_rule(void **state) {
  partial("partial-multi", TOUCH(2, 0, 10), 2, 2, 2);
  partial("partial-multi", TOUCH(2, 0, 4), 2, 5, 1);    /* three units lie between: under 4 KiB */
  partial("partial-multi", TOUCH(2, 0, 5), 2, 2, 2);    /* four: not smaller than the threshold */
  partial("partial-multi", TOUCH(3, 0, 5, 3), 3, 6, 1); /* closes both gaps */
  partial("partial-multi", TOUCH(2, 5, 4), 2, 2, 1);    /* neighbours are one range */
  partial("partial-multi", TOUCH(8, 0, 10, 21, 33, 46, 60, 75, 91), 8, 8, 8);
  /* the smallest gap, 1 to 9, goes */
  partial("partial-multi", TOUCH(9, 0, 10, 21, 33, 46, 60, 75, 91, 200), 9, 9 + 9, 8);
  partial("partial-multi", TOUCH(9, 0, 20, 40, 60, 80, 100, 120, 140, 150), 9, 9 + 9, 8); /* here the newest */
  partial("partial-multi", TOUCH(9, 0, 10, 20, 30, 40, 50, 60, 70, 80), 9, 9 + 9, 8);     /* equal ones: the lowest */
}

/* valid-in-CPU -> partial-valid -> a request of the CPU takes the whole page back; only what was written on the GPU is
 * copied. */
static void test_cpu_takes_the_page_back(void **state) {
  rig r = begin("partial-multi", 0);
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 4 << 20, TRACE_MEMORY_DEVICE);
  static const steps reads = {3, {0, 100, 2048}, false}, writes = {1, {200}, true}, again = {2, {0, 200}, false},
                     other = {1, {2048}, false};
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_units, .context = &reads});
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_units, .context = &writes});
  rig_d2h(&r, RIG_BASE + 500 * 1024, 4); /* anywhere in the page */
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_units, .context = &again});
  rig_h2d(&r, RIG_BASE + 700 * 1024, 4); /* a write by the CPU takes it too */
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_units, .context = &again});
  /* the second page stayed */
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_units, .context = &other});
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->faults, 4 + 2 + 2);
  assert_int_equal(c->h2d_bytes, 8 * 1024);
  assert_int_equal(c->d2h_bytes, 1024);              /* the written unit, once */
  assert_int_equal(c->resident_peak_bytes, 4 << 20); /* GPU memory is taken by whole pages */
  rig_close(&r);
}

/* Zhang's state machine, one event after the other; after each: the page's state by its valid units, and KiB moved so
 * far. */
typedef enum page_state { IN_CPU, PARTIAL, IN_GPU } page_state;
typedef struct transition {
  char event;
  uint32_t unit;
  page_state state;
  uint32_t in, out, faults;
} transition;

static void run_transitions(const char *manager, const transition *t, uint32_t count) {
  for (uint32_t n = 1; n <= count; n++) {
    rig r = begin(manager, 0);
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 2 << 20, TRACE_MEMORY_MANAGED);
    for (uint32_t i = 0; i < n; i++) {
      uint64_t address = RIG_BASE + t[i].unit * UINT64_C(1024);
      steps one = {1, {t[i].unit}, t[i].event == 'W'};
      if (t[i].event == 'G' || t[i].event == 'W')
        rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_units, .context = &one});
      else
        rig_op(&r, (trace_op){.kind = TRACE_OP_HOST_TOUCH,
                              .touch = {.address = address, .bytes = 4, .write = t[i].event == 'c'}});
    }
    const sim_counters *c = &rig_finish(&r)->counters;
    uint64_t valid = r.sim->pager->resident >> 10;
    page_state state = valid ? PARTIAL : IN_CPU;
    if (valid == 2048) state = IN_GPU;
    if (state != t[n - 1].state || c->h2d_bytes >> 10 != t[n - 1].in || c->d2h_bytes >> 10 != t[n - 1].out ||
        c->faults != t[n - 1].faults)
      fail_msg("%s, event %u: state %d, %d KiB in, %d out, %d far-faults", manager, n, state, (int)(c->h2d_bytes >> 10),
               (int)(c->d2h_bytes >> 10), (int)c->faults);
    rig_close(&r);
  }
}

/* G, W: the GPU reads or writes a unit. C, c: the CPU reads or writes four bytes of one. */
static void test_every_transition(void **state) {
  static const transition single[] = {
      {'C', 5, IN_CPU, 0, 0, 0},    /* at home */
      {'G', 10, PARTIAL, 1, 0, 1},  /* valid-in-CPU, GPU request: the part */
      {'G', 10, PARTIAL, 1, 0, 1},  /* partial-valid, inside: a hit */
      {'G', 12, PARTIAL, 3, 0, 2},  /* partial-valid, outside: more, the range grows */
      {'W', 11, PARTIAL, 3, 0, 2},  /* inside */
      {'C', 2000, IN_CPU, 3, 1, 2}, /* partial-valid, CPU request: the whole page; what the GPU wrote is copied */
      {'G', 0, PARTIAL, 4, 1, 3},          {'G', 2047, IN_GPU, 4 + 2047, 1, 4}, /* all of it covered: valid-in-GPU */
      {'W', 1000, IN_GPU, 4 + 2047, 1, 4}, {'C', 1, IN_CPU, 4 + 2047, 2, 4},    /* valid-in-GPU, CPU request */
      {'G', 3, PARTIAL, 4 + 2048, 2, 5},   {'c', 3, IN_CPU, 4 + 2048, 2, 5},    /* a CPU write, too */
      {'G', 3, PARTIAL, 4 + 2049, 2, 6}}; /* and the GPU fetches what the CPU has written */
  static const transition multi[] = {
      {'G', 0, PARTIAL, 1, 0, 1},
      {'W', 100, PARTIAL, 2, 0, 2},
      /* the CPU writes four bytes of a unit that is newer on the GPU: it is copied first */
      {'c', 100, IN_CPU, 2, 1, 2},
      {'G', 100, PARTIAL, 3, 1, 3},
      {'C', 0, IN_CPU, 3, 1, 3}};
  run_transitions("partial-single", single, sizeof single / sizeof *single);
  run_transitions("partial-multi", multi, sizeof multi / sizeof *multi);
}

static void test_zero_copy(void **state) {
  rig r = begin("zero-copy", 64 << 10);
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 4 << 20, TRACE_MEMORY_DEVICE);
  rig_h2d(&r, RIG_BASE, 4 << 20);
  launch(&r, (pages){0, 100, 1, true});
  rig_d2h(&r, RIG_BASE, 4 << 20);
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->faults + c->h2d_bytes + c->d2h_bytes, 0);
  assert_int_equal(c->remote_bytes, 2 * 100 * 128);
  rig_close(&r);
}

/* Memory that grows with what the program allocates: half of 2 MiB, then half of 4 MiB. */
static void test_share_of_memory(void **state) {
  rig r = begin("replay", 0);
  r.gpu_memory_share = 0.5;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 2 << 20, TRACE_MEMORY_DEVICE);
  launch(&r, (pages){0, 512, 1, false});
  rig_sync(&r);
  rig_alloc(&r, PAGE(1024), 2 << 20, TRACE_MEMORY_DEVICE);
  launch(&r, (pages){1024, 512, 1, false});
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->resident_peak_bytes, 2 << 20);
  assert_int_equal(c->evicted_bytes, 512 * 4096);
  rig_close(&r);
}

/* 3 MiB and 3 pages, in four blocks. */
static void scattered(rig *r) {
  /* the second half of a block and the first of the next */
  rig_alloc(r, PAGE(256), 2 << 20, TRACE_MEMORY_DEVICE);
  rig_alloc(r, PAGE(768), 1 << 20, TRACE_MEMORY_MANAGED); /* the rest of that */
  rig_alloc(r, PAGE(1024), 100, TRACE_MEMORY_DEVICE);
  rig_alloc(r, PAGE(1025), 4096, TRACE_MEMORY_DEVICE); /* next to it */
  rig_alloc(r, PAGE(2048), 4096, TRACE_MEMORY_PINNED); /* not the GPU's */
  rig_alloc(r, PAGE(2049), 4096, TRACE_MEMORY_DEVICE);
}

/* A share is of the pages, whatever the manager hands out: managers that are compared have the same bytes. */
static void test_a_share_is_the_same_bytes_for_all(void **state) {
  enum { PAGES = (7 << 20) + 3 * 4096 };
  static const struct {
    const char *manager;
    uint64_t mapped;
  } rows[] = {{"uvm", 12 << 20}, {"partial-multi", 12 << 20}, {"replay", PAGES}, {"auto", PAGES}};
  uint64_t expected = PAGES / 4 * 3;
  for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
    bool freed = i % 2;
    rig r = begin(rows[i / 2].manager, 0);
    r.gpu_memory_share = 0.75;
    rig_start(&r);
    scattered(&r);
    rig_alloc(&r, PAGE(4096), 4 << 20, TRACE_MEMORY_DEVICE);
    launch(&r, (pages){256, 768, 1, false});
    static const uint32_t order[] = {1024, 256, 2049, 4096, 1025, 2048, 768};
    for (int k = 0; k < 7 && freed; k++)
      rig_op(&r, (trace_op){.kind = TRACE_OP_FREE, .free = {.address = PAGE(order[k])}});
    const sim_result *result = rig_finish(&r);
    assert_string_equal(result->error, "");
    assert_int_equal(r.sim->budget.bytes, (expected + 4095) / 4096 * 4096);
    assert_int_equal(r.sim->budget.mapped, freed ? 0 : rows[i / 2].mapped);
    assert_int_equal(r.sim->budget.mapped_pages, freed ? 0 : PAGES);
    rig_close(&r);
  }
}

/* From 100 % on all managers have room for all, in their own way: nothing is evicted, and none is left out. */
static void test_all_of_it_fits_at_100_percent(void **state) {
  static const struct {
    const char *manager;
    uint64_t memory;
  } rows[] = {{"uvm", 8 << 20}, {"replay", (3 << 20) + 3 * 4096}, {"copy", (3 << 20) + 3 * 4096}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rig r = begin(rows[i].manager, 0);
    r.gpu_memory_share = 1;
    rig_start(&r);
    scattered(&r);
    launch(&r, (pages){256, 768, 1, false});
    const sim_result *result = rig_finish(&r);
    assert_string_equal(result->error, "");
    assert_int_equal(result->counters.evicted_bytes, 0);
    assert_int_equal(r.sim->budget.bytes, rows[i].memory);
    rig_close(&r);
  }
}

/* A manager that cannot work with what the others have says so, and has no result; one page more and it has one. */
static void test_a_manager_that_needs_more_is_left_out(void **state) {
  static const struct {
    const char *manager;
    double share;
    uint64_t memory;
    const char *error;
  } rows[] = {
      {"uvm", 0.5, 0,
       "uvm: needs at least 4.00 MiB of GPU memory (4194304 bytes) and was given 1.51 MiB (1581056): it is left out"},
      {"auto", 0.5, 0, ""},
      {"replay", 0.5, 0, ""},
      {"replay", 0.01, 0,
       "replay: needs at least 64.00 KiB of GPU memory (65536 bytes) and was given 32.00 KiB (32768): it is left out"},
      {"copy", 0.5, 0, "copy: with "},
      {"uvm", 0, (4 << 20) - 4096,
       "uvm: needs at least 4.00 MiB of GPU memory (4194304 bytes) and was given 4.00 MiB (4190208): it is left out"},
      {"uvm", 0, 4 << 20, ""},
      {"replay", 0, (64 << 10) - 4096, "replay: needs at least 64.00 KiB"},
      {"replay", 0, 64 << 10, ""}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rig r = begin(rows[i].manager, 0);
    r.gpu_memory_share = rows[i].share;
    r.gpu_memory = rows[i].memory;
    rig_start(&r);
    scattered(&r);
    launch(&r, (pages){256, 768, 1, false});
    const sim_result *result = rig_finish(&r);
    const char *error = result->error;
    if (strncmp(error, rows[i].error, strlen(rows[i].error)) || !*rows[i].error != !*error)
      fail_msg("%zu: expected '%s', not '%s'", i, rows[i].error, error);
    if (strstr(error, "left out"))
      assert_true(!result->counters.time_ps && !result->counters.h2d_bytes && !result->kernel_count);
    rig_close(&r);
  }
}

/* Warps of all SMs read in eight blocks by turns, and there is memory for two: what has come is used before it goes, so
 * hardly an access faults twice. */
static void eight_blocks(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  for (uint64_t i = 0; i < 32; i++)
    rig_load_wait(w, RIG_BASE + (block * 8 + warp + i) % 8 * FF_BLOCK_BYTES + ((block * 8 + warp) * 4 + i / 8) * 1024);
}
static void test_blocks_go_whole_or_not_at_all(void **state) {
  rig r = begin("partial-multi", 0);
  r.gpu_memory = 2 * FF_BLOCK_BYTES;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 8 * FF_BLOCK_BYTES, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = 60, .warps = 8, .warp = eight_blocks});
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->accesses, 60 * 8 * 32);
  assert_between(c->faults, 1000, 2 * 60 * 8 * 32);
  assert_true(c->evicted_bytes > 0);
  rig_close(&r);
}

static void refused(const char *manager, const char *prefetch, const char *evict, uint64_t unit, const char *expected) {
  trace_program *program = trace_program_create(0);
  machine_spec spec = rig_spec();
  sim *s = NULL;
  ff_error error = {0};
  sim_options options = {.spec = &spec, .manager = manager, .prefetch = prefetch, .evict = evict, .unit_bytes = unit};
  assert_int_not_equal(sim_create(program, &options, &s, &error), FF_OK);
  if (!strstr(error.message, expected)) fail_msg("expected '%s' in '%s'", expected, error.message);
  trace_program_free(program);
}

static void test_bad_choices(void **state) {
  refused("replay", "sequental", NULL, 0, "sequential");
  refused("replay", NULL, "lru:5K", 0, "4K, 64K or 2M");
  refused("replay", NULL, NULL, 6000, "power of two");
  refused("replay", NULL, NULL, 4 << 20, "power of two");
  refused("replay", NULL, NULL, 1024, "power of two");
  refused("partial-multi", NULL, NULL, 64, "power of two");
  refused("partial-multi", NULL, NULL, 128 << 10, "power of two");
  refused("replay", "oracle", NULL, 0, "future");
  refused("replay", NULL, "belady", 0, "future");
  refused("replay", "./none.so", NULL, 0, "none.so");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_write_back),
                                     cmocka_unit_test(test_write_back_ahead),
                                     cmocka_unit_test(test_reached_over_the_link),
                                     cmocka_unit_test(test_reached_until_it_moves),
                                     cmocka_unit_test(test_host_does_not_wait_for_what_is_to_come),
                                     cmocka_unit_test(test_host_takes_back_at_once),
                                     cmocka_unit_test(test_cleaning),
                                     cmocka_unit_test(test_cleaning_takes_its_time),
                                     cmocka_unit_test(test_what_is_evicted),
                                     cmocka_unit_test(test_idle_prefetch_fills_the_link),
                                     cmocka_unit_test(test_density_through_the_pager),
                                     cmocka_unit_test(test_batch_time),
                                     cmocka_unit_test(test_batch_evicts_meanwhile),
                                     cmocka_unit_test(test_replay_asks_only_for_what_has_come),
                                     cmocka_unit_test(test_replay_keeps_the_order),
                                     cmocka_unit_test(test_replay_takes_each_page_that_has_come),
                                     cmocka_unit_test(test_whole_blocks),
                                     cmocka_unit_test(test_hull_rule),
                                     cmocka_unit_test(test_whole_window),
                                     cmocka_unit_test(test_ranges_and_gap),
                                     cmocka_unit_test(test_gap_rule),
                                     cmocka_unit_test(test_cpu_takes_the_page_back),
                                     cmocka_unit_test(test_every_transition),
                                     cmocka_unit_test(test_zero_copy),
                                     cmocka_unit_test(test_share_of_memory),
                                     cmocka_unit_test(test_a_share_is_the_same_bytes_for_all),
                                     cmocka_unit_test(test_all_of_it_fits_at_100_percent),
                                     cmocka_unit_test(test_a_manager_that_needs_more_is_left_out),
                                     cmocka_unit_test(test_blocks_go_whole_or_not_at_all),
                                     cmocka_unit_test(test_bad_choices)};
  ff_check_level = 2;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
