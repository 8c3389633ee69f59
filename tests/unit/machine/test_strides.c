/* SPDX-License-Identifier: Apache-2.0 */
/* Strides against the L2: one sector at each multiple of a stride, again and again, of a set that fits. Slices are slow
 * enough that nothing else counts: sectors go at the rate of the slices that have some.
 *
 * By turns (slice_permutation 0) a stride of s pieces of 256 bytes meets in slices / gcd(s, slices) of them, alike in
 * each. With the permutation no stride gets less than 0.45 of what all slices give. */
#include "../share.h"
#include "rig.h"

enum { WARPS = 8, SECTORS_PER_SLICE = 32, ROUNDS = 8, SECTOR_NS = 64 };
#define LARGEST (UINT64_C(1) << 20)
#define SIDES (UINT64_C(0xb3000) | UINT64_C(0xffff) << 21) /* as machines/h100.yaml */

typedef struct strides {
  uint64_t slices, stride;
} strides;

static strides now;
static bool permuted, two_sides;

static void of_slices(machine_spec *s) {
  s->memory_bytes = UINT64_C(8) << 30;
  s->l2_slices = s->channels = now.slices;
  s->l2_bytes = now.slices << 18;
  s->l2_ways = 16;
  s->l2_mshrs = s->l1_mshrs = 1024;
  s->l2_bytes_per_cycle = 32.0 / SECTOR_NS;
  s->slice_permutation = permuted;
  s->bank_permutation = 1;
  s->page_bytes = 2 << 20;
  s->l2_tlb_entries = 4096;
  s->dram_gbs = 4000;
  s->l2_copies = two_sides;
  s->side_latency = 40;
  if (two_sides) s->side_masks = (machine_mask_table){.count = 1, .masks = {SIDES}};
}

/* Each warp has every so-manieth of the multiples, and reads all it has in each round. */
static void multiples(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const strides *c = context;
  uint64_t sectors = c->slices * SECTORS_PER_SLICE, first = b * WARPS + i;
  for (uint32_t round = 0; round < ROUNDS; round++)
    for (uint64_t n = first; n < sectors; n += 15 * WARPS)
      rig_access(w, TRACE_LOAD, TRACE_BYPASS_L1, RIG_BASE + n * c->stride, 1);
}

/* Of what all slices give together. */
static double share_of(uint64_t slices, uint64_t stride) {
  now = (strides){slices, stride};
  rig r;
  rig_open(&r, "ideal");
  of_slices(&r.spec);
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, slices * SECTORS_PER_SLICE * stride + 128, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = 15, .warps = WARPS, .warp = multiples, .context = &now});
  sim_counters c = rig_finish(&r)->counters;
  rig_close(&r);
  return (double)(SECTORS_PER_SLICE * ROUNDS * SECTOR_NS * NS) / (double)c.kernel_ps;
}

static uint64_t gcd(uint64_t a, uint64_t b) { return b ? gcd(b, a % b) : a; }

/* Powers of two, those times 3, 5, 7, and rounds of pieces and parts of them. */
static uint32_t all_strides(uint64_t slices, uint64_t *out) {
  static const uint64_t odd[] = {1, 3, 5, 7};
  uint32_t count = 0;
  for (uint32_t o = 0; o < 4; o++)
    for (uint64_t stride = 128 * odd[o]; stride <= LARGEST; stride *= 2) out[count++] = stride;
  for (uint64_t part = 2; part <= 24; part++) out[count++] = slices * 256 * part / 8;
  return count;
}

static const uint64_t counts[] = {96, 80, 64, 48, 44};

static void test_by_turns(void **state) {
  permuted = two_sides = false;
  for (uint32_t i = 0; i < sizeof counts / sizeof *counts; i += one_in(2)) {
    uint64_t strides[128];
    for (uint32_t n = all_strides(counts[i], strides); n-- > 0;) {
      if (strides[n] % 256) continue;
      double expected = 1 / (double)gcd(strides[n] / 256, counts[i]), share = share_of(counts[i], strides[n]);
      if (share > expected * 1.001 || share < 0.8 * expected)
        fail_msg("%g of %d slices at %d, expected %g", share, (int)counts[i], (int)strides[n], expected);
    }
  }
}

