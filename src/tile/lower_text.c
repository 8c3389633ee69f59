/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of PTX, what their operands are called, and the limits of a translation. */
#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "tile/lower.h"

#define ARENA_BYTES_MAX (UINT64_C(1) << 30) /* for a kernel */

static bool too_much_text(const ff_text *a, const ff_text *b) { return a->length + b->length > LOWER_TEXT_MAX; }

void lower_emit(lower *l, const char *format, ...) {
  if (l->status) return;
  char line[512]; /* registers and numbers; names of any length are added by other means */
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  FF_ASSERT(n >= 0 && (size_t)n < sizeof line);
  ff_text_add(l->text, "  %s\n", line);
  if (too_much_text(l->text, l->data)) lower_fail(l, NULL, FF_LIMIT, "the module's translation has more than 256 MiB");
}

void lower_bytes_text(ff_text *text, const unsigned char *data, size_t period, size_t count) {
  for (size_t i = 0; i < count; i++) {
    char number[8]; /* not by ff_text_add: there may be hundreds of millions */
    size_t n = 0;
    uint32_t byte = data[i % period];
    if (i) number[n++] = ',', number[n++] = i % 32 ? ' ' : '\n';
    if (byte >= 100) number[n++] = (char)('0' + byte / 100);
    if (byte >= 10) number[n++] = (char)('0' + byte / 10 % 10);
    number[n++] = (char)('0' + byte % 10);
    ff_text_add_bytes(text, number, n);
  }
}

void *lower_alloc(lower *l, size_t bytes) {
  l->allocated += bytes;
  if (l->allocated > ARENA_BYTES_MAX) lower_fail(l, NULL, FF_LIMIT, "its translation takes more than 1 GiB");
  return ff_arena_alloc(l->arena, bytes);
}

void lower_fail(lower *l, const tile_op *op, ff_status status, const char *format, ...) {
  if (l->status) return;
  char what[512];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  if (op)
    l->status = ff_fail(l->error, status, "Tile IR: kernel %s: %s at byte %u: %s", l->function->name,
                        tile_opcode_name(op->opcode), op->offset, what);
  else l->status = ff_fail(l->error, status, "Tile IR: kernel %s: %s", l->function->name, what);
}

uint32_t lower_register(lower *l, register_class class) { return ++l->registers[class]; }

char lower_letter(register_class class) { return "phrd"[class]; }

const char *lower_untyped(register_class class) {
  static const char *const names[] = {"pred", "b16", "b32", "b64"};
  return names[class];
}

register_class lower_class(tile_scalar scalar) {
  switch (scalar) {
  case TILE_I1: return CLASS_PREDICATE;
  case TILE_F16:
  case TILE_BF16: return CLASS_HALF;
  case TILE_I64:
  case TILE_F64:
  case TILE_POINTER: return CLASS_DOUBLE;
  default: return CLASS_WORD;
  }
}

uint32_t lower_bytes(tile_scalar scalar) {
  uint32_t bits = tile_scalar_bits(scalar);
  return bits < 8 ? 1 : bits / 8;
}

void lower_guard_text(char *text, size_t size, uint32_t predicate) {
  if (predicate) snprintf(text, size, "@%%p%u ", predicate);
  else *text = 0;
}

const char *lower_vector_suffix(uint32_t n) { return n == 4 ? ".v4" : n == 2 ? ".v2" : ""; }

const char *lower_registers_text(char *text, size_t size, char letter, const uint32_t *registers, uint32_t n) {
  size_t at = (size_t)snprintf(text, size, "%s", n > 1 ? "{" : "");
  for (uint32_t i = 0; i < n; i++)
    at += (size_t)snprintf(text + at, size - at, "%s%%%c%u", i ? ", " : "", letter, registers[i]);
  if (n > 1) snprintf(text + at, size - at, "}");
  return text;
}

void lower_set(lower *l, register_class class, uint32_t to, uint64_t bits) {
  if (class == CLASS_PREDICATE) {
    uint32_t word = lower_register(l, CLASS_WORD);
    lower_emit(l, "mov.u32 %%r%u, %u;", word, (uint32_t)(bits & 1));
    lower_emit(l, "setp.ne.u32 %%p%u, %%r%u, 0;", to, word);
  } else
    lower_emit(l, "mov.%s %%%c%u, 0x%llx;", lower_untyped(class), lower_letter(class), to, (unsigned long long)bits);
}

uint32_t lower_both(lower *l, uint32_t a, uint32_t b) {
  if (!a || !b) return a ? a : b;
  uint32_t result = lower_register(l, CLASS_PREDICATE);
  lower_emit(l, "and.pred %%p%u, %%p%u, %%p%u;", result, a, b);
  return result;
}
