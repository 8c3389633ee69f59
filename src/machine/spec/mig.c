/* SPDX-License-Identifier: Apache-2.0 */
/* MIG profiles (mig.h). What a slice has of the GPU:
 *
 *     SMs                                         as the profile says
 *     memory, its channels with their L2 slices   memory / mig_memory_slices
 *     page walkers, walk cache, shared TLB        the same share: what is isolated can only be counted out
 *     bytes of the L2                             l2 / mig_memory_slices
 *     copy engines                                one for each compute slice
 *     blocks started per cycle                    its share of the SMs
 *
 * Up to half of the memory lies on one side of an L2 of two sides: nothing is copied to the other one, and none is
 * further away. */
#include "machine/spec/mig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "machine/spec/spec_table.h"

uint32_t mig_compute(const machine_profile *profile) { return (uint32_t)strtoul(profile->name, NULL, 10); }

static ff_status need_mig(const machine_spec *spec, ff_error *error) {
  if (spec->mig_profiles.count) return FF_OK;
  return ff_fail(error, FF_UNSUPPORTED,
                 "%s has no MIG: there are no mig_profiles in its machine file (a100, h100, h200 and gh200 have them)",
                 spec->name);
}

/* ---- names ---- */

/* "3g.40gb", or "3g": up to the point. */
static bool is_named(const machine_profile *p, const char *word, size_t length) {
  size_t short_length = strcspn(p->name, ".");
  return (length == strlen(p->name) || length == short_length) && !strncmp(p->name, word, length);
}

static ff_status find(const machine_spec *spec, const char *word, size_t length, uint32_t *out, ff_error *error) {
  const machine_profile_table *table = &spec->mig_profiles;
  ff_text known = {0};
  for (*out = 0; *out < table->count; ++*out) {
    if (is_named(&table->profiles[*out], word, length)) return FF_OK;
  }
  for (uint64_t i = 0; i < table->count; i++) ff_text_add(&known, "%s%s", i ? ", " : "", table->profiles[i].name);
  ff_status status = ff_fail(error, FF_NOT_FOUND, "no profile '%.*s': %s has %s", (int)(length < 40 ? length : 40),
                             word, spec->name, known.chars);
  free(known.chars);
  return status;
}

ff_status mig_read(const machine_spec *spec, const char *option, const char *text, uint32_t limit, uint32_t *out,
                   uint32_t *count, ff_error *error) {
  ff_status status = need_mig(spec, error);
  if (status) return status;
  *count = 0;
  for (const char *at = text; !status; at++) {
    size_t length = strcspn(at, ",");
    ff_error why;
    if (*count == limit) status = ff_fail(&why, FF_LIMIT, "more than %u slices", limit);
    else if (!length) status = ff_fail(&why, FF_PARSE, "a profile is missing: they are like 3g.40gb,3g.40gb");
    else status = find(spec, at, length, &out[(*count)++], &why);
    if (status)
      return ff_fail_in_text(error, status, option, text, strlen(text), 1, (uint32_t)(at - text) + 1, "%s",
                             why.message);
    at += length;
    if (!*at) break;
  }
  return FF_OK;
}

/* ---- what fits ---- */

static ff_status check_sum(const char *what, uint64_t sum, uint64_t most, ff_error *error) {
  if (sum <= most) return FF_OK;
  return ff_fail(error, FF_LIMIT, "these profiles have %" PRIu64 " %s together: there are %" PRIu64, sum, what, most);
}

ff_status mig_fit(const machine_spec *spec, const uint32_t *profiles, uint32_t count, ff_error *error) {
  uint64_t sms = 0, compute = 0, memory = 0, l2 = 0;
  for (uint32_t i = 0; i < count; i++) {
    const machine_profile *p = &spec->mig_profiles.profiles[profiles[i]];
    sms += p->sms;
    compute += mig_compute(p);
    memory += p->memory;
    l2 += p->l2;
  }
  ff_status status = check_sum("compute slices", compute, spec->mig_compute_slices, error);
  if (!status) status = check_sum("memory slices", memory, spec->mig_memory_slices, error);
  if (!status) status = check_sum("L2 slices", l2, spec->mig_memory_slices, error);
  return status ? status : check_sum("SMs", sms, spec->sm_count, error);
}

