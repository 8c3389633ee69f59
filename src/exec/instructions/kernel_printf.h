/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel's printf prints (CUDA C++ Programming Guide, "Formatted Output"). */
#ifndef FF_EXEC_PRINT_H
#define FF_EXEC_PRINT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "exec/memory/address_space.h"

/* Reads the string at an address that is in no allocation (shared and local memory): at most `room` - 1 characters and
 * a 0. False: nothing can be read there. */
typedef struct exec_print_reader {
  bool (*read)(void *context, uint64_t address, char *string, size_t room);
  void *context;
} exec_print_reader;

/* Formats one thread's call into *out: `format` is the address of the format string, `arguments` the `bytes` of the
 * packed argument buffer that vprintf was given (each argument at its natural alignment, int and wider, double).
 * Strings are read from allocations, else by `reader` (NULL: nowhere else); one that cannot be prints as "(bad
 * address)". At most 32 conversions, as the hardware; text of a format that is no conversion is printed as it stands.
 * Returns how many arguments were used, or -1 if the format string itself cannot be read. */
int exec_print_format(ff_text *out, const exec_memory *memory, uint64_t format, const unsigned char *arguments,
                      size_t bytes, const exec_print_reader *reader);

#endif
