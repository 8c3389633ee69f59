/* SPDX-License-Identifier: Apache-2.0 */
/* See machine_code.h. Each PTX instruction has a cost of its own (`single`), from which what a compiler folds into a
 * neighbour is taken (`fold_...`); then each basic block's longest chain is divided among its instructions. */
#include "ptx/analysis/machine_code.h"

#include <stdio.h>
#include <stdlib.h>

#include "ptx/analysis/dataflow.h"
#include "ptx/analysis/lane_facts.h"
#include "ptx/analysis/shared_loads.h"

enum { /* latencies in cycles, where that of an addition is four */
       ADD = 4,
       CROSS = 1,      /* more from one pipe to another */
       PREDICATE = 12, /* from a comparison to what its predicate guards */
       BRANCH = 5,     /* one that may be taken or not: what ptxas leaves behind it */
       TAKEN = 9,      /* 8.7, on an RTX 2080 SUPER (below) */
       /* of the XU: MUFU, POPC, FLO, I2F, F2I on a TU102 (connollydavid/tu102), MUFU on an RTX 2080 SUPER; 14 on a V100
        * (Jia 2018) */
       SPECIAL = 15,
       WITH_SPECIAL = SPECIAL + ADD + 2 * CROSS, /* of one there and an addition: 21 on a TU102 */
       DOUBLE = 8,
       SREG = 20,
       /* on GA100 and GA102: 22.7 and 41.7 (arabel1a/gpu-micro-bench); a shuffle takes 25 on a TU102 */
       SHUFFLE = 23,
       REDUCTION = 42,
       /* What a compare-and-swap in shared memory takes more than an addition: TU102, 37 for 25, of which eight are a
        * sum's that makes the new value: what ptxas leaves between the two there. */
       SWAP = 4,
       SYNC = 6, /* from one bar.warp.sync to the next, on the same */
       /* of floats, rounded to nearest, on an RTX 2080 SUPER (arabel1a/gpu-micro-bench) */
       QUOTIENT = 41,
       QUOTIENT_BY_KNOWN = 34, /* the reciprocal of a number that is known is made by the compiler */
       ROOT = 39,              /* the same */
       RECIPROCAL = 56,        /* the same */
};
enum {
  SHORT = 7 /* instructions that a branch jumps over and a compiler gives a predicate instead */
};

typedef struct sequence { /* the machine instructions that a PTX instruction becomes, and its latency */
  uint8_t fma, alu, xu, fp64, half, other, cycles;
  uint8_t products; /* of fma: of integers */
  uint8_t minmax;   /* of alu */
} sequence;

static ptx_cost cost_of(sequence s) {
  ptx_cost cost = {{0}};
  cost.count[PTX_PIPE_SLOTS] = (uint8_t)(s.fma + s.alu + s.xu + s.fp64 + s.half + s.other);
  cost.count[PTX_PIPE_FMA] = s.fma;
  cost.count[PTX_PIPE_ALU] = s.alu;
  cost.count[PTX_PIPE_XU] = s.xu;
  cost.count[PTX_PIPE_FP64] = s.fp64;
  cost.count[PTX_PIPE_CHAIN] = s.cycles;
  cost.count[PTX_PIPE_PRODUCTS] = s.products;
  cost.count[PTX_PIPE_HALF] = s.half;
  cost.count[PTX_PIPE_MINMAX] = s.minmax;
  return cost;
}

#define NOTHING ((sequence){0})
#define ALU(n) ((sequence){.alu = (n), .cycles = (n)*ADD})
#define FMA(n) ((sequence){.fma = (n), .cycles = (n)*ADD})
#define PRODUCT ((sequence){.fma = 1, .products = 1, .cycles = ADD})
/* At the slower of both rates: 16 results per clock and SM where doubles have 32 or 64, 2 where they have 2 (NVIDIA's
 * programming guide). */
#define DOUBLE_CONVERSION ((sequence){.xu = 1, .fp64 = 1, .cycles = SPECIAL})
#define HALF ((sequence){.half = 1, .cycles = ADD})
#define MINMAX ((sequence){.alu = 1, .minmax = 1, .cycles = ADD})

static ptx_type type_of(const ptx_instr *instr) { return instr->type_count ? instr->types[0] : PTX_TYPE_NONE; }
static bool is_float(ptx_type type) { return ptx_type_class(type) == 'F'; }
static bool is_half(ptx_type type) {
  return type == PTX_F16 || type == PTX_F16X2 || type == PTX_BF16 || type == PTX_BF16X2;
}
static bool is_long(ptx_type type) { return ptx_type_bits(type) == 64; }

/* ---- integers ---- */

static sequence product(const ptx_instr *instr) {
  bool adds = instr->opcode == PTX_OP_MAD || instr->opcode == PTX_OP_MADC;
  if (!is_long(type_of(instr))) return PRODUCT;
  if (ptx_has(instr, PTX_MOD_HI))
    return (sequence){.fma = 7, .products = 7, .alu = (uint8_t)(5 + 2 * adds), .cycles = 6 * ADD};
  return (sequence){.fma = 4, .products = 4, .alu = 1, .cycles = 3 * ADD};
}

static sequence quotient(ptx_type type) {
  if (is_long(type)) return (sequence){.fma = 22, .products = 22, .alu = 36, .xu = 3, .other = 2, .cycles = 127};
  return (sequence){.fma = 6, .products = 6, .alu = 10, .xu = 3, .cycles = 3 * SPECIAL + 9 * ADD};
}

