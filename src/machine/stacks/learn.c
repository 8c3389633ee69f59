/* SPDX-License-Identifier: Apache-2.0 */
/* Learning a map (Hsieh et al., ISCA 2016, sections 3.2.3 and 4.3): the copies that bring data to the GPU wait, the
 * program begins with its data in CPU memory, and when enough instances of candidates have been seen the best map is
 * installed and the copies are carried out.
 *
 *   first operations        copies to the GPU are put down, and take no time
 *   kernels                 run on the GPU alone; accesses go over the link to the host; each instance's lines are looked at (partition/colocate.h)
 *                           (its first LEARN_ACCESSES accesses: a loop over the link would take long); no more blocks
 *                           run than are needed
 *   enough instances        the SMs stop; ranges that candidates reach get the map found, all others the default one; what was put down, and what kernels
 *                           wrote meanwhile, goes over the link to the stacks; the SMs go on
 *
 * The copies wait for no kernel that has no candidates: they are carried out with the default map then, kernels go on
 * as ever, and what lies elsewhere under the map that is found later moves within the GPU. Nor do they wait for longer
 * than LEARN_PATIENCE_US: then the default map stays.
 *
 * The copies are those that would have been made anyway. Managers that page bring data by far-faults, or at times of
 * their own: there nothing waits, kernels run with the default map while it is learned, and what is
 * resident and gets another place is moved within the stacks.
 *
 * A byte that was put down is copied once (or not at all, if the program ends before): ranges that were put down are
 * sorted and do not touch each other. That, and that nothing is learned after a map is installed, is asserted at the
 * deep check level. */
#include "machine/stacks/learn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "machine/host/host_transfer.h"
#include "machine/host/link.h"
#include "machine/observe/observer.h"
#include "machine/sm/dispatch.h"

/* of kernels with their data in CPU memory (our choice: some 15 are enough where instances come as fast as warps do) */
enum { LEARN_PATIENCE_US = 20 };

void learner_begin(learner *l) {
  const stacks *k = l->stacks;
  if (!k || k->choice.kind != SIM_MAP_LEARNED || !k->offloading->instances) return;
  l->learns = true;
  l->wanted = (uint64_t)ceil(k->choice.share * (double)k->offloading->instances);
  l->delays = l->manager->placement == MANAGER_PROGRAM;
}

void learner_end(learner *l) {
  l->learns = l->delays = false;
  colocate_free(l->stats);
  free(l->ranges.items);
  free(l->delayed.items);
  l->stats = NULL;
  l->ranges.items = NULL;
  l->ranges.count = l->ranges.capacity = 0;
  l->delayed.items = NULL;
  l->delayed.count = l->delayed.capacity = 0;
}

/* ---- what waits ---- */

static void check_delayed(const learner *l) {
  for (size_t i = 1; i < l->delayed.count; i++)
    FF_ASSERT(l->delayed.items[i - 1].address + l->delayed.items[i - 1].bytes < l->delayed.items[i].address);
}

/* The bytes of a range that are not put down yet are. */
static void put_down(learner *l, uint64_t address, uint64_t bytes, bool pageable) {
  uint64_t end = address + bytes;
  size_t first = 0, last, high = l->delayed.count;
  while (first < high) { /* the first that ends no earlier than this begins */
    size_t middle = (first + high) / 2;
    if (l->delayed.items[middle].address + l->delayed.items[middle].bytes < address) first = middle + 1;
    else high = middle;
  }
  for (last = first; last < l->delayed.count && l->delayed.items[last].address <= end; last++) {
    const delayed_range *old = &l->delayed.items[last];
    if (old->address < address) address = old->address;
    if (old->address + old->bytes > end) end = old->address + old->bytes;
    pageable |= old->pageable;
  }
  delayed_range whole = {address, end - address, pageable};
  if (first == last) FF_PUSH(&l->delayed, whole);
  size_t tail = l->delayed.count - (first == last) - last; /* behind what was joined */
  memmove(&l->delayed.items[first + 1], &l->delayed.items[last], tail * sizeof whole);
  l->delayed.items[first] = whole;
  l->delayed.count = first + 1 + tail;
  if (ff_check_level >= 2) check_delayed(l);
}

void learner_delay(learner *l, const trace_op *op) {
  uint64_t rows = op->copy.to_pitch == op->copy.width ? 1 : op->copy.height,
           width = rows == 1 ? op->copy.width * op->copy.height : op->copy.width;
  for (uint64_t row = 0; row < rows; row++) put_down(l, op->copy.to + row * op->copy.to_pitch, width, !op->copy.pinned);
}

void learner_wrote(learner *l, uint64_t line) { put_down(l, line, TRACE_LINE_BYTES, false); }

/* Over the link to the host accesses are slow, and those that wait for it hold up the copies: no more warps run than
 * there are instances to be seen. */
bool learner_holds(const learner *l, const kernel *k) {
  return l->delays && l->dispatch->running_blocks &&
         (uint64_t)l->dispatch->running_blocks * k->warps_per_block >= l->wanted - l->seen;
}

/* With the default map: the data is the GPU's from then on. */
static ps end_delay(learner *l, ps time) {
  ps end = time;
  l->delays = false;
  for (size_t i = 0; i < l->delayed.count; i++) {
    const delayed_range *r = &l->delayed.items[i];
    l->stacks->result.delayed_bytes += r->bytes;
    ps over = transfer_delayed(l->transfers, r->address, r->bytes, r->pageable, time);
    if (over > end) end = over;
  }
  l->delayed.count = 0;
  return end;
}

