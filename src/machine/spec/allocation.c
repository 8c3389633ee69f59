/* SPDX-License-Identifier: Apache-2.0 */
/* What blocks take of an SM (allocation.h). */
#include "machine/spec/allocation.h"

enum { WARP = 32, CARVE_OUTS = 16 };

typedef struct allocation_row {
  uint32_t major, minor, registers, shared, reserved, unified, carve_outs[CARVE_OUTS];
} allocation_row;

static const allocation_row rows[] = {
#define X(major, minor, registers, shared, reserved, unified, ...) \
  {major, minor, registers, shared, reserved, unified, {__VA_ARGS__}},
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

uint64_t allocation_warps(const machine_spec *spec, uint64_t registers) {
  uint64_t of_warp = (registers ? registers : 1) * WARP;
  if (spec->exact_allocation) return spec->registers / of_warp;
  of_warp = round_up(of_warp, row_of(spec)->registers);
  return spec->registers / spec->schedulers / of_warp * spec->schedulers;
}

uint64_t allocation_registers(const machine_spec *spec, uint64_t warps, uint64_t registers) {
  if (spec->exact_allocation) return warps * WARP * registers;
  uint64_t fitting = allocation_warps(spec, registers);
  return fitting ? warps * (spec->registers / fitting) : spec->registers;
}

uint64_t allocation_shared(const machine_spec *spec, uint64_t bytes) {
  if (spec->exact_allocation) return bytes;
  const allocation_row *row = row_of(spec);
  return round_up(bytes + row->reserved, row->shared);
}

uint64_t allocation_shared_each(const machine_spec *spec, uint64_t blocks) {
  uint64_t each = spec->shared_bytes / blocks;
  if (spec->exact_allocation) return each;
  const allocation_row *row = row_of(spec);
  each = each / row->shared * row->shared;
  return each > row->reserved ? each - row->reserved : 0;
}
