/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every handler of the tables exec/ops_*.def against a plain scalar reference.
 *
 * A *form* is one name of a table ("fma.rn.ftz.f32"), turned into the instruction it stands for. A *sample* is 32 lanes
 * of inputs and what the reference says. Each sample runs on every instruction set that this processor has, in both
 * forms of the handler, with the destination in a slot of its own and in a source's slot, with sources in registers and
 * in the constant pool; lanes outside the mask, the sources and everything around the slots must stay as they were. */
#ifndef FF_TESTS_OPS_HARNESS_H
#define FF_TESTS_OPS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/instructions/ops_table.h"
#include "ptx/syntax/words.h"

/* --- Instruction sets. --- */

typedef ff_status (*chooser)(const ptx_func *, const ptx_instr *, exec_choice *, ff_error *);
typedef struct isa {
  const char *name;
  ops_set *set;
  chooser choose;
} isa;

static isa isas[3];
static int isa_count;

static void find_isas(void) {
  isa_count = 0;
#if !EXEC_WITHOUT_baseline
  isas[isa_count++] = (isa){"baseline", &ops_set_baseline, exec_choose_baseline};
#endif
#if !EXEC_WITHOUT_avx2
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
    isas[isa_count++] = (isa){"avx2", &ops_set_avx2, exec_choose_avx2};
#endif
#if !EXEC_WITHOUT_avx512
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    isas[isa_count++] = (isa){"avx512", &ops_set_avx512, exec_choose_avx512};
#endif
}

/* --- Random numbers: xorshift, the same in every run. --- */

static uint64_t random_state = UINT64_C(0x9e3779b97f4a7c15);
static uint64_t random64(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state * UINT64_C(0x2545f4914f6cdd1d);
}
static uint32_t random_below(uint32_t n) { return (uint32_t)((random64() >> 32) * n >> 32); }

/* --- Forms. --- */

typedef struct form {
  char name[128];
  const ops_entry *entry; /* of the first instruction set */
  ptx_instr instr;
  ptx_operand operands[6];
  ptx_reg regs[8];
  ptx_func func;
  uint32_t source_bits[4], dst_bits; /* widths of the registers; 1: predicates */
  int sources;
} form;

static inline bool has(const form *f, ptx_mod mod) { return ptx_has(&f->instr, mod); }

static uint32_t bits_of(ptx_type type) {
  uint32_t bits = ptx_type_bits(type);
  return bits == 8 ? 16 : bits;
}

static void add_register(form *f, int operand, uint32_t bits) {
  f->operands[operand] = (ptx_operand){.kind = PTX_OPERAND_REG, .reg = f->func.reg_count};
  ptx_type type = bits == 64 ? PTX_B64 : bits == 32 ? PTX_B32 : bits == 1 ? PTX_PRED : PTX_B16;
  f->regs[f->func.reg_count++] = (ptx_reg){.name = "r", .type = type, .vector = 1};
}

/* The instruction of a name: words between dots, then "<64", "@32", "@64" (registers wider than the types) or "/3". */
static void form_make(form *f, const char *name, size_t length, const ops_entry *entry) {
  memset(f, 0, sizeof *f);
  snprintf(f->name, sizeof f->name, "%.*s", (int)length, name);
  f->entry = entry;
  f->instr.operands = f->operands;
  f->instr.guard = PTX_NO_REG;
  f->instr.vector = 1;
  f->func.regs = f->regs;
  f->func.name = "test";
  const char *at = f->name;
  for (int word = 0; *at && *at != '<' && *at != '@' && *at != '/'; word++) {
    size_t size = strcspn(at, ".<@/");
    if (word == 0) f->instr.opcode = ptx_opcode_find(at, size);
    else {
      ptx_word found = ptx_word_find(at, size);
      if (found.type != PTX_TYPE_NONE) f->instr.types[f->instr.type_count++] = found.type;
      else {
        if (!found.is_mod) fail_msg("%s: '%.*s' is not a PTX word", f->name, (int)size, at);
        f->instr.mods[f->instr.mod_count++] = (uint16_t)found.mod;
        f->instr.mod_set[found.mod / 64] |= UINT64_C(1) << found.mod % 64;
      }
    }
    at += size + (at[size] == '.');
  }
  f->dst_bits = bits_of(entry->dst);
  while (f->sources < 4 && entry->src[f->sources] != PTX_TYPE_NONE) {
    f->source_bits[f->sources] = bits_of(entry->src[f->sources]);
    f->sources++;
  }
  if (f->instr.opcode == PTX_OP_CVT && !has(f, PTX_MOD_PACK)) {
    f->dst_bits = strstr(at, "@64") ? 64 : strstr(at, "@32") ? 32 : bits_of(f->instr.types[0]);
    f->source_bits[0] = strstr(at, "<64") ? 64 : bits_of(f->instr.types[f->instr.type_count - 1]);
  }
  add_register(f, 0, f->dst_bits);
  for (int i = 0; i < f->sources; i++) add_register(f, i + 1, f->source_bits[i]);
  f->instr.operand_count = (uint8_t)(f->sources + 1);
}

