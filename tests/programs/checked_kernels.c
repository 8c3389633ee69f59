/* SPDX-License-Identifier: Apache-2.0 */
/* A program with one fault per name, for memcheck and racecheck: checked_kernels KERNEL [GRID BLOCK]. Every kernel gets
 * two arrays of 100 words, the first of which has values; some names do something on the host as well. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_call.h"

/* i is the thread's number in the grid, t in its block; %rd3 and %rd4 are the addresses of word i of the arrays, %r5 is
 * the shared word of t. */
#define ENTRY(name, body)                                                                                                   \
  ".visible .entry " name                                                                                                   \
  "(.param .u64 a, .param .u64 b)\n{\n.reg .b32 %r<16>;\n.reg .b64 %rd<12>;\n.reg .pred %p<6>;\n"                           \
  "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\n" \
  "mad.lo.s32 %r1, %r3, %r4, %r2;\nmul.wide.u32 %rd5, %r1, 4;\nadd.u64 %rd3, %rd1, %rd5;\nadd.u64 %rd4, %rd2, %rd5;\n"      \
  "mov.u32 %r6, words;\nmad.lo.u32 %r5, %r2, 4, %r6;\n" body "ret;\n}\n"
#define LOC(line) ".loc 1 " #line " 0\n"

/* clang-format off */
static const char code[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n.file 1 \"/src/faults.cu\"\n.shared .align 4 .b8 words[512];\n"
    ".global .align 4 .u32 flag;\n.global .align 4 .u32 payload;\n.extern .func (.param .b64 r) malloc (.param .b64 n);\n.extern .func free (.param .b64 p);\n"
    /* ---- memcheck ---- */
    ENTRY("good", "ld.global.u32 %r7, [%rd3];\nst.global.u32 [%rd4], %r7;\nld.global.u32 %r8, [%rd4];\nst.shared.u32 [%r5], %r8;\natom.global.add.u32 %r9, [%rd4], 1;\n")
    ENTRY("after", LOC(12) "st.global.u32 [%rd3+16], %r1;\n")
    ENTRY("before", LOC(13) "ld.global.u32 %r7, [%rd1+-8];\n")
    ENTRY("over", LOC(14) "ld.global.v2.u32 {%r7, %r8}, [%rd1+392];\nld.global.v4.u32 {%r7, %r8, %r9, %r10}, [%rd1+400];\n")
    ENTRY("misaligned", LOC(15) "st.global.u32 [%rd3+2], %r1;\n")
    ENTRY("atomic", LOC(16) "atom.global.add.u32 %r7, [%rd1+4096000], 1;\nst.global.u32 [%rd2], %r7;\n")
    ENTRY("reads", LOC(17) "ld.global.u32 %r7, [%rd4];\nst.global.u32 [%rd3], %r7;\n")
    ENTRY("copies", "ld.global.u32 %r7, [%rd3];\nst.global.u32 [%rd4], %r7;\n")
    ENTRY("padding", "st.global.u8 [%rd2], %r1;\nst.global.u32 [%rd2+4], %r1;\nld.global.u64 %rd6, [%rd2];\nst.global.u64 [%rd1], %rd6;\n")
    ENTRY("shared", LOC(18) "st.shared.u32 [%r5+508], %r1;\n")
    ENTRY("unwritten", LOC(19) "ld.shared.u32 %r7, [%r5];\nst.global.u32 [%rd3], %r7;\n")
    ENTRY("local", ".local .align 8 .b8 mine[32];\nst.local.v2.u32 [mine+8], {%r1, %r1};\n" LOC(24) "ld.local.u32 %r7, [mine+8];\n" LOC(25)
                   "ld.local.u32 %r8, [mine+16];\nadd.u32 %r7, %r7, %r8;\nst.global.u32 [%rd3], %r7;\n")
    ENTRY("pointer", ".local .align 8 .b8 mine[32];\nmov.u64 %rd6, mine;\ncvta.local.u64 %rd7, %rd6;\n" LOC(26) "ld.u32 %r7, [%rd7+4];\nst.global.u32 [%rd3], %r7;\n")
    ENTRY("holes", ".local .align 8 .b8 mine[32];\nst.local.u32 [mine], %r1;\nld.local.v2.u32 {%r7, %r8}, [mine];\nst.local.v2.u32 [mine+8], {%r7, %r8};\n"
                   "ld.local.u64 %rd6, [mine+8];\nst.global.u32 [%rd3], %rd6;\n")
    ENTRY("heap", "{\n.param .b64 n;\nst.param.b64 [n], 20;\n.param .b64 r;\ncall.uni (r), malloc, (n);\nld.param.b64 %rd6, [r];\n}\n"
                  "st.u32 [%rd6+16], %r1;\n" LOC(20) "st.u32 [%rd6+20], %r1;\n{\n.param .b64 p;\nst.param.b64 [p], %rd6;\ncall.uni free, (p);\n}\n"
                  "{\n.param .b64 p;\nst.param.b64 [p], %rd6;\n" LOC(21) "call.uni free, (p);\n}\n")
    ENTRY("traps", LOC(22) "trap;\n")
    ENTRY("spins", LOC(23) "st.global.u32 [%rd1+400], %r1;\nAGAIN:\nld.volatile.global.u32 %r7, [%rd1];\nsetp.ne.u32 %p1, %r7, 12345678;\n@%p1 bra AGAIN;\n")
    /* ---- racecheck ---- */
    ENTRY("ordered", "st.shared.u32 [%r5], %r1;\nbar.sync 0;\nxor.b32 %r7, %r2, 63;\nmad.lo.u32 %r7, %r7, 4, %r6;\nld.shared.u32 %r8, [%r7];\nst.global.u32 [%rd3], %r8;\n")
    ENTRY("unordered", LOC(30) "st.shared.u32 [%r5], %r1;\nxor.b32 %r7, %r2, 63;\nmad.lo.u32 %r7, %r7, 4, %r6;\n" LOC(31) "ld.shared.u32 %r8, [%r7];\nst.global.u32 [%rd3], %r8;\n")
    ENTRY("instep", LOC(32) "st.shared.u32 [%r5], %r1;\nxor.b32 %r7, %r2, 1;\nmad.lo.u32 %r7, %r7, 4, %r6;\n" LOC(33) "ld.shared.u32 %r8, [%r7];\nst.global.u32 [%rd3], %r8;\n")
    ENTRY("synced", "st.shared.u32 [%r5], %r1;\nbar.warp.sync -1;\nxor.b32 %r7, %r2, 1;\nmad.lo.u32 %r7, %r7, 4, %r6;\nld.shared.u32 %r8, [%r7];\nst.global.u32 [%rd3], %r8;\n")
    ENTRY("overwrites", LOC(34) "st.global.u32 [%rd1], %r3;\n")
    ENTRY("agrees", "mov.u32 %r7, 7;\nst.global.u32 [%rd1], %r7;\n")
    ENTRY("counts", "atom.global.add.u32 %r7, [%rd1], 1;\nred.global.max.u32 [%rd1+4], %r1;\n")
    ENTRY("flags", "setp.ne.u32 %p1, %r3, 0;\n@%p1 bra WAIT;\nst.global.u32 [payload], 5;\nmembar.gl;\nst.volatile.global.u32 [flag], 1;\nbra DONE;\n"
                   "WAIT:\nld.volatile.global.u32 %r7, [flag];\nsetp.eq.u32 %p2, %r7, 0;\n@%p2 bra WAIT;\nmembar.gl;\nld.global.u32 %r8, [payload];\n"
                   "st.global.u32 [%rd3], %r8;\nDONE:\n")
    ENTRY("flags_without_fence", "setp.ne.u32 %p1, %r3, 0;\n@%p1 bra WAIT;\n" LOC(35) "st.global.u32 [payload], 5;\nst.volatile.global.u32 [flag], 1;\nbra DONE;\n"
                   "WAIT:\nld.volatile.global.u32 %r7, [flag];\nsetp.eq.u32 %p2, %r7, 0;\n@%p2 bra WAIT;\nmembar.gl;\n" LOC(36) "ld.global.u32 %r8, [payload];\n"
                   "st.global.u32 [%rd3], %r8;\nDONE:\n")
    ENTRY("parts", "and.b32 %r7, %r2, 1;\nsetp.eq.u32 %p1, %r7, 0;\n@%p1 bra EVEN;\n" LOC(37) "bar.sync 0;\nbra DONE;\nEVEN:\n" LOC(38) "bar.sync 0;\nDONE:\n")
    ENTRY("leaves", "setp.gt.u32 %p1, %r2, 15;\n@%p1 bra DONE;\n" LOC(39) "bar.sync 0;\nDONE:\n")
    ENTRY("wrong_mask", "mov.u32 %r7, 2;\nsetp.eq.u32 %p1, %r2, 0;\n" LOC(40) "@%p1 bar.warp.sync %r7;\n")
    ENTRY("named", "setp.gt.u32 %p1, %r2, 31;\n@%p1 bra SECOND;\nst.shared.u32 [%r5], %r1;\nbar.arrive 1, 64;\nbra DONE;\nSECOND:\nbar.sync 1, 64;\n"
                   "ld.shared.u32 %r7, [%r5+-128];\nst.global.u32 [%rd3], %r7;\nDONE:\n");
/* clang-format on */

/* Calls a function of the driver's and returns its result. */
#define TRY(name, types, ...) (((int(*) types)dlsym(library, #name))(__VA_ARGS__))

static uint64_t allocate(size_t bytes) {
  uint64_t address;
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &address, bytes);
  return address;
}

