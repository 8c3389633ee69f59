/* SPDX-License-Identifier: Apache-2.0 */
/* The range analysis (ptx/ranges/ranges.h) against the virtual GPU: what is proved of a launch is declared as its uses,
 * so that an access outside of it, of any block, by one byte, is a fault. First kernels whose ranges are known by hand,
 * then random ones. */
#include "core_harness.h"
#include "ptx/ranges/ranges.h"
#include "random_kernel.h"

enum { BUFFERS_MAX = 4 };

typedef struct setup { /* of a launch: parameters are the buffers' addresses, then the words */
  uint32_t grid[3], block[3];
  uint32_t buffer_bytes[BUFFERS_MAX], buffer_count;
  uint32_t words[4], word_count;
} setup;

static kernel_test *open_kernel(const char *text, const setup *s, unsigned char *params, uint32_t *param_bytes,
                                ptx_ranges_segment *segments) {
  kernel_test *t = open_ptx(text);
  *param_bytes = 0;
  for (uint32_t i = 0; i < s->buffer_count; i++) {
    segments[i] = (ptx_ranges_segment){buffer(t, s->buffer_bytes[i]), s->buffer_bytes[i]};
    memcpy(params + *param_bytes, &segments[i].base, 8);
    *param_bytes += 8;
  }
  memcpy(params + *param_bytes, s->words, 4 * s->word_count);
  *param_bytes += 4 * s->word_count;
  t->config.max_instructions = 300000;
  return t;
}

static void declare(const ptx_ranges_segment *segment, const ptx_range *range, bool write, ff_virtual_use *use) {
  *use = (ff_virtual_use){
      .base = segment->base + range->offset, .bytes = range->bytes, .read = !write, .write = write, .segment = "it"};
  if (range->whole || range->start > (int64_t)range->offset) return; /* a use's blocks count from where it begins */
  use->base = segment->base + (uint64_t)range->start;
  use->bytes = (uint64_t)((int64_t)(range->offset + range->bytes) - range->start);
  memcpy(use->per_block, range->per_block, sizeof use->per_block);
  use->block_bytes = range->block_bytes;
}

/* Runs the launch with exactly the proved ranges declared. False: it ran too long, or divided by zero or the like; says
 * nothing. */
static bool check_launch(kernel_test *t, const setup *s, const void *params, const ptx_ranges_segment *segments,
                         const ptx_ranges *found, const char *text) {
  ff_virtual_use uses[2 * BUFFERS_MAX];
  uint32_t count = 0;
  ff_error error = {0};
  exec_kernel *kernel;
  for (uint32_t i = 0; i < found->segment_count; i++) {
    if (found->segments[i].reads.any) declare(&segments[i], &found->segments[i].reads, false, &uses[count++]);
    if (found->segments[i].writes.any) declare(&segments[i], &found->segments[i].writes, true, &uses[count++]);
  }
  if (exec_program_kernel(t->program, "k", &kernel, &error) != FF_OK) fail_msg("%s", error.message);
  exec_launch_request request = {.kernel = kernel,
                                 .grid = {s->grid[0], s->grid[1], s->grid[2]},
                                 .block = {s->block[0], s->block[1], s->block[2]},
                                 .params = params,
                                 .uses = uses,
                                 .use_count = count};
  memset(&t->fault, 0, sizeof t->fault);
  ff_status status = exec_launch(&t->config, &request, &t->stats, &t->fault, &error);
  if (status == FF_OK) return true;
  if (t->fault.kind == EXEC_FAULT_TIMEOUT) return false;
  fail_msg("%s\n%s", error.message, text);
  return false;
}

static void put(ff_text *out, const char *mode, const ptx_range *range) {
  static const char *const axes = "xyz";
  if (!range->any) return;
  ff_text_add(out, "%s%s ", out->length ? "; " : "", mode);
  for (int d = 0; d < 3; d++)
    if (range->per_block[d]) ff_text_add(out, "%c*%lld", axes[d], (long long)range->per_block[d]);
  if (!range->whole)
    ff_text_add(out, "[%lld,%lld)", (long long)range->start, (long long)(range->start + (int64_t)range->block_bytes));
  ff_text_add(out, "of[%llu,%llu)", (unsigned long long)range->offset,
              (unsigned long long)(range->offset + range->bytes));
}

