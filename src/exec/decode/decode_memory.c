/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of ld, st, atom, red, cp.async, mov of everything but plain values, cvta and isspacep.
 *
 * Addresses. A base register, or a constant slot that holds the symbol's address; what is added stays in `immediate`.
 * .param variables of calls are words in the frame: loads and stores of them are moves. */
#include <string.h>

#include "exec/decode/decode.h"
#include "exec/memory/cache_policy.h"
#include "exec/memory/multimem.h"

/* ---- addresses ---- */

bool decode_address(decoder *d, const ptx_operand *operand, ptx_space space, uint32_t *offset, bool *wide,
                    int64_t *add) {
  if (operand->kind != PTX_OPERAND_ADDRESS || operand->element_count)
    return decode_fail(d, "the operand is not an address");
  *add = operand->offset;
  if (operand->reg != PTX_NO_REG) {
    const ptx_reg *reg = &d->func->regs[operand->reg];
    uint32_t slot = exec_type_slot(reg->type);
    if (slot != 4 && slot != 8)
      return decode_fail(d, "register %s of type .%s as an address", reg->name, ptx_type_text(reg->type));
    *offset = decode_register(d, operand->reg);
    *wide = slot == 8;
    return true;
  }
  *wide = space != PTX_SPACE_SHARED;
  if (!operand->symbol) {
    *offset = decode_constant(d, 0, *wide ? 8 : 4);
    return true;
  }
  const ptx_var *var = operand->symbol->var;
  if (space == PTX_SPACE_GENERIC && var && var->space == PTX_SPACE_SHARED) *add += (int64_t)EXEC_SHARED_WINDOW;
  if (space == PTX_SPACE_GENERIC && var && var->space == PTX_SPACE_LOCAL) *add += (int64_t)EXEC_LOCAL_WINDOW;
  ptx_operand base = *operand;
  base.kind = PTX_OPERAND_SYMBOL;
  base.offset = 0;
  return decode_source(d, &base, *wide ? PTX_U64 : PTX_U32, offset);
}

bool decode_bulk_address(decoder *d, const ptx_operand *operand, ptx_space space, bulk_address *a) {
  a->space = space;
  return decode_address(d, operand, space, &a->slot, &a->wide, &a->add);
}

/* ---- addresses of parameters and constants in 32 bits ---- */

/* Are all .const variables so near that their lower halves tell them apart? */
static bool is_near(const decoder *d, uint64_t near) {
  const exec_program *program = d->kernel->program;
  for (uint32_t v = 0; v < program->module->var_count; v++) {
    if (program->module->vars[v]->space != PTX_SPACE_CONST || !program->vars[v]) continue;
    uint64_t first = program->vars[v]->address - near, last = first + program->vars[v]->bytes - 1;
    if ((int64_t)first != (int32_t)first || (int64_t)last != (int32_t)last) return false;
  }
  return true;
}

/* An address of a space of 64 bits, in which this function takes addresses by mov.b32, as LLVM does for its short
 * pointers; 0: it does not. A kernel's parameters lie together, and so do a module's constants: the upper half of an
 * address is that of the nearest address with this lower half. */
static bool short_space(decoder *d, ptx_space space, uint64_t *near) {
  *near = 0;
  for (uint32_t n = 0; n < d->func->instr_count; n++) {
    const ptx_instr *instr = &d->func->instrs[n];
    const ptx_operand *from = &instr->operands[1];
    if (instr->opcode != PTX_OP_MOV || instr->operand_count != 2 || from->kind != PTX_OPERAND_SYMBOL ||
        !from->symbol->var || from->symbol->var->space != space || exec_type_slot(instr->types[0]) != 4)
      continue;
    if (exec_symbol_address(d->kernel, from->symbol, near, NULL) != FF_OK) { /* it is defined nowhere */
      *near = 0;
      continue;
    }
    if (*near && space == PTX_SPACE_CONST && !is_near(d, *near))
      return decode_fail(d, "an address in 32 bits, of .const variables that lie more than 2 GiB apart");
    return true;
  }
  return true;
}

/* The address of 64 bits that has the lower half of `slot` and is nearest to `near`. */
static uint32_t lengthen(decoder *d, uint32_t slot, bool wide, uint64_t near) {
  uint32_t low = slot, full = decode_temp(d), from = decode_constant(d, near, 8);
  exec_instr *i;
  if (wide) {
    low = decode_temp(d);
    i = decode_move(d, EXEC_MOVE_NARROW);
    i->dst = low;
    i->src[0] = slot;
  }
  i = decode_move(d, EXEC_MOVE_LENGTHEN);
  i->dst = full;
  i->src[0] = low;
  i->src[1] = from;
  return full;
}

/* ---- .param variables in the frame ---- */

static uint32_t place_word(const exec_place *place, uint64_t at) {
  return place->offset + (uint32_t)(at / 4) * EXEC_SLOT;
}

static bool in_place(decoder *d, const exec_place *place, uint64_t at, uint32_t bytes) {
  if (at % bytes || at + bytes > 4 * (uint64_t)place->words)
    return decode_fail(d, "an access outside the parameter, or misaligned");
  return true;
}

