/* SPDX-License-Identifier: Apache-2.0 */
/* The PTX of the measurements, for any GPU: sm_50, no optional features (PTX ISA; what is in quotes below is its text).
 *
 * Every kernel stores what it computed, so that no compiler leaves the measured instructions out,
 * and those form a chain that cannot be folded; a loop adds 3 instructions to each round (LOOP_INSTRUCTIONS). */
#include "calibrate/kernels.h"

#include <stdio.h>

static void repeat(ff_text *out, const char *lines, int times) {
  for (int i = 0; i < times; i++) ff_text_add(out, "%s", lines);
}

static void loop_begin(ff_text *out) { ff_text_add(out, "setp.eq.u64 more, n, 0;\n@more bra done;\nagain:\n"); }
static void loop_end(ff_text *out) {
  ff_text_add(out, "sub.u64 n, n, 1;\nsetp.ne.u64 more, n, 0;\n@more bra again;\ndone:\n");
}

/* (start, rounds, out): loads whose value is the next address. */
static void chase(ff_text *out, const char *name, const char *load) {
  ff_text_add(out,
              ".visible .entry %s(.param .u64 p0, .param .u64 p1, .param .u64 p2) {\n"
              ".reg .u64 at, n, to;\n.reg .pred more;\n"
              "ld.param.u64 at, [p0];\nld.param.u64 n, [p1];\nld.param.u64 to, [p2];\n",
              name);
  loop_begin(out);
  repeat(out, load, CHASE_ROUND);
  loop_end(out);
  ff_text_add(out, "st.global.u64 [to], at;\nret;\n}\n");
}

/* (rounds, out): `count` instructions a round of two interleaved chains. `type` f32 or f64. */
static void compute(ff_text *out, const char *name, uint32_t count, const char *type, const char *first,
                    const char *second) {
  ff_text_add(out,
              ".visible .entry %s(.param .u64 p0, .param .u64 p1) {\n"
              ".reg .u64 n, to;\n.reg .pred more;\n.reg .u32 id;\n.reg .%s a, b, x, y;\n"
              "ld.param.u64 n, [p0];\nld.param.u64 to, [p1];\nmov.u32 id, %%tid.x;\n"
              "cvt.rn.%s.u32 a, id;\nmov.%s b, a;\nmov.%s x, a;\nadd.%s y, a, a;\n",
              name, type, type, type, type, type);
  loop_begin(out);
  for (uint32_t i = 0; i < count / 2; i++) ff_text_add(out, "%s%s", first, second);
  loop_end(out);
  ff_text_add(out, "add.%s a, a, b;\nst.global.%s [to], a;\nret;\n}\n", type, type);
}

/* (rounds, out): cycles and nanoseconds before and after, at out + 8. */
static void clocks(ff_text *out) {
  ff_text_add(out, ".visible .entry clocks(.param .u64 p0, .param .u64 p1) {\n"
                   ".reg .u64 n, to, c0, c1, t0, t1;\n.reg .pred more;\n.reg .f32 a;\n"
                   "ld.param.u64 n, [p0];\nld.param.u64 to, [p1];\nmov.f32 a, 0f3F800000;\n"
                   "mov.u64 t0, %%globaltimer;\nmov.u64 c0, %%clock64;\n");
  loop_begin(out);
  repeat(out, "fma.rn.f32 a, a, a, a;\n", COMPUTE_ROUND);
  loop_end(out);
  ff_text_add(
      out,
      "mov.u64 t1, %%globaltimer;\nmov.u64 c1, %%clock64;\nst.global.f32 [to], a;\n"
      "st.global.u64 [to+8], c0;\nst.global.u64 [to+16], t0;\nst.global.u64 [to+24], c1;\nst.global.u64 [to+32], t1;\nret;\n}\n");
}

#define GLOBAL_INDEX                                                                                                                    \
  "mov.u32 block, %%ctaid.x;\nmov.u32 size, %%ntid.x;\nmov.u32 id, %%tid.x;\nmul.wide.u32 index, block, size;\ncvt.u64.u32 wide, id;\n" \
  "add.u64 index, index, wide;\n"

/* (pairs, count): pairs[2i + 1] goes to address pairs[2i]. */
static void scatter(ff_text *out) {
  ff_text_add(out, ".visible .entry scatter(.param .u64 p0, .param .u64 p1) {\n"
                   ".reg .u64 from, n, index, wide, at, value;\n.reg .u32 block, size, id;\n.reg .pred out;\n"
                   "ld.param.u64 from, [p0];\nld.param.u64 n, [p1];\n" GLOBAL_INDEX
                   "setp.ge.u64 out, index, n;\n@out bra done;\nshl.b64 index, index, 4;\nadd.u64 from, from, index;\n"
                   "ld.global.v2.u64 {at, value}, [from];\nst.global.u64 [at], value;\ndone:\nret;\n}\n");
}

