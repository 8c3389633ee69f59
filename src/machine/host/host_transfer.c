/* SPDX-License-Identifier: Apache-2.0 */
/* The program's own copies, sets and prefetches, and the host's accesses to managed memory, under each placement:
 *
 *                  MANAGER_PROGRAM                  MANAGER_PAGED                          MANAGER_EVERYWHERE
 *   H2D            over the link                    host write: pages are the CPU's        nothing
 *   D2H            over the link                    host read: dirty pages come back       nothing
 *   D2D, set       GPU memory's bandwidth           the same, after absent pages came;     GPU memory's bandwidth
 *                                                   pages written whole need not come
 *   managed        whole allocations: in before a   as all other memory                    nothing
 *                  kernel, back when the host waits;
 *                  or pages (paging/managed_pages.c)
 *
 * MANAGER_REMOTE: copies between host and device cost nothing, as under PAGED with every page on the CPU; what the GPU
 * copies or sets goes over the link.
 *
 * A managed allocation, or page, that the CPU holds is written and read by copies in host memory. */
#include <math.h>

#include "machine/simulation.h"
#include "machine/stacks/learn.h"

typedef pager_moves (*range_function)(pager *p, uint64_t address, uint64_t bytes);

/* Applies f to each row of a pitched range, or at once if the rows touch. */
static pager_moves over_rows(sim *s, range_function f, uint64_t address, uint64_t width, uint64_t height,
                             uint64_t pitch) {
  pager_moves sum = {0};
  if (pitch == width || height <= 1) return f(s->pager, address, width * height);
  for (uint64_t row = 0; row < height; row++) {
    pager_moves moves = f(s->pager, address + row * pitch, width);
    sum.units += moves.units;
    sum.bytes += moves.bytes;
  }
  return sum;
}

static pager_moves copy_write(pager *p, uint64_t address, uint64_t bytes) {
  pager_copy_write(p, address, bytes);
  return (pager_moves){0};
}

static uint64_t span(uint64_t width, uint64_t height, uint64_t pitch) {
  return height ? (height - 1) * pitch + width : 0;
}

static void count_copied(sim *s, uint64_t address, bool in, uint64_t bytes) {
  sim_counters *a =
      &s->observer.allocations.items[s->pager->allocations.items[pager_find(s->pager, address)->allocation].owner]
           ->counters;
  *(in ? &a->h2d_bytes : &a->d2h_bytes) += bytes;
  *(in ? &s->observer.counters.h2d_bytes : &s->observer.counters.d2h_bytes) += bytes;
}

static ps host_copy(const sim *s, uint64_t bytes, ps time) {
  return time + (ps)llround(s->t.host_per_byte * (double)bytes);
}

/* Pages over the link in one transfer. What the host asked for costs it host_fault_us per fault_page_bytes, whatever
 * the unit of the GPU's far-faults is; segments know what is where: their copies are copies, and a touch is one
 * fault. */
static ps carry_moves(sim *s, bool in, pager_moves moves, ps time) {
  if (!moves.units) return time;
  ps end = link_copy(&s->link, HISTORY_CAUSE_COPY, in, moves.bytes, false, time);
  if (in) return end;
  uint64_t pages = (moves.bytes + s->spec->fault_page_bytes - 1) / s->spec->fault_page_bytes;
  uint64_t faults = moves.units < pages ? moves.units : pages;
  if (s->manager->segments) faults = 0;
  s->observer.counters.host_faults += faults;
  history_add(s->observer.history, HISTORY_host_faults, time, faults);
  return end + faults * s->t.host_fault;
}

/* ---- MANAGER_PROGRAM: managed allocations ---- */

static ps managed_in(sim *s, uint32_t index, ps time) {
  uint64_t bytes = pager_managed_in(s->pager, index);
  return bytes ? link_copy(&s->link, HISTORY_CAUSE_MANAGED, true, bytes, false, time) : time;
}

/* Managed pages: they become the GPU's, what the CPU wrote is copied, run by run. */
static ps pages_in(sim *s, ps time) {
  ps end = time;
  if (!pager_managed_unmap(s->pager)) return time;
  for (size_t i = 0; i < s->pager->to_bring.count; i++)
    end = link_copy(&s->link, HISTORY_CAUSE_MANAGED, true, s->pager->to_bring.items[i].bytes, false, time);
  return end + s->t.managed_launch;
}

