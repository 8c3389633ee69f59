/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory that several devices of one program use: pages move from one GPU's memory to the other's, each once,
 * on both links. The link carries 4 KiB in 256 ns, a far-fault takes 20 us, and the host's calls take nothing. */
#include "devices.h"
#include "unit/share.h"

#define ARRAY_BYTES (UINT64_C(4) << 20)
#define LINES_PER_BLOCK 64u

/* ---- what the program does ---- */

static void managed(devices *d, uint64_t bytes) {
  rig_op(
      &d->r,
      (trace_op){
          .kind = TRACE_OP_ALLOC,
          .stream = on(0),
          .alloc = {.address = RIG_BASE, .bytes = bytes, .memory = TRACE_MEMORY_MANAGED, .id = 1, .name = "managed"}});
}

static void host_touches(devices *d, uint64_t bytes, bool write) {
  rig_op(&d->r, (trace_op){.kind = TRACE_OP_HOST_TOUCH,
                           .stream = on(0),
                           .touch = {.address = RIG_BASE, .bytes = bytes, .write = write}});
}

static void advise(devices *d, trace_advice advice, int32_t device) {
  rig_op(&d->r,
         (trace_op){.kind = TRACE_OP_ADVISE,
                    .stream = on(0),
                    .hint = {.address = RIG_BASE, .bytes = ARRAY_BYTES, .advice = (uint8_t)advice, .device = device}});
}

static void sync(devices *d, uint32_t device) {
  rig_op(&d->r, (trace_op){.kind = TRACE_OP_SYNC_DEVICE, .stream = on(device)});
}

static void store_lines(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint32_t n = 0; n < LINES_PER_BLOCK; n++) rig_store(w, RIG_BASE + (b * LINES_PER_BLOCK + n) * TRACE_LINE_BYTES);
}
static void load_lines(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint32_t n = 0; n < LINES_PER_BLOCK; n++) rig_load(w, RIG_BASE + (b * LINES_PER_BLOCK + n) * TRACE_LINE_BYTES);
}
static void store_one(trace_writer *w, uint64_t b, uint32_t i, const void *c) { rig_store(w, RIG_BASE); }

static void launch(devices *d, uint32_t device, uint64_t bytes, bool write) {
  rig_launch(&d->r, (rig_kernel){.blocks = bytes / (LINES_PER_BLOCK * TRACE_LINE_BYTES),
                                 .warps = 1,
                                 .warp = write ? store_lines : load_lines,
                                 .stream = on(device)});
}

/* All managers that move pages by themselves. */
static const char *const paged[] = {"demand", "replay", "sequential", "tbn", "uvm", "segments"};
#define FOR_PAGED(name) for (size_t m_ = 0; m_ < sizeof paged / sizeof *paged && ((name) = paged[m_], true); m_++)

/* ---- from GPU to GPU ---- */

/* 4 MiB four times from one GPU to the other are 16 MiB of traffic: counted once where they come and once where they
 * leave, and each link is busy for as long. */
static void test_ping_pong(void **state) {
  const char *name;
  FOR_PAGED(name) {
    devices d;
    begin(&d, name, 2, 0);
    managed(&d, ARRAY_BYTES);
    host_touches(&d, ARRAY_BYTES, true);
    for (uint32_t turn = 0; turn < 5; turn++) {
      launch(&d, turn % 2, ARRAY_BYTES, true);
      sync(&d, turn % 2);
    }
    finish(&d);
    assert_int_equal(of(&d, 0)->h2d_bytes, 3 * ARRAY_BYTES); /* from the host once, from device 1 twice */
    assert_int_equal(of(&d, 1)->h2d_bytes, 2 * ARRAY_BYTES);
    assert_int_equal(of(&d, 0)->d2h_bytes, 2 * ARRAY_BYTES);
    assert_int_equal(of(&d, 1)->d2h_bytes, 2 * ARRAY_BYTES);
    assert_int_equal(of(&d, 0)->d2h_bytes + of(&d, 1)->d2h_bytes, 16 << 20);
    assert_int_equal(of(&d, 0)->h2d_busy_ps, 3 * ARRAY_BYTES * 1000 / 16);
    assert_int_equal(of(&d, 1)->d2h_busy_ps, 2 * ARRAY_BYTES * 1000 / 16);
    assert_int_equal(of(&d, 0)->time_ps, of(&d, 1)->time_ps);
    end(&d);
  }
}

