/* SPDX-License-Identifier: Apache-2.0 */
/* From an instruction to its handler: makes the form's canonical name, looks it up, and adds what the operands say.
 *
 * What always holds: an instruction with a modifier that no entry names is refused, never computed without it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "exec/ops_table.h"

struct ops_index {
  ff_map map; /* name -> entry */
};

/* --- The index. --- */

static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;

static void index_add(struct ops_index *index, const ops_entry *entry) {
  const char *name = entry->names;
  while (*name) {
    size_t length = strcspn(name, " ");
    char *key = ff_alloc(length + 1);
    memcpy(key, name, length);
    ff_map_set(&index->map, key, (void *)(uintptr_t)entry);
    name += length + strspn(name + length, " ");
  }
}

static struct ops_index *index_of(ops_set *set) {
  struct ops_index *index = __atomic_load_n(&set->index, __ATOMIC_ACQUIRE);
  if (index) return index;
  pthread_mutex_lock(&index_lock);
  index = set->index;
  if (!index) {
    index = ff_alloc(sizeof *index);
    for (int t = 0; set->tables[t]; t++)
      for (const ops_entry *entry = set->tables[t]; entry->names; entry++) index_add(index, entry);
    __atomic_store_n(&set->index, index, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&index_lock);
  return index;
}

const ops_entry *ops_find(ops_set *set, const char *name) { return ff_map_get(&index_of(set)->map, name); }

/* --- The canonical name. --- */

typedef struct form_name {
  char text[160];
  size_t length;
} form_name;

static void name_end(form_name *name, const char *text) {
  int added = snprintf(name->text + name->length, sizeof name->text - name->length, "%s", text);
  if (added > 0) name->length += (size_t)added;
  if (name->length >= sizeof name->text) name->length = sizeof name->text - 1;
}
static void name_add(form_name *name, const char *word) {
  if (name->length) name_end(name, ".");
  name_end(name, word);
}

static bool combines(const ptx_instr *instr, int index) {
  if (instr->opcode != PTX_OP_SETP && instr->opcode != PTX_OP_SET && instr->opcode != PTX_OP_LOP3) return false;
  ptx_mod mod = instr->mods[index];
  return (index > 0 || instr->opcode == PTX_OP_LOP3) && (mod == PTX_MOD_AND || mod == PTX_MOD_OR || mod == PTX_MOD_XOR);
}

static bool is_integer(ptx_type type) { return ptx_type_class(type) == 'U' || ptx_type_class(type) == 'S'; }

/* cvt to an integer from a float always saturates: .sat says nothing. */
static bool redundant(const ptx_instr *instr, int index) {
  return instr->opcode == PTX_OP_CVT && instr->mods[index] == PTX_MOD_SAT && instr->type_count == 2 &&
         is_integer(instr->types[0]) && ptx_type_class(instr->types[1]) == 'F';
}

static uint32_t register_bits(const ptx_func *func, const ptx_operand *operand) {
  if (operand->kind != PTX_OPERAND_REG || !func || operand->reg >= func->reg_count) return 0;
  return ptx_type_bits(func->regs[operand->reg].type);
}

/* cvt: registers may be wider than the types: "<64" source, "@32" or "@64" destination. A 16-bit register is the
 * natural one for an 8-bit type; unsigned values look the same in 16 and 32 bits. */
static void name_widths(const ptx_func *func, const ptx_instr *instr, form_name *name) {
  if (instr->opcode != PTX_OP_CVT || ptx_has(instr, PTX_MOD_PACK) || instr->type_count != 2 || instr->operand_count < 2) return;
  const char *source = "", *destination = "";
  if (ptx_type_bits(instr->types[1]) < 64 && register_bits(func, &instr->operands[1]) == 64) source = "<64";
  uint32_t bits = register_bits(func, &instr->operands[0]);
  if (ptx_type_bits(instr->types[0]) < 64 && bits == 64) destination = "@64";
  if (ptx_type_bits(instr->types[0]) < 32 && bits == 32 && is_integer(instr->types[0])) destination = "@32";
  name_end(name, source);
  name_end(name, destination);
}

static void make_name(const ptx_func *func, const ptx_instr *instr, form_name *name) {
  name_add(name, ptx_opcode_text(instr->opcode));
  if (ops_is_video(instr->opcode)) {
    if (ops_video_suffix(instr)) name_add(name, ops_video_suffix(instr));
    return;
  }
  for (int i = 0; i < instr->mod_count; i++)
    if (!combines(instr, i) && !redundant(instr, i)) name_add(name, ptx_mod_text(instr->mods[i]));
  for (int i = 0; i < instr->type_count; i++) name_add(name, ptx_type_text(instr->types[i]));
  name_widths(func, instr, name);
  if ((instr->opcode == PTX_OP_MIN || instr->opcode == PTX_OP_MAX) && instr->operand_count == 4) name_end(name, "/3");
}

/* --- What the operands say. --- */

static uint32_t boolean_aux(const ptx_instr *instr) {
  for (int i = 0; i < instr->mod_count; i++)
    if (combines(instr, i))
      return instr->mods[i] == PTX_MOD_AND ? OPS_AUX_AND : instr->mods[i] == PTX_MOD_OR ? OPS_AUX_OR : OPS_AUX_XOR;
  return 0;
}

static uint8_t count_sources(const ops_entry *entry) {
  uint8_t count = 0;
  while (count < 4 && entry->src[count] != PTX_TYPE_NONE) count++;
  return count;
}

/* Registers and constants only: vectors, addresses, special registers and symbols are the decoder's own. */
static bool computes(const ptx_instr *instr) {
  if (instr->operand_count == 0 || instr->vector != 1) return false;
  for (int i = 0; i < instr->operand_count; i++) switch (instr->operands[i].kind) {
      case PTX_OPERAND_NONE: case PTX_OPERAND_REG: case PTX_OPERAND_REG_PAIR: case PTX_OPERAND_INT:
      case PTX_OPERAND_F32: case PTX_OPERAND_F64: break;
      case PTX_OPERAND_SREG:
        if (instr->opcode == PTX_OP_MOV) return false;
        break;
      default: return false;
    }
  return true;
}

static uint8_t unit_of(const ptx_instr *instr) {
  switch (instr->opcode) {
    case PTX_OP_RCP: case PTX_OP_SQRT: case PTX_OP_RSQRT: case PTX_OP_SIN: case PTX_OP_COS: case PTX_OP_LG2:
    case PTX_OP_EX2: case PTX_OP_TANH: return EXEC_UNIT_SFU;
    case PTX_OP_DIV: return ptx_type_class(instr->types[0]) == 'F' ? EXEC_UNIT_SFU : EXEC_UNIT_ALU;
    case PTX_OP_MOV: case PTX_OP_SELP: case PTX_OP_SLCT: return EXEC_UNIT_ALU;
    default:
      for (int i = 0; i < instr->type_count; i++)
        if (instr->types[i] == PTX_F64) return EXEC_UNIT_FP64;
      return EXEC_UNIT_ALU;
  }
}

static ff_status unsupported(const form_name *name, ff_error *error) {
  return ff_fail(error, FF_UNSUPPORTED, "no handler computes the instruction form %s", name->text);
}

ff_status ops_choose(ops_set *set, const ptx_func *func, const ptx_instr *instr, exec_choice *choice, ff_error *error) {
  form_name name = {{0}, 0};
  make_name(func, instr, &name);
  const ops_entry *entry = ops_find(set, name.text);
  if (!entry || !computes(instr)) return unsupported(&name, error);

  *choice = (exec_choice){.run = {entry->run[0], entry->run[1]},
                          .unit = unit_of(instr),
                          .sources = count_sources(entry),
                          .dst_type = entry->dst,
                          .dst2_type = entry->dst2,
                          .aux = entry->aux};
  memcpy(choice->src_type, entry->src, sizeof choice->src_type);
  if (ops_is_video(instr->opcode)) {
    if (!ops_video_aux(instr, &choice->aux, &choice->sources)) return unsupported(&name, error);
    return FF_OK;
  }
  uint32_t boolean = boolean_aux(instr);
  choice->aux |= boolean;
  if (boolean && instr->opcode == PTX_OP_LOP3) { /* d|p, a, b, c, lut, q: q takes the place of the table, which is in aux */
    if (instr->operand_count < 6) return unsupported(&name, error);
    choice->src_type[3] = PTX_PRED;
    if (instr->operands[5].negated) choice->aux |= OPS_AUX_NEGATED(3);
  } else if (boolean) {
    choice->src_type[choice->sources++] = PTX_PRED;
  }
  if (instr->operands[0].kind == PTX_OPERAND_REG_PAIR && instr->operands[0].reg2 != PTX_NO_REG) {
    choice->aux |= OPS_AUX_SECOND;
    choice->dst2_type = PTX_PRED;
  }
  if (instr->opcode == PTX_OP_LOP3 && instr->operand_count > 4) {
    if (instr->operands[4].kind != PTX_OPERAND_INT) return unsupported(&name, error);
    choice->aux |= (uint32_t)(instr->operands[4].bits & 0xff) << OPS_AUX_SHIFT;
  }
  for (int i = 0; i < choice->sources && i + 1 < instr->operand_count; i++) {
    if (!instr->operands[i + 1].negated) continue;
    if (choice->src_type[i] != PTX_PRED) return unsupported(&name, error);
    choice->aux |= OPS_AUX_NEGATED(i);
  }
  return FF_OK;
}
