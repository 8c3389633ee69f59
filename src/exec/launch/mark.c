/* SPDX-License-Identifier: Apache-2.0 */
/* Marked regions of a kernel in the access stream: ENTER and LEAVE, and how many trips a region's loop will make.
 *
 *      core_mark (at entry)                      core_mark (at exit), core_mark_check, a barrier, EXIT
 *   (outside) -------------> inside = the lanes ----------------------------------------------------> (outside)
 *
 * While `inside` is not 0, all lanes of the running split are in it (checked before each record), so all records
 * between ENTER and LEAVE are those lanes'. Marks change neither what runs nor when. Lanes that diverge in a region
 * reconverge in it or at its exit, before any other lanes of the warp run (ptx/analysis/cfg.h has a region's blocks in
 * a row). Only lanes that give way to others in a region (core_rotate: they wait for them) end it early: the stream
 * gets the LEAVE, and where they go on is outside. */
#include "exec/core.h"

/* The value of a bound in a lane, as the counter's type has it. */
static __int128 bound_value(const core_warp *w, const exec_mark *m, const exec_bound *bound, uint32_t slot,
                            uint32_t bytes, uint32_t lane) {
  uint64_t value = (uint64_t)bound->value;
  if (slot != EXEC_NO_OFFSET) {
    const unsigned char *cells = w->frame->registers + slot;
    uint64_t cell =
        bytes == 8 ? ((const uint64_t *)(const void *)cells)[lane] : ((const uint32_t *)(const void *)cells)[lane];
    if (bytes == 4 && m->bits == 64 && m->is_signed) cell = (uint64_t)(int64_t)(int32_t)(uint32_t)cell;
    value += cell;
  }
  if (m->bits == 32) return m->is_signed ? (__int128)(int32_t)(uint32_t)value : (__int128)(uint32_t)value;
  return m->is_signed ? (__int128)(int64_t)value : (__int128)value;
}

/* Steps from `from` until the counter is no longer below `to` (or equal to it, if `also`); both were mirrored if it
 * goes down. */
static __int128 steps_below(__int128 from, __int128 to, __int128 step, bool also) {
  __int128 way = to - from + also;
  return way <= 0 ? 0 : (way + step - 1) / step;
}

#define ENDLESS ((__int128)1 << 100)

/* Steps until the counter is `to`, which may lie beyond its type's end. */
static __int128 steps_to(const exec_mark *m, __int128 from, __int128 to) {
  __int128 way = m->step > 0 ? to - from : from - to, size = m->step > 0 ? m->step : -(__int128)m->step;
  if (way < 0) way += (__int128)1 << m->bits;
  return way % size ? ENDLESS : way / size;
}

/* How often the counter is COMPARE to, in a row, from `from` on; ENDLESS: it would have to wrap around. */
static __int128 count_steps(const exec_mark *m, __int128 from, __int128 to) {
  __int128 step = m->step;
  switch (m->compare) {
  case PTX_MOD_EQ: return from == to;
  case PTX_MOD_NE: return steps_to(m, from, to);
  case PTX_MOD_LT:
  case PTX_MOD_LO: return step > 0 ? steps_below(from, to, step, false) : from < to ? ENDLESS : 0;
  case PTX_MOD_LE:
  case PTX_MOD_LS: return step > 0 ? steps_below(from, to, step, true) : from <= to ? ENDLESS : 0;
  case PTX_MOD_GT:
  case PTX_MOD_HI: return step < 0 ? steps_below(-from, -to, -step, false) : from > to ? ENDLESS : 0;
  case PTX_MOD_GE:
  case PTX_MOD_HS: return step < 0 ? steps_below(-from, -to, -step, true) : from >= to ? ENDLESS : 0;
  default: return ENDLESS;
  }
}

/* Does the counter stay in its type on the way? */
static bool fits(const exec_mark *m, __int128 last) {
  __int128 one = 1, low = m->is_signed ? -(one << (m->bits - 1)) : 0,
           high = m->is_signed ? (one << (m->bits - 1)) - 1 : (one << m->bits) - 1;
  return last >= low && last <= high;
}

static uint32_t lane_trips(const core_warp *w, const exec_region *r, uint32_t lane) {
  const exec_mark *m = &r->mark;
  __int128 from = bound_value(w, m, &m->from, r->from, r->from_bytes, lane),
           to = bound_value(w, m, &m->to, r->to, r->to_bytes, lane);
  __int128 more = count_steps(m, from, to), trips = more + !m->tested_first;
  if (more >= ENDLESS || (m->compare != PTX_MOD_NE && !fits(m, from + more * m->step))) return 0;
  return trips < TRACE_TRIPS_MAX ? (uint32_t)trips : TRACE_TRIPS_MAX;
}

static bool is_known(const exec_mark *m, const exec_region *r) {
  return m->step && (m->bits == 32 || m->bits == 64) && (m->from.reg == PTX_NO_REG || r->from != EXEC_NO_OFFSET) &&
         (m->to.reg == PTX_NO_REG || r->to != EXEC_NO_OFFSET);
}

/* The most of any lane. */
static uint32_t trips_of(const core_warp *w, const exec_region *r) {
  uint32_t most = r->mark.trips;
  if (most || !is_known(&r->mark, r)) return most;
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t trips = lane_trips(w, r, (uint32_t)__builtin_ctz(m));
    most = trips > most ? trips : most;
  }
  return most;
}

static const exec_region *region_at(const exec_function *f, uint32_t entry) {
  uint32_t low = 0, high = f->region_count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (f->regions[middle].mark.entry < entry) low = middle + 1;
    else high = middle;
  }
  return low < f->region_count && f->regions[low].mark.entry == entry ? &f->regions[low] : NULL;
}

/* Of the function that a region is in: only the kernel's own has any, and stands at the bottom of the calls, so its pcs
 * begin at 0. */
static uint32_t mark_pc(const exec_region *r) { return r->mark.entry; }

void core_mark_leave(core_warp *w) {
  trace_put_leave(w->trace, mark_pc(w->region));
  w->inside = 0;
}

void core_mark(core_warp *w, const exec_instr *i) {
  if (w->inside && i->index == w->region->mark.entry) return; /* once more around its loop */
  core_trace_issue(w, i->index);
  if (w->inside) core_mark_leave(w);
  const exec_region *r = region_at(w->function, i->index);
  if (!r) return;
  w->region = r;
  w->inside = w->active;
  trace_put_enter(w->trace, mark_pc(r), trips_of(w, r));
}