static sequence integer(const ptx_instr *instr) {
  ptx_type type = type_of(instr);
  bool wide = is_long(type);
  switch (instr->opcode) {
  case PTX_OP_MUL:
  case PTX_OP_MAD:
  case PTX_OP_MADC: return product(instr);
  case PTX_OP_MUL24:
  case PTX_OP_MAD24: return (sequence){.fma = 1, .products = 1, .alu = 1, .cycles = 2 * ADD};
  case PTX_OP_DIV:
  case PTX_OP_REM: return quotient(type);
  case PTX_OP_DP2A:
  case PTX_OP_DP4A: return PRODUCT;
  case PTX_OP_MIN:
  case PTX_OP_MAX: return wide ? (sequence){.alu = 4, .cycles = 3 * ADD} : MINMAX;
  case PTX_OP_ABS: return wide ? ALU(3) : ALU(1);
  case PTX_OP_POPC:
  case PTX_OP_BREV: return (sequence){.xu = wide ? 2 : 1, .cycles = SPECIAL};
  case PTX_OP_CLZ:
  case PTX_OP_BFIND:
  case PTX_OP_FNS: return (sequence){.xu = wide ? 2 : 1, .alu = 1, .cycles = SPECIAL + ADD};
  case PTX_OP_BFE: return wide ? ALU(4) : ALU(2);
  case PTX_OP_BFI: return wide ? ALU(4) : ALU(2);
  case PTX_OP_NEG:
  case PTX_OP_NOT:
    if (type == PTX_PRED) return NOTHING;
    break;
  default: break;
  }
  return wide ? (sequence){.alu = 2, .cycles = 2 * ADD} : ALU(1);
}

/* ---- floats ---- */

static sequence doubles(ptx_opcode opcode) {
  switch (opcode) {
  case PTX_OP_DIV:
    return (sequence){.fp64 = 8, .fma = 1, .alu = 3, .xu = 1, .other = 1, .cycles = SPECIAL + 9 * DOUBLE};
  case PTX_OP_SQRT:
  case PTX_OP_RSQRT: return (sequence){.fp64 = 8, .alu = 4, .xu = 1, .other = 1, .cycles = SPECIAL + 9 * DOUBLE};
  case PTX_OP_RCP: return (sequence){.fp64 = 5, .alu = 4, .xu = 1, .other = 1, .cycles = SPECIAL + 6 * DOUBLE};
  case PTX_OP_MIN:
  case PTX_OP_MAX: return (sequence){.fp64 = 1, .alu = 4, .cycles = 4 * ADD};
  case PTX_OP_NEG:
  case PTX_OP_ABS: return NOTHING;
  default: return (sequence){.fp64 = 1, .cycles = DOUBLE};
  }
}

/* With subnormal numbers, what goes to the XU is scaled before and behind it. */
static sequence special(const ptx_instr *instr) {
  bool flushes = ptx_has(instr, PTX_MOD_FTZ), exact = !ptx_has(instr, PTX_MOD_APPROX) && !ptx_has(instr, PTX_MOD_FULL);
  switch (instr->opcode) {
  case PTX_OP_DIV:
    if (exact && instr->operand_count == 3 && instr->operands[2].kind == PTX_OPERAND_F32)
      return (sequence){.fma = 5, .xu = 1, .other = 2, .cycles = QUOTIENT_BY_KNOWN};
    if (exact) return (sequence){.fma = 5, .xu = 2, .other = 2, .cycles = QUOTIENT};
    return (sequence){.fma = flushes ? 1 : 2,
                      .alu = flushes ? 0 : 2,
                      .xu = 1,
                      .cycles = flushes ? WITH_SPECIAL : SPECIAL + 2 * ADD + PREDICATE};
  case PTX_OP_SQRT:
    if (exact) return (sequence){.fma = 4, .alu = 2, .xu = 1, .other = 1, .cycles = ROOT};
    break;
  case PTX_OP_RCP:
    if (exact) return (sequence){.fma = 3, .alu = 3, .xu = 1, .other = 1, .cycles = RECIPROCAL};
    break;
  case PTX_OP_SIN:
  case PTX_OP_COS: return (sequence){.fma = 1, .xu = 1, .cycles = WITH_SPECIAL};
  case PTX_OP_EX2:
  case PTX_OP_TANH: return (sequence){.xu = 1, .cycles = SPECIAL};
  default: break;
  }
  return flushes ? (sequence){.xu = 1, .cycles = SPECIAL}
                 : (sequence){.fma = 2, .alu = 1, .xu = 1, .cycles = SPECIAL + ADD + PREDICATE};
}

static sequence floats(const ptx_instr *instr) {
  ptx_type type = type_of(instr);
  if (type == PTX_F64) return doubles(instr->opcode);
  switch (instr->opcode) {
  case PTX_OP_NEG:
  case PTX_OP_ABS: return NOTHING;
  case PTX_OP_MIN:
  case PTX_OP_MAX:
  case PTX_OP_COPYSIGN:
  case PTX_OP_TESTP: return ALU(1);
  case PTX_OP_DIV:
  case PTX_OP_SQRT:
  case PTX_OP_RSQRT:
  case PTX_OP_RCP:
  case PTX_OP_SIN:
  case PTX_OP_COS:
  case PTX_OP_LG2:
  case PTX_OP_EX2:
  case PTX_OP_TANH: return special(instr);
  default: break;
  }
  if (is_half(type)) return HALF;
  return type == PTX_F32X2 ? (sequence){.fma = 2, .cycles = ADD} : FMA(1);
}

