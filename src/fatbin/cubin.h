/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code for a GPU (a cubin: an ELF file in memory): the names of the functions in it, and nothing of the code
 * itself. Its tables are not trusted. */
#ifndef FF_FATBIN_CUBIN_H
#define FF_FATBIN_CUBIN_H

#include <stddef.h>
#include <stdint.h>

/* Calls `each` with the name of every function that has code (kernels, and what they call), not NUL-terminated. `size`
 * in bytes; 0: as the ELF header says, for an image in this process's memory. What is broken has no names. */
void cubin_functions(const void *image, size_t size, void (*each)(void *context, const char *name, size_t length),
                     void *context);

#endif
