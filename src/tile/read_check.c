/* SPDX-License-Identifier: Apache-2.0 */
/* What holds between an operation, its operands and its regions, so that the lowering need not look:
 *
 *   for       operands: first, end, step (scalars of one integer type), then what is carried; the region's arguments: the
 *             number of the turn, then what is carried; results: the same types
 *   loop      operands and the region's arguments: what is carried; results: what `break` gives
 *   if        a scalar i1; both regions give what `yield` gives, of the results' types, or leave
 *   break     in a `loop`, continue in a `loop` or `for`, return in the function: each perhaps in `if`s, in nothing else
 *   reduce,   n tiles of one shape, n identities of their elements, n results (of a scan as the operands); the region has
 *   scan      2n scalars as arguments, of operand i the arguments 2i (so far) and 2i + 1 (new), and yields n
 *   views     indices, shapes and strides are as many as the types say, scalar integers (of a gather view's sparse
 *             dimension: a tile of rank 1); a tile that is loaded or stored is of the view's type
 *   mma       (m x k) (k x n) + (m x n), or all with a batch dimension before
 *   token     operands and results that are tokens have that type; masks are tiles of i1 */
#include "tile/read.h"

#include <string.h>

static void wrong(tile_reader *r, const tile_op *op, const char *what) {
  reader_fail(r, NULL, op->offset, FF_PARSE, "%s", what);
}

/* A condition that must hold; only the first that does not is noted. */
static void need(tile_reader *r, const tile_op *op, bool holds, const char *what) {
  if (!holds) wrong(r, op, what);
}

/* ---- types ---- */

static const tile_type *operand_type(const tile_op *op, uint32_t i) { return op->operands[i]->type; }

static const tile_type *result_type(const tile_op *op, uint32_t i) { return op->results[i].type; }

static bool is_tile(const tile_type *t) { return t->kind == TILE_KIND_TILE; }

static bool is_integer(tile_scalar scalar) { return scalar <= TILE_I64; }

static bool is_scalar_tile(const tile_type *t) { return is_tile(t) && t->rank == 0; }

static bool is_scalar_integer(const tile_type *t) { return is_scalar_tile(t) && is_integer(t->scalar); }

static bool is_token(const tile_type *t) { return t->kind == TILE_KIND_TOKEN; }

static bool is_tile_view(const tile_type *t) {
  return t->kind == TILE_KIND_PARTITION_VIEW || t->kind == TILE_KIND_STRIDED_VIEW || t->kind == TILE_KIND_GATHER_VIEW;
}

static bool same_element(const tile_type *a, const tile_type *b) {
  return a->scalar == b->scalar && (a->scalar != TILE_POINTER || a->pointee == b->pointee);
}

static bool same_shape(const tile_type *a, const tile_type *b) {
  return is_tile(a) && is_tile(b) && a->rank == b->rank && !memcmp(a->shape, b->shape, sizeof a->shape);
}

static bool scalar_of(const tile_type *t, const tile_type *of) { return is_scalar_tile(t) && same_element(t, of); }

/* Whether `count` operands from `first` have the types of the values. */
static bool operands_like(const tile_op *op, uint32_t first, const tile_value *values, uint32_t count) {
  if (op->operand_count - first != count) return false;
  for (uint32_t i = 0; i < count; i++)
    if (!tile_type_equal(operand_type(op, first + i), values[i].type)) return false;
  return true;
}

static bool operands_like_operands(const tile_op *op, const tile_op *other, uint32_t first) {
  if (op->operand_count != other->operand_count - first) return false;
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (!tile_type_equal(operand_type(op, i), operand_type(other, first + i))) return false;
  return true;
}

/* ---- rules of operations.def ---- */

