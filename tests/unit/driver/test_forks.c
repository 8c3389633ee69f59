/* SPDX-License-Identifier: Apache-2.0 */
/* A child that is forked while another thread is inside a call: its own calls return, and do not wait for that thread,
 * which the child does not have (forks.h). */
#define _GNU_SOURCE
#include "unit/forks.h"
#include "program.h"

static const char text[] = PTX_HEAD ".visible .entry nothing()\n{\nret;\n}\n";
STUB(nothing);
STUB(another);

int cuInit(unsigned), cuCtxCreate_v2(void **, unsigned, int), cuCtxGetApiVersion(void *, unsigned *),
    cuCtxSetCurrent(void *), cuFuncSetBlockShape(void *, int, int, int), cuModuleLoadData(void **, const void *),
    cuModuleGetFunction(void **, void *, const char *),
    cuLinkAddData_v2(void *, int, void *, size_t, const char *, unsigned, int *, void **),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

static void *context, *function;
static void **registered;

static void attributes(void) {
  cudaFuncAttributes found;
  cudaFuncGetAttributes(&found, nothing);
}
static void version(void) {
  unsigned found;
  cuCtxGetApiVersion(context, &found);
}
static void shape(void) { cuFuncSetBlockShape(function, 1, 1, 1); }
static void unknown_link(void) { cuLinkAddData_v2(&context, 1, &context, 8, "", 0, NULL, NULL); }
static void registers(void) { register_kernel(registered, another, "nothing"); }
static void launched(void) { cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL); }

static void in_context(void) { cuCtxSetCurrent(context); }

static void a_child_waits_for_no_thread(void **state) {
  (void)state;
  void (*const calls[])(void) = {attributes, version, shape, unknown_link, registers, launched};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    const int locks = forks_with_each_lock(in_context, calls[i]);
    print_message("call %zu: %d locks\n", i, locks);
    assert_true(locks > 0); /* it is this file's pthread_mutex_lock that is called */
  }
}

int main(void) {
  void *module;
  setenv("FARFAULT_MACHINE", "gtx480", 1);
  setenv("FARFAULT_MEMORY", "copy", 1); /* a launch then takes the locks of what is simulated, too */
  registered = register_ptx((const char *const[]){text}, 1);
  register_kernel(registered, nothing, "nothing");
  if (cudaFree(NULL) || cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuModuleLoadData(&module, text) ||
      cuModuleGetFunction(&function, module, "nothing"))
    return 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_waits_for_no_thread)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
