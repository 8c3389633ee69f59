/* SPDX-License-Identifier: Apache-2.0 */
/* What PTX becomes for the machine: counts that ptxas's code for compute capability 7.5 has, and chains. */
#include "ptx_test.h"

#include "ptx/analysis/lane_facts.h"
#include "ptx/analysis/machine_code.h"

/* Sums over a kernel of these instructions, without its ret. */
static void sum_costs(const char *body, uint32_t sum[PTX_PIPES]) {
  char text[4096];
  snprintf(
      text, sizeof text,
      ".version 7.8 .target sm_75 .address_size 64\n.extern .shared .align 4 .b8 dynamic[];\n.visible .entry k(.param .u64 p) {\n"
      ".reg .b16 %%h<4>; .reg .b32 %%r<20>; .reg .b64 %%d<20>; .reg .f32 %%f<20>; .reg .f64 %%e<20>; .reg .pred %%p<4>;\n"
      ".shared .align 4 .b8 s[64];\n%s\nret;\n}\n",
      body);
  ptx_module *module = parse(text);
  ptx_cfg *cfg = ptx_cfg_build(module->funcs[0]);
  ptx_cost *costs = ptx_machine_code(module->funcs[0], cfg);
  memset(sum, 0, PTX_PIPES * sizeof *sum);
  for (uint32_t n = 0; n + 1 < module->funcs[0]->instr_count; n++)
    for (uint32_t u = 0; u < PTX_PIPES; u++) sum[u] += costs[n].count[u];
  free(costs);
  ptx_cfg_free(cfg);
  ptx_module_free(module);
}

static void check(const char *body, uint32_t slots, uint32_t fma, uint32_t alu, uint32_t xu, uint32_t fp64,
                  uint32_t lsu) {
  uint32_t sum[PTX_PIPES];
  sum_costs(body, sum);
  uint32_t want[] = {slots, fma, alu, xu, fp64, lsu};
  for (int u = 0; u < 6; u++)
    if (sum[u] != want[u]) fail_msg("%s: count %d is %u, not %u", body, u, sum[u], want[u]);
}

static void test_pipes_of_instructions(void **state) {
  check("fma.rn.f32 %f1, %f2, %f3, %f4;", 1, 1, 0, 0, 0, 0);
  check("add.s32 %r1, %r2, %r3;", 1, 0, 1, 0, 0, 0);
  check("mad.lo.s32 %r1, %r2, %r3, %r4;", 1, 1, 0, 0, 0, 0);
  check("fma.rn.f64 %e1, %e2, %e3, %e4;", 1, 0, 0, 0, 1, 0);
  check("ex2.approx.ftz.f32 %f1, %f2;", 1, 0, 0, 1, 0, 0);
  check("cvt.rn.f32.s32 %f1, %r1;", 1, 0, 0, 1, 0, 0);
  check("setp.lt.f32 %p1, %f1, %f2;", 1, 0, 1, 0, 0, 0);
  check("ld.shared.f32 %f1, [s];", 1, 0, 0, 0, 0, 1);
  check("ld.global.f32 %f1, [%d1];", 1, 0, 1, 0, 0, 0);
}

/* Half the bits of an element, twice the depth, the same time; four and six bits in bytes are bytes. So has A with half
 * of its elements left out. */
static void test_tensor_core(void **state) {
#define D "{%f1, %f2, %f3, %f4}"
#define A "{%r1, %r2, %r3, %r4}, {%r5, %r6}"
#define B "{%r1, %r2, %r3, %r4}"
  static const char *const bodies[] = {
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " D ", " A ", " D ";",
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 " D ", " A ", " D ";",
      "mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e2m1.e3m2.f32 " D ", " A ", " D ";",
      "mma.sync.aligned.kind::mxf8f6f4.block_scale.m16n8k32.row.col.f32.e2m1.e2m1.f32.ue8m0 " D ", " A ", " D
      ", %r7, {0, 0}, %r8, {0, 0};",
      "mma.sync.aligned.kind::mxf4.block_scale.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0 " D ", " A ", " D
      ", %r7, {0, 0}, %r8, {0, 0};",
      "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 " D ", " B ", " B ", " D ", %r9, 0;",
      "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 " D ", " B ", " B ", " D ", %r9, 0;",
      "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 " D ", " B ", " B ", " D ", %r9, 0;",
      "mma.sp.sync.aligned.m16n8k64.row.col.f32.e5m2.e4m3.f32 " D ", " B ", " B ", " D ", %r9, 0;",
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " D ", %d1, %d2, %p1, 1, 1, 0, 0;",
      "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 " D ", %d1, %d2, %r9, 0, %p1, 1, 1, 0, 0;",
      "wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.tf32.tf32 " D ", %d1, %d2, %r9, 1, %p1, 1, 1;",
      "wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e5m2 " D ", " B ", %d2, %r9, 0, %p1, 1, 1;"};
#undef A
#undef B
#undef D
  for (size_t n = 0; n < sizeof bodies / sizeof *bodies; n++) {
    uint32_t sum[PTX_PIPES];
    sum_costs(bodies[n], sum);
    if (sum[PTX_PIPE_TENSOR] != 4) fail_msg("%s: %u", bodies[n], sum[PTX_PIPE_TENSOR]);
  }
}