bool decode_param_load(decoder *d, const exec_place *place, uint64_t at, ptx_type type, uint32_t slot,
                       uint32_t slot_bytes, uint32_t reg_bits) {
  uint32_t bits = ptx_type_bits(type), bytes = bits / 8;
  bool sign = ptx_type_class(type) == 'S';
  if (!in_place(d, place, at, bytes)) return false;
  uint32_t word = place_word(place, at), to = slot;
  if (bytes == 8 || bytes == 16) {
    if (slot_bytes != bytes) return decode_fail(d, "a parameter of %u bytes into a smaller register", bytes);
    exec_instr *i = decode_move(d, bytes == 8 ? EXEC_MOVE_PACK_2x32 : EXEC_MOVE_PACK_4x32);
    i->dst = slot;
    for (uint32_t k = 0; k < bytes / 4; k++) i->src[k] = word + k * EXEC_SLOT;
    return true;
  }
  if (slot_bytes > 4) to = decode_temp(d);
  exec_instr *i = decode_move(d, bytes == 4 ? EXEC_MOVE_COPY32 : EXEC_MOVE_EXTRACT);
  i->dst = to;
  i->src[0] = word;
  i->aux = (uint32_t)(at % 4 * 8) | bits << 8 | (uint32_t)sign << 16 | (uint32_t)(reg_bits == 16) << 17;
  if (slot_bytes == 8) {
    i = decode_move(d, sign ? EXEC_MOVE_WIDEN_SIGN : EXEC_MOVE_WIDEN_ZERO);
    i->dst = slot;
    i->src[0] = to;
  }
  return true;
}

bool decode_param_store(decoder *d, const exec_place *place, uint64_t at, ptx_type type, uint32_t slot,
                        uint32_t slot_bytes) {
  uint32_t bits = ptx_type_bits(type), bytes = bits / 8;
  if (!in_place(d, place, at, bytes)) return false;
  uint32_t word = place_word(place, at), from = slot;
  if (bytes == 8 || bytes == 16) {
    if (slot_bytes != bytes) return decode_fail(d, "a parameter of %u bytes from a smaller register", bytes);
    exec_instr *i = decode_move(d, bytes == 8 ? EXEC_MOVE_UNPACK_2x32 : EXEC_MOVE_UNPACK_4x32);
    i->src[0] = slot;
    i->dst = word;
    i->dst2 = word + EXEC_SLOT;
    if (bytes == 16) {
      i->src[2] = word + 2 * EXEC_SLOT;
      i->src[3] = word + 3 * EXEC_SLOT;
    }
    return true;
  }
  if (slot_bytes == 8) {
    from = decode_temp(d);
    exec_instr *i = decode_move(d, EXEC_MOVE_NARROW);
    i->dst = from;
    i->src[0] = slot;
  }
  exec_instr *i = decode_move(d, bytes == 4 ? EXEC_MOVE_COPY32 : EXEC_MOVE_INSERT);
  i->dst = word;
  i->src[0] = from;
  i->aux = (uint32_t)(at % 4 * 8) | bits << 8;
  return true;
}

/* ---- ld and st ---- */

/* The data operand or operands of an access. */
static const ptx_operand *data_operand(const ptx_operand *operand, uint32_t element) {
  return operand->kind == PTX_OPERAND_VECTOR ? &operand->elements[element] : operand;
}

static bool check_elements(decoder *d, const ptx_operand *operand, uint32_t elements) {
  uint32_t count = operand->kind == PTX_OPERAND_VECTOR ? operand->element_count : 1;
  if (count != elements) return decode_fail(d, "%u registers for %u elements", count, elements);
  return true;
}

/* The slot class of the data registers: that of the first real register, else what the type needs. */
static uint32_t data_slot_bytes(const decoder *d, const ptx_operand *operand, uint32_t elements, ptx_type type) {
  for (uint32_t e = 0; e < elements; e++) {
    const ptx_operand *data = data_operand(operand, e);
    if (data->kind == PTX_OPERAND_REG) return exec_type_slot(d->func->regs[data->reg].type);
  }
  return exec_type_slot(type);
}

static ptx_type slot_type(uint32_t slot_bytes) {
  return slot_bytes == 4 ? PTX_B32 : slot_bytes == 8 ? PTX_B64 : PTX_B128;
}

static uint32_t register_bits(const decoder *d, const ptx_operand *data) {
  return data->kind == PTX_OPERAND_REG ? ptx_type_bits(d->func->regs[data->reg].type) : 0;
}

static bool data_slots(decoder *d, const ptx_operand *operand, exec_access *a, bool load, ptx_type type) {
  a->slot_bytes = (uint8_t)data_slot_bytes(d, operand, a->elements, type);
  if (!a->slot_bytes || a->slot_bytes < a->bytes)
    return decode_fail(d, "a register that is too small for .%s", ptx_type_text(type));
  for (uint32_t e = 0; e < a->elements; e++) {
    const ptx_operand *data = data_operand(operand, e);
    bool literal = data->kind != PTX_OPERAND_REG && exec_type_slot(type) == a->slot_bytes;
    bool good = load ? decode_destination(d, data, slot_type(a->slot_bytes), &a->data[e])
                     : decode_source(d, data, literal ? type : slot_type(a->slot_bytes), &a->data[e]);
    if (!good) return false;
  }
  return true;
}

