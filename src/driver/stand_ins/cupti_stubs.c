/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of CUPTI that cupti.c does not have. Each is a weak definition; no header that declares them may be
 * included here. */
int cupti_refuse(const char *call); /* cupti.c */

#define X(name)                                                \
  __attribute__((weak, visibility("default"))) int name(void); \
  __attribute__((weak, visibility("default"))) int name(void) { return cupti_refuse(#name); }
#include "driver/stand_ins/cupti_names.def"