/* --- Samples. --- */

typedef struct sample {
  uint64_t s[4][32];        /* sources, as the registers hold them */
  uint32_t pred[4];         /* predicate sources */
  uint32_t carry;           /* CC.CF before */
  uint64_t d[32];           /* expected: cells */
  uint32_t p, q, carry_out; /* expected predicates: p in place of d when the destination is one */
} sample;

/* Fills in what is expected in one lane. */
typedef void (*reference_fn)(const form *f, sample *x, int lane);
/* Instead of equality: is `got` acceptable? (Every instruction set must still give the same.) */
typedef bool (*accept_fn)(const form *f, const sample *x, int lane, uint64_t got);

static inline bool lane_pred(const sample *x, int source, int lane) { return x->pred[source] >> lane & 1; }
static inline void expect_pred(uint32_t *mask, int lane, bool value) { *mask |= (uint32_t)value << lane; }

/* --- Values worth trying. --- */

static const uint64_t edges_int[] = {0,
                                     1,
                                     2,
                                     3,
                                     5,
                                     7,
                                     8,
                                     15,
                                     16,
                                     17,
                                     23,
                                     24,
                                     31,
                                     32,
                                     33,
                                     63,
                                     64,
                                     65,
                                     127,
                                     128,
                                     129,
                                     254,
                                     255,
                                     256,
                                     257,
                                     0x7ffe,
                                     0x7fff,
                                     0x8000,
                                     0x8001,
                                     0xfffe,
                                     0xffff,
                                     0x10000,
                                     0x7fffff,
                                     0x800000,
                                     0xffffff,
                                     0x1000000,
                                     0x7ffffffe,
                                     0x7fffffff,
                                     0x80000000,
                                     0x80000001,
                                     0xfffffffe,
                                     0xffffffff,
                                     0x55555555,
                                     0xaaaaaaaa,
                                     0x01234567,
                                     UINT64_C(0x100000000),
                                     UINT64_C(0x1fffff80000000),
                                     UINT64_C(0x20000000000001),
                                     UINT64_C(0x7fffffffffffffff),
                                     UINT64_C(0x8000000000000000),
                                     UINT64_C(0x8000000000000001),
                                     UINT64_C(0xfffffffffffffffe),
                                     UINT64_C(0xffffffffffffffff),
                                     UINT64_C(0xffffffff80000000),
                                     UINT64_C(0xffffffff7fffffff),
                                     UINT64_C(0x5555555555555555),
                                     UINT64_C(0x0123456789abcdef),
                                     UINT64_C(0xfffffffffffff800),
                                     UINT64_C(0x7ffffffffffffc00)};
static const uint32_t edges_f32[] = {
    0x00000000, 0x00000001, 0x00000002, 0x007fffff, 0x00800000, 0x00800001, 0x00ffffff, 0x33800000, 0x33800001,
    0x38800000, 0x387fffff, 0x38000001, 0x3effffff, 0x3f000000, 0x3f000001, 0x3f7fffff, 0x3f800000, 0x3f800001,
    0x3fc00000, 0x40000000, 0x40200000, 0x40490fdb, 0x42feffff, 0x42ff0000, 0x43000000, 0x437f8000, 0x43e80000,
    0x46fffe00, 0x46ffff00, 0x477fe000, 0x477ff000, 0x47800000, 0x4affffff, 0x4b000000, 0x4b000001, 0x4b7fffff,
    0x4b800000, 0x4effffff, 0x4f000000, 0x4f7fffff, 0x4f800000, 0x5effffff, 0x5f000000, 0x5f7fffff, 0x5f800000,
    0x7e7fffff, 0x7e800000, 0x7e800001, 0x7f000000, 0x7f7f7fff, 0x7f7f8000, 0x7f7fffff, 0x7f800000, 0x7f800001,
    0x7fc00000, 0x7fffffff, 0x3f801000, 0x3f803000, 0x3f808000, 0x3f818000};
