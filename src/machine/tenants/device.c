/* SPDX-License-Identifier: Apache-2.0 */
/* The device that one simulation has, or that several share: its parts, and which tenant works next.
 *
 * Several programs ("tenants") on one device: each has its simulation, in a thread of its own, with its host's clock,
 * its streams and its pager; SMs, caches, TLBs, DRAM and the link are common. One thread works at a time, and passes on
 * when its host has to wait for the device:
 *
 *     WAIT_TIME   until its host's clock        WAIT_NODE   until an operation is over        WAIT_ALL   until all its operations are
 *
 * The next is the tenant that can go on at the earliest simulated time, the first of them if several can; events before
 * that happen first. So hosts and device go through time together, and what comes out does not depend on threads.
 *
 *     device_enter --> works --device_wait--> waits --> works ... --device_leave--> WAIT_GONE
 *
 * A slice (MIG) has a queue of events of its own, so that nothing in it depends on what the others do but its use of
 * the link: the next event is the earliest of all slices' (of events at one time the first tenant's), and a warp runs
 * past the next event of no other slice, as the link is to be asked in order of time. It stops there only, and goes on
 * as it would have: the slice's own order of events stays what it is alone (events.h).
 *
 * When a tenant has waited for a time, no event up to then is left (asserted by run_until, event_loop.c), and the
 * thread that begins to wait is the one that worked (asserted here); both at the deep check level. It works for all, so
 * that there is one mutex (`work`) for what all their simulations guard; to begin to wait is to let it go. */
#include "machine/tenants/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "machine/event_loop.h"
#include "machine/sm/dispatch.h"
#include "machine/spec/allocation.h"

/* ---- making ---- */

static void sms_make(device *d) {
  const machine_spec *spec = &d->spec;
  arena *a = &d->arena;
  d->sms = arena_alloc(a, d->sm_total * sizeof *d->sms);
  lru_census_init(&d->tlb_census, a, d->sm_total * spec->tlb_entries);
  d->blocked_warps = ff_alloc(d->sm_total * sizeof *d->blocked_warps);
  for (uint32_t i = 0; i < d->sm_total; i++) {
    sm *m = &d->sms[i];
    m->blocked_warps = &d->blocked_warps[i];
    if (i >= spec->sm_count) m->stack = 1 + (i - (uint32_t)spec->sm_count) / (uint32_t)spec->stack_sms;
    m->index = i;
    m->events = &d->heap;
    m->schedulers = arena_alloc(a, spec->schedulers * sizeof *m->schedulers);
    cache_init(&m->l1, a, spec->l1_bytes, spec->l1_ways);
    m->l1_hashed = spec->l1_hash;
    m->carve_out = spec->shared_bytes; /* until a kernel wants another */
    cache_resize(&m->l1, allocation_l1(spec, m->carve_out));
    slots_init(&m->l1_mshrs, a, spec->l1_mshrs);
    slots_init(&m->stores, a, spec->l1_mshrs);
    lru_init(&m->tlb, a, spec->tlb_entries);
    m->tlb.census = &d->tlb_census;
    m->tlb.bit = UINT32_C(1) << i % 32;
    m->lsu.removals = m->bulk.removals = &d->removals;
  }
}

static void network_make(device *d) {
  const machine_spec *spec = &d->spec;
  bool clustered = spec->cluster_sms && (spec->cluster_read_bytes > 0 || spec->cluster_write_bytes > 0);
  d->limits_network = clustered || spec->sm_read_bytes > 0 || spec->sm_write_bytes > 0;
  if (!d->limits_network) return;
  d->network.sms = arena_alloc(&d->arena, d->sm_total * sizeof *d->network.sms);
  if (!clustered) return;
  d->network.cluster_sms = (uint32_t)spec->cluster_sms;
  uint64_t clusters = (d->sm_total + spec->cluster_sms - 1) / spec->cluster_sms;
  d->network.clusters = arena_alloc(&d->arena, clusters * sizeof *d->network.clusters);
}

