/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of a reproduction that are shares of a GPU: which recordings run in parallel, and what the simulation
 * says of the first.
 *
 * All partitions are equal; in the first runs the program that is measured, once; in all others the
 * same program, again and again, or none. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "reproduce/repro_private.h"

static const char *machine_of(const repro_paper *paper, uint32_t setting) {
  return paper->settings[setting].machine ? paper->settings[setting].machine : paper->machine;
}

bool repro_bound(const repro_paper *paper, uint32_t setting) { return paper->shares && paper->shares[setting].bound; }

bool repro_takes(const repro_paper *paper, uint32_t program, uint32_t setting) {
  const char *neighbour = paper->shares ? paper->shares[setting].neighbour : NULL;
  return paper->programs[program].workload &&
         (repro_applies(paper, program, setting) || (neighbour && !strcmp(neighbour, paper->programs[program].label)));
}

/* Bound kernels are others on each machine, and for each number of SMs. */
char *repro_recording(const repro_paper *paper, repro_size size, uint32_t program, uint32_t setting,
                      const char *folder) {
  ff_text path = {0};
  ff_text_add(&path, "%s/%s-%s-%s", folder, paper->name, repro_size_names[size], paper->programs[program].label);
  if (repro_bound(paper, setting))
    ff_text_add(&path, "-%s-1of%u", machine_of(paper, setting), paper->shares[setting].partitions);
  ff_text_add(&path, ".fft");
  return path.chars;
}

static ff_status run(const share_scenario *scenario, sim_counters *out, ff_error *error) {
  share_outcome results[SHARE_PROGRAMS];
  memset(results, 0, sizeof results);
  ff_status status = share_run(scenario, results, error);
  for (uint32_t i = 0; i < scenario->count && !status; i++)
    if (results[i].error[0])
      status = ff_fail(error, FF_INVALID, "%s: %s", scenario->programs[i].trace, results[i].error);
  if (status) return status;
  out->kernel_ps = (uint64_t)llround(results[0].kernel_us * 1e6);
  out->time_ps = (uint64_t)llround(results[0].total_us * 1e6);
  out->launches = results[0].launches;
  return FF_OK;
}

/* Where kernels are measured, copies take next to no time: they are not measured, and the others would loop all the
 * while. */
static const char no_copies[] =
    "link_table=none,link_h2d_gbs=10000,link_d2h_gbs=10000,link_copy_us=0,link_latency_us=0";

static ff_status run_programs(const repro_paper *paper, repro_size size, uint32_t program, uint32_t setting,
                              const machine_spec *spec, const char *folder, sim_counters *out, ff_error *error) {
  const repro_share *share = &paper->shares[setting];
  share_program programs[SHARE_PROGRAMS];
  double part = 1.0 / share->partitions;
  int neighbour = share->neighbour ? repro_program_index(paper, share->neighbour) : -1;
  FF_ASSERT(share->partitions <= SHARE_PROGRAMS && (!share->neighbour || neighbour >= 0));
  char *first = repro_recording(paper, size, program, setting, folder),
       *others = neighbour < 0 ? NULL : repro_recording(paper, size, (uint32_t)neighbour, setting, folder);
  for (uint32_t i = 0; i < share->partitions; i++)
    programs[i] = (share_program){.trace = i ? others : first, .sm_share = part, .memory_share = part, .loops = i > 0};
  share_scenario scenario = {.spec = spec,
                             .set = share->kernels_only ? no_copies : paper->set,
                             .manager = paper->settings[setting].memory,
                             .isolation = share->isolation,
                             .profile_range = share->profile_range,
                             .programs = programs,
                             .count = share->partitions};
  ff_status status = run(&scenario, out, error);
  free(first);
  free(others);
  return status;
}

/* ---- chains ---- */

enum { FIRST_MODULE = 1, FIRST_BANK = 3, FIRST_SET = 5, BLOCK = 2 << 20 };

/* Where the other chains' lines lie, by the curve's name: same or different cache set, same or different bank,
 * different module. */
static chain_place place_of_others(const char *curve) {
  chain_place same = {FIRST_MODULE, FIRST_BANK, FIRST_SET};
  if (!strcmp(curve, "DM")) return (chain_place){FIRST_MODULE + 1, FIRST_BANK + 1, FIRST_SET + 1};
  return (chain_place){same.module, same.bank + (curve[2] == 'D'), same.set + (curve[0] == 'D')};
}

/* The first chain has an SM of its own. The others make twice as many loads, so that they are there until it is over.
 * Their memory comes first, as what a program that loops does between its kernels takes it no time; its page table has
 * a frame of the 2 MiB behind it. */
static ff_status run_chains_at(const repro_paper *paper, repro_size size, uint32_t chains, const char *curve,
                               const machine_spec *spec, char *const *paths, const address_hash *hash,
                               sim_counters *out, ff_error *error) {
  static const uint32_t loads[REPRO_SIZES] = {100, 250, 4000};
  chain_request others = {.chains = chains - 1,
                          .loads = 2 * loads[size],
                          .physical = 0,
                          .place = place_of_others(curve)},
                first = {.chains = 1,
                         .loads = loads[size],
                         .physical = chains > 1 ? chain_bytes(&others) + BLOCK : 0,
                         .place = {FIRST_MODULE, FIRST_BANK, FIRST_SET}};
  double part = 1.0 / (double)spec->sm_count;
  ff_status status = chain_write(hash, &first, paths[0], error);
  if (!status && chains > 1) status = chain_write(hash, &others, paths[1], error);
  if (status) return status;
  share_program programs[] = {
      {.trace = paths[0], .sm_share = part, .memory_share = 0.5},
      {.trace = chains > 1 ? paths[1] : NULL, .sm_share = 1 - part, .memory_share = 0.5, .loops = true}};
  share_scenario scenario = {.spec = spec, .set = paper->set, .isolation = SHARE_SM, .programs = programs, .count = 2};
  status = run(&scenario, out, error);
  out->accesses = loads[size];
  out->blocks = chains;
  return status;
}

static ff_status run_chains(const repro_paper *paper, repro_size size, uint32_t program, uint32_t setting,
                            const machine_spec *spec, const char *folder, sim_counters *out, ff_error *error) {
  const char *curve = paper->settings[setting].key;
  uint32_t chains = (uint32_t)strtoul(paper->programs[program].arguments[size], NULL, 10);
  hash_spec described;
  address_hash *hash;
  ff_status status = machine_spec_hash(spec, &described, error);
  if (!status) status = hash_create(&described, &hash, error);
  if (status) return status;
  char *paths[2];
  for (int i = 0; i < 2; i++) {
    ff_text path = {0};
    ff_text_add(&path, "%s/%s-%s-%u-%d.chain.fft", folder, paper->name, curve, chains, i);
    paths[i] = path.chars;
  }
  status = run_chains_at(paper, size, chains, curve, spec, paths, hash, out, error);
  for (int i = 0; i < 2; i++) {
    unlink(paths[i]);
    free(paths[i]);
  }
  hash_free(hash);
  return status;
}

/* ---- a cell ---- */

ff_status repro_share_run(const repro_paper *paper, repro_size size, uint32_t program, uint32_t setting,
                          const char *folder, sim_counters *out, ff_error *error) {
  machine_spec *spec = ff_alloc(sizeof *spec);
  *out = (sim_counters){0};
  ff_status status = machine_spec_load(machine_of(paper, setting), spec, error);
  if (!status)
    status = paper->programs[program].workload ? run_programs(paper, size, program, setting, spec, folder, out, error)
                                               : run_chains(paper, size, program, setting, spec, folder, out, error);
  free(spec);
  return status;
}
