/* SPDX-License-Identifier: Apache-2.0 */
/* One instruction: `@guard opcode.modifier.type operand, ...;` (PTX ISA, "Instruction Statements", "Instruction
 * Operands").
 *
 * A mnemonic or modifier that is not in the tables makes the whole statement a PTX_OP_UNKNOWN that keeps its text:
 * compilers print new things into functions that do not run. Everything else that is wrong is an error. */
#include "ptx/syntax/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const ptx_operand ptx_no_operand = {.kind = PTX_OPERAND_NONE, .reg = PTX_NO_REG, .reg2 = PTX_NO_REG};

typedef struct label_use { /* an operand that waits for a label; pending once the operand has its final place */
  ptx_pending_kind kind;
  ptx_token name;
  uint32_t operand;
} label_use;

typedef struct statement { /* the instruction being read */
  ptx_instr instr;
  ptx_operand operands[PTX_MAX_OPERANDS];
  label_use uses[2];
  uint32_t use_count;
} statement;

void ptx_add_pending(ptx_parser *parser, ptx_pending_kind kind, const ptx_token *name, ptx_operand *operand) {
  FF_PUSH(&parser->pendings, ((ptx_pending){kind, name->chars, name->length, name->place, operand}));
}

/* ---- names ---- */

/* %r12 by the range %r<20>; its number in *number. The longest number is tried first: `%f1<4>` also makes %f12. */
static const ptx_binding *find_range(const ptx_parser *parser, const ptx_token *name, uint32_t *number) {
  const char *end = name->chars + name->length;
  uint32_t digits = 0;
  while (digits < 7 && digits + 1 < name->length && end[-1 - (int)digits] >= '0' && end[-1 - (int)digits] <= '9')
    digits++;
  for (uint32_t used = digits; used >= 1; used--) {
    const char *first = end - used;
    if (used > 1 && *first == '0') continue;
    const ptx_binding *range = ptx_names_find(&parser->names, PTX_NAMES_RANGE, name->chars, name->length - used);
    if (!range) continue;
    uint32_t value = 0;
    for (const char *c = first; c < end; c++) value = value * 10 + (uint32_t)(*c - '0');
    *number = value;
    if (value < range->count) return range;
  }
  return NULL;
}

/* What the name means here, or NULL; for a range *number says which of its registers. */
static const ptx_binding *find_thing(const ptx_parser *parser, const ptx_token *name, uint32_t *number) {
  const ptx_binding *thing = ptx_names_find(&parser->names, PTX_NAMES_THING, name->chars, name->length);
  const ptx_binding *range = find_range(parser, name, number);
  if (range && (!thing || range->depth > thing->depth)) return range;
  *number = 0;
  return thing;
}

/* Is the dotted word in hand glued to the name, as in %tid.x? */
static bool is_glued(const ptx_parser *parser, const ptx_token *name) {
  return parser->token.kind == PTX_TOKEN_DOTTED && parser->token.chars == name->chars + name->length + 1;
}

/* .x .y .z .w, .r .g .b .a: 0 to 3; -1: something else. */
static int component_of(const ptx_token *token) {
  static const char letters[] = "xyzwrgba";
  if (token->length != 1) return -1;
  const char *found = memchr(letters, token->chars[0], 8);
  return found ? (int)(found - letters) % 4 : -1;
}

/* .b0 .h1 .b3210 of video instructions as in ptx_operand.selector; 0: not one. */
static uint32_t selector_of(const ptx_token *token) {
  if (token->length < 2 || token->length > 5 || (token->chars[0] != 'b' && token->chars[0] != 'h')) return 0;
  uint32_t selector = token->chars[0] == 'b' ? 0xB0000000 : 0xA0000000;
  selector |= (token->length - 1) << 16;
  for (uint32_t i = 1; i < token->length; i++) {
    char digit = token->chars[i];
    if (digit < '0' || digit > '7') return 0;
    selector |= (uint32_t)(digit - '0') << (4 * (token->length - 1 - i));
  }
  return selector;
}

static ptx_operand register_operand(uint32_t reg) {
  ptx_operand operand = ptx_no_operand;
  operand.kind = PTX_OPERAND_REG;
  operand.reg = reg;
  return operand;
}

