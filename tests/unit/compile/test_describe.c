/* SPDX-License-Identifier: Apache-2.0 */
/* What a request says of each instruction, against what its handler does: it writes no byte of the frame that is not
 * among its writes, and what it writes depends on no byte that is not among its reads. Every computing form, in both
 * forms of its handler, on every instruction set; video instructions and the decoder's own moves by their
 * statements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compile/kernel_describe.h"
#include "compiled/forms.h"
#include "exec/launch/native.h"
#include "unit/share.h"

typedef struct described { /* one kernel, its decoded code and the request */
  ptx_module *module, *linked;
  exec_program *program;
  exec_kernel *kernel;
  const exec_code *code;
  native_request *request;
  const native_function *functions;
  const native_instr *instrs;
  const native_operand *operands;
} described;

static exec_memory *memory;
static uint64_t state = 11;

static described describe(const char *text, const char *isa) {
  described d = {0};
  ff_error error = {0};
  uint32_t bytes;
  if (ptx_module_parse("test.ptx", text, strlen(text), &d.module, &error) ||
      ptx_link(&d.module, 1, &d.linked, &error) || exec_program_create(d.linked, memory, &d.program, &error) ||
      exec_program_kernel(d.program, "k", &d.kernel, &error) ||
      exec_kernel_code(d.kernel, exec_isa_find(isa), &d.code, &error))
    fail_msg("%s\n%s", error.message, text);
  d.request = native_describe(d.kernel, d.code, exec_isa_find(isa), 0, false, &bytes);
  assert_non_null(d.request);
  assert_int_equal(d.request->bytes, bytes);
  d.functions = (const native_function *)(const void *)(d.request + 1);
  d.instrs = (const native_instr *)(const void *)(d.functions + d.request->function_count);
  d.operands = (const native_operand *)(const void *)(d.instrs + d.request->instr_count);
  return d;
}

static void forget(described *d) {
  free(d->request);
  exec_program_free(d->program);
  ptx_module_free(d->linked);
  ptx_module_free(d->module);
}

/* ---- running one handler on a frame ---- */

static uint32_t operand_bytes(const native_operand *o) { return o->bytes ? o->bytes * EXEC_LANES : 4; }

static void mark(unsigned char *bytes, const native_operand *o, uint32_t count) {
  for (uint32_t k = 0; k < count; k++)
    if (!(o[k].offset & 1)) memset(bytes + o[k].offset, 1, operand_bytes(&o[k]));
}

static void fill(unsigned char *frame, const unsigned char *except, uint32_t bytes) {
  for (uint32_t n = 0; n < bytes; n++)
    if (!except || !except[n]) frame[n] = (unsigned char)program_pick(&state, 256);
}

static void execute(const exec_function *f, const exec_instr *i, unsigned char *frame, uint32_t lanes) {
  static core_warp *w;
  if (!w) w = ff_alloc_aligned(64, sizeof *w);
  memset(w, 0, sizeof *w);
  w->x.base[0] = frame;
  w->x.base[1] = f->constants;
  w->active = w->x.mask = lanes;
  w->x.carry = 0x5a5a1234;
  for (uint32_t l = 0; l < EXEC_LANES; l++) w->x.lanes[l] = -(int32_t)(lanes >> l & 1);
  i->run[lanes != UINT32_MAX](&w->x, i);
}

/* One decoded instruction, for those lanes. */
static void check_instr(const described *d, const char *what, uint32_t number, uint32_t lanes) {
  const exec_function *f = d->code->functions[0];
  const native_instr *n = &d->instrs[number];
  const native_operand *reads = d->operands + n->operands, *writes = reads + n->read_count;
  uint32_t bytes = f->frame_bytes;
  unsigned char *before = ff_alloc_aligned(64, bytes), *after = ff_alloc_aligned(64, bytes),
                *other = ff_alloc_aligned(64, bytes), *marks = ff_alloc(bytes);
  fill(before, NULL, bytes);
  memcpy(after, before, bytes);
  execute(f, &f->code[number], after, lanes);
  mark(marks, writes, n->write_count);
  for (uint32_t b = 0; b < bytes; b++)
    if (!marks[b] && before[b] != after[b])
      fail_msg("%s: instruction %u writes byte %u of the frame, which it is not said to", what, number, b);
  memcpy(other, before, bytes); /* what is not read may be anything; what is written in part keeps the rest */
  if (lanes != UINT32_MAX) mark(marks, reads, n->read_count);
  else {
    memset(marks, 0, bytes);
    mark(marks, reads, n->read_count);
  }
  fill(other, marks, bytes);
  execute(f, &f->code[number], other, lanes);
  memset(marks, 0, bytes);
  mark(marks, writes, n->write_count);
  for (uint32_t b = 0; b < bytes; b++)
    if (marks[b] && other[b] != after[b])
      fail_msg("%s: what instruction %u writes depends on what it is not said to read", what, number);
  free(before);
  free(after);
  free(other);
  free(marks);
}

