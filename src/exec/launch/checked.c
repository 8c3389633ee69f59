/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of launches that are checked (checker.h): find every lane's bytes, ask the checker, and do what the
 * plain handler does for the lanes that may go on.
 *
 * exec_access.plain is the handler that the access would have without a checker. While it is called, w->active has only
 * lanes of the running split. */
#include <string.h>

#include "exec/memory/access.h"
#include "exec/memory/multicast.h"
#include "exec/memory/shared_address.h"
#include "exec/memory/system_memory.h"
#include "exec/launch/checker.h"
#include "exec/instructions/lanes.h"
#include "exec/instructions/moves.h"
#include "exec/decode/program.h"

#define MOVES (0
#define X(name) +1
static const uint32_t moves_count = MOVES
#include "exec/instructions/moves.def"
);
#undef X
#undef MOVES
enum { MOVES_ROOM = 128, SYNCS = EXEC_SYNC_BARRIER };

static exec_checker *checker_of(const core_warp *w) { return w->launch->checker; }

/* ---- where the bytes are ---- */

static bool in_window(uint64_t address, uint64_t window) { return address - window < EXEC_WINDOW_BYTES; }

static void find_global(const core_warp *w, const exec_access *a, uint32_t bytes, exec_reach *at) {
  const exec_span *span = exec_system_memory_span(w->launch->memory, at->address);
  bool writes = a->op == EXEC_OP_STORE || a->op == EXEC_OP_ATOMIC;
  uint64_t room = !span ? 0 : writes ? span->writable : span->readable;
  uint64_t offset = span ? at->address - span->info.address : 0;
  if (offset >= room || room - offset < bytes) {
    at->elsewhere = a->op == EXEC_OP_STORE && exec_multicast_any() && exec_multicast_find(at->address).team;
    if (!at->elsewhere) at->fault = EXEC_PLACE_OUTSIDE;
    return;
  }
  at->span = span;
  at->host = (unsigned char *)(uintptr_t)at->address;
}

void exec_reach_find(const core_warp *w, const exec_access *a, uint32_t bytes, uint32_t lane, uint64_t address,
                     exec_reach *at) {
  address = core_address_in((ptx_space)a->space, address);
  *at = (exec_reach){.address = address, .space = (ptx_space)a->space};
  if (a->space == PTX_SPACE_GENERIC) {
    at->space = PTX_SPACE_GLOBAL;
    if (address - EXEC_SHARED_WINDOW < EXEC_CLUSTER_BYTES) {
      at->space = PTX_SPACE_SHARED;
      at->address = address - EXEC_SHARED_WINDOW;
    }
    if (in_window(address, EXEC_LOCAL_WINDOW)) {
      at->space = PTX_SPACE_LOCAL;
      at->address = address - EXEC_LOCAL_WINDOW;
    }
  }
  uint64_t offset = at->address;
  if (address & (bytes - 1)) {
    at->fault = EXEC_PLACE_MISALIGNED;
  } else if (at->space == PTX_SPACE_SHARED && offset >= EXEC_WINDOW_BYTES) {
    at->host = core_shared_at(w, offset, bytes);
    at->elsewhere = at->host != NULL;
    if (!at->host) at->fault = EXEC_PLACE_OUTSIDE;
  } else if (at->space == PTX_SPACE_SHARED) {
    if (offset >= w->shared_bytes || w->shared_bytes - offset < bytes) at->fault = EXEC_PLACE_OUTSIDE;
    else at->host = w->shared + offset;
  } else if (at->space == PTX_SPACE_LOCAL) {
    if (a->op == EXEC_OP_ATOMIC) at->fault = EXEC_PLACE_NO_ATOMIC;
    else if (offset >= w->frame->stack || w->frame->stack - offset < bytes) at->fault = EXEC_PLACE_OUTSIDE;
  } else {
    find_global(w, a, bytes, at);
  }
}

void exec_watched_data(const exec_watched *access, uint32_t lane, unsigned char *data) {
  const exec_access *a = access->access;
  const exec_warp *x = &access->warp->x;
  for (uint32_t e = 0; e < a->elements; e++) {
    unsigned char cell[16] = {0};
    if (a->slot_bytes == 16) {
      memcpy(cell, &exec_u64(x, a->data[e])[lane], 8);
      memcpy(cell + 8, &exec_u64(x, a->data[e])[lane + EXEC_LANES], 8);
    } else if (a->slot_bytes == 8) {
      memcpy(cell, &exec_u64(x, a->data[e])[lane], 8);
    } else {
      memcpy(cell, &exec_u32(x, a->data[e])[lane], 4);
    }
    memcpy(data + e * a->bytes, cell, a->bytes);
  }
}