/* A register's name: with a component or selector behind it, or a whole vector register. */
static bool parse_register(ptx_parser *parser, const ptx_token *name, const ptx_binding *binding, uint32_t number,
                           ptx_operand *out) {
  uint32_t first = binding->reg + number * binding->vector, vector = binding->vector;
  *out = register_operand(first);
  if (is_glued(parser, name)) {
    int component = component_of(&parser->token);
    out->selector = vector == 1 ? selector_of(&parser->token) : 0;
    if (!out->selector && (component < 0 || (uint32_t)component >= vector || vector == 1)) {
      char buffer[80];
      ptx_error_here(parser, "this register has no part %s", ptx_token_text(&parser->token, buffer));
      return false;
    }
    if (!out->selector) out->reg = first + (uint32_t)component;
    ptx_next(parser);
    return true;
  }
  if (vector == 1) return true;
  *out = ptx_no_operand;
  out->kind = PTX_OPERAND_VECTOR;
  out->element_count = vector;
  out->elements = ptx_new(parser, vector * sizeof *out->elements);
  for (uint32_t i = 0; i < vector; i++) out->elements[i] = register_operand(first + i);
  return true;
}

/* %tid.x, %laneid, or %tid alone: the vector of its parts. */
static bool parse_special(ptx_parser *parser, const ptx_token *name, ptx_operand *out) {
  uint32_t length = name->length;
  bool glued = is_glued(parser, name);
  ptx_sreg sreg = PTX_SREGS;
  if (glued) sreg = ptx_sreg_find(name->chars, length + 1 + parser->token.length);
  if (sreg != PTX_SREGS) ptx_next(parser);
  else sreg = ptx_sreg_find(name->chars, length);
  if (sreg != PTX_SREGS) {
    out->kind = PTX_OPERAND_SREG;
    out->sreg = sreg;
    return true;
  }
  char text[40];
  if (glued || length > 30) return false;
  memcpy(text, name->chars, length);
  memcpy(text + length, ".x", 2);
  sreg = ptx_sreg_find(text, length + 2);
  if (sreg == PTX_SREGS) return false;
  out->kind = PTX_OPERAND_VECTOR;
  out->element_count = 4;
  out->elements = ptx_new(parser, 4 * sizeof *out->elements);
  for (uint32_t i = 0; i < 4; i++) {
    out->elements[i] = ptx_no_operand;
    out->elements[i].kind = i < 3 ? PTX_OPERAND_SREG : PTX_OPERAND_INT; /* .w is zero */
    if (i < 3) out->elements[i].sreg = (ptx_sreg)(sreg + i);
  }
  return true;
}

/* + n - m ... behind a name, each a constant. */
static bool parse_offset(ptx_parser *parser, int64_t *offset) {
  while (parser->token.kind == '+' || parser->token.kind == '-') {
    bool minus = parser->token.kind == '-';
    ptx_value value;
    ptx_next(parser);
    if (!ptx_parse_term(parser, &value)) return false;
    if (value.kind != PTX_OPERAND_INT) {
      ptx_error_here(parser, "an offset is an integer");
      return false;
    }
    *offset = (int64_t)((uint64_t)*offset + (minus ? 0 - value.bits : value.bits));
  }
  return true;
}

static bool is_warp_size(const ptx_token *name) { return name->length == 7 && !memcmp(name->chars, "WARP_SZ", 7); }

/* ---- elements whose index is a register ---- */

static bool add_mod(ptx_parser *parser, ptx_instr *instr, ptx_mod mod) {
  if (instr->mod_count == PTX_MAX_MODS) {
    ptx_error_here(parser, "more than %d modifiers", PTX_MAX_MODS);
    return false;
  }
  instr->mods[instr->mod_count++] = (uint16_t)mod;
  instr->mod_set[mod / 64] |= UINT64_C(1) << (mod % 64);
  if (mod == PTX_MOD_V2) instr->vector = 2;
  if (mod == PTX_MOD_V4) instr->vector = 4;
  if (mod == PTX_MOD_V8) instr->vector = 8;
  return true;
}

static bool parse_name(ptx_parser *parser, const ptx_token *name, ptx_operand *out);

static ptx_operand number_operand(uint64_t bits) {
  ptx_operand operand = ptx_no_operand;
  operand.kind = PTX_OPERAND_INT;
  operand.bits = bits;
  return operand;
}

