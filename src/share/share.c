/* SPDX-License-Identifier: Apache-2.0 */
/* Programs side by side (share.h): a device, a simulation per program, each in a thread of its own that reads its
 * recording itself.
 *
 * The simulations are made before any thread starts, and freed when all have ended: in between only the thread whose
 * turn it is (machine/tenants/device.c) makes and frees one, when a program that loops begins its next round. */
#include "share/share.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "machine/spec/choice.h"
#include "machine/spec/mig.h"
#include "partition/frames.h"
#include "partition/shares.h"
#include "trace/file.h"

static const char *const names[] = {"none", "mps", "sm", "sm+memory", "mig"};

const char *share_isolation_name(share_isolation isolation) {
  return isolation < sizeof names / sizeof names[0] ? names[isolation] : NULL;
}

/* The machine's colours of pages; NULL: it has no address hash. The caller frees both. */
static colours *colours_make(const machine_spec *spec, uint64_t page_bytes, address_hash **hash) {
  hash_spec wanted;
  colours *c = NULL;
  ff_error why;
  *hash = NULL;
  if (machine_spec_hash(spec, &wanted, &why) || wanted.kind == HASH_INTERLEAVE || hash_create(&wanted, hash, &why))
    return NULL;
  if (colours_create(*hash, page_bytes, &c, &why)) {
    hash_free(*hash);
    return NULL;
  }
  return c;
}

uint32_t share_machine_colours(const machine_spec *spec) {
  address_hash *hash;
  colours *c = spec->address_map[0] ? colours_make(spec, SHARE_PAGE, &hash) : NULL;
  if (!c) return 1;
  uint32_t count = colours_count(c);
  colours_free(c);
  hash_free(hash);
  return count;
}

/* ---- one program ---- */

typedef struct lane {
  const share_scenario *scenario;
  const share_program *program;
  const machine_spec *slice; /* SHARE_MIG: the machine that it runs on, with what `set` says; else NULL */
  sim_device *device;
  uint32_t number;
  pthread_t thread;
  trace_file *file; /* of the round that runs */
  trace_program *stream;
  trace_feed *feed;
  trace_file_watch watch;
  sim_choice choice;
  sim *sim;
  ff_status status;
  ff_error error;
  sim_counters sum; /* of all rounds */
  sim_tiers tiers;  /* of all rounds */
  double kernel_us, total_us;
  uint64_t launches, passes;
} lane;

/* In the simulation's thread, when it needs more. */
static void pull(void *context) {
  lane *l = context;
  if (trace_feed_step(l->feed)) return;
  trace_op end = {.kind = TRACE_OP_END};
  trace_op_append(l->stream, &end);
}

static void show(void *context, const trace_file_step *step) {
  lane *l = context;
  uint64_t all = trace_file_information(l->file)->about.totals.warp_instructions;
  if (l->scenario->progress && all)
    l->scenario->progress(l->scenario->context, (double)step->warp_instructions / (double)all);
}

static ff_status choose(lane *l) {
  const share_scenario *s = l->scenario;
  sim_choices given = {0};
  char *host_memory = given.text[SIM_CHOICE_HOST_MEMORY];
  if (s->host_memory && (size_t)snprintf(host_memory, SIM_CHOICE_LENGTH, "%s", s->host_memory) >= SIM_CHOICE_LENGTH)
    return ff_fail(&l->error, FF_LIMIT, "'%.40s...' is too long", s->host_memory);
  if (l->slice) return sim_choice_read(s->manager ? s->manager : "copy", &given, l->slice, &l->choice, &l->error);
  if (s->set && (size_t)snprintf(given.set, sizeof given.set, "%s", s->set) >= sizeof given.set)
    return ff_fail(&l->error, FF_LIMIT, "'%.40s...' is too long", s->set);
  return sim_choice_read(s->manager ? s->manager : "copy", &given, s->spec, &l->choice, &l->error);
}

