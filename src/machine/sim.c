/* SPDX-License-Identifier: Apache-2.0 */
/* One simulation: making it from a machine, running it, and answering other threads.
 *
 * answers.h has the lock under which that happens. A question about an event that has not happened yet is answered when
 * no operation is left to process: until then the program that asks may have done more, and the answer must not depend
 * on which thread was faster. */
#include "machine/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/spec/choice.h"
#include "machine/simulation.h"
#include "machine/host/peers.h"
#include "trace/touched.h"

const sim_manager *sim_managers(uint32_t *count) {
  static sim_manager list[32];
  uint32_t n = 0;
  for (; managers[n] && n < sizeof list / sizeof *list; n++)
    list[n] = (sim_manager){managers[n]->name, managers[n]->summary};
  *count = n;
  return list;
}

/* ---- making ---- */

static bool power_of_two(uint64_t x) { return x && !(x & (x - 1)); }

static ff_status check_spec(const machine_spec *spec, ff_error *error) {
  if (!power_of_two(spec->page_bytes) || !power_of_two(spec->fault_page_bytes) || !power_of_two(spec->row_bytes))
    return ff_fail(error, FF_INVALID, "%s: page_bytes, fault_page_bytes and row_bytes must be powers of two",
                   spec->name);
  if (spec->l2_slices % spec->channels)
    return ff_fail(error, FF_INVALID, "%s: l2_slices must be a multiple of channels", spec->name);
  if (spec->l2_copies && spec->channels % 2)
    return ff_fail(error, FF_INVALID, "%s: l2_copies needs an even number of channels", spec->name);
  if (spec->fault_page_bytes < FF_PAGE_BYTES || spec->fault_page_bytes > 2 << 20 || spec->page_bytes < FF_PAGE_BYTES)
    return ff_fail(error, FF_INVALID, "%s: page_bytes must be at least 4K, fault_page_bytes 4K to 2M", spec->name);
  if (spec->l2_bytes / spec->l2_slices < TRACE_LINE_BYTES)
    return ff_fail(error, FF_INVALID, "%s: an L2 slice must hold at least one line of 128 bytes", spec->name);
  return FF_OK;
}

/* What needs every launch timed. */
static ff_status check_sample(const sim *s, const sim_options *options, ff_error *error) {
  const char *why = s->spec->stack_count ? "a machine with memory stacks"
                    : options->device    ? "a GPU that several programs share"
                    : options->peers     ? "a program with several GPUs"
                    : options->lines     ? "counting by instruction"
                    : options->profile   ? "counting between cudaProfilerStart and cudaProfilerStop"
                                         : NULL;
  return why ? ff_fail(error, FF_UNSUPPORTED, "sample: %s needs every launch timed", why) : FF_OK;
}

/* The machine and the manager as this simulation has them. */
static ff_status take_choices(sim *s, const manager *m, const sim_options *options, ff_error *error) {
  s->own_spec = *options->spec;
  s->own_manager = *m;
  s->spec = &s->own_spec;
  s->manager = &s->own_manager;
  snprintf(s->label, sizeof s->label, "%s", options->label ? options->label : m->name);
  ff_status status = options->set ? machine_spec_set_all(&s->own_spec, options->set, error) : FF_OK;
  if (!status && options->faults && is_paged(s)) {
    const manager_faults *ways;
    status = sim_faults_read(options->faults, &s->own_spec, &ways, error);
    if (!status && ways->batches && m->ranges)
      status = ff_fail(error, FF_UNSUPPORTED, "%s: far-faults on partial pages are not served in batches", m->name);
    if (status) return status;
    s->own_manager.decide = ways->decide;
    s->own_manager.batches = ways->batches;
  }
  if (!status && options->access_counters && is_paged(s))
    status = sim_counters_read(options->access_counters, &s->own_manager.counters, error);
  if (!status && s->own_manager.counters.threshold && m->ranges)
    status = ff_fail(error, FF_UNSUPPORTED, "%s: access counters bring no partial pages", m->name);
  if (!status)
    status = sim_offload_check(s->spec->name, s->spec->stack_count, options->offload, options->map, options->offloading,
                               error);
  if (!status && options->sample) status = check_sample(s, options, error);
  if (!status && options->profile && s->spec->stack_count)
    status = ff_fail(error, FF_UNSUPPORTED,
                     "%s: what memory stacks do is counted for the whole program only, not "
                     "between cudaProfilerStart and cudaProfilerStop",
                     s->spec->name);
  if (status) return status;
  if (!options->offload) s->own_spec.sm_count += s->own_spec.stack_saved_sms;
  s->gmmu.walk_shift = (uint32_t)__builtin_ctzll(s->own_spec.page_bytes | UINT64_C(1) << 63);
  if (!status && options->page) {
    status = sim_page_read(options->page, &s->own_spec.page_bytes, error);
    s->gmmu.page_fixed = strcmp(options->page, "auto") != 0;
  }
  if (!status && options->advise && is_paged(s)) status = sim_hints_read(options->advise, &s->hints.given, error);
  return status ? status : check_spec(s->spec, error);
}

