/* SPDX-License-Identifier: Apache-2.0 */
/* What program.c and blocks.c share: a program while it is written, and its registers.
 *
 * %r0-15, %d0-9, %h0-7, %p0-7 hold values; %t0-7, %a0-3, %q0-3 are written right before they are read; %c, %n, %g with
 * a depth count loops. %m0-3 are membermasks, %k0-7, %y0-3, %u0-3 are a block's own (blocks.c). */
#ifndef FF_TESTS_COMPILED_BLOCKS_H
#define FF_TESTS_COMPILED_BLOCKS_H

#include "forms.h"

enum { R32 = 16, R64 = 10, R16 = 8, PREDS = 8, FUNCTIONS = 3, DEPTHS = 3, MASKS = 4 };

typedef struct program {
  uint64_t state;
  const program_forms *forms;
  ff_text text;
  uint32_t labels, budget, depth, loops; /* budget: statements left; loops: how deep */
  uint32_t functions;                    /* that may be called here */
  uint32_t masks;                        /* of %m, in use */
  bool entry;                            /* in the kernel: barriers, exits */
  bool faults;                           /* this program may do what it must not */
  bool cluster;                          /* blocks are in clusters of two */
  bool recurses;                         /* the functions of program_block_functions are there */
  uint32_t slots;                        /* of results, used so far */
} program;

#define PUT(p, ...) ff_text_add(&(p)->text, __VA_ARGS__)
#define CHOOSE(p, list) (list)[pick(p, sizeof(list) / sizeof *(list))]

static inline uint32_t pick(program *p, uint32_t n) { return program_pick(&p->state, n); }
static inline bool one_in(program *p, uint32_t n) { return pick(p, n) == 0; }

/* ---- program.c ---- */

void put_statements(program *p, uint32_t most); /* 1 to `most`, fewer where the budget ends */
void put_part(program *p, uint32_t to);         /* %p<to> parts the lanes in one of the usual ways */
void put_guard(program *p, uint32_t often);
void put_source(program *p, operand_kind kind, ptx_type type);

/* ---- blocks.c ---- */

void program_block(program *p);           /* one of them, if one may stand here */
void program_block_registers(program *p); /* what all of them use, in each function */
void program_block_head(program *p);      /* in front of all functions */
void program_block_functions(program *p); /* functions that call themselves, and each other */

#endif