/* (base, rounds, bytes of a round, out): STREAM_ROUND accesses of 16 bytes per thread and round. A warp's are 2 KiB
 * that follow each other; the warps of all blocks alternate, so that the SMs go through the range side by side and DRAM
 * rows stay open. `load` NULL: stores. */
static void stream(ff_text *out, const char *name, const char *load) {
  ff_text_add(
      out,
      ".visible .entry %s(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3) {\n"
      ".reg .u64 at, n, step, to, wide;\n.reg .u32 block, grid, id, lane, s;\n.reg .u32 v<16>;\n.reg .pred more;\n"
      "ld.param.u64 at, [p0];\nld.param.u64 n, [p1];\nld.param.u64 step, [p2];\nld.param.u64 to, [p3];\n"
      "mov.u32 block, %%ctaid.x;\nmov.u32 grid, %%nctaid.x;\nmov.u32 id, %%tid.x;\nand.b32 lane, id, 31;\nshr.u32 id, id, 5;\n"
      "mad.lo.u32 id, id, grid, block;\nmul.wide.u32 wide, id, 2048;\nadd.u64 at, at, wide;\nmul.wide.u32 wide, lane, 16;\n"
      "add.u64 at, at, wide;\nmov.u32 s, 0;\n",
      name);
  loop_begin(out);
  for (int i = 0; i < STREAM_ROUND; i++) {
    int r = 4 * i;
    if (load) ff_text_add(out, "%s.v4.u32 {v%d, v%d, v%d, v%d}, [at+%d];\n", load, r, r + 1, r + 2, r + 3, 512 * i);
    else ff_text_add(out, "st.global.v4.u32 [at+%d], {id, id, id, id};\n", 512 * i);
  }
  ff_text_add(out, "add.u64 at, at, step;\n");
  for (int i = 0; load && i < STREAM_ROUND; i++)
    ff_text_add(out, "xor.b32 v%d, v%d, v%d;\nadd.u32 s, s, v%d;\n", 4 * i, 4 * i, 4 * i + 3, 4 * i);
  loop_end(out);
  ff_text_add(out, "setp.ne.u32 more, s, 0xF00DF00D;\n@more bra leave;\nst.global.u32 [to], s;\nleave:\nret;\n}\n");
}

/* (base, stride, out): thread i of the block reads base + i * stride, then writes it. */
static void touch(ff_text *out) {
  ff_text_add(
      out,
      ".visible .entry touch(.param .u64 p0, .param .u64 p1, .param .u64 p2) {\n"
      ".reg .u64 at, stride, to, index, wide, value;\n.reg .u32 block, size, id;\n"
      "ld.param.u64 at, [p0];\nld.param.u64 stride, [p1];\nld.param.u64 to, [p2];\n" GLOBAL_INDEX
      "mad.lo.u64 at, index, stride, at;\nld.global.u64 value, [at];\nadd.u64 value, value, 1;\nst.global.u64 [at], value;\nret;\n}\n");
}

/* (base, stride, count): one thread reads base + i * stride, then writes it, for all i: each write waits for its
 * read. */
static void touch_alone(ff_text *out) {
  ff_text_add(out, ".visible .entry touch_alone(.param .u64 p0, .param .u64 p1, .param .u64 p2) {\n"
                   ".reg .u64 at, stride, n, value;\n.reg .pred more;\n"
                   "ld.param.u64 at, [p0];\nld.param.u64 stride, [p1];\nld.param.u64 n, [p2];\n");
  loop_begin(out);
  ff_text_add(
      out,
      "ld.global.u64 value, [at];\nadd.u64 value, value, 1;\nst.global.u64 [at], value;\nadd.u64 at, at, stride;\n");
  loop_end(out);
  ff_text_add(out, "ret;\n}\n");
}

void kernels_text(ff_text *out) {
  ff_text_add(out, ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing() {\nret;\n}\n");
  chase(out, "chase", "ld.global.ca.u64 at, [at];\n");
  chase(out, "chase_l2", "ld.global.cg.u64 at, [at];\n");
  compute(out, "chain", COMPUTE_ROUND, "f32", "fma.rn.f32 a, a, x, y;\n", "fma.rn.f32 b, b, x, y;\n");
  compute(out, "chain_half", COMPUTE_ROUND / 2, "f32", "fma.rn.f32 a, a, x, y;\n", "fma.rn.f32 b, b, x, y;\n");
  compute(out, "sfu", COMPUTE_ROUND, "f32", "ex2.approx.ftz.f32 a, a;\n", "ex2.approx.ftz.f32 b, b;\n");
  compute(out, "fp64", COMPUTE_ROUND, "f64", "fma.rn.f64 a, a, x, y;\n", "fma.rn.f64 b, b, x, y;\n");
  clocks(out);
  scatter(out);
  stream(out, "read", "ld.global");
  stream(out, "read_l2", "ld.global.cg");
  stream(out, "write", NULL);
  touch(out);
  touch_alone(out);
}