static bool all_types(const tile_op *op, bool (*holds)(const tile_type *a, const tile_type *b)) {
  const tile_type *first = op->result_count ? result_type(op, 0) : operand_type(op, 0);
  for (uint32_t i = 0; i < op->result_count; i++)
    if (!holds(first, result_type(op, i))) return false;
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (!holds(first, operand_type(op, i))) return false;
  return true;
}

static bool both_tokens(const tile_type *a, const tile_type *b) { return is_token(a) && is_token(b); }

static void check_rule(tile_reader *r, const tile_op *op, char rule) {
  if (rule == '=') need(r, op, all_types(op, tile_type_equal), "operands and results are not of one type");
  if (rule == '~') need(r, op, all_types(op, same_shape), "operands and results are not tiles of one shape");
  if (rule == 't') need(r, op, all_types(op, both_tokens), "an operand or a result is no token");
  if (rule == '=' && op->opcode != TILE_OP_ASSUME) need(r, op, is_tile(result_type(op, 0)), "the result is no tile");
}

/* What is marked as mask or token, and results behind the first, which are tokens. */
static void check_marked(tile_reader *r, const tile_op *op) {
  if (op->token >= 0) need(r, op, is_token(operand_type(op, (uint32_t)op->token)), "the token is none");
  if (op->mask < 0) return;
  const tile_type *mask = operand_type(op, (uint32_t)op->mask);
  need(r, op, same_shape(mask, operand_type(op, 0)) && mask->scalar == TILE_I1, "the mask does not fit the pointers");
}

/* ---- control flow ---- */

/* The loop or function that a terminator in `if`s is in; NULL: the function. */
static const tile_op *loop_of(const tile_op *op) {
  const tile_op *parent = op->block->parent;
  while (parent && parent->opcode == TILE_OP_IF) parent = parent->block->parent;
  return parent;
}

static void check_yield(tile_reader *r, const tile_op *op) {
  const tile_op *parent = op->block->parent;
  if (parent && parent->opcode == TILE_OP_IF) {
    need(r, op, operands_like(op, 0, parent->results, parent->result_count), "gives not what the if gives");
    return;
  }
  if (!parent || (parent->opcode != TILE_OP_REDUCE && parent->opcode != TILE_OP_SCAN)) {
    wrong(r, op, "is neither in an if nor in a reduction");
    return;
  }
  bool good = op->operand_count == parent->operand_count;
  for (uint32_t i = 0; good && i < op->operand_count; i++)
    good = is_tile(operand_type(parent, i)) && scalar_of(operand_type(op, i), operand_type(parent, i));
  need(r, op, good, "gives not one scalar for each tile");
}

static void check_break(tile_reader *r, const tile_op *op) {
  const tile_op *loop = loop_of(op);
  if (!loop || loop->opcode != TILE_OP_LOOP) wrong(r, op, "is in no loop");
  else need(r, op, operands_like(op, 0, loop->results, loop->result_count), "gives not what the loop gives");
}

static void check_continue(tile_reader *r, const tile_op *op) {
  const tile_op *loop = loop_of(op);
  if (!loop || (loop->opcode != TILE_OP_LOOP && loop->opcode != TILE_OP_FOR)) {
    wrong(r, op, "is in no loop");
    return;
  }
  uint32_t first = loop->opcode == TILE_OP_FOR ? 3 : 0;
  need(r, op, operands_like_operands(op, loop, first), "gives not what the loop carries");
}

static void check_return(tile_reader *r, const tile_op *op) {
  need(r, op, op->operand_count == 0, "gives something");
  const tile_op *loop = loop_of(op);
  while (loop && (loop->opcode == TILE_OP_LOOP || loop->opcode == TILE_OP_FOR)) loop = loop_of(loop);
  need(r, op, !loop, "is in a reduction");
}

