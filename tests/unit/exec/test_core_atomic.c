/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic operations: every operation and type in every space against a loop over the lanes in order. */
#include "core_harness.h"

#include <math.h>
#include <pthread.h>

typedef uint64_t (*reference)(uint64_t old, uint64_t b, uint64_t c);

static uint32_t low(uint64_t v) { return (uint32_t)v; }
static float as_f32(uint64_t v) {
  float f;
  uint32_t u = (uint32_t)v;
  memcpy(&f, &u, 4);
  return f;
}
static uint64_t f32_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}
static double as_f64(uint64_t v) {
  double f;
  memcpy(&f, &v, 8);
  return f;
}
static uint64_t f64_bits(double f) {
  uint64_t u;
  memcpy(&u, &f, 8);
  return u;
}
static uint64_t add32(uint64_t o, uint64_t b, uint64_t c) { return low(o + b); }
static uint64_t add64(uint64_t o, uint64_t b, uint64_t c) { return o + b; }
static uint64_t addf32(uint64_t o, uint64_t b, uint64_t c) { return f32_bits(as_f32(o) + as_f32(b)); }
static uint64_t addf64(uint64_t o, uint64_t b, uint64_t c) { return f64_bits(as_f64(o) + as_f64(b)); }
static uint64_t minu32(uint64_t o, uint64_t b, uint64_t c) { return low(o) < low(b) ? low(o) : low(b); }
static uint64_t maxu32(uint64_t o, uint64_t b, uint64_t c) { return low(o) > low(b) ? low(o) : low(b); }
static uint64_t mins32(uint64_t o, uint64_t b, uint64_t c) { return (int32_t)o < (int32_t)b ? low(o) : low(b); }
static uint64_t maxs32(uint64_t o, uint64_t b, uint64_t c) { return (int32_t)o > (int32_t)b ? low(o) : low(b); }
static uint64_t minu64(uint64_t o, uint64_t b, uint64_t c) { return o < b ? o : b; }
static uint64_t maxu64(uint64_t o, uint64_t b, uint64_t c) { return o > b ? o : b; }
static uint64_t mins64(uint64_t o, uint64_t b, uint64_t c) { return (int64_t)o < (int64_t)b ? o : b; }
static uint64_t maxs64(uint64_t o, uint64_t b, uint64_t c) { return (int64_t)o > (int64_t)b ? o : b; }
static uint64_t inc32(uint64_t o, uint64_t b, uint64_t c) { return low(o) >= low(b) ? 0 : low(o) + 1; }
static uint64_t dec32(uint64_t o, uint64_t b, uint64_t c) {
  return low(o) == 0 || low(o) > low(b) ? low(b) : low(o) - 1;
}
static uint64_t and_(uint64_t o, uint64_t b, uint64_t c) { return o & b; }
static uint64_t or_(uint64_t o, uint64_t b, uint64_t c) { return o | b; }
static uint64_t xor_(uint64_t o, uint64_t b, uint64_t c) { return o ^ b; }
static uint64_t exch(uint64_t o, uint64_t b, uint64_t c) { return b; }
static uint64_t cas(uint64_t o, uint64_t b, uint64_t c) { return o == b ? c : o; }

static const struct {
  const char *op, *type;
  uint32_t bytes;
  reference f;
} operations[] = {
    {"add", "u32", 4, add32},  {"add", "s32", 4, add32},  {"add", "u64", 8, add64},  {"add", "f32", 4, addf32},
    {"add", "f64", 8, addf64}, {"min", "u32", 4, minu32}, {"max", "u32", 4, maxu32}, {"min", "s32", 4, mins32},
    {"max", "s32", 4, maxs32}, {"min", "u64", 8, minu64}, {"max", "u64", 8, maxu64}, {"min", "s64", 8, mins64},
    {"max", "s64", 8, maxs64}, {"inc", "u32", 4, inc32},  {"dec", "u32", 4, dec32},  {"and", "b32", 4, and_},
    {"or", "b32", 4, or_},     {"xor", "b32", 4, xor_},   {"and", "b64", 8, and_},   {"or", "b64", 8, or_},
    {"xor", "b64", 8, xor_},   {"exch", "b32", 4, exch},  {"exch", "b64", 8, exch},  {"cas", "b32", 4, cas},
    {"cas", "b64", 8, cas}};

