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
#include "machine/host/host_transfer.h"

#include <math.h>

#include "machine/event_loop.h"
#include "machine/host/host.h"
#include "machine/host/link.h"
#include "machine/host/peer_link.h"
#include "machine/host/streams.h"
#include "machine/host/tier_store.h"
#include "machine/stacks/learn.h"
#include "trace/origin.h"

typedef pager_moves (*range_function)(pager *p, uint64_t address, uint64_t bytes);

/* Applies f to each row of a pitched range, or at once if the rows touch. */
static pager_moves over_rows(transfers *x, range_function f, uint64_t address, uint64_t width, uint64_t height,
                             uint64_t pitch) {
  pager_moves sum = {0};
  if (pitch == width || height <= 1) return f(x->pager, address, width * height);
  for (uint64_t row = 0; row < height; row++) {
    pager_moves moves = f(x->pager, address + row * pitch, width);
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

static void count_copied(transfers *x, uint64_t address, bool in, uint64_t bytes) {
  sim_counters *a =
      &x->observer->allocations.items[x->pager->allocations.items[pager_find(x->pager, address)->allocation].owner]
           ->counters;
  *(in ? &a->h2d_bytes : &a->d2h_bytes) += bytes;
  *(in ? &x->observer->counters.h2d_bytes : &x->observer->counters.d2h_bytes) += bytes;
}

/* tier_to_gpu and tier_to_host of what is no kernel's: of a program of which only kernels count it takes nothing. */
static ps copy_from_tiers(transfers *x, uint64_t bytes, ps from, ps begin) {
  if (x->link->instant) tier_pass(x->tiers);
  return tier_to_gpu(x->tiers, bytes, from, begin);
}

static ps copy_to_tiers(transfers *x, ps from, ps end) {
  if (x->link->instant) tier_pass(x->tiers);
  return tier_to_host(x->tiers, from, end);
}

static ps host_copy(const transfers *x, uint64_t bytes, ps time) {
  return time + (ps)llround(x->t->host_per_byte * (double)bytes);
}

/* What has been brought from other devices' memory: one transfer from each, side by side. */
static ps carry_from_devices(transfers *x, history_cause cause, ps time, ps end) {
  for (uint32_t device = 0; x->peers->owners && device < OWNERS_DEVICES; device++) {
    uint64_t bytes = pager_from_device(x->pager, device);
    ps over = bytes ? peer_bring(x->peers, cause, device, bytes, time) : 0;
    if (over > end) end = over;
  }
  return end;
}

/* The host's faults, at `address` and each `step` bytes behind it. */
static void count_host_faults(transfers *x, uint64_t address, uint64_t step, uint64_t faults, ps time) {
  if (!faults) return;
  x->observer->counters.host_faults += faults;
  history_add(x->observer->history, HISTORY_host_faults, time, faults);
  history_note_host_faults(x->observer->history,
                           (history_host_faults){.begin = time, .address = address, .step = step, .faults = faults});
}

/* Pages over the link in one transfer. What the host asked for costs it host_fault_us per fault_page_bytes, whatever
 * the unit of the GPU's far-faults is; under segments it is known what is where: their copies are copies, and a touch
 * is one fault. Over a coherent link nothing faults. */
static ps carry_moves(transfers *x, bool in, uint64_t address, pager_moves moves, ps time) {
  ps begin = time;
  if (in) time = carry_from_devices(x, HISTORY_CAUSE_COPY, begin, time);
  if (!moves.units) return copy_to_tiers(x, begin, time); /* in: what the GPU writes at the host */
  if (in) {
    ps end =
        link_copy(x->link, HISTORY_CAUSE_COPY, true, moves.bytes, false, copy_from_tiers(x, moves.bytes, begin, begin));
    return end > time ? end : time;
  }
  ps end = copy_to_tiers(x, begin, link_copy(x->link, HISTORY_CAUSE_COPY, false, moves.bytes, false, begin));
  uint64_t pages = (moves.bytes + x->spec->fault_page_bytes - 1) / x->spec->fault_page_bytes;
  uint64_t faults = moves.units < pages ? moves.units : pages;
  if (x->manager->segments || x->manager->coherent) faults = 0;
  count_host_faults(x, address, x->spec->fault_page_bytes, faults, time);
  return end + faults * x->t->host_fault;
}

/* ---- MANAGER_PROGRAM: managed allocations ---- */

static ps managed_in(transfers *x, uint32_t index, ps time) {
  uint64_t bytes = pager_managed_in(x->pager, index);
  return bytes ? link_copy(x->link, HISTORY_CAUSE_MANAGED, true, bytes, false, time) : time;
}

/* Managed pages: they become the GPU's, what the CPU wrote is copied, run by run. */
static ps pages_in(transfers *x, ps time) {
  ps end = time;
  if (!pager_managed_unmap(x->pager)) return time;
  for (size_t i = 0; i < x->pager->to_bring.count; i++)
    end = link_copy(x->link, HISTORY_CAUSE_MANAGED, true, x->pager->to_bring.items[i].bytes, false, time);
  return end + x->t->managed_launch;
}

ps transfer_managed_in(transfers *x, ps time) {
  ps end = time;
  if (x->manager->placement != MANAGER_PROGRAM) return time;
  if (x->manager->cpu_fault_bytes) return pages_in(x, time);
  for (uint32_t i = 1; i < x->pager->allocations.count; i++) {
    ps over = managed_in(x, i, time);
    if (over > end) end = over;
  }
  return end;
}

ps transfer_managed_out(transfers *x, bool touches, ps time) {
  ps end = time;
  if (x->manager->placement != MANAGER_PROGRAM || x->manager->cpu_fault_bytes) return time;
  for (uint32_t i = 1; i < x->pager->allocations.count; i++) {
    uint64_t bytes = pager_managed_out(x->pager, i);
    if (bytes) end = link_copy(x->link, HISTORY_CAUSE_MANAGED, false, bytes, false, time);
    if (!touches) x->pager->allocations.items[i].host_wrote = true; /* it may have */
  }
  return end;
}

void transfer_managed_elsewhere(transfers *x) {
  if (x->manager->placement != MANAGER_PROGRAM || x->manager->cpu_fault_bytes) return;
  for (uint32_t i = 1; i < x->pager->allocations.count; i++) {
    pager_allocation *a = &x->pager->allocations.items[i];
    if (a->live && a->kind == TRACE_MEMORY_MANAGED && a->on_cpu) a->host_wrote = true;
  }
}

/* The managed allocation at `address`; 0: it is in none. */
static uint32_t managed_at(const transfers *x, uint64_t address) {
  uint32_t index = pager_find(x->pager, address)->allocation;
  return x->pager->allocations.items[index].kind == TRACE_MEMORY_MANAGED ? index : 0;
}

static bool on_gpu(transfers *x, uint32_t index) { return pager_managed_on_gpu(&x->pager->allocations.items[index]); }

/* Before the GPU itself writes at `address`: what is managed there is the GPU's. */
static ps managed_ready(transfers *x, uint64_t address, ps time) {
  uint32_t managed = managed_at(x, address);
  if (!managed) return time;
  return x->manager->cpu_fault_bytes ? pages_in(x, time) : managed_in(x, managed, time);
}

/* ---- copies ---- */

/* A copy between the host and managed pages: part in host memory, part over the link, at once. */
static ps pages_copy(transfers *x, const trace_op *op, bool in, ps time) {
  uint64_t address = in ? op->copy.to : op->copy.from, pitch = in ? op->copy.to_pitch : op->copy.from_pitch;
  uint64_t bytes = op->copy.width * op->copy.height;
  uint64_t far =
      over_rows(x, in ? pager_managed_write : pager_managed_read, address, op->copy.width, op->copy.height, pitch)
          .bytes;
  if (far) count_copied(x, address, in, far);
  ps carried = link_copy(x->link, HISTORY_CAUSE_COPY, in, far, !op->copy.pinned, time),
     copied = host_copy(x, bytes > far ? bytes - far : 0, time);
  return carried > copied ? carried : copied;
}

/* A copy to the GPU that has waited (learn.c). */
ps transfer_delayed(transfers *x, uint64_t address, uint64_t bytes, bool pageable, ps time) {
  count_copied(x, address, true, bytes);
  return link_copy(x->link, HISTORY_CAUSE_COPY, true, bytes, pageable, time);
}

static ps program_copy(transfers *x, const trace_op *op, ps time) {
  uint64_t bytes = op->copy.width * op->copy.height, to = op->copy.to, from = op->copy.from;
  uint32_t managed_to = managed_at(x, to), managed_from = managed_at(x, from);
  bool pages = x->manager->cpu_fault_bytes;
  if (pages && op->copy.direction == TRACE_H2D && managed_to) return pages_copy(x, op, true, time);
  if (pages && op->copy.direction == TRACE_D2H && managed_from) return pages_copy(x, op, false, time);
  if (pages && op->copy.direction == TRACE_D2D && (managed_to || managed_from)) time = pages_in(x, time);
  switch (op->copy.direction) {
  case TRACE_H2D:
    if (managed_to && !on_gpu(x, managed_to)) {
      pager_managed_host_write(x->pager, to, span(op->copy.width, op->copy.height, op->copy.to_pitch));
      return host_copy(x, bytes, time);
    }
    over_rows(x, copy_write, to, op->copy.width, op->copy.height, op->copy.to_pitch);
    if (learner_delays(x->learner)) {
      learner_delay(x->learner, op);
      return time;
    }
    count_copied(x, to, true, bytes);
    return link_copy(x->link, HISTORY_CAUSE_COPY, true, bytes, !op->copy.pinned, time);
  case TRACE_D2H:
    if (managed_from && x->pager->allocations.items[managed_from].on_cpu) return host_copy(x, bytes, time);
    if (learner_delays(x->learner)) return host_copy(x, bytes, time);
    count_copied(x, from, false, bytes);
    return link_copy(x->link, HISTORY_CAUSE_COPY, false, bytes, !op->copy.pinned, time);
  case TRACE_D2D:
    if (managed_from && !pages) time = managed_in(x, managed_from, time);
    if (managed_to && !pages) time = managed_in(x, managed_to, time);
    over_rows(x, copy_write, to, op->copy.width, op->copy.height, op->copy.to_pitch);
    return link_device_copy(x->link, 2 * bytes, time);
  default: return host_copy(x, bytes, time);
  }
}

static ps paged_copy(transfers *x, const trace_op *op, ps time) {
  uint64_t width = op->copy.width, height = op->copy.height;
  switch (op->copy.direction) {
  case TRACE_H2D:
    return carry_moves(x, false, op->copy.to,
                       over_rows(x, pager_host_write, op->copy.to, width, height, op->copy.to_pitch), time);
  case TRACE_D2H:
    return carry_moves(x, false, op->copy.from,
                       over_rows(x, pager_host_read, op->copy.from, width, height, op->copy.from_pitch), time);
  case TRACE_D2D:
    time =
        carry_moves(x, true, 0, over_rows(x, pager_gpu_fetch, op->copy.from, width, height, op->copy.from_pitch), time);
    time = carry_moves(x, true, 0, over_rows(x, pager_gpu_fill, op->copy.to, width, height, op->copy.to_pitch), time);
    return link_device_copy(x->link, 2 * width * height, time);
  default: return host_copy(x, width * height, time);
  }
}

/* Host memory on both sides; what the GPU copies it reads and writes over the link. */
static ps remote_copy(transfers *x, const trace_op *op, ps time) {
  uint64_t bytes = op->copy.width * op->copy.height;
  if (op->copy.direction != TRACE_D2D) return time;
  ps in = link_copy(x->link, HISTORY_CAUSE_REMOTE, true, bytes, false, time),
     out = link_copy(x->link, HISTORY_CAUSE_REMOTE, false, bytes, false, time);
  return in > out ? in : out;
}

/* ---- several devices: memory of another one is there as the host's is ---- */

static trace_memory_kind kind_at(const transfers *x, uint64_t address) {
  uint32_t index = pager_find(x->pager, address)->allocation;
  return index ? x->pager->allocations.items[index].kind : TRACE_MEMORY_HOST;
}

static bool is_near(const transfers *x, uint64_t address) { return kind_at(x, address) == TRACE_MEMORY_DEVICE; }
static bool is_far(const transfers *x, uint64_t address) { return kind_at(x, address) == TRACE_MEMORY_PINNED; }

bool transfer_reaches(const transfers *x, const trace_op *op) {
  if (op->kind == TRACE_OP_SET) return is_near(x, op->set.to);
  return (op->copy.direction != TRACE_H2H && op->copy.direction != TRACE_D2H && is_near(x, op->copy.to)) ||
         (op->copy.direction != TRACE_H2H && op->copy.direction != TRACE_H2D && is_near(x, op->copy.from));
}

/* Does it have an end in another device's memory? Only what is copied to a device or from one can. */
static bool is_peer_copy(const transfers *x, const trace_op *op) {
  bool to = op->copy.direction == TRACE_D2D || op->copy.direction == TRACE_H2D,
       from = op->copy.direction == TRACE_D2D || op->copy.direction == TRACE_D2H;
  return (to && is_far(x, op->copy.to)) || (from && is_far(x, op->copy.from));
}

/* In whose memory the other end of a copy is; -1: in none's. */
static int other_device(const transfers *x, uint64_t address) {
  if (!is_far(x, address) || !x->peers->owners) return -1;
  return (int)x->pager->allocations.items[pager_find(x->pager, address)->allocation].device - 1;
}

/* Over this device's link: in, if it is to its memory, else out; the other one's simulation has it on its own. */
static ps copy_between(transfers *x, const trace_op *op, ps time) {
  uint64_t width = op->copy.width, height = op->copy.height, bytes = width * height;
  bool in = op->copy.direction != TRACE_D2H && !is_far(x, op->copy.to) && op->copy.direction == TRACE_D2D;
  uint64_t near = in ? op->copy.to : op->copy.from, pitch = in ? op->copy.to_pitch : op->copy.from_pitch;
  /* between the host and the other device, or two others */
  if (op->copy.direction != TRACE_D2D || is_far(x, near)) near = 0;
  if (x->manager->placement == MANAGER_EVERYWHERE || x->manager->placement == MANAGER_REMOTE) return time;
  if (near && x->manager->placement == MANAGER_PROGRAM) time = managed_ready(x, near, time);
  if (near && manager_pages(x->manager))
    time =
        carry_moves(x, true, 0, over_rows(x, in ? pager_gpu_fill : pager_gpu_fetch, near, width, height, pitch), time);
  else if (near && in) over_rows(x, copy_write, near, width, height, pitch);
  bool over_in = op->copy.direction == TRACE_D2D ? in : op->copy.direction == TRACE_H2D;
  if (near) count_copied(x, near, in, bytes);
  else x->foreign[over_in] += bytes;
  return peer_copies(x->peers, over_in, near ? other_device(x, in ? op->copy.from : op->copy.to) : -1, bytes,
                     !op->copy.pinned, time);
}

static ps copy_begin(transfers *x, const trace_op *op, ps time) {
  x->observer->counters.copies++;
  if (is_peer_copy(x, op)) return copy_between(x, op, time);
  if (op->copy.direction == TRACE_D2D) x->observer->counters.d2d_bytes += op->copy.width * op->copy.height;
  if (manager_pages(x->manager)) return paged_copy(x, op, time);
  if (x->manager->placement == MANAGER_REMOTE) return remote_copy(x, op, time);
  if (x->manager->placement == MANAGER_PROGRAM) return program_copy(x, op, time);
  if (op->copy.direction == TRACE_D2D) return link_device_copy(x->link, 2 * op->copy.width * op->copy.height, time);
  return op->copy.direction == TRACE_H2H ? host_copy(x, op->copy.width * op->copy.height, time) : time;
}

/* Bytes of a file: the drive's time, too, but where everything is on the GPU from the start. */
static ps file_copy(transfers *x, const trace_op *op, ps time) {
  uint64_t bytes = op->copy.width * op->copy.height;
  bool in = op->copy.direction == TRACE_H2D;
  if (x->manager->placement == MANAGER_EVERYWHERE) return copy_begin(x, op, time);
  if (!in) return tier_file_write(x->tiers, bytes, time, copy_begin(x, op, time));
  ps read, end = copy_begin(x, op, tier_file_read(x->tiers, bytes, time, &read));
  return end > read ? end : read;
}

static ps set_begin(transfers *x, const trace_op *op, ps time) {
  x->observer->counters.copies++;
  if (is_far(x, op->set.to)) return time; /* the other device does it */
  if (manager_pages(x->manager)) {
    time = carry_moves(x, true, 0,
                       over_rows(x, pager_gpu_fill, op->set.to, op->set.width, op->set.height, op->set.pitch), time);
  } else if (x->manager->placement == MANAGER_PROGRAM) {
    time = managed_ready(x, op->set.to, time);
    over_rows(x, copy_write, op->set.to, op->set.width, op->set.height, op->set.pitch);
  }
  if (x->manager->placement == MANAGER_REMOTE)
    return link_copy(x->link, HISTORY_CAUSE_REMOTE, false, op->set.width * op->set.height, false, time);
  return link_device_copy(x->link, op->set.width * op->set.height, time);
}

static ps prefetch_begin(transfers *x, const trace_op *op, ps time) {
  bool in = op->hint.device >= 0;
  if (!manager_pages(x->manager)) return time;
  x->pager->for_other = op->stream > STREAM_ELSEWHERE(TRACE_DEVICES_MAX);
  pager_moves moves = (in ? pager_prefetch_in : pager_prefetch_out)(x->pager, op->hint.address, op->hint.bytes);
  x->pager->for_other = false;
  ps begin = in ? copy_from_tiers(x, moves.bytes, time, time) : time;
  ps end = moves.bytes ? link_copy(x->link, HISTORY_CAUSE_HINT, in, moves.bytes, false, begin) : begin;
  return in ? carry_from_devices(x, HISTORY_CAUSE_HINT, time, end) : copy_to_tiers(x, time, end);
}

/* Does it write to GPU memory, or read it, as the GPU does? A copy between host and device reads and writes the host's
 * pages. */
static bool by_gpu(const trace_op *op) { return op->kind != TRACE_OP_COPY || op->copy.direction == TRACE_D2D; }

/* The last landing of a page in flight that the operation touches. */
static ps busy_until(transfers *x, const trace_op *op) {
  uint64_t a = 0, b = 0;
  if (!by_gpu(op)) {
    a = pager_host_busy_until(x->pager, op->copy.to, span(op->copy.width, op->copy.height, op->copy.to_pitch));
    b = pager_host_busy_until(x->pager, op->copy.from, span(op->copy.width, op->copy.height, op->copy.from_pitch));
  } else if (op->kind == TRACE_OP_COPY) {
    a = pager_busy_until(x->pager, op->copy.to, span(op->copy.width, op->copy.height, op->copy.to_pitch));
    b = pager_busy_until(x->pager, op->copy.from, span(op->copy.width, op->copy.height, op->copy.from_pitch));
  } else if (op->kind == TRACE_OP_SET) {
    a = pager_busy_until(x->pager, op->set.to, span(op->set.width, op->set.height, op->set.pitch));
  } else {
    a = pager_busy_until(x->pager, op->hint.address, op->hint.bytes);
  }
  return a > b ? a : b;
}

ps transfer_begin(transfers *x, const trace_op *op, ps time, bool *again) {
  ps busy = manager_pages(x->manager) ? busy_until(x, op) : 0;
  /* it may have to evict anything */
  if (manager_pages(x->manager) && x->budget->mapped > x->budget->bytes && by_gpu(op))
    busy = pager_all_busy_until(x->pager);
  if (busy >= time && busy) { /* after the landings at that moment: they are in the heap before this */
    *again = true;
    return busy;
  }
  if (op->kind == TRACE_OP_COPY) return (op->copy.file ? file_copy : copy_begin)(x, op, time);
  if (op->kind == TRACE_OP_SET) return set_begin(x, op, time);
  return prefetch_begin(x, op, time);
}

/* The host's faults, one after the other. */
static ps pages_touch(transfers *x, const trace_op *op, ps time) {
  pager_walk w = pager_walk_begin(x->pager, op->touch.address, op->touch.bytes);
  for (const pager_unit *unit; (unit = pager_walk_next(&w));) {
    if (x->pager->allocations.items[unit->allocation].kind != TRACE_MEMORY_MANAGED) continue;
    pager_moves moves = pager_managed_fault(x->pager, w.address);
    if (!moves.units) continue;
    time = link_copy(x->link, HISTORY_CAUSE_TOUCH, false, moves.bytes, false, time) + x->t->host_fault;
    count_host_faults(x, w.address, moves.bytes, 1, time);
  }
  if (op->touch.write) pager_managed_dirty(x->pager, op->touch.address, op->touch.bytes);
  return time;
}

/* Partial pages: what is on its way to any of these pages lands first. */
static ps whole_pages_land(transfers *x, uint64_t address, uint64_t bytes, ps time) {
  for (ps busy; (busy = pager_busy_until(x->pager, address, bytes)) != 0 && !loop_stopped(x->loop);
       run_until(x->loop, busy))
    if (time < busy) time = busy;
  return time;
}

/* The host's faults on pages in GPU memory: one per unit, but for neighbours no more than one per fault_page_bytes,
 * unless the prefetcher says what comes with each. Before a page that is on its way, or that thrashes, the host waits;
 * the device goes on meanwhile. */
static ps paged_touch(transfers *x, const trace_op *op, ps time) {
  uint64_t at = op->touch.address, end = at + op->touch.bytes < at ? UINT64_MAX : at + op->touch.bytes, until;
  while (at < end && !loop_stopped(x->loop)) {
    run_until(x->loop, time);
    if (x->pager->config.ranges) time = whole_pages_land(x, at, end - at, time);
    if (x->pager->pins_due <= time) pager_unpin(x->pager, time);
    const uint64_t first = at;
    x->pager->for_other = x->for_other;
    pager_moves moves = pager_host_touch(x->pager, &at, end, op->touch.write, time, &until);
    x->pager->for_other = false;
    uint64_t pieces = (moves.faulted + x->spec->fault_page_bytes - 1) / x->spec->fault_page_bytes;
    uint64_t faults = moves.faults < pieces || pager_host_prefetches(x->pager) ? moves.faults : pieces;
    x->observer->counters.host_first_touches += moves.first_touches;
    count_host_faults(x, first, faults ? moves.faulted / faults : 0, faults, time);
    ps began = time;
    if (moves.bytes) time = link_copy(x->link, HISTORY_CAUSE_TOUCH, false, moves.bytes, false, time);
    time = copy_to_tiers(x, began, time);
    time += faults * x->t->host_fault;
    if (time < until) time = until;
  }
  return time;
}

/* A segment that no launch uses comes back by its dirty parts, as a whole, with the first touch. Else only what is
 * touched does. */
static ps segment_touch(transfers *x, const trace_op *op, ps time) {
  pager_moves whole = {0};
  uint32_t index = pager_find(x->pager, op->touch.address)->allocation;
  pager_allocation a = x->pager->allocations.items[index];
  x->pager->view.by_host = true;
  if (index && !a.users && !pager_host_busy_until(x->pager, a.address, a.bytes))
    whole = pager_host_take(x->pager, a.address, a.bytes);
  x->pager->view.by_host = false;
  if (whole.faults) {
    count_host_faults(x, a.address, a.bytes, 1, time);
    ps end = link_copy(x->link, HISTORY_CAUSE_TOUCH, false, whole.bytes, false, time);
    time = copy_to_tiers(x, time, end) + x->t->host_fault;
  }
  return paged_touch(x, op, time);
}

ps transfer_touch(transfers *x, const trace_op *op, ps time) {
  if (x->manager->segments) return segment_touch(x, op, time);
  if (manager_pages(x->manager)) return paged_touch(x, op, time);
  uint32_t managed = managed_at(x, op->touch.address);
  if (x->manager->placement != MANAGER_PROGRAM || !managed) return time;
  if (x->manager->cpu_fault_bytes) return pages_touch(x, op, time);
  uint64_t bytes = pager_managed_out(x->pager, managed); /* it touches it without having waited */
  if (bytes) time = link_copy(x->link, HISTORY_CAUSE_TOUCH, false, bytes, false, time);
  if (op->touch.write) pager_managed_host_write(x->pager, op->touch.address, op->touch.bytes);
  return time;
}
