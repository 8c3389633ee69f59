/* SPDX-License-Identifier: Apache-2.0 */
/* Random kernels for the tests of the range analysis: integer arithmetic of all kinds on indices and parameters,
 * branches, loops of many forms, and accesses guarded so that they hit their buffer. k(.u64 a, .u64 b, .u32 n, .u32 m);
 * a and b have RANDOM_WORDS words each. */
#ifndef FF_TESTS_RANDOM_KERNEL_H
#define FF_TESTS_RANDOM_KERNEL_H

#include <stdint.h>

#include "base/text.h"

#define RANDOM_WORDS 1024u

typedef struct random_kernel {
  uint64_t state;
  ff_text text;
  uint32_t labels, budget, depth; /* budget: statements left */
  bool alone; /* blocks see nothing of each other: a is only read, b only written, at the end: a word per thread */
} random_kernel;

static inline uint32_t pick(random_kernel *k, uint32_t n) {
  k->state ^= k->state << 13;
  k->state ^= k->state >> 7;
  k->state ^= k->state << 17;
  return (uint32_t)(k->state * UINT64_C(0x2545f4914f6cdd1d) >> 40) % n;
}

#define PUT(k, ...) ff_text_add(&(k)->text, __VA_ARGS__)
#define PICK(k, list) (list)[pick(k, sizeof(list) / sizeof *(list))]

enum { RANDOM_REGS = 14, RANDOM_PREDS = 5 };

static inline int random_constant(random_kernel *k) {
  static const int constants[] = {0,    1,  2,  3,  4,   5,   7,     8,          15,          16,
                                  17,   31, 32, 33, 63,  64,  100,   255,        256,         1023,
                                  1024, -1, -2, -4, -16, -31, 65535, 2147483647, -2147483647, 3000};
  return PICK(k, constants);
}

static inline void random_source(random_kernel *k, char *out) { /* room for 16 */
  if (pick(k, 3)) snprintf(out, 16, "%%r%u", pick(k, RANDOM_REGS));
  else snprintf(out, 16, "%d", random_constant(k));
}

static inline void random_compare(random_kernel *k, uint32_t p) {
  static const char *const signed_words[] = {"eq", "ne", "lt", "le", "gt", "ge"}, *const unsigned_words[] = {
                                                                                      "lo", "ls", "hi",
                                                                                      "hs", "eq", "ne"};
  char b[16], c[16];
  random_source(k, b);
  random_source(k, c);
  bool is_signed = pick(k, 2);
  const char *word = is_signed || pick(k, 2) ? PICK(k, signed_words) : PICK(k, unsigned_words),
             *type = is_signed ? "s32" : "u32";
  switch (pick(k, 5)) {
  case 0:
    PUT(k, "setp.%s.and.%s %%p%u, %%r%u, %s, %s%%p%u;\n", word, type, p, pick(k, RANDOM_REGS), b, pick(k, 2) ? "!" : "",
        pick(k, RANDOM_PREDS));
    break;
  case 1:
    PUT(k, "setp.%s.or.%s %%p%u, %%r%u, %s, %%p%u;\n", word, type, p, pick(k, RANDOM_REGS), b, pick(k, RANDOM_PREDS));
    break;
  case 2:
    PUT(k, "setp.%s.%s %%p%u|%%p%u, %%r%u, %s;\n", word, type, p, (p + 1) % RANDOM_PREDS, pick(k, RANDOM_REGS), b);
    break;
  default: PUT(k, "setp.%s.%s %%p%u, %%r%u, %s;\n", word, type, p, pick(k, RANDOM_REGS), b);
  }
}