static sequence comparison(const ptx_instr *instr) {
  for (uint32_t i = 0; i < instr->type_count; i++)
    if (instr->types[i] == PTX_F64) return (sequence){.fp64 = 1, .cycles = DOUBLE + ADD};
  return is_long(instr->types[instr->type_count ? instr->type_count - 1 : 0]) ? ALU(2) : ALU(1); /* and PREDICATE */
}

/* Of two floats to half precision each is rounded by itself, at the XU's rate (TU102: one F2F in two cycles of an SM;
 * the programming guide's 16 results per clock of 9.0 and 12.0). */
static sequence conversion(const ptx_instr *instr) {
  if (instr->type_count < 2) return ALU(1);
  ptx_type to = instr->types[0], from = instr->types[1];
  if (from == PTX_F32 && (to == PTX_F16X2 || to == PTX_BF16X2)) return (sequence){.xu = 2, .cycles = SPECIAL};
  if (from == PTX_F32 && (to == PTX_F16 || to == PTX_BF16)) return (sequence){.xu = 1, .cycles = SPECIAL};
  if (to == PTX_F64 || from == PTX_F64) return DOUBLE_CONVERSION;
  if (is_float(to) != is_float(from)) return (sequence){.xu = 1, .cycles = SPECIAL};
  uint32_t to_bits = ptx_type_bits(to), from_bits = ptx_type_bits(from);
  if (is_float(to)) {
    if (to_bits == from_bits && !ptx_has(instr, PTX_MOD_SAT)) return (sequence){.xu = 1, .cycles = SPECIAL};
    if (to_bits <= from_bits) return ALU(1);
    return from == PTX_F16 ? HALF : PRODUCT; /* a sum with zero; a shift, as a product */
  }
  if (ptx_has(instr, PTX_MOD_SAT)) return ALU(2);
  bool extends = to_bits > from_bits && (ptx_type_class(from) == 'S' || from_bits < 32);
  return extends ? ALU(1) : NOTHING;
}

/* ---- memory, matrices, control ---- */

static ptx_cost on_chip(uint32_t slots, bool waits) {
  ptx_cost cost = cost_of((sequence){.other = (uint8_t)slots});
  cost.count[PTX_PIPE_LSU] = (uint8_t)slots;
  cost.count[PTX_PIPE_LOADS] = waits;
  return cost;
}

static ptx_cost memory(const ptx_instr *instr) {
  bool store = instr->opcode == PTX_OP_ST || instr->opcode == PTX_OP_RED;
  switch (ptx_instr_space(instr)) {
  case PTX_SPACE_PARAM: return cost_of(NOTHING);
  case PTX_SPACE_CONST:
    return instr->operand_count > 1 && instr->operands[1].kind == PTX_OPERAND_ADDRESS &&
                   instr->operands[1].reg == PTX_NO_REG
               ? cost_of(NOTHING)
               : on_chip(1, true);
  case PTX_SPACE_SHARED: {
    ptx_cost cost = on_chip(1, !store);
    if (instr->opcode == PTX_OP_ATOM && ptx_has(instr, PTX_MOD_CAS)) cost.count[PTX_PIPE_CHAIN] = SWAP;
    return cost;
  }
  case PTX_SPACE_LOCAL: return on_chip(1, false); /* its load is waited for as those from global memory */
  default: return cost_of((sequence){.alu = 1});
  }
}

/* Several loads or stores; what they have the banks for beyond the first pass of each is counted when it runs. */
static ptx_cost fragments(const ptx_instr *instr) {
  if (ptx_instr_space(instr) != PTX_SPACE_SHARED) return cost_of((sequence){.alu = 4});
  ptx_cost cost = on_chip(4, false);
  cost.count[PTX_PIPE_LOADS] = ptx_has(instr, PTX_MOD_LOAD);
  return cost;
}

/* One instruction that has shared memory for a pass per matrix: eight cycles of a TU102's SM for four, whose unit takes
 * 16 lanes at once. */
static ptx_cost rows(const ptx_instr *instr, bool load) {
  ptx_cost cost = on_chip(1, load);
  cost.count[PTX_PIPE_LSU] = ptx_has(instr, PTX_MOD_X4) ? 4 : ptx_has(instr, PTX_MOD_X2) ? 2 : 1;
  return cost;
}

/* Multiply-adds of the shape in the instruction's name; 0: it has none. */
static uint64_t multiply_adds(const ptx_instr *instr) {
  for (uint32_t i = 0; i < instr->mod_count; i++) {
    unsigned m, n, k;
    if (sscanf(ptx_mod_text(instr->mods[i]), "m%un%uk%u", &m, &n, &k) == 3) return (uint64_t)m * n * k;
  }
  return 0;
}

/* wgmma is of four warps. Eight-bit types go at twice the rate of 16-bit ones, tf32 at half; four and six bits that
 * stand in bytes go as bytes, and at four times the rate where all are of four bits. Doubles go at a sixteenth (A100
 * and Hopper whitepapers: 64 of 1024, 128 of 2048 multiply-adds per clock and SM). Of a sparse A half of the elements
 * are there, and only those take time (A100 and GA102 whitepapers: twice the multiply-adds per clock). A product of
 * 1024 multiply-adds of half precision is there after 17.7 cycles on an A100, one of 2048 after 24.7, the same for
 * other types and sparse ones (Sun et al. 2022, arXiv:2206.02874, tables 3 and 6). */
