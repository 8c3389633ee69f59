/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of a module ask of each function that they reach, found once per function: a module with hundreds of
 * kernels, each of which may call thousands of functions by a table, would be read as often as it has kernels. Programs
 * of one module on several devices share them. They stay when a function's body does not (ptx_func_look). */
#ifndef FF_EXEC_DECODE_FUNCTION_FACTS_H
#define FF_EXEC_DECODE_FUNCTION_FACTS_H

#include "exec/core.h"

typedef struct exec_facts {
  uint32_t instr_count; /* of PTX */
  uint32_t registers;   /* the estimate */
  uint32_t local_bytes; /* of one activation, */
  uint32_t stack_bytes; /* and with what a call takes */
  bool waits;           /* it looks in a loop of its own at what other blocks may write; */
  bool waits_in_loop;   /* it looks at all: the loop may be around its call */
  bool reads_smid;      /* it reads %smid */
  bool reads_reserved;  /* it asks where the reserved shared memory lies (launch/reserved_shared.h) */
  bool pulls;           /* its blocks take their work from a queue (ptx/rewrite/persistent.h) */
  bool uses_mbarriers;
  bool prints, launches, calls_indirect;
  bool allocates;           /* on the stack, by alloca */
  const ptx_func **callees; /* called by name, each once, in order */
  uint32_t callee_count;
  const ptx_var **vars; /* its own, and those of the module that it names, each once, in order */
  uint32_t var_count;
  const ptx_func **taken; /* whose address it takes, each once, in order */
  uint32_t taken_count;
} exec_facts;

typedef struct exec_facts_table exec_facts_table;
typedef FF_VEC(const ptx_func *) exec_func_list;

/* `module` outlives the table. Free with exec_facts_free, as often as the table was made and shared. */
exec_facts_table *exec_facts_create(const ptx_module *module);
exec_facts_table *exec_facts_share(exec_facts_table *table);
void exec_facts_free(exec_facts_table *table); /* NULL: nothing */
/* Finds the facts of a function of the module, unless they are known. An unread one is read for that; it stays whole
 * where `stays` says so, or where it has shared variables of its own. What is wrong with its body is remembered, and
 * told again; FF_LIMIT, which depends on what else has been read, is not. Thread-safe. */
ff_status exec_facts_find(exec_facts_table *table, ptx_func *func, bool stays, ff_error *error);
/* Once they have been found. Thread-safe. */
const exec_facts *exec_facts_of(exec_facts_table *table, const ptx_func *func);
/* The functions whose address is taken somewhere in the module, each once: a kernel with an indirect call may reach
 * them. Every body is looked at for that, once, unless a process did so before. One that is wrong takes none, as
 * nothing in it can run: it is an error of what reaches it. The list is the table's. Thread-safe. */
ff_status exec_facts_taken(exec_facts_table *table, const exec_func_list **taken, ff_error *error);
/* Before anything else asks: takes from the disk what a process left there (facts_store.h), the facts of most functions
 * and that list. False: there is nothing. Thread-safe. */
bool exec_facts_recall(exec_facts_table *table);

#endif
