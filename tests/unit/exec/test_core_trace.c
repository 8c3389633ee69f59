/* SPDX-License-Identifier: Apache-2.0 */
/* The access stream of known kernels, record by record. */
#include "core_harness.h"

#include "exec/memory/cache_policy.h"

typedef struct stream {
  trace_program *program;
  trace_reader *reader;
  trace_launch *launch;
} stream;

static bool with_units; /* of streams that begin */

static stream begin_within(kernel_test *t, uint64_t budget, uint64_t blocks, uint32_t warps) {
  stream s = {.program = trace_program_create(budget)};
  trace_program_units(s.program, with_units);
  s.reader = trace_reader_create(s.program);
  s.launch = trace_launch_create(s.program, blocks, warps);
  trace_op op = {.kind = TRACE_OP_LAUNCH, .launch = s.launch};
  trace_op_append(s.program, &op);
  t->trace = s.launch;
  return s;
}

static stream begin(kernel_test *t, uint64_t blocks, uint32_t warps) { return begin_within(t, 0, blocks, warps); }

static void add_access(ff_text *text, const uint64_t *word) {
  static const char *const names[] = {"load", "store", "atomic", "prefetch"};
  ff_text_add(text, "%s%s%s%s%s%s%s %u pc %u mask %x:", names[trace_access_operation(*word)],
              trace_access_flags(*word) & TRACE_BYPASS_L1 ? " bypass" : "",
              trace_access_flags(*word) & TRACE_READ_ONLY ? " nc" : "",
              trace_access_flags(*word) & TRACE_RETURNS ? " returns" : "",
              trace_access_flags(*word) & TRACE_L2_PRIORITY
                  ? trace_access_flags(*word) & TRACE_STREAMING ? " first" : " last"
              : trace_access_flags(*word) & TRACE_STREAMING ? " streaming"
                                                            : "",
              trace_access_flags(*word) & TRACE_ASYNC_COPY ? " copy" : "",
              trace_access_flags(*word) & TRACE_BULK ? " bulk" : "", trace_access_bytes(*word), trace_access_pc(*word),
              (uint32_t)word[1]);
  for (uint32_t n = 0; n < trace_access_lines(*word); n++)
    ff_text_add(text, " %llx/%u/%x", (unsigned long long)(trace_line_address(word[2 + n]) - EXEC_ARENA_CANONICAL),
                trace_line_lanes(word[2 + n]), trace_line_sectors(word[2 + n]));
  ff_text_add(text, "\n");
}

/* "run n[+memory][ sfu][ fp64]", "load bytes pc mask: line/lanes/sectors ...", "wait k", "barrier id[ arrive] of n",
 * "exit" */
static void add_units(ff_text *text, uint64_t word) {
  trace_counts counts = {{0}};
  trace_add_units(&counts, word);
  ff_text_add(text, "units");
  for (uint32_t u = 0; u <= TRACE_LOADS; u++) ff_text_add(text, " %u", trace_count(&counts, (trace_unit)u));
  uint32_t products = trace_count(&counts, TRACE_PRODUCTS), half = trace_count(&counts, TRACE_HALF);
  if (products) ff_text_add(text, ", %u products", products);
  if (half) ff_text_add(text, ", %u half", half);
  ff_text_add(text, "\n");
}

static void add_record(ff_text *text, const uint64_t *word) {
  switch (trace_word_kind(*word)) {
  case TRACE_ISSUE:
    ff_text_add(text, "run %u", trace_issue_count(*word));
    if (trace_issue_memory(*word)) ff_text_add(text, "+%u", trace_issue_memory(*word));
    if (trace_issue_sfu(*word)) ff_text_add(text, " sfu %u", trace_issue_sfu(*word));
    if (trace_issue_fp64(*word)) ff_text_add(text, " fp64 %u", trace_issue_fp64(*word));
    ff_text_add(text, "\n");
    break;
  case TRACE_ACCESS: add_access(text, word); break;
  case TRACE_UNITS: add_units(text, *word); break;
  case TRACE_WAIT:
    ff_text_add(text, "%swait %u\n",
                trace_wait_early(*word)  ? "early "
                : trace_wait_late(*word) ? "late "
                                         : "",
                trace_wait_k(*word));
    break;
  case TRACE_BARRIER:
    ff_text_add(text, "barrier %u%s of %u\n", trace_barrier_id(*word),
                trace_barrier_arrive_only(*word) ? " arrive" : "", trace_barrier_expected(*word));
    break;
  case TRACE_ASYNC: {
    static const char *const names[] = {"group",      "wait groups",       "arrive",   "arrive copied", "await",
                                        "arrive far", "arrive far copied", "await far"};
    ff_text_add(text, "%s %u %d\n", names[trace_async_what(*word)], trace_async_id(*word), trace_async_away(*word));
    break;
  }
  case TRACE_SPILL:
    ff_text_add(text, "spill %s pc %u slot %u words %u sectors %x\n", trace_spill_stores(*word) ? "store" : "load",
                trace_spill_pc(*word), trace_spill_slot(*word), trace_spill_words(*word), trace_spill_sectors(*word));
    break;
  default: ff_text_add(text, "exit\n");
  }
}

static void add_warp(stream *s, trace_chunk *chunk, uint32_t warp, ff_text *text) {
  trace_cursor cursor;
  const uint64_t *word;
  trace_cursor_open(s->reader, chunk, warp, &cursor);
  do {
    word = trace_cursor_next(s->reader, &cursor);
    add_record(text, word);
  } while (trace_word_kind(*word) != TRACE_EXIT);
}

static void finish(kernel_test *t, stream *s, uint64_t blocks, uint32_t warps, ff_text *text) {
  trace_launch_finish(s->launch);
  trace_op_append(s->program, &(trace_op){.kind = TRACE_OP_END});
  const trace_op *op = trace_reader_next_op(s->reader);
  assert_int_equal(op->kind, TRACE_OP_LAUNCH);
  for (uint64_t b = 0; b < blocks; b++) {
    trace_chunk *chunk = trace_reader_chunk(s->reader, op->launch, b);
    for (uint32_t w = 0; w < warps; w++) {
      if (blocks * warps > 1) ff_text_add(text, "block %llu warp %u\n", (unsigned long long)b, w);
      add_warp(s, chunk, w, text);
    }
    trace_reader_release(s->reader, chunk);
  }
  trace_reader_next_op(s->reader);
  trace_reader_free(s->reader);
  trace_program_free(s->program);
  t->trace = NULL;
}

static void compare(const char *functions, const char *body, uint32_t threads, uint32_t n, const char *want) {
  kernel_test *t = open_body(functions, body);
  uint64_t out = buffer(t, 65536);
  uint32_t warps = (threads + 31) / 32;
  stream s = begin(t, 1, warps);
  ff_text text = {0};
  run(t, "k", 1, threads, out, n);
  finish(t, &s, 1, warps, &text);
  assert_string_equal(text.chars, want);
  free(text.chars);
  /* without the stream, the counts are the same */
  exec_stats with = t->stats;
  run(t, "k", 1, threads, out, n);
  assert_int_equal(with.warp_instructions, t->stats.warp_instructions);
  assert_int_equal(with.thread_instructions, t->stats.thread_instructions);
  assert_int_equal(with.warp_accesses, t->stats.warp_accesses);
  close_ptx(t);
}

