/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that PTX has no instruction for, or only a rough one. Those of f32 stand where they are used (inlines.def),
 * as long as they are short; the others are functions of the module (helpers.def), which it gets when it needs them.
 * f16 and bf16 are computed in f32 and rounded once more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tile/lower_elements.h"

typedef enum inline_text {
#define X(name, text) INLINE_##name,
#include "tile/inlines.def"
#undef X
  INLINE_COUNT
} inline_text;

static const char *const inline_texts[INLINE_COUNT] = {
#define X(name, text) text,
#include "tile/inlines.def"
#undef X
};

static const char *const helper_names[HELPER_COUNT] = {
#define X(name, text) #name,
#include "tile/helpers.def"
#undef X
};

static const char *const helper_texts[HELPER_COUNT] = {
#define X(name, text) text,
#include "tile/helpers.def"
#undef X
};

void lower_need(lower *l, lower_helper helper) { l->helpers |= UINT64_C(1) << helper; }

/* The helpers that a text calls. */
static uint64_t helpers_called(const char *text) {
  uint64_t called = 0;
  for (uint32_t n = 1; n < HELPER_COUNT; n++) {
    char call[48];
    snprintf(call, sizeof call, " tile_%s, (", helper_names[n]);
    if (strstr(text, call)) called |= UINT64_C(1) << n;
  }
  return called;
}

/* What a helper calls stands before it in helpers.def. */
void lower_helpers_text(uint64_t helpers, ff_text *text) {
  for (uint32_t n = HELPER_COUNT - 1; n > 0; n--)
    if (helpers >> n & 1) helpers |= helpers_called(helper_texts[n]);
  for (uint32_t n = 1; n < HELPER_COUNT; n++)
    if (helpers >> n & 1) ff_text_add(text, "%s", helper_texts[n]);
}

/* ---- expansion ---- */

/* One line of an inline text with its $d, $a, $b, $f and $n. */
static void emit_line(lower *l, const char *line, size_t length, const uint32_t registers[3], const char *flush,
                      uint32_t number) {
  ff_text out = {0};
  for (size_t n = 0; n < length; n++) {
    char what = line[n] == '$' && n + 1 < length ? line[++n] : 0;
    if (!what) ff_text_add_bytes(&out, line + n, 1);
    else if (what == 'f') ff_text_add(&out, "%s", flush);
    else if (what == 'n') ff_text_add(&out, "%u", number);
    else ff_text_add(&out, "%%r%u", registers[what == 'd' ? 0 : what == 'a' ? 1 : 2]);
  }
  lower_emit(l, "%s", out.chars);
  free(out.chars);
}

static void expand(lower *l, inline_text which, bool flush, uint32_t to, const uint32_t *from, uint32_t count) {
  const char *text = inline_texts[which];
  uint32_t registers[3] = {to, from[0], count > 1 ? from[1] : from[0]}, number = l->labels++;
  l->helpers |= helpers_called(text);
  lower_emit(l, "{");
  lower_emit(l, ".reg .b32 %%t<8>; .reg .b64 %%u<3>; .reg .pred %%q<2>;");
  for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
    emit_line(l, line, (size_t)(end - line), registers, flush ? ".ftz" : "", number);
  lower_emit(l, "}");
}

static void call(lower *l, lower_helper helper, register_class class, uint32_t to, const uint32_t *from,
                 uint32_t count) {
  char c = lower_letter(class);
  lower_need(l, helper);
  if (count == 1) lower_emit(l, "call (%%%c%u), tile_%s, (%%%c%u);", c, to, helper_names[helper], c, from[0]);
  else lower_emit(l, "call (%%%c%u), tile_%s, (%%%c%u, %%%c%u);", c, to, helper_names[helper], c, from[0], c, from[1]);
}

/* ---- operations ---- */

/* How an operation is computed: an inline text or a helper of f32, and a helper of f64. */
typedef struct function {
  tile_opcode opcode;
  inline_text text; /* INLINE_COUNT: it is a helper */
  lower_helper single, wide;
} function;

static const function functions[] = {
    {TILE_OP_EXP, INLINE_EXP_F32, HELPER_NONE, HELPER_EXP_F64},
    {TILE_OP_EXP2, INLINE_EXP2_F32, HELPER_NONE, HELPER_EXP2_F64},
    {TILE_OP_LOG, INLINE_LOG_F32, HELPER_NONE, HELPER_LOG_F64},
    {TILE_OP_LOG2, INLINE_LOG2_F32, HELPER_NONE, HELPER_LOG2_F64},
    {TILE_OP_SIN, INLINE_SIN_F32, HELPER_NONE, HELPER_SIN_F64},
    {TILE_OP_COS, INLINE_COS_F32, HELPER_NONE, HELPER_COS_F64},
    {TILE_OP_TAN, INLINE_TAN_F32, HELPER_NONE, HELPER_TAN_F64},
    {TILE_OP_SINH, INLINE_SINH_F32, HELPER_NONE, HELPER_SINH_F64},
    {TILE_OP_COSH, INLINE_COSH_F32, HELPER_NONE, HELPER_COSH_F64},
    {TILE_OP_TANH, INLINE_TANH_F32, HELPER_NONE, HELPER_TANH_F64},
    {TILE_OP_ATAN2, INLINE_ATAN2_F32, HELPER_NONE, HELPER_ATAN2_F64},
    {TILE_OP_POW, INLINE_COUNT, HELPER_POW_F32, HELPER_POW_F64},
    {TILE_OP_REMF, INLINE_COUNT, HELPER_REMAINDER_F32, HELPER_REMAINDER_F64},
};