/* Under a manager that copies managed memory for each launch, and back when the host waits, it goes through the host:
 * what another device's kernel may have written comes again. */
static void test_ping_pong_of_copies(void **state) {
  devices d;
  begin(&d, "copy", 2, 0);
  managed(&d, ARRAY_BYTES);
  host_touches(&d, ARRAY_BYTES, true);
  for (uint32_t turn = 0; turn < 5; turn++) {
    launch(&d, turn % 2, ARRAY_BYTES, true);
    sync(&d, turn % 2);
  }
  finish(&d);
  for (uint32_t device = 0; device < 2; device++) {
    assert_int_equal(of(&d, device)->h2d_bytes, (3 - device) * ARRAY_BYTES);
    assert_int_equal(of(&d, device)->d2h_bytes, (3 - device) * ARRAY_BYTES);
  }
  end(&d);
}

/* What the host reads after that comes from the GPU that has it, once, and nothing from the other. */
static void test_the_host_reads_where_it_is(void **state) {
  const char *name;
  FOR_PAGED(name) {
    devices d;
    begin(&d, name, 3, 0);
    managed(&d, ARRAY_BYTES);
    host_touches(&d, ARRAY_BYTES, true);
    for (uint32_t device = 0; device < 3; device++) {
      launch(&d, device, ARRAY_BYTES, false); /* only read: the last one's is newer than the host's all the same */
      sync(&d, device);
    }
    host_touches(&d, ARRAY_BYTES, false);
    finish(&d);
    for (uint32_t device = 0; device < 3; device++) {
      assert_int_equal(of(&d, device)->h2d_bytes, ARRAY_BYTES);
      assert_int_equal(of(&d, device)->d2h_bytes, ARRAY_BYTES);
    }
    assert_int_equal(of(&d, 0)->host_faults + of(&d, 1)->host_faults, 0);
    assert_true(of(&d, 2)->host_faults > 0);
    end(&d);
  }
}

/* One page: whether it comes from the host or from the other GPU, the far-fault takes as long, and the page 256 ns of
 * the links that it goes over. */
static void test_the_time_of_one_page(void **state) {
  ps first = 0;
  for (uint32_t way = 0; way < 2; way++) { /* from the host, then from the other GPU */
    devices d;
    begin(&d, "demand", 2, 0);
    managed(&d, 4096);
    host_touches(&d, 4096, true);
    if (way) rig_launch(&d.r, (rig_kernel){.blocks = 1, .warps = 1, .warp = store_one, .stream = on(0)});
    if (way) sync(&d, 0);
    rig_launch(&d.r, (rig_kernel){.blocks = 1, .warps = 1, .warp = store_one, .stream = on(1)});
    sync(&d, 1);
    finish(&d);
    if (!way) first = of(&d, 1)->kernel_ps;
    assert_int_equal(of(&d, 1)->kernel_ps, first);
    assert_int_equal(of(&d, 1)->h2d_busy_ps, 256 * NS);
    assert_int_equal(of(&d, 0)->d2h_busy_ps, way ? 256 * NS : 0);
    end(&d);
  }
}

static void prefetch(devices *d, uint32_t device, uint64_t bytes) {
  rig_op(&d->r, (trace_op){.kind = TRACE_OP_PREFETCH,
                           .stream = on(device),
                           .hint = {.address = RIG_BASE, .bytes = bytes, .device = (int32_t)device}});
}

/* 4 MiB at 16 GB/s: 262.144 us, from the host as from another GPU; half from there and half from here share the
 * link. */
static void test_the_time_of_a_prefetch(void **state) {
  const ps whole = ARRAY_BYTES * 1000 / 16;
  for (uint32_t way = 0; way < 3; way++) {
    devices d;
    begin(&d, "demand", 2, 0);
    managed(&d, ARRAY_BYTES);
    host_touches(&d, ARRAY_BYTES, true);
    prefetch(&d, 0, way * ARRAY_BYTES / 2);
    sync(&d, 0);
    prefetch(&d, 1, ARRAY_BYTES);
    sync(&d, 1);
    finish(&d);
    assert_int_equal(of(&d, 1)->time_ps, whole + way * whole / 2);
    assert_int_equal(of(&d, 0)->time_ps, whole + way * whole / 2);
    assert_int_equal(of(&d, 1)->h2d_busy_ps, whole);
    assert_int_equal(of(&d, 0)->d2h_busy_ps, way * whole / 2);
    assert_int_equal(of(&d, 1)->h2d_bytes, ARRAY_BYTES);
    assert_int_equal(of(&d, 0)->d2h_bytes, way * ARRAY_BYTES / 2);
    end(&d);
  }
}