ps transfer_managed_in(sim *s, ps time) {
  ps end = time;
  if (s->manager->placement != MANAGER_PROGRAM) return time;
  if (s->manager->cpu_fault_bytes) return pages_in(s, time);
  for (uint32_t i = 1; i < s->pager->allocations.count; i++) {
    ps over = managed_in(s, i, time);
    if (over > end) end = over;
  }
  return end;
}

ps transfer_managed_out(sim *s, ps time) {
  ps end = time;
  if (s->manager->placement != MANAGER_PROGRAM || s->manager->cpu_fault_bytes) return time;
  for (uint32_t i = 1; i < s->pager->allocations.count; i++) {
    uint64_t bytes = pager_managed_out(s->pager, i);
    if (bytes) end = link_copy(&s->link, HISTORY_CAUSE_MANAGED, false, bytes, false, time);
    if (!s->host.touches_recorded) s->pager->allocations.items[i].host_wrote = true; /* it may have */
  }
  return end;
}

/* The managed allocation at `address`; 0: it is in none. */
static uint32_t managed_at(sim *s, uint64_t address) {
  uint32_t index = pager_find(s->pager, address)->allocation;
  return s->pager->allocations.items[index].kind == TRACE_MEMORY_MANAGED ? index : 0;
}

static bool on_gpu(sim *s, uint32_t index) { return pager_managed_on_gpu(&s->pager->allocations.items[index]); }

/* Before the GPU itself writes at `address`: what is managed there is the GPU's. */
static ps managed_ready(sim *s, uint64_t address, ps time) {
  uint32_t managed = managed_at(s, address);
  if (!managed) return time;
  return s->manager->cpu_fault_bytes ? pages_in(s, time) : managed_in(s, managed, time);
}

/* ---- copies ---- */

/* A copy between the host and managed pages: part in host memory, part over the link, at once. */
static ps pages_copy(sim *s, const trace_op *op, bool in, ps time) {
  uint64_t address = in ? op->copy.to : op->copy.from, pitch = in ? op->copy.to_pitch : op->copy.from_pitch;
  uint64_t bytes = op->copy.width * op->copy.height;
  uint64_t far =
      over_rows(s, in ? pager_managed_write : pager_managed_read, address, op->copy.width, op->copy.height, pitch)
          .bytes;
  if (far) count_copied(s, address, in, far);
  ps carried = link_copy(&s->link, HISTORY_CAUSE_COPY, in, far, !op->copy.pinned, time),
     copied = host_copy(s, bytes > far ? bytes - far : 0, time);
  return carried > copied ? carried : copied;
}

/* A copy to the GPU that has waited (learn.c). */
ps transfer_delayed(sim *s, uint64_t address, uint64_t bytes, bool pageable, ps time) {
  count_copied(s, address, true, bytes);
  return link_copy(&s->link, HISTORY_CAUSE_COPY, true, bytes, pageable, time);
}

static ps program_copy(sim *s, const trace_op *op, ps time) {
  uint64_t bytes = op->copy.width * op->copy.height, to = op->copy.to, from = op->copy.from;
  uint32_t managed_to = managed_at(s, to), managed_from = managed_at(s, from);
  bool pages = s->manager->cpu_fault_bytes, in = op->copy.direction == TRACE_H2D;
  if (pages && (in ? managed_to : op->copy.direction == TRACE_D2H ? managed_from : 0))
    return pages_copy(s, op, in, time);
  if (pages && op->copy.direction == TRACE_D2D && (managed_to || managed_from)) time = pages_in(s, time);
  switch (op->copy.direction) {
  case TRACE_H2D:
    if (managed_to && !on_gpu(s, managed_to)) {
      pager_managed_host_write(s->pager, to, span(op->copy.width, op->copy.height, op->copy.to_pitch));
      return host_copy(s, bytes, time);
    }
    over_rows(s, copy_write, to, op->copy.width, op->copy.height, op->copy.to_pitch);
    if (learner_delays(&s->learner)) {
      learner_delay(&s->learner, op);
      return time;
    }
    count_copied(s, to, true, bytes);
    return link_copy(&s->link, HISTORY_CAUSE_COPY, true, bytes, !op->copy.pinned, time);
  case TRACE_D2H:
    if (managed_from && s->pager->allocations.items[managed_from].on_cpu) return host_copy(s, bytes, time);
    if (learner_delays(&s->learner)) return host_copy(s, bytes, time);
    count_copied(s, from, false, bytes);
    return link_copy(&s->link, HISTORY_CAUSE_COPY, false, bytes, !op->copy.pinned, time);
  case TRACE_D2D:
    if (managed_from && !pages) time = managed_in(s, managed_from, time);
    if (managed_to && !pages) time = managed_in(s, managed_to, time);
    over_rows(s, copy_write, to, op->copy.width, op->copy.height, op->copy.to_pitch);
    return link_device_copy(&s->link, 2 * bytes, time);
  default: return host_copy(s, bytes, time);
  }
}