static const uint64_t edges_f64[] = {0,
                                     1,
                                     UINT64_C(0x000fffffffffffff),
                                     UINT64_C(0x0010000000000000),
                                     UINT64_C(0x36a0000000000000),
                                     UINT64_C(0x3690000000000001),
                                     UINT64_C(0x380fffffe0000000),
                                     UINT64_C(0x3810000000000000),
                                     UINT64_C(0x3e70000000000001),
                                     UINT64_C(0x3f10000000000000),
                                     UINT64_C(0x3fe0000000000000),
                                     UINT64_C(0x3fe0000000000001),
                                     UINT64_C(0x3fdfffffffffffff),
                                     UINT64_C(0x3fefffffffffffff),
                                     UINT64_C(0x3ff0000000000000),
                                     UINT64_C(0x3ff0000000000001),
                                     UINT64_C(0x3ff0000010000000),
                                     UINT64_C(0x3ff0000030000000),
                                     UINT64_C(0x3ff0000010000001),
                                     UINT64_C(0x3ff0020000000000),
                                     UINT64_C(0x3ff0020000000001),
                                     UINT64_C(0x3ff8000000000000),
                                     UINT64_C(0x4000000000000000),
                                     UINT64_C(0x4004000000000000),
                                     UINT64_C(0x406fe00000000000),
                                     UINT64_C(0x40dfffc000000000),
                                     UINT64_C(0x40effe0000000000),
                                     UINT64_C(0x40efffe000000000),
                                     UINT64_C(0x41dfffffffc00000),
                                     UINT64_C(0x41dfffffffdfffff),
                                     UINT64_C(0x41e0000000000000),
                                     UINT64_C(0x41e0000000100000),
                                     UINT64_C(0x41efffffffe00000),
                                     UINT64_C(0x41f0000000000000),
                                     UINT64_C(0x4330000000000000),
                                     UINT64_C(0x4330000000000001),
                                     UINT64_C(0x4340000000000000),
                                     UINT64_C(0x43dfffffffffffff),
                                     UINT64_C(0x43e0000000000000),
                                     UINT64_C(0x43efffffffffffff),
                                     UINT64_C(0x43f0000000000000),
                                     UINT64_C(0x47efffffe0000000),
                                     UINT64_C(0x47efffffefffffff),
                                     UINT64_C(0x47effffff0000000),
                                     UINT64_C(0x47f0000000000000),
                                     UINT64_C(0x7fefffffffffffff),
                                     UINT64_C(0x7ff0000000000000),
                                     UINT64_C(0x7ff0000000000001),
                                     UINT64_C(0x7ff8000000000000),
                                     UINT64_C(0x7ff8123456789abc)};
static const uint16_t edges_f16[] = {0x0000, 0x0001, 0x0002, 0x03ff, 0x0400, 0x0401, 0x1400, 0x2c00, 0x37ff, 0x3800,
                                     0x3801, 0x3bff, 0x3c00, 0x3c01, 0x3e00, 0x4000, 0x4100, 0x4200, 0x57f8, 0x5800,
                                     0x6400, 0x6401, 0x77ff, 0x7800, 0x7bfe, 0x7bff, 0x7c00, 0x7c01, 0x7e00, 0x7fff};
static const uint16_t edges_bf16[] = {0x0000, 0x0001, 0x007f, 0x0080, 0x0081, 0x3a80, 0x3effu, 0x3f00, 0x3f01,  0x3f7f,
                                      0x3f80, 0x3f81, 0x3fc0, 0x4000, 0x4020, 0x4300, 0x437f,  0x4b00, 0x4effu, 0x4f00,
                                      0x5f00, 0x7f00, 0x7f7e, 0x7f7f, 0x7f80, 0x7f81, 0x7fc0,  0x7fff};

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof *(array)))
#define EDGE(array, i) ((array)[(i) % COUNT(array)])

