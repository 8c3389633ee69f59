/* SPDX-License-Identifier: Apache-2.0 */
/* Module, functions, scopes, labels, instructions: what the IR says about a text, and what is refused with which
 * message. */
#include "ptx_test.h"

static void head(void **state) {
  ptx_module *m = parse(".version 7.8\n.target sm_90a, debug\n.address_size 64\n.file 2 \"a.cu\", 1, 2\n");
  assert_int_equal(m->version_major, 7);
  assert_int_equal(m->version_minor, 8);
  assert_int_equal(m->target, 90);
  assert_int_equal(m->target_suffix, 'a');
  assert_int_equal(m->file_count, 3);
  assert_null(m->files[0]);
  assert_string_equal(m->files[2], "a.cu");
  ptx_module_free(m);
  m = parse(".version 8.10\n");
  assert_int_equal(m->version_minor, 10);
  ptx_module_free(m);
}

static void trailing_nuls(void **state) {
  char text[] = HEAD ".entry k() { ret; }\0\0\0";
  ptx_module *m;
  ff_error error;
  assert_int_equal(ptx_module_parse("x", text, sizeof text, &m, &error), FF_OK);
  assert_int_equal(m->func_count, 1);
  ptx_module_free(m);
  char inside[] = HEAD "\0.entry k() { ret; }";
  assert_int_equal(ptx_module_parse("x", inside, sizeof inside, &m, &error), FF_PARSE);
  assert_non_null(strstr(error.message, "NUL"));
}

static void kernel_header(void **state) {
  ptx_module *m =
      parse(HEAD ".weak .entry k(.param .u64 .ptr .global .align 16 a, .param .align 8 .b8 s[24], .param .f32 x)\n"
                 ".maxntid 256, 2\n.reqntid 8\n.minnctapersm 3 .maxnreg 40 .reqnctapercluster 2, 1, 1\n{ ret; }");
  const ptx_func *k = ptx_find_func(m, "k");
  assert_true(k->entry && k->has_body && k->linkage == PTX_LINK_WEAK);
  assert_int_equal(k->param_count, 3);
  assert_true(k->params[0]->pointer);
  assert_int_equal(k->params[0]->align, 8); /* .align behind .ptr speaks of what is pointed to */
  assert_int_equal(k->params[1]->size, 24);
  assert_int_equal(k->params[1]->align, 8);
  assert_int_equal(k->params[2]->align, 4);
  assert_int_equal(k->maxntid[0], 256);
  assert_int_equal(k->maxntid[1], 2);
  assert_int_equal(k->maxntid[2], 1);
  assert_int_equal(k->reqntid[0], 8);
  assert_int_equal(k->cluster[0], 2);
  assert_int_equal(k->minnctapersm, 3);
  assert_int_equal(k->maxnreg, 40);
  ptx_module_free(m);
}

/* What compilers print around the code: accepted, and without effect. */
static void ignored_directives(void **state) {
  ptx_module *m = parse(
      HEAD ".loc 1 2 3\n.pragma \"a\", \"b\";\n.const[2] .u32 c;\n.tex .u64 t;\n"
           ".global .attribute(.unified(1, 2), .managed) .u32 u;\n"
           ".func .attribute(.unified(19, 95)) (.param .b32 r) f() .abi_preserve 4 .abi_preserve_control 3;\n"
           ".entry k() .explicitcluster .blocksareclusters .maxclusterrank 8 .maxnctapersm 2 .pragma \"nounroll\";\n"
           "{ .file 3 \"x.h\" .section .debug_x { .b8 1 } ;; .pragma \"p\"; ret; }\n");
  assert_int_equal(m->func_count, 2);
  assert_int_equal(m->funcs[1]->instr_count, 1);
  assert_int_equal(m->var_count, 3);
  assert_true(m->vars[2]->managed);
  assert_string_equal(m->files[3], "x.h");
  assert_null(ptx_find_func(m, "nothing"));
  assert_null(ptx_find_var(m, "nothing"));
  ptx_module_free(m);
}