/* The device: the options', or one of its own. */
static ff_status take_device(sim *s, const sim_options *options, ff_error *error) {
  device *d = options->device;
  if (d && options->tenant >= d->tenant_count)
    return ff_fail(error, FF_INVALID, "there is no tenant %u", options->tenant);
  if (d) device_keep(d = d->tenants[options->tenant].part);
  else d = device_create(s->spec, options->offload ? (uint32_t)(s->spec->stack_count * s->spec->stack_sms) : 0, false);
  tenant *own = &d->whole->tenants[options->tenant];
  own->loop = &s->loop;
  own->dispatch = &s->dispatch;
  own->lent = &s->lent;
  s->d = d;
  s->tenant = options->tenant;
  s->space = d->whole == d ? (uint64_t)s->tenant << SPACE_SHIFT : 0; /* a slice has no other tenants */
  s->sms = d->sms;
  s->answers.mutex = &d->whole->work;
  s->agenda = (agenda){.heap = &d->heap, .tenant = s->tenant};
  s->observer.paged = is_paged(s);
  s->observer.mapped = &s->budget.mapped_raw;
  return FF_OK;
}

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

static ff_status open_policies(sim *s, const sim_options *options, ff_error *error) {
  const char *prefetch = s->manager->prefetch ? s->manager->prefetch : "none",
             *evict = s->manager->evict ? s->manager->evict : "lru";
  if (options->prefetch) prefetch = options->prefetch;
  if (options->evict) evict = options->evict;
  ff_status status = policy_open(POLICY_PREFETCH, prefetch, &s->prefetch, error);
  if (!status) status = policy_open(POLICY_EVICT, evict, &s->evict, error);
  if (status) return status;
  policy_share(&s->prefetch, &s->evict);
  const ff_policy *clairvoyant = s->prefetch.policy->needs_future ? s->prefetch.policy : s->evict.policy;
  if (!clairvoyant->needs_future) return FF_OK;
  if (!options->future)
    return ff_fail(error, FF_UNSUPPORTED, "%s needs the program's future, and that is not recorded here",
                   clairvoyant->name);
  if (options->sample)
    return ff_fail(error, FF_UNSUPPORTED, "sample: %s, which knows the program's future, needs every launch timed",
                   clairvoyant->name);
  s->future = s->dispatch.future = options->future;
  trace_reader_defer(s->reader);
  return FF_OK;
}

/* Only what pages has pages in tiers. Those of a device are of all programs on it. */
static ff_status take_tiers(sim *s, const sim_options *options, ff_error *error) {
  ff_status status = FF_OK;
  tier_store_on(&s->tiers, &s->d->whole->tiers, s->tenant);
  if (is_paged(s))
    status = tier_store_begin(&s->tiers, s->spec, options->host_memory, options->host_memory_share, error);
  tier_store_files(&s->tiers, s->spec);
  s->tiers.device = options->device_index;
  s->tiers.log = options->peers ? peers_tiers(options->peers) : NULL;
  if (status || !s->tiers.places) return status;
  if (s->tiers.log) tiers_share(s->tiers.places, s->tiers.log, s->tiers.device);
  return FF_OK;
}