/* By how many there are: 17.7 and 24.7 cycles on an A100. */
static void test_products_of_matrices_take_longer(void **state) {
#define D "{%f1, %f2, %f3, %f4}"
  uint32_t sum[PTX_PIPES];
  sum_costs("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 " D ", {%r1, %r2}, {%r5}, " D ";", sum);
  assert_int_equal(sum[PTX_PIPE_CHAIN], 18);
  sum_costs("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " D ", {%r1, %r2, %r3, %r4}, {%r5, %r6}, " D ";", sum);
  assert_int_equal(sum[PTX_PIPE_CHAIN], 25);
  sum_costs("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 " D ", {%r1, %r2, %r3, %r4}, {%r5, %r6}, " D ";", sum);
  assert_int_equal(sum[PTX_PIPE_CHAIN], 25);
#undef D
}

/* A sixteenth of half precision's multiply-adds per clock. */
static void test_products_of_doubles(void **state) {
  uint32_t sum[PTX_PIPES];
  sum_costs("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%e1, %e2}, {%e3}, {%e4}, {%e1, %e2};", sum);
  assert_int_equal(sum[PTX_PIPE_TENSOR], 8);
}

/* The shared unit has a pass for each matrix. */
static void test_matrices_in_shared_memory(void **state) {
  check("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [s];", 1, 0, 0, 0, 0, 1);
  check("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r1, %r2}, [s];", 1, 0, 0, 0, 0, 2);
  check("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [s];", 1, 0, 0, 0, 0, 4);
  check("stmatrix.sync.aligned.m8n8.x4.shared.b16 [s], {%r1, %r2, %r3, %r4};", 1, 0, 0, 0, 0, 4);
  check("wmma.load.c.sync.aligned.m16n16k16.row.shared.f16 {%r1, %r2, %r3, %r4}, [s];", 4, 0, 0, 0, 0, 4);
}

/* To half precision at the XU's rate, each of two by itself; back at an addition's. */
static void test_half_precision(void **state) {
  check("cvt.rn.f16.f32 %h1, %f1;", 1, 0, 0, 1, 0, 0);
  check("cvt.rn.bf16.f32 %h1, %f1;", 1, 0, 0, 1, 0, 0);
  check("cvt.rn.f16x2.f32 %r1, %f1, %f2;", 2, 0, 0, 2, 0, 0);
  check("cvt.rn.bf16x2.f32 %r1, %f1, %f2;", 2, 0, 0, 2, 0, 0);
  check("cvt.f32.f16 %f1, %h1;", 1, 0, 0, 0, 0, 0);
  check("cvt.f32.bf16 %f1, %h1;", 1, 1, 0, 0, 0, 0);
}

/* Conversions from and to doubles have the slower of two pipes. */
static void test_conversions_of_doubles(void **state) {
  check("cvt.f64.f32 %e1, %f1;", 1, 0, 0, 1, 1, 0);
  check("cvt.rn.f32.f64 %f1, %e1;", 1, 0, 0, 1, 1, 0);
  check("cvt.rzi.s32.f64 %r1, %e1;", 1, 0, 0, 1, 1, 0);
}