#define HEAD \
  "ld.param.u64 %a, [pa]; ld.param.u64 %b, [pb]; ld.param.u32 %n, [pn]; ld.param.u32 %m, [pm]; mov.u32 %x, %ctaid.x; mov.u32 %t, %tid.x; mov.u32 %w, %ntid.x;\n"
#define INDEX HEAD "mad.lo.s32 %i, %x, %w, %t;\n"

static const setup one_d = {.grid = {10, 1, 1},
                            .block = {32, 1, 1},
                            .buffer_bytes = {1200, 1200},
                            .buffer_count = 2,
                            .words = {300, 7},
                            .word_count = 2};
static const setup two_d = {.grid = {4, 5, 1},
                            .block = {16, 4, 1},
                            .buffer_bytes = {5120, 5120},
                            .buffer_count = 2,
                            .words = {64, 20},
                            .word_count = 2};

/* The body's ranges of both buffers are these, and the launch stays in them. */
static void expect_ranges(const setup *s, const char *body, const char *a, const char *b) {
  unsigned char params[64];
  uint32_t param_bytes;
  ptx_ranges_segment segments[BUFFERS_MAX];
  ff_text text = {0};
  ff_text_add(
      &text,
      "%s.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u32 pn, .param .u32 pm)\n{\n"
      ".reg .b64 %%a, %%b, %%p, %%q, %%s<9>; .reg .b32 %%n, %%m, %%x, %%y, %%t, %%u, %%w, %%h, %%i, %%j, %%k, %%l, %%r<20>; .reg .pred %%c<9>; .reg .f32 %%f<4>; .reg .b16 %%v<4>;\n%s\nEND: ret;\n}\n",
      PTX_HEAD, body);
  kernel_test *t = open_kernel(text.chars, s, params, &param_bytes, segments);
  ptx_ranges_launch launch = {
      .params = params, .param_bytes = param_bytes, .segments = segments, .segment_count = s->buffer_count};
  memcpy(launch.grid, s->grid, sizeof launch.grid);
  memcpy(launch.block, s->block, sizeof launch.block);
  ptx_ranges found;
  ptx_ranges_find(ptx_find_func(t->module, "k"), &launch, &found);
  if (!found.complete) fail_msg("%s\n%s", found.reason, body);
  const char *expected[2] = {a, b};
  for (uint32_t i = 0; i < 2; i++) {
    ff_text out = {0};
    ff_text_add(&out, "%s", "");
    put(&out, "r", &found.segments[i].reads);
    put(&out, "w", &found.segments[i].writes);
    if (strcmp(out.chars, expected[i]) != 0)
      fail_msg("buffer %u: '%s' was expected, not '%s' (%s), of\n%s", i, expected[i], out.chars,
               found.segments[i].reason, body);
    free(out.chars);
  }
  for (uint32_t i = 0; i < s->buffer_count; i++) memset((void *)(uintptr_t)segments[i].base, 0, segments[i].bytes);
  assert_true(check_launch(t, s, params, segments, &found, text.chars));
  ptx_ranges_free(&found);
  free(text.chars);
  close_ptx(t);
}

#define AT(p, base, index) "mul.wide.s32 " p ", " index ", 4; add.s64 " p ", " base ", " p ";\n"
#define LOAD_A(index) AT("%p", "%a", index) "ld.global.f32 %f1, [%p];\n"
#define STORE_B(index) AT("%q", "%b", index) "st.global.f32 [%q], %f1;\n"

