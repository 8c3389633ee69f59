/* SPDX-License-Identifier: Apache-2.0 */
/* Before anything is generated: every count and index of a request is in range, and every instruction that has native
 * code is one of the forms that there are, with operands of the widths that the form has.
 *
 * Of a request that has passed, instructions and operands lie one after the other, function by
 * function; operands lie inside their frame, aligned, and are the same place or do not touch; what is written is not a
 * constant. */
#include "compile/generator/emit_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "compile/known_forms.h"
#include "compile/generator/emit_plan.h"
#include "exec/core.h"
#include "exec/instructions/ops_table.h"

#define MAX_FRAME_BYTES (64u << 20)

typedef struct checker {
  const native_request *head;
  const native_function *function;
  const native_operand *operands;
  const uint32_t *waits;
  uint32_t next;      /* operand */
  uint32_t *place_of; /* by 4 bytes of the frame: the offset of the operand that is there, plus 1 */
} checker;

static const uint8_t kind_bytes[] = {
#define K(name, bytes, bits, class) bytes,
#include "exec/instructions/ops_kinds.def"
#undef K
};

/* ---- the forms there are ---- */

static uint64_t form_key(uint32_t op, const uint8_t kinds[5]) {
  uint64_t key = op;
  for (int k = 0; k < 5; k++) key = key << 8 | kinds[k];
  return key;
}

