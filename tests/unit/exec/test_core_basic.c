/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels without divergence: thread numbers, every state space, sizes and vectors of accesses, moves, parameters. */
#include "core_harness.h"

#define TID "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;\n"
#define AT "mul.wide.u32 %rd1, %r4, 4; add.s64 %rd2, %out, %rd1;\n" /* %rd2: the thread's word */

static void test_vector_add(void **state) {
  kernel_test *t =
      open_body("", TID "setp.ge.u32 %p1, %r4, %n; @%p1 bra DONE;" AT
                        "ld.global.u32 %r5, [%rd2]; add.s32 %r5, %r5, %r4; st.global.u32 [%rd2], %r5; DONE:");
  uint64_t out = buffer(t, 4000);
  for (uint32_t i = 0; i < 1000; i++) u32_at(out)[i] = 10 * i;
  run(t, "k", 8, 128, out, 1000);
  for (uint32_t i = 0; i < 1000; i++) assert_int_equal(u32_at(out)[i], 11 * i);
  /* 31 warps run 14 instructions, the last one's 8 lanes also; 1 warp only 8 */
  assert_int_equal(t->stats.warp_instructions, 32 * 14);
  assert_int_equal(t->stats.blocks, 8);
  assert_int_equal(t->stats.warp_accesses, 64);
  assert_int_equal(t->stats.divergent_branches, 1);
  close_ptx(t);
}

static void test_thread_numbers(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mov.u32 %r6, %ntid.z;"
      "mov.u32 %r7, %ctaid.x; mov.u32 %r8, %ctaid.y; mov.u32 %r9, %ctaid.z; mov.u32 %r10, %nctaid.x; mov.u32 %r11, %nctaid.y;"
      "mad.lo.u32 %r12, %r9, %r11, %r8; mad.lo.u32 %r12, %r12, %r10, %r7;" /* block */
      "mad.lo.u32 %r13, %r3, %r5, %r2; mad.lo.u32 %r13, %r13, %r4, %r1;"   /* thread */
      "mul.lo.u32 %r14, %r4, %r5; mul.lo.u32 %r14, %r14, %r6; mad.lo.u32 %r15, %r12, %r14, %r13;"
      "mul.wide.u32 %rd1, %r15, 16; add.s64 %rd2, %out, %rd1; mov.u32 %r16, %laneid; mov.u32 %r17, %warpid;"
      "mad.lo.u32 %r16, %r8, 0x100, %r16; mad.lo.u32 %r16, %r9, 0x1000, %r16;" /* y and z by themselves, too */
      "mad.lo.u32 %r16, %r2, 0x10000, %r16; mad.lo.u32 %r16, %r3, 0x100000, %r16;"
      "st.global.v4.u32 [%rd2], {%r12, %r13, %r16, %r17};");
  uint64_t out = buffer(t, 3 * 2 * 2 * 70 * 16);
  struct {
    uint64_t out;
    uint32_t n;
  } params = {out, 0};
  ff_error error = {0};
  assert_int_equal(launch_with(t, "k", (uint32_t[]){3, 2, 2}, (uint32_t[]){7, 5, 2}, &params, &error), FF_OK);
  for (uint32_t b = 0; b < 12; b++)
    for (uint32_t i = 0; i < 70; i++) {
      const uint32_t *got = u32_at(out) + 4 * (b * 70 + i);
      assert_int_equal(got[0], b);
      assert_int_equal(got[1], i);
      assert_int_equal(got[2], i % 32 | b / 3 % 2 << 8 | b / 6 << 12 | i / 7 % 5 << 16 | i / 35 << 20);
      assert_int_equal(got[3], i / 32);
    }
  close_ptx(t);
}

static void test_special_registers(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 64; add.s64 %rd2, %out, %rd1;"
      "mov.u32 %r2, %lanemask_eq; st.global.u32 [%rd2], %r2; mov.u32 %r2, %lanemask_lt; st.global.u32 [%rd2+4], %r2;"
      "mov.u32 %r2, %lanemask_le; st.global.u32 [%rd2+8], %r2; mov.u32 %r2, %lanemask_gt; st.global.u32 [%rd2+12], %r2;"
      "mov.u32 %r2, %lanemask_ge; st.global.u32 [%rd2+16], %r2; mov.u32 %r2, %nsmid; st.global.u32 [%rd2+20], %r2;"
      "mov.u32 %r2, WARP_SZ; st.global.u32 [%rd2+24], %r2; mov.u64 %rd3, %clock64; mov.u64 %rd4, %clock64;"
      "sub.s64 %rd3, %rd4, %rd3; st.global.u64 [%rd2+32], %rd3; mov.u32 %r3, %dynamic_smem_size; st.global.u32 [%rd2+40], %r3;"
      "add.u32 %r4, %laneid, 5; st.global.u32 [%rd2+44], %r4; cvt.u64.u32 %rd5, %nctaid.x; st.global.u64 [%rd2+48], %rd5;");
  uint64_t out = buffer(t, 64 * 64);
  t->shared = 48;
  run(t, "k", 1, 64, out, 0);
  for (uint32_t i = 0; i < 64; i++) {
    const uint32_t *got = u32_at(out + 64 * i), lane = i % 32;
    assert_int_equal(got[0], 1u << lane);
    assert_int_equal(got[1], (1u << lane) - 1);
    assert_int_equal(got[2], (2u << lane) - 1);
    assert_int_equal(got[3], ~((2u << lane) - 1));
    assert_int_equal(got[4], ~((1u << lane) - 1));
    assert_int_equal(got[5], 4);
    assert_int_equal(got[6], 32);
    assert_int_equal(got[8], 1);
    assert_int_equal(got[10], 48);
    assert_int_equal(got[11], lane + 5);
    assert_int_equal(got[12], 1);
  }
  close_ptx(t);
}

