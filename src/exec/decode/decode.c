/* SPDX-License-Identifier: Apache-2.0 */
/* From a PTX function to an array of exec_instr: the walk over the instructions, operands and constants.
 *
 * Every PTX instruction gets at least one exec_instr, and first_of[] finds it (decode_check.c checks that); an
 * instruction that cannot be decoded becomes EXEC_FLOW_UNSUPPORTED with the reason as its text. */
#include "exec/decode/decode.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "exec/launch/spin.h"
#include "exec/memory/cache_policy.h"
#include "ptx/analysis/machine_code.h"
#include "ptx/syntax/pending.h"
#include "ptx/rewrite/persistent.h"

bool decode_fail(decoder *d, const char *format, ...) {
  va_list args;
  va_start(args, format);
  ff_vfail(d->error, FF_UNSUPPORTED, format, args);
  va_end(args);
  return false;
}

/* ---- emitting ---- */

exec_instr *decode_emit(decoder *d, exec_flow flow) {
  FF_PUSH(&d->code,
          ((exec_instr){.flow = (uint8_t)flow, .index = d->index, .guard = EXEC_NO_GUARD, .unit = EXEC_UNIT_CONTROL}));
  return &d->code.items[d->code.count - 1];
}

exec_instr *decode_move(decoder *d, exec_move move) {
  exec_instr *i = decode_emit(d, EXEC_FLOW_NONE);
  i->run[0] = i->run[1] = d->isa->moves[move];
  i->unit = EXEC_UNIT_ALU;
  return i;
}

exec_instr *decode_handler(decoder *d, exec_handler handler, const void *side) {
  exec_instr *i = decode_emit(d, EXEC_FLOW_NONE);
  i->run[0] = i->run[1] = handler;
  i->unit = EXEC_UNIT_MEMORY;
  i->side = side;
  return i;
}

uint32_t decode_temp(decoder *d) {
  uint32_t temp = d->temps++;
  if (d->temps > d->most_temps) d->most_temps = d->temps;
  return d->temp_base + temp * DECODE_TEMP_BYTES;
}

/* ---- constants ---- */

static uint32_t constant_slot(const decoder *d, uint64_t value, uint32_t bytes) {
  uint32_t at = (uint32_t)((value ^ value >> 29) * UINT64_C(0x9E3779B97F4A7C15) >> 40) + bytes;
  for (at &= d->constant_room - 1; d->constants[at].bytes; at = (at + 1) & (d->constant_room - 1))
    if (d->constants[at].value == value && d->constants[at].bytes == bytes) break;
  return at;
}

static void grow_constants(decoder *d) {
  uint32_t old_room = d->constant_room;
  __typeof__(d->constants) old = d->constants;
  d->constant_room = old_room ? old_room * 2 : 64;
  d->constants = ff_alloc(d->constant_room * sizeof *d->constants);
  for (uint32_t i = 0; i < old_room; i++)
    if (old[i].bytes) d->constants[constant_slot(d, old[i].value, old[i].bytes)] = old[i];
  free(old);
}

uint32_t decode_constant(decoder *d, uint64_t value, uint32_t bytes) {
  if (bytes == 4) value = (uint32_t)value;
  if (2 * (d->constant_count + 1) > d->constant_room) grow_constants(d);
  uint32_t at = constant_slot(d, value, bytes);
  if (d->constants[at].bytes) return d->constants[at].offset;
  uint32_t offset = (uint32_t)d->pool.count;
  ff_vec_reserve((void **)&d->pool.items, &d->pool.capacity, d->pool.count + (size_t)bytes * EXEC_LANES, 1);
  for (uint32_t lane = 0; lane < EXEC_LANES; lane++) memcpy(d->pool.items + offset + lane * bytes, &value, bytes);
  d->pool.count += (size_t)bytes * EXEC_LANES;
  d->constants[at].value = value;
  d->constants[at].bytes = bytes;
  d->constants[at].offset = offset | 1;
  d->constant_count++;
  return offset | 1;
}

static uint64_t single_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* A literal as the bits of a type (PTX ISA, "Constants"). */
static bool literal_bits(decoder *d, const ptx_operand *operand, ptx_type type, uint64_t *bits) {
  uint32_t width = ptx_type_bits(type);
  bool real = ptx_type_class(type) == 'F';
  uint64_t value = *bits = operand->bits;
  if (operand->kind == PTX_OPERAND_INT) {
    double twice = (double)(int64_t)value;
    if (real && width == 32 && type == PTX_F32) *bits = single_bits((float)(int64_t)value);
    else if (type == PTX_F64) memcpy(bits, &twice, 8);
  } else if (operand->kind == PTX_OPERAND_F32) {
    float single;
    memcpy(&single, &value, 4);
    double twice = single;
    if (type == PTX_F64) memcpy(bits, &twice, 8);
  } else {
    double twice;
    memcpy(&twice, &value, 8);
    if (width == 32) *bits = single_bits((float)twice);
    else if (width != 64) return decode_fail(d, "a floating-point literal for type .%s", ptx_type_text(type));
  }
  if (width < 64) *bits &= (UINT64_C(1) << width) - 1;
  return true;
}

