/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of branches, calls, barriers and the instructions by which the lanes of a warp exchange values. */
#include <string.h>

#include "exec/decode/decode.h"
#include "exec/instructions/host_call.h"
#include "exec/instructions/shuffle_lanes.h"

/* ---- branches ---- */

bool decode_branch(decoder *d) {
  const ptx_instr *instr = d->instr;
  if (instr->opcode == PTX_OP_BRA) {
    if (instr->operand_count < 1 || instr->operands[0].kind != PTX_OPERAND_LABEL)
      return decode_fail(d, "bra without a label");
    /* a PTX index: set_targets makes it a decoded one */
    decode_emit(d, EXEC_FLOW_BRA)->target = instr->operands[0].label;
    return true;
  }
  const ptx_operand *list = instr->operand_count > 1 ? &instr->operands[1] : NULL;
  uint32_t index;
  if (!list || list->kind != PTX_OPERAND_LABELS) return decode_fail(d, "brx.idx without a list of targets");
  if (!decode_source(d, &instr->operands[0], PTX_U32, &index)) return false;
  uint32_t *targets = ff_arena_alloc(d->arena, (list->element_count + 1) * sizeof *targets);
  for (uint32_t t = 0; t < list->element_count; t++) {
    if (list->elements[t].kind != PTX_OPERAND_LABEL) return decode_fail(d, "a target that is not a label");
    targets[t] = list->elements[t].label;
  }
  exec_instr *i = decode_emit(d, EXEC_FLOW_BRX);
  i->src[0] = index;
  i->aux = list->element_count;
  i->side = targets;
  return true;
}

/* Results that are registers go into their words before the function returns. */
static bool store_results(decoder *d) {
  for (uint32_t r = 0; r < d->func->result_count; r++) {
    const ptx_var *var = d->func->results[r];
    if (var->reg == PTX_NO_REG) continue;
    ptx_type type = d->func->regs[var->reg].type;
    if (!decode_param_store(d, &d->places[var->index], 0, type, decode_register(d, var->reg), exec_type_slot(type)))
      return false;
  }
  return true;
}

bool decode_return(decoder *d) {
  switch (d->instr->opcode) {
  case PTX_OP_RET:
    if (!d->func->entry && !store_results(d)) return false;
    return decode_emit(d, EXEC_FLOW_RET) != NULL;
  case PTX_OP_EXIT: return decode_emit(d, EXEC_FLOW_EXIT) != NULL;
  default: return decode_emit(d, EXEC_FLOW_TRAP) != NULL;
  }
}

void decode_prologue(decoder *d) {
  ff_error error = {0};
  d->error = &error;
  for (uint32_t p = 0; p < d->func->param_count && !d->func->entry; p++) {
    const ptx_var *var = d->func->params[p];
    if (var->reg == PTX_NO_REG) continue;
    ptx_type type = d->func->regs[var->reg].type;
    decode_param_load(d, &d->places[var->index], 0, type, decode_register(d, var->reg), exec_type_slot(type),
                      ptx_type_bits(type));
  }
  d->error = NULL;
}

/* ---- calls ---- */

/* Where an argument or result stands in the caller's frame: its .param variable, or scratch words for a register. */
static bool call_place(decoder *d, const ptx_operand *operand, const ptx_var *formal, bool result, exec_place *place) {
  if (operand->kind == PTX_OPERAND_SYMBOL && operand->symbol->var && operand->symbol->var->func == d->func &&
      (operand->symbol->var->space == PTX_SPACE_PARAM || operand->symbol->var->space == PTX_SPACE_REG)) {
    *place = d->places[operand->symbol->var->index];
    return true;
  }
  ptx_type type = formal ? formal->type : PTX_B32;
  if (operand->kind == PTX_OPERAND_REG) type = d->func->regs[operand->reg].type;
  uint32_t slot, bytes = exec_type_slot(type);
  if (!bytes) return decode_fail(d, "a predicate in a call");
  /* words: not where other instructions have a value of 8 bytes in this scratch slot, as what compiled code keeps in
   * registers of its own is the same place everywhere or does not touch */
  uint32_t words = decode_temp(d) + (bytes <= 8 ? DECODE_TEMP_BYTES / 2 : 0);
  *place = (exec_place){words, bytes / 4, EXEC_NO_OFFSET};
  if (result) return true; /* fetched after the call */
  return decode_source(d, operand, type, &slot) && decode_param_store(d, place, 0, type, slot, bytes);
}

static bool fetch_results(decoder *d, const ptx_operand *results, const exec_place *places) {
  for (uint32_t r = 0; results && r < results->element_count; r++) {
    const ptx_operand *operand = &results->elements[r];
    if (operand->kind != PTX_OPERAND_REG) continue;
    ptx_type type = d->func->regs[operand->reg].type;
    if (!decode_param_load(d, &places[r], 0, type, decode_register(d, operand->reg), exec_type_slot(type),
                           ptx_type_bits(type)))
      return false;
  }
  return true;
}

