/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: `.entry name (params) directives { body }`, `.func (results) name (params) ...` (PTX ISA, "Kernel and
 * Function Directives"), and what stands in a body besides instructions: registers, variables, scopes and labels.
 *
 * A label may be used before it is defined, and belongs to the scope it stands in. Uses are kept as pending and filled
 * when a scope ends: from that scope's labels, else they wait for the enclosing scope. */
#include "ptx/syntax/parse.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/module.h"

/* ---- registers ---- */

enum { MAX_SUFFIX = 10 }; /* of a register's name: seven digits, ".x", a NUL */
static const char *const component_texts[] = {"", ".x", ".y", ".z", ".w", ".4", ".5", ".6", ".7"};

static char *put_number(char *at, uint32_t number) {
  char digits[10];
  int count = 0;
  do digits[count++] = (char)('0' + number % 10);
  while (number /= 10);
  while (count) *at++ = digits[--count];
  return at;
}

/* "%r12", and ".x" behind it for a part of a vector register; returns the place behind the NUL. */
static char *put_name(char *at, const ptx_token *name, bool range, uint32_t number, uint32_t part) {
  memcpy(at, name->chars, name->length);
  at += name->length;
  if (range) at = put_number(at, number);
  for (const char *component = component_texts[part]; *component; component++) *at++ = *component;
  *at++ = '\0';
  return at;
}

/* May the module have that many more registers with names of that length? */
static bool check_registers(ptx_parser *parser, const ptx_token *name, uint64_t count) {
  uint64_t text = count * (name->length + MAX_SUFFIX);
  if (count > PTX_LIMIT_REGS - parser->regs.count || count > PTX_LIMIT_REGS_TOTAL - parser->reg_total ||
      text > PTX_LIMIT_REG_TEXT - parser->reg_text) {
    ptx_error_at(parser, name->place, FF_LIMIT, "too many registers (at most %d in a function)", (int)PTX_LIMIT_REGS);
    return false;
  }
  parser->reg_total += count;
  parser->reg_text += text;
  return true;
}

uint32_t ptx_add_registers(ptx_parser *parser, const ptx_token *name, ptx_type type, uint32_t vector, uint32_t count,
                           bool range) {
  uint32_t first = (uint32_t)parser->regs.count;
  if (!check_registers(parser, name, (uint64_t)count * vector)) return PTX_NO_REG;
  ptx_binding binding = {.reg = first, .count = count, .vector = vector};
  ptx_name_space space = range ? PTX_NAMES_RANGE : PTX_NAMES_THING;
  if (!ptx_names_bind(&parser->names, space, name->chars, name->length, binding)) {
    char buffer[80];
    ptx_error_at(parser, name->place, FF_PARSE, "%s is declared already", ptx_token_text(name, buffer));
    return PTX_NO_REG;
  }
  char *names = ptx_new(parser, (size_t)count * vector * (name->length + MAX_SUFFIX));
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t part = 0; part < vector; part++) {
      FF_PUSH(&parser->regs, ((ptx_reg){names, type, 1}));
      names = put_name(names, name, range, i, vector > 1 ? part + 1 : 0);
    }
  return first;
}

uint32_t ptx_add_nameless(ptx_parser *parser, ptx_type type) {
  const ptx_token name = {.chars = "%index", .length = 6, .place = parser->token.place};
  uint32_t first = (uint32_t)parser->regs.count;
  if (!check_registers(parser, &name, 1)) return PTX_NO_REG;
  char *text = ptx_new(parser, name.length + MAX_SUFFIX);
  put_name(text, &name, true, first, 0);
  FF_PUSH(&parser->regs, ((ptx_reg){text, type, 1}));
  return first;
}

/* .reg .v4 .f32 a, %r<10>; */
static void parse_registers(ptx_parser *parser) {
  ptx_declaration declaration;
  if (!ptx_parse_declaration(parser, &declaration)) return;
  do {
    ptx_token name;
    uint64_t count = 1;
    if (!ptx_expect_name(parser, "the name of a register", &name)) return;
    bool range = ptx_accept(parser, '<');
    if (range) {
      if (parser->token.kind != PTX_TOKEN_INTEGER || parser->token.bits > PTX_LIMIT_REGS) {
        ptx_error_here(parser, "expected a number of registers from 0 to %d", (int)PTX_LIMIT_REGS);
        return;
      }
      count = parser->token.bits;
      ptx_next(parser);
      if (!ptx_expect(parser, '>', "the number of registers")) return;
    }
    ptx_add_registers(parser, &name, declaration.type, declaration.vector, (uint32_t)count, range);
  } while (ptx_accept(parser, ','));
  ptx_expect(parser, ';', "a register declaration");
}

