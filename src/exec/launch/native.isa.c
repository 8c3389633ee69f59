/* SPDX-License-Identifier: Apache-2.0 */
/* What compiled code calls (native.h), for each instruction set. */
#include "exec/memory/access.h"
#include "exec/instructions/lanes.h"
#include "exec/launch/native.h"
#include "trace/coalesce.h"

static void run_lanes(core_warp *w, const exec_instr *i, uint32_t lanes) {
  uint32_t active = w->active, mask = w->x.mask;
  if (!lanes) return;
  w->active = w->x.mask = lanes;
  for (uint32_t l = 0; l < EXEC_LANES; l++) w->x.lanes[l] = -(int32_t)(lanes >> l & 1);
  i->run[1](&w->x, i);
  w->active = active;
  w->x.mask = mask;
  for (uint32_t l = 0; l < EXEC_LANES; l++) w->x.lanes[l] = -(int32_t)(mask >> l & 1);
}

static uint32_t guarded_lanes(const core_warp *w, const exec_instr *i, uint32_t running) {
  uint32_t predicate = *exec_pred(&w->x, i->guard);
  return (i->guard_negated ? ~predicate : predicate) & running;
}

static void run_guarded(core_warp *w, const exec_instr *i) { run_lanes(w, i, guarded_lanes(w, i, w->active)); }

static void run_masked(core_warp *w, const exec_instr *i, uint32_t running) {
  uint32_t count = w->active_count;
  w->active_count = core_lane_count(running);
  run_lanes(w, i, i->guard == EXEC_NO_GUARD ? running : guarded_lanes(w, i, running));
  w->active_count = count;
}

/* What compiled code and handlers look at, after the running split has changed in a frame. */
static void settle(core_warp *w) {
  typedef int32_t quad __attribute__((vector_size(16)));
  uint32_t mask = w->active;
  w->x.mask = mask == w->frame->lanes ? UINT32_MAX : mask;
  quad all = {(int32_t)mask, (int32_t)mask, (int32_t)mask, (int32_t)mask}, bits = {1, 2, 4, 8};
  for (uint32_t n = 0; n < EXEC_LANES / 4; n++, bits <<= 4) ((quad *)(void *)w->x.lanes)[n] = (all & bits) != 0;
}

/* Where the running split of this frame goes on. */
static uint32_t place_in(core_warp *w, const exec_frame *frame) {
  settle(w);
  if (w->frame != frame || (w->active == EXEC_ALL_LANES && !w->ready_count)) return EXEC_NATIVE_NOWHERE;
  return (uint32_t)(w->pc - w->function->code);
}

static uint32_t diverge(core_warp *w, const exec_instr *i, uint32_t taken) {
  const exec_frame *frame = w->frame;
  core_diverge(w, i, taken);
  /* both ways lead to one place, or another split waits there */
  if (core_key(frame, w->pc) >= w->next_key) core_switch(w);
  return place_in(w, frame);
}

static uint32_t meet(core_warp *w, const exec_instr *i) {
  const exec_frame *frame = w->frame;
  w->pc = i;
  core_switch(w);
  return place_in(w, frame);
}

static uint32_t indexed(core_warp *w, const exec_instr *i) {
  const exec_frame *frame = w->frame;
  core_branch_indexed(w, i);
  if (w->pc <= i && w->budget < 0) return EXEC_NATIVE_OVER;
  if (w->ready_count) core_switch(w);
  return place_in(w, frame);
}

/* Registers whose lanes have `first`, and `step` more from lane to lane: as many lanes at a time as AVX2 has in one of
 * its registers, each time so much more than before. A multiplication of 64 bits for every lane would take most of the
 * time.
 */
typedef uint64_t four_lanes __attribute__((vector_size(32)));
typedef uint32_t eight_lanes __attribute__((vector_size(32)));
typedef four_lanes four_cells __attribute__((may_alias, aligned(32)));
typedef eight_lanes eight_cells __attribute__((may_alias, aligned(32)));

#define FIRST_FOUR(first, step) \
  { first, (first) + (step), (first) + 2 * (step), (first) + 3 * (step) }
#define LADDER \
  { 0, 1, 2, 3, 4, 5, 6, 7 }

static bool linear_64(const unsigned char *cells, uint64_t step) {
  const four_cells *value = (const four_cells *)(const void *)cells;
  uint64_t first = value[0][0];
  four_lanes here = FIRST_FOUR(first, step), apart = {0};
  for (uint32_t n = 0; n < EXEC_LANES / 4; n++, here += 4 * step) apart |= value[n] ^ here;
  return !(apart[0] | apart[1] | apart[2] | apart[3]);
}

static bool linear_32(const unsigned char *cells, uint32_t step) {
  const eight_cells *value = (const eight_cells *)(const void *)cells;
  eight_lanes here = LADDER, apart = {0};
  here = value[0][0] + here * step;
  for (uint32_t n = 0; n < EXEC_LANES / 8; n++, here += 8 * step) apart |= value[n] ^ here;
  four_lanes both = (four_lanes)apart;
  return !(both[0] | both[1] | both[2] | both[3]);
}

