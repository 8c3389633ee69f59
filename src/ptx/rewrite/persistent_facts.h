/* SPDX-License-Identifier: Apache-2.0 */
/* What persistent.c asks of a kernel before it puts its body into a loop: how its threads leave it, and what they may
 * leave behind.
 *
 * Glossary: a value is *uniform* if all threads of a block have the same; a branch on another *divides* the block, and
 * what can be reached from it before its paths reconverge is *divided*. A *warp operation* names lanes of its warp that
 * wait for each other (a membermask), or is a barrier with a count of threads.
 *
 * If there is no reason against it: without `drains` all threads of a block pass the same barriers
 * without counts, and none leaves before another has passed the last one. With `masks` every branch at which some lanes
 * of a warp leave for good while others go on to warp operations has PTX_STEP_BALLOT. */
#ifndef FF_PTX_PERSISTENT_FACTS_H
#define FF_PTX_PERSISTENT_FACTS_H

#include "ptx/rewrite/persistent.h"
#include "ptx/rewrite/window_facts.h"

enum {                       /* what is done to an instruction, besides copying it */
       PTX_STEP_BALLOT = 1,  /* a branch: lanes that stay are told from those that leave */
       PTX_STEP_TAKEN = 2,   /* ... they stay that take it */
       PTX_STEP_MASK = 4,    /* its membermask is cut to the lanes that have stayed */
       PTX_STEP_BARRIER = 8, /* a barrier of the whole block, at which those that have left arrive too */
};

typedef struct ptx_persistent_facts { /* of one kernel */
  const char *reason;                 /* why not, or NULL; in the arena given */
  bool drains;                        /* threads may leave while others still pass barriers */
  bool reduces;                       /* ... and some of these reduce (bar.red) */
  bool masks;
  bool copies;      /* asynchronous copies may not have arrived when it ends */
  uint32_t barrier; /* a number that no barrier with a count uses */
  uint8_t *steps;   /* per instruction; free with free() */
} ptx_persistent_facts;

/* Where the membermask stands among the operands, or UINT32_MAX: it has none. */
uint32_t ptx_membermask(const ptx_instr *instr);

/* facts: one for each of module->funcs, zeroed by the caller; those of kernels with a body are filled. */
void ptx_persistent_facts_find(const ptx_module *module, const ptx_window_facts *grid,
                               const ptx_persistent_options *options, ff_arena *arena, ptx_persistent_facts *facts);

#endif