/* ---- parameters and prototypes ---- */

typedef FF_VEC(ptx_var *) var_list;

static bool bind_parameter(ptx_parser *parser, ptx_var *var) {
  uint32_t length = (uint32_t)strlen(var->name);
  if (var->space == PTX_SPACE_REG) {
    ptx_token name = {.kind = PTX_TOKEN_NAME, .chars = var->name, .length = length, .place = var->place};
    var->reg = ptx_add_registers(parser, &name, var->type, var->vector, 1, false);
    return var->reg != PTX_NO_REG;
  }
  if (length == 1 && var->name[0] == '_') return true;
  ptx_binding binding = {.symbol = &var->symbol, .reg = PTX_NO_REG, .count = 1, .vector = 1};
  if (ptx_names_bind(&parser->names, PTX_NAMES_THING, var->name, length, binding)) return true;
  ptx_error_at(parser, var->place, FF_PARSE, "two parameters are called '%s'", var->name);
  return false;
}

static bool parse_parameter(ptx_parser *parser, var_list *list) {
  ptx_declaration declaration;
  ptx_token name;
  if (!ptx_parse_declaration(parser, &declaration) || !ptx_expect_name(parser, "the name of a parameter", &name))
    return false;
  if (declaration.space != PTX_SPACE_PARAM && declaration.space != PTX_SPACE_REG) {
    ptx_error_at(parser, name.place, FF_PARSE, "a parameter is .param or .reg");
    return false;
  }
  ptx_var *var = ptx_parse_variable(parser, &declaration, &name);
  if (!var) return false;
  FF_PUSH(list, var);
  return true;
}

/* ( parameter, ... ), the '(' in hand. */
static bool parse_parameters(ptx_parser *parser, ptx_var ***vars, uint32_t *count) {
  var_list list = {0};
  ptx_next(parser);
  bool good = true;
  while (good && parser->token.kind != ')') {
    if (list.count == PTX_LIMIT_PARAMS) ptx_error_here(parser, "more than %d parameters", (int)PTX_LIMIT_PARAMS);
    good = parse_parameter(parser, &list);
    if (!ptx_accept(parser, ',')) break;
  }
  good = good && ptx_expect(parser, ')', "the parameters");
  *vars = ptx_keep_items(parser, list.items, list.count, sizeof(ptx_var *));
  *count = (uint32_t)list.count;
  free(list.items);
  return good;
}

/* .callprototype (results) _ (params) [.noreturn]; the directive in hand. */
ptx_prototype *ptx_parse_prototype(ptx_parser *parser) {
  ptx_prototype *prototype = ptx_new(parser, sizeof *prototype);
  ptx_token name;
  ptx_next(parser);
  if (parser->token.kind == '(' && !parse_parameters(parser, &prototype->results, &prototype->result_count))
    return NULL;
  if (!ptx_expect_name(parser, "'_'", &name)) return NULL;
  if (parser->token.kind == '(' && !parse_parameters(parser, &prototype->params, &prototype->param_count)) return NULL;
  /* .noreturn, .abi_preserve n */
  while (parser->token.kind == PTX_TOKEN_DOTTED || parser->token.kind == PTX_TOKEN_INTEGER) ptx_next(parser);
  return ptx_expect(parser, ';', "a prototype") ? prototype : NULL;
}

/* ---- labels ---- */

