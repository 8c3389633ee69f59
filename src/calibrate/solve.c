/* SPDX-License-Identifier: Apache-2.0 */
/* Values that measurements give only together with others: the others are taken from the base machine. Each line says
 * which.
 *
 *     tlb_near  = tlb_miss_latency + walk_levels x walk_cache_latency
 *     dram_hit  = l2_latency + dram_latency + t_cl + burst of a sector
 *     pipe      = cycles of an instruction / schedulers
 *     l2_gbs    = l2_bytes_per_cycle x l2_slices x clock */
#include <math.h>

#include "calibrate/calibrate.h"

static double median(const calibrate_result *r, figure_id id) {
  return r->figures[id].count ? figure_summarise(&r->figures[id]).median : NAN;
}

/* One sample of `to` for each of `from`. */
static void solve(calibrate_result *r, figure_id to, figure_id from, double factor, double add) {
  figure *f = &r->figures[to];
  f->count = 0;
  for (uint32_t i = 0; i < r->figures[from].count; i++) {
    double value = r->figures[from].samples[i] * factor + add;
    if (isfinite(value)) f->samples[f->count++] = value > 0 ? value : 0;
  }
}

void calibrate_solve(calibrate_result *r, const machine_spec *base) {
  double clock = median(r, FIGURE_clock_mhz), walk_cache = median(r, FIGURE_walk_cache_latency),
         schedulers = (double)base->schedulers;
  if (!isfinite(walk_cache)) walk_cache = base->walk_cache_latency;
  double burst = 32 * (double)base->channels /
                 (isfinite(median(r, FIGURE_dram_gbs)) ? median(r, FIGURE_dram_gbs) : base->dram_gbs);
  solve(r, FIGURE_tlb_miss_latency, FIGURE_tlb_near_cycles, 1, -(double)base->walk_levels * walk_cache);
  solve(r, FIGURE_dram_latency, FIGURE_dram_hit_cycles, 1,
        -median(r, FIGURE_l2_latency) - clock / 1e3 * (base->t_cl * 1e3 / base->dram_clock_mhz + burst));
  solve(r, FIGURE_sfu_cycles, FIGURE_sfu_pipe, schedulers, -3. / 64);
  solve(r, FIGURE_fp64_cycles, FIGURE_fp64_pipe, schedulers, -3. / 64);
  solve(r, FIGURE_l2_bytes_per_cycle, FIGURE_l2_gbs, 1e3 / clock / (double)base->l2_slices, 0);
}
