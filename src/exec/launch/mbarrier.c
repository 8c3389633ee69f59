/* SPDX-License-Identifier: Apache-2.0 */
/* mbarrier: barriers that live in shared memory and count arrivals and bytes (PTX ISA, "mbarrier").
 *
 * The object is 64 bits that only these instructions look into. Here they are
 *
 *   phase:1 | unused:2 | bytes:21, signed | expected:20 | pending:20
 *
 * The instruction that brings pending and bytes both to zero ends the phase: it flips `phase` and sets pending to
 * expected. The state that an arrival returns is the object before it.
 *
 * .inval leaves the object as it is. Nothing may be asked of it any more, but libcu++'s barriers and pipelines end when
 * their first thread has waited, and threads that come a little later still find that the phase is over, as on GPUs.
 *
 * Bulk copies (memory/bulk.c) tell the object of their bytes by core_mbarrier_complete. Copies by cp.async are over
 * when they are issued, so cp.async.mbarrier.arrive is an arrival with .noinc and changes nothing without (it would
 * count itself up and down again); in the access stream both arrive when the copies do. Waits do not block: after a
 * test that fails the warp's turn ends at the next backward branch, for only other warps can change the outcome.
 *
 * On a GPU a thread that waits goes on when the phase ends, and another may set the mbarrier up again right afterwards,
 * at the same place. Here the waiting warp's turn may come after that only. So the warp notes which lanes wait for
 * which phase, .init and .inval wake those whose phase is over, and the next wait of a lane that was woken succeeds. A
 * lane that first waits for another phase, comes to a barrier or polls memory was not waiting any more. */
#include "exec/memory/bulk.h"
#include "exec/decode/decode.h"

#define COUNT_BITS 20
#define COUNT_MASK UINT64_C(0xfffff)
#define BYTES_SHIFT 40
#define BYTES_MASK UINT64_C(0x1fffff)
#define PHASE (UINT64_C(1) << 63)

typedef struct exec_mbarrier { /* side data */
  /* data[0]: count, bytes or parity; compare: bytes expected with an arrival, or the state waited for */
  exec_access access;
  uint8_t event; /* core_mbarrier_event: of each lane's object */
} exec_mbarrier;

/* src[1] gets 0 or 1 per lane, and the predicate dst2 follows it; the event happens only if all are 1. */
static bool waits(const exec_mbarrier *b) { return b->event == CORE_MBARRIER_IS_OVER; }

static uint64_t pending(uint64_t object) { return object & COUNT_MASK; }
static uint64_t expected(uint64_t object) { return object >> COUNT_BITS & COUNT_MASK; }

static uint64_t add_bytes(uint64_t object, uint32_t bytes) {
  uint64_t sum = ((object >> BYTES_SHIFT) + bytes) & BYTES_MASK;
  return (object & ~(BYTES_MASK << BYTES_SHIFT)) | sum << BYTES_SHIFT;
}

static uint64_t close_phase(uint64_t object) {
  bool over = !pending(object) && !(object >> BYTES_SHIFT & BYTES_MASK);
  return over ? (object ^ PHASE) | expected(object) : object;
}

static uint64_t arrive(uint64_t object, uint64_t count, uint32_t bytes) {
  object = add_bytes(object, bytes);
  return (object & ~COUNT_MASK) | ((pending(object) - count) & COUNT_MASK);
}

static uint64_t drop(uint64_t object, uint64_t count) {
  uint64_t left = (expected(object) - count) & COUNT_MASK;
  return (object & ~(COUNT_MASK << COUNT_BITS)) | left << COUNT_BITS;
}

/* X(name, element of the result, result, new object): b and c are this lane's operands, old the object before. */
#define OPERATIONS(X)                                                                             \
  X(init, uint64_t, old, (uint64_t)(b[lane] & COUNT_MASK) << COUNT_BITS | (b[lane] & COUNT_MASK)) \
  X(inval, uint64_t, old, old)                                                                    \
  X(arrive, uint64_t, old, close_phase(arrive(old, b[lane], c[lane])))                            \
  X(arrive_drop, uint64_t, old, close_phase(arrive(drop(old, b[lane]), b[lane], c[lane])))        \
  X(expect_tx, uint64_t, old, add_bytes(old, b[lane]))                                            \
  X(complete_tx, uint64_t, old, close_phase(add_bytes(old, 0u - b[lane])))                        \
  X(wait_state, uint32_t, (old ^ state[lane]) >> 63, old)                                         \
  X(wait_parity, uint32_t, old >> 63 != (b[lane] & 1), old)

