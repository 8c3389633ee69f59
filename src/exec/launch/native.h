/* SPDX-License-Identifier: Apache-2.0 */
/* Where compiled code (src/compile) comes into the interpreter.
 *
 * A function's compiled code works on the same warp and the same frames as core.isa.c and may be entered at every
 * instruction with EXEC_ATTEND_NATIVE; where no block of it begins (behind shfl and bar.warp.sync that are code of
 * full warps), it declines. It runs until it comes to something that only the interpreter does (a call, a
 * barrier, the end), then writes everything that is still needed to the frame and returns. Where lanes diverge or
 * reconverge it asks the interpreter's functions which of them run next, and goes on with those; the whole warp goes on
 * in the body for full warps.
 *
 *   full --lanes diverge--> any --another split's place: merge--> any ... --all lanes: AGAIN--> full
 *     |                   |
 *     barrier: pass_end, full again (known)              anything else: the interpreter, until the next EXEC_ATTEND_NATIVE
 *
 * When compiled code returns, the warp is in the state in which the interpreter would have left it: live registers,
 * memory, counters, segment, budget, splits (tests/compiled compares both). Only registers that no instruction reads
 * again may differ, and those that are one number (the same in all lanes, or linear in the lane's) may be in
 * core_warp.kept where a full warp waits at a barrier: the same code takes them from there, and core.isa.c writes them
 * to the frame before anything else goes on. */
#ifndef FF_EXEC_NATIVE_H
#define FF_EXEC_NATIVE_H

#include "exec/decode/program.h"

/* What compiled code calls. Appended to only together with the version in compile/request.h. All but the first three
 * and the last four only where the access stream is wanted or uses are declared. The warp's counters are right before
 * the call (but of the first three), and the code reads them again after it. */
typedef struct exec_native_api {
  /* a computing or memory instruction for the lanes whose guard is true */
  void (*guarded)(core_warp *w, const exec_instr *i);
  /* Registers that are one number, between the frame and values[]. places: of each an offset in the frame (bit 0 set:
   * of 64 bits, bit 1: a predicate), an index of values, and how much more each lane has than the one before (0: all
   * have the same); behind the last one UINT32_MAX. collect: false: one of them is not so, which is not tested if `at`
   * has EXEC_NATIVE_KNOWN. */
  bool (*collect)(const core_warp *w, const uint32_t *places, uint64_t *values, uint32_t at);
  void (*spread)(core_warp *w, const uint32_t *places, const uint64_t *values);
  void (*count)(core_warp *w, uint32_t end);        /* core_count */
  void (*waits)(core_warp *w, const exec_instr *i); /* core_trace_waits */
  void (*mark)(core_warp *w, const exec_instr *i);  /* core_mark; what the bounds of i's region are is in the frame */
  /* Before global access i of the active lanes, which is legal. row: lane l at address + l * its bytes; one: all at
   * `address`; scattered: at value[l] + i's offset. */
  void (*row)(core_warp *w, const exec_instr *i, uint64_t address);
  void (*one)(core_warp *w, const exec_instr *i, uint64_t address);
  void (*scattered)(core_warp *w, const exec_instr *i, const uint64_t *value);
  /* Cycles beyond the first that shared memory takes for words at these offsets, for the active lanes; i takes so many
   * more. */
  uint32_t (*conflicts)(const core_warp *w, const uint32_t *offset);
  void (*passes)(core_warp *w, const exec_instr *i, uint32_t more);
  /* The running split has come to a branch that only the lanes `taken` take, or to the beginning of a block where
   * others wait or that is not before all of them: another may run now. Returns where in this frame, as an index of a
   * decoded instruction; EXEC_NATIVE_NOWHERE: the whole warp is together again, or a split of another frame runs: w->pc
   * has it. */
  uint32_t (*diverge)(core_warp *w, const exec_instr *i, uint32_t taken);
  uint32_t (*meet)(core_warp *w, const exec_instr *i);
  /* The running split is at a brx.idx that its lanes take to different targets, or to none, which is a fault. Returns
   * the same; EXEC_NATIVE_OVER: it was a way back, and the turn's budget is used up. */
  uint32_t (*indexed)(core_warp *w, const exec_instr *i);
  /* A computing or memory instruction for those of the lanes `running` whose guard is true: where code executes a short
   * region under masks, the running split is still what it was before the region. */
  void (*masked)(core_warp *w, const exec_instr *i, uint32_t running);
} exec_native_api;

#define EXEC_NATIVE_NOWHERE UINT32_MAX
#define EXEC_NATIVE_OVER (UINT32_MAX - 1)

extern const exec_native_api exec_native_calls_baseline, exec_native_calls_avx2, exec_native_calls_avx512;

enum {
  EXEC_NATIVE_EXIT,    /* the interpreter goes on at w->pc */
  EXEC_NATIVE_YIELD,   /* the turn's budget is used up: the running split goes on at w->pc later */
  EXEC_NATIVE_DECLINE, /* nothing was done: what this code relies on is not so */
  EXEC_NATIVE_NOTHING, /* nothing was done: the instruction is the interpreter's */
  EXEC_NATIVE_AGAIN,   /* another split runs, or the whole warp: at w->pc, with code for these lanes */
  EXEC_NATIVE_UNLIKE,  /* the interpreter goes on at w->pc, behind which something is not what code relies on */
};
/* `at`: index of the decoded instruction to go on at. EXEC_NATIVE_KNOWN: the code has itself left the warp at the
 * barrier before it, by EXEC_NATIVE_EXIT, and the warp has not run since, so that values that were one number still
 * are. */
#define EXEC_NATIVE_KNOWN 0x80000000u
typedef uint32_t (*exec_native_function)(core_warp *w, uint32_t at, const exec_native_api *api);

typedef struct exec_native_code { /* of one function */
  exec_native_function full;      /* all 32 lanes are active and no other split is runnable; may decline */
  /* any lanes; NULL: not needed so far, or being made. Set once, atomically */
  exec_native_function any;
} exec_native_code;

/* The provider of compiled code. `begin` returns code at once (it was in the cache, or it waited), or NULL and a job in
 * *job, or NULL and no job: interpret. `ask`: is the job done by now? Both results live until the process ends. All
 * thread-safe. */
typedef struct exec_native_provider {
  const exec_native_code *(*begin)(core_launch *launch, const exec_code *code, void **job);
  const exec_native_code *(*ask)(core_launch *launch, void *job);
  void (*end)(core_launch *launch, void *job); /* of a launch that began with a job */
  /* code for any lanes is wanted, of the launch's functions that have code */
  void (*wish)(core_launch *launch);
} exec_native_provider;

/* For all launches from now on. NULL: everything is interpreted. */
void exec_native_use(const exec_native_provider *provider);
/* Launches that began with compiled code or got it on the way, and all launches, since the process started. */
void exec_native_count(uint64_t *compiled, uint64_t *launches);

/* core.isa.c: the launch's code is to get bodies for any lanes. Perhaps they are there when it returns. */
void exec_native_wish(core_launch *launch);
/* launch.c; block.c asks, too */
void exec_native_begin(core_launch *launch, const exec_code *code);
void exec_native_ask(core_launch *launch);
void exec_native_end(core_launch *launch);

#endif
