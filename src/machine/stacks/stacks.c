/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a machine with stacks: which stack has a line, and the line's way there and back (Hsieh et al., ISCA
 * 2016).
 *
 * Packets, byte by byte (packet_address_bytes A, packet_ack_bytes K; section 3.1.1):
 *
 *     read   there: A                  back: the sectors' 32 bytes each
 *     write  there: A + the sectors    back: K
 *
 * A channel (one direction of a link) is a server, with stack_link_cycles behind it. In a stack the map's remaining
 * address bits, XORed with higher ones, choose vault and bank; a vault's bus and its banks are servers as a DRAM
 * channel's are (hierarchy.c).
 *
 * A line is read and written in the stack that its map says; under SIM_OFFLOAD_IDEAL an SM in a stack finds all in its
 * own. */
#include "machine/stacks/stacks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/stacks/versions.h"

/* ---- links ---- */

/* Counts the packet; returns how long it takes. */
static ps channel_count(stack_channel *c, uint64_t bytes, ps ask) {
  ps service = fixed_ps(bytes, c->byte_fixed);
  uint64_t now = ask / c->length;
  if (now > c->window) {
    c->before = now == c->window + 1 ? c->in_window : 0;
    c->in_window = 0;
    c->window = now;
  }
  c->in_window += service;
  c->carried += service;
  c->bytes += bytes;
  return service;
}

/* Returns when the last byte is through, but for the latency. */
static ps send(stack_channel *c, uint64_t bytes, ps ask, ps at) {
  ps service = channel_count(c, bytes, ask);
  return server_take(&c->bus, ask, at, service) + service;
}

ps stacks_send_first(stack_channel *c, uint64_t bytes, ps at) {
  ps service = channel_count(c, bytes, at);
  server_take(&c->bus, at, at, service);
  return at + service;
}

/* As a monitor at the channel sees it: its share of the last whole window, or 1 if more than a window's work waits
 * already. */
double stacks_load(const stack_channel *c, ps now) {
  uint64_t window = now / c->length;
  ps load = 0;
  if (window == c->window) load = c->before;
  else if (window == c->window + 1) load = c->in_window;
  return c->bus.free > now + c->length ? 1 : (double)load / (double)c->length;
}

/* ---- maps ---- */

static const stack_map *map_of(stacks *k, uint64_t address) {
  if (!k->ranges.count) return &k->baseline;
  const sim_range_map *r = &k->ranges.items[k->last];
  if (address - r->address < r->bytes) return &r->map;
  size_t low = 0, high = k->ranges.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (k->ranges.items[middle].address + k->ranges.items[middle].bytes <= address) low = middle + 1;
    else high = middle;
  }
  if (low == k->ranges.count || address < k->ranges.items[low].address) return &k->baseline;
  k->last = low;
  return &k->ranges.items[low].map;
}

uint32_t stacks_find(stacks *k, uint64_t address) { return stack_of(map_of(k, address), address); }

/* ---- in a stack ---- */

typedef struct vault_place {
  stack_vault *vault;
  vault_bank *bank;
  int64_t row;
} vault_place;

/* Neighbouring lines of a stack are in neighbouring vaults; each vault's lines fill a row, then one of the next
 * bank. */
static vault_place place_in(const stacks *k, memory_stack *stack, uint64_t local) {
  uint64_t line = local / TRACE_LINE_BYTES, inside = divide(line, &k->by_vaults),
           row_number = divide(inside, &k->by_lines), row = divide(row_number, &k->by_banks);
  stack_vault *vault = &stack->vaults[modulo(line ^ inside ^ divide(inside, &k->by_vaults), &k->by_vaults)];
  return (vault_place){vault, &vault->banks[modulo(row_number ^ row, &k->by_banks)], (int64_t)row};
}