static inline void random_operation(random_kernel *k) {
  static const char *const plain[] = {
      "add.s32", "sub.s32",    "add.u32",    "sub.u32",      "mul.lo.s32",   "mul.lo.u32", "min.s32", "max.s32",
      "min.u32", "max.u32",    "and.b32",    "or.b32",       "xor.b32",      "div.s32",    "div.u32", "rem.s32",
      "rem.u32", "mul.hi.s32", "mul.hi.u32", "mul24.lo.s32", "mul24.lo.u32", "add.sat.s32"};
  static const char *const shifts[] = {"shl.b32", "shr.s32", "shr.u32", "shr.b32"};
  static const char *const unary[] = {"neg.s32",    "not.b32",         "abs.s32",    "mov.u32",
                                      "mov.b32",    "popc.b32",        "clz.b32",    "cvt.u32.u16",
                                      "cvt.s32.s8", "cvt.sat.u32.s32", "cvt.u32.u32"};
  char b[16], c[16];
  uint32_t d = pick(k, RANDOM_REGS), a = pick(k, RANDOM_REGS);
  random_source(k, b);
  random_source(k, c);
  bool guarded = !pick(k, 8);
  if (guarded) PUT(k, "@%s%%p%u ", pick(k, 2) ? "!" : "", pick(k, RANDOM_PREDS));
  switch (pick(k, guarded ? 12 : 14)) { /* the last two are in braces */
  case 0:
  case 1:
  case 2:
  case 3: {
    const char *op = PICK(k, plain);
    if ((!strncmp(op, "div", 3) || !strncmp(op, "rem", 3)) && b[0] != '%' && !strcmp(b, "0")) strcpy(b, "3");
    PUT(k, "%s %%r%u, %%r%u, %s;\n", op, d, a, b);
    break;
  }
  case 4:
  case 5: PUT(k, "add.s32 %%r%u, %%r%u, %d;\n", d, a, random_constant(k)); break;
  case 6: PUT(k, "mad.lo.s32 %%r%u, %%r%u, %s, %s;\n", d, a, b, c); break;
  case 7: PUT(k, "%s %%r%u, %%r%u, %u;\n", PICK(k, shifts), d, a, pick(k, 34)); break;
  case 8: {
    const char *op = PICK(k, unary);
    if (!strncmp(op, "cvt.u32.u16", 11) || !strncmp(op, "cvt.s32.s8", 10)) PUT(k, "%s %%r%u, %%r%u;\n", op, d, a);
    else PUT(k, "%s %%r%u, %%r%u;\n", op, d, a);
    break;
  }
  case 9: PUT(k, "selp.b32 %%r%u, %s, %s, %%p%u;\n", d, b, c, pick(k, RANDOM_PREDS)); break;
  case 10: PUT(k, "%s.u32 %%r%u, %%r%u, %u, %u;\n", "bfe", d, a, pick(k, 33), pick(k, 33)); break;
  case 11: PUT(k, "and.b32 %%r%u, %%r%u, %d;\n", d, a, random_constant(k)); break;
  case 12: /* by way of 64 bits */
    PUT(k, "{ .reg .b64 t, u; cvt.%s t, %%r%u; cvt.%s u, %%r%u; %s t, t, u; cvt.u32.u64 %%r%u, t; }\n",
        pick(k, 2) ? "s64.s32" : "u64.u32", a, pick(k, 2) ? "s64.s32" : "u64.u32", pick(k, RANDOM_REGS),
        (const char *[]){"add.s64", "sub.s64", "mul.lo.s64", "and.b64", "or.b64", "max.s64", "min.u64"}[pick(k, 7)], d);
    break;
  default:
    PUT(k, "{ .reg .b64 t; mul.wide.%s t, %%r%u, %s; shr.%s t, t, %u; cvt.u32.u64 %%r%u, t; }\n",
        pick(k, 2) ? "s32" : "u32", a, b, pick(k, 2) ? "s64" : "u64", pick(k, 40), d);
  }
}