static ff_status pager_init(sim *s, const sim_options *options, ff_error *error) {
  const manager *m = s->manager;
  uint64_t unit = m->unit_bytes ? m->unit_bytes : s->spec->fault_page_bytes;
  if (is_paged(s) && options->unit_bytes) unit = options->unit_bytes;
  uint64_t low = m->ranges ? PAGER_MIN_UNIT : FF_PAGE_BYTES, high = m->ranges ? FF_GROUP_BYTES : FF_BLOCK_BYTES;
  if (unit < low || unit > high || (unit & (unit - 1)))
    return ff_fail(error, FF_INVALID,
                   "%s: a unit of %" PRIu64 " bytes: it must be a power of two from %" PRIu64 " to %" PRIu64, m->name,
                   unit, low, high);
  s->budget.least = m->whole_blocks ? 2 * FF_BLOCK_BYTES : smaller(16 * unit, FF_BLOCK_BYTES);
  if (is_paged(s) && !options->gpu_memory && !(s->budget.share > 0) && s->budget.bytes < s->budget.least)
    return ff_fail(error, FF_LIMIT, "%s needs at least %" PRIu64 " KiB of GPU memory", m->name, s->budget.least >> 10);
  if (s->budget.share > 0) s->budget.bytes = 0;
  s->budget.given = s->budget.bytes;
  /* host.c says that it is left out */
  if (is_paged(s) && s->budget.bytes < s->budget.least) s->budget.bytes = s->budget.least;
  ff_status status = is_paged(s) ? open_policies(s, options, error) : FF_OK;
  if (status) return status;
  pager_config config = {.manager = m,
                         .unit_bytes = unit,
                         .memory_bytes = s->budget.bytes,
                         .sms = s->d->sm_total,
                         .allotment = (uint32_t)s->spec->fault_mshrs,
                         .merges_take_mshr = s->spec->fault_merge_mshrs,
                         .prefetch = s->prefetch.policy,
                         .prefetch_state = s->prefetch.state,
                         .evict = s->evict.policy,
                         .evict_state = s->evict.state,
                         .evict_shares = s->evict.borrowed,
                         .tells_runs = !s->prefetch.library && !s->evict.library,
                         .watermarks = options->watermarks_chosen ? options->watermarks : m->watermarks,
                         .future = s->future,
                         .tiers = s->tiers.places,
                         .tier_space = (uint64_t)s->tenant << SPACE_SHIFT,
                         .owners = s->peers.owners,
                         .device = s->peers.device,
                         .peers = peer_link_peers(&s->peers),
                         .counters = m->counters,
                         .copy_clean = m->copy_clean,
                         .zeroes = !s->spec->first_touch_moves,
                         .whole_blocks = m->whole_blocks,
                         .flight_limit = m->ranges ? 128 * (uint32_t)s->spec->channels : 0,
                         .ranges = m->ranges && options->ranges ? options->ranges : m->ranges,
                         .gap_bytes = options->gap_chosen ? options->gap_bytes : m->gap_bytes};
  fault_hooks(&s->faults, &config.hooks);
  tlb_init(&s->gmmu, unit);
  if (s->gmmu.leaves_grow) config.largest_leaf = s->spec->page_bytes;
  config.least_leaf = UINT64_C(1) << s->gmmu.leaf_shift[PAGER_LEAF_MIN];
  s->pager = pager_create(&config);
  sim_wire_pager(s);
  fault_view(&s->faults, &s->pager->view);
  return FF_OK;
}

