/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of kernels and functions in which six registers stand for %ctaid.x ... %nctaid.z: what window.c and
 * persistent.c share.
 *
 * A kernel's copy fills the registers as its rewriting wants; a function's gets them as six added arguments, so that
 * whole chains of calls are copied. Names of copies are the originals' with a suffix behind them, or a number too if
 * that is taken.
 *
 *   ptx_grid_start -> ptx_grid_announce for each kernel -> ptx_grid_functions -> for each kernel: ptx_grid_begin,
 *   ptx_grid_add and ptx_grid_instr in the order of the new body, ptx_grid_end -> ptx_grid_print -> ptx_grid_free
 *
 * The new module has all functions of the old one, then the copies, which are allocated in the maker's arena. */
#ifndef FF_PTX_GRID_COPY_H
#define FF_PTX_GRID_COPY_H

#include "ptx/rewrite/build.h"
#include "ptx/rewrite/window_facts.h"

enum { PTX_GRID_WORDS = 6, PTX_GRID_LABELS = 6 };
#define PTX_PARAMETERS_MAX 4096u /* bytes that every GPU takes; newer ones take 32764 */

typedef struct ptx_grid_names {
  const char *suffix;                 /* "__window" */
  const char *params[PTX_GRID_WORDS]; /* of functions */
  const char *regs[PTX_GRID_WORDS];
  const char *labels[PTX_GRID_LABELS];
} ptx_grid_names;

typedef struct ptx_grid_maker {
  const ptx_module *module;
  const ptx_window_facts *facts; /* borrowed, one per function */
  const ptx_grid_names *names;
  ff_arena arena;           /* of the copies */
  ptx_func **copies;        /* per function of the module; NULL: not copied */
  ff_map taken;             /* names of the copies */
  FF_VEC(ptx_func *) funcs; /* of the new module */
} ptx_grid_maker;

typedef struct ptx_grid_register {
  const char *name;
  ptx_type type;
} ptx_grid_register;

typedef struct ptx_grid_copy { /* one function's copy in the making */
  ptx_grid_maker *m;
  const ptx_func *from;
  ptx_func *to;
  ptx_var **vars;     /* copies of from->vars, by their index there */
  uint32_t first_reg; /* the six registers; those added by the rewriting behind them */
  FF_VEC(ptx_instr) instrs;
  /* new place of each instruction, of the end of the body, and of the added labels */
  uint32_t *where;
  /* what is being rewritten: added instructions have its place; NULL: the kernel's */
  const ptx_instr *original;
} ptx_grid_copy;

void ptx_grid_start(ptx_grid_maker *m, const ptx_module *module, const ptx_window_facts *facts,
                    const ptx_grid_names *names);
/* The shell of a copy, so that others can call it; returns its name. */
const char *ptx_grid_announce(ptx_grid_maker *m, const ptx_func *from);
/* NAME with the suffix behind it, and a number if that is taken; it is taken then. In the maker's arena. */
const char *ptx_grid_free_name(ptx_grid_maker *m, const char *name, const char *suffix);
/* Copies all functions that read %ctaid or %nctaid. Before kernels are filled. */
void ptx_grid_functions(ptx_grid_maker *m);

/* Begins to fill an announced kernel: its parameters get `added` behind them, its variables `others`; their func, index
 * and symbol are set. registers: behind the six. */
void ptx_grid_begin(ptx_grid_copy *c, ptx_grid_maker *m, const ptx_func *from, ptx_var *added, uint32_t added_count,
                    ptx_var *others, uint32_t other_count, const ptx_grid_register *registers, uint32_t register_count);
/* The returned instruction may be changed until the next one is added. */
ptx_instr *ptx_grid_add(ptx_grid_copy *c, const char *opcode, const ptx_operand *operands, uint32_t count);
#define PTX_GRID_ADD(c, opcode, ...)                          \
  ptx_grid_add(c, opcode, (const ptx_operand[]){__VA_ARGS__}, \
               (uint32_t)(sizeof((const ptx_operand[]){__VA_ARGS__}) / sizeof(ptx_operand)))
/* A copy of from's instruction: operands of the copy, calls of copies. */
ptx_instr *ptx_grid_instr(ptx_grid_copy *c, const ptx_instr *from);
/* from's instruction `index` (its instr_count: the end of its body) is what is added next. */
void ptx_grid_here(ptx_grid_copy *c, uint32_t index);
/* The same for an added label; as an operand of a branch to it. */
void ptx_grid_label_here(ptx_grid_copy *c, uint32_t label);
ptx_operand ptx_grid_label(const ptx_grid_copy *c, uint32_t label);
void ptx_grid_end(ptx_grid_copy *c);

void ptx_grid_print(const ptx_grid_maker *m, ff_text *out);
void ptx_grid_free(ptx_grid_maker *m);

/* Why none of the functions that read %ctaid can be copied (an old form of PTX), in `arena`; NULL: they can. */
const char *ptx_grid_old_form(const ptx_module *module, const ptx_window_facts *facts, ff_arena *arena);
bool ptx_grid_register_parameters(const ptx_func *func);

#endif