static void permuted_share(bool sides) {
  permuted = true;
  two_sides = sides;
  for (uint32_t i = 0; i < sizeof counts / sizeof *counts; i += one_in(2)) {
    uint64_t strides[128];
    for (uint32_t n = all_strides(counts[i], strides); n-- > 0;) {
      double share = share_of(counts[i], strides[n]);
      if (share < 0.45) fail_msg("%g of %d slices at %d", share, (int)counts[i], (int)strides[n]);
    }
  }
}
static void test_permuted(void **state) { permuted_share(false); }
static void test_permuted_on_two_sides(void **state) { permuted_share(true); }

/* ---- sets of one slice ---- */

enum { SET_LINES = 512, SETS = 128, WAYS = 16 };

static void one_slice(machine_spec *s) {
  of_slices(s);
  s->l2_bytes_per_cycle = 32;
}

/* One warp reads the multiples, a quarter of what the L2 holds, twice, and waits for each. */
static void twice(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const strides *c = context;
  for (uint32_t n = 0; n < 2 * SET_LINES; n++) {
    rig_access(w, TRACE_LOAD, TRACE_BYPASS_L1, RIG_BASE + n % SET_LINES * c->stride, 1);
    trace_put_wait(w, 0);
  }
}

/* A stride of about as many lines as there are sets, of half of that, or of more, brings all multiples into few sets if
 * each group of that many lines begins at the set where the one before did, or at the next. */
static void test_sets(void **state) {
  permuted = true;
  two_sides = false;
  for (uint64_t lines = 1; lines <= 3 * SETS + 4; lines++) {
    if ((lines + 4) % (SETS / 2) > 8) continue;
    now = (strides){1, lines * 128};
    rig r;
    rig_open(&r, "ideal");
    one_slice(&r.spec);
    assert_int_equal(r.spec.l2_bytes, SETS * WAYS * 128);
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, SET_LINES * now.stride, TRACE_MEMORY_DEVICE);
    rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = twice, .context = &now});
    sim_counters c = rig_finish(&r)->counters;
    rig_close(&r);
    uint64_t again = c.dram_read_bytes / 32 - SET_LINES;
    if (again > SET_LINES / 50) fail_msg("%d of %d lines %d apart do not stay", (int)again, SET_LINES, (int)lines);
  }
}

/* ---- all of memory ---- */

/* Of whole rounds all slices have as many pieces. */
static void places(bool sides) {
  /* on two sides 1, 3 and 11 each; the last two cannot be shared out */
  static const uint64_t others[] = {2, 6, 22, 1, 7};
  const uint32_t many = sizeof counts / sizeof *counts, all = many + (sides ? 3 : 5);
  permuted = true;
  two_sides = sides;
  for (uint32_t i = 0; i < all; i++) {
    enum { ROUNDS_SEEN = 64 };
    now = (strides){i < many ? counts[i] : others[i - many], 256};
    rig r;
    rig_open(&r, "ideal");
    of_slices(&r.spec);
    rig_start(&r);
    uint32_t seen[128] = {0};
    for (uint64_t n = 0; n < now.slices * ROUNDS_SEEN; n++) seen[l2_slice_of(&r.sim->memory, n * 256)]++;
    for (uint64_t s = 0; s < now.slices; s++) assert_int_equal(seen[s], ROUNDS_SEEN);
    rig_alloc(&r, RIG_BASE, 4096, TRACE_MEMORY_DEVICE);
    rig_finish(&r);
    rig_close(&r);
  }
}
static void test_places(void **state) { places(false); }
static void test_places_on_two_sides(void **state) { places(true); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_by_turns), cmocka_unit_test(test_permuted), cmocka_unit_test(test_permuted_on_two_sides),
      cmocka_unit_test(test_sets),     cmocka_unit_test(test_places),   cmocka_unit_test(test_places_on_two_sides),
  };
  return cmocka_run_group_tests_name("strides", tests, NULL, NULL);
}
