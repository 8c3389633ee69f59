/* SPDX-License-Identifier: Apache-2.0 */
/* Programs and kernels from the inside: where variables are, which functions a kernel can reach, their decoded code.
 *
 * A kernel has its own copy of every function that it can reach, because shared memory is laid out per kernel. */
#ifndef FF_EXEC_PROGRAM_H
#define FF_EXEC_PROGRAM_H

#include "exec/core.h"

#define EXEC_ISAS 3

typedef struct exec_shared_var {
  const ptx_var *var;
  uint32_t offset;
} exec_shared_var;

typedef struct exec_code {   /* a kernel's functions for one instruction set; functions[0] is the kernel */
  exec_function **functions; /* of a very large kernel NULL until they are called (exec_kernel_decode_later) */
  ff_arena arena;
  /* handles of native.h's provider: with and without stream, uses, warps in rows, two bodies; NULL: not asked for
   * yet; and how many warp instructions launches for which it was not asked may have executed */
  void *native[16];
  uint64_t unasked;
} exec_code;

struct exec_kernel {
  exec_kernel_info info;
  exec_program *program;
  const ptx_func *func;
  const ptx_func **reach; /* every function it can call, itself first */
  uint32_t reach_count;
  uint32_t *reach_at;   /* where a function is in `reach`, + 1; 0: none: a hash table by ptx_func.index, */
  uint32_t reach_slots; /* with a power of two of slots, at least half of them empty */
  bool reaches_taken;   /* every function whose address is taken */
  bool recursive;       /* or with indirect calls: the stack is not known beforehand */
  bool prints;          /* calls vprintf */
  bool launches;        /* calls for kernels of its own: children.c */
  bool reads_reserved;  /* asks where the reserved shared memory lies (launch/reserved_shared.h) */
  bool pulls;           /* its blocks take their work from a queue (ptx/rewrite/persistent.h) */
  const exec_allocation *params_memory; /* a parameter's address is taken: they stand there; else NULL */
  const exec_allocation *workspace;     /* of its cooperative launches; NULL: there was none */
  FF_VEC(exec_shared_var) shared;
  FF_VEC(uint64_t) variables; /* info.variables */
  uint32_t pc_total;          /* PTX instructions of all its functions: trace pcs */
  uint32_t register_limit;    /* registers that a thread may have */
  exec_mark *marks;           /* exec_kernel_mark; on arena */
  uint32_t mark_count;
  exec_code code[2 * EXEC_ISAS]; /* decoded on demand; the second half is for launches that are checked */
  ff_arena arena;
};

struct exec_program {
  const ptx_module *module;
  exec_memory *memory;
  const exec_allocation **vars; /* per module variable; NULL: not in global or constant memory */
  /* while it is made: the program whose managed variables it takes; NULL: it makes its own */
  exec_program *managed_from;
  bool owns_managed;              /* frees them */
  bool borrows;                   /* all variables are another program's */
  exec_kernel **kernels;          /* by ptx_func.index; NULL: not asked for yet */
  uint64_t const_bytes;           /* of all its .const variables */
  struct exec_facts_table *facts; /* of the module's functions (function_facts.h) */
  pthread_mutex_t lock;
};

/* The address of a symbol as its own space sees it: FF_UNSUPPORTED if it has none in this kernel. The decoder places
 * .local variables and parameters of calls itself. */
ff_status exec_symbol_address(const exec_kernel *kernel, const ptx_symbol *symbol, uint64_t *address, ff_error *error);
/* Index into kernel->reach, or EXEC_NO_OFFSET. */
uint32_t exec_kernel_function(const exec_kernel *kernel, const ptx_func *func);
/* The kernel's decoded code for an instruction set (exec_isa_index). A body that was given back is read again for it:
 * FF_LIMIT where all together are more than a module may have. Thread-safe. */
ff_status exec_kernel_code(exec_kernel *kernel, const exec_isa_table *isa, const exec_code **code, ff_error *error);
/* functions[f] of that code, which is decoded now if it has not been. NULL: as above, and *error says why.
 * Thread-safe. */
const exec_function *exec_kernel_decode_later(exec_kernel *kernel, const exec_isa_table *isa, uint32_t f,
                                              ff_error *error);
uint32_t exec_isa_index(const exec_isa_table *isa); /* below 2 * EXEC_ISAS; from EXEC_ISAS on: exec_isa_checked's */
const exec_isa_table *exec_isa_numbered(uint32_t index); /* below EXEC_ISAS; NULL: the build does without it */
const char *exec_isa_name(const exec_isa_table *isa);

/* decode.c: one function; everything it makes is on `arena`. An instruction that cannot be decoded becomes one that
 * faults when it is reached. */
exec_function *exec_decode(const exec_kernel *kernel, const ptx_func *func, uint32_t pc_base, const exec_isa_table *isa,
                           ff_arena *arena);
/* Local memory of one activation, without decoding: a multiple of 16. */
uint32_t exec_local_bytes(const ptx_func *func);
uint32_t exec_stack_bytes(const ptx_func *func);
/* The packed size of a kernel's parameters. */
uint32_t exec_param_bytes(const ptx_func *func);

#endif
