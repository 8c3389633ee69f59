/* SPDX-License-Identifier: Apache-2.0 */
/* multimem.ld_reduce, multimem.st, multimem.red: one access of a lane to the memory of every member of a team.
 *
 * What the switch adds up in which order is not documented: here it is the order in which the devices were added to the
 * team, each step rounded to the type, or with .acc::f32 once at the end. multimem.red is what red.global does, at each
 * member. Element by element no other thread sees a part; a vector is seen in parts, as the manual allows. */
#include "exec/memory/multimem.h"

#include <string.h>

#include "exec/launch/fault.h"

typedef struct cells { /* of one access: member m's bytes of lane l */
  uint32_t members;
  unsigned char *at[EXEC_TEAM_MAX][EXEC_LANES];
} cells;

static uint64_t lane_address(const core_warp *w, const exec_instr *i, uint32_t lane) {
  return exec_u64(&w->x, i->src[0])[lane] + (uint64_t)i->immediate;
}

uint32_t core_team_locate(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, uint32_t bytes,
                          unsigned char *at[EXEC_TEAM_MAX]) {
  const exec_access *a = i->side;
  if (address & (bytes - 1)) core_fault_access(w, i, lane, EXEC_FAULT_MISALIGNED, address, bytes);
  if (w->block->ranges) core_declared_check_lane(w, i, lane, address, bytes);
  exec_team_view view = exec_multicast_find(address);
  const exec_multicast *team = view.team;
  if (!team)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_ADDRESS, address, "multimem at 0x%llx, which is no multicast memory",
               (unsigned long long)address);
  bool reads = a->op != EXEC_OP_STORE, writes = a->op != EXEC_OP_LOAD;
  if ((reads && !view.reads) || (writes && !view.writes))
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_ADDRESS, address,
               "multimem at 0x%llx, in multicast memory that this device may not %s (cuMemSetAccess says who may)",
               (unsigned long long)address, writes ? "write" : "read");
  uint64_t piece = view.offset / team->piece_bytes;
  for (uint32_t m = 0; m < team->members; m++) {
    unsigned char *host = team->host[piece * team->members + m];
    if (!host)
      core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_ADDRESS, address,
                 "multimem at 0x%llx, where the device added as number %u of %u has bound no memory",
                 (unsigned long long)address, m + 1, team->members);
    at[m] = host + view.offset % team->piece_bytes;
  }
  return team->members;
}

/* Fills *c for one lane. */
static void locate(core_warp *w, const exec_instr *i, uint32_t lane, cells *c) {
  const exec_access *a = i->side;
  unsigned char *at[EXEC_TEAM_MAX];
  c->members = core_team_locate(w, i, lane, lane_address(w, i, lane), (uint32_t)a->bytes * a->elements, at);
  for (uint32_t m = 0; m < c->members; m++) c->at[m][lane] = at[m];
}

/* ---- one element of all lanes ---- */

/* As atomic operations have their operands: a slot of 4 bytes a lane, or of 8. */
typedef union slot {
  uint32_t narrow[EXEC_LANES];
  uint64_t wide[EXEC_LANES];
} slot;

static void take(slot *s, uint32_t lane, uint32_t bytes, const unsigned char *from) {
  if (bytes == 8) s->wide[lane] = __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_RELAXED);
  else if (bytes == 4) s->narrow[lane] = __atomic_load_n((const uint32_t *)(const void *)from, __ATOMIC_RELAXED);
  else s->narrow[lane] = __atomic_load_n((const uint16_t *)(const void *)from, __ATOMIC_RELAXED);
}

/* A register may be wider than the element. */
static uint64_t from_register(const core_warp *w, const exec_access *a, uint32_t element, uint32_t lane) {
  return a->slot_bytes == 8 ? exec_u64(&w->x, a->data[element])[lane] : exec_u32(&w->x, a->data[element])[lane];
}

static void to_register(core_warp *w, const exec_access *a, uint32_t element, uint32_t lane, uint64_t value) {
  if (a->slot_bytes == 8) exec_u64(&w->x, a->data[element])[lane] = value;
  else exec_u32(&w->x, a->data[element])[lane] = (uint32_t)value;
}