/* First ready, first come first served: a request whose row is open when it comes, or will be by then that requests
 * before it have it opened, joins them, and goes before those that wait for other rows. Else its bank opens its row
 * after all others. Returns when the bank takes the column. */
static ps vault_column(const timing *t, vault_bank *v, int64_t row, ps ask, const tally *tally) {
  dram_bank *bank = &v->bank;
  for (uint32_t i = 1; i <= VAULT_ROWS && bank->row != row; i++) {
    vault_row *r = &v->rows[(v->next + VAULT_ROWS - i) % VAULT_ROWS];
    if (r->closed <= ask) break;
    if (r->row != row) continue;
    COUNT(tally, dram_row_hits, 1);
    return ask > r->open ? ask : r->open;
  }
  bool opens = bank->row != row;
  int64_t before = bank->row;
  ps open = bank->activated + t->t_rcd, column = bank_column(t, NULL, bank, row, ask, ask, tally);
  if (opens && before >= 0) v->rows[v->next++ % VAULT_ROWS] = (vault_row){before, open, bank->closed};
  return column;
}

/* A bank and its vault's bus: returns when the last byte is on it. The bus is taken in the order of asking, as all
 * servers are: the GPU's requests wait for MSHRs and links before they come, and what an SM of the stack asks for
 * meanwhile need not stand behind them. A row is opened once its request has come. */
static ps vault_access(const stacks *k, memory_stack *stack, uint64_t local, uint32_t sectors, bool write, ps ask,
                       ps at, const tally *tally) {
  const timing *t = k->t;
  vault_place p = place_in(k, stack, local);
  dram_bank *bank = &p.bank->bank;
  ps burst = k->burst[sectors], begin_turn = ask > bank->ready ? ask : bank->ready,
     turn = vault_column(t, p.bank, p.row, ask, tally), column = at + (turn > begin_turn ? turn - begin_turn : 0);
  if (column < turn) column = turn;
  if (bank->ready < turn + burst) bank->ready = turn + burst;
  ps end = column + t->t_cl + burst, begin = server_take(&p.vault->bus, ask, ask, burst);
  if (end < begin + burst) end = begin + burst;
  if (write && bank->written < turn + t->t_cl + burst + t->t_wr) bank->written = turn + t->t_cl + burst + t->t_wr;
  uint64_t bytes = (uint64_t)sectors * TRACE_SECTOR_BYTES;
  stack->internal += bytes;
  if (write) COUNT(tally, dram_write_bytes, bytes);
  else COUNT(tally, dram_read_bytes, bytes);
  return end;
}

/* ---- there and back ---- */

ps stacks_access(stacks *k, uint32_t near, uint64_t address, uint32_t sectors, bool write, ps ask, ps at,
                 const tally *tally) {
  const stack_map *map = map_of(k, address);
  uint32_t there = stack_of(map, address), from = near - 1;
  uint64_t data = (uint64_t)sectors * TRACE_SECTOR_BYTES, out = k->spec->packet_address_bytes + (write ? data : 0),
           back = write ? k->spec->packet_ack_bytes : data;
  bool ideal = near && k->offload == SIM_OFFLOAD_IDEAL, local = near && (ideal || from == there);
  memory_stack *stack = &k->items[ideal ? from : there];
  ps fixed = k->t->dram_there + k->t->t_cl + k->t->dram_back;
  if (near) *(local ? &k->result.local_bytes : &k->result.remote_stack_bytes) += data;
  if (!local) {
    at = send(near ? &k->items[from].cross[there] : &stack->tx, out, ask, at) + k->link_latency;
    ask += k->link_latency;
  }
  ps done = vault_access(k, stack, stack_local(map, address), sectors, write, ask + k->t->dram_there,
                         at + k->t->dram_there, tally) +
            k->t->dram_back;
  if (local) return done;
  return send(near ? &stack->cross[from] : &stack->rx, back, ask + fixed, done) + k->link_latency;
}

