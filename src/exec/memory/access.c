/* SPDX-License-Identifier: Apache-2.0 */
/* Memory accesses lane by lane: the way for everything that the fast handlers (access.isa.c) hand over, and the place
 * where every memory fault is found.
 *
 * A lane's bytes are touched after core_locate has found them inside live memory of the right kind, aligned, and all in
 * one allocation. */
#include <inttypes.h>
#include <string.h>

#include "exec/memory/bulk.h"
#include "exec/launch/fault.h"
#include "exec/memory/multimem.h"
#include "exec/memory/overrun.h"
#include "exec/memory/shared_address.h"
#include "exec/memory/system_memory.h"

static uint64_t lane_address(const core_warp *w, const exec_instr *i, uint32_t lane) {
  const exec_access *a = i->side;
  if (a->wide) return core_address_in((ptx_space)a->space, exec_u64(&w->x, i->src[0])[lane] + (uint64_t)i->immediate);
  return (uint32_t)(exec_u32(&w->x, i->src[0])[lane] + (uint32_t)i->immediate);
}

static bool in_window(uint64_t address, uint64_t window) { return address - window < EXEC_WINDOW_BYTES; }

/* ---- finding the bytes ---- */

static unsigned char *locate_global(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address,
                                    uint32_t bytes) {
  const exec_access *a = i->side;
  if (w->block->ranges) core_declared_check_lane(w, i, lane, address, bytes);
  exec_span *span = exec_system_memory_span(w->launch->memory, address);
  bool writes = a->op == EXEC_OP_STORE || a->op == EXEC_OP_ATOMIC;
  uint64_t room = !span ? 0 : writes ? span->writable : span->readable;
  uint64_t offset = span ? address - span->info.address : 0;
  if ((offset >= room || room - offset < bytes) && !core_overrun(w, i, lane, address, bytes, writes))
    core_fault_access(w, i, lane, EXEC_FAULT_ILLEGAL_ADDRESS, address, bytes);
  return (unsigned char *)(uintptr_t)address;
}

/* Fills *at for one lane; does not return if the access is illegal. */
static void locate(core_warp *w, const exec_instr *i, uint32_t lane, core_target *at) {
  const exec_access *a = i->side;
  uint32_t bytes = (uint32_t)a->bytes * a->elements;
  uint64_t address = lane_address(w, i, lane);
  at->space = (ptx_space)a->space;
  at->offset = 0;
  at->host = NULL;
  if (address & (bytes - 1)) core_fault_access(w, i, lane, EXEC_FAULT_MISALIGNED, address, bytes);
  uint64_t offset = address;
  if (a->space == PTX_SPACE_GENERIC) {
    at->space = PTX_SPACE_GLOBAL;
    if (address - EXEC_SHARED_WINDOW < EXEC_CLUSTER_BYTES) {
      at->space = PTX_SPACE_SHARED;
      offset = address - EXEC_SHARED_WINDOW;
    }
    if (in_window(address, EXEC_LOCAL_WINDOW)) {
      at->space = PTX_SPACE_LOCAL;
      offset = address - EXEC_LOCAL_WINDOW;
    }
  }
  if (at->space == PTX_SPACE_SHARED) {
    at->host = core_shared_at(w, offset, bytes);
    if (!at->host) core_fault_access(w, i, lane, EXEC_FAULT_ILLEGAL_ADDRESS, address, bytes);
    at->offset = (uint32_t)(offset & (EXEC_WINDOW_BYTES - 1));
  } else if (at->space == PTX_SPACE_LOCAL) {
    if (a->op == EXEC_OP_ATOMIC) core_fault_access(w, i, lane, EXEC_FAULT_INVALID_SPACE, address, bytes);
    if (offset >= w->frame->stack || w->frame->stack - offset < bytes)
      core_fault_access(w, i, lane, EXEC_FAULT_ILLEGAL_ADDRESS, address, bytes);
    at->offset = (uint32_t)offset;
  } else {
    at->host = locate_global(w, i, lane, address, bytes);
  }
}

