/* SPDX-License-Identifier: Apache-2.0 */
/* Local memory of a warp: words of all lanes side by side, so that one offset for all lanes is a row. Included by
 * access.isa.c, once per instruction set.
 *
 * Every active lane's bytes are found to be aligned and in its own stack before the first one is touched. No two lanes
 * share a byte, so their order does not matter. */
#ifndef FF_EXEC_ACCESS_LOCAL_H
#define FF_EXEC_ACCESS_LOCAL_H

#include "exec/memory/access.h"
#include "exec/instructions/lanes.h"

/* ---- one offset for all lanes ---- */

/* True: all active lanes access *offset, aligned and in bounds. window is subtracted first. */
INLINE bool local_uniform(core_warp *w, const exec_instr *i, uint64_t window, uint32_t *offset) {
  const exec_access *a = i->side;
  uint32_t total = (uint32_t)a->bytes * a->elements, first = (uint32_t)__builtin_ctz(w->active);
  uint64_t at;
  if (a->wide) {
    const uint64_t *value = exec_u64(&w->x, i->src[0]);
    if (lanes_off_row64(value, value[first], 0) & w->active) return false;
    at = value[first] + (uint64_t)i->immediate - window;
  } else {
    const uint32_t *value = exec_u32(&w->x, i->src[0]);
    if (lanes_off_row32(value, value[first], 0) & w->active) return false;
    at = (uint32_t)(value[first] + (uint32_t)i->immediate);
  }
  if ((at & (total - 1)) || at >= w->frame->stack || w->frame->stack - at < total) return false;
  *offset = (uint32_t)at;
  return true;
}

/* raw: words whose low bytes are what was loaded. */
INLINE void local_take(core_warp *w, const exec_access *a, uint32_t *raw, uint32_t operand) {
  uint32_t unused = 32 - 8u * a->bytes;
  if (a->sign) EVERY_LANE raw[l] = (uint32_t)((int32_t)(raw[l] << unused) >> unused);
  else EVERY_LANE raw[l] = raw[l] << unused >> unused;
  if (a->to16) EVERY_LANE raw[l] &= 0xffff;
  if (a->slot_bytes == 4) {
    lanes_copy32(exec_u32(&w->x, operand), raw, w->active);
    return;
  }
  uint64_t *slot = exec_u64(&w->x, operand);
  if (a->sign) EACH_LANE(w->active) slot[l] = (uint64_t)(int64_t)(int32_t)raw[l];
  else EACH_LANE(w->active) slot[l] = raw[l];
}

/* One or two bytes of each word of a row, from bit `at` on. */
INLINE void local_move_part(core_warp *w, const exec_access *a, uint32_t *row, uint32_t at, uint32_t operand) {
  uint32_t raw[32], bits = (a->bytes == 1 ? 0xffu : 0xffffu) << at;
  if (a->op == EXEC_OP_LOAD) {
    EVERY_LANE raw[l] = row[l] >> at;
    local_take(w, a, raw, operand);
    return;
  }
  const uint32_t *from = exec_u32(&w->x, operand);
  EVERY_LANE raw[l] = (row[l] & ~bits) | (from[l] << at & bits);
  lanes_copy32(row, raw, w->active);
}

INLINE void local_move(core_warp *w, const exec_instr *i, uint32_t offset) {
  const exec_access *a = i->side;
  uint32_t mask = w->active;
  for (uint32_t e = 0; e < a->elements; e++, offset += a->bytes) {
    uint32_t *row = (uint32_t *)(void *)(w->local + (size_t)(offset & ~3u) * EXEC_LANES);
    if (a->bytes < 4) {
      local_move_part(w, a, row, 8 * (offset & 3), a->data[e]);
    } else if (a->bytes == 4) {
      uint32_t *slot = exec_u32(&w->x, a->data[e]);
      if (a->op == EXEC_OP_LOAD) lanes_copy32(slot, row, mask);
      else lanes_copy32(row, slot, mask);
    } else { /* 8 bytes: two rows */
      uint64_t *slot = exec_u64(&w->x, a->data[e]);
      if (a->op == EXEC_OP_LOAD) {
        if (mask == UINT32_MAX) EVERY_LANE slot[l] = row[l] | (uint64_t)row[l + 32] << 32;
        else EACH_LANE(mask) slot[l] = row[l] | (uint64_t)row[l + 32] << 32;
      } else {
        EACH_LANE(mask) row[l] = (uint32_t)slot[l], row[l + 32] = (uint32_t)(slot[l] >> 32);
      }
    }
  }
}

