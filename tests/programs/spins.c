/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that wait for another thread, on the driver API: `spins SCENE FORM`. Whatever the scene, every thread waits
 * in the same function (wait.func below), by one of these forms:
 *   acquire, volatile, cas, sleep, plain   every thread asks: ld.acquire, ld.volatile, a failing atom.cas, ld.volatile
 *                                          with nanosleep, and ld alone
 *   one                                    thread 0 asks until it is so, all others wait at a barrier behind
 *   all                                    thread 0 asks once, and all pass two barriers and look at its answer
 * Scenes:
 *   grid     a cooperative grid's blocks count up and wait for the last of them, three times
 *   streams  a kernel waits for one that is launched after it into another stream
 *   host     a kernel waits for a word of mapped host memory that the host sets after the launch
 *   managed  likewise of managed memory
 *   copy     a kernel waits for a copy that is made after it in another stream
 *   never    a kernel waits for what nobody writes
 * Prints "right" when the values that were passed on are. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "driver_call.h"

enum { BLOCKS = 24, THREADS = 128, ROUNDS = 3 };
static const char *const forms[] = {"acquire", "volatile", "cas", "sleep", "plain", "one", "all"};

#define WAIT(address, least)                                                                                     \
  "{ .param .b64 a; .param .b32 l; .param .b32 f; st.param.b64 [a], " address "; st.param.b32 [l], " least ";\n" \
  "st.param.b32 [f], %form; call.uni wait, (a, l, f); }\n"
#define MEET                                                                                                   \
  "bar.sync 0; @%first membar.gl; @%first red.add.u32 [%counter], 1; add.u32 %least, %least, %blocks;\n" WAIT( \
      "%counter", "%least")
static const char code[] =
    ".version 7.8\n.target sm_80\n.address_size 64\n"
    ".shared .align 4 .b8 answer[4];\n"
    /* until [at] >= least */
    ".func wait(.param .b64 at_, .param .b32 least_, .param .b32 form_)\n{\n"
    ".reg .b64 %at; .reg .b32 %least, %form, %r, %t; .reg .pred %p, %q;\n"
    "ld.param.b64 %at, [at_]; ld.param.b32 %least, [least_]; ld.param.b32 %form, [form_];\n"
    "mov.u32 %t, %tid.x;\nchoose: .branchtargets ACQUIRE, VOLATILE, CAS, SLEEP, PLAIN, ONE, ALL;\n"
    "brx.idx.uni %form, choose;\n"
    "ACQUIRE: ld.acquire.sys.u32 %r, [%at]; setp.lt.u32 %p, %r, %least; @%p bra ACQUIRE; bra END;\n"
    "VOLATILE: ld.volatile.u32 %r, [%at]; setp.lt.u32 %p, %r, %least; @%p bra VOLATILE; bra END;\n"
    "CAS: atom.cas.b32 %r, [%at], 0xffffffff, 0; setp.lt.u32 %p, %r, %least; @%p bra CAS; bra END;\n"
    "SLEEP: nanosleep.u32 100; ld.volatile.u32 %r, [%at]; setp.lt.u32 %p, %r, %least; @%p bra SLEEP; bra END;\n"
    "PLAIN: ld.u32 %r, [%at]; setp.lt.u32 %p, %r, %least; @%p bra PLAIN; bra END;\n"
    "ONE: setp.ne.u32 %q, %t, 0; @%q bra END;\n"
    "AGAIN: ld.volatile.u32 %r, [%at]; setp.lt.u32 %p, %r, %least; @%p bra AGAIN; bra END;\n"
    "ALL: bar.sync 0; setp.eq.u32 %q, %t, 0; @%q ld.acquire.sys.u32 %r, [%at]; @%q st.shared.u32 [answer], %r;\n"
    "bar.sync 0; ld.shared.u32 %r, [answer]; setp.lt.u32 %p, %r, %least; @%p bra ALL;\n"
    "END: bar.sync 0; ret;\n}\n"
    /* each round: to[thread] = its value; all meet; its value is that of the thread 33 further; all meet */
    ".visible .entry meet(.param .u64 counter_, .param .u64 to_, .param .u32 form_)\n{\n"
    ".reg .b64 %counter, %to, %own, %next; .reg .b32 %blocks, %threads, %t, %x, %round, %least, %form; .reg .pred %p, %first;\n"
    "ld.param.u64 %counter, [counter_]; ld.param.u64 %to, [to_]; ld.param.u32 %form, [form_];\n"
    "mov.u32 %threads, %ntid.x; mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; mov.u32 %x, %ctaid.x;\n"
    "mad.lo.u32 %x, %x, %threads, %t; mul.wide.u32 %own, %x, 4; add.u64 %own, %to, %own; mov.u32 %blocks, %nctaid.x;\n"
    "mul.lo.u32 %threads, %threads, %blocks; add.u32 %t, %x, 33; rem.u32 %t, %t, %threads;\n"
    "mul.wide.u32 %next, %t, 4; add.u64 %next, %to, %next; mov.u32 %round, 3; mov.u32 %least, 0;\n"
    "ROUND: st.volatile.u32 [%own], %x;\n" MEET "ld.volatile.u32 %x, [%next];\n" MEET
    "sub.u32 %round, %round, 1; setp.ne.u32 %p, %round, 0; @%p bra ROUND; st.volatile.u32 [%own], %x; ret;\n}\n"
    /* waits for the word, then writes it to its thread's place */
    ".visible .entry follow(.param .u64 word_, .param .u64 to_, .param .u32 form_)\n{\n"
    ".reg .b64 %word, %to, %own; .reg .b32 %b, %n, %t, %form;\n"
    "ld.param.u64 %word, [word_]; ld.param.u64 %to, [to_]; ld.param.u32 %form, [form_];\n" WAIT(
        "%word",
        "7") "mov.u32 %b, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %t, %b, %n, %t;\n"
             "mul.wide.u32 %own, %t, 4; add.u64 %own, %to, %own; ld.volatile.u32 %b, [%word]; st.u32 [%own], %b; ret;\n}\n"
             ".visible .entry lead(.param .u64 word_)\n{\n"
             ".reg .b64 %word;\nld.param.u64 %word, [word_]; membar.gl; st.volatile.u32 [%word], 9; ret;\n}\n";