static uint64_t operand(const char *type, uint32_t lane, uint32_t n) {
  uint32_t v = lane * 2654435761u + n * 12345;
  if (!strcmp(type, "f32")) return f32_bits((float)(int)(v >> 20) * 0.37f);
  if (!strcmp(type, "f64")) return f64_bits((int)(v >> 20) * 0.37);
  return strstr(type, "64") ? (uint64_t)v << 29 ^ v : v % 1000 + (v & 0x80000000);
}

/* Lanes meet in 4 cells; odd lanes only in the second run. */
static void test_operations(void **state) {
  static const char *const spaces[] = {".global", ".shared", "", ""};
  for (size_t o = 0; o < sizeof operations / sizeof *operations; o++)
    for (uint32_t space = 0; space < 4; space++) {
      uint32_t bytes = operations[o].bytes;
      const char *type = operations[o].type, *r = bytes == 8 ? "%rd" : "%r";
      bool compares = !strcmp(operations[o].op, "cas");
      char body[2048];
      snprintf(
          body, sizeof body,
          "mov.u32 %%r3, %%tid.x; mul.wide.u32 %%rd1, %%r3, 8; add.s64 %%rd2, %%out, %%rd1; ld.global.u64 %%rd10, [%%rd2+64]; ld.global.u64 %%rd11, [%%rd2+320]; ld.global.u32 %%r10, [%%rd2+64];"
          "ld.global.u32 %%r11, [%%rd2+320]; and.b32 %%r4, %%r3, 3; mul.wide.u32 %%rd3, %%r4, 8; add.s64 %%rd4, %%out, %%rd3; mov.u64 %%rd5, sh; setp.gt.u32 %%p1, %%r3, 3; @%%p1 bra L1;"
          "add.s64 %%rd6, %%rd5, %%rd3; ld.global.u64 %%rd7, [%%rd4]; st.shared.u64 [%%rd6], %%rd7; L1: bar.sync 0; and.b32 %%r5, %%r3, %%n; setp.ne.u32 %%p2, %%r5, 0; mov.u64 %%rd20, -1; mov.u32 %%r20, -1;"
          "%s %s @!%%p2 atom%s.%s.%s %s20, [%%rd4], %s10%s%s11; %s mov.b64 {%%r21, %%r22}, %%rd20; %s"
          "st.global.u32 [%%rd2+576], %%r20; st.global.u32 [%%rd2+580], %%r22; %s",
          space == 1 || space == 3 ? "add.s64 %rd8, %rd5, %rd3;" : "",
          space == 1   ? "mov.u64 %rd4, %rd8;"
          : space == 3 ? "cvta.shared.u64 %rd4, %rd8;"
                       : "",
          spaces[space], operations[o].op, type, r, r, compares ? ", " : "; //", r, compares ? "" : "\n",
          bytes == 8 ? "mov.u32 %r20, %r21;" : "mov.u32 %r22, 0;",
          space == 1 || space == 3
              ? "bar.sync 0; @%p1 bra L2; mul.wide.u32 %rd3, %r3, 8; add.s64 %rd6, %rd5, %rd3; ld.shared.u64 %rd7, [%rd6]; add.s64 %rd9, %out, %rd3; st.global.u64 [%rd9], %rd7; L2:"
              : "");
      kernel_test *t = open_body(".shared .align 8 .b8 sh[32];", body);
      uint64_t out = buffer(t, 1024);
      for (uint32_t odd = 0; odd < 2; odd++) {
        uint64_t cells[4], keep = bytes == 8 ? UINT64_MAX : UINT32_MAX, old[32];
        for (uint32_t i = 0; i < 4; i++) cells[i] = u64_at(out)[i] = operand(type, i, 7) & keep;
        for (uint32_t i = 0; i < 32; i++) {
          u64_at(out + 64)[i] = operand(type, i, 1) & keep;
          u64_at(out + 320)[i] = operand(type, i, 2) & keep;
          if (compares && i % 8 == 5) u64_at(out + 64)[i] = i < 8 ? cells[1] : 0; /* some succeed */
        }
        for (uint32_t i = 0; i < 32; i++) {
          old[i] = keep;
          if (i & odd) continue;
          old[i] = cells[i & 3];
          cells[i & 3] = operations[o].f(cells[i & 3], u64_at(out + 64)[i], u64_at(out + 320)[i]) & keep;
        }
        run(t, "k", 1, 32, out, odd);
        for (uint32_t i = 0; i < 4; i++)
          if (u64_at(out)[i] != cells[i])
            fail_msg("atom%s.%s.%s space %u cell %u: %llx, not %llx", spaces[space], operations[o].op, type, space, i,
                     (unsigned long long)u64_at(out)[i], (unsigned long long)cells[i]);
        for (uint32_t i = 0; i < 32; i++)
          if ((u64_at(out + 576)[i] & keep) != old[i])
            fail_msg("atom%s.%s.%s lane %u: old value %llx, not %llx", spaces[space], operations[o].op, type, i,
                     (unsigned long long)u64_at(out + 576)[i], (unsigned long long)old[i]);
      }
      close_ptx(t);
    }
}