static void resolve(ptx_parser *parser, const ptx_pending *pending, const ptx_label_meaning *meaning) {
  ptx_operand *operand = pending->operand;
  bool wants_code = pending->kind == PTX_PENDING_LABEL;
  if (wants_code != (meaning->kind == PTX_OPERAND_LABEL)) {
    ptx_error_at(parser, pending->place, FF_PARSE,
                 wants_code ? "this is a list, not a place to branch to"
                            : "this is a place in the code, not a list or prototype");
    return;
  }
  parser->target_total += meaning->element_count;
  if (meaning->prototype) parser->target_total += meaning->prototype->param_count + meaning->prototype->result_count;
  if (parser->target_total > PTX_LIMIT_TARGETS) {
    ptx_error_at(parser, pending->place, FF_LIMIT, "the lists of targets of this module are too long");
    return;
  }
  operand->kind = meaning->kind;
  operand->label = wants_code ? meaning->at : 0;
  operand->elements = meaning->elements;
  operand->element_count = meaning->element_count;
  operand->prototype = meaning->prototype;
}

/* Fills what waits for labels of the scope that ends; `first` is its first pending use. At the function's end (`last`)
 * whatever is left is an error. */
static void resolve_labels(ptx_parser *parser, size_t first, bool last) {
  size_t kept = first;
  for (size_t i = first; i < parser->pendings.count; i++) {
    const ptx_pending pending = parser->pendings.items[i];
    const ptx_binding *binding = ptx_names_find(&parser->names, PTX_NAMES_LABEL, pending.chars, pending.length);
    if (binding && binding->depth == parser->names.depth) {
      resolve(parser, &pending, &parser->labels.items[binding->reg]);
    } else if (last) {
      int length = pending.length > 200 ? 200 : (int)pending.length;
      ptx_error_at(parser, pending.place, FF_PARSE, "there is no label '%.*s' here", length, pending.chars);
    } else {
      parser->pendings.items[kept++] = pending;
    }
  }
  parser->pendings.count = kept;
}

/* .branchtargets a, b; or .calltargets f, g; the directive in hand. */
static bool parse_targets(ptx_parser *parser, bool calls, ptx_label_meaning *meaning) {
  FF_VEC(ptx_token) names = {0};
  do {
    ptx_token name;
    ptx_next(parser);
    if (!ptx_expect_name(parser, calls ? "a function" : "a label", &name)) break;
    FF_PUSH(&names, name);
  } while (parser->token.kind == ',');
  bool good = ptx_expect(parser, ';', "the targets");
  meaning->kind = PTX_OPERAND_LABELS;
  meaning->element_count = (uint32_t)names.count;
  meaning->elements = ptx_new(parser, names.count * sizeof *meaning->elements);
  for (size_t i = 0; good && i < names.count; i++) {
    ptx_operand *element = &meaning->elements[i];
    const ptx_token *name = &names.items[i];
    *element = ptx_no_operand;
    if (!calls) {
      ptx_add_pending(parser, PTX_PENDING_LABEL, name, element);
      continue;
    }
    const ptx_binding *binding = ptx_names_find(&parser->names, PTX_NAMES_THING, name->chars, name->length);
    element->kind = PTX_OPERAND_SYMBOL;
    element->symbol = binding ? binding->symbol : NULL;
    if (!element->symbol || !element->symbol->func)
      ptx_error_at(parser, name->place, FF_PARSE, "this is not a declared function");
  }
  free(names.items);
  return good;
}

/* name: the name and the ':' taken. */
static void parse_label(ptx_parser *parser, const ptx_token *name) {
  ptx_label_meaning meaning = {
      .chars = name->chars, .length = name->length, .kind = PTX_OPERAND_LABEL, .at = (uint32_t)parser->instrs.count};
  switch (ptx_directive_here(parser)) {
  case PTX_DIR_CALLPROTOTYPE:
    meaning.kind = PTX_OPERAND_PROTOTYPE;
    meaning.prototype = ptx_parse_prototype(parser);
    if (!meaning.prototype) return;
    break;
  case PTX_DIR_BRANCHTARGETS:
    if (!parse_targets(parser, false, &meaning)) return;
    break;
  case PTX_DIR_CALLTARGETS:
    if (!parse_targets(parser, true, &meaning)) return;
    break;
  default: break;
  }
  ptx_binding binding = {.reg = (uint32_t)parser->labels.count};
  if (!ptx_names_bind(&parser->names, PTX_NAMES_LABEL, name->chars, name->length, binding)) {
    char buffer[80];
    ptx_error_at(parser, name->place, FF_PARSE, "the label %s stands in this scope already",
                 ptx_token_text(name, buffer));
    return;
  }
  FF_PUSH(&parser->labels, meaning);
}

