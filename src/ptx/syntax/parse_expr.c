/* SPDX-License-Identifier: Apache-2.0 */
/* Constant expressions (PTX ISA, "Constant Expressions"): 64-bit integers, signed unless one operand is unsigned, and
 * doubles. C's operators and precedence. Arithmetic wraps; what C leaves undefined (a shift by 64 or more, the most
 * negative number divided by -1, a double too large for an integer) has a value here: 0 or the sign, the number
 * itself, the nearest integer. Division by zero is an error. */
#include "ptx/syntax/parse.h"

#include <math.h>
#include <string.h>

static double to_double(const ptx_value *value) {
  if (value->kind == PTX_OPERAND_F64) {
    double number;
    memcpy(&number, &value->bits, sizeof number);
    return number;
  }
  if (value->kind == PTX_OPERAND_F32) {
    float number;
    uint32_t bits = (uint32_t)value->bits;
    memcpy(&number, &bits, sizeof number);
    return number;
  }
  return value->is_unsigned ? (double)value->bits : (double)(int64_t)value->bits;
}

static void set_double(ptx_value *value, double number) {
  *value = (ptx_value){.kind = PTX_OPERAND_F64};
  memcpy(&value->bits, &number, sizeof number);
}

static void set_int(ptx_value *value, uint64_t bits, bool is_unsigned) {
  *value = (ptx_value){PTX_OPERAND_INT, is_unsigned, bits};
}

static uint64_t double_to_int(double number, bool is_unsigned) {
  if (isnan(number)) return 0;
  if (is_unsigned) return number <= 0 ? 0 : number >= 0x1p64 ? UINT64_MAX : (uint64_t)number;
  if (number <= -0x1p63) return (uint64_t)INT64_MIN;
  return number >= 0x1p63 ? (uint64_t)INT64_MAX : (uint64_t)(int64_t)number;
}

static bool truth(const ptx_value *value) {
  return value->kind == PTX_OPERAND_INT ? value->bits != 0 : to_double(value) != 0;
}

/* ---- operators ---- */

/* C's: 1 binds loosest. ?: is below all of them. */
static int precedence_of(int token) {
  switch (token) {
  case PTX_TOKEN_OR_OR: return 1;
  case PTX_TOKEN_AND_AND: return 2;
  case '|': return 3;
  case '^': return 4;
  case '&': return 5;
  case PTX_TOKEN_EQUAL:
  case PTX_TOKEN_NOT_EQUAL: return 6;
  case '<':
  case '>':
  case PTX_TOKEN_LESS_EQUAL:
  case PTX_TOKEN_GREATER_EQUAL: return 7;
  case PTX_TOKEN_SHIFT_LEFT:
  case PTX_TOKEN_SHIFT_RIGHT: return 8;
  case '+':
  case '-': return 9;
  case '*':
  case '/':
  case '%': return 10;
  default: return 0;
  }
}

static bool apply_double(int token, ptx_value *left, const ptx_value *right) {
  double a = to_double(left), b = to_double(right);
  switch (token) {
  case '+': set_double(left, a + b); return true;
  case '-': set_double(left, a - b); return true;
  case '*': set_double(left, a * b); return true;
  case '/': set_double(left, a / b); return true;
  case '<': set_int(left, a < b, false); return true;
  case '>': set_int(left, a > b, false); return true;
  case PTX_TOKEN_LESS_EQUAL: set_int(left, a <= b, false); return true;
  case PTX_TOKEN_GREATER_EQUAL: set_int(left, a >= b, false); return true;
  case PTX_TOKEN_EQUAL: set_int(left, a == b, false); return true;
  case PTX_TOKEN_NOT_EQUAL: set_int(left, a != b, false); return true;
  default: return false;
  }
}