static const function *function_of(tile_opcode opcode) {
  for (size_t n = 0; n < sizeof functions / sizeof *functions; n++)
    if (functions[n].opcode == opcode) return &functions[n];
  return NULL;
}

/* exp and tanh with `approx`: the instruction, exp by way of 2^x. */
static bool approximate_f32(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  if (op->rounding != TILE_ROUND_APPROX || result_scalar(op) != TILE_F32) return false;
  if (op->opcode == TILE_OP_TANH) {
    lower_emit(l, "tanh.approx.f32 %%r%u, %%r%u;", to, from[0]);
    return true;
  }
  if (op->opcode != TILE_OP_EXP) return false;
  uint32_t scaled = lower_register(l, CLASS_WORD);
  lower_emit(l, "mul.rn.f32 %%r%u, %%r%u, 0f3FB8AA3B;", scaled, from[0]);
  lower_emit(l, "ex2.approx.f32 %%r%u, %%r%u;", to, scaled);
  return true;
}

static void element_function(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  const function *f = function_of(op->opcode);
  tile_scalar scalar = result_scalar(op);
  if (scalar == TILE_F64) {
    call(l, f->wide, CLASS_DOUBLE, to, from, op->operand_count);
    return;
  }
  if (approximate_f32(l, op, to, from)) return;
  bool half = scalar_is_half(scalar);
  uint32_t a[2] = {0}, result = half ? lower_register(l, CLASS_WORD) : to;
  for (uint32_t n = 0; n < op->operand_count && n < 2; n++) a[n] = element_to_f32(l, scalar, from[n]);
  if (f->text < INLINE_COUNT) expand(l, f->text, op->flush_to_zero, result, a, op->operand_count);
  else call(l, f->single, CLASS_WORD, result, a, op->operand_count);
  if (half) element_of_f32(l, scalar, TILE_ROUND_EVEN, to, result);
}

/* The instruction of f64 is of 22 bits. */
static void element_rsqrt(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar scalar = result_scalar(op);
  if (scalar == TILE_F64) {
    uint32_t root = lower_register(l, CLASS_DOUBLE);
    lower_emit(l, "sqrt.rn.f64 %%d%u, %%d%u;", root, from[0]);
    lower_emit(l, "rcp.rn.f64 %%d%u, %%d%u;", to, root);
    return;
  }
  bool half = scalar_is_half(scalar);
  uint32_t a = element_to_f32(l, scalar, from[0]), result = half ? lower_register(l, CLASS_WORD) : to;
  lower_emit(l, "rsqrt.approx%s.f32 %%r%u, %%r%u;", op->flush_to_zero && !half ? ".ftz" : "", result, a);
  if (half) element_of_f32(l, scalar, TILE_ROUND_EVEN, to, result);
}

/* The exponent is an integer of any width. */
static void element_power(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar scalar = result_scalar(op), exponent = operand_scalar(op, 1);
  uint32_t n = from[1];
  if (exponent != TILE_I64) {
    uint32_t word = element_extend(l, exponent, true, n);
    n = lower_register(l, CLASS_DOUBLE);
    lower_emit(l, "cvt.s64.s32 %%d%u, %%r%u;", n, word);
  }
  bool wide = scalar == TILE_F64, half = scalar_is_half(scalar);
  lower_helper helper = wide ? HELPER_POWER_F64 : HELPER_POWER_F32;
  char c = wide ? 'd' : 'r';
  uint32_t a = wide ? from[0] : element_to_f32(l, scalar, from[0]), result = half ? lower_register(l, CLASS_WORD) : to;
  lower_need(l, helper);
  lower_emit(l, "call (%%%c%u), tile_%s, (%%%c%u, %%d%u);", c, result, helper_names[helper], c, a, n);
  if (half) element_of_f32(l, scalar, TILE_ROUND_EVEN, to, result);
}

bool lower_math_op(lower *l, tile_op *op) {
  const function *f = function_of(op->opcode);
  bool is_power = op->opcode == TILE_OP_FPOW_I;
  if (!f && !is_power && op->opcode != TILE_OP_RSQRT) return false;
  tile_scalar scalar = result_scalar(op);
  if (!scalar_is_base_float(scalar))
    lower_fail(l, op, FF_UNSUPPORTED, "%s of %s", tile_opcode_name(op->opcode), tile_scalar_name(scalar));
  else if (is_power && !scalar_is_integer(operand_scalar(op, 1)))
    lower_fail(l, op, FF_PARSE, "the exponent of %s is %s", tile_opcode_name(op->opcode),
               tile_scalar_name(operand_scalar(op, 1)));
  else lower_elementwise(l, op, is_power ? element_power : f ? element_function : element_rsqrt);
  return true;
}