/* Each size and extension, as a row, uniform, and scattered backwards; all lanes, and odd lanes only. */
static void test_load_sizes(void **state) {
  static const struct {
    const char *type, *reg;
    uint32_t bytes;
    bool sign;
    uint32_t keep;
  } kinds[] = {{"u8", "%r10", 1, false, 32},   {"s8", "%r10", 1, true, 32},    {"u16", "%r10", 2, false, 32},
               {"s16", "%r10", 2, true, 32},   {"u32", "%r10", 4, false, 32},  {"s32", "%r10", 4, true, 32},
               {"f32", "%f1", 4, false, 32},   {"b64", "%rd10", 8, false, 64}, {"u8", "%rs1", 1, false, 16},
               {"s8", "%rs1", 1, true, 16},    {"s16", "%rs1", 2, true, 16},   {"u8", "%rd10", 1, false, 64},
               {"s8", "%rd10", 1, true, 64},   {"u16", "%rd10", 2, false, 64}, {"s16", "%rd10", 2, true, 64},
               {"u32", "%rd10", 4, false, 64}, {"s32", "%rd10", 4, true, 64},  {"f64", "%fd1", 8, false, 64}};
  static const char *const patterns[] = {"mov.u32 %r5, %r3;", "mov.u32 %r5, 3;", "sub.u32 %r5, 31, %r3;",
                                         "shl.b32 %r5, %r3, 1;"};
  static const char *const spaces[] = {"global", "shared"};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    for (uint32_t pattern = 0; pattern < 4; pattern++)
      for (uint32_t space = 0; space < 2; space++) {
        char body[2048];
        const char *wide = kinds[k].keep == 64      ? ""
                           : kinds[k].keep == 16    ? "cvt.u64.u16 %rd10, %rs1;"
                           : kinds[k].reg[1] == 'f' ? "mov.b32 %r10, %f1; cvt.u64.u32 %rd10, %r10;"
                                                    : "cvt.u64.u32 %rd10, %r10;";
        if (!strcmp(kinds[k].reg, "%fd1")) wide = "mov.b64 %rd10, %fd1;";
        snprintf(
            body, sizeof body,
            "mov.u32 %%r3, %%tid.x; %s mul.lo.u32 %%r6, %%r5, %u; mov.u32 %%r20, buf; shl.b32 %%r21, %%r3, 4; add.u32 %%r21, %%r20, %%r21;"
            "mul.wide.u32 %%rd5, %%r3, 16; add.s64 %%rd6, %%out, %%rd5; ld.global.v4.u32 {%%r30,%%r31,%%r32,%%r33}, [%%rd6];"
            "st.shared.v4.u32 [%%r21], {%%r30,%%r31,%%r32,%%r33}; bar.sync 0;"
            "cvt.u64.u32 %%rd1, %%r6; add.s64 %%rd2, %%out, %%rd1; add.u32 %%r7, %%r20, %%r6;"
            "and.b32 %%r8, %%r3, %%n; setp.ne.u32 %%p1, %%r8, 0; @%%p1 bra END; ld.%s.%s %s, [%s]; %s"
            "mul.wide.u32 %%rd3, %%r3, 8; add.s64 %%rd4, %%out, %%rd3; st.global.u64 [%%rd4+512], %%rd10; END:",
            patterns[pattern], kinds[k].bytes, spaces[space], kinds[k].type, kinds[k].reg, space ? "%r7" : "%rd2",
            wide);
        kernel_test *t = open_body(".shared .align 16 .b8 buf[512];", body);
        uint64_t out = buffer(t, 1024);
        for (uint32_t odd = 0; odd < 2; odd++) {
          for (uint32_t i = 0; i < 512; i++) ((uint8_t *)u32_at(out))[i] = (uint8_t)(i * 37 + 100);
          memset(u32_at(out + 512), 0x55, 512);
          run(t, "k", 1, 32, out, odd);
          for (uint32_t lane = 0; lane < 32; lane++) {
            uint32_t index = pattern == 0 ? lane : pattern == 1 ? 3 : pattern == 2 ? 31 - lane : 2 * lane;
            uint64_t want = 0;
            memcpy(&want, (char *)u32_at(out) + index * kinds[k].bytes, kinds[k].bytes);
            uint32_t unused = 64 - 8 * kinds[k].bytes;
            if (kinds[k].sign) want = (uint64_t)((int64_t)(want << unused) >> unused);
            if (kinds[k].keep < 64) want &= (UINT64_C(1) << kinds[k].keep) - 1;
            if (odd && lane % 2) want = 0x5555555555555555;
            if (u64_at(out + 512)[lane] != want)
              fail_msg("ld.%s.%s %s pattern %u odd %u lane %u: %llx, not %llx", spaces[space], kinds[k].type,
                       kinds[k].reg, pattern, odd, lane, (unsigned long long)u64_at(out + 512)[lane],
                       (unsigned long long)want);
          }
        }
        close_ptx(t);
      }
}

