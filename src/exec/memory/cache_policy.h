/* SPDX-License-Identifier: Apache-2.0 */
/* Cache policies: what createpolicy makes, and what accesses with .L2::cache_hint name (PTX ISA, "Cache Eviction
 * Priority Hints"). PTX calls them opaque, but programs have them as numbers, too (CUTLASS's TMA::CacheHintSm90,
 * libcu++'s cuda::access_property), so these are theirs:
 *
 *   bits 59 and 60  2: a share of all lines has the first priority, 3: blocks of addresses have
 *   bits 57 and 58  the first priority, a trace_l2_priority
 *   bit 56          the other one: 0 plain, 1 evict_first
 *   bits 52 to 55   share: of sixteen, less one;  blocks: log2 of a block's bytes, less 12
 *   bits 44 to 50   blocks: the number of the first one, modulo 128
 *   bits 37 to 43   blocks: how many have the first priority
 *
 * So 0x14f0000000000000 is evict_last, 0x12f0000000000000 evict_first, 0x10f0000000000000 plain. */
#ifndef FF_EXEC_CACHE_POLICY_H
#define FF_EXEC_CACHE_POLICY_H

#include <stdint.h>

#include "trace/stream.h"

enum { CACHE_POLICY_SHARE = 2, CACHE_POLICY_BLOCKS = 3, CACHE_POLICY_PARTS = 16 };

/* `part` of all lines, 0 to 1, have priority `on`, the others evict_first if `first`. Rounded up to sixteenths. */
static inline uint64_t cache_policy_make(trace_l2_priority on, bool first, double part) {
  uint32_t parts = 1;
  while (parts < CACHE_POLICY_PARTS && parts < part * CACHE_POLICY_PARTS) parts++;
  return (uint64_t)CACHE_POLICY_SHARE << 59 | (uint64_t)on << 57 | (uint64_t)first << 56 | (uint64_t)(parts - 1) << 52;
}

/* What it says of a line. */
static inline trace_l2_priority cache_policy_priority(uint64_t policy, uint64_t address) {
  uint32_t size = policy >> 52 & 15;
  bool on = false;
  switch (policy >> 59 & 3) {
  case CACHE_POLICY_SHARE: on = trace_l2_share(address) < (size + 1) * (TRACE_L2_SHARE / CACHE_POLICY_PARTS); break;
  case CACHE_POLICY_BLOCKS: on = ((address >> (size + 12)) - (policy >> 44 & 127)) % 128 < (policy >> 37 & 127); break;
  default: return TRACE_L2_PLAIN;
  }
  return on ? (trace_l2_priority)(policy >> 57 & 3) : policy >> 56 & 1 ? TRACE_L2_FIRST : TRACE_L2_PLAIN;
}

/* An access's flags (TRACE_*) with that priority. TRACE_L2_NORMAL has none: it is PLAIN for a line that does not
 * persist. */
static inline uint8_t cache_policy_flags(uint8_t flags, trace_l2_priority priority) {
  if (priority == TRACE_L2_FIRST) return flags | TRACE_L2_PRIORITY | TRACE_STREAMING;
  return priority == TRACE_L2_LAST ? (flags & (uint8_t)~TRACE_STREAMING) | TRACE_L2_PRIORITY : flags;
}

#endif
