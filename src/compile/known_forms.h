/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of instructions that the compiler computes itself: forms.def, with the rows of the interpreter's tables
 * that it names. */
#ifndef FF_COMPILE_KNOWN_FORMS_H
#define FF_COMPILE_KNOWN_FORMS_H

#include "exec/instructions/ops_table.h"

typedef struct compile_form {
  const ops_entry *entry;
  uint16_t op;      /* native_op */
  uint8_t kinds[5]; /* native_kind: of the destination and the sources that are read */
} compile_form;

/* All of them, as rows of that set, in forms.def's order; to be freed. That a form has no row, or a row without kinds,
 * is a bug. */
compile_form *compile_forms(ops_set *set, uint32_t *count);

#endif
