/* SPDX-License-Identifier: Apache-2.0 */
/* Special registers (PTX ISA, "Special Registers"). Everything is a function of the thread's place in the launch, or of
 * how many warp instructions were executed: the same run twice reads the same values. */
#include <string.h>

#include "exec/core.h"
#include "exec/launch/reserved_shared.h"

/* One cycle per warp instruction: those of all launches before, then the warp's own. */
static uint64_t clock_of(const core_warp *w, const exec_instr *i) {
  return w->launch->clock_base + w->executed + (i->index - w->segment);
}

static uint64_t nanoseconds(const core_warp *w, uint64_t cycles) {
  uint64_t hz = w->launch->config->clock_hz ? w->launch->config->clock_hz : 1000000000;
  return (uint64_t)((unsigned __int128)cycles * 1000000000 / hz);
}

/* The address of the cooperative grid's workspace: high half in %envreg1, low half in %envreg2. */
static uint32_t environment(const core_warp *w, uint32_t n) {
  uint64_t workspace = w->launch->workspace;
  return n == 1 ? (uint32_t)(workspace >> 32) : n == 2 ? (uint32_t)workspace : 0;
}

static uint64_t uniform(const core_warp *w, const exec_instr *i) {
  const core_launch *launch = w->launch;
  const core_block *block = w->block;
  const exec_config *config = launch->config;
  ptx_sreg sreg = (ptx_sreg)i->aux;
  switch (sreg) {
  case PTX_SREG_NTID_X: return launch->block[0];
  case PTX_SREG_NTID_Y: return launch->block[1];
  case PTX_SREG_NTID_Z: return launch->block[2];
  case PTX_SREG_CTAID_X: return block->ctaid[0];
  case PTX_SREG_CTAID_Y: return block->ctaid[1];
  case PTX_SREG_CTAID_Z: return block->ctaid[2];
  case PTX_SREG_NCTAID_X: return launch->grid[0];
  case PTX_SREG_NCTAID_Y: return launch->grid[1];
  case PTX_SREG_NCTAID_Z: return launch->grid[2];
  case PTX_SREG_CLUSTERID_X:
  case PTX_SREG_CLUSTERID_Y:
  case PTX_SREG_CLUSTERID_Z: {
    uint32_t axis = sreg - PTX_SREG_CLUSTERID_X;
    return block->ctaid[axis] / launch->cluster[axis];
  }
  case PTX_SREG_NCLUSTERID_X:
  case PTX_SREG_NCLUSTERID_Y:
  case PTX_SREG_NCLUSTERID_Z: {
    uint32_t axis = sreg - PTX_SREG_NCLUSTERID_X;
    return launch->grid[axis] / launch->cluster[axis];
  }
  case PTX_SREG_CLUSTER_CTAID_X:
  case PTX_SREG_CLUSTER_CTAID_Y:
  case PTX_SREG_CLUSTER_CTAID_Z: {
    uint32_t axis = sreg - PTX_SREG_CLUSTER_CTAID_X;
    return block->ctaid[axis] % launch->cluster[axis];
  }
  case PTX_SREG_CLUSTER_NCTAID_X:
  case PTX_SREG_CLUSTER_NCTAID_Y:
  case PTX_SREG_CLUSTER_NCTAID_Z: return launch->cluster[sreg - PTX_SREG_CLUSTER_NCTAID_X];
  case PTX_SREG_CLUSTER_CTARANK: return block->rank;
  case PTX_SREG_CLUSTER_NCTARANK: return launch->cluster_blocks;
  case PTX_SREG_IS_EXPLICIT_CLUSTER: return launch->has_clusters;
  case PTX_SREG_WARP_SZ: return EXEC_LANES;
  case PTX_SREG_WARPID: return w->index;
  case PTX_SREG_NWARPID: return EXEC_MAX_WARPS;
  case PTX_SREG_SMID:
    return config->sms_count  ? config->sms[block->index % config->sms_count]
           : config->sm_count ? block->index % config->sm_count
                              : 0;
  case PTX_SREG_NSMID: return config->sm_count ? config->sm_count : 1;
  case PTX_SREG_CLOCK: return (uint32_t)clock_of(w, i);
  case PTX_SREG_CLOCK_HI: return clock_of(w, i) >> 32;
  case PTX_SREG_CLOCK64: return clock_of(w, i);
  case PTX_SREG_GLOBALTIMER: return nanoseconds(w, clock_of(w, i));
  case PTX_SREG_GLOBALTIMER_LO: return (uint32_t)nanoseconds(w, clock_of(w, i));
  case PTX_SREG_GLOBALTIMER_HI: return nanoseconds(w, clock_of(w, i)) >> 32;
  case PTX_SREG_TOTAL_SMEM_SIZE:
  case PTX_SREG_AGGR_SMEM_SIZE: return launch->shared_bytes;
  case PTX_SREG_DYNAMIC_SMEM_SIZE: return launch->dynamic_shared;
  case PTX_SREG_RESERVED_SMEM_OFFSET_BEGIN:
  case PTX_SREG_RESERVED_SMEM_OFFSET_0: return reserved_shared_at(launch);
  case PTX_SREG_RESERVED_SMEM_OFFSET_1: return reserved_shared_at(launch) + EXEC_RESERVED_SHARED / 2;
  case PTX_SREG_RESERVED_SMEM_OFFSET_END: return reserved_shared_at(launch) + EXEC_RESERVED_SHARED;
  case PTX_SREG_RESERVED_SMEM_OFFSET_CAP: return EXEC_RESERVED_SHARED;
  case PTX_SREG_GRIDID: return launch->request->launch_id;
  case PTX_SREG_CURRENT_GRAPH_EXEC: return launch->request->graph;
  default:
    if (sreg >= PTX_SREG_ENVREG0 && sreg <= PTX_SREG_ENVREG31)
      return environment(w, (uint32_t)(sreg - PTX_SREG_ENVREG0));
    return 0;
  }
}

