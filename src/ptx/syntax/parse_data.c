/* SPDX-License-Identifier: Apache-2.0 */
/* Variables: `.space .align n .type name[dimensions] = initial value` (PTX ISA, "Variables").
 *
 * Initial values are stored little-endian at their place in the variable's bytes; addresses become ptx_init records,
 * because they are known only once the module is in memory. Nothing is allocated from a declared size: the bytes grow
 * with what is written, and only then get the variable's full size, which is limited per module. */
#include "ptx/syntax/parse.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct initial { /* the initial value being read */
  ptx_var *var;
  uint64_t dims[8];
  uint32_t dim_count;
  uint64_t at; /* next byte */
  FF_VEC(unsigned char) bytes;
  FF_VEC(ptx_init) inits;
  size_t first_forward; /* in parser->forwards */
} initial;

/* ---- declarations ---- */

static ptx_space space_of(ptx_directive directive) {
  switch (directive) {
  case PTX_DIR_REG: return PTX_SPACE_REG;
  case PTX_DIR_SREG: return PTX_SPACE_SREG;
  case PTX_DIR_CONST: return PTX_SPACE_CONST;
  case PTX_DIR_GLOBAL: return PTX_SPACE_GLOBAL;
  case PTX_DIR_LOCAL: return PTX_SPACE_LOCAL;
  case PTX_DIR_PARAM: return PTX_SPACE_PARAM;
  case PTX_DIR_SHARED: return PTX_SPACE_SHARED;
  case PTX_DIR_TEX: return PTX_SPACE_TEX;
  default: return PTX_SPACE_GENERIC;
  }
}

static bool parse_align(ptx_parser *parser, uint32_t *align) {
  uint64_t value;
  ptx_place place = parser->token.place;
  if (!ptx_parse_count(parser, "an alignment", 1, PTX_LIMIT_ALIGN, &value)) return false;
  if (value & (value - 1)) {
    ptx_error_at(parser, place, FF_PARSE, "an alignment is a power of two");
    return false;
  }
  *align = (uint32_t)value;
  return true;
}

/* .attribute(.managed, .unified(n, n)) */
static bool parse_attribute(ptx_parser *parser, ptx_declaration *declaration) {
  if (!ptx_expect(parser, '(', ".attribute")) return false;
  do {
    if (ptx_directive_here(parser) == PTX_DIR_MANAGED) declaration->managed = true;
    if (parser->token.kind != PTX_TOKEN_DOTTED) break;
    ptx_next(parser);
    if (parser->token.kind != '(') continue;
    while (parser->token.kind != ')' && parser->token.kind != PTX_TOKEN_END) ptx_next(parser);
    ptx_next(parser);
  } while (ptx_accept(parser, ','));
  return ptx_expect(parser, ')', "an attribute");
}

/* One dotted word of a declaration behind the space. */
static bool parse_declaration_word(ptx_parser *parser, ptx_declaration *declaration) {
  ptx_word word = ptx_word_find(parser->token.chars, parser->token.length);
  char buffer[80];
  uint32_t ignored;
  if (word.type != PTX_TYPE_NONE) {
    declaration->type = word.type;
    ptx_next(parser);
    return true;
  }
  switch (word.directive) {
  case PTX_DIR_ALIGN: /* behind .ptr it speaks of the memory that is pointed to */
    ptx_next(parser);
    return parse_align(parser, declaration->pointer ? &ignored : &declaration->align);
  case PTX_DIR_ATTRIBUTE: ptx_next(parser); return parse_attribute(parser, declaration);
  case PTX_DIR_PTR: declaration->pointer = true; break;
  case PTX_DIR_V2: declaration->vector = 2; break;
  case PTX_DIR_V4: declaration->vector = 4; break;
  case PTX_DIR_V8: declaration->vector = 8; break;
  case PTX_DIR_CONST:
  case PTX_DIR_GLOBAL:
  case PTX_DIR_LOCAL:
  case PTX_DIR_PARAM:
  case PTX_DIR_SHARED:
    if (declaration->pointer) break;
    /* fall through */
  default:
    ptx_error_here(parser, "%s does not belong in a declaration", ptx_token_text(&parser->token, buffer));
    return false;
  }
  ptx_next(parser);
  return true;
}

