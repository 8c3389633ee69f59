/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of a simulation asks which others: each is given that once, here. A part's header says what it is
 * given. */
#include "machine/host/peers.h"
#include "machine/simulation.h"

/* Of which address bits the parity is the side of an L2 that has two: all that number pieces of 256 bytes, where the
 * machine file does not say. */
static uint64_t side_mask(const machine_spec *spec) {
  return spec->side_masks.count ? spec->side_masks.masks[0] : ~UINT64_C(255);
}

/* L1s, L2 and DRAM, and where in physical memory an address is. */
static void wire_memory(sim *s, device *d) {
  const machine_spec *spec = s->spec;
  const tenant *own = &d->whole->tenants[s->tenant];
  bool divided = d->isolation == SIM_ISOLATION_SM_MEMORY;
  uint64_t slices = spec->l2_copies ? spec->l2_slices / 2 : spec->l2_slices;
  s->memory = (memory){.spec = spec,
                       .t = &s->t,
                       .hash = d->hash,
                       .map = &s->placing,
                       .stacks = s->stacks,
                       .lent = d->borrow ? &s->lent : NULL,
                       .link = &s->link,
                       .peers = &s->peers,
                       .network = d->limits_network ? &d->network : NULL,
                       .slices = d->slices,
                       .crossing = spec->l2_copies ? d->crossing : NULL,
                       .channels = d->channels,
                       .slices_per_channel = (spec->l2_slices + spec->channels - 1) / spec->channels,
                       .by_slices = divider_make(slices),
                       .row_shift = (uint32_t)__builtin_ctzll(spec->row_bytes),
                       .by_banks = divider_make(spec->banks),
                       .first_slices = spec->slice_permutation ? slices : 0,
                       .ranks = spec->compute_major >= 8,
                       .side_mask = side_mask(spec),
                       .granule = (side_mask(spec) & -side_mask(spec)) >> 8,
                       .bank_bits = spec->bank_permutation ? (uint32_t)__builtin_ctzll(spec->banks) : 0};
  s->placing = (placing){.hash = d->hash,
                         .frames = d->frames,
                         .space = s->space,
                         .colours = divided ? own->given.colours : UINT64_MAX,
                         .in_pieces = d->hash && !is_paged(s) && !divided,
                         .memory = &s->memory,
                         .gmmu = &s->gmmu,
                         .lent = &s->lent};
  s->lent = (lent){.d = d,
                   .tenant = s->tenant,
                   .spec = spec,
                   .agenda = &s->agenda,
                   .kernels = &s->dispatch.kernels,
                   .memory = &s->memory,
                   .map = &s->placing};
}

/* The dispatcher, the SMs' front end and load/store units. */
static void wire_sms(sim *s, device *d, const sim_options *options) {
  s->front = (front_end){.heap = &d->heap,
                         .t = &s->t,
                         .warps = &d->warps,
                         .reader = s->reader,
                         .accesses = &s->accesses,
                         .dispatch = &s->dispatch,
                         .controller = s->stacks ? &s->controller : NULL};
  s->accesses = (access_path){.heap = &d->heap,
                              .t = &s->t,
                              .warps = &d->warps,
                              .gmmu = &s->gmmu,
                              .memory = &s->memory,
                              .map = &s->placing,
                              .faults = &s->faults,
                              .observer = &s->observer,
                              .controller = s->stacks ? &s->controller : NULL,
                              .tiers = s->tiers.places ? &s->tiers : NULL,
                              .learner = &s->learner,
                              .written = s->written,
                              .plain = !s->threads && !s->stacks && !s->tiers.places && !s->written};
  s->dispatch = (dispatcher){.d = d,
                             .tenant = s->tenant,
                             .spec = s->spec,
                             .t = &s->t,
                             .agenda = &s->agenda,
                             .reader = s->reader,
                             .answers = &s->answers,
                             .written = s->written,
                             .lent = &s->lent,
                             .link = &s->link,
                             .faults = &s->faults,
                             .observer = &s->observer,
                             .learner = &s->learner,
                             .sampler = options->sample ? &s->sampler : NULL,
                             .memory = &s->memory,
                             .flushed = options->l2_flush ? &s->memory : NULL};
  s->sampler = (sampler){.needed = options->sample,
                         .reader = s->reader,
                         .front = &s->front,
                         .dispatch = &s->dispatch,
                         .faults = &s->faults,
                         .memory = &s->memory,
                         .map = &s->placing,
                         .observer = &s->observer,
                         .answers = &s->answers,
                         .result.chosen = options->sample != 0};
  if (options->sample) sampler_init(&s->sampler);
}