ff_status sim_create(trace_program *program, const sim_options *options, sim **out, ff_error *error) {
  const manager *m = manager_find(options->manager);
  if (!m) {
    char names[512] = "";
    for (const manager *const *each = managers; *each; each++)
      snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", each == managers ? "" : ", ",
               (*each)->name);
    return ff_fail(error, FF_NOT_FOUND, "there is no memory manager \"%s\": choose among %s", options->manager, names);
  }
  sim *s = ff_alloc(sizeof *s);
  ff_status status = take_choices(s, m, options, error);
  if (!status && !(s->reader = trace_reader_create(program)))
    status = ff_fail(error, FF_LIMIT, "at most %u simulations can follow one program", TRACE_READERS_MAX);
  if (status) {
    free(s);
    return status;
  }
  s->program = program;
  if (options->sample) trace_reader_answers(s->reader);
  s->budget.bytes = options->gpu_memory ? options->gpu_memory : s->spec->memory_bytes;
  s->budget.share = options->gpu_memory_share;
  s->observer.next_sample = UINT64_MAX;
  if (options->history) {
    s->observer.history = history_create();
    s->observer.history->keeps_resident = is_paged(s);
    s->observer.history->profiled = s->observer.history->paused = options->profile;
    s->observer.next_sample = history_next_sample(s->observer.history);
  }
  if (options->lines) {
    s->observer.lines = lines_create();
    s->observer.lines->profiled = options->profile;
  }
  s->observer.watched = options->history || options->lines;
  s->written = options->records_future ? options->future : NULL;
  s->threads = options->threads;
  s->measures = options->parts;
  timing_init(&s->t, s->spec);
  status = take_device(s, options, error);
  if (status) {
    trace_reader_free(s->reader);
    free(s);
    return status;
  }
  status = stacks_create(s->spec, &s->t, &s->d->arena, options, &s->stacks, error);
  if (!status) status = take_tiers(s, options, error);
  sim_wire(s, options);
  counters_of_allocation(&s->observer, &(trace_op){.alloc = {.name = "(no allocation)"}});
  pthread_cond_init(&s->answers.progress, NULL);
  if (!status) status = pager_init(s, options, error);
  const char *refused = !status && s->threads ? rounds_refuse(s) : NULL;
  if (refused) status = ff_fail(error, FF_UNSUPPORTED, "model-threads: %s needs the simulation on one thread", refused);
  if (status) sim_free(s);
  else *out = s;
  return status;
}

void sim_free(sim *s) {
  if (!s) return;
  trace_reader_free(s->reader);
  pager_free(s->pager);
  policy_close(&s->prefetch);
  policy_close(&s->evict);
  address_map_free(&s->placing);
  idle_sharing_free(&s->lent);
  controller_free(&s->controller);
  learner_end(&s->learner);
  stacks_free(s->stacks);
  dispatcher_free(&s->dispatch);
  sampler_free(&s->sampler);
  streams_free(&s->streams);
  segments_free(&s->segments);
  fault_free(&s->faults);
  hints_free(&s->hints);
  mappings_free(&s->mappings);
  host_free(&s->host);
  observer_free(&s->observer);
  profile_free(&s->profile);
  pthread_cond_destroy(&s->answers.progress);
  tenant *own = &s->d->whole->tenants[s->tenant];
  if (own->loop == &s->loop) {
    own->loop = NULL;
    own->dispatch = NULL;
    own->lent = NULL;
  }
  device_release(s->d);
  free(s);
}

/* ---- running, and answering ---- */

/* Other threads ask when events happened that have not: the device goes on until they have. */
static void answer_questions(sim *s) {
  for (const question *q = s->answers.questions; q; q = q->next) {
    const event_record *record = q->sequence < s->host.processed ? record_at(&s->streams, q->sequence) : NULL;
    if (record && !record->known) {
      node *n = s->streams.nodes.items[record->node];
      n->references++;
      run_until_done(&s->loop, n);
      queue_release(&s->streams, n);
    }
  }
}

bool sim_needs_future(const sim *s) { return s->future != NULL; }

void sim_run(sim *s) {
  bool end = false;
  if (s->future) trace_future_wait(s->future);
  device_enter(s->d, s->tenant, s->host.clock);
  answers_lock(&s->answers);
  s->front.hoists_loads = s->spec->hoists_loads;
  s->front.pipes = trace_program_has_units(s->program) && s->spec->alu_latency > 0;
  bool marks = trace_program_marks(s->program) && !(s->stacks && s->stacks->offloading);
  bool late = trace_program_has_units(s->program) && !s->spec->hoists_loads;
  s->front.left_out = (marks ? TRACE_NO_MARKS : 0) | (late ? TRACE_NO_LATE_WAITS : 0);
  s->front.joins_issues = s->front.left_out || s->front.pipes;
  if (s->threads) rounds_begin(s, s->threads);
  while (!end && !device_stopped(s->d, s->tenant)) {
    while (!trace_reader_has_op(s->reader)) {
      answer_questions(s);
      answers_unlock(&s->answers);
      trace_reader_wait(s->reader);
      answers_lock(&s->answers);
    }
    const trace_op *op = trace_reader_next_op(s->reader);
    if (!op) break;
    end = op->kind == TRACE_OP_END;
    host_process(&s->host, op);
    if (s->answers.askers) answers_yield(&s->answers);
  }
  link_account(&s->link, s->host.clock > s->streams.end ? s->host.clock : s->streams.end);
  if (ff_check_level >= 2 && end && !device_stopped(s->d, s->tenant)) sim_check(s);
  else if (ff_check_level >= 2 && !device_stopped(s->d, s->tenant)) pager_check_all(s->pager);
  rounds_end(s);
  if (s->written) trace_future_complete(s->written);
  trace_reader_waits(s->reader, true);
  s->answers.over = true;
  answers_progress(&s->answers);
  answers_unlock(&s->answers);
  if (s->host.peers) peers_leave(s->host.peers, s->host.device_index);
  if (s->d->whole->shared) tier_store_leave(&s->tiers, SPACE_SHIFT);
  device_leave(s->d, s->tenant);
}