static void test_store_sizes(void **state) {
  static const struct {
    const char *type, *reg;
    uint32_t bytes;
  } kinds[] = {{"u8", "%r10", 1},  {"u16", "%r10", 2},  {"b32", "%r10", 4}, {"b64", "%rd10", 8},
               {"b8", "%rd10", 1}, {"b16", "%rd10", 2}, {"b32", "%rd10", 4}};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    for (uint32_t pattern = 0; pattern < 3; pattern++)
      for (uint32_t odd = 0; odd < 2; odd++) {
        char body[1024];
        snprintf(
            body, sizeof body,
            "mov.u32 %%r3, %%tid.x; %s mul.wide.u32 %%rd1, %%r5, %u; add.s64 %%rd2, %%out, %%rd1; mul.lo.u32 %%r10, %%r3, 0x01020304;"
            "cvt.u64.u32 %%rd10, %%r10; shl.b64 %%rd11, %%rd10, 32; or.b64 %%rd10, %%rd10, %%rd11; and.b32 %%r8, %%r3, %%n;"
            "setp.ne.u32 %%p1, %%r8, 0; @!%%p1 st.global.%s [%%rd2], %s;",
            pattern == 0   ? "mov.u32 %r5, %r3;"
            : pattern == 1 ? "mov.u32 %r5, 5;"
                           : "sub.u32 %r5, 31, %r3;",
            kinds[k].bytes, kinds[k].type, kinds[k].reg);
        kernel_test *t = open_body("", body);
        uint64_t out = buffer(t, 256);
        uint8_t want[256];
        memset(want, 0xaa, 256);
        memset(u32_at(out), 0xaa, 256);
        for (uint32_t lane = 0; lane < 32; lane++) {
          uint64_t v = lane * UINT64_C(0x0102030401020304);
          v = (uint32_t)v | (uint64_t)(uint32_t)v << 32;
          uint32_t index = pattern == 0 ? lane : pattern == 1 ? 5 : 31 - lane;
          if (!odd || lane % 2 == 0) memcpy(want + index * kinds[k].bytes, &v, kinds[k].bytes);
        }
        run(t, "k", 1, 32, out, odd);
        assert_memory_equal(u32_at(out), want, 256);
        close_ptx(t);
      }
}

/* v2, v4 and v8 with sinks and overlapping registers, through every space that takes them. */
static void test_vectors(void **state) {
  kernel_test *t = open_body(
      ".shared .align 16 .b8 buf[1024];",
      "mov.u32 %r3, %tid.x; mul.wide.u32 %rd1, %r3, 32; add.s64 %rd2, %out, %rd1; mov.u64 %rd20, %rd2;"
      "ld.global.v8.b32 {%r10,%r11,%r12,%r13,%r14,%r15,%r16,%r17}, [%rd2]; add.u32 %r10, %r10, 1; add.u32 %r17, %r17, 2;"
      "st.global.v8.b32 [%rd2+1024], {%r10,%r11,%r12,%r13,%r14,%r15,%r16,%r17};"
      "ld.global.v2.u64 {%rd2, %rd3}, [%rd2];" /* the address register is a destination */
      "st.global.v2.u64 [%rd20+2048], {%rd3, %rd2}; ld.global.v4.u32 {%r10, _, _, %r13}, [%rd20+16]; add.u32 %r20, %r10, %r13;"
      "st.global.u32 [%rd20+2064], %r20; shl.b32 %r21, %r3, 4; mov.u32 %r22, buf; add.u32 %r22, %r22, %r21;"
      "ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%rd20]; st.shared.v4.f32 [%r22], {%f4,%f3,%f2,%f1}; bar.sync 0; xor.b32 %r22, %r22, 16;"
      "ld.shared.v2.b64 {%rd4,%rd5}, [%r22]; st.global.v2.b64 [%rd20+2080-16+16], {%rd4,%rd5};"
      "ld.global.v2.u8 {%rs1,%rs2}, [%rd20]; ld.global.v4.u16 {%rs3,%rs4,%rs5,%rs6}, [%rd20+8]; cvt.u32.u16 %r30, %rs2; cvt.u32.u16 %r31, %rs6;"
      "add.u32 %r30, %r30, %r31; st.global.u32 [%rd20+2068], %r30;");
  uint64_t out = buffer(t, 8192);
  for (uint32_t i = 0; i < 256; i++) u32_at(out)[i] = i * 0x1001;
  uint32_t before[256];
  memcpy(before, u32_at(out), 1024);
  run(t, "k", 1, 32, out, 0);
  for (uint32_t lane = 0; lane < 31; lane++) { /* lane 31's last store is behind */
    const uint32_t *in = before + 8 * lane, *v8 = u32_at(out + 1024 + 32 * lane),
                   *rest = u32_at(out + 2048 + 32 * lane);
    for (uint32_t e = 0; e < 8; e++) assert_int_equal(v8[e], in[e] + (e == 0) + 2 * (e == 7));
    if (lane == 0) { /* the others' were overwritten by the neighbour's second store */
      assert_int_equal(rest[0], in[2]);
      assert_int_equal(rest[1], in[3]);
      assert_int_equal(rest[2], in[0]);
    }
    assert_int_equal(rest[4], in[4] + in[7]);
    assert_int_equal(rest[5], (in[0] >> 8 & 0xff) + (in[3] >> 16));
    const uint32_t *swapped = before + 8 * (lane ^ 1);
    for (uint32_t e = 0; e < 4; e++) assert_int_equal(rest[8 + e], swapped[3 - e]);
  }
  close_ptx(t);
}

