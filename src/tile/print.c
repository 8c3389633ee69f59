/* SPDX-License-Identifier: Apache-2.0 */
/* Module to text, one operation on a line:
 *
 *   %5, %6 = load_view_tko weak %3[%1, %2] token=%0 : tile<64x32xf16>, token
 *   results  name          attributes, operands     types of the results
 *
 * The attributes and operands come in the order of operations.def; a region follows in braces, its arguments first. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tile/read.h"

#define ELEMENTS_SHOWN 16u

typedef struct printer {
  ff_text *text;
  uint32_t indent;
} printer;

/* ---- types ---- */

static void print_shape(ff_text *text, const int64_t *shape, uint32_t rank) {
  for (uint32_t d = 0; d < rank; d++) {
    if (d) ff_text_add(text, "x");
    if (shape[d] == TILE_DYNAMIC) ff_text_add(text, "?");
    else ff_text_add(text, "%" PRId64, shape[d]);
  }
}

static void print_element(ff_text *text, const tile_type *type) {
  if (type->scalar == TILE_POINTER) ff_text_add(text, "ptr<%s>", tile_scalar_name(type->pointee));
  else ff_text_add(text, "%s", tile_scalar_name(type->scalar));
}

static void print_numbers(ff_text *text, const char *name, const int32_t *numbers, uint32_t count) {
  ff_text_add(text, ", %s=[", name);
  for (uint32_t i = 0; i < count; i++) ff_text_add(text, i ? ",%d" : "%d", numbers[i]);
  ff_text_add(text, "]");
}

static void print_tensor(ff_text *text, const tile_type *type) {
  ff_text_add(text, "tensor_view<");
  print_shape(text, type->shape, type->rank);
  ff_text_add(text, type->rank ? "x" : "");
  print_element(text, type);
  ff_text_add(text, ", strides=[");
  for (uint32_t d = 0; d < type->rank; d++) {
    ff_text_add(text, d ? "," : "");
    print_shape(text, &type->strides[d], 1);
  }
  ff_text_add(text, "]>");
}

static void print_view(ff_text *text, const tile_type *type, const char *name) {
  static const char *const paddings[] = {"", "zero", "neg_zero", "nan", "pos_inf", "neg_inf"};
  ff_text_add(text, "%s<tile=(", name);
  print_shape(text, type->shape, type->rank);
  ff_text_add(text, ")");
  if (type->kind == TILE_KIND_STRIDED_VIEW) print_numbers(text, "steps", type->traversal, type->rank);
  if (type->padding) ff_text_add(text, ", padding=%s", paddings[type->padding]);
  ff_text_add(text, ", ");
  print_tensor(text, type->tensor);
  if (type->kind == TILE_KIND_GATHER_VIEW) ff_text_add(text, ", sparse_dim=%u", type->sparse_dim);
  else print_numbers(text, "dim_map", type->dim_map, type->rank);
  ff_text_add(text, ">");
}

static void print_type(ff_text *text, const tile_type *type) {
  switch (type->kind) {
  case TILE_KIND_TILE:
    ff_text_add(text, "tile<");
    print_shape(text, type->shape, type->rank);
    ff_text_add(text, type->rank ? "x" : "");
    print_element(text, type);
    ff_text_add(text, ">");
    break;
  case TILE_KIND_TENSOR_VIEW: print_tensor(text, type); break;
  case TILE_KIND_PARTITION_VIEW: print_view(text, type, "partition_view"); break;
  case TILE_KIND_STRIDED_VIEW: print_view(text, type, "strided_view"); break;
  case TILE_KIND_GATHER_VIEW: print_view(text, type, "gather_view"); break;
  default: ff_text_add(text, "token");
  }
}

/* ---- attributes ---- */

