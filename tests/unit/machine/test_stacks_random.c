/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs on machines with memory stacks, at the deepest check level, under every way of offloading and kind of
 * map: what must hold whatever they do.
 *
 *   every instance is decided once; bytes inside the stacks are those of the DRAM counters; what leaves a stack was
 *   asked for; all warps come back; the same run twice gives the same numbers. */
#include <stdlib.h>

#include "rig.h"

enum { PROGRAMS = 24, BLOCKS = 40, STEPS = 30, CANDIDATES = 3 };

static uint64_t state_of_random;
static uint32_t below(uint32_t limit) {
  state_of_random = state_of_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(state_of_random >> 33) % limit;
}

static sim_candidate candidates[CANDIDATES];
static const sim_candidate *find(void *context, const trace_launch *launch, uint32_t pc) {
  return pc < CANDIDATES ? &candidates[pc] : NULL;
}
static sim_offloading offloading = {.find = find, .instances = 2000};

static uint64_t random_address(void) { return RIG_BASE + (uint64_t)below(below(4) ? 2048 : 65536) * 128; }

static void random_access(trace_writer *w) {
  uint32_t lines = 1 + below(below(3) ? 2 : 32), op = below(10), log2_bytes = 2;
  uint64_t *at =
      trace_put_access(w, op < 6 ? TRACE_LOAD : TRACE_STORE, log2_bytes, below(8) ? 0 : TRACE_BYPASS_L1, 0, ~0u, lines);
  for (uint32_t i = 0; i < lines; i++) at[i] = trace_line(random_address(), 32 / lines, 1 + below(15));
  if (op < 3) trace_put_wait(w, 0);
}

/* Pairs match, and do not nest, but for a few that hostile streams would have. */
static void random_warp(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  bool inside = false;
  uint32_t pc = 0;
  for (uint32_t i = below(STEPS); i-- > 0;) {
    rig_issue(w, below(40));
    uint32_t what = below(10);
    if (what < 6) {
      random_access(w);
    } else if (!inside && what < 9) {
      uint32_t trips = below(8);
      pc = below(CANDIDATES + 1);
      trace_put_enter(w, pc, trips);
      inside = true;
    } else if (inside) {
      trace_put_leave(w, pc);
      inside = false;
    } else if (!below(20)) {
      trace_put_leave(w, pc);
    }
  }
  if (inside && below(10)) trace_put_leave(w, pc);
}

static void random_machine(machine_spec *s) {
  s->l2_bytes = 64 << 10;
  s->l2_slices = s->channels = 4;
  s->l1_bytes = 4096;
  s->l2_write_through = below(4) > 0;
  s->page_bytes = below(2) ? 4096 : 2 << 20;
  s->row_bytes = 4096;
  s->dram_latency = 20;
  s->stack_count = UINT64_C(1) << below(4);
  s->stack_sms = 1 + below(2);
  s->stack_warps = 1 + below(24);
  s->stack_saved_sms = below(5);
  s->stack_tx_gbs = s->stack_rx_gbs = 4 + below(40);
  s->stack_cross_gbs = 4 + below(20);
  s->stack_link_cycles = below(30);
  s->stack_vaults = 1 + below(16);
  s->stack_gbs = 32 + below(200);
  s->stack_pack_cycles = 10;
  s->stack_busy = 0.1 * below(11);
  s->stack_busy_cycles = 1 + below(2000);
  s->packet_address_bytes = 4;
  s->packet_ack_bytes = 1;
  s->packet_head_bytes = 12;
}

static void random_candidates(void) {
  for (uint32_t i = 0; i < CANDIDATES; i++) {
    bool conditional = below(2);
    candidates[i] = (sim_candidate){.pc = i,
                                    .in_bytes = 128 * below(12),
                                    .out_bytes = 128 * below(6),
                                    .tx_fixed = below(200),
                                    .tx_trip = -(double)below(80),
                                    .rx_fixed = below(50),
                                    .rx_trip = -(double)below(40),
                                    .threshold = conditional ? 1 + below(6) : 1,
                                    .conditional = conditional,
                                    .trips = 1,
                                    .again = below(2),
                                    .left = {128 * below(12), 128 * below(6), below(200), below(50), 1 + below(6)}};
  }
}

static void run(uint64_t seed, sim_offload offload, const char *map, const char *manager, sim_result *out) {
  rig r;
  state_of_random = seed;
  rig_open(&r, manager);
  random_machine(&r.spec);
  random_candidates();
  r.offload = offload;
  r.map = map;
  r.offloading = &offloading;
  if (!strcmp(manager, "replay")) r.gpu_memory = 1 << 20;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 8 << 20, TRACE_MEMORY_DEVICE);
  rig_h2d(&r, RIG_BASE, 1 << 20);
  for (int launch = 0; launch < 2; launch++)
    rig_launch(&r, (rig_kernel){.blocks = BLOCKS, .warps = 1 + below(4), .warp = random_warp});
  const sim_result *result = rig_finish(&r);
  *out = *result;
  out->kernels = NULL;
  out->allocations = NULL;
  out->kernel_count = out->allocation_count = 0;
  for (uint32_t i = 0; i < r.sim->stacks->count; i++) {
    assert_int_equal(r.sim->stacks->items[i].pending, 0);
    assert_int_equal(r.sim->stacks->items[i].running, 0);
  }
  rig_close(&r);
}

static void check_sums(const sim_result *r, sim_offload offload) {
  const sim_stacks *s = &r->stacks;
  uint64_t internal = 0, out = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    internal += s->internal[i];
    assert_int_equal(s->cross[i][i], 0);
    for (uint32_t n = 0; n < s->count; n++) out += s->cross[i][n];
  }
  assert_int_equal(internal, r->counters.dram_read_bytes + r->counters.dram_write_bytes);
  assert_true(s->colocated <= s->instances && s->offloaded <= s->instances);
  assert_true(s->offloaded_instructions <= r->counters.warp_instructions);
  assert_true(s->local_bytes + s->remote_stack_bytes <= internal);
  assert_true((out > 0) == (s->remote_stack_bytes > 0));
  uint64_t refused =
      s->refused_learning + s->refused_condition + s->refused_tx + s->refused_rx + s->refused_slow + s->refused_full;
  if (offload == SIM_OFFLOAD_NONE) assert_int_equal(s->offloaded + refused, 0);
  else assert_int_equal(s->offloaded + refused, s->instances);
  if (offload == SIM_OFFLOAD_IDEAL) assert_int_equal(s->request_bytes + s->answer_bytes + out, 0);
  uint64_t down = 0, up = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    down += s->tx[i];
    up += s->rx[i];
  }
  assert_true(down >= s->request_bytes && up >= s->answer_bytes);
}

static void test_random(void **state) {
  static const char *const maps[] = {"baseline", "learned:2%", "learned-linear:5%"};
  uint64_t offloaded = 0, learned = 0;
  for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
    sim_offload offload = (sim_offload)(seed % 4);
    const char *map = maps[seed / 4 % 3], *manager = seed / 12 % 2 ? "replay" : "copy";
    sim_result first, second;
    run(seed, offload, map, manager, &first);
    run(seed, offload, map, manager, &second);
    check_sums(&first, offload);
    assert_memory_equal(&first.counters, &second.counters, sizeof first.counters);
    assert_memory_equal(&first.stacks, &second.stacks, sizeof first.stacks);
    offloaded += first.stacks.offloaded;
    learned += first.stacks.learned_instances;
  }
  assert_true(offloaded > 500);
  assert_true(learned > 50);
}

int main(void) {
  ff_check_level = 2;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
