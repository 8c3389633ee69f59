/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in windows of their grids (ptx/rewrite/window.h): the text that is made parses back to itself, and a grid
 * that is run in random boxes, in any order, leaves the same memory as a grid that is run whole. */
#include <dirent.h>

#include "conformance/place.h"
#include "core_harness.h"
#include "ptx/rewrite/window.h"
#include "random_kernel.h"
#include "unit/share.h"

static uint64_t random_state = 88172645463325252u;
static uint32_t random_below(uint32_t n) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)(random_state >> 33) % n;
}

static ptx_module *parsed(const char *name, const char *text, size_t length) {
  ff_error error = {0};
  ptx_module *module = NULL;
  if (ptx_module_parse(name, text, length, &module, &error) != FF_OK) fail_msg("%s", error.message);
  return module;
}

/* The windows of a text; what they print to parses, and prints to the same again. */
static ptx_windows *windows_of(const char *name, const char *text, size_t length) {
  ptx_module *module = parsed(name, text, length);
  ptx_windows *windows = ptx_windows_make(module);
  ptx_module_free(module);
  ptx_module *again = parsed("windows", windows->text.chars, windows->text.length);
  ff_text printed = {0};
  ptx_print_module(again, &printed);
  assert_string_equal(printed.chars, windows->text.chars);
  for (uint32_t i = 0; i < windows->kernel_count; i++) {
    const ptx_window_kernel *kernel = &windows->kernels[i];
    const ptx_func *original = ptx_find_func(again, kernel->name);
    assert_true(original && original->entry && original->has_body);
    assert_int_equal(!kernel->window_name, !!kernel->reason);
    if (!kernel->window_name) continue;
    const ptx_func *window = ptx_find_func(again, kernel->window_name);
    assert_true(window && window->entry && window->has_body);
    assert_int_equal(window->param_count, original->param_count + 6);
    assert_int_equal(ptx_param_layout(window, NULL), kernel->bytes);
    assert_int_equal(kernel->bytes, kernel->offset + sizeof(ptx_window_params));
    assert_true(kernel->offset >= ptx_param_layout(original, NULL));
  }
  free(printed.chars);
  ptx_module_free(again);
  return windows;
}

/* ---- running ---- */

typedef struct box {
  uint32_t first[3], size[3];
} box;

/* Cuts boxes at random until there are `count`, or nothing to cut. */
static uint32_t cut(box *boxes, const uint32_t grid[3], uint32_t count) {
  uint32_t made = 1;
  boxes[0] = (box){{0, 0, 0}, {grid[0], grid[1], grid[2]}};
  for (uint32_t tries = 0; made < count && tries < 10 * count; tries++) {
    box *one = &boxes[random_below(made)];
    uint32_t d = random_below(3);
    if (one->size[d] < 2) continue;
    uint32_t at = 1 + random_below(one->size[d] - 1);
    box *other = &boxes[made++];
    *other = *one;
    other->first[d] += at;
    other->size[d] -= at;
    one->size[d] = at;
  }
  for (uint32_t i = made; i > 1; i--) {
    uint32_t j = random_below(i);
    box swapped = boxes[j];
    boxes[j] = boxes[i - 1];
    boxes[i - 1] = swapped;
  }
  return made;
}

enum { BOXES_MAX = 16, PARAMS_MAX = 256 };

static void run_windows(kernel_test *t, const ptx_window_kernel *kernel, const uint32_t grid[3],
                        const uint32_t block[3], const void *params, uint32_t param_bytes, uint32_t count) {
  box boxes[BOXES_MAX];
  unsigned char with[PARAMS_MAX] = {0};
  ff_error error = {0};
  assert_true(kernel->bytes <= sizeof with && param_bytes <= kernel->offset);
  if (param_bytes) memcpy(with, params, param_bytes);
  uint32_t made = cut(boxes, grid, count);
  for (uint32_t i = 0; i < made; i++) {
    ptx_window_params window = {{0}, {grid[0], grid[1], grid[2]}};
    memcpy(window.first, boxes[i].first, sizeof window.first);
    memcpy(with + kernel->offset, &window, sizeof window);
    if (launch_with(t, kernel->window_name, boxes[i].size, block, with, &error) != FF_OK) fail_msg("%s", error.message);
  }
}