static void registers_and_scopes(void **state) {
  ptx_module *m = parse_body(".reg .b32 a, %r<3>; .reg .v2 .f32 v; .reg .b32 %q1<12>;\n"
                             "mov.b32 a, %r2;\n"
                             "{ .reg .b64 a; mov.b64 a, 1; { .reg .b16 %r<9>; mov.b16 %r8, 2; } mov.b64 a, 3; }\n"
                             "mov.b32 a, %q111;\n"
                             "mov.f32 v.y, v.x;");
  const ptx_func *k = m->funcs[0];
  assert_int_equal(k->reg_count, 1 + 3 + 2 + 12 + 1 + 9);
  assert_int_equal(k->instrs[0].operands[0].reg, 0);
  assert_int_equal(k->instrs[0].operands[1].reg, 3);
  uint32_t inner = k->instrs[1].operands[0].reg;
  assert_int_equal(k->regs[inner].type, PTX_B64);
  assert_string_equal(k->regs[inner].name, "a");
  assert_int_equal(k->regs[k->instrs[2].operands[0].reg].type, PTX_B16);
  assert_string_equal(k->regs[k->instrs[2].operands[0].reg].name, "%r8");
  assert_int_equal(k->instrs[3].operands[0].reg, inner);
  assert_int_equal(k->instrs[4].operands[0].reg, 0);
  assert_int_equal(k->instrs[4].operands[1].reg, 1 + 3 + 2 + 11); /* %q1<12> makes %q10 ... %q111 */
  assert_string_equal(k->regs[k->instrs[5].operands[0].reg].name, "v.y");
  assert_int_equal(k->instrs[5].operands[1].reg, 4);
  ptx_module_free(m);
}

static void labels(void **state) {
  ptx_module *m = parse_body(".reg .pred q; .reg .b32 r;\n"
                             "L: bra L;\n"            /* 0 */
                             "{ bra L; L: bra M; }\n" /* 1: the inner L, 2: the outer M */
                             "@q bra L;\n"            /* 3: the outer L */
                             "M: brx.idx r, T; T: .branchtargets L, M, E;\n"
                             "E:");
  const ptx_func *k = m->funcs[0];
  assert_int_equal(k->instr_count, 5);
  assert_int_equal(k->instrs[0].operands[0].label, 0);
  assert_int_equal(k->instrs[1].operands[0].label, 2);
  assert_int_equal(k->instrs[2].operands[0].label, 4);
  assert_int_equal(k->instrs[3].operands[0].label, 0);
  const ptx_operand *targets = &k->instrs[4].operands[1];
  assert_int_equal(targets->kind, PTX_OPERAND_LABELS);
  assert_int_equal(targets->element_count, 3);
  assert_int_equal(targets->elements[2].label, 5); /* behind the last instruction */
  ptx_module_free(m);
}

static void operands(void **state) {
  ptx_module *m = parse(
      HEAD
      ".global .b32 g[4]; .visible .entry k(.param .u64 p) { .reg .b32 %r<4>; .reg .b64 %d<2>; .reg .pred %p<3>; .reg .f32 %f;\n"
      "ld.param.u64 %d1, [p+-8];\n"
      "st.global.v2.b32 [g+4], {%r1, -1};\n"
      "ld.shared.b32 %r1, [4096];\n"
      "setp.lt.f32 %p1|_, %f, -1.5;\n"
      "selp.b32 %r1, 0xFFFFFFFF, WARP_SZ, !%p1;\n"
      "mov.u32 %r1, %ctaid.y;\n"
      "mov.u64 %d1, g + 2 * 4;\n"
      "add.f32 %f, %f, 0f3F800000;\n"
      "tex.1d.v4.f32.s32 {%f, _, _, _}|%p2, [%d1, {%r1}];\n"
      "mov.u32 %r1, g[3];\n"
      "vadd4.u32.u32.u32 %r1.b210, %r2.b7654, -%r3, %r1;\n}");
  const ptx_instr *i = m->funcs[0]->instrs;
  assert_int_equal(i[0].operands[1].kind, PTX_OPERAND_ADDRESS);
  assert_int_equal(i[0].operands[1].offset, -8);
  assert_string_equal(i[0].operands[1].symbol->name, "p");
  assert_int_equal(i[1].vector, 2);
  assert_int_equal(i[1].operands[1].kind, PTX_OPERAND_VECTOR);
  assert_true(i[1].operands[1].elements[1].bits == UINT64_MAX);
  assert_int_equal(i[2].operands[1].reg, PTX_NO_REG);
  assert_int_equal(i[2].operands[1].offset, 4096);
  assert_int_equal(i[3].operands[0].kind, PTX_OPERAND_REG_PAIR);
  assert_int_equal(i[3].operands[0].reg2, PTX_NO_REG);
  assert_int_equal(i[3].operands[2].kind, PTX_OPERAND_F64);
  assert_int_equal(i[4].operands[1].bits, 0xFFFFFFFF);
  assert_int_equal(i[4].operands[2].bits, 32);
  assert_true(i[4].operands[3].negated);
  assert_int_equal(i[5].operands[1].sreg, PTX_SREG_CTAID_Y);
  assert_int_equal(i[6].operands[1].kind, PTX_OPERAND_SYMBOL);
  assert_int_equal(i[6].operands[1].offset, 8);
  assert_int_equal(i[7].operands[2].kind, PTX_OPERAND_F32);
  assert_int_equal(i[8].operands[0].kind, PTX_OPERAND_VECTOR);
  assert_int_equal(i[8].operands[0].reg2, 4 + 2 + 2);
  assert_int_equal(i[8].operands[1].element_count, 2);
  assert_int_equal(i[9].operands[1].offset, 12);
  assert_true(i[10].operands[0].selector == 0xB0030210);
  assert_true(i[10].operands[1].selector == 0xB0047654);
  assert_true(i[10].operands[2].negated);
  ptx_module_free(m);
}

