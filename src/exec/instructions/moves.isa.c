/* SPDX-License-Identifier: Apache-2.0 */
/* Moves that the decoder puts in itself: special registers, packing and unpacking, addresses, parameters in words. */
#include "exec/instructions/moves.h"
#include "exec/memory/access.h"
#include "exec/instructions/lanes.h"

/* value: an expression in l. Lanes outside the mask keep what they have. */
#define FOR_LANES(statement)           \
  do {                                 \
    uint32_t mask_ = x->mask;          \
    if (LIKELY(mask_ == UINT32_MAX)) { \
      EVERY_LANE { statement; }        \
    } else {                           \
      EACH_LANE(mask_) { statement; }  \
    }                                  \
  } while (0)

#define MOVE(name) static void move_##name(exec_warp *x, const exec_instr *i)
#define D32 uint32_t *d = exec_u32(x, i->dst)
#define D64 uint64_t *d = exec_u64(x, i->dst)
#define S32(n) const uint32_t *s##n = exec_u32(x, i->src[n])
#define S64(n) const uint64_t *s##n = exec_u64(x, i->src[n])

MOVE(NOTHING) {}
MOVE(FENCE) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  core_poll((core_warp *)x); /* a loop around a fence may wait for another thread */
}
MOVE(SREG) { core_read_sreg((core_warp *)x, i); }
MOVE(ACTIVEMASK) { lanes_fill32(exec_u32(x, i->dst), ((core_warp *)x)->active, x->mask); }
MOVE(LOCAL_ADDRESS) {
  lanes_fill64(exec_u64(x, i->dst), ((core_warp *)x)->frame->local + (uint64_t)i->immediate, x->mask);
}
MOVE(LOCAL_ADDRESS32) {
  lanes_fill32(exec_u32(x, i->dst), ((core_warp *)x)->frame->local + (uint32_t)i->immediate, x->mask);
}
MOVE(STACK_ALLOCATE) { core_stack_allocate(x, i); }
MOVE(STACK_SAVE) { core_stack_save(x, i); }
MOVE(STACK_RESTORE) { core_stack_restore(x, i); }
MOVE(ADD64) {
  D64;
  S64(0);
  uint64_t add = (uint64_t)i->immediate;
  FOR_LANES(d[l] = s0[l] + add);
}
MOVE(ADD32) {
  D32;
  S32(0);
  uint32_t add = (uint32_t)i->immediate;
  FOR_LANES(d[l] = s0[l] + add);
}
MOVE(COPY32) { lanes_copy32(exec_u32(x, i->dst), exec_u32(x, i->src[0]), x->mask); }
MOVE(COPY64) { lanes_copy64(exec_u64(x, i->dst), exec_u64(x, i->src[0]), x->mask); }
MOVE(COPY128) {
  lanes_copy64(exec_u64(x, i->dst), exec_u64(x, i->src[0]), x->mask);
  lanes_copy64(exec_u64(x, i->dst) + 32, exec_u64(x, i->src[0]) + 32, x->mask);
}
MOVE(NARROW) {
  D32;
  S64(0);
  FOR_LANES(d[l] = (uint32_t)s0[l]);
}
MOVE(WIDEN_ZERO) {
  D64;
  S32(0);
  FOR_LANES(d[l] = s0[l]);
}
MOVE(WIDEN_SIGN) {
  D64;
  S32(0);
  FOR_LANES(d[l] = (uint64_t)(int64_t)(int32_t)s0[l]);
}
MOVE(LENGTHEN) {
  D64;
  S32(0);
  S64(1);
  FOR_LANES(d[l] = s1[l] + (uint64_t)(int64_t)(int32_t)(s0[l] - (uint32_t)s1[l]));
}