/* ---- loads, stores, atomics ---- */

/* Calls the plain handler for some lanes of the running split, as the interpreter does for a guarded instruction. */
static void run_plain(core_warp *w, exec_handler plain, const exec_instr *i, uint32_t lanes) {
  uint32_t active = w->active, mask = w->x.mask;
  if (!lanes) return;
  if (lanes == active) {
    plain(&w->x, i);
    return;
  }
  w->active = w->x.mask = lanes;
  lanes_expand(lanes, w->x.lanes);
  plain(&w->x, i);
  w->active = active;
  w->x.mask = mask;
  if (mask != UINT32_MAX) lanes_expand(mask, w->x.lanes);
}

/* The lanes' destinations become 0: their load, or their atomic, did not happen. */
static void give_zero(core_warp *w, const exec_instr *i, const exec_access *a, uint32_t lanes) {
  uint32_t count = a->op == EXEC_OP_LOAD ? a->elements : a->op == EXEC_OP_ATOMIC && a->returns ? 1 : 0;
  for (uint32_t e = 0; e < count; e++) {
    uint32_t operand = a->op == EXEC_OP_LOAD ? a->data[e] : i->dst;
    EACH_LANE(lanes) {
      if (a->slot_bytes == 4) exec_u32(&w->x, operand)[l] = 0;
      else exec_u64(&w->x, operand)[l] = 0;
      if (a->slot_bytes == 16) exec_u64(&w->x, operand)[l + EXEC_LANES] = 0;
    }
  }
}

static void find_all(const core_warp *w, const exec_instr *i, const exec_access *a, uint32_t bytes, exec_reach *at) {
  EACH_LANE(w->active) {
    uint64_t address = a->wide ? exec_u64(&w->x, i->src[0])[l] + (uint64_t)i->immediate
                               : (uint32_t)(exec_u32(&w->x, i->src[0])[l] + (uint32_t)i->immediate);
    exec_reach_find(w, a, bytes, l, address, &at[l]);
  }
}

/* Asks the checker for these lanes; those that reach other blocks' memory go through. */
static uint32_t ask(core_warp *w, exec_watched access, uint32_t lanes) {
  uint32_t elsewhere = 0;
  EACH_LANE(lanes) elsewhere |= (uint32_t)access.at[l].elsewhere << l;
  access.lanes = lanes & ~elsewhere;
  return elsewhere | (access.lanes ? checker_of(w)->access(checker_of(w), &access) : 0);
}

static void access_checked(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_access *a = i->side;
  uint32_t bytes = (uint32_t)a->bytes * a->elements, active = w->active;
  exec_reach at[EXEC_LANES];
  find_all(w, i, a, bytes, at);
  uint32_t lanes = ask(w, (exec_watched){.warp = w, .instr = i, .access = a, .bytes = bytes, .at = at}, active);
  if (active & ~lanes) give_zero(w, i, a, active & ~lanes);
  run_plain(w, a->plain, i, lanes);
}

/* ---- cp.async and mbarriers ---- */

static uint64_t operand_lane(const core_warp *w, uint32_t operand, bool wide, uint32_t lane) {
  return wide ? exec_u64(&w->x, operand)[lane] : exec_u32(&w->x, operand)[lane];
}