#define OUT_BYTES 65536u

/* Kernel k(.param .u64 out, .param .u32 n) of the text, whole and in 1 to 12 windows. */
static void same_in_windows(const char *text, const uint32_t grid[3], const uint32_t block[3], uint32_t n) {
  ptx_windows *windows = windows_of("test.ptx", text, strlen(text));
  const ptx_window_kernel *kernel = ptx_windows_find(windows, "k");
  assert_non_null(kernel);
  if (kernel->reason) fail_msg("%s", kernel->reason);
  kernel_test *t = open_ptx(windows->text.chars);
  uint64_t whole = buffer(t, OUT_BYTES), parts = buffer(t, OUT_BYTES);
  struct {
    uint64_t out;
    uint32_t n;
  } params = {whole, n};
  ff_error error = {0};
  memset((void *)(uintptr_t)whole, 0, OUT_BYTES);
  if (launch_with(t, "k", grid, block, &params, &error) != FF_OK) fail_msg("%s", error.message);
  params.out = parts;
  for (uint32_t count = 1; count <= 12; count++) {
    memset((void *)(uintptr_t)parts, 0, OUT_BYTES);
    run_windows(t, kernel, grid, block, &params, 12, count);
    assert_memory_equal((void *)(uintptr_t)whole, (void *)(uintptr_t)parts, OUT_BYTES);
  }
  close_ptx(t);
  ptx_windows_free(windows);
}

#define KERNEL_HEAD                                                                                         \
  ".visible .entry k(.param .u64 p_out, .param .u32 p_n)\n{\n"                                              \
  ".reg .b64 %out; .reg .b32 %n; .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .b16 %rs<9>;\n" \
  "ld.param.u64 %out, [p_out]; ld.param.u32 %n, [p_n];\n"

/* out[linear block index][8]: what the block sees of the grid */
#define STORE_ALL                                                                                                       \
  "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;"                                                \
  "mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y; mov.u32 %r6, %nctaid.z;"                                             \
  "mad.lo.u32 %r7, %r3, %r5, %r2; mad.lo.u32 %r7, %r7, %r4, %r1; mul.wide.u32 %rd1, %r7, 32; add.u64 %rd1, %rd1, %out;" \
  "st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}; st.global.v4.u32 [%rd1+16], {%r5, %r6, %n, %r7};"

static void every_register(void **state) {
  same_in_windows(PTX_HEAD KERNEL_HEAD STORE_ALL "ret;\n}\n", (uint32_t[3]){7, 5, 3}, (uint32_t[3]){1, 1, 1}, 42);
  same_in_windows(PTX_HEAD KERNEL_HEAD STORE_ALL "ret;\n}\n", (uint32_t[3]){1, 1, 1}, (uint32_t[3]){3, 1, 1}, 42);
  same_in_windows(PTX_HEAD KERNEL_HEAD STORE_ALL "ret;\n}\n", (uint32_t[3]){100, 1, 1}, (uint32_t[3]){1, 1, 1}, 42);
}

/* 16-bit reads, a read in a loop that begins at the first instruction, a read as an operand, .v4 moves, a jump
 * table. */