static ptx_cost matrix(const ptx_instr *instr) {
  bool group = instr->opcode == PTX_OP_WGMMA;
  uint32_t bits = 16;
  for (uint32_t i = 0; i < instr->type_count; i++)
    if (instr->types[i] == PTX_TF32 || instr->types[i] == PTX_F64 || ptx_type_bits(instr->types[i]) < 16)
      bits = ptx_type_bits(instr->types[i]);
  if (bits == 64) bits = 16 * 16;
  if (ptx_has(instr, PTX_MOD_KIND__F8F6F4) || ptx_has(instr, PTX_MOD_KIND__MXF8F6F4)) bits = 8;
  if (ptx_has(instr, PTX_MOD_KIND__MXF4) || ptx_has(instr, PTX_MOD_KIND__MXF4NVF4)) bits = 4;
  bool sparse = ptx_has(instr, PTX_MOD_SP) || ptx_has(instr, PTX_MOD_SP__ORDERED_METADATA);
  uint64_t work = multiply_adds(instr) / (sparse ? 2 : 1) * (bits < 4 ? 4 : bits) / 16 / (group ? 4 : 1);
  uint64_t units = (work + 511) / 512;
  if (units > PTX_COST_MAX) units = PTX_COST_MAX;
  uint8_t cycles = (uint8_t)(group ? 0 : 11 + 7 * (units < 4 ? units : 4) / 2);
  ptx_cost cost = cost_of((sequence){.other = (uint8_t)((units + 3) / 4), .cycles = cycles});
  cost.count[PTX_PIPE_TENSOR] = (uint8_t)units;
  return cost;
}

/* tcgen05: a load or store of tensor memory has a pass for each register. What mma multiplies is known when it runs
 * (core_trace_tensor). */
static ptx_cost tensor_memory(const ptx_instr *instr) {
  bool load = ptx_has(instr, PTX_MOD_LD), store = ptx_has(instr, PTX_MOD_ST);
  if ((!load && !store) || !instr->operand_count) return cost_of((sequence){.other = 1});
  const ptx_operand *registers = &instr->operands[load ? 0 : instr->operand_count - 1];
  uint32_t count = registers->kind == PTX_OPERAND_VECTOR ? registers->element_count : 1;
  ptx_cost cost = on_chip(1, load);
  cost.count[PTX_PIPE_LSU] = (uint8_t)(count < PTX_COST_MAX ? count : PTX_COST_MAX);
  return cost;
}

static ptx_cost shuffle(void) {
  ptx_cost cost = on_chip(1, false);
  cost.count[PTX_PIPE_CHAIN] = SHUFFLE;
  return cost;
}

static ptx_cost wide_product(void) { /* one instruction that has its pipe twice as long */
  ptx_cost cost = cost_of((sequence){.fma = 2, .products = 2, .cycles = ADD});
  cost.count[PTX_PIPE_SLOTS] = 1;
  return cost;
}

static ptx_cost single(const ptx_instr *instr) {
  switch (instr->opcode) {
  case PTX_OP_MOV:
    for (uint32_t i = 1; i < instr->operand_count; i++)
      if (instr->operands[i].kind == PTX_OPERAND_SREG) return cost_of((sequence){.other = 1, .cycles = SREG});
    return cost_of(NOTHING);
  case PTX_OP_CVTA:
  case PTX_OP_ALLOCA:
  case PTX_OP_STACKSAVE:
  case PTX_OP_STACKRESTORE:
  case PTX_OP_PMEVENT: return cost_of(NOTHING);
  case PTX_OP_LD:
  case PTX_OP_LDU:
  case PTX_OP_ST:
  case PTX_OP_ATOM:
  case PTX_OP_MULTIMEM:
  case PTX_OP_RED: return memory(instr);
  case PTX_OP_SHFL: return shuffle();
  case PTX_OP_REDUX: return cost_of((sequence){.xu = 1, .other = 1, .cycles = REDUCTION});
  case PTX_OP_MBARRIER: return on_chip(1, true);
  case PTX_OP_LDMATRIX: return rows(instr, true);
  case PTX_OP_STMATRIX: return rows(instr, false);
  case PTX_OP_MATCH: return on_chip(2, true);
  case PTX_OP_MOVMATRIX: return on_chip(2, true);
  case PTX_OP_WMMA:
    if (ptx_has(instr, PTX_MOD_MMA)) return matrix(instr);
    return fragments(instr);
  case PTX_OP_MMA:
  case PTX_OP_WGMMA: return matrix(instr);
  case PTX_OP_TCGEN05: return tensor_memory(instr);
  case PTX_OP_SET:
  case PTX_OP_SETP: return cost_of(comparison(instr));
  case PTX_OP_SELP:
  case PTX_OP_SLCT: return cost_of(is_long(type_of(instr)) ? (sequence){.alu = 2, .cycles = ADD} : ALU(1));
  case PTX_OP_CVT: {
    ptx_cost cost = cost_of(conversion(instr));
    if (cost.count[PTX_PIPE_FP64]) cost.count[PTX_PIPE_SLOTS] = 1;
    return cost;
  }
  case PTX_OP_CALL: return cost_of((sequence){.other = 4, .cycles = 4 * BRANCH});
  case PTX_OP_BRA: return cost_of((sequence){.other = 1, .cycles = instr->guard == PTX_NO_REG ? TAKEN : BRANCH});
  case PTX_OP_BRX: return cost_of((sequence){.other = 1, .cycles = TAKEN});
  case PTX_OP_RET: return cost_of((sequence){.other = 1, .cycles = BRANCH});
  case PTX_OP_BAR:
    if (ptx_has(instr, PTX_MOD_WARP)) return cost_of((sequence){.other = 1, .cycles = SYNC});
    return cost_of((sequence){.other = 1});
  case PTX_OP_EXIT:
  case PTX_OP_BARRIER:
  case PTX_OP_FENCE:
  case PTX_OP_MEMBAR:
  case PTX_OP_NANOSLEEP: return cost_of((sequence){.other = 1});
  default: break;
  }
  if (ptx_has(instr, PTX_MOD_WIDE)) return wide_product();
  return cost_of(is_float(type_of(instr)) ? floats(instr) : integer(instr));
}