/* An instruction in front of the one being read: operands[0] becomes a new register of `type`, which is returned. `mod`
 * PTX_MODS: none. */
static uint32_t compute(ptx_parser *parser, ptx_opcode opcode, ptx_mod mod, ptx_type of, ptx_type type,
                        ptx_operand *operands, uint8_t count) {
  uint32_t reg = ptx_add_nameless(parser, type);
  bool has_mod = mod != PTX_MODS;
  ptx_instr instr = {.opcode = opcode,
                     .place = parser->token.place,
                     .source_file = parser->source_file,
                     .source_line = parser->source_line,
                     .guard = PTX_NO_REG,
                     .vector = 1,
                     .types = {of},
                     .type_count = 1,
                     .type_words = has_mod ? 2 : 1,
                     .operand_count = count};
  if (reg == PTX_NO_REG || (has_mod && !add_mod(parser, &instr, mod))) return PTX_NO_REG;
  operands[0] = register_operand(reg);
  instr.operands = ptx_keep_items(parser, operands, count, sizeof *operands);
  FF_PUSH(&parser->instrs, instr);
  return reg;
}

/* a[%r] and a[%r + 3]: the address of element %r + 3 (PTX ISA, "Arrays, Vectors, and Addresses"), computed as ptxas
 * does, which adds in the index's own width. */
static bool parse_register_index(ptx_parser *parser, const ptx_symbol *symbol, uint64_t bytes, ptx_operand *out) {
  ptx_token name = parser->token;
  ptx_operand index = ptx_no_operand, base = ptx_no_operand;
  int64_t more = 0;
  uint32_t number, bits = 0;
  const ptx_binding *binding = find_thing(parser, &name, &number);
  ptx_next(parser);
  /* no variable: it could have an index of its own, and so on without end */
  if ((!binding || !binding->symbol) && !parse_name(parser, &name, &index)) return false;
  if (index.kind == PTX_OPERAND_REG && !index.selector) bits = ptx_type_bits(parser->regs.items[index.reg].type);
  if (bits != 32 && bits != 64) {
    ptx_error_at(parser, name.place, FF_PARSE, "an index is a constant or a register of 32 or 64 bits");
    return false;
  }
  ptx_type type = bits == 32 ? PTX_U32 : PTX_U64;
  if (!parse_offset(parser, &more)) return false;
  if (more) {
    ptx_operand sum[3] = {[1] = index, [2] = number_operand((uint64_t)more)};
    index = register_operand(compute(parser, PTX_OP_ADD, PTX_MODS, type, type, sum, 3));
  }
  base.kind = PTX_OPERAND_SYMBOL;
  base.symbol = symbol;
  ptx_operand start[2] = {[1] = base};
  base = register_operand(compute(parser, PTX_OP_MOV, PTX_MODS, PTX_U64, PTX_U64, start, 2));
  ptx_operand product[4] = {[1] = index, [2] = number_operand(bytes), [3] = base};
  out->reg = compute(parser, PTX_OP_MAD, bits == 32 ? PTX_MOD_WIDE : PTX_MOD_LO, type, PTX_U64, product, 4);
  out->symbol = NULL;
  return out->reg != PTX_NO_REG && ptx_expect(parser, ']', "an index");
}

/* a[3], a[%r], a[%r + 3]: the address of an element. */
static bool parse_index(ptx_parser *parser, const ptx_symbol *symbol, ptx_operand *out) {
  const ptx_var *var = symbol->var;
  uint64_t index, bytes = (ptx_type_bits(var->type) + 7) / 8 * var->vector;
  ptx_next(parser);
  if (parser->token.kind == PTX_TOKEN_NAME && !is_warp_size(&parser->token))
    return parse_register_index(parser, symbol, bytes, out);
  if (!ptx_parse_count(parser, "an index", 0, PTX_LIMIT_VARIABLE, &index)) return false;
  out->offset = (int64_t)(index * bytes);
  return ptx_expect(parser, ']', "an index");
}