static void test_dynamic_shared(void **state) {
  kernel_test *t = open_body(
      ".shared .align 4 .b8 fixed[20];\n.extern .shared .align 16 .b8 dyn[];",
      "mov.u32 %r3, %tid.x; mov.u32 %r5, dyn; shl.b32 %r6, %r3, 2; add.u32 %r7, %r5, %r6; st.shared.u32 [%r7], %r3;"
      "mov.u32 %r20, fixed; st.shared.u32 [fixed+4], 9; bar.sync 0; sub.u32 %r8, 63, %r3; shl.b32 %r8, %r8, 2; add.u32 %r8, %r5, %r8;"
      "ld.shared.u32 %r9, [%r8]; mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %out, %rd1; st.global.u32 [%rd2], %r9;"
      "ld.shared.u32 %r10, [fixed+4]; st.global.u32 [%out+256], %r10; st.global.u32 [%out+260], %r5;");
  uint64_t out = buffer(t, 512);
  t->shared = 256;
  run(t, "k", 1, 64, out, 0);
  for (uint32_t i = 0; i < 64; i++) assert_int_equal(u32_at(out)[i], 63 - i);
  assert_int_equal(u32_at(out)[64], 9);
  assert_int_equal(u32_at(out)[65], 32); /* 20 bytes of static memory, then aligned to 16 */
  exec_kernel *kernel;
  assert_int_equal(exec_program_kernel(t->program, "k", &kernel, NULL), FF_OK);
  assert_int_equal(exec_kernel_describe(kernel)->static_shared, 20);
  close_ptx(t);
}

static void test_constants_and_globals(void **state) {
  kernel_test *t = open_body(
      ".const .align 4 .u32 table[4] = {10, 20, 30, 40};\n.global .align 8 .u64 pointers[2] = {table, counter+4};\n"
      ".global .align 4 .u32 counter[2] = {5, 6};\n.visible .global .align 4 .b8 zero[8];",
      "mov.u32 %r3, %tid.x; and.b32 %r5, %r3, 3; mul.wide.u32 %rd1, %r5, 4; mov.u64 %rd2, table; add.s64 %rd3, %rd2, %rd1;"
      "ld.const.u32 %r6, [%rd3]; mul.wide.u32 %rd4, %r3, 4; add.s64 %rd5, %out, %rd4; ld.global.u64 %rd6, [pointers+8];"
      "ld.global.u32 %r7, [%rd6]; add.u32 %r6, %r6, %r7; ld.const.u32 %r8, [table+4]; add.u32 %r6, %r6, %r8;"
      "cvta.const.u64 %rd7, %rd3; ld.u32 %r9, [%rd7]; add.u32 %r6, %r6, %r9; st.global.u32 [%rd5], %r6; st.global.u32 [zero], 77;");
  uint64_t out = buffer(t, 128), address, bytes;
  run(t, "k", 1, 32, out, 0);
  for (uint32_t i = 0; i < 32; i++) assert_int_equal(u32_at(out)[i], 2 * (10 + 10 * (i & 3)) + 6 + 20);
  assert_int_equal(exec_program_variable(t->program, "zero", &address, &bytes, NULL), FF_OK);
  assert_int_equal(bytes, 8);
  assert_int_equal(*u32_at(address), 77);
  assert_int_equal(exec_program_variable(t->program, "k", &address, &bytes, NULL), FF_NOT_FOUND);
  close_ptx(t);
}

/* A memory with a hole of one page before 3 GiB: constants lie on one side of them, so that their addresses in 32 bits
 * are those of all. */
static void test_short_constants(void **state) {
  static const char text[] = PTX_HEAD
      ".const .align 4 .u32 one[4] = {10, 20, 30, 40};\n.const .align 4 .u32 two[4] = {1, 2, 3, 4};\n"
      ".visible .entry k(.param .u64 p_out, .param .u32 p_n)\n{\n.reg .b64 %rd<9>; .reg .b32 %r<9>;\n"
      "mov.b32 %r1, one; mov.b32 %r2, two+4; ld.const.u32 %r3, [%r1+8]; ld.const.u32 %r4, [%r2]; add.u32 %r3, %r3, %r4;"
      "cvt.u64.u32 %rd1, %r2; cvta.const.u64 %rd2, %rd1; ld.u32 %r5, [%rd2+8]; add.u32 %r3, %r3, %r5;"
      "ld.param.u64 %rd3, [p_out]; st.global.u32 [%rd3], %r3; ret;\n}\n";
  kernel_test *t = open_ptx(PTX_HEAD);
  uint64_t hole = buffer(t, 1), far = buffer(t, UINT64_C(3) << 30), one, two, bytes;
  while (buffer(t, 1) < far) {} /* what alignment left free before it */
  assert_int_equal(exec_memory_release(t->memory, hole, NULL), FF_OK);
  for (int n = 0; n < 4096; n++) /* until the hole is free again: no tombstone is as old */
    assert_int_equal(exec_memory_release(t->memory, buffer(t, 1), NULL), FF_OK);
  exec_program_free(t->program);
  ptx_module_free(t->module);
  assert_int_equal(ptx_module_parse("test.ptx", text, strlen(text), &t->module, NULL), FF_OK);
  assert_int_equal(exec_program_create(t->module, t->memory, &t->program, NULL), FF_OK);
  assert_int_equal(exec_program_variable(t->program, "one", &one, &bytes, NULL), FF_OK);
  assert_int_equal(exec_program_variable(t->program, "two", &two, &bytes, NULL), FF_OK);
  assert_int_equal(bytes, 16);
  assert_int_equal(two - one, EXEC_PAGE_BYTES);
  assert_int_equal(buffer(t, 1), hole);
  uint64_t out = buffer(t, 128);
  run(t, "k", 1, 32, out, 0);
  assert_int_equal(*u32_at(out), 30 + 2 + 4);
  close_ptx(t);
}

