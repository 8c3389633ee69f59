/* SPDX-License-Identifier: Apache-2.0 */
/* A module of Tile IR in memory.
 *
 *   tile      an array of up to TILE_RANK_MAX dimensions, each a power of two; of rank 0 it is a scalar
 *   view      where tiles lie in a tensor in memory: the tensor's base, shape and strides, and how tiles cut it
 *   token     orders memory operations; has no value
 *   region    the blocks of operations inside an operation (loop body, both sides of `if`, what `reduce` combines with);
 *             each has exactly one block here
 *
 * What always holds after tile_module_read: every operand is a value of an operation or block argument that comes
 * before it in its own or an outer block; every type index was resolved; numbers of operands, results and regions are
 * as operations.def says of each operation; dimensions of tiles are powers of two, and a tile has at most
 * TILE_ELEMENTS_MAX elements; each block ends in a terminator and has no other; and what read_check.c says of loops,
 * branches, reductions, views and constants. Which element types an operation takes is checked where it is lowered. */
#ifndef FF_TILE_MODULE_H
#define FF_TILE_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

#define TILE_RANK_MAX 8u
#define TILE_ELEMENTS_MAX (1u << 20)
#define TILE_DEPTH_MAX 64u     /* of regions in regions */
#define TILE_DYNAMIC INT64_MIN /* in a tensor's shape or strides: known at run time only */

typedef enum tile_scalar { /* what one element is */
                           TILE_I1,
                           TILE_I4,
                           TILE_I8,
                           TILE_I16,
                           TILE_I32,
                           TILE_I64,
                           TILE_F16,
                           TILE_BF16,
                           TILE_F32,
                           TILE_TF32,
                           TILE_F64,
                           TILE_E4M3,
                           TILE_E5M2,
                           TILE_E8M0,
                           TILE_E2M1, /* 8, 8, 8 and 4 bits */
                           TILE_POINTER,
} tile_scalar;

typedef enum tile_kind {
  TILE_KIND_SCALAR, /* only as an element of others */
  TILE_KIND_TILE,
  TILE_KIND_TENSOR_VIEW,
  TILE_KIND_PARTITION_VIEW,
  TILE_KIND_STRIDED_VIEW,
  TILE_KIND_GATHER_VIEW,
  TILE_KIND_TOKEN,
  TILE_KIND_FUNCTION,
} tile_kind;

typedef enum tile_padding { /* what a load gives outside of the tensor */
                            TILE_PAD_NONE,
                            TILE_PAD_ZERO,
                            TILE_PAD_NEGATIVE_ZERO,
                            TILE_PAD_NAN,
                            TILE_PAD_INFINITY,
                            TILE_PAD_NEGATIVE_INFINITY,
} tile_padding;

typedef struct tile_type tile_type;
struct tile_type {
  tile_kind kind;
  tile_scalar scalar;  /* the element, of views too */
  tile_scalar pointee; /* if scalar is TILE_POINTER (a pointer to pointers: TILE_POINTER) */
  uint32_t rank;
  int64_t shape[TILE_RANK_MAX];     /* tiles, tile of a view; of a tensor view TILE_DYNAMIC where not known */
  int64_t strides[TILE_RANK_MAX];   /* tensor views: in elements; TILE_DYNAMIC where not known */
  const tile_type *tensor;          /* views of tiles: the tensor view */
  int32_t dim_map[TILE_RANK_MAX];   /* partition and strided views: which dimension of the tensor a tile's is */
  int32_t traversal[TILE_RANK_MAX]; /* strided views: elements from one tile to the next */
  uint32_t sparse_dim;              /* gather views: the dimension whose indices are a tile */
  tile_padding padding;
  const tile_type **inputs; /* functions, which have no results */
  uint32_t input_count, result_count;
};

/* The number of elements of a tile (1 for a scalar). */
static inline uint32_t tile_elements(const tile_type *type) {
  uint32_t n = 1;
  for (uint32_t d = 0; d < type->rank; d++) n *= (uint32_t)type->shape[d];
  return n;
}

bool tile_type_equal(const tile_type *a, const tile_type *b); /* whatever their numbers in the bytecode are */
uint32_t tile_scalar_bits(tile_scalar scalar);                /* 1, 4, 8, 16, 32 or 64; TF32 has 32 */
const char *tile_scalar_name(tile_scalar scalar);             /* "f16" */

typedef enum tile_opcode {
#define X(name, number, ...) TILE_OP_##name = number,
#include "tile/operations.def"
#undef X
} tile_opcode;

/* Enumerations of attributes, with the numbers of the bytecode. */
typedef enum {
  TILE_ROUND_EVEN,
  TILE_ROUND_ZERO,
  TILE_ROUND_DOWN,
  TILE_ROUND_UP,
  TILE_ROUND_APPROX,
  TILE_ROUND_FULL,
  TILE_ROUND_INT_TO_ZERO,
  TILE_ROUND_AWAY
} tile_rounding;
typedef enum { TILE_EQ, TILE_NE, TILE_LT, TILE_LE, TILE_GT, TILE_GE } tile_predicate;
typedef enum { TILE_WEAK, TILE_RELAXED, TILE_ACQUIRE, TILE_RELEASE, TILE_ACQ_REL } tile_ordering;
typedef enum { TILE_SCOPE_BLOCK, TILE_SCOPE_DEVICE, TILE_SCOPE_SYSTEM } tile_scope;
typedef enum {
  TILE_RMW_AND,
  TILE_RMW_OR,
  TILE_RMW_XOR,
  TILE_RMW_ADD,
  TILE_RMW_ADDF,
  TILE_RMW_MAX,
  TILE_RMW_MIN,
  TILE_RMW_UMAX,
  TILE_RMW_UMIN,
  TILE_RMW_XCHG
} tile_rmw;