#define AT \
  "mov.u32 %r3, %tid.x; mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %out, %rd1;\n" /* 5 instructions with the parameters */

static void compare_units(const char *body, const char *want) {
  with_units = true;
  compare("", body, 32, 0, want);
  with_units = false;
}

/* Two loads and their sum: a compiler would move both up, before what needs the first. */
static void test_waits_move_down(void **state) {
  const char *loads = "ld.global.u32 %r1, [%out]; add.s32 %r2, %r1, 1; ld.global.u32 %r4, [%out+128];\n"
                      "add.s32 %r5, %r2, %r4; st.global.u32 [%out+256], %r5;";
  compare_units(
      loads,
      "run 3\nunits 1 0 1 0 0 0 0 0 0\nload 4 pc 2 mask ffffffff: 0/32/1\nearly wait 0\n"
      "run 2\nunits 1 0 1 0 0 0 0 0 0\nload 4 pc 4 mask ffffffff: 80/32/1\nwait 0\n"
      "run 1\nunits 1 0 1 0 0 0 0 4 0\nlate wait 1\nrun 1\nunits 1 0 1 0 0 0 0 0 0\nstore 4 pc 6 mask ffffffff: 100/32/1\nrun 1\n"
      "units 1 0 0 0 0 0 0 1 0\nexit\n");
  compare("", loads, 32, 0, /* a stream without them has the order of the PTX */
          "run 3\nload 4 pc 2 mask ffffffff: 0/32/1\nwait 0\nrun 2\nload 4 pc 4 mask ffffffff: 80/32/1\nwait 0\n"
          "run 2\nstore 4 pc 6 mask ffffffff: 100/32/1\nrun 1\nexit\n");
}

/* Not past what shows: a store of the value, and an address that needs it. */
static void test_waits_stay_before_what_needs_the_value(void **state) {
  compare_units("ld.global.u32 %r1, [%out]; st.global.u32 [%out+256], %r1; ld.global.u32 %r2, [%out+128];\n"
                "add.s32 %r4, %r2, 1;",
                "run 3\nunits 1 0 1 0 0 0 0 0 0\nload 4 pc 2 mask ffffffff: 0/32/1\nwait 0\n"
                "run 1\nunits 1 0 1 0 0 0 0 0 0\nstore 4 pc 3 mask ffffffff: 100/32/1\n"
                "run 1\nunits 1 0 1 0 0 0 0 0 0\nload 4 pc 4 mask ffffffff: 80/32/1\nwait 0\n"
                "run 2\nunits 2 1 0 0 0 0 0 5 0, 1 products\nexit\n"); /* the second sum: IMAD.IADD */
}

/* Past stores of the value to shared memory, but not past what may read it there or lets others do so. */
static void test_waits_move_past_stores_to_shared_memory(void **state) {
  with_units = true;
  compare(".shared .align 4 .b8 s[16];\n",
          "ld.global.u32 %r1, [%out]; st.shared.u32 [s], %r1; ld.global.u32 %r2, [%out+128];\n"
          "st.shared.u32 [s+4], %r2; bar.sync 0; ld.global.u32 %r4, [%out+256]; st.shared.u32 [s+8], %r4;\n"
          "ld.shared.u32 %r5, [s]; ld.global.u32 %r6, [%out+384]; add.u32 %r7, %r6, %r5;",
          32, 0,
          "run 3\nunits 1 0 1 0 0 0 0 0 0\nload 4 pc 2 mask ffffffff: 0/32/1\nearly wait 0\n"
          "run 2\nunits 2 0 1 0 0 1 0 0 0\nload 4 pc 4 mask ffffffff: 80/32/1\nwait 0\n"
          "run 1\nunits 1 0 0 0 0 1 0 0 0\nlate wait 1\nrun 1\nunits 1 0 0 0 0 0 0 0 0\nbarrier 0 of 1\n"
          "run 1\nunits 1 0 1 0 0 0 0 0 0\nload 4 pc 7 mask ffffffff: 100/32/1\nwait 0\n" /* before the shared load */
          "run 3\nunits 3 0 1 0 0 2 0 0 1\nload 4 pc 10 mask ffffffff: 180/32/1\nwait 0\n"
          "run 2\nunits 2 1 0 0 0 0 0 4 0, 1 products\nexit\n");
  /* st.async tells others: the load's wait is before it */
  compare(
      ".shared .align 8 .b8 s[16];\n",
      "mov.u32 %r9, s; ld.global.u32 %r1, [%out];\n"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r9], %r1, [%r9+8]; ld.global.u32 %r2, [%out+128];",
      32, 0,
      "run 4\nunits 1 0 1 0 0 0 0 0 0\nload 4 pc 3 mask ffffffff: 0/32/1\nwait 0\n"
      "run 1+1\nunits 1 0 0 0 0 1 0 0 0\narrive 0 0\nrun 1\nunits 1 0 1 0 0 0 0 0 0\n"
      "load 4 pc 5 mask ffffffff: 80/32/1\nrun 1\nunits 1 0 0 0 0 0 0 5 0\nexit\n");
  with_units = false;
}

/* Tensor units of all UNITS in a text. */
static uint32_t tensor_units(const char *text) {
  uint32_t sum = 0, units = 0;
  for (const char *at = text; (at = strstr(at, "units ")); at++)
    if (sscanf(at, "units %*u %*u %*u %*u %*u %*u %u", &units) == 1) sum += units;
  return sum;
}

/* A product of M x N takes M N 16 / 4 / 512 units of the block that issues it; of two blocks each has half of M. */
static void test_products_in_tensor_memory(void **state) {
  static const char kernel[] =
      ".version 8.6\n.target sm_100a\n.address_size 64\n"
      ".visible .entry k(.param .u64 p_out, .param .u32 p_n) .explicitcluster .reqnctapercluster 2, 1, 1\n{\n"
      ".shared .align 1024 .b32 area[8192]; .shared .align 4 .b32 place[1];\n"
      ".reg .b32 %%base, %%n, %%r; .reg .b64 %%a; .reg .pred %%p, %%keep;\nld.param.u32 %%n, [p_n];\n"
      "tcgen05.alloc.cta_group::%u.sync.aligned.shared::cta.b32 [place], 64; ld.shared.u32 %%base, [place];\n"
      "mov.u64 %%a, area; shr.u64 %%a, %%a, 4; add.u64 %%a, %%a, 0x4000404000000000;\n"
      "barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %%r, %%cluster_ctarank; setp.ne.u32 %%p, %%r, 0;\n"
      "@%%p bra END; mov.u32 %%r, %%tid.x; setp.ne.u32 %%p, %%r, 0; @%%p bra END; setp.eq.u32 %%keep, %%r, 99;\n"
      "tcgen05.mma.cta_group::%u.kind::f16 [%%base], %%a, %%a, %%n, %%keep;\n"
      "END: barrier.cluster.arrive; barrier.cluster.wait;\n"
      "tcgen05.dealloc.cta_group::%u.sync.aligned.b32 %%base, 64; ret;\n}\n";
  static const struct {
    uint32_t group, m, n, units;
  } cases[] = {{1, 128, 64, 64}, {1, 64, 16, 8}, {2, 256, 64, 64}, {2, 128, 16, 8}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char text[2048];
    snprintf(text, sizeof text, kernel, cases[c].group, cases[c].group, cases[c].group);
    kernel_test *t = open_ptx(text);
    uint64_t out = buffer(t, 64);
    ff_text got = {0};
    with_units = true;
    stream s = begin(t, 2, 1);
    with_units = false;
    run(t, "k", 2, 32, out, 1 << 4 | cases[c].n / 8 << 17 | cases[c].m / 16 << 24);
    finish(t, &s, 2, 1, &got);
    assert_int_equal(tensor_units(got.chars), cases[c].units);
    free(got.chars);
    close_ptx(t);
  }
}

