/* SPDX-License-Identifier: Apache-2.0 */
/* PTX text -> module: the module level (PTX ISA, "Directives"), tokens and errors. See parse.h for the other parts. */
#include "ptx/syntax/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "ptx/module.h"

/* ---- errors ---- */

static void fail_at(ptx_parser *parser, ptx_place place, ff_status status, const char *format, va_list args) {
  if (parser->status != FF_OK) return;
  char what[512];
  vsnprintf(what, sizeof what, format, args);
  const ptx_module *module = parser->module;
  parser->status = ff_fail_in_text(parser->error, status, module->name, module->text, module->text_length, place.line,
                                   place.column, "%s", what);
  parser->lexer.cursor = parser->lexer.limit;
  parser->token = (ptx_token){.kind = PTX_TOKEN_END, .chars = parser->lexer.limit, .place = place};
}

void ptx_error_at(ptx_parser *parser, ptx_place place, ff_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fail_at(parser, place, status, format, args);
  va_end(args);
}

void ptx_error_here(ptx_parser *parser, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fail_at(parser, parser->token.place, FF_PARSE, format, args);
  va_end(args);
}

const char *ptx_token_text(const ptx_token *token, char buffer[80]) {
  if (token->kind == PTX_TOKEN_END) return "the end of the text";
  int length = token->length > 60 ? 60 : (int)token->length;
  const char *dot = token->kind == PTX_TOKEN_DOTTED ? "." : "";
  snprintf(buffer, 80, "'%s%.*s%s'", dot, length, token->chars, token->length > 60 ? "..." : "");
  return buffer;
}

/* ---- tokens ---- */

void ptx_next(ptx_parser *parser) {
  if (parser->status != FF_OK) { /* whatever a caller put back: nothing comes after an error */
    parser->token.kind = PTX_TOKEN_END;
    return;
  }
  ptx_lex(&parser->lexer, &parser->token);
  if (parser->token.kind == PTX_TOKEN_BAD) ptx_error_here(parser, "%s", parser->token.problem);
}

ptx_token ptx_peek(const ptx_parser *parser) {
  ptx_lexer ahead = parser->lexer;
  ptx_token token;
  ptx_lex(&ahead, &token);
  return token;
}

bool ptx_accept(ptx_parser *parser, int kind) {
  if (parser->token.kind != kind) return false;
  ptx_next(parser);
  return true;
}

bool ptx_expect(ptx_parser *parser, int kind, const char *after) {
  if (ptx_accept(parser, kind)) return true;
  char buffer[80];
  ptx_error_here(parser, "expected '%c' after %s, not %s", kind, after, ptx_token_text(&parser->token, buffer));
  return false;
}

bool ptx_expect_name(ptx_parser *parser, const char *what, ptx_token *name) {
  if (parser->token.kind == PTX_TOKEN_NAME) {
    *name = parser->token;
    ptx_next(parser);
    return true;
  }
  char buffer[80];
  ptx_error_here(parser, "expected %s, not %s", what, ptx_token_text(&parser->token, buffer));
  return false;
}

ptx_directive ptx_directive_here(const ptx_parser *parser) {
  if (parser->token.kind != PTX_TOKEN_DOTTED) return PTX_DIR_NONE;
  return ptx_word_find(parser->token.chars, parser->token.length).directive;
}

void *ptx_new(ptx_parser *parser, size_t bytes) { return ff_arena_alloc(parser->arena, bytes); }

char *ptx_keep(ptx_parser *parser, const ptx_token *token) {
  return ff_arena_strndup(parser->arena, token->chars, token->length);
}

void *ptx_keep_items(ptx_parser *parser, const void *items, size_t count, size_t size) {
  if (!count) return NULL;
  return memcpy(ptx_new(parser, count * size), items, count * size);
}

void ptx_skip_braces(ptx_parser *parser) {
  uint64_t open = 0;
  ptx_place place = parser->token.place;
  do {
    if (parser->token.kind == '{') open++;
    if (parser->token.kind == '}') open--;
    if (parser->token.kind == PTX_TOKEN_END) {
      ptx_error_at(parser, place, FF_PARSE, "this '{' is never closed");
      return;
    }
    ptx_next(parser);
  } while (open);
}

/* ---- directives without meaning for execution ---- */

static bool parse_position(ptx_parser *parser, uint64_t position[3]) {
  return ptx_parse_count(parser, "a file number", 0, UINT32_MAX, &position[0]) &&
         ptx_parse_count(parser, "a line number", 0, UINT32_MAX, &position[1]) &&
         ptx_parse_count(parser, "a column number", 0, UINT32_MAX, &position[2]);
}