static void print_string(ff_text *text, const char *string) {
  ff_text_add(text, "\"");
  for (const unsigned char *c = (const unsigned char *)string; *c; c++)
    if (*c < ' ' || *c >= 0x7f || *c == '"' || *c == '\\') ff_text_add(text, "\\%02X", *c);
    else ff_text_add(text, "%c", *c);
  ff_text_add(text, "\"");
}

static void print_bits(ff_text *text, const unsigned char *bytes, size_t width) {
  ff_text_add(text, "0x");
  for (size_t i = width; i > 0; i--) ff_text_add(text, "%02x", bytes[i - 1]);
}

static void print_data(ff_text *text, tile_scalar scalar, const unsigned char *data, size_t bytes, bool splat) {
  size_t width = (tile_scalar_bits(scalar) + 7) / 8, count = bytes / width;
  if (!splat) ff_text_add(text, "[");
  for (size_t i = 0; i < count && i < ELEMENTS_SHOWN; i++) {
    if (i) ff_text_add(text, ", ");
    print_bits(text, data + i * width, width);
  }
  if (count > ELEMENTS_SHOWN) ff_text_add(text, ", and %zu more", count - ELEMENTS_SHOWN);
  if (!splat) ff_text_add(text, "]");
}

static void print_identities(ff_text *text, const tile_op *op) {
  ff_text_add(text, " identities=[");
  for (uint32_t i = 0; i < op->identity_count; i++)
    ff_text_add(text, "%s0x%" PRIx64, i ? ", " : "", op->identities[i].bits);
  ff_text_add(text, "]");
}

static void print_optional(ff_text *text, const char *format, bool has, int64_t number) {
  char digits[24] = "?";
  if (has) snprintf(digits, sizeof digits, "%" PRId64, number);
  ff_text_add(text, "%s%s", format, digits);
}

static void print_assumed(ff_text *text, const tile_op *op) {
  switch (op->assumed.kind) {
  case TILE_ASSUME_DIV_BY:
    ff_text_add(text, " div_by<%" PRIu64, op->assumed.divisor);
    if (op->assumed.has_every) ff_text_add(text, ", every %" PRId64, op->assumed.every);
    if (op->assumed.has_along) ff_text_add(text, ", along %" PRId64, op->assumed.along);
    break;
  case TILE_ASSUME_SAME:
    ff_text_add(text, " same<");
    for (uint32_t i = 0; i < op->assumed.same_count; i++)
      ff_text_add(text, i ? ",%" PRId64 : "%" PRId64, op->assumed.same[i]);
    break;
  default:
    print_optional(text, " bounded<", op->assumed.has_lower, op->assumed.lower);
    print_optional(text, ", ", op->assumed.has_upper, op->assumed.upper);
  }
  ff_text_add(text, ">");
}

static void print_list(ff_text *text, const char *name, const int32_t *numbers, uint32_t count) {
  ff_text_add(text, " %s[", name);
  for (uint32_t i = 0; i < count; i++) ff_text_add(text, i ? ",%d" : "%d", numbers[i]);
  ff_text_add(text, "]");
}

static void print_inbounds(ff_text *text, uint32_t inbounds) {
  if (!inbounds) return;
  ff_text_add(text, " inbounds=");
  for (; inbounds; inbounds >>= 1) ff_text_add(text, "%u", inbounds & 1);
}

