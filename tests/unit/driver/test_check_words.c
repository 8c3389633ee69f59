/* SPDX-License-Identifier: Apache-2.0 */
/* Check words (ECC) that go over the bus of DRAM with the data, on the engine's own clock: a copy within the device
 * takes as much longer as they take of the bus. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "driver/engine/engine_internal.h"

enum { MIB = 1 << 20, CHECK_SECTORS = 2 };

static uint64_t copy_ps(uint64_t bytes) { return engine_time_transfer(bytes, TRACE_D2D); }

static void a_copy_has_them(void **state) {
  (void)state;
  assert_int_equal(engine_start(), cudaSuccess);
  const machine_spec *m = engine_machine();
  assert_true(m->dram_check_sectors == CHECK_SECTORS && m->dram_copy_share == 0);
  const double data = 4. / (4 + CHECK_SECTORS), gbs = m->dram_gbs * data / 2; /* what is read is written, too */
  const double expected = 64. * MIB * 1000 / gbs, took = (double)(copy_ps(65 * MIB) - copy_ps(MIB));
  assert_true(took > expected - 2 && took < expected + 2);
}

int main(void) {
  setenv("FARFAULT_MACHINE", "gtx480", 1);
  setenv("FARFAULT_SET", "dram_check_sectors=2", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_copy_has_them)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