#define X(name, element, result, new_object)                                                                \
  static uint32_t do_##name(void *const *address, const void *vb, const void *vc, void *out, uint32_t mask, \
                            bool plain) {                                                                   \
    const uint32_t *b = vb, *c = vc;                                                                        \
    const uint64_t *state = vc;                                                                             \
    uint32_t changed = 0;                                                                                   \
    (void)b, (void)c, (void)state, (void)plain; /* shared memory is its worker's alone */                   \
    for (uint32_t m = mask; m; m &= m - 1) {                                                                \
      uint32_t lane = (uint32_t)__builtin_ctz(m);                                                           \
      uint64_t *at = address[lane], old = *at;                                                              \
      *at = (new_object);                                                                                   \
      changed |= (uint32_t)(*at != old) << lane;                                                            \
      if (out) ((element *)out)[lane] = (element)(result);                                                  \
    }                                                                                                       \
    return changed;                                                                                         \
  }
OPERATIONS(X)
#undef X

static uint64_t *object_at(core_warp *w, const exec_instr *i, uint32_t lane) {
  const exec_access *access = i->side;
  uint64_t base = access->wide ? exec_u64(&w->x, i->src[0])[lane] : exec_u32(&w->x, i->src[0])[lane];
  return (uint64_t *)(void *)core_bytes_at(w, i, lane, base + (uint64_t)i->immediate, sizeof(uint64_t),
                                           sizeof(uint64_t));
}

/* The objects of the active lanes, each once if neighbours have the same. */
static uint32_t objects_of(core_warp *w, const exec_instr *i, uint64_t *object[EXEC_LANES]) {
  uint32_t count = 0;
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint64_t *at = object_at(w, i, (uint32_t)__builtin_ctz(m));
    if (!count || object[count - 1] != at) object[count++] = at;
  }
  return count;
}

/* ---- waiting lanes ---- */

static uint32_t offset_of(const core_warp *w, const uint64_t *object) {
  return (uint32_t)((const unsigned char *)object - w->shared);
}

/* Before the object of an active lane is set up again, or given up. */
static void wake(core_warp *w, const uint64_t *object) {
  uint32_t offset = offset_of(w, object);
  for (uint32_t n = 0; n < w->block->warp_count; n++) {
    core_warp *other = &w->block->warps[n];
    uint32_t in_phase = *object >> 63 ? other->waiting_odd : ~other->waiting_odd;
    for (uint32_t m = other->waiting & ~in_phase; m; m &= m - 1) {
      uint32_t lane = (uint32_t)__builtin_ctz(m);
      if (other->waiting_at[lane] == offset) other->woken |= 1u << lane;
    }
  }
}

/* The active lanes have waited; `failed` of them in vain, but for those that were woken, which are returned. */
static uint32_t note_waiting(core_warp *w, const exec_instr *i, uint32_t failed) {
  uint32_t woken = 0;
  w->waiting &= ~w->active;
  for (uint32_t m = failed; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m), bit = 1u << lane;
    const uint64_t *object = object_at(w, i, lane);
    uint32_t offset = offset_of(w, object), odd = *object >> 63 ? bit : 0; /* it waits for the phase that this is */
    if (w->woken & bit && w->waiting_at[lane] == offset && (w->waiting_odd & bit) == odd) {
      woken |= bit;
      continue;
    }
    w->waiting |= bit;
    w->waiting_at[lane] = offset;
    w->waiting_odd = (w->waiting_odd & ~bit) | odd;
  }
  w->woken &= ~w->active;
  return woken;
}