unsigned char *core_bytes_at(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, uint32_t bytes,
                             uint32_t align) {
  const exec_access *a = i->side;
  address = core_address_in((ptx_space)a->space, address);
  bool shared = a->space == PTX_SPACE_SHARED, generic = a->space == PTX_SPACE_GENERIC;
  if (address & (align - 1)) core_fault_access(w, i, lane, EXEC_FAULT_MISALIGNED, address, align);
  if (generic && in_window(address, EXEC_LOCAL_WINDOW))
    core_fault_access(w, i, lane, EXEC_FAULT_INVALID_SPACE, address, bytes);
  bool window = generic && address - EXEC_SHARED_WINDOW < EXEC_CLUSTER_BYTES;
  if (!shared && !window) return locate_global(w, i, lane, address, bytes);
  unsigned char *at = core_shared_at(w, window ? address - EXEC_SHARED_WINDOW : address, bytes);
  if (!at) core_fault_access(w, i, lane, EXEC_FAULT_ILLEGAL_ADDRESS, address, bytes);
  return at;
}

/* ---- moving the bytes ---- */

unsigned char *core_local_word(const core_warp *w, uint32_t offset, uint32_t lane) {
  return w->local + (size_t)(offset & ~3u) * EXEC_LANES + lane * 4 + (offset & 3);
}

static void local_copy(const core_warp *w, uint32_t offset, uint32_t lane, unsigned char *data, uint32_t bytes,
                       bool write) {
  for (uint32_t done = 0; done < bytes;) {
    uint32_t piece = bytes - done < 4 ? bytes - done : 4;
    unsigned char *word = core_local_word(w, offset + done, lane);
    if (write) memcpy(word, data + done, piece);
    else memcpy(data + done, word, piece);
    done += piece;
  }
}

static uint64_t extend(const exec_access *a, uint64_t value) {
  if (a->sign && a->bytes < 8) {
    uint32_t unused = 64 - 8u * a->bytes;
    value = (uint64_t)((int64_t)(value << unused) >> unused);
  }
  return a->to16 ? value & 0xffff : value;
}

/* One element between `bytes` of memory and lane `lane` of a slot. */
static void slot_write(core_warp *w, const exec_access *a, uint32_t operand, uint32_t lane,
                       const unsigned char *bytes) {
  if (a->slot_bytes == 16) {
    uint64_t halves[2];
    memcpy(halves, bytes, 16);
    exec_u64(&w->x, operand)[lane] = halves[0];
    exec_u64(&w->x, operand)[lane + EXEC_LANES] = halves[1];
    return;
  }
  uint64_t value = 0;
  memcpy(&value, bytes, a->bytes);
  value = extend(a, value);
  if (a->slot_bytes == 8) exec_u64(&w->x, operand)[lane] = value;
  else exec_u32(&w->x, operand)[lane] = (uint32_t)value;
}

static void slot_read(core_warp *w, const exec_access *a, uint32_t operand, uint32_t lane, unsigned char *bytes) {
  if (a->slot_bytes == 16) {
    uint64_t halves[2] = {exec_u64(&w->x, operand)[lane], exec_u64(&w->x, operand)[lane + EXEC_LANES]};
    memcpy(bytes, halves, 16);
  } else if (a->slot_bytes == 8) {
    memcpy(bytes, &exec_u64(&w->x, operand)[lane], a->bytes);
  } else {
    memcpy(bytes, &exec_u32(&w->x, operand)[lane], a->bytes);
  }
}

/* 4, 8 and 16 bytes (aligned, as they are here) go in one piece, so that other threads see all of them or none. */
typedef uint64_t two_words __attribute__((vector_size(16)));