void sim_withdraw(sim *s) {
  if (s->host.peers) peers_leave(s->host.peers, s->host.device_index);
}

static uint64_t host_time_locked(const sim *s, uint64_t sequence) {
  if (!s->host.processed) return 0;
  if (sequence >= s->host.processed) sequence = s->host.processed - 1;
  uint64_t oldest = s->host.processed > HOST_TIMES ? s->host.processed - HOST_TIMES : 0;
  return s->host.times[(sequence < oldest ? oldest : sequence) % HOST_TIMES];
}

uint64_t sim_host_time(sim *s, uint64_t sequence) {
  answers_ask(&s->answers);
  while (s->host.processed <= sequence && !s->answers.over) pthread_cond_wait(&s->answers.progress, s->answers.mutex);
  uint64_t time = host_time_locked(s, sequence);
  answers_unlock(&s->answers);
  return time;
}

bool sim_physical(sim *s, uint64_t sequence, uint64_t address, uint64_t *physical) {
  if (!s->d->hash) return false;
  answers_ask(&s->answers);
  while (s->host.processed <= sequence && !s->answers.over) pthread_cond_wait(&s->answers.progress, s->answers.mutex);
  *physical = address_map_find(&s->placing, address);
  answers_unlock(&s->answers);
  return true;
}

uint64_t sim_event_time(sim *s, uint64_t sequence) {
  answers_ask(&s->answers);
  question own = {.sequence = sequence, .next = s->answers.questions};
  s->answers.questions = &own;
  trace_reader_poke(s->reader);
  const event_record *record = NULL;
  while (!s->answers.over &&
         (s->host.processed <= sequence || ((record = record_at(&s->streams, sequence)) && !record->known)))
    pthread_cond_wait(&s->answers.progress, s->answers.mutex);
  question **link = &s->answers.questions;
  while (*link != &own) link = &(*link)->next;
  *link = own.next;
  record = record_at(&s->streams, sequence);
  uint64_t time = record && record->known ? record->time : host_time_locked(s, sequence);
  answers_unlock(&s->answers);
  return time;
}

bool sim_event_happened(sim *s, uint64_t sequence, uint64_t by) {
  answers_ask(&s->answers);
  while ((s->host.processed <= by || s->host.processed <= sequence) && !s->answers.over)
    pthread_cond_wait(&s->answers.progress, s->answers.mutex);
  const event_record *record = record_at(&s->streams, sequence);
  bool happened = !record || (record->known && record->time <= host_time_locked(s, by));
  answers_unlock(&s->answers);
  return happened;
}

/* The machine file's name without folder and extension, else the device's name. */
static void machine_name(const machine_spec *spec, char *out, size_t size) {
  const char *base = strrchr(spec->file, '/') ? strrchr(spec->file, '/') + 1 : spec->file;
  const char *dot = strrchr(base, '.');
  if (*base) snprintf(out, size, "%.*s", (int)(dot ? dot - base : (long)strlen(base)), base);
  else snprintf(out, size, "%s", spec->name);
}

bool sim_is_over(sim *s, uint64_t *at) {
  answers_ask(&s->answers);
  *at += s->agenda.now + s->host.clock + s->host.processed + s->dispatch.blocks_begun;
  bool over = s->answers.over;
  answers_unlock(&s->answers);
  return over;
}

/* How far it has come. */
static ps now_of(const sim *s) {
  ps end = s->host.clock > s->streams.end ? s->host.clock : s->streams.end;
  return s->answers.over || end > s->agenda.now ? end : s->agenda.now;
}