static void odd_reads(void **state) {
  same_in_windows(
      PTX_HEAD KERNEL_HEAD
      "mov.u16 %rs1, %ctaid.x; cvt.u32.u16 %r8, %rs1; mov.b16 %rs2, %nctaid.x; cvt.u32.u16 %r9, %rs2;"
      "cvt.u64.u32 %rd2, %ctaid.x; mul.lo.u64 %rd2, %rd2, 8; add.u64 %rd2, %rd2, %out; st.global.v2.u32 [%rd2], {%r8, %r9};"
      "ret;\n}\n",
      (uint32_t[3]){50, 1, 1}, (uint32_t[3]){1, 1, 1}, 1);
  same_in_windows(
      PTX_HEAD
      ".visible .entry k(.param .u64 p_out, .param .u32 p_n)\n{\n.reg .b64 %rd<5>; .reg .b32 %r<9>; .reg .pred %p;"
      "L: mov.u32 %r1, %ctaid.x; add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, %r1; @%p bra L;"
      "ld.param.u64 %rd1, [p_out]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r2; ret;\n}\n",
      (uint32_t[3]){50, 1, 1}, (uint32_t[3]){1, 1, 1}, 1);
  same_in_windows(
      PTX_HEAD KERNEL_HEAD
      "mov.u32 %r1, %ctaid.x; and.b32 %r2, %r1, 1; mov.u32 %r3, 7;"
      "T: .branchtargets A, B;\n brx.idx %r2, T;\n A: mov.u32 %r3, 9; B: mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd1, %out;"
      "@%p1 mov.u32 %r3, %nctaid.x; st.global.u32 [%rd1], %r3; ret;\n}\n",
      (uint32_t[3]){50, 1, 1}, (uint32_t[3]){1, 1, 1}, 1);
}

/* Functions that read them: one with arguments, one without, one within another; and a variable of the module. */
static void functions(void **state) {
  same_in_windows(
      PTX_HEAD
      ".global .u32 seen;\n"
      ".func (.param .b32 r) width() { .reg .b32 %a; mov.u32 %a, %nctaid.x; st.param.b32 [r], %a; ret; }\n"
      ".func (.param .b32 r) plain(.param .b32 a) { .reg .b32 %a; ld.param.b32 %a, [a]; add.u32 %a, %a, 3; st.param.b32 [r], %a; ret; }\n"
      ".func (.param .b32 r) index(.param .b32 a) { .reg .b32 %a<9>; .param .b32 w; .reg .b64 %g; ld.param.b32 %a1, [a];\n"
      "  call.uni (w), width; ld.param.b32 %a2, [w]; mov.u32 %a3, %ctaid.x; mov.u32 %a4, %ctaid.y; mad.lo.u32 %a5, %a4, %a2, %a3;\n"
      "  add.u32 %a5, %a5, %a1; atom.global.add.u32 %a6, [seen], 1; st.param.b32 [r], %a5; ret; }\n" KERNEL_HEAD
      ".param .b32 one; .param .b32 two; mov.u32 %r1, 0; st.param.b32 [one], %r1; call.uni (two), index, (one); ld.param.b32 %r2, [two];\n"
      "st.param.b32 [one], %r2; call.uni (two), plain, (one); ld.param.b32 %r3, [two];\n"
      "mul.wide.u32 %rd1, %r2, 4; add.u64 %rd1, %rd1, %out; st.global.u32 [%rd1], %r3; ret;\n}\n",
      (uint32_t[3]){9, 6, 1}, (uint32_t[3]){1, 1, 1}, 0);
}

/* The last block to finish, found by counting to %nctaid.x, adds up. */
static void last_block(void **state) {
  same_in_windows(
      PTX_HEAD KERNEL_HEAD
      "atom.global.add.u32 %r1, [%out], 1; mov.u32 %r2, %nctaid.x; sub.u32 %r2, %r2, 1; setp.ne.u32 %p1, %r1, %r2;"
      "@%p1 bra E; st.global.u32 [%out+8], %r1; E: ret;\n}\n",
      (uint32_t[3]){33, 1, 1}, (uint32_t[3]){1, 1, 1}, 0);
}