static void check_for(tile_reader *r, const tile_op *op) {
  const tile_block *body = op->regions[0];
  const tile_type *index = operand_type(op, 0);
  need(r, op,
       is_scalar_integer(index) && tile_type_equal(index, operand_type(op, 1)) &&
           tile_type_equal(index, operand_type(op, 2)),
       "its bounds are not scalars of one integer type");
  need(r, op, operands_like(op, 3, op->results, op->result_count), "its results are not of the types that it carries");
  need(r, op,
       body->argument_count && tile_type_equal(index, body->arguments[0].type) &&
           operands_like(op, 3, body->arguments + 1, body->argument_count - 1),
       "its region does not take what it carries");
}

static void check_loop(tile_reader *r, const tile_op *op) {
  const tile_block *body = op->regions[0];
  need(r, op, operands_like(op, 0, body->arguments, body->argument_count), "its region does not take what it carries");
}

static void check_if(tile_reader *r, const tile_op *op) {
  const tile_type *condition = operand_type(op, 0);
  need(r, op, is_scalar_tile(condition) && condition->scalar == TILE_I1, "its condition is no scalar i1");
  need(r, op, !op->regions[0]->argument_count && !op->regions[1]->argument_count, "a region takes arguments");
}

static bool reduced_shape(const tile_type *from, const tile_type *to, uint32_t dim) {
  if (to->rank + 1 != from->rank) return false;
  for (uint32_t d = 0; d < to->rank; d++)
    if (to->shape[d] != from->shape[d < dim ? d : d + 1]) return false;
  return true;
}

static bool reduces_well(const tile_op *op, uint32_t i) {
  const tile_type *from = operand_type(op, i), *to = result_type(op, i);
  const tile_value *arguments = op->regions[0]->arguments;
  if (!is_tile(to) || !same_element(from, to) || op->identities[i].scalar != from->scalar) return false;
  if (op->opcode == TILE_OP_SCAN ? !same_shape(from, to) : !reduced_shape(from, to, (uint32_t)op->number)) return false;
  return scalar_of(arguments[2 * i].type, from) && scalar_of(arguments[2 * i + 1].type, from);
}

static void check_reduce(tile_reader *r, const tile_op *op) {
  uint32_t n = op->operand_count;
  need(r, op, n && n == op->result_count && n == op->identity_count && op->regions[0]->argument_count == 2 * n,
       "tiles, results, identities and arguments are not as many as each other");
  for (uint32_t i = 0; i < n && reader_ok(r); i++) {
    need(r, op, same_shape(operand_type(op, 0), operand_type(op, i)), "its operands are not tiles of one shape");
    need(r, op, op->number < operand_type(op, 0)->rank, "there is no such dimension");
    need(r, op, reader_ok(r) && reduces_well(op, i), "a result, an identity or an argument is of the wrong type");
  }
}

/* ---- shapes ---- */

static void check_cat(tile_reader *r, const tile_op *op) {
  const tile_type *a = operand_type(op, 0), *b = operand_type(op, 1), *to = result_type(op, 0);
  bool good = is_tile(a) && is_tile(b) && is_tile(to) && same_element(a, to) && same_element(b, to) &&
              a->rank == to->rank && b->rank == to->rank && op->number < to->rank;
  for (uint32_t d = 0; good && d < to->rank; d++)
    good = d == op->number ? a->shape[d] + b->shape[d] == to->shape[d]
                           : a->shape[d] == to->shape[d] && b->shape[d] == to->shape[d];
  need(r, op, good, "the result is not the two tiles one behind the other");
}

static void check_broadcast(tile_reader *r, const tile_op *op) {
  const tile_type *from = operand_type(op, 0), *to = result_type(op, 0);
  bool good = is_tile(from) && is_tile(to) && same_element(from, to) && from->rank == to->rank;
  for (uint32_t d = 0; good && d < to->rank; d++) good = from->shape[d] == 1 || from->shape[d] == to->shape[d];
  need(r, op, good, "the operand does not stretch to the result");
}