typedef struct tile_op tile_op;
typedef struct tile_block tile_block;

typedef struct tile_value {
  const tile_type *type;
  uint32_t id; /* unique in its function, from 0 */
  tile_op *op; /* that makes it; NULL: an argument of `block` */
  tile_block *block;
  uint32_t index; /* which result or argument */
  void *lowered;  /* the lowering's own (lower.h) */
} tile_value;

typedef enum tile_assumed { TILE_ASSUME_DIV_BY, TILE_ASSUME_SAME, TILE_ASSUME_BOUNDED } tile_assumed;

struct tile_op {
  tile_opcode opcode;
  uint32_t offset;  /* of the operation in the bytecode, for messages */
  uint32_t line;    /* of the program's text, from 1; 0: not known */
  const char *file; /* its path; NULL: not known */
  tile_value **operands, *results;
  uint32_t operand_count, result_count, region_count;
  tile_block *regions[2];
  tile_block *block; /* that it is in */

  /* Attributes; an operation that has none of a kind has 0 there. */
  bool flush_to_zero, propagate_nan, saturating, is_unsigned, fast, global, reverse, ordered;
  bool lhs_signed, rhs_signed;                       /* mmai; `lhs_signed` is "signedness" of all others */
  bool has_scope;                                    /* weak accesses have none */
  uint8_t rounding, predicate, ordering, scope, rmw; /* multimem operations use `rmw` too */
  uint8_t overflow;                                  /* what does not occur: bit 0 signed, bit 1 unsigned overflow */
  uint8_t inbounds; /* bit d: the index of dimension d is known to be inside of the tensor */
  /* Optional operands: indices into operands, or -1. */
  int32_t mask, padding, token;
  /* operands that are indices (views, extract, insert); dynamic shape of a tensor view */
  uint32_t index_first, index_count;
  uint32_t stride_first, stride_count; /* dynamic strides of a tensor view */
  int64_t number;                      /* dim of cat, reduce, scan; elements of alloca */
  int64_t alignment;
  const int32_t *permutation; /* of permute: result's rank entries */
  uint32_t permutation_count;
  const char *string; /* message of assert, format of print, name of a global; ends at its first NUL */
  /* Constant: its elements, each little-endian in whole bytes (tile_scalar_bits / 8, at least one), or one if
   * data_splat. i1 is a byte of 0 or 1; i4 and e2m1 are in the low four bits of a byte, the others 0; tf32 is an f32
   * whose lowest 13 bits are 0. (The bytecode packs i1 by the bit or says "all" by 0xff, and writes tf32 in 3 bytes:
   * read.c.) */
  const unsigned char *data;
  size_t data_bytes;
  bool data_splat;
  struct {
    uint64_t bits; /* of the operand's element, in the low bits, as in `data`; above them 0 */
    tile_scalar scalar;
  } identities[8]; /* reduce, scan: per operand */
  uint32_t identity_count;
  struct {
    tile_assumed kind;
    uint64_t divisor;
    bool has_every, has_along, has_lower, has_upper;
    int64_t every, along, lower, upper;
    const int64_t *same; /* TILE_ASSUME_SAME: per dimension, how many elements that follow each other are equal */
    uint32_t same_count;
  } assumed;
};

struct tile_block {
  tile_value *arguments;
  uint32_t argument_count;
  tile_op **ops;
  uint32_t op_count;
  tile_op *parent; /* NULL: the function's body */
};

typedef struct tile_function {
  const char *name;
  const tile_type *type;
  bool entry;
  int32_t warps, occupancy, clusters; /* hints, those for sm_90 before those for all; 0: none */
  tile_block *body;
  uint32_t value_count;
} tile_function;

typedef struct tile_global {
  const char *name;
  const tile_type *type;     /* a tile of numbers */
  const unsigned char *data; /* as an operation's */
  size_t data_bytes;
  bool data_splat;
  uint64_t alignment; /* bytes; 0: the element's */
  bool constant, hidden;
} tile_global;

typedef struct tile_module {
  uint32_t version; /* major * 100 + minor: 1301 is 13.1 */
  tile_function *functions;
  uint32_t function_count;
  tile_global *globals;
  uint32_t global_count;
  ff_arena arena; /* all of the above */
} tile_module;

/* Reads bytecode of versions 13.1 to 13.5. The module borrows strings and data from nowhere: it outlives `bytes`.
 * FF_PARSE: broken, with the byte; FF_UNSUPPORTED: an operation, a type or a version that is not known. */
ff_status tile_module_read(const void *bytes, size_t size, tile_module **module, ff_error *error);
void tile_module_free(tile_module *module);

const char *tile_opcode_name(tile_opcode opcode); /* "addf", or "?" */

#endif