static void print_attribute(ff_text *text, const tile_op *op, char kind) {
  static const char *const roundings[] = {"nearest_even", "zero", "negative_inf",        "positive_inf",
                                          "approx",       "full", "nearest_int_to_zero", "nearest_away"};
  static const char *const overflows[] = {"", " no_signed_wrap", " no_unsigned_wrap", " no_wrap"};
  static const char *const predicates[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  static const char *const orderings[] = {"weak", "relaxed", "acquire", "release", "acq_rel"};
  static const char *const scopes[] = {"block", "device", "system"};
  static const char *const rmws[] = {"and", "or", "xor", "add", "addf", "max", "min", "umax", "umin", "xchg"};
  switch (kind) {
  case 'r': ff_text_add(text, " %s", roundings[op->rounding]); break;
  case 'o': ff_text_add(text, "%s", overflows[op->overflow]); break;
  case 'p': ff_text_add(text, " %s", predicates[op->predicate]); break;
  case 'c': ff_text_add(text, op->ordered ? " ordered" : " unordered"); break;
  case 's': ff_text_add(text, op->lhs_signed ? " signed" : " unsigned"); break;
  case 'l': ff_text_add(text, op->rhs_signed ? " signed" : " unsigned"); break;
  case 'm': ff_text_add(text, " %s", orderings[op->ordering]); break;
  case 'x':
  case 'y':
    if (op->has_scope) ff_text_add(text, " %s", scopes[op->scope]);
    break;
  case 'k':
  case 'K': ff_text_add(text, " %s", rmws[op->rmw]); break;
  case 'b': print_inbounds(text, op->inbounds); break;
  case 'd': ff_text_add(text, op->opcode == TILE_OP_ALLOCA ? " elements=%" PRId64 : " dim=%" PRId64, op->number); break;
  case 'a': ff_text_add(text, " alignment=%" PRId64, op->alignment); break;
  case 'e': ff_text_add(text, op->reverse ? " reverse" : ""); break;
  case 'i': print_identities(text, op); break;
  case 'q':
    ff_text_add(text, " ");
    print_string(text, op->string);
    break;
  case 'A': print_assumed(text, op); break;
  case 'D':
    ff_text_add(text, " ");
    print_data(text, op->results[0].type->scalar, op->data, op->data_bytes, op->data_splat);
    break;
  case 'P': print_list(text, "", op->permutation, op->permutation_count); break;
  default: break; /* hints, digits of versions */
  }
}

static void print_attributes(ff_text *text, const tile_op *op, const tile_form *form) {
  if (op->flush_to_zero) ff_text_add(text, " flush_to_zero");
  if (op->propagate_nan) ff_text_add(text, " propagate_nan");
  if (op->saturating) ff_text_add(text, " saturating");
  if (op->is_unsigned) ff_text_add(text, " unsigned");
  if (op->fast) ff_text_add(text, " fast");
  if (op->global) ff_text_add(text, " global");
  for (const char *kind = form->attributes; *kind; kind++) print_attribute(text, op, *kind);
}

/* ---- operations ---- */

static void print_named(ff_text *text, const char *name, const tile_op *op, uint32_t first, uint32_t count) {
  ff_text_add(text, "%s[", name);
  for (uint32_t i = 0; i < count; i++) ff_text_add(text, "%s%%%u", i ? ", " : "", op->operands[first + i]->id);
  ff_text_add(text, "]");
}

static void print_operands(ff_text *text, const tile_op *op, const tile_form *form) {
  bool indices = op->index_count || op->stride_count || strchr(form->operands, 'i');
  const char *before = " ";
  for (uint32_t i = 0; i < op->operand_count; i++) {
    int32_t at = (int32_t)i;
    bool listed = indices && ((i >= op->index_first && i - op->index_first < op->index_count) ||
                              (i >= op->stride_first && i - op->stride_first < op->stride_count));
    if (listed || at == op->mask || at == op->padding || at == op->token) continue;
    ff_text_add(text, "%s%%%u", before, op->operands[i]->id);
    before = ", ";
  }
  if (indices)
    print_named(text, op->opcode == TILE_OP_MAKE_TENSOR_VIEW ? " shape=" : " at ", op, op->index_first,
                op->index_count);
  if (strchr(form->operands, 'j')) print_named(text, " strides=", op, op->stride_first, op->stride_count);
  if (op->mask >= 0) ff_text_add(text, " mask=%%%u", op->operands[op->mask]->id);
  if (op->padding >= 0) ff_text_add(text, " padding=%%%u", op->operands[op->padding]->id);
  if (op->token >= 0) ff_text_add(text, " token=%%%u", op->operands[op->token]->id);
}

static void print_values(ff_text *text, const tile_value *values, uint32_t count, bool names, bool types) {
  for (uint32_t i = 0; i < count; i++) {
    if (i) ff_text_add(text, ", ");
    if (names) ff_text_add(text, "%%%u", values[i].id);
    if (names && types) ff_text_add(text, ": ");
    if (types) print_type(text, values[i].type);
  }
}

static void print_block(printer *p, const tile_block *block);

static void print_line(printer *p) { ff_text_add(p->text, "%*s", (int)(2 * p->indent), ""); }

static void print_region(printer *p, const tile_block *block) {
  ff_text_add(p->text, "{");
  if (block->argument_count) {
    ff_text_add(p->text, " (");
    print_values(p->text, block->arguments, block->argument_count, true, true);
    ff_text_add(p->text, ")");
  }
  ff_text_add(p->text, "\n");
  p->indent++;
  print_block(p, block);
  p->indent--;
  print_line(p);
  ff_text_add(p->text, "}");
}

static void print_op(printer *p, const tile_op *op) {
  const tile_form *form = tile_form_of(op->opcode);
  print_line(p);
  print_values(p->text, op->results, op->result_count, true, false);
  ff_text_add(p->text, "%s%s", op->result_count ? " = " : "", form->text);
  print_attributes(p->text, op, form);
  print_operands(p->text, op, form);
  if (op->result_count) {
    ff_text_add(p->text, " : ");
    print_values(p->text, op->results, op->result_count, false, true);
  }
  for (uint32_t i = 0; i < op->region_count; i++) {
    ff_text_add(p->text, i ? " else " : " ");
    print_region(p, op->regions[i]);
  }
  ff_text_add(p->text, "\n");
}

static void print_block(printer *p, const tile_block *block) {
  for (uint32_t i = 0; i < block->op_count; i++) print_op(p, block->ops[i]);
}

/* ---- the module ---- */

static void print_function(printer *p, const tile_function *f) {
  ff_text_add(p->text, "entry ");
  print_string(p->text, f->name);
  ff_text_add(p->text, " (");
  print_values(p->text, f->body->arguments, f->body->argument_count, true, true);
  ff_text_add(p->text, ")");
  if (f->warps) ff_text_add(p->text, " warps=%d", f->warps);
  if (f->occupancy) ff_text_add(p->text, " occupancy=%d", f->occupancy);
  if (f->clusters) ff_text_add(p->text, " clusters=%d", f->clusters);
  ff_text_add(p->text, " {\n");
  p->indent++;
  print_block(p, f->body);
  p->indent--;
  ff_text_add(p->text, "}\n");
}

static void print_global(ff_text *text, const tile_global *g) {
  ff_text_add(text, "global ");
  print_string(text, g->name);
  ff_text_add(text, "%s%s", g->hidden ? " private" : "", g->constant ? " constant" : "");
  if (g->alignment) ff_text_add(text, " alignment=%" PRIu64, g->alignment);
  ff_text_add(text, " = ");
  print_data(text, g->type->scalar, g->data, g->data_bytes, g->data_splat);
  ff_text_add(text, " : ");
  print_type(text, g->type);
  ff_text_add(text, "\n");
}

ff_status tile_to_text(const void *bytes, size_t size, char **text, ff_error *error) {
  tile_module *module;
  ff_text out = {0};
  printer p = {.text = &out};
  ff_status status = tile_module_read(bytes, size, &module, error);
  if (status != FF_OK) return status;
  ff_text_add(&out, "version %u.%u\n", module->version / 100, module->version % 100);
  for (uint32_t i = 0; i < module->global_count; i++) print_global(&out, &module->globals[i]);
  for (uint32_t i = 0; i < module->function_count; i++) print_function(&p, &module->functions[i]);
  tile_module_free(module);
  *text = out.chars;
  return FF_OK;
}