static ff_status round_open(lane *l) {
  ff_status status = trace_file_open(l->program->trace, &l->file, &l->error);
  if (status) return status;
  l->stream = trace_program_create(0);
  l->watch = (trace_file_watch){.step = l->program->loops ? NULL : show, .context = l};
  l->feed = trace_feed_create(l->file, l->stream, &l->watch);
  status = choose(l);
  sim_options *options = &l->choice.options;
  options->device = l->device;
  options->tenant = l->number;
  options->profile = l->scenario->profile_range && !l->program->loops;
  /* neighbours are of other colours: no large pages. A TLB entry has the 16 entries of a line of the page table */
  if (l->scenario->isolation == SHARE_SM_MEMORY && !options->page) options->page = "64K";
  if (!status) status = sim_create(l->stream, options, &l->sim, &l->error);
  if (!status) trace_program_pull(l->stream, pull, l);
  return status;
}

static void round_close(lane *l) {
  ff_error why;
  sim_free(l->sim);
  if (l->feed && trace_feed_free(l->feed, &why) && !l->status) {
    l->status = FF_PARSE;
    l->error = why;
  }
  if (l->stream) trace_program_free(l->stream);
  if (l->file) trace_file_close(l->file);
  l->sim = NULL;
  l->feed = NULL;
  l->stream = NULL;
  l->file = NULL;
}

/* Rounds add up; a peak is the highest of them. */
static void tiers_count(sim_tiers *sum, const sim_tiers *round) {
  for (uint32_t i = 0; i < round->count; i++) {
    const sim_tier *r = &round->of[i];
    sim_tier *s = &sum->of[i];
    uint64_t peak = r->peak_bytes > s->peak_bytes ? r->peak_bytes : s->peak_bytes;
    memcpy(s->name, r->name, sizeof s->name);
    s->capacity = r->capacity;
#define X(field, unit, help) s->field += r->field;
#include "machine/observe/tiers.def"
#undef X
    s->peak_bytes = peak;
  }
  if (round->count > sum->count) sum->count = round->count;
}

static void round_count(lane *l) {
  sim_result result;
  sim_snapshot(l->sim, &result);
  for (uint32_t i = 0; i < result.kernel_count; i++) {
    l->kernel_us += (double)result.kernels[i].counters.time_ps / 1e6;
    l->launches += result.kernels[i].counters.launches;
    l->sum.dram_read_bytes += result.kernels[i].counters.dram_read_bytes;
    l->sum.dram_write_bytes += result.kernels[i].counters.dram_write_bytes;
  }
  l->total_us += (double)result.counters.time_ps / 1e6;
  tiers_count(&l->tiers, &result.tiers);
  if (result.error[0] && !l->status) l->status = ff_fail(&l->error, FF_LIMIT, "%s", result.error);
  sim_result_free(&result);
}

/* The sim stays after the last round: it is freed when all threads have ended. */
static void *lane_run(void *argument) {
  lane *l = argument;
  for (;;) {
    sim_run(l->sim);
    if (!l->program->loops || sim_device_stopped(l->device)) return NULL;
    round_count(l);
    l->passes++;
    round_close(l);
    /* what is damaged is not gone through again: it may have come to an end in no time */
    if (!l->status) l->status = round_open(l); /* it was there a moment ago */
    if (l->status) {
      sim_device_leave(l->device, l->number);
      return NULL;
    }
  }
}

/* ---- the scenario ---- */

static ff_status check(const share_scenario *s, ff_error *error) {
  double sms = 0, memory = 0;
  uint32_t measured = 0;
  if (!s->count || s->count > SHARE_PROGRAMS)
    return ff_fail(error, FF_LIMIT, "1 to %d programs can be side by side, not %u", SHARE_PROGRAMS, s->count);
  for (uint32_t i = 0; i < s->count; i++) {
    const share_program *p = &s->programs[i];
    measured += p->trace && !p->loops;
    if (s->isolation == SHARE_MIG) continue;
    if (!(p->sm_share > 0) || !(p->memory_share > 0)) return ff_fail(error, FF_INVALID, "partition %u has no share", i);
    sms += p->sm_share;
    memory += p->memory_share;
  }
  if (sms > 1 + 1e-9 || memory > 1 + 1e-9)
    return ff_fail(error, FF_INVALID, "the shares are %.4g of the SMs and %.4g of the memory together", sms, memory);
  return measured ? FF_OK : ff_fail(error, FF_INVALID, "all programs loop: none is measured");
}

