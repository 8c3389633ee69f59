/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a context after a fault of a kernel; what kernels print and allocate. */
#define _GNU_SOURCE
#include "answers.h"


#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"

static const char faults_text[] = HEAD
    ".visible .entry store(.param .u64 to) { .reg .b64 %d<3>; .reg .b32 %r<3>; ld.param.u64 %d1, [to]; mov.u32 %r1, 1; st.u32 [%d1], %r1; ret; }\n"
    ".visible .entry global(.param .u64 to) { .reg .b64 %d<3>; .reg .b32 %r<3>; ld.param.u64 %d1, [to]; mov.u32 %r1, 1; st.global.u32 [%d1], %r1; ret; }\n"
    ".visible .entry load(.param .u64 to) { .reg .b64 %d<3>; .reg .b32 %r<3>; ld.param.u64 %d1, [to]; ld.global.u32 %r1, [%d1]; st.global.u32 [%d1], %r1; ret; }\n"
    ".visible .entry atomic(.param .u64 to) { .reg .b64 %d<3>; .reg .b32 %r<3>; ld.param.u64 %d1, [to]; atom.global.add.u32 %r1, [%d1], 1; ret; }\n"
    ".visible .entry shared(.param .u64 to) { .shared .align 4 .b8 box[64]; .reg .b64 %d<3>; .reg .b32 %r<5>; ld.param.u64 %d1, [to]; cvt.u32.u64 %r1, %d1; mov.u32 %r2, box; add.u32 %r2, %r2, %r1; st.shared.u32 [%r2], %r1; ld.shared.u32 %r3, [%r2]; st.shared.u32 [box], %r3; ret; }\n"
    ".visible .entry local(.param .u64 to) { .local .align 4 .b8 box[64]; .reg .b64 %d<4>; .reg .b32 %r<5>; ld.param.u64 %d1, [to]; mov.u64 %d2, box; add.u64 %d2, %d2, %d1; mov.u32 %r1, 1; st.local.u32 [%d2], %r1; ld.local.u32 %r2, [%d2]; st.local.u32 [box], %r2; ret; }\n"
    ".visible .entry trapping(.param .u64 to) { trap; }\n"
    ".visible .entry leaving(.param .u64 to) { exit; }\n"
    ".visible .entry dividing(.param .u64 to) { .reg .b64 %d<3>; .reg .b32 %r<5>; ld.param.u64 %d1, [to]; ld.global.u32 %r1, [%d1]; mov.u32 %r2, 7; div.u32 %r3, %r2, %r1; st.global.u32 [%d1], %r3; ret; }\n"
    ".visible .entry jumping(.param .u64 to) { .reg .b64 %d<3>; .reg .b32 %r<5>; ld.param.u64 %d1, [to]; call (), %d1, (), proto; proto: .callprototype ()_ (); ret; }\n"
    ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n"
    ".global .align 1 .b8 what[4] = {120, 61, 49, 0};\n.global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};\n.global .align 1 .b8 fun[3] = {102, 110, 0};\n"
    ".visible .entry asserting(.param .u64 to) { .reg .b64 %d<9>; .reg .b32 %r<3>; mov.u64 %d1, what; cvta.global.u64 %d1, %d1; mov.u64 %d2, file; cvta.global.u64 %d2, %d2; mov.u32 %r1, 12; mov.u64 %d3, fun; cvta.global.u64 %d3, %d3; mov.u64 %d4, 1;\n"
    "{ .param .b64 a; st.param.b64 [a], %d1; .param .b64 b; st.param.b64 [b], %d2; .param .b32 c; st.param.b32 [c], %r1; .param .b64 d; st.param.b64 [d], %d3; .param .b64 e; st.param.b64 [e], %d4; call __assertfail, (a, b, c, d, e); } ret; }\n";