static uint32_t per_lane(const core_warp *w, ptx_sreg sreg, uint32_t lane) {
  switch (sreg) {
  case PTX_SREG_TID_X: return w->tid[0][lane];
  case PTX_SREG_TID_Y: return w->tid[1][lane];
  case PTX_SREG_TID_Z: return w->tid[2][lane];
  case PTX_SREG_LANEID: return lane;
  case PTX_SREG_LANEMASK_EQ: return 1u << lane;
  case PTX_SREG_LANEMASK_LT: return (1u << lane) - 1;
  case PTX_SREG_LANEMASK_LE: return (2u << lane) - 1;
  case PTX_SREG_LANEMASK_GT: return ~((2u << lane) - 1);
  default: return ~((1u << lane) - 1); /* ge */
  }
}

static bool is_per_lane(ptx_sreg sreg) {
  return (sreg >= PTX_SREG_TID_X && sreg <= PTX_SREG_TID_Z) || sreg == PTX_SREG_LANEID ||
         (sreg >= PTX_SREG_LANEMASK_EQ && sreg <= PTX_SREG_LANEMASK_GT);
}

static bool is_wide(ptx_sreg sreg) {
  return sreg == PTX_SREG_GRIDID || sreg == PTX_SREG_CLOCK64 || sreg == PTX_SREG_GLOBALTIMER ||
         sreg == PTX_SREG_CURRENT_GRAPH_EXEC;
}

static void fill(core_warp *w, const exec_instr *i, uint64_t value, bool wide) {
  uint64_t *pairs = exec_u64(&w->x, i->dst);
  uint32_t *words = exec_u32(&w->x, i->dst);
  if (wide)
    for (uint32_t lane = 0; lane < EXEC_LANES; lane++) pairs[lane] = value;
  else
    for (uint32_t lane = 0; lane < EXEC_LANES; lane++) words[lane] = (uint32_t)value;
}

void core_read_sreg(core_warp *w, const exec_instr *i) {
  ptx_sreg sreg = (ptx_sreg)i->aux;
  uint32_t mask = w->x.mask;
  if (is_per_lane(sreg)) {
    uint32_t *to = exec_u32(&w->x, i->dst);
    if (mask == EXEC_ALL_LANES && sreg <= PTX_SREG_TID_Z) {
      memcpy(to, w->tid[sreg - PTX_SREG_TID_X], EXEC_SLOT);
      return;
    }
    for (uint32_t lane = 0; lane < EXEC_LANES; lane++)
      if (mask >> lane & 1) to[lane] = per_lane(w, sreg, lane);
    return;
  }
  uint64_t value = uniform(w, i);
  if (mask == EXEC_ALL_LANES) {
    fill(w, i, value, is_wide(sreg));
    return;
  }
  for (uint32_t lane = 0; lane < EXEC_LANES; lane++) {
    if (!(mask >> lane & 1)) continue;
    if (is_wide(sreg)) exec_u64(&w->x, i->dst)[lane] = value;
    else exec_u32(&w->x, i->dst)[lane] = (uint32_t)value;
  }
}
