/* SPDX-License-Identifier: Apache-2.0 */
/* From Tile IR to PTX: what the parts of the lowering share. None of it is seen outside of this folder.
 *
 *   lower.c              functions, parameters, control flow; which part lowers which operation
 *   lower_text.c         lines of PTX, and the limits
 *   layout.c             where the elements of a tile are, and how they get to where another operation wants them
 *   lower_elements.c     arithmetic, comparisons, conversions: one element after the other
 *   lower_math.c         functions that PTX has no instruction for, as text that the module gets when it needs them
 *   lower_views.c        views, and loads and stores through them
 *   lower_memory.c       loads and stores by pointers, atomic operations, globals
 *   lower_shape.c        constants, iota, permute, broadcast, cat, extract, reduce, scan
 *   lower_matrix.c       mmaf, mmaf_scaled, mmai
 *   lower_print.c        print_tko, assert
 *
 * A tile's elements are numbered as in C (the last dimension runs fastest). As all dimensions are powers of two, a
 * layout says for each bit of that number whether it is a bit of the thread's number or of the register's:
 *
 *   element = sum over bits b of  (b lies in thread bit t ? thread >> t & 1 : register >> r & 1) << b
 *
 * Thread bits that no bit of the number lies in hold copies: every thread of a block has all elements of a small tile.
 * All threads of a block take the same way through the program (conditions are scalars, equal in all threads). */
#ifndef FF_TILE_LOWER_H
#define FF_TILE_LOWER_H

#include "base/text.h"
#include "tile/module.h"

/* The most text of a module. It may be hostile: a few bytes can ask for a tile of a million elements. */
#define LOWER_TEXT_MAX (UINT64_C(256) << 20)

#define NO_REGISTER 0u /* registers count from 1 */

#define LAYOUT_BITS_MAX 20u
#define LAYOUT_THREAD 0x20u /* of[b] is LAYOUT_THREAD + thread bit, or a register bit */
#define LAYOUT_FREE 0xffu   /* in scratch maps: no bit */

typedef struct tile_layout {
  uint8_t bits;                /* of an element's number */
  uint8_t registers;           /* of a register's number: 1 << registers for each thread */
  uint8_t of[LAYOUT_BITS_MAX]; /* per bit of the element's number */
} tile_layout;

/* Registers by what they hold. i1 is 'p' (a predicate); i4, i8, i16, i32, e4m3 and the like 'r', integers smaller than
 * 32 bits zero-extended; f16 and bf16 'h'; f32 and tf32 'r'; i64, pointers and f64 'd'. */
typedef enum register_class { CLASS_PREDICATE, CLASS_HALF, CLASS_WORD, CLASS_DOUBLE, CLASS_COUNT } register_class;

typedef struct lowered_tensor {                          /* a tensor view */
  uint32_t base;                                         /* 'd': generic address */
  uint64_t base_divisor;                                 /* of the address in bytes, as far as known; a power of two */
  uint32_t shape[TILE_RANK_MAX], strides[TILE_RANK_MAX]; /* 'd' registers, signed; unused where the type knows them */
  uint64_t shape_divisor[TILE_RANK_MAX], stride_divisor[TILE_RANK_MAX]; /* in elements; powers of two */
} lowered_tensor;

typedef struct lowered {
  register_class class;
  bool splat; /* all elements are equal and in registers[0]; the layout says nothing then */
  tile_layout layout;
  uint32_t *registers;          /* their numbers in their class: 1, or 1 << layout.registers */
  uint64_t divisor;             /* every element is a multiple of it (addresses: in bytes); a power of two */
  const lowered_tensor *tensor; /* tensor views, and the tensor of views of tiles */
  /* A value that was not made yet (a broadcast): element e is element map(e) of `lazy`, which has registers, with the
   * columns of layout_gather; then there are no registers here. */
  const struct lowered *lazy;
  uint8_t lazy_columns[LAYOUT_BITS_MAX];
  uint32_t lazy_bits;
} lowered;

typedef struct lower_mark { /* which place of a list a register has, in the turn that is named */
  uint32_t turn, place;
} lower_mark;