/* A name taken as an operand: a register, a variable or function, a special register. */
static bool parse_name(ptx_parser *parser, const ptx_token *name, ptx_operand *out) {
  uint32_t number;
  *out = ptx_no_operand;
  if (name->length == 1 && name->chars[0] == '_') return true;
  const ptx_binding *binding = find_thing(parser, name, &number);
  if (!binding) {
    if (parse_special(parser, name, out)) return true;
    char buffer[80];
    ptx_error_at(parser, name->place, FF_PARSE, "%s is not declared", ptx_token_text(name, buffer));
    return false;
  }
  if (!binding->symbol) return parse_register(parser, name, binding, number, out);
  out->kind = PTX_OPERAND_SYMBOL;
  out->symbol = binding->symbol;
  if (binding->symbol->var && parser->token.kind == '[') {
    if (!parse_index(parser, binding->symbol, out)) return false;
    out->kind = PTX_OPERAND_ADDRESS;
  }
  return parse_offset(parser, &out->offset);
}

/* ---- operands ---- */

static bool parse_operand(ptx_parser *parser, ptx_operand *out, int level);

/* Only an address, [texture, {x, y}], and the arguments of a call may have a vector as an element. */
static bool check_element(ptx_parser *parser, const ptx_operand *element, int close) {
  if (element->kind <= PTX_OPERAND_SYMBOL && element->kind != PTX_OPERAND_REG_PAIR) return true;
  if (close != '}' && element->kind == PTX_OPERAND_VECTOR) return true;
  ptx_error_here(parser, "a list holds registers, numbers and names");
  return false;
}

/* Operands up to `close`, the opening character (or the ',' behind `first`) in hand. */
static bool parse_elements(ptx_parser *parser, ptx_operand *out, int close, int level, const ptx_operand *first) {
  FF_VEC(ptx_operand) list = {0};
  bool good = true;
  if (first) FF_PUSH(&list, *first);
  ptx_next(parser);
  while (good && parser->token.kind != close) {
    ptx_operand element;
    if (list.count == PTX_LIMIT_ELEMENTS) {
      ptx_error_here(parser, "more than %d elements", (int)PTX_LIMIT_ELEMENTS);
      break;
    }
    good = parse_operand(parser, &element, level + 1) && check_element(parser, &element, close);
    if (!good) break;
    FF_PUSH(&list, element);
    if (!ptx_accept(parser, ',')) break;
  }
  good = good && ptx_expect(parser, close, "an operand");
  out->elements = ptx_keep_items(parser, list.items, list.count, sizeof(ptx_operand));
  out->element_count = (uint32_t)list.count;
  free(list.items);
  return good;
}

/* [reg + n], [name + n], [n]; [name, {x, y}] and the like keep everything in elements. */
static bool parse_address(ptx_parser *parser, ptx_operand *out, int level) {
  ptx_operand base = ptx_no_operand;
  ptx_next(parser);
  *out = ptx_no_operand;
  if (parser->token.kind == PTX_TOKEN_NAME) {
    ptx_token name = parser->token;
    ptx_next(parser);
    if (!parse_name(parser, &name, &base)) return false;
  } else {
    ptx_value value;
    if (!ptx_parse_constant(parser, &value)) return false;
    base.kind = PTX_OPERAND_INT;
    base.bits = value.bits;
  }
  if (base.kind != PTX_OPERAND_REG && base.kind != PTX_OPERAND_SYMBOL && base.kind != PTX_OPERAND_INT &&
      base.kind != PTX_OPERAND_ADDRESS) {
    ptx_error_here(parser, "an address is a register, a variable or a number, with an offset");
    return false;
  }
  out->kind = PTX_OPERAND_ADDRESS;
  if (parser->token.kind == ',') return parse_elements(parser, out, ']', level, &base);
  out->reg = base.reg;
  out->symbol = base.symbol;
  out->offset = base.kind == PTX_OPERAND_INT ? (int64_t)base.bits : base.offset;
  return parse_offset(parser, &out->offset) && ptx_expect(parser, ']', "an address");
}

static bool parse_number(ptx_parser *parser, ptx_operand *out) {
  ptx_value value;
  *out = ptx_no_operand;
  if (!ptx_parse_constant(parser, &value)) return false;
  out->kind = value.kind;
  out->bits = value.bits;
  return true;
}