static uint8_t trace_flags(const ptx_instr *instr) {
  uint8_t flags = 0;
  if (ptx_has(instr, PTX_MOD_CG) || ptx_has(instr, PTX_MOD_CV) || ptx_has(instr, PTX_MOD_VOLATILE) ||
      ptx_has(instr, PTX_MOD_RELAXED) || ptx_has(instr, PTX_MOD_ACQUIRE) || ptx_has(instr, PTX_MOD_MMIO))
    flags |= TRACE_BYPASS_L1;
  if (ptx_has(instr, PTX_MOD_NC)) flags |= TRACE_READ_ONLY;
  if (ptx_has(instr, PTX_MOD_CS) || ptx_has(instr, PTX_MOD_LU) || ptx_has(instr, PTX_MOD_L1__EVICT_FIRST) ||
      ptx_has(instr, PTX_MOD_L1__NO_ALLOCATE))
    flags |= TRACE_STREAMING;
  if (ptx_has(instr, PTX_MOD_L2__EVICT_FIRST)) flags = cache_policy_flags(flags, TRACE_L2_FIRST);
  if (ptx_has(instr, PTX_MOD_L2__EVICT_LAST)) flags = cache_policy_flags(flags, TRACE_L2_LAST);
  return flags;
}

bool decode_cache_policy(decoder *d, exec_access *a, const ptx_operand *policy) {
  a->hinted = true;
  return decode_source(d, policy, PTX_B64, &a->policy);
}

/* It is the last operand where there is one. */
static bool last_is_policy(decoder *d, exec_access *a) {
  const ptx_instr *instr = d->instr;
  if (!ptx_has(instr, PTX_MOD_L2__CACHE_HINT) || instr->operand_count < 3) return true;
  return decode_cache_policy(d, a, &instr->operands[instr->operand_count - 1]);
}

/* A vector of 8 or 16 bytes that goes past the first-level cache: a device moves it in one piece. The manual promises
 * that only for its elements, but a value and its flag side by side are how decoupled look-back passes sums on. */
static bool is_whole(const ptx_instr *instr) {
  static const ptx_mod strong[] = {PTX_MOD_VOLATILE, PTX_MOD_RELAXED, PTX_MOD_ACQUIRE, PTX_MOD_RELEASE,
                                   PTX_MOD_CG,       PTX_MOD_CV,      PTX_MOD_WT};
  for (size_t n = 0; n < sizeof strong / sizeof strong[0]; n++)
    if (ptx_has(instr, strong[n])) return true;
  return false;
}

static exec_span no_span; /* no address is inside it: a hint that finds nothing */

exec_access *decode_new_access(decoder *d, exec_op op, ptx_space space, ptx_type type) {
  exec_access *a = ff_arena_alloc(d->arena, sizeof *a);
  const ptx_instr *instr = d->instr;
  a->hint = &no_span;
  a->op = (uint8_t)op;
  a->space = (uint8_t)space;
  a->bytes = (uint8_t)(ptx_type_bits(type) / 8);
  a->elements = instr->vector;
  a->poll = exec_reads_anew(instr) || exec_waits_plainly(d->func, d->cfg, d->index);
  a->awaits = a->poll && op == EXEC_OP_LOAD && space != PTX_SPACE_SHARED && decode_waits_by(d);
  a->whole = a->elements > 1 && is_whole(instr);
  a->trace_flags = trace_flags(instr);
  uint32_t total = a->bytes * a->elements;
  while (1u << a->log2_total < total) a->log2_total++;
  for (uint32_t e = 0; e < 8; e++) a->load[e] = EXEC_NO_OFFSET;
  return a;
}

static void set_load_numbers(decoder *d, exec_access *a, const ptx_operand *operand) {
  for (uint32_t e = 0; e < a->elements; e++) {
    const ptx_operand *data = data_operand(operand, e);
    if (data->kind == PTX_OPERAND_REG) a->load[e] = d->load_number[data->reg];
  }
}

exec_instr *decode_emit_access(decoder *d, exec_access *a, uint32_t address, bool wide, int64_t add) {
  a->wide = wide;
  exec_instr *i = decode_emit(d, EXEC_FLOW_NONE);
  d->isa->choose_access(a, i->run);
  i->unit = EXEC_UNIT_MEMORY;
  i->src[0] = address;
  i->immediate = add;
  i->side = a;
  return i;
}

static bool is_own_param(const decoder *d, const ptx_var *var) {
  for (uint32_t p = 0; p < d->func->param_count; p++)
    if (d->func->params[p] == var) return true;
  return false;
}

/* ld.param of the kernel: one value for all lanes. */
static bool kernel_param(decoder *d, const ptx_operand *data, const ptx_operand *address, ptx_type type) {
  exec_access *a = decode_new_access(d, EXEC_OP_LOAD, PTX_SPACE_PARAM, type);
  uint64_t at = 0, total = (uint64_t)a->bytes * a->elements;
  for (uint32_t p = 0; p < d->func->param_count; p++)
    if (d->func->params[p] == address->symbol->var) at = d->kernel->info.params[p].offset;
  at += (uint64_t)address->offset;
  if (at + total > d->kernel->info.param_bytes || at > d->kernel->info.param_bytes)
    return decode_fail(d, "an access outside the kernel's parameters");
  if (!data_slots(d, data, a, true, type)) return false;
  a->sign = ptx_type_class(type) == 'S';
  a->to16 = a->sign && register_bits(d, data_operand(data, 0)) == 16;
  return decode_emit_access(d, a, 0, true, (int64_t)at) != NULL;
}