MOVE(PACK_2x8) {
  D32;
  S32(0);
  S32(1);
  FOR_LANES(d[l] = (s0[l] & 0xff) | (s1[l] & 0xff) << 8);
}
MOVE(PACK_4x8) {
  D32;
  S32(0);
  S32(1);
  S32(2);
  S32(3);
  FOR_LANES(d[l] = (s0[l] & 0xff) | (s1[l] & 0xff) << 8 | (s2[l] & 0xff) << 16 | s3[l] << 24);
}
MOVE(PACK_2x16) {
  D32;
  S32(0);
  S32(1);
  FOR_LANES(d[l] = (s0[l] & 0xffff) | s1[l] << 16);
}
MOVE(PACK_4x16) {
  D64;
  S32(0);
  S32(1);
  S32(2);
  S32(3);
  FOR_LANES(d[l] = (s0[l] & 0xffff) | s1[l] << 16 | (uint64_t)((s2[l] & 0xffff) | s3[l] << 16) << 32);
}
MOVE(PACK_2x32) {
  D64;
  S32(0);
  S32(1);
  FOR_LANES(d[l] = s0[l] | (uint64_t)s1[l] << 32);
}
MOVE(PACK_4x32) {
  D64;
  S32(0);
  S32(1);
  S32(2);
  S32(3);
  FOR_LANES((d[l] = s0[l] | (uint64_t)s1[l] << 32, d[l + 32] = s2[l] | (uint64_t)s3[l] << 32));
}
MOVE(PACK_2x64) {
  D64;
  S64(0);
  S64(1);
  FOR_LANES((d[l] = s0[l], d[l + 32] = s1[l]));
}

/* Destinations of an unpacking move. */
#define TO32(n, operand) uint32_t *d##n = exec_u32(x, operand)
#define TO64(n, operand) uint64_t *d##n = exec_u64(x, operand)
MOVE(UNPACK_2x8) {
  TO32(0, i->dst);
  TO32(1, i->dst2);
  S32(0);
  FOR_LANES(uint32_t v = s0[l]; d0[l] = v & 0xff; d1[l] = v >> 8 & 0xff);
}
MOVE(UNPACK_4x8) {
  TO32(0, i->dst);
  TO32(1, i->dst2);
  TO32(2, i->src[2]);
  TO32(3, i->src[3]);
  S32(0);
  FOR_LANES(uint32_t v = s0[l]; d0[l] = v & 0xff; d1[l] = v >> 8 & 0xff; d2[l] = v >> 16 & 0xff; d3[l] = v >> 24);
}
MOVE(UNPACK_2x16) {
  TO32(0, i->dst);
  TO32(1, i->dst2);
  S32(0);
  FOR_LANES(uint32_t v = s0[l]; d0[l] = v & 0xffff; d1[l] = v >> 16);
}
MOVE(UNPACK_4x16) {
  TO32(0, i->dst);
  TO32(1, i->dst2);
  TO32(2, i->src[2]);
  TO32(3, i->src[3]);
  S64(0);
  FOR_LANES(uint64_t v = s0[l]; d0[l] = v & 0xffff; d1[l] = (uint32_t)v >> 16; d2[l] = v >> 32 & 0xffff;
            d3[l] = (uint32_t)(v >> 48));
}
MOVE(UNPACK_2x32) {
  TO32(0, i->dst);
  TO32(1, i->dst2);
  S64(0);
  FOR_LANES(uint64_t v = s0[l]; d0[l] = (uint32_t)v; d1[l] = (uint32_t)(v >> 32));
}
MOVE(UNPACK_4x32) {
  TO32(0, i->dst);
  TO32(1, i->dst2);
  TO32(2, i->src[2]);
  TO32(3, i->src[3]);
  S64(0);
  FOR_LANES(uint64_t v = s0[l]; uint64_t u = s0[l + 32]; d0[l] = (uint32_t)v; d1[l] = (uint32_t)(v >> 32);
            d2[l] = (uint32_t)u; d3[l] = (uint32_t)(u >> 32));
}
MOVE(UNPACK_2x64) {
  TO64(0, i->dst);
  TO64(1, i->dst2);
  S64(0);
  FOR_LANES(uint64_t v = s0[l]; uint64_t u = s0[l + 32]; d0[l] = v; d1[l] = u);
}

MOVE(INSERT) {
  D32;
  S32(0);
  uint32_t shift = i->aux & 31, bits = i->aux >> 8 & 63, keep = bits == 32 ? 0 : ~(((1u << bits) - 1) << shift);
  FOR_LANES(d[l] = (d[l] & keep) | (s0[l] << shift & ~keep));
}
MOVE(EXTRACT) {
  D32;
  S32(0);
  uint32_t shift = i->aux & 31, bits = i->aux >> 8 & 63, unused = 32 - bits,
           cut = i->aux >> 17 & 1 ? 0xffff : UINT32_MAX;
  if (i->aux >> 16 & 1) FOR_LANES(d[l] = (uint32_t)((int32_t)(s0[l] >> shift << unused) >> unused) & cut);
  else FOR_LANES(d[l] = (s0[l] >> shift << unused >> unused) & cut);
}

