/* SPDX-License-Identifier: Apache-2.0 */
/* Where the functions of an ELF file are, by its symbol table; of a stripped one those that it exports.
 *
 * The file is not trusted. An address is one of the file's own, to which the loader adds where it put the file; `room`
 * reaches neither into the next function nor out of the section. */
#ifndef FF_FATBIN_FUNCTIONS_H
#define FF_FATBIN_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct fatbin_function {
  const char *name;
  uint64_t address;
  uint64_t room; /* bytes from there that belong to no other function */
} fatbin_function;

typedef struct fatbin_functions {
  fatbin_function *items; /* in the order of the table; a name may be there more than once */
  uint32_t count;
  char *names; /* what the items point into */
} fatbin_functions;

/* The functions that the file defines and whose names are wanted. FF_NOT_FOUND: it has no symbol table, or is no 64-bit
 * ELF file; FF_IO: cannot be read. The caller frees the list with fatbin_functions_free. */
ff_status fatbin_functions_find(const char *path, bool (*wanted)(const char *name), fatbin_functions *found,
                                ff_error *error);
void fatbin_functions_free(fatbin_functions *found);

#endif