/* Parameters of calls, and those that a function was called with. */
static bool frame_param(decoder *d, const ptx_operand *data, const ptx_operand *address, ptx_type type, bool load) {
  const exec_place *place = &d->places[address->symbol->var->index];
  uint32_t elements = d->instr->vector, bytes = ptx_type_bits(type) / 8;
  for (uint32_t e = 0; e < elements; e++) {
    const ptx_operand *element = data_operand(data, e);
    uint64_t at = (uint64_t)address->offset + (uint64_t)e * bytes;
    uint32_t slot,
        slot_bytes = exec_type_slot(element->kind == PTX_OPERAND_REG ? d->func->regs[element->reg].type : type);
    if (!slot_bytes) return decode_fail(d, "a predicate as a parameter");
    if (load && !decode_destination(d, element, slot_type(slot_bytes), &slot)) return false;
    if (!load && !decode_source(d, element, element->kind == PTX_OPERAND_REG ? slot_type(slot_bytes) : type, &slot))
      return false;
    bool good = load ? decode_param_load(d, place, at, type, slot, slot_bytes, register_bits(d, element))
                     : decode_param_store(d, place, at, type, slot, slot_bytes);
    if (!good) return false;
  }
  return true;
}

static bool param_access(decoder *d, const ptx_operand *data, const ptx_operand *address, ptx_type type, bool load,
                         ptx_space *space) {
  const ptx_var *var = address->symbol ? address->symbol->var : NULL;
  if (!var) { /* through a register: see exec_symbol_address and decode_mov */
    *space = d->func->entry ? PTX_SPACE_CONST : PTX_SPACE_LOCAL; /* a kernel's lie in a constant bank */
    return false;
  }
  if (var->func != d->func || var->space != PTX_SPACE_PARAM)
    return decode_fail(d, "%s is no parameter of this function", var->name);
  if (d->func->entry && is_own_param(d, var)) {
    if (!load) return decode_fail(d, "a store to a kernel's parameter");
    return kernel_param(d, data, address, type);
  }
  if (d->local[var->index] != EXEC_NO_OFFSET) {
    *space = PTX_SPACE_LOCAL;
    return false;
  }
  return frame_param(d, data, address, type, load);
}

bool decode_memory(decoder *d) {
  const ptx_instr *instr = d->instr;
  bool load = instr->opcode != PTX_OP_ST;
  if (!instr->type_count || instr->operand_count < 2) return decode_fail(d, "an access without a type");
  ptx_type type = instr->types[instr->type_count - 1];
  uint32_t bits = ptx_type_bits(type), elements = instr->vector;
  const ptx_operand *data = &instr->operands[load ? 0 : 1], *address = &instr->operands[load ? 1 : 0];
  ptx_space space = ptx_instr_space(instr);
  if (bits < 8 || bits > 128 || bits * elements > 512)
    return decode_fail(d, "an access of type .%s", ptx_type_text(type));
  if (address->kind != PTX_OPERAND_ADDRESS || !check_elements(d, data, elements))
    return d->error->status != FF_OK ? false : decode_fail(d, "no address");
  if (space == PTX_SPACE_PARAM) {
    bool done = param_access(d, data, address, type, load, &space);
    if (done || space == PTX_SPACE_PARAM) return done;
  }
  if (space != PTX_SPACE_GENERIC && space != PTX_SPACE_GLOBAL && space != PTX_SPACE_CONST &&
      space != PTX_SPACE_SHARED && space != PTX_SPACE_LOCAL)
    return decode_fail(d, "an access to this state space");
  exec_access *a = decode_new_access(d, load ? EXEC_OP_LOAD : EXEC_OP_STORE, space, type);
  uint32_t base;
  bool wide;
  int64_t add;
  if (!decode_address(d, address, space, &base, &wide, &add) || !data_slots(d, data, a, load, type)) return false;
  if (!last_is_policy(d, a)) return false;
  uint64_t near = 0;
  if (!wide && space == PTX_SPACE_CONST && !short_space(d, ptx_instr_space(instr), &near)) return false;
  if (near) {
    base = lengthen(d, base, wide, near);
    wide = true;
  }
  if (!wide && (space == PTX_SPACE_GENERIC || space == PTX_SPACE_GLOBAL || space == PTX_SPACE_CONST))
    return decode_fail(d, "a 32-bit address in a 64-bit space");
  if (load) {
    a->sign = ptx_type_class(type) == 'S';
    a->to16 = a->sign && register_bits(d, data_operand(data, 0)) == 16;
    if (a->to16 && a->bytes == 2) a->sign = a->to16 = 0;
    set_load_numbers(d, a, data);
  }
  decode_emit_access(d, a, base, wide, add);
  return true;
}

/* prefetch, prefetchu: only the access stream hears of it, and an address that is not allocated is no error. */
bool decode_prefetch(decoder *d) {
  const ptx_operand *address = &d->instr->operands[0];
  ptx_space space = ptx_instr_space(d->instr);
  uint32_t base;
  bool wide;
  int64_t add;
  bool global = space == PTX_SPACE_GLOBAL || space == PTX_SPACE_GENERIC;
  if (!global || d->instr->operand_count < 1 || address->kind != PTX_OPERAND_ADDRESS)
    return decode_move(d, EXEC_MOVE_NOTHING) != NULL;
  exec_access *a = decode_new_access(d, EXEC_OP_PREFETCH, space, PTX_B8);
  if (!decode_address(d, address, space, &base, &wide, &add)) return false;
  a->wide = wide;
  exec_instr *i = decode_move(d, wide ? EXEC_MOVE_PREFETCH : EXEC_MOVE_NOTHING);
  i->unit = EXEC_UNIT_MEMORY;
  i->src[0] = base;
  i->immediate = add;
  i->side = a;
  return true;
}