/* ---- operands ---- */

uint32_t decode_register(const decoder *d, uint32_t reg) { return d->layout->reg[reg]; }

static bool is_literal(const ptx_operand *operand) {
  return operand->kind == PTX_OPERAND_INT || operand->kind == PTX_OPERAND_F32 || operand->kind == PTX_OPERAND_F64;
}

static uint32_t narrow_temp(decoder *d, uint32_t from) {
  uint32_t temp = decode_temp(d);
  exec_instr *i = decode_move(d, EXEC_MOVE_NARROW);
  i->dst = temp;
  i->src[0] = from;
  return temp;
}

static uint32_t widen_temp(decoder *d, uint32_t from) {
  uint32_t temp = decode_temp(d);
  exec_instr *i = decode_move(d, EXEC_MOVE_WIDEN_ZERO);
  i->dst = temp;
  i->src[0] = from;
  return temp;
}

static bool register_source(decoder *d, const ptx_operand *operand, ptx_type type, uint32_t *offset) {
  const ptx_reg *reg = &d->func->regs[operand->reg];
  uint32_t have = exec_type_slot(reg->type), want = exec_type_slot(type);
  *offset = decode_register(d, operand->reg);
  if (have == want) return true;
  if (have >= 8 && want == 4) {
    *offset = narrow_temp(d, *offset);
    return true;
  }
  if (have == 16 && want == 8) return true; /* the low half stands first */
  return decode_fail(d, "register %s has type .%s, the operand needs .%s", reg->name, ptx_type_text(reg->type),
                     ptx_type_text(type));
}

static bool special_source(decoder *d, const ptx_operand *operand, ptx_type type, uint32_t *offset) {
  uint32_t temp = decode_temp(d), want = exec_type_slot(type);
  bool wide = operand->sreg == PTX_SREG_GRIDID || operand->sreg == PTX_SREG_CLOCK64 ||
              operand->sreg == PTX_SREG_GLOBALTIMER || operand->sreg == PTX_SREG_CURRENT_GRAPH_EXEC;
  exec_instr *i = decode_move(d, EXEC_MOVE_SREG);
  i->dst = temp;
  i->aux = operand->sreg;
  if (type == PTX_PRED && operand->sreg == PTX_SREG_IS_EXPLICIT_CLUSTER) {
    i = decode_move(d, EXEC_MOVE_IS_NOT_ZERO);
    i->src[0] = temp;
    i->dst = *offset = decode_temp(d);
    return true;
  }
  if (want != 4 && want != 8)
    return decode_fail(d, "special register %s as a .%s", ptx_sreg_text(operand->sreg), ptx_type_text(type));
  *offset = temp;
  if (wide && want == 4) *offset = narrow_temp(d, temp);
  if (!wide && want == 8) *offset = widen_temp(d, temp);
  return true;
}

static bool symbol_source(decoder *d, const ptx_operand *operand, ptx_type type, uint32_t *offset) {
  const ptx_var *var = operand->symbol->var;
  uint32_t want = exec_type_slot(type);
  if (want != 4 && want != 8)
    return decode_fail(d, "the address of %s as a .%s", operand->symbol->name, ptx_type_text(type));
  if (var && var->func == d->func && d->local[var->index] != EXEC_NO_OFFSET) {
    uint64_t at = d->local[var->index] + (uint64_t)operand->offset;
    if (d->func->entry) {
      *offset = decode_constant(d, at, want);
      return true;
    }
    *offset = decode_temp(d);
    exec_instr *i = decode_move(d, want == 8 ? EXEC_MOVE_LOCAL_ADDRESS : EXEC_MOVE_LOCAL_ADDRESS32);
    i->dst = *offset;
    i->immediate = (int64_t)at;
    return true;
  }
  uint64_t address;
  if (exec_symbol_address(d->kernel, operand->symbol, &address, d->error) != FF_OK) return false;
  address += (uint64_t)operand->offset;
  /* whole, so that compiled code need not know it (compile/kernel_describe.c) */
  bool far = address != (uint32_t)address;
  *offset = decode_constant(d, address, far ? 8 : want);
  if (far && want == 4) *offset = narrow_temp(d, *offset);
  return true;
}