/* p|q, the '|' in hand: a second destination, which a vector (tex) or register may have. */
static bool parse_pair(ptx_parser *parser, ptx_operand *out) {
  ptx_token name;
  ptx_operand second;
  ptx_next(parser);
  if (!ptx_expect_name(parser, "a register after '|'", &name) || !parse_name(parser, &name, &second)) return false;
  bool first_good = out->kind == PTX_OPERAND_REG || out->kind == PTX_OPERAND_VECTOR || out->kind == PTX_OPERAND_NONE;
  if (!first_good || (second.kind != PTX_OPERAND_REG && second.kind != PTX_OPERAND_NONE)) {
    ptx_error_at(parser, name.place, FF_PARSE, "'|' stands between two registers");
    return false;
  }
  if (out->kind != PTX_OPERAND_VECTOR) out->kind = PTX_OPERAND_REG_PAIR;
  out->reg2 = second.reg;
  return true;
}

/* !p or -x where x is a name; false: a constant expression begins here. */
static bool parse_negated(ptx_parser *parser, ptx_operand *out, bool *good) {
  if (parser->token.kind != '!' && parser->token.kind != '-') return false;
  ptx_token next = ptx_peek(parser);
  if (next.kind != PTX_TOKEN_NAME || is_warp_size(&next)) return false;
  ptx_next(parser);
  ptx_next(parser);
  *good = parse_name(parser, &next, out);
  if (*good && out->kind != PTX_OPERAND_REG) {
    ptx_error_at(parser, next.place, FF_PARSE, "only a register can be negated here");
    *good = false;
  }
  out->negated = true;
  return true;
}

static bool parse_operand(ptx_parser *parser, ptx_operand *out, int level) {
  bool good;
  *out = ptx_no_operand;
  if (level > 4) {
    ptx_error_here(parser, "operands nested too deep");
    return false;
  }
  switch (parser->token.kind) {
  case '{':
    out->kind = PTX_OPERAND_VECTOR;
    good = parse_elements(parser, out, '}', level, NULL);
    break;
  case '[': good = parse_address(parser, out, level); break;
  case PTX_TOKEN_NAME: {
    ptx_token name = parser->token;
    if (is_warp_size(&name)) return parse_number(parser, out);
    ptx_next(parser);
    good = parse_name(parser, &name, out);
    break;
  }
  default:
    if (!parse_negated(parser, out, &good)) return parse_number(parser, out);
  }
  return good && parser->token.kind == '|' ? parse_pair(parser, out) : good;
}

/* ---- call, bra, brx: operands that are lists or labels ---- */

static void use_label(statement *st, ptx_pending_kind kind, const ptx_token *name) {
  st->uses[st->use_count++] = (label_use){kind, *name, st->instr.operand_count};
  st->operands[st->instr.operand_count++] = ptx_no_operand;
}

/* The callee's declared form, as far as it is known here. */
static bool check_call(ptx_parser *parser, const statement *st, const ptx_token *callee) {
  ptx_instr instr = st->instr;
  instr.operands = (ptx_operand *)(uintptr_t)st->operands;
  ptx_call call = ptx_call_parts(&instr);
  if (call.callee->kind == PTX_OPERAND_REG) return true;
  const ptx_func *func = call.callee->kind == PTX_OPERAND_SYMBOL ? call.callee->symbol->func : NULL;
  if (!func || call.callee->offset) {
    ptx_error_at(parser, callee->place, FF_PARSE, "this is not a function");
    return false;
  }
  uint32_t results = call.results ? call.results->element_count : 0;
  uint32_t arguments = call.arguments ? call.arguments->element_count : 0;
  if (results == func->result_count && arguments == func->param_count) return true;
  ptx_error_at(parser, callee->place, FF_PARSE, "'%s' takes %u arguments and gives %u results, not %u and %u",
               func->name, func->param_count, func->result_count, arguments, results);
  return false;
}

static bool parse_list(ptx_parser *parser, statement *st) {
  ptx_operand *out = &st->operands[st->instr.operand_count];
  *out = ptx_no_operand;
  out->kind = PTX_OPERAND_LIST;
  if (!parse_elements(parser, out, ')', 0, NULL)) return false;
  st->instr.operand_count++;
  return true;
}

