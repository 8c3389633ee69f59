/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that are only noticed when their module is parsed, and read when they are wanted (ptx_module_parse_later).
 *
 *   .entry name ... { } --ptx_notice_kernel--> a name --ptx_func_read_head--> a head
 *   .func (..) name (..) { } --ptx_notice_body-------------------------------> a head
 *   a head --ptx_func_read, ptx_func_look--> as ptx_module_parse makes it --ptx_func_forget--> a head
 *
 * A program uses little of what is in its binary. To find the end of a body, the text is only searched for braces,
 * ends of statements and labels, comments, quotes and ends of lines. What a module has as a whole does not change when
 * a body is read: one with variables of the module in it, and a kernel that is declared more than once, is parsed at
 * once. A body has an arena of its own. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ptx/module.h"
#include "ptx/syntax/parse.h"

typedef enum sign { PLAIN, LINE, SEMICOLON, COLON, OPEN, CLOSE, QUOTE, SLASH, END } sign;
static const unsigned char signs[256] = {['\n'] = LINE, [';'] = SEMICOLON, [':'] = COLON, ['{'] = OPEN,
                                         ['}'] = CLOSE, ['"'] = QUOTE,     ['/'] = SLASH, ['\0'] = END};

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

/* Does a directive that makes more than a part of its function begin at `at`? */
static bool names_module(const char *at, const char *limit) {
  return begins(at, limit, ".global") || begins(at, limit, ".const") || begins(at, limit, ".file");
}

static bool is_loc(const ptx_token *token) {
  return token->kind == PTX_TOKEN_DOTTED && token->length == 3 && !memcmp(token->chars, "loc", 3);
}

/* What stands behind a .loc, which has no end of its own; the lexer is in front of it. A name is the .loc's if it
 * stands behind a comma (function_name, inlined_at) or behind such a name (a label). */
static const char *behind_loc(ptx_lexer lexer) {
  ptx_token token;
  bool of_loc, may_name = false;
  do {
    ptx_lex(&lexer, &token);
    bool name = may_name && token.kind == PTX_TOKEN_NAME;
    may_name = token.kind == ',' || name;
    of_loc = name || token.kind == PTX_TOKEN_INTEGER || token.kind == ',' || token.kind == '+' || is_loc(&token);
  } while (of_loc);
  return token.kind == PTX_TOKEN_DOTTED ? token.chars - 1 : token.chars;
}

/* Does a statement begin here with a directive that makes more than a part of its function? */
static bool is_of_module(const ptx_lexer *lexer) {
  const char *at = lexer->cursor, *limit = lexer->limit;
  while (at < limit && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\f' || *at == '\v')) at++;
  if (begins(at, limit, ".loc") && !begins(at, limit, ".local")) at = behind_loc(*lexer);
  return names_module(at, limit);
}

/* The next sign; the cursor is behind it then. The text ends with a NUL, which is one. */
static sign next_sign(ptx_lexer *at) {
  const char *c = at->cursor;
  while (!signs[(unsigned char)*c]) c++;
  at->cursor = c + 1;
  return (sign)signs[(unsigned char)*c];
}

/* Moves the lexer behind the next body, in front of which it is. False: that cannot be left unread. */
static bool skip_body(ptx_lexer *at) {
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
    if (is_of_module(at)) return false;
  }
}

/* The lexer in front of the token in hand. */
static ptx_lexer at_token(const ptx_parser *parser) {
  ptx_lexer lexer = parser->lexer;
  lexer.cursor = parser->token.chars;
  return lexer;
}

/* Notes where the rest of the function begins and ends; the token behind it is in hand then. */
static void note(ptx_parser *parser, ptx_func *func, ptx_lexer begin, ptx_lexer behind, bool has_head) {
  struct ptx_later later = {.lexer = begin, .end = behind.cursor, .has_head = has_head};
  func->unread = func->later = ptx_keep_items(parser, &later, 1, sizeof later);
  func->has_body = true;
  parser->lexer = behind;
  ptx_next(parser);
}