typedef struct division {
  sm_range sms[SHARE_PROGRAMS];
  uint64_t colours[SHARE_PROGRAMS];
  uint32_t modules[SHARE_PROGRAMS];
  machine_spec *slices; /* SHARE_MIG: the machine of each; else NULL. Owned */
} division;

static ff_status divide_memory(const share_scenario *s, const partition_share *shares, const machine_spec *spec,
                               division *d, ff_error *error) {
  address_hash *hash;
  colours *c = colours_make(spec, FRAME_BYTES, &hash);
  if (!c)
    return ff_fail(
        error, FF_UNSUPPORTED,
        "%s: its machine file does not say which address is in which memory module (address_map): memory cannot be divided",
        spec->name);
  ff_status status = shares_colours(shares, s->count, colours_count(c), d->colours, NULL, error);
  for (uint32_t i = 0; !status && i < s->count; i++) d->modules[i] = colours_modules_in(c, d->colours[i]);
  colours_free(c);
  hash_free(hash);
  return status;
}

static ff_status divide_slices(const share_scenario *s, const machine_spec *spec, division *d, ff_error *error) {
  uint32_t profiles[SHARE_PROGRAMS];
  for (uint32_t i = 0; i < s->count; i++) {
    profiles[i] = s->programs[i].profile;
    if (profiles[i] >= spec->mig_profiles.count)
      return ff_fail(error, FF_INVALID, "partition %u: %s has no profile %u", i, spec->name, profiles[i]);
  }
  ff_status status = mig_fit(spec, profiles, s->count, error);
  d->slices = ff_alloc(s->count * sizeof *d->slices);
  for (uint32_t i = 0; i < s->count && !status; i++) {
    status = mig_slice(spec, profiles[i], &d->slices[i], error);
    d->sms[i] = (sm_range){0, (uint32_t)d->slices[i].sm_count};
    d->modules[i] = (uint32_t)d->slices[i].channels;
  }
  return status;
}

static ff_status divide(const share_scenario *s, const machine_spec *spec, division *d, ff_error *error) {
  partition_share shares[SHARE_PROGRAMS];
  if (s->isolation == SHARE_MIG) return divide_slices(s, spec, d, error);
  for (uint32_t i = 0; i < s->count; i++) {
    shares[i] = (partition_share){s->programs[i].sm_share, s->programs[i].memory_share};
    d->modules[i] = (uint32_t)spec->channels;
    d->sms[i] = (sm_range){0, (uint32_t)spec->sm_count};
  }
  ff_status status =
      s->isolation >= SHARE_SM ? shares_sms(shares, s->count, (uint32_t)spec->sm_count, d->sms, error) : FF_OK;
  return status || s->isolation != SHARE_SM_MEMORY ? status : divide_memory(s, shares, spec, d, error);
}

static ff_status device_make(const share_scenario *s, const machine_spec *spec, const division *d, sim_device **device,
                             ff_error *error) {
  sim_tenant tenants[SHARE_PROGRAMS];
  for (uint32_t i = 0; i < s->count; i++) {
    const share_program *p = &s->programs[i];
    bool own = share_lends(s->isolation);
    tenants[i] = (sim_tenant){.sm_first = own ? d->sms[i].first : 0,
                              .sm_count = own ? d->sms[i].count : 0,
                              .colours = d->colours[i],
                              .memory_bytes = d->slices ? 0 : (uint64_t)(p->memory_share * (double)spec->memory_bytes),
                              .slice = d->slices ? &d->slices[i] : NULL,
                              .thread_share = p->sm_share,
                              .loops = p->loops,
                              .idle = !p->trace};
  }
  sim_device_options options = {.spec = spec,
                                .isolation = (sim_isolation)s->isolation,
                                .borrow = s->borrow,
                                .tenants = tenants,
                                .count = s->count};
  return sim_device_create(&options, device, error);
}