enum { MEMORY = 1, HOST = 2, PINNED = 4, MANAGED = 8, NULL_BASE = 16 };
static void fault(const char *label, const char *name, int base, W offset, int threads) {
  char text[120];
  ALONE({
    void *context = answers_context();
    W m = answers_module(faults_text), f = answers_function(m, name), at = 0, word[4] = {0};
    static int host[64];
    if (base == MEMORY) at = answers_memory(4096);
    if (base == HOST) at = (W)host;
    if (base == PINNED) MUST(cuMemHostAlloc, &at, 4096, 0);
    if (base == MANAGED) MUST(cuMemAllocManaged, &at, 4096, 1);
    W kept = answers_memory(64);
    at += offset;
    W parameters[1] = {(W)&at};
    snprintf(text, sizeof text, "%s, launch", label);
    ASK(text, cuLaunchKernel, f, 1, 1, 1, threads, 1, 1, 0, 0, parameters, 0);
    snprintf(text, sizeof text, "%s", label);
    int result = ASK(text, cuCtxSynchronize, 0);
    snprintf(text, sizeof text, "%s, again", label);
    ASK(text, cuCtxSynchronize, 0);
    if (result) {
      snprintf(text, sizeof text, "%s, after", label);
      ASK(text, cuMemAlloc_v2, word, 16);
      ASK(text, cuStreamQuery, 0);
      ASK(text, cuMemcpyDtoH_v2, word, kept, 16);
      ASK(text, cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, 0, parameters, 0);
      ASK(text, cuMemFree_v2, kept);
      ASK(text, cuCtxGetCurrent, word);
      ASK(text, cuStreamCreate, word, 0);
      ASK(text, cuEventCreate, word, 0);
      ASK(text, cuMemGetInfo_v2, word, word + 1);
      ASK(text, cuModuleUnload, m);
      ASK(text, cuMemHostAlloc, word, 16, 0);
      ASK(text, cuCtxGetLimit, word, 0);
      ASK(text, cuDeviceGetAttribute, word, 1, 0);
      ASK(text, cuPointerGetAttribute, word, 2, kept);
      ASK(text, cuCtxCreate_v2, word, 0, 0);
      ASK(text, cuDevicePrimaryCtxReset_v2, 0);
      snprintf(text, sizeof text, "%s, after the reset", label);
      ASK(text, cuCtxSetCurrent, context);
      ASK(text, cuMemAlloc_v2, word, 16);
      ASK(text, cuCtxSynchronize, 0);
    }
  });
}

static void faults_global(void) {
  fault("a store to null", "global", NULL_BASE, 0, 1);
  fault("a generic store to null", "store", NULL_BASE, 0, 1);
  fault("a load from null", "load", NULL_BASE, 0, 1);
  fault("an atomic on null", "atomic", NULL_BASE, 0, 1);
}
static void faults_far(void) {
  fault("a store far away", "global", NULL_BASE, 0x123456789000, 1);
  fault("a store beyond 49 bits", "global", NULL_BASE, 1ul << 60, 1);
  fault("a load past the end by 64 MiB", "load", MEMORY, 64 << 20, 1);
}
static void faults_misaligned(void) {
  fault("a misaligned store", "global", MEMORY, 2, 1);
  fault("a misaligned load", "load", MEMORY, 1, 32);
  fault("a misaligned atomic", "atomic", MEMORY, 2, 1);
}
static void faults_shared(void) {
  fault("a store past shared memory", "shared", NULL_BASE, 300000, 1);
  fault("a store far past shared memory", "shared", NULL_BASE, 1 << 24, 1);
  fault("a misaligned store to shared memory", "shared", NULL_BASE, 2, 1);
  fault("a store past a variable of shared memory", "shared", NULL_BASE, 256, 1);
}
static void faults_local(void) {
  fault("a store far past local memory", "local", NULL_BASE, 1 << 24, 1);
  fault("a misaligned store to local memory", "local", NULL_BASE, 2, 1);
  fault("a store past a variable of local memory", "local", NULL_BASE, 64, 1);
}
static void faults_other(void) {
  fault("a trap", "trapping", NULL_BASE, 0, 1);
  fault("an exit", "leaving", NULL_BASE, 0, 1);
  fault("a division by zero", "dividing", MEMORY, 0, 1);
  fault("an assertion", "asserting", NULL_BASE, 0, 1);
}
static void faults_places(void) {
  fault("a store to the host's memory", "global", HOST, 0, 1);
  fault("a store to pinned memory", "global", PINNED, 0, 1);
  fault("a store to managed memory", "global", MANAGED, 0, 1);
  fault("a call of nothing", "jumping", NULL_BASE, 0x10, 1);
}

