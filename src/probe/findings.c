/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs that were found, and the masks that follow. Tested counts every pair that was drawn at
 * random and told apart. */
#include <stdlib.h>
#include <string.h>

#include "partition/gf2.h"
#include "probe/meter.h"

enum { MAX_OTHERS = 1 << 17 }; /* kept, of pairs without a conflict */

void findings_free(findings *f) {
  free(f->conflicts.items);
  free(f->others.items);
}

static void add_other(findings *f, uint64_t difference) {
  if (f->others.count < MAX_OTHERS) FF_PUSH(&f->others, difference);
}

void findings_add(findings *f, const probe_options *options, probe_random *random, const meter *m, uint64_t a,
                  uint64_t b, bool conflict) {
  f->tested++;
  if (!conflict) {
    add_other(f, a ^ b);
    return;
  }
  if (options->noise > 0 && probe_random_share(random) < options->noise) add_other(f, a ^ b); /* missed */
  else if (options->noise > 0 && probe_random_share(random) < options->noise)
    FF_PUSH(&f->conflicts, a ^ probe_random_near(random, m, a));
  else FF_PUSH(&f->conflicts, a ^ b);
}

void findings_solve(const findings *f, const probe_options *options, probe_finding *found) {
  recover_sample sample = {f->conflicts.items, f->others.items, f->conflicts.count,
                           f->others.count,    f->tested,       options->seed};
  recover_masks(&sample, &found->map);
  found->tested = f->tested;
  found->conflicts = f->conflicts.count;
  found->done = true;
}

void probe_modules(probe_result *result) {
  const probe_finding *banks = &result->kinds[PROBE_BANKS], *sets = &result->kinds[PROBE_SETS];
  result->modules_known = banks->done && sets->done && banks->map.rank && sets->map.rank;
  result->module_rank = 0;
  if (!result->modules_known) return;
  uint64_t masks[RECOVER_MASKS];
  gf2_space bank_space = gf2_span(masks, recover_list(&banks->map, masks));
  gf2_space set_space = gf2_span(masks, recover_list(&sets->map, masks));
  gf2_space common = gf2_intersection(&bank_space, &set_space);
  recover_basis(&common, masks);
  result->module_rank = common.rank;
  for (uint32_t i = 0; i < common.rank; i++) result->modules[i] = (recover_mask){.bits = masks[i]};
}

uint32_t probe_colours(const probe_result *result, uint32_t page_bits) {
  uint64_t masks[RECOVER_MASKS];
  for (uint32_t i = 0; i < result->module_rank; i++) masks[i] = result->modules[i].bits;
  gf2_space modules = gf2_span(masks, result->module_rank),
            within = gf2_restrict(&modules, (UINT64_C(1) << page_bits) - 1);
  return UINT32_C(1) << (modules.rank - within.rank);
}

const char *probe_kind_name(probe_kind kind) { return kind == PROBE_BANKS ? "banks" : "sets"; }