/* All lanes at one cell, with and without the old values: in global and shared memory, also by generic addresses, by
 * one block and by two that run at once. A red takes its lanes together where the operation lets it. */
static void check_one_cell(size_t o, uint32_t space, bool returns, uint32_t mask) {
  static const char *const spaces[] = {".global", ".shared", "", ""};
  const char *type = operations[o].type, *r = operations[o].bytes == 8 ? "%rd" : "%r";
  bool shared = space == 1 || space == 3;
  char body[2048], atomic[128];
  snprintf(atomic, sizeof atomic, "%s%s.%s.%s %s%s [%%rd4], %s10;", returns ? "atom" : "red", spaces[space],
           operations[o].op, type, returns ? r : "", returns ? "20," : "", r);
  snprintf(
      body, sizeof body,
      "mov.u32 %%r3, %%tid.x; mul.wide.u32 %%rd1, %%r3, 8; add.s64 %%rd2, %%out, %%rd1; ld.global.u64 %%rd10, [%%rd2+64]; cvt.u32.u64 %%r10, %%rd10; setp.ne.u32 %%p1, %%r3, 0;"
      "mov.u64 %%rd4, %s; %s @%%p1 bra L1; ld.global.u64 %%rd7, [%%out]; st.shared.u64 [sh], %%rd7; L1: bar.sync 0; shr.b32 %%r5, %%n, %%r3; and.b32 %%r5, %%r5, 1; setp.ne.u32 %%p2, %%r5, 0;"
      "mov.u64 %%rd20, 0; mov.u32 %%r20, 0; @%%p2 %s bar.sync 0; ld.shared.u64 %%rd8, [sh]; st.global.u64 [%%out+8], %%rd8; %s st.global.u64 [%%rd2+576], %%rd20;",
      shared ? "sh" : "%out", space == 3 ? "cvta.shared.u64 %rd4, %rd4;" : "", atomic,
      operations[o].bytes == 8 ? "" : "cvt.u64.u32 %rd20, %r20;");
  kernel_test *t = open_body(".shared .align 8 .b8 sh[8];", body);
  uint64_t out = buffer(t, 1024), keep = operations[o].bytes == 8 ? UINT64_MAX : UINT32_MAX;
  for (uint32_t blocks = 1; blocks <= (returns ? 1 : 2); blocks++) {
    uint64_t cell = u64_at(out)[0] = operand(type, 3, 9) & keep, old[32];
    for (uint32_t i = 0; i < 32; i++) u64_at(out + 64)[i] = operand(type, i, 1) & keep;
    for (uint32_t b = 0; b < (shared ? 1 : blocks); b++)
      for (uint32_t i = 0; i < 32; i++) {
        old[i] = mask >> i & 1 ? cell : 0;
        if (mask >> i & 1) cell = operations[o].f(cell, u64_at(out + 64)[i], 0) & keep;
      }
    t->config.threads = blocks;
    run(t, "k", blocks, 32, out, mask);
    if (u64_at(out)[shared] != cell)
      fail_msg("%s under 0x%x: %llx, not %llx", atomic, mask, (unsigned long long)u64_at(out)[shared],
               (unsigned long long)cell);
    for (uint32_t i = 0; returns && i < 32; i++)
      if (u64_at(out + 576)[i] != old[i])
        fail_msg("%s under 0x%x, lane %u: %llx, not %llx", atomic, mask, i, (unsigned long long)u64_at(out + 576)[i],
                 (unsigned long long)old[i]);
  }
  close_ptx(t);
}