static void put_linear_64(unsigned char *cells, uint64_t first, uint64_t step) {
  four_cells *value = (four_cells *)(void *)cells;
  four_lanes here = FIRST_FOUR(first, step);
  for (uint32_t n = 0; n < EXEC_LANES / 4; n++, here += 4 * step) value[n] = here;
}

static void put_linear_32(unsigned char *cells, uint32_t first, uint32_t step) {
  eight_cells *value = (eight_cells *)(void *)cells;
  eight_lanes here = LADDER;
  here = first + here * step;
  for (uint32_t n = 0; n < EXEC_LANES / 8; n++, here += 8 * step) value[n] = here;
}

/* All lanes are the same, or as the step says, or the answer is not needed. */
static bool collect(const core_warp *w, const uint32_t *places, uint64_t *values, uint32_t at) {
  bool known = at & EXEC_NATIVE_KNOWN, good = true;
  for (; *places != UINT32_MAX; places += 3) {
    const unsigned char *cells = w->x.base[0] + (*places & ~3u);
    if (*places & 2) {
      uint32_t lanes = *(const uint32_t *)(const void *)cells;
      good &= known || lanes + 1 <= 1; /* none or all */
      values[places[1]] = lanes & 1;
    } else if (*places & 1) {
      good &= known || linear_64(cells, (uint64_t)(int64_t)(int32_t)places[2]);
      values[places[1]] = *(const uint64_t *)(const void *)cells;
    } else {
      good &= known || linear_32(cells, places[2]);
      values[places[1]] = *(const uint32_t *)(const void *)cells;
    }
  }
  return good;
}

static void spread(core_warp *w, const uint32_t *places, const uint64_t *values) {
  for (; *places != UINT32_MAX; places += 3) {
    unsigned char *cells = w->x.base[0] + (*places & ~3u);
    uint64_t value = values[places[1]];
    /* of a predicate only that bit was written */
    if (*places & 2) *(uint32_t *)(void *)cells = value & 1 ? UINT32_MAX : 0;
    else if (*places & 1) put_linear_64(cells, value, (uint64_t)(int64_t)(int32_t)places[2]);
    else put_linear_32(cells, (uint32_t)value, places[2]);
  }
}

static void count(core_warp *w, uint32_t end) { core_count(w, end); }

static uint32_t bytes_of(const exec_instr *i) {
  const exec_access *a = i->side;
  return (uint32_t)a->bytes * a->elements;
}

/* What the interpreter does in watch_shape (access.isa.c). Constants are not declared; one for all lanes takes no
 * cycle more. */
static bool is_constant(const exec_instr *i) { return ((const exec_access *)i->side)->space == PTX_SPACE_CONST; }

static void watch_scattered(core_warp *w, const exec_instr *i, const uint64_t *value) {
  if (w->block->ranges) core_declared_check(w, i, value, bytes_of(i), false);
  if (w->trace && is_constant(i)) core_trace_const(w, i, value, w->active);
  else if (core_tells_places(w) && !is_constant(i))
    core_trace_gather(w, i, value, (uint64_t)i->immediate, bytes_of(i), w->active);
}

/* As scattered ones: lane l at address + l * step. */
static void watch_steps(core_warp *w, const exec_instr *i, uint64_t address, uint64_t step) {
  uint64_t value[EXEC_LANES];
  for (uint32_t l = 0; l < EXEC_LANES; l++) value[l] = address + l * step - (uint64_t)i->immediate;
  if (w->block->ranges) core_declared_check(w, i, value, bytes_of(i), true);
  if (w->trace && is_constant(i)) core_trace_const(w, i, value, w->active);
}

static void watch_row(core_warp *w, const exec_instr *i, uint64_t address) {
  uint32_t bytes = bytes_of(i);
  if (w->block->ranges || is_constant(i)) watch_steps(w, i, address, bytes);
  if (core_tells_places(w) && !is_constant(i))
    core_trace_row(w, i, address + (uint64_t)__builtin_ctz(w->active) * bytes, bytes, w->active);
}

static void watch_one(core_warp *w, const exec_instr *i, uint64_t address) {
  if (is_constant(i)) return;
  if (w->block->ranges) watch_steps(w, i, address, 0);
  if (core_tells_places(w)) core_trace_one(w, i, address, bytes_of(i), w->active);
}

static uint32_t conflicts(const core_warp *w, const uint32_t *offset) {
  return trace_shared_passes(offset, 4, w->active) - 1;
}

const exec_native_api ISA(exec_native_calls) = {
    .guarded = run_guarded,
    .collect = collect,
    .spread = spread,
    .count = count,
    .waits = core_trace_waits,
    .mark = core_mark,
    .row = watch_row,
    .one = watch_one,
    .scattered = watch_scattered,
    .conflicts = conflicts,
    .passes = core_trace_passes,
    .diverge = diverge,
    .meet = meet,
    .indexed = indexed,
    .masked = run_masked,
};