void core_mbarrier(exec_warp *x, const exec_instr *i) {
  const exec_mbarrier *barrier = i->side;
  exec_instr access = *i;
  access.side = &barrier->access;
  access.dst = waits(barrier) ? i->src[1] : i->dst;
  core_warp *w = (core_warp *)x;
  uint64_t *object[EXEC_LANES];
  uint32_t objects = w->trace ? objects_of(w, &access, object) : 0;
  for (uint32_t n = 0; n < objects; n++) core_trace_mbarrier_before(w, object[n]);
  if (barrier->event == CORE_MBARRIER_STARTS)
    for (uint32_t m = w->active; m; m &= m - 1) wake(w, object_at(w, &access, (uint32_t)__builtin_ctz(m)));
  uint32_t polls = w->polls, waiting = w->waiting, woken = w->woken;
  core_access_lanes(x, &access);
  w->waiting = waiting, w->woken = woken; /* a wait in vain has polled */
  if (!waits(barrier)) {
    for (uint32_t n = 0; n < objects; n++) core_trace_mbarrier(w, i, object[n], (core_mbarrier_event)barrier->event);
    w->block->idle_turns = w->block->looks = 0; /* an arrival may be what the others wait for */
    w->block->moved = true;
    return;
  }
  const uint32_t *over = exec_u32(x, i->src[1]);
  uint32_t mask = w->active, *predicate = exec_pred(x, i->dst2), bits = 0;
  for (uint32_t lane = 0; lane < EXEC_LANES; lane++) bits |= (over[lane] & 1) << lane;
  bits |= note_waiting(w, &access, mask & ~bits);
  *predicate = (*predicate & ~mask) | (bits & mask);
  if (!(mask & ~bits)) {
    for (uint32_t n = 0; n < objects; n++) core_trace_mbarrier(w, i, object[n], (core_mbarrier_event)barrier->event);
    return;
  }
  if (objects) core_trace_looked(w, i, (uint64_t)(uintptr_t)object[0], mask);
  w->budget = -1;
  w->stuck = !polls || (w->stuck && polls == EXEC_SPIN_POLLS);
  w->polls = EXEC_SPIN_POLLS;
}

static void tell(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, uint32_t count, uint32_t bytes) {
  uint64_t *object = (uint64_t *)(void *)core_bytes_at(w, i, lane, address, sizeof *object, sizeof *object);
  if (w->trace) core_trace_mbarrier_before(w, object);
  *object = close_phase(arrive(*object, count, 0u - bytes));
  if (w->trace) core_trace_mbarrier(w, i, object, bytes ? CORE_MBARRIER_COPIES : CORE_MBARRIER_ARRIVES);
  w->block->idle_turns = w->block->looks = 0;
  w->block->moved = true;
}

void core_mbarrier_complete(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, uint32_t bytes) {
  tell(w, i, lane, address, 0, bytes);
}

void core_mbarrier_arrive(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address) {
  tell(w, i, lane, address, 1, 0);
}

/* ---- decoding ---- */

static exec_span no_span; /* nothing is inside it */

static exec_mbarrier *new_barrier(decoder *d, exec_atomic_function function, core_mbarrier_event event) {
  exec_mbarrier *b = ff_arena_alloc(d->arena, sizeof *b);
  ptx_space space = ptx_instr_space(d->instr);
  b->access.hint = &no_span;
  b->access.op = EXEC_OP_ATOMIC;
  b->access.space = (uint8_t)(space == PTX_SPACE_SHARED ? PTX_SPACE_SHARED : PTX_SPACE_GENERIC);
  b->access.bytes = 8;
  b->access.elements = 1;
  b->access.slot_bytes = 8;
  b->access.log2_total = 3;
  b->access.data[0] = b->access.compare = decode_constant(d, 0, 4);
  for (uint32_t e = 0; e < 8; e++) b->access.load[e] = EXEC_NO_OFFSET;
  b->access.atomic = b->access.atomic_shared = function;
  b->event = (uint8_t)event;
  return b;
}

static bool emit_barrier(decoder *d, exec_mbarrier *b, const ptx_operand *address, uint32_t dst, uint32_t dst2) {
  uint32_t base, result = waits(b) ? decode_temp(d) : 0;
  bool wide;
  int64_t add;
  if (!decode_address(d, address, (ptx_space)b->access.space, &base, &wide, &add)) return false;
  b->access.wide = wide;
  exec_instr *i = decode_move(d, EXEC_MOVE_MBARRIER);
  i->unit = EXEC_UNIT_MEMORY;
  i->src[0] = base;
  i->src[1] = result;
  i->dst = dst;
  i->dst2 = dst2;
  i->immediate = add;
  i->side = b;
  return true;
}

/* mbarrier.init [a], count; .inval [a]; .expect_tx [a], bytes; .complete_tx [a], bytes */
static bool decode_plain(decoder *d, exec_atomic_function function, core_mbarrier_event event) {
  exec_mbarrier *b = new_barrier(d, function, event);
  const ptx_operand *operands = d->instr->operands;
  if (d->instr->operand_count > 1 && !decode_source(d, &operands[1], PTX_U32, &b->access.data[0])) return false;
  return emit_barrier(d, b, &operands[0], 0, 0);
}