static void totals_at(sim *s, ps now, ps linked, sim_counters *total) {
  /* looking changes nothing: what comes may still ask for the link at an earlier time */
  const host_link before = *s->link.wire;
  if (!s->answers.over) link_account(&s->link, linked);
  counters_of_run(&s->observer, total);
  total->time_ps = now - s->began;
  if (s->dispatch.kernels.running && s->agenda.now > s->dispatch.kernels.since)
    total->kernel_ps += s->agenda.now - s->dispatch.kernels.since;
  total->transfer_ps = s->link.wire->union_busy;
  /* A copy that waits for its engine is already in the link's account; how long kernels run is not known yet. */
  total->overlap_ps = s->link.wire->during_kernels < total->kernel_ps ? s->link.wire->during_kernels : total->kernel_ps;
  *s->link.wire = before;
  total->h2d_busy_ps = s->link.wire->h2d.busy;
  total->d2h_busy_ps = s->link.wire->d2h.busy;
  total->throttles = s->pager->throttled;
  total->pins = s->pager->pinned;
  total->resident_peak_bytes = is_paged(s) ? s->pager->resident_peak : total->footprint_bytes;
}

void sim_totals(void *simulation, ps time, sim_counters *total) { totals_at(simulation, time, time, total); }

static void counters_total(sim *s, sim_counters *total) {
  ps now = now_of(s);
  totals_at(s, now, now < s->agenda.now ? now : s->agenda.now, total);
  profile_run(&s->profile, total);
}

void sim_round_parts(const sim *s, round_parts *parts) { *parts = s->parts; }

void sim_snapshot(sim *s, sim_result *result) {
  memset(result, 0, sizeof *result);
  answers_ask(&s->answers);
  rounds_counts_add(s->loop.rounds);
  snprintf(result->memory, sizeof result->memory, "%s", s->label);
  machine_name(s->spec, result->machine, sizeof result->machine);
  result->peaks = machine_peaks_of(s->spec);
  snprintf(result->error, sizeof result->error, "%s", s->host.error);
  result->complete = s->answers.over;
  result->profiled = s->profile.asked;
  result->profiles = s->profile.ranges;
  if (s->budget.left_out) {
    answers_unlock(&s->answers);
    return;
  }
  counters_total(s, &result->counters);
  result->sampling = sampler_result(&s->sampler);
  if (s->pager) result->came_back = s->pager->came_back;
  if (s->pager) result->came_first = s->pager->came_first + s->pager->zeroed_first;
  profile_paging(&s->profile, &result->came_back, &result->came_first);
  stacks_result(s->stacks, &result->counters, &result->stacks);
  tier_store_result(&s->tiers, &result->tiers);
  profile_tiers(&s->profile, &result->tiers);
  result->kernels = ff_alloc(s->observer.kernels.count * sizeof *result->kernels);
  result->kernel_count = (uint32_t)s->observer.kernels.count;
  for (uint32_t i = 0; i < result->kernel_count; i++) {
    result->kernels[i] = *s->observer.kernels.items[i];
    counters_of_all(&s->observer, i, &result->kernels[i].counters);
    profile_kernel(&s->profile, i, &result->kernels[i].counters);
  }
  result->allocations = ff_alloc(s->observer.allocations.count * sizeof *result->allocations);
  for (size_t i = 0; i < s->observer.allocations.count; i++) {
    sim_allocation_result *a = &result->allocations[result->allocation_count];
    *a = *s->observer.allocations.items[i];
    profile_allocation(&s->profile, i, &a->counters);
    result->allocation_count += i || a->counters.accesses || a->counters.spill_stores || a->counters.spill_loads;
  }
  answers_unlock(&s->answers);
}

void sim_lines_take(sim *s, sim_result *result) {
  answers_ask(&s->answers);
  if (s->observer.lines && !s->budget.left_out) lines_copy(s->observer.lines, result);
  answers_unlock(&s->answers);
}

sim_history *sim_history_take(sim *s) {
  answers_ask(&s->answers);
  sim_history *copy = NULL;
  if (s->observer.history && !s->budget.left_out) copy = record_copy(&s->observer, now_of(s));
  answers_unlock(&s->answers);
  return copy;
}