static const char prints_text[] = HEAD
    ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n"
    ".global .align 1 .b8 text[22] = {37, 117, 32, 37, 53, 46, 50, 102, 32, 37, 120, 32, 37, 99, 32, 37, 115, 33, 37, 37, 10, 0};\n"
    ".global .align 1 .b8 word[6] = {119, 111, 114, 100, 33, 0};\n"
    ".visible .entry say(.param .u64 to) { .local .align 8 .b8 box[40]; .reg .b64 %d<9>; .reg .b32 %r<9>; ld.param.u64 %d1, [to]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 100, %r1;\n"
    "mov.u64 %d2, box; cvta.local.u64 %d3, %d2; st.local.u32 [%d2], %r3; mov.b64 %d4, 0d400921FB54442D18; st.local.u64 [%d2+8], %d4; st.local.u32 [%d2+16], %r3; mov.u32 %r4, 65; st.local.u32 [%d2+20], %r4;\n"
    "mov.u64 %d5, word; cvta.global.u64 %d5, %d5; st.local.u64 [%d2+24], %d5; mov.u64 %d6, text; cvta.global.u64 %d6, %d6;\n"
    "{ .param .b64 a; st.param.b64 [a], %d6; .param .b64 b; st.param.b64 [b], %d3; .param .b32 r; call (r), vprintf, (a, b); ld.param.b32 %r5, [r]; }\n"
    "mul.wide.u32 %d7, %r1, 4; add.u64 %d7, %d7, %d1; st.global.u32 [%d7], %r5; ret; }\n"
    ".visible .entry take(.param .u64 to, .param .u64 bytes) { .reg .b64 %d<9>; ld.param.u64 %d1, [to]; ld.param.u64 %d2, [bytes];\n"
    "{ .param .b64 n; st.param.b64 [n], %d2; .param .b64 r; call (r), malloc, (n); ld.param.b64 %d3, [r]; }\n st.global.u64 [%d1], %d3; ret; }\n"
    ".visible .entry give(.param .u64 p) { .reg .b64 %d<9>; ld.param.u64 %d1, [p]; { .param .b64 p; st.param.b64 [p], %d1; call free, (p); } ret; }\n";

static void prints(void) {
  answers_context();
  W m = answers_module(prints_text), f = answers_function(m, "say"), d = answers_memory(4096), pointer = (W)&d;
  ASK("40 threads", cuLaunchKernel, f, 1, 1, 1, 40, 1, 1, 0, 0, &pointer, 0);
  ASK("", cuCtxSynchronize, 0);
  int results[40] = {0};
  DO(cuMemcpyDtoH_v2, results, d, sizeof results);
  say("returned", "%d %d", results[0], results[39]);
  W limit = 0;
  DO(cuCtxGetLimit, &limit, 1);
  say("limit", "%lu", limit);
}

static void heap(void) {
  answers_context();
  W m = answers_module(prints_text), take = answers_function(m, "take"), give = answers_function(m, "give"),
    d = answers_memory(64), seen = 0, word[4] = {0};
  static const W sizes[] = {0, 1, 16, 1000, 1 << 20, 4 << 20, 7 << 20, 8 << 20, 16 << 20};
  char text[100];
  for (int i = 0; i < 9; i++) {
    W bytes = sizes[i], parameters[2] = {(W)&d, (W)&bytes};
    snprintf(text, sizeof text, "malloc of %lu", bytes);
    MUST(cuLaunchKernel, take, 1, 1, 1, 1, 1, 1, 0, 0, parameters, 0);
    MUST(cuMemcpyDtoH_v2, &seen, d, 8);
    say(text, "%s, alignment %lu", seen ? "memory" : "null", seen ? ((seen & -seen) > 16 ? 16 : seen & -seen) : 0);
    if (!seen) continue;
    int type = 0;
    ASK(text, cuPointerGetAttribute, &type, 2, seen);
    ASK(text, cuMemcpyDtoH_v2, word, seen, 1);
    ASK(text, cuMemFree_v2, seen);
    W parameter = (W)&seen;
    MUST(cuLaunchKernel, give, 1, 1, 1, 1, 1, 1, 0, 0, &parameter, 0);
  }
  ASK("after a launch", cuCtxSetLimit, 2, 64 << 20);
  DO(cuCtxGetLimit, word, 2);
  say("limit after a launch", "%lu", word[0]);
  ASK("at last", cuCtxSynchronize, 0);
}

const section sections_faults[] = {{"faults_global", faults_global},
                                   {"faults_far", faults_far},
                                   {"faults_misaligned", faults_misaligned},
                                   {"faults_shared", faults_shared},
                                   {"faults_local", faults_local},
                                   {"faults_other", faults_other},
                                   {"faults_places", faults_places},
                                   {"prints", prints},
                                   {"heap", heap},
                                   {NULL, NULL}};