/* Local memory, with uniform and different offsets, and generic pointers to it, to shared memory and to both at
 * once. */
static void test_local_and_generic(void **state) {
  kernel_test *t = open_body(
      ".shared .align 8 .b8 sh[512];",
      ".local .align 16 .b8 depot[80]; .reg .b64 %SP; .reg .b64 %SPL; mov.u64 %SPL, depot; cvta.local.u64 %SP, %SPL; mov.u32 %r3, %tid.x;"
      "st.local.u32 [%SPL+4], %r3; add.u32 %r5, %r3, 100; st.u32 [%SP+8], %r5; and.b32 %r6, %r3, 7; mul.wide.u32 %rd1, %r6, 8; add.s64 %rd2, %SP, %rd1;"
      "cvt.u64.u32 %rd3, %r3; shl.b64 %rd3, %rd3, 33; add.s64 %rd3, %rd3, 5; st.u64 [%rd2+16], %rd3; add.s64 %rd4, %SPL, %rd1; ld.local.u64 %rd5, [%rd4+16];"
      "mul.wide.u32 %rd6, %r3, 32; add.s64 %rd7, %out, %rd6; st.global.u64 [%rd7], %rd5; ld.u32 %r7, [%SP+4]; st.global.u32 [%rd7+8], %r7;"
      "ld.local.u32 %r8, [depot+8]; st.global.u32 [%rd7+12], %r8;"
      "mov.u64 %rd8, sh; cvta.shared.u64 %rd9, %rd8; mul.wide.u32 %rd10, %r3, 8; add.s64 %rd11, %rd9, %rd10; st.u32 [%rd11], %r3; ld.u32 %r9, [%rd11];"
      "st.global.u32 [%rd7+16], %r9; and.b32 %r10, %r3, 1; setp.eq.u32 %p1, %r10, 0; add.s64 %rd12, %SP, 4; selp.b64 %rd13, %rd11, %rd12, %p1;"
      "ld.u32 %r11, [%rd13]; st.global.u32 [%rd7+20], %r11; isspacep.shared %p2, %rd13; isspacep.local %p3, %rd13; isspacep.global %p4, %rd7;"
      "selp.u32 %r12, 1, 0, %p2; selp.u32 %r13, 2, 0, %p3; selp.u32 %r14, 4, 0, %p4; add.u32 %r12, %r12, %r13; add.u32 %r12, %r12, %r14; st.global.u32 [%rd7+24], %r12;"
      "cvta.to.shared.u64 %rd14, %rd11; sub.s64 %rd14, %rd14, %rd8; cvt.u32.u64 %r15, %rd14; st.global.u32 [%rd7+28], %r15;");
  uint64_t out = buffer(t, 1024);
  run(t, "k", 1, 32, out, 0);
  for (uint32_t i = 0; i < 32; i++) {
    const uint32_t *got = u32_at(out + 32 * i);
    assert_int_equal(got[0], 5);
    assert_int_equal(got[1], i * 2);
    assert_int_equal(got[2], i);
    assert_int_equal(got[3], i + 100);
    assert_int_equal(got[4], i);
    assert_int_equal(got[5], i);
    assert_int_equal(got[6], (i & 1 ? 2 : 1) + 4);
    assert_int_equal(got[7], 8 * i);
  }
  close_ptx(t);
}

