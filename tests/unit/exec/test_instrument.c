/* SPDX-License-Identifier: Apache-2.0 */
/* Instrumented kernels (ptx/rewrite/instrument.h) on the virtual GPU, against its own check of the same uses: the same
 * accesses are refused, in the same words; a refused access changes nothing and loads 0; kernels within their uses
 * compute what they did. */
#include "core_harness.h"
#include "ptx/rewrite/instrument.h"

#define AT "mov.u32 %r3, %tid.x; mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %out, %rd1;\n" /* %rd2: the thread's word */
#define SCATTERED "mul.lo.u32 %r4, %r3, 7; and.b32 %r4, %r4, 31; mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %out, %rd3;\n"
#define ALL 4096u

typedef struct subject { /* a module and what instrument made of it, in one program */
  kernel_test *t;
  ptx_module *original;
  ptx_checked *checked;
  uint64_t out, table;
  ff_text message;
} subject;

static char *read_variables(const char *code) {
  static char text[16384];
  snprintf(
      text, sizeof text,
      PTX_HEAD
      ".global .align 16 .b8 variable[256]; .const .align 4 .u32 constant[2] = {3, 4};\n"
      ".extern .func (.param .b64 r) malloc (.param .b64 n);\n"
      ".func (.param .b32 r) load(.param .b64 p)\n{\n.reg .b64 %%p; .reg .b32 %%v;\nld.param.u64 %%p, [p]; ld.u32 %%v, [%%p]; st.param.b32 [r], %%v; ret;\n}\n"
      ".func (.param .b32 r) outer(.param .b64 p)\n{\n.reg .b64 %%p; .reg .b32 %%v;\nld.param.u64 %%p, [p]; call (%%v), load, (%%p); st.param.b32 [r], %%v; ret;\n}\n"
      ".visible .entry k(.param .u64 p_out, .param .u32 p_n)\n{\n.shared .align 16 .b8 sh[64];\n"
      ".reg .b64 %%out; .reg .b32 %%n; .reg .pred %%p<20>; .reg .b32 %%r<60>; .reg .b64 %%rd<40>; .reg .f32 %%f<20>;\n"
      ".reg .b16 %%rs<20>; .reg .f64 %%fd<10>; .reg .b128 %%w;\n"
      "ld.param.u64 %%out, [p_out]; ld.param.u32 %%n, [p_n];\n%s%s\nret;\n}\n",
      AT, code);
  return text;
}

static subject open_subject(const char *code) {
  subject s = {0};
  ff_error error;
  const char *text = read_variables(code);
  if (ptx_module_parse("test.ptx", text, strlen(text), &s.original, &error) != FF_OK) fail_msg("%s", error.message);
  s.checked = ptx_instrument(s.original);
  s.t = open_ptx(s.checked->text.chars);
  s.t->config.heap_bytes = 1 << 20;
  s.out = buffer(s.t, ALL);
  s.table = buffer(s.t, ptx_check_bytes(16));
  for (uint32_t i = 0; i < ALL / 4; i++) u32_at(s.out)[i] = 1000 + i;
  return s;
}

static void close_subject(subject *s) {
  close_ptx(s->t);
  ptx_checked_free(s->checked);
  ptx_module_free(s->original);
  free(s->message.chars);
}

/* Launches k__checked: the report's words in s->message, "" if there is none. */
static void run_checked(subject *s, uint32_t blocks, const ff_virtual_use *uses, uint32_t count) {
  const ptx_checked_kernel *kernel = ptx_checked_find(s->checked, "k");
  ff_error error = {0};
  unsigned char params[32] = {0};
  uint32_t n = 0, grid[3] = {blocks, 1, 1};
  ptx_check_table *table = (ptx_check_table *)(uintptr_t)s->table;
  if (!kernel->checked_name) fail_msg("%s", kernel->reason);
  assert_int_equal(ptx_check_fill(uses, count, grid, table, &error), FF_OK);
  memcpy(params, &s->out, 8);
  memcpy(params + 8, &n, 4);
  memcpy(params + kernel->offset, &s->table, 8);
  s->t->uses = NULL;
  if (launch_with(s->t, kernel->checked_name, grid, (uint32_t[3]){32, 1, 1}, params, &error) != FF_OK)
    fail_msg("%s", error.message);
  s->message.length = 0;
  ff_text_add(&s->message, "%s", "");
  if (table->report.taken &&
      ptx_check_explain(s->checked, "k", &table->report, uses, count, &s->message, &error) != FF_OK)
    fail_msg("%s", error.message);
}

