/* SPDX-License-Identifier: Apache-2.0 */
/* From decoded functions to a request: which computation each handler stands for, and what it reads and writes.
 *
 * Every cell of the frame that an instruction may read or write is among its operands, or its op is
 * NATIVE_EXIT: then the interpreter runs it, and everything has to be in the frame. What a handler writes it writes for
 * all lanes that execute it; for a guarded instruction the old values are among what it reads. */
#include "compile/kernel_describe.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "compile/known_forms.h"
#include "exec/memory/access.h"
#include "exec/decode/layout.h"
#include "exec/instructions/moves.h"
#include "exec/launch/native.h"
#include "exec/instructions/ops_table.h"
#include "exec/instructions/tcgen05.h"
#include "trace/coalesce.h"

#define MAX_INSTRUCTIONS 60000u /* of all functions: beyond that compiling takes too long to be worth it */

/* ---- handlers: what is known of each, found by its address ---- */

typedef struct known_handler {
  exec_handler run;
  const ops_entry *entry;   /* its first */
  const compile_form *form; /* NULL: only its operands are known */
} known_handler;

typedef struct handler_table { /* slots: numbers into `known`, plus 1; 0: empty */
  known_handler *known;
  compile_form *forms;
  uint16_t *slots;
  uint32_t room, count;
} handler_table;

