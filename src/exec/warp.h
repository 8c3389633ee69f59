/* SPDX-License-Identifier: Apache-2.0 */
/* What a decoded instruction and a running warp look like to the functions that execute instructions.
 *
 * Lane vectors. A register of 32 bits or fewer is a *slot* of 32 uint32_t (128 bytes); a 64-bit one is 32 uint64_t (256
 * bytes). 8- and 16-bit values are kept zero-extended in 32 bits *whatever their sign*: readers of s8/s16 sign-extend,
 * writers zero-extend. f16 is its 16 bits. A predicate is one uint32_t, bit l = lane l. Immediates and other constants
 * are slots too (all lanes equal), in a pool per function that is filled at decode time.
 *
 * Offsets. An operand is a byte offset: bit 0 clear: from the frame's registers; bit 0 set: (offset & ~1) from the
 * constant pool. Predicates: byte offset into the frame's registers as well (a 4-byte cell); constants true/false too.
 *
 * Masks. `mask` is the set of lanes that execute the instruction (active and guard). A handler writes no lane outside.
 * Each handler exists in two forms: [0] for mask == all 32 lanes, [1] for any mask; lanes[] holds the mask as 32 int32
 * (0 or -1) for form [1]. This file is compiled once per instruction set (EXEC_ISA_NAME). */
#ifndef FF_EXEC_WARP_H
#define FF_EXEC_WARP_H

#include <stdint.h>

#include "exec/exec.h"

typedef struct exec_warp exec_warp;
typedef struct exec_instr exec_instr;
typedef void (*exec_handler)(exec_warp *warp, const exec_instr *instr);

struct exec_instr {
  exec_handler run[2]; /* [0] all lanes, [1] masked */
  uint32_t dst;        /* operand offsets; unused ones are 0 */
  uint32_t src[4];
  uint32_t dst2;  /* second destination: predicate of setp p|q, carry, shfl predicate */
  uint32_t aux;   /* handler-specific: shift amounts, lut, comparison, ... */
  uint32_t guard; /* byte offset of the predicate cell, or EXEC_NO_GUARD */
  uint8_t guard_negated;
  uint8_t unit;      /* exec_unit: for ISSUE records */
  uint8_t flow;      /* exec_flow: 0 for everything that only computes; core.isa.c interprets the others */
  uint8_t attention; /* EXEC_ATTEND_*: what core.isa.c has to look at before it runs the instruction */
  uint32_t index;    /* index into func->instrs, for messages and the trace's pc */
  uint32_t target;   /* branch: decoded index */
  uint32_t wait;     /* nonzero: operands may be outstanding loads (index + 1 into exec_function.waits) */
  /* position in the order in which splits of a warp run, smallest first (ptx/analysis/cfg.h) */
  uint32_t rank;
  int64_t immediate; /* address offset, ... */
  const void *side;  /* side data of memory, call and sync instructions (owned by the program) */
};

#define EXEC_NO_GUARD UINT32_MAX
typedef enum exec_unit { EXEC_UNIT_ALU, EXEC_UNIT_SFU, EXEC_UNIT_FP64, EXEC_UNIT_MEMORY, EXEC_UNIT_CONTROL } exec_unit;

/* The part of a warp that computing handlers see; core.c embeds it at the start of its own warp structure. */
struct exec_warp {
  unsigned char *base[2];         /* base[0]: registers of the current frame; base[1]: constant pool */
  uint32_t mask;                  /* lanes that execute */
  uint32_t carry;                 /* condition code register CC.CF, bit per lane (add.cc, addc, ...) */
  _Alignas(64) int32_t lanes[32]; /* mask as 0/-1, valid when mask != ~0 */
};

static inline void *exec_operand(const exec_warp *w, uint32_t offset) { return w->base[offset & 1] + (offset & ~1u); }
static inline uint32_t *exec_u32(const exec_warp *w, uint32_t offset) {
  return (uint32_t *)__builtin_assume_aligned(exec_operand(w, offset), 64);
}
static inline uint64_t *exec_u64(const exec_warp *w, uint32_t offset) {
  return (uint64_t *)__builtin_assume_aligned(exec_operand(w, offset), 64);
}
static inline uint32_t *exec_pred(const exec_warp *w, uint32_t offset) { return (uint32_t *)exec_operand(w, offset); }

/* Choosing handlers (ops_*.c): for an instruction that only computes from its operands (no memory, no control flow, no
 * exchange between lanes), fills run[], unit and aux, and says how the operands are to be laid out. The decoder has
 * already checked operand counts against `sources`; it then sets dst/dst2/src[] itself.
 * FF_UNSUPPORTED (message names the form) if there is no handler. */
typedef struct exec_choice {
  exec_handler run[2];
  uint8_t unit;
  uint8_t sources;      /* how many source operands follow the destination */
  ptx_type dst_type;    /* how the destination slot is typed (PRED: predicate cell); its bits give 32 or 64 */
  ptx_type dst2_type;   /* PTX_TYPE_NONE if there is no second destination */
  ptx_type src_type[4]; /* how each source is read: immediates are converted to this type */
  uint32_t aux;
} exec_choice;

#endif