/* Types that exist only as the format of an operand (.tf32, .e4m3, .u4 ...) are declared as bits of their size. */
static bool is_variable_type(ptx_type type) {
  if (ptx_type_class(type) == 'P' || ptx_type_class(type) == 'O') return true;
  if (ptx_type_class(type) != 'F') return ptx_type_bits(type) >= 8;
  return type == PTX_F16 || type == PTX_BF16 || type == PTX_F16X2 || type == PTX_BF16X2 || type == PTX_F32 ||
         type == PTX_F64;
}

bool ptx_parse_declaration(ptx_parser *parser, ptx_declaration *declaration) {
  *declaration = (ptx_declaration){.space = space_of(ptx_directive_here(parser)), .vector = 1};
  char buffer[80];
  if (declaration->space == PTX_SPACE_GENERIC) {
    ptx_error_here(parser, "expected a state space such as .param, not %s", ptx_token_text(&parser->token, buffer));
    return false;
  }
  ptx_next(parser);
  if (declaration->space == PTX_SPACE_CONST && ptx_accept(parser, '[')) { /* .const[2]: the banks of old versions */
    uint64_t bank;
    if (!ptx_parse_count(parser, "a bank", 0, 10, &bank) || !ptx_expect(parser, ']', "a bank")) return false;
  }
  while (parser->token.kind == PTX_TOKEN_DOTTED)
    if (!parse_declaration_word(parser, declaration)) return false;
  if (declaration->type == PTX_TYPE_NONE) ptx_error_here(parser, "a declaration needs a type such as .b32");
  else if (!is_variable_type(declaration->type))
    ptx_error_here(parser, "nothing can be declared with type .%s", ptx_type_text(declaration->type));
  return parser->status == FF_OK;
}

/* Bytes of one element; opaque types are handles of 8 bytes, .pred and sub-byte types take one. */
static uint64_t element_bytes(ptx_type type, uint32_t vector) {
  uint64_t bits = ptx_type_bits(type);
  if (!bits) bits = 64;
  return (bits + 7) / 8 * vector;
}

/* [4][8], [] (only the first may be empty: *unsized). The product of the dimensions in *elements. */
static bool parse_dims(ptx_parser *parser, initial *in, uint64_t *elements) {
  uint64_t size;
  *elements = 1;
  while (parser->token.kind == '[') {
    if (in->dim_count == 8) {
      ptx_error_here(parser, "more than 8 dimensions");
      return false;
    }
    ptx_next(parser);
    if (in->dim_count == 0 && ptx_accept(parser, ']')) {
      in->var->unsized = true;
      in->dims[in->dim_count++] = 0;
      continue;
    }
    ptx_place place = parser->token.place;
    if (!ptx_parse_count(parser, "a dimension", 0, PTX_LIMIT_VARIABLE, &size)) return false;
    if (size && *elements > PTX_LIMIT_VARIABLE / size) {
      ptx_error_at(parser, place, FF_LIMIT, "this array is larger than 1 TiB");
      return false;
    }
    *elements *= size;
    in->dims[in->dim_count++] = size;
    if (!ptx_expect(parser, ']', "a dimension")) return false;
  }
  return true;
}

static uint32_t natural_align(const ptx_var *var) {
  uint64_t bytes = element_bytes(var->type, var->vector);
  return bytes > 16 ? 16 : (uint32_t)bytes;
}