/* Both kernels at once: the device whose launch comes second takes the pages from the first. */
static void test_without_a_wait_between_them(void **state) {
  devices d;
  begin(&d, "demand", 2, 0);
  managed(&d, ARRAY_BYTES);
  host_touches(&d, ARRAY_BYTES, true);
  launch(&d, 0, ARRAY_BYTES, true);
  launch(&d, 1, ARRAY_BYTES, true);
  sync(&d, 0);
  sync(&d, 1);
  finish(&d);
  assert_int_equal(of(&d, 0)->h2d_bytes, ARRAY_BYTES);
  assert_int_equal(of(&d, 0)->d2h_bytes, ARRAY_BYTES);
  assert_int_equal(of(&d, 1)->h2d_bytes, ARRAY_BYTES);
  assert_int_equal(of(&d, 1)->d2h_bytes, 0);
  end(&d);
}

/* With room for half: what the second GPU evicts is written back, and the first gets it from the host again. */
static void test_eviction_goes_to_the_host(void **state) {
  devices d;
  begin(&d, "demand", 2, ARRAY_BYTES / 2);
  managed(&d, ARRAY_BYTES);
  host_touches(&d, ARRAY_BYTES, true);
  launch(&d, 0, ARRAY_BYTES / 2, true);
  sync(&d, 0);
  launch(&d, 1, ARRAY_BYTES, true); /* the first half from device 0, the second from the host */
  sync(&d, 1);
  launch(&d, 0, ARRAY_BYTES, true);
  sync(&d, 0);
  finish(&d);
  assert_int_equal(of(&d, 1)->h2d_bytes, ARRAY_BYTES);
  assert_int_equal(of(&d, 1)->evicted_bytes, ARRAY_BYTES / 2);
  assert_int_equal(of(&d, 1)->d2h_bytes, ARRAY_BYTES); /* half to the host, half to device 0 */
  assert_int_equal(of(&d, 0)->h2d_bytes, 3 * ARRAY_BYTES / 2);
  end(&d);
}

/* What another GPU has written first, and has given to the host since, is no page of zeros: it comes over the link. */
static void test_written_and_gone(void **state) {
  devices d;
  devices_open(&d, "demand", 2);
  d.r.spec.first_touch_moves = 0;
  devices_start(&d, ARRAY_BYTES / 2);
  host_touches(&d, 0, false); /* touches are recorded: the host has made none */
  managed(&d, ARRAY_BYTES);
  launch(&d, 1, ARRAY_BYTES, true);
  sync(&d, 1);
  launch(&d, 0, ARRAY_BYTES / 4, false);
  sync(&d, 0);
  finish(&d);
  assert_int_equal(of(&d, 1)->h2d_bytes, 0); /* zeros */
  assert_int_equal(of(&d, 1)->d2h_bytes, ARRAY_BYTES / 2);
  assert_int_equal(of(&d, 0)->h2d_bytes, ARRAY_BYTES / 4);
  end(&d);
}

/* ---- read mostly ---- */

static void test_copies_for_readers(void **state) {
  const char *name;
  FOR_PAGED(name) {
    devices d;
    begin(&d, name, 2, 0);
    managed(&d, ARRAY_BYTES);
    host_touches(&d, ARRAY_BYTES, true);
    launch(&d, 0, ARRAY_BYTES, true); /* newer than the host's */
    sync(&d, 0);
    advise(&d, TRACE_ADVICE_SET_READ_MOSTLY, 0);
    for (uint32_t turn = 0; turn < 6; turn++) {
      launch(&d, 1 - turn % 2, ARRAY_BYTES, false);
      sync(&d, 1 - turn % 2);
    }
    finish(&d);
    assert_int_equal(of(&d, 1)->h2d_bytes, ARRAY_BYTES); /* once, and then both have it */
    assert_int_equal(of(&d, 0)->h2d_bytes, ARRAY_BYTES);
    assert_int_equal(of(&d, 0)->d2h_bytes, ARRAY_BYTES);
    assert_int_equal(of(&d, 1)->d2h_bytes, 0);
    end(&d);
  }
}

