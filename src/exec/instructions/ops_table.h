/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that say which handler computes which instruction form.
 *
 * A form's name is the instruction's own text without operands, in a canonical order: the mnemonic, the modifiers as
 * written, the types as written: "fma.rn.ftz.f32", "prmt.f4e.b32". An entry may have several names with spaces between
 * ("add.s32 add.u32"). Each family of instructions (ops_*.def) makes one table per instruction set; an entry without
 * names ends it. */
#ifndef FF_EXEC_OPS_TABLE_H
#define FF_EXEC_OPS_TABLE_H

#include "exec/instructions/ops.h"

/* exec_instr.aux of handlers that look at it. The bits below 1 << 8 are set from the instruction's operands and
 * modifiers; what stands above comes from the table's entry. */
#define OPS_AUX_NEGATED(i) (1u << (i)) /* predicate source i is written !p */
#define OPS_AUX_BOOLEAN 0x30u          /* setp, set: how the comparison is combined with predicate source 2 */
#define OPS_AUX_AND 0x10u
#define OPS_AUX_OR 0x20u
#define OPS_AUX_XOR 0x30u
#define OPS_AUX_SECOND 0x40u /* there is a second destination */
#define OPS_AUX_SHIFT 8      /* the entry's own value: aux >> OPS_AUX_SHIFT */

typedef enum ops_kind {
#define K(name, bytes, bits, class) OPS_K_##name,
#include "exec/instructions/ops_kinds.def"
#undef K
  OPS_KINDS
} ops_kind;

typedef struct ops_entry {
  const char *names;
  exec_handler run[2];
  ptx_type dst, dst2, src[4];
  uint32_t aux;
  uint8_t kinds[5]; /* ops_kind: of the destination and the sources, as the row has them; none: it has only types */
} ops_entry;

#define OPS_MAX_TABLES 16

/* The tables of one instruction set, and the index over their names that is made when first needed. */
typedef struct ops_set {
  const char *isa;
  const ops_entry *tables[OPS_MAX_TABLES]; /* NULL-ended */
  struct ops_index *index;
} ops_set;

/* What exec_choose_<isa> does, for any set. Thread-safe. */
ff_status ops_choose(ops_set *set, const ptx_func *func, const ptx_instr *instr, exec_choice *choice, ff_error *error);
/* The entry of that name, which ends with the text or before a space, or NULL. */
const ops_entry *ops_find(ops_set *set, const char *name);
/* The name under which the instruction would be looked up. */
void ops_name(const ptx_func *func, const ptx_instr *instr, char *text, size_t room);

/* Video instructions (ops_choose_video.c): the word that follows the mnemonic in the entry's name, or NULL; the whole
 * aux and the number of sources, or false if there is no such form. */
bool ops_is_video(ptx_opcode opcode);
const char *ops_video_suffix(const ptx_instr *instr);
bool ops_video_aux(const ptx_instr *instr, uint32_t *aux, uint8_t *sources);

/* The sets, for tests and listings. */
extern ops_set ops_set_baseline, ops_set_avx2, ops_set_avx512;
/* The set of an instruction set that this build has (EXEC_WITHOUT_...: cmake/farfault.cmake): names and forms are the
 * same in all. */
#if !EXEC_WITHOUT_baseline
#define OPS_SET_ANY ops_set_baseline
#elif !EXEC_WITHOUT_avx2
#define OPS_SET_ANY ops_set_avx2
#else
#define OPS_SET_ANY ops_set_avx512
#endif

#endif