/* An access of element r of buffer a or b, if r is in bounds. */
static inline void random_access(random_kernel *k) {
  uint32_t r = pick(k, RANDOM_REGS), words = pick(k, 3) ? 1 : 2, label = k->labels++;
  const char *buffer = k->alone || pick(k, 2) ? "a" : "b";
  bool branch = pick(k, 2);
  PUT(k, "{ .reg .pred in, lo; .reg .b64 t; .reg .b32 v, w;\n");
  if (pick(k, 2)) PUT(k, "setp.lt.u32 in, %%r%u, %u;\n", r, RANDOM_WORDS / words);
  else
    PUT(k, "setp.lt.s32 lo, %%r%u, %u; setp.ge.s32 in, %%r%u, 0; and.pred in, in, lo;\n", r, RANDOM_WORDS / words, r);
  if (branch) PUT(k, "@!in bra L%u;\n", label);
  if (pick(k, 2)) PUT(k, "mul.wide.%s t, %%r%u, %u; ", pick(k, 2) ? "u32" : "s32", r, 4 * words);
  else PUT(k, "cvt.u64.u32 t, %%r%u; shl.b64 t, t, %u; ", r, words + 1);
  PUT(k, "add.s64 t, %%%s, t;\n%s", buffer, branch ? "" : "@in ");
  switch (pick(k, k->alone ? 3 : 5)) {
  case 0:
  case 1:
    if (words == 1) PUT(k, "ld.global.u32 v, [t];\n");
    else PUT(k, "ld.global.v2.u32 {v, w}, [t];\n");
    PUT(k, "%smov.u32 %%r%u, v;\n", branch ? "" : "@in ", pick(k, RANDOM_REGS));
    break;
  case 2: PUT(k, "ld.global.u8 %%r%u, [t+%u];\n", pick(k, RANDOM_REGS), pick(k, 4)); break;
  case 3:
    if (words == 1) PUT(k, "st.global.u32 [t], %%r%u;\n", pick(k, RANDOM_REGS));
    else PUT(k, "st.global.v2.u32 [t], {%%r%u, 5};\n", pick(k, RANDOM_REGS));
    break;
  default: PUT(k, "atom.global.add.u32 v, [t], 1;\n");
  }
  PUT(k, "}\n");
  if (branch) PUT(k, "L%u:\n", label);
}

static inline void random_statement(random_kernel *k);

static inline void random_statements(random_kernel *k, uint32_t most) {
  for (uint32_t n = 1 + pick(k, most); n && k->budget; n--) random_statement(k);
}

/* Counts %lN in one of many ways; sometimes other ways out. A register of the program is stepped along with it. */
static inline void random_loop(random_kernel *k) {
  static const char *const conditions[] = {"lt.s32", "ne.s32", "le.s32", "lo.u32",
                                           "ne.u32", "gt.s32", "ge.s32", "hi.u32"};
  uint32_t label = k->labels++, r = pick(k, RANDOM_REGS), form = pick(k, 8), c = pick(k, 8);
  int step = c >= 5 ? -(int)(1 + pick(k, 3)) : (int)(1 + pick(k, 3));
  char start[16], end[16];
  random_source(k, start);
  random_source(k, end);
  if (pick(k, 2)) snprintf(c >= 5 ? end : start, 16, "%d", (int)pick(k, 5));
  if (pick(k, 2)) snprintf(c >= 5 ? start : end, 16, "%u", pick(k, 40));
  PUT(k, "{ .reg .b32 c, e, f; .reg .pred q;\nmov.u32 c, %s; mov.u32 e, %s; mov.u32 f, 0;\nL%u:\n", start, end, label);
  if (form & 1) PUT(k, "setp.%s q, c, e; @!q bra X%u;\n", conditions[c], label); /* at the top, else at the bottom */
  if (pick(k, 2)) PUT(k, "mov.u32 %%r%u, c;\n", pick(k, RANDOM_REGS));
  k->depth++;
  random_statements(k, 3);
  k->depth--;
  if (pick(k, 2)) PUT(k, "add.s32 %%r%u, %%r%u, %d;\n", r, r, random_constant(k));
  if (!pick(k, 3)) PUT(k, "@%%p%u bra X%u;\n", pick(k, RANDOM_PREDS), label);
  if (!pick(k, 4)) PUT(k, "@%%p%u add.s32 c, c, %d;\n", pick(k, RANDOM_PREDS), step);
  PUT(k, "add.s32 c, c, %d;\n", step);
  if (pick(k, 2)) PUT(k, "add.s32 f, f, 1; setp.gt.s32 q, f, 20; @q bra X%u;\n", label);
  if (form & 1) PUT(k, "bra L%u;\n", label);
  else PUT(k, "setp.%s q, c, e; @q bra L%u;\n", conditions[c], label);
  PUT(k, "X%u: }\n", label);
}