static void check_reshape(tile_reader *r, const tile_op *op) {
  const tile_type *from = operand_type(op, 0), *to = result_type(op, 0);
  need(r, op, is_tile(from) && is_tile(to) && same_element(from, to) && tile_elements(from) == tile_elements(to),
       "the result has other elements than the operand");
}

static void check_permute(tile_reader *r, const tile_op *op) {
  const tile_type *from = operand_type(op, 0), *to = result_type(op, 0);
  uint32_t seen = 0;
  bool good = is_tile(from) && is_tile(to) && same_element(from, to) && from->rank == to->rank &&
              op->permutation_count == to->rank;
  for (uint32_t d = 0; good && d < to->rank; d++) {
    int32_t source = op->permutation[d];
    good = source >= 0 && (uint32_t)source < to->rank && !(seen >> source & 1) && to->shape[d] == from->shape[source];
    seen |= good ? 1u << source : 0;
  }
  need(r, op, good, "the result is no permutation of the operand");
}

static bool scalar_indices(const tile_op *op, uint32_t first, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!is_scalar_integer(operand_type(op, first + i))) return false;
  return true;
}

/* extract, insert, by indices of i32: which tile of tiles of the shape of `part` in `whole`. */
static void check_part(tile_reader *r, const tile_op *op, const tile_type *part, const tile_type *whole) {
  bool good = is_tile(part) && is_tile(whole) && same_element(part, whole) && part->rank == whole->rank &&
              op->index_count == whole->rank && scalar_indices(op, op->index_first, op->index_count);
  for (uint32_t d = 0; good && d < whole->rank; d++)
    good = part->shape[d] <= whole->shape[d] && operand_type(op, op->index_first + d)->scalar == TILE_I32;
  need(r, op, good, "the small tile or the indices do not fit the large one");
}

static void check_iota(tile_reader *r, const tile_op *op) {
  const tile_type *to = result_type(op, 0);
  need(r, op, is_tile(to) && to->rank == 1 && is_integer(to->scalar), "the result is no row of integers");
}

static void check_pack(tile_reader *r, const tile_op *op) {
  const tile_type *from = operand_type(op, 0), *to = result_type(op, 0);
  bool good = is_tile(from) && is_tile(to) && from->rank == to->rank && from->rank;
  for (uint32_t d = 0; good && d + 1 < to->rank; d++) good = from->shape[d] == to->shape[d];
  need(r, op,
       good && (uint64_t)tile_elements(from) * tile_scalar_bits(from->scalar) ==
                   (uint64_t)tile_elements(to) * tile_scalar_bits(to->scalar),
       "the result has not the bits of the operand");
}

static void check_select(tile_reader *r, const tile_op *op) {
  need(r, op,
       operand_type(op, 0)->scalar == TILE_I1 && tile_type_equal(operand_type(op, 1), result_type(op, 0)) &&
           tile_type_equal(operand_type(op, 2), result_type(op, 0)),
       "the condition is not of i1, or what it chooses from is not of the result's type");
}

static bool is_pointers(const tile_type *type) { return is_tile(type) && type->scalar == TILE_POINTER; }
static bool is_integers(const tile_type *type) { return is_tile(type) && is_integer(type->scalar); }

/* Arithmetic of pointers; that shapes are the same is the operation's rule. */
static void check_pointer_values(tile_reader *r, const tile_op *op) {
  const tile_type *from = operand_type(op, 0), *to = result_type(op, 0);
  switch (op->opcode) {
  case TILE_OP_OFFSET:
    need(r, op, is_pointers(from) && tile_type_equal(from, to) && is_integers(operand_type(op, 1)),
         "it is not of pointers and integers, or the result is not of the pointers' type");
    break;
  case TILE_OP_INT_TO_PTR:
    need(r, op, is_integers(from) && is_pointers(to), "it is not of integers to pointers");
    break;
  case TILE_OP_PTR_TO_INT:
    need(r, op, is_pointers(from) && is_integers(to), "it is not of pointers to integers");
    break;
  case TILE_OP_PTR_TO_PTR: need(r, op, is_pointers(from) && is_pointers(to), "it is not of pointers"); break;
  default: break;
  }
}

