/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of program.h: one instruction form as text with places for its operands. */
#ifndef FF_TESTS_COMPILED_FORMS_H
#define FF_TESTS_COMPILED_FORMS_H

#include "exec/instructions/ops_table.h"
#include "program.h"

/* How an operand is written: a register of that kind, or (sources only) a constant of the type. */
typedef enum operand_kind { OPERAND_NONE, OPERAND_PRED, OPERAND_16, OPERAND_32, OPERAND_64 } operand_kind;

typedef struct program_form {
  const char *text; /* mnemonic, modifiers, types, as it is written */
  operand_kind dst, src[4];
  ptx_type type[4]; /* of the sources */
  uint8_t sources;
  bool compares; /* setp: d|q and .and !p are possible */
  bool lop3;     /* a table behind three sources */
  bool native;   /* the compiler has code of its own for it (compile/known_forms.h) */
} program_form;

struct program_forms {
  FF_VEC(program_form) items;
  FF_VEC(uint32_t) native;       /* which of them are: one for each handler */
  FF_VEC(exec_handler) handlers; /* theirs */
  FF_VEC(const char *) missing;
  ff_arena arena;
};

uint32_t program_pick(uint64_t *state, uint32_t n); /* below n */
/* A constant for a source of that type. */
void program_constant(uint64_t *state, ptx_type type, char *out, size_t room);
/* A video instruction without its operands' registers; out: mnemonic and types, selectors for d, a and b; true: it has
 * a source c. */
bool program_video(uint64_t *state, char *out, size_t room, char selectors[3][8]);

#endif