static void modifiers(void **state) {
  ptx_module *m = parse_body(".reg .b32 %r<5>; .reg .b64 %d<2>;\n"
                             "cvt.rn.satfinite.f16x2.f32 %r1, %r2, %r3;\n"
                             "ld.global.nc.L2::128B.v4.u32 {%r1,%r2,%r3,%r4}, [%d1];\n"
                             "st.shared::cta.u32 [%r1], %r2;");
  const ptx_instr *i = m->funcs[0]->instrs;
  assert_int_equal(i[0].opcode, PTX_OP_CVT);
  assert_int_equal(i[0].type_count, 2);
  assert_int_equal(i[0].types[0], PTX_F16X2);
  assert_int_equal(i[0].types[1], PTX_F32);
  assert_true(ptx_has(&i[0], PTX_MOD_RN) && ptx_has(&i[0], PTX_MOD_SATFINITE) && !ptx_has(&i[0], PTX_MOD_FTZ));
  assert_int_equal(i[1].mods[0], PTX_MOD_GLOBAL);
  assert_int_equal(i[1].mods[1], PTX_MOD_NC);
  assert_int_equal(i[1].mods[2], PTX_MOD_L2__128B);
  assert_int_equal(i[1].vector, 4);
  assert_int_equal(ptx_instr_space(&i[1]), PTX_SPACE_GLOBAL);
  assert_int_equal(ptx_instr_space(&i[2]), PTX_SPACE_SHARED);
  ptx_module_free(m);
}

static void calls(void **state) {
  ptx_module *m = parse(HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
                             ".func leave() .noreturn;\n"
                             ".func leave() .noreturn { trap; }\n"
                             ".entry k() { .reg .b64 %d; .param .b64 x; .param .b64 y; .param .b32 z;\n"
                             "call.uni (z), vprintf, (x, y);\n"
                             "call leave;\n"
                             "t: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[16]);\n"
                             "call (z), %d, (x, y), t; }");
  const ptx_func *k = ptx_find_func(m, "k");
  ptx_call call = ptx_call_parts(&k->instrs[0]);
  assert_string_equal(call.callee->symbol->name, "vprintf");
  assert_int_equal(call.arguments->element_count, 2);
  assert_string_equal(call.results->elements[0].symbol->name, "z");
  assert_null(call.targets);
  call = ptx_call_parts(&k->instrs[1]);
  assert_null(call.results);
  assert_null(call.arguments);
  assert_true(call.callee->symbol->func->noreturn);
  call = ptx_call_parts(&k->instrs[2]);
  assert_int_equal(call.callee->kind, PTX_OPERAND_REG);
  assert_int_equal(call.targets->kind, PTX_OPERAND_PROTOTYPE);
  assert_int_equal(call.targets->prototype->params[1]->size, 16);
  assert_false(ptx_find_func(m, "vprintf")->has_body);
  assert_int_equal(ptx_find_func(m, "leave")->instr_count, 1);
  ptx_module_free(m);
}

