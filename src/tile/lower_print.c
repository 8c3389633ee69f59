/* SPDX-License-Identifier: Apache-2.0 */
/* print_tko and assert. One thread prints. Scalars are printed as printf would; a tile as its elements in brackets,
 * separated by commas, with brackets around each row if it has several dimensions.
 *
 * The format is cut into pieces with one value each, as a tile needs many; a piece is a call of vprintf with a variable
 * of its own for the text and one buffer for the value. */
#include <stdlib.h>
#include <string.h>

#include "tile/lower_elements.h"

/* A text in memory, as a generic address in a 'd' register. */
static uint32_t text_address(lower *l, const char *text, size_t length) {
  uint32_t number = l->constants++, of = (uint32_t)(l->function - l->module->functions);
  uint32_t address = lower_register(l, CLASS_DOUBLE);
  ff_text_add(l->data, "\n.global .align 1 .b8 tile_text_%u_%u[%zu] = {", of, number, length + 1);
  lower_bytes_text(l->data, (const unsigned char *)text, length, length);
  ff_text_add(l->data, "%s0};\n", length ? ", " : "");
  lower_emit(l, "mov.u64 %%d%u, tile_text_%u_%u;", address, of, number);
  lower_emit(l, "cvta.global.u64 %%d%u, %%d%u;", address, address);
  return address;
}

static void call_printf(lower *l, uint32_t format) {
  l->prints = true;
  uint32_t buffer = lower_register(l, CLASS_DOUBLE), result = lower_register(l, CLASS_WORD);
  lower_emit(l, "mov.u64 %%d%u, tile_print_buffer;", buffer);
  lower_emit(l, "cvta.local.u64 %%d%u, %%d%u;", buffer, buffer);
  lower_emit(l, "{ .param .b64 text; .param .b64 values; .param .b32 printed;");
  lower_emit(l, "st.param.b64 [text], %%d%u;", format);
  lower_emit(l, "st.param.b64 [values], %%d%u;", buffer);
  lower_emit(l, "call (printed), vprintf, (text, values);");
  lower_emit(l, "ld.param.b32 %%r%u, [printed]; }", result);
}

static void print_text(lower *l, const char *text, size_t length) {
  if (length) call_printf(l, text_address(l, text, length));
}

/* Where the conversion at `format` (a '%') ends, and what it converts: 'd', 'f'...; 0: it is none. */
static size_t conversion_length(const char *format, char *converts) {
  size_t at = 1 + strspn(format + 1, "-+ #0");
  at += strspn(format + at, "0123456789");
  if (format[at] == '.') at += 1 + strspn(format + at + 1, "0123456789");
  at += strspn(format + at, "hlLqjzt");
  *converts = format[at];
  return *converts ? at + 1 : at;
}

/* The conversion as vprintf takes it of that element: "%ll" for 64 bits, no other lengths. `before` goes in front. */
static void conversion_text(ff_text *text, const char *before, const char *format, size_t length, tile_scalar scalar,
                            const char *behind) {
  ff_text_add(text, "%s", before);
  for (size_t i = 0; i + 1 < length; i++)
    if (!strchr("hlLqjzt", format[i])) ff_text_add(text, "%c", format[i]);
  ff_text_add(text, "%s%c%s", scalar == TILE_I64 ? "ll" : "", format[length - 1], behind);
}

/* Puts an element where vprintf looks for it: int, long long or double. */
static void buffer_element(lower *l, const tile_op *op, tile_scalar scalar, char converts, uint32_t value) {
  bool is_float = scalar >= TILE_F16 && scalar <= TILE_E2M1, wants_float = strchr("eEfFgGaA", converts) != NULL;
  if (is_float != wants_float || !strchr("diuoxXcp", converts) != wants_float) {
    lower_fail(l, op, FF_UNSUPPORTED, "%%%c of %s", converts, tile_scalar_name(scalar));
    return;
  }
  uint32_t wide = value;
  if (is_float && scalar != TILE_F64) {
    wide = lower_register(l, CLASS_DOUBLE);
    lower_emit(l, "cvt.f64.f32 %%d%u, %%r%u;", wide, element_to_f32(l, scalar, value));
  } else if (scalar == TILE_I1) {
    wide = lower_register(l, CLASS_WORD);
    lower_emit(l, "selp.u32 %%r%u, 1, 0, %%p%u;", wide, value);
  } else if (lower_class(scalar) == CLASS_WORD)
    wide = element_extend(l, scalar, converts == 'd' || converts == 'i', value);
  bool word = !is_float && lower_class(scalar) != CLASS_DOUBLE;
  lower_emit(l, "st.local.%s [tile_print_buffer], %%%c%u;", word ? "b32" : "b64", word ? 'r' : 'd', wide);
}