/* Places of the registers that start as zero (predicates are among them) are never seen under two widths. */
static void check_places(const described *d, const char *what) {
  uint32_t zero = d->code->functions[0]->zero_bytes;
  for (uint32_t a = 0; a < d->request->operand_count; a++)
    for (uint32_t b = 0; b < a; b++) {
      const native_operand *x = &d->operands[a], *y = &d->operands[b];
      if ((x->offset & 1) || (y->offset & 1) || x->offset >= zero || (x->offset == y->offset && x->bytes == y->bytes))
        continue;
      if (x->offset < y->offset + operand_bytes(y) && y->offset < x->offset + operand_bytes(x))
        fail_msg("%s: operands at %u (%u bytes) and at %u (%u) are in each other's place", what, x->offset, x->bytes,
                 y->offset, y->bytes);
    }
}

/* %d comes first, so that what is said to be at offset 0 without being meant is seen. */
static void check_statement(const char *statement, const char *isa) {
  char text[2048];
  snprintf(
      text, sizeof text,
      ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n.reg .b64 %%d<8>; .reg .b16 %%h<8>; .reg .b32 %%r<8>; .reg .pred %%p<8>; .reg .b128 %%w<4>;\n"
      "add.u64 %%d1, %%d0, %%d2;\nadd.u64 %%d1, %%d1, %%d7;\n%s\nret;\n}\n",
      statement);
  described d = describe(text, isa);
  check_places(&d, statement);
  for (uint32_t n = 0; n < d.functions[0].count; n++) {
    if (d.instrs[n].op == NATIVE_EXIT || d.instrs[n].flow != EXEC_FLOW_NONE || d.instrs[n].observes) continue;
    check_instr(&d, statement, n, UINT32_MAX);
    check_instr(&d, statement, n, 0x8001f0f3);
  }
  forget(&d);
}

static const char *const letters[] = {"", "%p", "%h", "%r", "%d"};

static void check_form(const program_form *form, const char *isa) {
  static const char *const how[] = {"and", "or", "xor"};
  char statement[256], rest[128] = "";
  int length = 0;
  for (uint32_t s = 0; s < form->sources; s++)
    length += snprintf(rest + length, sizeof rest - (size_t)length, ", %s%u", letters[form->src[s]], s + 2);
  snprintf(statement, sizeof statement, "%s %s1%s%s;", form->text, letters[form->dst], rest,
           form->lop3 ? ", 0x5c" : "");
  check_statement(statement, isa);
  if (!form->compares && !form->lop3) return;
  const char *behind = form->lop3 ? form->text + 4 : strchr(form->text + 5, '.');
  for (int h = 0; h < 3; h++) {
    snprintf(statement, sizeof statement, "%.*s.%s%s %s1|%%p6%s%s, %s%%p7;", (int)(behind - form->text), form->text,
             how[h], behind, letters[form->dst], rest, form->lop3 ? ", 0x5c" : "", h ? "" : "!");
    check_statement(statement, isa);
  }
}

static void every_form(void **unused) {
  program_forms *forms = program_forms_make();
  assert_true(forms->items.count > 1000);
  uint32_t turn = 0;
  for (const char *const *isa = exec_isas(); *isa; isa++, turn++)
    for (size_t n = turn % one_in(2); n < forms->items.count; n += one_in(2)) check_form(&forms->items.items[n], *isa);
  program_forms_free(forms);
}