static void check_compare(tile_reader *r, const tile_op *op) {
  need(r, op, tile_type_equal(operand_type(op, 0), operand_type(op, 1)) && result_type(op, 0)->scalar == TILE_I1,
       "the operands are not of one type, or the result is not of i1");
}

static void check_assert(tile_reader *r, const tile_op *op) {
  need(r, op, is_tile(operand_type(op, 0)) && operand_type(op, 0)->scalar == TILE_I1, "its condition is not of i1");
}

static void check_print(tile_reader *r, const tile_op *op) {
  for (uint32_t i = 0; i < op->operand_count; i++)
    need(r, op, (int32_t)i == op->token || is_tile(operand_type(op, i)), "an operand is no tile");
  need(r, op, op->result_count < 2 && (!op->result_count || is_token(result_type(op, 0))), "its result is no token");
}

static void check_mma(tile_reader *r, const tile_op *op) {
  const tile_type *a = operand_type(op, 0), *b = operand_type(op, 1), *c = operand_type(op, 2);
  bool good = is_tile(a) && is_tile(b) && tile_type_equal(c, result_type(op, 0)) && is_tile(c) &&
              (a->rank == 2 || a->rank == 3) && b->rank == a->rank && c->rank == a->rank;
  uint32_t m = good ? a->rank - 2 : 0, n = m + 1;
  if (good && m) good = a->shape[0] == c->shape[0] && b->shape[0] == c->shape[0];
  good = good && a->shape[m] == c->shape[m] && b->shape[n] == c->shape[n] && a->shape[n] == b->shape[m];
  need(r, op, good, "the shapes of the matrices do not fit each other");
  if (op->opcode != TILE_OP_MMAF_SCALED || !good) return;
  const tile_type *sa = operand_type(op, 3), *sb = operand_type(op, 4);
  good = is_tile(sa) && is_tile(sb) && sa->rank == a->rank && sb->rank == a->rank && sa->shape[m] == a->shape[m] &&
         sb->shape[n] == b->shape[n] && sa->shape[n] == sb->shape[m] && sa->shape[n] <= a->shape[n];
  if (good && m) good = sa->shape[0] == c->shape[0] && sb->shape[0] == c->shape[0];
  need(r, op, good, "the shapes of the scales do not fit the matrices");
}

/* ---- memory ---- */

static uint32_t count_dynamic(const int64_t *numbers, uint32_t rank) {
  uint32_t count = 0;
  for (uint32_t d = 0; d < rank; d++) count += numbers[d] == TILE_DYNAMIC;
  return count;
}

static void check_tensor_view(tile_reader *r, const tile_op *op) {
  const tile_type *base = operand_type(op, 0), *to = result_type(op, 0);
  if (to->kind != TILE_KIND_TENSOR_VIEW) {
    wrong(r, op, "the result is no tensor view");
    return;
  }
  need(r, op, is_scalar_tile(base) && base->scalar == TILE_POINTER && base->pointee == to->scalar,
       "the base is no pointer to the tensor's elements");
  need(r, op,
       op->index_count == count_dynamic(to->shape, to->rank) &&
           op->stride_count == count_dynamic(to->strides, to->rank) && scalar_indices(op, 1, op->operand_count - 1),
       "shape and strides are not as many scalar integers as the type leaves open");
}

static void check_make_view(tile_reader *r, const tile_op *op, tile_kind kind) {
  const tile_type *to = result_type(op, 0);
  need(r, op, to->kind == kind && tile_type_equal(to->tensor, operand_type(op, 0)),
       "the result is no view of the operand");
}