/* The elements of a tile, from shared memory, by the one thread that prints. */
static void print_tile(lower *l, const tile_op *op, const tile_value *value, const char *format, size_t length,
                       char converts) {
  tile_scalar scalar = value->type->scalar;
  uint32_t count = tile_elements(value->type), bytes = lower_bytes(scalar);
  uint32_t row = value->type->rank ? (uint32_t)value->type->shape[value->type->rank - 1] : 1;
  uint32_t at = lower_register(l, CLASS_WORD), end = lower_register(l, CLASS_WORD), begin_label = l->labels++;
  uint32_t in_row = lower_register(l, CLASS_WORD), p = lower_register(l, CLASS_PREDICATE);
  const char *const before[] = {"[", ", "};
  uint32_t formats[2];
  for (uint32_t i = 0; i < 2; i++) {
    ff_text text = {0};
    conversion_text(&text, before[i], format, length, scalar, "");
    formats[i] = text_address(l, text.chars, text.length);
    free(text.chars);
  }
  uint32_t close = text_address(l, "]", 1), comma = text_address(l, ", ", 2);
  bool rows = row < count;
  if (rows) print_text(l, "[", 1);
  uint32_t chosen = lower_register(l, CLASS_DOUBLE), no_close = l->labels++, no_comma = l->labels++;
  lower_emit(l, "mov.u32 %%r%u, 0;", at);
  if (l->status) return;
  ff_text_add(l->text, "L%u:\n", begin_label);
  lower_emit(l, "mad.lo.u32 %%r%u, %%r%u, %u, %%r%u;", end, at, bytes, l->scratch[0]);
  register_class class = lower_class(scalar);
  uint32_t element = lower_register(l, class == CLASS_PREDICATE ? CLASS_WORD : class);
  lower_emit(l, "ld.shared.%s%u %%%c%u, [%%r%u];", bytes == 1 ? "u" : "b", 8 * bytes,
             class == CLASS_PREDICATE ? 'r' : lower_letter(class), element, end);
  if (class == CLASS_PREDICATE) {
    uint32_t flag = lower_register(l, CLASS_PREDICATE);
    lower_emit(l, "setp.ne.u32 %%p%u, %%r%u, 0;", flag, element);
    element = flag;
  }
  buffer_element(l, op, scalar, converts, element);
  lower_emit(l, "and.b32 %%r%u, %%r%u, %u;", in_row, at, row - 1);
  lower_emit(l, "setp.eq.u32 %%p%u, %%r%u, 0;", p, in_row);
  lower_emit(l, "selp.b64 %%d%u, %%d%u, %%d%u, %%p%u;", chosen, formats[0], formats[1], p);
  call_printf(l, chosen);
  lower_emit(l, "add.u32 %%r%u, %%r%u, 1;", at, at);
  lower_emit(l, "setp.ne.u32 %%p%u, %%r%u, %u;", p, in_row, row - 1);
  lower_emit(l, "@%%p%u bra L%u;", p, no_close);
  call_printf(l, close);
  lower_emit(l, "setp.eq.u32 %%p%u, %%r%u, %u;", p, at, count);
  lower_emit(l, "@%%p%u bra L%u;", p, no_comma);
  call_printf(l, comma);
  if (l->status) return;
  ff_text_add(l->text, "L%u:\nL%u:\n", no_comma, no_close);
  lower_emit(l, "setp.lt.u32 %%p%u, %%r%u, %u;", p, at, count);
  lower_emit(l, "@%%p%u bra L%u;", p, begin_label);
  if (rows) print_text(l, "]", 1);
}