static int by_key(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static bool is_form(uint64_t key) {
  static uint64_t *keys;
  static uint32_t count;
  if (!keys) {
    compile_form *forms = compile_forms(&OPS_SET_ANY, &count);
    keys = ff_alloc(count * sizeof *keys);
    for (uint32_t n = 0; n < count; n++) keys[n] = form_key(forms[n].op, forms[n].kinds);
    qsort(keys, count, sizeof *keys, by_key);
    free(forms);
  }
  return bsearch(&key, keys, count, sizeof *keys, by_key) != NULL;
}

/* ---- operands ---- */

static uint32_t place_bytes(const native_operand *o) { return o->bytes ? o->bytes * EXEC_LANES : 4; }

static bool good_operand(checker *c, const native_operand *o, bool written) {
  if (o->bytes != 0 && o->bytes != 4 && o->bytes != 8 && o->bytes != 16) return false;
  if (o->offset & 1) return !written && o->constant <= 2 && !(o->constant && o->bytes == 16);
  if (o->constant || o->offset & (o->bytes ? 63 : 3) || (uint64_t)o->offset + place_bytes(o) > c->function->frame_bytes)
    return false;
  for (uint32_t at = o->offset / 4; at < (o->offset + place_bytes(o)) / 4; at++) {
    if (c->place_of[at] && c->place_of[at] != o->offset + 1) return false;
    c->place_of[at] = o->offset + 1;
  }
  return true;
}

/* The next operands are these widths' reads and writes, NULL-ended by 0xff; more may follow the reads. */
static bool widths(const checker *c, const native_instr *n, const uint8_t *reads, const uint8_t *writes) {
  const native_operand *o = c->operands + n->operands;
  for (uint32_t r = 0; reads[r] != 0xff; r++)
    if (r >= n->read_count || o[r].bytes != reads[r]) return false;
  for (uint32_t w = 0; writes[w] != 0xff; w++)
    if (w >= n->write_count || o[n->read_count + w].bytes != writes[w]) return false;
  return true;
}

static bool good_guard(const checker *c, const native_instr *n) {
  if (n->guard == NATIVE_NONE && n->op != NATIVE_BRANCH_IF) return true;
  return n->read_count && c->operands[n->operands + n->read_count - 1].bytes == 0;
}

/* ---- instructions ---- */

static bool good_form(const checker *c, const native_instr *n) {
  uint8_t kinds[5] = {n->dst_kind, n->src_kind[0], n->src_kind[1], n->src_kind[2], n->src_kind[3]}, reads[5], writes[3];
  bool compares = n->op >= NATIVE_CMP_EQ && n->op <= NATIVE_CMP_NAN;
  uint32_t sources = 0;
  for (int k = 0; k < 5; k++)
    if (kinds[k] >= NATIVE_KINDS) return false;
  for (; sources < 4 && kinds[sources + 1] != NATIVE_K_none; sources++) reads[sources] = kind_bytes[kinds[sources + 1]];
  reads[sources] = 0xff;
  if (compares && (n->aux & OPS_AUX_BOOLEAN)) { /* a predicate behind the two that are compared */
    if (sources != 3 || kinds[3] != NATIVE_K_pred) return false;
    kinds[3] = NATIVE_K_none;
  }
  writes[0] = kind_bytes[n->dst_kind];
  writes[1] = compares && (n->aux & OPS_AUX_SECOND) ? 0 : 0xff;
  writes[2] = 0xff;
  return is_form(form_key(n->op, kinds)) && widths(c, n, reads, writes);
}

static bool good_access(const checker *c, const native_instr *n) {
  uint8_t reads[8], writes[8];
  uint32_t read = 0, written = 0;
  bool sized = (n->bytes == 1 || n->bytes == 2 || n->bytes == 4 || n->bytes == 8) &&
               (n->slot_bytes == 4 || n->slot_bytes == 8) && n->bytes <= n->slot_bytes;
  if (!sized || !n->elements || n->elements > 4 || (n->space == NATIVE_PARAM && n->store)) return false;
  if (n->space != NATIVE_PARAM) reads[read++] = n->wide ? 8 : 4;
  for (uint32_t e = 0; e < n->elements; e++)
    if (n->store) reads[read++] = n->slot_bytes;
    else writes[written++] = n->slot_bytes;
  reads[read] = writes[written] = 0xff;
  return widths(c, n, reads, writes);
}

/* The decoder's own moves: bits, read and written as no kind says. */
static bool good_move(const checker *c, const native_instr *n) {
  if (n->dst_kind != NATIVE_K_none) return false;
  for (int k = 0; k < 4; k++)
    if (n->src_kind[k] != NATIVE_K_none) return false;
#define WIDTHS(...) ((const uint8_t[]){__VA_ARGS__, 0xff})
  static const uint8_t none[] = {0xff};
  switch (n->op) {
  case NATIVE_SHUFFLE:
    return !c->head->any && n->guard == NATIVE_NONE && n->aux <= EXEC_SHFL_IDX &&
           widths(c, n, WIDTHS(4, 4, 4), n->write_count > 1 ? WIDTHS(4, 0) : WIDTHS(4)) &&
           c->operands[n->operands + 1].constant == 1 && c->operands[n->operands + 2].constant == 1;
  case NATIVE_SREG:
    return n->write_count && (widths(c, n, none, WIDTHS(4)) || widths(c, n, none, WIDTHS(8))) &&
           (c->operands[n->operands + n->read_count].bytes == 4 || !plan_native_register(n->aux));
  case NATIVE_ADD_IMMEDIATE: return widths(c, n, WIDTHS(4), WIDTHS(4)) || widths(c, n, WIDTHS(8), WIDTHS(8));
  case NATIVE_PACK32: return widths(c, n, WIDTHS(4, 4), WIDTHS(8));
  case NATIVE_UNPACK32: return widths(c, n, WIDTHS(8), WIDTHS(4, 4));
  case NATIVE_NARROW: return widths(c, n, WIDTHS(8), WIDTHS(4));
  default: return widths(c, n, WIDTHS(4), WIDTHS(8)); /* WIDEN_ZERO, WIDEN_SIGN */
  }
}

/* Load numbers: cells of the frame. */
static bool good_waits(const checker *c, const native_instr *n) {
  if ((uint64_t)n->wait + n->wait_count > c->head->wait_count) return false;
  for (uint32_t k = 0; k < n->wait_count; k++)
    if (c->waits[n->wait + k] % 4 || (uint64_t)c->waits[n->wait + k] + 4 > c->function->frame_bytes) return false;
  return true;
}

static bool good_targets(const checker *c, const native_instr *n) {
  static const uint8_t one[] = {4, 0xff}, none[] = {0xff};
  if (n->guard != NATIVE_NONE || !n->aux || (uint64_t)n->target + n->aux > c->head->wait_count ||
      !widths(c, n, one, none))
    return false;
  for (uint32_t t = 0; t < n->aux; t++)
    if (c->waits[n->target + t] >= c->function->count) return false;
  return true;
}

static bool good_instr(checker *c, const native_instr *n) {
  if (n->op >= NATIVE_OPS || n->operands != c->next ||
      (uint64_t)n->operands + n->read_count + n->write_count > c->head->operand_count)
    return false;
  for (uint32_t k = 0; k < (uint32_t)n->read_count + n->write_count; k++)
    if (!good_operand(c, &c->operands[n->operands + k], k >= n->read_count)) return false;
  c->next += (uint32_t)n->read_count + n->write_count;
  if (!good_guard(c, n) || !good_waits(c, n)) return false;
  switch (n->op) {
  case NATIVE_EXIT:
  case NATIVE_HANDLER:
  case NATIVE_NOTHING:
  case NATIVE_SYNC: return true;
  case NATIVE_WARP_SYNC: return !c->head->any && n->guard == NATIVE_NONE && !n->write_count;
  case NATIVE_BRANCH:
  case NATIVE_BRANCH_IF: return n->target < c->function->count;
  case NATIVE_BRANCH_INDEXED: return good_targets(c, n);
  case NATIVE_ACCESS: return good_access(c, n);
  default: return n->op < NATIVE_ADD ? good_move(c, n) : good_form(c, n);
  }
}

static bool good_function(checker *c, const native_instr *instrs) {
  if (!c->function->count || c->function->frame_bytes > MAX_FRAME_BYTES) return false;
  c->place_of = ff_alloc(c->function->frame_bytes / 4 * sizeof *c->place_of);
  bool good = true;
  for (uint32_t n = 0; n < c->function->count && good; n++) good = good_instr(c, &instrs[n]);
  free(c->place_of);
  return good;
}

/* Each call that generated code makes has a place of its own among them: its function in that code is named after
 * it. */
static bool calls_differ(const native_layout *at) {
  const uint32_t *calls = &at->api_guarded, count = (uint32_t)(&at->api_masked - calls) + 1;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < i; k++)
      if (calls[i] == calls[k]) return false;
  return true;
}