static ps paged_copy(sim *s, const trace_op *op, ps time) {
  uint64_t width = op->copy.width, height = op->copy.height;
  switch (op->copy.direction) {
  case TRACE_H2D:
    return carry_moves(s, false, over_rows(s, pager_host_write, op->copy.to, width, height, op->copy.to_pitch), time);
  case TRACE_D2H:
    return carry_moves(s, false, over_rows(s, pager_host_read, op->copy.from, width, height, op->copy.from_pitch),
                       time);
  case TRACE_D2D:
    time = carry_moves(s, true, over_rows(s, pager_gpu_fetch, op->copy.from, width, height, op->copy.from_pitch), time);
    time = carry_moves(s, true, over_rows(s, pager_gpu_fill, op->copy.to, width, height, op->copy.to_pitch), time);
    return link_device_copy(&s->link, 2 * width * height, time);
  default: return host_copy(s, width * height, time);
  }
}

/* Host memory on both sides; what the GPU copies it reads and writes over the link. */
static ps remote_copy(sim *s, const trace_op *op, ps time) {
  uint64_t bytes = op->copy.width * op->copy.height;
  if (op->copy.direction != TRACE_D2D) return time;
  ps in = link_copy(&s->link, HISTORY_CAUSE_REMOTE, true, bytes, false, time),
     out = link_copy(&s->link, HISTORY_CAUSE_REMOTE, false, bytes, false, time);
  return in > out ? in : out;
}

/* ---- several devices: memory of another one is there as the host's is ---- */

static trace_memory_kind kind_at(sim *s, uint64_t address) {
  uint32_t index = pager_find(s->pager, address)->allocation;
  return index ? s->pager->allocations.items[index].kind : TRACE_MEMORY_HOST;
}

static bool is_near(sim *s, uint64_t address) { return kind_at(s, address) == TRACE_MEMORY_DEVICE; }
static bool is_far(sim *s, uint64_t address) { return kind_at(s, address) == TRACE_MEMORY_PINNED; }

bool transfer_reaches(sim *s, const trace_op *op) {
  if (op->kind == TRACE_OP_SET) return is_near(s, op->set.to);
  return (op->copy.direction != TRACE_H2H && op->copy.direction != TRACE_D2H && is_near(s, op->copy.to)) ||
         (op->copy.direction != TRACE_H2H && op->copy.direction != TRACE_H2D && is_near(s, op->copy.from));
}

/* Does it have an end in another device's memory? Only what is copied to a device or from one can. */
static bool is_peer_copy(sim *s, const trace_op *op) {
  bool to = op->copy.direction == TRACE_D2D || op->copy.direction == TRACE_H2D,
       from = op->copy.direction == TRACE_D2D || op->copy.direction == TRACE_D2H;
  return (to && is_far(s, op->copy.to)) || (from && is_far(s, op->copy.from));
}

/* Over this device's link: in, if it is to its memory, else out; the other one's simulation has it on its own. */
static ps peer_copy(sim *s, const trace_op *op, ps time) {
  uint64_t width = op->copy.width, height = op->copy.height, bytes = width * height;
  bool in = op->copy.direction != TRACE_D2H && !is_far(s, op->copy.to) && op->copy.direction == TRACE_D2D;
  uint64_t near = in ? op->copy.to : op->copy.from, pitch = in ? op->copy.to_pitch : op->copy.from_pitch;
  /* between the host and the other device, or two others */
  if (op->copy.direction != TRACE_D2D || is_far(s, near)) near = 0;
  if (s->manager->placement == MANAGER_EVERYWHERE || s->manager->placement == MANAGER_REMOTE) return time;
  if (near && s->manager->placement == MANAGER_PROGRAM) time = managed_ready(s, near, time);
  if (near && is_paged(s))
    time = carry_moves(s, true, over_rows(s, in ? pager_gpu_fill : pager_gpu_fetch, near, width, height, pitch), time);
  else if (near && in) over_rows(s, copy_write, near, width, height, pitch);
  bool over_in = op->copy.direction == TRACE_D2D ? in : op->copy.direction == TRACE_H2D;
  if (near) count_copied(s, near, in, bytes);
  else s->host.foreign[over_in] += bytes;
  return link_copy(&s->link, HISTORY_CAUSE_COPY, over_in, bytes, !op->copy.pinned, time);
}