bool decode_source(decoder *d, const ptx_operand *operand, ptx_type type, uint32_t *offset) {
  switch (operand->kind) {
  case PTX_OPERAND_REG: return register_source(d, operand, type, offset);
  case PTX_OPERAND_SREG: return special_source(d, operand, type, offset);
  case PTX_OPERAND_SYMBOL: return symbol_source(d, operand, type, offset);
  case PTX_OPERAND_NONE: *offset = decode_constant(d, 0, exec_type_slot(type) == 8 ? 8 : 4); return true;
  default: break;
  }
  if (!is_literal(operand)) return decode_fail(d, "an operand of a kind that this instruction does not take");
  uint64_t bits;
  if (type == PTX_PRED) {
    *offset = decode_constant(d, operand->bits ? UINT32_MAX : 0, 4);
    return true;
  }
  if (!literal_bits(d, operand, type, &bits)) return false;
  if (exec_type_slot(type) == 16) return decode_fail(d, "a literal of 128 bits");
  *offset = decode_constant(d, bits, exec_type_slot(type));
  return true;
}

bool decode_destination(decoder *d, const ptx_operand *operand, ptx_type type, uint32_t *offset) {
  uint32_t reg = operand->reg;
  if (operand->kind == PTX_OPERAND_NONE || (operand->kind == PTX_OPERAND_REG_PAIR && reg == PTX_NO_REG)) {
    *offset = decode_temp(d);
    return true;
  }
  if (operand->kind != PTX_OPERAND_REG && operand->kind != PTX_OPERAND_REG_PAIR)
    return decode_fail(d, "the destination is not a register");
  const ptx_reg *to = &d->func->regs[reg];
  *offset = decode_register(d, reg);
  if (exec_type_slot(to->type) == exec_type_slot(type)) return true;
  return decode_fail(d, "register %s has type .%s, the result .%s", to->name, ptx_type_text(to->type),
                     ptx_type_text(type));
}

/* ---- instructions that only compute ---- */

/* The destination of a computing instruction; *widen: it goes through a scratch slot into a 64-bit register. */
static bool compute_destination(decoder *d, const exec_choice *choice, uint32_t *offset, uint32_t *widen) {
  const ptx_operand *operand = &d->instr->operands[0];
  *widen = EXEC_NO_OFFSET;
  if (operand->kind == PTX_OPERAND_REG && exec_type_slot(d->func->regs[operand->reg].type) == 8 &&
      exec_type_slot(choice->dst_type) == 4) {
    *widen = decode_register(d, operand->reg);
    *offset = decode_temp(d);
    return true;
  }
  return decode_destination(d, operand, choice->dst_type, offset);
}

static bool second_destination(decoder *d, const exec_choice *choice, uint32_t *offset) {
  const ptx_operand *operand = &d->instr->operands[0];
  *offset = 0;
  if (choice->dst2_type == PTX_TYPE_NONE) return true;
  if (operand->kind != PTX_OPERAND_REG_PAIR || operand->reg2 == PTX_NO_REG) {
    *offset = decode_temp(d);
    return true;
  }
  if (d->func->regs[operand->reg2].type != PTX_PRED) return decode_fail(d, "the second destination is not a predicate");
  *offset = decode_register(d, operand->reg2);
  return true;
}

static bool decode_compute(decoder *d) {
  exec_choice choice = {0};
  const ptx_instr *instr = d->instr;
  if (d->isa->choose(d->func, instr, &choice, d->error) != FF_OK) return false;
  if (instr->operand_count < 1u + choice.sources)
    return decode_fail(d, "%u operands are too few", instr->operand_count);
  uint32_t src[4] = {0}, dst, dst2, widen;
  for (uint32_t s = 0; s < choice.sources; s++) {
    uint32_t at = instr->opcode == PTX_OP_LOP3 && choice.src_type[s] == PTX_PRED ? 5 : s + 1; /* behind the table */
    if (!decode_source(d, &instr->operands[at], choice.src_type[s], &src[s])) return false;
  }
  if (!compute_destination(d, &choice, &dst, &widen) || !second_destination(d, &choice, &dst2)) return false;
  exec_instr *i = decode_emit(d, EXEC_FLOW_NONE);
  memcpy(i->run, choice.run, sizeof i->run);
  memcpy(i->src, src, sizeof i->src);
  i->dst = dst;
  i->dst2 = dst2;
  i->aux = choice.aux;
  i->unit = choice.unit;
  if (widen == EXEC_NO_OFFSET) return true;
  bool is_signed = ptx_type_class(choice.dst_type) == 'S';
  i = decode_move(d, is_signed ? EXEC_MOVE_WIDEN_SIGN : EXEC_MOVE_WIDEN_ZERO);
  i->dst = widen;
  i->src[0] = dst;
  return true;
}