/* Random kernels that read one buffer and leave what every register came to in another. */
static void random_kernels(void **state) {
  uint32_t compared = 0;
  for (uint64_t seed = 1; seed <= fewer(120, 4); seed++) {
    ff_text text = random_kernel_of(seed, true);
    ptx_windows *windows = windows_of("random", text.chars, text.length);
    const ptx_window_kernel *kernel = ptx_windows_find(windows, "k");
    const uint32_t grid[3] = {1 + (uint32_t)(seed % 9), 1 + (uint32_t)(seed % 4), 1},
                   block[3] = {1 + (uint32_t)(seed % 40), 1 + (uint32_t)(seed % 3), 1};
    kernel_test *t = open_ptx(windows->text.chars);
    t->config.max_instructions = 300000;
    struct {
      uint64_t a, b;
      uint32_t n, m;
    } params = {buffer(t, 4 * RANDOM_WORDS), 0, (uint32_t)seed * 5, (uint32_t)seed % 20};
    uint64_t whole = buffer(t, OUT_BYTES), parts = buffer(t, OUT_BYTES);
    ff_error error = {0};
    for (uint32_t i = 0; i < RANDOM_WORDS; i++) u32_at(params.a)[i] = i * 2654435761u >> (i % 31);
    memset((void *)(uintptr_t)whole, 0, OUT_BYTES);
    memset((void *)(uintptr_t)parts, 0, OUT_BYTES);
    params.b = whole;
    if (!kernel->window_name) fail_msg("%s", kernel->reason);
    if (launch_with(t, "k", grid, block, &params, &error) == FF_OK) {
      params.b = parts;
      run_windows(t, kernel, grid, block, &params, sizeof params, 1 + (uint32_t)seed % 12);
      assert_memory_equal((void *)(uintptr_t)whole, (void *)(uintptr_t)parts, OUT_BYTES);
      compared++;
    } else if (t->fault.kind != EXEC_FAULT_TIMEOUT) {
      fail_msg("%s", error.message);
    }
    free(text.chars);
    close_ptx(t);
    ptx_windows_free(windows);
  }
  assert_true(compared > fewer(80, 4));
}

/* ---- refusals ---- */

static void refused(const char *functions, const char *code, const char *expected) {
  ff_text text = {0};
  ff_text_add(&text, "%s%s\n%s%s\nret;\n}\n", PTX_HEAD, functions, KERNEL_HEAD, code);
  ptx_windows *windows = windows_of("test.ptx", text.chars, text.length);
  const ptx_window_kernel *kernel = ptx_windows_find(windows, "k");
  if (!expected) {
    if (kernel->reason) fail_msg("%s", kernel->reason);
  } else {
    if (kernel->window_name) fail_msg("has a window: %s", code);
    expect_text(kernel->reason, expected);
  }
  ptx_windows_free(windows);
  free(text.chars);
}

static void reasons(void **state) {
  refused("", "mov.u64 %rd1, %gridid;", "k reads %gridid at line");
  refused("", "mov.u32 %r1, %clusterid.x;", "k reads %clusterid.x at line");
  refused("", "mov.u32 %r1, %envreg2;", "k reads %envreg2");
  refused("", "barrier.cluster.arrive;", "waits for other blocks");
  /* the parser makes it one of the module: both kernels have the same */
  refused("", ".global .u32 own; st.global.u32 [own], 1;", NULL);
  refused(".extern .func far(.param .b32 a);", "call.uni far, (%r1);", "k calls far at line");
  refused(".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);",
          ".param .b32 r; call.uni (r), vprintf, (%rd1, %rd2);", NULL);
  refused("", "odd.thing %r1, %r2;", NULL);
  refused("", "odd.thing %r1, %ctaid.w;", "a statement at line");
  refused(".func f() { .reg .b64 %a; mov.u64 %a, %gridid; ret; }\n.func g() { call.uni f; ret; }", "call.uni g;",
          "f reads %gridid");
  refused(".func f(.reg .b32 a) { mov.u32 a, %ctaid.x; ret; }", "call.uni f, (%r1);", "has parameters in registers");
  /* calls by address */
  refused(".func f() { .reg .b32 %a; mov.u32 %a, %ctaid.x; ret; }",
          "mov.u64 %rd1, f; P: .callprototype _ (); call %rd1, (), P;", "by its address, and f");
  refused(".func f() { ret; }", "mov.u64 %rd1, f; P: .callprototype _ (); call %rd1, (), P;", NULL);
  refused(".func f() { .reg .b32 %a; mov.u32 %a, %ctaid.x; ret; }\n.global .u64 t[] = {f};",
          "ld.global.u64 %rd1, [t]; P: .callprototype _ (); call %rd1, (), P;", "by its address, and f");
  /* polling */
  refused("", "L: ld.volatile.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;", "polls memory in a loop");
  refused("", "L: atom.global.add.u32 %r1, [%out], 0; add.u32 %r2, %r1, 1; setp.lt.u32 %p1, %r2, %n; @%p1 bra L;",
          "polls memory in a loop");
  refused("", "L: ld.acquire.gpu.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0; @%p1 exit; bra L;",
          "polls memory in a loop");
  refused("", "L: atom.global.cas.b32 %r1, [%out], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;", NULL);
  refused("", "L: ld.volatile.shared.u32 %r1, [%r9]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;", NULL);
  refused("", "L: ld.volatile.global.u32 %r1, [%out]; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 5; @%p1 bra L;", NULL);
  refused("", "ld.volatile.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; L:", NULL);
}

