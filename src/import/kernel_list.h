/* SPDX-License-Identifier: Apache-2.0 */
/* kernelslist.g of an Accel-Sim trace: what the program did, a line each.
 *
 *   MemcpyHtoD,0xADDRESS,BYTES     also MemcpyDtoH (newer tracers; Accel-Sim itself ignores it)
 *   kernel-N.traceg                the file of a launch, next to the list */
#ifndef FF_IMPORT_LIST_H
#define FF_IMPORT_LIST_H

#include "base/memory.h"
#include "import/lines.h"

typedef struct list_entry {
  char *file;              /* of a launch, with its folder; NULL: a copy */
  uint64_t address, bytes; /* of a copy */
  bool to_host;
} list_entry;

typedef FF_VEC(list_entry) list_entries;

/* FF_PARSE: a line that is neither. The entries' files are found (also with .xz or .gz behind the name) in `folder`. */
ff_status list_read(lines *from, const char *folder, list_entries *out, ff_error *error);
void list_free(list_entries *list);

#endif