static void lines(void **state) {
  expect_ranges(&one_d, INDEX "setp.ge.s32 %c1, %i, %n; @%c1 bra END;\n" LOAD_A("%i") STORE_B("%i"),
                "r x*128[0,128)of[0,1200)", "w x*128[0,128)of[0,1200)");
  /* unsigned; a predicate instead of a branch; a narrow index */
  expect_ranges(
      &one_d,
      INDEX
      "setp.lt.u32 %c1, %i, 100; cvt.u64.u32 %s1, %i; shl.b64 %s2, %s1, 2; add.s64 %p, %a, %s2; @%c1 ld.global.f32 %f1, [%p];",
      "r x*128[0,128)of[0,400)", "");
  /* a neighbour on each side, and the check of both by one comparison */
  expect_ranges(&one_d,
                INDEX "add.s32 %j, %i, -1; add.s32 %r1, %n, -2; setp.ge.u32 %c1, %j, %r1; @%c1 bra END;\n" LOAD_A(
                    "%j") "ld.global.f32 %f2, [%p+8];" STORE_B("%i"),
                "r x*128[-4,132)of[0,1200)", "w x*128[0,128)of[4,1196)");
  /* clamped to the edges */
  expect_ranges(
      &one_d,
      INDEX
      "setp.ge.s32 %c1, %i, %n; @%c1 bra END; add.s32 %j, %i, -1; max.s32 %j, %j, 0; add.s32 %k, %i, 1; add.s32 %r1, %n, -1; min.s32 %k, %k, %r1;\n" LOAD_A(
          "%j") LOAD_A("%k"),
      "r x*128[-4,132)of[0,1200)", "");
  expect_ranges(
      &one_d,
      INDEX
      "setp.ge.s32 %c1, %i, %n; @%c1 bra END; add.s32 %j, %i, -1; setp.lt.s32 %c2, %j, 0; selp.b32 %j, 0, %j, %c2;\n" LOAD_A(
          "%j"),
      "r x*128[-4,124)of[0,1196)", "");
  /* backwards */
  expect_ranges(&one_d,
                INDEX "setp.ge.s32 %c1, %i, %n; @%c1 bra END; sub.s32 %j, %n, %i; add.s32 %j, %j, -1;\n" LOAD_A("%j"),
                "r x*-128[1072,1200)of[0,1200)", "");
  /* the same for all; nothing; one value loaded */
  expect_ranges(&one_d, INDEX LOAD_A("%t") STORE_B("7"), "r of[0,128)", "w of[28,32)");
  expect_ranges(&one_d, INDEX "setp.gt.s32 %c1, %i, 5000; @!%c1 bra END;" LOAD_A("%i"), "", "");
  expect_ranges(&one_d,
                INDEX "setp.ge.s32 %c1, %i, %n; @%c1 bra END;" AT(
                    "%p", "%a", "%i") "ld.global.u32 %j, [%p]; rem.u32 %j, %j, 100;" STORE_B("%j"),
                "r x*128[0,128)of[0,1200)", "w of[0,400)");
  expect_ranges(&one_d,
                INDEX
                "setp.ge.s32 %c1, %i, %n; @%c1 bra END;" AT("%p", "%a", "%i") "ld.global.u32 %j, [%p];" STORE_B("%j"),
                "r x*128[0,128)of[0,1200)", "w of[0,1200)");
  expect_ranges(&one_d,
                INDEX
                "setp.ge.s32 %c1, %i, %n; @%c1 bra END;" AT("%p", "%a", "%i") "ld.global.u8 %j, [%p];" STORE_B("%j"),
                "r x*128[0,125)of[0,1197)", "w of[0,1024)");
}

#define PLANE \
  HEAD        \
      "mov.u32 %y, %ctaid.y; mov.u32 %u, %tid.y; mad.lo.s32 %i, %x, %w, %t; mov.u32 %h, %ntid.y; mad.lo.s32 %j, %y, %h, %u;\n"