static void register_parameters_and_aliases(void **state) {
  ptx_module *m = parse(HEAD ".func (.reg .u32 r) f(.reg .u32 a) { add.u32 r, a, 1; ret; }\n"
                             ".func (.reg .u32 r) g(.reg .u32 a);\n.alias g, f;\n"
                             ".entry k() { .reg .u32 x; call (x), g, (x); }");
  ptx_func *f = ptx_find_func(m, "f");
  assert_int_equal(f->results[0]->space, PTX_SPACE_REG);
  assert_int_equal(f->results[0]->reg, 0);
  assert_int_equal(f->params[0]->reg, 1);
  assert_int_equal(f->instrs[0].operands[1].reg, 1);
  assert_ptr_equal(ptx_find_func(m, "g"), f);
  assert_ptr_equal(ptx_call_parts(&ptx_find_func(m, "k")->instrs[0]).callee->symbol->func, f);
  ptx_module_free(m);
}

static void source_lines(void **state) {
  ptx_module *m = parse(
      HEAD
      ".entry k() { .reg .b32 r;\nmov.b32 r, 0;\n.loc 1 7 3\nmov.b32 r, 1;\n"
      ".loc 1 9 2, function_name $L, inlined_at 1 7 3\nmov.b32 r, 2;\n.loc 5 1 1\nmov.b32 r, 3; }\n.file 1 \"a.cu\"\n");
  const ptx_instr *i = m->funcs[0]->instrs;
  assert_int_equal(i[0].source_line, 0);
  assert_int_equal(i[1].source_file, 1);
  assert_int_equal(i[1].source_line, 7);
  assert_int_equal(i[2].source_line, 9);
  assert_int_equal(i[3].source_file, 0); /* no such .file */
  assert_int_equal(i[2].place.line, 9);
  assert_int_equal(i[2].place.column, 1);
  ptx_module_free(m);
}

static void unknown_statements(void **state) {
  ptx_module *m = parse_body(
      ".reg .pred %p; .reg .b32 %r<3>;\n@!%p brand.new %r1,  /* x */ [%r2], \"s\";\nadd.s32.novel %r1, %r2, 1; ret;");
  const ptx_func *k = m->funcs[0];
  assert_int_equal(k->instr_count, 3);
  assert_int_equal(k->instrs[0].opcode, PTX_OP_UNKNOWN);
  assert_string_equal(k->instrs[0].text, "brand.new %r1, [%r2], \"s\"");
  assert_int_equal(k->instrs[0].guard, 0);
  assert_true(k->instrs[0].guard_negated);
  assert_string_equal(k->instrs[1].text, "add.s32.novel %r1, %r2, 1");
  assert_int_equal(k->instrs[2].opcode, PTX_OP_RET);
  ptx_module_free(m);
}

static void messages(void **state) {
  refuse(HEAD ".entry k()\n{\n\t.reg .b32 %r<2>;\n\tadd.s32 %r1, %r5, 1;\n}\n",
         "test.ptx:7:15: '%r5' is not declared\n   add.s32 %r1, %r5, 1;\n                ^");
  refuse("", "there is no .version");
  refuse("hello", "test.ptx:1:1: expected a directive, not 'hello'");
  refuse(HEAD ".entry k() { ret", "expected ';' after an instruction, not the end of the text");
  refuse(HEAD ".entry k() { ret;", "this '{' is never closed");
  refuse(HEAD ".entry k() { ret; } }", "expected a directive, not '}'");
  refuse(HEAD ".novelty 3;", "expected a directive, not '.novelty'");
  refuse(".version eight", "expected a version");
}

