/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a kernel or a variable as two builds of one source file both have it.
 *
 * The names that nvcc gives are those of the C++ ABI, with three parts that change from build to build:
 *   65_GLOBAL__N__fd5ea9ae_14_SparseMatMul_cu_1a2b3c4d_1234    an anonymous namespace: its length, hashes of the file
 *   57_INTERNAL_4ee5d2e8_9_common_cu_1a2b3c4d                  what is internal to a file
 *   31CUB_200302_500_600_700_800_900_NS                        the architectures that CUB or Thrust is compiled for
 * Of them stay: the name of the file, and the library's version. */
#ifndef FF_DRIVER_KERNEL_NAME_H
#define FF_DRIVER_KERNEL_NAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* Appends the common form of the mangled name. A name without such parts stays as it is. */
void kernel_name_common(const char *name, size_t length, ff_text *common);
/* FNV-1a of the common form. */
uint64_t kernel_name_hash(const char *name, size_t length);
/* The source file that the name says it is internal to ("SparseMatMul.cu"): what was written to `file`; false: it says
 * none. */
bool kernel_name_file(const char *name, char *file, size_t room);

#endif