static void planes(void **state) {
  /* a tile; its transpose; rows with those above and below */
  expect_ranges(&two_d, PLANE "mad.lo.s32 %k, %j, %n, %i;" LOAD_A("%k") "mad.lo.s32 %l, %i, %m, %j;" STORE_B("%l"),
                "r x*64y*1024[0,832)of[0,5120)", "w x*1280y*16[0,1216)of[0,5120)");
  expect_ranges(
      &two_d,
      PLANE
      "setp.eq.s32 %c1, %j, 0; add.s32 %r1, %m, -1; setp.eq.s32 %c2, %j, %r1; or.pred %c3, %c1, %c2; @%c3 bra END;\n"
      "add.s32 %r2, %j, -1; mad.lo.s32 %k, %r2, %n, %i;" LOAD_A(
          "%k") "add.s32 %r2, %j, 1; mad.lo.s32 %k, %r2, %n, %i;" LOAD_A("%k") "mad.lo.s32 %k, %j, %n, %i;" STORE_B("%k"),
      "r x*64y*1024[-256,1088)of[0,5120)", "w x*64y*1024[0,832)of[256,4864)");
  /* an index that is one number, taken apart and put together */
  expect_ranges(
      &one_d,
      INDEX
      "setp.ge.s32 %c1, %i, %n; @%c1 bra END; shr.u32 %j, %i, 3; and.b32 %k, %i, 7; mad.lo.s32 %l, %j, 8, %k;" LOAD_A(
          "%l"),
      "r x*128[0,128)of[0,1200)", "");
  expect_ranges(
      &one_d,
      INDEX
      "setp.ge.s32 %c1, %i, %n; @%c1 bra END; div.u32 %j, %i, 16; rem.u32 %k, %i, 16; shl.b32 %l, %j, 4; or.b32 %l, %l, %k;" LOAD_A(
          "%l"),
      "r x*128[0,128)of[0,1200)", "");
}

static void loops(void **state) {
  /* a row of %m words; counted up, down, by pointers, to an end found by not-equal */
  static const char *const row[] = {
      "mov.u32 %k, 0; L: mad.lo.s32 %l, %j, %m, %k;" LOAD_A(
          "%l") "add.s32 %k, %k, 1; setp.lt.s32 %c2, %k, %m; @%c2 bra L;",
      "mov.u32 %k, 0; L: setp.ge.s32 %c2, %k, %m; @%c2 bra END; mad.lo.s32 %l, %j, %m, %k;" LOAD_A(
          "%l") "add.s32 %k, %k, 1; bra L;",
      "mul.lo.s32 %l, %j, %m;" AT(
          "%p", "%a",
          "%l") "neg.s32 %k, %m; L: ld.global.f32 %f1, [%p]; add.s64 %p, %p, 4; add.s32 %k, %k, 1; setp.ne.s32 %c2, %k, 0; @%c2 bra L;",
      "mul.lo.s32 %l, %j, %m;" AT(
          "%p", "%a",
          "%l") "mul.wide.s32 %s1, %m, 4; add.s64 %s1, %p, %s1; L: ld.global.f32 %f1, [%p]; add.s64 %p, %p, 4; setp.ne.s64 %c2, %p, %s1; @%c2 bra L;",
      "mov.u32 %k, %m; L: add.s32 %k, %k, -1; mad.lo.s32 %l, %j, %m, %k;" LOAD_A(
          "%l") "setp.gt.s32 %c2, %k, 0; @%c2 bra L;",
      "mul.wide.s32 %s1, %j, 28; mov.u64 %s2, 0; cvt.s64.s32 %s3, %m; L: add.s64 %p, %a, %s1; shl.b64 %s4, %s2, 2; add.s64 %p, %p, %s4; ld.global.f32 %f1, [%p]; add.s64 %s2, %s2, 1; setp.lt.u64 %c2, %s2, %s3; @%c2 bra L;"};
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    ff_text body = {0};
    ff_text_add(&body, "%s%s", INDEX "shr.s32 %j, %i, 3; setp.gt.s32 %c1, %j, 39; @%c1 bra END;\n", row[i]);
    expect_ranges(&one_d, body.chars, "r x*112[0,112)of[0,1120)", "");
    free(body.chars);
  }
  /* over the whole grid */
  expect_ranges(&one_d,
                INDEX
                "mov.u32 %r1, %nctaid.x; mul.lo.s32 %r1, %r1, %w; L: setp.ge.s32 %c2, %i, %n; @%c2 bra END;" LOAD_A(
                    "%i") "add.s32 %i, %i, %r1; bra L;",
                "r x*128[0,1200)of[0,1200)", "");
  /* two counters within each other */
  expect_ranges(&one_d,
                INDEX
                "mov.u32 %k, 0; O: mov.u32 %l, 0; I: mad.lo.s32 %r1, %k, 4, %l; mad.lo.s32 %r1, %x, 20, %r1;" LOAD_A(
                    "%r1") "add.s32 %l, %l, 1; setp.ne.s32 %c1, %l, 4; @%c1 bra I;"
                           "add.s32 %k, %k, 1; setp.ne.s32 %c2, %k, 5; @%c2 bra O;",
                "r x*80[0,80)of[0,800)", "");
  /* a pointer that goes on over both */
  expect_ranges(
      &one_d,
      INDEX "mul.lo.s32 %r1, %x, 20;" AT(
          "%p", "%a",
          "%r1") "mov.u32 %k, 0; O: mov.u32 %l, 0; I: ld.global.f32 %f1, [%p]; add.s64 %p, %p, 4; add.s32 %l, %l, 1; setp.ne.s32 %c1, %l, 4; @%c1 bra I;"
                 "add.s32 %k, %k, 1; setp.ne.s32 %c2, %k, 5; @%c2 bra O;",
      "r x*80[0,80)of[0,800)", "");
}