/* Atomics read and write where the data is; such a block is none that is offloaded, but a stream may say so. */
ps stacks_below(stacks *k, const sm *m, const request *r) {
  uint32_t sectors = sector_count(r->sectors);
  if (r->instance && r->op != TRACE_STORE) versions_near_read(k, r->instance, r->block, r->address, r->at);
  ps done =
      r->op == TRACE_STORE ? r->at : stacks_access(k, m->stack, r->address, sectors, false, r->ask, r->at, r->tally);
  return r->op == TRACE_LOAD ? done : stacks_access(k, m->stack, r->address, sectors, true, r->ask, done, r->tally);
}

/* ---- making, and what came of it ---- */

static void channel_make(stack_channel *c, double gbs, const machine_spec *spec) {
  c->byte_fixed = (ps)llround(1000 / gbs * (1 << 20));
  c->length = (ps)llround((double)spec->stack_busy_cycles * 1e6 / spec->clock_mhz);
}

static void stack_make(const machine_spec *spec, arena *a, memory_stack *stack) {
  channel_make(&stack->tx, spec->stack_tx_gbs, spec);
  channel_make(&stack->rx, spec->stack_rx_gbs, spec);
  stack->cross = arena_alloc(a, spec->stack_count * sizeof *stack->cross);
  for (uint64_t i = 0; i < spec->stack_count; i++) channel_make(&stack->cross[i], spec->stack_cross_gbs, spec);
  stack->vaults = arena_alloc(a, spec->stack_vaults * sizeof *stack->vaults);
  for (uint64_t v = 0; v < spec->stack_vaults; v++) {
    stack->vaults[v].banks = arena_alloc(a, spec->banks * sizeof *stack->vaults[v].banks);
    for (uint64_t b = 0; b < spec->banks; b++) stack->vaults[v].banks[b].bank.row = -1;
  }
  slots_init(&stack->walkers, a, spec->walkers);
  lru_init(&stack->walk_cache, a, spec->walk_cache_bytes / 8);
}

static void stacks_times(stacks *k, const machine_spec *spec) {
  double cycle = 1e6 / spec->clock_mhz,
         burst = 1000 / spec->stack_gbs * (double)spec->stack_vaults * TRACE_SECTOR_BYTES;
  k->link_latency = (ps)llround(spec->stack_link_cycles * cycle);
  k->pack = (ps)llround(spec->stack_pack_cycles * cycle);
  for (uint32_t n = 0; n <= 4; n++) k->burst[n] = (ps)llround(n * burst);
}

static void take_oracle(stacks *k) {
  const sim_offloading *o = k->offloading;
  const sim_range_map *maps = k->choice.linear ? o->oracle_linear : o->oracle;
  uint32_t count = k->choice.linear ? o->oracle_linear_count : o->oracle_count;
  for (uint32_t i = 0; i < count; i++) FF_PUSH(&k->ranges, maps[i]);
}

/* The map that most bytes have. */
void stacks_describe(stacks *k) {
  uint64_t most = 0;
  k->result.found[0] = '\0';
  for (size_t i = 0; i < k->ranges.count && k->choice.kind != SIM_MAP_FIXED; i++) {
    uint64_t bytes = 0;
    for (size_t n = 0; n < k->ranges.count; n++)
      if (!memcmp(k->ranges.items[n].map.masks, k->ranges.items[i].map.masks, sizeof k->ranges.items[i].map.masks))
        bytes += k->ranges.items[n].bytes;
    if (bytes <= most) continue;
    most = bytes;
    stack_map_text(&k->ranges.items[i].map, k->result.found, sizeof k->result.found);
  }
}