/* ---- atom, red ---- */

static const ptx_mod atomic_ops[] = {PTX_MOD_ADD, PTX_MOD_MIN, PTX_MOD_MAX, PTX_MOD_INC,  PTX_MOD_DEC,
                                     PTX_MOD_AND, PTX_MOD_OR,  PTX_MOD_XOR, PTX_MOD_EXCH, PTX_MOD_CAS};

/* One element: of a vector each is an atomic operation of its own, as the manual says. */
static bool atomic_element(decoder *d, ptx_mod op, ptx_type type, uint32_t element) {
  const ptx_instr *instr = d->instr;
  bool returns = instr->opcode == PTX_OP_ATOM;
  uint32_t next = returns ? 1 : 0, base;
  ptx_space space = ptx_instr_space(instr);
  exec_access *a = decode_new_access(d, EXEC_OP_ATOMIC, space, type);
  a->takes_turns = true;
  a->atomic = exec_atomic_find(op, type, true);
  a->atomic_shared = exec_atomic_find(op, type, false);
  a->elements = 1;
  a->log2_total = (uint8_t)__builtin_ctz(a->bytes);
  a->whole = false;
  a->poll = 0;
  a->system = ptx_has(instr, PTX_MOD_SYS);
  a->slot_bytes = (uint8_t)exec_type_slot(type);
  bool wide;
  int64_t add;
  if (!decode_address(d, &instr->operands[next], space, &base, &wide, &add) || !last_is_policy(d, a)) return false;
  if (!decode_source(d, data_operand(&instr->operands[next + 1], element), type, &a->data[0])) return false;
  a->compare = a->data[0];
  if (op == PTX_MOD_CAS) { /* atom.cas d, [a], b, c: c is stored if the cell equals b */
    if (instr->operand_count < next + 3) return decode_fail(d, "atom.cas without a third operand");
    if (!decode_source(d, &instr->operands[next + 2], type, &a->compare)) return false;
  }
  uint32_t dst = 0;
  if (returns) {
    const ptx_operand *result = data_operand(&instr->operands[0], element);
    a->returns = result->kind == PTX_OPERAND_REG && !d->layout->dead[d->index];
    if (!decode_destination(d, result, type, &dst)) return false;
    if (a->returns) {
      a->trace_flags |= TRACE_RETURNS;
      a->load[0] = d->load_number[result->reg];
    }
  }
  decode_emit_access(d, a, base, wide, add + (int64_t)element * a->bytes)->dst = dst;
  return true;
}

/* Does an element's result go where a later element's operand is? */
static bool overlaps(const ptx_operand *result, const ptx_operand *data, uint32_t elements) {
  for (uint32_t e = 0; e < elements; e++)
    for (uint32_t later = e + 1; later < elements; later++) {
      const ptx_operand *to = data_operand(result, e), *from = data_operand(data, later);
      if (to->kind == PTX_OPERAND_REG && from->kind == PTX_OPERAND_REG && to->reg == from->reg) return true;
    }
  return false;
}

bool decode_atomic(decoder *d) {
  const ptx_instr *instr = d->instr;
  bool returns = instr->opcode == PTX_OP_ATOM;
  uint32_t next = returns ? 1 : 0, elements = instr->vector;
  ptx_mod op = PTX_MODS;
  for (size_t n = 0; n < sizeof atomic_ops / sizeof *atomic_ops; n++)
    if (ptx_has(instr, atomic_ops[n])) op = atomic_ops[n];
  if (!instr->type_count || instr->operand_count < next + 2) return decode_fail(d, "this form of atom or red");
  ptx_type type = instr->types[instr->type_count - 1];
  if (op == PTX_MODS || !exec_atomic_find(op, type, true))
    return decode_fail(d, "this atomic operation on .%s", ptx_type_text(type));
  const ptx_operand *data = &instr->operands[next + 1];
  if (elements > 1) {
    if (op == PTX_MOD_CAS || ptx_instr_space(instr) == PTX_SPACE_SHARED)
      return decode_fail(d, "this form of atom or red on vectors");
    if (!check_elements(d, data, elements) || (returns && !check_elements(d, &instr->operands[0], elements)))
      return false;
    if (returns && overlaps(&instr->operands[0], data, elements))
      return decode_fail(d, "a vector's results in registers of its operands");
  }
  for (uint32_t e = 0; e < elements; e++)
    if (!atomic_element(d, op, type, e)) return false;
  return true;
}

/* ---- multimem ---- */

static bool is_half(ptx_type type) {
  return type == PTX_F16 || type == PTX_BF16 || type == PTX_F16X2 || type == PTX_BF16X2;
}

static bool multimem_form(decoder *d, ptx_type type, uint32_t elements) {
  bool number = is_half(type) || type == PTX_F32 || type == PTX_F64;
  uint32_t bits = ptx_type_bits(type), whole = bits * elements;
  bool good = number ? whole == 32 || whole == 64 || whole == 128 : elements == 1 && (bits == 32 || bits == 64);
  if (type == PTX_F64 && elements != 1) good = false;
  return good ? true : decode_fail(d, "multimem of %u elements of .%s", elements, ptx_type_text(type));
}