typedef struct lower_module { /* what kernels of one module share */
  const tile_module *module;
  ff_text kernels;            /* and variables before them */
  FF_VEC(const char *) files; /* of the program's text: .file 1 is the first */
  uint64_t helpers;           /* bits of lower_helper: functions that the module needs */
  uint32_t architecture;      /* the least that the text needs: 80, 89, 90 */
  bool prints;                /* a kernel calls vprintf or __assertfail */
} lower_module;

typedef struct lower {
  lower_module *shared;
  const tile_module *module;
  const tile_function *function;
  const char *file; /* the place that the last .loc names */
  uint32_t line;
  ff_text *text;      /* the body of the kernel so far */
  ff_text *data;      /* variables that stand before it */
  uint32_t constants; /* of those, that hold constants */
  uint32_t registers[CLASS_COUNT];
  uint32_t labels;
  uint32_t thread_bits;   /* the block has 1 << thread_bits threads */
  uint32_t thread;        /* 'r': the thread's number */
  uint32_t scratch_bytes; /* of each half of the shared variable `tile_scratch`, so far */
  uint32_t scratch[2];    /* 'r': the addresses of its halves */
  uint32_t scratch_turn;  /* exchanges so far */
  bool scratch_known;     /* the half whose turn is next is not read any more */
  bool stored, loaded;    /* memory was written, was read since the last barrier, or may have been */
  bool loaded_copies;     /* so was memory that several threads read for themselves */
  bool prints;            /* the kernel calls vprintf */
  uint64_t helpers;       /* bits of lower_helper: functions that the module needs */
  uint32_t architecture;  /* the least that the text needs: 80, 89, 90 */
  ff_arena *arena;
  uint64_t allocated;               /* from it, bytes */
  lower_mark *marks[CLASS_COUNT];   /* by register: see set_carried */
  uint32_t mark_count[CLASS_COUNT]; /* how many there are */
  uint32_t mark_turn;
  ff_status status; /* the first error; nothing is emitted after it */
  ff_error *error;
  void *loop; /* of lower.c: the innermost loops, for break and continue */
} lower;

static inline uint32_t lower_log2(uint64_t power) { return (uint32_t)__builtin_ctzll(power); } /* of a power of two */

/* ---- text ---- */