typedef uint64_t address;
static void *module;

static void launch(const char *name, unsigned blocks, void *stream, bool cooperative, void **arguments) {
  void *kernel;
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, name);
  if (cooperative)
    CALL(cuLaunchCooperativeKernel,
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **), kernel,
         blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments);
  else
    CALL(cuLaunchKernel,
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
         kernel, blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL);
}

static void *new_stream(void) {
  void *stream;
  CALL(cuStreamCreate, (void **, unsigned), &stream, 1);
  return stream;
}

static bool grid(address words, uint32_t form) {
  uint32_t values[BLOCKS * THREADS], wrong = 0;
  address to = words + 256;
  launch("meet", BLOCKS, NULL, true, (void *[]){&words, &to, &form});
  CALL(cuMemcpyDtoH_v2, (void *, address, size_t), values, to, sizeof values);
  for (uint32_t i = 0; i < BLOCKS * THREADS; i++) wrong += values[i] != (i + 33 * ROUNDS) % (BLOCKS * THREADS);
  return !wrong;
}

/* After `follow`, which waits for word: all its threads have seen `value`. */
static bool followed(address to, uint32_t value) {
  uint32_t values[BLOCKS * THREADS], wrong = 0;
  CALL(cuCtxSynchronize, (void), );
  CALL(cuMemcpyDtoH_v2, (void *, address, size_t), values, to, sizeof values);
  for (uint32_t i = 0; i < BLOCKS * THREADS; i++) wrong += values[i] != value;
  return !wrong;
}

static bool streams(address words, uint32_t form) {
  address to = words + 256;
  launch("follow", BLOCKS, new_stream(), false, (void *[]){&words, &to, &form});
  launch("lead", 1, new_stream(), false, (void *[]){&words});
  return followed(to, 9);
}

static bool copy(address words, uint32_t form) {
  address to = words + 256;
  uint32_t *word;
  CALL(cuMemHostAlloc, (void **, size_t, unsigned), (void **)&word, 4096, 0);
  *word = 8;
  launch("follow", BLOCKS, new_stream(), false, (void *[]){&words, &to, &form});
  CALL(cuMemcpyHtoDAsync_v2, (address, const void *, size_t, void *), words, word, 4, new_stream());
  return followed(to, 8);
}

/* `word` is the host's address of what the kernel finds at `mapped`. */
static bool set_by_host(volatile uint32_t *word, address mapped, address words, uint32_t form, bool sets) {
  address to = words + 256;
  *word = 0;
  launch("follow", BLOCKS, new_stream(), false, (void *[]){&mapped, &to, &form});
  nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  if (sets) *word = 8;
  return followed(to, 8);
}

static bool host(address words, uint32_t form, bool sets) {
  address mapped;
  void *word;
  CALL(cuMemHostAlloc, (void **, size_t, unsigned), &word, 4096, 2);
  CALL(cuMemHostGetDevicePointer_v2, (address *, void *, unsigned), &mapped, word, 0);
  return set_by_host(word, mapped, words, form, sets);
}

static bool managed(address words, uint32_t form) {
  address word;
  CALL(cuMemAllocManaged, (address *, size_t, unsigned), &word, 4096, 1);
  return set_by_host((void *)word, word, words, form, true);
}

static bool play(const char *scene, address words, uint32_t form) {
  if (!strcmp(scene, "grid")) return grid(words, form);
  if (!strcmp(scene, "streams")) return streams(words, form);
  if (!strcmp(scene, "copy")) return copy(words, form);
  if (!strcmp(scene, "managed")) return managed(words, form);
  return host(words, form, !strcmp(scene, "host"));
}

int main(int argc, char **argv) {
  uint32_t form = 0;
  address words;
  if (argc != 3) return 4;
  while (form < sizeof forms / sizeof *forms && strcmp(argv[2], forms[form])) form++;
  if (form == sizeof forms / sizeof *forms) return 4;
  module = driver_open(code);
  CALL(cuMemAlloc_v2, (address *, size_t), &words, 1 << 16);
  CALL(cuMemsetD32_v2, (address, unsigned, size_t), words, 0, 1 << 14);
  bool right = play(argv[1], words, form);
  printf("%s\n", right ? "right" : "wrong");
  return !right;
}