/* The virtual GPU's own words for k, whose use is given as an offset from the buffer; "" if it runs. */
static const char *run_declared(const char *code, ff_virtual_use use) {
  static char message[sizeof((exec_fault *)0)->message];
  ff_error error = {0};
  kernel_test *t = open_ptx(read_variables(code));
  t->config.heap_bytes = 1 << 20;
  buffer(t, 64); /* where the other has its list of variables: all addresses are the same */
  uint64_t out = buffer(t, ALL);
  use.base += out;
  t->uses = &use;
  t->use_count = 1;
  ff_status status = launch(t, "k", 1, 32, out, 0, &error);
  snprintf(message, sizeof message, "%s", status == FF_OK ? "" : t->fault.message);
  close_ptx(t);
  return message;
}

/* ---- the same words ---- */

static const char *const codes[] = {
    "ld.global.u32 %r5, [%rd2+128];", "st.global.u32 [%rd2+124], %r3;", "ld.global.u8 %rs1, [%out+127];",
    "st.global.u8 [%out+228], %rs1;", SCATTERED "ld.global.u32 %r5, [%rd4+128];",
    SCATTERED "st.global.u32 [%rd4+128], %r5;", "atom.global.add.u32 %r5, [%rd2+128], 1;",
    "red.global.add.u32 [%out+228], 1;", "atom.add.u32 %r5, [%out+124], 1;", "ld.global.v2.u32 {%r5,%r6}, [%out+224];",
    "ld.global.v4.u32 {%r5,%r6,%r7,%r8}, [%out+112];", "ld.global.v4.u32 {%r5,%r6,%r7,%r8}, [%out+224];",
    "st.global.v2.u64 [%out+224], {%rd1,%rd2};", "ld.volatile.global.u32 %r5, [%out+228];",
    "ld.global.nc.u32 %r5, [%out+228];", "ld.u32 %r5, [%rd2+128];", "ld.global.f64 %fd1, [%out+224];",
    "setp.gt.u32 %p1, %r3, 27; @%p1 st.global.u32 [%rd2+128], %r3;",
    "setp.le.u32 %p1, %r3, 27; @!%p1 st.global.u32 [%rd2+128], %r3;", "cp.async.ca.shared.global [sh], [%out+228], 4;",
    "mov.u32 %r6, 4; cp.async.ca.shared.global [sh], [%out+224], 8, %r6;",
    "mov.u32 %r6, 5; cp.async.ca.shared.global [sh], [%out+224], 8, %r6;",
    "mov.u32 %r6, 0; cp.async.ca.shared.global [sh], [%out+1024], 8, %r6;", "ld.global.u32 %r5, [%out+4096];",
    "ld.global.u32 %r5, [%out+-4];", "ld.global.u32 %r5, [16];", "mov.u64 %rd5, -4; ld.global.u32 %r5, [%rd5];",
    "{.param .b64 a; .param .b32 b; st.param.b64 [a], %out; call (b), outer, (a);}", "call (%r5), load, (%rd2);",
    "add.u64 %rd7, %rd2, 128; setp.gt.u32 %p1, %r3, 24; @%p1 call (%r5), outer, (%rd7);",
    "bra SKIP; AGAIN: ld.global.u32 %r5, [%out+228]; ret; SKIP: setp.eq.u32 %p1, %r3, %r3; @%p1 bra AGAIN;",
    "ld.global.u32 %r5, [%rd2+128]; setp.ge.u32 %p1, %r5, 0; @%p1 st.global.u32 [%rd2+112], %r5;",
    /* and these are declared */
    "st.global.u32 [variable+12], %r3; ld.global.u32 %r5, [variable+12]; atom.global.add.u32 %r5, [variable+16], 1;",
    "mov.u64 %rd5, variable; add.s64 %rd5, %rd5, %rd1; cvta.global.u64 %rd6, %rd5; st.u32 [%rd6], %r3; ld.u32 %r5, [%rd6+4];",
    "mov.u64 %rd5, constant; cvta.const.u64 %rd6, %rd5; ld.u32 %r5, [%rd6+4]; ld.const.u32 %r5, [constant];",
    "st.shared.u32 [sh], %r5; ld.shared.u32 %r6, [sh]; mov.u64 %rd6, sh; cvta.shared.u64 %rd7, %rd6; ld.u32 %r7, [%rd7];",
    ".local .align 4 .b8 stack[16]; st.local.u32 [stack], %r3; mov.u64 %rd5, stack; cvta.local.u64 %rd6, %rd5; ld.u32 %r5, [%rd6];",
    "ld.u32 %r5, [sh]; st.u32 [sh+4], %r5; ld.u32 %r5, [variable+8]; ld.u32 %r6, [variable];",
    "prefetch.global.L2 [%out+1024];", "ld.global.u32 %r5, [%out+224]; st.global.u32 [%out+128], %r5;"};