ff_status stacks_create(const machine_spec *spec, const timing *t, arena *memory, const sim_options *options,
                        stacks **out, ff_error *error) {
  *out = NULL;
  if (!spec->stack_count) return FF_OK;
  stacks *k = *out = ff_alloc(sizeof *k);
  k->spec = spec;
  k->t = t;
  k->count = (uint32_t)spec->stack_count;
  k->bits = (uint32_t)__builtin_ctz(k->count);
  k->offload = options->offload;
  k->offloading = options->offloading;
  k->warps = (uint32_t)spec->stack_warps;
  k->by_vaults = divider_make(spec->stack_vaults);
  k->by_lines = divider_make(spec->row_bytes / TRACE_LINE_BYTES);
  k->by_banks = divider_make(spec->banks);
  k->near_first = (uint32_t)spec->sm_count;
  k->near_each = (uint32_t)spec->stack_sms;
  k->items = arena_alloc(memory, k->count * sizeof *k->items);
  for (uint32_t i = 0; i < k->count; i++) stack_make(spec, memory, &k->items[i]);
  stacks_times(k, spec);
  ff_status status = sim_map_read(options->map ? options->map : "baseline", spec->stack_count, &k->choice, error);
  if (status) return status;
  snprintf(k->result.map, sizeof k->result.map, "%s", options->map ? options->map : "baseline");
  k->baseline = k->choice.kind == SIM_MAP_FIXED ? k->choice.fixed : stack_map_baseline(k->bits);
  if (k->choice.kind == SIM_MAP_ORACLE) take_oracle(k);
  stacks_describe(k);
  versions_create(k);
  return FF_OK;
}

void stacks_free(stacks *k) {
  if (!k) return;
  versions_free(k);
  free(k->ranges.items);
  free(k);
}

/* Energy of one channel: of its bits, and of those that it could have carried while kernels ran (but for the time that
 * they stood still in, for copies that a map is waited for with: these are the program's). */
static void add_channel(const machine_spec *spec, const stack_channel *c, double gbs, ps kernels, sim_stacks *out) {
  double idle = kernels > c->carried ? (double)(kernels - c->carried) * 1e-12 : 0,
         bits_per_cycle = gbs * 8e9 / (spec->clock_mhz * 1e6);
  out->link_joule += (double)c->bytes * 8 * spec->link_pj_per_bit * 1e-12;
  out->idle_joule += idle * spec->clock_mhz * 1e6 * bits_per_cycle * spec->link_idle_pj * 1e-12;
}

void stacks_result(const stacks *k, const sim_counters *total, sim_stacks *out) {
  *out = (sim_stacks){0};
  if (!k) return;
  *out = k->result;
  out->count = k->count;
  out->offload = k->offload;
  const machine_spec *spec = k->spec;
  ps kernels = total->kernel_ps - out->stopped_ps;
  for (uint32_t i = 0; i < k->count; i++) {
    const memory_stack *stack = &k->items[i];
    out->tx[i] = stack->tx.bytes;
    out->rx[i] = stack->rx.bytes;
    out->internal[i] = stack->internal;
    add_channel(spec, &stack->tx, spec->stack_tx_gbs, kernels, out);
    add_channel(spec, &stack->rx, spec->stack_rx_gbs, kernels, out);
    for (uint32_t n = 0; n < k->count; n++) {
      out->cross[i][n] = stack->cross[n].bytes;
      if (n != i && k->offload) add_channel(spec, &stack->cross[n], spec->stack_cross_gbs, kernels, out);
    }
  }
  out->activation_joule = (double)total->dram_row_misses * spec->activate_nj * 1e-9;
  out->read_joule = (double)(total->dram_read_bytes + total->dram_write_bytes) * 8 * spec->read_pj_per_bit * 1e-12;
  /* of a GPU that offloads nothing, sm_count has the SMs that it has instead of the stacks' */
  double sms = (double)(spec->sm_count + (k->offload ? spec->stack_count * spec->stack_sms : 0));
  out->sm_joule = sms * spec->sm_static_w * (double)kernels * 1e-12 +
                  (double)total->warp_instructions * spec->warp_instruction_nj * 1e-9;
}
