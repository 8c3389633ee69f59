/* SPDX-License-Identifier: Apache-2.0 */
/* libnvToolsExt.so.1: the rest of its functions, which say nothing about kernels and memory. What has a use is in
 * injection/nvtx_calls.c. No header that declares them may be included here. */
#define CALL(module, number, name)
#define IGNORED(name)                                            \
  __attribute__((visibility("default"))) const void *name(void); \
  __attribute__((visibility("default"))) const void *name(void) { return 0; }
#include "driver/injection/nvtx_calls.def"
