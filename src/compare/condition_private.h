/* SPDX-License-Identifier: Apache-2.0 */
/* What condition_parse.c makes and condition.c evaluates. A node's operands come before it in the list, the last node
 * is the whole. Private to compare/. */
#ifndef FF_COMPARE_CONDITION_PRIVATE_H
#define FF_COMPARE_CONDITION_PRIVATE_H

#include "base/memory.h"
#include "compare/condition.h"

typedef enum condition_operation {
  OP_NUMBER,
  OP_NAME,
  OP_NEGATE,
  OP_ADD,
  OP_SUBTRACT,
  OP_MULTIPLY,
  OP_DIVIDE,
  OP_LESS,
  OP_LESS_EQUAL,
  OP_MORE,
  OP_MORE_EQUAL,
  OP_EQUAL,
  OP_UNEQUAL,
  OP_NOT,
  OP_AND,
  OP_OR,
} condition_operation;

typedef struct condition_node {
  condition_operation operation;
  bool truth;           /* it is true or false, and no number */
  int time, bytes;      /* powers of the dimension */
  uint32_t left, right; /* operands; NEGATE and NOT have `left` alone */
  double number;        /* of a NUMBER */
  char *manager;        /* of a NAME; owned */
  metric_id metric;
  bool baseline;
  uint32_t column; /* of its first character, or of the operator, from 1 */
} condition_node;

struct condition {
  char *text; /* without line ends */
  FF_VEC(condition_node) nodes;
};

/* The message with the condition and a caret. */
ff_status condition_fail(const condition *c, uint32_t column, ff_status status, ff_error *error, const char *format,
                         ...) __attribute__((format(printf, 5, 6)));

#endif
