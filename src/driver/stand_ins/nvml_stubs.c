/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of NVML that nvml.c does not have. Each is a weak definition; no header that declares them may be
 * included here. */
#define X(name)                                                \
  __attribute__((weak, visibility("default"))) int name(void); \
  __attribute__((weak, visibility("default"))) int name(void) { return 3; /* NVML_ERROR_NOT_SUPPORTED */ }
#include "driver/stand_ins/nvml_names.def"