static void test_rows(void **state) {
  compare(
      "", AT "ld.global.u32 %r5, [%rd2]; add.u32 %r6, %r3, 1; add.u32 %r7, %r5, %r6; st.global.u32 [%rd2+128], %r7;",
      32, 0,
      "run 6\nload 4 pc 5 mask ffffffff: 0/32/f\nrun 1\nwait 0\nrun 2\nstore 4 pc 8 mask ffffffff: 80/32/f\nrun 1\nexit\n");
  compare(
      "", AT "ld.global.nc.u32 %r5, [%rd2+16]; st.volatile.global.u8 [%rd2+1], %rs1;", 32, 0,
      "run 6\nload nc 4 pc 5 mask ffffffff: 0/28/f 80/4/1\nrun 1\nstore bypass 1 pc 6 mask ffffffff: 0/32/f\nrun 1\nexit\n");
  compare(
      "",
      AT
      "shl.b64 %rd1, %rd1, 2; add.s64 %rd2, %out, %rd1; ld.global.cs.v4.f32 {%f1,%f2,%f3,%f4}, [%rd2+64]; add.f32 %f1, %f2, %f3;",
      32, 0,
      "run 8\nload streaming 16 pc 7 mask ffffffff: 0/4/c 80/8/f 100/8/f 180/8/f 200/4/3\nwait 0\nrun 2\nexit\n");
}

static void test_masks(void **state) {
  compare(
      "",
      AT
      "setp.ge.u32 %p1, %r3, 20; @%p1 ld.global.u32 %r5, [%rd2]; and.b32 %r6, %r3, 1; setp.eq.u32 %p2, %r6, 0; @%p2 st.global.u32 [%rd2], 1;",
      32, 0, "run 7\nload 4 pc 6 mask fff00000: 0/12/c\nrun 3\nstore 4 pc 9 mask 55555555: 0/16/f\nrun 1\nexit\n");
  compare("", AT "ld.global.u32 %r5, [%out+256]; setp.gt.u32 %p1, %r3, 99; @%p1 st.global.u32 [%rd2], 1;", 24, 0,
          "run 6\nload 4 pc 5 mask ffffff: 100/24/1\nrun 3\nexit\n");
}

static void test_gathers(void **state) {
  compare(
      "",
      AT
      "mul.lo.u32 %r4, %r3, 160; cvt.u64.u32 %rd3, %r4; add.s64 %rd3, %rd3, %out; setp.lt.u32 %p1, %r3, 5; @!%p1 bra E; ld.global.u64 %rd4, [%rd3]; E:",
      32, 0, "run 11\nload 8 pc 10 mask 1f: 0/1/1 80/1/2 100/1/4 180/1/8 280/1/1\nrun 1\nexit\n");
  compare(
      "",
      AT
      "xor.b32 %r4, %r3, 21; mul.wide.u32 %rd3, %r4, 8; add.s64 %rd3, %rd3, %out; ld.global.u64 %rd4, [%rd3]; add.s64 %rd5, %rd4, 1;",
      32, 0, "run 9\nload 8 pc 8 mask ffffffff: 80/16/f 0/16/f\nwait 0\nrun 2\nexit\n");
}

/* Two loads; the second is needed first: k counts from the youngest. A register that is overwritten waits too. */
static void test_waits(void **state) {
  compare(
      "",
      AT
      "ld.global.u32 %r5, [%rd2]; ld.global.u32 %r6, [%rd2+128]; add.u32 %r7, %r6, 1; add.u32 %r8, %r5, 1; add.u32 %r9, %r5, %r6;",
      32, 0,
      "run 6\nload 4 pc 5 mask ffffffff: 0/32/f\nrun 1\nload 4 pc 6 mask ffffffff: 80/32/f\nwait 0\nrun 1\nwait 1\nrun 3\nexit\n");
  compare(
      "",
      AT "ld.global.v2.u32 {%r5, %r6}, [%out]; add.u32 %r7, %r5, %r6; ld.global.u32 %r8, [%out+64]; mov.u32 %r8, 5;",
      32, 0,
      "run 6\nload 8 pc 5 mask ffffffff: 0/32/1\nwait 0\nrun 2\nload 4 pc 7 mask ffffffff: 0/32/4\nwait 0\nrun 2\nexit\n");
  compare(
      "",
      "ld.global.u32 %r5, [%out]; mov.u32 %r6, 0; L: add.u32 %r6, %r6, 1; setp.eq.u32 %p1, %r6, 2; @%p1 bra U; bra M; U: add.u32 %r7, %r5, 1; M: setp.lt.u32 %p2, %r6, %n; @%p2 bra L;",
      32, 3, "run 3\nload 4 pc 2 mask ffffffff: 0/32/1\nrun 10\nwait 0\nrun 10\nexit\n");
}

static void test_atomics(void **state) {
  compare(
      "",
      AT
      "atom.global.add.u32 %r5, [%out+4], 1; atom.global.add.u32 %r6, [%rd2], 1; red.global.add.u64 [%out+8], 1; add.u32 %r7, %r6, 1;",
      32, 0,
      "run 6\natomic 4 pc 5 mask ffffffff: 0/32/1\nrun 1\natomic returns 4 pc 6 mask ffffffff: 0/32/f\nrun 1\natomic 8 pc 7 mask ffffffff: 0/32/1\nwait 0\nrun 2\nexit\n");
}