static void sizes(void **state) {
  static const char *const format =
      PTX_HEAD ".entry k(.param .align 1 .b8 a[%u]) { ret; }\n.entry k__window() { ret; }\n.entry m() { ret; }\n";
  ff_text text = {0};
  ff_text_add(&text, format, 4072u);
  ptx_windows *windows = windows_of("test.ptx", text.chars, text.length);
  assert_int_equal(windows->kernel_count, 3);
  assert_string_equal(ptx_windows_find(windows, "k")->window_name, "k__window2");
  assert_int_equal(ptx_windows_find(windows, "k")->bytes, 4096);
  assert_int_equal(ptx_windows_find(windows, "m")->offset, 0);
  assert_null(ptx_windows_find(windows, "none"));
  ptx_windows_free(windows);
  text.length = 0;
  ff_text_add(&text, format, 4073u);
  windows = windows_of("test.ptx", text.chars, text.length);
  expect_text(ptx_windows_find(windows, "k")->reason, "no room");
  assert_null(ptx_windows_find(windows, "k")->window_name);
  ptx_windows_free(windows);
  free(text.chars);
}

/* ---- all texts there are: conformance cases and workloads ---- */

/* Is it a text of which windows can be made? Some cases are bodies only, or there to be refused. */
static bool one_text(const char *path, const char *text, size_t length) {
  ptx_module *module = NULL;
  if (ptx_module_parse(path, text, length, &module, NULL) != FF_OK) return false;
  ptx_module_free(module);
  ptx_windows_free(windows_of(path, text, length));
  return true;
}

/* A conformance file has a text per case: how many were read and cut into windows. */
static uint32_t texts_of(const char *path) {
  char *text;
  size_t length;
  uint32_t found = 0;
  ff_error error = {0};
  if (ff_file_read(path, 0, &text, &length, &error) != FF_OK) fail_msg("%s", error.message);
  uint32_t n = 0;
  for (case_place at = {0}; case_next(text, length, &at);)
    if (n++ % one_in(3) == 0) found += one_text(path, at.text, at.length);
  free(text);
  return found;
}

static uint32_t texts_below(const char *folder, int depth) {
  DIR *directory = opendir(folder);
  uint32_t found = 0;
  if (!directory) return 0;
  for (struct dirent *entry; (entry = readdir(directory));) {
    char path[4096];
    size_t length = strlen(entry->d_name);
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (length > 4 && strcmp(entry->d_name + length - 4, ".ptx") == 0) found += texts_of(path);
    else if (depth > 0) found += texts_below(path, depth - 1);
  }
  closedir(directory);
  return found;
}

static void all_texts(void **state) {
  assert_true(texts_below(FF_SOURCE_DIR "/tests/conformance", 1) > fewer(2000, 4));
  texts_below(FF_BUILD_DIR "/workloads", 0); /* those that are built */
}

int main(void) {
  test_isa = exec_isas()[0];
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_register), cmocka_unit_test(odd_reads),      cmocka_unit_test(functions),
      cmocka_unit_test(last_block),     cmocka_unit_test(random_kernels), cmocka_unit_test(reasons),
      cmocka_unit_test(sizes),          cmocka_unit_test(all_texts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
