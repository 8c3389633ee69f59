/* SPDX-License-Identifier: Apache-2.0 */
/* The words of PTX text (PTX ISA, "Syntax"). lex.re holds the scanner itself.
 *
 * A token points into the text, which ends with a NUL that is not part of it. A dotted word keeps everything up to the
 * next separator, so `.L2::128B` and `.mbarrier::complete_tx::bytes` are one token each. Single characters are tokens
 * of their own value. The scanner stops at the end of the text, whatever the bytes are; from then on it returns
 * PTX_TOKEN_END. */
#ifndef FF_PTX_LEX_H
#define FF_PTX_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ptx/ir.h"

typedef enum ptx_token_kind {
  PTX_TOKEN_END = 0,
  /* 1 .. 127: that character */
  PTX_TOKEN_NAME = 256, /* add, $L__BB0_1, %r3, _ */
  PTX_TOKEN_DOTTED,     /* .global, .f32, .shared::cta; chars points behind the dot */
  PTX_TOKEN_INTEGER,    /* bits; is_unsigned: written with U, or too large for a signed one */
  PTX_TOKEN_F32,        /* 0f3F800000: bits */
  PTX_TOKEN_F64,        /* 0d... or a decimal: bits */
  PTX_TOKEN_STRING,     /* chars and length without the quotes, escapes as written */
  PTX_TOKEN_SHIFT_LEFT,
  PTX_TOKEN_SHIFT_RIGHT,
  PTX_TOKEN_LESS_EQUAL,
  PTX_TOKEN_GREATER_EQUAL,
  PTX_TOKEN_EQUAL,
  PTX_TOKEN_NOT_EQUAL,
  PTX_TOKEN_AND_AND,
  PTX_TOKEN_OR_OR,
  PTX_TOKEN_BAD, /* problem says what is wrong */
} ptx_token_kind;

typedef struct ptx_token {
  int kind; /* ptx_token_kind or a character */
  bool is_unsigned;
  const char *chars;
  uint32_t length;
  ptx_place place;
  uint64_t bits;
  const char *problem; /* PTX_TOKEN_BAD: a static text */
} ptx_token;

typedef struct ptx_lexer {
  const char *cursor, *limit; /* *limit == '\0' */
  const char *line_start;
  uint32_t line;
} ptx_lexer;

void ptx_lex(ptx_lexer *lexer, ptx_token *token);

#endif
