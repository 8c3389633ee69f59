/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of the compiler: a kernel's decoded functions as flat data. It is a cache key too: the same bytes give
 * the same code. Nothing in it depends on where something lies in memory; what does (addresses of variables) is left in
 * the pool of constants, where the code reads it. Both ends are of one build (NATIVE_VERSION and the compiler's own
 * identity are part of the key), so structs are written as they are; unused bytes are zero.
 *
 *   header, functions, instructions, operands, waits (and lists of targets): arrays one after the other */
#ifndef FF_COMPILE_REQUEST_H
#define FF_COMPILE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NATIVE_MAGIC 0x4646524eu /* "NRFF" */
#define NATIVE_VERSION 16u
#define NATIVE_NONE UINT32_MAX

typedef enum native_op {
  NATIVE_EXIT,    /* only the interpreter executes it */
  NATIVE_HANDLER, /* its handler does it all */
  NATIVE_NOTHING,
  NATIVE_BRANCH,
  NATIVE_BRANCH_IF,
  NATIVE_BRANCH_INDEXED, /* brx.idx: its targets are `aux` of the waits, from `target` on */
  NATIVE_SYNC,           /* its handler, if all live lanes are here; else the interpreter */
  /* of code for full warps, in which all lanes are there: shfl whose b and c are constants, the second and third
   * source, aux: the mode; bar.warp.sync. Both read the mask too, which only the interpreter looks at */
  NATIVE_SHUFFLE,
  NATIVE_WARP_SYNC,
  NATIVE_ACCESS, /* ld, st as native_instr.access says */
  NATIVE_SREG,
  NATIVE_ADD_IMMEDIATE,
  NATIVE_PACK32,
  NATIVE_UNPACK32,
  NATIVE_NARROW,
  NATIVE_WIDEN_ZERO,
  NATIVE_WIDEN_SIGN,
#define F(op, names) NATIVE_##op,
#include "compile/forms.def"
#undef F
  NATIVE_OPS
} native_op;

typedef enum native_kind {
#define K(name, bytes, bits, class) NATIVE_K_##name,
#include "exec/instructions/ops_kinds.def"
#undef K
  NATIVE_KINDS
} native_kind;

/* native_request.watch: what the code has to tell in addition to computing, and what it may rely on. */
enum {
  NATIVE_TRACED = 1, /* the access stream is wanted */
  NATIVE_USES = 2,   /* uses are declared, or what is touched is wanted */
  /* a warp is a part of one row of its block: tid.x is one more in each lane, tid.y and tid.z the same */
  NATIVE_ROWS = 4,
};

/* An operand of the frame or the pool. bytes: of a cell: 4, 8, 16; 0: a predicate. */
typedef struct native_operand {
  uint32_t offset; /* exec_instr's; bit 0: in the pool */
  uint8_t bytes;
  uint8_t constant; /* 0: no; 1: `value`; 2: all lanes are equal, but the value must be read from the pool */
  uint16_t unused;
  uint64_t value;
} native_operand;

typedef enum native_space { NATIVE_GLOBAL = 1, NATIVE_SHARED, NATIVE_LOCAL, NATIVE_PARAM, NATIVE_GENERIC } native_space;

/* The sources come first (reads), as the operation names them; then what else is read; writes: dst, dst2, ... */
typedef struct native_instr {
  uint16_t op;
  uint8_t flow, attention; /* exec_flow, EXEC_ATTEND_* */
  uint8_t dst_kind, src_kind[4];
  uint8_t guard_negated;
  uint8_t observes; /* its handler may fault, or look at counters: they have to be right */
  uint8_t read_count, write_count;
  uint8_t space, bytes, elements, sign, to16, slot_bytes, wide, store; /* ACCESS */
  uint8_t row_passes; /* ACCESS to shared memory: cycles beyond the first, of a whole warp's row, */
  uint8_t one_passes; /* of one cell for all lanes; UINT8_MAX: not known */
  uint8_t unused[1];
  uint32_t guard, aux, index, target, rank;
  uint32_t operands;         /* index of the first read; the writes follow */
  uint32_t wait, wait_count; /* of the waits: load numbers that this may have to wait for */
  int64_t immediate;
} native_instr;

typedef struct native_function {
  uint32_t first, count; /* of its instructions */
  uint32_t frame_bytes;
  uint8_t has_sfu, has_fp64, unused[2];
} native_function;

/* Where things stand in the structs that compiled code reads. thread_executed of a warp comes right behind
 * warp_executed. */
typedef struct native_layout {
  uint32_t warp_base0, warp_base1, warp_mask, warp_active, warp_active_count, warp_segment, warp_budget, warp_pc,
      warp_frame, warp_function;
  uint32_t warp_block, warp_launch, warp_shared, warp_shared_bytes, warp_local, warp_params, warp_next_key,
      warp_ready_count, warp_executed;
  uint32_t warp_accesses, warp_starting, warp_tid, warp_index, warp_diverged, warp_rotation, warp_kept,
      warp_kept_places;
  uint32_t function_code, function_sfu, function_fp64, function_units, frame_depth, frame_stack, instr_bytes, instr_run,
      instr_side, access_hint;
  uint32_t record_address, record_readable, record_writable, launch_grid, launch_block, block_ctaid;
  uint32_t writer_issue, writer_sfu, writer_fp64, writer_units; /* of the warp's trace_writer */
  uint32_t api_guarded, api_collect, api_spread, api_count, api_waits, api_mark, api_row, api_one, api_scattered,
      api_conflicts, api_passes, api_diverge, api_meet, api_indexed, api_masked;
} native_layout;

typedef struct native_request {
  uint32_t magic, version, bytes, isa; /* isa: EXEC_ISAS order */
  native_layout layout;
  uint32_t function_count, instr_count, operand_count, wait_count;
  /* any: the bodies for any lanes are wanted; else those for full warps (exec/launch/native.h) */
  uint32_t watch, any;
  uint32_t wide; /* the form that is made for AVX-512, with another processor's instructions */
  uint32_t unused;
} native_request;
_Static_assert(sizeof(native_request) % 8 == 0, "instructions, which have 64-bit fields, come behind it");

#endif