static void load_element(core_warp *w, const exec_multimem *mm, const cells *c, uint32_t element) {
  const exec_access *a = &mm->access;
  uint32_t at = element * a->bytes;
  uint64_t sum[EXEC_LANES] = {0};
  void *cell[EXEC_LANES] = {0};
  slot value = {{0}};
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    cell[lane] = &sum[lane];
    take(&value, lane, a->bytes, c->at[0][lane] + at);
    sum[lane] = a->bytes == 8 ? value.wide[lane] : value.narrow[lane];
  }
  for (uint32_t member = 1; member < c->members; member++) {
    for (uint32_t m = w->active; m; m &= m - 1) {
      uint32_t lane = (uint32_t)__builtin_ctz(m);
      take(&value, lane, a->bytes, c->at[member][lane] + at);
    }
    mm->reduce(cell, &value, &value, NULL, w->active, true);
  }
  for (uint32_t m = w->active; m; m &= m - 1)
    to_register(w, a, element, (uint32_t)__builtin_ctz(m), sum[__builtin_ctz(m)]);
}

/* .acc::f32: halves, one or two to a cell. */
static void sum_element(core_warp *w, const exec_multimem *mm, const cells *c, uint32_t element) {
  const exec_access *a = &mm->access;
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m), result = 0;
    for (uint32_t half = 0; half < a->bytes; half += 2) {
      uint16_t values[EXEC_TEAM_MAX];
      for (uint32_t member = 0; member < c->members; member++)
        memcpy(&values[member], c->at[member][lane] + element * a->bytes + half, 2);
      result |= (uint32_t)exec_sum_halves(mm->bf16, values, c->members) << 8 * half;
    }
    to_register(w, a, element, lane, result);
  }
}

static void store_element(core_warp *w, const exec_access *a, const cells *c, uint32_t element) {
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    uint64_t value = from_register(w, a, element, lane);
    for (uint32_t member = 0; member < c->members; member++) {
      void *to = c->at[member][lane] + element * a->bytes;
      if (a->bytes == 8) __atomic_store_n((uint64_t *)to, value, __ATOMIC_RELAXED);
      else if (a->bytes == 4) __atomic_store_n((uint32_t *)to, (uint32_t)value, __ATOMIC_RELAXED);
      else __atomic_store_n((uint16_t *)to, (uint16_t)value, __ATOMIC_RELAXED);
    }
  }
}

static void reduce_element(core_warp *w, const exec_access *a, const cells *c, uint32_t element) {
  slot value = {{0}};
  void *cell[EXEC_LANES] = {0};
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    uint64_t given = from_register(w, a, element, lane);
    if (a->bytes == 8) value.wide[lane] = given;
    else value.narrow[lane] = (uint32_t)given;
  }
  for (uint32_t member = 0; member < c->members; member++) {
    for (uint32_t m = w->active; m; m &= m - 1)
      cell[__builtin_ctz(m)] = c->at[member][__builtin_ctz(m)] + element * a->bytes;
    a->atomic(cell, &value, &value, NULL, w->active, false);
  }
}

void core_multimem(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_multimem *mm = i->side;
  const exec_access *a = &mm->access;
  uint64_t address[EXEC_LANES] = {0};
  cells c = {.members = 0};
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    locate(w, i, lane, &c);
    address[lane] = lane_address(w, i, lane);
  }
  if (core_tells_places(w)) core_trace_gather(w, i, address, 0, (uint32_t)a->bytes * a->elements, w->active);
  if (a->poll) core_poll(w);
  for (uint32_t element = 0; element < a->elements; element++) {
    if (a->op == EXEC_OP_STORE) store_element(w, a, &c, element);
    else if (a->op == EXEC_OP_ATOMIC) reduce_element(w, a, &c, element);
    else if (mm->reduce) load_element(w, mm, &c, element);
    else sum_element(w, mm, &c, element);
  }
}