/* Near-data processing. Without memory stacks the controller is not asked, and the learner learns nothing. */
static void wire_stacks(sim *s, device *d) {
  s->controller = (controller){.stacks = s->stacks,
                               .spec = s->spec,
                               .heap = &d->heap,
                               .warps = &d->warps,
                               .sms = d->sms,
                               .memory = &s->memory,
                               .learner = &s->learner};
  s->learner = (learner){.stacks = s->stacks,
                         .spec = s->spec,
                         .manager = s->manager,
                         .dispatch = &s->dispatch,
                         .front = &s->front,
                         .link = &s->link,
                         .observer = &s->observer,
                         .transfers = &s->transfers};
  learner_begin(&s->learner);
}

static void wire_link(sim *s, device *d, const sim_options *options) {
  host_link *wire = &d->whole->link;
  wire->h2d.per_byte = s->t.h2d_per_byte;
  wire->d2h.per_byte = s->t.d2h_per_byte;
  s->link = (link_port){.wire = wire,
                        .engines = &d->engines,
                        .kernels = &s->dispatch.kernels,
                        .history = s->observer.history,
                        .table = &s->spec->link_table,
                        .latency = s->t.link_latency,
                        .device_latency = s->t.launch,
                        .host_per_byte = s->t.host_per_byte,
                        .dram_per_byte = s->t.dram_per_byte,
                        .two_engines = s->spec->copy_engines > 1,
                        .instant = s->host.instant};
  s->peers = (peer_link){.device = options->device_index,
                         .spec = s->spec,
                         .port = &s->link,
                         .owners = options->peers ? peers_owners(options->peers) : NULL};
  peer_link_begin(&s->peers);
  s->tiers.link = &s->link;
}

/* Translation, far-faults, and what launches declare. The pager comes later: sim_wire_pager. */
static void wire_paging(sim *s, device *d, const sim_options *options) {
  s->gmmu = (gmmu){.spec = s->spec,
                   .manager = s->manager,
                   .t = &s->t,
                   .space = s->space,
                   .sms = d->sms,
                   .sm_total = d->sm_total,
                   .walkers = &d->walkers,
                   .walk_cache = &d->walk_cache,
                   .shared_tlb = d->shared_tlb,
                   .tlb_census = &d->tlb_census,
                   .removals = &d->removals,
                   .shared_sets = d->shared_sets,
                   .walk_shift = s->gmmu.walk_shift,
                   .page_fixed = s->gmmu.page_fixed, /* take_choices */
                   .memory = &s->memory,
                   .map = &s->placing,
                   .stacks = s->stacks,
                   .faults = &s->faults,
                   .observer = &s->observer,
                   .agenda = &s->agenda};
  s->faults = (far_faults){.spec = s->spec,
                           .manager = s->manager,
                           .t = &s->t,
                           .write_back_overlaps = options->write_back_overlaps,
                           .link = &s->link,
                           .peers = &s->peers,
                           .tiers = &s->tiers,
                           .gmmu = &s->gmmu,
                           .memory = &s->memory,
                           .map = &s->placing,
                           .segments = &s->segments,
                           .observer = &s->observer,
                           .agenda = &s->agenda,
                           .kernels = &s->dispatch.kernels,
                           .warps = &d->warps,
                           .sms = d->sms};
  s->segments = (segments){.manager = s->manager,
                           .link = &s->link,
                           .faults = &s->faults,
                           .observer = &s->observer,
                           .streams = &s->streams,
                           .hints = &s->hints,
                           .host = &s->host,
                           .agenda = &s->agenda,
                           .kernels = &s->dispatch.kernels};
}