static void refused_bodies(void **state) {
  static const struct {
    const char *body, *message;
  } cases[] = {
      {".reg .b32 r; add.s32 r, r;", "'add' takes 3 operands, not 2"},
      {".reg .b32 r; fma.rn.f32 r, r, r, r, r;", "'fma' takes 4 operands, not 5"},
      {".reg .b32 r; bra r;", "there is no label 'r' here"},
      {"{ L: } bra L;", "there is no label 'L' here"},
      {"L: L:", "stands in this scope already"},
      {".reg .b32 r; brx.idx r, L; L:", "this is a place in the code"},
      {".reg .b32 r, r;", "'r' is declared already"},
      {".reg .b32 r; .reg .b32 %q<1000000000>;", "expected a number of registers"},
      {".reg .b32 r; @r ret;", "'r' is not a predicate register"},
      {"mov.b32 r, 0;", "'r' is not declared"},
      {".reg .b32 r; mov.b32 r, %tid.q;", "'%tid' is not declared"},
      {".reg .b32 r; mov.b32 r.x, 0;", "this register has no part '.x'"},
      {".reg .b32 r; mov.b32 r, 1/0;", "division by zero"},
      {".reg .b32 r; mov.b32 r, ((1);", "expected ')'"},
      {".reg .b32 r; mov.b32 r, {r, [r]};", "a list holds registers, numbers and names"},
      {".reg .b32 r; ld.global.b32 r, [r+1.5];", "an offset is an integer"},
      {".reg .b32 r; ld.global.b32 r, [{r}];", "expected a number"},
      {".reg .b16 h; .reg .b32 r; .local .b32 l[4]; ld.local.b32 r, l[h];", "an index is a constant or a register"},
      {".reg .b32 r; .local .b32 l[4]; ld.local.b32 r, l[r + r];", "expected a number"},
      {".reg .b32 r; .local .b32 l[4]; ld.local.b32 r, l[r;", "expected ']'"},
      {".reg .b32 r; .local .b32 l[4]; ld.local.b32 r, l[s];", "'s' is not declared"},
      {".reg .b32 r; .local .b32 l[4]; ld.local.b32 r, l[l];", "an index is a constant or a register"},
      {".reg .b32 r; .local .b32 l[4]; ld.local.b32 r, l[l[r]];", "an index is a constant or a register"},
      {".reg .b32 r; .local .b32 l[4]; ld.local.b32 r, l[r.b0];", "an index is a constant or a register"},
      {".reg .e4m3 r;", "nothing can be declared with type .e4m3"},
      {".local .align 3 .b8 x[4];", "power of two"},
      {".local .b8 x[99999999999999];", "a dimension from 0"},
      {".local .b8 x[1048576][1048576][2];", "larger than 1 TiB"},
      {".reg .pred q; .reg .b32 r; ld.global.b32 r, [%tid.x];", "an address is a register, a variable or a number"},
      {".reg .b32 r; setp.eq.b32 1|r, r, r;", "expected"},
      {".reg .b32 r; setp.eq.b32 r|%tid.x, r, r;", "'|' stands between two registers"},
      {".reg .b32 r; neg.s32 r, -p;", "only a register can be negated"},
      {"call p;", "this is not a function"},
      {".reg .b32 r; add.rn.rn.rn.rn.rn.rn.rn.rn.rn.rn.rn.rn.rn.rn.rn.rn.rn.s32 r, r, r;", "more than 16 modifiers"},
      {".reg .b32 r; add.s32.s32.s32.s32.s32.s32.s32 r, r, r;", "more than 6 types"},
      {".reg .b32 r; mma.sync r, r, r, r, r, r, r, r, r, r, r, r, r;", "more than 12 operands"},
      {".reg .b32 r; cvt.u32.f32.more r", "no ';' behind 'cvt', which is not a known instruction either"},
      {"@", "expected a predicate register after '@'"},
      {".loc 1 2;", "a column number"},
      {"unknown.thing \x01 .x;", "this byte does not belong"},
      {"call missing;", "'missing' is not declared"},
      {"call k, (p, p);", "'k' takes 1 arguments and gives 0 results, not 2 and 0"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) refuse_body(cases[i].body, cases[i].message);
}

static void refused_modules(void **state) {
  static const struct {
    const char *text, *message;
  } cases[] = {
      {".entry k() { ret; } .entry k() { ret; }", "'k' is declared already"},
      {".func f(.param .b32 a); .func f(.param .b64 a) { ret; }", "'f' is declared differently above"},
      {".global .u32 x; .global .u32 x;", "'x' is declared already on line 4"},
      {".extern .global .u32 x; .extern .shared .u32 x;", "'x' is declared differently on line 4"},
      {".func f(.param .b32 a, .param .b32 a) { ret; }", "two parameters are called 'a'"},
      {".func f(); .func g(); .alias f, g;", "an alias is"},
      {".alias f, g;", "'f' is not a declared function"},
      {".entry k(.global .u32 x) { }", "a parameter is .param or .reg"},
      {".entry k() .loud { }", "'.loud' does not belong to a function"},
      {".section .debug { { }", "this '{' is never closed"},
      {".section .debug;", ".section without '{'"},
      {".file 1 x", "the file's name in quotes"},
      {".version 0.5", "PTX version 0.5 is not known"},
      {".func f(); .entry f() { ret; }", "'f' is declared differently above"},
      {".global .u32 f; .func f();", "'f' is declared differently above"},
      {".func f(); .global .u32 f;", "'f' is declared already"},
      {".file 99999999 \"x\"", "a file number from 0"},
      {".pragma nounroll;", "expected a string"},
      {".address_size 48", "the address size is 32 or 64"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ff_text text = {0};
    ff_text_add(&text, "%s%s", HEAD, cases[i].text);
    refuse(text.chars, cases[i].message);
    free(text.chars);
  }
}

/* Text that nests or repeats `piece`; must be refused, quickly, and without deep recursion. */
static void refuse_repeated(const char *before, const char *piece, size_t times, const char *message) {
  ff_text text = {0};
  ff_text_add(&text, "%s%s", HEAD, before);
  for (size_t i = 0; i < times; i++) ff_text_add(&text, "%s", piece);
  refuse(text.chars, message);
  free(text.chars);
}

static void nesting(void **state) {
  refuse_repeated(".entry k() ", "{", 100000, "scopes nested deeper than");
  refuse_repeated(".global .u32 x = ", "(", 100000, "nested deeper than");
  refuse_repeated(".global .u32 x = ", "-", 100000, "nested deeper than");
  refuse_repeated(".global .u32 x = ", "1 ? ", 100000, "nested deeper than");
  refuse_repeated(".global .u32 x[] = ", "{", 100000, "braces nested too deep");
  refuse_repeated(".entry k() { .reg .b32 r; mov.b32 r, ", "{", 100000, "nested too deep");
  refuse_repeated(".entry k() { .reg .b32 r; .local .b32 l[4]; ld.local.b32 r, ", "l[", 1000000,
                  "an index is a constant or a register");
  refuse_repeated(".entry k() { .reg .b32 r; mov.b32 r, {r", ",r", 1000, "more than 256 elements");
  refuse_repeated(".entry k() { .reg .b32 r<1000000>;", "{ .reg .b32 r<40000>; }", 10, "too many registers");
}

/* Short text that would stand for a great deal of memory or work. */
static void amplification(void **state) {
  ff_text text = {0};
  ff_text_add(&text, "%s.entry k() { .reg .b32 ", HEAD);
  for (int i = 0; i < 5000; i++) ff_text_add(&text, "long_");
  ff_text_add(&text, "<1000000>; }");
  refuse(text.chars, "too many registers");
  free(text.chars);
  text = (ff_text){0};
  ff_text_add(&text, "%s.entry k() { .reg .b32 r; L: T: .branchtargets L", HEAD);
  for (int i = 0; i < 5000; i++) ff_text_add(&text, ",L");
  ff_text_add(&text, ";");
  for (int i = 0; i < 5000; i++) ff_text_add(&text, "brx.idx r, T;");
  ff_text_add(&text, "}");
  refuse(text.chars, "the lists of targets of this module are too long");
  free(text.chars);
}

static void every_prefix_ends(void **state) {
  static const char text[] = HEAD
      ".global .u64 t[3] = {f, generic(t)+8, 0xFF};\n.func (.param .b32 r) f(.param .b64 x) { .reg .b32 %r<3>; .reg .pred %p;\n"
      "{ L: @%p bra L; } setp.eq.b32 %p|_, %r1, 0x10; ld.v2.b32 {%r1, %r2}, [%r2+-4]; call (r), f, (x); /* c */ ret; }\n";
  for (size_t length = 0; length < sizeof text - 1; length++) {
    char *exact = malloc(length ? length : 1);
    memcpy(exact, text, length);
    ptx_module *m;
    ff_error error = {0};
    ff_status status = ptx_module_parse("prefix", exact, length, &m, &error);
    assert_true(status == FF_OK || error.message[0]);
    ptx_module_free(m);
    free(exact);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(head),
      cmocka_unit_test(trailing_nuls),
      cmocka_unit_test(kernel_header),
      cmocka_unit_test(ignored_directives),
      cmocka_unit_test(registers_and_scopes),
      cmocka_unit_test(labels),
      cmocka_unit_test(operands),
      cmocka_unit_test(modifiers),
      cmocka_unit_test(calls),
      cmocka_unit_test(register_parameters_and_aliases),
      cmocka_unit_test(source_lines),
      cmocka_unit_test(unknown_statements),
      cmocka_unit_test(messages),
      cmocka_unit_test(refused_bodies),
      cmocka_unit_test(refused_modules),
      cmocka_unit_test(nesting),
      cmocka_unit_test(amplification),
      cmocka_unit_test(every_prefix_ends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