/* Number `i` of the interesting values of a type (wraps around); floats with both signs. */
static uint64_t edge_value(ptx_type type, uint32_t i) {
  uint64_t sign = i & 1;
  switch (type) {
  case PTX_F32: return EDGE(edges_f32, i >> 1) | sign << 31;
  case PTX_F64: return EDGE(edges_f64, i >> 1) | sign << 63;
  case PTX_F16: return EDGE(edges_f16, i >> 1) | sign << 15;
  case PTX_BF16: return EDGE(edges_bf16, i >> 1) | sign << 15;
  case PTX_F16X2: return edge_value(PTX_F16, i) | edge_value(PTX_F16, random_below(60)) << 16;
  case PTX_F32X2: return edge_value(PTX_F32, i) | edge_value(PTX_F32, random_below(120)) << 32;
  case PTX_BF16X2: return edge_value(PTX_BF16, i) | edge_value(PTX_BF16, random_below(56)) << 16;
  default: return EDGE(edges_int, i);
  }
}
static uint32_t edge_count(ptx_type type) {
  switch (type) {
  case PTX_F32:
  case PTX_F32X2: return 2 * COUNT(edges_f32);
  case PTX_F64: return 2 * COUNT(edges_f64);
  case PTX_F16:
  case PTX_F16X2: return 2 * COUNT(edges_f16);
  case PTX_BF16:
  case PTX_BF16X2: return 2 * COUNT(edges_bf16);
  default: return COUNT(edges_int);
  }
}

/* A random value: an edge, any bits, a small number, or for floats one of a moderate exponent. */
static uint64_t random_value(ptx_type type, uint64_t near) {
  uint64_t bits = random64();
  switch (random_below(6)) {
  case 0: return edge_value(type, (uint32_t)(bits >> 40));
  case 1:
    return type == PTX_F32   ? 0x3f800000u + (int32_t)((uint32_t)bits << 4 >> 4) - (1 << 27)
           : type == PTX_F64 ? UINT64_C(0x3fe0000000000000) + (bits >> 6) - (UINT64_C(1) << 57) + ((bits & 1) << 63)
                             : bits & 127;
  case 2: return near ^ (bits >> 63 << (type == PTX_F64 ? 63 : 31)) ^ (bits & 15);
  case 3: return bits >> (bits & 63);
  default: return bits;
  }
}

static uint64_t fit(uint64_t value, uint32_t bits) { return bits >= 64 ? value : value & ((UINT64_C(1) << bits) - 1); }

/* The type whose edges suit a source: the entry says how it is laid out, the instruction what it means. */
static ptx_type value_type(const form *f, int source) {
  ptx_type type = f->entry->src[source];
  if (f->instr.opcode == PTX_OP_CVT || f->instr.opcode == PTX_OP_SETP || f->instr.opcode == PTX_OP_SET)
    type = f->instr.types[f->instr.type_count - 1];
  if (f->instr.types[0] == PTX_F32X2) return PTX_F32X2;
  for (int i = 0; i < f->instr.type_count; i++)
    if (f->instr.types[i] == PTX_F16X2 || f->instr.types[i] == PTX_BF16X2)
      if (type == PTX_U32 || type == PTX_B32) type = f->instr.types[i];
  return type;
}

static void sample_fill(const form *f, sample *x, uint32_t batch) {
  memset(x, 0, sizeof *x);
  x->carry = (uint32_t)random64();
  for (int i = 0; i < 4; i++) x->pred[i] = (uint32_t)random64();
  for (int l = 0; l < 32; l++) {
    uint64_t number = batch * 32 + (uint32_t)l, near = random64();
    for (int i = 0; i < f->sources; i++) {
      ptx_type type = value_type(f, i);
      uint64_t value;
      if (f->sources == 1 && batch < 8 && number < edge_count(type)) value = edge_value(type, (uint32_t)number);
      else if (f->sources > 1 && random_below(3) == 0) value = edge_value(type, random_below(edge_count(type)));
      else value = random_value(type, near);
      near = value;
      x->s[i][l] = fit(value, f->source_bits[i]);
    }
  }
}

/* --- Running one handler. --- */

enum { SLOT = 256, SLOTS = 12, PREDS = SLOTS * SLOT, FRAME = PREDS + 64 };

typedef struct run_frame {
  _Alignas(64) unsigned char registers[FRAME], pool[5 * SLOT];
  unsigned char registers_before[FRAME];
  exec_warp warp;
  exec_instr in;
} run_frame;

