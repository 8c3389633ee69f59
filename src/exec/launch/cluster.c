/* SPDX-License-Identifier: Apache-2.0 */
/* Thread block clusters (PTX ISA, "Cluster of Cooperative Thread Arrays"): where their blocks are in the grid, their
 * shared memories as one, their barrier, and how they take turns.
 *
 * A worker runs all blocks of a cluster, so nothing here is shared between threads of the host. A block that has
 * finished stays until its cluster has.
 *
 * Shared addresses. The window of shared memory begins with the running block's own; behind it every block of the
 * cluster has 16 MiB, by rank. `mapa` of the block's own rank gives the address in its own part.
 *
 *     0 .. 16 MiB: own    (rank + 1) << 24 ..: the block of that rank */
#include <string.h>

#include "exec/launch/fault.h"

#define RANK_SHIFT 24u
#define IDLE_ROUNDS 64u /* rounds over a cluster after which other clusters get their turn */

/* ---- places ---- */

void core_cluster_place(const core_launch *launch, uint64_t index, uint32_t ctaid[3]) {
  if (launch->cluster_blocks == 1 && index <= UINT32_MAX) { /* nearly always; divisions take long */
    uint32_t row = (uint32_t)index < launch->grid[0] ? 0 : (uint32_t)index / launch->grid[0],
             plane = row < launch->grid[1] ? 0 : row / launch->grid[1];
    ctaid[0] = (uint32_t)index - row * launch->grid[0];
    ctaid[1] = row - plane * launch->grid[1];
    ctaid[2] = plane;
    return;
  }
  uint32_t rank = (uint32_t)(index % launch->cluster_blocks);
  uint64_t cluster = index / launch->cluster_blocks;
  for (uint32_t axis = 0; axis < 3; axis++) {
    uint32_t along = launch->grid[axis] / launch->cluster[axis], at = (uint32_t)(cluster % along);
    ctaid[axis] = at * launch->cluster[axis] + rank % launch->cluster[axis];
    cluster /= along;
    rank /= launch->cluster[axis];
  }
}

/* ---- shared memory ---- */

uint32_t core_shared_rank(const core_warp *w, uint64_t offset) {
  uint64_t part = offset >> RANK_SHIFT;
  return part ? (uint32_t)part - 1 : w->block->rank;
}

unsigned char *core_shared_at(const core_warp *w, uint64_t offset, uint32_t bytes) {
  const core_block *block = w->block;
  uint32_t at = (uint32_t)(offset & (EXEC_WINDOW_BYTES - 1));
  if (offset >= EXEC_WINDOW_BYTES) {
    uint32_t rank = core_shared_rank(w, offset);
    if (offset >= EXEC_CLUSTER_BYTES || rank >= block->cluster->count) return NULL;
    block = block->cluster->blocks[rank];
  }
  return at >= block->shared_bytes || block->shared_bytes - at < bytes ? NULL : block->shared + at;
}

uint32_t core_shared_map(const core_warp *w, uint32_t from, uint32_t rank) {
  uint32_t at = from & (uint32_t)(EXEC_WINDOW_BYTES - 1);
  return rank == w->block->rank ? at : (rank + 1) << RANK_SHIFT | at;
}

/* ---- the barrier ---- */

void core_cluster_trace(core_warp *w, bool arrive_only) {
  if (!w->cluster_owes) return;
  w->cluster_owes = false;
  if (!w->trace) return;
  if (w->inside) core_mark_leave(w);
  trace_put_barrier(w->trace, EXEC_CLUSTER_BARRIER, arrive_only, w->block->cluster_expected);
}

static void open_for(core_block *block) {
  block->cluster_expected = 0;
  for (uint32_t n = 0; n < block->warp_count; n++) {
    core_warp *w = &block->warps[n];
    block->cluster_expected += w->live != 0;
    w->cluster_arrived = 0;
    w->cluster_owes = w->live != 0;
  }
  core_barrier_open_cluster(block);
}

static void check_complete(core_cluster *cluster) {
  if (!cluster->arrived || cluster->arrived < cluster->live) return;
  cluster->arrived = 0;
  for (uint32_t n = 0; n < cluster->count; n++) open_for(cluster->blocks[n]);
}

void core_cluster_exit(core_warp *w, uint32_t lanes) {
  core_cluster *cluster = w->block->cluster;
  uint32_t arrived = lanes & w->cluster_arrived;
  cluster->live -= core_lane_count(lanes);
  if (!cluster->arrived) return;
  w->cluster_arrived &= ~lanes;
  cluster->arrived -= core_lane_count(arrived);
  check_complete(cluster);
}

static void arrive(core_warp *w, const exec_instr *i) {
  core_cluster *cluster = w->block->cluster;
  uint32_t again = w->active & w->cluster_arrived;
  if (again)
    core_fault(w, i, (uint32_t)__builtin_ctz(again), EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
               "barrier.cluster.arrive by a thread that has arrived and not waited");
  w->cluster_arrived |= w->active;
  cluster->arrived += w->active_count;
  w->block->moved = true;
  check_complete(cluster);
}

/* Lanes for which the barrier has opened go on, the others wait. */
static bool wait_here(core_warp *w, const exec_instr *i) {
  core_barrier *barrier = &w->block->barriers[EXEC_CLUSTER_BARRIER];
  uint32_t pass = w->active & ~w->cluster_arrived;
  if (pass == w->active) {
    core_cluster_trace(w, false);
    return true;
  }
  w->active &= ~pass;
  w->active_count = core_lane_count(w->active);
  barrier->arrived += w->active_count;
  w->block->barriers_waiting |= 1u << EXEC_CLUSTER_BARRIER;
  core_park(w, i, SPLIT_BARRIER, EXEC_CLUSTER_BARRIER, 0);
  if (pass) core_add_ready(w, pass, i + 1, w->frame);
  return false;
}

bool core_cluster_barrier(core_warp *w, const exec_instr *i) {
  const exec_sync *sync = i->side;
  core_count(w, i->index + 1);
  w->pc = i;
  if (sync->mode != EXEC_BARRIER_ARRIVE) return wait_here(w, i);
  arrive(w, i);
  return true;
}

/* ---- turns ---- */

/* Nothing can go on: every thread that is left waits at some barrier. */
static void check_deadlock(const core_cluster *cluster) {
  core_block *stuck = NULL;
  for (uint32_t n = 0; n < cluster->count; n++) {
    if (cluster->blocks[n]->ready) return;
    if (!cluster->blocks[n]->done) stuck = cluster->blocks[n];
  }
  if (stuck) core_fault_deadlock(stuck);
}

block_result core_cluster_run(core_cluster *cluster) {
  bool moved = true;
  for (uint32_t round = 0; moved && round < IDLE_ROUNDS; round++) {
    uint32_t done = 0;
    moved = false;
    for (uint32_t n = 0; n < cluster->count; n++) {
      core_block *block = cluster->blocks[n];
      if (!block->done && block->ready) {
        block->done = core_block_run(block) == BLOCK_DONE;
        moved |= block->moved | block->done;
      }
      done += block->done;
    }
    if (done == cluster->count) return BLOCK_DONE;
    check_deadlock(cluster);
  }
  return BLOCK_YIELD;
}
