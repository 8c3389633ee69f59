/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

#include <string.h>

#define PUT(...) ff_text_add(text, __VA_ARGS__)

static const char *const names[] = {"add.u32", "sub.u32", "mul.lo.u32", "and.b32", "or.b32",
                                    "xor.b32", "min.u32", "max.u32",    "min.s32", "max.s32"};
enum { OPERATIONS = sizeof names / sizeof *names };

static uint32_t compute(uint32_t op, uint32_t a, uint32_t b) {
  switch (op) {
  case 0: return a + b;
  case 1: return a - b;
  case 2: return a * b;
  case 3: return a & b;
  case 4: return a | b;
  case 5: return a ^ b;
  case 6: return a < b ? a : b;
  case 7: return a > b ? a : b;
  case 8: return (int32_t)a < (int32_t)b ? a : b;
  default: return (int32_t)a > (int32_t)b ? a : b;
  }
}

/* ---- choosing ---- */

uint32_t kernel_pick(uint64_t *state, uint32_t n) { /* splitmix64 */
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (uint32_t)((z ^ z >> 31) % n);
}

static kernel_op random_op(uint64_t *state) {
  kernel_op op = {.op = kernel_pick(state, OPERATIONS),
                  .d = kernel_pick(state, KERNEL_REGISTERS),
                  .a = kernel_pick(state, KERNEL_REGISTERS),
                  .b = kernel_pick(state, KERNEL_REGISTERS),
                  .c = kernel_pick(state, KERNEL_REGISTERS)};
  switch (kernel_pick(state, 12)) {
  case 0: op.kind = KERNEL_GUARDED, op.amount = kernel_pick(state, 32); break;
  case 1: op.kind = KERNEL_SKIP, op.amount = 1 + kernel_pick(state, 5), op.mask = 1u << kernel_pick(state, 6); break;
  case 2: op.kind = KERNEL_REPEAT, op.amount = 1 + kernel_pick(state, 4), op.mask = kernel_pick(state, 8); break;
  case 3: op.kind = KERNEL_TABLE_OP; break;
  case 4: op.kind = KERNEL_EXCHANGE, op.amount = kernel_pick(state, KERNEL_THREADS); break;
  case 5: op.kind = KERNEL_COUNT; break;
  default: op.kind = KERNEL_COMPUTE;
  }
  return op;
}

static bool holds_others(kernel_op_kind kind) { return kind == KERNEL_SKIP || kind == KERNEL_REPEAT; }

/* What a skip or a repeat holds are plain operations: all threads of a block reach each barrier. */
kernel kernel_random(uint64_t *state) {
  kernel k = {.op_count = 4 + kernel_pick(state, KERNEL_OPS - 4), .stored = kernel_pick(state, KERNEL_REGISTERS)};
  uint32_t held = 0;
  for (uint32_t n = 0; n < k.op_count; n++) {
    kernel_op op = random_op(state);
    if (held && (holds_others(op.kind) || op.kind == KERNEL_EXCHANGE)) op.kind = KERNEL_COMPUTE;
    if (holds_others(op.kind) && n + op.amount >= k.op_count) op.kind = KERNEL_COMPUTE;
    held = holds_others(op.kind) ? op.amount : held ? held - 1 : 0;
    k.ops[n] = op;
  }
  for (uint32_t n = 0; n < KERNEL_TABLE; n++) k.table[n] = kernel_pick(state, UINT32_MAX);
  for (int n = 0; n < 2; n++) k.factor[n] = 1 + 2 * kernel_pick(state, 40), k.offset[n] = kernel_pick(state, 5000);
  return k;
}

/* ---- the text ---- */

static void put_exchange(ff_text *text, const kernel_op *op) {
  PUT("st.shared.u32 [%%own], %%r%u;\nbar.sync 0;\nadd.u32 %%t0, %%th, %u;\nand.b32 %%t0, %%t0, %%last;\nshl.b32 %%t0, %%t0, 2;\nadd.u32 %%t0, %%t0, %%base;\n",
      op->a, op->amount);
  PUT("ld.shared.u32 %%r%u, [%%t0];\nbar.sync 0;\n", op->d);
}