static void memory_make(device *d) {
  const machine_spec *spec = &d->spec;
  arena *a = &d->arena;
  d->slices = arena_alloc(a, spec->l2_slices * sizeof *d->slices);
  d->channels = arena_alloc(a, spec->channels * sizeof *d->channels);
  for (uint32_t i = 0; i < spec->l2_slices; i++) {
    l2_slice *slice = &d->slices[i];
    slice->channel = &d->channels[i % spec->channels];
    slice->part = (uint32_t)(i / spec->channels);
    cache_init(&slice->cache, a, spec->l2_bytes / spec->l2_slices, spec->l2_ways);
    if (spec->l2_dirty_share > 0) cache_limit_dirty(&slice->cache, a, spec->l2_dirty_share);
    slots_init(&slice->mshrs, a, spec->l2_mshrs);
    if (spec->l2_mshr_bytes > TRACE_LINE_BYTES) slice->held = arena_alloc(a, HELD_PIECES * sizeof *slice->held);
  }
  for (uint32_t i = 0; i < spec->channels; i++) {
    d->channels[i].banks = arena_alloc(a, spec->banks * sizeof *d->channels[i].banks);
    for (uint32_t b = 0; b < spec->banks; b++) d->channels[i].banks[b].row = -1;
    if (spec->dram_write_batch)
      d->channels[i].writes = arena_alloc(a, spec->dram_write_batch * sizeof *d->channels[i].writes);
  }
  lru_init(&d->walk_cache, a, spec->walk_cache_bytes / 8);
  slots_init(&d->walkers, a, spec->walkers);
  uint64_t ways = spec->l2_tlb_ways ? spec->l2_tlb_ways : spec->l2_tlb_entries,
           sets = ways ? spec->l2_tlb_entries / ways : 0;
  if (!sets) return;
  d->shared_sets = divider_make(sets);
  d->shared_tlb = arena_alloc(a, sets * sizeof *d->shared_tlb);
  for (uint64_t i = 0; i < sets; i++) lru_init(&d->shared_tlb[i], a, ways);
}

/* The address hash and the frames behind it. They fit: spec_check has looked at them. */
static void physical_make(device *d) {
  hash_spec wanted;
  ff_error error;
  if (machine_spec_hash(&d->spec, &wanted, &error) || wanted.kind == HASH_INTERLEAVE) return;
  if (hash_create(&wanted, &d->hash, &error)) return;
  if (frames_create(d->hash, d->spec.memory_bytes, FRAME_BYTES, &d->frames, &error)) {
    hash_free(d->hash);
    d->hash = NULL;
  }
}

device *device_create(const machine_spec *spec, uint32_t near, bool shared) {
  device *d = ff_alloc(sizeof *d);
  d->uses = 1;
  d->whole = d;
  d->spec = *spec;
  d->shared = shared;
  d->sm_total = (uint32_t)spec->sm_count + near;
  d->heap.next_time = d->heap.horizon = UINT64_MAX;
  event_heap_widen(&d->heap, spec->sm_count);
  d->slice_owner = d->running = TENANTS;
  sms_make(d);
  memory_make(d);
  network_make(d);
  physical_make(d);
  FF_PUSH(&d->warps, NULL);
  pthread_mutex_init(&d->work, NULL);
  pthread_mutex_init(&d->mutex, NULL);
  for (uint32_t i = 0; i < TENANTS; i++) {
    pthread_cond_init(&d->tenants[i].turn, NULL);
    d->tenants[i].part = d;
  }
  return d;
}

static void device_free(device *d) {
  if (ff_check_level >= 2 && d->frames) frames_check(d->frames);
  for (uint32_t i = 0; i < d->sm_total; i++) free(d->blocked_warps[i].items);
  free(d->blocked_warps);
  arena_free(&d->arena);
  tier_set_free(&d->tiers);
  frames_free(d->frames);
  hash_free(d->hash);
  event_heap_free(&d->heap);
  free(d->warps.items);
  free(d->warps.free.items);
  pthread_mutex_destroy(&d->work);
  pthread_mutex_destroy(&d->mutex);
  for (uint32_t i = 0; i < TENANTS; i++) pthread_cond_destroy(&d->tenants[i].turn);
  free(d);
}

void device_keep(device *d) {
  d->uses++;
  if (d->whole != d) d->whole->uses++;
}

void device_release(device *d) {
  device *whole = d->whole;
  if (!--d->uses) device_free(d);
  if (whole != d) device_release(whole);
}

/* ---- a device for several ---- */

static ff_status check_slices(const sim_device_options *o, ff_error *error) {
  for (uint32_t i = 0; i < o->count; i++)
    if (!o->tenants[i].slice) return ff_fail(error, FF_INVALID, "tenant %u has no slice of the GPU", i);
  return o->borrow ? ff_fail(error, FF_INVALID, "slices of a GPU are not lent") : FF_OK;
}

static ff_status check_tenants(const sim_device_options *o, ff_error *error) {
  if (!o->count || o->count > TENANTS)
    return ff_fail(error, FF_LIMIT, "1 to %d programs can share a GPU, not %u", TENANTS, o->count);
  if (o->isolation == SIM_ISOLATION_MIG) return check_slices(o, error);
  uint32_t end = 0;
  for (uint32_t i = 0; i < o->count && o->isolation >= SIM_ISOLATION_SM; i++) {
    const sim_tenant *t = &o->tenants[i];
    if (!t->sm_count || t->sm_first < end || (uint64_t)t->sm_first + t->sm_count > o->spec->sm_count)
      return ff_fail(error, FF_INVALID, "SMs %u to %u: the sets must follow each other, and there are %u SMs",
                     t->sm_first, t->sm_first + t->sm_count - 1, (uint32_t)o->spec->sm_count);
    end = t->sm_first + t->sm_count;
  }
  return FF_OK;
}