/* Indices of a view, and the tile that goes through it. */
static void check_access(tile_reader *r, const tile_op *op, const tile_type *view, const tile_type *tile) {
  if (!is_tile_view(view) || op->index_count != view->rank) {
    wrong(r, op, "is of no view of tiles, or has not one index for each dimension");
    return;
  }
  need(r, op,
       is_tile(tile) && tile->rank == view->rank && !memcmp(tile->shape, view->shape, sizeof tile->shape) &&
           same_element(tile, view),
       "the tile is not as those of the view");
  for (uint32_t d = 0; d < view->rank; d++) {
    const tile_type *index = operand_type(op, op->index_first + d);
    bool sparse = view->kind == TILE_KIND_GATHER_VIEW && d == view->sparse_dim;
    need(r, op,
         sparse ? is_tile(index) && index->rank == 1 && index->shape[0] == view->shape[d] && is_integer(index->scalar)
                : is_scalar_integer(index),
         "an index is no integer");
  }
}

static void check_dimensions(tile_reader *r, const tile_op *op) {
  const tile_type *view = operand_type(op, 0);
  bool good = op->opcode == TILE_OP_GET_TENSOR_SHAPE ? view->kind == TILE_KIND_TENSOR_VIEW : is_tile_view(view);
  good = good && op->result_count == view->rank;
  for (uint32_t i = 0; good && i < op->result_count; i++) good = is_scalar_integer(result_type(op, i));
  need(r, op, good, "does not give one scalar integer for each dimension of a view");
}

/* Pointers, and tiles of their shape that hold what they point to. */
static void check_pointers(tile_reader *r, const tile_op *op, uint32_t values) {
  const tile_type *pointers = operand_type(op, 0);
  need(r, op, is_tile(pointers) && pointers->scalar == TILE_POINTER, "the first operand is no tile of pointers");
  for (uint32_t i = 1; i <= values && reader_ok(r); i++)
    need(r, op, same_shape(operand_type(op, i), pointers), "a value has not the shape of the pointers");
  if (op->result_count == 2)
    need(r, op, same_shape(result_type(op, 0), pointers), "the result has not the shape of the pointers");
  if (op->padding >= 0)
    need(r, op, tile_type_equal(operand_type(op, (uint32_t)op->padding), result_type(op, 0)),
         "the padding is not of the result's type");
  if (op->result_count == 2 && values)
    need(r, op, tile_type_equal(operand_type(op, 1), result_type(op, 0)), "the value is not of the result's type");
}

static void check_pointer_result(tile_reader *r, const tile_op *op) {
  const tile_type *to = result_type(op, 0);
  need(r, op, is_scalar_tile(to) && to->scalar == TILE_POINTER, "the result is no pointer");
}

static void check_last_token(tile_reader *r, const tile_op *op) {
  need(r, op, is_token(result_type(op, op->result_count - 1)), "the last result is no token");
}

/* ---- all ---- */

static void check_memory(tile_reader *r, const tile_op *op) {
  switch (op->opcode) {
  case TILE_OP_ATOMIC_CAS_TKO: check_pointers(r, op, 2); break;
  case TILE_OP_ATOMIC_RMW_TKO:
  case TILE_OP_STORE_PTR_TKO: check_pointers(r, op, 1); break;
  case TILE_OP_LOAD_PTR_TKO: check_pointers(r, op, 0); break;
  case TILE_OP_LOAD_VIEW_TKO:
  case TILE_OP_MULTIMEM_LOAD_REDUCE_VIEW_TKO: check_access(r, op, operand_type(op, 0), result_type(op, 0)); break;
  case TILE_OP_STORE_VIEW_TKO: check_access(r, op, operand_type(op, 1), operand_type(op, 0)); break;
  case TILE_OP_MULTIMEM_REDUCE_VIEW_TKO:
  case TILE_OP_MULTIMEM_STORE_VIEW_TKO: check_access(r, op, operand_type(op, 0), operand_type(op, 1)); break;
  case TILE_OP_ATOMIC_RED_VIEW_TKO:
    check_access(r, op, operand_type(op, 0), operand_type(op, 1 + op->index_count));
    break;
  default: return;
  }
  check_last_token(r, op);
}