/* A write ends that: the others' copies are no longer valid, and come again. */
static void test_a_write_ends_the_copies(void **state) {
  devices d;
  begin(&d, "demand", 3, 0);
  managed(&d, ARRAY_BYTES);
  host_touches(&d, ARRAY_BYTES, true);
  advise(&d, TRACE_ADVICE_SET_READ_MOSTLY, 0);
  for (uint32_t device = 0; device < 3; device++) {
    launch(&d, device, ARRAY_BYTES, false);
    sync(&d, device);
  }
  launch(&d, 2, ARRAY_BYTES, true);
  sync(&d, 2);
  launch(&d, 0, ARRAY_BYTES, false);
  sync(&d, 0);
  finish(&d);
  assert_int_equal(of(&d, 0)->h2d_bytes, 2 * ARRAY_BYTES);
  assert_int_equal(of(&d, 1)->h2d_bytes, ARRAY_BYTES);
  assert_int_equal(of(&d, 2)->h2d_bytes, ARRAY_BYTES);
  assert_int_equal(of(&d, 0)->d2h_bytes + of(&d, 1)->d2h_bytes + of(&d, 2)->d2h_bytes, 3 * ARRAY_BYTES);
  end(&d);
}

/* Copies that are gone again when the GPUs meet leave their pages to the GPU that wrote them: it writes without a
 * far-fault. */
static void test_copies_that_are_gone(void **state) {
  devices d;
  begin(&d, "demand", 2, ARRAY_BYTES / 2);
  managed(&d, ARRAY_BYTES);
  host_touches(&d, ARRAY_BYTES, true);
  launch(&d, 0, ARRAY_BYTES / 4, true);
  sync(&d, 0);
  advise(&d, TRACE_ADVICE_SET_READ_MOSTLY, 0);
  launch(&d, 1, ARRAY_BYTES, false); /* the first quarter, and then what takes its place */
  sync(&d, 1);
  launch(&d, 0, ARRAY_BYTES / 4, true);
  sync(&d, 0);
  finish(&d);
  assert_int_equal(of(&d, 0)->faults, ARRAY_BYTES / 4 / 4096);
  assert_int_equal(of(&d, 0)->h2d_bytes, ARRAY_BYTES / 4);
  end(&d);
}

/* The host reads what two GPUs have copies of and only one of them wrote: once. */
static void test_the_host_reads_copies(void **state) {
  devices d;
  begin(&d, "demand", 2, 0);
  managed(&d, ARRAY_BYTES);
  host_touches(&d, ARRAY_BYTES, true);
  launch(&d, 0, ARRAY_BYTES, true);
  sync(&d, 0);
  advise(&d, TRACE_ADVICE_SET_READ_MOSTLY, 0);
  launch(&d, 1, ARRAY_BYTES, false);
  sync(&d, 1);
  host_touches(&d, ARRAY_BYTES, false);
  host_touches(&d, ARRAY_BYTES, false);
  launch(&d, 0, ARRAY_BYTES, false); /* still there */
  launch(&d, 1, ARRAY_BYTES, false);
  sync(&d, 0);
  sync(&d, 1);
  finish(&d);
  assert_int_equal(of(&d, 0)->d2h_bytes, 2 * ARRAY_BYTES);
  assert_int_equal(of(&d, 1)->d2h_bytes, 0);
  assert_int_equal(of(&d, 0)->h2d_bytes, ARRAY_BYTES);
  assert_int_equal(of(&d, 1)->h2d_bytes, ARRAY_BYTES);
  end(&d);
}

/* ---- hints that name another device ---- */