static inline void random_if(random_kernel *k) {
  uint32_t label = k->labels++, p = pick(k, RANDOM_PREDS);
  if (pick(k, 2)) random_compare(k, p);
  PUT(k, "@%s%%p%u bra E%u;\n", pick(k, 2) ? "!" : "", p, label);
  k->depth++;
  random_statements(k, 4);
  if (pick(k, 2)) {
    PUT(k, "bra Y%u;\nE%u:\n", label, label);
    random_statements(k, 4);
    PUT(k, "Y%u:\n", label);
  } else {
    PUT(k, "E%u:\n", label);
  }
  k->depth--;
}

static inline void random_statement(random_kernel *k) {
  k->budget--;
  switch (pick(k, 12)) {
  case 0:
    if (k->depth < 3) random_if(k);
    break;
  case 1:
    if (k->depth < 2) random_loop(k);
    break;
  case 2:
  case 3:
  case 4: random_access(k); break;
  case 5: random_compare(k, pick(k, RANDOM_PREDS)); break;
  default: random_operation(k);
  }
}

/* The text is the caller's: free(text.chars). */
static inline ff_text random_kernel_of(uint64_t seed, bool alone) {
  random_kernel k = {.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1, .budget = 40, .alone = alone};
  for (int i = 0; i < 4; i++) pick(&k, 2);
  PUT(&k, "// seed %llu\n", (unsigned long long)seed);
  PUT(&k,
      ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u32 pn, .param .u32 pm)\n{\n"
      ".reg .b64 %%a, %%b; .reg .b32 %%r<%d>; .reg .pred %%p<%d>;\n"
      "ld.param.u64 %%a, [pa]; ld.param.u64 %%b, [pb]; ld.param.u32 %%r4, [pn]; ld.param.u32 %%r5, [pm];\n"
      "mov.u32 %%r0, %%tid.x; mov.u32 %%r1, %%ctaid.x; mov.u32 %%r2, %%ntid.x; mad.lo.s32 %%r3, %%r1, %%r2, %%r0; mov.u32 %%r6, %%ctaid.y; mov.u32 %%r7, %%tid.y;\n"
      "mov.u32 %%r8, %%nctaid.x; mad.lo.s32 %%r9, %%r6, %%r5, %%r3; mov.u32 %%r10, 0; shl.b32 %%r11, %%r1, 4; mov.u32 %%r12, %%laneid; mov.u32 %%r13, 77;\n",
      (int)RANDOM_REGS, (int)RANDOM_PREDS);
  for (uint32_t p = 0; p < RANDOM_PREDS; p++) random_compare(&k, p);
  random_statements(&k, 30);
  while (k.budget > 30) random_statement(&k);
  random_access(&k);
  if (alone) {
    PUT(&k, "{ .reg .b32 t<9>; .reg .b64 at; mov.u32 t0, 0;\n");
    for (int r = 0; r < RANDOM_REGS; r++) PUT(&k, "mad.lo.u32 t0, t0, 31, %%r%d;\n", r);
    PUT(&k,
        "mov.u32 t1, %%ctaid.y; mov.u32 t2, %%nctaid.x; mov.u32 t3, %%ctaid.x; mad.lo.u32 t1, t1, t2, t3; mov.u32 t4, %%ntid.y; mov.u32 t5, %%tid.y; mad.lo.u32 t1, t1, t4, t5;\n"
        "mov.u32 t6, %%ntid.x; mov.u32 t7, %%tid.x; mad.lo.u32 t1, t1, t6, t7; mul.wide.u32 at, t1, 4; add.u64 at, at, %%b; st.global.u32 [at], t0; }\n");
  }
  PUT(&k, "ret;\n}\n");
  return k.text;
}

static inline ff_text random_kernel_text(uint64_t seed) { return random_kernel_of(seed, false); }

#endif