/* mbarrier.arrive{_drop}{.expect_tx} state, [a]{, count or bytes}; without a state for remote barriers. */
static bool decode_arrive(decoder *d, bool drops, core_mbarrier_event event) {
  const ptx_operand *operands = d->instr->operands;
  uint32_t count = d->instr->operand_count, first = operands[0].kind == PTX_OPERAND_ADDRESS ? 0 : 1, dst = 0;
  exec_mbarrier *b = new_barrier(d, drops ? do_arrive_drop : do_arrive, event);
  bool bytes = ptx_has(d->instr, PTX_MOD_EXPECT_TX);
  if (first >= count) return decode_fail(d, "mbarrier.arrive without an address");
  b->access.data[0] = decode_constant(d, 1, 4);
  if (first + 1 < count &&
      !decode_source(d, &operands[first + 1], PTX_U32, bytes ? &b->access.compare : &b->access.data[0]))
    return false;
  if (first && !decode_destination(d, &operands[0], PTX_B64, &dst)) return false;
  b->access.returns = first == 1;
  return emit_barrier(d, b, &operands[first], dst, 0);
}

/* mbarrier.test_wait{.parity} p, [a], state; try_wait may have a time limit, which is not needed. */
static bool decode_wait(decoder *d) {
  const ptx_operand *operands = d->instr->operands;
  bool parity = ptx_has(d->instr, PTX_MOD_PARITY);
  exec_mbarrier *b = new_barrier(d, parity ? do_wait_parity : do_wait_state, CORE_MBARRIER_IS_OVER);
  uint32_t predicate;
  if (d->instr->operand_count < 3) return decode_fail(d, "this form of mbarrier wait");
  if (!decode_source(d, &operands[2], parity ? PTX_U32 : PTX_B64, parity ? &b->access.data[0] : &b->access.compare))
    return false;
  if (!decode_destination(d, &operands[0], PTX_PRED, &predicate)) return false;
  b->access.returns = 1;
  return emit_barrier(d, b, &operands[1], 0, predicate);
}

bool decode_complete_tx(decoder *d, const ptx_operand *barrier, uint32_t bytes) {
  exec_mbarrier *b = new_barrier(d, do_complete_tx, CORE_MBARRIER_ARRIVES);
  b->access.data[0] = decode_constant(d, bytes, 4);
  return emit_barrier(d, b, barrier, 0, 0);
}

/* mbarrier.pending_count count, state */
static bool decode_pending_count(decoder *d) {
  uint32_t state, dst, low = decode_temp(d);
  if (d->instr->operand_count < 2 || !decode_source(d, &d->instr->operands[1], PTX_B64, &state))
    return decode_fail(d, "mbarrier.pending_count");
  if (!decode_destination(d, &d->instr->operands[0], PTX_U32, &dst)) return false;
  exec_instr *i = decode_move(d, EXEC_MOVE_NARROW);
  i->dst = low;
  i->src[0] = state;
  i = decode_move(d, EXEC_MOVE_EXTRACT);
  i->dst = dst;
  i->src[0] = low;
  i->aux = COUNT_BITS << 8;
  return true;
}

bool decode_mbarrier(decoder *d) {
  const ptx_instr *instr = d->instr;
  if (!instr->operand_count) return decode_fail(d, "mbarrier without operands");
  if (instr->opcode == PTX_OP_CP) /* cp.async.mbarrier.arrive */
    return ptx_has(instr, PTX_MOD_NOINC) ? decode_arrive(d, false, CORE_MBARRIER_COPIES)
                                         : decode_plain(d, do_expect_tx, CORE_MBARRIER_COPIES); /* of no bytes */
  if (ptx_has(instr, PTX_MOD_TEST_WAIT) || ptx_has(instr, PTX_MOD_TRY_WAIT)) return decode_wait(d);
  if (ptx_has(instr, PTX_MOD_ARRIVE)) return decode_arrive(d, false, CORE_MBARRIER_ARRIVES);
  if (ptx_has(instr, PTX_MOD_ARRIVE_DROP)) return decode_arrive(d, true, CORE_MBARRIER_ARRIVES);
  if (ptx_has(instr, PTX_MOD_INIT)) return decode_plain(d, do_init, CORE_MBARRIER_STARTS);
  if (ptx_has(instr, PTX_MOD_INVAL)) return decode_plain(d, do_inval, CORE_MBARRIER_STARTS);
  if (ptx_has(instr, PTX_MOD_EXPECT_TX)) return decode_plain(d, do_expect_tx, CORE_MBARRIER_NOTHING);
  if (ptx_has(instr, PTX_MOD_COMPLETE_TX)) return decode_plain(d, do_complete_tx, CORE_MBARRIER_ARRIVES);
  if (ptx_has(instr, PTX_MOD_PENDING_COUNT)) return decode_pending_count(d);
  return decode_fail(d, "this form of mbarrier");
}