/* Pages of GPU 0 that GPU 1 accesses by a hint stay there: no far-fault, line by line over both links. */
static void test_accessed_by(void **state) {
  const char *name;
  FOR_PAGED(name) {
    devices d;
    begin(&d, name, 2, 0);
    managed(&d, ARRAY_BYTES);
    host_touches(&d, ARRAY_BYTES, true);
    advise(&d, TRACE_ADVICE_SET_ACCESSED_BY, 1);
    for (uint32_t round = 0; round < 2; round++) {
      launch(&d, 0, ARRAY_BYTES, false);
      sync(&d, 0);
      launch(&d, 1, ARRAY_BYTES, true); /* newer than the host's copy from now on, in GPU 0's memory */
      sync(&d, 1);
      host_touches(&d, ARRAY_BYTES, false);
    }
    finish(&d);
    assert_int_equal(of(&d, 1)->faults, 0);
    assert_int_equal(of(&d, 1)->h2d_bytes, 0);
    assert_int_equal(of(&d, 1)->remote_bytes, 2 * ARRAY_BYTES);
    assert_int_equal(of(&d, 0)->h2d_busy_ps, 4 * ARRAY_BYTES * 1000 / 16); /* brought, and written, each time */
    assert_int_equal(of(&d, 0)->d2h_bytes, 2 * ARRAY_BYTES);               /* for the host */
    end(&d);
  }
}

/* What is to be in GPU 0's memory and is there is mapped by GPU 1's far-fault; a GPU that is no peer takes it. */
static void test_preferred_elsewhere(void **state) {
  for (uint32_t far = 0; far < 2; far++) {
    ff_error error = {0};
    devices d = {.count = 2, .peers = sim_peers_create(0, 2)};
    rig_open(&d.r, "demand");
    if (far && machine_spec_set_all(&d.r.spec, "gpus=2,roots=0 1", &error)) fail_msg("%s", error.message);
    d.r.program = trace_program_create(0);
    for (uint32_t i = 0; i < 2; i++) {
      sim_options options = {.device_index = i, .peers = d.peers, .spec = &d.r.spec, .manager = "demand"};
      if (sim_create(d.r.program, &options, &d.sims[i], &error)) fail_msg("%s", error.message);
    }
    managed(&d, ARRAY_BYTES);
    host_touches(&d, ARRAY_BYTES, true);
    advise(&d, TRACE_ADVICE_SET_PREFERRED_LOCATION, 0);
    launch(&d, 0, ARRAY_BYTES, true);
    sync(&d, 0);
    launch(&d, 1, ARRAY_BYTES, false);
    sync(&d, 1);
    finish(&d);
    assert_int_equal(of(&d, 1)->faults, ARRAY_BYTES / 4096);
    assert_int_equal(of(&d, 1)->h2d_bytes, far ? ARRAY_BYTES : 0);
    assert_int_equal(of(&d, 0)->d2h_bytes, far ? ARRAY_BYTES : 0);
    assert_int_equal(of(&d, 1)->remote_bytes, far ? 0 : ARRAY_BYTES);
    end(&d);
  }
}

/* Put by a stream of GPU 0: GPU 1 takes them from it, once; then to the host, by a stream of GPU 0, too. */
static void test_prefetch_by_another_stream(void **state) {
  devices d;
  begin(&d, "demand", 2, 0);
  managed(&d, ARRAY_BYTES);
  host_touches(&d, ARRAY_BYTES, true);
  launch(&d, 0, ARRAY_BYTES, true);
  sync(&d, 0);
  for (int32_t to = 1; to >= -1; to -= 2) {
    rig_op(&d.r, (trace_op){.kind = TRACE_OP_PREFETCH,
                            .stream = on(0),
                            .hint = {.address = RIG_BASE, .bytes = ARRAY_BYTES, .device = to}});
    sync(&d, 0);
    sync(&d, 1);
  }
  finish(&d);
  assert_int_equal(of(&d, 0)->h2d_bytes, ARRAY_BYTES);
  assert_int_equal(of(&d, 0)->d2h_bytes, ARRAY_BYTES);
  assert_int_equal(of(&d, 1)->h2d_bytes, ARRAY_BYTES);
  assert_int_equal(of(&d, 1)->d2h_bytes, ARRAY_BYTES);
  end(&d);
}

/* ---- random programs ---- */

enum { PAGES = 64, STEPS = 60 };

static uint64_t seed;
static uint64_t draw(uint64_t below) {
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (seed >> 33) % below;
}

typedef struct piece {
  uint64_t first, count;
  bool write;
} piece;

