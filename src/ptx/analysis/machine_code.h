/* SPDX-License-Identifier: Apache-2.0 */
/* What a compiler makes of a PTX function for the machine, estimated without one: how many machine instructions each
 * PTX instruction becomes, which execution pipes they go to, and how long the chains of their dependences are.
 *
 * The pipes are those of NVIDIA's documentation (Nsight Compute, "Pipelines"): FMA has fp32 arithmetic and integer
 * multiplication, ALU the other integer, logic and comparison instructions, XU special functions and conversions,
 * LSU shared and local memory. Sequences (division, 64-bit integers, square roots) are as long as the code that ptxas
 * makes for compute capability 7.x: docs/timing-evidence.md compares the counts. */
#ifndef FF_PTX_MACHINE_CODE_H
#define FF_PTX_MACHINE_CODE_H

#include "ptx/analysis/cfg.h"

/* Counts of one PTX instruction; the same order as trace_unit (trace/stream.h). */
typedef enum ptx_pipe {
  PTX_PIPE_SLOTS,  /* machine instructions: each takes its scheduler for a cycle */
  PTX_PIPE_FMA,    /* of them, on each pipe: fp32, integer products; a 64-bit product has it twice as long */
  PTX_PIPE_ALU,    /* memory instructions, too, whose addresses and data take as long to be read */
  PTX_PIPE_XU,     /* special functions, conversions between integers and floats, population counts */
  PTX_PIPE_FP64,   /* double precision */
  PTX_PIPE_LSU,    /* shared and local memory, shuffles */
  PTX_PIPE_TENSOR, /* in 512 multiply-adds of half precision */
  PTX_PIPE_CHAIN,  /* what it adds to its block's longest chain of dependences: cycles, where an addition takes four */
  PTX_PIPE_LOADS,  /* and loads from shared memory in that chain */
  PTX_PIPE_PRODUCTS, /* of FMA: multiplications of integers, which half of the lanes of some GPUs make */
  PTX_PIPE_HALF,     /* half precision, not in FMA */
  PTX_PIPE_MINMAX,   /* of ALU: minima and maxima of integers up to 32 bits, which some GPUs compare and select for */
  PTX_PIPES
} ptx_pipe;

enum { PTX_COST_MAX = 127 }; /* of a count; what is longer counts as that */

typedef struct ptx_cost {
  uint8_t count[PTX_PIPES];
} ptx_cost;

/* The cost of each instruction, instr_count of them, to be freed with free(). CHAIN and LOADS of a basic block's
 * instructions add up to its longest chain of dependences. */
ptx_cost *ptx_machine_code(const ptx_func *func, const ptx_cfg *cfg);

#endif