static ps copy_begin(sim *s, const trace_op *op, ps time) {
  s->observer.counters.copies++;
  if (is_peer_copy(s, op)) return peer_copy(s, op, time);
  if (op->copy.direction == TRACE_D2D) s->observer.counters.d2d_bytes += op->copy.width * op->copy.height;
  if (is_paged(s)) return paged_copy(s, op, time);
  if (s->manager->placement == MANAGER_REMOTE) return remote_copy(s, op, time);
  if (s->manager->placement == MANAGER_PROGRAM) return program_copy(s, op, time);
  if (op->copy.direction == TRACE_D2D) return link_device_copy(&s->link, 2 * op->copy.width * op->copy.height, time);
  return op->copy.direction == TRACE_H2H ? host_copy(s, op->copy.width * op->copy.height, time) : time;
}

static ps set_begin(sim *s, const trace_op *op, ps time) {
  s->observer.counters.copies++;
  if (is_far(s, op->set.to)) return time; /* the other device does it */
  if (is_paged(s)) {
    time = carry_moves(s, true, over_rows(s, pager_gpu_fill, op->set.to, op->set.width, op->set.height, op->set.pitch),
                       time);
  } else if (s->manager->placement == MANAGER_PROGRAM) {
    time = managed_ready(s, op->set.to, time);
    over_rows(s, copy_write, op->set.to, op->set.width, op->set.height, op->set.pitch);
  }
  if (s->manager->placement == MANAGER_REMOTE)
    return link_copy(&s->link, HISTORY_CAUSE_REMOTE, false, op->set.width * op->set.height, false, time);
  return link_device_copy(&s->link, op->set.width * op->set.height, time);
}

static ps prefetch_begin(sim *s, const trace_op *op, ps time) {
  bool in = op->hint.device >= 0;
  if (!is_paged(s)) return time;
  pager_moves moves = (in ? pager_prefetch_in : pager_prefetch_out)(s->pager, op->hint.address, op->hint.bytes);
  return moves.bytes ? link_copy(&s->link, HISTORY_CAUSE_HINT, in, moves.bytes, false, time) : time;
}

/* Does it write to GPU memory, or read it, as the GPU does? A copy between host and device reads and writes the host's
 * pages. */
static bool by_gpu(const trace_op *op) { return op->kind != TRACE_OP_COPY || op->copy.direction == TRACE_D2D; }

/* The last landing of a page in flight that the operation touches. */
static ps busy_until(sim *s, const trace_op *op) {
  uint64_t a = 0, b = 0;
  if (!by_gpu(op)) {
    a = pager_host_busy_until(s->pager, op->copy.to, span(op->copy.width, op->copy.height, op->copy.to_pitch));
    b = pager_host_busy_until(s->pager, op->copy.from, span(op->copy.width, op->copy.height, op->copy.from_pitch));
  } else if (op->kind == TRACE_OP_COPY) {
    a = pager_busy_until(s->pager, op->copy.to, span(op->copy.width, op->copy.height, op->copy.to_pitch));
    b = pager_busy_until(s->pager, op->copy.from, span(op->copy.width, op->copy.height, op->copy.from_pitch));
  } else if (op->kind == TRACE_OP_SET) {
    a = pager_busy_until(s->pager, op->set.to, span(op->set.width, op->set.height, op->set.pitch));
  } else {
    a = pager_busy_until(s->pager, op->hint.address, op->hint.bytes);
  }
  return a > b ? a : b;
}

ps operation_begin(sim *s, node *n, ps time, bool *again) {
  ps busy = is_paged(s) ? busy_until(s, &n->op) : 0;
  /* it may have to evict anything */
  if (is_paged(s) && s->budget.mapped > s->budget.bytes && by_gpu(&n->op)) busy = pager_all_busy_until(s->pager);
  if (busy >= time && busy) { /* after the landings at that moment: they are in the heap before this */
    *again = true;
    return busy;
  }
  if (n->op.kind == TRACE_OP_COPY) return copy_begin(s, &n->op, time);
  if (n->op.kind == TRACE_OP_SET) return set_begin(s, &n->op, time);
  return prefetch_begin(s, &n->op, time);
}