/* Shared memory: 1 pass without conflicts, 2 for two words in each bank, 32 for a column; 64-bit rows take 2. */
static void test_shared_passes(void **state) {
  static const char head[] = ".shared .align 16 .b8 sh[16384];";
  compare(
      head,
      AT
      "mov.u32 %r5, sh; shl.b32 %r6, %r3, 2; add.u32 %r6, %r6, %r5; ld.shared.u32 %r7, [%r6]; ld.shared.u32 %r7, [%r5]; add.u32 %r9, %r7, 1;",
      32, 0, "run 12\nexit\n");
  compare(head, AT "mov.u32 %r5, sh; shl.b32 %r6, %r3, 3; add.u32 %r6, %r6, %r5; ld.shared.u32 %r7, [%r6];", 32, 0,
          "run 10+1\nexit\n");
  compare(head, AT "mov.u32 %r5, sh; shl.b32 %r6, %r3, 7; add.u32 %r6, %r6, %r5; st.shared.u32 [%r6], %r7;", 32, 0,
          "run 10+31\nexit\n");
  compare(head, AT "mov.u32 %r5, sh; shl.b32 %r6, %r3, 3; add.u32 %r6, %r6, %r5; ld.shared.u64 %rd7, [%r6];", 32, 0,
          "run 10+1\nexit\n");
  compare(head,
          AT "mov.u32 %r5, sh; shl.b32 %r6, %r3, 4; add.u32 %r6, %r6, %r5; ld.shared.v4.u32 {%r7,%r8,%r9,%r10}, [%r6];",
          32, 0, "run 10+3\nexit\n");
  /* atomics: the lanes of a word take turns, by a shared address and by a generic one */
  compare(head, AT "mov.u32 %r5, sh; shl.b32 %r6, %r3, 2; add.u32 %r6, %r6, %r5; atom.shared.add.u32 %r7, [%r6], 1;",
          32, 0, "run 10\nexit\n");
  compare(
      head,
      AT
      "mov.u32 %r5, sh; shr.u32 %r6, %r3, 3; shl.b32 %r6, %r6, 2; add.u32 %r6, %r6, %r5; red.shared.add.u32 [%r6], 1;",
      32, 0, "run 11+7\nexit\n");
  compare(head,
          AT "mov.u64 %rd3, sh; cvta.shared.u64 %rd4, %rd3; setp.lt.u32 %p1, %r3, 4; selp.b64 %rd5, %rd2, %rd4, %p1;\n"
             "red.add.u32 [%rd5], 1;",
          32, 0, "run 10\natomic 4 pc 9 mask f: 0/4/1\nrun 1+27\nexit\n");
  /* the halves of a warp: one cell each in different banks and in the same bank; one row for both, two rows side by
   * side, two rows apart */
  compare(head,
          AT
          "mov.u32 %r5, sh; shr.u32 %r6, %r3, 4; shl.b32 %r7, %r6, 6; add.u32 %r7, %r7, %r5; ld.shared.u32 %r8, [%r7];",
          32, 0, "run 11\nexit\n");
  compare(head,
          AT
          "mov.u32 %r5, sh; shr.u32 %r6, %r3, 4; shl.b32 %r7, %r6, 8; add.u32 %r7, %r7, %r5; ld.shared.u32 %r8, [%r7];",
          32, 0, "run 11+1\nexit\n");
  compare(
      head,
      AT "mov.u32 %r5, sh; and.b32 %r6, %r3, 15; shl.b32 %r7, %r6, 2; add.u32 %r7, %r7, %r5; ld.shared.u32 %r8, [%r7];",
      32, 0, "run 11\nexit\n");
  compare(
      head,
      AT
      "mov.u32 %r5, sh; and.b32 %r6, %r3, 15; and.b32 %r9, %r3, 16; mad.lo.u32 %r6, %r9, 3, %r6; shl.b32 %r7, %r6, 2; add.u32 %r7, %r7, %r5; st.shared.u32 [%r7], 1;",
      32, 0, "run 13\nexit\n");
  compare(
      head,
      AT
      "mov.u32 %r5, sh; and.b32 %r6, %r3, 15; and.b32 %r9, %r3, 16; mad.lo.u32 %r6, %r9, 2, %r6; shl.b32 %r7, %r6, 2; add.u32 %r7, %r7, %r5; st.shared.u32 [%r7], 1;",
      32, 0, "run 13+1\nexit\n");
  compare("", AT ".local .align 8 .b8 depot[32]; st.local.u64 [depot+8], %rd1; ld.local.u32 %r4, [depot+12];", 32, 0,
          "run 8+1\nexit\n");
  compare(
      ".const .align 4 .u32 table[64];",
      AT
      "and.b32 %r4, %r3, 3; mul.wide.u32 %rd3, %r4, 4; mov.u64 %rd4, table; add.s64 %rd3, %rd3, %rd4; ld.const.u32 %r5, [%rd3];",
      32, 0, "run 11+3\nexit\n");
}

/* Each further address of constant memory takes the unit again: of four, one turn and three more. */
static void test_constants_take_the_unit_again(void **state) {
  static const char table[] = ".const .align 4 .u32 table[64];";
  static const char load[] = AT "and.b32 %r4, %r3, 3; mul.wide.u32 %rd3, %r4, 4; mov.u64 %rd4, table;\n"
                                "add.s64 %rd3, %rd3, %rd4; ld.const.u32 %r5, [%rd3];";
  with_units = true;
  compare(table, load, 32, 0, "run 11+3\nunits 6 4 1 0 0 4 0 29 1, 4 products\nexit\n");
  with_units = false;
}

/* Parameters lie in a constant bank, also when they are read through a register: no access to global memory. */
static void test_parameters(void **state) {
  compare("", "mov.b64 %rd3, p_out; ld.param.u32 %r5, [%rd3+8]; add.u32 %r6, %r5, 1; st.global.u32 [%out], %r6;", 32, 0,
          "run 6\nstore 4 pc 5 mask ffffffff: 0/32/1\nrun 1\nexit\n");
}

static void test_prefetch(void **state) {
  compare(
      "", AT "prefetch.global.L2 [%rd2+256]; shl.b64 %rd3, %rd1, 9; add.s64 %rd3, %rd3, %out; prefetch.L1 [%rd3];", 32,
      0,
      "run 6\nprefetch 1 pc 5 mask ffffffff: 100/32/f\nrun 3\nprefetch 1 pc 8 mask ffffffff: "
      "0/1/1 800/1/1 1000/1/1 1800/1/1 2000/1/1 2800/1/1 3000/1/1 3800/1/1 4000/1/1 4800/1/1 5000/1/1 5800/1/1 6000/1/1 6800/1/1 7000/1/1 7800/1/1 "
      "8000/1/1 8800/1/1 9000/1/1 9800/1/1 a000/1/1 a800/1/1 b000/1/1 b800/1/1 c000/1/1 c800/1/1 d000/1/1 d800/1/1 e000/1/1 e800/1/1 f000/1/1 f800/1/1\n"
      "run 1\nexit\n");
  compare("",
          AT "shl.b64 %rd3, %rd1, 13; add.s64 %rd3, %rd3, %out; prefetch.global.L1 [%rd3]; prefetch.global.L2 [%rd1];",
          32, 0, "run 8\nprefetch 1 pc 7 mask 3: 0/1/1 8000/1/1\nrun 2\nexit\n");
}