/* .loc file line column [, function_name label [+ n], inlined_at file line column]: no semicolon behind it. */
bool ptx_parse_loc(ptx_parser *parser) {
  uint64_t position[3], inlined[3];
  ptx_next(parser);
  if (!parse_position(parser, position)) return false;
  parser->source_file = (uint32_t)position[0];
  parser->source_line = (uint32_t)position[1];
  while (ptx_accept(parser, ',')) {
    ptx_token word, label;
    if (!ptx_expect_name(parser, "function_name or inlined_at", &word)) return false;
    if (word.length == 10 && memcmp(word.chars, "inlined_at", 10) == 0) {
      if (!parse_position(parser, inlined)) return false;
      continue;
    }
    if (!ptx_expect_name(parser, "a label", &label)) return false;
    if (ptx_accept(parser, '+') && !ptx_parse_count(parser, "an offset", 0, UINT64_MAX, &inlined[0])) return false;
  }
  return true;
}

/* .section name { anything with balanced braces }: debugging information. */
void ptx_parse_section(ptx_parser *parser) {
  ptx_place place = parser->token.place;
  while (parser->token.kind != '{') {
    if (parser->token.kind == PTX_TOKEN_END || parser->token.kind == ';' || parser->token.kind == '}') {
      ptx_error_at(parser, place, FF_PARSE, ".section without '{'");
      return;
    }
    ptx_next(parser);
  }
  ptx_skip_braces(parser);
}

void ptx_parse_pragma(ptx_parser *parser) {
  do {
    ptx_next(parser);
    if (parser->token.kind != PTX_TOKEN_STRING) {
      ptx_error_here(parser, "expected a string after .pragma");
      return;
    }
    ptx_next(parser);
  } while (parser->token.kind == ',');
  ptx_expect(parser, ';', "a pragma");
}

/* .file number "name" [, time, size] */
void ptx_parse_file(ptx_parser *parser) {
  uint64_t number, ignored;
  ptx_next(parser);
  if (!ptx_parse_count(parser, "a file number", 0, PTX_LIMIT_FILES, &number)) return;
  if (parser->token.kind != PTX_TOKEN_STRING) {
    ptx_error_here(parser, "expected the file's name in quotes");
    return;
  }
  while (parser->files.count <= number) FF_PUSH(&parser->files, NULL);
  parser->files.items[number] = ptx_keep(parser, &parser->token);
  ptx_next(parser);
  while (ptx_accept(parser, ',')) ptx_parse_count(parser, "a number", 0, UINT64_MAX, &ignored);
}

/* ---- the head of a module ---- */

static void parse_version(ptx_parser *parser) {
  ptx_next(parser);
  const ptx_token *token = &parser->token;
  unsigned major, minor;
  char text[16] = {0};
  if (token->kind == PTX_TOKEN_F64 && token->length < sizeof text) memcpy(text, token->chars, token->length);
  if (sscanf(text, "%u.%u", &major, &minor) != 2) {
    ptx_error_here(parser, "expected a version such as 8.7 after .version");
    return;
  }
  if (major < 1 || major > 99) {
    ptx_error_here(parser, "PTX version %u.%u is not known", major, minor);
    return;
  }
  parser->module->version_major = major;
  parser->module->version_minor = minor;
  ptx_next(parser);
}

/* .target sm_90a [, texmode_independent] [, debug] */
static void parse_target(ptx_parser *parser) {
  ptx_next(parser);
  do {
    ptx_token name;
    if (!ptx_expect_name(parser, "a target such as sm_75", &name)) return;
    char text[16] = {0};
    if (name.length < sizeof text) memcpy(text, name.chars, name.length);
    unsigned number;
    char suffix = '\0';
    int got = sscanf(text, "sm_%4u%c", &number, &suffix);
    if (got < 1) got = sscanf(text, "compute_%4u%c", &number, &suffix);
    if (got < 1) continue; /* an option: debug, texmode_..., map_f64_to_f32 */
    parser->module->target = number;
    parser->module->target_suffix = suffix;
  } while (ptx_accept(parser, ','));
}

static void parse_address_size(ptx_parser *parser) {
  uint64_t bits;
  ptx_next(parser);
  ptx_place place = parser->token.place;
  if (!ptx_parse_count(parser, "32 or 64", 32, 64, &bits)) return;
  if (bits != 32 && bits != 64) ptx_error_at(parser, place, FF_PARSE, "the address size is 32 or 64");
  parser->module->address_size = (uint32_t)bits;
}