/* ---- one instruction ---- */

static bool decode_nothing(decoder *d) { return decode_move(d, EXEC_MOVE_NOTHING) != NULL; }

static bool decode_activemask(decoder *d) {
  uint32_t dst;
  if (!decode_destination(d, &d->instr->operands[0], PTX_B32, &dst)) return false;
  decode_move(d, EXEC_MOVE_ACTIVEMASK)->dst = dst;
  return true;
}

/* alloca ptr, size{, align}; stacksave d; stackrestore a: of .u32 or .u64 */
static bool decode_stack(decoder *d) {
  const ptx_operand *operands = d->instr->operands;
  ptx_type type = d->instr->type_count ? d->instr->types[0] : PTX_U64;
  bool allocates = d->instr->opcode == PTX_OP_ALLOCA, restores = d->instr->opcode == PTX_OP_STACKRESTORE;
  uint64_t align = allocates && d->instr->operand_count > 2 ? operands[2].bits : 8;
  uint32_t dst = 0, from = 0;
  if (!align || align & (align - 1) || align > UINT64_C(1) << 23) return decode_fail(d, "alloca: this alignment");
  if ((allocates || restores) && !decode_source(d, &operands[allocates], type, &from)) return false;
  if (!restores && !decode_destination(d, &operands[0], type, &dst)) return false;
  exec_instr *i = decode_move(d, allocates  ? EXEC_MOVE_STACK_ALLOCATE
                                 : restores ? EXEC_MOVE_STACK_RESTORE
                                            : EXEC_MOVE_STACK_SAVE);
  i->dst = dst;
  i->src[0] = from;
  i->immediate = (int64_t)align;
  i->aux = ptx_type_bits(type) == 64;
  return true;
}

/* What createpolicy says: .fractional the share of accesses with the first priority. A share that is not known before
 * counts as all, and so does a range (.range) of all addresses. */
static uint64_t policy_of(const ptx_instr *instr) {
  bool last = ptx_has(instr, PTX_MOD_L2__EVICT_LAST), first = ptx_has(instr, PTX_MOD_L2__EVICT_FIRST);
  /* The second priority, of the other accesses, is evict_first or evict_unchanged. Which of these two comes first is
   * not known here: it is taken for evict_first, as evict_unchanged is what the others have without a second one. */
  bool plain = ptx_has(instr, PTX_MOD_L2__EVICT_NORMAL);
  trace_l2_priority on = last ? TRACE_L2_LAST : first && !plain ? TRACE_L2_FIRST : TRACE_L2_PLAIN;
  if (on == TRACE_L2_FIRST) first = false;
  const ptx_operand *share = &instr->operands[1];
  double part = 1;
  if (ptx_has(instr, PTX_MOD_FRACTIONAL) && instr->operand_count > 1) {
    if (share->kind == PTX_OPERAND_F64) memcpy(&part, &share->bits, sizeof part);
    uint32_t bits = (uint32_t)share->bits;
    float single;
    memcpy(&single, &bits, sizeof single);
    if (share->kind == PTX_OPERAND_F32) part = (double)single;
  }
  return cache_policy_make(on, first, part);
}

/* createpolicy: the policy is opaque to programs, but for what .cvt is given. */
static bool decode_createpolicy(decoder *d) {
  const ptx_instr *instr = d->instr;
  uint32_t dst, from = 0;
  bool given = ptx_has(instr, PTX_MOD_CVT);
  if (given && (instr->operand_count < 2 || !decode_source(d, &instr->operands[1], PTX_B64, &from))) return false;
  if (!decode_destination(d, &instr->operands[0], PTX_B64, &dst)) return false;
  if (!given) from = decode_constant(d, policy_of(instr), 8);
  exec_instr *i = decode_move(d, EXEC_MOVE_COPY64);
  i->dst = dst;
  i->src[0] = from;
  return true;
}

static bool decode_cp(decoder *d) {
  if (ptx_has(d->instr, PTX_MOD_BULK)) return decode_bulk(d);
  if (ptx_has(d->instr, PTX_MOD_MBARRIER)) return decode_mbarrier(d);
  if (ptx_has(d->instr, PTX_MOD_COMMIT_GROUP) || ptx_has(d->instr, PTX_MOD_WAIT_GROUP) ||
      ptx_has(d->instr, PTX_MOD_WAIT_ALL))
    return decode_copy_group(d);
  return decode_async_copy(d);
}