static void launch(void *module, const char *name, unsigned grid, unsigned block, uint64_t a, uint64_t b) {
  void *kernel, *arguments[] = {&a, &b};
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, name);
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       grid, 1, 1, block, 1, 1, 0, NULL, arguments, NULL);
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "good";
  unsigned grid = argc > 2 ? (unsigned)atoi(argv[2]) : 1, block = argc > 3 ? (unsigned)atoi(argv[3]) : 32;
  uint32_t words[100] = {1, 2, 3};
  void *module;
  module = driver_open(code);
  uint64_t a = allocate(sizeof words), b = allocate(sizeof words);
  CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), a, words, sizeof words);
  if (!strcmp(name, "copied")) { /* values come by a copy from one array to the other, and by a set */
    CALL(cuMemcpyDtoD_v2, (uint64_t, uint64_t, size_t), b, a, sizeof words);
    name = "reads";
  } else if (!strcmp(name, "set")) {
    CALL(cuMemsetD8_v2, (uint64_t, unsigned char, size_t), b, 1, sizeof words);
    name = "reads";
  } else if (
      !strcmp(name,
              "half")) { /* words 50 and up have no value, and copying them from one place to another gives them none */
    uint64_t c = allocate(sizeof words);
    CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), c, words, sizeof words / 2);
    CALL(cuMemcpyDtoD_v2, (uint64_t, uint64_t, size_t), b, c, sizeof words);
    CALL(cuMemFree_v2, (uint64_t), c);
    name = "reads";
  } else if (!strcmp(name, "freed")) {
    CALL(cuMemFree_v2, (uint64_t), b);
    name = "reads";
  } else if (!strcmp(name, "wrong_call")) {
    TRY(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), a, words, 2 * sizeof words);
    name = "copies";
  } else if (!strcmp(name, "managed")) { /* the host writes it whenever it likes */
    uint64_t c;
    CALL(cuMemAllocManaged, (uint64_t *, size_t, unsigned), &c, sizeof words, 1);
    memset((void *)(uintptr_t)c, 1, sizeof words);
    launch(module, "reads", 1, 32, a, c);
    CALL(cuMemFree_v2, (uint64_t), c);
    name = "copies";
  }
  launch(module, name, grid, block, a, b);
  int failed = TRY(cuCtxSynchronize, (void));
  if (!failed) CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), words, a, sizeof words);
  if (getenv("LEAK")) return 0;
  if (!failed && argc > 1 && strcmp(argv[1], "freed")) CALL(cuMemFree_v2, (uint64_t), b);
  if (!failed) CALL(cuMemFree_v2, (uint64_t), a);
  printf("%u %u\n", words[0], words[1]);
  return failed ? 5 : 0;
}