/* The host's faults, one after the other. */
static ps pages_touch(sim *s, const trace_op *op, ps time) {
  pager_walk w = pager_walk_begin(s->pager, op->touch.address, op->touch.bytes);
  for (const pager_unit *unit; (unit = pager_walk_next(&w));) {
    if (s->pager->allocations.items[unit->allocation].kind != TRACE_MEMORY_MANAGED) continue;
    pager_moves moves = pager_managed_fault(s->pager, w.address);
    if (!moves.units) continue;
    time = link_copy(&s->link, HISTORY_CAUSE_TOUCH, false, moves.bytes, false, time) + s->t.host_fault;
    s->observer.counters.host_faults++;
    history_add(s->observer.history, HISTORY_host_faults, time, 1);
  }
  if (op->touch.write) pager_managed_dirty(s->pager, op->touch.address, op->touch.bytes);
  return time;
}

/* Partial pages: what is on its way to any of these pages lands first. */
static ps whole_pages_land(sim *s, uint64_t address, uint64_t bytes, ps time) {
  for (ps busy; (busy = pager_busy_until(s->pager, address, bytes)) != 0 && !device_stopped(s); run_until(s, busy))
    if (time < busy) time = busy;
  return time;
}

/* The host's faults on pages in GPU memory: one per unit, but for neighbours no more than one per fault_page_bytes.
 * Before a page that is on its way, or that thrashes, the host waits; the device goes on meanwhile. */
static ps paged_touch(sim *s, const trace_op *op, ps time) {
  uint64_t at = op->touch.address, end = at + op->touch.bytes < at ? UINT64_MAX : at + op->touch.bytes, until;
  while (at < end && !device_stopped(s)) {
    run_until(s, time);
    if (s->pager->config.ranges) time = whole_pages_land(s, at, end - at, time);
    if (s->pager->pins_due <= time) pager_unpin(s->pager, time);
    pager_moves moves = pager_host_touch(s->pager, &at, end, op->touch.write, time, &until);
    uint64_t pieces = (moves.faulted + s->spec->fault_page_bytes - 1) / s->spec->fault_page_bytes;
    uint64_t faults = moves.faults < pieces ? moves.faults : pieces;
    s->observer.counters.host_faults += faults;
    history_add(s->observer.history, HISTORY_host_faults, time, faults);
    if (moves.bytes) time = link_copy(&s->link, HISTORY_CAUSE_TOUCH, false, moves.bytes, false, time);
    time += faults * s->t.host_fault;
    if (time < until) time = until;
  }
  return time;
}

/* A segment that no launch uses comes back by its dirty parts, as a whole, with the first touch. Else only what is
 * touched does. */
static ps segment_touch(sim *s, const trace_op *op, ps time) {
  pager_moves whole = {0};
  uint32_t index = pager_find(s->pager, op->touch.address)->allocation;
  pager_allocation a = s->pager->allocations.items[index];
  s->pager->view.by_host = true;
  if (index && !a.users && !pager_host_busy_until(s->pager, a.address, a.bytes))
    whole = pager_host_take(s->pager, a.address, a.bytes);
  s->pager->view.by_host = false;
  if (whole.faults) {
    s->observer.counters.host_faults++;
    history_add(s->observer.history, HISTORY_host_faults, time, 1);
    time = link_copy(&s->link, HISTORY_CAUSE_TOUCH, false, whole.bytes, false, time) + s->t.host_fault;
  }
  return paged_touch(s, op, time);
}

ps transfer_touch(sim *s, const trace_op *op, ps time) {
  if (s->manager->segments) return segment_touch(s, op, time);
  if (is_paged(s)) return paged_touch(s, op, time);
  uint32_t managed = managed_at(s, op->touch.address);
  if (s->manager->placement != MANAGER_PROGRAM || !managed) return time;
  if (s->manager->cpu_fault_bytes) return pages_touch(s, op, time);
  uint64_t bytes = pager_managed_out(s->pager, managed); /* it touches it without having waited */
  if (bytes) time = link_copy(&s->link, HISTORY_CAUSE_TOUCH, false, bytes, false, time);
  if (op->touch.write) pager_managed_host_write(s->pager, op->touch.address, op->touch.bytes);
  return time;
}