static void video(void **unused) {
  for (uint32_t n = 0; n < fewer(400, 4); n++) {
    char name[80], selectors[3][8], statement[256];
    bool third = program_video(&state, name, sizeof name, selectors);
    snprintf(statement, sizeof statement, "%s %%r1%s, %%r2%s, %%r3%s%s;", name, selectors[0], selectors[1],
             selectors[2], third ? ", %r4" : "");
    check_statement(statement, NULL);
  }
}

static void moves(void **unused) {
  static const char *const statements[] = {"mov.b64 %d1, {%r2, %r3};",
                                           "mov.b64 {%r2, %r3}, %d1;",
                                           "mov.b32 %r1, {%h2, %h3};",
                                           "mov.b32 {%h2, %h3}, %r1;",
                                           "mov.b64 %d1, {%h2, %h3, %h4, %h5};",
                                           "mov.b64 {%h2, %h3, %h4, %h5}, %d1;",
                                           "mov.b128 %w1, {%d2, %d3};",
                                           "mov.b128 {%d2, %d3}, %w1;",
                                           "mov.b128 %w1, {%r2, %r3, %r4, %r5};",
                                           "mov.b128 {%r2, %r3, %r4, %r5}, %w1;",
                                           "mov.b128 %w1, %w2;",
                                           "mov.b64 {_, %r3}, %d1;",
                                           "activemask.b32 %r1;",
                                           "add.u32 %r1, %r2, %d3;",
                                           "cvt.u32.u64 %r1, %d2;",
                                           "mov.pred %p1, %p2;"};
  for (size_t n = 0; n < sizeof statements / sizeof *statements; n++) check_statement(statements[n], NULL);
  check_statement(
      "{ .param .b32 a; .param .align 8 .b8 s[16]; st.param.b32 [a], %r1; st.param.b64 [s], %d1; st.param.b16 [s+8], %h1; st.param.b8 [s+11], %h2; ld.param.b32 %r2, [a];\n"
      "ld.param.b64 %d2, [s]; ld.param.s16 %r3, [s+8]; ld.param.s8 %d3, [s+11]; ld.param.u8 %h3, [s+11]; ld.param.s8 %h4, [s+8]; }",
      NULL);
}

/* Where variables lie, no request says: an image serves every address. */
static void addresses(void **unused) {
  static const char text[] =
      ".version 8.0\n.target sm_75\n.address_size 64\n.const .align 4 .u32 table[4] = {10, 20, 30, 40};\n"
      ".global .align 4 .u32 there[4];\n.visible .entry k(.param .align 4 .b8 given[16])\n{\n"
      ".reg .b64 %d<9>; .reg .b32 %r<9>;\n"
      "mov.b32 %r1, table; ld.const.u32 %r2, [%r1+4]; cvt.u64.u32 %d1, %r1; cvta.const.u64 %d2, %d1; ld.u32 %r3, [%d2];"
      "mov.b32 %r4, given; ld.param.u32 %r5, [%r4]; mov.b32 %r6, there; add.u32 %r2, %r2, %r6; add.u32 %r2, %r2, %r5;"
      "mov.u64 %d3, there; add.u32 %r2, %r2, %r3; st.global.u32 [%d3], %r2; ret;\n}\n";
  described one = describe(text, NULL), other = describe(text, NULL);
  uint64_t here, there, bytes;
  assert_int_equal(exec_program_variable(one.program, "table", &here, &bytes, NULL), FF_OK);
  assert_int_equal(exec_program_variable(other.program, "table", &there, &bytes, NULL), FF_OK);
  assert_int_not_equal(here, there);
  assert_int_equal(one.request->bytes, other.request->bytes);
  assert_memory_equal(one.request, other.request, one.request->bytes);
  forget(&one);
  forget(&other);
}

static int open_memory(void **unused) {
  ff_error error;
  return exec_memory_create(&memory, &error) != FF_OK;
}
static int close_memory(void **unused) {
  exec_memory_free(memory);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_form), cmocka_unit_test(video), cmocka_unit_test(moves),
                                     cmocka_unit_test(addresses)};
  return cmocka_run_group_tests(tests, open_memory, close_memory);
}