/* The host, what it has of others, and the loop that it runs while it waits. */
static void wire_host(sim *s, device *d, const sim_options *options) {
  s->streams = (streams){.spec = s->spec,
                         .t = &s->t,
                         .d = d,
                         .tenant = s->tenant,
                         .agenda = &s->agenda,
                         .reader = s->reader,
                         .dispatch = &s->dispatch,
                         .transfers = &s->transfers,
                         .segments = &s->segments,
                         .observer = &s->observer,
                         .host = &s->host,
                         .answers = &s->answers,
                         .profile = &s->profile};
  streams_begin(&s->streams);
  s->loop = (event_loop){.d = d,
                         .tenant = s->tenant,
                         .agenda = &s->agenda,
                         .front = &s->front,
                         .streams = &s->streams,
                         .faults = &s->faults,
                         .observer = &s->observer,
                         .answers = &s->answers};
  s->transfers = (transfers){.spec = s->spec,
                             .manager = s->manager,
                             .t = &s->t,
                             .link = &s->link,
                             .peers = &s->peers,
                             .tiers = &s->tiers,
                             .observer = &s->observer,
                             .learner = &s->learner,
                             .loop = &s->loop,
                             .budget = &s->budget};
  s->hints = (hints){.manager = s->manager, .host = &s->host, .given = s->hints.given}; /* take_choices */
  s->mappings = (mappings){.manager = s->manager,
                           .t = &s->t,
                           .host = &s->host,
                           .gmmu = &s->gmmu,
                           .memory = &s->memory,
                           .map = &s->placing,
                           .hints = &s->hints,
                           .observer = &s->observer};
  s->host = (host){.device_index = options->device_index,
                   .peers = options->peers,
                   .peer_link = &s->peers,
                   .manager = s->manager,
                   .t = &s->t,
                   .label = s->label,
                   .instant = d->whole->shared && d->whole->tenants[s->tenant].given.loops,
                   .reader = s->reader,
                   .written = s->written,
                   .budget = &s->budget,
                   .tiers = &s->tiers,
                   .map = &s->placing,
                   .streams = &s->streams,
                   .loop = &s->loop,
                   .transfers = &s->transfers,
                   .segments = &s->segments,
                   .hints = &s->hints,
                   .mappings = &s->mappings,
                   .observer = &s->observer,
                   .answers = &s->answers,
                   .profile = &s->profile};
  host_begin(&s->host);
  s->profile = (profile){.asked = options->profile,
                         .observer = &s->observer,
                         .streams = &s->streams,
                         .host = &s->host,
                         .tiers = &s->tiers,
                         .totals = sim_totals,
                         .context = s};
}

/* On a device that others share: what this tenant may have of it. */
static void wire_tenant(sim *s, const device *d, const tenant *own) {
  s->began = s->host.clock = s->agenda.now = s->streams.end = d->now;
  if (own->given.memory_bytes && own->given.memory_bytes < s->budget.bytes) s->budget.bytes = own->given.memory_bytes;
  if (d->isolation == SIM_ISOLATION_MPS)
    s->dispatch.thread_limit = (uint64_t)(own->given.thread_share * (double)(s->spec->sm_count * s->spec->max_threads));
  if (d->isolation == SIM_ISOLATION_SM || d->isolation == SIM_ISOLATION_SM_MEMORY)
    s->dispatch.next_sm = own->given.sm_first;
}

void sim_wire(sim *s, const sim_options *options) {
  device *d = s->d;
  wire_host(s, d, options);
  wire_sms(s, d, options);
  wire_stacks(s, d);
  wire_memory(s, d);
  wire_link(s, d, options);
  wire_paging(s, d, options);
  if (d->whole->shared) wire_tenant(s, d->whole, &d->whole->tenants[s->tenant]);
}

void sim_wire_pager(sim *s) {
  pager *p = s->pager;
  s->segments.pager = s->observer.pager = s->gmmu.pager = s->faults.pager = s->accesses.pager = s->learner.pager = p;
  s->sampler.pager = s->profile.pager = p;
  if (s->dispatch.sampler) {
    s->memory.settle = sample_settle;
    s->memory.settle_context = &s->sampler;
  }
  s->dispatch.pager = s->loop.pager = s->transfers.pager = s->hints.pager = s->mappings.pager = s->host.pager = p;
}