/* What the PTX ISA gives each type; .s64 has no addition there. */
static exec_atomic_function multimem_reduction(decoder *d, ptx_type type, bool global) {
  static const ptx_mod operations[] = {PTX_MOD_ADD, PTX_MOD_MIN, PTX_MOD_MAX, PTX_MOD_AND, PTX_MOD_OR, PTX_MOD_XOR};
  for (size_t n = 0; n < sizeof operations / sizeof *operations; n++) {
    ptx_mod op = operations[n];
    exec_atomic_function function =
        !ptx_has(d->instr, op) || (op == PTX_MOD_ADD && type == PTX_S64) ? NULL : exec_atomic_find(op, type, global);
    if (function) return function;
  }
  decode_fail(d, "this multimem reduction of .%s", ptx_type_text(type));
  return NULL;
}

/* multimem.ld_reduce, multimem.st, multimem.red */
bool decode_multimem(decoder *d) {
  const ptx_instr *instr = d->instr;
  bool load = ptx_has(instr, PTX_MOD_LD_REDUCE), store = ptx_has(instr, PTX_MOD_ST);
  ptx_space space = ptx_instr_space(instr);
  if ((!load && !store && !ptx_has(instr, PTX_MOD_RED)) || instr->type_count != 1 || instr->operand_count != 2 ||
      (space != PTX_SPACE_GENERIC && space != PTX_SPACE_GLOBAL))
    return decode_fail(d, "this form of multimem");
  ptx_type type = instr->types[0];
  exec_op op = load ? EXEC_OP_LOAD : store ? EXEC_OP_STORE : EXEC_OP_ATOMIC;
  const ptx_operand *data = &instr->operands[load ? 0 : 1];
  if (!multimem_form(d, type, instr->vector) || !check_elements(d, data, instr->vector)) return false;
  exec_multimem *mm = ff_arena_alloc(d->arena, sizeof *mm);
  exec_access *made = decode_new_access(d, op, space, type), *a = &mm->access;
  *a = *made;
  a->trace_flags = TRACE_BYPASS_L1;
  bool wide_sum = ptx_has(instr, PTX_MOD_ACC__F32);
  mm->bf16 = type == PTX_BF16 || type == PTX_BF16X2;
  if (wide_sum && (!load || !ptx_has(instr, PTX_MOD_ADD) || !is_half(type)))
    return decode_fail(d, "multimem.ld_reduce.acc::f32 of .%s", ptx_type_text(type));
  if (load && !wide_sum && !(mm->reduce = multimem_reduction(d, type, false))) return false;
  if (op == EXEC_OP_ATOMIC && !(a->atomic = multimem_reduction(d, type, true))) return false;
  uint32_t base;
  bool wide;
  int64_t add;
  if (!decode_address(d, &instr->operands[load ? 1 : 0], space, &base, &wide, &add)) return false;
  if (!wide) return decode_fail(d, "a 32-bit multimem address");
  if (!data_slots(d, data, a, load, type)) return false;
  if (a->slot_bytes > 8) return decode_fail(d, "a register that is too large for .%s", ptx_type_text(type));
  if (load) set_load_numbers(d, a, data);
  a->wide = 1;
  exec_instr *i = decode_handler(d, core_multimem, mm);
  i->src[0] = base;
  i->immediate = add;
  return true;
}

/* ---- cp.async: copied at once ---- */

bool decode_async_copy(decoder *d) {
  const ptx_instr *instr = d->instr;
  if (instr->operand_count < 3 || instr->operands[2].kind != PTX_OPERAND_INT)
    return decode_fail(d, "this form of cp.async");
  uint64_t bytes = instr->operands[2].bits;
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return decode_fail(d, "cp.async of %llu bytes", (unsigned long long)bytes);
  exec_async *copy = ff_arena_alloc(d->arena, sizeof *copy);
  exec_access *from = decode_new_access(d, EXEC_OP_LOAD, PTX_SPACE_GLOBAL, PTX_B8),
              *to = decode_new_access(d, EXEC_OP_STORE, PTX_SPACE_SHARED, PTX_B8);
  copy->bytes = from->bytes = to->bytes = (uint8_t)bytes;
  from->log2_total = to->log2_total = bytes == 4 ? 2 : bytes == 8 ? 3 : 4;
  uint32_t shared, global, size = 0;
  bool wide, wide_global;
  if (!decode_address(d, &instr->operands[0], PTX_SPACE_SHARED, &shared, &wide, &copy->shared_offset)) return false;
  if (!decode_address(d, &instr->operands[1], PTX_SPACE_GLOBAL, &global, &wide_global, &copy->global_offset))
    return false;
  if (!wide_global) return decode_fail(d, "a 32-bit global address");
  if (!last_is_policy(d, from)) return false;
  copy->wide_shared = wide;
  from->wide = 1;
  to->wide = wide;
  copy->has_size = instr->operand_count > 3u + ptx_has(instr, PTX_MOD_L2__CACHE_HINT);
  if (copy->has_size && instr->operands[3].kind == PTX_OPERAND_REG &&
      d->func->regs[instr->operands[3].reg].type == PTX_PRED)
    return decode_fail(d, "cp.async with ignore-src");
  if (copy->has_size && !decode_source(d, &instr->operands[3], PTX_U32, &size)) return false;
  from->trace_flags |= TRACE_ASYNC_COPY;
  copy->from = *from;
  copy->to = *to;
  exec_instr *i = decode_move(d, EXEC_MOVE_ASYNC_COPY);
  i->unit = EXEC_UNIT_MEMORY;
  i->src[0] = shared;
  i->src[1] = global;
  i->src[2] = size;
  i->side = copy;
  return true;
}