static void put_op(ff_text *text, const kernel_op *op, uint32_t number) {
  switch (op->kind) {
  case KERNEL_COMPUTE: PUT("%s %%r%u, %%r%u, %%r%u;\n", names[op->op], op->d, op->a, op->b); break;
  case KERNEL_GUARDED:
    PUT("and.b32 %%t0, %%r%u, %u;\nsetp.ne.u32 %%p0, %%t0, 0;\n@%%p0 %s %%r%u, %%r%u, %%r%u;\n", op->c,
        1u << op->amount, names[op->op], op->d, op->a, op->b);
    break;
  case KERNEL_SKIP:
    PUT("and.b32 %%t0, %%r%u, %u;\nsetp.ne.u32 %%p0, %%t0, 0;\n@%%p0 bra E%u;\n", op->c, op->mask, number);
    break;
  case KERNEL_REPEAT:
    PUT("and.b32 %%turns, %%r%u, %u;\nL%u:\nsetp.eq.u32 %%p1, %%turns, 0;\n@%%p1 bra E%u;\nsub.u32 %%turns, %%turns, 1;\n",
        op->c, op->mask, number, number);
    break;
  case KERNEL_TABLE_OP:
    PUT("and.b32 %%t0, %%r%u, %u;\nmul.wide.u32 %%a0, %%t0, 4;\nadd.u64 %%a0, %%a0, %%table;\nld.const.u32 %%r%u, [%%a0];\n",
        op->a, KERNEL_TABLE - 1, op->d);
    break;
  case KERNEL_EXCHANGE: put_exchange(text, op); break;
  case KERNEL_COUNT:
    PUT("and.b32 %%t0, %%r%u, %u;\nmad.wide.u32 %%a0, %%t0, 4, %%c;\nred.global.add.u32 [%%a0], %%r%u;\n", op->a,
        KERNEL_COUNTERS - 1, op->b);
    break;
  }
}

static void put_ops(ff_text *text, const kernel *k) {
  uint32_t end = 0, holder = 0; /* of the operations that a skip or a repeat holds; 0: none is open */
  for (uint32_t n = 0; n < k->op_count; n++) {
    put_op(text, &k->ops[n], n);
    if (holds_others(k->ops[n].kind)) holder = n, end = n + k->ops[n].amount;
    if (!end || n != end) continue;
    if (k->ops[holder].kind == KERNEL_REPEAT) PUT("bra L%u;\n", holder);
    PUT("E%u:\n", holder);
    end = 0;
  }
}

static void put_read(ff_text *text, const kernel *k, int which, char from) {
  PUT("mad.lo.u32 %%t0, %%i, %u, %u;\nsub.u32 %%t1, %%n, 1;\nand.b32 %%t0, %%t0, %%t1;\nmad.wide.u32 %%a0, %%t0, 4, %%%c;\nld.global.u32 %%r%d, [%%a0];\n",
      k->factor[which], k->offset[which], from, which);
}

ff_text kernel_ptx(const kernel *k) {
  ff_text whole = {0}, *text = &whole;
  PUT(".version 7.0\n.target sm_50\n.address_size 64\n.const .align 4 .u32 tb[%d] = {", KERNEL_TABLE);
  for (uint32_t n = 0; n < KERNEL_TABLE; n++) PUT("%s%u", n ? ", " : "", k->table[n]);
  PUT("};\n.visible .entry k(.param .u64 py, .param .u64 px, .param .u64 pz, .param .u64 pc, .param .u32 pn, .param .u32 ps)\n{\n"
      ".reg .b32 %%r<%d>, %%t<2>, %%i, %%n, %%th, %%last, %%base, %%own, %%step, %%turns;\n.reg .b64 %%y, %%x, %%z, %%c, %%a0, %%ay, %%table;\n.reg .pred %%p<3>;\n"
      ".shared .align 4 .b8 sm[%d];\n",
      KERNEL_REGISTERS, KERNEL_THREADS * 4);
  PUT("ld.param.u64 %%y, [py];\nld.param.u64 %%x, [px];\nld.param.u64 %%z, [pz];\nld.param.u64 %%c, [pc];\nld.param.u32 %%n, [pn];\nmov.u64 %%table, tb;\n"
      "mov.u32 %%th, %%tid.x;\nmov.u32 %%t0, %%ntid.x;\nsub.u32 %%last, %%t0, 1;\nmov.u32 %%t1, %%ctaid.x;\nmad.lo.u32 %%i, %%t1, %%t0, %%th;\nmov.u32 %%t1, %%nctaid.x;\n"
      "mul.lo.u32 %%step, %%t0, %%t1;\nmov.u32 %%base, sm;\nshl.b32 %%own, %%th, 2;\nadd.u32 %%own, %%own, %%base;\nNEXT:\n");
  put_read(text, k, 0, 'x');
  put_read(text, k, 1, 'z');
  PUT("mad.wide.u32 %%ay, %%i, 4, %%y;\nld.global.u32 %%r2, [%%ay];\nmov.u32 %%r3, %%i;\nld.param.u32 %%r4, [ps];\nmov.u32 %%r5, %%th;\n");
  for (int r = 6; r < KERNEL_REGISTERS; r++) PUT("mov.u32 %%r%d, %d;\n", r, r);
  put_ops(text, k);
  PUT("st.global.u32 [%%ay], %%r%u;\nadd.u32 %%i, %%i, %%step;\nsetp.lt.u32 %%p2, %%i, %%n;\n@%%p2 bra NEXT;\nret;\n}\n",
      k->stored);
  return whole;
}

