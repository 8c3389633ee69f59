/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner of PTX text, made into C by re2c. The text ends with a NUL at `limit`, which serves as the sentinel: the
 * scanner can pass it only by taking it as a character, and rule NUL is the only one that takes it. */
#include "ptx/syntax/lex.h"

#include <stdlib.h>
#include <string.h>

static void bad(ptx_token *token, const char *problem) {
  token->kind = PTX_TOKEN_BAD;
  token->problem = problem;
}

static unsigned digit_value(char c) {
  if (c >= '0' && c <= '9') return (unsigned)(c - '0');
  return (unsigned)((c | 32) - 'a') + 10;
}

/* Digits of `base`, an optional U behind them. PTX ISA, "Integer Constants": 64 bits, signed unless U or too large. */
static void read_integer(ptx_token *token, const char *from, const char *end, unsigned base) {
  token->kind = PTX_TOKEN_INTEGER;
  if (end > from && end[-1] == 'U') {
    token->is_unsigned = true;
    end--;
  }
  uint64_t value = 0;
  for (; from < end; from++) {
    unsigned digit = digit_value(*from);
    if (digit >= base) {
      bad(token, "this digit does not belong to an octal number");
      return;
    }
    if (value > (UINT64_MAX - digit) / base) {
      bad(token, "this number does not fit in 64 bits");
      return;
    }
    value = value * base + digit;
  }
  if (value > INT64_MAX) token->is_unsigned = true;
  token->bits = value;
}

static void read_hex_float(ptx_token *token, const char *from, const char *end, ptx_token_kind kind) {
  token->kind = kind;
  for (; from < end; from++) token->bits = token->bits << 4 | digit_value(*from);
}

static void read_decimal_float(ptx_token *token, const char *from, const char *end) {
  char digits[64];
  size_t length = (size_t)(end - from);
  if (length >= sizeof digits) {
    bad(token, "this number has too many digits");
    return;
  }
  memcpy(digits, from, length);
  digits[length] = '\0';
  double value = strtod(digits, NULL);
  memcpy(&token->bits, &value, sizeof value);
  token->kind = PTX_TOKEN_F64;
}

static void new_line(ptx_lexer *lexer, const char *next) {
  lexer->line++;
  lexer->line_start = next;
}

/* Skips the rest of a block comment; false: the text ends inside it. */
static bool skip_comment(ptx_lexer *lexer, const char **cursor) {
  for (const char *c = *cursor; c < lexer->limit; c++) {
    if (*c == '\n') new_line(lexer, c + 1);
    if (*c == '*' && c[1] == '/') {
      *cursor = c + 2;
      return true;
    }
  }
  *cursor = lexer->limit;
  return false;
}

static void start_token(const ptx_lexer *lexer, ptx_token *token, const char *start) {
  *token = (ptx_token){.chars = start, .place = {lexer->line, (uint32_t)(start - lexer->line_start) + 1}};
}

void ptx_lex(ptx_lexer *lexer, ptx_token *token) {
  const char *YYCURSOR = lexer->cursor, *YYMARKER = YYCURSOR, *start;
#define DONE goto done
again:
  start = YYCURSOR;
  /*!re2c
    re2c:define:YYCTYPE = "unsigned char";
    re2c:yyfill:enable = 0;
    re2c:encoding:utf8 = 0; // bytes: comments may hold anything

    follow = [a-zA-Z0-9_$];
    name   = [a-zA-Z_$%] follow* ;
    hex    = [0-9a-fA-F];
    exp    = [eE] [+-]? [0-9]+;

    [ \t\r\f\v]+          { goto again; }
    "\n"                  { new_line(lexer, YYCURSOR); goto again; }
    "//" [^\n\x00]*       { goto again; }
    "/*"                  {
      start_token(lexer, token, start);
      if (skip_comment(lexer, &YYCURSOR)) goto again;
      bad(token, "this comment is never closed");
      DONE;
    }
    "\x00"                {
      start_token(lexer, token, start);
      if (start >= lexer->limit) YYCURSOR = start;
      else bad(token, "a NUL byte in the text");
      DONE;
    }
    "%"                   { start_token(lexer, token, start); token->kind = '%'; DONE; }
    name                  { start_token(lexer, token, start); token->kind = PTX_TOKEN_NAME; DONE; }
    "." follow+ ("::" follow+)* {
      start_token(lexer, token, start);
      token->kind = PTX_TOKEN_DOTTED;
      token->chars++;
      token->length = (uint32_t)(YYCURSOR - start) - 1;
      lexer->cursor = YYCURSOR;
      return;
    }
    "0" [fF] hex{8}       { start_token(lexer, token, start); read_hex_float(token, start + 2, YYCURSOR, PTX_TOKEN_F32); DONE; }
    "0" [dD] hex{16}      { start_token(lexer, token, start); read_hex_float(token, start + 2, YYCURSOR, PTX_TOKEN_F64); DONE; }
    "0" [xX] hex+ "U"?    { start_token(lexer, token, start); read_integer(token, start + 2, YYCURSOR, 16); DONE; }
    "0" [bB] [01]+ "U"?   { start_token(lexer, token, start); read_integer(token, start + 2, YYCURSOR, 2); DONE; }
    "0" [0-9]* "U"?       { start_token(lexer, token, start); read_integer(token, start, YYCURSOR, 8); DONE; }
    [1-9] [0-9]* "U"?     { start_token(lexer, token, start); read_integer(token, start, YYCURSOR, 10); DONE; }
    [0-9]+ "." [0-9]* exp? | [0-9]+ exp {
      start_token(lexer, token, start);
      read_decimal_float(token, start, YYCURSOR);
      DONE;
    }
    [0-9] follow+         { start_token(lexer, token, start); bad(token, "this is not a number"); DONE; }
    "\"" ([^"\n\x00\\] | "\\" [^\n\x00])* "\"" {
      start_token(lexer, token, start);
      token->kind = PTX_TOKEN_STRING;
      token->chars++;
      token->length = (uint32_t)(YYCURSOR - start) - 2;
      lexer->cursor = YYCURSOR;
      return;
    }
    "\""                  { start_token(lexer, token, start); bad(token, "this string is never closed"); DONE; }
    "<<"                  { start_token(lexer, token, start); token->kind = PTX_TOKEN_SHIFT_LEFT; DONE; }
    ">>"                  { start_token(lexer, token, start); token->kind = PTX_TOKEN_SHIFT_RIGHT; DONE; }
    "<="                  { start_token(lexer, token, start); token->kind = PTX_TOKEN_LESS_EQUAL; DONE; }
    ">="                  { start_token(lexer, token, start); token->kind = PTX_TOKEN_GREATER_EQUAL; DONE; }
    "=="                  { start_token(lexer, token, start); token->kind = PTX_TOKEN_EQUAL; DONE; }
    "!="                  { start_token(lexer, token, start); token->kind = PTX_TOKEN_NOT_EQUAL; DONE; }
    "&&"                  { start_token(lexer, token, start); token->kind = PTX_TOKEN_AND_AND; DONE; }
    "||"                  { start_token(lexer, token, start); token->kind = PTX_TOKEN_OR_OR; DONE; }
    [\x21-\x7e]           { start_token(lexer, token, start); token->kind = (unsigned char)*start; DONE; }
    *                     { start_token(lexer, token, start); bad(token, "this byte does not belong in PTX text"); DONE; }
  */
done:
  token->length = (uint32_t)(YYCURSOR - start);
  lexer->cursor = YYCURSOR;
}
