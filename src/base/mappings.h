/* SPDX-License-Identifier: Apache-2.0 */
/* What this process has mapped, as the kernel tells (proc(5), /proc/pid/maps): which addresses, what may be done there,
 * and whose memory it is. */
#ifndef FF_BASE_MAPPINGS_H
#define FF_BASE_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

typedef struct ff_mapping { /* whole pages */
  uint64_t begin, end;      /* `end`: the first address behind it */
  bool readable, writable;  /* what the kernel keeps for itself ([vvar], [vsyscall]) is neither */
  char name[64]; /* the end of a file's path, or what the kernel calls it ("[heap]", "[stack]"); "": of no file */
} ff_mapping;
typedef FF_VEC(ff_mapping) ff_mappings;

/* In order of address; the caller frees `items`. Empty: the kernel does not show them. */
ff_mappings ff_mappings_read(void);
/* The readable mapping that has the address. NULL: there is none. */
const ff_mapping *ff_mapping_at(const ff_mappings *mappings, uint64_t address);

#endif