/* ---- limits ---- */

static ptx_ranges find(const char *text, const ptx_ranges_launch *launch) {
  ff_error error = {0};
  ptx_module *module;
  if (ptx_module_parse("test.ptx", text, strlen(text), &module, &error) != FF_OK) fail_msg("%s", error.message);
  ptx_ranges found;
  ptx_ranges_find(ptx_find_func(module, "k"), launch, &found);
  ptx_module_free(module);
  return found;
}

static void reasons(void **state) {
  uint64_t params[2] = {4096, 8192};
  ptx_ranges_segment segments[2] = {{4096, 1024}, {8192, 1024}};
  ptx_ranges_launch launch = {{8, 1, 1}, {32, 1, 1}, params, sizeof params, segments, 2};
  ptx_ranges found = find(PTX_HEAD ".func f() { ret; }\n.entry k(.param .u64 a) { call.uni f; ret; }", &launch);
  assert_false(found.complete);
  expect_text(found.reason, "it calls f at line 5");
  assert_true(found.segments[1].all.whole && found.segments[1].writes.whole && found.segments[1].reads.bytes == 1024);
  ptx_ranges_free(&found);
  /* an address that came from memory may be any */
  found = find(
      PTX_HEAD
      ".entry k(.param .u64 a) { .reg .b64 %p; ld.param.u64 %p, [a];\nld.global.u64 %p, [%p];\nst.global.u32 [%p], 1; ret; }",
      &launch);
  assert_true(found.complete && !found.assumed && found.segments[0].writes.whole && found.segments[1].writes.whole);
  assert_int_equal(found.segments[1].line, 6);
  assert_string_equal(found.segments[1].reason,
                      "the access at line 6: its address depends on a value loaded at line 5");
  assert_int_equal(found.segments[0].reads.bytes, 8);
  ptx_ranges_free(&found);
  /* one that is known, plus something unknown, stays in its segment */
  found = find(
      PTX_HEAD
      ".entry k(.param .u64 a) { .reg .b64 %p, %q; ld.param.u64 %p, [a];\nld.global.u64 %q, [%p]; shl.b64 %q, %q, 2; add.s64 %p, %p, %q;\nst.global.u32 [%p], 1; ret; }",
      &launch);
  assert_true(found.complete && found.assumed && found.segments[0].writes.whole && !found.segments[1].all.any);
  assert_int_equal(found.assumed_line, 6);
  ptx_ranges_free(&found);
  launch.grid[1] = 0;
  found = find(PTX_HEAD ".entry k() { ret; }", &launch);
  assert_false(found.complete);
  ptx_ranges_free(&found);
}