/* .alias name, target; (PTX ISA, "Linking Directives: .alias") */
static void parse_alias(ptx_parser *parser) {
  ptx_token names[2];
  ptx_func *funcs[2];
  ptx_next(parser);
  for (int i = 0; i < 2; i++) {
    if (i && !ptx_expect(parser, ',', "the name of the alias")) return;
    if (!ptx_expect_name(parser, "the name of a function", &names[i])) return;
    const ptx_binding *binding = ptx_names_find(&parser->names, PTX_NAMES_THING, names[i].chars, names[i].length);
    if (!binding || !binding->symbol || !binding->symbol->func) {
      ptx_error_at(parser, names[i].place, FF_PARSE, "'%.*s' is not a declared function", (int)names[i].length,
                   names[i].chars);
      return;
    }
    funcs[i] = binding->symbol->func;
  }
  /* follow to the end, so that no chain and no ring of aliases is left */
  ptx_func *target = funcs[1]->alias ? funcs[1]->alias : funcs[1];
  if (funcs[0]->has_body || funcs[0]->alias || !target->has_body || funcs[0]->entry || target->entry ||
      funcs[0]->param_count != target->param_count || funcs[0]->result_count != target->result_count) {
    ptx_error_at(parser, names[0].place, FF_PARSE,
                 "an alias is a declared function and its target a defined one of the same form");
    return;
  }
  funcs[0]->alias = target;
  funcs[0]->symbol.func = target;
  ptx_expect(parser, ';', ".alias");
}

/* ---- module level ---- */

static ptx_linkage parse_linkage(ptx_parser *parser) {
  ptx_linkage linkage = PTX_LINK_NONE;
  for (;;) {
    switch (ptx_directive_here(parser)) {
    case PTX_DIR_EXTERN: linkage = PTX_LINK_EXTERN; break;
    case PTX_DIR_VISIBLE: linkage = PTX_LINK_VISIBLE; break;
    case PTX_DIR_WEAK: linkage = PTX_LINK_WEAK; break;
    case PTX_DIR_COMMON: linkage = PTX_LINK_COMMON; break;
    default: return linkage;
    }
    ptx_next(parser);
  }
}

static void parse_item(ptx_parser *parser) {
  char buffer[80];
  if (ptx_accept(parser, ';')) return;
  if (parser->token.kind == '@') { /* @@DWARF lines of old compilers: one line each */
    uint32_t line = parser->token.place.line;
    while (parser->token.kind != PTX_TOKEN_END && parser->token.place.line == line) ptx_next(parser);
    return;
  }
  ptx_linkage linkage = parse_linkage(parser);
  switch (ptx_directive_here(parser)) {
  case PTX_DIR_VERSION: parse_version(parser); return;
  case PTX_DIR_TARGET: parse_target(parser); return;
  case PTX_DIR_ADDRESS_SIZE: parse_address_size(parser); return;
  case PTX_DIR_FILE: ptx_parse_file(parser); return;
  case PTX_DIR_LOC: ptx_parse_loc(parser); return;
  case PTX_DIR_SECTION: ptx_parse_section(parser); return;
  case PTX_DIR_PRAGMA: ptx_parse_pragma(parser); return;
  case PTX_DIR_ALIAS: parse_alias(parser); return;
  case PTX_DIR_ENTRY:
    if (!ptx_notice_kernel(parser, linkage)) ptx_parse_function(parser, linkage, true);
    return;
  case PTX_DIR_FUNC: ptx_parse_function(parser, linkage, false); return;
  case PTX_DIR_GLOBAL:
  case PTX_DIR_CONST:
  case PTX_DIR_SHARED:
  case PTX_DIR_LOCAL:
  case PTX_DIR_PARAM:
  case PTX_DIR_TEX: ptx_parse_module_variables(parser, linkage); return;
  default: ptx_error_here(parser, "expected a directive, not %s", ptx_token_text(&parser->token, buffer));
  }
}

/* .file may stand behind the .loc that uses it: only now is it known whether a file number means anything. */
void ptx_check_files(ptx_parser *parser, ptx_func *func) {
  for (uint32_t i = 0; i < func->instr_count; i++)
    if (func->instrs[i].source_file >= parser->files.count)
      func->instrs[i].source_file = func->instrs[i].source_line = 0;
}