static void test_one_cell(void **state) {
  for (size_t o = 0; o < sizeof operations / sizeof *operations && strcmp(operations[o].op, "exch"); o++)
    for (uint32_t space = 0; space < 4; space++)
      for (uint32_t returns = 0; returns < 2; returns++) {
        check_one_cell(o, space, returns, UINT32_MAX);
        check_one_cell(o, space, returns, 0x8040a010);
      }
}

/* red, results that are not read, and several workers at once: the sum is exact for integers. */
static void test_many_workers(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r3, %tid.x; red.global.add.u32 [%out], 1; atom.global.add.u32 %r4, [%out+4], %r3; and.b32 %r5, %r3, 7; mul.wide.u32 %rd1, %r5, 8; add.s64 %rd2, %out, %rd1;"
      "red.global.max.u64 [%rd2+64], %rd1; atom.global.add.f32 %f1, [%out+8], 0f3F800000; red.relaxed.gpu.global.or.b32 [%out+12], %r5; atom.add.release.gpu.global.u64 %rd3, [%out+16], 2;");
  uint64_t out = buffer(t, 256);
  t->config.threads = 4;
  run(t, "k", 40, 128, out, 0);
  assert_int_equal(u32_at(out)[0], 40 * 128);
  assert_int_equal(u32_at(out)[1], 40 * (127 * 128 / 2));
  assert_true(f32_at(out)[2] == 40 * 128);
  assert_int_equal(u32_at(out)[3], 7);
  assert_int_equal(u64_at(out)[2], 40 * 128 * 2);
  for (uint32_t i = 0; i < 8; i++) assert_int_equal(u64_at(out + 64)[i], 8 * i);
  close_ptx(t);
}

typedef struct host_adder {
  uint32_t *cells, added, stop;
} host_adder;

static void *add_in_parallel(void *argument) {
  host_adder *b = argument;
  for (; !__atomic_load_n(&b->stop, __ATOMIC_RELAXED); b->added++)
    for (uint32_t c = 0; c < 3; c++) __atomic_fetch_add(&b->cells[c], 1, __ATOMIC_RELAXED);
  return NULL;
}

/* Atomics of .sys scope and a thread of the host's on the same cells: nothing gets lost, not even with one worker. */
static void test_host_in_parallel(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r3, 0; L1: red.global.sys.add.u32 [%out], 1; atom.sys.global.add.u32 %r4, [%out+4], 1; atom.relaxed.sys.add.u32 %r5, [%out+8], %r4; atom.relaxed.sys.add.u32 %r6, [%out+8], 1;"
      "neg.s32 %r4, %r4; red.sys.add.u32 [%out+8], %r4; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %n; @%p1 bra L1;");
  uint64_t out = buffer(t, 64);
  host_adder b = {.cells = u32_at(out)};
  pthread_t thread;
  memset(b.cells, 0, 64);
  assert_int_equal(pthread_create(&thread, NULL, add_in_parallel, &b), 0);
  while (!__atomic_load_n(b.cells, __ATOMIC_RELAXED)) {}
  run(t, "k", 2, 32, out, 30000);
  __atomic_store_n(&b.stop, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  for (uint32_t c = 0; c < 3; c++) assert_int_equal(b.cells[c], b.added + 2 * 32 * 30000);
  close_ptx(t);
}