static void blocks(void **state) {
  ptx_range range = {
      .any = true, .offset = 100, .bytes = 1000, .start = 80, .per_block = {50, -20, 0}, .block_bytes = 60};
  uint64_t begin, end;
  ptx_range_of_blocks(&range, (uint32_t[3]){0, 0, 0}, (uint32_t[3]){1, 1, 1}, &begin, &end);
  assert_int_equal(begin, 100);
  assert_int_equal(end, 140);
  ptx_range_of_blocks(&range, (uint32_t[3]){4, 1, 0}, (uint32_t[3]){2, 3, 9}, &begin, &end);
  assert_int_equal(begin, 80 + 200 - 60);
  assert_int_equal(end, 80 + 250 - 20 + 60);
  ptx_range_of_blocks(&range, (uint32_t[3]){4000000000u, 1, 0}, (uint32_t[3]){2, 3, 9}, &begin, &end);
  assert_int_equal(begin, end);
}

/* ---- random kernels ---- */

static void random_kernels(void **state) {
  const char *asked = getenv("RANGES_KERNELS"), *from = getenv("RANGES_FROM");
  uint64_t count = asked ? strtoull(asked, NULL, 10) : SHARE(400, 4), first = from ? strtoull(from, NULL, 10) : 1,
           ran = 0, proved = 0, touched = 0;
  for (uint64_t seed = first; seed < first + count; seed++) {
    ff_text text = random_kernel_text(seed);
    setup s = {.grid = {1 + (uint32_t)(seed % 9), 1 + (uint32_t)(seed % 4), 1},
               .block = {1 + (uint32_t)(seed % 40), 1 + (uint32_t)(seed % 3), 1},
               .buffer_bytes = {4 * RANDOM_WORDS, 4 * RANDOM_WORDS},
               .buffer_count = 2,
               .words = {(uint32_t)(seed % 7 ? seed % 1100 : 0u - (uint32_t)seed), (uint32_t)(seed * 7 % 50)},
               .word_count = 2};
    unsigned char params[64];
    uint32_t param_bytes;
    ptx_ranges_segment segments[BUFFERS_MAX];
    kernel_test *t = open_kernel(text.chars, &s, params, &param_bytes, segments);
    for (uint32_t i = 0; i < 2 * RANDOM_WORDS; i++)
      u32_at(segments[i / RANDOM_WORDS].base)[i % RANDOM_WORDS] = (uint32_t)(i * 2654435761u * seed >> (i % 31));
    ptx_ranges_launch launch = {.params = params, .param_bytes = param_bytes, .segments = segments, .segment_count = 2};
    memcpy(launch.grid, s.grid, sizeof launch.grid);
    memcpy(launch.block, s.block, sizeof launch.block);
    ptx_ranges found;
    ptx_ranges_find(ptx_find_func(t->module, "k"), &launch, &found);
    if (!found.complete) fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, found.reason, text.chars);
    for (int i = 0; i < 2; i++) {
      touched += found.segments[i].all.any;
      proved +=
          found.segments[i].all.any && (!found.segments[i].all.whole || found.segments[i].all.bytes < 4 * RANDOM_WORDS);
    }
    ran += check_launch(t, &s, params, segments, &found, text.chars);
    ptx_ranges_free(&found);
    free(text.chars);
    close_ptx(t);
  }
  printf("%llu kernels, %llu ran to the end; %llu of %llu ranges are narrower than the buffer\n",
         (unsigned long long)count, (unsigned long long)ran, (unsigned long long)proved, (unsigned long long)touched);
  assert_true(ran * 10 > count * 7 && proved * 3 > touched);
}

int main(void) {
  test_isa = exec_isas()[0];
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines),   cmocka_unit_test(planes), cmocka_unit_test(loops),
      cmocka_unit_test(reasons), cmocka_unit_test(blocks), cmocka_unit_test(random_kernels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