/* cp.async.commit_group; .wait_group n; .wait_all */
bool decode_copy_group(decoder *d) {
  const ptx_instr *instr = d->instr;
  bool waits = ptx_has(instr, PTX_MOD_WAIT_GROUP);
  if (waits && (instr->operand_count != 1 || instr->operands[0].kind != PTX_OPERAND_INT))
    return decode_fail(d, "cp.async.wait_group without a number");
  exec_instr *i = decode_move(d, EXEC_MOVE_COPY_GROUP);
  i->aux = waits ? CORE_COPIES_WAIT : ptx_has(instr, PTX_MOD_WAIT_ALL) ? CORE_COPIES_WAIT_ALL : CORE_COPIES_COMMIT;
  i->immediate = waits ? (int64_t)instr->operands[0].bits : 0;
  return true;
}

/* ---- mov ---- */

typedef struct pack {
  uint32_t whole, parts;
  exec_move pack, unpack;
} pack; /* bits of the whole, number of parts */
static const pack packs[] = {
    {16, 2, EXEC_MOVE_PACK_2x8, EXEC_MOVE_UNPACK_2x8},    {32, 2, EXEC_MOVE_PACK_2x16, EXEC_MOVE_UNPACK_2x16},
    {32, 4, EXEC_MOVE_PACK_4x8, EXEC_MOVE_UNPACK_4x8},    {64, 2, EXEC_MOVE_PACK_2x32, EXEC_MOVE_UNPACK_2x32},
    {64, 4, EXEC_MOVE_PACK_4x16, EXEC_MOVE_UNPACK_4x16},  {128, 2, EXEC_MOVE_PACK_2x64, EXEC_MOVE_UNPACK_2x64},
    {128, 4, EXEC_MOVE_PACK_4x32, EXEC_MOVE_UNPACK_4x32},
};

static const pack *find_pack(decoder *d, ptx_type type, uint32_t parts) {
  for (size_t n = 0; n < sizeof packs / sizeof *packs; n++)
    if (packs[n].whole == ptx_type_bits(type) && packs[n].parts == parts) return &packs[n];
  decode_fail(d, "a vector of %u in a .%s", parts, ptx_type_text(type));
  return NULL;
}

static bool mov_pack(decoder *d, ptx_type type, const ptx_operand *vector) {
  const pack *p = find_pack(d, type, vector->element_count);
  uint32_t src[4] = {0}, dst;
  if (!p) return false;
  ptx_type part = p->whole / p->parts == 64 ? PTX_B64 : PTX_B32;
  for (uint32_t e = 0; e < p->parts; e++)
    if (!decode_source(d, &vector->elements[e], part, &src[e])) return false;
  if (!decode_destination(d, &d->instr->operands[0], type, &dst)) return false;
  exec_instr *i = decode_move(d, p->pack);
  i->dst = dst;
  memcpy(i->src, src, sizeof src);
  return true;
}

static bool mov_unpack(decoder *d, ptx_type type, const ptx_operand *vector) {
  const pack *p = find_pack(d, type, vector->element_count);
  uint32_t dst[4] = {0}, src;
  if (!p) return false;
  ptx_type part = p->whole / p->parts == 64 ? PTX_B64 : PTX_B32;
  for (uint32_t e = 0; e < p->parts; e++)
    if (!decode_destination(d, &vector->elements[e], part, &dst[e])) return false;
  if (!decode_source(d, &d->instr->operands[1], type, &src)) return false;
  exec_instr *i = decode_move(d, p->unpack);
  i->src[0] = src;
  i->dst = dst[0];
  i->dst2 = dst[1];
  if (p->parts == 4) {
    i->src[2] = dst[2];
    i->src[3] = dst[3];
  }
  return true;
}

/* mov of special registers, addresses, vectors and 128 bits. False with no error: a plain mov, not decoded here. */
bool decode_mov(decoder *d) {
  const ptx_instr *instr = d->instr;
  const ptx_operand *to = &instr->operands[0], *from = &instr->operands[1];
  if (!instr->type_count) return decode_fail(d, "mov without a type");
  ptx_type type = instr->types[0];
  uint32_t dst, src;
  if (to->kind == PTX_OPERAND_VECTOR && from->kind == PTX_OPERAND_VECTOR)
    return decode_fail(d, "mov from vector to vector");
  if (to->kind == PTX_OPERAND_VECTOR) return mov_unpack(d, type, to);
  if (from->kind == PTX_OPERAND_VECTOR) return mov_pack(d, type, from);
  uint32_t bytes = exec_type_slot(type);
  if (from->kind != PTX_OPERAND_SYMBOL && from->kind != PTX_OPERAND_SREG && bytes != 16 &&
      from->kind != PTX_OPERAND_ADDRESS)
    return false;
  ptx_operand symbol = *from; /* mov.u64 d, x[3]: the address of an element */
  if (from->kind == PTX_OPERAND_ADDRESS && from->symbol) symbol.kind = PTX_OPERAND_SYMBOL;
  if (!decode_destination(d, to, type, &dst) || !decode_source(d, &symbol, type, &src)) return false;
  exec_instr *last = d->code.count ? &d->code.items[d->code.count - 1] : NULL;
  if (last && last->index == d->index && last->dst == src && !(src & 1) && from->kind != PTX_OPERAND_REG) {
    last->dst = dst; /* the helper that made the value writes it where it belongs */
    return true;
  }
  exec_instr *i = decode_move(d, bytes == 16 ? EXEC_MOVE_COPY128 : bytes == 8 ? EXEC_MOVE_COPY64 : EXEC_MOVE_COPY32);
  i->dst = dst;
  i->src[0] = src;
  return true;
}