static void use_pages(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const piece *p = context;
  for (uint64_t n = 0; n < p->count; n++) {
    if (p->write) rig_store(w, RIG_BASE + (p->first + n) * 4096);
    else rig_load_wait(w, RIG_BASE + (p->first + n) * 4096);
  }
}

/* Each step is waited for, so a page is where the last that touched it wanted it: at the host (owner -1) or in one
 * GPU's memory, newer than the host's copy if a GPU wrote it or another GPU had it before. */
static void test_random_steps(void **state) {
  for (uint32_t round = 0; round < fewer(12, 3); round++) {
    devices d;
    uint64_t in[3] = {0}, out[3] = {0};
    int owner[PAGES];
    bool newer[PAGES] = {false};
    seed = round + 1;
    begin(&d, round % 2 ? "replay" : "demand", 3, 0);
    managed(&d, PAGES * 4096);
    host_touches(&d, PAGES * 4096, true);
    for (uint32_t p = 0; p < PAGES; p++) owner[p] = -1;
    for (uint32_t step = 0; step < STEPS; step++) {
      int who = (int)draw(4) - 1;
      piece own = {.first = draw(PAGES), .write = draw(2)};
      own.count = 1 + draw(PAGES - own.first);
      for (uint64_t p = own.first; p < own.first + own.count; p++) {
        int from = owner[p];
        if (who >= 0 && from != who) in[who]++;
        if (from >= 0 && from != who && (who >= 0 || newer[p])) out[from]++;
        if (who >= 0) newer[p] = from == who ? newer[p] || own.write : own.write || from >= 0;
        owner[p] = who;
        if (who < 0) newer[p] = false;
      }
      if (who < 0) {
        rig_op(&d.r,
               (trace_op){
                   .kind = TRACE_OP_HOST_TOUCH,
                   .stream = on(0),
                   .touch = {.address = RIG_BASE + own.first * 4096, .bytes = own.count * 4096, .write = own.write}});
        continue;
      }
      rig_launch(
          &d.r, (rig_kernel){.blocks = 1, .warps = 1, .warp = use_pages, .context = &own, .stream = on((uint32_t)who)});
      sync(&d, (uint32_t)who);
    }
    finish(&d);
    for (uint32_t device = 0; device < 3; device++) {
      assert_int_equal(of(&d, device)->h2d_bytes, in[device] * 4096);
      assert_int_equal(of(&d, device)->d2h_bytes, out[device] * 4096);
      assert_int_equal(of(&d, device)->h2d_busy_ps, in[device] * 256 * NS);
      assert_int_equal(of(&d, device)->d2h_busy_ps, out[device] * 256 * NS);
    }
    end(&d);
  }
}

/* ---- anything at once ---- */

/* Launches, prefetches, hints and the host's accesses in any order, mostly without a wait, with room for a quarter: no
 * check fails at any level, and the same program gives the same numbers, whichever thread is faster. */
static void random_operation(devices *d, uint32_t count, piece *own) {
  uint32_t device = (uint32_t)draw(count), other = (uint32_t)draw(count + 1);
  *own = (piece){.first = draw(PAGES), .write = draw(2)};
  own->count = 1 + draw(PAGES - own->first);
  trace_op op = {.stream = on(device)};
  switch (draw(8)) {
  case 0:
    op.kind = TRACE_OP_HOST_TOUCH;
    op.touch.address = RIG_BASE + own->first * 4096;
    op.touch.bytes = own->count * 4096;
    op.touch.write = own->write;
    break;
  case 1:
    op.kind = TRACE_OP_PREFETCH;
    op.hint.address = RIG_BASE + own->first * 4096;
    op.hint.bytes = own->count * 4096;
    op.hint.device = (int32_t)other - 1;
    break;
  case 2:
    op.kind = TRACE_OP_ADVISE;
    op.hint.address = RIG_BASE + own->first * 4096;
    op.hint.bytes = own->count * 4096;
    op.hint.advice = (uint8_t)draw(TRACE_ADVICE_UNSET_ACCESSED_BY + 1);
    op.hint.device = (int32_t)other - 1;
    break;
  case 3: op.kind = TRACE_OP_SYNC_DEVICE; break;
  case 4:
    rig_copy(&d->r, own->write ? TRACE_H2D : TRACE_D2H, own->write ? RIG_BASE + own->first * 4096 : 0x1000,
             own->write ? 0x1000 : RIG_BASE + own->first * 4096, own->count * 4096, draw(2), on(device));
    return;
  default:
    rig_launch(&d->r, (rig_kernel){.blocks = 1 + draw(3),
                                   .warps = 2,
                                   .warp = use_pages,
                                   .context = own,
                                   .stream = on(device),
                                   .use_count = 1,
                                   .uses = {{RIG_BASE, PAGES * 4096}}});
    return;
  }
  rig_op(&d->r, op);
}