/* ---- what a compiler folds ---- */

typedef struct folding {
  const ptx_func *func;
  ptx_cost *costs;
  uint32_t *uses;     /* per register: how many operands read it */
  uint32_t *defined;  /* per register: 1 + the instruction of this block that writes it; 0: none */
  bool *folded;       /* per instruction: it is part of another machine instruction, or has another in it */
  bool *shifts;       /* per instruction: what it has in it is a shift */
  uint32_t *versions; /* per register: how often it has been written so far */
  touched t;
} folding;

static bool is_logic(ptx_opcode opcode) { return opcode == PTX_OP_AND || opcode == PTX_OP_OR || opcode == PTX_OP_XOR; }
static bool is_sum(ptx_opcode opcode) { return opcode == PTX_OP_ADD || opcode == PTX_OP_SUB; }

/* The instruction that makes the operand, if it is in this block and not folded yet; NULL: none. */
static const ptx_instr *maker(const folding *f, const ptx_operand *operand, uint32_t *number) {
  if (operand->kind != PTX_OPERAND_REG || !f->defined[operand->reg]) return NULL;
  *number = f->defined[operand->reg] - 1;
  return f->folded[*number] || f->func->instrs[*number].guard != PTX_NO_REG ? NULL : &f->func->instrs[*number];
}

/* Two sums or logic operations in one instruction of three operands (IADD3, LOP3), a shift in a sum (LEA), a product
 * of 64 bits in a sum (IMAD.WIDE). */
static void fold_instruction(folding *f, uint32_t n) {
  const ptx_instr *instr = &f->func->instrs[n];
  ptx_type type = type_of(instr);
  if (is_float(type) || type == PTX_PRED || (!is_sum(instr->opcode) && !is_logic(instr->opcode))) return;
  for (uint32_t i = 1; i < instr->operand_count; i++) {
    uint32_t other;
    const ptx_instr *from = maker(f, &instr->operands[i], &other);
    if (!from) continue;
    bool once = f->uses[instr->operands[i].reg] == 1;
    bool pair = once && ((is_sum(instr->opcode) && is_sum(from->opcode)) ||
                         (is_logic(instr->opcode) && is_logic(from->opcode)));
    bool shift = once && is_sum(instr->opcode) && from->opcode == PTX_OP_SHL;
    bool product = is_sum(instr->opcode) && is_long(type) && from->opcode == PTX_OP_MUL && ptx_has(from, PTX_MOD_WIDE);
    if (product) {
      f->costs[n] = wide_product();
      f->costs[other] = cost_of(NOTHING);
      return;
    }
    if (!pair && !shift) continue;
    f->costs[other] = cost_of(NOTHING);
    f->folded[other] = f->folded[n] = true;
    f->shifts[n] = shift;
    return;
  }
}

static void fold_block(folding *f, const ptx_block *block) {
  for (uint32_t n = block->first; n < block->end; n++) {
    fold_instruction(f, n);
    ptx_touched(&f->func->instrs[n], &f->t);
    for (uint32_t k = 0; k < f->t.writes; k++) f->defined[f->t.regs[f->t.reads + k]] = n + 1;
  }
  for (uint32_t n = block->first; n < block->end; n++) {
    ptx_touched(&f->func->instrs[n], &f->t);
    for (uint32_t k = 0; k < f->t.writes; k++) f->defined[f->t.regs[f->t.reads + k]] = 0;
  }
}

static void count_uses(folding *f) {
  for (uint32_t n = 0; n < f->func->instr_count; n++) {
    ptx_touched(&f->func->instrs[n], &f->t);
    for (uint32_t k = 0; k < f->t.reads; k++) f->uses[f->t.regs[k]]++;
  }
}

/* Whether the instruction may as well be a multiplication: a sum of two (IMAD.IADD), a shift left by a known amount
 * (IMAD.SHL) or that and a sum (IMAD). Of 64 bits none is. */