/* A new variable with its dimensions, which are left in in->dims for the initial value. */
static ptx_var *parse_shape(ptx_parser *parser, const ptx_declaration *declaration, const ptx_token *name,
                            initial *in) {
  ptx_var *var = ptx_new(parser, sizeof *var);
  *var = (ptx_var){.name = ptx_keep(parser, name),
                   .place = name->place,
                   .space = declaration->space,
                   .type = declaration->type,
                   .vector = declaration->vector,
                   .align = declaration->align,
                   .managed = declaration->managed,
                   .pointer = declaration->pointer,
                   .reg = PTX_NO_REG};
  var->symbol = (ptx_symbol){.name = var->name, .var = var};
  if (!var->align) var->align = natural_align(var);
  in->var = var;
  uint64_t elements;
  if (!parse_dims(parser, in, &elements)) return NULL;
  uint64_t bytes = element_bytes(var->type, var->vector);
  if (elements > PTX_LIMIT_VARIABLE / bytes) {
    ptx_error_at(parser, name->place, FF_LIMIT, "'%.*s' is larger than 1 TiB", (int)name->length, name->chars);
    return NULL;
  }
  var->size = var->unsized ? 0 : elements * bytes;
  return var;
}

ptx_var *ptx_parse_variable(ptx_parser *parser, const ptx_declaration *declaration, const ptx_token *name) {
  initial in = {0};
  return parse_shape(parser, declaration, name, &in);
}

/* ---- initial values ---- */

static uint64_t init_limit(const initial *in) { return in->var->unsized ? PTX_LIMIT_DATA : in->var->size; }

/* Room for `bytes` more bytes at in->at. */
static bool make_room(ptx_parser *parser, initial *in, uint64_t bytes) {
  if (in->at + bytes > init_limit(in)) {
    ptx_error_here(parser, "more initial values than '%s' has room for", in->var->name);
    return false;
  }
  size_t wanted = in->at + bytes;
  ff_vec_reserve((void **)&in->bytes.items, &in->bytes.capacity, wanted, 1);
  memset(in->bytes.items + in->bytes.count, 0, wanted - in->bytes.count);
  in->bytes.count = wanted;
  return true;
}

/* To half precision, to nearest, ties to even. */
static uint16_t half_of(double value) {
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  double magnitude = fabs(value);
  if (isnan(value)) return 0x7fff;
  if (magnitude >= 65520) return sign | 0x7c00;
  if (magnitude == 0) return sign; /* frexp gives it no exponent of its own */
  int exponent;
  frexp(magnitude, &exponent);
  exponent = exponent - 1 < -14 ? -14 : exponent - 1;
  double scaled = ldexp(magnitude, 10 - exponent); /* below 2048 */
  uint32_t units = (uint32_t)scaled;
  double rest = scaled - units;
  if (rest > 0.5 || (rest == 0.5 && (units & 1))) units++;
  return (uint16_t)(sign | (((uint32_t)(exponent + 14) << 10) + units));
}