static void put_slot(unsigned char *slot, const uint64_t values[32], uint32_t bits) {
  for (int l = 0; l < 32; l++)
    if (bits == 64) memcpy(slot + 8 * l, &values[l], 8);
    else memcpy(slot + 4 * l, &values[l], 4);
}
static uint64_t get_cell(const unsigned char *slot, int lane, uint32_t bits) {
  uint64_t value = 0;
  memcpy(&value, slot + (bits == 64 ? 8 : 4) * lane, bits == 64 ? 8 : 4);
  return value;
}

/* Where things stand: destination in slot 1, source i in slot 3 + 2 i, predicates behind the slots. */
typedef struct layout {
  int alias;          /* the source whose slot is the destination as well; -1 */
  uint32_t constants; /* bit i: source i is in the constant pool */
  uint32_t mask;
} layout;

static uint32_t pred_at(int i) { return PREDS + 4 + 8 * (uint32_t)i; }

static void frame_set(run_frame *b, const form *f, const sample *x, const exec_choice *choice, layout place) {
  for (size_t i = 0; i < sizeof b->registers; i += 8) {
    uint64_t bits = random64();
    memcpy(b->registers + i, &bits, 8);
  }
  memset(&b->in, 0, sizeof b->in);
  memset(&b->warp, 0, sizeof b->warp);
  b->in.run[0] = choice->run[0];
  b->in.run[1] = choice->run[1];
  b->in.aux = choice->aux;
  b->in.dst = choice->dst_type == PTX_PRED ? pred_at(0) : (place.alias >= 0 ? 3 + 2 * (uint32_t)place.alias : 1) * SLOT;
  b->in.dst2 = pred_at(1);
  for (int i = 0; i < choice->sources; i++) {
    if (choice->src_type[i] == PTX_PRED) {
      b->in.src[i] = pred_at(2 + i);
      memcpy(b->registers + b->in.src[i], &x->pred[i], 4);
      continue;
    }
    bool constant = place.constants >> i & 1;
    b->in.src[i] = constant ? (uint32_t)i * SLOT + 1 : (3 + 2 * (uint32_t)i) * SLOT;
    put_slot(constant ? b->pool + i * SLOT : b->registers + b->in.src[i], x->s[i], f->source_bits[i]);
  }
  b->warp.base[0] = b->registers;
  b->warp.base[1] = b->pool;
  b->warp.mask = place.mask;
  b->warp.carry = x->carry;
  for (int l = 0; l < 32; l++) b->warp.lanes[l] = place.mask >> l & 1 ? -1 : 0;
  memcpy(b->registers_before, b->registers, sizeof b->registers);
}

static void explain(const form *f, const sample *x, const char *isa_name, int lane, uint64_t got, uint64_t expected) {
  fail_msg(
      "%s on %s, lane %d: sources %#llx %#llx %#llx %#llx, predicates %u %u %u %u, carry %u: got %#llx, expected %#llx",
      f->name, isa_name, lane, (unsigned long long)x->s[0][lane], (unsigned long long)x->s[1][lane],
      (unsigned long long)x->s[2][lane], (unsigned long long)x->s[3][lane], x->pred[0] >> lane & 1,
      x->pred[1] >> lane & 1, x->pred[2] >> lane & 1, x->pred[3] >> lane & 1, x->carry >> lane & 1,
      (unsigned long long)got, (unsigned long long)expected);
}

static uint32_t read_pred(const run_frame *b, uint32_t at) {
  uint32_t value;
  memcpy(&value, b->registers + at, 4);
  return value;
}

static void check_mask(const form *f, const sample *x, const char *isa_name, uint32_t got, uint32_t expected) {
  if (got != expected) explain(f, x, isa_name, __builtin_ctz(got ^ expected), got, expected);
}

