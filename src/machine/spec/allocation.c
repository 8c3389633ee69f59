/* SPDX-License-Identifier: Apache-2.0 */
/* What blocks take of an SM (allocation.h). */
#include "machine/spec/allocation.h"

#include <stdbool.h>

enum { WARP = 32, CARVE_OUTS = 16, KIB = 1024 };

/* Of the memory that the L1 and shared memory have together, this is neither's: a pointer chase on a V100, whose 128
 * KiB are the L1's then, has every line of 120.8 KiB there and misses with 125.4 (RRZE-HPC/gpu-benches, gpu-latency);
 * on a GH200 the edge lies as far below what the carve-out leaves. Before 7.0 the L1 has all that is left. */
enum { UNUSED = 8 * KIB, UNUSED_FROM = 7 };

typedef struct allocation_row {
  uint32_t major, minor, most, registers, shared, reserved, unified, carve_outs[CARVE_OUTS];
} allocation_row;

static const allocation_row rows[] = {
#define X(major, minor, most, registers, shared, reserved, unified, ...) \
  {major, minor, most, registers, shared, reserved, unified, {__VA_ARGS__}},
#include "machine/spec/allocation.def"
#undef X
};

static const allocation_row *row_of(const machine_spec *spec) {
  const allocation_row *found = rows;
  for (size_t i = 1; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].major < spec->compute_major ||
        (rows[i].major == spec->compute_major && rows[i].minor <= spec->compute_minor))
      found = &rows[i];
  return found;
}

static uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

uint64_t allocation_of_thread(const machine_spec *spec, uint64_t registers) {
  return least(registers, row_of(spec)->most);
}

uint64_t allocation_warps(const machine_spec *spec, uint64_t registers) {
  registers = allocation_of_thread(spec, registers);
  uint64_t of_warp = (registers ? registers : 1) * WARP;
  if (spec->exact_allocation) return spec->registers / of_warp;
  of_warp = round_up(of_warp, row_of(spec)->registers);
  return spec->registers / spec->schedulers / of_warp * spec->schedulers;
}

uint64_t allocation_registers(const machine_spec *spec, uint64_t warps, uint64_t registers) {
  if (spec->exact_allocation) return warps * WARP * allocation_of_thread(spec, registers);
  uint64_t fitting = allocation_warps(spec, registers);
  return fitting ? warps * (spec->registers / fitting) : spec->registers;
}

uint64_t allocation_shared(const machine_spec *spec, uint64_t bytes) {
  if (spec->exact_allocation) return bytes;
  const allocation_row *row = row_of(spec);
  return round_up(bytes + row->reserved, row->shared);
}

bool allocation_shares_memory(const machine_spec *spec) {
  return !spec->exact_allocation && row_of(spec)->unified && row_of(spec)->unified * KIB == spec->l1_bytes;
}

/* What all blocks take that the SM holds at once, were there shared memory enough. */
static uint64_t shared_of_all(const machine_spec *spec, uint64_t threads, uint64_t registers, uint64_t shared) {
  uint64_t blocks = least(spec->max_blocks, spec->max_threads / threads);
  if (registers) blocks = least(blocks, spec->registers / registers);
  return blocks * shared;
}

uint64_t allocation_carve_out(const machine_spec *spec, uint64_t threads, uint64_t registers, uint64_t shared,
                              int preferred) {
  if (!allocation_shares_memory(spec)) return spec->shared_bytes;
  const allocation_row *row = row_of(spec);
  uint64_t wanted =
      preferred < 0 ? shared_of_all(spec, threads, registers, shared) : spec->shared_bytes * (uint64_t)preferred / 100;
  if (wanted < shared) wanted = shared;
  uint64_t found = row->carve_outs[0] * KIB;
  for (uint32_t i = 1; i < CARVE_OUTS; i++) {
    uint64_t bytes = least(row->carve_outs[i] * KIB, spec->shared_bytes);
    if (bytes > found && found < wanted) found = bytes;
  }
  return found;
}

uint64_t allocation_l1(const machine_spec *spec, uint64_t carve_out) {
  uint64_t taken = carve_out + (row_of(spec)->major >= UNUSED_FROM ? UNUSED : 0);
  return allocation_shares_memory(spec) ? spec->l1_bytes - least(taken, spec->l1_bytes) : spec->l1_bytes;
}

uint64_t allocation_l1_of_small_blocks(const machine_spec *spec) {
  uint64_t carve_out =
      allocation_carve_out(spec, WARP, allocation_registers(spec, 1, 1), allocation_shared(spec, 0), -1);
  return allocation_l1(spec, carve_out);
}

uint64_t allocation_l1_from_small_blocks(const machine_spec *spec, uint64_t measured) {
  machine_spec whole = *spec;
  whole.l1_bytes = row_of(spec)->unified * KIB;
  if (!allocation_shares_memory(&whole)) return measured;
  uint64_t expected = allocation_l1_of_small_blocks(&whole);
  return measured > expected - expected / 10 && measured < expected + expected / 10 ? whole.l1_bytes : measured;
}

uint64_t allocation_shared_each(const machine_spec *spec, uint64_t blocks) {
  uint64_t each = spec->shared_bytes / blocks;
  if (spec->exact_allocation) return each;
  const allocation_row *row = row_of(spec);
  each = each / row->shared * row->shared;
  return each > row->reserved ? each - row->reserved : 0;
}