static bool may_multiply(const folding *f, uint32_t n) {
  const ptx_instr *instr = &f->func->instrs[n];
  const uint8_t *count = f->costs[n].count;
  if (count[PTX_PIPE_SLOTS] != 1 || count[PTX_PIPE_ALU] != 1 || ptx_type_bits(type_of(instr)) != 32) return false;
  if (instr->opcode == PTX_OP_SHL) return instr->operand_count == 3 && instr->operands[2].kind == PTX_OPERAND_INT;
  if (!is_sum(instr->opcode) || is_float(type_of(instr))) return false;
  if (ptx_has(instr, PTX_MOD_CC) || ptx_has(instr, PTX_MOD_SAT)) return false;
  return !f->folded[n] || f->shifts[n];
}

/* A compiler gives the FMA pipe what the ALU has too much of: in a block that is full of integers ptxas makes shifts,
 * and every second sum, multiplications, until both pipes have as much to do but for one. */
static void balance_block(folding *f, const ptx_block *block) {
  uint32_t alu = 0, fma = 0, sums = 0;
  for (uint32_t n = block->first; n < block->end; n++) {
    alu += f->costs[n].count[PTX_PIPE_ALU];
    fma += f->costs[n].count[PTX_PIPE_FMA];
  }
  for (uint32_t n = block->first; n < block->end && fma + 2 < alu; n++) {
    if (!may_multiply(f, n)) continue;
    if (f->func->instrs[n].opcode != PTX_OP_SHL && sums++ % 2) continue;
    f->costs[n].count[PTX_PIPE_ALU] = 0;
    f->costs[n].count[PTX_PIPE_FMA] = f->costs[n].count[PTX_PIPE_PRODUCTS] = 1;
    alu--, fma++;
  }
}

static void add_slot(ptx_cost *cost) {
  if (cost->count[PTX_PIPE_SLOTS] < PTX_COST_MAX) cost->count[PTX_PIPE_SLOTS]++;
}

/* Exact quotients and roots branch to a slow path, as what they are given may need it: nothing behind goes out before
 * they are through. Eight such divisions that have nothing to do with each other take an RTX 2080 SUPER's warp eight
 * times 40.8 cycles: 15 for the reciprocal, 17 for five FFMA, 8.7 for the branch past the slow path. A chain of them by
 * a known number, without the reciprocal, takes 34.7 each (arabel1a/gpu-micro-bench). */
static bool has_slow_path(const ptx_instr *instr) {
  switch (instr->opcode) {
  case PTX_OP_DIV:
  case PTX_OP_REM:
  case PTX_OP_SQRT:
  case PTX_OP_RSQRT:
  case PTX_OP_RCP: {
    ptx_cost cost = single(instr);
    const uint8_t *count = cost.count;
    return count[PTX_PIPE_SLOTS] >
           count[PTX_PIPE_FMA] + count[PTX_PIPE_ALU] + count[PTX_PIPE_XU] + count[PTX_PIPE_FP64]; /* a branch, too */
  }
  default: return false;
  }
}

static bool may_be_predicated(const ptx_instr *instr) {
  switch (instr->opcode) {
  case PTX_OP_BAR:
  case PTX_OP_BARRIER:
  case PTX_OP_CALL: return false;
  default: return !has_slow_path(instr);
  }
}

/* Short conditions become predicates of what they guard: whether the block ends in a branch over so little. */
static bool is_predicated(const folding *f, const ptx_cfg *cfg, const ptx_block *block) {
  if (block->end == block->first || block->successor_count != 2) return false;
  const ptx_instr *branch = &f->func->instrs[block->end - 1];
  const ptx_block *guarded = &cfg->blocks[block->successors[0]];
  if (branch->opcode != PTX_OP_BRA || branch->guard == PTX_NO_REG || guarded->successor_count != 1 ||
      guarded->successors[0] != block->successors[1] || guarded->end - guarded->first > SHORT)
    return false;
  for (uint32_t n = guarded->first; n < guarded->end; n++)
    if (!may_be_predicated(&f->func->instrs[n])) return false;
  return guarded->predecessor_count == 1;
}

static bool is_access(const ptx_instr *instr) {
  return instr->opcode == PTX_OP_LD || instr->opcode == PTX_OP_LDU || instr->opcode == PTX_OP_ST ||
         instr->opcode == PTX_OP_ATOM || instr->opcode == PTX_OP_RED;
}

/* What a predicate guards takes its slots and pipes whether a lane needs it or not, and there is no branch. Where all
 * lanes go past it, it is not executed here: so that what it takes is counted with the branch. Accesses take no more
 * than a slot then. */
static void count_predicated(folding *f, const ptx_cfg *cfg, const ptx_block *block) {
  if (!is_predicated(f, cfg, block)) return;
  const ptx_block *guarded = &cfg->blocks[block->successors[0]];
  uint8_t *branch = f->costs[block->end - 1].count;
  f->costs[block->end - 1] = cost_of(NOTHING);
  for (uint32_t n = guarded->first; n < guarded->end; n++)
    for (uint32_t u = PTX_PIPE_SLOTS; u < PTX_PIPES; u++) {
      if (u > PTX_PIPE_FP64 && u < PTX_PIPE_PRODUCTS) continue;
      if (u != PTX_PIPE_SLOTS && is_access(&f->func->instrs[n])) break;
      uint32_t sum = branch[u] + f->costs[n].count[u];
      branch[u] = (uint8_t)(sum < PTX_COST_MAX ? sum : PTX_COST_MAX);
      f->costs[n].count[u] = 0;
    }
}

/* Where lanes may part, the hardware is told where they meet: an instruction before the branch (BSSY), and one at the
 * place (BSYNC). */