static void test_same_words(void **state) {
  uint32_t refused = 0;
  for (size_t n = 0; n < sizeof codes / sizeof *codes; n++)
    for (int mode = 0; mode < 4; mode++) {
      subject s = open_subject(codes[n]);
      ff_virtual_use use = {.base = 128, .bytes = 100, .read = mode & 1, .write = mode >> 1, .segment = "s"},
                     placed = use;
      placed.base += s.out;
      run_checked(&s, 1, &placed, 1);
      char *instrumented = strdup(s.message.chars);
      close_subject(&s);
      const char *own = run_declared(codes[n], use);
      refused += own[0] != 0;
      if (strcmp(instrumented, own) != 0)
        fail_msg("mode %d of %s\ninstrumented: %s\nown: %s", mode, codes[n], instrumented, own);
      free(instrumented);
    }
  assert_in_range(refused, 60, 140);
}

static void test_per_block(void **state) {
  const char *code =
      "mov.u32 %r6, %ctaid.x; mul.wide.u32 %rd5, %r6, 128; add.s64 %rd6, %rd2, %rd5; ld.global.u32 %r5, [%rd6]; st.global.u32 [%rd6], %r6;";
  subject s = open_subject(code);
  ff_virtual_use use = {
      .base = s.out, .bytes = 1024, .per_block = {128}, .block_bytes = 128, .read = 1, .write = 1, .segment = "rows"};
  run_checked(&s, 8, &use, 1);
  assert_string_equal(s.message.chars, "");
  assert_int_equal(u32_at(s.out)[7 * 32], 7);
  use.bytes = 512;
  run_checked(&s, 8, &use, 1);
  expect_text(s.message.chars, "for this block of segment 'rows' (bytes 512 to 512, read and write)");
  expect_text(s.message.chars, "block (4,0,0), thread (0,0,0)");
  use.bytes = 1024;
  use.block_bytes = 127;
  run_checked(&s, 8, &use, 1);
  expect_text(s.message.chars, "(bytes 0 to 127, read and write): it ends 1 byte behind");
  use.block_bytes = 128;
  use.start = 128;
  use.offset = 5000;
  run_checked(&s, 8, &use, 1);
  expect_text(s.message.chars,
              "for this block of segment 'rows' (bytes 5128 to 5256, read and write): it begins 128 bytes before");
  use = (ff_virtual_use){
      .base = s.out, .bytes = 1024, .per_block = {-128}, .block_bytes = 128, .read = 1, .write = 1, .segment = "rows"};
  run_checked(&s, 8, &use, 1);
  expect_text(s.message.chars, "for this block of segment 'rows' (bytes 0 to 0, read and write)");
  use.per_block[0] = INT64_MAX / 4;
  ff_error error;
  assert_int_equal(ptx_check_fill(&use, 1, (uint32_t[3]){8, 1, 1}, (ptx_check_table *)(uintptr_t)s.table, &error),
                   FF_INVALID);
  close_subject(&s);
}