ff_status mig_largest(const machine_spec *spec, uint32_t count, uint32_t *profile, ff_error *error) {
  const machine_profile *best = NULL;
  ff_status status = need_mig(spec, error);
  if (status) return status;
  for (uint32_t i = 0; i < spec->mig_profiles.count; i++) {
    const machine_profile *p = &spec->mig_profiles.profiles[i];
    uint32_t all[64];
    ff_error why;
    for (uint32_t n = 0; n < count && n < 64; n++) all[n] = i;
    if (count > 64 || mig_fit(spec, all, count, &why)) continue;
    if (best && (p->sms < best->sms || (p->sms == best->sms && p->memory <= best->memory))) continue;
    best = p;
    *profile = i;
  }
  return best ? FF_OK : ff_fail(error, FF_LIMIT, "%s has no profile of which %u fit", spec->name, count);
}

/* ---- a slice ---- */

/* The share of a number of things that a GPU may have few of; none of none. */
static uint64_t part(uint64_t whole, const machine_profile *p, uint64_t slices) {
  uint64_t own = whole * p->memory / slices;
  return whole && !own ? 1 : own;
}

static void divide_translation(const machine_spec *spec, const machine_profile *p, machine_spec *slice) {
  uint64_t slices = spec->mig_memory_slices, ways = spec->l2_tlb_ways ? spec->l2_tlb_ways : 1;
  slice->walkers = part(spec->walkers, p, slices);
  slice->walk_cache_bytes = part(spec->walk_cache_bytes / 8, p, slices) * 8;
  slice->l2_tlb_entries = part(spec->l2_tlb_entries / ways, p, slices) * ways;
}

/* Which address is in which module is known of the whole GPU: a slice's pieces go round its modules. Of two sides it
 * has those of the GPU. */
static void interleave(machine_spec *slice) {
  memset(slice->address_map, 0, sizeof slice->address_map);
  slice->module_masks = slice->bank_masks = slice->set_masks = (machine_mask_table){.count = 0};
  if (!slice->l2_copies) slice->side_masks = (machine_mask_table){.count = 0};
  slice->piece_bytes = slice->polynomial = 0;
}

ff_status mig_slice(const machine_spec *spec, uint32_t profile, machine_spec *slice, ff_error *error) {
  const machine_profile *p = &spec->mig_profiles.profiles[profile];
  uint64_t slices = spec->mig_memory_slices;
  ff_error why;
  if (spec->stack_count) return ff_fail(error, FF_INVALID, "%s: a GPU with memory stacks has no slices", spec->name);
  if (spec->channels % slices || spec->l2_slices % slices)
    return ff_fail(error, FF_INVALID,
                   "%s: %" PRIu64 " channels and %" PRIu64 " L2 slices cannot be divided into %" PRIu64, spec->name,
                   spec->channels, spec->l2_slices, slices);
  *slice = *spec;
  snprintf(slice->name, sizeof slice->name, "%.40s MIG %s", spec->name, p->name);
  slice->sm_count = p->sms;
  slice->memory_bytes = spec->memory_bytes / slices * p->memory & ~(spec->fault_page_bytes - 1);
  slice->channels = spec->channels / slices * p->memory;
  slice->l2_slices = spec->l2_slices / slices * p->memory;
  slice->l2_bytes = spec->l2_bytes / slices * p->l2;
  slice->dram_gbs = spec->dram_gbs * p->memory / (double)slices;
  slice->copy_engines = mig_compute(p);
  slice->gpu_block_launch_cycles = spec->gpu_block_launch_cycles * (double)spec->sm_count / p->sms;
  if (2 * p->memory <= slices) {
    slice->l2_copies = 0;
    slice->side_latency = slice->side_bytes = 0;
  }
  interleave(slice);
  divide_translation(spec, p, slice);
  slice->mig_compute_slices = slice->mig_memory_slices = 0;
  slice->mig_profiles = (machine_profile_table){.count = 0};
  if (spec_check(slice, &why)) return ff_fail(error, FF_INVALID, "profile %s: %s", p->name, why.message);
  return FF_OK;
}