/* ---- an offset for each lane: arrays that threads index by themselves ---- */

/* True: every active lane's offset is aligned and in bounds. window is subtracted first. */
INLINE bool local_offsets(core_warp *w, const exec_instr *i, uint64_t window, uint32_t *offset) {
  const exec_access *a = i->side;
  uint32_t total = (uint32_t)a->bytes * a->elements;
  if (w->frame->stack < total) return false;
  uint32_t last = w->frame->stack - total;
  if (a->wide) {
    const uint64_t *value = exec_u64(&w->x, i->src[0]);
    uint64_t low = window - (uint64_t)i->immediate;
    if (lanes_outside64(value, low, last) & w->active) return false;
    EVERY_LANE offset[l] = (uint32_t)(value[l] - low);
  } else {
    const uint32_t *value = exec_u32(&w->x, i->src[0]);
    EVERY_LANE offset[l] = value[l] + (uint32_t)i->immediate;
  }
  return !(lanes_bad32(offset, 0, last, total - 1) & w->active);
}

/* Where the word stands that holds byte `offset` of lane l; the byte in it is offset & 3. */
INLINE unsigned char *local_word(const core_warp *w, uint32_t offset, uint32_t l) {
  return w->local + (size_t)(offset & ~3u) * EXEC_LANES + l * 4;
}

/* One element of at most 4 bytes. */
INLINE void local_gather(core_warp *w, const exec_access *a, const uint32_t *offset, uint32_t add, uint32_t operand) {
  uint32_t raw[32] = {0};
  EACH_LANE(w->active)
  raw[l] = *(const uint32_t *)(const void *)local_word(w, offset[l] + add, l) >> 8 * ((offset[l] + add) & 3);
  local_take(w, a, raw, operand);
}

INLINE void local_gather8(core_warp *w, const uint32_t *offset, uint32_t add, uint32_t operand) {
  uint64_t *slot = exec_u64(&w->x, operand);
  EACH_LANE(w->active) {
    const uint32_t *word = (const uint32_t *)(const void *)local_word(w, offset[l] + add, l);
    slot[l] = word[0] | (uint64_t)word[EXEC_LANES] << 32;
  }
}

INLINE void local_spread(core_warp *w, const exec_access *a, const uint32_t *offset, uint32_t add, uint32_t operand) {
  const uint32_t *from = exec_u32(&w->x, operand); /* of a wider slot the low half of each cell */
  uint32_t step = a->slot_bytes / 4u;
  EACH_LANE(w->active) {
    unsigned char *word = local_word(w, offset[l] + add, l), *at = word + ((offset[l] + add) & 3);
    uint32_t v = from[l * step];
    if (a->bytes == 1) *at = (unsigned char)v;
    else if (a->bytes == 2) *(uint16_t *)(void *)at = (uint16_t)v;
    else *(uint32_t *)(void *)word = v;
    if (a->bytes == 8) ((uint32_t *)(void *)word)[EXEC_LANES] = from[l * step + 1];
  }
}

/* Not for slots of 16 bytes. */
INLINE void local_each(core_warp *w, const exec_instr *i, const uint32_t *offset) {
  const exec_access *a = i->side;
  for (uint32_t e = 0; e < a->elements; e++) {
    uint32_t add = e * a->bytes;
    if (a->op == EXEC_OP_STORE) local_spread(w, a, offset, add, a->data[e]);
    else if (a->bytes == 8) local_gather8(w, offset, add, a->data[e]);
    else local_gather(w, a, offset, add, a->data[e]);
  }
}

/* ---- any access ---- */

/* False: some lane leaves its stack or is not aligned, or it is nothing for here; nothing has happened. No other
 * thread writes here: a loop that polls it waits for none. */
INLINE bool local_try(core_warp *w, const exec_instr *i, uint64_t window) {
  const exec_access *a = i->side;
  uint32_t offset[32];
  if (a->bytes > 8 || a->slot_bytes > 8 || a->op == EXEC_OP_ATOMIC) return false;
  bool row = a->slot_bytes == (a->bytes == 8 ? 8 : 4), one = row && local_uniform(w, i, window, &offset[0]);
  if (!one && !local_offsets(w, i, window, offset)) return false;
  if (UNLIKELY(w->trace != NULL)) {
    if (one) EVERY_LANE offset[l] = offset[0];
    core_trace_local(w, i, offset, (uint32_t)a->bytes * a->elements, w->active);
  }
  if (one) local_move(w, i, offset[0]);
  else local_each(w, i, offset);
  return true;
}

#endif