/* The SMs stand still. The delayed copies are those of the program, so that their time is told apart; what moves within
 * the GPU is not. */
static void stop_until(learner *l, ps time, ps end, bool delayed) {
  if (end <= time) return;
  warps_stop(l->front, end);
  if (delayed) l->stacks->result.stopped_ps += end - time;
}

void learner_kernel(learner *l, const trace_launch *launch, ps time) {
  stacks *k = l->stacks;
  if (!l->began) l->from = time;
  if (!l->began) l->until = time + LEARN_PATIENCE_US * UINT64_C(1000000);
  l->began = true;
  if (l->delays && k->offloading->any && !k->offloading->any(k->offloading->context, launch))
    stop_until(l, time, end_delay(l, time), true);
}

/* ---- what is looked at ---- */

static int by_address(const void *a, const void *b) {
  const colocate_range *x = a, *y = b;
  return (x->address > y->address) - (x->address < y->address);
}

static void stats_make(learner *l) {
  for (uint32_t i = 1; i < l->pager->allocations.count; i++) {
    const pager_allocation *a = &l->pager->allocations.items[i];
    if (a->live && a->bytes && a->kind != TRACE_MEMORY_PINNED && a->kind != TRACE_MEMORY_HOST)
      FF_PUSH(&l->ranges, ((colocate_range){a->address, a->bytes}));
  }
  if (l->ranges.count) qsort(l->ranges.items, l->ranges.count, sizeof *l->ranges.items, by_address);
  l->stats = colocate_create(l->stacks->bits, l->ranges.items, (uint32_t)l->ranges.count);
}

/* Candidates that come later may touch what the first instances did not: which allocations candidates reach is known of
 * the program as a whole (the ranges of the oracle, without its maps), as a compiler would find it from the pointers
 * that they use. */
static bool is_reached(const stacks *k, const colocate_range *r) {
  for (uint32_t i = 0; i < k->offloading->oracle_count; i++) {
    const sim_range_map *o = &k->offloading->oracle[i];
    if (o->address < r->address + r->bytes && r->address < o->address + o->bytes) return true;
  }
  return false;
}

static void install(learner *l) {
  stacks *k = l->stacks;
  uint32_t highest = sim_highest_pair(l->spec->sm_count, l->spec->max_threads, k->count);
  colocate_bound(l->stats, highest);
  if (k->offloading->follows) colocate_lean(l->stats, highest - 1);
  uint32_t lowest = colocate_best_pair(l->stats);
  stack_map pair = colocate_worth(l->stats, lowest) ? stack_map_pair(lowest, k->bits) : stack_map_baseline(k->bits),
            *maps = ff_alloc((l->ranges.count + 1) * sizeof *maps);
  if (k->choice.linear) colocate_linear(l->stats, maps);
  for (uint32_t i = 0; i < l->ranges.count; i++) {
    const colocate_range *r = &l->ranges.items[i];
    bool touched = colocate_touched(l->stats, i);
    if (touched || is_reached(k, r))
      FF_PUSH(&k->ranges, ((sim_range_map){r->address, r->bytes, k->choice.linear && touched ? maps[i] : pair}));
  }
  free(maps);
}

static uint64_t resident_in(learner *l, const sim_range_map *r) {
  uint64_t bytes = 0;
  pager_held held = pager_held_begin(l->pager, r->address, r->bytes);
  for (const pager_unit *unit; (unit = pager_held_next(&held));)
    bytes += unit->state == PAGER_RESIDENT ? pager_bytes(l->pager, unit) : 0;
  return bytes;
}

/* Over the link, range after range; or what is there already of the ranges with a new map, within the GPU. */
static ps carry_out(learner *l, ps time) {
  uint64_t moved = 0;
  if (l->delays) return end_delay(l, time);
  for (size_t i = 0; i < l->stacks->ranges.count; i++)
    moved += manager_pages(l->manager) ? resident_in(l, &l->stacks->ranges.items[i]) : l->stacks->ranges.items[i].bytes;
  l->stacks->result.moved_bytes += moved;
  return moved ? link_device_copy(l->link, 2 * moved, time) : time;
}

static void finish(learner *l, ps end) {
  stacks *k = l->stacks;
  k->result.learning_ps = end - l->from;
  k->result.learning_kernel_ps =
      l->observer->counters.kernel_ps +
      (l->dispatch->kernels.running && end > l->dispatch->kernels.since ? end - l->dispatch->kernels.since : 0);
  stacks_describe(k);
  if (!k->result.found[0]) stack_map_text(&k->baseline, k->result.found, sizeof k->result.found);
  learner_end(l);
}

void learner_instance(learner *l, const stack_instance *i, ps time) {
  stacks *k = l->stacks;
  FF_CHECK_DEEP(l->learns);
  if (!l->stats) stats_make(l);
  colocate_instance(l->stats, i->lines.items, (uint32_t)i->lines.count);
  k->result.learned_instances++;
  if (++l->seen < l->wanted) return;
  bool held = l->delays;
  install(l);
  ps end = carry_out(l, time);
  stop_until(l, time, end, held);
  finish(l, end);
  if (held) dispatch_again(l->dispatch, end);
}

/* The data has been away for too long: the default map it is. */
void learner_look(learner *l, ps time) {
  if (time < l->until) return;
  ps end = end_delay(l, time);
  stop_until(l, time, end, true);
  finish(l, end);
  dispatch_again(l->dispatch, end);
}