/* call (results), callee, (arguments), targets; everything but the callee may be absent. */
static bool parse_call(ptx_parser *parser, statement *st) {
  ptx_token callee, targets;
  if (parser->token.kind == '(' && (!parse_list(parser, st) || !ptx_expect(parser, ',', "the results of a call")))
    return false;
  if (!ptx_expect_name(parser, "a function to call", &callee)) return false;
  if (!parse_name(parser, &callee, &st->operands[st->instr.operand_count++])) return false;
  if (parser->token.kind == ',' && ptx_peek(parser).kind == '(') {
    ptx_next(parser);
    if (!parse_list(parser, st)) return false;
  }
  if (!check_call(parser, st, &callee)) return false;
  if (!ptx_accept(parser, ',')) return true;
  if (!ptx_expect_name(parser, "a prototype or list of targets", &targets)) return false;
  use_label(st, PTX_PENDING_TARGETS, &targets);
  return true;
}

static bool parse_branch(ptx_parser *parser, statement *st) {
  ptx_token name;
  if (st->instr.opcode == PTX_OP_BRX) {
    if (!parse_operand(parser, &st->operands[st->instr.operand_count++], 0)) return false;
    if (!ptx_expect(parser, ',', "the index of a branch")) return false;
  }
  if (!ptx_expect_name(parser, "a label", &name)) return false;
  use_label(st, st->instr.opcode == PTX_OP_BRX ? PTX_PENDING_TARGETS : PTX_PENDING_LABEL, &name);
  return true;
}

/* ---- modifiers ---- */

/* .mod.mod.type.type; *unknown: there was a word that is neither. False: too many. */
static bool parse_mods(ptx_parser *parser, ptx_instr *instr, bool *unknown) {
  for (; parser->token.kind == PTX_TOKEN_DOTTED; ptx_next(parser)) {
    ptx_word word = ptx_word_find(parser->token.chars, parser->token.length);
    if (word.type != PTX_TYPE_NONE) {
      if (instr->type_count == PTX_MAX_TYPES) {
        ptx_error_here(parser, "more than %d types", PTX_MAX_TYPES);
        return false;
      }
      instr->type_words |= UINT32_C(1) << (instr->mod_count + instr->type_count);
      instr->types[instr->type_count++] = word.type;
    } else if (!word.is_mod) {
      *unknown = true;
    } else if (!add_mod(parser, instr, word.mod)) {
      return false;
    }
  }
  return true;
}

/* ---- statements ---- */

/* The token in hand as it stands in the text, blanks and comments in front of it folded into one blank. */
static void keep_token(const ptx_parser *parser, ff_text *text, const char *end) {
  const ptx_token *token = &parser->token;
  const char *start = token->chars - (token->kind == PTX_TOKEN_DOTTED || token->kind == PTX_TOKEN_STRING);
  if (text->length && start > end) ff_text_add_bytes(text, " ", 1);
  ff_text_add_bytes(text, start, (size_t)(parser->lexer.cursor - start));
}

/* A statement that we do not know, from its mnemonic in hand: its text up to the ';'. */
static void keep_unknown(ptx_parser *parser, ptx_instr *instr) {
  ptx_token start = parser->token;
  ff_text text = {0};
  const char *end = start.chars;
  for (; parser->token.kind != ';' && parser->token.kind != PTX_TOKEN_END; ptx_next(parser)) {
    keep_token(parser, &text, end);
    end = parser->lexer.cursor;
  }
  if (parser->token.kind == PTX_TOKEN_END) {
    char buffer[80];
    ptx_error_at(parser, start.place, FF_PARSE, "no ';' behind %s, which is not a known instruction either",
                 ptx_token_text(&start, buffer));
  }
  *instr = (ptx_instr){.opcode = PTX_OP_UNKNOWN,
                       .place = instr->place,
                       .source_file = instr->source_file,
                       .source_line = instr->source_line,
                       .guard = instr->guard,
                       .guard_negated = instr->guard_negated,
                       .vector = 1};
  instr->text = ff_arena_strndup(parser->arena, text.chars, text.length);
  free(text.chars);
}