/* ---- bodies ---- */

static void parse_scope(ptx_parser *parser);

static void parse_directive(ptx_parser *parser) {
  char buffer[80];
  switch (ptx_directive_here(parser)) {
  case PTX_DIR_REG: parse_registers(parser); return;
  case PTX_DIR_PARAM:
  case PTX_DIR_LOCAL:
  case PTX_DIR_SHARED:
  case PTX_DIR_GLOBAL:
  case PTX_DIR_CONST: ptx_parse_local_variables(parser); return;
  case PTX_DIR_LOC: ptx_parse_loc(parser); return;
  case PTX_DIR_PRAGMA: ptx_parse_pragma(parser); return;
  case PTX_DIR_FILE: ptx_parse_file(parser); return;
  case PTX_DIR_SECTION: ptx_parse_section(parser); return;
  default:
    ptx_error_here(parser, "expected an instruction or a declaration, not %s", ptx_token_text(&parser->token, buffer));
  }
}

static void parse_statement(ptx_parser *parser) {
  char buffer[80];
  switch (parser->token.kind) {
  case ';': ptx_next(parser); return;
  case '{': parse_scope(parser); return;
  case '@': ptx_parse_instruction(parser); return;
  case PTX_TOKEN_DOTTED: parse_directive(parser); return;
  case PTX_TOKEN_NAME:
    if (ptx_peek(parser).kind == ':') {
      ptx_token name = parser->token;
      ptx_next(parser);
      ptx_next(parser);
      parse_label(parser, &name);
    } else {
      ptx_parse_instruction(parser);
    }
    return;
  default: ptx_error_here(parser, "expected an instruction, not %s", ptx_token_text(&parser->token, buffer));
  }
}

/* Statements up to the '}'. */
static void parse_statements(ptx_parser *parser) {
  ptx_place place = parser->token.place;
  ptx_next(parser);
  while (parser->token.kind != '}') {
    if (parser->token.kind == PTX_TOKEN_END) {
      ptx_error_at(parser, place, FF_PARSE, "this '{' is never closed");
      return;
    }
    parse_statement(parser);
  }
}

static void parse_scope(ptx_parser *parser) {
  if (parser->names.depth >= PTX_LIMIT_SCOPES) {
    ptx_error_here(parser, "scopes nested deeper than %d", (int)PTX_LIMIT_SCOPES);
    return;
  }
  size_t first = parser->pendings.count;
  ptx_names_enter(&parser->names);
  parse_statements(parser);
  resolve_labels(parser, first, false);
  ptx_names_leave(&parser->names);
  ptx_accept(parser, '}');
}

static void parse_body(ptx_parser *parser) {
  ptx_func *func = parser->func;
  parser->source_file = parser->source_line = 0;
  parse_statements(parser);
  resolve_labels(parser, 0, true);
  if (parser->status != FF_OK) return;
  ptx_next(parser);
  func->has_body = true;
  func->instr_count = (uint32_t)parser->instrs.count;
  func->instrs = ptx_keep_items(parser, parser->instrs.items, parser->instrs.count, sizeof(ptx_instr));
  func->labels = ptx_new(parser, parser->labels.count * sizeof *func->labels);
  for (size_t i = 0; i < parser->labels.count; i++) {
    const ptx_label_meaning *meaning = &parser->labels.items[i];
    if (meaning->kind != PTX_OPERAND_LABEL) continue;
    char *name = ff_arena_strndup(parser->arena, meaning->chars, meaning->length);
    func->labels[func->label_count++] = (ptx_label){name, meaning->at};
  }
}

/* ---- headers ---- */

/* Up to three numbers: .maxntid 16, 16, 1; the missing ones are 1. */
static bool parse_dimensions(ptx_parser *parser, uint32_t dims[3]) {
  dims[0] = dims[1] = dims[2] = 1;
  for (int i = 0; i < 3; i++) {
    uint64_t value;
    if (i && !ptx_accept(parser, ',')) break;
    if (!ptx_parse_count(parser, "a size", 0, UINT32_MAX, &value)) return false;
    dims[i] = (uint32_t)value;
  }
  return true;
}