static void random_program(devices *d, const char *manager, uint32_t round, uint64_t random) {
  ff_error error = {0};
  const struct manager *m = manager_find(manager);
  uint64_t least = m->whole_blocks ? UINT64_C(4) << 20 : 16 * (m->unit_bytes ? m->unit_bytes : 4096);
  *d = (devices){.count = 2 + round % 3, .peers = sim_peers_create(0, 2 + round % 3)};
  rig_open(&d->r, manager);
  d->r.spec.first_touch_moves = round & 1;
  d->r.spec.fault_batch_us = 10;
  d->r.spec.fault_block_us = 5;
  const char *links[] = {"gpus=0", "gpus=4,joins=0-1:64:2 1-2:16:0", "gpus=4,switch_gbs=32,switch_latency_us=1",
                         "gpus=4,roots=0.1 2.3,root_gbs=10", "gpus=4,roots=0.1 2.3,root_peers=1"};
  if (machine_spec_set_all(&d->r.spec, links[round % 5], &error)) fail_msg("%s", error.message);
  d->r.program = trace_program_create(0);
  for (uint32_t i = 0; i < d->count; i++) {
    sim_options options = {.device_index = i,
                           .peers = d->peers,
                           .spec = &d->r.spec,
                           .manager = manager,
                           .gpu_memory = round % 2 || !manager_pages(m) ? 0 : least,
                           .history = true};
    if (sim_create(d->r.program, &options, &d->sims[i], &error)) fail_msg("%s", error.message);
  }
  seed = random;
  managed(d, PAGES * 4096);
  host_touches(d, 0, false); /* touches are recorded */
  for (uint32_t step = 0; step < STEPS; step++) {
    piece own;
    random_operation(d, d->count, &own);
  }
  rig_op(&d->r, (trace_op){.kind = TRACE_OP_FREE, .stream = on(0), .free = {.address = RIG_BASE, .id = 1}});
  managed(d, PAGES * 4096); /* at the same place */
  for (uint32_t step = 0; step < STEPS / 4; step++) {
    piece own;
    random_operation(d, d->count, &own);
  }
  finish(d);
}

static void test_anything_at_once(void **state) {
  uint32_t count;
  const sim_manager *list = sim_managers(&count);
  for (uint32_t m = 0; m < count; m++) {
    if (!strcmp(list[m].name, "oracle")) continue; /* needs the future */
    for (uint32_t round = 0; round < fewer(10, 2); round++) {
      devices first, again;
      random_program(&first, list[m].name, round, 100 * m + round);
      random_program(&again, list[m].name, round, 100 * m + round);
      for (uint32_t i = 0; i < first.count; i++)
        assert_memory_equal(of(&first, i), of(&again, i), sizeof *of(&first, i));
      end(&first);
      end(&again);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_ping_pong),
                                     cmocka_unit_test(test_ping_pong_of_copies),
                                     cmocka_unit_test(test_the_host_reads_where_it_is),
                                     cmocka_unit_test(test_the_time_of_one_page),
                                     cmocka_unit_test(test_the_time_of_a_prefetch),
                                     cmocka_unit_test(test_random_steps),
                                     cmocka_unit_test(test_anything_at_once),
                                     cmocka_unit_test(test_accessed_by),
                                     cmocka_unit_test(test_preferred_elsewhere),
                                     cmocka_unit_test(test_prefetch_by_another_stream),
                                     cmocka_unit_test(test_without_a_wait_between_them),
                                     cmocka_unit_test(test_eviction_goes_to_the_host),
                                     cmocka_unit_test(test_copies_for_readers),
                                     cmocka_unit_test(test_a_write_ends_the_copies),
                                     cmocka_unit_test(test_copies_that_are_gone),
                                     cmocka_unit_test(test_written_and_gone),
                                     cmocka_unit_test(test_the_host_reads_copies)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