static const ptx_var *formal_of(const ptx_func *callee, const ptx_prototype *prototype, uint32_t n, bool result) {
  ptx_var *const *vars = NULL;
  uint32_t count = 0;
  if (callee) {
    vars = result ? callee->results : callee->params;
    count = result ? callee->result_count : callee->param_count;
  } else if (prototype) {
    vars = result ? prototype->results : prototype->params;
    count = result ? prototype->result_count : prototype->param_count;
  }
  return n < count ? vars[n] : NULL;
}

static bool call_places(decoder *d, const ptx_operand *list, const ptx_func *callee, const ptx_prototype *prototype,
                        bool result, const exec_place **places, uint32_t *count) {
  *count = list ? list->element_count : 0;
  exec_place *made = ff_arena_alloc(d->arena, (*count + 1) * sizeof *made);
  for (uint32_t n = 0; n < *count; n++)
    if (!call_place(d, &list->elements[n], formal_of(callee, prototype, n, result), result, &made[n])) return false;
  *places = made;
  return true;
}

bool decode_call(decoder *d) {
  ptx_call parts = ptx_call_parts(d->instr);
  if (!parts.callee) return decode_fail(d, "a call of nothing");
  const ptx_func *callee = parts.callee->kind == PTX_OPERAND_SYMBOL ? parts.callee->symbol->func : NULL;
  const ptx_prototype *prototype = parts.targets ? parts.targets->prototype : NULL;
  exec_call *call = ff_arena_alloc(d->arena, sizeof *call);
  exec_flow flow = EXEC_FLOW_CALL;
  if (parts.callee->kind == PTX_OPERAND_SYMBOL && !callee)
    return decode_fail(d, "a call of something that is not a function");
  if (!callee) {
    flow = EXEC_FLOW_CALL_INDIRECT;
    if (!decode_source(d, parts.callee, PTX_U64, &call->target)) return false;
  } else if (callee->has_body) {
    call->callee = exec_kernel_function(d->kernel, callee);
    if (call->callee == EXEC_NO_OFFSET) return decode_fail(d, "a call of %s, which is not reachable", callee->name);
  } else {
    flow = EXEC_FLOW_HOST_CALL;
    call->host = exec_host_function(callee->name);
    bool launches =
        !strncmp(callee->name, "__cuda_syscall_cnp", 18) || !strncmp(callee->name, "cudaGetParameterBuffer", 22);
    if (call->host == EXEC_HOST_NONE)
      return decode_fail(d, "%s is a function that the virtual GPU does not provide%s", callee->name,
                         launches ? ": the kernel launches kernels (dynamic parallelism)" : "");
  }
  if (!call_places(d, parts.arguments, callee, prototype, false, &call->arguments, &call->argument_count)) return false;
  if (!call_places(d, parts.results, callee, prototype, true, &call->results, &call->result_count)) return false;
  decode_emit(d, flow)->side = call;
  return fetch_results(d, parts.results, call->results);
}

/* ---- barriers ---- */

static exec_sync *new_sync(decoder *d, exec_sync_kind kind, exec_sync_mode mode) {
  exec_sync *sync = ff_arena_alloc(d->arena, sizeof *sync);
  sync->kind = (uint8_t)kind;
  sync->mode = (uint8_t)mode;
  return sync;
}

static exec_instr *emit_sync(decoder *d, exec_sync *sync, const uint32_t src[4], uint32_t dst, uint32_t dst2) {
  exec_instr *i = decode_emit(d, sync->kind == EXEC_SYNC_BARRIER ? EXEC_FLOW_BARRIER : EXEC_FLOW_SYNC);
  if (sync->kind != EXEC_SYNC_BARRIER) i->run[0] = i->run[1] = d->isa->sync[sync->kind];
  memcpy(i->src, src, sizeof i->src);
  i->dst = dst;
  i->dst2 = dst2;
  i->side = sync;
  return i;
}

static bool warp_barrier(decoder *d) {
  uint32_t src[4] = {0};
  if (!decode_source(d, &d->instr->operands[0], PTX_U32, &src[3])) return false;
  return emit_sync(d, new_sync(d, EXEC_SYNC_WARP, EXEC_BARRIER_SYNC), src, 0, 0) != NULL;
}

/* barrier.cluster.arrive, barrier.cluster.wait */
static bool cluster_barrier(decoder *d) {
  uint32_t src[4] = {decode_constant(d, EXEC_CLUSTER_BARRIER, 4), EXEC_NO_OFFSET, 0, 0};
  exec_sync *sync =
      new_sync(d, EXEC_SYNC_BARRIER, ptx_has(d->instr, PTX_MOD_WAIT) ? EXEC_BARRIER_SYNC : EXEC_BARRIER_ARRIVE);
  sync->cluster = 1;
  return emit_sync(d, sync, src, 0, 0) != NULL;
}

