/* SPDX-License-Identifier: Apache-2.0 */
/* Side data of bulk copies: cp.async.bulk, cp.reduce.async.bulk, their tensor forms, tensormap.replace, and of what
 * writes as they do: clusterlaunchcontrol.try_cancel and st.bulk. */
#ifndef FF_EXEC_BULK_H
#define FF_EXEC_BULK_H

#include "exec/memory/access.h"
#include "exec/memory/tensor_map.h"

typedef struct bulk_address { /* of each lane: a slot and what is added */
  uint32_t slot;
  bool wide; /* the slot has 64 bits */
  ptx_space space;
  int64_t add;
} bulk_address;

typedef struct exec_bulk {
  exec_access from, to; /* their spaces; for messages and the access stream */
  bulk_address source, target, barrier;
  uint32_t size;       /* slot: bytes; not of tensors */
  uint32_t bytes_mask; /* slot: which of 16 bytes; EXEC_NO_OFFSET: all */
  uint32_t ranks;      /* slot: .multicast::cluster; EXEC_NO_OFFSET: the block that `target` names */
  bool completes;      /* `barrier` is told of the bytes */
  bool pair;           /* .cta_group::2: where the barrier may be, bulk.c */
  bool prefetches;     /* to the L2 cache: only the access stream hears of it */
  bool cancels;        /* try_cancel: no source, 16 bytes to `target` */
  bool everywhere;     /* ... of all blocks of the cluster */
  bool zeroes;         /* st.bulk: no source, `size` zero bytes to `target` */
  bool reduces;
  uint16_t operation; /* reduces: a ptx_mod */
  uint8_t type;       /* reduces, not a tensor: ptx_type of an element */
  exec_atomic_function reduce, reduce_shared;
  /* tensors */
  uint8_t dimensions; /* 0: no tensor */
  bool stores;        /* the tensor is the target */
  bool im2col, no_offsets;
  bool four; /* .tile::gather4, .tile::scatter4: a column and four rows are the coordinates */
  bulk_address map;
  uint32_t coordinate[TENSOR_MAP_DIMENSIONS], offset[3]; /* slots */
} exec_bulk;

/* tensormap.replace: side data is an exec_replace, src[0] of the access the map's address. */
typedef struct exec_replace {
  exec_access access;
  bulk_address map;
  uint16_t field;    /* PTX_MOD_GLOBAL_ADDRESS, ... */
  uint8_t ordinal;   /* of the dimension */
  bool wide;         /* the value has 64 bits */
  uint32_t value;    /* slot */
  bulk_address from; /* .cp_fenceproxy: copies 128 bytes from there */
} exec_replace;

/* The function of a reduction, or NULL; as exec_atomic_find. (decode_bulk.c) */
exec_atomic_function exec_bulk_reduction(ptx_mod op, ptx_type type, bool global);
/* The address in one lane. */
uint64_t core_bulk_address(const core_warp *w, const bulk_address *a, uint32_t lane);
void core_bulk(exec_warp *x, const exec_instr *i);
void core_tensor_replace(exec_warp *x, const exec_instr *i);
/* Bytes of one lane in any space but local memory, `align` a power of two; i->side is an exec_access. A fault if they
 * are not all there. (access.c) */
unsigned char *core_bytes_at(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, uint32_t bytes,
                             uint32_t align);
/* `bytes` bytes have come: the mbarrier is told. i->side is an exec_access of shared memory. (mbarrier.c) */
void core_mbarrier_complete(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, uint32_t bytes);
/* One arrival at an mbarrier; likewise. */
void core_mbarrier_arrive(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address);

#endif