static void count_meeting_point(folding *f, const ptx_cfg *cfg, const ptx_lane_fact *facts, const ptx_block *block) {
  if (block->end == block->first || block->successor_count != 2 || block->postdominator == PTX_NO_REG) return;
  const ptx_instr *branch = &f->func->instrs[block->end - 1];
  const ptx_block *meeting = &cfg->blocks[block->postdominator];
  if (branch->opcode != PTX_OP_BRA || branch->guard == PTX_NO_REG || facts[branch->guard].same) return;
  if (cfg->blocks[block->successors[1]].first < block->end || is_predicated(f, cfg, block)) return; /* a loop's end */
  add_slot(&f->costs[block->end - 1]);
  add_slot(&f->costs[meeting->first]);
}

/* A branch back is taken in all rounds of its loop but the last. */
static void count_loop_end(folding *f, const ptx_cfg *cfg, const ptx_block *block) {
  if (block->end == block->first || block->successor_count != 2) return;
  if (f->func->instrs[block->end - 1].opcode != PTX_OP_BRA) return;
  if (cfg->blocks[block->successors[1]].first < block->end) f->costs[block->end - 1].count[PTX_PIPE_CHAIN] = TAKEN;
}

/* ---- chains ---- */

typedef struct chain {
  uint32_t cycles, loads;
  ptx_pipe pipe; /* of its last instruction */
} chain;

enum { LOAD = 24 }; /* to find the longest chain: about what a load from shared memory takes */

static uint32_t length(chain c) { return c.cycles + LOAD * c.loads; }

static ptx_pipe pipe_of(const uint8_t *count) {
  return count[PTX_PIPE_XU]     ? PTX_PIPE_XU
         : count[PTX_PIPE_ALU]  ? PTX_PIPE_ALU
         : count[PTX_PIPE_FMA]  ? PTX_PIPE_FMA
         : count[PTX_PIPE_HALF] ? PTX_PIPE_HALF
                                : PTX_PIPE_SLOTS;
}

/* What lanes vote with comes as late as a guard: a comparison and a ballot take 16.3 cycles on GA100 and GA102, and one
 * vote after another's result 12.7 (arabel1a/gpu-micro-bench). */
static bool is_voted_on(const ptx_instr *instr, uint32_t reg) {
  return instr->opcode == PTX_OP_VOTE && instr->operand_count > 1 && instr->operands[1].kind == PTX_OPERAND_REG &&
         instr->operands[1].reg == reg;
}

/* The longest chain that leads to the instruction: what it waits for. A predicate that is one of its operands is there
 * as soon as any other result: a comparison and a selection by it take 8 cycles together on a TU102
 * (connollydavid/tu102). */
static chain awaited(const folding *f, const ptx_instr *instr, const chain *ready, ptx_pipe pipe) {
  chain longest = {0};
  for (uint32_t k = 0; k < f->t.reads; k++) {
    uint32_t reg = f->t.regs[k];
    chain at = ready[reg];
    if (!length(at)) continue;
    if (reg == instr->guard || is_voted_on(instr, reg)) at.cycles += PREDICATE - ADD;
    else if (pipe != PTX_PIPE_SLOTS && at.pipe != PTX_PIPE_SLOTS && at.pipe != pipe) at.cycles += CROSS;
    if (length(at) > length(longest)) longest = at;
  }
  return longest;
}
static uint8_t grown(uint32_t before, uint32_t now) {
  return (uint8_t)(now <= before ? 0 : now - before > PTX_COST_MAX ? PTX_COST_MAX : now - before);
}

/* Stores to shared memory at known distances from one address: the longest chain that leads to any of them. */
typedef struct written {
  const ptx_symbol *symbol;
  uint32_t base, version;
  chain at;
} written;

enum { WRITTEN = 16 }; /* addresses that are told apart */

typedef struct stores { /* of a stretch */
  written groups[WRITTEN];
  uint32_t count;
  chain others; /* to more addresses */
} stores;

static bool reads_shared(const ptx_instr *instr) {
  return (instr->opcode == PTX_OP_LD || instr->opcode == PTX_OP_ATOM) && ptx_instr_space(instr) == PTX_SPACE_SHARED;
}
static bool writes_shared(const ptx_instr *instr) {
  return (instr->opcode == PTX_OP_ST || instr->opcode == PTX_OP_ATOM || instr->opcode == PTX_OP_RED) &&
         ptx_instr_space(instr) == PTX_SPACE_SHARED;
}

static written address_of(const folding *f, const ptx_instr *instr) {
  for (uint32_t i = 0; i < instr->operand_count; i++) {
    const ptx_operand *operand = &instr->operands[i];
    if (operand->kind != PTX_OPERAND_ADDRESS) continue;
    return (written){.symbol = operand->symbol,
                     .base = operand->reg,
                     .version = operand->reg == PTX_NO_REG ? 0 : f->versions[operand->reg]};
  }
  return (written){.base = PTX_NO_REG};
}

/* Of one address a compiler knows whether two words are the same, and so of two arrays. */
static bool is_told_apart(const written *a, const written *b) {
  if (a->base == b->base && a->version == b->version && a->symbol == b->symbol) return true;
  return a->base == PTX_NO_REG && b->base == PTX_NO_REG && a->symbol && b->symbol;
}

static void lengthen(chain *c, chain other) {
  if (length(other) > length(*c)) *c = other;
}

