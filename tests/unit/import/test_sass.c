/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction lines: what opcodes and their modifiers mean, and what warps' records become of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "import/kernel.h"

static sass_instr parsed(const char *line) {
  static const sass_format plain;
  sass_instr instr;
  const char *wrong = sass_parse(line, &plain, &instr);
  if (wrong) fail_msg("%s: %s", line, wrong);
  return instr;
}

static void test_opcodes(void **state) {
  static const struct {
    const char *opcode;
    sass_kind kind;
    uint32_t bytes, flags;
  } rows[] = {
      {"LDG.E", SASS_LOAD, 4, 0},
      {"LDG.E.U8.CONSTANT", SASS_LOAD, 1, TRACE_READ_ONLY},
      {"LDG.E.S16", SASS_LOAD, 2, 0},
      {"LDG.E.128.CONSTANT.SYS", SASS_LOAD, 16, TRACE_READ_ONLY}, /* .SYS alone is no strong access */
      {"LDG.E.LTC128B.64", SASS_LOAD, 8, 0},
      {"LDG.E.STRONG.SYS", SASS_LOAD, 4, TRACE_BYPASS_L1},
      {"LDG.E.STRONG.SM", SASS_LOAD, 4, 0},
      {"LDG.E.CG", SASS_LOAD, 4, TRACE_BYPASS_L1},
      {"LDG.E.EF.64", SASS_LOAD, 8, TRACE_STREAMING},
      {"LD.E", SASS_LOAD, 4, 0},
      {"ST.E.64", SASS_STORE, 8, 0},
      {"ATOMG.E.ADD.F64.RN", SASS_ATOMIC, 8, 0},
      {"ATOMG.E.ADD.F16x2.RN", SASS_ATOMIC, 4, 0},
      {"RED.E.ADD.STRONG.GPU", SASS_ATOMIC, 4, TRACE_BYPASS_L1},
      {"LDGSTS.E.BYPASS.128", SASS_ASYNC_LOAD, 16, TRACE_BYPASS_L1},
      {"LDGDEPBAR", SASS_GROUP, 4, 0},
      {"DEPBAR.LE", SASS_WAIT_GROUPS, 4, 0},
      {"LDS.U.128", SASS_SHARED, 16, 0},
      {"LDSM.16.M88.4", SASS_SHARED, 16, 0},
      {"ATOMS.ADD", SASS_SHARED_ATOMIC, 4, 0},
      {"STL.64", SASS_LOCAL, 8, 0},
      {"BAR.SYNC.DEFER_BLOCKING", SASS_BARRIER, 4, 0},
      {"UBLKCP", SASS_BULK, 4, 0},
      {"LDC.64", SASS_OTHER, 8, 0},
      {"LDGX", SASS_OTHER, 4, 0},
      {"FADD", SASS_OTHER, 4, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char line[128];
    snprintf(line, sizeof line, "0010 ffffffff 0 %s 0 0", rows[i].opcode);
    sass_instr instr = parsed(line);
    if (instr.kind != rows[i].kind || instr.bytes != rows[i].bytes || instr.flags != rows[i].flags)
      fail_msg("%s: kind %d, %u bytes, flags %u", rows[i].opcode, instr.kind, instr.bytes, instr.flags);
  }
  assert_true(parsed("0 1 0 MUFU.RSQ 0 0").sfu && !parsed("0 1 0 FMUL 0 0").sfu);
  assert_true(parsed("0 1 0 DSETP.GT.AND 0 0").fp64 && !parsed("0 1 0 DEPBAR.LE 0 0").fp64);
  assert_true(parsed("0 1 0 BAR.ARV 0 0").arrive_only && !parsed("0 1 0 BAR.SYNC 0 0").arrive_only);
}

static void test_addresses(void **state) {
  sass_instr i = parsed("\tab0  0000000d 1 R7 LDG.E 2 R4 R255 4 0 0x10 20 0x00000000000000ff 9");
  assert_true(i.pc == 0xab0 && i.mask == 13 && i.destinations == 1 && i.destination[0] == 7 && i.sources == 2 &&
              i.source[1] == 255 && i.immediate == 9);
  assert_true(i.has_address && i.address[0] == 0x10 && i.address[2] == 0x20 && i.address[3] == 0xff);
  i = parsed("0 000000f0 0 STG.E 0 4 1 0x1000 -16");
  assert_true(i.address[4] == 0x1000 && i.address[7] == 0x1000 - 48);
  i = parsed("0 80000001 0 STG.E 0 4 2 0x1000 -4096 -1"); /* to address 0, and an immediate that is negative */
  assert_true(i.address[0] == 0x1000 && i.address[31] == 0);
  i = parsed("0 00000000 0 STG.E 0 4 1 0x0 0 0");
  assert_true(!i.mask && i.has_address);
  static const sass_format both = {.places = true, .lines = true};
  assert_null(sass_parse("1 2 3 4 55 0010 1 0 EXIT 0 0", &both, &i));
  assert_int_equal(i.pc, 0x10);
  static const sass_format values = {.values = true}; /* tracer version 6 */
  assert_null(sass_parse("0020 ffffffff 1 R4 LDG.E 1 R2 4 1 0x7f00 4 3 0 Val 1 2 3", &values, &i));
  assert_true(i.immediate == 3 && i.address[31] == 0x7f00 + 124);
  static const sass_format plain;
  static const char *const broken[] = {"",
                                       " ",
                                       "0",
                                       "0 1",
                                       "0 1 0",
                                       "0 1 0 NOP",
                                       "0 1 0 NOP 0",
                                       "0 1 0 NOP 0 4",
                                       "0 1 0 NOP 0 4 0",
                                       "0 1 0 NOP 0 4 1 0x0",
                                       "0 1 0 NOP 0 4 9 0",
                                       "100000000 1 0 NOP 0 0",
                                       "0 1 99999999999999999999 NOP 0 0",
                                       "0 1 1 NOP 0 0",
                                       "0 1 1 Rx NOP 0 0",
                                       "0 1 1 R NOP 0 0",
                                       "0x 1 0 NOP 0 0",
                                       "0 3 0 NOP 0 4 2 0x10 -17",
                                       "0 1 0 NOP 0 4 0 0x100000000000000",
                                       "0 3 0 NOP 0 4 1 0x10 9223372036854775807",
                                       "0 1 0 NOP 0 0 1 2"};
  for (size_t n = 0; n < sizeof broken / sizeof broken[0]; n++)
    if (!sass_parse(broken[n], &plain, &i)) fail_msg("'%s' was read", broken[n]);
}

/* ---- a warp's records ---- */

static void run(const char *const *program, kernel_words *words, kernel_counts *counts) {
  static const kernel_header header = {.shared_base = 0x100000000, .local_base = 0x200000000};
  warp_state *warp = calloc(1, sizeof *warp);
  *counts = (kernel_counts){0};
  words->count = 0;
  warp_begin(warp);
  for (; *program; program++) {
    sass_instr instr = parsed(*program);
    warp_instruction(warp, &instr, &header, words, counts);
  }
  warp_end(warp, words);
  free(warp->groups.items);
  free(warp);
}

static uint64_t issue(uint64_t n, uint64_t memory, uint64_t sfu, uint64_t fp64) {
  return TRACE_ISSUE | n << 4 | memory << 20 | sfu << 36 | fp64 << 50;
}
static uint64_t wait(uint64_t k) { return TRACE_WAIT | k << 32; }
static uint64_t access_word(uint64_t op, uint64_t log2, uint64_t flags, uint64_t pc) {
  return TRACE_ACCESS | op << 4 | log2 << 6 | flags << 9 | 1 << 16 | pc << 32;
}

static void check(const char *const *program, const uint64_t *wanted, size_t count) {
  static kernel_words words;
  kernel_counts counts;
  run(program, &words, &counts);
  for (size_t i = 0; i < count && i < words.count; i++)
    if (words.items[i] != wanted[i])
      fail_msg("word %zu is %llx, not %llx", i, (unsigned long long)words.items[i], (unsigned long long)wanted[i]);
  assert_int_equal(words.count, count);
}
#define same(program, ...) check(program, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / 8)

static void test_waits(void **state) {
  const uint64_t line = trace_line(0x1000, 1, 1);
  /* A pair of registers from one load is waited for once; RZ and what was overwritten never. */
  same(((const char *const[]){"0 1 1 R2 LDG.E.64 1 R8 8 1 0x1000 0", "1 1 1 R255 LDG.E 1 R8 4 1 0x1000 0",
                              "2 1 1 R9 FADD 2 R3 R255 0", "3 1 1 R9 FADD 2 R2 R3 0", NULL}),
       issue(1, 0, 0, 0), access_word(TRACE_LOAD, 3, 0, 0), 1, line, issue(1, 0, 0, 0),
       access_word(TRACE_LOAD, 2, 0, 1), 1, line, wait(1), issue(2, 0, 0, 0), TRACE_EXIT);
  /* A result that is overwritten before it came; a store's value of 8 bytes whose upper half was loaded; DADD reads
   * pairs. */
  same(((const char *const[]){"0 1 1 R2 LDG.E 1 R8 4 1 0x1000 0", "1 1 1 R2 MOV 0 0", NULL}), issue(1, 0, 0, 0),
       access_word(TRACE_LOAD, 2, 0, 0), 1, line, wait(0), issue(1, 0, 0, 0), TRACE_EXIT);
  same(((const char *const[]){"0 1 1 R5 LDG.E 1 R8 4 1 0x1000 0", "1 1 0 STG.E.64 2 R8 R4 8 1 0x1000 0", NULL}),
       issue(1, 0, 0, 0), access_word(TRACE_LOAD, 2, 0, 0), 1, line, wait(0), issue(1, 0, 0, 0),
       access_word(TRACE_STORE, 3, 0, 1), 1, line, TRACE_EXIT);
  same(((const char *const[]){"0 1 1 R5 LDG.E 1 R8 4 1 0x1000 0", "1 1 1 R10 DADD 2 R4 R6 0", NULL}), issue(1, 0, 0, 0),
       access_word(TRACE_LOAD, 2, 0, 0), 1, line, wait(0), issue(1, 0, 0, 1), TRACE_EXIT);
  /* A value that has come is not waited for again. */
  same(((const char *const[]){"0 1 1 R2 LDG.E 1 R8 4 1 0x1000 0", "1 1 1 R3 LDG.E 1 R8 4 1 0x1000 0",
                              "2 1 1 R9 FADD 1 R2 0", "3 1 1 R9 FADD 1 R3 0", "4 1 1 R9 FADD 2 R2 R3 0", NULL}),
       issue(1, 0, 0, 0), access_word(TRACE_LOAD, 2, 0, 0), 1, line, issue(1, 0, 0, 0),
       access_word(TRACE_LOAD, 2, 0, 1), 1, line, wait(1), issue(1, 0, 0, 0), wait(0), issue(2, 0, 0, 0), TRACE_EXIT);
  /* Shared memory's addresses have four bytes; an instruction that no lane takes part in needs nothing. */
  same(((const char *const[]){"0 1 1 R5 LDG.E 1 R8 4 1 0x1000 0", "1 1 0 STS 2 R4 R6 4 1 0x0 0", "2 0 1 R9 FADD 1 R5 0",
                              NULL}),
       issue(1, 0, 0, 0), access_word(TRACE_LOAD, 2, 0, 0), 1, line, issue(2, 0, 0, 0), TRACE_EXIT);
}

static void test_atomics_and_groups(void **state) {
  const uint64_t line = trace_line(0x1000, 1, 1);
  same(((const char *const[]){"0 1 1 R2 ATOMG.E.ADD 2 R8 R4 4 1 0x1000 0", "1 1 0 RED.E.ADD 2 R8 R4 4 1 0x1000 0",
                              "2 1 0 NOP 1 R2 0", NULL}),
       issue(1, 0, 0, 0), access_word(TRACE_ATOMIC, 2, TRACE_RETURNS, 0), 1, line, issue(1, 0, 0, 0),
       access_word(TRACE_ATOMIC, 2, 0, 1), 1, line, wait(0), issue(1, 0, 0, 0), TRACE_EXIT);
  /* Three groups, of which one may be left. */
  same(((const char *const[]){"0 1 0 LDGSTS.E.64 2 R8 R4 8 1 0x1000 0", "1 1 0 LDGDEPBAR 0 0",
                              "2 1 0 LDGSTS.E.64 2 R8 R4 8 1 0x1000 0", "3 1 0 LDGDEPBAR 0 0",
                              "4 1 0 LDGSTS.E.64 2 R8 R4 8 1 0x1000 0", "5 1 0 LDGDEPBAR 0 0", "6 1 0 DEPBAR.LE 0 0 1",
                              "7 1 0 DEPBAR.LE 0 0 5", "8 1 0 DEPBAR.LE 0 0 0", NULL}),
       issue(1, 0, 0, 0), access_word(TRACE_LOAD, 3, 0, 0), 1, line, issue(2, 0, 0, 0),
       access_word(TRACE_LOAD, 3, 0, 2), 1, line, issue(2, 0, 0, 0), access_word(TRACE_LOAD, 3, 0, 4), 1, line,
       issue(1, 0, 0, 0), wait(1), issue(2, 0, 0, 0), wait(0), issue(1, 0, 0, 0), TRACE_EXIT);
}

static void test_memories(void **state) {
  /* By generic addresses: one lane to global, two to shared memory (in one bank), one to local. */
  same(((const char *const[]){"0 f 1 R2 LD.E 1 R8 4 0 0x1000 0x100000000 0x100000080 0x200000000", NULL}),
       issue(1, 1, 0, 0), access_word(TRACE_LOAD, 2, 0, 0), 1, trace_line(0x1000, 1, 1), TRACE_EXIT);
  /* 32 lanes at one word of shared memory, of which one pass is the load's, and 32 of an atomic operation. */
  same(((const char *const[]){"0 ffffffff 1 R2 LDS 1 R8 4 1 0x0 0", "1 1 0 MUFU.EX2 0 0", NULL}), issue(2, 0, 1, 0),
       TRACE_EXIT);
  same(((const char *const[]){"0 ffffffff 1 R2 ATOMS.ADD 2 R8 R9 4 1 0x0 0", "1 1 0 MUFU.EX2 0 0", NULL}),
       issue(2, 31, 1, 0), TRACE_EXIT);
  /* 32 lanes 128 bytes apart in shared memory: 31 passes more. Nothing of it is an access. */
  same(((const char *const[]){"0 ffffffff 1 R2 LDS 1 R8 4 1 0x0 128", "1 1 0 MUFU.EX2 0 0", NULL}), issue(2, 31, 1, 0),
       TRACE_EXIT);
  /* A width that the addresses are not aligned to is not believed; a barrier's arrivals are for the block to know. */
  same(((const char *const[]){"0 1 1 R2 LDG.E.128 1 R8 16 1 0x1004 0", "1 1 0 BAR.ARV 0 0", NULL}), issue(1, 0, 0, 0),
       access_word(TRACE_LOAD, 2, 0, 0), 1, trace_line(0x1000, 1, 1), issue(1, 0, 0, 0), TRACE_BARRIER | 1 << 12,
       TRACE_EXIT);
}

static void test_bursts(void **state) {
  static const char *program[40001];
  for (int i = 0; i < 40000; i++)
    program[i] = i % 2 ? "0 ffffffff 0 MUFU.RCP 0 0" : "0 ffffffff 1 R2 LDS 1 R8 4 1 0x0 128";
  static kernel_words words;
  kernel_counts counts;
  uint64_t n = 0, memory = 0, sfu = 0;
  run(program, &words, &counts);
  for (size_t i = 0; i + 1 < words.count; i++) {
    assert_int_equal(trace_word_kind(words.items[i]), TRACE_ISSUE);
    n += trace_issue_count(words.items[i]);
    memory += trace_issue_memory(words.items[i]);
    sfu += trace_issue_sfu(words.items[i]);
  }
  assert_true(n == 40000 && sfu == 20000 && memory == 20000 * 31 && counts.warp_instructions == 40000 &&
              counts.thread_instructions == 40000 * 32);
  free(words.items);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_opcodes),  cmocka_unit_test(test_addresses),
                                     cmocka_unit_test(test_waits),    cmocka_unit_test(test_atomics_and_groups),
                                     cmocka_unit_test(test_memories), cmocka_unit_test(test_bursts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
