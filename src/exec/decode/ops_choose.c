/* SPDX-License-Identifier: Apache-2.0 */
/* From an instruction to its handler: makes the form's canonical name, looks it up, and adds what the operands say.
 *
 * An instruction with a modifier that no entry names is refused, not computed without it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "exec/instructions/ops_table.h"

/* name -> entry: made at a process's first launch, which should not feel it. A slot is 0, or 16 bits of the name's hash
 * above the entry's number among all tables, plus 1; entries are found by number through `starts`. */
struct ops_index {
  uint32_t *slots, room;
  uint32_t starts[OPS_MAX_TABLES + 1];
};

/* --- The index. --- */

static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct name_key {
  size_t length;
  uint32_t hash;
} name_key;

/* Of the name that begins here and ends before a space, or with the text. */
static inline name_key key_of(const char *name) {
  const char *at = name;
  uint32_t hash = 0;
  for (; *at && *at != ' '; at++) hash = hash * 31 + (unsigned char)*at;
  return (name_key){(size_t)(at - name), hash * 2654435761u};
}

static inline const char *next_name(const char *name, size_t length) {
  for (name += length; *name == ' '; name++) {}
  return name;
}

static const ops_entry *entry_at(const ops_set *set, const struct ops_index *index, uint32_t number) {
  int t = 0;
  while (number >= index->starts[t + 1]) t++;
  return &set->tables[t][number - index->starts[t]];
}

static bool has_name(const ops_entry *entry, const char *wanted, size_t length) {
  for (const char *name = entry->names; *name;) {
    size_t at = key_of(name).length;
    if (at == length && !memcmp(name, wanted, length)) return true;
    name = next_name(name, at);
  }
  return false;
}

/* The slot of that name, or the empty one where it belongs. */
static uint32_t *find_slot(const ops_set *set, const struct ops_index *index, const char *name, name_key key) {
  uint32_t at = key.hash & (index->room - 1);
  for (; index->slots[at]; at = (at + 1) & (index->room - 1))
    if (index->slots[at] >> 16 == key.hash >> 16 &&
        has_name(entry_at(set, index, (index->slots[at] & 0xffff) - 1), name, key.length))
      break;
  return &index->slots[at];
}

static void index_add(const ops_set *set, struct ops_index *index, const ops_entry *entry, uint32_t number) {
  for (const char *name = entry->names; *name;) {
    name_key key = key_of(name);
    *find_slot(set, index, name, key) = (key.hash & 0xffff0000u) | (number + 1);
    name = next_name(name, key.length);
  }
}

static struct ops_index *make_index(const ops_set *set) {
  struct ops_index *index = ff_alloc(sizeof *index);
  uint32_t names = 0, number = 0;
  for (int t = 0; set->tables[t]; t++) {
    const ops_entry *entry = set->tables[t];
    for (; entry->names; entry++)
      for (const char *name = entry->names; name; name = strchr(name + 1, ' ')) names++;
    index->starts[t + 1] = index->starts[t] + (uint32_t)(entry - set->tables[t]);
  }
  FF_ASSERT(names < UINT16_MAX);
  for (index->room = 64; index->room < 2 * names; index->room *= 2) {}
  index->slots = ff_alloc(index->room * sizeof *index->slots);
  for (int t = 0; set->tables[t]; t++)
    for (const ops_entry *entry = set->tables[t]; entry->names; entry++) index_add(set, index, entry, number++);
  return index;
}

static struct ops_index *index_of(ops_set *set) {
  struct ops_index *index = __atomic_load_n(&set->index, __ATOMIC_ACQUIRE);
  if (index) return index;
  pthread_mutex_lock(&index_lock);
  index = set->index;
  if (!index) __atomic_store_n(&set->index, index = make_index(set), __ATOMIC_RELEASE);
  pthread_mutex_unlock(&index_lock);
  return index;
}

const ops_entry *ops_find(ops_set *set, const char *name) {
  const struct ops_index *index = index_of(set);
  uint32_t slot = *find_slot(set, index, name, key_of(name));
  return slot ? entry_at(set, index, (slot & 0xffff) - 1) : NULL;
}

/* --- The canonical name. --- */

typedef struct form_name {
  char text[160];
  size_t length;
} form_name;

static void name_end(form_name *name, const char *text) {
  size_t length = strlen(text), room = sizeof name->text - 1 - name->length;
  if (length > room) length = room;
  memcpy(name->text + name->length, text, length);
  name->length += length;
  name->text[name->length] = '\0';
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

/* cvt to an integer from a float saturates with and without .sat. */
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
  if (instr->opcode != PTX_OP_CVT || ptx_has(instr, PTX_MOD_PACK) || instr->type_count != 2 || instr->operand_count < 2)
    return;
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

void ops_name(const ptx_func *func, const ptx_instr *instr, char *text, size_t room) {
  form_name name = {{0}, 0};
  make_name(func, instr, &name);
  snprintf(text, room, "%s", name.text);
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
    case PTX_OPERAND_NONE:
    case PTX_OPERAND_REG:
    case PTX_OPERAND_REG_PAIR:
    case PTX_OPERAND_INT:
    case PTX_OPERAND_F32:
    case PTX_OPERAND_F64: break;
    case PTX_OPERAND_SREG:
      if (instr->opcode == PTX_OP_MOV) return false;
      break;
    default: return false;
    }
  return true;
}

static uint8_t unit_of(const ptx_instr *instr) {
  switch (instr->opcode) {
  case PTX_OP_RCP:
  case PTX_OP_SQRT:
  case PTX_OP_RSQRT:
  case PTX_OP_SIN:
  case PTX_OP_COS:
  case PTX_OP_LG2:
  case PTX_OP_EX2:
  case PTX_OP_TANH: return EXEC_UNIT_SFU;
  case PTX_OP_DIV: return ptx_type_class(instr->types[0]) == 'F' ? EXEC_UNIT_SFU : EXEC_UNIT_ALU;
  case PTX_OP_MOV:
  case PTX_OP_SELP:
  case PTX_OP_SLCT: return EXEC_UNIT_ALU;
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
  /* d|p, a, b, c, lut, q: q takes the place of the table, which is in aux */
  if (boolean && instr->opcode == PTX_OP_LOP3) {
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