static bool parse_number(ptx_parser *parser, uint32_t *number) {
  uint64_t value;
  if (!ptx_parse_count(parser, "a number", 0, UINT32_MAX, &value)) return false;
  *number = (uint32_t)value;
  return true;
}

/* The directives between the parameters and the body. */
static bool parse_function_directives(ptx_parser *parser, ptx_func *func) {
  char buffer[80];
  uint32_t ignored;
  while (parser->token.kind == PTX_TOKEN_DOTTED) {
    ptx_directive directive = ptx_directive_here(parser);
    if (directive == PTX_DIR_PRAGMA) {
      ptx_parse_pragma(parser);
      continue;
    }
    ptx_token word = parser->token;
    ptx_next(parser);
    bool good = true;
    switch (directive) {
    case PTX_DIR_MAXNTID: good = parse_dimensions(parser, func->maxntid); break;
    case PTX_DIR_REQNTID: good = parse_dimensions(parser, func->reqntid); break;
    case PTX_DIR_REQNCTAPERCLUSTER: good = parse_dimensions(parser, func->cluster); break;
    case PTX_DIR_MINNCTAPERSM: good = parse_number(parser, &func->minnctapersm); break;
    case PTX_DIR_MAXNREG: good = parse_number(parser, &func->maxnreg); break;
    case PTX_DIR_MAXNCTAPERSM:
    case PTX_DIR_MAXCLUSTERRANK:
    case PTX_DIR_ABI_PRESERVE:
    case PTX_DIR_ABI_PRESERVE_CONTROL: good = parse_number(parser, &ignored); break;
    case PTX_DIR_NORETURN: func->noreturn = true; break;
    case PTX_DIR_EXPLICITCLUSTER:
    case PTX_DIR_BLOCKSARECLUSTERS: break;
    default:
      ptx_error_at(parser, word.place, FF_PARSE, "%s does not belong to a function", ptx_token_text(&word, buffer));
      good = false;
    }
    if (!good) return false;
  }
  return true;
}

/* .func .attribute(.unified(1, 2)) name: skipped. */
static void skip_attribute(ptx_parser *parser) {
  if (ptx_directive_here(parser) != PTX_DIR_ATTRIBUTE) return;
  int open = 0;
  ptx_next(parser);
  do {
    if (parser->token.kind == '(') open++;
    if (parser->token.kind == ')') open--;
    if (parser->token.kind == PTX_TOKEN_END) return;
    ptx_next(parser);
  } while (open > 0);
}

/* Everything before the name and the name itself. */
static ptx_func *parse_signature(ptx_parser *parser, bool entry, ptx_token *name) {
  ptx_func *func = ptx_new(parser, sizeof *func);
  func->entry = entry;
  ptx_next(parser);
  skip_attribute(parser);
  if (!entry && parser->token.kind == '(' && !parse_parameters(parser, &func->results, &func->result_count))
    return NULL;
  if (!ptx_expect_name(parser, "the name of a function", name)) return NULL;
  func->name = ptx_keep(parser, name);
  func->place = name->place;
  if (parser->token.kind == '(' && !parse_parameters(parser, &func->params, &func->param_count)) return NULL;
  return parse_function_directives(parser, func) ? func : NULL;
}

static bool same_signature(const ptx_func *a, const ptx_func *b) {
  if (a->entry != b->entry || a->param_count != b->param_count || a->result_count != b->result_count) return false;
  for (uint32_t i = 0; i < a->param_count; i++)
    if (a->params[i]->size != b->params[i]->size || a->params[i]->space != b->params[i]->space) return false;
  for (uint32_t i = 0; i < a->result_count; i++)
    if (a->results[i]->size != b->results[i]->size || a->results[i]->space != b->results[i]->space) return false;
  return true;
}

/* The function that the name means from now on: `func`, or an earlier declaration, which then gets func's parts if it
 * is a definition. */
