/* SPDX-License-Identifier: Apache-2.0 */
/* The durations of a machine file in picoseconds: docs/timing.md has what they are for. */
#include "machine/timing.h"

#include <math.h>

#include "machine/spec/allocation.h"
#include "trace/stream.h"

enum { AHEAD_CYCLES = 64 }; /* how far an access may be ahead of the next event (sm/warp_access.c) */

static ps microseconds(double us) { return (ps)llround(us * 1e6); }

static ps mapping_time(const machine_spec *spec, double us) { return microseconds(us > 0 ? us : spec->malloc_us); }

static ps port_time(uint32_t sectors, double bytes_per_cycle, double cycle) {
  return bytes_per_cycle > 0 ? (ps)llround(sectors * TRACE_SECTOR_BYTES / bytes_per_cycle * cycle) : 0;
}

static void pipes_init(timing *t, const machine_spec *spec, double fixed) {
  t->one_fp64 = spec->double_latency > 0;
  const double cycles[] = {spec->fma_cycles, spec->alu_cycles, spec->sfu_cycles,
                           spec->fp64_cycles / (t->one_fp64 ? (double)spec->schedulers : 1), spec->tensor_cycles};
  for (size_t p = 0; p < sizeof cycles / sizeof *cycles; p++) t->pipe_fixed[p] = (uint64_t)llround(cycles[p] * fixed);
  double product = spec->product_cycles > spec->fma_cycles ? spec->product_cycles : 0;
  double half = spec->half_cycles > 0 ? spec->half_cycles : spec->fma_cycles;
  t->product_fixed = (uint64_t)llround(product * fixed);
  t->half_fixed = (uint64_t)llround(half * fixed);
  t->half_apart = spec->half_apart;
  t->two_for_minmax = spec->compute_major == 7 && spec->compute_minor < 5;
  if (spec->half_latency > spec->alu_latency)
    t->half_chain_fixed = (uint64_t)llround((spec->half_latency - spec->alu_latency) * fixed);
  double recorded = 2 * spec->alu_latency; /* what a chain has of each, as an addition has alu_latency */
  if (spec->double_latency > recorded)
    t->double_chain_fixed = (uint64_t)llround((spec->double_latency - recorded) * fixed);
  double apart = (spec->tensor_latency - PRODUCT_CHAIN * spec->alu_latency / 4) / PRODUCT_UNITS;
  if (spec->tensor_latency > 0) t->tensor_chain_fixed[apart < 0] = (uint64_t)llround(fabs(apart) * fixed);
  t->chain_fixed = (uint64_t)llround(spec->alu_latency / 4 * fixed);
  t->shared_load_fixed = (uint64_t)llround(spec->shared_load_latency * fixed);
}

