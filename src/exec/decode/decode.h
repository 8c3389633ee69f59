/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder's own state, shared by decode.c and its companions decode_memory.c and decode_control.c.
 *
 * A PTX instruction becomes one exec_instr, and sometimes helpers before and after it that bring operands into the form
 * its handler wants. All of them carry the PTX index, so counting by index counts PTX instructions. */
#ifndef FF_EXEC_DECODE_H
#define FF_EXEC_DECODE_H

#include "exec/memory/bulk.h"
#include "exec/decode/layout.h"
#include "exec/instructions/moves.h"
#include "exec/decode/program.h"
#include "ptx/analysis/spills.h"

#define DECODE_TEMP_BYTES 512u /* of a scratch slot: any register fits */

typedef struct decoder {
  const exec_kernel *kernel;
  const ptx_func *func;
  const exec_isa_table *isa;
  ff_arena *arena;
  ptx_cfg *cfg;
  exec_layout *layout;
  exec_function *out;
  FF_VEC(exec_instr) code;
  FF_VEC(unsigned char) pool;
  struct {
    uint64_t value;
    uint32_t offset, bytes;
  } * constants; /* hash table over the pool */
  uint32_t constant_room, constant_count;
  const ptx_instr *instr;
  uint32_t index;
  uint32_t temps, most_temps; /* scratch slots used by this instruction; by any */
  uint32_t temp_base;         /* where they stand in the frame */
  exec_place *places;         /* per variable: .param words */
  uint32_t *local;            /* per variable: offset of a .local variable or a parameter whose address is taken */
  uint32_t *load_number;      /* per register: index among those that loads write, EXEC_NO_OFFSET */
  ptx_spills spills;          /* of the function, if it needs more registers than its kernel may have */
  ff_error *error;
} decoder;

/* ---- operands: all return false after writing d->error ---- */
bool decode_fail(decoder *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The operand as a source of this type: its slot, a constant, or a scratch slot that helpers fill. */
bool decode_source(decoder *d, const ptx_operand *operand, ptx_type type, uint32_t *offset);
/* The slot of a destination register; a sink gets a scratch slot. */
bool decode_destination(decoder *d, const ptx_operand *operand, ptx_type type, uint32_t *offset);
uint32_t decode_constant(decoder *d, uint64_t value, uint32_t bytes); /* bytes: 4 or 8 per lane */
uint32_t decode_temp(decoder *d);
uint32_t decode_register(const decoder *d, uint32_t reg);
/* A new instruction; the pointer lives until the next call. */
exec_instr *decode_emit(decoder *d, exec_flow flow);
exec_instr *decode_move(decoder *d, exec_move move);
/* One with a handler of its own, which belongs to the memory unit. */
exec_instr *decode_handler(decoder *d, exec_handler handler, const void *side);
/* An address operand: its slot, its width and what is added. `local`: relative to local memory. */
bool decode_address(decoder *d, const ptx_operand *operand, ptx_space space, uint32_t *offset, bool *wide,
                    int64_t *add);
/* The same, as bulk copies and tcgen05 keep it. Of tensor memory: as of PTX_SPACE_SHARED, 32 bits. */
bool decode_bulk_address(decoder *d, const ptx_operand *operand, ptx_space space, bulk_address *a);

/* Side data of an access of this instruction to one element of the type (of `vector` ones), and the instruction
 * itself. */
exec_access *decode_new_access(decoder *d, exec_op op, ptx_space space, ptx_type type);
/* The access has the cache policy that the operand gives. */
bool decode_cache_policy(decoder *d, exec_access *a, const ptx_operand *policy);
exec_instr *decode_emit_access(decoder *d, exec_access *a, uint32_t address, bool wide, int64_t add);

/* ---- families: true if the instruction was decoded ---- */
bool decode_memory(decoder *d);
bool decode_atomic(decoder *d);
bool decode_multimem(decoder *d);
bool decode_prefetch(decoder *d);
/* wait_loop.c: does a loop wait for what the load that is being decoded reads? */
bool decode_waits_by(const decoder *d);
/* The same of a plain ld of a function; false of any other instruction. */
bool exec_waits_plainly(const ptx_func *func, const ptx_cfg *cfg, uint32_t index);
/* Does it read what another thread may have changed at any time: volatile, relaxed, acquire, .cv? */
bool exec_reads_anew(const ptx_instr *instr);
bool decode_async_copy(decoder *d);
bool decode_copy_group(decoder *d);
bool decode_mbarrier(decoder *d); /* mbarrier.c */
/* An mbarrier is told that so many bytes have come. (mbarrier.c) */
bool decode_complete_tx(decoder *d, const ptx_operand *barrier, uint32_t bytes);
bool decode_bulk(decoder *d);                 /* decode_bulk.c: cp.async.bulk, cp.reduce.async.bulk */
bool decode_tensormap(decoder *d);            /* decode_bulk.c */
bool decode_clusterlaunchcontrol(decoder *d); /* decode_bulk.c */
bool decode_store_bulk(decoder *d);           /* decode_bulk.c */
bool decode_async_access(decoder *d);         /* decode_bulk.c: st.async, red.async */
bool decode_wgmma(decoder *d);                /* decode_wgmma.c */
bool decode_tcgen05(decoder *d);              /* decode_tcgen05.c */
bool decode_texture(decoder *d);              /* decode_texture.c: tex, tld4, txq, istypep, suld, sust, sured, suq */
/* When all code is there: the lists of waits. first_of: PTX instruction -> decoded instruction. */
void decode_spills(decoder *d);                          /* decode_spills.c: before the frame's size is known */
void decode_waits(decoder *d, const uint32_t *first_of); /* decode_waits.c */
bool decode_mov(decoder *d);
bool decode_mapa(decoder *d);
bool decode_getctarank(decoder *d);
bool decode_cvta(decoder *d);
bool decode_isspacep(decoder *d);
bool decode_branch(decoder *d);
bool decode_call(decoder *d);
bool decode_return(decoder *d);
bool decode_barrier(decoder *d);
bool decode_shfl(decoder *d);
bool decode_vote(decoder *d);
bool decode_warp_value(decoder *d); /* match, redux, elect */
bool decode_matrix(decoder *d);     /* wmma, mma, ldmatrix, stmatrix, movmatrix */
/* A word of a .param variable to or from a register, by byte offset. */
bool decode_param_load(decoder *d, const exec_place *place, uint64_t at, ptx_type type, uint32_t slot,
                       uint32_t slot_bytes, uint32_t reg_bits);
bool decode_param_store(decoder *d, const exec_place *place, uint64_t at, ptx_type type, uint32_t slot,
                        uint32_t slot_bytes);
void decode_prologue(decoder *d); /* .reg parameters */

/* decode_check.c: asserts the invariants of a function that was decoded. */
void exec_function_check(const exec_function *function);

#endif