static void test_moves(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r1, 0x11223344; mov.u32 %r2, 0xaabbccdd; mov.b64 %rd1, {%r1, %r2}; st.global.u64 [%out], %rd1; mov.b64 {%r3, %r4}, %rd1;"
      "st.global.v2.u32 [%out+8], {%r4, %r3}; mov.b32 {%rs1, %rs2}, %r1; st.global.v2.u16 [%out+16], {%rs2, %rs1}; mov.b32 %r5, {%rs2, %rs1};"
      "st.global.u32 [%out+20], %r5; mov.b64 {%rs3,%rs4,%rs5,%rs6}, %rd1; mov.b64 %rd2, {%rs6,%rs5,%rs4,%rs3}; st.global.u64 [%out+24], %rd2;"
      "mov.b64 {_, %r6}, %rd1; st.global.u32 [%out+32], %r6; mov.f32 %f1, 0f3FC00000; st.global.f32 [%out+36], %f1; mov.f64 %fd1, 0d4000000000000000;"
      "st.global.f64 [%out+40], %fd1; mov.b32 %r7, 1.5; st.global.u32 [%out+48], %r7; mov.s16 %rs7, -2; cvt.s32.s16 %r8, %rs7; st.global.u32 [%out+52], %r8;"
      "setp.eq.u32 %p1, %r1, %r1; mov.pred %p2, %p1; selp.u32 %r9, 3, 4, %p2; st.global.u32 [%out+56], %r9; mov.b64 %rd4, {%r1, 7}; st.global.u64 [%out+64], %rd4;");
  uint64_t out = buffer(t, 128);
  run(t, "k", 1, 32, out, 0);
  const uint32_t *got = u32_at(out);
  const uint32_t want[] = {0x11223344, 0xaabbccdd, 0xaabbccdd, 0x11223344, 0x33441122, 0x33441122,
                           0xaabb,     0,          0xaabbccdd, 0x3fc00000, 0,          0x40000000,
                           0x3fc00000, 0xfffffffe, 3,          0,          0x11223344, 7};
  assert_int_equal(got[6], 0xccddaabb);
  assert_int_equal(got[7], 0x33441122);
  for (uint32_t i = 0; i < 18; i++)
    if (i != 6 && i != 7) assert_int_equal(got[i], want[i]);
  close_ptx(t);
}

static void test_kernel_params(void **state) {
  kernel_test *t = open_ptx(
      PTX_HEAD
      ".visible .entry k(.param .u64 out, .param .u8 a, .param .s16 b, .param .align 16 .b8 s[32], .param .f64 d)\n{\n"
      ".reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .b16 %rs<4>; .reg .f64 %fd<3>; .reg .f32 %f<5>;\n"
      "ld.param.u64 %rd1, [out]; ld.param.u8 %rs1, [a]; ld.param.s16 %r1, [b]; ld.param.v2.u32 {%r2, %r3}, [s+8];\n"
      "ld.param.f64 %fd1, [d]; ld.param.v4.f32 {%f1,%f2,%f3,%f4}, [s+16];\n"
      "st.global.u8 [%rd1], %rs1; st.global.s32 [%rd1+4], %r1; st.global.v2.u32 [%rd1+8], {%r2, %r3}; st.global.f64 [%rd1+16], %fd1;\n"
      "st.global.v4.f32 [%rd1+32], {%f4, %f3, %f2, %f1};\n"
      "mov.u64 %rd2, s; mov.u32 %r4, %tid.x; and.b32 %r4, %r4, 7; mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd2, %rd3;\n"
      "ld.param.u32 %r5, [%rd4]; cvta.param.u64 %rd5, %rd4; ld.u32 %r6, [%rd5]; add.u32 %r5, %r5, %r6;\n"
      "add.s64 %rd6, %rd1, %rd3; st.global.u32 [%rd6+48], %r5;\nret;\n}\n");
  exec_kernel *kernel;
  assert_int_equal(exec_program_kernel(t->program, "k", &kernel, NULL), FF_OK);
  const exec_kernel_info *info = exec_kernel_describe(kernel);
  const uint32_t offsets[] = {0, 8, 10, 16, 48};
  assert_int_equal(info->param_count, 5);
  assert_int_equal(info->param_bytes, 56);
  for (uint32_t p = 0; p < 5; p++) assert_int_equal(info->params[p].offset, offsets[p]);
  unsigned char params[56] = {0};
  uint64_t out = buffer(t, 128);
  double d = 2.5;
  int16_t b = -300;
  memcpy(params, &out, 8);
  params[8] = 200;
  memcpy(params + 10, &b, 2);
  for (uint32_t i = 0; i < 8; i++) memcpy(params + 16 + 4 * i, &(uint32_t){i + 1000}, 4);
  memcpy(params + 48, &d, 8);
  ff_error error = {0};
  assert_int_equal(launch_with(t, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){32, 1, 1}, params, &error), FF_OK);
  const uint32_t *got = u32_at(out);
  assert_int_equal(got[0], 200);
  assert_int_equal((int32_t)got[1], -300);
  assert_int_equal(got[2], 1002);
  assert_int_equal(got[3], 1003);
  assert_memory_equal(&got[4], &d, 8);
  for (uint32_t e = 0; e < 4; e++) assert_int_equal(got[8 + e], 1007 - e);
  for (uint32_t e = 0; e < 8; e++) assert_int_equal(got[12 + e], 2 * (1000 + e));
  close_ptx(t);
}

static void test_async_copy(void **state) {
  kernel_test *t = open_body(
      ".shared .align 16 .b8 sh[512];",
      "mov.u32 %r3, %tid.x; shl.b32 %r4, %r3, 4; mov.u32 %r5, sh; add.u32 %r6, %r5, %r4; cvt.u64.u32 %rd1, %r4; add.s64 %rd2, %out, %rd1;"
      "and.b32 %r10, %r3, 15; cp.async.ca.shared.global [%r6], [%rd2], 16, %r10; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;"
      "ld.shared.v4.u32 {%r11,%r12,%r13,%r14}, [%r6]; st.global.v4.u32 [%rd2+512], {%r11,%r12,%r13,%r14};");
  uint64_t out = buffer(t, 1024);
  for (uint32_t i = 0; i < 512; i++) ((uint8_t *)u32_at(out))[i] = (uint8_t)(i + 1);
  run(t, "k", 1, 32, out, 0);
  for (uint32_t i = 0; i < 512; i++)
    assert_int_equal(((uint8_t *)u32_at(out))[512 + i], i % 16 < (i / 16) % 16 ? (uint8_t)(i + 1) : 0);
  close_ptx(t);
}

