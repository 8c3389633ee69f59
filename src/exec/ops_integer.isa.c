/* SPDX-License-Identifier: Apache-2.0 */
/* Integer arithmetic handlers; the forms stand in ops_integer.def.
 *
 * No operand makes the host trap: division checks its divisor in every lane, so inactive lanes are safe as well. */
#include "exec/ops_lane.h"

/* A zero divisor becomes 1 for the machine's division; its result is then replaced. */
OPS_INLINE uint32_t ops_div_u32(uint32_t a, uint32_t b) { return b ? a / (b ? b : 1) : UINT32_MAX; }
OPS_INLINE uint64_t ops_div_u64(uint64_t a, uint64_t b) { return b ? a / (b ? b : 1) : UINT64_MAX; }
OPS_INLINE uint32_t ops_rem_u32(uint32_t a, uint32_t b) { return b ? a % (b ? b : 1) : a; }
OPS_INLINE uint64_t ops_rem_u64(uint64_t a, uint64_t b) { return b ? a % (b ? b : 1) : a; }

/* Signed division by magnitudes: the smallest number divided by -1 wraps to itself. */
#define OPS_MAGNITUDE(type, x) ((x) < 0 ? -(type)(x) : (type)(x))
OPS_INLINE uint32_t ops_div_s32(int32_t a, int32_t b) {
  uint32_t q = ops_div_u32(OPS_MAGNITUDE(uint32_t, a), OPS_MAGNITUDE(uint32_t, b));
  return b == 0 ? UINT32_MAX : (a ^ b) < 0 ? -q : q;
}
OPS_INLINE uint64_t ops_div_s64(int64_t a, int64_t b) {
  uint64_t q = ops_div_u64(OPS_MAGNITUDE(uint64_t, a), OPS_MAGNITUDE(uint64_t, b));
  return b == 0 ? UINT64_MAX : (a ^ b) < 0 ? -q : q;
}
OPS_INLINE uint32_t ops_rem_s32(int32_t a, int32_t b) {
  uint32_t r = ops_rem_u32(OPS_MAGNITUDE(uint32_t, a), OPS_MAGNITUDE(uint32_t, b));
  return a < 0 ? -r : r;
}
OPS_INLINE uint64_t ops_rem_s64(int64_t a, int64_t b) {
  uint64_t r = ops_rem_u64(OPS_MAGNITUDE(uint64_t, a), OPS_MAGNITUDE(uint64_t, b));
  return a < 0 ? -r : r;
}

#define OPS_DEF "exec/ops_integer.def"
#define OPS_TABLE ops_integer
#include "exec/ops_expand.h"