#ifdef __SANITIZE_THREAD__
__attribute__((no_sanitize_thread)) /* it takes them for two accesses of 8 bytes that nothing guards */
#endif
static two_words
read_two(const void *host) {
  return *(const volatile two_words *)host;
}

#ifdef __SANITIZE_THREAD__
__attribute__((no_sanitize_thread))
#endif
static void
write_two(void *host, const uint64_t words[2]) {
  *(volatile two_words *)host = (two_words){words[0], words[1]};
}

static void read_whole(unsigned char *data, const void *host, uint32_t bytes) {
  if (bytes == 4) memcpy(data, &(uint32_t){__atomic_load_n((const uint32_t *)host, __ATOMIC_RELAXED)}, 4);
  else if (bytes == 8) memcpy(data, &(uint64_t){__atomic_load_n((const uint64_t *)host, __ATOMIC_RELAXED)}, 8);
  else if (bytes == 16) {
    two_words words = read_two(host);
    memcpy(data, &words, 16);
  } else memcpy(data, host, bytes);
}

static void write_whole(void *host, const unsigned char *data, uint32_t bytes) {
  uint64_t words[2];
  if (bytes != 4 && bytes != 8 && bytes != 16) {
    memcpy(host, data, bytes);
    return;
  }
  memcpy(words, data, bytes);
  if (bytes == 4) __atomic_store_n((uint32_t *)host, (uint32_t)words[0], __ATOMIC_RELAXED);
  else if (bytes == 8) __atomic_store_n((uint64_t *)host, words[0], __ATOMIC_RELAXED);
  else write_two(host, words);
}

static void move_lane(core_warp *w, const exec_access *a, uint32_t lane, const core_target *at) {
  unsigned char data[64] = {0};
  uint32_t bytes = (uint32_t)a->bytes * a->elements;
  if (a->op == EXEC_OP_LOAD) {
    if (at->host) read_whole(data, at->host, bytes);
    else local_copy(w, at->offset, lane, data, bytes, false);
    for (uint32_t e = 0; e < a->elements; e++) slot_write(w, a, a->data[e], lane, data + e * a->bytes);
  } else {
    for (uint32_t e = 0; e < a->elements; e++) slot_read(w, a, a->data[e], lane, data + e * a->bytes);
    if (at->host) write_whole(at->host, data, bytes);
    else local_copy(w, at->offset, lane, data, bytes, true);
  }
}

static void do_atomic(core_warp *w, const exec_instr *i, const core_target *at) {
  const exec_access *a = i->side;
  void *address[EXEC_LANES] = {0};
  uint32_t shared = 0;
  for (uint32_t lane = 0; lane < EXEC_LANES; lane++) {
    address[lane] = at[lane].host;
    if ((w->active >> lane & 1) && at[lane].space == PTX_SPACE_SHARED) shared |= 1u << lane;
  }
  if (shared) core_atomic(w, i, a->atomic_shared, address, shared, true);
  if (w->active & ~shared) core_atomic(w, i, a->atomic, address, w->active & ~shared, false);
}

void core_atomic(core_warp *w, const exec_instr *i, exec_atomic_function function, void *const *address, uint32_t mask,
                 bool plain) {
  const exec_access *a = i->side;
  const void *b = exec_operand(&w->x, a->data[0]), *c = exec_operand(&w->x, a->compare);
  void *old = a->returns ? exec_operand(&w->x, i->dst) : NULL;
  bool alone = plain || (w->launch->threads == 1 && !a->system);
  if (!function(address, b, c, old, mask, alone)) core_poll(w);
}

/* A store to multicast memory: to each device's. at->host is only its address. */
static bool is_multicast(const core_warp *w, const exec_instr *i, uint32_t lane, core_target *at) {
  const exec_access *a = i->side;
  if (a->op != EXEC_OP_STORE || (a->space != PTX_SPACE_GLOBAL && a->space != PTX_SPACE_GENERIC)) return false;
  uint64_t address = lane_address(w, i, lane);
  if (!exec_multicast_find(address).team) return false;
  *at = (core_target){.space = PTX_SPACE_GLOBAL, .host = (unsigned char *)(uintptr_t)address};
  return true;
}