void timing_init(timing *t, const machine_spec *spec) {
  double cycle = 1e6 / spec->clock_mhz, dram_cycle = 1e6 / spec->dram_clock_mhz;
  ps l2 = (ps)llround(spec->l2_latency * cycle), tlb = (ps)llround(spec->tlb_miss_latency * cycle);
  ps dram = (ps)llround(spec->dram_latency * cycle);
  double fixed = cycle * (1 << 20);
  *t = (timing){.cycle_fixed = (uint64_t)llround(fixed),
                .interval_fixed = (uint64_t)llround(spec->issue_interval * fixed),
                .sfu_fixed = (uint64_t)llround(spec->sfu_cycles * fixed),
                .fp64_fixed = (uint64_t)llround(spec->fp64_cycles * fixed),
                .shared_fixed = (uint64_t)llround(spec->shared_latency * fixed),
                .l1_lanes = spec->l1_lanes ? (uint32_t)spec->l1_lanes : 32,
                .dram_rows = (uint32_t)spec->dram_rows,
                .lookup = spec->l1_lookups ? (ps)llround(cycle / (double)spec->l1_lookups) : 0,
                .shares_banks = allocation_shares_memory(spec),
                .cycle = (ps)llround(cycle),
                .ahead = (ps)llround(cycle * AHEAD_CYCLES),
                .launch = microseconds(spec->launch_latency_us),
                .block_launch = (ps)llround(spec->block_launch_cycles * cycle),
                .gpu_block_launch = (ps)llround(spec->gpu_block_launch_cycles * cycle),
                .block_start = (ps)llround(spec->block_start_cycles * cycle),
                .barrier = (ps)llround(spec->barrier_latency * cycle),
                .barrier_warp = (ps)llround(spec->barrier_warp_cycles * cycle),
                .side = (ps)llround(spec->side_latency * cycle),
                .l1 = (ps)llround(spec->l1_latency * cycle),
                .l2_there = l2 / 2,
                .l2_back = l2 - l2 / 2,
                .tlb_port = (ps)llround(cycle / (double)spec->tlb_ports),
                .tlb_there = tlb / 2,
                .tlb_back = tlb - tlb / 2,
                .walk_cache = (ps)llround(spec->walk_cache_latency * cycle),
                .shared_tlb = (ps)llround(spec->l2_tlb_latency * cycle),
                .dram_there = dram / 2,
                .dram_back = dram - dram / 2,
                .dram_turn = (ps)llround(spec->t_turn * dram_cycle),
                .t_rrd = (ps)llround(spec->t_rrd * dram_cycle),
                .t_rcd = (ps)llround(spec->t_rcd * dram_cycle),
                .t_rp = (ps)llround(spec->t_rp * dram_cycle),
                .t_rc = (ps)llround(spec->t_rc * dram_cycle),
                .t_cl = (ps)llround(spec->t_cl * dram_cycle),
                .t_wr = (ps)llround(spec->t_wr * dram_cycle),
                .link_latency = microseconds(spec->link_latency_us),
                .link_copy = microseconds(spec->link_copy_us),
                .fault = microseconds(spec->fault_us),
                .fault_batch = microseconds(spec->fault_batch_us),
                .fault_block = microseconds(spec->fault_block_us),
                .host_fault = microseconds(spec->host_fault_us),
                .managed_launch = microseconds(spec->managed_launch_us),
                .api = microseconds(spec->api_us),
                .launch_call = microseconds(spec->launch_us),
                .sync = microseconds(spec->sync_us),
                .malloc = microseconds(spec->malloc_us),
                .reserve = mapping_time(spec, spec->reserve_us),
                .create = mapping_time(spec, spec->create_us),
                .release = mapping_time(spec, spec->release_us),
                .map = mapping_time(spec, spec->map_us),
                .unmap = mapping_time(spec, spec->unmap_us),
                .set_access = mapping_time(spec, spec->set_access_us),
                .h2d_per_byte = 1000 / spec->link_h2d_gbs,
                .d2h_per_byte = 1000 / spec->link_d2h_gbs,
                .host_per_byte = 1000 / spec->host_gbs,
                .dram_per_byte = 1000 / spec->dram_gbs / spec_copy_share(spec)};
  pipes_init(t, spec, fixed);
  double channel_byte = 1000 / spec->dram_gbs * (double)spec->channels; /* at the peak */
  double data = spec_data_share(spec), read = data / spec_read_share(spec),
         write = 2 * data / spec_copy_share(spec) - read;
  const double ports[2][2] = {{spec->sm_read_bytes, spec->cluster_read_bytes},
                              {spec->sm_write_bytes, spec->cluster_write_bytes}};
  for (uint32_t n = 0; n <= 4; n++) {
    for (int way = 0; way < 2; way++) {
      t->sm_port[way][n] = port_time(n, ports[way][0], cycle);
      t->cluster_port[way][n] = port_time(n, ports[way][1], cycle);
    }
    t->crossing[n] = port_time(n, spec->side_bytes, cycle);
    t->l2_service[n] = (ps)llround(n * TRACE_SECTOR_BYTES / spec->l2_bytes_per_cycle * cycle);
    double bytes = n ? (double)(n + spec->dram_check_sectors) * TRACE_SECTOR_BYTES : 0;
    t->dram_read[n] = (ps)llround(bytes * channel_byte * read);
    t->dram_write[n] = (ps)llround(bytes * channel_byte);
    t->dram_mixed_write[n] = (ps)llround(bytes * channel_byte * write);
  }
}