static handler_table tables[EXEC_ISAS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static uint16_t *find_slot(const handler_table *t, exec_handler run) {
  uint32_t at = (uint32_t)(((uint64_t)(uintptr_t)run >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 40) & (t->room - 1);
  while (t->slots[at] && t->known[t->slots[at] - 1].run != run) at = (at + 1) & (t->room - 1);
  return &t->slots[at];
}

static known_handler *known_of(const handler_table *t, exec_handler run) {
  uint16_t slot = *find_slot(t, run);
  return slot ? &t->known[slot - 1] : NULL;
}

static void fill_table(handler_table *t, ops_set *set) {
  uint32_t count = 0;
  for (int n = 0; set->tables[n]; n++)
    for (const ops_entry *entry = set->tables[n]; entry->names; entry++) count++;
  FF_ASSERT(count < UINT16_MAX);
  for (t->room = 64; t->room < 2 * count; t->room *= 2) {}
  t->slots = ff_alloc(t->room * sizeof *t->slots);
  t->known = ff_alloc(count * sizeof *t->known);
  for (int n = 0; set->tables[n]; n++)
    for (const ops_entry *entry = set->tables[n]; entry->names; entry++) {
      uint16_t *slot = find_slot(t, entry->run[0]);
      if (*slot) continue;
      t->known[t->count++] = (known_handler){.run = entry->run[0], .entry = entry};
      *slot = (uint16_t)t->count;
    }
  t->forms = compile_forms(set, &count);
  for (uint32_t n = 0; n < count; n++) {
    known_handler *known = known_of(t, t->forms[n].entry->run[0]);
    if (!known->form) known->form = &t->forms[n];
  }
}

static const handler_table *table_of(uint32_t isa) {
  static ops_set *const sets[EXEC_ISAS] = {
#if !EXEC_WITHOUT_avx512
    [0] = &ops_set_avx512,
#endif
#if !EXEC_WITHOUT_avx2
    [1] = &ops_set_avx2,
#endif
#if !EXEC_WITHOUT_baseline
    [2] = &ops_set_baseline
#endif
  };
  pthread_mutex_lock(&table_lock);
  if (!tables[isa].slots) fill_table(&tables[isa], sets[isa]);
  pthread_mutex_unlock(&table_lock);
  return &tables[isa];
}

/* ---- one instruction ---- */

typedef struct describer {
  const exec_function *function;
  const exec_isa_table *isa;
  const handler_table *handlers;
  FF_VEC(native_instr) instrs;
  FF_VEC(native_operand) operands;
  FF_VEC(uint32_t) waits; /* places in the frame; targets */
  uint32_t watch;
  bool any;
  native_operand writes[16];
  native_instr now;
} describer;

/* A constant is told only if it cannot be an address: those differ from run to run. */
static void add_read(describer *d, uint32_t offset, uint32_t bytes) {
  native_operand operand = {.offset = offset, .bytes = (uint8_t)bytes};
  if (offset & 1) {
    const unsigned char *cells = d->function->constants + (offset & ~1u);
    memcpy(&operand.value, cells, bytes == 8 ? 8 : 4);
    bool far = bytes == 8 && (int64_t)operand.value != (int64_t)(int32_t)operand.value;
    operand.constant = bytes == 16 ? 0 : far ? 2 : 1;
    if (far || bytes == 16) operand.value = 0;
  }
  FF_PUSH(&d->operands, operand);
  d->now.read_count++;
}

static void add_write(describer *d, uint32_t offset, uint32_t bytes) {
  d->writes[d->now.write_count++] = (native_operand){.offset = offset, .bytes = (uint8_t)bytes};
}

static const uint8_t kind_bytes[] = {
#define K(name, bytes, bits, class) bytes,
#include "exec/instructions/ops_kinds.def"
#undef K
};

/* A form that the compiler computes itself. */
static void describe_form(describer *d, const exec_instr *i, const compile_form *f) {
  native_instr *n = &d->now;
  uint32_t sources = 0;
  n->op = f->op;
  n->dst_kind = f->kinds[0];
  for (; sources < 4 && f->kinds[sources + 1] != NATIVE_K_none; sources++) {
    n->src_kind[sources] = f->kinds[sources + 1];
    add_read(d, i->src[sources], kind_bytes[f->kinds[sources + 1]]);
  }
  bool compares = f->op >= NATIVE_CMP_EQ && f->op <= NATIVE_CMP_NAN, lop3 = f->op == NATIVE_LOP3;
  if (i->aux & OPS_AUX_BOOLEAN && compares) {
    add_read(d, i->src[2], 0);
    n->src_kind[2] = NATIVE_K_pred;
  }
  add_write(d, i->dst, kind_bytes[f->kinds[0]]);
  if (i->aux & OPS_AUX_SECOND && compares) add_write(d, i->dst2, 0);
  if (lop3 && (i->aux & (OPS_AUX_BOOLEAN | OPS_AUX_SECOND))) { /* with a predicate: its handler */
    n->op = NATIVE_HANDLER;
    add_read(d, i->src[3], 0);
    if (i->aux & OPS_AUX_SECOND) add_write(d, i->dst2, 0);
  }
}

static uint32_t slot_of(ptx_type type) { return exec_type_slot(type); }

/* A computing handler of which only the operands are known. A video instruction has as many sources as are written, and
 * an aux of its own (exec/instructions/ops_video.h). */
static void describe_entry(describer *d, const exec_instr *i, const ops_entry *entry) {
  const ptx_instr *instr = &d->function->source->instrs[i->index];
  uint32_t sources = 0;
  d->now.op = NATIVE_HANDLER;
  while (sources < 4 && entry->src[sources] != PTX_TYPE_NONE) sources++;
  if (ops_is_video(instr->opcode)) {
    for (uint32_t s = 0; s < sources && s + 1 < instr->operand_count; s++)
      add_read(d, i->src[s], slot_of(entry->src[s]));
    add_write(d, i->dst, slot_of(entry->dst));
    return;
  }
  for (uint32_t s = 0; s < sources; s++) add_read(d, i->src[s], slot_of(entry->src[s]));
  if ((i->aux & OPS_AUX_BOOLEAN) && sources < 4) add_read(d, i->src[sources], 0);
  add_write(d, i->dst, slot_of(entry->dst));
  bool second = entry->dst2 != PTX_TYPE_NONE || (i->aux & OPS_AUX_SECOND);
  if (!second) return;
  uint32_t bytes = entry->dst2 != PTX_TYPE_NONE ? slot_of(entry->dst2) : 0;
  add_write(d, i->dst2, bytes);
}

/* Moves that put a value together of `parts` ones of `part` bytes in the frame, or take it apart. */
typedef struct parts_move {
  exec_move move;
  uint16_t op; /* native_op */
  bool packs;
  uint8_t parts, part, whole;
} parts_move;

static const parts_move parts_moves[] = {
    {EXEC_MOVE_PACK_2x8, NATIVE_HANDLER, true, 2, 4, 4},      {EXEC_MOVE_PACK_2x16, NATIVE_HANDLER, true, 2, 4, 4},
    {EXEC_MOVE_PACK_4x8, NATIVE_HANDLER, true, 4, 4, 4},      {EXEC_MOVE_PACK_4x16, NATIVE_HANDLER, true, 4, 4, 8},
    {EXEC_MOVE_PACK_2x32, NATIVE_PACK32, true, 2, 4, 8},      {EXEC_MOVE_PACK_4x32, NATIVE_HANDLER, true, 4, 4, 16},
    {EXEC_MOVE_PACK_2x64, NATIVE_HANDLER, true, 2, 8, 16},    {EXEC_MOVE_UNPACK_2x8, NATIVE_HANDLER, false, 2, 4, 4},
    {EXEC_MOVE_UNPACK_2x16, NATIVE_HANDLER, false, 2, 4, 4},  {EXEC_MOVE_UNPACK_4x8, NATIVE_HANDLER, false, 4, 4, 4},
    {EXEC_MOVE_UNPACK_4x16, NATIVE_HANDLER, false, 4, 4, 8},  {EXEC_MOVE_UNPACK_2x32, NATIVE_UNPACK32, false, 2, 4, 8},
    {EXEC_MOVE_UNPACK_4x32, NATIVE_HANDLER, false, 4, 4, 16}, {EXEC_MOVE_UNPACK_2x64, NATIVE_HANDLER, false, 2, 8, 16}};

/* Whether the move is one of those. */
static bool describe_parts(describer *d, const exec_instr *i, exec_move move) {
  const parts_move *m = parts_moves, *end = m + sizeof parts_moves / sizeof *parts_moves;
  while (m < end && m->move != move) m++;
  if (m == end) return false;
  uint32_t many[4] = {m->packs ? i->src[0] : i->dst, m->packs ? i->src[1] : i->dst2, i->src[2], i->src[3]};
  d->now.op = m->op;
  for (uint32_t p = 0; m->packs && p < m->parts; p++) add_read(d, many[p], m->part);
  if (!m->packs) add_read(d, i->src[0], m->whole);
  if (m->packs) add_write(d, i->dst, m->whole);
  for (uint32_t p = 0; !m->packs && p < m->parts; p++) add_write(d, many[p], m->part);
  return true;
}

#define SIMPLE(operation, to, from) (n->op = operation, add_read(d, i->src[0], from), add_write(d, i->dst, to))
static void describe_move(describer *d, const exec_instr *i, exec_move move) {
  native_instr *n = &d->now;
  n->op = NATIVE_HANDLER;
  switch (move) {
  case EXEC_MOVE_NOTHING: n->op = NATIVE_NOTHING; break;
  case EXEC_MOVE_FENCE: n->observes = 1; break;
  case EXEC_MOVE_SREG: {
    bool wide = i->aux == PTX_SREG_GRIDID || i->aux == PTX_SREG_CLOCK64 || i->aux == PTX_SREG_GLOBALTIMER ||
                i->aux == PTX_SREG_CURRENT_GRAPH_EXEC;
    n->op = NATIVE_SREG;
    n->observes = 1;
    add_write(d, i->dst, wide ? 8 : 4);
    break;
  }
  case EXEC_MOVE_ACTIVEMASK:
  case EXEC_MOVE_LOCAL_ADDRESS32: add_write(d, i->dst, 4); break;
  case EXEC_MOVE_LOCAL_ADDRESS: add_write(d, i->dst, 8); break;
  case EXEC_MOVE_ADD64: SIMPLE(NATIVE_ADD_IMMEDIATE, 8, 8); break;
  case EXEC_MOVE_ADD32: SIMPLE(NATIVE_ADD_IMMEDIATE, 4, 4); break;
  case EXEC_MOVE_COPY32:
    SIMPLE(NATIVE_MOVE, 4, 4);
    n->dst_kind = n->src_kind[0] = NATIVE_K_u32;
    break;
  case EXEC_MOVE_COPY64:
    SIMPLE(NATIVE_MOVE, 8, 8);
    n->dst_kind = n->src_kind[0] = NATIVE_K_u64;
    break;
  case EXEC_MOVE_COPY128: SIMPLE(NATIVE_HANDLER, 16, 16); break;
  case EXEC_MOVE_NARROW: SIMPLE(NATIVE_NARROW, 4, 8); break;
  case EXEC_MOVE_WIDEN_ZERO: SIMPLE(NATIVE_WIDEN_ZERO, 8, 4); break;
  case EXEC_MOVE_WIDEN_SIGN: SIMPLE(NATIVE_WIDEN_SIGN, 8, 4); break;
  case EXEC_MOVE_LENGTHEN:
    SIMPLE(NATIVE_HANDLER, 8, 4);
    add_read(d, i->src[1], 8);
    break;
  case EXEC_MOVE_INSERT:
    add_read(d, i->src[0], 4);
    add_read(d, i->dst, 4);
    add_write(d, i->dst, 4);
    break;
  case EXEC_MOVE_EXTRACT:
    add_read(d, i->src[0], 4);
    add_write(d, i->dst, 4);
    break;
  case EXEC_MOVE_MAPA32:
  case EXEC_MOVE_MAPA64:
    SIMPLE(NATIVE_HANDLER, move == EXEC_MOVE_MAPA64 ? 8 : 4, move == EXEC_MOVE_MAPA64 ? 8 : 4);
    add_read(d, i->src[1], 4);
    break;
  case EXEC_MOVE_CTARANK32: SIMPLE(NATIVE_HANDLER, 4, 4); break;
  case EXEC_MOVE_CTARANK64: SIMPLE(NATIVE_HANDLER, 4, 8); break;
  case EXEC_MOVE_IS_CLUSTER:
  case EXEC_MOVE_IS_SHARED:
  case EXEC_MOVE_IS_LOCAL:
  case EXEC_MOVE_IS_GLOBAL:
  case EXEC_MOVE_IS_CONST:
    add_read(d, i->src[0], 8);
    add_write(d, i->dst, 0);
    break;
  case EXEC_MOVE_IS_NOT_ZERO: SIMPLE(NATIVE_HANDLER, 0, 4); break;
  case EXEC_MOVE_IS_FALSE: add_write(d, i->dst, 0); break;
  case EXEC_MOVE_NOT_PREDICATE:
    SIMPLE(NATIVE_PRED_NOT, 0, 0);
    n->dst_kind = n->src_kind[0] = NATIVE_K_pred;
    break;
  case EXEC_MOVE_COPY_GROUP: /* without a stream it does nothing */
    if (d->watch & NATIVE_TRACED) n->observes = 1;
    else n->op = NATIVE_NOTHING;
    break;
  case EXEC_MOVE_ASYNC_COPY: {
    const exec_async *copy = i->side;
    n->observes = 1;
    add_read(d, i->src[0], copy->wide_shared ? 8 : 4);
    add_read(d, i->src[1], 8);
    if (copy->has_size) add_read(d, i->src[2], 4);
    if (copy->from.hinted) add_read(d, copy->from.policy, 8);
    break;
  }
  default:
    if (!describe_parts(d, i, move)) n->op = NATIVE_EXIT;
  }
}

/* Cycles beyond the first of a whole warp whose lanes are `step` bytes apart in shared memory. */
static uint8_t passes_of(uint32_t bytes, uint32_t step) {
  uint32_t offset[EXEC_LANES];
  for (uint32_t l = 0; l < EXEC_LANES; l++) offset[l] = l * step;
  uint32_t passes = trace_shared_passes(offset, bytes, EXEC_ALL_LANES) - 1;
  return passes < UINT8_MAX ? (uint8_t)passes : UINT8_MAX;
}

static native_space space_of(ptx_space space) {
  switch (space) {
  case PTX_SPACE_SHARED: return NATIVE_SHARED;
  case PTX_SPACE_LOCAL: return NATIVE_LOCAL;
  case PTX_SPACE_PARAM: return NATIVE_PARAM;
  case PTX_SPACE_GENERIC: return NATIVE_GENERIC;
  default: return NATIVE_GLOBAL;
  }
}

/* The address first, then the data: registers that are read or written. */
static void describe_access(describer *d, const exec_instr *i) {
  const exec_access *a = i->side;
  native_instr *n = &d->now;
  n->observes = 1;
  n->op = NATIVE_HANDLER;
  n->space = (uint8_t)space_of(a->space);
  n->bytes = a->bytes;
  n->elements = a->elements;
  n->sign = a->sign;
  n->to16 = a->to16;
  n->slot_bytes = a->slot_bytes;
  n->wide = a->wide;
  n->store = a->op == EXEC_OP_STORE;
  const bool hint_recorded = a->hinted && d->watch & NATIVE_TRACED; /* by what the frame has of the policy */
  if (n->space == NATIVE_SHARED) {
    n->row_passes = passes_of((uint32_t)a->bytes * a->elements, (uint32_t)a->bytes * a->elements);
    n->one_passes = passes_of((uint32_t)a->bytes * a->elements, 0);
  }
  if (n->space != NATIVE_PARAM) add_read(d, i->src[0], a->wide ? 8 : 4);
  for (uint32_t e = 0; e < (a->op == EXEC_OP_ATOMIC ? 1u : a->elements); e++) {
    if (a->op == EXEC_OP_LOAD) add_write(d, a->data[e], a->slot_bytes);
    else add_read(d, a->data[e], a->slot_bytes);
  }
  if (hint_recorded) add_read(d, a->policy, 8);
  if (a->op == EXEC_OP_ATOMIC) {
    add_read(d, a->compare, a->slot_bytes);
    if (a->returns) add_write(d, i->dst, a->slot_bytes);
  } else if (!a->poll && (!a->whole || n->space == NATIVE_SHARED) && a->elements <= 4 && a->slot_bytes <= 8 &&
             a->bytes <= 8 && !hint_recorded) {
    n->op = NATIVE_ACCESS;
  }
}

static void describe_shuffle(describer *d, const exec_instr *i) {
  const exec_sync *sync = i->side;
  d->now.op = NATIVE_SHUFFLE;
  d->now.aux = sync->mode;
  for (uint32_t s = 0; s < 3; s++) add_read(d, i->src[s], 4);
  if (!sync->legacy) add_read(d, i->src[3], 4);
  add_write(d, i->dst, 4);
  if (sync->has_predicate) add_write(d, i->dst2, 0);
}

/* The mask is read in each way: code for full warps does not look at it, but where lanes part in front of it the
 * interpreter finds it in the frame only if it is live. */
static void describe_sync(describer *d, const exec_instr *i) {
  const exec_sync *sync = i->side;
  if (sync->kind == EXEC_SYNC_SHFL && sync->constant && !d->any) {
    describe_shuffle(d, i);
    return;
  }
  if (sync->kind == EXEC_SYNC_WARP && !d->any) {
    d->now.op = NATIVE_WARP_SYNC;
    if (!sync->legacy) add_read(d, i->src[3], 4);
    return;
  }
  d->now.op = NATIVE_SYNC;
  d->now.observes = 1;
  bool wide = sync->kind == EXEC_SYNC_MATCH_ANY || sync->kind == EXEC_SYNC_MATCH_ALL ? sync->wide : false;
  if (sync->kind == EXEC_SYNC_VOTE) add_read(d, i->src[0], 0);
  else if (sync->kind != EXEC_SYNC_WARP && sync->kind != EXEC_SYNC_ELECT) add_read(d, i->src[0], wide ? 8 : 4);
  if (sync->kind == EXEC_SYNC_SHFL) {
    add_read(d, i->src[1], 4);
    add_read(d, i->src[2], 4);
  }
  if (!sync->legacy) add_read(d, i->src[3], 4);
  if (sync->kind == EXEC_SYNC_WARP) return;
  bool predicate = sync->kind == EXEC_SYNC_VOTE && sync->mode != EXEC_VOTE_BALLOT;
  add_write(d, i->dst, predicate ? 0 : 4);
  if (sync->has_predicate) add_write(d, i->dst2, 0);
}

/* What the interpreter does itself: what it reads of the frame (a call and the like: anything), and what a call
 * writes. */
static void describe_flow(describer *d, const exec_instr *i) {
  if (i->flow == EXEC_FLOW_BARRIER && ((const exec_sync *)i->side)->tensor) {
    const exec_tensor_allocation *a = i->side;
    add_read(d, a->to.slot, a->to.wide ? 8 : 4);
    add_read(d, a->columns, 4);
  } else if (i->flow == EXEC_FLOW_BARRIER) {
    add_read(d, i->src[0], 4);
    if (i->src[1] != EXEC_NO_OFFSET) add_read(d, i->src[1], 4);
    bool popc = ((const exec_sync *)i->side)->mode == EXEC_BARRIER_POPC,
         predicate = ((const exec_sync *)i->side)->mode > EXEC_BARRIER_POPC;
    if (popc || predicate) {
      add_read(d, i->src[2], 0);
      add_write(d, i->dst, predicate ? 0 : 4);
    }
  }
  if (i->flow != EXEC_FLOW_CALL && i->flow != EXEC_FLOW_CALL_INDIRECT && i->flow != EXEC_FLOW_HOST_CALL) return;
  const exec_call *call = i->side;
  for (uint32_t r = 0; r < call->result_count; r++)
    for (uint32_t word = 0; word < call->results[r].words && d->now.write_count < 16; word++)
      add_write(d, call->results[r].offset + word * EXEC_SLOT, 4);
}

static void describe_branches(describer *d, const exec_instr *i) {
  if (i->guard != EXEC_NO_GUARD || !i->aux) return;
  d->now.op = NATIVE_BRANCH_INDEXED;
  d->now.target = (uint32_t)d->waits.count;
  add_read(d, i->src[0], 4);
  for (uint32_t t = 0; t < i->aux; t++) FF_PUSH(&d->waits, ((const uint32_t *)i->side)[t]);
}

static bool is_access(const exec_function *f, const exec_instr *i) {
  if (i->unit != EXEC_UNIT_MEMORY || !i->side || i->index >= f->source->instr_count) return false;
  const ptx_instr *instr = &f->source->instrs[i->index];
  ptx_opcode op = instr->opcode;
  if (ptx_has(instr, PTX_MOD_ASYNC)) return false; /* an access and an mbarrier: the interpreter's */
  return op == PTX_OP_LD || op == PTX_OP_LDU || op == PTX_OP_ST || op == PTX_OP_ATOM || op == PTX_OP_RED;
}

static exec_move move_of(const describer *d, exec_handler run) {
  uint32_t m = 0;
#define X(name)                                     \
  if (d->isa->moves[m] == run) return (exec_move)m; \
  m++;
#include "exec/instructions/moves.def"
#undef X
  return (exec_move)m;
}

static void describe_computing(describer *d, const exec_instr *i) {
  const known_handler *known = known_of(d->handlers, i->run[0]);
  if (is_access(d->function, i)) describe_access(d, i);
  else if (known && known->form) describe_form(d, i, known->form);
  else if (known) describe_entry(d, i, known->entry);
  else describe_move(d, i, move_of(d, i->run[0]));
}

static void describe_waits(describer *d, const exec_instr *i) {
  if (!(d->watch & NATIVE_TRACED) || !(i->attention & EXEC_ATTEND_WAIT)) return;
  const uint32_t *list = d->function->waits + i->wait - 1;
  d->now.wait = (uint32_t)d->waits.count;
  d->now.wait_count = list[0];
  for (uint32_t n = 1; n <= list[0]; n++) {
    uint32_t number = list[n] & EXEC_WAIT_SPILL ? d->function->ever : list[n] & EXEC_WAIT_NUMBER;
    FF_PUSH(&d->waits, d->function->loads_offset + 4 * number);
  }
}

/* Where a marked region is entered, how many trips its loop will make is told from registers. */
static void describe_mark(describer *d, const exec_instr *i) {
  if (!(d->watch & NATIVE_TRACED) || !(i->attention & EXEC_ATTEND_MARK)) return;
  for (uint32_t n = 0; n < d->function->region_count; n++) {
    const exec_region *r = &d->function->regions[n];
    if (r->mark.entry != i->index) continue;
    if (r->from != EXEC_NO_OFFSET) add_read(d, r->from, r->from_bytes);
    if (r->to != EXEC_NO_OFFSET) add_read(d, r->to, r->to_bytes);
  }
}

static void describe_instr(describer *d, const exec_instr *i) {
  native_instr *n = &d->now;
  memset(n, 0, sizeof *n);
  n->flow = i->flow;
  n->attention = i->attention;
  n->guard = i->guard;
  n->guard_negated = i->guard_negated;
  n->aux = i->aux;
  n->index = i->index;
  n->target = i->target;
  n->rank = i->rank;
  n->immediate = i->immediate;
  n->operands = (uint32_t)d->operands.count;
  describe_waits(d, i);
  switch (i->flow) {
  case EXEC_FLOW_NONE:
  case EXEC_FLOW_GUARDED: describe_computing(d, i); break;
  case EXEC_FLOW_BRA: n->op = NATIVE_BRANCH; break;
  case EXEC_FLOW_BRA_IF: n->op = NATIVE_BRANCH_IF; break;
  case EXEC_FLOW_BRX: describe_branches(d, i); break;
  case EXEC_FLOW_SYNC:
    if (i->guard == EXEC_NO_GUARD && ((const exec_sync *)i->side)->kind <= EXEC_SYNC_ELECT) describe_sync(d, i);
    break;
  default: describe_flow(d, i); break;
  }
  /* half a description is none */
  if (n->op == NATIVE_EXIT && (i->flow == EXEC_FLOW_NONE || i->flow == EXEC_FLOW_GUARDED)) {
    d->operands.count = n->operands;
    n->read_count = n->write_count = 0;
  }
  describe_mark(d, i);
  if (n->guard != EXEC_NO_GUARD) {
    for (uint32_t w = 0; w < n->write_count; w++) add_read(d, d->writes[w].offset, d->writes[w].bytes);
    add_read(d, i->guard, 0);
  }
  for (uint32_t w = 0; w < n->write_count; w++) FF_PUSH(&d->operands, d->writes[w]);
  FF_PUSH(&d->instrs, *n);
}

/* ---- the whole request ---- */

_Static_assert(offsetof(core_warp, thread_executed) == offsetof(core_warp, executed) + 8,
               "compiled code adds to both at once");
static const native_layout layout = {
#define AT(field, type, member) .field = (uint32_t)offsetof(type, member)
    AT(warp_base0, core_warp, x.base[0]),
    AT(warp_base1, core_warp, x.base[1]),
    AT(warp_mask, core_warp, x.mask),
    AT(warp_active, core_warp, active),
    AT(warp_active_count, core_warp, active_count),
    AT(warp_segment, core_warp, segment),
    AT(warp_budget, core_warp, budget),
    AT(warp_pc, core_warp, pc),
    AT(warp_frame, core_warp, frame),
    AT(warp_function, core_warp, function),
    AT(warp_block, core_warp, block),
    AT(warp_launch, core_warp, launch),
    AT(warp_shared, core_warp, shared),
    AT(warp_shared_bytes, core_warp, shared_bytes),
    AT(warp_local, core_warp, local),
    AT(warp_params, core_warp, params),
    AT(warp_next_key, core_warp, next_key),
    AT(warp_ready_count, core_warp, ready_count),
    AT(warp_executed, core_warp, executed),
    AT(warp_accesses, core_warp, accesses),
    AT(warp_starting, core_warp, starting),
    AT(warp_tid, core_warp, tid),
    AT(warp_index, core_warp, index),
    AT(warp_diverged, core_warp, diverged),
    AT(warp_rotation, core_warp, rotation),
    AT(warp_kept, core_warp, kept),
    AT(warp_kept_places, core_warp, kept_places),
    AT(function_code, exec_function, code),
    AT(function_sfu, exec_function, sfu_before),
    AT(function_fp64, exec_function, fp64_before),
    AT(function_units, exec_function, units_before),
    AT(frame_depth, exec_frame, depth),
    AT(frame_stack, exec_frame, stack),
    AT(instr_run, exec_instr, run),
    AT(instr_side, exec_instr, side),
    AT(access_hint, exec_access, hint),
    AT(record_address, exec_span, info.address),
    AT(record_readable, exec_span, readable),
    AT(record_writable, exec_span, writable),
    AT(launch_grid, core_launch, grid),
    AT(launch_block, core_launch, block),
    AT(block_ctaid, core_block, ctaid),
    AT(writer_issue, core_warp, writer.issue),
    AT(writer_sfu, core_warp, writer.sfu),
    AT(writer_fp64, core_warp, writer.fp64),
    AT(writer_units, core_warp, writer.units),
    AT(api_guarded, exec_native_api, guarded),
    AT(api_collect, exec_native_api, collect),
    AT(api_spread, exec_native_api, spread),
    AT(api_count, exec_native_api, count),
    AT(api_waits, exec_native_api, waits),
    AT(api_mark, exec_native_api, mark),
    AT(api_row, exec_native_api, row),
    AT(api_one, exec_native_api, one),
    AT(api_scattered, exec_native_api, scattered),
    AT(api_conflicts, exec_native_api, conflicts),
    AT(api_passes, exec_native_api, passes),
    AT(api_diverge, exec_native_api, diverge),
    AT(api_meet, exec_native_api, meet),
    AT(api_indexed, exec_native_api, indexed),
    AT(api_masked, exec_native_api, masked),
    .instr_bytes = sizeof(exec_instr),
};

static native_function describe_function(describer *d, const exec_function *f) {
  native_function made = {.first = (uint32_t)d->instrs.count, .count = f->count, .frame_bytes = f->frame_bytes};
  d->function = f;
  for (uint32_t n = 0; n < f->count; n++) {
    describe_instr(d, &f->code[n]);
    made.has_sfu |= f->code[n].unit == EXEC_UNIT_SFU;
    made.has_fp64 |= f->code[n].unit == EXEC_UNIT_FP64;
  }
  return made;
}

static bool is_wide(void) {
  const char *text = getenv("FARFAULT_COMPILE_WIDE");
  return text && *text;
}

uint32_t native_watch(const core_launch *launch) {
  bool rows = launch->block[0] % EXEC_LANES == 0 || launch->block[0] == launch->thread_count;
  return (core_records(launch) ? NATIVE_TRACED : 0) | (launch->request->uses || launch->touches ? NATIVE_USES : 0) |
         (rows ? NATIVE_ROWS : 0);
}

void *native_describe(const exec_kernel *kernel, const exec_code *code, const exec_isa_table *isa, uint32_t watch,
                      bool any, uint32_t *bytes) {
  uint64_t total = 0;
  for (uint32_t f = 0; f < kernel->reach_count; f++) {
    if (!code->functions[f]) return NULL; /* very large: they are decoded when they are called */
    total += code->functions[f]->count;
  }
  if (total > MAX_INSTRUCTIONS) return NULL;
  describer d = {.isa = isa, .handlers = table_of(exec_isa_index(isa)), .watch = watch, .any = any};
  native_function *functions = ff_alloc((kernel->reach_count + (size_t)1) * sizeof *functions);
  for (uint32_t f = 0; f < kernel->reach_count; f++) functions[f] = describe_function(&d, code->functions[f]);
  native_request head = {.magic = NATIVE_MAGIC,
                         .version = NATIVE_VERSION,
                         .isa = exec_isa_index(isa),
                         .layout = layout,
                         .watch = watch,
                         .any = any,
                         .wide = is_wide(),
                         .function_count = kernel->reach_count,
                         .instr_count = (uint32_t)d.instrs.count,
                         .operand_count = (uint32_t)d.operands.count,
                         .wait_count = (uint32_t)d.waits.count};
  const struct {
    const void *items;
    size_t bytes;
  } parts[] = {{functions, kernel->reach_count * sizeof *functions},
               {d.instrs.items, d.instrs.count * sizeof *d.instrs.items},
               {d.operands.items, d.operands.count * sizeof *d.operands.items},
               {d.waits.items, d.waits.count * sizeof *d.waits.items}};
  size_t all = sizeof head;
  for (int p = 0; p < 4; p++) all += parts[p].bytes;
  head.bytes = (uint32_t)all;
  unsigned char *made = ff_alloc(head.bytes), *at = made + sizeof head;
  memcpy(made, &head, sizeof head);
  for (int p = 0; p < 4; at += parts[p++].bytes)
    if (parts[p].bytes) memcpy(at, parts[p].items, parts[p].bytes);
  free(functions);
  free(d.instrs.items);
  free(d.operands.items);
  free(d.waits.items);
  *bytes = head.bytes;
  return made;
}