bool ptx_notice_kernel(ptx_parser *parser, ptx_linkage linkage) {
  ptx_token name = ptx_peek(parser);
  if (!parser->later || name.kind != PTX_TOKEN_NAME) return false;
  const ptx_binding *known = ptx_names_find(&parser->names, PTX_NAMES_THING, name.chars, name.length);
  if (known) { /* the second time */
    if (known->symbol && known->symbol->func) ptx_func_read(known->symbol->func, parser->error);
    return false;
  }
  ptx_lexer behind = parser->lexer;
  if (!skip_body(&behind)) return false;
  ptx_func *func = ptx_new(parser, sizeof *func);
  *func = (ptx_func){.name = ptx_keep(parser, &name),
                     .place = name.place,
                     .entry = true,
                     .linkage = linkage,
                     .index = (uint32_t)parser->funcs.count,
                     .module = parser->module,
                     .source = parser->module};
  func->symbol = (ptx_symbol){.name = func->name, .func = func};
  ptx_names_bind(&parser->names, PTX_NAMES_THING, name.chars, name.length,
                 (ptx_binding){.symbol = &func->symbol, .reg = PTX_NO_REG, .count = 1, .vector = 1});
  FF_PUSH(&parser->funcs, func);
  note(parser, func, parser->lexer, behind, false);
  return true;
}

bool ptx_notice_body(ptx_parser *parser, ptx_func *func) {
  ptx_lexer begin = at_token(parser), behind = begin;
  if (!parser->later || !skip_body(&behind)) return false;
  note(parser, func, begin, behind, true);
  return true;
}

/* ---- reading ---- */

typedef struct paused { /* what the parser was at, in the middle of which a function is read */
  ptx_lexer lexer;
  ptx_token token;
  size_t parts, names, forwards;
  uint64_t registers, register_text, targets, data;
} paused;

/* What the module has as a whole. */
static size_t parts_of_module(const ptx_parser *parser) {
  return parser->module_vars.count + parser->funcs.count + parser->files.count;
}

static paused begin_reading(ptx_parser *parser, const ptx_lexer *from, ff_error *error) {
  paused before = {.lexer = parser->lexer,
                   .token = parser->token,
                   .parts = parts_of_module(parser),
                   .names = parser->names.names.count,
                   .forwards = parser->forwards.count,
                   .registers = parser->reg_total,
                   .register_text = parser->reg_text,
                   .targets = parser->target_total,
                   .data = parser->data_bytes};
  parser->error = error;
  parser->status = FF_OK;
  parser->lexer = *from;
  return before;
}

static ff_status end_reading(ptx_parser *parser, const paused *before) {
  ptx_names_truncate(&parser->names, before->names);
  parser->forwards.count = before->forwards;
  parser->lexer = before->lexer;
  parser->token = before->token;
  return parser->status;
}

static ff_status read_head(ptx_func *func, ff_error *error) {
  struct ptx_later *later = func->later;
  ptx_parser *parser = func->module->parser;
  if (later->has_head) return FF_OK;
  paused before = begin_reading(parser, &later->lexer, error);
  if (ptx_parse_head(parser, func)) {
    later->lexer = at_token(parser);
    later->has_head = true;
  }
  return end_reading(parser, &before);
}

/* Where the first token behind `end` begins. */
static const char *token_behind(const ptx_parser *parser, const char *end) {
  ptx_lexer behind = {end, parser->lexer.limit, end, 1};
  ptx_token token;
  ptx_lex(&behind, &token);
  return token.chars;
}

/* Parses the body, and what of it can only be said at its end. */
static void parse_late_body(ptx_parser *parser, ptx_func *func, const paused *before) {
  ptx_next(parser);
  ptx_parse_body(parser, func);
  bool whole = parser->token.chars == token_behind(parser, func->later->end);
  if (parser->status == FF_OK && (!whole || parts_of_module(parser) != before->parts))
    ptx_error_at(parser, func->place, FF_UNSUPPORTED, "'%s' is written in a way in which its body cannot be read alone",
                 func->name);
  if (parser->status == FF_OK) ptx_resolve_forwards(parser, before->forwards);
  ptx_check_files(parser, func);
  ptx_free_lists(parser); /* a program may have hundreds of modules, each with a parser of its own */
}