/* Priorities in the L2: of the instruction, of a policy that PTX makes, of one that a program has as a number. */
static void test_cache_hints(void **state) {
  compare("",
          "createpolicy.fractional.L2::evict_last.b64 %rd1; ld.global.L2::cache_hint.u32 %r1, [%out], %rd1;"
          "createpolicy.fractional.L2::evict_first.b64 %rd2, 1.0; st.global.L2::cache_hint.u32 [%out+128], 7, %rd2;"
          "mov.u64 %rd3, 0x14f0000000000000; atom.global.add.L2::cache_hint.u32 %r2, [%out+256], 1, %rd3;"
          "mov.u64 %rd4, 0x1000000000000000; ld.global.L2::cache_hint.u32 %r3, [%out+384], %rd4;"
          "prefetch.global.L2::evict_last [%out+512]; st.global.u32 [%out], %r2;",
          1, 0,
          "run 4\nload last 4 pc 3 mask 1: 0/1/1\nrun 2\nstore first 4 pc 5 mask 1: 80/1/1\n"
          "run 2\natomic returns last 4 pc 7 mask 1: 100/1/1\nrun 2\nload 4 pc 9 mask 1: 180/1/1\n"
          "run 1\nprefetch last 1 pc 10 mask 1: 200/1/1\nwait 1\nrun 1\nstore 4 pc 11 mask 1: 0/1/1\nrun 1\nexit\n");
}

/* The lines of a share have the first priority that a policy names, the others the second. */
static void test_two_priorities(void **state) {
  static const struct {
    const char *names;
    trace_l2_priority on, other;
  } rows[] = {{"evict_last.L2::evict_first", TRACE_L2_LAST, TRACE_L2_FIRST},
              {"evict_last.L2::evict_unchanged", TRACE_L2_LAST, TRACE_L2_PLAIN},
              {"evict_normal.L2::evict_first", TRACE_L2_PLAIN, TRACE_L2_FIRST},
              {"evict_first.L2::evict_unchanged", TRACE_L2_FIRST, TRACE_L2_PLAIN},
              {"evict_first", TRACE_L2_FIRST, TRACE_L2_PLAIN}};
  for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
    ff_text body = {0};
    ff_text_add(&body, "createpolicy.fractional.L2::%s.b64 %%rd1, 0.25; st.global.u64 [%%out], %%rd1;", rows[n].names);
    kernel_test *t = open_body("", body.chars);
    uint64_t out = buffer(t, 64), policy;
    run(t, "k", 1, 1, out, 0);
    memcpy(&policy, u64_at(out), sizeof policy);
    for (uint64_t line = 0; line < 64 * 128; line += 128)
      assert_int_equal(cache_policy_priority(policy, line),
                       trace_l2_share(line) < TRACE_L2_SHARE / 4 ? rows[n].on : rows[n].other);
    close_ptx(t);
    free(body.chars);
  }
}

/* A share of the lines, which is the same ones for every access: of 512 lines about a half. */
static uint32_t lines_with(kernel_test *t, uint64_t out, bool *chosen) {
  stream s = begin(t, 1, 16);
  run(t, "k", 1, 512, out, 0);
  trace_launch_finish(s.launch);
  trace_op_append(s.program, &(trace_op){.kind = TRACE_OP_END});
  const trace_op *op = trace_reader_next_op(s.reader);
  trace_chunk *chunk = trace_reader_chunk(s.reader, op->launch, 0);
  uint32_t count = 0;
  for (uint32_t w = 0; w < 16; w++) {
    trace_cursor cursor;
    const uint64_t *word;
    trace_cursor_open(s.reader, chunk, w, &cursor);
    while (word = trace_cursor_next(s.reader, &cursor), trace_word_kind(*word) != TRACE_EXIT) {
      if (trace_word_kind(*word) != TRACE_ACCESS) continue;
      bool last = trace_access_flags(*word) & TRACE_L2_PRIORITY;
      assert_true(!last || !(trace_access_flags(*word) & TRACE_STREAMING));
      chosen[count++] = last;
    }
  }
  trace_reader_release(s.reader, chunk);
  trace_reader_next_op(s.reader);
  trace_reader_free(s.reader);
  trace_program_free(s.program);
  t->trace = NULL;
  return count;
}
static void test_a_share_of_the_lines(void **state) {
  /* warp w goes through lines w, w + 16, ... of 512 */
  kernel_test *t =
      open_body("", "createpolicy.fractional.L2::evict_last.b64 %rd1, 0.5;"
                    "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd2, %out; mov.u32 %r2, 0;"
                    "L: ld.global.L2::cache_hint.u32 %r3, [%rd2], %rd1; add.s64 %rd2, %rd2, 2048;"
                    "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 32; @%p1 bra L;");
  uint64_t out = buffer(t, 65536);
  bool first[512], second[512];
  assert_int_equal(lines_with(t, out, first), 512);
  assert_int_equal(lines_with(t, out, second), 512);
  assert_memory_equal(first, second, sizeof first);
  uint32_t chosen = 0;
  for (int i = 0; i < 512; i++) chosen += first[i];
  assert_in_range(chosen, 240, 272);
  close_ptx(t);
}

static void test_units(void **state) {
  compare(
      "",
      "cvt.rn.f32.u32 %f1, %n; sqrt.approx.f32 %f2, %f1; add.f32 %f3, %f2, %f1; cvt.f64.f32 %fd1, %f3; add.f64 %fd2, %fd1, %fd1; fma.rn.f64 %fd3, %fd2, %fd2, %fd2; ex2.approx.f32 %f4, %f3;",
      32, 0, "run 10 sfu 2 fp64 3\nexit\n");
}

static void test_barriers(void **state) {
  compare(
      "",
      "mov.u32 %r3, %tid.x; setp.ge.u32 %p1, %r3, 64; @%p1 exit; bar.sync 0; setp.ge.u32 %p2, %r3, 32; @%p2 bra W; bar.arrive 3, 64; bra E; W: bar.sync 3, 64; E:",
      96, 0,
      "block 0 warp 0\nrun 6\nbarrier 0 of 2\nrun 3\nbarrier 3 arrive of 2\nrun 2\nexit\n"
      "block 0 warp 1\nrun 6\nbarrier 0 of 2\nrun 3\nbarrier 3 of 2\nrun 1\nexit\n"
      "block 0 warp 2\nrun 5\nexit\n");
}

/* Diverged lanes: both sides are counted, accesses carry their lanes. A call: its instructions count, pcs go on behind
 * the kernel's. */
static void test_divergence_and_calls(void **state) {
  compare("",
          AT "setp.lt.u32 %p1, %r3, 8; @%p1 bra A; st.global.u32 [%rd2], 1; bra E; A: st.global.u32 [%rd2], 2; E:", 32,
          0, "run 8\nstore 4 pc 7 mask ffffff00: 0/24/e\nrun 2\nstore 4 pc 9 mask ff: 0/8/1\nrun 1\nexit\n");
  compare(".func f(.param .b64 p)\n{\n.reg .b64 %rd<3>; ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], 3; ret;\n}\n",
          AT "{ .param .b64 p; st.param.b64 [p], %rd2; call.uni f, (p); }", 32, 0,
          "run 9\nstore 4 pc 9 mask ffffffff: 0/32/f\nrun 2\nexit\n");
}