/* The estimate for a kernel with 200 values alive at once, whose block is as large as `directives` say. */
static uint32_t registers_on(uint32_t target, const char *directives) {
  ff_text text = {0};
  ff_text_add(&text, ".version 9.0\n.target sm_%u\n.address_size 64\n.visible .entry k(.param .u64 p)\n%s\n{\n", target,
              directives);
  ff_text_add(&text, ".reg .b64 %%rd<2>; .reg .b32 %%v<201>;\n");
  ff_text_add(&text, "ld.param.u64 %%rd1, [p];\n");
  for (int n = 0; n < 200; n++) ff_text_add(&text, "ld.volatile.global.u32 %%v%d, [%%rd1+%d];\n", n, 4 * n);
  for (int n = 0; n < 200; n++) ff_text_add(&text, "st.volatile.global.u32 [%%rd1], %%v%d;\n", n);
  ff_text_add(&text, "ret;\n}\n");
  kernel_test *t = open_ptx(text.chars);
  exec_kernel *kernel;
  assert_int_equal(exec_program_kernel(t->program, "k", &kernel, NULL), FF_OK);
  uint32_t registers = exec_kernel_describe(kernel)->registers;
  close_ptx(t);
  free(text.chars);
  return registers;
}

static uint32_t registers_of(const char *directives) { return registers_on(80, directives); }

/* As the assembler does: where a kernel says how large its blocks get, its registers leave room for them, if an SM has
 * warps for as many. */
static void test_registers_of_large_blocks(void **state) {
  assert_true(registers_of("") >= 200);
  assert_int_equal(registers_of(".maxnreg 96"), 96);
  assert_int_equal(registers_of(".maxntid 1024, 1, 1"), 64);
  assert_int_equal(registers_of(".maxntid 640, 1, 1"), 96);
  assert_int_equal(registers_of(".reqntid 32, 20, 1"), 96);
  assert_int_equal(registers_of(".maxntid 640, 1, 1\n.minnctapersm 2"), 48);
  assert_int_equal(registers_on(90, ".maxntid 1024, 1, 1\n.minnctapersm 2"), 32);
  assert_int_equal(registers_on(75, ".maxntid 640, 1, 1\n.minnctapersm 2"), 96);
  assert_int_equal(registers_on(75, ".maxntid 512, 1, 1\n.minnctapersm 2"), 64);
  for (uint32_t n = 0; n < 5; n++) {
    static const uint32_t targets[] = {86, 87, 89, 120, 121};
    assert_int_equal(registers_on(targets[n], ".maxntid 1024, 1, 1\n.minnctapersm 2"), 64);
    assert_int_equal(registers_on(targets[n], ".maxntid 768, 1, 1\n.minnctapersm 2"), 40);
  }
  assert_true(registers_of(".maxntid 32, 1, 1") >= 200);
}

/* A register that was not written reads as zero, whatever ran before in the same frame. */
static void test_unwritten_registers(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r3, %tid.x; mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %out, %rd1; setp.eq.u32 %p1, %n, 1; @%p1 bra FILL;"
      "selp.u32 %r6, 100, 0, %p7; add.u32 %r5, %r40, %r41; add.u32 %r5, %r5, %r6; st.global.u32 [%rd2], %r5; bra END; FILL: mov.u32 %r40, 5;"
      "mov.u32 %r41, 6; setp.eq.u32 %p7, %r40, 5; @%p7 st.global.u32 [%rd2], %r41; END:");
  uint64_t out = buffer(t, 128);
  run(t, "k", 1, 32, out, 1);
  assert_int_equal(u32_at(out)[3], 6);
  run(t, "k", 1, 32, out, 0);
  for (uint32_t i = 0; i < 32; i++) assert_int_equal(u32_at(out)[i], 0);
  close_ptx(t);
}

/* Each thread takes as much as its number says, in rounds that give it back; a function that is called meanwhile has
 * its variables elsewhere. */
static void test_alloca(void **state) {
  kernel_test *t = open_body(
      ".func f(.param .b32 p) { .local .align 4 .b8 own[64]; .reg .b32 %a; ld.param.u32 %a, [p];\n"
      "st.local.u32 [own], %a; st.local.u32 [own+60], %a; ret; }",
      "mov.u32 %r3, %tid.x; mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %out, %rd1; mov.u32 %r9, 0;\n"
      "ROUND: stacksave.u64 %rd3; add.u32 %r4, %r3, 1; mul.wide.u32 %rd4, %r4, 4; alloca.u64 %rd5, %rd4;\n"
      "mov.u64 %rd6, %rd5; mov.u32 %r5, 0;\n"
      "FILL: st.local.u32 [%rd6], %r5; add.s64 %rd6, %rd6, 4; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r4; @%p1 bra FILL;\n"
      "{ .param .b32 a; st.param.b32 [a], 77; call f, (a); }\n"
      "alloca.u32 %r10, 8, 128; and.b32 %r11, %r10, 127; st.local.u32 [%r10], 99; cvta.local.u64 %rd7, %rd5;\n"
      "mov.u32 %r6, 0; mov.u32 %r5, 0;\n"
      "SUM: ld.u32 %r7, [%rd7]; add.u32 %r6, %r6, %r7; add.s64 %rd7, %rd7, 4; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r4;\n"
      "@%p1 bra SUM; add.u32 %r6, %r6, %r11; stackrestore.u64 %rd3;\n"
      "add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, %n; @%p2 bra ROUND; st.global.u32 [%rd2], %r6;");
  uint64_t out = buffer(t, 256);
  run(t, "k", 1, 64, out, 50);
  for (uint32_t i = 0; i < 64; i++) assert_int_equal(u32_at(out)[i], i * (i + 1) / 2);
  close_ptx(t);
}