static bool decode_one(decoder *d) {
  switch (d->instr->opcode) {
  case PTX_OP_BRA:
  case PTX_OP_BRX: return decode_branch(d);
  case PTX_OP_CALL: return decode_call(d);
  case PTX_OP_RET:
  case PTX_OP_EXIT:
  case PTX_OP_TRAP: return decode_return(d);
  case PTX_OP_LD:
  case PTX_OP_LDU:
  case PTX_OP_ST:
    if (ptx_has(d->instr, PTX_MOD_BULK)) return decode_store_bulk(d);
    return ptx_has(d->instr, PTX_MOD_ASYNC) ? decode_async_access(d) : decode_memory(d);
  case PTX_OP_ATOM:
  case PTX_OP_RED:
    if (ptx_has(d->instr, PTX_MOD_ASYNC)) return decode_async_access(d);
    return decode_atomic(d) && (!ptx_persistent_pulls(d->func, d->instr) || decode_emit(d, EXEC_FLOW_PULL));
  case PTX_OP_MULTIMEM: return decode_multimem(d);
  case PTX_OP_CP: return decode_cp(d);
  case PTX_OP_MBARRIER: return decode_mbarrier(d);
  case PTX_OP_TENSORMAP: return decode_tensormap(d);
  case PTX_OP_CLUSTERLAUNCHCONTROL: return decode_clusterlaunchcontrol(d);
  case PTX_OP_WGMMA: return decode_wgmma(d);
  case PTX_OP_TCGEN05: return decode_tcgen05(d);
  case PTX_OP_TEX:
  case PTX_OP_TLD4:
  case PTX_OP_TXQ:
  case PTX_OP_ISTYPEP:
  case PTX_OP_SULD:
  case PTX_OP_SUST:
  case PTX_OP_SURED:
  case PTX_OP_SUQ: return decode_texture(d);
  case PTX_OP_MOV: return decode_mov(d) || (d->error->status == FF_OK && decode_compute(d));
  case PTX_OP_CVTA: return decode_cvta(d);
  case PTX_OP_MAPA: return decode_mapa(d);
  case PTX_OP_GETCTARANK: return decode_getctarank(d);
  case PTX_OP_ISSPACEP: return decode_isspacep(d);
  case PTX_OP_BAR:
  case PTX_OP_BARRIER: return decode_barrier(d);
  case PTX_OP_SHFL: return decode_shfl(d);
  case PTX_OP_VOTE: return decode_vote(d);
  case PTX_OP_MATCH:
  case PTX_OP_REDUX:
  case PTX_OP_ELECT: return decode_warp_value(d);
  case PTX_OP_WMMA:
  case PTX_OP_MMA:
  case PTX_OP_LDMATRIX:
  case PTX_OP_STMATRIX:
  case PTX_OP_MOVMATRIX: return decode_matrix(d);
  case PTX_OP_ACTIVEMASK: return decode_activemask(d);
  case PTX_OP_ALLOCA:
  case PTX_OP_STACKSAVE:
  case PTX_OP_STACKRESTORE: return decode_stack(d);
  case PTX_OP_CREATEPOLICY: return decode_createpolicy(d);
  case PTX_OP_MEMBAR:
  case PTX_OP_FENCE: return decode_move(d, EXEC_MOVE_FENCE) != NULL;
  case PTX_OP_NANOSLEEP: return decode_emit(d, EXEC_FLOW_YIELD) != NULL;
  case PTX_OP_PREFETCH:
  case PTX_OP_PREFETCHU: return decode_prefetch(d);
  case PTX_OP_BRKPT:
  case PTX_OP_PMEVENT:
  case PTX_OP_DISCARD:
  case PTX_OP_APPLYPRIORITY:
  case PTX_OP_GRIDDEPCONTROL:
  case PTX_OP_SETMAXNREG: return decode_nothing(d);
  case PTX_OP_UNKNOWN: return decode_fail(d, "the instruction is not known");
  default: return decode_compute(d);
  }
}

static char *unsupported_text(const decoder *d, const ff_error *error) {
  ff_text text = {0};
  ff_text_add(&text, "not supported: %s", error->message);
  char *kept = ff_arena_strndup(d->arena, text.chars, text.length);
  free(text.chars);
  return kept;
}

/* The guard goes on everything the instruction became; flow instructions look at it themselves. */
static void guard_emitted(decoder *d, size_t first) {
  if (d->instr->guard == PTX_NO_REG) return;
  for (size_t n = first; n < d->code.count; n++) {
    exec_instr *i = &d->code.items[n];
    i->guard = decode_register(d, d->instr->guard);
    i->guard_negated = d->instr->guard_negated;
    if (i->flow == EXEC_FLOW_NONE) i->flow = EXEC_FLOW_GUARDED;
    if (i->flow == EXEC_FLOW_BRA) i->flow = EXEC_FLOW_BRA_IF;
  }
}