/* bar.red.op d, a{, b}, {!}c */
static bool reduction_barrier(decoder *d) {
  const ptx_instr *instr = d->instr;
  exec_sync_mode mode = ptx_has(instr, PTX_MOD_POPC)  ? EXEC_BARRIER_POPC
                        : ptx_has(instr, PTX_MOD_AND) ? EXEC_BARRIER_AND
                                                      : EXEC_BARRIER_OR;
  exec_sync *sync = new_sync(d, EXEC_SYNC_BARRIER, mode);
  uint32_t src[4] = {0, EXEC_NO_OFFSET, 0, 0}, dst, last = instr->operand_count - 1u;
  if (instr->operand_count < 3) return decode_fail(d, "bar.red with too few operands");
  if (!decode_destination(d, &instr->operands[0], mode == EXEC_BARRIER_POPC ? PTX_U32 : PTX_PRED, &dst)) return false;
  if (!decode_source(d, &instr->operands[1], PTX_U32, &src[0])) return false;
  if (last == 3 && !decode_source(d, &instr->operands[2], PTX_U32, &src[1])) return false;
  if (!decode_source(d, &instr->operands[last], PTX_PRED, &src[2])) return false;
  sync->negated = instr->operands[last].negated;
  return emit_sync(d, sync, src, dst, 0) != NULL;
}

bool decode_barrier(decoder *d) {
  const ptx_instr *instr = d->instr;
  if (ptx_has(instr, PTX_MOD_CLUSTER)) return cluster_barrier(d);
  if (!instr->operand_count) return decode_fail(d, "a barrier without a number");
  if (ptx_has(instr, PTX_MOD_WARP)) return warp_barrier(d);
  if (ptx_has(instr, PTX_MOD_RED)) return reduction_barrier(d);
  bool arrive = ptx_has(instr, PTX_MOD_ARRIVE);
  uint32_t src[4] = {0, EXEC_NO_OFFSET, 0, 0};
  if (!decode_source(d, &instr->operands[0], PTX_U32, &src[0])) return false;
  if (instr->operand_count > 1 && !decode_source(d, &instr->operands[1], PTX_U32, &src[1])) return false;
  if (arrive && src[1] == EXEC_NO_OFFSET) return decode_fail(d, "bar.arrive without a thread count");
  exec_sync *sync = new_sync(d, EXEC_SYNC_BARRIER, arrive ? EXEC_BARRIER_ARRIVE : EXEC_BARRIER_SYNC);
  const ptx_operand *number = &instr->operands[0];
  sync->plain = !arrive && src[1] == EXEC_NO_OFFSET && number->kind == PTX_OPERAND_INT &&
                (uint64_t)number->bits < EXEC_CLUSTER_BARRIER;
  sync->number = sync->plain ? (uint8_t)number->bits : 0;
  return emit_sync(d, sync, src, 0, 0) != NULL;
}

/* ---- shfl, vote, match, redux, elect ---- */

/* d or d|p: the value's and the predicate's slot. */
static bool pair_destination(decoder *d, const ptx_operand *operand, ptx_type type, exec_sync *sync, uint32_t *dst,
                             uint32_t *dst2) {
  *dst2 = 0;
  if (!decode_destination(d, operand, type, dst)) return false;
  if (operand->kind != PTX_OPERAND_REG_PAIR || operand->reg2 == PTX_NO_REG) return true;
  if (d->func->regs[operand->reg2].type != PTX_PRED) return decode_fail(d, "the second destination is not a predicate");
  sync->has_predicate = 1;
  *dst2 = decode_register(d, operand->reg2);
  return true;
}

bool decode_shfl(decoder *d) {
  const ptx_instr *instr = d->instr;
  exec_sync_mode mode = ptx_has(instr, PTX_MOD_UP)     ? EXEC_SHFL_UP
                        : ptx_has(instr, PTX_MOD_DOWN) ? EXEC_SHFL_DOWN
                        : ptx_has(instr, PTX_MOD_BFLY) ? EXEC_SHFL_BFLY
                                                       : EXEC_SHFL_IDX;
  exec_sync *sync = new_sync(d, EXEC_SYNC_SHFL, mode);
  sync->legacy = !ptx_has(instr, PTX_MOD_SYNC);
  uint32_t src[4] = {0}, dst, dst2, sources = sync->legacy ? 3 : 4;
  if (instr->operand_count < sources + 1) return decode_fail(d, "shfl with %u operands", instr->operand_count);
  for (uint32_t s = 0; s < sources; s++)
    if (!decode_source(d, &instr->operands[s + 1], PTX_B32, &src[s])) return false;
  if (!pair_destination(d, &instr->operands[0], PTX_B32, sync, &dst, &dst2)) return false;
  if (instr->operands[2].kind == PTX_OPERAND_INT && instr->operands[3].kind == PTX_OPERAND_INT) {
    sync->constant = 1;
    sync->valid = shuffle_lanes(mode, (uint32_t)instr->operands[2].bits, (uint32_t)instr->operands[3].bits, sync->lane);
  }
  return emit_sync(d, sync, src, dst, dst2) != NULL;
}