static uint64_t divide(uint64_t a, uint64_t b, bool is_unsigned, bool remainder) {
  if (is_unsigned) return remainder ? a % b : a / b;
  if ((int64_t)b == -1) return remainder ? 0 : 0 - a;
  return remainder ? (uint64_t)((int64_t)a % (int64_t)b) : (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t shift_right(uint64_t a, uint64_t b, bool is_unsigned) {
  if (is_unsigned) return b > 63 ? 0 : a >> b;
  uint64_t fill = (int64_t)a < 0 ? UINT64_MAX : 0;
  return b > 63 ? fill : b == 0 ? a : a >> b | fill << (64 - b);
}

static bool less(uint64_t a, uint64_t b, bool is_unsigned) { return is_unsigned ? a < b : (int64_t)a < (int64_t)b; }

static bool apply_int(ptx_parser *parser, int token, ptx_value *left, const ptx_value *right) {
  bool u = left->is_unsigned || right->is_unsigned;
  uint64_t a = left->bits, b = right->bits;
  switch (token) {
  case '+': set_int(left, a + b, u); return true;
  case '-': set_int(left, a - b, u); return true;
  case '*': set_int(left, a * b, u); return true;
  case '/':
  case '%':
    if (!b) {
      ptx_error_here(parser, "division by zero in a constant expression");
      return false;
    }
    set_int(left, divide(a, b, u, token == '%'), u);
    return true;
  case '&': set_int(left, a & b, u); return true;
  case '|': set_int(left, a | b, u); return true;
  case '^': set_int(left, a ^ b, u); return true;
  case PTX_TOKEN_SHIFT_LEFT: set_int(left, b > 63 ? 0 : a << b, left->is_unsigned); return true;
  case PTX_TOKEN_SHIFT_RIGHT: set_int(left, shift_right(a, b, left->is_unsigned), left->is_unsigned); return true;
  case '<': set_int(left, less(a, b, u), false); return true;
  case '>': set_int(left, less(b, a, u), false); return true;
  case PTX_TOKEN_LESS_EQUAL: set_int(left, !less(b, a, u), false); return true;
  case PTX_TOKEN_GREATER_EQUAL: set_int(left, !less(a, b, u), false); return true;
  case PTX_TOKEN_EQUAL: set_int(left, a == b, false); return true;
  default: set_int(left, a != b, false); return true;
  }
}

static bool apply(ptx_parser *parser, int token, ptx_value *left, const ptx_value *right) {
  if (token == PTX_TOKEN_AND_AND || token == PTX_TOKEN_OR_OR) {
    bool a = truth(left), b = truth(right);
    set_int(left, token == PTX_TOKEN_AND_AND ? a && b : a || b, false);
    return true;
  }
  if (left->kind == PTX_OPERAND_INT && right->kind == PTX_OPERAND_INT) return apply_int(parser, token, left, right);
  if (apply_double(token, left, right)) return true;
  ptx_error_here(parser, "this operator does not take floating-point numbers");
  return false;
}

/* ---- the grammar ---- */

static bool parse_unary(ptx_parser *parser, ptx_value *value);
static bool parse_binary(ptx_parser *parser, int lowest, ptx_value *value);

static bool go_deeper(ptx_parser *parser) {
  if (parser->depth < PTX_LIMIT_DEPTH) {
    parser->depth++;
    return true;
  }
  ptx_error_here(parser, "nested deeper than %d", (int)PTX_LIMIT_DEPTH);
  return false;
}

/* (.s64) x or (.u64) x, the '(' and the type taken. */
static bool parse_cast(ptx_parser *parser, ptx_value *value) {
  ptx_type type = ptx_word_find(parser->token.chars, parser->token.length).type;
  if (type != PTX_S64 && type != PTX_U64) {
    ptx_error_here(parser, "a cast is (.s64) or (.u64)");
    return false;
  }
  ptx_next(parser);
  if (!ptx_expect(parser, ')', "the type of a cast") || !parse_unary(parser, value)) return false;
  if (value->kind != PTX_OPERAND_INT) value->bits = double_to_int(to_double(value), type == PTX_U64);
  set_int(value, value->bits, type == PTX_U64);
  return true;
}

static bool parse_primary(ptx_parser *parser, ptx_value *value) {
  const ptx_token *token = &parser->token;
  char buffer[80];
  switch (token->kind) {
  case PTX_TOKEN_INTEGER: set_int(value, token->bits, token->is_unsigned); break;
  case PTX_TOKEN_F32: *value = (ptx_value){PTX_OPERAND_F32, false, token->bits}; break;
  case PTX_TOKEN_F64: *value = (ptx_value){PTX_OPERAND_F64, false, token->bits}; break;
  case PTX_TOKEN_NAME:
    if (token->length == 7 && memcmp(token->chars, "WARP_SZ", 7) == 0) {
      set_int(value, 32, false);
      break;
    }
    /* fall through */
  default: ptx_error_here(parser, "expected a number, not %s", ptx_token_text(token, buffer)); return false;
  }
  ptx_next(parser);
  return true;
}

static bool parse_parenthesised(ptx_parser *parser, ptx_value *value) {
  ptx_next(parser);
  if (parser->token.kind == PTX_TOKEN_DOTTED) return parse_cast(parser, value);
  return ptx_parse_constant(parser, value) && ptx_expect(parser, ')', "an expression");
}

static void negate(ptx_value *value) {
  if (value->kind == PTX_OPERAND_INT) value->bits = 0 - value->bits;
  else value->bits ^= UINT64_C(1) << (value->kind == PTX_OPERAND_F32 ? 31 : 63);
}

static bool parse_operator(ptx_parser *parser, ptx_value *value) {
  int operator= parser->token.kind;
  ptx_next(parser);
  if (!parse_unary(parser, value)) return false;
  if (operator== '-') negate(value);
  if (operator== '!') set_int(value, !truth(value), false);
  if (operator== '~') {
    if (value->kind != PTX_OPERAND_INT) {
      ptx_error_here(parser, "'~' does not take a floating-point number");
      return false;
    }
    value->bits = ~value->bits;
  }
  return true;
}

static bool parse_unary(ptx_parser *parser, ptx_value *value) {
  int kind = parser->token.kind;
  bool prefix = kind == '-' || kind == '+' || kind == '~' || kind == '!';
  if (kind != '(' && !prefix) return parse_primary(parser, value);
  if (!go_deeper(parser)) return false;
  bool good = prefix ? parse_operator(parser, value) : parse_parenthesised(parser, value);
  parser->depth--;
  return good;
}

static bool parse_binary(ptx_parser *parser, int lowest, ptx_value *value) {
  if (!parse_unary(parser, value)) return false;
  for (;;) {
    int token = parser->token.kind;
    int precedence = precedence_of(token);
    if (!precedence || precedence < lowest) return true;
    ptx_value right;
    ptx_next(parser);
    if (!parse_binary(parser, precedence + 1, &right) || !apply(parser, token, value, &right)) return false;
  }
}

bool ptx_parse_constant(ptx_parser *parser, ptx_value *value) {
  if (!parse_binary(parser, 1, value)) return false;
  if (parser->token.kind != '?') return true;
  ptx_value chosen[2];
  ptx_next(parser);
  if (!go_deeper(parser)) return false;
  bool good = ptx_parse_constant(parser, &chosen[0]) && ptx_expect(parser, ':', "the first choice of ?:") &&
              ptx_parse_constant(parser, &chosen[1]);
  parser->depth--;
  if (good) *value = chosen[truth(value) ? 0 : 1];
  return good;
}

bool ptx_parse_term(ptx_parser *parser, ptx_value *value) { return parse_binary(parser, 10, value); }

static bool begins_expression(int kind) {
  return kind == PTX_TOKEN_INTEGER || kind == PTX_TOKEN_F32 || kind == PTX_TOKEN_F64 || kind == PTX_TOKEN_NAME ||
         kind == '(' || kind == '-' || kind == '+' || kind == '~' || kind == '!';
}

bool ptx_parse_count(ptx_parser *parser, const char *what, uint64_t lowest, uint64_t highest, uint64_t *value) {
  char buffer[80];
  ptx_place place = parser->token.place;
  ptx_value number;
  if (!begins_expression(parser->token.kind)) {
    ptx_error_here(parser, "expected %s, not %s", what, ptx_token_text(&parser->token, buffer));
    return false;
  }
  if (!ptx_parse_constant(parser, &number)) return false;
  bool negative = !number.is_unsigned && (int64_t)number.bits < 0;
  if (number.kind != PTX_OPERAND_INT || negative || number.bits < lowest || number.bits > highest) {
    ptx_error_at(parser, place, FF_PARSE, "expected %s from %llu to %llu", what, (unsigned long long)lowest,
                 (unsigned long long)highest);
    return false;
  }
  *value = number.bits;
  return true;
}