/* A tenant's slice of the device. */
static device *slice_create(device *whole, const machine_spec *spec) {
  device *slice = device_create(spec, 0, false);
  slice->whole = whole;
  slice->heap.slice = true;
  slice->heap.own_horizon = UINT64_MAX;
  whole->uses++;
  return slice;
}

ff_status sim_device_create(const sim_device_options *o, sim_device **out, ff_error *error) {
  machine_spec spec = *o->spec;
  ff_status status = o->set ? machine_spec_set_all(&spec, o->set, error) : FF_OK;
  if (!status) status = check_tenants(o, error);
  if (!status && spec.stack_count)
    status = ff_fail(error, FF_UNSUPPORTED, "%s: programs cannot share a GPU with memory stacks", spec.name);
  if (status) return status;
  device *d = device_create(&spec, 0, true);
  if (o->isolation == SIM_ISOLATION_SM_MEMORY && !d->hash) {
    device_release(d);
    return ff_fail(
        error, FF_UNSUPPORTED,
        "%s: its machine file does not say which address is in which memory module (address_map): memory cannot be divided",
        spec.name);
  }
  d->isolation = o->isolation;
  d->borrow = o->borrow;
  d->tenant_count = o->count;
  for (uint32_t i = 0; i < o->count; i++) {
    tenant *t = &d->tenants[i];
    t->given = o->tenants[i];
    if (t->given.idle) t->waits = WAIT_GONE;
    if (d->isolation == SIM_ISOLATION_MIG) t->part = slice_create(d, t->given.slice);
    t->given.slice = NULL;
    for (uint32_t n = 0; n < t->given.sm_count; n++)
      t->sms.bits[(t->given.sm_first + n) / 64] |= UINT64_C(1) << ((t->given.sm_first + n) % 64);
  }
  *out = d;
  return FF_OK;
}

void sim_device_free(sim_device *d) {
  if (!d) return;
  for (uint32_t i = 0; i < d->tenant_count; i++)
    if (d->tenants[i].part != d) device_release(d->tenants[i].part);
  device_release(d);
}

bool sim_device_stopped(const sim_device *d) { return d->stop; }

void sim_device_tenant(const sim_device *d, uint32_t number, sim_tenant_result *out) {
  const tenant *t = &d->tenants[number];
  *out = (sim_tenant_result){.take_back_ps = t->take_back, .borrowed_ps = t->borrowed, .lent_bytes = t->lent_bytes};
}

/* ---- which tenant works next ---- */

static event_loop *owner_of(const device *d, event e) {
  bool is_warp = event_kind_of(e) == EVENT_WARP;
  return d->tenants[is_warp ? d->warps.items[event_index(e)]->block->kernel->dispatch->tenant : event_tenant(e)].loop;
}

/* When the tenant can go on; UINT64_MAX: not yet. */
static ps resumes(const tenant *t) {
  switch (t->waits) {
  case WAIT_TIME: return t->until;
  case WAIT_NODE: return t->node->done ? 0 : UINT64_MAX;
  case WAIT_ALL: return t->loop->streams->unfinished || t->loop->agenda->pending ? UINT64_MAX : 0;
  default: return UINT64_MAX;
  }
}

/* ---- slices ---- */

/* Whose slice has the next event; TENANTS: none has any. */
static uint32_t slice_first(const device *d) {
  uint32_t best = TENANTS;
  ps first = UINT64_MAX;
  for (uint32_t i = 0; i < d->tenant_count; i++) {
    ps at = event_next(&d->tenants[i].part->heap);
    if (at < first) {
      first = at;
      best = i;
    }
  }
  return best;
}

/* No warp of the slice runs past its own host's time (`until`), nor past another slice's next event. */
static void slice_bound(const device *d, uint32_t number, ps until) {
  event_heap *heap = &d->tenants[number].part->heap;
  heap->own_horizon = heap->horizon = until;
  for (uint32_t i = 0; i < d->tenant_count; i++) {
    ps next = i == number ? UINT64_MAX : event_next(&d->tenants[i].part->heap);
    if (next < heap->horizon) heap->horizon = next;
  }
}

