/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that are only noticed when their module is parsed, and read when they are wanted (ptx_module_parse_later).
 *
 *   .entry name ... { } --ptx_notice_kernel--> unread --ptx_func_read--> as ptx_module_parse makes it
 *
 * A program uses few of the kernels in its binary. To find the end of one, its text is only searched for braces,
 * comments, quotes and ends of lines. What a module has as a whole does not change when a kernel is read: one with
 * variables of the module in its body, and one that is declared more than once, is parsed at once. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ptx/module.h"
#include "ptx/syntax/parse.h"

struct ptx_unread {
  ptx_lexer lexer; /* behind `.entry` */
  ptx_linkage linkage;
  const char *end; /* behind its '}' */
};

typedef enum sign { PLAIN, LINE, SEMICOLON, OPEN, CLOSE, QUOTE, SLASH, END } sign;
static const unsigned char signs[256] = {
    ['\n'] = LINE, [';'] = SEMICOLON, ['{'] = OPEN, ['}'] = CLOSE, ['"'] = QUOTE, ['/'] = SLASH, ['\0'] = END};

static void next_line(ptx_lexer *at) {
  at->line++;
  at->line_start = at->cursor;
}

/* Up to behind `end`, or the text's end. */
static void skip_past(ptx_lexer *at, const char *end) {
  size_t length = strlen(end);
  while (at->cursor < at->limit) {
    if ((size_t)(at->limit - at->cursor) >= length && !memcmp(at->cursor, end, length)) {
      at->cursor += length;
      if (*end == '\n') next_line(at);
      return;
    }
    if (*at->cursor++ == '\n') next_line(at);
  }
}

/* A quoted text: false: it does not end on its line. */
static bool skip_quoted(ptx_lexer *at) {
  for (; at->cursor < at->limit && *at->cursor != '\n'; at->cursor++) {
    if (*at->cursor == '\\' && at->cursor[1] != '\n') at->cursor++;
    else if (*at->cursor == '"') return at->cursor++, true;
  }
  return false;
}

/* A '/' is before the cursor: does a comment begin with it? Then it is skipped. */
static void skip_comment(ptx_lexer *at) {
  if (*at->cursor == '/') skip_past(at, "\n");
  else if (*at->cursor == '*') {
    at->cursor++;
    skip_past(at, "*/");
  }
}

static bool begins(const char *at, const char *limit, const char *word) {
  size_t length = strlen(word);
  return (size_t)(limit - at) >= length && !memcmp(at, word, length);
}

/* Does a statement begin here with a directive that makes more than a part of its function? */
static bool is_of_module(const ptx_lexer *lexer) {
  const char *at = lexer->cursor;
  while (at < lexer->limit && (*at == ' ' || *at == '\t' || *at == '\r')) at++;
  return at < lexer->limit && *at == '.' &&
         (begins(at, lexer->limit, ".global") || begins(at, lexer->limit, ".const") ||
          begins(at, lexer->limit, ".file"));
}

/* The next sign; the cursor is behind it then. The text ends with a NUL, which is one. */
static sign next_sign(ptx_lexer *at) {
  const char *c = at->cursor;
  while (!signs[(unsigned char)*c]) c++;
  at->cursor = c + 1;
  return (sign)signs[(unsigned char)*c];
}

/* Moves the lexer behind the body of the kernel in whose head it is. False: the kernel cannot be left unread. */
static bool skip_kernel(ptx_lexer *at) {
  uint32_t open = 0;
  for (;;) {
    sign found = next_sign(at);
    if (found == LINE) next_line(at);
    if (found == END || (found == SEMICOLON && !open)) return false; /* never closed, or a declaration */
    if (found == OPEN) open++;
    if (found == CLOSE && !open) return false;
    if (found == CLOSE && !--open) return true;
    if (found == QUOTE && !skip_quoted(at)) return false;
    if (found == SLASH) skip_comment(at);
    else if (is_of_module(at)) return false;
  }
}

static const ptx_binding *find(const ptx_parser *parser, const ptx_token *name) {
  return ptx_names_find(&parser->names, PTX_NAMES_THING, name->chars, name->length);
}

bool ptx_notice_kernel(ptx_parser *parser, ptx_linkage linkage) {
  ptx_token name = ptx_peek(parser);
  if (!parser->later || name.kind != PTX_TOKEN_NAME) return false;
  const ptx_binding *known = find(parser, &name);
  if (known) { /* the second time */
    if (known->symbol && known->symbol->func) ptx_func_read(known->symbol->func, parser->error);
    return false;
  }
  ptx_lexer behind = parser->lexer;
  if (!skip_kernel(&behind)) return false;
  struct ptx_unread unread = {parser->lexer, linkage, behind.cursor};
  ptx_func *func = ptx_new(parser, sizeof *func);
  *func = (ptx_func){.name = ptx_keep(parser, &name),
                     .place = name.place,
                     .entry = true,
                     .has_body = true,
                     .linkage = linkage,
                     .index = (uint32_t)parser->funcs.count,
                     .module = parser->module,
                     .source = parser->module,
                     .unread = ptx_keep_items(parser, &unread, 1, sizeof unread)};
  func->symbol = (ptx_symbol){.name = func->name, .func = func};
  ptx_names_bind(&parser->names, PTX_NAMES_THING, name.chars, name.length,
                 (ptx_binding){.symbol = &func->symbol, .reg = PTX_NO_REG, .count = 1, .vector = 1});
  FF_PUSH(&parser->funcs, func);
  parser->lexer = behind;
  ptx_next(parser);
  return true;
}

/* What the module has as a whole. */
static size_t parts_of_module(const ptx_parser *parser) {
  return parser->module_vars.count + parser->funcs.count + parser->files.count;
}

/* Where the first token behind `end` begins. */
static const char *token_behind(const ptx_parser *parser, const char *end) {
  ptx_lexer behind = {end, parser->lexer.limit, end, 1};
  ptx_token token;
  ptx_lex(&behind, &token);
  return token.chars;
}

ff_status ptx_func_read(ptx_func *func, ff_error *error) {
  struct ptx_unread *unread = func->unread;
  if (!unread) return FF_OK;
  ptx_parser *parser = func->module->parser;
  ptx_lexer lexer = parser->lexer;
  ptx_token token = parser->token;
  size_t parts = parts_of_module(parser);
  parser->error = error;
  parser->status = FF_OK;
  parser->lexer = unread->lexer;
  parser->reading = func;
  ptx_parse_function(parser, unread->linkage, true);
  parser->reading = NULL;
  bool whole = parser->token.chars == token_behind(parser, unread->end);
  if (parser->status == FF_OK && (!whole || parts_of_module(parser) != parts))
    ptx_error_at(parser, func->place, FF_UNSUPPORTED, "'%s' is written in a way in which kernels cannot be read alone",
                 func->name);
  ptx_check_files(parser, func);
  ff_status status = parser->status;
  if (status != FF_OK) { /* the next launch is told the same */
    func->unread = unread;
    func->has_body = true;
    func->instr_count = 0;
  } else if (ff_check_level >= 2) {
    ptx_func_check(func);
  }
  parser->lexer = lexer;
  parser->token = token;
  return status;
}

ff_status ptx_module_read(ptx_module *module, ff_error *error) {
  ff_status status = FF_OK;
  for (uint32_t f = 0; f < module->func_count && status == FF_OK; f++) status = ptx_func_read(module->funcs[f], error);
  return status;
}