/* A load from shared memory stays behind stores that may mean its words, which go out when they have their values. */
static void order_load(const folding *f, const stores *s, const ptx_instr *instr, chain *at) {
  written own = address_of(f, instr);
  lengthen(at, s->others);
  for (uint32_t i = 0; i < s->count; i++)
    if (!is_told_apart(&s->groups[i], &own)) lengthen(at, s->groups[i].at);
}

static void note_store(const folding *f, stores *s, const ptx_instr *instr, chain at) {
  written own = address_of(f, instr);
  for (uint32_t i = 0; i < s->count; i++) {
    written *w = &s->groups[i];
    if (w->base != own.base || w->version != own.version || w->symbol != own.symbol) continue;
    lengthen(&w->at, at);
    return;
  }
  own.at = at;
  if (s->count < WRITTEN) s->groups[s->count++] = own;
  else lengthen(&s->others, at);
}

static bool is_warp_barrier(const ptx_instr *instr) {
  return instr->opcode == PTX_OP_BAR && ptx_has(instr, PTX_MOD_WARP);
}

/* Gives each instruction of [first, end) by how much the longest chain up to it grows. */
static void chain_stretch(folding *f, chain *ready, uint32_t first, uint32_t end) {
  chain longest = {0}, barriers = {0};
  stores s = {.count = 0};
  for (uint32_t n = first; n < end; n++) {
    const ptx_instr *instr = &f->func->instrs[n];
    uint8_t *count = f->costs[n].count;
    ptx_touched(instr, &f->t);
    ptx_pipe pipe = pipe_of(count);
    chain at = awaited(f, instr, ready, pipe);
    if (reads_shared(instr)) order_load(f, &s, instr, &at);
    if (writes_shared(instr)) note_store(f, &s, instr, at);
    if (is_warp_barrier(instr)) at = barriers; /* one after the other, whatever else the warp waits for */
    at.cycles += count[PTX_PIPE_CHAIN];
    at.loads += count[PTX_PIPE_LOADS];
    if (is_warp_barrier(instr)) barriers = at;
    if (count[PTX_PIPE_SLOTS]) at.pipe = pipe;
    for (uint32_t k = 0; k < f->t.writes; k++) {
      ready[f->t.regs[f->t.reads + k]] = at;
      f->versions[f->t.regs[f->t.reads + k]]++;
    }
    chain before = longest;
    if (length(at) > length(longest)) {
      longest.cycles = at.cycles > longest.cycles ? at.cycles : longest.cycles;
      longest.loads = at.loads > longest.loads ? at.loads : longest.loads;
    }
    count[PTX_PIPE_CHAIN] = grown(before.cycles, longest.cycles);
    count[PTX_PIPE_LOADS] = grown(before.loads, longest.loads);
  }
  for (uint32_t n = first; n < end; n++) {
    ptx_touched(&f->func->instrs[n], &f->t);
    for (uint32_t k = 0; k < f->t.reads + f->t.writes; k++) ready[f->t.regs[k]] = (chain){0};
  }
}

static void chain_block(folding *f, chain *ready, const ptx_block *block) {
  uint32_t first = block->first;
  for (uint32_t n = block->first; n < block->end; n++)
    if (has_slow_path(&f->func->instrs[n])) {
      chain_stretch(f, ready, first, n + 1);
      first = n + 1;
    }
  chain_stretch(f, ready, first, block->end);
}

ptx_cost *ptx_machine_code(const ptx_func *func, const ptx_cfg *cfg) {
  folding f = {.func = func};
  size_t regs = func->reg_count + (size_t)1, instrs = func->instr_count + (size_t)1;
  f.costs = ff_alloc(instrs * sizeof *f.costs);
  f.uses = ff_alloc(regs * sizeof *f.uses);
  f.defined = ff_alloc(regs * sizeof *f.defined);
  f.folded = ff_alloc(instrs * sizeof *f.folded);
  f.shifts = ff_alloc(instrs * sizeof *f.shifts);
  f.versions = ff_alloc(regs * sizeof *f.versions);
  chain *ready = ff_alloc(regs * sizeof *ready);
  for (uint32_t n = 0; n < func->instr_count; n++) f.costs[n] = single(&func->instrs[n]);
  count_uses(&f);
  for (uint32_t b = 0; b < cfg->block_count; b++) fold_block(&f, &cfg->blocks[b]);
  for (uint32_t b = 0; b < cfg->block_count; b++) balance_block(&f, &cfg->blocks[b]);
  ptx_lane_fact *facts = ptx_lane_facts(func);
  if (facts) {
    ptx_join_shared_loads(func, cfg, facts, f.costs);
    for (uint32_t b = 0; b < cfg->block_count; b++) count_meeting_point(&f, cfg, facts, &cfg->blocks[b]);
  }
  free(facts);
  for (uint32_t b = 0; b < cfg->block_count; b++) count_loop_end(&f, cfg, &cfg->blocks[b]);
  for (uint32_t b = 0; b < cfg->block_count; b++) count_predicated(&f, cfg, &cfg->blocks[b]);
  for (uint32_t b = 0; b < cfg->block_count; b++) chain_block(&f, ready, &cfg->blocks[b]);
  free(f.uses);
  free(f.defined);
  free(f.folded);
  free(f.shifts);
  free(f.versions);
  free(f.t.regs);
  free(ready);
  return f.costs;
}