static void decode_instruction(decoder *d, uint32_t index) {
  ff_error error = {0};
  size_t first = d->code.count;
  d->index = index;
  d->instr = &d->func->instrs[index];
  d->temps = 0;
  d->error = &error;
  if (!decode_one(d)) {
    d->code.count = first;
    decode_emit(d, EXEC_FLOW_UNSUPPORTED)->side = unsupported_text(d, &error);
  }
  guard_emitted(d, first);
}

/* ---- the whole function ---- */

/* Ranks of instructions, and the marks of those that begin a basic block. */
static void set_ranks(decoder *d, const uint32_t *first_of) {
  uint32_t *base = ff_alloc((d->cfg->block_count + 1) * sizeof *base), next = 0;
  for (uint32_t o = 0; o < d->cfg->block_count; o++) {
    const ptx_block *block = &d->cfg->blocks[d->cfg->by_order[o]];
    base[d->cfg->by_order[o]] = next;
    next += block->end - block->first;
  }
  for (size_t n = 0; n < d->code.count; n++) {
    exec_instr *i = &d->code.items[n];
    i->attention = i->flow == EXEC_FLOW_NONE ? 0 : EXEC_ATTEND_FLOW;
    if (i->index == d->func->instr_count) {
      i->rank = next;
      i->attention |= EXEC_ATTEND_LEADER;
      continue;
    }
    uint32_t b = d->cfg->block_of[i->index];
    i->rank = base[b] + (i->index - d->cfg->blocks[b].first);
    if (d->cfg->blocks[b].first == i->index && first_of[i->index] == n) i->attention |= EXEC_ATTEND_LEADER;
  }
  free(base);
}

static void set_targets(decoder *d, const uint32_t *first_of) {
  for (size_t n = 0; n < d->code.count; n++) {
    exec_instr *i = &d->code.items[n];
    if (i->flow == EXEC_FLOW_BRA || i->flow == EXEC_FLOW_BRA_IF) i->target = first_of[i->target];
    if (i->flow != EXEC_FLOW_BRX) continue;
    uint32_t *targets = (uint32_t *)(uintptr_t)i->side;
    for (uint32_t t = 0; t < i->aux; t++) targets[t] = first_of[targets[t]];
  }
}

static bool is_store(const ptx_instr *instr) {
  ptx_space space = ptx_instr_space(instr);
  return instr->opcode == PTX_OP_ST && (space == PTX_SPACE_GLOBAL || space == PTX_SPACE_GENERIC);
}

/* The first place that i branches to; UINT32_MAX: it does not branch. */
static uint32_t first_target(const exec_instr *i) {
  uint32_t first = UINT32_MAX;
  if (i->flow == EXEC_FLOW_BRA || i->flow == EXEC_FLOW_BRA_IF) return i->target;
  if (i->flow != EXEC_FLOW_BRX) return first;
  const uint32_t *targets = i->side;
  for (uint32_t t = 0; t < i->aux; t++)
    if (targets[t] < first) first = targets[t];
  return first;
}

/* Marks where a warp's first turn ends. An instruction is in a loop if a branch behind it (or itself) leads to it or
 * before it. */
static void set_starts(decoder *d, const uint32_t *first_of) {
  uint32_t begin = UINT32_MAX; /* of all loops that end further down */
  for (size_t n = d->code.count; n-- > 0;) {
    exec_instr *i = &d->code.items[n];
    uint32_t target = first_target(i);
    bool back = target <= n;
    if (back && target < begin) begin = target;
    bool store = n >= begin && i->index < d->func->instr_count && first_of[i->index] == n &&
                 is_store(&d->func->instrs[i->index]);
    if (back || store) i->attention |= EXEC_ATTEND_START;
  }
}

static void count_units(decoder *d, uint32_t *sfu, uint32_t *fp64) {
  for (size_t n = 0; n < d->code.count; n++) {
    const exec_instr *i = &d->code.items[n];
    if (i->index >= d->func->instr_count) continue;
    sfu[i->index + 1] += i->unit == EXEC_UNIT_SFU;
    fp64[i->index + 1] += i->unit == EXEC_UNIT_FP64;
  }
  for (uint32_t i = 0; i < d->func->instr_count; i++) {
    sfu[i + 1] += sfu[i];
    fp64[i + 1] += fp64[i];
  }
}

/* Counts up to each instruction; where one has no room any more, it stays as it is. */
static const trace_counts *count_machine_code(decoder *d) {
  uint32_t count = d->func->instr_count, sum[TRACE_UNIT_COUNT] = {0};
  trace_counts *before = ff_arena_alloc(d->arena, (count + (size_t)2) * sizeof *before);
  memset(before, 0, (count + (size_t)2) * sizeof *before);
  ptx_cost *costs = ptx_machine_code(d->func, d->cfg);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t u = 0; u < TRACE_UNIT_COUNT; u++) {
      if (sum[u] < (1u << TRACE_UNIT_BITS) - PTX_COST_MAX) sum[u] += costs[i].count[u];
      before[i + 1].word[u / 3] |= (uint64_t)sum[u] << u % 3 * TRACE_UNIT_BITS;
    }
  before[count + 1] = before[count]; /* the end of the text */
  free(costs);
  return before;
}

