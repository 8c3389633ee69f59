/* SPDX-License-Identifier: Apache-2.0 */
/* Values that measurements give only together with others: the others are taken from the base machine. Each line says
 * which.
 *
 *     tlb_near  = tlb_miss_latency + walk_levels x walk_cache_latency
 *     dram_hit  = l2_latency + half of side_latency, if the L2 has two sides + dram_latency + t_cl + burst of a sector
 *     pipe      = cycles of an instruction / schedulers
 *     l2_gbs    = l2_bytes_per_cycle x l2_slices x clock
 *     launch_interval = launch_latency + block_start
 *     block_interval  = the larger of block_launch and SMs x gpu_block_launch
 *     place_interval  = the larger of block_interval and block_start + issue_interval */
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

/* A GPU that starts blocks in turn is not told from SMs that do; what an SM alone needs is the base's, if it can be. */
static void solve_blocks(calibrate_result *r, const machine_spec *base) {
  double clock = median(r, FIGURE_clock_mhz), interval = median(r, FIGURE_block_interval_cycles),
         place = median(r, FIGURE_place_interval_cycles),
         start = place > 1.02 * interval ? place - median(r, FIGURE_issue_interval) : 0;
  double sms = r->device.sm_count > 0 ? (double)r->device.sm_count : (double)base->sm_count;
  solve(r, FIGURE_block_launch_cycles, FIGURE_block_interval_cycles,
        interval > base->block_launch_cycles ? base->block_launch_cycles / interval : 1, 0);
  solve(r, FIGURE_gpu_block_launch_cycles, FIGURE_block_interval_cycles, 1 / sms, 0);
  solve(r, FIGURE_block_start_cycles, FIGURE_place_interval_cycles, start / place, 0);
  solve(r, FIGURE_launch_latency_us, FIGURE_launch_interval_us, 1, isfinite(place) ? -start / clock : 0);
}

void calibrate_solve(calibrate_result *r, const machine_spec *base) {
  double clock = median(r, FIGURE_clock_mhz), walk_cache = median(r, FIGURE_walk_cache_latency),
         schedulers = (double)base->schedulers, side = base->l2_copies ? base->side_latency / 2 : 0;
  if (!isfinite(walk_cache)) walk_cache = base->walk_cache_latency;
  double burst = spec_sector_bytes(base) * (double)base->channels /
                 (isfinite(median(r, FIGURE_dram_gbs)) ? median(r, FIGURE_dram_gbs) : base->dram_gbs);
  solve_blocks(r, base);
  solve(r, FIGURE_tlb_miss_latency, FIGURE_tlb_near_cycles, 1, -(double)base->walk_levels * walk_cache);
  solve(r, FIGURE_dram_latency, FIGURE_dram_hit_cycles, 1,
        -median(r, FIGURE_l2_latency) - side - clock / 1e3 * (base->t_cl * 1e3 / base->dram_clock_mhz + burst));
  solve(r, FIGURE_sfu_cycles, FIGURE_sfu_pipe, schedulers, -3. / 64);
  solve(r, FIGURE_fp64_cycles, FIGURE_fp64_pipe, schedulers, -3. / 64);
  solve(r, FIGURE_l2_bytes_per_cycle, FIGURE_l2_gbs, 1e3 / clock / (double)base->l2_slices, 0);
}
