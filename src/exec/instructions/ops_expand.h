/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the handlers and the table of one family. The includer defines OPS_DEF (the family's .def file) and OPS_TABLE
 * (the table's name), and OPS_MASKED_AFTER where form `some` may take longer (ops_lane.h); no include guard: once per
 * family file.
 *
 * The words of a .def file, D A B C E being kinds (ops_lane.h) and `expr` an expression over a, b, c, e:
 *   OPn(names, fn, D, A.., expr)             a handler with n sources and its entry
 *   TESTn(names, fn, A.., expr)              the same, the result being a predicate
 *   FNn(fn, D, A.., expr)                    the handler alone
 *   FNRn(fn, D, A.., expr)                   the handler, under the rounding mode that the entry's aux names
 *   FNX(maker, fn, ...)                      a handler from the family's own maker(form, fn, ...)
 *   FNB(maker, fn, ...)                      the same from maker(fn, ...), which makes one function for both forms
 *   ROWn(names, fn, aux, D, A..)             an entry alone: one handler may have several
 *   ROW(names, fn, aux, dst, dst2, src...)   an entry with ptx_types instead of kinds */
#include "exec/instructions/ops_lane.h"

#define FNB(maker, fn, ...) maker(fn, __VA_ARGS__)
#define FNX(maker, fn, ...) maker(all, fn, __VA_ARGS__) maker(some, fn, __VA_ARGS__)
#ifdef OPS_MASKED_AFTER
#define FND(maker, fn, before, after, D, ...) \
  __attribute__((noinline)) maker(all, fn, before, after, D, __VA_ARGS__) OPS_AFTER(fn, D)
#else
#define FND FNX
#endif
#define FN1(fn, D, A, expr) FND(OPS_FORM1, fn, (void)0, (void)0, D, A, expr)
#define FN2(fn, D, A, B, expr) FND(OPS_FORM2, fn, (void)0, (void)0, D, A, B, expr)
#define FN3(fn, D, A, B, C, expr) FND(OPS_FORM3, fn, (void)0, (void)0, D, A, B, C, expr)
#define FN4(fn, D, A, B, C, E, expr) FND(OPS_FORM4, fn, (void)0, (void)0, D, A, B, C, E, expr)
#define FNR1(fn, D, A, expr) FND(OPS_FORM1, fn, OPS_ROUND_ON, OPS_ROUND_OFF, D, A, expr)
#define FNR2(fn, D, A, B, expr) FND(OPS_FORM2, fn, OPS_ROUND_ON, OPS_ROUND_OFF, D, A, B, expr)
#define ROW1(names, fn, aux, D, A)
#define ROW2(names, fn, aux, D, A, B)
#define ROW3(names, fn, aux, D, A, B, C)
#define ROW4(names, fn, aux, D, A, B, C, E)
#define ROW(names, fn, aux, ...)
#define OP1(names, fn, D, A, expr) FN1(fn, D, A, expr)
#define OP2(names, fn, D, A, B, expr) FN2(fn, D, A, B, expr)
#define OP3(names, fn, D, A, B, C, expr) FN3(fn, D, A, B, C, expr)
#define OP4(names, fn, D, A, B, C, E, expr) FN4(fn, D, A, B, C, E, expr)
#define TEST1(names, fn, A, expr) FNB(OPS_TEST1, fn, A, expr)
#define TEST2(names, fn, A, B, expr) FNB(OPS_TEST2, fn, A, B, expr)
#include OPS_DEF
#undef FNB
#undef FND
#undef FNX
#undef FN1
#undef FN2
#undef FN3
#undef FN4
#undef FNR1
#undef FNR2
#undef ROW1
#undef ROW2
#undef ROW3
#undef ROW4
#undef ROW
#undef OP1
#undef OP2
#undef OP3
#undef OP4
#undef TEST1
#undef TEST2

#define FNB(maker, fn, ...)
#define FNX(maker, fn, ...)
#define FN1(fn, D, A, expr)
#define FN2(fn, D, A, B, expr)
#define FN3(fn, D, A, B, C, expr)
#define FN4(fn, D, A, B, C, E, expr)
#define FNR1(fn, D, A, expr)
#define FNR2(fn, D, A, B, expr)
#define ENTRY(names, fn, aux, dst, dst2, src, kinds) \
  {names, {fn##_all, fn##_some}, dst, dst2, src, (uint32_t)(aux) << OPS_AUX_SHIFT, kinds},
#define LIST(...) \
  { __VA_ARGS__ }
#define ROW(names, fn, aux, dst, dst2, ...) ENTRY(names, fn, aux, dst, dst2, LIST(__VA_ARGS__), {OPS_K_none})
#define ROW1(names, fn, aux, D, A) \
  ENTRY(names, fn, aux, TYPE_##D, PTX_TYPE_NONE, {TYPE_##A}, LIST(OPS_K_##D, OPS_K_##A))
#define ROW2(names, fn, aux, D, A, B) \
  ENTRY(names, fn, aux, TYPE_##D, PTX_TYPE_NONE, LIST(TYPE_##A, TYPE_##B), LIST(OPS_K_##D, OPS_K_##A, OPS_K_##B))
#define ROW3(names, fn, aux, D, A, B, C)                                             \
  ENTRY(names, fn, aux, TYPE_##D, PTX_TYPE_NONE, LIST(TYPE_##A, TYPE_##B, TYPE_##C), \
        LIST(OPS_K_##D, OPS_K_##A, OPS_K_##B, OPS_K_##C))
#define ROW4(names, fn, aux, D, A, B, C, E)                                                    \
  ENTRY(names, fn, aux, TYPE_##D, PTX_TYPE_NONE, LIST(TYPE_##A, TYPE_##B, TYPE_##C, TYPE_##E), \
        LIST(OPS_K_##D, OPS_K_##A, OPS_K_##B, OPS_K_##C, OPS_K_##E))
#define OP1(names, fn, D, A, expr) ROW1(names, fn, 0, D, A)
#define OP2(names, fn, D, A, B, expr) ROW2(names, fn, 0, D, A, B)
#define OP3(names, fn, D, A, B, C, expr) ROW3(names, fn, 0, D, A, B, C)
#define OP4(names, fn, D, A, B, C, E, expr) ROW4(names, fn, 0, D, A, B, C, E)
#define TEST1(names, fn, A, expr) ROW1(names, fn, 0, pred, A)
#define TEST2(names, fn, A, B, expr) ROW2(names, fn, 0, pred, A, B)
const ops_entry EXEC_NAME(OPS_TABLE)[] = {
#include OPS_DEF
    {NULL, {NULL, NULL}, PTX_TYPE_NONE, PTX_TYPE_NONE, {PTX_TYPE_NONE}, 0, {0}},
};