bool decode_vote(decoder *d) {
  const ptx_instr *instr = d->instr;
  exec_sync_mode mode = ptx_has(instr, PTX_MOD_ALL)   ? EXEC_VOTE_ALL
                        : ptx_has(instr, PTX_MOD_ANY) ? EXEC_VOTE_ANY
                        : ptx_has(instr, PTX_MOD_UNI) ? EXEC_VOTE_UNI
                                                      : EXEC_VOTE_BALLOT;
  exec_sync *sync = new_sync(d, EXEC_SYNC_VOTE, mode);
  sync->legacy = !ptx_has(instr, PTX_MOD_SYNC);
  uint32_t src[4] = {0}, dst;
  if (instr->operand_count < (sync->legacy ? 2 : 3))
    return decode_fail(d, "vote with %u operands", instr->operand_count);
  sync->negated = instr->operands[1].negated;
  if (!decode_source(d, &instr->operands[1], PTX_PRED, &src[0])) return false;
  if (!sync->legacy && !decode_source(d, &instr->operands[2], PTX_U32, &src[3])) return false;
  if (!decode_destination(d, &instr->operands[0], mode == EXEC_VOTE_BALLOT ? PTX_B32 : PTX_PRED, &dst)) return false;
  return emit_sync(d, sync, src, dst, 0) != NULL;
}

static bool redux_mode(const ptx_instr *instr, ptx_type type, exec_sync_mode *mode) {
  bool real = type == PTX_F32;
  if (ptx_has(instr, PTX_MOD_MIN)) *mode = real ? EXEC_REDUX_FMIN : EXEC_REDUX_MIN;
  else if (ptx_has(instr, PTX_MOD_MAX)) *mode = real ? EXEC_REDUX_FMAX : EXEC_REDUX_MAX;
  else if (real) return false;
  else if (ptx_has(instr, PTX_MOD_ADD)) *mode = EXEC_REDUX_ADD;
  else if (ptx_has(instr, PTX_MOD_AND)) *mode = EXEC_REDUX_AND;
  else if (ptx_has(instr, PTX_MOD_OR)) *mode = EXEC_REDUX_OR;
  else if (ptx_has(instr, PTX_MOD_XOR)) *mode = EXEC_REDUX_XOR;
  else return false;
  return true;
}

bool decode_warp_value(decoder *d) {
  const ptx_instr *instr = d->instr;
  bool elects = instr->opcode == PTX_OP_ELECT;
  ptx_type type = instr->type_count ? instr->types[0] : PTX_B32;
  exec_sync_kind kind = elects                          ? EXEC_SYNC_ELECT
                        : instr->opcode == PTX_OP_REDUX ? EXEC_SYNC_REDUX
                        : ptx_has(instr, PTX_MOD_ALL)   ? EXEC_SYNC_MATCH_ALL
                                                        : EXEC_SYNC_MATCH_ANY;
  exec_sync *sync = new_sync(d, kind, EXEC_REDUX_ADD);
  exec_sync_mode mode;
  if (kind == EXEC_SYNC_REDUX) {
    if (!redux_mode(instr, type, &mode) || ptx_type_bits(type) != 32) return decode_fail(d, "this form of redux.sync");
    sync->mode = (uint8_t)mode;
  }
  sync->wide = !elects && ptx_type_bits(type) == 64;
  sync->is_signed = ptx_type_class(type) == 'S';
  sync->absolute = ptx_has(instr, PTX_MOD_ABS);
  sync->nan = ptx_has(instr, PTX_MOD_NAN_PROPAGATE);
  uint32_t src[4] = {0}, dst, dst2, member = elects ? 1 : 2;
  if (instr->operand_count < member + 1) return decode_fail(d, "%u operands are too few", instr->operand_count);
  if (!elects && !decode_source(d, &instr->operands[1], type, &src[0])) return false;
  if (!decode_source(d, &instr->operands[member], PTX_U32, &src[3])) return false;
  if (!pair_destination(d, &instr->operands[0], PTX_B32, sync, &dst, &dst2)) return false;
  return emit_sync(d, sync, src, dst, dst2) != NULL;
}