/* @p or @!p */
static bool parse_guard(ptx_parser *parser, ptx_instr *instr) {
  ptx_token name;
  ptx_operand operand;
  if (!ptx_accept(parser, '@')) return true;
  instr->guard_negated = ptx_accept(parser, '!');
  if (!ptx_expect_name(parser, "a predicate register after '@'", &name) || !parse_name(parser, &name, &operand))
    return false;
  if (operand.kind != PTX_OPERAND_REG || parser->regs.items[operand.reg].type != PTX_PRED) {
    char buffer[80];
    ptx_error_at(parser, name.place, FF_PARSE, "%s is not a predicate register", ptx_token_text(&name, buffer));
    return false;
  }
  instr->guard = operand.reg;
  return true;
}

static bool parse_operands(ptx_parser *parser, statement *st) {
  ptx_instr *instr = &st->instr;
  if (parser->token.kind == ';' || parser->token.kind == PTX_TOKEN_END) return true;
  if (instr->opcode == PTX_OP_CALL) return parse_call(parser, st);
  if (instr->opcode == PTX_OP_BRA || instr->opcode == PTX_OP_BRX) return parse_branch(parser, st);
  do {
    if (instr->operand_count == PTX_MAX_OPERANDS) {
      ptx_error_here(parser, "more than %d operands", PTX_MAX_OPERANDS);
      return false;
    }
    if (!parse_operand(parser, &st->operands[instr->operand_count++], 0)) return false;
    bool address = st->operands[instr->operand_count - 1].kind == PTX_OPERAND_ADDRESS;
    if (!address || parser->token.kind != PTX_TOKEN_DOTTED) continue; /* ld.global.b32 d, [a].unified */
    ptx_word word = ptx_word_find(parser->token.chars, parser->token.length);
    if (!word.is_mod || word.mod != PTX_MOD_UNIFIED || !add_mod(parser, instr, word.mod)) break;
    ptx_next(parser);
  } while (ptx_accept(parser, ','));
  return true;
}

static bool check_count(ptx_parser *parser, const statement *st, const ptx_token *mnemonic) {
  uint32_t fewest, most, count = st->instr.operand_count;
  ptx_operand_limits(&st->instr, &fewest, &most);
  if (count >= fewest && count <= most) return true;
  char buffer[80], range[32];
  if (fewest == most) snprintf(range, sizeof range, "%u", fewest);
  else snprintf(range, sizeof range, "%u to %u", fewest, most);
  ptx_error_at(parser, mnemonic->place, FF_PARSE, "%s takes %s operand%s, not %u", ptx_token_text(mnemonic, buffer),
               range, fewest == 1 && most == 1 ? "" : "s", count);
  return false;
}

/* Gives the operands their place in the arena, and what waits for labels its pointers. */
static void keep_statement(ptx_parser *parser, statement *st) {
  static ptx_operand none[4] = {[0 ... 3] = {.kind = PTX_OPERAND_NONE, .reg = PTX_NO_REG, .reg2 = PTX_NO_REG}};
  ptx_instr *instr = &st->instr;
  instr->operands =
      instr->operand_count ? ptx_keep_items(parser, st->operands, instr->operand_count, sizeof *st->operands) : none;
  for (uint32_t i = 0; i < st->use_count; i++)
    ptx_add_pending(parser, st->uses[i].kind, &st->uses[i].name, &instr->operands[st->uses[i].operand]);
  FF_PUSH(&parser->instrs, *instr);
}

void ptx_parse_instruction(ptx_parser *parser) {
  statement st;
  st.use_count = 0;
  st.instr = (ptx_instr){
      .guard = PTX_NO_REG, .vector = 1, .source_file = parser->source_file, .source_line = parser->source_line};
  bool unknown = false;
  if (!parse_guard(parser, &st.instr)) return;
  ptx_token mnemonic = parser->token;
  ptx_lexer behind = parser->lexer;
  st.instr.place = mnemonic.place;
  if (!ptx_expect_name(parser, "an instruction", &mnemonic)) return;
  st.instr.opcode = ptx_opcode_find(mnemonic.chars, mnemonic.length);
  if (!parse_mods(parser, &st.instr, &unknown) || parser->status != FF_OK) return;
  if (unknown || st.instr.opcode == PTX_OP_UNKNOWN) {
    parser->token = mnemonic;
    parser->lexer = behind;
    keep_unknown(parser, &st.instr);
  } else if (!parse_operands(parser, &st) || !check_count(parser, &st, &mnemonic)) {
    return;
  }
  if (!ptx_expect(parser, ';', "an instruction")) return;
  keep_statement(parser, &st);
}