static ptx_func *declare(ptx_parser *parser, ptx_func *func, const ptx_token *name, ptx_linkage linkage) {
  const ptx_binding *old = ptx_names_find(&parser->names, PTX_NAMES_THING, name->chars, name->length);
  func->module = parser->module;
  func->source = parser->module;
  func->linkage = linkage;
  func->symbol = (ptx_symbol){.name = func->name, .func = func};
  if (!old) {
    ptx_binding binding = {.symbol = &func->symbol, .reg = PTX_NO_REG, .count = 1, .vector = 1};
    ptx_names_bind(&parser->names, PTX_NAMES_THING, name->chars, name->length, binding);
    func->index = (uint32_t)parser->funcs.count;
    FF_PUSH(&parser->funcs, func);
    return func;
  }
  ptx_func *earlier = old->symbol ? old->symbol->func : NULL;
  bool body = parser->token.kind == '{', taken = earlier && (earlier->has_body || earlier->alias);
  if (!earlier || !same_signature(earlier, func) || (body && taken)) {
    ptx_error_at(parser, name->place, FF_PARSE, "'%s' is declared %s", func->name,
                 taken && body ? "already" : "differently above");
    return NULL;
  }
  if (!body) return earlier; /* says nothing new */
  uint32_t index = earlier->index;
  *earlier = *func;
  earlier->index = index;
  earlier->symbol = (ptx_symbol){.name = earlier->name, .func = earlier};
  return earlier;
}

/* Puts the parameters first in the function's list, and before a body binds their names. */
static void bind_all(ptx_parser *parser, ptx_var **vars, uint32_t count, ptx_func *func, bool body) {
  for (uint32_t i = 0; i < count && parser->status == FF_OK; i++) {
    ptx_var *var = vars[i];
    var->func = func;
    var->index = (uint32_t)parser->vars.count;
    FF_PUSH(&parser->vars, var);
    if (body) bind_parameter(parser, var);
  }
}

static void keep_vars(ptx_parser *parser, ptx_func *func) {
  func->vars = ptx_keep_items(parser, parser->vars.items, parser->vars.count, sizeof(ptx_var *));
  func->var_count = (uint32_t)parser->vars.count;
}

static void reset_lists(ptx_parser *parser) {
  parser->vars.count = parser->regs.count = parser->instrs.count = parser->labels.count = parser->pendings.count = 0;
}

/* The variables of a function without its body. */
static void keep_head(ptx_parser *parser, ptx_func *func) {
  bind_all(parser, func->results, func->result_count, func, false);
  bind_all(parser, func->params, func->param_count, func, false);
  keep_vars(parser, func);
}

static bool expect_body(ptx_parser *parser) {
  char buffer[80];
  if (parser->token.kind == '{') return true;
  ptx_error_here(parser, "expected ';' or a body in braces, not %s", ptx_token_text(&parser->token, buffer));
  return false;
}

bool ptx_parse_head(ptx_parser *parser, ptx_func *func) {
  ptx_token name;
  reset_lists(parser);
  const ptx_func *written = parse_signature(parser, func->entry, &name);
  if (!written || !expect_body(parser)) return false;
  func->params = written->params;
  func->param_count = written->param_count;
  ptx_func_take_directives(func, written);
  keep_head(parser, func);
  return parser->status == FF_OK;
}

void ptx_parse_body(ptx_parser *parser, ptx_func *func) {
  reset_lists(parser);
  ptx_names_enter(&parser->names);
  parser->func = func;
  bind_all(parser, func->results, func->result_count, func, true);
  bind_all(parser, func->params, func->param_count, func, true);
  parse_body(parser);
  if (parser->status == FF_OK) {
    keep_vars(parser, func);
    func->regs = ptx_keep_items(parser, parser->regs.items, parser->regs.count, sizeof(ptx_reg));
    func->reg_count = (uint32_t)parser->regs.count;
  }
  parser->func = NULL;
  ptx_names_leave(&parser->names);
}

void ptx_parse_function(ptx_parser *parser, ptx_linkage linkage, bool entry) {
  ptx_token name;
  reset_lists(parser);
  ptx_func *written = parse_signature(parser, entry, &name);
  ptx_func *func = written ? declare(parser, written, &name, linkage) : NULL;
  if (!func) return;
  bool body = parser->token.kind != ';';
  if (body && !expect_body(parser)) return;
  if (body && !ptx_notice_body(parser, func)) {
    ptx_parse_body(parser, func);
    return;
  }
  if (body || func == written) keep_head(parser, func); /* else it is declared once more */
  if (!body) ptx_next(parser);
}