bool check_request(const unsigned char *data, uint32_t bytes, const char **message) {
  const native_request *head = (const native_request *)(const void *)data;
  *message = "this is not a request";
  if (bytes < sizeof *head || head->magic != NATIVE_MAGIC || head->version != NATIVE_VERSION || head->bytes != bytes)
    return false;
  uint64_t wanted = sizeof *head + (uint64_t)head->function_count * sizeof(native_function) +
                    (uint64_t)head->instr_count * sizeof(native_instr) +
                    (uint64_t)head->operand_count * sizeof(native_operand) +
                    (uint64_t)head->wait_count * sizeof(uint32_t);
  if (wanted != bytes) return false;
  /* the baseline, which has no fused multiply-add, is always interpreted */
  *message = "no code is made for this instruction set";
  if (head->isa > 1) return false;
  const native_function *functions = (const native_function *)(const void *)(head + 1);
  const native_instr *instrs = (const native_instr *)(const void *)(functions + head->function_count);
  checker c = {.head = head, .operands = (const native_operand *)(const void *)(instrs + head->instr_count)};
  c.waits = (const uint32_t *)(const void *)(c.operands + head->operand_count);
  *message = "the request is broken";
  if (!calls_differ(&head->layout)) return false;
  uint32_t next = 0;
  for (uint32_t f = 0; f < head->function_count; f++) {
    c.function = &functions[f];
    if (functions[f].first != next || functions[f].count > head->instr_count - next ||
        !good_function(&c, instrs + next))
      return false;
    next += functions[f].count;
  }
  return next == head->instr_count && c.next == head->operand_count;
}
