/* SPDX-License-Identifier: Apache-2.0 */
/* What print.c and print_module.c share: where the text goes and how things are called in it. */
#ifndef FF_PTX_PRINT_H
#define FF_PTX_PRINT_H

#include "base/text.h"
#include "ptx/ir.h"

typedef struct ptx_printer {
  ff_text *out;
  const ptx_func *func;
  /* Names by index, or NULL: as they were written. label_names is by instruction. */
  const char **reg_names, **var_names, **label_names;
  const char **global_names, **func_names; /* of the module's variables and functions */
  const char *list_name;                   /* of the instruction's prototype or list of targets */
} ptx_printer;

const char *ptx_printed_reg(const ptx_printer *printer, uint32_t reg);
const char *ptx_printed_symbol(const ptx_printer *printer, const ptx_symbol *symbol);
void ptx_put_operand(ptx_printer *printer, const ptx_operand *operand);
void ptx_put_instr(ptx_printer *printer, const ptx_instr *instr);

#endif
