/* SPDX-License-Identifier: Apache-2.0 */
/* All durations of a machine file, in picoseconds. */
#ifndef FF_MACHINE_TIMING_H
#define FF_MACHINE_TIMING_H

#include "machine/spec/spec.h"
#include "machine/time.h"

/* Of a product of 2048 multiply-adds of half precision, in a recording: its units of the tensor core, and the cycles of
 * a chain that it has where an addition has four. */
enum { PRODUCT_UNITS = 4, PRODUCT_CHAIN = 25 };

typedef struct timing {
  /* picoseconds << 20, per instruction or pass */
  uint64_t cycle_fixed, interval_fixed, sfu_fixed, fp64_fixed, shared_fixed;
  uint64_t chain_fixed, shared_load_fixed, pipe_fixed[5]; /* of the execution pipes, in the order of sm.h */
  uint64_t product_fixed, half_fixed; /* of integers, beside their part in the FMA pipe's time, and half precision */
  uint64_t half_chain_fixed;          /* more than another instruction of a chain takes */
  uint64_t double_chain_fixed;        /* the same of double precision */
  /* what 512 multiply-adds of a product take more and less than the recording has */
  uint64_t tensor_chain_fixed[2];
  bool two_for_minmax; /* minima and maxima of integers are a comparison and a selection */
  bool half_apart;     /* half precision has a pipe of its own: else it goes to the FMA pipe */
  bool one_fp64;       /* the SM has one pipe of double precision, which its schedulers share */
  uint32_t l1_lanes, dram_rows;
  ps lookup;         /* from line to line of an access in the load/store unit; 0: a cycle, whatever the banks need */
  bool shares_banks; /* of the L1 and shared memory: what one of them takes, the other waits for */
  ps cycle, ahead, launch, block_launch, gpu_block_launch, block_start, barrier, barrier_warp;
  ps side, l1, l2_there, l2_back, l2_service[5], crossing[5]; /* by sectors */
  ps dram_read[5], dram_write[5], dram_mixed_write[5];        /* of a channel, by sectors, with check words */
  ps sm_port[2][5], cluster_port[2][5];                       /* to the SM and from it, by sectors */
  ps tlb_port, tlb_there, tlb_back, shared_tlb, walk_cache;
  ps dram_there, dram_back, dram_turn, t_rrd, t_rcd, t_rp, t_rc, t_cl, t_wr;
  ps link_latency, link_copy, fault, fault_batch, fault_block, host_fault, managed_launch, api, launch_call, sync,
      malloc;
  ps reserve, create, release, map, unmap, set_access;
  double h2d_per_byte, d2h_per_byte, host_per_byte, dram_per_byte; /* picoseconds */
} timing;

void timing_init(timing *t, const machine_spec *spec);

#endif