static void test_straddle(void **state) {
  subject s = open_subject("ld.global.v4.u32 {%r5,%r6,%r7,%r8}, [%out+96]; atom.global.add.u32 %r9, [%out+100], 1;");
  ff_virtual_use uses[] = {{.base = s.out + 104, .bytes = 1000, .read = 1, .segment = "high"},
                           {.base = s.out, .bytes = 104, .read = 1, .segment = "low"},
                           {.base = s.out + 100, .bytes = 4, .write = 1, .segment = "one"}};
  run_checked(&s, 1, uses, 3);
  assert_string_equal(s.message.chars, "");
  uses[1].bytes = 103;
  run_checked(&s, 1, uses, 3);
  expect_text(s.message.chars, "segment 'high' (bytes 0 to 1000, read): it begins 8 bytes before");
  close_subject(&s);
}

/* ---- refused accesses ---- */

static void test_skipped(void **state) {
  subject s = open_subject(
      "mov.u32 %r5, 77; ld.global.u32 %r5, [%out+1024]; st.global.u32 [%rd2], %r5; st.global.u32 [%rd2+1024], %r3;\n"
      "mov.f64 %fd1, 0d3FF0000000000000; ld.global.f64 %fd1, [%out+1024]; st.global.f64 [%out+256], %fd1;\n"
      "mov.u16 %rs1, 7; ld.global.u8 %rs1, [%out+1024]; st.global.u16 [%out+264], %rs1;\n"
      "mov.u32 %r6, 5; mov.u32 %r7, 5; ld.global.v2.u32 {%r6,%r7}, [%out+1024]; add.u32 %r6, %r6, %r7; st.global.u32 [%out+268], %r6;\n"
      "mov.u32 %r8, 5; atom.global.add.u32 %r8, [%out+1028], 1; st.global.u32 [%out+272], %r8; red.global.add.u32 [%out+1028], 1;\n"
      "mov.u64 %rd8, %out; ld.global.u64 %rd8, [%rd8+1024]; st.global.u64 [%out+280], %rd8;\n"
      "mov.u32 %r9, 5; setp.eq.u32 %p1, %r3, 0; @%p1 ld.global.u32 %r9, [%out+1024]; add.u64 %rd9, %rd2, 320; st.global.u32 [%rd9], %r9;");
  ff_virtual_use use = {.base = s.out, .bytes = 512, .read = 1, .write = 1, .segment = "s"};
  run_checked(&s, 1, &use, 1);
  expect_text(s.message.chars, "undeclared global read of 4 bytes");
  expect_text(s.message.chars, "thread (0,0,0)");
  for (uint32_t i = 0; i < 32; i++) assert_int_equal(u32_at(s.out)[i], 0);
  for (uint32_t i = 256 / 4; i < 288 / 4; i++)
    if (i * 4 != 276) assert_int_equal(u32_at(s.out)[i] & (i == 66 ? 0xffffu : UINT32_MAX), 0);
  for (uint32_t i = 0; i < 32; i++) assert_int_equal(u32_at(s.out + 320)[i], i ? 5 : 0);
  for (uint32_t i = 512 / 4; i < ALL / 4; i++) assert_int_equal(u32_at(s.out)[i], 1000 + i);
  close_subject(&s);
}

static void test_heap(void **state) {
  subject s = open_subject(
      "{.param .b64 a; .param .b64 r; st.param.b64 [a], 64; call (r), malloc, (a); ld.param.b64 %rd5, [r]; st.u32 [%rd5], %r3; ld.u32 %r6, [%rd5];}");
  assert_true(ptx_checked_find(s.checked, "k")->heap);
  ff_virtual_use everything_else = {.base = 0, .bytes = INT64_MAX, .read = 1, .write = 1, .segment = "others"};
  run_checked(&s, 1, &everything_else, 1);
  assert_string_equal(s.message.chars, "");
  close_subject(&s);
}

/* ---- what cannot be checked ---- */

static void test_reasons(void **state) {
  static const struct {
    const char *code, *words;
  } cases[] = {
      {"mov.u64 %rd5, load; {.param .b64 a; .param .b32 r; st.param.b64 [a], %out; pr: .callprototype (.param .b32 _) _ (.param .b64 _);\ncall (r), %rd5, (a), pr;}",
       "k calls through a pointer at line "},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sh], [%out], 64, [sh];",
       "whose accesses cannot be checked (cp)"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1,%r2,%r4,%r5,%r6,%r7,%r8,%r9}, [%out];",
       "whose accesses cannot be checked (wmma)"},
      {"frobnicate.global [%out];", "whose accesses cannot be checked (<unknown>)"},
      {"ld.global.u32 %r5, [%r4];", "that is not one of 64 bits"}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    ptx_module *module;
    ff_error error;
    const char *text = read_variables(cases[n].code);
    if (ptx_module_parse("test.ptx", text, strlen(text), &module, &error) != FF_OK) fail_msg("%s", error.message);
    ptx_checked *checked = ptx_instrument(module);
    const ptx_checked_kernel *kernel = ptx_checked_find(checked, "k");
    assert_null(kernel->checked_name);
    expect_text(kernel->reason, cases[n].words);
    ptx_checked_free(checked);
    ptx_module_free(module);
  }
}