/* A line of PTX, indented; nothing after the first error. Registers are written "%r12": LOWER_R(c, n) names one. */
void lower_emit(lower *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint32_t lower_bytes(tile_scalar scalar); /* of an element in memory: at least one */
/* These write into `text` and, but for the first, give it. */
void lower_guard_text(char *text, size_t size, uint32_t predicate); /* "@%p3 ", or "" for NO_REGISTER */
/* "{%r1, %r2}", or "%r1" if n is 1. */
const char *lower_registers_text(char *text, size_t size, char letter, const uint32_t *registers, uint32_t n);
const char *lower_vector_suffix(uint32_t n);                                /* ".v4", ".v2", or "" for 1 */
void lower_set(lower *l, register_class class, uint32_t to, uint64_t bits); /* a register, to a constant */
uint32_t lower_both(lower *l, uint32_t a, uint32_t b); /* "and" of predicates; NO_REGISTER is true */
/* The values of an array of bytes, "1, 2, 3": `count` of them, which `data` repeats after `period`. */
void lower_bytes_text(ff_text *text, const unsigned char *data, size_t period, size_t count);
uint32_t lower_register(lower *l, register_class class); /* a new one */
char lower_letter(register_class class);                 /* 'p', 'h', 'r', 'd': "%h3" is lower_letter(CLASS_HALF), 3 */
const char *lower_untyped(register_class class);         /* "pred", "b16", "b32", "b64" */
register_class lower_class(tile_scalar scalar);

/* Memory, zeroed, for as long as the kernel is translated. More than a limit is an error (FF_LIMIT, noted): what
 * hostile modules make grow without text, as reductions in reductions or tiles of tiles, ends there. */
void *lower_alloc(lower *l, size_t bytes);

/* Notes the first error, with the operation and its place. */
void lower_fail(lower *l, const tile_op *op, ff_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- values ---- */

lowered *lower_value(lower *l, const tile_value *value); /* of an operand */
/* Gives a result its registers: new ones, in `layout` (NULL: a splat). */
lowered *lower_result(lower *l, tile_value *result, const tile_layout *layout);
/* Gives a result registers that exist. */
lowered *lower_alias(lower *l, tile_value *result, const lowered *as);
/* One register with a scalar's or a splat's value, in all threads. */
uint32_t lower_scalar(lower *l, const tile_value *value);

/* The integer that all elements of a value are, with zeros above its bits; false: it is not known here. */
bool lower_known(const tile_value *value, uint64_t *constant);

/* ---- layouts (layout.c) ---- */

tile_layout layout_default(const lower *l, const tile_type *tile);
bool layout_equal(const tile_layout *a, const tile_layout *b);
/* Which element's number register r of a thread holds, without the thread's part. */
uint32_t layout_static(const tile_layout *layout, uint32_t r);
/* The thread's part of the elements' numbers, of the bits first to first + count - 1 only, shifted down by first: a
 * new 'r' register; false if there is none (then *part is not set and the part is 0). */
bool layout_thread_part(lower *l, const tile_layout *layout, uint32_t first, uint32_t count, uint32_t *part);
/* A predicate: this thread's elements are no other thread's copies; false if no element has copies. */
bool layout_owner(lower *l, const tile_layout *layout, uint32_t *predicate);
/* The value in another layout; the value itself if it has it already. A splat is given all its registers. */
lowered *layout_convert(lower *l, const lowered *value, tile_scalar scalar, const tile_layout *to);
/* A value (not lazy) whose element e is element map(e) of `value`, map being linear in bits: bit b of e is bit
 * columns[b] of the source's number, or none (LAYOUT_FREE: what it says does not matter to the source), and `offset` is
 * added to it (no bit of it may be one that a column sets). `source_bits`: of the source's number. */
lowered *layout_gather(lower *l, const lowered *value, tile_scalar scalar, uint32_t source_bits, const uint8_t *columns,
                       uint32_t offset, const tile_layout *to);
/* The value, as the threads that own its elements have it, in all threads that have copies. */
lowered *layout_share(lower *l, const lowered *value, tile_scalar scalar);
/* Writes the whole tile to shared memory, element e at base + offset + e x its bytes; `base` is an 'r' register. The
 * caller sees to barriers, and that the bytes are there (scratch_bytes). */
void layout_write(lower *l, const lowered *value, tile_scalar scalar, uint32_t base, uint32_t offset);
/* The same with bit b of an element's number being weights[b] bytes, into the half of the scratch whose turn it is, and
 * a barrier: all may read it until the exchange after the next begins. `bytes` is what it takes. Returns the half's
 * address, an 'r' register. The value has registers (it is no splat and was not put off). */
uint32_t layout_publish(lower *l, const lowered *value, tile_scalar scalar, const uint32_t *weights, uint32_t bytes);
/* What all threads wrote to memory before is seen by all of them after. */
void lower_barrier(lower *l);

/* ---- operations: each lowers op and gives its results their values ---- */

/* For every element: `element` emits the code that sets register `to` from the operands' registers `from`. */
typedef void lower_element_fn(lower *l, const tile_op *op, uint32_t to, const uint32_t *from);
void lower_elementwise(lower *l, tile_op *op, lower_element_fn *element); /* in lower.c */

bool lower_elements_op(lower *l, tile_op *op); /* false: not one of its operations */
bool lower_memory_op(lower *l, tile_op *op);
bool lower_view_op(lower *l, tile_op *op);
bool lower_shape_op(lower *l, tile_op *op);
bool lower_matrix_op(lower *l, tile_op *op);
bool lower_print_op(lower *l, tile_op *op);

/* The layout in which mmaf or mmai gives its result; false: the usual one. */
bool lower_matrix_layout(lower *l, const tile_op *op, tile_layout *layout);

/* The operations of a block up to its terminator, which the caller looks at. */
void lower_block(lower *l, tile_block *block);
/* The same in two parts, for a body that is lowered more than once: constants, once; the other operations, each
 * time. */
void lower_block_constants(lower *l, tile_block *block);
void lower_block_again(lower *l, tile_block *block);

/* Functions that PTX has no instruction for: `call (to), tile_NAME, (from...)` after lower_need. */
typedef enum lower_helper {
#define X(name, text) HELPER_##name,
#include "tile/helpers.def"
#undef X
  HELPER_COUNT
} lower_helper;
void lower_need(lower *l, lower_helper helper);
void lower_helpers_text(uint64_t helpers, ff_text *text); /* those functions, with those that they call */

#endif