/* A generic access: global lanes are accesses, the others are passes. */
static void test_generic(void **state) {
  compare(
      ".shared .align 4 .b8 sh[128];",
      AT
      "mov.u64 %rd3, sh; cvta.shared.u64 %rd4, %rd3; setp.lt.u32 %p1, %r3, 4; selp.b64 %rd5, %rd2, %rd4, %p1; ld.u32 %r5, [%rd5]; ld.u32 %r6, [%rd2]; ld.u32 %r7, [%rd4];",
      32, 0, "run 10\nload 4 pc 9 mask f: 0/4/1\nrun 1\nload 4 pc 10 mask ffffffff: 0/32/f\nrun 2\nexit\n");
}

/* After a fault every chunk is complete. More blocks than the stream lets start at once, several workers. */
static void test_many_blocks(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %out, %rd1; setp.eq.u32 %p1, %r1, %n; @%p1 trap; st.global.u32 [%rd2], %r1;");
  uint64_t out = buffer(t, 4096);
  for (uint32_t n = 150; n <= 2000; n += 1850) {
    t->config.threads = 3;
    stream s = begin(t, 200, 2);
    ff_text text = {0};
    ff_error error;
    assert_int_equal(launch(t, "k", 200, 64, out, n, &error), n < 200 ? FF_FAULT : FF_OK);
    finish(t, &s, 200, 2, &text);
    expect_text(text.chars, "block 149 warp 1\nrun 8\nstore 4 pc 7 mask ffffffff: 200/32/4\nrun 1\nexit\n");
    free(text.chars);
  }
  close_ptx(t);
}

/* The first block waits for the last one. How often it looks does not depend on how full the stream is, and on who
 * reads it when. */
static void test_full_stream(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, %n; @%p1 st.volatile.global.u32 [%out], 1; setp.ne.u32 %p2, %r1, 0; @%p2 exit;\n"
      "L: ld.volatile.global.u32 %r2, [%out]; setp.eq.u32 %p3, %r2, 0; @%p3 bra L;");
  uint64_t out = buffer(t, 4096), blocks = 68; /* the stream's window lets 64 start */
  run(t, "k", (uint32_t)blocks, 32, out, (uint32_t)blocks - 1);
  exec_stats without = t->stats;
  *u32_at(out) = 0;
  stream s = begin_within(t, 1, blocks, 1);
  ff_text text = {0};
  run(t, "k", (uint32_t)blocks, 32, out, (uint32_t)blocks - 1);
  assert_int_equal(t->stats.warp_instructions, without.warp_instructions);
  assert_int_equal(t->stats.warp_accesses, without.warp_accesses);
  finish(t, &s, blocks, 1, &text);
  free(text.chars);
  close_ptx(t);
}

/* Rounds of waiting are recorded once, as if the first look found what the warp waits for. The loops are left after n
 * rounds, as nothing writes what they wait for. */
#define COUNTED(round) "mov.u32 %r4, 0; L: " round " add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, %n; @%p2 bra L; E:"
#define LOOK "ld.volatile.global.u32 %r5, [%out]; setp.eq.u32 %p1, %r5, 9; @%p1 bra E;"
static void test_looks(void **state) {
  for (uint32_t n = 1; n <= 1000; n += 111) {
    compare("", COUNTED(LOOK), 32, n, "run 4\nload bypass 4 pc 3 mask ffffffff: 0/32/1\nwait 0\nrun 6\nexit\n");
    compare(
        "", COUNTED(LOOK "ld.relaxed.gpu.global.v2.u32 {%r6,%r7}, [%out+128]; setp.gt.u32 %p1, %r7, 9; @%p1 bra E;"),
        32, n,
        "run 4\nload bypass 4 pc 3 mask ffffffff: 0/32/1\nwait 0\nrun 3\nload bypass 8 pc 6 mask ffffffff: 80/32/1\n"
        "wait 0\nrun 6\nexit\n");
  }
}

/* What is no waiting has a record for every round: another access between two looks, a cell that is another one, a loop
 * whose end does not depend on what is read. */
static void test_no_looks(void **state) {
  static const char look[] = "load bypass 4 pc 3 mask ffffffff: 0/32/1\nwait 0\n";
  ff_text want = {0};
  ff_text_add(&want, "run 4\n%srun 3\nstore 4 pc 6 mask ffffffff: 80/32/1\n", look);
  ff_text_add(&want, "run 4\n%srun 3\nstore 4 pc 6 mask ffffffff: 80/32/1\nrun 4\nexit\n", look);
  compare("", COUNTED(LOOK "st.global.u32 [%out+128], %r4;"), 32, 2, want.chars);
  free(want.chars);
  compare("",
          "mov.u64 %rd1, %out; " COUNTED(
              "ld.volatile.global.u32 %r5, [%rd1]; setp.eq.u32 %p1, %r5, 9; @%p1 bra E; add.s64 %rd1, %rd1, 128;"),
          32, 2,
          "run 5\nload bypass 4 pc 4 mask ffffffff: 0/32/1\nwait 0\nrun 7\n"
          "load bypass 4 pc 4 mask ffffffff: 80/32/1\nwait 0\nrun 7\nexit\n");
  compare("", COUNTED("ld.volatile.global.u32 %r5, [%out]; add.u32 %r6, %r5, 1;"), 32, 2,
          "run 4\nload bypass 4 pc 3 mask ffffffff: 0/32/1\nwait 0\nrun 5\n"
          "load bypass 4 pc 3 mask ffffffff: 0/32/1\nwait 0\nrun 5\nexit\n");
}

/* Copies by cp.async are no loads: their groups are waited for. */
static void test_copy_groups(void **state) {
  compare("",
          ".shared .align 16 .b8 sh[256];\n" AT
          "mov.u32 %r6, sh; cp.async.ca.shared.global [%r6], [%rd2], 4; cp.async.commit_group;\n"
          "cp.async.ca.shared.global [%r6+128], [%rd2+128], 4; cp.async.commit_group; cp.async.wait_group 1;\n"
          "cp.async.wait_all; ld.shared.u32 %r7, [sh]; st.global.u32 [%rd2+512], %r7;",
          32, 0,
          "run 7\nload copy 4 pc 6 mask ffffffff: 0/32/f\nrun 1\ngroup 0 0\n"
          "run 1\nload copy 4 pc 8 mask ffffffff: 80/32/f\nrun 1\ngroup 0 0\nrun 1\nwait groups 0 1\n"
          "run 1\ngroup 0 0\nwait groups 0 0\nrun 2\nstore 4 pc 13 mask ffffffff: 200/32/f\nrun 1\nexit\n");
}

