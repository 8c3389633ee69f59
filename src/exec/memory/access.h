/* SPDX-License-Identifier: Apache-2.0 */
/* Memory accesses that leave the fast path, and the access stream's records of all of them. */
#ifndef FF_EXEC_ACCESS_H
#define FF_EXEC_ACCESS_H

#include "exec/core.h"

typedef struct core_target { /* where one lane's bytes are */
  unsigned char *host;       /* NULL: in local memory at `offset` */
  uint32_t offset;           /* in local memory, or in the shared memory of some block of the cluster */
  ptx_space space;           /* GLOBAL, CONST, SHARED, LOCAL */
} core_target;

/* ld, st, atom, red, any space but .param, lane by lane. A handler. Faults leave through core_fault. */
void core_access_lanes(exec_warp *x, const exec_instr *i);
/* An atomic whose cells are known to be good. plain: only this worker can reach them. */
void core_atomic(core_warp *w, const exec_instr *i, exec_atomic_function function, void *const *address, uint32_t mask,
                 bool plain);
/* The 4-byte word of local memory that holds byte `offset` of a lane, plus the byte in it. */
unsigned char *core_local_word(const core_warp *w, uint32_t offset, uint32_t lane);

/* side data of cp.async: src[0] shared address, src[1] global address, src[2] bytes to read */
typedef struct exec_async {
  uint8_t bytes;       /* copied per lane: 4, 8, 16 */
  uint8_t wide_shared; /* the shared address is a 64-bit register */
  uint8_t has_size;    /* src[2] is there: the rest is filled with zeros */
  int64_t shared_offset, global_offset;
  exec_access from, to; /* for messages and the access stream */
} exec_async;
void core_async_copy(exec_warp *x, const exec_instr *i);
enum { CORE_COPIES_COMMIT, CORE_COPIES_WAIT, CORE_COPIES_WAIT_ALL }; /* aux; immediate: groups that may be left */
void core_copy_group(exec_warp *x, const exec_instr *i);             /* copy_records.c */
void core_mbarrier(exec_warp *x, const exec_instr *i);               /* mbarrier.c */
void core_stack_allocate(exec_warp *x, const exec_instr *i);         /* frame.c */
void core_stack_save(exec_warp *x, const exec_instr *i);
void core_stack_restore(exec_warp *x, const exec_instr *i);

/* The function that does an atomic operation, or NULL if there is no such operation on this type. `op` is the
 * modifier (PTX_MOD_ADD, ...); global: the cells are in global memory, not in shared. */
exec_atomic_function exec_atomic_find(ptx_mod op, ptx_type type, bool global);

/* ---- declared uses (declared_access.c); called only when w->block->ranges is set. A fault if one is left ---- */

/* Every active lane accesses `bytes` bytes of global memory at value[lane] + i->immediate. ordered: a row, or all the
 * same cell. */
void core_declared_check(core_warp *w, const exec_instr *i, const uint64_t *value, uint32_t bytes, bool ordered);
/* One lane, whether there is memory or not. */
void core_declared_check_lane(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, uint32_t bytes);

/* ---- the access stream (access_records.c); called only when w->trace is set ---- */

/* core_trace_issue (core.h) counts instructions into an ISSUE. */
/* Lanes of `mask` access consecutive cells of `bytes` bytes from `address` on (the first active lane's cell). */
void core_trace_row(core_warp *w, const exec_instr *i, uint64_t address, uint32_t bytes, uint32_t mask);
/* Every lane of `mask` accesses the same `bytes` bytes, aligned to that. */
void core_trace_one(core_warp *w, const exec_instr *i, uint64_t address, uint32_t bytes, uint32_t mask);
/* Every lane of `mask` accesses `bytes` bytes at value[lane] + add. */
void core_trace_gather(core_warp *w, const exec_instr *i, const uint64_t *value, uint64_t add, uint32_t bytes,
                       uint32_t mask);
/* i takes so many cycles more than its first. */
void core_trace_passes(core_warp *w, const exec_instr *i, uint32_t more);
void core_trace_shared(core_warp *w, const exec_instr *i, const uint32_t *offset, uint32_t bytes, uint32_t mask);
void core_trace_shared_atomic(core_warp *w, const exec_instr *i, const uint32_t *offset, uint32_t bytes, uint32_t mask);
void core_trace_local(core_warp *w, const exec_instr *i, const uint32_t *offset, uint32_t bytes, uint32_t mask);
/* i has the tensor core multiply: in 512 multiply-adds of half precision. */
void core_trace_tensor(core_warp *w, const exec_instr *i, uint32_t units);
void core_trace_const(core_warp *w, const exec_instr *i, const uint64_t *value, uint32_t mask);
void core_trace_prefetch(core_warp *w, const exec_instr *i);
void core_trace_lanes(core_warp *w, const exec_instr *i, const core_target *at);
/* The warp has looked at something that only others change, in vain. true: as it did before, and has recorded nothing
 * since: what it did since then, this look included, is left out. */
bool core_trace_looked(core_warp *w, const exec_instr *i, uint64_t address, uint32_t mask);

/* ---- asynchronous copies and mbarriers (copy_records.c) ---- */

typedef enum core_mbarrier_event {
  CORE_MBARRIER_NOTHING, /* that others wait for */
  CORE_MBARRIER_STARTS,  /* .init, .inval */
  CORE_MBARRIER_ARRIVES,
  CORE_MBARRIER_COPIES,  /* it arrives as soon as what the warp has copied so far is there */
  CORE_MBARRIER_IS_OVER, /* a wait found that the phase has ended */
} core_mbarrier_event;
/* Before and after an instruction does something to the mbarrier at `object`; only when w->trace is set. */
void core_trace_mbarrier_before(core_warp *w, const uint64_t *object);
void core_trace_mbarrier(core_warp *w, const exec_instr *i, const uint64_t *object, core_mbarrier_event event);

#endif