static ps next_event_time(const device *d) {
  if (d->isolation != SIM_ISOLATION_MIG) return event_next(&d->heap);
  uint32_t number = slice_first(d);
  return number < TENANTS ? event_next(&d->tenants[number].part->heap) : UINT64_MAX;
}

/* ---- the next event ---- */

/* `first`: when the first tenant that waits for a time can go on. */
static void run_next_event(device *d, ps first) {
  uint32_t number = d->isolation == SIM_ISOLATION_MIG ? slice_first(d) : TENANTS;
  event_heap *heap = &d->heap;
  if (number < TENANTS) {
    heap = &d->tenants[number].part->heap;
    slice_bound(d, number, resumes(&d->tenants[number]));
  } else {
    heap->horizon = first;
  }
  event e = event_pop(heap);
  if (d->now < event_time(e)) d->now = event_time(e);
  if (number < TENANTS) loop_run_event(d->tenants[number].loop, e);
  else if (event_kind_of(e) == EVENT_SLICE) dispatch_slice(d, event_time(e));
  else loop_run_event(owner_of(d, e), e);
}

/* The device goes on until a tenant can. TENANTS: none is left. */
static uint32_t next_tenant(device *d) {
  for (;;) {
    uint32_t best = TENANTS, left = 0;
    ps first = UINT64_MAX;
    for (uint32_t i = 0; i < d->tenant_count; i++) {
      const tenant *t = &d->tenants[i];
      if (t->waits == WAIT_GONE) continue;
      left++;
      ps at = d->stop && t->given.loops ? 0 : resumes(t);
      if (at < first) {
        first = at;
        best = i;
      }
    }
    ps next = next_event_time(d);
    if (best < TENANTS && first < next) return best;
    if (!left) return TENANTS;
    FF_ASSERT(next < UINT64_MAX); /* all wait, and nothing will ever happen */
    run_next_event(d, first);
  }
}

static void hand_over(device *d, uint32_t next) {
  pthread_mutex_lock(&d->mutex);
  d->running = next;
  if (next < TENANTS) pthread_cond_signal(&d->tenants[next].turn);
  pthread_mutex_unlock(&d->mutex);
}

/* Another thread works meanwhile. */
static void wait_for_turn(device *d, uint32_t number) {
  pthread_mutex_lock(&d->mutex);
  while (d->running != number) pthread_cond_wait(&d->tenants[number].turn, &d->mutex);
  pthread_mutex_unlock(&d->mutex);
  d->tenants[number].waits = WAIT_NOTHING;
}

static void pass_on(device *d) {
  pthread_mutex_lock(&d->work);
  uint32_t next = next_tenant(d);
  pthread_mutex_unlock(&d->work);
  hand_over(d, next);
}

void device_enter(device *part, uint32_t tenant, ps clock) {
  device *d = part->whole;
  if (!d->shared || d->running == tenant) return; /* another round of a program that loops */
  pthread_mutex_lock(&d->mutex);
  uint32_t wanted = 0;
  for (uint32_t i = 0; i < d->tenant_count; i++) wanted += !d->tenants[i].given.idle;
  d->tenants[tenant].waits = WAIT_TIME;
  d->tenants[tenant].until = clock;
  bool last = ++d->registered == wanted;
  pthread_mutex_unlock(&d->mutex);
  if (last) pass_on(d);
  wait_for_turn(d, tenant);
}

static void note_end(device *d) {
  for (uint32_t i = 0; i < d->tenant_count; i++)
    if (d->tenants[i].waits != WAIT_GONE && !d->tenants[i].given.loops) return;
  if (!d->stop) d->stop = true; /* those that have gone read it still */
}

void sim_device_leave(sim_device *d, uint32_t number) {
  d->tenants[number].waits = WAIT_GONE;
  note_end(d);
  pass_on(d);
}

void device_leave(device *part, uint32_t tenant) {
  device *d = part->whole;
  if (d->shared && (!d->tenants[tenant].given.loops || d->stop)) sim_device_leave(d, tenant);
}

/* In the simulation's thread, which works: `work` is held. */
void device_wait(device *part, uint32_t number, tenant_wait what, ps until, node *n) {
  device *d = part->whole;
  tenant *t = &d->tenants[number];
  if (device_stopped(d, number)) return;
  FF_CHECK_DEEP(d->running == number);
  t->waits = what;
  t->until = until;
  t->node = n;
  uint32_t next = next_tenant(d);
  if (next == number) {
    t->waits = WAIT_NOTHING;
    return;
  }
  pthread_mutex_unlock(&d->work);
  hand_over(d, next);
  wait_for_turn(d, number);
  pthread_mutex_lock(&d->work);
}

bool device_stopped(const device *part, uint32_t tenant) {
  const device *d = part->whole;
  return d->stop && d->tenants[tenant].given.loops;
}
