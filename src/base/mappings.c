/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mappings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One line: "begin-end rwxp offset device inode name". */
static bool parse(const char *line, ff_mapping *mapping) {
  char access[5];
  int name_at = 0;
  if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", &mapping->begin, &mapping->end, access, &name_at) <
          3 ||
      !name_at)
    return false;
  size_t length = strcspn(line + name_at, "\n"), most = sizeof mapping->name - 1;
  const char *name = line + name_at + (length > most ? length - most : 0);
  bool kernels = !strncmp(line + name_at, "[v", 2);
  mapping->readable = access[0] == 'r' && !kernels;
  mapping->writable = access[1] == 'w' && !kernels;
  snprintf(mapping->name, sizeof mapping->name, "%.*s", (int)(length > most ? most : length), name);
  return true;
}

ff_mappings ff_mappings_read(void) {
  ff_mappings mappings = {0};
  FILE *file = fopen("/proc/self/maps", "re");
  char *line = NULL;
  size_t room = 0;
  ff_mapping mapping;
  while (file && getline(&line, &room, file) > 0)
    if (parse(line, &mapping)) FF_PUSH(&mappings, mapping);
  free(line);
  if (file) fclose(file);
  return mappings;
}

const ff_mapping *ff_mapping_at(const ff_mappings *mappings, uint64_t address) {
  for (size_t i = 0; i < mappings->count && mappings->items[i].begin <= address; i++)
    if (address < mappings->items[i].end) return mappings->items[i].readable ? &mappings->items[i] : NULL;
  return NULL;
}