/* A module that has our names already, and one that was instrumented before. */
static void test_names(void **state) {
  static const char text[] = PTX_HEAD
      ".global .u32 farfault_variables; .global .u32 k__checked;\n.func farfault_check()\n{\nret;\n}\n"
      ".visible .entry k(.param .u64 check_table)\n{\n.reg .b64 %check_table; .reg .b32 %check_answer, %check_zero; .reg .pred %check_good;\n"
      "ld.param.u64 %check_table, [check_table]; ld.global.u32 %check_answer, [%check_table]; call farfault_check, (); st.global.u32 [%check_table+4], %check_answer; ret;\n}\n";
  ff_text before = {0};
  ff_text_add(&before, "%s", text);
  for (int times = 0; times < 3; times++) {
    ptx_module *module, *again;
    ff_error error;
    if (ptx_module_parse("test.ptx", before.chars, before.length, &module, &error) != FF_OK)
      fail_msg("%s", error.message);
    ptx_checked *checked = ptx_instrument(module);
    assert_int_equal(checked->kernel_count, 1 << times);
    assert_string_not_equal(ptx_checked_find(checked, "k")->checked_name, "k__checked");
    if (ptx_module_parse("checked", checked->text.chars, checked->text.length, &again, &error) != FF_OK)
      fail_msg("%s", error.message);
    ptx_module_free(again);
    before.length = 0;
    ff_text_add(&before, "%s", checked->text.chars);
    ptx_checked_free(checked);
    ptx_module_free(module);
  }
  free(before.chars);
}

/* A kernel of which nothing is known must run in blocks of any size: the registers that the checks take must not forbid
 * it. */
static void test_bounds(void **state) {
  static const char text[] =
      PTX_HEAD ".visible .entry k()\n{\nret;\n}\n.visible .entry bounded()\n.reqntid 64, 2, 1\n{\nret;\n}\n";
  ptx_module *module, *again;
  ff_error error;
  assert_int_equal(ptx_module_parse("test.ptx", text, strlen(text), &module, &error), FF_OK);
  ptx_checked *checked = ptx_instrument(module);
  assert_int_equal(ptx_module_parse("checked", checked->text.chars, checked->text.length, &again, &error), FF_OK);
  assert_int_equal(ptx_find_func(again, "k")->maxntid[0], 0);
  assert_int_equal(ptx_find_func(again, "k__checked")->maxntid[0], 1024);
  assert_int_equal(ptx_find_func(again, "bounded__checked")->reqntid[1], 2);
  assert_int_equal(ptx_find_func(again, "bounded__checked")->maxntid[0], 0);
  ptx_module_free(again);
  ptx_checked_free(checked);
  ptx_module_free(module);
}

static void test_damaged_report(void **state) {
  subject s = open_subject(codes[0]);
  ff_error error;
  ptx_check_report report = {.taken = 1, .site = s.checked->site_count};
  assert_int_equal(ptx_check_explain(s.checked, "k", &report, NULL, 0, &s.message, &error), FF_INVALID);
  report = (ptx_check_report){.taken = 7};
  assert_int_equal(ptx_check_explain(s.checked, "k", &report, NULL, 0, &s.message, &error), FF_INVALID);
  close_subject(&s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_same_words), cmocka_unit_test(test_per_block), cmocka_unit_test(test_straddle),
    cmocka_unit_test(test_skipped),    cmocka_unit_test(test_heap),      cmocka_unit_test(test_reasons),
    cmocka_unit_test(test_names),      cmocka_unit_test(test_bounds),    cmocka_unit_test(test_damaged_report)};

int main(void) { return cmocka_run_group_tests(tests, NULL, NULL) != 0; }