/* More than the stack has; a stack pointer that was not saved; an access behind what was taken. */
static void test_alloca_faults(void **state) {
  static const struct {
    const char *body, *words;
    exec_fault_kind kind;
  } cases[] = {
      {"alloca.u64 %rd1, 2048;", "stack overflow: alloca of 2048 bytes aligned to 16, with 0 of the 1024 bytes",
       EXEC_FAULT_STACK},
      {"L: alloca.u64 %rd1, 256; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 5; @%p1 bra L;",
       "with 1024 of the 1024 bytes", EXEC_FAULT_STACK},
      {"alloca.u64 %rd1, 0xffffffffffffffff;", "stack overflow", EXEC_FAULT_STACK},
      {"stacksave.u64 %rd1; add.u64 %rd1, %rd1, 16; stackrestore.u64 %rd1;", "stackrestore of 0x10: not what stacksave",
       EXEC_FAULT_ILLEGAL_INSTRUCTION},
      {"alloca.u64 %rd1, 32; ld.local.u32 %r1, [%rd1+32];", "illegal local read of 4 bytes",
       EXEC_FAULT_ILLEGAL_ADDRESS},
  };
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    char body[512];
    snprintf(body, sizeof body, "mov.u32 %%r1, 0; %s", cases[n].body);
    kernel_test *t = open_body("", body);
    t->config.stack_bytes = 1024;
    const exec_fault *fault = run_fault(t, "k", 1, 32, buffer(t, 64), 0);
    assert_int_equal(fault->kind, cases[n].kind);
    expect_text(fault->message, cases[n].words);
    close_ptx(t);
  }
}

/* Lanes that go apart have one stack pointer, and bytes of their own. */
static void test_alloca_apart(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r3, %tid.x; mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %out, %rd1; and.b32 %r4, %r3, 1;\n"
      "stacksave.u64 %rd3; setp.eq.u32 %p1, %r4, 0; @!%p1 bra ODD;\n"
      "alloca.u64 %rd4, 32; ld.local.u32 %r6, [%rd4+28]; add.u32 %r5, %r3, 100; st.local.u32 [%rd4+28], %r5; bra JOIN;\n"
      "ODD: alloca.u64 %rd4, 16; st.local.u32 [%rd4], %r3; ld.local.u32 %r5, [%rd4]; stackrestore.u64 %rd3;\n"
      "JOIN: alloca.u64 %rd5, 16; st.local.u32 [%rd5], 7; @%p1 ld.local.u32 %r5, [%rd4+28];\n"
      "@%p1 add.u32 %r5, %r5, %r6; st.global.u32 [%rd2], %r5;");
  uint64_t out = buffer(t, 128);
  run(t, "k", 1, 32, out, 0);
  for (uint32_t i = 0; i < 32; i++) assert_int_equal(u32_at(out)[i], i % 2 ? i : i + 100);
  close_ptx(t);
}

static void test_printing_code(void **state) {
  kernel_test *t = open_body("", TID AT "st.global.u32 [%rd2], %r4;");
  exec_kernel *kernel;
  ff_text text = {0};
  assert_int_equal(exec_program_kernel(t->program, "k", &kernel, NULL), FF_OK);
  exec_kernel_print(kernel, &text);
  expect_text(text.chars, "mad.lo.s32");
  free(text.chars);
  close_ptx(t);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_vector_add),
                                          cmocka_unit_test(test_thread_numbers),
                                          cmocka_unit_test(test_special_registers),
                                          cmocka_unit_test(test_load_sizes),
                                          cmocka_unit_test(test_store_sizes),
                                          cmocka_unit_test(test_vectors),
                                          cmocka_unit_test(test_dynamic_shared),
                                          cmocka_unit_test(test_constants_and_globals),
                                          cmocka_unit_test(test_short_constants),
                                          cmocka_unit_test(test_local_and_generic),
                                          cmocka_unit_test(test_moves),
                                          cmocka_unit_test(test_kernel_params),
                                          cmocka_unit_test(test_async_copy),
                                          cmocka_unit_test(test_unwritten_registers),
                                          cmocka_unit_test(test_registers_of_large_blocks),
                                          cmocka_unit_test(test_alloca),
                                          cmocka_unit_test(test_alloca_faults),
                                          cmocka_unit_test(test_alloca_apart),
                                          cmocka_unit_test(test_printing_code)};
RUN_ON_EVERY_ISA(tests)
