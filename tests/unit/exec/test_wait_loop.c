/* SPDX-License-Identifier: Apache-2.0 */
/* Which plain loads a loop waits by: those of short loops that do nothing but look at one address until what they find
 * there says to stop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "exec/decode/decode.h"
#include "ptx/analysis/cfg.h"

/* Of the first ld of the body that is not of a parameter. */
static bool waits(const char *body) {
  ff_error error = {0};
  ff_text text = {0};
  ptx_module *module;
  ff_text_add(&text,
              ".version 8.6\n.target sm_100a\n.address_size 64\n.func f() { ret; }\n"
              ".visible .entry k(.param .u64 p)\n{\n.shared .align 16 .b8 sh[64]; .local .b32 own;\n"
              ".reg .b64 %%a, %%d; .reg .b32 %%r<9>; .reg .pred %%p, %%q;\nld.param.u64 %%a, [p];\n%s\nE: ret;\n}\n",
              body);
  if (ptx_module_parse("test.ptx", text.chars, strlen(text.chars), &module, &error)) fail_msg("%s", error.message);
  const ptx_func *func = ptx_find_func(module, "k");
  ptx_cfg *cfg = ptx_cfg_build(func);
  uint32_t index = 1;
  while (func->instrs[index].opcode != PTX_OP_LD) index++;
  bool result = exec_waits_plainly(func, cfg, index);
  ptx_cfg_free(cfg);
  ptx_module_free(module);
  free(text.chars);
  return result;
}

#define LOOK "ld.global.u32 %r1, [%a];"
#define AGAIN "setp.eq.u32 %p, %r1, 0; @%p bra L;"

static void test_loops_that_wait(void **state) {
  static const char *const bodies[] = {
      "L: " LOOK AGAIN,
      "L: ld.u32 %r1, [%a];" AGAIN,
      "L: " LOOK "setp.ne.u32 %p, %r1, 0; @%p bra E; bra L;",
      "L: " LOOK "and.b32 %r2, %r1, 4; setp.eq.u32 %p, %r2, 0; @%p bra L;",
      "L: " LOOK "st.shared.u32 [sh], %r1;" AGAIN,
      "L: " LOOK "nanosleep.u32 100;" AGAIN,
      "L: " LOOK "bar.sync 0;" AGAIN,
      /* what was found three rounds ago */
      "L: setp.eq.u32 %p, %r4, 0; mov.u32 %r4, %r3; mov.u32 %r3, %r2; mov.u32 %r2, %r1; " LOOK "@%p bra L;",
  };
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
    if (!waits(bodies[i])) fail_msg("does not wait: %s", bodies[i]);
}

static void test_loops_that_do_not(void **state) {
  static const char *const bodies[] = {
      /* no loop; another space; answered by a cache for constants */
      LOOK "setp.eq.u32 %p, %r1, 0; @%p bra E;",
      "L: ld.shared.u32 %r1, [sh];" AGAIN,
      "L: ld.global.nc.u32 %r1, [%a];" AGAIN,
      /* left by a counter, whatever a branch within it says */
      "L: " LOOK "add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, 10; @%p bra L;",
      "L: " LOOK "setp.eq.u32 %p, %r1, 0; @%p bra M; add.u32 %r3, %r3, 1; M: setp.lt.u32 %q, %r2, 10; @%q bra L;",
      /* looks elsewhere each time */
      "L: " LOOK "add.u64 %a, %a, 4;" AGAIN,
      /* does something */
      "L: " LOOK "st.global.u32 [%a+4], %r2;" AGAIN,
      "L: " LOOK "st.u32 [%a+4], %r2;" AGAIN,
      "L: " LOOK "atom.global.add.u32 %r2, [%a+4], 1;" AGAIN,
      "L: " LOOK "red.global.add.u32 [%a+4], 1;" AGAIN,
      "L: " LOOK "call f;" AGAIN,
      "L: " LOOK "cp.async.ca.shared.global [sh], [%a+16], 16;" AGAIN,
      "L: " LOOK "mbarrier.arrive.shared.b64 %d, [sh];" AGAIN,
      "L: " LOOK "multimem.red.relaxed.sys.global.add.u32 [%a+4], %r2;" AGAIN,
      "L: " LOOK "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" AGAIN,
  };
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
    if (waits(bodies[i])) fail_msg("waits: %s", bodies[i]);
}

/* A loop of 64 instructions is short. */
static void test_long_loops(void **state) {
  for (uint32_t count = 63; count <= 66; count++) {
    ff_text body = {0};
    ff_text_add(&body, "%s", "L: " LOOK);
    for (uint32_t n = 3; n < count; n++) ff_text_add(&body, "%s", "add.u32 %r3, %r3, 1;");
    ff_text_add(&body, "%s", AGAIN);
    assert_int_equal(waits(body.chars), count <= 64);
    free(body.chars);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_loops_that_wait),
      cmocka_unit_test(test_loops_that_do_not),
      cmocka_unit_test(test_long_loops),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