/* Both warps arrive and wait; the first asks in vain, which is recorded once. */
#define MARK ".shared .align 8 .b64 mark;\n"
static void test_mbarriers(void **state) {
  compare("",
          MARK "mov.u32 %r3, %tid.x; setp.ne.u32 %p1, %r3, 0; @!%p1 mbarrier.init.shared.b64 [mark], 2; bar.sync 0;\n"
               "and.b32 %r4, %r3, 31; setp.ne.u32 %p2, %r4, 0; @!%p2 mbarrier.arrive.shared.b64 %rd3, [mark];\n"
               "W: mbarrier.test_wait.parity.shared.b64 %p3, [mark], 0; @!%p3 bra W;",
          64, 0,
          "block 0 warp 0\nrun 6\nbarrier 0 of 2\nrun 3\narrive 0 0\nrun 1+1\nawait 0 2\nrun 2\nexit\n"
          "block 0 warp 1\nrun 6\nbarrier 0 of 2\nrun 3\narrive 0 0\nrun 3+2\nawait 0 2\nrun 2\nexit\n");
}

/* What a wait is for is counted on from the warp's last one; what a new mbarrier at the same place lacks, is not. */
static void test_mbarrier_rounds(void **state) {
  compare("",
          MARK "mbarrier.init.shared.b64 [mark], 32; mbarrier.arrive.shared.b64 %rd3, [mark];\n"
               "V: mbarrier.test_wait.parity.shared.b64 %p3, [mark], 0; @!%p3 bra V;\n"
               "cp.async.mbarrier.arrive.noinc.shared.b64 [mark];\n"
               "W: mbarrier.test_wait.parity.shared.b64 %p3, [mark], 1; @!%p3 bra W;\n"
               "mbarrier.test_wait.parity.shared.b64 %p3, [mark], 1; mbarrier.inval.shared.b64 [mark];\n"
               "mbarrier.init.shared.b64 [mark], 64; mbarrier.arrive.shared.b64 %rd3, [mark];\n"
               "mbarrier.init.shared.b64 [mark], 32; cp.async.mbarrier.arrive.shared.b64 [mark];\n"
               "mbarrier.test_wait.parity.shared.b64 %p3, [mark], 1;",
          32, 0,
          "run 4+2\narrive 0 0\nrun 1+1\nawait 0 1\nrun 2+1\narrive copied 0 0\nrun 1+1\nawait 0 1\n"
          "run 5+4\narrive 0 0\nrun 2+2\narrive copied 0 0\nrun 1+1\nawait 0 1\nrun 1\nexit\n");
}

/* Each mbarrier has a number, by when the block first used it; of those behind the 64th nothing is recorded. */
static void test_many_mbarriers(void **state) {
  kernel_test *t =
      open_body(".shared .align 8 .b64 marks[66];\n",
                "mov.u32 %r1, marks; add.u32 %r2, %r1, 528;\n"
                "L: sub.u32 %r2, %r2, 8; mbarrier.init.shared.b64 [%r2], 32; mbarrier.arrive.shared.b64 %rd3, [%r2];\n"
                "mbarrier.test_wait.parity.shared.b64 %p3, [%r2], 0; setp.gt.u32 %p1, %r2, %r1; @%p1 bra L;");
  uint64_t out = buffer(t, 64);
  stream s = begin(t, 1, 1);
  ff_text got = {0};
  run(t, "k", 1, 32, out, 0);
  finish(t, &s, 1, 1, &got);
  uint32_t records = 0;
  const char *at = got.chars;
  for (uint32_t id = 0; id < 64; id++) {
    char want[64];
    snprintf(want, sizeof want, "arrive %u 0\nrun 1+1\nawait %u 1\n", id, id);
    assert_non_null(at = strstr(at, want));
  }
  for (at = got.chars; (at = strstr(at, "arrive ")); at++) records++;
  assert_int_equal(records, 64);
  free(got.chars);
  close_ptx(t);
}

/* A bulk copy tells the mbarrier of its bytes: the arrival comes with the data. The second round is counted on. */
static void test_bulk_copies(void **state) {
  compare("",
          MARK ".shared .align 128 .b8 sh[256];\n"
               "mov.u32 %r3, %tid.x; setp.ne.u32 %p1, %r3, 0; @%p1 bra W; mbarrier.init.shared.b64 [mark], 1;\n"
               "mbarrier.arrive.expect_tx.shared.b64 %rd3, [mark], 256;\n"
               "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sh], [%out], 256, [mark];\n"
               "W: mbarrier.test_wait.parity.shared.b64 %p3, [mark], 0; @!%p3 bra W;",
          32, 0,
          "run 7\narrive 0 0\nrun 1\nload bypass copy bulk 16 pc 7 mask ffff: 0/8/f 80/8/f\narrive copied 0 0\n"
          "run 1+1\nawait 0 2\nrun 2\nexit\n");
}