/* Compares what a handler left with what it should have: its results in the lanes of the mask, all else as before. */
static void frame_check(run_frame *b, const form *f, sample *x, const exec_choice *choice, layout place, const isa *set,
                        accept_fn accept, bool first) {
  unsigned char expected[FRAME];
  memcpy(expected, b->registers_before, FRAME);
  uint32_t before, live = place.mask;
  if (choice->dst_type == PTX_PRED) {
    memcpy(&before, b->registers_before + b->in.dst, 4);
    check_mask(f, x, set->name, read_pred(b, b->in.dst), (before & ~live) | (x->p & live));
    memcpy(expected + b->in.dst, b->registers + b->in.dst, 4);
  }
  if (choice->dst2_type == PTX_PRED) {
    memcpy(&before, b->registers_before + b->in.dst2, 4);
    check_mask(f, x, set->name, read_pred(b, b->in.dst2), (before & ~live) | (x->q & live));
    memcpy(expected + b->in.dst2, b->registers + b->in.dst2, 4);
  }
  check_mask(f, x, set->name, b->warp.carry, (x->carry & ~live) | (x->carry_out & live));
  uint32_t width = f->dst_bits == 64 ? 8 : 4;
  for (int l = 0; choice->dst_type != PTX_PRED && l < 32; l++) {
    uint64_t got = get_cell(b->registers + b->in.dst, l, f->dst_bits);
    if (live >> l & 1) {
      if (accept && first && !accept(f, x, l, got)) explain(f, x, set->name, l, got, x->d[l]);
      if (accept && first) x->d[l] = got; /* the other runs must give the same */
      if (got != x->d[l]) explain(f, x, set->name, l, got, x->d[l]);
      memcpy(expected + b->in.dst + width * (uint32_t)l, b->registers + b->in.dst + width * (uint32_t)l, width);
    }
  }
  for (uint32_t i = 0; i < FRAME; i++)
    if (b->registers[i] != expected[i])
      fail_msg("%s on %s changed byte %u of the frame (destination at %u, mask %#x)", f->name, set->name, i, b->in.dst,
               live);
}

static uint32_t some_mask(uint32_t batch) {
  switch (batch % 5) {
  case 0: return 1u << random_below(32);
  case 1: return 0;
  case 2: return UINT32_MAX;
  default: return (uint32_t)random64();
  }
}

/* Every eighth batch has sources in the constant pool, where all lanes are the same. */
static bool has_constants(uint32_t batch) { return batch % 8 == 7; }

/* One sample on everything. */
static void sample_run(form *f, sample *x, uint32_t batch, accept_fn accept) {
  static run_frame b;
  layout place = {.alias = -1};
  if (has_constants(batch)) place.constants = random_below(16);
  else if (batch % 4 >= 2 && f->sources > 0) {
    place.alias = (int)random_below((uint32_t)f->sources);
    uint32_t source = f->source_bits[place.alias] == 64 ? 64 : 32, dst = f->dst_bits == 64 ? 64 : 32;
    if (source != dst || f->entry->src[place.alias] == PTX_PRED) place.alias = -1;
  }
  for (int i = 0; i < isa_count; i++) {
    exec_choice choice;
    ff_error error;
    if (isas[i].choose(&f->func, &f->instr, &choice, &error) != FF_OK)
      fail_msg("%s on %s: %s", f->name, isas[i].name, error.message);
    for (int masked = 0; masked < 2; masked++) {
      place.mask = masked ? some_mask(batch + (uint32_t)i) : UINT32_MAX;
      frame_set(&b, f, x, &choice, place);
      b.in.run[masked](&b.warp, &b.in);
      frame_check(&b, f, x, &choice, place, &isas[i], accept, i == 0 && !masked);
    }
  }
}

static void make_uniform(sample *x) {
  for (int i = 0; i < 4; i++)
    for (int l = 1; l < 32; l++) x->s[i][l] = x->s[i][0];
}

static void reference_lanes(const form *f, sample *x, reference_fn reference) {
  x->p = x->q = 0;
  x->carry_out = 0;
  for (int l = 0; l < 32; l++) reference(f, x, l);
}

static inline void form_check(form *f, uint32_t batches, reference_fn reference, accept_fn accept) {
  sample x;
  for (uint32_t batch = 0; batch < batches; batch++) {
    sample_fill(f, &x, batch);
    if (has_constants(batch)) make_uniform(&x);
    reference_lanes(f, &x, reference);
    sample_run(f, &x, batch, accept);
  }
}

/* --- All forms. --- */

typedef void (*form_fn)(form *f, void *context);

/* Calls `visit` for every name of every table that `wanted` accepts; says how many there were. */
static inline int each_form(bool (*wanted)(const form *f), form_fn visit, void *context) {
  int count = 0;
  for (int t = 0; isas[0].set->tables[t]; t++)
    for (const ops_entry *entry = isas[0].set->tables[t]; entry->names; entry++) {
      const char *name = entry->names;
      while (*name) {
        size_t length = strcspn(name, " ");
        form f;
        form_make(&f, name, length, entry);
        if (wanted(&f)) {
          visit(&f, context);
          count++;
        }
        name += length + strspn(name + length, " ");
      }
    }
  return count;
}

#endif