static void async_checked(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_async *copy = i->side;
  exec_reach from[EXEC_LANES], to[EXEC_LANES];
  uint32_t reads = 0, active = w->active;
  EACH_LANE(active) {
    uint32_t wanted = copy->has_size ? exec_u32(x, i->src[2])[l] : copy->bytes;
    exec_reach_find(w, &copy->from, copy->bytes, l, exec_u64(x, i->src[1])[l] + (uint64_t)copy->global_offset,
                    &from[l]);
    if (wanted < copy->bytes && from[l].fault == EXEC_PLACE_OUTSIDE && wanted) { /* only the first bytes are read */
      from[l].fault = EXEC_PLACE_GOOD;
      find_global(w, &copy->from, wanted, &from[l]);
    }
    exec_reach_find(w, &copy->to, copy->bytes, l,
                    operand_lane(w, i->src[0], copy->wide_shared, l) + (uint64_t)copy->shared_offset, &to[l]);
    reads |= (uint32_t)(wanted >= copy->bytes || (wanted && from[l].fault)) << l;
  }
  exec_checker *checker = checker_of(w);
  uint32_t lanes = active;
  if (reads)
    lanes &= ~reads |
             checker->access(
                 checker,
                 &(exec_watched){
                     .warp = w, .instr = i, .access = &copy->from, .lanes = reads, .bytes = copy->bytes, .at = from});
  if (lanes)
    lanes = checker->access(
        checker,
        &(exec_watched){.warp = w, .instr = i, .access = &copy->to, .lanes = lanes, .bytes = copy->bytes, .at = to});
  run_plain(w, core_async_copy, i, lanes);
}

static void mbarrier_checked(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_access *a = i->side; /* the first member of its side data */
  exec_reach at[EXEC_LANES];
  find_all(w, i, a, a->bytes, at);
  uint32_t lanes =
      ask(w, (exec_watched){.warp = w, .instr = i, .access = a, .bytes = a->bytes, .at = at, .synchronises = true},
          w->active);
  run_plain(w, core_mbarrier, i, lanes);
}

/* ---- fences, lanes that synchronise ---- */

static void fence_checked(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  checker_of(w)->fence(checker_of(w), w, i);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#define FOR_ISAS(X) X(0) X(1) X(2)

static exec_isa_table tables[EXEC_ISAS];
static exec_handler moves[EXEC_ISAS][MOVES_ROOM], syncs[EXEC_ISAS][SYNCS];
static const exec_isa_table *bases[EXEC_ISAS];

/* Per instruction set, because the tables' functions are not given theirs. */
#define X(n)                                                           \
  static void choose_##n(const exec_access *a, exec_handler run[2]) {  \
    exec_access *mine = (exec_access *)(uintptr_t)a;                   \
    bases[n]->choose_access(a, run);                                   \
    mine->plain = run[0];                                              \
    if (a->space != PTX_SPACE_PARAM) run[0] = run[1] = access_checked; \
  }                                                                    \
  static void meet_##n(exec_warp *x, const exec_instr *i) {            \
    core_warp *w = (core_warp *)x;                                     \
    const exec_sync *sync = i->side;                                   \
    checker_of(w)->meet(checker_of(w), w, i, w->active);               \
    bases[n]->sync[sync->kind](x, i);                                  \
  }
FOR_ISAS(X)
#undef X

#define X(n) choose_##n,
static void (*const choosers[])(const exec_access *, exec_handler[2]) = {FOR_ISAS(X)};
#undef X
#define X(n) meet_##n,
static const exec_handler meeters[] = {FOR_ISAS(X)};
#undef X
_Static_assert(sizeof meeters / sizeof *meeters == EXEC_ISAS, "one per instruction set");

static void make_table(uint32_t n) {
  const exec_isa_table *base = exec_isa_numbered(n);
  bases[n] = base;
  tables[n] = *base;
  tables[n].choose_access = choosers[n];
  for (uint32_t m = 0; m < moves_count; m++) moves[n][m] = base->moves[m];
  moves[n][EXEC_MOVE_FENCE] = fence_checked;
  moves[n][EXEC_MOVE_ASYNC_COPY] = async_checked;
  moves[n][EXEC_MOVE_MBARRIER] = mbarrier_checked;
  for (uint32_t s = 0; s < SYNCS; s++) syncs[n][s] = base->sync[s] ? meeters[n] : NULL;
  tables[n].moves = moves[n];
  tables[n].sync = syncs[n];
}

static void make_tables(void) {
  for (uint32_t n = 0; n < EXEC_ISAS; n++)
    if (exec_isa_numbered(n)) make_table(n);
}

const exec_isa_table *exec_isa_checked(const exec_isa_table *isa) {
  static pthread_once_t made = PTHREAD_ONCE_INIT;
  pthread_once(&made, make_tables);
  return &tables[exec_isa_index(isa)];
}

uint32_t exec_isa_checked_index(const exec_isa_table *checked) {
  return checked >= tables && checked < tables + EXEC_ISAS ? (uint32_t)(checked - tables) : EXEC_ISAS;
}