static void check_control(tile_reader *r, const tile_op *op) {
  switch (op->opcode) {
  case TILE_OP_FOR: check_for(r, op); break;
  case TILE_OP_LOOP: check_loop(r, op); break;
  case TILE_OP_IF: check_if(r, op); break;
  case TILE_OP_REDUCE:
  case TILE_OP_SCAN: check_reduce(r, op); break;
  case TILE_OP_YIELD: check_yield(r, op); break;
  case TILE_OP_BREAK: check_break(r, op); break;
  case TILE_OP_CONTINUE: check_continue(r, op); break;
  case TILE_OP_RETURN: check_return(r, op); break;
  case TILE_OP_ASSERT: check_assert(r, op); break;
  case TILE_OP_PRINT_TKO: check_print(r, op); break;
  default: break;
  }
}

static void check_shape(tile_reader *r, const tile_op *op) {
  switch (op->opcode) {
  case TILE_OP_CAT: check_cat(r, op); break;
  case TILE_OP_BROADCAST: check_broadcast(r, op); break;
  case TILE_OP_RESHAPE: check_reshape(r, op); break;
  case TILE_OP_PERMUTE: check_permute(r, op); break;
  case TILE_OP_EXTRACT: check_part(r, op, result_type(op, 0), operand_type(op, 0)); break;
  case TILE_OP_INSERT:
    check_part(r, op, operand_type(op, 0), operand_type(op, 1));
    need(r, op, tile_type_equal(operand_type(op, 1), result_type(op, 0)), "the result is not of the large tile's type");
    break;
  case TILE_OP_IOTA: check_iota(r, op); break;
  case TILE_OP_PACK:
  case TILE_OP_UNPACK: check_pack(r, op); break;
  case TILE_OP_SELECT: check_select(r, op); break;
  case TILE_OP_OFFSET:
  case TILE_OP_INT_TO_PTR:
  case TILE_OP_PTR_TO_INT:
  case TILE_OP_PTR_TO_PTR: check_pointer_values(r, op); break;
  case TILE_OP_CMPF:
  case TILE_OP_CMPI: check_compare(r, op); break;
  case TILE_OP_MMAF:
  case TILE_OP_MMAI:
  case TILE_OP_MMAF_SCALED: check_mma(r, op); break;
  case TILE_OP_GET_NUM_TILE_BLOCKS:
  case TILE_OP_GET_TILE_BLOCK_ID:
    need(r, op, is_scalar_integer(result_type(op, 0)), "a result is no scalar integer");
    break;
  case TILE_OP_MAKE_TENSOR_VIEW: check_tensor_view(r, op); break;
  case TILE_OP_MAKE_PARTITION_VIEW: check_make_view(r, op, TILE_KIND_PARTITION_VIEW); break;
  case TILE_OP_MAKE_STRIDED_VIEW: check_make_view(r, op, TILE_KIND_STRIDED_VIEW); break;
  case TILE_OP_MAKE_GATHER_SCATTER_VIEW: check_make_view(r, op, TILE_KIND_GATHER_VIEW); break;
  case TILE_OP_GET_TENSOR_SHAPE:
  case TILE_OP_GET_INDEX_SPACE_SHAPE: check_dimensions(r, op); break;
  case TILE_OP_GET_GLOBAL:
  case TILE_OP_ALLOCA: check_pointer_result(r, op); break;
  default: break;
  }
}

void read_check_op(tile_reader *r, const tile_op *op) {
  check_rule(r, op, tile_form_of(op->opcode)->rule);
  if (reader_ok(r)) check_shape(r, op);
  if (reader_ok(r)) check_memory(r, op);
  if (reader_ok(r)) check_control(r, op);
  if (reader_ok(r)) check_marked(r, op);
}