INLINE void set_predicate(exec_warp *x, const exec_instr *i, uint32_t bits) {
  uint32_t *cell = exec_pred(x, i->dst);
  *cell = (*cell & ~x->mask) | (bits & x->mask);
}
INLINE uint32_t in_window(const exec_warp *x, const exec_instr *i, uint64_t window) {
  return ~lanes_outside64(exec_u64(x, i->src[0]), window, EXEC_WINDOW_BYTES - 1);
}
MOVE(MAPA32) {
  const core_warp *w = (const core_warp *)x;
  D32;
  S32(0);
  S32(1);
  FOR_LANES(d[l] = core_shared_map(w, s0[l], s1[l]));
}
MOVE(MAPA64) {
  const core_warp *w = (const core_warp *)x;
  uint64_t window = (uint64_t)i->immediate;
  D64;
  S64(0);
  S32(1);
  FOR_LANES(d[l] = window + core_shared_map(w, (uint32_t)(s0[l] - window), s1[l]));
}
MOVE(CTARANK32) {
  const core_warp *w = (const core_warp *)x;
  D32;
  S32(0);
  FOR_LANES(d[l] = core_shared_rank(w, s0[l]));
}
MOVE(CTARANK64) {
  const core_warp *w = (const core_warp *)x;
  uint64_t window = (uint64_t)i->immediate;
  D32;
  S64(0);
  FOR_LANES(d[l] = core_shared_rank(w, s0[l] - window));
}
MOVE(IS_NOT_ZERO) {
  S32(0);
  uint32_t bits = 0;
  for (uint32_t l = 0; l < 32; l++) bits |= (uint32_t)(s0[l] != 0) << l;
  set_predicate(x, i, bits);
}
MOVE(IS_CLUSTER) {
  set_predicate(x, i, ~lanes_outside64(exec_u64(x, i->src[0]), EXEC_SHARED_WINDOW, EXEC_CLUSTER_BYTES - 1));
}
MOVE(IS_SHARED) { set_predicate(x, i, in_window(x, i, EXEC_SHARED_WINDOW)); }
MOVE(IS_LOCAL) { set_predicate(x, i, in_window(x, i, EXEC_LOCAL_WINDOW)); }
INLINE uint32_t constants(const exec_warp *x, const exec_instr *i) {
  const core_warp *w = (const core_warp *)x;
  uint32_t bits = 0;
  EACH_LANE(w->active) {
    const exec_span *span = exec_memory_span(w->launch->memory, exec_u64(x, i->src[0])[l]);
    bits |= (uint32_t)(span && span->info.constant) << l;
  }
  return bits;
}
MOVE(IS_CONST) { set_predicate(x, i, constants(x, i)); }
MOVE(IS_GLOBAL) {
  set_predicate(x, i, ~(in_window(x, i, EXEC_SHARED_WINDOW) | in_window(x, i, EXEC_LOCAL_WINDOW) | constants(x, i)));
}
MOVE(IS_FALSE) { set_predicate(x, i, 0); }
MOVE(NOT_PREDICATE) { set_predicate(x, i, ~*exec_pred(x, i->src[0])); }
MOVE(PREFETCH) {
  if (core_tells_places((core_warp *)x)) core_trace_prefetch((core_warp *)x, i);
}
MOVE(ASYNC_COPY) { core_async_copy(x, i); }
MOVE(COPY_GROUP) { core_copy_group(x, i); }
MOVE(MBARRIER) { core_mbarrier(x, i); }

void ISA(core_tensor_mma)(exec_warp *x, const exec_instr *i); /* tcgen05_mma.isa.c */
MOVE(TENSOR_MMA) { ISA(core_tensor_mma)(x, i); }
void ISA(core_tensor_copy)(exec_warp *x, const exec_instr *i); /* tcgen05_copy.isa.c */
MOVE(TENSOR_COPY) { ISA(core_tensor_copy)(x, i); }

void ISA(core_matrix_address)(exec_warp *x, const exec_instr *i); /* matrix.isa.c */
void ISA(core_row_address)(exec_warp *x, const exec_instr *i);
MOVE(MATRIX_ADDRESS) { ISA(core_matrix_address)(x, i); }
MOVE(ROW_ADDRESS) { ISA(core_row_address)(x, i); }

extern const exec_handler ISA(exec_move_handlers)[];
const exec_handler ISA(exec_move_handlers)[] = {
#define X(name) [EXEC_MOVE_##name] = move_##name,
#include "exec/instructions/moves.def"
#undef X
};
