/* SPDX-License-Identifier: Apache-2.0 */
/* What the two makers of modules, the parser and the linker, do last, and how bodies are read later. */
#ifndef FF_PTX_MODULE_H
#define FF_PTX_MODULE_H

#include "ptx/ir.h"
#include "ptx/syntax/lex.h"

/* How the body of a function is read, and what it has while it is there. It is on the module's arena. */
struct ptx_later {
  ptx_lexer lexer; /* in front of the '{', or, as long as has_head is not set, behind `.entry` */
  const char *end; /* behind the body's '}' */
  bool has_head;   /* the function has its parameters */
  /* of a linked module: the function whose body it takes over, its module's number, what is added to numbers of files;
   * else NULL */
  ptx_func *from;
  uint32_t module, file_base;
  ff_arena arena;                                   /* of the body */
  uint64_t registers, register_text, targets, data; /* what it has of the limits of the module that was parsed */
  ptx_var **head_vars;                              /* func->vars without a body */
  uint32_t head_var_count;
};

/* Fills the name maps from the lists, which must be complete. */
void ptx_module_index(ptx_module *module);
/* module_check.c: asserts the invariants of a module that is complete; of one function of it. */
void ptx_module_check(const ptx_module *module);
void ptx_func_check(const ptx_func *func);
/* parse.c: what its parser still holds; it has none then. */
void ptx_parser_free(ptx_module *module);
/* linker.c: the modules whose texts a module with unread bodies was made of: itself, or those that were linked, as long
 * as it lives. NULL: it has no unread ones. */
ptx_module *const *ptx_module_made_of(ptx_module *const *module, uint32_t *count);
/* linker.c: what the linker still holds; the parts of ptx_func_read and ptx_func_read_head for a linked function. */
void ptx_linker_free(ptx_module *module);
ff_status ptx_linked_read(ptx_func *func, ff_error *error);
ff_status ptx_linked_read_head(ptx_func *func, ff_error *error);
/* parse_later.c: takes the body away, of a function that stays unread; the same of one that has been read. */
void ptx_later_drop(ptx_func *func);
void ptx_func_forget(ptx_func *func);
/* What stands behind the parameters. A limit of registers that `func` was given from outside stays if `from` has
 * none. */
void ptx_func_take_directives(ptx_func *func, const ptx_func *from);

#endif