/* Registers that loads write get numbers. */
static void number_loads(decoder *d) {
  uint32_t regs[64];
  for (uint32_t r = 0; r < d->func->reg_count; r++) d->load_number[r] = EXEC_NO_OFFSET;
  for (uint32_t n = 0; n < d->func->instr_count; n++) {
    const ptx_instr *instr = &d->func->instrs[n];
    if (!ptx_is_pending_load(instr)) continue;
    uint32_t count = ptx_instr_writes(instr, regs, 64);
    for (uint32_t k = 0; k < count && k < 64; k++)
      if (d->load_number[regs[k]] == EXEC_NO_OFFSET) d->load_number[regs[k]] = d->out->load_count++;
  }
}

static bool own_param(const ptx_func *func, const ptx_var *var) {
  for (uint32_t p = 0; p < func->param_count; p++)
    if (func->params[p] == var) return true;
  return false;
}

/* .local variables and parameters whose address is taken, in the order of declaration. Returns the bytes. */
static uint32_t place_locals(const ptx_func *func, uint32_t *local) {
  uint8_t *taken = ff_alloc(func->var_count + 1);
  for (uint32_t n = 0; n < func->instr_count; n++) {
    const ptx_instr *instr = &func->instrs[n];
    for (uint32_t k = 0; instr->opcode != PTX_OP_CALL && k < instr->operand_count; k++) {
      const ptx_operand *operand = &instr->operands[k];
      const ptx_var *var = operand->kind == PTX_OPERAND_SYMBOL ? operand->symbol->var : NULL;
      if (var && var->func == func && var->space == PTX_SPACE_PARAM && !(func->entry && own_param(func, var)))
        taken[var->index] = 1;
    }
  }
  uint64_t at = 0;
  for (uint32_t v = 0; v < func->var_count; v++) {
    const ptx_var *var = func->vars[v];
    if (local) local[v] = EXEC_NO_OFFSET;
    if (var->space != PTX_SPACE_LOCAL && !taken[v]) continue;
    uint64_t align = var->align < 4 ? 4 : var->align;
    at = (at + align - 1) & ~(align - 1);
    if (local) local[v] = (uint32_t)at;
    at += var->size;
    if (at > EXEC_WINDOW_BYTES) at = EXEC_WINDOW_BYTES; /* refused by exec_program_kernel */
  }
  free(taken);
  return (uint32_t)((at + 15) & ~UINT64_C(15));
}

uint32_t exec_local_bytes(const ptx_func *func) { return place_locals(func, NULL); }

/* A call needs room for a return address and the like even if it has no variables. */
uint32_t exec_stack_bytes(const ptx_func *func) { return exec_local_bytes(func) + (func->entry ? 0 : 16); }

static void place_variables(decoder *d) {
  d->out->local_bytes = place_locals(d->func, d->local);
  d->out->stack_bytes = exec_stack_bytes(d->func);
  for (uint32_t v = 0; v < d->func->var_count; v++) {
    uint64_t words = (d->func->vars[v]->size + 3) / 4;
    d->places[v] = (exec_place){d->layout->var[v], words ? (uint32_t)words : 1, d->local[v]};
  }
}

static exec_place *places_of(decoder *d, ptx_var *const *vars, uint32_t count) {
  exec_place *places = ff_arena_alloc(d->arena, (count + 1) * sizeof *places);
  for (uint32_t p = 0; p < count; p++) places[p] = d->places[vars[p]->index];
  return places;
}

static void *keep(ff_arena *arena, const void *items, size_t bytes) {
  unsigned char *aligned = ff_arena_alloc(arena, bytes + 64);
  aligned += (64 - ((uintptr_t)aligned & 63)) & 63;
  if (bytes) memcpy(aligned, items, bytes);
  return aligned;
}

/* A bound's slot in the frame, if it is a register that has one. */
static uint32_t bound_slot(const decoder *d, const exec_bound *bound, uint8_t *bytes) {
  *bytes = 0;
  if (bound->reg == PTX_NO_REG) return EXEC_NO_OFFSET;
  *bytes = (uint8_t)exec_type_slot(d->func->regs[bound->reg].type);
  return *bytes == 4 || *bytes == 8 ? decode_register(d, bound->reg) : EXEC_NO_OFFSET;
}