static void check_products(const char *body, uint32_t fma, uint32_t products, uint32_t half) {
  uint32_t sum[PTX_PIPES];
  sum_costs(body, sum);
  if (sum[PTX_PIPE_FMA] != fma || sum[PTX_PIPE_PRODUCTS] != products || sum[PTX_PIPE_HALF] != half)
    fail_msg("%s: %u of FMA, %u products, %u of half precision", body, sum[PTX_PIPE_FMA], sum[PTX_PIPE_PRODUCTS],
             sum[PTX_PIPE_HALF]);
}

/* Minima and maxima of integers up to 32 bits are counted by themselves, too: the others are the same on all GPUs. */
static void test_minima(void **state) {
  static const struct {
    const char *body;
    uint32_t slots, minmax;
  } cases[] = {{"min.s32 %r1, %r2, %r3;", 1, 1},
               {"max.u32 %r1, %r2, %r3;", 1, 1},
               {"min.f32 %f1, %f2, %f3;", 1, 0},
               {"max.s64 %d1, %d2, %d3;", 4, 0},
               {"add.s32 %r1, %r2, %r3;", 1, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t sum[PTX_PIPES];
    sum_costs(cases[i].body, sum);
    if (sum[PTX_PIPE_SLOTS] != cases[i].slots || sum[PTX_PIPE_MINMAX] != cases[i].minmax)
      fail_msg("%s: %u instructions, %u minima", cases[i].body, sum[PTX_PIPE_SLOTS], sum[PTX_PIPE_MINMAX]);
  }
}

/* Products of integers are counted with floats and by themselves, half precision only by itself. */
static void test_products_and_half_precision(void **state) {
  check_products("fma.rn.f32 %f1, %f2, %f3, %f4; sin.approx.ftz.f32 %f1, %f2;", 2, 0, 0);
  check_products("mad.lo.s32 %r1, %r2, %r3, %r4;", 1, 1, 0);
  check_products("mul24.lo.s32 %r1, %r2, %r3;", 1, 1, 0);
  check_products("dp4a.u32.u32 %r1, %r2, %r3, %r4;", 1, 1, 0);
  check_products("mul.wide.s32 %d1, %r2, %r3;", 2, 2, 0);
  check_products("mul.lo.u64 %d1, %d2, %d3;", 4, 4, 0);
  check_products("mul.hi.u64 %d1, %d2, %d3;", 7, 7, 0);
  check_products("div.u32 %r1, %r2, %r3;", 6, 6, 0);
  check_products("div.u64 %d1, %d2, %d3;", 22, 22, 0);
  check_products("fma.rn.f16x2 %r1, %r2, %r3, %r4; add.f16 %h1, %h2, %h3; fma.rn.bf16x2 %r1, %r2, %r3, %r4;", 0, 0, 3);
  check_products("cvt.f32.f16 %f1, %h1;", 0, 0, 1);
  check_products("cvt.f32.bf16 %f1, %h1;", 1, 1, 0);
  /* of what is shared out, too: eight shifts, half of them products */
  check_products("shl.b32 %r1, %r9, 1; shl.b32 %r2, %r9, 2; shl.b32 %r3, %r9, 3; shl.b32 %r4, %r9, 4;"
                 "shl.b32 %r5, %r9, 5; shl.b32 %r6, %r9, 6; shl.b32 %r7, %r9, 7; shl.b32 %r8, %r9, 8;",
                 3, 3, 0);
  /* and of what a predicate guards, which the branch has */
  check_products("setp.lt.s32 %p1, %r1, %r2; @%p1 bra L; mad.lo.s32 %r1, %r2, %r3, %r4; add.f16 %h1, %h2, %h3;"
                 "L: add.f32 %f1, %f2, %f3;",
                 2, 1, 1);
}

/* A pass of the shared unit for each register; how much a product is, is known when it runs. */
static void test_tensor_memory(void **state) {
  check("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r1, %r2, %r3, %r4}, [%r5];", 1, 0, 0, 0, 0, 4);
  check("tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {%r1, %r2}, [%r5], 2;", 1, 0, 0, 0, 0, 2);
  check("tcgen05.st.sync.aligned.16x256b.x1.b32 [%r5], {%r1, %r2, %r3, %r4};", 1, 0, 0, 0, 0, 4);
  check("tcgen05.ld.sync.aligned.32x32b.x1.b32;", 1, 0, 0, 0, 0, 0);
  check("tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r2, %p1;", 1, 0, 0, 0, 0, 0);
  check("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d1];", 1, 0, 0, 0, 0, 0);
}

static void test_what_takes_no_instruction(void **state) {
  check("mov.u32 %r1, %r2;", 0, 0, 0, 0, 0, 0);
  check("mov.f32 %f1, 0f3F800000;", 0, 0, 0, 0, 0, 0);
  check("ld.param.u64 %d1, [p];", 0, 0, 0, 0, 0, 0);
  check("cvta.to.global.u64 %d1, %d2;", 0, 0, 0, 0, 0, 0);
  check("neg.f32 %f1, %f2;", 0, 0, 0, 0, 0, 0);
  check("cvt.u64.u32 %d1, %r1;", 0, 0, 0, 0, 0, 0);
}

static void test_sequences(void **state) {
  check("add.s64 %d1, %d2, %d3;", 2, 0, 2, 0, 0, 0);
  check("min.s64 %d1, %d2, %d3;", 4, 0, 4, 0, 0, 0);
  check("mul.wide.s32 %d1, %r2, %r3;", 1, 2, 0, 0, 0, 0);
  check("bfe.u32 %r1, %r2, %r3, %r4;", 2, 0, 2, 0, 0, 0);
  check("sin.approx.f32 %f1, %f2;", 2, 1, 0, 1, 0, 0);
  check("lg2.approx.f32 %f1, %f2;", 4, 2, 1, 1, 0, 0);
}

static void test_what_is_folded(void **state) {
  check("mul.wide.s32 %d1, %r2, 4; add.s64 %d2, %d3, %d1;", 1, 2, 0, 0, 0, 0); /* IMAD.WIDE */
  check("add.s32 %r1, %r2, %r3; add.s32 %r4, %r1, %r5;", 1, 0, 1, 0, 0, 0);    /* IADD3 */
  check("add.s32 %r1, %r2, %r3; add.s32 %r4, %r1, %r5; add.s32 %r6, %r4, 1;", 2, 0, 2, 0, 0, 0);
  check("add.s32 %r1, %r2, %r3; add.s32 %r4, %r1, %r1;", 2, 0, 2, 0, 0, 0); /* used twice */
  check("xor.b32 %r1, %r2, %r3; and.b32 %r4, %r1, %r5;", 1, 0, 1, 0, 0, 0); /* LOP3 */
  check("shl.b32 %r1, %r2, 2; add.s32 %r4, %r1, %r5;", 1, 0, 1, 0, 0, 0);   /* LEA */
}

/* Of shifts and sums of integers the FMA pipe gets what the ALU has too much of; nothing where it is busy itself. */
static void test_balance(void **state) {
#define SUMS "add.s32 %r1, %r2, %r3; add.s32 %r4, %r5, %r6; add.s32 %r7, %r8, %r9; add.s32 %r10, %r11, %r12;"
  check(SUMS, 4, 1, 3, 0, 0, 0);
  check(SUMS SUMS, 8, 3, 5, 0, 0, 0);
  check("shl.b32 %r1, %r2, 3; and.b32 %r3, %r4, %r5; shl.b32 %r6, %r7, 3; and.b32 %r8, %r9, %r10;", 4, 1, 3, 0, 0, 0);
  check("shl.b32 %r1, %r2, %r3; and.b32 %r4, %r5, %r6; shl.b32 %r7, %r8, %r9;", 3, 0, 3, 0, 0, 0); /* by how much? */
  check("add.s64 %d1, %d2, %d3; add.s64 %d4, %d5, %d6;", 4, 0, 4, 0, 0, 0);
  check(SUMS "fma.rn.f32 %f1, %f2, %f3, %f4; fma.rn.f32 %f5, %f6, %f7, %f8; fma.rn.f32 %f9, %f10, %f11, %f12;"
             "fma.rn.f32 %f5, %f6, %f7, %f9;",
        8, 4, 4, 0, 0, 0);
#undef SUMS
}

/* Neighbouring words of shared memory are one access if the first is at a multiple of it, and nothing is written. */
static void test_wide_shared_loads(void **state) {
#define LOAD(to, at) "ld.shared.f32 " to ", [" at "];"
#define FOUR(base) LOAD("%f1", base) LOAD("%f2", base "+4") LOAD("%f3", base "+8") LOAD("%f4", base "+12")
  check(FOUR("s"), 1, 0, 0, 0, 0, 1);
  check(LOAD("%f4", "s+12") LOAD("%f2", "s+4") LOAD("%f1", "s") LOAD("%f3", "s+8"), 1, 0, 0, 0, 0, 1); /* any order */
  check(LOAD("%f1", "s+4") LOAD("%f2", "s+8") LOAD("%f3", "s+12") LOAD("%f4", "s+16"), 3, 0, 0, 0, 0, 3);
  check(LOAD("%f1", "s+8") LOAD("%f2", "s+12"), 1, 0, 0, 0, 0, 1);
  check(LOAD("%f1", "s") LOAD("%f2", "s+8"), 2, 0, 0, 0, 0, 2);
  check(LOAD("%f1", "s") "st.shared.f32 [%r1], %f1;" LOAD("%f2", "s+4"), 3, 0, 0, 0, 0, 3);
  check(LOAD("%f1", "s") "bar.sync 0;" LOAD("%f2", "s+4"), 3, 0, 0, 0, 0, 2);
  check(LOAD("%f1", "s") "ld.volatile.shared.f32 %f2, [s+4];", 2, 0, 0, 0, 0, 2);
  check(LOAD("%f1", "s") "@%p1 ld.shared.f32 %f2, [s+4];", 2, 0, 0, 0, 0, 2);
  /* a launch decides where such a variable is: its alignment counts */
  check(LOAD("%f1", "dynamic") LOAD("%f2", "dynamic+4"), 2, 0, 0, 0, 0, 2);
  check("ld.param.u32 %r1, [p];" FOUR("%r1"), 4, 0, 0, 0, 0, 4);
  check("ld.param.u32 %r2, [p]; shl.b32 %r1, %r2, 4;" FOUR("%r1"), 2, 0, 1, 0, 0, 1);
  check("ld.param.u32 %r2, [p]; shl.b32 %r1, %r2, 3;" FOUR("%r1"), 3, 0, 1, 0, 0, 2);
  check("ld.param.u32 %r2, [p]; shl.b32 %r3, %r2, 4; not.b32 %r1, %r3;" FOUR("%r1"), 6, 0, 2, 0, 0, 4);
  check("mov.u32 %r3, %laneid; and.b32 %r1, %r3, -8;" LOAD("%f1", "%r1") LOAD("%f2", "%r1+4"), 3, 0, 1, 0, 0, 2);
  check("mov.u32 %r1, s;" LOAD("%f1", "%r1") "add.s32 %r1, %r1, 4;" LOAD("%f2", "%r1"), 3, 0, 1, 0, 0, 2);
  /* around a loop an address stays a multiple of its step and its start */
  check("mov.u32 %r1, 0; L:" FOUR("%r1") "add.s32 %r1, %r1, 16; setp.lt.u32 %p1, %r1, 64; @%p1 bra L;", 4, 0, 2, 0, 0,
        1);
  check("mov.u32 %r1, 0; L:" FOUR("%r1") "add.s32 %r1, %r1, 4; setp.lt.u32 %p1, %r1, 64; @%p1 bra L;", 7, 0, 2, 0, 0,
        4);
#undef FOUR
#undef LOAD
}

/* The cost of the instruction of that number. */
static ptx_cost cost_at(const char *body, uint32_t number) {
  char text[4096];
  snprintf(
      text, sizeof text,
      ".version 7.8 .target sm_75 .address_size 64\n.visible .entry k(.param .u64 p) {\n.reg .b32 %%r<20>; .reg .b64 "
      "%%d<20>; .reg .f32 %%f<20>; .reg .pred %%p<4>;\n%s\nret;\n}\n",
      body);
  ptx_module *module = parse(text);
  ptx_cfg *cfg = ptx_cfg_build(module->funcs[0]);
  ptx_cost *costs = ptx_machine_code(module->funcs[0], cfg), found = costs[number];
  free(costs);
  ptx_cfg_free(cfg);
  ptx_module_free(module);
  return found;
}

/* What a short branch jumps over is predicated, and issued even where all lanes jump: it is counted with the branch,
 * of accesses the slot alone. A division, a call, a barrier and what others jump to are not. */
static void test_predicates(void **state) {
#define BODY \
  "@%p1 bra L; fma.rn.f32 %f1, %f1, %f3, %f4; and.b32 %r1, %r2, %r3; ld.global.f32 %f5, [%d1]; L: add.f32 %f6, %f6, %f6;"
  static const uint8_t together[] = {3, 1, 1}, none[] = {0, 0, 0}, load[] = {0, 0, 1};
  assert_memory_equal(cost_at(BODY, 0).count, together, 3);
  assert_memory_equal(cost_at(BODY, 1).count, none, 3);
  assert_memory_equal(cost_at(BODY, 2).count, none, 3);
  assert_memory_equal(cost_at(BODY, 3).count, load, 3);
#undef BODY
  static const char *const branches[] = {"@%p1 bra L; div.rn.f32 %f1, %f1, %f3; L: add.f32 %f6, %f6, %f6;",
                                         "@%p1 bra L; bar.sync 0; L: add.f32 %f6, %f6, %f6;",
                                         "@%p1 bra L; M: add.f32 %f1, %f1, %f3; L: add.f32 %f6, %f6, %f6; @%p2 bra M;"};
  for (size_t i = 0; i < sizeof branches / sizeof *branches; i++) {
    assert_true(cost_at(branches[i], 0).count[PTX_PIPE_SLOTS] >= 1); /* the branch itself */
    assert_int_equal(cost_at(branches[i], 0).count[PTX_PIPE_FMA], 0);
    assert_true(cost_at(branches[i], 1).count[PTX_PIPE_SLOTS] >= 1);
  }
}

/* Two instructions where lanes may part and meet again; none where all go the same way, at a loop's end, and where a
 * predicate does. */
static void test_meeting_points(void **state) {
#define FMA "fma.rn.f32 %f1, %f1, %f3, %f4;"
#define LONG FMA FMA FMA FMA FMA FMA FMA FMA
#define LANE "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16;"
#define BLOCK "mov.u32 %r1, %ctaid.x; setp.lt.u32 %p1, %r1, 16;"
#define AFTER "st.global.f32 [%d1], %f1;"
  check(LANE "@%p1 bra L;" LONG "L:" AFTER, 2 + 1 + 8 + 1 + 2, 8, 2, 0, 0, 0);
  check(BLOCK "@%p1 bra L;" LONG "L:" AFTER, 2 + 1 + 8 + 1, 8, 2, 0, 0, 0);
  check(LANE "@%p1 bra L;" FMA "L:" AFTER, 2 + 1 + 1, 1, 2, 0, 0, 0);
  check(LANE "L:" LONG "@%p1 bra L;" AFTER, 2 + 1 + 8 + 1, 8, 2, 0, 0, 0);
#undef FMA
#undef LONG
#undef LANE
#undef BLOCK
#undef AFTER
}

static uint32_t chain(const char *body, uint32_t *loads) {
  uint32_t sum[PTX_PIPES];
  sum_costs(body, sum);
  if (loads) *loads = sum[PTX_PIPE_LOADS];
  return sum[PTX_PIPE_CHAIN];
}

static void test_chains(void **state) {
  assert_int_equal(chain("add.f32 %f1, %f2, %f3; add.f32 %f4, %f1, %f1; add.f32 %f5, %f4, %f4;", NULL), 12);
  /* a predicate as an operand, and as a guard */
  assert_int_equal(chain("setp.lt.s32 %p1, %r1, %r2; selp.b32 %r3, %r1, %r2, %p1;", NULL), 8);
  assert_int_equal(chain("setp.lt.s32 %p1, %r1, %r2; @%p1 xor.b32 %r3, %r1, %r2;", NULL), 16);
  assert_int_equal(chain("ex2.approx.ftz.f32 %f1, %f2; ex2.approx.ftz.f32 %f3, %f1;", NULL), 30);
  assert_int_equal(chain("sin.approx.f32 %f1, %f2;", NULL), 21);
  assert_int_equal(chain("add.f32 %f1, %f2, %f3; add.f32 %f4, %f2, %f2; add.f32 %f5, %f3, %f3;", NULL), 4);
  assert_int_equal(chain("add.s32 %r1, %r2, %r3; mul.lo.s32 %r4, %r1, %r1;", NULL), 9); /* from pipe to pipe */
  assert_int_equal(chain("setp.lt.s32 %p1, %r1, %r2; @%p1 add.s32 %r3, %r3, 1;", NULL), 16);
  /* what has a branch in it ends before anything behind it begins: a chain of divisions takes no longer than others */
  assert_int_equal(chain("div.rn.f32 %f1, %f2, %f3;", NULL), 41);
  assert_int_equal(chain("div.rn.f32 %f1, %f2, %f3; div.rn.f32 %f4, %f1, %f2; add.f32 %f5, %f2, %f3;", NULL), 86);
  assert_int_equal(chain("div.rn.f32 %f1, %f2, %f3; div.rn.f32 %f4, %f5, %f6; add.f32 %f7, %f2, %f3;", NULL), 86);
  assert_int_equal(chain("add.f32 %f7, %f2, %f3; div.rn.f32 %f1, %f2, %f3;", NULL), 41);
  /* the reciprocal of what is known is no instruction */
  assert_int_equal(chain("div.rn.f32 %f1, %f2, 0f3f7ff972;", NULL), 34);
  assert_int_equal(cost_at("div.rn.f32 %f1, %f2, 0f3f7ff972;", 0).count[PTX_PIPE_XU], 1);
  assert_int_equal(cost_at("div.rn.f32 %f1, 0f3f7ff972, %f2;", 0).count[PTX_PIPE_XU], 2);
  /* back: taken in nearly all rounds; on: may be; always */
  assert_int_equal(chain("L: setp.lt.s32 %p1, %r1, %r2; @%p1 bra L;", NULL), 12 + 9);
  assert_int_equal(chain("setp.lt.s32 %p1, %r1, %r2; @%p1 bra L; bar.sync 0; L: add.f32 %f1, %f2, %f3;", NULL),
                   12 + 5 + 4);
  assert_int_equal(chain("bra L; L: add.f32 %f1, %f2, %f3;", NULL), 9 + 4);
  assert_int_equal(chain("sqrt.rn.f32 %f1, %f2; rcp.rn.f32 %f3, %f4;", NULL), 39 + 56);
  assert_int_equal(chain("rem.s64 %d1, %d2, %d3; rem.s64 %d4, %d5, %d6;", NULL), 2 * 127);
  assert_int_equal(chain("rcp.approx.ftz.f32 %f1, %f2; rcp.approx.ftz.f32 %f3, %f4;", NULL), 15);
  /* what lanes vote with is there as late as a guard; results of votes, shuffles, sums of a warp */
  assert_int_equal(chain("setp.lt.s32 %p1, %r1, %r2; vote.sync.ballot.b32 %r3, %p1, -1;", NULL), 16);
  assert_int_equal(chain("vote.sync.all.pred %p1, %p2, -1; vote.sync.all.pred %p3, %p1, -1;", NULL), 4 + 12);
  assert_int_equal(chain("vote.sync.all.pred %p1, %p2, -1; selp.b32 %r3, %r1, %r2, %p1;", NULL), 8);
  assert_int_equal(chain("shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1; shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;", NULL), 46);
  assert_int_equal(chain("redux.sync.add.u32 %r1, %r2, -1;", NULL), 42);
  /* barriers of a warp come one after the other, beside what it waits for */
  assert_int_equal(chain("bar.warp.sync -1; bar.warp.sync -1; bar.warp.sync -1;", NULL), 18);
  assert_int_equal(chain("ex2.approx.ftz.f32 %f1, %f2; bar.warp.sync -1; bar.warp.sync -1;", NULL), 15);
  uint32_t loads;
  assert_int_equal(chain("atom.shared.cas.b32 %r1, [s], %r2, %r3;", &loads), 4);
  assert_int_equal(loads, 1);
  assert_int_equal(chain("atom.shared.add.u32 %r1, [s], %r2;", &loads), 0);
  assert_int_equal(loads, 1);
  assert_int_equal(chain("ld.shared.f32 %f1, [s]; add.f32 %f2, %f1, %f1; ld.shared.f32 %f3, [s+4];", &loads), 4);
  assert_int_equal(loads, 1);
}

/* A load from shared memory stays behind a store that may mean its word, and with it behind what is stored. */
static void test_loads_stay_behind_stores(void **state) {
#define COUNT(address) "ld.shared.u32 %r1, [" address "]; add.s32 %r2, %r1, 1; st.shared.u32 [" address "], %r2;"
  uint32_t loads;
  assert_int_equal(chain(COUNT("%r5") COUNT("%r6") COUNT("%r7"), &loads), 12);
  assert_int_equal(loads, 3);
  /* words of one address, and arrays, are told apart */
  assert_int_equal(chain(COUNT("%r5") COUNT("%r5+4") COUNT("%r5+8"), &loads), 4);
  assert_int_equal(loads, 1);
  assert_int_equal(chain(COUNT("s") "ld.shared.u32 %r3, [dynamic];", &loads), 4);
  assert_int_equal(loads, 1);
  assert_int_equal(chain(COUNT("%r5") "add.s32 %r5, %r5, 4;" COUNT("%r5"), &loads), 8);
  assert_int_equal(loads, 2);
  /* of the stores to one address the last to go out counts */
  chain("st.shared.u32 [%r5], %r1; ld.shared.u32 %r2, [%r5+8]; st.shared.u32 [%r5+4], %r2; ld.shared.u32 %r3, [%r6];",
        &loads);
  assert_int_equal(loads, 2);
  ff_text many = {0}; /* addresses, more than are told apart: the last one's loads stay behind all the same */
  for (int i = 0; i < 20; i++) ff_text_add(&many, "%s", "add.s32 %r5, %r5, 4; " COUNT("%r5"));
  chain(many.chars, &loads);
  assert_int_equal(loads, 20);
  free(many.chars);
  /* neither do loads of other memory wait, nor stores for stores */
  chain(COUNT("%r5") "ld.global.u32 %r3, [%d1]; ld.shared.u32 %r4, [%r3];", &loads);
  assert_int_equal(loads, 2);
  assert_int_equal(chain("add.s32 %r2, %r1, 1; st.shared.u32 [%r5], %r2; st.shared.u32 [%r6], %r1;", &loads), 4);
  assert_int_equal(loads, 0);
  /* an atomic operation is both; it waits until the one before has gone out, not for what that gives */
  chain("ld.shared.u32 %r1, [%r5]; atom.shared.add.u32 %r2, [%r6], %r1; atom.shared.add.u32 %r3, [%r7], 1;", &loads);
  assert_int_equal(loads, 2);
  chain("atom.shared.add.u32 %r1, [%r5], 1; atom.shared.add.u32 %r2, [%r6], 1;", &loads);
  assert_int_equal(loads, 1);
#undef COUNT
}

static void test_registers_of_a_block(void **state) {
  static const ptx_sreg of_block[] = {PTX_SREG_NTID_X,   PTX_SREG_NTID_Y,   PTX_SREG_NTID_Z,
                                      PTX_SREG_CTAID_X,  PTX_SREG_CTAID_Y,  PTX_SREG_CTAID_Z,
                                      PTX_SREG_NCTAID_X, PTX_SREG_NCTAID_Y, PTX_SREG_NCTAID_Z},
                        others[] = {PTX_SREG_TID_X, PTX_SREG_TID_Y, PTX_SREG_TID_Z, PTX_SREG_LANEID, PTX_SREG_WARPID};
  for (size_t i = 0; i < sizeof of_block / sizeof *of_block; i++) assert_true(ptx_sreg_of_block(of_block[i]));
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_false(ptx_sreg_of_block(others[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_registers_of_a_block),
      cmocka_unit_test(test_pipes_of_instructions),
      cmocka_unit_test(test_tensor_core),
      cmocka_unit_test(test_products_of_doubles),
      cmocka_unit_test(test_matrices_in_shared_memory),
      cmocka_unit_test(test_products_of_matrices_take_longer),
      cmocka_unit_test(test_half_precision),
      cmocka_unit_test(test_conversions_of_doubles),
      cmocka_unit_test(test_minima),
      cmocka_unit_test(test_products_and_half_precision),
      cmocka_unit_test(test_tensor_memory),
      cmocka_unit_test(test_what_takes_no_instruction),
      cmocka_unit_test(test_sequences),
      cmocka_unit_test(test_what_is_folded),
      cmocka_unit_test(test_balance),
      cmocka_unit_test(test_wide_shared_loads),
      cmocka_unit_test(test_meeting_points),
      cmocka_unit_test(test_predicates),
      cmocka_unit_test(test_chains),
      cmocka_unit_test(test_loads_stay_behind_stores),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