static void finish(ptx_parser *parser) {
  ptx_module *module = parser->module;
  if (!module->version_major) {
    parser->token.place = (ptx_place){1, 1};
    ptx_error_here(parser, "there is no .version: this is not PTX text");
    return;
  }
  if (!ptx_resolve_forwards(parser, 0)) return;
  for (size_t f = 0; f < parser->funcs.count; f++) ptx_check_files(parser, parser->funcs.items[f]);
  module->vars = ptx_keep_items(parser, parser->module_vars.items, parser->module_vars.count, sizeof(ptx_var *));
  module->var_count = (uint32_t)parser->module_vars.count;
  module->funcs = ptx_keep_items(parser, parser->funcs.items, parser->funcs.count, sizeof(ptx_func *));
  module->func_count = (uint32_t)parser->funcs.count;
  module->files = ptx_keep_items(parser, parser->files.items, parser->files.count, sizeof(const char *));
  module->file_count = (uint32_t)parser->files.count;
  ptx_module_index(module);
}

void ptx_free_lists(ptx_parser *parser) {
  free(parser->vars.items);
  free(parser->regs.items);
  free(parser->instrs.items);
  free(parser->labels.items);
  free(parser->pendings.items);
  memset(&parser->vars, 0, sizeof parser->vars);
  memset(&parser->regs, 0, sizeof parser->regs);
  memset(&parser->instrs, 0, sizeof parser->instrs);
  memset(&parser->labels, 0, sizeof parser->labels);
  memset(&parser->pendings, 0, sizeof parser->pendings);
}

void ptx_parser_free(ptx_module *module) {
  ptx_parser *parser = module->parser;
  if (!parser) return;
  for (size_t f = 0; f < parser->funcs.count; f++)
    if (parser->funcs.items[f]->later) ff_arena_free(&parser->funcs.items[f]->later->arena);
  ptx_names_free(&parser->names);
  free(parser->module_vars.items);
  free(parser->funcs.items);
  free(parser->files.items);
  free(parser->forwards.items);
  ptx_free_lists(parser);
  free(parser);
  module->parser = NULL;
}

/* The module with its copy of the text, or, of one that is read later, the caller's. Fat binaries may pad PTX with
 * NULs: they are cut off. */
static ptx_module *new_module(const char *name, const char *text, size_t length, bool later) {
  ptx_module *module = ff_alloc(sizeof *module);
  while (length && !text[length - 1]) length--;
  module->name = ff_arena_strndup(&module->arena, name, strlen(name));
  module->text = later ? text : ff_arena_strndup(&module->arena, text, length);
  module->text_length = length;
  module->address_size = 64;
  pthread_mutex_init(&module->lock, NULL);
  return module;
}

static ff_status parse(const char *name, const char *text, size_t length, bool later, ptx_module **out,
                       ff_error *error) {
  *out = NULL;
  if (length > PTX_LIMIT_TEXT) return ff_fail(error, FF_LIMIT, "%s: more than %zu bytes of PTX", name, PTX_LIMIT_TEXT);
  ptx_module *module = new_module(name, text, length, later);
  ptx_parser *parser = module->parser = ff_alloc(sizeof *parser);
  *parser = (ptx_parser){.module = module, .arena = &module->arena, .error = error, .later = later};
  parser->lexer = (ptx_lexer){module->text, module->text + module->text_length, module->text, 1};
  ptx_next(parser);
  while (parser->status == FF_OK && parser->token.kind != PTX_TOKEN_END) parse_item(parser);
  if (parser->status == FF_OK) finish(parser);
  if (parser->status == FF_OK && ff_check_level >= 2) ptx_module_check(module);
  ff_status status = parser->status;
  if (status == FF_OK) *out = module;
  if (status != FF_OK) ptx_module_free(module);
  else if (!later) ptx_parser_free(module);
  return status;
}

ff_status ptx_module_parse(const char *name, const char *text, size_t length, ptx_module **module, ff_error *error) {
  return parse(name, text, length, false, module, error);
}

ff_status ptx_module_parse_later(const char *name, const char *text, size_t length, ptx_module **module,
                                 ff_error *error) {
  if (parse(name, text, length, true, module, error) == FF_OK) return FF_OK;
  /* Where a kernel ends is known for sure only when it is read: a statement that the parser does not know may have
   * braces that do not pair. And what is wrong is told as it is of a module that is parsed at once. */
  return parse(name, text, length, false, module, error);
}
