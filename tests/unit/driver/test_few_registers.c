/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU whose threads have 63 registers at most (compute capability 2.0): a kernel that keeps 200 values at once
 * spills, and its blocks run. */
#include "base/text.h"
#include "program.h"

static void what_is_above_63_is_spilled(void **state) {
  (void)state;
  STUB(many);
  ff_text text = {0};
  ff_text_add(&text, PTX_HEAD ".visible .entry many(.param .u64 out)\n{\n.reg .b64 %%p;\n.reg .b32 %%v<200>;\n");
  ff_text_add(&text, "ld.param.u64 %%p, [out];\n");
  for (int i = 0; i < 200; i++) ff_text_add(&text, "ld.global.u32 %%v%d, [%%p+%d];\n", i, 4 * i);
  for (int i = 0; i < 200; i++) ff_text_add(&text, "st.global.u32 [%%p+%d], %%v%d;\n", 4 * i, 199 - i);
  ff_text_add(&text, "ret;\n}\n");
  register_kernel(register_ptx((const char *const[]){text.chars}, 1), many, "many");
  cudaFuncAttributes attributes;
  succeed(cudaFuncGetAttributes(&attributes, many));
  assert_int_equal(attributes.numRegs, 63);
  assert_true(attributes.maxThreadsPerBlock >= 512);
  void *memory;
  succeed(cudaMalloc(&memory, 4096));
  succeed(launch(many, 1, 512, (void *[]){&memory}));
  succeed(cudaDeviceSynchronize());
  succeed(cudaFree(memory));
  free(text.chars);
}

int main(void) {
  setenv("FARFAULT_MACHINE", "gtx480", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_above_63_is_spilled)};
  return cmocka_run_group_tests_name("few_registers", tests, NULL, NULL);
}