/* A single-precision number's bits to bf16's, to nearest, ties to even. */
static uint16_t bfloat_of(uint32_t bits) {
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The bits that `value` has as an element of `type`. */
static uint64_t bits_as(const ptx_value *value, ptx_type type) {
  if (ptx_type_class(type) != 'F') return value->bits;
  double number;
  float single;
  uint32_t bits = (uint32_t)value->bits;
  if (value->kind == PTX_OPERAND_INT) {
    number = value->is_unsigned ? (double)value->bits : (double)(int64_t)value->bits;
  } else if (value->kind == PTX_OPERAND_F32) {
    if (ptx_type_bits(type) == 32) return bits; /* a NaN keeps its payload */
    memcpy(&single, &bits, sizeof single);
    number = single;
  } else {
    memcpy(&number, &value->bits, sizeof number);
  }
  if (type == PTX_F16) return half_of(number);
  if (type == PTX_F64) {
    uint64_t wide;
    memcpy(&wide, &number, sizeof wide);
    return wide;
  }
  single = (float)number;
  memcpy(&bits, &single, sizeof bits);
  return type == PTX_BF16 ? bfloat_of(bits) : bits;
}

static bool store_number(ptx_parser *parser, initial *in, const ptx_value *value) {
  uint64_t width = element_bytes(in->var->type, 1);
  if (!make_room(parser, in, width)) return false;
  uint64_t bits = bits_as(value, in->var->type);
  for (uint64_t i = 0; i < width; i++) in->bytes.items[in->at + i] = i < 8 ? (unsigned char)(bits >> (8 * i)) : 0;
  in->at += width;
  return true;
}

/* name [+ n] or generic(name) [+ n]: the rest of an address, its first name in *name. */
static bool parse_address(ptx_parser *parser, ptx_token *name, ptx_init *init) {
  if (!ptx_expect_name(parser, "a number or the name of a variable or function", name)) return false;
  if (name->length == 7 && memcmp(name->chars, "generic", 7) == 0 && parser->token.kind == '(') {
    init->generic = true;
    ptx_next(parser);
    if (!ptx_expect_name(parser, "a name", name) || !ptx_expect(parser, ')', "the name")) return false;
  }
  while (parser->token.kind == '+' || parser->token.kind == '-') {
    bool minus = parser->token.kind == '-';
    ptx_value value;
    ptx_next(parser);
    if (!ptx_parse_term(parser, &value)) return false;
    init->offset = (int64_t)((uint64_t)init->offset + (minus ? 0 - value.bits : value.bits));
  }
  return true;
}

static bool store_address(ptx_parser *parser, initial *in, const ptx_token *name, ptx_init init) {
  uint64_t width = element_bytes(in->var->type, 1);
  char class = ptx_type_class(in->var->type);
  bool byte_of_address = width == 1 && init.bytes == 1;
  if (class == 'F' || class == 'P' || class == 'O' || (!byte_of_address && width != 4 && width != 8)) {
    ptx_error_at(parser, name->place, FF_PARSE, "an address does not fit in an element of type .%s",
                 ptx_type_text(in->var->type));
    return false;
  }
  if (!make_room(parser, in, width)) return false;
  init.at = in->at;
  init.bytes = (uint32_t)width;
  FF_PUSH(&in->inits, init);
  FF_PUSH(&parser->forwards, ((ptx_forward){NULL, name->chars, name->length, name->place}));
  in->at += width;
  return true;
}

/* 0xFF00(name): byte 1 of the address (PTX ISA, "Initializers": the mask operator); the mask and '(' taken. */
static bool parse_masked(ptx_parser *parser, initial *in, uint64_t mask) {
  ptx_init init = {.bytes = 1};
  ptx_token name;
  while (init.shift < 56 && mask != UINT64_C(0xff) << init.shift) init.shift += 8;
  if (mask != UINT64_C(0xff) << init.shift) {
    ptx_error_here(parser, "a mask selects one byte: 0xFF, 0xFF00, ...");
    return false;
  }
  return parse_address(parser, &name, &init) && ptx_expect(parser, ')', "the masked address") &&
         store_address(parser, in, &name, init);
}

static bool parse_scalar(ptx_parser *parser, initial *in) {
  ptx_token name;
  ptx_init init = {0};
  bool symbol = parser->token.kind == PTX_TOKEN_NAME &&
                !(parser->token.length == 7 && memcmp(parser->token.chars, "WARP_SZ", 7) == 0);
  if (symbol) return parse_address(parser, &name, &init) && store_address(parser, in, &name, init);
  if (parser->token.kind == PTX_TOKEN_INTEGER && ptx_peek(parser).kind == '(') {
    uint64_t mask = parser->token.bits;
    ptx_next(parser);
    ptx_next(parser);
    return parse_masked(parser, in, mask);
  }
  ptx_value value;
  return ptx_parse_constant(parser, &value) && store_number(parser, in, &value);
}

/* Bytes that one brace at `level` (from 0) covers: the rest of a row is zero when it closes early. */
static uint64_t row_bytes(const initial *in, uint32_t level) {
  uint64_t bytes = element_bytes(in->var->type, level <= in->dim_count ? in->var->vector : 1);
  for (uint32_t i = level; i < in->dim_count; i++) bytes *= in->dims[i];
  return bytes;
}

static bool parse_braces(ptx_parser *parser, initial *in, uint32_t level) {
  uint64_t start = in->at;
  if (level >= PTX_LIMIT_DEPTH) {
    ptx_error_here(parser, "braces nested too deep");
    return false;
  }
  ptx_next(parser);
  while (parser->token.kind != '}') {
    bool good = parser->token.kind == '{' ? parse_braces(parser, in, level + 1) : parse_scalar(parser, in);
    if (!good) return false;
    if (!ptx_accept(parser, ',')) break;
  }
  if (!ptx_expect(parser, '}', "an initial value")) return false;
  bool open_ended = level == 0 && in->var->unsized;
  uint64_t row = open_ended ? 0 : row_bytes(in, level);
  if (in->at - start < row && start + row <= init_limit(in)) in->at = start + row;
  return true;
}

static bool check_data_limit(ptx_parser *parser, const ptx_var *var) {
  if (var->size <= PTX_LIMIT_DATA - parser->data_bytes) return true;
  ptx_error_at(parser, var->place, FF_LIMIT, "more than 1 GiB of initial values");
  return false;
}

/* Gives the variable its bytes and the addresses in it. */
static bool keep_initial(ptx_parser *parser, initial *in) {
  ptx_var *var = in->var;
  if (var->unsized) {
    uint64_t row = row_bytes(in, in->dim_count ? 1 : 0);
    var->size = row ? (in->at + row - 1) / row * row : in->at;
    var->unsized = false;
  }
  if (!check_data_limit(parser, var)) return false;
  parser->data_bytes += var->size;
  unsigned char *data = ptx_new(parser, var->size);
  if (in->bytes.count) memcpy(data, in->bytes.items, in->bytes.count);
  var->data = data;
  var->inits = ptx_keep_items(parser, in->inits.items, in->inits.count, sizeof *var->inits);
  var->init_count = (uint32_t)in->inits.count;
  for (uint32_t i = 0; i < var->init_count; i++) parser->forwards.items[in->first_forward + i].init = &var->inits[i];
  return true;
}

static bool parse_initial(ptx_parser *parser, initial *in) {
  in->first_forward = parser->forwards.count;
  bool braces = parser->token.kind == '{';
  if (ptx_type_class(in->var->type) == 'O' && braces) { /* { width = 8, addr_mode_0 = wrap }: properties of a texture */
    ptx_skip_braces(parser);
    return true;
  }
  bool good = check_data_limit(parser, in->var);
  if (good) good = braces ? parse_braces(parser, in, 0) : parse_scalar(parser, in);
  if (good) good = keep_initial(parser, in);
  free(in->bytes.items);
  free(in->inits.items);
  return good;
}

bool ptx_resolve_forwards(ptx_parser *parser, size_t first) {
  for (size_t i = first; i < parser->forwards.count; i++) {
    const ptx_forward *forward = &parser->forwards.items[i];
    const ptx_binding *binding = ptx_names_find(&parser->names, PTX_NAMES_THING, forward->chars, forward->length);
    if (!binding || !binding->symbol) {
      int length = forward->length > 200 ? 200 : (int)forward->length;
      ptx_error_at(parser, forward->place, FF_PARSE, "'%.*s' is not declared", length, forward->chars);
      return false;
    }
    forward->init->symbol = binding->symbol;
  }
  return true;
}

/* ---- lists of variables ---- */

/* A second declaration of a module variable: an extern one gives way to the definition and says nothing after it. */
static bool merge_variable(ptx_parser *parser, ptx_var *old, const ptx_var *new) {
  bool old_declares = old->linkage == PTX_LINK_EXTERN, new_declares = new->linkage == PTX_LINK_EXTERN;
  bool same = old->space == new->space && (old->size == new->size || old->unsized || new->unsized);
  if ((!old_declares && !new_declares) || !same) {
    ptx_error_at(parser, new->place, FF_PARSE, "'%s' is declared %s on line %u", new->name,
                 same ? "already" : "differently", old->place.line);
    return false;
  }
  if (new_declares) return true;
  uint32_t index = old->index;
  *old = *new;
  old->index = index;
  old->symbol = (ptx_symbol){.name = old->name, .var = old};
  return true;
}

/* Binds the name in the current scope. Returns the variable that the name now means, NULL after an error. */
static ptx_var *bind_variable(ptx_parser *parser, ptx_var *var, const ptx_token *name) {
  ptx_binding binding = {.symbol = &var->symbol, .reg = PTX_NO_REG, .count = 1, .vector = 1};
  if (ptx_names_bind(&parser->names, PTX_NAMES_THING, name->chars, name->length, binding)) return var;
  const ptx_binding *old = ptx_names_find(&parser->names, PTX_NAMES_THING, name->chars, name->length);
  if (!parser->func && old->symbol && old->symbol->var)
    return merge_variable(parser, old->symbol->var, var) ? old->symbol->var : NULL;
  ptx_error_at(parser, name->place, FF_PARSE, "'%s' is declared already", var->name);
  return NULL;
}

/* One `name[dims] = value` of a list. The value is read before merging, so that a merged variable has it. */
static ptx_var *parse_one(ptx_parser *parser, const ptx_declaration *declaration, ptx_linkage linkage) {
  ptx_token name;
  initial in = {0};
  if (!ptx_expect_name(parser, "the name of a variable", &name)) return NULL;
  ptx_var *var = parse_shape(parser, declaration, &name, &in);
  if (!var) return NULL;
  var->linkage = linkage;
  if (ptx_accept(parser, '=') && !parse_initial(parser, &in)) return NULL;
  return var;
}

void ptx_parse_module_variables(ptx_parser *parser, ptx_linkage linkage) {
  ptx_declaration declaration;
  if (!ptx_parse_declaration(parser, &declaration)) return;
  do {
    ptx_token name = parser->token;
    ptx_var *var = parse_one(parser, &declaration, linkage);
    if (!var) return;
    ptx_var *meant = bind_variable(parser, var, &name);
    if (!meant) return;
    if (meant != var) continue;
    var->index = (uint32_t)parser->module_vars.count;
    FF_PUSH(&parser->module_vars, var);
  } while (ptx_accept(parser, ','));
  ptx_expect(parser, ';', "a declaration");
}

/* A .global or .const variable inside a function lives as long as the module: it goes into the module's list, under a
 * name of its own. */
static void hoist(ptx_parser *parser, ptx_var *var) {
  size_t length = strlen(var->name) + 100;
  char *name = ptx_new(parser, length);
  snprintf(name, length, "%.64s$%s$%zu", parser->func->name, var->name, parser->module_vars.count);
  for (char *c = name + 1; *c; c++)
    if (*c == '%') *c = '_'; /* which only begins a name */
  var->name = name;
  var->symbol.name = name;
  var->index = (uint32_t)parser->module_vars.count;
  FF_PUSH(&parser->module_vars, var);
}

void ptx_parse_local_variables(ptx_parser *parser) {
  ptx_declaration declaration;
  if (!ptx_parse_declaration(parser, &declaration)) return;
  do {
    ptx_token name = parser->token;
    ptx_var *var = parse_one(parser, &declaration, PTX_LINK_NONE);
    if (!var || !bind_variable(parser, var, &name)) return;
    if (declaration.space == PTX_SPACE_GLOBAL || declaration.space == PTX_SPACE_CONST) {
      hoist(parser, var);
      continue;
    }
    var->func = parser->func;
    var->index = (uint32_t)parser->vars.count;
    FF_PUSH(&parser->vars, var);
  } while (ptx_accept(parser, ','));
  ptx_expect(parser, ';', "a declaration");
}