static double module_gbs(const machine_spec *spec) {
  return spec->dram_gbs * spec_data_share(spec) / (double)spec->channels;
}

static void outcome(const lane *l, const share_scenario *s, const machine_spec *spec, const division *d,
                    share_outcome *out) {
  uint32_t i = l->number;
  sim_tenant_result tenant;
  sim_device_tenant(l->device, i, &tenant);
  *out = (share_outcome){.kernel_us = l->kernel_us,
                         .total_us = l->total_us,
                         .launches = l->launches,
                         .passes = l->passes,
                         .sms = d->sms[i].count,
                         .colours = (uint32_t)__builtin_popcountll(d->colours[i]),
                         .memory_slices = d->slices ? spec->mig_profiles.profiles[l->program->profile].memory : 0,
                         .borrowed_us = (double)tenant.borrowed_ps / 1e6,
                         .take_back_us = (double)tenant.take_back_ps / 1e6,
                         .tiers = l->tiers};
  double bytes = (double)(l->sum.dram_read_bytes + l->sum.dram_write_bytes);
  if (l->kernel_us > 0) out->dram_gbs = bytes / l->kernel_us / 1e3;
  out->dram_share = out->dram_gbs / (module_gbs(spec) * d->modules[i]);
  for (uint32_t n = 0; n < s->count && s->isolation >= SHARE_SM_MEMORY; n++)
    if (!s->programs[n].trace) out->dram_unused_gbs += module_gbs(spec) * d->modules[n];
  double lent = l->kernel_us > 0 ? (double)tenant.lent_bytes / l->kernel_us / 1e3 : 0;
  out->dram_unused_gbs = out->dram_unused_gbs > lent ? out->dram_unused_gbs - lent : 0;
  if (l->status) snprintf(out->error, sizeof out->error, "%s", l->error.message);
}

/* All lanes that are not idle: first their simulations, then their threads. */
static ff_status lanes_run(lane *lanes, uint32_t count, ff_error *error) {
  ff_status status = FF_OK;
  for (uint32_t i = 0; i < count && !status; i++)
    if (lanes[i].program->trace && (status = round_open(&lanes[i]))) *error = lanes[i].error;
  uint32_t started = 0;
  for (; started < count && !status; started++) {
    if (!lanes[started].program->trace) continue;
    if (!pthread_create(&lanes[started].thread, NULL, lane_run, &lanes[started])) continue;
    fprintf(stderr, "farfault: cannot start a thread\n"); /* those that run wait for this one for ever */
    exit(1);
  }
  for (uint32_t i = 0; i < started; i++)
    if (lanes[i].program->trace) pthread_join(lanes[i].thread, NULL);
  return status;
}

ff_status share_run(const share_scenario *s, share_outcome *results, ff_error *error) {
  machine_spec spec = *s->spec;
  division d = {0};
  sim_device *device;
  lane lanes[SHARE_PROGRAMS] = {0};
  ff_status status = check(s, error);
  if (!status && s->set) status = machine_spec_set_all(&spec, s->set, error);
  if (!status) status = divide(s, &spec, &d, error);
  if (!status) status = device_make(s, &spec, &d, &device, error);
  if (status) {
    free(d.slices);
    return status;
  }
  for (uint32_t i = 0; i < s->count; i++)
    lanes[i] = (lane){.scenario = s,
                      .program = &s->programs[i],
                      .slice = d.slices ? &d.slices[i] : NULL,
                      .device = device,
                      .number = i};
  status = lanes_run(lanes, s->count, error);
  for (uint32_t i = 0; i < s->count; i++) {
    if (lanes[i].sim && !status) round_count(&lanes[i]);
    round_close(&lanes[i]);
    if (!status) outcome(&lanes[i], s, &spec, &d, &results[i]);
  }
  sim_device_free(device);
  free(d.slices);
  return status;
}
