/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that exchange values between the lanes of a warp: shfl, vote, match, redux, elect (PTX ISA, "Data
 * Movement: shfl", "Parallel Synchronization and Communication"). All lanes that take part are in w->active.
 *
 * Lanes may name different sets of lanes in their membermasks: those of one set exchange with each other only.
 *
 * A lane that asks for the value of a lane that does not take part gets 0 (the manual leaves it undefined). */
#include "exec/core.h"
#include "exec/instructions/lanes.h"
#include "exec/instructions/redux.h"

INLINE void set_predicate(const core_warp *w, uint32_t operand, uint32_t bits) {
  uint32_t *cell = exec_pred(&w->x, operand);
  *cell = (*cell & ~w->active) | (bits & w->active);
}

/* ---- shfl ---- */

/* absent: whose source does not take part */
typedef struct shfl_lanes {
  uint32_t source[32], valid, absent;
} shfl_lanes;

/* Which lane each lane reads; one that reads no other reads itself. Without branches, for the compiler to make vectors
 * of it. */
INLINE void shfl_sources(shfl_lanes *s, const uint32_t mode, const uint32_t *b, const uint32_t *c, uint32_t active) {
  uint32_t valid = 0, absent = 0;
  EVERY_LANE {
    uint32_t lane = (uint32_t)l, segment = c[l] >> 8 & 31, delta = b[l] & 31;
    uint32_t last = (lane & segment) | (c[l] & 31 & ~segment);
    uint32_t source = mode == EXEC_SHFL_UP     ? lane - delta
                      : mode == EXEC_SHFL_DOWN ? lane + delta
                      : mode == EXEC_SHFL_BFLY ? lane ^ delta
                                               : (lane & segment) | (delta & ~segment);
    uint32_t good =
        (mode == EXEC_SHFL_UP ? (int32_t)source >= (int32_t)last : (int32_t)source <= (int32_t)last) ? UINT32_MAX : 0;
    source = ((source & good) | (lane & ~good)) & 31;
    s->source[l] = source;
    valid |= good & 1u << lane;
    absent |= (~(active >> source) & 1) << lane;
  }
  s->valid = valid;
  s->absent = absent;
}

static void shfl_find(shfl_lanes *s, uint32_t mode, const uint32_t *b, const uint32_t *c, uint32_t active) {
  switch (mode) {
  case EXEC_SHFL_UP: shfl_sources(s, EXEC_SHFL_UP, b, c, active); break;
  case EXEC_SHFL_DOWN: shfl_sources(s, EXEC_SHFL_DOWN, b, c, active); break;
  case EXEC_SHFL_BFLY: shfl_sources(s, EXEC_SHFL_BFLY, b, c, active); break;
  default: shfl_sources(s, mode, b, c, active); break;
  }
}

INLINE void permute(uint32_t *to, const uint32_t *from, const uint32_t *lane, uint32_t mask) {
#if EXEC_ISA_avx512
  __m512i low = _mm512_loadu_si512(from), high = _mm512_loadu_si512(from + 16);
  __m512i a = _mm512_permutex2var_epi32(low, _mm512_loadu_si512(lane), high);
  __m512i b = _mm512_permutex2var_epi32(low, _mm512_loadu_si512(lane + 16), high);
  _mm512_mask_storeu_epi32(to, (__mmask16)mask, a);
  _mm512_mask_storeu_epi32(to + 16, (__mmask16)(mask >> 16), b);
#else
  uint32_t copy[32];
  memcpy(copy, from, sizeof copy);
  if (LIKELY(mask == UINT32_MAX)) {
    for (uint32_t l = 0; l < 32; l++) to[l] = copy[lane[l]];
  } else {
    EACH_LANE(mask) to[l] = copy[lane[l]];
  }
#endif
}

static void shfl(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_sync *sync = i->side;
  const uint32_t *lanes = sync->lane;
  uint32_t valid = sync->valid, active = w->active, absent = 0;
  shfl_lanes computed;
  if (UNLIKELY(!sync->constant || active != UINT32_MAX)) {
    shfl_find(&computed, sync->mode, exec_u32(x, i->src[1]), exec_u32(x, i->src[2]), active);
    lanes = computed.source;
    valid = computed.valid;
    absent = computed.absent & active;
  }
  permute(exec_u32(x, i->dst), exec_u32(x, i->src[0]), lanes, active);
  if (absent) lanes_fill32(exec_u32(x, i->dst), 0, absent); /* undefined; programs count on 0 */
  if (sync->has_predicate) set_predicate(w, i->dst2, valid);
}

/* ---- groups ---- */

/* Of these lanes, those whose membermask is that of the first of them. */
INLINE uint32_t first_group(const exec_warp *x, const exec_instr *i, uint32_t lanes) {
  const exec_sync *sync = i->side;
  if (sync->legacy || i->src[3] & 1) return lanes; /* a constant */
  const uint32_t *member = exec_u32(x, i->src[3]);
  uint32_t first = member[__builtin_ctz(lanes)], same = 0;
  EVERY_LANE same |= (uint32_t)(member[l] == first) << l;
  return lanes & same;
}

/* Lanes with different membermasks may come together: each group of lanes with the same one is for itself. */
INLINE void by_group(exec_warp *x, const exec_instr *i, exec_handler one_group) {
  core_warp *w = (core_warp *)x;
  uint32_t all = w->active, left = all;
  do {
    w->active = first_group(x, i, left);
    left &= ~w->active;
    one_group(x, i);
  } while (UNLIKELY(left));
  w->active = all;
}

/* ---- vote ---- */

static void vote_group(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_sync *sync = i->side;
  uint32_t among = w->active, predicate = *exec_pred(x, i->src[0]);
  if (sync->negated) predicate = ~predicate;
  if (!sync->legacy) among &= exec_u32(x, i->src[3])[__builtin_ctz(w->active)];
  predicate &= among;
  switch (sync->mode) {
  case EXEC_VOTE_ALL: set_predicate(w, i->dst, predicate == among ? UINT32_MAX : 0); break;
  case EXEC_VOTE_ANY: set_predicate(w, i->dst, predicate ? UINT32_MAX : 0); break;
  case EXEC_VOTE_UNI: set_predicate(w, i->dst, predicate == among || !predicate ? UINT32_MAX : 0); break;
  default: lanes_fill32(exec_u32(x, i->dst), predicate, w->active); break;
  }
}

static void vote(exec_warp *x, const exec_instr *i) { by_group(x, i, vote_group); }

/* ---- match ---- */

INLINE uint64_t match_value(const exec_warp *x, const exec_instr *i, uint32_t lane) {
  const exec_sync *sync = i->side;
  return sync->wide ? exec_u64(x, i->src[0])[lane] : exec_u32(x, i->src[0])[lane];
}

/* Of all 32 lanes. */
INLINE uint32_t lanes_that_have(const exec_warp *x, const exec_instr *i, uint64_t value) {
  const exec_sync *sync = i->side;
  if (sync->wide) return ~lanes_off_row64(exec_u64(x, i->src[0]), value, 0);
  return ~lanes_off_row32(exec_u32(x, i->src[0]), (uint32_t)value, 0);
}

static void match_any_group(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  uint32_t left = w->active & exec_u32(x, i->src[3])[__builtin_ctz(w->active)], result[32] = {0};
  while (left) { /* one round per distinct value */
    uint32_t same = left & lanes_that_have(x, i, match_value(x, i, (uint32_t)__builtin_ctz(left)));
    lanes_fill32(result, same, same);
    left &= ~same;
  }
  lanes_copy32(exec_u32(x, i->dst), result, w->active);
}

static void match_any(exec_warp *x, const exec_instr *i) { by_group(x, i, match_any_group); }

static void match_all_group(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_sync *sync = i->side;
  uint32_t among = w->active & exec_u32(x, i->src[3])[__builtin_ctz(w->active)];
  uint64_t value = match_value(x, i, (uint32_t)__builtin_ctz(w->active));
  bool all = !(among & ~lanes_that_have(x, i, value));
  lanes_fill32(exec_u32(x, i->dst), all ? among : 0, w->active);
  if (sync->has_predicate) set_predicate(w, i->dst2, all ? UINT32_MAX : 0);
}

static void match_all(exec_warp *x, const exec_instr *i) { by_group(x, i, match_all_group); }

/* ---- redux, elect ---- */

static void redux_group(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_sync *sync = i->side;
  const uint32_t *value = exec_u32(x, i->src[0]);
  uint32_t among = w->active & exec_u32(x, i->src[3])[__builtin_ctz(w->active)], result = 0;
  uint32_t keep = sync->absolute ? 0x7fffffff : UINT32_MAX;
  bool first = true;
  EACH_LANE(among) {
    uint32_t v = value[l] & keep;
    if (first) result = v;
    else
      result = sync->mode >= EXEC_REDUX_FMIN ? redux_float(sync->mode, sync->nan, result, v)
                                             : redux_integer(sync->mode, sync->is_signed, result, v);
    first = false;
  }
  if (sync->mode >= EXEC_REDUX_FMIN && redux_is_nan(result)) result = 0x7fffffff; /* of one lane */
  lanes_fill32(exec_u32(x, i->dst), result, w->active);
}

static void redux(exec_warp *x, const exec_instr *i) { by_group(x, i, redux_group); }

static void elect_group(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_sync *sync = i->side;
  uint32_t among = w->active & exec_u32(x, i->src[3])[__builtin_ctz(w->active)];
  uint32_t leader = (uint32_t)__builtin_ctz(among ? among : w->active);
  lanes_fill32(exec_u32(x, i->dst), leader, w->active);
  if (sync->has_predicate) set_predicate(w, i->dst2, 1u << leader);
}

static void elect(exec_warp *x, const exec_instr *i) { by_group(x, i, elect_group); }

static void warp_barrier(exec_warp *x, const exec_instr *i) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

void ISA(core_mma)(exec_warp *x, const exec_instr *i);
void ISA(core_quad_mma)(exec_warp *x, const exec_instr *i);
void ISA(core_movmatrix)(exec_warp *x, const exec_instr *i);
void ISA(core_wgmma)(exec_warp *x, const exec_instr *i);

extern const exec_handler ISA(exec_sync_handlers)[EXEC_SYNC_BARRIER];
const exec_handler ISA(exec_sync_handlers)[EXEC_SYNC_BARRIER] = {
    [EXEC_SYNC_WARP] = warp_barrier,
    [EXEC_SYNC_SHFL] = shfl,
    [EXEC_SYNC_VOTE] = vote,
    [EXEC_SYNC_MATCH_ANY] = match_any,
    [EXEC_SYNC_MATCH_ALL] = match_all,
    [EXEC_SYNC_REDUX] = redux,
    [EXEC_SYNC_ELECT] = elect,
    [EXEC_SYNC_MMA] = ISA(core_mma),
    [EXEC_SYNC_QUAD_MMA] = ISA(core_quad_mma),
    [EXEC_SYNC_MOVMATRIX] = ISA(core_movmatrix),
    [EXEC_SYNC_WGMMA] = ISA(core_wgmma),
};