/* Two blocks of a cluster, a thread each. */
static void compare_cluster(const char *body, const char *want) {
  ff_text source = {0}, text = {0};
  ff_text_add(
      &source,
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry k(.param .u64 p_out, .param .u32 p_n)\n.reqnctapercluster 2, 1, 1\n{\n"
      ".shared .align 128 .b8 sh[256]; .shared .align 8 .b64 mark; .reg .pred %%p<4>; .reg .b64 %%rd<4>, %%out;\n"
      ".reg .b32 %%r<8>; .reg .b16 %%h; ld.param.u64 %%out, [p_out]; mbarrier.init.shared.b64 [mark], 1;\n"
      "mov.u32 %%r0, %%cluster_ctarank; xor.b32 %%r1, %%r0, 1; mapa.shared::cluster.u32 %%r2, mark, %%r1;\n"
      "setp.eq.u32 %%p0, %%r0, 0; barrier.cluster.arrive; barrier.cluster.wait;\n%s\nret;\n}\n",
      body);
  kernel_test *t = open_ptx(source.chars);
  uint64_t out = buffer(t, 65536);
  stream s = begin(t, 2, 1);
  run(t, "k", 2, 1, out, 0);
  finish(t, &s, 2, 1, &text);
  assert_string_equal(text.chars, want);
  free(text.chars);
  free(source.chars);
  close_ptx(t);
}

/* Each tells the other's mbarrier, twice, and waits at its own. */
static void test_far_mbarriers(void **state) {
  compare_cluster("mbarrier.arrive.shared::cluster.b64 _, [%r2];\n"
                  "V: mbarrier.test_wait.parity.shared.b64 %p1, [mark], 0; @!%p1 bra V;\n"
                  "barrier.cluster.arrive; barrier.cluster.wait; mbarrier.arrive.shared::cluster.b64 _, [%r2];\n"
                  "W: mbarrier.test_wait.parity.shared.b64 %p1, [mark], 1; @!%p1 bra W;",
                  "block 0 warp 0\nrun 8\nbarrier 16 of 1\nrun 1\narrive far 0 1\nrun 1\nawait far 0 1\nrun 3\n"
                  "barrier 16 of 1\nrun 1\narrive far 0 1\nrun 1\nawait far 0 1\nrun 2\nexit\n"
                  "block 1 warp 0\nrun 8\nbarrier 16 of 1\nrun 1\narrive far 0 -1\nrun 3\nawait far 0 1\nrun 3\n"
                  "barrier 16 of 1\nrun 1\narrive far 0 -1\nrun 3\nawait far 0 1\nrun 2\nexit\n");
}

/* One copies for both and tells both mbarriers of the bytes; the other has arrived at its own and waits. */
static void test_multicast_copies(void **state) {
  compare_cluster("mov.b16 %h, 3; mbarrier.arrive.expect_tx.shared.b64 %rd1, [mark], 256;\n"
                  "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                  " [sh], [%out], 256, [mark], %h;\n"
                  "V: mbarrier.test_wait.parity.shared.b64 %p1, [mark], 0; @!%p1 bra V;",
                  "block 0 warp 0\nrun 8\nbarrier 16 of 1\nrun 2\narrive 0 0\nrun 1\n"
                  "load bypass copy bulk 16 pc 10 mask ffff: 0/8/f 80/8/f\narrive copied 0 0\narrive far copied 0 1\n"
                  "run 1\nawait 0 2\nrun 2\nexit\n"
                  "block 1 warp 0\nrun 8\nbarrier 16 of 1\nrun 2\narrive 0 0\nrun 4\nawait 0 1\nawait far 0 1\n"
                  "run 2\nexit\n");
}

/* Each thread loads `values` words, and stores them when it has all of them. */
static kernel_test *open_held(const char *directive, uint32_t values) {
  ff_text text = {0};
  ff_text_add(
      &text,
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p_out, .param .u32 p_n) %s\n{\n"
      ".reg .b32 %%r<90>; .reg .b64 %%d<5>;\n"
      "ld.param.u64 %%d1, [p_out]; mov.u32 %%r80, %%tid.x; mul.wide.u32 %%d2, %%r80, 4; add.s64 %%d3, %%d1, %%d2;\n",
      directive);
  for (uint32_t n = 0; n < values; n++) ff_text_add(&text, "ld.global.b32 %%r%u, [%%d3+%u];\n", n, 256 * n);
  for (uint32_t n = 0; n < values; n++) ff_text_add(&text, "st.global.b32 [%%d3+%u], %%r%u;\n", 32768 + 256 * n, n);
  ff_text_add(&text, "ret;\n}\n");
  kernel_test *t = open_ptx(text.chars);
  free(text.chars);
  return t;
}

static uint32_t times(const char *text, const char *part) {
  uint32_t count = 0;
  for (; (text = strstr(text, part)); text += strlen(part)) count++;
  return count;
}

/* Of `values` words and an address of two words, what is beyond the limit's registers, but for two of the compiler's,
 * is stored and loaded again: by a full warp, and by one of eight lanes. */
static void expect_spills(const char *directive, uint32_t values, uint32_t wanted) {
  kernel_test *t = open_held(directive, values);
  uint64_t out = buffer(t, 65536);
  for (uint32_t n = 0; n < 8192; n++) u32_at(out)[n] = n * 2654435761u;
  stream s = begin(t, 1, 2);
  ff_text text = {0};
  run(t, "k", 1, 40, out, 0);
  uint64_t instructions = t->stats.warp_instructions;
  finish(t, &s, 1, 2, &text);
  for (uint32_t n = 0; n < values; n++)
    for (uint32_t i = 0; i < 40; i++) assert_int_equal(u32_at(out + 32768 + 256 * n)[i], (n * 64 + i) * 2654435761u);
  assert_int_equal(instructions, 2 * (2 * values + 5)); /* the program has none of them */
  assert_int_equal(times(text.chars, "spill store"), 2 * wanted);
  assert_int_equal(times(text.chars, "spill load"), 2 * wanted);
  assert_int_equal(times(text.chars, "words 1 sectors f"), 2 * wanted);
  assert_int_equal(times(text.chars, "words 1 sectors 1"), 2 * wanted);
  for (uint32_t n = 0; n < wanted; n++) {
    ff_text slot = {0};
    ff_text_add(&slot, "slot %u words", n);
    assert_int_equal(times(text.chars, slot.chars), 4);
    free(slot.chars);
  }
  /* All are waited for, those that are stored before that; a wait for a load is one for those before it. */
  assert_true(times(text.chars, "\nwait") >= 2 * wanted);
  free(text.chars);
  close_ptx(t);
}

static void test_spills(void **state) {
  expect_spills("", 60, 0);
  expect_spills(".maxnreg 64", 60, 0);
  expect_spills(".maxnreg 63", 60, 1);
  expect_spills(".maxnreg 32", 60, 60 + 2 + 2 - 32);
  expect_spills(".maxnreg 24", 60, 60 + 2 + 2 - 24);
  expect_spills(".maxnreg 8", 60, 60 + 2 + 2 - 24);                         /* no compiler takes fewer than 24 */
  expect_spills(".maxntid 1024, 1, 1", 60, 0);                              /* 64 */
  expect_spills(".maxntid 512, 1, 1 .minnctapersm 4", 60, 60 + 2 + 2 - 32); /* 65536 / 2048 */
  expect_spills(".maxntid 1024, 1, 1 .minnctapersm 3", 60, 0);              /* no SM has so many warps */
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_copy_groups),
                                          cmocka_unit_test(test_spills),
                                          cmocka_unit_test(test_far_mbarriers),
                                          cmocka_unit_test(test_multicast_copies),
                                          cmocka_unit_test(test_mbarriers),
                                          cmocka_unit_test(test_mbarrier_rounds),
                                          cmocka_unit_test(test_many_mbarriers),
                                          cmocka_unit_test(test_bulk_copies),
                                          cmocka_unit_test(test_waits_move_down),
                                          cmocka_unit_test(test_constants_take_the_unit_again),
                                          cmocka_unit_test(test_waits_stay_before_what_needs_the_value),
                                          cmocka_unit_test(test_waits_move_past_stores_to_shared_memory),
                                          cmocka_unit_test(test_products_in_tensor_memory),
                                          cmocka_unit_test(test_rows),
                                          cmocka_unit_test(test_masks),
                                          cmocka_unit_test(test_gathers),
                                          cmocka_unit_test(test_waits),
                                          cmocka_unit_test(test_atomics),
                                          cmocka_unit_test(test_shared_passes),
                                          cmocka_unit_test(test_parameters),
                                          cmocka_unit_test(test_prefetch),
                                          cmocka_unit_test(test_cache_hints),
                                          cmocka_unit_test(test_two_priorities),
                                          cmocka_unit_test(test_a_share_of_the_lines),
                                          cmocka_unit_test(test_units),
                                          cmocka_unit_test(test_barriers),
                                          cmocka_unit_test(test_divergence_and_calls),
                                          cmocka_unit_test(test_generic),
                                          cmocka_unit_test(test_many_blocks),
                                          cmocka_unit_test(test_full_stream),
                                          cmocka_unit_test(test_looks),
                                          cmocka_unit_test(test_no_looks)};
RUN_ON_EVERY_ISA(tests)