static ff_status read_body(ptx_func *func, ff_error *error) {
  struct ptx_later *later = func->later;
  ptx_parser *parser = func->module->parser;
  ff_status status = read_head(func, error);
  if (status != FF_OK) return status;
  later->head_vars = func->vars;
  later->head_var_count = func->var_count;
  paused before = begin_reading(parser, &later->lexer, error);
  parser->arena = &later->arena;
  parse_late_body(parser, func, &before);
  parser->arena = &func->module->arena;
  later->registers = parser->reg_total - before.registers;
  later->register_text = parser->reg_text - before.register_text;
  later->targets = parser->target_total - before.targets;
  later->data = parser->data_bytes - before.data;
  bool alone = parts_of_module(parser) == before.parts;
  status = end_reading(parser, &before);
  /* the next launch is told the same; what the parser has of the body stays */
  if (status != FF_OK) {
    ff_arena kept = alone ? (ff_arena){0} : later->arena;
    if (!alone) later->arena = (ff_arena){0};
    ptx_later_drop(func);
    later->arena = kept;
  }
  return status;
}

/* The module's lock is held. Other threads take the function for unread until is_whole. */
static ff_status read_unread(ptx_func *func, ff_error *error) {
  ff_status status = func->later->from ? ptx_linked_read(func, error) : read_body(func, error);
  if (status == FF_OK && ff_check_level >= 2) ptx_func_check(func);
  return status;
}

static void is_whole(ptx_func *func) { __atomic_store_n(&func->unread, NULL, __ATOMIC_RELEASE); }

ff_status ptx_func_read(ptx_func *func, ff_error *error) {
  if (!__atomic_load_n(&func->unread, __ATOMIC_ACQUIRE)) return FF_OK;
  pthread_mutex_lock(&func->module->lock);
  ff_status status = FF_OK;
  if (func->unread && (status = read_unread(func, error)) == FF_OK) is_whole(func);
  pthread_mutex_unlock(&func->module->lock);
  return status;
}

ff_status ptx_func_look(ptx_func *func, bool (*look)(void *context, const ptx_func *func), void *context,
                        ff_error *error) {
  pthread_mutex_lock(&func->module->lock);
  ff_status status = func->unread ? read_unread(func, error) : FF_OK;
  bool keep = status == FF_OK && look(context, func);
  if (func->unread && keep) is_whole(func);
  else if (func->unread && status == FF_OK) ptx_later_drop(func);
  pthread_mutex_unlock(&func->module->lock);
  return status;
}

ff_status ptx_func_read_head(ptx_func *func, ff_error *error) {
  if (!__atomic_load_n(&func->unread, __ATOMIC_ACQUIRE)) return FF_OK;
  pthread_mutex_lock(&func->module->lock);
  ff_status status = func->later->from ? ptx_linked_read_head(func, error) : read_head(func, error);
  pthread_mutex_unlock(&func->module->lock);
  return status;
}

ff_status ptx_module_read(ptx_module *module, ff_error *error) {
  ff_status status = FF_OK;
  for (uint32_t f = 0; f < module->func_count && status == FF_OK; f++) status = ptx_func_read(module->funcs[f], error);
  return status;
}

/* ---- giving back ---- */

/* What the module may have in all: parse.h. */
static void give_back(ptx_parser *parser, struct ptx_later *later) {
  parser->reg_total -= later->registers;
  parser->reg_text -= later->register_text;
  parser->target_total -= later->targets;
  parser->data_bytes -= later->data;
  later->registers = later->register_text = later->targets = later->data = 0;
}

void ptx_later_drop(ptx_func *func) {
  struct ptx_later *later = func->later;
  for (uint32_t v = 0; v < later->head_var_count; v++) later->head_vars[v]->reg = PTX_NO_REG;
  func->vars = later->head_vars;
  func->var_count = later->head_var_count;
  func->instrs = NULL;
  func->regs = NULL;
  func->labels = NULL;
  func->instr_count = func->reg_count = func->label_count = 0;
  ff_arena_free(&later->arena);
  ptx_module *module = later->from ? later->from->module : func->module;
  if (later->from) pthread_mutex_lock(&module->lock);
  give_back(module->parser, later);
  if (later->from) pthread_mutex_unlock(&module->lock);
}

void ptx_func_forget(ptx_func *func) {
  if (!func->later) return;
  pthread_mutex_lock(&func->module->lock);
  if (!func->unread) {
    ptx_later_drop(func);
    __atomic_store_n(&func->unread, func->later, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&func->module->lock);
}
