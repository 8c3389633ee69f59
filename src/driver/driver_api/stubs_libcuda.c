/* SPDX-License-Identifier: Apache-2.0 */
/* The driver functions that are not implemented: each says so once, by its name, and is CUDA_ERROR_NOT_SUPPORTED.
 * Weak definitions, replaced by those of libcuda_*.c, as in stubs_cudart.c. */
void engine_say_once(const char *key, const char *format, ...); /* engine.h */

static int unimplemented(const char *call) {
  engine_say_once(call, "%s is not implemented by the virtual GPU; it returned 'not supported'", call);
  return 801; /* CUDA_ERROR_NOT_SUPPORTED */
}

#define X(symbol, name, since, per_thread)                       \
  __attribute__((weak, visibility("default"))) int symbol(void); \
  __attribute__((weak, visibility("default"))) int symbol(void) { return unimplemented(#symbol); }
#include "driver/driver_api/stubs_libcuda.def"
#undef X