/* ---- mapa, getctarank ---- */

/* mapa{.shared::cluster}.type d, a, b: the address in the shared memory of the block of rank b; a generic one without a
 * space. */
bool decode_mapa(decoder *d) {
  const ptx_instr *instr = d->instr;
  ptx_type type = instr->type_count ? instr->types[0] : PTX_U64;
  bool wide = exec_type_slot(type) == 8;
  uint32_t from, rank, dst;
  if (!decode_source(d, &instr->operands[1], type, &from) || !decode_source(d, &instr->operands[2], PTX_U32, &rank) ||
      !decode_destination(d, &instr->operands[0], type, &dst))
    return false;
  bool generic = ptx_instr_space(instr) == PTX_SPACE_GENERIC;
  exec_instr *i = decode_move(d, wide ? EXEC_MOVE_MAPA64 : EXEC_MOVE_MAPA32);
  i->dst = dst;
  i->src[0] = from;
  i->src[1] = rank;
  i->immediate = generic ? (int64_t)EXEC_SHARED_WINDOW : 0;
  return true;
}

/* getctarank{.shared::cluster}.type d, a */
bool decode_getctarank(decoder *d) {
  const ptx_instr *instr = d->instr;
  ptx_type type = instr->type_count ? instr->types[0] : PTX_U64;
  bool wide = exec_type_slot(type) == 8;
  uint32_t from, dst;
  if (!decode_source(d, &instr->operands[1], type, &from) || !decode_destination(d, &instr->operands[0], PTX_U32, &dst))
    return false;
  bool generic = ptx_instr_space(instr) == PTX_SPACE_GENERIC;
  exec_instr *i = decode_move(d, wide ? EXEC_MOVE_CTARANK64 : EXEC_MOVE_CTARANK32);
  i->dst = dst;
  i->src[0] = from;
  i->immediate = generic ? (int64_t)EXEC_SHARED_WINDOW : 0;
  return true;
}

/* ---- cvta, isspacep ---- */

bool decode_cvta(decoder *d) {
  const ptx_instr *instr = d->instr;
  ptx_type type = instr->type_count ? instr->types[0] : PTX_U64;
  ptx_space space = ptx_instr_space(instr);
  uint64_t window = space == PTX_SPACE_SHARED ? EXEC_SHARED_WINDOW : space == PTX_SPACE_LOCAL ? EXEC_LOCAL_WINDOW : 0;
  if (space == PTX_SPACE_PARAM && !d->func->entry) window = EXEC_LOCAL_WINDOW;
  uint32_t src, dst;
  if (instr->operand_count < 2 || !decode_source(d, &instr->operands[1], type, &src))
    return d->error->status != FF_OK ? false : decode_fail(d, "cvta");
  if (!decode_destination(d, &instr->operands[0], type, &dst)) return false;
  bool whole = exec_type_slot(type) == 8 && !window && (space == PTX_SPACE_PARAM || space == PTX_SPACE_CONST);
  uint64_t near = 0;
  if (whole && !short_space(d, space, &near)) return false;
  if (near) src = lengthen(d, src, true, near);
  exec_instr *i = decode_move(d, exec_type_slot(type) == 8 ? EXEC_MOVE_ADD64 : EXEC_MOVE_ADD32);
  i->dst = dst;
  i->src[0] = src;
  i->immediate = ptx_has(instr, PTX_MOD_TO) ? -(int64_t)window : (int64_t)window;
  return true;
}

bool decode_isspacep(decoder *d) {
  const ptx_instr *instr = d->instr;
  uint32_t src, dst;
  if (instr->operand_count < 2 || !decode_source(d, &instr->operands[1], PTX_U64, &src))
    return d->error->status != FF_OK ? false : decode_fail(d, "isspacep");
  if (!decode_destination(d, &instr->operands[0], PTX_PRED, &dst)) return false;
  exec_move move;
  switch (ptx_instr_space(instr)) {
  case PTX_SPACE_SHARED:
    move = ptx_has(instr, PTX_MOD_SHARED__CLUSTER) ? EXEC_MOVE_IS_CLUSTER : EXEC_MOVE_IS_SHARED;
    break;
  case PTX_SPACE_LOCAL: move = EXEC_MOVE_IS_LOCAL; break;
  case PTX_SPACE_GLOBAL: move = EXEC_MOVE_IS_GLOBAL; break;
  case PTX_SPACE_CONST: move = EXEC_MOVE_IS_CONST; break;
  default: move = EXEC_MOVE_IS_FALSE; break;
  }
  exec_instr *i = decode_move(d, move);
  i->dst = dst;
  i->src[0] = src;
  return true;
}