static void test_halves(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r3, 0x3c003800; mov.b32 {%rs1, %rs2}, %r3; red.global.add.noftz.f16x2 [%out], %r3; atom.global.add.noftz.f16 %rs3, [%out+4], %rs2; mov.u32 %r4, 0x3f803f00;"
      "red.global.add.noftz.bf16x2 [%out+8], %r4; atom.global.cas.b16 %rs4, [%out+12], 0, %rs1; atom.global.cas.b16 %rs5, [%out+14], 5, 9;");
  uint64_t out = buffer(t, 64);
  memset(u32_at(out), 0, 64);
  ((uint16_t *)u32_at(out))[7] = 5;
  run(t, "k", 1, 8, out, 0);
  assert_int_equal(u32_at(out)[0], 0x48004400); /* 8 and 4 */
  assert_int_equal(u32_at(out)[1], 0x4800);
  assert_int_equal(u32_at(out)[2], 0x41004080);
  assert_int_equal(u32_at(out)[3], 0x3800 | 9 << 16);
  close_ptx(t);
}

/* atom.add.f32 flushes subnormals in global memory and keeps them in shared memory. */
static void test_subnormals(void **state) {
  kernel_test *t = open_body(
      ".shared .align 4 .b8 sh[4];",
      "mov.f32 %f1, 0f00000003; st.global.f32 [%out], %f1; st.shared.f32 [sh], %f1; atom.global.add.f32 %f2, [%out], %f1; atom.shared.add.f32 %f3, [sh], %f1;"
      "ld.shared.f32 %f4, [sh]; st.global.f32 [%out+4], %f4; mov.f32 %f5, 0f80000003; st.global.f32 [%out+8], %f5; red.global.add.f32 [%out+8], %f5;");
  uint64_t out = buffer(t, 64);
  run(t, "k", 1, 1, out, 0);
  assert_int_equal(u32_at(out)[0], 0);
  assert_int_equal(u32_at(out)[1], 6);
  assert_int_equal(u32_at(out)[2], 0x80000000);
  close_ptx(t);
}

static void test_wide(void **state) {
  kernel_test *t = open_body(
      "",
      ".reg .b128 %q<5>; mov.u64 %rd1, 1; mov.u64 %rd2, 2; mov.b128 %q1, {%rd1, %rd2}; atom.global.exch.b128 %q2, [%out], %q1; mov.b128 {%rd3, %rd4}, %q2; st.global.v2.b64 [%out+16], {%rd3, %rd4};"
      "mov.b128 %q3, {%rd3, %rd4}; atom.global.cas.b128 %q4, [%out], %q1, %q3; mov.b128 {%rd5, %rd6}, %q4; st.global.v2.b64 [%out+32], {%rd5, %rd6};");
  uint64_t out = buffer(t, 64);
  u64_at(out)[0] = 77;
  u64_at(out)[1] = 88;
  run(t, "k", 1, 1, out, 0);
  const uint64_t want[] = {77, 88, 77, 88, 1, 2};
  for (uint32_t i = 0; i < 6; i++) assert_int_equal(u64_at(out)[i], want[i]);
  close_ptx(t);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_operations),   cmocka_unit_test(test_one_cell),
                                          cmocka_unit_test(test_many_workers), cmocka_unit_test(test_host_in_parallel),
                                          cmocka_unit_test(test_halves),       cmocka_unit_test(test_subnormals),
                                          cmocka_unit_test(test_wide)};
RUN_ON_EVERY_ISA(tests)