static void store_to_team(core_warp *w, const exec_instr *i, uint32_t lane) {
  const exec_access *a = i->side;
  unsigned char data[64], *to[EXEC_TEAM_MAX];
  uint32_t bytes = (uint32_t)a->bytes * a->elements,
           members = core_team_locate(w, i, lane, lane_address(w, i, lane), bytes, to);
  for (uint32_t e = 0; e < a->elements; e++) slot_read(w, a, a->data[e], lane, data + e * a->bytes);
  for (uint32_t m = 0; m < members; m++) write_whole(to[m], data, bytes);
}

void core_access_lanes(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_access *a = i->side;
  core_target at[EXEC_LANES];
  uint32_t team = 0; /* lanes */
  bool any_team = exec_multicast_any();
  memset(at, 0, sizeof at);
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    if (any_team && is_multicast(w, i, lane, &at[lane])) team |= 1u << lane;
    else locate(w, i, lane, &at[lane]);
  }
  if (core_tells_places(w)) core_trace_lanes(w, i, at);
  if (a->poll) core_poll(w);
  if (a->op == EXEC_OP_ATOMIC) {
    do_atomic(w, i, at);
    return;
  }
  for (uint32_t m = w->active & ~team; m; m &= m - 1)
    move_lane(w, a, (uint32_t)__builtin_ctz(m), &at[__builtin_ctz(m)]);
  for (; team; team &= team - 1) store_to_team(w, i, (uint32_t)__builtin_ctz(team));
}

/* ---- cp.async: done at once ---- */

static uint64_t operand_lane(const core_warp *w, uint32_t operand, bool wide, uint32_t lane) {
  return wide ? exec_u64(&w->x, operand)[lane] : exec_u32(&w->x, operand)[lane];
}

/* from, to: i with the side data of its two accesses, for faults. */
static void async_lane(core_warp *w, const exec_instr *i, const exec_instr *from, const exec_instr *to, uint32_t lane) {
  const exec_async *copy = i->side;
  uint64_t source = exec_u64(&w->x, i->src[1])[lane] + (uint64_t)copy->global_offset;
  uint32_t target = (uint32_t)(operand_lane(w, i->src[0], copy->wide_shared, lane) + (uint64_t)copy->shared_offset);
  uint32_t wanted = copy->has_size ? exec_u32(&w->x, i->src[2])[lane] : copy->bytes;
  unsigned char data[16] = {0};
  if (wanted > copy->bytes) wanted = copy->bytes;
  if (source & (copy->bytes - 1u)) core_fault_access(w, from, lane, EXEC_FAULT_MISALIGNED, source, copy->bytes);
  if (target & (copy->bytes - 1u)) core_fault_access(w, to, lane, EXEC_FAULT_MISALIGNED, target, copy->bytes);
  if (wanted) memcpy(data, locate_global(w, from, lane, source, wanted), wanted);
  if (target >= w->shared_bytes || w->shared_bytes - target < copy->bytes)
    core_fault_access(w, to, lane, EXEC_FAULT_ILLEGAL_ADDRESS, target, copy->bytes);
  memcpy(w->shared + target, data, copy->bytes);
}

void core_async_copy(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_async *copy = i->side;
  exec_instr from = *i, to = *i;
  from.side = &copy->from;
  to.side = &copy->to;
  for (uint32_t m = w->active; m; m &= m - 1) async_lane(w, i, &from, &to, (uint32_t)__builtin_ctz(m));
  if (core_tells_places(w))
    core_trace_gather(w, &from, exec_u64(x, i->src[1]), (uint64_t)copy->global_offset, copy->bytes, w->active);
}