/* One conversion of one operand: all threads bring a tile to shared memory, one thread prints. */
static void print_value(lower *l, const tile_op *op, const tile_value *value, const char *format, size_t length,
                        char converts, uint32_t first) {
  uint32_t count = tile_elements(value->type), done = l->labels++;
  if (count > 1) {
    uint32_t bytes = lower_bytes(value->type->scalar) * count;
    if (bytes > 32768) {
      lower_fail(l, op, FF_UNSUPPORTED, "tiles of more than 32 KiB");
      return;
    }
    if (l->scratch_bytes < bytes) l->scratch_bytes = bytes;
    tile_layout layout = layout_default(l, value->type);
    const lowered *whole = layout_convert(l, lower_value(l, value), value->type->scalar, &layout);
    lower_barrier(l);
    layout_write(l, whole, value->type->scalar, l->scratch[0], 0);
    lower_barrier(l);
    l->scratch_known = false;
  }
  lower_emit(l, "@!%%p%u bra L%u;", first, done);
  if (count > 1) print_tile(l, op, value, format, length, converts);
  else {
    ff_text text = {0};
    conversion_text(&text, "", format, length, value->type->scalar, "");
    buffer_element(l, op, value->type->scalar, converts, lower_scalar(l, value));
    call_printf(l, text_address(l, text.chars, text.length));
    free(text.chars);
  }
  if (!l->status) ff_text_add(l->text, "L%u:\n", done);
}

/* A thread with an element that is false says so, with the message, and ends the program's use of the GPU. */
static void lower_assert(lower *l, const tile_op *op) {
  const tile_type *type = op->operands[0]->type;
  if (type->kind != TILE_KIND_TILE || type->scalar != TILE_I1) {
    lower_fail(l, op, FF_PARSE, "its condition is not i1");
    return;
  }
  tile_layout layout = layout_default(l, type);
  const lowered *value = lower_value(l, op->operands[0]);
  if (value->lazy) value = layout_convert(l, value, TILE_I1, &layout);
  uint32_t all = value->registers[0], good = l->labels++;
  for (uint32_t r = 1; !value->splat && r < 1u << value->layout.registers; r++) {
    uint32_t both = lower_register(l, CLASS_PREDICATE);
    lower_emit(l, "and.pred %%p%u, %%p%u, %%p%u;", both, all, value->registers[r]);
    all = both;
  }
  l->prints = true;
  const char *message = op->string ? op->string : "", *file = op->file ? op->file : "Tile IR";
  lower_emit(l, "@%%p%u bra L%u;", all, good);
  uint32_t texts[3] = {text_address(l, message, strlen(message)), text_address(l, file, strlen(file)),
                       text_address(l, l->function->name, strlen(l->function->name))};
  lower_emit(l, "{ .param .b64 message; .param .b64 file; .param .b32 line; .param .b64 function; .param .b64 size;");
  lower_emit(l, "st.param.b64 [message], %%d%u; st.param.b64 [file], %%d%u;", texts[0], texts[1]);
  lower_emit(l, "st.param.b32 [line], %u; st.param.b64 [function], %%d%u; st.param.b64 [size], 1;", op->line, texts[2]);
  lower_emit(l, "call __assertfail, (message, file, line, function, size); }");
  if (!l->status) ff_text_add(l->text, "L%u:\n", good);
}

bool lower_print_op(lower *l, tile_op *op) {
  if (op->opcode == TILE_OP_ASSERT) {
    lower_assert(l, op);
    return true;
  }
  if (op->opcode != TILE_OP_PRINT_TKO) return false;
  uint32_t values = op->operand_count - (op->token >= 0 ? 1 : 0), next = 0;
  uint32_t first = lower_register(l, CLASS_PREDICATE);
  lower_emit(l, "setp.eq.u32 %%p%u, %%r%u, 0;", first, l->thread);
  const char *format = op->string ? op->string : "";
  while (*format && !l->status) {
    size_t plain = 0; /* text up to the next conversion; "%%" stays as it is */
    while (format[plain] && (format[plain] != '%' || format[plain + 1] == '%')) plain += format[plain] == '%' ? 2 : 1;
    if (plain) {
      uint32_t done = l->labels++;
      lower_emit(l, "@!%%p%u bra L%u;", first, done);
      print_text(l, format, plain);
      if (!l->status) ff_text_add(l->text, "L%u:\n", done);
      format += plain;
      continue;
    }
    char converts;
    size_t length = conversion_length(format, &converts);
    if (next == values || !converts || op->operands[next]->type->kind != TILE_KIND_TILE) {
      lower_fail(l, op, FF_PARSE, "its format has more conversions than it has tiles, or a broken one");
      break;
    }
    print_value(l, op, op->operands[next++], format, length, converts, first);
    format += length;
  }
  return true;
}