/* ---- the reference ---- */

typedef struct lane {
  uint32_t r[KERNEL_REGISTERS];
} lane;

static void do_plain(const kernel *k, const kernel_op *op, lane *l, uint32_t *counters) {
  if (op->kind == KERNEL_TABLE_OP) l->r[op->d] = k->table[l->r[op->a] % KERNEL_TABLE];
  else if (op->kind == KERNEL_COUNT) counters[l->r[op->a] % KERNEL_COUNTERS] += l->r[op->b];
  else if (op->kind == KERNEL_COMPUTE || l->r[op->c] >> op->amount & 1)
    l->r[op->d] = compute(op->op, l->r[op->a], l->r[op->b]);
}

/* Operations of one thread up to the next exchange; returns its number, or op_count. */
static uint32_t do_until_exchange(const kernel *k, uint32_t from, lane *l, uint32_t *counters) {
  uint32_t n = from;
  for (; n < k->op_count && k->ops[n].kind != KERNEL_EXCHANGE; n++) {
    const kernel_op *op = &k->ops[n];
    if (!holds_others(op->kind)) {
      do_plain(k, op, l, counters);
      continue;
    }
    uint32_t turns = op->kind == KERNEL_REPEAT ? l->r[op->c] & op->mask : !(l->r[op->c] & op->mask);
    for (; turns; turns--)
      for (uint32_t m = 1; m <= op->amount; m++) do_plain(k, &k->ops[n + m], l, counters);
    n += op->amount;
  }
  return n;
}

/* What the threads of a block do for their words from `first` on. */
static void do_block(const kernel *k, const kernel_arguments *a, uint32_t first) {
  lane lanes[KERNEL_THREADS];
  uint32_t at = 0;
  for (uint32_t t = 0; t < a->threads; t++) {
    uint32_t i = first + t;
    lanes[t] = (lane){{a->x[(i * k->factor[0] + k->offset[0]) % a->n], a->z[(i * k->factor[1] + k->offset[1]) % a->n],
                       a->y[i], i, a->salt, t, 6, 7}};
  }
  for (uint32_t next = 0; at < k->op_count; at = next + 1) {
    uint32_t given[KERNEL_THREADS];
    for (uint32_t t = 0; t < a->threads; t++) next = do_until_exchange(k, at, &lanes[t], a->counters);
    if (next == k->op_count) break;
    const kernel_op *op = &k->ops[next];
    for (uint32_t t = 0; t < a->threads; t++) given[t] = lanes[t].r[op->a];
    for (uint32_t t = 0; t < a->threads; t++) lanes[t].r[op->d] = given[(t + op->amount) % a->threads];
  }
  for (uint32_t t = 0; t < a->threads; t++) a->y[first + t] = lanes[t].r[k->stored];
}

void kernel_reference(const kernel *k, const kernel_arguments *a) {
  for (uint32_t first = 0; first < a->n; first += a->threads) do_block(k, a, first);
}
