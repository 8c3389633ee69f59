/* SPDX-License-Identifier: Apache-2.0 */
/* A bench for memory stacks: rig.h's machine with four stacks, four candidate blocks, one kernel, its counters.
 *
 * Links of 8 GB/s (a byte takes 125 ps), 4 GB/s from stack to stack, 10 ns latency, vaults of 32 B/ns, packing 10
 * cycles of 1 ns. Addresses of the map 12:13: the stack is (address >> 12) & 3. */
#ifndef FF_TEST_STACK_RIG_H
#define FF_TEST_STACK_RIG_H

#include "rig.h"

enum { LINK_NS = 10, BURST_LINE_NS = 4, OPEN_NS = 12, COLUMN_NS = 12, CONTROLLER_NS = 20, L2_NS = 100 };
#define OF_STACK(n) (RIG_BASE + ((uint64_t)(n) << 12))
#define TX_PS(bytes) ((bytes)*UINT64_C(125))
#define CROSS_PS(bytes) ((bytes)*UINT64_C(250))

static inline void four_stacks(machine_spec *s) {
  s->page_bytes = 2 << 20;
  s->l2_write_through = 1;
  s->dram_latency = CONTROLLER_NS;
  s->row_bytes = 4096;
  s->stack_count = 4;
  s->stack_sms = 1;
  s->stack_warps = 48;
  s->stack_saved_sms = 4;
  s->stack_tx_gbs = s->stack_rx_gbs = 8;
  s->stack_cross_gbs = 4;
  s->stack_link_cycles = LINK_NS;
  s->stack_vaults = 16;
  s->stack_gbs = 512;
  s->stack_pack_cycles = 10;
  s->stack_busy = 0.9;
  s->stack_busy_cycles = 1000;
  s->packet_address_bytes = 4;
  s->packet_ack_bytes = 1;
  s->packet_head_bytes = 12;
  s->link_pj_per_bit = 2;
  s->link_idle_pj = 1.5;
  s->activate_nj = 11.8;
  s->read_pj_per_bit = 4;
  s->sm_static_w = 1.5;
  s->warp_instruction_nj = 2.5;
}

/* ---- candidates: pc 10 saves on both channels, 20 on the one from the stack only, 30 from four trips on, 40 as well,
 * at each trip, 50 with other registers there, 60 from eight trips on; 70 as 10, with registers of its own ---- */

enum { TRIP_PC = 41 }; /* of the access that begins a trip of 40 and 50 */

static const sim_candidate candidates[] = {
    {.pc = 10, .in_bytes = 256, .out_bytes = 128, .tx_fixed = -1, .rx_fixed = -1, .threshold = 1, .trips = 1},
    {.pc = 20, .in_bytes = 256, .out_bytes = 128, .tx_fixed = 1, .rx_fixed = -9, .threshold = 1, .trips = 1},
    {.pc = 30,
     .in_bytes = 640,
     .out_bytes = 0,
     .tx_fixed = 160,
     .tx_trip = -33.5,
     .rx_trip = -16.25,
     .threshold = 4,
     .conditional = true},
    {.pc = 40,
     .in_bytes = 640,
     .out_bytes = 0,
     .tx_fixed = 160,
     .tx_trip = -33.5,
     .rx_trip = -16.25,
     .threshold = 4,
     .conditional = true,
     .again = true,
     .again_pc = TRIP_PC,
     .left = {640, 0, 160, 0, 4}},
    {.pc = 50,
     .in_bytes = 640,
     .out_bytes = 0,
     .tx_fixed = 160,
     .tx_trip = -33.5,
     .rx_trip = -16.25,
     .threshold = 4,
     .conditional = true,
     .again = true,
     .again_pc = TRIP_PC,
     .left = {896, 256, 224, 64, 6}},
    {.pc = 60,
     .in_bytes = 640,
     .out_bytes = 0,
     .tx_fixed = 160,
     .tx_trip = -33.5,
     .rx_trip = -16.25,
     .threshold = 8,
     .conditional = true,
     .again = true,
     .again_pc = TRIP_PC,
     .left = {640, 0, 160, 0, 8}},
    {.pc = 70,
     .in_bytes = 256,
     .out_bytes = 128,
     .tx_fixed = -1,
     .rx_fixed = -1,
     .threshold = 1,
     .trips = 1,
     .registers = 100},
};

static inline const sim_candidate *find(void *context, const trace_launch *launch, uint32_t pc) {
  for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
    if (candidates[i].pc == pc) return &candidates[i];
  return NULL;
}

static sim_offloading offloading = {.find = find, .instances = 8};

typedef void (*body)(trace_writer *w, uint64_t block, uint32_t warp, const void *context);

static inline sim_stacks run_stacks(rig *r, const char *manager, sim_offload offload, const char *map, rig_tweak tweak,
                                    rig_kernel k, sim_counters *counters) {
  rig_open(r, manager);
  four_stacks(&r->spec);
  if (tweak) tweak(&r->spec);
  r->offload = offload;
  r->map = map;
  r->offloading = &offloading;
  rig_start(r);
  rig_alloc(r, RIG_BASE, 64 << 20, TRACE_MEMORY_DEVICE);
  if (!strcmp(manager, "copy")) rig_h2d(r, RIG_BASE, 1 << 20);
  rig_launch(r, k);
  const sim_result *result = rig_finish(r);
  sim_stacks s = result->stacks;
  for (uint32_t i = 0; i < r->sim->stacks->count; i++) { /* all came back */
    const memory_stack *stack = &r->sim->stacks->items[i];
    assert_int_equal(stack->pending + stack->running + stack->registers + stack->first_waiting, 0);
  }
  *counters = result->counters;
  rig_close(r);
  return s;
}

static inline sim_stacks run_one(sim_offload offload, rig_tweak tweak, body warp, ps *time) {
  rig r;
  sim_counters c;
  sim_stacks s =
      run_stacks(&r, "ideal", offload, "12:13", tweak, (rig_kernel){.blocks = 1, .warps = 1, .warp = warp}, &c);
  *time = c.kernel_ps;
  return s;
}

static inline void warm(trace_writer *w) { rig_load_wait(w, RIG_BASE + (1 << 20)); } /* the TLB; a row of its own */

static inline void load_in_block(trace_writer *w, uint32_t pc, uint32_t trips, uint64_t address, uint64_t second) {
  warm(w);
  trace_put_enter(w, pc, trips);
  rig_load_wait(w, address);
  if (second) rig_load_wait(w, second);
  trace_put_leave(w, pc);
}
static inline void local_load(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  load_in_block(w, 10, 0, OF_STACK(1), 0);
}

#endif