/* The marked regions, of the kernel's own function. */
static void set_marks(decoder *d, const uint32_t *first_of) {
  uint32_t count = d->func == d->kernel->func ? d->kernel->mark_count : 0;
  exec_region *regions = ff_arena_alloc(d->arena, (count + (size_t)1) * sizeof *regions);
  for (uint32_t n = 0; n < count; n++) {
    exec_region *r = &regions[n];
    r->mark = d->kernel->marks[n];
    r->from = bound_slot(d, &r->mark.from, &r->from_bytes);
    r->to = bound_slot(d, &r->mark.to, &r->to_bytes);
    d->code.items[first_of[r->mark.entry]].attention |= EXEC_ATTEND_MARK;
    d->code.items[first_of[r->mark.exit]].attention |= EXEC_ATTEND_MARK;
  }
  d->out->regions = regions;
  d->out->region_count = count;
}

/* Compiled code is entered where a basic block begins and behind everything that the interpreter does itself. */
static void set_entries(decoder *d) {
  for (size_t n = 0; n < d->code.count; n++) {
    exec_instr *i = &d->code.items[n];
    bool behind = n && d->code.items[n - 1].flow != EXEC_FLOW_NONE && d->code.items[n - 1].flow != EXEC_FLOW_GUARDED;
    if (!n || behind || (i->attention & EXEC_ATTEND_LEADER)) i->attention |= EXEC_ATTEND_NATIVE;
  }
}

static void finish(decoder *d, uint32_t *first_of) {
  exec_function *out = d->out;
  set_ranks(d, first_of);
  set_targets(d, first_of);
  set_starts(d, first_of);
  set_marks(d, first_of);
  set_entries(d);
  decode_waits(d, first_of);
  exec_spin_find(d);
  uint32_t *sfu = ff_arena_alloc(d->arena, (d->func->instr_count + 2) * sizeof *sfu);
  uint32_t *fp64 = ff_arena_alloc(d->arena, (d->func->instr_count + 2) * sizeof *fp64);
  count_units(d, sfu, fp64);
  out->sfu_before = sfu;
  out->fp64_before = fp64;
  out->units_before = count_machine_code(d);
  out->first_of = first_of;
  out->count = (uint32_t)d->code.count;
  out->code = keep(d->arena, d->code.items, d->code.count * sizeof *d->code.items);
  out->constants = keep(d->arena, d->pool.items, d->pool.count);
}

exec_function *exec_decode(const exec_kernel *kernel, const ptx_func *func, uint32_t pc_base, const exec_isa_table *isa,
                           ff_arena *arena) {
  decoder d = {.kernel = kernel, .func = func, .isa = isa, .arena = arena};
  exec_function *out = d.out = ff_arena_alloc(arena, sizeof *out);
  out->source = func;
  out->name = func->name;
  out->pc_base = pc_base;
  d.cfg = ptx_cfg_build(func);
  d.layout = exec_layout_make(func, d.cfg);
  d.places = ff_alloc((func->var_count + 1) * sizeof *d.places);
  d.local = ff_alloc((func->var_count + 1) * sizeof *d.local);
  d.load_number = ff_alloc((func->reg_count + 1) * sizeof *d.load_number);
  place_variables(&d);
  number_loads(&d);
  decode_spills(&d);
  d.temp_base = d.layout->bytes;
  out->zero_bytes = d.layout->zero_bytes;
  out->param_count = func->param_count;
  out->result_count = func->result_count;
  if (!func->entry) {
    out->params = places_of(&d, func->params, func->param_count);
    out->results = places_of(&d, func->results, func->result_count);
  }
  uint32_t *first_of = ff_arena_alloc(arena, (func->instr_count + 1) * sizeof *first_of);
  decode_prologue(&d);
  for (uint32_t n = 0; n < func->instr_count; n++) {
    first_of[n] = (uint32_t)d.code.count;
    decode_instruction(&d, n);
  }
  first_of[func->instr_count] = (uint32_t)d.code.count;
  d.index = func->instr_count;
  decode_emit(&d, func->entry ? EXEC_FLOW_EXIT : EXEC_FLOW_RET)->aux = 1; /* the end of the text: not an instruction */
  out->loads_offset = d.temp_base + d.most_temps * DECODE_TEMP_BYTES;
  out->frame_bytes = out->loads_offset + ((out->load_count * 4 + 63) & ~63u);
  out->frame_class = core_frame_class(out->frame_bytes);
  finish(&d, first_of);
  if (ff_check_level >= 2) exec_function_check(out);
  ptx_cfg_free(d.cfg);
  exec_layout_free(d.layout);
  free(d.places);
  free(d.local);
  free(d.load_number);
  free(d.spills.items);
  free(d.code.items);
  free(d.pool.items);
  free(d.constants);
  return out;
}
